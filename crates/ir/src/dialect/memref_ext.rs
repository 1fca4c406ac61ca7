//! `memref_ext`: what AscendNPU-IR adds to `memref`.
//!
//! No pass makes or lowers it: it stands in the code that is read ([`hivm`](crate::dialect::hivm)).

use crate::opdef::{Access, Effect, Resource};

/// It is not to be moved or erased.
const STAYS: Effect = Effect::new(Access::Write, Resource::Other, None);

crate::dialect! {
    dialect "memref_ext" MemrefExt;

    /// Memory of the kernel that all its programs share, at an offset.
    op AllocWorkspace = "alloc_workspace" {
        operands(workspace: opt, dynamic_sizes: var, offset: var)
        results(result)
        index(Unrelated)
        types(Each("workspace", View), Each("result", View), Is("dynamic_sizes", Fixed(crate::Type::INDEX)), Is("offset", Fixed(crate::Type::INDEX)))
        effects(STAYS)
        format "`(` $dynamic_sizes `)` (`from` $workspace^)? (`offset` `=` `[` $offset^ `]`)? attr-dict `:` (`from` type($workspace)^ `to`)? type($result)"
        verify super::shaped_rules::workspace
    }
}
