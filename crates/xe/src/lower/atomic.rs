//! Atomic operations on global and shared memory.

use smallvec::smallvec;
use tilewright_ir::dialect::tt;
use tilewright_llvm::{BinOp, CastOp, Effect, IntPred, Scalar, Ty, Value};
use tilewright_lower::{Atomic, int_of};

use super::{Lower, Result};
use crate::visa;

/// How those among whom it is atomic are called.
fn scope(scope: tt::MemSyncScope) -> &'static str {
    match scope {
        tt::MemSyncScope::Gpu => "device",
        tt::MemSyncScope::Cta => "group",
        tt::MemSyncScope::System => "system",
    }
}

impl Lower<'_, '_> {
    /// One element's operation; gives its bits before.
    pub(super) fn atomic(
        &mut self,
        what: Atomic,
        ptr: Value,
        values: &[Value],
        pred: Option<Value>,
    ) -> Result<Value> {
        let bits = what.ty.bits();
        let of_all = if self.is_shared(ptr) { "group" } else { scope(what.scope) };
        let suffix = format!("{of_all}.{}", what.sem.keyword());
        let float = what.rmw == Some(tt::RmwOp::Fadd);
        if bits < 16 || (bits == 16 && !float && what.rmw.is_some()) {
            return Err(self.unsupported(format!("atomics on {bits}-bit values")));
        }
        let operation = match what.rmw {
            None if bits == 16 => return Err(self.unsupported("atomics on 16-bit values")),
            None => "cas",
            Some(tt::RmwOp::And) => "and",
            Some(tt::RmwOp::Or) => "or",
            Some(tt::RmwOp::Xor) => "xor",
            Some(tt::RmwOp::Exch) => "exch",
            Some(tt::RmwOp::Add) => "add",
            Some(tt::RmwOp::Max) => "smax",
            Some(tt::RmwOp::Min) => "smin",
            Some(tt::RmwOp::Umax) => "umax",
            Some(tt::RmwOp::Umin) => "umin",
            Some(tt::RmwOp::Fadd) => return Ok(self.add_float(what.ty, ptr, values[0], &suffix, pred)),
        };
        let int = Ty::scalar(int_of(bits));
        let values: Vec<Value> =
            values.iter().map(|&v| if self.b.ty(v).is_int() { v } else { self.b.bitcast(v, int) }).collect();
        let zero = self.b.constant(int, 0);
        let old = self.where_holds(pred, &[zero], |l| {
            let args: Vec<Value> = [ptr].into_iter().chain(values).collect();
            let name = format!("xe.atomic.{operation}.{suffix}");
            smallvec![l.b.intrinsic(&name, Effect::Write, Some(int), &args)]
        });
        Ok(old[0])
    }

    /// Adds to a float, by compare and swap until nobody came in between: of an element of 16 bits in global memory, or of the word that it lies in.
    fn add_float(&mut self, ty: Ty, ptr: Value, value: Value, suffix: &str, pred: Option<Value>) -> Value {
        let int = Ty::scalar(int_of(ty.bits()));
        let zero = self.b.constant(int, 0);
        let half = ty.bits() == 16 && !self.is_shared(ptr);
        let old = self.where_holds(pred, &[zero], |l| {
            let word = Ty::scalar(int_of(ty.bits().max(32)));
            let (address, shift) = if half { (ptr, None) } else { l.word_of(ty, ptr) };
            // A guess: the first exchange says what is there.
            let first = l.b.zero(word);
            let (here, preheader) = (l.b.block(), l.b.preheader());
            let again = l.b.create_block(here, Some(here), &[word]);
            let done = l.b.create_block(again, preheader, &[]);
            if half {
                l.fence(suffix);
            }
            l.b.br(again, &[first]);
            l.b.switch_to(again);
            let expected = l.b.params(again)[0];
            let (old, new) = l.word_with_sum(ty, expected, shift, value);
            let seen = if half {
                let args = [l.b.cast(CastOp::PtrToInt, address, Ty::I64), expected, new];
                let seen = l.b.asm1(visa::SWAP_HALF, "=rw,rw,rw,rw", Effect::Write, word, &args);
                l.b.and_const(seen, 0xffff)
            } else {
                let name = format!("xe.atomic.cas.{suffix}");
                l.b.intrinsic(&name, Effect::Write, Some(word), &[address, expected, new])
            };
            let same = l.b.icmp(IntPred::Eq, seen, expected);
            l.b.cond_br(same, done, &[], again, &[seen]);
            l.b.switch_to(done);
            if half {
                l.fence(suffix);
            }
            smallvec![old]
        });
        old[0]
    }

    /// The order that an atomic operation is to have, around one that has none.
    fn fence(&mut self, suffix: &str) {
        if !suffix.ends_with("relaxed") {
            self.b.intrinsic(&format!("xe.fence.{suffix}"), Effect::Write, None, &[]);
        }
    }

    /// The word that an element lies in, and where: halves of words have no operations of their own.
    fn word_of(&mut self, ty: Ty, ptr: Value) -> (Value, Option<Value>) {
        if ty.bits() != 16 {
            return (ptr, None);
        }
        let address_ty = Ty::scalar(int_of(self.b.ty(ptr).bits()));
        let address = self.b.cast(CastOp::PtrToInt, ptr, address_ty);
        let low = self.b.and_const(address, 2);
        let back = self.b.zero(address_ty);
        let back = self.b.sub(back, low);
        let low = self.b.int_cast(low, Ty::I32, false);
        let shift = self.b.shl(low, 3);
        (self.b.ptr_add(ptr, back), Some(shift))
    }

    /// The bits of the element in a word, and the word with the sum in its place.
    fn word_with_sum(&mut self, ty: Ty, word: Value, shift: Option<Value>, value: Value) -> (Value, Value) {
        let int = Ty::scalar(int_of(ty.bits()));
        let low = shift.map_or(word, |shift| self.b.bin(BinOp::LShr, word, shift));
        let old = self.b.int_cast(low, int, false);
        let number = self.b.bitcast(old, ty);
        let sum = if ty.scalar == Scalar::BF16 {
            let (x, y) = (self.as_f32(number), self.as_f32(value));
            let sum = self.b.bin(BinOp::FAdd, x, y);
            self.b.cast(CastOp::FpTrunc, sum, ty)
        } else {
            self.b.bin(BinOp::FAdd, number, value)
        };
        let sum = self.b.bitcast(sum, int);
        let Some(shift) = shift else {
            let ty = self.b.ty(word);
            return (old, self.b.int_cast(sum, ty, false));
        };
        let wide = self.b.int_cast(sum, Ty::I32, false);
        let (part, ones) = (self.b.bin(BinOp::Shl, wide, shift), self.b.i32(0xffff));
        let mask = self.b.bin(BinOp::Shl, ones, shift);
        let all = self.b.i32(-1);
        let outside = self.b.xor(mask, all);
        let rest = self.b.and(word, outside);
        (old, self.b.or(rest, part))
    }

    /// Adds 1 to a word of shared memory.
    pub(super) fn count_shared(&mut self, ptr: Value, pred: Option<Value>) {
        self.where_holds(pred, &[], |l| {
            let one = l.b.i32(1);
            l.b.intrinsic("xe.atomic.add.group.relaxed", Effect::Write, Some(Ty::I32), &[ptr, one]);
            smallvec![]
        });
    }
}
