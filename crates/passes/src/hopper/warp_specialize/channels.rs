//! Channels: which loads go through a ring together, the rings, and the consumers' side.

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{arith, scf, tt, ttg};
use tilewright_ir::{Block, Builder, Module, Op, Opcode, Shape, Type, TypeKind, Value};

use super::{Positions, is_structure, position};
use crate::analysis::counting::Counting;
use crate::analysis::global_bases::GlobalBases;
use crate::analysis::promises::Promises;
use crate::analysis::{rings, scope};
use crate::hopper::{multicast, tma};
use crate::machine::GROUP;
use crate::target::TargetInfo;
use crate::transform::allocate_shared::buffer_bytes;
use crate::transform::software_pipeline::{budget, schedule};

/// A load that fills a slot.
#[derive(Debug, Clone, Copy)]
pub(super) enum Load {
    /// By TMA.
    Block(tt::DescriptorLoad),
    /// By `cp.async`.
    Pointers(tt::Load),
}

impl Load {
    pub fn cast(module: &Module, op: Op) -> Option<Load> {
        let block = tt::DescriptorLoad::cast(module, op).map(Load::Block);
        block.or_else(|| tt::Load::cast(module, op).map(Load::Pointers))
    }

    pub fn op(self) -> Op {
        match self {
            Load::Block(load) => load.0,
            Load::Pointers(load) => load.0,
        }
    }

    pub fn result(self, module: &Module) -> Value {
        module.result(self.op())
    }

    /// The bits in which CTAs differ that get the same; each makes its own copies through pointers.
    fn shared_by(self, module: &Module) -> u32 {
        match self {
            Load::Block(load) => multicast::shares(module, load),
            Load::Pointers(_) => 0,
        }
    }
}

/// Loads of one loop body that are waited for at one place.
#[derive(Debug, Clone)]
pub(super) struct Channel {
    /// The loop body.
    pub block: Block,
    /// The loads, in program order.
    pub loads: Vec<Load>,
    /// The type of a slot of each load's ring.
    pub slot_types: Vec<Type>,
    /// The bits in which CTAs differ that get the same from each load ([`multicast`]).
    pub masks: Vec<u32>,
    /// Before which operation of the body consumers wait, and after which all have read.
    pub first_reader: Op,
    pub last_reader: Op,
    /// How many slots the rings have.
    pub slots: u32,
    /// Channels of loops that don't run at the same time, with the same loads, share their rings: the family's number.
    pub family: u32,
    /// Which counter it advances: families that advance at the same places have one.
    pub counter: u32,
    /// The ring and its fields, one for each load; from [`allocate`].
    pub ring: Option<Value>,
    pub fields: Vec<Value>,
}

/// The channels of a range of operations. `pointers`: loads through pointers too.
pub(super) fn find(
    module: &mut Module,
    range: &[Op],
    target: &TargetInfo,
    num_stages: u32,
    pointers: bool,
) -> Vec<Channel> {
    let mut channels: Vec<Channel> = Vec::new();
    let written = GlobalBases::of(module).written(range);
    for &root in range {
        for op in module.all_ops(root) {
            let Some(load) = Load::cast(module, op) else { continue };
            if !pointers && matches!(load, Load::Pointers(_)) {
                continue;
            }
            let Some(block) = module.parent_block(op).filter(|&b| in_loops(module, b, root)) else {
                continue;
            };
            // What the consumers write they load themselves.
            if GlobalBases::of(module).may_read(op, &written) {
                continue;
            }
            let Some(slot) = slot_type(module, load) else { continue };
            let Some((first, last)) = readers(module, block, load, slot) else { continue };
            if let Some(c) = channels.iter_mut().find(|c| c.block == block && c.first_reader == first) {
                if module.is_before(c.last_reader, last) {
                    c.last_reader = last;
                }
                c.loads.push(load);
                c.slot_types.push(slot);
                c.masks.push(load.shared_by(module));
                continue;
            }
            let l = module.block_parent_op(block).expect("a loop body");
            let innermost =
                module.all_ops(l).into_iter().skip(1).all(|o| scf::For::cast(module, o).is_none());
            let stages = schedule::stages_of(module, l, num_stages).max(schedule::SLOTS_OF_PRODUCERS);
            let wanted = if innermost { stages } else { 1 };
            channels.push(Channel {
                block,
                loads: vec![load],
                slot_types: vec![slot],
                masks: vec![load.shared_by(module)],
                first_reader: first,
                last_reader: last,
                slots: wanted.min(schedule::most_stages(module)),
                family: 0,
                counter: 0,
                ring: None,
                fields: Vec::new(),
            });
        }
    }
    share(module, &mut channels);
    deepen(module, range, target, &mut channels);
    channels
}

/// Gives rings that loops around others fill a second slot, if there is shared memory for it, without taking another program's place: then what the next iteration's
/// inner loops load is not held up behind a slot that is read to the end of this one.
fn deepen(module: &Module, range: &[Op], target: &TargetInfo, channels: &mut [Channel]) {
    let (Some(&first), true) = (range.first(), schedule::most_stages(module) > 1) else { return };
    // Counter, family, slots, and the bytes of one.
    let mut rings: Vec<(u32, u32, u32, u32)> = channels
        .iter()
        .map(|c| {
            let bytes = |&ty: &Type| buffer_bytes(module, ty).map_or(0, |(bytes, _)| bytes);
            (c.counter, c.family, c.slots, c.slot_types.iter().map(bytes).sum())
        })
        .collect();
    rings.sort_unstable();
    rings.dedup();
    let taken: u32 = rings.iter().map(|&(_, _, slots, bytes)| slots * bytes).sum();
    // As much as each of those that share a multiprocessor now may have, at most.
    let most = target.max_shared / ctas(module, range, target, taken);
    let mut room = most.saturating_sub(taken + budget::beside_rings(module, first));
    // Rings that have a counter together have as many slots.
    for together in rings.chunk_by(|a, b| a.0 == b.0).filter(|rings| rings[0].2 == 1) {
        let wanted = together.iter().map(|ring| ring.3).sum::<u32>();
        if wanted <= room {
            room -= wanted;
            channels.iter_mut().filter(|c| c.counter == together[0].0).for_each(|c| c.slots = 2);
        }
    }
}

/// How many CTAs may share a multiprocessor, where rings take so much of shared memory and a warp group loads.
fn ctas(module: &Module, range: &[Op], target: &TargetInfo, rings: u32) -> u32 {
    let ops = range.iter().flat_map(|&op| module.all_ops(op));
    let loops: Vec<scf::For> = ops.filter_map(|op| scf::For::cast(module, op)).collect();
    let is_around = |l: scf::For| loops.iter().any(|inner| module.parent_op(inner.0) == Some(l.0));
    let registers = loops.iter().filter(|&&l| !is_around(l)).map(|&l| budget::registers(module, l)).max();
    let warps = range.first().map_or(0, |&op| scope::num_warps(module, op)) + GROUP;
    budget::ctas(target, warps, registers.unwrap_or(budget::OTHERS), rings)
}

/// Whether a block is the body of a loop which, up to `root`, lies in loops and branches only.
pub(super) fn in_loops(module: &Module, block: Block, root: Op) -> bool {
    let parent_loop = module.block_parent_op(block).is_some_and(|p| scf::For::cast(module, p).is_some());
    let mut at = block;
    loop {
        let Some(parent) = module.block_parent_op(at) else { return false };
        if !parent_loop || !is_structure(module, parent) {
            return false;
        }
        if parent == root {
            return true;
        }
        let Some(outer) = module.parent_block(parent) else { return false };
        at = outer;
    }
}

/// The type of a slot for a load: laid out as the buffer that it fills, which its descriptor must agree with.
fn slot_type(module: &mut Module, load: Load) -> Option<Type> {
    let (encoding, element) = match load {
        Load::Block(load) => {
            if !tma::fills_rings(module, load.desc(module)) {
                return None;
            }
            let desc = module.value_type(load.desc(module));
            let TypeKind::TensorDesc { block } = module.type_kind(desc) else { return None };
            (module.encoding(*block)?, module.element_type(*block))
        }
        Load::Pointers(load) => {
            if !schedule::can_fill(module, load) {
                return None;
            }
            let mut buffers =
                module.uses(load.result(module)).iter().filter_map(|u| ttg::LocalAlloc::cast(module, u.op));
            let ty = module.value_type(buffers.next()?.result(module));
            (module.encoding(ty)?, module.element_type(ty))
        }
    };
    let shape: Shape = module.shape(module.value_type(load.result(module)))?.into();
    Some(module.buffer_type(&shape, element, encoding, true))
}

/// The buffers that a load fills and that its slot can stand for: laid out alike.
fn buffers(module: &Module, load: Load, slot: Type) -> Vec<ttg::LocalAlloc> {
    let uses = module.uses(load.result(module)).iter();
    uses.filter_map(|u| ttg::LocalAlloc::cast(module, u.op))
        .filter(|a| module.encoding(module.value_type(a.result(module))) == module.encoding(slot))
        .collect()
}

/// The operations that read what a load brings, wherever they stand.
fn reading(module: &Module, load: Load, slot: Type) -> Vec<Op> {
    let direct = buffers(module, load, slot);
    let mut found: Vec<Op> = Vec::new();
    let mut work = vec![load.result(module)];
    while let Some(v) = work.pop() {
        for u in module.uses(v) {
            let view = matches!(
                module.opcode(u.op),
                Some(Opcode::Ttg(
                    ttg::Kind::MemdescTrans | ttg::Kind::MemdescSubslice | ttg::Kind::MemdescReshape
                ))
            );
            if view || direct.iter().any(|a| a.0 == u.op) {
                work.push(module.result(u.op));
            } else {
                found.push(u.op);
            }
        }
    }
    found
}

/// The first and the last operation of the body that read what a load brings.
fn readers(module: &Module, block: Block, load: Load, slot: Type) -> Option<(Op, Op)> {
    let all = reading(module, load, slot).into_iter();
    let found: Vec<Op> = all.map(|op| module.ancestor_in_block(block, op)).collect::<Option<_>>()?;
    let (first, last) = ends(module, &found)?;
    // Carried on to the next iteration, it would have to stay longer than its slot.
    (Some(last) != module.last_op(block)).then_some((first, last))
}

/// The first and the last of operations of one block.
fn ends(module: &Module, ops: &[Op]) -> Option<(Op, Op)> {
    let mut ends = (*ops.first()?, *ops.first()?);
    for &op in ops {
        if module.is_before(op, ends.0) {
            ends.0 = op;
        }
        if module.is_before(ends.1, op) {
            ends.1 = op;
        }
    }
    Some(ends)
}

/// Finds which channels may share rings and counters.
fn share(module: &Module, channels: &mut [Channel]) {
    let signature = |c: &Channel| -> Vec<(Value, Type)> {
        let source = |l: &Load| match l {
            Load::Block(load) => load.desc(module),
            Load::Pointers(load) => load.result(module), // its own
        };
        c.loads.iter().map(source).zip(c.slot_types.iter().copied()).collect()
    };
    let loop_of = |c: &Channel| module.block_parent_op(c.block).expect("a loop body");
    let apart = |a: &Channel, b: &Channel| {
        !module.is_ancestor(loop_of(a), loop_of(b)) && !module.is_ancestor(loop_of(b), loop_of(a))
    };
    let mut families: Vec<Vec<usize>> = Vec::new();
    for i in 0..channels.len() {
        let fits = |f: &Vec<usize>| {
            f.iter().all(|&j| {
                channels[j].slots == channels[i].slots
                    && signature(&channels[j]) == signature(&channels[i])
                    && apart(&channels[i], &channels[j])
            })
        };
        match families.iter().position(fits) {
            Some(f) => families[f].push(i),
            None => families.push(vec![i]),
        }
    }
    let mut counters: FxHashMap<(Vec<Block>, u32), u32> = FxHashMap::default();
    for (number, family) in families.iter().enumerate() {
        let mut blocks: Vec<Block> = family.iter().map(|&i| channels[i].block).collect();
        blocks.sort_unstable();
        let next = counters.len() as u32;
        let counter = *counters.entry((blocks, channels[family[0]].slots)).or_insert(next);
        for &i in family {
            channels[i].family = number as u32;
            channels[i].counter = counter;
        }
    }
}

/// Makes rings before `first`, once a family.
pub(super) fn allocate(module: &mut Module, first: Op, channels: &mut [Channel]) {
    let mut made: FxHashMap<u32, (Vec<Value>, Value)> = FxHashMap::default();
    for c in channels {
        let (fields, ring) = made
            .entry(c.family)
            .or_insert_with(|| {
                let mut b = Builder::before(module, first);
                let fields: Vec<Value> =
                    c.slot_types.iter().map(|&slot| rings::field(&mut b, slot, c.slots)).collect();
                let ring = rings::create(&mut b, &fields, c.slots);
                (fields, ring)
            })
            .clone();
        c.fields = fields;
        c.ring = Some(ring);
    }
}

/// The consumers' side: they wait, read the slots, and say when they have.
pub(super) fn consume(module: &mut Module, channels: &[Channel], positions: &Positions) {
    let promises = Promises::of(module);
    for c in channels {
        let (slot, phase) = position(positions, c, c.block);
        let ring = c.ring.expect("allocated");
        match last_in_loop(module, c).filter(|_| c.slots == 1) {
            Some((l, reader)) => release_in_loop(module, (ring, slot), (l, reader), &promises),
            None => {
                ttg::RingRelease::build(&mut Builder::after(module, c.last_reader), ring, slot, None, None);
            }
        }
        ttg::RingWait::build(
            &mut Builder::before(module, c.first_reader),
            ring,
            slot,
            phase,
            None,
            None,
            None,
        );
        for ((&load, &field), &ty) in c.loads.iter().zip(&c.fields).zip(&c.slot_types) {
            let mut b = Builder::before(module, load.op());
            let view = ttg::MemdescIndex::build(&mut b, field, slot, ty).result(b.module);
            for a in buffers(module, load, ty) {
                rings::replace_buffer(module, a, view);
            }
            let value = load.result(module);
            if !module.is_unused(value) {
                let tensor = module.value_type(value);
                let mut b = Builder::before(module, c.first_reader);
                let loaded = ttg::LocalLoad::build(&mut b, view, None, tensor).result(b.module);
                module.replace_all_uses(value, loaded);
            }
            module.erase_op(load.op());
        }
    }
}

/// The loop behind which a channel's slot has been read, and the last operation of its body that reads it.
fn last_in_loop(module: &Module, c: &Channel) -> Option<(scf::For, Op)> {
    let l = scf::For::cast(module, c.last_reader)?;
    let body = module.region_block(l.body(module));
    let all = c.loads.iter().zip(&c.slot_types).flat_map(|(&load, &slot)| reading(module, load, slot));
    let inside: Vec<Op> = all.filter_map(|op| module.ancestor_in_block(body, op)).collect();
    let (_, last) = ends(module, &inside)?;
    (Some(last) != module.last_op(body)).then_some((l, last))
}

/// Releases a slot behind its last reader in the last iteration of a loop, or behind the loop if none runs: the producer fills the only slot while the rest of that iteration is
/// computed.
fn release_in_loop(
    module: &mut Module,
    (ring, slot): (Value, Value),
    (l, reader): (scf::For, Op),
    promises: &Promises,
) {
    let body = module.region_block(l.body(module));
    let (iv, counting) = (module.block_args(body)[0], Counting::of(module, l, promises));
    let (lower, upper, step) = (l.lower_bound(module), l.upper_bound(module), l.step(module));
    let next = arith::Addi::build(&mut Builder::after(module, reader), iv, step);
    let behind = module.next_op(next.0).expect("a loop body has an end");
    let next = next.result(module);
    let more = counting.is_inside(module, (l, behind), (iv, next), 1);
    let mut b = Builder::before(module, behind);
    let yes = b.int(1, Type::I1);
    let last = arith::Xori::build(&mut b, more, yes).result(b.module);
    ttg::RingRelease::build(&mut b, ring, slot, Some(last), None);
    let mut b = Builder::after(module, l.0);
    let none = arith::Cmpi::build(&mut b, lower, upper, arith::CmpIPredicate::Sge, Type::I1).result(b.module);
    ttg::RingRelease::build(&mut b, ring, slot, Some(none), None);
}
