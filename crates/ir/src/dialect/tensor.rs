//! `tensor`: tensors as MLIR has them, whose extents may be known at run time only.
//!
//! No pass makes or lowers these: they stand in the code of accelerators that is read ([`hivm`](crate::dialect::hivm)).

use super::shaped_rules as rules;

crate::dialect! {
    dialect "tensor" Tensor;

    /// A tensor of whatever elements.
    op Empty = "empty" {
        operands(dynamic_sizes: var)
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("dynamic_sizes", Fixed(crate::Type::INDEX)))
        effects()
        format "`(` $dynamic_sizes `)` attr-dict `:` type($result)"
        verify rules::allocation
    }

    /// A part of a tensor.
    op ExtractSlice = "extract_slice" {
        operands(src: one, offsets: var, sizes: var, strides: var)
        attrs(static_offsets: Option<Vec<i64>> = "static_offsets", static_sizes: Option<Vec<i64>> = "static_sizes", static_strides: Option<Vec<i64>> = "static_strides")
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("offsets", Fixed(crate::Type::INDEX)), Is("sizes", Fixed(crate::Type::INDEX)), Is("strides", Fixed(crate::Type::INDEX)))
        effects()
        format "$src `` indices($offsets, $static_offsets) indices($sizes, $static_sizes) indices($strides, $static_strides) attr-dict `:` type($src) `to` type($result)"
        verify rules::same_elements
    }

    /// A tensor with a part of another one.
    op InsertSlice = "insert_slice" {
        operands(src: one, dest: one, offsets: var, sizes: var, strides: var)
        attrs(static_offsets: Option<Vec<i64>> = "static_offsets", static_sizes: Option<Vec<i64>> = "static_sizes", static_strides: Option<Vec<i64>> = "static_strides")
        same_as(dest)
        traits(Pure)
        index(Unrelated)
        types(Is("offsets", Fixed(crate::Type::INDEX)), Is("sizes", Fixed(crate::Type::INDEX)), Is("strides", Fixed(crate::Type::INDEX)))
        effects()
        format "$src `into` $dest `` indices($offsets, $static_offsets) indices($sizes, $static_sizes) indices($strides, $static_strides) attr-dict `:` type($src) `into` type($dest)"
        verify rules::same_elements
    }

    /// Dimensions taken together.
    op CollapseShape = "collapse_shape" {
        operands(src: one)
        attrs(reassociation: crate::Attr = "reassociation")
        results(result)
        traits(Pure)
        index(Unrelated)
        types()
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
        types(Is("output_shape", Fixed(crate::Type::INDEX)))
        effects()
        format "$src $reassociation (`output_shape` indices($output_shape, $static_output_shape)^)? attr-dict `:` type($src) `into` type($result)"
        verify rules::same_elements
    }

    /// The same elements in a shape that a tensor says.
    op Reshape = "reshape" {
        operands(src: one, shape: one)
        results(result)
        traits(Pure)
        index(Unrelated)
        types()
        effects()
        format "$src `(` $shape `)` attr-dict `:` functional-type(operands, results)"
        verify rules::same_elements
    }

    /// The same tensor with a type that says more or less of its shape.
    op CastType = "cast" {
        operands(src: one)
        results(result)
        traits(Pure)
        index(Unrelated)
        types()
        effects()
        format "$src attr-dict `:` type($src) `to` type($result)"
        verify rules::same_elements
    }

    /// An extent.
    op Dim = "dim" {
        operands(src: one, dimension: one)
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("dimension", Fixed(crate::Type::INDEX)), Is("result", Fixed(crate::Type::INDEX)))
        effects()
        format "$src `,` $dimension attr-dict `:` type($src)"
    }

    /// One element.
    op Extract = "extract" {
        operands(src: one, indices: var)
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("indices", Fixed(crate::Type::INDEX)), Is("result", Element("src")))
        effects()
        format "$src `[` $indices `]` attr-dict `:` type($src)"
    }

    /// A tensor with another element.
    op Insert = "insert" {
        operands(scalar: one, dest: one, indices: var)
        same_as(dest)
        traits(Pure)
        index(Unrelated)
        types(Is("indices", Fixed(crate::Type::INDEX)), Is("scalar", Element("dest")))
        effects()
        format "$scalar `into` $dest `[` $indices `]` attr-dict `:` type($dest)"
    }

    /// Tensors one behind the other along a dimension.
    op Concat = "concat" {
        operands(inputs: var)
        attrs(dim: i64 = "dim")
        results(result)
        traits(Pure)
        index(Unrelated)
        types()
        effects()
        format "`dim` `(` $dim `)` $inputs attr-dict `:` functional-type(operands, results)"
    }

    /// The same element everywhere.
    op Splat = "splat" {
        operands(input: one, dynamic_sizes: var)
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("input", Element("result")), Is("dynamic_sizes", Fixed(crate::Type::INDEX)))
        effects()
        format "$input (`[` $dynamic_sizes^ `]`)? attr-dict `:` type($result)"
    }

    /// These elements, in row-major order.
    op FromElements = "from_elements" {
        operands(elements: var)
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("elements", Element("result")))
        effects()
        format "$elements attr-dict `:` type($result)"
    }

    /// A tensor with others around it, which the body computes.
    op Pad = "pad" {
        operands(src: one, low: var, high: var)
        attrs(static_low: Option<Vec<i64>> = "static_low", static_high: Option<Vec<i64>> = "static_high")
        results(result)
        regions(body: "tensor.yield") flow()
        traits(RecursiveEffects)
        index(Unrelated)
        types(Is("low", Fixed(crate::Type::INDEX)), Is("high", Fixed(crate::Type::INDEX)))
        effects()
        format "$src `low` `` indices($low, $static_low) `high` `` indices($high, $static_high) region($body) attr-dict `:` type($src) `to` type($result)"
    }

    /// Ends the body of an operation on tensors.
    op Yield = "yield" {
        operands(value: one)
        traits(Terminator, Pure)
        index(Unrelated)
        types()
        effects()
        format "$value attr-dict `:` type($value)"
    }
}
