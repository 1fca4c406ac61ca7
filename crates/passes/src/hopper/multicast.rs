//! Copies that a CTA makes for others of its cluster, too (`.multicast::cluster`): a block that several CTAs load is loaded
//! once, each of them a part.
//!
//! [`distribute_ctas`](crate::hopper::distribute_ctas) notes which loads those are; whoever makes the copies decides whether they are
//! shared. A slot of a ring is then filled by several CTAs, so that each must know that the others have read it: their warps
//! arrive at its `empty` mbarrier, too. A `full` mbarrier is told of all bytes by its own CTA, whoever brings them. The cluster
//! meets when the mbarriers have been made, and again when no copy or arrival can come any more. All that follows from the
//! mask on the copies when [`lower_rings`](crate::transform::lower_rings) makes mbarriers.
//!
//! ```text
//! %b = tt.descriptor_load %d[%k, %n] {ttg.multicast = 1}
//! =>                                                                    (in the producer of each of two CTAs)
//! ttg.ring_acquire %ring[%slot], %phase
//! ttg.async_copy_block_to_local %d[%k, %n], %x[%slot] {ttg.multicast = 1}
//! =>
//! ttng.wait_barrier %empty[%slot], %phase ^ 1                           both CTAs' warps have read it
//! ttng.barrier_expect %full[%slot], 16384
//! ttng.async_tma_copy_global_to_local %d[%k, %n] %x[%slot], %full[%slot] {ttg.multicast = 1}
//!                                                                       (in the consumers)
//! ttng.arrive_barrier %empty[%slot], 1 {perWarp, ttg.peers = 3}         here and in the CTA of rank ^ 1
//! ```

use tilewright_ir::dialect::{tt, ttng};
use tilewright_ir::marks;
use tilewright_ir::{AttrKind, Builder, Module, Op};

use crate::hopper::tma;

/// The bits in which CTAs that can share a load differ; 0 where none can.
pub fn shares(module: &Module, load: tt::DescriptorLoad) -> u32 {
    let mask = module.int_attr(load.0, marks::MULTICAST).unwrap_or(0) as u32;
    let boxes = tma::block_type(module, load.desc(module)).and_then(|block| tma::tma_block(module, block));
    match boxes {
        Some((boxes, _)) if boxes.shared_by(1 << mask.count_ones()).is_some() => mask,
        _ => 0,
    }
}

/// The CTAs (as in [`marks::PEERS`]) that get what one with these loads copies, itself included.
pub fn peers(masks: impl IntoIterator<Item = u32>) -> u32 {
    let others = |mask: u32| (0..32).filter(|x| x & !mask == 0).fold(0, |set, x| set | 1 << x);
    masks.into_iter().fold(1, |set, mask| set | others(mask))
}

/// Marks a copy as shared.
pub fn mark_copy(module: &mut Module, copy: Op, mask: u32) {
    if mask != 0 {
        module.set_i32_attr(copy, marks::MULTICAST, mask as i32);
    }
}

/// Marks an arrival as one at the peers' mbarriers, too.
pub fn mark_arrival(module: &mut Module, arrive: ttng::ArriveBarrier, peers: u32) {
    if peers != 1 {
        module.set_i32_attr(arrive.0, marks::PEERS, peers as i32);
    }
}

/// Marks a wait as one that the thread alone makes that issues copies.
pub fn mark_wait(module: &mut Module, wait: ttng::WaitBarrier) {
    let unit = module.attr(AttrKind::Unit);
    module.set_attr(wait.0, marks::ELECTED, unit);
}

/// A barrier of the whole cluster.
pub fn cluster_barrier(b: &mut Builder<'_>) {
    ttng::ClusterArrive::build(b, false);
    ttng::ClusterWait::build(b);
}

/// Whether an operation waits for other CTAs of the cluster.
pub fn waits_for_cluster(module: &Module, op: Op) -> bool {
    ttng::ClusterWait::cast(module, op).is_some() || ttng::ClusterExchange::cast(module, op).is_some()
}
