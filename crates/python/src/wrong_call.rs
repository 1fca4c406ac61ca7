//! Errors about a call: what is wrong with it, where it stands in the program, and what to do.
//!
//! They are Python's own `TypeError`, `ValueError` and so on. The text is laid out as that of a compilation error, with the
//! line of the call and a caret below it.

use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyAnyMethods, PyTuple};

use tilewright_frontend::{Diagnostic, Span};

use crate::errors::OutOfResources;

/// Something of the wrong type, too few or too many arguments.
#[cold]
pub fn type_error(message: impl Into<String>, hint: impl Into<String>) -> PyErr {
    PyTypeError::new_err(text(message, hint))
}

/// A value that cannot be.
#[cold]
pub fn value_error(message: impl Into<String>, hint: impl Into<String>) -> PyErr {
    PyValueError::new_err(text(message, hint))
}

/// A number that does not fit.
#[cold]
pub fn overflow_error(message: impl Into<String>, hint: impl Into<String>) -> PyErr {
    PyOverflowError::new_err(text(message, hint))
}

/// A call that was right once and is not any more.
#[cold]
pub fn runtime_error(message: impl Into<String>, hint: impl Into<String>) -> PyErr {
    PyRuntimeError::new_err(text(message, hint))
}

/// More than hardware has.
#[cold]
pub fn out_of_resources(message: impl Into<String>, hint: impl Into<String>) -> PyErr {
    OutOfResources::new_err(text(message, hint))
}

/// The text of an error about the call that is running: for errors that are raised in Python.
#[pyfunction]
pub fn call_error_text(message: String, hint: String) -> String {
    text(message, hint)
}

fn text(message: impl Into<String>, hint: impl Into<String>) -> String {
    let mut diagnostic = Diagnostic::new(message);
    diagnostic.span = Python::attach(call_site);
    let hint = hint.into();
    if !hint.is_empty() {
        diagnostic = diagnostic.note(hint);
    }
    diagnostic.to_string()
}

/// Where the innermost Python code outside this package stands: the call `kernel[grid](…)`.
fn call_site(py: Python<'_>) -> Option<Span> {
    let package: String =
        py.import("tilewright").ok()?.getattr("__path__").ok()?.get_item(0).ok()?.extract().ok()?;
    let mut frame = py.import("sys").ok()?.call_method1("_getframe", (0,)).ok()?;
    loop {
        let code = frame.getattr("f_code").ok()?;
        let file: String = code.getattr("co_filename").ok()?.extract().ok()?;
        if !file.starts_with(&package) {
            return span(&frame, &code, file);
        }
        frame = frame.getattr("f_back").ok().filter(|f| !f.is_none())?;
    }
}

fn span(frame: &Bound<'_, PyAny>, code: &Bound<'_, PyAny>, file: String) -> Option<Span> {
    let py = frame.py();
    // The positions of each instruction: (line, end line, column, end column), columns in bytes from 0.
    let instruction: usize = frame.getattr("f_lasti").ok()?.extract().ok()?;
    let positions = code.call_method0("co_positions").ok()?.try_iter().ok()?.nth(instruction / 2)?.ok()?;
    let positions = positions.cast::<PyTuple>().ok()?;
    let number = |at: usize| positions.get_item(at).ok().and_then(|n| n.extract::<u32>().ok());
    let line = number(0).or_else(|| frame.getattr("f_lineno").ok()?.extract().ok())?;
    let text: String =
        py.import("linecache").ok()?.call_method1("getline", (&file, line)).ok()?.extract().ok()?;
    let text = text.trim_end().to_string();
    let column =
        |bytes: u32| text.get(..bytes as usize).map_or(1, |before| before.chars().count() as u32 + 1);
    let start = number(2).map_or_else(|| (text.len() - text.trim_start().len()) as u32 + 1, column);
    let end = match number(3) {
        Some(end) if number(1) == Some(line) => column(end),
        _ => text.chars().count() as u32 + 1,
    };
    // Code that came from no file (`python -c`, the prompt) has no text to show.
    let shown = (!text.is_empty()).then_some(text);
    Some(Span { file, line, column: start, end_column: end.max(start), text: shown })
}
