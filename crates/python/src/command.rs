//! The `tilewright` command for the package's console script.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the `tilewright` command with `sys.argv` and gives its exit status.
#[pyfunction]
pub fn command(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<u8> {
    let python = crate::compile::python_environment(py)?;
    Ok(py.detach(|| tilewright_cli::main(arguments, &python)))
}
