//! How a scan goes through the elements of an axis.

use crate::{Dim, TileLayout};

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
        let free = layout.free_variable_masks();
        let linear = layout.linear();
        let along = |dim, bit: u32| linear.out_part(linear.flat_bases(dim)[bit as usize], out);
        // The bits of a thread that move along the axis: along no other.
        let bits = |dim, free: u32| -> Option<Vec<u32>> {
            let of = (0..linear.flat_bases(dim).len() as u32)
                .filter(|&b| along(dim, b) != 0 && free >> b & 1 == 0);
            let bits: Vec<u32> = of.collect();
            let alone = |&b: &u32| {
                let basis = linear.flat_bases(dim)[b as usize];
                (0..layout.rank()).all(|d| d == axis || linear.out_part(basis, Dim::Axis(d as u8)) == 0)
            };
            bits.iter().all(alone).then_some(bits)
        };
        let (lanes, warps) = (bits(Dim::Lane, free.lane)?, bits(Dim::Warp, free.warp)?);
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
