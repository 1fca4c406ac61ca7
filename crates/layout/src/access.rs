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
        let images = Images::new(tile, shared)?;
        let bits = images.vector_bits(tile, shared, max_width);
        let width = 1 << bits.len();
        let groups =
            register_groups(&bits, |r| images.register(r).xor, tile.unit_registers(), tile.num_reps());
        let accesses = groups.into_iter().map(|registers| {
            let (xor, add) = shared.offset_parts(&tile.register_coord(registers[0]));
            Access { registers, offset: Offset { xor, add } }
        });
        let needs_predicate = (0..tile.rank()).any(|d| tile.physical(d) > shared.physical(d));
        Ok(Self { width, accesses: accesses.collect(), thread: images.thread(), needs_predicate })
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
                let coord: crate::Coord =
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
    pub fn alignment(&self, tile: &TileLayout, shared: &SharedLayout) -> u32 {
        let threads = self.lane.iter().chain(&self.warp).fold(0, |acc, o| acc | o.xor | o.add);
        let registers = self.register.iter().fold(0, |acc, o| acc | o.add);
        let reps = (0..tile.num_reps()).fold(0, |acc, rep| {
            let (xor, add) = shared.offset_parts(&tile.rep_coord(rep));
            acc | xor | add
        });
        let padding = shared.padding().map_or(0, |p| p.interval | p.pad);
        1 << (threads | registers | reps | padding | 1 << 30).trailing_zeros()
    }

    /// Register combinations at offsets 1, 2, 4, …: the vector of one access.
    fn vector_bits(&self, tile: &TileLayout, shared: &SharedLayout, max_width: u32) -> Vectors {
        let limit = max_width.min(self.alignment(tile, shared));
        // Registers that step over units stay out of vectors: their image is made unreachable.
        let span =
            Span::of(&self.register.iter().map(|o| if o.add == 0 { o.xor } else { 0 }).collect::<Vectors>());
        let mut bits = Vectors::new();
        while 1u32 << bits.len() < limit {
            let Some(mask) = span.solve(1 << bits.len()) else { break };
            if !stays_in_bounds(tile, mask as u32) {
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
