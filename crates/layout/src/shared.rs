//! Shared-memory layouts: at which offset of a buffer an element lies.
//!
//! As for [tiles](crate::TileLayout), sizes need not be powers of two. An offset has a linear part, in which the swizzle
//! happens and which the low bits of the coordinate make, and an affine one:
//!
//! ```text
//! offset(c) = linear(c mod unit) + Σ_d (c[d] / step[d]) · stride[d]        (then the padding, if the kind has any)
//! ```
//!
//! If the rows of a buffer are a power of two long all of it is linear. If they are odd × 2^k long, the linear part is one
//! 2^k piece of a row, swizzled by the low bits of the row number, and pieces and rows follow each other affinely. In a
//! 128×96 buffer of 16-bit elements each 64-byte third of a row is swizzled as a 64-byte row would be; as an odd factor only
//! permutes the banks that rows begin at, it is as free of conflicts.
//!
//! Invariants: units and steps are powers of two, and every stride is a multiple of the range of the linear part, so that
//! the two summands share no bit.

use smallvec::{SmallVec, smallvec};

use crate::distribute::{Coord, MAX_RANK, check_order, num_elements};
use crate::encoding::{Encoding, SharedKind};
use crate::error::{LayoutError, Result};
use crate::f2::{Vectors, log2};
use crate::linear::{Dim, LinearLayout};

/// Elements inserted into a buffer at regular distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Padding {
    /// Elements between two insertions, a power of two.
    pub interval: u32,
    /// Elements inserted, a power of two.
    pub pad: u32,
}

/// The layout of a buffer in shared memory. Offsets are in elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SharedLayout {
    shape: Coord,
    physical: Coord,
    unit: Coord,
    steps: Coord,
    strides: Coord,
    /// The steps along each axis behind which the first ones have their places again.
    held: Coord,
    linear: LinearLayout,
    padding: Option<Padding>,
    alignment_bytes: u32,
}

/// The unit of a size: its power-of-two part, or a larger power of two when rounding up to it adds at most a sixteenth
/// (1000 = 125 × 8 is better kept as 1024).
pub(crate) fn roomy_unit(size: u32) -> u32 {
    let mut unit = 1 << size.trailing_zeros();
    let mut best = unit;
    while unit < size {
        unit *= 2;
        if size.next_multiple_of(unit) <= size + size / 16 {
            best = unit;
        }
    }
    best
}

/// The unit of a row whose elements stay in their order. A size just above a power of two (33, 132) is kept: that is how rows are written that
/// are to begin in different banks.
fn unswizzled_unit(size: u32) -> u32 {
    let below = 1 << size.ilog2();
    if size - below <= below / 16 { 1 << size.trailing_zeros() } else { roomy_unit(size) }
}

impl SharedLayout {
    /// The layout of a buffer of `shape`.
    ///
    /// The encoding may have fewer dimensions than the buffer: the leading ones then count whole buffers (the stages of a
    /// pipeline), one behind the other.
    ///
    /// # Errors
    /// An ill-formed encoding, one that isn't a shared one, a size of 0, a rank below the encoding's.
    pub fn new(encoding: &Encoding, shape: &[u32], elem_bits: u32) -> Result<Self> {
        let Encoding::Shared(kind) = encoding else {
            return Err(LayoutError::new("not a shared-memory encoding: a tensor is laid out by TileLayout"));
        };
        if shape.contains(&0) || shape.len() > MAX_RANK {
            return Err(LayoutError::new(format!("a shared buffer can't have the shape {shape:?}")));
        }
        if num_elements(shape) > 1 << 28 {
            return Err(LayoutError::new(format!(
                "a buffer of shape {shape:?} is larger than any shared memory"
            )));
        }
        let leading = |rank: usize| {
            shape.len().checked_sub(rank).ok_or_else(|| {
                LayoutError::new(format!("shared encoding of rank {rank} on a buffer of shape {shape:?}"))
            })
        };
        match kind {
            SharedKind::Swizzled { vec, per_phase, max_phase, order } => {
                let swizzle = Swizzle { vec: *vec, per_phase: *per_phase, max_phase: *max_phase };
                swizzle.check()?;
                let order = buffer_order(order, leading(order.len())?)?;
                let unit = if *max_phase == 1 { unswizzled_unit } else { roomy_unit };
                Ok(Self::in_rows(shape, &order, unit, swizzle, None))
            }
            SharedKind::Padded { interval, pad, order } => {
                if ![*interval, *pad].iter().all(|x| x.is_power_of_two() && *x <= 1 << 16) || pad > interval {
                    return Err(LayoutError::new(format!(
                        "padded shared encoding: interval {interval} and pad {pad} must be powers of two up to 65536, the pad \
                         not larger than the interval"
                    )));
                }
                let order = buffer_order(order, leading(order.len())?)?;
                let padding = Padding { interval: *interval, pad: *pad };
                Ok(Self::in_rows(shape, &order, roomy_unit, Swizzle::NONE, Some(padding)))
            }
            SharedKind::NvmmaShared { swizzle_bytes, transposed, element_bits, rank } => {
                if *element_bits != elem_bits {
                    return Err(LayoutError::new(format!(
                        "nvmma_shared encoding for {element_bits}-bit elements on a buffer of {elem_bits}-bit ones"
                    )));
                }
                leading(*rank as usize)?;
                Self::in_columns(shape, *swizzle_bytes, *transposed, elem_bits, *rank as usize)
            }
        }
    }

    /// The plain layout of a row-major array: each element at its flat index.
    pub fn row_major(shape: &[u32]) -> Self {
        let order: SmallVec<[u8; 4]> = (0..shape.len() as u8).rev().collect();
        Self::in_rows(shape, &order, |size| 1 << size.trailing_zeros(), Swizzle::NONE, None)
    }

    /// Rows of the fastest axis, in linear pieces of `unit_of` their size, groups of elements permuted within them.
    fn in_rows(
        shape: &[u32],
        order: &[u8],
        unit_of: impl Fn(u32) -> u32,
        swizzle: Swizzle,
        padding: Option<Padding>,
    ) -> Self {
        let rank = shape.len();
        let (fast, next) = (order.first().map(|&d| d as usize), order.get(1).map(|&d| d as usize));
        let mut physical: Coord = shape.into();
        let mut unit: Coord = smallvec![1; rank];
        let mut steps: Coord = smallvec![1; rank];
        let mut strides: Coord = smallvec![0; rank];
        let piece = fast.map_or(1, |d| unit_of(shape[d]));
        let mut size = piece;
        if let Some(d) = fast {
            physical[d] = shape[d].next_multiple_of(piece);
            (unit[d], steps[d], strides[d]) = (piece, piece, piece);
            size = physical[d];
        }
        if let Some(d) = next {
            if size == piece {
                // All linear: the low bits of a row number are both in the swizzle and above the row.
                unit[d] = unit_of(shape[d]);
                physical[d] = shape[d].next_multiple_of(unit[d]);
                (steps[d], strides[d]) = (unit[d], size * unit[d]);
            } else {
                unit[d] = (swizzle.per_phase * swizzle.max_phase).min(shape[d].next_power_of_two());
                (steps[d], strides[d]) = (1, size);
            }
            size *= physical[d];
        }
        for &d in order.iter().skip(2) {
            strides[d as usize] = size;
            size *= shape[d as usize];
        }
        let rows_are_linear = next.is_some_and(|d| steps[d] == unit[d]);
        let linear = Self::unit_linear(&unit, |axis, bit| {
            if Some(axis) == fast {
                1 << bit
            } else {
                let above = if rows_are_linear { piece << bit } else { 0 };
                above ^ swizzle.shift_of_row(1 << bit, piece)
            }
        });
        let held = smallvec![u32::MAX; rank];
        Self {
            shape: shape.into(),
            physical,
            unit,
            steps,
            strides,
            held,
            linear,
            padding,
            alignment_bytes: 16,
        }
    }

    /// Slabs of `swizzle_bytes` columns, each holding all rows, as TMA writes them and `wgmma` descriptors read them
    /// (PTX ISA, "Shared memory matrix layout"): within 8 rows the 16-byte chunks are permuted.
    fn in_columns(
        shape: &[u32],
        swizzle_bytes: u32,
        transposed: bool,
        elem_bits: u32,
        rank: usize,
    ) -> Result<Self> {
        if !matches!(swizzle_bytes, 0 | 32 | 64 | 128) || !matches!(elem_bits, 8 | 16 | 32) || rank < 2 {
            return Err(LayoutError::new(format!(
                "nvmma_shared encoding: swizzle of {swizzle_bytes} bytes (0, 32, 64 or 128), elements of {elem_bits} bits \
                 (8, 16 or 32), rank {rank} (at least 2)"
            )));
        }
        let (mut row, mut col) = (shape.len() - 2, shape.len() - 1);
        if transposed {
            std::mem::swap(&mut row, &mut col);
        }
        let chunk = 128 / elem_bits;
        let slab = swizzle_bytes.max(16) * 8 / elem_bits;
        let swizzle = Swizzle {
            vec: chunk,
            per_phase: 128u32.checked_div(swizzle_bytes).unwrap_or(1),
            max_phase: (swizzle_bytes / 16).max(1),
        };
        let mut unit: Coord = smallvec![1; shape.len()];
        unit[row] = 1 << shape[row].trailing_zeros();
        let slabs = shape[col].div_ceil(slab);
        // With all rows in one unit the slabs are linear too.
        unit[col] = if unit[row] == shape[row] { slab << slabs.trailing_zeros() } else { slab };
        let counts: Coord = shape.iter().zip(&unit).map(|(s, u)| s.div_ceil(*u)).collect();
        let rows = unit[row];
        let linear = Self::unit_linear(&unit, |axis, bit| {
            let step = 1 << bit;
            if axis == row {
                (step * slab) ^ swizzle.shift_of_row(step, slab)
            } else if step < slab {
                step
            } else {
                step * rows
            }
        });
        let order = [row, col].into_iter().chain((0..shape.len() - 2).rev());
        let alignment_bytes = if swizzle_bytes == 0 { 16 } else { swizzle_bytes * 8 };
        Ok(Self { alignment_bytes, ..Self::of_units(shape, linear, &counts, None, order) })
    }

    /// A scratch buffer whose unit is laid out by `linear`, from the axes to `Dim::Offset`. Of the `counts` units along each axis `held` are in the
    /// buffer at once, one behind the other (the last axis fastest), and the next ones take their places. Likewise elements that `linear` sends to
    /// one offset must never be in the buffer at once.
    pub(crate) fn scratch(shape: &[u32], linear: LinearLayout, counts: &[u32], held: &[u32]) -> Self {
        Self::of_units(shape, linear, counts, Some(held), (0..shape.len()).rev())
    }

    /// Units that `linear` lays out, so many along each axis, one behind the other by `order`, the fastest axis first: all of them, or those `held` at once.
    fn of_units(
        shape: &[u32],
        linear: LinearLayout,
        counts: &[u32],
        held: Option<&[u32]>,
        order: impl Iterator<Item = usize>,
    ) -> Self {
        let unit: Coord = (0..shape.len()).map(|d| linear.in_size(Dim::Axis(d as u8))).collect();
        let mut strides: Coord = smallvec![0; shape.len()];
        let mut next = linear.out_size(Dim::Offset);
        for d in order {
            strides[d] = next;
            next *= held.unwrap_or(counts)[d];
        }
        let physical = unit.iter().zip(counts).map(|(u, c)| u * c).collect();
        let steps = unit.clone();
        Self {
            shape: shape.into(),
            physical,
            unit,
            steps,
            strides,
            held: held.map_or_else(|| smallvec![u32::MAX; shape.len()], Coord::from_slice),
            linear,
            padding: None,
            alignment_bytes: 16,
        }
    }

    fn unit_linear(unit: &[u32], offset: impl Fn(usize, u32) -> u32) -> LinearLayout {
        let bases: SmallVec<[Vectors; 4]> =
            unit.iter().enumerate().map(|(d, &u)| (0..log2(u)).map(|bit| offset(d, bit)).collect()).collect();
        let ins: SmallVec<[(Dim, &[u32]); 4]> =
            bases.iter().enumerate().map(|(d, b)| (Dim::Axis(d as u8), b.as_slice())).collect();
        let size = (bases.iter().flatten().fold(0, |a, b| a | b) + 1).next_power_of_two();
        LinearLayout::from_bases(&ins, &[(Dim::Offset, size)]).expect("the offset is as large as the bases")
    }

    /// The logical shape of the buffer.
    pub fn shape(&self) -> &[u32] {
        &self.shape
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The size along each axis on which the linear part depends: powers of two.
    pub fn unit(&self) -> &[u32] {
        &self.unit
    }

    /// The distance along each axis at which the affine part changes: powers of two.
    pub fn steps(&self) -> &[u32] {
        &self.steps
    }

    /// What each step along an axis adds to the offset, in elements.
    pub fn strides(&self) -> &[u32] {
        &self.strides
    }

    /// The linear part, from the axes to `Dim::Offset`.
    pub fn linear(&self) -> &LinearLayout {
        &self.linear
    }

    /// The padding to apply to an offset ([`pad`](Self::pad)).
    pub fn padding(&self) -> Option<Padding> {
        self.padding
    }

    /// The alignment that the buffer's base needs, in bytes.
    pub fn alignment_bytes(&self) -> u32 {
        self.alignment_bytes
    }

    /// The size that the buffer covers along an axis: at least the logical one.
    pub fn physical(&self, axis: usize) -> u32 {
        self.physical[axis]
    }

    /// The linear part of a coordinate's offset and the affine one. Their sum (and XOR) is the offset before padding.
    pub fn offset_parts(&self, coord: &[u32]) -> (u32, u32) {
        let (mut xor, mut add) = (0, 0);
        for (d, &c) in coord.iter().enumerate() {
            xor ^= self.linear.apply_one(Dim::Axis(d as u8), c & (self.unit[d] - 1));
            add += (c >> log2(self.steps[d])) % self.held[d] * self.strides[d];
        }
        (xor, add)
    }

    /// The offset of an element.
    pub fn offset(&self, coord: &[u32]) -> u32 {
        let (xor, add) = self.offset_parts(coord);
        self.pad(xor + add)
    }

    /// The offset with the padding before it: `o + o / interval * pad`.
    pub fn pad(&self, offset: u32) -> u32 {
        match self.padding {
            Some(Padding { interval, pad }) => offset + offset / interval * pad,
            None => offset,
        }
    }

    /// Whether both have as many elements and, numbered in row-major order, each lies where it lies in the other: then one buffer may be
    /// shown as the other.
    pub fn lies_like(&self, other: &SharedLayout) -> bool {
        let count = |layout: &SharedLayout| layout.shape.iter().product::<u32>();
        count(self) == count(other)
            && (0..count(self)).all(|i| {
                let (here, there) = (coordinates(&self.shape, i), coordinates(&other.shape, i));
                self.offset(&here) == other.offset(&there)
            })
    }

    /// How far each element of a part lies behind the one that has its place in the part of the same shape with which the buffer begins; `None` where
    /// that is not as far for all.
    pub fn part_begin(&self, begin: &[u32], shape: &[u32]) -> Option<u32> {
        let first = self.offset(begin);
        let alike = |i: u32| {
            let here = coordinates(shape, i);
            let there: Coord = here.iter().zip(begin).map(|(&c, &b)| c + b).collect();
            self.offset(&there) == first + self.offset(&here)
        };
        (0..shape.iter().product()).all(alike).then_some(first)
    }

    /// Where the tiles of a part begin, from which on each lies like the first of the buffer; `None` where one does not.
    pub fn tile_begins(&self, begin: &[u32], part: &[u32], tile: &[u32]) -> Option<Vec<u32>> {
        let grid: Coord = part.iter().zip(tile).map(|(n, t)| n / t).collect();
        let begin_of = |i: u32| {
            let places = coordinates(&grid, i).into_iter().zip(tile).zip(begin);
            let at: Coord = places.map(|((number, n), begin)| begin + number * n).collect();
            self.part_begin(&at, tile)
        };
        (0..grid.iter().product()).map(begin_of).collect()
    }

    /// The elements to allocate.
    pub fn allocation_elems(&self) -> u32 {
        let steps = |d: usize| (self.physical[d] / self.steps[d]).min(self.held[d]);
        let last: u32 = (0..self.rank()).map(|d| (steps(d) - 1) * self.strides[d]).sum();
        self.pad(self.linear.out_size(Dim::Offset) - 1 + last) + 1
    }
}

/// The coordinates of an element by its number in row-major order.
pub fn coordinates(shape: &[u32], mut number: u32) -> Coord {
    let mut at: Coord = smallvec![0; shape.len()];
    for d in (0..shape.len()).rev() {
        at[d] = number % shape[d];
        number /= shape[d];
    }
    at
}

/// The axes of a buffer from fastest to slowest: an encoding's order, behind it the leading ones that it doesn't know.
fn buffer_order(order: &[u32], leading: usize) -> Result<SmallVec<[u8; 4]>> {
    let mut out = check_order(order, order.len())?;
    out.iter_mut().for_each(|d| *d += leading as u8);
    out.extend((0..leading as u8).rev());
    Ok(out)
}

/// The XOR of column groups by row.
#[derive(Clone, Copy)]
struct Swizzle {
    vec: u32,
    per_phase: u32,
    max_phase: u32,
}

impl Swizzle {
    const NONE: Self = Self { vec: 1, per_phase: 1, max_phase: 1 };

    fn check(self) -> Result<()> {
        if [self.vec, self.per_phase, self.max_phase].iter().all(|x| x.is_power_of_two() && *x <= 1 << 10) {
            return Ok(());
        }
        Err(LayoutError::new(format!(
            "swizzled shared encoding: vec {}, perPhase {} and maxPhase {} must be powers of two up to 1024",
            self.vec, self.per_phase, self.max_phase
        )))
    }

    /// By how much the columns of a row are moved (XOR), in a unit of `cols` columns.
    fn shift_of_row(self, row: u32, cols: u32) -> u32 {
        ((row / self.per_phase % self.max_phase) * self.vec) & (cols - 1)
    }
}
