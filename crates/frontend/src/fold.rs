//! Arithmetic on compile-time constants, with Python's meaning.

use ruff_python_ast::{CmpOp, Expr, Number, Operator, UnaryOp};

use crate::host::HostValue;

/// The value of a literal.
pub fn literal(expr: &Expr) -> Option<HostValue> {
    Some(match expr {
        Expr::NumberLiteral(n) => match &n.value {
            Number::Int(i) => HostValue::Int(integer(i)?),
            Number::Float(f) => HostValue::Float(*f),
            Number::Complex { .. } => return None,
        },
        Expr::BooleanLiteral(b) => HostValue::Bool(b.value),
        Expr::NoneLiteral(_) => HostValue::None,
        Expr::StringLiteral(s) => HostValue::str(s.value.to_str()),
        Expr::BytesLiteral(b) => HostValue::Bytes(b.value.bytes().collect()),
        Expr::UnaryOp(u) => unary(u.op, &literal(&u.operand)?).ok()?,
        Expr::Tuple(t) => HostValue::Tuple(t.elts.iter().map(literal).collect::<Option<_>>()?),
        Expr::List(t) => HostValue::Tuple(t.elts.iter().map(literal).collect::<Option<_>>()?),
        _ => return None,
    })
}

fn integer(i: &ruff_python_ast::Int) -> Option<i128> {
    if let Some(small) = i.as_i64() {
        return Some(i128::from(small));
    }
    let text = i.to_string().replace('_', "").to_ascii_lowercase();
    match text.get(..2) {
        Some("0x") => i128::from_str_radix(&text[2..], 16).ok(),
        Some("0o") => i128::from_str_radix(&text[2..], 8).ok(),
        Some("0b") => i128::from_str_radix(&text[2..], 2).ok(),
        _ => text.parse().ok(),
    }
}

/// A number for arithmetic: booleans count as 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Num {
    /// An integer.
    Int(i128),
    /// A float.
    Float(f64),
}

impl Num {
    /// As a float.
    pub fn to_f64(self) -> f64 {
        match self {
            Num::Int(i) => i as f64,
            Num::Float(f) => f,
        }
    }
}

/// The number that a constant is.
pub fn number(value: &HostValue) -> Option<Num> {
    match value {
        HostValue::Bool(b) => Some(Num::Int(i128::from(*b))),
        HostValue::Int(i) => Some(Num::Int(*i)),
        HostValue::Float(f) => Some(Num::Float(*f)),
        _ => None,
    }
}

/// `a // b` and `a % b` of floats, as Python has them: the quotient is made of the exact remainder, since that of the division may
/// have been rounded up to the next integer (`1.0 // 0.1` is 9).
fn float_divmod(a: f64, b: f64) -> (f64, f64) {
    let mut remainder = a % b;
    let mut quotient = (a - remainder) / b;
    if remainder == 0.0 {
        remainder = 0.0f64.copysign(b);
    } else if (remainder < 0.0) != (b < 0.0) {
        remainder += b;
        quotient -= 1.0;
    }
    let floor = quotient.floor();
    let quotient = match quotient {
        0.0 => 0.0f64.copysign(a / b),
        _ if quotient - floor > 0.5 => floor + 1.0,
        _ => floor,
    };
    (quotient, remainder)
}

/// `x ** y` of floats.
fn float_power(x: f64, y: f64) -> Result<f64, String> {
    let power = x.powf(y);
    if x == 0.0 && y < 0.0 {
        return Err(format!("{x:?} cannot be raised to a negative power"));
    }
    if x.is_finite() && y.is_finite() {
        if power.is_nan() {
            return Err(format!("{x:?} ** {y:?} is no real number"));
        }
        if power.is_infinite() {
            return Err(format!("{x:?} ** {y:?} is too large for a float"));
        }
    }
    Ok(power)
}

/// The integer that a text says, as Python's `int` reads it: with a sign, underscores and the prefix of its base. The base 0 is that of
/// the prefix.
pub fn parse_integer(text: &str, base: i128) -> Option<i128> {
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let prefixes = [("0x", 16), ("0o", 8), ("0b", 2)];
    let prefix = prefixes.iter().find(|(prefix, of)| lower.starts_with(prefix) && (base == 0 || base == *of));
    let digits = match prefix {
        // An underscore may stand behind the prefix.
        Some((prefix, _)) => lower[prefix.len()..].strip_prefix('_').unwrap_or(&lower[prefix.len()..]),
        None => &lower,
    };
    let base = match (prefix, base) {
        (Some((_, of)), _) => *of,
        (None, 0) => 10,
        (None, base) => base,
    };
    let base = u32::try_from(base).ok().filter(|base| (2..=36).contains(base))?;
    let misplaced = digits.starts_with('_') || digits.ends_with('_') || digits.contains("__");
    if misplaced || digits.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = i128::from_str_radix(&digits.replace('_', ""), base).ok()?;
    Some(if negative { -magnitude } else { magnitude })
}

/// `round(value, digits)`: to the nearest number with so many decimal places, of two to the even one.
pub fn round_to(value: &HostValue, digits: i128) -> Result<HostValue, String> {
    match number(value) {
        Some(Num::Int(i)) => {
            let unit = match u32::try_from(-digits).ok().filter(|_| digits < 0) {
                None => return Ok(HostValue::Int(i)),
                Some(places) => match 10i128.checked_pow(places) {
                    Some(unit) => unit,
                    None => return Ok(HostValue::Int(0)),
                },
            };
            let (below, rest) = (i.div_euclid(unit), i.rem_euclid(unit));
            let up = 2 * rest > unit || (2 * rest == unit && below % 2 != 0);
            let rounded = (below + i128::from(up)).checked_mul(unit);
            rounded.map(HostValue::Int).ok_or_else(|| format!("{i} is too large to be rounded"))
        }
        Some(Num::Float(f)) if !f.is_finite() || digits > 330 => Ok(HostValue::Float(f)),
        Some(Num::Float(f)) if digits >= 0 => {
            // The decimal text is rounded so.
            let text = format!("{f:.*}", digits as usize);
            text.parse().map(HostValue::Float).map_err(|_| format!("{f:?} cannot be rounded"))
        }
        Some(Num::Float(_)) => Err("not supported yet: `round` of a float to tens".into()),
        None => Err(format!("`round` needs a number, not {}", value.kind())),
    }
}

/// `a op b`.
pub fn binary(op: Operator, a: &HostValue, b: &HostValue) -> Result<HostValue, String> {
    use HostValue as V;
    let wrong = || format!("unsupported operand types for {}: {} and {}", op.as_str(), a.kind(), b.kind());
    match (op, a, b) {
        (Operator::Add, V::Str(x), V::Str(y)) => return Ok(V::Str(format!("{x}{y}").into())),
        (Operator::Add, V::Bytes(x), V::Bytes(y)) => return Ok(V::Bytes([&**x, &**y].concat().into())),
        (Operator::Add, V::Tuple(x), V::Tuple(y)) => return Ok(V::tuple(x.iter().chain(y.iter()).cloned())),
        (Operator::Mult, V::Tuple(x), V::Int(n)) | (Operator::Mult, V::Int(n), V::Tuple(x)) => {
            let n = usize::try_from(*n).unwrap_or(0);
            if n.saturating_mul(x.len()) > 1 << 16 {
                return Err("the tuple would be too long".into());
            }
            return Ok(V::tuple(std::iter::repeat_n(x, n).flat_map(|x| x.iter().cloned())));
        }
        (Operator::Mult, V::Str(x), V::Int(n)) | (Operator::Mult, V::Int(n), V::Str(x)) => {
            let n = usize::try_from(*n).unwrap_or(0);
            if n.saturating_mul(x.len()) > 1 << 16 {
                return Err("the string would be too long".into());
            }
            return Ok(V::Str(x.repeat(n).into()));
        }
        (Operator::BitAnd, V::Bool(x), V::Bool(y)) => return Ok(V::Bool(x & y)),
        (Operator::BitOr, V::Bool(x), V::Bool(y)) => return Ok(V::Bool(x | y)),
        (Operator::BitXor, V::Bool(x), V::Bool(y)) => return Ok(V::Bool(x ^ y)),
        _ => {}
    }
    let (Some(x), Some(y)) = (number(a), number(b)) else { return Err(wrong()) };
    if let (Num::Int(x), Num::Int(y)) = (x, y) {
        let overflow = || format!("{x} {} {y} does not fit in 128 bits", op.as_str());
        let zero = || "division by zero".to_string();
        let int = |v: Option<i128>| v.map(V::Int).ok_or_else(overflow);
        return match op {
            Operator::Add => int(x.checked_add(y)),
            Operator::Sub => int(x.checked_sub(y)),
            Operator::Mult => int(x.checked_mul(y)),
            Operator::Div if y == 0 => Err(zero()),
            Operator::Div => Ok(V::Float(x as f64 / y as f64)),
            Operator::FloorDiv | Operator::Mod if y == 0 => Err(zero()),
            Operator::FloorDiv => {
                let q = x.checked_div(y).ok_or_else(overflow)?;
                Ok(V::Int(if x % y != 0 && (x < 0) != (y < 0) { q - 1 } else { q }))
            }
            Operator::Mod => {
                let r = x.checked_rem(y).ok_or_else(overflow)?;
                Ok(V::Int(if r != 0 && (r < 0) != (y < 0) { r + y } else { r }))
            }
            Operator::Pow if y < 0 => float_power(x as f64, y as f64).map(V::Float),
            Operator::Pow => int(u32::try_from(y).ok().and_then(|y| x.checked_pow(y))),
            Operator::LShift | Operator::RShift if y < 0 => Err("negative shift count".into()),
            Operator::LShift => {
                int(u32::try_from(y).ok().filter(|&n| n < 127).and_then(|n| x.checked_mul(1i128 << n)))
            }
            Operator::RShift => Ok(V::Int(x >> u32::try_from(y).unwrap_or(127).min(127))),
            Operator::BitAnd => Ok(V::Int(x & y)),
            Operator::BitOr => Ok(V::Int(x | y)),
            Operator::BitXor => Ok(V::Int(x ^ y)),
            Operator::MatMult => Err(wrong()),
        };
    }
    let (x, y) = (x.to_f64(), y.to_f64());
    let nonzero = || if y == 0.0 { Err("division by zero".to_string()) } else { Ok(()) };
    Ok(V::Float(match op {
        Operator::Add => x + y,
        Operator::Sub => x - y,
        Operator::Mult => x * y,
        Operator::Div => {
            nonzero()?;
            x / y
        }
        Operator::FloorDiv => {
            nonzero()?;
            float_divmod(x, y).0
        }
        Operator::Mod => {
            nonzero()?;
            float_divmod(x, y).1
        }
        Operator::Pow => float_power(x, y)?,
        _ => return Err(wrong()),
    }))
}

/// `op a`.
pub fn unary(op: UnaryOp, a: &HostValue) -> Result<HostValue, String> {
    if op == UnaryOp::Not {
        return a.truth().map(|t| HostValue::Bool(!t)).ok_or_else(|| format!("{a} has no truth value"));
    }
    Ok(match (op, number(a)) {
        (UnaryOp::UAdd, Some(Num::Int(i))) => HostValue::Int(i),
        (UnaryOp::USub, Some(Num::Int(i))) => HostValue::Int(i.checked_neg().ok_or("integer overflow")?),
        (UnaryOp::Invert, Some(Num::Int(i))) => HostValue::Int(!i),
        (UnaryOp::UAdd, Some(Num::Float(f))) => HostValue::Float(f),
        (UnaryOp::USub, Some(Num::Float(f))) => HostValue::Float(-f),
        _ => return Err(format!("unsupported operand type for unary {}: {}", op.as_str(), a.kind())),
    })
}

/// `a op b` for a comparison.
pub fn compare(op: CmpOp, a: &HostValue, b: &HostValue) -> Result<bool, String> {
    use std::cmp::Ordering;
    let ordering = match (number(a), number(b)) {
        (Some(x), Some(y)) => order(x, y),
        _ => match (a, b) {
            (HostValue::Str(x), HostValue::Str(y)) => Some(x.cmp(y)),
            (HostValue::Bytes(x), HostValue::Bytes(y)) => Some(x.cmp(y)),
            _ => {
                return match op {
                    CmpOp::Eq | CmpOp::Is => Ok(a == b),
                    CmpOp::NotEq | CmpOp::IsNot => Ok(a != b),
                    CmpOp::In | CmpOp::NotIn => match b {
                        HostValue::Tuple(items) => Ok(contains(items, a) == (op == CmpOp::In)),
                        _ => Err(format!("`in` needs a tuple, not {}", b.kind())),
                    },
                    _ => Err(format!("{} and {} cannot be ordered", a.kind(), b.kind())),
                };
            }
        },
    };
    Ok(match op {
        CmpOp::Eq => ordering == Some(Ordering::Equal),
        CmpOp::NotEq => ordering != Some(Ordering::Equal),
        CmpOp::Lt => ordering == Some(Ordering::Less),
        CmpOp::LtE => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
        CmpOp::Gt => ordering == Some(Ordering::Greater),
        CmpOp::GtE => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
        CmpOp::Is => a == b,
        CmpOp::IsNot => a != b,
        CmpOp::In | CmpOp::NotIn => match (a, b) {
            (HostValue::Str(x), HostValue::Str(y)) => y.contains(&**x) == (op == CmpOp::In),
            (HostValue::Bytes(x), HostValue::Bytes(y)) => {
                (x.is_empty() || y.windows(x.len()).any(|piece| piece == &**x)) == (op == CmpOp::In)
            }
            _ => return Err(format!("`in` needs a tuple, not {}", b.kind())),
        },
    })
}

/// How two numbers are ordered: by their values, whatever their types can hold of each other.
fn order(a: Num, b: Num) -> Option<std::cmp::Ordering> {
    match (a, b) {
        (Num::Int(x), Num::Int(y)) => Some(x.cmp(&y)),
        (Num::Float(x), Num::Float(y)) => x.partial_cmp(&y),
        (Num::Float(_), Num::Int(_)) => order(b, a).map(std::cmp::Ordering::reverse),
        // Between the bounds of integers the whole part of a float is one.
        (Num::Int(x), Num::Float(y)) if y.abs() < 1e38 => {
            Some(x.cmp(&(y.trunc() as i128)).then(0.0.partial_cmp(&y.fract())?))
        }
        (Num::Int(x), Num::Float(y)) => (x as f64).partial_cmp(&y),
    }
}

/// Python's `in` for a tuple of constants.
pub fn contains(items: &[HostValue], value: &HostValue) -> bool {
    items.iter().any(|item| compare(CmpOp::Eq, item, value).unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use HostValue::{Bool, Float, Int};

    #[test]
    fn division_rounds_down_as_python_does() {
        for (a, b) in [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3)] {
            let q = binary(Operator::FloorDiv, &Int(a), &Int(b)).unwrap();
            let r = binary(Operator::Mod, &Int(a), &Int(b)).unwrap();
            assert_eq!(q, Int((a as f64 / b as f64).floor() as i128));
            let (Int(q), Int(r)) = (q, r) else { panic!() };
            assert_eq!(q * b + r, a);
        }
        assert!(binary(Operator::Mod, &Int(1), &Int(0)).is_err());
    }

    #[test]
    fn floats_divide_and_are_raised_as_in_python() {
        for (a, b, quotient, remainder) in [
            (1.0, 0.1, 9.0, 0.09999999999999995),
            (-1.0, 0.1, -10.0, 5.551115123125783e-17),
            (7.5, -2.0, -4.0, -0.5),
            (-4.0, 2.0, -2.0, 0.0),
            (5.0, f64::INFINITY, 0.0, 5.0),
            (-5.0, f64::INFINITY, -1.0, f64::INFINITY),
        ] {
            assert_eq!(binary(Operator::FloorDiv, &Float(a), &Float(b)), Ok(Float(quotient)), "{a} // {b}");
            assert_eq!(binary(Operator::Mod, &Float(a), &Float(b)), Ok(Float(remainder)), "{a} % {b}");
        }
        assert_eq!(binary(Operator::Pow, &Int(-2), &Int(-1)), Ok(Float(-0.5)));
        for (x, y) in [(Int(0), Int(-1)), (Float(-2.0), Float(0.5)), (Float(1e300), Int(2))] {
            assert!(binary(Operator::Pow, &x, &y).is_err(), "{x} ** {y}");
        }
    }

    #[test]
    fn integers_and_floats_are_ordered_by_their_values() {
        let large = 1i128 << 60;
        assert_eq!(compare(CmpOp::Eq, &Int(large + 1), &Float(large as f64)), Ok(false));
        assert_eq!(compare(CmpOp::Gt, &Int(large + 1), &Float(large as f64)), Ok(true));
        assert_eq!(compare(CmpOp::Lt, &Float(-0.5), &Int(0)), Ok(true));
        assert_eq!(compare(CmpOp::Gt, &Int(0), &Float(-0.5)), Ok(true));
        assert_eq!(compare(CmpOp::Lt, &Int(3), &Float(f64::INFINITY)), Ok(true));
        assert_eq!(compare(CmpOp::Eq, &Int(0), &Float(f64::NAN)), Ok(false));
    }

    #[test]
    fn texts_become_integers_and_numbers_are_rounded() {
        for (text, base, value) in [
            ("ff", 16, Some(255)),
            (" -0x_1F ", 0, Some(-31)),
            ("1_000", 10, Some(1000)),
            ("0b11", 2, Some(3)),
            ("1__0", 10, None),
            ("--1", 10, None),
            ("9", 8, None),
            ("zz", 36, Some(1295)),
            ("1", 37, None),
        ] {
            assert_eq!(parse_integer(text, base), value, "{text}");
        }
        for (value, digits, rounded) in [
            (Float(2.675), 2, Float(2.67)),
            (Float(0.125), 2, Float(0.12)),
            (Float(0.375), 2, Float(0.38)),
            (Float(2.5), 0, Float(2.0)),
            (Int(1250), -2, Int(1200)),
            (Int(-1350), -2, Int(-1400)),
            (Int(7), 3, Int(7)),
        ] {
            assert_eq!(round_to(&value, digits), Ok(rounded), "{value}");
        }
    }

    #[test]
    fn numbers_mix_and_overflow_is_an_error() {
        assert_eq!(binary(Operator::Add, &Bool(true), &Int(2)), Ok(Int(3)));
        assert_eq!(binary(Operator::Div, &Int(1), &Int(2)), Ok(Float(0.5)));
        assert_eq!(binary(Operator::Pow, &Int(2), &Int(100)), Ok(Int(1 << 100)));
        assert!(binary(Operator::Pow, &Int(2), &Int(127)).is_err());
        assert!(binary(Operator::LShift, &Int(1), &Int(500)).is_err());
        assert_eq!(compare(CmpOp::Lt, &Int(1), &Float(1.5)), Ok(true));
        assert_eq!(compare(CmpOp::Eq, &Bool(true), &Int(1)), Ok(true));
    }
}
