//! Masks of loads and stores as how many elements they leave along each dimension, from the first one on.
//!
//! The engines that copy take blocks: a mask is what is in front of an end along each dimension, which is how kernels write tails.
//!
//! ```text
//! %m = arith.cmpi slt, (tt.splat %first) + tt.make_range, (tt.splat %n) : tensor<64xi32>      =>  [clamp(%n - %first, 0, 64)]
//! ```

use tilewright_ir::dialect::{arith, tt};
use tilewright_ir::{AttrKind, Builder, Diagnostic, Module, Op, Opcode, Type, Value};
use tilewright_passes::analysis::affine::{Affine, Poly};
use tilewright_passes::sums;

use super::unsupported;

/// How many elements there are along each dimension, each an `i64`; none for all of them.
type Extents = Vec<Option<Value>>;

/// Takes apart the mask of `op`; numbers are computed in front of it.
///
/// # Errors
/// Masks that are not the first elements along each dimension.
pub(super) fn of(module: &mut Module, op: Op, mask: Value) -> Result<Extents, Diagnostic> {
    let mut masks = Masks { b: Builder::before(module, op), op };
    masks.extents(mask)
}

struct Masks<'m> {
    b: Builder<'m>,
    op: Op,
}

impl Masks<'_> {
    fn module(&self) -> &Module {
        self.b.module
    }

    fn error(&self, mask: Value) -> Diagnostic {
        let m = self.module();
        let what = m.defining_op(mask).map_or("an argument", |op| m.op_name(op)).to_string();
        unsupported(m, self.op, format!("a mask that is made by `{what}`"))
            .note("its engines copy blocks: compare indices with the first one that is not there, `i < n`, along each dimension")
    }

    fn shape(&self, value: Value) -> Vec<u32> {
        let m = self.module();
        m.shape(m.value_type(value)).unwrap_or(&[]).to_vec()
    }

    fn extents(&mut self, mask: Value) -> Result<Extents, Diagnostic> {
        let m = self.module();
        let shape = self.shape(mask);
        let Some(op) = m.defining_op(mask) else { return Err(self.error(mask)) };
        let operands = m.operands(op).to_vec();
        match m.opcode(op) {
            Some(Opcode::Arith(arith::Kind::Constant)) => {
                let all = truth(m, mask).ok_or_else(|| self.error(mask))?;
                let none = (!all).then(|| self.b.int(0, Type::I64));
                Ok(along_first(none, &shape))
            }
            Some(Opcode::Tt(tt::Kind::Splat)) => {
                let some = arith::Extui::build(&mut self.b, operands[0], Type::I64);
                let some = some.out(self.module());
                Ok(along_first(Some(self.times(some, shape[0])), &shape))
            }
            Some(Opcode::Tt(tt::Kind::Broadcast)) => {
                let mut found = self.extents(operands[0])?;
                let from = self.shape(operands[0]);
                for d in (0..shape.len()).filter(|&d| from[d] != shape[d]) {
                    found[d] = found[d].map(|some| self.times(some, shape[d]));
                }
                Ok(found)
            }
            Some(Opcode::Tt(tt::Kind::ExpandDims)) => {
                let axis = tt::ExpandDims(op).axis(m) as usize;
                let mut found = self.extents(operands[0])?;
                found.insert(axis, None);
                Ok(found)
            }
            Some(Opcode::Arith(arith::Kind::Andi)) => {
                let (x, y) = (self.extents(operands[0])?, self.extents(operands[1])?);
                let both = x.into_iter().zip(y).map(|(x, y)| match (x, y) {
                    (Some(x), Some(y)) => {
                        let b = &mut self.b;
                        Some(arith::Minsi::build(b, x, y).result(b.module))
                    }
                    (x, y) => x.or(y),
                });
                Ok(both.collect())
            }
            Some(Opcode::Arith(arith::Kind::Cmpi)) => self.compared(mask, arith::Cmpi(op)),
            _ => Err(self.error(mask)),
        }
    }

    /// `i < n`, in any of the ways to write it.
    fn compared(&mut self, mask: Value, op: arith::Cmpi) -> Result<Extents, Diagnostic> {
        use arith::CmpIPredicate as P;
        let m = self.module();
        let operands = m.operands(op.0).to_vec();
        let (less, more, equal) = match op.predicate(m) {
            P::Slt => (0, 1, false),
            P::Sle => (0, 1, true),
            P::Sgt => (1, 0, false),
            P::Sge => (1, 0, true),
            _ => return Err(self.error(mask)),
        };
        let affine = Affine::of_indices(m);
        let (Ok(less), Ok(more)) = (affine.of(operands[less]), affine.of(operands[more])) else {
            return Err(self.error(mask));
        };
        let along: Vec<usize> = (0..less.strides.len()).filter(|&d| !less.strides[d].is_zero()).collect();
        if !more.is_uniform() || along.iter().any(|&d| less.strides[d].constant() != Some(1)) {
            return Err(self.error(mask));
        }
        let many = more.offset.plus(&less.offset, -1).plus(&Poly::number(i64::from(equal)), 1);
        let many = sums::build(&mut self.b, &many, Type::I64);
        let shape = self.shape(mask);
        match along[..] {
            [] => {
                let some = self.clamped(many, 1);
                Ok(along_first(Some(self.times(some, shape[0])), &shape))
            }
            [d] => {
                let mut found = vec![None; shape.len()];
                found[d] = Some(self.clamped(many, shape[d]));
                Ok(found)
            }
            _ => Err(self.error(mask)),
        }
    }

    fn clamped(&mut self, number: Value, most: u32) -> Value {
        let b = &mut self.b;
        let (zero, most) = (b.int(0, Type::I64), b.int(i64::from(most), Type::I64));
        let number = arith::Maxsi::build(b, number, zero).result(b.module);
        arith::Minsi::build(b, number, most).result(b.module)
    }

    fn times(&mut self, number: Value, by: u32) -> Value {
        let b = &mut self.b;
        let by = b.int(i64::from(by), Type::I64);
        arith::Muli::build(b, number, by).result(b.module)
    }
}

/// All elements, or so many along the first dimension.
fn along_first(extent: Option<Value>, shape: &[u32]) -> Extents {
    let mut found = vec![None; shape.len()];
    found[0] = extent;
    found
}

/// What all elements of a constant mask are.
fn truth(m: &Module, mask: Value) -> Option<bool> {
    let AttrKind::Splat(element, _) = *m.attr_kind(m.constant_value(mask)?) else { return None };
    match *m.attr_kind(element) {
        AttrKind::Int(n, _) => Some(n != 0),
        AttrKind::Bool(truth) => Some(truth),
        _ => None,
    }
}
