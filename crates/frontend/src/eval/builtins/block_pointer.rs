//! Block pointers, taken apart into tensors of pointers and masks.
//!
//! `tl.load(block_pointer)` of a block at offsets `o` in a tensor with strides `s` loads
//! `base + Σ (o[d] + range[d]) * s[d]`, masked by `0 <= o[d] + range[d] < shape[d]` for the checked dimensions. Index
//! arithmetic is in int64, as in Triton's own rewriting.

use std::sync::Arc;

use ruff_python_ast::{CmpOp, Operator};
use tilewright_ir::dialect::tt;

use super::super::call::Args;
use super::super::{Eval, Evaluator, builder};
use crate::dtype::{DType, Scalar};
use crate::host::HostValue;
use crate::value::{BlockPointer, Shape, Tensor, Value};

impl Evaluator<'_> {
    /// A list of integers, each a constant or a run-time scalar, converted to one dtype.
    pub(crate) fn scalars(&mut self, args: &Args, name: &str, dtype: Scalar) -> Eval<Vec<Tensor>> {
        let value = args.get(name).clone();
        self.scalar_list(&value, &format!("`{name}` of {}", args.builtin.shown()), dtype)
    }

    pub(crate) fn scalar_list(&mut self, value: &Value, what: &str, dtype: Scalar) -> Eval<Vec<Tensor>> {
        let single = std::slice::from_ref(value);
        let items: &[Value] = match value {
            Value::Tuple(t) => &t.items,
            _ => single,
        };
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            if let Value::Const(c @ (HostValue::Int(_) | HostValue::Bool(_))) = item {
                out.push(self.scalar_constant(c, &dtype.into())?);
                continue;
            }
            let mut t = self.tensor_of(item)?;
            if t.is_block() && t.numel() == 1 {
                t = self.unsplat(&t);
            }
            if t.is_block() || !t.number().is_some_and(Scalar::is_int) {
                return Err(self.error(format!("{what} needs integers, not {}", t.ty())));
            }
            if dtype == Scalar::Int32 && t.dtype.bits() > 32 {
                return Err(self
                    .error(format!("{what} has 64 bits ({}), but block offsets have 32", t.ty()))
                    .note("convert with .to(tl.int32), or use a tensor of pointers")
                    .into());
            }
            out.push(self.cast(&t, &dtype.into())?);
        }
        Ok(out)
    }

    pub(crate) fn base_pointer(&mut self, args: &Args) -> Eval<Tensor> {
        let base = self.pointer_arg(args, "base")?;
        if base.is_block() {
            return Err(self.error(format!(
                "`base` of {} must be one pointer, not {}",
                args.builtin.shown(),
                base.ty()
            )));
        }
        Ok(base)
    }

    pub(super) fn make_block_pointer(&mut self, args: &Args) -> Eval<Value> {
        let base = self.base_pointer(args)?;
        let shape = self.scalars(args, "shape", Scalar::Int64)?;
        let strides = self.scalars(args, "strides", Scalar::Int64)?;
        let offsets = self.scalars(args, "offsets", Scalar::Int32)?;
        let block = self.shape_of(args.get("block_shape"))?;
        let order = self.ints(args.get("order"), "`order` of tl.make_block_ptr")?;
        let rank = block.len();
        if [shape.len(), strides.len(), offsets.len(), order.len()] != [rank; 4] {
            return Err(self.error(format!(
                "the lists given to tl.make_block_ptr differ in length: shape {}, strides {}, offsets {}, block_shape {rank}, order {}",
                shape.len(),
                strides.len(),
                offsets.len(),
                order.len()
            )));
        }
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted.iter().enumerate().any(|(i, &d)| d != i as i32) {
            return Err(self.error(format!(
                "`order` of tl.make_block_ptr is {order:?}, which is no order of {rank} dimensions"
            )));
        }
        Ok(Value::Block(Arc::new(BlockPointer { base, shape, strides, offsets, block })))
    }

    pub(super) fn advance(&mut self, args: &Args) -> Eval<Value> {
        let Value::Block(b) = args.get("base") else {
            return Err(self.bad_argument(args, "base", args.get("base"), "a block pointer"));
        };
        let b = b.clone();
        let steps = self.scalars(args, "offsets", Scalar::Int32)?;
        if steps.len() != b.offsets.len() {
            return Err(self.error(format!(
                "tl.advance needs one offset for each of {} dimensions, but {} are given",
                b.offsets.len(),
                steps.len()
            )));
        }
        let mut next = BlockPointer::clone(&b);
        for (offset, step) in next.offsets.iter_mut().zip(steps) {
            if self.module.constant_int(step.value) == Some(0) {
                continue;
            }
            *offset =
                self.tensor_binary(Operator::Add, &Value::Tensor(offset.clone()), &Value::Tensor(step))?;
        }
        Ok(Value::Block(Arc::new(next)))
    }

    /// The pointers to a block at offsets, and the mask of the elements inside along the checked dimensions.
    fn block_access(
        &mut self,
        b: &BlockPointer,
        offsets: &[Tensor],
        checked: &[usize],
    ) -> Eval<(Tensor, Option<Tensor>)> {
        let rank = b.block.len();
        let mut pointer = Value::Tensor(b.base.clone());
        let mut mask: Option<Value> = None;
        for (d, (&extent, offset)) in b.block.iter().zip(offsets).enumerate() {
            let ty = self.ir_type(&Scalar::Int32.into(), &[extent]);
            let range = tt::MakeRange::build(&mut builder!(self), extent as i32, 0, ty).result(&self.module);
            let range =
                Tensor { value: range, dtype: Scalar::Int32.into(), shape: Shape::from_slice(&[extent]) };
            let mut range = self.cast(&range, &Scalar::Int64.into())?;
            for other in 0..rank {
                if other != d {
                    range = self.expand_dims(&range, other as u32);
                }
            }
            let offset = self.cast(offset, &Scalar::Int64.into())?;
            let index = Value::Tensor(self.tensor_binary(
                Operator::Add,
                &Value::Tensor(range),
                &Value::Tensor(offset),
            )?);
            let stride = Value::Tensor(b.strides[d].clone());
            let step = self.tensor_binary(Operator::Mult, &index, &stride)?;
            pointer = Value::Tensor(self.tensor_binary(Operator::Add, &pointer, &Value::Tensor(step))?);
            if checked.contains(&d) {
                let low = self.tensor_compare(CmpOp::GtE, &index, &Value::int(0))?;
                let high = self.tensor_compare(CmpOp::Lt, &index, &Value::Tensor(b.shape[d].clone()))?;
                for bound in [low, high] {
                    let bound = Value::Tensor(bound);
                    mask = Some(match mask {
                        None => bound,
                        Some(mask) => Value::Tensor(self.tensor_binary(Operator::BitAnd, &mask, &bound)?),
                    });
                }
            }
        }
        let Value::Tensor(pointer) = pointer else {
            return Err(self.error("a block pointer without a pointer"));
        };
        let mask = match mask {
            Some(Value::Tensor(mask)) => Some(self.broadcast_to(&mask, &b.block)?),
            _ => None,
        };
        Ok((self.broadcast_to(&pointer, &b.block)?, mask))
    }

    fn checked(&mut self, args: &Args, rank: usize) -> Eval<Vec<usize>> {
        if args.optional("boundary_check").is_none() {
            return Ok(Vec::new());
        }
        let dims = self.ints(args.get("boundary_check"), "`boundary_check`")?;
        dims.iter()
            .map(|&d| {
                usize::try_from(d).ok().filter(|&d| d < rank).ok_or_else(|| {
                    self.error(format!(
                        "`boundary_check` names dimension {d} of a block of {rank} dimensions"
                    ))
                })
            })
            .collect()
    }

    fn no_mask(&self, args: &Args, names: &[&str]) -> Eval<()> {
        for name in names {
            if args.optional(name).is_some() {
                return Err(self
                    .error(format!("`{name}` of {} is not for block pointers", args.builtin.shown()))
                    .note("use boundary_check (and padding_option)")
                    .into());
            }
        }
        Ok(())
    }

    pub(super) fn block_load(&mut self, args: &Args, b: &BlockPointer) -> Eval<Value> {
        self.no_mask(args, &["mask", "other"])?;
        let nan = self.choice(args, "padding_option", &[("", false), ("zero", false), ("nan", true)])?;
        if nan && b.element().as_scalar().is_some_and(Scalar::is_int) {
            return Err(
                self.error(format!("the padding \"nan\" needs floats, but the block is {}", b.block_type()))
            );
        }
        let checked = self.checked(args, b.block.len())?;
        if checked.is_empty() && !self.str_arg(args, "padding_option")?.is_empty() {
            self.warn(
                "padding_option of tl.load says what elements outside of the tensor are, but boundary_check names no dimension: \
                 none is checked, and none may be outside",
            );
        }
        let (pointer, mask) = self.block_access(b, &b.offsets.clone(), &checked)?;
        self.load_from(args, pointer, mask, nan).map(Value::Tensor)
    }

    fn load_from(&mut self, args: &Args, pointer: Tensor, mask: Option<Tensor>, nan: bool) -> Eval<Tensor> {
        let (pointer, element, boolean) = self.byte_pointer(pointer)?;
        let other = match &mask {
            None => None,
            Some(_) => {
                let padding = if nan { HostValue::Float(f64::NAN) } else { HostValue::Int(0) };
                let scalar = self.scalar_constant(&padding, &element)?;
                Some(self.splat_constant(&scalar, &pointer.shape))
            }
        };
        let loaded = self.loaded(args, (pointer, element), (mask, other))?;
        if boolean { self.truth_of(&loaded) } else { Ok(loaded) }
    }

    pub(super) fn block_store(&mut self, args: &Args, b: &BlockPointer) -> Eval<Value> {
        self.no_mask(args, &["mask"])?;
        let (cache, evict) = (self.store_cache(args)?, self.eviction(args)?);
        let checked = self.checked(args, b.block.len())?;
        let value = self.tensor_arg(args, "value")?;
        self.store_to(b, &b.offsets.clone(), &checked, &value, cache, evict)?;
        Ok(Value::NONE)
    }

    fn store_to(
        &mut self,
        b: &BlockPointer,
        offsets: &[Tensor],
        checked: &[usize],
        value: &Tensor,
        cache: tt::CacheModifier,
        evict: tt::EvictionPolicy,
    ) -> Eval<()> {
        self.writable(&b.base, "store")?;
        if value.is_block() && value.shape != b.block {
            return Err(self.error(format!(
                "a value of type {} is stored to a block of {}",
                value.ty(),
                b.block_type()
            )));
        }
        let (pointer, mask) = self.block_access(b, offsets, checked)?;
        let value = self.broadcast_to(value, &b.block)?;
        let (pointer, element, _) = self.byte_pointer(pointer)?;
        let value = self.cast(&value, &element)?;
        tt::Store::build(
            &mut builder!(self),
            pointer.value,
            value.value,
            mask.map(|t| t.value),
            cache,
            evict,
        );
        Ok(())
    }

    /// A pointer to booleans accesses bytes. Gives the pointer, its element and whether it was one to booleans.
    pub(crate) fn byte_pointer(&mut self, pointer: Tensor) -> Eval<(Tensor, DType, bool)> {
        let Some(ty) = pointer.dtype.as_pointer().cloned() else {
            return Err(self.error("a pointer is needed"));
        };
        if ty.element != DType::Scalar(Scalar::Int1) {
            return Ok((pointer, ty.element.clone(), false));
        }
        let element = DType::Scalar(Scalar::Int8);
        let bytes = crate::dtype::PointerType { element: element.clone(), ..(*ty).clone() };
        Ok((self.cast(&pointer, &DType::Pointer(bytes.into()))?, element, true))
    }
}
