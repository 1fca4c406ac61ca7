//! Writes a scheduled loop: a prologue that fills the pipeline, and the kernel, in which what runs ahead is masked off past
//! the last iteration. So there is no epilogue, and the loop's results need nothing.
//!
//! What runs ahead is a chain of *levels* ([`schedule`](super::schedule)). Level 0 stands `stages - 1` iterations ahead of
//! the body and issues the copies; each further level stands `between_levels` iterations before the one that it hands the
//! values it has loaded. Each level is a clone of its slice, with carried values of its own. To step level k on is
//!
//! 1. to emit its slice for the iteration at which it stands, on the values that level k + 1 has loaded for it (the oldest
//!    that wait);
//! 2. to step level k + 1 on.
//!
//! At run time, iteration i of the new loop
//!
//! 1. waits until the copies of iteration i have arrived (`stages - 2` groups may still be under way);
//! 2. issues the copies of iteration i + stages - 1 into the slot that iteration i - 1 has read; the barrier that follows
//!    the wait is what makes this safe, so the loop has one barrier;
//! 3. runs the body on the slot of iteration i.
//!
//! Where the loop stands in another one and its first copies can be issued in the iteration before ([`prologue_overlap`](super::prologue_overlap)),
//! they are: behind the loop, and before the other loop for its first iteration. The ring goes on where it stood.
//!
//! Where a loop has several dots for warp groups, or one and four stages, steps 1 and 2 come behind the first dot and wait for
//! the *next* iteration's copies (those of the first are waited for before the loop): the tensor cores are busy then. A copy less is
//! under way at that wait, which a loop whose copies take longer than its dot ([`Schedule::starved`]) can't spare: there step 1 stays at the
//! top, and step 2 comes behind the dot and a barrier of its own.
//!
//! Where each thread reads what it has copied itself ([`Schedule::own`]) nobody else waits for it: step 1 stands before the first of these reads, and step 2 behind
//! the last, into the slot that has just been read. So there is a slot less, and no barrier.
//!
//! Where it can, a loop of dots has no barrier at all but a [split](super::split_barrier) one, and rings with a slot more:
//! iteration i
//!
//! 1. waits until all warps have arrived in iteration i - 1: then they have finished iteration i - 2, and the copies of
//!    iteration i are visible;
//! 2. issues its first dot, waits for its copies of the next iteration, and arrives;
//! 3. issues the copies of iteration i + stages - 1 into the slot that iteration i - 2 has read (with two stages before 2).
//!
//! Copies by TMA are waited for at mbarriers of their own, right before they are read; for them arriving in 2 only says that
//! iteration i - 1 is finished.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{arith, scf, tt, ttg, ttng};
use tilewright_ir::{Block, Builder, Module, Op, Type, Value};

use super::async_copies::{self, Copy};
use super::backward_slice::Slice;
use super::graph::is_dot;
use super::prologue_overlap::Outer;
use super::schedule::Schedule;
use super::split_barrier::SplitBarrier;
use super::tma_copies::Blocks;
use crate::analysis::counting::Counting;
use crate::analysis::promises::Promises;
use crate::analysis::rings;
use crate::analysis::rings::position;
use crate::transform::membar;

/// Rewrites a loop as its schedule says.
///
/// `max_shared` are the bytes of shared memory that a CTA can have.
pub fn expand(module: &mut Module, at: (scf::For, Schedule), promises: &Promises, max_shared: u32) {
    Expander::new(module, at, promises, max_shared).expand();
}

/// A slice in program order, with where it stands.
struct Level {
    ops: Vec<Op>,
    carried: Vec<usize>,
    /// The values of the carried values in the iteration to come.
    at: Vec<Value>,
    /// The values that it loads for the level before.
    gives: Vec<Value>,
    /// What they are in the iterations that the level before is to emit next.
    given: VecDeque<Vec<Value>>,
}

struct Expander<'m> {
    m: &'m mut Module,
    l: scf::For,
    body: Block,
    /// The body's arguments before any were added, and its end.
    args: Vec<Value>,
    yielded: Op,
    stages: u32,
    slots: u32,
    split: bool,
    starved: bool,
    own: bool,
    levels: Vec<Level>,
    between_levels: u32,
    copies: Vec<Copy>,
    /// The ring of which the copies that threads make fill the fields.
    ring: Option<Value>,
    blocks: Blocks,
    /// The loop around, if the pipeline runs on through its iterations.
    outer: Option<Outer>,
    counting: Counting,
}

/// An iteration: that of the number `value`, so many behind another one.
#[derive(Clone, Copy)]
struct Iteration {
    value: Value,
    from: Value,
    ahead: u32,
    /// Whether that one is of the loop itself; otherwise it is the first, which may not run.
    runs: bool,
}

impl Iteration {
    /// Whether it is one of a loop of these bounds.
    fn is_inside(
        self,
        m: &mut Module,
        counting: Counting,
        (l, bounds): (scf::For, [Value; 3]),
        anchor: Op,
    ) -> Value {
        if self.runs {
            counting.is_inside(m, (l, anchor), (self.from, self.value), self.ahead)
        } else {
            let mut b = Builder::before(m, anchor);
            counting.is_inside_from_first(&mut b, (bounds, self.value), self.ahead)
        }
    }
}

/// The bounds of the loop.
#[derive(Clone)]
struct Bounds {
    lower: Value,
    upper: Value,
    step: Value,
    /// Whether the loop runs at all, where it is that of a later iteration of the loop around.
    runs: Option<Value>,
    /// What values from outside the loop are in that iteration.
    outside: FxHashMap<Value, Value>,
}

/// What the loop counts beside its iterations: a position is a slot with the phase of its mbarrier.
struct Counters {
    /// The position to read as the loop begins.
    first: (Value, Value),
    /// The position to read in an iteration.
    now: (Value, Value),
    /// The slot to fill in it.
    free: Value,
    /// The phase of a split barrier: it has one an iteration, the mbarriers of slots one each time that slots begin anew.
    turn: Option<Value>,
}

/// Constants before the loop.
struct Numbers {
    zero: Value,
    one: Value,
    slots: Value,
}

impl<'m> Expander<'m> {
    fn new(
        m: &'m mut Module,
        (l, schedule): (scf::For, Schedule),
        promises: &Promises,
        max_shared: u32,
    ) -> Self {
        let body = m.region_block(l.body(m));
        let ops: Vec<Op> = m.block_ops(body).collect();
        let init = l.init(m).to_vec();
        let slots = schedule.slots();
        // (A split barrier is the inner loop's own.)
        let outer = if schedule.split { None } else { Outer::of(m, l, &schedule, promises, max_shared) };
        let Schedule { stages, copies, blocks, levels, between_levels, split, starved, own, .. } = schedule;
        let mut gives = Vec::new();
        let mut out = Vec::new();
        for (k, Slice { ops: slice, mut carried, loaded }) in levels.into_iter().enumerate() {
            let copied =
                |op: Op| k == 0 && (copies.iter().any(|c| c.0 == op) || blocks.iter().any(|c| c.0 == op));
            carried.sort_unstable();
            out.push(Level {
                ops: ops.iter().copied().filter(|&op| slice.contains(&op) || copied(op)).collect(),
                at: carried.iter().map(|&c| init[c]).collect(),
                carried,
                gives: std::mem::replace(&mut gives, loaded),
                given: VecDeque::new(),
            });
        }
        let copies: Vec<Copy> =
            copies.into_iter().map(|load| Copy::allocate(m, l, load, (slots, !own))).collect();
        let fields: Vec<Value> = copies.iter().map(|copy| copy.field).collect();
        let ring = (!fields.is_empty()).then(|| rings::create(&mut Builder::before(m, l.0), &fields, slots));
        let around = outer.as_ref().map_or(l, |o| o.l);
        let blocks = Blocks::allocate(m, l, around, &blocks, slots);
        if split {
            fields.into_iter().chain(blocks.fields()).for_each(|field| membar::leave_alone(m, field));
        }
        Expander {
            counting: Counting::of(m, l, promises),
            args: m.block_args(body).to_vec(),
            yielded: m.last_op(body).expect("a loop body ends with a yield"),
            m,
            l,
            body,
            stages,
            slots,
            split,
            starved,
            own,
            levels: out,
            between_levels,
            copies,
            ring,
            blocks,
            outer,
        }
    }

    fn expand(mut self) {
        let bounds = &Bounds {
            lower: self.l.lower_bound(self.m),
            upper: self.l.upper_bound(self.m),
            step: self.l.step(self.m),
            runs: None,
            outside: FxHashMap::default(),
        };
        let iv_ty = self.m.value_type(bounds.lower);

        let barrier = self.split.then(|| SplitBarrier::create(self.m, self.l));

        // Before the loop: what later levels need, and the copies of the first iterations.
        let outer = self.outer.take();
        let begin = outer.as_ref().map(|outer| self.enter(outer, bounds));
        if begin.is_none() {
            self.fill(1, bounds);
            let slots: Vec<u32> = (0..self.stages - 1).collect();
            let mut b = Builder::before(self.m, self.l.0);
            let slots: Vec<Value> = slots.into_iter().map(|slot| b.i32(slot as i32)).collect();
            self.prologue(self.l.0, bounds, &slots);
        }

        // The loop.
        let mut b = Builder::before(self.m, self.l.0);
        let distance = b.int(i64::from(self.stages) - 1, iv_ty);
        let distance = arith::Muli::build(&mut b, bounds.step, distance).result(b.module);
        let (zero, last) = (b.i32(0), b.i32(self.stages as i32 - 1));
        let numbers = Numbers { zero, slots: b.i32(self.slots as i32), one: b.i32(1) };
        let first = begin.unwrap_or((zero, zero));
        let first_free =
            if begin.is_some() { self.slots_from(self.l.0, first.0).pop().unwrap_or(last) } else { last };
        let index = self.l.init(self.m).len();
        let slot = self.carry(first.0);
        // (What is always the same number the loop need not count.)
        let slot = if self.slots == 1 { zero } else { slot };
        // Behind the reads the slot that has been read is the one to fill.
        let free = if self.own { slot } else { self.carry(first_free) };
        let phase = self.carry(first.1);
        let turn = self.split.then(|| self.carry(zero));
        let counters = Counters { first, now: (slot, phase), free, turn };
        for k in 0..self.levels.len() {
            self.levels[k].at = self.carry_all(&self.levels[k].at.clone());
            for i in 0..self.levels[k].given.len() {
                self.levels[k].given[i] = self.carry_all(&self.levels[k].given[i].clone());
            }
        }

        let top = self.m.first_op(self.body).expect("a loop body has operations");
        self.wait_and_issue(top, &counters, barrier, distance, bounds);
        if let Some(outer) = outer {
            let results = self.m.results(self.l.0);
            self.go_on_outside(&outer, bounds, results[index], results[index + 2]);
        }
        // Blocks first: what is read of one may be chosen where a copy has left something out.
        let top = if self.blocks.has(top) {
            let place = Builder::before(self.m, top).i32(0);
            self.m.defining_op(place).expect("a constant is an operation")
        } else {
            top
        };
        let first = self.m.first_op(self.body).expect("a loop body has operations");
        self.blocks.read(self.m, first, slot, phase);
        async_copies::read_slots(self.m, &self.copies, top, slot);
        self.advance(&counters, &numbers);

        let mut b = Builder::after(self.m, self.l.0);
        if let Some(ring) = self.ring {
            // Copies masked off past the end still write zeros: none may be under way when the memory is used again.
            ttg::RingDealloc::build(&mut b, ring);
        }
        if let Some(barrier) = barrier {
            barrier.end(&mut b);
        }
    }

    /// Places in the loop's body, which begins with `top`, the waits for this iteration's copies and the copies of the one that is
    /// `distance` ahead, as the file's head says.
    fn wait_and_issue(
        &mut self,
        top: Op,
        counters: &Counters,
        barrier: Option<SplitBarrier>,
        distance: Value,
        bounds: &Bounds,
    ) {
        let &Counters { first, now, free, turn } = counters;
        // The slot to fill may be read by an asynchronous dot of the last iteration until the first of this one has been
        // issued and the others waited for (see `dots`).
        let ops: Vec<Op> = self.m.block_ops(self.body).collect();
        let dot = ops.into_iter().find(|&op| ttng::WarpGroupDot::cast(self.m, op).is_some());
        let mut anchor = dot.and_then(|d| self.m.next_op(d)).unwrap_or(top);
        let stages = self.stages as i32;
        let several = self.m.block_ops(self.body).filter(|&op| is_dot(self.m, op)).count() > 1;
        if let (Some(barrier), Some(turn)) = (barrier, turn) {
            self.wait_and_fence(self.l.0, first, stages - 2);
            barrier.arrive(self.m, self.l.0);
            barrier.wait(self.m, top, turn);
        } else if self.own
            && let [first, .., last] | [first @ last] = &self.copies[..]
        {
            let (first, behind) = (first.load.0, self.m.next_op(last.load.0));
            self.wait(first, now, stages - 2);
            anchor = behind.expect("a loop body ends with a yield");
        } else if self.copies.is_empty() {
            // Blocks are waited for where they are read.
        } else if dot.is_some() && !self.starved && stages > if several { 2 } else { 3 } {
            // Behind that dot also wait for what the next iteration reads: one barrier then serves both. The proxy fence takes
            // its turn behind the accesses of copies that were issued before it: here that was an iteration ago, at the top
            // it would be just now. (A loop of one dot has no arithmetic to hide a copy behind: it wants those of two
            // iterations under way beside the wait, and one that copies bound those of all slots but the one that is read.)
            self.wait_for_next(anchor, now, stages - 3);
            self.wait_and_fence(self.l.0, first, stages - 2);
            let mut b = Builder::before(self.m, self.l.0);
            ttg::Barrier::build(&mut b);
        } else {
            self.wait(top, now, stages - 2);
        }
        let mut b = Builder::before(self.m, if self.own { anchor } else { top });
        let value = arith::Addi::build(&mut b, self.args[0], distance).result(b.module);
        let ahead = Iteration { value, from: self.args[0], ahead: self.stages - 1, runs: true };
        // Behind a split barrier the slot is free at the top already; that early if the copies must have arrived soon.
        let early = barrier.is_some() && stages == 2;
        if early {
            self.issue(top, ahead, bounds, free);
        }
        if let Some(barrier) = barrier {
            self.wait_for_next(anchor, now, (stages - 3).max(0));
            barrier.arrive(self.m, anchor);
        }
        if !early {
            self.blocks.make_free(self.m, anchor, free, now.1);
            self.issue(anchor, ahead, bounds, free);
        }
    }

    /// Yields the counters of the next iteration, and where the levels have come to.
    fn advance(&mut self, counters: &Counters, numbers: &Numbers) {
        let &Counters { now: (slot, phase), free, turn, .. } = counters;
        let step = |m: &mut Module, anchor: Op, at: Value| {
            let mut b = Builder::before(m, anchor);
            let up = arith::Addi::build(&mut b, at, numbers.one).result(b.module);
            let wraps = arith::Cmpi::build(&mut b, up, numbers.slots, arith::CmpIPredicate::Eq, Type::I1)
                .result(b.module);
            (arith::Select::build(&mut b, wraps, numbers.zero, up).result(b.module), wraps)
        };
        let (up, wraps) = step(self.m, self.yielded, slot);
        // Without slots to spare the one just read is the next to fill.
        let next_free = match self.slots == self.stages {
            _ if self.own => None,
            true => Some(slot),
            false => Some(step(self.m, self.yielded, free).0),
        };
        let flipped = SplitBarrier::flip(self.m, self.yielded, phase);
        let mut b = Builder::before(self.m, self.yielded);
        let next_phase = arith::Select::build(&mut b, wraps, flipped, phase).result(b.module);
        let next_turn = turn.map(|turn| SplitBarrier::flip(self.m, self.yielded, turn));
        let levels =
            self.levels.iter().flat_map(|level| level.at.iter().chain(level.given.iter().flatten())).copied();
        let counters = [Some(up), next_free, Some(next_phase), next_turn].into_iter().flatten();
        for v in counters.chain(levels.collect::<Vec<_>>()) {
            self.m.push_operand(self.yielded, v);
        }
    }

    /// Issues the copies of the first iterations before `anchor`, into these slots.
    fn prologue(&mut self, anchor: Op, bounds: &Bounds, slots: &[Value]) {
        let mut at = bounds.first();
        for &slot in slots {
            at = self.issue(anchor, at, bounds, slot);
        }
    }

    /// The numbers of `stages` slots one after the other, computed before `anchor`.
    fn slots_from(&mut self, anchor: Op, first: Value) -> Vec<Value> {
        let mut b = Builder::before(self.m, anchor);
        let (zero, one, size) = (b.i32(0), b.i32(1), b.i32(self.slots as i32));
        let mut slots = vec![first];
        while slots.len() < self.stages as usize {
            let up = arith::Addi::build(&mut b, slots[slots.len() - 1], one).result(b.module);
            let wraps =
                arith::Cmpi::build(&mut b, up, size, arith::CmpIPredicate::Eq, Type::I1).result(b.module);
            slots.push(arith::Select::build(&mut b, wraps, zero, up).result(b.module));
        }
        slots
    }

    /// The bounds of the loop in the iteration `at` of the loop around, and what they and the copies need.
    fn bounds_in(&mut self, outer: &Outer, anchor: Op, at: Iteration, bounds: &Bounds) -> Bounds {
        let outside = outer.values_at(self.m, anchor, at.value);
        let l = outer.l;
        let of_outer = [l.lower_bound(self.m), l.upper_bound(self.m), l.step(self.m)];
        let runs = at.is_inside(self.m, outer.counting, (l, of_outer), anchor);
        let mapped = |v: Value| *outside.get(&v).unwrap_or(&v);
        Bounds {
            lower: mapped(bounds.lower),
            upper: mapped(bounds.upper),
            step: mapped(bounds.step),
            runs: Some(runs),
            outside,
        }
    }

    /// Issues the first copies of the loop around's first iteration before that loop, which then carries the slot and the
    /// phase with which an iteration begins.
    fn enter(&mut self, outer: &Outer, bounds: &Bounds) -> (Value, Value) {
        let (anchor, value) = (outer.l.0, outer.l.lower_bound(self.m));
        let at = Iteration { value, from: value, ahead: 0, runs: false };
        let first = self.bounds_in(outer, anchor, at, bounds);
        let zero = Builder::before(self.m, anchor).i32(0);
        let slots = self.slots_from(anchor, zero);
        self.prologue(anchor, &first, &slots[..slots.len() - 1]);
        (outer.carry(self.m, zero), outer.carry(self.m, zero))
    }

    /// Issues the first copies of the loop around's next iteration behind the loop, which ends at this slot and phase.
    fn go_on_outside(&mut self, outer: &Outer, bounds: &Bounds, slot: Value, phase: Value) {
        let anchor = self.m.next_op(self.l.0).expect("a loop is followed by what ends its block");
        let (step, now) = (outer.l.step(self.m), outer.iv(self.m));
        // Before the loop, where there is time for divisions.
        let mut b = Builder::before(self.m, self.l.0);
        let value = arith::Addi::build(&mut b, now, step).result(b.module);
        let at = Iteration { value, from: now, ahead: 1, runs: true };
        let next = self.bounds_in(outer, self.l.0, at, bounds);
        let slots = self.slots_from(anchor, slot);
        self.prologue(anchor, &next, &slots[..slots.len() - 1]);
        outer.yields(self.m, &[slot, phase]);
    }

    /// Waits for copies that threads make (not TMA's, which are waited for where they are read), of which those of `later`
    /// iterations behind the position's may still be under way.
    fn wait(&mut self, anchor: Op, (slot, phase): (Value, Value), later: i32) {
        if let Some(ring) = self.ring {
            let mut b = Builder::before(self.m, anchor);
            let later = Some(later).filter(|&n| n > 0);
            ttg::RingWait::build(&mut b, ring, slot, phase, None, None, later);
        }
    }

    /// The same, and makes them visible to the asynchronous proxy.
    fn wait_and_fence(&mut self, anchor: Op, position: (Value, Value), later: i32) {
        self.wait(anchor, position, later);
        if self.ring.is_some() {
            ttng::FenceAsyncShared::build(&mut Builder::before(self.m, anchor), false);
        }
    }

    /// The same for the iteration behind that of a position.
    fn wait_for_next(&mut self, anchor: Op, position: (Value, Value), later: i32) {
        if self.ring.is_some() {
            let next = position::advance(&mut Builder::before(self.m, anchor), position, self.slots);
            self.wait_and_fence(anchor, next, later);
        }
    }

    fn carry_all(&mut self, init: &[Value]) -> Vec<Value> {
        init.iter().map(|&v| self.carry(v)).collect()
    }

    /// Adds a carried value to the loop and returns its argument.
    fn carry(&mut self, init: Value) -> Value {
        let ty = self.m.value_type(init);
        self.m.push_operand(self.l.0, init);
        self.m.add_result(self.l.0, ty);
        self.m.add_block_arg(self.body, ty)
    }

    /// Brings the levels from `k` on to where level `k - 1` can emit its first iteration.
    fn fill(&mut self, k: usize, bounds: &Bounds) {
        if k < self.levels.len() {
            self.fill(k + 1, bounds);
            let mut at = bounds.first();
            for _ in 0..self.between_levels {
                at = self.step(k, self.l.0, at, bounds);
            }
        }
    }

    /// Emits level `k` of the iteration `at` before `anchor`, and steps the levels behind it on. Returns the iteration to
    /// come.
    fn step(&mut self, k: usize, anchor: Op, at: Iteration, bounds: &Bounds) -> Iteration {
        let inside = self.is_inside(anchor, at, bounds);
        let mut map = self.values_of(k, at.value, bounds);
        for op in self.levels[k].ops.clone() {
            let clone = self.m.clone_op(op, &mut map);
            self.m.insert_before(clone, anchor);
            if let Some(load) = tt::Load::cast(self.m, clone) {
                // An address that the loop itself would not have loaded from.
                let ptr_ty = self.m.value_type(load.ptr(self.m));
                let mask = async_copies::and_mask(self.m, clone, load.mask(self.m), ptr_ty, inside);
                self.m.set_operand_group(clone, 1, &[mask]);
            }
        }
        let given = self.levels[k].gives.iter().map(|v| map[v]).collect();
        self.levels[k].given.push_back(given);
        self.go_on(k, anchor, at, &map, bounds)
    }

    /// Emits level 0 with the copies of the iteration `at` before `anchor`, into slot `slot` of each ring, and steps the
    /// levels behind it on. Returns the iteration to come.
    fn issue(&mut self, anchor: Op, at: Iteration, bounds: &Bounds, slot: Value) -> Iteration {
        let inside = self.is_inside(anchor, at, bounds);
        let mut map = self.values_of(0, at.value, bounds);
        let mut blocks = self.blocks.issue(inside, slot);
        if let Some(ring) = self.ring {
            ttg::RingAcquire::build(&mut Builder::before(self.m, anchor), ring, slot, None, None);
        }
        for op in self.levels[0].ops.clone() {
            if let Some(copy) = self.copies.iter().copied().find(|c| c.load.0 == op) {
                let mapped = |v: Value| *map.get(&v).unwrap_or(&v);
                let ptr = mapped(copy.load.ptr(self.m));
                let mask = copy.load.mask(self.m).map(mapped);
                let mask = async_copies::and_mask(self.m, anchor, mask, self.m.value_type(ptr), inside);
                copy.issue(self.m, anchor, ptr, mask, slot);
            } else if !blocks.copy(self.m, anchor, op, |v| *map.get(&v).unwrap_or(&v)) {
                let clone = self.m.clone_op(op, &mut map);
                self.m.insert_before(clone, anchor);
            }
        }
        blocks.commit(self.m, anchor);
        if let Some(ring) = self.ring {
            ttg::RingCommit::build(&mut Builder::before(self.m, anchor), ring, slot);
        }
        self.go_on(0, anchor, at, &map, bounds)
    }

    /// Moves level `k` to its next iteration, which is returned, and steps the level behind it on.
    fn go_on(
        &mut self,
        k: usize,
        anchor: Op,
        at: Iteration,
        map: &FxHashMap<Value, Value>,
        bounds: &Bounds,
    ) -> Iteration {
        let yielded = self.m.operands(self.yielded);
        let level = &mut self.levels[k];
        level.at = level.carried.iter().map(|&c| *map.get(&yielded[c]).unwrap_or(&yielded[c])).collect();
        let next_of = |m: &mut Module, at: Iteration| {
            let mut b = Builder::before(m, anchor);
            let value = arith::Addi::build(&mut b, at.value, bounds.step).result(b.module);
            Iteration { value, ahead: at.ahead + 1, ..at }
        };
        let next = next_of(self.m, at);
        if k + 1 < self.levels.len() {
            self.levels[k + 1].given.pop_front();
            // The iteration at which the level behind stands.
            let mut behind = next;
            for _ in 1..self.between_levels {
                behind = next_of(self.m, behind);
            }
            self.step(k + 1, anchor, behind, bounds);
        }
        next
    }

    /// The values of the iteration to which level `k` has come.
    fn values_of(&self, k: usize, iv: Value, bounds: &Bounds) -> FxHashMap<Value, Value> {
        let mut map = bounds.outside.clone();
        map.insert(self.args[0], iv);
        let level = &self.levels[k];
        map.extend(level.carried.iter().map(|&c| self.args[c + 1]).zip(level.at.iter().copied()));
        if let Some(behind) = self.levels.get(k + 1) {
            map.extend(behind.gives.iter().copied().zip(behind.given.iter().flatten().copied()));
        }
        map
    }

    fn is_inside(&mut self, anchor: Op, at: Iteration, bounds: &Bounds) -> Value {
        let of_loop = [bounds.lower, bounds.upper, bounds.step];
        let inside = at.is_inside(self.m, self.counting, (self.l, of_loop), anchor);
        let mut b = Builder::before(self.m, anchor);
        match bounds.runs {
            Some(runs) => arith::Andi::build(&mut b, inside, runs).result(b.module),
            None => inside,
        }
    }
}

impl Bounds {
    fn first(&self) -> Iteration {
        Iteration { value: self.lower, from: self.lower, ahead: 0, runs: false }
    }
}
