//! Masked loads of which nobody sees what stands where their mask does not hold.
//!
//! A load gives zero there, and kernels rely on it. What is added or multiplied element by element, and stored under the same mask, needs neither zeros before
//! the load nor a selection behind it: a sum of two vectors of 2,048 fp16 elements has 33 instructions for 41, and its loads are instructions 15 to 18 for 22 to 26, which counts where a launch takes a few µs
//! and fetches its code from memory.
//!
//! No more than that: conversions put two elements into one word, of which one may be seen; divisions and functions branch by their operands; and the assembler begins such loads at once,
//! so that many of them take registers all the time (docs/log/2026-11-27.md).

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::{arith, tt};
use tilewright_ir::effects::is_pure;
use tilewright_ir::{Module, Op, Opcode, Type, Value};

/// Whether all that is computed of a load's result goes, element by element, to stores under its mask.
pub fn is_unseen(m: &Module, load: tt::Load) -> bool {
    let result = load.result(m);
    let Some(mask) = load.mask(m).filter(|_| m.is_tensor(m.value_type(result))) else { return false };
    let mut open = vec![result];
    let mut known: FxHashSet<Value> = open.iter().copied().collect();
    while let Some(value) = open.pop() {
        for used in m.uses(value) {
            let stored = tt::Store::cast(m, used.op).is_some_and(|store| {
                store.mask(m) == Some(mask) && store.ptr(m) != value && is_soon(m, load.0, used.op)
            });
            if !stored && !takes_any_number(m, used.op) {
                return false;
            }
            open.extend(m.results(used.op).iter().copied().filter(|&result| known.insert(result)));
        }
    }
    true
}

/// Whether nothing but arithmetic and accesses of memory stands between two operations of a block.
fn is_soon(m: &Module, load: Op, store: Op) -> bool {
    let between = std::iter::successors(m.next_op(load), |&op| m.next_op(op));
    let goes_on = |&op: &Op| match m.opcode(op) {
        Some(Opcode::Tt(tt::Kind::Load | tt::Kind::Store)) => true,
        Some(Opcode::Tt(_) | Opcode::Arith(_)) => is_pure(m, op) && m.regions(op).is_empty(),
        _ => false,
    };
    m.parent_block(load) == m.parent_block(store)
        && between.take_while(|&op| op != store).all(|op| goes_on(&op))
}

/// Whether each element of an operation's result follows from those at the same place alone, by one instruction on words of the same elements.
fn takes_any_number(m: &Module, op: Op) -> bool {
    use arith::Kind::{Addf, Addi, Andi, Mulf, Muli, Negf, Ori, Subf, Subi, Xori};
    let one = matches!(
        m.opcode(op),
        Some(Opcode::Arith(Addf | Subf | Mulf | Negf | Addi | Subi | Muli | Andi | Ori | Xori))
    );
    let elements = m.operands(op).iter().chain(m.results(op)).map(|&v| m.element_type(m.value_type(v)));
    one && elements.into_iter().all(|ty| matches!(ty, Type::F16 | Type::F32 | Type::I32))
}
