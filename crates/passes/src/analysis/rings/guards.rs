//! Which rings say that what a view shows stays as it is while it is read.
//!
//! Others write to a buffer between the acquire of a slot and its commit: who reads keeps them away until the release. A buffer may be the field
//! of several rings, each of which hands over a part of it, so what counts is who writes to the part that a view shows.
//!
//! ```text
//! ttg.ring_acquire %left[%slot], %phase
//! ttg.local_store %x, %buffer[%slot][0, 0]        // guarded by %left
//! ttg.ring_commit %left[%slot]
//! ttg.ring_acquire %right[%slot], %phase
//! ttg.local_store %y, %buffer[%slot][0, 64]       // guarded by %right
//! ttg.ring_commit %right[%slot]
//! ```

use tilewright_ir::dialect::{ttg, ttng};
use tilewright_ir::effects::effects;
use tilewright_ir::opdef::Access;
use tilewright_ir::{Module, Op, Opcode, Value};

use super::{Place, lies_in, operated_on, place, writes};
use crate::analysis::{local_pointers, scope};
use crate::transform::allocate_shared::{allocation, buffer_users};

/// What keeps writes away from a view.
#[derive(Debug, Clone, Default)]
pub struct Guards {
    /// Rings whose writer writes to what the view shows when it has acquired a slot; where nobody does, all rings that have the buffer.
    pub rings: Vec<ttg::RingCreate>,
    /// Whether other warps write to it at another time, too: then nothing is known but that the program is right as it stands.
    pub others: bool,
}

/// Who keeps writes of other warps away from a view of a field, which warps at this place read.
pub fn of(module: &Module, view: Value, reader: &Place) -> Guards {
    let mut guards = Guards::default();
    let Some(alloc) = allocation(module, view) else { return Guards { others: true, ..guards } };
    let holders = holders(module, alloc);
    for op in writers(module, view) {
        if place(module, op) == *reader {
            continue;
        }
        let mut around: Vec<_> =
            holders.iter().copied().filter(|&ring| acquired(module, op, ring).is_some()).collect();
        if around.is_empty() {
            guards.others = true;
            around.clone_from(&holders);
        }
        for ring in around {
            if !guards.rings.contains(&ring) {
                guards.rings.push(ring);
            }
        }
    }
    if guards.rings.is_empty() {
        guards.rings = holders;
    }
    guards
}

/// Whether an operation, or one in it, may let other warps go on: what stands before it must not be moved behind it unless it is known not to matter
/// to them.
pub fn may_signal(module: &Module, op: Op) -> bool {
    let silent = |op: Op| {
        matches!(
            module.opcode(op),
            Some(
                Opcode::Ttg(ttg::Kind::RingWait | ttg::Kind::RingAcquire | ttg::Kind::LocalAlloc)
                    | Opcode::Ttng(
                        ttng::Kind::WaitBarrier
                            | ttng::Kind::WarpGroupDot
                            | ttng::Kind::WarpGroupDotWait
                            | ttng::Kind::FenceAsyncShared
                    )
            )
        )
    };
    module.all_ops(op).into_iter().any(|op| !silent(op) && effects(module, op).writes)
}

/// Whether an operation, or one in it, waits for others.
pub fn may_wait(module: &Module, op: Op) -> bool {
    let waits = |op: Op| module.def(op).is_none_or(|d| d.effects.iter().any(|e| e.access == Access::Wait));
    module.all_ops(op).into_iter().any(waits)
}

/// The operations, at any place, that may write to what a view shows.
pub fn writers(module: &Module, view: Value) -> Vec<Op> {
    let Some(alloc) = allocation(module, view) else { return Vec::new() };
    let users = buffer_users(module, alloc.result(module)).into_iter();
    users.filter(|&op| writes(module, op, alloc) && overlaps(module, op, view)).collect()
}

/// The rings of which a buffer is a field.
pub fn holders(module: &Module, alloc: ttg::LocalAlloc) -> Vec<ttg::RingCreate> {
    let users = scope::uses(module, alloc.result(module)).into_iter();
    users.filter_map(|u| ttg::RingCreate::cast(module, u.op)).collect()
}

/// The acquire of a ring's slot that an operation, or what it is in, stands behind, with no other operation on the ring between.
pub fn acquired(module: &Module, op: Op, ring: ttg::RingCreate) -> Option<ttg::RingAcquire> {
    let mut at = op;
    loop {
        let mut before = std::iter::successors(module.prev_op(at), |&op| module.prev_op(op));
        let on_ring = |op: &Op| operated_on(module, *op) == Some(ring);
        if let Some(op) = before.find(|&op| module.all_ops(op).iter().any(on_ring)) {
            return ttg::RingAcquire::cast(module, op);
        }
        at = module.parent_op(at).filter(|&op| ttg::WarpSpecialize::cast(module, op).is_none())?;
    }
}

/// Whether an operation, if it writes to a field of a ring, fills its slots: not those of another ring that has the same field, nor what nobody fills again.
pub fn fills(module: &Module, op: Op, ring: ttg::RingCreate, alloc: ttg::LocalAlloc) -> bool {
    let others = holders(module, alloc);
    let of_other = || others.iter().any(|&other| other != ring && acquired(module, op, other).is_some());
    acquired(module, op, ring).is_some() || !ring.one_shot(module) && !of_other()
}

/// Whether an operation stands behind the acquire of a slot of no ring that has a buffer.
pub fn is_unguarded(module: &Module, op: Op, alloc: ttg::LocalAlloc) -> bool {
    holders(module, alloc).into_iter().all(|ring| acquired(module, op, ring).is_none())
}

/// Whether an operation accesses, through views or pointers, some of what a view of the same buffer shows.
pub fn overlaps(module: &Module, op: Op, view: Value) -> bool {
    let Some(alloc) = allocation(module, view) else { return true };
    let operands = module.operands(op).iter().filter(|&&v| lies_in(module, v, alloc));
    let mut views = operands.flat_map(|&v| match module.is_shared_pointer(module.value_type(v)) {
        true => local_pointers::buffers(module, v).unwrap_or_else(|| vec![alloc.result(module)]),
        false => vec![v],
    });
    views.any(|other| allocation(module, other) == Some(alloc) && !are_apart(module, view, other))
}

/// Whether two views of slots of one buffer show different elements whatever slots they are of.
pub fn are_apart(module: &Module, a: Value, b: Value) -> bool {
    let (Some(a), Some(b)) = (part(module, a), part(module, b)) else { return false };
    a.len() == b.len() && a.iter().zip(&b).any(|(a, b)| a.1 <= b.0 || b.1 <= a.0)
}

/// Whether the dimensions of a view are some of its buffer's: those of a reshaped one are others.
fn keeps_dimensions(module: &Module, view: Value) -> bool {
    use ttg::Kind as K;
    let op = module.defining_op(scope::captured(module, view));
    op.is_some_and(|op| match module.opcode(op) {
        Some(Opcode::Ttg(K::LocalAlloc)) => true,
        Some(Opcode::Ttg(K::MemdescIndex | K::MemdescSubslice | K::MemdescTrans)) => {
            keeps_dimensions(module, module.operands(op)[0])
        }
        _ => false,
    })
}

/// The first element of a slot that a view shows along each of the slot's dimensions, and the first behind; `None` where that can't be told.
fn part(module: &Module, view: Value) -> Option<Vec<(u32, u32)>> {
    let mut part: Vec<(u32, u32)> =
        module.shape(module.value_type(view))?.iter().map(|&extent| (0, extent)).collect();
    let mut at = view;
    loop {
        at = scope::captured(module, at);
        if let Some(slice) = ttg::MemdescSubslice::of(module, at) {
            for ((begin, end), &offset) in part.iter_mut().zip(slice.offsets(module).iter()) {
                (*begin, *end) = (*begin + offset as u32, *end + offset as u32);
            }
            at = slice.src(module);
        } else if let Some(turned) = ttg::MemdescTrans::of(module, at) {
            let before = part.clone();
            for (&d, span) in turned.order(module).iter().zip(before) {
                *part.get_mut(d as usize)? = span;
            }
            at = turned.src(module);
        } else {
            let slot = ttg::MemdescIndex::of(module, at)?;
            return keeps_dimensions(module, slot.src(module)).then_some(part);
        }
    }
}
