//! Folding: what an operation's result is, where that is known without a new operation.
//!
//! Constants are folded for scalars and splats, in the arithmetic of their type: integers wrap, floats are rounded to
//! their format after each operation (one operation on `f64` and one rounding gives the correctly rounded result for
//! every narrower format). What would fault or is undefined is left alone. Functions that hardware approximates
//! (`math.exp`, …) are not folded: the host would round them differently.

use crate::attrs::{AttrKind, FloatBits};
use crate::dialect::{arith, math, tt, ttg};
use crate::entity::{Attr, Op, Type, Value};
use crate::float;
use crate::module::Module;
use crate::opdef::Opcode;
use crate::rewrite::Folded;
use crate::types::{FloatKind, TypeKind};

/// A number that a constant holds in every element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    /// Sign-extended.
    Int(i64),
    Float(f64),
}

/// The number that a value is everywhere, if it is a scalar or splat constant.
pub(crate) fn number(m: &Module, value: Value) -> Option<Number> {
    let attr = m.constant_value(value)?;
    let scalar = match m.attr_kind(attr) {
        AttrKind::Splat(a, _) => *a,
        _ => attr,
    };
    match m.attr_kind(scalar) {
        AttrKind::Int(v, _) => Some(Number::Int(*v)),
        AttrKind::Bool(b) => Some(Number::Int(-i64::from(*b))),
        AttrKind::Float(v, _) => Some(Number::Float(v.value())),
        _ => None,
    }
}

fn int(m: &Module, value: Value) -> Option<i64> {
    match number(m, value)? {
        Number::Int(v) => Some(v),
        Number::Float(_) => None,
    }
}

fn float(m: &Module, value: Value) -> Option<f64> {
    match number(m, value)? {
        Number::Float(v) => Some(v),
        Number::Int(_) => None,
    }
}

fn width(m: &Module, ty: Type) -> u32 {
    m.bits(ty).min(64)
}

/// Sign-extends from a width.
fn wrap(value: i64, bits: u32) -> i64 {
    if bits == 0 || bits >= 64 { value } else { (value << (64 - bits)) >> (64 - bits) }
}

fn unsigned(value: i64, bits: u32) -> u64 {
    if bits >= 64 { value as u64 } else { value as u64 & ((1 << bits) - 1) }
}

fn float_kind(m: &Module, ty: Type) -> Option<FloatKind> {
    match m.type_kind(m.element_type(ty)) {
        TypeKind::Float(k) => Some(*k),
        _ => None,
    }
}

/// The attribute of a constant of a type; `None` for a float that the format cannot hold as what it is.
pub(crate) fn constant(m: &mut Module, n: Number, ty: Type) -> Option<Attr> {
    let element = m.element_type(ty);
    let attr = match (n, m.type_kind(element).clone()) {
        (Number::Int(v), TypeKind::Int(bits)) => m.attr(AttrKind::Int(wrap(v, u32::from(bits)), element)),
        (Number::Int(v), TypeKind::Index) => m.attr(AttrKind::Int(v, element)),
        (Number::Float(v), TypeKind::Float(kind)) => {
            let v = float::round(v, kind);
            m.attr(AttrKind::Float(FloatBits::new(v), element))
        }
        _ => return None,
    };
    Some(if m.is_tensor(ty) { m.attr(AttrKind::Splat(attr, ty)) } else { attr })
}

/// What an operation on scalar integers gives of these operands, where that can be said; integers are sign-extended.
pub fn integer(m: &Module, op: Op, operands: &[i64]) -> Option<i64> {
    let Opcode::Arith(kind) = m.opcode(op)? else { return None };
    let (ty, from) = (m.value_type(m.result(op)), m.value_type(*m.operands(op).first()?));
    let is_int = |ty| matches!(m.type_kind(ty), TypeKind::Int(_) | TypeKind::Index);
    if !is_int(ty) || !is_int(from) {
        return None;
    }
    let (bits, of) = (width(m, ty), width(m, from));
    let result = match (kind, operands) {
        (arith::Kind::Cmpi, &[x, y]) => -i64::from(compare(arith::Cmpi(op).predicate(m), x, y, of)),
        (arith::Kind::Select, &[c, a, b]) => {
            if c != 0 {
                a
            } else {
                b
            }
        }
        (arith::Kind::Extsi | arith::Kind::Trunci | arith::Kind::IndexCast, &[x]) => x,
        (arith::Kind::Extui, &[x]) => unsigned(x, of) as i64,
        (_, &[x, y]) => int_binary(kind, x, y, bits)?,
        _ => return None,
    };
    Some(wrap(result, bits))
}

/// Folds an operation with one result.
pub fn fold(m: &mut Module, op: Op) -> Option<Folded> {
    match m.opcode(op)? {
        Opcode::Arith(kind) => fold_arith(m, op, kind),
        Opcode::Math(kind) => fold_math(m, op, kind),
        Opcode::Tt(kind) => fold_tt(m, op, kind),
        Opcode::Ttg(ttg::Kind::ConvertLayout) => fold_convert(m, op),
        _ => None,
    }
}

fn value(v: Value) -> Option<Folded> {
    Some(Folded::Value(v))
}

fn folded(m: &mut Module, n: Number, ty: Type) -> Option<Folded> {
    constant(m, n, ty).map(Folded::Constant)
}

fn fold_arith(m: &mut Module, op: Op, kind: arith::Kind) -> Option<Folded> {
    use arith::Kind as K;
    let ty = m.value_type(m.result(op));
    let operands = m.operands(op);
    match *operands {
        [x] => fold_arith_unary(m, kind, x, ty),
        [a, b] if matches!(kind, K::Cmpi) => fold_cmpi(m, op, a, b, ty),
        [a, b] if matches!(kind, K::Cmpf) => fold_cmpf(m, op, a, b, ty),
        [a, b] if m.is_float(ty) => fold_float_binary(m, kind, a, b, ty),
        [a, b] => fold_int_binary(m, kind, a, b, ty),
        [c, a, b] => fold_select(m, c, a, b, ty),
        _ => None,
    }
}

fn fold_int_binary(m: &mut Module, kind: arith::Kind, a: Value, b: Value, ty: Type) -> Option<Folded> {
    use arith::Kind as K;
    let bits = width(m, ty);
    let (ca, cb) = (int(m, a), int(m, b));
    if let (Some(x), Some(y)) = (ca, cb) {
        let n = int_binary(kind, x, y, bits)?;
        return folded(m, Number::Int(wrap(n, bits)), ty);
    }
    let zero = Number::Int(0);
    let ones = Some(-1);
    match kind {
        K::Addi | K::Ori | K::Xori if cb == Some(0) => value(a),
        K::Addi | K::Ori | K::Xori if ca == Some(0) => value(b),
        K::Subi | K::Shli | K::Shrsi | K::Shrui if cb == Some(0) => value(a),
        K::Subi | K::Xori if a == b => folded(m, zero, ty),
        // (x + y) - y and (x - y) + y wrap around to x.
        K::Subi => match arith::Addi::of(m, a) {
            Some(add) if add.rhs(m) == b => value(add.lhs(m)),
            Some(add) if add.lhs(m) == b => value(add.rhs(m)),
            _ => None,
        },
        K::Muli | K::Divsi | K::Divui | K::Ceildivsi | K::Ceildivui | K::Floordivsi
            if cb == Some(1) && bits > 1 =>
        {
            value(a)
        }
        K::Muli if ca == Some(1) && bits > 1 => value(b),
        K::Muli | K::Andi if cb == Some(0) || ca == Some(0) => folded(m, zero, ty),
        // Nothing is lost where a multiple is divided: x / c * c is x.
        K::Muli => match arith::Divsi::of(m, a) {
            Some(div) if int(m, div.rhs(m)) == cb && is_multiple(m, div.lhs(m), cb?) => value(div.lhs(m)),
            _ => None,
        },
        K::Remsi | K::Remui if cb == Some(1) && bits > 1 => folded(m, zero, ty),
        K::Andi if cb == ones => value(a),
        K::Andi if ca == ones => value(b),
        K::Ori if cb == ones || ca == ones => folded(m, Number::Int(-1), ty),
        K::Andi | K::Ori | K::Minsi | K::Maxsi | K::Minui | K::Maxui if a == b => value(a),
        _ => None,
    }
}

/// Whether a number is made as a multiple of a power of two, which it stays where it overflows.
fn is_multiple(m: &Module, value: Value, of: i64) -> bool {
    let power = of > 0 && of & (of - 1) == 0;
    if let Some(n) = int(m, value) {
        return power && n % of == 0;
    }
    let factors = arith::Muli::of(m, value).map(|mul| [mul.lhs(m), mul.rhs(m)]);
    power && factors.is_some_and(|factors| factors.iter().any(|&v| int(m, v).is_some_and(|n| n % of == 0)))
}

fn int_binary(kind: arith::Kind, x: i64, y: i64, bits: u32) -> Option<i64> {
    use arith::Kind as K;
    let (ux, uy) = (unsigned(x, bits), unsigned(y, bits));
    let min = wrap(1i64.checked_shl(bits - 1).unwrap_or(0), bits);
    let overflows = y == 0 || (x == min && y == -1);
    Some(match kind {
        K::Addi => x.wrapping_add(y),
        K::Subi => x.wrapping_sub(y),
        K::Muli => x.wrapping_mul(y),
        K::Andi => x & y,
        K::Ori => x | y,
        K::Xori => x ^ y,
        K::Minsi => x.min(y),
        K::Maxsi => x.max(y),
        K::Minui => ux.min(uy) as i64,
        K::Maxui => ux.max(uy) as i64,
        K::Divsi if !overflows => x / y,
        K::Remsi if !overflows => x % y,
        K::Divui if uy != 0 => (ux / uy) as i64,
        K::Remui if uy != 0 => (ux % uy) as i64,
        K::Ceildivui if uy != 0 => ux.div_ceil(uy) as i64,
        K::Floordivsi if !overflows => x.div_euclid(y) - i64::from(y < 0 && x.rem_euclid(y) != 0),
        K::Ceildivsi if !overflows => x.div_euclid(y) + i64::from(y > 0 && x.rem_euclid(y) != 0),
        K::Shli if uy < u64::from(bits) => x << uy,
        K::Shrsi if uy < u64::from(bits) => x >> uy,
        K::Shrui if uy < u64::from(bits) => (ux >> uy) as i64,
        _ => return None,
    })
}

fn fold_float_binary(m: &mut Module, kind: arith::Kind, a: Value, b: Value, ty: Type) -> Option<Folded> {
    use arith::Kind as K;
    let (ca, cb) = (float(m, a), float(m, b));
    if let (Some(x), Some(y)) = (ca, cb) {
        let n = match kind {
            K::Addf => x + y,
            K::Subf => x - y,
            K::Mulf => x * y,
            K::Divf => x / y,
            K::Minimumf | K::Maximumf if x.is_nan() || y.is_nan() => f64::NAN,
            K::Minimumf | K::Minnumf if x == y => {
                if x.is_sign_negative() {
                    x
                } else {
                    y
                }
            }
            K::Maximumf | K::Maxnumf if x == y => {
                if x.is_sign_negative() {
                    y
                } else {
                    x
                }
            }
            K::Minimumf | K::Minnumf => x.min(y),
            K::Maximumf | K::Maxnumf => x.max(y),
            _ => return None,
        };
        // The sign and payload of a NaN that hardware makes are not ours to say.
        if n.is_nan() && !x.is_nan() && !y.is_nan() {
            return None;
        }
        return folded(m, Number::Float(n), ty);
    }
    let is = |c: Option<f64>, n: f64| c.is_some_and(|c| c.to_bits() == n.to_bits());
    match kind {
        // -0.0 is what leaves every value as it is; +0.0 would turn -0.0 into +0.0.
        K::Addf if is(cb, -0.0) => value(a),
        K::Addf if is(ca, -0.0) => value(b),
        K::Subf if is(cb, 0.0) => value(a),
        K::Mulf | K::Divf if is(cb, 1.0) => value(a),
        K::Mulf if is(ca, 1.0) => value(b),
        K::Minimumf | K::Maximumf | K::Minnumf | K::Maxnumf if a == b => value(a),
        _ => None,
    }
}

fn fold_arith_unary(m: &mut Module, kind: arith::Kind, x: Value, ty: Type) -> Option<Folded> {
    use arith::Kind as K;
    let from = m.value_type(x);
    if from == ty && matches!(kind, K::Bitcast | K::IndexCast) {
        return value(x);
    }
    if let Some(n) = number(m, x) {
        let bits = width(m, from);
        let n = match (kind, n) {
            (K::Negf, Number::Float(v)) => Number::Float(-v),
            (K::Extsi | K::Trunci | K::IndexCast, Number::Int(v)) => Number::Int(v),
            (K::Extui, Number::Int(v)) => Number::Int(unsigned(v, bits) as i64),
            (K::Extf | K::Truncf, Number::Float(v)) if !v.is_nan() => {
                // Saturation and NaN of the 8-bit formats are the lowering's choice.
                let kind = float_kind(m, ty)?;
                let rounded = float::round(v, kind);
                if kind.bits() < 16 && !rounded.is_finite() {
                    return None;
                }
                Number::Float(rounded)
            }
            (K::Sitofp, Number::Int(v)) => Number::Float(int_to_float(i128::from(v), float_kind(m, ty)?)?),
            (K::Uitofp, Number::Int(v)) => {
                Number::Float(int_to_float(i128::from(unsigned(v, bits)), float_kind(m, ty)?)?)
            }
            (K::Fptosi, Number::Float(v)) => {
                let limit = 2f64.powi(width(m, ty) as i32 - 1);
                if !(v.trunc() >= -limit && v.trunc() < limit) {
                    return None;
                }
                Number::Int(v as i64)
            }
            (K::Fptoui, Number::Float(v)) => {
                let limit = 2f64.powi(width(m, ty) as i32);
                if !(v.trunc() >= 0.0 && v.trunc() < limit) {
                    return None;
                }
                Number::Int(v as u64 as i64)
            }
            (K::Bitcast, n) => {
                let pattern = match (n, float_kind(m, from)) {
                    (Number::Float(v), Some(k)) if !v.is_nan() => float::to_bits(v, k),
                    (Number::Int(v), None) => unsigned(v, bits),
                    _ => return None,
                };
                match float_kind(m, ty) {
                    Some(k) => {
                        let v = float::from_bits(pattern, k);
                        if v.is_nan() {
                            return None;
                        }
                        Number::Float(v)
                    }
                    None => Number::Int(wrap(pattern as i64, bits)),
                }
            }
            _ => return None,
        };
        return folded(m, n, ty);
    }
    let inner = m.defining_op(x)?;
    let source = *m.operands(inner).first()?;
    let round_trip = m.value_type(source) == ty;
    match (kind, m.opcode(inner)?) {
        (K::Negf, Opcode::Arith(K::Negf)) => value(source),
        // Widening and narrowing back gives the value again.
        (K::Trunci, Opcode::Arith(K::Extsi | K::Extui)) if round_trip => value(source),
        (K::Truncf, Opcode::Arith(K::Extf)) if round_trip => value(source),
        (K::Bitcast, Opcode::Arith(K::Bitcast)) if round_trip => value(source),
        (K::IndexCast, Opcode::Arith(K::IndexCast)) if round_trip && m.bits(ty) <= m.bits(from) => {
            value(source)
        }
        _ => None,
    }
}

/// An integer rounded once to a format.
fn int_to_float(v: i128, kind: FloatKind) -> Option<f64> {
    match kind {
        FloatKind::F64 => Some(v as f64),
        FloatKind::F32 => Some(f64::from(v as f32)),
        // Through f64 it would be rounded twice, unless f64 holds it exactly.
        _ if v.unsigned_abs() < 1 << 53 => {
            let rounded = float::round(v as f64, kind);
            rounded.is_finite().then_some(rounded)
        }
        _ => None,
    }
}

/// Whether two integers, of which so many bits count where signs don't, compare so.
pub fn compare(predicate: arith::CmpIPredicate, x: i64, y: i64, bits: u32) -> bool {
    use arith::CmpIPredicate as P;
    let (ux, uy) = (unsigned(x, bits), unsigned(y, bits));
    match predicate {
        P::Eq => x == y,
        P::Ne => x != y,
        P::Slt => x < y,
        P::Sle => x <= y,
        P::Sgt => x > y,
        P::Sge => x >= y,
        P::Ult => ux < uy,
        P::Ule => ux <= uy,
        P::Ugt => ux > uy,
        P::Uge => ux >= uy,
    }
}

fn fold_cmpi(m: &mut Module, op: Op, a: Value, b: Value, ty: Type) -> Option<Folded> {
    use arith::CmpIPredicate as P;
    let predicate = arith::Cmpi(op).predicate(m);
    let truth = |m: &mut Module, t: bool| folded(m, Number::Int(-i64::from(t)), ty);
    if a == b {
        return truth(m, matches!(predicate, P::Eq | P::Sle | P::Sge | P::Ule | P::Uge));
    }
    let bits = width(m, m.value_type(a));
    if let (Some(x), Some(y)) = (int(m, a), int(m, b)) {
        return truth(m, compare(predicate, x, y, bits));
    }
    // A boolean compared with itself as a number.
    if m.value_type(a) == ty && bits == 1 {
        return match (predicate, int(m, b)) {
            (P::Ne, Some(0)) | (P::Eq, Some(-1)) => value(a),
            _ => None,
        };
    }
    None
}

fn fold_cmpf(m: &mut Module, op: Op, a: Value, b: Value, ty: Type) -> Option<Folded> {
    use arith::CmpFPredicate as P;
    let predicate = arith::Cmpf(op).predicate(m);
    let known = match predicate {
        P::False => false,
        P::True => true,
        _ => {
            let (x, y) = (float(m, a)?, float(m, b)?);
            let unordered = x.is_nan() || y.is_nan();
            match predicate {
                P::Oeq => x == y,
                P::Ogt => x > y,
                P::Oge => x >= y,
                P::Olt => x < y,
                P::Ole => x <= y,
                P::One => !unordered && x != y,
                P::Ord => !unordered,
                P::Ueq => unordered || x == y,
                P::Ugt => unordered || x > y,
                P::Uge => unordered || x >= y,
                P::Ult => unordered || x < y,
                P::Ule => unordered || x <= y,
                P::Une => unordered || x != y,
                P::Uno => unordered,
                P::True | P::False => return None,
            }
        }
    };
    folded(m, Number::Int(-i64::from(known)), ty)
}

fn fold_select(m: &mut Module, c: Value, a: Value, b: Value, ty: Type) -> Option<Folded> {
    if a == b {
        return value(a);
    }
    match int(m, c) {
        Some(0) => return value(b),
        Some(_) => return value(a),
        None => {}
    }
    // select(c, true, false) is c.
    if m.value_type(c) == ty && int(m, a) == Some(-1) && int(m, b) == Some(0) {
        return value(c);
    }
    None
}

fn fold_math(m: &mut Module, op: Op, kind: math::Kind) -> Option<Folded> {
    use math::Kind as K;
    let ty = m.value_type(m.result(op));
    let &x = m.operands(op).first()?;
    match (kind, number(m, x)) {
        (K::Absf, Some(Number::Float(v))) => folded(m, Number::Float(v.abs()), ty),
        (K::Floor, Some(Number::Float(v))) if !v.is_nan() => folded(m, Number::Float(v.floor()), ty),
        (K::Ceil, Some(Number::Float(v))) if !v.is_nan() => folded(m, Number::Float(v.ceil()), ty),
        (K::Trunc, Some(Number::Float(v))) if !v.is_nan() => folded(m, Number::Float(v.trunc()), ty),
        (K::Absi, Some(Number::Int(v))) => folded(m, Number::Int(v.wrapping_abs()), ty),
        // Doing it twice does nothing more.
        (K::Absf | K::Absi | K::Floor | K::Ceil | K::Trunc | K::Round, None) => {
            let inner = m.defining_op(x)?;
            (m.opcode(inner) == Some(Opcode::Math(kind))).then_some(Folded::Value(x))
        }
        _ => None,
    }
}

/// The constant with the elements of another, in another type: splats only.
fn resplat(m: &mut Module, x: Value, ty: Type) -> Option<Folded> {
    let n = number(m, x)?;
    folded(m, n, ty)
}

fn fold_tt(m: &mut Module, op: Op, kind: tt::Kind) -> Option<Folded> {
    use tt::Kind as K;
    let &x = m.operands(op).first()?;
    let ty = m.value_type(m.results(op).first().copied()?);
    let from = m.value_type(x);
    match kind {
        K::Splat => resplat(m, x, ty),
        K::Unsplat => match tt::Splat::of(m, x) {
            Some(s) => value(s.src(m)),
            None => resplat(m, x, ty),
        },
        K::Broadcast | K::Reshape if from == ty => value(x),
        K::ExpandDims | K::Broadcast | K::Reshape => resplat(m, x, ty),
        K::Trans => {
            let order = tt::Trans(op).order(m);
            if from == ty && order.iter().enumerate().all(|(i, &d)| i as i32 == d) {
                return value(x);
            }
            if let Some(inner) = tt::Trans::of(m, x) {
                let source = inner.src(m);
                let inner_order = inner.order(m);
                let undone =
                    order.iter().enumerate().all(|(i, &d)| inner_order.get(d as usize) == Some(&(i as i32)));
                if undone && m.value_type(source) == ty {
                    return value(source);
                }
            }
            resplat(m, x, ty)
        }
        K::Addptr => {
            let offset = *m.operands(op).get(1)?;
            (int(m, offset) == Some(0)).then_some(Folded::Value(x))
        }
        K::Bitcast | K::FpToFp if from == ty => value(x),
        K::IntToPtr => match tt::PtrToInt::of(m, x) {
            Some(p) if m.value_type(p.src(m)) == ty => value(p.src(m)),
            _ => None,
        },
        K::PtrToInt => match tt::IntToPtr::of(m, x) {
            Some(p) if m.value_type(p.src(m)) == ty => value(p.src(m)),
            _ => None,
        },
        K::Load => {
            // Masked off everywhere: what it reads as.
            let load = tt::Load(op);
            match (load.mask(m).and_then(|v| int(m, v)), load.other(m)) {
                (Some(0), Some(other)) if !load.is_volatile(m) => value(other),
                _ => None,
            }
        }
        _ => None,
    }
}

fn fold_convert(m: &mut Module, op: Op) -> Option<Folded> {
    let convert = ttg::ConvertLayout(op);
    let ty = m.value_type(convert.result(m));
    let mut source = convert.src(m);
    // A chain of conversions is one, and none if it ends where it began.
    while let Some(inner) = ttg::ConvertLayout::of(m, source) {
        source = inner.src(m);
        if m.value_type(source) == ty {
            return value(source);
        }
    }
    if m.value_type(source) == ty {
        return value(source);
    }
    resplat(m, source, ty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_wrap_at_their_width() {
        use arith::Kind as K;
        let fold = |kind, x, y, bits| int_binary(kind, x, y, bits).map(|n| wrap(n, bits));
        assert_eq!(fold(K::Addi, 127, 1, 8), Some(-128));
        assert_eq!(fold(K::Muli, i64::from(i32::MIN), -1, 32), Some(i64::from(i32::MIN)));
        assert_eq!(fold(K::Divui, -1, 2, 8), Some(127));
        assert_eq!(fold(K::Remui, -1, 16, 8), Some(15));
        assert_eq!(fold(K::Shrui, -1, 4, 8), Some(15));
        assert_eq!(fold(K::Shrsi, -16, 2, 8), Some(-4));
        assert_eq!(fold(K::Maxui, -1, 1, 32), Some(-1));
        assert_eq!(fold(K::Divsi, -128, -1, 8), None);
        assert_eq!(fold(K::Divsi, 1, 0, 8), None);
        assert_eq!(fold(K::Ceildivui, -1, 2, 8), Some(-128));
        assert_eq!(fold(K::Ceildivui, 1, 0, 8), None);
        assert_eq!(fold(K::Shli, 1, 8, 8), None);
        for x in -9..=9i64 {
            for y in (-4..=4i64).filter(|&y| y != 0) {
                let exact = x as f64 / y as f64;
                assert_eq!(fold(K::Floordivsi, x, y, 32), Some(exact.floor() as i64), "{x} {y}");
                assert_eq!(fold(K::Ceildivsi, x, y, 32), Some(exact.ceil() as i64), "{x} {y}");
            }
        }
    }
}
