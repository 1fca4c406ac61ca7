//! Elementwise functions.

use ruff_python_ast::{CmpOp, Operator};
use tilewright_ir as ir;
use tilewright_ir::Builder;
use tilewright_ir::dialect::{arith, math, tt};

use super::super::call::Args;
use super::super::semantic::Allow;
use super::super::{Eval, Evaluator, builder};
use crate::dtype::Scalar;
use crate::fold;
use crate::host::HostValue;
use crate::value::{Tensor, Value};

/// The floats that a function takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Widths {
    /// float32 and float64.
    Wide,
    /// Those, float16 and bfloat16.
    Every,
}

/// Emits an operation with one operand.
pub(super) type Build = fn(&mut Builder<'_>, ir::Value) -> ir::Value;

/// Which of two values is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extremum {
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
}

impl Evaluator<'_> {
    /// `tl.add` and its like: the operator, with overflow checked as asked.
    pub(super) fn plain_arithmetic(&mut self, args: &Args, op: Operator) -> Eval<Value> {
        let before = self.sanitize_overflow;
        self.sanitize_overflow &= self.bool_arg(args, "sanitize_overflow")?;
        let result = self.binary(op, args.get("x").clone(), args.get("y").clone());
        self.sanitize_overflow = before;
        result
    }

    pub(super) fn logical(&mut self, args: &Args, op: Operator) -> Eval<Tensor> {
        let (x, y) = (self.tensor_arg(args, "input")?, self.tensor_arg(args, "other")?);
        let (x, y) = (Value::Tensor(self.truth_of(&x)?), Value::Tensor(self.truth_of(&y)?));
        self.tensor_binary(op, &x, &y)
    }

    /// An operation with one float operand and a result of its type.
    pub(super) fn float_function(&mut self, args: &Args, widths: Widths, build: Build) -> Eval<Tensor> {
        let x = self.float_arg(args, "x", widths)?;
        let value = build(&mut builder!(self), x.value);
        Ok(Tensor { value, ..x })
    }

    pub(super) fn sqrt_rn(&mut self, args: &Args) -> Eval<Tensor> {
        let x = self.float_arg(args, "x", Widths::Wide)?;
        let mut b = builder!(self);
        let value = match x.number() {
            Some(Scalar::Fp64) => math::Sqrt::build(&mut b, x.value).result(b.module),
            _ => tt::PreciseSqrt::build(&mut b, x.value).result(b.module),
        };
        Ok(Tensor { value, ..x })
    }

    pub(super) fn abs(&mut self, args: &Args) -> Eval<Tensor> {
        let x = self.tensor_arg(args, "x")?;
        let mut b = builder!(self);
        match x.number() {
            Some(s) if s.is_fp8() => {
                // The sign is the highest bit.
                let bits = self.bitcast(&x, &Scalar::Int8.into())?;
                let mask = Value::int(0x7f);
                let bits = self.tensor_binary(Operator::BitAnd, &Value::Tensor(bits), &mask)?;
                self.bitcast(&bits, &s.into())
            }
            Some(s) if s.is_float() => {
                let value = math::Absf::build(&mut b, x.value).result(b.module);
                Ok(Tensor { value, ..x })
            }
            Some(s) if s.is_signed() => {
                let value = math::Absi::build(&mut b, x.value).result(b.module);
                Ok(Tensor { value, ..x })
            }
            Some(_) => Ok(x),
            None => Err(self.error(format!("a pointer ({}) has no absolute value", x.ty()))),
        }
    }

    /// A quotient of floats; `precise` rounds one of float32 as IEEE 754 says. Of two halves it is a half, though computed in float32.
    pub(super) fn float_division(&mut self, args: &Args, precise: bool) -> Eval<Tensor> {
        let halves = match (args.get("x"), args.get("y")) {
            (Value::Tensor(x), Value::Tensor(y)) if x.dtype == y.dtype => {
                x.number().filter(|s| matches!(s, Scalar::Fp16 | Scalar::Bf16))
            }
            _ => None,
        };
        let (x, y) =
            self.promote(args.get("x"), args.get("y"), Allow { division: true, ..Allow::default() })?;
        self.float_operands(args, &x)?;
        let mut b = builder!(self);
        let value = if precise && x.number() == Some(Scalar::Fp32) {
            tt::PreciseDivf::build(&mut b, x.value, y.value).result(b.module)
        } else {
            arith::Divf::build(&mut b, x.value, y.value).result(b.module)
        };
        let quotient = Tensor { value, ..x };
        match halves {
            Some(half) => self.cast(&quotient, &half.into()),
            None => Ok(quotient),
        }
    }

    pub(super) fn fma(&mut self, args: &Args) -> Eval<Tensor> {
        let (x, y) = self.promote_values(args.get("x"), args.get("y"))?;
        let (x, z) = self.promote_values(&Value::Tensor(x), args.get("z"))?;
        let (z, y) = self.promote(&Value::Tensor(z), &Value::Tensor(y), Allow::default())?;
        self.float_operands(args, &x)?;
        let value = math::Fma::build(&mut builder!(self), x.value, y.value, z.value).result(&self.module);
        Ok(Tensor { value, ..x })
    }

    pub(super) fn umulhi(&mut self, args: &Args) -> Eval<Tensor> {
        let (x, y) = self.promote_values(args.get("x"), args.get("y"))?;
        if !x.number().is_some_and(|s| s.is_int() && s.bits() >= 32) {
            return Err(self.error(format!("tl.umulhi needs integers of 32 or 64 bits, not {}", x.ty())));
        }
        let value = tt::Mulhiui::build(&mut builder!(self), x.value, y.value).result(&self.module);
        Ok(Tensor { value, ..x })
    }

    /// A float argument; the wide ones only, unless 16-bit ones are allowed. Integers and 16-bit floats get a hint.
    fn float_arg(&mut self, args: &Args, name: &str, widths: Widths) -> Eval<Tensor> {
        let x = self.tensor_arg(args, name)?;
        let ok = match x.number() {
            Some(Scalar::Fp32 | Scalar::Fp64) => true,
            Some(Scalar::Fp16 | Scalar::Bf16) => widths == Widths::Every,
            _ => false,
        };
        if !ok {
            let expected = match widths {
                Widths::Every => "a float",
                Widths::Wide => "float32 or float64",
            };
            return Err(self
                .error(format!("{} needs {expected}, not {}", args.builtin.shown(), x.ty()))
                .note("convert with .to(tl.float32)")
                .into());
        }
        Ok(x)
    }

    fn float_operands(&mut self, args: &Args, x: &Tensor) -> Eval<()> {
        if x.number().is_some_and(Scalar::is_float) {
            return Ok(());
        }
        Err(self
            .error(format!("{} needs floats, not {}", args.builtin.shown(), x.ty()))
            .note("convert with .to(tl.float32)")
            .into())
    }

    fn propagates_nan(&mut self, args: &Args) -> Eval<bool> {
        match args.get("propagate_nan") {
            Value::Const(HostValue::Int(0) | HostValue::None) => Ok(false),
            Value::Const(HostValue::Int(0xffff)) => Ok(true),
            other => Err(self.bad_argument(
                args,
                "propagate_nan",
                other,
                "tl.PropagateNan.NONE or tl.PropagateNan.ALL",
            )),
        }
    }

    pub(super) fn min_max(&mut self, args: &Args, which: Extremum) -> Eval<Tensor> {
        let smaller = which == Extremum::Min;
        let nan = self.propagates_nan(args)?;
        if let (Value::Const(a), Value::Const(b)) = (args.get("x"), args.get("y")) {
            return self.extremum_of_constants(a, b, which);
        }
        let (x, y) = (self.without_bfloat16(args.get("x"))?, self.without_bfloat16(args.get("y"))?);
        let (x, y) = self.promote(&x, &y, Allow::default())?;
        let mut b = builder!(self);
        let (u, v) = (x.value, y.value);
        let value = match x.number() {
            Some(s) if s.is_float() => match (smaller, nan) {
                (true, true) => arith::Minimumf::build(&mut b, u, v).result(b.module),
                (true, false) => arith::Minnumf::build(&mut b, u, v).result(b.module),
                (false, true) => arith::Maximumf::build(&mut b, u, v).result(b.module),
                (false, false) => arith::Maxnumf::build(&mut b, u, v).result(b.module),
            },
            Some(s) if s.is_signed() => match smaller {
                true => arith::Minsi::build(&mut b, u, v).result(b.module),
                false => arith::Maxsi::build(&mut b, u, v).result(b.module),
            },
            Some(_) => match smaller {
                true => arith::Minui::build(&mut b, u, v).result(b.module),
                false => arith::Maxui::build(&mut b, u, v).result(b.module),
            },
            None => {
                let name = &args.builtin.name;
                return Err(self.error(format!("tl.{name} does not take pointers ({})", x.ty())));
            }
        };
        Ok(Tensor { value, ..x })
    }

    /// The smaller or larger one of two constants: a run-time scalar, as any other result, of the type that both have in common.
    fn extremum_of_constants(&mut self, a: &HostValue, b: &HostValue, which: Extremum) -> Eval<Tensor> {
        let op = if which == Extremum::Min { CmpOp::LtE } else { CmpOp::GtE };
        let take = fold::compare(op, a, b).map_err(|m| self.error(m))?;
        let mut number = |constant: &HostValue| -> Eval<Option<Scalar>> {
            let value = self.tensor_of(&Value::Const(constant.clone()))?;
            self.erase_unused(value.value);
            Ok(value.number())
        };
        let chosen = if take { a } else { b };
        match (number(a)?, number(b)?) {
            (Some(m), Some(n)) => {
                let ty = self.computation_type(m, n, (false, false), false)?;
                self.scalar_constant(chosen, &ty.into())
            }
            _ => self.tensor_of(&Value::Const(chosen.clone())),
        }
    }

    /// A value, a constant too, as one of run time; what is bfloat16 as float32, in which Triton takes the larger of two.
    fn without_bfloat16(&mut self, value: &Value) -> Eval<Value> {
        let value = self.tensor_of(value)?;
        match value.number() {
            Some(Scalar::Bf16) => self.cast(&value, &Scalar::Fp32.into()).map(Value::Tensor),
            _ => Ok(Value::Tensor(value)),
        }
    }

    pub(super) fn clamp(&mut self, args: &Args) -> Eval<Tensor> {
        let nan = self.propagates_nan(args)?;
        let [x, low, high] = ["x", "min", "max"].map(|name| args.get(name));
        let (low, high) = (self.without_bfloat16(low)?, self.without_bfloat16(high)?);
        let (low, high) = self.promote(&low, &high, Allow::default())?;
        let x = self.without_bfloat16(x)?;
        let (x, low) = self.promote(&x, &Value::Tensor(low), Allow::default())?;
        let (x, high) = self.promote(&Value::Tensor(x), &Value::Tensor(high), Allow::default())?;
        let (x, low) = self.promote(&Value::Tensor(x), &Value::Tensor(low), Allow::default())?;
        self.float_operands(args, &x)?;
        let value =
            tt::Clampf::build(&mut builder!(self), x.value, low.value, high.value, nan).result(&self.module);
        Ok(Tensor { value, ..x })
    }

    pub(super) fn where_(&mut self, args: &Args) -> Eval<Tensor> {
        let condition = self.tensor_arg(args, "condition")?;
        if condition.dtype != Scalar::Int1.into() {
            self.warn(&format!(
                "the condition of tl.where is {}, of which what is not 0 is taken for true",
                condition.ty()
            ));
        }
        let condition = self.truth_of(&condition)?;
        let (x, y) = self.promote(
            args.get("x"),
            args.get("y"),
            Allow { left_pointer: true, right_pointer: true, division: false },
        )?;
        if x.dtype != y.dtype {
            return Err(self.error(format!(
                "tl.where chooses between {} and {}, which differ in type",
                x.ty(),
                y.ty()
            )));
        }
        let (condition, x, y) = if condition.is_block() {
            let (condition, x) = self.broadcast(&condition, &x)?;
            let (x, y) = self.broadcast(&x, &y)?;
            let (condition, x) = self.broadcast(&condition, &x)?;
            (condition, x, y)
        } else {
            (condition, x, y)
        };
        let value =
            arith::Select::build(&mut builder!(self), condition.value, x.value, y.value).result(&self.module);
        Ok(Tensor { value, ..x })
    }
}
