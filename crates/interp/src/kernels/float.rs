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

/// The kernel of a binary `arith` operation on floats.
pub fn binary(op: Kind, elem: Elem) -> Option<Kernel> {
    Some(match op {
        Kind::Addf => floats!(elem, |F| kernel!(F, F => F, |a, b| a + b)),
        Kind::Subf => floats!(elem, |F| kernel!(F, F => F, |a, b| a - b)),
        Kind::Mulf => floats!(elem, |F| kernel!(F, F => F, |a, b| a * b)),
        Kind::Divf => floats!(elem, |F| kernel!(F, F => F, |a, b| a / b)),
        Kind::Remf => floats!(elem, |F| kernel!(F, F => F, |a, b| a % b)),
        Kind::Minimumf => floats!(elem, |F| kernel!(F, F => F, |a, b| {
            let smaller = if a < b || (a == b && a.is_sign_negative()) { a } else { b };
            if a.is_nan() || b.is_nan() { F::NAN } else { smaller }
        })),
        Kind::Maximumf => floats!(elem, |F| kernel!(F, F => F, |a, b| {
            let larger = if a > b || (a == b && a.is_sign_positive()) { a } else { b };
            if a.is_nan() || b.is_nan() { F::NAN } else { larger }
        })),
        Kind::Minnumf => floats!(elem, |F| kernel!(F, F => F, |a, b| {
            let smaller = if a < b || (a == b && a.is_sign_negative()) { a } else { b };
            if b.is_nan() { a } else if a.is_nan() { b } else { smaller }
        })),
        Kind::Maxnumf => floats!(elem, |F| kernel!(F, F => F, |a, b| {
            let larger = if a > b || (a == b && a.is_sign_positive()) { a } else { b };
            if b.is_nan() { a } else if a.is_nan() { b } else { larger }
        })),
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
            if x.is_nan() { x } else { x.max(lo).min(hi) }
        }))
    } else {
        floats!(elem, |F| kernel!(F, F, F => F, |x, lo, hi| x.max(lo).min(hi)))
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

/// a · b + c with one rounding to the element's format: narrow formats in `f64`, where product and sum are rounded at
/// most once before the format's own rounding.
pub fn fma(elem: Elem) -> Option<Kernel> {
    use tilewright_ir::FloatKind;
    Some(match elem {
        Elem::Float(FloatKind::F64) => kernel!(f64, f64, f64 => f64, |a, b, c| a.mul_add(b, c)),
        Elem::Float(FloatKind::F32) => kernel!(f32, f32, f32 => f32, |a, b, c| a.mul_add(b, c)),
        Elem::Float(_) => kernel!(f32, f32, f32 => f32, |a, b, c| {
            let exact = f64::from(a) * f64::from(b);
            odd_f32(exact + f64::from(c))
        }),
        _ => return None,
    })
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
