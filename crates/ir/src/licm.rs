//! Loop-invariant code motion: what a loop computes the same in every iteration is computed before it.
//!
//! ```text
//! scf.for %i = ... {                              %0 = arith.muli %n, %m : i32
//!   %0 = arith.muli %n, %m : i32            =>    scf.for %i = ... {
//!   use(%0, %i)                                     use(%0, %i)
//! ```
//!
//! Only operations without effects that cannot fault are moved, since the loop may not run at all; loads stay. Inner
//! loops come first, so that what leaves an inner loop can leave the outer one too.

use crate::diagnostic::Diagnostic;
use crate::effects::is_speculatable;
use crate::entity::{Block, Op};
use crate::flow::is_loop;
use crate::module::{Module, ValueDef};
use crate::opdef::Trait;

/// On a loop: everything stays inside (`tl.range(…, disable_licm=True)`).
pub const DISABLED: &str = "tt.disable_licm";

/// Moves loop-invariant operations out of the loops of a module.
///
/// # Errors
/// None; the signature is that of every pass.
pub fn run(module: &mut Module) -> Result<(), Diagnostic> {
    let mut loops = module.all_ops(module.root());
    loops.retain(|&op| is_loop(module, op) && module.op_attr(op, DISABLED).is_none());
    for &op in loops.iter().rev() {
        for i in 0..module.regions(op).len() {
            let region = module.regions(op)[i];
            // The second region of a while runs under its condition, but what is moved is safe to run anyway.
            for j in 0..module.region_blocks(region).len() {
                let block = module.region_blocks(region)[j];
                hoist(module, op, block);
            }
        }
    }
    Ok(())
}

fn hoist(module: &mut Module, parent: Op, block: Block) {
    let mut next = module.first_op(block);
    while let Some(op) = next {
        next = module.next_op(op);
        if module.has_trait(op, Trait::Terminator)
            || !module.regions(op).is_empty()
            || !is_speculatable(module, op)
        {
            continue;
        }
        let invariant = module.operands(op).iter().all(|&v| {
            let within = match module.value_def(v) {
                ValueDef::Result(d, _) => Some(d),
                ValueDef::Argument(b, _) => module.block_parent_op(b),
            };
            // An argument of one of the loop's own blocks belongs to the loop itself.
            within.is_some_and(|d| !module.is_ancestor(parent, d))
        });
        if invariant {
            module.move_before(op, parent);
        }
    }
}
