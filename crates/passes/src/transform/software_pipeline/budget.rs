//! How much shared memory and how many registers a loop would need.

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::{scf, tt, ttg};
use tilewright_ir::{Module, Op, Value};

use super::graph::is_dot;
use super::{async_copies, schedule};
use crate::analysis::{scope, scratch};
use crate::hopper::tma;
use crate::target::TargetInfo;
use crate::transform::allocate_shared::buffer_bytes;

/// Bytes of the buffers that are alive in the loop `l`, with rings of `slots` for the loads `copies`.
pub fn buffers(module: &Module, l: scf::For, copies: &[Op], slots: u32) -> u32 {
    let bytes = |a: ttg::LocalAlloc| bytes_of(module, a);
    let rings: u32 = copies
        .iter()
        .map(|&load| {
            if let Some(load) = tt::DescriptorLoad::cast(module, load) {
                return slots * tma::block_bytes(module, load.desc(module)) as u32;
            }
            let value = module.result(load);
            let buffer = tt::Load::cast(module, load).and_then(|load| async_copies::filled(module, load));
            let ty = module.value_type(value);
            let plain =
                || module.shape(ty).unwrap_or(&[]).iter().product::<u32>() * module.bits(ty).max(8) / 8;
            slots * buffer.map_or_else(plain, bytes)
        })
        .sum();
    let fills = |load: Op| tt::Load::cast(module, load).is_none_or(|l| schedule::leaves_zeros(module, l));
    let is_ring = |a: ttg::LocalAlloc| {
        let filled_by = |&load: &Op| a.src(module) == Some(module.result(load)) && fills(load);
        copies.iter().any(filled_by)
    };
    let others: u32 = alive(module, l.0).filter(|&a| !is_ring(a)).map(bytes).sum();
    rings + others
}

fn bytes_of(module: &Module, buffer: ttg::LocalAlloc) -> u32 {
    buffer_bytes(module, module.value_type(buffer.result(module))).map_or(0, |(bytes, _)| bytes)
}

/// Bytes of the buffers that are alive in a loop of any kind.
pub fn alive_bytes(module: &Module, l: Op) -> u32 {
    alive(module, l).map(|a| bytes_of(module, a)).sum()
}

fn alive(module: &Module, l: Op) -> impl Iterator<Item = ttg::LocalAlloc> {
    let allocs = module.all_ops(module.root()).into_iter();
    allocs.filter_map(|op| ttg::LocalAlloc::cast(module, op)).filter(move |&a| is_alive(module, l, a))
}

/// Bytes that the loop may want beside its buffers: the largest scratch, mbarriers, and what alignment costs.
pub fn beside(module: &Module, l: Op) -> u32 {
    beside_buffers(module, &module.all_ops(l))
}

/// Bytes for mbarriers, and for what alignment costs.
pub const BARRIERS: u32 = 1024;

/// What operations may want beside buffers: the largest scratch, mbarriers, and what alignment costs.
fn beside_buffers(module: &Module, ops: &[Op]) -> u32 {
    ops.iter().map(|&op| scratch::scratch_bytes(module, op)).max().unwrap_or(0) + BARRIERS
}

/// Bytes of shared memory that a function may want beside rings which live as long as an operation of it: buffers, the largest tile on its way out, the largest
/// conversion, and what mbarriers and alignment take.
pub fn beside_rings(module: &Module, op: Op) -> u32 {
    let func = scope::function(module, op);
    let bytes = |ty| buffer_bytes(module, ty).map_or(0, |(bytes, _)| bytes);
    let ops = func.map_or(Vec::new(), |f| module.all_ops(f));
    let (mut buffers, mut stored) = (0, 0);
    for &op in &ops {
        if let Some(alloc) = ttg::LocalAlloc::cast(module, op) {
            // A loaded operand's buffer will be a slot of the ring.
            let loaded = alloc.src(module).is_some_and(|v| tt::DescriptorLoad::of(module, v).is_some());
            buffers += if loaded { 0 } else { bytes(module.value_type(alloc.result(module))) };
        } else if tt::DescriptorStore::cast(module, op).is_some()
            || tt::DescriptorReduce::cast(module, op).is_some()
        {
            stored = stored.max(tma::block_bytes(module, module.operands(op)[0]) as u32);
        }
    }
    buffers + stored + beside_buffers(module, &ops)
}

/// Registers of a thread for all but the operands and results of dots: maxima and sums of rows, addresses, descriptors, what is
/// being computed.
pub const OTHERS: u32 = 40;

/// Registers of a thread for its part of a tensor that is spread over so many warps.
pub fn words(module: &Module, value: Value, num_warps: u32) -> u32 {
    let ty = module.value_type(value);
    let elements: u32 = module.shape(ty).unwrap_or(&[]).iter().product();
    (elements / (num_warps * scope::warp_size(module))).max(1) * module.bits(ty).max(8) / 32
}

/// About how many registers a thread needs in the loop: accumulators, the largest operands of a dot in registers, and some
/// for addresses, descriptors and row-wise values.
pub fn registers(module: &Module, l: scf::For) -> u32 {
    let warps = scope::num_warps(module, l.0);
    let words = |v: Value| words(module, v, warps);
    let (mut results, mut operands) = (0, 0);
    for op in module.all_ops(l.0).into_iter().filter(|&op| is_dot(module, op)) {
        results += words(module.result(op));
        let of_tensors = module.operands(op)[..2].iter().filter(|&&v| module.is_tensor(module.value_type(v)));
        operands = operands.max(of_tensors.map(|&v| words(v)).sum());
    }
    results + operands + OTHERS
}

/// How many CTAs of so many warps, with so many registers a thread and so much shared memory, share a multiprocessor.
pub fn ctas(target: &TargetInfo, warps: u32, registers: u32, shared: u32) -> u32 {
    let by_registers = target.machine.registers / (warps * target.warp_size * registers);
    by_registers.min(target.max_shared / shared.max(1)).max(1)
}

/// The warps of a CTA that has a loop: those of the partitions beside it, too.
pub fn warps_of_cta(module: &Module, l: scf::For) -> u32 {
    let partitions =
        scope::enclosing(module, l.0).into_iter().flat_map(|(w, _)| w.partition_num_warps(module));
    scope::num_warps(module, l.0) + partitions.sum::<i32>() as u32
}

/// Whether a buffer is in use in the loop, or before and after it.
fn is_alive(module: &Module, l: Op, alloc: ttg::LocalAlloc) -> bool {
    let Some(block) = module.parent_block(l) else { return true };
    let Some(made) = module.ancestor_in_block(block, alloc.0) else { return true };
    (made == l || module.is_before(made, l)) && is_used_from(module, l, alloc.result(module))
}

/// Whether a buffer, or what is made of it, is used in the loop or after it.
fn is_used_from(module: &Module, l: Op, value: Value) -> bool {
    let Some(block) = module.parent_block(l) else { return true };
    // (Values of a sorted tensor come together again and again: each is looked at once.)
    let mut seen = FxHashSet::default();
    let mut work = vec![value];
    while let Some(v) = work.pop() {
        if !seen.insert(v) {
            continue;
        }
        for u in module.uses(v) {
            let used: Option<Op> = module.ancestor_in_block(block, u.op);
            if used.is_none_or(|at| at == l || module.is_before(l, at)) {
                return true;
            }
            work.extend(module.results(u.op));
        }
    }
    false
}
