//! The `tilewright` command: compiles kernel files, runs passes and simulates PTX, with no Python in the process.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod compile;
mod opt;
mod sim;

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
    /// Runs passes on a file of IR.
    Opt(opt::Args),
    /// Runs a PTX file on the CPU and checks it for races, bad addresses and deadlock.
    Sim(sim::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Compile(args) => compile::run(&args),
        Command::Opt(args) => opt::run(&args),
        Command::Sim(args) => return sim::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
