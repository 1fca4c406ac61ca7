//! Loads and stores, and the matrix product.

use tilewright_ir::dialect::tt::{self, CacheModifier as C, EvictionPolicy as E};
use tilewright_ir::{AttrKind, marks};

use super::super::call::Args;
use super::super::{Error, Eval, Evaluator, builder};
use crate::dtype::{DType, Scalar};
use crate::value::{Shape, Tensor, Value};

impl Evaluator<'_> {
    /// The pointer argument; what is no pointer gets a hint.
    pub(crate) fn pointer_arg(&mut self, args: &Args, name: &str) -> Eval<Tensor> {
        let function = args.builtin.name.clone();
        match args.get(name) {
            Value::Tensor(t) if t.dtype.is_pointer() => Ok(t.clone()),
            other => Err(self
                .error(format!("tl.{function} needs a pointer or a tensor of pointers, not {other}"))
                .note("a tensor argument of the kernel is a pointer to its first element: tl.load(x_ptr + offsets)")
                .into()),
        }
    }

    /// The mask of a load, store or atomic, brought to the pointer's shape.
    pub(crate) fn mask_arg(&mut self, args: &Args, pointer: &Tensor) -> Eval<Option<Tensor>> {
        let function = args.builtin.name.clone();
        let Some(value) = args.optional("mask") else { return Ok(None) };
        let mask = match value {
            Value::Const(_) | Value::Tensor(_) => self.tensor_of(value)?,
            other => return Err(self.bad_argument(args, "mask", other, "a tensor of booleans")),
        };
        if mask.number() != Some(Scalar::Int1) {
            return Err(self
                .error(format!("the mask of tl.{function} must be boolean, not {}", mask.ty()))
                .note("compare it: mask != 0")
                .into());
        }
        self.fit_to_pointer(&mask, pointer, "mask", &function).map(Some)
    }

    /// Brings `value` to the shape of `pointer`.
    fn fit_to_pointer(
        &mut self,
        value: &Tensor,
        pointer: &Tensor,
        what: &str,
        function: &str,
    ) -> Eval<Tensor> {
        if !pointer.is_block() && value.is_block() {
            return Err(self
                .error(format!(
                    "the {what} of tl.{function} has type {}, but the pointer is a single one",
                    value.ty()
                ))
                .note("add offsets to the pointer, such as tl.arange(0, BLOCK), to access a block")
                .into());
        }
        let fits = value.shape.len() <= pointer.shape.len()
            && value.shape.iter().rev().zip(pointer.shape.iter().rev()).all(|(&a, &b)| a == b || a == 1);
        if !fits {
            return Err(self
                .error(format!(
                    "the {what} of tl.{function} has shape {:?}, which does not broadcast to the pointer's {:?}",
                    value.shape.as_slice(),
                    pointer.shape.as_slice()
                ))
                .note(format!("give the {what} the pointer's shape, as with rows[:, None] and columns[None, :]"))
                .into());
        }
        let mut value = value.clone();
        while value.is_block() && value.shape.len() < pointer.shape.len() {
            value = self.expand_dims(&value, 0);
        }
        self.broadcast_to(&value, &pointer.shape)
    }

    fn only_block_pointers(&self, args: &Args, name: &str, function: &str) -> Eval<()> {
        let given = match args.get(name) {
            Value::Tuple(t) => !t.items.is_empty(),
            Value::Const(c) => c.truth() != Some(false),
            _ => true,
        };
        if given {
            return Err(self
                .error(format!("`{name}` of tl.{function} is for block pointers; the extent of a tensor of pointers is unknown"))
                .note("use a mask")
                .into());
        }
        Ok(())
    }

    /// A load through one pointer, a block of them or a block pointer.
    pub(super) fn any_load(&mut self, args: &Args) -> Eval<Value> {
        match args.get("pointer") {
            Value::Block(block) => self.block_load(args, &block.clone()),
            Value::Buffer(_) => self.load_from_buffer(args).map(Value::Tensor),
            _ => self.load(args).map(Value::Tensor),
        }
    }

    pub(super) fn load(&mut self, args: &Args) -> Eval<Tensor> {
        let pointer = self.pointer_arg(args, "pointer")?;
        self.only_block_pointers(args, "boundary_check", "load")?;
        self.only_block_pointers(args, "padding_option", "load")?;
        if args.optional("mask").is_none() && args.optional("other").is_some() {
            return Err(self
                .error("`other` of tl.load is given without `mask`")
                .note("give a mask, or leave `other` out")
                .into());
        }
        // A mask of a larger shape widens the pointer, as in Triton.
        let pointer = self.widen(pointer, args, "mask")?;
        let mask = self.mask_arg(args, &pointer)?;
        let (pointer, element, boolean) = self.byte_pointer(pointer)?;
        let other = match args.optional("other") {
            None => None,
            Some(value @ Value::Const(c)) => {
                let number = crate::fold::number(c).is_some();
                let scalar = match element.as_scalar() {
                    Some(s) if number && (s.is_float() || !matches!(c, crate::HostValue::Float(_))) => {
                        self.constant_like(c, s)?
                    }
                    _ => {
                        let t = self.tensor_of(value)?;
                        self.cast(&t, &element)?
                    }
                };
                Some(self.splat_constant(&scalar, &pointer.shape))
            }
            Some(Value::Tensor(t)) => {
                let t = self.fit_to_pointer(&t.clone(), &pointer, "`other`", "load")?;
                Some(self.cast(&t, &element)?)
            }
            Some(value) => return Err(self.bad_argument(args, "other", value, "a number or a tensor")),
        };
        let loaded = self.loaded(args, (pointer, element), (mask, other))?;
        if boolean { self.truth_of(&loaded) } else { Ok(loaded) }
    }

    /// What a load with these arguments gives, from pointers to elements of a dtype; asynchronous, if `tle.load` asks for that.
    pub(super) fn loaded(
        &mut self,
        args: &Args,
        (pointer, element): (Tensor, DType),
        (mask, other): (Option<Tensor>, Option<Tensor>),
    ) -> Eval<Tensor> {
        let (cache, evict) = (self.load_cache(args)?, self.eviction(args)?);
        let volatile = self.bool_arg(args, "volatile")?;
        let ty = self.ir_type(&element, &pointer.shape);
        let (mask, other) = (mask.map(|t| t.value), other.map(|t| t.value));
        let mut b = builder!(self);
        let load = tt::Load::build(&mut b, pointer.value, mask, other, cache, evict, volatile, ty);
        if &*args.builtin.path == "tle.load" && self.bool_arg(args, "is_async")? {
            let wanted = self.module.attr(AttrKind::Bool(true));
            self.module.set_attr(load.0, marks::ASYNC, wanted);
        }
        Ok(Tensor { value: load.result(&self.module), dtype: element, shape: pointer.shape })
    }

    /// A constant converted to a number type with wrap-around, as a cast would.
    fn constant_like(&mut self, c: &crate::HostValue, scalar: Scalar) -> Eval<Tensor> {
        let (low, high) = scalar.int_range();
        match crate::fold::number(c) {
            Some(crate::fold::Num::Int(i)) if scalar.is_int() && !(low..=high).contains(&i) => {
                let t = self.tensor_of(&Value::Const(c.clone()))?;
                self.cast(&t, &scalar.into())
            }
            _ => self.scalar_constant(c, &scalar.into()),
        }
    }

    fn widen(&mut self, pointer: Tensor, args: &Args, name: &str) -> Eval<Tensor> {
        match args.get(name) {
            Value::Tensor(t) if pointer.is_block() && t.is_block() => {
                let t = t.clone();
                let smaller = pointer.shape.len() == t.shape.len()
                    && pointer.shape.iter().zip(&t.shape).all(|(&p, &m)| p == m || p == 1 || m == 1)
                    && pointer.shape.iter().zip(&t.shape).any(|(&p, &m)| p == 1 && m > 1);
                if smaller {
                    let shape: Shape = pointer.shape.iter().zip(&t.shape).map(|(&p, &m)| p.max(m)).collect();
                    return self.broadcast_to(&pointer, &shape);
                }
                Ok(pointer)
            }
            _ => Ok(pointer),
        }
    }

    pub(crate) fn load_cache(&mut self, args: &Args) -> Eval<C> {
        self.choice(args, "cache_modifier", &[("", C::None), (".ca", C::Ca), (".cg", C::Cg), (".cv", C::Cv)])
    }

    pub(crate) fn store_cache(&mut self, args: &Args) -> Eval<C> {
        self.choice(
            args,
            "cache_modifier",
            &[("", C::None), (".wb", C::Wb), (".cg", C::Cg), (".cs", C::Cs), (".wt", C::Wt)],
        )
    }

    pub(crate) fn eviction(&mut self, args: &Args) -> Eval<E> {
        self.choice(
            args,
            "eviction_policy",
            &[
                ("", E::Normal),
                ("evict_normal", E::Normal),
                ("evict_first", E::First),
                ("evict_last", E::Last),
            ],
        )
    }

    pub(super) fn store(&mut self, args: &Args) -> Eval<()> {
        let cache = self.store_cache(args)?;
        let evict = self.eviction(args)?;
        let pointer = self.pointer_arg(args, "pointer")?;
        self.only_block_pointers(args, "boundary_check", "store")?;
        self.writable(&pointer, "store")?;
        let value = self.tensor_arg(args, "value")?;
        let value = self.fit_to_pointer(&value, &pointer, "value", "store")?;
        let mask = self.mask_arg(args, &pointer)?;
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

    pub(crate) fn writable(&self, pointer: &Tensor, function: &str) -> Eval<()> {
        if pointer.dtype.as_pointer().is_some_and(|p| p.constant) {
            let ty = pointer.ty();
            return Err(self.error(match function {
                "store" => format!("Cannot store to a constant pointer ({ty})"),
                _ => format!("tl.{function} writes through a constant pointer ({ty})"),
            }));
        }
        Ok(())
    }

    // ---- dot ------------------------------------------------------------------------------------------------

    fn dot_shapes(&self, a: &Tensor, b: &Tensor, what: &str) -> Error {
        self.error(format!("tl.dot {what}: {} and {}", a.ty(), b.ty()))
            .note("tl.dot multiplies [M, K] by [K, N], or [B, …, M, K] by [B, …, K, N]")
            .into()
    }

    pub(super) fn dot(&mut self, args: &Args) -> Eval<Tensor> {
        let (mut a, mut b, [x, y]) = self.dot_operands(args)?;
        let batches = Shape::from_slice(&a.shape[..a.shape.len() - 2]);
        if batches.len() > 1 {
            // Several dimensions of batches are one.
            (a, b) = (self.one_batch(&a)?, self.one_batch(&b)?);
        }
        let rank = a.shape.len();
        let unread = |s: Scalar| matches!(s, Scalar::Fp8E4B15 | Scalar::Fp8E4B8 | Scalar::Fp8E5B16);
        self.warn_of_deprecated(&[x, y]);
        if unread(x) || unread(y) {
            // Formats that no tensor core of NVIDIA reads.
            a = self.cast(&a, &Scalar::Fp16.into())?;
            b = self.cast(&b, &Scalar::Fp16.into())?;
        }
        let result = self.dot_result(args, a.number().unwrap_or(x))?;
        let mut shape = batches.clone();
        shape.extend([a.shape[rank - 2], b.shape[rank - 1]]);
        let mut acc = self.dot_acc(args, &shape, result)?;
        if batches.len() > 1 {
            acc = self.one_batch(&acc)?;
        }
        let precision = self.dot_precision(args)?;
        let imprecise = self.dot_imprecise(args, x.is_fp8() && y.is_fp8(), a.shape[rank - 1])?;
        let tiling = self.dot_tiling(args)?;
        let dot =
            tt::Dot::build(&mut builder!(self), a.value, b.value, acc.value, precision, imprecise, tiling);
        let value = dot.result(&self.module);
        let product = Tensor { value, dtype: result.into(), shape: acc.shape };
        self.reshape(&product, &shape, false)
    }

    /// Warns of 8-bit floats that the option `deprecated_fp8_dot_operand_dtypes` names.
    fn warn_of_deprecated(&self, operands: &[Scalar]) {
        let capability = self.target.and_then(|target| target.strip_prefix("cuda:")?.parse::<u32>().ok());
        let deprecated: Vec<&str> = match self.options.deprecated_fp8_dot_operand_dtypes {
            Some(words) => words.words().collect(),
            None if capability.is_some_and(|capability| capability >= 90) => vec![Scalar::Fp8E4B15.name()],
            None => return,
        };
        if let Some(name) = operands.iter().map(|dtype| dtype.name()).find(|name| deprecated.contains(name)) {
            self.warn(&format!(
                "the use of {name} is deprecated on Hopper and later architectures and can cause significant slow down: no tensor core reads it, \
                 and tl.dot converts it to float16"
            ));
        }
    }

    /// Matrices in several dimensions of batches as those of one.
    fn one_batch(&mut self, matrices: &Tensor) -> Eval<Tensor> {
        let (batches, matrix) = matrices.shape.split_at(matrices.shape.len() - 2);
        let mut shape = Shape::from_slice(&[batches.iter().product()]);
        shape.extend_from_slice(matrix);
        self.reshape(matrices, &shape, false)
    }

    /// What a product is added to: zeros, or `acc`, which must be of the product's type.
    pub(super) fn dot_acc(&mut self, args: &Args, shape: &Shape, result: Scalar) -> Eval<Tensor> {
        match args.optional("acc") {
            None => {
                let zero = self.scalar_constant(&crate::HostValue::Int(0), &result.into())?;
                Ok(self.splat_constant(&zero, shape))
            }
            Some(Value::Tensor(acc)) if acc.shape == *shape && acc.number() == Some(result) => {
                Ok(acc.clone())
            }
            Some(other) => {
                let ty = DType::block(result.into(), shape.iter().map(|&n| i64::from(n)).collect());
                Err(self
                    .error(format!(
                        "`acc` of {} must be {ty} for these operands, not {other}",
                        args.builtin.shown()
                    ))
                    .note("start it with tl.zeros((M, N), dtype=…) of that type")
                    .into())
            }
        }
    }

    /// The operands of a product, which must fit each other, and the types of their elements.
    fn dot_operands(&mut self, args: &Args) -> Eval<(Tensor, Tensor, [Scalar; 2])> {
        let (a, b) = (self.tensor_arg(args, "input")?, self.tensor_arg(args, "other")?);
        let rank = a.shape.len();
        if rank < 2 || b.shape.len() != rank {
            return Err(self.dot_shapes(&a, &b, "needs two matrices, or two batches of matrices"));
        }
        let (Some(x), Some(y)) = (a.number(), b.number()) else {
            return Err(self.dot_shapes(&a, &b, "does not take pointers"));
        };
        let known = |s: Scalar| s.is_float() || matches!(s, Scalar::Int8 | Scalar::UInt8);
        if !known(x) || !known(y) || (x != y && !(x.is_fp8() && y.is_fp8())) {
            return Err(self
                .error(format!("tl.dot needs operands of one dtype (float16, bfloat16, float32, float64, int8 or 8-bit floats), not {x} and {y}"))
                .note("convert one operand with .to(dtype)")
                .into());
        }
        let (of_a, of_b) = (a.shape[rank - 1], b.shape[rank - 2]);
        if of_a != of_b {
            let what = format!("needs equal K, but the operands have {of_a} and {of_b}");
            return Err(self.dot_shapes(&a, &b, &what));
        }
        if a.shape[..rank - 2] != b.shape[..rank - 2] {
            return Err(self.dot_shapes(&a, &b, "needs equal batch extents"));
        }
        Ok((a, b, [x, y]))
    }

    /// The type of a product's elements, of operands of `operand`.
    fn dot_result(&mut self, args: &Args, operand: Scalar) -> Eval<Scalar> {
        use Scalar as S;
        let out = self.dtype_arg(args, "out_dtype")?;
        let Some(out) = out.as_scalar().filter(|_| !out.is_pointer()) else {
            let given = args.get("out_dtype");
            return Err(self.bad_argument(args, "out_dtype", given, "tl.float32 or tl.float16"));
        };
        let result = match operand {
            S::Int8 => S::Int32,
            S::UInt8 => {
                return Err(self.error("tl.dot of uint8 is not supported").note("convert to int8").into());
            }
            S::Fp32 | S::Bf16 => S::Fp32,
            S::Fp64 => S::Fp64,
            _ if matches!(out, S::Fp16 | S::Fp32) => out,
            _ => {
                return Err(self
                    .error(format!("out_dtype of tl.dot is {out}; possible are float32 and float16"))
                    .note("convert the result with .to(dtype)")
                    .into());
            }
        };
        if out == S::Bf16 && operand != S::Int8 {
            return Err(self
                .error("out_dtype of tl.dot cannot be bfloat16")
                .note("use float32 and convert the result with .to(tl.bfloat16)")
                .into());
        }
        // (What is not given is float32.)
        if out != result && out != S::Fp32 {
            self.warn(&format!(
                "out_dtype of tl.dot is {out}, but a product of {operand} is {result} whatever it says: convert it with .to(dtype)"
            ));
        }
        Ok(result)
    }

    /// By how many bits operands are multiplied: `input_precision`, or the older `allow_tf32`.
    fn dot_precision(&mut self, args: &Args) -> Eval<tt::InputPrecision> {
        use tt::InputPrecision as P;
        let allowed: Vec<&str> = match self.options.allowed_dot_input_precisions {
            Some(words) => words.words().collect(),
            None => P::KEYWORDS.to_vec(),
        };
        let given = args.optional("input_precision").is_some();
        let default = self.options.default_dot_input_precision;
        let unless_refused = |precision: P| match precision {
            P::Tf32 if !allowed.contains(&P::Tf32.keyword()) => P::Ieee,
            precision => precision,
        };
        let wanted = match args.optional("allow_tf32") {
            Some(_) if given => {
                return Err(self.error("tl.dot is given both `input_precision` and `allow_tf32`"));
            }
            _ if given => self.str_arg(args, "input_precision")?.to_ascii_lowercase(),
            Some(_) if self.bool_arg(args, "allow_tf32")? => unless_refused(P::Tf32).keyword().to_string(),
            Some(_) => P::Ieee.keyword().to_string(),
            None => unless_refused(default).keyword().to_string(),
        };
        match P::from_keyword(&wanted).filter(|_| allowed.contains(&&*wanted)) {
            Some(precision) => Ok(precision),
            None => {
                let names: Vec<_> = allowed.iter().map(|name| format!("\"{name}\"")).collect();
                let names = names.join(", ");
                Err(self.error(format!("`input_precision` of tl.dot is \"{wanted}\"; possible are {names}")))
            }
        }
    }

    /// How warps divide the result.
    fn dot_tiling(&mut self, args: &Args) -> Eval<tt::Tiling> {
        if args.optional("tiling").is_none() {
            return Ok(tt::Tiling::Default);
        }
        let text = self.str_arg(args, "tiling")?.to_string();
        match tt::Tiling::from_keyword(&text).filter(|&tiling| tiling != tt::Tiling::Default) {
            Some(tiling) => Ok(tiling),
            None => Err(self.error(format!(
                "`tiling` of tl.dot is \"{text}\"; possible are \"horizontal\", \"vertical\", \"square\""
            ))),
        }
    }

    /// How many products of 8-bit floats may be summed up imprecisely.
    pub(super) fn dot_imprecise(&mut self, args: &Args, eight_bit: bool, k: u32) -> Eval<Option<i32>> {
        if args.optional("max_num_imprecise_acc").is_none() {
            let default = self.options.max_num_imprecise_acc_default.filter(|_| eight_bit);
            return Ok(default.and_then(|n| i32::try_from(n.0).ok()));
        }
        let n = self.int_arg(args, "max_num_imprecise_acc")?;
        if n < 0 {
            return Err(self.error(format!("max_num_imprecise_acc ({n}) must be >= 0")));
        }
        if eight_bit && n > i128::from(k) {
            return Err(self.error(format!("max_num_imprecise_acc ({n}) must be <= K ({k})")));
        }
        Ok(i32::try_from(n).ok().filter(|_| eight_bit))
    }
}
