//! Keeps the warps of a work group in step where they share the blocks that a loop prefetches.
//!
//! Each warp prefetches a part of the blocks that all will load. One that runs ahead would load what others have not brought yet, and one that stays behind what
//! has been replaced. So each says at the beginning of an iteration that it is there, and goes on; at the end it waits until all have been there: they are less than two
//! iterations apart. Such a split barrier orders no memory, and who waits at it waits for those that are behind alone.
//!
//! Why here: a work group has one barrier. What waits at it in between would be taken for another arrival, and which operations do is known when
//! scratch memory and barriers have their places.
//!
//! ```text
//! scf.for … {                              scf.for … {
//!   tt.descriptor_prefetch %d[%y, %k]        ttg.barrier_arrive
//!   …                               =>       tt.descriptor_prefetch %d[%y, %k]
//! }                                          …
//!                                            ttg.barrier_wait
//!                                          }
//! ```

use tilewright_ir::dialect::{scf, ttg};
use tilewright_ir::opdef::Access;
use tilewright_ir::{Builder, Module, Op, marks};
use tilewright_passes::pass::{Pass, Property};

/// The pass.
pub const PASS: Pass = Pass {
    name: "keep-in-step",
    summary: "let the warps of a work group be at most an iteration apart in loops that prefetch for all of them",
    requires: &[Property::BarriersPlaced],
    ensures: &[],
    run: |m, _, _| {
        run(m);
        Ok(())
    },
};

/// Does so in every loop whose warps prefetch for each other, inner ones first.
pub fn run(module: &mut Module) {
    let loops = module.all_ops(module.root()).into_iter().rev().filter_map(|op| scf::For::cast(module, op));
    for l in loops.collect::<Vec<_>>() {
        let body = module.region_block(l.body(module));
        let ops: Vec<Op> = module.block_ops(body).collect();
        let inside: Vec<Op> = ops.iter().flat_map(|&op| module.all_ops(op)).collect();
        let (Some(&first), Some(&last)) = (ops.first(), ops.last()) else { continue };
        if module.op_attr(l.0, marks::SHARED_PREFETCHES).is_none()
            || inside.iter().any(|&op| takes_the_barrier(module, op))
        {
            continue;
        }
        let loc = module.op_loc(l.0);
        let mut b = Builder::before(module, first);
        b.set_loc(loc);
        ttg::BarrierArrive::build(&mut b);
        let mut b = Builder::before(module, last);
        b.set_loc(loc);
        ttg::BarrierWait::build(&mut b);
    }
}

/// Whether an operation may wait at the barrier of the work group: by itself, or around its scratch memory.
fn takes_the_barrier(m: &Module, op: Op) -> bool {
    let waits = m.def(op).is_none_or(|def| def.effects.iter().any(|e| e.access == Access::Wait));
    waits || m.int_attr(op, marks::ALLOCATION_OFFSET).is_some() || ttg::BarrierArrive::cast(m, op).is_some()
}
