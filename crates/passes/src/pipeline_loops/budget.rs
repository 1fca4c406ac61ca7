//! How much shared memory a loop would need with rings of so many slots.

use tilewright_ir::dialect::{scf, tt, ttg};
use tilewright_ir::{Module, Op, Value};

use crate::allocate_shared::buffer_bytes;
use crate::{scratch, tma};

/// Bytes of the buffers that are alive in the loop `l`, with rings of `slots` for `copies` and `blocks`, and of the largest
/// scratch.
pub fn shared_bytes(
    module: &Module,
    l: scf::For,
    copies: &[tt::Load],
    blocks: &[tt::DescriptorLoad],
    slots: u32,
) -> u32 {
    let bytes = |a: ttg::LocalAlloc| {
        buffer_bytes(module, module.value_type(a.result(module))).map_or(0, |(bytes, _)| bytes)
    };
    let rings: u32 = copies
        .iter()
        .map(|load| {
            let value = load.result(module);
            let buffer = module.uses(value).iter().find_map(|u| ttg::LocalAlloc::cast(module, u.op));
            let ty = module.value_type(value);
            let plain =
                || module.shape(ty).unwrap_or(&[]).iter().product::<u32>() * module.bits(ty).max(8) / 8;
            slots * buffer.map_or_else(plain, bytes)
        })
        .chain(blocks.iter().map(|load| slots * tma::block_bytes(module, load.desc(module)) as u32))
        .sum();
    let is_ring = |a: ttg::LocalAlloc| {
        let loaded = |src| {
            copies.iter().any(|load| load.result(module) == src)
                || blocks.iter().any(|load| load.result(module) == src)
        };
        a.src(module).is_some_and(loaded)
    };
    let others: u32 = module
        .all_ops(module.root())
        .into_iter()
        .filter_map(|op| ttg::LocalAlloc::cast(module, op))
        .filter(|&a| !is_ring(a) && is_alive(module, l, a))
        .map(bytes)
        .sum();
    let ops = module.all_ops(l.0).into_iter();
    // mbarriers, and what alignment costs.
    const SMALL: u32 = 1024;
    rings + others + ops.map(|op| scratch::scratch_bytes(module, op)).max().unwrap_or(0) + SMALL
}

/// Whether a buffer is in use in the loop, or before and after it.
fn is_alive(module: &Module, l: scf::For, alloc: ttg::LocalAlloc) -> bool {
    let Some(block) = module.parent_block(l.0) else { return true };
    let Some(made) = module.ancestor_in_block(block, alloc.0) else { return true };
    (made == l.0 || module.is_before(made, l.0)) && is_used_from(module, l, alloc.result(module))
}

/// Whether a buffer or a view of it is used in the loop or after it.
fn is_used_from(module: &Module, l: scf::For, value: Value) -> bool {
    let Some(block) = module.parent_block(l.0) else { return true };
    module.uses(value).iter().any(|u| {
        let used: Option<Op> = module.ancestor_in_block(block, u.op);
        let view = || module.results(u.op).iter().any(|&r| is_used_from(module, l, r));
        used.is_none_or(|at| at == l.0 || module.is_before(l.0, at)) || view()
    })
}
