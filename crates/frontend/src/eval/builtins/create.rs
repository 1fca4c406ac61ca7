//! Programs, ranges, constants and casts.

use ruff_python_ast::{Operator, UnaryOp};
use tilewright_ir::dialect::tt;

use super::super::call::Args;
use super::super::semantic::MAX_NUMEL;
use super::super::{Eval, Evaluator, builder};
use crate::dtype::Scalar;
use crate::fold::{self, Num};
use crate::host::HostValue;
use crate::value::{Shape, Tensor, Value};

impl Evaluator<'_> {
    /// The grid's axis that `tl.program_id` and `tl.num_programs` are asked for.
    pub(super) fn grid_axis(&mut self, args: &Args) -> Eval<tt::ProgramDim> {
        Ok(match self.int_arg(args, "axis")? {
            0 => tt::ProgramDim::X,
            1 => tt::ProgramDim::Y,
            2 => tt::ProgramDim::Z,
            other => {
                return Err(
                    self.error(format!("{} axis must be 0, 1, or 2 but got {other}", args.builtin.name))
                );
            }
        })
    }

    pub(super) fn full(&mut self, args: &Args) -> Eval<Tensor> {
        let shape = self.shape_of(args.get("shape"))?;
        let dtype = self.dtype_arg(args, "dtype")?;
        match args.get("value") {
            Value::Tensor(t) => {
                if t.numel() != 1 {
                    return Err(self
                        .error(format!("`value` of tl.full must be one value, not {}", t.ty()))
                        .note("use tl.broadcast_to to repeat a tensor")
                        .into());
                }
                let t = if t.is_block() { self.unsplat(&t.clone()) } else { t.clone() };
                let scalar = self.cast(&t, &dtype)?;
                Ok(self.splat(&scalar, &shape))
            }
            Value::Const(c) => {
                let scalar = self.scalar_constant(&c.clone(), dtype.scalar())?;
                Ok(self.splat_constant(&scalar, &shape))
            }
            other => Err(self.bad_argument(args, "value", other, "a number")),
        }
    }

    pub(super) fn cast_builtin(&mut self, args: &Args) -> Eval<Tensor> {
        let input = self.tensor_arg(args, "input")?;
        let dtype = self.dtype_arg(args, "dtype")?;
        if self.bool_arg(args, "bitcast")? {
            return self.bitcast(&input, &dtype);
        }
        let rounding = self.choice(
            args,
            "fp_downcast_rounding",
            &[("", None), ("rtne", Some(tt::RoundingMode::Rtne)), ("rtz", Some(tt::RoundingMode::Rtz))],
        )?;
        self.cast_rounding(&input, &dtype, rounding)
    }

    /// Of the package itself, on constants or on values.
    pub(super) fn cdiv(&mut self, args: &Args) -> Eval<Value> {
        match (args.get("x"), args.get("y")) {
            (x @ Value::Const(_), y @ Value::Const(_)) => {
                // -(-x // y)
                let (x, y) = (x.clone(), y.clone());
                let negative = self.unary(UnaryOp::USub, x)?;
                let quotient = self.binary(Operator::FloorDiv, negative, y)?;
                self.unary(UnaryOp::USub, quotient)
            }
            (x, y) => self.call_library("cdiv", vec![x.clone(), y.clone()]),
        }
    }

    pub(super) fn next_power_of_2(&mut self, args: &Args) -> Eval<Value> {
        match args.get("n") {
            Value::Const(c) => match fold::number(c) {
                Some(Num::Int(n)) if (0..1 << 62).contains(&n) => {
                    Ok(Value::int((n.max(1) as u64).next_power_of_two()))
                }
                _ => Err(self.bad_argument(args, "n", args.get("n"), "a non-negative integer")),
            },
            value => Err(self.needs_constexpr(value, "`n` of next_power_of_2")),
        }
    }

    pub(super) fn arange(&mut self, args: &Args) -> Eval<Tensor> {
        let (start, end) = (self.int_arg(args, "start")?, self.int_arg(args, "end")?);
        let (Ok(first), Ok(last)) = (i32::try_from(start), i32::try_from(end)) else {
            return Err(self.error(format!("the bounds of tl.arange ({start}, {end}) must fit in int32")));
        };
        if end <= start {
            return Err(
                self.error(format!("tl.arange({start}, {end}) is empty: `end` must be larger than `start`"))
            );
        }
        if (end - start) as u64 > MAX_NUMEL {
            return Err(self.error(format!(
                "tl.arange({start}, {end}) has {} elements; the limit is {MAX_NUMEL}",
                end - start
            )));
        }
        let shape = Shape::from_slice(&[(end - start) as u32]);
        let ty = self.ir_type(&Scalar::Int32.into(), &shape);
        let value = tt::MakeRange::build(&mut builder!(self), last, first, ty).result(&self.module);
        Ok(Tensor { value, dtype: Scalar::Int32.into(), shape })
    }

    /// [`splat`](Evaluator::splat) of a scalar made just before, which the kernel has no name for: it is dropped if a dense
    /// constant replaces it.
    pub(crate) fn splat_constant(&mut self, scalar: &Tensor, shape: &[u32]) -> Tensor {
        let out = self.splat(scalar, shape);
        if out.value != scalar.value
            && self.module.is_unused(scalar.value)
            && self.module.constant_value(scalar.value).is_some()
            && let Some(op) = self.module.defining_op(scalar.value)
        {
            self.module.erase_op(op);
        }
        out
    }

    /// The truth of a host constant that is a number, for flags.
    pub(crate) fn is_true(value: &Value) -> bool {
        matches!(value, Value::Const(c) if *c != HostValue::None && c.truth() == Some(true))
    }
}
