//! Atomic memory operations.

use ruff_python_ast::{Operator, UnaryOp};
use tilewright_ir::dialect::arith;
use tilewright_ir::dialect::tt::{self, MemSemantic, MemSyncScope, RmwOp};

use super::super::call::Args;
use super::super::{Eval, Evaluator, builder};
use super::elementwise::Extremum;
use crate::dtype::{DType, PointerType, Scalar};
use crate::fold::{self, Num};
use crate::host::HostValue;
use crate::value::{Tensor, Value};

/// What an atomic operation makes of the value in memory and its operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Atomic {
    Exchange,
    Add,
    Max,
    Min,
    And,
    Or,
    Xor,
}

impl Evaluator<'_> {
    fn ordering(&mut self, args: &Args) -> Eval<(MemSemantic, MemSyncScope)> {
        let sem = self.choice(
            args,
            "sem",
            &[
                ("", MemSemantic::AcquireRelease),
                ("acq_rel", MemSemantic::AcquireRelease),
                ("relaxed", MemSemantic::Relaxed),
                ("acquire", MemSemantic::Acquire),
                ("release", MemSemantic::Release),
            ],
        )?;
        let scope = self.choice(
            args,
            "scope",
            &[
                ("", MemSyncScope::Gpu),
                ("gpu", MemSyncScope::Gpu),
                ("cta", MemSyncScope::Cta),
                ("sys", MemSyncScope::System),
            ],
        )?;
        Ok((sem, scope))
    }

    /// A value argument brought to the pointer's shape and element type.
    fn atomic_operand(&mut self, args: &Args, name: &str, pointer: &Tensor, element: &DType) -> Eval<Tensor> {
        let value = match (args.get(name), element.as_scalar()) {
            // A number that the element type has; others become what they are by themselves and are converted then.
            (Value::Const(c), Some(s)) if holds(s, c) => {
                let c = c.clone();
                self.scalar_constant(&c, &s.into())?
            }
            _ => self.tensor_arg(args, name)?,
        };
        if value.is_block() && !pointer.is_block() {
            return Err(self.error(format!(
                "`{name}` of {} has type {}, but the pointer is a single one",
                args.builtin.shown(),
                value.ty()
            )));
        }
        let value = self.cast(&value, element)?;
        if !value.is_block() {
            return Ok(match args.get(name) {
                Value::Const(_) => self.splat_constant(&value, &pointer.shape),
                _ => self.splat(&value, &pointer.shape),
            });
        }
        self.broadcast_to(&value, &pointer.shape)
    }

    pub(super) fn atomic_cas(&mut self, args: &Args) -> Eval<Tensor> {
        let (sem, scope) = self.ordering(args)?;
        let pointer = self.pointer_arg(args, "pointer")?;
        self.writable(&pointer, "atomic_cas")?;
        let Some(element) = pointer.dtype.as_pointer().map(|p| p.element.clone()) else {
            return Err(self.error("a pointer is needed"));
        };
        if !matches!(element.bits(), 16 | 32 | 64) {
            return Err(self.error(format!("tl.atomic_cas works on 16, 32 or 64 bits, not on {element}")));
        }
        let cmp = self.atomic_operand(args, "cmp", &pointer, &element)?;
        let val = self.atomic_operand(args, "val", &pointer, &element)?;
        let ty = self.ir_type(&element, &pointer.shape);
        let value =
            tt::AtomicCas::build(&mut builder!(self), pointer.value, cmp.value, val.value, sem, scope, ty)
                .result(&self.module);
        Ok(Tensor { value, dtype: element, shape: pointer.shape })
    }

    pub(super) fn atomic_rmw(&mut self, args: &Args, atomic: Atomic) -> Eval<Tensor> {
        let name = &*args.builtin.name;
        let (sem, scope) = self.ordering(args)?;
        let pointer = self.pointer_arg(args, "pointer")?;
        self.writable(&pointer, name)?;
        let Some(element) = pointer.dtype.as_pointer().map(|p| p.element.clone()) else {
            return Err(self.error("a pointer is needed"));
        };
        let Some(scalar) = element.as_scalar() else {
            return Err(
                self.error(format!("tl.{name} does not work on pointers in memory ({})", pointer.ty()))
            );
        };
        let supported = match (scalar, atomic) {
            (Scalar::Fp16 | Scalar::Bf16, _) => atomic == Atomic::Add,
            (Scalar::Fp32 | Scalar::Fp64, Atomic::Add | Atomic::Exchange | Atomic::Max | Atomic::Min) => true,
            _ => scalar.is_int() && scalar.bits() >= 32,
        };
        if !supported {
            return Err(self.error(format!("tl.{name} does not support {scalar}")));
        }
        let val = self.atomic_operand(args, "val", &pointer, &element)?;
        let mask = match self.mask_arg(args, &pointer)? {
            Some(mask) => mask,
            None => {
                let yes = self.tensor_of(&Value::bool(true))?;
                self.splat_constant(&yes, &pointer.shape)
            }
        };
        let (float, signed) = (scalar.is_float(), scalar.is_signed());
        let op = match atomic {
            Atomic::Add if float => RmwOp::Fadd,
            Atomic::Add => RmwOp::Add,
            Atomic::And => RmwOp::And,
            Atomic::Or => RmwOp::Or,
            Atomic::Xor => RmwOp::Xor,
            Atomic::Exchange => RmwOp::Exch,
            Atomic::Max if float => {
                return self.atomic_float_extremum(Extremum::Max, &pointer, &val, &mask, sem, scope);
            }
            Atomic::Min if float => {
                return self.atomic_float_extremum(Extremum::Min, &pointer, &val, &mask, sem, scope);
            }
            Atomic::Max if signed => RmwOp::Max,
            Atomic::Max => RmwOp::Umax,
            Atomic::Min if signed => RmwOp::Min,
            Atomic::Min => RmwOp::Umin,
        };
        Ok(self.rmw(op, &pointer, &val, &mask, sem, scope))
    }

    fn rmw(
        &mut self,
        op: RmwOp,
        pointer: &Tensor,
        val: &Tensor,
        mask: &Tensor,
        sem: MemSemantic,
        scope: MemSyncScope,
    ) -> Tensor {
        let ty = self.ir_type(&val.dtype, &pointer.shape);
        let value = tt::AtomicRmw::build(
            &mut builder!(self),
            pointer.value,
            val.value,
            Some(mask.value),
            op,
            sem,
            scope,
            ty,
        )
        .result(&self.module);
        Tensor { value, ..val.clone() }
    }

    /// IEEE floats order as their bits do: signed integers if positive, reversed unsigned ones if negative. So the
    /// larger of two floats is a signed maximum where the value is positive and an unsigned minimum where it is not.
    fn atomic_float_extremum(
        &mut self,
        which: Extremum,
        pointer: &Tensor,
        val: &Tensor,
        mask: &Tensor,
        sem: MemSemantic,
        scope: MemSyncScope,
    ) -> Eval<Tensor> {
        let wide = val.dtype.bits() == 64;
        let (int, uint) =
            if wide { (Scalar::Int64, Scalar::UInt64) } else { (Scalar::Int32, Scalar::UInt32) };
        let space = pointer.dtype.as_pointer().map_or(1, |p| p.address_space);
        let pointer_to = |s: Scalar| {
            DType::Pointer(PointerType { element: s.into(), address_space: space, constant: false }.into())
        };
        let bits = self.bitcast(val, &int.into())?;
        let int_pointer = self.cast(pointer, &pointer_to(int))?;
        let shift = Value::int(if wide { 63 } else { 31 });
        let unsigned = self.bitcast(val, &uint.into())?;
        let sign = self.tensor_binary(Operator::RShift, &Value::Tensor(unsigned.clone()), &shift)?;
        let negative = self.truth_of(&sign)?;
        let positive = self.tensor_unary(UnaryOp::Not, &negative)?;
        let uint_pointer = self.cast(pointer, &pointer_to(uint))?;
        let (signed_op, unsigned_op) = match which {
            Extremum::Max => (RmwOp::Max, RmwOp::Umin),
            Extremum::Min => (RmwOp::Min, RmwOp::Umax),
        };
        let both = |e: &mut Self, m: &Tensor| {
            e.tensor_binary(Operator::BitAnd, &Value::Tensor(mask.clone()), &Value::Tensor(m.clone()))
        };
        let mask_positive = both(self, &positive)?;
        let mask_negative = both(self, &negative)?;
        let a = self.rmw(signed_op, &int_pointer, &bits, &mask_positive, sem, scope);
        let b = self.rmw(unsigned_op, &uint_pointer, &unsigned, &mask_negative, sem, scope);
        let chosen =
            arith::Select::build(&mut builder!(self), positive.value, a.value, b.value).result(&self.module);
        self.bitcast(&Tensor { value: chosen, ..bits }, &val.dtype)
    }
}

/// Whether a constant is a number that converting it to the type does not change, up to the rounding of floats.
fn holds(scalar: Scalar, constant: &HostValue) -> bool {
    match fold::number(constant) {
        Some(Num::Int(int)) => {
            let (least, most) = scalar.int_range();
            scalar.is_float() || (least..=most).contains(&int)
        }
        Some(Num::Float(_)) => scalar.is_float(),
        None => false,
    }
}
