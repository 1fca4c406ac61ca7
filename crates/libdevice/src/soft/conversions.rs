//! Between floats and integers, and numbers times a power of two.

use super::{
    Number, Rounding, incremented, infinity, jammed, nan_where, normalized, parts, rounded, with_sticky,
};
use crate::record::{Binary as B, Compare as C, Convert, Recorder, Word};

/// An integer as a float.
pub fn float_of<R: Recorder>(r: &mut R, x: R::Value, signed: bool, to: Word, rounding: Rounding) -> R::Value {
    let wide = r.convert(if signed { Convert::Sign } else { Convert::Zero }, x, Word::I64);
    let none = r.integer(0, Word::I64);
    let (sign, magnitude) = if signed {
        let negative = r.compare(C::LessS, wide, none);
        let turned = r.binary(B::Sub, none, wide);
        let one = r.integer(1, Word::I64);
        (r.select(negative, one, none), r.select(negative, turned, wide))
    } else {
        (none, wide)
    };
    // (Of 61 bits and more, four go.)
    let limit = r.integer(1 << 60, Word::I64);
    let fits = r.compare(C::LessU, magnitude, limit);
    let lost = r.with(B::And, magnitude, 0xf);
    let less = r.with(B::ShrU, magnitude, 4);
    let less = with_sticky(r, less, lost);
    let integer = r.select(fits, magnitude, less);
    let four = r.integer(4, Word::I64);
    let exponent = r.select(fits, none, four);
    rounded(r, Number { sign, exponent, integer }, to, rounding)
}

/// A number of fp64 in fp32.
pub fn narrowed<R: Recorder>(r: &mut R, x: R::Value, rounding: Rounding) -> R::Value {
    let a = parts(r, x);
    let made = rounded(r, a.number, Word::F32, rounding);
    let endless = infinity(r, a.number.sign, Word::F32);
    let made = r.select(a.infinite, endless, made);
    nan_where(r, made, &[a.nan])
}

/// A number of fp32 as an integer, the nearest that there is where it is beyond these; of NaN 0 in 32 bits, the highest bit in 64 (as `cvt` has it).
pub fn whole<R: Recorder>(r: &mut R, x: R::Value, to: Word, signed: bool, rounding: Rounding) -> R::Value {
    let a = parts(r, x);
    let n = a.number;
    let none = r.integer(0, Word::I64);
    let upwards = r.compare(C::LessS, none, n.exponent);
    let (down, zero) = (r.binary(B::Sub, none, n.exponent), none);
    let down = r.select(upwards, zero, down);
    // With a fraction of 32 bits.
    let integer = r.with(B::Shl, n.integer, 32);
    let integer = jammed(r, integer, down);
    let small = incremented(r, integer, n.sign, 32, rounding);
    // A number that is whole: up to 64 bits.
    let mut large = n.integer;
    for by in [32, 16, 8, 4, 2, 1] {
        let taken = r.with(B::And, n.exponent, by);
        let stays = r.is(taken, 0);
        let moved = r.with(B::Shl, large, by);
        large = r.select(stays, large, moved);
    }
    let magnitude = r.select(upwards, large, small);
    let beyond = r.integer(40, Word::I64);
    let far = r.compare(C::LessS, beyond, n.exponent);
    let negative = r.is(n.sign, 1);
    let (least, most) = match (to, signed) {
        (Word::I64, true) => (1u64 << 63, (1 << 63) - 1),
        (Word::I64, false) => (0, u64::MAX),
        (_, true) => (1 << 31, (1 << 31) - 1),
        (_, false) => (0, u64::from(u32::MAX)),
    };
    // How far it may go, by its sign.
    let (least, most) = (r.integer(least as i64, Word::I64), r.integer(most as i64, Word::I64));
    let limit = r.select(negative, least, most);
    let over = r.compare(C::LessU, limit, magnitude);
    let magnitude = r.select(over, limit, magnitude);
    let magnitude = r.select(far, limit, magnitude);
    let turned = r.binary(B::Sub, none, magnitude);
    let value = r.select(negative, turned, magnitude);
    let of_nan = if to == Word::I64 { i64::MIN } else { 0 };
    let of_nan = r.integer(of_nan, Word::I64);
    let value = r.select(a.nan, of_nan, value);
    r.convert(Convert::Low, value, to)
}

/// `x` times 2 to the power of an integer of 32 bits, rounded once.
pub fn scaled<R: Recorder>(r: &mut R, x: R::Value, power: R::Value) -> R::Value {
    let a = parts(r, x);
    let power = r.convert(Convert::Sign, power, Word::I64);
    let (most, least) = (r.integer(3000, Word::I64), r.integer(-3000, Word::I64));
    let above = r.compare(C::LessS, most, power);
    let power = r.select(above, most, power);
    let below = r.compare(C::LessS, power, least);
    let power = r.select(below, least, power);
    let exponent = r.binary(B::Add, a.number.exponent, power);
    let made = rounded(r, Number { exponent, ..a.number }, r.word(x), Rounding::Nearest);
    let made = r.select(a.zero, x, made);
    let made = r.select(a.infinite, x, made);
    r.select(a.nan, x, made)
}

/// The power of two that a number begins with, and whether it has none since it is zero, infinite, or NaN.
pub fn exponent<R: Recorder>(r: &mut R, x: R::Value) -> (R::Value, [R::Value; 3]) {
    let a = parts(r, x);
    let top = i64::from(r.word(x).fraction());
    let n = normalized(r, a.number, top);
    let exponent = r.with(B::Add, n.exponent, top);
    (r.convert(Convert::Low, exponent, Word::I32), [a.zero, a.infinite, a.nan])
}
