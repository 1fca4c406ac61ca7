//! `tilewright sim FILE.ptx --grid … --block … --args …`: runs a PTX file on the CPU, with checks.
//!
//! The exit status is 0 when every rule was kept, 1 when a check fired (the findings are on standard error), and 2 when
//! the file, the arguments or the launch are wrong.

use std::io::Write;
use std::path::PathBuf;

use tilewright_ptxsim::{Arguments, Launch, Program, SimOptions};

use crate::Failure;

/// Elements of an array that `--print` shows.
const PRINTED: usize = 1024;

/// Arguments of `tilewright sim`.
#[derive(clap::Args)]
pub struct Args {
    /// A PTX file, from any compiler.
    file: PathBuf,
    /// The kernel; may be left out where the file has one.
    #[arg(long)]
    entry: Option<String>,
    /// CTAs of the grid, `X[,Y[,Z]]`.
    #[arg(long, value_parser = dimensions, default_value = "1")]
    grid: Dimensions,
    /// Threads of a CTA, `X[,Y[,Z]]`.
    #[arg(long, value_parser = dimensions)]
    block: Dimensions,
    /// CTAs of a cluster, `X[,Y[,Z]]`; without it what the kernel requires of itself, or one.
    #[arg(long, value_parser = dimensions)]
    cluster: Option<Dimensions>,
    /// Bytes of dynamic shared memory.
    #[arg(long, default_value_t = 0)]
    shared: u32,
    /// A typed array with a filling, or a typed scalar, for each parameter: `u32[128]=iota,f32[64]=rand:7,i32=5`.
    /// Types: u8 to u64, i8 to i64, f16, bf16, f32, f64. Fillings: zeros, ones, iota, rand, rand:SEED, or a number.
    #[arg(long, default_value = "")]
    args: String,
    /// Print the argument with this number (from 0) after the run; may be repeated.
    #[arg(long, value_name = "N")]
    print: Vec<usize>,
    /// Write findings and counters as JSON to this file; `-` is standard output, in place of the table.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Skip the checks of races, uninitialized reads and asynchrony; bounds, alignment and deadlock are always checked.
    #[arg(long)]
    no_checks: bool,
    /// Zero runs warps in order; another number shuffles them, the same way each time.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Stop after this many warp instructions; zero for no limit.
    #[arg(long, default_value_t = 0, value_name = "N")]
    max_instructions: u64,
}

/// One to three sizes; those left out are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dimensions([u32; 3]);

fn dimensions(text: &str) -> Result<Dimensions, String> {
    let mut sizes = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err("there are at most three dimensions: X[,Y[,Z]]".into());
    }
    for (size, part) in sizes.iter_mut().zip(parts) {
        *size = part
            .trim()
            .parse()
            .ok()
            .filter(|n| *n > 0)
            .ok_or_else(|| format!("`{part}` is not a positive number; the form is X[,Y[,Z]]"))?;
    }
    Ok(Dimensions(sizes))
}

/// Runs the file and prints the counters; the status says whether a check fired.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<u8, Failure> {
    let file = args.file.display();
    let text = std::fs::read_to_string(&args.file).map_err(|e| format!("cannot read {file}: {e}"))?;
    let program = Program::parse(&text).map_err(|e| format!("{file}: {e}"))?;
    let entry = entry(&program, args)?;
    let mut arguments = Arguments::parse(&args.args).map_err(|e| format!("--args: {e}"))?;
    let parameters = program.params(&entry).map_err(|e| format!("{file}: {e}"))?.len();
    if arguments.len() != parameters {
        return Err(format!(
            "`{entry}` has {parameters} parameters and --args gives {}: give one for each",
            arguments.len()
        )
        .into());
    }
    if let Some(n) = args.print.iter().find(|n| **n >= parameters) {
        return Err(format!("--print {n}: `{entry}` has {parameters} parameters, counted from 0").into());
    }
    let launch = Launch {
        entry,
        grid: args.grid.0,
        block: args.block.0,
        cluster: args.cluster.map(|c| c.0),
        shared_bytes: args.shared,
        params: arguments.params(),
    };
    let options = SimOptions {
        checks: !args.no_checks,
        seed: args.seed,
        max_instructions: args.max_instructions,
        ..SimOptions::default()
    };
    let report = arguments
        .with_memory(|_, memory| program.launch(&launch, memory, &options))
        .map_err(|e| format!("{file}: {e}"))?;
    write!(out, "{}", report.output.concat())?;
    for n in &args.print {
        writeln!(out, "argument {n}: {}", arguments.show(*n, PRINTED).unwrap_or_default())?;
    }
    match &args.json {
        Some(path) if path.as_os_str() == "-" => writeln!(out, "{}", report.to_json())?,
        json => {
            if let Some(path) = json {
                std::fs::write(path, report.to_json() + "\n")
                    .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
            }
            write!(out, "{}", report.table())?;
        }
    }
    for finding in &report.findings {
        let _ = writeln!(std::io::stderr(), "{finding}");
    }
    Ok(u8::from(!report.findings.is_empty()))
}

fn entry(program: &Program, args: &Args) -> Result<String, String> {
    let names: Vec<&str> = program.entries().collect();
    match (&args.entry, names.as_slice()) {
        (Some(name), _) if names.contains(&name.as_str()) => Ok(name.clone()),
        (None, [only]) => Ok((*only).to_string()),
        (_, []) => Err(format!("{} has no .entry", args.file.display())),
        (Some(name), _) => Err(format!("there is no .entry `{name}`; there are: {}", names.join(", "))),
        (None, _) => {
            Err(format!("there are {} entries, say which by --entry: {}", names.len(), names.join(", ")))
        }
    }
}
