//! Which buffers are in the local memories of an accelerator's core at the same time, where they lie, and whether they fit.
//!
//! A buffer is in use from its allocation to the last use of it or of a view; a use in a loop that the allocation is outside of lasts to the
//! end of that loop. What a loop over `num_stages` iterations at a time (`tle.dsa.pipeline`) fills anew in each of them is there as often:
//! then a copy of one iteration need not wait for what the one before still reads. Largest first, each goes to the lowest place that is free
//! as long as it is in use.

use rustc_hash::FxHashMap;
use tilewright_ir::ascend::{self, Space};
use tilewright_ir::dialect::{hivm, scf, ttg};
use tilewright_ir::{Diagnostic, Module, Op, Opcode, TypeKind, Value};

use crate::transform::allocate_shared::buffer_users;

/// The attribute of loops that says how many iterations are under way.
const STAGES: &str = "tt.num_stages";

/// A buffer in a local memory.
#[derive(Debug, Clone)]
pub struct Held {
    /// Its allocation.
    pub alloc: ttg::LocalAlloc,
    /// The memory.
    pub space: &'static Space,
    /// How many bytes each of its slots takes, rounded up to what the memory aligns to.
    pub bytes: u32,
    /// How many slots it has: iterations that are under way at the same time have one each.
    pub slots: u32,
    /// The loop whose iterations go round the slots, if there are several.
    pub pipeline: Option<scf::For>,
    /// The operation, in program order, from which on it is in use.
    pub first: u32,
    /// The last one at which it is.
    pub last: u32,
    /// Where it begins.
    pub offset: u32,
}

impl Held {
    /// Bytes of all slots.
    pub fn total(&self) -> u32 {
        self.bytes.saturating_mul(self.slots)
    }

    /// Whether they cannot have the same bytes. (In the workspace nobody has those of another: what one core is done with others may not be.)
    fn beside(&self, other: &Held) -> bool {
        let together = self.first <= other.last && other.first <= self.last;
        self.space == other.space && (together || self.space == &ascend::WORKSPACE)
    }
}

/// Checks that every local memory holds what is in use at the same time.
///
/// # Errors
/// One that doesn't, with how much each buffer takes and when.
pub fn check(module: &Module) -> Result<(), Diagnostic> {
    plan(module).map(drop)
}

/// The buffers in local memories, each with its place.
///
/// # Errors
/// A memory that cannot hold what is in use at the same time.
pub fn plan(module: &Module) -> Result<Vec<Held>, Diagnostic> {
    let ops = module.all_ops(module.root());
    let numbers: FxHashMap<Op, u32> = ops.iter().zip(0..).map(|(&op, i)| (op, i)).collect();
    let mut held: Vec<Held> = ops.iter().filter_map(|&op| held(module, op, &numbers)).collect();
    for space in memories() {
        let here: Vec<&Held> = held.iter().filter(|h| h.space == space).collect();
        fits(module, space, &here)?;
    }
    place(module, &mut held)?;
    Ok(held)
}

/// The memories that buffers are in.
fn memories() -> impl Iterator<Item = &'static Space> {
    ascend::SPACES.iter().chain([&ascend::WORKSPACE])
}

fn held(module: &Module, op: Op, numbers: &FxHashMap<Op, u32>) -> Option<Held> {
    let alloc = ttg::LocalAlloc::cast(module, op)?;
    let result = alloc.result(module);
    let ty = module.value_type(result);
    let TypeKind::MemDesc { memory_space, .. } = *module.type_kind(ty) else { return None };
    let space = memories().find(|s| s.attribute == ascend::text(module, memory_space))?;
    let elements = module.shape(ty)?.iter().fold(1u32, |n, &e| n.saturating_mul(e));
    let bytes = elements.saturating_mul(module.bits(ty).div_ceil(8)).checked_next_multiple_of(space.align);
    let first = numbers[&op];
    let mut last = first;
    let home = module.parent_block(op)?;
    for user in buffer_users(module, result) {
        // All of a loop that it is used in and not made in.
        let Some(outer) = module.ancestor_in_block(home, user) else { continue };
        let mut end = numbers[&outer];
        module.walk(outer, &mut |inner| end = end.max(numbers[&inner]));
        last = last.max(end);
    }
    let pipeline = pipeline_of(module, op, result);
    let slots = pipeline.map_or(1, |(_, stages)| stages);
    let pipeline = pipeline.map(|(l, _)| l);
    if let Some(l) = pipeline {
        // A slot is in use while others are filled.
        last = last.max(numbers[&l.0]);
        module.walk(l.0, &mut |inner| last = last.max(numbers[&inner]));
    }
    let bytes = bytes.unwrap_or(u32::MAX);
    let first = pipeline.map_or(first, |l| first.min(numbers[&l.0]));
    Some(Held { alloc, space, bytes, slots, pipeline, first, last, offset: 0 })
}

/// The loop that goes round the slots of a buffer, and how many these are: one with several stages, each iteration of which fills all of
/// the buffer before it reads it, and outside of which nobody does.
fn pipeline_of(module: &Module, alloc: Op, buffer: Value) -> Option<(scf::For, u32)> {
    let users = buffer_users(module, buffer);
    let mut parents = users.iter().filter_map(|&user| module.parent_block(user));
    let block = parents.next()?;
    let looped = scf::For::cast(module, module.block_parent_op(block)?)?;
    let stages = u32::try_from(module.int_attr(looped.0, STAGES)?).ok().filter(|&n| n > 1)?;
    let inside = users.iter().all(|&user| module.is_ancestor(looped.0, user));
    let own = module.is_ancestor(looped.0, alloc);
    let first = users
        .iter()
        .filter(|&&u| module.parent_block(u) == Some(block))
        .copied()
        .reduce(|a, b| if module.is_before(a, b) { a } else { b })?;
    let moved = users.iter().any(|&user| moves(module, user));
    (moved && inside && (own || fills(module, first, buffer))).then_some((looped, stages))
}

/// Whether an operation is a copy, which goes on beside what computes.
fn moves(module: &Module, op: Op) -> bool {
    use hivm::Kind as H;
    use ttg::Kind as T;
    matches!(
        module.opcode(op),
        Some(
            Opcode::Ttg(T::CopyGlobalToLocal | T::CopyLocalToGlobal | T::CopyLocal)
                | Opcode::Hivm(H::Load | H::Store | H::Copy | H::Nd2nz | H::Fixpipe)
        )
    )
}

/// Whether an operation writes all of a buffer.
fn fills(module: &Module, op: Op, buffer: Value) -> bool {
    if let Some(store) = ttg::LocalStore::cast(module, op) {
        return store.dst(module) == buffer;
    }
    if let Some(Opcode::Hivm(_)) = module.opcode(op) {
        let first = module.operands(op).iter().position(|&v| v == buffer);
        return first.is_some_and(|i| hivm::written(module, op).contains(&i));
    }
    let whole = module.shape(module.value_type(buffer)).unwrap_or(&[]);
    let (src, dst, extents) =
        match (ttg::CopyGlobalToLocal::cast(module, op), ttg::CopyLocal::cast(module, op)) {
            (Some(copy), _) => (copy.src(module), copy.dst(module), copy.extents(module)),
            (None, Some(copy)) => (copy.src(module), copy.dst(module), copy.extents(module)),
            (None, None) => return false,
        };
    let known: Vec<Option<i64>> = extents.iter().map(|&e| module.constant_int(e)).collect();
    src != buffer && dst == buffer && known.iter().zip(whole).all(|(n, &all)| *n == Some(i64::from(all)))
}

/// Checks that what is in use at the same time is no more than a memory holds.
fn fits(module: &Module, space: &Space, held: &[&Held]) -> Result<(), Diagnostic> {
    let together = |at: u32| held.iter().filter(move |h| h.first <= at && at <= h.last);
    let sum = |at: u32| together(at).map(|h| u64::from(h.total())).sum::<u64>();
    let Some(at) = held.iter().map(|h| h.first).max_by_key(|&at| (sum(at), std::cmp::Reverse(at))) else {
        return Ok(());
    };
    if sum(at) <= u64::from(space.bytes) {
        return Ok(());
    }
    Err(overflow(module, space, together(at).copied(), sum(at)))
}

/// The error about a memory that is too small for these buffers.
fn overflow<'h>(
    module: &Module,
    space: &Space,
    held: impl Iterator<Item = &'h Held>,
    needed: u64,
) -> Diagnostic {
    let mut largest: Vec<&Held> = held.collect();
    largest.sort_by_key(|h| std::cmp::Reverse(h.total()));
    let loc = largest
        .iter()
        .max_by_key(|h| h.first)
        .map_or(tilewright_ir::Loc::UNKNOWN, |h| module.op_loc(h.alloc.0));
    let text = format!(
        "buffers of {needed} bytes are in use at the same time in {}, which holds {}",
        space.name, space.bytes
    );
    let mut error = Diagnostic::at(module, loc, text);
    let lines = lines(module);
    for h in largest {
        let result = h.alloc.result(module);
        let name = module.value_name(result).unwrap_or("a buffer");
        let ty = module.value_type(result);
        let shape = module.shape(ty).unwrap_or(&[]);
        let element = tilewright_ir::print_type(module, module.element_type(ty));
        let slots =
            if h.slots > 1 { format!(", {} times for as many iterations", h.slots) } else { String::new() };
        let during = lines(h.first, h.last);
        let during = during.map_or(String::new(), |(a, b)| format!(", in use from line {a} to line {b}"));
        error.notes.push(format!("{} bytes: {name}, {shape:?} of {element}{slots}{during}", h.total()));
    }
    error.note("use smaller blocks, use one buffer again where its content is done with, or fewer stages")
}

/// The first and the last source line of operations between two numbers, in the file where the first of them that has one stands.
fn lines(module: &Module) -> impl Fn(u32, u32) -> Option<(u32, u32)> {
    let span = |op: Op| Diagnostic::at(module, module.op_loc(op), "").span;
    let spans: Vec<_> = module.all_ops(module.root()).into_iter().map(span).collect();
    move |first, last| {
        let known = || spans[first as usize..=last as usize].iter().flatten();
        let file = &known().next()?.file;
        let lines = || known().filter(|s| s.file == *file).map(|s| s.line);
        lines().min().zip(lines().max())
    }
}

/// Gives each buffer its place.
fn place(module: &Module, held: &mut [Held]) -> Result<(), Diagnostic> {
    let mut order: Vec<usize> = (0..held.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(held[i].total()), held[i].first));
    let mut placed: Vec<usize> = Vec::new();
    for i in order {
        let mut taken: Vec<(u32, u32)> = placed
            .iter()
            .map(|&p| &held[p])
            .filter(|p| p.beside(&held[i]))
            .map(|p| (p.offset, p.offset + p.total()))
            .collect();
        taken.sort_unstable();
        let mut at = 0;
        for (from, to) in taken {
            if at + held[i].total() > from {
                at = at.max(to);
            }
        }
        if at + held[i].total() > held[i].space.bytes {
            let beside = held.iter().filter(|h| h.beside(&held[i]));
            let needed = u64::from(at) + u64::from(held[i].total());
            return Err(overflow(module, held[i].space, beside, needed)
                .note("some lie between others of other lives"));
        }
        held[i].offset = at;
        placed.push(i);
    }
    Ok(())
}
