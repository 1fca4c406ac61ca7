//! The `tilewright` command as a program of its own; the Python package has the same one in its extension module.

use std::process::ExitCode;

use tilewright_cli::Environment;
use tilewright_compiler::PythonEnvironment;

fn main() -> ExitCode {
    let environment = Environment { python: PythonEnvironment::activated(), interpreter: None };
    ExitCode::from(tilewright_cli::main(std::env::args_os(), &environment))
}
