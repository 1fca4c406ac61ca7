//! `ldmatrix` and `stmatrix`: 8×8 matrices of 16-bit elements between shared memory and registers.
//!
//! One instruction moves one, two or four matrices (PTX ISA, "Warp-level matrix load instruction: ldmatrix"). Lane
//! `8·m + r` gives the address of row r of matrix m: 16 bytes that lie together. Lane l receives, of each matrix, the
//! 32 bits number `l % 4` of row `l / 4`; with `.trans` elements `2·(l % 4)` and one more of *column* `l / 4`.
//!
//! Whether it applies is read off the images of the tile's bases in shared memory. Without `.trans`, the registers of one
//! 32-bit word and lane bits 0 and 1 must go through 16 consecutive bytes, and lane bits 2 to 4 step rows. With `.trans`,
//! lane bits 2 to 4 go through the 16 bytes, and the register within a word and lane bits 0 and 1 step rows. Elements of 8
//! or 32 bits move as pairs or halves of 16-bit ones, without `.trans` only.

use smallvec::SmallVec;

use crate::access::{Images, Offset, ThreadOffset, Window};
use crate::distribute::Coord;
use crate::f2::{Vectors, combine, log2};
use crate::linear::{Dim, LinearLayout};
use crate::shared::SharedLayout;
use crate::tile::TileLayout;

/// One `ldmatrix` or `stmatrix` of a warp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatrixInstruction {
    /// The registers of the tile that it moves: those of matrix 0 first, for each matrix `pack` that share a 32-bit word,
    /// the low bits first.
    pub registers: SmallVec<[u32; 8]>,
    /// The constant part of the row addresses, combined with [`MatrixAccess::address`] as in
    /// [`SharedAccess`](crate::SharedAccess).
    pub offset: Offset,
}

/// How to move a tile with `ldmatrix` or `stmatrix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatrixAccess {
    /// Whether the `.trans` form is needed.
    pub trans: bool,
    /// Matrices an instruction moves: 1, 2 or 4.
    pub count: u32,
    /// Elements in a 32-bit word.
    pub pack: u32,
    /// The instructions, each register of the tile in one of them.
    pub instructions: Vec<MatrixInstruction>,
    /// The row address that each lane gives, in elements. With fewer than four matrices, lanes without a row repeat
    /// another one's address.
    pub address: ThreadOffset,
}

impl MatrixAccess {
    /// Plans how to move `tile` between registers and `shared`; `None` where the instructions don't fit.
    pub fn new(tile: &TileLayout, shared: &SharedLayout, elem_bits: u32) -> Option<Self> {
        let origin: Coord = tile.shape().iter().map(|_| 0).collect();
        if tile.shape() == shared.shape() { Self::in_window(tile, shared, &origin, elem_bits) } else { None }
    }

    /// [`new`](Self::new) for a tile that is a part of the buffer, its first element at `origin`: see
    /// [`SharedAccess::in_window`](crate::SharedAccess::in_window).
    pub fn in_window(
        tile: &TileLayout,
        shared: &SharedLayout,
        origin: &[u32],
        elem_bits: u32,
    ) -> Option<Self> {
        let window = Window::new(tile, shared, origin).ok()?;
        if tile.num_lanes() != 32 || !matches!(elem_bits, 8 | 16 | 32) || window.leaves_buffer() {
            return None;
        }
        let images = Images::new(tile, shared).ok()?;
        let (chunk, pack) = (128 / elem_bits, 32 / elem_bits);
        let pack_bits = log2(pack) as usize;
        let thread = images.thread();
        let (lane, register) = (&thread.lane, &images.register);
        let (word, others) = register.split_at_checked(pack_bits)?;

        let row: SmallVec<[Offset; 8]> = word.iter().chain(&lane[..2]).copied().collect();
        let column: SmallVec<[Offset; 8]> = lane[2..5].iter().copied().collect();
        let (row, steps, trans) = if consecutive(&row) {
            (row, column, false)
        } else if elem_bits == 16 && consecutive(&column) {
            (column, row, true)
        } else {
            return None;
        };
        debug_assert_eq!(1 << row.len(), chunk);
        // Everything else steps over whole rows.
        let aligned = |o: &Offset| (o.xor | o.add) & (chunk - 1) == 0;
        let mut rest = steps.iter().chain(others).chain(&thread.warp).copied().chain(window.reps());
        let padding = shared.padding().map_or(0, |p| p.interval | p.pad);
        if !rest.all(|o| aligned(&o)) || padding & (chunk - 1) != 0 {
            return None;
        }

        let matrix_bits = others.len().min(2);
        let mut address = ThreadOffset { lane: steps, warp: thread.warp.clone() };
        address.lane.extend(others[..matrix_bits].iter().copied());
        address.lane.resize(5, Offset::default());
        let per_instruction = pack_bits + matrix_bits;
        let of_bits: Vectors = (0..per_instruction).map(|b| 1 << b).collect();
        let firsts = (0..tile.num_registers()).step_by(1 << per_instruction);
        let instructions = firsts.map(|first| {
            let registers = (0..1u64 << per_instruction).map(|k| first + combine(&of_bits, k)).collect();
            MatrixInstruction { registers, offset: window.offset(&tile.register_coord(first)) }
        });
        Some(Self { trans, count: 1 << matrix_bits, pack, instructions: instructions.collect(), address })
    }

    /// The offset (in elements, with the buffer's padding) of the row that a lane addresses.
    pub fn offset(
        &self,
        instruction: &MatrixInstruction,
        shared: &SharedLayout,
        lane: u32,
        warp: u32,
    ) -> u32 {
        shared.pad(self.address.at(lane, warp).combine(instruction.offset).value())
    }

    /// Whether the constant of an instruction can be an immediate offset: XOR with it is addition in every thread.
    pub fn is_immediate(&self, instruction: &MatrixInstruction) -> bool {
        self.address.xor_bits() & instruction.offset.xor == 0
    }
}

/// The layout of a warp's 16-byte rows, without and with `.trans`, as a swizzle wants to know it: what a row goes through as
/// registers, the steps from row to row of a matrix as lanes. Each with the directions of its row.
pub(crate) fn matrix_rows(layout: &LinearLayout, elem_bits: u32) -> Vec<(LinearLayout, Vectors)> {
    let (register, lane) = (layout.flat_bases(Dim::Register), layout.flat_bases(Dim::Lane));
    if lane.len() != 5 || !matches!(elem_bits, 8 | 16 | 32) {
        return Vec::new();
    }
    let Some((word, others)) = register.split_at_checked(log2(32 / elem_bits) as usize) else {
        return Vec::new();
    };
    let along: Vectors = word.iter().chain(&lane[..2]).copied().collect();
    let across: Vectors = lane[2..].iter().copied().collect();
    let mut forms = vec![(along.clone(), across.clone())];
    if elem_bits == 16 {
        forms.push((across, along));
    }
    let outs: SmallVec<[(Dim, u32); 4]> = layout.out_dims().map(|d| (d, 1 << layout.out_bits(d))).collect();
    let view = |(row, steps): (Vectors, Vectors)| {
        let registers: Vectors = row.iter().chain(others).copied().collect();
        let ins = [
            (Dim::Register, registers.as_slice()),
            (Dim::Lane, steps.as_slice()),
            (Dim::Warp, layout.flat_bases(Dim::Warp)),
        ];
        Some((LinearLayout::from_bases(&ins, &outs).ok()?, row))
    };
    forms.into_iter().filter_map(view).collect()
}

/// Whether the images are offsets 1, 2, 4, ….
fn consecutive(images: &[Offset]) -> bool {
    images.iter().enumerate().all(|(i, o)| *o == Offset { xor: 1 << i, add: 0 })
}
