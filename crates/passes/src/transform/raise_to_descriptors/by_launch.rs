//! Which blocks are worth a tensor map: those of operands of products in loops, where the launch can make the map.

use tilewright_ir::dialect::{scf, tt};
use tilewright_ir::opdef::Access;
use tilewright_ir::{Module, Op, Opcode, Value, ValueDef, launch};

use super::plan::{Batch, Extent, Index, Known, Plan};
use crate::analysis::affine::{Poly, Product};
use crate::analysis::global_bases::GlobalBases;
use crate::analysis::{encoding_inference, scope, waiting};
use crate::transform::assign_layouts::warp_group_shape;

/// The most dimensions of a tensor map besides rows and columns (CUDA driver API, `cuTensorMapEncodeTiled`).
const MOST_BATCHES: usize = 3;

/// The most products of a loop. With more of them threads have time to copy while they wait for products, and one that starts copies by TMA delays its
/// warp group (an H100, attention backward with three products: 0.94 of the speed for dq at D = 128 and 64).
const MOST_DOTS: usize = 2;

/// The warps of a warp group.
const WARP_GROUP: u32 = 4;

/// The same plan with indices of dimensions for what a program's own numbers add to where its matrix begins, and without ends where nothing is masked.
pub(super) fn of_batches(known: &Known<'_>, mut plan: Plan) -> Plan {
    let m = known.m;
    let stores = tt::Store::cast(m, plan.op).is_some();
    for dim in &mut plan.dims {
        if matches!(dim.extent, Extent::Reached { .. }) {
            dim.extent = Extent::Any;
        }
        // Threads store what may begin in front of the matrix.
        if stores {
            dim.index_is = Index::InPlace;
        }
    }
    let (own, mut begin) = plan.offset.split(|product, _| product.iter().any(|&v| !is_argument(m, v)));
    let mut batches: Vec<Batch> = Vec::new();
    for (product, coefficient) in own.terms() {
        let (given, index): (Product, Product) = product.iter().copied().partition(|&v| is_argument(m, v));
        let (pitch, index) = (Poly::term(given, coefficient), Poly::term(index, 1));
        match batches.iter_mut().find(|batch| batch.index == index) {
            Some(batch) => batch.pitch = batch.pitch.plus(&pitch, 1),
            None => batches.push(Batch { pitch, index }),
        }
    }
    let mut batches = with_one_pitch(batches);
    for batch in &mut batches {
        not_before(known, batch, &mut begin);
    }
    let bytes = known.bytes(plan.base);
    let mappable = |batch: &Batch| {
        let index = known.intervals.of(&batch.index);
        index.low >= 0 && index.fits() && known.whole(&batch.pitch, bytes, known.limit.alignment)
    };
    if batches.len() <= MOST_BATCHES && batches.iter().all(mappable) {
        (plan.offset, plan.batches) = (begin, batches);
    }
    plan
}

/// Batches whose matrices are as far from each other as those of another are one with it: of the number of programs and a program's number comes an index from the
/// end. A tensor map knows no way back, so the index counts the other way.
fn with_one_pitch(batches: Vec<Batch>) -> Vec<Batch> {
    let mut found: Vec<Batch> = Vec::new();
    for Batch { mut pitch, mut index } in batches {
        if pitch.terms().all(|(_, coefficient)| coefficient < 0) {
            (pitch, index) = (Poly::zero().plus(&pitch, -1), Poly::zero().plus(&index, -1));
        }
        match found.iter_mut().find(|other| other.pitch == pitch) {
            Some(other) => other.index = other.index.plus(&index, 1),
            None => found.push(Batch { pitch, index }),
        }
    }
    found
}

/// What a matrix begins so many pitches before its base is part of the index, if that does not become negative.
fn not_before(known: &Known<'_>, batch: &mut Batch, begin: &mut Poly) {
    let back = begin.multiples(&batch.pitch, |n| n.constant().is_some_and(|n| n < 0));
    let index = batch.index.plus(&back, 1);
    if !back.is_zero() && known.intervals.of(&index).low >= 0 {
        *begin = begin.plus(&back.times(&batch.pitch), -1);
        batch.index = index;
    }
}

/// Whether a plan is that of a load in a loop whose block is an operand of a product, of a matrix that the launch knows.
pub(super) fn feeds_dot(m: &Module, plan: &Plan, num_warps: u32) -> bool {
    let around: Vec<_> = std::iter::successors(m.parent_op(plan.op), |&op| m.parent_op(op)).collect();
    let Some(func) = around.iter().position(|&op| tt::Func::cast(m, op).is_some()) else { return false };
    let always = around[..func].iter().all(|&op| scf::For::cast(m, op).is_some());
    always && func > 0 && dots_within(m, around[0]) <= MOST_DOTS && is_operand_of_dots(m, plan, num_warps)
}

/// Whether a plan is that of a load, of a matrix that the launch knows, whose block is an operand of products and nothing else.
pub(super) fn is_operand_of_dots(m: &Module, plan: &Plan, num_warps: u32) -> bool {
    let Some(load) = tt::Load::cast(m, plan.op) else { return false };
    let in_place = plan.dims.iter().all(|dim| dim.index_is == Index::InPlace);
    let contiguous = usize::from(!plan.transposed);
    let warps = scope::num_warps_of(m, plan.op, num_warps);
    is_known(m, plan) && in_place && is_operand(m, load.result(m), contiguous, warps)
}

/// Whether a plan is that of a store behind all loops, of a product that a loop adds up and nothing else, to a matrix that the launch knows.
///
/// - A single warp group multiplies: another program on the multiprocessor multiplies while this one stores. Where two warp groups fill a multiprocessor
///   nothing is gained, and attention loses (docs/log/2026-11-26.md).
/// - Elements have 16 bits, which warps bring to shared memory as matrices (`stmatrix`). Wider ones threads store as they have them, past shared memory.
/// - It is in order with all that the kernel writes, and reads behind it ([`is_in_order`]).
pub(super) fn stores_product(m: &Module, plan: &Plan, num_warps: u32) -> bool {
    let Some(store) = tt::Store::cast(m, plan.op) else { return false };
    let behind_loops = m.parent_op(plan.op).is_some_and(|op| tt::Func::cast(m, op).is_some());
    let of_matrices = m.bits(m.value_type(store.value(m))) == 16 && !plan.transposed;
    if !behind_loops || !of_matrices || scope::num_warps_of(m, plan.op, num_warps) != WARP_GROUP {
        return false;
    }
    let product = encoding_inference::product_behind(m, store.value(m));
    let alone = |dot: tt::Dot| {
        let around = m.parent_op(dot.0).filter(|&op| scf::For::cast(m, op).is_some());
        around.is_some_and(|op| dots_within(m, op) == 1) && of_warp_groups(m, dot, WARP_GROUP)
    };
    is_known(m, plan)
        && product.and_then(|op| tt::Dot::cast(m, op)).is_some_and(alone)
        && is_in_order(m, plan)
}

/// Whether a kernel writes through the pointer of a store alone, and behind it reads through no other: then a copy in its place is in order with these (`global-proxies`).
/// A launch may give one tensor for two arguments, and of what a thread stores through one and loads through the other, its own order is kept.
fn is_in_order(m: &Module, plan: &Plan) -> bool {
    let (Some(func), Some(body)) = (m.parent_op(plan.op), m.parent_block(plan.op)) else { return false };
    let is_its = |base: Value| base == plan.base;
    let behind = m.block_ops(body).skip_while(|&op| op != plan.op).flat_map(|op| m.all_ops(op));
    let global = GlobalBases::of(m);
    launch::is_kernel(m, func)
        && global.written(&[func]).into_iter().all(is_its)
        && behind.flat_map(|op| global.touched(op, Access::Read)).all(is_its)
}

/// How many products an operation holds.
pub(super) fn dots_within(m: &Module, op: Op) -> usize {
    m.all_ops(op).into_iter().filter(|&op| tt::Dot::cast(m, op).is_some()).count()
}

/// Whether the launch knows where the matrix of a plan lies, and how large it is.
fn is_known(m: &Module, plan: &Plan) -> bool {
    let is_known = |poly: &Poly| poly.leaves().all(|leaf| is_argument(m, leaf));
    let extents_known = plan.dims.iter().all(|dim| match &dim.extent {
        Extent::Bounded(bounds) => bounds.iter().all(is_known),
        Extent::Any => true,
        Extent::Reached { .. } => false,
    });
    is_argument(m, plan.base) && is_known(&plan.offset) && is_known(&plan.pitch) && extents_known
}

/// Whether a kernel is worth a look: it has products, and its programs don't wait for others.
pub(super) fn may_pay(m: &Module) -> bool {
    dots_within(m, m.root()) > 0 && waiting::first_wait(m, m.root()).is_none()
}

fn is_argument(m: &Module, value: Value) -> bool {
    match m.value_def(value) {
        ValueDef::Argument(block, _) => {
            m.block_parent_op(block).is_some_and(|op| tt::Func::cast(m, op).is_some())
        }
        ValueDef::Result(..) => false,
    }
}

/// Whether warp groups can share a product's rows and columns: others read operands by `ldmatrix`, which copies by threads feed as well.
fn of_warp_groups(m: &Module, dot: tt::Dot, num_warps: u32) -> bool {
    let result = m.value_type(dot.result(m));
    let Some(&[rows, columns]) = m.shape(result) else { return false };
    warp_group_shape(rows, columns, num_warps, m.is_int(result)).is_some()
}

/// Whether all that uses a block are products that can read it as it lies in memory, where its elements along the dimension `contiguous` are side by
/// side: of 16 bits along either dimension, others along that of the sum only (PTX ISA, "wgmma.mma_async": strides).
fn is_operand(m: &Module, value: Value, contiguous: usize, num_warps: u32) -> bool {
    let any_way = m.bits(m.value_type(value)) == 16;
    !m.is_unused(value)
        && m.uses(value).iter().all(|u| match m.opcode(u.op) {
            Some(Opcode::Tt(tt::Kind::Dot)) if of_warp_groups(m, tt::Dot(u.op), num_warps) => match u.index {
                0 => any_way || contiguous == 1,
                1 => any_way || contiguous == 0,
                _ => false,
            },
            Some(Opcode::Tt(tt::Kind::Trans)) => is_operand(m, m.result(u.op), 1 - contiguous, num_warps),
            _ => false,
        })
}
