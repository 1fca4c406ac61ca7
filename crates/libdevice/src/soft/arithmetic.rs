//! Sums, products, quotients, roots and remainders.

use super::{
    Number, Parts, Rounding, TERM, both, infinity, jammed_and_lost, nan_where, normalized, parts, rounded,
    with_sticky, zero,
};
use crate::integers;
use crate::record::{Binary as B, Compare as C, Recorder, Word};

/// `x + y`.
pub fn sum<R: Recorder>(r: &mut R, x: R::Value, y: R::Value, rounding: Rounding) -> R::Value {
    let (a, b) = (parts(r, x), parts(r, y));
    let added = added(r, a.number, b.number, r.word(x), rounding);
    with_infinities(r, added, &a, &b)
}

/// `x · y + z`, rounded once.
pub fn fma<R: Recorder>(r: &mut R, x: R::Value, y: R::Value, z: R::Value, rounding: Rounding) -> R::Value {
    let (a, b, c) = (parts(r, x), parts(r, y), parts(r, z));
    let word = r.word(x);
    let (product, made) = if word == Word::F64 {
        let (high, low) = exact_product(r, &a, &b);
        let sum = three(r, c.number, high, low, rounding);
        (high, rounded(r, sum, word, rounding))
    } else {
        let product = product(r, &a, &b);
        (product, added(r, product, c.number, word, rounding))
    };
    // The product as one that is infinite or NaN where it is.
    let (one, none) = (r.integer(1, Word::I64), r.integer(0, Word::I64));
    let either = |r: &mut R, x: R::Value, y: R::Value| {
        let y = r.select(y, one, none);
        let any = r.select(x, one, y);
        r.is(any, 1)
    };
    let infinite = either(r, a.infinite, b.infinite);
    let (lost, gone) = (both(r, a.infinite, b.zero), both(r, b.infinite, a.zero));
    let nan = either(r, a.nan, b.nan);
    let wrong = either(r, lost, gone);
    let nan = either(r, nan, wrong);
    let factor = Parts { number: product, nan, infinite, zero: a.zero };
    with_infinities(r, made, &factor, &c)
}

/// `x · y`.
pub fn multiply<R: Recorder>(r: &mut R, x: R::Value, y: R::Value, rounding: Rounding) -> R::Value {
    let word = r.word(x);
    let (a, b) = (parts(r, x), parts(r, y));
    let product = match word {
        Word::F64 => wide_product(r, &a, &b),
        _ => product(r, &a, &b),
    };
    let made = rounded(r, product, word, rounding);
    let endless = infinity(r, product.sign, word);
    let made = r.select(a.infinite, endless, made);
    let made = r.select(b.infinite, endless, made);
    let (lost, gone) = (both(r, a.infinite, b.zero), both(r, b.infinite, a.zero));
    nan_where(r, made, &[a.nan, b.nan, lost, gone])
}

/// `x / y`.
pub fn divide<R: Recorder>(r: &mut R, x: R::Value, y: R::Value, rounding: Rounding) -> R::Value {
    let word = r.word(x);
    let (a, b) = (parts(r, x), parts(r, y));
    let sign = r.binary(B::Xor, a.number.sign, b.number.sign);
    let one = r.integer(1, Word::I64);
    let (integer, exponent) = if word == Word::F64 {
        long_quotient(r, a.number, b.number)
    } else {
        let (dividend, divisor) = (normalized(r, a.number, 61), normalized(r, b.number, 23));
        // (By zero it is something else below.)
        let by = r.select(b.zero, one, divisor.integer);
        let quotient = r.binary(B::DivU, dividend.integer, by);
        let back = r.binary(B::Mul, quotient, by);
        let rest = r.binary(B::Sub, dividend.integer, back);
        // (38 bits or 39, one more for what is left.)
        let doubled = r.with(B::Shl, quotient, 1);
        (with_sticky(r, doubled, rest), r.binary(B::Sub, dividend.exponent, divisor.exponent))
    };
    let exponent = r.with(B::Add, exponent, -1);
    let made = rounded(r, Number { sign, exponent, integer }, word, rounding);
    let (endless, none) = (infinity(r, sign, word), zero(r, sign, word));
    let made = r.select(a.zero, none, made);
    let made = r.select(b.zero, endless, made);
    let made = r.select(b.infinite, none, made);
    let made = r.select(a.infinite, endless, made);
    let (no, neither) = (both(r, a.zero, b.zero), both(r, a.infinite, b.infinite));
    nan_where(r, made, &[a.nan, b.nan, no, neither])
}

/// A quotient of numbers of 53 bits, bit by bit, one bit more for what is left, and its exponent but for that bit.
fn long_quotient<R: Recorder>(r: &mut R, a: Number<R::Value>, b: Number<R::Value>) -> (R::Value, R::Value) {
    const BITS: i64 = 57;
    let (a, b) = (normalized(r, a, 52), normalized(r, b, 52));
    let (mut quotient, mut rest) = (r.integer(0, Word::I64), a.integer);
    for bit in (0..BITS).rev() {
        let less = r.compare(C::LessS, rest, b.integer);
        let left = r.binary(B::Sub, rest, b.integer);
        let more = r.with(B::Or, quotient, 1 << bit);
        rest = r.select(less, rest, left);
        quotient = r.select(less, quotient, more);
        rest = r.with(B::Shl, rest, 1);
    }
    let doubled = r.with(B::Shl, quotient, 1);
    let exponent = r.binary(B::Sub, a.exponent, b.exponent);
    (with_sticky(r, doubled, rest), r.with(B::Add, exponent, 1 - BITS))
}

/// The square root.
pub fn sqrt<R: Recorder>(r: &mut R, x: R::Value, rounding: Rounding) -> R::Value {
    let word = r.word(x);
    let fraction = i64::from(word.fraction());
    let a = parts(r, x);
    let n = normalized(r, a.number, fraction);
    // With an even exponent.
    let odd = r.with(B::And, n.exponent, 1);
    let is_odd = r.is(odd, 1);
    let doubled = r.with(B::Shl, n.integer, 1);
    let integer = r.select(is_odd, doubled, n.integer);
    let exponent = r.binary(B::Sub, n.exponent, odd);
    let exponent = r.with(B::ShrS, exponent, 1);
    // Two bits of the number are one of the root, and behind them zeros: the root, and what is left of the number.
    let (pairs, zeros) = ((fraction + 3) / 2, fraction / 2 + 4);
    let none = r.integer(0, Word::I64);
    let (mut root, mut rest) = (none, none);
    for step in 0..pairs + zeros {
        rest = r.with(B::Shl, rest, 2);
        if step < pairs {
            let pair = r.with(B::ShrU, integer, 2 * (pairs - 1 - step));
            let pair = r.with(B::And, pair, 3);
            rest = r.binary(B::Or, rest, pair);
        }
        let by = r.with(B::Shl, root, 2);
        let taken = r.with(B::Or, by, 1);
        let less = r.compare(C::LessS, rest, taken);
        let left = r.binary(B::Sub, rest, taken);
        rest = r.select(less, rest, left);
        let doubled = r.with(B::Shl, root, 1);
        let more = r.with(B::Or, doubled, 1);
        root = r.select(less, doubled, more);
    }
    let root = r.with(B::Shl, root, 1);
    let integer = with_sticky(r, root, rest);
    let exponent = r.with(B::Add, exponent, -1 - zeros);
    let sign = none;
    let made = rounded(r, Number { sign, exponent, integer }, word, rounding);
    let made = r.select(a.zero, x, made);
    let negative = r.is(a.number.sign, 1);
    let none = r.number(f64::NAN, word);
    let wrong = r.select(negative, none, made);
    // (The root of minus zero is that.)
    let made = r.select(a.zero, made, wrong);
    let endless = r.select(negative, none, x);
    let made = r.select(a.infinite, endless, made);
    nan_where(r, made, &[a.nan])
}

/// What is left of `x`, of fp32, when it is divided by `y` toward zero: exact.
pub fn fmod<R: Recorder>(r: &mut R, x: R::Value, y: R::Value) -> R::Value {
    let (a, b) = (parts(r, x), parts(r, y));
    let (n, by) = (normalized(r, a.number, 23), normalized(r, b.number, 23));
    let apart = r.binary(B::Sub, n.exponent, by.exponent);
    let left = left_of(r, n.integer, by.integer, apart, b.zero);
    let found = Number { sign: n.sign, exponent: by.exponent, integer: left };
    let made = rounded(r, found, r.word(x), Rounding::Zero);
    let none = r.integer(0, Word::I64);
    let less = r.compare(C::LessS, apart, none);
    let made = r.select(less, x, made);
    divided(r, made, x, &a, &b)
}

/// What is left of `x`, of fp32, when it is divided by `y` to the nearest, halves to even: exact.
pub fn remainder<R: Recorder>(r: &mut R, x: R::Value, y: R::Value) -> R::Value {
    let (a, b) = (parts(r, x), parts(r, y));
    let (n, by) = (normalized(r, a.number, 23), normalized(r, b.number, 24));
    let apart = r.binary(B::Sub, n.exponent, by.exponent);
    // By twice the divisor: so the quotient's lowest bit is known.
    let twice = r.with(B::Shl, by.integer, 1);
    let left = left_of(r, n.integer, twice, apart, b.zero);
    let even = r.compare(C::LessS, left, by.integer);
    let less = r.binary(B::Sub, left, by.integer);
    let left = r.select(even, left, less);
    // Beyond half of the divisor, or half of an odd one, it is that from the other side.
    let doubled = r.with(B::Shl, left, 1);
    let odd = {
        let (one, none) = (r.integer(1, Word::I64), r.integer(0, Word::I64));
        r.select(even, none, one)
    };
    let doubled = r.binary(B::Add, doubled, odd);
    let over = r.compare(C::LessS, by.integer, doubled);
    let other = r.binary(B::Sub, by.integer, left);
    let turned = r.with(B::Xor, n.sign, 1);
    let integer = r.select(over, other, left);
    let sign = r.select(over, turned, n.sign);
    let made = rounded(r, Number { sign, exponent: by.exponent, integer }, r.word(x), Rounding::Zero);
    // (Zero has the dividend's sign.)
    let none = r.is(integer, 0);
    let nothing = zero(r, n.sign, r.word(x));
    let made = r.select(none, nothing, made);
    let near = r.integer(0, Word::I64);
    let less = r.compare(C::LessS, apart, near);
    let made = r.select(less, x, made);
    divided(r, made, x, &a, &b)
}

/// What is left of an integer of up to 26 bits times 2 to a power from 0 to 511, divided by another such integer.
fn left_of<R: Recorder>(
    r: &mut R,
    n: R::Value,
    by: R::Value,
    power: R::Value,
    is_zero: R::Value,
) -> R::Value {
    let one = r.integer(1, Word::I64);
    let by = r.select(is_zero, one, by);
    let two = r.integer(2, Word::I64);
    let mut factor = r.binary(B::RemU, two, by);
    let mut left = r.binary(B::RemU, n, by);
    for bit in 0..9 {
        let taken = r.with(B::And, power, 1 << bit);
        let stays = r.is(taken, 0);
        let product = r.binary(B::Mul, left, factor);
        let product = r.binary(B::RemU, product, by);
        left = r.select(stays, left, product);
        let square = r.binary(B::Mul, factor, factor);
        factor = r.binary(B::RemU, square, by);
    }
    left
}

/// A remainder, where dividend and divisor are numbers that have one.
fn divided<R: Recorder>(
    r: &mut R,
    made: R::Value,
    x: R::Value,
    a: &Parts<R::Value>,
    b: &Parts<R::Value>,
) -> R::Value {
    let made = r.select(b.infinite, x, made);
    let made = r.select(a.zero, x, made);
    nan_where(r, made, &[a.nan, a.infinite, b.nan, b.zero])
}

/// The exact product of two finite numbers.
fn product<R: Recorder>(r: &mut R, a: &Parts<R::Value>, b: &Parts<R::Value>) -> Number<R::Value> {
    let sign = r.binary(B::Xor, a.number.sign, b.number.sign);
    let integer = r.binary(B::Mul, a.number.integer, b.number.integer);
    let exponent = r.binary(B::Add, a.number.exponent, b.number.exponent);
    Number { sign, exponent, integer }
}

/// The product of two finite numbers of 53 bits: its upper half, with whether there is anything behind it.
fn wide_product<R: Recorder>(r: &mut R, a: &Parts<R::Value>, b: &Parts<R::Value>) -> Number<R::Value> {
    let sign = r.binary(B::Xor, a.number.sign, b.number.sign);
    // With 59 bits each there are 118, of which 54 are above the lower word.
    let (x, y) = (normalized(r, a.number, 58), normalized(r, b.number, 58));
    let upper = integers::upper_product(r, x.integer, y.integer, true);
    let lower = r.binary(B::Mul, x.integer, y.integer);
    // A few bits more than these.
    let (upper, top) = (r.with(B::Shl, upper, 6), r.with(B::ShrU, lower, 58));
    let integer = r.binary(B::Or, upper, top);
    let rest = r.with(B::And, lower, (1 << 58) - 1);
    let integer = with_sticky(r, integer, rest);
    let exponent = r.binary(B::Add, x.exponent, y.exponent);
    Number { sign, exponent: r.with(B::Add, exponent, 58), integer }
}

/// The product of two finite numbers of 53 bits, as one of its upper 53 bits and one of its lower.
fn exact_product<R: Recorder>(
    r: &mut R,
    a: &Parts<R::Value>,
    b: &Parts<R::Value>,
) -> (Number<R::Value>, Number<R::Value>) {
    let sign = r.binary(B::Xor, a.number.sign, b.number.sign);
    let (x, y) = (a.number.integer, b.number.integer);
    let (upper, lower) = (integers::upper_product(r, x, y, true), r.binary(B::Mul, x, y));
    let (upper, top) = (r.with(B::Shl, upper, 11), r.with(B::ShrU, lower, 53));
    let high = r.binary(B::Or, upper, top);
    let low = r.with(B::And, lower, (1 << 53) - 1);
    let exponent = r.binary(B::Add, a.number.exponent, b.number.exponent);
    let above = r.with(B::Add, exponent, 53);
    (Number { sign, exponent: above, integer: high }, Number { sign, exponent, integer: low })
}

/// The sum of a number and of both parts of a product, with whether there is anything behind its bits. Where the upper part and the number are alike, nothing of their sum is lost, and
/// the lower part comes last. Where the number is far above, the lower part is below all that is lost; where it is far below, it is added to that first.
fn three<R: Recorder>(
    r: &mut R,
    z: Number<R::Value>,
    high: Number<R::Value>,
    low: Number<R::Value>,
    rounding: Rounding,
) -> Number<R::Value> {
    let (sum, lost) = terms(r, z, high, TERM - 1, rounding);
    let (all, _) = terms(r, sum, low, TERM, rounding);
    let (less, _) = terms(r, z, low, TERM - 1, rounding);
    let (other, _) = terms(r, high, less, TERM, rounding);
    let exact = r.is(lost, 0);
    let (own, upper) = (normalized(r, z, TERM), normalized(r, high, TERM));
    let below = r.compare(C::LessS, own.exponent, upper.exponent);
    let mut pick = |all, sum, other| {
        let inexact = r.select(below, other, sum);
        r.select(exact, all, inexact)
    };
    Number {
        sign: pick(all.sign, sum.sign, other.sign),
        exponent: pick(all.exponent, sum.exponent, other.exponent),
        integer: pick(all.integer, sum.integer, other.integer),
    }
}

/// The rounded sum of two finite numbers of up to 53 bits.
fn added<R: Recorder>(
    r: &mut R,
    a: Number<R::Value>,
    b: Number<R::Value>,
    word: Word,
    rounding: Rounding,
) -> R::Value {
    let (sum, _) = terms(r, a, b, TERM, rounding);
    rounded(r, sum, word, rounding)
}

/// The sum of two finite numbers, whose integers begin with bit `top` at first, with whether anything is behind it, and what fell out; a zero has the sign that rounding gives it.
fn terms<R: Recorder>(
    r: &mut R,
    a: Number<R::Value>,
    b: Number<R::Value>,
    top: i64,
    rounding: Rounding,
) -> (Number<R::Value>, R::Value) {
    let (a, b) = (normalized(r, a, top), normalized(r, b, top));
    let swapped = r.compare(C::LessS, a.exponent, b.exponent);
    let mut pick = |x, y| (r.select(swapped, y, x), r.select(swapped, x, y));
    let (large, less) = pick(a.integer, b.integer);
    let (exponent, below) = pick(a.exponent, b.exponent);
    let (sign, _) = pick(a.sign, b.sign);
    let apart = r.binary(B::Sub, exponent, below);
    let (less, lost) = jammed_and_lost(r, less, apart);
    let (plus, minus) = (r.binary(B::Add, large, less), r.binary(B::Sub, large, less));
    let signs = r.binary(B::Xor, a.sign, b.sign);
    let alike = r.is(signs, 0);
    let signed = r.select(alike, plus, minus);
    let none = r.integer(0, Word::I64);
    let negative = r.compare(C::LessS, signed, none);
    let turned = r.binary(B::Sub, none, signed);
    let integer = r.select(negative, turned, signed);
    let other = r.with(B::Xor, sign, 1);
    let sign = r.select(negative, other, sign);
    // What is nothing has the sign of both, or that of the direction.
    let down = r.integer(i64::from(rounding == Rounding::Down), Word::I64);
    let of_nothing = r.select(alike, a.sign, down);
    let nothing = r.is(integer, 0);
    let sign = r.select(nothing, of_nothing, sign);
    (Number { sign, exponent, integer }, lost)
}

/// A sum, where a term is infinite or NaN.
fn with_infinities<R: Recorder>(
    r: &mut R,
    made: R::Value,
    a: &Parts<R::Value>,
    b: &Parts<R::Value>,
) -> R::Value {
    let word = r.word(made);
    let (first, second) = (infinity(r, a.number.sign, word), infinity(r, b.number.sign, word));
    let made = r.select(b.infinite, second, made);
    let made = r.select(a.infinite, first, made);
    let two = both(r, a.infinite, b.infinite);
    let signs = r.binary(B::Xor, a.number.sign, b.number.sign);
    let apart = r.is(signs, 1);
    let wrong = both(r, two, apart);
    nan_where(r, made, &[a.nan, b.nan, wrong])
}
