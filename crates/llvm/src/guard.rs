//! What keeps an error inside LLVM from ending the process.
//!
//! LLVM answers what it can't compile in three ways:
//!
//! - It reports a *diagnostic* to the context and goes on; where nobody listens, it calls `exit`. [`Diagnostics`] listens.
//! - It calls its *fatal error* handler, which may not return (LLVM would abort) and may not unwind (its frames are
//!   compiled without exceptions). So [`on_own_thread`] runs LLVM on a thread of its own, and the handler hands the message
//!   to the thread that waits and then stops for good. That thread's stack and LLVM context are never freed. LLVM holds no lock
//!   while it calls the handler, and no other compile shares its context, so the others go on.
//! - It relies on something that isn't so, which is undefined. Against this only checks before LLVM sees the module help: the
//!   lowering makes well-formed modules, and checks the only text that comes from users, inline assembly.

use std::any::Any;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;

use inkwell::llvm_sys::LLVMDiagnosticSeverity::LLVMDSError;
use inkwell::llvm_sys::core::{
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription, LLVMGetDiagInfoSeverity,
};
use inkwell::llvm_sys::error_handling::LLVMInstallFatalErrorHandler;
use inkwell::llvm_sys::prelude::{LLVMContextRef, LLVMDiagnosticInfoRef};

/// The stack of a thread that runs LLVM, whose passes recurse over what is nested. Only touched pages count.
const STACK_BYTES: usize = 64 << 20;

/// Takes the message of a fatal error.
type Report = Box<dyn Fn(String)>;

thread_local! {
    /// Where a fatal error of this thread is told; empty on threads that are not ours.
    static FATAL: Cell<Option<Report>> = const { Cell::new(None) };
}

/// How a thread that ran LLVM ended.
enum Outcome<T> {
    Done(Result<T, Box<dyn Any + Send>>),
    Fatal(String),
}

/// Runs `work` on a thread of its own and returns its result, or the message of LLVM's fatal error.
///
/// # Panics
/// As `work` does.
pub(crate) fn on_own_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    static INSTALL: Once = Once::new();
    // SAFETY: the handler is a function, valid for ever, and is installed once.
    INSTALL.call_once(|| unsafe { LLVMInstallFatalErrorHandler(Some(fatal)) });
    let (sender, receiver) = sync_channel(1);
    let run = move || {
        let report: SyncSender<Outcome<T>> = sender.clone();
        FATAL.set(Some(Box::new(move |message| drop(report.send(Outcome::Fatal(message))))));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        FATAL.set(None);
        // The waiting thread is there until it has received.
        let _ = sender.send(Outcome::Done(result));
    };
    start(Box::new(run))?;
    match receiver.recv() {
        Ok(Outcome::Done(Ok(value))) => Ok(value),
        Ok(Outcome::Done(Err(panic))) => std::panic::resume_unwind(panic),
        Ok(Outcome::Fatal(message)) => Err(message),
        Err(_) => Err("the thread that ran LLVM ended without a word".into()),
    }
}

/// What a thread runs.
type Job = Box<dyn FnOnce() + Send>;

/// A thread that has run LLVM and waits for more: its stack is there already.
struct Idle {
    /// The process that it is in: a forked one has none of its parent's threads.
    process: u32,
    jobs: SyncSender<Job>,
}

/// The threads that wait. One that LLVM stopped for good never comes back.
static IDLE: Mutex<Vec<Idle>> = Mutex::new(Vec::new());

fn idle() -> MutexGuard<'static, Vec<Idle>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has a thread that waits run a job, or a new one.
fn start(mut job: Job) -> Result<(), String> {
    let process = std::process::id();
    loop {
        let Some(thread) = idle().pop() else { break };
        if thread.process != process {
            continue;
        }
        match thread.jobs.send(job) {
            Ok(()) => return Ok(()),
            Err(unsent) => job = unsent.0,
        }
    }
    let (jobs, next) = sync_channel::<Job>(1);
    let run = move || {
        job();
        loop {
            idle().push(Idle { process, jobs: jobs.clone() });
            let Ok(job) = next.recv() else { return };
            job();
        }
    };
    let thread = thread::Builder::new().name("llvm".into()).stack_size(STACK_BYTES).spawn(run);
    thread.map(drop).map_err(|e| format!("no thread for LLVM can be started: {e}"))
}

/// LLVM's fatal error handler.
extern "C" fn fatal(reason: *const c_char) {
    // On a thread that isn't ours LLVM goes on to do what it would have done.
    let Some(report) = FATAL.take() else { return };
    let message = match reason.is_null() {
        true => "an error without a message".into(),
        // SAFETY: LLVM passes a nul-terminated string that lives during the call.
        false => unsafe { CStr::from_ptr(reason) }.to_string_lossy().into_owned(),
    };
    report(message);
    loop {
        thread::park();
    }
}

/// The errors that LLVM reports to a context.
#[derive(Default)]
pub(crate) struct Diagnostics {
    errors: Mutex<Vec<String>>,
}

impl Diagnostics {
    /// Listens to a context, in place of whoever did before.
    ///
    /// # Safety
    /// The context is alive, and reports nothing once `self` is dropped or moved.
    pub unsafe fn listen(&self, context: LLVMContextRef) {
        let this: *const Diagnostics = self;
        // SAFETY: by the caller's promise `this` is valid whenever the context calls the handler.
        unsafe { LLVMContextSetDiagnosticHandler(context, Some(collect), this.cast_mut().cast()) };
    }

    /// The errors so far, one a line; none if there are none.
    pub fn take(&self) -> Option<String> {
        let mut errors = self.errors.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        (!errors.is_empty()).then(|| std::mem::take(&mut *errors).join("\n"))
    }
}

extern "C" fn collect(info: LLVMDiagnosticInfoRef, diagnostics: *mut c_void) {
    // SAFETY: LLVM passes a live diagnostic, and with it the pointer given to `listen`, which outlives the context's use. The
    // description is a nul-terminated string of ours to dispose of.
    unsafe {
        if LLVMGetDiagInfoSeverity(info) != LLVMDSError {
            return;
        }
        let text = LLVMGetDiagInfoDescription(info);
        let message = CStr::from_ptr(text).to_string_lossy().into_owned();
        LLVMDisposeMessage(text);
        let diagnostics = &*diagnostics.cast::<Diagnostics>();
        diagnostics.errors.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(message);
    }
}
