//! What an operation touches of shared memory, by the effects that it declares, as ranges of bytes.

use tilewright_ir::dialect::{ttg, ttng};
use tilewright_ir::effects::resource;
use tilewright_ir::marks;
use tilewright_ir::opdef::{Access, Completion, Proxy, Resource};
use tilewright_ir::{Module, Op, Opcode, TypeKind, Value};

use super::has_barrier;
use super::state::overlaps;
use super::turns::{Turn, turn_of};
use crate::analysis::{local_pointers, own_bytes, scope, scratch};
use crate::transform::allocate_shared::{buffer_bytes, is_view};

/// Bytes of shared memory, from the first to before the second.
pub(super) type Range = (u32, u32);

/// What is touched of a ring or of another buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Touched {
    /// The bytes among which it is.
    pub range: Range,
    /// Which slot of a ring that is these bytes.
    pub turn: Option<Turn>,
}

impl Touched {
    /// Whether some bytes may be those of another as well.
    pub fn meets(self, other: Touched) -> bool {
        let apart = self.turn.zip(other.turn).is_some_and(|(a, b)| a.is_apart(b));
        overlaps(&[self.range], other.range) && !(self.range == other.range && apart)
    }
}

/// What an operation touches.
#[derive(Debug, Default)]
pub(super) struct Touches {
    pub reads: Vec<Range>,
    /// Read in one slot of a ring.
    pub slot_reads: Vec<Range>,
    pub writes: Vec<Range>,
    pub copies: Vec<Range>,
    /// Whether the copy goes to a slot that is not read between a wait for copies and the copy.
    pub free_slot: bool,
    pub dots: Vec<Range>,
    pub drains: Vec<Range>,
    /// Written by TMA copies, whose end an mbarrier announces.
    pub fills: Vec<Range>,
    /// The same in buffers that are [left alone](leave_alone): they want the proxy fence as others do.
    pub ordered_fills: Vec<Range>,
    /// Written otherwise in buffers that are left alone: what TMA does there later wants the proxy fence.
    pub ordered_writes: Vec<Range>,
    /// Loaded from such buffers.
    pub ordered_reads: Vec<Range>,
    /// Read there by TMA copies to global memory: what writes there later wants them waited for, as elsewhere.
    pub ordered_drains: Vec<Range>,
    /// It has a barrier of its own between its writes and its reads.
    pub barrier_inside: bool,
    /// Its writes and reads are a conversion's within warps, each of which touches a part of its own.
    pub by_warp: bool,
    /// It is a copy or a read of this buffer, of which each thread touches bytes of its own.
    pub of_own: Option<Op>,
    /// Which slots of the rings whose ranges these are.
    turns: Vec<(Range, Option<Turn>)>,
}

impl Touches {
    /// All that is written, by whatever way.
    pub fn written(&self) -> impl Iterator<Item = Range> {
        let lists = [&self.writes, &self.copies, &self.fills, &self.ordered_writes, &self.ordered_fills];
        lists.into_iter().flatten().copied()
    }

    /// All that is read or written, by whatever way.
    pub fn ranges(&self) -> impl Iterator<Item = Range> {
        let read = [
            &self.reads,
            &self.slot_reads,
            &self.dots,
            &self.drains,
            &self.ordered_reads,
            &self.ordered_drains,
        ];
        self.written().chain(read.into_iter().flatten().copied())
    }

    /// All that TMA copies to global memory read.
    pub fn drained(&self) -> Vec<Touched> {
        [&self.drains, &self.ordered_drains].into_iter().flatten().map(|&r| self.touched(r)).collect()
    }

    /// A range, and which slot of it is touched if that is one alone.
    pub fn touched(&self, range: Range) -> Touched {
        let mut turns = self.turns.iter().filter(|(of, _)| *of == range).map(|&(_, turn)| turn);
        let first = turns.next().flatten();
        Touched { range, turn: first.filter(|_| turns.all(|turn| turn == first)) }
    }
}

pub(super) fn touches(module: &Module, op: Op) -> Touches {
    let mut t = Touches {
        free_slot: module.op_attr(op, marks::FREE_SLOT).is_some(),
        of_own: own_bytes::buffer_of(module, op),
        ..Touches::default()
    };
    let offset = module.int_attr(op, marks::ALLOCATION_OFFSET).map(|o| o as u32);
    let alloc = ttg::LocalAlloc::cast(module, op);
    if let Some(alloc) = alloc {
        if alloc.src(module).is_some()
            && let Some(r) = buffer_range(module, alloc.result(module))
        {
            t.writes.push(r);
        }
        return t;
    }
    if let Some(offset) = offset {
        let range = (offset, offset + scratch::scratch_bytes(module, op));
        t.writes.push(range);
        t.reads.push(range);
        t.barrier_inside = has_barrier(module, op);
        t.by_warp = !t.barrier_inside && ttg::ConvertLayout::cast(module, op).is_some();
    }
    let Some(def) = module.def(op) else { return t };
    // The left operand of a warp-group dot may be in registers: then there is no buffer to read.
    for effect in def.effects {
        if resource(module, op, effect) != Resource::Shared {
            continue;
        }
        let Some(group) = effect.operand.and_then(|name| def.group(name)) else { continue };
        for &value in module.operand_group(op, group) {
            if module.is_shared_pointer(module.value_type(value)) {
                let (ranges, alone) = pointed_to(module, value, &mut t.turns);
                match (effect.access, alone) {
                    (Access::Read, false) => t.reads.extend(ranges),
                    (Access::Read, true) => t.ordered_reads.extend(ranges),
                    (_, false) => t.writes.extend(ranges),
                    (_, true) => t.ordered_writes.extend(ranges),
                }
                continue;
            }
            if !matches!(module.type_kind(module.value_type(value)), TypeKind::MemDesc { .. }) {
                continue;
            }
            let known = buffer_range(module, value);
            t.turns.extend(known.map(|range| (range, turn_of(module, value))));
            if is_left_alone(module, value) {
                let range = || known.unwrap_or((0, u32::MAX));
                match (effect.access, effect.completion) {
                    (Access::Write, Completion::Mbarrier) => t.ordered_fills.push(range()),
                    (Access::Write, _) => t.ordered_writes.push(range()),
                    (Access::Read, Completion::Stores) => t.ordered_drains.push(range()),
                    (Access::Read, _) if effect.proxy == Proxy::Generic => t.ordered_reads.push(range()),
                    _ => {}
                }
                continue;
            }
            let range = known.unwrap_or((0, u32::MAX));
            match (effect.access, effect.completion) {
                (Access::Read, Completion::Dots) if is_under_way(module, op) => t.dots.push(range),
                (Access::Read, Completion::Stores) => t.drains.push(range),
                (Access::Read, _) if is_slot(module, value) => t.slot_reads.push(range),
                (Access::Read, _) => t.reads.push(range),
                (Access::Write, Completion::Copies) => t.copies.push(range),
                (Access::Write, Completion::Mbarrier) => t.fills.push(range),
                (Access::Write, _) => t.writes.push(range),
                _ => {}
            }
        }
    }
    t
}

/// The bytes of the buffers that pointers point into, and whether all of these are left alone.
fn pointed_to(
    module: &Module,
    pointers: Value,
    turns: &mut Vec<(Range, Option<Turn>)>,
) -> (Vec<Range>, bool) {
    let Some(buffers) = local_pointers::buffers(module, pointers) else {
        return (vec![(0, u32::MAX)], false);
    };
    let alone = !buffers.is_empty() && buffers.iter().all(|&b| is_left_alone(module, b));
    let ranges: Option<Vec<Range>> = buffers.iter().map(|&b| buffer_range(module, b)).collect();
    if let Some(ranges) = &ranges {
        turns.extend(ranges.iter().zip(&buffers).map(|(&range, &b)| (range, turn_of(module, b))));
    }
    (ranges.unwrap_or_else(|| vec![(0, u32::MAX)]), alone)
}

/// Whether a dot is still under way behind its operation; else it has waited for itself.
fn is_under_way(module: &Module, op: Op) -> bool {
    ttng::WarpGroupDot::cast(module, op).is_none_or(|dot| dot.is_async(module))
}

/// Whether a value is (a view of) a buffer that is left alone.
fn is_left_alone(module: &Module, value: Value) -> bool {
    let Some(op) = module.defining_op(scope::captured(module, value)) else { return false };
    match module.opcode(op) {
        Some(Opcode::Ttg(ttg::Kind::LocalAlloc)) => module.op_attr(op, marks::ORDERED).is_some(),
        _ => is_view(module, op) && is_left_alone(module, module.operands(op)[0]),
    }
}

/// Whether a value is a view of one slot of a ring.
fn is_slot(module: &Module, value: Value) -> bool {
    let op = module.defining_op(scope::captured(module, value));
    op.is_some_and(|op| match module.opcode(op) {
        Some(Opcode::Ttg(ttg::Kind::MemdescIndex)) => true,
        Some(Opcode::Ttg(ttg::Kind::MemdescSubslice | ttg::Kind::MemdescTrans)) => {
            is_slot(module, module.operands(op)[0])
        }
        _ => false,
    })
}

/// The bytes of the buffer that a value is (a view of); `None` where it can't be told. A slot of a ring is its own bytes where
/// its number is known.
fn buffer_range(module: &Module, value: Value) -> Option<Range> {
    let mut at = value;
    let mut slot: Option<Range> = None;
    loop {
        at = scope::captured(module, at);
        let op = module.defining_op(at)?;
        match module.opcode(op)? {
            Opcode::Ttg(ttg::Kind::LocalAlloc) => {
                let offset = module.int_attr(op, marks::ALLOCATION_OFFSET)? as u32;
                let (bytes, _) = buffer_bytes(module, module.value_type(at)).ok()?;
                let (begin, end) = slot.unwrap_or((0, bytes));
                return Some((offset + begin, offset + end));
            }
            Opcode::Ttg(ttg::Kind::MemdescIndex) => {
                let index = ttg::MemdescIndex(op);
                // Of several indices the outermost alone is looked at.
                slot = module.constant_int(index.index(module)).and_then(|i| {
                    let (bytes, _) = buffer_bytes(module, module.value_type(index.result(module))).ok()?;
                    let begin = u32::try_from(i).ok()? * bytes;
                    Some((begin, begin + bytes))
                });
                at = index.src(module);
            }
            Opcode::Ttg(ttg::Kind::MemdescReshape) => at = module.operands(op)[0],
            // A slot of a part is somewhere in the whole.
            _ if is_view(module, op) => (at, slot) = (module.operands(op)[0], None),
            _ => return None,
        }
    }
}
