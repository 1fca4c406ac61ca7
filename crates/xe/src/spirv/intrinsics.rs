//! What has a name: instructions of the lowering's own, LLVM's intrinsics, and calls.

use rspirv::dr::Operand;
use rspirv::grammar::OpenCLStd100InstructionTable;
use rspirv::spirv::{BuiltIn, CLOp, Capability, Decoration, FPRoundingMode, GroupOperation, Op, Word};
use tilewright_llvm::view::Instruction;
use tilewright_llvm::{Effect, FloatPred, Op as Llvm, Scalar, Ty, Value};

use super::Result;
use super::function::Body;
use super::memory::{ACQUIRE_RELEASE, OF_ALL, OF_SUB_GROUP, OF_WORK_GROUP, SUB_GROUP, WORK_GROUP};

/// The function of `OpenCL.std` of a name.
fn function(name: &str) -> Option<CLOp> {
    CLOp::from_u32(OpenCLStd100InstructionTable::iter().find(|f| f.opname == name)?.opcode)
}

/// The function that an intrinsic of LLVM is.
fn of_llvm(name: &str) -> Option<CLOp> {
    Some(match name {
        "abs" => CLOp::s_abs,
        "ceil" => CLOp::ceil,
        "copysign" => CLOp::copysign,
        "ctlz" => CLOp::clz,
        "fabs" => CLOp::fabs,
        "floor" => CLOp::floor,
        "fma" => CLOp::fma,
        "maximum" | "maxnum" => CLOp::fmax,
        "minimum" | "minnum" => CLOp::fmin,
        "rint" | "roundeven" => CLOp::rint,
        "smax" => CLOp::s_max,
        "smin" => CLOp::s_min,
        "sqrt" => CLOp::sqrt,
        "trunc" => CLOp::trunc,
        "umax" => CLOp::u_max,
        "umin" => CLOp::u_min,
        _ => return None,
    })
}

/// The built-in variable of a name.
fn builtin(name: &str) -> Option<BuiltIn> {
    Some(match name {
        "LocalInvocationId" => BuiltIn::LocalInvocationId,
        "WorkgroupId" => BuiltIn::WorkgroupId,
        "NumWorkgroups" => BuiltIn::NumWorkgroups,
        _ => return None,
    })
}

impl Body<'_, '_> {
    pub(super) fn intrinsic(&mut self, inst: &Instruction<'_>) -> Result<()> {
        let name = self.view.text(inst.op).unwrap_or_default();
        let unknown = || format!("the instruction `{name}`");
        if name == "llvm.assume" {
            return Ok(());
        }
        if name.starts_with("__builtin_") || name.starts_with("llvm.genx.") {
            return self.imported(inst, name);
        }
        if let Some(rest) = name.strip_prefix("xe.atomic.") {
            return self.atomic(inst, rest);
        }
        if let Some(rest) = name.strip_prefix("xe.fence.") {
            return self.fence(rest);
        }
        if name == "xe.barrier" || name == "xe.warp_barrier" {
            return self.barrier(name == "xe.barrier");
        }
        if name == "xe.barrier_wait" {
            return self.barrier_wait();
        }
        let Some(result) = inst.results().next() else { return Err(unknown()) };
        let ty = self.view.ty(result);
        let args = self.values(inst.args)?;
        let made = if let Some(variable) = name.strip_prefix("xe.id.") {
            self.id(variable)?
        } else if let Some(name) = name.strip_prefix("xe.cl.") {
            let function = function(name).ok_or_else(unknown)?;
            self.extended(function, ty, &args)?
        } else if let Some(name) = name.strip_prefix("xe.rtz.") {
            self.towards_zero(name, ty, &args)?
        } else if let Some(name) = name.strip_prefix("xe.reduce.") {
            self.reduce(name, ty, args[0])?
        } else if name == "xe.shuffle" || name == "xe.shuffle_xor" {
            self.e.extension("SPV_INTEL_subgroups");
            self.e.needs(Capability::SubgroupShuffleINTEL);
            let xor = name == "xe.shuffle_xor";
            let op = if xor { Op::SubgroupShuffleXorINTEL } else { Op::SubgroupShuffleINTEL };
            self.op(op, ty, &args)?
        } else if let Some(name) = name.strip_prefix("llvm.") {
            let name = name.split('.').next().unwrap_or_default();
            self.llvm(name, ty, &args).transpose().ok_or_else(unknown)??
        } else {
            return Err(unknown());
        };
        self.define(result, made)
    }

    /// What the launch says: `NAME.AXIS`.
    fn id(&mut self, name: &str) -> Result<Word> {
        let (name, axis) = name.split_once('.').unwrap_or((name, "x"));
        let variable = builtin(name).ok_or_else(|| format!("the variable `{name}`"))?;
        let (variable, ty) = self.e.builtin(variable)?;
        let all = self.op(Op::Load, ty, &[variable])?;
        let at = ["x", "y", "z"].iter().position(|&a| a == axis).unwrap_or(0);
        let one = self.element(all, ty.element(), at)?;
        self.op(Op::UConvert, Ty::I32, &[one])
    }

    fn extended(&mut self, function: CLOp, ty: Ty, args: &[Word]) -> Result<Word> {
        let mut operands = vec![Operand::IdRef(self.e.cl), Operand::LiteralExtInstInteger(function as u32)];
        operands.extend(args.iter().map(|&id| Operand::IdRef(id)));
        self.op_with(Op::ExtInst, ty, operands)
    }

    /// An operation on the numbers of all lanes.
    fn reduce(&mut self, name: &str, ty: Ty, value: Word) -> Result<Word> {
        let op = match name {
            "GroupFAdd" => Op::GroupFAdd,
            "GroupFMax" => Op::GroupFMax,
            "GroupFMin" => Op::GroupFMin,
            "GroupIAdd" => Op::GroupIAdd,
            "GroupSMax" => Op::GroupSMax,
            "GroupSMin" => Op::GroupSMin,
            "GroupUMax" => Op::GroupUMax,
            "GroupUMin" => Op::GroupUMin,
            _ => return Err(format!("the reduction `{name}`")),
        };
        self.e.needs(Capability::Groups);
        let scope = self.e.number(SUB_GROUP)?;
        let operands = vec![
            Operand::IdScope(scope),
            Operand::GroupOperation(GroupOperation::Reduce),
            Operand::IdRef(value),
        ];
        self.op_with(op, ty, operands)
    }

    fn towards_zero(&mut self, name: &str, ty: Ty, args: &[Word]) -> Result<Word> {
        let op = match name {
            "FConvert" => Op::FConvert,
            "ConvertSToF" => Op::ConvertSToF,
            _ => Op::ConvertUToF,
        };
        let made = self.op(op, ty, args)?;
        let mode = [Operand::FPRoundingMode(FPRoundingMode::RTZ)];
        self.e.out.decorate(made, Decoration::FPRoundingMode, mode);
        Ok(made)
    }

    /// An intrinsic of LLVM, if it is one of those that are known.
    fn llvm(&mut self, name: &str, ty: Ty, args: &[Word]) -> Result<Option<Word>> {
        if ty.scalar == Scalar::BF16 {
            let single = ty.with(Scalar::F32);
            let args = args.iter().map(|&x| self.widened(ty, x)).collect::<Result<Vec<_>>>()?;
            let Some(made) = self.llvm(name, single, &args)? else { return Ok(None) };
            return self.narrowed(single, made).map(Some);
        }
        Ok(Some(match name {
            "ctpop" => self.op(Op::BitCount, ty, args)?,
            "fshl" => self.funnel(ty, args)?,
            // What they say of zero and of the least number is not said here.
            "abs" | "ctlz" => self.extended(of_llvm(name).unwrap_or(CLOp::clz), ty, &args[..1])?,
            "maximum" | "minimum" => {
                let function = if name == "maximum" { CLOp::fmax } else { CLOp::fmin };
                let number = self.extended(function, ty, args)?;
                let truth = ty.with(Scalar::I1);
                let none = self.pure(Llvm::FCmp(FloatPred::Uno), truth, &[ty, ty], args)?;
                let sum = self.op(Op::FAdd, ty, args)?;
                self.select(ty, &[none, sum, number])?
            }
            _ => match of_llvm(name) {
                Some(function) => self.extended(function, ty, args)?,
                None => return Ok(None),
            },
        }))
    }

    /// The upper half of two words beside each other, shifted to the left.
    fn funnel(&mut self, ty: Ty, args: &[Word]) -> Result<Word> {
        let bits = u64::from(ty.scalar.bits());
        let (last, one) = (self.e.constant(ty, bits - 1)?, self.e.constant(ty, 1)?);
        let by = self.op(Op::BitwiseAnd, ty, &[args[2], last])?;
        let high = self.op(Op::ShiftLeftLogical, ty, &[args[0], by])?;
        // In two steps, of which none is as far as the word is wide.
        let rest = self.op(Op::ISub, ty, &[last, by])?;
        let low = self.op(Op::ShiftRightLogical, ty, &[args[1], one])?;
        let low = self.op(Op::ShiftRightLogical, ty, &[low, rest])?;
        self.op(Op::BitwiseOr, ty, &[high, low])
    }

    /// Waits for the work group, or for the sub-group: their writes are seen behind it.
    fn barrier(&mut self, group: bool) -> Result<()> {
        let scope = if group { WORK_GROUP } else { SUB_GROUP };
        let memory = if group { OF_WORK_GROUP } else { OF_SUB_GROUP | OF_WORK_GROUP };
        let order = self.e.number(ACQUIRE_RELEASE | memory | OF_ALL)?;
        let scope = self.e.number(scope)?;
        let operands =
            vec![Operand::IdScope(scope), Operand::IdScope(scope), Operand::IdMemorySemantics(order)];
        self.act(Op::ControlBarrier, operands);
        Ok(())
    }

    /// Waits until the work group has arrived: the second half of a split barrier, which orders no memory. (Its first half would be two instructions more in each iteration
    /// than [`ARRIVE`](crate::visa::ARRIVE), whose words a loop does not make anew.)
    fn barrier_wait(&mut self) -> Result<()> {
        self.e.needs(Capability::SplitBarrierINTEL);
        self.e.extension("SPV_INTEL_split_barrier");
        let (scope, order) = (self.e.number(WORK_GROUP)?, self.e.number(0)?);
        let operands =
            vec![Operand::IdScope(scope), Operand::IdScope(scope), Operand::IdMemorySemantics(order)];
        self.act(Op::ControlBarrierWaitINTEL, operands);
        Ok(())
    }

    /// Inline assembly, in vISA.
    pub(super) fn assembly(&mut self, inst: &Instruction<'_>) -> Result<()> {
        let params: Vec<Ty> = inst.args.iter().map(|&v| self.view.ty(v)).collect();
        let results: Vec<Value> = inst.results().collect();
        let ty = results.first().map(|&v| self.view.ty(v));
        let text = (self.view.text(inst.op).unwrap_or_default(), self.view.constraints(inst.op));
        let assembly = self.e.assembly(text, &params, ty, inst.effect != Effect::Pure)?;
        let operands: Vec<Operand> =
            [assembly].into_iter().chain(self.values(inst.args)?).map(Operand::IdRef).collect();
        let (made, result) = match ty {
            Some(ty) => (self.op_with(Op::AsmCallINTEL, ty, operands)?, results[0]),
            None => {
                let none = self.e.out.type_void();
                self.op_of(Op::AsmCallINTEL, none, operands);
                return Ok(());
            }
        };
        self.define(result, made)
    }

    fn imported(&mut self, inst: &Instruction<'_>, name: &str) -> Result<()> {
        let params: Vec<Ty> = inst.args.iter().map(|&v| self.view.ty(v)).collect();
        let result = inst.results().next();
        let ty = result.map(|v| self.view.ty(v));
        let function = self.e.import(name, &params, ty)?;
        self.call_of(function, inst, ty.as_slice())
    }

    /// A function of the module.
    pub(super) fn call(&mut self, inst: &Instruction<'_>) -> Result<()> {
        let (name, _, results) = self.view.callee(inst.op).unwrap_or_default();
        let known = self.e.functions.get(name).copied();
        let function = known.ok_or_else(|| format!("the function `{name}`"))?;
        self.call_of(function, inst, results)
    }

    fn call_of(&mut self, function: Word, inst: &Instruction<'_>, results: &[Ty]) -> Result<()> {
        let args = self.values(inst.args)?;
        let operands = [function].into_iter().chain(args).map(Operand::IdRef).collect();
        let ty = self.e.results(results)?;
        let made = self.op_of(Op::FunctionCall, ty, operands);
        for (at, (result, &ty)) in inst.results().zip(results).enumerate() {
            let one = if results.len() == 1 { made } else { self.element(made, ty, at)? };
            self.define(result, one)?;
        }
        Ok(())
    }
}
