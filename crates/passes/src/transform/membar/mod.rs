//! Barriers: puts a `ttg.barrier` wherever one thread may touch shared memory that another has touched since the last
//! one, unless both only read.
//!
//! Why last: it needs the offsets, since buffers that never live together may share memory. It reads the memory effects
//! that the operations declare, so that an operation with new effects needs nothing here.
//!
//! The state is the list of byte ranges read and written since the last barrier. Loops are walked until the state at
//! their head no longer grows. What only the iterations' reading of what came before the loop wants stands before the loop: that is
//! tried out, and taken away again.
//!
//! - An operation with scratch contains a barrier between its writes and its reads: what came before it is settled by
//!   that one, and its own reads are what remains. One within warps has barriers of warps inside (`lower`): its scratch
//!   concerns all others, but not itself in the next iteration.
//! - An asynchronous copy is visible to its own thread after the wait, to the others after a barrier that follows the
//!   wait (PTX ISA, "cp.async.wait_group"). So a wait turns what copies have written into writes that a barrier must
//!   settle; before the wait, a read of a ring of buffers does not conflict with a copy to another slot of it. Nor does a
//!   copy that the pipeliner says goes to a free slot with the reads of this iteration's ([`marks::FREE_SLOT`]).
//!   Where each thread copies to bytes of its own and nobody else reads them ([`own_bytes`](crate::analysis::own_bytes)) there is nothing to tell others: such copies and
//!   reads are of no concern to each other, but to whatever else has that memory before and after.
//! - An asynchronous dot reads its buffers until a wait for it, and for other warps until a barrier after that. Whoever
//!   makes a dot asynchronous sees to it that nothing is written there before the wait.
//! - A TMA copy to global memory reads its buffer until a wait, which only the issuing thread sees return. Where none stands
//!   there yet one is placed: before what writes to the buffer, or to whatever has its memory next; before an arrival behind
//!   which others write there; and where its threads or their partition end. It leaves the copies under way that have been
//!   begun since. Slots of a ring whose numbers a loop counts are told apart (`turns`).
//!   Where nothing but that keeps an operation from the last barrier, the wait stands before that barrier.
//!   Where the kernel says how many may be under way ([`marks::PENDING`]) it waits before each for those that are too many.
//! - A TMA copy to shared memory is issued by one thread, so that all others must be done with the buffer before. Each
//!   thread that waits for its mbarrier sees what it brought: no barrier after it.
//! - The regions of a `ttg.warp_specialize` are walked each on its own: their barriers are for their warps alone.
//! - Operations on mbarriers need no order among themselves, but for the first and the last of each. The thread that ends one makes the next in its place.
//!
//! The hardware path of TMA ("async proxy") does not see ordinary writes (`cp.async` too) without a fence, which goes before the barrier:
//! where a TMA copy touches what has been written since the last `ttng.fence_async_shared`, one is placed: before the last barrier if
//! that follows the writes, else with a barrier of its own. (The passes that make warp-group dots place theirs.) Nor does it wait for ordinary
//! loads that a barrier has let pass while they were under way: a TMA copy to what has been loaded since the last fence wants one, too.
//! Where a kernel arrives at an mbarrier of its own it hands what it has written or loaded to others: if TMA or dots read it anywhere,
//! or TMA fills it, the fence stands before the barrier before the arrival, or before a barrier of the hardware that the kernel
//! names itself. (`lower-rings` places those of its own arrivals.)
//!
//! ```text
//! %b = ttg.local_alloc %x {allocation.offset = 0}        %b = ttg.local_alloc %x {allocation.offset = 0}
//! %y = ttg.local_load %b                             =>  ttg.barrier
//!                                                        %y = ttg.local_load %b
//! ```

mod state;
mod touches;
mod turns;

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::{scf, tt, ttg, ttng};
use tilewright_ir::effects::is_pure;
use tilewright_ir::marks;
use tilewright_ir::{AttrKind, Block, Builder, Module, Op, Opcode, Region, Value};
use tilewright_layout::{ConversionPlan, SyncScope};

use self::state::{State, add, kept, overlaps};
use self::touches::{Range, Touched, Touches, touches};
use crate::analysis::{calls, rings, scope, scratch};
use crate::pass::{Pass, Property};

/// The pass.
pub const PASS: Pass = Pass {
    name: "membar",
    summary: "place barriers between accesses of shared memory",
    requires: &[Property::LaidOut, Property::SharedPlaced],
    ensures: &[Property::BarriersPlaced],
    run: |m, _, _| {
        run(m);
        Ok(())
    },
};

/// Places barriers in every function.
pub fn run(module: &mut Module) {
    let functions: Vec<Op> = module.block_ops(module.body()).collect();
    for func in functions {
        for region in module.regions(func).to_vec() {
            let mut state = State::default();
            region_ops(module, region, &mut state);
        }
    }
}

/// The first operation that wants a barrier or a fence before it that isn't there.
pub fn missing(module: &Module) -> Option<Op> {
    let mut placed = module.clone();
    run(&mut placed);
    let (before, after) = (module.all_ops(module.root()), placed.all_ops(placed.root()));
    before.iter().zip(&after).find(|(a, b)| a != b).map(|(&op, _)| op)
}

/// Leaves a buffer alone: whoever pipelined the loop that uses it has placed what keeps its accesses apart, from each other
/// and from those to whatever shares its memory before and after.
pub fn leave_alone(module: &mut Module, buffer: Value) {
    if let Some(op) = module.defining_op(buffer) {
        let mark = module.attr(AttrKind::Unit);
        module.set_attr(op, marks::ORDERED, mark);
    }
}

fn region_ops(module: &mut Module, region: Region, state: &mut State) {
    let blocks = module.region_blocks(region).to_vec();
    if blocks.len() > 1 {
        // Unstructured control flow: any block may follow any other.
        let mut joined = state.clone();
        loop {
            let before = joined.clone();
            for &block in &blocks {
                let mut s = joined.clone();
                block_ops(module, block, &mut s);
                joined.join(&s);
            }
            if joined == before {
                break;
            }
        }
        *state = joined;
        return;
    }
    for block in blocks {
        block_ops(module, block, state);
    }
}

fn block_ops(module: &mut Module, block: Block, state: &mut State) {
    let ops: Vec<Op> = module.block_ops(block).collect();
    // The barrier of this block since which no other op has settled anything.
    let mut barrier = None;
    for op in ops {
        let last = barrier.take();
        match module.opcode(op) {
            Some(Opcode::Scf(scf::Kind::For | scf::Kind::While)) => {
                settle_before(module, op, state);
                loop_ops(module, op, state);
            }
            Some(Opcode::Scf(scf::Kind::If)) => branches(module, op, state),
            Some(Opcode::Tt(tt::Kind::Call)) => {
                let in_memory = |op| module.op_attr(op, marks::ALLOCATION_OFFSET).is_some();
                if calls::runs(module, op, in_memory) {
                    if state.called {
                        ttg::Barrier::build(&mut Builder::before(module, op));
                        state.settle();
                    }
                    state.called = true;
                } else {
                    barrier = last;
                }
            }
            Some(Opcode::Ttg(ttg::Kind::Barrier)) => {
                state.settle();
                barrier = Some(op);
            }
            // All threads of the cluster have met, or those of the program before and behind the others.
            Some(
                Opcode::Ttng(ttng::Kind::ClusterWait)
                | Opcode::Tt(tt::Kind::WaitSignal | tt::Kind::ProgramBarrier | tt::Kind::Send),
            ) => state.settle(),
            Some(Opcode::Ttg(ttg::Kind::WarpSpecialize)) => {
                partitions(module, ttg::WarpSpecialize(op), state)
            }
            Some(Opcode::Ttg(ttg::Kind::AsyncWait)) => {
                state.end_copies(ttg::AsyncWait(op).num(module) == 0);
                barrier = last;
            }
            Some(Opcode::Ttng(ttng::Kind::WarpGroupDotWait)) => {
                state.end_dots(ttng::WarpGroupDotWait(op).pendings(module) as u32);
                barrier = last;
            }
            Some(Opcode::Ttng(ttng::Kind::TmaStoreWait)) => {
                state.end_drains(ttng::TmaStoreWait(op).pendings(module) as u32);
                barrier = last;
            }
            Some(Opcode::Ttng(ttng::Kind::FenceAsyncGlobal)) => {
                if ttng::FenceAsyncGlobal(op).complete(module) {
                    state.end_drains(0);
                }
                barrier = last;
            }
            Some(
                Opcode::Tt(tt::Kind::Return)
                | Opcode::Ttg(ttg::Kind::WarpReturn)
                | Opcode::Ttng(ttng::Kind::ClusterArrive),
            ) => wait_for_drains(module, op, state, |_| true),
            Some(Opcode::Ttng(ttng::Kind::NamedBarrier)) => {
                let written = written_by_others(module, op, state);
                wait_for_drains(module, op, state, |t| overlaps(&written, t.range));
                if is_handed_to_proxy(module, op, state) {
                    ttng::FenceAsyncShared::build(&mut Builder::before(module, op), false);
                    state.unfenced.clear();
                    state.loaded.clear();
                }
                if !ttng::NamedBarrier(op).arrives(module) {
                    state.settle();
                }
            }
            Some(Opcode::Ttng(ttng::Kind::FenceAsyncShared)) => {
                state.unfenced.clear();
                state.loaded.clear();
                barrier = last;
            }
            _ => {
                if let Some(last) = last
                    && is_of_arrival(module, last, op)
                    && is_handed_to_proxy(module, op, state)
                {
                    fence_before(module, last, state);
                }
                if is_arrival(module, op) {
                    hand_over(module, op, last, state);
                }
                let touches = touches(module, op);
                barrier = visit(module, op, &touches, last, state);
            }
        }
    }
}

/// The body of a loop.
fn loop_ops(module: &mut Module, op: Op, state: &mut State) {
    if let Some(l) = scf::For::cast(module, op) {
        let body = l.body(module);
        until_stable(state, |s| {
            region_ops(module, body, s);
            s.drains.next_iteration(module, op);
        });
        state.drains.end_loop(op);
    } else {
        let (before, after) = (scf::While(op).before(module), scf::While(op).after(module));
        region_ops(module, before, state);
        until_stable(state, |s| {
            region_ops(module, after, s);
            region_ops(module, before, s);
        });
    }
}

/// Settles before a loop what is pending there, where each iteration would have a barrier or a fence for it that it has for nothing else.
fn settle_before(module: &mut Module, l: Op, state: &mut State) {
    if state.on_trial || !state.concerns(module.all_ops(l).into_iter().map(|op| touches(module, op))) {
        return;
    }
    let mut settled = state.clone();
    settled.settle();
    let mut fenced = settled.clone();
    fenced.unfenced.clear();
    fenced.loaded.clear();
    let [now, by_barrier, by_both] = [&*state, &settled, &fenced].map(|entry| tried_out(module, l, entry));
    let mut b = Builder::before(module, l);
    if by_both < by_barrier {
        ttng::FenceAsyncShared::build(&mut b, false);
        *state = fenced;
    } else if by_barrier < now {
        *state = settled;
    } else {
        return;
    }
    ttg::Barrier::build(&mut b);
}

/// How many operations a loop wants if it begins in a state; what is placed for it is taken away again.
fn tried_out(module: &mut Module, l: Op, entry: &State) -> usize {
    let before: FxHashSet<Op> = module.all_ops(l).into_iter().collect();
    let waits = before.iter().filter_map(|&op| ttng::TmaStoreWait::cast(module, op));
    let pendings: Vec<(Op, i32)> = waits.map(|wait| (wait.0, wait.pendings(module))).collect();
    loop_ops(module, l, &mut State { on_trial: true, ..entry.clone() });
    let placed: Vec<Op> = module.all_ops(l).into_iter().filter(|op| !before.contains(op)).collect();
    for &op in &placed {
        module.erase_op(op);
    }
    for (wait, pendings) in pendings {
        module.set_i32_attr(wait, "pendings", pendings);
    }
    placed.len()
}

/// The branches of an `scf.if`: what is pending behind it is what is in any of them.
fn branches(module: &mut Module, op: Op, state: &mut State) {
    let mut joined: Option<State> = None;
    let regions = module.regions(op).to_vec();
    let partial = regions.iter().any(|&r| module.region_blocks(r).is_empty());
    for region in regions {
        let mut s = state.clone();
        region_ops(module, region, &mut s);
        match &mut joined {
            None => joined = Some(s),
            Some(j) => j.join(&s),
        }
    }
    let mut joined = joined.unwrap_or_default();
    if partial {
        joined.join(state);
    }
    *state = joined;
}

/// The regions of a `ttg.warp_specialize`. All warps meet where it begins and where it ends; what its regions do to each other
/// they order by mbarriers.
fn partitions(module: &mut Module, w: ttg::WarpSpecialize, state: &mut State) {
    let own = touches(module, w.0);
    let written = written_by_others(module, w.0, state);
    wait_for_drains(module, w.0, state, |t| overlaps(&written, t.range));
    let inside = w.partitions(module).iter().flat_map(|&r| module.region_blocks(r).to_vec());
    let inside = inside.flat_map(|b| module.block_ops(b).collect::<Vec<_>>());
    let copied = inside.flat_map(|op| module.all_ops(op)).any(|op| {
        let t = touches(module, op);
        t.fills.iter().chain(&t.drains).any(|&r| overlaps(&state.unfenced, r))
            || t.fills.iter().any(|&r| overlaps(&state.loaded, r))
    });
    if copied {
        // Where it begins is the barrier that must follow.
        ttng::FenceAsyncShared::build(&mut Builder::before(module, w.0), false);
        state.unfenced.clear();
        state.loaded.clear();
    }
    // What it hands to the workers it writes behind that fence.
    visit(module, w.0, &own, None, state);
    state.settle();
    let (mut written, mut loaded) = (Vec::new(), Vec::new());
    for region in w.partitions(module).to_vec() {
        let mut own = State::default();
        region_ops(module, region, &mut own);
        written.extend(own.unfenced.into_iter().chain(own.copies));
        written.extend(own.own_copies.into_iter().map(|(range, _)| range));
        loaded.extend(own.loaded);
    }
    // (The threads of the default region are those of what follows: they wait for its copies there.)
    region_ops(module, w.default_region(module), state);
    state.settle();
    // Copies have ended, and nobody has fenced what comes behind from them.
    written.into_iter().for_each(|r| add(&mut state.unfenced, r));
    loaded.into_iter().for_each(|r| add(&mut state.loaded, r));
}

/// Walks a loop body until what is pending at its head stays the same.
fn until_stable(state: &mut State, mut body: impl FnMut(&mut State)) {
    let mut head = state.clone();
    loop {
        let mut s = head.clone();
        body(&mut s);
        let mut joined = head.clone();
        joined.join(&s);
        if joined == head {
            // The body may run no time at all, so what was pending before is pending after.
            *state = joined;
            return;
        }
        head = joined;
    }
}

/// A proxy fence before the last barrier, for all that was accessed before that.
fn fence_before(module: &mut Module, last: Op, state: &mut State) {
    let is_fence = |op| ttng::FenceAsyncShared::cast(module, op).is_some();
    if !module.prev_op(last).is_some_and(is_fence) {
        ttng::FenceAsyncShared::build(&mut Builder::before(module, last), false);
    }
    let State { reads, slot_reads, writes, just_loaded, .. } = &*state;
    let since = |r| [reads, slot_reads, just_loaded].iter().any(|list| overlaps(list, r));
    let (unfenced, loaded) = (kept(&state.unfenced, |r| overlaps(writes, r)), kept(&state.loaded, since));
    (state.unfenced, state.loaded) = (unfenced, loaded);
}

/// Whether an operation is an arrival, and a barrier one that was placed for it: nothing but other arrivals stands between. (Arrivals of rings have their own
/// fences, whatever barrier stands somewhere before them.)
fn is_of_arrival(module: &Module, barrier: Op, op: Op) -> bool {
    let is_arrival = |op: Op| ttng::ArriveBarrier::cast(module, op).is_some();
    let before = std::iter::successors(module.prev_op(op), |&op| module.prev_op(op));
    let mut between = before.take_while(|&op| op != barrier);
    is_arrival(op) && between.all(|op| is_arrival(op) || is_pure(module, op))
}

/// Whether the asynchronous proxy reads, anywhere in the kernel, what has been written since the last fence, or fills what has been written or
/// loaded.
fn is_handed_to_proxy(module: &Module, arrival: Op, state: &State) -> bool {
    if state.unfenced.is_empty() && state.loaded.is_empty() {
        return false;
    }
    let mut around = std::iter::successors(Some(arrival), |&op| module.parent_op(op));
    let Some(func) = around.find(|&op| tt::Func::cast(module, op).is_some()) else { return false };
    module.all_ops(func).into_iter().any(|op| {
        let t = touches(module, op);
        // A dot that waits for itself reads by that proxy, too.
        let dot = ttng::WarpGroupDot::cast(module, op).is_some();
        let by_dot = t.reads.iter().chain(&t.slot_reads).filter(|_| dot);
        by_dot.chain(&t.dots).chain(&t.drains).any(|&r| overlaps(&state.unfenced, r))
            || t.fills.iter().any(|&r| overlaps(&state.unfenced, r) || overlaps(&state.loaded, r))
    })
}

/// Waits before `at` until copies to global memory have read what of their ranges is `touched` then. Only the threads that have issued them
/// know; a barrier must follow for the others.
fn wait_for_drains(module: &mut Module, at: Op, state: &mut State, touched: impl Fn(Touched) -> bool) {
    if let Some(pendings) = state.drains.pendings(touched) {
        wait_until(module, at, state, pendings);
    }
}

/// Waits before `at` until at most so many groups of copies to global memory are under way.
fn wait_until(module: &mut Module, at: Op, state: &mut State, pendings: u32) {
    // In an earlier walk round the loop less was under way.
    let placed = module.prev_op(at).and_then(|op| ttng::TmaStoreWait::cast(module, op));
    match placed {
        Some(wait) if wait.pendings(module) as u32 > pendings => {
            module.set_i32_attr(wait.0, "pendings", pendings as i32);
        }
        Some(_) => {}
        None => {
            ttng::TmaStoreWait::build(&mut Builder::before(module, at), pendings as i32);
        }
    }
    state.end_drains(pendings);
}

/// Whether an operation arrives at an mbarrier at which others wait.
fn is_arrival(module: &Module, op: Op) -> bool {
    use ttng::Kind as K;
    matches!(module.opcode(op), Some(Opcode::Ttng(K::ArriveBarrier | K::AsyncCopyMbarrierArrive)))
}

/// What copies to global memory still read others may write behind an arrival: they are waited for, before the barrier `last` before the arrival
/// if they have begun before that.
fn hand_over(module: &mut Module, arrival: Op, last: Option<Op>, state: &mut State) {
    let written = written_by_others(module, arrival, state);
    if state.drains.pendings(|t| overlaps(&written, t.range)).is_none() {
        return;
    }
    let since = |last: Op| {
        let ops = std::iter::successors(module.prev_op(arrival), |&op| module.prev_op(op));
        ops.take_while(|&op| op != last).any(|op| !touches(module, op).drained().is_empty())
    };
    let by_warp = ttng::ArriveBarrier::cast(module, arrival).is_none_or(|op| op.per_warp(module));
    match last.filter(|&last| !by_warp && !since(last)) {
        Some(last) => wait_for_drains(module, last, state, |t| overlaps(&written, t.range)),
        None => {
            wait_for_drains(module, arrival, state, |t| overlaps(&written, t.range));
            if !by_warp && scope::num_warps(module, arrival) > 1 {
                ttg::Barrier::build(&mut Builder::before(module, arrival));
                state.settle();
            }
        }
    }
}

/// What of shared memory other partitions write, or other programs of the cluster by copies that this one gets, too. Nothing where no copy to
/// global memory is under way.
fn written_by_others(module: &Module, op: Op, state: &State) -> Vec<Range> {
    let Some(func) = scope::function(module, op).filter(|_| !state.drains.is_empty()) else {
        return Vec::new();
    };
    let place = rings::place(module, op);
    let others = module
        .all_ops(func)
        .into_iter()
        .filter(|&op| module.int_attr(op, marks::MULTICAST).is_some() || rings::place(module, op) != place);
    others.flat_map(|op| touches(module, op).written().collect::<Vec<_>>()).collect()
}

/// Places what `op` needs before it; `last` and the result are the barrier before it and before what follows, where nothing
/// but that barrier has settled the state.
fn visit(module: &mut Module, op: Op, t: &Touches, last: Option<Op>, state: &mut State) -> Option<Op> {
    let mut barrier = last;
    let written: Vec<Touched> = t.written().map(|r| t.touched(r)).collect();
    wait_for_drains(module, op, state, |drained| written.iter().any(|w| w.meets(drained)));
    let makes = ttng::InitBarrier::cast(module, op).is_some();
    let is_written = |r: Range| {
        let ended = kept(&state.ended, |other| !makes || other != r);
        overlaps(&state.writes, r) || overlaps(&ended, r) || state.overlaps_own(r, t.of_own.unwrap_or(op))
    };
    let reads = t.reads.iter().chain(&t.slot_reads).chain(&t.dots).chain(&t.drains);
    let read_conflict = reads.copied().any(is_written);
    let mut writes = t.writes.iter().chain(&t.copies).chain(&t.fills);
    let write_conflict = writes.any(|&r| {
        is_written(r) || overlaps(&state.reads, r) || !t.free_slot && overlaps(&state.slot_reads, r)
    });
    let drained = t.writes.iter().chain(&t.copies).chain(&t.fills).any(|&r| overlaps(&state.drained, r));
    let write_conflict = write_conflict || drained && !wait_earlier(module, op, last, state);
    let mut by_tma = t.fills.iter().chain(&t.ordered_fills).chain(&t.drains);
    let mut filled = t.fills.iter().chain(&t.ordered_fills);
    let unfenced =
        by_tma.any(|&r| overlaps(&state.unfenced, r)) || filled.any(|&r| overlaps(&state.loaded, r));
    // Writes of its own that it reads after its own barrier are no conflict.
    let conflict = write_conflict || (read_conflict && !t.barrier_inside);
    if let (true, false, Some(last)) = (unfenced, conflict, last) {
        // No conflict: what it touches was written or loaded before the last barrier, where the fence may stand too.
        fence_before(module, last, state);
    } else if conflict || unfenced {
        let mut b = Builder::before(module, op);
        if unfenced {
            ttng::FenceAsyncShared::build(&mut b, false);
            state.unfenced.clear();
            state.loaded.clear();
        }
        barrier = Some(ttg::Barrier::build(&mut b).0);
        state.settle();
    }
    if t.barrier_inside {
        barrier = None;
        state.settle();
    } else if t.by_warp {
        t.writes.iter().for_each(|&w| state.add_own(w, op));
    } else {
        let ends = ttng::InvalBarrier::cast(module, op).is_some();
        let list = if ends { &mut state.ended } else { &mut state.writes };
        t.writes.iter().for_each(|&w| add(list, w));
    }
    if let Some(buffer) = t.of_own {
        t.reads.iter().chain(&t.slot_reads).for_each(|&r| state.add_own(r, buffer));
        t.copies.iter().for_each(|&c| state.begin_own_copy(c, buffer));
    } else {
        t.reads.iter().filter(|_| !t.by_warp).for_each(|&r| add(&mut state.reads, r));
        t.slot_reads.iter().for_each(|&r| add(&mut state.slot_reads, r));
        t.copies.iter().for_each(|&c| add(&mut state.copies, c));
    }
    // (One whose buffers are left alone is a group all the same.)
    if let Some(dot) = ttng::WarpGroupDot::cast(module, op) {
        if dot.is_async(module) {
            state.dots.begin(&t.dots);
        } else {
            // It waits for itself, and all before end with it.
            state.end_dots(0);
        }
    }
    let drained = t.drained();
    if !drained.is_empty() {
        if !state.drains.is_empty()
            && let Some(most) = most_pending(module, op)
        {
            wait_until(module, op, state, most - 1);
        }
        state.drains.begin(&drained);
    }
    for &w in t.writes.iter().chain(&t.ordered_writes) {
        add(&mut state.unfenced, w);
    }
    for &r in t.reads.iter().chain(&t.slot_reads).chain(&t.ordered_reads) {
        add(&mut state.loaded, r);
    }
    for &r in &t.ordered_reads {
        add(&mut state.just_loaded, r);
    }
    barrier
}

/// Whether the waits for copies to global memory that stand behind the last barrier may stand before it, so that it tells the other threads: they do then. Copies that
/// began behind it must not be among those that a wait counts, and nothing that takes long may stand between: a barrier costs less than to wait before it.
fn wait_earlier(module: &mut Module, op: Op, last: Option<Op>, state: &mut State) -> bool {
    let Some(last) = last.filter(|_| !state.on_trial) else { return false };
    let between =
        || std::iter::successors(module.next_op(last), |&op| module.next_op(op)).take_while(|&at| at != op);
    let waits: Vec<Op> = between().filter(|&op| ttng::TmaStoreWait::cast(module, op).is_some()).collect();
    let Some(&latest) = waits.last() else { return false };
    let in_the_way = |op: Op| !touches(module, op).drained().is_empty() || takes_long(module, op);
    if between().take_while(|&op| op != latest).any(in_the_way) {
        return false;
    }
    for wait in waits {
        module.move_before(wait, last);
    }
    state.drained.clear();
    true
}

/// Whether copies to global memory come on while this runs: products, loops, functions of whole tensors.
fn takes_long(module: &Module, op: Op) -> bool {
    let function = matches!(module.opcode(op), Some(Opcode::Math(_)));
    let of_tensor = || module.results(op).iter().any(|&v| module.is_tensor(module.value_type(v)));
    let product = matches!(
        module.opcode(op),
        Some(
            Opcode::Ttng(ttng::Kind::WarpGroupDot | ttng::Kind::WarpGroupDotWait) | Opcode::Tt(tt::Kind::Dot)
        )
    );
    product || !module.regions(op).is_empty() || function && of_tensor()
}

/// How many copies to global memory the kernel lets be under way, where it says so.
fn most_pending(module: &Module, op: Op) -> Option<u32> {
    let all = module.all_ops(scope::function(module, op)?).into_iter();
    all.filter_map(|op| u32::try_from(module.int_attr(op, marks::PENDING)?).ok()).max().filter(|&n| n > 0)
}

/// Whether an operation waits for all threads of its scope, between the writes and the reads of its scratch.
pub(crate) fn waits_inside(module: &Module, op: Op) -> bool {
    let placed = module.int_attr(op, marks::ALLOCATION_OFFSET).is_some();
    placed && ttg::LocalAlloc::cast(module, op).is_none() && has_barrier(module, op)
}

/// Whether the scratch protocol of an operation waits for the whole CTA. A conversion within warps does not, and one warp
/// alone makes a tensor map.
fn has_barrier(module: &Module, op: Op) -> bool {
    if ttng::TensormapCreate::cast(module, op).is_some() {
        return false;
    }
    let Some(convert) = ttg::ConvertLayout::cast(module, op) else { return true };
    match scratch::conversion(module, convert) {
        Ok(ConversionPlan::SharedMemory(p)) => p.scope == SyncScope::Cta,
        _ => true,
    }
}
