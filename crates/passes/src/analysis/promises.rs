//! What is promised of a kernel's numbers: what `tl.assume` says, and that no program has a number as large as their count.
//!
//! ```text
//! llvm.intr.assume (%n >= 1)                                                  =>  %n in 1 ..
//! (tt.get_num_programs x) - 1 - (tt.get_program_id x)                          =>  not negative
//! ```

use tilewright_ir::dialect::{arith, llvm, tt};
use tilewright_ir::{Module, Op, Value};

use crate::analysis::affine::{Affine, Poly};
use crate::analysis::intervals::{Interval, of_bits};

/// The promises of a module, which may change meanwhile: one that is gone is none any more.
#[derive(Debug, Default)]
pub struct Promises(Vec<Op>);

impl Promises {
    /// Of this module.
    pub fn of(m: &Module) -> Self {
        let mut ops = m.all_ops(m.root());
        ops.retain(|&op| llvm::Assume::cast(m, op).is_some());
        Promises(ops)
    }

    /// What `tl.assume` says of sums of products.
    pub(crate) fn assumed(&self, m: &Module, affine: &Affine<'_>) -> Vec<(Poly, Interval)> {
        let all = self.0.iter().filter(|&&op| !m.is_erased(op)).filter_map(|&op| assumption(m, op));
        // What is made of several numbers may be made elsewhere once more, where nothing is promised: not where it is from the beginning.
        let always = |value: Value| {
            let around = m.value_block(value).and_then(|block| m.block_parent_op(block));
            around.is_some_and(|op| tt::Func::cast(m, op).is_some())
        };
        let all = all.map(|(value, interval)| (value, affine.scalar(value), interval));
        let all = all.filter(|(value, poly, _)| *poly == Poly::leaf(*value) || always(*value));
        all.map(|(_, poly, interval)| (poly, interval)).collect()
    }
}

/// What is promised of a value, for the whole block in which it is made: that does not run without the promise.
fn assumption(m: &Module, op: Op) -> Option<(Value, Interval)> {
    use arith::CmpIPredicate as P;
    let compared = arith::Cmpi::of(m, llvm::Assume::cast(m, op)?.cond(m))?;
    let (mut x, mut y, mut predicate) = (compared.lhs(m), compared.rhs(m), compared.predicate(m));
    if m.constant_int(x).is_some() {
        (x, y) = (y, x);
        predicate = match predicate {
            P::Slt => P::Sgt,
            P::Sle => P::Sge,
            P::Sgt => P::Slt,
            P::Sge => P::Sle,
            other => other,
        };
    }
    let n = i128::from(m.constant_int(y)?);
    let all = of_bits(64);
    let interval = match predicate {
        P::Slt => Interval { high: n - 1, ..all },
        P::Sle => Interval { high: n, ..all },
        P::Sgt => Interval { low: n + 1, ..all },
        P::Sge => Interval { low: n, ..all },
        P::Eq => Interval { low: n, high: n },
        _ => return None,
    };
    (m.value_block(x) == m.parent_block(op)).then_some((x, interval))
}

/// The axis along which a value counts programs, and that along which it numbers them.
fn axes(m: &Module, value: Value) -> (Option<tt::ProgramDim>, Option<tt::ProgramDim>) {
    let Some(op) = m.defining_op(value) else { return (None, None) };
    let count = tt::GetNumPrograms::cast(m, op).map(|op| op.axis(m));
    (count, tt::GetProgramId::cast(m, op).map(|op| op.axis(m)))
}

/// How many programs there are along an axis less the number of one, for the counts and numbers of a sum: at least 1.
pub(crate) fn programs_behind(m: &Module, sum: &Poly) -> Vec<Poly> {
    let leaves: Vec<_> = sum.leaves().map(|v| (v, axes(m, v))).collect();
    let counts = leaves.iter().filter_map(|&(v, (count, _))| Some((v, count?)));
    let pairs = counts.flat_map(|(count, axis)| {
        let along = leaves.iter().filter(move |(_, (_, number))| *number == Some(axis));
        along.map(move |&(number, _)| Poly::leaf(count).plus(&Poly::leaf(number), -1))
    });
    pairs.collect()
}

/// Whether a number is that of a program as counted back from the last: `count - 1 - number`, or more.
pub(crate) fn is_counted_back(m: &Module, value: Value) -> bool {
    // Along which axis programs are counted, and which are counted off.
    let (mut counts, mut numbers, mut more) = (Vec::new(), Vec::new(), 0i128);
    let mut work = vec![(value, 1)];
    while let Some((v, times)) = work.pop() {
        let Some(op) = m.defining_op(v).filter(|_| counts.len() < 2 && numbers.len() < 2) else {
            return false;
        };
        let back = i128::from(arith::Subi::cast(m, op).is_some());
        if arith::Addi::cast(m, op).is_some() || back == 1 {
            work.extend([(m.operands(op)[0], times), (m.operands(op)[1], times * (1 - 2 * back))]);
        } else if let Some(n) = m.constant_int(v) {
            more += times * i128::from(n);
        } else {
            match (axes(m, v), times) {
                ((Some(count), _), 1) => counts.push(count),
                ((_, Some(number)), -1) => numbers.push(number),
                _ => return false,
            }
        }
    }
    counts.len() == 1 && counts == numbers && more >= -1
}
