//! Imports of neighbouring files, without Python.

use std::path::Path;

use tilewright_frontend::{Options, Signature, SourceHost, build_module};

#[test]
fn functions_and_constants_come_from_other_files() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels/package/kernel.py");
    let host = SourceHost::open(&path).expect("reads");
    assert_eq!(host.kernels(), ["kernel", "wrong"]);
    let compile = |name: &str, signature: &str| {
        let entry = host.function(name).expect("a kernel");
        build_module(&host, &entry, &Signature::parse(signature).expect("reads"), &Options::default())
    };
    let built = compile("kernel", "*fp32, i32, 64").expect("compiles");
    let functions: Vec<&str> = built.functions.iter().map(|f| &*f.name).collect();
    assert_eq!(functions, ["kernel", "twice"]);
    let captured: Vec<String> =
        built.captured.iter().map(|c| format!("{} = {}", c.path.join("."), c.value)).collect();
    assert_eq!(captured, ["SCALE = 3", "util.SCALE = 3"]);
    let error = compile("wrong", "*fp32").expect_err("needs Python");
    assert!(error.message.contains("`TABLE`") && error.message.contains("without Python"), "{error}");
}
