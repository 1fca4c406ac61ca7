//! What the native code of a kernel for Intel's GPUs holds: the stage `usage.json`, as text.

use std::io::Write;

use serde_json::Value;
use tilewright_compiler::PythonEnvironment;

use crate::inspect::{Args, most};
use crate::{Failure, kernel};

/// The stage.
const USAGE: &str = "usage.json";

/// Compiles the kernel and prints what its code uses.
pub fn run(args: &Args, python: &PythonEnvironment, out: &mut dyn Write) -> Result<u8, Failure> {
    let artifact = kernel::compile(&args.kernel, python).map_err(|d| d.to_string())?;
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
    for l in usage["loops"].as_array().into_iter().flatten() {
        let depth = l["depth"].as_u64().unwrap_or(0);
        let deep = if depth == 0 { String::new() } else { format!(", {depth} deep") };
        writeln!(
            out,
            "loop at {}{deep}: {}",
            l["label"].as_str().unwrap_or("?"),
            counted(&l["instructions"])
        )?;
    }
    Ok(0)
}

/// `42 instructions: mov 16, dpas.8x8 4, …`.
fn counted(mix: &Value) -> String {
    let count = |(name, n): (&String, &Value)| (name.clone(), n.as_u64().unwrap_or(0) as usize);
    let mix = mix.as_object().into_iter().flatten().map(count).collect();
    let total = |mix: &std::collections::BTreeMap<String, usize>| mix.values().sum::<usize>();
    format!("{} instructions: {}", total(&mix), most(&mix))
}
