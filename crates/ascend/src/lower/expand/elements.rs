//! Functions that are written on a [`Recorder`], as operations on all elements of tensors, or on numbers.

use tilewright_ir::dialect::{arith, math};
use tilewright_ir::{Builder, Type, Value};
use tilewright_libdevice::record::{Binary, Compare, Convert, Recorder, Word};

/// Operations in front of one, on values of its result's shape.
pub(super) struct Elements<'m> {
    pub b: Builder<'m>,
    /// A type of that shape.
    pub like: Type,
}

impl Elements<'_> {
    /// The type of that shape with other elements.
    pub fn of(&mut self, element: Type) -> Type {
        self.b.module.with_element(self.like, element)
    }

    fn element(&self, x: Value) -> Type {
        self.b.module.element_type(self.b.module.value_type(x))
    }
}

/// The IR's type of a recorder's.
pub(super) fn of_word(word: Word) -> Type {
    match word {
        Word::I8 => Type::I8,
        Word::I16 => Type::I16,
        Word::I32 => Type::I32,
        Word::I64 => Type::I64,
        Word::F16 => Type::F16,
        Word::F32 => Type::F32,
        Word::F64 => Type::F64,
    }
}

impl Recorder for Elements<'_> {
    type Value = Value;

    fn word(&self, x: Value) -> Word {
        match self.element(x) {
            Type::I8 => Word::I8,
            Type::I16 => Word::I16,
            Type::I64 => Word::I64,
            Type::F16 => Word::F16,
            Type::F32 => Word::F32,
            Type::F64 => Word::F64,
            _ => Word::I32,
        }
    }
    fn integer(&mut self, n: i64, ty: Word) -> Value {
        let ty = self.of(of_word(ty));
        self.b.int(n, ty)
    }
    fn number(&mut self, x: f64, ty: Word) -> Value {
        let ty = self.of(of_word(ty));
        self.b.float(x, ty)
    }
    fn binary(&mut self, op: Binary, x: Value, y: Value) -> Value {
        let b = &mut self.b;
        match op {
            Binary::Add => arith::Addi::build(b, x, y).result(b.module),
            Binary::Sub => arith::Subi::build(b, x, y).result(b.module),
            Binary::Mul => arith::Muli::build(b, x, y).result(b.module),
            Binary::DivU => arith::Divui::build(b, x, y).result(b.module),
            Binary::RemU => arith::Remui::build(b, x, y).result(b.module),
            Binary::And => arith::Andi::build(b, x, y).result(b.module),
            Binary::Or => arith::Ori::build(b, x, y).result(b.module),
            Binary::Xor => arith::Xori::build(b, x, y).result(b.module),
            Binary::Shl => arith::Shli::build(b, x, y).result(b.module),
            Binary::ShrU => arith::Shrui::build(b, x, y).result(b.module),
            Binary::ShrS => arith::Shrsi::build(b, x, y).result(b.module),
            Binary::AddF => arith::Addf::build(b, x, y).result(b.module),
            Binary::SubF => arith::Subf::build(b, x, y).result(b.module),
            Binary::MulF => arith::Mulf::build(b, x, y).result(b.module),
            Binary::DivF => arith::Divf::build(b, x, y).result(b.module),
            Binary::MinF => arith::Minnumf::build(b, x, y).result(b.module),
        }
    }
    fn compare(&mut self, how: Compare, x: Value, y: Value) -> Value {
        let truth = self.of(Type::I1);
        let b = &mut self.b;
        let mut integers = |how| arith::Cmpi::build(b, x, y, how, truth).result(b.module);
        match how {
            Compare::Eq => integers(arith::CmpIPredicate::Eq),
            Compare::LessS => integers(arith::CmpIPredicate::Slt),
            Compare::LessU => integers(arith::CmpIPredicate::Ult),
            Compare::LessF => arith::Cmpf::build(b, x, y, arith::CmpFPredicate::Olt, truth).result(b.module),
            Compare::NotF => arith::Cmpf::build(b, x, y, arith::CmpFPredicate::Une, truth).result(b.module),
        }
    }
    fn select(&mut self, truth: Value, yes: Value, no: Value) -> Value {
        arith::Select::build(&mut self.b, truth, yes, no).result(self.b.module)
    }
    fn convert(&mut self, how: Convert, x: Value, to: Word) -> Value {
        let wider = to.bits() > self.word(x).bits();
        let to = of_word(to);
        if self.element(x) == to {
            return x;
        }
        let ty = self.of(to);
        let b = &mut self.b;
        match how {
            Convert::Bits => arith::Bitcast::build(b, x, ty).out(b.module),
            Convert::Low => arith::Trunci::build(b, x, ty).out(b.module),
            Convert::Zero => arith::Extui::build(b, x, ty).out(b.module),
            Convert::Sign => arith::Extsi::build(b, x, ty).out(b.module),
            Convert::Whole => arith::Fptosi::build(b, x, ty).out(b.module),
            Convert::Float => arith::Sitofp::build(b, x, ty).out(b.module),
            Convert::Round if wider => arith::Extf::build(b, x, ty).out(b.module),
            Convert::Round => arith::Truncf::build(b, x, ty).out(b.module),
        }
    }
    fn magnitude(&mut self, x: Value) -> Value {
        if self.b.module.is_tensor(self.like) {
            return math::Absf::build(&mut self.b, x).result(self.b.module);
        }
        // (The scalar unit has no such instruction.)
        let word = self.word(x);
        let all = self.convert(Convert::Bits, x, word.whole());
        let magnitude = self.with(Binary::And, all, i64::MAX >> (64 - word.bits()));
        self.convert(Convert::Bits, magnitude, word)
    }
}
