//! Tile layouts: every element of the tensor is held, where the layout says, and copies are told apart.

mod common;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use proptest::prelude::*;
use tilewright_layout::{Bounds, Encoding, TileLayout};

fn blocked(spt: [u32; 2], tpw: [u32; 2], wpc: [u32; 2], order: [u32; 2]) -> Encoding {
    Encoding::Blocked {
        size_per_thread: spt.into(),
        threads_per_warp: tpw.into(),
        warps_per_cta: wpc.into(),
        order: order.into(),
    }
}

fn mma(version: u32, warps: [u32; 2], instr: &[u32]) -> Encoding {
    Encoding::NvidiaMma {
        version_major: version,
        version_minor: 0,
        warps_per_cta: warps.into(),
        instr_shape: instr.into(),
    }
}

/// What holds for the layout of any encoding.
fn check(layout: &TileLayout) {
    let rank = layout.rank();
    let free = layout.free_variable_masks();
    let mut holders: HashMap<Vec<u32>, u32> = HashMap::new();
    let coords = layout.register_offsets();
    for warp in 0..layout.num_warps() {
        for lane in 0..layout.num_lanes() {
            let mut in_thread = HashSet::new();
            for register in 0..layout.num_registers() {
                let c = layout.coords(register, lane, warp);
                assert!(in_thread.insert(c.clone()), "a thread holds {c:?} twice");
                // The code generator's way to the same coordinate.
                for d in 0..rank {
                    let mut x = coords[register as usize][d];
                    let mut sum = x;
                    for (bases, index) in [(layout.lane_bases(d), lane), (layout.warp_bases(d), warp)] {
                        for (_, b) in bases.iter().enumerate().filter(|(i, _)| index >> i & 1 == 1) {
                            x ^= b;
                            sum += b;
                        }
                    }
                    assert_eq!(x, c[d]);
                    assert!(!layout.is_disjoint(d) || sum == x);
                }
                match layout.register_bounds(register) {
                    Bounds::Inside => assert!(layout.in_bounds(&c)),
                    Bounds::Outside => assert!(!layout.in_bounds(&c)),
                    Bounds::Depends { axes } => {
                        assert!((0..rank).all(|d| axes & 1 << d != 0 || c[d] < layout.shape()[d]));
                    }
                }
                if lane & free.lane == 0 && warp & free.warp == 0 && layout.in_bounds(&c) {
                    *holders.entry(c.to_vec()).or_default() += 1;
                }
            }
        }
    }
    assert_eq!(holders.len() as u32, layout.shape().iter().product::<u32>(), "some element is held nowhere");
    assert!(holders.values().all(|&n| n == 1), "an element has two owners");

    for axis in 0..rank {
        let width = layout.contig_along(axis);
        let groups = layout.vector_groups(axis, width).expect("the width is allowed");
        assert_eq!(groups.len() as u32 * width, layout.num_registers());
        for group in &groups {
            for (lane, warp) in [(0, 0), (17, 0), (31, layout.num_warps() - 1)] {
                let first = layout.coords(group[0], lane, warp);
                assert_eq!(first[axis] % width, 0);
                for (k, &r) in group.iter().enumerate() {
                    let mut expect = first.clone();
                    expect[axis] += k as u32;
                    assert_eq!(layout.coords(r, lane, warp), expect);
                    assert_eq!(
                        layout.in_bounds(&first),
                        layout.in_bounds(&expect),
                        "a vector straddles the end"
                    );
                }
            }
        }
    }
    for r in 0..layout.num_registers() {
        assert_eq!(layout.register_at(&layout.register_coord(r)), Some(r));
    }
}

proptest! {
    #![proptest_config(common::config(150))]

    #[test]
    fn every_element_has_one_owner(
        encoding in (0u32..4).prop_flat_map(common::encoding2), m in common::size(), n in common::size(),
    ) {
        prop_assume!(m * n <= 1 << 15);
        check(&TileLayout::new(&encoding, &[m, n]).unwrap());
    }

    /// Bases in any directions, overlapping ones included.
    #[test]
    fn every_element_of_a_linear_layout_has_one_owner(
        (e, size) in (0usize..4, 0usize..3).prop_flat_map(|(r, w)| (common::scrambled(r, w), Just(32u32 << (r + w)))),
        reps in 1u32..4, cut in 0u32..20,
    ) {
        check(&TileLayout::new(&e, &[size * reps - cut]).unwrap());
    }

    #[test]
    fn every_element_of_a_slice_has_one_owner(
        encoding in (0u32..4).prop_flat_map(common::encoding1), n in common::size(),
    ) {
        check(&TileLayout::new(&encoding, &[n]).unwrap());
    }

    /// A broadcast moves nothing: whoever holds an element of the result holds the element of the source that it comes from.
    #[test]
    fn a_broadcast_stays_in_its_thread(
        encoding in (0u32..4).prop_flat_map(common::encoding2), axis in 0usize..2, m in common::size(), n in common::size(),
    ) {
        prop_assume!(m * n <= 1 << 13);
        let mut shape = [m, n];
        let whole = TileLayout::new(&encoding, &shape).unwrap();
        shape[axis] = 1;
        let one = TileLayout::new(&encoding, &shape).unwrap();
        for register in 0..whole.num_registers() {
            let mut at = whole.register_coord(register);
            at[axis] = 0;
            let from = one.register_at(&at).expect("a register at the same place");
            for warp in 0..whole.num_warps() {
                for lane in 0..32 {
                    let mut expect = whole.coords(register, lane, warp);
                    expect[axis] = 0;
                    prop_assert_eq!(one.coords(from, lane, warp), expect);
                }
            }
        }
    }

    /// A reduction leaves the parent's threads in place: dropping the axis gives the slice's coordinate.
    #[test]
    fn a_slice_agrees_with_its_parent(
        parent in common::encoding2(2), dim in 0u32..2, m in common::size(), n in common::size(),
    ) {
        prop_assume!(m * n <= 1 << 14);
        let whole = TileLayout::new(&parent, &[m, n]).unwrap();
        let rest = [m, n][1 - dim as usize];
        let slice = TileLayout::new(&Encoding::Slice { dim, parent: Arc::new(parent) }, &[rest]).unwrap();
        for r in 0..whole.num_registers() {
            let constant = whole.register_coord(r)[1 - dim as usize];
            let in_slice = slice.register_at(&[constant]).expect("the slice has every constant coordinate");
            for (lane, warp) in [(0, 0), (31, 3), (5, 2)] {
                prop_assert_eq!(slice.coords(in_slice, lane, warp)[0], whole.coords(r, lane, warp)[1 - dim as usize]);
            }
        }
    }
}

#[test]
fn units_repeat_or_pad() {
    let e = Encoding::Slice { dim: 1, parent: Arc::new(blocked([1, 1], [32, 1], [1, 1], [0, 1])) };
    let unit = |n| {
        let l = TileLayout::new(&e, &[n]).unwrap();
        (l.unit()[0], l.reps()[0], l.is_padded(), l.num_registers())
    };
    assert_eq!(unit(96), (32, 3, false, 3));
    assert_eq!(unit(192), (64, 3, false, 6));
    assert_eq!(unit(1000), (1024, 1, true, 32));
    assert_eq!(unit(24), (32, 1, true, 1));
    assert_eq!(unit(8), (8, 1, false, 1));
    assert_eq!(TileLayout::new(&e, &[8]).unwrap().free_variable_masks().lane, 0b11000);
}

#[test]
fn registers_of_a_blocked_layout_follow_the_order() {
    let l = TileLayout::new(&blocked([1, 4], [8, 4], [4, 1], [1, 0]), &[64, 16]).unwrap();
    let row: Vec<_> = (0..8).map(|r| l.register_coord(r).to_vec()).collect();
    assert_eq!(row, [[0, 0], [0, 1], [0, 2], [0, 3], [32, 0], [32, 1], [32, 2], [32, 3]]);
    assert_eq!(l.coords(0, 5, 3).as_slice(), [25, 4]);
    assert_eq!(l.contig_per_thread().as_slice(), [1, 4]);
}

/// PTX ISA, "Matrix fragments for mma.m16n8k16 with floating point type": the accumulator, A and B.
#[test]
fn mma_fragments_are_those_of_the_isa() {
    let d = mma(2, [1, 1], &[16, 8]);
    let c = TileLayout::new(&d, &[16, 8]).unwrap();
    let operand = |op_idx, k_width, shape: [u32; 2]| {
        TileLayout::new(&Encoding::DotOperand { op_idx, parent: Arc::new(d.clone()), k_width }, &shape)
            .unwrap()
    };
    let (a, b) = (operand(0, 2, [16, 16]), operand(1, 2, [16, 8]));
    for lane in 0..32 {
        let (group, t) = (lane / 4, lane % 4);
        for i in 0..4 {
            let row = if i < 2 { group } else { group + 8 };
            assert_eq!(c.coords(i, lane, 0).as_slice(), [row, t * 2 + (i & 1)]);
            let row = t * 2 + (i & 1) + if i < 2 { 0 } else { 8 };
            assert_eq!(b.coords(i, lane, 0).as_slice(), [row, group]);
        }
        for i in 0..8 {
            let row = if matches!(i, 0 | 1 | 4 | 5) { group } else { group + 8 };
            let col = t * 2 + (i & 1) + if i < 4 { 0 } else { 8 };
            assert_eq!(a.coords(i, lane, 0).as_slice(), [row, col]);
        }
        // m16n8k8 .tf32: one element a register.
        let a = operand(0, 1, [16, 8]);
        for i in 0..4 {
            let expect = [group + 8 * (i & 1), t + 4 * (i >> 1)];
            assert_eq!(a.coords(i, lane, 0).as_slice(), expect);
        }
    }
}

/// PTX ISA, "Register fragments for wgmma.mma_async.m64nNk16": warp w of the group holds rows 16w…, any N.
#[test]
fn wgmma_accumulators_are_those_of_the_isa() {
    for n in [8, 64, 96, 256] {
        let l = TileLayout::new(&mma(3, [4, 1], &[16, n, 16]), &[64, n]).unwrap();
        assert_eq!(l.num_registers(), n / 2);
        assert!(!l.is_padded());
        for (warp, lane) in [(0, 0), (1, 7), (3, 31)] {
            for i in 0..n / 2 {
                let expect = [warp * 16 + lane / 4 + 8 * (i / 2 % 2), i / 4 * 8 + lane % 4 * 2 + i % 2];
                assert_eq!(l.coords(i, lane, warp).as_slice(), expect);
            }
        }
    }
}

/// Along K a dot operand is padded, never copied: a copy would be added twice.
#[test]
fn a_short_k_is_padded() {
    let parent = Arc::new(mma(2, [2, 2], &[16, 8]));
    for op_idx in 0..2 {
        let shape = if op_idx == 0 { [32, 8] } else { [8, 32] };
        let l = TileLayout::new(&Encoding::DotOperand { op_idx, parent: parent.clone(), k_width: 2 }, &shape)
            .unwrap();
        assert_eq!(l.physical(1 - op_idx as usize), 16);
        assert!(l.needs_bounds_predicate(1 - op_idx as usize));
    }
}

#[test]
fn wrong_encodings_are_errors() {
    let err = |e: Encoding, shape: &[u32]| TileLayout::new(&e, shape).unwrap_err().to_string();
    assert!(err(blocked([3, 1], [8, 4], [4, 1], [1, 0]), &[64, 16]).contains("3 is not a power of two"));
    assert!(err(blocked([1, 1], [8, 4], [4, 1], [1, 1]), &[64, 16]).contains("permutation"));
    assert!(err(blocked([1, 1], [8, 4], [4, 1], [1, 0]), &[64]).contains("rank 1"));
    assert!(err(blocked([1, 1], [8, 4], [4, 1], [1, 0]), &[0, 4]).contains("no elements"));
    assert!(err(mma(2, [2, 2], &[16, 16]), &[64, 16]).contains("[16, 8]"));
    assert!(err(mma(5, [2, 2], &[16, 16]), &[64, 16]).contains("not supported yet"));
    let b = Encoding::DotOperand { op_idx: 1, parent: Arc::new(mma(3, [4, 1], &[16, 64, 16])), k_width: 2 };
    assert!(err(b, &[16, 64]).contains("shared memory"));
    let lonely =
        Encoding::Linear { register: vec![vec![2]], lane: vec![vec![0]; 5], warp: vec![], block: vec![] };
    assert!(err(lonely, &[4]).contains("no thread"));
}
