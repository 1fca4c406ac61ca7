//! Moves the dots that the schedule has begin earlier than they stand to where their operands are there, so that the tensor
//! cores have work while the arithmetic between two dots of the source runs.
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

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::{ttg, ttng};
use tilewright_ir::effects::resource;
use tilewright_ir::opdef::{Access, Completion, Effect, Resource};
use tilewright_ir::{Block, Module, Op, Opcode, Value};

use crate::analysis::rings::{self, guards};

/// Moves these dots of a block up, none before the block's first.
pub fn issue_early(module: &mut Module, block: Block, early: &[Op]) {
    let first = module.block_ops(block).find(|&op| is_dot(module, op));
    let Some(first) = first else { return };
    for &dot in early {
        let mut views = Vec::new();
        // An operand may be what an mbarrier announces, where nothing else says which, or what the program itself stores.
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
        if module.next_op(at) == Some(dot) {
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

/// The last operation between one and a dot that waits for an mbarrier or stores to what the dot reads, or has such a one in it; or the first operation.
fn last_wait(module: &Module, first: Op, dot: Op) -> Op {
    let operands =
        ttng::WarpGroupDot::cast(module, dot).map(|d| [d.a(module), d.b(module)]).into_iter().flatten();
    let views: Vec<Value> = operands.filter(|&v| !module.is_tensor(module.value_type(v))).collect();
    let waits =
        |op: Op| rings::waits_at_mbarrier(module, op) || ttng::WaitBarrier::cast(module, op).is_some();
    let stores = |op: Op| stores(module, op) && views.iter().any(|&view| guards::overlaps(module, op, view));
    let mut found = first;
    let mut at = module.next_op(first);
    while let Some(op) = at.filter(|&op| op != dot) {
        if module.all_ops(op).into_iter().any(|inner| waits(inner) || stores(inner)) {
            found = op;
        }
        at = module.next_op(op);
    }
    found
}

/// Whether an operation may store to shared memory, and does not only begin to.
fn stores(module: &Module, op: Op) -> bool {
    module.def(op).is_none_or(|def| {
        let at_once = |e: &&Effect| e.access == Access::Write && e.completion == Completion::Immediate;
        let mut to = def.effects.iter().filter(at_once).map(|e| resource(module, op, e));
        // What assembly does with a pointer nobody knows.
        to.any(|to| matches!(to, Resource::Shared | Resource::Other))
    })
}
