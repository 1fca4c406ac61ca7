//! Functions that are written on a [`Recorder`], as instructions of a thread.

use tilewright_libdevice::record::{Binary, Compare, Convert, Recorder, Word};
use tilewright_llvm::{BinOp, CastOp, Effect, FloatPred, IntPred, Scalar, Ty, Value};

use crate::{Hooks, Lower};

fn of_word(word: Word) -> Ty {
    match word {
        Word::I8 => Ty::I8,
        Word::I16 => Ty::I16,
        Word::I32 => Ty::I32,
        Word::I64 => Ty::I64,
        Word::F16 => Ty::F16,
        Word::F32 => Ty::F32,
        Word::F64 => Ty::F64,
    }
}

impl<H: Hooks> Recorder for Lower<'_, H> {
    type Value = Value;

    fn word(&self, x: Value) -> Word {
        let ty = self.b.ty(x);
        match (ty.scalar, ty.bits()) {
            (Scalar::F16, _) => Word::F16,
            (Scalar::F32, _) => Word::F32,
            (Scalar::F64, _) => Word::F64,
            (_, 8) => Word::I8,
            (_, 16) => Word::I16,
            (_, 64) => Word::I64,
            _ => Word::I32,
        }
    }
    fn integer(&mut self, n: i64, ty: Word) -> Value {
        self.b.constant(of_word(ty), n as u64)
    }
    fn number(&mut self, x: f64, ty: Word) -> Value {
        self.b.float(of_word(ty), x)
    }
    fn binary(&mut self, op: Binary, x: Value, y: Value) -> Value {
        let op = match op {
            Binary::Add => BinOp::Add,
            Binary::Sub => BinOp::Sub,
            Binary::Mul => BinOp::Mul,
            Binary::DivU => BinOp::UDiv,
            Binary::RemU => BinOp::URem,
            Binary::And => BinOp::And,
            Binary::Or => BinOp::Or,
            Binary::Xor => BinOp::Xor,
            Binary::Shl => BinOp::Shl,
            Binary::ShrU => BinOp::LShr,
            Binary::ShrS => BinOp::AShr,
            Binary::AddF => BinOp::FAdd,
            Binary::SubF => BinOp::FSub,
            Binary::MulF => return self.fmul(x, y),
            Binary::DivF => BinOp::FDiv,
            Binary::MinF => {
                let ty = self.b.ty(x);
                let name = format!("llvm.minnum.{}", ty.mangled());
                return self.b.intrinsic(&name, Effect::Pure, Some(ty), &[x, y]);
            }
        };
        self.b.bin(op, x, y)
    }
    fn compare(&mut self, how: Compare, x: Value, y: Value) -> Value {
        match how {
            Compare::Eq => self.b.icmp(IntPred::Eq, x, y),
            Compare::LessS => self.b.icmp(IntPred::Slt, x, y),
            Compare::LessU => self.b.icmp(IntPred::Ult, x, y),
            Compare::LessF => self.b.fcmp(FloatPred::Olt, x, y),
            Compare::NotF => self.b.fcmp(FloatPred::Une, x, y),
        }
    }
    fn select(&mut self, truth: Value, yes: Value, no: Value) -> Value {
        self.b.select(truth, yes, no)
    }
    fn convert(&mut self, how: Convert, x: Value, to: Word) -> Value {
        let to = of_word(to);
        match how {
            Convert::Bits => self.b.bitcast(x, to),
            Convert::Low | Convert::Zero => self.b.int_cast(x, to, false),
            Convert::Sign => self.b.int_cast(x, to, true),
            Convert::Whole => self.b.cast(CastOp::FpToSi, x, to),
            Convert::Float => self.b.cast(CastOp::SiToFp, x, to),
            Convert::Round if self.b.ty(x).bits() < to.bits() => self.b.cast(CastOp::FpExt, x, to),
            Convert::Round => self.b.cast(CastOp::FpTrunc, x, to),
        }
    }
    fn magnitude(&mut self, x: Value) -> Value {
        self.llvm_unary("fabs", x)
    }
}
