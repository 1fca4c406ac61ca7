//! Flags: what the instructions of one queue read, or write over, of what another one's write or read is put in order.
//!
//! Instructions of a core are in the order of the program only within a queue. Two that touch the same memory, one of them to write it, need a flag between their queues:
//! it is raised behind the first and waited for in front of the second, at the level of the program where both (or what they are in) stand side by side. One pair of flags
//! puts all that is before it in one queue in front of all that is behind it in the other, so of several reasons the ones that are met already add nothing. Two instructions
//! of `PIPE_V` need a barrier of that queue.
//!
//! In a loop the next iteration comes after this one: a flag that this iteration raises, the next one waits for; one before the loop is for its first iteration, and one behind it
//! takes what its last one raised. Of a loop in a loop both stand around the outermost one: what its last iteration raised is for the first one of the next time. A buffer of several slots is touched again by the iteration that has the same slot: there are as many flags, each for one slot.
//!
//! A kernel that multiplies and computes with vectors runs on a cube core and a vector core ([`split`](super::split)). The order is that of both at once: a flag between queues of
//! two cores is a block flag (`sync_block_set` in the one, `sync_block_wait` in the other), and what a core knows of the other one goes on through its own flags.
//!
//! Where both vector cores of a block have a half of the work ([`halves`](super::halves)), a flag is raised for both, and by both. Nothing but the cube core stands between the two: where
//! one touches what the other one does, in global memory, all three wait for each other.
//!
//! Where a loop or branch in a loop is what iterations have in common, all queues wait for each other at the end of each iteration.
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
use tilewright_ir::dialect::hivm::{self, CORES, CoreType as Core, Pipe};
use tilewright_ir::dialect::{arith, scf};
use tilewright_ir::{Block, Builder, Diagnostic, InsertPoint, Module, Op, Type, Value};
use tilewright_passes::analysis::local_memory::Held;

use super::effects::{Access, Known, Node, Queue, Root, cores, pipe_of};
use super::instructions::{Flag as Event, set_flag, sync_block_set, sync_block_wait, wait_flag};
use super::order::{Flag, Order};
use super::{Slots, halves};

/// Flags between two queues.
const EVENTS: u32 = 8;
/// Flags from one core of a block to the other.
const BLOCK_FLAGS: u32 = 16;

/// What was put in order.
pub(super) struct Ordered {
    /// In words.
    pub report: String,
    /// The cores whose queues the flags and barriers are of.
    pub cores: FxHashMap<Op, Core>,
}

/// Puts in order what has to be.
///
pub(super) fn run(module: &mut Module, held: &[Held], slots: &mut Slots, halves: &halves::Shared) -> Ordered {
    let held = held.iter().map(|h| (h.alloc.result(module), h.clone())).collect();
    let crossed = halves.crossed.clone();
    let known = Known { held, cores: Vec::new(), halved: false, crossed, fences: FxHashMap::default() };
    let mut flags = Flags {
        m: module,
        known,
        slots,
        events: FxHashMap::default(),
        made: FxHashMap::default(),
        meets: false,
        report: String::new(),
    };
    for func in flags.m.block_ops(flags.m.body()).collect::<Vec<_>>() {
        flags.known.cores = cores(flags.m, func);
        flags.known.halved = halves.functions.contains(&func);
        for &region in &flags.m.regions(func).to_vec() {
            for block in flags.m.region_blocks(region).to_vec() {
                flags.block(block, None);
            }
        }
    }
    let mut used: Vec<(String, String, u32, u32)> = Vec::new();
    for (&(p, q), &n) in &flags.events {
        let n = n + u32::from(flags.meets && p.core != q.core);
        match p.core == q.core {
            true => used.push((flags.name(p), flags.name(q), n, EVENTS)),
            false => used.push((core_name(p.core).into(), core_name(q.core).into(), n, BLOCK_FLAGS)),
        }
    }
    used.sort_unstable();
    for (p, q, n, most) in used {
        let what = if most == EVENTS { "events" } else { "flags" };
        writeln!(flags.report, "{p} to {q}: {n} of {most} {what}").expect("a string takes text");
    }
    Ordered { report: flags.report, cores: flags.made }
}

fn core_name(core: Core) -> &'static str {
    match core {
        Core::Cube => "cube core",
        _ => "vector core",
    }
}

struct Flags<'m> {
    m: &'m mut Module,
    known: Known,
    slots: &'m mut Slots,
    /// How many events there are between two queues; flags between cores count for all of their queues.
    events: FxHashMap<(Queue, Queue), u32>,
    /// What was made for the queues of one core.
    made: FxHashMap<Op, Core>,
    /// Whether the cores wait for each other anywhere, for which the last flag is.
    meets: bool,
    report: String,
}

impl Flags<'_> {
    /// The operations of a block with what they touch, in order.
    fn nodes(&self, block: Block) -> Vec<Node> {
        let ops = self.m.block_ops(block);
        ops.filter_map(|op| Node::of(self.m, &self.known, op)).collect()
    }

    /// Puts a block in order; `around` is the loop whose body it is in, where that is pipelined.
    fn block(&mut self, block: Block, around: Option<(scf::For, u32)>) {
        let nodes = self.inside(block, around);
        let order = Order::within(&nodes);
        self.emit(&nodes, &order, around);
    }

    /// Puts in order what is inside of the operations of a block; these, with what that gave.
    fn inside(&mut self, block: Block, around: Option<(scf::For, u32)>) -> Vec<Node> {
        for node in self.nodes(block) {
            match scf::For::cast(self.m, node.op) {
                Some(looped) => self.looped(looped),
                None => {
                    for region in self.m.regions(node.op).to_vec() {
                        for block in self.m.region_blocks(region).to_vec() {
                            self.block(block, around);
                            if scf::While::cast(self.m, node.op).is_some() {
                                self.repeated(block);
                            }
                        }
                    }
                }
            }
        }
        self.nodes(block)
    }

    /// The flags and barriers between the operations of a block.
    fn emit(&mut self, nodes: &[Node], order: &Order, around: Option<(scf::For, u32)>) {
        let nested = nodes.first().is_some_and(|node| {
            let around = self.m.parent_op(node.op).filter(|&op| scf::For::cast(self.m, op).is_some());
            around.is_some_and(|around| outermost(self.m, around) != around)
        });
        for (node, found) in nodes.iter().zip(order.fences(nodes, nested)) {
            for op in self.m.all_ops(node.op).into_iter().filter(|&op| pipe_of(self.m, op) == Some(Pipe::V)) {
                let fences = self.known.fences.entry(op).or_default();
                fences.behind |= found.behind;
                fences.ahead |= found.ahead;
            }
        }
        for &j in &order.barriers {
            self.barrier(nodes[j].op, Core::Vector, Pipe::V);
        }
        for &j in &order.meets {
            self.meet(nodes[j].op);
        }
        // Programs wait for each other by their vector cores: the cube core is done before, and goes on behind.
        for node in nodes.iter().filter(|node| node.meets && !node.holds) {
            if self.known.cores.len() > 1 {
                self.meet(node.op);
                self.m.next_op(node.op).into_iter().for_each(|next| self.meet(next));
            }
        }
        for &Flag { from, to, last, first, .. } in &order.flags {
            self.between(from, to, nodes[last].op, nodes[first].op, around);
        }
    }

    fn barrier(&mut self, before: Op, core: Core, pipe: Pipe) {
        let barrier = hivm::PipeBarrier::build(&mut Builder::before(self.m, before), pipe);
        self.made.insert(barrier.0, core);
    }

    /// A flag from behind one operation to in front of another one.
    fn between(&mut self, p: Queue, q: Queue, from: Op, to: Op, around: Option<(scf::For, u32)>) {
        let copies = around.map_or(1, |(_, n)| n);
        let Some(first) = self.event((p, q), copies) else { return self.wait_for_all(p, q, to) };
        self.note(p, q, from, to, "");
        let slot = around.map(|(looped, n)| self.slots.of(self.m, looped, n));
        let point = after(self.m, from);
        self.flag(point, from, Side::Set, (p, q), first, slot);
        self.flag(InsertPoint::Before(to), to, Side::Wait, (p, q), first, slot);
    }

    /// A queue, for the report.
    fn name(&self, queue: Queue) -> String {
        match (&self.known.cores[..], queue.core) {
            ([_], _) => queue.pipe.keyword().to_string(),
            (_, core) => format!("{} of the {}", queue.pipe.keyword(), core_name(core)),
        }
    }

    fn note(&mut self, p: Queue, q: Queue, from: Op, to: Op, when: &str) {
        let name = |op: Op| self.m.op_name(op).trim_start_matches("hivm.hir.").to_string();
        let (a, b) = (format!("{}{}", name(from), self.line(from)), format!("{}{}", name(to), self.line(to)));
        writeln!(self.report, "{} before {}: {a}, then {b}{when}", self.name(p), self.name(q))
            .expect("a string takes text");
    }

    /// What stands for a flag where there is none left: all queues of the core wait for each other, or both cores.
    fn wait_for_all(&mut self, p: Queue, q: Queue, before: Op) {
        if p.core == q.core {
            return self.barrier(before, q.core, Pipe::All);
        }
        self.meet(before);
    }

    /// All cores wait for each other, each for all of its queues: the cube core for a flag of each vector core, which it answers. So all flags are down when they go on.
    fn meet(&mut self, before: Op) {
        writeln!(self.report, "the cores wait for each other{}", self.line(before))
            .expect("a string takes text");
        self.meets = true;
        for core in CORES {
            self.barrier(before, core, Pipe::All);
        }
        for (from, pipe) in [(Core::Vector, Pipe::Mte3), (Core::Cube, Pipe::Fix)] {
            let other = if from == Core::Cube { Core::Vector } else { Core::Cube };
            let (p, q) = (Queue { core: from, pipe }, Queue { core: other, pipe: Pipe::S });
            for side in [Side::Set, Side::Wait] {
                self.flag(InsertPoint::Before(before), before, side, (p, q), BLOCK_FLAGS - 1, None);
            }
        }
    }

    /// So many new events between two queues, if there are as many.
    fn event(&mut self, (p, q): (Queue, Queue), copies: u32) -> Option<u32> {
        let within = p.core == q.core;
        let all = |queue: Queue| Queue { pipe: Pipe::All, ..queue };
        // (With the last flag between cores they wait for each other.)
        let (key, most) = if within { ((p, q), EVENTS) } else { ((all(p), all(q)), BLOCK_FLAGS - 1) };
        let used = self.events.entry(key).or_default();
        let first = *used;
        if first + copies <= most {
            *used += copies;
            return Some(first);
        }
        None
    }

    /// One side of a flag, the event of a slot where there is one.
    fn flag(
        &mut self,
        point: InsertPoint,
        like: Op,
        side: Side,
        (p, q): (Queue, Queue),
        first: u32,
        slot: Option<Value>,
    ) {
        let loc = self.m.op_loc(like);
        let mut b = Builder::at(self.m, point, loc);
        let event = match slot {
            None => Event::Known(first),
            Some(slot) => {
                let first = b.int(i64::from(first), Type::I64);
                Event::Value(arith::Addi::build(&mut b, first, slot).result(b.module))
            }
        };
        let (made, core) = match (side, p.core == q.core) {
            (Side::Set, true) => (set_flag(&mut b, p.pipe, q.pipe, event), p.core),
            (Side::Wait, true) => (wait_flag(&mut b, p.pipe, q.pipe, event), q.core),
            (Side::Set, false) => (sync_block_set(&mut b, p.core, p.pipe, q.pipe, event), p.core),
            (Side::Wait, false) => (sync_block_wait(&mut b, q.core, p.pipe, q.pipe, event), q.core),
        };
        self.made.insert(made, core);
    }

    /// A loop: its body, and what one iteration has in common with a later one.
    fn looped(&mut self, looped: scf::For) {
        let body = self.m.region_block(looped.body(self.m));
        let most = self.known.held.values().filter(|h| h.pipeline == Some(looped)).map(|h| h.slots).max();
        let around = most.map(|n| (looped, n));
        let nodes = self.inside(body, around);
        let mut order = Order::within(&nodes);
        order.around(&nodes, |a, b| self.distance(a, b, looped), most.unwrap_or(1));
        self.emit(&nodes, &order, around);
        let end = self.m.last_op(body).expect("a body ends in a yield");
        if order.at_end {
            self.barrier(end, Core::Vector, Pipe::V);
        }
        if order.sealed {
            self.seal(&nodes, end);
        }
        order.back.into_iter().for_each(|flag| self.later(looped, &nodes, flag, end));
    }

    /// The end of a condition or of an iteration of a `while` loop: nothing goes on behind it.
    fn repeated(&mut self, block: Block) {
        let nodes = self.nodes(block);
        if let Some(end) = self.m.last_op(block).filter(|_| !nodes.is_empty()) {
            self.seal(&nodes, end);
        }
    }

    /// All queues wait for each other at the end of an iteration; those of two cores by a flag there, and one back.
    fn seal(&mut self, nodes: &[Node], end: Op) {
        let touched = || nodes.iter().flat_map(|node| &node.touched);
        let cores: Vec<Core> = CORES.into_iter().filter(|&c| touched().any(|a| a.queue.core == c)).collect();
        writeln!(
            self.report,
            "all queues wait for each other at the end of each iteration{}",
            self.line(end)
        )
        .expect("a string takes text");
        let crosses = touched().any(|a| a.shared && a.write);
        match cores[..] {
            [core] if !crosses => self.barrier(end, core, Pipe::All),
            _ => self.meet(end),
        }
    }

    /// Where an operation stands in the source, for the report.
    fn line(&self, op: Op) -> String {
        let span = Diagnostic::at(self.m, self.m.op_loc(op), "").span;
        span.map_or(String::new(), |s| format!(" (line {})", s.line))
    }

    /// A flag from an operation of one iteration to one of a later iteration.
    fn later(&mut self, looped: scf::For, nodes: &[Node], flag: Flag, end: Op) {
        let Flag { from: p, to: q, last, first, distance } = flag;
        let (last, first) = (nodes[last].op, nodes[first].op);
        let Some(event) = self.event((p, q), distance) else { return self.wait_for_all(p, q, end) };
        self.note(p, q, last, first, " of a later iteration");
        let slot = (distance > 1).then(|| self.slots.of(self.m, looped, distance));
        let outermost = outermost(self.m, looped.0);
        for n in 0..distance {
            self.flag(InsertPoint::Before(outermost), outermost, Side::Set, (p, q), event + n, None);
            let point = after(self.m, outermost);
            self.flag(point, outermost, Side::Wait, (p, q), event + n, None);
        }
        self.flag(InsertPoint::Before(first), first, Side::Wait, (p, q), event, slot);
        let point = after(self.m, last);
        self.flag(point, last, Side::Set, (p, q), event, slot);
    }

    /// How many iterations later a loop touches the same memory again.
    fn distance(&self, a: &Access, b: &Access, looped: scf::For) -> u32 {
        match (a.root, b.root) {
            (Root::Buffer { buffer, .. }, Root::Buffer { buffer: other, .. }) if buffer == other => {
                self.known.held.get(&buffer).filter(|h| h.pipeline == Some(looped)).map_or(1, |h| h.slots)
            }
            _ => 1,
        }
    }
}

/// The sides of a flag.
#[derive(Clone, Copy)]
enum Side {
    /// Raises it.
    Set,
    /// Waits for it.
    Wait,
}

/// The outermost loop that a loop is in, or itself.
fn outermost(m: &Module, looped: Op) -> Op {
    let mut found = looped;
    let mut around = m.parent_op(looped);
    while let Some(op) = around {
        if scf::For::cast(m, op).is_some() {
            found = op;
        }
        around = m.parent_op(op);
    }
    found
}

fn after(m: &Module, op: Op) -> InsertPoint {
    match m.next_op(op) {
        Some(next) => InsertPoint::Before(next),
        None => InsertPoint::End(m.parent_block(op).expect("an attached operation")),
    }
}
