//! Accesses to memory, and the conversions that there are no instructions for.
//!
//! A predicated access stands in a branch: SPIR-V has no other, and Intel's compiler makes a predicate of a short branch.

use smallvec::SmallVec;
use tilewright_llvm::{FloatPred, Scalar, Ty, Value};
use tilewright_lower::{WordValues, Words, int_of};

use super::Lower;

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
