//! Positions in a ring: the number of a slot, and the phase, which is how often the ring has gone round, as a parity.
//!
//! Whoever uses a ring in a loop carries its position: a step is an addition and a comparison, where the number of a chunk
//! would be divided by that of slots.

use tilewright_ir::dialect::arith;
use tilewright_ir::{Builder, Type, Value};

/// The position after one; the phase flips where the ring begins again.
pub fn advance(b: &mut Builder<'_>, (slot, phase): (Value, Value), slots: u32) -> (Value, Value) {
    let one = b.i32(1);
    let flipped = arith::Xori::build(b, phase, one).result(b.module);
    if slots == 1 {
        return (slot, flipped);
    }
    let (zero, count) = (b.i32(0), b.i32(slots as i32));
    let next = arith::Addi::build(b, slot, one).result(b.module);
    let wraps = arith::Cmpi::build(b, next, count, arith::CmpIPredicate::Eq, Type::I1).result(b.module);
    let slot = arith::Select::build(b, wraps, zero, next).result(b.module);
    let phase = arith::Select::build(b, wraps, flipped, phase).result(b.module);
    (slot, phase)
}

/// The slot before one.
pub fn slot_before(b: &mut Builder<'_>, slot: Value, slots: u32) -> Value {
    if slots == 1 {
        return slot;
    }
    let (zero, one, last) = (b.i32(0), b.i32(1), b.i32(slots as i32 - 1));
    let first = arith::Cmpi::build(b, slot, zero, arith::CmpIPredicate::Eq, Type::I1).result(b.module);
    let less = arith::Subi::build(b, slot, one).result(b.module);
    arith::Select::build(b, first, last, less).result(b.module)
}
