//! Tile layouts: which thread of a CTA holds which elements of a tensor.
//!
//! **Shapes need not be powers of two.** Along each axis the size is odd × 2^k. The linear layout covers a *unit* whose
//! sizes are powers of two; the unit is repeated an odd number of times (*reps*), or the tensor is padded:
//!
//! - where the CTA tile of the encoding divides the size, nothing is padded: 96 with a tile of 32 is 3 units of 32, 192
//!   with the same tile 3 units of 64;
//! - otherwise the *physical* size is the next multiple of the tile: 1000 with a tile of 256 is one unit of 1024, and the
//!   last 24 elements are *padding*, which memory operations must predicate off (see [`TileLayout::register_bounds`]);
//! - a tensor smaller than the tile is held several times over: bases that point outside it are 0, and
//!   [`TileLayout::free_variable_masks`] says which threads hold copies. Along an axis of size 1 all threads do: a
//!   broadcast finds its element wherever it needs it.
//!
//! Invariants: `physical = unit * reps >= shape`; the linear layout is onto the unit; no register of a thread is a copy of
//! another register of that thread. The registers of a thread are those of one unit, repeated: the number of a register is
//! `rep * unit_registers + unit_register`, with the repeats counted along the fastest axis of the encoding first.

use smallvec::{SmallVec, smallvec};

use crate::distribute::{Coord, CtaTile, cta_tile};
use crate::encoding::Encoding;
use crate::error::{LayoutError, Result};
use crate::f2::{Span, Vectors, combine, extend, log2};
use crate::linear::{Dim, LinearLayout};

/// The distributed layout of a tensor of one shape.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TileLayout {
    shape: Coord,
    unit: Coord,
    reps: Coord,
    /// The axes from the fastest to the slowest.
    order: SmallVec<[u8; 4]>,
    /// From (register, lane, warp) onto the unit.
    linear: LinearLayout,
}

/// Per in dimension, the index bits under which copies are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FreeMasks {
    /// Register bits (always 0 but for layouts given by dependent bases).
    pub register: u32,
    /// Lane bits: a lane with any of them set holds what the lane with them cleared holds.
    pub lane: u32,
    /// Warp bits, likewise.
    pub warp: u32,
}

/// Whether a register lies in the tensor's logical shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bounds {
    /// In every lane and warp.
    Inside,
    /// In no lane of any warp: the register is padding and never stored.
    Outside,
    /// It depends on the lane or warp: compare coordinates at run time along these axes (bit d for axis d).
    Depends {
        /// The axes along which to compare.
        axes: u32,
    },
}

impl TileLayout {
    /// The layout of a tensor of `shape` under `encoding`.
    ///
    /// # Errors
    /// An ill-formed or shared-memory encoding, a rank that doesn't fit it, a size of 0, more than 2^28 elements.
    pub fn new(encoding: &Encoding, shape: &[u32]) -> Result<Self> {
        Self::from_tile(cta_tile(encoding, shape.len())?, shape)
    }

    fn from_tile(mut tile: CtaTile, shape: &[u32]) -> Result<Self> {
        let rank = shape.len();
        let mut unit = Coord::new();
        let mut reps = Coord::new();
        let mut elements = 1u64;
        for (d, (&size, &tile_size)) in shape.iter().zip(&tile.size).enumerate() {
            if size == 0 {
                return Err(LayoutError::new(format!("a tensor of shape {shape:?} has no elements")));
            }
            let pads = tile.pad & 1 << d != 0 && size > 1;
            let physical = if size < tile_size && !pads {
                u64::from(size).next_power_of_two()
            } else {
                u64::from(size).next_multiple_of(u64::from(tile_size))
            };
            elements = elements.saturating_mul(physical);
            if elements > 1 << 28 {
                return Err(LayoutError::new(format!(
                    "a tensor of shape {shape:?} is too large for one tile"
                )));
            }
            let physical = physical as u32;
            unit.push(1 << physical.trailing_zeros());
            reps.push(physical >> physical.trailing_zeros());
        }
        // Registers cover what the tile leaves of the unit, fastest axis first.
        for i in 0..rank {
            let d = tile.order[i] as usize;
            let mut at = tile.size[d];
            while at < unit[d] {
                let mut basis: Coord = smallvec![0; rank];
                basis[d] = at;
                tile.register.push(basis);
                at *= 2;
            }
        }
        let outs: SmallVec<[(Dim, u32); 4]> =
            unit.iter().enumerate().map(|(d, &u)| (Dim::Axis(d as u8), u)).collect();
        let flat = |bases: &[Coord], drop_zero: bool| -> Vectors {
            let flat = bases.iter().map(|b| {
                let (mut out, mut shift) = (0, 0);
                for (&x, &u) in b.iter().zip(&unit) {
                    out |= (x & (u - 1)) << shift;
                    shift += log2(u);
                }
                out
            });
            flat.filter(|&b| !drop_zero || b != 0).collect()
        };
        let (register, lane, warp) =
            (flat(&tile.register, true), flat(&tile.lane, false), flat(&tile.warp, false));
        let linear = LinearLayout::from_bases(
            &[(Dim::Register, &register), (Dim::Lane, &lane), (Dim::Warp, &warp)],
            &outs,
        )?;
        if !linear.is_surjective() {
            return Err(LayoutError::new(format!(
                "the encoding leaves elements of the tensor of shape {shape:?} to no thread ({linear})"
            )));
        }
        Ok(Self { shape: shape.into(), unit, reps, order: tile.order, linear })
    }

    /// A layout from its parts, which must satisfy the invariants of the type.
    pub(crate) fn from_parts(
        shape: Coord,
        unit: Coord,
        reps: Coord,
        order: SmallVec<[u8; 4]>,
        linear: LinearLayout,
    ) -> Self {
        debug_assert!(linear.is_surjective());
        debug_assert!((0..unit.len()).all(|d| linear.out_size(Dim::Axis(d as u8)) == unit[d]));
        debug_assert!((0..unit.len()).all(|d| unit[d] * reps[d] >= shape[d]));
        Self { shape, unit, reps, order, linear }
    }

    /// The logical shape.
    pub fn shape(&self) -> &[u32] {
        &self.shape
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The size of the unit along each axis: powers of two.
    pub fn unit(&self) -> &[u32] {
        &self.unit
    }

    /// How often the unit is repeated along each axis: odd numbers.
    pub fn reps(&self) -> &[u32] {
        &self.reps
    }

    /// The size that the layout covers along an axis: at least the logical one.
    pub fn physical(&self, axis: usize) -> u32 {
        self.unit[axis] * self.reps[axis]
    }

    /// The axes from the fastest to the slowest, as registers go on along them.
    pub fn order(&self) -> &[u8] {
        &self.order
    }

    /// The linear layout from (register, lane, warp) onto one unit (`Dim::Axis(d)` for axis d).
    pub fn linear(&self) -> &LinearLayout {
        &self.linear
    }

    /// The registers of a thread that cover one unit.
    pub fn unit_registers(&self) -> u32 {
        self.linear.in_size(Dim::Register)
    }

    /// The number of repeats of the unit.
    pub fn num_reps(&self) -> u32 {
        self.reps.iter().product()
    }

    /// The registers of a thread.
    pub fn num_registers(&self) -> u32 {
        self.unit_registers() * self.num_reps()
    }

    /// The lanes of a warp.
    pub fn num_lanes(&self) -> u32 {
        self.linear.in_size(Dim::Lane)
    }

    /// The warps that the layout tells apart. In a CTA with more warps, warps that are equal modulo this hold the same.
    pub fn num_warps(&self) -> u32 {
        self.linear.in_size(Dim::Warp)
    }

    /// The coordinate at which repeat `rep` of the unit begins.
    pub fn rep_coord(&self, mut rep: u32) -> Coord {
        let mut out: Coord = smallvec![0; self.rank()];
        for &d in &self.order {
            let d = d as usize;
            out[d] = (rep % self.reps[d]) * self.unit[d];
            rep /= self.reps[d];
        }
        out
    }

    /// The repeat that begins at this coordinate's unit; the inverse of [`rep_coord`](Self::rep_coord).
    pub fn rep_of(&self, coord: &[u32]) -> u32 {
        self.order
            .iter()
            .rev()
            .fold(0, |acc, &d| acc * self.reps[d as usize] + coord[d as usize] / self.unit[d as usize])
    }

    fn split(&self, flat: u32) -> Coord {
        (0..self.rank()).map(|d| self.linear.out_part(flat, Dim::Axis(d as u8))).collect()
    }

    /// The coordinate of `register` in lane 0 of warp 0: the constant part of its coordinate in any thread.
    pub fn register_coord(&self, register: u32) -> Coord {
        let mut out = self.rep_coord(register / self.unit_registers());
        let unit = self.split(self.linear.apply_one(Dim::Register, register % self.unit_registers()));
        out.iter_mut().zip(unit).for_each(|(o, u)| *o += u);
        out
    }

    /// The constant parts of all registers: [`register_coord`](Self::register_coord) of each.
    ///
    /// A thread's coordinate along axis d is that constant XOR [`lane_bases`](Self::lane_bases) for each set bit of the
    /// lane XOR [`warp_bases`](Self::warp_bases) for each set bit of the warp; where [`is_disjoint`](Self::is_disjoint),
    /// the XORs are additions.
    pub fn register_offsets(&self) -> Vec<Coord> {
        (0..self.num_registers()).map(|r| self.register_coord(r)).collect()
    }

    /// What each lane bit contributes along an axis.
    pub fn lane_bases(&self, axis: usize) -> Vectors {
        self.linear.bases_along(Dim::Lane, Dim::Axis(axis as u8))
    }

    /// What each warp bit contributes along an axis.
    pub fn warp_bases(&self, axis: usize) -> Vectors {
        self.linear.bases_along(Dim::Warp, Dim::Axis(axis as u8))
    }

    /// The bits of the coordinate along an axis that lanes and warps contribute.
    pub fn thread_bits(&self, axis: usize) -> u32 {
        self.lane_bases(axis).iter().chain(&self.warp_bases(axis)).fold(0, |all, base| all | base)
    }

    /// Whether the contributions of registers, lane bits and warp bits along an axis share no bit, so that XOR is addition.
    pub fn is_disjoint(&self, axis: usize) -> bool {
        let out = Dim::Axis(axis as u8);
        let registers = self.linear.bases_along(Dim::Register, out).iter().fold(0, |a, b| a | b);
        let mut seen = registers;
        [Dim::Lane, Dim::Warp].into_iter().flat_map(|d| self.linear.bases_along(d, out)).all(|b| {
            let free = seen & b == 0;
            seen |= b;
            free
        })
    }

    /// The coordinate of a register in a thread. It may be padding, outside the logical shape.
    pub fn coords(&self, register: u32, lane: u32, warp: u32) -> Coord {
        let mut out = self.rep_coord(register / self.unit_registers());
        let flat = self.linear.apply_one(Dim::Register, register % self.unit_registers())
            ^ self.linear.apply_one(Dim::Lane, lane)
            ^ self.linear.apply_one(Dim::Warp, warp);
        out.iter_mut().zip(self.split(flat)).for_each(|(o, u)| *o += u);
        out
    }

    /// Which index bits hold copies. An operation to be done once per element (a store, an atomic) is done where all these
    /// bits are 0; warp bits past [`num_warps`](Self::num_warps) are copies too.
    pub fn free_variable_masks(&self) -> FreeMasks {
        let masks = self.linear.free_variable_masks();
        FreeMasks { register: masks[0].1, lane: masks[1].1, warp: masks[2].1 }
    }

    /// The registers that no other register of the same thread is equal to, one of each set: all, unless the layout was
    /// given by dependent bases.
    pub fn unique_registers(&self) -> Vec<u32> {
        let free = self.free_variable_masks().register;
        (0..self.num_registers()).filter(|r| (r % self.unit_registers()) & free == 0).collect()
    }

    /// Whether any register holds padding somewhere.
    pub fn is_padded(&self) -> bool {
        (0..self.rank()).any(|d| self.needs_bounds_predicate(d))
    }

    /// Whether the layout reaches past the logical shape along an axis.
    pub fn needs_bounds_predicate(&self, axis: usize) -> bool {
        self.physical(axis) > self.shape[axis]
    }

    /// Whether a coordinate lies in the logical shape.
    pub fn in_bounds(&self, coord: &[u32]) -> bool {
        coord.iter().zip(&self.shape).all(|(c, s)| c < s)
    }

    /// Whether `register` is in the logical shape, for all lanes and warps at once.
    pub fn register_bounds(&self, register: u32) -> Bounds {
        let coord = self.register_coord(register);
        let mut axes = 0;
        for (d, &c) in coord.iter().enumerate() {
            if !self.needs_bounds_predicate(d) {
                continue;
            }
            // Lane and warp can only change these bits.
            let moves = self.thread_bits(d);
            if c & !moves >= self.shape[d] {
                return Bounds::Outside;
            }
            if c | moves >= self.shape[d] {
                axes |= 1 << d;
            }
        }
        if axes == 0 { Bounds::Inside } else { Bounds::Depends { axes } }
    }

    /// Register combinations that step 1, 2, 4, … along `axis`, as masks over the unit's registers, as long as a vector of
    /// that length starts at a multiple of it in every thread.
    fn vector_bits(&self, axis: usize) -> Vectors {
        let axis = Dim::Axis(axis as u8);
        let lin = &self.linear;
        let span = Span::of(lin.flat_bases(Dim::Register));
        let others =
            [Dim::Lane, Dim::Warp].into_iter().flat_map(|d| lin.bases_along(d, axis)).fold(0, |a, b| a | b);
        (0..lin.out_bits(axis))
            .map_while(|bit| {
                let mask = span.solve(lin.out_flat(axis, 1 << bit))?;
                (others & 1 << bit == 0).then_some(mask as u32)
            })
            .collect()
    }

    /// The length of the aligned runs that each thread holds along an axis, a power of two.
    ///
    /// Runs don't straddle the end of the logical shape: along a padded axis of size 1002 they are at most 2 long.
    pub fn contig_along(&self, axis: usize) -> u32 {
        let run = 1 << self.vector_bits(axis).len();
        if self.needs_bounds_predicate(axis) { run.min(1 << self.shape[axis].trailing_zeros()) } else { run }
    }

    /// [`contig_along`](Self::contig_along) of every axis.
    pub fn contig_per_thread(&self) -> Coord {
        (0..self.rank()).map(|d| self.contig_along(d)).collect()
    }

    /// All registers in groups of `width` that are consecutive along `axis` in every thread, each starting at a multiple
    /// of `width`. `None` if `width` is not a power of two up to [`contig_along`](Self::contig_along).
    pub fn vector_groups(&self, axis: usize, width: u32) -> Option<Vec<SmallVec<[u32; 8]>>> {
        if !width.is_power_of_two() || width > self.contig_along(axis) {
            return None;
        }
        let bits = self.vector_bits(axis);
        let bits = &bits[..log2(width) as usize];
        let along = |r| self.linear.out_part(self.linear.apply_one(Dim::Register, r), Dim::Axis(axis as u8));
        Some(register_groups(bits, along, self.unit_registers(), self.num_reps()))
    }

    /// The lane bits that move along an axis, and the warp bits: what a reduction along it has to exchange.
    pub fn thread_bits_along(&self, axis: usize) -> FreeMasks {
        let mask = |dim| {
            let bases = self.linear.bases_along(dim, Dim::Axis(axis as u8));
            bases.iter().enumerate().fold(0, |m, (i, &b)| if b != 0 { m | 1 << i } else { m })
        };
        FreeMasks { register: mask(Dim::Register), lane: mask(Dim::Lane), warp: mask(Dim::Warp) }
    }

    /// The register whose constant coordinate is `coord` (see [`register_coord`](Self::register_coord)), if there is one.
    pub fn register_at(&self, coord: &[u32]) -> Option<u32> {
        self.register_finder().find(coord)
    }

    /// A finder for many [`register_at`](Self::register_at) look-ups.
    pub fn register_finder(&self) -> RegisterFinder<'_> {
        RegisterFinder { layout: self, span: Span::of(self.linear.flat_bases(Dim::Register)) }
    }
}

/// Finds registers by their constant coordinate.
pub struct RegisterFinder<'a> {
    layout: &'a TileLayout,
    span: Span,
}

impl RegisterFinder<'_> {
    /// The register at this constant coordinate, if there is one.
    pub fn find(&self, coord: &[u32]) -> Option<u32> {
        let l = self.layout;
        let mut flat = 0;
        for (d, &c) in coord.iter().enumerate() {
            if c >= l.physical(d) {
                return None;
            }
            flat ^= l.linear.out_flat(Dim::Axis(d as u8), c % l.unit[d]);
        }
        let in_unit = self.span.solve(flat)? as u32;
        Some(l.rep_of(coord) * l.unit_registers() + in_unit)
    }
}

/// Registers in vectors of `2^bits.len()`. `bits[i]` is the register combination that steps `2^i` in a space where register
/// r is at `position(r)`, a linear map; the k-th register of a vector is k behind its first, whose position is a multiple
/// of the width. Vectors come in ascending order of some register, repeat after repeat.
pub(crate) fn register_groups(
    bits: &[u32],
    position: impl Fn(u32) -> u32,
    unit_registers: u32,
    reps: u32,
) -> Vec<SmallVec<[u32; 8]>> {
    let width = 1u32 << bits.len();
    // A basis of what the vectors leave of the register space, moved so that it steps whole vectors.
    let rest: Vectors = extend(bits, (0..log2(unit_registers)).map(|b| 1 << b))
        .iter()
        .map(|&r| r ^ combine(bits, u64::from(position(r) & (width - 1))))
        .collect();
    let mut out = Vec::with_capacity((reps << rest.len()) as usize);
    for rep in 0..reps {
        for g in 0..1u64 << rest.len() {
            let first = combine(&rest, g);
            let base = rep * unit_registers;
            out.push((0..u64::from(width)).map(|k| base + (first ^ combine(bits, k))).collect());
        }
    }
    out
}
