//! From the arguments of a call to a compiled kernel: the seam to the compiler.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use tilewright_frontend::Diagnostic;

use crate::args::{Arguments, Spec};
use crate::errors::CompilationError;
use crate::host::PyHost;
use crate::jit::{JitBase, Prepared};
use crate::kernel::{Artifact, CompiledKernel};
use crate::launch::Backend;
use crate::params::{Bindings, Options};

/// One argument as the compiler gets it.
#[derive(Debug, Clone)]
pub enum Argument {
    /// A value that is compiled in.
    Constant(tilewright_frontend::HostValue),
    /// A number or pointer given at run time: the type's signature name (`i32`, `*fp16`, `*kfp16`) and whether it is
    /// known to be a multiple of 16.
    Runtime { ty: String, divisible_by_16: bool },
    /// A tuple of arguments.
    Tuple(Vec<Argument>),
}

/// What the compiler is asked for.
pub struct Request<'a> {
    pub function: std::sync::Arc<tilewright_frontend::JitFunction>,
    pub host: PyHost,
    pub arguments: Vec<(String, Argument)>,
    pub options: &'a Options,
    pub backend: Backend,
}

/// Compiles the kernel for what was found in a call.
#[cold]
pub fn compile(
    jit: &Bound<'_, JitBase>,
    prepared: &Prepared,
    bindings: &Bindings<'_>,
    arguments: &Arguments,
    backend: Backend,
) -> PyResult<CompiledKernel> {
    let py = jit.py();
    let host = PyHost::default();
    let function = host.register(py, jit)?;
    let mut described = Vec::with_capacity(arguments.specs.len());
    for ((param, value), spec) in prepared.params.params.iter().zip(&bindings.values).zip(&arguments.specs) {
        described.push((param.text.clone(), describe(&host, spec, value)?));
    }
    let request = Request { function, host, arguments: described, options: &bindings.options, backend };
    // The host moves with the request: one thread at a time uses it, and it enters the interpreter by itself.
    let (result, host) = py.detach(move || (run(&request), request.host));
    let artifact = result.map_err(|error| match error {
        Failure::Diagnostic(diagnostic) => CompilationError::new_err(format!("{diagnostic}")),
        Failure::Other(text) => PyValueError::new_err(text),
    })?;
    Ok(CompiledKernel::new(
        artifact,
        backend,
        prepared.params.clone(),
        arguments.specs.to_vec(),
        bindings.options.clone(),
        host.into_captured(),
    ))
}

fn describe(host: &PyHost, spec: &Spec, value: &Bound<'_, PyAny>) -> PyResult<Argument> {
    Ok(match spec {
        Spec::Constant => Argument::Constant(host.value(value)?),
        Spec::One => Argument::Constant(tilewright_frontend::HostValue::Int(1)),
        Spec::Scalar { ty, divisible, .. } => {
            Argument::Runtime { ty: ty.signature_name().to_string(), divisible_by_16: *divisible }
        }
        Spec::Pointer { pointer, constant, divisible } => Argument::Runtime {
            ty: format!("*{}{}", if *constant { "k" } else { "" }, pointer.element.signature_name()),
            divisible_by_16: *divisible,
        },
        Spec::Tuple(specs) => {
            let items = value.cast::<pyo3::types::PyTuple>()?;
            let described = specs.iter().zip(items.iter()).map(|(s, item)| describe(host, s, &item));
            Argument::Tuple(described.collect::<PyResult<_>>()?)
        }
    })
}

/// Why there is no artifact.
pub enum Failure {
    Diagnostic(Box<Diagnostic>),
    Other(String),
}

fn run(_request: &Request<'_>) -> Result<Artifact, Failure> {
    Err(Failure::Other("not supported yet: compiling from Python".to_string()))
}

/// Runs a kernel on memory of this process: in the CPU executor, in the simulator, or on a GPU by way of copies.
pub fn start_on_host<'py>(
    _py: Python<'py>,
    kernel: &CompiledKernel,
    _grid: crate::grid::Grid,
    _arguments: &Arguments,
    _values: &[Bound<'py, PyAny>],
) -> PyResult<()> {
    Err(PyValueError::new_err(format!("not supported yet: running on {}", kernel.backend.describe())))
}
