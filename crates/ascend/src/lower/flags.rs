//! Flags: what the instructions of one queue read, or write over, of what another one's write or read is put in order.
//!
//! Instructions of a core are in the order of the program only within a queue. Two that touch the same memory, one of them to write it, need a flag between their queues:
//! it is raised behind the first and waited for in front of the second, at the level of the program where both (or what they are in) stand side by side. One pair of flags
//! puts all that is before it in one queue in front of all that is behind it in the other, so of several reasons the ones that are met already add nothing. Two instructions
//! of `PIPE_V` need a barrier of that queue.
//!
//! In a loop the next iteration comes after this one: a flag that this iteration raises, the next one waits for; one before the loop is for its first iteration, and one behind it
//! takes what its last one raised. A buffer of several slots is touched again by the iteration that has the same slot: there are as many flags, each for one slot.
//!
//! Global memory that a copy promises no other touches (`inter_no_alias`) is no reason; all other global memory is taken to be the same.
//!
//! ```text
//! hivm.hir.load ins(%x) outs(%a)                        hivm.hir.load ins(%x) outs(%a)
//! hivm.hir.vadd ins(%a, %a) outs(%a)              =>    hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
//!                                                       hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
//!                                                       hivm.hir.vadd ins(%a, %a) outs(%a)
//! ```

use std::fmt::Write as _;

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::hivm::{self, Kind as H, Pipe};
use tilewright_ir::dialect::{arith, memref, scf, ttg};
use tilewright_ir::memref::MemRef;
use tilewright_ir::{Block, Builder, Diagnostic, InsertPoint, Module, Op, Opcode, TypeKind, Value, ascend};
use tilewright_passes::analysis::local_memory::Held;

use super::Slots;
use super::instructions::{Flag as Event, set_flag, wait_flag};
use super::order::{Flag, Order};

/// Flags between two queues.
const EVENTS: u32 = 8;

/// Puts in order what has to be, and says what that was.
///
/// # Errors
/// Control flow that is not supported yet.
pub(super) fn run(module: &mut Module, held: &[Held], slots: &mut Slots) -> Result<String, Diagnostic> {
    let held = held.iter().map(|h| (h.alloc.result(module), h.clone())).collect();
    let mut flags = Flags { m: module, held, slots, events: FxHashMap::default(), report: String::new() };
    for func in flags.m.block_ops(flags.m.body()).collect::<Vec<_>>() {
        for &region in &flags.m.regions(func).to_vec() {
            for block in flags.m.region_blocks(region).to_vec() {
                flags.block(block, None);
            }
        }
    }
    let used: Vec<String> = {
        let mut all: Vec<_> =
            flags.events.iter().map(|(&(p, q), n)| (p.keyword(), q.keyword(), *n)).collect();
        all.sort_unstable();
        all.iter().map(|(p, q, n)| format!("{p} to {q}: {n} of {EVENTS} events\n")).collect()
    };
    Ok(format!("{}{}", flags.report, used.concat()))
}

/// The memory that an instruction touches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    /// A buffer, with the bytes of its memory that it has. Others may have them at other times.
    Buffer { buffer: Value, space: &'static str, from: u32, to: u32 },
    /// Global memory.
    Global,
}

#[derive(Clone, Copy)]
pub(super) struct Access {
    pub pipe: Pipe,
    pub root: Root,
    pub write: bool,
}

/// An operation with all that it, or what is inside, touches.
pub(super) struct Node {
    pub op: Op,
    pub touched: Vec<Access>,
}

/// Two accesses conflict: one writes what the other touches.
pub(super) fn conflict(a: &Access, b: &Access) -> bool {
    let same = match (a.root, b.root) {
        (Root::Global, Root::Global) => true,
        (Root::Buffer { space, from, to, .. }, Root::Buffer { space: other, from: first, to: end, .. }) => {
            space == other && from < end && first < to
        }
        _ => false,
    };
    same && (a.write || b.write)
}

struct Flags<'m> {
    m: &'m mut Module,
    held: FxHashMap<Value, Held>,
    slots: &'m mut Slots,
    /// How many events there are between two queues.
    events: FxHashMap<(Pipe, Pipe), u32>,
    report: String,
}

impl Flags<'_> {
    /// The operations of a block with what they touch, in order.
    fn nodes(&self, block: Block) -> Vec<Node> {
        let mut nodes = Vec::new();
        for op in self.m.block_ops(block) {
            let mut touched = Vec::new();
            self.m.walk(op, &mut |inner| touched.extend(accesses(self.m, &self.held, inner)));
            if !touched.is_empty() {
                nodes.push(Node { op, touched });
            }
        }
        nodes
    }

    /// Puts a block in order; `around` is the loop whose body it is in, where that is pipelined.
    fn block(&mut self, block: Block, around: Option<(scf::For, u32)>) {
        let nodes = self.nodes(block);
        self.inside(&nodes, around);
        let order = Order::within(&nodes);
        self.emit(&nodes, &order, around);
    }

    /// Puts in order what is inside of operations.
    fn inside(&mut self, nodes: &[Node], around: Option<(scf::For, u32)>) {
        for node in nodes {
            match scf::For::cast(self.m, node.op) {
                Some(looped) => self.looped(looped),
                None => {
                    for region in self.m.regions(node.op).to_vec() {
                        for block in self.m.region_blocks(region).to_vec() {
                            self.block(block, around);
                        }
                    }
                }
            }
        }
    }

    /// The flags and barriers between the operations of a block.
    fn emit(&mut self, nodes: &[Node], order: &Order, around: Option<(scf::For, u32)>) {
        for &j in &order.barriers {
            hivm::PipeBarrier::build(&mut Builder::before(self.m, nodes[j].op), Pipe::V);
        }
        for &Flag { from, to, last, first, .. } in &order.flags {
            self.between(from, to, nodes[last].op, nodes[first].op, around);
        }
    }

    /// A flag from behind one operation to in front of another one.
    fn between(&mut self, p: Pipe, q: Pipe, from: Op, to: Op, around: Option<(scf::For, u32)>) {
        let copies = around.map_or(1, |(_, n)| n);
        let Some(first) = self.event(p, q, copies) else {
            hivm::PipeBarrier::build(&mut Builder::before(self.m, to), Pipe::All);
            return;
        };
        self.note(p, q, from, to, "");
        let slot = around.map(|(looped, n)| self.slots.of(self.m, looped, n));
        let point = after(self.m, from);
        self.flag(point, from, Some((p, q)), None, first, slot);
        self.flag(InsertPoint::Before(to), to, None, Some((p, q)), first, slot);
    }

    fn note(&mut self, p: Pipe, q: Pipe, from: Op, to: Op, when: &str) {
        let name = |op: Op| self.m.op_name(op).trim_start_matches("hivm.hir.").to_string();
        let line = |op: Op| {
            let span = Diagnostic::at(self.m, self.m.op_loc(op), "").span;
            span.map_or(String::new(), |s| format!(" (line {})", s.line))
        };
        let (a, b) = (format!("{}{}", name(from), line(from)), format!("{}{}", name(to), line(to)));
        writeln!(self.report, "{} before {}: {a}, then {b}{when}", p.keyword(), q.keyword())
            .expect("a string takes text");
    }

    /// So many new events between two queues, if there are as many.
    fn event(&mut self, p: Pipe, q: Pipe, copies: u32) -> Option<u32> {
        let used = self.events.entry((p, q)).or_default();
        let first = *used;
        (first + copies <= EVENTS).then(|| {
            *used += copies;
            first
        })
    }

    /// One flag: raised, or waited for, the event of a slot where there is one.
    fn flag(
        &mut self,
        point: InsertPoint,
        like: Op,
        set: Option<(Pipe, Pipe)>,
        wait: Option<(Pipe, Pipe)>,
        first: u32,
        slot: Option<Value>,
    ) {
        let loc = self.m.op_loc(like);
        let mut b = Builder::at(self.m, point, loc);
        let event = match slot {
            None => Event::Known(first),
            Some(slot) => {
                let first = b.int(i64::from(first), tilewright_ir::Type::I64);
                Event::Value(arith::Addi::build(&mut b, first, slot).result(b.module))
            }
        };
        if let Some((p, q)) = set {
            set_flag(&mut b, p, q, event);
        }
        if let Some((p, q)) = wait {
            wait_flag(&mut b, p, q, event);
        }
    }

    /// A loop: its body, and what one iteration has in common with a later one.
    fn looped(&mut self, looped: scf::For) {
        let body = self.m.region_block(looped.body(self.m));
        let most = self.held.values().filter(|h| h.pipeline == Some(looped)).map(|h| h.slots).max();
        let around = most.map(|n| (looped, n));
        let nodes = self.nodes(body);
        self.inside(&nodes, around);
        let mut order = Order::within(&nodes);
        order.around(&nodes, |a, b| self.distance(a, b, looped), most.unwrap_or(1));
        self.emit(&nodes, &order, around);
        let end = self.m.last_op(body).expect("a body ends in a yield");
        if order.at_end {
            hivm::PipeBarrier::build(&mut Builder::before(self.m, end), Pipe::V);
        }
        for flag in order.back {
            self.later(looped, &nodes, flag, end);
        }
    }

    /// A flag from an operation of one iteration to one of a later iteration.
    fn later(&mut self, looped: scf::For, nodes: &[Node], flag: Flag, end: Op) {
        let Flag { from: p, to: q, last, first, distance } = flag;
        let (last, first) = (nodes[last].op, nodes[first].op);
        let Some(event) = self.event(p, q, distance) else {
            hivm::PipeBarrier::build(&mut Builder::before(self.m, end), Pipe::All);
            return;
        };
        self.note(p, q, last, first, " of a later iteration");
        let slot = (distance > 1).then(|| self.slots.of(self.m, looped, distance));
        for n in 0..distance {
            self.flag(InsertPoint::Before(looped.0), looped.0, Some((p, q)), None, event + n, None);
            let point = after(self.m, looped.0);
            self.flag(point, looped.0, None, Some((p, q)), event + n, None);
        }
        self.flag(InsertPoint::Before(first), first, None, Some((p, q)), event, slot);
        let point = after(self.m, last);
        self.flag(point, last, Some((p, q)), None, event, slot);
    }

    /// How many iterations later a loop touches the same memory again.
    fn distance(&self, a: &Access, b: &Access, looped: scf::For) -> u32 {
        match (a.root, b.root) {
            (Root::Buffer { buffer, .. }, Root::Buffer { buffer: other, .. }) if buffer == other => {
                self.held.get(&buffer).filter(|h| h.pipeline == Some(looped)).map_or(1, |h| h.slots)
            }
            _ => 1,
        }
    }
}

fn after(m: &Module, op: Op) -> InsertPoint {
    match m.next_op(op) {
        Some(next) => InsertPoint::Before(next),
        None => InsertPoint::End(m.parent_block(op).expect("an attached operation")),
    }
}

/// The queue of an instruction.
pub(super) fn pipe_of(m: &Module, op: Op) -> Option<Pipe> {
    Some(match m.opcode(op)? {
        Opcode::Memref(memref::Kind::Load) => Pipe::S,
        Opcode::Hivm(kind) => match kind {
            H::Load | H::Nd2nz => Pipe::Mte2,
            H::Store => Pipe::Mte3,
            H::Copy if space(m, m.operands(op)[0]) == "L1" => Pipe::Mte1,
            H::Mmad => Pipe::M,
            H::Fixpipe => Pipe::Fix,
            _ if hivm::written(m, op).is_empty() => return None,
            _ => Pipe::V,
        },
        _ => return None,
    })
}

/// The name of the memory of a view or buffer.
fn space(m: &Module, v: Value) -> &'static str {
    let space = match m.type_kind(m.value_type(v)) {
        TypeKind::MemDesc { memory_space, .. } => ascend::by_attribute(ascend::text(m, *memory_space)),
        _ => MemRef::space_of(m, v),
    };
    space.map_or("", |s| s.name)
}

fn accesses(m: &Module, held: &FxHashMap<Value, Held>, op: Op) -> Vec<Access> {
    let Some(pipe) = pipe_of(m, op) else { return Vec::new() };
    let operands = m.operands(op);
    let no_alias = m
        .op_attr(op, "inter_no_alias")
        .is_some_and(|a| *m.attr_kind(a) == tilewright_ir::AttrKind::Bool(true));
    let is_memory = |v: Value| !space(m, v).is_empty();
    let written = hivm::written(m, op);
    let mut found = Vec::new();
    for (i, &v) in operands.iter().enumerate().filter(|(_, v)| is_memory(**v)) {
        let root = root(m, held, v);
        if root == Root::Global && no_alias {
            continue;
        }
        found.push(Access { pipe, root, write: written.contains(&i) });
        // A product is added to what is there.
        if written.contains(&i) && pipe == Pipe::M {
            found.push(Access { pipe, root, write: false });
        }
    }
    found
}

fn root(m: &Module, held: &FxHashMap<Value, Held>, mut v: Value) -> Root {
    loop {
        match m.defining_op(v) {
            Some(op) if ttg::LocalAlloc::cast(m, op).is_some() => {
                let place = held.get(&v).map(|h| (h.space.name, h.offset, h.offset + h.total()));
                let (space, from, to) = place.unwrap_or(("", 0, 0));
                return Root::Buffer { buffer: v, space, from, to };
            }
            Some(op) if memref::ReinterpretCast::cast(m, op).is_some() => return Root::Global,
            Some(op) => v = m.operands(op)[0],
            None => return Root::Global,
        }
    }
}
