//! Arithmetic, comparisons, conversions and vectors.

use rspirv::dr::Operand;
use rspirv::spirv::{Op, Word};
use tilewright_llvm::view::Instruction;
use tilewright_llvm::{self as llvm, BinOp, CastOp, FloatPred, IntPred, Scalar, Ty, Value};

use super::Result;
use super::function::Body;
use super::types::held;

/// The operation on numbers; truth values have others.
fn binary(op: BinOp) -> Op {
    match op {
        BinOp::Add => Op::IAdd,
        BinOp::Sub => Op::ISub,
        BinOp::Mul => Op::IMul,
        BinOp::UDiv => Op::UDiv,
        BinOp::SDiv => Op::SDiv,
        BinOp::URem => Op::UMod,
        BinOp::SRem => Op::SRem,
        BinOp::And => Op::BitwiseAnd,
        BinOp::Or => Op::BitwiseOr,
        BinOp::Xor => Op::BitwiseXor,
        BinOp::Shl => Op::ShiftLeftLogical,
        BinOp::LShr => Op::ShiftRightLogical,
        BinOp::AShr => Op::ShiftRightArithmetic,
        BinOp::FAdd => Op::FAdd,
        BinOp::FSub => Op::FSub,
        BinOp::FMul => Op::FMul,
        BinOp::FDiv => Op::FDiv,
        BinOp::FRem => Op::FRem,
    }
}

fn int_comparison(pred: IntPred) -> Op {
    match pred {
        IntPred::Eq => Op::IEqual,
        IntPred::Ne => Op::INotEqual,
        IntPred::Ugt => Op::UGreaterThan,
        IntPred::Uge => Op::UGreaterThanEqual,
        IntPred::Ult => Op::ULessThan,
        IntPred::Ule => Op::ULessThanEqual,
        IntPred::Sgt => Op::SGreaterThan,
        IntPred::Sge => Op::SGreaterThanEqual,
        IntPred::Slt => Op::SLessThan,
        IntPred::Sle => Op::SLessThanEqual,
    }
}

fn float_comparison(pred: FloatPred) -> Op {
    match pred {
        FloatPred::Oeq => Op::FOrdEqual,
        FloatPred::Ogt => Op::FOrdGreaterThan,
        FloatPred::Oge => Op::FOrdGreaterThanEqual,
        FloatPred::Olt => Op::FOrdLessThan,
        FloatPred::Ole => Op::FOrdLessThanEqual,
        FloatPred::One => Op::FOrdNotEqual,
        FloatPred::Ord => Op::Ordered,
        FloatPred::Ueq => Op::FUnordEqual,
        FloatPred::Ugt => Op::FUnordGreaterThan,
        FloatPred::Uge => Op::FUnordGreaterThanEqual,
        FloatPred::Ult => Op::FUnordLessThan,
        FloatPred::Ule => Op::FUnordLessThanEqual,
        FloatPred::Une => Op::FUnordNotEqual,
        FloatPred::Uno => Op::Unordered,
    }
}

fn is_bf16(ty: Ty) -> bool {
    ty.scalar == Scalar::BF16
}

impl Body<'_, '_> {
    /// Writes an instruction.
    pub fn instruction(&mut self, inst: &Instruction<'_>) -> Result<()> {
        match inst.op {
            llvm::Op::Store { align, volatile } => return self.store(inst.args, align, volatile),
            llvm::Op::Intrinsic(_) => return self.intrinsic(inst),
            llvm::Op::Call(_) => return self.call(inst),
            llvm::Op::Asm(_) => return self.assembly(inst),
            llvm::Op::Alloca(_) => return Err("memory on the stack".to_string()),
            _ => {}
        }
        let Some(result) = inst.results().next() else { return Ok(()) };
        let ty = self.view.ty(result);
        let types: Vec<Ty> = inst.args.iter().map(|&v| self.view.ty(v)).collect();
        let made = match inst.op {
            llvm::Op::Vector => self.vector_of(inst.args)?,
            llvm::Op::Extract(i) => {
                let vector = self.value(inst.args[0])?;
                self.element(vector, ty, usize::from(i))?
            }
            llvm::Op::Load { align, volatile } => self.load(ty, inst.args[0], align, volatile)?,
            llvm::Op::Global(id) => self.global(id)?,
            op => {
                let args = self.values(inst.args)?;
                self.pure(op, ty, &types, &args)?
            }
        };
        self.define(result, made)
    }

    /// Values in order.
    pub fn values(&mut self, args: &[Value]) -> Result<Vec<Word>> {
        args.iter().map(|&v| self.value(v)).collect()
    }

    /// A vector, which may be parts of another.
    fn vector_of(&mut self, elements: &[Value]) -> Result<Word> {
        let part = |v: Value| match self.view.instruction(v) {
            Some(inst) => match inst.op {
                llvm::Op::Extract(i) => Some((inst.args[0], i)),
                _ => None,
            },
            None => None,
        };
        let parts: Option<Vec<_>> = elements.iter().map(|&v| part(v)).collect();
        let Some(parts) = parts.filter(|p| p.iter().all(|(whole, _)| *whole == p[0].0)) else {
            return self.vector(elements);
        };
        let whole = self.value(parts[0].0)?;
        let ty = Ty::vector(self.view.ty(elements[0]).scalar, elements.len() as u8);
        let mut operands = vec![Operand::IdRef(whole), Operand::IdRef(whole)];
        operands.extend(parts.iter().map(|&(_, i)| Operand::LiteralBit32(u32::from(i))));
        self.op_with(Op::VectorShuffle, ty, operands)
    }

    /// An operation without effects.
    pub fn pure(&mut self, op: llvm::Op, ty: Ty, from: &[Ty], args: &[Word]) -> Result<Word> {
        // bf16 is computed with as fp32.
        let arithmetic =
            matches!(op, llvm::Op::Bin(_) | llvm::Op::Rounded(_) | llvm::Op::FNeg | llvm::Op::FCmp(_));
        if arithmetic && is_bf16(from[0]) {
            let single = from[0].with(Scalar::F32);
            let args = args.iter().map(|&x| self.widened(from[0], x)).collect::<Result<Vec<_>>>()?;
            let result = if is_bf16(ty) { single } else { ty };
            let made = self.pure(op, result, &vec![single; args.len()], &args)?;
            return if is_bf16(ty) { self.narrowed(single, made) } else { Ok(made) };
        }
        match op {
            llvm::Op::Bin(op) if ty.scalar == Scalar::I1 => self.logic(op, ty, args),
            // SPIR-V's kernels cannot say of one operation that it is not to be fused.
            llvm::Op::Bin(op) | llvm::Op::Rounded(op) => self.op(binary(op), ty, args),
            llvm::Op::FNeg => self.op(Op::FNegate, ty, args),
            llvm::Op::ICmp(pred) if from[0].scalar == Scalar::I1 => self.compare_truth(pred, from[0], args),
            llvm::Op::ICmp(pred) => self.op(int_comparison(pred), ty, args),
            llvm::Op::FCmp(pred) => self.op(float_comparison(pred), ty, args),
            llvm::Op::Select => self.select(ty, args),
            llvm::Op::Cast(op) => self.cast(op, from[0], ty, args[0]),
            llvm::Op::PtrAdd => self.op(Op::IAdd, ty, args),
            _ => Err("this instruction".to_string()),
        }
    }

    /// Operations on truth values, as numbers of one bit.
    fn logic(&mut self, op: BinOp, ty: Ty, args: &[Word]) -> Result<Word> {
        match op {
            BinOp::And | BinOp::Mul => self.op(Op::LogicalAnd, ty, args),
            BinOp::Or => self.op(Op::LogicalOr, ty, args),
            BinOp::Xor | BinOp::Add | BinOp::Sub => self.op(Op::LogicalNotEqual, ty, args),
            _ => Err("this operation on truth values".to_string()),
        }
    }

    /// Comparisons of truth values: true is 1 without a sign, and -1 with one.
    fn compare_truth(&mut self, pred: IntPred, ty: Ty, args: &[Word]) -> Result<Word> {
        let (a, b) = (args[0], args[1]);
        let both = |s: &mut Self, a: Word, not_b: Word, op: Op| {
            let inverse = s.op(Op::LogicalNot, ty, &[not_b])?;
            s.op(op, ty, &[a, inverse])
        };
        match pred {
            IntPred::Eq => self.op(Op::LogicalEqual, ty, args),
            IntPred::Ne => self.op(Op::LogicalNotEqual, ty, args),
            IntPred::Ugt | IntPred::Slt => both(self, a, b, Op::LogicalAnd),
            IntPred::Uge | IntPred::Sle => both(self, a, b, Op::LogicalOr),
            IntPred::Ult | IntPred::Sgt => both(self, b, a, Op::LogicalAnd),
            IntPred::Ule | IntPred::Sge => both(self, b, a, Op::LogicalOr),
        }
    }

    /// One of two values.
    pub fn select(&mut self, ty: Ty, args: &[Word]) -> Result<Word> {
        if ty.scalar != Scalar::I1 {
            return self.op(Op::Select, ty, args);
        }
        let yes = self.op(Op::LogicalAnd, ty, &[args[0], args[1]])?;
        let not = self.op(Op::LogicalNot, ty, &[args[0]])?;
        let no = self.op(Op::LogicalAnd, ty, &[not, args[2]])?;
        self.op(Op::LogicalOr, ty, &[yes, no])
    }

    fn cast(&mut self, op: CastOp, from: Ty, to: Ty, x: Word) -> Result<Word> {
        use CastOp::*;
        if from.scalar == Scalar::I1 || to.scalar == Scalar::I1 {
            return self.cast_truth(op, from, to, x);
        }
        match op {
            FpExt if is_bf16(from) => {
                let single = self.widened(from, x)?;
                self.again(Op::FConvert, from.with(Scalar::F32), to, single)
            }
            FpTrunc if is_bf16(to) => {
                let single = self.again(Op::FConvert, from, to.with(Scalar::F32), x)?;
                self.narrowed(to.with(Scalar::F32), single)
            }
            SiToFp | UiToFp if is_bf16(to) => {
                let op = if op == SiToFp { Op::ConvertSToF } else { Op::ConvertUToF };
                let single = self.op(op, to.with(Scalar::F32), &[x])?;
                self.narrowed(to.with(Scalar::F32), single)
            }
            FpToSi | FpToUi if is_bf16(from) => {
                let single = self.widened(from, x)?;
                self.cast(op, from.with(Scalar::F32), to, single)
            }
            Trunc | ZExt => self.again(Op::UConvert, held(from), to, x),
            SExt => self.again(Op::SConvert, held(from), to, x),
            FpTrunc | FpExt => self.op(Op::FConvert, to, &[x]),
            SiToFp => self.op(Op::ConvertSToF, to, &[x]),
            UiToFp => self.op(Op::ConvertUToF, to, &[x]),
            FpToSi => self.op(Op::ConvertFToS, to, &[x]),
            FpToUi => self.op(Op::ConvertFToU, to, &[x]),
            Bitcast => self.again(Op::Bitcast, held(from), to, x),
            PtrToInt | IntToPtr | AddrSpaceCast => self.again(Op::UConvert, held(from), to, x),
        }
    }

    /// An operation, unless it would give what is there.
    fn again(&mut self, op: Op, from: Ty, to: Ty, x: Word) -> Result<Word> {
        if held(from) == held(to) { Ok(x) } else { self.op(op, to, &[x]) }
    }

    /// Conversions from and to truth values.
    fn cast_truth(&mut self, op: CastOp, from: Ty, to: Ty, x: Word) -> Result<Word> {
        use CastOp::*;
        if from == to {
            return Ok(x);
        }
        if to.scalar == Scalar::I1 {
            if op != Trunc {
                return Err("this conversion to truth values".to_string());
            }
            let (one, zero) = (self.e.constant(from, 1)?, self.e.constant(from, 0)?);
            let low = self.op(Op::BitwiseAnd, from, &[x, one])?;
            return self.op(Op::INotEqual, to, &[low, zero]);
        }
        let yes = match (op, to.scalar) {
            (ZExt, _) => 1,
            (SExt, _) => u64::MAX >> (64 - to.scalar.bits()),
            (UiToFp, Scalar::F16) => 0x3c00,
            (UiToFp, Scalar::BF16) => 0x3f80,
            (UiToFp, Scalar::F32) => u64::from(1f32.to_bits()),
            (UiToFp, Scalar::F64) => 1f64.to_bits(),
            _ => return Err("this conversion of truth values".to_string()),
        };
        let (yes, no) = (self.e.constant(to, yes)?, self.e.constant(to, 0)?);
        self.op(Op::Select, to, &[x, yes, no])
    }

    // ---- bf16 ------------------------------------------------------------------------------------------------------

    /// A bf16 number as fp32.
    pub fn widened(&mut self, ty: Ty, x: Word) -> Result<Word> {
        let (wide, single) = (ty.with(Scalar::I32), ty.with(Scalar::F32));
        let bits = self.op(Op::UConvert, wide, &[x])?;
        let by = self.e.constant(wide, 16)?;
        let bits = self.op(Op::ShiftLeftLogical, wide, &[bits, by])?;
        self.op(Op::Bitcast, single, &[bits])
    }

    /// An fp32 number as bf16, to nearest, ties to even; what is no number stays none.
    pub fn narrowed(&mut self, single: Ty, x: Word) -> Result<Word> {
        let (wide, truth) = (single.with(Scalar::I32), single.with(Scalar::I1));
        let constant = |s: &mut Self, n: u64| s.e.constant(wide, n);
        let bits = self.op(Op::Bitcast, wide, &[x])?;
        let (by, one, below) = (constant(self, 16)?, constant(self, 1)?, constant(self, 0x7fff)?);
        let upper = self.op(Op::ShiftRightLogical, wide, &[bits, by])?;
        let odd = self.op(Op::BitwiseAnd, wide, &[upper, one])?;
        let sum = self.op(Op::IAdd, wide, &[bits, below])?;
        let sum = self.op(Op::IAdd, wide, &[sum, odd])?;
        let rounded = self.op(Op::ShiftRightLogical, wide, &[sum, by])?;
        let quiet = constant(self, 0x40)?;
        let none = self.op(Op::BitwiseOr, wide, &[upper, quiet])?;
        let is_none = self.op(Op::Unordered, truth, &[x, x])?;
        let made = self.op(Op::Select, wide, &[is_none, none, rounded])?;
        self.op(Op::UConvert, single.with(Scalar::I16), &[made])
    }
}
