//! Functions of integers and of bits, as recorded instructions.

use crate::record::{Binary as B, Compare as C, Convert, Recorder, Word};
use crate::{Function, Type};

/// A function of integers; `None` for any other.
pub fn record<R: Recorder>(r: &mut R, function: &Function, args: &[R::Value]) -> Option<R::Value> {
    let &x = args.first()?;
    let unsigned = matches!(function.params[0], Type::U32 | Type::U64);
    if function.params.iter().chain([&function.result]).any(|ty| ty.is_float()) {
        return None;
    }
    Some(match (function.name, args) {
        ("abs", _) => {
            let none = r.integer(0, r.word(x));
            let negative = r.compare(C::LessS, x, none);
            let turned = r.binary(B::Sub, none, x);
            r.select(negative, turned, x)
        }
        ("brev", _) => reversed(r, x),
        ("byte_perm", &[x, y, selector]) => chosen_bytes(r, x, y, selector),
        ("clz", _) => {
            let (mut below, bits) = (x, r.word(x).bits());
            for by in [1, 2, 4, 8, 16, 32].into_iter().filter(|&by| by < bits) {
                let moved = r.with(B::ShrU, below, i64::from(by));
                below = r.binary(B::Or, below, moved);
            }
            let above = r.with(B::Xor, below, -1);
            let count = ones(r, above);
            r.convert(Convert::Low, count, Word::I32)
        }
        ("ffs", _) => first_set(r, x),
        ("popc", _) => {
            let count = ones(r, x);
            r.convert(Convert::Low, count, Word::I32)
        }
        ("hadd", &[x, y]) => {
            let (both, one) = (r.binary(B::And, x, y), r.binary(B::Xor, x, y));
            let half = r.with(if unsigned { B::ShrU } else { B::ShrS }, one, 1);
            r.binary(B::Add, both, half)
        }
        ("rhadd", &[x, y]) => {
            let (any, one) = (r.binary(B::Or, x, y), r.binary(B::Xor, x, y));
            let half = r.with(if unsigned { B::ShrU } else { B::ShrS }, one, 1);
            r.binary(B::Sub, any, half)
        }
        ("mul24", &[x, y]) => {
            let down = if unsigned { B::ShrU } else { B::ShrS };
            let [x, y] = [x, y].map(|v| {
                let up = r.with(B::Shl, v, 8);
                r.with(down, up, 8)
            });
            r.binary(B::Mul, x, y)
        }
        ("mulhi", &[x, y]) => upper_product(r, x, y, unsigned),
        ("sad", &[x, y, z]) => {
            let less = r.compare(if unsigned { C::LessU } else { C::LessS }, x, y);
            let (up, down) = (r.binary(B::Sub, y, x), r.binary(B::Sub, x, y));
            let apart = r.select(less, up, down);
            r.binary(B::Add, apart, z)
        }
        _ => return None,
    })
}

/// So many ones in every group of twice as many bits, from the lowest on.
fn groups(width: u32, bits: u32) -> i64 {
    let ones = (1u64 << width) - 1;
    (0..bits / (2 * width)).fold(0u64, |mask, i| mask | ones << (2 * width * i)) as i64
}

/// How many bits are set: sums of ever wider groups.
fn ones<R: Recorder>(r: &mut R, x: R::Value) -> R::Value {
    let bits = r.word(x).bits();
    let mut sums = x;
    for width in [1, 2, 4, 8, 16, 32].into_iter().filter(|&width| width < bits) {
        let low = r.with(B::And, sums, groups(width, bits));
        let high = r.with(B::ShrU, sums, i64::from(width));
        let high = r.with(B::And, high, groups(width, bits));
        sums = r.binary(B::Add, low, high);
    }
    sums
}

/// The place of the lowest bit that is set, from 1; 0 where none is.
fn first_set<R: Recorder>(r: &mut R, x: R::Value) -> R::Value {
    // The ones below it, and itself.
    let less = r.with(B::Add, x, -1);
    let from = r.binary(B::Xor, x, less);
    let count = ones(r, from);
    let none = r.is(x, 0);
    let zero = r.integer(0, r.word(x));
    let place = r.select(none, zero, count);
    r.convert(Convert::Low, place, Word::I32)
}

/// The bits in the other order: halves change places, then halves of these.
fn reversed<R: Recorder>(r: &mut R, mut x: R::Value) -> R::Value {
    let bits = r.word(x).bits();
    let mut width = bits / 2;
    while width > 0 {
        let mask = groups(width, bits);
        let (up, down) = (r.with(B::And, x, mask), r.with(B::ShrU, x, i64::from(width)));
        let (up, down) = (r.with(B::Shl, up, i64::from(width)), r.with(B::And, down, mask));
        x = r.binary(B::Or, up, down);
        width /= 2;
    }
    x
}

/// Four of the eight bytes of `y` and `x`, as three bits of each digit of `selector` say.
fn chosen_bytes<R: Recorder>(r: &mut R, x: R::Value, y: R::Value, selector: R::Value) -> R::Value {
    let [high, low] = [y, x].map(|half| r.convert(Convert::Zero, half, Word::I64));
    let high = r.with(B::Shl, high, 32);
    let pool = r.binary(B::Or, high, low);
    let selector = r.convert(Convert::Zero, selector, Word::I64);
    let mut out = r.integer(0, Word::I64);
    for i in 0..4 {
        let digit = r.with(B::ShrU, selector, 4 * i);
        let mut byte = pool;
        for (bit, by) in [(1, 8), (2, 16), (4, 32)] {
            let taken = r.with(B::And, digit, bit);
            let stays = r.is(taken, 0);
            let moved = r.with(B::ShrU, byte, by);
            byte = r.select(stays, byte, moved);
        }
        let byte = r.with(B::And, byte, 0xff);
        let byte = r.with(B::Shl, byte, 8 * i);
        out = r.binary(B::Or, out, byte);
    }
    r.convert(Convert::Low, out, Word::I32)
}

/// The upper half of a product.
pub fn upper_product<R: Recorder>(r: &mut R, x: R::Value, y: R::Value, unsigned: bool) -> R::Value {
    if r.word(x) != Word::I64 {
        let bits = r.word(x).bits();
        let to = r.word(x);
        let [x, y] =
            [x, y].map(|v| r.convert(if unsigned { Convert::Zero } else { Convert::Sign }, v, Word::I64));
        let product = r.binary(B::Mul, x, y);
        let upper = r.with(B::ShrU, product, i64::from(bits));
        return r.convert(Convert::Low, upper, to);
    }
    // By halves, of which three products reach the upper half.
    let mut halves = |v| (r.with(B::And, v, 0xffff_ffff), r.with(B::ShrU, v, 32));
    let ((x_low, x_high), (y_low, y_high)) = (halves(x), halves(y));
    let low = r.binary(B::Mul, x_low, y_low);
    let carried = r.with(B::ShrU, low, 32);
    let cross = r.binary(B::Mul, x_high, y_low);
    let cross = r.binary(B::Add, cross, carried);
    let (part, carried) = (r.with(B::And, cross, 0xffff_ffff), r.with(B::ShrU, cross, 32));
    let other = r.binary(B::Mul, x_low, y_high);
    let other = r.binary(B::Add, other, part);
    let other = r.with(B::ShrU, other, 32);
    let high = r.binary(B::Mul, x_high, y_high);
    let high = r.binary(B::Add, high, carried);
    let mut upper = r.binary(B::Add, high, other);
    if !unsigned {
        // What a factor's sign adds as an unsigned number: the other, above the product's lower half.
        let none = r.integer(0, Word::I64);
        for (factor, other) in [(x, y), (y, x)] {
            let negative = r.compare(C::LessS, factor, none);
            let extra = r.select(negative, other, none);
            upper = r.binary(B::Sub, upper, extra);
        }
    }
    upper
}
