//! Scratch: the shared memory that an operation needs to move data between threads, and what stays in registers.
//!
//! The allocator and the lowering ask the same functions, so they can't disagree.
//!
//! | operation | scratch |
//! | --- | --- |
//! | `ttg.convert_layout` | what [`conversion`] says |
//! | `tt.reduce` | per operand: one element per result element and warp along the axis, at `result index × warps + warp` (result index in row-major order of the reduced shape); an operand's part begins at a multiple of 16 bytes |
//! | `tt.scan` | the same, with one element per run of a warp along the axis, for as many lines as one of [`scan_rounds`] has |
//! | `tt.atomic_rmw`, `tt.atomic_cas` | a scalar's old value; a tensor's old values (row-major) where threads hold copies |
//! | `ttng.cluster_exchange` | the registers of all threads, register by register; a number once |
//! | what [rearranges](tilewright_ir::index::Index::rearranges) elements (`tt.trans`, `tt.reshape`, `tt.join`, …) | the operands, unless [`reindex_registers`]: in the source's row-major order, or in the result's where there are several operands |
//! | `tt.cat` | the operands, one after the other, unless [`reindex_registers`] |
//! | `tt.gather` | the source, row-major, or as much of it as [`gather_part`] says |
//! | `tt.histogram` | the bins |
//! | `ttg.warp_specialize` | 8 bytes for each of its `passed_captures` |
//!
//! Elements of `i1` take a byte.

use smallvec::SmallVec;
use tilewright_ir::dialect::{tt, ttg, ttng};
use tilewright_ir::index::Index;
use tilewright_ir::{Encoding, Module, Op, Opcode, Type, Value};
use tilewright_layout::{
    AxisSpread, ConversionOptions, ConversionPlan, FreeMasks, LayoutError, MatrixAccess, Place, ScanOrder,
    SharedAccess, SharedLayout, SyncScope, TileLayout, plan_conversion_with,
};

use crate::analysis::reindex::{reindex_registers, tile_place, tile_registers};
use crate::analysis::scope;
use crate::analysis::tile_layout::{layout_of, tile_layout};

/// The bytes of one element in shared memory.
pub fn element_bytes(module: &Module, ty: Type) -> u32 {
    module.bits(ty).div_ceil(8).max(1)
}

fn elements(shape: &[u32]) -> u32 {
    shape.iter().product()
}

/// The scratch of a reduction: where each operand's part begins, and the whole in bytes (0: no warps share the axis).
pub fn reduce_scratch(module: &Module, op: tt::Reduce) -> (SmallVec<[u32; 2]>, u32) {
    let axis = op.axis(module) as usize;
    per_line(module, op.srcs(module), axis, 1, |layout| match AxisSpread::of(layout, axis) {
        Some(spread) if !spread.warps.is_empty() => 1 << spread.warps.len(),
        _ => 0,
    })
}

/// The scratch of a scan: one element for each run of the axis that a warp holds. 0 where each warp holds whole lines.
pub fn scan_scratch(module: &Module, op: tt::Scan) -> (SmallVec<[u32; 2]>, u32) {
    let rounds = scan_rounds(module, op).map_or(1, |rounds| rounds.count);
    scan_scratch_of(module, op, rounds)
}

fn scan_scratch_of(module: &Module, op: tt::Scan, rounds: u32) -> (SmallVec<[u32; 2]>, u32) {
    let axis = op.axis(module) as usize;
    per_line(module, op.srcs(module), axis, rounds, |layout| match ScanOrder::of(layout, axis) {
        Some(h) if h.warps > 1 => layout.physical(axis) / (h.run * h.lanes),
        _ => 0,
    })
}

/// The lines of a scan in groups that have the same scratch memory, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanRounds {
    /// The dimension that is divided.
    pub dim: usize,
    /// How many neighbouring indices of it are apart from others, a power of two.
    pub part: u32,
    /// Of these a round has those with the same so many low bits.
    pub low: u32,
    /// How many rounds there are.
    pub count: u32,
}

impl ScanRounds {
    /// The round of an index of the dimension.
    pub fn round_of(&self, index: u32) -> u32 {
        (index / self.part) << self.low | index & ((1 << self.low) - 1)
    }

    /// How many indices of the dimension a round has: those of neighbouring parts are the same ones.
    pub fn rows(&self) -> u32 {
        self.part >> self.low
    }
}

/// Scratch from which on a scan's lines go in rounds, and of a gather's source a part: less than any target's shared memory, and more than most want.
const WHOLE: u32 = 64 << 10;

/// Scratch up to which a gather's source is there whole, which takes a fraction of the instructions: as much as `cuda:80` has.
const GATHERED: u32 = 160 << 10;

/// The fewest rounds with which the scratch of a scan is no more than 64 KiB, or else those with the least of it; `None` where one is enough. In which round a line
/// goes follows from the register alone, so that all threads take part in each.
pub fn scan_rounds(module: &Module, op: tt::Scan) -> Option<ScanRounds> {
    let axis = op.axis(module) as usize;
    let bytes = |rounds: u32| scan_scratch_of(module, op, rounds).1;
    if bytes(1) <= WHOLE {
        return None;
    }
    let layout = layout_of(module, op.srcs(module)[0])?;
    let mut found: Vec<ScanRounds> = Vec::new();
    for dim in (0..layout.rank()).filter(|&d| d != axis && !layout.needs_bounds_predicate(d)) {
        let of_threads = layout.thread_bits(dim);
        let unit = layout.unit()[dim];
        let mut part = unit;
        while part > of_threads {
            for low in 0..=of_threads.trailing_zeros().min(part.ilog2()) {
                found.push(ScanRounds { dim, part, low, count: (layout.shape()[dim] / part) << low });
            }
            part /= 2;
        }
    }
    found.retain(|rounds| rounds.count > 1);
    found.into_iter().min_by_key(|rounds| (bytes(rounds.count).max(WHOLE), rounds.count))
}

/// How many elements of a gather's source lie in scratch memory at once, as they follow each other in row-major order: all, or of more than 160 KiB of them 64 KiB.
pub fn gather_part(module: &Module, op: tt::Gather) -> u32 {
    let ty = module.value_type(op.src(module));
    let (all, bytes) = (elements(module.shape(ty).unwrap_or(&[])), element_bytes(module, ty));
    if all * bytes <= GATHERED { all } else { WHOLE / bytes }
}

fn per_line(
    module: &Module,
    srcs: &[Value],
    axis: usize,
    rounds: u32,
    each: impl Fn(&TileLayout) -> u32,
) -> (SmallVec<[u32; 2]>, u32) {
    let mut offsets = SmallVec::new();
    let mut at = 0u32;
    for &src in srcs {
        let ty = module.value_type(src);
        let Some(layout) = tile_layout(module, ty) else { continue };
        let lines = elements(layout.shape()) / layout.shape()[axis] / rounds;
        offsets.push(at);
        at += (lines * each(&layout) * element_bytes(module, ty)).next_multiple_of(16);
    }
    (offsets, at)
}

/// The bytes of scratch that an operation needs; 0 for one that needs none. Buffers (`ttg.local_alloc`) are not scratch.
pub fn scratch_bytes(module: &Module, op: Op) -> u32 {
    let whole = |v: Value| {
        let ty = module.value_type(v);
        elements(module.shape(ty).unwrap_or(&[])) * element_bytes(module, ty)
    };
    let all_operands = || module.operands(op).iter().map(|&v| whole(v)).sum();
    match module.opcode(op) {
        Some(Opcode::Ttg(ttg::Kind::ConvertLayout)) => match conversion(module, ttg::ConvertLayout(op)) {
            Ok(ConversionPlan::SharedMemory(plan)) => plan.scratch_bytes,
            _ => 0,
        },
        Some(Opcode::Tt(tt::Kind::Reduce)) => reduce_scratch(module, tt::Reduce(op)).1,
        Some(Opcode::Tt(tt::Kind::Scan)) => scan_scratch(module, tt::Scan(op)).1,
        Some(Opcode::Tt(tt::Kind::AtomicRmw | tt::Kind::AtomicCas)) => {
            let result = module.results(op)[0];
            if shares_old_values(module, op) {
                whole(result).max(element_bytes(module, module.value_type(result)))
            } else {
                0
            }
        }
        Some(Opcode::Tt(tt::Kind::Gather)) => {
            let gather = tt::Gather(op);
            gather_part(module, gather) * element_bytes(module, module.value_type(gather.src(module)))
        }
        Some(Opcode::Tt(tt::Kind::ExtractTile | tt::Kind::InsertTile)) => {
            match (tile_registers(module, op), tile_place(module, op)) {
                (None, Some(_)) if tt::ExtractTile::cast(module, op).is_some() => {
                    whole(module.operands(op)[0])
                }
                (None, Some(place)) => whole(place.tile),
                _ => 0,
            }
        }
        Some(Opcode::Tt(tt::Kind::Histogram)) => whole(module.result(op)),
        Some(Opcode::Ttng(ttng::Kind::ClusterExchange)) => {
            let src = module.operands(op)[0];
            let threads = scope::warp_size(module) * scope::num_warps(module, op);
            let registers = layout_of(module, src).map(|l| l.num_registers() * threads);
            registers.unwrap_or(1) * element_bytes(module, module.value_type(src))
        }
        Some(Opcode::Ttg(ttg::Kind::WarpSpecialize)) => {
            8 * ttg::WarpSpecialize(op).passed_captures(module).len() as u32
        }
        // A tensor map.
        Some(Opcode::Ttng(ttng::Kind::TensormapCreate)) => 128,
        _ => match module.def(op).map(|d| d.index) {
            // These never move data: their layouts follow from each other.
            Some(Index::Broadcast | Index::ExpandDims(_)) | None => 0,
            // What lies in shared memory is only looked at otherwise.
            Some(_) if module.results(op).iter().any(|&v| !module.is_tensor(module.value_type(v))) => 0,
            Some(index) if index.rearranges() || index == Index::Concat => {
                if reindex_registers(module, op).is_some() { 0 } else { all_operands() }
            }
            Some(_) => 0,
        },
    }
}

/// The module's attribute that stands where warps store matrices to shared memory.
pub const STMATRIX: &str = "ttg.stmatrix";

/// Whether an atomic operation's old values are used by threads that did not get them: those with copies, or all but one where
/// it is one operation of the CTA.
pub fn shares_old_values(module: &Module, op: Op) -> bool {
    let result = module.results(op)[0];
    !module.is_unused(result) && layout_of(module, result).is_none_or(|l| has_copies(module, op, &l))
}

/// Whether an element of a tile is held several times.
pub(crate) fn has_copies(module: &Module, op: Op, tile: &TileLayout) -> bool {
    tile.free_variable_masks() != FreeMasks::default() || tile.num_warps() < scope::num_warps(module, op)
}

/// Whether warps store matrices to shared memory on the module's target. Who asks is [`conversion`], of scratch, and
/// [`matrix_store`], of buffers.
fn has_stmatrix(module: &Module) -> bool {
    module.op_attr(module.root(), STMATRIX).is_some()
}

/// How warps store the tile `src` to a buffer by matrices, where they do: where it fits them (fragments of tensor cores do), each
/// thread has something to store, and `access`, by which each would store its own elements, is narrower than `widest` bits. An
/// instruction writes 16 bytes a lane, free of bank conflicts where rows are swizzled.
pub fn matrix_store(
    module: &Module,
    op: Op,
    src: Value,
    buffer: &SharedLayout,
    access: &SharedAccess,
    widest: u32,
) -> Option<MatrixAccess> {
    let element = module.value_type(src);
    let bits = 8 * element_bytes(module, element);
    let width = access.accesses.iter().map(|a| a.registers.len() as u32 * bits).min();
    let tile = layout_of(module, src)?;
    let whole = module.bits(element) > 1 && !tile.is_padded() && !has_copies(module, op, &tile);
    if has_stmatrix(module) && width < Some(widest) && whole {
        MatrixAccess::new(&tile, buffer, bits)
    } else {
        None
    }
}

/// How a conversion is done. Where its elements stay in their warps but warps hold copies for which the source's layout has no
/// bits, it waits for the whole CTA: its plan says so.
///
/// # Errors
/// An encoding that doesn't fit the shape, or that nothing can convert.
pub fn conversion(module: &Module, op: ttg::ConvertLayout) -> Result<ConversionPlan, LayoutError> {
    let layout = |v: Value| {
        let ty = module.value_type(v);
        let encoding = module.encoding(ty).and_then(|e| module.encoding_of(e));
        let encoding =
            encoding.ok_or_else(|| LayoutError::new("a conversion of what is no laid-out tensor"))?;
        TileLayout::new(encoding, module.shape(ty).unwrap_or(&[]))
    };
    let (src, dst) = (layout(op.src(module))?, layout(op.result(module))?);
    let bits = module.bits(module.value_type(op.src(module))).max(8);
    let options = ConversionOptions { stmatrix: has_stmatrix(module), ..ConversionOptions::default() };
    let mut plan = plan_conversion_with(&src, &dst, bits, options)?;
    if let ConversionPlan::SharedMemory(p) = &mut plan
        && src.num_warps() != scope::num_warps(module, op.0)
    {
        p.scope = SyncScope::Cta;
    }
    Ok(plan)
}

/// Whether a conversion moves no data between threads.
pub fn stays_in_registers(src: &Encoding, dst: &Encoding, shape: &[u32]) -> bool {
    let axes: SmallVec<[Place; 4]> = (0..shape.len() as u8).map(Place::Axis).collect();
    match (TileLayout::new(src, shape), TileLayout::new(dst, shape)) {
        (Ok(s), Ok(d)) => d.registers_from(&s, &axes).is_some(),
        _ => false,
    }
}
