//! Prefetches, which warps share out as they like: nobody has what they bring, and all find it in the cache.

use tilewright_ir::dialect::tt;
use tilewright_ir::{Diagnostic, TypeKind};
use tilewright_layout::{WarpAxis, WarpPart};

use super::Distributor;
use crate::target::BlockLimit;

impl Distributor<'_> {
    /// Each warp prefetches a part of the block.
    pub(super) fn prefetch(&mut self, prefetch: tt::DescriptorPrefetch) -> Result<(), Diagnostic> {
        let TypeKind::TensorDesc { block } = *self.m.type_kind(self.m.value_type(prefetch.desc(self.m)))
        else {
            return Err(self.unsupported(prefetch.0, "of something else than a descriptor"));
        };
        let shape = self.m.shape(block).unwrap_or(&[]).to_vec();
        match (self.prefetch, &shape[..]) {
            (Some(limit), &[rows, columns]) => {
                let part = share([rows, columns], self.m.bits(block), limit, self.num_warps);
                self.move_to(prefetch.0, &part, 1)
            }
            _ => Ok(()),
        }
    }
}

/// The part of each warp: whole rows of one message where there are enough of them, beside each other first.
fn share([rows, columns]: [u32; 2], bits: u32, limit: BlockLimit, num_warps: u32) -> WarpPart {
    let row = (limit.row_bytes * 8 / bits.max(8)).clamp(1, columns);
    let beside = (columns / row).min(num_warps);
    let below = (num_warps / beside).min(rows);
    let axes =
        [WarpAxis { shift: beside.trailing_zeros(), count: below }, WarpAxis { shift: 0, count: beside }];
    // (Where there are more warps than parts some bring the same.)
    let copies = (num_warps - 1) & !(beside * below - 1);
    WarpPart {
        shape: [rows / below, columns / beside].into_iter().collect(),
        axes: axes.into_iter().collect(),
        copies,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warps_bring_different_parts() {
        let limit = BlockLimit { rows: 32, row_bytes: 64 };
        let parts = |shape, warps| {
            let part = share(shape, 16, limit, warps);
            (
                part.shape.to_vec(),
                part.axes.iter().map(|a| (a.shift, a.count)).collect::<Vec<_>>(),
                part.copies,
            )
        };
        assert_eq!(parts([256, 32], 32), (vec![8, 32], vec![(0, 32), (0, 1)], 0));
        assert_eq!(parts([32, 256], 32), (vec![8, 32], vec![(3, 4), (0, 8)], 0));
        assert_eq!(parts([32, 256], 4), (vec![32, 64], vec![(2, 1), (0, 4)], 0));
        assert_eq!(parts([4, 16], 8), (vec![1, 16], vec![(0, 4), (0, 1)], 4));
    }
}
