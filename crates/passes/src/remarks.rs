//! Remarks: what became of a hint that could not be followed. They stand in the attribute `ttg.remarks` of the module, each with the place in
//! the source, and from there in the metadata of what was compiled.

use tilewright_ir::attrs::AttrValue as _;
use tilewright_ir::{Diagnostic, Module, Op};

/// The attribute.
pub const REMARKS: &str = "ttg.remarks";

/// Leaves a remark on an operation.
pub fn add(module: &mut Module, op: Op, text: &str) {
    let at = Diagnostic::at(module, module.op_loc(op), text);
    add_error(module, "", &at);
}

/// Leaves the message of an error as a remark, behind what became of it.
pub(crate) fn add_error(module: &mut Module, what: &str, error: &Diagnostic) {
    let text = format!("{what}{}", error.message);
    let place = error.span.as_ref();
    let place = place.map_or(String::new(), |at| format!("{}:{}:{}: ", at.file, at.line, at.column));
    let mut all = of(module);
    let remark = format!("{place}{text}");
    // A function that is inlined twice says it once.
    if !all.contains(&remark) {
        all.push(remark);
        if let Some(attr) = all.store(module) {
            module.set_attr(module.root(), REMARKS, attr);
        }
    }
}

/// The remarks of a module.
pub fn of(module: &Module) -> Vec<String> {
    Vec::read(module, module.op_attr(module.root(), REMARKS)).unwrap_or_default()
}
