//! Runs a target's tools: stopped with the work that they are for, bounded in time, and never left behind.

use std::fmt;
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// How long a tool may run. Nothing that fits a GPU takes minutes: what does grows with the square of the code's size.
pub const TIME_LIMIT: Duration = Duration::from_secs(600);

/// How often a running tool's surroundings are looked at.
const TICK: Duration = Duration::from_millis(50);

/// What a tool said and how it ended.
#[derive(Debug)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// Why a tool has no result.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It could not be started.
    #[error("cannot run `{program}`: {source}")]
    Start {
        /// The program.
        program: String,
        /// The system's reason.
        source: io::Error,
    },
    /// There is nowhere to put files.
    #[error(transparent)]
    Temporary(#[from] TemporaryError),
    /// The result is no longer wanted.
    #[error("`{0}` was stopped")]
    Stopped(String),
    /// It ran for too long.
    #[error("`{program}` was stopped after {} seconds", limit.as_secs())]
    TooLong {
        /// The program.
        program: String,
        /// The limit.
        limit: Duration,
    },
    /// A signal that was not ours ended it.
    #[error("`{program}` was killed by signal {signal}{}", if *signal == 9 { ", as when memory runs out" } else { "" })]
    Killed {
        /// The program.
        program: String,
        /// The signal.
        signal: i32,
    },
}

/// The folder for temporary files cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to the folder for temporary files, {}: {source}\nhint: TMPDIR chooses that folder", folder.display())]
pub struct TemporaryError {
    folder: PathBuf,
    source: io::Error,
}

impl TemporaryError {
    /// What the system said of a temporary file.
    pub fn new(source: io::Error) -> TemporaryError {
        TemporaryError { folder: std::env::temp_dir(), source }
    }
}

/// Makes a folder that goes when it is dropped.
pub fn temporary_folder() -> Result<tempfile::TempDir, TemporaryError> {
    tempfile::Builder::new().prefix("tilewright-").tempdir().map_err(TemporaryError::new)
}

/// Runs a tool to its end. It is killed when `stop` is set, when it runs for longer than `limit`, and when our process dies.
pub fn run(command: &mut Command, stop: &AtomicBool, limit: Duration) -> Result<Output, Failure> {
    let program = command.get_program().display().to_string();
    // Files, not pipes: nobody has to read while it runs, and what it leaves running cannot hold them open against us.
    let file = || tempfile::tempfile().map_err(TemporaryError::new);
    let shared = |file: &std::fs::File| file.try_clone().map_err(TemporaryError::new);
    let (mut stdout, mut stderr) = (file()?, file()?);
    let lifeline = Lifeline::new()?;
    command.stdin(lifeline.end()?).stdout(shared(&stdout)?).stderr(shared(&stderr)?);
    let child = command.spawn().map_err(|source| Failure::Start { program: program.clone(), source })?;
    let mut running = Running(child);
    lifeline.hold(&running);
    // Where memory runs out, the tool should go, not the program that wants to know what it says. Best effort.
    let _ = std::fs::write(format!("/proc/{}/oom_score_adj", running.0.id()), "1000");
    let status = running.wait(&program, stop, limit)?;
    if let Some(signal) = status.signal() {
        return Err(Failure::Killed { program, signal });
    }
    let text = |file: &mut std::fs::File| {
        let mut bytes = Vec::new();
        file.rewind().and_then(|()| file.read_to_end(&mut bytes)).map_err(TemporaryError::new)?;
        Ok::<_, TemporaryError>(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(Output { status, stdout: text(&mut stdout)?, stderr: text(&mut stderr)? })
}

/// What ends a tool when our process does: its standard input is a pipe with nothing in it, whose hanging up is a signal to the tool.
///
/// A parent's death can be made a signal by the child itself, too (`PR_SET_PDEATHSIG`), between fork and exec. But then the standard library has to
/// copy our page tables, and each page that the compiler writes to is a fault afterwards: a sixth of a small kernel's compile time, and more in a
/// process with much memory.
struct Lifeline {
    theirs: OwnedFd,
    _ours: OwnedFd,
}

impl Lifeline {
    fn new() -> Result<Lifeline, TemporaryError> {
        let (theirs, ours) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|error| TemporaryError::new(error.into()))?;
        Ok(Lifeline { theirs, _ours: ours })
    }

    /// The tool's end.
    fn end(&self) -> Result<OwnedFd, TemporaryError> {
        self.theirs.try_clone().map_err(TemporaryError::new)
    }

    /// From now on the tool dies with us; one that was started an instant before we are killed may run to its end.
    fn hold(&self, tool: &Running) {
        let pipe = self.theirs.as_raw_fd();
        let Ok(pid) = libc::c_int::try_from(tool.0.id()) else { return };
        // SAFETY: the pipe is open, and these commands take a number each: who is told of it, how, and that it is to be told.
        unsafe {
            libc::fcntl(pipe, libc::F_SETOWN, pid);
            libc::fcntl(pipe, F_SETSIG, libc::SIGKILL);
            libc::fcntl(pipe, libc::F_SETFL, libc::O_ASYNC);
        }
    }
}

/// The command of `fcntl` that says which signal it is (fcntl(2), "Managing signals"); the `libc` crate does not have it.
const F_SETSIG: libc::c_int = 10;

/// A process that does not outlive this value.
struct Running(Child);

impl Running {
    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.0.id()).ok().and_then(Pid::from_raw)
    }

    fn wait(&mut self, program: &str, stop: &AtomicBool, limit: Duration) -> Result<ExitStatus, Failure> {
        let failed = |source| Failure::Start { program: program.to_string(), source };
        let start = Instant::now();
        let pidfd = self.pid().and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        loop {
            if let Some(status) = self.0.try_wait().map_err(failed)? {
                return Ok(status);
            }
            if stop.load(Ordering::Relaxed) {
                return Err(Failure::Stopped(program.to_string()));
            }
            if start.elapsed() >= limit {
                return Err(Failure::TooLong { program: program.to_string(), limit });
            }
            match &pidfd {
                // Readable when the process ends. An error (a signal) is as good as the end of the tick.
                Some(fd) => {
                    let tick = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
                    let _ = poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&tick));
                }
                // Linux before 5.3.
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both do nothing when it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.stderr, self.stdout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_is_said_is_given() {
        let output = run(&mut sh("echo out; echo err >&2; exit 3"), &AtomicBool::new(false), TIME_LIMIT)
            .expect("runs");
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("out\n", "err\n"));
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(output.to_string(), "err\nout\n");
    }

    #[test]
    fn a_tool_is_stopped_when_it_is_no_longer_wanted() {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| run(&mut sh("exec sleep 1000"), &stop, TIME_LIMIT));
            std::thread::sleep(Duration::from_millis(20));
            stop.store(true, Ordering::Relaxed);
            let result = worker.join().expect("does not panic");
            assert!(matches!(result, Err(Failure::Stopped(_))), "{result:?}");
        });
    }

    #[test]
    fn a_tool_that_takes_too_long_is_stopped() {
        let result = run(&mut sh("exec sleep 1000"), &AtomicBool::new(false), Duration::from_millis(20));
        assert!(matches!(result, Err(Failure::TooLong { .. })), "{result:?}");
    }

    #[test]
    fn a_killed_tool_is_told_from_one_that_failed() {
        let result = run(&mut sh("kill -9 $$"), &AtomicBool::new(false), TIME_LIMIT);
        let message = result.expect_err("it was killed").to_string();
        assert_eq!(message, "`/bin/sh` was killed by signal 9, as when memory runs out");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let result = run(&mut Command::new("/no/such/tool"), &AtomicBool::new(false), TIME_LIMIT);
        let message = result.expect_err("there is none").to_string();
        assert!(message.starts_with("cannot run `/no/such/tool`: No such file"), "{message}");
    }
}
