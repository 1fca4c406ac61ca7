//! `gpu`: what a program knows of the hardware that runs it.

use crate::entity::Type;

crate::dialect! {
    dialect "gpu" Gpu;

    /// The number of the warp (sub-group) that runs it, within its work group.
    op SubgroupId = "subgroup_id" {
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("result", Fixed(Type::INDEX)))
        effects()
        format "attr-dict `:` type($result)"
    }
}
