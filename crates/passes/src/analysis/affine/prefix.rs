//! Masks as bounds of each index: blocks that end where a matrix does.
//!
//! ```text
//! %m = (%first + tt.make_range < %n)[:, None] & (tt.make_range < %left)[None, :]
//!   =>  along 0: below [%n - %first]; along 1: below [%left]
//! ```

use tilewright_ir::dialect::{arith, tt};
use tilewright_ir::{AttrKind, Module, Opcode, Value};

use super::{Affine, Obstacle, Poly};

/// What a mask says of one index i.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bounds {
    /// i is below each of these.
    pub below: Vec<Poly>,
    /// Each of these and i make a sum that is not negative.
    pub not_negative: Vec<Poly>,
}

/// What a mask of so many dimensions says of each index, all together.
///
/// # Errors
/// The value that is no such mask.
pub fn of(m: &Module, affine: &Affine<'_>, mask: Value) -> Result<Vec<Bounds>, Obstacle> {
    let op = m.defining_op(mask).ok_or(mask)?;
    let operands = m.operands(op);
    let rank = m.shape(m.value_type(mask)).map_or(0, <[u32]>::len);
    match m.opcode(op) {
        Some(Opcode::Arith(arith::Kind::Constant)) if all_true(m, mask) => Ok(vec![Bounds::default(); rank]),
        Some(Opcode::Tt(tt::Kind::Broadcast)) => {
            let found = of(m, affine, operands[0])?;
            // What the only element of a dimension is compared with is the same for all.
            let from = m.shape(m.value_type(operands[0])).unwrap_or(&[]);
            let alone = found.iter().zip(from).any(|(bounds, &n)| n == 1 && *bounds != Bounds::default());
            if alone { Err(mask) } else { Ok(found) }
        }
        Some(Opcode::Tt(tt::Kind::ExpandDims)) => {
            let mut found = of(m, affine, operands[0])?;
            found.insert(tt::ExpandDims(op).axis(m) as usize, Bounds::default());
            Ok(found)
        }
        Some(Opcode::Arith(arith::Kind::Andi)) => {
            let mut found = of(m, affine, operands[0])?;
            for (bounds, more) in found.iter_mut().zip(of(m, affine, operands[1])?) {
                bounds.below.extend(more.below);
                bounds.not_negative.extend(more.not_negative);
            }
            Ok(found)
        }
        Some(Opcode::Arith(arith::Kind::Cmpi)) => compared(m, affine, mask, arith::Cmpi(op)),
        _ => Err(mask),
    }
}

/// `i < n`, in any of the ways to write it.
fn compared(m: &Module, affine: &Affine<'_>, mask: Value, op: arith::Cmpi) -> Result<Vec<Bounds>, Obstacle> {
    use arith::CmpIPredicate as P;
    let (lhs, rhs) = (affine.of(op.lhs(m))?, affine.of(op.rhs(m))?);
    let (less, more, strict) = match op.predicate(m) {
        P::Slt => (lhs, rhs, true),
        P::Sle => (lhs, rhs, false),
        P::Sgt => (rhs, lhs, true),
        P::Sge => (rhs, lhs, false),
        _ => return Err(mask),
    };
    // more - less, which is above 0, or not below it.
    let mut room = more.offset.plus(&less.offset, -1);
    let strides: Vec<Poly> = more.strides.iter().zip(&less.strides).map(|(a, b)| a.plus(b, -1)).collect();
    let mut along = strides.iter().enumerate().filter(|(_, stride)| !stride.is_zero());
    let (Some((d, stride)), None) = (along.next(), along.next()) else { return Err(mask) };
    let mut found = vec![Bounds::default(); strides.len()];
    match stride.constant() {
        Some(-1) => {
            room = room.plus(&Poly::number(1), i64::from(!strict));
            found[d].below.push(room);
        }
        Some(1) => {
            room = room.plus(&Poly::number(-1), i64::from(strict));
            found[d].not_negative.push(room);
        }
        _ => return Err(mask),
    }
    Ok(found)
}

/// Whether a constant mask is set in all elements.
fn all_true(m: &Module, mask: Value) -> bool {
    let Some(AttrKind::Splat(element, _)) = m.constant_value(mask).map(|a| m.attr_kind(a)) else {
        return false;
    };
    match *m.attr_kind(*element) {
        AttrKind::Int(n, _) => n != 0,
        AttrKind::Bool(truth) => truth,
        _ => false,
    }
}
