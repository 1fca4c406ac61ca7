//! The language's typing rules: constants to tensors, promotion, casts, broadcasting and the operators.
//!
//! They are those of Triton 3.6 (`triton/language/semantic.py`), with one difference: shapes may have any extent.

use ruff_python_ast::{CmpOp, Operator, UnaryOp};
use tilewright_ir::dialect::arith::{self, CmpFPredicate as F, CmpIPredicate as I};
use tilewright_ir::dialect::tt;
use tilewright_ir::{AttrKind, Type};

use super::{Eval, Evaluator, builder};
use crate::dtype::{DType, Scalar};
use crate::fold::{self, Num};
use crate::host::HostValue;
use crate::value::{Shape, Tensor, Value};

/// The largest number of elements of a tensor, as in Triton.
pub(crate) const MAX_NUMEL: u64 = 1 << 20;

/// What operators allow of their operands.
#[derive(Clone, Copy, Default)]
pub(crate) struct Allow {
    pub left_pointer: bool,
    pub right_pointer: bool,
    /// `/`, `//` and `%`: 16-bit floats are computed in float32, signedness must agree.
    pub division: bool,
}

impl Evaluator<'_> {
    // ---- constants ------------------------------------------------------------------------------------------

    /// A value as a run-time tensor or scalar.
    pub fn tensor_of(&mut self, value: &Value) -> Eval<Tensor> {
        match value {
            Value::Tensor(t) => Ok(t.clone()),
            Value::Const(c) => {
                let scalar = match c {
                    HostValue::Bool(_) => Scalar::Int1,
                    HostValue::Int(i) => match i {
                        -0x8000_0000..=0x7fff_ffff => Scalar::Int32,
                        0x8000_0000..=0xffff_ffff => Scalar::UInt32,
                        _ if i64::try_from(*i).is_ok() => Scalar::Int64,
                        _ if u64::try_from(*i).is_ok() => Scalar::UInt64,
                        _ => return Err(self.error(format!("the integer {i} does not fit in 64 bits"))),
                    },
                    HostValue::Float(f) => {
                        let magnitude = f.abs();
                        let single = *f == 0.0
                            || !f.is_finite()
                            || (f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX)).contains(&magnitude);
                        if single { Scalar::Fp32 } else { Scalar::Fp64 }
                    }
                    other => return Err(self.error(format!("a number or tensor is needed, not {other}"))),
                };
                self.scalar_constant(c, &scalar.into())
            }
            other => Err(self.error(format!("a number or tensor is needed, not {other}"))),
        }
    }

    /// A constant of a given type.
    pub fn scalar_constant(&mut self, value: &HostValue, dtype: &DType) -> Eval<Tensor> {
        let Some(number) = fold::number(value) else {
            return Err(self.error(format!("a number is needed, not {value}")));
        };
        let ty = self.element_type(dtype);
        let DType::Scalar(scalar) = dtype else {
            let Num::Int(i) = number else {
                return Err(self.error(format!("{value} is no address")));
            };
            let mut b = builder!(self);
            let address = b.int(i as i64, Type::I64);
            let pointer = tt::IntToPtr::build(&mut b, address, ty).result(b.module);
            return Ok(Tensor::scalar(pointer, dtype.clone()));
        };
        if scalar.is_float() {
            // As in Triton, a constant zero has no sign.
            let f = number.to_f64() + 0.0;
            if scalar.is_fp8() && f != 0.0 {
                let single = builder!(self).float(f64::from(f as f32), Type::F32);
                return self.cast(&Tensor::scalar(single, Scalar::Fp32), dtype);
            }
            let rounded = match scalar {
                Scalar::Fp64 => f,
                Scalar::Fp16 => half::f16::from_f32(f as f32).to_f64(),
                Scalar::Bf16 => half::bf16::from_f32(f as f32).to_f64(),
                _ => f64::from(f as f32),
            };
            return Ok(Tensor::scalar(builder!(self).float(rounded, ty), *scalar));
        }
        let i = match number {
            Num::Int(i) => i,
            Num::Float(f) if f.is_finite() && f.fract() == 0.0 => f as i128,
            Num::Float(f) if *scalar == Scalar::Int1 => i128::from(f != 0.0),
            Num::Float(f) => {
                return Err(self
                    .error(format!("{f:?} is no value of {scalar}"))
                    .note("give an integer, or use a float dtype")
                    .into());
            }
        };
        let i = if *scalar == Scalar::Int1 { i128::from(i != 0) } else { i };
        let bits = scalar.bits();
        if *scalar != Scalar::Int1 && (i < -(1i128 << (bits - 1)) || i >= 1i128 << bits) {
            return Err(self.error(format!("{i} is out of range for {scalar}")));
        }
        Ok(Tensor::scalar(builder!(self).int(i as i64, ty), *scalar))
    }

    // ---- shapes ---------------------------------------------------------------------------------------------

    /// A shape given as a tuple of constants (or one constant).
    pub fn shape_of(&mut self, value: &Value) -> Eval<Shape> {
        let single = std::slice::from_ref(value);
        let items: &[Value] = match value {
            Value::Tuple(t) => &t.items,
            _ => single,
        };
        let mut shape = Shape::new();
        let mut numel: u64 = 1;
        for item in items {
            let extent = match item {
                Value::Const(HostValue::Int(n)) => u32::try_from(*n).ok().filter(|n| *n > 0),
                Value::Tensor(_) => return Err(self.needs_constexpr(item, "an extent of a shape")),
                _ => None,
            };
            let Some(extent) = extent else {
                return Err(self.error(format!("{item} is no extent of a shape; positive integers are")));
            };
            numel = numel.saturating_mul(u64::from(extent));
            shape.push(extent);
        }
        if numel > MAX_NUMEL {
            return Err(self
                .error(format!(
                    "a tensor of shape {:?} has {numel} elements; the limit is {MAX_NUMEL}",
                    shape.as_slice()
                ))
                .note("use smaller blocks and loop over them")
                .into());
        }
        Ok(shape)
    }

    /// A scalar in every element of a shape.
    pub fn splat(&mut self, t: &Tensor, shape: &[u32]) -> Tensor {
        if shape.is_empty() {
            return t.clone();
        }
        let ty = self.ir_type(&t.dtype, shape);
        let constant =
            self.module.constant_value(t.value).map(|attr| self.module.attr(AttrKind::Splat(attr, ty)));
        let mut b = builder!(self);
        let value = match constant {
            Some(attr) => arith::Constant::build(&mut b, attr, ty).result(b.module),
            None => tt::Splat::build(&mut b, t.value, ty).result(b.module),
        };
        Tensor { value, dtype: t.dtype.clone(), shape: Shape::from_slice(shape) }
    }

    /// The only element of a block.
    pub fn unsplat(&mut self, t: &Tensor) -> Tensor {
        let ty = self.element_type(&t.dtype);
        let value = tt::Unsplat::build(&mut builder!(self), t.value, ty).result(&self.module);
        Tensor::scalar(value, t.dtype.clone())
    }

    /// A new dimension of extent 1 before dimension `axis`.
    pub fn expand_dims(&mut self, t: &Tensor, axis: u32) -> Tensor {
        let mut shape = t.shape.clone();
        shape.insert((axis as usize).min(shape.len()), 1);
        if !t.is_block() {
            return self.splat(t, &shape);
        }
        let ty = self.ir_type(&t.dtype, &shape);
        let value = tt::ExpandDims::build(&mut builder!(self), t.value, axis as i32, ty).result(&self.module);
        Tensor { value, dtype: t.dtype.clone(), shape }
    }

    fn broadcast_op(&mut self, t: &Tensor, shape: &[u32]) -> Tensor {
        if t.shape.as_slice() == shape {
            return t.clone();
        }
        let ty = self.ir_type(&t.dtype, shape);
        let value = tt::Broadcast::build(&mut builder!(self), t.value, ty).result(&self.module);
        Tensor { value, dtype: t.dtype.clone(), shape: Shape::from_slice(shape) }
    }

    /// Repeats extents of 1 so that the value has exactly this shape.
    pub fn broadcast_to(&mut self, t: &Tensor, shape: &[u32]) -> Eval<Tensor> {
        if !t.is_block() {
            return Ok(self.splat(t, shape));
        }
        let fits = t.shape.len() == shape.len() && t.shape.iter().zip(shape).all(|(&a, &b)| a == b || a == 1);
        if !fits {
            return Err(self
                .error(format!("a value of shape {:?} cannot be broadcast to {shape:?}", t.shape.as_slice()))
                .note("ranks must agree, and extents must be equal or 1; add dimensions with x[:, None]")
                .into());
        }
        Ok(self.broadcast_op(t, shape))
    }

    /// Brings two values to a common shape.
    pub fn broadcast(&mut self, a: &Tensor, b: &Tensor) -> Eval<(Tensor, Tensor)> {
        let (mut a, mut b) = (a.clone(), b.clone());
        match (a.is_block(), b.is_block()) {
            (false, false) => {}
            (true, false) => b = self.splat(&b, &a.shape),
            (false, true) => a = self.splat(&a, &b.shape),
            (true, true) => {
                let (shape_a, shape_b) = (a.shape.clone(), b.shape.clone());
                if shape_a.len() != shape_b.len() && self.threads_of_function().is_some() {
                    return Err(self
                        .error("a number of each thread stands with a vector".to_string())
                        .note("vector.broadcast makes a vector of a number")
                        .into());
                }
                while a.shape.len() < b.shape.len() {
                    a = self.expand_dims(&a, 0);
                }
                while b.shape.len() < a.shape.len() {
                    b = self.expand_dims(&b, 0);
                }
                let mut shape = Shape::new();
                for (dim, (&x, &y)) in a.shape.iter().zip(&b.shape).enumerate() {
                    if x != y && x != 1 && y != 1 {
                        return Err(self
                            .error(format!(
                                "shapes {:?} and {:?} do not broadcast: extents {x} and {y} in dimension {dim}",
                                shape_a.as_slice(),
                                shape_b.as_slice()
                            ))
                            .note("extents must be equal or 1; use x[:, None] for a column and x[None, :] for a row")
                            .into());
                    }
                    shape.push(x.max(y));
                }
                let numel: u64 = shape.iter().map(|&n| u64::from(n)).product();
                if numel > MAX_NUMEL {
                    return Err(self.error(format!(
                        "shapes {:?} and {:?} broadcast to {numel} elements; the limit is {MAX_NUMEL}",
                        shape_a.as_slice(),
                        shape_b.as_slice()
                    )));
                }
                a = self.broadcast_op(&a, &shape);
                b = self.broadcast_op(&b, &shape);
            }
        }
        Ok((a, b))
    }

    /// Dimensions in another order.
    pub fn permute(&mut self, t: &Tensor, order: &[i32]) -> Eval<Tensor> {
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if sorted.iter().enumerate().any(|(i, &d)| d != i as i32) || order.len() != t.shape.len() {
            return Err(self.error(format!(
                "{order:?} is no order of the {} dimensions of {}",
                t.shape.len(),
                t.ty()
            )));
        }
        let shape: Shape = order.iter().map(|&d| t.shape[d as usize]).collect();
        let ty = self.ir_type(&t.dtype, &shape);
        let value = tt::Trans::build(&mut builder!(self), t.value, order.to_vec(), ty).result(&self.module);
        Ok(Tensor { value, dtype: t.dtype.clone(), shape })
    }

    /// `x.T`
    pub fn transpose(&mut self, t: &Tensor) -> Eval<Tensor> {
        if t.shape.len() != 2 {
            return Err(self
                .error(format!("`.T` needs two dimensions, but this is {}", t.ty()))
                .note("use tl.trans or tl.permute for more")
                .into());
        }
        self.permute(t, &[1, 0])
    }

    /// The elements under another shape.
    pub fn reshape(&mut self, t: &Tensor, shape: &[u32], reorder: bool) -> Eval<Tensor> {
        let numel: u64 = shape.iter().map(|&n| u64::from(n)).product();
        if numel != t.numel() {
            return Err(self.error(format!(
                "{} has {} elements and cannot have shape {shape:?} with {numel}",
                t.ty(),
                t.numel()
            )));
        }
        if t.shape.as_slice() == shape {
            return Ok(t.clone());
        }
        if !t.is_block() {
            return Ok(self.splat(t, shape));
        }
        if shape.is_empty() {
            return Ok(self.unsplat(t));
        }
        let ty = self.ir_type(&t.dtype, shape);
        let value = tt::Reshape::build(&mut builder!(self), t.value, reorder, false, ty).result(&self.module);
        Ok(Tensor { value, dtype: t.dtype.clone(), shape: Shape::from_slice(shape) })
    }

    // ---- casts ----------------------------------------------------------------------------------------------

    /// The bits as another type of the same width.
    pub fn bitcast(&mut self, t: &Tensor, to: &DType) -> Eval<Tensor> {
        let to = to.scalar();
        if t.dtype == *to {
            return Ok(t.clone());
        }
        if t.dtype.is_pointer() || to.is_pointer() {
            return self.cast(t, to);
        }
        if t.dtype.bits() != to.bits() {
            return Err(self.error(format!(
                "the bits of {} ({} bits) cannot be read as {to} ({} bits)",
                t.ty(),
                t.dtype.bits(),
                to.bits()
            )));
        }
        let ty = self.ir_type(to, &t.shape);
        let value = if self.module.value_type(t.value) == ty {
            t.value
        } else {
            tt::Bitcast::build(&mut builder!(self), t.value, ty).result(&self.module)
        };
        Ok(Tensor { value, dtype: to.clone(), shape: t.shape.clone() })
    }

    /// The value converted to another element type.
    pub fn cast(&mut self, t: &Tensor, to: &DType) -> Eval<Tensor> {
        self.cast_rounding(t, to, None)
    }

    /// [`cast`](Self::cast) with a rounding for conversions to narrower floats.
    pub fn cast_rounding(
        &mut self,
        t: &Tensor,
        to: &DType,
        rounding: Option<tt::RoundingMode>,
    ) -> Eval<Tensor> {
        let to = to.scalar().clone();
        let narrows = match (t.number(), to.as_scalar()) {
            (Some(a), Some(b)) => a.is_float() && b.is_float() && b.bits() < a.bits(),
            _ => false,
        };
        if t.dtype == to {
            return Ok(t.clone());
        }
        if rounding.is_some() && !narrows {
            return Err(self.error(format!(
                "fp_downcast_rounding is for conversions to narrower floats, not from {} to {to}",
                t.dtype
            )));
        }
        let ty = self.ir_type(&to, &t.shape);
        match (&t.dtype, &to) {
            (&DType::Scalar(a), &DType::Scalar(b)) => {
                let mode = narrows.then(|| rounding.unwrap_or(tt::RoundingMode::Rtne));
                self.cast_number(t, (a, b), mode, ty)
            }
            _ => self.cast_pointer(t, &to, ty),
        }
    }

    /// A conversion from or to pointers.
    fn cast_pointer(&mut self, t: &Tensor, to: &DType, ty: Type) -> Eval<Tensor> {
        let value = match (&t.dtype, to) {
            (DType::Pointer(_), DType::Scalar(Scalar::Int64 | Scalar::UInt64)) => {
                tt::PtrToInt::build(&mut builder!(self), t.value, ty).result(&self.module)
            }
            (DType::Pointer(_), DType::Scalar(Scalar::Int1)) => {
                let address = self.cast(t, &Scalar::Int64.into())?;
                return self.cast(&address, to);
            }
            (DType::Scalar(s), DType::Pointer(_)) if s.is_int() => {
                let address = self.cast(t, &Scalar::Int64.into())?;
                tt::IntToPtr::build(&mut builder!(self), address.value, ty).result(&self.module)
            }
            (DType::Pointer(_), DType::Pointer(_)) if self.module.value_type(t.value) == ty => t.value,
            (DType::Pointer(_), DType::Pointer(_)) => {
                tt::Bitcast::build(&mut builder!(self), t.value, ty).result(&self.module)
            }
            _ => return Err(self.error(format!("{} cannot be converted to {to}", t.ty()))),
        };
        Ok(Tensor { value, dtype: to.clone(), shape: t.shape.clone() })
    }

    /// A conversion from numbers `a` to numbers `b`, of type `ty`; `narrowing` says how a float becomes a narrower one.
    fn cast_number(
        &mut self,
        t: &Tensor,
        (a, b): (Scalar, Scalar),
        narrowing: Option<tt::RoundingMode>,
        ty: Type,
    ) -> Eval<Tensor> {
        let to = DType::from(b);
        let done = |value| Ok(Tensor { value, dtype: to.clone(), shape: t.shape.clone() });
        let custom = narrowing.is_some_and(|r| r != tt::RoundingMode::Rtne);
        if a.is_float() && b.is_float() && (a == Scalar::Fp8E4B15 || b == Scalar::Fp8E4B15) {
            return self.cast_e4b15(t, b);
        }
        if a.is_float() && b.is_float() {
            if a.is_fp8() || b.is_fp8() || custom {
                return done(
                    tt::FpToFp::build(&mut builder!(self), t.value, narrowing, ty).result(&self.module),
                );
            }
            // fp16 and bf16 meet in fp32; so do they on the way to fp64.
            if matches!(a, Scalar::Fp16 | Scalar::Bf16) && b != Scalar::Fp32 {
                let single = self.cast(t, &Scalar::Fp32.into())?;
                return self.cast(&single, &to);
            }
            let mut builder = builder!(self);
            return done(if narrowing.is_some() {
                arith::Truncf::build(&mut builder, t.value, ty).out(builder.module)
            } else {
                arith::Extf::build(&mut builder, t.value, ty).out(builder.module)
            });
        }
        if b == Scalar::Int1 {
            let zero = self.scalar_constant(&HostValue::Int(0), &t.dtype)?;
            let zero = self.splat(&zero, &t.shape);
            return self.compare_same(CmpOp::NotEq, t, &zero);
        }
        if a.is_int() && b.is_int() {
            if a.bits() == b.bits() {
                return done(t.value);
            }
            let mut builder = builder!(self);
            return done(if a.bits() > b.bits() {
                arith::Trunci::build(&mut builder, t.value, ty).out(builder.module)
            } else if a.is_signed() {
                arith::Extsi::build(&mut builder, t.value, ty).out(builder.module)
            } else {
                arith::Extui::build(&mut builder, t.value, ty).out(builder.module)
            });
        }
        if a.is_fp8() || b.is_fp8() {
            // Integers and 8-bit floats meet in fp32.
            let single = self.cast(t, &Scalar::Fp32.into())?;
            return self.cast(&single, &to);
        }
        let mut builder = builder!(self);
        done(match (a.is_float(), a.is_signed(), b.is_signed()) {
            (true, _, true) => arith::Fptosi::build(&mut builder, t.value, ty).out(builder.module),
            (true, _, false) => arith::Fptoui::build(&mut builder, t.value, ty).out(builder.module),
            (false, true, _) => arith::Sitofp::build(&mut builder, t.value, ty).out(builder.module),
            (false, false, _) => arith::Uitofp::build(&mut builder, t.value, ty).out(builder.module),
        })
    }

    /// A conversion between floats of which one is E4M3 of bias 15: neither MLIR nor any instruction has it, so the library computes it.
    fn cast_e4b15(&mut self, t: &Tensor, to: Scalar) -> Eval<Tensor> {
        let read = |s| matches!(s, Scalar::Fp16 | Scalar::Fp32);
        if to != Scalar::Fp8E4B15 && !read(to) || to == Scalar::Fp8E4B15 && !t.number().is_some_and(read) {
            let single = self.cast(t, &Scalar::Fp32.into())?;
            return self.cast(&single, &to.into());
        }
        let arguments = vec![Value::Tensor(t.clone()), Value::Const(HostValue::DType(to.into()))];
        match self.call_library("extra.cuda.convert_custom_float8", arguments)? {
            Value::Tensor(converted) => Ok(converted),
            other => Err(self.error(format!("a conversion gave {other:?}"))),
        }
    }

    /// Whether each element is not zero.
    pub fn truth_of(&mut self, t: &Tensor) -> Eval<Tensor> {
        self.cast(t, &Scalar::Int1.into())
    }

    // ---- promotion ------------------------------------------------------------------------------------------

    /// The usual arithmetic conversions of C for two integers.
    pub fn promote_integers(&self, a: Scalar, b: Scalar) -> Scalar {
        if a.is_unsigned() == b.is_unsigned() {
            if a.bits() > b.bits() { a } else { b }
        } else if a.is_unsigned() {
            if a.bits() >= b.bits() { a } else { b }
        } else if b.bits() >= a.bits() {
            b
        } else {
            a
        }
    }

    /// The type in which two numbers are computed. `constant` says which of them is a compile-time constant.
    pub fn computation_type(
        &self,
        a: Scalar,
        b: Scalar,
        constant: (bool, bool),
        division: bool,
    ) -> Eval<Scalar> {
        use Scalar::{Bf16, Fp8E4B15, Fp16, Fp32, Fp64};
        // No instruction computes in it.
        let [a, b] = [a, b].map(|s| if s == Fp8E4B15 { Fp16 } else { s });
        if constant.0 != constant.1 {
            let (constant, tensor) = if constant.0 { (a, b) } else { (b, a) };
            if constant.kind() <= tensor.kind() {
                return Ok(if division && matches!(tensor, Fp16 | Bf16) { Fp32 } else { tensor });
            }
        }
        let either = |s| a == s || b == s;
        Ok(if either(Fp64) {
            Fp64
        } else if either(Fp32) {
            Fp32
        } else if either(Fp16) {
            if division { Fp32 } else { Fp16 }
        } else if a == Bf16 && b == Bf16 {
            if division { Fp32 } else { Bf16 }
        } else if either(Bf16) {
            Fp32
        } else if a.is_fp8() && b.is_fp8() {
            if a == b { a } else { Fp16 }
        } else if !a.is_int() || !b.is_int() {
            return Err(self
                .error(format!("{a} and {b} have no common type"))
                .note("convert one of them with .to(dtype)")
                .into());
        } else if division && a.is_unsigned() != b.is_unsigned() {
            return Err(self
                .error(format!(
                    "Cannot use `/`, `//` or `%` on {a} and {b} because they have different signedness"
                ))
                .note("convert one of them to the other's signedness with .to(dtype)")
                .into());
        } else {
            self.promote_integers(a, b)
        })
    }

    /// Brings two operands to one element type and shape.
    pub fn promote(&mut self, a: &Value, b: &Value, allow: Allow) -> Eval<(Tensor, Tensor)> {
        let (x, y) = (self.tensor_of(a)?, self.tensor_of(b)?);
        for (this, that, allowed) in [(&x, &y, allow.left_pointer), (&y, &x, allow.right_pointer)] {
            if !this.dtype.is_pointer() {
                continue;
            }
            if that.number().is_some_and(Scalar::is_float) {
                return Err(self
                    .error(format!("a pointer ({}) is moved by integers, not by {}", this.ty(), that.ty()))
                    .note("convert the offset with .to(tl.int32)")
                    .into());
            }
            if !allowed || (that.dtype.is_pointer() && this.dtype != that.dtype) {
                return Err(self
                    .error(format!("this operator does not take {} and {}", x.ty(), y.ty()))
                    .note("pointers can be added to integers, chosen by tl.where, and converted with .to(tl.int64)")
                    .into());
            }
        }
        let (mut x, mut y) = (x, y);
        if let (Some(m), Some(n)) = (x.number(), y.number()) {
            let constant = |v: &Value| match v {
                Value::Const(c) => fold::number(c).map(|n| (c.clone(), n)),
                _ => None,
            };
            let (ca, cb) = (constant(a), constant(b));
            let ty = self.computation_type(m, n, (ca.is_some(), cb.is_some()), allow.division)?;
            for c in [&ca, &cb] {
                let Some((text, number)) = c else { continue };
                if number.to_f64() < 0.0 && ty.is_unsigned() {
                    return Err(self
                        .error(format!("the negative constant {text} meets a value of {ty}"))
                        .note("convert the unsigned value with .to(tl.int32) or tl.int64 first")
                        .into());
                }
                let (low, high) = ty.int_range();
                if let Num::Int(i) = number
                    && ty.is_int()
                    && !(low..=high).contains(i)
                    && !matches!(text, HostValue::Bool(_))
                {
                    return Err(self
                        .error(format!("the constant {text} is out of range for {ty}"))
                        .note("convert the other operand to a wider type with .to(dtype)")
                        .into());
                }
            }
            let mut bring = |t: Tensor, c: &Option<(HostValue, Num)>| match c {
                Some((c, _)) if t.number() != Some(ty) => {
                    let unused = t.value;
                    let t = self.scalar_constant(c, &ty.into());
                    self.erase_unused(unused);
                    t
                }
                Some(_) => Ok(t),
                None => self.cast(&t, &ty.into()),
            };
            x = bring(x, &ca)?;
            y = bring(y, &cb)?;
        }
        self.broadcast(&x, &y)
    }

    /// Removes a constant that was made for nothing.
    pub fn erase_unused(&mut self, value: tilewright_ir::Value) {
        if self.module.is_unused(value)
            && let Some(op) = self.module.defining_op(value)
        {
            self.module.erase_op(op);
        }
    }

    // ---- operators ------------------------------------------------------------------------------------------

    pub fn tensor_binary(&mut self, op: Operator, a: &Value, b: &Value) -> Eval<Tensor> {
        match op {
            Operator::Add | Operator::Sub | Operator::Mult => self.arithmetic(op, a, b),
            Operator::Div => {
                let (x, y) = self.promote(a, b, Allow { division: true, ..Allow::default() })?;
                let (x, y) = match x.number().is_some_and(Scalar::is_int) {
                    true => (self.cast(&x, &Scalar::Fp32.into())?, self.cast(&y, &Scalar::Fp32.into())?),
                    false => (x, y),
                };
                let value = arith::Divf::build(&mut builder!(self), x.value, y.value).result(&self.module);
                Ok(Tensor { value, ..x })
            }
            Operator::FloorDiv | Operator::Mod => {
                let (x, y) = self.promote(a, b, Allow { division: true, ..Allow::default() })?;
                let mut bld = builder!(self);
                let value = match (x.number(), op) {
                    (Some(s), Operator::FloorDiv) if s.is_unsigned() => {
                        arith::Divui::build(&mut bld, x.value, y.value).result(bld.module)
                    }
                    (Some(s), Operator::FloorDiv) if s.is_int() => {
                        arith::Divsi::build(&mut bld, x.value, y.value).result(bld.module)
                    }
                    (Some(s), Operator::Mod) if s.is_unsigned() => {
                        arith::Remui::build(&mut bld, x.value, y.value).result(bld.module)
                    }
                    (Some(s), Operator::Mod) if s.is_int() => {
                        arith::Remsi::build(&mut bld, x.value, y.value).result(bld.module)
                    }
                    (Some(_), Operator::Mod) => {
                        arith::Remf::build(&mut bld, x.value, y.value).result(bld.module)
                    }
                    _ => {
                        return Err(self
                            .error(format!(
                                "invalid operands of type {} and {}: `//` needs integers",
                                describe(a),
                                describe(b)
                            ))
                            .note("use tl.floor(x / y) for floats")
                            .into());
                    }
                };
                Ok(Tensor { value, ..x })
            }
            Operator::BitAnd | Operator::BitOr | Operator::BitXor | Operator::LShift | Operator::RShift => {
                self.bitwise(op, a, b)
            }
            Operator::Pow => Err(self
                .error("`**` is not supported for run-time values")
                .note("multiply, or use tl.exp2(y * tl.log2(x)) or tl.extra.libdevice.pow(x, y)")
                .into()),
            Operator::MatMult => Err(self.error("`@` is not supported").note("use tl.dot(a, b)").into()),
        }
    }

    fn arithmetic(&mut self, op: Operator, a: &Value, b: &Value) -> Eval<Tensor> {
        let allow =
            Allow { left_pointer: op != Operator::Mult, right_pointer: op == Operator::Add, division: false };
        let (x, y) = self.promote(a, b, allow)?;
        match (x.dtype.is_pointer(), y.dtype.is_pointer()) {
            (true, true) => {
                return Err(self
                    .error(format!(
                        "two pointers cannot be added or subtracted: {} and {}",
                        describe(a),
                        describe(b)
                    ))
                    .note("convert them with .to(tl.int64) first")
                    .into());
            }
            (true, false) => {
                let mut offset = self.pointer_offset(&y)?;
                if op == Operator::Sub {
                    offset = self.tensor_unary(UnaryOp::USub, &offset)?;
                }
                return Ok(self.add_pointer(&x, &offset));
            }
            (false, true) => {
                let offset = self.pointer_offset(&x)?;
                return Ok(self.add_pointer(&y, &offset));
            }
            (false, false) => {}
        }
        let float = x.number().is_some_and(Scalar::is_float);
        if !float && self.options.debug && self.sanitize_overflow {
            self.check_overflow(op, &x, &y)?;
        }
        let mut bld = builder!(self);
        let value = match (op, float) {
            (Operator::Add, true) => arith::Addf::build(&mut bld, x.value, y.value).result(bld.module),
            (Operator::Add, false) => arith::Addi::build(&mut bld, x.value, y.value).result(bld.module),
            (Operator::Sub, true) => arith::Subf::build(&mut bld, x.value, y.value).result(bld.module),
            (Operator::Sub, false) => arith::Subi::build(&mut bld, x.value, y.value).result(bld.module),
            (_, true) => arith::Mulf::build(&mut bld, x.value, y.value).result(bld.module),
            (_, false) => arith::Muli::build(&mut bld, x.value, y.value).result(bld.module),
        };
        Ok(Tensor { value, ..x })
    }

    /// In a kernel compiled for debugging, arithmetic on integers of up to 32 bits asserts that it does not overflow: the
    /// result in 64 bits must lie in the type's range.
    fn check_overflow(&mut self, op: Operator, x: &Tensor, y: &Tensor) -> Eval<()> {
        let Some(scalar) = x.number().filter(|s| s.bits() < 64 && *s != Scalar::Int1) else { return Ok(()) };
        let wide = |e: &mut Self, t: &Tensor| e.cast(t, &Scalar::Int64.into()).map(Value::Tensor);
        let (x, y) = (wide(self, x)?, wide(self, y)?);
        let before = std::mem::replace(&mut self.sanitize_overflow, false);
        let exact = self.arithmetic(op, &x, &y).map(Value::Tensor);
        self.sanitize_overflow = before;
        let exact = exact?;
        let (low, high) = scalar.int_range();
        let above = Value::Tensor(self.tensor_compare(CmpOp::GtE, &exact, &Value::int(low))?);
        let below = Value::Tensor(self.tensor_compare(CmpOp::LtE, &exact, &Value::int(high))?);
        let inside = self.tensor_binary(Operator::BitAnd, &above, &below)?;
        let message = format!("{scalar} overflow in `{}`", op.as_str());
        tt::Assert::build(&mut builder!(self), inside.value, message);
        Ok(())
    }

    /// What a pointer is moved by. Offsets are read as signed: unsigned ones are widened so that they stay positive, before a difference
    /// makes them negative.
    fn pointer_offset(&mut self, offset: &Tensor) -> Eval<Tensor> {
        match offset.number() {
            Some(s) if s.is_unsigned() && s.bits() < 64 => self.cast(offset, &Scalar::Int64.into()),
            _ => Ok(offset.clone()),
        }
    }

    /// Pointer plus offset; both have one shape already.
    fn add_pointer(&mut self, pointer: &Tensor, offset: &Tensor) -> Tensor {
        let value = tt::Addptr::build(&mut builder!(self), pointer.value, offset.value).result(&self.module);
        Tensor { value, ..pointer.clone() }
    }

    fn bitwise(&mut self, op: Operator, a: &Value, b: &Value) -> Eval<Tensor> {
        let (x, y) = self.promote(a, b, Allow::default())?;
        let (Some(m), Some(n)) = (x.number(), y.number()) else {
            return Err(self.error(format!(
                "invalid operands of type {}: `{}` needs integers",
                x.ty(),
                op.as_str()
            )));
        };
        if !m.is_int() || !n.is_int() {
            return Err(self
                .error(format!(
                    "invalid operands of type {} and {}: `{}` needs integers",
                    describe(a),
                    describe(b),
                    op.as_str()
                ))
                .note("to look at the bits of a float: x.to(tl.int32, bitcast=True)")
                .into());
        }
        // Whether `>>` keeps the sign is decided by the left operand's own type, or the right one's if that is a constant.
        let signed = match (a, b) {
            (Value::Tensor(t), _) | (_, Value::Tensor(t)) => t.number().is_some_and(Scalar::is_signed),
            _ => m.is_signed(),
        };
        let mut bld = builder!(self);
        let value = match op {
            Operator::BitAnd => arith::Andi::build(&mut bld, x.value, y.value).result(bld.module),
            Operator::BitOr => arith::Ori::build(&mut bld, x.value, y.value).result(bld.module),
            Operator::BitXor => arith::Xori::build(&mut bld, x.value, y.value).result(bld.module),
            Operator::LShift => arith::Shli::build(&mut bld, x.value, y.value).result(bld.module),
            _ if signed => arith::Shrsi::build(&mut bld, x.value, y.value).result(bld.module),
            _ => arith::Shrui::build(&mut bld, x.value, y.value).result(bld.module),
        };
        Ok(Tensor { value, ..x })
    }

    pub fn tensor_unary(&mut self, op: UnaryOp, t: &Tensor) -> Eval<Tensor> {
        let Some(scalar) = t.number() else {
            return Err(self.error(format!("unary `{}` does not take a pointer ({})", op.as_str(), t.ty())));
        };
        match op {
            UnaryOp::UAdd => Ok(t.clone()),
            UnaryOp::USub => {
                let zero = self.scalar_constant(&HostValue::Int(0), &t.dtype)?;
                self.arithmetic(Operator::Sub, &Value::Tensor(zero), &Value::Tensor(t.clone()))
            }
            UnaryOp::Invert if scalar.is_float() => Err(self
                .error(format!("`~` needs integers, not {}", t.ty()))
                .note("to look at the bits of a float: x.to(tl.int32, bitcast=True)")
                .into()),
            UnaryOp::Invert => {
                let ty = self.element_type(&t.dtype);
                let ones = Tensor::scalar(builder!(self).int(-1, ty), scalar);
                self.bitwise(Operator::BitXor, &Value::Tensor(t.clone()), &Value::Tensor(ones))
            }
            UnaryOp::Not => {
                let t = self.truth_of(t)?;
                self.tensor_unary(UnaryOp::Invert, &t)
            }
        }
    }

    /// `a op b`, where a constant counts as a value of run time of its own type: `x < 0.1` of halves is decided in float32.
    pub fn tensor_compare(&mut self, op: CmpOp, a: &Value, b: &Value) -> Eval<Tensor> {
        let (left, right) = (self.of_own_type(a, b)?, self.of_own_type(b, a)?);
        let (x, y) = self.promote(&left, &right, Allow::default())?;
        self.compare_same(op, &x, &y)
    }

    /// The constant `a` as a value of run time, unless the type of `b` has that number: then the comparison is the same in that type.
    fn of_own_type(&mut self, a: &Value, b: &Value) -> Eval<Value> {
        let (Value::Const(constant), Value::Tensor(b)) = (a, b) else { return Ok(a.clone()) };
        match (fold::number(constant), b.number()) {
            (Some(number), Some(scalar)) if !has_number(scalar, number) => {
                self.tensor_of(a).map(Value::Tensor)
            }
            _ => Ok(a.clone()),
        }
    }

    /// Brings two operands to one element type and shape, constants as values of run time of their own types.
    pub fn promote_values(&mut self, a: &Value, b: &Value) -> Eval<(Tensor, Tensor)> {
        let (x, y) = (self.tensor_of(a)?, self.tensor_of(b)?);
        self.promote(&Value::Tensor(x), &Value::Tensor(y), Allow::default())
    }

    /// Compares two numbers of one type and shape.
    pub fn compare_same(&mut self, op: CmpOp, x: &Tensor, y: &Tensor) -> Eval<Tensor> {
        let scalar = x.number().unwrap_or(Scalar::Int64);
        if scalar.is_fp8() {
            // No target compares 8-bit floats; fp16 holds all of them.
            let wide = Scalar::Fp16.into();
            let (x, y) = (self.cast(x, &wide)?, self.cast(y, &wide)?);
            return self.compare_same(op, &x, &y);
        }
        let ty = self.ir_type(&Scalar::Int1.into(), &x.shape);
        let value = if scalar.is_float() {
            let predicate = match op {
                CmpOp::Eq => F::Oeq,
                CmpOp::NotEq => F::Une,
                CmpOp::Lt => F::Olt,
                CmpOp::LtE => F::Ole,
                CmpOp::Gt => F::Ogt,
                CmpOp::GtE => F::Oge,
                _ => return Err(self.error("`in` does not take run-time values")),
            };
            arith::Cmpf::build(&mut builder!(self), x.value, y.value, predicate, ty).result(&self.module)
        } else {
            let predicate = match (op, scalar.is_signed()) {
                (CmpOp::Eq, _) => I::Eq,
                (CmpOp::NotEq, _) => I::Ne,
                (CmpOp::Lt, true) => I::Slt,
                (CmpOp::LtE, true) => I::Sle,
                (CmpOp::Gt, true) => I::Sgt,
                (CmpOp::GtE, true) => I::Sge,
                (CmpOp::Lt, false) => I::Ult,
                (CmpOp::LtE, false) => I::Ule,
                (CmpOp::Gt, false) => I::Ugt,
                (CmpOp::GtE, false) => I::Uge,
                _ => return Err(self.error("`in` does not take run-time values")),
            };
            arith::Cmpi::build(&mut builder!(self), x.value, y.value, predicate, ty).result(&self.module)
        };
        Ok(Tensor { value, dtype: Scalar::Int1.into(), shape: x.shape.clone() })
    }
}

/// Whether a constant is the same number in a type as in its own: floats that need no float64 have the type float32.
fn has_number(scalar: Scalar, number: Num) -> bool {
    match number {
        Num::Int(i) if scalar.is_int() => {
            let (low, high) = scalar.int_range();
            (low..=high).contains(&i) || (scalar == Scalar::Int1 && matches!(i, 0 | 1))
        }
        _ if scalar.is_int() => false,
        _ => {
            let f = number.to_f64();
            let single = f as f32;
            let held = match scalar {
                Scalar::Fp64 | Scalar::Fp32 => true,
                Scalar::Fp16 => half::f16::from_f32(single).to_f32() == single,
                Scalar::Bf16 => half::bf16::from_f32(single).to_f32() == single,
                _ => single == 0.0,
            };
            held && f64::from(single) == f
        }
    }
}

fn describe(value: &Value) -> String {
    value.describe()
}
