//! `scf`: structured control flow.

use crate::entity::{Op, Type};
use crate::module::Module;
use crate::opdef::{Access, Effect, Resource};

/// It may run for ever.
const MAY_NOT_END: Effect = Effect::new(Access::Write, Resource::Other, None);

crate::dialect! {
    dialect "scf" Scf;

    /// Counts from `lower_bound` to below `upper_bound` (signed comparison) by `step` (> 0), carrying values.
    /// The body's arguments are the induction variable and the carried values; it ends with a `yield`.
    /// Loop hints (`tt.num_stages`, `tt.loop_unroll_factor`, …) are attributes.
    op For = "for" {
        operands(lower_bound: one, upper_bound: one, step: one, init: var)
        variadic_results(results)
        regions(body: "scf.yield") flow(
            pass(End(0, 0), Entry(0, 1)), pass(End(0, 0), Results),
            pass(Operands("init"), Entry(0, 1)), pass(Operands("init"), Results),
        )
        traits(RecursiveEffects, SingleBlock)
        index(Unrelated)
        types(Is("upper_bound", Same("lower_bound")), Is("step", Same("lower_bound")))
        effects()
        marks(SHARED_PREFETCHES, PROGRAMS)
        verify verify_for
    }

    /// Runs one of two regions; without results the second may be empty (no block).
    op If = "if" {
        operands(condition: one)
        variadic_results(results)
        regions(then_region: "scf.yield", else_region: "scf.yield") flow(
            pass(End(0, 0), Results), pass(End(1, 0), Results),
        )
        traits(RecursiveEffects)
        index(Unrelated)
        types(Is("condition", Fixed(Type::I1)))
        effects()
        verify verify_if
    }

    /// Runs `before` (ending in a `condition`) and, while it holds, `after` (ending in a `yield`).
    op While = "while" {
        operands(init: var)
        variadic_results(results)
        regions(before: "scf.condition", after: "scf.yield") flow(
            pass(End(1, 0), Entry(0, 0)), pass(Operands("init"), Entry(0, 0)),
            pass(End(0, 1), Entry(1, 0)), pass(End(0, 1), Results),
        )
        traits(RecursiveEffects, SingleBlock)
        index(Unrelated)
        types()
        effects(MAY_NOT_END)
    }

    /// Ends the first region of a `while`: goes on with `args` while the condition holds, else returns them.
    op Condition = "condition" {
        operands(condition: one, args: var)
        traits(Terminator)
        index(Unrelated)
        types(Is("condition", Fixed(Type::I1)))
        effects()
        format "`(` $condition `)` attr-dict ($args^ `:` type($args))?"
    }

    /// Ends a region, giving its values.
    op Yield = "yield" {
        operands(values: var)
        traits(Terminator, Pure)
        index(Unrelated)
        types()
        effects()
        format "attr-dict ($values^ `:` type($values))?"
    }
}

/// Its bounds have the type of the induction variable, an integer.
fn verify_for(module: &Module, op: Op) -> Result<(), String> {
    let f = For(op);
    let block = module.region_block(f.body(module));
    let Some(&induction) = module.block_args(block).first() else {
        return Err("the body's arguments must be the induction variable and the carried values".into());
    };
    let ty = module.value_type(induction);
    if !module.is_int(ty) || module.shape(ty).is_some() {
        return Err("it counts integers".into());
    }
    if module.value_type(f.lower_bound(module)) != ty {
        return Err("the bounds' type differs from the induction variable's".into());
    }
    Ok(())
}

fn verify_if(module: &Module, op: Op) -> Result<(), String> {
    let f = If(op);
    if module.region_blocks(f.else_region(module)).is_empty() && !f.results(module).is_empty() {
        return Err("with results there must be an else region".into());
    }
    Ok(())
}
