//! The `tilewright` command: compiles kernel files and says what became of them, runs passes and simulates PTX. It needs no
//! Python; where it is at hand ([`Interpreter`]), it is asked what a file's text alone does not say. [`main`] is the whole
//! command, for the program and for the Python package's console script.

// An error ends the command: its size does not matter.
#![allow(clippy::result_large_err)]

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use clap::{Parser, Subcommand};
use tilewright_compiler::PythonEnvironment;
use tilewright_frontend::{Diagnostic, Host, JitFunction};

mod compile;
mod inspect;
mod inspect_usage;
mod kernel;
mod opt;
mod options;
mod sim;

pub use inspect::inspected;

/// A compiler for tile kernels in the Triton language.
#[derive(Parser)]
#[command(name = "tilewright", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compiles a kernel of a Python file ahead of time.
    Compile(compile::Args),
    /// Says what bounds a kernel: registers, spills, occupancy, and the instructions of its loops by source line.
    Inspect(inspect::Args),
    /// Runs passes on a file of IR.
    Opt(opt::Args),
    /// Runs a PTX file on the CPU and checks it for races, bad addresses and deadlock.
    Sim(sim::Args),
}

/// A Python interpreter in the process.
pub trait Interpreter: Sync {
    /// Imports a file; the kernel of this name in it, and who answers what that names outside itself.
    ///
    /// # Errors
    /// What the file raises; a name that is no kernel there.
    fn open(&self, file: &Path, kernel: &str) -> Result<(Box<dyn Host>, Arc<JitFunction>), Diagnostic>;
}

/// What a command finds around it.
pub struct Environment<'e> {
    /// Where NVIDIA's tools may be installed.
    pub python: PythonEnvironment,
    /// Python, where the command runs in it.
    pub interpreter: Option<&'e dyn Interpreter>,
}

/// Why a command ended early.
enum Failure {
    /// What the user is told.
    Message(String),
    /// Standard output could not be written.
    Output(io::Error),
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::Message(message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Failure {
        Failure::Message(message.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

/// What a shell reports of a program that wrote into a closed pipe (128 and SIGPIPE's 13), as of `yes | head`.
const CLOSED_PIPE: u8 = 141;

/// The status of a Rust program that panicked.
const PANICKED: u8 = 101;

/// Bytes of stack; only what is used is taken from memory.
const STACK: usize = 256 << 20;

/// Runs the command with these arguments, of which the first is the program's name, and gives its exit status.
///
/// A defect of ours ends the command with a message and status 101.
pub fn main(arguments: impl IntoIterator<Item = OsString>, environment: &Environment<'_>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // What is nested deeply in a file is recursion here: a thread of our own has room for it, whoever calls.
    let thread = std::thread::Builder::new().name("tilewright".into()).stack_size(STACK);
    let status = std::thread::scope(|scope| {
        let running = thread.spawn_scoped(scope, || command(arguments, environment))?;
        Ok::<_, io::Error>(running.join())
    });
    match status {
        Ok(Ok(status)) => status,
        // The panic's own message has been printed.
        Ok(Err(_)) => {
            let _ = writeln!(io::stderr(), "internal error of the compiler, please report it");
            PANICKED
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "cannot start a thread: {error}");
            1
        }
    }
}

fn command(arguments: Vec<OsString>, environment: &Environment<'_>) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help goes to standard output; a reader that closed it has seen enough.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    let mut out = io::stdout().lock();
    let result = match &cli.command {
        Command::Compile(args) => compile::run(args, environment, &mut out),
        Command::Inspect(args) => inspect::run(args, environment, &mut out),
        Command::Opt(args) => opt::run(args, &mut out),
        Command::Sim(args) => sim::run(args, &mut out),
    };
    // What is still buffered may find the pipe closed, too.
    let result = result.and_then(|status| out.flush().map(|()| status).map_err(Failure::from));
    let message = match result {
        Ok(status) => return status,
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => return CLOSED_PIPE,
        Err(Failure::Output(error)) => format!("cannot write to standard output: {error}"),
        Err(Failure::Message(message)) => message,
    };
    let _ = writeln!(io::stderr(), "{message}");
    // A finding of the simulator has status 1, so that what is wrong with its arguments has another.
    if matches!(cli.command, Command::Sim(_)) { 2 } else { 1 }
}
