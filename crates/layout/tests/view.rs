//! Views and the operations made of them: transposes, reshapes, broadcasts, windows of buffers.

mod common;

use std::sync::Arc;

use common::simulate::{simulate, simulate_as};
use proptest::prelude::*;
use tilewright_layout::{
    ConversionPlan, Encoding, MatrixAccess, Place, SharedAccess, SharedLayout, TileLayout, plan_reshape,
    plan_transpose,
};

fn flat(shape: &[u32], c: &[u32]) -> u32 {
    c.iter().zip(shape).fold(0, |a, (c, s)| a * s + c)
}

/// Blocked encodings of any rank.
fn blocked(rank: usize) -> impl Strategy<Value = Encoding> {
    let spread = move |bits: u32| {
        prop::collection::vec(0..rank, bits as usize).prop_map(move |dims| {
            let mut out = vec![1u32; rank];
            dims.iter().for_each(|&d| out[d] *= 2);
            out
        })
    };
    let order = Just((0..rank as u32).collect::<Vec<_>>()).prop_shuffle();
    (spread(2), spread(5), spread(2), order).prop_map(
        |(size_per_thread, threads_per_warp, warps_per_cta, order)| Encoding::Blocked {
            size_per_thread,
            threads_per_warp,
            warps_per_cta,
            order,
        },
    )
}

/// Pairs of shapes with the same number of elements.
fn reshapes() -> impl Strategy<Value = (Vec<u32>, Vec<u32>)> {
    prop::sample::select(vec![
        (vec![96], vec![6, 16]),
        (vec![96], vec![16, 6]),
        (vec![96], vec![3, 32]),
        (vec![96, 64], vec![96 * 64]),
        (vec![64, 96], vec![64 * 96]),
        (vec![32, 64], vec![4, 8, 64]),
        (vec![4, 8, 64], vec![32, 2, 32]),
        (vec![1, 96, 1], vec![96]),
        (vec![80], vec![1, 80, 1]),
        (vec![48, 5], vec![5, 48]),
        (vec![96, 80], vec![96, 5, 16]),
        (vec![96, 80], vec![2, 48, 80]),
        (vec![96, 80], vec![6, 16, 80]),
        (vec![128], vec![2, 2, 32]),
        (vec![16, 16, 3], vec![256, 3]),
        (vec![7], vec![1, 7]),
        (vec![1, 1], vec![1]),
    ])
}

proptest! {
    #![proptest_config(common::config(400))]

    #[test]
    fn a_transposed_layout_holds_the_transposed_elements(
        e in blocked(3), shape in prop::collection::vec(1u32..40, 3), perm in Just(vec![0u32, 1, 2]).prop_shuffle(),
    ) {
        prop_assume!(shape.iter().product::<u32>() < 1 << 13);
        let l = TileLayout::new(&e, &shape).unwrap();
        let t = l.transpose(&perm).unwrap();
        for (lane, warp) in [(0, 0), (31, 3), (9, 1)] {
            for r in 0..l.num_registers() {
                let (c, tc) = (l.coords(r, lane, warp), t.coords(r, lane, warp));
                prop_assert!((0..3).all(|d| tc[d] == c[perm[d] as usize]));
                prop_assert_eq!(l.in_bounds(&c), t.in_bounds(&tc));
            }
        }
    }

    #[test]
    fn transposes_arrive(
        (a, b) in (blocked(2), blocked(2)), m in common::size(), n in common::size(),
    ) {
        prop_assume!(m * n <= 1 << 12);
        let (src, dst) = (TileLayout::new(&a, &[m, n]).unwrap(), TileLayout::new(&b, &[n, m]).unwrap());
        let plan = plan_transpose(&src, &[1, 0], &dst, 16).unwrap();
        simulate_as(&plan, &src, &dst, 16, |c| c[1] * n + c[0], |c| c[0] * n + c[1]);
    }

    #[test]
    fn reshapes_arrive(
        ((from, to), a, b) in reshapes().prop_flat_map(|(f, t)| {
            let (a, b) = (blocked(f.len()), blocked(t.len()));
            (Just((f, t)), a, b)
        }),
        bits in prop::sample::select(vec![8u32, 16, 32]),
    ) {
        let (src, dst) = (TileLayout::new(&a, &from).unwrap(), TileLayout::new(&b, &to).unwrap());
        if let Ok(view) = src.reshape(&to) {
            for (lane, warp) in [(0, 0), (31, 3), (9, 1)] {
                for r in 0..src.num_registers() {
                    let (c, v) = (src.coords(r, lane, warp), view.coords(r, lane, warp));
                    if src.in_bounds(&c) {
                        prop_assert_eq!(flat(&from, &c), flat(&to, &v));
                    }
                }
            }
        }
        let plan = plan_reshape(&src, &dst, bits).unwrap();
        simulate_as(&plan, &src, &dst, bits, |c| flat(&to, c), |c| flat(&from, c));
    }

    #[test]
    fn a_layout_is_its_linear_encoding(e in blocked(2), m in common::size(), n in common::size()) {
        prop_assume!(m * n <= 1 << 12);
        let l = TileLayout::new(&e, &[m, n]).unwrap();
        let same = TileLayout::new(&l.to_linear_encoding(), &[m, n]).unwrap();
        prop_assert_eq!(l.linear(), same.linear());
        let plan = tilewright_layout::plan_conversion(&l, &same, 32).unwrap();
        prop_assert!(matches!(plan, ConversionPlan::Noop | ConversionPlan::RegisterPermute(_)));
        simulate(&plan, &l, &same, 32);
    }

    /// `x[:, None]` and its broadcast stay in their threads.
    #[test]
    fn broadcasts_stay_in_their_threads(parent in common::encoding2(2), m in common::size(), n in common::size()) {
        prop_assume!(m * n <= 1 << 13);
        let slice = Encoding::Slice { dim: 1, parent: Arc::new(parent.clone()) };
        let (vector, column, whole) = (
            TileLayout::new(&slice, &[m]).unwrap(),
            TileLayout::new(&parent, &[m, 1]).unwrap(),
            TileLayout::new(&parent, &[m, n]).unwrap(),
        );
        let expand = column.registers_from(&vector, &[Place::Axis(0)]).expect("expand_dims stays in the thread");
        for (lane, warp) in [(0, 0), (31, 3), (9, 1)] {
            for (r, &from) in expand.iter().enumerate() {
                let c = column.coords(r as u32, lane, warp);
                if column.in_bounds(&c) {
                    prop_assert_eq!(vector.coords(from, lane, warp)[0], c[0]);
                }
            }
        }
        // Both in one step.
        let across = whole.registers_from(&vector, &[Place::Axis(0)]).expect("a broadcast stays in the thread");
        for (lane, warp) in [(0, 0), (31, 3), (9, 1)] {
            for (r, &from) in across.iter().enumerate() {
                let c = whole.coords(r as u32, lane, warp);
                if whole.in_bounds(&c) {
                    prop_assert_eq!(vector.coords(from, lane, warp)[0], c[0]);
                }
            }
        }
    }

    #[test]
    fn windows_of_a_buffer(
        e in common::encoding2(2), order in common::order(),
        (size, count, at) in (prop::sample::select(vec![16u32, 32, 64, 48]), 1u32..4, 0u32..4),
        other in prop::sample::select(vec![32u32, 64, 96]),
    ) {
        let shape = [other, size * count];
        let tile = TileLayout::new(&e, &[other, size]).unwrap();
        let buffer = SharedLayout::new(&Encoding::swizzled_shared_for_dot(&shape, &order, 16), &shape, 16).unwrap();
        let origin = [0, size * (at % count)];
        let Ok(access) = SharedAccess::in_window(&tile, &buffer, &origin, 8) else {
            prop_assert_ne!(origin[1] % tile.unit()[1], 0);
            return Ok(());
        };
        for (lane, warp) in [(0, 0), (31, 3), (9, 1)] {
            for a in &access.accesses {
                for (k, &r) in a.registers.iter().enumerate() {
                    let c = tile.coords(r, lane, warp);
                    if tile.in_bounds(&c) {
                        let expect = buffer.offset(&[c[0], c[1] + origin[1]]);
                        prop_assert_eq!(access.offset(a, &buffer, lane, warp) + k as u32, expect);
                    }
                }
            }
        }
        if let Some(m) = MatrixAccess::in_window(&tile, &buffer, &origin, 16) {
            // Lane 0 of warp 0 addresses the row in which the first register of lane 0 lies.
            for i in &m.instructions {
                let c = tile.coords(i.registers[0], 0, 0);
                prop_assert_eq!(m.offset(i, &buffer, 0, 0), buffer.offset(&[c[0], c[1] + origin[1]]));
            }
        }
    }
}

#[test]
fn odd_factors_move_only_as_a_whole() {
    let e = |rank: usize| {
        let shape = vec![1; rank];
        let order: Vec<u32> = (0..rank as u32).rev().collect();
        let mut threads = shape.clone();
        threads[rank - 1] = 32;
        Encoding::Blocked {
            size_per_thread: shape.clone(),
            threads_per_warp: threads,
            warps_per_cta: shape,
            order,
        }
    };
    let l = TileLayout::new(&e(1), &[96]).unwrap();
    assert_eq!(l.reshape(&[6, 16]).unwrap().reps(), [3, 1]);
    assert_eq!(l.reshape(&[1, 3, 32]).unwrap().reps(), [1, 3, 1]);
    assert!(l.reshape(&[16, 6]).unwrap_err().to_string().contains("odd factor"));
    assert!(l.reshape(&[95]).unwrap_err().to_string().contains("number of elements"));
    let padded = TileLayout::new(&e(1), &[1000]).unwrap();
    assert!(padded.reshape(&[1, 1000]).is_ok());
    assert!(padded.reshape(&[125, 8]).unwrap_err().to_string().contains("padded"));
    assert!(l.transpose(&[1]).is_err());
    let two = TileLayout::new(&e(2), &[8, 96]).unwrap();
    assert!(plan_reshape(&two, &l, 32).unwrap_err().to_string().contains("[8, 96]"));
}
