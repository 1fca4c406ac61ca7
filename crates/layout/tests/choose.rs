//! The encodings that are chosen: coalesced, free of conflicts, and with little padding.

mod common;

use proptest::prelude::*;
use tilewright_layout::{
    Encoding, SharedAccess, SharedLayout, TileLayout, WarpSpread, bank_cost, mma_v2_warps_per_cta,
};

fn parts(e: &Encoding) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    match e {
        Encoding::Blocked { size_per_thread, threads_per_warp, warps_per_cta, .. } => {
            (size_per_thread.clone(), threads_per_warp.clone(), warps_per_cta.clone())
        }
        _ => panic!("not blocked"),
    }
}

#[test]
fn blocked_follows_the_contiguous_dimension() {
    let of = |shape: &[u32], warps, vec, order: &[u32]| {
        parts(&Encoding::default_blocked(shape, warps, vec, order))
    };
    assert_eq!(of(&[1024], 4, 4, &[0]), (vec![4], vec![32], vec![4]));
    assert_eq!(of(&[128, 64], 4, 8, &[1, 0]), (vec![1, 8], vec![4, 8], vec![4, 1]));
    assert_eq!(of(&[128, 64], 4, 8, &[0, 1]), (vec![8, 1], vec![16, 2], vec![1, 4]));
    // A row of 1000 is padded to 1024, not cut into 125 pieces.
    assert_eq!(of(&[4, 1000], 4, 4, &[1, 0]), (vec![1, 4], vec![1, 32], vec![1, 4]));
    // 96 columns are three repeats of 32, not 128 with a quarter of padding.
    assert_eq!(of(&[128, 96], 4, 8, &[1, 0]), (vec![1, 8], vec![8, 4], vec![4, 1]));
    // Few elements: one each.
    assert_eq!(of(&[128], 4, 8, &[0]), (vec![1], vec![32], vec![4]));
    // A vector must not straddle the end.
    assert_eq!(of(&[1001], 4, 8, &[0]).0, [1]);
    assert_eq!(of(&[], 4, 8, &[]).0, [0; 0]);
}

#[test]
fn fma_results_are_blocks() {
    let (per_thread, ..) = parts(&Encoding::default_fma(&[64, 64], 4, 4));
    assert_eq!(per_thread, [4, 4]);
    assert!(
        TileLayout::new(&Encoding::default_fma(&[48, 80], 4, 4), &[48, 80]).unwrap().num_registers() <= 64
    );
}

#[test]
fn warps_avoid_padding_first() {
    use WarpSpread::{RowWise, Square};
    assert_eq!(mma_v2_warps_per_cta(&[128, 128], 4, Square), [2, 2]);
    assert_eq!(mma_v2_warps_per_cta(&[128, 256], 8, Square), [2, 4]);
    assert_eq!(mma_v2_warps_per_cta(&[128, 64], 8, RowWise), [8, 1]);
    assert_eq!(mma_v2_warps_per_cta(&[96, 80], 4, Square), [2, 2]);
    assert_eq!(mma_v2_warps_per_cta(&[96, 80], 4, RowWise), [2, 2]);
    assert_eq!(mma_v2_warps_per_cta(&[16, 128], 4, Square), [1, 4]);
    assert_eq!(mma_v2_warps_per_cta(&[8, 64, 64], 4, Square), [1, 2, 2]);
    for spread in [Square, RowWise] {
        let l = TileLayout::new(&Encoding::mma_v2(&[96, 80], 4, spread), &[96, 80]).unwrap();
        assert!(!l.is_padded());
    }
}

#[test]
fn nvmma_buffers_fill_their_swizzle() {
    let of = |shape: &[u32], bits| match Encoding::nvmma_shared(shape, false, bits) {
        Encoding::Shared(tilewright_layout::SharedKind::NvmmaShared { swizzle_bytes, .. }) => swizzle_bytes,
        _ => panic!("not nvmma"),
    };
    assert_eq!(
        [of(&[128, 64], 16), of(&[128, 96], 16), of(&[128, 80], 16), of(&[128, 8], 16)],
        [128, 64, 32, 0]
    );
}

proptest! {
    #![proptest_config(common::config(300))]

    #[test]
    fn default_blocked_wastes_little(
        m in common::size(), n in common::size(), warps in 0u32..4, vec in 0u32..4, order in common::order(),
    ) {
        let e = Encoding::default_blocked(&[m, n], 1 << warps, 1 << vec, &order);
        let l = TileLayout::new(&e, &[m, n]).unwrap();
        prop_assert_eq!(l.num_lanes() * l.num_warps(), 32 << warps);
        let fast = order[0] as usize;
        let (per_thread, ..) = parts(&e);
        prop_assert!(l.contig_along(fast) >= per_thread[fast]);
        // The work of all threads is at most twice the elements, plus one each for the odd sizes that nothing fits.
        let slots = l.num_registers() * l.num_lanes() * l.num_warps();
        prop_assert!(slots <= 2 * m * n + 2 * per_thread[fast] * (32 << warps) * m.min(n));
    }

    /// A dot operand is written to its buffer in 16-byte vectors with no conflicts, from the layout that loads it. Rows of
    /// odd × 2^k elements may begin in the middle of a neighbour's banks, which at most doubles the cost.
    #[test]
    fn buffers_are_written_without_conflicts(
        m in prop::sample::select(vec![16u32, 32, 64, 96, 128, 48]), n in prop::sample::select(vec![16u32, 32, 64, 80, 96, 128, 48]),
        order in common::order(), bits in prop::sample::select(vec![8u32, 16, 32]),
    ) {
        let shape = [m, n];
        let tile = TileLayout::new(&Encoding::default_blocked(&shape, 4, 128 / bits, &order), &shape).unwrap();
        let shared = SharedLayout::new(&Encoding::swizzled_shared_for_dot(&shape, &order, bits), &shape, bits).unwrap();
        let access = SharedAccess::new(&tile, &shared, bits).unwrap();
        let cost = bank_cost(&access, &tile, &shared, bits);
        if access.width * bits == 128 {
            let odd = !shape[order[0] as usize].is_power_of_two();
            prop_assert!(cost.conflicts() <= if odd { cost.ideal } else { 0 }, "{:?}", cost);
        }
    }
}
