//! Conversions, carried out on a simulated CTA: every plan must bring every element to where the result layout has it.

mod common;

use std::sync::Arc;

use common::scrambled;
use common::simulate::simulate;
use proptest::prelude::*;
use tilewright_layout::{
    ConversionOptions, ConversionPlan, Encoding, ShuffleUse, SyncScope, TileLayout, bank_cost,
    plan_conversion, plan_conversion_with, wavefronts,
};

fn check(src: &Encoding, dst: &Encoding, shape: &[u32], elem_bits: u32) -> ConversionPlan {
    let (src, dst) = (TileLayout::new(src, shape).unwrap(), TileLayout::new(dst, shape).unwrap());
    for shuffles in [ShuffleUse::Always, ShuffleUse::Never] {
        for stmatrix in [false, true] {
            let options = ConversionOptions { shuffles, stmatrix, ..Default::default() };
            simulate(&plan_conversion_with(&src, &dst, elem_bits, options).unwrap(), &src, &dst, elem_bits);
        }
    }
    let plan = plan_conversion(&src, &dst, elem_bits).unwrap();
    simulate(&plan, &src, &dst, elem_bits);
    plan
}

fn elem_bits() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![8u32, 16, 32, 64])
}

proptest! {
    #![proptest_config(common::config(300))]

    #[test]
    fn any_conversion_is_the_identity(
        (src, dst) in (0u32..4, 0u32..4).prop_flat_map(|(a, b)| (common::encoding2(a), common::encoding2(b))),
        m in common::size(), n in common::size(), bits in elem_bits(),
    ) {
        prop_assume!(m * n <= 1 << 13);
        check(&src, &dst, &[m, n], bits);
    }

    /// Rows, columns and single elements, which every thread has that a broadcast of them may ask.
    #[test]
    fn any_conversion_of_a_row_or_a_column_reaches_all_threads(
        (src, dst) in (0u32..4, 0u32..4).prop_flat_map(|(a, b)| (common::encoding2(a), common::encoding2(b))),
        n in common::size(), ones in 1usize..4, bits in elem_bits(),
    ) {
        let shape = [0, 1].map(|d| if ones >> d & 1 == 1 { 1 } else { n });
        check(&src, &dst, &shape, bits);
        let layout = TileLayout::new(&dst, &shape).unwrap();
        prop_assert!((0..2).all(|d| shape[d] > 1 || layout.physical(d) == 1), "some thread has padding");
    }

    #[test]
    fn any_conversion_of_vectors_is_the_identity(
        src in common::encoding1(2), dst in common::encoding1(2), n in common::size(), bits in elem_bits(),
    ) {
        check(&src, &dst, &[n], bits);
    }

    #[test]
    fn any_linear_conversion_is_the_identity(
        (src, dst) in (0usize..4, 0usize..3).prop_flat_map(|(r, w)| (scrambled(r, w), scrambled(r, w))), bits in elem_bits(),
        reps in prop::sample::select(vec![1u32, 3]),
    ) {
        let unit = |e: &Encoding| match e {
            Encoding::Linear { register, lane, warp, .. } => 1u32 << (register.len() + lane.len() + warp.len()),
            _ => unreachable!(),
        };
        check(&src, &dst, &[unit(&src) * reps], bits);
    }

    /// Directions that cross the units of the other side.
    #[test]
    fn linear_layouts_convert_to_others(
        src in scrambled(3, 2), dst in common::encoding1(2), cut in 0u32..40, bits in elem_bits(), back: bool,
    ) {
        let shape = [1024 - cut * 16];
        if back { check(&dst, &src, &shape, bits) } else { check(&src, &dst, &shape, bits) };
    }

    /// Layouts that differ within warps only: shuffles must be found, whatever the directions.
    #[test]
    fn a_bijection_within_warps_can_be_shuffled(
        base in scrambled(3, 1), ops in prop::collection::vec((0usize..8, 0usize..8), 1..30), bits in elem_bits(),
    ) {
        let Encoding::Linear { register, lane, warp, block } = &base else { unreachable!() };
        let mut bases: Vec<u32> = register.iter().chain(lane).map(|b| b[0]).collect();
        for (i, j) in ops {
            if i == j { bases.swap(i, (i + 1) % 8) } else { bases[i] ^= bases[j] }
        }
        let take = |r: std::ops::Range<usize>| bases[r].iter().map(|&b| vec![b]).collect::<Vec<_>>();
        let other = Encoding::Linear { register: take(0..3), lane: take(3..8), warp: warp.clone(), block: block.clone() };
        let (src, dst) = (TileLayout::new(&base, &[512]).unwrap(), TileLayout::new(&other, &[512]).unwrap());
        // Without shuffles the round trip must not need the CTA either.
        let options = ConversionOptions { shuffles: ShuffleUse::Never, ..Default::default() };
        let round_trip = plan_conversion_with(&src, &dst, bits, options).unwrap();
        if let ConversionPlan::SharedMemory(p) = &round_trip {
            prop_assert_eq!(p.scope, SyncScope::Warp);
        }
        simulate(&round_trip, &src, &dst, bits);
        let options = ConversionOptions { shuffles: ShuffleUse::Always, ..Default::default() };
        let plan = plan_conversion_with(&src, &dst, bits, options).unwrap();
        prop_assert!(!matches!(plan, ConversionPlan::SharedMemory(_)), "shuffles can do any of these");
        simulate(&plan, &src, &dst, bits);
    }

    /// Layouts that share registers 0 and 1 but mix them into everything else: rounds must still agree on their elements.
    #[test]
    fn rounds_agree_on_their_elements(
        base in scrambled(4, 2), ops in prop::collection::vec((2usize..11, 0usize..11), 0..12),
    ) {
        let Encoding::Linear { register, lane, warp, block } = &base else { unreachable!() };
        let mut bases: Vec<u32> = register.iter().chain(lane).chain(warp).map(|b| b[0]).collect();
        for (i, j) in ops {
            if i != j { bases[i] ^= bases[j] }
        }
        let take = |r: std::ops::Range<usize>| bases[r].iter().map(|&b| vec![b]).collect::<Vec<_>>();
        let other =
            Encoding::Linear { register: take(0..4), lane: take(4..9), warp: take(9..11), block: block.clone() };
        let (src, dst) = (TileLayout::new(&base, &[2048]).unwrap(), TileLayout::new(&other, &[2048]).unwrap());
        let options =
            ConversionOptions { shuffles: ShuffleUse::Never, max_scratch_bytes: 1 << 10, ..Default::default() };
        let plan = plan_conversion_with(&src, &dst, 32, options).unwrap();
        simulate(&plan, &src, &dst, 32);
    }

    #[test]
    fn little_scratch_memory_means_rounds(
        (src, dst) in (common::encoding2(2), common::encoding2(2)), reps in prop::sample::select(vec![1u32, 3]),
    ) {
        let shape = [128, 64 * reps];
        let (src, dst) = (TileLayout::new(&src, &shape).unwrap(), TileLayout::new(&dst, &shape).unwrap());
        let options =
            ConversionOptions { shuffles: ShuffleUse::Never, max_scratch_bytes: 4 << 10, ..Default::default() };
        let plan = plan_conversion_with(&src, &dst, 32, options).unwrap();
        simulate(&plan, &src, &dst, 32);
    }
}

fn blocked(spt: [u32; 2], tpw: [u32; 2], wpc: [u32; 2], order: [u32; 2]) -> Encoding {
    Encoding::Blocked {
        size_per_thread: spt.into(),
        threads_per_warp: tpw.into(),
        warps_per_cta: wpc.into(),
        order: order.into(),
    }
}

fn mma(warps: [u32; 2]) -> Encoding {
    Encoding::NvidiaMma {
        version_major: 2,
        version_minor: 0,
        warps_per_cta: warps.into(),
        instr_shape: vec![16, 8],
    }
}

#[test]
fn the_same_threads_need_no_data_movement() {
    let a = blocked([1, 4], [8, 4], [4, 1], [1, 0]);
    assert_eq!(check(&a, &a, &[96, 48], 16), ConversionPlan::Noop);
    // The fragments of an accumulator, 16-bit, are those of operand A: the second dot of attention.
    let operand = Encoding::DotOperand { op_idx: 0, parent: Arc::new(mma([4, 1])), k_width: 2 };
    for cols in [64, 80, 96] {
        let plan = check(&mma([4, 1]), &operand, &[64, cols], 16);
        assert!(matches!(plan, ConversionPlan::Noop | ConversionPlan::RegisterPermute(_)), "{plan:?}");
    }
}

#[test]
fn a_transposed_slice_is_shuffled() {
    // Rows of a reduction's result, spread over lanes in another way.
    let wide = Encoding::Slice { dim: 1, parent: Arc::new(blocked([1, 4], [4, 8], [4, 1], [1, 0])) };
    let tall = Encoding::Slice { dim: 1, parent: Arc::new(blocked([1, 4], [32, 1], [4, 1], [1, 0])) };
    check(&wide, &tall, &[128], 32);
    check(&tall, &wide, &[128], 32);
    // A warp's tile of 8×4 threads against 4×8.
    let plan = check(
        &blocked([1, 1], [8, 4], [2, 2], [1, 0]),
        &blocked([2, 1], [4, 8], [2, 1], [1, 0]),
        &[8, 8],
        32,
    );
    let _ = plan;
    let plan = check(
        &blocked([1, 2], [8, 4], [4, 1], [1, 0]),
        &blocked([2, 1], [4, 8], [4, 1], [1, 0]),
        &[32, 8],
        32,
    );
    assert!(matches!(plan, ConversionPlan::WarpShuffle(_)), "{plan:?}");
}

/// What a thread has of a row in words stays in words: two halves, or four bytes, are selected and moved at once.
#[test]
fn shuffles_move_words() {
    let product = (mma([4, 1]), blocked([1, 8], [16, 2], [4, 1], [1, 0]));
    let bytes = (blocked([1, 8], [8, 4], [4, 1], [1, 0]), blocked([2, 4], [4, 8], [4, 1], [1, 0]));
    for ((src, dst), elem_bits, per_word) in
        [(&product, 8, 2), (&product, 16, 2), (&product, 32, 1), (&bytes, 8, 4), (&bytes, 16, 2)]
    {
        check(src, dst, &[64, 32], elem_bits);
        let [from, to] = [src, dst].map(|e| TileLayout::new(e, &[64, 32]).unwrap());
        let options = ConversionOptions { shuffles: ShuffleUse::Always, ..Default::default() };
        let plan = plan_conversion_with(&from, &to, elem_bits, options).unwrap();
        let ConversionPlan::WarpShuffle(plan) = plan else { panic!("{plan:?}") };
        assert_eq!(plan.per_word, per_word, "{elem_bits} bits");
        let steps = (plan.pre.len() + plan.post.len()) as u32;
        assert_eq!(plan.num_selects(elem_bits), steps * to.num_registers() / per_word);
    }
}

/// What warps store of a product of 128 by 176: eleven units of 4 KiB, of which four go through the scratch at once.
#[test]
fn units_go_through_scratch_together() {
    let product = mma([8, 1]);
    let rows = blocked([1, 8], [16, 2], [8, 1], [1, 0]);
    let [src, dst] = [&product, &rows].map(|e| TileLayout::new(e, &[128, 176]).unwrap());
    let options = ConversionOptions { stmatrix: true, ..Default::default() };
    let plan = plan_conversion_with(&src, &dst, 16, options).unwrap();
    simulate(&plan, &src, &dst, 16);
    let ConversionPlan::SharedMemory(plan) = plan else { panic!("{plan:?}") };
    assert_eq!((plan.rounds.len(), plan.scratch_bytes, plan.scope), (3, 16 << 10, SyncScope::Warp));
    assert_eq!(plan.matrices.unwrap().instructions.len(), 11);
}

/// Round trips between layouts in common use have no bank conflicts and keep 16-byte vectors where both sides have them.
#[test]
fn round_trips_have_no_conflicts() {
    let operand = |op_idx| Encoding::DotOperand { op_idx, parent: Arc::new(mma([2, 2])), k_width: 2 };
    let pairs = [
        (mma([4, 1]), blocked([1, 8], [4, 8], [4, 1], [1, 0])),
        (mma([2, 2]), blocked([1, 4], [2, 16], [4, 1], [1, 0])),
        (blocked([1, 8], [4, 8], [4, 1], [1, 0]), blocked([8, 1], [8, 4], [1, 4], [0, 1])),
        (blocked([1, 8], [4, 8], [4, 1], [1, 0]), operand(0)),
        (blocked([1, 8], [4, 8], [4, 1], [1, 0]), operand(1)),
        (blocked([1, 8], [8, 4], [2, 2], [1, 0]), blocked([1, 8], [2, 16], [4, 1], [1, 0])),
    ];
    for (src, dst) in &pairs {
        for bits in [8, 16, 32] {
            for shape in [[128, 128], [64, 64], [96, 192]] {
                let plan = check(src, dst, &shape, bits);
                let ConversionPlan::SharedMemory(plan) = plan else { continue };
                let (s, d) = (TileLayout::new(src, &shape).unwrap(), TileLayout::new(dst, &shape).unwrap());
                let store = bank_cost(&plan.store, &s, &plan.scratch, bits);
                let load = bank_cost(&plan.load, &d, &plan.scratch, bits);
                // Lanes that step over whole units (here 128 padded rows against three times 32) may conflict, twofold.
                let most = if s.unit() == d.unit() { (0, 0) } else { (0, load.ideal) };
                let conflicts = (store.conflicts(), load.conflicts());
                assert!(conflicts <= most, "{conflicts:?}: {src:?} -> {dst:?}, {bits} bits, {shape:?}");
            }
        }
    }
    let (src, dst) = &pairs[5];
    let ConversionPlan::SharedMemory(plan) = check(src, dst, &[64, 128], 16) else { panic!("crosses warps") };
    assert_eq!((plan.store.width, plan.load.width), (8, 8));
}

/// Results of 16 bits, by rows or by columns, from either kind of accumulator.
#[test]
fn accumulators_are_stored_by_stmatrix() {
    let wgmma = |n| Encoding::NvidiaMma {
        version_major: 3,
        version_minor: 0,
        warps_per_cta: vec![8, 1],
        instr_shape: vec![16, n, 16],
    };
    let by_row = blocked([1, 8], [2, 16], [8, 1], [1, 0]);
    let by_column = blocked([8, 1], [16, 2], [1, 8], [0, 1]);
    let by_rows_of_mma = blocked([1, 8], [4, 8], [4, 1], [1, 0]);
    for (src, dst, shape, trans) in [
        (wgmma(256), &by_row, [128, 256], false),
        (wgmma(256), &by_column, [128, 256], true),
        (wgmma(96), &by_row, [128, 192], false),
        (mma([2, 2]), &by_rows_of_mma, [128, 128], false),
        // In rounds.
        (wgmma(128), &by_row, [256, 256], false),
    ] {
        let options = ConversionOptions { stmatrix: true, shuffles: ShuffleUse::Never, ..Default::default() };
        let (s, d) = (TileLayout::new(&src, &shape).unwrap(), TileLayout::new(dst, &shape).unwrap());
        let plan = plan_conversion_with(&s, &d, 16, options).unwrap();
        simulate(&plan, &s, &d, 16);
        let ConversionPlan::SharedMemory(plan) = plan else { panic!("crosses warps") };
        let matrices = plan.matrices.as_ref().unwrap_or_else(|| {
            panic!(
                "{src:?} -> {dst:?}: {:?} {:?} of {}",
                plan.store.width,
                plan.load.width,
                plan.store.accesses.len()
            )
        });
        assert_eq!((matrices.count, matrices.trans, plan.load.width), (4, trans, 8));
        assert_eq!(bank_cost(&plan.load, &d, &plan.scratch, 16).conflicts(), 0);
        for (i, warp) in matrices.instructions.iter().zip((0..s.num_warps()).cycle()) {
            let rows: Vec<_> =
                (0..32).map(|l| Some(matrices.offset(i, &plan.scratch, l, warp) * 2)).collect();
            assert_eq!(wavefronts(&rows, 16).conflicts(), 0);
        }
    }
}

#[test]
fn large_conversions_go_in_rounds() {
    let (src, dst) = (mma([4, 1]), blocked([1, 4], [1, 32], [4, 1], [1, 0]));
    for shape in [[128, 256], [128, 384]] {
        let ConversionPlan::SharedMemory(plan) = check(&src, &dst, &shape, 32) else {
            panic!("crosses warps")
        };
        assert!(plan.scratch_bytes <= 64 << 10, "{} bytes", plan.scratch_bytes);
        assert!(plan.rounds.len() > 1);
    }
}

#[test]
fn shapes_must_agree() {
    let a = TileLayout::new(&mma([2, 2]), &[64, 64]).unwrap();
    let b = TileLayout::new(&mma([2, 2]), &[64, 32]).unwrap();
    assert!(plan_conversion(&a, &b, 32).unwrap_err().to_string().contains("[64, 32]"));
}
