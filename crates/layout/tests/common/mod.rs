//! Random encodings and shapes for the property tests.
#![allow(dead_code, reason = "each test binary uses its part")]

pub mod simulate;

use std::sync::Arc;

use proptest::prelude::*;
use tilewright_layout::Encoding;

/// So many cases. A failing one is printed; it isn't recorded in a file.
pub fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

/// A size that is odd × 2^k, from 1 to 320.
pub fn size() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => (prop::sample::select(vec![1u32, 1, 1, 3, 5, 7, 9]), 0u32..6).prop_map(|(odd, k)| odd << k),
        1 => 1u32..100,
    ]
}

/// Spreads `bits` powers of two over two dimensions.
fn split(bits: u32) -> impl Strategy<Value = Vec<u32>> {
    (0..=bits).prop_map(move |a| vec![1 << a, 1 << (bits - a)])
}

pub fn order() -> impl Strategy<Value = Vec<u32>> {
    prop::sample::select(vec![vec![0, 1], vec![1, 0]])
}

pub fn blocked(warp_bits: u32) -> impl Strategy<Value = Encoding> {
    ((0u32..4).prop_flat_map(split), split(5), split(warp_bits), order()).prop_map(
        |(size_per_thread, threads_per_warp, warps_per_cta, order)| Encoding::Blocked {
            size_per_thread,
            threads_per_warp,
            warps_per_cta,
            order,
        },
    )
}

pub fn mma_v2(warp_bits: u32) -> impl Strategy<Value = Encoding> {
    split(warp_bits).prop_map(|warps_per_cta| Encoding::NvidiaMma {
        version_major: 2,
        version_minor: 0,
        warps_per_cta,
        instr_shape: vec![16, 8],
    })
}

pub fn mma_v3(warp_bits: u32) -> impl Strategy<Value = Encoding> {
    prop::sample::select(vec![8u32, 24, 32, 80, 128]).prop_map(move |n| Encoding::NvidiaMma {
        version_major: 3,
        version_minor: 0,
        warps_per_cta: vec![1 << warp_bits, 1],
        instr_shape: vec![16, n, 16],
    })
}

pub fn dot_operand(
    parent: impl Strategy<Value = Encoding>,
    op: std::ops::Range<u32>,
) -> impl Strategy<Value = Encoding> {
    (parent, op, prop::sample::select(vec![1u32, 2, 4])).prop_map(|(parent, op_idx, k_width)| {
        let k_width = if matches!(parent, Encoding::Blocked { .. }) { 0 } else { k_width };
        Encoding::DotOperand { op_idx, parent: Arc::new(parent), k_width }
    })
}

/// Any encoding of a rank-2 tensor.
pub fn encoding2(warp_bits: u32) -> impl Strategy<Value = Encoding> {
    prop_oneof![
        4 => blocked(warp_bits),
        2 => mma_v2(warp_bits),
        1 => mma_v3(warp_bits),
        2 => dot_operand(mma_v2(warp_bits), 0..2),
        1 => dot_operand(mma_v3(warp_bits), 0..1),
        1 => dot_operand(blocked(warp_bits), 0..2),
    ]
}

/// Any encoding of a rank-1 tensor.
pub fn encoding1(warp_bits: u32) -> impl Strategy<Value = Encoding> {
    (encoding2(warp_bits), 0u32..2)
        .prop_map(|(parent, dim)| Encoding::Slice { dim, parent: Arc::new(parent) })
}

/// A random one-to-one layout of 2^n elements: registers, 32 lanes and warps in any directions.
pub fn scrambled(register_bits: usize, warp_bits: usize) -> impl Strategy<Value = Encoding> {
    let n = register_bits + 5 + warp_bits;
    prop::collection::vec((0..n, 0..n), 0..40).prop_map(move |ops| {
        let mut bases: Vec<u32> = (0..n).map(|i| 1 << i).collect();
        for (i, j) in ops {
            if i == j {
                bases.swap(i, (i + 1) % n);
            } else {
                bases[i] ^= bases[j];
            }
        }
        let take = |range: std::ops::Range<usize>| bases[range].iter().map(|&b| vec![b]).collect::<Vec<_>>();
        Encoding::Linear {
            register: take(0..register_bits),
            lane: take(register_bits..register_bits + 5),
            warp: take(register_bits + 5..n),
            block: vec![],
        }
    })
}
