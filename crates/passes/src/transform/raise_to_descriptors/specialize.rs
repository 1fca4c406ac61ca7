//! Which loops give loading to a warp of its own (`tt.warp_specialize`), whose author wrote loads through pointers and could not ask for it: those of attention.
//!
//! Two products follow each other there, with a softmax between. A warp group that starts copies, waits for them and waits for its products has a part of its tensor cores'
//! time to itself; where a loader starts the copies, warp groups have nothing to wait for together, and one multiplies while the other takes exponentials. That takes
//! registers: a program of two warp groups with accumulators so large that no second one fits on the multiprocessor has them to spare (docs/log/2026-11-26.md: which gain).
//!
//! ```text
//! scf.for %j = … {                             scf.for %j = … {
//!   %k = tt.descriptor_load %keys[…]             …
//!   %s = tt.dot %q, %k, 0                    } {tt.warp_specialize}
//!   %p = …
//!   %v = tt.descriptor_load %values[…]   =>
//!   %o = tt.dot %p, %v, %acc
//! }
//! ```

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{scf, tt};
use tilewright_ir::{AttrKind, Module, Op, Value};

use super::by_launch::dots_within;
use crate::analysis::encoding_inference::product_behind;
use crate::hopper::warp_specialize::HINT;
use crate::target::TargetInfo;

/// The warps of a program that is large enough, two warp groups, and their rows.
const WARPS: u32 = 8;
const ROWS: u32 = 128;
/// The fewest elements of the accumulator that a thread has, and of both products together.
const ACCUMULATED: u32 = 64;
const OF_BOTH: u32 = 96;
/// Those of an accumulator beside which operands that threads load leave no registers.
const FILLING: u32 = 128;
/// Bytes of shared memory for scratch.
const SCRATCH: u32 = 8 << 10;

/// Asks for warps that load, in all loops of attention whose loads have become those of blocks, if there is shared memory for two slots of each. Whether there are any.
pub(super) fn ask(m: &mut Module, target: &TargetInfo, num_warps: u32) -> bool {
    if num_warps != WARPS {
        return false;
    }
    let loops: Vec<Op> = m.all_ops(m.root()).into_iter().filter(|&op| is_attention(m, op)).collect();
    if 2 * slot_bytes(m, &loops) + kept_bytes(m, &loops) + SCRATCH > target.max_shared {
        return false;
    }
    for &op in &loops {
        let yes = m.attr(AttrKind::Bool(true));
        m.set_attr(op, HINT, yes);
    }
    !loops.is_empty()
}

/// The loads of a function's body of what the first products of loops that ask for such a warp take from outside; `persistent`: where programs do the work of several. There
/// they stay with threads, and with them the loop over programs, where these load for a large accumulator, too.
pub(super) fn queries(m: &Module, persistent: bool) -> Vec<Op> {
    if persistent && threads_load(m) {
        return Vec::new();
    }
    let loops = m.all_ops(m.root()).into_iter().filter(|&op| m.op_attr(op, HINT).is_some());
    let in_body = |&op: &Op| m.parent_op(op).is_some_and(|op| tt::Func::cast(m, op).is_some());
    let mut found: Vec<Op> = first_products(m, loops)
        .filter_map(|dot| m.defining_op(dot.a(m)))
        .filter(|op| tt::Load::cast(m, *op).is_some() && in_body(op))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether a loop multiplies what threads load, as behind masks, with so large an accumulator that beside a warp that loads `ptxas` has no registers for both: it spills, and lets
/// no product be under way beside what else a warp does.
fn threads_load(m: &Module) -> bool {
    let is_block =
        |load: tt::Load| m.shape(m.value_type(load.result(m))).is_some_and(|shape| shape.len() == 2);
    let loops = m.all_ops(m.root()).into_iter().filter(|&op| scf::For::cast(m, op).is_some());
    let mut of_threads = loops.filter(|&op| m.op_attr(op, HINT).is_none()).map(|op| m.all_ops(op));
    of_threads.any(|ops| {
        let mut dots = ops.iter().filter_map(|&op| tt::Dot::cast(m, op));
        dots.any(|dot| of_thread(m, dot) >= FILLING)
            && ops.iter().any(|&op| tt::Load::cast(m, op).is_some_and(is_block))
    })
}

/// The elements of a product that a thread has.
fn of_thread(m: &Module, dot: tt::Dot) -> u32 {
    m.shape(m.value_type(dot.result(m))).unwrap_or(&[]).iter().product::<u32>() / (32 * WARPS)
}

/// The first product of each loop.
fn first_products(m: &Module, loops: impl Iterator<Item = Op>) -> impl Iterator<Item = tt::Dot> {
    loops.filter_map(|op| m.all_ops(op).into_iter().find_map(|op| tt::Dot::cast(m, op)))
}

/// The bytes of the blocks that loops load; those of one descriptor share a ring.
fn slot_bytes(m: &Module, loops: &[Op]) -> u32 {
    let loads = loops.iter().flat_map(|&op| m.all_ops(op));
    let loads = loads.filter_map(|op| tt::DescriptorLoad::cast(m, op));
    let of_descriptor: FxHashMap<Value, u32> =
        loads.map(|load| (load.desc(m), bytes(m, load.result(m)))).collect();
    of_descriptor.values().sum()
}

/// The bytes of what the first products of loops take from outside, which lies in shared memory, too.
fn kept_bytes(m: &Module, loops: &[Op]) -> u32 {
    let dots = first_products(m, loops.iter().copied());
    let kept: FxHashMap<Value, u32> = dots.map(|dot| (dot.a(m), bytes(m, dot.a(m)))).collect();
    kept.values().sum()
}

fn bytes(m: &Module, value: Value) -> u32 {
    let ty = m.value_type(value);
    m.shape(ty).unwrap_or(&[]).iter().product::<u32>() * m.bits(ty) / 8
}

/// Whether a loop, within no other, multiplies twice, the second time what it has made of the first product, loads no tensors but blocks, and adds up many elements a thread.
fn is_attention(m: &Module, op: Op) -> bool {
    let in_body = m.parent_op(op).is_some_and(|op| tt::Func::cast(m, op).is_some());
    if scf::For::cast(m, op).is_none() || !in_body || dots_within(m, op) != 2 {
        return false;
    }
    let ops = m.all_ops(op);
    let loads = ops.iter().filter_map(|&op| tt::Load::cast(m, op));
    let blocks = ops.iter().filter(|&&op| tt::DescriptorLoad::cast(m, op).is_some()).count();
    let scattered = loads.into_iter().any(|load| m.is_tensor(m.value_type(load.result(m))));
    let dots: Vec<tt::Dot> = ops.iter().filter_map(|&op| tt::Dot::cast(m, op)).collect();
    let [first, second] = dots[..] else { return false };
    let shape = |dot: tt::Dot| m.shape(m.value_type(dot.result(m))).unwrap_or(&[]);
    blocks == 2
        && !scattered
        && m.parent_op(second.0) == Some(op)
        && product_behind(m, second.a(m)) == Some(first.0)
        && shape(second).first() == Some(&ROWS)
        && of_thread(m, second) >= ACCUMULATED
        && of_thread(m, first) + of_thread(m, second) >= OF_BOTH
}
