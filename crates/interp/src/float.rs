//! Narrow floating-point formats: rounding to them, and their encodings in memory.
//!
//! The loops over `f16` and `bf16` are branch-free integer arithmetic so that they vectorize on any CPU; the fp8 formats
//! go through one general routine and a 256-entry table. See `docs/numerics.md`.

use std::sync::OnceLock;

use tilewright_ir::FloatKind;
use tilewright_ir::float::format;

/// How a conversion rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// To nearest, ties to even.
    Nearest,
    /// Towards zero.
    Zero,
}

/// Rounds to a narrower format, exactly once. fp8 formats saturate (infinities too, as `cvt.satfinite` does: PTX ISA,
/// "cvt"); others overflow to infinity, or to the largest finite value when rounding towards zero.
pub fn round_f64(x: f64, kind: FloatKind, rounding: Rounding) -> f64 {
    if kind == FloatKind::F64 || x.is_nan() || x == 0.0 {
        let negative_zero = x == 0.0 && x.is_sign_negative();
        return if negative_zero && format(kind).fnuz { 0.0 } else { x };
    }
    let fmt = format(kind);
    let saturate = kind.bits() == 8;
    let overflow = if saturate { fmt.max } else { f64::INFINITY };
    if x.is_infinite() {
        return overflow.copysign(x);
    }
    // The value of one unit in the last place: 2^(exponent - mantissa), not below that of the subnormals. Scaling by
    // a power of two is exact, so the only rounding is the one to an integer.
    let exponent = exponent_of(x).max(1 - fmt.bias);
    let ulp_exponent = exponent - fmt.mantissa_bits as i32;
    let scaled = scale(x, -ulp_exponent);
    let rounded = match rounding {
        Rounding::Nearest => scaled.round_ties_even(),
        Rounding::Zero => scaled.trunc(),
    };
    let result = scale(rounded, ulp_exponent);
    if result.abs() > fmt.max {
        return match rounding {
            Rounding::Nearest => overflow.copysign(x),
            Rounding::Zero => fmt.max.copysign(x),
        };
    }
    if result == 0.0 && fmt.fnuz { 0.0 } else { result }
}

/// floor(log2(|x|)) of a finite non-zero number.
fn exponent_of(x: f64) -> i32 {
    let biased = ((x.to_bits() >> 52) & 0x7ff) as i32;
    if biased == 0 { exponent_of(x * 2f64.powi(64)) - 64 } else { biased - 1023 }
}

/// x · 2^n in steps that stay within the exponent range.
fn scale(x: f64, n: i32) -> f64 {
    let half = n / 2;
    x * 2f64.powi(half) * 2f64.powi(n - half)
}

/// Rounds an `f32` to `f16` (to nearest even), as an `f32`.
#[inline(always)]
pub fn round_f16(x: f32) -> f32 {
    let bits = x.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let sign = bits & 0x8000_0000;
    let nearest = magnitude.wrapping_add(0x0fff + ((magnitude >> 13) & 1)) & !0x1fff;
    let normal = if nearest >= 0x4780_0000 { 0x7f80_0000 } else { nearest };
    // Adding 0.5 aligns the last bit with 2^-24, the step of the subnormals.
    let subnormal = ((f32::from_bits(magnitude) + 0.5) - 0.5).to_bits();
    let finite = if magnitude < 0x3880_0000 { subnormal } else { normal };
    let result = if magnitude > 0x7f80_0000 { magnitude & !0x1fff | 0x0040_0000 } else { finite };
    f32::from_bits(sign | result)
}

/// Rounds an `f32` to `bf16` (to nearest even), as an `f32`.
#[inline(always)]
pub fn round_bf16(x: f32) -> f32 {
    let bits = x.to_bits();
    let nearest = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) & !0xffff;
    let nan = bits & !0xffff | 0x0040_0000;
    f32::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 { nan } else { nearest })
}

/// Rounds an `f32` to TF32: 10 explicit significand bits, to nearest, ties away from zero (PTX `cvt.rna.tf32.f32`).
#[inline(always)]
pub fn round_tf32(x: f32) -> f32 {
    let bits = x.to_bits();
    let nearest = bits.wrapping_add(0x1000) & !0x1fff;
    f32::from_bits(if bits & 0x7fff_ffff >= 0x7f80_0000 { bits } else { nearest })
}

/// The `f32` of an `f16`'s bits, NaN payloads kept.
#[inline(always)]
pub fn decode_f16(h: u16) -> f32 {
    let sign = u32::from(h & 0x8000) << 16;
    let magnitude = u32::from(h & 0x7fff) << 13;
    // Rebias by a multiplication, which is exact and handles subnormals; infinity and NaN keep their exponent of ones.
    let finite = (f32::from_bits(magnitude) * f32::from_bits(0x7780_0000)).to_bits();
    let result = if magnitude >= 0x0f80_0000 { magnitude | 0x7f80_0000 } else { finite };
    f32::from_bits(sign | result)
}

/// The `f16` bits of an `f32` that is exactly representable.
#[inline(always)]
pub fn encode_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    let normal = magnitude.wrapping_sub(0x3800_0000) >> 13;
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits() & 0x7fff;
    let finite = if magnitude < 0x3880_0000 { subnormal } else { normal };
    let payload = (magnitude >> 13) & 0x03ff;
    let nan = 0x7c00 | payload | u32::from(payload == 0);
    let special = if magnitude == 0x7f80_0000 { 0x7c00 } else { nan };
    (sign | if magnitude >= 0x7f80_0000 { special } else { finite }) as u16
}

/// The `bf16` bits of an `f32` that is exactly representable.
#[inline(always)]
pub fn encode_bf16(x: f32) -> u16 {
    (x.to_bits() >> 16) as u16
}

/// The 256 values of an fp8 format.
pub fn fp8_table(kind: FloatKind) -> &'static [f32; 256] {
    static TABLES: [OnceLock<[f32; 256]>; 5] = [const { OnceLock::new() }; 5];
    let index = match kind {
        FloatKind::F8E4M3FN => 0,
        FloatKind::F8E5M2 => 1,
        FloatKind::F8E4M3FNUZ => 2,
        FloatKind::F8E5M2FNUZ => 3,
        _ => 4,
    };
    TABLES[index].get_or_init(|| std::array::from_fn(|byte| decode_fp8(byte as u8, kind)))
}

fn decode_fp8(byte: u8, kind: FloatKind) -> f32 {
    let fmt = format(kind);
    let sign = if byte & 0x80 != 0 { -1.0f32 } else { 1.0 };
    let nan = f32::from_bits(f32::NAN.to_bits() | (u32::from(byte & 0x80) << 24));
    if fmt.fnuz && byte == 0x80 {
        return nan;
    }
    let mantissa_mask = (1u8 << fmt.mantissa_bits) - 1;
    let exponent = i32::from((byte & 0x7f) >> fmt.mantissa_bits);
    let mantissa = byte & mantissa_mask;
    let ones = 0x7f >> fmt.mantissa_bits;
    if fmt.infinity && exponent == ones {
        // The payload stands in the top bits of the f32's, so that a bit cast gives the byte back.
        let payload = u32::from(mantissa) << (23 - fmt.mantissa_bits);
        return f32::from_bits((u32::from(byte & 0x80) << 24) | 0x7f80_0000 | payload);
    }
    if kind == FloatKind::F8E4M3FN && byte & 0x7f == 0x7f {
        return nan;
    }
    let (significand, exponent) = if exponent == 0 {
        (f64::from(mantissa), 1)
    } else {
        (f64::from(mantissa) + f64::from(1u32 << fmt.mantissa_bits), exponent)
    };
    sign * scale(significand, exponent - fmt.bias - fmt.mantissa_bits as i32) as f32
}

/// The fp8 bits of an `f32` that is exactly representable (or NaN).
pub fn encode_fp8(x: f32, kind: FloatKind) -> u8 {
    let fmt = format(kind);
    let sign = if x.is_sign_negative() { 0x80u8 } else { 0 };
    if x.is_nan() {
        if fmt.fnuz {
            return 0x80;
        }
        if fmt.infinity {
            let payload = ((x.to_bits() & 0x007f_ffff) >> (23 - fmt.mantissa_bits)) as u8;
            let ones = 0x7fu8 >> fmt.mantissa_bits << fmt.mantissa_bits;
            return sign | ones | if payload == 0 { 2 } else { payload };
        }
        return sign | 0x7f;
    }
    if x.is_infinite() {
        return sign | if fmt.infinity { 0x7f >> fmt.mantissa_bits << fmt.mantissa_bits } else { 0x7f };
    }
    if x == 0.0 {
        return if fmt.fnuz { 0 } else { sign };
    }
    let magnitude = f64::from(x.abs());
    let exponent = exponent_of(magnitude).max(1 - fmt.bias);
    let units = scale(magnitude, fmt.mantissa_bits as i32 - exponent) as u32;
    let implicit = 1u32 << fmt.mantissa_bits;
    let biased = if units < implicit { 0 } else { (exponent + fmt.bias) as u32 };
    sign | ((biased << fmt.mantissa_bits) | (units & (implicit - 1))) as u8
}

/// Rounds values held as `f32` to a narrow format in place; nothing to do for `f32`.
pub fn round_slice(values: &mut [f32], kind: FloatKind, rounding: Rounding) {
    match (kind, rounding) {
        (FloatKind::F32 | FloatKind::F64, _) => {}
        (FloatKind::F16, Rounding::Nearest) => values.iter_mut().for_each(|x| *x = round_f16(*x)),
        (FloatKind::BF16, Rounding::Nearest) => values.iter_mut().for_each(|x| *x = round_bf16(*x)),
        _ => values.iter_mut().for_each(|x| {
            if !x.is_nan() {
                *x = round_f64(f64::from(*x), kind, rounding) as f32;
            }
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FP8: [FloatKind; 5] = [
        FloatKind::F8E4M3FN,
        FloatKind::F8E5M2,
        FloatKind::F8E4M3FNUZ,
        FloatKind::F8E5M2FNUZ,
        FloatKind::F8E4M3B11FNUZ,
    ];

    #[test]
    fn fp8_bytes_round_trip() {
        for kind in FP8 {
            for byte in 0..=255u8 {
                let x = fp8_table(kind)[byte as usize];
                assert_eq!(encode_fp8(x, kind), byte, "{kind:?} {byte:#x} = {x}");
                if !x.is_nan() && !x.is_infinite() {
                    assert_eq!(round_f64(f64::from(x), kind, Rounding::Nearest), f64::from(x));
                }
            }
        }
    }

    #[test]
    fn fp8_known_values() {
        assert_eq!(fp8_table(FloatKind::F8E4M3FN)[0x7e], 448.0);
        assert_eq!(fp8_table(FloatKind::F8E4M3FN)[0x01], 2f32.powi(-9));
        assert_eq!(fp8_table(FloatKind::F8E5M2)[0x7b], 57344.0);
        assert!(fp8_table(FloatKind::F8E5M2)[0x7c].is_infinite());
        assert_eq!(fp8_table(FloatKind::F8E4M3FNUZ)[0x7f], 240.0);
        assert_eq!(fp8_table(FloatKind::F8E5M2FNUZ)[0x7f], 57344.0);
        assert_eq!(fp8_table(FloatKind::F8E4M3B11FNUZ)[0x7f], 30.0);
        assert!(fp8_table(FloatKind::F8E4M3FNUZ)[0x80].is_nan());
    }

    #[test]
    fn fp8_rounds_to_the_nearest_value() {
        for kind in FP8 {
            let mut values: Vec<f64> =
                fp8_table(kind).iter().filter(|x| x.is_finite()).map(|&x| f64::from(x)).collect();
            values.sort_by(f64::total_cmp);
            values.dedup();
            for pair in values.windows(2) {
                for t in [0.25, 0.5, 0.75] {
                    let x = pair[0] + (pair[1] - pair[0]) * t;
                    let got = round_f64(x, kind, Rounding::Nearest);
                    let want = match t {
                        0.25 => pair[0],
                        0.75 => pair[1],
                        // A tie goes to the even byte.
                        _ if encode_fp8(pair[0] as f32, kind) & 1 == 0 => pair[0],
                        _ => pair[1],
                    };
                    assert_eq!(got, want, "{kind:?} {x}");
                    let zero = if x > 0.0 { pair[0] } else { pair[1] };
                    assert_eq!(round_f64(x, kind, Rounding::Zero), zero);
                }
            }
            let max = *values.last().unwrap();
            for big in [max * 1.01, max * 100.0, f64::INFINITY] {
                assert_eq!(round_f64(big, kind, Rounding::Nearest), max);
                assert_eq!(round_f64(-big, kind, Rounding::Nearest), -max);
            }
        }
    }

    #[test]
    fn f16_bits_round_trip() {
        for h in 0..=u16::MAX {
            let x = decode_f16(h);
            assert_eq!(encode_f16(x), h, "{h:#x}");
            if !x.is_nan() {
                assert_eq!(round_f16(x).to_bits(), x.to_bits());
            }
        }
    }

    #[test]
    fn f16_and_bf16_round_as_the_general_routine() {
        let mut bits = 1u32;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            for x in [f32::from_bits(bits), f32::from_bits(bits & 0x8fff_ffff | 0x3000_0000)] {
                if x.is_nan() {
                    assert!(round_f16(x).is_nan() && round_bf16(x).is_nan());
                    continue;
                }
                for (kind, got) in [(FloatKind::F16, round_f16(x)), (FloatKind::BF16, round_bf16(x))] {
                    let want = round_f64(f64::from(x), kind, Rounding::Nearest) as f32;
                    assert_eq!(got.to_bits(), want.to_bits(), "{kind:?} {x:e}");
                }
            }
        }
    }

    #[test]
    fn tf32_keeps_ten_bits() {
        assert_eq!(round_tf32(1.0 + 2f32.powi(-11)), 1.0 + 2f32.powi(-10));
        assert_eq!(round_tf32(1.0 + 2f32.powi(-12)), 1.0);
        assert!(round_tf32(f32::NAN).is_nan());
    }
}
