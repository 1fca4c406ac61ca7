//! A barrier in two halves: warps arrive as soon as they have nothing to hide, and wait only when they need the others.
//!
//! An ordinary barrier in a loop keeps all warp groups at the same place of an iteration: then they all want the tensor
//! cores at once, and afterwards all leave them idle. With half an iteration between arriving and waiting, one group's dots
//! run during another's arithmetic.
//!
//! It is an mbarrier at which each warp arrives once an iteration (PTX ISA, "mbarrier": arriving releases what the warp did
//! before, waiting acquires it). A warp waits for a phase before it arrives for the next, so that one mbarrier is enough:
//! its phases have the parity of the iteration.
//!
//! ```text
//! ttng.wait_barrier %bar, %phase          // all have finished iteration i - 2, and the copies for iteration i are visible
//! %s = ttng.warp_group_dot ...
//! ttg.async_wait ; ttng.fence_async_shared
//! ttng.arrive_barrier %bar, 1 {perWarp}
//! ```

use tilewright_ir::dialect::{arith, scf, ttg, ttng};
use tilewright_ir::{Builder, Module, Op, Value};

use crate::analysis::scope;

/// The two halves' mbarrier.
#[derive(Debug, Clone, Copy)]
pub struct SplitBarrier {
    barrier: Value,
}

impl SplitBarrier {
    /// Makes one before the loop `l`; an ordinary barrier follows.
    pub fn create(m: &mut Module, l: scf::For) -> Self {
        let warps = scope::num_warps(m, l.0);
        let ty = ttng::mbarrier_type(m, None);
        let mut b = Builder::before(m, l.0);
        let barrier = ttg::LocalAlloc::build(&mut b, None, ty).result(b.module);
        ttng::InitBarrier::build(&mut b, barrier, warps as i32);
        ttg::Barrier::build(&mut b);
        SplitBarrier { barrier }
    }

    /// Each warp arrives.
    pub fn arrive(self, m: &mut Module, anchor: Op) {
        let mut b = Builder::before(m, anchor);
        ttng::ArriveBarrier::build(&mut b, self.barrier, None, None, 1, true);
    }

    /// Waits until all have arrived for the phase of this parity.
    pub fn wait(self, m: &mut Module, anchor: Op, phase: Value) {
        let mut b = Builder::before(m, anchor);
        ttng::WaitBarrier::build(&mut b, self.barrier, phase, None, &[]);
    }

    /// The parity of the phase that follows.
    pub fn flip(m: &mut Module, anchor: Op, phase: Value) -> Value {
        let mut b = Builder::before(m, anchor);
        let one = b.i32(1);
        arith::Xori::build(&mut b, phase, one).result(b.module)
    }

    /// Ends it after the loop, where all warps meet.
    pub fn end(self, b: &mut Builder<'_>) {
        ttg::Barrier::build(b);
        ttng::InvalBarrier::build(b, self.barrier);
    }
}
