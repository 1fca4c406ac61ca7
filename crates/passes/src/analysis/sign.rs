//! Whether integers may be below 0, as far as what divides them has to know.
//!
//! Programs' numbers and what is counted from them, upwards or back from the last program, are not; loops count upwards, and steps are taken for positive, divisors where somebody sees to it ([`launch::trusts_divisor`]). Another difference may
//! be, and so may what a kernel is given or loads.

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{arith, scf, tt};
use tilewright_ir::{Module, Op, Opcode, Trait, Value, ValueDef, flow, launch};

use crate::analysis::promises::is_counted_back;

/// The signs of a module's integers, as far as they were asked for.
#[derive(Debug, Default)]
pub struct Signs {
    found: FxHashMap<Value, bool>,
    /// What is in `found`, in the order in which it came there.
    order: Vec<Value>,
}

impl Signs {
    /// Whether an integer, or one of a tensor's, may be below 0. Numbers of 32 bits and more do not overflow; narrower ones may, and what is cut off a number.
    pub fn may_be_negative(&mut self, m: &Module, value: Value) -> bool {
        if let Some(&known) = self.found.get(&value) {
            return known;
        }
        // What a loop carries is, if what it begins with is or an iteration makes it so.
        self.found.insert(value, false);
        let since = self.order.len();
        let edges = flow::edges_into(m, value);
        let is = if edges.is_empty() {
            match m.value_def(value) {
                ValueDef::Result(op, _) => self.result(m, op),
                ValueDef::Argument(block, i) => {
                    let l = m.block_parent_op(block).and_then(|op| scf::For::cast(m, op)).filter(|_| i == 0);
                    l.is_none_or(|l| self.may_be_negative(m, l.lower_bound(m)))
                }
            }
        } else {
            edges.iter().any(|(edge, i)| self.may_be_negative(m, edge.from(m)[*i]))
        };
        if is {
            // What was found not to be stood on this one, perhaps.
            for other in self.order.split_off(since) {
                if self.found.get(&other) == Some(&false) {
                    self.found.remove(&other);
                } else {
                    self.order.push(other);
                }
            }
        }
        self.found.insert(value, is);
        self.order.push(value);
        is
    }

    fn result(&mut self, m: &Module, op: Op) -> bool {
        use arith::Kind as A;
        use tt::Kind as K;
        let operands = m.operands(op);
        let mut any = |values: &[Value]| values.iter().any(|&v| self.may_be_negative(m, v));
        let narrow = || m.bits(m.element_type(m.value_type(m.result(op)))) < 32;
        match m.opcode(op) {
            Some(Opcode::Arith(A::Addi | A::Subi)) if is_counted_back(m, m.result(op)) => false,
            Some(Opcode::Arith(A::Constant)) => m.constant_int(m.result(op)).is_none_or(|n| n < 0),
            Some(Opcode::Tt(K::MakeRange)) => tt::MakeRange(op).start(m) < 0,
            Some(Opcode::Tt(K::GetProgramId | K::GetNumPrograms)) => false,
            Some(Opcode::Arith(A::Extui | A::Divui | A::Remui)) => false,
            // What a division leaves has the sign of what is divided.
            Some(Opcode::Arith(A::Remsi | A::Shrsi | A::Shrui)) => any(&operands[..1]),
            // (Divisors are taken for positive where somebody sees to it.)
            Some(Opcode::Arith(A::Divsi | A::Floordivsi)) => {
                any(&operands[..1])
                    || match m.constant_int(operands[1]) {
                        Some(n) => n < 0,
                        None => any(&operands[1..]) && !launch::trusts_divisor(m, operands[1]),
                    }
            }
            Some(Opcode::Arith(A::Select)) => any(&operands[1..]),
            Some(Opcode::Arith(A::Andi | A::Maxsi)) => operands.iter().all(|&v| self.may_be_negative(m, v)),
            Some(Opcode::Arith(A::Addi | A::Muli | A::Shli)) => narrow() || any(operands),
            Some(Opcode::Arith(A::Minsi | A::Ori | A::Extsi | A::IndexCast)) => any(operands),
            // Operations that only arrange what they are given.
            _ if m.has_trait(op, Trait::Pure) && moves(m, op) => any(operands),
            _ => true,
        }
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
