//! Conversions: how the elements of a tensor get from one layout to another.
//!
//! Cheapest first: nothing to do, registers renamed, shuffles within each warp, or a round trip through shared memory with
//! a swizzle that keeps both sides free of bank conflicts. All of it is derived from the two linear layouts; no pair of
//! encodings is a special case.
//!
//! Layouts with the same unit and repeats convert unit by unit. If these differ (96 rows as 3 × 32 on one side, padded to
//! 128 on the other), elements go through shared memory in units of the smaller size.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};

use crate::access::{Access, SharedAccess};
use crate::banks::wavefronts;
use crate::distribute::Coord;
use crate::error::{LayoutError, Result};
use crate::f2::{Span, Vectors, extend, intersection, log2};
use crate::linear::{Dim, LinearLayout};
use crate::matrix::{MatrixAccess, matrix_rows};
use crate::shared::SharedLayout;
use crate::shuffle::{ShufflePlan, Source, source_in_warp};
use crate::swizzle::swizzle;
use crate::tile::TileLayout;
use crate::view::Place;

/// How to convert a tensor between two layouts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversionPlan {
    /// Register r of the result is register r of the source.
    Noop,
    /// Register r of the result is this register of the source.
    RegisterPermute(Vec<u32>),
    /// Elements stay in their warp.
    WarpShuffle(ShufflePlan),
    /// Elements go through shared memory.
    SharedMemory(Box<SharedPlan>),
}

/// Who has to wait between the stores and the loads of a [`SharedPlan`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncScope {
    /// The lanes of the warp: elements don't leave it. Only where the CTA has just the warps that the source layout tells
    /// apart; with more, it is the CTA.
    Warp,
    /// The whole CTA (or partition).
    Cta,
}

/// A conversion through a scratch buffer.
///
/// Each round: wait (from the second on) until the loads of the round before are done, store, wait, load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedPlan {
    /// Where elements lie in the scratch buffer.
    pub scratch: SharedLayout,
    /// Bytes of scratch memory, 16-byte aligned.
    pub scratch_bytes: u32,
    /// The source's stores, in the order of the rounds. Predicate them by [`TileLayout::register_bounds`] if
    /// `needs_predicate`. Threads with copies ([`TileLayout::free_variable_masks`]) may store or not, but where the scope is
    /// the warp, lanes only.
    pub store: SharedAccess,
    /// The source's stores by `stmatrix` instead, in the order of the rounds: whole warps store, without predicates.
    pub matrices: Option<MatrixAccess>,
    /// The result's loads, in the order of the rounds. Registers out of bounds keep any value.
    pub load: SharedAccess,
    /// The accesses of each round.
    pub rounds: Vec<SharedRound>,
    /// Who waits.
    pub scope: SyncScope,
}

/// One round of a [`SharedPlan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedRound {
    /// Indices of `store.accesses`, or of the instructions of `matrices` where there are any.
    pub stores: Range<usize>,
    /// Indices of `load.accesses`.
    pub loads: Range<usize>,
}

/// What a conversion may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversionOptions {
    /// Scratch memory above which the conversion goes in rounds, where the layouts allow it.
    pub max_scratch_bytes: u32,
    /// The same of a conversion within warps, whose rounds cost little: memory that rings of copies may have.
    pub max_scratch_in_warp: u32,
    /// When to use shuffles.
    pub shuffles: ShuffleUse,
    /// Whether there is `stmatrix`.
    pub stmatrix: bool,
}

/// When a conversion within warps uses shuffles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShuffleUse {
    /// Never: through shared memory.
    Never,
    /// Where they cost less than shared memory.
    IfCheaper,
    /// Wherever they can do it.
    Always,
}

impl Default for ConversionOptions {
    fn default() -> Self {
        Self {
            max_scratch_bytes: 64 << 10,
            max_scratch_in_warp: 32 << 10,
            shuffles: ShuffleUse::IfCheaper,
            stmatrix: false,
        }
    }
}

/// The scratch of a conversion within warps that goes in rounds: with more memory there are fewer barriers, but a ring of copies may lose a slot.
const IN_WARP_AT_ONCE: u32 = 16 << 10;

/// Plans the conversion of a tensor of `elem_bits`-bit elements from `src` to `dst`.
///
/// # Errors
/// The shapes differ, or (with a linear encoding of overlapping bases) nothing can carry the conversion.
pub fn plan_conversion(src: &TileLayout, dst: &TileLayout, elem_bits: u32) -> Result<ConversionPlan> {
    plan_conversion_with(src, dst, elem_bits, ConversionOptions::default())
}

/// [`plan_conversion`] with options.
///
/// # Errors
/// As for `plan_conversion`.
pub fn plan_conversion_with(
    src: &TileLayout,
    dst: &TileLayout,
    elem_bits: u32,
    options: ConversionOptions,
) -> Result<ConversionPlan> {
    if src.shape() != dst.shape() {
        return Err(LayoutError::new(format!(
            "a conversion can't change the shape, here from {:?} to {:?}",
            src.shape(),
            dst.shape()
        )));
    }
    if src == dst {
        return Ok(ConversionPlan::Noop);
    }
    let axes: SmallVec<[Place; 4]> = (0..src.rank() as u8).map(Place::Axis).collect();
    if let Some(permutation) = dst.registers_from(src, &axes) {
        let same = src.num_registers() == dst.num_registers();
        return Ok(if same && permutation.iter().enumerate().all(|(i, &r)| r == i as u32) {
            ConversionPlan::Noop
        } else {
            ConversionPlan::RegisterPermute(permutation)
        });
    }
    let same_units = src.unit() == dst.unit() && src.reps() == dst.reps();
    let source = if same_units { source_in_warp(src.linear(), dst.linear()) } else { None };
    let shared = match round_trip(src, dst, elem_bits, source.as_ref(), options) {
        Err(_) if !same_units => in_rows(src, dst, elem_bits)?,
        plan => plan?,
    };
    if options.shuffles != ShuffleUse::Never
        && let Some(plan) = source.and_then(|s| s.shuffles(src.unit_registers()))
    {
        let reps = (0..dst.num_reps()).map(|rep| {
            let from = src.rep_of(&dst.rep_coord(rep));
            (from * src.unit_registers(), rep * dst.unit_registers())
        });
        let plan = ShufflePlan { reps: reps.collect(), ..plan }.in_words(elem_bits);
        if options.shuffles == ShuffleUse::Always
            || shuffle_cost(&plan, elem_bits) <= shared_cost(&shared, src, dst, elem_bits)
        {
            return Ok(ConversionPlan::WarpShuffle(plan));
        }
    }
    Ok(ConversionPlan::SharedMemory(Box::new(shared)))
}

/// The cost of shuffles, in cycles of a warp on its own, roughly: a shuffle moves 128 bytes like a wavefront, and issues
/// at half the rate of an ALU operation.
fn shuffle_cost(plan: &ShufflePlan, elem_bits: u32) -> u64 {
    2 * u64::from(plan.num_shuffles(elem_bits)) + u64::from(plan.num_selects(elem_bits))
}

/// The cost of a round trip through shared memory in the same unit: each access its wavefronts and its issue, each round two
/// barriers and the latency of a load. Elements that follow each other in memory but not in registers are moved: what stores
/// them makes words of them, and what uses the result most likely wants vectors of registers in order.
fn shared_cost(plan: &SharedPlan, src: &TileLayout, dst: &TileLayout, elem_bits: u32) -> u64 {
    let side = |access: &SharedAccess, tile: &TileLayout| {
        access.accesses.len() as u64 * (1 + sample_wavefronts(access, tile, &plan.scratch, elem_bits))
    };
    let sync = if plan.scope == SyncScope::Cta { 60 } else { 30 };
    let in_order = |r: &[u32]| r.windows(2).all(|w| w[0] + 1 == w[1]);
    let per_word = (32 / elem_bits).max(1) as usize;
    let words = |a: &Access| a.registers.chunks(per_word).filter(|r| !in_order(r)).count() as u64;
    let packed: u64 = plan.store.accesses.iter().map(words).sum();
    let vector =
        |a: &Access| if in_order(&a.registers) { 0 } else { a.registers.len().div_ceil(per_word) as u64 };
    let unpacked: u64 = plan.load.accesses.iter().map(|a| words(a) + vector(a)).sum();
    let store = match &plan.matrices {
        Some(m) => m.instructions.len() as u64 * (1 + matrix_wavefronts(m, &plan.scratch, elem_bits)),
        None => side(&plan.store, src) + packed,
    };
    store + side(&plan.load, dst) + unpacked + plan.rounds.len() as u64 * sync
}

/// The wavefronts of one access of warp 0. Where offsets are linear all accesses and warps cost the same.
fn sample_wavefronts(access: &SharedAccess, tile: &TileLayout, shared: &SharedLayout, elem_bits: u32) -> u64 {
    let elem_bytes = elem_bits.max(8) / 8;
    let Some(first) = access.accesses.first() else { return 0 };
    let addresses: Vec<_> =
        (0..tile.num_lanes()).map(|lane| Some(access.offset(first, shared, lane, 0) * elem_bytes)).collect();
    wavefronts(&addresses, access.width * elem_bytes).wavefronts
}

/// The wavefronts of one `stmatrix` of warp 0.
fn matrix_wavefronts(access: &MatrixAccess, shared: &SharedLayout, elem_bits: u32) -> u64 {
    let Some(first) = access.instructions.first() else { return 0 };
    let rows: Vec<_> = (0..8 * access.count)
        .map(|lane| Some(access.offset(first, shared, lane, 0) * elem_bits / 8))
        .collect();
    wavefronts(&rows, 16).wavefronts
}

/// The smaller of two units, over which both layouts are linear, and each layout seen from there: what steps over
/// whole units is dropped.
fn common_unit(src: &TileLayout, dst: &TileLayout) -> (Coord, [LinearLayout; 2]) {
    let unit: Coord = src.unit().iter().zip(dst.unit()).map(|(a, b)| *a.min(b)).collect();
    let outs: SmallVec<[(Dim, u32); 4]> =
        unit.iter().enumerate().map(|(d, &u)| (Dim::Axis(d as u8), u)).collect();
    let empty = LinearLayout::from_bases(&[], &outs).expect("units are powers of two");
    let restrict = |tile: &TileLayout| {
        let bases = [Dim::Register, Dim::Lane, Dim::Warp].map(|dim| {
            let of = |&b: &u32| {
                outs.iter().fold(0, |a, &(d, _)| a | empty.out_flat(d, tile.linear().out_part(b, d)))
            };
            (dim, tile.linear().flat_bases(dim).iter().map(of).collect::<Vectors>())
        });
        let ins: SmallVec<[(Dim, &[u32]); 4]> = bases.iter().map(|(d, b)| (*d, b.as_slice())).collect();
        LinearLayout::from_bases(&ins, &outs).expect("bases are cut to the unit")
    };
    let both = [restrict(src), restrict(dst)];
    (unit, both)
}

/// A round trip through a buffer whose unit, the smaller of both sides', has the best swizzle.
fn round_trip(
    src: &TileLayout,
    dst: &TileLayout,
    elem_bits: u32,
    in_warp: Option<&Source>,
    options: ConversionOptions,
) -> Result<SharedPlan> {
    let (unit, [a, b]) = common_unit(src, dst);
    let counts: Coord = src.shape().iter().zip(&unit).map(|(s, u)| s.div_ceil(*u)).collect();
    let num_units: u32 = counts.iter().product();
    let elem_bytes = elem_bits.max(8) / 8;
    let unit_bytes = elem_bytes << a.total_out_bits();
    let same_units = src.unit() == dst.unit() && src.reps() == dst.reps();
    let most = if in_warp.is_some() { options.max_scratch_in_warp } else { options.max_scratch_bytes }.max(1);
    let reused = same_units && num_units > 1 && unit_bytes * num_units > most;
    let held = match reused {
        true => {
            held_at_once(&counts, if in_warp.is_some() { IN_WARP_AT_ONCE.min(most) } else { 0 } / unit_bytes)
        }
        false => counts.clone(),
    };
    let split = if same_units && (reused || num_units == 1) {
        let want = unit_bytes.div_ceil(most).next_power_of_two();
        split_registers(src, dst, log2(want))
    } else {
        Split::default()
    };

    // Vectors both sides have; or long ones for one side, if that costs less.
    let common = intersection(a.flat_bases(Dim::Register), b.flat_bases(Dim::Register));
    let mut candidates: Vec<Vectors> = vec![common.clone()];
    if elem_bytes << common.len() < 16 {
        for side in [&b, &a] {
            let wider = extend(&common, side.flat_bases(Dim::Register).iter().copied());
            candidates.push(common.iter().copied().chain(wider).collect());
        }
    }
    let straight = candidates.into_iter().map(|vector| (a.clone(), vector, false));
    // Or what whole rows of matrices have: then it is lanes that go through a vector, and `stmatrix` that stores it.
    let whole = options.stmatrix && src.free_variable_masks().lane == 0;
    let rows = if whole { matrix_rows(&a, elem_bits) } else { Vec::new() };
    let mut best: Option<(u64, SharedPlan)> = None;
    for (writer, vector, by_matrices) in straight.chain(rows.into_iter().map(|(l, v)| (l, v, true))) {
        let linear = swizzle(&writer, &b, elem_bits, &vector, &split.directions);
        let scratch = SharedLayout::scratch(src.shape(), linear, &counts, &held);
        let store = SharedAccess::new(src, &scratch, elem_bits)?;
        let load = SharedAccess::new(dst, &scratch, elem_bits)?;
        let matrices = if by_matrices { MatrixAccess::new(src, &scratch, elem_bits) } else { None };
        let in_rounds = |m: &MatrixAccess| {
            let part = |&r: &u32| round_of(src, &split.src_bits, &held, r);
            m.instructions.iter().all(|i| i.registers.iter().all(|r| part(r) == part(&i.registers[0])))
        };
        if by_matrices && !matrices.as_ref().is_some_and(in_rounds) {
            continue;
        }
        let crosses =
            in_warp.is_none() || src.free_variable_masks().warp != 0 || src.num_warps() != dst.num_warps();
        let plan = SharedPlan {
            scratch_bytes: (scratch.allocation_elems() * elem_bytes).next_multiple_of(16),
            scratch,
            store,
            matrices,
            load,
            rounds: Vec::new(),
            scope: if crosses { SyncScope::Cta } else { SyncScope::Warp },
        };
        let cost = shared_cost(&plan, src, dst, elem_bits);
        if best.as_ref().is_none_or(|b| cost < b.0) {
            best = Some((cost, plan));
        }
    }
    let (_, mut plan) = best.expect("there is at least one candidate");
    let stored = |r: u32| round_of(src, &split.src_bits, &held, r);
    let loaded = |r: u32| round_of(dst, &split.dst_bits, &held, r);
    let stores = match &mut plan.matrices {
        Some(m) => in_order(&mut m.instructions, |i| stored(i.registers[0])),
        None => in_order(&mut plan.store.accesses, |x| stored(x.registers[0])),
    };
    let loads = in_order(&mut plan.load.accesses, |x| loaded(x.registers[0]));
    debug_assert_eq!(stores.len(), loads.len());
    plan.rounds =
        stores.into_iter().zip(loads).map(|(stores, loads)| SharedRound { stores, loads }).collect();
    Ok(plan)
}

/// How many units along each axis go through the scratch at once, of at most so many: whole rounds along the last axis, one otherwise.
fn held_at_once(counts: &[u32], most: u32) -> Coord {
    let mut held: Coord = smallvec![1; counts.len()];
    if let (Some(held), Some(&count)) = (held.last_mut(), counts.last()) {
        *held = count.div_ceil(count.div_ceil(most.clamp(1, count)));
    }
    held
}

/// The round in which a register is moved, in the order of the rounds.
fn round_of(tile: &TileLayout, bits: &[u32], held: &[u32], register: u32) -> (Coord, u32) {
    let in_unit = register % tile.unit_registers();
    let part = bits.iter().enumerate().fold(0, |k, (i, &bit)| k | (in_unit >> bit & 1) << i);
    let rep = tile.rep_coord(register / tile.unit_registers());
    (rep.iter().zip(held).zip(tile.unit()).map(|((at, held), unit)| at / unit / held).collect(), part)
}

/// Sorts accesses by their rounds, and gives the accesses of each.
fn in_order<T, K: Ord>(accesses: &mut [T], round: impl Fn(&T) -> K) -> Vec<Range<usize>> {
    accesses.sort_by_cached_key(&round);
    let mut start = 0;
    let groups = accesses.chunk_by(|x, y| round(x) == round(y));
    groups.map(|g| (start, start += g.len(), start)).map(|(s, (), e)| s..e).collect()
}

/// Directions of the unit that are registers on both sides, so that a round can take one half of them each.
#[derive(Default)]
struct Split {
    directions: Vectors,
    src_bits: Vectors,
    dst_bits: Vectors,
}

/// Up to `count` directions to split a conversion along. A direction qualifies if it is one register bit on either side and
/// independent of all that remains: then both sides agree on which elements belong to a round.
fn split_registers(src: &TileLayout, dst: &TileLayout, count: u32) -> Split {
    let (a, b) = (src.linear().flat_bases(Dim::Register), dst.linear().flat_bases(Dim::Register));
    let mut split = Split::default();
    // The last registers of the result first: the first ones make the vectors.
    let shared: Vectors = b.iter().rev().copied().filter(|v| a.contains(v)).collect();
    for v in shared {
        if split.directions.len() as u32 == count {
            break;
        }
        let mut chosen = split.directions.clone();
        chosen.push(v);
        let rest =
            src.linear().all_bases().iter().chain(dst.linear().all_bases()).filter(|x| !chosen.contains(x));
        let rest: Vectors = rest.copied().collect();
        let mut span = Span::of(&rest);
        if chosen.iter().all(|&c| span.insert(c)) {
            split.src_bits.push(a.iter().position(|&x| x == v).expect("common") as u32);
            split.dst_bits.push(b.iter().position(|&x| x == v).expect("common") as u32);
            split.directions = chosen;
        }
    }
    split
}

/// A round trip through plain rows: for linear encodings that overlap across the units of the other side.
fn in_rows(src: &TileLayout, dst: &TileLayout, elem_bits: u32) -> Result<SharedPlan> {
    let unit: Coord = src.unit().iter().zip(dst.unit()).map(|(a, b)| *a.max(b)).collect();
    let counts: Coord = src.shape().iter().zip(&unit).map(|(s, u)| s.div_ceil(*u)).collect();
    let linear = (0..unit.len())
        .rev()
        .map(|d| LinearLayout::identity(unit[d], Dim::Axis(d as u8), Dim::Offset))
        .fold(LinearLayout::empty(), |all, axis| all.product(&axis));
    let scratch = SharedLayout::scratch(src.shape(), linear, &counts, &counts);
    let store = SharedAccess::new(src, &scratch, elem_bits)?;
    let load = SharedAccess::new(dst, &scratch, elem_bits)?;
    let rounds = vec![SharedRound { stores: 0..store.accesses.len(), loads: 0..load.accesses.len() }];
    let scratch_bytes = (scratch.allocation_elems() * (elem_bits.max(8) / 8)).next_multiple_of(16);
    Ok(SharedPlan { scratch, scratch_bytes, store, matrices: None, load, rounds, scope: SyncScope::Cta })
}
