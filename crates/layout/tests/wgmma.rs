//! Descriptors against buffers: what the hardware reads for each element of an operand is where the layout put it.

use tilewright_layout::{Encoding, SharedKind, SharedLayout, WgmmaOperand};

/// The byte that the hardware reads for element (mn, k) of a tile whose descriptor has this start address: the canonical
/// layouts of the PTX ISA ("Asynchronous warpgroup level matrix shared memory layout"), with the swizzle applied to the
/// address bits.
fn hardware_address(descriptor: u64, start: u32, mn_major: bool, elem_bytes: u32, mn: u32, k: u32) -> u32 {
    let field = |at: u32| ((descriptor >> at & 0x3fff) << 4) as u32;
    let (leading, stride) = (field(16), field(32));
    let swizzle = match descriptor >> 62 {
        1 => 128,
        2 => 64,
        3 => 32,
        _ => panic!("no swizzle"),
    };
    let address = if mn_major {
        let slab = swizzle / elem_bytes;
        start + mn % slab * elem_bytes + mn / slab * leading + k % 8 * swizzle + k / 8 * stride
    } else {
        start + k * elem_bytes + mn % 8 * swizzle + mn / 8 * stride
    };
    address ^ (address >> 7 & (swizzle / 16 - 1)) << 4
}

#[test]
fn the_hardware_reads_what_the_layout_placed() {
    let mut checked = 0;
    for swizzle_bytes in [32, 64, 128] {
        for element_bits in [8, 16, 32] {
            for transposed in [false, true] {
                for (shape, tile) in [
                    ([64, 64], 64),
                    ([128, 64], 64),
                    ([64, 128], 128),
                    ([64, 256], 256),
                    ([32, 64], 64),
                    ([64, 96], 96),
                    ([64, 192], 192),
                    ([256, 32], 256),
                    ([64, 160], 80),
                    ([192, 64], 64),
                    ([96, 64], 96),
                ] {
                    for mn_axis in [0usize, 1] {
                        let kind =
                            SharedKind::NvmmaShared { swizzle_bytes, transposed, element_bits, rank: 2 };
                        let encoding = Encoding::Shared(kind);
                        let shared = SharedLayout::new(&encoding, &shape, element_bits).unwrap();
                        let Some(operand) = WgmmaOperand::new(&encoding, &shared, mn_axis, tile) else {
                            continue;
                        };
                        let elem_bytes = element_bits / 8;
                        let k_step = 32 / elem_bytes;
                        let (mn_size, k_size) = (shape[mn_axis], shape[1 - mn_axis]);
                        for mn0 in (0..mn_size).step_by(tile.min(mn_size) as usize) {
                            for k0 in (0..k_size).step_by(k_step as usize) {
                                let Some(start) = operand.start(&shared, mn0, k0) else { continue };
                                for mn in 0..tile.min(mn_size - mn0) {
                                    for k in 0..k_step.min(k_size) {
                                        let mut at = [k0 + k, k0 + k];
                                        at[mn_axis] = mn0 + mn;
                                        if at[1 - mn_axis] >= k_size {
                                            continue;
                                        }
                                        let want = shared.offset(&at) * elem_bytes;
                                        let got = hardware_address(
                                            operand.descriptor(),
                                            start,
                                            operand.mn_major,
                                            elem_bytes,
                                            mn,
                                            k,
                                        );
                                        assert_eq!(
                                            got, want,
                                            "{shape:?} {encoding:?} mn axis {mn_axis} at {at:?}, tile {tile}"
                                        );
                                        checked += 1;
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(checked > 100_000, "only {checked} elements were checked");
}

#[test]
fn fields_of_a_descriptor() {
    let encoding = Encoding::Shared(SharedKind::NvmmaShared {
        swizzle_bytes: 128,
        transposed: false,
        element_bits: 16,
        rank: 2,
    });
    let shared = SharedLayout::new(&encoding, &[64, 256], 16).unwrap();
    let b = WgmmaOperand::new(&encoding, &shared, 1, 256).unwrap();
    assert!(b.mn_major);
    // A slab holds 64 rows of 128 bytes; 8 rows are 1024 bytes; 128-byte swizzle is mode 1.
    assert_eq!(b.descriptor(), (8192 >> 4) << 16 | (1024 >> 4) << 32 | 1 << 62);
    let a = WgmmaOperand::new(&encoding, &shared, 0, 64).unwrap();
    assert!(!a.mn_major);
    assert_eq!(a.start(&shared, 8, 16), Some(1024 + 32));
    assert_eq!(a.start(&shared, 4, 0), None);
}
