//! What is done while a loop's last dots are under way, behind it.
//!
//! Between two tiles of a persistent kernel the tensor cores have nothing to do: the result of one is converted and stored, then
//! the next one's begins. What does not need the result is done before the wait for it:
//!
//! - scalars that are computed before the loop and used only behind it (where a tile's result goes: divisions);
//! - the wait until the last tile's store has read the buffer that this tile's result goes to. For warps that only compute
//!   (`ttg.warp_specialize`) so is the barrier which tells the others, at which warp groups that are not in step would lose
//!   time; elsewhere the barrier before the next tile's copies serves that too.
//!
//! ```text
//! scf.for %tile = ... {                                   scf.for %tile = ... {
//!   %row = arith.divsi %tile, %n
//!   %r = scf.for ... { ... }                                %r = scf.for ... { ... }
//!                                                           %row = arith.divsi %tile, %n
//!                                                           ttng.async_tma_store_wait
//!                                                           ttg.barrier
//!   %w = ttng.warp_group_dot_wait %r                   =>   %w = ttng.warp_group_dot_wait %r
//!   %h = arith.truncf %w                                    %h = arith.truncf %w
//!   ttng.async_tma_store_wait
//!   ttg.local_store %h, %buffer                             ttg.local_store %h, %buffer
//!   ttng.async_tma_copy_local_to_global %c[%row]            ttng.async_tma_copy_local_to_global %c[%row]
//! }                                                       }
//! ```

use tilewright_ir::dialect::{ttg, ttng};
use tilewright_ir::effects::is_pure;
use tilewright_ir::{Builder, Module, Op, Opcode, Value};

use crate::analysis::scope;

/// Moves what it can between the loop `l` and the wait for its dots, which follows it.
pub(crate) fn fill(module: &mut Module, l: Op) {
    let Some(wait) = module.next_op(l).filter(|&op| ttng::WarpGroupDotWait::cast(module, op).is_some())
    else {
        return;
    };
    scalars(module, l, wait);
    store_wait(module, wait);
}

/// Moves the scalars before `l` that are used only behind it to before `wait`.
fn scalars(module: &mut Module, l: Op, wait: Op) {
    let Some(block) = module.parent_block(l) else { return };
    let before: Vec<Op> = module.block_ops(block).take_while(|&op| op != l).collect();
    let mut anchor = wait;
    for op in before.into_iter().rev() {
        let scalar = |&v: &Value| !module.is_tensor(module.value_type(v)) && module.constant_int(v).is_none();
        let used_behind = |&v: &Value| {
            let behind = |op| module.ancestor_in_block(block, op).is_some_and(|at| module.is_before(l, at));
            !module.is_unused(v) && module.uses(v).iter().all(|u| behind(u.op))
        };
        let results = module.results(op);
        if !results.is_empty()
            && is_pure(module, op)
            && module.regions(op).is_empty()
            && results.iter().all(|v| scalar(v) && used_behind(v))
        {
            module.move_before(op, anchor);
            anchor = op;
        }
    }
}

/// Moves the wait for stores behind `wait` to before it, if no store is issued between.
fn store_wait(module: &mut Module, wait: Op) {
    let mut at = module.next_op(wait);
    while let Some(op) = at {
        let issues = matches!(
            module.opcode(op),
            Some(Opcode::Ttng(ttng::Kind::AsyncTmaCopyLocalToGlobal | ttng::Kind::AsyncTmaReduce))
        );
        if issues || !module.regions(op).is_empty() {
            return;
        }
        if ttng::TmaStoreWait::cast(module, op).is_some() {
            module.move_before(op, wait);
            if !scope::enclosing(module, op).is_empty() {
                ttg::Barrier::build(&mut Builder::before(module, wait));
            }
            return;
        }
        at = module.next_op(op);
    }
}
