//! Conversions between element kinds.

use tilewright_ir::FloatKind;

use super::{Kernel, copy, float::odd_f32, kernel};
use crate::elem::Elem;
use crate::float::{decode_f16, encode_bf16, encode_f16, encode_fp8, fp8_table};

/// Integer widening and narrowing.
pub fn integer(from: Elem, to: Elem, signed: bool) -> Option<Kernel> {
    macro_rules! to {
        ($S:ty, $U:ty) => {
            match (to, signed) {
                (Elem::I1, _) => kernel!($U => u8, |a| (a & 1) as u8),
                (Elem::I8, _) => kernel!($U => u8, |a| a as u8),
                (Elem::I16, true) => kernel!($S => i16, |a| a as i16),
                (Elem::I16, false) => kernel!($U => u16, |a| a as u16),
                (Elem::I32, true) => kernel!($S => i32, |a| a as i32),
                (Elem::I32, false) => kernel!($U => u32, |a| a as u32),
                (Elem::I64, true) => kernel!($S => i64, |a| a as i64),
                (Elem::I64, false) => kernel!($U => u64, |a| a as u64),
                _ => return None,
            }
        };
    }
    Some(match from {
        Elem::I1 if signed => match to {
            Elem::I1 => copy(1),
            Elem::I8 => kernel!(u8 => i8, |a| -(a as i8)),
            Elem::I16 => kernel!(u8 => i16, |a| -i16::from(a)),
            Elem::I32 => kernel!(u8 => i32, |a| -i32::from(a)),
            Elem::I64 => kernel!(u8 => i64, |a| -i64::from(a)),
            _ => return None,
        },
        Elem::I1 | Elem::I8 => to!(i8, u8),
        Elem::I16 => to!(i16, u16),
        Elem::I32 => to!(i32, u32),
        Elem::I64 => to!(i64, u64),
        _ => return None,
    })
}

/// Integer to float; to a narrow float the result still has to be rounded to its format.
pub fn int_to_float(from: Elem, to: Elem, signed: bool) -> Option<Kernel> {
    // A 32-bit or wider integer is rounded to odd, so that the format's own rounding is the only one that counts.
    macro_rules! k {
        ($T:ty) => {
            match to {
                Elem::Float(FloatKind::F64) => kernel!($T => f64, |a| a as f64),
                Elem::Float(FloatKind::F32) => kernel!($T => f32, |a| a as f32),
                Elem::Float(_) => kernel!($T => f32, |a| {
                    // Beyond 2^53 the conversion to f64 rounds; setting a sticky bit keeps the inexactness visible.
                    let wide = a as i128;
                    let sticky = if wide.unsigned_abs() >> 53 != 0 {
                        (wide >> 16 << 16) | i128::from(wide & 0xffff != 0) << 16
                    } else {
                        wide
                    };
                    odd_f32(sticky as f64)
                }),
                _ => return None,
            }
        };
    }
    Some(match (from, signed) {
        (Elem::I1, true) => match to {
            Elem::Float(FloatKind::F64) => kernel!(u8 => f64, |a| -f64::from(a)),
            Elem::Float(_) => kernel!(u8 => f32, |a| -f32::from(a)),
            _ => return None,
        },
        (Elem::I1, false) | (Elem::I8, false) => k!(u8),
        (Elem::I8, true) => k!(i8),
        (Elem::I16, true) => k!(i16),
        (Elem::I16, false) => k!(u16),
        (Elem::I32, true) => k!(i32),
        (Elem::I32, false) => k!(u32),
        (Elem::I64, true) => k!(i64),
        (Elem::I64, false) => k!(u64),
        _ => return None,
    })
}

/// Float to integer, towards zero; out of range gives the nearest integer, NaN gives 0 (as PTX `cvt` does). Integers of 8 and 16 bits are
/// the low bits of one of 32, as compiled code has them: bytes of exponents (128 as `int8`) and of colors (-1 as `uint8`) wrap.
pub fn float_to_int(from: Elem, to: Elem, signed: bool) -> Option<Kernel> {
    macro_rules! k {
        ($F:ty) => {
            match (to, signed) {
                (Elem::I1, _) => kernel!($F => u8, |a| (a as i64 & 1) as u8),
                (Elem::I8, true) => kernel!($F => i8, |a| a as i32 as i8),
                (Elem::I8, false) => kernel!($F => u8, |a| a as i32 as u8),
                (Elem::I16, true) => kernel!($F => i16, |a| a as i32 as i16),
                (Elem::I16, false) => kernel!($F => u16, |a| a as i32 as u16),
                (Elem::I32, true) => kernel!($F => i32, |a| a as i32),
                (Elem::I32, false) => kernel!($F => u32, |a| a as u32),
                (Elem::I64, true) => kernel!($F => i64, |a| a as i64),
                (Elem::I64, false) => kernel!($F => u64, |a| a as u64),
                _ => return None,
            }
        };
    }
    match from {
        Elem::Float(FloatKind::F64) => Some(k!(f64)),
        Elem::Float(_) => Some(k!(f32)),
        _ => None,
    }
}

/// Float to float; where the result is narrower it still has to be rounded to its format.
pub fn float_to_float(from: Elem, to: Elem) -> Option<Kernel> {
    Some(match (from, to) {
        (Elem::Float(FloatKind::F64), Elem::Float(FloatKind::F64)) => copy(8),
        (Elem::Float(FloatKind::F64), Elem::Float(FloatKind::F32)) => kernel!(f64 => f32, |a| a as f32),
        (Elem::Float(FloatKind::F64), Elem::Float(_)) => kernel!(f64 => f32, odd_f32),
        (Elem::Float(_), Elem::Float(FloatKind::F64)) => kernel!(f32 => f64, f64::from),
        (Elem::Float(_), Elem::Float(_)) => copy(4),
        _ => return None,
    })
}

/// `f64` to `f32` towards zero: what is too large becomes the largest finite number.
pub fn truncate_to_f32() -> Kernel {
    kernel!(f64 => f32, |a| {
        let near = a as f32;
        let further = f64::from(near).abs() > a.abs();
        if further { f32::from_bits(near.to_bits() - 1) } else { near }
    })
}

/// The first `n` values of a format's memory encoding, from registers.
pub fn to_memory(elem: Elem) -> Option<Kernel> {
    Some(match elem {
        Elem::Float(FloatKind::F16) => kernel!(f32 => u16, encode_f16),
        Elem::Float(FloatKind::BF16) => kernel!(f32 => u16, encode_bf16),
        Elem::Float(FloatKind::F8E4M3FN) => kernel!(f32 => u8, |x| encode_fp8(x, FloatKind::F8E4M3FN)),
        Elem::Float(FloatKind::F8E5M2) => kernel!(f32 => u8, |x| encode_fp8(x, FloatKind::F8E5M2)),
        Elem::Float(FloatKind::F8E4M3FNUZ) => kernel!(f32 => u8, |x| encode_fp8(x, FloatKind::F8E4M3FNUZ)),
        Elem::Float(FloatKind::F8E5M2FNUZ) => kernel!(f32 => u8, |x| encode_fp8(x, FloatKind::F8E5M2FNUZ)),
        Elem::Float(FloatKind::F8E4M3B11FNUZ) => {
            kernel!(f32 => u8, |x| encode_fp8(x, FloatKind::F8E4M3B11FNUZ))
        }
        _ => return None,
    })
}

/// Registers from a format's memory encoding; `None` where they are the same. Any non-zero byte is a true `i1`.
pub fn from_memory(elem: Elem) -> Option<Kernel> {
    macro_rules! fp8 {
        ($k:ident) => {{
            unsafe fn k(s: [*const u8; 3], d: *mut u8, n: usize) {
                let table = fp8_table(FloatKind::$k);
                // SAFETY: the caller's promise (see `Kernel`).
                unsafe { super::map1::<u8, f32, _>(s, d, n, |b| table[b as usize]) }
            }
            k as Kernel
        }};
    }
    Some(match elem {
        Elem::I1 => kernel!(u8 => u8, |b| u8::from(b != 0)),
        Elem::Float(FloatKind::F16) => kernel!(u16 => f32, decode_f16),
        Elem::Float(FloatKind::BF16) => kernel!(u16 => f32, |h| f32::from_bits(u32::from(h) << 16)),
        Elem::Float(FloatKind::F8E4M3FN) => fp8!(F8E4M3FN),
        Elem::Float(FloatKind::F8E5M2) => fp8!(F8E5M2),
        Elem::Float(FloatKind::F8E4M3FNUZ) => fp8!(F8E4M3FNUZ),
        Elem::Float(FloatKind::F8E5M2FNUZ) => fp8!(F8E5M2FNUZ),
        Elem::Float(FloatKind::F8E4M3B11FNUZ) => fp8!(F8E4M3B11FNUZ),
        _ => return None,
    })
}
