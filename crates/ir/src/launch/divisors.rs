//! What divides numbers, and who sees to it that it is not below 0 where code relies on that.
//!
//! ```text
//! %pid / ((%n + 63) / 64)        a launch computes the divisor, and looks
//! %pid / (%n | 1)                it can't: nothing is relied on
//! %pid / min(%m - %pid, 8)       the program's own number: the kernel's author sees to it
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashSet;

use super::{Number, PROGRAMS_ARGUMENT, is_kernel};
use crate::attrs::AttrKind;
use crate::diagnostic::Diagnostic;
use crate::dialect::{scf, tt};
use crate::effects;
use crate::entity::{Op, Value};
use crate::flow;
use crate::module::{Module, ValueDef};
use crate::opdef::Opcode;

/// On the module: what divides numbers in indices may be below 0 (the option `positive_divisors`).
const DIVISORS_OF_ANY_SIGN: &str = "tt.divisors_of_any_sign";

/// On the module, in its text: the numbers that its code takes for no negative ones, `[["argument", 3, 32], …]`.
const RELIED: &str = "ttg.not_negative";

/// What code of a module takes for no negative numbers, as passes come to rely on it. Copies of the module share it.
#[derive(Debug, Clone, Default)]
pub struct Relied(Arc<Mutex<Vec<Number>>>);

impl Relied {
    /// The numbers so far.
    pub fn numbers(&self) -> Vec<Number> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, number: Number) {
        let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
}

/// Says that what divides numbers may be below 0.
pub fn doubt_divisors(m: &mut Module) {
    let yes = m.attr(AttrKind::Unit);
    m.set_attr(m.root(), DIVISORS_OF_ANY_SIGN, yes);
}

/// Writes what the module's code relies on where its text shows it.
pub fn write_relied(m: &mut Module) {
    let numbers = m.relied().numbers();
    if numbers.is_empty() {
        return;
    }
    let numbers = numbers.iter().map(|number| number.to_attr(m)).collect();
    let numbers = m.attr(AttrKind::Array(numbers));
    m.set_attr(m.root(), RELIED, numbers);
}

/// Takes what a module's text says that its code relies on.
///
/// # Errors
/// Where that is no list of numbers.
pub fn recall_relied(m: &Module) -> Result<(), Diagnostic> {
    let Some(list) = m.op_attr(m.root(), RELIED) else { return Ok(()) };
    let numbers: Option<Vec<Number>> = match m.attr_kind(list) {
        AttrKind::Array(list) => list.iter().map(|&attr| Number::of_attr(m, attr)).collect(),
        _ => None,
    };
    let wrong = || {
        Diagnostic::at(
            m,
            m.op_loc(m.root()),
            format!("`{RELIED}` is a list of numbers such as [\"argument\", 3, 32]"),
        )
    };
    numbers.ok_or_else(wrong)?.into_iter().for_each(|number| m.relied().add(number));
    Ok(())
}

/// Whether a divisor, of which nothing else is known, is taken for positive: who asks relies on the answer. Where it follows from a launch's
/// arguments the launch looks ([`Module::relied`]); what it can't compute of them is not relied on.
pub fn trusts_divisor(m: &Module, divisor: Value) -> bool {
    if m.op_attr(m.root(), DIVISORS_OF_ANY_SIGN).is_some() {
        return false;
    }
    if is_programs_own(m, divisor) {
        return true;
    }
    let number = of_launch(m, divisor);
    number.map(|number| m.relied().add(number)).is_some()
}

/// What a launch computes of a divisor.
fn of_launch(m: &Module, mut divisor: Value) -> Option<Number> {
    // One number for all elements.
    while let Some(spread) = m.defining_op(divisor)
        && let Some(Opcode::Tt(tt::Kind::Splat | tt::Kind::Broadcast | tt::Kind::ExpandDims)) =
            m.opcode(spread)
    {
        divisor = m.operands(spread)[0];
    }
    let inside = m.value_block(divisor).and_then(|block| m.block_parent_op(block));
    let mut around = std::iter::successors(inside, |&op| m.parent_op(op));
    // (Another function's arguments are no launch's.)
    let func = around.find(|&op| tt::Func::cast(m, op).is_some())?;
    if is_kernel(m, func) { Number::of(m, divisor) } else { None }
}

/// Whether programs compute a number each for itself: from their own numbers, or from memory.
fn is_programs_own(m: &Module, value: Value) -> bool {
    let (mut seen, mut work) = (FxHashSet::default(), vec![value]);
    while let Some(value) = work.pop() {
        if !seen.insert(value) {
            continue;
        }
        let edges = flow::edges_into(m, value);
        work.extend(edges.iter().map(|(edge, i)| edge.from(m)[*i]));
        match m.value_def(value) {
            ValueDef::Result(op, _) if is_own(m, op) => return true,
            ValueDef::Result(op, _) => work.extend(m.operands(op)),
            ValueDef::Argument(block, index) => {
                let around = m.block_parent_op(block);
                if let Some(l) = around.and_then(|op| scf::For::cast(m, op)) {
                    work.extend([l.lower_bound(m), l.step(m)].into_iter().filter(|_| index == 0));
                }
                // How many programs there are.
                let counts = m.int_attr(m.root(), PROGRAMS_ARGUMENT);
                let of_kernel = around.is_some_and(|op| tt::Func::cast(m, op).is_some() && is_kernel(m, op));
                if of_kernel && counts.is_some_and(|first| i64::from(index) >= first) {
                    return true;
                }
            }
        }
    }
    false
}

fn is_own(m: &Module, op: Op) -> bool {
    matches!(m.opcode(op), Some(Opcode::Tt(tt::Kind::GetProgramId | tt::Kind::GetNumPrograms)))
        || m.regions(op).is_empty() && tt::Call::cast(m, op).is_none() && !effects::is_pure(m, op)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::arith;
    use crate::text::parse;

    /// Whether the divisor of a kernel's quotient is trusted, and how many numbers a launch looks at then.
    fn trusted(body: &str) -> (bool, usize) {
        let text = format!(
            "module {{\n tt.func public @k(%p: !tt.ptr<i32>, %m: i32, %n: i32) {{\n %pid = tt.get_program_id x : i32\n{body}\n %q = arith.divsi %pid, %d : i32\n tt.return\n }}\n}}"
        );
        let m = parse(&text, "k.mlir").expect("IR");
        let quotients = |op: Op| arith::Divsi::cast(&m, op).map(|_| m.operands(op)[1]);
        let divisor = m.all_ops(m.root()).into_iter().filter_map(quotients).next_back().expect("a quotient");
        (trusts_divisor(&m, divisor), m.relied().numbers().len())
    }

    /// What the text of a module carries is relied on by who reads it.
    #[test]
    fn text_says_what_is_relied_on() {
        let body = "%a = arith.addi %m, %n : i32\n %b = arith.maxsi %a, %m : i32\n %e = arith.extui %b : i32 to i64\n %t = arith.trunci %e : i64 to i32\n %c7 = arith.constant 7 : i32\n %d = arith.divsi %t, %c7 : i32";
        let text = format!(
            "module {{\n tt.func public @k(%p: !tt.ptr<i32>, %m: i32, %n: i32) {{\n %pid = tt.get_program_id x : i32\n{body}\n %q = arith.divsi %pid, %d : i32\n tt.return\n }}\n}}"
        );
        let mut m = parse(&text, "k.mlir").expect("IR");
        let quotients = |op: Op| arith::Divsi::cast(&m, op).map(|_| m.operands(op)[1]);
        let divisor = m.all_ops(m.root()).into_iter().filter_map(quotients).next_back().expect("a quotient");
        assert!(trusts_divisor(&m, divisor));
        write_relied(&mut m);
        let again = parse(&crate::print(&m), "again.mlir").expect("IR");
        recall_relied(&again).expect("numbers");
        assert_eq!(again.relied().numbers(), m.relied().numbers());
        for wrong in [
            "3 : i32",
            "[[\"argument\", 1 : i64]]",
            "[[\"sum\", 1 : i64, \"x\"]]",
            "[[\"argument\", -1 : i64, 32 : i64]]",
        ] {
            let text = format!("module attributes {{ttg.not_negative = {wrong}}} {{\n}}");
            let m = parse(&text, "k.mlir").expect("IR");
            assert!(recall_relied(&m).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_a_launch_computes_it_looks_at() {
        assert_eq!(trusted("%d = arith.addi %m, %n : i32"), (true, 1));
        assert_eq!(trusted("%d = arith.minsi %m, %n : i32"), (true, 1));
    }

    #[test]
    fn what_a_launch_cannot_compute_of_its_arguments_is_not_trusted() {
        for what in ["ori", "remsi", "shrsi", "xori"] {
            assert_eq!(trusted(&format!("%d = arith.{what} %m, %n : i32")), (false, 0), "{what}");
        }
        let select = "%c = arith.cmpi sgt, %m, %n : i32\n %d = arith.select %c, %m, %n : i32";
        assert_eq!(trusted(select), (false, 0));
    }

    #[test]
    fn what_programs_compute_themselves_is_the_authors() {
        assert_eq!(
            trusted("%left = arith.subi %m, %pid : i32\n %d = arith.minsi %left, %n : i32"),
            (true, 0)
        );
        assert_eq!(trusted("%d = tt.load %p : !tt.ptr<i32>"), (true, 0));
    }
}
