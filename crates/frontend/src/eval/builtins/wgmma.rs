//! Products that the kernel issues and waits for itself: `tle.gpu.wgmma`, `tle.gpu.wgmma_wait`.
//!
//! ```text
//! acc = tle.gpu.wgmma(a, b, acc, trans_b=True)
//! acc = tle.gpu.wgmma_wait(0, acc)
//! =>
//! %t = ttg.memdesc_trans %b {order = [1, 0]}
//! %d = ttng.warp_group_dot %a, %t, %acc {isAsync, tle.wgmma}
//! %w = ttng.warp_group_dot_wait %d {pendings = 0}
//! ```
//!
//! That a result is not used before it has been waited for is checked when all of the kernel is there (the pass `user-dots`).

use tilewright_ir::dialect::{ttg, ttng};
use tilewright_ir::{AttrKind, Encoding, SharedKind, TypeKind, marks};

use super::super::call::Args;
use super::super::{Eval, Evaluator, builder};
use crate::dtype::Scalar;
use crate::value::{Buffer, Shape, Tensor, Value};

/// Rows of a warp group's product, and what its columns are a multiple of (PTX ISA, "wgmma.mma_async").
const ROWS: u32 = 64;
const COLUMNS: u32 = 8;
/// The least K.
const LEAST_K: u32 = 16;
/// Products that a wait may leave under way.
const MOST_PENDING: i128 = 7;

/// An operand as the product has it.
struct Operand {
    value: tilewright_ir::Value,
    shape: Shape,
    element: Scalar,
    /// Whether it is a buffer, in which the first of its dimensions lies contiguous.
    first_contiguous: Option<bool>,
}

impl Evaluator<'_> {
    pub(super) fn wgmma(&mut self, args: &Args) -> Eval<Tensor> {
        let a = self.product_operand(args, "a")?;
        let b = self.product_operand(args, "b")?;
        self.check_product(&a, &b)?;
        let result = self.product_result(args, a.element)?;
        let shape = Shape::from_slice(&[a.shape[0], b.shape[1]]);
        let acc = self.dot_acc(args, &shape, result)?;
        let tf32 = args.optional("input_precision").is_none()
            || self.str_arg(args, "input_precision")?.eq_ignore_ascii_case("tf32");
        if !tf32 && a.element == Scalar::Fp32 {
            return Err(self
                .error("tle.gpu.wgmma multiplies float32 as tf32, which is its `input_precision`")
                .note("tl.dot has others")
                .into());
        }
        let precision = if a.element == Scalar::Fp32 { 0 } else { 2 };
        let imprecise = self.dot_imprecise(args, a.element.is_fp8() && b.element.is_fp8(), a.shape[1])?;
        let ty = self.module.value_type(acc.value);
        let mut builder = builder!(self);
        let dot = ttng::WarpGroupDot::build(
            &mut builder,
            a.value,
            b.value,
            acc.value,
            None,
            Some(precision),
            imprecise,
            true,
            ty,
        );
        let value = dot.d(builder.module);
        let mark = self.module.attr(AttrKind::Unit);
        self.module.set_attr(dot.0, marks::AUTHORED, mark);
        Ok(Tensor { value, dtype: result.into(), shape })
    }

    pub(super) fn wgmma_wait(&mut self, args: &Args) -> Eval<Tensor> {
        // `wgmma_wait(acc)` waits for all.
        let alone = args.optional("acc").is_none();
        let (name, pendings) = if alone { ("pendings", 0) } else { ("acc", self.int_arg(args, "pendings")?) };
        let acc = match args.get(name) {
            Value::Tensor(t) if t.is_block() => t.clone(),
            other => return Err(self.bad_argument(args, name, other, "what tle.gpu.wgmma gave")),
        };
        if !(0..=MOST_PENDING).contains(&pendings) {
            return Err(
                self.error(format!("tle.gpu.wgmma_wait leaves 0 to {MOST_PENDING} products, not {pendings}"))
            );
        }
        let ty = self.module.value_type(acc.value);
        let wait = ttng::WarpGroupDotWait::build(&mut builder!(self), &[acc.value], pendings as i32, &[ty]);
        let value = wait.outputs(&self.module)[0];
        Ok(Tensor { value, ..acc })
    }

    fn product_operand(&mut self, args: &Args, name: &str) -> Eval<Operand> {
        let transposed = self.bool_arg(args, if name == "a" { "trans_a" } else { "trans_b" })?;
        let (mut shape, element) = match args.get(name) {
            Value::Buffer(buffer) => (buffer.shape.clone(), buffer.element()),
            Value::Tensor(t) if name == "a" && t.is_block() => (t.shape.clone(), t.dtype.clone()),
            other => {
                let wanted = if name == "a" { "a buffered_tensor or a tensor" } else { "a buffered_tensor" };
                return Err(self.bad_argument(args, name, other, wanted));
            }
        };
        let (2, Some(element)) = (shape.len(), element.as_scalar().filter(|_| !element.is_pointer())) else {
            return Err(
                self.error(format!("tle.gpu.wgmma multiplies matrices: `{name}` is {}", args.get(name)))
            );
        };
        if transposed {
            shape.reverse();
        }
        match args.get(name).clone() {
            Value::Buffer(buffer) => {
                let buffer = self.own_buffer(&buffer)?;
                let columns_first = self.readable_by_products(&buffer, name)?;
                let value = if transposed { self.transposed_buffer(&buffer) } else { buffer.handle.value };
                Ok(Operand { value, shape, element, first_contiguous: Some(transposed ^ columns_first) })
            }
            Value::Tensor(t) => {
                let value = if transposed { self.permute(&t, &[1, 0])?.value } else { t.value };
                Ok(Operand { value, shape, element, first_contiguous: None })
            }
            _ => Err(self.error("an operand of tle.gpu.wgmma is a buffer or a tensor")),
        }
    }

    /// Products read buffers by descriptors, which know the layouts with the swizzles of NVIDIA's matrix units alone. Whether the buffer's columns lie
    /// contiguous.
    fn readable_by_products(&mut self, buffer: &Buffer, name: &str) -> Eval<bool> {
        let ty = self.module.value_type(buffer.handle.value);
        let given = self.module.encoding(ty).and_then(|e| self.module.encoding_of(e));
        match given {
            None => Ok(false),
            Some(Encoding::Shared(SharedKind::NvmmaShared { transposed, swizzle_bytes: 1.., .. })) => {
                Ok(*transposed)
            }
            Some(_) => Err(self
                .error(format!(
                    "`{name}` of tle.gpu.wgmma is a buffer with a layout that products cannot read"
                ))
                .note("allocate it without `layout` and with nv_mma_shared_layout=True, as is the default")
                .into()),
        }
    }

    /// The buffer's elements with rows for columns.
    fn transposed_buffer(&mut self, buffer: &Buffer) -> tilewright_ir::Value {
        let mut kind = self.module.type_kind(self.module.value_type(buffer.handle.value)).clone();
        if let TypeKind::MemDesc { shape, alloc_shape, encoding, .. } = &mut kind {
            shape.reverse();
            if let Some(all) = alloc_shape {
                all.reverse();
            }
            *encoding = encoding.map(|e| {
                let turned = match self.module.encoding_of(e) {
                    Some(Encoding::Shared(kind)) => kind.permuted(&[1, 0]),
                    _ => None,
                };
                turned.map_or(e, |t| self.module.attr(AttrKind::Encoding(Encoding::Shared(t))))
            });
        }
        let ty = self.module.ty(kind);
        ttg::MemdescTrans::build(&mut builder!(self), buffer.handle.value, vec![1, 0], ty)
            .result(&self.module)
    }

    /// Shapes and dtypes that the instructions have (PTX ISA, "wgmma.mma_async").
    fn check_product(&self, a: &Operand, b: &Operand) -> Eval<()> {
        let (&[m, k], &[of_b, n]) = (&a.shape[..], &b.shape[..]) else {
            return Err(self.error("tle.gpu.wgmma multiplies matrices"));
        };
        let (x, y) = (a.element, b.element);
        if k != of_b {
            return Err(
                self.error(format!("tle.gpu.wgmma needs equal K, but the operands have {k} and {of_b}"))
            );
        }
        let eight_bit = |s| matches!(s, Scalar::Fp8E4Nv | Scalar::Fp8E5);
        let known = matches!(x, Scalar::Fp16 | Scalar::Bf16 | Scalar::Fp32 | Scalar::Int8);
        if !(known && x == y || eight_bit(x) && eight_bit(y)) {
            return Err(self
                .error(format!("tle.gpu.wgmma does not multiply {x} by {y}"))
                .note("operands are of one dtype: float16, bfloat16, float32 (as tf32) or int8; or both float8e4nv or float8e5")
                .into());
        }
        let step = 256 / x.bits();
        let columns = if x == Scalar::Int8 && n > 32 { 2 * COLUMNS } else { COLUMNS };
        for (name, extent, of) in [("M", m, ROWS), ("N", n, columns), ("K", k, step.max(LEAST_K))] {
            if !extent.is_multiple_of(of) {
                return Err(self.error(format!(
                    "tle.gpu.wgmma of {x} needs {name} to be a multiple of {of}, but it is {extent}"
                )));
            }
        }
        for (name, operand, k_first) in [("a", a, false), ("b", b, true)] {
            if let Some(first) = operand.first_contiguous
                && first != k_first
                && x.bits() != 16
            {
                return Err(self
                    .error(format!(
                        "`{name}` of tle.gpu.wgmma must lie with K contiguous, since it is of {x}"
                    ))
                    .note(if k_first {
                        "allocate it as [N, K] and give trans_b=True"
                    } else {
                        "allocate it as [M, K] and leave trans_a=False"
                    })
                    .into());
            }
        }
        Ok(())
    }

    /// The type of a product's elements.
    fn product_result(&mut self, args: &Args, operand: Scalar) -> Eval<Scalar> {
        let out = self.dtype_arg(args, "out_dtype")?;
        let out = out.as_scalar().filter(|_| !out.is_pointer());
        match (operand, out) {
            (Scalar::Int8, Some(Scalar::Int32 | Scalar::Fp32)) => Ok(Scalar::Int32),
            (Scalar::Fp16, Some(Scalar::Fp16)) => Ok(Scalar::Fp16),
            (operand, Some(Scalar::Fp32)) if operand != Scalar::Int8 => Ok(Scalar::Fp32),
            _ => Err(self
                .error(format!("`out_dtype` of tle.gpu.wgmma of {operand} cannot be {}", args.get("out_dtype")))
                .note("it is float32, for float16 also float16, and int32 for int8; convert what tle.gpu.wgmma_wait gives")
                .into()),
        }
    }
}
