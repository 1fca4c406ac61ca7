//! Rewrites dots that no instruction of the target does into ones that some do.
//!
//! Why first: the operands' elements, and with them encodings, buffers and accesses, depend on which instruction it is.
//!
//! - `tf32x3`: each fp32 operand is split into what tf32 holds and the rest; three tf32 products, smallest first, give
//!   nearly fp32's accuracy on tensor cores.
//! - fp8 where the target has no fp8 instruction, or not for such operands: both are widened to f16 (exact).
//!
//! ```text
//! %d = tt.dot %a, %b, %c, inputPrecision = tf32x3
//! =>
//! %ah = bitcast (bitcast %a & 0xffffe000) ; %al = %a - %ah        (the same for %b)
//! %0 = tt.dot %al, %bh, %c, inputPrecision = tf32
//! %1 = tt.dot %ah, %bl, %0, inputPrecision = tf32
//! %d = tt.dot %ah, %bh, %1, inputPrecision = tf32
//! ```

use tilewright_ir::dialect::{arith, tt};
use tilewright_ir::{Builder, Module, Type, TypeKind, Value};

use crate::pass::{Pass, Property};
use crate::target::{MmaKind, TargetInfo, dot_kind};

/// The pass.
pub const PASS: Pass = Pass {
    name: "legalize-dots",
    summary: "turn dots that no instruction does into ones that some do",
    requires: &[],
    ensures: &[Property::DotsSplit],
    run: |m, t, _| {
        run(m, t);
        Ok(())
    },
};

/// Rewrites every dot of the module that needs it.
pub fn run(module: &mut Module, target: &TargetInfo) {
    let root = module.root();
    for op in module.all_ops(root) {
        let Some(dot) = tt::Dot::cast(module, op) else { continue };
        widen_fp8(module, target, dot);
        if dot.input_precision(module) == tt::InputPrecision::Tf32x3
            && module.element_type(module.value_type(dot.a(module))) == Type::F32
        {
            split_tf32x3(module, dot);
        }
    }
}

fn is_fp8(module: &Module, ty: Type) -> bool {
    matches!(module.type_kind(ty), TypeKind::Float(k) if k.bits() == 8)
}

fn widen_fp8(module: &mut Module, target: &TargetInfo, dot: tt::Dot) {
    let element = |m: &Module, v: Value| m.element_type(m.value_type(v));
    let (a, b) = (dot.a(module), dot.b(module));
    let (ta, tb) = (element(module, a), element(module, b));
    if !(is_fp8(module, ta) || is_fp8(module, tb)) || dot_kind(module, target, dot) != MmaKind::Fma {
        return;
    }
    // With a bf16 or f32 partner, its type; f16 holds every fp8 format exactly.
    let wide = [ta, tb].into_iter().find(|&t| !is_fp8(module, t)).unwrap_or(Type::F16);
    let mut b_ = Builder::before(module, dot.0);
    let mut widen = |v: Value| {
        let ty = b_.module.value_type(v);
        if !is_fp8(b_.module, b_.module.element_type(ty)) {
            return v;
        }
        let ty = b_.module.with_element(ty, wide);
        tt::FpToFp::build(&mut b_, v, None, ty).result(b_.module)
    };
    let (a, b) = (widen(a), widen(b));
    module.set_operand(dot.0, 0, a);
    module.set_operand(dot.0, 1, b);
}

fn split_tf32x3(module: &mut Module, dot: tt::Dot) {
    let (a, b, c) = (dot.a(module), dot.b(module), dot.c(module));
    let mut builder = Builder::before(module, dot.0);
    let (ah, al) = split(&mut builder, a);
    let (bh, bl) = split(&mut builder, b);
    let mut product = |a, b, c| {
        tt::Dot::build(&mut builder, a, b, c, tt::InputPrecision::Tf32, None).result(builder.module)
    };
    let small = product(al, bh, c);
    let small = product(ah, bl, small);
    let whole = product(ah, bh, small);
    module.replace_op(dot.0, &[whole]);
}

/// What tf32 holds of a value (its upper 19 bits), and the rest.
fn split(b: &mut Builder<'_>, value: Value) -> (Value, Value) {
    let ty = b.module.value_type(value);
    let bits_ty = b.module.with_element(ty, Type::I32);
    let bits = arith::Bitcast::build(b, value, bits_ty).out(b.module);
    let mask = b.int(0xffff_e000, bits_ty);
    let high = arith::Andi::build(b, bits, mask).result(b.module);
    let high = arith::Bitcast::build(b, high, ty).out(b.module);
    let low = arith::Subf::build(b, value, high).result(b.module);
    (high, low)
}
