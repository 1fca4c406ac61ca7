//! Distributes the tiles of a program over the CTAs of its cluster (`num_ctas`).
//!
//! Why first: behind it a tile is what one CTA holds, and no other pass has to know of clusters: layouts, pipelining and
//! TMA blocks follow from the smaller shapes. (In Triton a tensor keeps its whole shape and its encoding has `block`
//! bases; a split by halves of dimensions is the part of those that kernels use, and as a program transformation it is the
//! level above ML-Triton's distribute-to-warps.)
//!
//! # The algorithm
//!
//! 1. **Dimensions** (`dims`). Dimensions of tensors that an operation pairs (those of an elementwise operation's operands
//!    and result, rows of `a` and of a dot's result, what a loop carries, …) are split alike or not at all: they are one
//!    class. Dimensions along which an operation needs whole lines (K of a dot, a scan's axis) are not split. What is made
//!    of ranges and splats alone is computed anew for each use, so it pairs nothing.
//! 2. **Choice** (`choose`). Each bit of the CTA's rank halves the class that saves most work, and others that never meet
//!    it. A reduction's axis comes last, since the parts must be combined, and is left whole beside others where little is summed.
//! 3. **Rewriting** (`rewrite`). Types shrink, ranges and block indices move to the CTA's part. What all CTAs have is
//!    stored by one. Reductions of a split axis are combined, and old values of atomics handed on, by
//!    `ttng.cluster_exchange`.
//!
//! ```text
//! %r = tt.make_range {start = 0, end = 1024} : tensor<1024xi32>
//! %x = tt.load %p : tensor<1024x!tt.ptr<f32>>
//! %s = "tt.reduce"(%x) ({addf})
//! tt.store %q, %s
//! =>                                                                                   (two CTAs)
//! %rank = ttng.cluster_cta_rank
//! %r = splat(%rank · 512) + tt.make_range {start = 0, end = 512} : tensor<512xi32>
//! %x = tt.load %p : tensor<512x!tt.ptr<f32>>
//! %mine = "tt.reduce"(%x) ({addf})
//! %other = ttng.cluster_exchange %mine, %rank ^ 1
//! %s = arith.addf %mine, %other
//! tt.store %q, %s, %rank == 0
//! ```

mod choose;
mod dims;
mod rewrite;

use tilewright_ir::diagnostic::Kind;
use tilewright_ir::dialect::{tt, ttng};
use tilewright_ir::launch::CLUSTER_DIMS;
use tilewright_ir::{Diagnostic, Module, Op};

use crate::pass::Pass;
use crate::target::TargetInfo;

/// The pass.
pub const PASS: Pass = Pass {
    name: "distribute-ctas",
    summary: "distribute tiles over the CTAs of a cluster",
    requires: &[],
    ensures: &[],
    run: |m, t, o| run(m, t, o.num_ctas),
};

/// What is the first to ask which program of its cluster it is in, or to wait for the others.
fn first_of_cluster(module: &Module) -> Option<Op> {
    module.op_attr(module.root(), CLUSTER_DIMS)?;
    let of_cluster = |op: &Op| {
        ttng::ClusterCtaRank::cast(module, *op).is_some()
            || tt::ProgramBarrier::cast(module, *op)
                .is_some_and(|b| b.scope(module) == tt::ProgramScope::Cluster)
    };
    let ops = module.all_ops(module.root());
    ops.iter().copied().find(of_cluster).or(ops.first().copied())
}

/// Distributes every kernel of the module over clusters of `num_ctas`.
///
/// # Errors
/// A target without clusters, an operation that can't be distributed.
pub fn run(module: &mut Module, target: &TargetInfo, num_ctas: u32) -> Result<(), Diagnostic> {
    if !target.clusters
        && let Some(op) = first_of_cluster(module)
    {
        let message = format!("a mesh with clusters: {} has no clusters of CTAs", target.name);
        return Err(Diagnostic::at(module, module.op_loc(op), message).note("cuda:90 has"));
    }
    if num_ctas == 1 {
        return Ok(());
    }
    if !target.clusters {
        let message = format!("num_ctas = {num_ctas}: {} has no clusters of CTAs", target.name);
        return Err(Diagnostic::new(message).of(Kind::Request).note("cuda:90 has; use num_ctas = 1"));
    }
    let functions: Vec<Op> = module.block_ops(module.body()).collect();
    for func in functions {
        if tt::Func::cast(module, func).is_none() {
            continue;
        }
        let ops = module.all_ops(func);
        let dims = dims::Dims::new(module, func, &ops)?;
        let splits = choose::splits(&dims, num_ctas.trailing_zeros() as u8);
        rewrite::run(module, func, &ops, &splits, num_ctas)?;
    }
    // Folds what the rewriting made and erases the whole ranges that nothing uses any more.
    tilewright_ir::pass::optimize(module)
}
