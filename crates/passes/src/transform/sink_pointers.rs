//! Blocks of pointers and masks that a kernel makes before a loop, and uses behind it alone, are made there.
//!
//! Each of their elements is a register of a thread. What they are made of (ranges and numbers) is at hand behind the loop as well, so that the loop
//! has these registers.
//!
//! Why here: layouts are known, and with them how often each is made; before roles and schedules are, which move loops about.
//!
//! ```text
//! %p = ttg.local_ptr %b[%i, %j]                       %r = scf.for ... { ... }
//! %r = scf.for ... { ... }                       =>   %p = ttg.local_ptr %b[%i, %j]
//! tt.store %p, %r                                     tt.store %p, %r
//! ```

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{arith, tt, ttg};
use tilewright_ir::{Block, Module, Op, Opcode, Trait, flow};

use crate::pass::{Pass, Property};

/// The pass.
pub const PASS: Pass = Pass {
    name: "sink-pointers",
    summary: "make pointers and masks behind loops that do not use them",
    requires: &[Property::LaidOut],
    ensures: &[],
    run: |m, _, _| {
        run(m);
        Ok(())
    },
};

/// Does so in every block that has a loop.
pub fn run(module: &mut Module) {
    let loops = module.all_ops(module.root()).into_iter().filter(|&op| flow::is_loop(module, op));
    let mut blocks: Vec<Block> = loops.filter_map(|op| module.parent_block(op)).collect();
    blocks.dedup();
    for block in blocks {
        // Last ones first: what they are made of may go with them.
        let ops: Vec<Op> = module.block_ops(block).collect();
        let mut known = FxHashMap::default();
        for op in ops.into_iter().rev() {
            if is_made_of_numbers(module, op, &mut known)
                && let Some(user) = first_user_behind_loop(module, block, op)
            {
                module.move_before(op, user);
            }
        }
    }
}

/// Whether an operation gives a block of integers, pointers or conditions that follows from ranges and single values; `known` says it of others.
fn is_made_of_numbers(module: &Module, op: Op, known: &mut FxHashMap<Op, bool>) -> bool {
    if let Some(&made) = known.get(&op) {
        return made;
    }
    let made = is_made(module, op, known);
    known.insert(op, made);
    made
}

fn is_made(module: &Module, op: Op, known: &mut FxHashMap<Op, bool>) -> bool {
    let &[result] = module.results(op) else { return false };
    let element = module.element_type(module.value_type(result));
    let made = match module.opcode(op) {
        Some(Opcode::Tt(tt::Kind::MakeRange | tt::Kind::Splat)) => return true,
        Some(Opcode::Tt(tt::Kind::ExpandDims | tt::Kind::Broadcast | tt::Kind::Addptr)) => true,
        Some(Opcode::Ttg(ttg::Kind::LocalPtr)) => true,
        Some(Opcode::Arith(arith::Kind::Constant)) => return true,
        Some(Opcode::Arith(_)) => {
            module.has_trait(op, Trait::Elementwise) && module.has_trait(op, Trait::Pure)
        }
        _ => false,
    };
    let mut tensors = module.operands(op).iter().filter(|&&v| module.is_tensor(module.value_type(v)));
    made && module.is_tensor(module.value_type(result))
        && (module.is_int(element) || module.is_ptr(element))
        && tensors.all(|&v| module.defining_op(v).is_some_and(|op| is_made_of_numbers(module, op, known)))
}

/// The first operation of its block that uses what an operation gives, if a loop stands between.
fn first_user_behind_loop(module: &Module, block: Block, op: Op) -> Option<Op> {
    let uses = module.results(op).iter().flat_map(|&r| module.uses(r));
    let users: Option<Vec<Op>> = uses.map(|u| module.ancestor_in_block(block, u.op)).collect();
    let first = users?.into_iter().reduce(|a, b| if module.is_before(a, b) { a } else { b })?;
    let between = std::iter::successors(module.next_op(op), |&op| module.next_op(op));
    between.take_while(|&op| op != first).any(|op| flow::is_loop(module, op)).then_some(first)
}
