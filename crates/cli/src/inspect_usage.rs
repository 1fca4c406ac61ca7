//! What the native code of a kernel for Intel's GPUs holds: the stage `usage.json`, as text.

use std::io::Write;

use serde_json::Value;

use tilewright_nvidia::sass::Mix;
use tilewright_nvidia::sass::listing::Place;
use tilewright_nvidia::sass::report::LineMix;

use crate::inspect::{Args, Source, file_name, lines, most};
use crate::{Environment, Failure, kernel};

/// The stage.
const USAGE: &str = "usage.json";

/// Compiles the kernel and prints what its code uses.
pub fn run(args: &Args, environment: &Environment<'_>, out: &mut dyn Write) -> Result<u8, Failure> {
    let artifact = kernel::compile(&args.kernel, environment).map_err(|d| d.to_string())?;
    let Some(text) = artifact.text(USAGE) else {
        let why = artifact.missing.as_ref().map_or("it ends with the module that runs", |m| &m.why);
        let target = &artifact.metadata.target;
        return Err(format!("{target} has no machine code to inspect: {why}").into());
    };
    if args.json {
        write!(out, "{text}")?;
        return Ok(0);
    }
    let usage: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let number = |name: &str| usage[name].as_u64().unwrap_or(0);
    let m = &artifact.metadata;
    writeln!(
        out,
        "{} for {}: {} warps of {} lanes",
        m.name,
        m.target,
        m.total_num_warps,
        number("sub_group_size")
    )?;
    writeln!(
        out,
        "{} registers, {} bytes of a thread's memory for spills, {} bytes of shared memory",
        number("registers"),
        number("spilled_bytes"),
        number("slm_bytes")
    )?;
    writeln!(out, "{}", counted(&usage["instructions"]))?;
    let mut source = Source::default();
    for l in usage["loops"].as_array().into_iter().flatten() {
        let depth = l["depth"].as_u64().unwrap_or(0);
        let deep = if depth == 0 { String::new() } else { format!(", {depth} deep") };
        let label = l["label"].as_str().unwrap_or("?");
        let by_line: Vec<LineMix> = l["by_line"].as_array().into_iter().flatten().map(line).collect();
        writeln!(out, "\nloop at {label}, {}{deep}: {}", place(&by_line), counted(&l["instructions"]))?;
        lines(&by_line, &mut source, out)?;
    }
    Ok(0)
}

/// What a loop holds of a line.
fn line(of: &Value) -> LineMix {
    let number = of["place"]["line"].as_u64().map(|line| line as u32);
    let file = of["place"]["file"].as_str();
    let place = number.zip(file).map(|(line, file)| Place { file: file.to_string(), line });
    LineMix { place, instructions: mix(&of["instructions"]) }
}

/// The lines of the file that most of a loop is of: `kernel.py:10-12`.
fn place(by_line: &[LineMix]) -> String {
    let places = || by_line.iter().filter_map(|line| line.place.as_ref());
    let weight = |file: &str| -> usize {
        let of = by_line.iter().filter(|line| line.place.as_ref().is_some_and(|p| p.file == file));
        of.flat_map(|line| line.instructions.values()).sum()
    };
    let Some(file) = places().map(|p| p.file.as_str()).max_by_key(|file| weight(file)) else {
        return "no source lines".to_string();
    };
    let numbers = || places().filter(|p| p.file == file).map(|p| p.line);
    let (first, last) = (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0));
    let name = file_name(file);
    if first == last { format!("{name}:{first}") } else { format!("{name}:{first}-{last}") }
}

fn mix(of: &Value) -> Mix {
    let count = |(name, n): (&String, &Value)| (name.clone(), n.as_u64().unwrap_or(0) as usize);
    of.as_object().into_iter().flatten().map(count).collect()
}

/// `42 instructions: mov 16, dpas.8x8 4, …`.
fn counted(of: &Value) -> String {
    let mix = mix(of);
    format!("{} instructions: {}", mix.values().sum::<usize>(), most(&mix))
}
