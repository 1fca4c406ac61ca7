//! `memref`: views of memory that has a shape, as code of accelerators has them. Their types are [`MemRef`](crate::memref::MemRef).

use crate::opdef::{Access, Effect, Resource};

crate::dialect! {
    dialect "memref" Memref;

    /// What lies in memory from element `offset` on, with these extents, this far apart.
    op ReinterpretCast = "reinterpret_cast" {
        operands(src: one, offsets: var, sizes: var, strides: var)
        attrs(
            static_offsets: Option<Vec<i64>> = "static_offsets", static_sizes: Option<Vec<i64>> = "static_sizes",
            static_strides: Option<Vec<i64>> = "static_strides",
        )
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("offsets", Int), Each("sizes", Int), Each("strides", Int))
        effects()
        format "$src `to` `offset` `` `:` indices($offsets, $static_offsets) `,` `sizes` `` `:` indices($sizes, $static_sizes) `,` `strides` `` `:` indices($strides, $static_strides) attr-dict `:` type($src) `to` type($result)"
    }

    /// The part of a view that begins at these indices and has these extents.
    op Subview = "subview" {
        operands(src: one, offsets: var, sizes: var, strides: var)
        attrs(
            static_offsets: Option<Vec<i64>> = "static_offsets", static_sizes: Option<Vec<i64>> = "static_sizes",
            static_strides: Option<Vec<i64>> = "static_strides",
        )
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("offsets", Int), Each("sizes", Int), Each("strides", Int))
        effects()
        format "$src `` indices($offsets, $static_offsets) indices($sizes, $static_sizes) indices($strides, $static_strides) attr-dict `:` type($src) `to` type($result)"
    }

    /// One element, read by the scalar unit.
    op Load = "load" {
        operands(src: one, indices: var)
        results(result)
        index(Unrelated)
        types(Each("indices", Int), Is("result", Element("src")))
        effects(Effect::new(Access::Read, Resource::Shared, Some("src")))
        format "$src `[` $indices `]` attr-dict `:` type($src)"
    }
}
