//! `tilewright compile FILE.py::kernel --signature … --target … -o DIR`.

use std::io::Write;
use std::path::{Path, PathBuf};

use tilewright_compiler::Artifact;

use crate::{Environment, Failure, kernel};

/// Arguments of `tilewright compile`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    kernel: kernel::Specialized,
    /// The folder for the results (made if need be); without it only a summary is printed.
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// Print how long each stage took.
    #[arg(long)]
    time: bool,
    /// Print the instruction mix of the cubin.
    #[arg(long)]
    mix: bool,
}

/// Compiles, writes the stages and prints a summary.
pub fn run(args: &Args, environment: &Environment<'_>, out: &mut dyn Write) -> Result<u8, Failure> {
    let artifact = kernel::compile(&args.kernel, environment).map_err(|d| d.to_string())?;
    write!(out, "{}", artifact.printed)?;
    report(args, &artifact, out)?;
    if let Some(dir) = &args.output {
        write(dir, &artifact).map_err(|e| format!("cannot write to {}: {e}", dir.display()))?;
        if let Some(missing) = &artifact.missing
            && !missing.wanted
        {
            return Err(format!("{} holds no {}: {}", dir.display(), missing.stage, missing.why).into());
        }
    }
    if args.mix {
        let cubin = artifact.bytes("cubin").ok_or("there is no cubin to count instructions of")?;
        let mix = tilewright_nvidia::sass::instruction_mix(cubin, &environment.python)?;
        let mut counts: Vec<_> = mix.into_iter().collect();
        counts.sort_by_key(|(opcode, count)| (std::cmp::Reverse(*count), opcode.clone()));
        for (opcode, count) in counts {
            writeln!(out, "{count:6} {opcode}")?;
        }
    }
    Ok(0)
}

fn report(args: &Args, artifact: &Artifact, out: &mut dyn Write) -> Result<(), Failure> {
    let m = &artifact.metadata;
    writeln!(
        out,
        "{} for {}: {} warps, {} bytes of shared memory",
        m.name, m.target, m.options.num_warps, m.shared
    )?;
    let code = artifact.stages.iter().rfind(|(stage, _)| !stage.is_text);
    if let (Some((last, code)), Some(registers)) = (code, m.n_regs) {
        writeln!(
            out,
            "{} {} bytes, {registers} registers, {} bytes spilled (assembler {})",
            last.name,
            code.len(),
            m.n_spills.unwrap_or(0),
            m.assembler.as_deref().unwrap_or("?")
        )?;
    }
    for remark in &m.remarks {
        writeln!(out, "remark: {remark}")?;
    }
    if let Some(missing) = &artifact.missing {
        writeln!(out, "no {}: {}", missing.stage, missing.why)?;
    }
    if args.time {
        for stage in &artifact.times {
            writeln!(out, "{:10} {:8.2} ms", stage.stage, stage.time.as_secs_f64() * 1e3)?;
        }
        if let Some(n) = m.llvm_instructions {
            writeln!(out, "{n} instructions handed to LLVM")?;
        }
    }
    Ok(())
}

fn write(dir: &Path, artifact: &Artifact) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    for extension in tilewright_compiler::extensions() {
        let file = dir.join(format!("{}.{extension}", artifact.metadata.name));
        match artifact.file(extension) {
            Some(bytes) => std::fs::write(file, bytes)?,
            // What another compilation left there does not belong to the rest.
            None => match std::fs::remove_file(file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            },
        }
    }
    Ok(())
}
