//! The kernel that a command works on: what names it, its types and options on the command line, and its compilation.

use std::path::Path;
use std::sync::Arc;

use ruff_text_size::Ranged;
use tilewright_compiler::cache::Cache;
use tilewright_compiler::{Artifact, DEFAULT_TARGET, Request};
use tilewright_frontend::signature::{ArgType, parse_dtype};
use tilewright_frontend::{ArgSpec, Diagnostic, Host, HostValue, JitFunction, Signature, SourceHost};

use crate::{Environment, options};

/// A kernel of a file, specialized.
#[derive(clap::Args)]
pub struct Specialized {
    /// The kernel: `FILE.py::name`. The name may be left out where the file has one kernel.
    pub kernel: String,
    /// Types of the run-time parameters in their order, such as `*fp32:16,*fp32,i32` (`:16` promises a multiple of 16).
    #[arg(long, default_value = "")]
    signature: String,
    /// A compile-time constant, `NAME=VALUE`; may be repeated.
    #[arg(long = "constexpr", value_name = "NAME=VALUE")]
    constants: Vec<String>,
    /// A GPU such as `cuda:80`, `cuda:90` or `xe:pvc`, or `interp`.
    #[arg(long, default_value = DEFAULT_TARGET)]
    pub target: String,
    #[command(flatten)]
    options: options::Flags,
}

/// Compiles it, without the cache. What the file's text alone does not say is asked of Python, where that is at hand.
pub fn compile(args: &Specialized, environment: &Environment<'_>) -> Result<Artifact, Diagnostic> {
    let (file, name) = match args.kernel.rsplit_once("::") {
        Some((file, name)) => (file, Some(name)),
        None => (args.kernel.as_str(), None),
    };
    let path = Path::new(file);
    let host = SourceHost::open(path)?;
    let name = match (name, host.kernels().as_slice()) {
        (Some(name), _) => name.to_string(),
        (None, [only]) => (*only).to_string(),
        (None, names) => {
            return Err(Diagnostic::new(format!("{file} has {} kernels: say which", names.len()))
                .note(format!("write {file}::NAME with one of: {}", names.join(", "))));
        }
    };
    let compiled = compile_for(&host, &host.function(&name)?, args, environment);
    match environment.interpreter.filter(|_| compiled.is_err() && host.needs_python()) {
        Some(interpreter) => {
            let (host, entry) = interpreter.open(path, &name)?;
            compile_for(&*host, &entry, args, environment)
        }
        None => compiled,
    }
}

fn compile_for(
    host: &dyn Host,
    entry: &Arc<JitFunction>,
    args: &Specialized,
    environment: &Environment<'_>,
) -> Result<Artifact, Diagnostic> {
    let signature = signature(host, args, entry)?;
    let target = tilewright_compiler::target(&args.target)?;
    let mut request = Request::new(host, entry, &signature, &args.options.0, &*target);
    request.python = environment.python.clone();
    tilewright_compiler::compile(&request, &Cache::disabled())
}

/// One argument for each parameter: constants by name, defaults of what is named nowhere at the end, and the rest from
/// the signature in order.
fn signature(host: &dyn Host, args: &Specialized, entry: &Arc<JitFunction>) -> Result<Signature, Diagnostic> {
    let mut constants: Vec<(&str, ArgSpec)> = Vec::new();
    for constant in &args.constants {
        let Some((name, value)) = constant.split_once('=') else {
            return Err(Diagnostic::new(format!("`--constexpr {constant}` is not NAME=VALUE")));
        };
        let name = name.trim();
        if constants.iter().any(|(before, _)| *before == name) {
            return Err(Diagnostic::new(format!("--constexpr gives `{name}` two values")));
        }
        constants.push((name, ArgSpec::constant(constant_value(value.trim()))));
    }
    let given = Signature::parse(&args.signature)?.args;
    let count = given.len();
    let mut given = given.into_iter();
    let definition = entry.definition()?;
    let mut result = Vec::new();
    let mut missing = Vec::new();
    let mut used = Vec::new();
    for parameter in definition.parameters.iter_non_variadic_params() {
        let name = parameter.parameter.name.as_str();
        if let Some((_, value)) = constants.iter().find(|(n, _)| *n == name) {
            used.push(name);
            result.push(value.clone());
        } else if let Some(spec) = given.next() {
            result.push(spec);
        } else if let Some(default) = &parameter.default {
            let Some(value) = host.default_argument(entry, name)? else {
                let text = entry.source.slice(default.range());
                return Err(Diagnostic::new(format!(
                    "the default of `{name}`, {text}, cannot be evaluated here"
                ))
                .note(format!("give it a value: --constexpr {name}=…")));
            };
            result.push(ArgSpec::constant(value));
        } else {
            missing.push(name);
        }
    }
    if let Some((name, _)) = constants.iter().find(|(n, _)| !used.contains(n)) {
        return Err(Diagnostic::new(format!("`{}` has no parameter `{name}`", entry.name)));
    }
    if !missing.is_empty() || given.next().is_some() {
        return Err(Diagnostic::new(format!(
            "the signature has {count} types, which do not fit the run-time parameters of `{}`",
            entry.name
        ))
        .note(match missing.is_empty() {
            true => "there are more types than parameters".to_string(),
            false => format!("nothing is said of: {}", missing.join(", ")),
        }));
    }
    Ok(Signature { args: result })
}

/// A constant: a number, `True`, `None`, a dtype such as `fp32`, a tuple of these in parentheses or brackets, or text.
fn constant_value(text: &str) -> HostValue {
    if let Some(dtype) = parse_dtype(text.strip_prefix("tl.").unwrap_or(text)) {
        return HostValue::DType(dtype);
    }
    if let Some(items) = tuple_items(text) {
        return HostValue::tuple(items.into_iter().map(|item| constant_value(item.trim())));
    }
    match ArgSpec::parse(&format!("{text}/constexpr")) {
        Ok(ArgSpec { ty: ArgType::Constant(value), .. }) => value,
        _ => HostValue::str(text.trim_matches(['"', '\''])),
    }
}

/// What stands between the commas of a tuple; nothing where the text is none.
fn tuple_items(text: &str) -> Option<Vec<&str>> {
    let inner = [('(', ')'), ('[', ']')]
        .into_iter()
        .find_map(|(open, close)| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close)))?;
    let (mut items, mut depth, mut from) = (Vec::new(), 0i32, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                items.push(&inner[from..at]);
                from = at + 1;
            }
            _ => {}
        }
        // What is closed here was not the first: `(a), (b)` is no tuple in parentheses.
        if depth < 0 {
            return None;
        }
    }
    let last = &inner[from..];
    let one = items.is_empty() && text.starts_with('(');
    if !last.trim().is_empty() {
        // `(a)` is `a` in parentheses, which is no tuple.
        if one {
            return None;
        }
        items.push(last);
    }
    (depth == 0).then_some(items)
}
