//! Whatever comes in, ill-formed encodings and absurd sizes included: a layout or an error, never a panic.

mod common;

use std::sync::Arc;

use proptest::prelude::*;
use tilewright_layout::{
    Encoding, MatrixAccess, SharedAccess, SharedKind, SharedLayout, TileLayout, plan_conversion,
};

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![3 => (0u32..6).prop_map(|k| 1 << k), 1 => 0u32..5, 1 => any::<u32>(), 1 => (0u32..32).prop_map(|k| 1 << k)]
}

fn numbers() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![4 => prop::collection::vec(number(), 2), 1 => prop::collection::vec(number(), 0..4)]
}

fn order() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![4 => common::order(), 1 => prop::collection::vec(0u32..4, 0..4)]
}

fn bases() -> impl Strategy<Value = Vec<Vec<u32>>> {
    prop::collection::vec(numbers(), 0..8)
}

fn encoding() -> impl Strategy<Value = Encoding> {
    let leaf = prop_oneof![
        common::encoding2(2),
        (numbers(), numbers(), numbers(), order()).prop_map(
            |(size_per_thread, threads_per_warp, warps_per_cta, order)| {
                Encoding::Blocked { size_per_thread, threads_per_warp, warps_per_cta, order }
            }
        ),
        (0u32..5, numbers(), numbers()).prop_map(|(version_major, warps_per_cta, instr_shape)| {
            Encoding::NvidiaMma { version_major, version_minor: 0, warps_per_cta, instr_shape }
        }),
        (bases(), bases(), bases(), bases()).prop_map(|(register, lane, warp, block)| Encoding::Linear {
            register,
            lane,
            warp,
            block
        }),
        (number(), number(), number(), order())
            .prop_map(|(vec, per_phase, max_phase, order)| SharedKind::Swizzled {
                vec,
                per_phase,
                max_phase,
                order
            })
            .prop_map(Encoding::Shared),
        (number(), number(), order())
            .prop_map(|(interval, pad, order)| SharedKind::Padded { interval, pad, order })
            .prop_map(Encoding::Shared),
        (number(), any::<bool>(), number(), 0u32..4)
            .prop_map(|(swizzle_bytes, transposed, element_bits, rank)| {
                SharedKind::NvmmaShared { swizzle_bytes, transposed, element_bits, rank }
            })
            .prop_map(Encoding::Shared),
    ];
    leaf.prop_recursive(2, 4, 1, |inner| {
        prop_oneof![
            (0u32..4, inner.clone()).prop_map(|(dim, e)| Encoding::Slice { dim, parent: Arc::new(e) }),
            (0u32..3, inner, number()).prop_map(|(op_idx, e, k_width)| Encoding::DotOperand {
                op_idx,
                parent: Arc::new(e),
                k_width
            }),
        ]
    })
}

fn shape() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        4 => prop::collection::vec(1u32..65, 1..3),
        1 => prop::collection::vec(number(), 0..10),
        1 => (1u32..1 << 14).prop_map(|n| vec![n]),
    ]
}

proptest! {
    #![proptest_config(common::config(2000))]

    #[test]
    fn nothing_panics(a in encoding(), b in encoding(), s in encoding(), shape in shape(), bits in 1u32..130) {
        let (a, b) = (TileLayout::new(&a, &shape), TileLayout::new(&b, &shape));
        let s = SharedLayout::new(&s, &shape, bits);
        for tile in a.iter().chain(&b).filter(|t| t.num_registers() < 1 << 12) {
            tile.free_variable_masks();
            tile.contig_per_thread();
            tile.register_offsets();
            if let Ok(s) = &s {
                let _ = SharedAccess::new(tile, s, bits);
                MatrixAccess::new(tile, s, bits);
            }
        }
        if let (Ok(a), Ok(b)) = (&a, &b)
            && a.num_registers().max(b.num_registers()) < 1 << 12
        {
            let _ = plan_conversion(a, b, bits);
        }
    }
}
