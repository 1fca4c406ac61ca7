//! Shape operators.

use tilewright_ir::dialect::tt;

use super::super::call::Args;
use super::super::{Eval, Evaluator, builder};
use crate::value::{Shape, Tensor, Value};

impl Evaluator<'_> {
    pub(super) fn broadcast_pair(&mut self, args: &Args) -> Eval<Value> {
        if let (Value::Const(_), shape @ Value::Tuple(_)) = (args.get("input"), args.get("other")) {
            // As documents of TLE write a block of one number.
            let (number, shape) = (self.tensor_arg(args, "input")?, self.shape_of(shape)?);
            return Ok(Value::Tensor(self.splat(&number, &shape)));
        }
        let (a, b) = (self.tensor_arg(args, "input")?, self.tensor_arg(args, "other")?);
        let (a, b) = self.broadcast(&a, &b)?;
        Ok(Value::tuple(vec![Value::Tensor(a), Value::Tensor(b)]))
    }

    /// Reorders dimensions; `swaps` the last two where no order is given.
    pub(super) fn permute_builtin(&mut self, args: &Args, swaps: bool) -> Eval<Tensor> {
        let input = self.tensor_arg(args, "input")?;
        let rank = input.shape.len();
        let dims = variadic(&args.rest);
        let mut order = self.ints(&dims, "the order of dimensions")?;
        if order.is_empty() {
            if !swaps || rank < 2 {
                return Err(self.error(format!(
                    "{} of {} needs an order of dimensions",
                    args.builtin.shown(),
                    input.ty()
                )));
            }
            order = (0..rank as i32).collect();
            order.swap(rank - 2, rank - 1);
        }
        for d in &mut order {
            if *d < 0 {
                *d += rank as i32;
            }
        }
        self.permute(&input, &order)
    }

    pub(super) fn join(&mut self, args: &Args) -> Eval<Tensor> {
        let (a, b) = (self.tensor_arg(args, "a")?, self.tensor_arg(args, "b")?);
        let (mut a, mut b) = self.broadcast(&a, &b)?;
        if a.dtype != b.dtype {
            return Err(self
                .error(format!("tl.join needs one dtype, not {} and {}", a.dtype, b.dtype))
                .note("convert one with .to(dtype)")
                .into());
        }
        let scalars = !a.is_block();
        if scalars {
            (a, b) = (self.expand_dims(&a, 0), self.expand_dims(&b, 0));
        }
        let mut shape = a.shape.clone();
        shape.push(2);
        let ty = self.ir_type(&a.dtype, &shape);
        let value = tt::Join::build(&mut builder!(self), a.value, b.value, ty).result(&self.module);
        let out = Tensor { value, dtype: a.dtype, shape };
        if scalars { self.reshape(&out, &[2], false) } else { Ok(out) }
    }

    pub(super) fn split(&mut self, args: &Args) -> Eval<Value> {
        let a = self.tensor_arg(args, "a")?;
        if a.shape.last() != Some(&2) {
            return Err(
                self.error(format!("tl.split needs a last dimension of extent 2, but this is {}", a.ty()))
            );
        }
        // Two values become a matrix of one row, so that the halves have a shape.
        let wide = if a.shape.len() == 1 { self.expand_dims(&a, 0) } else { a.clone() };
        let shape: Shape = wide.shape[..wide.shape.len() - 1].into();
        let ty = self.ir_type(&wide.dtype, &shape);
        let op = tt::Split::build(&mut builder!(self), wide.value, ty, ty);
        let (lhs, rhs) = (op.lhs(&self.module), op.rhs(&self.module));
        let mut halves = Vec::new();
        for value in [lhs, rhs] {
            let half = Tensor { value, dtype: wide.dtype.clone(), shape: shape.clone() };
            halves.push(Value::Tensor(if a.shape.len() == 1 { self.unsplat(&half) } else { half }));
        }
        Ok(Value::tuple(halves))
    }

    pub(super) fn reshape_builtin(&mut self, args: &Args, reorder: bool) -> Eval<Tensor> {
        let input = self.tensor_arg(args, "input")?;
        let shape = self.variadic_shape(args)?;
        self.reshape(&input, &shape, reorder)
    }

    pub(super) fn expand_dims_builtin(&mut self, args: &Args) -> Eval<Tensor> {
        let mut input = self.tensor_arg(args, "input")?;
        let axes = self.ints(args.get("axis"), "`axis` of tl.expand_dims")?;
        let rank = (input.shape.len() + axes.len()) as i32;
        let mut sorted = Vec::new();
        for axis in axes {
            let at = if axis < 0 { axis + rank } else { axis };
            if !(0..rank).contains(&at) || sorted.contains(&at) {
                return Err(self.error(format!("{axis} is no new dimension for {}", input.ty())));
            }
            sorted.push(at);
        }
        sorted.sort_unstable();
        for axis in sorted {
            input = self.expand_dims(&input, axis as u32);
        }
        Ok(input)
    }

    pub(super) fn item(&mut self, args: &Args) -> Eval<Tensor> {
        let input = self.tensor_arg(args, "input")?;
        if input.numel() != 1 {
            return Err(self.error(format!("tl.item needs one element, but this is {}", input.ty())));
        }
        Ok(if input.is_block() { self.unsplat(&input) } else { input })
    }

    pub(super) fn cat(&mut self, args: &Args) -> Eval<Tensor> {
        let (a, b) = (self.tensor_arg(args, "input")?, self.tensor_arg(args, "other")?);
        if !self.bool_arg(args, "can_reorder")? {
            return Err(self
                .error("tl.cat may put elements in any order, and must be told that this is fine")
                .note("write can_reorder=True; to keep the order use tl.join and tl.reshape")
                .into());
        }
        if a.shape.len() != 1 || b.shape.len() != 1 || a.dtype != b.dtype {
            return Err(self.error(format!(
                "tl.cat needs two 1-D tensors of one dtype, not {} and {}",
                a.ty(),
                b.ty()
            )));
        }
        let shape = Shape::from_slice(&[a.shape[0] + b.shape[0]]);
        let ty = self.ir_type(&a.dtype, &shape);
        let value = tt::Cat::build(&mut builder!(self), a.value, b.value, ty).result(&self.module);
        Ok(Tensor { value, dtype: a.dtype, shape })
    }

    pub(super) fn variadic_shape(&mut self, args: &Args) -> Eval<Shape> {
        let value = variadic(&args.rest);
        self.shape_of(&value)
    }
}

/// `f(x, (a, b))` and `f(x, a, b)` mean the same.
fn variadic(rest: &[Value]) -> Value {
    match rest {
        [tuple @ Value::Tuple(_)] => tuple.clone(),
        _ => Value::tuple(rest.to_vec()),
    }
}
