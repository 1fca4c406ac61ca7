//! `scope`: parts of a function that AscendNPU-IR keeps together.
//!
//! No pass makes or lowers these: they stand in the code that is read ([`hivm`](crate::dialect::hivm)).

use crate::attrs::Flag;

crate::dialect! {
    dialect "scope" Scope;

    /// A part of a function.
    op Scope = "scope" {
        attrs(no_inline: Flag = "no_inline")
        variadic_results(results)
        regions(body: "scope.return") flow(pass(End(0, 0), Results))
        traits(RecursiveEffects, SingleBlock)
        index(Unrelated)
        types()
        effects()
        format "`:` functional-type(operands, results) region($body) attr-dict"
    }

    /// Ends a part, giving its values.
    op Return = "return" {
        operands(values: var)
        traits(Terminator, Pure)
        index(Unrelated)
        types()
        effects()
        format "attr-dict ($values^ `:` type($values))?"
    }
}
