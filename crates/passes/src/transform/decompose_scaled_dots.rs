//! Rewrites dots of microscaling formats into conversions, multiplications by scales, and plain dots.
//!
//! Why first: what comes of them are shapes, arithmetic and dots like any others, which all later passes know.
//!
//! Elements and scales become fp16 if one operand is fp16, and bf16 otherwise, and are multiplied in that type.
//!
//! - An E2M1 code, put where the other format has exponent and mantissa, is its value times 2^(1 - bias): one exact
//!   multiplication, which normalizes 0.5, too, completes it. The two of a byte are moved there in one word, and then joined along
//!   the packed dimension, where arithmetic on pairs finds them together again.
//! - An E8M0 scale is the exponent of a bf16, or of an f32 that is rounded to fp16. 255 would be infinity and is made NaN there,
//!   among the scales and not among the many products.
//!
//! ```text
//! %d = tt.dot_scaled %a scale %s, %b, %c lhs = e2m1 rhs = bf16 : tensor<32x32xi8>, tensor<32x2xi8> * tensor<64x32xbf16> -> tensor<32x32xf32>
//! =>
//! %low, %high = bits of bf16 from %a's codes : tensor<32x32xi16>
//! %0 = arith.mulf (arith.bitcast (tt.reshape (tt.join %low, %high))), 2^126 : tensor<32x64xbf16>
//! %1 = %s as bf16, NaN where it is 255
//! %2 = tt.reshape (tt.broadcast (tt.expand_dims %1)) : tensor<32x2x1xbf16> -> tensor<32x2x32xbf16> -> tensor<32x64xbf16>
//! %d = tt.dot (arith.mulf %0, %2), %b, %c
//! ```

use tilewright_ir::dialect::{arith, tt};
use tilewright_ir::{Builder, Module, Type, Value};

use crate::pass::Pass;

/// The pass.
pub const PASS: Pass = Pass {
    name: "decompose-scaled-dots",
    summary: "turn dots of microscaling formats into conversions, scaling and dots",
    requires: &[],
    ensures: &[],
    run: |m, _, _| {
        run(m);
        Ok(())
    },
};

/// Rewrites every scaled dot of the module.
pub fn run(module: &mut Module) {
    let root = module.root();
    for op in module.all_ops(root) {
        if let Some(dot) = tt::DotScaled::cast(module, op) {
            decompose(module, dot);
        }
    }
}

fn decompose(module: &mut Module, dot: tt::DotScaled) {
    let m = &*module;
    let formats = [dot.a_elem_type(m), dot.b_elem_type(m)];
    let compute = if formats.contains(&tt::ScaleDotElemType::Fp16) { HALF } else { BFLOAT };
    let fast_math = dot.fast_math(m);
    let c = dot.c(m);
    let rank = m.shape(m.value_type(c)).map_or(2, <[u32]>::len);
    let operand = |value, scale, (k_axis, other_axis), format, k_pack: bool| Operand {
        value,
        scale,
        k_axis,
        packed: (format == tt::ScaleDotElemType::E2M1).then_some(if k_pack { k_axis } else { other_axis }),
        compute,
        fast_math,
    };
    let axes = (rank - 1, rank - 2);
    let lhs = operand(dot.a(m), dot.a_scale(m), axes, formats[0], dot.lhs_k_pack(m).0);
    let rhs = operand(dot.b(m), dot.b_scale(m), (axes.1, axes.0), formats[1], dot.rhs_k_pack(m).0);
    let mut b = Builder::before(module, dot.0);
    let (lhs, rhs) = (lhs.with_floats(&mut b, formats[0]), rhs.with_floats(&mut b, formats[1]));
    let (lhs, rhs) = (lhs.scaled(&mut b), rhs.scaled(&mut b));
    let d = tt::Dot::build(&mut b, lhs, rhs, c, tt::InputPrecision::Ieee, None, tt::Tiling::Default)
        .result(b.module);
    module.replace_op(dot.0, &[d]);
}

/// A type that elements and scales are multiplied in.
#[derive(Debug, Clone, Copy)]
struct Compute {
    ty: Type,
    mantissa: i64,
    bias: i32,
}

const HALF: Compute = Compute { ty: Type::F16, mantissa: 10, bias: 15 };
const BFLOAT: Compute = Compute { ty: Type::BF16, mantissa: 7, bias: 127 };

/// One of the factors.
struct Operand {
    value: Value,
    scale: Option<Value>,
    /// The dimension that is summed over.
    k_axis: usize,
    /// The dimension along which a byte is two elements, if they are E2M1.
    packed: Option<usize>,
    compute: Compute,
    fast_math: bool,
}

impl Operand {
    /// The same of floats, where they are given as bytes.
    fn with_floats(mut self, b: &mut Builder<'_>, format: tt::ScaleDotElemType) -> Operand {
        let ty = b.module.value_type(self.value);
        if b.module.element_type(ty) != format.element() {
            let floats = b.module.with_element(ty, format.element());
            self.value = arith::Bitcast::build(b, self.value, floats).out(b.module);
        }
        self
    }

    /// What the plain dot multiplies.
    fn scaled(&self, b: &mut Builder<'_>) -> Value {
        let value = match self.packed {
            Some(axis) => self.unpack(b, axis),
            None => convert(b, self.value, self.compute.ty),
        };
        let Some(scale) = self.scale else { return value };
        // Scales have K as their last dimension, whichever operand they are for.
        let rank = shape_of(b.module, scale).len();
        let scale = if self.k_axis == rank - 1 { scale } else { transpose(b, scale) };
        let per_k = shape_of(b.module, value)[self.k_axis] / shape_of(b.module, scale)[self.k_axis];
        let scale = self.float_scale(b, scale);
        let scale = repeat(b, scale, self.k_axis, per_k);
        arith::Mulf::build(b, value, scale).result(b.module)
    }

    /// The values of E2M1 codes.
    fn unpack(&self, b: &mut Builder<'_>, axis: usize) -> Value {
        let Compute { ty, mantissa, bias } = self.compute;
        let codes = b.module.value_type(self.value);
        let word = b.module.with_element(codes, Type::I32);
        let half = b.module.with_element(codes, Type::I16);
        let left = |b: &mut Builder<'_>, value: Value, by: i64| {
            let by = b.int(by, word);
            arith::Shli::build(b, value, by).result(b.module)
        };
        let field = |b: &mut Builder<'_>, value: Value, by: i64, mask: i64| {
            let moved = left(b, value, by);
            let mask = b.int((mask << 16 | mask) as u32 as i32 as i64, word);
            arith::Andi::build(b, moved, mask).result(b.module)
        };
        // A word for both codes: each in the low bits of a half, then where the format has them.
        let byte = arith::Extui::build(b, self.value, word).out(b.module);
        let upper = left(b, byte, 12);
        let spread = arith::Ori::build(b, byte, upper).result(b.module);
        let magnitudes = field(b, spread, mantissa - 1, 0b111 << (mantissa - 1));
        let signs = field(b, spread, 12, 0x8000);
        let words = arith::Ori::build(b, magnitudes, signs).result(b.module);
        let by = b.int(16, word);
        let upper = arith::Shrui::build(b, words, by).result(b.module);
        let low = arith::Trunci::build(b, words, half).out(b.module);
        let high = arith::Trunci::build(b, upper, half).out(b.module);
        let mut shape = shape_of(b.module, low);
        shape.push(2);
        let pairs = b.module.tensor_type(&shape, Type::I16, None);
        let pairs = tt::Join::build(b, low, high, pairs).result(b.module);
        let bits = merge(b, pairs, axis);
        let float = b.module.value_type(bits);
        let float = b.module.with_element(float, ty);
        let tiny = arith::Bitcast::build(b, bits, float).out(b.module);
        let rebias = b.float(2f64.powi(bias - 1), float);
        arith::Mulf::build(b, tiny, rebias).result(b.module)
    }

    /// Scales as numbers, in their own shape.
    fn float_scale(&self, b: &mut Builder<'_>, scale: Value) -> Value {
        let Compute { ty: to, mantissa, .. } = self.compute;
        let ty = b.module.value_type(scale);
        if b.module.element_type(ty) != Type::I8 {
            return convert(b, scale, to);
        }
        // The float whose exponent it is, and its NaN.
        let (bits, float, mantissa) =
            if to == Type::F16 { (Type::I32, Type::F32, 23) } else { (Type::I16, to, mantissa) };
        let (bits, float) = (b.module.with_element(ty, bits), b.module.with_element(ty, float));
        let wide = arith::Extui::build(b, scale, bits).out(b.module);
        let by = b.int(mantissa, bits);
        let mut value = arith::Shli::build(b, wide, by).result(b.module);
        if !self.fast_math {
            let flag = b.module.with_element(ty, Type::I1);
            let ones = b.int(0xff, bits);
            let is_nan = arith::Cmpi::build(b, wide, ones, arith::CmpIPredicate::Eq, flag).result(b.module);
            let nan = b.int(0x1ff << (mantissa - 1), bits);
            value = arith::Select::build(b, is_nan, nan, value).result(b.module);
        }
        let value = arith::Bitcast::build(b, value, float).out(b.module);
        convert(b, value, to)
    }
}

/// Floats as another type of floats; fp16 and bf16 meet in f32.
fn convert(b: &mut Builder<'_>, value: Value, to: Type) -> Value {
    let ty = b.module.value_type(value);
    let from = b.module.element_type(ty);
    let result = b.module.with_element(ty, to);
    match from {
        _ if from == to => value,
        Type::F32 => arith::Truncf::build(b, value, result).out(b.module),
        Type::F16 | Type::BF16 => {
            let single = b.module.with_element(ty, Type::F32);
            let single = arith::Extf::build(b, value, single).out(b.module);
            arith::Truncf::build(b, single, result).out(b.module)
        }
        _ => tt::FpToFp::build(b, value, None, result).result(b.module),
    }
}

fn shape_of(module: &Module, value: Value) -> Vec<u32> {
    module.shape(module.value_type(value)).unwrap_or(&[]).to_vec()
}

/// The last two dimensions exchanged.
fn transpose(b: &mut Builder<'_>, value: Value) -> Value {
    let rank = shape_of(b.module, value).len();
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(rank - 2, rank - 1);
    permute(b, value, &order)
}

fn permute(b: &mut Builder<'_>, value: Value, order: &[usize]) -> Value {
    let shape = shape_of(b.module, value);
    let shape: Vec<u32> = order.iter().map(|&d| shape[d]).collect();
    let element = b.module.element_type(b.module.value_type(value));
    let ty = b.module.tensor_type(&shape, element, None);
    tt::Trans::build(b, value, order.iter().map(|&d| d as i32).collect(), ty).result(b.module)
}

/// The innermost dimension made the fastest part of another.
fn merge(b: &mut Builder<'_>, value: Value, axis: usize) -> Value {
    let last = shape_of(b.module, value).len() - 1;
    let mut order: Vec<usize> = (0..last).collect();
    order.insert(axis + 1, last);
    let value = if axis + 1 == last { value } else { permute(b, value, &order) };
    flatten(b, value, axis)
}

/// A dimension and the next as one.
fn flatten(b: &mut Builder<'_>, value: Value, axis: usize) -> Value {
    let mut shape = shape_of(b.module, value);
    let inner = shape.remove(axis + 1);
    shape[axis] *= inner;
    let element = b.module.element_type(b.module.value_type(value));
    let ty = b.module.tensor_type(&shape, element, None);
    tt::Reshape::build(b, value, false, false, ty).result(b.module)
}

/// Each element `times` times along a dimension.
fn repeat(b: &mut Builder<'_>, value: Value, axis: usize, times: u32) -> Value {
    let element = b.module.element_type(b.module.value_type(value));
    let mut shape = shape_of(b.module, value);
    shape.insert(axis + 1, 1);
    let ty = b.module.tensor_type(&shape, element, None);
    let value = tt::ExpandDims::build(b, value, axis as i32 + 1, ty).result(b.module);
    shape[axis + 1] = times;
    let ty = b.module.tensor_type(&shape, element, None);
    let value = tt::Broadcast::build(b, value, ty).result(b.module);
    flatten(b, value, axis)
}
