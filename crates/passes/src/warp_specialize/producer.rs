//! The producer's side: a clone of the loops in which only the loads stay.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::dialect::{arith, scf, tt, ttg, ttng, ub};
use tilewright_ir::effects::{effects, is_pure};
use tilewright_ir::{Block, Builder, Module, Op, Opcode, Trait, Type, Value};

use super::channels::{Channel, Load, barrier};
use super::{FLATTEN, HINT, Positions, position};
use crate::multicast;

/// Turns the clone in `partition` into the producer: loads become copies, everything else with effects goes. `None` if a
/// channel's loads can't be issued together.
pub(super) fn make(
    module: &mut Module,
    partition: Block,
    channels: &[Channel],
    positions: &Positions,
    map: &FxHashMap<Value, Value>,
) -> Option<()> {
    let loads: FxHashSet<Op> = channels
        .iter()
        .flat_map(|c| &c.loads)
        .map(|l| module.defining_op(map[&l.result(module)]).expect("a clone of a load"))
        .collect();
    // What the consumers do.
    let all: Vec<Op> = module
        .block_ops(partition)
        .flat_map(|op| module.all_ops(op))
        .filter(|op| !loads.contains(op))
        .collect();
    erase_effects(module, &all, |_| false);
    for c in channels {
        let (slot, phase) = position(positions, c);
        let (slot, phase) = (map[&slot], map[&phase]);
        let clones: Vec<Op> =
            c.loads.iter().map(|l| module.defining_op(map[&l.result(module)]).expect("a clone")).collect();
        issue(module, c, &clones, slot, phase);
    }
    for &op in &all {
        if scf::For::cast(module, op).is_some() {
            for name in [HINT, FLATTEN, "tt.num_stages"] {
                module.remove_attr(op, name);
            }
        }
    }
    Some(())
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
    let bytes = c.announced_bytes(module);
    let mut b = Builder::before(module, last);
    let (empty, full) = (
        barrier(&mut b, c.empty.expect("allocated"), slot),
        barrier(&mut b, c.full.expect("allocated"), slot),
    );
    // The first time round, nobody has read the slots: the phase before the first counts as complete.
    let one = b.i32(1);
    let before = arith::Xori::build(&mut b, phase, one).result(b.module);
    ttng::WaitBarrier::build(&mut b, empty, before, None, &[]);
    let yes = b.int(-1, Type::I1);
    if bytes > 0 {
        ttng::BarrierExpect::build(&mut b, full, yes, bytes as i32);
    }
    for (((&op, &ring), &ty), &mask) in loads.iter().zip(&c.rings).zip(&c.slot_types).zip(&c.masks) {
        let view = ttg::MemdescIndex::build(&mut b, ring, slot, ty).result(b.module);
        match Load::cast(b.module, op) {
            Some(Load::Block(load)) => {
                let (cache, evict) = (load.cache(b.module), load.evict(b.module));
                let (desc, coord) = (load.desc(b.module), load.indices(b.module).to_vec());
                let copy = ttng::AsyncTmaCopyGlobalToLocal::build(
                    &mut b, desc, &coord, full, view, yes, cache, evict, false,
                );
                multicast::mark_copy(b.module, copy, mask);
            }
            Some(Load::Pointers(load)) => {
                let (ptr, inside) = (load.ptr(b.module), load.mask(b.module));
                let (cache, evict) = (load.cache(b.module), load.evict(b.module));
                let copy = ttg::AsyncCopyGlobalToLocal::build(
                    &mut b,
                    ptr,
                    view,
                    inside,
                    None,
                    cache,
                    evict,
                    false,
                    Type::ASYNC_TOKEN,
                );
                for name in ["tt.vec", "tt.vec_axis"] {
                    if let Some(a) = b.module.op_attr(op, name) {
                        b.module.set_attr(copy.0, name, a);
                    }
                }
            }
            None => unreachable!("a clone of a load"),
        }
    }
    if c.has_pointers() {
        ttng::AsyncCopyMbarrierArrive::build(&mut b, full, true);
    }
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
pub(super) fn bring_tensors(module: &mut Module, partition: Block) -> Option<()> {
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

/// Whether a value is computed in the partition.
fn is_inside(module: &Module, partition: Block, v: Value) -> bool {
    module.value_block(v).is_some_and(|from| {
        from == partition
            || module.block_parent_op(from).is_some_and(|p| module.ancestor_in_block(partition, p).is_some())
    })
}

/// Hands over what a partition uses from outside: constants are made again, everything else is captured, also by the other
/// partitions, which all have the same arguments.
pub(super) fn capture(module: &mut Module, w: ttg::WarpSpecialize, partition: Block) {
    let others: Vec<Block> = w.partitions(module).iter().map(|&r| module.region_block(r)).collect();
    let mut captures = w.captures(module).to_vec();
    let mut known: FxHashMap<Value, Value> = FxHashMap::default();
    for &v in &captures {
        if module.block_args(partition).len() < captures.len() {
            let ty = module.value_type(v);
            module.add_block_arg(partition, ty);
        }
    }
    for (&v, &here) in captures.iter().zip(module.block_args(partition)) {
        known.insert(v, here);
    }
    let mut inside: Vec<Op> = module.block_ops(partition).flat_map(|op| module.all_ops(op)).collect();
    let first = module.first_op(partition).expect("a partition has an end");
    inside.retain(|&op| !module.operands(op).is_empty());
    for op in inside {
        for i in 0..module.operands(op).len() {
            let v = module.operands(op)[i];
            if module.value_block(v).is_none() || is_inside(module, partition, v) {
                continue;
            }
            let here = match known.get(&v) {
                Some(&here) => here,
                None => {
                    let here = match module.defining_op(v).filter(|_| module.constant_value(v).is_some()) {
                        Some(constant) => {
                            let mut map = FxHashMap::default();
                            let clone = module.clone_op(constant, &mut map);
                            module.insert_before(clone, first);
                            module.result(clone)
                        }
                        None => {
                            captures.push(v);
                            let ty = module.value_type(v);
                            for &other in others.iter().filter(|&&b| b != partition) {
                                module.add_block_arg(other, ty);
                            }
                            module.add_block_arg(partition, ty)
                        }
                    };
                    known.insert(v, here);
                    here
                }
            };
            module.set_operand(op, i, here);
        }
    }
    module.set_operands_and_segments(w.0, &captures, &[captures.len() as u16]);
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
