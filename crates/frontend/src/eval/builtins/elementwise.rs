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

    /// A quotient of floats; `precise` rounds one of float32 as IEEE 754 says.
    pub(super) fn float_division(&mut self, args: &Args, precise: bool) -> Eval<Tensor> {
        let (x, y) =
            self.promote(args.get("x"), args.get("y"), Allow { division: true, ..Allow::default() })?;
        self.float_operands(args, &x)?;
        let mut b = builder!(self);
        let value = if precise && x.number() == Some(Scalar::Fp32) {
            tt::PreciseDivf::build(&mut b, x.value, y.value).result(b.module)
        } else {
            arith::Divf::build(&mut b, x.value, y.value).result(b.module)
        };
        Ok(Tensor { value, ..x })
    }

    pub(super) fn fma(&mut self, args: &Args) -> Eval<Tensor> {
        let (x, y) = self.promote(args.get("x"), args.get("y"), Allow::default())?;
        let (x, z) = self.promote(&Value::Tensor(x), args.get("z"), Allow::default())?;
        let (z, y) = self.promote(&Value::Tensor(z), &Value::Tensor(y), Allow::default())?;
        self.float_operands(args, &x)?;
        let value = math::Fma::build(&mut builder!(self), x.value, y.value, z.value).result(&self.module);
        Ok(Tensor { value, ..x })
    }

    pub(super) fn umulhi(&mut self, args: &Args) -> Eval<Tensor> {
        let (x, y) = self.promote(args.get("x"), args.get("y"), Allow::default())?;
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
            // Two constants: the result is a run-time scalar, as any other's.
            let op = if smaller { CmpOp::LtE } else { CmpOp::GtE };
            let take = fold::compare(op, a, b).map_err(|m| self.error(m))?;
            let chosen = Value::Const(if take { a.clone() } else { b.clone() });
            return self.tensor_of(&chosen);
        }
        let (x, y) = self.promote(args.get("x"), args.get("y"), Allow::default())?;
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

    pub(super) fn clamp(&mut self, args: &Args) -> Eval<Tensor> {
        let nan = self.propagates_nan(args)?;
        let (low, high) = self.promote(args.get("min"), args.get("max"), Allow::default())?;
        let (x, low) = self.promote(args.get("x"), &Value::Tensor(low), Allow::default())?;
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
