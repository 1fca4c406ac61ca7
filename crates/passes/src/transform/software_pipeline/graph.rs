//! The dependence graph of a loop's body, for [`modulo`](super::modulo), and what its schedule means for the multiprocessor.
//!
//! | operation | keeps busy | its result is there |
//! | --- | --- | --- |
//! | a load | the path from memory | a memory latency later |
//! | a dot | the tensor cores | at its end; for arithmetic a little later |
//! | all else | the schedulers | at its end |
//!
//! Dependences are those of values, within an iteration and through carried values, and these:
//!
//! - A warp issues its instructions in order: an iteration's arithmetic stands between the beginnings of two iterations, and
//!   so do its dots, unless one may be *late*. (None begins before its iteration: its result would be held
//!   twice.)
//! - A ring has so many slots: a copy waits until its slot's reader of that many iterations before has been issued.
//! - What must run ahead with the copies has none of these bounds.
//!
//! A graph is that of one *stream*: warps that go through the loop in step. Several share a multiprocessor, the warp
//! groups of a CTA or several CTAs, and fill each other's gaps as the hardware finds them.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::dialect::{tt, ttg, ttng};
use tilewright_ir::{Block, Module, Op, Opcode, Value, ValueDef};

use super::modulo::{Graph, Resource, Since, Times};
use crate::analysis::rings;
use crate::hopper::async_dots;
use crate::machine::Machine;

/// Which warps go through a loop in step.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    /// Warps of a CTA that run the loop.
    pub num_warps: u32,
    /// Those of them that go in step.
    pub in_step: u32,
    /// CTAs that share a multiprocessor.
    pub ctas: u32,
}

/// What the graph of a loop is built from.
pub struct Body<'a> {
    /// The module.
    pub module: &'a Module,
    /// What operations take.
    pub machine: Machine,
    /// The body.
    pub block: Block,
    /// The operations, without the end.
    pub ops: Vec<Op>,
    /// The loads that become copies.
    pub copies: &'a [Op],
    /// What runs ahead with them.
    pub ahead: FxHashSet<Op>,
    /// The slots of their rings.
    pub slots: u32,
}

/// A schedule of a loop.
pub struct Scheduled {
    /// Which node an operation is.
    nodes: FxHashMap<Op, usize>,
    times: Times,
    bound: u32,
}

impl Scheduled {
    /// When an operation's operands are there.
    pub fn ready(&self, op: Op) -> u32 {
        self.nodes.get(&op).map_or(0, |&n| self.times.ready[n])
    }

    /// Whether the stream waits for its own operations, with no resource busy all the time.
    pub fn has_gaps(&self) -> bool {
        self.times.interval > self.bound
    }

    /// How many iterations after `a` an operation `b` of the same one begins.
    pub fn stages_between(&self, a: Op, b: Op) -> i64 {
        self.times.stages_between(self.nodes[&a], self.nodes[&b])
    }

    /// About how often a stream begins an iteration, in cycles, on a multiprocessor that it shares. Where that is for the wait of
    /// one operation for another and not for a resource, streams can fill each other's gaps, but only by chance:
    /// attention on an H100 (D = 128, two warp groups) gains 4 % by a schedule with no such gaps though all of one group's would
    /// fit into the other's work.
    pub fn interval(&self, stream: Stream) -> u32 {
        let own = self.times.interval;
        let alone = if self.has_gaps() { own + own / 8 } else { own };
        alone.max(self.bound * (stream.num_warps / stream.in_step) * stream.ctas)
    }
}

impl Body<'_> {
    /// Schedules the body. `late` may run behind the end of its iteration. With `as_written` each operation is issued behind
    /// the one before it in the program.
    pub fn schedule(&self, stream: Stream, late: Option<Op>, as_written: bool) -> Scheduled {
        let m = self.module;
        let mut graph = Graph::default();
        let begin = graph.add(Resource::Arithmetic, 0);
        let mut nodes = FxHashMap::default();
        for &op in &self.ops {
            let (resource, busy) = self.cost(op, stream);
            nodes.insert(op, graph.add(resource, busy));
        }
        let (mut last, mut waits): (Option<Op>, Vec<Op>) = (None, Vec::new());
        for &op in &self.ops {
            let n = nodes[&op];
            for (from, distance) in self.operands(op) {
                let accumulates = is_dot(m, from) && self.accumulates(from, op);
                let latency = if self.is_load(from) {
                    self.machine.load_latency
                } else if is_dot(m, from) && !accumulates {
                    self.machine.product_latency
                } else {
                    0
                };
                graph.depend(nodes[&from], Since::End, n, latency, distance);
            }
            if self.copies.contains(&op) {
                for reader in self.readers(op) {
                    graph.depend(nodes[&reader], Since::Begin, n, 0, self.slots);
                }
            }
            if self.copies.contains(&op) || self.ahead.contains(&op) {
                continue;
            }
            let issued = if is_asynchronous(m, op) { Since::Begin } else { Since::End };
            graph.depend(begin, Since::Begin, n, 0, 0);
            if late != Some(op) {
                graph.depend(n, issued, begin, 0, 1);
            }
            if let Some(last) = last.filter(|_| as_written) {
                let issued = if is_asynchronous(m, last) { Since::Begin } else { Since::End };
                graph.depend(nodes[&last], issued, n, 0, 0);
            }
            last = Some(op);
            if rings::waits_at_mbarrier(m, op) {
                waits.push(op);
            } else if is_asynchronous(m, op) {
                for w in &waits {
                    graph.depend(nodes[w], Since::Begin, n, 0, 0);
                }
            }
        }
        // A late dot's operand in registers is carried to the next iteration.
        if let Some(dot) = late.and_then(|op| ttng::WarpGroupDot::cast(m, op)) {
            let moves = self.machine.moved(m, dot.a(m), stream.num_warps, stream.in_step);
            graph.add(Resource::Arithmetic, moves);
        }
        let bound = graph.resource_bound();
        Scheduled { nodes, times: graph.schedule(), bound }
    }

    /// What an operation keeps busy, and how long; one with regions all that is in them, once.
    fn cost(&self, op: Op, s: Stream) -> (Resource, u32) {
        let (m, machine) = (self.module, self.machine);
        if let Some(busy) = machine.products(m, op, s.num_warps, s.in_step) {
            return (Resource::Tensor, busy);
        }
        if self.is_load(op) {
            return (Resource::Copies, machine.copied(m, m.result(op)) * s.in_step / s.num_warps);
        }
        let nested = !m.regions(op).is_empty() && tt::Reduce::cast(m, op).is_none();
        let all = if nested { m.all_ops(op) } else { vec![op] };
        (
            Resource::Arithmetic,
            all.into_iter().map(|o| machine.arithmetic(m, o, s.num_warps, s.in_step)).sum(),
        )
    }

    /// Whether an operation is arithmetic on a tile.
    pub fn is_arithmetic(&self, op: Op) -> bool {
        let s = Stream { num_warps: 1, in_step: 1, ctas: 1 };
        !self.ahead.contains(&op) && matches!(self.cost(op, s), (Resource::Arithmetic, busy) if busy > 0)
    }

    /// Whether a dot goes on with the sum that another of the iteration has begun.
    pub fn goes_on(&self, op: Op) -> bool {
        is_asynchronous(self.module, op)
            && self
                .operands(op)
                .into_iter()
                .any(|(from, d)| d == 0 && is_dot(self.module, from) && self.accumulates(from, op))
    }

    fn is_load(&self, op: Op) -> bool {
        tt::Load::cast(self.module, op).is_some() || tt::DescriptorLoad::cast(self.module, op).is_some()
    }

    /// Whether `op` is a dot that adds to the result of `from`: these run one after the other without a gap.
    fn accumulates(&self, from: Op, op: Op) -> bool {
        let m = self.module;
        ttng::WarpGroupDot::cast(m, op).is_some_and(|d| {
            let c = self.source(d.c(m)).map(|(op, _)| op);
            c == Some(from)
                && [d.a(m), d.b(m)].into_iter().all(|v| self.source(v).is_none_or(|s| s.0 != from))
        })
    }

    /// The operations of the body that an operation needs values of, and of how many iterations before.
    fn operands(&self, op: Op) -> Vec<(Op, u32)> {
        let m = self.module;
        let mut found: Vec<(Op, u32)> = Vec::new();
        let mut add = |v: Value| {
            if let Some(s) = self.source(v).filter(|s| s.0 != op || s.1 > 0)
                && !found.contains(&s)
            {
                found.push(s);
            }
        };
        m.operands(op).iter().for_each(|&v| add(v));
        if !m.regions(op).is_empty() {
            m.all_ops(op).into_iter().flat_map(|o| m.operands(o).to_vec()).for_each(add);
        }
        found
    }

    /// The operation of the body that computes a value, and how many iterations before.
    fn source(&self, value: Value) -> Option<(Op, u32)> {
        let m = self.module;
        let end = m.last_op(self.block)?;
        let mut value = value;
        for distance in 0..=m.operands(end).len() as u32 {
            match m.value_def(value) {
                ValueDef::Argument(block, i) if block == self.block && i > 0 => {
                    value = m.operands(end)[i as usize - 1];
                }
                _ => {
                    let op = m.ancestor_in_block(self.block, m.defining_op(value)?)?;
                    return Some((op, distance));
                }
            }
        }
        None
    }

    /// What reads what a load brings: not what makes it a buffer, or a view.
    fn readers(&self, load: Op) -> Vec<Op> {
        let m = self.module;
        let mut found = Vec::new();
        let mut work = m.results(load).to_vec();
        while let Some(v) = work.pop() {
            for u in m.uses(v) {
                let Some(at) = m.ancestor_in_block(self.block, u.op) else { continue };
                if matches!(
                    m.opcode(at),
                    Some(Opcode::Ttg(
                        ttg::Kind::LocalAlloc | ttg::Kind::MemdescTrans | ttg::Kind::MemdescSubslice
                    ))
                ) {
                    work.extend(m.results(at));
                } else if Some(at) != m.last_op(self.block) && !found.contains(&at) {
                    found.push(at);
                }
            }
        }
        found
    }
}

/// Whether an operation is a dot.
pub fn is_dot(module: &Module, op: Op) -> bool {
    tt::Dot::cast(module, op).is_some() || ttng::WarpGroupDot::cast(module, op).is_some()
}

/// Whether warps go on behind an operation while it runs.
pub fn is_asynchronous(module: &Module, op: Op) -> bool {
    ttng::WarpGroupDot::cast(module, op).is_some_and(|dot| !async_dots::adds_up(module, dot))
}
