//! Order between what threads and what copies by TMA do to global memory.
//!
//! Copies go through the asynchronous proxy (PTX ISA, "Async proxy"), which program order and barriers do not order with the ordinary
//! accesses of threads:
//!
//! - a copy sees what threads have written where a fence between the proxies stands on the way, `fence.proxy.async.global`;
//! - what a copy stores is there when the threads that issued it have waited for it, `cp.async.bulk.wait_group`: before threads, other copies
//!   or other programs look at it, or another copy stores there, which might be done before it.
//!
//! So a [`ttng.fence_async_global`](ttng::FenceAsyncGlobal) and a barrier are placed before
//!
//! - a copy of what threads, and before an access to what copies, may have written since the last such place. May have: through the same base
//!   ([`global_bases`](crate::analysis::global_bases)). What goes through two arguments is taken for two tensors, as in a kernel that loads `a` and `b` by TMA
//!   and stores `c` in one loop, which has no fence. In front of a loop it stands for all that the loop wants of what came before;
//! - a copy to where another may still store: through the same base, unless both blocks are of one descriptor and known to lie apart
//!   (`Pending::apart`), as the halves of a tile do, and blocks that a loop stores one behind the other;
//! - what tells other programs of what this one has done, where copies to global memory may be under way: an atomic operation that releases,
//!   a barrier of programs (which has a barrier of its own), code of the author's own, a function with such.
//!
//! Partitions of a `ttg.warp_specialize` tell each other by mbarriers. What one of them copies, or copies to, and another may write is copied behind a
//! fence where it has waited since the last; what copies of a partition store and others look at is there when it arrives, and where it ends.
//!
//! Loads that passes would issue early (`software-pipeline`, `warp-specialize`), by whatever copies, stay where they are in loops that write through
//! their base.
//!
//! Why here: behind all that makes copies; before `membar`, to which the barriers are barriers like any other.
//!
//! ```text
//! %d = tt.make_tensor_descriptor %x, ...                    %d = tt.make_tensor_descriptor %x, ...
//! tt.store %x, %y                                           tt.store %x, %y
//!                                                       =>  ttng.fence_async_global
//!                                                           ttg.barrier
//! ttng.async_tma_copy_global_to_local %d[%i] %b, %bar       ttng.async_tma_copy_global_to_local %d[%i] %b, %bar
//!
//! ttng.async_tma_copy_local_to_global %d[%i] %b             ttng.async_tma_copy_local_to_global %d[%i] %b
//!                                                       =>  ttng.fence_async_global {complete}
//!                                                           ttg.barrier
//! ttng.async_tma_copy_local_to_global %d[%j] %c             ttng.async_tma_copy_local_to_global %d[%j] %c
//! ```

use tilewright_ir::dialect::{scf, tt, ttg, ttng};
use tilewright_ir::opdef::Access;
use tilewright_ir::{Block, Builder, Module, Op, Opcode, Region, Value, ValueDef, launch};

use crate::analysis::affine::{Affine, Poly};
use crate::analysis::global_bases::GlobalBases;
use crate::analysis::{calls, scope};
use crate::hopper::tma;
use crate::pass::{Pass, Property};

/// The pass.
pub const PASS: Pass = Pass {
    name: "global-proxies",
    summary: "order what threads and TMA copies do to global memory",
    requires: &[Property::LaidOut, Property::NoDescriptorAccesses],
    ensures: &[],
    run: |m, _, _| {
        run(m);
        Ok(())
    },
};

/// Places the fences.
pub fn run(module: &mut Module) {
    if !module.all_ops(module.root()).into_iter().any(|op| tma::is_copy(module, op)) {
        return;
    }
    let affine = Affine::new(module);
    let global = GlobalBases::of(module);
    let mut walk = Walk { module, global, affine, found: Vec::new(), around: Around::default() };
    for func in module.block_ops(module.body()) {
        for &region in module.regions(func) {
            walk.region(region, &mut State::default());
        }
    }
    for Place { op, complete, barrier } in walk.found {
        let mut b = Builder::before(module, op);
        ttng::FenceAsyncGlobal::build(&mut b, complete);
        if barrier {
            ttg::Barrier::build(&mut b);
        }
    }
}

/// Where a fence stands: before which operation, whether it waits for copies, and whether a barrier follows.
struct Place {
    op: Op,
    complete: bool,
    barrier: bool,
}

/// What has been written since the last fence, by its bases.
#[derive(Debug, Clone, Default, PartialEq)]
struct State {
    /// By threads.
    written: Vec<Value>,
    /// By copies that may be under way.
    stored: Vec<Pending>,
    /// Whether this partition has waited for others.
    waited: bool,
}

impl State {
    fn join(&mut self, other: &State) {
        add(&mut self.written, &other.written);
        add(&mut self.stored, &other.stored);
        self.waited |= other.waited;
    }

    /// What has been stored within an operation, is said to have been stored at another time.
    fn stored_within(&mut self, m: &Module, within: Op, when: impl Fn(When) -> When) {
        for pending in std::mem::take(&mut self.stored) {
            let inside = m.is_ancestor(within, pending.op);
            let when = if inside { when(pending.when) } else { pending.when };
            add(&mut self.stored, &[Pending { when, ..pending }]);
        }
    }
}

/// A copy to global memory that may be under way, by one of its bases.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pending {
    base: Value,
    op: Op,
    when: When,
}

/// When a copy was issued, for what its operands are now.
#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    /// They are what they were then.
    Now,
    /// In an earlier iteration of this `scf.for`, which it stands in with no other loop between.
    Before(Op),
    /// They may be others.
    Sometime,
}

impl Pending {
    /// Whether a copy to global memory needs not wait for this one: both add up the same way, or their blocks are of one descriptor and known to
    /// lie apart along a dimension.
    ///
    /// ```text
    /// scf.for %i = … step 64:    store %d[%i, 0] 32 × 8     store %d[%i + 32, 0] 32 × 8
    ///   in one iteration they are 32 rows apart, in two iterations one of both and one of both at least 64 - 32
    /// ```
    fn apart(&self, m: &Module, affine: &Affine<'_>, op: Op) -> bool {
        if let (Some(a), Some(b)) =
            (ttng::AsyncTmaReduce::cast(m, self.op), ttng::AsyncTmaReduce::cast(m, op))
        {
            return a.kind(m) == b.kind(m);
        }
        let (Some(a), Some(b)) = (stores_at(m, self.op), stores_at(m, op)) else { return false };
        if a.desc != b.desc || a.shape.len() != b.shape.len() || a.coord.len() != a.shape.len() {
            return false;
        }
        (0..a.shape.len()).any(|d| {
            let (from, to) = (affine.scalar(a.coord[d]), affine.scalar(b.coord[d]));
            let Some(between) = to.plus(&from, -1).constant() else { return false };
            match self.when {
                When::Now => between >= i64::from(a.shape[d]) || -between >= i64::from(b.shape[d]),
                When::Before(l) => {
                    let l = scf::For(l);
                    let Some(moved) = moved(m, affine, l, &from) else { return false };
                    moved - between.saturating_abs() >= i64::from(a.shape[d].max(b.shape[d]))
                }
                When::Sometime => false,
            }
        })
    }
}

/// By how much at least a number grows, or shrinks, from one iteration of a loop to any later one, where it does so always in one direction.
fn moved(m: &Module, affine: &Affine<'_>, l: scf::For, number: &Poly) -> Option<i64> {
    let body = l.body(m);
    let &[block] = m.region_blocks(body) else { return None };
    let index = m.block_args(block)[0];
    let inside = |v: Value| {
        v != index
            && match m.value_def(v) {
                ValueDef::Argument(block, _) => {
                    m.block_parent_op(block).is_some_and(|op| m.is_ancestor(l.0, op))
                }
                ValueDef::Result(op, _) => m.is_ancestor(l.0, op),
            }
    };
    if number.leaves().any(inside) {
        return None;
    }
    let next = number.with(index, &Poly::leaf(index).plus(&affine.scalar(l.step(m)), 1));
    let step = next.plus(number, -1);
    // A number of times the loop's step, which is not 0 (nor is any factor of it), and always the same.
    let [(product, times)] = step.terms().collect::<Vec<_>>()[..] else { return None };
    let of_step = affine.scalar(l.step(m));
    let [(factors, least)] = of_step.terms().collect::<Vec<_>>()[..] else { return None };
    (product == factors && times.checked_rem(least) == Some(0)).then(|| times.saturating_abs())
}

/// A block of global memory that a copy stores.
struct Stores<'m> {
    desc: Value,
    coord: &'m [Value],
    shape: &'m [u32],
}

fn stores_at(m: &Module, op: Op) -> Option<Stores<'_>> {
    let (desc, coord, src) = if let Some(copy) = ttng::AsyncTmaCopyLocalToGlobal::cast(m, op) {
        (copy.desc(m), copy.coord(m), copy.src(m))
    } else {
        let reduce = ttng::AsyncTmaReduce::cast(m, op)?;
        (reduce.desc(m), reduce.coord(m), reduce.src(m))
    };
    let shape = m.shape(m.value_type(src))?;
    Some(Stores { desc: scope::captured(m, desc), coord, shape })
}

/// What others do while a partition runs, and behind it.
#[derive(Debug, Clone, Default)]
struct Around {
    /// What other partitions write, by threads.
    written: Vec<Value>,
    /// What anything outside the partition touches.
    touched: Vec<Value>,
    /// Whether anything outside tells other programs.
    tells: bool,
}

/// What an operation does to global memory.
#[derive(Debug, Default)]
struct Touch {
    read: Vec<Value>,
    written: Vec<Value>,
    /// Read by copies.
    copied: Vec<Value>,
    /// Written by copies.
    stored: Vec<Value>,
}

impl Touch {
    fn of(m: &Module, global: &GlobalBases<'_>, op: Op) -> Touch {
        use ttng::Kind as K;
        let (read, written) = (global.touched(op, Access::Read), global.touched(op, Access::Write));
        match m.opcode(op) {
            Some(Opcode::Ttng(K::AsyncTmaCopyGlobalToLocal)) => Touch { copied: read, ..Touch::default() },
            Some(Opcode::Ttng(K::AsyncTmaCopyLocalToGlobal | K::AsyncTmaReduce)) => {
                Touch { stored: written, ..Touch::default() }
            }
            Some(Opcode::Tt(tt::Kind::Call)) => {
                let copies = calls::runs(m, op, |inner| tma::is_copy(m, inner));
                // (What it stores by copies is there when it returns.)
                Touch {
                    copied: if copies { read.clone() } else { Vec::new() },
                    read,
                    written,
                    stored: Vec::new(),
                }
            }
            _ => Touch { read, written, ..Touch::default() },
        }
    }

    fn all(&self) -> impl Iterator<Item = &Value> {
        [&self.read, &self.written, &self.copied, &self.stored].into_iter().flatten()
    }
}

/// A walk in the order of execution.
struct Walk<'m> {
    module: &'m Module,
    global: GlobalBases<'m>,
    affine: Affine<'m>,
    found: Vec<Place>,
    around: Around,
}

impl Walk<'_> {
    fn region(&mut self, region: Region, state: &mut State) {
        match self.module.region_blocks(region) {
            [] => {}
            &[block] => self.block(block, state),
            // Unstructured control flow: any block may follow any other.
            blocks => until_stable(state, |s| {
                let mut joined = s.clone();
                for &block in blocks {
                    let mut own = s.clone();
                    self.block(block, &mut own);
                    joined.join(&own);
                }
                if let Some(op) = self.module.block_parent_op(blocks[0]) {
                    joined.stored_within(self.module, op, |_| When::Sometime);
                }
                *s = joined;
            }),
        }
    }

    fn block(&mut self, block: Block, state: &mut State) {
        let module = self.module;
        for op in module.block_ops(block) {
            self.op(op, state);
        }
    }

    fn op(&mut self, op: Op, state: &mut State) {
        use ttng::Kind as K;
        let m = self.module;
        match m.opcode(op) {
            Some(Opcode::Scf(scf::Kind::For)) => {
                self.settle_for(op, state);
                until_stable(state, |s| {
                    self.region(scf::For(op).body(m), s);
                    s.stored_within(m, op, |when| if when == When::Now { When::Before(op) } else { when });
                });
                state.stored_within(m, op, |_| When::Sometime);
            }
            Some(Opcode::Scf(scf::Kind::While)) => {
                self.settle_for(op, state);
                let (before, after) = (scf::While(op).before(m), scf::While(op).after(m));
                self.region(before, state);
                state.stored_within(m, op, |_| When::Sometime);
                until_stable(state, |s| {
                    self.region(after, s);
                    self.region(before, s);
                    s.stored_within(m, op, |_| When::Sometime);
                });
            }
            Some(Opcode::Scf(scf::Kind::If)) => self.branches(op, state),
            Some(Opcode::Ttg(ttg::Kind::WarpSpecialize)) => self.partitions(ttg::WarpSpecialize(op), state),
            // It makes the fences, and all threads meet between them.
            Some(Opcode::Tt(tt::Kind::ProgramBarrier)) => {
                if !state.stored.is_empty() {
                    self.place(op, true, false);
                }
                *state = State::default();
            }
            // Behind it a fence stands in kernels that have copies.
            Some(Opcode::Tt(tt::Kind::WaitSignal)) => {
                state.written.clear();
                state.waited = false;
            }
            Some(Opcode::Ttng(K::FenceAsyncGlobal)) => {
                state.written.clear();
                state.waited = false;
                if ttng::FenceAsyncGlobal(op).complete(m) {
                    state.stored.clear();
                }
            }
            Some(Opcode::Ttng(K::ArriveBarrier | K::AsyncCopyMbarrierArrive)) => self.hand_over(op, state),
            Some(Opcode::Ttng(K::NamedBarrier)) => {
                self.hand_over(op, state);
                state.waited |= !ttng::NamedBarrier(op).arrives(m);
            }
            Some(Opcode::Ttng(K::WaitBarrier)) => state.waited = true,
            Some(Opcode::Ttg(ttg::Kind::WarpReturn)) => self.hand_over(op, state),
            Some(Opcode::Tt(tt::Kind::Return)) => {
                let called = m
                    .parent_op(op)
                    .is_some_and(|f| tt::Func::cast(m, f).is_some() && !launch::is_kernel(m, f));
                if called && !state.stored.is_empty() {
                    self.settle(op, true, state);
                }
            }
            _ => self.access(op, state),
        }
    }

    /// An operation that may touch global memory, or tell other programs.
    fn access(&mut self, op: Op, state: &mut State) {
        let touch = Touch::of(self.module, &self.global, op);
        let (wanted, complete) = self.wants(op, &touch, state);
        let others =
            || [&touch.copied, &touch.stored].into_iter().any(|list| meet(list, &self.around.written));
        if wanted {
            self.settle(op, complete, state);
        } else if state.waited && others() {
            self.place(op, false, false);
            state.waited = false;
        }
        add(&mut state.written, &touch.written);
        let stored = touch.stored.iter().map(|&base| Pending { base, op, when: When::Now });
        add(&mut state.stored, &stored.collect::<Vec<_>>());
    }

    /// Whether a fence with its barrier must stand before an operation, and whether copies must have ended there.
    fn wants(&self, op: Op, touch: &Touch, state: &State) -> (bool, bool) {
        let looks = [&touch.read, &touch.written, &touch.copied];
        let stored: Vec<Value> = state.stored.iter().map(|pending| pending.base).collect();
        let again = |pending: &Pending| {
            touch.stored.contains(&pending.base) && !pending.apart(self.module, &self.affine, op)
        };
        let complete = looks.into_iter().any(|list| meet(list, &stored))
            || state.stored.iter().any(again)
            || !state.stored.is_empty() && tells(self.module, op);
        let unfenced = meet(&touch.copied, &state.written) || meet(&touch.stored, &state.written);
        (complete || unfenced, complete)
    }

    /// What a loop wants of what stands before it, is settled once.
    fn settle_for(&mut self, l: Op, state: &mut State) {
        if state.written.is_empty() && state.stored.is_empty() {
            return;
        }
        let m = self.module;
        let (mut wanted, mut complete) = (false, false);
        for op in m.all_ops(l).into_iter().skip(1) {
            let (of_op, completes) = self.wants(op, &Touch::of(m, &self.global, op), state);
            (wanted, complete) = (wanted || of_op, complete || completes);
        }
        if wanted {
            self.settle(l, complete, state);
        }
    }

    /// What is pending behind an `scf.if` is what is in any of its branches.
    fn branches(&mut self, op: Op, state: &mut State) {
        let before = state.clone();
        let mut joined: Option<State> = None;
        for &region in self.module.regions(op) {
            let mut own = before.clone();
            self.region(region, &mut own);
            match &mut joined {
                None => joined = Some(own),
                Some(all) => all.join(&own),
            }
        }
        *state = joined.unwrap_or(before);
    }

    /// All threads meet where a `ttg.warp_specialize` begins and where it ends.
    fn partitions(&mut self, w: ttg::WarpSpecialize, state: &mut State) {
        self.settle_for(w.0, state);
        let m = self.module;
        let mut behind: Vec<State> = Vec::new();
        for region in w.partitions(m).to_vec() {
            self.around = around(m, &self.global, w, region);
            let mut own = State::default();
            self.region(region, &mut own);
            // Its threads have ended, and their copies where that matters.
            own.stored.clear();
            behind.push(own);
        }
        self.around = around(m, &self.global, w, w.default_region(m));
        self.region(w.default_region(m), state);
        self.around = Around::default();
        behind.iter().for_each(|own| state.join(own));
        state.waited = false;
    }

    /// Before a partition tells another, or ends: what its copies store is there if anybody else looks at it.
    fn hand_over(&mut self, op: Op, state: &mut State) {
        let told = self.around.tells && !state.stored.is_empty();
        let touched = |pending: &Pending| self.around.touched.contains(&pending.base);
        if !told && !state.stored.iter().any(touched) {
            return;
        }
        let m = self.module;
        let by_warp = ttng::ArriveBarrier::cast(m, op).is_some_and(|arrive| arrive.per_warp(m))
            || ttng::AsyncCopyMbarrierArrive::cast(m, op).is_some()
            || ttg::WarpReturn::cast(m, op).is_some();
        self.place(op, true, !by_warp && scope::num_warps(m, op) > 1);
        state.stored.clear();
    }

    /// A fence and a barrier stand before an operation.
    fn settle(&mut self, op: Op, complete: bool, state: &mut State) {
        self.place(op, complete, true);
        state.written.clear();
        if complete {
            state.stored.clear();
        }
    }

    fn place(&mut self, op: Op, complete: bool, barrier: bool) {
        match self.found.iter_mut().find(|place| place.op == op) {
            Some(place) => {
                place.complete |= complete;
                place.barrier |= barrier;
            }
            None => self.found.push(Place { op, complete, barrier }),
        }
    }
}

/// What others do while a region of a `ttg.warp_specialize` runs, and behind it.
fn around(m: &Module, global: &GlobalBases<'_>, w: ttg::WarpSpecialize, region: Region) -> Around {
    let mut around = Around::default();
    let Some(func) = scope::function(m, w.0) else { return around };
    let inside = |op: Op| {
        std::iter::successors(Some(op), |&op| m.parent_op(op))
            .any(|op| m.parent_block(op).and_then(|b| m.block_region(b)) == Some(region))
    };
    for op in m.all_ops(func).into_iter().filter(|&op| !inside(op)) {
        let touch = Touch::of(m, global, op);
        if m.is_ancestor(w.0, op) {
            add(&mut around.written, &touch.written);
        }
        touch.all().for_each(|&base| add(&mut around.touched, &[base]));
        around.tells |= tells(m, op);
    }
    around
}

/// Whether other programs may know by an operation, or in a function that it calls, what this one has done.
fn tells(m: &Module, op: Op) -> bool {
    calls::does(m, op, |op| tells_itself(m, op))
}

fn tells_itself(m: &Module, op: Op) -> bool {
    let (ptr, sem, scope) = match m.opcode(op) {
        Some(Opcode::Tt(tt::Kind::ProgramBarrier)) => return true,
        Some(Opcode::Tt(tt::Kind::AtomicRmw)) => {
            let op = tt::AtomicRmw(op);
            (op.ptr(m), op.sem(m), op.scope(m))
        }
        Some(Opcode::Tt(tt::Kind::AtomicCas)) => {
            let op = tt::AtomicCas(op);
            (op.ptr(m), op.sem(m), op.scope(m))
        }
        _ => return tt::accesses_memory(m, op),
    };
    let within = scope == tt::MemSyncScope::Cta || m.is_shared_pointer(m.value_type(ptr));
    !within && matches!(sem, tt::MemSemantic::Release | tt::MemSemantic::AcquireRelease)
}

fn add<T: Copy + PartialEq>(list: &mut Vec<T>, more: &[T]) {
    for &v in more {
        if !list.contains(&v) {
            list.push(v);
        }
    }
}

fn meet(a: &[Value], b: &[Value]) -> bool {
    a.iter().any(|v| b.contains(v))
}

/// Walks the body of a loop until what is pending at its head stays the same.
fn until_stable(state: &mut State, mut body: impl FnMut(&mut State)) {
    loop {
        let mut end = state.clone();
        body(&mut end);
        let mut joined = state.clone();
        joined.join(&end);
        if joined == *state {
            return;
        }
        *state = joined;
    }
}
