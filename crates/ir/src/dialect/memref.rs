//! `memref`: views of memory that has a shape, as code of accelerators has them. Their types are [`MemRef`](crate::memref::MemRef).

use crate::opdef::{Access, Effect, Resource};

crate::dialect! {
    dialect "memref" Memref;

    /// What lies in memory from element `offset` on, with these extents, this far apart.
    op ReinterpretCast = "reinterpret_cast" {
        operands(src: one, offset: one, sizes: var, strides: var)
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("offset", Int), Each("sizes", Int), Each("strides", Int))
        effects()
        format "$src `to` `offset` `:` `[` $offset `]` `,` `sizes` `:` `[` $sizes `]` `,` `strides` `:` `[` $strides `]` attr-dict `:` type($src) `to` type($result)"
    }

    /// The part of a view that begins at these indices and has these extents.
    op Subview = "subview" {
        operands(src: one, offsets: var, sizes: var, strides: var)
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("offsets", Int), Each("sizes", Int), Each("strides", Int))
        effects()
        format "$src `[` $offsets `]` `[` $sizes `]` `[` $strides `]` attr-dict `:` type($src) `to` type($result)"
    }

    /// One element, read by the scalar unit.
    op Load = "load" {
        operands(src: one, indices: var)
        results(result)
        index(Unrelated)
        types(Each("indices", Int))
        effects(Effect::new(Access::Read, Resource::Shared, Some("src")))
        format "$src `[` $indices `]` attr-dict `:` type($src) `->` type($result)"
    }
}
