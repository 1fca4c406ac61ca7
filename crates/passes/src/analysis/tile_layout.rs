//! The layout of a tensor: which thread holds which of its elements, by its encoding and shape;
//! and how many of them an access takes at once.

use tilewright_ir::{Module, Op, Type, TypeKind, Value, marks};
use tilewright_layout::{SharedLayout, TileLayout};

/// The layout of a tensor type; `None` for anything else or an encoding that does not fit.
pub fn tile_layout(module: &Module, ty: Type) -> Option<TileLayout> {
    let enc = module.encoding_of(module.encoding(ty)?)?;
    TileLayout::new(enc, module.shape(ty)?).ok()
}

/// The layout of a tensor.
pub fn layout_of(module: &Module, value: Value) -> Option<TileLayout> {
    tile_layout(module, module.value_type(value))
}

/// The layout of a buffer, or of the allocation (without its leading dimensions) that a view is of.
pub fn shared_layout_of(module: &Module, ty: Type) -> Option<SharedLayout> {
    let TypeKind::MemDesc { shape, encoding: Some(encoding), alloc_shape, .. } = module.type_kind(ty) else {
        return None;
    };
    let whole = alloc_shape.as_ref().map_or(&shape[..], |all| &all[all.len().saturating_sub(shape.len())..]);
    SharedLayout::new(module.encoding_of(*encoding)?, whole, module.bits(ty).max(8)).ok()
}

/// The axis along which an access of a tile takes several elements at once, and how many: no more than the analysis of addresses
/// has promised, the thread holds, and an access of so many bytes takes.
pub fn access_width(module: &Module, op: Op, layout: &TileLayout, bits: u32, max_bytes: u32) -> (usize, u32) {
    let promised = module.int_attr(op, marks::VEC).unwrap_or(1).max(1) as u32;
    let axis = module.int_attr(op, marks::VEC_AXIS).map_or(layout.order()[0] as usize, |a| a as usize);
    if axis >= layout.rank() {
        return (0, 1);
    }
    let width = promised.min(layout.contig_along(axis)).min(max_bytes * 8 / bits);
    // The promise is a power of two; what is not would straddle words.
    (axis, 1 << width.max(1).ilog2())
}
