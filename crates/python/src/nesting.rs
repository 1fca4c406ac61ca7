//! Bounds the recursion over what Python objects hold: tuples in tuples, a list in itself.

use std::ffi::CStr;
use std::marker::PhantomData;

use pyo3::prelude::*;

/// One level of recursion over Python objects. Python counts them, and raises `RecursionError` where its limit is reached.
pub struct Level<'py>(PhantomData<Python<'py>>);

impl<'py> Level<'py> {
    /// Goes one level down. `what` follows "maximum recursion depth exceeded", and begins with a space.
    ///
    /// # Errors
    /// `RecursionError`.
    pub fn enter(py: Python<'py>, what: &'static CStr) -> PyResult<Level<'py>> {
        // SAFETY: the interpreter is attached, and the text lives for ever.
        match unsafe { pyo3::ffi::Py_EnterRecursiveCall(what.as_ptr()) } {
            0 => Ok(Level(PhantomData)),
            _ => Err(PyErr::fetch(py)),
        }
    }
}

impl Drop for Level<'_> {
    fn drop(&mut self) {
        // SAFETY: pairs with the call that made this level; `'py` says that the interpreter is still attached.
        unsafe { pyo3::ffi::Py_LeaveRecursiveCall() };
    }
}
