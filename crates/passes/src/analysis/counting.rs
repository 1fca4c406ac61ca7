//! Whether a loop goes on, asked at a number that the type of its numbers may have no room for.
//!
//! A loop runs while its number is below its end. What asks at the number of a later iteration (a loop that is tested at its end, copies ahead) may ask at
//! one beyond the last of its type, which is a small one there:
//!
//! ```text
//! for i in range(0, n, 1024), n = 2^31 - 1: the last i is 2^31 - 1024, and i + 1024 is -2^31 in 32 bits, below n
//! ```
//!
//! Three ways to ask say the same of all numbers, and none of them costs an instruction in the loop:
//!
//! - `i + d < n` of signed numbers, where `n` is known to be so far from the last number that nothing overflows;
//! - `i + d < n` of unsigned ones, where neither `i` nor `n` is negative, as inside a loop that begins at 0 (elsewhere `n` is 0 where it is less);
//! - `i < n - d`, where the right side stands outside the loop, and is the first number of all where it would be less.

use tilewright_ir::dialect::arith::CmpIPredicate as P;
use tilewright_ir::dialect::{arith, scf};
use tilewright_ir::{Builder, Module, Op, Type, Value};

use crate::analysis::affine::Affine;
use crate::analysis::intervals::{Interval, Intervals};
use crate::analysis::promises::Promises;

/// A way to ask whether the iteration so many steps ahead is inside a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// The number ahead, signed, against the end.
    Signed,
    /// The number ahead, unsigned, against the end, which is not negative.
    Unsigned,
    /// The number of this iteration against an earlier end.
    Before,
}

/// What is known of a loop's numbers.
#[derive(Debug, Clone, Copy)]
pub struct Counting {
    /// The last number of the type.
    last: i128,
    /// The greatest that the end may be.
    end: i128,
    /// The greatest at which it may begin.
    first: i128,
    /// Whether that is no negative number, as it is where it is a number of programs times another.
    not_negative: bool,
    end_not_negative: bool,
    step: Option<i128>,
    /// Whether the number behind the last is the end: steps are a power of two, of which both bounds are multiples.
    exact: bool,
    /// Whether there is no second iteration.
    once: bool,
}

impl Counting {
    /// Of this loop, in a module with these promises.
    pub fn of(m: &Module, l: scf::For, promises: &Promises) -> Self {
        let (lower, upper) = (l.lower_bound(m), l.upper_bound(m));
        let last = (1 << (m.bits(m.value_type(upper)).clamp(1, 64) - 1)) - 1;
        let affine = Affine::new(m);
        let intervals = Intervals::new(m, &affine, promises);
        let known = |v: Value| match m.constant_int(v) {
            Some(n) => Interval::number(n),
            None => intervals.of(&affine.scalar(v)),
        };
        let greatest = |found: Interval| if found.fits() { found.high.min(last) } else { last };
        let (first, end) = (known(lower), known(upper));
        let step = m.constant_int(l.step(m));
        // (That holds of numbers that overflow, too.)
        let is_multiple = |v: Value, of: i64| match m.constant_int(v) {
            Some(n) => n % of == 0,
            None => affine.scalar(v).terms().all(|(_, times)| times % of == 0),
        };
        let exact = step.is_some_and(|step| {
            step == 1
                || step > 0 && step & (step - 1) == 0 && is_multiple(lower, step) && is_multiple(upper, step)
        });
        let once = step.is_some_and(|step| is_at_most_once(m, &affine, (lower, upper), step));
        Counting {
            last,
            end: greatest(end),
            first: greatest(first),
            not_negative: first.low >= 0,
            end_not_negative: end.low >= 0,
            step: step.map(i128::from),
            exact,
            once,
        }
    }

    /// Whether there is no second iteration, whatever the numbers are.
    pub fn is_at_most_once(&self) -> bool {
        self.once
    }

    /// How to ask at an iteration of which it is known that it runs.
    pub fn inside(&self, ahead: u32) -> Test {
        let ahead = i128::from(ahead);
        match self.step {
            _ if ahead == 1 && self.exact => Test::Signed,
            // What is inside is less than the end by one at least.
            Some(step) if self.end - 1 + ahead * step <= self.last => Test::Signed,
            Some(step) if self.not_negative && ahead * step <= self.last => Test::Unsigned,
            None if self.not_negative && ahead == 1 => Test::Unsigned,
            _ => Test::Before,
        }
    }

    /// Whether the iteration `next`, so many steps ahead of the first one, which may not run, is inside.
    pub fn is_inside_from_first(
        &self,
        b: &mut Builder<'_>,
        ([lower, upper, step], next): ([Value; 3], Value),
        ahead: u32,
    ) -> Value {
        let ty = b.module.value_type(upper);
        let less =
            |b: &mut Builder<'_>, x, y, how| arith::Cmpi::build(b, x, y, how, Type::I1).result(b.module);
        match self.step.map(|step| i128::from(ahead) * step) {
            _ if self.fits_from_first(ahead) => less(b, next, upper, P::Slt),
            Some(far) if self.not_negative && far <= self.last => {
                let end = match self.end_not_negative {
                    true => upper,
                    false => {
                        let zero = b.int(0, ty);
                        arith::Maxsi::build(b, upper, zero).result(b.module)
                    }
                };
                less(b, next, end, P::Ult)
            }
            _ => {
                let end = end_before(b, upper, step, ahead);
                less(b, lower, end, P::Slt)
            }
        }
    }

    /// Whether the number of an iteration so many steps ahead of the first one is one of the type.
    fn fits_from_first(&self, ahead: u32) -> bool {
        ahead == 0 || self.step.is_some_and(|step| self.first + i128::from(ahead) * step <= self.last)
    }

    /// Whether the iteration `next`, so many steps ahead of `now`, which is inside, is inside, too. What is asked for is made before the loop `l`.
    pub fn is_inside(
        &self,
        m: &mut Module,
        (l, anchor): (scf::For, Op),
        (now, next): (Value, Value),
        ahead: u32,
    ) -> Value {
        let (upper, step) = (l.upper_bound(m), l.step(m));
        let (number, end, how) = match self.inside(ahead) {
            Test::Signed => (next, upper, P::Slt),
            Test::Unsigned => (next, upper, P::Ult),
            Test::Before => (now, end_before(&mut Builder::before(m, l.0), upper, step, ahead), P::Slt),
        };
        let mut b = Builder::before(m, anchor);
        arith::Cmpi::build(&mut b, number, end, how, Type::I1).result(b.module)
    }

    /// The number of the second iteration where there is a first one, and the end where there is no second one.
    pub fn second(&self, b: &mut Builder<'_>, [lower, upper, step]: [Value; 3]) -> Value {
        let next = |b: &mut Builder<'_>, step| arith::Addi::build(b, lower, step).result(b.module);
        match self.inside(1) {
            _ if self.fits_from_first(1) => next(b, step),
            Test::Signed => next(b, step),
            Test::Unsigned => {
                let next = next(b, step);
                arith::Minui::build(b, next, upper).result(b.module)
            }
            Test::Before => {
                // (How far it is to the end is an unsigned number.)
                let left = arith::Subi::build(b, upper, lower).result(b.module);
                let step = arith::Minui::build(b, step, left).result(b.module);
                next(b, step)
            }
        }
    }
}

/// Whether a loop ends at its first number and a step at most: that may overflow, and be below the first one then. So does one over what blocks leave of a number, from
/// `n // block * block` to `n`.
fn is_at_most_once(m: &Module, affine: &Affine<'_>, (lower, upper): (Value, Value), step: i64) -> bool {
    let whole =
        arith::Muli::of(m, lower).and_then(|mul| Some((arith::Divsi::of(m, mul.lhs(m))?, mul.rhs(m))));
    let is_rest = whole.is_some_and(|(blocks, block)| {
        let block = m.constant_int(block).filter(|block| (1..=step).contains(block));
        block.is_some() && m.constant_int(blocks.rhs(m)) == block && blocks.lhs(m) == upper
    });
    if is_rest {
        return true;
    }
    // Sums of wider numbers may be of narrower ones that have overflowed.
    if m.bits(m.value_type(upper)) > 32 {
        return false;
    }
    let far = affine.scalar(upper).plus(&affine.scalar(lower), -1).constant();
    far.is_some_and(|far| (0..=step).contains(&far))
        || arith::Minsi::of(m, upper).is_some_and(|min| {
            [min.lhs(m), min.rhs(m)].iter().any(|&end| is_at_most_once(m, affine, (lower, end), step))
        })
}

/// `upper - ahead * step`, and the first number of the type where that is less.
fn end_before(b: &mut Builder<'_>, upper: Value, step: Value, ahead: u32) -> Value {
    let ty = b.module.value_type(upper);
    let bits = b.module.bits(ty).clamp(1, 64);
    let first = -(1_i128 << (bits - 1));
    let far = b.module.constant_int(step).map(|step| i128::from(step) * i128::from(ahead));
    // In one step where that is a number of the type.
    let (step, times) = match far.filter(|&far| far < -first) {
        Some(far) => (b.int(far as i64, ty), 1),
        None => (step, ahead),
    };
    let first = b.int(first as i64, ty);
    let least = arith::Addi::build(b, first, step).result(b.module);
    (0..times).fold(upper, |upper, _| {
        let upper = arith::Maxsi::build(b, upper, least).result(b.module);
        arith::Subi::build(b, upper, step).result(b.module)
    })
}
