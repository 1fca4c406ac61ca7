//! `scf`: structured control flow.

use crate::entity::{Op, Type, Value};
use crate::module::Module;

crate::dialect! {
    dialect "scf" Scf;

    /// Counts from `lower_bound` to below `upper_bound` (signed comparison) by `step` (> 0), carrying values.
    /// The body's arguments are the induction variable and the carried values; it ends with a `yield`.
    /// Loop hints (`tt.num_stages`, `tt.loop_unroll_factor`, …) are attributes.
    op For = "for" {
        operands(lower_bound: one, upper_bound: one, step: one, init: var)
        variadic_results(results)
        regions(body)
        traits(RecursiveEffects, SingleBlock)
        verify verify_for
    }

    /// Runs one of two regions; without results the second may be empty (no block).
    op If = "if" {
        operands(condition: one)
        variadic_results(results)
        regions(then_region, else_region)
        traits(RecursiveEffects)
    }

    /// Runs `before` (ending in a `condition`) and, while it holds, `after` (ending in a `yield`).
    op While = "while" {
        operands(init: var)
        variadic_results(results)
        regions(before, after)
        traits(RecursiveEffects, SingleBlock)
    }

    /// Ends the first region of a `while`: goes on with `args` while the condition holds, else returns them.
    op Condition = "condition" {
        operands(condition: one, args: var)
        traits(Terminator)
        format "`(` $condition `)` attr-dict ($args^ `:` type($args))?"
    }

    /// Ends a region, giving its values.
    op Yield = "yield" {
        operands(values: var)
        traits(Terminator, Pure)
        format "attr-dict ($values^ `:` type($values))?"
    }
}

fn verify_for(module: &Module, op: Op) -> Result<(), String> {
    let f = For(op);
    let block = match module.region_blocks(f.body(module)) {
        &[b] => b,
        _ => return Err("the body must have one block".into()),
    };
    let types = |vs: &[Value]| vs.iter().map(|&v| module.value_type(v)).collect::<Vec<Type>>();
    let init = types(f.init(module));
    let args = types(module.block_args(block));
    if args.is_empty() || args[1..] != init[..] {
        return Err("the body's arguments must be the induction variable and the carried values".into());
    }
    if types(f.results(module)) != init {
        return Err("the results must have the types of the carried values".into());
    }
    match module.last_op(block).and_then(|o| Yield::cast(module, o)) {
        Some(y) if types(y.values(module)) == init => Ok(()),
        Some(_) => Err("the yielded types differ from the carried values'".into()),
        None => Err("the body must end with scf.yield".into()),
    }
}
