//! Execution scopes: which warps run an operation.
//!
//! A function runs on the module's `ttg.num-warps` warps; inside a `ttg.warp_specialize` the default region stays on
//! them, and each partition has warps of its own. Layouts, barriers and scratch memory are those of the scope.

use tilewright_ir::dialect::{scf, tt, ttg};
use tilewright_ir::module::Use;
use tilewright_ir::{Module, Op, Value, ValueDef};

/// How many warps run an operation.
pub fn num_warps(module: &Module, op: Op) -> u32 {
    let of_kernel = module.int_attr(module.root(), "ttg.num-warps").map_or(4, |n| n as u32);
    num_warps_of(module, op, of_kernel)
}

/// The same where the kernel has `of_kernel` warps, which modules don't say before they have layouts.
pub fn num_warps_of(module: &Module, op: Op, of_kernel: u32) -> u32 {
    for (w, region) in enclosing(module, op) {
        if region > 0
            && let Some(&n) = w.partition_num_warps(module).get(region - 1)
        {
            return n as u32;
        }
    }
    of_kernel
}

/// Threads of a warp.
pub fn warp_size(module: &Module) -> u32 {
    module.int_attr(module.root(), "ttg.threads-per-warp").map_or(32, |n| n as u32)
}

/// The function that an operation is in.
pub fn function(module: &Module, op: Op) -> Option<Op> {
    std::iter::successors(Some(op), |&op| module.parent_op(op))
        .find(|&op| tt::Func::cast(module, op).is_some())
}

/// Every `ttg.warp_specialize` of a module.
pub fn specializations(module: &Module) -> Vec<ttg::WarpSpecialize> {
    let all = module.all_ops(module.root());
    all.into_iter().filter_map(|op| ttg::WarpSpecialize::cast(module, op)).collect()
}

/// The loops of the default region, at any depth: those of the consumers.
pub fn consumer_loops(module: &Module, w: ttg::WarpSpecialize) -> Vec<scf::For> {
    let default = module.region_block(w.default_region(module));
    let ops = module.block_ops(default).flat_map(|op| module.all_ops(op));
    ops.filter_map(|op| scf::For::cast(module, op)).collect()
}

/// The `ttg.warp_specialize` operations around an operation, innermost first, each with the region that it is in: 0 is
/// the default one, 1 + i partition i.
pub fn enclosing(module: &Module, op: Op) -> Vec<(ttg::WarpSpecialize, usize)> {
    let mut out = Vec::new();
    let mut at = op;
    while let Some(block) = module.parent_block(at) {
        let Some(region) = module.block_region(block) else { break };
        let Some(parent) = module.region_op(region) else { break };
        if let Some(w) = ttg::WarpSpecialize::cast(module, parent) {
            if region == w.default_region(module) {
                out.push((w, 0));
            }
        } else if ttg::Partitions::cast(module, parent).is_some()
            && let Some(w) = module.parent_op(parent).and_then(|p| ttg::WarpSpecialize::cast(module, p))
            && let Some(i) = w.partitions(module).iter().position(|&r| r == region)
        {
            out.push((w, 1 + i));
        }
        at = parent;
    }
    out
}

/// Whether two operations may run at the same time: they lie in different regions of one `ttg.warp_specialize`.
pub fn concurrent(module: &Module, a: Op, b: Op) -> bool {
    let of_b = enclosing(module, b);
    enclosing(module, a).iter().any(|(w, region)| of_b.iter().any(|(v, other)| v == w && other != region))
}

/// A value, and what it is in the partitions that capture it: the other way round from [`captured`].
pub fn views(module: &Module, value: Value) -> Vec<Value> {
    let mut views = vec![value];
    let mut seen = 0;
    while let Some(&view) = views.get(seen) {
        seen += 1;
        for u in module.uses(view) {
            let Some(w) = ttg::WarpSpecialize::cast(module, u.op) else { continue };
            let blocks = w.partitions(module).iter().map(|&r| module.region_block(r));
            views.extend(blocks.filter_map(|b| module.block_args(b).get(u.index as usize)));
        }
    }
    views
}

/// What is done with a value, in partitions that capture it too.
pub fn uses(module: &Module, value: Value) -> Vec<Use> {
    let all = views(module, value).into_iter().flat_map(|v| module.uses(v).to_vec());
    all.filter(|u| ttg::WarpSpecialize::cast(module, u.op).is_none()).collect()
}

/// What an argument of a partition stands for outside of it; any other value is itself.
pub fn captured(module: &Module, value: Value) -> Value {
    let mut value = value;
    while let ValueDef::Argument(block, index) = module.value_def(value)
        && let Some(parent) = module.block_parent_op(block)
        && ttg::Partitions::cast(module, parent).is_some()
        && let Some(w) = module.parent_op(parent).and_then(|p| ttg::WarpSpecialize::cast(module, p))
        && let Some(&outer) = w.captures(module).get(index as usize)
    {
        value = outer;
    }
    value
}
