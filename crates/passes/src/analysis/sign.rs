//! Whether integers may be below 0, as far as what divides them has to know.
//!
//! Programs' numbers and what is counted from them are not; loops count upwards, and divisors and steps are taken for positive. A difference may
//! be, and so may what a kernel is given or loads.

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{arith, scf, tt};
use tilewright_ir::{Module, Op, Opcode, Trait, Value, ValueDef, flow};

/// Whether an integer, or one of a tensor's, may be below 0. Numbers of 32 bits and more do not overflow; narrower ones may, and what is cut off a number.
pub fn may_be_negative(module: &Module, value: Value) -> bool {
    may_be(module, value, &mut FxHashMap::default())
}

fn may_be(m: &Module, value: Value, found: &mut FxHashMap<Value, bool>) -> bool {
    if let Some(&known) = found.get(&value) {
        return known;
    }
    // What a loop carries is, if what it begins with is or an iteration makes it so.
    found.insert(value, false);
    let edges = flow::edges_into(m, value);
    let is = if edges.is_empty() {
        match m.value_def(value) {
            ValueDef::Result(op, _) => result(m, op, found),
            ValueDef::Argument(block, i) => {
                let l = m.block_parent_op(block).and_then(|op| scf::For::cast(m, op)).filter(|_| i == 0);
                l.is_none_or(|l| may_be(m, l.lower_bound(m), found))
            }
        }
    } else {
        edges.iter().any(|(edge, i)| may_be(m, edge.from(m)[*i], found))
    };
    found.insert(value, is);
    is
}

fn result(m: &Module, op: Op, found: &mut FxHashMap<Value, bool>) -> bool {
    use arith::Kind as A;
    use tt::Kind as K;
    let operands = m.operands(op);
    let mut any = |values: &[Value]| values.iter().any(|&v| may_be(m, v, found));
    let narrow = || m.bits(m.element_type(m.value_type(m.result(op)))) < 32;
    match m.opcode(op) {
        Some(Opcode::Arith(A::Constant)) => m.constant_int(m.result(op)).is_none_or(|n| n < 0),
        Some(Opcode::Tt(K::MakeRange)) => tt::MakeRange(op).start(m) < 0,
        Some(Opcode::Tt(K::GetProgramId | K::GetNumPrograms)) => false,
        Some(Opcode::Arith(A::Extui | A::Divui | A::Remui)) => false,
        // Of a quotient, and of what a division leaves, the sign is that of what is divided.
        Some(Opcode::Arith(A::Divsi | A::Floordivsi | A::Remsi | A::Shrsi | A::Shrui)) => any(&operands[..1]),
        Some(Opcode::Arith(A::Select)) => any(&operands[1..]),
        Some(Opcode::Arith(A::Andi | A::Maxsi)) => operands.iter().all(|&v| may_be(m, v, found)),
        Some(Opcode::Arith(A::Addi | A::Muli | A::Shli)) => narrow() || any(operands),
        Some(Opcode::Arith(A::Minsi | A::Ori | A::Extsi | A::IndexCast)) => any(operands),
        // Operations that only arrange what they are given.
        _ if m.has_trait(op, Trait::Pure) && moves(m, op) => any(operands),
        _ => true,
    }
}

/// Whether the elements of an operation's results are elements of its operands.
fn moves(m: &Module, op: Op) -> bool {
    use tt::Kind as K;
    matches!(
        m.opcode(op),
        Some(Opcode::Tt(
            K::Splat | K::Broadcast | K::ExpandDims | K::Reshape | K::Trans | K::Join | K::Cat | K::Split
        )) | Some(Opcode::Ttg(tilewright_ir::dialect::ttg::Kind::ConvertLayout))
    )
}
