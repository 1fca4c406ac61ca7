//! Swizzles for a scratch buffer that one layout writes and another reads.
//!
//! Over F2 the question has a closed answer (Zhou et al., "Linear Layouts", 2025, section on optimal swizzling). The bits
//! of an offset are, from the lowest: the *vector* that one access moves, the *banks* up to 128 bytes, and the *segment*,
//! which 128-byte line it is. Two lanes of a wavefront conflict when they differ in the segment and are equal in the banks.
//! For one side, let `U` be spanned by what one wavefront covers: the directions of its vector (at least a 4-byte word)
//! and of the lanes that go together. It is free of conflicts if the segments `S` meet it in 0 only.
//!
//! There are two such spaces, `U` when storing and `W` when loading. Write `U = I ⊕ E` and `W = I ⊕ F` with `I` what they
//! have in common. A complement of `U + W` meets both in 0, and so do the sums `e_i + f_i`. Together they have
//! `dim − max(|U|, |W|)` dimensions, and since a wavefront is at most 128 bytes that is always enough.
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

/// [`optimal_swizzle`] with given vector directions (the first ones are used, up to 128 bits; a side that has only some
/// leading ones in its registers makes shorter accesses), and with elements that differ by a combination of `apart` sharing
/// an offset: they are never in the buffer at once.
pub(crate) fn swizzle(
    src: &LinearLayout,
    dst: &LinearLayout,
    elem_bits: u32,
    vector: &[u32],
    apart: &[u32],
) -> LinearLayout {
    let elem_bytes = elem_bits.max(8).next_power_of_two() / 8;
    let bits = src.total_out_bits();
    let most = log2((16 / elem_bytes).max(1)) as usize;
    let vector: Vectors = extend(apart, vector.iter().copied()).into_iter().take(most).collect();
    let join = |parts: &[&[u32]]| -> Vectors { parts.iter().flat_map(|p| p.iter().copied()).collect() };

    // What a wavefront of one side covers.
    let wave = |side: &LinearLayout| -> Vectors {
        let registers = Span::of(&join(&[side.flat_bases(Dim::Register), apart]));
        let own = vector.iter().take_while(|&&v| registers.contains(v)).count();
        let word = vector.len().min(log2((4 / elem_bytes).max(1)) as usize);
        let access_bytes = elem_bytes << own;
        let lane_bits = log2((128 / access_bytes.max(4)).min(32)) as usize;
        let access = &vector[..own.max(word)];
        let lanes = side.flat_bases(Dim::Lane).iter().copied().filter(|&b| b != 0).take(lane_bits);
        // Lanes first: they are paired below in preference to vector directions, which would misalign the vectors of
        // whoever moves along the other half of the pair.
        let lanes = extend(&join(&[apart, access]), lanes);
        join(&[&lanes, access])
    };
    let (p, q) = (wave(src), wave(dst));
    let common = intersection(&join(&[apart, &p]), &join(&[apart, &q]));
    let i = extend(apart, common);
    let with_i = join(&[apart, &i]);
    let (e, f) = (extend(&with_i, p.iter().copied()), extend(&with_i, q.iter().copied()));
    // Everything else, in ascending order: registers that follow each other land near each other. The vector belongs to
    // the wave of the wider side, so it is not in here.
    let c = extend(&join(&[apart, &p, &q, &vector]), (0..bits).map(|b| 1 << b));

    let line_bits = log2(128 / elem_bytes) as usize;
    let num_segments = (bits as usize - apart.len()).saturating_sub(line_bits);
    let pairs = e.iter().zip(&f).map(|(e, f)| e ^ f);
    let mut segments = extend(&join(&[apart, &vector]), c.iter().rev().copied().chain(pairs));
    segments.truncate(num_segments);
    segments.reverse();
    let banks = extend(&join(&[apart, &vector, &segments]), join(&[&i, &e, &f, &c]));

    // Offsets count vector bits, then banks, then segments; `apart` counts nothing.
    let generators = join(&[&vector, &banks, &segments, apart]);
    let kept = vector.len() + banks.len() + segments.len();
    let span = Span::of(&generators);
    debug_assert_eq!(span.rank(), bits as usize);
    let offset = |v: u32| (span.solve(v).expect("the generators span the unit") & ((1 << kept) - 1)) as u32;
    let dims: SmallVec<[Dim; 4]> = src.out_dims().collect();
    let bases: SmallVec<[Vectors; 4]> = dims
        .iter()
        .map(|&d| (0..src.out_bits(d)).map(|b| offset(src.out_flat(d, 1 << b))).collect())
        .collect();
    let ins: SmallVec<[(Dim, &[u32]); 4]> =
        dims.iter().zip(&bases).map(|(&d, b)| (d, b.as_slice())).collect();
    LinearLayout::from_bases(&ins, &[(Dim::Offset, 1 << kept)]).expect("offsets lie inside the buffer")
}
