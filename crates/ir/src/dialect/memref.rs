//! `memref`: views of memory that has a shape, as code of accelerators has them. Their types are [`MemRef`](crate::memref::MemRef).

use super::shaped_rules as rules;
use crate::opdef::{Access, Effect, Resource};

const ALLOCATE: Effect = Effect::new(Access::Allocate, Resource::Shared, None);

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
        types(Each("src", View), Each("result", View), Each("offsets", Int), Each("sizes", Int), Each("strides", Int))
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
        types(Each("src", View), Each("result", View), Each("offsets", Int), Each("sizes", Int), Each("strides", Int))
        effects()
        format "$src `` indices($offsets, $static_offsets) indices($sizes, $static_sizes) indices($strides, $static_strides) attr-dict `:` type($src) `to` type($result)"
    }

    /// One element, read by the scalar unit.
    op Load = "load" {
        operands(src: one, indices: var)
        results(result)
        index(Unrelated)
        types(Each("src", View), Each("indices", Int), Is("result", Element("src")))
        effects(Effect::new(Access::Read, Resource::Shared, Some("src")))
        format "$src `[` $indices `]` attr-dict `:` type($src)"
    }

    /// New memory.
    op Alloc = "alloc" {
        operands(dynamic_sizes: var, symbols: var)
        results(result)
        index(Unrelated)
        types(Each("result", View), Is("dynamic_sizes", Fixed(crate::Type::INDEX)), Is("symbols", Fixed(crate::Type::INDEX)))
        effects(ALLOCATE)
        format "`(` $dynamic_sizes `)` (`` `[` $symbols^ `]`)? attr-dict `:` type($result)"
        verify rules::allocation
    }

    /// New memory, until the function ends.
    op Alloca = "alloca" {
        operands(dynamic_sizes: var, symbols: var)
        results(result)
        index(Unrelated)
        types(Each("result", View), Is("dynamic_sizes", Fixed(crate::Type::INDEX)), Is("symbols", Fixed(crate::Type::INDEX)))
        effects(ALLOCATE)
        format "`(` $dynamic_sizes `)` (`` `[` $symbols^ `]`)? attr-dict `:` type($result)"
        verify rules::allocation
    }

    /// Memory is given back.
    op Dealloc = "dealloc" {
        operands(src: one)
        index(Unrelated)
        types(Each("src", View))
        effects(Effect::new(Access::Free, Resource::Shared, Some("src")))
        format "$src attr-dict `:` type($src)"
    }

    /// Writes one element, by the scalar unit.
    op Store = "store" {
        operands(value: one, dst: one, indices: var)
        index(Unrelated)
        types(Each("dst", View), Each("indices", Int), Is("value", Element("dst")))
        effects(Effect::new(Access::Write, Resource::Shared, Some("dst")))
        format "$value `,` $dst `[` $indices `]` attr-dict `:` type($dst)"
    }

    /// Copies all elements of a view.
    op Copy = "copy" {
        operands(src: one, dst: one)
        index(Unrelated)
        types(Each("src", View), Each("dst", View))
        effects(Effect::new(Access::Read, Resource::Shared, Some("src")), Effect::new(Access::Write, Resource::Shared, Some("dst")))
        format "$src `,` $dst attr-dict `:` type($src) `to` type($dst)"
        verify rules::same_elements
    }

    /// The same view with a type that says more or less of it.
    op CastType = "cast" {
        operands(src: one)
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("src", View), Each("result", View))
        effects()
        format "$src attr-dict `:` type($src) `to` type($result)"
        verify rules::same_elements
    }

    /// The same view with another memory in its type.
    op MemorySpaceCast = "memory_space_cast" {
        operands(src: one)
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("src", View), Each("result", View))
        effects()
        format "$src attr-dict `:` type($src) `to` type($result)"
        verify rules::same_elements
    }

    /// Dimensions taken together.
    op CollapseShape = "collapse_shape" {
        operands(src: one)
        attrs(reassociation: crate::Attr = "reassociation")
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("src", View), Each("result", View))
        effects()
        format "$src $reassociation attr-dict `:` type($src) `into` type($result)"
        verify rules::same_elements
    }

    /// Dimensions taken apart.
    op ExpandShape = "expand_shape" {
        operands(src: one, output_shape: var)
        attrs(reassociation: crate::Attr = "reassociation", static_output_shape: Option<Vec<i64>> = "static_output_shape")
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("src", View), Each("result", View), Is("output_shape", Fixed(crate::Type::INDEX)))
        effects()
        format "$src $reassociation (`output_shape` indices($output_shape, $static_output_shape)^)? attr-dict `:` type($src) `into` type($result)"
        verify rules::same_elements
    }

    /// Elements in the bytes of a view, from one of them on.
    op View = "view" {
        operands(src: one, byte_shift: one, sizes: var)
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("src", View), Each("result", View), Is("byte_shift", Fixed(crate::Type::INDEX)), Is("sizes", Fixed(crate::Type::INDEX)))
        effects()
        format "$src `` `[` $byte_shift `]` `` `[` $sizes `]` attr-dict `:` type($src) `to` type($result)"
    }

    /// The same elements in row-major order in a shape that is in memory.
    op Reshape = "reshape" {
        operands(src: one, shape: one)
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("src", View), Each("shape", View), Each("result", View))
        effects()
        format "$src `(` $shape `)` attr-dict `:` functional-type(operands, results)"
        verify rules::same_elements
    }

    /// An extent of a view.
    op Dim = "dim" {
        operands(src: one, dimension: one)
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("src", View), Is("dimension", Fixed(crate::Type::INDEX)), Is("result", Fixed(crate::Type::INDEX)))
        effects()
        format "$src `,` $dimension attr-dict `:` type($src)"
    }

    /// What a view is of: its memory, offset, extents, strides.
    op ExtractStridedMetadata = "extract_strided_metadata" {
        operands(src: one)
        variadic_results(results)
        traits(Pure)
        index(Unrelated)
        types(Each("src", View))
        effects()
        format "$src `:` type($src) `->` type($results) attr-dict"
    }

    /// Memory of the module.
    op GetGlobal = "get_global" {
        attrs(name: crate::attrs::SymbolRef = "name")
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("result", View))
        effects()
        format "$name `:` type($result) attr-dict"
    }
}
