//! Slots and phases: each ring has a slot number and a phase parity that loops carry and every use advances.
//!
//! Channels of different loops may share a ring; the state goes through loops and branches in program order, like a variable.
//!
//! ```text
//! scf.for ... {                   scf.for ... iter_args(%slot = 0, %phase = 0) {
//!   ...                     =>      ...
//! }                                 %next = %slot + 1 ; %wraps = %next == slots
//!                                   scf.yield select(%wraps, 0, %next), %phase ^ %wraps
//!                                 }
//! ```

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::scf;
use tilewright_ir::flow;
use tilewright_ir::{Block, Builder, Module, Op, Type, Value};

use super::Positions;
use crate::analysis::rings::position;

/// Adds the counters of channels, each with its number of slots and the bodies in which it advances, to the loops of `range`;
/// what they begin with stands before `first`.
pub(super) fn thread(
    module: &mut Module,
    first: Op,
    range: &[Op],
    channels: &[(u32, u32, Block)],
) -> Positions {
    let mut positions = Positions::default();
    let mut done: Vec<u32> = Vec::new();
    for &(counter, slots, _) in channels {
        if done.contains(&counter) {
            continue;
        }
        done.push(counter);
        let blocks: Vec<Block> = channels.iter().filter(|c| c.0 == counter).map(|c| c.2).collect();
        let zero = Builder::before(module, first).i32(0);
        let mut at = FxHashMap::default();
        through(module, range, &blocks, slots, (zero, zero), &mut at);
        for (block, (slot, phase)) in at {
            positions.entry(block).or_default().push((counter, slot, phase));
        }
    }
    positions
}

/// Carries the state through the loops and branches among `ops` that hold one of `blocks`; returns it as it is after them.
pub(super) fn through(
    module: &mut Module,
    ops: &[Op],
    blocks: &[Block],
    slots: u32,
    mut state: (Value, Value),
    at: &mut FxHashMap<Block, (Value, Value)>,
) -> (Value, Value) {
    for &op in ops {
        let holds =
            |&b: &Block| module.block_parent_op(b).is_some_and(|p| p == op || module.is_ancestor(op, p));
        if !blocks.iter().any(holds) {
            continue;
        }
        if let Some(branch) = scf::If::cast(module, op) {
            for region in [branch.then_region(module), branch.else_region(module)] {
                let block = flow::branch_block(module, region);
                let inner: Vec<Op> = module.block_ops(block).collect();
                let s = through(module, &inner, blocks, slots, state, at);
                let end = *inner.last().expect("a branch ends with a yield");
                module.push_operand(end, s.0);
                module.push_operand(end, s.1);
            }
            state = (module.add_result(op, Type::I32), module.add_result(op, Type::I32));
            continue;
        }
        let Some(l) = scf::For::cast(module, op) else { continue };
        let body = module.region_block(l.body(module));
        let inner: Vec<Op> = module.block_ops(body).collect();
        let mut carry = |v: Value| {
            module.push_operand(op, v);
            let result = module.add_result(op, Type::I32);
            (module.add_block_arg(body, Type::I32), result)
        };
        let ((slot, slot_after), (phase, phase_after)) = (carry(state.0), carry(state.1));
        if blocks.contains(&body) {
            at.insert(body, (slot, phase));
        }
        let mut s = through(module, &inner, blocks, slots, (slot, phase), at);
        let end = *inner.last().expect("a loop body ends with a yield");
        if blocks.contains(&body) {
            s = position::advance(&mut Builder::before(module, end), s, slots);
        }
        module.push_operand(end, s.0);
        module.push_operand(end, s.1);
        state = (slot_after, phase_after);
    }
    state
}
