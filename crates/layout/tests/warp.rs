//! Layouts of warps: the examples of ML-Triton (Tables 3 and 5, Figure 4).

use std::sync::Arc;

use tilewright_layout::{Dim, Encoding, TileLayout, WarpAxis, WarpPart};

fn blocked(size_per_warp: &[u32], warps_per_cta: &[u32], order: &[u32]) -> Encoding {
    let [size_per_warp, warps_per_cta, order] = [size_per_warp, warps_per_cta, order].map(<[u32]>::to_vec);
    Encoding::WarpBlocked { size_per_warp, warps_per_cta, order }
}

fn operand(op_idx: u32, parent: &Encoding) -> Encoding {
    Encoding::DotOperand { op_idx, parent: Arc::new(parent.clone()), k_width: 0 }
}

fn slice(dim: u32, parent: &Encoding) -> Encoding {
    Encoding::Slice { dim, parent: Arc::new(parent.clone()) }
}

fn part(encoding: &Encoding, shape: &[u32], warps: u32) -> (Vec<u32>, Vec<(u32, u32)>, u32) {
    let part = WarpPart::new(encoding, shape, warps).unwrap_or_else(|e| panic!("{encoding:?}: {e}"));
    let axes = part.axes.iter().map(|&WarpAxis { shift, count }| (shift, count)).collect();
    (part.shape.to_vec(), axes, part.copies)
}

#[test]
fn table_3() {
    let c = blocked(&[32, 64], &[8, 4], &[1, 0]);
    assert_eq!(c.warp_blocked(&[256, 256]), Some(c.clone()));
    let a = operand(0, &c).warp_blocked(&[256, 32]);
    assert_eq!(a, Some(blocked(&[32, 32], &[8, 4], &[1, 0])));
    let b = operand(1, &c).warp_blocked(&[32, 256]);
    assert_eq!(b, Some(blocked(&[32, 64], &[8, 4], &[1, 0])));
    assert_eq!(slice(1, &c).warp_blocked(&[256]), Some(blocked(&[32], &[8], &[0])));
    assert_eq!(slice(0, &c).warp_blocked(&[256]), Some(blocked(&[64], &[4], &[0])));
    let threads = Encoding::Blocked {
        size_per_thread: vec![1],
        threads_per_warp: vec![32],
        warps_per_cta: vec![4],
        order: vec![0],
    };
    assert_eq!(threads.warp_blocked(&[128]), None);
    assert_eq!(slice(3, &c).warp_blocked(&[256]), None);
}

/// Warps 0 to 3 have the same 32×32 of A, warps 0, 4, 8, … the same 32×64 of B.
#[test]
fn figure_4() {
    let c = blocked(&[32, 64], &[8, 4], &[1, 0]);
    assert_eq!(part(&c, &[256, 256], 32), (vec![32, 64], vec![(2, 8), (0, 4)], 0));
    assert_eq!(part(&operand(0, &c), &[256, 32], 32), (vec![32, 32], vec![(2, 8), (0, 1)], 0b00011));
    assert_eq!(part(&operand(1, &c), &[32, 256], 32), (vec![32, 64], vec![(0, 1), (0, 4)], 0b11100));
    // Of a slice the linear layout knows what the equivalent of Table 3 does not: which warps have copies.
    assert_eq!(part(&slice(1, &c), &[256], 32), (vec![32], vec![(2, 8)], 0b00011));
    // What a warp has of its own part is all of it.
    assert_eq!(part(&c, &[32, 64], 32), (vec![32, 64], vec![(0, 1), (0, 1)], 0b11111));
}

#[test]
fn table_5() {
    let o = blocked(&[16, 64], &[8, 1], &[1, 0]);
    let (p, v) = (operand(0, &o), operand(1, &o));
    let (q, k, m) = (operand(0, &p), operand(1, &p), slice(1, &p));
    let shape = |e: &Encoding, shape: &[u32]| part(e, shape, 8).0;
    assert_eq!(shape(&o, &[128, 64]), [16, 64]);
    assert_eq!(shape(&v, &[32, 64]), [32, 64]);
    assert_eq!(shape(&p, &[128, 32]), [16, 32]);
    assert_eq!(shape(&k, &[64, 32]), [64, 32]);
    assert_eq!(shape(&q, &[128, 64]), [16, 64]);
    assert_eq!(shape(&m, &[128]), [16]);
}

/// Lanes come late: the linear layout is one over registers and warps.
#[test]
fn there_are_no_lanes() {
    let layout = TileLayout::new(&blocked(&[32, 64], &[8, 4], &[1, 0]), &[256, 256]).unwrap();
    assert_eq!((layout.num_lanes(), layout.num_warps(), layout.num_registers()), (1, 32, 32 * 64));
    assert_eq!(layout.linear().in_size(Dim::Lane), 1);
    assert_eq!(&layout.coords(0, 0, 6)[..], [32, 128]);
}

#[test]
fn what_is_in_pieces_is_refused() {
    let c = blocked(&[32, 64], &[8, 4], &[1, 0]);
    for shape in [[512, 256], [96, 256], [100, 256]] {
        let error = WarpPart::new(&c, &shape, 32).expect_err("not one piece each").to_string();
        assert!(error.contains("not supported yet"), "{error}");
    }
}
