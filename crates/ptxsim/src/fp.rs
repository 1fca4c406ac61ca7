//! Floating-point arithmetic with the ISA's rounding modes.
//!
//! Narrow formats stand on one idea: an operation is done in f64 and *rounded to odd* (when it was inexact and the last
//! bit is even, the neighbour on the exact result's side is taken). From such a value any rounding to a format with at
//! most 51 bits is correct (Boldo & Melquiond, "Emulation of a FMA and correctly rounded sums"). Single and double
//! precision have [`Directed`].

use rustc_apfloat::Float;
use std::cmp::Ordering;

/// Rounding modes (PTX ISA §9.7.3, §9.7.9.21).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Round {
    /// To nearest, ties to even.
    Rn,
    /// Towards zero.
    Rz,
    /// Down.
    Rm,
    /// Up.
    Rp,
    /// To nearest, ties away from zero.
    Rna,
}

impl Round {
    pub fn from_bits(b: u32) -> Round {
        match b & 7 {
            1 => Round::Rz,
            2 => Round::Rm,
            3 => Round::Rp,
            4 => Round::Rna,
            _ => Round::Rn,
        }
    }
}

/// The NaN that single-precision instructions return.
pub(crate) const NAN32: u32 = 0x7fff_ffff;

/// A subnormal becomes zero of its sign.
#[inline(always)]
pub(crate) fn ftz32(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE { 0f32.copysign(x) } else { x }
}

/// Whether `.ftz` flushes an operation whose exact result has this size, in units of the smallest normal number: it
/// does when that is below one once it is rounded to `fraction` bits with no limit to the exponent.
pub(crate) fn flushes(units: f64, negative: bool, fraction: i32, mode: Round) -> bool {
    let outward = match mode {
        Round::Rm => negative,
        Round::Rp => !negative,
        Round::Rn | Round::Rna | Round::Rz => false,
    };
    // The number below one, and the middle between them, which ties to one.
    let below = 1.0 - 0.5f64.powi(fraction + 1);
    match mode {
        Round::Rz => units < 1.0,
        Round::Rn | Round::Rna => units < 1.0 - 0.5f64.powi(fraction + 2),
        _ if outward => units <= below,
        _ => units < 1.0,
    }
}

/// NaN in its one form.
#[inline(always)]
pub(crate) fn canon32(x: f32) -> u32 {
    if x.is_nan() { NAN32 } else { x.to_bits() }
}

/// Moves an inexact even result to its odd neighbour on the side of the error.
fn odd(r: f64, err: f64) -> f64 {
    if err == 0.0 || !r.is_finite() || !err.is_finite() {
        return r;
    }
    let bits = r.to_bits();
    if bits & 1 != 0 {
        return r;
    }
    // Away from zero when the error has the result's sign.
    let out = (err > 0.0) == (r > 0.0);
    if r == 0.0 {
        return err;
    }
    f64::from_bits(if out { bits + 1 } else { bits - 1 })
}

fn two_sum_err(a: f64, b: f64, s: f64) -> f64 {
    let bb = s - a;
    (a - (s - bb)) + (b - bb)
}

/// `a + b`, rounded to odd.
pub(crate) fn add_odd(a: f64, b: f64) -> f64 {
    let s = a + b;
    odd(s, two_sum_err(a, b, s))
}

/// `a × b + c` of values with at most 26 bits, rounded to odd.
pub(crate) fn fma_odd(a: f64, b: f64, c: f64) -> f64 {
    add_odd(a * b, c)
}

/// A binary format by its exponent and fraction widths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    pub exp: u32,
    pub man: u32,
}

pub(crate) const F32: Format = Format { exp: 8, man: 23 };
pub(crate) const F16: Format = Format { exp: 5, man: 10 };
pub(crate) const BF16: Format = Format { exp: 8, man: 7 };
pub(crate) const TF32: Format = Format { exp: 8, man: 10 };
pub(crate) const E5M2: Format = Format { exp: 5, man: 2 };

impl Format {
    pub fn inf(self) -> u64 {
        ((1 << self.exp) - 1) << self.man
    }
    pub fn nan(self) -> u64 {
        self.inf() | ((1 << self.man) - 1)
    }
    fn sign(self) -> u64 {
        1 << (self.exp + self.man)
    }

    /// Rounds `x` (exact, or rounded to odd) to this format. With `saturate`, overflow gives the largest finite value.
    pub fn encode(self, x: f64, mode: Round, saturate: bool) -> u64 {
        if x.is_nan() {
            return self.nan();
        }
        let neg = x.is_sign_negative();
        let sign = if neg { self.sign() } else { 0 };
        let m = self.magnitude(x.abs(), neg, mode);
        if m < self.inf() {
            return sign | m;
        }
        let largest = self.inf() - 1;
        let exact_inf = x.is_infinite();
        let to_inf = match mode {
            Round::Rn | Round::Rna => true,
            Round::Rz => false,
            Round::Rm => neg,
            Round::Rp => !neg,
        };
        sign | if saturate || !(to_inf || exact_inf) { largest } else { self.inf() }
    }

    /// Rounds `x` to this format by random bits, `bits` of them: away from zero where their sum with as many of those that are cut off carries
    /// (`.rs`, PTX ISA §9.7.9.21). With `saturate`, overflow gives the largest finite value.
    pub fn encode_stochastic(self, x: f64, random: u32, bits: u32, saturate: bool) -> u64 {
        if x.is_nan() {
            return self.nan();
        }
        let sign = if x.is_sign_negative() { self.sign() } else { 0 };
        sign | self.stochastic_magnitude(x.abs(), random, bits).min(self.inf() - u64::from(saturate))
    }

    /// Exponent and fraction of `a ≥ 0`, rounded by random bits; may run past infinity's encoding.
    pub fn stochastic_magnitude(self, a: f64, random: u32, bits: u32) -> u64 {
        let (m, rem) = self.truncated(a);
        let cut = (rem * f64::from(1u32 << bits)) as u32;
        m + u64::from((random & ((1 << bits) - 1)) + cut >= 1 << bits)
    }

    /// Exponent and fraction of `a ≥ 0`, rounded; may run past infinity's encoding.
    pub fn magnitude(self, a: f64, neg: bool, mode: Round) -> u64 {
        let (n, rem) = self.truncated(a);
        let up = match mode {
            Round::Rn => rem > 0.5 || (rem == 0.5 && n & 1 != 0),
            Round::Rna => rem >= 0.5,
            Round::Rz => false,
            Round::Rm => neg && rem > 0.0,
            Round::Rp => !neg && rem > 0.0,
        };
        n + u64::from(up)
    }

    /// Exponent and fraction of `a ≥ 0` without what they can't hold, and that, as a part of the last place; may run past infinity's encoding.
    fn truncated(self, a: f64) -> (u64, f64) {
        if a == 0.0 {
            return (0, 0.0);
        }
        if a.is_infinite() {
            return (u64::MAX >> 1, 0.0);
        }
        let emin = 2 - (1 << (self.exp - 1));
        let e = ((a.to_bits() >> 52) as i32 - 1023).max(emin);
        let scaled = scale(a, self.man as i32 - e);
        let floor = scaled.floor();
        ((((e - emin) as u64) << self.man) + floor as u64, scaled - floor)
    }

    /// The value of an encoding.
    pub fn decode(self, bits: u64) -> f64 {
        let m = bits & ((1 << self.man) - 1);
        let e = (bits >> self.man) & ((1 << self.exp) - 1);
        let bias = (1 << (self.exp - 1)) - 1;
        let v = if e == (1 << self.exp) - 1 {
            if m != 0 { f64::NAN } else { f64::INFINITY }
        } else if e == 0 {
            scale(m as f64, 1 - bias - self.man as i32)
        } else {
            scale((m | 1 << self.man) as f64, e as i32 - bias - self.man as i32)
        };
        if bits & self.sign() != 0 { -v } else { v }
    }
}

/// `x × 2^e`, exact while the result is normal.
fn scale(x: f64, e: i32) -> f64 {
    if (-1022..=1023).contains(&e) {
        return x * f64::from_bits(((e + 1023) as u64) << 52);
    }
    let h = e / 2;
    scale(scale(x, h), e - h)
}

/// f32 → bf16, to nearest even.
#[inline(always)]
pub(crate) fn f32_to_bf16(x: f32) -> u16 {
    let b = x.to_bits();
    if x.is_nan() {
        return 0x7fff;
    }
    ((b + 0x7fff + (b >> 16 & 1)) >> 16) as u16
}

#[inline(always)]
pub(crate) fn bf16_to_f32(b: u16) -> f32 {
    f32::from_bits(u32::from(b) << 16)
}

/// f32 → f16, to nearest even.
#[inline(always)]
pub(crate) fn f32_to_f16(x: f32) -> u16 {
    if x.is_nan() { 0x7fff } else { half::f16::from_f32(x).to_bits() }
}

/// f16 → f32 without a branch, so that loops over it vectorize.
#[inline(always)]
pub(crate) fn f16_to_f32(b: u16) -> f32 {
    let m = u32::from(b & 0x7fff) << 13;
    // 2^112 corrects the exponent's bias; subnormals come out right too.
    let f = f32::from_bits(m) * f32::from_bits(0x7780_0000);
    let bits = if m >= 0x0f80_0000 { m | 0x7f80_0000 } else { f.to_bits() };
    f32::from_bits(bits | u32::from(b & 0x8000) << 16)
}

/// f64 arithmetic with a rounding mode: `r` is the result to nearest and `err` has the sign of what it lacks.
pub(crate) fn direct64(r: f64, err: f64, mode: Round) -> f64 {
    if err == 0.0 || r.is_nan() || err.is_nan() {
        return r;
    }
    if r.is_infinite() {
        // Overflow of finite operands.
        return match mode {
            Round::Rz => f64::MAX.copysign(r),
            Round::Rm if r > 0.0 => f64::MAX,
            Round::Rp if r < 0.0 => f64::MIN,
            _ => r,
        };
    }
    let up = match mode {
        Round::Rn | Round::Rna => return r,
        Round::Rz => r < 0.0 || (r == 0.0 && err < 0.0),
        Round::Rm => false,
        Round::Rp => true,
    };
    match (up, err > 0.0) {
        (true, true) => r.next_up(),
        (false, false) => r.next_down(),
        _ => r,
    }
}

/// The two formats whose arithmetic has directed modes.
///
/// To nearest is the host's own arithmetic. The other modes are [`rustc_apfloat`]'s, which works on integer
/// significands and so is exact for subnormals, near overflow, and in the sign of a zero sum. It has no square root.
pub(crate) trait Directed: Copy {
    fn add(self, b: Self, mode: Round) -> Self;
    fn mul(self, b: Self, mode: Round) -> Self;
    fn fma(self, b: Self, c: Self, mode: Round) -> Self;
    fn div(self, b: Self, mode: Round) -> Self;
    fn sqrt(self, mode: Round) -> Self;
}

impl Round {
    fn apfloat(self) -> rustc_apfloat::Round {
        match self {
            Round::Rn => rustc_apfloat::Round::NearestTiesToEven,
            Round::Rna => rustc_apfloat::Round::NearestTiesToAway,
            Round::Rz => rustc_apfloat::Round::TowardZero,
            Round::Rm => rustc_apfloat::Round::TowardNegative,
            Round::Rp => rustc_apfloat::Round::TowardPositive,
        }
    }
}

macro_rules! directed {
    ($t:ty, $soft:ty, $bits:ty) => {
        impl Directed for $t {
            #[inline(always)]
            fn add(self, b: Self, mode: Round) -> Self {
                match mode {
                    Round::Rn => self + b,
                    _ => hard(soft(self).add_r(soft(b), mode.apfloat())),
                }
            }
            #[inline(always)]
            fn mul(self, b: Self, mode: Round) -> Self {
                match mode {
                    Round::Rn => self * b,
                    _ => hard(soft(self).mul_r(soft(b), mode.apfloat())),
                }
            }
            #[inline(always)]
            fn fma(self, b: Self, c: Self, mode: Round) -> Self {
                match mode {
                    Round::Rn => self.mul_add(b, c),
                    _ => hard(soft(self).mul_add_r(soft(b), soft(c), mode.apfloat())),
                }
            }
            #[inline(always)]
            fn div(self, b: Self, mode: Round) -> Self {
                match mode {
                    Round::Rn => self / b,
                    _ => hard(soft(self).div_r(soft(b), mode.apfloat())),
                }
            }
            #[inline(always)]
            fn sqrt(self, mode: Round) -> Self {
                let r = <$t>::sqrt(self);
                if mode == Round::Rn || !r.is_finite() || r == 0.0 {
                    return r;
                }
                // A root is normal and so is the root of what surrounds it: one step at most is missing.
                let over = root_is_over(r.into(), self.into());
                match (mode, over) {
                    (Round::Rp, Ordering::Less) => r.next_up(),
                    (Round::Rm | Round::Rz, Ordering::Greater) => r.next_down(),
                    _ => r,
                }
            }
        }

        impl Soft for $t {
            type As = $soft;
            #[inline(always)]
            fn bits(self) -> u128 {
                self.to_bits().into()
            }
            #[inline(always)]
            fn from_soft(bits: u128) -> Self {
                <$t>::from_bits(bits as $bits)
            }
        }
    };
}

/// A host type and its software twin.
trait Soft {
    type As: Float;
    fn bits(self) -> u128;
    fn from_soft(bits: u128) -> Self;
}

fn soft<T: Soft>(x: T) -> T::As {
    T::As::from_bits(x.bits())
}

fn hard<T: Soft>(x: rustc_apfloat::StatusAnd<T::As>) -> T {
    T::from_soft(x.value.to_bits())
}

directed!(f32, rustc_apfloat::ieee::Single, u32);
directed!(f64, rustc_apfloat::ieee::Double, u64);

/// How `r²` compares with `a`, exactly; both are positive and finite, and `r` is near `√a`.
fn root_is_over(r: f64, a: f64) -> Ordering {
    let parts = |x: f64| {
        let (e, m) = ((x.to_bits() >> 52) as i32, u128::from(x.to_bits() & ((1 << 52) - 1)));
        if e == 0 { (m, -1074) } else { (m | 1 << 52, e - 1075) }
    };
    let ((mr, er), (ma, ea)) = (parts(r), parts(a));
    // A root is normal, so r² has 105 or 106 bits, and the significand of `a`, which is as large, at most 53.
    (mr * mr).cmp(&(ma << (ea - 2 * er)))
}

/// e4m3 → f64 (§5.2.3: no infinity, one NaN encoding a sign).
pub(crate) fn e4m3_decode(b: u8) -> f64 {
    if b & 0x7f == 0x7f {
        return f64::NAN;
    }
    let (e, m) = (i32::from(b >> 3 & 15), f64::from(b & 7));
    let v = if e == 0 { m * 2f64.powi(-9) } else { (m + 8.0) * 2f64.powi(e - 10) };
    if b & 0x80 != 0 { -v } else { v }
}

/// f64 → e4m3, to nearest even, overflow to the largest finite value (`.satfinite`).
pub(crate) fn e4m3_encode(x: f64) -> u8 {
    if x.is_nan() {
        return 0x7f;
    }
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    let m = Format { exp: 4, man: 3 }.magnitude(x.abs(), false, Round::Rn);
    sign | m.min(0x7e) as u8
}

pub(crate) fn e5m2_decode(b: u8) -> f64 {
    E5M2.decode(b.into())
}

/// f64 → e5m2, to nearest even, overflow to the largest finite value (`.satfinite`).
pub(crate) fn e5m2_encode(x: f64) -> u8 {
    if x.is_nan() { 0x7f } else { E5M2.encode(x, Round::Rn, true) as u8 }
}

/// 32 fused multiply-adds; the hardware's instruction where the machine has it.
pub(crate) fn fma_lanes(a: &[f32; 32], b: &[f32; 32], c: &[f32; 32]) -> [f32; 32] {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn fast(a: &[f32; 32], b: &[f32; 32], c: &[f32; 32]) -> [f32; 32] {
            std::array::from_fn(|l| a[l].mul_add(b[l], c[l]))
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            // SAFETY: the features were just detected.
            return unsafe { fast(a, b, c) };
        }
    }
    std::array::from_fn(|l| a[l].mul_add(b[l], c[l]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;

    #[test]
    fn narrow_formats_round_like_the_half_crate() {
        for i in 0..200_000u32 {
            let x = f32::from_bits(i.wrapping_mul(0x9e37_79b1));
            if x.is_nan() {
                continue;
            }
            assert_eq!(
                F16.encode(x.into(), Round::Rn, false) as u16,
                half::f16::from_f32(x).to_bits(),
                "{x:e}"
            );
            assert_eq!(
                BF16.encode(x.into(), Round::Rn, false) as u16,
                half::bf16::from_f32(x).to_bits(),
                "{x:e}"
            );
            assert_eq!(F32.encode(x.into(), Round::Rz, false) as u32, x.to_bits());
        }
    }

    #[test]
    fn every_half_decodes() {
        for b in 0..=u16::MAX {
            let (x, y) = (f16_to_f32(b), half::f16::from_bits(b).to_f32());
            assert!(x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan()), "{b:x}");
        }
    }

    #[test]
    fn odd_rounding_gives_native_sums() {
        let mut rng = Rng(1);
        let single = |x: f64| f32::from_bits(F32.encode(x, Round::Rn, false) as u32);
        for _ in 0..200_000 {
            let (a, b) = (f32::from_bits(rng.next() as u32), f32::from_bits(rng.next() as u32));
            if !a.is_finite() || !b.is_finite() {
                continue;
            }
            assert_eq!(single(add_odd(a.into(), b.into())), a + b);
            assert_eq!(single(fma_odd(a.into(), b.into(), 1.0)), a.mul_add(b, 1.0));
        }
    }

    struct Rng(u64);
    impl Rng {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 ^ self.0 >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 3
        }
        fn below(&mut self, n: u64) -> u64 {
            self.next() % n
        }
    }

    /// `m × 2^-e` as integers.
    #[derive(Clone)]
    struct Exact(BigInt, i64);

    impl Exact {
        /// Infinities are what is larger than all results.
        fn of(x: f64) -> Exact {
            if x.is_infinite() {
                return Exact((BigInt::from(1) << 5000) * x.signum() as i32, 0);
            }
            let (e, m) = ((x.to_bits() >> 52 & 0x7ff) as i64, x.to_bits() & ((1 << 52) - 1));
            let (m, e) = if e == 0 { (m, -1074) } else { (m | 1 << 52, e - 1075) };
            let m = BigInt::from(m) << (e + 1074) as u64;
            Exact(if x < 0.0 { -m } else { m }, 1074)
        }
        fn add(&self, o: &Exact) -> Exact {
            let e = self.1.max(o.1);
            Exact((&self.0 << (e - self.1) as u64) + (&o.0 << (e - o.1) as u64), e)
        }
        fn mul(&self, o: &Exact) -> Exact {
            Exact(&self.0 * &o.0, self.1 + o.1)
        }
        /// `self` against `o`.
        fn cmp(&self, o: &Exact) -> Ordering {
            self.add(&Exact(-&o.0, o.1)).0.cmp(&BigInt::from(0))
        }
    }

    /// Checks that `r` is the exact result's rounding; `cmp(y)` compares `y` with the exact result.
    fn rounded(r: f64, up: f64, down: f64, mode: Round, cmp: impl Fn(f64) -> Ordering) -> bool {
        let (below, above) = (cmp(r) != Ordering::Greater, cmp(r) != Ordering::Less);
        match mode {
            Round::Rm => below && cmp(up) == Ordering::Greater,
            Round::Rp => above && cmp(down) == Ordering::Less,
            _ if cmp(0.0) == Ordering::Less => below && r >= 0.0 && cmp(up) == Ordering::Greater,
            _ => above && r <= 0.0 && (cmp(down) == Ordering::Less || cmp(r) == Ordering::Equal),
        }
    }

    macro_rules! directed_test {
        ($name:ident, $t:ty, $man:expr, $exps:expr) => {
            #[test]
            fn $name() {
                let mut rng = Rng(7);
                let mut value = |near: $t| -> $t {
                    let man = match rng.below(4) {
                        0 => 0,
                        1 => (1 << $man) - 1 - rng.below(3),
                        2 => rng.below(4),
                        _ => rng.next(),
                    } & ((1 << $man) - 1);
                    let around = (near.to_bits() as u64 >> $man) % $exps;
                    let e = match rng.below(6) {
                        0 => rng.below(4),
                        1 => $exps - 2 - rng.below(4),
                        2 => rng.below($exps - 1),
                        3 => $exps / 2 - 2 + rng.below(4),
                        4 if around > 8 && around < $exps - 10 => around - 8 + rng.below(16),
                        // Products and roots that end near the smallest numbers.
                        _ => ($exps / 2 - $man + rng.below(2 * $man)) % ($exps - 1),
                    };
                    <$t>::from_bits(
                        (man | e << $man | rng.below(2) << ($man + u64::from($exps.ilog2()))) as _,
                    )
                };
                for k in 0..60_000u32 {
                    let a = value(1.0);
                    let b = value(a);
                    // Sometimes a sum that cancels nearly all of the product.
                    let c = if k % 3 == 0 { -(a * b) } else { value(a * b) };
                    if !c.is_finite() {
                        continue;
                    }
                    let mode = [Round::Rz, Round::Rm, Round::Rp][k as usize % 3];
                    let (x, y, z) = (Exact::of(a.into()), Exact::of(b.into()), Exact::of(c.into()));
                    let sums = [
                        (Directed::add(a, b, mode), x.add(&y), "add"),
                        (Directed::mul(a, b, mode), x.mul(&y), "mul"),
                        (Directed::fma(a, b, c, mode), x.mul(&y).add(&z), "fma"),
                    ];
                    for (r, exact, what) in sums {
                        assert!(
                            rounded(r.into(), r.next_up().into(), r.next_down().into(), mode, |v| Exact::of(
                                v
                            )
                            .cmp(&exact)),
                            "{what} {a:e} {b:e} {c:e} {mode:?}: {r:e}"
                        );
                    }
                    if b != 0.0 {
                        let r = Directed::div(a, b, mode);
                        // v against a ÷ b is v × b against a, the other way around for negative b.
                        let cmp = |v: f64| {
                            let o = Exact::of(v).mul(&y).cmp(&x);
                            if b < 0.0 { o.reverse() } else { o }
                        };
                        assert!(
                            rounded(r.into(), r.next_up().into(), r.next_down().into(), mode, cmp),
                            "{a:e} ÷ {b:e} {mode:?}: {r:e}"
                        );
                    }
                    let (p, x) = (a.abs(), Exact::of(a.abs().into()));
                    let r = Directed::sqrt(p, mode);
                    let cmp = |v: f64| {
                        if v < 0.0 { Ordering::Less } else { Exact::of(v).mul(&Exact::of(v)).cmp(&x) }
                    };
                    assert!(
                        rounded(r.into(), r.next_up().into(), r.next_down().into(), mode, cmp),
                        "√{p:e} {mode:?}: {r:e}"
                    );
                }
                // An exact zero from operands that are not is −0 only when rounding down.
                for (mode, sign) in
                    [(Round::Rn, false), (Round::Rz, false), (Round::Rm, true), (Round::Rp, false)]
                {
                    for r in [Directed::add(1.5, -1.5, mode), Directed::fma(1.5, 2.0, -3.0, mode)] as [$t; 2]
                    {
                        assert!(r == 0.0 && r.is_sign_negative() == sign, "{mode:?}");
                    }
                    let r: $t = Directed::add(0.0, -0.0, mode);
                    assert!(r == 0.0 && r.is_sign_negative() == sign, "{mode:?}");
                    let r: $t = Directed::add(-0.0, -0.0, mode);
                    assert!(r == 0.0 && r.is_sign_negative(), "{mode:?}");
                }
                assert!(<$t as Directed>::sqrt(-1.0, Round::Rp).is_nan());
                assert_eq!(<$t as Directed>::div(1.0, 0.0, Round::Rz), <$t>::INFINITY);
            }
        };
    }
    directed_test!(directed_single, f32, 23u64, 256u64);
    directed_test!(directed_double, f64, 52u64, 2048u64);

    #[test]
    fn fp8_round_trips() {
        for b in 0..=255u8 {
            let v = e4m3_decode(b);
            assert!(v.is_nan() || e4m3_encode(v) == b, "{b:x}");
            let v = e5m2_decode(b);
            assert!(!v.is_finite() || e5m2_encode(v) == b, "{b:x}");
        }
        assert_eq!(e4m3_encode(1e9), 0x7e);
        assert_eq!(e4m3_decode(0x7e), 448.0);
    }
}
