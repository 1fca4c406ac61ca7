//! Slots of a kernel's own rings that are filled with what is loaded are filled by copies, whose end the ring waits for: nobody in the
//! writer's warps does, which go on to the next slot.
//!
//! A field is filled in one way. It is
//!
//! - by the copy engine, if each time a whole block of a descriptor is stored that lies there as in the field;
//! - by asynchronous copies of threads, if each time what is stored has been loaded through pointers, and can be copied (`cp.async`);
//! - by stores, otherwise.
//!
//! Only rings whose ends are different warps are left here ([`order_rings`](super::order_rings)). Each part of a field is copied to once between the
//! acquire of a slot and its commit, in their block: copies have no order among themselves. What is loaded is used for nothing else, and
//! copied where it was stored: nothing between writes memory, but a wait for the slot may stand there. Elements that a store's mask leaves out have no value
//! in a slot that has been acquired anew: a copy makes them zero. A field that the writer's own warps read is filled by stores: nobody of them waits for copies.
//! So is one of what they write, from the same base: a copy could find what they store behind it.
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
use tilewright_ir::{AttrKind, Builder, Diagnostic, Module, Op, Value, marks};

use crate::analysis::global_bases::GlobalBases;
use crate::analysis::rings::{self, Ring, guards};
use crate::analysis::{local_pointers, scope};
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
        let written = written_by_writer(module, &ring);
        for field in &ring.fields {
            let Some(stores) = stores(module, &ring, field.alloc) else { continue };
            let loads: Option<Vec<Op>> = stores.iter().map(|store| source(module, store)).collect();
            let Some(loads) = loads else { continue };
            if loads.iter().any(|&load| GlobalBases::of(module).may_read(load, &written)) {
                continue;
            }
            let blocks = stores.iter().zip(&loads).map(|(store, &load)| block(module, store, load));
            if let Some(blocks) = blocks.collect::<Option<Vec<_>>>() {
                stores.iter().zip(blocks).for_each(|(store, load)| copy_block(module, store, load));
                continue;
            }
            let loads: Option<Vec<_>> = loads.iter().map(|&load| pointers(module, load)).collect();
            for (store, load) in stores.into_iter().zip(loads.filter(|_| async_copy).into_iter().flatten()) {
                user_copies::by_copy(module, store.op, store.value, store.dst, load);
            }
        }
    }
    Ok(())
}

/// The bases of what the warps of a ring's writer write of global memory.
fn written_by_writer(module: &Module, ring: &Ring) -> Vec<Value> {
    let ops = scope::function(module, ring.create.0).map_or(vec![], |f| module.all_ops(f));
    let own: Vec<Op> = ops
        .into_iter()
        .filter(|&op| module.regions(op).is_empty() && rings::place(module, op) == ring.writer)
        .collect();
    GlobalBases::of(module).written(&own)
}

/// A store of all elements of a view.
struct Store {
    op: Op,
    value: Value,
    dst: Value,
}

impl Store {
    /// What an operation stores, if it is such a store: to a view, or through pointers to all of its elements.
    fn new(module: &Module, op: Op) -> Option<Store> {
        if let Some(store) = ttg::LocalStore::cast(module, op) {
            return Some(Store { op, value: store.src(module), dst: store.dst(module) });
        }
        let store = tt::Store::cast(module, op).filter(|_| module.op_attr(op, marks::FILLS).is_some())?;
        let &[dst] = &local_pointers::buffers(module, store.ptr(module))?[..] else { return None };
        Some(Store { op, value: store.value(module), dst })
    }
}

/// What fills a field, if these are such stores, of parts that are apart between an acquire and its commit.
fn stores(module: &Module, ring: &Ring, alloc: ttg::LocalAlloc) -> Option<Vec<Store>> {
    let users = buffer_users(module, alloc.result(module));
    if users.iter().any(|&op| rings::reads(module, op, alloc) && is_of_writer(module, ring, op)) {
        return None;
    }
    let mut stores: Vec<Store> = Vec::new();
    let mut acquires: Vec<ttg::RingAcquire> = Vec::new();
    // What a mask leaves out may be what somebody has put there at another time.
    let mut kept = alloc.src(module).is_some();
    let mut of_others: Vec<Op> = Vec::new();
    for op in users.into_iter().filter(|&op| rings::writes(module, op, alloc)) {
        let unguarded = guards::is_unguarded(module, op, alloc);
        kept |= unguarded;
        if !guards::fills(module, op, ring.create, alloc) {
            of_others.extend((!unguarded).then_some(op));
            continue;
        }
        let acquire = guards::acquired(module, op, ring.create)?;
        let store = Store::new(module, op)?;
        let slot = rings::slot_of(module, store.dst)?;
        let of_ring = |&op: &Op| ring.uses.contains(&op);
        let mut behind = std::iter::successors(module.next_op(op), |&op| module.next_op(op));
        let commit = ttg::RingCommit::cast(module, behind.find(of_ring)?)?;
        let of_slot = [acquire.slot(module), commit.slot(module)];
        let same_block = module.parent_block(acquire.0) == module.parent_block(op);
        let mut others = stores.iter().zip(&acquires).filter(|(_, a)| **a == acquire);
        if !same_block
            || !of_slot.iter().all(|&other| rings::same_slot(module, slot, other))
            || !others.all(|(other, _)| guards::are_apart(module, other.dst, store.dst))
        {
            return None;
        }
        stores.push(store);
        acquires.push(acquire);
    }
    // What another ring hands over in the same place is neither zeroed where a mask leaves it nor overtaken by a copy.
    let meets = |store: &Store| of_others.iter().any(|&op| guards::overlaps(module, op, store.dst));
    let masked = stores.iter().any(|store| tt::Store::cast(module, store.op).is_some());
    (!(stores.is_empty() || masked && kept || stores.iter().any(meets))).then_some(stores)
}

/// Whether the writer's own warps run an operation, and not because they have waited for a slot as a reader.
fn is_of_writer(module: &Module, ring: &Ring, op: Op) -> bool {
    let around = std::iter::successors(Some(op), |&op| module.parent_op(op));
    let mut before =
        around.flat_map(|op| std::iter::successors(module.prev_op(op), |&op| module.prev_op(op)));
    let last = before.find(|op| ring.uses.contains(op));
    let waited = last.is_some_and(|op| ttg::RingWait::cast(module, op).is_some());
    rings::place(module, op) == ring.writer && !waited
}

/// The load of a block that a store puts into a slot, if the copy engine can put it there.
fn block(module: &Module, store: &Store, load: Op) -> Option<tt::DescriptorLoad> {
    let load = tt::DescriptorLoad::cast(module, load)?;
    let (desc, slot) = (load.desc(module), module.value_type(store.dst));
    let block = tma::block_type(module, desc).filter(|_| tma::is_encoded(module, desc))?;
    let fits = module.encoding(block) == module.encoding(slot)
        && module.shape(block) == module.shape(slot)
        && module.element_type(block) == module.element_type(slot)
        && tma::begins_aligned(module, store.dst);
    fits.then_some(load)
}

/// The load through pointers whose value threads can copy to a slot.
fn pointers(module: &Module, load: Op) -> Option<tt::Load> {
    tt::Load::cast(module, load).filter(|&load| schedule::can_fill(module, load))
}

/// What gives the stored value, if nothing but the store uses that and nothing stands between that a copy may not pass.
fn source(module: &Module, store: &Store) -> Option<Op> {
    let mut value = store.value;
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
    let stands = between.take_while(|&op| op != store.op).all(|op| {
        // Other fields are filled there.
        passes(&op) || Store::new(module, op).is_some() || is_copy(module, op)
    });
    (module.parent_block(op) == module.parent_block(store.op) && stands).then_some(op)
}

/// Whether an operation is a copy to shared memory that another store has become.
fn is_copy(module: &Module, op: Op) -> bool {
    ttg::AsyncCopyBlockToLocal::cast(module, op).is_some()
        || ttg::AsyncCopyGlobalToLocal::cast(module, op).is_some()
}

fn copy_block(module: &mut Module, store: &Store, load: tt::DescriptorLoad) {
    let (desc, coord, dst) = (load.desc(module), load.indices(module).to_vec(), store.dst);
    let (cache, evict) = (load.cache(module), load.evict(module));
    let mut b = Builder::before(module, store.op);
    ttg::AsyncCopyBlockToLocal::build(&mut b, desc, &coord, dst, None, cache, evict);
    user_copies::erase_store(module, store.op, store.value);
}
