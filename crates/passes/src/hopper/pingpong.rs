//! Lets the warp groups of a loop use the tensor cores in turns, where each spends long on other arithmetic between its dots.
//!
//! Why here: behind the passes that decide where dots are issued and waited for. (FlashAttention-3, Shah et al. 2024, 3.1:
//! "pingpong scheduling".)
//!
//! Left to themselves, warp groups that run the same loop issue their dots at the same time and then compute at the same time,
//! while the tensor cores have nothing to do. With turns one computes while the other's dots run. A turn lasts from the first
//! dot behind the longest arithmetic of an iteration to the last dot before that arithmetic. Where this goes round the
//! end of the body, the first turn begins before the loop and the last ends behind it.
//!
//! ```text
//!                                          ttng.arrive_order_barrier {begins}
//!                                          ttng.wait_order_barrier
//! scf.for ... {                            scf.for ... {
//!   %s = dot %q, %k                          %s = dot %q, %k
//!                                            ttng.arrive_order_barrier
//!   wait %s                           =>     wait %s
//!   %p = softmax(%s)                         %p = softmax(%s)
//!                                            ttng.wait_order_barrier
//!   %acc = dot %p, %v, %acc0                 %acc = dot %p, %v, %acc0
//! }                                        }
//!                                          ttng.arrive_order_barrier
//!                                          ttng.wait_order_barrier {ends}
//! ```
//!
//! What threads have stored for a loop's products is waited for before the loop: within a turn some would wait there for others that wait for their turn.
//!
//! Only loops of a `ttg.warp_specialize`: in others a barrier of the whole CTA keeps warp groups in step. And only loops in
//! which no operation waits for other warps, since that might be one that waits for its turn; nor those whose products the kernel issues
//! and waits for itself.

use tilewright_ir::dialect::{scf, tt, ttg, ttng};
use tilewright_ir::effects::is_pure;
use tilewright_ir::{Builder, Module, Op, Opcode, Trait};

use super::user_dots;
use crate::analysis::{scope, scratch};
use crate::machine::{GROUP, Machine};
use crate::pass::{Pass, Property};
use crate::target::TargetInfo;
use crate::transform::allocate_shared::is_view;

/// The pass.
pub const PASS: Pass = Pass {
    name: "pingpong",
    summary: "let warp groups use the tensor cores in turns",
    requires: &[Property::LaidOut, Property::NoRings],
    ensures: &[],
    run: |m, t, _| {
        run(m, t);
        Ok(())
    },
};

/// Places turns in every loop that they help.
pub fn run(module: &mut Module, target: &TargetInfo) {
    let num_warps = module.int_attr(module.root(), "ttg.num-warps").map_or(4, |n| n as u32);
    if !num_warps.is_multiple_of(GROUP) || num_warps < 2 * GROUP {
        return;
    }
    // The kernel has the barriers that turns would take.
    let named = |op| ttng::NamedBarrier::cast(module, op).is_some();
    if module.all_ops(module.root()).into_iter().any(named) {
        return;
    }
    for w in scope::specializations(module) {
        let mut any = false;
        for l in scope::consumer_loops(module, w) {
            if let Some(turn) = turn(module, target.machine, l, num_warps) {
                if reads_what_threads_store(module, w, l) {
                    ttg::Barrier::build(&mut Builder::before(module, l.0));
                }
                place(module, l, turn);
                any = true;
            }
        }
        if any {
            let default = module.region_block(w.default_region(module));
            let first = module.first_op(default).expect("a region has an end");
            ttng::ArriveOrderBarrier::build(&mut Builder::before(module, first), true);
            let end = module.last_op(default).expect("a region has an end");
            ttng::WaitOrderBarrier::build(&mut Builder::before(module, end), true);
        }
    }
}

/// The first and the last dot of a turn.
#[derive(Clone, Copy)]
struct Turn {
    first: Op,
    last: Op,
}

/// The turn of a loop, if turns help it.
fn turn(module: &Module, machine: Machine, l: scf::For, num_warps: u32) -> Option<Turn> {
    let body = module.region_block(l.body(module));
    let ops: Vec<Op> = module.block_ops(body).collect();
    if ops.iter().any(|&op| !waits_for_nobody(module, op) || user_dots::is_authored(module, op)) {
        return None;
    }
    let dots: Vec<usize> =
        (0..ops.len()).filter(|&i| ttng::WarpGroupDot::cast(module, ops[i]).is_some()).collect();
    let &first = dots.first()?;
    let between = |from: usize, to: usize| -> u32 {
        ops[from + 1..to].iter().map(|&op| machine.arithmetic(module, op, num_warps, GROUP)).sum()
    };
    let last = dots[dots.len() - 1];
    // The arithmetic round the end of the body, and that between two dots.
    let around = between(last, ops.len())
        + ops[..first].iter().map(|&o| machine.arithmetic(module, o, num_warps, GROUP)).sum::<u32>();
    let mut longest = (around, Turn { first: ops[first], last: ops[last] });
    for pair in dots.windows(2) {
        let cycles = between(pair[0], pair[1]);
        if cycles > longest.0 {
            longest = (cycles, Turn { first: ops[pair[1]], last: ops[pair[0]] });
        }
    }
    let products: u32 = dots.iter().filter_map(|&i| machine.products(module, ops[i], num_warps, GROUP)).sum();
    hides(longest.0, products).then_some(longest.1)
}

/// Whether it pays to run one warp group's arithmetic beside the products of another: it must be enough to matter, and not so
/// much that it is what all wait for. (Attention forward on an H100, 128×128, with a late dot and in turns: D = 128, where
/// the arithmetic takes 0.9 of the products' time by this count, gains 4.6 %; D = 64, where it takes 1.7, loses 2.6 %.)
fn hides(arithmetic: u32, products: u32) -> bool {
    arithmetic >= products / 4 && arithmetic <= products + products / 4
}

/// Whether an operation waits for no other warp of its scope. (mbarriers that the producer fills it may wait for.)
fn waits_for_nobody(module: &Module, op: Op) -> bool {
    if tt::Reduce::cast(module, op).is_none() && !module.regions(op).is_empty() {
        return false;
    }
    if scratch::scratch_bytes(module, op) > 0 {
        return false;
    }
    let known = matches!(
        module.opcode(op),
        Some(Opcode::Ttng(
            ttng::Kind::WarpGroupDot
                | ttng::Kind::WarpGroupDotWait
                | ttng::Kind::WaitBarrier
                | ttng::Kind::ArriveBarrier
        ))
    );
    known || is_pure(module, op) || module.has_trait(op, Trait::Terminator)
}

/// Whether a loop reads buffers that are made among its warps, and not those of rings, whose slots are waited for.
fn reads_what_threads_store(module: &Module, w: ttg::WarpSpecialize, l: scf::For) -> bool {
    let operands = module.all_ops(l.0).into_iter().flat_map(|op| module.operands(op));
    let buffers = operands.filter_map(|&v| {
        let made = std::iter::successors(module.defining_op(v), |&op| {
            module.operands(op).first().and_then(|&v| module.defining_op(v)).filter(|_| is_view(module, op))
        });
        made.last().and_then(|op| ttg::LocalAlloc::cast(module, op))
    });
    buffers.into_iter().any(|alloc| module.is_ancestor(w.0, alloc.0))
}

fn place(module: &mut Module, l: scf::For, turn: Turn) {
    ttng::WaitOrderBarrier::build(&mut Builder::before(module, turn.first), false);
    ttng::ArriveOrderBarrier::build(&mut Builder::after(module, turn.last), false);
    if module.is_before(turn.last, turn.first) {
        ttng::WaitOrderBarrier::build(&mut Builder::before(module, l.0), false);
        ttng::ArriveOrderBarrier::build(&mut Builder::after(module, l.0), false);
    }
}
