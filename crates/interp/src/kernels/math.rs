//! Functions of floating-point values. The `f32` versions of exp, exp2, log, log2, sin, cos, tan, tanh, rsqrt and erf
//! evaluate a polynomial in `f64` and round once, so they are within 0.51 units in the last place; the `f64` versions are
//! the system library's.

use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LOG2_E};
use std::sync::OnceLock;

use tilewright_ir::FloatKind;
use tilewright_ir::dialect::math::Kind;

use super::float::floats;
use super::{Kernel, kernel};
use crate::elem::Elem;

/// The kernel of a unary `math` operation on floats.
pub fn unary(op: Kind, elem: Elem) -> Option<Kernel> {
    let double = elem == Elem::Float(FloatKind::F64);
    macro_rules! pick {
        ($narrow:expr, $wide:expr) => {
            if double { kernel!(f64 => f64, $wide) } else { kernel!(f32 => f32, $narrow) }
        };
    }
    if !matches!(elem, Elem::Float(_)) {
        return None;
    }
    Some(match op {
        Kind::Exp => pick!(|x| exp_core(f64::from(x) * LOG2_E, f64::from(x), LN_2) as f32, |x| x.exp()),
        Kind::Exp2 => pick!(exp2, |x| x.exp2()),
        Kind::Log => pick!(|x| log_core(x, 1.0), |x| x.ln()),
        Kind::Log2 => pick!(|x| log_core(x, LOG2_E), |x| x.log2()),
        Kind::Sin => {
            if double {
                kernel!(f64 => f64, |x| x.sin())
            } else {
                trigonometric::<0>
            }
        }
        Kind::Cos => {
            if double {
                kernel!(f64 => f64, |x| x.cos())
            } else {
                trigonometric::<1>
            }
        }
        Kind::Tan => pick!(|x| f64::from(x).tan() as f32, |x| x.tan()),
        Kind::Sqrt => floats!(elem, |F| kernel!(F => F, |x| x.sqrt())),
        Kind::Rsqrt => pick!(|x| (1.0 / f64::from(x).sqrt()) as f32, |x| 1.0 / x.sqrt()),
        Kind::Absf => floats!(elem, |F| kernel!(F => F, |x| x.abs())),
        Kind::Floor => floats!(elem, |F| kernel!(F => F, |x| x.floor())),
        Kind::Ceil => floats!(elem, |F| kernel!(F => F, |x| x.ceil())),
        Kind::Round => floats!(elem, |F| kernel!(F => F, |x| x.round())),
        Kind::Trunc => floats!(elem, |F| kernel!(F => F, |x| x.trunc())),
        Kind::Erf => {
            if double {
                kernel!(f64 => f64, erf)
            } else {
                erf_f32
            }
        }
        Kind::Tanh => pick!(tanh, |x| x.tanh()),
        _ => return None,
    })
}

/// Adding and subtracting this rounds to an integer.
const ROUNDER: f64 = 1.5 * (1u64 << 52) as f64;

/// e^x where `t` is x·log2(e) (to choose the power of two) and `x` = `t`·`unit` in the natural scale.
#[inline(always)]
fn exp_core(t: f64, x: f64, unit: f64) -> f64 {
    // Beyond these the result is 0 or infinity; comparisons keep NaN.
    let t = if t > 130.0 { 130.0 } else { t };
    let t = if t < -160.0 { -160.0 } else { t };
    let limit = 160.0 * LN_2;
    let x = if unit == LN_2 {
        let x = if x > limit { 130.0 * LN_2 } else { x };
        if x < -limit { -limit } else { x }
    } else {
        t
    };
    let shifted = t + ROUNDER;
    let k = shifted - ROUNDER;
    // ln 2 in two parts, the first with trailing zeros so that its product with k is exact.
    const HI: f64 = f64::from_bits(LN_2.to_bits() & !0xffff_ffff);
    const LO: f64 = 4.749_325_039_031_672_6e-7;
    let r = if unit == LN_2 { (x - k * HI) - k * LO } else { (x - k) * LN_2 };
    let mut p = 1.0 / 3_628_800.0;
    p = p * r + 1.0 / 362_880.0;
    p = p * r + 1.0 / 40_320.0;
    p = p * r + 1.0 / 5_040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    // The low bits of `shifted` are k: make them the exponent.
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    p * power
}

#[inline(always)]
fn exp2(x: f32) -> f32 {
    exp_core(f64::from(x), f64::from(x), 1.0) as f32
}

/// log(x)·`factor`: `factor` is 1 for the natural logarithm and log2(e) for base 2.
#[inline(always)]
fn log_core(x: f32, factor: f64) -> f32 {
    let bits = f64::from(x).to_bits();
    let mantissa = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000);
    // The biased exponent as a double, by way of the bits of 2^52 + it.
    let biased = f64::from_bits(0x4330_0000_0000_0000 | ((bits >> 52) & 0x7ff)) - (1u64 << 52) as f64;
    let high = mantissa > std::f64::consts::SQRT_2;
    let m = if high { mantissa * 0.5 } else { mantissa };
    let e = biased - if high { 1022.0 } else { 1023.0 };
    // log(m) = 2 artanh(s), s = (m-1)/(m+1), |s| < 0.172
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut p = 1.0 / 15.0;
    p = p * z + 1.0 / 13.0;
    p = p * z + 1.0 / 11.0;
    p = p * z + 1.0 / 9.0;
    p = p * z + 1.0 / 7.0;
    p = p * z + 1.0 / 5.0;
    p = p * z + 1.0 / 3.0;
    p = p * z + 1.0;
    let log_m = 2.0 * s * p;
    let whole = if factor == 1.0 { e * LN_2 } else { e };
    let result = (whole + log_m * factor) as f32;
    let result = if x > 0.0 { result } else { f32::NAN };
    let result = if x == 0.0 { f32::NEG_INFINITY } else { result };
    if x == f32::INFINITY { x } else { result }
}

#[inline(always)]
fn tanh(x: f32) -> f32 {
    let a = f64::from(x).abs();
    let t = exp_core(-2.0 * a * LOG2_E, -2.0 * a, LN_2);
    let large = (1.0 - t) / (1.0 + t);
    // Where 1 - t would cancel: the first terms of the series.
    let z = a * a;
    let series = a
        * (1.0
            + z * (-1.0 / 3.0
                + z * (2.0 / 15.0
                    + z * (-17.0 / 315.0
                        + z * (62.0 / 2835.0 + z * (-1382.0 / 155_925.0 + z * (21_844.0 / 6_081_075.0)))))));
    let r = if a < 0.3 { series } else { large } as f32;
    r.copysign(x)
}

/// sin (`SHIFT` 0) and cos (1) of `f32`. Arguments up to 10^5 are reduced in three parts of π/2; larger ones go to the
/// system library in double precision.
unsafe fn trigonometric<const SHIFT: i64>(s: [*const u8; 3], d: *mut u8, n: usize) {
    // SAFETY: the caller's promise (see `Kernel`).
    let small = unsafe { std::slice::from_raw_parts(s[0].cast::<f32>(), n) }.iter().all(|x| x.abs() <= 1e5);
    if small {
        // SAFETY: as above.
        unsafe { super::map1::<f32, f32, _>(s, d, n, sin_reduced::<SHIFT>) }
    } else {
        // SAFETY: as above.
        unsafe {
            super::map1::<f32, f32, _>(s, d, n, |x| {
                let x = f64::from(x);
                (if SHIFT == 0 { x.sin() } else { x.cos() }) as f32
            })
        }
    }
}

#[inline(always)]
fn sin_reduced<const SHIFT: i64>(x: f32) -> f32 {
    let x = f64::from(x);
    let shifted = x * std::f64::consts::FRAC_2_PI + ROUNDER;
    let k = shifted - ROUNDER;
    const HI: f64 = f64::from_bits(std::f64::consts::FRAC_PI_2.to_bits() & !0xff_ffff);
    const LO: f64 = std::f64::consts::FRAC_PI_2 - HI;
    // What is left of π/2 beyond a double.
    const REST: f64 = 6.123_233_995_736_766e-17;
    let r = ((x - k * HI) - k * LO) - k * REST;
    let quadrant = (shifted.to_bits() as i64).wrapping_add(SHIFT);
    let z = r * r;
    let sin = r
        * (1.0
            + z * (-1.0 / 6.0
                + z * (1.0 / 120.0
                    + z * (-1.0 / 5_040.0 + z * (1.0 / 362_880.0 - z * (1.0 / 39_916_800.0))))));
    let cos = 1.0
        + z * (-0.5
            + z * (1.0 / 24.0
                + z * (-1.0 / 720.0
                    + z * (1.0 / 40_320.0 - z * (1.0 / 3_628_800.0 - z * (1.0 / 479_001_600.0))))));
    let value = if quadrant & 1 == 0 { sin } else { cos };
    let negative = (quadrant & 2) << 62;
    // Keep the sign of zero: sin(-0) = -0.
    let result = f64::from_bits(value.to_bits() ^ negative as u64) as f32;
    if SHIFT == 0 && x == 0.0 { x as f32 } else { result }
}

/// The error function, by a series of positive terms (Abramowitz and Stegun, 7.1.6) and, in the tail, the continued
/// fraction of its complement (7.1.14).
fn erf(x: f64) -> f64 {
    let a = x.abs();
    let value = if a.is_nan() {
        a
    } else if a < 2.5 {
        let mut term = a;
        let mut sum = a;
        let mut n = 0.0;
        while term > sum * 1e-18 {
            n += 1.0;
            term *= 2.0 * a * a / (2.0 * n + 1.0);
            sum += term;
        }
        FRAC_2_SQRT_PI * (-a * a).exp() * sum
    } else {
        1.0 - erfc_tail(a)
    };
    value.copysign(x)
}

/// erfc of x ≥ 0.5 by its continued fraction (Abramowitz and Stegun, 7.1.14). About 171 / x² terms make the rest less than
/// 2^-53 of it.
fn erfc_tail(x: f64) -> f64 {
    if x > 27.5 {
        return 0.0;
    }
    let terms = (200.0 / (x * x)) as u32 + 20;
    let f = (1..=terms).rev().fold(x, |f, k| x + f64::from(k) * 0.5 / f);
    // exp(-x²) with what x² loses when it is rounded.
    let square = x * x;
    let lost = x.mul_add(x, -square);
    (-square).exp() * (1.0 - lost) * FRAC_2_SQRT_PI * 0.5 / f
}

/// Nodes per unit and number of nodes of the table for `f32`: up to 4, beyond which erf rounds to 1.
const ERF_NODES: (f64, usize) = (32.0, 129);

unsafe fn erf_f32(s: [*const u8; 3], d: *mut u8, n: usize) {
    static TABLE: OnceLock<Vec<[f64; 6]>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        (0..ERF_NODES.1)
            .map(|j| {
                // Taylor coefficients: g = erf' satisfies g^(n+1) = -2x g^(n) - 2n g^(n-1).
                let x = j as f64 / ERF_NODES.0;
                let g0 = FRAC_2_SQRT_PI * (-x * x).exp();
                let g1 = -2.0 * x * g0;
                let g2 = -2.0 * x * g1 - 2.0 * g0;
                let g3 = -2.0 * x * g2 - 4.0 * g1;
                let g4 = -2.0 * x * g3 - 6.0 * g2;
                [erf(x), g0, g1 / 2.0, g2 / 6.0, g3 / 24.0, g4 / 120.0]
            })
            .collect()
    });
    // SAFETY: the caller's promise (see `Kernel`).
    unsafe {
        super::map1::<f32, f32, _>(s, d, n, |x| {
            let a = f64::from(x).abs();
            if a.is_nan() || a >= 4.0 {
                return if x.is_nan() { x } else { 1f32.copysign(x) };
            }
            let node = (a * ERF_NODES.0 + 0.5) as usize;
            let h = a - node as f64 / ERF_NODES.0;
            let c = &table[node];
            let value = c[0] + h * (c[1] + h * (c[2] + h * (c[3] + h * (c[4] + h * c[5]))));
            (value as f32).copysign(x)
        })
    }
}
