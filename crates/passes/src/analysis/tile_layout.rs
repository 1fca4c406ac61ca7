//! The layout of a tensor: which thread holds which of its elements, by its encoding and shape.

use tilewright_ir::{Module, Type, Value};
use tilewright_layout::TileLayout;

/// The layout of a tensor type; `None` for anything else or an encoding that does not fit.
pub fn tile_layout(module: &Module, ty: Type) -> Option<TileLayout> {
    let enc = module.encoding_of(module.encoding(ty)?)?;
    TileLayout::new(enc, module.shape(ty)?).ok()
}

/// The layout of a tensor.
pub fn layout_of(module: &Module, value: Value) -> Option<TileLayout> {
    tile_layout(module, module.value_type(value))
}
