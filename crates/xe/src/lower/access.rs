//! Accesses to memory, and the conversions that there are no instructions for.
//!
//! A predicated access to global memory is a message that leaves lanes out, in vISA ([`crate::visa`]): SPIR-V has none. Others stand in a branch.

use smallvec::SmallVec;
use tilewright_llvm::{CastOp, Effect, FloatPred, Scalar, Space, Ty, Value};
use tilewright_lower::{WordValues, Words, int_of};

use super::Lower;
use crate::visa;

impl Lower<'_, '_> {
    /// Runs `body` where `pred` holds; what it gives is `otherwise` elsewhere.
    pub(super) fn where_holds(
        &mut self,
        pred: Option<Value>,
        otherwise: &[Value],
        body: impl FnOnce(&mut Self) -> WordValues,
    ) -> WordValues {
        let Some(pred) = pred.filter(|&p| !self.b.is_true(p)) else { return body(self) };
        if self.b.is_false(pred) {
            return SmallVec::from_slice(otherwise);
        }
        let (here, preheader) = (self.b.block(), self.b.preheader());
        let types: Vec<Ty> = otherwise.iter().map(|&v| self.b.ty(v)).collect();
        let inside = self.b.create_block(here, preheader, &[]);
        let done = self.b.create_block(here, preheader, &types);
        self.b.cond_br(pred, inside, &[], done, otherwise);
        self.b.switch_to(inside);
        let values = body(self);
        self.b.br(done, &values);
        self.b.switch_to(done);
        SmallVec::from_slice(self.b.params(done))
    }

    /// Whether an access to global memory has a mask: a message leaves lanes out, and needs no branch.
    fn is_by_message(&self, ptr: Value, pred: Value) -> bool {
        let global = matches!(self.b.ty(ptr).scalar, Scalar::Ptr(Space::Global | Space::Generic));
        global && self.b.as_const(pred).is_none()
    }

    /// Loads words where `pred` holds; elsewhere they are those of `other`, or zero.
    pub(super) fn load_words(
        &mut self,
        ptr: Value,
        words: Words,
        pred: Option<Value>,
        other: Option<&[Value]>,
        volatile: bool,
    ) -> WordValues {
        let register = words.register();
        let zero = self.b.zero(register);
        let otherwise: WordValues = match other {
            Some(other) => other.iter().copied().collect(),
            None => SmallVec::from_elem(zero, words.count as usize),
        };
        if let Some(pred) = pred.filter(|&pred| !volatile && self.is_by_message(ptr, pred))
            && let Some(text) = visa::masked_load(words.bits, words.count)
        {
            let ty = Ty::vector(if words.bits == 64 { Scalar::I64 } else { Scalar::I32 }, words.count as u8);
            let args = [self.b.cast(CastOp::PtrToInt, ptr, Ty::I64), self.b.int_cast(pred, Ty::I32, false)];
            let loaded = self.b.asm1(&text, "=rw,rw,rw", Effect::Read, ty, &args);
            let word = |(i, &other): (usize, &Value)| {
                let word = self.b.extract(loaded, i as u32);
                let word = self.b.int_cast(word, register, false);
                self.b.select(pred, word, other)
            };
            return otherwise.iter().enumerate().map(word).collect();
        }
        self.where_holds(pred, &otherwise, |l| {
            let ty = Ty::vector(int_of(words.bits), words.count as u8);
            let align = ty.bits() / 8;
            let loaded = if volatile { l.b.load_volatile(ty, ptr, align) } else { l.b.load(ty, ptr, align) };
            (0..words.count)
                .map(|i| {
                    let word = l.b.extract(loaded, i);
                    l.b.int_cast(word, register, false)
                })
                .collect()
        })
    }

    /// Stores words where `pred` holds.
    pub(super) fn store_words(&mut self, ptr: Value, values: &[Value], words: Words, pred: Option<Value>) {
        let memory = Ty::scalar(int_of(words.bits));
        if let Some(pred) = pred.filter(|&pred| self.is_by_message(ptr, pred))
            && let Some(text) = visa::masked_store(words.bits, words.count)
        {
            let held = if words.bits == 64 { Ty::I64 } else { Ty::I32 };
            let words: Vec<Value> = values.iter().map(|&v| self.b.int_cast(v, held, false)).collect();
            let address = self.b.cast(CastOp::PtrToInt, ptr, Ty::I64);
            let args = [address, self.b.vector(&words), self.b.int_cast(pred, Ty::I32, false)];
            self.b.asm(&text, "rw,rw,rw", Effect::Write, &[], &args);
            return;
        }
        self.where_holds(pred, &[], |l| {
            let words: Vec<Value> = values.iter().map(|&v| l.b.int_cast(v, memory, false)).collect();
            let whole = l.b.vector(&words);
            let align = l.b.ty(whole).bits() / 8;
            l.b.store(ptr, whole, align);
            SmallVec::new()
        });
    }

    /// The upper half of a number; what is no number stays none.
    pub(super) fn bf16_towards_zero(&mut self, x: Value) -> Value {
        let bits = self.b.bitcast(x, Ty::I32);
        let upper = self.b.lshr(bits, 16);
        let bit = self.b.i32(0x40);
        let quiet = self.b.or(upper, bit);
        let none = self.b.fcmp(FloatPred::Uno, x, x);
        let half = self.b.select(none, quiet, upper);
        let half = self.b.int_cast(half, Ty::I16, false);
        self.b.bitcast(half, Ty::scalar(Scalar::BF16))
    }
}
