//! Functions of the table as recorded instructions: those of integers and of bits, and the exact ones of fp32.

use crate::record::{Binary as B, Compare as C, Convert, Recorder, Word};
use crate::soft::{self, Rounding};
use crate::{Accuracy, Function, Type, integers};

/// A function's result, of integers that have the width of the table's type; `None` for one that is not here: all of fp64, and those that are not exact.
pub fn record<R: Recorder>(r: &mut R, function: &Function, args: &[R::Value]) -> Option<R::Value> {
    let &x = args.first()?;
    if let Some(made) = integers::record(r, function, args) {
        return Some(made);
    }
    if function.params.iter().chain([&function.result]).any(|&ty| ty == Type::F64) {
        return None;
    }
    let word = |ty: Type| match ty {
        Type::I32 | Type::U32 => Word::I32,
        Type::I64 | Type::U64 => Word::I64,
        _ => Word::F32,
    };
    let result = word(function.result);
    if matches!(function.name, "float_as_int" | "float_as_uint" | "int_as_float" | "uint_as_float") {
        return Some(r.convert(Convert::Bits, x, result));
    }
    if function.accuracy != Accuracy::Exact {
        return None;
    }
    if let Some(truth) = truth(r, function.name, x) {
        let (one, none) = (r.integer(1, result), r.integer(0, result));
        return Some(r.select(truth, one, none));
    }
    simple(r, function.name, args)
        .or_else(|| conversion(r, function, args, result))
        .or_else(|| arithmetic(r, function.name, args))
}

/// Where a function with a name such as `add_rd` rounds to, and what stands before that.
fn rounding(name: &str) -> Option<(&str, Rounding)> {
    let (base, mode) = name.rsplit_once("_r")?;
    let rounding = match mode {
        "n" => Rounding::Nearest,
        "z" => Rounding::Zero,
        "d" => Rounding::Down,
        "u" => Rounding::Up,
        _ => return None,
    };
    Some((base, rounding))
}

/// A question about a number.
fn truth<R: Recorder>(r: &mut R, name: &str, x: R::Value) -> Option<R::Value> {
    let infinity = 0x7f80_0000;
    let bits = |r: &mut R| r.convert(Convert::Bits, x, Word::I32);
    let magnitude = |r: &mut R| {
        let bits = bits(r);
        r.with(B::And, bits, 0x7fff_ffff)
    };
    Some(match name {
        "isnan" => r.compare(C::NotF, x, x),
        "isinf" => {
            let magnitude = magnitude(r);
            r.is(magnitude, infinity)
        }
        "finitef" => {
            let (magnitude, infinity) = (magnitude(r), r.integer(infinity, Word::I32));
            r.compare(C::LessS, magnitude, infinity)
        }
        "signbit" => {
            let (bits, none) = (bits(r), r.integer(0, Word::I32));
            r.compare(C::LessS, bits, none)
        }
        _ => return None,
    })
}

/// The magnitude of a number with the sign of another.
fn signed_as<R: Recorder>(r: &mut R, x: R::Value, sign: R::Value) -> R::Value {
    let [x, sign] = [x, sign].map(|v| r.convert(Convert::Bits, v, Word::I32));
    let (magnitude, sign) = (r.with(B::And, x, 0x7fff_ffff), r.with(B::And, sign, i64::from(i32::MIN)));
    let bits = r.binary(B::Or, magnitude, sign);
    r.convert(Convert::Bits, bits, Word::F32)
}

/// What needs no rounding.
fn simple<R: Recorder>(r: &mut R, name: &str, args: &[R::Value]) -> Option<R::Value> {
    Some(match (name, args) {
        ("abs", &[x]) => r.magnitude(x),
        ("copysign", &[x, y]) => signed_as(r, x, y),
        ("ceil" | "floor" | "nearbyint" | "rint" | "round" | "trunc", &[x]) => whole(r, name, x),
        ("fdim", &[x, y]) => {
            let above = r.compare(C::LessF, y, x);
            let apart = r.binary(B::SubF, x, y);
            let none = r.number(0.0, Word::F32);
            let made = r.select(above, apart, none);
            let nan = r.number(f64::NAN, Word::F32);
            [x, y].into_iter().fold(made, |made, v| {
                let is_nan = r.compare(C::NotF, v, v);
                r.select(is_nan, nan, made)
            })
        }
        ("fmod", &[x, y]) => soft::fmod(r, x, y),
        ("remainder", &[x, y]) => soft::remainder(r, x, y),
        ("ldexp" | "scalbn", &[x, power]) => soft::scaled(r, x, power),
        ("ilogb", &[x]) => {
            let (exponent, [zero, infinite, nan]) = soft::exponent(r, x);
            let (least, most) =
                (r.integer(i64::from(i32::MIN), Word::I32), r.integer(i64::from(i32::MAX), Word::I32));
            let made = r.select(zero, least, exponent);
            let made = r.select(infinite, most, made);
            r.select(nan, least, made)
        }
        ("logb", &[x]) => {
            let (exponent, [zero, infinite, nan]) = soft::exponent(r, x);
            let exponent = r.convert(Convert::Float, exponent, Word::F32);
            let (least, most) = (r.number(f64::NEG_INFINITY, Word::F32), r.number(f64::INFINITY, Word::F32));
            let made = r.select(zero, least, exponent);
            let made = r.select(infinite, most, made);
            r.select(nan, x, made)
        }
        ("nextafter", &[x, y]) => next_after(r, x, y),
        ("saturatef", &[x]) => {
            let (none, one) = (r.number(0.0, Word::F32), r.number(1.0, Word::F32));
            let above = r.compare(C::LessF, one, x);
            let least = r.select(above, one, x);
            let positive = r.compare(C::LessF, none, x);
            r.select(positive, least, none)
        }
        _ => return None,
    })
}

/// A whole number, with the sign that it had.
fn whole<R: Recorder>(r: &mut R, name: &str, x: R::Value) -> R::Value {
    // From there on all are whole.
    let limit = r.number(8_388_608.0, Word::F32);
    let magnitude = r.magnitude(x);
    let fraction = r.compare(C::LessF, magnitude, limit);
    let none = r.number(0.0, Word::F32);
    let short = r.select(fraction, x, none);
    let one = r.number(1.0, Word::F32);
    let cut = r.convert(Convert::Whole, short, Word::I32);
    let cut = r.convert(Convert::Float, cut, Word::F32);
    let made = match name {
        "trunc" => cut,
        "floor" => {
            let (above, less) = (r.compare(C::LessF, short, cut), r.binary(B::SubF, cut, one));
            r.select(above, less, cut)
        }
        "ceil" => {
            let (below, more) = (r.compare(C::LessF, cut, short), r.binary(B::AddF, cut, one));
            r.select(below, more, cut)
        }
        "round" => {
            let rest = r.binary(B::SubF, short, cut);
            let rest = r.magnitude(rest);
            let half = r.number(0.5, Word::F32);
            let stays = r.compare(C::LessF, rest, half);
            let step = signed_as(r, one, short);
            let next = r.binary(B::AddF, cut, step);
            r.select(stays, cut, next)
        }
        _ => {
            // Beside so large a number there is no room for a fraction.
            let size = r.magnitude(short);
            let sum = r.binary(B::AddF, size, limit);
            r.binary(B::SubF, sum, limit)
        }
    };
    let made = signed_as(r, made, x);
    r.select(fraction, made, x)
}

/// The next number towards another.
fn next_after<R: Recorder>(r: &mut R, x: R::Value, y: R::Value) -> R::Value {
    let bits = r.convert(Convert::Bits, x, Word::I32);
    let none = r.integer(0, Word::I32);
    let negative = r.compare(C::LessS, bits, none);
    let upwards = r.compare(C::LessF, x, y);
    let (more, less) = (r.with(B::Add, bits, 1), r.with(B::Add, bits, -1));
    let (up, down) = (r.select(negative, less, more), r.select(negative, more, less));
    let moved = r.select(upwards, up, down);
    let moved = r.convert(Convert::Bits, moved, Word::F32);
    let tiny = r.integer(1, Word::I32);
    let tiny = r.convert(Convert::Bits, tiny, Word::F32);
    let tiny = signed_as(r, tiny, y);
    let nothing = r.number(0.0, Word::F32);
    let apart = r.compare(C::NotF, x, nothing);
    let moved = r.select(apart, moved, tiny);
    let different = r.compare(C::NotF, x, y);
    let made = r.select(different, moved, y);
    let nan = r.number(f64::NAN, Word::F32);
    [x, y].into_iter().fold(made, |made, v| {
        let is_nan = r.compare(C::NotF, v, v);
        r.select(is_nan, nan, made)
    })
}

/// Between fp32 and integers.
fn conversion<R: Recorder>(
    r: &mut R,
    function: &Function,
    args: &[R::Value],
    result: Word,
) -> Option<R::Value> {
    let &x = args.first()?;
    let to_signed = !function.name.contains("2u");
    if let Some(rounding) = match function.name {
        "llrint" => Some(Rounding::Nearest),
        "llround" => Some(Rounding::Away),
        _ => None,
    } {
        return Some(soft::whole(r, x, result, true, rounding));
    }
    let (_, rounding) = rounding(function.name)?;
    match (function.params[0].is_float(), function.result.is_float()) {
        (true, false) => Some(soft::whole(r, x, result, to_signed, rounding)),
        (false, true) => {
            let signed = matches!(function.params[0], Type::I32 | Type::I64);
            Some(soft::float_of(r, x, signed, rounding))
        }
        _ => None,
    }
}

/// Arithmetic with a rounding of its own.
fn arithmetic<R: Recorder>(r: &mut R, name: &str, args: &[R::Value]) -> Option<R::Value> {
    let (base, rounding) = match name {
        "sqrt" | "fma" => (name, Rounding::Nearest),
        _ => rounding(name)?,
    };
    Some(match (base, args) {
        ("add", &[x, y]) => soft::sum(r, x, y, rounding),
        ("sub", &[x, y]) => {
            let bits = r.convert(Convert::Bits, y, Word::I32);
            let bits = r.with(B::Xor, bits, i64::from(i32::MIN));
            let minus = r.convert(Convert::Bits, bits, Word::F32);
            soft::sum(r, x, minus, rounding)
        }
        ("mul", &[x, y]) => soft::multiply(r, x, y, rounding),
        ("div", &[x, y]) => soft::divide(r, x, y, rounding),
        ("rcp", &[x]) => {
            let one = r.number(1.0, Word::F32);
            soft::divide(r, one, x, rounding)
        }
        ("fma", &[x, y, z]) => soft::fma(r, x, y, z, rounding),
        ("sqrt", &[x]) => soft::sqrt(r, x, rounding),
        _ => return None,
    })
}
