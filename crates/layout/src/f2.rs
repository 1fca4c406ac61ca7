//! Vector spaces over F2. A vector is the bits of a `u32`, addition is XOR.
//!
//! Everything that a linear layout is asked (rank, inverse, who else holds this element) is Gaussian elimination on at
//! most a few dozen such vectors, so the whole of it fits in a cache line or two and allocates nothing.

use smallvec::SmallVec;

/// A list of vectors.
pub type Vectors = SmallVec<[u32; 16]>;

/// The space spanned by the vectors inserted so far, in echelon form, with the way back to those vectors.
///
/// Invariant: each row has a leading bit that no later row has, and a row is the XOR of the generators in its `combo`.
#[derive(Debug, Clone, Default)]
pub struct Span {
    rows: SmallVec<[Row; 16]>,
    generators: u32,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    vector: u32,
    lead: u32,
    /// Bit i set: generator i takes part.
    combo: u64,
}

impl Span {
    /// The space of only the zero vector.
    pub fn new() -> Self {
        Self::default()
    }

    /// The space spanned by `vectors`; generator `i` is `vectors[i]`.
    pub fn of(vectors: &[u32]) -> Self {
        let mut span = Self::new();
        for &v in vectors {
            span.insert(v);
        }
        span
    }

    /// Adds a generator. True when it was independent of the earlier ones; if not, no solution will ever use it.
    pub fn insert(&mut self, vector: u32) -> bool {
        let tag = 1u64 << self.generators;
        self.generators += 1;
        let (rest, combo) = self.reduce(vector);
        if rest == 0 {
            return false;
        }
        self.rows.push(Row { vector: rest, lead: 1 << (31 - rest.leading_zeros()), combo: combo ^ tag });
        true
    }

    /// What is left of `vector` modulo this space, and the generators whose XOR was taken off.
    pub fn reduce(&self, mut vector: u32) -> (u32, u64) {
        let mut combo = 0;
        for row in &self.rows {
            if vector & row.lead != 0 {
                vector ^= row.vector;
                combo ^= row.combo;
            }
        }
        (vector, combo)
    }

    /// The generators whose XOR is `vector`, as a mask; `None` outside the span.
    pub fn solve(&self, vector: u32) -> Option<u64> {
        let (rest, combo) = self.reduce(vector);
        (rest == 0).then_some(combo)
    }

    /// Whether `vector` lies in the span.
    pub fn contains(&self, vector: u32) -> bool {
        self.reduce(vector).0 == 0
    }

    /// The dimension of the space.
    pub fn rank(&self) -> usize {
        self.rows.len()
    }
}

/// A basis of the intersection of two spans.
pub fn intersection(a: &[u32], b: &[u32]) -> Vectors {
    let mut span = Span::of(a);
    let in_a = (1u64 << a.len()) - 1;
    let mut out = Vectors::new();
    for &v in b {
        let (rest, combo) = span.reduce(v);
        if rest == 0 {
            // v + (some b) = (some a): the a part lies in both spans.
            let common = combine(a, combo & in_a);
            if common != 0 && !Span::of(&out).contains(common) {
                out.push(common);
            }
        }
        span.insert(v);
    }
    out
}

/// The XOR of those `vectors` whose bit is set in `mask`.
pub fn combine(vectors: &[u32], mask: u64) -> u32 {
    let mut out = 0;
    let mut mask = mask;
    while mask != 0 {
        out ^= vectors[mask.trailing_zeros() as usize];
        mask &= mask - 1;
    }
    out
}

/// Vectors from `candidates` that extend a basis of `of` by as many dimensions as they can.
pub fn extend(of: &[u32], candidates: impl IntoIterator<Item = u32>) -> Vectors {
    let mut span = Span::of(of);
    candidates.into_iter().filter(|&v| span.insert(v)).collect()
}

/// Input combinations (masks over `columns`) that span the kernel of the matrix with these columns.
pub fn kernel(columns: &[u32]) -> Vectors {
    let mut span = Span::new();
    let mut out = Vectors::new();
    for (i, &c) in columns.iter().enumerate() {
        let (rest, combo) = span.reduce(c);
        if rest == 0 {
            out.push(combo as u32 | 1 << i);
        }
        span.insert(c);
    }
    out
}

/// The number of bits in a power of two: `log2(8) == 3`.
pub const fn log2(size: u32) -> u32 {
    debug_assert!(size.is_power_of_two());
    size.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solutions_reproduce_the_vector() {
        let generators = [0b0110, 0b0011, 0b0101, 0b1000];
        let span = Span::of(&generators);
        assert_eq!(span.rank(), 3);
        for v in 0..16 {
            match span.solve(v) {
                Some(mask) => assert_eq!(combine(&generators, mask), v),
                None => assert!(!(0..16u64).any(|m| combine(&generators, m) == v), "{v:04b} is reachable"),
            }
        }
    }

    #[test]
    fn intersection_is_the_common_part() {
        let (a, b) = ([0b0001, 0b0010, 0b1100], [0b1111, 0b0100]);
        let c = intersection(&a, &b);
        let (a, b, c) = (Span::of(&a), Span::of(&b), Span::of(&c));
        for v in 0..16 {
            assert_eq!(c.contains(v), a.contains(v) && b.contains(v), "{v:04b}");
        }
    }

    #[test]
    fn kernel_maps_to_zero() {
        let columns = [1, 2, 3, 0, 7, 4];
        let k = kernel(&columns);
        assert_eq!(k.len(), 3);
        assert!(k.iter().all(|&m| combine(&columns, u64::from(m)) == 0));
        assert_eq!(Span::of(&k).rank(), 3);
    }
}
