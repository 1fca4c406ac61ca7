//! Loops in software pipelines: loads are issued several iterations ahead, as asynchronous copies into rings of
//! shared-memory buffers, so that their latency is hidden behind the arithmetic of the iterations before; dots for warp
//! groups run while the rest of the body goes on.
//!
//! Every loop has one schedule, a modulo schedule of the dependence graph of its body: operations keep resources busy (tensor
//! cores, the schedulers, the path from memory), results come after latencies, carried values and slots of rings are recurrences.
//! What is then done to the loop follows from it: which loads and which indices of gathers run how many iterations ahead, which
//! dots are issued early, which run on into the next iteration, whether warp groups need to go in step. The cycles stand in one
//! table, [`machine`](crate::machine).
//!
//! Why here: after layout assignment it is known which loads go through shared memory (operands of dots) and how wide
//! their accesses are; before allocation and barriers, which see buffers and copies like any others.
//!
//! | file | |
//! | --- | --- |
//! | [`modulo`] | modulo scheduling, on graphs that say what an operation keeps busy and what depends on what |
//! | [`graph`] | the graph of a loop's body |
//! | [`candidates`] | which loads of a loop may run ahead, and why not the others |
//! | [`schedule`] | the loop's schedule, and what follows from it |
//! | [`unfollowed`] | what is said where the author's number of stages can't be followed |
//! | [`budget`] | how much shared memory and how many registers a loop would take |
//! | [`backward_slice`] | what must run ahead with a load |
//! | [`expand`] | prologue and kernel |
//! | [`split_barrier`] | a barrier with room between its halves, so that warp groups need not go in step |
//! | [`async_copies`] | asynchronous copies into the fields of a ring, views of slots |
//! | [`tma_copies`] | the same for loads through descriptors (TMA) |
//! | [`early_dots`] | dots that begin early |
//! | [`late_dots`] | dots that end after their iteration |
//! | [`epilogue_overlap`] | what is done before the wait for a loop's last dots |
//! | [`async_dots`](crate::hopper::async_dots) | asynchronous dots, their waits and fences (a pass of its own, which also serves code outside loops) |
//!
//! Which loops: those with a dot, or with `tt.num_stages` given by the author, and those through programs
//! ([`persistent_programs`](crate::transform::persistent_programs)). Which loads: those that reach a dot within
//! the iteration (all, if the author gave the number of stages, or the loop goes through programs), if each access is at least 4 bytes wide
//! and their addresses are computed without effects. A copy fills in zeros for masked-off elements: others are chosen behind the read of the slot, unless
//! the loop has stages for its dots alone.
//!
//! ```text
//! scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z, %p = %p0) {
//!   %x = tt.load %p
//!   %s = ttg.local_alloc %x
//!   %a = ttg.local_load %s
//!   ...
//!   %p2 = tt.addptr %p, %step
//! }
//! =>
//! %buf = ttg.local_alloc : !ttg.memdesc<3x128x64xf16, ..., mutable>
//! %ring = ttg.ring_create %buf {slots = 3}
//! ttg.ring_acquire %ring[0] ; ttg.async_copy_global_to_local %p0, %buf[0] mask %0_lt_n ; ttg.ring_commit %ring[0]
//! ttg.ring_acquire %ring[1] ; ttg.async_copy_global_to_local %p1, %buf[1] mask %1_lt_n ; ttg.ring_commit %ring[1]
//! scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z, %slot = 0, %free = 2, %phase = 0, %q = %p2) {
//!   ttg.ring_wait %ring[%slot], %phase {later = 1}
//!   ttg.ring_acquire %ring[%free]
//!   ttg.async_copy_global_to_local %q, %buf[%free] mask %i_plus_2_lt_n
//!   ttg.ring_commit %ring[%free]
//!   %a = ttg.local_load %buf[%slot]
//!   ...
//! }
//! ttg.ring_dealloc %ring
//! ```
//!
//! Indices that are loaded run further ahead, in registers:
//!
//! ```text
//! %j = tt.load %index[%i] ; %x = tt.load %p[%j] ; tt.dot %x, ...
//! =>
//! scf.for %i ... iter_args(..., %j = ...) {           // %j: the indices of iteration %i + 2
//!   ttg.async_copy_global_to_local %p[%j], %buf[%free]
//!   %j2 = tt.load %index[%i + 3] mask %i_plus_3_lt_n
//!   ...
//! }
//! ```

pub mod async_copies;
pub mod backward_slice;
pub mod budget;
pub mod candidates;
pub mod early_dots;
pub mod epilogue_overlap;
pub mod expand;
pub mod graph;
pub mod late_dots;
pub mod modulo;
pub mod prologue_overlap;
pub mod schedule;
pub mod split_barrier;
pub mod tma_copies;
pub mod unfollowed;

use tilewright_ir::dialect::scf;
use tilewright_ir::{Diagnostic, Module};

use crate::analysis::promises::Promises;
use crate::pass::{Pass, Property};
use crate::remarks;
use crate::target::TargetInfo;
use schedule::Schedule;

/// The pass.
pub const PASS: Pass = Pass {
    name: "software-pipeline",
    summary: "schedule loops: copies iterations ahead, dots early or late",
    requires: &[Property::LaidOut, Property::DescriptorsEncoded],
    ensures: &[],
    run: |m, t, o| run(m, t, o.num_stages),
};

/// Schedules every loop that has something to schedule, and rewrites it. `num_stages` is the launch option; a loop's
/// `tt.num_stages` overrides it.
///
/// # Errors
/// None of its own.
pub fn run(module: &mut Module, target: &TargetInfo, num_stages: u32) -> Result<(), Diagnostic> {
    // Inner loops first: an outer loop with a pipelined loop inside is left alone.
    let root = module.root();
    let mut loops: Vec<scf::For> =
        module.all_ops(root).into_iter().filter_map(|op| scf::For::cast(module, op)).collect();
    loops.reverse();
    let promises = Promises::of(module);
    let mut changed = false;
    for l in loops {
        let schedule = Schedule::of(module, target, l, num_stages);
        for (op, text) in unfollowed::of(module, l, schedule.as_ref(), num_stages) {
            remarks::add(module, op, &text);
        }
        let Some(mut schedule) = schedule else { continue };
        let body = module.region_block(l.body(module));
        let early = std::mem::take(&mut schedule.early);
        if let Some(late) = schedule.late.take() {
            late.delay(module, l, &promises);
        }
        if !schedule.levels.is_empty() {
            expand::expand(module, (l, schedule), &promises, target.max_shared);
            changed = true;
        }
        early_dots::issue_early(module, body, &early);
    }
    // Addresses are computed ahead now: the carried values that they came from before are dead.
    if changed { tilewright_ir::dce::run(module) } else { Ok(()) }
}
