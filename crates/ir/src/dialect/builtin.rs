//! `builtin`: the module itself.

use crate::opdef::{Access, Effect, Resource};

/// It is not to be moved or erased.
const STAYS: Effect = Effect::new(Access::Write, Resource::Other, None);

crate::dialect! {
    dialect "builtin" Builtin;

    /// The module; its body holds functions, its attributes the target (`ttg.num-warps`, `ttg.target`, …).
    op Module = "module" {
        regions(body: "") flow()
        traits(Isolated, SingleBlock)
        index(Unrelated)
        types()
        effects(STAYS)
    }

    /// Turns a value of one type into another while a conversion is under way.
    op UnrealizedConversionCast = "unrealized_conversion_cast" {
        operands(inputs: var)
        variadic_results(outputs)
        traits(Pure)
        index(Whole)
        types()
        effects()
        format "($inputs^ `:` type($inputs))? `to` type($outputs) attr-dict"
    }
}
