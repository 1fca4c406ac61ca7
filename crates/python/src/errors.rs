//! The exceptions that Python sees. `str(exception)` holds everything there is to say.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

create_exception!(
    tilewright,
    TilewrightError,
    PyException,
    "The base of the errors that Tilewright raises for kernels; a wrong call raises TypeError or ValueError."
);
create_exception!(
    tilewright,
    CompilationError,
    TilewrightError,
    "A kernel does not compile. The text shows the file, the line with a caret, the types and a hint."
);
create_exception!(
    tilewright,
    CompileTimeAssertionFailure,
    CompilationError,
    "What a kernel demands at compile time, by tl.static_assert or assert, does not hold."
);
create_exception!(
    tilewright,
    UnsupportedLanguageConstruct,
    CompilationError,
    "A kernel has what Python has and the language has not, or not yet."
);
create_exception!(
    tilewright,
    OutOfResources,
    TilewrightError,
    "A kernel needs more shared memory, registers or threads than the GPU has."
);
create_exception!(
    tilewright,
    KernelError,
    TilewrightError,
    "A kernel did something wrong while it ran on the CPU: an access outside every argument, a failed assertion, …"
);
create_exception!(
    tilewright,
    DriverError,
    TilewrightError,
    "The CUDA driver is missing, or a call into it failed."
);

/// `RequestError`, for which there is no macro: it has two bases.
fn request_error_type(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static TYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let make = || -> PyResult<Py<PyType>> {
        let bases = (py.get_type::<CompilationError>(), py.get_type::<PyValueError>());
        let names = PyDict::new(py);
        names.set_item("__module__", "tilewright")?;
        names.set_item("__doc__", "An option or a target that cannot be, or not together.")?;
        let class = py.get_type::<PyType>().call1(("RequestError", bases, names))?;
        Ok(class.cast_into::<PyType>()?.unbind())
    };
    TYPE.get_or_try_init(py, make).map(|made| made.bind(py))
}

/// A [`Kind::Request`](tilewright_frontend::DiagnosticKind::Request) as an exception.
pub fn request_error(py: Python<'_>, text: &str) -> PyErr {
    match request_error_type(py) {
        Ok(class) => PyErr::from_type(class.clone(), text.to_string()),
        Err(error) => error,
    }
}

/// Adds the exception types to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = m.py();
    m.add("TilewrightError", py.get_type::<TilewrightError>())?;
    m.add("CompilationError", py.get_type::<CompilationError>())?;
    m.add("CompileTimeAssertionFailure", py.get_type::<CompileTimeAssertionFailure>())?;
    m.add("UnsupportedLanguageConstruct", py.get_type::<UnsupportedLanguageConstruct>())?;
    m.add("RequestError", request_error_type(py)?)?;
    m.add("OutOfResources", py.get_type::<OutOfResources>())?;
    m.add("KernelError", py.get_type::<KernelError>())?;
    m.add("DriverError", py.get_type::<DriverError>())
}

/// What Python code gave where it may fail: nothing if it raised an exception. One that is no error, as `KeyboardInterrupt`,
/// is the program's own, may come out of any Python code, and goes on.
pub trait Optional<T> {
    /// The value, nothing for an ordinary exception, or the exception that is none.
    fn optional(self, py: Python<'_>) -> PyResult<Option<T>>;
}

impl<T> Optional<T> for PyResult<T> {
    fn optional(self, py: Python<'_>) -> PyResult<Option<T>> {
        match self {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_instance_of::<PyException>(py) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A driver error as a Python exception.
pub fn from_runtime(error: tilewright_runtime::Error) -> PyErr {
    let text = error.to_string();
    match error {
        tilewright_runtime::Error::OutOfResources(_) => OutOfResources::new_err(text),
        _ if error.code() == Some(701) => OutOfResources::new_err(text),
        _ => DriverError::new_err(text),
    }
}
