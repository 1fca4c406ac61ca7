//! `gpu`: what Triton takes from MLIR's GPU dialect.

use crate::opdef::{Effect, Scope};

crate::dialect! {
    dialect "gpu" Gpu;

    /// All threads of the CTA wait for each other, whatever partition they are in (within one, `ttg.barrier` is for its threads alone).
    op Barrier = "barrier" {
        index(Unrelated)
        types()
        effects(Effect::wait(Scope::Cta))
        format "attr-dict"
    }
}
