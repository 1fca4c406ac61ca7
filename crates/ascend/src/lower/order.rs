//! Which flags a block needs: the fewest, taken one by one, that put each pair of conflicting accesses in order.
//!
//! Every queue knows up to which operation each other one is done, and a flag carries what its queue knows. The block is gone through with the flags so far; the first
//! conflict of which a queue does not know gets one more, until none is left. So what follows from other flags gets none of its own.

use tilewright_ir::dialect::hivm::Pipe;

use super::flags::{Access, Node, conflict};

/// How many iterations later memory that two accesses touch is touched again.
type Distance<'d> = dyn Fn(&Access, &Access) -> u32 + 'd;

const PIPES: usize = Pipe::All as usize + 1;

/// A flag from behind operation `last` in one queue to in front of operation `first` in another one, `distance` iterations later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flag {
    pub from: Pipe,
    pub to: Pipe,
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
}

/// What each queue knows of each: the last operation that is done, counted through all iterations.
type Known = [[i64; PIPES]; PIPES];

fn number(pipe: Pipe) -> usize {
    Pipe::ALL.iter().position(|&p| p == pipe).unwrap_or(0)
}

impl Order {
    /// Puts the operations of one iteration in order.
    pub fn within(nodes: &[Node]) -> Order {
        let mut order = Order::default();
        while let Some((from, to, i, j)) = order.unordered(nodes, 1, &|_, _| 1) {
            if from == to {
                order.barriers.push(j);
            } else {
                order.flags.push(Flag { from, to, last: i, first: j, distance: 0 });
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

    /// Puts iterations in order, the first with those that come up to `most` later; `distance` says how much later memory is touched again.
    pub fn around(&mut self, nodes: &[Node], distance: impl Fn(&Access, &Access) -> u32, most: u32) {
        while let Some((from, to, i, j)) = self.unordered(nodes, most as usize + 2, &distance) {
            if from == to {
                self.at_end = true;
                continue;
            }
            let n = nodes.len();
            let found = self.reach(nodes, (from, to), (i % n, j % n), &distance);
            self.back.push(found);
        }
        self.needed(nodes, most as usize + 2, &distance);
    }

    /// The flag for all conflicts between two queues that are as far apart as this one.
    fn reach(
        &self,
        nodes: &[Node],
        pipes: (Pipe, Pipe),
        (i, j): (usize, usize),
        distance: &Distance<'_>,
    ) -> Flag {
        let mut conflicts = Vec::new();
        for (last, a) in nodes.iter().enumerate() {
            for (first, b) in nodes.iter().enumerate().take(last + 1) {
                for x in a.touched.iter().filter(|x| x.pipe == pipes.0) {
                    for y in b.touched.iter().filter(|y| y.pipe == pipes.1 && conflict(x, y)) {
                        conflicts.push((last, first, distance(x, y)));
                    }
                }
            }
        }
        let far = conflicts.iter().filter(|c| (c.0, c.1) == (i, j)).map(|c| c.2).min().unwrap_or(1);
        let same = || conflicts.iter().filter(|c| c.2 == far);
        let last = same().map(|c| c.0).max().unwrap_or(i);
        let first = same().map(|c| c.1).min().unwrap_or(j);
        Flag { from: pipes.0, to: pipes.1, last, first, distance: far }
    }

    /// The first conflict that nothing puts in order: the queues, and the operations counted through all iterations.
    fn unordered(
        &self,
        nodes: &[Node],
        iterations: usize,
        distance: &Distance<'_>,
    ) -> Option<(Pipe, Pipe, usize, usize)> {
        let n = nodes.len();
        let mut known: Known = [[-1; PIPES]; PIPES];
        let mut behind: Vec<Known> = Vec::new();
        for at in 0..n * iterations {
            let (turn, j) = (at / n, at % n);
            for flag in
                self.flags.iter().chain(&self.back).filter(|f| f.first == j && turn >= f.distance as usize)
            {
                let from = (turn - flag.distance as usize) * n + flag.last;
                let (p, q) = (number(flag.from), number(flag.to));
                for other in 0..PIPES {
                    known[q][other] = known[q][other].max(behind[from][p][other]);
                }
                known[q][p] = known[q][p].max(from as i64);
                // The scalar unit hands out what comes next: all other queues wait with it.
                if flag.to == Pipe::S {
                    let scalar = known[q];
                    for (knows, last) in known.iter_mut().flat_map(|k| k.iter_mut().zip(scalar)) {
                        *knows = (*knows).max(last);
                    }
                }
            }
            let v = number(Pipe::V);
            if self.barriers.contains(&j) || (self.at_end && j == 0) {
                known[v][v] = known[v][v].max(at as i64 - 1);
            }
            if let Some(found) = self.unknown(nodes, at, &known, distance) {
                return Some(found);
            }
            for access in nodes[j].touched.iter().filter(|a| a.pipe != Pipe::V) {
                known[number(access.pipe)][number(access.pipe)] = at as i64;
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
        known: &Known,
        distance: &Distance<'_>,
    ) -> Option<(Pipe, Pipe, usize, usize)> {
        let n = nodes.len();
        let mut own = None;
        for before in (0..at).rev() {
            let apart = at / n - before / n;
            let again = |a: &Access, b: &Access| apart == 0 || (apart as u32).is_multiple_of(distance(a, b));
            for a in nodes[before % n].touched.iter().filter(|a| a.pipe != Pipe::S) {
                for b in nodes[at % n].touched.iter().filter(|b| conflict(a, b) && again(a, b)) {
                    let (p, q) = (number(a.pipe), number(b.pipe));
                    if known[q][p] >= before as i64 {
                        continue;
                    }
                    if p != q {
                        return Some((a.pipe, b.pipe, before, at));
                    }
                    if a.pipe == Pipe::V {
                        own = own.or(Some((a.pipe, b.pipe, before, at)));
                    }
                }
            }
        }
        own
    }
}
