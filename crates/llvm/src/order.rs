//! Of two integers the smaller or the larger, as a predicate says: one comparison decides, instead of both being there to choose from.
//!
//! ```text
//! select(p, max(x, y), min(x, y))  =>  select((x < y) ^ p, x, y)
//! select(p, min(x, y), max(x, y))  =>  select((x < y) ^ p, y, x)
//! x ^ (x ^ y)                      =>  y
//! ```
//!
//! A step of a sorting network says so in the language: an element's neighbour is the exclusive or of both, without its own.
//! The two results of a step share comparison and predicate.

use crate::builder::Builder;
use crate::program::{BinOp, IntPred, Op, Value};

/// Which of two integers it is, and the predicate of `x < y` for their kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extremum {
    Min(IntPred),
    Max(IntPred),
}

impl Builder<'_> {
    /// `y`, where `sum` is `x ^ y`.
    pub(crate) fn other_of(&self, x: Value, sum: Value) -> Option<Value> {
        let inst = self.inst_of(sum).filter(|inst| inst.op == Op::Bin(BinOp::Xor))?;
        match inst.args[..] {
            [a, b] if a == x => Some(b),
            [a, b] if b == x => Some(a),
            _ => None,
        }
    }

    fn extremum(&self, v: Value) -> Option<(Extremum, [Value; 2])> {
        let inst = self.inst_of(v)?;
        let Op::Intrinsic(name) = inst.op else { return None };
        let which = match self.intrinsic_name(name).split('.').nth(1)? {
            "smin" => Extremum::Min(IntPred::Slt),
            "smax" => Extremum::Max(IntPred::Slt),
            "umin" => Extremum::Min(IntPred::Ult),
            "umax" => Extremum::Max(IntPred::Ult),
            _ => return None,
        };
        let (x, y) = (inst.args[0], inst.args[1]);
        Some((which, if x.0 <= y.0 { [x, y] } else { [y, x] }))
    }

    /// `cond ? a : b` where these are the two extrema of two integers.
    pub(crate) fn select_extremum(&mut self, cond: Value, a: Value, b: Value) -> Option<Value> {
        use Extremum::{Max, Min};
        let ((a, [x, y]), (b, others)) = (self.extremum(a)?, self.extremum(b)?);
        if others != [x, y] {
            return None;
        }
        let (less, larger) = match (a, b) {
            (Max(less), Min(same)) if less == same => (less, true),
            (Min(less), Max(same)) if less == same => (less, false),
            _ => return None,
        };
        // Where one of a pair asks for the larger the other asks by `not p`.
        let (cond, larger) = match self.inst_of(cond).map(|inst| (inst.op, &inst.args[..])) {
            Some((Op::Bin(BinOp::Xor), &[p, ones])) if self.as_const(ones).is_some() => (p, !larger),
            _ => (cond, larger),
        };
        let first = self.icmp(less, x, y);
        let first = self.xor(first, cond);
        Some(if larger { self.select(first, x, y) } else { self.select(first, y, x) })
    }
}
