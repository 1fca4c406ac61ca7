//! Functions that a kernel calls for arguments which are rare, and too long to stand in it for each element: the reduction of
//! large angles, and remainders of which the quotient is no exact number.

use tilewright_llvm::{
    BinOp, Builder, CastOp, Effect, FloatPred, FuncId, Global, GlobalId, IntPred, Loc, Module, Space, Ty,
    Value,
};

use crate::Hooks;

/// What the names of the lowering's own functions and tables begin with.
pub const PREFIX: &str = "__tilewright_";
/// Reduces large fp32 angles.
pub(crate) const REDUCE_ANGLE_32: &str = "__tilewright_reduce_angle";
/// Reduces large fp64 angles.
pub(crate) const REDUCE_ANGLE_64: &str = "__tilewright_reduce_angle_f64";
/// The remainder of any two fp64 numbers.
pub(crate) const REMAINDER: &str = "__tilewright_remainder";

/// Adds a function to a module.
type Definition = fn(&mut Module) -> FuncId;

/// Defines those of the functions that the module calls.
pub(crate) fn define<H: Hooks>(module: &mut Module) {
    let all: [(&str, Definition); 3] = [
        (REDUCE_ANGLE_32, define_reduce_angle_32),
        (REDUCE_ANGLE_64, define_reduce_angle_64::<H>),
        (REMAINDER, define_remainder),
    ];
    for (name, definition) in all {
        if module.declares(name) {
            definition(module);
        }
    }
}

/// Defines the function that reduces a large fp32 angle exactly: (x - k · π/2, k).
///
/// 2/π in fixed point is multiplied by the 24-bit significand. Bits that would make multiples of 4 quarter turns are left
/// out by starting at the word that the exponent says; 96 bits from there hold the quadrant and the fraction.
fn define_reduce_angle_32(module: &mut Module) -> FuncId {
    /// 0, then the words of 2/π after the binary point.
    const TWO_OVER_PI: [u32; 9] = [
        0,
        0xa2f9_836e,
        0x4e44_1529,
        0xfc27_57d1,
        0xf534_ddc0,
        0xdb62_9599,
        0x3c43_9041,
        0xfe51_63ab,
        0xdebb_c561,
    ];
    let mut b = Builder::new(module, REDUCE_ANGLE_32, &[Ty::F32], &[Ty::F32, Ty::I32], None, Loc::NONE);
    let x = b.arg(0);
    let bits = b.bitcast(x, Ty::I32);
    let exponent = b.lshr(bits, 23);
    let exponent = b.and_const(exponent, 0xff);
    let mantissa = b.and_const(bits, 0x7f_ffff);
    let implicit = b.i32(0x80_0000);
    let mantissa = b.or(mantissa, implicit);
    // x = mantissa · 2^(exponent - 150); two integer bits stay above the window.
    let start = b.add_const(exponent, 32 - 150 - 2);
    let word = b.lshr(start, 5);
    let shift = b.and_const(start, 31);
    let words: Vec<Value> = (0..4)
        .map(|j| {
            let mut w = b.i32(i64::from(TWO_OVER_PI[j]));
            for i in 1..5 {
                let here = b.i32(i as i64);
                let here = b.icmp(IntPred::Eq, word, here);
                let this = b.i32(i64::from(TWO_OVER_PI[i + j]));
                w = b.select(here, this, w);
            }
            w
        })
        .collect();
    let window: Vec<Value> = (0..3)
        .map(|j| b.intrinsic("llvm.fshl.i32", Effect::Pure, Some(Ty::I32), &[words[j], words[j + 1], shift]))
        .collect();
    let wide = |b: &mut Builder, v| b.int_cast(v, Ty::I64, false);
    let m = wide(&mut b, mantissa);
    let products: Vec<Value> = window
        .iter()
        .map(|&w| {
            let w = wide(&mut b, w);
            b.mul(w, m)
        })
        .collect();
    let carry = b.lshr(products[2], 32);
    let middle = b.add(products[1], carry);
    let high = b.shl(products[0], 32);
    // The quadrant in the top two bits, the fraction of a quarter turn below.
    let q = b.add(high, middle);
    let half = b.i64(1 << 61);
    let rounded = b.add(q, half);
    let k = b.lshr(rounded, 62);
    let whole = b.shl(k, 62);
    let rest = b.sub(q, whole);
    let f = b.cast(CastOp::SiToFp, rest, Ty::F64);
    let unit = b.float(Ty::F64, std::f64::consts::FRAC_PI_2 / (1u64 << 62) as f64);
    let r = b.bin(BinOp::FMul, f, unit);
    let r = b.cast(CastOp::FpTrunc, r, Ty::F32);
    finish_reduction(b, bits, exponent, r, k)
}

/// Ends the reduction of an angle with these bits and this stored exponent, of which `r` and `k` are what its magnitude
/// becomes: gives them the angle's sign, and NaN for infinity and NaN.
fn finish_reduction(mut b: Builder, bits: Value, exponent: Value, r: Value, k: Value) -> FuncId {
    let (int, float) = (b.ty(bits), b.ty(r));
    let k = b.int_cast(k, Ty::I32, false);
    let (zero, no_turn) = (b.constant(int, 0), b.i32(0));
    let negative = b.icmp(IntPred::Slt, bits, zero);
    let minus_r = b.fneg(r);
    let minus_k = b.sub(no_turn, k);
    let r = b.select(negative, minus_r, r);
    let k = b.select(negative, minus_k, k);
    let all_ones = b.constant(int, if float == Ty::F32 { 0xff } else { 0x7ff });
    let special = b.icmp(IntPred::Eq, exponent, all_ones);
    let nan = b.float(float, f64::NAN);
    let r = b.select(special, nan, r);
    b.ret(&[r, k]);
    b.finish()
}

/// 0, then the words of 2/π after the binary point.
const TWO_OVER_PI: [u64; 20] = [
    0,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];

/// [`TWO_OVER_PI`] in the program's memory.
fn two_over_pi(module: &mut Module) -> GlobalId {
    module.global(Global {
        name: "__tilewright_two_over_pi".into(),
        space: Space::Global,
        align: 8,
        init: Some(TWO_OVER_PI.iter().flat_map(|w| w.to_le_bytes()).collect()),
    })
}

/// Defines the function that reduces a large fp64 angle exactly: (x - k · π/2, k), for |x| ≥ 2^30.
///
/// As for fp32: 192 bits of 2/π, from where they begin to matter, are multiplied by the 53-bit significand. A multiple of π/2 is
/// never nearer than 2^-62 to a number of fp64, so that of the 128 bits kept below the quadrant at least 64 are significant.
fn define_reduce_angle_64<H: Hooks>(module: &mut Module) -> FuncId {
    let table = two_over_pi(module);
    let mut b = Builder::new(module, REDUCE_ANGLE_64, &[Ty::F64], &[Ty::F64, Ty::I32], None, Loc::NONE);
    let x = b.arg(0);
    let Parts { bits, exponent, mantissa } = parts(&mut b, x);
    // x = mantissa · 2^(exponent - 1075); two integer bits stay above the window. Infinity and NaN read the last words.
    let start = b.add_const(exponent, 64 - 1075 - 2);
    let last = b.i64(64 * 16 + 63);
    let start = b.intrinsic("llvm.umin.i64", Effect::Pure, Some(Ty::I64), &[start, last]);
    let byte = b.lshr(start, 6);
    let byte = b.shl(byte, 3);
    let shift = b.and_const(start, 63);
    let base = b.global(table);
    let base = b.ptr_add(base, byte);
    let words: Vec<Value> = (0..4)
        .map(|j| {
            let at = b.ptr_add_const(base, 8 * j);
            b.load(Ty::I64, at, 8)
        })
        .collect();
    let window: Vec<Value> = (0..3)
        .map(|j| b.intrinsic("llvm.fshl.i64", Effect::Pure, Some(Ty::I64), &[words[j], words[j + 1], shift]))
        .collect();
    let high = |b: &mut Builder, w| H::mul_high(b, w, mantissa);
    // The product's upper 128 of 192 bits: the quadrant in the top two, the fraction of a quarter turn below.
    let carried = high(&mut b, window[2]);
    let middle = b.mul(window[1], mantissa);
    let low = b.add(carried, middle);
    let carry = b.icmp(IntPred::Ult, low, carried);
    let carry = b.int_cast(carry, Ty::I64, false);
    let upper = b.mul(window[0], mantissa);
    let from_middle = high(&mut b, window[1]);
    let upper = b.add(upper, from_middle);
    let upper = b.add(upper, carry);
    let half = b.i64(1 << 61);
    let rounded = b.add(upper, half);
    let k = b.lshr(rounded, 62);
    let whole = b.shl(k, 62);
    let rest = b.sub(upper, whole);
    // |rest : low|, then shifted up until its first bit is the top one.
    let zero = b.i64(0);
    let negative = b.icmp(IntPred::Slt, rest, zero);
    let minus_low = b.sub(zero, low);
    let borrow = b.icmp(IntPred::Ne, low, zero);
    let borrow = b.int_cast(borrow, Ty::I64, false);
    let minus_rest = b.sub(zero, rest);
    let minus_rest = b.sub(minus_rest, borrow);
    let low = b.select(negative, minus_low, low);
    let rest = b.select(negative, minus_rest, rest);
    let short = b.icmp(IntPred::Eq, rest, zero);
    let top = b.select(short, low, rest);
    let below = b.select(short, zero, low);
    let no = b.constant(Ty::I1, 0);
    let leading = b.intrinsic("llvm.ctlz.i64", Effect::Pure, Some(Ty::I64), &[top, no]);
    let top = b.intrinsic("llvm.fshl.i64", Effect::Pure, Some(Ty::I64), &[top, below, leading]);
    let word = b.i64(64);
    let skipped = b.select(short, word, zero);
    let skipped = b.add(leading, skipped);
    // top · 2^-(62 + skipped) quarter turns: 53 bits of it and the 11 below, each exact, times π/2 in two parts.
    let head = b.and_const(top, !0x7ff);
    let tail = b.and_const(top, 0x7ff);
    let head = b.cast(CastOp::UiToFp, head, Ty::F64);
    let tail = b.cast(CastOp::UiToFp, tail, Ty::F64);
    let pi = b.float(Ty::F64, std::f64::consts::FRAC_PI_2);
    let pi_low = b.float(Ty::F64, 6.123_233_995_736_766e-17);
    let r = b.bin(BinOp::FMul, head, pi_low);
    let fma = |b: &mut Builder, x, y, z| b.intrinsic("llvm.fma.f64", Effect::Pure, Some(Ty::F64), &[x, y, z]);
    let r = fma(&mut b, tail, pi, r);
    let r = fma(&mut b, head, pi, r);
    let bias = b.i64(1023 - 62);
    let scale = b.sub(bias, skipped);
    let scale = b.shl(scale, 52);
    let scale = b.bitcast(scale, Ty::F64);
    let r = b.bin(BinOp::FMul, r, scale);
    let minus_r = b.fneg(r);
    let r = b.select(negative, minus_r, r);
    finish_reduction(b, bits, exponent, r, k)
}

/// Defines the remainder of |x| by |y|, exactly: long division of the significands, eleven bits of the quotient a step. NaN where x
/// is infinite, y is zero, or either is NaN.
fn define_remainder(module: &mut Module) -> FuncId {
    const BITS_A_STEP: i64 = 11;
    let mut b = Builder::new(module, REMAINDER, &[Ty::F64, Ty::F64], &[Ty::F64], None, Loc::NONE);
    let (x, y) = (b.arg(0), b.arg(1));
    let (px, py) = (parts(&mut b, x), parts(&mut b, y));
    let (zero, one) = (b.i64(0), b.i64(1));
    let by_zero = b.icmp(IntPred::Eq, py.mantissa, zero);
    let divisor = b.select(by_zero, one, py.mantissa);
    // Where y has the larger exponent, x is the remainder.
    let places = b.sub(px.exponent, py.exponent);
    let below = b.icmp(IntPred::Slt, places, zero);
    let first = b.bin(BinOp::URem, px.mantissa, divisor);
    let before = b.block();
    let header = b.create_block(before, Some(before), &[Ty::I64, Ty::I64]);
    let body = b.create_block(header, Some(before), &[]);
    let done = b.create_block(header, None, &[]);
    b.br(header, &[first, places]);
    b.switch_to(header);
    let (rest, left) = (b.params(header)[0], b.params(header)[1]);
    let more = b.icmp(IntPred::Sgt, left, zero);
    b.cond_br(more, body, &[], done, &[]);
    b.switch_to(body);
    let most = b.i64(BITS_A_STEP);
    let step = b.intrinsic("llvm.smin.i64", Effect::Pure, Some(Ty::I64), &[left, most]);
    let next = b.bin(BinOp::Shl, rest, step);
    let next = b.bin(BinOp::URem, next, divisor);
    let left = b.sub(left, step);
    b.br(header, &[next, left]);
    b.switch_to(done);
    // rest · 2^(exponent of y - 1075), in two factors, neither of which is a denormal.
    let rest = b.cast(CastOp::UiToFp, rest, Ty::F64);
    let unit = b.float(Ty::F64, 2f64.powi(-52));
    let rest = b.bin(BinOp::FMul, rest, unit);
    let scale = b.shl(py.exponent, 52);
    let scale = b.bitcast(scale, Ty::F64);
    let r = b.bin(BinOp::FMul, rest, scale);
    let magnitude = b.intrinsic("llvm.fabs.f64", Effect::Pure, Some(Ty::F64), &[x]);
    let r = b.select(below, magnitude, r);
    let infinity = b.float(Ty::F64, f64::INFINITY);
    let finite = b.fcmp(FloatPred::Olt, magnitude, infinity);
    let number = b.fcmp(FloatPred::Ord, y, y);
    let nonzero = b.icmp(IntPred::Ne, py.mantissa, zero);
    let good = b.and(finite, number);
    let good = b.and(good, nonzero);
    let nan = b.float(Ty::F64, f64::NAN);
    let r = b.select(good, r, nan);
    b.ret(&[r]);
    b.finish()
}

/// A fp64 number: ± mantissa · 2^(exponent - 1075), with the exponent of denormals as 1.
struct Parts {
    bits: Value,
    exponent: Value,
    mantissa: Value,
}

fn parts(b: &mut Builder, x: Value) -> Parts {
    let bits = b.bitcast(x, Ty::I64);
    let exponent = b.lshr(bits, 52);
    let exponent = b.and_const(exponent, 0x7ff);
    let fraction = b.and_const(bits, (1 << 52) - 1);
    let (zero, one, implicit) = (b.i64(0), b.i64(1), b.i64(1 << 52));
    let denormal = b.icmp(IntPred::Eq, exponent, zero);
    let with_bit = b.or(fraction, implicit);
    let mantissa = b.select(denormal, fraction, with_bit);
    let exponent = b.select(denormal, one, exponent);
    Parts { bits, exponent, mantissa }
}
