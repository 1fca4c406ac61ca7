//! What `tilewright.profiler` is made of: sessions, scopes and metrics, and the times of kernels that run on the host.

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use tilewright_profiler::{
    self as profiler, Backend, DeviceFacts, DeviceKind, Error, Format, Settings, Source, Value,
};

use crate::errors::DriverError;
use crate::kernel::CompiledKernel;
use crate::launch;

fn exception(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::Driver(_) | Error::NoCupti { .. } | Error::Cupti { .. } => DriverError::new_err(text),
        Error::Invalid(_) => PyRuntimeError::new_err(text),
        Error::Write { .. } => pyo3::exceptions::PyOSError::new_err(text),
    }
}

/// Runs a kernel of the host, and records how long that took if somebody wants to know.
#[inline]
pub fn timed(kernel: &CompiledKernel, run: impl FnOnce() -> PyResult<()>) -> PyResult<()> {
    if !profiler::active() {
        return run();
    }
    let start = profiler::host_time();
    run()?;
    let end = profiler::host_time();
    let (kind, arch) = match kernel.backend {
        launch::Backend::PtxSim(target) => (DeviceKind::Simulator, target.capability().to_string()),
        _ => (DeviceKind::Cpu, std::env::consts::ARCH.to_string()),
    };
    let num_sms = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    profiler::host_kernel(
        kernel.code.name(),
        kind,
        DeviceFacts { arch, num_sms, ..Default::default() },
        start,
        end,
    );
    Ok(())
}

/// The frames of the calling thread, the outermost first; those of the profiler itself are left out.
fn frames() -> Vec<String> {
    Python::try_attach(|py| walk(py).unwrap_or_default()).unwrap_or_default()
}

fn walk(py: Python<'_>) -> PyResult<Vec<String>> {
    let ours = py.import("tilewright.profiler._frames")?.getattr("FILES")?;
    // SAFETY: the interpreter is held; gives a borrowed reference, or null where no Python code runs.
    let frame = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) };
    let mut at = frame.filter(|frame| !frame.is_none());
    let mut names = Vec::new();
    while let Some(frame) = at {
        let code = frame.getattr("f_code")?;
        let file = code.getattr("co_filename")?;
        if !ours.contains(&file)? {
            let function = code.getattr("co_name")?;
            names.push(format!("{file}:{function}@{}", frame.getattr("f_lineno")?));
        }
        at = Some(frame.getattr("f_back")?).filter(|frame| !frame.is_none());
    }
    names.reverse();
    Ok(names)
}

/// The choice among a setting's names.
fn choose<T: Copy>(what: &str, name: &str, choices: &[(&str, T)]) -> PyResult<T> {
    let known = || choices.iter().map(|(name, _)| format!("{name:?}")).collect::<Vec<_>>().join(" or ");
    let found = choices.iter().find(|(choice, _)| choice.eq_ignore_ascii_case(name));
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| PyValueError::new_err(format!("Unknown {what}: {name}; it may be {}", known())))
}

/// Starts a session; `places` are the files that may be CUPTI, and `chosen` says that the user named them.
#[pyfunction]
fn profiler_start(
    py: Python<'_>,
    path: String,
    context: &str,
    data: &str,
    backend: &str,
    places: Vec<String>,
    chosen: bool,
) -> PyResult<u64> {
    let settings = Settings {
        path,
        source: choose("context source", context, &[("shadow", Source::Shadow), ("python", Source::Python)])?,
        format: choose("data", data, &[("tree", Format::Tree), ("trace", Format::Trace)])?,
        backend: choose("profiler", backend, &[("cupti", Backend::Cupti), ("host", Backend::Host)])?,
    };
    profiler::set_frames(frames);
    profiler::set_places(places, chosen);
    // The interpreter is released wherever the GPU is waited for: what keeps it busy may need the interpreter.
    py.detach(|| profiler::start(settings)).map_err(exception)
}

/// Has a session record again, or all.
#[pyfunction]
fn profiler_activate(py: Python<'_>, session: Option<u64>) -> PyResult<()> {
    py.detach(|| session.map_or_else(profiler::activate_all, profiler::activate)).map_err(exception)
}

/// Has a session record no more for now, or all.
#[pyfunction]
fn profiler_deactivate(py: Python<'_>, session: Option<u64>) -> PyResult<()> {
    py.detach(|| session.map_or_else(profiler::deactivate_all, profiler::deactivate)).map_err(exception)
}

/// Ends a session, or all; gives the files that were written.
#[pyfunction]
fn profiler_finalize(py: Python<'_>, session: Option<u64>, output_format: &str) -> PyResult<Vec<String>> {
    let finish = || match session {
        Some(session) => Ok(profiler::finalize(session, output_format)?.into_iter().collect()),
        None => profiler::finalize_all(output_format),
    };
    py.detach(finish).map_err(exception)
}

/// A number for a scope.
#[pyfunction]
fn profiler_record_scope() -> u64 {
    profiler::new_scope()
}

/// Enters a scope on this thread.
#[pyfunction]
fn profiler_enter_scope(id: u64, name: &str) {
    profiler::enter_scope(id, name);
}

/// Leaves a scope on this thread.
#[pyfunction]
fn profiler_exit_scope(id: u64) {
    profiler::exit_scope(id);
}

/// Announces a launch under a name.
#[pyfunction]
fn profiler_enter_op(id: u64, name: &str) {
    profiler::enter_op(id, name);
}

/// The announced launch has been made.
#[pyfunction]
fn profiler_exit_op(id: u64) {
    profiler::exit_op(id);
}

/// Puts a name behind every path of this thread, or none.
#[pyfunction]
#[pyo3(signature = (name))]
fn profiler_set_state(name: Option<&str>) {
    profiler::set_state(name);
}

/// Adds metrics to a scope.
#[pyfunction]
fn profiler_add_metrics(id: u64, metrics: &Bound<'_, PyDict>) -> PyResult<()> {
    let mut read = Vec::with_capacity(metrics.len());
    for (name, value) in metrics {
        let name: String = name.extract()?;
        let value = metric(&value).map_err(|_| {
            let ty = crate::args::type_name(&value);
            PyTypeError::new_err(format!("the metric {name:?} is {ty}; it must be a number or a text"))
        })?;
        read.push((name, value));
    }
    profiler::add_metrics(id, &read);
    Ok(())
}

/// A number of Python, NumPy or torch (of one element), or a text.
fn metric(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(text) = value.extract::<String>() {
        return Ok(Value::Text(text));
    }
    if value.hasattr("__index__")?
        && let Ok(whole) = value.extract::<i64>()
    {
        return Ok(Value::Int(whole));
    }
    value.extract::<f64>().map(Value::Float)
}

/// How long this thread's path is in a session.
#[pyfunction]
fn profiler_context_depth(session: u64) -> PyResult<usize> {
    profiler::context_depth(session).map_err(exception)
}

/// What CUPTI has said so far in this process, to find faults by.
#[pyfunction]
fn profiler_facts(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let facts = profiler::facts();
    let dict = PyDict::new(py);
    dict.set_item("library", facts.library)?;
    dict.set_item("version", facts.version)?;
    dict.set_item("launches", facts.launches)?;
    dict.set_item("kernels", facts.kernels)?;
    dict.set_item("strangers", facts.strangers)?;
    dict.set_item("untimed", facts.untimed)?;
    dict.set_item("dropped", facts.dropped)?;
    Ok(dict)
}

/// Adds this module's functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(profiler_start, m)?)?;
    m.add_function(wrap_pyfunction!(profiler_activate, m)?)?;
    m.add_function(wrap_pyfunction!(profiler_deactivate, m)?)?;
    m.add_function(wrap_pyfunction!(profiler_finalize, m)?)?;
    m.add_function(wrap_pyfunction!(profiler_record_scope, m)?)?;
    m.add_function(wrap_pyfunction!(profiler_enter_scope, m)?)?;
    m.add_function(wrap_pyfunction!(profiler_exit_scope, m)?)?;
    m.add_function(wrap_pyfunction!(profiler_enter_op, m)?)?;
    m.add_function(wrap_pyfunction!(profiler_exit_op, m)?)?;
    m.add_function(wrap_pyfunction!(profiler_set_state, m)?)?;
    m.add_function(wrap_pyfunction!(profiler_add_metrics, m)?)?;
    m.add_function(wrap_pyfunction!(profiler_context_depth, m)?)?;
    m.add_function(wrap_pyfunction!(profiler_facts, m)?)
}
