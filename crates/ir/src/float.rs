//! Bits of the floating-point formats: rounding a double to a format, and a format's bit patterns.
//!
//! Attributes hold every float as a double, exactly; whoever makes one (the parser, constant folding) rounds first.

use crate::types::FloatKind;

/// What a format is: a sign, an exponent and a mantissa, whose leading bit is not stored.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Bits of the exponent.
    pub exponent_bits: u32,
    /// Bits of the mantissa.
    pub mantissa_bits: u32,
    /// What is subtracted from the stored exponent.
    pub bias: i32,
    /// The largest finite value.
    pub max: f64,
    /// Whether the highest exponent means infinity and NaN (IEEE 754).
    pub infinity: bool,
    /// Whether there is one NaN, in the place of negative zero (`FNUZ`).
    pub fnuz: bool,
}

/// The parameters of a format (OCP 8-bit Floating Point Specification 1.0 for `E4M3FN` and `E5M2`; LLVM's `APFloat` for
/// the `FNUZ` kinds).
pub const fn format(kind: FloatKind) -> Format {
    const fn f(e: u32, m: u32, bias: i32, max: f64, infinity: bool, fnuz: bool) -> Format {
        Format { exponent_bits: e, mantissa_bits: m, bias, max, infinity, fnuz }
    }
    match kind {
        FloatKind::F8E4M3FN => f(4, 3, 7, 448.0, false, false),
        FloatKind::F8E5M2 => f(5, 2, 15, 57344.0, true, false),
        FloatKind::F8E4M3FNUZ => f(4, 3, 8, 240.0, false, true),
        FloatKind::F8E5M2FNUZ => f(5, 2, 16, 57344.0, false, true),
        FloatKind::F8E4M3B11FNUZ => f(4, 3, 11, 30.0, false, true),
        FloatKind::F16 => f(5, 10, 15, 65504.0, true, false),
        FloatKind::BF16 => f(8, 7, 127, 3.389_531_389_251_535_5e38, true, false),
        FloatKind::F32 => f(8, 23, 127, f32::MAX as f64, true, false),
        FloatKind::F64 => f(11, 52, 1023, f64::MAX, true, false),
    }
}

/// Rounds to the nearest value of the format, ties to even. What is too large becomes infinity, or NaN in the formats
/// that have no infinity.
pub fn round(value: f64, kind: FloatKind) -> f64 {
    match kind {
        FloatKind::F64 => value,
        FloatKind::F32 => f64::from(value as f32),
        _ => round_generic(value, format(kind)),
    }
}

fn round_generic(value: f64, f: Format) -> f64 {
    if value.is_nan() {
        return value;
    }
    if value == 0.0 {
        return if f.fnuz { 0.0 } else { value };
    }
    if value.is_infinite() {
        return if f.infinity { value } else { f64::NAN };
    }
    let exponent = (((value.to_bits() >> 52) & 0x7ff) as i32 - 1023).max(1 - f.bias);
    // One unit in the last place; scaling by a power of two is exact.
    let ulp = exponent - f.mantissa_bits as i32;
    let scaled = (value * exp2(-ulp)).round_ties_even();
    let rounded = scaled * exp2(ulp);
    if rounded.abs() > f.max {
        return if f.infinity { f64::INFINITY.copysign(value) } else { f64::NAN };
    }
    if rounded == 0.0 && f.fnuz { 0.0 } else { rounded }
}

fn exp2(e: i32) -> f64 {
    f64::from_bits(((e + 1023) as u64) << 52)
}

/// The bit pattern of a value; it is rounded first.
pub fn to_bits(value: f64, kind: FloatKind) -> u64 {
    match kind {
        FloatKind::F64 => return value.to_bits(),
        FloatKind::F32 => return u64::from((value as f32).to_bits()),
        _ => {}
    }
    let f = format(kind);
    let value = round_generic(value, f);
    let sign = u64::from(value.is_sign_negative()) << (f.exponent_bits + f.mantissa_bits);
    let top = (1u64 << f.exponent_bits) - 1;
    if value.is_nan() {
        return match (f.infinity, f.fnuz) {
            (true, _) => sign | (top << f.mantissa_bits) | (1 << (f.mantissa_bits - 1)),
            (false, true) => 1 << (f.exponent_bits + f.mantissa_bits),
            (false, false) => sign | ((1 << (f.exponent_bits + f.mantissa_bits)) - 1),
        };
    }
    if value.is_infinite() {
        return sign | (top << f.mantissa_bits);
    }
    if value == 0.0 {
        return sign;
    }
    let exponent = ((value.abs().to_bits() >> 52) as i32 - 1023).max(1 - f.bias);
    let mantissa = (value.abs() * exp2(f.mantissa_bits as i32 - exponent)) as u64;
    // A normal number's leading one adds 1 to the exponent field, a subnormal has none.
    sign | ((((exponent + f.bias - 1) as u64) << f.mantissa_bits) + mantissa)
}

/// The value of a bit pattern; bits above the format's width are ignored.
pub fn from_bits(bits: u64, kind: FloatKind) -> f64 {
    match kind {
        FloatKind::F64 => return f64::from_bits(bits),
        FloatKind::F32 => return f64::from(f32::from_bits(bits as u32)),
        _ => {}
    }
    let f = format(kind);
    let width = f.exponent_bits + f.mantissa_bits;
    let negative = bits >> width & 1 == 1;
    let magnitude = bits & ((1 << width) - 1);
    let (exponent, mantissa) =
        ((magnitude >> f.mantissa_bits) as i32, magnitude & ((1 << f.mantissa_bits) - 1));
    let top = (1i32 << f.exponent_bits) - 1;
    let value = if f.infinity && exponent == top {
        if mantissa == 0 { f64::INFINITY } else { f64::NAN }
    } else if f.fnuz && negative && magnitude == 0 {
        return f64::NAN;
    } else if !f.infinity && !f.fnuz && magnitude == (1 << width) - 1 {
        f64::NAN
    } else if exponent == 0 {
        mantissa as f64 * exp2(1 - f.bias - f.mantissa_bits as i32)
    } else {
        (1.0 + mantissa as f64 / (1u64 << f.mantissa_bits) as f64) * exp2(exponent - f.bias)
    };
    if negative { -value } else { value }
}

/// Decimal digits that tell every value of the format from its neighbours.
pub(crate) fn decimal_digits(kind: FloatKind) -> usize {
    (2 + (format(kind).mantissa_bits + 1) * 59 / 196) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: [FloatKind; 7] = [
        FloatKind::F8E4M3FN,
        FloatKind::F8E5M2,
        FloatKind::F8E4M3FNUZ,
        FloatKind::F8E5M2FNUZ,
        FloatKind::F8E4M3B11FNUZ,
        FloatKind::F16,
        FloatKind::BF16,
    ];

    #[test]
    fn every_pattern_is_its_own_value() {
        for kind in NARROW {
            for bits in 0..1u64 << kind.bits() {
                let value = from_bits(bits, kind);
                if value.is_nan() {
                    assert!(from_bits(to_bits(value, kind), kind).is_nan(), "{kind:?} {bits:#x}");
                    continue;
                }
                assert_eq!(to_bits(value, kind), bits, "{kind:?} {value}");
                assert_eq!(round(value, kind).to_bits(), value.to_bits(), "{kind:?}");
            }
        }
    }

    #[test]
    fn the_largest_value_has_a_pattern() {
        for kind in NARROW {
            let finite = (0..1u64 << kind.bits()).map(|bits| from_bits(bits, kind)).filter(|v| v.is_finite());
            assert_eq!(finite.fold(0.0, f64::max), format(kind).max, "{kind:?}");
        }
    }

    #[test]
    fn rounding_goes_to_the_nearest_with_ties_to_even() {
        for kind in NARROW {
            for bits in 0..(1u64 << (kind.bits() - 1)) - 1 {
                let (a, b) = (from_bits(bits, kind), from_bits(bits + 1, kind));
                if !a.is_finite() || !b.is_finite() {
                    continue;
                }
                let even = if bits & 1 == 0 { a } else { b };
                assert_eq!(round(a + (b - a) / 2.0, kind), even, "{kind:?} {a} {b}");
                assert_eq!(round(a + (b - a) * 0.51, kind), b, "{kind:?} {a} {b}");
                assert_eq!(round(a + (b - a) * 0.49, kind), a, "{kind:?} {a} {b}");
            }
        }
    }

    #[test]
    fn known_patterns() {
        assert_eq!(to_bits(1.0, FloatKind::F16), 0x3c00);
        assert_eq!(to_bits(-2.0, FloatKind::BF16), 0xc000);
        assert_eq!(to_bits(448.0, FloatKind::F8E4M3FN), 0x7e);
        assert!(round(480.0, FloatKind::F8E4M3FN).is_nan());
        assert_eq!(round(1e6, FloatKind::F16), f64::INFINITY);
        assert_eq!(from_bits(0x7f80_0000, FloatKind::F32), f64::INFINITY);
    }
}
