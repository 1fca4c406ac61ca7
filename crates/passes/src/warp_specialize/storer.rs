//! A warp that stores: where an iteration's results go out in several stores through descriptors, one more warp hands them to the copy
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
//!     tt.descriptor_store %c[%row, %col], %x                  ttng.wait_barrier %free, %phase ^ 1
//!     (another)                                               ttg.local_store %x, %buffer
//!   }                                                         ttng.fence_async_shared
//! }                                                           ttng.arrive_barrier %ready, 1 {perWarp}
//!                                                    =>       (another)
//!                                                           }
//!                                                         }
//!                                                         partition1(...) num_warps(1) {
//!                                                           scf.for %t = ... iter_args(%phase = 0) {
//!                                                             ttng.wait_barrier %ready, %phase
//!                                                             ttng.async_tma_copy_local_to_global %c[%row, %col] %buffer
//!                                                             ttng.async_tma_store_wait
//!                                                             ttng.arrive_barrier %free, 1
//!                                                             (another)
//!                                                           }
//!                                                           ttg.warp_return
//!                                                         }
//! ```

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::dialect::{arith, tt, ttg, ttng};
use tilewright_ir::{AttrKind, Block, Builder, Module, Op, Value};

use super::{channels, counters, producer};
use crate::allocate_shared::buffer_bytes;
use crate::target::TargetInfo;
use crate::{membar, scope, tma};

/// Registers that a thread of the storing warp wants, as of the producer's.
const REGISTERS: i32 = 40;

/// A store, its buffer, and the mbarriers that say that the buffer is full, and that it has been read.
struct Outlet {
    store: tt::DescriptorStore,
    buffer: Value,
    ready: Value,
    free: Value,
    /// The consumers' phase.
    phase: Value,
}

/// Gives the stores in loops of the default region to a warp of their own. `None` where that is impossible, with the module
/// in any state.
pub(super) fn add(module: &mut Module, w: ttg::WarpSpecialize, target: &TargetInfo) -> Option<()> {
    let default = module.region_block(w.default_region(module));
    let end = module.last_op(default)?;
    let roots: Vec<Op> = module.block_ops(default).filter(|&op| op != end).collect();
    let stores = find(module, &roots)?;
    let outlets = allocate(module, w.0, &roots, &stores, target)?;

    let holder = module.region_block(w.partition_holder(module));
    let partitions = module.first_op(holder)?;
    let region = module.add_region(partitions);
    let partition = module.append_block(region, &[]);
    let mut map: FxHashMap<Value, Value> = FxHashMap::default();
    let kept: Vec<Op> = clone_into(module, partition, &roots, &stores, &mut map);
    let stop = ttg::WarpReturn::build(&mut Builder::at_end(module, partition));
    module.set_op_loc(stop.0, module.op_loc(w.0));
    let mut warps = w.partition_num_warps(module);
    warps.push(1);
    let mut registers = w.requested_registers(module)?;
    registers.push(REGISTERS);
    for (name, values) in [("partitionNumWarps", warps), ("requestedRegisters", registers)] {
        let attr = module.attr(AttrKind::I32Array(values));
        module.set_attr(w.0, name, attr);
    }

    for (outlet, &clone) in outlets.iter().zip(&kept) {
        send(module, outlet, clone, map[&outlet.phase]);
        fill(module, outlet);
    }
    tilewright_ir::dce::run(module).ok()?;
    producer::is_lean(module, partition, &roots).then_some(())?;
    let tensors = module.block_ops(partition).any(|op| producer::has_tensors(module, op));
    (!tensors).then_some(())?;
    producer::capture(module, w, partition);
    Some(())
}

/// The stores of the region, if several follow each other and all of them can go out this way: TMA does them, and they run
/// as often as their loops. None where there are atomics: who is told by one that a block is there looks for it.
fn find(module: &Module, roots: &[Op]) -> Option<Vec<tt::DescriptorStore>> {
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
    follow.then_some(found)
}

/// Buffers and mbarriers before the specialization, and phases through the loops; `None` if there is no room.
fn allocate(
    module: &mut Module,
    first: Op,
    roots: &[Op],
    stores: &[tt::DescriptorStore],
    target: &TargetInfo,
) -> Option<Vec<Outlet>> {
    let func = scope::function(module, first)?;
    let bytes = |m: &Module, ty| buffer_bytes(m, ty).map_or(u32::MAX, |(bytes, _)| bytes);
    let allocs = module.all_ops(func).into_iter().filter_map(|op| ttg::LocalAlloc::cast(module, op));
    // And scratch of conversions, which is small beside the rings.
    let mut used: u32 =
        allocs.map(|a| bytes(module, module.value_type(a.result(module)))).sum::<u32>() + 1024;
    let warps = module.int_attr(module.root(), "ttg.num-warps").map_or(4, |n| n as i32);
    let mut made = Vec::new();
    for &store in stores {
        let tile = module.shape(module.value_type(store.src(module))).unwrap_or(&[]).to_vec();
        let ty = tma::tile_buffer(module, store.desc(module), &tile);
        used = used.saturating_add(bytes(module, ty));
        (used <= target.max_shared).then_some(())?;
        let barrier = channels::barrier_type(module);
        let mut b = Builder::before(module, first);
        let buffer = ttg::LocalAlloc::build(&mut b, None, ty).result(b.module);
        let mut mbarrier = |count: i32| {
            let one = ttg::LocalAlloc::build(&mut b, None, barrier).result(b.module);
            ttng::InitBarrier::build(&mut b, one, count);
            one
        };
        let (ready, free) = (mbarrier(warps), mbarrier(1));
        membar::leave_alone(module, buffer);
        made.push((store, buffer, ready, free));
    }
    let mut blocks: Vec<Block> = stores.iter().filter_map(|s| module.parent_block(s.0)).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let mut phases: FxHashMap<Block, Value> = FxHashMap::default();
    for block in blocks {
        let zero = Builder::before(module, first).i32(0);
        let mut at = FxHashMap::default();
        counters::through(module, roots, &[block], 1, (zero, zero), &mut at);
        phases.insert(block, at.get(&block)?.1);
    }
    made.into_iter()
        .map(|(store, buffer, ready, free)| {
            let phase = phases[&module.parent_block(store.0)?];
            Some(Outlet { store, buffer, ready, free, phase })
        })
        .collect()
}

/// Clones the region's operations of which only the stores stay; returns these.
fn clone_into(
    module: &mut Module,
    partition: Block,
    roots: &[Op],
    stores: &[tt::DescriptorStore],
    map: &mut FxHashMap<Value, Value>,
) -> Vec<Op> {
    let mut kept = Vec::new();
    for &root in roots {
        let clone = module.clone_op(root, map);
        module.append_op(partition, clone);
        // Clones stand in the order of what they were cloned from.
        let (from, to) = (module.all_ops(root), module.all_ops(clone));
        kept.extend(from.iter().zip(to).filter(|(op, _)| stores.iter().any(|s| s.0 == **op)).map(|(_, c)| c));
    }
    let all: Vec<Op> = module.block_ops(partition).flat_map(|op| module.all_ops(op)).collect();
    let stay: FxHashSet<Op> = kept.iter().copied().collect();
    producer::erase_effects(module, &all, |op| stay.contains(&op));
    kept
}

/// The storing warp's side.
fn send(module: &mut Module, outlet: &Outlet, clone: Op, phase: Value) {
    let store = tt::DescriptorStore(clone);
    let (desc, coord) = (store.desc(module), store.indices(module).to_vec());
    let mut b = Builder::before(module, clone);
    ttng::WaitBarrier::build(&mut b, outlet.ready, phase, None, &[]);
    ttng::AsyncTmaCopyLocalToGlobal::build(&mut b, desc, &coord, outlet.buffer);
    ttng::TmaStoreWait::build(&mut b, 0);
    ttng::ArriveBarrier::build(&mut b, outlet.free, None, 1, false);
    module.erase_op(clone);
}

/// The consumers' side.
fn fill(module: &mut Module, outlet: &Outlet) {
    let src = outlet.store.src(module);
    let mut b = Builder::before(module, outlet.store.0);
    // The first time, nothing has been stored: the phase before the first counts as complete.
    let one = b.i32(1);
    let before = arith::Xori::build(&mut b, outlet.phase, one).result(b.module);
    ttng::WaitBarrier::build(&mut b, outlet.free, before, None, &[]);
    ttg::LocalStore::build(&mut b, src, outlet.buffer);
    ttng::FenceAsyncShared::build(&mut b, false);
    ttng::ArriveBarrier::build(&mut b, outlet.ready, None, 1, true);
    module.erase_op(outlet.store.0);
}
