//! Gives barriers of programs the counters at which they meet: 8 bytes a group, in the launch's scratch memory.
//!
//! A cluster that waits as a whole has a barrier in hardware, to which all of its threads come. Extra warps that run partitions come along before the first
//! `ttg.warp_specialize`, and have ended behind the last; in between, and in loops and branches, clusters count, too (all barriers of a group in one
//! way). All other groups count in global memory: for those of a cluster distributed shared memory would be nearer, but it had to be made zero before anyone counts and kept until everyone has, by two
//! barriers of the whole cluster in each launch; global memory is made zero by the launch and outlives the kernel.
//!
//! Each CTA has a part of the scratch memory. Groups of the grid use the first one's, those of a cluster the part of the number that the
//! cluster has in the grid. What a CTA has is a multiple of the alignment of what lies there already, as tensor maps.
//!
//! Why here: behind what makes tensor maps, and before anything is lowered.
//!
//! ```text
//! module { tt.program_barrier grid {group = 0 : i32} }
//! =>
//! module attributes {ttg.global_scratch_memory_size = 8 : i32, ttg.global_scratch_memory_zeroed, …} {
//!   tt.program_barrier grid {group = 0 : i32, ttg.global_scratch_memory_offset = 0 : i32}
//! }
//! ```

use std::collections::BTreeSet;

use tilewright_ir::dialect::tt::{self, ProgramBarrier, ProgramScope};
use tilewright_ir::launch::{self, ZEROED_SCRATCH};
use tilewright_ir::{AttrKind, Builder, Module, Op, marks};
use tilewright_passes::analysis::scope;
use tilewright_passes::pass::{Pass, Property};

/// The pass.
pub const PASS: Pass = Pass {
    name: "allocate-counters",
    summary: "give barriers of programs their counters",
    requires: &[Property::NoDescriptorAccesses],
    ensures: &[],
    run: |m, _, _| {
        run(m);
        Ok(())
    },
};

/// A counter: how many have come, and how often all have.
const BYTES: i32 = 8;

/// Places the counters behind what the scratch memory holds already.
fn run(module: &mut Module) {
    let root = module.root();
    let begin = module.int_attr(root, "ttg.global_scratch_memory_size").unwrap_or(0) as i32;
    let mut groups = 0;
    count_clusters(module);
    for op in module.all_ops(root) {
        let Some(barrier) = ProgramBarrier::cast(module, op).filter(|b| counts(module, *b)) else { continue };
        let group = barrier.group(module);
        module.set_i32_attr(op, marks::GLOBAL_SCRATCH_OFFSET, begin + BYTES * group);
        groups = groups.max(group + 1);
    }
    if groups > 0 {
        let alignment =
            module.int_attr(root, "ttg.global_scratch_memory_alignment").unwrap_or(0).max(BYTES.into());
        let size = (begin + BYTES * groups) as u64;
        module.set_i32_attr(
            root,
            "ttg.global_scratch_memory_size",
            size.next_multiple_of(alignment as u64) as i32,
        );
        module.set_i32_attr(root, "ttg.global_scratch_memory_alignment", alignment as i32);
        let unit = module.attr(AttrKind::Unit);
        module.set_attr(root, ZEROED_SCRATCH, unit);
    }
}

/// Gives barriers of whole clusters a count where extra warps don't come along to those of their group.
fn count_clusters(module: &mut Module) {
    let of_clusters: Vec<ProgramBarrier> = module
        .all_ops(module.root())
        .into_iter()
        .filter_map(|op| ProgramBarrier::cast(module, op))
        .filter(|barrier| !counts(module, *barrier))
        .collect();
    let alone = of_clusters.iter().filter(|barrier| !extra_warps_come(module, barrier.0));
    let groups: BTreeSet<i32> = alone.map(|barrier| barrier.group(module)).collect();
    let programs: u32 = launch::programs_of_cluster(module).iter().product();
    for barrier in of_clusters {
        let (scope, group) = (barrier.scope(module), barrier.group(module));
        if !groups.contains(&group) {
            continue;
        }
        let mut b = Builder::before(module, barrier.0);
        let count = b.i32(programs as i32);
        ProgramBarrier::build(&mut b, Some(count), scope, group);
        module.erase_op(barrier.0);
    }
}

/// Whether extra warps come along to a cluster's barrier at this place, or are not there.
fn extra_warps_come(module: &Module, barrier: Op) -> bool {
    let specialized = scope::specializations(module);
    let is_top = |op| module.parent_op(op).is_some_and(|f| tt::Func::cast(module, f).is_some());
    let Some(block) = module.parent_block(barrier) else { return false };
    let is_behind = |op| module.ancestor_in_block(block, op).is_some_and(|at| module.is_before(at, barrier));
    specialized.is_empty()
        || is_top(barrier)
            && (specialized.iter().all(|w| !is_behind(w.0))
                || specialized.iter().all(|w| is_top(w.0) && is_behind(w.0)))
}

/// Whether a barrier counts, and is not the one in hardware.
fn counts(module: &Module, barrier: ProgramBarrier) -> bool {
    barrier.scope(module) == ProgramScope::Grid || barrier.count(module).is_some()
}
