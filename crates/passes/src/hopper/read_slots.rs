//! Operands of warp-group dots that a kernel loads from slots of its own rings are read where they lie.
//!
//! `tl.dot(slot.a.load(), …)` says that the operand is a value: it would be loaded to registers, and stored again to a buffer for the dot. The
//! slot is such a buffer, if it is laid out as the dot wants it, and stays as it is until its release, which `lower-rings` puts behind
//! the wait for the dot. Where the kernel releases it before the dot, nothing between the load and the dot may wait for another partition, which
//! might wait for that release. A dot may be
//! under way while the next slot is waited for: the writer then must not want the first one before it commits that one. What a ring that has one
//! edge alone (`one_shot`) hands over stays; what others may write outside of any ring's slots is read before anything else may tell them to.
//!
//! Why here: layouts say what dots read, and dots are not yet scheduled; [`async_dots`](super::async_dots) knows of slots.
//!
//! ```text
//! ttg.ring_wait %ring[%slot], %phase                  ttg.ring_wait %ring[%slot], %phase
//! %x = ttg.local_load %v                               %d = ttng.warp_group_dot %v, ...
//! %s = ttg.local_alloc %x                        =>    ttg.ring_release %ring[%slot]
//! %d = ttng.warp_group_dot %s, ...
//! ttg.ring_release %ring[%slot]
//! ```

use tilewright_ir::dialect::{ttg, ttng};
use tilewright_ir::{Module, Op, Value};

use crate::analysis::rings::{self, guards};
use crate::pass::{Pass, Property};
use crate::transform::allocate_shared::is_view;

/// The pass.
pub const PASS: Pass = Pass {
    name: "read-slots",
    summary: "let dots read slots of a kernel's own rings where they lie",
    requires: &[Property::LaidOut],
    ensures: &[],
    run: |m, _, _| {
        run(m);
        Ok(())
    },
};

/// Puts slots in the place of buffers that hold what was loaded from them.
pub fn run(module: &mut Module) {
    for op in module.all_ops(module.root()) {
        if let Some(alloc) = ttg::LocalAlloc::cast(module, op)
            && let Some(load) = loaded(module, alloc)
            && stays(module, load, alloc)
        {
            let slot = load.src(module);
            rings::replace_buffer(module, alloc, slot);
            if module.is_unused(load.result(module)) {
                module.erase_op(load.0);
            }
        }
    }
}

/// The load from a slot that a buffer holds, which lies as the slot does.
fn loaded(module: &Module, alloc: ttg::LocalAlloc) -> Option<ttg::LocalLoad> {
    let mut value = alloc.src(module)?;
    while let Some(convert) = ttg::ConvertLayout::of(module, value) {
        value = convert.src(module);
    }
    let load = ttg::LocalLoad::of(module, value)?;
    let (slot, buffer) = (module.value_type(load.src(module)), module.value_type(alloc.result(module)));
    rings::of_buffer(module, load.src(module))?;
    let same = module.encoding(slot) == module.encoding(buffer) && module.shape(slot) == module.shape(buffer);
    same.then_some(load)
}

/// Whether the writer of a ring commits each slot, in the same block, before it acquires another one.
fn fills_one_by_one(module: &Module, ring: ttg::RingCreate) -> bool {
    let uses = rings::users(module, ring.ring(module));
    let is_acquire = |op: Op| ttg::RingAcquire::cast(module, op).is_some();
    uses.iter().copied().filter(|&op| is_acquire(op)).all(|acquire| {
        let following = std::iter::successors(module.next_op(acquire), |&op| module.next_op(op));
        let of_ring = |op: Op| module.all_ops(op).into_iter().find(|inner| uses.contains(inner));
        let next = following.into_iter().find_map(of_ring);
        next.is_some_and(|op| {
            let same_block = module.parent_block(op) == module.parent_block(acquire);
            same_block && ttg::RingCommit::cast(module, op).is_some()
        })
    })
}

/// Whether a slot is as it was loaded until all dots have read it: they stand in the block of the load, in which nothing writes to it between, and which
/// releases, behind the load, that slot of each ring that guards it and no other, so that `lower-rings` knows which dots its release is behind.
fn stays(module: &Module, load: ttg::LocalLoad, alloc: ttg::LocalAlloc) -> bool {
    let Some(readers) = readers(module, alloc.result(module)) else { return false };
    let (view, block, place) = (load.src(module), module.parent_block(load.0), rings::place(module, load.0));
    let Some(last) = readers.iter().copied().reduce(|a, b| if module.is_before(a, b) { b } else { a }) else {
        return false;
    };
    if readers.iter().any(|&op| module.parent_block(op) != block) {
        return false;
    }
    let between = std::iter::successors(module.next_op(load.0), |&op| module.next_op(op));
    let between: Vec<Op> = between.take_while(|&op| op != last).collect();
    let writers = guards::writers(module, view);
    if between.iter().any(|&op| module.all_ops(op).iter().any(|inner| writers.contains(inner))) {
        return false;
    }
    let guards = guards::of(module, view, &place);
    if guards.others && between.iter().any(|&op| guards::may_signal(module, op)) {
        return false;
    }
    let waits = between.iter().any(|&op| guards::may_wait(module, op));
    guards.rings.iter().filter(|ring| !ring.one_shot(module)).all(|&ring| {
        let release = released(module, load, ring).filter(|_| fills_one_by_one(module, ring));
        release.is_some_and(|release| !waits || module.is_before(last, release.0))
    })
}

/// The release, behind a load, of the slot that it loads: the one of that ring in its block.
fn released(module: &Module, load: ttg::LocalLoad, ring: ttg::RingCreate) -> Option<ttg::RingRelease> {
    let block = module.parent_block(load.0)?;
    let inside = module.block_ops(block).flat_map(|op| module.all_ops(op));
    let releases: Vec<ttg::RingRelease> = inside
        .filter_map(|op| ttg::RingRelease::cast(module, op))
        .filter(|release| rings::operated_on(module, release.0) == Some(ring))
        .collect();
    let &[release] = &releases[..] else { return None };
    let slot = rings::slot_of(module, load.src(module))?;
    let of_slot = rings::same_slot(module, slot, release.slot(module));
    let behind = module.parent_block(release.0) == Some(block) && module.is_before(load.0, release.0);
    (of_slot && behind).then_some(release)
}

/// The dots that read a buffer, if nothing else does.
fn readers(module: &Module, buffer: Value) -> Option<Vec<Op>> {
    let mut found = Vec::new();
    for u in module.uses(buffer) {
        if is_view(module, u.op) {
            found.extend(readers(module, module.result(u.op))?);
        } else {
            found.push(ttng::WarpGroupDot::cast(module, u.op)?.0);
        }
    }
    Some(found)
}
