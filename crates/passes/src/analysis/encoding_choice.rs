//! How encodings are chosen: blocked ones for memory operations, warp grids for tensor cores, swizzles for operands.
//!
//! Extents are odd × 2^k. Along each dimension an encoding covers a power of two; what it does not divide is padded. The
//! choices here prefer a tile that divides the extent (80 = 5 × 16), as long as a row of it still fills a 32-byte sector,
//! to one that pads (80 → 128).

use std::sync::Arc;

use tilewright_ir::dialect::tt::Tiling;
use tilewright_layout::{Encoding, SharedKind, SharedLayout};

/// The largest power of two not above `x` (1 for 0).
fn floor_power(x: u32) -> u32 {
    1 << (31 - x.max(1).leading_zeros())
}

/// The tile along a dimension: a power of two of at most `want`, at least `least`, that pads the extent by no more than
/// an eighth if there is one.
fn tile_along(extent: u32, want: u32, least: u32) -> u32 {
    let mut tile = want.min(extent.next_power_of_two()).max(1);
    if extent < tile && !extent.is_power_of_two() {
        // One tile would pad it; accept only if by little.
        if tile - extent <= extent / 8 {
            return tile;
        }
        tile /= 2;
    }
    while tile > least.max(1) && extent.next_multiple_of(tile) - extent > extent / 8 {
        tile /= 2;
    }
    tile.max(1)
}

/// Where the warps of a blocked encoding go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarpsAlong {
    /// Slow dimensions first: each warp holds whole rows, so reductions along rows stay within a warp.
    SlowDimensions,
    /// The fastest dimension first: reductions across rows stay within a warp or thread.
    FastDimension,
}

/// A blocked encoding for memory accesses: `vec` elements per thread along the fastest dimension (fewer where the tensor
/// is too small for all threads), lanes along it, then along the others. Threads are so many warps, of so many lanes each.
pub fn blocked(
    shape: &[u32],
    order: &[u32],
    vec: u32,
    (num_warps, warp_size): (u32, u32),
    bits: u32,
    warps: WarpsAlong,
) -> Encoding {
    let rank = shape.len();
    let fast = order[0] as usize;
    let elements: u32 = shape.iter().product();
    let mut per_thread = vec![1; rank];
    let mut lanes = vec![1; rank];
    let mut warp_grid = vec![1; rank];
    // A thread can't hold a longer run than there are elements for it, nor one that crosses the tensor's end.
    let per = vec.min(floor_power(elements / (warp_size * num_warps))).min(shape[fast].next_power_of_two());
    per_thread[fast] = per;
    let sector = per.max(256 / bits.max(1)).min(shape[fast].next_power_of_two());
    let mut left = warp_size;
    for &d in order {
        let d = d as usize;
        let least = if d == fast { sector } else { 1 };
        lanes[d] = (tile_along(shape[d], per_thread[d] * left, least) / per_thread[d]).clamp(1, left);
        left /= lanes[d];
    }
    lanes[fast] *= left;
    left = num_warps;
    let slow_first: Vec<u32> = order.iter().rev().copied().collect();
    let dims = if warps == WarpsAlong::SlowDimensions { &slow_first[..] } else { order };
    for &d in dims {
        let d = d as usize;
        let tile = per_thread[d] * lanes[d];
        warp_grid[d] = (tile_along(shape[d], tile * left, tile) / tile).clamp(1, left);
        left /= warp_grid[d];
    }
    // More warps than rows that divide: the rest goes where it pads least (a dimension that is covered holds copies).
    let growth = |d: u32| {
        let d = d as usize;
        let tile = per_thread[d] * lanes[d] * warp_grid[d];
        let physical = |t: u32| f64::from(shape[d].next_multiple_of(t));
        physical(tile * left) / physical(tile)
    };
    let best = dims.iter().copied().min_by(|&a, &b| growth(a).total_cmp(&growth(b))).unwrap_or(order[0]);
    warp_grid[best as usize] *= left;
    Encoding::Blocked {
        size_per_thread: per_thread,
        threads_per_warp: lanes,
        warps_per_cta: warp_grid,
        order: order.to_vec(),
    }
}

/// Row-major.
pub fn row_major(rank: usize) -> Vec<u32> {
    (0..rank as u32).rev().collect()
}

/// Rows and columns of the result of `mma.sync` ("mma.m16n8", PTX ISA).
pub const INSTRUCTION: [u32; 2] = [16, 8];

/// A blocked encoding of warps, whole in each as far as they are shared out over dimensions whose extent is a power of two, over the first
/// of `dims` first: each warp has `least` elements there, as long as it can. Warps that are left over have copies.
pub fn warp_blocked(shape: &[u32], order: &[u32], num_warps: u32, dims: &[u32], least: &[u32]) -> Encoding {
    let mut grid = vec![1; shape.len()];
    let mut left = num_warps;
    for enough in [least, &vec![1; shape.len()]] {
        for d in dims.iter().map(|&d| d as usize).filter(|&d| shape[d].is_power_of_two()) {
            while left > 1 && shape[d] / (2 * grid[d]) >= enough[d] {
                grid[d] *= 2;
                left /= 2;
            }
        }
    }
    of_warps(shape, grid, order, left)
}

/// The encoding of a grid of warps over a tensor, of each so many.
fn of_warps(shape: &[u32], mut grid: Vec<u32>, order: &[u32], copies: u32) -> Encoding {
    let largest = |n: u32| 1 << n.trailing_zeros();
    let size_per_warp = shape.iter().zip(&grid).map(|(&n, &along)| largest((n / along).max(1))).collect();
    // (Where there is no such extent the last warps would have padding: who shares the tensor out says so.)
    grid[shape.iter().position(|n| n.is_power_of_two()).unwrap_or(0)] *= copies;
    Encoding::WarpBlocked { size_per_warp, warps_per_cta: grid, order: order.to_vec() }
}

/// The encoding of warps of a dot's result that is made of instructions of `unit`: squares, or with `rows` whole rows (ML-Triton,
/// sections 2.1 and 2.5), or as a hint says it. `None` where there are too few instructions for a hint.
pub fn warp_dot(
    shape: &[u32],
    unit: [u32; 2],
    num_warps: u32,
    rows: bool,
    tiling: Tiling,
) -> Option<Encoding> {
    let rank = shape.len();
    let batch = batch_of_warps(shape, num_warps);
    let matrix = [shape[rank - 2], shape[rank - 1]];
    let grid = match tiling {
        Tiling::Default => dot_warps(matrix, unit, num_warps / batch, rows),
        _ => tiled_warps(tiling, matrix, unit, num_warps / batch)?,
    };
    let mut of_all = vec![batch; rank - 2];
    of_all.extend(grid);
    Some(of_warps(shape, of_all, &row_major(rank), 1))
}

/// The warp grid over the result of a dot that is made of instructions of `unit`, `shape` its last two extents. With `rows` the warps share no row (the
/// result feeds another dot or is reduced along rows), as long as no work is wasted by that.
pub fn dot_warps(shape: [u32; 2], unit: [u32; 2], num_warps: u32, rows: bool) -> [u32; 2] {
    let [m, n] = shape;
    let mut best = ([num_warps, 1], (u64::MAX, u64::MAX));
    let mut wm = num_warps;
    while wm > 0 {
        let wn = num_warps / wm;
        let (pm, pn) = (m.next_multiple_of(unit[0] * wm), n.next_multiple_of(unit[1] * wn));
        // Instructions first; then what a warp reads of A and B for each step of K.
        let work = u64::from(pm) * u64::from(pn);
        let reads = if rows { u64::from(wn) } else { u64::from(pm / wm + pn / wn) };
        if (work, reads) < best.1 {
            best = ([wm, wn], (work, reads));
        }
        wm /= 2;
    }
    best.0
}

/// The warp grid over the result of a dot, `shape` its last two extents, as a hint wants it (ML-Triton, section 3.1). `None` where it has fewer
/// tiles than warps along a dimension.
pub fn tiled_warps(tiling: Tiling, shape: [u32; 2], tile: [u32; 2], num_warps: u32) -> Option<[u32; 2]> {
    let grids = (0..=num_warps.ilog2()).rev().map(|i| [1 << i, num_warps >> i]);
    let fits = |warps: &[u32; 2]| (0..2).all(|d| warps[d] <= shape[d].div_ceil(tile[d]));
    // How far from a square a warp's part is; among equals the warps lie along rows.
    let oblong = |[wm, wn]: [u32; 2]| {
        let [high, wide] = [u64::from(shape[0] * wn), u64::from(shape[1] * wm)];
        high.max(wide) * 1024 / high.min(wide)
    };
    match tiling {
        Tiling::Default | Tiling::Square => grids.filter(fits).min_by_key(|&warps| oblong(warps)),
        Tiling::Horizontal => Some([num_warps, 1]).filter(fits),
        Tiling::Vertical => Some([1, num_warps]).filter(fits),
    }
}

/// The matrices of a batch that warps share out before they divide each.
fn batch_of_warps(shape: &[u32], num_warps: u32) -> u32 {
    if shape.len() == 3 { floor_power(shape[0]).min(num_warps) } else { 1 }
}

/// The accumulator encoding of `mma.sync` whose warp grid a hint says, of rank 2 or 3.
///
/// # Errors
/// The tile of an instruction, where there are too few of them.
pub fn tiled_mma_v2(tiling: Tiling, shape: &[u32], num_warps: u32) -> Result<Encoding, [u32; 2]> {
    let (rank, batch) = (shape.len(), batch_of_warps(shape, num_warps));
    let warps = tiled_warps(tiling, [shape[rank - 2], shape[rank - 1]], INSTRUCTION, num_warps / batch);
    warps.map(|warps| mma_v2_of(rank, batch, warps)).ok_or(INSTRUCTION)
}

/// The same of a dot made of multiply-adds: each warp has its part as if there were no other.
///
/// # Errors
/// The tile of a warp, where there are too few of them.
pub fn tiled_fma(
    tiling: Tiling,
    shape: &[u32],
    (num_warps, warp_size): (u32, u32),
) -> Result<Encoding, [u32; 2]> {
    let (rank, batch) = (shape.len(), batch_of_warps(shape, num_warps));
    let matrix = [shape[rank - 2], shape[rank - 1]];
    let warps = tiled_warps(tiling, matrix, [1, 1], num_warps / batch).ok_or([1, 1])?;
    let mut part = shape.to_vec();
    for d in 0..2 {
        part[rank - 2 + d] = matrix[d].div_ceil(warps[d]);
    }
    let mut encoding = fma_blocked(&part, (1, warp_size));
    if let Encoding::Blocked { size_per_thread, threads_per_warp, warps_per_cta, .. } = &mut encoding {
        let tile = [rank - 2, rank - 1].map(|d| size_per_thread[d] * threads_per_warp[d]);
        if (0..2).any(|d| matrix[d].div_ceil(tile[d]) < warps[d]) {
            return Err(tile);
        }
        warps_per_cta[rank - 2..].copy_from_slice(&warps);
        if rank == 3 {
            warps_per_cta[0] = batch;
        }
    }
    Ok(encoding)
}

/// The accumulator encoding of `mma.sync` for a result of rank 2 or 3.
pub fn mma_v2(shape: &[u32], num_warps: u32, rows: bool) -> Encoding {
    let rank = shape.len();
    let batch = batch_of_warps(shape, num_warps);
    let warps = dot_warps([shape[rank - 2], shape[rank - 1]], INSTRUCTION, num_warps / batch, rows);
    mma_v2_of(rank, batch, warps)
}

fn mma_v2_of(rank: usize, batch: u32, [wm, wn]: [u32; 2]) -> Encoding {
    let (mut warps_per_cta, mut instr_shape) = (vec![wm, wn], vec![16, 8]);
    if rank == 3 {
        warps_per_cta.insert(0, batch);
        instr_shape.insert(0, 1);
    }
    Encoding::NvidiaMma { version_major: 2, version_minor: 0, warps_per_cta, instr_shape }
}

/// The result encoding of a dot by instructions of a whole warp whose lanes have columns, `wide` of them beside each other.
///
/// # Errors
/// The tile of an instruction, where there are too few of them for the hint.
pub fn columns(
    tiling: Tiling,
    [m, n]: [u32; 2],
    unit: [u32; 3],
    num_warps: u32,
    rows: bool,
    wide: u32,
) -> Result<Encoding, [u32; 2]> {
    let tile = [unit[0], unit[1]];
    let warps = match tiling {
        Tiling::Default => dot_warps([m, n], tile, num_warps, rows),
        _ => tiled_warps(tiling, [m, n], tile, num_warps).ok_or(tile)?,
    };
    let most = floor_power((n / (unit[1] * warps[1])).max(1));
    Ok(Encoding::Blocked {
        size_per_thread: vec![m.next_power_of_two().min(unit[0]), wide.min(most)],
        threads_per_warp: vec![1, unit[1]],
        warps_per_cta: warps.to_vec(),
        order: row_major(2),
    })
}

/// The result encoding of a dot made of multiply-adds: each thread a block of up to 4×4, so that an operand element
/// read from shared memory is used four times.
pub fn fma_blocked(shape: &[u32], (num_warps, warp_size): (u32, u32)) -> Encoding {
    let rank = shape.len();
    let (m, n) = (rank - 2, rank - 1);
    let mut per_thread = vec![1; rank];
    let mut lanes = vec![1; rank];
    let mut warps = vec![1; rank];
    let elements: u32 = shape.iter().product();
    let each = floor_power(elements / (warp_size * num_warps)).min(16);
    per_thread[n] = tile_along(shape[n], each.min(4), 1);
    per_thread[m] = tile_along(shape[m], (each / per_thread[n]).clamp(1, 4), 1);
    lanes[n] = (tile_along(shape[n], per_thread[n] * 8, per_thread[n]) / per_thread[n]).clamp(1, warp_size);
    lanes[m] = warp_size / lanes[n];
    let mut left = num_warps;
    for d in [m, n] {
        let tile = per_thread[d] * lanes[d];
        warps[d] = (tile_along(shape[d], tile * left, tile) / tile).clamp(1, left);
        left /= warps[d];
    }
    warps[if rank == 3 { 0 } else { n }] *= left;
    Encoding::Blocked {
        size_per_thread: per_thread,
        threads_per_warp: lanes,
        warps_per_cta: warps,
        order: row_major(rank),
    }
}

/// The buffer from which an operand is read: rows of the fastest dimension, their 16-byte chunks swizzled so that the
/// eight rows that one `ldmatrix` phase reads (or one warp stores) lie in different banks.
pub fn shared_for_dot(shape: &[u32], order: &[u32], bits: u32) -> Encoding {
    let plain = |vec, per_phase, max_phase| {
        Encoding::Shared(SharedKind::Swizzled { vec, per_phase, max_phase, order: order.to_vec() })
    };
    let chunk = (128 / bits.max(1)).max(1);
    let Ok(layout) = SharedLayout::new(&plain(1, 1, 1), shape, bits) else { return plain(1, 1, 1) };
    let row = layout.unit()[order[0] as usize];
    let per_phase = (128 * 8 / (row * bits)).clamp(1, 8);
    let max_phase = (8 / per_phase).min(row / chunk).max(1);
    if max_phase == 1 { plain(1, 1, 1) } else { plain(chunk, per_phase, max_phase) }
}

/// The parent with a dimension removed.
pub fn slice(dim: u32, parent: &Encoding) -> Encoding {
    Encoding::Slice { dim, parent: Arc::new(parent.clone()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_layout::TileLayout;

    fn parts(e: &Encoding) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
        match e {
            Encoding::Blocked { size_per_thread, threads_per_warp, warps_per_cta, .. } => {
                (size_per_thread.clone(), threads_per_warp.clone(), warps_per_cta.clone())
            }
            _ => unreachable!(),
        }
    }

    #[test]
    fn every_choice_uses_all_threads_and_covers_the_shape() {
        for m in [1, 2, 3, 8, 16, 48, 80, 96, 128] {
            for n in [1, 2, 5, 16, 64, 80, 96, 128, 192, 1000, 1024] {
                for warps in [1, 2, 4, 8] {
                    for vec in [1, 4, 8] {
                        for order in [[1, 0], [0, 1]] {
                            for along in [WarpsAlong::SlowDimensions, WarpsAlong::FastDimension] {
                                let lanes = if vec == 4 { 16 } else { 32 };
                                let e = blocked(&[m, n], &order, vec, (warps, lanes), 16, along);
                                let (_, along, grid) = parts(&e);
                                assert_eq!(along.iter().product::<u32>(), lanes, "{e:?}");
                                assert_eq!(grid.iter().product::<u32>(), warps, "{e:?} {m}x{n}");
                                TileLayout::new(&e, &[m, n]).unwrap();
                            }
                        }
                    }
                    for lanes in [16, 32] {
                        let e = fma_blocked(&[m, n], (warps, lanes));
                        let (_, along, grid) = parts(&e);
                        let threads = (along.iter().product::<u32>(), grid.iter().product::<u32>());
                        assert_eq!(threads, (lanes, warps));
                        TileLayout::new(&e, &[m, n]).unwrap();
                    }
                }
            }
        }
    }

    #[test]
    fn rows_are_coalesced() {
        let e = blocked(&[128, 64], &[1, 0], 8, (4, 32), 16, WarpsAlong::SlowDimensions);
        assert_eq!(parts(&e), (vec![1, 8], vec![4, 8], vec![4, 1]));
        let e = blocked(&[64, 128], &[0, 1], 8, (4, 32), 16, WarpsAlong::SlowDimensions);
        assert_eq!(parts(&e), (vec![8, 1], vec![8, 4], vec![1, 4]));
        let e = blocked(&[1024], &[0], 4, (4, 32), 32, WarpsAlong::SlowDimensions);
        assert_eq!(parts(&e), (vec![4], vec![32], vec![4]));
    }

    #[test]
    fn odd_extents_repeat_or_pad_little() {
        for (shape, bits, vec) in
            [([48, 80], 16, 8), ([96, 48], 16, 8), ([64, 96], 16, 8), ([4, 1000], 32, 4)]
        {
            let e = blocked(&shape, &[1, 0], vec, (4, 32), bits, WarpsAlong::SlowDimensions);
            let t = TileLayout::new(&e, &shape).unwrap();
            let padded = t.physical(0) * t.physical(1);
            let exact = shape[0] * shape[1];
            assert!(padded <= exact + exact * 3 / 8, "{shape:?}: {padded} for {exact} with {e:?}");
        }
    }

    #[test]
    fn warps_over_a_dot() {
        assert_eq!(dot_warps([128, 256], INSTRUCTION, 8, false), [2, 4]);
        assert_eq!(dot_warps([128, 128], INSTRUCTION, 4, false), [2, 2]);
        assert_eq!(dot_warps([128, 64], INSTRUCTION, 8, true), [8, 1]);
        assert_eq!(dot_warps([96, 80], INSTRUCTION, 4, false), [2, 2]);
        assert_eq!(dot_warps([16, 128], INSTRUCTION, 4, false), [1, 4]);
        assert_eq!(dot_warps([16, 128], INSTRUCTION, 4, true), [1, 4]);
    }

    fn of_warps(e: Encoding) -> (Vec<u32>, Vec<u32>) {
        match e {
            Encoding::WarpBlocked { size_per_warp, warps_per_cta, .. } => (size_per_warp, warps_per_cta),
            _ => unreachable!(),
        }
    }

    #[test]
    fn blocks_of_warps() {
        // ML-Triton: the product of section 2.1, the attention of section 2.5.
        let hinted =
            |shape: &[u32], warps, rows, tiling| warp_dot(shape, [8, 16], warps, rows, tiling).map(of_warps);
        let dot = |shape: &[u32], warps, rows| hinted(shape, warps, rows, Tiling::Default).unwrap();
        assert_eq!(hinted(&[128, 64], 8, false, Tiling::Horizontal), Some((vec![16, 64], vec![8, 1])));
        assert_eq!(hinted(&[128, 64], 8, true, Tiling::Vertical), None);
        assert_eq!(dot(&[256, 256], 32, false), (vec![32, 64], vec![8, 4]));
        assert_eq!(dot(&[128, 64], 8, true), (vec![16, 64], vec![8, 1]));
        // Few rows: the warps share columns.
        assert_eq!(dot(&[8, 128], 8, false), (vec![8, 16], vec![1, 8]));
        assert_eq!(dot(&[4, 64, 64], 8, false), (vec![1, 32, 64], vec![4, 2, 1]));
        let plain = |shape: &[u32], warps, dims: &[u32]| {
            let least = vec![1; shape.len()];
            of_warps(warp_blocked(shape, &row_major(shape.len()), warps, dims, &least))
        };
        assert_eq!(plain(&[1024], 4, &[0]), (vec![256], vec![4]));
        assert_eq!(plain(&[128, 64], 4, &[0, 1]), (vec![32, 64], vec![4, 1]));
        assert_eq!(plain(&[2, 64], 4, &[0, 1]), (vec![1, 32], vec![2, 2]));
        // Copies, where there is less than one element for each; what is no power of two is whole in each.
        assert_eq!(plain(&[2], 8, &[0]), (vec![1], vec![8]));
        assert_eq!(plain(&[96, 64], 4, &[0, 1]), (vec![32, 16], vec![1, 4]));
    }

    #[test]
    fn warps_as_a_hint_wants_them() {
        use Tiling::{Horizontal, Square, Vertical};
        let warps = |tiling, shape, num| tiled_warps(tiling, shape, INSTRUCTION, num);
        assert_eq!(warps(Square, [256, 256], 32), Some([8, 4]));
        assert_eq!(warps(Square, [128, 128], 4), Some([2, 2]));
        assert_eq!(warps(Square, [16, 128], 4), Some([1, 4]));
        assert_eq!(warps(Horizontal, [128, 64], 8), Some([8, 1]));
        assert_eq!(warps(Horizontal, [40, 64], 2), Some([2, 1]));
        assert_eq!(warps(Horizontal, [32, 64], 4), None);
        assert_eq!(warps(Vertical, [16, 64], 8), Some([1, 8]));
        assert_eq!(warps(Vertical, [128, 16], 4), None);
        assert_eq!(warps(Square, [16, 8], 2), None);
    }

    #[test]
    fn multiply_adds_of_a_hint_divide_among_warps() {
        for (m, n) in [(16, 64), (64, 16), (32, 32), (4, 64), (24, 40)] {
            for tiling in [Tiling::Horizontal, Tiling::Vertical, Tiling::Square] {
                let Ok(e) = tiled_fma(tiling, &[m, n], (4, 32)) else { continue };
                let (_, lanes, warps) = parts(&e);
                assert_eq!((lanes.iter().product::<u32>(), warps.iter().product::<u32>()), (32, 4));
                let layout = TileLayout::new(&e, &[m, n]).unwrap();
                let used = (0..2).flat_map(|d| layout.warp_bases(d)).filter(|&b| b != 0).count();
                assert_eq!(used, 2, "{m}x{n} {tiling:?}: {e:?}");
            }
        }
        assert_eq!(tiled_fma(Tiling::Horizontal, &[16, 4], (4, 32)), Err([8, 4]));
    }

    #[test]
    fn eight_rows_of_an_operand_lie_in_different_banks() {
        for (shape, order, bits) in [
            ([128, 64], [1, 0], 16),
            ([128, 32], [1, 0], 16),
            ([64, 256], [1, 0], 16),
            ([48, 80], [1, 0], 16),
            ([64, 128], [0, 1], 16),
            ([64, 32], [1, 0], 32),
            ([64, 128], [1, 0], 8),
        ] {
            let layout = SharedLayout::new(&shared_for_dot(&shape, &order, bits), &shape, bits).unwrap();
            let mut seen = std::collections::HashSet::new();
            for row in 0..8 {
                let mut coord = [0, 0];
                coord[order[1] as usize] = row;
                seen.insert(layout.offset(&coord) * bits / 8 % 128 / 16);
            }
            assert_eq!(seen.len(), 8, "{shape:?}");
        }
    }
}
