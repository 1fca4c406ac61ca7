//! Says where a product of matrices is not done by the hardware's units for it, and why: a [remark](crate::remarks) at its line, since
//! nothing else tells an author what costs a kernel most of its speed. Nothing is changed.
//!
//! Why here: products are what the hardware has now, and layouts, which follow the choice, are not made yet.
//!
//! ```text
//! %d = tt.dot %a, %b, %c : tensor<8x32xf16> * tensor<32x16xf16> -> tensor<8x16xf32>
//! =>
//! module attributes {ttg.remarks = ["k.py:7:10: this product is not done on tensor cores: its tile of results, 8x16, …"]}
//! ```

use tilewright_ir::dialect::tt;
use tilewright_ir::{Module, Type, Value};

use crate::pass::{Pass, Property};
use crate::remarks;
use crate::target::{MmaKind, TargetInfo, dot_kind};

/// The pass.
pub const PASS: Pass = Pass {
    name: "explain-dots",
    summary: "say which products the hardware's units do not do, and why",
    requires: &[Property::DotsSplit],
    ensures: &[],
    run: |m, t, _| {
        run(m, t);
        Ok(())
    },
};

/// Leaves a remark on each product that is multiplied and added element by element though the target has units.
fn run(module: &mut Module, target: &TargetInfo) {
    if !target.dots.mma {
        return;
    }
    for op in module.all_ops(module.root()) {
        let Some(dot) = tt::Dot::cast(module, op) else { continue };
        if dot_kind(module, target, dot) == MmaKind::Fma {
            let text = format!("this product is not done on tensor cores: {}", reason(module, target, dot));
            remarks::add(module, op, &text);
        }
    }
}

/// What would have to be otherwise.
fn reason(module: &Module, target: &TargetInfo, dot: tt::Dot) -> String {
    let element = |v: Value| module.element_type(module.value_type(v));
    let (a, b, result) = (element(dot.a(module)), element(dot.b(module)), element(dot.result(module)));
    let takes = |tf32| target.mma_kind(module, a, b, result, tf32) != MmaKind::Fma;
    if takes(dot.input_precision(module) == tt::InputPrecision::Tf32) {
        let shape = |v: Value| module.shape(module.value_type(v)).unwrap_or(&[]);
        let [.., m, n] = *shape(dot.result(module)) else { return "it has no rows and columns".into() };
        return match shape(dot.a(module)).last() {
            Some(1) => "its operands have one column and one row".into(),
            _ => format!("its tile of results, {m}x{n}, is smaller than that of an instruction, 16x8"),
        };
    }
    if a == Type::F32 && takes(true) {
        return "`input_precision=\"ieee\"` keeps every bit of its operands, which `\"tf32\"` and `\"tf32x3\"` do not".into();
    }
    let name = |ty| tilewright_ir::print_type(module, ty);
    format!("there is no instruction that multiplies {} by {} into {}", name(a), name(b), name(result))
}
