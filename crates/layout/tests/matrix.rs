//! `ldmatrix` plans, carried out as the PTX ISA defines the instruction.

mod common;

use std::sync::Arc;

use proptest::prelude::*;
use tilewright_layout::{Encoding, MatrixAccess, SharedKind, SharedLayout, TileLayout, wavefronts};

fn operand(op_idx: u32, k_width: u32, warps: [u32; 2]) -> Encoding {
    Encoding::DotOperand { op_idx, parent: Arc::new(mma(warps)), k_width }
}

fn mma(warps: [u32; 2]) -> Encoding {
    Encoding::NvidiaMma {
        version_major: 2,
        version_minor: 0,
        warps_per_cta: warps.into(),
        instr_shape: vec![16, 8],
    }
}

/// Runs the plan byte by byte and checks that every register gets its element; returns (wavefronts, ideal).
fn run(plan: &MatrixAccess, tile: &TileLayout, shared: &SharedLayout, elem_bits: u32) -> (u64, u64) {
    let bytes = elem_bits / 8;
    let mut cost = (0, 0);
    let number = |c: &[u32]| c.iter().zip(tile.shape()).fold(0, |a, (c, s)| a * s + c);
    // Which element each byte of memory belongs to, and which of its bytes it is.
    let mut memory = vec![None; (shared.allocation_elems() * bytes) as usize];
    let total: u32 = tile.shape().iter().product();
    for i in 0..total {
        let mut rest = i;
        let mut c = vec![0; tile.rank()];
        for d in (0..tile.rank()).rev() {
            c[d] = rest % tile.shape()[d];
            rest /= tile.shape()[d];
        }
        for b in 0..bytes {
            memory[(shared.offset(&c) * bytes + b) as usize] = Some((i, b));
        }
    }
    let mut moved = vec![false; tile.num_registers() as usize];
    for warp in 0..tile.num_warps() {
        for instruction in &plan.instructions {
            let rows: Vec<u32> = (0..32).map(|l| plan.offset(instruction, shared, l, warp) * bytes).collect();
            for lane in 0..32u32 {
                for m in 0..plan.count {
                    // The four bytes that the instruction delivers.
                    let word: Vec<_> = (0..4)
                        .map(|b| {
                            let (row, byte) = if plan.trans {
                                (2 * (lane % 4) + b / 2, lane / 4 * 2 + b % 2)
                            } else {
                                (lane / 4, lane % 4 * 4 + b)
                            };
                            memory[(rows[(8 * m + row) as usize] + byte) as usize]
                        })
                        .collect();
                    for e in 0..plan.pack {
                        let r = instruction.registers[(m * plan.pack + e) as usize];
                        moved[r as usize] = true;
                        let c = tile.coords(r, lane, warp);
                        if tile.in_bounds(&c) {
                            for b in 0..bytes {
                                assert_eq!(
                                    word[(e * bytes + b) as usize],
                                    Some((number(&c), b)),
                                    "register {r} of lane {lane}"
                                );
                            }
                        }
                    }
                }
            }
            let addresses: Vec<_> = rows[..(8 * plan.count) as usize].iter().map(|&a| Some(a)).collect();
            assert!(rows.iter().all(|a| a % 16 == 0));
            let one = wavefronts(&addresses, 16);
            cost = (cost.0 + one.wavefronts, cost.1 + one.ideal);
        }
    }
    assert!(moved.iter().all(|&m| m), "a register is never loaded");
    cost
}

fn plan(tile: &Encoding, order: [u32; 2], shape: &[u32], elem_bits: u32) -> Option<MatrixAccess> {
    let tile = TileLayout::new(tile, shape).unwrap();
    let shared =
        SharedLayout::new(&Encoding::swizzled_shared_for_dot(shape, &order, elem_bits), shape, elem_bits)
            .unwrap();
    let plan = MatrixAccess::new(&tile, &shared, elem_bits)?;
    let (waves, ideal) = run(&plan, &tile, &shared, elem_bits);
    assert_eq!(waves, ideal, "bank conflicts");
    Some(plan)
}

#[test]
fn both_operands_load_either_way() {
    for warps in [[2, 2], [4, 1], [1, 4]] {
        for (m, n, k) in [(64, 64, 32), (128, 128, 64), (96, 80, 48), (64, 96, 16), (64, 64, 80)] {
            for (op_idx, shape) in [(0, [m, k]), (1, [k, n])] {
                let k_order = if op_idx == 0 { [1, 0] } else { [0, 1] };
                let other = [k_order[1], k_order[0]];
                let tile = TileLayout::new(&operand(op_idx, 2, warps), &shape).unwrap();
                if tile.is_padded() {
                    continue;
                }
                let straight = plan(&operand(op_idx, 2, warps), k_order, &shape, 16).expect("K contiguous");
                assert!(!straight.trans);
                let trans = plan(&operand(op_idx, 2, warps), other, &shape, 16).expect("K strided");
                assert!(trans.trans);
                if op_idx == 0 {
                    assert_eq!((straight.count, trans.count), (4, 4));
                }
                // tf32 and int8 have K contiguous or not at all.
                assert!(plan(&operand(op_idx, 1, warps), k_order, &shape, 32).is_some());
                assert!(plan(&operand(op_idx, 1, warps), other, &shape, 32).is_none());
                let tile = TileLayout::new(&operand(op_idx, 4, warps), &shape).unwrap();
                assert_eq!(plan(&operand(op_idx, 4, warps), k_order, &shape, 8).is_some(), !tile.is_padded());
            }
        }
    }
}

#[test]
fn an_accumulator_is_stored_by_stmatrix() {
    for order in [[1, 0], [0, 1]] {
        let p = plan(&mma([4, 1]), order, &[64, 128], 16).expect("16-bit accumulators fit");
        assert_eq!((p.count, p.trans), (4, order == [0, 1]));
    }
    assert!(plan(&mma([4, 1]), [1, 0], &[64, 128], 32).is_none(), "two columns a lane are 8 bytes, not 4");
}

proptest! {
    #![proptest_config(common::config(300))]

    /// Whatever the buffer's encoding, a plan that is made is right.
    #[test]
    fn plans_are_right(
        op_idx in 0u32..2, warps in prop::sample::select(vec![[2, 2], [4, 1], [1, 2]]),
        (bits, k_width) in prop::sample::select(vec![(8u32, 4u32), (16, 2), (16, 4), (32, 1)]),
        kind in prop_oneof![
            ((0u32..5), (0u32..3), (0u32..4), common::order()).prop_map(|(v, p, m, order)| SharedKind::Swizzled {
                vec: 1 << v, per_phase: 1 << p, max_phase: 1 << m, order,
            }),
            ((3u32..7), (0u32..4), common::order())
                .prop_map(|(i, p, order)| SharedKind::Padded { interval: 1 << i, pad: 1 << p, order }),
            (prop::sample::select(vec![0u32, 32, 64, 128]), any::<bool>()).prop_map(|(swizzle_bytes, transposed)| {
                SharedKind::NvmmaShared { swizzle_bytes, transposed, element_bits: 0, rank: 2 }
            }),
        ],
        m in common::size(), n in common::size(),
    ) {
        prop_assume!(m * n <= 1 << 14);
        let kind = match kind {
            SharedKind::NvmmaShared { swizzle_bytes, transposed, rank, .. } => {
                SharedKind::NvmmaShared { swizzle_bytes, transposed, element_bits: bits, rank }
            }
            other => other,
        };
        let tile = TileLayout::new(&operand(op_idx, k_width, warps), &[m, n]).unwrap();
        let shared = SharedLayout::new(&Encoding::Shared(kind), &[m, n], bits).unwrap();
        if let Some(plan) = MatrixAccess::new(&tile, &shared, bits) {
            run(&plan, &tile, &shared, bits);
        }
    }
}
