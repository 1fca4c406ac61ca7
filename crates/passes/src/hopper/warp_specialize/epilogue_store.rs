//! The epilogue store warp: where an iteration's results go out in several stores through descriptors, one more warp hands them to the copy
//! engine.
//!
//! The copy engine takes a tile box by box, and the warp that hands it over waits meanwhile: on an H100 about 1000 cycles for
//! 64 KiB. Before the next store of the iteration all others would wait for that warp at a barrier. With a warp of its own for
//! stores consumers have no barriers among themselves: warp groups meet only at mbarriers. (Of a single store the end of
//! an iteration is all that is left to wait for, in which another warp group's products go on: there it has been measured to
//! gain nothing.)
//!
//! ```text
//! default {                                               default {
//!   scf.for %t = ... {                                      scf.for %t = ... iter_args(%phase = 0) {
//!     ...                                                     ...
//!     tt.descriptor_store %c[%row, %col], %x                  ttg.ring_acquire %ring[%c0], %phase
//!     (another)                                               ttg.local_store %x, %field[%c0]
//!   }                                                         ttg.ring_commit %ring[%c0]
//! }                                                  =>       (another)
//!                                                           }
//!                                                         }
//!                                                         partition1(...) num_warps(1) {
//!                                                           scf.for %t = ... iter_args(%phase = 0) {
//!                                                             ttg.ring_wait %ring[%c0], %phase
//!                                                             ttng.async_tma_copy_local_to_global %c[%row, %col] %field[%c0]
//!                                                             ttng.async_tma_store_wait
//!                                                             ttg.ring_release %ring[%c0]
//!                                                             (another)
//!                                                           }
//!                                                           ttg.warp_return
//!                                                         }
//! ```

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{tt, ttg, ttng};
use tilewright_ir::opdef::Access;
use tilewright_ir::{AttrKind, Block, Builder, Diagnostic, Module, Op, Type, Value};

use super::{add_partitions, channels, pipeline_state, producer};
use crate::analysis::global_bases::GlobalBases;
use crate::analysis::{rings, scope};
use crate::hopper::{captures, tma};
use crate::target::TargetInfo;
use crate::transform::allocate_shared::buffer_bytes;

/// Registers that a thread of the epilogue store warp wants, as of the producer's.
const REGISTERS: i32 = 40;

/// A store, and the ring of one slot through which its tiles go.
struct StoreChannel {
    store: tt::DescriptorStore,
    ring: Value,
    field: Value,
    /// The type of the slot.
    slot: Type,
}

/// Gives the stores in loops of the default region to a warp of their own, where that is possible.
pub(super) fn add(
    module: &mut Module,
    w: ttg::WarpSpecialize,
    target: &TargetInfo,
) -> Result<(), Diagnostic> {
    let default = module.region_block(w.default_region(module));
    let Some(end) = module.last_op(default) else { return Ok(()) };
    let roots: Vec<Op> = module.block_ops(default).filter(|&op| op != end).collect();
    let (Some(stores), Some(requested)) = (find(module, w.0, &roots), w.requested_registers(module)) else {
        return Ok(());
    };
    let Some(types) = fit(module, w.0, &stores, target) else { return Ok(()) };
    let outgoing = allocate(module, w.0, stores, &types);

    // Until it is known to be possible, it stands by itself, and nothing else changes.
    let trial =
        ttg::WarpSpecialize::build(&mut Builder::before(module, w.0), &[], vec![1], None, None, None, &[]);
    let made = add_partitions(module, trial);
    let kept = clone_into(module, made, &roots, &outgoing);
    let phases = phases(module, w.0, &module.block_ops(made).collect::<Vec<_>>(), &kept);
    for ((channel, &clone), phase) in outgoing.iter().zip(&kept).zip(phases) {
        send(module, channel, clone, phase);
    }
    tilewright_ir::dce::run(module)?;
    let tensors = |m: &Module| m.block_ops(made).any(|op| producer::has_tensors(m, op));
    if !producer::is_lean(module, made, &roots) || tensors(module) {
        module.erase_op(trial.0);
        return tilewright_ir::dce::run(module);
    }

    let partitions = module.first_op(module.region_block(w.partition_holder(module)));
    let region = module.add_region(partitions.expect("there is a producer"));
    let from = module.block_region(made).expect("an attached block");
    module.move_blocks(from, region);
    module.erase_op(trial.0);
    let added = |mut values: Vec<i32>, value: i32| {
        values.push(value);
        values
    };
    let warps = added(w.partition_num_warps(module), 1);
    let registers = added(requested, REGISTERS);
    for (name, values) in [("partitionNumWarps", warps), ("requestedRegisters", registers)] {
        let attr = module.attr(AttrKind::I32Array(values));
        module.set_attr(w.0, name, attr);
    }
    let stores: Vec<Op> = outgoing.iter().map(|o| o.store.0).collect();
    let phases = self::phases(module, w.0, &roots, &stores);
    for (channel, phase) in outgoing.iter().zip(phases) {
        fill(module, channel, phase);
    }
    captures::capture(module, w, made);
    tilewright_ir::dce::run(module)
}

/// The stores of the region, if several follow each other and all of them can go out this way: TMA does them, and they run
/// as often as their loops. None where there are atomics, since who is told by one that a block is there looks for it, nor where the
/// program accesses what is stored otherwise, too: nothing would put that in order with another warp's copies.
fn find(module: &Module, first: Op, roots: &[Op]) -> Option<Vec<tt::DescriptorStore>> {
    let mut found = Vec::new();
    for &root in roots {
        for op in module.all_ops(root) {
            if tt::AtomicRmw::cast(module, op).is_some() || tt::AtomicCas::cast(module, op).is_some() {
                return None;
            }
            let Some(store) = tt::DescriptorStore::cast(module, op) else { continue };
            let block = module.parent_block(op)?;
            let fits = tma::is_encoded(module, store.desc(module)) && channels::in_loops(module, block, root);
            fits.then(|| found.push(store))?;
        }
    }
    let block = |s: &tt::DescriptorStore| module.parent_block(s.0);
    let follow = found.windows(2).any(|pair| block(&pair[0]) == block(&pair[1]));
    (follow && !is_accessed_elsewhere(module, first, &found)).then_some(found)
}

/// Whether the function accesses a tensor that stores go to by something else.
fn is_accessed_elsewhere(module: &Module, first: Op, stores: &[tt::DescriptorStore]) -> bool {
    let Some(func) = scope::function(module, first) else { return true };
    let stores: Vec<Op> = stores.iter().map(|store| store.0).collect();
    let global = GlobalBases::of(module);
    let written = global.written(&stores);
    let others = module.all_ops(func).into_iter().filter(|op| !stores.contains(op));
    let touched = |op| [Access::Read, Access::Write].map(|access| global.touched(op, access));
    others.flat_map(touched).flatten().any(|base| written.contains(&base))
}

/// The types of the tiles that are stored; `None` if there is no room for them all.
fn fit(
    module: &mut Module,
    first: Op,
    stores: &[tt::DescriptorStore],
    target: &TargetInfo,
) -> Option<Vec<Type>> {
    let func = scope::function(module, first)?;
    let bytes = |m: &Module, ty| buffer_bytes(m, ty).map_or(u32::MAX, |(bytes, _)| bytes);
    let allocs = module.all_ops(func).into_iter().filter_map(|op| ttg::LocalAlloc::cast(module, op));
    // And scratch of conversions, which is small beside the rings.
    let mut used: u32 =
        allocs.map(|a| bytes(module, module.value_type(a.result(module)))).sum::<u32>() + 1024;
    let mut types = Vec::new();
    for store in stores {
        let tile = module.shape(module.value_type(store.src(module))).unwrap_or(&[]).to_vec();
        let ty = tma::tile_buffer(module, store.desc(module), &tile);
        used = used.saturating_add(bytes(module, ty));
        types.push(ty);
    }
    (used <= target.max_shared).then_some(types)
}

/// Rings before the specialization.
fn allocate(
    module: &mut Module,
    first: Op,
    stores: Vec<tt::DescriptorStore>,
    types: &[Type],
) -> Vec<StoreChannel> {
    let channel = |(store, &slot)| {
        let mut b = Builder::before(module, first);
        let field = rings::field(&mut b, slot, 1);
        let ring = rings::create(&mut b, &[field], 1);
        StoreChannel { store, ring, field, slot }
    };
    stores.into_iter().zip(types).map(channel).collect()
}

/// The phase of each of the stores, carried through the loops of `roots`.
fn phases(module: &mut Module, first: Op, roots: &[Op], stores: &[Op]) -> Vec<Value> {
    let blocks: Vec<Block> =
        stores.iter().map(|&op| module.parent_block(op).expect("an attached operation")).collect();
    let mut distinct = blocks.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let mut phases: FxHashMap<Block, Value> = FxHashMap::default();
    for block in distinct {
        let zero = Builder::before(module, first).i32(0);
        let mut at = FxHashMap::default();
        pipeline_state::through(module, roots, &[block], 1, (zero, zero), &mut at);
        phases.insert(block, at[&block].1);
    }
    blocks.iter().map(|block| phases[block]).collect()
}

/// Clones the region's operations, of which only the stores stay, before the end of `partition`; returns the stores.
fn clone_into(module: &mut Module, partition: Block, roots: &[Op], outgoing: &[StoreChannel]) -> Vec<Op> {
    let end = module.last_op(partition).expect("a partition has an end");
    let mut map: FxHashMap<Value, Value> = FxHashMap::default();
    let mut clones: FxHashMap<Op, Op> = FxHashMap::default();
    for &root in roots {
        let clone = module.clone_op(root, &mut map);
        module.insert_before(clone, end);
        // Clones stand in the order of what they were cloned from.
        clones.extend(module.all_ops(root).into_iter().zip(module.all_ops(clone)));
    }
    let kept: Vec<Op> = outgoing.iter().map(|o| clones[&o.store.0]).collect();
    let all: Vec<Op> =
        module.block_ops(partition).filter(|&op| op != end).flat_map(|op| module.all_ops(op)).collect();
    producer::erase_effects(module, &all, |op| kept.contains(&op));
    kept
}

/// The epilogue store warp's side.
fn send(module: &mut Module, channel: &StoreChannel, clone: Op, phase: Value) {
    let store = tt::DescriptorStore(clone);
    let (desc, coord) = (store.desc(module), store.indices(module).to_vec());
    let mut b = Builder::before(module, clone);
    let slot = b.i32(0);
    ttg::RingWait::build(&mut b, channel.ring, slot, phase, None, None, None);
    let tile = ttg::MemdescIndex::build(&mut b, channel.field, slot, channel.slot).result(b.module);
    ttng::AsyncTmaCopyLocalToGlobal::build(&mut b, desc, &coord, tile);
    ttng::TmaStoreWait::build(&mut b, 0);
    ttg::RingRelease::build(&mut b, channel.ring, slot, None, None);
    module.erase_op(clone);
}

/// The consumers' side.
fn fill(module: &mut Module, channel: &StoreChannel, phase: Value) {
    let src = channel.store.src(module);
    let mut b = Builder::before(module, channel.store.0);
    let slot = b.i32(0);
    ttg::RingAcquire::build(&mut b, channel.ring, slot, Some(phase), None);
    let tile = ttg::MemdescIndex::build(&mut b, channel.field, slot, channel.slot).result(b.module);
    ttg::LocalStore::build(&mut b, src, tile);
    ttg::RingCommit::build(&mut b, channel.ring, slot);
    module.erase_op(channel.store.0);
}
