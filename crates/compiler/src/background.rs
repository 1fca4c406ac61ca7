//! Work that its caller waits for, but can leave.
//!
//! Behind the front end nothing asks the host any more, and some of it (LLVM) cannot be stopped. So it runs on a thread
//! that owns what it needs. The caller looks meanwhile whether the result is still wanted: if not it goes on at once,
//! and the work ends by itself where it next looks at its [`Stop`].

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use tilewright_frontend::{Diagnostic, DiagnosticKind, Host};
pub use tilewright_target::Stop;
use tilewright_target::interrupted;

/// How often the host is asked whether it still wants the result.
const TICK: Duration = Duration::from_millis(50);

/// How long work that is no longer wanted may take to end before it is left to itself.
const GRACE: Duration = Duration::from_millis(250);

/// Bytes of stack, for passes that walk deep nests. Only what is used is taken from memory.
pub const STACK: usize = 64 << 20;

/// Runs `work` on a thread of its own and waits for it.
///
/// # Errors
/// Those of `work`; [`DiagnosticKind::Interrupted`] where the host no longer wants the result.
pub fn run<T: Send + 'static>(
    host: &dyn Host,
    work: impl FnOnce(&Stop) -> Result<T, Diagnostic> + Send + 'static,
) -> Result<T, Diagnostic> {
    let stop = Stop::default();
    let (sender, receiver) = sync_channel(1);
    let stopped = stop.clone();
    let body = move || {
        let result = catch_unwind(AssertUnwindSafe(|| work(&stopped)));
        // Nobody listens any more where the caller has gone on.
        let _ = sender.send(result);
    };
    std::thread::Builder::new().name("tilewright-compile".into()).stack_size(STACK).spawn(body).map_err(
        |error| {
            Diagnostic::new(format!("cannot start a thread to compile on: {error}"))
                .of(DiagnosticKind::Environment)
        },
    )?;
    loop {
        match receiver.recv_timeout(TICK) {
            Ok(Ok(result)) => return result,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Diagnostic::new("the thread that compiled ended without a result")
                    .of(DiagnosticKind::Internal));
            }
            Err(RecvTimeoutError::Timeout) if host.interrupted() => {
                stop.store(true, Ordering::Relaxed);
                // What looks at the flag ends now, tools that run for it too.
                let _ = receiver.recv_timeout(GRACE);
                return Err(interrupted());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use tilewright_frontend::SourceHost;
    use tilewright_target::check;

    use super::*;

    fn host() -> SourceHost {
        SourceHost::new("empty.py", "").expect("is a module")
    }

    /// A host whose user has had enough.
    struct Impatient(SourceHost);

    impl Host for Impatient {
        fn lookup(
            &self,
            function: &Arc<tilewright_frontend::JitFunction>,
            name: &str,
        ) -> Result<Option<tilewright_frontend::Binding>, tilewright_frontend::HostError> {
            self.0.lookup(function, name)
        }

        fn attribute(
            &self,
            object: &tilewright_frontend::HostObject,
            name: &str,
        ) -> Result<Option<tilewright_frontend::HostValue>, tilewright_frontend::HostError> {
            self.0.attribute(object, name)
        }

        fn interrupted(&self) -> bool {
            true
        }
    }

    #[test]
    fn results_and_panics_come_back() {
        assert_eq!(run(&host(), |_| Ok(3)).ok(), Some(3));
        let error = run(&host(), |_| Err::<(), _>(Diagnostic::new("no"))).expect_err("fails");
        assert_eq!(error.message, "no");
        let panic = catch_unwind(AssertUnwindSafe(|| run(&host(), |_| -> Result<(), _> { panic!("oh") })));
        assert_eq!(panic.expect_err("panics").downcast_ref::<&str>(), Some(&"oh"));
    }

    #[test]
    fn deep_recursion_has_room() {
        fn depth(n: u64) -> u64 {
            let here = std::hint::black_box([n; 64]);
            if n == 0 { 0 } else { 1 + depth(n - 1) + here[63] - n }
        }
        assert_eq!(run(&host(), |_| Ok(depth(50_000))).ok(), Some(50_000));
    }

    #[test]
    fn work_that_is_not_wanted_is_stopped_or_left() {
        let impatient = Impatient(host());
        let ended = Arc::new(AtomicBool::new(false));
        let told = ended.clone();
        let error = run(&impatient, move |stop| {
            while check(stop).is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
            told.store(true, Ordering::Release);
            check(stop)
        });
        assert_eq!(error.expect_err("was interrupted").kind, DiagnosticKind::Interrupted);
        assert!(ended.load(Ordering::Acquire));
        // What looks at nothing is not waited for.
        let (_hold, held) = std::sync::mpsc::channel::<()>();
        let error = run(&impatient, move |_| held.recv().map_err(|_| Diagnostic::new("let go")));
        assert_eq!(error.expect_err("was interrupted").kind, DiagnosticKind::Interrupted);
    }
}
