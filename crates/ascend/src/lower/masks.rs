//! Masks of loads and stores as the elements that they leave along each dimension: from one on, and up to one.
//!
//! The engines that copy take blocks: a mask is what is in front of an end along each dimension, which is how kernels write tails, and behind a beginning.
//!
//! ```text
//! %m = arith.cmpi slt, (tt.splat %first) + tt.make_range, (tt.splat %n) : tensor<64xi32>      =>  [0 .. clamp(%n - %first, 0, 64)]
//! ```

use tilewright_ir::dialect::{arith, tt};
use tilewright_ir::{AttrKind, Builder, Diagnostic, Module, Op, Opcode, Type, Value};
use tilewright_passes::analysis::affine::{Affine, Linear, Poly};
use tilewright_passes::sums;

use super::unsupported;

/// The elements along a dimension, each an `i64`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span {
    /// The first one; none for 0.
    pub first: Option<Value>,
    /// The one behind the last; none for where they end.
    pub end: Option<Value>,
}

/// The elements along each dimension.
type Spans = Vec<Span>;

/// Takes apart the mask of `op`; numbers are computed in front of it.
///
/// # Errors
/// Masks that are not the first elements along each dimension.
pub(super) fn of(module: &mut Module, op: Op, mask: Value) -> Result<Spans, Diagnostic> {
    let mut masks = Masks { b: Builder::before(module, op), op };
    masks.spans(mask)
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
            .note("its engines copy blocks: compare indices along each dimension with the first one that is there and the first one that is not, `i >= first` and `i < n`")
    }

    fn shape(&self, value: Value) -> Vec<u32> {
        let m = self.module();
        m.shape(m.value_type(value)).unwrap_or(&[]).to_vec()
    }

    fn spans(&mut self, mask: Value) -> Result<Spans, Diagnostic> {
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
                let mut found = self.spans(operands[0])?;
                let from = self.shape(operands[0]);
                for d in (0..shape.len()).filter(|&d| from[d] != shape[d]) {
                    found[d] = self.repeated(found[d], shape[d]);
                }
                Ok(found)
            }
            Some(Opcode::Tt(tt::Kind::ExpandDims)) => {
                let axis = tt::ExpandDims(op).axis(m) as usize;
                let mut found = self.spans(operands[0])?;
                found.insert(axis, Span::default());
                Ok(found)
            }
            Some(Opcode::Arith(arith::Kind::Andi)) => {
                let (x, y) = (self.spans(operands[0])?, self.spans(operands[1])?);
                Ok(x.into_iter().zip(y).map(|(x, y)| self.both(x, y)).collect())
            }
            Some(Opcode::Arith(arith::Kind::Cmpi)) => self.compared(mask, arith::Cmpi(op)),
            _ => Err(self.error(mask)),
        }
    }

    /// What is in both of two spans.
    fn both(&mut self, x: Span, y: Span) -> Span {
        let b = &mut self.b;
        let first = match (x.first, y.first) {
            (Some(x), Some(y)) => Some(arith::Maxsi::build(b, x, y).result(b.module)),
            (x, y) => x.or(y),
        };
        let end = match (x.end, y.end) {
            (Some(x), Some(y)) => Some(arith::Minsi::build(b, x, y).result(b.module)),
            (x, y) => x.or(y),
        };
        Span { first, end }
    }

    /// What is left along a dimension of which the only element is repeated.
    fn repeated(&mut self, span: Span, by: u32) -> Span {
        Span { first: span.first.map(|n| self.times(n, by)), end: span.end.map(|n| self.times(n, by)) }
    }

    /// `i < n` or `i >= n`, in any of the ways to write it.
    fn compared(&mut self, mask: Value, op: arith::Cmpi) -> Result<Spans, Diagnostic> {
        use arith::CmpIPredicate as P;
        let m = self.module();
        let operands = m.operands(op.0).to_vec();
        let (less, more, equal) = match op.predicate(m) {
            P::Slt => (0, 1, false),
            P::Sle => (0, 1, true),
            P::Sgt => (1, 0, false),
            P::Sge => (1, 0, true),
            P::Ult => return self.inside(mask, operands[0], operands[1]),
            _ => return Err(self.error(mask)),
        };
        let affine = Affine::of_indices(m);
        let (Ok(less), Ok(more)) = (affine.of(operands[less]), affine.of(operands[more])) else {
            return Err(self.error(mask));
        };
        let shape = self.shape(mask);
        let along = |linear: &Linear| -> Option<Vec<usize>> {
            let dims: Vec<usize> = (0..shape.len()).filter(|&d| !linear.strides[d].is_zero()).collect();
            dims.iter().all(|&d| linear.strides[d].constant() == Some(1)).then_some(dims)
        };
        let (Some(below), Some(above)) = (along(&less), along(&more)) else { return Err(self.error(mask)) };
        // `less < more`: index i is below `more - less`, or not below `less - more`, one more where they may not be equal.
        let apart = more.offset.plus(&less.offset, -1);
        let equal = i64::from(equal);
        let end = apart.plus(&Poly::number(equal), 1);
        let first = Poly::number(1 - equal).plus(&apart, -1);
        match (&below[..], &above[..]) {
            ([], []) => {
                let some = self.clamped(&end, 1);
                Ok(along_first(Some(self.times(some, shape[0])), &shape))
            }
            (&[d], []) => {
                let mut found = vec![Span::default(); shape.len()];
                found[d].end = Some(self.clamped(&end, shape[d]));
                Ok(found)
            }
            ([], &[d]) => {
                let mut found = vec![Span::default(); shape.len()];
                found[d].first = Some(self.clamped(&first, shape[d]));
                Ok(found)
            }
            _ => Err(self.error(mask)),
        }
    }

    /// `0 <= i < n`, as descriptors have it: both are no numbers without a sign that have the highest bit.
    fn inside(&mut self, mask: Value, index: Value, end: Value) -> Result<Spans, Diagnostic> {
        let affine = Affine::of_indices(self.module());
        let (Ok(index), Ok(end)) = (affine.of(index), affine.of(end)) else { return Err(self.error(mask)) };
        let shape = self.shape(mask);
        let along: Vec<usize> = (0..shape.len()).filter(|&d| !index.strides[d].is_zero()).collect();
        let [d] = along[..] else { return Err(self.error(mask)) };
        if !end.is_uniform() || index.strides[d].constant() != Some(1) {
            return Err(self.error(mask));
        }
        let mut found = vec![Span::default(); shape.len()];
        found[d].first = Some(self.clamped(&Poly::zero().plus(&index.offset, -1), shape[d]));
        found[d].end = Some(self.clamped(&end.offset.plus(&index.offset, -1), shape[d]));
        Ok(found)
    }

    fn clamped(&mut self, number: &Poly, most: u32) -> Value {
        let b = &mut self.b;
        let number = sums::build(b, number, Type::I64);
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
fn along_first(end: Option<Value>, shape: &[u32]) -> Spans {
    let mut found = vec![Span::default(); shape.len()];
    found[0].end = end;
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
