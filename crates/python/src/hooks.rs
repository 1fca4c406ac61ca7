//! Calls into Python around each launch, for profilers: `tilewright.knobs.runtime.launch_enter_hook` and
//! `launch_exit_hook`; and around each compilation. A launch without hooks looks at one flag.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

use crate::args::{Arguments, Spec};
use crate::grid::Grid;
use crate::jit::JitBase;
use crate::kernel::CompiledKernel;
use crate::launch::Backend;
use crate::params::Bindings;

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
    bindings: &Bindings<'_>,
    arguments: &Arguments,
    backend: Backend,
    warmup: bool,
    compile: impl FnOnce(Option<PathBuf>) -> PyResult<Arc<Py<CompiledKernel>>>,
) -> PyResult<Option<Arc<Py<CompiledKernel>>>> {
    if !COMPILES_HOOKED.load(Ordering::Relaxed) {
        return compile(None).map(Some);
    }
    let py = jit.py();
    let hooks = py.import("tilewright.compiler.hooks")?;
    let signature = arguments.specs.iter().map(|s| s.signature(py)).collect::<PyResult<Vec<_>>>()?;
    let constants = arguments.constants(&bindings.values)?.into_py_dict(py)?;
    let divisors: Vec<u32> = arguments.specs.iter().map(Spec::divisor).collect();
    let options = crate::params::options_dict(py, &bindings.options)?;
    let compilation = hooks.getattr("Compilation")?.call1((
        jit,
        signature,
        constants,
        divisors,
        options,
        backend.describe(),
        warmup,
    ))?;
    if compilation.call_method0("skipped")?.is_truthy()? {
        return Ok(None);
    }
    let kernel = compile(compilation.call_method0("override")?.extract()?)?;
    compilation.call_method1("done", (&*kernel,))?;
    Ok(Some(kernel))
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
    values: &[Bound<'py, PyAny>],
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
    values: &[Bound<'py, PyAny>],
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
