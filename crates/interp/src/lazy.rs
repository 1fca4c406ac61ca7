//! Rules that compute elementwise results in compact form, without touching elements.
//!
//! A rule may only answer when every element of its answer is what the loop would give, wrap-around included: ranges are
//! checked, and `None` means "use the loop".

use tilewright_ir::dialect::arith::CmpIPredicate as P;

use crate::elem::Elem;
use crate::program::Rule;
use crate::tile::{Affine, BoxMask, MAX_COMPACT_RANK, Repr, TileType};

/// An operand: representation and type.
pub type Operand<'a> = (Repr, &'a TileType);

/// The outcome of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lazy {
    /// The result's representation.
    Is(Repr),
    /// The result is this operand.
    Same(usize),
}

/// Applies a rule; `None` where it has no compact answer.
pub fn apply(rule: Rule, operands: &[Operand<'_>], imm: Option<u64>, result: &TileType) -> Option<Lazy> {
    match rule {
        Rule::Loop => None,
        Rule::And => {
            let a = BoxMask::from_repr(operands[0].0, rank_checked(&result.shape)?);
            let b = BoxMask::from_repr(operands[1].0, &result.shape);
            match (a, b) {
                (Some(a), Some(b)) => Some(Lazy::Is(a.and(&b).repr(&result.shape))),
                // A dense mask and one that is the same everywhere.
                _ => match (operands[0].0, operands[1].0) {
                    (Repr::Uniform(0), _) | (_, Repr::Uniform(0)) => Some(Lazy::Is(Repr::Uniform(0))),
                    (Repr::Uniform(_), _) => Some(Lazy::Same(1)),
                    (_, Repr::Uniform(_)) => Some(Lazy::Same(0)),
                    _ => None,
                },
            }
        }
        Rule::Select => match operands[0].0 {
            Repr::Uniform(c) => Some(Lazy::Same(if c & 1 != 0 { 1 } else { 2 })),
            _ => None,
        },
        Rule::Compare(predicate) => compare(predicate, operands, rank_checked(&result.shape)?).map(Lazy::Is),
        _ => {
            let a = Affine::from_repr(operands[0].0)?;
            let b = match operands.get(1) {
                Some(o) => Some(Affine::from_repr(o.0)?),
                None => None,
            };
            arithmetic(rule, a, b, operands, imm, result)
        }
    }
}

fn rank_checked(shape: &[u32]) -> Option<&[u32]> {
    (shape.len() <= MAX_COMPACT_RANK).then_some(shape)
}

fn arithmetic(
    rule: Rule,
    a: Affine,
    b: Option<Affine>,
    operands: &[Operand<'_>],
    imm: Option<u64>,
    result: &TileType,
) -> Option<Lazy> {
    let source = operands[0].1;
    if source.elem == Elem::I1 || matches!(source.elem, Elem::Float(_)) {
        return None;
    }
    let constant = |x: &Affine| (x.strides == [0; MAX_COMPACT_RANK]).then_some(x.base);
    let is = |x: Option<Affine>| x?.checked(result).map(Lazy::Is);
    match rule {
        Rule::Add => is(a.add(&b?)),
        Rule::Sub => is(a.add(&b?.scale(-1)?)),
        Rule::Mul => {
            let b = b?;
            match (constant(&a), constant(&b)) {
                (_, Some(k)) => is(a.scale(k)),
                (Some(k), _) => is(b.scale(k)),
                _ => None,
            }
        }
        Rule::Shl => {
            let k = constant(&b?)?;
            if (0..32).contains(&k) && (k as usize) < source.elem.reg_size() * 8 {
                is(a.scale(1 << k))
            } else {
                None
            }
        }
        // The division of numbers below the divisor.
        Rule::Div | Rule::Rem => {
            let divisor = i128::from(constant(&b?)?);
            let (min, max) = a.range(&source.shape);
            if min < 0 || max >= divisor {
                return None;
            }
            Some(if rule == Rule::Rem { Lazy::Same(0) } else { Lazy::Is(Repr::Uniform(0)) })
        }
        Rule::MinMax(larger) => {
            let b = b?;
            let (a_min, a_max) = a.range(&source.shape);
            let (b_min, b_max) = b.range(&source.shape);
            if a_max <= b_min {
                Some(Lazy::Same(usize::from(larger)))
            } else if b_max <= a_min {
                Some(Lazy::Same(usize::from(!larger)))
            } else {
                None
            }
        }
        Rule::IntCast(signed) => {
            if result.elem == Elem::I1 {
                return None;
            }
            let (min, _) = a.range(&source.shape);
            // Zero extension of a negative number changes it; addresses are compact only below 2^63.
            if !signed && min < 0 && result.elem.reg_size() != source.elem.reg_size() {
                return None;
            }
            is(Some(a))
        }
        Rule::AddPtr => {
            if operands[1].1.elem == Elem::I1 {
                return None;
            }
            is(a.add(&b?.scale(imm? as i64)?))
        }
        Rule::Loop | Rule::And | Rule::Select | Rule::Compare(_) => None,
    }
}

fn compare(predicate: P, operands: &[Operand<'_>], shape: &[u32]) -> Option<Repr> {
    let elem = operands[0].1.elem;
    if elem == Elem::I1 {
        return None;
    }
    let (a, b) = (Affine::from_repr(operands[0].0)?, Affine::from_repr(operands[1].0)?);
    let unsigned = matches!(predicate, P::Ult | P::Ule | P::Ugt | P::Uge);
    if unsigned && (a.range(shape).0 < 0 || b.range(shape).0 < 0) {
        return None;
    }
    let difference = a.add(&b.scale(-1)?)?;
    let (min, max) = difference.range(shape);
    let always = |holds: bool, fails: bool| match (holds, fails) {
        (true, _) => Some(Repr::Uniform(1)),
        (_, true) => Some(Repr::Uniform(0)),
        _ => None,
    };
    let decided = match predicate {
        P::Slt | P::Ult => always(max < 0, min >= 0),
        P::Sle | P::Ule => always(max <= 0, min > 0),
        P::Sgt | P::Ugt => always(min > 0, max <= 0),
        P::Sge | P::Uge => always(min >= 0, max < 0),
        P::Eq => always(min == 0 && max == 0, min > 0 || max < 0),
        P::Ne => always(min > 0 || max < 0, min == 0 && max == 0),
    };
    if decided.is_some() {
        return decided;
    }
    // Undecided: where the difference changes along one dimension only, the answer is a half-open range of it.
    let mut varying = (0..shape.len()).filter(|&d| difference.strides[d] != 0);
    let (d, None) = (varying.next()?, varying.next()) else { return None };
    let (base, step, extent) =
        (i128::from(difference.base), i128::from(difference.strides[d]), i128::from(shape[d]));
    // The number of leading indices i with base + step·i < limit (for step > 0), or > limit (for step < 0).
    let before = |limit: i128| {
        let n = if step > 0 {
            (limit - base + step - 1).div_euclid(step)
        } else {
            (base - limit + (-step) - 1).div_euclid(-step)
        };
        n.clamp(0, extent) as u32
    };
    let extent = shape[d];
    let (lo, hi) = match (predicate, step > 0) {
        (P::Slt | P::Ult, true) | (P::Sgt | P::Ugt, false) => (0, before(0)),
        (P::Sle | P::Ule, true) => (0, before(1)),
        (P::Sge | P::Uge, false) => (0, before(-1)),
        (P::Sge | P::Uge, true) | (P::Sle | P::Ule, false) => (before(0), extent),
        (P::Sgt | P::Ugt, true) => (before(1), extent),
        (P::Slt | P::Ult, false) => (before(-1), extent),
        (P::Eq, true) => (before(0), before(1)),
        (P::Eq, false) => (before(0), before(-1)),
        (P::Ne, _) => return None,
    };
    let mut mask = BoxMask::all(shape);
    mask.lo[d] = lo;
    mask.hi[d] = hi.max(lo);
    Some(mask.repr(shape))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every rule against the same arithmetic on materialized elements, on small ranges that exercise the edges.
    #[test]
    fn compare_agrees_with_elements() {
        let ty = TileType { shape: [3, 5].into(), len: 15, elem: Elem::I32 };
        let predicates = [P::Eq, P::Ne, P::Slt, P::Sle, P::Sgt, P::Sge, P::Ult, P::Ule, P::Ugt, P::Uge];
        let mut compact = 0;
        for base in -7..8 {
            for stride in [-3, -2, -1, 0, 1, 2, 3] {
                for d in 0..2 {
                    let mut a = Affine::constant(base);
                    a.strides[d] = stride;
                    let Some(repr) = a.checked(&ty) else { continue };
                    for other in -2..6i64 {
                        for p in predicates {
                            let got =
                                compare(p, &[(repr, &ty), (Repr::Uniform(other as u64), &ty)], &ty.shape);
                            let Some(got) = got else { continue };
                            compact += 1;
                            let mut reg = crate::tile::Reg { repr: got, buf: Default::default() };
                            let mask_ty = TileType { elem: Elem::I1, ..ty.clone() };
                            reg.materialize(&mask_ty, 15);
                            for i in 0..15i64 {
                                let index = [i / 5, i % 5];
                                let x = base + stride * index[d];
                                let (ux, uo) = (x as u32, other as u32);
                                let want = match p {
                                    P::Eq => x == other,
                                    P::Ne => x != other,
                                    P::Slt => x < other,
                                    P::Sle => x <= other,
                                    P::Sgt => x > other,
                                    P::Sge => x >= other,
                                    P::Ult => ux < uo,
                                    P::Ule => ux <= uo,
                                    P::Ugt => ux > uo,
                                    P::Uge => ux >= uo,
                                };
                                let found = reg.buf.slice::<u8>(15)[i as usize];
                                assert_eq!(
                                    found != 0,
                                    want,
                                    "{base}+{stride}*i[{d}] {p:?} {other} at {index:?}"
                                );
                            }
                        }
                    }
                }
            }
        }
        assert!(compact > 5000, "the rule almost never applies: {compact}");
    }
}
