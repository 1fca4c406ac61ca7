//! Loads as asynchronous copies: the fields of the loop's ring that they fill, and how what read the loaded value reads a slot.
//!
//! Each copy has a buffer of `slots` slots before the loop. Those of one iteration are committed and waited for together, so
//! that they are fields of one ring.

use tilewright_ir::dialect::{arith, scf, tt, ttg};
use tilewright_ir::marks;
use tilewright_ir::{AttrKind, Builder, Encoding, Module, Op, Shape, Type, Value};
use tilewright_layout::TileLayout;

use super::schedule;
use crate::analysis::{encoding_choice, own_bytes, rings};

/// A load that becomes asynchronous.
#[derive(Debug, Clone, Copy)]
pub struct Copy {
    /// The load.
    pub load: tt::Load,
    /// The field of the loop's ring.
    pub field: Value,
    /// The type of one slot.
    pub slot: Type,
    /// Whether the slot that is filled is another than the one that is read in the same iteration.
    pub free: bool,
}

impl Copy {
    /// Allocates the field for a load before the loop `l`: as the buffer that the load fills now is laid out, if it does.
    pub fn allocate(m: &mut Module, l: scf::For, load: tt::Load, (slots, free): (u32, bool)) -> Self {
        let slot = match filled(m, load).and_then(|a| m.encoding(m.value_type(a.result(m)))) {
            Some(encoding) => {
                let ty = m.value_type(load.result(m));
                let shape: Shape = m.shape(ty).unwrap_or(&[]).into();
                m.buffer_type(&shape, m.element_type(ty), encoding, true)
            }
            None => slot_type(m, load),
        };
        let loc = m.op_loc(load.0);
        let mut b = Builder::before(m, l.0);
        b.set_loc(loc);
        let field = rings::field(&mut b, slot, slots);
        Copy { load, field, slot, free }
    }

    /// Emits the copy before `anchor` with these addresses and mask, into slot `slot`.
    pub fn issue(self, m: &mut Module, anchor: Op, ptr: Value, mask: Value, slot: Value) {
        let Copy { load, field, slot: slot_ty, free } = self;
        let loc = m.op_loc(load.0);
        let mut b = Builder::before(m, anchor);
        b.set_loc(loc);
        let dst = ttg::MemdescIndex::build(&mut b, field, slot, slot_ty).result(b.module);
        let copy = of_load(&mut b, load, ptr, Some(mask), dst);
        if free {
            let mark = m.attr(AttrKind::Unit);
            m.set_attr(copy.0, marks::FREE_SLOT, mark);
        }
    }
}

/// The type of a buffer for what a load gives: rows as the threads' accesses go.
pub fn slot_type(m: &mut Module, load: tt::Load) -> Type {
    let ty = m.value_type(load.result(m));
    let shape: Shape = m.shape(ty).unwrap_or(&[]).into();
    let order = match m.encoding(ty).and_then(|e| m.encoding_of(e)).map(|e| TileLayout::new(e, &shape)) {
        Some(Ok(layout)) => layout.order().iter().map(|&d| u32::from(d)).collect(),
        _ => encoding_choice::row_major(shape.len()),
    };
    let plain = tilewright_ir::SharedKind::Swizzled { vec: 1, per_phase: 1, max_phase: 1, order };
    let encoding = m.attr(AttrKind::Encoding(Encoding::Shared(plain)));
    m.buffer_type(&shape, m.element_type(ty), encoding, true)
}

/// The copy that does what a load does, from these addresses into `dst`, and as wide.
pub fn of_load(
    b: &mut Builder<'_>,
    load: tt::Load,
    ptr: Value,
    mask: Option<Value>,
    dst: Value,
) -> ttg::AsyncCopyGlobalToLocal {
    let (cache, evict) = (load.cache(b.module), load.evict(b.module));
    let token = Type::ASYNC_TOKEN;
    let copy = ttg::AsyncCopyGlobalToLocal::build(b, ptr, dst, mask, None, cache, evict, false, token);
    for name in [marks::VEC, marks::VEC_AXIS] {
        if let Some(a) = b.module.op_attr(load.0, name) {
            b.module.set_attr(copy.0, name, a);
        }
    }
    copy
}

/// What a load gives, where `read` is what its copy has brought: something else than zeros is chosen for what the mask leaves out.
pub fn choose(b: &mut Builder<'_>, load: tt::Load, read: Value) -> Value {
    let m = &*b.module;
    match (load.mask(m), load.other(m)) {
        (Some(mask), Some(other)) if !schedule::leaves_zeros(m, load) => {
            arith::Select::build(b, mask, read, other).result(b.module)
        }
        _ => read,
    }
}

/// The first buffer that a load fills with what its copy brings. The slot is laid out like it.
pub fn filled(m: &Module, load: tt::Load) -> Option<ttg::LocalAlloc> {
    let mut users = m.uses(load.result(m)).iter();
    users.find_map(|u| ttg::LocalAlloc::cast(m, u.op)).filter(|_| schedule::leaves_zeros(m, load))
}

/// Whether each thread will read of the slot of a load what it has copied there itself, and nobody else reads it: no buffer that the load fills is the slot.
pub fn is_read_by_who_copies(m: &Module, load: tt::Load) -> bool {
    filled(m, load).is_none() && own_bytes::is_held_once(m, load.0, m.value_type(load.result(m)))
}

/// Whether a buffer will be a slot of a ring: filled by one of these loads, and laid out as the first buffer that the load
/// fills, as the ring will be.
pub fn becomes_slot(m: &Module, alloc: ttg::LocalAlloc, loads: &[tt::Load]) -> bool {
    let encoding = |a: ttg::LocalAlloc| m.encoding(m.value_type(a.result(m)));
    let load = loads.iter().find(|load| alloc.src(m) == Some(load.result(m)));
    let first = load.and_then(|&load| filled(m, load));
    first.is_some_and(|first| encoding(first) == encoding(alloc))
}

/// `mask and inside`, in the shape and encoding of the pointers.
pub fn and_mask(m: &mut Module, anchor: Op, mask: Option<Value>, ptr_ty: Type, inside: Value) -> Value {
    let ty = m.with_element(ptr_ty, Type::I1);
    let mut b = Builder::before(m, anchor);
    let splat =
        if b.module.is_tensor(ty) { tt::Splat::build(&mut b, inside, ty).result(b.module) } else { inside };
    match mask {
        Some(m) => arith::Andi::build(&mut b, m, splat).result(b.module),
        None => splat,
    }
}

/// Replaces the loads by what lies in this iteration's slot.
pub fn read_slots(m: &mut Module, copies: &[Copy], anchor: Op, slot: Value) {
    // All views first: the anchor may be one of the loads.
    let mut views = Vec::new();
    for &Copy { load, field, slot: slot_ty, .. } in copies {
        let loc = m.op_loc(load.0);
        let mut b = Builder::before(m, anchor);
        b.set_loc(loc);
        views.push((load, ttg::MemdescIndex::build(&mut b, field, slot, slot_ty).result(b.module)));
    }
    for (load, view) in views {
        let value = load.result(m);
        // A buffer that is laid out otherwise is filled from the ring like any other use.
        let ring_encoding = m.encoding(m.value_type(view));
        let whole = schedule::leaves_zeros(m, load);
        for u in m.uses(value).to_vec().into_iter().filter(|_| whole) {
            if let Some(a) = ttg::LocalAlloc::cast(m, u.op)
                && m.encoding(m.value_type(a.result(m))) == ring_encoding
            {
                rings::replace_buffer(m, a, view);
            }
        }
        if !m.is_unused(value) {
            let ty = m.value_type(value);
            let mut b = Builder::after(m, load.0);
            let loaded = ttg::LocalLoad::build(&mut b, view, None, ty).result(b.module);
            let loaded = choose(&mut b, load, loaded);
            m.replace_all_uses(value, loaded);
        }
        m.erase_op(load.0);
    }
}
