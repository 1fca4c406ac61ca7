//! Accesses: the loads or stores by which the threads of a CTA move a tile from or to shared memory.
//!
//! The offset (in elements, before the buffer's padding) of an access is
//!
//! ```text
//! (thread.xor ^ access.xor) + thread.add + access.add
//! ```
//!
//! where `thread` depends on lane and warp only, so it is computed once, and `access` is a constant. Where the constant
//! shares no bit with any thread's XOR part ([`SharedAccess::is_immediate`]) the whole constant is an immediate offset.

use smallvec::SmallVec;

use crate::distribute::Coord;
use crate::error::{LayoutError, Result};
use crate::f2::{Span, Vectors};
use crate::linear::Dim;
use crate::shared::SharedLayout;
use crate::tile::{TileLayout, register_groups};

/// A contribution to an offset: a part that is XORed and a part that is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Offset {
    /// XORed with the others' `xor`.
    pub xor: u32,
    /// Added.
    pub add: u32,
}

impl Offset {
    /// Both contributions together.
    pub fn combine(self, other: Self) -> Self {
        Self { xor: self.xor ^ other.xor, add: self.add + other.add }
    }

    /// The offset itself, before padding.
    pub fn value(self) -> u32 {
        self.xor + self.add
    }
}

/// One vector load or store of each thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The registers moved, in the order of their elements in memory.
    pub registers: SmallVec<[u32; 8]>,
    /// The constant part of the offset.
    pub offset: Offset,
}

/// How the threads' part of an offset comes from the bits of lane and warp.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadOffset {
    /// The contribution of each lane bit.
    pub lane: SmallVec<[Offset; 8]>,
    /// The contribution of each warp bit.
    pub warp: SmallVec<[Offset; 8]>,
}

impl ThreadOffset {
    /// The offset of a thread.
    pub fn at(&self, lane: u32, warp: u32) -> Offset {
        let of = |bases: &[Offset], index: u32| {
            let set = bases.iter().enumerate().filter(|(i, _)| index >> i & 1 == 1);
            set.fold(Offset::default(), |acc, (_, &b)| acc.combine(b))
        };
        of(&self.lane, lane).combine(of(&self.warp, warp))
    }

    /// Every bit that the XOR part of some thread has set.
    pub fn xor_bits(&self) -> u32 {
        self.lane.iter().chain(&self.warp).fold(0, |acc, o| acc | o.xor)
    }
}

/// The accesses by which a tile is read from, or written to, a shared buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedAccess {
    /// Elements of one access.
    pub width: u32,
    /// The accesses, each register in one of them.
    pub accesses: Vec<Access>,
    /// The part of the offset that depends on the thread.
    pub thread: ThreadOffset,
    /// Whether the tile reaches past the buffer, so that each access must be predicated by
    /// [`TileLayout::register_bounds`] (all registers of one access agree).
    pub needs_predicate: bool,
}

impl SharedAccess {
    /// Plans the accesses of `tile` to `shared`, as wide as contiguity, alignment and 128 bits allow.
    ///
    /// # Errors
    /// Shapes that differ, or a linear encoding whose threads and registers overlap across the units of the buffer.
    pub fn new(tile: &TileLayout, shared: &SharedLayout, elem_bits: u32) -> Result<Self> {
        Self::with_max_width(tile, shared, (128 / elem_bits.max(8)).max(1))
    }

    /// [`new`](Self::new) with at most `max_width` elements an access.
    ///
    /// # Errors
    /// As for `new`.
    pub fn with_max_width(tile: &TileLayout, shared: &SharedLayout, max_width: u32) -> Result<Self> {
        if tile.shape() != shared.shape() {
            return Err(LayoutError::new(format!(
                "a tile of shape {:?} can't be moved to a shared buffer of shape {:?}",
                tile.shape(),
                shared.shape()
            )));
        }
        let origin: Coord = tile.shape().iter().map(|_| 0).collect();
        Self::in_window(tile, shared, &origin, max_width)
    }

    /// The accesses of a tile that is a part of the buffer: its first element lies at `origin`.
    ///
    /// # Errors
    /// A window that leaves the buffer or that begins in the middle of one of the tile's units (an `origin` that is no
    /// multiple of [`TileLayout::unit`]), or as for `new`.
    pub fn in_window(
        tile: &TileLayout,
        shared: &SharedLayout,
        origin: &[u32],
        max_width: u32,
    ) -> Result<Self> {
        let window = Window::new(tile, shared, origin)?;
        let images = Images::new(tile, shared)?;
        let bits = images.vector_bits(&window, max_width);
        let width = 1 << bits.len();
        let groups =
            register_groups(&bits, |r| images.register(r).xor, tile.unit_registers(), tile.num_reps());
        let accesses = groups.into_iter().map(|registers| {
            let offset = window.offset(&tile.register_coord(registers[0]));
            Access { registers, offset }
        });
        let accesses = accesses.collect();
        Ok(Self { width, accesses, thread: images.thread(), needs_predicate: window.leaves_buffer() })
    }

    /// Whether the constant of an access can be an immediate offset: XOR with it is addition in every thread.
    pub fn is_immediate(&self, access: &Access) -> bool {
        self.thread.xor_bits() & access.offset.xor == 0
    }

    /// The offset of an access in a thread, in elements, with the buffer's padding.
    pub fn offset(&self, access: &Access, shared: &SharedLayout, lane: u32, warp: u32) -> u32 {
        shared.pad(self.thread.at(lane, warp).combine(access.offset).value())
    }
}

/// A tile's place in a buffer. Invariant: the tile's units begin at multiples of their size, so that no sum of an origin,
/// a repeat and a coordinate within the unit carries into another's bits.
pub(crate) struct Window<'a> {
    pub tile: &'a TileLayout,
    pub shared: &'a SharedLayout,
    origin: &'a [u32],
}

impl<'a> Window<'a> {
    pub fn new(tile: &'a TileLayout, shared: &'a SharedLayout, origin: &'a [u32]) -> Result<Self> {
        let rank = tile.rank();
        let fits = origin.len() == rank
            && shared.rank() == rank
            && (0..rank).all(|d| origin[d].saturating_add(tile.shape()[d]) <= shared.shape()[d]);
        if !fits {
            return Err(LayoutError::new(format!(
                "a tile of shape {:?} at {origin:?} does not lie in a shared buffer of shape {:?}",
                tile.shape(),
                shared.shape()
            )));
        }
        if (0..rank).any(|d| !origin[d].is_multiple_of(tile.unit()[d])) {
            return Err(LayoutError::new(format!(
                "not supported yet: a part of a shared buffer that begins at {origin:?}, no multiple of the unit {:?} of \
                 the tile's layout",
                tile.unit()
            )));
        }
        Ok(Self { tile, shared, origin })
    }

    /// The offset of a coordinate of the tile.
    pub fn offset(&self, coord: &[u32]) -> Offset {
        let coord: Coord = coord.iter().zip(self.origin).map(|(c, o)| c + o).collect();
        let (xor, add) = self.shared.offset_parts(&coord);
        Offset { xor, add }
    }

    /// Whether the tile's padding reaches past the buffer.
    pub fn leaves_buffer(&self) -> bool {
        (0..self.tile.rank()).any(|d| self.origin[d] + self.tile.physical(d) > self.shared.physical(d))
    }

    /// The offsets at which the repeats of the tile's unit begin.
    pub fn reps(&self) -> impl Iterator<Item = Offset> + '_ {
        (0..self.tile.num_reps()).map(|rep| self.offset(&self.tile.rep_coord(rep)))
    }
}

/// The images of a tile's register, lane and warp bases under a shared layout.
pub(crate) struct Images {
    pub register: SmallVec<[Offset; 16]>,
    lane: SmallVec<[Offset; 8]>,
    warp: SmallVec<[Offset; 8]>,
}

impl Images {
    pub fn new(tile: &TileLayout, shared: &SharedLayout) -> Result<Self> {
        // What the affine part counts is added, so there no two bases may share a bit.
        for d in 0..tile.rank() {
            let high = !(shared.steps()[d] - 1);
            let mut seen = 0;
            for b in tile.linear().all_bases() {
                let b = tile.linear().out_part(*b, Dim::Axis(d as u8)) & high;
                if b & seen != 0 {
                    return Err(LayoutError::new(
                        "not supported yet: a linear encoding with overlapping bases in a shared buffer of this shape",
                    ));
                }
                seen |= b;
            }
        }
        let of = |dim: Dim| {
            tile.linear().flat_bases(dim).iter().map(|&b| {
                let coord: Coord =
                    (0..tile.rank()).map(|d| tile.linear().out_part(b, Dim::Axis(d as u8))).collect();
                let (xor, add) = shared.offset_parts(&coord);
                Offset { xor, add }
            })
        };
        Ok(Self {
            register: of(Dim::Register).collect(),
            lane: of(Dim::Lane).collect(),
            warp: of(Dim::Warp).collect(),
        })
    }

    /// The image of a register of the unit.
    pub fn register(&self, register: u32) -> Offset {
        let set = self.register.iter().enumerate().filter(|(i, _)| register >> i & 1 == 1);
        set.fold(Offset::default(), |acc, (_, &b)| acc.combine(b))
    }

    pub fn thread(&self) -> ThreadOffset {
        ThreadOffset { lane: self.lane.clone(), warp: self.warp.clone() }
    }

    /// The largest power of two that divides whatever any thread bit, any repeat and any padding adds to an offset.
    fn alignment(&self, window: &Window) -> u32 {
        let threads = self.lane.iter().chain(&self.warp).fold(0, |acc, o| acc | o.xor | o.add);
        let registers = self.register.iter().fold(0, |acc, o| acc | o.add);
        let reps = window.reps().fold(0, |acc, o| acc | o.xor | o.add);
        let padding = window.shared.padding().map_or(0, |p| p.interval | p.pad);
        1 << (threads | registers | reps | padding | 1 << 30).trailing_zeros()
    }

    /// Register combinations at offsets 1, 2, 4, …: the vector of one access.
    fn vector_bits(&self, window: &Window, max_width: u32) -> Vectors {
        let limit = max_width.min(self.alignment(window));
        // Registers that step over units stay out of vectors: their image is made unreachable.
        let span =
            Span::of(&self.register.iter().map(|o| if o.add == 0 { o.xor } else { 0 }).collect::<Vectors>());
        let mut bits = Vectors::new();
        while 1u32 << bits.len() < limit {
            let Some(mask) = span.solve(1 << bits.len()) else { break };
            if !stays_in_bounds(window.tile, mask as u32) {
                break;
            }
            bits.push(mask as u32);
        }
        bits
    }
}

/// Whether registers that differ by `mask` are always both inside the logical shape or both outside it.
fn stays_in_bounds(tile: &TileLayout, mask: u32) -> bool {
    let flat = tile.linear().apply_one(Dim::Register, mask);
    (0..tile.rank()).all(|d| {
        let step = tile.linear().out_part(flat, Dim::Axis(d as u8));
        // All coordinates that a step within aligned blocks of 2·(its top bit) can reach are on one side.
        step == 0
            || !tile.needs_bounds_predicate(d)
            || tile.shape()[d].is_multiple_of(1 << (32 - step.leading_zeros()))
    })
}
