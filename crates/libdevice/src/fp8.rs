//! Floats of 8 bits (OCP OFP8) as integers, for targets without instructions for them.

use crate::record::{Binary, Compare, Convert, Recorder, Word};

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `E4M3`: no infinity, one NaN of each sign.
    E4M3,
    /// `E5M2`: the upper half of an fp16.
    E5M2,
}

/// A number in fp16, which holds all of them.
pub fn widen<R: Recorder>(r: &mut R, code: R::Value, format: Format) -> R::Value {
    let x = r.convert(Convert::Zero, code, Word::I16);
    if format == Format::E5M2 {
        let bits = r.with(Binary::Shl, x, 8);
        return r.convert(Convert::Bits, bits, Word::F16);
    }
    // The fields moved into place make the number over 2^8.
    let magnitude = r.with(Binary::And, x, 0x7f);
    let sign = r.with(Binary::And, x, 0x80);
    let (fields, sign) = (r.with(Binary::Shl, magnitude, 7), r.with(Binary::Shl, sign, 8));
    let bits = r.binary(Binary::Or, fields, sign);
    let scaled = r.convert(Convert::Bits, bits, Word::F16);
    let scale = r.number(256.0, Word::F16);
    let value = r.binary(Binary::MulF, scaled, scale);
    let is_nan = r.is(magnitude, 0x7f);
    let nan = r.number(f64::NAN, Word::F16);
    r.select(is_nan, nan, value)
}

/// A number of fp32 in a format: to nearest even (as `cvt.rn.satfinite` does) or towards zero, the largest one where it is beyond that.
pub fn narrow<R: Recorder>(r: &mut R, x: R::Value, format: Format, towards_zero: bool) -> R::Value {
    let (mantissa, bias, least, max) = match format {
        Format::E4M3 => (3i64, 7i64, 2f64.powi(-6), 448.0),
        Format::E5M2 => (2, 15, 2f64.powi(-14), 57344.0),
    };
    let bits = r.convert(Convert::Bits, x, Word::I32);
    let sign = r.with(Binary::ShrU, bits, 24);
    let sign = r.with(Binary::And, sign, 0x80);
    let magnitude = r.magnitude(x);
    let limit = r.number(max, Word::F32);
    let clamped = r.binary(Binary::MinF, magnitude, limit);
    // Normal numbers: round the fraction's lower bits away; a carry into the exponent comes out right.
    let drop = 23 - mantissa;
    let field = r.convert(Convert::Bits, clamped, Word::I32);
    let rounded = if towards_zero {
        field
    } else {
        let odd = r.with(Binary::ShrU, field, drop);
        let odd = r.with(Binary::And, odd, 1);
        let half = r.with(Binary::Add, field, (1 << (drop - 1)) - 1);
        r.binary(Binary::Add, half, odd)
    };
    let normal = r.with(Binary::ShrU, rounded, drop);
    let normal = r.with(Binary::Add, normal, -((127 - bias) << mantissa));
    // Denormals: adding 2^23 steps leaves the number of steps in the low bits.
    let step = least / f64::from(1 << mantissa);
    let small = if towards_zero {
        let per_step = r.number(step.recip(), Word::F32);
        let steps = r.binary(Binary::MulF, clamped, per_step);
        r.convert(Convert::Whole, steps, Word::I32)
    } else {
        let magic = r.number(step * f64::from(1 << 23), Word::F32);
        let sum = r.binary(Binary::AddF, clamped, magic);
        let sum = r.convert(Convert::Bits, sum, Word::I32);
        let magic = r.convert(Convert::Bits, magic, Word::I32);
        r.binary(Binary::Sub, sum, magic)
    };
    let least = r.number(least, Word::F32);
    let is_small = r.compare(Compare::LessF, clamped, least);
    let code = r.select(is_small, small, normal);
    let is_nan = r.compare(Compare::NotF, x, x);
    let nan = r.integer(0x7f, Word::I32);
    let code = r.select(is_nan, nan, code);
    let code = r.binary(Binary::Or, code, sign);
    r.convert(Convert::Low, code, Word::I8)
}
