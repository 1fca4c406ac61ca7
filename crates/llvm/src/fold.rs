//! Constant evaluation on bit patterns, as the device computes (no floating-point contraction, round to nearest even).

use crate::program::{BinOp, CastOp, FloatPred, IntPred};
use crate::ty::{Scalar, Ty};
use tilewright_ir::{FloatKind, float};

/// The low `bits` ones.
pub(crate) fn ones(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// `value` of `bits` bits as a signed number.
pub(crate) fn signed(value: u64, bits: u32) -> i64 {
    let shift = 64 - bits;
    ((value << shift) as i64) >> shift
}

/// A floating-point constant as f64 (exact for every type).
pub(crate) fn to_f64(bits: u64, ty: Scalar) -> Option<f64> {
    Some(match ty {
        Scalar::F16 => float::from_bits(bits, FloatKind::F16),
        Scalar::BF16 => float::from_bits(bits, FloatKind::BF16),
        Scalar::F32 => f64::from(f32::from_bits(bits as u32)),
        Scalar::F64 => f64::from_bits(bits),
        _ => return None,
    })
}

/// The bit pattern of `value` rounded to `ty`.
pub(crate) fn from_f64(value: f64, ty: Scalar) -> Option<u64> {
    Some(match ty {
        Scalar::F16 => float::to_bits(value, FloatKind::F16),
        Scalar::BF16 => float::to_bits(value, FloatKind::BF16),
        Scalar::F32 => u64::from((value as f32).to_bits()),
        Scalar::F64 => value.to_bits(),
        _ => return None,
    })
}

/// Evaluates arithmetic on constants; `None` where the result is undefined or not worth folding.
pub(crate) fn bin(op: BinOp, ty: Ty, a: u64, b: u64) -> Option<u64> {
    let bits = ty.scalar.bits();
    let (sa, sb) = (signed(a, bits), signed(b, bits));
    let r = match op {
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Mul => a.wrapping_mul(b),
        BinOp::UDiv => a.checked_div(b)?,
        BinOp::URem => a.checked_rem(b)?,
        BinOp::SDiv => sa.checked_div(sb)? as u64,
        BinOp::SRem => sa.checked_rem(sb)? as u64,
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Shl if b < u64::from(bits) => a << b,
        BinOp::LShr if b < u64::from(bits) => a >> b,
        BinOp::AShr if b < u64::from(bits) => (sa >> b) as u64,
        BinOp::FAdd | BinOp::FSub | BinOp::FMul | BinOp::FDiv => return float_bin(op, ty.scalar, a, b),
        _ => return None,
    };
    Some(r & ones(bits))
}

/// Double rounding through f64 is exact for these operations on 16- and 32-bit types (53 ≥ 2·24 + 2).
fn float_bin(op: BinOp, ty: Scalar, a: u64, b: u64) -> Option<u64> {
    let (x, y) = (to_f64(a, ty)?, to_f64(b, ty)?);
    let r = match op {
        BinOp::FAdd => x + y,
        BinOp::FSub => x - y,
        BinOp::FMul => x * y,
        _ => x / y,
    };
    // NaN payloads differ between machines: leave them to the device.
    if r.is_nan() { None } else { from_f64(r, ty) }
}

/// Evaluates an integer comparison.
pub(crate) fn icmp(pred: IntPred, bits: u32, a: u64, b: u64) -> bool {
    let (sa, sb) = (signed(a, bits), signed(b, bits));
    match pred {
        IntPred::Eq => a == b,
        IntPred::Ne => a != b,
        IntPred::Ugt => a > b,
        IntPred::Uge => a >= b,
        IntPred::Ult => a < b,
        IntPred::Ule => a <= b,
        IntPred::Sgt => sa > sb,
        IntPred::Sge => sa >= sb,
        IntPred::Slt => sa < sb,
        IntPred::Sle => sa <= sb,
    }
}

/// Evaluates a floating-point comparison.
pub(crate) fn fcmp(pred: FloatPred, ty: Scalar, a: u64, b: u64) -> Option<bool> {
    let (x, y) = (to_f64(a, ty)?, to_f64(b, ty)?);
    let nan = x.is_nan() || y.is_nan();
    Some(match pred {
        FloatPred::Oeq => x == y,
        FloatPred::Ogt => x > y,
        FloatPred::Oge => x >= y,
        FloatPred::Olt => x < y,
        FloatPred::Ole => x <= y,
        FloatPred::One => !nan && x != y,
        FloatPred::Ord => !nan,
        FloatPred::Ueq => nan || x == y,
        FloatPred::Ugt => nan || x > y,
        FloatPred::Uge => nan || x >= y,
        FloatPred::Ult => nan || x < y,
        FloatPred::Ule => nan || x <= y,
        FloatPred::Une => nan || x != y,
        FloatPred::Uno => nan,
    })
}

/// Evaluates a conversion of a constant.
pub(crate) fn cast(op: CastOp, from: Scalar, to: Scalar, a: u64) -> Option<u64> {
    let (fb, tb) = (from.bits(), to.bits());
    Some(match op {
        CastOp::Trunc | CastOp::ZExt => a & ones(tb),
        CastOp::SExt => signed(a, fb) as u64 & ones(tb),
        CastOp::Bitcast if fb == tb => a,
        CastOp::FpExt => {
            from_f64(to_f64(a, from)?, to).filter(|_| !to_f64(a, from).is_some_and(f64::is_nan))?
        }
        CastOp::FpTrunc => {
            let x = to_f64(a, from)?;
            // NaN payloads are the device's business.
            if x.is_nan() {
                return None;
            }
            from_f64(x, to)?
        }
        CastOp::SiToFp => {
            let x = signed(a, fb);
            match to {
                Scalar::F32 => u64::from((x as f32).to_bits()),
                Scalar::F64 => (x as f64).to_bits(),
                // Small integers are exact in f64, so that one rounding remains.
                _ if x.unsigned_abs() < 1 << 53 => from_f64(x as f64, to)?,
                _ => return None,
            }
        }
        CastOp::UiToFp => match to {
            Scalar::F32 => u64::from((a as f32).to_bits()),
            Scalar::F64 => (a as f64).to_bits(),
            _ if a < 1 << 53 => from_f64(a as f64, to)?,
            _ => return None,
        },
        // The nearest number, as the instructions have it, narrow ones as the low bits of one of 32: to LLVM what does not fit is anything.
        CastOp::FpToSi if tb <= 32 => to_f64(a, from)? as i32 as u64 & ones(tb),
        CastOp::FpToSi => to_f64(a, from)? as i64 as u64,
        CastOp::FpToUi if tb <= 32 => u64::from(to_f64(a, from)? as u32) & ones(tb),
        CastOp::FpToUi => to_f64(a, from)? as u64,
        _ => return None,
    })
}
