//! Kernels that are compiled side by side, ahead of the launches that need them: `tilewright.autotune` knows all of its
//! configurations before the first one runs.
//!
//! The front end asks Python, so it runs where a compilation begins, under the interpreter's lock. The rest runs on threads that
//! never enter the interpreter: they neither wait for Python code that launches and measures meanwhile, nor hold it up.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rayon::{ThreadPool, ThreadPoolBuilder};

use tilewright_compiler::background::{STACK, Stop};
use tilewright_frontend::Diagnostic;

use crate::compile::Rest;
use crate::interrupt::TICK;
use crate::jit::JitBase;
use crate::kernel::Code;
use crate::key::Key;
use crate::launch;

/// Threads that compile. What nobody waits for any more is left when this is dropped.
#[pyclass(frozen, module = "tilewright._tilewright")]
pub struct CompileAhead {
    pool: ThreadPool,
    stop: Stop,
}

#[pymethods]
impl CompileAhead {
    #[new]
    fn new(threads: usize) -> PyResult<Self> {
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .stack_size(STACK)
            .thread_name(|_| "tilewright-ahead".into())
            .build()
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(CompileAhead { pool, stop: Stop::default() })
    }

    /// Runs the front end for a call, and the rest once a thread is free; `None` where the kernel is compiled already.
    fn begin(
        &self,
        jit: &Bound<'_, JitBase>,
        warmup: bool,
        args: &Bound<'_, PyTuple>,
        kwargs: &Bound<'_, PyDict>,
    ) -> PyResult<Option<KernelAhead>> {
        let Some((key, work, rest)) = launch::begin(jit, warmup, args, kwargs)? else { return Ok(None) };
        let (sender, result) = sync_channel(1);
        let stop = self.stop.clone();
        self.pool.spawn_fifo(move || {
            let result = catch_unwind(AssertUnwindSafe(|| work.run(&stop)));
            // Nobody may be listening any more.
            let _ = sender.send(result);
        });
        let under_way = UnderWay { jit: jit.clone().unbind(), key, result, rest };
        Ok(Some(KernelAhead { under_way: Mutex::new(Some(under_way)) }))
    }

    /// Has everything that is not finished end without a result.
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Drop for CompileAhead {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A kernel that is being compiled.
#[pyclass(frozen, module = "tilewright._tilewright")]
pub struct KernelAhead {
    under_way: Mutex<Option<UnderWay>>,
}

struct UnderWay {
    jit: Py<JitBase>,
    key: Key,
    result: Receiver<thread::Result<Result<Code, Diagnostic>>>,
    rest: Rest,
}

#[pymethods]
impl KernelAhead {
    /// Waits for the kernel, with which launches go from then on; raises what compiling it raised.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let Some(under_way) = self.under_way.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        let UnderWay { jit, key, mut result, rest } = under_way;
        let found = loop {
            let (found, back) = py.detach(move || (result.recv_timeout(TICK), result));
            match found {
                Ok(found) => break found,
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err("the thread that compiled ended without a result"));
                }
            }
            result = back;
        };
        let found = found.map_err(|panic| launch::of_panic(&*panic))?;
        let kernel = rest.finish(py, found)?;
        jit.get().keep(key, Arc::new(Py::new(py, kernel)?));
        Ok(())
    }
}

/// How many threads of this process can run at once.
#[pyfunction]
pub fn available_parallelism() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
