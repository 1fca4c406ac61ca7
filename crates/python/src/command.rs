//! The `tilewright` command for the package's console script.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilewright_cli::{Environment, Interpreter};
use tilewright_frontend::{Diagnostic, Host, JitFunction};

use crate::host::PyHost;
use crate::jit::JitBase;

/// The interpreter that the command runs in.
struct Running;

impl Interpreter for Running {
    fn open(&self, file: &Path, kernel: &str) -> Result<(Box<dyn Host>, Arc<JitFunction>), Diagnostic> {
        let opened = Python::attach(|py| -> PyResult<(Box<dyn Host>, Arc<JitFunction>)> {
            let found = imported(py, file)?.getattr(kernel)?;
            // Autotuners and heuristics are around the function.
            let mut jit = found;
            while !jit.is_instance_of::<JitBase>() {
                jit = jit.getattr("fn")?;
            }
            let host = PyHost::default();
            let entry = host.register(jit.cast::<JitBase>()?)?;
            Ok((Box::new(host), entry))
        });
        opened.map_err(|error| {
            let text = Python::attach(|py| match error.traceback(py).map(|t| t.format()) {
                Some(Ok(traceback)) => format!("{}{error}", traceback),
                _ => error.to_string(),
            });
            Diagnostic::new(format!("{} cannot be imported", file.display())).note(text)
        })
    }
}

/// A file as a module, as `python FILE` sees it: what lies beside it can be imported.
fn imported<'py>(py: Python<'py>, file: &Path) -> PyResult<Bound<'py, PyAny>> {
    let util = py.import("importlib.util")?;
    let folder = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let sys = py.import("sys")?;
    sys.getattr("path")?.call_method1("insert", (0, folder.canonicalize()?))?;
    let stem = file.file_stem().unwrap_or_default();
    let spec = util.call_method1("spec_from_file_location", (stem, file.canonicalize()?))?;
    let module = util.call_method1("module_from_spec", (&spec,))?;
    sys.getattr("modules")?.cast::<PyDict>()?.set_item(stem, &module)?;
    spec.getattr("loader")?.call_method1("exec_module", (&module,))?;
    Ok(module)
}

/// Runs the `tilewright` command with `sys.argv` and gives its exit status.
#[pyfunction]
pub fn command(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<u8> {
    let environment =
        Environment { python: crate::compile::python_environment(py)?, interpreter: Some(&Running) };
    Ok(py.detach(|| tilewright_cli::main(arguments, &environment)))
}
