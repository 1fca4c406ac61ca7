//! Modulo scheduling: when each operation of a loop begins if a new iteration begins every so many cycles (B. R. Rau, "Iterative
//! Modulo Scheduling: An Algorithm For Software Pipelining Loops", MICRO 1994).
//!
//! It knows nothing of the IR: a [`Graph`] has operations, each of which keeps one resource busy, and dependences, within an
//! iteration or over some. The *interval* is no shorter than
//!
//! - what each resource needs for an iteration, nor
//! - what a recurrence needs: a cycle of dependences that takes `latency` cycles over `distance` iterations.
//!
//! From there on intervals are tried until one has room for all. An operation here is one on a whole tile, a sequence of
//! instructions: where its resource is taken for a while it goes on afterwards, but for products, of which each runs to its
//! end. So the order in which operations get their resource (by the longest path that leads to them) can be kept, and none
//! has to be evicted again.
//!
//! The *stage* of an operation is how many intervals after the beginning of its iteration it begins. Operations of
//! different stages run, in one turn of the pipelined loop, for different iterations.

use std::collections::BTreeSet;

/// What an operation keeps busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// The tensor cores.
    Tensor,
    /// The warps' own arithmetic: issue slots, and the units behind them.
    Arithmetic,
    /// The engines that copy to shared memory.
    Copies,
}

const RESOURCES: usize = 3;

/// Since what of an operation a dependence counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// Its first instruction.
    Begin,
    /// When its resource is done with it.
    End,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    resource: Resource,
    busy: u32,
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    from: usize,
    to: usize,
    since: Since,
    latency: u32,
    distance: u32,
}

/// The operations of a loop and what depends on what.
#[derive(Debug, Default, Clone)]
pub struct Graph {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Times {
    /// Cycles from one iteration's beginning to the next one's.
    pub interval: u32,
    /// When each operation begins, counted from its iteration's beginning.
    pub begins: Vec<u32>,
    /// When its operands are there: it may begin later because its resource is busy.
    pub ready: Vec<u32>,
}

impl Times {
    /// By how many stages `b` comes after `a`: in one turn of the pipelined loop it runs for an iteration that many earlier.
    pub fn stages_between(&self, a: usize, b: usize) -> i64 {
        let stage = |n: usize| i64::from(self.begins[n] / self.interval);
        stage(b) - stage(a)
    }
}

/// Intervals are divided into at most this many cells, of which a table says how much is taken.
const CELLS: u32 = 128;

/// How often operations are moved behind what earlier iterations give them before the interval is made longer.
const ROUNDS: usize = 8;

impl Graph {
    /// Adds an operation that keeps `resource` busy for so many cycles.
    pub fn add(&mut self, resource: Resource, busy: u32) -> usize {
        self.nodes.push(Node { resource, busy });
        self.nodes.len() - 1
    }

    /// `to` begins no earlier than `latency` cycles after `from` of `distance` iterations before. Those of one iteration must not
    /// lead back to where they come from.
    pub fn depend(&mut self, from: usize, since: Since, to: usize, latency: u32, distance: u32) {
        self.edges.push(Edge { from, to, since, latency, distance });
    }

    /// How long the busiest resource is busy with one iteration.
    pub fn resource_bound(&self) -> u32 {
        let mut busy = [0; RESOURCES];
        for n in &self.nodes {
            busy[n.resource as usize] += n.busy;
        }
        busy.into_iter().max().unwrap_or(0)
    }

    /// The shortest interval that the recurrences allow.
    pub fn recurrence_bound(&self) -> u32 {
        self.sorted().recurrence_bound()
    }

    /// A schedule with the shortest interval that is found.
    pub fn schedule(&self) -> Times {
        let sorted = self.sorted();
        let mut interval = self.resource_bound().max(sorted.recurrence_bound()).max(1);
        let mut none = interval - 1;
        // Longer and longer, then back towards the last one without room.
        let mut found = loop {
            if let Some(times) = sorted.place(interval) {
                break times;
            }
            none = interval;
            interval += interval.div_ceil(16);
        };
        while found.interval - none > interval.div_ceil(256) {
            let middle = none + (found.interval - none) / 2;
            match sorted.place(middle) {
                Some(times) => found = times,
                None => none = middle,
            }
        }
        found
    }

    fn sorted(&self) -> Sorted<'_> {
        let mut waits = vec![0; self.nodes.len()];
        let mut out: Vec<Vec<Edge>> = vec![Vec::new(); self.nodes.len()];
        for e in &self.edges {
            out[e.from].push(*e);
            waits[e.to] += u32::from(e.distance == 0);
        }
        let mut free: BTreeSet<usize> = (0..self.nodes.len()).filter(|&n| waits[n] == 0).collect();
        let mut place = vec![0; self.nodes.len()];
        let mut edges = Vec::with_capacity(self.edges.len());
        for at in 0.. {
            let Some(n) = free.pop_first() else { break };
            place[n] = at;
            for e in &out[n] {
                edges.push(*e);
                if e.distance == 0 {
                    waits[e.to] -= 1;
                    if waits[e.to] == 0 {
                        free.insert(e.to);
                    }
                }
            }
        }
        let mut carried_to: Vec<usize> = edges.iter().filter(|e| e.distance > 0).map(|e| e.to).collect();
        carried_to.sort_unstable();
        carried_to.dedup();
        Sorted { nodes: &self.nodes, place, edges, carried_to: carried_to.len() }
    }
}

/// A graph with its dependences in an order in which all within an iteration lead on.
struct Sorted<'a> {
    nodes: &'a [Node],
    /// Where an operation comes in that order.
    place: Vec<u32>,
    edges: Vec<Edge>,
    /// How many operations depend on earlier iterations.
    carried_to: usize,
}

impl Sorted<'_> {
    fn length(&self, e: &Edge) -> u32 {
        e.latency + if e.since == Since::End { self.nodes[e.from].busy } else { 0 }
    }

    fn recurrence_bound(&self) -> u32 {
        let (mut short, mut long) = (0, self.edges.iter().map(|e| self.length(e)).sum());
        while short < long {
            let middle = short + (long - short) / 2;
            if self.longest_paths(middle).is_some() {
                long = middle;
            } else {
                short = middle + 1;
            }
        }
        short
    }

    /// When each operation could begin if every resource were free, or `None` if an iteration would have to wait for
    /// itself: a path that ends goes to each operation that depends on earlier iterations once, and a round follows it from
    /// one to the next.
    fn longest_paths(&self, interval: u32) -> Option<Vec<u32>> {
        let mut at = vec![0; self.nodes.len()];
        for _ in 0..=self.carried_to + 1 {
            let mut changed = false;
            for e in &self.edges {
                let there = (at[e.from] + self.length(e)).saturating_sub(e.distance.saturating_mul(interval));
                if there > at[e.to] {
                    at[e.to] = there;
                    changed = true;
                }
            }
            if !changed {
                return Some(at);
            }
        }
        None
    }

    /// A schedule with this interval, if there is room.
    fn place(&self, interval: u32) -> Option<Times> {
        let mut not_before = self.longest_paths(interval)?;
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_unstable_by_key(|&n| (not_before[n], self.place[n]));
        let mut into: Vec<Vec<&Edge>> = vec![Vec::new(); self.nodes.len()];
        for e in self.edges.iter().filter(|e| e.distance == 0) {
            into[e.to].push(e);
        }
        for _ in 0..ROUNDS {
            let mut table = Table::new(interval);
            let mut begins = vec![0; self.nodes.len()];
            let mut ends = begins.clone();
            let mut ready = not_before.clone();
            let there = |e: &Edge, begins: &[u32], ends: &[u32]| {
                let from = if e.since == Since::End { ends[e.from] } else { begins[e.from] };
                (from + e.latency).saturating_sub(e.distance.saturating_mul(interval))
            };
            for &n in &order {
                for e in &into[n] {
                    ready[n] = ready[n].max(there(e, &begins, &ends));
                }
                let Node { resource, busy } = self.nodes[n];
                (begins[n], ends[n]) = table.take(resource, ready[n], busy)?;
            }
            let mut late = false;
            for e in self.edges.iter().filter(|e| e.distance > 0) {
                let there = there(e, &begins, &ends);
                if there > begins[e.to] {
                    not_before[e.to] = not_before[e.to].max(there);
                    late = true;
                }
            }
            if !late {
                return Some(Times { interval, begins, ready });
            }
        }
        None
    }
}

/// What is taken of each resource in the interval.
struct Table {
    interval: u32,
    cells: u32,
    /// Of each resource in each cell.
    taken: [Vec<u32>; RESOURCES],
    /// By products: from when on, and for how long.
    products: Vec<(u32, u32)>,
}

impl Table {
    fn new(interval: u32) -> Self {
        let cells = interval.min(CELLS);
        let taken = std::array::from_fn(|_| vec![0; cells as usize]);
        Table { interval, cells, taken, products: Vec::new() }
    }

    /// Takes `busy` cycles from `ready` on; when they begin and end.
    fn take(&mut self, resource: Resource, ready: u32, busy: u32) -> Option<(u32, u32)> {
        match resource {
            _ if busy == 0 => Some((ready, ready)),
            Resource::Tensor => self.take_together(ready, busy),
            Resource::Arithmetic | Resource::Copies => {
                Some(self.take_as_free(resource as usize, ready, busy))
            }
        }
    }

    /// Products run one after the other.
    fn take_together(&mut self, ready: u32, busy: u32) -> Option<(u32, u32)> {
        let interval = self.interval;
        let since = |t: u32, from: u32| (t + interval - from) % interval;
        let ends =
            self.products.iter().map(|&(from, n)| ready + since((from + n) % interval, ready % interval));
        let free = |&t: &u32| {
            let t = t % interval;
            self.products.iter().all(|&(from, n)| since(t, from) >= n && since(from, t) >= busy)
        };
        let begin = std::iter::once(ready).chain(ends).filter(free).min()?;
        self.products.push((begin % interval, busy));
        Some((begin, begin + busy))
    }

    /// Other operations go on when what comes between them is done.
    fn take_as_free(&mut self, resource: usize, ready: u32, busy: u32) -> (u32, u32) {
        let (interval, cells) = (self.interval, self.cells);
        let (mut left, mut begin, mut end) = (busy, ready, ready);
        let part = |n: u32, of: u32, parts: u32| (u64::from(n) * u64::from(parts) / u64::from(of)) as u32;
        let now = ready / interval * cells + part(ready % interval, interval, cells);
        let first = |cell: u32| cell / cells * interval + part(cell % cells, cells, interval);
        // All cells together have room for all operations.
        for cell in now..=now + cells {
            if left == 0 {
                break;
            }
            let used = &mut self.taken[resource][(cell % cells) as usize];
            let now = left.min(first(cell + 1) - first(cell) - *used);
            if now > 0 {
                let at = ready.max(first(cell) + *used);
                if left == busy {
                    begin = at;
                }
                end = at + now;
                *used += now;
                left -= now;
            }
        }
        (begin, end.max(begin + busy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Resource::{Arithmetic, Copies, Tensor};

    /// A load, its arithmetic and its product: each resource is busy for so long.
    fn chain(copy: u32, arithmetic: u32, tensor: u32) -> (Graph, [usize; 3]) {
        let mut g = Graph::default();
        let ops = [g.add(Copies, copy), g.add(Arithmetic, arithmetic), g.add(Tensor, tensor)];
        g.depend(ops[0], Since::End, ops[1], 600, 0);
        g.depend(ops[1], Since::End, ops[2], 0, 0);
        (g, ops)
    }

    #[test]
    fn the_busiest_resource_bounds_the_interval() {
        for (busy, bound) in [((10, 20, 30), 30), ((10, 50, 30), 50), ((70, 20, 30), 70)] {
            let (g, [load, _, dot]) = chain(busy.0, busy.1, busy.2);
            assert_eq!((g.resource_bound(), g.recurrence_bound()), (bound, 0));
            let times = g.schedule();
            assert_eq!(times.interval, bound);
            // So many iterations are under way that the latency is hidden.
            let wanted = i64::from((busy.0 + 600 + busy.1) / bound);
            assert_eq!(times.stages_between(load, dot), wanted);
        }
    }

    #[test]
    fn a_recurrence_bounds_the_interval() {
        let mut g = Graph::default();
        let [a, b] = [g.add(Tensor, 30), g.add(Arithmetic, 20)];
        g.depend(a, Since::End, b, 5, 0);
        g.depend(b, Since::End, a, 0, 1);
        assert_eq!((g.resource_bound(), g.recurrence_bound()), (30, 55));
        assert_eq!(g.schedule().interval, 55);
        // Over two iterations it takes half of that from each.
        let mut g = Graph::default();
        let [a, b] = [g.add(Tensor, 10), g.add(Arithmetic, 20)];
        g.depend(a, Since::End, b, 5, 0);
        g.depend(b, Since::End, a, 0, 2);
        assert_eq!((g.recurrence_bound(), g.schedule().interval), (18, 20));
    }

    #[test]
    fn slots_are_a_recurrence() {
        // A copy waits for its slot, which is read three iterations later.
        for (slots, interval) in [(2, 310), (3, 207), (7, 100)] {
            let (mut g, [load, _, dot]) = chain(10, 5, 5);
            let other = g.add(Arithmetic, 95);
            g.depend(dot, Since::End, load, 0, slots);
            let _ = other;
            assert_eq!(g.schedule().interval, interval);
        }
    }

    #[test]
    fn the_second_product_of_attention_overlaps_the_next_first() {
        // Two products of 512 with 865 cycles of arithmetic between them; iterations begin when the arithmetic is through.
        let mut g = Graph::default();
        let [begin, first, softmax, second] =
            [g.add(Arithmetic, 0), g.add(Tensor, 512), g.add(Arithmetic, 865), g.add(Tensor, 512)];
        g.depend(begin, Since::Begin, first, 0, 0);
        g.depend(first, Since::End, softmax, 32, 0);
        g.depend(softmax, Since::End, second, 0, 0);
        g.depend(softmax, Since::End, begin, 0, 1);
        let times = g.schedule();
        assert_eq!(times.interval, 512 + 32 + 865);
        assert_eq!(times.stages_between(first, second), 1);
        // If it has to be issued within its iteration, the next one's first product stands behind it.
        g.depend(second, Since::Begin, begin, 0, 1);
        g.depend(begin, Since::Begin, second, 0, 0);
        let times = g.schedule();
        assert!((1921..1960).contains(&times.interval), "{times:?}");
    }

    #[test]
    fn what_is_ready_goes_first() {
        // Two products before the arithmetic that only one of them feeds.
        let mut g = Graph::default();
        let [first, arithmetic, other] = [g.add(Tensor, 100), g.add(Arithmetic, 50), g.add(Tensor, 100)];
        g.depend(first, Since::End, arithmetic, 0, 0);
        let times = g.schedule();
        assert_eq!(times.ready, [0, 100, 0]);
        assert_eq!(times.begins, [0, 100, 100]);
        assert!(times.ready[other] < times.ready[arithmetic]);
    }

    #[test]
    fn long_intervals_are_counted_in_cells() {
        let (g, ops) = chain(100, 9000, 20000);
        let times = g.schedule();
        assert_eq!(times.interval, 20000);
        assert_eq!(times.stages_between(ops[0], ops[2]), 0);
    }
}
