//! Arithmetic of fp32 and fp64 in integers of 64 bits, rounded once, in whatever direction: for targets whose instructions promise less.
//!
//! A number is taken apart into a sign, an integer and a power of two, computed with exactly but for a lowest bit that says whether anything is behind it, and put together again.
//! Shifts are by constants, of which a value takes those that it needs, so that vectors without shifts of their own for each element can do it.

mod arithmetic;
mod conversions;

pub use arithmetic::{divide, fma, fmod, multiply, remainder, sqrt, sum};
pub use conversions::{exponent, float_of, narrowed, scaled, whole};

use crate::record::{Binary as B, Compare as C, Convert, Recorder, Word};

/// Where a result goes that is none of the numbers that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, halves to the even one.
    Nearest,
    /// Towards zero.
    Zero,
    /// Towards minus infinity.
    Down,
    /// Towards infinity.
    Up,
    /// To the nearest, halves away from zero.
    Away,
    /// To the one of both neighbours whose last bit is set: rounding that again to fewer bits gives what rounding once does.
    Odd,
}

/// A finite number: `sign` (0 or 1), and `integer` times 2 to the `exponent`; each an integer of 64 bits.
#[derive(Debug, Clone, Copy)]
struct Number<V> {
    sign: V,
    exponent: V,
    integer: V,
}

/// What a number is.
struct Parts<V> {
    /// As a number that it is where it is finite.
    number: Number<V>,
    nan: V,
    infinite: V,
    zero: V,
}

/// The bit that the integer of a term begins with: a sum of two has one more, and its double, too.
const TERM: i64 = 59;

/// The bit that an integer begins with before it is rounded.
const TOP: i64 = 61;

/// The bits of an infinity.
pub(crate) const fn infinity_of(word: Word) -> i64 {
    magnitude_of(word) >> word.fraction() << word.fraction()
}

/// All bits of a float but its sign.
pub(crate) const fn magnitude_of(word: Word) -> i64 {
    i64::MAX >> (64 - word.bits())
}

/// The power of two that the least number is.
const fn least_of(word: Word) -> i64 {
    let bias = infinity_of(word) >> word.fraction() >> 1;
    1 - bias - word.fraction() as i64
}

fn parts<R: Recorder>(r: &mut R, x: R::Value) -> Parts<R::Value> {
    let word = r.word(x);
    let fraction_bits = i64::from(word.fraction());
    let bits = r.convert(Convert::Bits, x, word.whole());
    let bits = r.convert(Convert::Zero, bits, Word::I64);
    let sign = r.with(B::ShrU, bits, i64::from(word.bits()) - 1);
    let magnitude = r.with(B::And, bits, magnitude_of(word));
    let field = r.with(B::ShrU, magnitude, fraction_bits);
    let fraction = r.with(B::And, magnitude, (1 << fraction_bits) - 1);
    let small = r.is(field, 0);
    let whole = r.with(B::Or, fraction, 1 << fraction_bits);
    let integer = r.select(small, fraction, whole);
    let one = r.integer(1, Word::I64);
    let field = r.select(small, one, field);
    let exponent = r.with(B::Add, field, least_of(word) - 1);
    let infinity = r.integer(infinity_of(word), Word::I64);
    let nan = r.compare(C::LessU, infinity, magnitude);
    let infinite = r.is(magnitude, infinity_of(word));
    let zero = r.is(magnitude, 0);
    Parts { number: Number { sign, exponent, integer }, nan, infinite, zero }
}

/// The same number with an integer whose highest bit is bit `top`; of zero, an exponent below all others.
fn normalized<R: Recorder>(r: &mut R, mut n: Number<R::Value>, top: i64) -> Number<R::Value> {
    let none = r.is(n.integer, 0);
    for by in [32, 16, 8, 4, 2, 1].into_iter().filter(|&by| by <= top) {
        let limit = r.integer(1 << (top + 1 - by), Word::I64);
        let low = r.compare(C::LessU, n.integer, limit);
        let (moved, less) = (r.with(B::Shl, n.integer, by), r.with(B::Add, n.exponent, -by));
        n.integer = r.select(low, moved, n.integer);
        n.exponent = r.select(low, less, n.exponent);
    }
    let least = r.integer(-10_000, Word::I64);
    n.exponent = r.select(none, least, n.exponent);
    n
}

/// An integer moved down by a number from 0 on, with whether any bit fell out in its lowest one.
fn jammed<R: Recorder>(r: &mut R, integer: R::Value, by: R::Value) -> R::Value {
    jammed_and_lost(r, integer, by).0
}

/// The same, and what fell out: nothing where that is zero.
fn jammed_and_lost<R: Recorder>(r: &mut R, mut integer: R::Value, by: R::Value) -> (R::Value, R::Value) {
    let none = r.integer(0, Word::I64);
    let mut all = none;
    let most = r.integer(63, Word::I64);
    let far = r.compare(C::LessS, most, by);
    let by = r.select(far, most, by);
    for step in [32, 16, 8, 4, 2, 1] {
        let taken = r.with(B::And, by, step);
        let stays = r.is(taken, 0);
        let lost = r.with(B::And, integer, (1 << step) - 1);
        let moved = r.with(B::ShrU, integer, step);
        let moved = with_sticky(r, moved, lost);
        integer = r.select(stays, integer, moved);
        let lost = r.select(stays, none, lost);
        all = r.binary(B::Or, all, lost);
    }
    (integer, all)
}

/// An integer whose lowest bit is set where another one is not zero.
fn with_sticky<R: Recorder>(r: &mut R, integer: R::Value, rest: R::Value) -> R::Value {
    let exact = r.is(rest, 0);
    let sticky = r.with(B::Or, integer, 1);
    r.select(exact, integer, sticky)
}

/// A number rounded to a format.
fn rounded<R: Recorder>(r: &mut R, n: Number<R::Value>, word: Word, rounding: Rounding) -> R::Value {
    let fraction_bits = i64::from(word.fraction());
    // So many bits more than there are.
    let rest = TOP - fraction_bits;
    let none = r.is(n.integer, 0);
    let n = normalized(r, n, TOP);
    let unit = r.with(B::Add, n.exponent, rest);
    let least = r.integer(least_of(word), Word::I64);
    let small = r.compare(C::LessS, unit, least);
    let missing = r.binary(B::Sub, least, unit);
    let zero = r.integer(0, Word::I64);
    let missing = r.select(small, missing, zero);
    let unit = r.select(small, least, unit);
    let integer = jammed(r, n.integer, missing);
    let kept = incremented(r, integer, n.sign, rest, rounding);
    // (The highest bit of what is kept is one more in the exponent's field; without it the number is subnormal.)
    let place = r.with(B::Add, unit, -least_of(word));
    let field = r.with(B::Shl, place, fraction_bits);
    let bits = r.binary(B::Add, field, kept);
    let infinity = r.integer(infinity_of(word), Word::I64);
    let most = r.integer((infinity_of(word) >> fraction_bits) - 2, Word::I64);
    let far = r.compare(C::LessS, most, place);
    let bits = r.select(far, infinity, bits);
    let bits = r.select(none, zero, bits);
    let finite = r.compare(C::LessS, bits, infinity);
    let beyond = match rounding {
        Rounding::Nearest | Rounding::Away => infinity,
        Rounding::Zero | Rounding::Odd => r.integer(infinity_of(word) - 1, Word::I64),
        Rounding::Up => r.binary(B::Sub, infinity, n.sign),
        Rounding::Down => {
            let less = r.with(B::Add, infinity, -1);
            r.binary(B::Add, less, n.sign)
        }
    };
    let bits = r.select(finite, bits, beyond);
    float(r, n.sign, bits, word)
}

/// An integer without its lowest bits, one more where these say so.
fn incremented<R: Recorder>(
    r: &mut R,
    integer: R::Value,
    sign: R::Value,
    bits: i64,
    rounding: Rounding,
) -> R::Value {
    let kept = r.with(B::ShrU, integer, bits);
    let rest = r.with(B::And, integer, (1 << bits) - 1);
    let half = 1i64 << (bits - 1);
    let more = match rounding {
        Rounding::Zero => return kept,
        Rounding::Odd => return with_sticky(r, kept, rest),
        Rounding::Nearest => {
            // More than half, or half and odd.
            let odd = r.with(B::And, kept, 1);
            let rest = r.binary(B::Add, rest, odd);
            let half = r.integer(half, Word::I64);
            r.compare(C::LessS, half, rest)
        }
        Rounding::Away => {
            let less = r.integer(half - 1, Word::I64);
            r.compare(C::LessS, less, rest)
        }
        Rounding::Up | Rounding::Down => {
            let zero = r.integer(0, Word::I64);
            let one = r.integer(1, Word::I64);
            let away = if rounding == Rounding::Down { sign } else { r.with(B::Xor, sign, 1) };
            let any = r.compare(C::LessS, zero, rest);
            let any = r.select(any, one, zero);
            let both = r.binary(B::And, any, away);
            r.is(both, 1)
        }
    };
    let next = r.with(B::Add, kept, 1);
    r.select(more, next, kept)
}

/// The float of a sign and of all other bits.
fn float<R: Recorder>(r: &mut R, sign: R::Value, bits: R::Value, word: Word) -> R::Value {
    let sign = r.with(B::Shl, sign, i64::from(word.bits()) - 1);
    let bits = r.binary(B::Or, bits, sign);
    let bits = r.convert(Convert::Low, bits, word.whole());
    r.convert(Convert::Bits, bits, word)
}

/// An infinity of a sign.
fn infinity<R: Recorder>(r: &mut R, sign: R::Value, word: Word) -> R::Value {
    let bits = r.integer(infinity_of(word), Word::I64);
    float(r, sign, bits, word)
}

/// A zero of a sign.
fn zero<R: Recorder>(r: &mut R, sign: R::Value, word: Word) -> R::Value {
    let bits = r.integer(0, Word::I64);
    float(r, sign, bits, word)
}

/// NaN where one of these holds.
fn nan_where<R: Recorder>(r: &mut R, value: R::Value, truths: &[R::Value]) -> R::Value {
    let nan = r.number(f64::NAN, r.word(value));
    truths.iter().fold(value, |value, &truth| r.select(truth, nan, value))
}

/// Whether both hold.
fn both<R: Recorder>(r: &mut R, x: R::Value, y: R::Value) -> R::Value {
    let (one, zero) = (r.integer(1, Word::I64), r.integer(0, Word::I64));
    let y = r.select(y, one, zero);
    let both = r.select(x, y, zero);
    r.is(both, 1)
}
