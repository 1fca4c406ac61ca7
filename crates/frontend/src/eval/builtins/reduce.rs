//! Reductions, scans, functions of elements, histograms and gathers.

use tilewright_ir::dialect::tt;
use tilewright_ir::{Opcode, Trait};

use super::super::call::{Args, CallArgs};
use super::super::{Eval, Evaluator, builder};
use crate::dtype::Scalar;
use crate::value::{Shape, Tensor, Value};

/// `1 value`, `2 values`.
fn counted(values: usize) -> String {
    format!("{values} value{}", if values == 1 { "" } else { "s" })
}

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
            return Err(self.error(format!("{} of an empty tuple", args.builtin.shown())));
        };
        if let Some(other) = tensors.iter().find(|t| t.shape != first.shape) {
            return Err(self.error(format!(
                "the tensors given to {} must have one shape, but they have {} and {}",
                args.builtin.shown(),
                first.ty(),
                other.ty()
            )));
        }
        if !first.is_block() {
            return Err(self.error(format!(
                "{} needs a tensor, but this is a scalar of type {}",
                args.builtin.shown(),
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

    /// `tl.reduce`: within the program, or within the warp, and then over the warps where `cross_warp` says so.
    pub(super) fn reduce(&mut self, args: &Args) -> Eval<Value> {
        if !self.bool_arg(args, "cross_warp")? {
            if args.optional("dst_warps").is_some() {
                let text = format!("`dst_warps` of {} without `cross_warp=True`", args.builtin.shown());
                return Err(self.error(text));
            }
            return self.reduce_elements(args);
        }
        // Without an axis each element is combined with those of the other warps.
        let own = match args.optional("axis") {
            None => args.get("input").clone(),
            Some(_) => self.reduce_elements(args)?,
        };
        self.across_warps(args, own)
    }

    fn reduce_elements(&mut self, args: &Args) -> Eval<Value> {
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

    pub(super) fn map_elementwise(&mut self, args: &Args) -> Eval<Value> {
        let Some(pack) = u32::try_from(self.int_arg(args, "pack")?).ok().filter(|n| (1..=64).contains(n))
        else {
            return Err(self.error("pack must be 1 to 64"));
        };
        let mut tensors = args.rest.iter().map(|v| self.tensor_of(v)).collect::<Eval<Vec<Tensor>>>()?;
        let shape = match tensors.first() {
            None => return Err(self.error("tl.map_elementwise needs a tensor to map over")),
            Some(first) => {
                let first = first.clone();
                tensors[1..]
                    .iter()
                    .try_fold(first, |all, t| Ok::<_, super::super::Error>(self.broadcast(&all, t)?.0))?
                    .shape
            }
        };
        if shape.is_empty() {
            return Err(self.error(format!(
                "tl.map_elementwise needs a tensor, but all that it is given are scalars: {}",
                tensors[0].ty()
            )));
        }
        for t in &mut tensors {
            *t = self.broadcast_to(t, &shape)?;
        }
        // The types of the results are those that the function returns: it goes first into a region of an operation that has none.
        let values: Vec<_> = tensors.iter().map(|t| t.value).collect();
        let draft = tt::MapElementwise::build(&mut builder!(self), &values, pack as i32, &[]);
        let region = draft.scalar_op(&self.module);
        let (block, returned, tuple) =
            self.function_of_elements(region, &tensors, pack as usize, args.get("scalar_fn"))?;
        let dtypes: Vec<_> = returned.iter().step_by(pack as usize).map(|t| t.dtype.clone()).collect();
        let types: Vec<_> = dtypes.iter().map(|dtype| self.ir_type(dtype, &shape)).collect();
        for ty in types {
            self.module.add_result(draft.0, ty);
        }
        let values: Vec<_> = returned.iter().map(|t| t.value).collect();
        let outer = std::mem::replace(&mut self.block, block);
        tt::MapElementwiseReturn::build(&mut builder!(self), &values);
        self.block = outer;
        let results = draft.results(&self.module).to_vec();
        let mut out: Vec<Value> = results
            .into_iter()
            .zip(dtypes)
            .map(|(value, dtype)| Value::Tensor(Tensor { value, dtype, shape: shape.clone() }))
            .collect();
        Ok(if tuple { Value::tuple(out) } else { out.swap_remove(0) })
    }

    /// Fills a region with a function of `pack` elements of each tensor. Gives where it ends, what it returned, and whether that was a
    /// tuple.
    fn function_of_elements(
        &mut self,
        region: tilewright_ir::Region,
        tensors: &[Tensor],
        pack: usize,
        function: &Value,
    ) -> Eval<(tilewright_ir::Block, Vec<Tensor>, bool)> {
        let dtypes: Vec<_> =
            tensors.iter().flat_map(|t| std::iter::repeat_n(t.dtype.clone(), pack)).collect();
        let types: Vec<_> = dtypes.iter().map(|dtype| self.element_type(dtype)).collect();
        let block = self.module.append_block(region, &types);
        let arguments = self.module.block_args(block).to_vec();
        let positional = arguments.into_iter().zip(dtypes);
        let positional =
            positional.map(|(value, dtype)| Value::Tensor(Tensor::scalar(value, dtype))).collect();
        let range = self.range;
        let outer = std::mem::replace(&mut self.block, block);
        let result = self.call(function.clone(), CallArgs { positional, keywords: vec![] });
        self.range = range;
        let result = result?;
        let (items, tuple) = match &result {
            Value::Tuple(t) => (t.items.clone(), true),
            other => (vec![other.clone()], false),
        };
        if items.is_empty() || items.iter().any(Value::is_none) {
            return Err(self.error("the function given to tl.map_elementwise must return a value"));
        }
        if !items.len().is_multiple_of(pack) {
            let message = format!(
                "the function given to tl.map_elementwise returns {}, which pack={pack} does not divide",
                counted(items.len())
            );
            return Err(self.error(message).note("it returns `pack` elements of each result").into());
        }
        let returned = items.iter().map(|item| self.tensor_of(item)).collect::<Eval<Vec<Tensor>>>()?;
        for of_result in returned.chunks(pack) {
            if let Some(other) = of_result.iter().find(|t| t.dtype != of_result[0].dtype) {
                let message = format!(
                    "the elements of one result have types {} and {}",
                    of_result[0].dtype, other.dtype
                );
                return Err(self.error(message).note("convert with .to(dtype)").into());
            }
        }
        self.only_arithmetic(block)?;
        let end = std::mem::replace(&mut self.block, outer);
        Ok((end, returned, tuple))
    }

    /// Checks that what is in a block and below it only computes, on scalars.
    fn only_arithmetic(&self, block: tilewright_ir::Block) -> Eval<()> {
        let m = &self.module;
        for op in m.block_ops(block).flat_map(|op| m.all_ops(op)) {
            let on_tensors =
                m.operands(op).iter().chain(m.results(op)).any(|&v| m.is_tensor(m.value_type(v)));
            let control = matches!(m.opcode(op), Some(Opcode::Scf(_)));
            if on_tensors || !(control || m.has_trait(op, Trait::Pure)) {
                return Err(self.unsupported(
                    &format!("`{}` in a function that is given to tl.map_elementwise", m.op_name(op)),
                    "it may compute with scalars, branch and loop",
                ));
            }
        }
        Ok(())
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
        // The operation reads indices with their sign.
        let unsigned = |s: Scalar| s.bits() < 32 && (s == Scalar::Int1 || s.is_unsigned());
        let index = match index.number().is_some_and(unsigned) {
            true => self.cast(&index, &Scalar::Int32.into())?,
            false => index,
        };
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
