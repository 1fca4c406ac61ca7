//! From the arguments of a call to a compiled kernel: the seam to the compiler.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyOverflowError, PyRuntimeWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyTuple};

use tilewright_compiler::background::{self, Stop};
use tilewright_compiler::cache::Cache;
use tilewright_compiler::{
    Artifact, CudaTarget, GivenStage, Interp, Pending, PythonEnvironment, Request, Target,
};
use tilewright_frontend::dtype::PointerType;
use tilewright_frontend::signature::{ArgSpec, ArgType, Signature};
use tilewright_frontend::{DType, Diagnostic, DiagnosticKind, HostValue};

use crate::args::{Arguments, Spec};
use crate::errors::{
    CompilationError, CompileTimeAssertionFailure, Optional, OutOfResources, UnsupportedLanguageConstruct,
    request_error,
};
use crate::host::PyHost;
use crate::jit::{JitBase, Prepared};
use crate::kernel::{Code, CompiledKernel};
use crate::launch::Backend;
use crate::params::{Bindings, Params};
use crate::wrong_call;

/// Compiles the kernel for what was found in a call. `given` is a stage's file where the call itself gives none.
#[cold]
pub fn compile(
    jit: &Bound<'_, JitBase>,
    prepared: &Prepared,
    bindings: &Bindings<'_, '_>,
    arguments: &Arguments,
    backend: Backend,
    given: Option<PathBuf>,
) -> PyResult<CompiledKernel> {
    let py = jit.py();
    let (work, rest) = begin(jit, prepared, bindings, arguments, backend, given)?;
    let (result, rest) = py.detach(move || {
        let result = background::run(&rest.host, move |stop| work.run(stop));
        (result, rest)
    });
    rest.finish(py, result)
}

/// What remains of a compilation behind the front end, and needs no interpreter.
pub struct Work {
    pending: Pending,
    backend: Backend,
}

impl Work {
    /// Reads the code from the cache or makes it, and makes it ready to run.
    pub fn run(self, stop: &Stop) -> Result<Code, Diagnostic> {
        let artifact = self.pending.finish(&Cache::from_environment(), stop)?;
        Code::prepare(artifact, self.backend)
    }
}

/// What a compiled kernel has besides its code.
pub struct Rest {
    host: PyHost,
    backend: Backend,
    params: Arc<Params>,
    specs: Vec<Spec>,
    kept: Py<PyDict>,
}

/// Runs the front end.
pub fn begin(
    jit: &Bound<'_, JitBase>,
    prepared: &Prepared,
    bindings: &Bindings<'_, '_>,
    arguments: &Arguments,
    backend: Backend,
    given: Option<PathBuf>,
) -> PyResult<(Work, Rest)> {
    let py = jit.py();
    let host = PyHost::default();
    let function = host.register(jit)?;
    let specs = arguments.specs.iter().zip(&bindings.values).zip(&prepared.params.params);
    let args = specs.map(|((spec, value), param)| {
        describe(&host, spec, value).map_err(|error| match error.is_instance_of::<PyOverflowError>(py) {
            true => wrong_call::overflow_error(
                format!("argument '{}': {}", param.name, error.value(py)),
                "an integer has at most 127 bits and a sign",
            ),
            false => error,
        })
    });
    let args = args.collect::<PyResult<_>>()?;
    let signature = Signature { args };
    let target = target_of(backend)?;
    let options = bindings.options.clone();
    let of_call = bindings.given.as_ref().map(|path| path.extract::<PathBuf>()).transpose()?;
    let given = of_call.or(given).map(|path| GivenStage::read(&path).map_err(|error| diagnostic(py, error)));
    let given = given.transpose()?;
    let name = name_of(jit, prepared, bindings, arguments)?;
    let python = python_environment(py)?;
    // The host moves along: one thread at a time uses it, and it enters the interpreter by itself.
    let (result, host) = py.detach(move || {
        let request = Request {
            host: &host,
            entry: &function,
            name,
            signature: &signature,
            options: &options,
            target: &*target,
            given,
            python,
        };
        (Pending::build(&request), host)
    });
    let constants = arguments.constants_dict(py, &bindings.values)?;
    // Weak: the function holds its kernels.
    let function = py.import("weakref")?.getattr("ref")?.call1((jit,))?;
    let kept = [("fn", function), ("constants", constants.into_any())].into_py_dict(py)?.unbind();
    let rest = Rest { host, backend, params: prepared.params.clone(), specs: arguments.specs.to_vec(), kept };
    match result {
        Ok(pending) => Ok((Work { pending, backend }, rest)),
        Err(error) => Err(rest.error(py, error)),
    }
}

impl Rest {
    /// The kernel of what [`Work::run`] gave.
    pub fn finish(self, py: Python<'_>, result: Result<Code, Diagnostic>) -> PyResult<CompiledKernel> {
        let code = result.map_err(|error| self.error(py, error))?;
        if let Some(exception) = self.host.take_exception() {
            return Err(exception);
        }
        if !code.artifact.printed.is_empty() {
            py.import("sys")?.getattr("stdout")?.call_method1("write", (&code.artifact.printed,))?;
        }
        warn_of_missing_tool(py, self.backend, &code.artifact)?;
        let Rest { host, backend, params, specs, kept } = self;
        Ok(CompiledKernel::new(code, backend, params, specs, host.into_captures(), kept))
    }

    /// What a signal's handler raised, or Python code that the kernel names, is no error of the kernel.
    fn error(&self, py: Python<'_>, error: Diagnostic) -> PyErr {
        self.host.take_exception().unwrap_or_else(|| diagnostic(py, error))
    }
}

/// What `@jit(repr=…)` calls this specialization: it gets the types and the constants by the parameters' names.
fn name_of(
    jit: &Bound<'_, JitBase>,
    prepared: &Prepared,
    bindings: &Bindings<'_, '_>,
    arguments: &Arguments,
) -> PyResult<Option<String>> {
    let py = jit.py();
    if jit.getattr_opt("_repr")?.is_none_or(|repr| repr.is_none()) {
        return Ok(None);
    }
    let (signature, constants) = (PyDict::new(py), PyDict::new(py));
    let params = &prepared.params.params;
    for (param, spec) in params.iter().zip(&arguments.specs) {
        signature.set_item(&param.name, spec.signature(py)?)?;
    }
    for (path, value) in arguments.constants(&bindings.values)? {
        if let [at] = path[..] {
            constants.set_item(&params[at].name, value)?;
        }
    }
    jit.call_method1("_name_of", (signature, constants))?.extract().map(Some)
}

/// An argument as the compiler gets it.
fn describe(host: &PyHost, spec: &Spec, value: &Bound<'_, PyAny>) -> PyResult<ArgSpec> {
    let promised = |spec: ArgSpec, divisor: u32| if divisor > 1 { spec.divisible_by(divisor) } else { spec };
    Ok(match spec {
        Spec::Constant => ArgSpec::constant(host.value(value)?),
        Spec::One => ArgSpec::constant(HostValue::Int(1)),
        Spec::Scalar { ty, divisor, .. } => promised(ArgSpec::value(*ty), *divisor),
        Spec::Pointer { pointer, constant, divisible } => {
            let ty = PointerType { element: pointer.element.into(), address_space: 1, constant: *constant };
            promised(ArgSpec::value(DType::Pointer(ty.into())), if *divisible { 16 } else { 1 })
        }
        Spec::Descriptor(descriptor) => {
            let (element, block) = (descriptor.pointer.element, descriptor.block.to_vec());
            let ty = ArgType::Descriptor { element, block, nan: descriptor.nan };
            promised(
                ArgSpec { ty, divisibility: None },
                if descriptor.divisible() { descriptor.piece() } else { 1 },
            )
        }
        Spec::Tuple(specs) => {
            let items = value.cast::<PyTuple>()?;
            let items = specs.iter().zip(items.iter()).map(|(spec, item)| describe(host, spec, &item));
            let items = items.collect::<PyResult<_>>()?;
            let class = value.get_type();
            let fields = class.getattr_opt("_fields")?.and_then(|f| f.extract::<Vec<String>>().ok());
            let ty = match fields {
                Some(fields) => {
                    let fields = fields.iter().map(|f| f.as_str().into()).collect();
                    ArgType::NamedTuple((class.name()?.to_string().into(), fields), items)
                }
                None => ArgType::Tuple(items),
            };
            ArgSpec { ty, divisibility: None }
        }
    })
}

/// The targets whose simulators there are.
const ASCEND: &str = "ascend:910b";
const INTEL: &str = "xe:pvc";

/// What the compiler calls the place where a kernel runs.
fn target_of(backend: Backend) -> PyResult<Box<dyn Target>> {
    Ok(match backend {
        Backend::Interp => Box::new(Interp),
        Backend::NpuSim | Backend::XeSim => {
            let name = if backend == Backend::NpuSim { ASCEND } else { INTEL };
            tilewright_compiler::target(name).map_err(|error| CompilationError::new_err(error.to_string()))?
        }
        Backend::PtxSim(target) | Backend::Offline(target) => Box::new(target),
        Backend::Cuda(device) => {
            let device = tilewright_runtime::Device::get(device).map_err(crate::errors::from_runtime)?;
            Box::new(device_target(device)?)
        }
    })
}

/// What to compile for on a GPU.
pub fn device_target(device: &tilewright_runtime::Device) -> PyResult<CudaTarget> {
    let (major, minor) = device.properties().compute_capability;
    CudaTarget::for_device(10 * major + minor).ok_or_else(|| {
        CompilationError::new_err(format!(
            "not supported yet: GPUs of compute capability {major}.{minor}; there are {}",
            CudaTarget::names()
        ))
    })
}

/// The interpreter's environment, where tools such as `ptxas` may be installed.
///
/// The interpreter says where that is: its own path does not, since `python` in an environment is mostly a link.
pub fn python_environment(py: Python<'_>) -> PyResult<PythonEnvironment> {
    let beside_us = || -> PyResult<Option<PathBuf>> {
        let file: PathBuf = py.import("tilewright")?.getattr("__file__")?.extract()?;
        Ok(file.ancestors().nth(2).map(Path::to_path_buf))
    };
    // An interpreter that is part of another program may have no `site`.
    let of_user = || -> PyResult<Option<PathBuf>> {
        let site = py.import("site")?;
        match site.getattr("ENABLE_USER_SITE")?.is_truthy()? {
            true => site.call_method0("getusersitepackages")?.extract().map(Some),
            false => Ok(None),
        }
    };
    let of_all =
        || -> PyResult<Vec<PathBuf>> { py.import("site")?.call_method0("getsitepackages")?.extract() };
    let prefix = || -> PyResult<PathBuf> { py.import("sys")?.getattr("prefix")?.extract() };
    let mut site_packages: Vec<PathBuf> = Vec::new();
    site_packages.extend(beside_us().optional(py)?.flatten());
    site_packages.extend(of_user().optional(py)?.flatten());
    site_packages.extend(of_all().optional(py)?.unwrap_or_default());
    Ok(PythonEnvironment { site_packages, prefix: prefix().optional(py)? })
}

/// What kernels for a target (`interp`, `cuda:90`) are made with, by name: what a result that depends on it is kept under.
#[pyfunction]
pub fn made_with(py: Python<'_>, target: &str) -> PyResult<Vec<(&'static str, String)>> {
    let python = python_environment(py)?;
    let found = tilewright_compiler::target(target)
        .and_then(|target| tilewright_compiler::made_with(&*target, &python));
    found.map_err(|error| diagnostic(py, error))
}

/// Says once, where a GPU was asked for, that there is no `ptxas`; not where none is wanted.
fn warn_of_missing_tool(py: Python<'_>, backend: Backend, artifact: &Artifact) -> PyResult<()> {
    static WARNED: AtomicBool = AtomicBool::new(false);
    let missing = artifact.missing.as_ref().filter(|missing| !missing.wanted);
    let (Backend::Cuda(_) | Backend::Offline(_), Some(missing)) = (backend, missing) else { return Ok(()) };
    if WARNED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    let text = format!(
        "kernels have no cubin, and the driver has to compile their PTX when they are loaded: {}",
        missing.why
    );
    py.import("warnings")?.call_method1("warn", (text, py.get_type::<PyRuntimeWarning>())).map(|_| ())
}

/// A line of a program's source without what is blank at its end, if Python's line cache has it.
pub fn source_line(py: Python<'_>, file: &str, line: u32) -> PyResult<Option<String>> {
    let text =
        || -> PyResult<String> { py.import("linecache")?.call_method1("getline", (file, line))?.extract() };
    Ok(text().optional(py)?.map(|text| text.trim_end().to_string()))
}

/// An error of the compiler as an exception. The passes know places but no text: Python's line cache, which knows
/// notebook cells too, has it.
fn diagnostic(py: Python<'_>, diagnostic: Diagnostic) -> PyErr {
    let stop = RefCell::new(None);
    let line_of = |file: &str, line: u32| -> Option<String> {
        let text = source_line(py, file, line).unwrap_or_else(|error| {
            stop.borrow_mut().get_or_insert(error);
            None
        })?;
        (!text.is_empty()).then_some(text)
    };
    let diagnostic = diagnostic.with_source(line_of);
    if let Some(stop) = stop.into_inner() {
        return stop;
    }
    let error = exception(py, &diagnostic);
    error.set_cause(py, cause(py, diagnostic));
    error
}

/// An error of the compiler as the exception of its class.
fn exception(py: Python<'_>, diagnostic: &Diagnostic) -> PyErr {
    let text = diagnostic.to_string();
    let error = match diagnostic.kind {
        // Programs that try one configuration after another catch this one.
        DiagnosticKind::OutOfResources => OutOfResources::new_err(text.clone()),
        DiagnosticKind::Assertion => CompileTimeAssertionFailure::new_err(text.clone()),
        DiagnosticKind::Unsupported => UnsupportedLanguageConstruct::new_err(text.clone()),
        DiagnosticKind::Request => request_error(py, &text),
        _ => CompilationError::new_err(text.clone()),
    };
    // An exception without the attributes is one all the same.
    let _ = error.value(py).setattr("error_message", &diagnostic.message);
    let _ = error.value(py).setattr("message", text);
    error
}

/// What led to an error, as Triton has it: of one in a function that the kernel calls, the error there; of what a function of the
/// language refuses, its words alone.
fn cause(py: Python<'_>, mut diagnostic: Diagnostic) -> Option<PyErr> {
    if !diagnostic.callers.is_empty() {
        diagnostic.callers.clear();
        let error = exception(py, &diagnostic);
        error.set_cause(py, cause(py, diagnostic));
        return Some(error);
    }
    let refused = diagnostic.of_builtin
        && matches!(diagnostic.kind, DiagnosticKind::Kernel | DiagnosticKind::Unsupported);
    refused.then(|| PyValueError::new_err(diagnostic.message))
}
