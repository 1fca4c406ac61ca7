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
//! Without a bound it also begins few of the loads of a kernel that has no loop, and waits for them before it begins the others, if that makes the registers of a
//! thread 32. Kernels that move tiles and compute little of them, by several loads of a thread, have the bound for that, too. Those that reduce do not gain; narrow
//! accesses and long arithmetic want the warps that the bound costs (docs/log/2026-11-28.md).
//!
//! Why last: it needs the loads and their layouts as they are lowered.
//!
//! ```text
//! module attributes {…}  =>  module attributes {…, "ttg.min-ctas-per-sm" = 1 : i32}
//! ```

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{arith, math, tt};
use tilewright_ir::flow::{self, is_in_loop};
use tilewright_ir::{Module, Op, Opcode, Trait, Type, Value};
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
    if bounded {
        return;
    }
    let several = |op: &Op| {
        tt::Load::cast(module, *op).is_some_and(|load| {
            let instructions = || instructions(module, target, *op, load.result(module));
            is_in_loop(module, *op) && instructions().is_some_and(|(n, _)| n > 1)
        })
    };
    let scans = |op: &Op| tt::Scan::cast(module, *op).is_some() && is_in_loop(module, *op);
    let ops = module.all_ops(root);
    let loads = ops.iter().any(several) && !ops.iter().any(scans);
    if loads || is_crowded(module) || moves_tiles(module, target, &ops) {
        module.set_i32_attr(root, "ttg.min-ctas-per-sm", 1);
    }
}

/// Loads of a thread from which on it is worth a bound that they begin together.
const SEVERAL: usize = 4;

/// Up to so many steps a thread takes little time for an element that it loads: transposes, gates and rotations take 5 to 7. Random numbers, of which dropout has one an
/// element, take 79, and 32 where four are made at once: that is longer than their loads.
const LITTLE: usize = 16;

/// What a division of integers, a function that is none of the hardware's, and a step in fp64 count.
const LONG: usize = 40;

/// Words that a thread loads up to which the registers for them leave room for other CTAs, whose loads go on while this one stores: what was measured has as many.
const MOST: usize = 64;

/// Whether a kernel without loops moves tiles, by several loads of a thread and the widest accesses, and computes little of them: all that a thread computes counts, of
/// whatever tiles, against the elements that it loads.
fn moves_tiles(module: &Module, target: &TargetInfo, ops: &[Op]) -> bool {
    let waits =
        |op: Op| flow::is_loop(module, op) || reduces(module, op) || tt::Dot::cast(module, op).is_some();
    let loaded = |&op: &Op| Some((op, tt::Load::cast(module, op)?.result(module)));
    let stored = |&op: &Op| Some((op, tt::Store::cast(module, op)?.value(module)));
    let of_thread = |(op, tile)| instructions(module, target, op, tile).filter(|(n, _)| *n > 1);
    let loads: Vec<(Op, Value)> = ops.iter().filter_map(loaded).collect();
    let elements = |v: Value| layout_of(module, v).map_or(0, |layout| layout.num_registers());
    let loaded: usize = loads.iter().map(|(_, tile)| elements(*tile) as usize).sum();
    let words = |&(_, tile): &(Op, Value)| {
        elements(tile) as usize * scratch::element_bytes(module, module.value_type(tile)) as usize / 4
    };
    let steps = ops.iter().filter(|&&op| module.has_trait(op, Trait::Elementwise));
    let work = |&op: &Op| {
        let elements: usize = module.results(op).iter().map(|&v| elements(v) as usize).sum();
        elements * if is_long(module, op) { LONG } else { 1 }
    };
    let computed: usize = steps.map(work).sum();
    let is_wide = |access| of_thread(access).is_none_or(|(_, bytes)| bytes == target.max_vector_bytes);
    let together: usize = loads.iter().copied().filter_map(of_thread).map(|(n, _)| n).sum();
    together >= SEVERAL
        && loads.iter().map(words).sum::<usize>() <= MOST
        && !ops.iter().any(|&op| waits(op))
        && loads.into_iter().chain(ops.iter().filter_map(stored)).all(is_wide)
        && computed <= LITTLE * loaded
}

/// Whether an operation on elements is many instructions.
fn is_long(module: &Module, op: Op) -> bool {
    use arith::Kind::{Divsi, Divui, Remf, Remsi, Remui};
    use math::Kind::{Cos, Erf, Sin, Tan, Tanh};
    use tt::Kind::{ElementwiseInlineAsm, ExternElementwise};
    let many = matches!(
        module.opcode(op),
        Some(
            Opcode::Arith(Divsi | Divui | Remf | Remsi | Remui)
                | Opcode::Math(Cos | Erf | Sin | Tan | Tanh)
                | Opcode::Tt(ElementwiseInlineAsm | ExternElementwise)
        )
    );
    many || module.results(op).iter().any(|&v| module.element_type(module.value_type(v)) == Type::F64)
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

/// How many instructions of a thread an access to a tile becomes, and how many bytes each takes.
fn instructions(module: &Module, target: &TargetInfo, access: Op, tile: Value) -> Option<(usize, u32)> {
    let layout = layout_of(module, tile)?;
    let bits = 8 * scratch::element_bytes(module, module.value_type(tile));
    let (axis, width) = access_width(module, access, &layout, bits, target.max_vector_bytes);
    Some((layout.vector_groups(axis, width)?.len(), width * bits / 8))
}
