//! Every function that the library declares is implemented: calls with plausible arguments compile, or fail for the
//! arguments' sake, but never as unknown.

use tilewright_frontend::library::{Item, Library};
use tilewright_frontend::{DiagnosticKind, Options, Signature, SourceHost, build_module};

/// What is declared but not implemented, and says so.
const NOT_YET: &[&str] = &[];

#[test]
fn every_builtin_is_implemented() {
    let library = Library::get();
    let mut checked = 0;
    for module in ["language.core", "language.math", "language.extra.libdevice"] {
        for name in library.names(module) {
            let path = format!("{module}.{name}");
            let Some(Item::Builtin(builtin)) = library.resolve(&path) else { continue };
            let positional = builtin.params.iter().filter(|(_, default)| default.is_none()).count();
            let mut args = vec!["x"; positional].join(", ");
            if builtin.variadic.is_some() {
                args.push_str(if args.is_empty() { "x" } else { ", x" });
            }
            let text = format!(
                "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(p):\n    x = tl.load(p + tl.arange(0, 16))\n    tl.{}({args})\n",
                path.strip_prefix("language.").expect("in the language")
            );
            let host = SourceHost::new("k.py", &text).expect("parses");
            let entry = host.function("k").expect("a kernel");
            let signature = Signature::parse("*fp32").expect("a signature");
            checked += 1;
            if let Err(error) = build_module(&host, &entry, &signature, &Options::default()) {
                let missing = error.kind == DiagnosticKind::Unsupported;
                assert_eq!(missing, NOT_YET.contains(&name), "{path}: {error}");
                assert!(!error.message.contains("no parameter"), "{path}: {error}");
            }
        }
    }
    assert!(checked > 90, "{checked}");
}
