//! Between which numbers an integer of a kernel lies.
//!
//! Programs and their counts are not negative, loops run between their bounds, and what is promised holds ([`promises`]). Sums and products are those
//! of whole numbers, as in [`affine`](crate::analysis::affine): this is an analysis of addresses and masks, where nothing overflows.
//!
//! ```text
//! %k in scf.for %k = 0 to (%n + 31) / 32      =>  0 ..= 2^26 - 2
//! %r = tt.get_program_id x * 128              =>  0 ..= 2^31 - 1
//! ```

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{arith, scf, tt};
use tilewright_ir::{Module, Op, Opcode, Value, launch};

use crate::analysis::affine::{Affine, Poly};
use crate::analysis::promises::{self, Promises};

/// The least and the greatest number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// The least.
    pub low: i128,
    /// The greatest.
    pub high: i128,
}

/// All numbers of so many bits.
pub(crate) const fn of_bits(bits: u32) -> Interval {
    Interval { low: -(1 << (bits - 1)), high: (1 << (bits - 1)) - 1 }
}

impl Interval {
    /// One number.
    pub const fn number(n: i64) -> Self {
        Interval { low: n as i128, high: n as i128 }
    }

    /// Whether all of it are numbers of 32 bits.
    pub fn fits(self) -> bool {
        let all = of_bits(32);
        all.low <= self.low && self.high <= all.high
    }

    fn plus(self, o: Self) -> Self {
        Interval { low: self.low.saturating_add(o.low), high: self.high.saturating_add(o.high) }
    }

    fn times(self, o: Self) -> Self {
        let all = [self.low, self.high].map(|a| [o.low, o.high].map(|b| a.saturating_mul(b)));
        let all = all.concat();
        Interval {
            low: all.iter().copied().min().unwrap_or_default(),
            high: all.iter().copied().max().unwrap_or_default(),
        }
    }

    fn join(self, o: Self) -> Self {
        Interval { low: self.low.min(o.low), high: self.high.max(o.high) }
    }

    /// What both know; `self` where that is nothing.
    fn meet(self, o: Self) -> Self {
        let both = Interval { low: self.low.max(o.low), high: self.high.min(o.high) };
        if both.low <= both.high { both } else { self }
    }

    /// Quotients, rounded to zero or downwards, by numbers above 0.
    fn divided(self, by: Self) -> Self {
        // (Downwards is at most one less.)
        let all = [self.low, self.high].map(|a| [by.low, by.high].map(|b| a.div_euclid(b)));
        let all = all.concat();
        Interval {
            low: all.iter().copied().min().unwrap_or_default(),
            high: all.iter().copied().max().unwrap_or_default(),
        }
    }
}

/// Finds the intervals of a module's scalars, which does not change meanwhile.
#[derive(Debug)]
pub struct Intervals<'m> {
    m: &'m Module,
    affine: &'m Affine<'m>,
    /// What `tl.assume` says of sums of products.
    assumed: Vec<(Poly, Interval)>,
    known: RefCell<FxHashMap<Value, Option<Interval>>>,
}

impl<'m> Intervals<'m> {
    /// Of this module.
    pub fn new(m: &'m Module, affine: &'m Affine<'m>, promises: &Promises) -> Self {
        Intervals { m, affine, assumed: promises.assumed(m, affine), known: RefCell::default() }
    }

    /// Of a sum of products.
    pub fn of(&self, poly: &Poly) -> Interval {
        let mut found = self.sum(poly);
        let behind = Interval { low: 1, high: i128::from(i32::MAX) };
        let programs = promises::programs_behind(self.m, poly).into_iter().map(|part| (part, behind));
        let programs: Vec<_> = programs.collect();
        for (part, interval) in self.assumed.iter().chain(&programs) {
            let Some(times) = poly.how_many(part) else { continue };
            let left = self.sum(&poly.plus(part, times.wrapping_neg()));
            found = found.meet(left.plus(interval.times(Interval::number(times))));
        }
        found
    }

    fn sum(&self, poly: &Poly) -> Interval {
        let mut sum = Interval::number(0);
        for (product, coefficient) in poly.terms() {
            let factors = product.iter().map(|&v| self.leaf(v));
            sum = sum.plus(factors.fold(Interval::number(coefficient), Interval::times));
        }
        sum
    }

    /// Of a scalar.
    fn leaf(&self, value: Value) -> Interval {
        let all = of_bits(self.m.bits(self.m.value_type(value)).clamp(1, 64));
        let known = self.known.borrow().get(&value).copied();
        if let Some(known) = known {
            return known.unwrap_or(all);
        }
        // A value that is asked for while it is looked for is any.
        self.known.borrow_mut().insert(value, None);
        let mut found = all.meet(self.find(value).unwrap_or(all));
        let itself = Poly::leaf(value);
        for (_, interval) in self.assumed.iter().filter(|(poly, _)| *poly == itself) {
            found = found.meet(*interval);
        }
        self.known.borrow_mut().insert(value, Some(found));
        found
    }

    fn find(&self, value: Value) -> Option<Interval> {
        let poly = self.affine.scalar(value);
        if poly != Poly::leaf(value) {
            return Some(self.of(&poly));
        }
        match self.m.defining_op(value) {
            Some(op) => self.result(op),
            None => self.argument(value),
        }
    }

    fn argument(&self, arg: Value) -> Option<Interval> {
        let m = self.m;
        let block = m.value_block(arg)?;
        let l = scf::For::cast(m, m.block_parent_op(block)?)?;
        if m.block_args(block).first() != Some(&arg) {
            return None;
        }
        let [low, high] = [l.lower_bound(m), l.upper_bound(m)].map(|v| self.of(&self.affine.scalar(v)));
        Some(Interval { low: low.low, high: high.high.saturating_sub(1).max(low.low) })
    }

    fn result(&self, op: Op) -> Option<Interval> {
        use arith::Kind as A;
        let m = self.m;
        let operand = |i: usize| self.of(&self.affine.scalar(m.operands(op)[i]));
        let most = i128::from(i32::MAX);
        Some(match m.opcode(op)? {
            Opcode::Tt(tt::Kind::GetProgramId) => Interval { low: 0, high: most - 1 },
            Opcode::Tt(tt::Kind::GetNumPrograms) => Interval { low: 1, high: most },
            Opcode::Arith(A::Divsi | A::Floordivsi) => {
                let (x, by) = (operand(0), operand(1));
                if by.low > 0 {
                    // Rounded to zero, negative ones are greater by one at most.
                    let q = x.divided(by);
                    Interval { high: q.high.max(if x.low < 0 { 0 } else { q.high }), ..q }
                } else if x.low >= 0
                    && by.high > 0
                    && (by.low == 0 || launch::trusts_divisor(m, m.operands(op)[1]))
                {
                    // By 0 it is an error, and what is known at run time only is taken for positive, as `analysis::sign` does.
                    Interval { low: 0, high: x.high }
                } else {
                    return None;
                }
            }
            Opcode::Arith(A::Remsi) if operand(0).low >= 0 => {
                let (x, by) = (operand(0), operand(1));
                let below = if by.low > 0 { by.high - 1 } else { x.high };
                Interval { low: 0, high: x.high.min(below) }
            }
            Opcode::Arith(A::Andi) => {
                let mask =
                    [operand(0), operand(1)].into_iter().filter(|i| i.low >= 0).map(|i| i.high).min()?;
                Interval { low: 0, high: mask }
            }
            Opcode::Arith(A::Minsi) => {
                let (x, y) = (operand(0), operand(1));
                Interval { low: x.low.min(y.low), high: x.high.min(y.high) }
            }
            Opcode::Arith(A::Maxsi) => {
                let (x, y) = (operand(0), operand(1));
                Interval { low: x.low.max(y.low), high: x.high.max(y.high) }
            }
            Opcode::Arith(A::Select) => operand(1).join(operand(2)),
            Opcode::Arith(A::Extui) if m.bits(m.value_type(m.operands(op)[0])) < 64 => {
                let bits = m.bits(m.value_type(m.operands(op)[0]));
                Interval { low: 0, high: (1 << bits) - 1 }
            }
            Opcode::Arith(A::Extsi | A::IndexCast) => operand(0),
            _ => return None,
        })
    }
}
