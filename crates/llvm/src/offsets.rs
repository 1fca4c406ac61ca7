//! Integers that are one variable plus different offsets: the indices that a thread's elements carry through a reduction.
//!
//! ```text
//! select(p, x + 1, x + 5)              => x + select(p, 1, 5)
//! x + select(p, 0, 1) < x + select(q, 4, 5)  => true        (where x + 5 cannot overflow)
//! ```
//!
//! With both an `argmax` within a thread selects constants, compares no indices, and adds `x` once at the end.

use crate::builder::Builder;
use crate::fold;
use crate::program::{BinOp, IntPred, Op, Value};
use crate::ty::Ty;

/// How many selections deep a range is followed.
const DEPTH: u32 = 6;

impl Builder<'_> {
    /// The operands of a sum.
    fn as_sum(&self, v: Value) -> Option<(Value, Value)> {
        let inst = self.inst_of(v)?;
        (inst.op == Op::Bin(BinOp::Add)).then(|| (inst.args[0], inst.args[1]))
    }

    /// The variable that two integers have in common, and what each adds to it.
    fn common_base(&mut self, a: Value, b: Value) -> Option<(Value, Value, Value)> {
        let zero = self.zero(self.ty(a));
        match (self.as_sum(a), self.as_sum(b)) {
            (Some((x, c)), Some((y, d))) if x == y => Some((x, c, d)),
            (Some((x, c)), _) if x == b => Some((x, c, zero)),
            (_, Some((y, d))) if y == a => Some((y, zero, d)),
            _ => None,
        }
    }

    /// `cond ? x + c : x + d` as `x + (cond ? c : d)`.
    pub(crate) fn select_offsets(&mut self, cond: Value, a: Value, b: Value) -> Option<Value> {
        let ty = self.ty(a);
        if ty.lanes != 1 || !matches!(ty, Ty::I32 | Ty::I64) {
            return None;
        }
        let (x, c, d) = self.common_base(a, b)?;
        self.offset_range(c, DEPTH)?;
        self.offset_range(d, DEPTH)?;
        let offset = self.select(cond, c, d);
        Some(self.add(x, offset))
    }

    /// Decides a signed comparison of two sums of one variable by the ranges of what is added.
    pub(crate) fn compare_offsets(&mut self, pred: IntPred, a: Value, b: Value) -> Option<bool> {
        use IntPred::{Sge, Sgt, Sle, Slt};
        let ty = self.ty(a);
        if ty.lanes != 1 || !matches!(ty, Ty::I32 | Ty::I64) || !matches!(pred, Slt | Sle | Sgt | Sge) {
            return None;
        }
        let (x, c, d) = self.common_base(a, b)?;
        let ((c_min, c_max), (d_min, d_max)) = (self.offset_range(c, DEPTH)?, self.offset_range(d, DEPTH)?);
        // The sums must stay non-negative and in range for the order of the offsets to be theirs.
        let largest = (!self.known_zeros(x) & fold::ones(ty.bits())) as i128;
        if c_min.min(d_min) < 0 || largest + i128::from(c_max.max(d_max)) >= 1 << (ty.bits() - 1) {
            return None;
        }
        match pred {
            Slt | Sge if c_max < d_min => Some(pred == Slt),
            Slt | Sge if c_min >= d_max => Some(pred == Sge),
            Sle | Sgt if c_max <= d_min => Some(pred == Sle),
            Sle | Sgt if c_min > d_max => Some(pred == Sgt),
            _ => None,
        }
    }

    /// The least and greatest of a constant or a selection of such.
    fn offset_range(&self, v: Value, depth: u32) -> Option<(i64, i64)> {
        if let Some(c) = self.as_const(v) {
            let c = fold::signed(c, self.ty(v).bits());
            return Some((c, c));
        }
        let inst = self.inst_of(v)?;
        if inst.op != Op::Select || depth == 0 {
            return None;
        }
        let (a, b) =
            (self.offset_range(inst.args[1], depth - 1)?, self.offset_range(inst.args[2], depth - 1)?);
        Some((a.0.min(b.0), a.1.max(b.1)))
    }
}
