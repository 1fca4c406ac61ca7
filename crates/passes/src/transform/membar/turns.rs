//! Slots whose number a loop counts: `(factor * i + add) % slots` in the iteration whose induction variable is `i`.
//!
//! Their number is known at run time only. But two of them are the same or not, whatever `i` is, and what was slot number `i % 3` is number
//! `(i - 1) % 3` to the next iteration.

use tilewright_ir::dialect::{arith, scf, ttg};
use tilewright_ir::{Module, Op, Value, ValueDef};

use crate::analysis::scope;
use crate::transform::allocate_shared::{buffer_bytes, is_view};

/// A slot whose number a loop counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    /// The loop.
    pub counted_by: Op,
    factor: i64,
    add: i64,
    slots: i64,
    /// Bytes of a slot.
    bytes: u32,
}

impl Turn {
    /// What the slot is in the iteration after that of which it is told; `None` where iterations are not a known number apart.
    pub fn later(self, module: &Module) -> Option<Turn> {
        let step = module.constant_int(scf::For(self.counted_by).step(module))?;
        let add = self.add.checked_sub(self.factor.checked_mul(step)?)?;
        Some(Turn { add: add.rem_euclid(self.slots), ..self })
    }

    /// Whether these are different slots, if they are slots of the same ring.
    pub fn is_apart(self, other: Turn) -> bool {
        self.add != other.add && Turn { add: other.add, ..self } == other
    }
}

/// Which slot a view is of, or is in.
pub(super) fn turn_of(module: &Module, view: Value) -> Option<Turn> {
    let mut at = view;
    let index = loop {
        at = scope::captured(module, at);
        let op = module.defining_op(at)?;
        if let Some(index) = ttg::MemdescIndex::cast(module, op) {
            let outer = scope::captured(module, index.src(module));
            if ttg::LocalAlloc::of(module, outer).is_some() {
                break index;
            }
        } else if !is_view(module, op) || ttg::MemdescReinterpret::cast(module, op).is_some() {
            return None;
        }
        at = module.operands(op)[0];
    };
    let (dividend, slots) = remainder(module, index.index(module))?;
    let (bytes, _) = buffer_bytes(module, module.value_type(index.result(module))).ok()?;
    let (counter, factor, add) = counted(module, dividend)?;
    let counter = counter?;
    let ValueDef::Argument(block, 0) = module.value_def(counter) else { return None };
    let counted_by = scf::For::cast(module, module.block_parent_op(block)?)?.0;
    Some(Turn { counted_by, factor, add: add.rem_euclid(slots), slots, bytes })
}

/// A number taken modulo a positive constant.
fn remainder(module: &Module, value: Value) -> Option<(Value, i64)> {
    let op = module.defining_op(value)?;
    let signed = arith::Remsi::cast(module, op).is_some();
    if !signed && arith::Remui::cast(module, op).is_none() {
        return None;
    }
    let [dividend, divisor] = *module.operands(op) else { return None };
    let divisor = module.constant_int(divisor).filter(|&n| n > 0)?;
    Some((dividend, divisor))
}

/// A number as a factor times another one, if there is one, and a constant.
fn counted(module: &Module, value: Value) -> Option<(Option<Value>, i64, i64)> {
    if let Some(constant) = module.constant_int(value) {
        return Some((None, 0, constant));
    }
    let ValueDef::Result(op, _) = module.value_def(value) else { return Some((Some(value), 1, 0)) };
    let of = |i: usize| counted(module, module.operands(op)[i]);
    if arith::Addi::cast(module, op).is_some() {
        let ((x, a, b), (y, c, d)) = (of(0)?, of(1)?);
        let one = x.or(y).filter(|&v| [x, y].into_iter().flatten().all(|w| w == v));
        return (one.is_some() || x.or(y).is_none()).then_some((one, a.checked_add(c)?, b.checked_add(d)?));
    }
    if arith::Muli::cast(module, op).is_some() {
        let ((x, a, b), by) = (of(0)?, module.constant_int(module.operands(op)[1])?);
        return Some((x, a.checked_mul(by)?, b.checked_mul(by)?));
    }
    None
}
