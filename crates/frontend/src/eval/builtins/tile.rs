//! Tiles of tensors and of buffers: `tle.extract_tile` and `tle.insert_tile`. Those of buffers are views.

use std::sync::Arc;

use ruff_python_ast::Operator;
use tilewright_ir::dialect::{arith, tt, ttg};
use tilewright_ir::{AttrKind, Module, Type, TypeKind, marks};

use super::super::call::Args;
use super::super::{Eval, Evaluator, builder};
use super::local::SHARED_MEMORY;
use crate::dtype::{DType, Scalar};
use crate::host::HostValue;
use crate::value::{Buffer, Shape, Tensor, Value};

impl Evaluator<'_> {
    /// `x.extract_tile(index, shape)`, whose first parameter has this name.
    pub(super) fn extract_tile(&mut self, args: &Args, x: &str) -> Eval<Value> {
        let tile = self.shape_of(args.get("tile_shape"))?;
        if let Value::Buffer(_) = args.get(x) {
            let whole = self.buffer_or_tile(args, x)?;
            return Ok(Value::Buffer(Arc::new(self.tile_of_buffer(args, &whole, &tile)?)));
        }
        let x = self.block_arg(args, x)?;
        let index = self.tile_index(args, &x.shape, &tile)?;
        let ty = self.ir_type(&x.dtype, &tile);
        let value = tt::ExtractTile::build(&mut builder!(self), x.value, &index, ty).result(&self.module);
        Ok(Value::Tensor(Tensor { value, dtype: x.dtype, shape: tile }))
    }

    /// `x.insert_tile(tile, index)`, likewise.
    pub(super) fn insert_tile(&mut self, args: &Args, x: &str) -> Eval<Value> {
        let tile = self.block_arg(args, "tile")?;
        if let Value::Buffer(_) = args.get(x) {
            let whole = self.buffer_or_tile(args, x)?;
            self.check_elements(&tile, &whole.element())?;
            let view = self.tile_of_buffer(args, &whole, &tile.shape)?;
            self.write(&view, &tile, None)?;
            return Ok(args.get(x).clone());
        }
        let x = self.block_arg(args, x)?;
        self.check_elements(&tile, &x.dtype)?;
        let index = self.tile_index(args, &x.shape, &tile.shape)?;
        let ty = self.ir_type(&x.dtype, &x.shape);
        let value =
            tt::InsertTile::build(&mut builder!(self), x.value, tile.value, &index, ty).result(&self.module);
        Ok(Value::Tensor(Tensor { value, ..x }))
    }

    /// Whether a tile has elements of this kind.
    fn check_elements(&self, tile: &Tensor, of: &DType) -> Eval<()> {
        if tile.dtype == *of {
            return Ok(());
        }
        Err(self
            .error(format!("`tile` of tle.insert_tile has elements of {}, `x` of {of}", tile.dtype))
            .note(format!("convert it: tile.to(tl.{of})"))
            .into())
    }

    /// A tile of a buffer, where it lies.
    fn tile_of_buffer(&mut self, args: &Args, whole: &Buffer, tile: &Shape) -> Eval<Buffer> {
        let numbers = self.tile_index(args, &whole.shape, tile)?;
        let is_shared = self.space_of(whole) == SHARED_MEMORY;
        let known: Option<Vec<i64>> = numbers.iter().map(|&v| self.module.constant_int(v)).collect();
        if let Some(known) = known.filter(|_| is_shared && whole.begin.is_empty()) {
            let offsets = known.iter().zip(tile).map(|(&n, &t)| n as i32 * t as i32).collect();
            return self.subslice(whole, offsets, tile.clone());
        }
        let mut begin = Vec::with_capacity(tile.len());
        for (d, (&number, &extent)) in numbers.iter().zip(tile).enumerate() {
            let mut b = builder!(self);
            let extent = b.i32(extent as i32);
            let mut at = arith::Muli::build(&mut b, number, extent).result(b.module);
            if let Some(from) = whole.begin.get(d) {
                at = arith::Addi::build(&mut b, at, from.value).result(b.module);
            }
            begin.push(Tensor::scalar(at, Scalar::Int32));
        }
        if is_shared {
            return Ok(Buffer { shape: tile.clone(), begin, ..whole.clone() });
        }
        let offsets: Vec<_> = begin.iter().map(|t| t.value).collect();
        self.view_from(whole, &offsets, tile, &vec![1; tile.len()])
    }

    /// A buffer as its handle shows it, which is a view of a tile whose number the program computes.
    pub(super) fn as_view(&mut self, tile: &Buffer) -> Eval<Buffer> {
        if tile.begin.is_empty() {
            return Ok(tile.clone());
        }
        if !self.is_tile(tile) {
            let mut error = self.not_supported_yet(
                "this with a part of a buffer that is chosen at run time, and that is no tile of it",
            );
            error.notes.push(
                "load it, store to it, copy to it or from it, or take pointers into it by tle.gpu.local_ptr"
                    .into(),
            );
            return Err(error);
        }
        let offsets: Vec<_> = tile.begin.iter().map(|begin| begin.value).collect();
        let whole = self.module.value_type(tile.handle.value);
        let whole = Shape::from_slice(self.module.shape(whole).unwrap_or(&[]));
        let handle = Buffer { begin: Vec::new(), shape: whole, ..tile.clone() };
        let view = self.view_from(&handle, &offsets, &tile.shape, &vec![1; tile.shape.len()])?;
        if let Some(op) = self.module.defining_op(view.handle.value) {
            let mark = self.module.attr(AttrKind::Unit);
            self.module.set_attr(op, marks::TILE, mark);
        }
        Ok(view)
    }

    /// Whether a part of a buffer that the program chooses, if it does, begins at a multiple of its size along each dimension.
    pub(super) fn is_tile(&self, part: &Buffer) -> bool {
        let whole = self.module.shape(self.module.value_type(part.handle.value)).unwrap_or(&[]);
        let mut begins = part.begin.iter().zip(&part.shape).zip(whole);
        begins.all(|((begin, &n), whole)| whole.is_multiple_of(n) && self.is_multiple(begin.value, n))
    }

    /// A tile as one of the buffers that the leading dimensions of its reshaped buffer number; `None` where it does not consist of whole rows, so that
    /// elements of others lie between its own.
    fn numbered_tile(&mut self, tile: &Buffer) -> Option<Eval<Buffer>> {
        let ty = self.module.value_type(tile.handle.value);
        let whole = Shape::from_slice(self.module.shape(ty)?);
        let last = (0..whole.len()).rev().find(|&d| whole[d] != tile.shape[d]).unwrap_or(0);
        let alone = tile.shape[..last].iter().all(|&n| n == 1);
        let divides = whole.iter().zip(&tile.shape).all(|(n, t)| n.is_multiple_of(*t));
        if is_part(&self.module, ty, &whole) || !alone || !divides {
            return None;
        }
        let mut numbers = Vec::new();
        for (d, begin) in tile.begin.iter().enumerate() {
            let number = self.quotient(begin.value, tile.shape[d])?;
            if whole[d] != tile.shape[d] {
                numbers.push(number);
            } else if self.module.constant_int(number) != Some(0) {
                return None;
            }
        }
        let counts = whole.iter().zip(&tile.shape).map(|(n, t)| n / t).filter(|&n| n > 1);
        let shape: Shape = counts.chain(tile.shape.iter().copied()).collect();
        let mut view = Buffer { begin: Vec::new(), shape: whole, ..tile.clone() };
        if !numbers.is_empty() {
            view = self.reshaped_buffer(&view, shape)?;
        }
        for number in numbers {
            match self.numbered(&view, &Tensor::scalar(number, Scalar::Int32)) {
                Ok(next) => view = next,
                error => return Some(error),
            }
        }
        Some(Ok(view))
    }

    /// A part of a buffer, whose elements must lie side by side for what is done with it, as such a view.
    pub(super) fn contiguous_part(&mut self, part: &Buffer, what: &str, note: &str) -> Eval<Buffer> {
        let ty = self.module.value_type(part.handle.value);
        if part.begin.is_empty() && !is_part(&self.module, ty, &part.shape) {
            return Ok(part.clone());
        }
        let mut tile = part.clone();
        if part.begin.is_empty() {
            let mut offsets = vec![0; part.shape.len()];
            while let Some(slice) = ttg::MemdescSubslice::of(&self.module, tile.handle.value) {
                for (at, offset) in offsets.iter_mut().zip(slice.offsets(&self.module)) {
                    *at += offset;
                }
                tile.handle.value = slice.src(&self.module);
            }
            let constant = |at: i32| self.scalar_constant(&HostValue::Int(at.into()), &Scalar::Int32.into());
            tile.begin = offsets.into_iter().map(constant).collect::<Eval<_>>()?;
        }
        match self.numbered_tile(&tile) {
            Some(view) => view,
            None => Err(self
                .error(format!("a part of a buffer can't {what}: its elements do not lie side by side"))
                .note(note.to_string())
                .into()),
        }
    }

    /// Whether a number was computed as a multiple of `n`.
    fn is_multiple(&self, value: tilewright_ir::Value, n: u32) -> bool {
        let m = &self.module;
        let known = |v| m.constant_int(v).is_some_and(|known| known % i64::from(n) == 0);
        n == 1
            || known(value)
            || arith::Muli::of(m, value).is_some_and(|product| known(product.rhs(m)))
            || arith::Addi::of(m, value)
                .is_some_and(|sum| self.is_multiple(sum.lhs(m), n) && self.is_multiple(sum.rhs(m), n))
    }

    /// What was computed as a multiple of `n`, divided by it.
    fn quotient(&mut self, value: tilewright_ir::Value, n: u32) -> Option<tilewright_ir::Value> {
        let of = i64::from(n);
        if let Some(known) = self.module.constant_int(value) {
            return (known % of == 0).then(|| builder!(self).i32((known / of) as i32));
        }
        if let Some(product) = arith::Muli::of(&self.module, value) {
            let (number, factor) = (product.lhs(&self.module), product.rhs(&self.module));
            let factor = self.module.constant_int(factor).filter(|factor| factor % of == 0)? / of;
            if factor == 1 {
                return Some(number);
            }
            let mut b = builder!(self);
            let factor = b.i32(factor as i32);
            return Some(arith::Muli::build(&mut b, number, factor).result(b.module));
        }
        let sum = arith::Addi::of(&self.module, value)?;
        let (lhs, rhs) = (sum.lhs(&self.module), sum.rhs(&self.module));
        let (lhs, rhs) = (self.quotient(lhs, n)?, self.quotient(rhs, n)?);
        match [lhs, rhs].map(|v| self.module.constant_int(v)) {
            [Some(0), _] => return Some(rhs),
            [_, Some(0)] => return Some(lhs),
            _ => {}
        }
        let mut b = builder!(self);
        Some(arith::Addi::build(&mut b, lhs, rhs).result(b.module))
    }

    /// An argument that must be a tensor with a shape.
    pub(super) fn block_arg(&mut self, args: &Args, name: &str) -> Eval<Tensor> {
        match args.get(name) {
            Value::Tensor(t) if t.is_block() => Ok(t.clone()),
            other => Err(self.bad_argument(args, name, other, "a tensor with a shape")),
        }
    }

    /// The numbers of a tile along each dimension: given so, or by its number in row-major order.
    fn tile_index(&mut self, args: &Args, whole: &Shape, tile: &Shape) -> Eval<Vec<tilewright_ir::Value>> {
        let function = args.builtin.shown();
        if tile.len() != whole.len() {
            return Err(self.error(format!(
                "{function}: a tile of shape {:?} has {} dimensions, the tensor of shape {:?} has {}",
                tile.as_slice(),
                tile.len(),
                whole.as_slice(),
                whole.len()
            )));
        }
        if let Some(d) = (0..whole.len()).find(|&d| !whole[d].is_multiple_of(tile[d])) {
            return Err(self
                .error(format!(
                    "{function}: dimension {d} of the tensor, {}, is no multiple of the tile's, {}",
                    whole[d], tile[d]
                ))
                .note("a tensor is cut into whole tiles")
                .into());
        }
        let counts: Shape = whole.iter().zip(tile).map(|(n, t)| n / t).collect();
        let mut out = Vec::with_capacity(whole.len());
        match args.get("index") {
            Value::Tuple(t) => {
                if t.items.len() != whole.len() {
                    return Err(self.error(format!(
                        "the index of {function} has {} elements, the tensor {} dimensions",
                        t.items.len(),
                        whole.len()
                    )));
                }
                for (d, item) in t.items.iter().enumerate() {
                    if let Value::Const(HostValue::Int(i)) = item
                        && !(0..i128::from(counts[d])).contains(i)
                    {
                        return Err(self.error(format!(
                            "index[{d}] of {function} is {i}, but there are {} tiles along dimension {d}",
                            counts[d]
                        )));
                    }
                    out.push(self.tile_number(args, item)?);
                }
            }
            Value::Const(HostValue::Int(i)) => {
                let total: i128 = counts.iter().map(|&n| i128::from(n)).product();
                if !(0..total).contains(i) {
                    return Err(self
                        .error(format!("the index of {function} is {i}, but there are {total} tiles"))
                        .note(format!("the grid of tiles is {:?}", counts.as_slice()))
                        .into());
                }
                let mut rest = *i;
                for &n in counts.iter().rev() {
                    out.push(self.tile_number(args, &Value::int(rest % i128::from(n)))?);
                    rest /= i128::from(n);
                }
                out.reverse();
            }
            linear => {
                self.tile_number(args, linear)?;
                let mut rest = linear.clone();
                for (d, &n) in counts.iter().enumerate().rev() {
                    // The outermost has what is out of range.
                    let at = match (d, n) {
                        (0, _) => rest.clone(),
                        (_, 1) => Value::int(0),
                        _ => Value::Tensor(self.tensor_binary(Operator::Mod, &rest, &Value::int(n))?),
                    };
                    out.push(self.tile_number(args, &at)?);
                    if d > 0 && n > 1 {
                        rest =
                            Value::Tensor(self.tensor_binary(Operator::FloorDiv, &rest, &Value::int(n))?);
                    }
                }
                out.reverse();
            }
        }
        Ok(out)
    }

    /// A number of a tile, as int32.
    fn tile_number(&mut self, args: &Args, value: &Value) -> Eval<tilewright_ir::Value> {
        let number = match value {
            Value::Const(HostValue::Int(_)) => self.tensor_of(value)?,
            Value::Tensor(t)
                if !t.is_block() && t.number().is_some_and(|s| s.is_int() && s != Scalar::Int1) =>
            {
                t.clone()
            }
            other => {
                let wanted =
                    "an integer, a scalar tensor of integers, or a tuple of these for each dimension";
                return Err(self.bad_argument(args, "index", other, wanted));
            }
        };
        Ok(self.cast(&number, &Scalar::Int32.into())?.value)
    }
}

/// Whether a buffer of this type and shape is a part of another one along a dimension.
fn is_part(m: &Module, ty: Type, shape: &Shape) -> bool {
    matches!(m.type_kind(ty), TypeKind::MemDesc { alloc_shape: Some(all), .. } if !all.ends_with(shape))
}
