//! Parts of buffers with gaps: how far their elements are apart, in elements of the whole, stands where the layout of other buffers does.
//!
//! ```text
//! !ttg.memdesc<16xf32, #tle.strided<by = [2]>, #hivm.address_space<ub>, mutable, 64>      every other one of 32 elements of a buffer of 64
//! ```

use crate::attrs::{AttrKind, text_list};
use crate::entity::{Attr, Type};
use crate::module::Module;

/// The layout of a part whose elements are so far apart along each dimension; none where nothing lies between them.
pub fn layout(module: &mut Module, strides: &[u32]) -> Option<Attr> {
    let gaps = strides.iter().any(|&n| n != 1);
    gaps.then(|| module.attr(AttrKind::Opaque(format!("#tle.strided<by = {strides:?}>"))))
}

/// How far the elements of a buffer are apart along each dimension: 1 where nothing lies between them.
pub fn strides(module: &Module, buffer: Type) -> Vec<u32> {
    let rank = module.shape(buffer).map_or(0, <[u32]>::len);
    let text = match module.encoding(buffer).map(|e| module.attr_kind(e)) {
        Some(AttrKind::Opaque(text)) if text.starts_with("#tle.strided<") => text,
        _ => return vec![1; rank],
    };
    text_list(text, "by").filter(|strides| strides.len() == rank).unwrap_or_else(|| vec![1; rank])
}
