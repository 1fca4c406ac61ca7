//! Long work that Ctrl-C ends.
//!
//! A signal only sets a flag in the interpreter; Python runs its handler, which mostly raises `KeyboardInterrupt`, when it
//! next executes Python code, on the main thread. While we work nobody does, so the flag has to be looked at.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyo3::prelude::*;

/// How often signals are looked for.
pub const TICK: Duration = Duration::from_millis(50);

/// Bytes of stack of the thread that works. Only what is used is taken from memory.
const STACK: usize = 64 << 20;

/// Runs `work` on a thread of its own, without the interpreter. A signal whose handler raises sets `interrupt`, at which the
/// work must end soon; its exception is the result then, whatever the work gives.
pub fn watched<T: Send>(
    py: Python<'_>,
    interrupt: &AtomicBool,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let done = AtomicBool::new(false);
    let mut signal = None;
    let result = py.detach(|| {
        std::thread::scope(|scope| {
            let wake = Wake { waiting: std::thread::current(), done: &done };
            let worker = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || {
                // Dropped also when the work panics: the one who waits must wake up.
                let _wake = wake;
                work()
            })?;
            while !done.load(Ordering::Acquire) {
                std::thread::park_timeout(TICK);
                if signal.is_none()
                    && let Err(error) = Python::attach(|py| py.check_signals())
                {
                    signal = Some(error);
                    interrupt.store(true, Ordering::Relaxed);
                }
            }
            Ok::<_, std::io::Error>(worker.join())
        })
    });
    match (signal, result?) {
        (Some(signal), _) => Err(signal),
        (None, Ok(value)) => Ok(value),
        (None, Err(panic)) => std::panic::resume_unwind(panic),
    }
}

/// Says that the work is done, and wakes who waits for it, when dropped.
struct Wake<'a> {
    waiting: std::thread::Thread,
    done: &'a AtomicBool,
}

impl Drop for Wake<'_> {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Release);
        self.waiting.unpark();
    }
}
