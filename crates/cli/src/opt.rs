//! `tilewright opt FILE -pass -pass …`: runs named passes on a file of IR and prints the result.

use std::io::{Read, Write};

use tilewright_compiler::{DEFAULT_TARGET, Passes};
use tilewright_ir::{PrintOptions, parse, print_with};
use tilewright_passes::TargetInfo;
use tilewright_passes::opt::{Pipeline, pass_names};

use crate::Failure;

/// Arguments of `tilewright opt`.
#[derive(clap::Args)]
pub struct Args {
    /// Print each operation's location.
    #[arg(long)]
    locations: bool,
    /// Run on each part of the file between `// -----` lines.
    #[arg(long)]
    split_input_file: bool,
    /// List the passes and exit.
    #[arg(long)]
    list_passes: bool,
    /// The file, `-` for standard input; then passes and options in order, such as `-inline -canonicalize
    /// -num-warps=4 -assign-layouts`. `-tt` is what the compiler runs on a tt module, `-ttg` the way to the lowering.
    #[arg(allow_hyphen_values = true, trailing_var_arg = true, value_name = "FILE [-PASS]...")]
    arguments: Vec<String>,
}

/// Runs the command.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<u8, Failure> {
    if args.list_passes {
        for (name, summary) in pass_names(&info(DEFAULT_TARGET)?) {
            writeln!(out, "{name:20} {summary}")?;
        }
        return Ok(0);
    }
    let Some((file, passes)) = args.arguments.split_first() else {
        return Err("a file is needed (`-` for standard input); `tilewright opt --help` says more".into());
    };
    let pipeline = Pipeline::parse(passes.iter().map(String::as_str), DEFAULT_TARGET, &info)?;
    let (text, name) = if file == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(|e| format!("standard input: {e}"))?;
        (text, "<stdin>")
    } else {
        (std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?, file.as_str())
    };
    if !args.split_input_file {
        write!(out, "{}", optimized(&text, name, &pipeline, args.locations)?)?;
        return Ok(0);
    }
    let mut before = String::new();
    for (i, part) in text.split_inclusive("// -----\n").enumerate() {
        // Blank lines keep the numbers of lines in messages right.
        let padded = format!("{}{part}", "\n".repeat(before.matches('\n').count()));
        before.push_str(part);
        if i > 0 {
            writeln!(out, "// -----")?;
        }
        write!(out, "{}", optimized(&padded, name, &pipeline, args.locations)?)?;
    }
    Ok(0)
}

/// What the passes know of the target of a name.
fn info(name: &str) -> Result<TargetInfo, String> {
    match tilewright_compiler::target(name).map_err(|d| d.to_string())?.passes() {
        Passes::Ttg(info) => Ok(*info),
        Passes::Tt(_) => Err(format!("{name} has no passes from tt to ttg")),
    }
}

fn optimized(text: &str, name: &str, pipeline: &Pipeline, locations: bool) -> Result<String, String> {
    let mut module = parse(text, name).map_err(|d| d.to_string())?;
    pipeline.run(&mut module).map_err(|errors| {
        let line_of = |f: &str, line: u32| {
            if f == name {
                text.lines().nth((line as usize).checked_sub(1)?).map(str::to_string)
            } else {
                None
            }
        };
        let texts = errors.into_iter().map(|d| d.with_source(line_of).to_string());
        texts.collect::<Vec<_>>().join("\n")
    })?;
    let options = if locations { PrintOptions::FULL } else { PrintOptions::PLAIN };
    Ok(print_with(&module, options))
}
