//! Puts the release of a channel's slot behind the wait for the asynchronous dots that read it.
//!
//! Why here: [`warp_specialize`](crate::warp_specialize) puts the arrival at `empty[slot]` behind the last reader as the
//! program has it; [`dots`](crate::pipeline_loops::dots), which runs in between, decides where dots are waited for. A dot that is
//! still under way when the iteration ends is waited for in the next one: the slot before the current one is released
//! there, and the last one after the loop.
//!
//! ```text
//! scf.for %i = %lo to %hi ... iter_args(%slot = ...) {       scf.for %i = %lo to %hi ... iter_args(%slot = ...) {
//!   ttng.wait_barrier %full[%slot]                             ttng.wait_barrier %full[%slot]
//!   %d = ttng.warp_group_dot %ring[%slot] {isAsync}            %d = ttng.warp_group_dot %ring[%slot] {isAsync}
//!   %w = ttng.warp_group_dot_wait {pendings = 1}         =>    %w = ttng.warp_group_dot_wait {pendings = 1}
//!   ttng.arrive_barrier %empty[%slot]                          ttng.arrive_barrier %empty[%slot - 1] where %i != %lo
//! }                                                          }
//! ttng.warp_group_dot_wait {pendings = 0}                    ttng.warp_group_dot_wait {pendings = 0}
//!                                                            ttng.arrive_barrier %empty[last slot] where %lo < %hi
//! ```

use tilewright_ir::dialect::{arith, scf, ttg, ttng};
use tilewright_ir::{Block, Builder, Module, Op, Opcode, Type, Value, ValueDef};

use crate::multicast::{self, PEERS};
use crate::scope;
use crate::warp_specialize::CHANNEL;

/// Moves every release that stands too early.
pub fn run(module: &mut Module) {
    let root = module.root();
    let arrivals: Vec<ttng::ArriveBarrier> =
        module.all_ops(root).into_iter().filter_map(|op| ttng::ArriveBarrier::cast(module, op)).collect();
    for arrive in arrivals {
        let Some(channel) = channel_of(module, arrive.alloc(module)) else { continue };
        let Some(block) = module.parent_block(arrive.0) else { continue };
        place(module, arrive, channel, block);
    }
}

/// The channel whose buffer, or mbarrier, a value is a view of.
pub(crate) fn channel_of(module: &Module, value: Value) -> Option<i64> {
    let mut at = value;
    loop {
        let op = module.defining_op(scope::captured(module, at))?;
        match module.opcode(op)? {
            Opcode::Ttg(ttg::Kind::LocalAlloc) => return module.int_attr(op, CHANNEL),
            Opcode::Ttg(
                ttg::Kind::MemdescIndex
                | ttg::Kind::MemdescTrans
                | ttg::Kind::MemdescSubslice
                | ttg::Kind::MemdescReshape,
            ) => at = module.operands(op)[0],
            _ => return None,
        }
    }
}

/// Where a dot is known to be done.
#[derive(Clone, Copy)]
enum Done {
    /// Behind this operation of its iteration (a wait, or the dot itself if it is not asynchronous).
    Here(Op),
    /// Behind this wait of the next iteration.
    Next(Op),
}

fn place(module: &mut Module, arrive: ttng::ArriveBarrier, channel: i64, block: Block) {
    let dots: Vec<ttng::WarpGroupDot> = module
        .block_ops(block)
        .filter_map(|op| ttng::WarpGroupDot::cast(module, op))
        .filter(|d| [d.a(module), d.b(module)].iter().any(|&v| channel_of(module, v) == Some(channel)))
        .collect();
    let mut late = arrive.0;
    let mut next: Option<Op> = None;
    for dot in dots {
        match done(module, block, dot) {
            Done::Here(op) => {
                if module.is_before(late, op) {
                    late = op;
                }
            }
            Done::Next(op) => {
                if next.is_none_or(|n| module.is_before(n, op)) {
                    next = Some(op);
                }
            }
        }
    }
    match next {
        None if late != arrive.0 => module.move_after(arrive.0, late),
        None => {}
        Some(wait) => release_previous(module, arrive, wait, block),
    }
}

fn done(module: &Module, block: Block, dot: ttng::WarpGroupDot) -> Done {
    if !dot.is_async(module) {
        return Done::Here(dot.0);
    }
    let mut newer = 0;
    let mut waited = |op: Op| {
        newer += i32::from(ttng::WarpGroupDot::cast(module, op).is_some());
        ttng::WarpGroupDotWait::cast(module, op).is_some_and(|w| w.pendings(module) <= newer)
    };
    let mut at = module.next_op(dot.0);
    while let Some(op) = at {
        if waited(op) {
            return Done::Here(op);
        }
        at = module.next_op(op);
    }
    let mut at = module.first_op(block);
    while let Some(op) = at.filter(|&op| op != dot.0) {
        if waited(op) {
            return Done::Next(op);
        }
        at = module.next_op(op);
    }
    // The next one waits only after it has issued the same dot again.
    newer += 1;
    let mut at = module.next_op(dot.0);
    while let Some(op) = at {
        let w = ttng::WarpGroupDotWait::cast(module, op);
        if w.is_some_and(|w| w.pendings(module) <= newer) {
            return Done::Next(op);
        }
        newer += i32::from(ttng::WarpGroupDot::cast(module, op).is_some());
        at = module.next_op(op);
    }
    Done::Here(module.last_op(block).expect("a loop body has an end"))
}

/// Releases, behind `wait`, the slot of the iteration before; and the last one behind the loop.
fn release_previous(module: &mut Module, arrive: ttng::ArriveBarrier, wait: Op, block: Block) {
    let Some(l) = module.block_parent_op(block).and_then(|p| scf::For::cast(module, p)) else { return };
    let Some(view) = ttg::MemdescIndex::of(module, arrive.alloc(module)) else { return };
    let (ring, slot) = (view.src(module), view.index(module));
    let slots = module.shape(module.value_type(ring)).map_or(1, |s| s[0]);
    let (lower, upper) = (l.lower_bound(module), l.upper_bound(module));
    let iv = module.block_args(block)[0];

    let mut b = Builder::after(module, wait);
    let later = arith::Cmpi::build(&mut b, iv, lower, arith::CmpIPredicate::Ne, Type::I1).result(b.module);
    let previous = before(&mut b, slot, slots);
    release(&mut b, arrive, ring, previous, later);

    let after = match module.value_def(slot) {
        ValueDef::Argument(at, index) if at == block && index > 0 => module.results(l.0)[index as usize - 1],
        _ => slot, // one slot, which never changes
    };
    // Other work may stand between the loop and the wait for its last dots.
    let is_wait = |op: &Op| ttng::WarpGroupDotWait::cast(module, *op).is_some();
    let anchor =
        std::iter::successors(module.next_op(l.0), |&op| module.next_op(op)).find(is_wait).unwrap_or(l.0);
    let mut b = Builder::after(module, anchor);
    let ran = arith::Cmpi::build(&mut b, lower, upper, arith::CmpIPredicate::Slt, Type::I1).result(b.module);
    let last = before(&mut b, after, slots);
    release(&mut b, arrive, ring, last, ran);
    module.erase_op(arrive.0);
}

/// The slot before one.
fn before(b: &mut Builder<'_>, slot: Value, slots: u32) -> Value {
    if slots == 1 {
        return slot;
    }
    let (zero, one, last) = (b.i32(0), b.i32(1), b.i32(slots as i32 - 1));
    let first = arith::Cmpi::build(b, slot, zero, arith::CmpIPredicate::Eq, Type::I1).result(b.module);
    let less = arith::Subi::build(b, slot, one).result(b.module);
    arith::Select::build(b, first, last, less).result(b.module)
}

fn release(b: &mut Builder<'_>, like: ttng::ArriveBarrier, ring: Value, slot: Value, pred: Value) {
    let ty = b.module.value_type(like.alloc(b.module));
    let (count, per_warp) = (like.count(b.module), like.per_warp(b.module));
    let one = ttg::MemdescIndex::build(b, ring, slot, ty).result(b.module);
    let arrive = ttng::ArriveBarrier::build(b, one, Some(pred), count, per_warp);
    let peers = b.module.int_attr(like.0, PEERS).unwrap_or(1);
    multicast::mark_arrival(b.module, arrive, peers as u32);
}
