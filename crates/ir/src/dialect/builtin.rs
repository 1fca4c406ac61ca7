//! `builtin`: the module itself.

crate::dialect! {
    dialect "builtin" Builtin;

    /// The module; its body holds functions, its attributes the target (`ttg.num-warps`, `ttg.target`, …).
    op Module = "module" {
        regions(body)
        traits(Isolated, SingleBlock)
    }

    /// Turns a value of one type into another while a conversion is under way.
    op UnrealizedConversionCast = "unrealized_conversion_cast" {
        operands(inputs: var)
        variadic_results(outputs)
        traits(Pure)
        format "($inputs^ `:` type($inputs))? `to` type($outputs) attr-dict"
    }
}
