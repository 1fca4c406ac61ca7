//! Linear layouts: maps between named, power-of-two sized index spaces that are linear over F2.
//!
//! A layout sends indices of its *in* dimensions (register, lane, warp, block; or an offset) to indices of its *out*
//! dimensions (the tensor's axes; or an offset). It is linear: `f(a ^ b) = f(a) ^ f(b)`, so the images of the powers of
//! two, its *bases*, say everything. With four registers and bases `1, 2` in `axis 1` a register index is the column;
//! with lane bases `(0,4), (0,8), (1,0)…` two lane bits go on along the row and the next one steps a row down.
//! See Zhou et al., "Linear Layouts: Robust Code Generation of Efficient Tensor Computation Using F2" (2025).
//!
//! Inside, an index of several dimensions is one `u32`: the dimension listed first takes the lowest bits. The layout is
//! then one matrix over F2 whose columns are stored as `u32`. Invariants: dimensions are not repeated on one side, the
//! out bits fit in 32, and there are at most 64 in bits.

use std::fmt;

use smallvec::SmallVec;

use crate::error::{LayoutError, Result};
use crate::f2::{Span, Vectors, combine, log2};

/// A named dimension, on either side of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dim {
    /// The index of a value within a thread.
    Register,
    /// The thread within a warp.
    Lane,
    /// The warp within a CTA.
    Warp,
    /// The CTA within a cluster.
    Block,
    /// A position in a shared-memory buffer, in elements.
    Offset,
    /// A dimension of the tensor.
    Axis(u8),
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Register => f.write_str("register"),
            Dim::Lane => f.write_str("lane"),
            Dim::Warp => f.write_str("warp"),
            Dim::Block => f.write_str("block"),
            Dim::Offset => f.write_str("offset"),
            Dim::Axis(d) => write!(f, "dim{d}"),
        }
    }
}

/// Dimensions with their widths in bits, lowest first.
type Dims = SmallVec<[(Dim, u8); 4]>;

/// A linear map over F2 between named dimensions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct LinearLayout {
    ins: Dims,
    outs: Dims,
    /// The image of each in bit, in the order of `ins`.
    bases: Vectors,
}

impl LinearLayout {
    /// The layout with no dimensions, the unit of [`product`](Self::product).
    pub fn empty() -> Self {
        Self::default()
    }

    /// `size` indices of `input` that are the indices of `output`.
    ///
    /// `size` must be a power of two, here and in every other constructor.
    pub fn identity(size: u32, input: Dim, output: Dim) -> Self {
        let bits = log2(size);
        Self {
            ins: [(input, bits as u8)].into_iter().collect(),
            outs: [(output, bits as u8)].into_iter().collect(),
            bases: (0..bits).map(|b| 1 << b).collect(),
        }
    }

    /// `size` indices of `input` that all map to index 0 of `output`: copies of one element.
    pub fn broadcast(size: u32, input: Dim, output: Dim) -> Self {
        let bits = log2(size);
        Self {
            ins: [(input, bits as u8)].into_iter().collect(),
            outs: [(output, 0)].into_iter().collect(),
            bases: SmallVec::from_elem(0, bits as usize),
        }
    }

    /// A layout from flat bases: `ins` lists each in dimension with its bases (in the flat numbering of `outs`).
    ///
    /// # Errors
    /// A dimension listed twice, an out size that is not a power of two, more than 32 out bits, a basis outside them.
    pub fn from_bases(ins: &[(Dim, &[u32])], outs: &[(Dim, u32)]) -> Result<Self> {
        let mut layout = Self::default();
        for &(dim, size) in outs {
            if !size.is_power_of_two() {
                return Err(LayoutError::new(format!(
                    "linear layout: size {size} of {dim} is not a power of two"
                )));
            }
            if layout.outs.iter().any(|o| o.0 == dim) {
                return Err(LayoutError::new(format!("linear layout: out dimension {dim} is listed twice")));
            }
            layout.outs.push((dim, log2(size) as u8));
        }
        let out_bits = layout.total_out_bits();
        if out_bits > 32 {
            return Err(LayoutError::new(format!(
                "linear layout: {out_bits} bits of output, at most 32 fit"
            )));
        }
        for &(dim, bases) in ins {
            if layout.ins.iter().any(|i| i.0 == dim) {
                return Err(LayoutError::new(format!("linear layout: in dimension {dim} is listed twice")));
            }
            if let Some(b) = bases.iter().find(|&&b| u64::from(b) >= 1 << out_bits) {
                return Err(LayoutError::new(format!(
                    "linear layout: a basis of {dim} ({b}) is outside the outputs"
                )));
            }
            layout.ins.push((dim, bases.len() as u8));
            layout.bases.extend_from_slice(bases);
        }
        Ok(layout)
    }

    /// The in dimensions, lowest bits first.
    pub fn in_dims(&self) -> impl Iterator<Item = Dim> + '_ {
        self.ins.iter().map(|d| d.0)
    }

    /// The out dimensions, lowest bits first.
    pub fn out_dims(&self) -> impl Iterator<Item = Dim> + '_ {
        self.outs.iter().map(|d| d.0)
    }

    /// The number of index bits of an in dimension; 0 if absent.
    pub fn in_bits(&self, dim: Dim) -> u32 {
        bits_of(&self.ins, dim)
    }

    /// The number of index bits of an out dimension; 0 if absent.
    pub fn out_bits(&self, dim: Dim) -> u32 {
        bits_of(&self.outs, dim)
    }

    /// The size of an in dimension; 1 if absent.
    pub fn in_size(&self, dim: Dim) -> u32 {
        1 << self.in_bits(dim)
    }

    /// The size of an out dimension; 1 if absent.
    pub fn out_size(&self, dim: Dim) -> u32 {
        1 << self.out_bits(dim)
    }

    /// The bits of all in dimensions together.
    pub fn total_in_bits(&self) -> u32 {
        self.bases.len() as u32
    }

    /// The bits of all out dimensions together.
    pub fn total_out_bits(&self) -> u32 {
        self.outs.iter().map(|d| u32::from(d.1)).sum()
    }

    /// The flat bases of one in dimension (empty if absent).
    pub fn flat_bases(&self, input: Dim) -> &[u32] {
        let start = shift_of(&self.ins, input) as usize;
        &self.bases[start..start + self.in_bits(input) as usize]
    }

    /// All flat bases, in dimension after in dimension.
    pub fn all_bases(&self) -> &[u32] {
        &self.bases
    }

    /// Basis `bit` of in dimension `input`, along one out dimension.
    pub fn basis(&self, input: Dim, bit: u32, output: Dim) -> u32 {
        self.out_part(self.flat_bases(input)[bit as usize], output)
    }

    /// The bases of `input` along `output`.
    pub fn bases_along(&self, input: Dim, output: Dim) -> Vectors {
        self.flat_bases(input).iter().map(|&b| self.out_part(b, output)).collect()
    }

    /// The index of one out dimension within a flat output.
    pub fn out_part(&self, flat: u32, output: Dim) -> u32 {
        let bits = self.out_bits(output);
        if bits == 0 { 0 } else { (flat >> shift_of(&self.outs, output)) & (u32::MAX >> (32 - bits)) }
    }

    /// The flat output with index `value` in `output` and 0 elsewhere. Bits past the dimension's size are dropped.
    pub fn out_flat(&self, output: Dim, value: u32) -> u32 {
        let bits = self.out_bits(output);
        if bits == 0 { 0 } else { (value & (u32::MAX >> (32 - bits))) << shift_of(&self.outs, output) }
    }

    /// The flat output of a flat input.
    pub fn apply_flat(&self, input: u64) -> u32 {
        combine(&self.bases, input)
    }

    /// The flat output when only `input` is nonzero. Bits past the dimension's size are ignored.
    pub fn apply_one(&self, input: Dim, index: u32) -> u32 {
        let bases = self.flat_bases(input);
        combine(bases, u64::from(index) & ((1 << bases.len()) - 1))
    }

    /// The indices of the out dimensions, in their order, for given indices of in dimensions (those absent are 0).
    pub fn apply(&self, inputs: &[(Dim, u32)]) -> SmallVec<[(Dim, u32); 4]> {
        let flat = inputs.iter().fold(0, |acc, &(d, i)| acc ^ self.apply_one(d, i));
        self.outs.iter().map(|&(d, _)| (d, self.out_part(flat, d))).collect()
    }

    /// `outer ∘ self`: the outputs of this layout are the inputs of `outer`.
    ///
    /// # Errors
    /// An out dimension of this layout is larger than, or absent from, the inputs of `outer`.
    pub fn compose(&self, outer: &Self) -> Result<Self> {
        for &(dim, bits) in &self.outs {
            if u32::from(bits) > outer.in_bits(dim) {
                return Err(LayoutError::new(format!(
                    "linear layouts don't compose: {dim} has {bits} bits, the outer layout takes {}",
                    outer.in_bits(dim)
                )));
            }
        }
        let bases = self
            .bases
            .iter()
            .map(|&b| self.outs.iter().fold(0, |acc, &(d, _)| acc ^ outer.apply_one(d, self.out_part(b, d))));
        Ok(Self { ins: self.ins.clone(), outs: outer.outs.clone(), bases: bases.collect() })
    }

    /// A right inverse: `self(inverse(y)) = y` for every `y`, with the free inputs 0. An exact inverse if invertible.
    ///
    /// # Errors
    /// This layout is not surjective.
    pub fn pseudo_inverse(&self) -> Result<Self> {
        let span = Span::of(&self.bases);
        let mut bases = Vectors::new();
        if self.total_in_bits() > 32 {
            return Err(LayoutError::new("linear layout: more than 32 bits of input can't become outputs"));
        }
        for bit in 0..self.total_out_bits() {
            let Some(mask) = span.solve(1 << bit) else {
                return Err(LayoutError::new("linear layout: not surjective, so it has no inverse"));
            };
            bases.push(mask as u32);
        }
        Ok(Self { ins: self.outs.clone(), outs: self.ins.clone(), bases })
    }

    /// The layout `c` from this layout's inputs to `other`'s inputs with `other(c(x)) = self(x)`: where in `other` the
    /// element lies that this layout has at `x`.
    ///
    /// # Errors
    /// Out dimensions that differ, or elements of this layout which `other` does not have.
    pub fn invert_and_compose(&self, other: &Self) -> Result<Self> {
        let me = self.with_out_order(other)?;
        let span = Span::of(&other.bases);
        let mut bases = Vectors::new();
        for &b in &me.bases {
            let Some(mask) = span.solve(b) else {
                return Err(LayoutError::new(
                    "linear layouts: the second does not hold every element of the first",
                ));
            };
            bases.push(mask as u32);
        }
        Ok(Self { ins: self.ins.clone(), outs: other.ins.clone(), bases })
    }

    /// This layout with its out dimensions in the order of `other`'s, which must be the same ones with the same sizes.
    fn with_out_order(&self, other: &Self) -> Result<Self> {
        if self.outs.len() != other.outs.len()
            || self.outs.iter().any(|&(d, b)| other.out_bits(d) != u32::from(b))
        {
            return Err(LayoutError::new(format!("linear layouts: different outputs ({self} and {other})")));
        }
        let order: SmallVec<[Dim; 4]> = other.out_dims().collect();
        self.transpose_outs(&order)
    }

    /// The direct sum: `other` is laid outside this layout. Along dimensions that both have, `other`'s indices are the
    /// high part, on both sides.
    pub fn product(&self, other: &Self) -> Self {
        let mut ins = self.ins.clone();
        let mut outs = self.outs.clone();
        for &(d, b) in &other.ins {
            add_bits(&mut ins, d, b);
        }
        for &(d, b) in &other.outs {
            add_bits(&mut outs, d, b);
        }
        let mut out = Self { ins, outs, bases: Vectors::new() };
        for &(dim, _) in &out.ins {
            for &b in self.flat_bases(dim) {
                let flat = self.outs.iter().map(|&(d, _)| out.out_flat(d, self.out_part(b, d)));
                out.bases.push(flat.fold(0, |a, x| a ^ x));
            }
            for &b in other.flat_bases(dim) {
                let flat = other
                    .outs
                    .iter()
                    .map(|&(d, _)| out.out_flat(d, other.out_part(b, d) << self.out_bits(d)));
                out.bases.push(flat.fold(0, |a, x| a ^ x));
            }
        }
        out
    }

    /// The layout `q` with `self = divisor.product(q)`, if there is one. Dimensions keep this layout's order.
    pub fn divide_left(&self, divisor: &Self) -> Option<Self> {
        let smaller = |all: &Dims, part: &Dims| -> Option<Dims> {
            if part.iter().any(|p| !all.iter().any(|a| a.0 == p.0 && a.1 >= p.1)) {
                return None;
            }
            Some(all.iter().map(|&(d, b)| (d, b - bits_of(part, d) as u8)).collect())
        };
        let mut q = Self {
            ins: smaller(&self.ins, &divisor.ins)?,
            outs: smaller(&self.outs, &divisor.outs)?,
            bases: Vectors::new(),
        };
        for &(dim, _) in &self.ins {
            for (i, &b) in self.flat_bases(dim).iter().enumerate() {
                let parts = self.outs.iter().map(|&(d, _)| (d, self.out_part(b, d), divisor.out_bits(d)));
                if i < divisor.in_bits(dim) as usize {
                    let inner = divisor.flat_bases(dim)[i];
                    if parts.into_iter().any(|(d, part, _)| part != divisor.out_part(inner, d)) {
                        return None;
                    }
                } else {
                    let mut flat = 0;
                    for (d, part, low) in parts {
                        if part & ((1 << low) - 1) != 0 {
                            return None;
                        }
                        flat ^= q.out_flat(d, part >> low);
                    }
                    q.bases.push(flat);
                }
            }
        }
        Some(q)
    }

    /// Only these in and out dimensions (in this order): what the others add is dropped.
    pub fn sublayout(&self, ins: &[Dim], outs: &[Dim]) -> Self {
        let pick = |all: &Dims, want: &[Dim]| -> Dims {
            want.iter().filter_map(|w| all.iter().find(|a| a.0 == *w).copied()).collect()
        };
        let mut out = Self { ins: pick(&self.ins, ins), outs: pick(&self.outs, outs), bases: Vectors::new() };
        for &(dim, _) in &out.ins {
            for &b in self.flat_bases(dim) {
                let flat = out.outs.iter().fold(0, |a, &(d, _)| a ^ out.out_flat(d, self.out_part(b, d)));
                out.bases.push(flat);
            }
        }
        out
    }

    /// The rank over F2: log2 of the number of distinct outputs.
    pub fn rank(&self) -> u32 {
        Span::of(&self.bases).rank() as u32
    }

    /// Whether no two inputs share an output.
    pub fn is_injective(&self) -> bool {
        self.rank() == self.total_in_bits()
    }

    /// Whether every output is reached.
    pub fn is_surjective(&self) -> bool {
        self.rank() == self.total_out_bits()
    }

    /// Whether the layout is a bijection.
    pub fn is_invertible(&self) -> bool {
        self.is_injective() && self.is_surjective()
    }

    /// Per in dimension, the index bits that reach nothing new: setting all of them to 0 leaves exactly one input for
    /// each output. Earlier dimensions (registers) are kept in preference to later ones.
    pub fn free_variable_masks(&self) -> SmallVec<[(Dim, u32); 4]> {
        let mut span = Span::new();
        let mut bases = self.bases.iter();
        self.ins
            .iter()
            .map(|&(dim, bits)| {
                let mut mask = 0;
                for bit in 0..bits {
                    let basis = *bases.next().expect("one basis per in bit");
                    if !span.insert(basis) {
                        mask |= 1 << bit;
                    }
                }
                (dim, mask)
            })
            .collect()
    }

    /// Without the bases of `dim` that are 0: no two indices of it are mere copies.
    pub fn without_zero_bases(&self, dim: Dim) -> Self {
        let mut out = Self { ins: Dims::new(), outs: self.outs.clone(), bases: Vectors::new() };
        for &(d, _) in &self.ins {
            let before = out.bases.len();
            out.bases.extend(self.flat_bases(d).iter().copied().filter(|&b| d != dim || b != 0));
            out.ins.push((d, (out.bases.len() - before) as u8));
        }
        out
    }

    /// The same layout with its out dimensions listed in `order`, which must name each of them once.
    ///
    /// # Errors
    /// `order` is not a permutation of the out dimensions.
    pub fn transpose_outs(&self, order: &[Dim]) -> Result<Self> {
        let outs = permuted(&self.outs, order)?;
        let mut out = Self { ins: self.ins.clone(), outs, bases: Vectors::new() };
        for &b in &self.bases {
            out.bases.push(self.outs.iter().fold(0, |a, &(d, _)| a ^ out.out_flat(d, self.out_part(b, d))));
        }
        Ok(out)
    }

    /// The same layout with its in dimensions listed in `order`, which must name each of them once.
    ///
    /// # Errors
    /// `order` is not a permutation of the in dimensions.
    pub fn transpose_ins(&self, order: &[Dim]) -> Result<Self> {
        let ins = permuted(&self.ins, order)?;
        let bases = order.iter().flat_map(|&d| self.flat_bases(d).iter().copied()).collect();
        Ok(Self { ins, outs: self.outs.clone(), bases })
    }

    /// The same bits of output under other names and sizes, lowest first.
    ///
    /// # Errors
    /// The sizes don't have the same product, or a dimension is listed twice.
    pub fn reshape_outs(&self, outs: &[(Dim, u32)]) -> Result<Self> {
        Ok(Self { ins: self.ins.clone(), outs: reshaped(&self.outs, outs)?, bases: self.bases.clone() })
    }

    /// The same bits of input under other names and sizes, lowest first.
    ///
    /// # Errors
    /// The sizes don't have the same product, or a dimension is listed twice.
    pub fn reshape_ins(&self, ins: &[(Dim, u32)]) -> Result<Self> {
        Ok(Self { ins: reshaped(&self.ins, ins)?, outs: self.outs.clone(), bases: self.bases.clone() })
    }

    /// All outputs as one dimension.
    pub fn flatten_outs(&self, name: Dim) -> Self {
        let outs = [(name, self.total_out_bits() as u8)].into_iter().collect();
        Self { ins: self.ins.clone(), outs, bases: self.bases.clone() }
    }

    /// All inputs as one dimension.
    pub fn flatten_ins(&self, name: Dim) -> Self {
        let ins = [(name, self.total_in_bits() as u8)].into_iter().collect();
        Self { ins, outs: self.outs.clone(), bases: self.bases.clone() }
    }
}

fn bits_of(dims: &Dims, dim: Dim) -> u32 {
    dims.iter().find(|d| d.0 == dim).map_or(0, |d| u32::from(d.1))
}

/// The bits below `dim` in a flat index.
fn shift_of(dims: &Dims, dim: Dim) -> u32 {
    dims.iter().take_while(|d| d.0 != dim).map(|d| u32::from(d.1)).sum()
}

fn add_bits(dims: &mut Dims, dim: Dim, bits: u8) {
    match dims.iter_mut().find(|d| d.0 == dim) {
        Some(d) => d.1 += bits,
        None => dims.push((dim, bits)),
    }
}

fn permuted(dims: &Dims, order: &[Dim]) -> Result<Dims> {
    let out: Dims = order.iter().filter_map(|o| dims.iter().find(|d| d.0 == *o).copied()).collect();
    let distinct = order.iter().enumerate().all(|(i, d)| !order[..i].contains(d));
    if out.len() != dims.len() || order.len() != dims.len() || !distinct {
        return Err(LayoutError::new(
            "linear layout: the given order is not a permutation of the dimensions",
        ));
    }
    Ok(out)
}

fn reshaped(dims: &Dims, to: &[(Dim, u32)]) -> Result<Dims> {
    let mut out = Dims::new();
    for &(dim, size) in to {
        if !size.is_power_of_two() || out.iter().any(|d| d.0 == dim) {
            return Err(LayoutError::new(format!("linear layout: can't reshape to {dim} of size {size}")));
        }
        out.push((dim, log2(size) as u8));
    }
    let total = |d: &Dims| d.iter().map(|d| u32::from(d.1)).sum::<u32>();
    if total(&out) != total(dims) {
        return Err(LayoutError::new("linear layout: a reshape must keep the number of elements"));
    }
    Ok(out)
}

impl fmt::Display for LinearLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &(dim, _) in &self.ins {
            write!(f, "{dim}: [")?;
            for (i, &b) in self.flat_bases(dim).iter().enumerate() {
                f.write_str(if i == 0 { "(" } else { ", (" })?;
                for (j, &(out, _)) in self.outs.iter().enumerate() {
                    write!(f, "{}{}", if j == 0 { "" } else { "," }, self.out_part(b, out))?;
                }
                f.write_str(")")?;
            }
            f.write_str("] ")?;
        }
        f.write_str("->")?;
        for &(dim, bits) in &self.outs {
            write!(f, " {dim}:{}", 1u64 << bits)?;
        }
        Ok(())
    }
}
