//! Reductions, scans, histograms and gathers.

use tilewright_ir::dialect::tt;

use super::super::call::{Args, CallArgs};
use super::super::{Eval, Evaluator, builder};
use crate::dtype::Scalar;
use crate::value::{Shape, Tensor, Value};

impl Evaluator<'_> {
    /// The operands of a reduction: one tensor or a tuple of tensors of one shape.
    fn reduced(&mut self, args: &Args) -> Eval<(Vec<Tensor>, bool)> {
        let (items, tuple) = match args.get("input") {
            Value::Tuple(t) => (t.items.clone(), true),
            value => (vec![value.clone()], false),
        };
        let mut tensors = Vec::with_capacity(items.len());
        for item in &items {
            match item {
                Value::Tensor(t) => tensors.push(t.clone()),
                other => {
                    return Err(self.bad_argument(args, "input", other, "a tensor or a tuple of tensors"));
                }
            }
        }
        let Some(first) = tensors.first() else {
            return Err(self.error(format!("tl.{} of an empty tuple", args.builtin.name)));
        };
        if let Some(other) = tensors.iter().find(|t| t.shape != first.shape) {
            return Err(self.error(format!(
                "the tensors given to tl.{} must have one shape, but they have {} and {}",
                args.builtin.name,
                first.ty(),
                other.ty()
            )));
        }
        if !first.is_block() {
            return Err(self.error(format!(
                "tl.{} needs a tensor, but this is a scalar of type {}",
                args.builtin.name,
                first.ty()
            )));
        }
        Ok((tensors, tuple))
    }

    /// Fills the region of a reduction with the combine function's body. Gives what it returned.
    fn combine(
        &mut self,
        region: tilewright_ir::Region,
        tensors: &[Tensor],
        function: &Value,
        scan: bool,
    ) -> Eval<()> {
        let types: Vec<_> = tensors.iter().map(|t| self.element_type(&t.dtype)).collect();
        let both: Vec<_> = types.iter().chain(&types).copied().collect();
        let block = self.module.append_block(region, &both);
        let arguments = self.module.block_args(block).to_vec();
        let positional = arguments
            .iter()
            .zip(tensors.iter().chain(tensors))
            .map(|(&value, t)| Value::Tensor(Tensor::scalar(value, t.dtype.clone())))
            .collect();
        let range = self.range;
        let outer = std::mem::replace(&mut self.block, block);
        let result = self.call(function.clone(), CallArgs { positional, keywords: vec![] });
        self.range = range;
        let result = result?;
        let items = match &result {
            Value::Tuple(t) => t.items.clone(),
            other => vec![other.clone()],
        };
        if items.len() != tensors.len() {
            return Err(self.error(format!(
                "the combine function returns {} value{} but {} are combined",
                items.len(),
                if items.len() == 1 { "" } else { "s" },
                tensors.len()
            )));
        }
        let mut values = Vec::new();
        for (item, t) in items.iter().zip(tensors) {
            let value = self.tensor_of(item)?;
            if value.dtype != t.dtype || value.is_block() {
                return Err(self
                    .error(format!(
                        "the combine function returns {} where it is given {}",
                        value.ty(),
                        t.dtype
                    ))
                    .note("it must return the types of the elements; convert with .to(dtype)")
                    .into());
            }
            values.push(value.value);
        }
        if scan {
            tt::ScanReturn::build(&mut builder!(self), &values);
        } else {
            tt::ReduceReturn::build(&mut builder!(self), &values);
        }
        self.block = outer;
        Ok(())
    }

    pub(super) fn reduce(&mut self, args: &Args) -> Eval<Value> {
        let (mut tensors, tuple) = self.reduced(args)?;
        let rank = tensors[0].shape.len();
        let keep_dims = self.bool_arg(args, "keep_dims")?;
        let axis = match args.optional("axis") {
            None => {
                let n = tensors[0].numel() as u32;
                for t in &mut tensors {
                    *t = self.reshape(t, &[n], true)?;
                }
                0
            }
            Some(_) => self.axis_arg(args, "axis", rank)?,
        };
        let whole = args.optional("axis").is_none();
        let mut shape = tensors[0].shape.clone();
        shape.remove(axis);
        let types: Vec<_> = tensors.iter().map(|t| self.ir_type(&t.dtype, &shape)).collect();
        let values: Vec<_> = tensors.iter().map(|t| t.value).collect();
        let op = tt::Reduce::build(&mut builder!(self), &values, axis as i32, &types);
        let region = op.combine(&self.module);
        self.combine(region, &tensors, args.get("combine_fn"), false)?;
        let results = op.results(&self.module).to_vec();
        let mut out = Vec::new();
        for (value, t) in results.into_iter().zip(&tensors) {
            let mut result = Tensor { value, dtype: t.dtype.clone(), shape: shape.clone() };
            if keep_dims {
                result = if whole {
                    self.splat(&result, &vec![1; rank])
                } else {
                    self.expand_dims(&result, axis as u32)
                };
            }
            out.push(Value::Tensor(result));
        }
        Ok(if tuple { Value::tuple(out) } else { out.swap_remove(0) })
    }

    pub(super) fn scan(&mut self, args: &Args) -> Eval<Value> {
        let (tensors, tuple) = self.reduced(args)?;
        let axis = self.axis_arg(args, "axis", tensors[0].shape.len())?;
        let reverse = self.bool_arg(args, "reverse")?;
        let types: Vec<_> = tensors.iter().map(|t| self.ir_type(&t.dtype, &t.shape)).collect();
        let values: Vec<_> = tensors.iter().map(|t| t.value).collect();
        let op = tt::Scan::build(&mut builder!(self), &values, axis as i32, reverse, &types);
        let region = op.combine(&self.module);
        self.combine(region, &tensors, args.get("combine_fn"), true)?;
        let results = op.results(&self.module).to_vec();
        let mut out: Vec<Value> = results
            .into_iter()
            .zip(&tensors)
            .map(|(value, t)| Value::Tensor(Tensor { value, ..t.clone() }))
            .collect();
        Ok(if tuple { Value::tuple(out) } else { out.swap_remove(0) })
    }

    pub(super) fn histogram(&mut self, args: &Args) -> Eval<Tensor> {
        let input = self.tensor_arg(args, "input")?;
        let bins = self.int_arg(args, "num_bins")?;
        if input.shape.len() != 1 || !input.number().is_some_and(Scalar::is_int) {
            return Err(
                self.error(format!("tl.histogram needs a 1-D tensor of integers, not {}", input.ty()))
            );
        }
        let shape = self.shape_of(&Value::int(bins))?;
        let mask = match args.optional("mask") {
            None => None,
            Some(_) => {
                let mask = self.tensor_arg(args, "mask")?;
                if mask.number() != Some(Scalar::Int1) {
                    return Err(
                        self.error(format!("the mask of tl.histogram must be boolean, not {}", mask.ty()))
                    );
                }
                Some(self.broadcast_to(&mask, &input.shape)?.value)
            }
        };
        let ty = self.ir_type(&Scalar::Int32.into(), &shape);
        let value = tt::Histogram::build(&mut builder!(self), input.value, mask, ty).result(&self.module);
        Ok(Tensor { value, dtype: Scalar::Int32.into(), shape })
    }

    pub(super) fn gather(&mut self, args: &Args) -> Eval<Tensor> {
        let (src, index) = (self.tensor_arg(args, "src")?, self.tensor_arg(args, "index")?);
        if !index.number().is_some_and(Scalar::is_int) {
            return Err(self.error(format!("the index of tl.gather must be integers, not {}", index.ty())));
        }
        let axis = self.axis_arg(args, "axis", src.shape.len())?;
        let fits = index.shape.len() == src.shape.len()
            && index.shape.iter().zip(&src.shape).enumerate().all(|(d, (a, b))| d == axis || a == b);
        if !fits {
            return Err(self.error(format!(
                "the index of tl.gather has shape {:?}, which must equal the source's {:?} except in dimension {axis}",
                index.shape.as_slice(),
                src.shape.as_slice()
            )));
        }
        let shape: Shape = index.shape.clone();
        let ty = self.ir_type(&src.dtype, &shape);
        let value = tt::Gather::build(&mut builder!(self), src.value, index.value, axis as i32, false, ty)
            .result(&self.module);
        Ok(Tensor { value, dtype: src.dtype, shape })
    }
}
