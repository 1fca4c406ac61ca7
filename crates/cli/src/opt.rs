//! `tilewright opt FILE -pass -pass …`: runs named passes on a file of IR and prints the result.

use std::io::{Read, Write};

use tilewright_compiler::{DEFAULT_TARGET, Form, Passes};
use tilewright_ir::{Diagnostic, Module, PrintOptions, parse, print_with};
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
    /// Print the module in another form of the target's, behind the passes: for `xe:` LLVM IR, `simd` or `simt`.
    #[arg(long = "as", value_name = "FORM")]
    form: Option<String>,
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
    let form = args.form.as_deref().map(|name| form(name, pipeline.target())).transpose()?;
    let print = |module: &Module| match form {
        Some(form) => (form.text)(module),
        None => Ok(print_with(module, if args.locations { PrintOptions::FULL } else { PrintOptions::PLAIN })),
    };
    let (text, name) = if file == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(|e| format!("standard input: {e}"))?;
        (text, "<stdin>")
    } else {
        (std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?, file.as_str())
    };
    if !args.split_input_file {
        write!(out, "{}", optimized(&text, name, &pipeline, &print)?)?;
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
        write!(out, "{}", optimized(&padded, name, &pipeline, &print)?)?;
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

/// The form of a name that a target has.
fn form(name: &str, target: &str) -> Result<Form, String> {
    let forms = tilewright_compiler::target(target).map_err(|d| d.to_string())?.forms();
    forms.iter().find(|form| form.name == name).copied().ok_or_else(|| {
        let names: Vec<&str> = forms.iter().map(|form| form.name).collect();
        match names[..] {
            [] => format!("--as={name}: modules of {target} have no other form"),
            _ => format!("--as={name}: modules of {target} have the forms {}", names.join(", ")),
        }
    })
}

fn optimized(
    text: &str,
    name: &str,
    pipeline: &Pipeline,
    print: &dyn Fn(&Module) -> Result<String, Diagnostic>,
) -> Result<String, String> {
    let line_of = |f: &str, line: u32| {
        if f == name { text.lines().nth((line as usize).checked_sub(1)?).map(str::to_string) } else { None }
    };
    let mut module = parse(text, name).map_err(|d| d.to_string())?;
    pipeline.run(&mut module).map_err(|errors| {
        let texts = errors.into_iter().map(|d| d.with_source(line_of).to_string());
        texts.collect::<Vec<_>>().join("\n")
    })?;
    print(&module).map_err(|d| d.with_source(line_of).to_string())
}
