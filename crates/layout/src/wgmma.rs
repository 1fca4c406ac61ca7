//! Operands of `wgmma` in shared memory: the matrix descriptors that say where a tile lies (PTX ISA, "Asynchronous
//! warpgroup level matrix shared memory layout" and "Matrix descriptor format").
//!
//! A buffer in [`SharedKind::NvmmaShared`] consists of slabs as wide as the swizzle (32, 64 or 128 bytes) along its fast
//! dimension. An instruction sees one operand as MN × K, where MN is M of A or N of B, and walks slabs and groups of 8 rows:
//!
//! | fast dimension | stride offset | leading offset | next K step of 32 bytes |
//! | --- | --- | --- | --- |
//! | K ("K-major") | 8 rows, along MN | not used: one step lies within a slab | 32 bytes on in the row |
//! | MN ("MN-major", 16-bit elements only) | 8 rows, along K | one slab, along MN | 16 rows on |
//!
//! The hardware applies the swizzle to the whole address, so a tile may begin anywhere at which the swizzle of its first
//! row is none: at multiples of 8 rows, and of 16 bytes along K or of a slab along MN.

use crate::encoding::{Encoding, SharedKind};
use crate::shared::SharedLayout;

/// How an operand lies in a buffer: everything that a descriptor holds but the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WgmmaOperand {
    /// Whether MN is the fast dimension (`imm-trans`), which only 16-bit elements may have.
    pub mn_major: bool,
    /// 32, 64 or 128.
    pub swizzle_bytes: u32,
    /// The leading dimension byte offset.
    pub leading_bytes: u32,
    /// The stride dimension byte offset.
    pub stride_bytes: u32,
    elem_bytes: u32,
    mn_axis: usize,
}

impl WgmmaOperand {
    /// How the operand whose MN is axis `mn_axis` (0 of A, 1 of B) lies in a buffer of rank 2, for instructions on
    /// `mn` of its rows. `None` where no descriptor says it.
    pub fn new(encoding: &Encoding, shared: &SharedLayout, mn_axis: usize, mn: u32) -> Option<Self> {
        let &Encoding::Shared(SharedKind::NvmmaShared { swizzle_bytes, transposed, element_bits, rank: 2 }) =
            encoding
        else {
            return None;
        };
        if shared.rank() != 2 || swizzle_bytes == 0 {
            return None;
        }
        let fast = if transposed { 0 } else { 1 };
        let rows = 1 - fast;
        let mn_major = fast == mn_axis;
        let elem_bytes = element_bits / 8;
        let slab = swizzle_bytes / elem_bytes;
        // Groups of 8 rows are evenly apart: the rows of a slab follow each other, whatever their number.
        if (mn_major && elem_bytes != 2) || shared.unit()[rows] < 8 {
            return None;
        }
        let leading_bytes = if mn_major && mn > slab {
            let mut next = [0, 0];
            next[fast] = slab;
            shared.offset(&next) * elem_bytes
        } else {
            16
        };
        Some(WgmmaOperand {
            mn_major,
            swizzle_bytes,
            leading_bytes,
            stride_bytes: 8 * swizzle_bytes,
            elem_bytes,
            mn_axis,
        })
    }

    /// Where the tile at (`mn`, `k`) begins, in bytes from the buffer's start; `None` where a tile can't begin.
    pub fn start(&self, shared: &SharedLayout, mn: u32, k: u32) -> Option<u32> {
        let mut at = [k, k];
        at[self.mn_axis] = mn;
        let slab = self.swizzle_bytes / self.elem_bytes;
        let fits = if self.mn_major {
            mn.is_multiple_of(slab) && k.is_multiple_of(8)
        } else {
            mn.is_multiple_of(8) && (k * self.elem_bytes).is_multiple_of(16)
        };
        fits.then(|| shared.offset(&at) * self.elem_bytes)
    }

    /// The descriptor of a tile at address 0; its address, divided by 16, goes into the low 14 bits.
    pub fn descriptor(&self) -> u64 {
        let field = |bytes: u32| u64::from(bytes >> 4 & 0x3fff);
        let swizzle = match self.swizzle_bytes {
            128 => 1,
            64 => 2,
            32 => 3,
            _ => 0u64,
        };
        field(self.leading_bytes) << 16 | field(self.stride_bytes) << 32 | swizzle << 62
    }
}
