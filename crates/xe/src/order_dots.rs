//! Puts dots that share their second operand behind each other, and what is loaded right before its first use.
//!
//! Why here: [`match_target_size`](tilewright_passes::transform::match_target_size) leaves all loads of a block in front of its dots, and these row by row of
//! the result. A tile of the second operand is wanted by each row then, so that all of them are held at once: those of attention's keys alone fill half of the
//! registers. Before barriers are placed, since loads stay behind what is written before them.
//!
//! ```text
//! b0 = load; b1 = load          b0 = load
//! c0 = dot a0, b0               c0 = dot a0, b0
//! c1 = dot a0, b1        =>     c2 = dot a1, b0
//! c2 = dot a1, b0               b1 = load
//! c3 = dot a1, b1               c1 = dot a0, b1
//!                               c3 = dot a1, b1
//! ```

use tilewright_ir::dialect::{tt, ttg};
use tilewright_ir::effects::effects;
use tilewright_ir::{Block, Module, Op, Opcode, Value};
use tilewright_passes::pass::{Pass, Property};

/// The pass.
pub const PASS: Pass = Pass {
    name: "order-dots",
    summary: "put dots with the same second operand behind each other, and loads before their first use",
    requires: &[Property::TargetSized],
    ensures: &[],
    run: |m, _, _| {
        run(m);
        Ok(())
    },
};

/// Does so in every block.
pub fn run(module: &mut Module) {
    for op in module.all_ops(module.root()) {
        let blocks: Vec<Block> =
            module.regions(op).iter().flat_map(|&r| module.region_blocks(r).to_vec()).collect();
        for block in blocks {
            let ops: Vec<Op> = module.block_ops(block).collect();
            let dots = |&a: &Op, &b: &Op| is_dot(module, a) && is_dot(module, b);
            let runs: Vec<Vec<Op>> =
                ops.chunk_by(dots).filter(|run| run.len() > 1).map(<[Op]>::to_vec).collect();
            runs.iter().for_each(|run| order(module, run));
            let ops: Vec<Op> = module.block_ops(block).collect();
            ops.into_iter().rev().for_each(|op| sink(module, block, op));
        }
    }
}

fn is_dot(m: &Module, op: Op) -> bool {
    tt::Dot::cast(m, op).is_some()
}

/// Puts a run of dots in order: as they stand, but what shares the second operand of the last goes first where it can.
fn order(m: &mut Module, run: &[Op]) {
    let mut left: Vec<Op> = run.to_vec();
    let mut last: Option<Value> = None;
    let mut at = None;
    while !left.is_empty() {
        let waits = |op: Op| {
            let from = |&v: &Value| m.defining_op(v).is_some_and(|def| left.contains(&def));
            m.operands(op).iter().any(from)
        };
        let ready = |op: Op, same: bool| !waits(op) && (!same || last == Some(tt::Dot(op).b(m)));
        let next = left.iter().position(|&op| ready(op, true));
        // The first of those that are left waits for none of them.
        let op = left.remove(next.or_else(|| left.iter().position(|&op| ready(op, false))).unwrap_or(0));
        last = Some(tt::Dot(op).b(m));
        if let Some(before) = at {
            m.move_after(op, before);
        } else if op != run[0] {
            m.move_before(op, run[0]);
        }
        at = Some(op);
    }
}

/// Moves what is loaded, and what only names parts of it, before its first use.
fn sink(m: &mut Module, block: Block, op: Op) {
    let load = tt::DescriptorLoad::cast(m, op).is_some();
    let part = matches!(
        m.opcode(op),
        Some(Opcode::Tt(tt::Kind::Extract | tt::Kind::Trans) | Opcode::Ttg(ttg::Kind::ConvertLayout))
    );
    if !load && !part {
        return;
    }
    let within = |mut user: Op| loop {
        let of = m.parent_block(user)?;
        if of == block {
            return Some(user);
        }
        user = m.parent_op(user)?;
    };
    let users = m.results(op).iter().flat_map(|&v| m.uses(v)).map(|used| within(used.op));
    let Some(users) = users.collect::<Option<Vec<Op>>>() else { return };
    let Some(first) = users.into_iter().reduce(|a, b| if m.is_before(b, a) { b } else { a }) else { return };
    let mut between = m.next_op(op);
    while let Some(next) = between.filter(|&next| next != first) {
        if load && effects(m, next).writes {
            return;
        }
        between = m.next_op(next);
    }
    m.move_before(op, first);
}
