//! Shared layouts: each element has its own place, and the planned accesses go there.

mod common;

use std::collections::HashSet;

use proptest::prelude::*;
use tilewright_layout::{
    Encoding, SharedAccess, SharedKind, SharedLayout, TileLayout, bank_cost, wavefronts,
};

fn power(max: u32) -> impl Strategy<Value = u32> {
    (0..=max).prop_map(|k| 1 << k)
}

fn shared(elem_bits: u32) -> impl Strategy<Value = Encoding> {
    let swizzled =
        (power(3), power(2), power(3), common::order()).prop_map(|(vec, per_phase, max_phase, order)| {
            SharedKind::Swizzled { vec, per_phase, max_phase, order }
        });
    let padded = (3u32..7, power(3), common::order()).prop_map(|(interval, pad, order)| SharedKind::Padded {
        interval: 1 << interval,
        pad,
        order,
    });
    let nvmma = (prop::sample::select(vec![0u32, 32, 64, 128]), any::<bool>()).prop_map(
        move |(swizzle_bytes, transposed)| SharedKind::NvmmaShared {
            swizzle_bytes,
            transposed,
            element_bits: elem_bits,
            rank: 2,
        },
    );
    prop_oneof![swizzled, padded, nvmma].prop_map(Encoding::Shared)
}

proptest! {
    #![proptest_config(common::config(200))]

    #[test]
    fn each_element_has_its_own_place(
        (bits, encoding) in prop::sample::select(vec![8u32, 16, 32]).prop_flat_map(|b| (Just(b), shared(b))),
        stages in 1u32..4, m in common::size(), n in common::size(),
    ) {
        prop_assume!(m * n <= 1 << 14);
        let layout = SharedLayout::new(&encoding, &[stages, m, n], bits).unwrap();
        let one = SharedLayout::new(&encoding, &[m, n], bits).unwrap();
        let mut seen = HashSet::new();
        for s in 0..stages {
            for i in 0..m {
                for j in 0..n {
                    let offset = layout.offset(&[s, i, j]);
                    prop_assert!(offset < layout.allocation_elems());
                    prop_assert!(seen.insert(offset), "two elements at offset {}", offset);
                    if layout.padding().is_none() {
                        prop_assert_eq!(offset, s * one.allocation_elems() + one.offset(&[i, j]), "a stage is a buffer");
                    }
                }
            }
        }
    }

    #[test]
    fn accesses_go_where_the_element_is(
        (bits, encoding) in prop::sample::select(vec![8u32, 16, 32]).prop_flat_map(|b| (Just(b), shared(b))),
        tile in common::encoding2(2), m in common::size(), n in common::size(),
    ) {
        prop_assume!(m * n <= 1 << 13);
        let tile = TileLayout::new(&tile, &[m, n]).unwrap();
        let shared = SharedLayout::new(&encoding, &[m, n], bits).unwrap();
        let access = SharedAccess::new(&tile, &shared, bits).unwrap();
        prop_assert!(access.width * bits <= 128);
        let moved: HashSet<_> = access.accesses.iter().flat_map(|a| &a.registers).collect();
        prop_assert_eq!(moved.len() as u32, tile.num_registers());
        prop_assert_eq!(access.accesses.len() as u32 * access.width, tile.num_registers());
        for (lane, warp) in [(0, 0), (31, 3), (5, 1), (18, 2)] {
            for a in &access.accesses {
                let base = access.offset(a, &shared, lane, warp);
                prop_assert_eq!(base % access.width, 0, "misaligned");
                let thread = access.thread.at(lane, warp);
                if access.is_immediate(a) {
                    prop_assert_eq!(base, shared.pad(thread.value() + a.offset.value()));
                }
                let first = tile.in_bounds(&tile.coords(a.registers[0], lane, warp));
                for (k, &r) in a.registers.iter().enumerate() {
                    let c = tile.coords(r, lane, warp);
                    prop_assert_eq!(tile.in_bounds(&c), first, "a vector straddles the end");
                    if tile.in_bounds(&c) {
                        prop_assert_eq!(base + k as u32, shared.offset(&c));
                    }
                    if !access.needs_predicate {
                        prop_assert!(base + (k as u32) < shared.allocation_elems());
                    }
                }
            }
        }
    }
}

fn swizzled(vec: u32, per_phase: u32, max_phase: u32) -> Encoding {
    Encoding::Shared(SharedKind::Swizzled { vec, per_phase, max_phase, order: vec![1, 0] })
}

#[test]
fn rows_are_swizzled_by_their_phase() {
    let l = SharedLayout::new(&swizzled(8, 1, 8), &[16, 64], 16).unwrap();
    for r in 0..16 {
        for c in 0..64 {
            assert_eq!(l.offset(&[r, c]), r * 64 + ((c / 8) ^ (r % 8)) * 8 + c % 8);
        }
    }
}

/// PTX ISA, "Swizzling modes": in the 128-byte mode, 16-byte chunk c of row r lies at chunk c ^ (r mod 8).
#[test]
fn nvmma_swizzles_are_those_of_the_isa() {
    let e = |bytes| {
        Encoding::Shared(SharedKind::NvmmaShared {
            swizzle_bytes: bytes,
            transposed: false,
            element_bits: 16,
            rank: 2,
        })
    };
    for (bytes, rows) in [(32u32, 48), (64, 96), (128, 128), (128, 72)] {
        let cols = bytes / 2;
        let l = SharedLayout::new(&e(bytes), &[rows, cols * 3], 16).unwrap();
        for r in 0..rows {
            for c in 0..cols * 3 {
                let linear = (c / cols * rows + r) * bytes + c % cols * 2;
                // The hardware XORs address bits 4… with bits 7….
                let address = linear ^ ((linear >> 7 & (bytes / 16 - 1)) << 4);
                assert_eq!(l.offset(&[r, c]) * 2, address, "{bytes}-byte swizzle, row {r}, column {c}");
            }
        }
        assert_eq!(l.alignment_bytes(), bytes * 8);
    }
}

#[test]
fn odd_shapes_cost_little() {
    let elems = |shape: &[u32]| SharedLayout::new(&swizzled(8, 1, 8), shape, 16).unwrap().allocation_elems();
    assert_eq!(elems(&[96, 80]), 96 * 80);
    assert_eq!(elems(&[3, 80, 48]), 3 * 80 * 48);
    assert_eq!(elems(&[4, 1000]), 4 * 1024);
}

#[test]
fn banks_count_as_the_hardware_does() {
    let cost = |f: &dyn Fn(u32) -> u32, bytes| {
        let addresses: Vec<_> = (0..32).map(|l| Some(f(l))).collect();
        let c = wavefronts(&addresses, bytes);
        (c.wavefronts, c.ideal)
    };
    assert_eq!(cost(&|l| l * 4, 4), (1, 1));
    assert_eq!(cost(&|_| 64, 4), (1, 1), "a broadcast");
    assert_eq!(cost(&|l| l * 2, 2), (1, 1), "halves of a word are one access");
    assert_eq!(cost(&|l| l * 8, 4), (2, 1));
    assert_eq!(cost(&|l| l * 128, 4), (32, 1));
    assert_eq!(cost(&|l| l * 16, 16), (4, 4));
    assert_eq!(cost(&|l| l * 64, 16), (16, 4), "four lanes of each quarter in one bank");
    assert_eq!(cost(&|l| l * 8, 8), (2, 2));
}

/// Rows of 192 bytes (three units of 64) written row-wise and read column-wise, 16 bytes a lane: the swizzle of a unit
/// keeps both free of conflicts.
#[test]
fn an_odd_row_length_has_no_conflicts() {
    let shared = SharedLayout::new(&swizzled(8, 2, 4), &[64, 96], 16).unwrap();
    for threads in [vec![8, 4], vec![32, 1]] {
        let e = Encoding::Blocked {
            size_per_thread: vec![1, 8],
            threads_per_warp: threads,
            warps_per_cta: vec![1, 1],
            order: vec![1, 0],
        };
        let tile = TileLayout::new(&e, &[64, 96]).unwrap();
        let access = SharedAccess::new(&tile, &shared, 16).unwrap();
        assert_eq!(access.width, 8);
        assert_eq!(bank_cost(&access, &tile, &shared, 16).conflicts(), 0);
    }
}

#[test]
fn wrong_buffers_are_errors() {
    let err = |e: Encoding, shape: &[u32]| SharedLayout::new(&e, shape, 16).unwrap_err().to_string();
    assert!(err(swizzled(8, 3, 8), &[64, 64]).contains("powers of two"));
    assert!(err(swizzled(8, 1, 8), &[64]).contains("rank 2"));
    assert!(err(swizzled(8, 1, 8), &[0, 64]).contains("[0, 64]"));
    let nvmma = SharedKind::NvmmaShared { swizzle_bytes: 128, transposed: false, element_bits: 8, rank: 2 };
    assert!(err(Encoding::Shared(nvmma), &[64, 64]).contains("8-bit"));
}

#[test]
fn rows_that_are_written_for_their_banks_stay_so() {
    let plain = SharedKind::Swizzled { vec: 1, per_phase: 1, max_phase: 1, order: vec![1, 0] };
    for (columns, elements) in [(33, 32 * 33), (68, 32 * 68), (1000, 32 * 1024)] {
        let layout = SharedLayout::new(&Encoding::Shared(plain.clone()), &[32, columns], 32).unwrap();
        assert_eq!(layout.allocation_elems(), elements, "rows of {columns}");
    }
}

#[test]
fn a_part_begins_where_its_elements_lie_as_far_behind() {
    let rows = SharedLayout::row_major(&[12, 20]);
    assert_eq!(rows.part_begin(&[3, 5], &[4, 7]), Some(3 * 20 + 5));
    let kind = SharedKind::NvmmaShared { swizzle_bytes: 128, transposed: false, element_bits: 16, rank: 2 };
    let swizzled = SharedLayout::new(&Encoding::Shared(kind), &[32, 64], 16).unwrap();
    assert_eq!(swizzled.part_begin(&[8, 0], &[16, 64]), Some(8 * 64));
    assert_eq!(swizzled.part_begin(&[4, 0], &[4, 64]), None, "a swizzle is of 8 rows");
    assert_eq!(swizzled.part_begin(&[0, 32], &[8, 32]), None, "and of 128 bytes");
    assert_eq!(rows.tile_begins(&[0, 10], &[12, 10], &[6, 5]), Some(vec![10, 15, 130, 135]));
    assert_eq!(swizzled.tile_begins(&[0, 0], &[32, 64], &[32, 16]), None);
}
