//! The queues of a block's cores, their memories, and what of both is in order.
//!
//! Every queue counts its instructions, and knows for each other one up to which of its instructions all has happened before (a vector clock). A flag carries what its queue
//! knew when it was raised to the one that waits for it; an instruction knows what the scalar unit knew when it issued it. `PIPE_V` begins instructions before earlier ones of its own
//! are done, and knows of these only behind a barrier. The cores of a block have memories of their own and global memory in common: a flag between them carries what its
//! queue knew like any other. Each byte remembers its last write, and the last read of every queue: an access that does not know of one that it
//! conflicts with is reported.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use tilewright_ir::ascend::{self, Space};
use tilewright_ir::dialect::hivm::{CoreType as Kind, Pipe};
use tilewright_ir::{AttrKind, Diagnostic, Module, Op};

use crate::compute::{self, Num, Operand, View};
use crate::{Busy, Report};

/// How many queues there are, the scalar unit among them.
pub const PIPES: usize = Pipe::All as usize;

/// How many queues a block has.
const QUEUES: usize = PIPES * CORES.len();

/// Bytes that an instruction touches in a unit of time.
const RATE: u64 = 128;

/// What is known to have happened: up to which instruction of each queue.
pub type Clock = [u32; QUEUES];

/// A core of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Core {
    /// Its kind.
    pub kind: Kind,
    /// Its number among those of its kind.
    pub number: usize,
}

/// The cores that a block may have: one for products and two for vectors.
const CORES: [Core; 3] = [Core::CUBE, Core::VECTORS[0], Core::VECTORS[1]];

impl Core {
    /// The core for products.
    pub const CUBE: Core = Core { kind: Kind::Cube, number: 0 };
    /// Those for vectors.
    pub const VECTORS: [Core; 2] =
        [Core { kind: Kind::Vector, number: 0 }, Core { kind: Kind::Vector, number: 1 }];

    /// Its number among all.
    pub fn index(self) -> usize {
        CORES.iter().position(|&c| c == self).unwrap_or(0)
    }

    /// In words.
    pub fn name(self) -> &'static str {
        match (self.kind, self.number) {
            (Kind::Cube, _) => "the cube core",
            (_, 0) => "the vector core",
            _ => "the second vector core",
        }
    }
}

/// A queue of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Queue {
    /// Whose it is.
    pub core: Core,
    /// Which one.
    pub pipe: Pipe,
}

impl Queue {
    fn index(self) -> usize {
        Pipe::ALL.iter().position(|&p| p == self.pipe).unwrap_or(0) + PIPES * self.core.index()
    }

    fn of(index: usize) -> Queue {
        Queue { core: CORES[index / PIPES], pipe: Pipe::ALL[index % PIPES] }
    }
}

/// A flag between two queues, of one core or of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flag {
    from: Queue,
    to: Queue,
    event: i64,
}

impl Flag {
    /// The flag of an event between two queues. Flags between cores are known by their number alone, whatever the queues.
    pub fn new(from: Queue, to: Queue, event: i64) -> Flag {
        Flag { from, to, event }
    }

    fn key(self) -> Flag {
        if self.from.core == self.to.core {
            return self;
        }
        let all = |queue: Queue| Queue { pipe: Pipe::All, ..queue };
        Flag { from: all(self.from), to: all(self.to), event: self.event }
    }

    fn words(self) -> String {
        let (from, to) = (self.from.pipe.keyword(), self.to.pipe.keyword());
        if self.from.core == self.to.core {
            return format!("event {} from {from} to {to}", self.event);
        }
        let (whose, other) = (self.from.core.name(), self.to.core.name());
        format!("flag {} from {from} of {whose} to {to} of {other}", self.event)
    }
}

/// What a queue is to do.
#[derive(Debug)]
pub enum Action {
    /// An instruction; where something is taken for it, that comes first.
    Compute { op: Op, ins: Vec<Operand>, out: View, known: Clock, taken: bool },
    /// Takes what an instruction of another queue will read.
    Take { op: Op, views: Vec<Operand>, known: Clock },
    /// Raises flags: one, or one for each of the other kind's cores.
    Set { op: Op, flags: Vec<Flag>, known: Clock },
    /// Waits for them.
    Wait { op: Op, flags: Vec<Flag> },
    /// Waits for what is before it.
    Barrier,
}

#[derive(Debug, Clone, Copy, Default)]
struct Shadow {
    /// Whether anything was written.
    written: bool,
    writer: u8,
    wrote: u32,
    /// The last write, for messages.
    by: Option<Op>,
    reads: Clock,
}

/// Global memory and the local ones.
pub struct Memories {
    /// Global memory, while the block runs.
    pub global: Vec<Vec<u8>>,
    /// The local ones of each core.
    local: [Vec<Vec<u8>>; CORES.len()],
    /// The buffer of global memory that is the workspace, which holds nothing at first.
    workspace: Option<usize>,
    shadows: FxHashMap<(&'static str, usize), Vec<Shadow>>,
}

impl Memories {
    fn new(workspace: Option<usize>) -> Self {
        let local = |_| ascend::SPACES.iter().map(|s| vec![0xff; s.bytes as usize]).collect();
        Memories { global: Vec::new(), local: CORES.map(local), workspace, shadows: FxHashMap::default() }
    }

    /// Whether a view is of memory that must not hold what nothing wrote.
    pub fn is_seen(&self, view: &View) -> bool {
        number(view.space).is_none() && self.workspace != Some(view.buffer)
    }

    fn bytes(&self, view: &View) -> &[u8] {
        match number(view.space) {
            Some(i) => &self.local[view.buffer][i],
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
        if !self.is_seen(view) && shadow.is_none_or(|s| s[bytes].iter().any(|b| !b.written)) {
            return Num::Undefined;
        }
        let bytes = &self.bytes(view)[at as usize..][..view.bytes as usize];
        let mut all = [0; 8];
        all[..bytes.len()].copy_from_slice(bytes);
        Num::of_bits(m, view.element, u64::from_le_bytes(all))
    }

    /// Writes an element, which is one of the view's type.
    pub fn write(&mut self, m: &Module, view: &View, at: i64, value: Num) {
        let bits = value.to_bits(m, view.element);
        let to = match number(view.space) {
            Some(i) => &mut self.local[view.buffer][i],
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

/// The queues of a block that runs a program.
pub struct Queues {
    /// The memories.
    pub memories: Memories,
    /// How many instructions, flags and barriers were gone through.
    pub performed: u64,
    queues: Vec<VecDeque<Action>>,
    ticks: Clock,
    /// Those when programs last waited for each other.
    since: Clock,
    clocks: Vec<Clock>,
    /// What was taken for instructions that have not come yet, with what was known then, and when that was.
    taken: VecDeque<(VecDeque<Operand>, Clock, u64)>,
    /// Raised flags: what was known when they were, and when that was.
    flags: FxHashMap<Flag, (Clock, u64, Op, Flag)>,
    now: [u64; QUEUES],
    busy: [u64; QUEUES],
    instructions: [u64; QUEUES],
    /// From when to when instructions went on.
    spans: Vec<(u64, u64)>,
}

impl Queues {
    /// Empty queues.
    pub fn new(workspace: Option<usize>) -> Self {
        Queues {
            memories: Memories::new(workspace),
            since: [0; QUEUES],
            performed: 0,
            queues: (0..QUEUES).map(|_| VecDeque::new()).collect(),
            ticks: [0; QUEUES],
            clocks: vec![[0; QUEUES]; QUEUES],
            taken: VecDeque::new(),
            flags: FxHashMap::default(),
            now: [0; QUEUES],
            busy: [0; QUEUES],
            instructions: [0; QUEUES],
            spans: Vec::new(),
        }
    }

    /// Puts something into a queue.
    pub fn issue(&mut self, queue: Queue, action: Action) {
        self.queues[queue.index()].push_back(action);
    }

    /// What the scalar unit of a core knows of others: what it reads and writes itself may go on when the next instruction begins.
    pub fn known(&self, core: Core) -> Clock {
        let unit = Queue { core, pipe: Pipe::S }.index();
        let mut known = self.clocks[unit];
        known[unit] = 0;
        known
    }

    /// Lets all queues go on as far as they can.
    ///
    /// # Errors
    /// A broken rule.
    pub fn go_on(&mut self, m: &Module) -> Result<(), Diagnostic> {
        loop {
            let before = self.performed;
            for q in 0..QUEUES {
                while let Some(action) = self.queues[q].pop_front() {
                    let ready = match &action {
                        Action::Wait { flags, .. } => {
                            flags.iter().all(|flag| self.flags.contains_key(&flag.key()))
                        }
                        Action::Compute { taken: true, .. } => !self.taken.is_empty(),
                        _ => true,
                    };
                    if !ready {
                        self.queues[q].push_front(action);
                        break;
                    }
                    self.perform(m, Queue::of(q), action)?;
                    self.performed += 1;
                }
            }
            if self.performed == before {
                return Ok(());
            }
        }
    }

    /// Lets all queues go on; whether all of a core have come to their end, of which each knows then.
    ///
    /// # Errors
    /// A broken rule.
    pub fn drained(&mut self, m: &Module, core: Core) -> Result<bool, Diagnostic> {
        self.go_on(m)?;
        let own = PIPES * core.index()..PIPES * (core.index() + 1);
        if !self.queues[own.clone()].iter().all(VecDeque::is_empty) {
            return Ok(false);
        }
        let mut all: Clock = [0; QUEUES];
        for q in own.clone() {
            for (have, new) in all.iter_mut().zip(self.clocks[q]) {
                *have = (*have).max(new);
            }
        }
        all[own.clone()].copy_from_slice(&self.ticks[own.clone()]);
        let now = self.now[own.clone()].iter().copied().max().unwrap_or(0);
        self.clocks[own.clone()].fill(all);
        self.now[own].fill(now);
        Ok(true)
    }

    /// Whether the last that is known of a core is that all of its queues had come to their end.
    pub fn are_drained(&self, core: Core) -> bool {
        let own = PIPES * core.index()..PIPES * (core.index() + 1);
        let scalar = Queue { core, pipe: Pipe::S }.index();
        own.clone().all(|q| self.clocks[scalar][q] == self.ticks[q])
            && self.queues[own].iter().all(VecDeque::is_empty)
    }

    /// Lets all queues go on; whether the scalar unit of a core waits for nothing.
    ///
    /// # Errors
    /// A broken rule.
    pub fn scalar_is_free(&mut self, m: &Module, core: Core) -> Result<bool, Diagnostic> {
        self.go_on(m)?;
        Ok(self.queues[Queue { core, pipe: Pipe::S }.index()].is_empty())
    }

    /// What no queue can do anything about: one that waits for what never comes.
    pub fn deadlock(&self, m: &Module) -> Option<Diagnostic> {
        let waits = || {
            self.queues.iter().filter_map(|queue| match queue.front() {
                Some(Action::Wait { op, flags }) => {
                    let missing = flags.iter().find(|flag| !self.flags.contains_key(&flag.key()));
                    missing.map(|flag| (*op, *flag))
                }
                _ => None,
            })
        };
        // What waits for something that waits itself is not where the fault is.
        let comes = |flag: Flag| {
            let mut all = self.queues.iter().flatten();
            all.any(|action| match action {
                Action::Set { flags, .. } => flags.iter().any(|set| set.key() == flag.key()),
                _ => false,
            })
        };
        // Nor is the scalar unit, which issues what others wait for.
        let never = |scalar: bool| waits().find(|&(_, f)| !comes(f) && (scalar || f.to.pipe != Pipe::S));
        let (op, flag) = never(false).or_else(|| never(true)).or_else(|| waits().next())?;
        let (from, to) = (flag.from.pipe.keyword(), flag.to.pipe.keyword());
        let text = match flag.from.core == flag.to.core {
            true => format!("{to} waits for event {} of {from}", flag.event),
            false => {
                let (whose, other) = (flag.from.core.name(), flag.to.core.name());
                format!("{to} of {other} waits for flag {} of {from} of {whose}", flag.event)
            }
        };
        Some(at(m, op, format!("deadlock: {text}, which nobody raises")))
    }

    /// The bytes of the workspace that were touched since programs waited for each other last, and whether they were written; from now on others are.
    pub fn touched(&mut self) -> Vec<(usize, bool)> {
        let since = std::mem::replace(&mut self.since, self.ticks);
        let shadow = self.memories.workspace.and_then(|w| self.memories.shadows.get(&("GM", w)));
        let bytes = shadow.into_iter().flatten().enumerate();
        let touched = bytes.filter_map(|(i, byte)| {
            let wrote = byte.wrote > since[byte.writer as usize];
            let read = byte.reads.iter().zip(&since).any(|(read, since)| read > since);
            (wrote || read).then_some((i, wrote))
        });
        touched.collect()
    }

    /// What other programs wrote of a workspace of so many bytes is no longer what nothing wrote.
    pub fn written_by_others(&mut self, size: usize, bytes: &[usize]) {
        let Some(workspace) = self.memories.workspace else { return };
        let shadow = self.memories.shadows.entry(("GM", workspace));
        let shadow = shadow.or_insert_with(|| vec![Shadow::default(); size]);
        bytes.iter().for_each(|&byte| shadow[byte].written = true);
    }

    /// The end of a program, when all cores have come to theirs: all is done, and no flag is raised.
    ///
    /// # Errors
    /// What does not drain; a flag that nobody has waited for.
    pub fn end(&mut self, m: &Module) -> Result<Report, Diagnostic> {
        self.go_on(m)?;
        if let Some(deadlock) = self.deadlock(m) {
            return Err(deadlock);
        }
        if let Some((.., op, flag)) = self.flags.values().min_by_key(|(.., flag)| flag.event) {
            return Err(at(m, *op, format!("{} is raised, and nobody waits for it", flag.words())));
        }
        let queues = (0..QUEUES).filter(|&q| self.instructions[q] > 0).map(|q| {
            let Queue { core, pipe } = Queue::of(q);
            Busy {
                core: core.kind,
                number: core.number,
                pipe,
                instructions: self.instructions[q],
                time: self.busy[q],
            }
        });
        let time = self.now.into_iter().max().unwrap_or(0);
        Ok(Report { pipes: queues.collect(), time, together: together(&self.spans) })
    }

    fn perform(&mut self, m: &Module, queue: Queue, action: Action) -> Result<(), Diagnostic> {
        let p = queue.index();
        match action {
            Action::Set { op, flags, known } => {
                self.learn(p, &known);
                let mut known = self.clocks[p];
                known[p] = self.ticks[p];
                for flag in flags {
                    if self.flags.insert(flag.key(), (known, self.now[p], op, flag)).is_some() {
                        let text = format!("{} is raised again before it was waited for", flag.words());
                        return Err(at(m, op, text));
                    }
                }
            }
            Action::Wait { flags, .. } => {
                for flag in flags {
                    if let Some((known, time, ..)) = self.flags.remove(&flag.key()) {
                        self.learn(p, &known);
                        self.now[p] = self.now[p].max(time);
                    }
                }
            }
            Action::Barrier => self.clocks[p][p] = self.ticks[p],
            Action::Take { op, views, known } => {
                self.learn(p, &known);
                self.ticks[p] += 1;
                let (mut found, mut touched) = (VecDeque::new(), 0);
                for operand in views {
                    let Operand::View(view) = operand else { continue };
                    touched += self.check(m, queue, op, &view, false)?;
                    self.remember(queue, op, &view, false);
                    let values = view.places().iter().map(|&at| self.memories.read(m, &view, at)).collect();
                    found.push_back(Operand::Taken(view, values));
                }
                self.clocks[p][p] = self.ticks[p];
                self.passed(p, touched);
                self.taken.push_back((found, self.clocks[p], self.now[p]));
            }
            Action::Compute { op, mut ins, out, known, taken } => {
                self.learn(p, &known);
                self.ticks[p] += 1;
                if let Some((mut found, known, time)) = taken.then(|| self.taken.pop_front()).flatten() {
                    self.learn(p, &known);
                    self.now[p] = self.now[p].max(time);
                    for operand in &mut ins {
                        if matches!(operand, Operand::View(v) if v.space.name == "L1")
                            && let Some(values) = found.pop_front()
                        {
                            *operand = values;
                        }
                    }
                }
                // The write first: its own reads are no others'. What fills all of a buffer writes that.
                let written = out.filled(m, op);
                let mut touched = self.check(m, queue, op, &written, true)?;
                // Which element comes first is not said.
                let shifted =
                    |operand: &Operand| matches!(operand, Operand::View(v) if v.is_shifted(&written));
                if ins.iter().any(shifted) {
                    let name = m.op_name(op);
                    return Err(at(
                        m,
                        op,
                        format!("{name} writes elements that it reads under other indices"),
                    ));
                }
                for operand in &ins {
                    if let Operand::View(view) = operand {
                        touched += self.check(m, queue, op, view, false)?;
                        self.remember(queue, op, view, false);
                    }
                }
                self.remember(queue, op, &written, true);
                compute::run(m, &mut self.memories, op, &ins, &out)?;
                if queue.pipe != Pipe::V {
                    self.clocks[p][p] = self.ticks[p];
                }
                self.passed(p, touched);
            }
        }
        Ok(())
    }

    /// An instruction of a queue has touched so many bytes.
    fn passed(&mut self, p: usize, touched: u64) {
        let time = 1 + touched.div_ceil(RATE);
        self.spans.push((self.now[p], self.now[p] + time));
        (self.now[p], self.busy[p]) = (self.now[p] + time, self.busy[p] + time);
        self.instructions[p] += 1;
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
    pub fn scalar_read(&mut self, m: &Module, core: Core, op: Op, view: &View) -> Result<Num, Diagnostic> {
        self.go_on(m)?;
        let unit = Queue { core, pipe: Pipe::S };
        let s = unit.index();
        self.ticks[s] += 1;
        self.check(m, unit, op, view, false)?;
        self.remember(unit, op, view, false);
        self.clocks[s][s] = self.ticks[s];
        Ok(self.memories.read(m, view, view.base))
    }

    /// The scalar unit writes an element.
    ///
    /// # Errors
    /// A broken rule.
    pub fn scalar_write(
        &mut self,
        m: &Module,
        core: Core,
        op: Op,
        view: &View,
        value: Num,
    ) -> Result<(), Diagnostic> {
        self.go_on(m)?;
        let unit = Queue { core, pipe: Pipe::S };
        let s = unit.index();
        self.ticks[s] += 1;
        self.check(m, unit, op, view, true)?;
        self.remember(unit, op, view, true);
        self.clocks[s][s] = self.ticks[s];
        if value == Num::Undefined && self.memories.is_seen(view) {
            return Err(at(m, op, "what nothing wrote comes to global memory".into()));
        }
        self.memories.write(m, view, view.base, value.rounded(m, view.element));
        Ok(())
    }

    /// Checks an access against those of the other queues; how many bytes it is.
    fn check(
        &mut self,
        m: &Module,
        queue: Queue,
        op: Op,
        view: &View,
        write: bool,
    ) -> Result<u64, Diagnostic> {
        let known = self.clocks[queue.index()];
        let places = view.places();
        let bytes = view.bytes;
        let shadow = self.memories.shadow(view);
        for &first in &places {
            if first < 0 || first > shadow.len() as i64 - bytes {
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
                let reader = || (0..QUEUES).find(|&r| write && byte.reads[r] > known[r]);
                if let Some(other) = wrote.or_else(|| reader().map(|r| (r, false, None))) {
                    return Err(unordered(m, (queue, op, write), other, view, first));
                }
            }
        }
        Ok(places.len() as u64 * bytes as u64)
    }

    /// Remembers an access that was checked.
    fn remember(&mut self, queue: Queue, op: Op, view: &View, write: bool) {
        let p = queue.index();
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
    (queue, op, write): (Queue, Op, bool),
    (other, wrote, by): (usize, bool, Option<Op>),
    view: &View,
    byte: i64,
) -> Diagnostic {
    let other = Queue::of(other);
    let name = |q: Queue| match queue.core == other.core {
        true => q.pipe.keyword().to_string(),
        false => format!("{} of {}", q.pipe.keyword(), q.core.name()),
    };
    let does = if write { "writes" } else { "reads" };
    let still = if wrote { "writes" } else { "reads" };
    let text = format!(
        "{} {does} byte {byte} of {} while {} still {still} it",
        name(queue),
        view.space.name,
        name(other)
    );
    let missing = match (other == queue, other.core == queue.core) {
        (true, _) => format!("a hivm.hir.pipe_barrier[<{}>] is missing between them", name(queue)),
        (_, true) => format!("a flag from {} to {} is missing between them", name(other), name(queue)),
        _ => format!(
            "a flag (hivm.hir.sync_block_set, sync_block_wait) from {} to {} is missing between them",
            name(other),
            name(queue)
        ),
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

/// How long at least two instructions went on at once.
fn together(spans: &[(u64, u64)]) -> u64 {
    let mut edges: Vec<(u64, i32)> = spans.iter().flat_map(|&(from, to)| [(from, 1), (to, -1)]).collect();
    edges.sort_unstable();
    let (mut at_once, mut since, mut sum) = (0, 0, 0);
    for (time, change) in edges {
        if at_once >= 2 {
            sum += time - since;
        }
        (at_once, since) = (at_once + change, time);
    }
    sum
}
