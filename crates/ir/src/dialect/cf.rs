//! `cf`: unstructured control flow. Kernels use `scf`; these are read from IR text.

crate::dialect! {
    dialect "cf" Cf;

    /// Jumps to a block with arguments.
    op Br = "br" {
        operands(args: var)
        traits(Terminator)
    }

    /// Jumps to the first successor if the condition holds, else to the second.
    op CondBr = "cond_br" {
        operands(condition: one, true_args: var, false_args: var)
        traits(Terminator)
    }
}
