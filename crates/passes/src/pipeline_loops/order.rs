//! Moves dots for warp groups up to where their operands are there, so that the tensor cores have work while the arithmetic
//! between two dots of the source runs.
//!
//! Why here: on the expanded loop, where operands in shared memory are there from the top of an iteration; before the
//! dots become asynchronous, since the waits depend on their order.
//!
//! In the backward pass of attention the product of the output's gradient with the values needs no softmax:
//!
//! ```text
//! %s = dot %k, %q[%slot]                      %s = dot %k, %q[%slot]
//! %p = softmax(%s)                        =>  %g = dot %v, %o[%slot]
//! %dv = dot %p, %o[%slot], %dv0               %p = softmax(%s)
//! %g = dot %v, %o[%slot]                      %dv = dot %p, %o[%slot], %dv0
//! ```
//!
//! What this costs is registers for the result, for longer. It is done where a CTA has several warp groups: a smaller one
//! shares its SM with others, which use the tensor cores meanwhile.

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::{ttg, ttng};
use tilewright_ir::{Block, Module, Op, Opcode, Value};

use crate::scope;

/// Warps of two warp groups.
const SEVERAL_GROUPS: u32 = 8;

/// Moves the dots of a block up, none before the block's first.
pub fn hoist(module: &mut Module, block: Block) {
    let dots: Vec<Op> = module.block_ops(block).filter(|&op| is_dot(module, op)).collect();
    let Some((&first, others)) = dots.split_first() else { return };
    if scope::num_warps(module, first) < SEVERAL_GROUPS {
        return;
    }
    for &dot in others {
        let mut views = Vec::new();
        // An operand may be what an mbarrier announces: nothing else says which.
        let mut after = last_wait(module, first, dot);
        for v in module.operands(dot).to_vec() {
            settle(module, block, v, &mut views, &mut after);
        }
        // Behind the dots that have been moved there before.
        let mut at = after;
        while let Some(next) =
            module.next_op(at).filter(|&op| op != dot && (is_view(module, op) || is_dot(module, op)))
        {
            at = next;
        }
        if module.next_op(at) == Some(dot) || !computes(module, at, dot) {
            continue;
        }
        views.sort_by(|&a, &b| {
            if module.is_before(a, b) { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater }
        });
        let mut seen = FxHashSet::default();
        for op in views.into_iter().chain([dot]) {
            if seen.insert(op) && module.is_before(at, op) {
                module.move_after(op, at);
                at = op;
            }
        }
    }
}

fn is_dot(module: &Module, op: Op) -> bool {
    ttng::WarpGroupDot::cast(module, op).is_some()
}

/// Whether an operation is a view of a buffer: it can stand anywhere behind what it views.
fn is_view(module: &Module, op: Op) -> bool {
    matches!(
        module.opcode(op),
        Some(Opcode::Ttg(ttg::Kind::MemdescIndex | ttg::Kind::MemdescTrans | ttg::Kind::MemdescSubslice))
    )
}

/// Adds the views through which an operand is seen; `after` becomes the last operation of the block that must come before.
fn settle(module: &Module, block: Block, value: Value, views: &mut Vec<Op>, after: &mut Op) {
    let Some(op) = module.defining_op(value).filter(|&op| module.parent_block(op) == Some(block)) else {
        return;
    };
    if is_view(module, op) {
        views.push(op);
        for &v in module.operands(op) {
            settle(module, block, v, views, after);
        }
    } else if module.is_before(*after, op) {
        *after = op;
    }
}

/// The last wait for an mbarrier between two operations, or the first of them.
fn last_wait(module: &Module, first: Op, before: Op) -> Op {
    let mut found = first;
    let mut at = module.next_op(first);
    while let Some(op) = at.filter(|&op| op != before) {
        if ttng::WaitBarrier::cast(module, op).is_some() {
            found = op;
        }
        at = module.next_op(op);
    }
    found
}

/// Whether anything between two operations takes time that a dot could use.
fn computes(module: &Module, after: Op, before: Op) -> bool {
    let mut at = module.next_op(after);
    while let Some(op) = at.filter(|&op| op != before) {
        if module.results(op).iter().any(|&r| module.is_tensor(module.value_type(r))) && !is_dot(module, op) {
            return true;
        }
        at = module.next_op(op);
    }
    false
}
