//! What the author of a wrong kernel is told. The kernels are in `kernels/wrong.py`, the messages in
//! `kernels/wrong.txt`; `TILEWRIGHT_BLESS=1` writes the latter anew.

use std::fmt::Write as _;

use tilewright_frontend::{Options, Signature, SourceHost, build_module};

#[test]
fn every_wrong_kernel_says_what_where_and_what_to_do() {
    let source = include_str!("kernels/wrong.py");
    let host = SourceHost::new("wrong.py", source).expect("parses");
    let mut found = String::new();
    let mut kernels = 0;
    let lines: Vec<&str> = source.lines().collect();
    for (i, line) in lines.iter().enumerate() {
        let Some(signature) = line.strip_prefix("# ") else { continue };
        let name = lines[i + 2].strip_prefix("def ").and_then(|l| l.split('(').next()).expect("a kernel");
        let signature = Signature::parse(signature).expect("a signature");
        let entry = host.function(name).expect("a kernel");
        let error = match build_module(&host, &entry, &signature, &Options::default()) {
            Ok(_) => panic!("{name} compiles"),
            Err(error) => error,
        };
        let span = error.span.as_ref().unwrap_or_else(|| panic!("{name}: no place"));
        assert_eq!(span.text.as_deref(), Some(lines[span.line as usize - 1]), "{name}: the source line");
        assert!(span.end_column > span.column, "{name}: the caret");
        let _ = writeln!(found, "== {name}\n{error}\n");
        kernels += 1;
    }
    assert!(kernels > 60);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kernels/wrong.txt");
    if std::env::var_os("TILEWRIGHT_BLESS").is_some() {
        std::fs::write(path, &found).expect("writes");
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    for (a, b) in expected.split("== ").zip(found.split("== ")) {
        assert_eq!(a, b);
    }
    assert_eq!(expected.len(), found.len());
}
