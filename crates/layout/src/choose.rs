//! Choosing encodings: those that passes ask for when a root operation has to be given one.
//!
//! For sizes that are no powers of two the choice decides between exact repeats and padding, so each candidate is judged
//! first by its *slots*, the elements that the CTA works on with padding and copies counted.

use crate::distribute::num_elements;
use crate::encoding::{Encoding, SharedKind};
use crate::shared::roomy_unit;

/// What the warps of a dot's result should be spread for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarpSpread {
    /// Least operand traffic: as square as the shape is. For matrix multiplication.
    Square,
    /// All along rows, so that a reduction over columns stays within a warp. For attention.
    RowWise,
}

/// The elements that a tile covers when it is repeated over, or cut to, a tensor, with padding and copies counted.
fn slots(shape: &[u32], tile: impl Fn(usize) -> u32) -> u64 {
    let along = |(d, &s): (usize, &u32)| u64::from(s).next_multiple_of(u64::from(tile(d)));
    shape.iter().enumerate().map(along).fold(1, u64::saturating_mul)
}

/// Whether `slots` is as good as `best` for practical purposes: within a sixteenth.
fn near(slots: u64, best: u64) -> bool {
    u128::from(slots) * 16 <= u128::from(best) * 17
}

impl Encoding {
    /// A blocked encoding for loads and stores: `contiguity` elements along the fastest dimension in each thread (fewer if
    /// the tensor hasn't enough for all threads, or its size isn't a multiple), then lanes, then warps along the fastest
    /// dimension as far as it reaches, then along the next.
    ///
    /// `order` lists the dimensions from fastest to slowest; `num_warps` is a power of two.
    pub fn default_blocked(shape: &[u32], num_warps: u32, contiguity: u32, order: &[u32]) -> Self {
        let rank = shape.len();
        let fast = order.first().map_or(0, |&d| d as usize);
        let threads = 32 * num_warps;
        let elements = num_elements(shape);
        let per_thread = elements.div_ceil(u64::from(threads)).next_power_of_two().min(1 << 16) as u32;
        let mut size_per_thread = vec![1; rank];
        if let Some(&size) = shape.get(fast) {
            let divides = 1 << size.trailing_zeros();
            let contiguity = 1 << contiguity.max(1).ilog2();
            size_per_thread[fast] = contiguity.min(per_thread).min(divides);
        }
        // All ways to spread the threads, as exponents per dimension in `order`, the largest along the fastest first.
        let mut best: Option<(u64, Vec<u32>)> = None;
        let mut candidates = Vec::new();
        spreads(threads.ilog2(), rank, &mut Vec::new(), &mut candidates);
        for spread in candidates {
            let mut along = vec![0; rank];
            order.iter().zip(&spread).for_each(|(&d, &bits)| along[d as usize] = bits);
            let slots = slots(shape, |d| size_per_thread[d] << along[d]);
            let better = match &best {
                None => true,
                Some((least, _)) => slots < *least && !near(*least, slots),
            };
            if better {
                best = Some((slots, spread));
            }
        }
        let spread = best.map_or_else(Vec::new, |b| b.1);
        let mut threads_per_warp = vec![1; rank];
        let mut warps_per_cta = vec![1; rank];
        let mut lanes = 5;
        for (&d, &bits) in order.iter().zip(&spread) {
            let here = bits.min(lanes);
            lanes -= here;
            threads_per_warp[d as usize] = 1 << here;
            warps_per_cta[d as usize] = 1 << (bits - here);
        }
        Self::Blocked { size_per_thread, threads_per_warp, warps_per_cta, order: order.to_vec() }
    }

    /// A blocked encoding for the result of a dot made of fused multiply-adds: `per_thread` × `per_thread` elements a
    /// thread where the shape has them, threads along columns first.
    pub fn default_fma(shape: &[u32], num_warps: u32, per_thread: u32) -> Self {
        let rank = shape.len();
        let order: Vec<u32> = (0..rank as u32).rev().collect();
        let mut out = Self::default_blocked(shape, num_warps, per_thread, &order);
        if let Self::Blocked { size_per_thread, threads_per_warp, warps_per_cta, .. } = &mut out
            && rank >= 2
        {
            let row = rank - 2;
            let covered = threads_per_warp[row] * warps_per_cta[row];
            while size_per_thread[row] < per_thread
                && shape[row].is_multiple_of(covered * size_per_thread[row] * 2)
            {
                size_per_thread[row] *= 2;
            }
        }
        out
    }

    /// The encoding of the result of a dot by `mma.sync`.
    pub fn mma_v2(shape: &[u32], num_warps: u32, spread: WarpSpread) -> Self {
        Self::NvidiaMma {
            version_major: 2,
            version_minor: 0,
            warps_per_cta: mma_v2_warps_per_cta(shape, num_warps, spread),
            instr_shape: vec![16, 8],
        }
    }

    /// The shared-memory encoding of a dot operand that is written in 16-byte vectors along `order[0]` and read by `ldmatrix`
    /// (or by 32-bit loads along K), both without bank conflicts.
    ///
    /// A row's 16-byte groups are permuted by the row, modulo the 8 rows of a matrix; rows shorter than 128 bytes share a
    /// phase as far as they share a line.
    pub fn swizzled_shared_for_dot(shape: &[u32], order: &[u32], elem_bits: u32) -> Self {
        let elem_bytes = elem_bits.max(8) / 8;
        let size = order.first().map_or(1, |&d| shape[d as usize]);
        let row_bytes = (roomy_unit(size) * elem_bytes).min(128);
        let vec_bytes = row_bytes.min(16);
        let per_phase = (128 / row_bytes).min(8);
        let kind = SharedKind::Swizzled {
            vec: (vec_bytes / elem_bytes).max(1),
            per_phase,
            max_phase: (8 / per_phase).min((row_bytes / vec_bytes).max(1)),
            order: order.to_vec(),
        };
        Self::Shared(kind)
    }

    /// The shared-memory encoding for TMA and `wgmma`: the widest swizzle that the contiguous dimension fills. `transposed`
    /// buffers are contiguous along the second last dimension.
    pub fn nvmma_shared(shape: &[u32], transposed: bool, elem_bits: u32) -> Self {
        let rank = shape.len();
        let contiguous = if transposed { rank.checked_sub(2) } else { rank.checked_sub(1) };
        let bytes = contiguous.map_or(0, |d| shape[d]) * elem_bits / 8;
        let swizzle_bytes =
            [128, 64, 32].into_iter().find(|&b| bytes.is_multiple_of(b) && bytes > 0).unwrap_or(0);
        Self::Shared(SharedKind::NvmmaShared {
            swizzle_bytes,
            transposed,
            element_bits: elem_bits,
            rank: rank as u32,
        })
    }
}

/// The warps along each dimension of a result of `mma.sync`, in instructions of 16×8: first with the least padding (96×80
/// with 4 warps is 2×2: three repeats of 32 rows), then as `spread` asks. Leading dimensions get one warp.
pub fn mma_v2_warps_per_cta(shape: &[u32], num_warps: u32, spread: WarpSpread) -> Vec<u32> {
    let rank = shape.len();
    let mut out = vec![1; rank];
    let [.., m, n] = *shape else { return out };
    let candidates = (0..=num_warps.ilog2()).rev().map(|bits| (1u32 << bits, num_warps >> bits));
    let slots = |&(wm, wn): &(u32, u32)| slots(&[m, n], |d| if d == 0 { 16 * wm } else { 8 * wn });
    let least = candidates.clone().map(|c| slots(&c)).min().unwrap_or(0);
    let best = candidates.filter(|c| near(slots(c), least)).min_by_key(|&(wm, wn)| match spread {
        // Each column of warps reads all of A, each row of warps all of B.
        WarpSpread::Square => u64::from(m) * u64::from(wn) + u64::from(n) * u64::from(wm),
        WarpSpread::RowWise => u64::from(wn),
    });
    (out[rank - 2], out[rank - 1]) = best.unwrap_or((num_warps, 1));
    out
}

/// All ways to write `bits` as a sum of `parts` terms, those with larger first terms first.
fn spreads(bits: u32, parts: usize, prefix: &mut Vec<u32>, out: &mut Vec<Vec<u32>>) {
    if parts <= 1 {
        let mut all = prefix.clone();
        all.resize(prefix.len() + parts, bits);
        out.push(all);
        return;
    }
    for first in (0..=bits).rev() {
        prefix.push(first);
        spreads(bits - first, parts - 1, prefix, out);
        prefix.pop();
    }
}
