//! Calls into Python around each launch, for profilers: `tilewright.knobs.runtime.launch_enter_hook` and
//! `launch_exit_hook`. A launch without hooks looks at one flag.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::grid::Grid;
use crate::jit::JitBase;
use crate::kernel::CompiledKernel;

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
        grid,
        kernel.metadata(py)?,
        arguments,
    ))
}
