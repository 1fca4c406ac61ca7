//! Makes warp-group dots asynchronous: issues them, and waits only where a result is looked at.
//!
//! Why here: after the pipeliner, which decides which buffers hold the operands (a ring whose slots are not written again
//! for some iterations), and before allocation, for which a wait keeps the operands' buffers alive.
//!
//! - A dot is waited for right before the first use of its result, unless its only use is as the accumulator of a later dot:
//!   those run in order. A wait takes all that the dots under way have: results, buffers, left operands in registers; those of
//!   the dots that the last one accumulates on, too.
//! - A dot that reads a slot of a ring is waited for before the writer has no other slot to fill than that one.
//! - A left operand in registers is waited for before control flow into which it goes, which copies it.
//! - A dot at the end of a loop whose result is only carried to the next iteration stays under way across the back edge
//!   if its operands lie in slots of rings or in buffers made before the loop. A left operand in registers is carried along
//!   with it, for the next iteration's wait, and the loop's dots have it as it is carried; or, where each iteration makes it
//!   anew, for later dots than the first, which comes before that wait. The next iteration issues its first dot and
//!   then waits until that one alone is pending: the tensor cores are never without work, the results of the iteration
//!   before are valid, and the slots that it read are free for the copies, which the pipeliner puts behind that dot.
//!   Where the carried result is used for more than accumulation (flash attention scales it), the wait is for both:
//!   `ptxas` serializes all dots of a loop in which it sees accumulators read with a dot under way. If the copies behind
//!   the first dot have only this iteration's time, they don't wait for that dot too: the carried result is waited for
//!   before it instead, with the arrival of the iteration's own copies, and one barrier serves both. So are several
//!   carried results to which the first dot leads (the backward pass of attention), which is as fast or faster. Others
//!   that are only accumulated on (matrix products) would leave the tensor cores without work in between.
//! - In a kernel that issues products itself ([`user_dots`]) the waits are those that it has, and its other products are waited for at once: a
//!   wait that counts products would count both.
//! - Products of 8-bit floats whose sums are bounded in length (`maxNumImpreciseAcc`) are not asynchronous.
//! - The asynchronous proxy, through which the operands are read, does not see ordinary writes to shared memory (`cp.async`
//!   too) before a proxy fence (PTX ISA, "Async proxy"): one stands before each dot that follows such writes. The barrier
//!   that the writes of other threads need is placed by [`membar`](crate::transform::membar).
//!
//! ```text
//! scf.for ... iter_args(%acc = %zero) {
//!   %d = ttng.warp_group_dot %a[%slot], %b[%slot], %acc
//!   ttg.async_copy_global_to_local ...
//!   scf.yield %d
//! }
//! =>
//! %r = scf.for ... iter_args(%acc = %zero) {
//!   ttng.fence_async_shared
//!   %d = ttng.warp_group_dot %a[%slot], %b[%slot], %acc {isAsync}
//!   %w = ttng.warp_group_dot_wait %d {pendings = 1}
//!   ttg.async_copy_global_to_local ...
//!   scf.yield %w
//! }
//! %w = ttng.warp_group_dot_wait %r {pendings = 0}
//! ```

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::{scf, tt, ttg, ttng, ub};
use tilewright_ir::{AttrKind, Block, Builder, Module, Op, Opcode, Value};

use super::user_dots;
use crate::analysis::rings::{self, guards};
use crate::analysis::scope;
use crate::pass::{Pass, Property};
use crate::transform::allocate_shared::{buffer_users, is_view};
use crate::transform::software_pipeline::epilogue_overlap;

/// The pass.
pub const PASS: Pass = Pass {
    name: "async-dots",
    summary: "wait for warp-group dots where their results are used",
    requires: &[Property::LaidOut],
    ensures: &[],
    run: |m, _, _| {
        run(m);
        Ok(())
    },
};

/// Schedules the warp-group dots of every block.
pub fn run(module: &mut Module) {
    let functions: Vec<Op> = module.block_ops(module.body()).collect();
    for func in functions {
        if module.all_ops(func).into_iter().any(|op| user_dots::is_authored(module, op)) {
            user_dots::hold(module, func);
        } else {
            schedule_all(module, func);
        }
        for block in inner_blocks(module, func) {
            fence(module, block, false, true);
        }
    }
}

fn schedule_all(module: &mut Module, func: Op) {
    let mut blocks = Vec::new();
    for op in module.all_ops(func) {
        if ttng::WarpGroupDot::cast(module, op).is_some()
            && let Some(block) = module.parent_block(op)
            && blocks.last() != Some(&block)
            && !blocks.contains(&block)
        {
            blocks.push(block);
        }
    }
    for block in blocks {
        schedule(module, block);
    }
}

fn inner_blocks(module: &Module, op: Op) -> Vec<Block> {
    module.regions(op).iter().flat_map(|&r| module.region_blocks(r).to_vec()).collect()
}

/// The dots of a block that may be under way while other things run.
fn dots(module: &Module, block: Block) -> Vec<ttng::WarpGroupDot> {
    let dots = module.block_ops(block).filter_map(|op| ttng::WarpGroupDot::cast(module, op));
    dots.filter(|&dot| !adds_up(module, dot)).collect()
}

/// Whether a dot adds partial sums up, and so has waited for all products when it ends.
pub(crate) fn adds_up(module: &Module, dot: ttng::WarpGroupDot) -> bool {
    dot.max_num_imprecise_acc(module).is_some()
}

/// Puts fences before the dots of a block that may read what was written since the last fence, and one before a loop that wants
/// one only for what was written before it. `written`: whether something may have been written before the block.
fn fence(module: &mut Module, block: Block, written: bool, insert: bool) -> Fenced {
    let mut now = Fenced { written, any: false };
    for op in module.block_ops(block).collect::<Vec<_>>() {
        match module.opcode(op) {
            Some(Opcode::Ttg(ttg::Kind::LocalAlloc)) => {
                now.written |= ttg::LocalAlloc(op).src(module).is_some();
            }
            Some(Opcode::Ttg(ttg::Kind::LocalStore | ttg::Kind::AsyncWait)) => now.written = true,
            Some(Opcode::Tt(_)) if writes_by_pointers(module, op) => now.written = true,
            Some(Opcode::Ttng(ttng::Kind::FenceAsyncShared)) => now.written = false,
            _ if rings::fences(module, op) => now.written = false,
            _ if rings::waits_for_group(module, op) => now.written = true,
            Some(Opcode::Ttng(ttng::Kind::WarpGroupDot))
                if now.written && reads_ordinary_writes(module, op) =>
            {
                now.place(module, op, insert);
            }
            // Each region runs by itself; its fences are its own.
            Some(Opcode::Ttg(ttg::Kind::WarpSpecialize)) => {
                for region in ttg::WarpSpecialize(op).all_regions(module) {
                    now.join(fence(module, module.region_block(region), now.written, insert));
                }
            }
            Some(Opcode::Scf(kind)) => {
                let blocks = inner_blocks(module, op);
                let mut before = now.written;
                if kind != scf::Kind::If {
                    // What its blocks write, and want fences for, if nothing has been written before them.
                    let own = looked_through(module, &blocks, false);
                    let quiet = !own.written && !own.any;
                    if before && quiet && looked_through(module, &blocks, true).any {
                        now.place(module, op, insert);
                    }
                    before = now.written || own.written;
                }
                for b in blocks {
                    now.join(fence(module, b, before, insert));
                }
            }
            _ => {}
        }
    }
    now
}

/// What the walk of a block finds.
#[derive(Clone, Copy)]
struct Fenced {
    /// Whether something may have been written since the last fence.
    written: bool,
    /// Whether a fence was wanted.
    any: bool,
}

impl Fenced {
    /// A fence before `op`, which is there if it is inserted.
    fn place(&mut self, module: &mut Module, op: Op, insert: bool) {
        if insert {
            ttng::FenceAsyncShared::build(&mut Builder::before(module, op), false);
        }
        *self = Self { written: false, any: true };
    }

    fn join(&mut self, other: Self) {
        self.written |= other.written;
        self.any |= other.any;
    }
}

/// What a walk of blocks finds, one behind the other, that puts no fences.
fn looked_through(module: &mut Module, blocks: &[Block], written: bool) -> Fenced {
    let mut all = Fenced { written, any: false };
    for &b in blocks {
        all.join(fence(module, b, all.written, false));
    }
    all
}

/// Whether an operation writes to shared memory through pointers.
fn writes_by_pointers(module: &Module, op: Op) -> bool {
    let shared = |&v: &Value| module.is_shared_pointer(module.value_type(v));
    let writes = matches!(
        module.opcode(op),
        Some(Opcode::Tt(tt::Kind::Store | tt::Kind::AtomicRmw | tt::Kind::AtomicCas))
    );
    writes && module.operands(op).first().is_some_and(shared)
}

/// Whether a dot reads a buffer into which anything but TMA writes: TMA takes the same path as the dot. Of what other warps write to the slots of a ring
/// the ring sees to the fence.
fn reads_ordinary_writes(module: &Module, dot: Op) -> bool {
    let dot = ttng::WarpGroupDot(dot);
    [dot.a(module), dot.b(module)].into_iter().filter(|&v| !module.is_tensor(module.value_type(v))).any(|v| {
        let Some(alloc) = buffer_of(module, v).and_then(|op| ttg::LocalAlloc::cast(module, op)) else {
            return true;
        };
        let rings = guards::holders(module, alloc);
        let here = rings::place(module, dot.0);
        let fenced = |op: Op| {
            let filled = |&ring: &ttg::RingCreate| guards::acquired(module, op, ring).is_some();
            !rings.is_empty() && rings::place(module, op) != here && rings.iter().any(filled)
        };
        let writes = |op: Op| {
            let ordinary = matches!(
                module.opcode(op),
                Some(Opcode::Ttg(ttg::Kind::LocalStore | ttg::Kind::AsyncCopyGlobalToLocal))
            ) || writes_by_pointers(module, op);
            ordinary && !fenced(op)
        };
        alloc.src(module).is_some() || buffer_users(module, alloc.result(module)).into_iter().any(writes)
    })
}

/// A dot whose result crosses the back edge of a loop unfinished.
struct Crossing {
    dot: ttng::WarpGroupDot,
    /// The carried value, as an index of the loop's results.
    index: usize,
    arg: Value,
    /// Whether the next iteration does nothing with it but accumulate on it.
    accumulated: bool,
}

fn schedule(module: &mut Module, block: Block) {
    let all = dots(module, block);
    let Some(&first) = all.first() else { return };
    let crossing = crossing(module, block, first);
    let accumulated = crossing.iter().all(|c| c.accumulated);
    let feeds = crossing.len() > 1 && crossing.iter().all(|c| c.dot.0 != first.0);
    let at_once = if !accumulated || feeds { copies_are_due_next(module, first) } else { None };
    for &dot in &all {
        let yes = module.attr(AttrKind::Bool(true));
        module.set_attr(dot.0, "isAsync", yes);
    }
    let mut ends = Vec::new();
    if let Some(l) = module.block_parent_op(block).filter(|_| !crossing.is_empty()) {
        let registers = carry_left_operands(module, l, block, &crossing);
        // Everything before the first dot of this iteration is done after this.
        let d = first.d(module);
        let args = crossing.iter().map(|c| c.arg).filter(|&a| a != first.c(module));
        let args = args.chain(registers.iter().map(|r| r.0));
        if let Some(arrival) = at_once {
            let args: Vec<Value> = args.collect();
            wait(module, Place::After(arrival), &args, 0);
        } else {
            let inputs: Vec<Value> = [d].into_iter().chain(args).collect();
            wait(module, Place::After(first.0), &inputs, i32::from(accumulated));
        }
        ends = crossing.iter().map(|c| module.results(l)[c.index]).collect();
        ends.extend(registers.iter().map(|r| r.1));
    }
    for &dot in &all {
        let waited_for = dot == first && !accumulated && at_once.is_none();
        if waited_for || crossing.iter().any(|c| c.dot == dot) {
            continue;
        }
        finish(module, block, dot);
    }
    for pair in all.windows(2) {
        wait_for_slots(module, pair[0], pair[1]);
    }
    // What is still under way when the loop ends.
    if let Some(l) = module.block_parent_op(block)
        && !ends.is_empty()
    {
        wait(module, Place::After(l), &ends, 0);
        epilogue_overlap::fill(module, l);
    }
}

/// The dot, and those of its block whose results it accumulates on while they are under way, last first.
fn chain(module: &Module, dot: ttng::WarpGroupDot) -> Vec<ttng::WarpGroupDot> {
    let block = module.parent_block(dot.0);
    let mut chain = vec![dot];
    let mut acc = dot.c(module);
    while let Some(before) = ttng::WarpGroupDot::of(module, acc)
        .filter(|&d| module.parent_block(d.0) == block && !adds_up(module, d))
    {
        chain.push(before);
        acc = before.c(module);
    }
    chain
}

/// Whether the only use of a dot's result, or of what a loop carries of it, is as the accumulator of a dot in `block` that
/// finds it in registers as it is.
fn is_accumulated_on(module: &Module, block: Block, value: Value) -> bool {
    let &[u] = module.uses(value) else { return false };
    u.index == 2
        && module.parent_block(u.op) == Some(block)
        && ttng::WarpGroupDot::cast(module, u.op).is_some_and(|d| !adds_up(module, d))
}

fn is_in_registers(module: &Module, operand: Value) -> bool {
    module.is_tensor(module.value_type(operand))
}

/// Carries the left operands that crossing dots have in registers: as the arguments of the next iteration and the results of
/// the loop.
fn carry_left_operands(
    module: &mut Module,
    l: Op,
    body: Block,
    crossing: &[Crossing],
) -> Vec<(Value, Value)> {
    let mut operands: Vec<Value> = Vec::new();
    for dot in crossing.iter().flat_map(|c| chain(module, c.dot)) {
        let a = dot.a(module);
        if is_in_registers(module, a) && !operands.contains(&a) {
            operands.push(a);
        }
    }
    let end = module.last_op(body).expect("a loop body ends with a yield");
    let mut carried = Vec::new();
    for a in operands {
        let ty = module.value_type(a);
        let arg = module.add_block_arg(body, ty);
        let (before, next) = if is_made_in(module, l, a) {
            (ub::Poison::build(&mut Builder::before(module, l), ty).result(module), a)
        } else {
            for dot in dots(module, body).into_iter().filter(|d| d.a(module) == a).collect::<Vec<_>>() {
                module.set_operand(dot.0, 0, arg);
            }
            (a, arg)
        };
        module.push_operand(l, before);
        module.push_operand(end, next);
        carried.push((arg, module.add_result(l, ty)));
    }
    carried
}

/// Whether each iteration of a loop makes a value anew.
fn is_made_in(module: &Module, l: Op, value: Value) -> bool {
    module
        .value_block(value)
        .and_then(|b| module.block_parent_op(b))
        .is_some_and(|op| module.is_ancestor(l, op))
}

/// The wait for an iteration's copies, if those behind the first dot must have arrived when the next iteration begins: rings
/// of two slots.
fn copies_are_due_next(module: &Module, first: ttng::WarpGroupDot) -> Option<Op> {
    let mut before = module.block_ops(module.parent_block(first.0)?).take_while(|&op| op != first.0);
    before.find(|&op| {
        let none_later = ttg::RingWait::cast(module, op).is_some_and(|w| w.later(module).unwrap_or(0) == 0);
        none_later && rings::waits_for_group(module, op)
            || ttg::AsyncWait::cast(module, op).is_some_and(|w| w.num(module) == 0)
    })
}

/// The dots of a loop's body that may stay under way into the next iteration.
fn crossing(module: &Module, block: Block, first: ttng::WarpGroupDot) -> Vec<Crossing> {
    let Some(l) = module.block_parent_op(block).and_then(|p| scf::For::cast(module, p)) else {
        return Vec::new();
    };
    let Some(end) = module.last_op(block) else { return Vec::new() };
    let mut found = Vec::new();
    for (index, &value) in module.operands(end).iter().enumerate() {
        let Some(dot) = ttng::WarpGroupDot::of(module, value).filter(|&d| !adds_up(module, d)) else {
            continue;
        };
        let arg = module.block_args(block)[index + 1];
        let carried_only = module.parent_block(dot.0) == Some(block) && module.uses(value).len() == 1;
        // The last iteration's value is looked at only after the first dot of the next.
        let accumulated = module.is_unused(arg) || is_accumulated_on(module, block, arg);
        let looked_at_late = || {
            module.uses(arg).iter().all(|u| {
                module.ancestor_in_block(block, u.op).is_some_and(|at| module.is_before(first.0, at))
            })
        };
        let stays = |dot: &ttng::WarpGroupDot| {
            let (a, b) = (dot.a(module), dot.b(module));
            let left = match is_in_registers(module, a) {
                true if is_made_in(module, l.0, a) => {
                    let used = *dot == first || a == first.a(module);
                    !used && copied_behind(module, block, a, dot.0).is_none()
                }
                true => true,
                false => stays(module, l, a),
            };
            left && stays(module, l, b) && slots_suffice(module, dot.0, first.0)
        };
        let chain = chain(module, dot);
        // The first dot is issued before the last iteration's are waited for: not into the registers that those have. And the
        // registers of the last result are those that the next iteration has: no accumulator before may still be needed.
        let goes_on = !chain.contains(&first) || first.c(module) == arg;
        let alone = chain
            .iter()
            .map(|d| (d.c(module), d.0))
            .all(|(c, dot)| module.value_block(c) != Some(block) || is_last_use(module, block, c, dot));
        if carried_only && goes_on && alone && (accumulated || looked_at_late()) && chain.iter().all(stays) {
            found.push(Crossing { dot, index, arg, accumulated });
        }
    }
    found
}

/// Whether nothing uses a value behind an operation of this block.
fn is_last_use(module: &Module, block: Block, value: Value, op: Op) -> bool {
    module.uses(value).iter().all(|u| {
        u.op == op || module.ancestor_in_block(block, u.op).is_some_and(|at| module.is_before(at, op))
    })
}

/// Whether a buffer stays as it is while later iterations begin: it was made before the loop (or is a slot of a ring).
fn stays(module: &Module, l: scf::For, buffer: Value) -> bool {
    buffer_of(module, buffer).is_some_and(|alloc| !module.is_ancestor(l.0, alloc))
}

/// The allocation that a buffer is a view of.
fn buffer_of(module: &Module, value: Value) -> Option<Op> {
    let defining = |v: Value| module.defining_op(scope::captured(module, v));
    let mut op = defining(value)?;
    loop {
        match module.opcode(op)? {
            Opcode::Ttg(ttg::Kind::LocalAlloc) => return Some(op),
            _ if is_view(module, op) => op = defining(module.operands(op)[0])?,
            _ => return None,
        }
    }
}

/// Waits for a dot right before the first use of its result.
fn finish(module: &mut Module, block: Block, dot: ttng::WarpGroupDot) {
    let value = behind_waits(module, block, dot.d(module));
    let chain = chain(module, dot);
    let Some(mut before) = module.last_op(block) else { return };
    let mut first = |at: Op| {
        if module.is_before(at, before) {
            before = at;
        }
    };
    module.uses(value).iter().filter_map(|u| module.ancestor_in_block(block, u.op)).for_each(&mut first);
    let left = chain.iter().map(|d| d.a(module)).filter(|&a| is_in_registers(module, a));
    left.filter_map(|a| copied_behind(module, block, a, dot.0)).for_each(&mut first);
    chain.iter().filter_map(|d| out_of_slots(module, d.0)).for_each(&mut first);
    if is_accumulated_on(module, block, value) && module.uses(value)[0].op == before {
        return; // the dot that accumulates on it is waited for
    }
    let behind = behind(module, dot.0).take_while(|&op| op != before);
    let pending: Vec<_> = behind.filter_map(|op| ttng::WarpGroupDot::cast(module, op)).collect();
    let mut inputs = vec![value];
    for d in chain {
        // What a dot that stays under way has, too, is its wait's.
        let a = d.a(module);
        if !is_in_registers(module, a) {
            inputs.push(a);
        } else if pending.iter().all(|p| p.a(module) != a) {
            inputs.push(behind_waits(module, block, a));
        }
        inputs.push(d.b(module));
    }
    wait(module, Place::Before(before), &inputs, pending.len() as i32);
}

/// Waits for a dot behind the next one, which accumulates on it, if then slots of the kernel's own rings can be released which the next one does not read.
fn wait_for_slots(module: &mut Module, dot: ttng::WarpGroupDot, next: ttng::WarpGroupDot) {
    if next.c(module) != dot.d(module) || module.parent_block(next.0) != module.parent_block(dot.0) {
        return;
    }
    let rings = |op: Op| rings_read(module, op).map(|(ring, _)| ring).collect::<Vec<_>>();
    let (mut own, others) = (rings(dot.0), rings(next.0));
    own.retain(|ring| !others.contains(ring) && rings::is_own(module, *ring));
    let reads_again = |op: Op, ring: &ttg::RingCreate| {
        ttng::WarpGroupDot::cast(module, op).is_some() && rings(op).contains(ring)
    };
    let is_last = |ring: &ttg::RingCreate| {
        let release = behind(module, next.0).find(|&op| releases(module, op, &[*ring]));
        release.is_some_and(|release| {
            !behind(module, next.0).take_while(|&op| op != release).any(|op| reads_again(op, ring))
        })
    };
    if own.iter().any(is_last) {
        let read: Vec<Value> = buffers_read(module, dot.0).collect();
        wait(module, Place::After(next.0), &read, 1);
    }
}

/// A value that waits of this block for others may have gone through, behind them.
fn behind_waits(module: &Module, block: Block, mut value: Value) -> Value {
    let of_block =
        |op| ttng::WarpGroupDotWait::cast(module, op).filter(|w| module.parent_block(w.0) == Some(block));
    while let Some(w) = module.uses(value).iter().find_map(|u| of_block(u.op)) {
        let Some(i) = w.inputs(module).iter().position(|&v| v == value) else { break };
        value = w.outputs(module)[i];
    }
    value
}

/// The first operation of this block behind a dot that control flow takes a left operand in registers into: there it is
/// copied from one register to another, which must not be while a dot is under way with it.
fn copied_behind(module: &Module, block: Block, left: Value, dot: Op) -> Option<Op> {
    let users = module.uses(left).iter().filter_map(|u| module.ancestor_in_block(block, u.op));
    let copies = users.filter(|&at| !module.regions(at).is_empty() && module.is_before(dot, at));
    copies.reduce(|a, b| if module.is_before(a, b) { a } else { b })
}

/// The operations of its block behind this one.
fn behind(module: &Module, op: Op) -> impl Iterator<Item = Op> {
    std::iter::successors(module.next_op(op), |&op| module.next_op(op))
}

/// Whether an operation waits for a slot of this ring.
fn waits_for_slot(module: &Module, op: Op, ring: ttg::RingCreate) -> bool {
    ttg::RingWait::cast(module, op).is_some_and(|w| rings::create_of(module, w.ring(module)) == Some(ring))
}

/// How many slots of a ring one run of an operation waits for, as far as is known: at most `most`.
fn slots_taken(module: &Module, op: Op, ring: ttg::RingCreate, most: u32) -> u32 {
    if waits_for_slot(module, op, ring) {
        return 1;
    }
    let regions = !module.regions(op).is_empty();
    let inside = || module.all_ops(op).into_iter().any(|inner| waits_for_slot(module, inner, ring));
    if regions && inside() { most } else { 0 }
}

/// The buffers that a dot reads.
fn buffers_read(module: &Module, dot: Op) -> impl Iterator<Item = Value> {
    module.operands(dot)[..2].iter().copied().filter(|&v| !is_in_registers(module, v))
}

/// What guards a buffer that a dot reads, if it is a field of a ring that the kernel made.
fn own_guards(module: &Module, dot: Op, buffer: Value) -> Option<guards::Guards> {
    let ring = rings::of_buffer(module, buffer)?;
    rings::is_own(module, ring).then(|| guards::of(module, buffer, &rings::place(module, dot)))
}

/// The rings that the operands of a dot lie in, with their numbers of slots: of those that the kernel made, which guard them and are released.
fn rings_read(module: &Module, dot: Op) -> impl Iterator<Item = (ttg::RingCreate, u32)> {
    let rings = buffers_read(module, dot).flat_map(move |v| match own_guards(module, dot, v) {
        Some(guards) => guards.rings,
        None => rings::of_buffer(module, v).into_iter().collect(),
    });
    rings.filter(|ring| !ring.one_shot(module)).map(|ring| (ring, ring.slots(module) as u32))
}

/// The first operation of its block behind a dot that waits for a slot of which the writer has to know that the dot has read
/// it: slots are released when dots have been waited for.
fn out_of_slots(module: &Module, dot: Op) -> Option<Op> {
    let ends = rings_read(module, dot).filter_map(|(ring, slots)| {
        let mut taken = 0;
        behind(module, dot).find(|&op| {
            taken += slots_taken(module, op, ring, slots);
            taken >= slots
        })
    });
    ends.chain(out_of_order(module, dot, || behind(module, dot)))
        .reduce(|a, b| if module.is_before(a, b) { a } else { b })
}

/// The first of the operations that follow a dot that must not come before the dot has read buffers of the kernel's own rings: it writes to what the
/// dot reads, or waits for others, who may wait for the release that stands before it. (Waits for the rings that the dot reads count slots, where these are filled in turn.)
fn out_of_order<I: Iterator<Item = Op>>(module: &Module, dot: Op, following: impl Fn() -> I) -> Option<Op> {
    let mut first: Option<(usize, Op)> = None;
    let read: Vec<ttg::RingCreate> = rings_read(module, dot).map(|(ring, _)| ring).collect();
    for buffer in buffers_read(module, dot) {
        let Some(guards) = own_guards(module, dot, buffer) else { continue };
        let writers = guards::writers(module, buffer);
        let patient: Vec<ttg::RingCreate> = read
            .iter()
            .copied()
            .filter(|&ring| guards.rings.iter().all(|&held| fills_beside(module, ring, held)))
            .collect();
        let mut released = is_released_before(module, dot, &guards.rings);
        let found = following().enumerate().find(|&(_, op)| {
            let waits = released && waits_for_others(module, op, &patient);
            released |= releases(module, op, &guards.rings);
            waits
                || guards.others && guards::may_signal(module, op)
                || module.all_ops(op).iter().any(|inner| writers.contains(inner))
        });
        first = first.into_iter().chain(found).min_by_key(|&(at, _)| at);
    }
    first.map(|(_, op)| op)
}

/// Whether the next slot of a ring is filled while the one of `held` that was filled last is not free: both are the same, or whoever fills them fills one of each in turn.
fn fills_beside(module: &Module, ring: ttg::RingCreate, held: ttg::RingCreate) -> bool {
    ring == held
        || !rings::is_own(module, ring)
        || rings::is_filled_before(module, ring, held)
        || held.slots(module) >= 2 && rings::is_filled_before(module, held, ring)
        || fills_alone(module, ring)
}

/// Whether who fills a ring's slots runs in a partition that waits for nothing but these.
fn fills_alone(module: &Module, ring: ttg::RingCreate) -> bool {
    let ops = module.all_ops(module.root());
    let on_ring = |op: Op| rings::operated_on(module, op) == Some(ring);
    let commit = ops.iter().find(|&&op| ttg::RingCommit::cast(module, op).is_some() && on_ring(op));
    let Some(place) = commit.map(|&op| rings::place(module, op)).filter(|place| !place.is_empty()) else {
        return false;
    };
    let mut waits = ops.iter().filter(|&&op| module.regions(op).is_empty() && guards::may_wait(module, op));
    waits.all(|&op| {
        rings::place(module, op) != place || ttg::RingAcquire::cast(module, op).is_some() && on_ring(op)
    })
}

/// Whether the slot that a dot reads is released, as the program stands, before the dot.
fn is_released_before(module: &Module, dot: Op, rings: &[ttg::RingCreate]) -> bool {
    let before = std::iter::successors(module.prev_op(dot), |&op| module.prev_op(op));
    let waits = |op: &Op| rings.iter().any(|&ring| waits_for_slot(module, *op, ring));
    before.take_while(|op| !waits(op)).any(|op| releases(module, op, rings))
}

/// Whether an operation releases a slot of one of these rings.
fn releases(module: &Module, op: Op, rings: &[ttg::RingCreate]) -> bool {
    let release = ttg::RingRelease::cast(module, op).and_then(|r| rings::create_of(module, r.ring(module)));
    release.is_some_and(|ring| rings.contains(&ring))
}

/// Whether an operation, or one in it, waits for others by anything but these rings.
fn waits_for_others(module: &Module, op: Op, rings: &[ttg::RingCreate]) -> bool {
    let own = |op: Op| rings.iter().any(|&ring| waits_for_slot(module, op, ring));
    let mut inside = module.all_ops(op).into_iter().filter(|&op| module.regions(op).is_empty());
    inside.any(|op| !own(op) && guards::may_wait(module, op))
}

/// Whether the next iteration may wait for its first slots before the slots of a dot of this one are released: behind `first`.
fn slots_suffice(module: &Module, dot: Op, first: Op) -> bool {
    let Some(block) = module.parent_block(dot) else { return false };
    let before = || module.block_ops(block).take_while(|&op| op != first);
    if out_of_order(module, dot, || behind(module, dot).chain(before())).is_some() {
        return false;
    }
    rings_read(module, dot).all(|(ring, slots)| {
        let taken = before().chain(behind(module, dot)).map(|op| slots_taken(module, op, ring, slots));
        taken.sum::<u32>() < slots
    })
}

/// Builds a wait before an operation; what follows it uses its results.
pub(crate) fn wait_before(module: &mut Module, op: Op, inputs: &[Value], pendings: i32) {
    wait(module, Place::Before(op), inputs, pendings);
}

enum Place {
    Before(Op),
    After(Op),
}

/// Builds a wait; what follows it uses its results.
fn wait(module: &mut Module, place: Place, inputs: &[Value], pendings: i32) {
    let mut unique: Vec<Value> = Vec::new();
    for &v in inputs {
        if !unique.contains(&v) {
            unique.push(v);
        }
    }
    let types: Vec<_> = unique.iter().map(|&v| module.value_type(v)).collect();
    let mut b = match place {
        Place::Before(op) => Builder::before(module, op),
        Place::After(op) => Builder::after(module, op),
    };
    let w = ttng::WarpGroupDotWait::build(&mut b, &unique, pendings, &types);
    let block = module.parent_block(w.0);
    let outputs = w.outputs(module).to_vec();
    for (&old, new) in unique.iter().zip(outputs) {
        if !module.is_tensor(module.value_type(old)) {
            continue; // a buffer is the same before and after
        }
        let later: FxHashSet<Op> = module
            .uses(old)
            .iter()
            .map(|u| u.op)
            .filter(|&op| {
                let at = block.and_then(|b| module.ancestor_in_block(b, op));
                at.is_some_and(|at| at != w.0 && module.is_before(w.0, at))
            })
            .collect();
        for op in later {
            for i in 0..module.operands(op).len() {
                if module.operands(op)[i] == old {
                    module.set_operand(op, i, new);
                }
            }
        }
    }
}
