//! Scratch: the shared memory that an operation needs to move data between threads, and what stays in registers.
//!
//! The allocator and the lowering ask the same functions, so they can't disagree.
//!
//! | operation | scratch |
//! | --- | --- |
//! | `ttg.convert_layout` | what `plan_conversion_with` says for elements of at least 8 bits |
//! | `tt.reduce` | per operand: one element per result element and warp along the axis, at `result index × warps + warp` (result index in row-major order of the reduced shape); an operand's part begins at a multiple of 16 bytes |
//! | `tt.scan` | the same, with one element per run of a warp along the axis |
//! | `tt.atomic_rmw`, `tt.atomic_cas` | a scalar's old value; a tensor's old values (row-major) where threads hold copies |
//! | `ttng.cluster_exchange` | the registers of all threads, register by register; a number once |
//! | `tt.trans`, `tt.reshape`, `tt.join`, `tt.split`, `tt.cat` | the source (row-major index of the result) unless [`reindex_registers`] |
//! | `tt.gather` | the source, row-major |
//! | `tt.histogram` | the bins |
//! | `ttg.warp_specialize` | 8 bytes for each of its `passed_captures` |
//!
//! Elements of `i1` take a byte.

use smallvec::SmallVec;
use tilewright_ir::dialect::{tt, ttg, ttng};
use tilewright_ir::{Encoding, Module, Op, Opcode, Type, Value};
use tilewright_layout::{
    ConversionOptions, ConversionPlan, Dim, ScanOrder, TileLayout, plan_conversion_with,
};

use crate::scope;

/// The layout of a tensor type; `None` for anything else or an encoding that does not fit.
pub fn tile_layout(module: &Module, ty: Type) -> Option<TileLayout> {
    let enc = module.encoding_of(module.encoding(ty)?)?;
    TileLayout::new(enc, module.shape(ty)?).ok()
}

fn layout_of(module: &Module, value: Value) -> Option<TileLayout> {
    tile_layout(module, module.value_type(value))
}

/// The bytes of one element in shared memory.
pub fn element_bytes(module: &Module, ty: Type) -> u32 {
    module.bits(ty).div_ceil(8).max(1)
}

fn elements(shape: &[u32]) -> u32 {
    shape.iter().product()
}

/// How many warps share the elements along an axis.
pub fn warps_along(layout: &TileLayout, axis: usize) -> u32 {
    1 << layout.thread_bits_along(axis).warp.count_ones()
}

/// The scratch of a reduction: where each operand's part begins, and the whole in bytes (0: no warps share the axis).
pub fn reduce_scratch(module: &Module, op: tt::Reduce) -> (SmallVec<[u32; 2]>, u32) {
    let axis = op.axis(module) as usize;
    per_line(module, op.srcs(module), axis, |layout| match warps_along(layout, axis) {
        1 => 0,
        n => n,
    })
}

/// The scratch of a scan: one element for each run of the axis that a warp holds. 0 where each warp holds whole lines.
pub fn scan_scratch(module: &Module, op: tt::Scan) -> (SmallVec<[u32; 2]>, u32) {
    let axis = op.axis(module) as usize;
    per_line(module, op.srcs(module), axis, |layout| match ScanOrder::of(layout, axis) {
        Some(h) if h.warps > 1 => layout.physical(axis) / (h.run * h.lanes),
        _ => 0,
    })
}

fn per_line(
    module: &Module,
    srcs: &[Value],
    axis: usize,
    each: impl Fn(&TileLayout) -> u32,
) -> (SmallVec<[u32; 2]>, u32) {
    let mut offsets = SmallVec::new();
    let mut at = 0u32;
    for &src in srcs {
        let ty = module.value_type(src);
        let Some(layout) = tile_layout(module, ty) else { continue };
        let lines = elements(layout.shape()) / layout.shape()[axis];
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
    match module.opcode(op) {
        Some(Opcode::Ttg(ttg::Kind::ConvertLayout)) => {
            let convert = ttg::ConvertLayout(op);
            convert_scratch(module, convert.src(module), convert.result(module))
        }
        Some(Opcode::Tt(tt::Kind::Reduce)) => reduce_scratch(module, tt::Reduce(op)).1,
        Some(Opcode::Tt(tt::Kind::Scan)) => scan_scratch(module, tt::Scan(op)).1,
        Some(Opcode::Tt(tt::Kind::AtomicRmw | tt::Kind::AtomicCas)) => {
            let result = module.results(op)[0];
            let copies = match layout_of(module, result) {
                None => true,
                Some(l) => {
                    let free = l.free_variable_masks();
                    free.lane != 0 || free.warp != 0 || l.num_warps() < scope::num_warps(module, op)
                }
            };
            if module.is_unused(result) || !copies {
                0
            } else {
                whole(result).max(element_bytes(module, module.value_type(result)))
            }
        }
        Some(Opcode::Tt(
            tt::Kind::Trans | tt::Kind::Reshape | tt::Kind::Join | tt::Kind::Split | tt::Kind::Cat,
        )) => {
            if reindex_registers(module, op).is_some() {
                0
            } else {
                module.operands(op).iter().map(|&v| whole(v)).sum()
            }
        }
        Some(Opcode::Tt(tt::Kind::Gather)) => whole(tt::Gather(op).src(module)),
        Some(Opcode::Tt(tt::Kind::Histogram)) => whole(module.result(op)),
        Some(Opcode::Ttng(ttng::Kind::ClusterExchange)) => {
            let src = module.operands(op)[0];
            let registers =
                layout_of(module, src).map(|l| l.num_registers() * 32 * scope::num_warps(module, op));
            registers.unwrap_or(1) * element_bytes(module, module.value_type(src))
        }
        Some(Opcode::Ttg(ttg::Kind::WarpSpecialize)) => {
            8 * ttg::WarpSpecialize(op).passed_captures(module).len() as u32
        }
        // A tensor map.
        Some(Opcode::Ttng(ttng::Kind::TensormapCreate)) => 128,
        _ => 0,
    }
}

/// The module's attribute that stands where warps store matrices to shared memory.
pub const STMATRIX: &str = "ttg.stmatrix";

/// What conversions may use on the module's target.
pub fn conversion_options(module: &Module) -> ConversionOptions {
    let stmatrix = module.op_attr(module.root(), STMATRIX).is_some();
    ConversionOptions { stmatrix, ..ConversionOptions::default() }
}

fn convert_scratch(module: &Module, src: Value, dst: Value) -> u32 {
    let ty = module.value_type(src);
    let (Some(s), Some(d)) = (layout_of(module, src), layout_of(module, dst)) else { return 0 };
    match plan_conversion_with(&s, &d, module.bits(ty).max(8), conversion_options(module)) {
        Ok(ConversionPlan::SharedMemory(plan)) => plan.scratch_bytes,
        _ => 0,
    }
}

/// Whether lanes and warps contribute the same coordinates in both layouts.
fn same_threads(src: &TileLayout, dst: &TileLayout) -> bool {
    src.unit() == dst.unit()
        && (0..src.rank()).all(|d| {
            src.lane_bases(d) == dst.lane_bases(d) && {
                let (a, b) = (src.warp_bases(d), dst.warp_bases(d));
                let n = a.len().max(b.len());
                (0..n).all(|i| a.get(i).unwrap_or(&0) == b.get(i).unwrap_or(&0))
            }
        })
}

type Coord = SmallVec<[u32; 4]>;

/// For each register of `dst` the register of `src` whose coordinate `back` names.
fn register_map(src: &TileLayout, dst: &TileLayout, back: impl Fn(Coord) -> Coord) -> Option<Vec<u32>> {
    let finder = src.register_finder();
    (0..dst.num_registers()).map(|r| finder.find(&back(dst.register_coord(r)))).collect()
}

/// Whether a conversion moves no data between threads.
pub fn stays_in_registers(src: &Encoding, dst: &Encoding, shape: &[u32]) -> bool {
    match (TileLayout::new(src, shape), TileLayout::new(dst, shape)) {
        (Ok(s), Ok(d)) => same_threads(&s, &d) && register_map(&s, &d, |c| c).is_some(),
        _ => false,
    }
}

/// For `tt.trans`, `tt.reshape`, `tt.join`, `tt.split` and `tt.cat` that move no data between threads: per result, for
/// each of its registers the operand and the register of it that holds the element. `None` where data must move.
pub fn reindex_registers(module: &Module, op: Op) -> Option<Vec<Vec<(usize, u32)>>> {
    let src = layout_of(module, module.operands(op)[0])?;
    let dst = layout_of(module, module.results(op)[0])?;
    let threads = |f: &dyn Fn(&[u32]) -> Coord| {
        // Lane by lane and warp by warp: the element of the result comes from the same thread.
        let moved = |dim: Dim, a: &TileLayout, b: &TileLayout| {
            let bits = a
                .linear()
                .bases_along(dim, Dim::Axis(0))
                .len()
                .max(b.linear().bases_along(dim, Dim::Axis(0)).len());
            (0..bits).all(|i| {
                let at = |l: &TileLayout| -> Coord {
                    (0..l.rank())
                        .map(|d| l.linear().bases_along(dim, Dim::Axis(d as u8)).get(i).copied().unwrap_or(0))
                        .collect()
                };
                f(&at(b)) == at(a)
            })
        };
        moved(Dim::Lane, &src, &dst) && moved(Dim::Warp, &src, &dst)
    };
    let map = |operand: usize, back: &dyn Fn(&[u32]) -> Coord| -> Option<Vec<(usize, u32)>> {
        let map = register_map(&src, &dst, |c| back(&c))?;
        Some(map.into_iter().map(|r| (operand, r)).collect())
    };
    match module.opcode(op)? {
        Opcode::Tt(tt::Kind::Trans) => {
            let order = tt::Trans(op).order(module);
            let back = |c: &[u32]| {
                let mut out: Coord = c.into();
                for (i, &d) in order.iter().enumerate() {
                    out[d as usize] = c[i];
                }
                out
            };
            if !threads(&back) {
                return None;
            }
            Some(vec![map(0, &back)?])
        }
        Opcode::Tt(tt::Kind::Reshape) => {
            let (from, to) = (src.shape().to_vec(), dst.shape().to_vec());
            // Thread contributions compose by XOR only where nothing carries.
            if from.iter().chain(&to).any(|s| !s.is_power_of_two()) || src.is_padded() || dst.is_padded() {
                return None;
            }
            let back = |c: &[u32]| {
                let mut flat = c.iter().zip(&to).fold(0, |acc, (x, s)| acc * s + x);
                let mut out: Coord = from
                    .iter()
                    .rev()
                    .map(|s| {
                        let x = flat % s;
                        flat /= s;
                        x
                    })
                    .collect();
                out.reverse();
                out
            };
            if !threads(&back) {
                return None;
            }
            Some(vec![map(0, &back)?])
        }
        Opcode::Tt(tt::Kind::Join) => {
            let back = |c: &[u32]| Coord::from(&c[..c.len() - 1]);
            let in_thread = [Dim::Lane, Dim::Warp].iter().all(|&dim| {
                dst.linear().bases_along(dim, Dim::Axis(dst.rank() as u8 - 1)).iter().all(|&b| b == 0)
            });
            if !in_thread || !threads(&back) || layout_of(module, module.operands(op)[1])? != src {
                return None;
            }
            let registers = map(0, &back)?;
            let which = |r: usize| dst.register_coord(r as u32)[dst.rank() - 1] as usize;
            Some(vec![registers.into_iter().enumerate().map(|(i, (_, r))| (which(i), r)).collect()])
        }
        Opcode::Tt(tt::Kind::Split) => {
            let back = |c: &[u32]| c.iter().copied().chain([0]).collect::<Coord>();
            if !threads(&back) {
                return None;
            }
            let second = |c: &[u32]| c.iter().copied().chain([1]).collect::<Coord>();
            Some(vec![map(0, &back)?, map(0, &second)?])
        }
        _ => None,
    }
}
