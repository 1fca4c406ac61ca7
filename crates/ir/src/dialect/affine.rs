//! `affine`: indices by affine maps, which are kept as text.
//!
//! No pass makes or lowers these: they stand in the code of accelerators that is read ([`hivm`](crate::dialect::hivm)).

crate::dialect! {
    dialect "affine" Affine;

    /// The result of a map.
    op Apply = "apply" {
        operands(dims: var, symbols: var)
        attrs(map: crate::Attr = "map")
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("dims", Fixed(crate::Type::INDEX)), Is("symbols", Fixed(crate::Type::INDEX)), Is("result", Fixed(crate::Type::INDEX)))
        effects()
        format "$map `` `(` $dims `)` (`` `[` $symbols^ `]`)? attr-dict"
    }

    /// The smallest result of a map.
    op Min = "min" {
        operands(dims: var, symbols: var)
        attrs(map: crate::Attr = "map")
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("dims", Fixed(crate::Type::INDEX)), Is("symbols", Fixed(crate::Type::INDEX)), Is("result", Fixed(crate::Type::INDEX)))
        effects()
        format "$map `` `(` $dims `)` (`` `[` $symbols^ `]`)? attr-dict"
    }

    /// The largest result of a map.
    op Max = "max" {
        operands(dims: var, symbols: var)
        attrs(map: crate::Attr = "map")
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("dims", Fixed(crate::Type::INDEX)), Is("symbols", Fixed(crate::Type::INDEX)), Is("result", Fixed(crate::Type::INDEX)))
        effects()
        format "$map `` `(` $dims `)` (`` `[` $symbols^ `]`)? attr-dict"
    }
}
