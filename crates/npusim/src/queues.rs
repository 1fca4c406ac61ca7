//! The queues of a core, its memories, and what of both is in order.
//!
//! Every queue counts its instructions, and knows for each other one up to which of its instructions all has happened before (a vector clock). A flag carries what its queue
//! knew when it was raised to the one that waits for it; an instruction knows what the scalar unit knew when it issued it. `PIPE_V` begins instructions before earlier ones of its own
//! are done, and knows of these only behind a barrier. Each byte remembers its last write, and the last read of every queue: an access that does not know of one that it
//! conflicts with is reported.

use std::collections::VecDeque;

use half::{bf16, f16};
use rustc_hash::FxHashMap;
use tilewright_ir::ascend::{self, Space};
use tilewright_ir::dialect::hivm::Pipe;
use tilewright_ir::{AttrKind, Diagnostic, Module, Op, Type};

use crate::Report;
use crate::compute::{self, Num, Operand, View};

/// How many queues there are, the scalar unit among them.
pub const PIPES: usize = Pipe::All as usize;

/// Bytes that an instruction touches in a unit of time.
const RATE: u64 = 128;

/// What is known to have happened: up to which instruction of each queue.
pub type Clock = [u32; PIPES];

/// What a queue is to do.
#[derive(Debug)]
pub enum Action {
    /// An instruction.
    Compute { op: Op, ins: Vec<Operand>, out: View, known: Clock },
    /// Raises the flag of an event between two queues.
    Set { op: Op, to: Pipe, event: i64 },
    /// Waits for one.
    Wait { op: Op, from: Pipe, event: i64 },
    /// Waits for what is before it.
    Barrier,
}

#[derive(Debug, Clone, Copy, Default)]
struct Shadow {
    /// Whether anything was written.
    written: bool,
    writer: u8,
    wrote: u32,
    /// The last write, for messages; whether it promised that no other touches its global memory.
    by: Option<Op>,
    reads: Clock,
}

/// Global memory and the local ones.
pub struct Memories<'l> {
    /// Global memory.
    pub global: &'l mut Vec<Vec<u8>>,
    local: Vec<Vec<u8>>,
    shadows: FxHashMap<(&'static str, usize), Vec<Shadow>>,
}

impl<'l> Memories<'l> {
    fn new(global: &'l mut Vec<Vec<u8>>) -> Self {
        let local = ascend::SPACES.iter().map(|s| vec![0xff; s.bytes as usize]).collect();
        Memories { global, local, shadows: FxHashMap::default() }
    }

    fn bytes(&self, view: &View) -> &[u8] {
        match number(view.space) {
            Some(i) => &self.local[i],
            None => &self.global[view.buffer],
        }
    }

    /// What is remembered of a view's memory.
    fn shadow(&mut self, view: &View) -> &mut Vec<Shadow> {
        let size = self.bytes(view).len();
        self.shadows.entry((view.space.name, view.buffer)).or_insert_with(|| vec![Shadow::default(); size])
    }

    /// An element. Where it lies was checked.
    pub fn read(&self, m: &Module, view: &View, at: i64) -> Num {
        let bytes = at as usize..(at + view.bytes) as usize;
        let shadow = self.shadows.get(&(view.space.name, view.buffer));
        if number(view.space).is_some() && shadow.is_none_or(|s| s[bytes].iter().any(|b| !b.written)) {
            return Num::Undefined;
        }
        let bytes = &self.bytes(view)[at as usize..][..view.bytes as usize];
        let mut all = [0; 8];
        all[..bytes.len()].copy_from_slice(bytes);
        Num::of_bits(m, view.element, u64::from_le_bytes(all))
    }

    /// Writes an element, which is one of the view's type.
    pub fn write(&mut self, _: &Module, view: &View, at: i64, value: Num) {
        let bits = match view.element {
            Type::F16 => u64::from(f16::from_f64(value.float()).to_bits()),
            Type::BF16 => u64::from(bf16::from_f64(value.float()).to_bits()),
            Type::F32 => u64::from((value.float() as f32).to_bits()),
            Type::F64 => value.float().to_bits(),
            _ => value.int() as u64,
        };
        let to = match number(view.space) {
            Some(i) => &mut self.local[i],
            None => &mut self.global[view.buffer],
        };
        let place = at as usize..(at + view.bytes) as usize;
        to[place.clone()].copy_from_slice(&bits.to_le_bytes()[..view.bytes as usize]);
        if let Some(shadow) = self.shadows.get_mut(&(view.space.name, view.buffer)) {
            shadow[place].iter_mut().for_each(|byte| byte.written = value != Num::Undefined);
        }
    }
}

fn number(space: &Space) -> Option<usize> {
    ascend::SPACES.iter().position(|s| s == space)
}

fn index(pipe: Pipe) -> usize {
    Pipe::ALL.iter().position(|&p| p == pipe).unwrap_or(0)
}

/// The queues of a core that runs a program.
pub struct Queues<'l> {
    /// The memories.
    pub memories: Memories<'l>,
    queues: Vec<VecDeque<Action>>,
    ticks: Clock,
    clocks: [Clock; PIPES],
    /// Raised flags: what was known when they were, and when that was.
    flags: FxHashMap<(Pipe, Pipe, i64), (Clock, u64, Op)>,
    now: [u64; PIPES],
    busy: [u64; PIPES],
    instructions: [u64; PIPES],
}

impl<'l> Queues<'l> {
    /// Empty queues.
    pub fn new(global: &'l mut Vec<Vec<u8>>) -> Self {
        Queues {
            memories: Memories::new(global),
            queues: (0..PIPES).map(|_| VecDeque::new()).collect(),
            ticks: [0; PIPES],
            clocks: [[0; PIPES]; PIPES],
            flags: FxHashMap::default(),
            now: [0; PIPES],
            busy: [0; PIPES],
            instructions: [0; PIPES],
        }
    }

    /// Puts something into a queue.
    pub fn issue(&mut self, pipe: Pipe, action: Action) {
        self.queues[index(pipe)].push_back(action);
    }

    /// What the scalar unit knows.
    pub fn known(&self) -> Clock {
        self.clocks[index(Pipe::S)]
    }

    /// Lets all queues go on as far as they can.
    ///
    /// # Errors
    /// A broken rule.
    pub fn go_on(&mut self, m: &Module) -> Result<(), Diagnostic> {
        loop {
            let mut moved = false;
            for (p, &pipe) in Pipe::ALL[..PIPES].iter().enumerate() {
                while let Some(action) = self.queues[p].pop_front() {
                    if let Action::Wait { from, event, .. } = action
                        && !self.flags.contains_key(&(from, pipe, event))
                    {
                        self.queues[p].push_front(action);
                        break;
                    }
                    self.perform(m, pipe, action)?;
                    moved = true;
                }
            }
            if !moved {
                return Ok(());
            }
        }
    }

    /// Lets all queues come to their end.
    ///
    /// # Errors
    /// A broken rule; a queue that waits for what never comes.
    pub fn drain(&mut self, m: &Module) -> Result<(), Diagnostic> {
        self.go_on(m)?;
        for (p, queue) in self.queues.iter().enumerate() {
            let Some(Action::Wait { op, from, event }) = queue.front() else { continue };
            let (from, to) = (from.keyword(), Pipe::ALL[p].keyword());
            return Err(at(
                m,
                *op,
                format!("deadlock: {to} waits for event {event} of {from}, which nobody raises"),
            ));
        }
        let mut all: Clock = [0; PIPES];
        for (p, &tick) in self.ticks.iter().enumerate() {
            all[p] = tick;
        }
        self.clocks = [all; PIPES];
        self.now = [self.now.into_iter().max().unwrap_or(0); PIPES];
        Ok(())
    }

    /// The end of a program: all is done, and no flag is raised.
    ///
    /// # Errors
    /// What drains not; a flag that nobody has waited for.
    pub fn end(mut self, m: &Module) -> Result<Report, Diagnostic> {
        self.drain(m)?;
        if let Some(((p, q, event), (.., op))) = self.flags.iter().min_by_key(|((.., event), _)| *event) {
            let text = format!(
                "event {event} from {} to {} is raised, and nobody waits for it",
                p.keyword(),
                q.keyword()
            );
            return Err(at(m, *op, text));
        }
        let pipes = (0..PIPES).filter(|&p| self.instructions[p] > 0);
        let pipes = pipes.map(|p| (Pipe::ALL[p].keyword(), self.instructions[p], self.busy[p])).collect();
        Ok(Report { pipes, time: self.now.into_iter().max().unwrap_or(0) })
    }

    fn perform(&mut self, m: &Module, pipe: Pipe, action: Action) -> Result<(), Diagnostic> {
        let p = index(pipe);
        match action {
            Action::Set { op, to, event } => {
                let mut known = self.clocks[p];
                known[p] = self.ticks[p];
                if self.flags.insert((pipe, to, event), (known, self.now[p], op)).is_some() {
                    let text = format!(
                        "event {event} from {} to {} is raised again before it was waited for",
                        pipe.keyword(),
                        to.keyword()
                    );
                    return Err(at(m, op, text));
                }
            }
            Action::Wait { from, event, .. } => {
                if let Some((known, time, _)) = self.flags.remove(&(from, pipe, event)) {
                    self.learn(p, &known);
                    self.now[p] = self.now[p].max(time);
                }
            }
            Action::Barrier => self.clocks[p][p] = self.ticks[p],
            Action::Compute { op, ins, out, known } => {
                self.learn(p, &known);
                self.ticks[p] += 1;
                // The write first: its own reads are no others'.
                let mut touched = self.check(m, pipe, op, &out, true)?;
                for operand in &ins {
                    if let Operand::View(view) = operand {
                        touched += self.check(m, pipe, op, view, false)?;
                        self.remember(pipe, op, view, false);
                    }
                }
                self.remember(pipe, op, &out, true);
                compute::run(m, &mut self.memories, op, &ins, &out)?;
                if pipe != Pipe::V {
                    self.clocks[p][p] = self.ticks[p];
                }
                let time = 1 + touched.div_ceil(RATE);
                (self.now[p], self.busy[p]) = (self.now[p] + time, self.busy[p] + time);
                self.instructions[p] += 1;
            }
        }
        Ok(())
    }

    fn learn(&mut self, p: usize, known: &Clock) {
        for (have, new) in self.clocks[p].iter_mut().zip(known) {
            *have = (*have).max(*new);
        }
    }

    /// The scalar unit reads an element.
    ///
    /// # Errors
    /// A broken rule.
    pub fn scalar_read(&mut self, m: &Module, op: Op, view: &View) -> Result<Num, Diagnostic> {
        self.go_on(m)?;
        let s = index(Pipe::S);
        self.ticks[s] += 1;
        self.check(m, Pipe::S, op, view, false)?;
        self.remember(Pipe::S, op, view, false);
        self.clocks[s][s] = self.ticks[s];
        match self.memories.read(m, view, view.base) {
            Num::Undefined => Err(at(
                m,
                op,
                format!("reads byte {} of {}, which nothing wrote", view.base, view.space.name),
            )),
            number => Ok(number),
        }
    }

    /// The scalar unit waits for a flag.
    ///
    /// # Errors
    /// A broken rule; a flag that is never raised.
    pub fn scalar_wait(&mut self, m: &Module, op: Op, from: Pipe, event: i64) -> Result<(), Diagnostic> {
        self.issue(Pipe::S, Action::Wait { op, from, event });
        self.go_on(m)?;
        if self.queues[index(Pipe::S)].is_empty() { Ok(()) } else { self.drain(m) }
    }

    /// Checks an access against those of the other queues; how many bytes it is.
    fn check(&mut self, m: &Module, pipe: Pipe, op: Op, view: &View, write: bool) -> Result<u64, Diagnostic> {
        let known = self.clocks[index(pipe)];
        let places = view.places();
        let bytes = view.bytes;
        let shadow = self.memories.shadow(view);
        for &first in &places {
            if first < 0 || first + bytes > shadow.len() as i64 {
                let text = format!(
                    "{} of {bytes} bytes at {first} of {}, which has {}",
                    if write { "a write" } else { "a read" },
                    view.space.name,
                    shadow.len()
                );
                return Err(at(m, op, text));
            }
            for byte in &shadow[first as usize..(first + bytes) as usize] {
                let wrote = (byte.wrote > known[byte.writer as usize]).then_some((
                    byte.writer as usize,
                    true,
                    byte.by,
                ));
                let reader = || (0..PIPES).find(|&r| write && byte.reads[r] > known[r]);
                if let Some(other) = wrote.or_else(|| reader().map(|r| (r, false, None))) {
                    return Err(unordered(m, (pipe, op, write), other, view, first));
                }
            }
        }
        Ok(places.len() as u64 * bytes as u64)
    }

    /// Remembers an access that was checked.
    fn remember(&mut self, pipe: Pipe, op: Op, view: &View, write: bool) {
        let p = index(pipe);
        let tick = self.ticks[p];
        let shadow = self.memories.shadow(view);
        for first in view.places() {
            for byte in &mut shadow[first as usize..(first + view.bytes) as usize] {
                match write {
                    true => (byte.writer, byte.wrote, byte.by) = (p as u8, tick, Some(op)),
                    false => byte.reads[p] = tick,
                }
            }
        }
    }
}

/// The error about an access that nothing puts behind another one.
fn unordered(
    m: &Module,
    (pipe, op, write): (Pipe, Op, bool),
    (other, wrote, by): (usize, bool, Option<Op>),
    view: &View,
    byte: i64,
) -> Diagnostic {
    let other = Pipe::ALL[other];
    let does = if write { "writes" } else { "reads" };
    let still = if wrote { "writes" } else { "reads" };
    let text = format!(
        "{} {does} byte {byte} of {} while {} still {still} it",
        pipe.keyword(),
        view.space.name,
        other.keyword()
    );
    let missing = match other == pipe {
        true => format!("a hivm.hir.pipe_barrier[<{}>] is missing between them", pipe.keyword()),
        false => format!("a flag from {} to {} is missing between them", other.keyword(), pipe.keyword()),
    };
    let mut error = at(m, op, text).note(missing);
    let promised =
        |op: Op| m.op_attr(op, "inter_no_alias").is_some_and(|a| *m.attr_kind(a) == AttrKind::Bool(true));
    if number(view.space).is_none() && (promised(op) || by.is_some_and(promised)) {
        error = error.note("inter_no_alias promises that they touch different memory, and they don't");
    }
    match by {
        Some(by) => error.note(format!("the write is {}", tilewright_ir::print_op(m, by))),
        None => error,
    }
}

/// An error at an operation, with the operation.
pub fn at(m: &Module, op: Op, text: String) -> Diagnostic {
    Diagnostic::at(m, m.op_loc(op), text).note(format!("in {}", tilewright_ir::print_op(m, op)))
}
