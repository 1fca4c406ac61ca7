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
use tilewright_ir::dialect::{arith, scf};
use tilewright_ir::{Block, Builder, Module, Op, Type, Value};

use super::Positions;
use super::channels::Channel;

/// Adds the counters of all channels to the loops of `range`, which stands behind `first`.
pub(super) fn thread(module: &mut Module, first: Op, range: &[Op], channels: &[Channel]) -> Positions {
    let mut positions = Positions::default();
    let mut done: Vec<u32> = Vec::new();
    for c in channels {
        if done.contains(&c.counter) {
            continue;
        }
        done.push(c.counter);
        let blocks: Vec<Block> =
            channels.iter().filter(|o| o.counter == c.counter).map(|o| o.block).collect();
        let mut b = Builder::before(module, first);
        let zero = b.i32(0);
        let mut at = FxHashMap::default();
        through(module, range, &blocks, c.slots, (zero, zero), &mut at);
        for (block, (slot, phase)) in at {
            positions.entry(block).or_default().push((c.counter, slot, phase));
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
                let block = match module.region_blocks(region) {
                    &[block] => block,
                    _ => {
                        let block = module.append_block(region, &[]);
                        scf::Yield::build(&mut Builder::at_end(module, block), &[]);
                        block
                    }
                };
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
            s = advance(module, end, s, slots);
        }
        module.push_operand(end, s.0);
        module.push_operand(end, s.1);
        state = (slot_after, phase_after);
    }
    state
}

/// The next slot; the phase flips where the ring begins again.
fn advance(module: &mut Module, before: Op, (slot, phase): (Value, Value), slots: u32) -> (Value, Value) {
    let mut b = Builder::before(module, before);
    let one = b.i32(1);
    let flipped = arith::Xori::build(&mut b, phase, one).result(b.module);
    if slots == 1 {
        return (slot, flipped);
    }
    let (zero, count) = (b.i32(0), b.i32(slots as i32));
    let next = arith::Addi::build(&mut b, slot, one).result(b.module);
    let wraps = arith::Cmpi::build(&mut b, next, count, arith::CmpIPredicate::Eq, Type::I1).result(b.module);
    let slot = arith::Select::build(&mut b, wraps, zero, next).result(b.module);
    let phase = arith::Select::build(&mut b, wraps, flipped, phase).result(b.module);
    (slot, phase)
}
