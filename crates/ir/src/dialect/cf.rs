//! `cf`: unstructured control flow. Kernels use `scf`; these are read from IR text.

use crate::entity::{Block, Op, Type, Value};
use crate::module::Module;
use crate::opdef::{Access, Effect, Resource};
use crate::typing::same_types;

const LEAVES: Effect = Effect::new(Access::Write, Resource::Other, None);

crate::dialect! {
    dialect "cf" Cf;

    /// Jumps to a block with arguments.
    op Br = "br" {
        operands(args: var)
        traits(Terminator)
        index(Unrelated)
        types()
        effects(LEAVES)
        verify verify_branch
    }

    /// Jumps to the first successor if the condition holds, else to the second.
    op CondBr = "cond_br" {
        operands(condition: one, true_args: var, false_args: var)
        traits(Terminator)
        index(Unrelated)
        types(Is("condition", Fixed(Type::I1)))
        effects(LEAVES)
        verify verify_branch
    }
}

/// Successors receive what their arguments are.
fn verify_branch(m: &Module, op: Op) -> Result<(), String> {
    let target = |block: Block, args: &[Value]| {
        same_types(m, "arguments", args, "those of the block", m.block_args(block))
    };
    match (CondBr::cast(m, op), m.successors(op)) {
        (None, &[to]) => target(to, m.operands(op)),
        (Some(c), &[yes, no]) => {
            target(yes, c.true_args(m))?;
            target(no, c.false_args(m))
        }
        (_, successors) => Err(format!("{} successors do not fit", successors.len())),
    }
}
