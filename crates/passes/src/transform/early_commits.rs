//! What a kernel stores for other warps is handed over before it goes on with what these do not need.
//!
//! Values that stand before the commit of a slot that threads' stores fill, and that neither it nor what stands before it uses, are computed
//! behind it. The others wait for the slot, not for these.
//!
//! Why here: it is known which slots are filled by stores; products are not yet scheduled, which are waited for where their results are used.
//!
//! ```text
//! %p = math.exp2 %x                                   ttg.local_store %max, %slot
//! ttg.local_store %max, %slot                         ttg.ring_commit %ring[%i]
//! ttg.ring_commit %ring[%i]                      =>   %p = math.exp2 %x
//! %d = tt.dot %p, ...                                 %d = tt.dot %p, ...
//! ```

use tilewright_ir::dialect::ttg;
use tilewright_ir::effects::is_pure;
use tilewright_ir::{Diagnostic, Module, Op, Trait};

use crate::analysis::rings::{self, Ring, Transport};
use crate::pass::{Pass, Property};

/// The pass.
pub const PASS: Pass = Pass {
    name: "early-commits",
    summary: "commit what threads store for other warps before they go on",
    requires: &[Property::LaidOut],
    ensures: &[],
    run: |m, _, _| run(m),
};

/// Does so at each commit of the kernel's own rings.
///
/// # Errors
/// A ring that can't be, with its place.
pub fn run(module: &mut Module) -> Result<(), Diagnostic> {
    for op in module.all_ops(module.root()) {
        let Some(commit) = ttg::RingCommit::cast(module, op) else { continue };
        let Some(create) = rings::create_of(module, commit.ring(module)) else { continue };
        if rings::is_own(module, create) && Ring::of(module, create)?.has(Transport::Stores) {
            sink_behind(module, op);
        }
    }
    Ok(())
}

/// Moves what stands before an operation of its block, and is used behind it alone, behind it.
fn sink_behind(module: &mut Module, commit: Op) {
    let Some(block) = module.parent_block(commit) else { return };
    // Last ones first: what they are made of may go with them.
    let before: Vec<Op> = std::iter::successors(module.prev_op(commit), |&op| module.prev_op(op)).collect();
    for op in before {
        let tensors = module.results(op).iter().all(|&r| module.is_tensor(module.value_type(r)));
        let moves = tensors && is_pure(module, op) && !module.has_trait(op, Trait::Terminator);
        if !moves || module.results(op).is_empty() {
            continue;
        }
        let uses = module.results(op).iter().flat_map(|&r| module.uses(r));
        let late =
            |user: Op| module.ancestor_in_block(block, user).is_some_and(|at| module.is_before(commit, at));
        if uses.map(|u| u.op).all(late) {
            module.move_after(op, commit);
        }
    }
}
