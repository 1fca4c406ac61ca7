//! Any text: parsing it must not panic or hang. What parses prints the same again, and what verifies can be optimized.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(mut module) = tilewright_ir::parse(text, "fuzz.mlir") else { return };
    let printed = tilewright_ir::print(&module);
    let again = tilewright_ir::parse(&printed, "again.mlir").expect("what is printed parses");
    assert_eq!(tilewright_ir::print(&again), printed);
    if tilewright_ir::verify(&module).is_err() || tilewright_ir::pass::optimize(&mut module).is_err() {
        return;
    }
    if let Err(errors) = tilewright_ir::verify(&module) {
        panic!("after optimizing: {}", errors[0]);
    }
});
