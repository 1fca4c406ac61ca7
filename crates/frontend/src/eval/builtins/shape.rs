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

    pub(super) fn join_builtin(&mut self, args: &Args) -> Eval<Tensor> {
        let (a, b) = (self.tensor_arg(args, "a")?, self.tensor_arg(args, "b")?);
        let (a, b) = self.broadcast(&a, &b)?;
        if a.dtype != b.dtype {
            return Err(self
                .error(format!("tl.join needs one dtype, not {} and {}", a.dtype, b.dtype))
                .note("convert one with .to(dtype)")
                .into());
        }
        self.join(a, b)
    }

    /// Two values of one type side by side in a new last dimension.
    fn join(&mut self, mut a: Tensor, mut b: Tensor) -> Eval<Tensor> {
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
        if a.shape.is_empty() || a.shape.len() != b.shape.len() || a.dtype != b.dtype {
            return Err(self.error(format!(
                "tl.cat needs two blocks of one rank and one dtype, not {} and {}",
                a.ty(),
                b.ty()
            )));
        }
        if self.bool_arg(args, "can_reorder")? && a.shape.len() == 1 {
            let shape = Shape::from_slice(&[a.shape[0] + b.shape[0]]);
            let ty = self.ir_type(&a.dtype, &shape);
            let value = tt::Cat::build(&mut builder!(self), a.value, b.value, ty).result(&self.module);
            return Ok(Tensor { value, dtype: a.dtype, shape });
        }
        let dim = self.axis_arg(args, "dim", a.shape.len())?;
        self.cat_in_order(a, b, dim)
    }

    /// The elements of `a`, then those of `b` along a dimension: joined, with the new dimension before that one, which takes it in.
    fn cat_in_order(&mut self, a: Tensor, b: Tensor, dim: usize) -> Eval<Tensor> {
        if a.shape != b.shape {
            let text = "not supported yet: tl.cat of blocks of different shapes";
            return Err(self
                .error(format!("{text}: {} and {}", a.ty(), b.ty()))
                .note("1-D blocks of any extents go together with can_reorder=True")
                .into());
        }
        let mut shape = a.shape.clone();
        shape[dim] *= 2;
        let pair = self.join(a, b)?;
        let last = pair.shape.len() as i32 - 1;
        let mut order: Vec<i32> = (0..last).collect();
        order.insert(dim, last);
        let pair = self.permute(&pair, &order)?;
        self.reshape(&pair, &shape, false)
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
