//! What one CTA covers: an encoding as the bases of registers, lanes and warps, before a tensor's shape is known.
//!
//! Bases are coordinate vectors here, because how many bits each axis has is decided by the tensor (see
//! [`TileLayout`](crate::TileLayout)), which then cuts off what lies outside it or repeats the tile.

use smallvec::{SmallVec, smallvec};

use crate::encoding::Encoding;
use crate::error::{LayoutError, Result};
use crate::f2::log2;

/// One entry per tensor dimension.
pub type Coord = SmallVec<[u32; 4]>;

/// The most dimensions a tensor may have.
pub(crate) const MAX_RANK: usize = 16;

/// The tile that a CTA covers once. Invariant: `size` is a power of two along every axis, and all bases lie inside it.
#[derive(Debug, Clone)]
pub(crate) struct CtaTile {
    pub register: SmallVec<[Coord; 16]>,
    pub lane: SmallVec<[Coord; 8]>,
    pub warp: SmallVec<[Coord; 8]>,
    pub size: Coord,
    /// The axes from the fastest to the slowest: how registers go on over the rest of the tensor.
    pub order: SmallVec<[u8; 4]>,
    /// Bit d: a tensor smaller than the tile along axis d is padded up to it, where otherwise the tile is cut and several
    /// threads hold one element. Set along K of dot operands, where a copy would be added twice. A tensor of size 1 is not
    /// padded all the same: it may be broadcast along the axis, and then every thread needs its element.
    pub pad: u32,
}

/// Which of the three places a basis goes to.
#[derive(Clone, Copy)]
enum Place {
    Register,
    Lane,
    Warp,
}

impl CtaTile {
    fn new(rank: usize, order: SmallVec<[u8; 4]>) -> Self {
        Self {
            register: SmallVec::new(),
            lane: SmallVec::new(),
            warp: SmallVec::new(),
            size: smallvec![1; rank],
            order,
            pad: 0,
        }
    }

    fn push(&mut self, place: Place, basis: Coord) {
        match place {
            Place::Register => self.register.push(basis),
            Place::Lane => self.lane.push(basis),
            Place::Warp => self.warp.push(basis),
        }
    }

    /// `count` indices of `place` that go on along `axis`, outside what the tile covers so far.
    fn along(&mut self, place: Place, axis: usize, count: u32) {
        for _ in 0..log2(count) {
            let mut basis: Coord = smallvec![0; self.size.len()];
            basis[axis] = self.size[axis];
            self.size[axis] *= 2;
            self.push(place, basis);
        }
    }

    /// `count` indices of `place` that hold copies.
    fn copies(&mut self, place: Place, count: u32) {
        for _ in 0..log2(count) {
            self.push(place, smallvec![0; self.size.len()]);
        }
    }
}

/// The tile of an encoding for tensors of this rank.
pub(crate) fn cta_tile(encoding: &Encoding, rank: usize) -> Result<CtaTile> {
    if rank > MAX_RANK {
        return Err(LayoutError::new(format!(
            "a tensor of rank {rank} is not supported yet: at most {MAX_RANK}"
        )));
    }
    match encoding {
        Encoding::Blocked { size_per_thread, threads_per_warp, warps_per_cta, order } => {
            blocked(size_per_thread, threads_per_warp, warps_per_cta, order, rank)
        }
        Encoding::WarpBlocked { size_per_warp, warps_per_cta, order } => {
            warp_blocked(size_per_warp, warps_per_cta, order, rank)
        }
        Encoding::Slice { dim, parent } => slice(*dim as usize, parent, rank),
        Encoding::NvidiaMma { version_major, warps_per_cta, instr_shape, .. } => {
            mma_result(*version_major, warps_per_cta, instr_shape, rank)
        }
        Encoding::DotOperand { op_idx, parent, k_width } => dot_operand(*op_idx, parent, *k_width, rank),
        Encoding::Linear { register, lane, warp, block } => linear(register, lane, warp, block, rank),
        Encoding::Shared(_) => Err(LayoutError::new(
            "a shared-memory encoding lays out a buffer, not a tensor: use SharedLayout",
        )),
    }
}

/// The elements of a shape, or `u64::MAX` if that is more.
pub(crate) fn num_elements(shape: &[u32]) -> u64 {
    shape.iter().fold(1, |acc: u64, &s| acc.saturating_mul(u64::from(s)))
}

fn row_major(rank: usize) -> SmallVec<[u8; 4]> {
    (0..rank as u8).rev().collect()
}

/// Checks a per-dimension list of an encoding: one power of two per dimension.
fn check_powers(what: &str, values: &[u32], rank: usize) -> Result<()> {
    check_powers_up_to(what, values, rank, 1 << 10)
}

/// The same with another largest number.
fn check_powers_up_to(what: &str, values: &[u32], rank: usize, most: u32) -> Result<()> {
    if values.len() != rank {
        return Err(LayoutError::new(format!(
            "{what} has {} entries, the tensor has rank {rank}",
            values.len()
        )));
    }
    match values.iter().find(|&&v| !v.is_power_of_two() || v > most) {
        Some(v) if v.is_power_of_two() => {
            Err(LayoutError::new(format!("{what} {values:?}: {v} is more than {most}")))
        }
        Some(v) => Err(LayoutError::new(format!("{what} {values:?}: {v} is not a power of two"))),
        None => Ok(()),
    }
}

/// Checks that a product of counts is at most `most`.
fn check_product(what: &str, values: &[u32], most: u64) -> Result<()> {
    let product = num_elements(values);
    if product > most {
        return Err(LayoutError::new(format!(
            "{what} {values:?}: the product {product} is more than {most}"
        )));
    }
    Ok(())
}

/// Checks that `order` is a permutation of the dimensions.
pub(crate) fn check_order(order: &[u32], rank: usize) -> Result<SmallVec<[u8; 4]>> {
    let mut seen = 0u32;
    for &d in order {
        if d as usize >= rank || seen & 1 << d != 0 {
            return Err(LayoutError::new(format!("order {order:?} is not a permutation of 0..{rank}")));
        }
        seen |= 1 << d;
    }
    if order.len() != rank {
        return Err(LayoutError::new(format!("order {order:?} does not list {rank} dimensions")));
    }
    Ok(order.iter().map(|&d| d as u8).collect())
}

fn blocked(
    per_thread: &[u32],
    threads: &[u32],
    warps: &[u32],
    order: &[u32],
    rank: usize,
) -> Result<CtaTile> {
    check_powers("blocked encoding: sizePerThread", per_thread, rank)?;
    check_powers("blocked encoding: threadsPerWarp", threads, rank)?;
    check_powers("blocked encoding: warpsPerCTA", warps, rank)?;
    check_product("blocked encoding: sizePerThread", per_thread, 1 << 12)?;
    check_product("blocked encoding: threadsPerWarp", threads, 64)?;
    check_product("blocked encoding: warpsPerCTA", warps, 64)?;
    let mut tile = CtaTile::new(rank, check_order(order, rank)?);
    for (place, counts) in [(Place::Register, per_thread), (Place::Lane, threads), (Place::Warp, warps)] {
        for &d in order {
            tile.along(place, d as usize, counts[d as usize]);
        }
    }
    Ok(tile)
}

fn warp_blocked(per_warp: &[u32], warps: &[u32], order: &[u32], rank: usize) -> Result<CtaTile> {
    check_powers_up_to("blocked encoding: sizePerWarp", per_warp, rank, 1 << 16)?;
    check_powers("blocked encoding: warpsPerCTA", warps, rank)?;
    check_product("blocked encoding: sizePerWarp", per_warp, 1 << 16)?;
    check_product("blocked encoding: warpsPerCTA", warps, 64)?;
    let mut tile = CtaTile::new(rank, check_order(order, rank)?);
    for (place, counts) in [(Place::Register, per_warp), (Place::Warp, warps)] {
        for &d in order {
            tile.along(place, d as usize, counts[d as usize]);
        }
    }
    Ok(tile)
}

/// The parent's tile seen from a tensor that has size 1 along `dim`: what moved along `dim` now holds copies.
fn slice(dim: usize, parent: &Encoding, rank: usize) -> Result<CtaTile> {
    if dim > rank {
        return Err(LayoutError::new(format!(
            "slice encoding: dim {dim} is outside a parent of rank {}",
            rank + 1
        )));
    }
    let mut tile = cta_tile(parent, rank + 1)?;
    let bases = tile.register.iter_mut().chain(&mut tile.lane).chain(&mut tile.warp);
    bases.for_each(|b| _ = b.remove(dim));
    tile.register.retain(|b| b.iter().any(|&x| x != 0));
    tile.size.remove(dim);
    tile.order.retain(|d| *d as usize != dim);
    tile.order.iter_mut().filter(|d| **d as usize > dim).for_each(|d| *d -= 1);
    let low = tile.pad & ((1 << dim) - 1);
    tile.pad = low | (tile.pad >> (dim + 1)) << dim;
    Ok(tile)
}

/// The axes (batch?, rows, columns) of a matrix tensor.
fn matrix_axes(rank: usize) -> Result<(usize, usize)> {
    match rank {
        2 => Ok((0, 1)),
        3 => Ok((1, 2)),
        _ => Err(LayoutError::new(format!("a tensor-core layout needs a tensor of rank 2 or 3, not {rank}"))),
    }
}

/// Warps over the result of a dot. Version 2 counts them along columns first, version 3 along rows first, since the four
/// warps of a warp group hold 64 rows (PTX ISA, "Register fragments for wgmma").
fn warp_axes(version: u32, rank: usize) -> SmallVec<[u8; 4]> {
    if version >= 3 { (0..rank as u8).rev().map(|d| rank as u8 - 1 - d).collect() } else { row_major(rank) }
}

/// The 16×8 accumulator fragment of `mma.sync` (PTX ISA, "Matrix fragments for mma.m16n8k16"): lane l holds row l/4
/// (and + 8) and columns 2·(l%4), + 1. `wgmma` repeats it along N.
fn mma_result(version: u32, warps: &[u32], instr: &[u32], rank: usize) -> Result<CtaTile> {
    let (m, n) = matrix_axes(rank)?;
    check_powers("mma encoding: warpsPerCTA", warps, rank)?;
    check_product("mma encoding: warpsPerCTA", warps, 64)?;
    let instr_n = mma_instr_n(version, instr, rank)?;
    let mut tile = CtaTile::new(rank, row_major(rank));
    tile.along(Place::Register, n, 2);
    tile.along(Place::Lane, n, 4);
    tile.along(Place::Lane, m, 8);
    tile.along(Place::Register, m, 2);
    // A wgmma of N = odd × 2^k columns is its power-of-two part, repeated by the tensor.
    let unit_n = 1 << instr_n.trailing_zeros();
    if unit_n != instr_n && warps[n] > 1 {
        return Err(LayoutError::new(format!(
            "not supported yet: wgmma with N = {instr_n} (no power of two) and {} warps along N",
            warps[n]
        )));
    }
    tile.along(Place::Register, n, unit_n / 8);
    for d in warp_axes(version, rank) {
        tile.along(Place::Warp, d as usize, warps[d as usize]);
    }
    Ok(tile)
}

/// Checks the instruction shape of an mma encoding and returns its N.
fn mma_instr_n(version: u32, instr: &[u32], rank: usize) -> Result<u32> {
    let bad = |why: &str| Err(LayoutError::new(format!("mma encoding: instrShape {instr:?} {why}")));
    match (version, instr) {
        (2, [16, 8]) => Ok(8),
        (2, [1, 16, 8]) if rank == 3 => Ok(8),
        (2, _) => bad("is not [16, 8]"),
        (3, &[16, n, _]) if (8..=256).contains(&n) && n % 8 == 0 => Ok(n),
        (3, _) => bad("is not [16, N, K] with N a multiple of 8 up to 256"),
        _ => Err(LayoutError::new(format!(
            "not supported yet: mma encoding of version {version} (2 and 3 are)"
        ))),
    }
}

fn dot_operand(op_idx: u32, parent: &Encoding, k_width: u32, rank: usize) -> Result<CtaTile> {
    if op_idx > 1 {
        return Err(LayoutError::new(format!("dot operand encoding: opIdx {op_idx} is neither 0 nor 1")));
    }
    match parent {
        Encoding::NvidiaMma { version_major, warps_per_cta, instr_shape, .. } => {
            mma_instr_n(*version_major, instr_shape, rank)?;
            if *version_major == 3 && op_idx == 1 {
                return Err(LayoutError::new(
                    "wgmma takes operand B from shared memory only, never from registers",
                ));
            }
            mma_operand(op_idx, *version_major, warps_per_cta, k_width, rank)
        }
        Encoding::Blocked { size_per_thread, threads_per_warp, warps_per_cta, order } => {
            let parent = blocked(size_per_thread, threads_per_warp, warps_per_cta, order, rank)?;
            let (m, n) = matrix_axes(rank)?;
            if op_idx == 0 && k_width > 0 {
                return shared_along_k(size_per_thread, threads_per_warp, warps_per_cta, order, k_width);
            }
            let k_axis = if op_idx == 0 { n } else { m };
            whole_along_k(parent, k_axis)
        }
        // The result of a dot may be an operand of the next.
        Encoding::WarpBlocked { .. } | Encoding::DotOperand { .. } if parent.is_of_warps() => {
            let (m, n) = matrix_axes(rank)?;
            whole_along_k(cta_tile(parent, rank)?, if op_idx == 0 { n } else { m })
        }
        _ => Err(LayoutError::new("dot operand encoding: the parent must be an mma or a blocked encoding")),
    }
}

/// The operand fragments of `mma.sync` (PTX ISA, "Matrix fragments for mma.m16n8k*"). Four lanes split a row of A (a
/// column of B) into runs of `k_width` along K, eight lanes go along M (or N); registers then step 8 rows (A only) and on
/// to the second half of K.
fn mma_operand(op_idx: u32, version: u32, warps: &[u32], k_width: u32, rank: usize) -> Result<CtaTile> {
    let (m, n) = matrix_axes(rank)?;
    check_powers("mma encoding: warpsPerCTA", warps, rank)?;
    check_product("mma encoding: warpsPerCTA", warps, 64)?;
    if !matches!(k_width, 1 | 2 | 4 | 8 | 16) {
        return Err(LayoutError::new(format!(
            "dot operand encoding: kWidth {k_width} is not 1, 2, 4, 8 or 16"
        )));
    }
    let (k_axis, free_axis) = if op_idx == 0 { (n, m) } else { (m, n) };
    // Registers go on along K first, so that the operands of successive instructions lie together.
    let mut order: SmallVec<[u8; 4]> = smallvec![k_axis as u8, free_axis as u8];
    order.extend((0..m as u8).rev());
    let mut tile = CtaTile::new(rank, order);
    tile.pad = 1 << k_axis;
    tile.along(Place::Register, k_axis, k_width);
    tile.along(Place::Lane, k_axis, 4);
    tile.along(Place::Lane, free_axis, 8);
    if op_idx == 0 {
        tile.along(Place::Register, free_axis, 2);
    }
    tile.along(Place::Register, k_axis, 2);
    for d in warp_axes(version, rank) {
        let d = d as usize;
        if d == k_axis {
            tile.copies(Place::Warp, warps[d]);
        } else {
            tile.along(Place::Warp, d, warps[d]);
        }
    }
    Ok(tile)
}

/// The first operand of a product of a whole warp whose result has a blocked layout: the lanes that share out columns of the result share out K, each
/// `k_width` elements at a time, and warps beside each other have the same.
fn shared_along_k(
    per_thread: &[u32],
    threads: &[u32],
    warps: &[u32],
    order: &[u32],
    k_width: u32,
) -> Result<CtaTile> {
    let k_axis = per_thread.len() - 1;
    let mut sizes = per_thread.to_vec();
    sizes[k_axis] = k_width;
    let mut alone = warps.to_vec();
    alone[k_axis] = 1;
    let mut tile = blocked(&sizes, threads, &alone, order, per_thread.len())?;
    // Where the number of the warp counts columns it counts copies here.
    tile.warp.clear();
    for &d in order {
        let d = d as usize;
        if d == k_axis {
            tile.copies(Place::Warp, warps[d]);
        } else {
            tile.size[d] /= warps[d];
            tile.along(Place::Warp, d, warps[d]);
        }
    }
    Ok(tile)
}

/// The operand of a dot whose result has the parent's layout, and each thread or warp a part of it for itself: as the result is
/// spread along M (or N), and all of K in each.
fn whole_along_k(mut parent: CtaTile, k_axis: usize) -> Result<CtaTile> {
    for b in parent.register.iter_mut().chain(&mut parent.lane).chain(&mut parent.warp) {
        b[k_axis] = 0;
    }
    parent.register.retain(|b| b.iter().any(|&x| x != 0));
    parent.size[k_axis] = 1;
    Ok(parent)
}

fn linear(
    register: &[Vec<u32>],
    lane: &[Vec<u32>],
    warp: &[Vec<u32>],
    block: &[Vec<u32>],
    rank: usize,
) -> Result<CtaTile> {
    if block.iter().flatten().any(|&x| x != 0) {
        return Err(LayoutError::new(
            "not supported yet: a linear encoding spread over the CTAs of a cluster",
        ));
    }
    if register.len() > 16 || lane.len() > 6 || warp.len() > 6 {
        return Err(LayoutError::new(format!(
            "linear encoding: {} register, {} lane and {} warp bases, at most 16, 6 and 6 can be",
            register.len(),
            lane.len(),
            warp.len()
        )));
    }
    let mut tile = CtaTile::new(rank, row_major(rank));
    for (place, bases) in [(Place::Register, register), (Place::Lane, lane), (Place::Warp, warp)] {
        for basis in bases {
            if basis.len() != rank {
                return Err(LayoutError::new(format!(
                    "linear encoding: basis {basis:?} has {} entries, the tensor has rank {rank}",
                    basis.len()
                )));
            }
            if basis.iter().any(|&x| x >= 1 << 24) {
                return Err(LayoutError::new(format!(
                    "linear encoding: basis {basis:?} is larger than any tensor"
                )));
            }
            for (size, &x) in tile.size.iter_mut().zip(basis) {
                *size = (*size).max((x + 1).next_power_of_two());
            }
            tile.push(place, basis.iter().copied().collect());
        }
    }
    Ok(tile)
}
