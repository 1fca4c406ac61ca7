//! Swizzles for a scratch buffer that one layout writes and another reads.
//!
//! Over F2 the question has a closed answer (Zhou et al., "Linear Layouts", 2025, section on optimal swizzling). The bits
//! of an offset are, from the lowest: the *vector* that one access moves, the *banks* up to 128 bytes, and the *segment*,
//! which 128-byte line it is. Two lanes of a wavefront conflict when they differ in the segment but not in the banks.
//! So with
//!
//! - `V`, the vector: directions that both layouts have in their registers,
//! - `P` and `Q`: the directions of the lanes that go in one wavefront, when storing and when loading,
//!
//! the segments `S` must satisfy `S ∩ (V + P) = 0` and `S ∩ (V + Q) = 0`. Take `P = I ⊕ E`, `Q = I ⊕ F` modulo V with `I` what they
//! have in common: a complement of `V + P + Q` qualifies, and so do the sums `e_i + f_i`. Together they have
//! `dim − |V| − max(|P|, |Q|)` dimensions, and since a wavefront is at most 128 bytes that is always enough.
//!
//! For a transpose `E` runs along the rows and `F` along the columns: `e_i + f_i` is the familiar diagonal swizzle.

use smallvec::SmallVec;

use crate::f2::{Span, Vectors, extend, intersection, log2};
use crate::linear::{Dim, LinearLayout};

/// The offset (in elements) of each element of a unit, such that writing it as `src` and reading it as `dst` is free of
/// bank conflicts, with the widest vectors that both sides have.
///
/// The result maps the axes (the out dimensions of both layouts) to `Dim::Offset`.
pub fn optimal_swizzle(src: &LinearLayout, dst: &LinearLayout, elem_bits: u32) -> LinearLayout {
    let common = intersection(src.flat_bases(Dim::Register), dst.flat_bases(Dim::Register));
    swizzle(src, dst, elem_bits, &common, &[])
}

/// [`optimal_swizzle`] with given vector directions (the first ones are used, up to 128 bits), and with elements that differ
/// by a combination of `apart` sharing an offset: they are never in the buffer at once.
pub(crate) fn swizzle(
    src: &LinearLayout,
    dst: &LinearLayout,
    elem_bits: u32,
    vector: &[u32],
    apart: &[u32],
) -> LinearLayout {
    let elem_bytes = elem_bits.max(8).next_power_of_two() / 8;
    let bits = src.total_out_bits();
    let stays = bits as usize - apart.len();
    let most = log2((16 / elem_bytes).max(1)) as usize;
    let vector: Vectors = extend(apart, vector.iter().copied()).into_iter().take(most).collect();
    let wave_bits = log2((128 / (elem_bytes << vector.len()).max(4)).min(32)) as usize;
    let bank_bits = log2(128 / elem_bytes) as usize - vector.len();
    let base: Vectors = apart.iter().chain(&vector).copied().collect();

    let lanes = |l: &LinearLayout| -> Vectors {
        extend(&base, l.flat_bases(Dim::Lane).iter().copied().filter(|&b| b != 0).take(wave_bits))
    };
    let (p, q) = (lanes(src), lanes(dst));
    let join = |parts: &[&[u32]]| -> Vectors { parts.iter().flat_map(|p| p.iter().copied()).collect() };
    // Modulo the base: what both sides' wavefronts span.
    let common = intersection(&join(&[&base, &p]), &join(&[&base, &q]));
    let i = extend(&base, common);
    let with_i = join(&[&base, &i]);
    let (e, f) = (extend(&with_i, p.iter().copied()), extend(&with_i, q.iter().copied()));
    // Everything else, in ascending order: registers that follow each other land near each other.
    let c = extend(&join(&[&base, &p, &q]), (0..bits).map(|b| 1 << b));

    let num_segments = stays.saturating_sub(vector.len() + bank_bits);
    let pairs = e.iter().zip(&f).map(|(e, f)| e ^ f);
    let segments: Vectors = c.iter().rev().copied().chain(pairs).take(num_segments).collect();
    let chosen = join(&[&base, &segments]);
    let banks = extend(&chosen, join(&[&i, &e, &f, &c]));
    let mut segments = segments;
    segments.reverse();

    // Offsets count vector bits, then banks, then segments; `apart` counts nothing.
    let generators = join(&[&vector, &banks, &segments, apart]);
    let kept = vector.len() + banks.len() + segments.len();
    let span = Span::of(&generators);
    debug_assert_eq!(span.rank(), bits as usize);
    let offset = |v: u32| (span.solve(v).expect("the generators span the unit") & ((1 << kept) - 1)) as u32;
    let dims: SmallVec<[Dim; 4]> = src.out_dims().collect();
    let bases: SmallVec<[Vectors; 4]> =
        dims.iter().map(|&d| (0..src.out_bits(d)).map(|b| offset(src.out_flat(d, 1 << b))).collect()).collect();
    let ins: SmallVec<[(Dim, &[u32]); 4]> = dims.iter().zip(&bases).map(|(&d, b)| (d, b.as_slice())).collect();
    LinearLayout::from_bases(&ins, &[(Dim::Offset, 1 << kept)]).expect("offsets lie inside the buffer")
}
