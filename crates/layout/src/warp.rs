//! What a warp has of a tensor whose layout says nothing of lanes (ML-Triton, section 2.2).
//!
//! ```text
//! #blocked                                          sizePerWarp = S             warpsPerCTA = W      (ML-Triton, Table 3)
//! #dot_op<{opIdx = 0, parent = #blocked}>           sizePerWarp = [S[0], K]     warpsPerCTA = W
//! #dot_op<{opIdx = 1, parent = #blocked}>           sizePerWarp = [K, S[1]]     warpsPerCTA = W
//! #slice<{dim = i, parent = #blocked}>              S and W without element i
//! ```
//!
//! K is the tensor's whole extent, of which all warps along it have the same: [`Encoding::warp_blocked`] is the table, and the linear layout over
//! (register, warp) that an encoding maps to says also which warps have copies. [`WarpPart`] reads there where a warp's part begins.

use smallvec::SmallVec;

use crate::distribute::Coord;
use crate::encoding::Encoding;
use crate::error::{LayoutError, Result};
use crate::linear::Dim;
use crate::tile::TileLayout;

impl Encoding {
    /// The [`WarpBlocked`](Encoding::WarpBlocked) that is equivalent to an encoding of warps, for tensors of one shape; `None` for one
    /// that says what lanes have, or a slice of a dimension that it hasn't.
    ///
    /// The warps of a slice are fewer than those of its parent: those that differed along the dimension have copies, and
    /// which they are is what the equivalent doesn't say.
    pub fn warp_blocked(&self, shape: &[u32]) -> Option<Encoding> {
        match self {
            Encoding::WarpBlocked { .. } => Some(self.clone()),
            Encoding::DotOperand { op_idx, parent, .. } => {
                let mut found = parent.warp_blocked(shape)?;
                let Encoding::WarpBlocked { size_per_warp, warps_per_cta, .. } = &mut found else {
                    return None;
                };
                let k = shape.len().checked_sub(if *op_idx == 0 { 1 } else { 2 })?;
                // What is no power of two repeats one, of which other warps have no copies then.
                if !shape[k].is_power_of_two() && *warps_per_cta.get(k)? > 1 {
                    return None;
                }
                *size_per_warp.get_mut(k)? = 1 << shape[k].trailing_zeros();
                Some(found)
            }
            Encoding::Slice { dim, parent } => {
                let (d, mut whole) = (*dim as usize, shape.to_vec());
                if d > shape.len() {
                    return None;
                }
                whole.insert(d, 1);
                let mut found = parent.warp_blocked(&whole)?;
                let Encoding::WarpBlocked { size_per_warp, warps_per_cta, order } = &mut found else {
                    return None;
                };
                size_per_warp.remove(d);
                warps_per_cta.remove(d);
                order.retain(|o| o != dim);
                order.iter_mut().filter(|o| **o > *dim).for_each(|o| *o -= 1);
                Some(found)
            }
            _ => None,
        }
    }
}

/// How the parts of a tensor follow each other along a dimension: that of warp `w` is number `(w >> shift) % count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WarpAxis {
    /// The bits of the warp's number that lie below those that count.
    pub shift: u32,
    /// The number of parts, a power of two; with one alone all warps have all.
    pub count: u32,
}

/// The part of a tensor that each warp has: as large for each, and whole.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WarpPart {
    /// Its extents.
    pub shape: Coord,
    /// Where it lies, per dimension.
    pub axes: SmallVec<[WarpAxis; 4]>,
    /// The bits of a warp's number under which copies are found: warps that differ in them alone have the same part.
    pub copies: u32,
}

impl WarpPart {
    /// The part of a tensor of a shape under an encoding of warps, of which there are so many.
    ///
    /// # Errors
    /// An encoding that doesn't fit the shape; one of which a warp has several pieces, or that pads.
    pub fn new(encoding: &Encoding, shape: &[u32], num_warps: u32) -> Result<WarpPart> {
        let layout = TileLayout::new(encoding, shape)?;
        let mut part = WarpPart { shape: Coord::new(), axes: SmallVec::new(), copies: num_warps - 1 };
        for (d, &extent) in shape.iter().enumerate() {
            let bases = layout.warp_bases(d);
            let moving: SmallVec<[(usize, u32); 8]> =
                bases.iter().copied().enumerate().filter(|(_, b)| *b != 0).collect();
            let count = 1 << moving.len();
            let (shift, size) = (moving.first().map_or(0, |m| m.0), extent / count);
            let in_turn = moving.iter().enumerate().all(|(i, &(bit, b))| bit == shift + i && b == size << i);
            if !encoding.is_of_warps() || layout.physical(d) != extent || !in_turn {
                return Err(LayoutError::new(format!(
                    "not supported yet: a tensor of shape {shape:?} of which each warp has other than one piece"
                )));
            }
            moving.iter().for_each(|(bit, _)| part.copies &= !(1 << bit));
            part.shape.push(size);
            part.axes.push(WarpAxis { shift: shift as u32, count });
        }
        debug_assert!(layout.linear().in_size(Dim::Lane) == 1);
        Ok(part)
    }
}
