//! Shared-memory allocation: an offset for every buffer and every operation's scratch, so that what lives at the same
//! time does not overlap.
//!
//! Why here: after the pipeliner, which makes the buffers that count, and before barriers, which need to know what
//! overlaps. Operations are numbered in program order; a buffer lives from its allocation to its last use, where a use
//! inside a loop (or branch) that the allocation is outside of lasts to that loop's end. Scratch lives for its operation;
//! but where a kernel's scratch is small (a few words a warp, for reductions) each keeps a place of its own, which saves
//! the barrier between one operation's reads and the next one's writes. What lies in different regions of a
//! `ttg.warp_specialize` lives at the same time. A called function's memory begins behind that of its callers. Largest first, each goes to the lowest offset that is free for all of its
//! life. If that is too much, buffers that live through loops only so that copies from them go on meanwhile (`tilewright.through_loop`) are given back, one after the other: whether
//! there is a place for one is known here alone, since neither all lives nor what lies between them were when it was made.
//!
//! In a kernel that is written for one warp (`tt.warp_level`) the buffers of all warps (`ttg.all_warps`) come first, none in the memory of another;
//! behind them each warp has memory of its own for the rest, as large as `ttg.warp-shared` says.
//!
//! ```text
//! %0 = ttg.local_alloc %x   (32 KiB, last used before %1)      %0 = ttg.local_alloc %x {allocation.offset = 0}
//! %1 = ttg.local_alloc %y   (16 KiB)                       =>  %1 = ttg.local_alloc %y {allocation.offset = 0}
//! %2 = "tt.reduce"(%z)      (512 bytes of scratch)             %2 = "tt.reduce"(%z) {allocation.offset = 16384}
//!                                                              module: ttg.shared = 32768
//! ```

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::diagnostic::Kind;
use tilewright_ir::dialect::{memref, ttg, ttng};
use tilewright_ir::marks;
use tilewright_ir::{Diagnostic, LocKind, Module, Op, Opcode, Trait, Type, TypeKind, Value, flow, launch};
use tilewright_layout::SharedLayout;

use crate::analysis::calls;
use crate::analysis::scope;
use crate::analysis::scratch::scratch_bytes;
use crate::hopper::{lower_tma, tma};
use crate::pass::{Pass, Property};
use crate::target::TargetInfo;

/// All scratch together may have as many bytes as this without sharing any.
const SMALL_SCRATCH: u32 = 2048;

/// A piece of shared memory and its life, in operation numbers (both ends included).
#[derive(Debug, Clone)]
struct Piece {
    op: Op,
    bytes: u32,
    align: u32,
    first: u32,
    last: u32,
    offset: u32,
}

/// The pass.
pub const PASS: Pass = Pass {
    name: "allocate-shared",
    summary: "place buffers and scratch",
    requires: &[Property::LaidOut, Property::NoRings, Property::WarpsPlaced],
    ensures: &[Property::SharedPlaced],
    run: |m, t, _| run(m, t),
};

/// On the module: bytes of shared memory that each warp has of its own, in a kernel that is written for one.
pub const WARP_BYTES: &str = "ttg.warp-shared";

/// What a called function's memory begins at a multiple of: a 128-byte swizzle repeats after so many bytes.
const FRAME_ALIGNMENT: u32 = 1024;

/// Allocates shared memory for the module's kernel and for what it calls. Where that does not fit, buffers that live through loops for the sake of
/// their stores' copies are given back, one after the other.
///
/// # Errors
/// More is needed than the target has: says how much, how much there is, and which values need it.
pub fn run(module: &mut Module, target: &TargetInfo) -> Result<(), Diagnostic> {
    let frames = loop {
        let frames = frames(module)?;
        let Some(large) = frames.iter().find(|f| f.bytes > target.max_shared) else { break frames };
        match last_through_loop(module, &frames) {
            Some(buffer) => lower_tma::give_back(module, buffer),
            None => return Err(too_much(module, target, &large.pieces, large.bytes)),
        }
    };
    let root = module.root();
    for frame in &frames {
        for p in &frame.pieces {
            module.set_i32_attr(p.op, marks::ALLOCATION_OFFSET, p.offset as i32);
        }
        if let Some(own) = frame.of_warp {
            module.set_i32_attr(root, WARP_BYTES, own as i32);
        }
    }
    let total = frames.iter().map(|f| f.bytes).max().unwrap_or(0);
    module.set_i32_attr(root, "ttg.shared", total as i32);
    Ok(())
}

/// A function's shared memory.
struct Frame {
    pieces: Vec<Piece>,
    /// Where the last of the pieces ends.
    bytes: u32,
    /// How many bytes each warp has of its own, in a kernel that is written for one.
    of_warp: Option<u32>,
}

/// Places the pieces of every function.
fn frames(module: &Module) -> Result<Vec<Frame>, Diagnostic> {
    // Where a function's memory begins: behind that of all that call it.
    let mut begins: FxHashMap<Op, u32> = FxHashMap::default();
    let mut frames = Vec::new();
    for func in callers_first(module) {
        let begin = begins.get(&func).copied().unwrap_or(0);
        let mut pieces = lives(module, func)?;
        let (bytes, of_warp) = match launch::warps_of_program(module) {
            None => (place_from(module, &mut pieces, begin), None),
            Some(warps) => {
                let (bytes, own) = place_for_warps(module, &mut pieces, warps);
                (bytes, Some(own))
            }
        };
        for op in module.all_ops(func) {
            if let Some(callee) = calls::callee(module, op) {
                let at = begins.entry(callee).or_default();
                *at = (*at).max(bytes.next_multiple_of(FRAME_ALIGNMENT));
            }
        }
        frames.push(Frame { pieces, bytes, of_warp });
    }
    Ok(frames)
}

/// Of the buffers that live through loops for the sake of their stores' copies the one that ends last.
fn last_through_loop(module: &Module, frames: &[Frame]) -> Option<ttg::LocalAlloc> {
    let through = |p: &&Piece| module.op_attr(p.op, marks::THROUGH_LOOP).is_some();
    let last = frames.iter().flat_map(|f| &f.pieces).filter(through).max_by_key(|p| p.offset + p.bytes);
    last.map(|p| ttg::LocalAlloc(p.op))
}

/// Places pieces from `begin` on, and says where the last of them ends.
fn place_from(module: &Module, pieces: &mut [Piece], begin: u32) -> u32 {
    place(pieces, |a, b| scope::concurrent(module, a, b));
    for p in &mut *pieces {
        p.offset += begin;
    }
    pieces.iter().map(|p| p.offset + p.bytes).max().unwrap_or(begin)
}

/// Places what all warps of a program have together, and behind it what each has of its own: offsets are those of the first warp. How many
/// bytes that are in all, and how many a warp has.
fn place_for_warps(module: &Module, pieces: &mut [Piece], warps: u32) -> (u32, u32) {
    pieces.sort_by_key(|p| module.op_attr(p.op, marks::ALL_WARPS).is_none());
    let own = pieces.partition_point(|p| module.op_attr(p.op, marks::ALL_WARPS).is_some());
    let (together, own) = pieces.split_at_mut(own);
    // Nothing says when the other warps are done with a buffer: its memory is nobody else's.
    for p in &mut *together {
        (p.first, p.last) = (0, u32::MAX);
    }
    let align = own.iter().map(|p| p.align).max().unwrap_or(1);
    let begin = place_from(module, together, 0).next_multiple_of(align);
    let each = (place_from(module, own, begin) - begin).next_multiple_of(align);
    (begin + each * warps, each)
}

/// The functions of the module, each behind all that call it.
fn callers_first(module: &Module) -> Vec<Op> {
    let functions: Vec<Op> = module.block_ops(module.body()).collect();
    let called: FxHashMap<Op, Vec<Op>> = functions.iter().map(|&f| (f, calls::reached(module, f))).collect();
    let mut order = functions;
    // A caller reaches more than what it calls does.
    order.sort_by_key(|f| std::cmp::Reverse(called[f].len()));
    order
}

/// The bytes and alignment of a buffer type.
///
/// # Errors
/// An encoding that does not fit the shape.
pub fn buffer_bytes(module: &Module, ty: Type) -> Result<(u32, u32), String> {
    let TypeKind::MemDesc { shape, encoding: Some(enc), alloc_shape, .. } = module.type_kind(ty) else {
        return Err("a buffer needs an encoding".into());
    };
    let enc = module.encoding_of(*enc).ok_or("a buffer needs a shared encoding")?;
    let bits = module.bits(ty).max(8);
    let shape = alloc_shape.as_ref().unwrap_or(shape);
    let layout = SharedLayout::new(enc, shape, bits).map_err(|e| e.to_string())?;
    let bytes = layout.allocation_elems() * bits / 8;
    // Swizzled rows of 128 bytes should begin at a bank boundary.
    let align =
        if bytes >= 1024 { layout.alignment_bytes().max(128) } else { layout.alignment_bytes().max(16) };
    Ok((bytes, align))
}

fn lives(module: &Module, func: Op) -> Result<Vec<Piece>, Diagnostic> {
    let ops = module.all_ops(func);
    let mut number: FxHashMap<Op, u32> = FxHashMap::default();
    for (i, &op) in ops.iter().enumerate() {
        number.insert(op, i as u32);
    }
    // The last number inside each operation with regions.
    let mut end: FxHashMap<Op, u32> = FxHashMap::default();
    for &op in ops.iter().rev() {
        let n = number[&op];
        let own = end.get(&op).copied().unwrap_or(n).max(n);
        end.insert(op, own);
        if let Some(p) = module.parent_op(op) {
            let e = end.entry(p).or_insert(0);
            *e = (*e).max(own);
        }
    }
    let mut pieces = Vec::new();
    let mut scratch = Vec::new();
    for &op in &ops {
        let first = number[&op];
        if let Some(alloc) = ttg::LocalAlloc::cast(module, op) {
            let buffer = alloc.result(module);
            let ty = module.value_type(buffer);
            let (bytes, mut align) =
                buffer_bytes(module, ty).map_err(|e| Diagnostic::at(module, module.op_loc(op), e))?;
            let block = module.parent_block(op).expect("an attached operation");
            let users = buffer_users(module, buffer);
            // The memory of an mbarrier that nobody ends can't be used for anything else (PTX ISA, "mbarrier.inval").
            let is_a = |op: Op, kind| module.opcode(op) == Some(Opcode::Ttng(kind));
            let begun = users.iter().any(|&op| is_a(op, ttng::Kind::InitBarrier));
            let ended = users.iter().any(|&op| is_a(op, ttng::Kind::InvalBarrier));
            if users.iter().any(|&op| tma::is_copy(module, op)) {
                align = align.max(tma::BUFFER_ALIGNMENT);
            }
            for alias in users.iter().filter_map(|&op| ttg::MemdescReinterpret::cast(module, op)) {
                align = align.max(alias_alignment(module, alias)?);
            }
            let mut last = if begun && !ended { u32::MAX } else { first };
            // Other CTAs reach it before this one comes to where it is allocated, and behind its last use of it.
            let reached = users.iter().any(|&op| ttg::RemotePtr::cast(module, op).is_some());
            let first = if reached { 0 } else { first };
            if reached {
                last = u32::MAX;
            }
            // What the copy engine brings comes until it is waited for, be it looked at or not.
            let copies = users.iter().filter_map(|&op| ttng::AsyncTmaCopyGlobalToLocal::cast(module, op));
            let barriers = copies.filter_map(|copy| allocation(module, copy.barrier(module)));
            let waits: Vec<Op> = barriers
                .flat_map(|b| buffer_users(module, b.result(module)))
                .filter(|&op| is_a(op, ttng::Kind::WaitBarrier))
                .collect();
            for user in users.into_iter().chain(waits) {
                let at = module.ancestor_in_block(block, user).map_or(u32::MAX, |a| end[&a]);
                last = last.max(at);
            }
            pieces.push(Piece { op, bytes, align, first, last, offset: 0 });
        } else {
            let bytes = scratch_bytes(module, op);
            if bytes > 0 {
                // What a `ttg.warp_specialize` hands over lies there while it runs.
                let last = if ttg::WarpSpecialize::cast(module, op).is_some() { end[&op] } else { first };
                scratch.push(pieces.len());
                pieces.push(Piece { op, bytes, align: 128, first, last, offset: 0 });
            }
        }
    }
    let together: u32 = scratch.iter().map(|&i| pieces[i].bytes.next_multiple_of(128)).sum();
    if together <= SMALL_SCRATCH {
        for i in scratch {
            (pieces[i].first, pieces[i].last) = (0, u32::MAX);
        }
    }
    Ok(pieces)
}

/// What the memory of an alias must begin at a multiple of, and so that of what it shows.
fn alias_alignment(module: &Module, alias: ttg::MemdescReinterpret) -> Result<u32, Diagnostic> {
    let wrong = |text: String| Diagnostic::at(module, module.op_loc(alias.0), text);
    let bytes_of = |v: Value| buffer_bytes(module, module.value_type(v)).map_err(wrong);
    let offset = alias.offset(module).unwrap_or(0) as u32;
    let ((bytes, mut align), (whole, _)) = (bytes_of(alias.result(module))?, bytes_of(alias.src(module))?);
    if buffer_users(module, alias.result(module)).iter().any(|&op| tma::is_copy(module, op)) {
        align = align.max(tma::BUFFER_ALIGNMENT);
    }
    if offset + bytes > whole {
        return Err(wrong(format!(
            "an alias of {bytes} bytes from byte {offset} on does not fit into the {whole} bytes of its buffer"
        )));
    }
    // A slot begins wherever it does, by its number.
    let slot = ttg::MemdescIndex::of(module, scope::captured(module, alias.src(module))).is_some();
    let step = if slot { whole } else { align };
    if !offset.is_multiple_of(align) || !step.is_multiple_of(align) {
        return Err(wrong(format!(
            "the memory of this alias must begin at a multiple of {align} bytes in its buffer"
        ))
        .note("choose `alias_offset_bytes` so, or a layout that asks for less: nv_mma_shared_layout=False"));
    }
    Ok(align)
}

/// The allocation that a buffer is (a view of), seen from inside partitions too.
pub(crate) fn allocation(module: &Module, value: Value) -> Option<ttg::LocalAlloc> {
    let mut at = value;
    loop {
        let op = module.defining_op(scope::captured(module, at))?;
        if let Some(alloc) = ttg::LocalAlloc::cast(module, op) {
            return Some(alloc);
        }
        at = *module.operands(op).first().filter(|_| is_view(module, op))?;
    }
}

/// Whether an operation gives another view of a buffer.
pub(crate) fn is_view(module: &Module, op: Op) -> bool {
    matches!(
        module.opcode(op),
        Some(Opcode::Ttg(
            ttg::Kind::MemdescIndex
                | ttg::Kind::MemdescSubslice
                | ttg::Kind::MemdescSubview
                | ttg::Kind::MemdescTrans
                | ttg::Kind::MemdescReshape
                | ttg::Kind::MemdescReinterpret
        )) | Some(Opcode::Memref(memref::Kind::Subview))
    )
}

/// All operations that use a buffer, a view of it or pointers into it.
pub(crate) fn buffer_users(module: &Module, buffer: Value) -> Vec<Op> {
    let mut users = Vec::new();
    let mut seen = FxHashSet::default();
    let mut work = vec![buffer];
    while let Some(v) = work.pop() {
        for u in module.uses(v) {
            users.push(u.op);
            let local = |&&r: &&Value| {
                let ty = module.value_type(r);
                module.is_shared_pointer(ty) || matches!(module.type_kind(ty), TypeKind::MemDesc { .. })
            };
            if is_view(module, u.op) {
                work.extend(module.results(u.op));
            } else if let Some(w) = ttg::WarpSpecialize::cast(module, u.op) {
                for &region in w.partitions(module) {
                    work.push(module.block_args(module.region_block(region))[u.index as usize]);
                }
            } else if module.has_trait(u.op, Trait::Terminator) || !module.regions(u.op).is_empty() {
                // Carried by control flow: it lives as long as the function.
                let parent = module.parent_op(u.op);
                users.extend(parent);
                let carried = flow::edges_of_user(module, u.op);
                let carried = carried.iter().filter_map(|e| e.target(u.op, u.index as usize));
                // (What a loop carries comes back to it.)
                work.extend(carried.filter(|v| seen.insert(*v)));
            } else {
                work.extend(module.results(u.op).iter().filter(local));
            }
        }
    }
    users
}

/// `concurrent` says whether two operations may run at the same time, although one comes after the other.
fn place(pieces: &mut [Piece], concurrent: impl Fn(Op, Op) -> bool) {
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(pieces[i].bytes), pieces[i].first));
    for n in 0..order.len() {
        let i = order[n];
        let Piece { op, first, last, bytes, align, .. } = pieces[i];
        let mut taken: Vec<(u32, u32)> = order[..n]
            .iter()
            .map(|&j| &pieces[j])
            .filter(|p| (p.first <= last && first <= p.last) || concurrent(p.op, op))
            .map(|p| (p.offset, p.offset + p.bytes))
            .collect();
        taken.sort_unstable();
        let mut at = 0u32;
        for (begin, end) in taken {
            if at + bytes <= begin {
                break;
            }
            at = at.max(end.next_multiple_of(align));
        }
        pieces[i].offset = at;
    }
}

fn too_much(module: &Module, target: &TargetInfo, pieces: &[Piece], bytes: u32) -> Diagnostic {
    // Where the need is greatest: what lives there, largest first.
    let load =
        |at: u32| -> u32 { pieces.iter().filter(|p| p.first <= at && at <= p.last).map(|p| p.bytes).sum() };
    let peak = pieces.iter().map(|p| p.first).max_by_key(|&at| load(at)).unwrap_or(0);
    let mut live: Vec<&Piece> = pieces.iter().filter(|p| p.first <= peak && peak <= p.last).collect();
    live.sort_by_key(|p| std::cmp::Reverse(p.bytes));
    let loc = live.first().map_or(tilewright_ir::Loc::UNKNOWN, |p| module.op_loc(p.op));
    let mut d = Diagnostic::at(
        module,
        loc,
        format!(
            "too much shared memory: the kernel needs {bytes} bytes, {} has {}",
            target.name, target.max_shared
        ),
    );
    for p in live.iter().take(6) {
        let what = match ttg::LocalAlloc::cast(module, p.op) {
            Some(a) => describe(module, module.value_type(a.result(module))),
            None => format!("scratch of {}", module.op_name(p.op)),
        };
        d = d.note(format!("{} bytes: {what}{}", p.bytes, place_of(module, module.op_loc(p.op))));
    }
    d.of(Kind::OutOfResources).note("use smaller blocks or a smaller num_stages")
}

fn describe(module: &Module, ty: Type) -> String {
    let element = match module.type_kind(module.element_type(ty)) {
        TypeKind::Float(k) => k.name().to_string(),
        TypeKind::Int(b) => format!("i{b}"),
        _ => "element".into(),
    };
    let dims: Vec<String> = module.shape(ty).unwrap_or(&[]).iter().map(u32::to_string).collect();
    format!("buffer of {}x{element}", dims.join("x"))
}

fn place_of(module: &Module, loc: tilewright_ir::Loc) -> String {
    match module.loc_kind(loc) {
        LocKind::File { file, line, .. } => {
            let name = file.rsplit('/').next().unwrap_or(file);
            format!(" ({name}:{line})")
        }
        LocKind::Name(_, child) => place_of(module, *child),
        LocKind::CallSite { callee, .. } => place_of(module, *callee),
        LocKind::Fused(v) => v.first().map_or(String::new(), |&l| place_of(module, l)),
        LocKind::Unknown => String::new(),
    }
}
