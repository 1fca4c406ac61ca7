//! Blocks that the dots of a loop will need, brought into the cache some iterations ahead.
//!
//! Why here: a block is still that of the whole work group, of which each warp then brings a part, whatever it has of the block later
//! ([`distribute_to_warps`](super::distribute_to_warps)).
//!
//! How far ahead is a matter of the loop's schedule ([`schedule`]): `num_stages - 1` iterations as for copies
//! into rings, and more where the time from memory is that of more iterations.
//!
//! ```text
//! scf.for %k = %lo to %hi step %s {
//!   %a = tt.descriptor_load %d[%y, %k]
//!   … tt.dot %a …
//! }
//! =>
//! tt.descriptor_prefetch %d[%y, %lo] ; tt.descriptor_prefetch %d[%y, %lo + %s]
//! scf.for %k = %lo to %hi step %s {
//!   tt.descriptor_prefetch %d[%y, %k + 2 * %s]
//!   %a = tt.descriptor_load %d[%y, %k]
//!   … tt.dot %a …
//! }
//! ```
//!
//! The loop is marked where several warps share them ([`marks::SHARED_PREFETCHES`]).
//! Behind the loop's end prefetches bring what is not needed, or nothing where the matrix ends.

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::{scf, tt};
use tilewright_ir::{AttrKind, Builder, Module, Op, Type, Value, launch, marks};

use crate::analysis::affine::{Affine, Poly};
use crate::analysis::{scope, waiting};
use crate::pass::{Pass, Property};
use crate::sums;
use crate::target::TargetInfo;
use crate::transform::software_pipeline::graph::{Body, Stream};
use crate::transform::software_pipeline::schedule::{self, becomes_copy, has_dot, reaches};

/// The pass.
pub const PASS: Pass = Pass {
    name: "prefetch-blocks",
    summary: "bring blocks that loops load for their dots into the cache ahead",
    requires: &[Property::LaidOut],
    ensures: &[],
    run: |m, t, o| {
        run(m, t, o.num_stages);
        Ok(())
    },
};

/// Places prefetches in all loops with dots. `num_stages` is the launch option; a loop's `tt.num_stages` overrides it.
pub fn run(module: &mut Module, target: &TargetInfo, num_stages: u32) {
    let loops = module.all_ops(module.root()).into_iter().filter_map(|op| scf::For::cast(module, op));
    for l in loops.collect::<Vec<_>>() {
        let blocks = blocks(module, target, l, num_stages);
        for block in &blocks {
            place(module, l, block);
        }
        let is_of_one = launch::warps_of_program(module).is_some() || scope::num_warps(module, l.0) == 1;
        if !blocks.is_empty() && !is_of_one {
            let unit = module.attr(AttrKind::Unit);
            module.set_attr(l.0, marks::SHARED_PREFETCHES, unit);
        }
    }
}

/// A load of a block, of which others are ahead.
struct Ahead {
    load: tt::DescriptorLoad,
    /// Its indices in the first iterations.
    first: Vec<Vec<Poly>>,
    /// Its indices in an iteration some ahead: what is added to those of the load.
    later: Vec<Poly>,
}

/// The loads of a loop that have prefetches.
fn blocks(m: &Module, target: &TargetInfo, l: scf::For, num_stages: u32) -> Vec<Ahead> {
    let stages = schedule::stages_of(m, l.0, num_stages);
    // An iteration that waits for other programs must not read ahead of its wait.
    if stages < 2 || m.all_ops(l.0).into_iter().any(|op| waiting::synchronizes(m, op)) {
        return Vec::new();
    }
    let body = m.region_block(l.body(m));
    let loads = m.block_ops(body).filter_map(|op| tt::DescriptorLoad::cast(m, op));
    let loads: Vec<_> = loads
        .filter(|load| reaches(m, body, load.result(m), |op| becomes_copy(m, op), |op| has_dot(m, op)))
        .collect();
    if loads.is_empty() {
        return Vec::new();
    }
    let distance = distance(m, target, l, &loads, stages);
    let affine = Affine::new(m);
    loads.into_iter().filter_map(|load| ahead(m, &affine, l, load, distance)).collect()
}

/// How many iterations ahead.
fn distance(m: &Module, target: &TargetInfo, l: scf::For, loads: &[tt::DescriptorLoad], stages: u32) -> u32 {
    let (block, machine) = (m.region_block(l.body(m)), target.machine);
    let num_warps = scope::num_warps(m, l.0);
    let stream = Stream { num_warps, in_step: num_warps, ctas: 1 };
    let end = m.last_op(block);
    let ops: Vec<Op> = m.block_ops(block).filter(|&op| Some(op) != end).collect();
    let ahead: FxHashSet<Op> = loads.iter().map(|load| load.0).collect();
    let body = Body { module: m, machine, block, ops, copies: &[], ahead, slots: stages };
    let interval = body.schedule(stream, None, true).interval(stream).max(1);
    (stages - 1).max(machine.load_latency.div_ceil(interval).min(8))
}

fn ahead(
    m: &Module,
    affine: &Affine<'_>,
    l: scf::For,
    load: tt::DescriptorLoad,
    distance: u32,
) -> Option<Ahead> {
    let is_inside = |v: Value| {
        m.value_block(v).and_then(|b| m.block_parent_op(b)).is_some_and(|around| m.is_ancestor(l.0, around))
    };
    let number = m.block_args(m.region_block(l.body(m)))[0];
    let indices: Vec<Poly> = load.indices(m).iter().map(|&index| affine.scalar(index)).collect();
    let known = indices.iter().flat_map(Poly::leaves).all(|v| v == number || !is_inside(v));
    if !known || is_inside(load.desc(m)) {
        return None;
    }
    let (step, from) = (affine.scalar(l.step(m)), affine.scalar(l.lower_bound(m)));
    let moved = |begin: &Poly, steps: u32| {
        let at = begin.plus(&step, i64::from(steps));
        indices.iter().map(|index| index.with(number, &at)).collect::<Vec<_>>()
    };
    let later = moved(&Poly::leaf(number), distance);
    let later: Vec<Poly> = later.iter().zip(&indices).map(|(later, now)| later.plus(now, -1)).collect();
    // One block for all iterations needs none.
    let moves = later.iter().any(|by| !by.is_zero());
    moves.then(|| Ahead { load, first: (0..distance).map(|i| moved(&from, i)).collect(), later })
}

fn place(m: &mut Module, l: scf::For, block: &Ahead) {
    let load = block.load;
    let (desc, indices) = (load.desc(m), load.indices(m).to_vec());
    let mut b = Builder::before(m, l.0);
    b.set_loc(b.module.op_loc(load.0));
    for at in &block.first {
        let at: Vec<Value> = at.iter().map(|index| sums::build(&mut b, index, Type::I32)).collect();
        tt::DescriptorPrefetch::build(&mut b, desc, &at);
    }
    let mut b = Builder::before(m, load.0);
    let mut at = indices;
    for (index, by) in at.iter_mut().zip(&block.later).filter(|(_, by)| !by.is_zero()) {
        let by = sums::build(&mut b, by, Type::I32);
        *index = tilewright_ir::dialect::arith::Addi::build(&mut b, *index, by).result(b.module);
    }
    tt::DescriptorPrefetch::build(&mut b, desc, &at);
}
