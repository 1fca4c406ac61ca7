//! Errors about a call: what is wrong with it, where it stands in the program, and what to do.
//!
//! They are Python's own `TypeError`, `ValueError` and so on. The text is laid out as that of a compilation error, with the
//! line of the call and a caret below it.

use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyAnyMethods;

use tilewright_frontend::{Diagnostic, Span};

use crate::compile::source_line;
use crate::errors::{Optional, OutOfResources};

/// Something of the wrong type, too few or too many arguments.
#[cold]
pub fn type_error(message: impl Into<String>, hint: impl Into<String>) -> PyErr {
    text(message, hint).map_or_else(|stop| stop, PyTypeError::new_err)
}

/// A value that cannot be.
#[cold]
pub fn value_error(message: impl Into<String>, hint: impl Into<String>) -> PyErr {
    text(message, hint).map_or_else(|stop| stop, PyValueError::new_err)
}

/// A number that does not fit.
#[cold]
pub fn overflow_error(message: impl Into<String>, hint: impl Into<String>) -> PyErr {
    text(message, hint).map_or_else(|stop| stop, PyOverflowError::new_err)
}

/// A call that was right once and is not any more.
#[cold]
pub fn runtime_error(message: impl Into<String>, hint: impl Into<String>) -> PyErr {
    text(message, hint).map_or_else(|stop| stop, PyRuntimeError::new_err)
}

/// More than hardware has.
#[cold]
pub fn out_of_resources(message: impl Into<String>, hint: impl Into<String>) -> PyErr {
    text(message, hint).map_or_else(|stop| stop, OutOfResources::new_err)
}

/// The text of an error about the call that is running: for errors that are raised in Python.
#[pyfunction]
pub fn call_error_text(message: String, hint: String) -> PyResult<String> {
    text(message, hint)
}

fn text(message: impl Into<String>, hint: impl Into<String>) -> PyResult<String> {
    let mut diagnostic = Diagnostic::new(message);
    diagnostic.span = Python::attach(|py| call_site(py).optional(py))?.flatten();
    let hint = hint.into();
    if !hint.is_empty() {
        diagnostic = diagnostic.note(hint);
    }
    Ok(diagnostic.to_string())
}

/// Where the innermost Python code outside this package stands: the call `kernel[grid](…)`.
fn call_site(py: Python<'_>) -> PyResult<Option<Span>> {
    let package: String = py.import("tilewright")?.getattr("__path__")?.get_item(0)?.extract()?;
    let mut frame = py.import("sys")?.call_method1("_getframe", (0,))?;
    while !frame.is_none() {
        let code = frame.getattr("f_code")?;
        let file: String = code.getattr("co_filename")?.extract()?;
        if !file.starts_with(&package) {
            return span(&frame, &code, file);
        }
        frame = frame.getattr("f_back")?;
    }
    Ok(None)
}

fn span(frame: &Bound<'_, PyAny>, code: &Bound<'_, PyAny>, file: String) -> PyResult<Option<Span>> {
    // The positions of each instruction: (line, end line, column, end column), columns in bytes from 0.
    let instruction: usize = frame.getattr("f_lasti")?.extract()?;
    let Some(positions) = code.call_method0("co_positions")?.try_iter()?.nth(instruction / 2) else {
        return Ok(None);
    };
    let (line, end_line, start, end): (Option<u32>, Option<u32>, Option<u32>, Option<u32>) =
        positions?.extract()?;
    let line = match line {
        Some(line) => line,
        None => frame.getattr("f_lineno")?.extract()?,
    };
    let Some(text) = source_line(frame.py(), &file, line)? else { return Ok(None) };
    let column =
        |bytes: u32| text.get(..bytes as usize).map_or(1, |before| before.chars().count() as u32 + 1);
    let start = start.map_or_else(|| (text.len() - text.trim_start().len()) as u32 + 1, column);
    let end = match end {
        Some(end) if end_line == Some(line) => column(end),
        _ => text.chars().count() as u32 + 1,
    };
    // Code that came from no file (`python -c`, the prompt) has no text to show.
    let shown = (!text.is_empty()).then_some(text);
    Ok(Some(Span { file, line, column: start, end_column: end.max(start), text: shown }))
}
