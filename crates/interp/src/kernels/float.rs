//! Floating-point arithmetic and comparison, for `f32` (with every narrower format) and `f64`.

use tilewright_ir::dialect::arith::{CmpFPredicate, Kind};

use super::{Kernel, kernel};
use crate::elem::Elem;

/// A kernel over `f32` or `f64` elements.
macro_rules! floats {
    ($elem:expr, |$F:ident| $k:expr) => {
        match $elem {
            e if e.is_f32_class() => {
                #[allow(dead_code)]
                type $F = f32;
                $k
            }
            Elem::Float(_) => {
                #[allow(dead_code)]
                type $F = f64;
                $k
            }
            _ => return None,
        }
    };
}
pub(super) use floats;

/// The smaller of two numbers, -0 of two zeros.
macro_rules! smaller {
    ($a:expr, $b:expr) => {
        if $a < $b || ($a == $b && $a.is_sign_negative()) { $a } else { $b }
    };
}

/// The larger of two numbers, +0 of two zeros.
macro_rules! larger {
    ($a:expr, $b:expr) => {
        if $a > $b || ($a == $b && $a.is_sign_positive()) { $a } else { $b }
    };
}

/// What two numbers give; NaN where one of them is.
macro_rules! or_nan {
    ($a:expr, $b:expr, $number:expr) => {
        if $a.is_nan() || $b.is_nan() { $a + $b } else { $number }
    };
}

/// What two numbers give; the other one where one of them is NaN.
macro_rules! but_nan {
    ($a:expr, $b:expr, $number:expr) => {
        if $b.is_nan() {
            $a
        } else if $a.is_nan() {
            $b
        } else {
            $number
        }
    };
}

/// The kernel of a binary `arith` operation on floats.
pub fn binary(op: Kind, elem: Elem) -> Option<Kernel> {
    Some(match op {
        Kind::Addf => floats!(elem, |F| kernel!(F, F => F, |a, b| a + b)),
        Kind::Subf => floats!(elem, |F| kernel!(F, F => F, |a, b| a - b)),
        Kind::Mulf => floats!(elem, |F| kernel!(F, F => F, |a, b| a * b)),
        Kind::Divf => floats!(elem, |F| kernel!(F, F => F, |a, b| a / b)),
        Kind::Remf => floats!(elem, |F| kernel!(F, F => F, |a, b| a % b)),
        Kind::Minimumf => floats!(elem, |F| kernel!(F, F => F, |a, b| or_nan!(a, b, smaller!(a, b)))),
        Kind::Maximumf => floats!(elem, |F| kernel!(F, F => F, |a, b| or_nan!(a, b, larger!(a, b)))),
        Kind::Minnumf => floats!(elem, |F| kernel!(F, F => F, |a, b| but_nan!(a, b, smaller!(a, b)))),
        Kind::Maxnumf => floats!(elem, |F| kernel!(F, F => F, |a, b| but_nan!(a, b, larger!(a, b)))),
        _ => return None,
    })
}

/// -x, also of NaN.
pub fn negate(elem: Elem) -> Option<Kernel> {
    Some(floats!(elem, |F| kernel!(F => F, |a| -a)))
}

/// min(max(x, lo), hi).
pub fn clamp(elem: Elem, propagate_nan: bool) -> Option<Kernel> {
    Some(if propagate_nan {
        floats!(elem, |F| kernel!(F, F, F => F, |x, lo, hi| {
            let raised = or_nan!(x, lo, larger!(x, lo));
            or_nan!(raised, hi, smaller!(raised, hi))
        }))
    } else {
        floats!(elem, |F| kernel!(F, F, F => F, |x, lo, hi| {
            let raised = but_nan!(x, lo, larger!(x, lo));
            but_nan!(raised, hi, smaller!(raised, hi))
        }))
    })
}

/// The kernel of `arith.cmpf`.
pub fn compare(predicate: CmpFPredicate, elem: Elem) -> Option<Kernel> {
    use CmpFPredicate as P;
    macro_rules! k {
        (|$a:ident, $b:ident| $e:expr) => {
            floats!(elem, |F| kernel!(F, F => u8, |$a, $b| u8::from($e)))
        };
    }
    Some(match predicate {
        P::False => k!(|_a, _b| false),
        P::True => k!(|_a, _b| true),
        P::Oeq => k!(|a, b| a == b),
        P::Ogt => k!(|a, b| a > b),
        P::Oge => k!(|a, b| a >= b),
        P::Olt => k!(|a, b| a < b),
        P::Ole => k!(|a, b| a <= b),
        P::One => k!(|a, b| (a < b) | (a > b)),
        P::Ord => k!(|a, b| !a.is_nan() && !b.is_nan()),
        P::Uno => k!(|a, b| a.is_nan() || b.is_nan()),
        P::Ueq => k!(|a, b| (a == b) | a.is_nan() | b.is_nan()),
        P::Ugt => k!(|a, b| (a > b) | a.is_nan() | b.is_nan()),
        P::Uge => k!(|a, b| (a >= b) | a.is_nan() | b.is_nan()),
        P::Ult => k!(|a, b| (a < b) | a.is_nan() | b.is_nan()),
        P::Ule => k!(|a, b| (a <= b) | a.is_nan() | b.is_nan()),
        P::Une => k!(|a, b| a != b),
    })
}

/// a · b + c with one rounding to the element's format: narrow formats in `f64`, where the product is exact, and the sum rounded to odd.
pub fn fma(elem: Elem) -> Option<Kernel> {
    use tilewright_ir::FloatKind;
    Some(match elem {
        Elem::Float(FloatKind::F64) => kernel!(f64, f64, f64 => f64, |a, b, c| a.mul_add(b, c)),
        Elem::Float(FloatKind::F32) => kernel!(f32, f32, f32 => f32, |a, b, c| a.mul_add(b, c)),
        Elem::Float(_) => kernel!(f32, f32, f32 => f32, |a, b, c| {
            odd_f32(odd_sum(f64::from(a) * f64::from(b), f64::from(c)))
        }),
        _ => return None,
    })
}

/// a + b rounded to odd: where the sum is not exact, a number beside it whose last bit is set. (bf16 has exponents so far apart that
/// what is added may be all that is beyond the middle of two numbers.)
#[inline(always)]
fn odd_sum(a: f64, b: f64) -> f64 {
    let sum = a + b;
    // What the rounding took away, exactly (Knuth, "The Art of Computer Programming", 4.2.2, theorem B).
    let of_b = sum - a;
    let rest = (a - (sum - of_b)) + (b - of_b);
    if rest == 0.0 || !rest.is_finite() {
        return sum;
    }
    let bits = sum.to_bits();
    let truncated = if (rest > 0.0) == (sum > 0.0) { bits } else { bits - 1 };
    f64::from_bits(truncated | 1)
}

/// Converts to `f32` rounding to odd, so that rounding on to a format with at least two bits less is as if done once
/// (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
#[inline(always)]
pub fn odd_f32(x: f64) -> f32 {
    let nearest = x as f32;
    let back = f64::from(nearest);
    if back == x || x.is_nan() || nearest.is_infinite() {
        return nearest;
    }
    // Truncate towards zero, then set the last bit because the result is inexact.
    let bits = nearest.to_bits();
    let truncated = if back.abs() > x.abs() { bits - 1 } else { bits };
    f32::from_bits(truncated | 1)
}
