//! `tilewright inspect FILE.py::kernel`: what bounds a kernel, by its machine code.

use std::any::Any;
use std::collections::HashMap;
use std::io::{self, Write};

use tilewright_compiler::{Artifact, CudaTarget, PythonEnvironment};
use tilewright_nvidia::sass::listing::Place;
use tilewright_nvidia::sass::machine::Pipe;
use tilewright_nvidia::sass::report::{Bound, LineMix, LoopReport, Verdict};
use tilewright_nvidia::sass::{Facts, Listing, Mix, Report, disassemble};

use crate::{Environment, Failure, inspect_usage, kernel};

/// Opcodes that are named of a loop or a line; the rest is summed up.
const NAMED: usize = 10;

/// Characters of a source line that are shown.
const SHOWN: usize = 70;

/// Arguments of `tilewright inspect`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub kernel: kernel::Specialized,
    /// Print everything as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Compiles the kernel and prints the report.
pub fn run(args: &Args, environment: &Environment<'_>, out: &mut dyn Write) -> Result<u8, Failure> {
    let target = tilewright_compiler::target(&args.kernel.target).map_err(|d| d.to_string())?;
    let Some(&target) = (&*target as &dyn Any).downcast_ref::<CudaTarget>() else {
        return inspect_usage::run(args, environment, out);
    };
    let artifact = kernel::compile(&args.kernel, environment).map_err(|d| d.to_string())?;
    let report = report(&artifact, target, &environment.python)?;
    if args.json {
        writeln!(out, "{}", json(&report)?)?;
    } else {
        print(&report, out)?;
    }
    Ok(0)
}

/// What the command prints of a kernel that is compiled for a GPU of NVIDIA's, as text or as JSON.
///
/// # Errors
/// The kernel is for another target, has no cubin, or there is no disassembler.
pub fn inspected(artifact: &Artifact, as_json: bool, python: &PythonEnvironment) -> Result<String, String> {
    let target = tilewright_compiler::target(&artifact.metadata.target).map_err(|d| d.to_string())?;
    let Some(&target) = (&*target as &dyn Any).downcast_ref::<CudaTarget>() else {
        return Err(format!("not supported yet: inspect() of a kernel for {}", artifact.metadata.target));
    };
    let report = report(artifact, target, python)?;
    if as_json {
        return json(&report);
    }
    let mut text = Vec::new();
    print(&report, &mut text).map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn json(report: &Report) -> Result<String, String> {
    serde_json::to_string_pretty(report).map_err(|e| e.to_string())
}

fn report(artifact: &Artifact, target: CudaTarget, python: &PythonEnvironment) -> Result<Report, String> {
    let Some(cubin) = artifact.bytes("cubin") else {
        let why = artifact.missing.as_ref().map_or("ptxas did not run", |missing| &missing.why);
        return Err(format!("there is no cubin to inspect: {why}"));
    };
    let listing = Listing::parse(&disassemble(cubin, python)?);
    let m = &artifact.metadata;
    let facts = Facts {
        kernel: m.name.clone(),
        target: m.target.clone(),
        num_warps: m.total_num_warps,
        warps_of_loops: m.options.num_warps,
        registers: m.n_regs.unwrap_or(0),
        spilled_bytes: m.n_spills.unwrap_or(0),
        shared_bytes: m.shared,
        remarks: m.remarks.clone(),
    };
    Ok(Report::new(&listing, target, facts))
}

fn print(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Report { facts, occupancy, .. } = report;
    writeln!(
        out,
        "{} for {}: {} warps, {} registers, {} bytes spilled, {} bytes of shared memory",
        facts.kernel, facts.target, facts.num_warps, facts.registers, facts.spilled_bytes, facts.shared_bytes
    )?;
    writeln!(
        out,
        "occupancy: {} CTA{}, {} of {} warps a multiprocessor; limited by {}",
        occupancy.ctas,
        if occupancy.ctas == 1 { "" } else { "s" },
        occupancy.warps,
        occupancy.max_warps,
        occupancy.limited_by.join(" and ")
    )?;
    writeln!(out, "{}", counted(&report.instructions))?;
    for remark in &facts.remarks {
        writeln!(out, "remark: {remark}")?;
    }
    let mut source = Source::default();
    if !report.spills.is_empty() {
        writeln!(out, "\nspills (STL stores, LDL loads)")?;
        lines(&report.spills, &mut source, out)?;
    }
    if report.loops.is_empty() {
        writeln!(out, "\nby source line")?;
        lines(&report.by_line, &mut source, out)?;
    }
    for l in &report.loops {
        writeln!(out)?;
        print_loop(l, &mut source, out)?;
    }
    Ok(())
}

fn print_loop(l: &LoopReport, source: &mut Source, out: &mut dyn Write) -> io::Result<()> {
    let place = match (&l.file, l.lines) {
        (Some(file), Some((first, last))) if first == last => format!("{file}:{first}"),
        (Some(file), Some((first, last))) => format!("{file}:{first}-{last}"),
        _ => "no source lines".to_string(),
    };
    let depth = if l.depth == 0 { String::new() } else { format!(", {} deep", l.depth) };
    writeln!(out, "loop at {place}{depth}: {}", counted(&l.instructions))?;
    lines(&l.by_line, source, out)?;
    let (Some(cycles), Some(bound)) = (&l.cycles, &l.bound) else {
        return writeln!(out, "  loops inside: see there what bounds them");
    };
    let mut busy: Vec<_> = cycles.throughput.iter().filter(|(_, n)| **n >= 0.5).collect();
    busy.sort_by(|a, b| b.1.total_cmp(a.1));
    let busy: Vec<String> = busy.iter().map(|(pipe, n)| format!("{} {n:.0}", pipe_name(**pipe))).collect();
    writeln!(out, "  cycles for an iteration of a multiprocessor's warps: {}", busy.join(", "))?;
    writeln!(
        out,
        "  cycles for one warp: {:.0}; {} loads from global memory under way at most",
        cycles.latency, l.loads_in_flight
    )?;
    match &l.bound_in_l2 {
        Some(other) => {
            verdict("if every byte comes from DRAM, bound by", bound, out)?;
            verdict("if the L2 cache serves all, bound by", other, out)
        }
        None => verdict("bound by", bound, out),
    }
}

fn verdict(label: &str, verdict: &Verdict, out: &mut dyn Write) -> io::Result<()> {
    let bound = match verdict.bound {
        Bound::Tensor => "tensor",
        Bound::Issue => "issue",
        Bound::Memory => "memory",
        Bound::Latency => "latency",
        Bound::Barriers => "barriers",
    };
    writeln!(out, "  {label} {bound}: {}", verdict.why)
}

fn pipe_name(pipe: Pipe) -> &'static str {
    match pipe {
        Pipe::Tensor => "tensor cores",
        Pipe::Issue => "issue",
        Pipe::Fp32 => "fp32",
        Pipe::Multiply => "integer multiply",
        Pipe::Alu => "integer and logic",
        Pipe::Special => "special functions",
        Pipe::Fp64 => "fp64",
        Pipe::Shared => "shared memory",
        Pipe::L2 => "L2",
        Pipe::Dram => "DRAM",
    }
}

/// `42 instructions: FADD 16, LDG 4, …`.
fn counted(mix: &Mix) -> String {
    let total: usize = mix.values().sum();
    format!("{total} instructions: {}", most(mix))
}

/// The most frequent of a mix, and how many others there are.
pub fn most(mix: &Mix) -> String {
    let mut counts: Vec<_> = mix.iter().collect();
    counts.sort_by_key(|(opcode, count)| (std::cmp::Reverse(**count), (*opcode).clone()));
    let rest: usize = counts.iter().skip(NAMED).map(|(_, count)| **count).sum();
    let mut texts: Vec<String> =
        counts.iter().take(NAMED).map(|(opcode, n)| format!("{opcode} {n}")).collect();
    if rest > 0 {
        texts.push(format!("others {rest}"));
    }
    texts.join(", ")
}

pub fn lines(mixes: &[LineMix], source: &mut Source, out: &mut dyn Write) -> io::Result<()> {
    let mut mixes: Vec<&LineMix> = mixes.iter().collect();
    mixes.sort_by(|a, b| a.place.cmp(&b.place));
    for line in mixes {
        match &line.place {
            Some(place) => {
                writeln!(out, "  {}:{}  {}", file_name(&place.file), place.line, source.line(place))?;
            }
            None => writeln!(out, "  (no line)")?,
        }
        writeln!(out, "      {}", most(&line.instructions))?;
    }
    Ok(())
}

pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The lines of source files, read once.
#[derive(Default)]
pub struct Source(HashMap<String, Vec<String>>);

impl Source {
    /// The line's text, empty where the file cannot be read.
    fn line(&mut self, place: &Place) -> String {
        let lines = self.0.entry(place.file.clone()).or_insert_with(|| {
            std::fs::read_to_string(&place.file)
                .unwrap_or_default()
                .lines()
                .map(|l| l.trim().to_string())
                .collect()
        });
        let text = (place.line as usize).checked_sub(1).and_then(|n| lines.get(n)).map_or("", String::as_str);
        match text.char_indices().nth(SHOWN) {
            Some((at, _)) => format!("{}…", &text[..at]),
            None => text.to_string(),
        }
    }
}
