//! How values come into and out of the regions of an operation: what makes it a loop, a branch or a scope.
//!
//! Declarations with regions state it as a list of [`Flow`]s, by which the verifier compares types, encodings spread
//! through loops and branches, and tiles that a loop carries are split.
//!
//! ```text
//! scf.for     init -> body (after the induction variable)     end of body -> body, results     init -> results
//! scf.if      end of then -> results                           end of else -> results
//! scf.while   init -> before      end of before -> after, results      end of after -> before
//! ```

use smallvec::SmallVec;

use crate::builder::Builder;
use crate::dialect::scf;
use crate::entity::{Block, Op, Region, Value};
use crate::module::{Module, ValueDef};

/// Where values stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In an operand group of the operation.
    Operands(&'static str),
    /// What the terminator of a region has, but for the first so many operands.
    End(usize, usize),
    /// The arguments of a region, but for the first so many.
    Entry(usize, usize),
    /// The arguments of each region of the operation that a region holds.
    Nested(usize),
    /// The operation's results.
    Results,
}

/// Values that are passed on, one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Where from.
    pub from: Place,
    /// Where to.
    pub to: Place,
}

/// A [`Flow`].
pub const fn pass(from: Place, to: Place) -> Flow {
    Flow { from, to }
}

/// A [`Flow`] of one operation: operands of `user`, from `first` on, become `to`.
#[derive(Debug, Clone, Copy)]
pub struct Edge<'m> {
    /// The operation, or a terminator in it.
    pub user: Op,
    /// The first operand.
    pub first: usize,
    /// What they become.
    pub to: &'m [Value],
    /// Whether they leave a region for the operation's results.
    pub leaves: bool,
}

impl<'m> Edge<'m> {
    /// What is passed on.
    pub fn from(&self, m: &'m Module) -> &'m [Value] {
        m.operands(self.user).get(self.first..self.first + self.to.len()).unwrap_or(&[])
    }

    /// What operand `index` of `user` becomes.
    pub fn target(&self, user: Op, index: usize) -> Option<Value> {
        (user == self.user).then(|| self.to.get(index.checked_sub(self.first)?).copied()).flatten()
    }
}

fn only_block(m: &Module, op: Op, region: usize) -> Option<Block> {
    m.regions(op).get(region).and_then(|&r| m.region_blocks(r).first().copied())
}

/// How an operation passes values on.
pub fn edges(m: &Module, op: Op) -> SmallVec<[Edge<'_>; 4]> {
    let mut out = SmallVec::new();
    let Some(def) = m.def(op) else { return out };
    for flow in def.flow {
        let (user, first) = match flow.from {
            Place::Operands(name) => {
                let group = def.group(name).unwrap_or(0);
                (op, (0..group).map(|g| m.operand_group(op, g).len()).sum())
            }
            Place::End(region, skip) => {
                // A branch may be missing.
                let Some(end) = only_block(m, op, region).and_then(|b| m.last_op(b)) else { continue };
                (end, skip)
            }
            _ => continue,
        };
        let leaves = matches!(flow.from, Place::End(..)) && flow.to == Place::Results;
        match flow.to {
            Place::Results => out.push(Edge { user, first, to: m.results(op), leaves }),
            Place::Entry(region, skip) => {
                if let Some(block) = only_block(m, op, region) {
                    let to = m.block_args(block).get(skip..).unwrap_or(&[]);
                    out.push(Edge { user, first, to, leaves });
                }
            }
            Place::Nested(region) => {
                let Some(inner) = only_block(m, op, region).and_then(|b| m.first_op(b)) else { continue };
                for i in 0..m.regions(inner).len() {
                    if let Some(block) = only_block(m, inner, i) {
                        out.push(Edge { user, first, to: m.block_args(block), leaves });
                    }
                }
            }
            _ => {}
        }
    }
    out
}

/// The edges that an operand of an operation may take: those of the operation, and if it ends a region those of what that
/// region belongs to.
pub fn edges_of_user(m: &Module, user: Op) -> SmallVec<[Edge<'_>; 4]> {
    let mut out = edges(m, user);
    if m.has_trait(user, crate::opdef::Trait::Terminator)
        && let Some(parent) = m.parent_op(user)
    {
        out.extend(edges(m, parent));
    }
    out.retain(|e| e.user == user);
    out
}

/// The edges that end in a value: a result of an operation with regions, or an argument of a region.
pub fn edges_into(m: &Module, value: Value) -> SmallVec<[(Edge<'_>, usize); 4]> {
    let op = match m.value_def(value) {
        ValueDef::Result(op, _) => Some(op),
        // What a nested operation's regions receive comes from around it.
        ValueDef::Argument(block, _) => m.block_parent_op(block).map(|p| match m.def(p) {
            Some(d) if d.flow.is_empty() => m.parent_op(p).unwrap_or(p),
            _ => p,
        }),
    };
    let all = op.map(|op| edges(m, op)).unwrap_or_default();
    all.into_iter().filter_map(|e| e.to.iter().position(|&v| v == value).map(|i| (e, i))).collect()
}

/// Whether an operation may run a region more than once: one region's end leads to a region's begin.
pub fn is_loop(m: &Module, op: Op) -> bool {
    m.def(op)
        .is_some_and(|d| d.flow.iter().any(|f| matches!((f.from, f.to), (Place::End(..), Place::Entry(..)))))
}

/// Whether an operation may run more than once in a program.
pub fn is_in_loop(m: &Module, op: Op) -> bool {
    std::iter::successors(m.parent_op(op), |&op| m.parent_op(op)).any(|op| is_loop(m, op))
}

/// The block of a region of an `scf.if`; where there is none, an empty one is made, which yields nothing.
pub fn branch_block(m: &mut Module, region: Region) -> Block {
    if let &[block] = m.region_blocks(region) {
        return block;
    }
    let block = m.append_block(region, &[]);
    scf::Yield::build(&mut Builder::at_end(m, block), &[]);
    block
}
