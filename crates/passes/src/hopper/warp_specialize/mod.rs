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
//! computed from stay alive (`producer`). So the producer has the same loops, and the branches around them, and runs ahead
//! of the consumers through all of them: over the tiles of a persistent kernel too.
//!
//! Loads that are needed at the same place of one loop body are a *channel* (`channels`): they go through a ring
//! (`ttg.ring_create`), a field each. Both sides count slots and phases by themselves, through the loops (`pipeline_state`).
//!
//! - producer: acquire the slot, start the copies, commit;
//! - consumers: wait for the slot, read, release it.
//!
//! Loads through pointers that dots read go the same way, if the author asks for it: four warps copy them (`cp.async`) with the layouts of
//! the function, in which each warp has more elements (`relayout`).
//!
//! Several stores of an iteration through descriptors leave by one more warp, if there is room for buffers (`epilogue_store`).
//!
//! A ring that a loop around others fills has a second slot, if there is room: its consumers release a slot behind the loop in which they read it, and what the
//! producer loads for the next such loop comes behind this load (the keys of attention behind its queries).
//!
//! The release stands behind the last reader; where that is an asynchronous dot, [`lower_rings`](crate::transform::lower_rings) moves it
//! behind the wait for it. That pass also says how warps tell each other of slots.
//!
//! In a cluster, blocks that several CTAs load are loaded once ([`multicast`]).
//!
//! The files of this folder name this one, which calls them: what they share stands here, such as where slots and phases are in each block.
//!
//! Where it can't be done (no such loads, addresses that depend on what is computed, kernels that wait for other programs, too few
//! registers beside the producer, no shared memory even for one slot of each ring) the loop stays as it is, and a remark says why.
//!
//! ```text
//! %r = scf.for %k = ... iter_args(%acc = %z) {
//!   %x = tt.descriptor_load %d[%i, %k]
//!   %s = ttg.local_alloc %x
//!   %a = ttng.warp_group_dot %s, ..., %acc
//!   scf.yield %a
//! } {tt.warp_specialize}
//! =>
//! %x = ttg.local_alloc ; %ring = ttg.ring_create %x {slots = 3}
//! %r = ttg.warp_specialize(%ring, %x, %d, %i)
//! default {
//!   %c = scf.for ... iter_args(%acc = %z, %slot = 0, %phase = 0) {
//!     ttg.ring_wait %ring[%slot], %phase
//!     %a = ttng.warp_group_dot %x[%slot], ..., %acc
//!     ttg.ring_release %ring[%slot]
//!     ...
//!   }
//!   ttg.warp_yield %c
//! }
//! partition0(...) num_warps(1) {
//!   scf.for ... iter_args(%slot = 0, %phase = 0) {
//!     ttg.ring_acquire %ring[%slot], %phase
//!     ttg.async_copy_block_to_local %d[%i, %k], %x[%slot]
//!     ttg.ring_commit %ring[%slot]
//!     ...
//!   }
//!   ttg.warp_return
//! }
//! ```

mod channels;
mod epilogue_store;
mod pipeline_state;
mod producer;
mod relayout;

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{scf, tt, ttg, ttng};
use tilewright_ir::effects::effects;
use tilewright_ir::marks;
use tilewright_ir::{AttrKind, Block, Builder, Diagnostic, Module, Op, TypeKind, Value};

use crate::analysis::waiting;
use crate::hopper::allocate_warp_groups::registers_beside;
use crate::hopper::{captures, multicast};
use crate::pass::{Pass, Property};
use crate::remarks;
use crate::target::TargetInfo;
use crate::transform::software_pipeline::{budget, schedule};
use channels::{Channel, Load};

/// The hints of a loop.
pub(crate) const HINT: &str = "tt.warp_specialize";
pub(crate) const FLATTEN: &str = "tt.flatten";
/// Registers that a thread of the producer warp wants: loop counters, coordinates and addresses.
const PRODUCER_REGISTERS: i32 = 40;

/// The pass.
pub const PASS: Pass = Pass {
    name: "warp-specialize",
    summary: "give loading and computing to different warps in loops that ask for it",
    requires: &[Property::LaidOut, Property::DescriptorsEncoded],
    ensures: &[],
    run: |m, t, o| run(m, t, o.num_stages),
};

/// Specializes the warps of every function that asks for it and allows it.
///
/// # Errors
/// None of its own.
pub fn run(module: &mut Module, target: &TargetInfo, num_stages: u32) -> Result<(), Diagnostic> {
    // What is dead would be erased by a trial, while it stands in the list of what is moved.
    tilewright_ir::dce::run(module)?;
    let functions: Vec<tt::Func> =
        module.block_ops(module.body()).filter_map(|op| tt::Func::cast(module, op)).collect();
    let mut any = false;
    for func in functions {
        let told = of_author(module, func.0);
        let (told, alone): (Vec<_>, Vec<_>) = told.into_iter().partition(|&(op, _)| hinted(module, op));
        remark(module, &alone, "there is no loop inside of it");
        let why_not = match asked(module, func) {
            None => Some("it stands in a `while` loop".to_string()),
            Some(range) => {
                any = true;
                specialize_range(module, &range, target, num_stages)?
            }
        };
        if let Some(why) = why_not {
            remark(module, &told, &why);
        }
        for op in module.all_ops(func.0) {
            module.remove_attr(op, HINT);
            module.remove_attr(op, FLATTEN);
        }
    }
    if any { tilewright_ir::dce::run(module) } else { Ok(()) }
}

/// Gives loads of these operations to other warps. Why not, where that can't be.
fn specialize_range(
    module: &mut Module,
    range: &[Op],
    target: &TargetInfo,
    num_stages: u32,
) -> Result<Option<String>, Diagnostic> {
    if !target.tma {
        return Ok(Some(format!("{} has no TMA", target.name)));
    }
    if schedule::most_stages(module) == 0 {
        return Ok(Some("shared memory has no room for what would be loaded ahead".to_string()));
    }
    if range.iter().any(|&op| stays_together(module, op)) {
        return Ok(Some(
            "the loop waits for other programs, or uses buffers of the kernel's own".to_string(),
        ));
    }
    // With loads through pointers, or else without. (Where only tiles should follow each other closely, four warps
    // more are a high price.)
    let hinted = |&op: &Op| module.all_ops(op).into_iter().any(|inner| module.op_attr(inner, HINT).is_some());
    let explicit = range.iter().any(hinted);
    let mut why_not = "";
    for &pointers in if explicit { &[true, false][..] } else { &[false] } {
        match specialize(module, range, target, num_stages, pointers)? {
            Ok(w) => {
                epilogue_store::add(module, w, target)?;
                return Ok(None);
            }
            Err(why) => why_not = why,
        }
    }
    Ok(Some(why_not.to_string()))
}

/// The loops inside of an operation whose author gave a hint of these, each with the hint. (What passes ask for themselves has a value.)
pub fn of_author(module: &Module, of: Op) -> Vec<(Op, &'static str)> {
    let given = |op: Op, hint: &str| {
        module.op_attr(op, hint).is_some_and(|attr| matches!(module.attr_kind(attr), AttrKind::Unit))
    };
    let hints = [(HINT, "warp_specialize"), (FLATTEN, "flatten")];
    let hint_of = |op: Op| hints.iter().find(|(hint, _)| given(op, hint)).map(|&(_, name)| (op, name));
    module.all_ops(of).into_iter().filter_map(hint_of).collect()
}

/// Says of loops why their hints changed nothing.
pub fn remark(module: &mut Module, loops: &[(Op, &'static str)], why: &str) {
    for &(op, name) in loops {
        remarks::add(module, op, &format!("tl.range({name}=True) changes nothing: {why}"));
    }
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

/// Whether an operation may wait for, or be waited for by, another program, so that loads must not run ahead of it, or accesses buffers
/// of the kernel's own, whose order is that of the program.
fn stays_together(module: &Module, op: Op) -> bool {
    // Where CTAs meet, all warps of the cluster would have to come.
    let waits = |op| waiting::synchronizes(module, op) || multicast::waits_for_cluster(module, op);
    let writable = |&v: &Value| {
        matches!(module.type_kind(module.value_type(v)), TypeKind::MemDesc { mutable: true, .. })
    };
    let shares = |op| module.operands(op).iter().any(writable);
    module.all_ops(op).into_iter().any(|op| waits(op) || shares(op))
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

/// Gives the loads of the operations to a partition. Why not, where that turns out impossible: then they are as they were.
fn specialize(
    module: &mut Module,
    range: &[Op],
    target: &TargetInfo,
    num_stages: u32,
    pointers: bool,
) -> Result<Result<ttg::WarpSpecialize, &'static str>, Diagnostic> {
    let mut channels = channels::find(module, range, target, num_stages, pointers);
    if channels.is_empty() {
        return Ok(Err(
            "there are no loads that another warp could make: blocks by TMA, which products read, and for which there is room",
        ));
    }
    if range.iter().any(|&op| wants_registers(module, op)) {
        return Ok(Err("products want the registers that a warp for loads would have"));
    }
    let copied = channels.iter().flat_map(|c| &c.loads).filter_map(|l| match l {
        Load::Block(_) => None,
        Load::Pointers(load) => Some(chunks(module, *load)),
    });
    let chunks: u32 = copied.sum();
    // One thread asks TMA for a block; to copy it takes a warp group.
    let warps = if chunks > 0 { 4 } else { 1 };
    let num_warps = module.int_attr(module.root(), "ttg.num-warps").map_or(4, |n| n as i32);
    // What the loops need besides comes before the loads, too.
    let begin = range.iter().copied().find(|&op| is_structure(module, op));
    let (Some(begin), Some(&first)) = (begin.filter(|_| warps <= num_warps), range.first()) else {
        return Ok(Err("to copy what is loaded through pointers takes four warps more, and there are fewer"));
    };
    for &op in range.iter().take_while(|&&op| op != begin) {
        module.move_before(op, begin);
    }

    // Values that what follows needs.
    let inside = |m: &Module, op: Op| range.iter().any(|&r| m.is_ancestor(r, op));
    let results: Vec<Value> = range
        .iter()
        .flat_map(|&op| module.results(op).to_vec())
        .filter(|&v| module.uses(v).iter().any(|u| !inside(module, u.op)))
        .collect();
    let types: Vec<_> = results.iter().map(|&v| module.value_type(v)).collect();
    channels::allocate(module, first, &mut channels);
    let mut b = Builder::before(module, first);
    // A 64-bit address for each copy of a thread, and a mask.
    let registers = PRODUCER_REGISTERS + (chunks.div_ceil(32 * warps as u32) * 3) as i32;
    let w = ttg::WarpSpecialize::build(&mut b, &[], vec![warps], Some(vec![registers]), None, None, &types);
    let partition = add_partitions(module, w);

    // The producer comes first: until it is known to be possible, nothing else changes.
    if !producer::make(module, w.0, partition, range, &channels, (warps, num_warps))? {
        module.erase_op(w.0);
        tilewright_ir::dce::run(module)?;
        return Ok(Err("what is loaded depends on what is computed"));
    }

    let of_channels: Vec<_> = channels.iter().map(|c| (c.counter, c.slots, c.block)).collect();
    let positions = pipeline_state::thread(module, w.0, range, &of_channels);
    for (i, &v) in results.iter().enumerate() {
        let new = w.results(module)[i];
        let users: Vec<_> = module.uses(v).iter().filter(|u| !inside(module, u.op)).copied().collect();
        for u in users {
            module.set_operand(u.op, u.index as usize, new);
        }
    }
    let default = module.append_block(w.default_region(module), &[]);
    for &op in range {
        module.detach_op(op);
        module.append_op(default, op);
    }
    ttg::WarpYield::build(&mut Builder::at_end(module, default), &results);
    channels::consume(module, &channels, &positions);
    captures::capture(module, w, partition);
    // What the tensors were computed from may have been needed by the producer alone.
    tilewright_ir::dce::run(module)?;
    Ok(Ok(w))
}

/// Adds a first partition, with nothing but its end.
fn add_partitions(module: &mut Module, w: ttg::WarpSpecialize) -> Block {
    let holder = module.append_block(w.partition_holder(module), &[]);
    let partitions = ttg::Partitions::build(&mut Builder::at_end(module, holder));
    let region = module.add_region(partitions.0);
    let partition = module.append_block(region, &[]);
    let end = ttg::WarpReturn::build(&mut Builder::at_end(module, partition));
    module.set_op_loc(end.0, module.op_loc(w.0));
    partition
}

/// How many copies of at most 16 bytes a load takes.
fn chunks(module: &Module, load: tt::Load) -> u32 {
    let ty = module.value_type(load.result(module));
    let elements: u32 = module.shape(ty).unwrap_or(&[]).iter().product();
    let vec = module.int_attr(load.0, marks::VEC).unwrap_or(1).max(1) as u32;
    elements / vec.min(128 / module.bits(ty).max(8))
}

/// Where a channel stands in an iteration: counter, slot and phase, by the bodies of loops.
type Positions = FxHashMap<Block, Vec<(u32, Value, Value)>>;

/// The slot and phase of a channel whose loop has this body.
fn position(positions: &Positions, channel: &Channel, block: Block) -> (Value, Value) {
    let of_block = &positions[&block];
    let found = of_block.iter().find(|p| p.0 == channel.counter).expect("each channel has a counter");
    (found.1, found.2)
}
