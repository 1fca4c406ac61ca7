//! The producer's side: a clone of the loops in which only the loads stay.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::dialect::{arith, scf, tt, ttg, ttng, ub};
use tilewright_ir::effects::effects;
use tilewright_ir::{Block, Builder, Module, Op, Region, Trait, Type, Value};

use super::channels::{Channel, barrier};
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
    for &op in all.iter().rev() {
        let ends = module.has_trait(op, Trait::Terminator);
        if ends || !module.regions(op).is_empty() || !effects(module, op).writes {
            continue;
        }
        for i in 0..module.results(op).len() {
            poison(module, op, module.results(op)[i]);
        }
        module.erase_op(op);
    }
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
    let bytes: u32 = c
        .slot_types
        .iter()
        .map(|&t| module.shape(t).unwrap_or(&[]).iter().product::<u32>() * module.bits(t).max(8) / 8)
        .sum();
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
    ttng::BarrierExpect::build(&mut b, full, yes, bytes as i32);
    for (((&op, &ring), &ty), &mask) in loads.iter().zip(&c.rings).zip(&c.slot_types).zip(&c.masks) {
        let load = tt::DescriptorLoad(op);
        let (cache, evict) = (load.cache(b.module), load.evict(b.module));
        let (desc, coord) = (load.desc(b.module), load.indices(b.module).to_vec());
        let view = ttg::MemdescIndex::build(&mut b, ring, slot, ty).result(b.module);
        let copy = ttng::AsyncTmaCopyGlobalToLocal::build(
            &mut b, desc, &coord, full, view, yes, cache, evict, false,
        );
        multicast::mark_copy(b.module, copy, mask);
    }
    for &op in loads {
        let value = module.result(op);
        poison(module, op, value);
        module.erase_op(op);
    }
}

/// Whether what is left of the producer works on scalars alone and reads nothing that the consumers may write.
pub(super) fn is_scalar(module: &Module, region: Region, range: &[Op]) -> bool {
    let writes = range.iter().any(|&op| {
        module.all_ops(op).into_iter().any(|o| {
            tt::Store::cast(module, o).is_some()
                || tt::AtomicRmw::cast(module, o).is_some()
                || tt::DescriptorStore::cast(module, o).is_some()
        })
    });
    let block = module.region_block(region);
    let ops: Vec<Op> = module.block_ops(block).flat_map(|op| module.all_ops(op)).collect();
    ops.iter().all(|&op| {
        let tensors = module
            .operands(op)
            .iter()
            .chain(module.results(op))
            .any(|&v| module.is_tensor(module.value_type(v)));
        let reads = tt::Load::cast(module, op).is_some();
        !tensors && ub::Poison::cast(module, op).is_none() && !(reads && writes)
    })
}

/// Hands over what the producer uses from outside: constants are made again, everything else is captured.
pub(super) fn capture(module: &mut Module, w: ttg::WarpSpecialize, partition: Block) {
    let mut inside: Vec<Op> = module.block_ops(partition).flat_map(|op| module.all_ops(op)).collect();
    let mut known: FxHashMap<Value, Value> = FxHashMap::default();
    let mut captures = Vec::new();
    let first = module.first_op(partition).expect("a partition has an end");
    inside.retain(|&op| !module.operands(op).is_empty());
    for op in inside {
        for i in 0..module.operands(op).len() {
            let v = module.operands(op)[i];
            let from = match module.value_block(v) {
                Some(b) => b,
                None => continue,
            };
            let is_inside = from == partition
                || module
                    .block_parent_op(from)
                    .is_some_and(|p| module.ancestor_in_block(partition, p).is_some());
            if is_inside {
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
