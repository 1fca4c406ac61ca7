//! The producer's side: a clone of the loops in which only the loads stay.

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{scf, tt, ttg, ttng, ub};
use tilewright_ir::effects::{effects, is_pure};
use tilewright_ir::{Block, Builder, Diagnostic, Module, Op, Opcode, Trait, Value};

use super::channels::{Channel, Load};
use super::{FLATTEN, HINT, pipeline_state, position, relayout};
use crate::hopper::captures::is_inside;
use crate::hopper::multicast;
use crate::transform::software_pipeline::async_copies;

/// Makes the producer in `partition`, of a clone of `range` in which loads are copies and everything else with effects is gone.
/// What counters begin with stands before `before`. `warps`: its own and the function's. False if what is left is not lean, or can't be done by so many warps; then nothing
/// outside the partition has changed.
pub(super) fn make(
    module: &mut Module,
    before: Op,
    partition: Block,
    range: &[Op],
    channels: &[Channel],
    (warps, num_warps): (i32, i32),
) -> Result<bool, Diagnostic> {
    let mut map: FxHashMap<Value, Value> = FxHashMap::default();
    let clones: Vec<Op> = range.iter().map(|&op| module.clone_op(op, &mut map)).collect();
    let end = module.last_op(partition).expect("a partition has an end");
    for &clone in &clones {
        module.insert_before(clone, end);
    }
    let clone_of = |m: &Module, l: &Load| m.defining_op(map[&l.result(m)]).expect("a clone of a load");
    let loads: Vec<Vec<Op>> =
        channels.iter().map(|c| c.loads.iter().map(|l| clone_of(module, l)).collect()).collect();
    let blocks: Vec<(u32, u32, Block)> = channels
        .iter()
        .zip(&loads)
        .map(|(c, loads)| (c.counter, c.slots, module.parent_block(loads[0]).expect("in a loop")))
        .collect();
    let positions = pipeline_state::thread(module, before, &clones, &blocks);
    // What the consumers do.
    let all: Vec<Op> = clones
        .iter()
        .flat_map(|&op| module.all_ops(op))
        .filter(|op| !loads.iter().flatten().any(|l| l == op))
        .collect();
    erase_effects(module, &all, |_| false);
    for ((c, loads), &(_, _, block)) in channels.iter().zip(&loads).zip(&blocks) {
        let (slot, phase) = position(&positions, c, block);
        issue(module, c, loads, slot, phase);
    }
    for &op in &all {
        if scf::For::cast(module, op).is_some() {
            for name in [HINT, FLATTEN, "tt.num_stages"] {
                module.remove_attr(op, name);
            }
        }
    }
    tilewright_ir::dce::run(module)?;
    Ok(bring_tensors(module, partition).is_some()
        && is_lean(module, partition, range)
        && (warps >= num_warps || relayout::run(module, partition, warps as u32).is_some()))
}

fn poison(module: &mut Module, op: Op, value: Value) {
    if !module.is_unused(value) {
        let ty = module.value_type(value);
        let mut b = Builder::before(module, op);
        let nothing = ub::Poison::build(&mut b, ty).result(b.module);
        module.replace_all_uses(value, nothing);
    }
}

/// Puts the copies of a channel where its last load stands.
fn issue(module: &mut Module, c: &Channel, loads: &[Op], slot: Value, phase: Value) {
    let last = *loads.last().expect("a channel has a load");
    let ring = c.ring.expect("allocated");
    let mut b = Builder::before(module, last);
    ttg::RingAcquire::build(&mut b, ring, slot, Some(phase), None);
    for (((&op, &field), &ty), &mask) in loads.iter().zip(&c.fields).zip(&c.slot_types).zip(&c.masks) {
        let view = ttg::MemdescIndex::build(&mut b, field, slot, ty).result(b.module);
        match Load::cast(b.module, op) {
            Some(Load::Block(load)) => {
                let (cache, evict) = (load.cache(b.module), load.evict(b.module));
                let (desc, coord) = (load.desc(b.module), load.indices(b.module).to_vec());
                let copy = ttg::AsyncCopyBlockToLocal::build(&mut b, desc, &coord, view, None, cache, evict);
                multicast::mark_copy(b.module, copy.0, mask);
            }
            Some(Load::Pointers(load)) => {
                let (ptr, inside) = (load.ptr(b.module), load.mask(b.module));
                async_copies::of_load(&mut b, load, ptr, inside, view);
            }
            None => unreachable!("a clone of a load"),
        }
    }
    ttg::RingCommit::build(&mut b, ring, slot);
    for &op in loads {
        let value = module.result(op);
        poison(module, op, value);
        module.erase_op(op);
    }
}

/// Whether what is left of the producer computes addresses alone and reads nothing that the consumers may write.
pub(super) fn is_lean(module: &Module, partition: Block, range: &[Op]) -> bool {
    let writes = range.iter().any(|&op| {
        module.all_ops(op).into_iter().any(|o| {
            tt::Store::cast(module, o).is_some()
                || tt::AtomicRmw::cast(module, o).is_some()
                || tt::DescriptorStore::cast(module, o).is_some()
                || tt::DescriptorReduce::cast(module, o).is_some()
                || tt::DescriptorScatter::cast(module, o).is_some()
                || ttng::AsyncTmaCopyLocalToGlobal::cast(module, o).is_some()
        })
    });
    let ops: Vec<Op> = module.block_ops(partition).flat_map(|op| module.all_ops(op)).collect();
    ops.iter().all(|&op| {
        let reads = tt::Load::cast(module, op).is_some();
        ub::Poison::cast(module, op).is_none()
            && !(reads && writes)
            && (!has_tensors(module, op) || is_address_arithmetic(module, op))
    })
}

pub(super) fn has_tensors(module: &Module, op: Op) -> bool {
    let mut values = module.operands(op).iter().chain(module.results(op));
    values.any(|&v| module.is_tensor(module.value_type(v)))
}

/// Whether an operation on tensors is one that addresses are made of and that means the same for any number of warps: each
/// thread computes its elements from its elements of the operands, or from where they are.
fn is_address_arithmetic(module: &Module, op: Op) -> bool {
    match module.opcode(op) {
        Some(Opcode::Arith(_)) => true,
        Some(Opcode::Scf(kind)) => matches!(kind, scf::Kind::For | scf::Kind::Yield),
        Some(Opcode::Ttg(kind)) => matches!(kind, ttg::Kind::AsyncCopyGlobalToLocal),
        Some(Opcode::Tt(kind)) => matches!(
            kind,
            tt::Kind::Splat
                | tt::Kind::MakeRange
                | tt::Kind::ExpandDims
                | tt::Kind::Broadcast
                | tt::Kind::Addptr
                | tt::Kind::Bitcast
        ),
        _ => false,
    }
}

/// Brings what tensors the producer uses from outside into it: what they are computed from. `None` if that has effects.
fn bring_tensors(module: &mut Module, partition: Block) -> Option<()> {
    let first = module.first_op(partition)?;
    let inside: Vec<Op> = module.block_ops(partition).flat_map(|op| module.all_ops(op)).collect();
    let mut map: FxHashMap<Value, Value> = FxHashMap::default();
    for op in inside {
        for i in 0..module.operands(op).len() {
            let v = module.operands(op)[i];
            if module.is_tensor(module.value_type(v)) && !is_inside(module, partition, v) {
                clone_tensor(module, v, first, &mut map)?;
                module.set_operand(op, i, map[&v]);
            }
        }
    }
    Some(())
}

fn clone_tensor(module: &mut Module, v: Value, before: Op, map: &mut FxHashMap<Value, Value>) -> Option<()> {
    if map.contains_key(&v) {
        return Some(());
    }
    let op = module.defining_op(v)?;
    if !is_pure(module, op) || !module.regions(op).is_empty() {
        return None;
    }
    for operand in module.operands(op).to_vec() {
        if module.is_tensor(module.value_type(operand)) {
            clone_tensor(module, operand, before, map)?;
        }
    }
    let clone = module.clone_op(op, map);
    module.insert_before(clone, before);
    Some(())
}

/// Erases what writes, but for `kept`; what looks at its results looks at nothing.
pub(super) fn erase_effects(module: &mut Module, ops: &[Op], kept: impl Fn(Op) -> bool) {
    for &op in ops.iter().rev() {
        let ends = module.has_trait(op, Trait::Terminator);
        if kept(op) || ends || !module.regions(op).is_empty() || !effects(module, op).writes {
            continue;
        }
        for i in 0..module.results(op).len() {
            poison(module, op, module.results(op)[i]);
        }
        module.erase_op(op);
    }
}
