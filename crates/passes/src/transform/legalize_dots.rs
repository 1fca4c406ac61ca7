//! Rewrites dots that no instruction of the target does into ones that some do.
//!
//! Why first: the operands' elements, and with them encodings, buffers and accesses, depend on which instruction it is.
//!
//! - `tf32x3`, `bf16x3`, `bf16x6`: each fp32 operand is split into what tf32 (bf16) holds of it and the rest, for `bf16x6` into three;
//!   the products of the parts but the smallest, smallest first, give nearly fp32's accuracy on tensor cores. The rest of an
//!   infinity is no number, and neither is a small product with one: those count as 0, so that the product of the large parts decides.
//!   A dot too small for tensor cores is computed in fp32.
//! - fp8 where the target has no fp8 instruction, or not for such operands: both are widened to f16 (exact).
//! - A result in f16 (or bf16) where instructions of whole warps have none: it is computed in f32, and rounded once.
//!
//! ```text
//! %d = tt.dot %a, %b, %c, inputPrecision = tf32x3
//! =>
//! %ah = bitcast (bitcast %a & 0xffffe000) ; %al = %a - %ah        (the same for %b)
//! %0 = tt.dot %al, %bh, 0, inputPrecision = tf32
//! %1 = tt.dot %ah, %bl, %0, inputPrecision = tf32
//! %2 = %1 == %1 ? %1 : 0
//! %3 = tt.dot %ah, %bh, %2, inputPrecision = tf32
//! %d = %3 + %c
//! ```

use tilewright_ir::dialect::{arith, tt};
use tilewright_ir::{Builder, Module, Type, TypeKind, Value};

use crate::pass::{Pass, Property};
use crate::target::{MmaKind, TargetInfo, dot_kind_of};

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
        if is_composed(module, dot) {
            split(module, target, dot);
        } else {
            widen_result(module, target, dot);
        }
    }
}

/// Whether a dot of fp32 is to be made of several narrower ones.
pub(crate) fn is_composed(module: &Module, dot: tt::Dot) -> bool {
    use tt::InputPrecision::{Bf16x3, Bf16x6, Tf32x3};
    matches!(dot.input_precision(module), Tf32x3 | Bf16x3 | Bf16x6)
        && module.element_type(module.value_type(dot.a(module))) == Type::F32
}

fn is_fp8(module: &Module, ty: Type) -> bool {
    matches!(module.type_kind(ty), TypeKind::Float(k) if k.bits() == 8)
}

/// Whether an instruction computes a dot of operands of these types.
fn has_instruction(
    module: &Module,
    target: &TargetInfo,
    dot: tt::Dot,
    operands: [Type; 2],
    result: Type,
    tf32: bool,
) -> bool {
    match target.warp_units {
        Some(units) => units.dots.iter().any(|unit| {
            let rounds = unit.operand != Type::F32 || tf32;
            operands == [unit.operand; 2] && unit.result == result && rounds
        }),
        None => dot_kind_of(module, target, dot, operands, tf32) != MmaKind::Fma,
    }
}

fn widen_result(module: &mut Module, target: &TargetInfo, dot: tt::Dot) {
    let element = |v: Value| module.element_type(module.value_type(v));
    let (operands, narrow) = ([element(dot.a(module)), element(dot.b(module))], element(dot.c(module)));
    let tf32 = dot.input_precision(module) == tt::InputPrecision::Tf32;
    let has = |result| has_instruction(module, target, dot, operands, result, tf32);
    if target.warp_units.is_none()
        || !matches!(narrow, Type::F16 | Type::BF16)
        || has(narrow)
        || !has(Type::F32)
    {
        return;
    }
    let (a, b, c) = (dot.a(module), dot.b(module), dot.c(module));
    let (precision, imprecise, tiling) =
        (dot.input_precision(module), dot.max_num_imprecise_acc(module), dot.tiling(module));
    let ty = module.value_type(c);
    let wide = module.with_element(ty, Type::F32);
    let mut builder = Builder::before(module, dot.0);
    let c = arith::Extf::build(&mut builder, c, wide).out(builder.module);
    let sum = tt::Dot::build(&mut builder, a, b, c, precision, imprecise, tiling).result(builder.module);
    let sum = arith::Truncf::build(&mut builder, sum, ty).out(builder.module);
    module.replace_op(dot.0, &[sum]);
}

fn widen_fp8(module: &mut Module, target: &TargetInfo, dot: tt::Dot) {
    let element = |m: &Module, v: Value| m.element_type(m.value_type(v));
    let (a, b) = (dot.a(module), dot.b(module));
    let (ta, tb) = (element(module, a), element(module, b));
    let result = element(module, dot.c(module));
    let tf32 = dot.input_precision(module) == tt::InputPrecision::Tf32;
    if !(is_fp8(module, ta) || is_fp8(module, tb))
        || has_instruction(module, target, dot, [ta, tb], result, tf32)
    {
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

/// The products of parts of the operands that count, smallest first; part 0 is the largest.
const OF_TWO: &[(usize, usize)] = &[(1, 0), (0, 1), (0, 0)];
const OF_THREE: &[(usize, usize)] = &[(2, 0), (0, 2), (1, 1), (1, 0), (0, 1), (0, 0)];

fn split(module: &mut Module, target: &TargetInfo, dot: tt::Dot) {
    let precision = dot.input_precision(module);
    let (parts, products, tf32) = match precision {
        tt::InputPrecision::Tf32x3 => (2, OF_TWO, true),
        tt::InputPrecision::Bf16x3 => (2, OF_TWO, false),
        _ => (3, OF_THREE, false),
    };
    let (a, b, c) = (dot.a(module), dot.b(module), dot.c(module));
    let tiling = dot.tiling(module);
    let mut builder = Builder::before(module, dot.0);
    let part = if tf32 { Type::F32 } else { Type::BF16 };
    if !has_instruction(builder.module, target, dot, [part; 2], Type::F32, tf32) {
        let ieee = tt::Dot::build(&mut builder, a, b, c, tt::InputPrecision::Ieee, None, tiling)
            .result(builder.module);
        module.replace_op(dot.0, &[ieee]);
        return;
    }
    let (a, b) = (split_operand(&mut builder, a, parts, part), split_operand(&mut builder, b, parts, part));
    let ty = builder.module.value_type(c);
    let zero = builder.float(0.0, ty);
    let each = if tf32 { tt::InputPrecision::Tf32 } else { tt::InputPrecision::Ieee };
    let mut sum = zero;
    for &(i, j) in products {
        if (i, j) == (0, 0) {
            let mask = builder.module.with_element(ty, Type::I1);
            let equal = arith::CmpFPredicate::Oeq;
            let number = arith::Cmpf::build(&mut builder, sum, sum, equal, mask).result(builder.module);
            sum = arith::Select::build(&mut builder, number, sum, zero).result(builder.module);
        }
        sum = tt::Dot::build(&mut builder, a[i], b[j], sum, each, None, tiling).result(builder.module);
    }
    // Not by tensor cores, which cut off more of a long sum than fp32 does.
    let sum = arith::Addf::build(&mut builder, sum, c).result(builder.module);
    module.replace_op(dot.0, &[sum]);
}

/// An operand as a sum of parts, the largest first. What is left to the next part is exact: the largest is cut off, not rounded,
/// so that it can't overflow.
fn split_operand(b: &mut Builder<'_>, value: Value, parts: usize, part: Type) -> Vec<Value> {
    let ty = b.module.value_type(value);
    let bits_ty = b.module.with_element(ty, Type::I32);
    let bits = arith::Bitcast::build(b, value, bits_ty).out(b.module);
    let mask = b.int(if part == Type::BF16 { 0xffff_0000 } else { 0xffff_e000 }, bits_ty);
    let high = arith::Andi::build(b, bits, mask).result(b.module);
    let high = arith::Bitcast::build(b, high, ty).out(b.module);
    let mut rest = arith::Subf::build(b, value, high).result(b.module);
    if part == Type::F32 {
        return vec![high, rest];
    }
    let narrow = b.module.with_element(ty, part);
    let mut found = vec![arith::Truncf::build(b, high, narrow).out(b.module)];
    loop {
        let next = arith::Truncf::build(b, rest, narrow).out(b.module);
        found.push(next);
        if found.len() == parts {
            return found;
        }
        let next = arith::Extf::build(b, next, ty).out(b.module);
        rest = arith::Subf::build(b, rest, next).result(b.module);
    }
}
