//! What one branch alone wants is computed in it.
//!
//! ```text
//! %p = tt.addptr %a, %b                  scf.if %c {
//! scf.if %c {                              use(%x)
//!   use(%x)                        =>    } else {
//! } else {                                 %p = tt.addptr %a, %b
//!   tt.store %p, %x                        tt.store %p, %x
//! }                                      }
//! ```

use tilewright_ir::dialect::scf;
use tilewright_ir::effects::is_pure;
use tilewright_ir::{Block, Module, Op, Trait};

/// Moves pure operations among these, parents first, to the branches of `scf.if` where all that uses them stands.
pub(crate) fn sink(m: &mut Module, ops: &[Op]) {
    for &op in ops.iter().rev() {
        let moves = is_pure(m, op) && m.regions(op).is_empty() && !m.has_trait(op, Trait::Terminator);
        if let Some(first) = moves.then(|| first_in_branch(m, op)).flatten() {
            m.move_before(op, first);
        }
    }
}

/// Within the innermost branch that holds all users of an operation, the first that is one or holds one.
fn first_in_branch(m: &Module, op: Op) -> Option<Op> {
    let users: Vec<Op> = m.results(op).iter().flat_map(|&r| m.uses(r)).map(|u| u.op).collect();
    let home = m.parent_block(op)?;
    let mut block = home;
    while let Some(inner) = common_branch(m, block, &users) {
        block = inner;
    }
    let within = users.iter().filter_map(|&user| m.ancestor_in_block(block, user));
    let first = within.reduce(|a, b| if m.is_before(b, a) { b } else { a })?;
    (block != home).then_some(first)
}

/// The branch of an `scf.if` of a block in which all these operations stand.
fn common_branch(m: &Module, block: Block, ops: &[Op]) -> Option<Block> {
    let mut found = None;
    for &op in ops {
        let branch = scf::If::cast(m, m.ancestor_in_block(block, op)?)?;
        let regions = [branch.then_region(m), branch.else_region(m)];
        let blocks = regions.iter().flat_map(|&region| m.region_blocks(region));
        let inner = blocks.copied().find(|&inner| m.ancestor_in_block(inner, op).is_some())?;
        if *found.get_or_insert(inner) != inner {
            return None;
        }
    }
    found
}
