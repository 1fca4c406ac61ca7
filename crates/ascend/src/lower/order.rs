//! Which flags a block needs: the fewest, taken one by one, that put each pair of conflicting accesses in order.
//!
//! Every queue knows up to which operation each other one is done, and a flag carries what its queue knows. The block is gone through with the flags so far; the first
//! conflict of which a queue does not know gets one more, until none is left. So what follows from other flags gets none of its own. Where a loop or branch in a loop is what
//! iterations have in common, all queues wait for each other at their ends.
//!
//! Loops and branches are put in order inside out. Where what is in one of them says that vector instructions are in order with those around it ([`Fences`]), no barrier stands out
//! there. (Flags do: one that is raised in each iteration must be waited for in each, and what is inside may have none.)

use tilewright_ir::dialect::hivm::{CORES, CoreType as Core, Pipe};

use super::effects::{Access, Fences, Node, Queue, conflict};

/// How many iterations later memory that two accesses touch is touched again.
type Distance<'d> = dyn Fn(&Access, &Access) -> u32 + 'd;

const PIPES: usize = Pipe::All as usize + 1;
const QUEUES: usize = CORES.len() * PIPES;

/// A flag from behind operation `last` in one queue to in front of operation `first` in another one, `distance` iterations later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flag {
    pub from: Queue,
    pub to: Queue,
    pub last: usize,
    pub first: usize,
    pub distance: u32,
}

/// The order of a block.
#[derive(Debug, Clone, Default)]
pub(super) struct Order {
    /// Flags within an iteration.
    pub flags: Vec<Flag>,
    /// The operations that a barrier of `PIPE_V` stands in front of.
    pub barriers: Vec<usize>,
    /// Flags to later iterations.
    pub back: Vec<Flag>,
    /// Whether an iteration ends in such a barrier.
    pub at_end: bool,
    /// The operations in front of which all queues of all cores wait for each other.
    pub meets: Vec<usize>,
    /// Whether all queues wait for each other at the end of an iteration.
    pub sealed: bool,
}

/// What a block lacks.
enum Missing {
    /// What puts an operation of the second queue behind one of the first; the operations are counted through all iterations.
    Order(Queue, Queue, usize, usize),
    /// What puts an operation behind all of the other vector core.
    Meet(usize),
}

/// Queues, as bits by their number.
type Queues = u32;

/// What each queue knows of each: the last operation that is done, counted through all iterations.
type Known = [[i64; QUEUES]; QUEUES];

/// The number of a queue.
fn number(queue: Queue) -> usize {
    let core = CORES.iter().position(|&c| c == queue.core).unwrap_or(0);
    core * PIPES + queue.pipe as usize
}

/// A queue learns of others that they are done; with the scalar unit all queues of its core wait.
fn hear(known: &mut [Queues; QUEUES], to: Queue, done: Queues) {
    match to.pipe {
        Pipe::S => Pipe::ALL[..PIPES].iter().for_each(|&pipe| known[number(Queue { pipe, ..to })] |= done),
        _ => known[number(to)] |= done,
    }
}

/// The queue whose instructions begin before earlier ones of its own are done.
const VECTORS: Queue = Queue { core: Core::Vector, pipe: Pipe::V };

impl Order {
    /// Puts the operations of one iteration in order.
    pub fn within(nodes: &[Node]) -> Order {
        let mut order = Order::default();
        while let Some(missing) = order.unordered(nodes, 1, &|_, _| 1) {
            match missing {
                Missing::Meet(j) => order.meets.push(j),
                Missing::Order(from, to, _, j) if from == to => order.barriers.push(j),
                Missing::Order(from, to, i, j) => {
                    order.flags.push(Flag { from, to, last: i, first: j, distance: 0 });
                }
            }
        }
        order.needed(nodes, 1, &|_, _| 1);
        order
    }

    /// Leaves out what follows from what was added after it.
    fn needed(&mut self, nodes: &[Node], iterations: usize, distance: &Distance<'_>) {
        let without = |order: &mut Order, change: &dyn Fn(&mut Order)| {
            let mut less = order.clone();
            change(&mut less);
            let enough = less.unordered(nodes, iterations, distance).is_none();
            if enough {
                *order = less;
            }
        };
        if self.at_end {
            without(self, &|order| order.at_end = false);
        }
        for i in (0..self.meets.len()).rev() {
            without(self, &|order| _ = order.meets.remove(i));
        }
        for i in (0..self.barriers.len()).rev() {
            without(self, &|order| _ = order.barriers.remove(i));
        }
        for i in (0..self.flags.len()).rev() {
            without(self, &|order| _ = order.flags.remove(i));
        }
        for i in (0..self.back.len()).rev() {
            without(self, &|order| _ = order.back.remove(i));
        }
    }

    /// All that is between iterations is that all queues wait for each other.
    fn seal(&mut self) {
        self.back.clear();
        (self.at_end, self.sealed) = (false, true);
    }

    /// Puts iterations in order, the first with those that come up to `most` later; `distance` says how much later memory is touched again.
    pub fn around(&mut self, nodes: &[Node], distance: impl Fn(&Access, &Access) -> u32, most: u32) {
        while let Some(missing) = self.unordered(nodes, most as usize + 2, &distance) {
            let Missing::Order(from, to, i, j) = missing else {
                self.seal();
                continue;
            };
            if from == to {
                self.at_end = true;
                continue;
            }
            let n = nodes.len();
            let found = self.reach(nodes, (from, to), (i % n, j % n), &distance);
            // What a loop or branch holds may itself be in order in both directions: then one of the queues could raise a flag twice before the other one waits.
            let holds = [i % n, j % n, found.last, found.first].iter().any(|&k| nodes[k].holds);
            match holds {
                true => self.seal(),
                false => self.back.push(found),
            }
        }
        self.needed(nodes, most as usize + 2, &distance);
    }

    /// The flag for all conflicts between two queues that are as far apart as this one.
    fn reach(
        &self,
        nodes: &[Node],
        queues: (Queue, Queue),
        (i, j): (usize, usize),
        distance: &Distance<'_>,
    ) -> Flag {
        let mut conflicts = Vec::new();
        for (last, a) in nodes.iter().enumerate() {
            for (first, b) in nodes.iter().enumerate().take(last + 1) {
                for x in a.touched.iter().filter(|x| x.queue == queues.0) {
                    for y in b.touched.iter().filter(|y| y.queue == queues.1 && conflict(x, y)) {
                        conflicts.push((last, first, distance(x, y)));
                    }
                }
            }
        }
        let far = conflicts.iter().filter(|c| (c.0, c.1) == (i, j)).map(|c| c.2).min().unwrap_or(1);
        let same = || conflicts.iter().filter(|c| c.2 == far);
        let last = same().map(|c| c.0).max().unwrap_or(i);
        let first = same().map(|c| c.1).min().unwrap_or(j);
        Flag { from: queues.0, to: queues.1, last, first, distance: far }
    }

    /// What the flags and barriers say of vector instructions in each operation. In a `nested` loop flags of earlier iterations say nothing of what is around it.
    pub fn fences(&self, nodes: &[Node], nested: bool) -> Vec<Fences> {
        let back = if nested { &[][..] } else { &self.back[..] };
        let v = number(VECTORS);
        let mut found = vec![Fences::default(); nodes.len()];
        // By queue: the queues of which it knows that all before the block is done.
        let mut known: Vec<[Queues; QUEUES]> = Vec::new();
        for (at, fences) in found.iter_mut().enumerate() {
            let mut now = known.last().copied().unwrap_or_default();
            for flag in self.flags.iter().filter(|flag| flag.first == at) {
                let from = number(flag.from);
                hear(&mut now, flag.to, known[flag.last][from] | 1 << from);
            }
            // (Those of earlier iterations are raised in front of the first one.)
            for flag in back.iter().filter(|flag| flag.first == at) {
                hear(&mut now, flag.to, 1 << number(flag.from));
            }
            if self.barriers.contains(&at) || self.meets.contains(&at) || nodes[at].meets {
                hear(&mut now, VECTORS, 1 << v);
            }
            *fences = Fences { behind: now[v] >> v & 1 == 1, ahead: self.told(nodes, at, back) };
            known.push(now);
        }
        found
    }

    /// Whether vector instructions behind a block begin when one in one of its operations is done.
    fn told(&self, nodes: &[Node], at: usize, back: &[Flag]) -> bool {
        let v = number(VECTORS);
        // The queues that know of it, behind each operation that follows.
        let mut known: Vec<Queues> = Vec::new();
        let knows = |known: &[Queues], flag: &Flag| {
            let before = flag.last.checked_sub(at + 1).map_or(0, |i| known[i]);
            flag.last >= at && (flag.from == VECTORS || before >> number(flag.from) & 1 == 1)
        };
        let mut now = 0;
        for (next, node) in nodes.iter().enumerate().skip(at + 1) {
            for flag in self.flags.iter().filter(|flag| flag.first == next && knows(&known, flag)) {
                now |= 1 << number(flag.to);
            }
            if self.barriers.contains(&next) || self.meets.contains(&next) || node.meets {
                now |= 1 << v;
            }
            known.push(now);
        }
        for flag in back.iter().filter(|flag| knows(&known, flag)) {
            now |= 1 << number(flag.to);
        }
        self.at_end || self.sealed || now >> v & 1 == 1
    }

    /// The first conflict that nothing puts in order.
    fn unordered(&self, nodes: &[Node], iterations: usize, distance: &Distance<'_>) -> Option<Missing> {
        let n = nodes.len();
        let mut known: Known = [[-1; QUEUES]; QUEUES];
        // The last operation that the other vector core is known to have done.
        let mut met = -1;
        let mut behind: Vec<Known> = Vec::new();
        for at in 0..n * iterations {
            let (turn, j) = (at / n, at % n);
            for flag in
                self.flags.iter().chain(&self.back).filter(|f| f.first == j && turn >= f.distance as usize)
            {
                let from = (turn - flag.distance as usize) * n + flag.last;
                let (p, q) = (number(flag.from), number(flag.to));
                for other in 0..QUEUES {
                    known[q][other] = known[q][other].max(behind[from][p][other]);
                }
                known[q][p] = known[q][p].max(from as i64);
                // The scalar unit hands out what comes next: all other queues of its core wait with it.
                if flag.to.pipe == Pipe::S {
                    let scalar = known[q];
                    for &pipe in &Pipe::ALL[..PIPES] {
                        let waits = &mut known[number(Queue { pipe, ..flag.to })];
                        // (What it reads and writes itself may go on.)
                        let others = waits.iter_mut().zip(scalar).enumerate().filter(|(i, _)| *i != q);
                        others.for_each(|(_, (knows, last))| *knows = (*knows).max(last));
                    }
                }
            }
            if (self.sealed && j == 0) || self.meets.contains(&j) || nodes[j].meets {
                known = [[at as i64 - 1; QUEUES]; QUEUES];
                met = at as i64 - 1;
            }
            // A product begins when what it reads of L1 was taken out of there.
            if nodes[j].takes {
                let [taken, product] =
                    [Pipe::Mte1, Pipe::M].map(|pipe| number(Queue { core: Core::Cube, pipe }));
                let hands = known[taken];
                let hears = known[product].iter_mut().zip(hands);
                hears.for_each(|(knows, last)| *knows = (*knows).max(last));
                known[product][taken] = at as i64;
            }
            let v = number(VECTORS);
            if self.barriers.contains(&j) || (self.at_end && j == 0) {
                known[v][v] = known[v][v].max(at as i64 - 1);
            }
            if let Some(found) = self.unknown(nodes, at, (&known, met), distance) {
                return Some(found);
            }
            for access in nodes[j].touched.iter().filter(|a| a.queue != VECTORS) {
                known[number(access.queue)][number(access.queue)] = at as i64;
            }
            behind.push(known);
        }
        None
    }

    /// A conflict of an operation with one before it of which its queue does not know; another queue's rather than its own.
    fn unknown(
        &self,
        nodes: &[Node],
        at: usize,
        (known, met): (&Known, i64),
        distance: &Distance<'_>,
    ) -> Option<Missing> {
        let n = nodes.len();
        let mut own = None;
        for before in (0..at).rev() {
            let apart = at / n - before / n;
            let again = |a: &Access, b: &Access| apart == 0 || (apart as u32).is_multiple_of(distance(a, b));
            // What the one vector core does may be in the way of what the other one does.
            let shared = |node: usize| nodes[node % n].touched.iter().filter(|a| a.shared);
            let crosses = shared(before).any(|a| shared(at).any(|b| conflict(a, b)));
            if crosses && met < before as i64 {
                return Some(Missing::Meet(at % n));
            }
            for a in &nodes[before % n].touched {
                for b in nodes[at % n].touched.iter().filter(|b| conflict(a, b) && again(a, b)) {
                    let (p, q) = (number(a.queue), number(b.queue));
                    // What is inside the operations may be enough.
                    let fenced = p == q && (b.fences.behind || a.fences.ahead);
                    if known[q][p] >= before as i64 || fenced {
                        continue;
                    }
                    if p != q {
                        return Some(Missing::Order(a.queue, b.queue, before, at));
                    }
                    if a.queue == VECTORS {
                        own = own.or(Some(Missing::Order(a.queue, b.queue, before, at)));
                    }
                }
            }
        }
        own
    }
}
