//! `llvm`: what Triton takes from MLIR's LLVM dialect.

use crate::opdef::{Access, Effect, Resource};

/// It stays where it is.
const STAYS: Effect = Effect::new(Access::Write, Resource::Other, None);

crate::dialect! {
    dialect "llvm" Llvm;

    /// Promises that a condition holds where this runs (`tl.assume`): compilers may build on it. The CPU executor checks it.
    op Assume = "intr.assume" {
        operands(cond: one)
        index(Aligned)
        types(Each("cond", Bool))
        effects(STAYS)
        format "$cond attr-dict `:` type($cond)"
    }
}
