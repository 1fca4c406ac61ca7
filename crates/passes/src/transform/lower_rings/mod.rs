//! Rings become what the hardware has: mbarriers, groups of asynchronous copies, TMA, fences.
//!
//! Why here: behind the passes that make rings (warp specialization, the pipeliner, TMA) and the one that decides where dots
//! are waited for, which is where slots have been read; before allocation, since mbarriers are buffers.
//!
//! How a field is filled follows from what writes it ([`rings`]), and who waits for whom from where the ring's
//! operations stand:
//!
//! | | writer and readers are different warps | they are the same |
//! | --- | --- | --- |
//! | a slot | has an mbarrier `full` and one `empty` | has `full`, if the copy engine fills it |
//! | `ring_acquire` | waits for `empty` | is left to [`membar`], as every access to a buffer that others have read |
//! | filled by blocks | announces their bytes to `full`; the copies bring them | the same |
//! | filled by threads' copies | each thread arrives at `full` when its copies are done; a proxy fence behind the wait where the asynchronous proxy reads | a group of copies, for which each thread waits |
//! | filled by stores | each warp arrives at `full`, behind a proxy fence where the asynchronous proxy reads | is left to membar |
//! | `ring_wait` | waits for `full` | the same, or waits for the group |
//! | `ring_close` | waits for `empty`, and arrives as an acquire and a commit do | is not left by [`order_rings`](super::order_rings) |
//! | `ring_release` | each warp arrives at `empty`, behind the dots that read the slot, and behind a proxy fence where its threads load what the copy engine fills | is left to membar |
//!
//! Mbarriers that a loop makes, the kernel's own too, end with its iteration.
//!
//! What the writer's threads have done before a commit with memory that is no field, and other warps touch, too, a commit hands over as well: each
//! of its warps arrives then, whatever fills the slot. So do all warps of a reader behind such accesses, where one thread reads its slots. Where the asynchronous proxy
//! reaches such memory elsewhere, a proxy fence stands before these arrivals.
//!
//! Where a writer closes slots a flag of each slot says which are: it is written before the arrivals of a commit or a close, and all warps
//! of the writer arrive.
//!
//! Copies that other CTAs of the cluster get, too ([`multicast`]), fill their slots as well: readers
//! then arrive at the `empty` of all these CTAs, and the cluster meets when the mbarriers have been made and when no arrival
//! can come any more. Where writer and readers are the same warps, a ring without fields passes that on: to commit its slot is
//! a barrier and an arrival in all these CTAs, and the thread that copies waits for them.
//!
//! ```text
//! %ring = ttg.ring_create %a {slots = 3 : i32}
//! ttg.warp_specialize(%ring, %a, %d)
//! default {
//!   ttg.ring_wait %ring[%slot], %phase
//!   ttng.warp_group_dot %a[%slot], ...
//!   ttg.ring_release %ring[%slot]
//! }
//! partition0(...) num_warps(1) {
//!   ttg.ring_acquire %ring[%slot], %phase
//!   ttg.async_copy_block_to_local %d[%i, %k], %a[%slot]
//!   ttg.ring_commit %ring[%slot]
//! }
//! =>
//! %full = ttg.local_alloc ; %empty = ttg.local_alloc ; ttng.init_barrier ...
//! ttg.warp_specialize(%a, %d, %full, %empty)
//! default {
//!   ttng.wait_barrier %full[%slot], %phase
//!   ttng.warp_group_dot %a[%slot], ...
//!   ttng.arrive_barrier %empty[%slot], 1 {perWarp}
//! }
//! partition0(...) num_warps(1) {
//!   ttng.wait_barrier %empty[%slot], %phase ^ 1
//!   ttng.barrier_expect %full[%slot], bytes
//!   ttng.async_tma_copy_global_to_local %d[%i, %k] %a[%slot], %full[%slot]
//! }
//! ```

mod release;

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{arith, scf, tt, ttg, ttng};
use tilewright_ir::effects::effects;
use tilewright_ir::{
    AttrKind, Builder, Diagnostic, Encoding, Module, Op, Opcode, SharedKind, Trait, Type, TypeKind, Value,
    flow,
};

use crate::analysis::rings::{self, Ring, Transport, wrong};
use crate::analysis::scope;
use crate::hopper::{captures, multicast, tma};
use crate::pass::{Pass, Property};
use crate::transform::allocate_shared::{allocation, buffer_users};
use crate::transform::membar;

/// The pass.
pub const PASS: Pass = Pass {
    name: "lower-rings",
    summary: "turn rings into mbarriers, groups of copies and TMA",
    requires: &[Property::LaidOut],
    ensures: &[Property::NoRings],
    run: |m, _, _| run(m),
};

/// Lowers every ring of a module.
///
/// # Errors
/// A use of a ring that can't be lowered, with its place.
pub fn run(module: &mut Module) -> Result<(), Diagnostic> {
    let all = module.all_ops(module.root());
    let creates: Vec<ttg::RingCreate> =
        all.into_iter().filter_map(|op| ttg::RingCreate::cast(module, op)).collect();
    // Behind the last of the rings that are shared with other CTAs these meet, and again behind those who use it.
    let mut cluster_barriers: Vec<(ttg::WarpSpecialize, Op)> = Vec::new();
    for &create in &creates {
        release::place(module, &Ring::of(module, create)?);
    }
    // Who fills a field that several rings have is seen while all of them are there.
    let mut rings: Vec<Ring> =
        creates.iter().map(|&create| Ring::of(module, create)).collect::<Result<_, _>>()?;
    for ring in &mut rings {
        ring.look_beside(module);
    }
    for ring in rings {
        let create = ring.create;
        let mut lowering = Lowering::new(module, ring)?;
        // An acquire looks for its commit, which must still be there.
        let is_acquire = |m: &Module, op| ttg::RingAcquire::cast(m, op).is_some();
        let (acquires, others): (Vec<Op>, Vec<Op>) =
            lowering.ring.uses.iter().partition(|&&op| is_acquire(module, op));
        for op in acquires.into_iter().chain(others) {
            lowering.lower(module, op)?;
        }
        if lowering.passes_turns() {
            // Then each CTA's threads have met, too, before the first copies. At the end nothing is under way: each CTA has
            // waited for all arrivals, and for all copies that it gets.
            multicast::cluster_barrier(&mut Builder::after(module, create.0));
        } else if lowering.apart
            && lowering.ring.peers != 1
            && let Some(w) = specialization(&lowering.ring)
        {
            cluster_barriers.retain(|m| m.0 != w);
            cluster_barriers.push((w, create.0));
        }
    }
    for (w, create) in cluster_barriers {
        multicast::cluster_barrier(&mut Builder::after(module, create));
        multicast::cluster_barrier(&mut Builder::after(module, w.0));
    }
    for w in scope::specializations(module).into_iter().filter(|_| !creates.is_empty()) {
        for create in &creates {
            captures::release(module, w, create.ring(module));
        }
        for region in w.partitions(module).to_vec() {
            captures::capture(module, w, module.region_block(region));
        }
    }
    for create in creates {
        module.erase_op(create.0);
    }
    end_in_loops(module)?;
    let stray =
        module.all_ops(module.root()).into_iter().find_map(|op| ttg::AsyncCopyBlockToLocal::cast(module, op));
    match stray {
        Some(copy) => Err(wrong(module, copy.0, "a block is copied where no slot of a ring is being filled")),
        None => Ok(()),
    }
}

/// Ends mbarriers that a loop makes anew each time, and nobody ends: where one lies no other can be made before (PTX ISA,
/// "mbarrier.init"). Of one that leaves the block in which it is made, since a branch gives it or a loop carries it, nobody knows who uses it last.
fn end_in_loops(module: &mut Module) -> Result<(), Diagnostic> {
    let mut ends = Vec::new();
    for op in module.all_ops(module.root()) {
        let Some(init) = ttng::InitBarrier::cast(module, op).filter(|_| is_in_loop(module, op)) else {
            continue;
        };
        let one = init.alloc(module);
        let is_end = |&op: &Op| ttng::InvalBarrier::cast(module, op).is_some();
        let users = allocation(module, one).map(|all| buffer_users(module, all.result(module)));
        let ended = users.as_ref().is_none_or(|users| users.iter().any(is_end));
        if !ended && users.iter().flatten().any(|&op| module.has_trait(op, Trait::Terminator)) {
            let text = "not supported yet: an mbarrier that is made in a loop, and that a branch gives or the loop carries on";
            return Err(wrong(module, op, text));
        }
        let end = module.parent_block(op).and_then(|block| module.last_op(block));
        if let Some(end) = end.filter(|_| !ended) {
            ends.push((one, end));
        }
    }
    for (one, end) in ends {
        ttng::InvalBarrier::build(&mut Builder::before(module, end), one);
    }
    Ok(())
}

/// Whether an operation is in a loop of the code that its warps run.
fn is_in_loop(module: &Module, op: Op) -> bool {
    std::iter::successors(module.parent_op(op), |&op| module.parent_op(op))
        .any(|op| flow::is_loop(module, op))
}

/// The specialization whose regions write and read a ring.
fn specialization(ring: &Ring) -> Option<ttg::WarpSpecialize> {
    let places = ring.readers.iter().filter_map(|r| r.place.as_ref()).chain([&ring.writer]);
    places.flatten().map(|&(w, _)| w).next()
}

/// A ring and its mbarriers.
struct Lowering {
    ring: Ring,
    /// Whether a reader is not where the writer is.
    apart: bool,
    /// An mbarrier a slot: it has been filled.
    full: Option<Value>,
    /// It has been read.
    empty: Option<Value>,
    /// A word a slot: it is closed. For a ring that is never closed there is none.
    closed: Option<Value>,
    /// The mbarrier of the slot that a commit fills, as its acquire knows it.
    filled: FxHashMap<Op, Value>,
}

/// What the writer does between an acquire and its commit.
struct Window {
    blocks: Vec<ttg::AsyncCopyBlockToLocal>,
    bytes: i32,
    commit: Op,
}

impl Lowering {
    /// Makes the mbarriers where the ring is made.
    fn new(module: &mut Module, ring: Ring) -> Result<Lowering, Diagnostic> {
        let apart = !ring.is_in_order();
        let one_shot = ring.create.one_shot(module);
        let unread = ring.readers.iter().position(|r| r.place.is_none());
        if let Some(reader) = unread.filter(|_| apart && !one_shot) {
            let (reader, ring_shown) =
                (rings::reader_shown(module, ring.create, reader), rings::shown(module, ring.create));
            let text =
                format!("{reader} of {ring_shown} never reads, so that the writer would wait for ever");
            return Err(wrong(module, ring.create.0, &text));
        }
        let filled = FxHashMap::default();
        let mut lowering = Lowering { apart, full: None, empty: None, closed: None, filled, ring };
        let at = lowering.ring.create.0;
        let (full, empty) =
            (lowering.arrivals_of_writer(scope::warp_size(module)), lowering.arrivals_of_readers());
        let slots = lowering.ring.slots;
        let mut counts = Vec::new();
        if full > 0 {
            lowering.full = Some(barriers(module, at, slots));
            counts.push((lowering.full, full));
        }
        if apart && !one_shot {
            lowering.empty = Some(barriers(module, at, slots));
            counts.push((lowering.empty, empty));
        }
        let mut b = Builder::before(module, at);
        for slot in 0..if counts.is_empty() { 0 } else { slots } {
            let slot = b.i32(slot as i32);
            for &(ring, count) in &counts {
                let one = barrier(&mut b, ring.expect("just made"), slot);
                ttng::InitBarrier::build(&mut b, one, count);
            }
        }
        if apart {
            for field in lowering.ring.fields.iter().filter(|f| f.transport == Some(Transport::Stores)) {
                if is_ordered(module, &lowering.ring, field.alloc) {
                    membar::leave_alone(module, field.alloc.result(module));
                }
            }
        }
        if apart && lowering.ring.closes {
            let flags = flags(module, at, slots);
            membar::leave_alone(module, flags);
            lowering.closed = Some(flags);
        }
        Ok(lowering)
    }

    /// Whether each warp of the writer says for itself that it has filled a slot.
    fn arrives_by_warp(&self) -> bool {
        let fills = || self.ring.fields.iter().any(|f| f.transport.is_some());
        let tells = self.ring.has(Transport::Stores) || self.ring.commits_beside || self.ring.closes;
        self.apart && (tells || !fills())
    }

    /// Whether its commits tell other CTAs of the cluster, and nothing else: the thread that copies to them waits for it.
    fn passes_turns(&self) -> bool {
        !self.apart && self.ring.fields.is_empty() && self.ring.peers != 1
    }

    /// Arrivals that fill a slot.
    fn arrivals_of_writer(&self, warp_size: u32) -> i32 {
        if self.passes_turns() {
            return self.ring.peers.count_ones() as i32;
        }
        let announces = i32::from(self.ring.has(Transport::Blocks));
        let threads = if self.apart && self.ring.has(Transport::Copies) {
            warp_size * self.ring.writer_warps
        } else {
            0
        };
        let warps = if self.arrives_by_warp() { self.ring.writer_warps } else { 0 };
        announces + (threads + warps) as i32
    }

    /// Arrivals that free a slot.
    fn arrivals_of_readers(&self) -> i32 {
        let of_one = |r: &crate::analysis::rings::Reader| if r.elected { 1 } else { r.warps };
        let readers: u32 = self.ring.readers.iter().map(of_one).sum();
        (readers * self.ring.peers.count_ones()) as i32
    }

    fn lower(&mut self, module: &mut Module, op: Op) -> Result<(), Diagnostic> {
        match module.opcode(op) {
            Some(Opcode::Ttg(ttg::Kind::RingAcquire)) => self.acquire(module, ttg::RingAcquire(op))?,
            Some(Opcode::Ttg(ttg::Kind::RingCommit)) => self.commit(module, ttg::RingCommit(op))?,
            Some(Opcode::Ttg(ttg::Kind::RingWait)) => self.wait(module, ttg::RingWait(op)),
            Some(Opcode::Ttg(ttg::Kind::RingRelease)) => self.release(module, ttg::RingRelease(op)),
            Some(Opcode::Ttg(ttg::Kind::RingDealloc)) => self.dealloc(module, op),
            Some(Opcode::Ttg(ttg::Kind::RingClose)) if self.apart => self.close(module, ttg::RingClose(op)),
            Some(Opcode::Ttg(ttg::Kind::RingIsClosed)) if self.apart => {
                self.is_closed(module, ttg::RingIsClosed(op));
            }
            _ => {
                let what = format!("`{}` here", module.op_name(op));
                return Err(Diagnostic::unsupported(module, module.op_loc(op), what));
            }
        }
        module.erase_op(op);
        Ok(())
    }

    fn acquire(&mut self, module: &mut Module, acquire: ttg::RingAcquire) -> Result<(), Diagnostic> {
        let window = match self.window(module, acquire) {
            Err(error) if self.ring.has(Transport::Blocks) => return Err(error),
            window => window.ok(),
        };
        let (slot, phase, pred) = (acquire.slot(module), acquire.phase(module), acquire.pred(module));
        let mut b = Builder::before(module, acquire.0);
        let empty = self.empty.map(|empty| barrier(&mut b, empty, slot));
        let full = self.full.map(|full| barrier(&mut b, full, slot));
        if let Some(empty) = empty {
            let Some(phase) = phase else {
                let text = "the slot may still be read by other warps: say in which phase it is acquired";
                return Err(wrong(module, acquire.0, text));
            };
            wait_for_free(&mut b, empty, phase, pred);
        }
        let (Some(full), Some(window)) = (full, window) else { return Ok(()) };
        self.filled.insert(window.commit, full);
        if !self.ring.has(Transport::Blocks) {
            return Ok(());
        }
        let pred = pred.unwrap_or_else(|| b.int(-1, Type::I1));
        ttng::BarrierExpect::build(&mut b, full, pred, window.bytes);
        for copy in window.blocks {
            let (desc, coord, dst) = (copy.desc(module), copy.coord(module).to_vec(), copy.dst(module));
            let (cache, evict) = (copy.cache(module), copy.evict(module));
            let mask = module.int_attr(copy.0, tilewright_ir::marks::MULTICAST).unwrap_or(0);
            let where_ = copy.pred(module).unwrap_or(pred);
            let mut b = Builder::before(module, copy.0);
            let copied = ttng::AsyncTmaCopyGlobalToLocal::build(
                &mut b, desc, &coord, full, dst, where_, cache, evict, false,
            );
            multicast::mark_copy(module, copied.0, mask as u32);
            module.erase_op(copy.0);
        }
        Ok(())
    }

    /// What fills the slot that is acquired.
    fn window(&self, module: &Module, acquire: ttg::RingAcquire) -> Result<Window, Diagnostic> {
        let slot = acquire.slot(module);
        let same_slot = |v: Value| rings::same_slot(module, v, slot);
        let fills = |copy: ttg::AsyncCopyBlockToLocal| {
            self.ring.holds(module, copy.dst(module))
                && rings::slot_of(module, copy.dst(module)).is_some_and(same_slot)
        };
        let mut window = Window { blocks: Vec::new(), bytes: 0, commit: acquire.0 };
        let following = std::iter::successors(module.next_op(acquire.0), |&op| module.next_op(op));
        for op in following {
            let commits = ttg::RingCommit::cast(module, op).filter(|_| self.ring.uses.contains(&op));
            if commits.is_some_and(|c| same_slot(c.slot(module))) {
                return Ok(Window { commit: op, ..window });
            }
            for inner in module.all_ops(op) {
                let Some(copy) = ttg::AsyncCopyBlockToLocal::cast(module, inner).filter(|&c| fills(c)) else {
                    continue;
                };
                if inner != op {
                    let what = "a slot of a ring that is filled by a block under a condition or in a loop";
                    return Err(Diagnostic::unsupported(module, module.op_loc(inner), what));
                }
                window.bytes += tma::block_bytes(module, copy.desc(module));
                window.blocks.push(copy);
            }
        }
        Err(wrong(module, acquire.0, "the slot that is acquired here is not committed in the same block"))
    }

    fn commit(&self, module: &mut Module, commit: ttg::RingCommit) -> Result<(), Diagnostic> {
        if !self.apart {
            let slot = commit.slot(module);
            let mut b = Builder::before(module, commit.0);
            if self.ring.has(Transport::Copies) {
                ttg::AsyncCommitGroup::build(&mut b, &[], Type::ASYNC_TOKEN);
            }
            if let Some(full) = self.full.filter(|_| self.passes_turns()) {
                ttg::Barrier::build(&mut b);
                let full = barrier(&mut b, full, slot);
                let arrive = ttng::ArriveBarrier::build(&mut b, full, None, None, 1, false);
                multicast::mark_arrival(module, arrive, self.ring.peers);
            }
            return Ok(());
        }
        let slot = commit.slot(module);
        let mut b = Builder::before(module, commit.0);
        let full = match (self.filled.get(&commit.0), self.full) {
            (Some(&full), _) => full,
            (None, Some(full)) => barrier(&mut b, full, slot),
            (None, None) => return Ok(()),
        };
        if self.ring.has(Transport::Copies) {
            ttng::AsyncCopyMbarrierArrive::build(&mut b, full, true);
        }
        if self.ring.fences_commits() {
            ttng::FenceAsyncShared::build(&mut b, false);
        }
        self.give(&mut b, full, slot, false);
        Ok(())
    }

    /// Arrives at `full` for all warps of the writer, where they do, and says before whether the slot is closed.
    fn give(&self, b: &mut Builder<'_>, full: Value, slot: Value, is_closed: bool) {
        if let Some(flags) = self.closed {
            let flag = flag(b, flags, slot);
            let is_closed = b.i32(i32::from(is_closed));
            let (cache, evict) = (tt::CacheModifier::None, tt::EvictionPolicy::Normal);
            tt::Store::build(b, flag, is_closed, None, cache, evict);
        }
        if self.arrives_by_warp() {
            ttng::ArriveBarrier::build(b, full, None, None, 1, true);
        }
    }

    fn close(&self, module: &mut Module, close: ttg::RingClose) {
        let (slot, phase) = (close.slot(module), close.phase(module));
        let mut b = Builder::before(module, close.0);
        if let Some(empty) = self.empty {
            let empty = barrier(&mut b, empty, slot);
            wait_for_free(&mut b, empty, phase, None);
        }
        let Some(full) = self.full else { return };
        let full = barrier(&mut b, full, slot);
        if self.ring.has(Transport::Blocks) {
            ttng::ArriveBarrier::build(&mut b, full, None, None, 1, false);
        }
        if self.ring.has(Transport::Copies) {
            ttng::AsyncCopyMbarrierArrive::build(&mut b, full, true);
        }
        if self.ring.commits_to_proxy {
            ttng::FenceAsyncShared::build(&mut b, false);
        }
        self.give(&mut b, full, slot, true);
    }

    fn is_closed(&self, module: &mut Module, op: ttg::RingIsClosed) {
        let (slot, result) = (op.slot(module), op.closed(module));
        let mut b = Builder::before(module, op.0);
        let known = match self.closed {
            None => b.int(0, Type::I1),
            Some(flags) => {
                let flag = flag(&mut b, flags, slot);
                let (cache, evict) = (tt::CacheModifier::None, tt::EvictionPolicy::Normal);
                let load = tt::Load::build(&mut b, flag, None, None, cache, evict, false, Type::I32);
                let (value, zero) = (load.result(b.module), b.i32(0));
                arith::Cmpi::build(&mut b, value, zero, arith::CmpIPredicate::Ne, Type::I1).result(b.module)
            }
        };
        module.replace_all_uses(result, known);
    }

    fn wait(&self, module: &mut Module, wait: ttg::RingWait) {
        let (slot, phase, pred) = (wait.slot(module), wait.phase(module), wait.pred(module));
        let later = wait.later(module).unwrap_or(0);
        let mut b = Builder::before(module, wait.0);
        if let Some(full) = self.full {
            let full = barrier(&mut b, full, slot);
            let wait = ttng::WaitBarrier::build(&mut b, full, phase, pred, &[]);
            if self.passes_turns() {
                multicast::mark_wait(b.module, wait);
            }
        }
        if self.ring.fences_waits() {
            ttng::FenceAsyncShared::build(&mut b, false);
        }
        if !self.apart && self.ring.has(Transport::Copies) {
            ttg::AsyncWait::build(&mut b, &[], later, Type::ASYNC_TOKEN);
        }
    }

    fn release(&self, module: &mut Module, release: ttg::RingRelease) {
        let Some(empty) = self.empty else { return };
        let number = Ring::reader_of(module, release.0);
        let reader = &self.ring.readers[number];
        let (slot, pred) = (release.slot(module), release.pred(module));
        let mut b = Builder::before(module, release.0);
        let empty = barrier(&mut b, empty, slot);
        if self.ring.fences_releases(number) {
            ttng::FenceAsyncShared::build(&mut b, false);
        }
        let arrive = ttng::ArriveBarrier::build(&mut b, empty, pred, None, 1, !reader.elected);
        multicast::mark_arrival(module, arrive, self.ring.peers);
    }

    fn dealloc(&self, module: &mut Module, op: Op) {
        let mut b = Builder::before(module, op);
        if !self.apart && self.ring.has(Transport::Copies) {
            ttg::AsyncWait::build(&mut b, &[], 0, Type::ASYNC_TOKEN);
        }
        for barriers in [self.full, self.empty].into_iter().flatten() {
            for slot in 0..self.ring.slots as i32 {
                let slot = b.i32(slot);
                let one = barrier(&mut b, barriers, slot);
                ttng::InvalBarrier::build(&mut b, one);
            }
        }
    }
}

/// Waits until all readers have released a slot. The first time round nobody has read it: the phase before the first counts as
/// complete.
fn wait_for_free(b: &mut Builder<'_>, empty: Value, phase: Value, pred: Option<Value>) {
    let one = b.i32(1);
    let before = arith::Xori::build(b, phase, one).result(b.module);
    ttng::WaitBarrier::build(b, empty, before, pred, &[]);
}

/// Whether the ring's mbarriers order all accesses to a field that is filled by stores: the writer accesses it once between an acquire
/// and the commit, so that its own warps have nothing to do with each other, readers do not write into it, and no other ring orders it.
fn is_ordered(module: &Module, ring: &Ring, alloc: ttg::LocalAlloc) -> bool {
    let users = buffer_users(module, alloc.result(module));
    if users.iter().filter(|&&op| ttg::RingCreate::cast(module, op).is_some()).count() > 1 {
        return false;
    }
    let users = users.into_iter().filter(|&op| accesses(module, op));
    let (accesses, of_readers): (Vec<Op>, Vec<Op>) =
        users.partition(|&op| rings::place(module, op) == ring.writer);
    if of_readers.iter().any(|&op| rings::writes(module, op, alloc)) {
        return false;
    }
    accesses.iter().all(|&op| {
        let mut at = op;
        loop {
            let before = std::iter::successors(module.prev_op(at), |&op| module.prev_op(op));
            for op in before {
                if ring.uses.contains(&op) && ttg::RingAcquire::cast(module, op).is_some() {
                    return true;
                }
                if accesses.iter().any(|&other| op == other || module.is_ancestor(op, other)) {
                    return false;
                }
            }
            match module.parent_op(at) {
                Some(parent) if scf::If::cast(module, parent).is_some() => at = parent,
                _ => return false,
            }
        }
    })
}

/// Whether an operation itself touches memory.
fn accesses(module: &Module, op: Op) -> bool {
    let e = effects(module, op);
    module.regions(op).is_empty() && (e.reads || e.writes) && ttg::RingCreate::cast(module, op).is_none()
}

/// A word for each of so many slots.
fn flags(module: &mut Module, before: Op, slots: u32) -> Value {
    let plain = SharedKind::Swizzled { vec: 1, per_phase: 1, max_phase: 1, order: vec![0] };
    let encoding = module.attr(AttrKind::Encoding(Encoding::Shared(plain)));
    let ty = module.buffer_type(&[slots], Type::I32, encoding, true);
    ttg::LocalAlloc::build(&mut Builder::before(module, before), None, ty).result(module)
}

/// The word of a slot.
fn flag(b: &mut Builder<'_>, flags: Value, slot: Value) -> Value {
    let ty = b.module.ty(TypeKind::Ptr { pointee: Type::I32, address_space: 3 });
    ttg::LocalPtr::build(b, flags, &[slot], ty).result(b.module)
}

/// An mbarrier for each of so many slots.
fn barriers(module: &mut Module, before: Op, slots: u32) -> Value {
    let ty = ttng::mbarrier_type(module, Some(slots));
    let mut b = Builder::before(module, before);
    ttg::LocalAlloc::build(&mut b, None, ty).result(b.module)
}

/// The mbarrier of a slot.
fn barrier(b: &mut Builder<'_>, barriers: Value, slot: Value) -> Value {
    let ty = ttng::mbarrier_type(b.module, None);
    ttg::MemdescIndex::build(b, barriers, slot, ty).result(b.module)
}
