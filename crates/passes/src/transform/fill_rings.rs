//! Slots of a kernel's own rings that are filled with what is loaded are filled by copies, whose end the ring waits for: nobody in the
//! writer's warps does, which go on to the next slot.
//!
//! A field is filled in one way. It is
//!
//! - by the copy engine, if each time a whole block of a descriptor is stored that lies there as in the field;
//! - by asynchronous copies of threads, if each time what is stored has been loaded through pointers, and can be copied (`cp.async`);
//! - by stores, otherwise.
//!
//! Only rings whose ends are different warps are left here ([`order_rings`](super::order_rings)). A field is copied to once between the
//! acquire of a slot and its commit, in their block: copies have no order among themselves. What is loaded is used for nothing else, and
//! copied where it was stored: nothing between writes memory, but a wait for the slot may stand there.
//!
//! The rings are marked as the kernel's own for the passes behind, which make others.
//!
//! Why here: descriptors and buffers have their layouts, and the width of loads is known; before loops are scheduled, which would
//! begin the loads iterations ahead.
//!
//! ```text
//! ttg.ring_acquire %ring[%slot], %phase               ttg.ring_acquire %ring[%slot], %phase
//! %w = ttg.memdesc_index %a[%slot]                     %w = ttg.memdesc_index %a[%slot]
//! %x = tt.descriptor_load %d[%i, %j]              =>   ttg.async_copy_block_to_local %d[%i, %j], %w
//! ttg.local_store %x, %w                               ttg.ring_commit %ring[%slot]
//! ttg.ring_commit %ring[%slot]
//! ```

use tilewright_ir::dialect::{tt, ttg};
use tilewright_ir::effects::effects;
use tilewright_ir::{AttrKind, Builder, Diagnostic, Module, Op, marks};

use crate::analysis::rings::{self, Ring};
use crate::hopper::tma;
use crate::pass::{Pass, Property};
use crate::transform::allocate_shared::buffer_users;
use crate::transform::software_pipeline::schedule;
use crate::transform::user_copies;

/// The pass.
pub const PASS: Pass = Pass {
    name: "fill-rings",
    summary: "fill slots of a kernel's own rings by copies",
    requires: &[Property::LaidOut, Property::DescriptorsEncoded],
    ensures: &[],
    run: |m, t, _| run(m, t.async_copy),
};

/// Makes copies of stores to fields; by threads only where the target has such.
///
/// # Errors
/// A ring that can't be, with its place.
pub fn run(module: &mut Module, async_copy: bool) -> Result<(), Diagnostic> {
    for op in module.all_ops(module.root()) {
        let Some(create) = ttg::RingCreate::cast(module, op) else { continue };
        let mark = module.attr(AttrKind::Unit);
        module.set_attr(op, marks::PIPE, mark);
        let ring = Ring::of(module, create)?;
        for field in &ring.fields {
            let Some(stores) = stores(module, &ring, field.alloc) else { continue };
            let blocks: Option<Vec<_>> = stores.iter().map(|&s| block(module, s)).collect();
            if let Some(blocks) = blocks {
                stores.into_iter().zip(blocks).for_each(|(store, load)| copy_block(module, store, load));
                continue;
            }
            let loads: Option<Vec<_>> = stores.iter().map(|&s| pointers(module, s)).collect();
            if let Some(loads) = loads.filter(|_| async_copy) {
                stores
                    .into_iter()
                    .zip(loads)
                    .for_each(|(store, load)| user_copies::by_copy(module, store, load));
            }
        }
    }
    Ok(())
}

/// What is written to a field, if these are stores of all of a slot, one between an acquire and its commit.
fn stores(module: &Module, ring: &Ring, alloc: ttg::LocalAlloc) -> Option<Vec<ttg::LocalStore>> {
    let users = buffer_users(module, alloc.result(module));
    let mut rings = users.iter().filter(|&&op| ttg::RingCreate::cast(module, op).is_some());
    if rings.nth(1).is_some() {
        return None;
    }
    let writers = users.into_iter().filter(|&op| rings::writes(module, op, alloc));
    let stores: Option<Vec<_>> = writers.map(|op| ttg::LocalStore::cast(module, op)).collect();
    let stores = stores.filter(|stores| !stores.is_empty())?;
    let mut acquires = Vec::new();
    for &store in &stores {
        let slot = ttg::MemdescIndex::of(module, store.dst(module))?.index(module);
        let of_slot =
            |op: Op| ring.uses.contains(&op) && rings::same_slot(module, module.operands(op)[1], slot);
        let mut before = std::iter::successors(module.prev_op(store.0), |&op| module.prev_op(op));
        let acquire = before.find(|&op| of_slot(op))?;
        let mut behind = std::iter::successors(module.next_op(store.0), |&op| module.next_op(op));
        let commit = behind.find(|&op| of_slot(op))?;
        let is_between = ttg::RingAcquire::cast(module, acquire).is_some()
            && ttg::RingCommit::cast(module, commit).is_some();
        if !is_between || acquires.contains(&acquire) {
            return None;
        }
        acquires.push(acquire);
    }
    Some(stores)
}

/// The load of a block that a store puts into a slot, if the copy engine can put it there.
fn block(module: &Module, store: ttg::LocalStore) -> Option<tt::DescriptorLoad> {
    let load = tt::DescriptorLoad::cast(module, source(module, store)?)?;
    let (desc, slot) = (load.desc(module), module.value_type(store.dst(module)));
    let block = tma::block_type(module, desc).filter(|_| tma::is_encoded(module, desc))?;
    let fits = module.encoding(block) == module.encoding(slot)
        && module.shape(block) == module.shape(slot)
        && module.element_type(block) == module.element_type(slot)
        && tma::begins_aligned(module, store.dst(module));
    fits.then_some(load)
}

/// The load through pointers that a store puts into a slot, if threads can copy it there.
fn pointers(module: &Module, store: ttg::LocalStore) -> Option<tt::Load> {
    let load = tt::Load::cast(module, source(module, store)?)?;
    schedule::can_copy(module, load.0).then_some(load)
}

/// What gives the stored value, if nothing but the store uses that and nothing stands between that a copy may not pass.
fn source(module: &Module, store: ttg::LocalStore) -> Option<Op> {
    let mut value = store.src(module);
    loop {
        if module.uses(value).len() != 1 {
            return None;
        }
        match ttg::ConvertLayout::of(module, value) {
            Some(convert) => value = convert.src(module),
            None => break,
        }
    }
    let op = module.defining_op(value)?;
    let between = std::iter::successors(module.next_op(op), |&op| module.next_op(op));
    let passes = |op: &Op| ttg::RingAcquire::cast(module, *op).is_some() || !effects(module, *op).writes;
    let stands = between.take_while(|&op| op != store.0).all(|op| {
        // Other fields are filled there.
        passes(&op) || ttg::LocalStore::cast(module, op).is_some() || is_copy(module, op)
    });
    (module.parent_block(op) == module.parent_block(store.0) && stands).then_some(op)
}

/// Whether an operation is a copy to shared memory that another store has become.
fn is_copy(module: &Module, op: Op) -> bool {
    ttg::AsyncCopyBlockToLocal::cast(module, op).is_some()
        || ttg::AsyncCopyGlobalToLocal::cast(module, op).is_some()
}

fn copy_block(module: &mut Module, store: ttg::LocalStore, load: tt::DescriptorLoad) {
    let (desc, coord, dst) = (load.desc(module), load.indices(module).to_vec(), store.dst(module));
    let (cache, evict) = (load.cache(module), load.evict(module));
    let mut b = Builder::before(module, store.0);
    ttg::AsyncCopyBlockToLocal::build(&mut b, desc, &coord, dst, None, cache, evict);
    user_copies::erase_store(module, store);
}
