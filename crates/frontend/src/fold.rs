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

fn python_mod(a: f64, b: f64) -> f64 {
    let r = a % b;
    if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r }
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
            Operator::Pow if y < 0 => Ok(V::Float((x as f64).powf(y as f64))),
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
            (x / y).floor()
        }
        Operator::Mod => {
            nonzero()?;
            python_mod(x, y)
        }
        Operator::Pow => x.powf(y),
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
        (Some(Num::Int(x)), Some(Num::Int(y))) => Some(x.cmp(&y)),
        (Some(x), Some(y)) => x.to_f64().partial_cmp(&y.to_f64()),
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
