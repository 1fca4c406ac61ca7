//! `vector`: elements that one operation takes at once, as MLIR has them.
//!
//! No pass makes or lowers these: they stand in the code of accelerators that is read ([`hivm`](crate::dialect::hivm)).

use crate::attr_enum;
use crate::opdef::{Access, Effect, Resource};

attr_enum! {
    /// How elements are combined.
    #[allow(missing_docs)]
    CombiningKind as "vector.kind" {
        Add = "add", Mul = "mul", MinUi = "minui", MinSi = "minsi", MinNumF = "minnumf", MaxUi = "maxui", MaxSi = "maxsi", MaxNumF = "maxnumf",
        And = "and", Or = "or", Xor = "xor", MinimumF = "minimumf", MaximumF = "maximumf",
    }
}

const READ: Effect = Effect::new(Access::Read, Resource::Shared, Some("src"));
const WRITE: Effect = Effect::new(Access::Write, Resource::Shared, Some("dest"));

crate::dialect! {
    dialect "vector" Vector;

    /// The elements from indices on, padded where there are none.
    op TransferRead = "transfer_read" {
        operands(src: one, indices: var, padding: one, mask: opt)
        results(result)
        index(Unrelated)
        types(Is("indices", Fixed(crate::Type::INDEX)), Is("padding", Element("src")))
        effects(READ)
        format "$src `[` $indices `]` `,` $padding (`,` $mask^)? attr-dict `:` type($src) `,` type($result)"
    }

    /// Writes elements from indices on.
    op TransferWrite = "transfer_write" {
        operands(vector: one, dest: one, indices: var, mask: opt)
        variadic_results(results)
        index(Unrelated)
        types(Is("indices", Fixed(crate::Type::INDEX)), Written("results", "dest"))
        effects(WRITE)
        format "$vector `,` $dest `[` $indices `]` (`,` $mask^)? attr-dict `:` type($vector) `,` type($dest)"
    }

    /// Truth for the first elements along each dimension.
    op ConstantMask = "constant_mask" {
        attrs(sizes: Vec<i64> = "mask_dim_sizes")
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("result", Bool))
        effects()
        format "$mask_dim_sizes attr-dict `:` type($result)"
    }

    /// The same for extents that are known at run time.
    op CreateMask = "create_mask" {
        operands(sizes: var)
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("sizes", Fixed(crate::Type::INDEX)), Each("result", Bool))
        effects()
        format "$sizes attr-dict `:` type($result)"
    }

    /// The same elements in another shape.
    op ShapeCast = "shape_cast" {
        operands(src: one)
        results(result)
        traits(Pure)
        index(Unrelated)
        types()
        effects()
        format "$src attr-dict `:` type($src) `to` type($result)"
        verify super::shaped_rules::same_elements
    }

    /// Elements along new dimensions.
    op Broadcast = "broadcast" {
        operands(src: one)
        results(result)
        traits(Pure)
        index(Unrelated)
        types()
        effects()
        format "$src attr-dict `:` type($src) `to` type($result)"
        verify super::shaped_rules::same_elements
    }

    /// Elements combined along dimensions, and with an accumulator.
    op MultiReduction = "multi_reduction" {
        operands(src: one, acc: one)
        attrs(kind: CombiningKind = "kind", dims: Vec<i64> = "reduction_dims")
        same_as(acc)
        traits(Pure)
        index(Unrelated)
        types()
        effects()
        format "$kind `,` $src `,` $acc attr-dict $reduction_dims `:` type($src) `to` type($acc)"
    }
}
