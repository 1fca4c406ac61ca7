//! Puts the release of a slot behind the wait for the asynchronous dots that read it.
//!
//! A `ttg.ring_release` stands where the program has read the slot; that reading may still be under way (but where the kernel issues its
//! dots itself, and waits for them before it releases their slots). One of the kernel's own that stands later goes up to the last reading, past what
//! touches no memory: what else the program reads or writes before it may be what the release hands over. A dot that is still
//! under way when the iteration ends is waited for in the next one: the slot before the current one is released there, and
//! the last one after the loop.
//!
//! ```text
//! scf.for %i = %lo to %hi ... iter_args(%slot = ...) {       scf.for %i = %lo to %hi ... iter_args(%slot = ...) {
//!   ttg.ring_wait %ring[%slot], %phase                         ttg.ring_wait %ring[%slot], %phase
//!   %d = ttng.warp_group_dot %field[%slot] {isAsync}           %d = ttng.warp_group_dot %field[%slot] {isAsync}
//!   %w = ttng.warp_group_dot_wait {pendings = 1}         =>    %w = ttng.warp_group_dot_wait {pendings = 1}
//!   ttg.ring_release %ring[%slot]                              ttg.ring_release %ring[%slot - 1] where %i != %lo
//! }                                                          }
//! ttng.warp_group_dot_wait {pendings = 0}                    ttng.warp_group_dot_wait {pendings = 0}
//!                                                            ttg.ring_release %ring[last slot] where %lo < %hi
//! ```

use tilewright_ir::dialect::{arith, scf, ttg, ttng};
use tilewright_ir::effects::effects;
use tilewright_ir::{Block, Builder, Module, Op, Type, Value, ValueDef};

use crate::analysis::rings::{self, Place, Ring, guards, position};
use crate::hopper::user_dots;

/// Moves the releases of a ring that stand too early.
pub(super) fn place(module: &mut Module, ring: &Ring) {
    let releases: Vec<ttg::RingRelease> =
        ring.uses.iter().filter_map(|&op| ttg::RingRelease::cast(module, op)).collect();
    for release in releases {
        if let Some(block) = module.parent_block(release.0) {
            behind_dots(module, ring, release, block);
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

/// The operation of its block behind which a release may stand as far as other accesses than dots' go: where it is, or, of a kernel's own ring, the last one
/// before it that touches memory, or waits, or that it needs. The writer need not wait for what else the program computes there.
fn last_access(module: &Module, ring: &Ring, release: ttg::RingRelease, block: Block) -> Op {
    // Products that the kernel issues it waits for itself.
    let inside = || module.block_ops(block).flat_map(|op| module.all_ops(op));
    if !ring.is_own || inside().any(|op| user_dots::is_authored(module, op)) {
        return release.0;
    }
    let touches = |&op: &Op| {
        let found = effects(module, op);
        (found.reads || found.writes) && !is_known(module, op)
    };
    let operands = module.operands(release.0).iter().filter_map(|&v| module.defining_op(v));
    let made = operands.filter_map(|op| module.ancestor_in_block(block, op));
    let before = module.block_ops(block).filter(touches).chain(made);
    let before = before.filter(|&op| module.is_before(op, release.0));
    before.reduce(|a, b| if module.is_before(a, b) { b } else { a }).unwrap_or(release.0)
}

/// Whether an operation is a dot, of which is known where it has read, or a wait for dots.
fn is_known(module: &Module, op: Op) -> bool {
    ttng::WarpGroupDot::cast(module, op).is_some() || ttng::WarpGroupDotWait::cast(module, op).is_some()
}

/// Whether a ring keeps writes away from what an operand shows to warps at this place. (A ring that a pass made does from all its fields.)
fn guards(module: &Module, ring: &Ring, operand: Value, reader: &Place) -> bool {
    ring.holds(module, operand)
        && (!ring.is_own || guards::of(module, operand, reader).rings.contains(&ring.create))
}

fn behind_dots(module: &mut Module, ring: &Ring, release: ttg::RingRelease, block: Block) {
    let reader = rings::place(module, release.0);
    let dots: Vec<ttng::WarpGroupDot> = module
        .block_ops(block)
        .filter_map(|op| ttng::WarpGroupDot::cast(module, op))
        .filter(|d| !user_dots::is_authored(module, d.0))
        .filter(|d| [d.a(module), d.b(module)].iter().any(|&v| guards(module, ring, v, &reader)))
        .collect();
    let mut late = last_access(module, ring, release, block);
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
        None if late != release.0 => module.move_after(release.0, late),
        None => {}
        Some(wait) => release_previous(module, ring, release, wait, block),
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
fn release_previous(module: &mut Module, ring: &Ring, release: ttg::RingRelease, wait: Op, block: Block) {
    let Some(l) = module.block_parent_op(block).and_then(|p| scf::For::cast(module, p)) else { return };
    let slot = release.slot(module);
    let (lower, upper) = (l.lower_bound(module), l.upper_bound(module));
    let iv = module.block_args(block)[0];

    let carried = ring.is_own.then(|| carry(module, l, block, slot));
    let where_it_held = release.pred(module).map(|pred| carry(module, l, block, pred));
    let mut b = Builder::after(module, wait);
    let later = match where_it_held {
        Some((previous, _)) => previous,
        None => arith::Cmpi::build(&mut b, iv, lower, arith::CmpIPredicate::Ne, Type::I1).result(b.module),
    };
    let previous = match carried {
        Some((previous, _)) => previous,
        None => position::slot_before(&mut b, slot, ring.slots),
    };
    again(&mut b, release, previous, later);

    let after = match module.value_def(slot) {
        ValueDef::Argument(at, index) if at == block && index > 0 => module.results(l.0)[index as usize - 1],
        _ => slot, // one slot, which never changes
    };
    // Other work may stand between the loop and the wait for its last dots.
    let is_wait = |op: &Op| ttng::WarpGroupDotWait::cast(module, *op).is_some();
    let anchor =
        std::iter::successors(module.next_op(l.0), |&op| module.next_op(op)).find(is_wait).unwrap_or(l.0);
    let mut b = Builder::after(module, anchor);
    let ran = match where_it_held {
        Some((_, last)) => last,
        None => {
            arith::Cmpi::build(&mut b, lower, upper, arith::CmpIPredicate::Slt, Type::I1).result(b.module)
        }
    };
    let last = match carried {
        Some((_, last)) => last,
        None => position::slot_before(&mut b, after, ring.slots),
    };
    again(&mut b, release, last, ran);
    module.erase_op(release.0);
}

/// Carries a number of an iteration, or whether something holds there, to the next one and out of the loop; 0 to the first: a kernel's own ring may go through its slots in any
/// way, and a release may be of some iterations alone.
fn carry(module: &mut Module, l: scf::For, block: Block, value: Value) -> (Value, Value) {
    let ty = module.value_type(value);
    let none = Builder::before(module, l.0).int(0, ty);
    module.push_operand(l.0, none);
    let previous = module.add_block_arg(block, ty);
    let end = module.last_op(block).expect("a loop body has an end");
    module.push_operand(end, value);
    (previous, module.add_result(l.0, ty))
}

/// The same release of another slot, where `pred` holds.
fn again(b: &mut Builder<'_>, like: ttg::RingRelease, slot: Value, pred: Value) {
    let (ring, reader) = (like.ring(b.module), like.reader(b.module));
    ttg::RingRelease::build(b, ring, slot, Some(pred), reader);
}
