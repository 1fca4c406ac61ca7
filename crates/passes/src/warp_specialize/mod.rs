//! Warp specialization: in loops that ask for it (`tt.warp_specialize`), one extra warp (four for loads through pointers) loads and the
//! others compute.
//!
//! `tt.flatten` on a loop around another asks for it too. What one wants from a single loop in their place is that loads go on
//! from one tile to the next: the producer's do, and the consumers are spared the conditions of a merged loop.
//!
//! Why here: layouts are assigned, so that it is known which buffers dots read, and loads are still single operations. What
//! stays behind in the consumers goes on through the ordinary passes (pipelining, asynchronous dots).
//!
//! # How
//!
//! The operations from the first to the last loop that asks, with all that lies inside and between, and loads just for them
//! that stand before (so that both sides begin at once), become the default
//! region of a `ttg.warp_specialize`; a clone of them becomes a partition, of which only the loads and what they are
//! computed from stay alive ([`producer`]). So the producer has the same loops, and the branches around them, and runs ahead
//! of the consumers through all of them: over the tiles of a persistent kernel too.
//!
//! Loads that are needed at the same place of one loop body are a *channel* ([`channels`]): a ring of buffers
//! and, for each slot, an mbarrier `full` (the copies have arrived) and one `empty` (all consumer warps have read). Both
//! sides count slots and phases by themselves, through the loops ([`counters`]).
//!
//! - producer: wait for `empty[slot]`, announce the bytes to `full[slot]`, start the copies;
//! - consumers: wait for `full[slot]`, read, arrive at `empty[slot]` warp by warp.
//!
//! Loads through pointers that dots read go the same way, if the author asks for it: four warps copy them (`cp.async`) with the layouts of
//! the function, in which each warp has more elements ([`relayout`]), and all their threads arrive at `full`.
//!
//! Several stores of an iteration through descriptors leave by one more warp, if there is room for buffers ([`storer`]).
//!
//! The arrival stands behind the last reader; where that is an asynchronous dot, [`release_slots`](crate::release_slots)
//! moves it behind the wait for it.
//!
//! In a cluster, blocks that several CTAs load are loaded once ([`multicast`](crate::multicast)).
//!
//! Where it can't be done (no such loads, addresses that depend on what is computed, kernels that wait for other programs, too few
//! registers beside the producer) the loop stays as it is.
//!
//! ```text
//! %r = scf.for %k = ... iter_args(%acc = %z) {
//!   %x = tt.descriptor_load %d[%i, %k]
//!   %s = ttg.local_alloc %x
//!   %a = ttng.warp_group_dot %s, ..., %acc
//!   scf.yield %a
//! } {tt.warp_specialize}
//! =>
//! %ring = ttg.local_alloc ; %full = ttg.local_alloc ; %empty = ttg.local_alloc ; ttng.init_barrier ...
//! %r = ttg.warp_specialize(%ring, %full, %empty, %d, %i)
//! default {
//!   %c = scf.for ... iter_args(%acc = %z, %slot = 0, %phase = 0) {
//!     ttng.wait_barrier %full[%slot], %phase
//!     %a = ttng.warp_group_dot %ring[%slot], ..., %acc
//!     ttng.arrive_barrier %empty[%slot], 1 {perWarp}
//!     ...
//!   }
//!   ttg.warp_yield %c
//! }
//! partition0(...) num_warps(1) {
//!   scf.for ... iter_args(%slot = 0, %phase = 0) {
//!     ttng.wait_barrier %empty[%slot], %phase ^ 1
//!     ttng.barrier_expect %full[%slot], bytes
//!     ttng.async_tma_copy_global_to_local %d[%i, %k] %ring[%slot], %full[%slot]
//!     ...
//!   }
//!   ttg.warp_return
//! }
//! ```

mod channels;
mod counters;
mod producer;
mod relayout;
mod storer;

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{scf, tt, ttg, ttng};
use tilewright_ir::effects::effects;
use tilewright_ir::{AttrKind, Block, Builder, Diagnostic, Module, Op, Value};

use crate::allocate_warp_groups::registers_beside;
use crate::pipeline_loops::budget;
use crate::target::TargetInfo;
use crate::{multicast, scope};
use channels::{Channel, Load};

/// The hints of a loop.
const HINT: &str = "tt.warp_specialize";
const FLATTEN: &str = "tt.flatten";
/// Registers that a thread of the producer warp wants: loop counters, coordinates and addresses.
const PRODUCER_REGISTERS: i32 = 40;

/// Specializes the warps of every function that asks for it and allows it.
///
/// # Errors
/// None of its own.
pub fn run(module: &mut Module, target: &TargetInfo, num_stages: u32) -> Result<(), Diagnostic> {
    let functions: Vec<tt::Func> =
        module.block_ops(module.body()).filter_map(|op| tt::Func::cast(module, op)).collect();
    for func in functions {
        let Some(range) = asked(module, func) else { continue };
        if target.tma && !range.iter().any(|&op| waits_for_programs(module, op)) {
            // With loads through pointers, or else without. (Where only tiles should follow each other closely, four warps
            // more are a high price.)
            let explicit = range
                .iter()
                .any(|&op| module.all_ops(op).into_iter().any(|inner| module.op_attr(inner, HINT).is_some()));
            for pointers in if explicit { &[true, false][..] } else { &[false] } {
                let before = module.clone();
                if let Some(w) = specialize(module, &range, num_stages, *pointers) {
                    let before = module.clone();
                    if storer::add(module, w, target).is_none() {
                        *module = before;
                    }
                    break;
                }
                *module = before;
            }
        }
        for op in module.all_ops(func.0) {
            module.remove_attr(op, HINT);
            module.remove_attr(op, FLATTEN);
        }
    }
    tilewright_ir::dce::run(module)
}

/// The operations of a function's body from the first to the last that is or holds a loop which asks for it: loops and branches.
fn asked(module: &Module, func: tt::Func) -> Option<Vec<Op>> {
    let &[entry] = module.region_blocks(func.body(module)) else { return None };
    let ops: Vec<Op> = module.block_ops(entry).collect();
    let asks = |&op: &Op| {
        is_structure(module, op) && module.all_ops(op).into_iter().any(|inner| hinted(module, inner))
    };
    let first = ops.iter().position(asks)?;
    let last = ops.iter().rposition(asks)?;
    let mut range = loads_before(module, &ops[..first], &ops[first..=last]);
    range.extend_from_slice(&ops[first..=last]);
    Some(range)
}

/// The loads among `before`, with the buffers that they fill, that only `range` needs and that nothing that writes separates
/// from it.
fn loads_before(module: &Module, before: &[Op], range: &[Op]) -> Vec<Op> {
    let mut found: Vec<Op> = Vec::new();
    let inside =
        |found: &[Op], op: Op| found.contains(&op) || range.iter().any(|&r| module.is_ancestor(r, op));
    for &op in before.iter().rev() {
        let effects = effects(module, op);
        let load = tt::DescriptorLoad::cast(module, op).is_some();
        let buffer = ttg::LocalAlloc::cast(module, op).is_some();
        let view = ttg::MemdescTrans::cast(module, op).is_some();
        if (load || buffer || view) && module.uses(module.result(op)).iter().all(|u| inside(&found, u.op)) {
            found.push(op);
        } else if effects.writes {
            break;
        }
    }
    found.reverse();
    found
}

/// Whether an operation is a loop or a branch that both sides go through.
fn is_structure(module: &Module, op: Op) -> bool {
    scf::For::cast(module, op).is_some() || scf::If::cast(module, op).is_some()
}

/// Whether a loop has a hint that says something of it.
fn hinted(module: &Module, op: Op) -> bool {
    let nested = || module.all_ops(op).into_iter().skip(1).any(|o| scf::For::cast(module, o).is_some());
    module.op_attr(op, HINT).is_some() || (module.op_attr(op, FLATTEN).is_some() && nested())
}

/// Whether an operation may wait for, or be waited for by, another program: loads must not run ahead of that.
fn waits_for_programs(module: &Module, op: Op) -> bool {
    // Where CTAs meet, all warps of the cluster would have to come.
    let waits = |op| scope::synchronizes(module, op) || multicast::meets(module, op);
    module.all_ops(op).into_iter().any(waits)
}

/// Whether the dots of a loop want more registers than its warps have beside a producer. With 16 warps or more a warp group for
/// that takes a fifth of the registers or more, with fewer there are about as many as a thread can have.
fn wants_registers(module: &Module, op: Op) -> bool {
    const MANY_WARPS: u32 = 16;
    let num_warps = module.int_attr(module.root(), "ttg.num-warps").map_or(4, |n| n as u32);
    let registers = |v: Value| {
        if module.is_tensor(module.value_type(v)) { budget::words(module, v, num_warps) } else { 0 }
    };
    let loops = module.all_ops(op).into_iter().filter_map(|op| scf::For::cast(module, op));
    let wanted = loops.map(|l| {
        let body = module.region_block(l.body(module));
        let dots = module.block_ops(body).filter_map(|op| ttng::WarpGroupDot::cast(module, op));
        dots.map(|d| registers(d.d(module)) + registers(d.a(module))).sum::<u32>()
    });
    let most = wanted.max().unwrap_or(0);
    num_warps >= MANY_WARPS
        && most > 0
        && most + budget::OTHERS > registers_beside(num_warps, PRODUCER_REGISTERS as u32)
}

/// Rewrites the operations; `None` where that turns out impossible, with the module in any state.
fn specialize(
    module: &mut Module,
    range: &[Op],
    num_stages: u32,
    pointers: bool,
) -> Option<ttg::WarpSpecialize> {
    let mut channels = channels::find(module, range, num_stages, pointers);
    if channels.is_empty() || range.iter().any(|&op| wants_registers(module, op)) {
        return None;
    }
    let copied = channels.iter().flat_map(|c| &c.loads).filter_map(|l| match l {
        Load::Block(_) => None,
        Load::Pointers(load) => Some(chunks(module, *load)),
    });
    let chunks: u32 = copied.sum();
    // One thread asks TMA for a block; to copy it takes a warp group.
    let warps = if chunks > 0 { 4 } else { 1 };
    let num_warps = module.int_attr(module.root(), "ttg.num-warps").map_or(4, |n| n as i32);
    if warps > num_warps {
        return None;
    }
    // What the loops need besides comes before the loads, too.
    let begin = range.iter().copied().find(|&op| is_structure(module, op))?;
    for &op in range.iter().take_while(|&&op| op != begin) {
        module.move_before(op, begin);
    }
    let first = *range.first()?;
    channels::allocate(module, first, &mut channels, num_warps, 32 * warps);
    let positions = counters::thread(module, first, range, &channels);
    let shared = channels.iter().any(|c| c.peers() != 1);
    if shared {
        multicast::meet(&mut Builder::before(module, first));
    }

    // Values that what follows needs.
    let inside = |m: &Module, op: Op| range.iter().any(|&r| m.is_ancestor(r, op));
    let results: Vec<Value> = range
        .iter()
        .flat_map(|&op| module.results(op).to_vec())
        .filter(|&v| module.uses(v).iter().any(|u| !inside(module, u.op)))
        .collect();
    let types: Vec<_> = results.iter().map(|&v| module.value_type(v)).collect();
    let mut b = Builder::before(module, first);
    // A 64-bit address for each copy of a thread, and a mask.
    let registers = PRODUCER_REGISTERS + (chunks.div_ceil(32 * warps as u32) * 3) as i32;
    let w = ttg::WarpSpecialize::build(&mut b, &[], vec![warps], Some(vec![registers]), None, None, &types);
    if shared {
        multicast::meet(&mut Builder::after(module, w.0));
    }
    for (i, &v) in results.iter().enumerate() {
        let new = w.results(module)[i];
        let users: Vec<_> = module.uses(v).iter().filter(|u| !inside(module, u.op)).copied().collect();
        for u in users {
            module.set_operand(u.op, u.index as usize, new);
        }
    }

    let holder = module.append_block(w.partition_holder(module), &[]);
    let mut b = Builder::at_end(module, holder);
    let partitions = ttg::Partitions::build(&mut b);
    let region = module.add_region(partitions.0);
    let partition = module.append_block(region, &[]);
    let mut map: FxHashMap<Value, Value> = FxHashMap::default();
    let clones: Vec<Op> = range.iter().map(|&op| module.clone_op(op, &mut map)).collect();
    for clone in clones {
        module.append_op(partition, clone);
    }
    let end = ttg::WarpReturn::build(&mut Builder::at_end(module, partition));
    module.set_op_loc(end.0, module.op_loc(first));

    let default = module.append_block(w.default_region(module), &[]);
    for &op in range {
        module.detach_op(op);
        module.append_op(default, op);
    }
    ttg::WarpYield::build(&mut Builder::at_end(module, default), &results);

    producer::make(module, partition, &channels, &positions, &map)?;
    channels::consume(module, &channels, &positions);
    tilewright_ir::dce::run(module).ok()?;
    producer::bring_tensors(module, partition)?;
    producer::is_lean(module, partition, range).then_some(())?;
    if warps < num_warps {
        relayout::run(module, partition, warps as u32)?;
    }
    producer::capture(module, w, partition);
    // What the tensors were computed from may have been needed by the producer alone.
    tilewright_ir::dce::run(module).ok()?;
    Some(w)
}

/// How many copies of at most 16 bytes a load takes.
fn chunks(module: &Module, load: tt::Load) -> u32 {
    let ty = module.value_type(load.result(module));
    let elements: u32 = module.shape(ty).unwrap_or(&[]).iter().product();
    let vec = module.int_attr(load.0, "tt.vec").unwrap_or(1).max(1) as u32;
    elements / vec.min(128 / module.bits(ty).max(8))
}

/// Where a channel stands in an iteration: slot and phase, in the consumers' block.
type Positions = FxHashMap<Block, Vec<(u32, Value, Value)>>;

/// The slot and phase of a channel.
fn position(positions: &Positions, channel: &Channel) -> (Value, Value) {
    let of_block = &positions[&channel.block];
    let found = of_block.iter().find(|p| p.0 == channel.counter).expect("each channel has a counter");
    (found.1, found.2)
}

/// Marks an allocation as part of a channel, for [`release_slots`](crate::release_slots).
pub(crate) const CHANNEL: &str = "tt.channel";

fn mark(module: &mut Module, op: Op, channel: u32) {
    module.set_i32_attr(op, CHANNEL, channel as i32);
}

/// The encoding of mbarriers.
fn barrier_encoding(module: &mut Module) -> tilewright_ir::Attr {
    let plain = tilewright_ir::SharedKind::Swizzled {
        vec: 1,
        per_phase: 1,
        max_phase: 1,
        order: [0].into_iter().collect(),
    };
    module.attr(AttrKind::Encoding(tilewright_ir::Encoding::Shared(plain)))
}
