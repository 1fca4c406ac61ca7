//! How the elements of an axis are spread over threads, for reductions along it, and how a scan goes through them.

use crate::{Dim, TileLayout};

/// The bits of a thread that move along an axis, and along no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisSpread {
    /// Bits of the lane.
    pub lanes: Vec<u32>,
    /// Bits of the warp.
    pub warps: Vec<u32>,
}

impl AxisSpread {
    /// `None` where some bit moves along another axis too. Bits under which there are copies don't count.
    pub fn of(layout: &TileLayout, axis: usize) -> Option<AxisSpread> {
        let free = layout.free_variable_masks();
        let bits = |dim, free: u32| -> Option<Vec<u32>> {
            let along = |basis, d: usize| layout.linear().out_part(basis, Dim::Axis(d as u8));
            let bases = (0..).zip(layout.linear().flat_bases(dim).iter().copied());
            let mine: Vec<_> =
                bases.filter(|&(bit, b)| along(b, axis) != 0 && free >> bit & 1 == 0).collect();
            let alone = |b: u32| (0..layout.rank()).all(|d| d == axis || along(b, d) == 0);
            mine.iter().all(|m| alone(m.1)).then(|| mine.iter().map(|m| m.0).collect())
        };
        Some(AxisSpread { lanes: bits(Dim::Lane, free.lane)?, warps: bits(Dim::Warp, free.warp)? })
    }
}

/// An element's place along the axis is `((run · W + warp) · L + lane) · C + i`: a thread holds runs of C consecutive
/// elements, next to it are the lanes, then the warps, then the thread's next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanOrder {
    /// Elements of a run.
    pub run: u32,
    /// Lanes along the axis, and the lowest of their bits.
    pub lanes: u32,
    /// See [`lanes`](Self::lanes).
    pub lane_bit: u32,
    /// Warps along the axis, and the lowest of their bits.
    pub warps: u32,
    /// See [`warps`](Self::warps).
    pub warp_bit: u32,
}

impl ScanOrder {
    /// `None` where the layout orders the axis in another way, as that of a dot's result does along its rows.
    ///
    /// ```
    /// use tilewright_layout::{Encoding, ScanOrder, TileLayout};
    /// let blocked = |warps: [u32; 2]| Encoding::Blocked {
    ///     size_per_thread: vec![1, 4], threads_per_warp: vec![4, 8], warps_per_cta: warps.to_vec(), order: vec![1, 0],
    /// };
    /// let layout = TileLayout::new(&blocked([1, 4]), &[4, 128])?;
    /// let along = ScanOrder::of(&layout, 1).expect("runs, lanes, warps");
    /// assert_eq!((along.run, along.lanes, along.warps), (4, 8, 4));
    /// # Ok::<(), tilewright_layout::LayoutError>(())
    /// ```
    pub fn of(layout: &TileLayout, axis: usize) -> Option<ScanOrder> {
        let out = Dim::Axis(axis as u8);
        let linear = layout.linear();
        let along = |dim, bit: u32| linear.out_part(linear.flat_bases(dim)[bit as usize], out);
        let AxisSpread { lanes, warps } = AxisSpread::of(layout, axis)?;
        // The run ends where the first lane or warp begins, or is all that the thread has.
        let first = lanes.iter().map(|&b| along(Dim::Lane, b));
        let run =
            first.chain(warps.iter().map(|&b| along(Dim::Warp, b))).min().unwrap_or(layout.physical(axis));
        let mut next = run;
        let mut in_order = |dim, bits: &[u32]| {
            bits.iter().enumerate().all(|(i, &b)| {
                let fits = along(dim, b) == next && b == bits[0] + i as u32;
                next *= 2;
                fits
            })
        };
        let fits = in_order(Dim::Lane, &lanes) && in_order(Dim::Warp, &warps);
        fits.then(|| ScanOrder {
            run,
            lanes: 1 << lanes.len(),
            lane_bit: lanes.first().copied().unwrap_or(0),
            warps: 1 << warps.len(),
            warp_bit: warps.first().copied().unwrap_or(0),
        })
    }
}
