//! Functions of the table as recorded instructions: those of integers and of bits, the exact ones, and what is made of arithmetic of fp64.

use std::cell::RefCell;

use crate::numbers::Number;
use crate::record::{Binary as B, Compare as C, Convert, Recorder, Word};
use crate::soft::{self, Rounding, infinity_of, magnitude_of};
use crate::{Accuracy, Function, Type, elementary, integers};

/// A function's result, of integers that have the width of the table's type; `None` for one that is not here: Bessel functions of any order, and of fp64 remainders and
/// what is not accurate enough.
pub fn record<R: Recorder>(r: &mut R, function: &Function, args: &[R::Value]) -> Option<R::Value> {
    let &x = args.first()?;
    if let Some(made) = integers::record(r, function, args) {
        return Some(made);
    }
    let word = |ty: Type| match ty {
        Type::I32 | Type::U32 => Word::I32,
        Type::I64 | Type::U64 => Word::I64,
        Type::F32 => Word::F32,
        Type::F64 => Word::F64,
    };
    let result = word(function.result);
    let name = function.name;
    if name.contains("_as_") {
        return Some(r.convert(Convert::Bits, x, result));
    }
    if let Some(made) = halves(r, name, args) {
        return Some(made);
    }
    if function.accuracy != Accuracy::Exact || name == "rsqrt_rn" {
        return inexact(r, function, args, result);
    }
    if let Some(truth) = truth(r, name, x) {
        let (one, none) = (r.integer(1, result), r.integer(0, result));
        return Some(r.select(truth, one, none));
    }
    let double = function.params.iter().chain([&function.result]).any(|&ty| ty == Type::F64);
    simple(r, name, args)
        .or_else(|| if double { of_double(r, function, args) } else { conversion(r, function, args, result) })
        .or_else(|| if double { plain(r, name, args) } else { None })
        .or_else(|| arithmetic(r, name, args))
}

/// Functions that are computed in fp64 and rounded once; those of fp64 that are not within 4 units in the last place so are left out.
fn inexact<R: Recorder>(r: &mut R, function: &Function, args: &[R::Value], result: Word) -> Option<R::Value> {
    if result == Word::F64 && ["lgamma", "pow", "tgamma"].contains(&function.name) {
        return None;
    }
    let mut wide = Vec::new();
    for (&x, ty) in args.iter().zip(function.params) {
        let how = if ty.is_float() { Convert::Round } else { Convert::Float };
        wide.push(r.convert(how, x, Word::F64));
    }
    let made = {
        let r = RefCell::new(&mut *r);
        let numbers: Vec<_> = wide.into_iter().map(|v| Number::new(&r, v)).collect();
        elementary::by_name(function.name, &numbers)?.v
    };
    Some(r.convert(Convert::Round, made, result))
}

/// The halves of a number of fp64.
fn halves<R: Recorder>(r: &mut R, name: &str, args: &[R::Value]) -> Option<R::Value> {
    let &x = args.first()?;
    Some(match (name, args) {
        ("double2hiint" | "double2loint", _) => {
            let bits = r.convert(Convert::Bits, x, Word::I64);
            let half = if name == "double2hiint" { r.with(B::ShrU, bits, 32) } else { bits };
            r.convert(Convert::Low, half, Word::I32)
        }
        ("hiloint2double", &[high, low]) => {
            let [high, low] = [high, low].map(|v| r.convert(Convert::Zero, v, Word::I64));
            let high = r.with(B::Shl, high, 32);
            let bits = r.binary(B::Or, high, low);
            r.convert(Convert::Bits, bits, Word::F64)
        }
        ("rcp64h", _) => {
            let one = r.number(1.0, Word::F64);
            let inverse = r.binary(B::DivF, one, x);
            let bits = r.convert(Convert::Bits, inverse, Word::I64);
            let bits = r.with(B::And, bits, !0xffff_ffff);
            r.convert(Convert::Bits, bits, Word::F64)
        }
        _ => return None,
    })
}

/// Between fp64 and other types, and exponents.
fn of_double<R: Recorder>(r: &mut R, function: &Function, args: &[R::Value]) -> Option<R::Value> {
    let &x = args.first()?;
    let name = function.name;
    match name {
        "llrint" => return Some(saturated(r, x, "rint", Type::I64)),
        "llround" => return Some(saturated(r, x, "round", Type::I64)),
        _ => {}
    }
    let (base, rounding) = rounding(name)?;
    if !base.contains('2') {
        return None;
    }
    match (function.params[0], function.result) {
        (Type::F64, Type::F32) => Some(soft::narrowed(r, x, rounding)),
        (Type::F64, _) => {
            let whole = match rounding {
                Rounding::Nearest => "rint",
                Rounding::Down => "floor",
                Rounding::Up => "ceil",
                _ => "trunc",
            };
            let to = match base {
                "double2int" => Type::I32,
                "double2uint" => Type::U32,
                "double2ll" => Type::I64,
                _ => Type::U64,
            };
            Some(saturated(r, x, whole, to))
        }
        (Type::I32, _) => Some(r.convert(Convert::Float, x, Word::F64)),
        (Type::U32, _) => {
            let wide = r.convert(Convert::Zero, x, Word::I64);
            Some(r.convert(Convert::Float, wide, Word::F64))
        }
        (Type::I64 | Type::U64, _) if rounding != Rounding::Nearest => {
            Some(soft::float_of(r, x, function.params[0] == Type::I64, Word::F64, rounding))
        }
        (Type::I64, _) => Some(r.convert(Convert::Float, x, Word::F64)),
        (Type::U64, _) => {
            let (high, low) = (r.with(B::ShrU, x, 32), r.with(B::And, x, 0xffff_ffff));
            let [high, low] = [high, low].map(|v| r.convert(Convert::Float, v, Word::F64));
            let scale = r.number(2f64.powi(32), Word::F64);
            let high = r.binary(B::MulF, high, scale);
            Some(r.binary(B::AddF, high, low))
        }
        _ => None,
    }
}

/// A number of fp64, made whole, as an integer, the nearest that there is where it is beyond these; of NaN the one whose highest bit alone is set.
fn saturated<R: Recorder>(r: &mut R, x: R::Value, how: &str, to: Type) -> R::Value {
    let whole = whole(r, how, x);
    let (least, limit, bits) = match to {
        Type::I32 => (-2f64.powi(31), 2f64.powi(31), 32),
        Type::U32 => (0.0, 2f64.powi(32), 32),
        Type::I64 => (-2f64.powi(63), 2f64.powi(63), 64),
        _ => (0.0, 2f64.powi(64), 64),
    };
    let signed = least < 0.0;
    let [low, high, none] = [least, limit, 0.0].map(|n| r.number(n, Word::F64));
    let (above, below) = (r.compare(C::LessF, whole, high), r.compare(C::LessF, whole, low));
    // What fits, and else nothing.
    let fits = r.select(above, whole, none);
    let fits = r.select(below, none, fits);
    let value = if to == Type::U64 {
        let middle = r.number(2f64.powi(63), Word::F64);
        let small = r.compare(C::LessF, fits, middle);
        let less = r.binary(B::SubF, fits, middle);
        let near = r.select(small, fits, less);
        let near = r.convert(Convert::Whole, near, Word::I64);
        let more = r.with(B::Xor, near, i64::MIN);
        r.select(small, near, more)
    } else {
        r.convert(Convert::Whole, fits, Word::I64)
    };
    let all = if signed { i64::MAX >> (64 - bits) } else { -1 };
    let most = r.integer(all, Word::I64);
    let value = r.select(above, value, most);
    let lowest = r.integer(if signed { i64::MIN >> (64 - bits) } else { 0 }, Word::I64);
    let value = r.select(below, lowest, value);
    let nan = r.compare(C::NotF, x, x);
    let highest = r.integer(if bits == 64 { i64::MIN } else { 1 << 31 }, Word::I64);
    let value = r.select(nan, highest, value);
    if bits == 64 { value } else { r.convert(Convert::Low, value, Word::I32) }
}

/// Arithmetic of fp64 that is rounded to the nearest, which is what instructions do.
fn plain<R: Recorder>(r: &mut R, name: &str, args: &[R::Value]) -> Option<R::Value> {
    let op = match name {
        "add_rn" => B::AddF,
        "sub_rn" => B::SubF,
        "mul_rn" => B::MulF,
        "div_rn" | "rcp_rn" => B::DivF,
        _ => return None,
    };
    match *args {
        [x, y] => Some(r.binary(op, x, y)),
        [x] => {
            let one = r.number(1.0, Word::F64);
            Some(r.binary(op, one, x))
        }
        _ => None,
    }
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
    let word = r.word(x);
    let infinity = infinity_of(word);
    let bits = |r: &mut R| r.convert(Convert::Bits, x, word.whole());
    let magnitude = |r: &mut R| {
        let bits = bits(r);
        r.with(B::And, bits, magnitude_of(word))
    };
    Some(match name {
        "isnan" => r.compare(C::NotF, x, x),
        "isinf" => {
            let magnitude = magnitude(r);
            r.is(magnitude, infinity)
        }
        "finitef" | "isfinited" => {
            let (magnitude, infinity) = (magnitude(r), r.integer(infinity, word.whole()));
            r.compare(C::LessS, magnitude, infinity)
        }
        "signbit" => {
            let (bits, none) = (bits(r), r.integer(0, word.whole()));
            r.compare(C::LessS, bits, none)
        }
        _ => return None,
    })
}

/// The magnitude of a number with the sign of another.
fn signed_as<R: Recorder>(r: &mut R, x: R::Value, sign: R::Value) -> R::Value {
    let word = r.word(x);
    let [x, sign] = [x, sign].map(|v| r.convert(Convert::Bits, v, word.whole()));
    let (x, sign) = (r.with(B::And, x, magnitude_of(word)), r.with(B::And, sign, !magnitude_of(word)));
    let bits = r.binary(B::Or, x, sign);
    r.convert(Convert::Bits, bits, word)
}

/// What needs no rounding.
fn simple<R: Recorder>(r: &mut R, name: &str, args: &[R::Value]) -> Option<R::Value> {
    let word = r.word(*args.first()?);
    if word == Word::F64 && ["fmod", "remainder"].contains(&name) {
        return None;
    }
    Some(match (name, args) {
        ("abs", &[x]) => r.magnitude(x),
        ("copysign", &[x, y]) => signed_as(r, x, y),
        ("ceil" | "floor" | "nearbyint" | "rint" | "round" | "trunc", &[x]) => whole(r, name, x),
        ("fdim", &[x, y]) => {
            let above = r.compare(C::LessF, y, x);
            let apart = r.binary(B::SubF, x, y);
            let none = r.number(0.0, word);
            let made = r.select(above, apart, none);
            let nan = r.number(f64::NAN, word);
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
            let exponent = r.convert(Convert::Float, exponent, word);
            let (least, most) = (r.number(f64::NEG_INFINITY, word), r.number(f64::INFINITY, word));
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

/// A whole number, with the sign that it had: by `trunc`, `floor`, `ceil`, `round` or, to the nearest, anything else.
pub fn whole<R: Recorder>(r: &mut R, name: &str, x: R::Value) -> R::Value {
    let word = r.word(x);
    // From there on all are whole.
    let limit = r.number((1u64 << word.fraction()) as f64, word);
    let magnitude = r.magnitude(x);
    let fraction = r.compare(C::LessF, magnitude, limit);
    let none = r.number(0.0, word);
    let short = r.select(fraction, x, none);
    let one = r.number(1.0, word);
    let cut = r.convert(Convert::Whole, short, word.whole());
    let cut = r.convert(Convert::Float, cut, word);
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
            let half = r.number(0.5, word);
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
    let word = r.word(x);
    let bits = r.convert(Convert::Bits, x, word.whole());
    let none = r.integer(0, word.whole());
    let negative = r.compare(C::LessS, bits, none);
    let upwards = r.compare(C::LessF, x, y);
    let (more, less) = (r.with(B::Add, bits, 1), r.with(B::Add, bits, -1));
    let (up, down) = (r.select(negative, less, more), r.select(negative, more, less));
    let moved = r.select(upwards, up, down);
    let moved = r.convert(Convert::Bits, moved, word);
    let tiny = r.integer(1, word.whole());
    let tiny = r.convert(Convert::Bits, tiny, word);
    let tiny = signed_as(r, tiny, y);
    let nothing = r.number(0.0, word);
    let apart = r.compare(C::NotF, x, nothing);
    let moved = r.select(apart, moved, tiny);
    let different = r.compare(C::NotF, x, y);
    let made = r.select(different, moved, y);
    let nan = r.number(f64::NAN, word);
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
            Some(soft::float_of(r, x, signed, Word::F32, rounding))
        }
        _ => None,
    }
}

/// Arithmetic with a rounding of its own.
fn arithmetic<R: Recorder>(r: &mut R, name: &str, args: &[R::Value]) -> Option<R::Value> {
    let word = r.word(*args.first()?);
    let (base, rounding) = match name {
        "sqrt" | "fma" => (name, Rounding::Nearest),
        _ => rounding(name)?,
    };
    Some(match (base, args) {
        ("add", &[x, y]) => soft::sum(r, x, y, rounding),
        ("sub", &[x, y]) => {
            let bits = r.convert(Convert::Bits, y, word.whole());
            let bits = r.with(B::Xor, bits, !magnitude_of(word));
            let minus = r.convert(Convert::Bits, bits, word);
            soft::sum(r, x, minus, rounding)
        }
        ("mul", &[x, y]) => soft::multiply(r, x, y, rounding),
        ("div", &[x, y]) => soft::divide(r, x, y, rounding),
        ("rcp", &[x]) => {
            let one = r.number(1.0, word);
            soft::divide(r, one, x, rounding)
        }
        ("fma", &[x, y, z]) => soft::fma(r, x, y, z, rounding),
        ("sqrt", &[x]) => soft::sqrt(r, x, rounding),
        _ => return None,
    })
}
