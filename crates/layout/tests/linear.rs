//! The algebra of linear layouts, on random ones.

mod common;

use proptest::prelude::*;
use tilewright_layout::{Dim, LinearLayout};

const AXES: [Dim; 2] = [Dim::Axis(0), Dim::Axis(1)];

fn layout(ins: [Dim; 2], outs: [Dim; 2]) -> impl Strategy<Value = LinearLayout> {
    (0u32..4, 0u32..4).prop_flat_map(move |(a, b)| {
        let basis = 0u32..1 << (a + b);
        let bases = prop::collection::vec(basis, 0..4);
        (bases.clone(), bases).prop_map(move |(x, y)| {
            LinearLayout::from_bases(&[(ins[0], &x), (ins[1], &y)], &[(outs[0], 1 << a), (outs[1], 1 << b)])
                .unwrap()
        })
    })
}

fn distributed() -> impl Strategy<Value = LinearLayout> {
    layout([Dim::Register, Dim::Lane], AXES)
}

/// A layout whose inputs are the outputs of `inner`.
fn after(inner: &LinearLayout, outs: [Dim; 2]) -> impl Strategy<Value = LinearLayout> + use<> {
    let bits: Vec<_> = inner.out_dims().map(|d| (d, inner.out_bits(d))).collect();
    let total = bits.iter().map(|b| b.1).sum::<u32>() as usize;
    prop::collection::vec(0u32..64, total).prop_map(move |bases| {
        let (a, b) = bases.split_at(bits[0].1 as usize);
        LinearLayout::from_bases(&[(bits[0].0, a), (bits[1].0, b)], &[(outs[0], 8), (outs[1], 8)]).unwrap()
    })
}

proptest! {
    #![proptest_config(common::config(256))]

    #[test]
    fn layouts_are_linear(l in distributed(), a: u64, b: u64) {
        let mask = (1 << l.total_in_bits()) - 1;
        let (a, b) = (a & mask, b & mask);
        prop_assert_eq!(l.apply_flat(a ^ b), l.apply_flat(a) ^ l.apply_flat(b));
    }

    #[test]
    fn composing_is_applying_twice_and_associates(
        (f, g, h) in distributed().prop_flat_map(|f| {
            let g = after(&f, [Dim::Offset, Dim::Block]);
            (Just(f), g)
        }).prop_flat_map(|(f, g)| { let h = after(&g, [Dim::Warp, Dim::Axis(5)]); (Just(f), Just(g), h) }),
    ) {
        let fg = f.compose(&g).unwrap();
        for x in 0..1u64 << f.total_in_bits() {
            prop_assert_eq!(fg.apply_flat(x), g.apply_flat(u64::from(f.apply_flat(x))));
        }
        prop_assert_eq!(fg.compose(&h).unwrap(), f.compose(&g.compose(&h).unwrap()).unwrap());
    }

    #[test]
    fn a_pseudo_inverse_is_a_right_inverse(l in distributed()) {
        match l.pseudo_inverse() {
            Ok(inv) => {
                prop_assert!(l.is_surjective());
                for y in 0..1u32 << l.total_out_bits() {
                    prop_assert_eq!(l.apply_flat(u64::from(inv.apply_flat(u64::from(y)))), y);
                }
                if l.is_invertible() {
                    prop_assert_eq!(inv.pseudo_inverse().unwrap(), l);
                }
            }
            Err(_) => prop_assert!(!l.is_surjective()),
        }
    }

    #[test]
    fn invert_and_compose_finds_the_same_element((a, b) in distributed().prop_flat_map(|b| {
        let total = 1 << b.total_in_bits();
        (Just(b.clone()), prop::collection::vec(0u64..total, 3)).prop_map(|(b, picks)| {
            let bases: Vec<u32> = picks.iter().map(|&p| b.apply_flat(p)).collect();
            let outs: Vec<_> = b.out_dims().map(|d| (d, b.out_size(d))).collect();
            (LinearLayout::from_bases(&[(Dim::Warp, &bases)], &outs).unwrap(), b)
        })
    })) {
        let c = a.invert_and_compose(&b).unwrap();
        for x in 0..8 {
            prop_assert_eq!(b.apply_flat(u64::from(c.apply_flat(x))), a.apply_flat(x));
        }
    }

    #[test]
    fn dividing_undoes_a_product(a in distributed(), b in distributed()) {
        let p = a.product(&b);
        prop_assert_eq!(p.total_in_bits(), a.total_in_bits() + b.total_in_bits());
        prop_assert_eq!(p.rank(), a.rank() + b.rank());
        prop_assert_eq!(p.divide_left(&a), Some(b));
    }

    #[test]
    fn clearing_the_free_bits_leaves_one_input_each(l in distributed()) {
        let masks = l.free_variable_masks();
        let kept: Vec<_> = (0..l.in_size(Dim::Register))
            .flat_map(|r| (0..l.in_size(Dim::Lane)).map(move |t| (r, t)))
            .filter(|&(r, t)| r & masks[0].1 == 0 && t & masks[1].1 == 0)
            .map(|(r, t)| l.apply_one(Dim::Register, r) ^ l.apply_one(Dim::Lane, t))
            .collect();
        let mut all: Vec<_> = (0..1u64 << l.total_in_bits()).map(|x| l.apply_flat(x)).collect();
        all.sort_unstable();
        all.dedup();
        let mut sorted = kept;
        sorted.sort_unstable();
        prop_assert_eq!(sorted, all);
    }

    #[test]
    fn transposing_renames_nothing(l in distributed()) {
        let t = l.transpose_outs(&[AXES[1], AXES[0]]).unwrap().transpose_ins(&[Dim::Lane, Dim::Register]).unwrap();
        for (r, lane) in [(1, 0), (3, 1), (0, 7), (7, 5)] {
            let (a, b) = (l.apply(&[(Dim::Register, r), (Dim::Lane, lane)]), t.apply(&[(Dim::Register, r), (Dim::Lane, lane)]));
            prop_assert_eq!((a[0], a[1]), (b[1], b[0]));
        }
        prop_assert_eq!(t.transpose_outs(&AXES).unwrap().transpose_ins(&[Dim::Register, Dim::Lane]).unwrap(), l);
    }
}

#[test]
fn reshapes_keep_the_bits() {
    let l = LinearLayout::identity(8, Dim::Register, AXES[1]).product(&LinearLayout::identity(
        4,
        Dim::Lane,
        AXES[0],
    ));
    assert_eq!(l.to_string(), "register: [(1,0), (2,0), (4,0)] lane: [(0,1), (0,2)] -> dim1:8 dim0:4");
    let r = l.reshape_outs(&[(AXES[1], 2), (AXES[0], 16)]).unwrap();
    assert_eq!(r.apply(&[(Dim::Register, 5), (Dim::Lane, 1)]).as_slice(), [(AXES[1], 1), (AXES[0], 6)]);
    assert!(l.reshape_outs(&[(AXES[1], 2)]).is_err());
    assert_eq!(l.flatten_outs(Dim::Offset).out_size(Dim::Offset), 32);
    assert_eq!(l.flatten_ins(Dim::Offset).in_size(Dim::Offset), 32);
}

#[test]
fn what_does_not_fit_is_an_error() {
    assert!(LinearLayout::from_bases(&[(Dim::Lane, &[4])], &[(AXES[0], 4)]).is_err());
    assert!(LinearLayout::from_bases(&[], &[(AXES[0], 3)]).is_err());
    assert!(LinearLayout::from_bases(&[], &[(AXES[0], 2), (AXES[0], 2)]).is_err());
    let wide = LinearLayout::identity(8, Dim::Lane, AXES[0]);
    assert!(wide.compose(&LinearLayout::identity(4, AXES[0], Dim::Offset)).is_err());
    assert!(wide.transpose_outs(&[AXES[1]]).is_err());
    assert!(LinearLayout::broadcast(4, Dim::Lane, AXES[0]).product(&wide).pseudo_inverse().is_ok());
}
