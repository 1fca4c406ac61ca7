//! The `tilewright` command as a program of its own; the Python package has the same one in its extension module.

use std::process::ExitCode;

use tilewright_compiler::PythonEnvironment;

fn main() -> ExitCode {
    ExitCode::from(tilewright_cli::main(std::env::args_os(), &PythonEnvironment::activated()))
}
