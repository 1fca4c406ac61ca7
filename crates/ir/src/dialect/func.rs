//! `func`: functions as MLIR has them, in the code of accelerators.

use crate::entity::Type;
use crate::opdef::{Access, Effect, Resource};

/// It is not to be moved or erased.
const STAYS: Effect = Effect::new(Access::Write, Resource::Other, None);

crate::dialect! {
    dialect "func" Func;

    /// A function.
    op Func = "func" {
        attrs(
            sym_name: String = "sym_name",
            function_type: Type = "function_type",
        )
        regions(body: "") flow()
        traits(Isolated)
        index(Unrelated)
        types()
        effects(STAYS)
        verify super::tt::verify_func
    }

    /// Ends a function.
    op Return = "return" {
        operands(values: var)
        traits(Terminator)
        index(Unrelated)
        types()
        effects(STAYS)
        format "attr-dict ($values^ `:` type($values))?"
    }

    /// Calls a function.
    op Call = "call" {
        operands(args: var)
        attrs(callee: crate::attrs::SymbolRef = "callee")
        variadic_results(results)
        index(Unrelated)
        types()
        effects(STAYS)
        format "$callee `(` $args `)` attr-dict `:` functional-type($args, $results)"
    }
}
