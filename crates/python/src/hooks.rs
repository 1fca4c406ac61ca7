//! Calls into Python around each launch, for profilers: `tilewright.knobs.runtime.launch_enter_hook` and
//! `launch_exit_hook`; around the loading of code onto a GPU, and around each compilation. A launch without hooks looks at one flag.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::args::{Arguments, Spec, type_name};
use crate::grid::Grid;
use crate::jit::JitBase;
use crate::kernel::CompiledKernel;
use crate::launch::Place;
use crate::params::{Bindings, Given};
use crate::wrong_call;

static COMPILES_HOOKED: AtomicBool = AtomicBool::new(false);

/// Says whether compilations call `tilewright.compiler.hooks`.
#[pyfunction]
pub fn hook_compiles(on: bool) {
    COMPILES_HOOKED.store(on, Ordering::Relaxed);
}

/// Compiles between the hooks, if there are any; `None` when one says that nothing shall be compiled. What compiles gets the file
/// of a stage that takes the place of the one made, where `TRITON_KERNEL_OVERRIDE` found one.
#[cold]
pub fn around_compile(
    jit: &Bound<'_, JitBase>,
    bindings: &Bindings<'_, '_>,
    arguments: &Arguments,
    place: Place,
    compile: impl FnOnce(Option<PathBuf>) -> PyResult<Arc<Py<CompiledKernel>>>,
) -> PyResult<Option<Arc<Py<CompiledKernel>>>> {
    let py = jit.py();
    let replaced = jit.call_method0("_compiles_otherwise")?.is_truthy()?;
    if !replaced && !COMPILES_HOOKED.load(Ordering::Relaxed) {
        return compile(None).map(Some);
    }
    let hooks = py.import("tilewright.compiler.hooks")?;
    let signature = arguments.specs.iter().map(|s| s.signature(py)).collect::<PyResult<Vec<_>>>()?;
    let constants = arguments.constants_dict(py, &bindings.values)?;
    let divisors: Vec<u32> = arguments.specs.iter().map(Spec::divisor).collect();
    let options = crate::params::options_dict(py, &bindings.options)?;
    let told = (jit, signature, constants, divisors, options, place, place.warmup);
    let compilation = hooks.getattr("Compilation")?.call1(told)?;
    if replaced {
        // What it calls comes here again, without it.
        return kernel_of(&compilation.call_method0("by_function")?);
    }
    if compilation.call_method0("skipped")?.is_truthy()? {
        return Ok(None);
    }
    let kernel = compile(compilation.call_method0("override")?.extract()?)?;
    compilation.call_method1("done", (&*kernel,))?;
    Ok(Some(kernel))
}

/// What a function in the place of `JITFunction._do_compile` has given.
fn kernel_of(given: &Bound<'_, PyAny>) -> PyResult<Option<Arc<Py<CompiledKernel>>>> {
    if given.is_none() {
        return Ok(None);
    }
    let kernel = given.cast::<CompiledKernel>().map_err(|_| {
        wrong_call::type_error(
            format!("`_do_compile` gave {}, which is no compiled kernel", type_name(given)),
            "let the function in its place return what `JITFunction._do_compile` returns, or None",
        )
    })?;
    Ok(Some(Arc::new(kernel.clone().unbind())))
}

static LOADS_HOOKED: AtomicBool = AtomicBool::new(false);

/// Says whether the loading of code calls hooks.
#[pyfunction]
pub fn hook_loads(on: bool) {
    LOADS_HOOKED.store(on, Ordering::Relaxed);
}

/// Loads a kernel's code onto its GPU between the hooks (`kernel_load_start_hook`, `kernel_load_end_hook`), if there are any and it is not
/// there. Without hooks this does nothing: the launch loads the code.
#[inline]
pub fn around_load(kernel: &Bound<'_, CompiledKernel>) -> PyResult<()> {
    if !LOADS_HOOKED.load(Ordering::Relaxed) || !kernel.get().is_to_be_loaded() {
        return Ok(());
    }
    let runtime = kernel.py().import("tilewright.knobs")?.getattr("runtime")?;
    let tell = |hook: &str| -> PyResult<()> {
        let named = |name: &str| kernel.getattr(name);
        let (module, function) = (named("module")?, named("function")?);
        let told = (module, function, named("name")?, named("metadata_group")?, named("hash")?);
        runtime.getattr(hook)?.call1(told).map(|_| ())
    };
    tell("kernel_load_start_hook")?;
    kernel.get().on_gpu()?;
    tell("kernel_load_end_hook")
}

static HOOKED: AtomicBool = AtomicBool::new(false);

/// Says whether launches call hooks.
#[pyfunction]
pub fn hook_launches(on: bool) {
    HOOKED.store(on, Ordering::Relaxed);
}

/// Runs `launch` between the hooks, if there are any. The hook after it is called also when the launch fails: profilers keep a
/// stack of what they entered.
#[inline]
pub fn around<'py>(
    py: Python<'py>,
    jit: Option<&Bound<'py, JitBase>>,
    kernel: &CompiledKernel,
    grid: Grid,
    values: &[Given<'_, 'py>],
    launch: impl FnOnce() -> PyResult<()>,
) -> PyResult<()> {
    if !HOOKED.load(Ordering::Relaxed) {
        return launch();
    }
    let knobs = py.import("tilewright.knobs")?;
    let metadata = describe(&knobs, jit, kernel, grid, values)?;
    let runtime = knobs.getattr("runtime")?;
    runtime.getattr("launch_enter_hook")?.call1((&metadata,))?;
    let launched = launch();
    let left = runtime.getattr("launch_exit_hook")?.call1((&metadata,)).map(|_| ());
    launched.and(left)
}

/// What a hook gets.
#[cold]
fn describe<'py>(
    knobs: &Bound<'py, PyModule>,
    jit: Option<&Bound<'py, JitBase>>,
    kernel: &CompiledKernel,
    grid: Grid,
    values: &[Given<'_, 'py>],
) -> PyResult<Bound<'py, PyAny>> {
    let py = knobs.py();
    let arguments = PyDict::new(py);
    for (param, value) in kernel.params.params.iter().zip(values) {
        arguments.set_item(&param.text, value)?;
    }
    let more = jit.map(|jit| jit.getattr("launch_metadata")).transpose()?;
    let stream = kernel.stream(py)?;
    knobs.getattr("LaunchMetadata")?.call1((
        kernel.code.name(),
        stream,
        more,
        (grid[0], grid[1], grid[2]),
        kernel.metadata(py)?,
        arguments,
    ))
}
