//! Blocks as the tensor memory accelerator copies them: boxes of at most 256 elements a side, which lie in shared memory row
//! by row, swizzled by address bits (PTX ISA, "Tensor dimension, bounding box" and "Swizzling modes").
//!
//! A buffer in [`SharedKind::NvmmaShared`] consists of slabs as wide as its swizzle. A box is one slab (or a piece of 256
//! rows of it), so a block takes several copies:
//!
//! ```text
//! 128×256 of f16, 128-byte swizzle:   box 128×64, copies at columns 0, 64, 128, 192, each 16 KiB further on
//! ```
//!
//! A buffer in [`SharedKind::Swizzled`] without a swizzle is row-major: one box, or pieces along its outermost dimension.

use smallvec::smallvec;

use crate::distribute::Coord;
use crate::encoding::{Encoding, SharedKind};
use crate::shared::SharedLayout;

/// The largest box side (PTX ISA, "boxDim").
const MAX_BOX: u32 = 256;

/// How a block is copied between global and shared memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TmaBlock {
    /// The box of one copy, outermost dimension first.
    pub box_dims: Coord,
    /// 0 (none), 32, 64 or 128.
    pub swizzle_bytes: u32,
    /// The copies that make the block.
    pub copies: Vec<TmaCopy>,
}

/// One copy of a [`TmaBlock`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TmaCopy {
    /// Where its box begins in the block, outermost dimension first.
    pub at: Coord,
    /// Where it lies in the buffer, in bytes.
    pub offset: u32,
}

impl TmaBlock {
    /// How a block of `shape` gets into a buffer of this encoding; `None` where TMA can't.
    pub fn new(encoding: &Encoding, shape: &[u32], elem_bits: u32) -> Option<Self> {
        let rank = shape.len();
        if !(1..=5).contains(&rank) || !matches!(elem_bits, 8 | 16 | 32 | 64) {
            return None;
        }
        let Encoding::Shared(kind) = encoding else { return None };
        let shared = SharedLayout::new(encoding, shape, elem_bits).ok()?;
        let elem_bytes = elem_bits / 8;
        let inner = rank - 1;
        let mut box_dims: Coord = smallvec![1; rank];
        let swizzle_bytes = match kind {
            SharedKind::NvmmaShared { swizzle_bytes, transposed: false, rank: 2, .. } if rank >= 2 => {
                // A slab has all rows, so that any multiple of the swizzle's 8 rows begins at a multiple of its period.
                box_dims[inner] = swizzle_bytes.max(&16) / elem_bytes;
                box_dims[inner - 1] = divisor(shape[inner - 1], 8)?;
                *swizzle_bytes
            }
            SharedKind::Swizzled { max_phase: 1, order, .. } if order.len() == rank => {
                let row_major = (0..rank as u32).rev().eq(order.iter().copied());
                // Rows are not made longer than they are.
                if !row_major || (0..rank).any(|d| shared.physical(d) != shape[d]) {
                    return None;
                }
                // As many whole inner dimensions as fit; one is cut, those further out go one at a time.
                for d in (0..rank).rev() {
                    box_dims[d] = divisor(shape[d], 1)?;
                    if box_dims[d] < shape[d] {
                        break;
                    }
                }
                0
            }
            _ => return None,
        };
        if !(box_dims[inner] * elem_bytes).is_multiple_of(16) {
            return None;
        }
        Self::of_boxes(box_dims, swizzle_bytes, &shared, elem_bytes)
    }

    /// All boxes of these sides; `None` where one would begin where TMA can't put it.
    fn of_boxes(box_dims: Coord, swizzle_bytes: u32, shared: &SharedLayout, elem_bytes: u32) -> Option<Self> {
        let shape = shared.shape();
        let rank = shape.len();
        let mut copies = Vec::new();
        let mut at: Coord = smallvec![0; rank];
        loop {
            copies.push(TmaCopy { at: at.clone(), offset: shared.offset(&at) * elem_bytes });
            // The next box: columns last, so that copies follow memory.
            let Some(d) = (0..rank).rev().find(|&d| at[d] + box_dims[d] < shape[d]) else { break };
            at[d] += box_dims[d];
            at[d + 1..].fill(0);
        }
        // Each begins where TMA can put it: a multiple of the swizzle's period, or of 128 bytes.
        let align = if swizzle_bytes == 0 { 128 } else { 8 * swizzle_bytes };
        copies.iter().all(|c| c.offset.is_multiple_of(align)).then_some(TmaBlock {
            box_dims,
            swizzle_bytes,
            copies,
        })
    }

    /// The same block where its buffer is the part of a larger one, `whole`, that begins at `offsets`; `None` where TMA can't: the part is whole
    /// rows of slabs that begin where a swizzle does, or without a swizzle one run of the memory.
    pub fn in_part(
        &self,
        whole: &SharedLayout,
        shape: &[u32],
        offsets: &[u32],
        elem_bytes: u32,
    ) -> Option<Self> {
        let (swizzle, rank) = (self.swizzle_bytes, shape.len());
        if swizzle == 0 && whole.shape().get(1..) != shape.get(1..) {
            return None;
        }
        let mut block = self.clone();
        // (The box may have leading dimensions of extent 1 that the buffer lacks.)
        let lacks = self.box_dims.len() - rank;
        for copy in &mut block.copies {
            let at: Vec<u32> = copy.at[lacks..].iter().zip(offsets).map(|(&at, &o)| at + o).collect();
            copy.offset = whole.offset(&at) * elem_bytes;
        }
        let align = if swizzle == 0 { 128 } else { 8 * swizzle };
        block.copies.iter().all(|c| c.offset.is_multiple_of(align)).then_some(block)
    }

    /// As [`new`](TmaBlock::new), with smaller boxes where these can be shared by as many CTAs of a cluster as there are `parts`
    /// ([`shared_by`](TmaBlock::shared_by)).
    pub fn in_parts(encoding: &Encoding, shape: &[u32], elem_bits: u32, parts: u32) -> Option<Self> {
        let block = Self::new(encoding, shape, elem_bits)?;
        let shared = SharedLayout::new(encoding, shape, elem_bits).ok()?;
        let mut smaller = block.clone();
        while smaller.shared_by(parts).is_none() {
            let mut boxes = smaller.box_dims.clone();
            // A box is one run of the buffer, so it is its outermost side that is halved. Rows are whole, and so are the
            // swizzle's groups of 8 rows.
            let outermost = boxes.iter().position(|&n| n > 1);
            let halved = outermost.filter(|&d| d + 1 < boxes.len() && boxes[d].is_multiple_of(2));
            let Some(d) = halved else { return Some(block) };
            boxes[d] /= 2;
            match Self::of_boxes(boxes, block.swizzle_bytes, &shared, elem_bits / 8) {
                Some(halves) => smaller = halves,
                None => return Some(block),
            }
        }
        Some(smaller)
    }

    /// How the copies are shared by `parts` CTAs: CTA i issues the first `len / parts`, moved by i times what is returned (in
    /// the tensor, outermost dimension first, and in the buffer, in bytes). `None` where parts aren't alike.
    pub fn shared_by(&self, parts: u32) -> Option<(Coord, u32)> {
        let count = self.copies.len();
        if !(count as u32).is_multiple_of(parts) {
            return None;
        }
        let each = count / parts as usize;
        let (first, second) = (&self.copies[0], self.copies.get(each).unwrap_or(&self.copies[0]));
        let step: Coord =
            second.at.iter().zip(&first.at).map(|(b, a)| b.checked_sub(*a)).collect::<Option<_>>()?;
        let bytes = second.offset.checked_sub(first.offset)?;
        let alike = (0..count).all(|i| {
            let (part, base, copy) = ((i / each) as u32, &self.copies[i % each], &self.copies[i]);
            copy.offset == base.offset + part * bytes
                && (0..step.len()).all(|d| copy.at[d] == base.at[d] + part * step[d])
        });
        alike.then_some((step, bytes))
    }

    /// The bytes that all copies bring together, which is what an mbarrier is told to expect.
    pub fn bytes(&self, elem_bits: u32) -> u32 {
        self.box_dims.iter().product::<u32>() * self.copies.len() as u32 * elem_bits / 8
    }

    /// The encoding that a buffer gets for TMA where nothing else asks for one: the widest swizzle whose slabs make up a
    /// row, so that both `wgmma` and threads read it without bank conflicts.
    pub fn natural_encoding(shape: &[u32], elem_bits: u32) -> Encoding {
        let rank = shape.len();
        let row = shape.last().map_or(0, |&n| n * elem_bits / 8);
        let swizzle_bytes = if row == 0 { 0 } else { (1 << row.trailing_zeros()).min(128) };
        if rank >= 2 && swizzle_bytes >= 32 && elem_bits <= 32 && shape[rank - 2].is_multiple_of(8) {
            let transposed = false;
            return Encoding::Shared(SharedKind::NvmmaShared {
                swizzle_bytes,
                transposed,
                element_bits: elem_bits,
                rank: 2,
            });
        }
        let order = (0..rank as u32).rev().collect();
        Encoding::Shared(SharedKind::Swizzled { vec: 1, per_phase: 1, max_phase: 1, order })
    }
}

/// The largest divisor of `n` that a box may have; a multiple of `unit` unless it is all of `n`.
fn divisor(n: u32, unit: u32) -> Option<u32> {
    if n <= MAX_BOX {
        return Some(n);
    }
    (1..=MAX_BOX / unit).rev().map(|d| d * unit).find(|d| n.is_multiple_of(*d))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where TMA puts byte `row_major` of a box at `base`: the swizzle is of the address.
    fn placed(base: u32, row_major: u32, swizzle_bytes: u32) -> u32 {
        let at = base + row_major;
        let mask = (swizzle_bytes / 16).saturating_sub(1);
        at ^ (at >> 7 & mask) << 4
    }

    fn check(encoding: &Encoding, shape: &[u32], bits: u32) -> Option<TmaBlock> {
        let block = TmaBlock::new(encoding, shape, bits)?;
        for parts in [2, 4, 8] {
            check_copies(&TmaBlock::in_parts(encoding, shape, bits, parts)?, encoding, shape, bits);
        }
        check_copies(&block, encoding, shape, bits);
        Some(block)
    }

    fn check_copies(block: &TmaBlock, encoding: &Encoding, shape: &[u32], bits: u32) {
        let shared = SharedLayout::new(encoding, shape, bits).unwrap();
        let bytes = bits / 8;
        let mut seen = 0;
        for copy in &block.copies {
            for flat in 0..block.box_dims.iter().product::<u32>() {
                let (mut rest, mut at) = (flat, copy.at.clone());
                for d in (0..shape.len()).rev() {
                    at[d] += rest % block.box_dims[d];
                    rest /= block.box_dims[d];
                }
                if at.iter().zip(shape).any(|(a, s)| a >= s) {
                    continue;
                }
                seen += 1;
                let want = shared.offset(&at) * bytes;
                assert_eq!(
                    placed(copy.offset, flat * bytes, block.swizzle_bytes),
                    want,
                    "{shape:?} at {at:?}"
                );
            }
        }
        assert_eq!(seen, shape.iter().product::<u32>(), "{shape:?}: every element is copied once");
        assert!(block.box_dims.iter().all(|&b| b <= 256));
    }

    #[test]
    fn copies_put_each_element_where_the_layout_has_it() {
        let shapes: &[&[u32]] = &[
            &[128, 64],
            &[128, 256],
            &[64, 32],
            &[512, 64],
            &[384, 128],
            &[96, 96],
            &[24, 160],
            &[64, 16],
            &[1, 64],
            &[7, 64],
            &[1024],
            &[4, 64, 64],
            &[2, 2, 16, 8],
            &[512, 8],
            &[3, 32, 24],
            &[3, 16, 8],
            &[6, 20, 24],
            &[2, 3, 4, 24],
        ];
        for shape in shapes {
            for bits in [8, 16, 32, 64] {
                let encoding = TmaBlock::natural_encoding(shape, bits);
                if (shape.last().unwrap() * bits / 8) % 16 == 0 {
                    assert!(
                        check(&encoding, shape, bits).is_some(),
                        "{shape:?} of {bits} bits: {encoding:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_wide_tile_takes_a_copy_for_each_slab() {
        let encoding = TmaBlock::natural_encoding(&[128, 256], 16);
        let block = check(&encoding, &[128, 256], 16).unwrap();
        assert_eq!(&block.box_dims[..], [128, 64]);
        assert_eq!(block.swizzle_bytes, 128);
        let at: Vec<(u32, u32)> = block.copies.iter().map(|c| (c.at[1], c.offset)).collect();
        assert_eq!(at, [(0, 0), (64, 16 << 10), (128, 32 << 10), (192, 48 << 10)]);
        assert_eq!(block.bytes(16), 64 << 10);
    }

    #[test]
    fn parts_of_a_block_are_alike() {
        let parts = |shape: &[u32], n: u32| {
            let encoding = TmaBlock::natural_encoding(shape, 16);
            let block = TmaBlock::in_parts(&encoding, shape, 16, n).unwrap();
            assert_eq!(block.bytes(16), TmaBlock::new(&encoding, shape, 16).unwrap().bytes(16));
            block.shared_by(n).map(|(at, offset)| (block.box_dims.to_vec(), at.to_vec(), offset))
        };
        // One box of 256 rows becomes two of 128.
        assert_eq!(parts(&[256, 64], 2), Some((vec![128, 64], vec![128, 0], 16 << 10)));
        // Four slabs are two and two.
        assert_eq!(parts(&[64, 256], 2), Some((vec![64, 64], vec![0, 128], 16 << 10)));
        assert_eq!(parts(&[64, 256], 4), Some((vec![64, 64], vec![0, 64], 8 << 10)));
        // Two slabs of two halves each are no line of four, but a quarter of the rows of both is one.
        assert_eq!(parts(&[64, 128], 4), Some((vec![16, 64], vec![16, 0], 2 << 10)));
        // Eight rows are one group of the swizzle.
        assert_eq!(parts(&[8, 64], 2), None);
        assert_eq!(parts(&[128, 64], 1).unwrap().0, [128, 64]);
    }

    #[test]
    fn what_tma_cannot_do() {
        let nvmma = |transposed| {
            Encoding::Shared(SharedKind::NvmmaShared {
                swizzle_bytes: 128,
                transposed,
                element_bits: 16,
                rank: 2,
            })
        };
        assert!(TmaBlock::new(&nvmma(false), &[64, 64], 16).is_some());
        assert!(TmaBlock::new(&nvmma(true), &[64, 64], 16).is_none());
        let swizzled =
            Encoding::Shared(SharedKind::Swizzled { vec: 8, per_phase: 1, max_phase: 8, order: vec![1, 0] });
        assert!(TmaBlock::new(&swizzled, &[64, 64], 16).is_none());
        assert!(TmaBlock::new(&TmaBlock::natural_encoding(&[4, 4], 16), &[4, 4], 16).is_none());
    }
}
