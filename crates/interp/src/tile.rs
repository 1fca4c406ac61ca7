//! The value of a register and its compact forms.
//!
//! Most index arithmetic of a kernel is affine in the element's index, and most masks hold on a box of indices. Keeping
//! them in that form makes address computation free and turns loads and stores into copies of rows. Whatever has no
//! compact rule is [materialized](Reg::materialize) and computed element by element, with the same result.
//!
//! Invariant: an [`Affine`] value is exact, that is, no element wraps around in its type; operations that might wrap
//! are computed densely instead.

use crate::buffer::Buffer;
use crate::elem::Elem;

/// Compact forms exist for tensors of at most this rank.
pub const MAX_COMPACT_RANK: usize = 4;

/// The type of a register: shape, number of elements, element kind. Scalars have rank 0.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TileType {
    /// Extents.
    pub shape: Box<[u32]>,
    /// Their product.
    pub len: usize,
    /// The element.
    pub elem: Elem,
}

/// `base + Σ strides[d] · index[d]`; strides of dimensions of extent 1 are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Affine {
    /// The value at index 0.
    pub base: i64,
    /// The change along each dimension.
    pub strides: [i64; MAX_COMPACT_RANK],
}

/// True exactly where `lo[d] <= index[d] < hi[d]` for all dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BoxMask {
    /// First index inside.
    pub lo: [u32; MAX_COMPACT_RANK],
    /// First index after.
    pub hi: [u32; MAX_COMPACT_RANK],
}

/// How a register holds its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Repr {
    /// The same element everywhere; also every scalar. See [`Elem::canonical`] for the bits.
    Uniform(u64),
    /// An integer or address that is affine in the index.
    Affine(Affine),
    /// An `i1` that holds on a box.
    Mask(BoxMask),
    /// Elements in row-major order in the buffer.
    Dense,
}

/// A register.
pub struct Reg {
    /// The form of the value.
    pub repr: Repr,
    /// The elements, if dense.
    pub buf: Buffer,
}

impl Default for Reg {
    fn default() -> Self {
        Reg { repr: Repr::Uniform(0), buf: Buffer::default() }
    }
}

impl Affine {
    /// The same value everywhere.
    pub fn constant(base: i64) -> Self {
        Affine { base, strides: [0; MAX_COMPACT_RANK] }
    }

    /// The value, as an affine form, of a compact integer or address; `None` for dense values and masks.
    pub fn from_repr(repr: Repr) -> Option<Self> {
        match repr {
            Repr::Uniform(bits) => Some(Affine::constant(bits as i64)),
            Repr::Affine(a) => Some(a),
            _ => None,
        }
    }

    /// The smallest and largest element.
    pub fn range(&self, shape: &[u32]) -> (i128, i128) {
        let (mut min, mut max) = (i128::from(self.base), i128::from(self.base));
        for (d, &extent) in shape.iter().enumerate().take(MAX_COMPACT_RANK) {
            let change = i128::from(self.strides[d]) * i128::from(extent.max(1) - 1);
            if change < 0 { min += change } else { max += change }
        }
        (min, max)
    }

    /// The compact representation, if all elements are in the element kind's signed range.
    pub fn checked(self, ty: &TileType) -> Option<Repr> {
        if ty.shape.len() > MAX_COMPACT_RANK {
            return None;
        }
        let mut a = self;
        for (d, stride) in a.strides.iter_mut().enumerate() {
            if ty.shape.get(d).is_none_or(|&e| e == 1) {
                *stride = 0;
            }
        }
        let (lo, hi) = ty.elem.signed_range();
        let (min, max) = a.range(&ty.shape);
        if min < i128::from(lo) || max > i128::from(hi) {
            return None;
        }
        Some(if a.strides == [0; MAX_COMPACT_RANK] {
            Repr::Uniform(ty.elem.canonical(a.base as u64))
        } else {
            Repr::Affine(a)
        })
    }

    /// Element-wise sum, unless it overflows 64 bits.
    pub fn add(&self, other: &Affine) -> Option<Affine> {
        let mut r = *self;
        r.base = r.base.checked_add(other.base)?;
        for d in 0..MAX_COMPACT_RANK {
            r.strides[d] = r.strides[d].checked_add(other.strides[d])?;
        }
        Some(r)
    }

    /// Multiplied by a constant, unless it overflows 64 bits.
    pub fn scale(&self, factor: i64) -> Option<Affine> {
        let mut r = *self;
        r.base = r.base.checked_mul(factor)?;
        for d in 0..MAX_COMPACT_RANK {
            r.strides[d] = r.strides[d].checked_mul(factor)?;
        }
        Some(r)
    }
}

impl BoxMask {
    /// The whole of a shape.
    pub fn all(shape: &[u32]) -> Self {
        let mut mask = BoxMask { lo: [0; MAX_COMPACT_RANK], hi: [1; MAX_COMPACT_RANK] };
        mask.hi[..shape.len()].copy_from_slice(shape);
        mask
    }

    /// Where both hold.
    pub fn and(&self, other: &BoxMask) -> BoxMask {
        let mut r = *self;
        for d in 0..MAX_COMPACT_RANK {
            r.lo[d] = r.lo[d].max(other.lo[d]);
            r.hi[d] = r.hi[d].min(other.hi[d]).max(r.lo[d]);
        }
        r
    }

    /// The simplest representation of the same mask.
    pub fn repr(self, shape: &[u32]) -> Repr {
        if self == BoxMask::all(shape) {
            Repr::Uniform(1)
        } else if (0..MAX_COMPACT_RANK).any(|d| self.lo[d] >= self.hi[d]) {
            Repr::Uniform(0)
        } else {
            Repr::Mask(self)
        }
    }

    /// The mask of a compact representation; `None` for dense values.
    pub fn from_repr(repr: Repr, shape: &[u32]) -> Option<BoxMask> {
        match repr {
            Repr::Uniform(0) => {
                let mut none = BoxMask::all(shape);
                none.hi = [0; MAX_COMPACT_RANK];
                Some(none)
            }
            Repr::Uniform(_) => Some(BoxMask::all(shape)),
            Repr::Mask(m) => Some(m),
            _ => None,
        }
    }
}

/// Calls `f(row_start, index)` for each row (the innermost dimension) of a shape in row-major order; `index` has the
/// outer dimensions' indices and 0 for the innermost.
pub fn for_each_row<E>(
    shape: &[u32],
    mut f: impl FnMut(usize, &[u32; MAX_COMPACT_RANK]) -> Result<(), E>,
) -> Result<(), E> {
    let mut index = [0u32; MAX_COMPACT_RANK];
    let Some((&inner, outer)) = shape.split_last() else { return f(0, &index) };
    let rows: usize = outer.iter().map(|&e| e as usize).product();
    for row in 0..rows {
        f(row * inner as usize, &index)?;
        for d in (0..outer.len()).rev() {
            index[d] += 1;
            if index[d] < outer[d] {
                break;
            }
            index[d] = 0;
        }
    }
    Ok(())
}

impl Reg {
    /// Makes the value dense, if it is not. `len` is the number of elements (for scalars, of lanes).
    pub fn materialize(&mut self, ty: &TileType, len: usize) {
        match self.repr {
            Repr::Dense => {}
            Repr::Uniform(bits) => fill(&mut self.buf, ty.elem.reg_size(), 0, len, bits),
            Repr::Affine(a) => match ty.elem.reg_size() {
                1 => fill_affine(self.buf.slice_mut::<i8>(len), &a, &ty.shape, |v| v as i8),
                2 => fill_affine(self.buf.slice_mut::<i16>(len), &a, &ty.shape, |v| v as i16),
                4 => fill_affine(self.buf.slice_mut::<i32>(len), &a, &ty.shape, |v| v as i32),
                _ => fill_affine(self.buf.slice_mut::<i64>(len), &a, &ty.shape, |v| v),
            },
            Repr::Mask(m) => {
                let out = self.buf.slice_mut::<u8>(len);
                out.fill(0);
                let inner = ty.shape.len() - 1;
                let _ = for_each_row::<()>(&ty.shape, |start, index| {
                    if (0..inner).all(|d| (m.lo[d]..m.hi[d]).contains(&index[d])) {
                        out[start + m.lo[inner] as usize..start + m.hi[inner] as usize].fill(1);
                    }
                    Ok(())
                });
            }
        }
        self.repr = Repr::Dense;
    }
}

fn fill_affine<T: Copy>(out: &mut [T], a: &Affine, shape: &[u32], convert: impl Fn(i64) -> T) {
    let Some((&inner, outer)) = shape.split_last() else {
        out.fill(convert(a.base));
        return;
    };
    let step = a.strides[outer.len()];
    let _ = for_each_row::<()>(shape, |start, index| {
        let mut base = a.base;
        for (d, &i) in index.iter().enumerate().take(outer.len()) {
            base = base.wrapping_add(a.strides[d].wrapping_mul(i64::from(i)));
        }
        let row = &mut out[start..start + inner as usize];
        for (i, x) in row.iter_mut().enumerate() {
            *x = convert(base.wrapping_add(step.wrapping_mul(i as i64)));
        }
        Ok(())
    });
}

/// Writes the same element `len` times from element `start` on; makes room.
pub fn fill(buf: &mut Buffer, size: usize, start: usize, len: usize, bits: u64) {
    match size {
        1 => buf.slice_mut::<u8>(start + len)[start..].fill(bits as u8),
        2 => buf.slice_mut::<u16>(start + len)[start..].fill(bits as u16),
        4 => buf.slice_mut::<u32>(start + len)[start..].fill(bits as u32),
        _ => buf.slice_mut::<u64>(start + len)[start..].fill(bits),
    }
}
