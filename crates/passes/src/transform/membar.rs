//! Barriers: puts a `ttg.barrier` wherever one thread may touch shared memory that another has touched since the last
//! one, unless both only read.
//!
//! Why last: it needs the offsets, since buffers that never live together may share memory. It reads the memory effects
//! that the operations declare, so that an operation with new effects needs nothing here.
//!
//! The state is the list of byte ranges read and written since the last barrier. Loops are walked until the state at
//! their head no longer grows.
//!
//! - An operation with scratch contains a barrier between its writes and its reads: what came before it is settled by
//!   that one, and its own reads are what remains.
//! - An asynchronous copy is visible to its own thread after the wait, to the others after a barrier that follows the
//!   wait (PTX ISA, "cp.async.wait_group"). So a wait turns what copies have written into writes that a barrier must
//!   settle; before the wait, a read of a ring of buffers does not conflict with a copy to another slot of it. Nor does a
//!   copy that the pipeliner says goes to a free slot with the reads of this iteration's ([`marks::FREE_SLOT`]).
//! - An asynchronous dot reads its buffers until a wait for it, and for other warps until a barrier after that. Whoever
//!   makes a dot asynchronous sees to it that nothing is written there before the wait. Likewise a TMA copy to global
//!   memory and its wait, which only the issuing thread sees return.
//! - A TMA copy to shared memory is issued by one thread, so that all others must be done with the buffer before. Each
//!   thread that waits for its mbarrier sees what it brought: no barrier after it.
//! - The regions of a `ttg.warp_specialize` are walked each on its own: their barriers are for their warps alone.
//! - Operations on mbarriers need no order among themselves, but for the first and the last of each.
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

use tilewright_ir::dialect::{scf, tt, ttg, ttng};
use tilewright_ir::effects::resource;
use tilewright_ir::marks;
use tilewright_ir::opdef::{Access, Completion, Proxy, Resource};
use tilewright_ir::{AttrKind, Block, Builder, Module, Op, Opcode, Region, Value};
use tilewright_layout::{ConversionPlan, SyncScope};

use crate::analysis::{calls, local_pointers, scope, scratch};
use crate::pass::{Pass, Property};
use crate::transform::allocate_shared::{buffer_bytes, is_view};

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

type Range = (u32, u32);

/// What has been touched since the last barrier.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct State {
    reads: Vec<Range>,
    /// Read in a ring's slot since the last wait for copies: of no concern to a copy into a free slot.
    slot_reads: Vec<Range>,
    writes: Vec<Range>,
    /// Written by asynchronous copies that may be under way; a wait makes them `writes`.
    copies: Vec<Range>,
    /// Read by asynchronous dots that may be under way; a wait makes them `reads`, which only a barrier settles.
    dots: Vec<Range>,
    /// Read by TMA copies to global memory that may be under way; as `dots`.
    drains: Vec<Range>,
    /// Written by ordinary stores, and by asynchronous copies that were waited for, since the last proxy fence.
    unfenced: Vec<Range>,
    /// Loaded by threads since the last proxy fence.
    loaded: Vec<Range>,
    /// Of these what has been loaded since the last barrier, of buffers that are [left alone](leave_alone).
    just_loaded: Vec<Range>,
    /// A function was called that uses shared memory. Its callers' memory is not its own, but that of other calls is.
    called: bool,
}

fn add(list: &mut Vec<Range>, r: Range) {
    if let Err(at) = list.binary_search(&r) {
        list.insert(at, r);
    }
}

/// Those of a list that stay in it.
fn kept(list: &[Range], stays: impl Fn(Range) -> bool) -> Vec<Range> {
    list.iter().copied().filter(|&r| stays(r)).collect()
}

fn overlaps(list: &[Range], r: Range) -> bool {
    list.iter().any(|o| o.0 < r.1 && r.0 < o.1)
}

impl State {
    fn settle(&mut self) {
        self.reads.clear();
        self.slot_reads.clear();
        self.writes.clear();
        self.just_loaded.clear();
        self.called = false;
    }

    fn join(&mut self, other: &State) {
        self.called |= other.called;
        for (mine, theirs) in [
            (&mut self.reads, &other.reads),
            (&mut self.slot_reads, &other.slot_reads),
            (&mut self.writes, &other.writes),
            (&mut self.copies, &other.copies),
            (&mut self.dots, &other.dots),
            (&mut self.drains, &other.drains),
            (&mut self.unfenced, &other.unfenced),
            (&mut self.loaded, &other.loaded),
            (&mut self.just_loaded, &other.just_loaded),
        ] {
            for &r in theirs {
                add(mine, r);
            }
        }
    }
}

/// What an operation touches.
#[derive(Debug, Default)]
struct Touches {
    reads: Vec<Range>,
    /// Read in one slot of a ring.
    slot_reads: Vec<Range>,
    writes: Vec<Range>,
    copies: Vec<Range>,
    /// Whether the copy goes to a slot that is not read between a wait for copies and the copy.
    free_slot: bool,
    dots: Vec<Range>,
    drains: Vec<Range>,
    /// Written by TMA copies, whose end an mbarrier announces.
    fills: Vec<Range>,
    /// The same in buffers that are [left alone](leave_alone): they want the proxy fence as others do.
    ordered_fills: Vec<Range>,
    /// Written otherwise in buffers that are left alone: what TMA does there later wants the proxy fence.
    ordered_writes: Vec<Range>,
    /// Loaded from such buffers.
    ordered_reads: Vec<Range>,
    /// It has a barrier of its own between its writes and its reads.
    barrier_inside: bool,
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
            Some(Opcode::Scf(scf::Kind::For)) => {
                let body = scf::For(op).body(module);
                until_stable(state, |s| region_ops(module, body, s));
            }
            Some(Opcode::Scf(scf::Kind::While)) => {
                let (before, after) = (scf::While(op).before(module), scf::While(op).after(module));
                region_ops(module, before, state);
                until_stable(state, |s| {
                    region_ops(module, after, s);
                    region_ops(module, before, s);
                });
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
                | Opcode::Tt(tt::Kind::ProgramBarrier | tt::Kind::WaitSignal),
            ) => state.settle(),
            Some(Opcode::Ttg(ttg::Kind::WarpSpecialize)) => {
                partitions(module, ttg::WarpSpecialize(op), state)
            }
            Some(Opcode::Ttg(ttg::Kind::AsyncWait)) => {
                for &c in &state.copies.clone() {
                    add(&mut state.writes, c);
                    add(&mut state.unfenced, c);
                }
                if ttg::AsyncWait(op).num(module) == 0 {
                    state.copies.clear();
                }
                for r in std::mem::take(&mut state.slot_reads) {
                    add(&mut state.reads, r);
                }
                barrier = last;
            }
            Some(Opcode::Ttng(ttng::Kind::WarpGroupDotWait)) => {
                for &r in &state.dots.clone() {
                    add(&mut state.reads, r);
                }
                if ttng::WarpGroupDotWait(op).pendings(module) == 0 {
                    state.dots.clear();
                }
                barrier = last;
            }
            Some(Opcode::Ttng(ttng::Kind::TmaStoreWait)) => {
                for &r in &state.drains.clone() {
                    add(&mut state.reads, r);
                }
                if ttng::TmaStoreWait(op).pendings(module) == 0 {
                    state.drains.clear();
                }
                barrier = last;
            }
            Some(Opcode::Ttng(ttng::Kind::NamedBarrier)) => {
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
                    && ttng::ArriveBarrier::cast(module, op).is_some()
                    && is_handed_to_proxy(module, op, state)
                {
                    fence_before(module, last, state);
                }
                let touches = touches(module, op);
                barrier = visit(module, op, &touches, last, state);
            }
        }
    }
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
    visit(module, w.0, &own, None, state);
    state.settle();
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
    let (mut written, mut loaded) = (Vec::new(), Vec::new());
    for region in w.partitions(module).to_vec() {
        let mut own = State::default();
        region_ops(module, region, &mut own);
        written.extend(own.unfenced.into_iter().chain(own.copies));
        loaded.extend(own.loaded);
    }
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

/// Places what `op` needs before it; `last` and the result are the barrier before it and before what follows, where nothing
/// but that barrier has settled the state.
fn visit(module: &mut Module, op: Op, t: &Touches, last: Option<Op>, state: &mut State) -> Option<Op> {
    let mut barrier = last;
    let reads = t.reads.iter().chain(&t.slot_reads).chain(&t.dots).chain(&t.drains);
    let read_conflict = reads.copied().any(|r| overlaps(&state.writes, r));
    let mut writes = t.writes.iter().chain(&t.copies).chain(&t.fills);
    let write_conflict = writes.any(|&r| {
        overlaps(&state.writes, r)
            || overlaps(&state.reads, r)
            || !t.free_slot && overlaps(&state.slot_reads, r)
    });
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
    } else {
        for &w in &t.writes {
            add(&mut state.writes, w);
        }
    }
    for &r in &t.reads {
        add(&mut state.reads, r);
    }
    for &r in &t.slot_reads {
        add(&mut state.slot_reads, r);
    }
    for &c in &t.copies {
        add(&mut state.copies, c);
    }
    for &d in &t.dots {
        add(&mut state.dots, d);
    }
    for &d in &t.drains {
        add(&mut state.drains, d);
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

fn touches(module: &Module, op: Op) -> Touches {
    let mut t = Touches { free_slot: module.op_attr(op, marks::FREE_SLOT).is_some(), ..Touches::default() };
    let offset = module.int_attr(op, marks::ALLOCATION_OFFSET).map(|o| o as u32);
    let alloc = ttg::LocalAlloc::cast(module, op);
    if let Some(alloc) = alloc {
        if alloc.src(module).is_some()
            && let Some(r) = buffer_range(module, alloc.result(module))
        {
            t.writes.push(r);
        }
        return t;
    }
    if let Some(offset) = offset {
        let range = (offset, offset + scratch::scratch_bytes(module, op));
        t.writes.push(range);
        t.reads.push(range);
        t.barrier_inside = has_barrier(module, op);
    }
    let Some(def) = module.def(op) else { return t };
    // The left operand of a warp-group dot may be in registers: then there is no buffer to read.
    for effect in def.effects {
        if resource(module, op, effect) != Resource::Shared {
            continue;
        }
        let Some(group) = effect.operand.and_then(|name| def.group(name)) else { continue };
        for &value in module.operand_group(op, group) {
            if module.is_shared_pointer(module.value_type(value)) {
                let (ranges, alone) = pointed_to(module, value);
                match (effect.access, alone) {
                    (Access::Read, false) => t.reads.extend(ranges),
                    (Access::Read, true) => t.ordered_reads.extend(ranges),
                    (_, false) => t.writes.extend(ranges),
                    (_, true) => t.ordered_writes.extend(ranges),
                }
                continue;
            }
            if module.is_tensor(module.value_type(value)) {
                continue;
            }
            if is_left_alone(module, value) {
                let range = || buffer_range(module, value).unwrap_or((0, u32::MAX));
                match (effect.access, effect.completion) {
                    (Access::Write, Completion::Mbarrier) => t.ordered_fills.push(range()),
                    (Access::Write, _) => t.ordered_writes.push(range()),
                    (Access::Read, _) if effect.proxy == Proxy::Generic => t.ordered_reads.push(range()),
                    _ => {}
                }
                continue;
            }
            let range = buffer_range(module, value).unwrap_or((0, u32::MAX));
            match (effect.access, effect.completion) {
                (Access::Read, Completion::Dots) if is_under_way(module, op) => t.dots.push(range),
                (Access::Read, Completion::Stores) => t.drains.push(range),
                (Access::Read, _) if is_slot(module, value) => t.slot_reads.push(range),
                (Access::Read, _) => t.reads.push(range),
                (Access::Write, Completion::Copies) => t.copies.push(range),
                (Access::Write, Completion::Mbarrier) => t.fills.push(range),
                (Access::Write, _) => t.writes.push(range),
                _ => {}
            }
        }
    }
    t
}

/// The bytes of the buffers that pointers point into, and whether all of these are left alone.
fn pointed_to(module: &Module, pointers: Value) -> (Vec<Range>, bool) {
    let Some(buffers) = local_pointers::buffers(module, pointers) else {
        return (vec![(0, u32::MAX)], false);
    };
    let alone = !buffers.is_empty() && buffers.iter().all(|&b| is_left_alone(module, b));
    let ranges: Option<Vec<Range>> = buffers.into_iter().map(|b| buffer_range(module, b)).collect();
    (ranges.unwrap_or_else(|| vec![(0, u32::MAX)]), alone)
}

/// Whether a dot is still under way behind its operation; else it has waited for itself.
fn is_under_way(module: &Module, op: Op) -> bool {
    ttng::WarpGroupDot::cast(module, op).is_none_or(|dot| dot.is_async(module))
}

/// Whether a value is (a view of) a buffer that is left alone.
fn is_left_alone(module: &Module, value: Value) -> bool {
    let Some(op) = module.defining_op(scope::captured(module, value)) else { return false };
    match module.opcode(op) {
        Some(Opcode::Ttg(ttg::Kind::LocalAlloc)) => module.op_attr(op, marks::ORDERED).is_some(),
        _ => is_view(module, op) && is_left_alone(module, module.operands(op)[0]),
    }
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

/// Whether a value is a view of one slot of a ring.
fn is_slot(module: &Module, value: Value) -> bool {
    let op = module.defining_op(scope::captured(module, value));
    op.is_some_and(|op| match module.opcode(op) {
        Some(Opcode::Ttg(ttg::Kind::MemdescIndex)) => true,
        Some(Opcode::Ttg(ttg::Kind::MemdescSubslice | ttg::Kind::MemdescTrans)) => {
            is_slot(module, module.operands(op)[0])
        }
        _ => false,
    })
}

/// The bytes of the buffer that a value is (a view of); `None` where it can't be told. A slot of a ring is its own bytes where
/// its number is known.
fn buffer_range(module: &Module, value: Value) -> Option<Range> {
    let mut at = value;
    let mut slot: Option<Range> = None;
    loop {
        at = scope::captured(module, at);
        let op = module.defining_op(at)?;
        match module.opcode(op)? {
            Opcode::Ttg(ttg::Kind::LocalAlloc) => {
                let offset = module.int_attr(op, marks::ALLOCATION_OFFSET)? as u32;
                let (bytes, _) = buffer_bytes(module, module.value_type(at)).ok()?;
                let (begin, end) = slot.unwrap_or((0, bytes));
                return Some((offset + begin, offset + end));
            }
            Opcode::Ttg(ttg::Kind::MemdescIndex) => {
                let index = ttg::MemdescIndex(op);
                // Of several indices the outermost alone is looked at.
                slot = module.constant_int(index.index(module)).and_then(|i| {
                    let (bytes, _) = buffer_bytes(module, module.value_type(index.result(module))).ok()?;
                    let begin = u32::try_from(i).ok()? * bytes;
                    Some((begin, begin + bytes))
                });
                at = index.src(module);
            }
            Opcode::Ttg(ttg::Kind::MemdescReshape) => at = module.operands(op)[0],
            // A slot of a part is somewhere in the whole.
            _ if is_view(module, op) => (at, slot) = (module.operands(op)[0], None),
            _ => return None,
        }
    }
}
