//! Logarithms, trigonometric functions, `erf`, `tanh`, and fp64 exponentials, by polynomials of our own.
//!
//! Each is a range reduction and a near-minimax polynomial (Chebyshev interpolation computed with 40 digits). Errors,
//! measured against the exact functions over all binades: fp32 at most about 2 ulp, fp64 at most about 2 ulp; the large
//! arguments of `sin`, `cos` and `tan` are reduced exactly (Payne and Hanek, "Radian reduction for trigonometric functions", 1983).

// Coefficients stand as they were computed.
#![allow(clippy::excessive_precision)]

use tilewright_ir::dialect::math;
use tilewright_llvm::{BinOp, CastOp, Effect, FloatPred, IntPred, Ty, Value};

use crate::rare::{REDUCE_ANGLE_32, REDUCE_ANGLE_64};
use crate::{Approximation, Hooks, Lower, Result};

const LN2_HI_32: f64 = 0.693145751953125;
const LN2_LO_32: f64 = 1.428_606_820_309_417_2e-6;
const LN2_HI_64: f64 = 0.693_147_180_369_123_8;
const LN2_LO_64: f64 = 1.908_214_929_270_587_8e-10;
/// (log(1 + f) - f) / f² on [-1/3, 1/3].
const LOG_32: [f64; 9] = [
    -0.5,
    0.333_332_726_197_199_45,
    -0.249_999_441_862_439_84,
    0.200_072_339_849_172_32,
    -0.166_733_162_532_022_5,
    0.140_558_126_531_333_44,
    -0.122_887_216_092_967_25,
    0.137_483_091_395_326_31,
    -0.124_222_005_754_096_93,
];
/// (log((1+s)/(1-s)) - 2s) / s³ as a function of s².
const LOG_64: [f64; 9] = [
    0.666_666_666_666_666_7,
    0.399_999_999_999_998_64,
    0.285_714_285_715_145_27,
    0.222_222_222_012_236_16,
    0.181_818_207_435_174_24,
    0.153_844_402_045_390_82,
    0.133_403_457_950_793_54,
    0.116_022_163_566_710_28,
    0.125_225_582_147_034_5,
];
/// (sin r - r) / r³ as a function of r², |r| ≤ π/4.
const SIN_32: [f64; 4] = [
    -0.166_666_666_636_240_23,
    0.008_333_331_785_671_73,
    -0.000_198_400_391_130_122_14,
    2.724_381_197_525_810_6e-6,
];
/// (cos r - 1 + r²/2) / r⁴ as a function of r².
const COS_32: [f64; 4] = [
    0.041_666_666_664_128_206,
    -0.001_388_888_759_770_674_6,
    2.480_056_063_060_634_4e-5,
    -2.729_585_633_954_600_2e-7,
];
const SIN_64: [f64; 7] = [
    -0.166_666_666_666_666_67,
    0.008_333_333_333_333_331,
    -0.000_198_412_698_412_645_7,
    2.755_731_921_895_673e-6,
    -2.505_210_610_092_667_4e-8,
    1.605_851_097_953_535e-10,
    -7.585_492_507_821_24e-13,
];
const COS_64: [f64; 7] = [
    0.041_666_666_666_666_664,
    -0.001_388_888_888_888_888_8,
    2.480_158_730_158_437e-5,
    -2.755_731_922_119_02e-7,
    2.087_675_571_795_729_4e-9,
    -1.147_044_941_240_971e-11,
    4.745_202_155_702_359e-14,
];
/// (e^r - 1 - r) / r², |r| ≤ ln 2 / 2.
const EXP_64: [f64; 11] = [
    0.5,
    0.166_666_666_666_666_7,
    0.041_666_666_666_666_67,
    0.008_333_333_333_326_141,
    0.001_388_888_888_888_375_2,
    0.000_198_412_698_748_005,
    2.480_158_732_553_336_4e-5,
    2.755_725_542_574_643_4e-6,
    2.755_727_366_134_863_6e-7,
    2.510_520_637_395_701e-8,
    2.091_467_937_658_394e-9,
];
/// erf(x) / x - 1 as a function of x², |x| ≤ 0.9.
const ERF_NEAR: [f64; 7] = [
    0.128_379_166_789_222_36,
    -0.376_126_351_939_678_27,
    0.112_837_180_495_896_94,
    -0.026_860_664_791_130_85,
    0.005_204_226_693_752_302,
    -0.000_817_963_218_088_826_5,
    8.529_401_322_836_863e-5,
];
/// -log2(1 - erf(x)), 0.9 ≤ x ≤ 4.
const ERF_FAR: [f64; 9] = [
    -0.000_459_555_591_288_606_2,
    1.630_578_738_429_192_5,
    0.911_529_233_366_213_7,
    0.158_822_209_168_576_08,
    -0.038_127_021_063_810_476,
    0.006_871_016_670_176_165,
    -0.000_862_134_027_216_968_8,
    6.660_036_990_693_954e-5,
    -2.370_439_787_942_974_7e-6,
];
/// erf(x) / x - 1 as a function of x², |x| ≤ 1.
const ERF_NEAR_64: [f64; 14] = [
    0.128_379_167_095_512_57,
    -0.376_126_389_031_837_52,
    0.112_837_916_709_551_2,
    -0.026_866_170_645_129_84,
    0.005_223_977_625_423_298,
    -0.000_854_832_702_193_482_9,
    0.000_120_553_329_028_887_35,
    -1.492_564_756_751_933_2e-5,
    1.646_204_544_146_842e-6,
    -1.636_464_215_816_761_4e-7,
    1.479_240_120_940_481_3e-8,
    -1.216_456_005_728_345e-9,
    8.709_045_129_053_107e-11,
    -4.230_945_824_295_338e-12,
];
/// e^(x²) · (1 - erf(x)) as a function of u = (x - 3) / (x + 3), 0.98 ≤ x ≤ 6.1.
const ERFC_FAR_64: [f64; 17] = [
    0.179_001_151_181_389_95,
    -0.326_233_560_043_037_25,
    0.245_603_801_712_330_92,
    -0.150_115_936_500_775_4,
    0.071_665_837_197_972_99,
    -0.024_392_499_318_819_77,
    0.004_269_136_333_081_166,
    0.000_707_746_444_462_907_5,
    -0.000_597_061_952_795_925_7,
    4.525_518_730_633_738e-5,
    6.405_656_555_507_25e-5,
    -1.285_923_429_685_983_4e-5,
    -7.977_555_208_206_863e-6,
    2.112_023_413_349_71e-6,
    1.245_311_529_820_431e-6,
    -2.686_675_644_349_46e-7,
    -2.026_929_103_297_870_2e-7,
];
/// (tanh x - x) / x³ as a function of x², |x| ≤ 0.55.
const TANH_NEAR: [f64; 5] = [
    -0.333_333_320_079_769_8,
    0.133_331_137_290_208_72,
    -0.053_909_428_827_460_545,
    0.021_309_388_664_443_474,
    -0.006_610_227_831_114_734_5,
];

impl<H: Hooks> Lower<'_, H> {
    /// A function without an instruction of its own.
    pub(crate) fn unary_series(&mut self, kind: math::Kind, x: Value) -> Result<Value> {
        use math::Kind as K;
        let double = self.b.ty(x) == Ty::F64;
        Ok(match kind {
            K::Log | K::Log2 if double => self.log64(x, kind == K::Log2),
            K::Log | K::Log2 => self.log32(x, kind == K::Log2),
            K::Exp | K::Exp2 => self.exp64(x, kind == K::Exp2),
            K::Sin | K::Cos | K::Tan if double => self.sincos64(x, kind),
            K::Sin | K::Cos | K::Tan => self.sincos32(x, kind),
            K::Tanh if double => self.tanh64(x),
            K::Tanh => self.tanh32(x),
            K::Erf if double => self.erf64(x),
            K::Erf => self.erf32(x),
            _ => return Err(self.unsupported(format!("the function `{}`", kind.def().name))),
        })
    }

    fn num(&mut self, like: Value, value: f64) -> Value {
        let ty = self.b.ty(like);
        self.b.float(ty, value)
    }

    fn fadd(&mut self, a: Value, b: Value) -> Value {
        self.b.bin(BinOp::FAdd, a, b)
    }

    fn fsub(&mut self, a: Value, b: Value) -> Value {
        self.b.bin(BinOp::FSub, a, b)
    }

    fn less(&mut self, a: Value, limit: f64) -> Value {
        let limit = self.num(a, limit);
        self.b.fcmp(FloatPred::Olt, a, limit)
    }

    /// Horner's rule; coefficients from the constant term up.
    fn polynomial(&mut self, x: Value, coefficients: &[f64]) -> Value {
        let mut sum = self.num(x, coefficients[coefficients.len() - 1]);
        for &c in coefficients.iter().rev().skip(1) {
            let c = self.num(x, c);
            sum = self.fma(sum, x, c);
        }
        sum
    }

    /// 2^n · m = x with m in [2/3, 4/3): (m - 1, n as a float). x is positive and finite.
    fn split_exponent(&mut self, x: Value) -> (Value, Value) {
        let ty = self.b.ty(x);
        let (int, least, up, steps, middle, mantissa) = if ty == Ty::F64 {
            (Ty::I64, 2f64.powi(-1022), 2f64.powi(54), -54.0, 0x3fe5_5555_5555_5555u64, 52)
        } else {
            (Ty::I32, 2f64.powi(-126), 2f64.powi(24), -24.0, 0x3f2a_aaab, 23)
        };
        // Denormals are scaled up first.
        let tiny = self.less(x, least);
        let (scale, steps) = (self.num(x, up), self.num(x, steps));
        let scaled = self.fmul(x, scale);
        let zero = self.num(x, 0.0);
        let x = self.b.select(tiny, scaled, x);
        let bias = self.b.select(tiny, steps, zero);
        let bits = self.b.bitcast(x, int);
        let above = self.b.add_const(bits, -(middle as i64));
        let shift = self.b.constant(int, mantissa);
        let exponent = self.b.bin(BinOp::AShr, above, shift);
        let high = self.b.bin(BinOp::Shl, exponent, shift);
        let m = self.b.sub(bits, high);
        let m = self.b.bitcast(m, ty);
        let n = self.b.cast(CastOp::SiToFp, exponent, ty);
        let n = self.fadd(n, bias);
        let one = self.num(x, 1.0);
        (self.fsub(m, one), n)
    }

    /// Puts in what a logarithm is at 0, below, at infinity and at NaN.
    fn log_ends(&mut self, x: Value, r: Value) -> Value {
        let (zero, inf) = (self.num(x, 0.0), self.num(x, f64::INFINITY));
        let (minus_inf, nan) = (self.num(x, f64::NEG_INFINITY), self.num(x, f64::NAN));
        // NaN and infinity are their own logarithms.
        let ordinary = self.b.fcmp(FloatPred::Olt, x, inf);
        let r = self.b.select(ordinary, r, x);
        let is_zero = self.b.fcmp(FloatPred::Oeq, x, zero);
        let r = self.b.select(is_zero, minus_inf, r);
        let negative = self.b.fcmp(FloatPred::Olt, x, zero);
        self.b.select(negative, nan, r)
    }

    fn log32(&mut self, x: Value, base2: bool) -> Value {
        let (f, n) = self.split_exponent(x);
        let p = self.polynomial(f, &LOG_32);
        let f2 = self.fmul(f, f);
        let r = if base2 {
            // log2 e = hi + lo, so that the product with f keeps its low bits.
            let (hi, lo) = (self.num(x, 1.442_695_021_629_333_5), self.num(x, 1.925_963e-8));
            let tail = self.fmul(f2, p);
            let low = self.fmul(f, lo);
            let low = self.fma(tail, hi, low);
            let high = self.fma(f, hi, low);
            self.fadd(high, n)
        } else {
            let (hi, lo) = (self.num(x, LN2_HI_32), self.num(x, LN2_LO_32));
            let tail = self.fmul(f2, p);
            let tail = self.fma(n, lo, tail);
            let sum = self.fadd(f, tail);
            self.fma(n, hi, sum)
        };
        self.log_ends(x, r)
    }

    fn log64(&mut self, x: Value, base2: bool) -> Value {
        let (f, n) = self.split_exponent(x);
        let two = self.num(x, 2.0);
        let denominator = self.fadd(f, two);
        let s = self.b.bin(BinOp::FDiv, f, denominator);
        let z = self.fmul(s, s);
        let p = self.polynomial(z, &LOG_64);
        // log(1 + f) = f - s · (f - z · p), which loses nothing to the rounding of s.
        let zp = self.fmul(z, p);
        let inner = self.fsub(f, zp);
        let sf = self.fmul(s, inner);
        let r = if base2 {
            let (hi, lo) = (self.num(x, std::f64::consts::LOG2_E), self.num(x, 2.035_527_374_093_103_3e-17));
            let log = self.fsub(f, sf);
            let low = self.fmul(log, lo);
            let high = self.fma(log, hi, low);
            self.fadd(high, n)
        } else {
            let (hi, lo) = (self.num(x, LN2_HI_64), self.num(x, LN2_LO_64));
            let minus = self.b.fneg(sf);
            let tail = self.fma(n, lo, minus);
            let sum = self.fadd(f, tail);
            self.fma(n, hi, sum)
        };
        self.log_ends(x, r)
    }

    fn exp64(&mut self, x: Value, base2: bool) -> Value {
        let ty = Ty::F64;
        let (r, n) = if base2 {
            let n = self.llvm_unary("rint", x);
            let f = self.fsub(x, n);
            let ln2 = self.num(x, std::f64::consts::LN_2);
            (self.fmul(f, ln2), n)
        } else {
            let log2e = self.num(x, std::f64::consts::LOG2_E);
            let n = self.fmul(x, log2e);
            let n = self.llvm_unary("rint", n);
            let (hi, lo) = (self.num(x, -LN2_HI_64), self.num(x, -LN2_LO_64));
            let r = self.fma(n, hi, x);
            (self.fma(n, lo, r), n)
        };
        let p = self.polynomial(r, &EXP_64);
        let r2 = self.fmul(r, r);
        let tail = self.fma(r2, p, r);
        let one = self.num(x, 1.0);
        let e = self.fadd(tail, one);
        // 2^n in two factors: n reaches below the least exponent and above the greatest.
        let (lo, hi) = (self.num(x, -1100.0), self.num(x, 1100.0));
        let n = self.b.intrinsic("llvm.maxnum.f64", Effect::Pure, Some(ty), &[n, lo]);
        let n = self.b.intrinsic("llvm.minnum.f64", Effect::Pure, Some(ty), &[n, hi]);
        let n = self.b.cast(CastOp::FpToSi, n, Ty::I32);
        let one_bit = self.b.i32(1);
        let half = self.b.bin(BinOp::AShr, n, one_bit);
        let rest = self.b.sub(n, half);
        let mut result = e;
        for part in [half, rest] {
            let biased = self.b.add_const(part, 1023);
            let wide = self.b.int_cast(biased, Ty::I64, true);
            let bits = self.b.shl(wide, 52);
            let factor = self.b.bitcast(bits, ty);
            result = self.fmul(result, factor);
        }
        // NaN went through a minimum that drops it; infinities through differences of infinities.
        let (limit_hi, limit_lo) = if base2 { (1024.0, -1080.0) } else { (709.8, -750.0) };
        let (zero, inf) = (self.num(x, 0.0), self.num(x, f64::INFINITY));
        let hi = self.num(x, limit_hi);
        let over = self.b.fcmp(FloatPred::Oge, x, hi);
        let result = self.b.select(over, inf, result);
        let under = self.less(x, limit_lo);
        let result = self.b.select(under, zero, result);
        let nan = self.b.fcmp(FloatPred::Uno, x, x);
        self.b.select(nan, x, result)
    }

    /// The sine or cosine of r + k · π/2.
    fn quadrant(&mut self, r: Value, k: Value, kind: math::Kind, sin: &[f64], cos: &[f64]) -> Value {
        let z = self.fmul(r, r);
        let p = self.polynomial(z, sin);
        let s = self.odd_series(r, z, p);
        let p = self.polynomial(z, cos);
        let (half, one) = (self.num(r, -0.5), self.num(r, 1.0));
        let z2 = self.fmul(z, z);
        let low = self.fmul(z2, p);
        let c = self.fma(z, half, low);
        let c = self.fadd(c, one);
        let odd = self.b.and_const(k, 1);
        let zero = self.b.i32(0);
        let odd = self.b.icmp(IntPred::Ne, odd, zero);
        let two = self.b.and_const(k, 2);
        let two = self.b.icmp(IntPred::Ne, two, zero);
        let (minus_s, minus_c) = (self.b.fneg(s), self.b.fneg(c));
        match kind {
            math::Kind::Sin => {
                let v = self.b.select(odd, c, s);
                let minus = self.b.fneg(v);
                self.b.select(two, minus, v)
            }
            math::Kind::Cos => {
                let v = self.b.select(odd, minus_s, c);
                let minus = self.b.fneg(v);
                self.b.select(two, minus, v)
            }
            _ => {
                // tan: s/c, or -c/s a quarter turn on.
                let n = self.b.select(odd, minus_c, s);
                let d = self.b.select(odd, s, c);
                self.b.bin(BinOp::FDiv, n, d)
            }
        }
    }

    /// x + x·z·p(z), z = x². A zero added to x·z is positive, and p(0) is negative: -0 stays -0.
    fn odd_series(&mut self, x: Value, z: Value, p: Value) -> Value {
        let zero = self.num(x, 0.0);
        let xz = self.fma(x, z, zero);
        self.fma(xz, p, x)
    }

    /// `(r, k)` with x = k · π/2 + r, |r| ≤ π/4, for |x| far below 2^(mantissa bits - 1).
    ///
    /// A sum with 1.5 · 2^(mantissa bits) has the nearest integer in its low bits. The integer so found of -0 is +0, and π/2's parts
    /// are all subtracted: -0 stays -0.
    fn quarter_turns(&mut self, x: Value, magic: f64, parts: [f64; 3]) -> (Value, Value) {
        let (scale, magic) = (self.num(x, std::f64::consts::FRAC_2_PI), self.num(x, magic));
        let shifted = self.fma(x, scale, magic);
        let turns = self.fsub(shifted, magic);
        let mut r = x;
        for part in parts {
            let part = self.num(x, -part);
            r = self.fma(turns, part, r);
        }
        let bits = if self.b.ty(x) == Ty::F64 { Ty::I64 } else { Ty::I32 };
        let k = self.b.bitcast(shifted, bits);
        (r, self.b.int_cast(k, Ty::I32, false))
    }

    fn sincos32(&mut self, x: Value, kind: math::Kind) -> Value {
        // π/2 in three fp32 parts: exact enough while k stays below 2^16.
        let parts = [1.570_796_251_296_997, 7.549_789_415_861_596e-8, 5.390_302_858_158_119e-15];
        let (r, k) = self.quarter_turns(x, 12_582_912.0, parts);
        let (r, k) = self.reduced(x, 102_000.0, r, k, REDUCE_ANGLE_32);
        self.quadrant(r, k, kind, &SIN_32, &COS_32)
    }

    fn sincos64(&mut self, x: Value, kind: math::Kind) -> Value {
        let parts = [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_765e-17, 1.082_856_673_921_913_9e-32];
        let (r, k) = self.quarter_turns(x, 6_755_399_441_055_744.0, parts);
        let (r, k) = self.reduced(x, (1u64 << 30) as f64, r, k, REDUCE_ANGLE_64);
        self.quadrant(r, k, kind, &SIN_64, &COS_64)
    }

    /// `(r, k)` for a magnitude below the limit, and what the function gives above. Large angles are rare: a branch to it.
    fn reduced(&mut self, x: Value, limit: f64, r: Value, k: Value, function: &str) -> (Value, Value) {
        let ty = self.b.ty(x);
        let magnitude = self.llvm_unary("fabs", x);
        let limit = self.num(x, limit);
        let large = self.b.fcmp(FloatPred::Uge, magnitude, limit);
        let results = self.rarely(large, &[r, k], function, &[x], &[ty, Ty::I32]);
        (results[0], results[1])
    }

    /// The values, or where the condition holds what a function gives instead.
    pub(crate) fn rarely(
        &mut self,
        condition: Value,
        usual: &[Value],
        function: &str,
        args: &[Value],
        results: &[Ty],
    ) -> Vec<Value> {
        let here = self.b.block();
        let preheader = self.b.preheader();
        let slow = self.b.create_block(here, preheader, &[]);
        let join = self.b.create_block(here, preheader, results);
        self.b.cond_br(condition, slow, &[], join, usual);
        self.b.switch_to(slow);
        let params: Vec<Ty> = args.iter().map(|&a| self.b.ty(a)).collect();
        let callee = self.b.module.declare(function, &params, results);
        let exact = self.b.call(callee, args);
        self.b.br(join, &exact);
        self.b.switch_to(join);
        self.b.params(join).to_vec()
    }

    /// The number with the sign of `from`.
    pub(crate) fn copysign(&mut self, x: Value, from: Value) -> Value {
        let ty = self.b.ty(x);
        self.b.intrinsic(&format!("llvm.copysign.{}", ty.mangled()), Effect::Pure, Some(ty), &[x, from])
    }

    fn tanh32(&mut self, x: Value) -> Value {
        let a = self.llvm_unary("fabs", x);
        let z = self.fmul(x, x);
        let p = self.polynomial(z, &TANH_NEAR);
        let near = self.odd_series(x, z, p);
        // 1 - 2 / (e^2a + 1); e^2a overflows to infinity, and the quotient to 0.
        let scale = self.num(x, 2.0 * std::f64::consts::LOG2_E);
        let e = self.fmul(a, scale);
        let e = H::approximate(self, Approximation::Exp2, e);
        let one = self.num(x, 1.0);
        let d = self.fadd(e, one);
        let inverse = H::approximate(self, Approximation::Reciprocal, d);
        let minus_two = self.num(x, -2.0);
        let far = self.fma(inverse, minus_two, one);
        let far = self.copysign(far, x);
        let is_near = self.less(a, 0.55);
        let r = self.b.select(is_near, near, far);
        let nan = self.b.fcmp(FloatPred::Uno, x, x);
        self.b.select(nan, x, r)
    }

    fn tanh64(&mut self, x: Value) -> Value {
        // (e - 1) / (e + 1) of e = exp(2|x|) loses bits near 0, where the series of tanh takes over.
        let a = self.llvm_unary("fabs", x);
        let two = self.num(x, 2.0);
        let twice = self.fmul(a, two);
        let e = self.exp64(twice, false);
        let one = self.num(x, 1.0);
        let d = self.fadd(e, one);
        let q = self.b.bin(BinOp::FDiv, two, d);
        let far = self.fsub(one, q);
        let far = self.copysign(far, x);
        let z = self.fmul(x, x);
        // Taylor's series: |x| < 0.1, next term below 2^-53.
        let series = [
            -1.0 / 3.0,
            2.0 / 15.0,
            -17.0 / 315.0,
            62.0 / 2835.0,
            -1382.0 / 155_925.0,
            21844.0 / 6_081_075.0,
            -929_569.0 / 638_512_875.0,
        ];
        let p = self.polynomial(z, &series);
        let near = self.odd_series(x, z, p);
        let is_near = self.less(a, 0.1);
        let r = self.b.select(is_near, near, far);
        let nan = self.b.fcmp(FloatPred::Uno, x, x);
        self.b.select(nan, x, r)
    }

    fn erf64(&mut self, x: Value) -> Value {
        let a = self.llvm_unary("fabs", x);
        let z = self.fmul(x, x);
        let p = self.polynomial(z, &ERF_NEAR_64);
        let near = self.fma(x, p, x);
        let (three, limit) = (self.num(x, 3.0), self.num(x, 6.0));
        let c = self.b.intrinsic("llvm.minnum.f64", Effect::Pure, Some(Ty::F64), &[a, limit]);
        let (n, d) = (self.fsub(c, three), self.fadd(c, three));
        let u = self.b.bin(BinOp::FDiv, n, d);
        let q = self.polynomial(u, &ERFC_FAR_64);
        let c2 = self.fmul(c, c);
        let minus = self.b.fneg(c2);
        let e = self.exp64(minus, false);
        let one = self.num(x, 1.0);
        let minus_q = self.b.fneg(q);
        let far = self.fma(minus_q, e, one);
        let far = self.copysign(far, x);
        let is_near = self.less(a, 1.0);
        let r = self.b.select(is_near, near, far);
        let nan = self.b.fcmp(FloatPred::Uno, x, x);
        self.b.select(nan, x, r)
    }

    fn erf32(&mut self, x: Value) -> Value {
        let a = self.llvm_unary("fabs", x);
        let z = self.fmul(x, x);
        let p = self.polynomial(z, &ERF_NEAR);
        let near = self.fma(x, p, x);
        let four = self.num(x, 4.0);
        let ty = self.b.ty(x);
        let clamped = self.b.intrinsic("llvm.minnum.f32", Effect::Pure, Some(ty), &[a, four]);
        let q = self.polynomial(clamped, &ERF_FAR);
        let q = self.b.fneg(q);
        let tail = H::approximate(self, Approximation::Exp2, q);
        let one = self.num(x, 1.0);
        let far = self.fsub(one, tail);
        let far = self.copysign(far, x);
        let is_near = self.less(a, 0.9);
        let r = self.b.select(is_near, near, far);
        let nan = self.b.fcmp(FloatPred::Uno, x, x);
        self.b.select(nan, x, r)
    }
}
