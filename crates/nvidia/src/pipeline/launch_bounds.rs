//! Launch bounds: how many CTAs of a kernel a multiprocessor should at least hold, which is what the assembler shares registers
//! out by.
//!
//! By itself the assembler gives a thread so few registers that as many CTAs as possible fit a multiprocessor, and issues a
//! loop's loads one after the other into the same registers. One CTA asks for no more than any kernel has, but it makes the
//! assembler keep loads apart, with which fewer threads have more bytes under way and share the L1 cache (PTX ISA,
//! "Performance-Tuning Directives: .minnctapersm"; docs/performance.md). So kernels get that bound of which a thread executes
//! several instructions for one load in a loop, unless registers are bounded otherwise, or the loop scans: what shuffles take more CTAs hide
//! (docs/log/2026-11-26.md). So do kernels whose CTA is so large that two
//! of them leave a thread fewer registers than one of its tensors and what is computed of it want: the assembler would spill it.
//!
//! Why last: it needs the loads and their layouts as they are lowered.
//!
//! ```text
//! module attributes {…}  =>  module attributes {…, "ttg.min-ctas-per-sm" = 1 : i32}
//! ```

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::tt;
use tilewright_ir::flow::is_in_loop;
use tilewright_ir::{Module, Op, Value};
use tilewright_passes::TargetInfo;
use tilewright_passes::analysis::scratch;
use tilewright_passes::analysis::tile_layout::{access_width, layout_of};
use tilewright_passes::pass::{Pass, Property};

/// The pass.
pub const PASS: Pass = Pass {
    name: "launch-bounds",
    summary: "bound the CTAs of a multiprocessor where registers serve loads better",
    requires: &[Property::LaidOut],
    ensures: &[],
    run: |m, t, _| {
        run(m, t);
        Ok(())
    },
};

/// Sets the bound.
fn run(module: &mut Module, target: &TargetInfo) {
    let root = module.root();
    let bounded = module.int_attr(root, "ttg.maxnreg").is_some();
    let several = |op: &Op| {
        tt::Load::cast(module, *op).is_some_and(|load| {
            is_in_loop(module, *op) && instructions(module, target, load).is_some_and(|n| n > 1)
        })
    };
    let scans = |op: &Op| tt::Scan::cast(module, *op).is_some() && is_in_loop(module, *op);
    let ops = module.all_ops(root);
    let loads = ops.iter().any(several) && !ops.iter().any(scans);
    if !bounded && (loads || is_crowded(module)) {
        module.set_i32_attr(root, "ttg.min-ctas-per-sm", 1);
    }
}

/// Whether a thread would have 32 registers, were there two CTAs, and has a tensor that takes half of them, which it keeps while it reduces if it reduces any: what goes
/// into the reduction and is not used again needs no room.
fn is_crowded(module: &Module) -> bool {
    let root = module.root();
    let warps = ["ttg.total-num-warps", "ttg.num-warps"].iter().find_map(|name| module.int_attr(root, name));
    let words = |&v: &Value| {
        let bits = module.bits(module.value_type(v)).max(8);
        layout_of(module, v).map_or(0, |layout| layout.num_registers() * bits / 32)
    };
    if warps < Some(32) {
        return false;
    }
    let ops = module.all_ops(root);
    let order: FxHashMap<Op, usize> = ops.iter().enumerate().map(|(at, &op)| (op, at)).collect();
    let reductions: Vec<usize> = ops.iter().filter(|&&op| reduces(module, op)).map(|op| order[op]).collect();
    let stays = |op: Op, v: Value| {
        let last = module.uses(v).iter().filter_map(|u| order.get(&u.op)).max();
        reductions.is_empty() || reductions.iter().any(|r| order[&op] < *r && last > Some(r))
    };
    let is_large = |&op: &Op| module.results(op).iter().any(|&v| words(&v) >= 16 && stays(op, v));
    ops.iter().any(is_large)
}

fn reduces(module: &Module, op: Op) -> bool {
    tt::Reduce::cast(module, op).is_some() || tt::Scan::cast(module, op).is_some()
}

/// How many instructions of a thread a load of a tile becomes.
fn instructions(module: &Module, target: &TargetInfo, load: tt::Load) -> Option<usize> {
    let result = load.result(module);
    let layout = layout_of(module, result)?;
    let bits = 8 * scratch::element_bytes(module, module.value_type(result));
    let (axis, width) = access_width(module, load.0, &layout, bits, target.max_vector_bytes);
    Some(layout.vector_groups(axis, width)?.len())
}
