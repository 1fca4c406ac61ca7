//! `tle.dsa`: buffers in memories that have names, copies between them, arithmetic on buffers, slices of tensors.
//!
//! Buffers are those of [`local`](super::local) with another memory space, and arithmetic on them is that of tensors between a load
//! and a store: `tle.dsa.add(a, b, c)` is what `c.store(a.load() + b.load())` would be. A target that computes in memory sees from the
//! uses of these what need not move.

use std::sync::Arc;

use ruff_python_ast::{Expr, StmtWith};
use ruff_text_size::Ranged;
use tilewright_ir::dialect::{arith, tt, ttg};
use tilewright_ir::{Builder, Type, TypeKind, ascend, strided};

use super::super::call::Args;
use super::super::control::find_return;
use super::super::stmt::{Flow, Rest};
use super::super::{Eval, Evaluator, builder};
use super::local::buffer;
use crate::dtype::{DType, Scalar};
use crate::host::HostValue;
use crate::value::{Buffer, Shape, Tensor, Value};

/// The function that opens a `with`.
const HINT: &str = "tle.dsa.hint";

/// The module of the spaces.
const SPACES: &str = "tle.dsa.ascend.";

/// What `with tle.dsa.hint(…)` says of the copies inside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hints {
    inter_no_alias: bool,
}

/// An operation of two operands and its result.
type Build = fn(&mut Builder<'_>, tilewright_ir::Value, tilewright_ir::Value) -> tilewright_ir::Value;

/// What a function of two buffers computes: of floats, of signed and of unsigned integers.
pub(super) struct Arithmetic(Build, Build, Build);

macro_rules! arithmetic {
    ($float:ident, $signed:ident, $unsigned:ident) => {
        Arithmetic(
            |b, x, y| arith::$float::build(b, x, y).result(b.module),
            |b, x, y| arith::$signed::build(b, x, y).result(b.module),
            |b, x, y| arith::$unsigned::build(b, x, y).result(b.module),
        )
    };
}

pub(super) const ADD: Arithmetic = arithmetic!(Addf, Addi, Addi);
pub(super) const SUB: Arithmetic = arithmetic!(Subf, Subi, Subi);
pub(super) const MUL: Arithmetic = arithmetic!(Mulf, Muli, Muli);
pub(super) const DIV: Arithmetic = arithmetic!(Divf, Divsi, Divui);
pub(super) const MAX: Arithmetic = arithmetic!(Maxnumf, Maxsi, Maxui);
pub(super) const MIN: Arithmetic = arithmetic!(Minnumf, Minsi, Minui);

impl Evaluator<'_> {
    /// `tle.dsa.alloc`
    pub(super) fn dsa_alloc(&mut self, args: &Args) -> Eval<Value> {
        self.of_one_cta("tle.dsa.alloc")?;
        let (shape, element) = self.buffer_shape(args)?;
        if let Some(layout) = args.optional("layout") {
            return Err(self.bad_argument(args, "layout", layout, "None: the target arranges its memories"));
        }
        let name = if args.get("mem_addr_space").is_none() { "scope" } else { "mem_addr_space" };
        let space = self.space_arg(args, name)?;
        let ty = self.buffer_type(&element, &shape, None, space);
        let alloc = ttg::LocalAlloc::build(&mut builder!(self), None, ty).result(&self.module);
        Ok(buffer(alloc, element, shape, None))
    }

    /// A memory, by the object that names it.
    fn space_arg(&mut self, args: &Args, name: &str) -> Eval<&'static str> {
        let given = args.get(name);
        let space = match given {
            Value::Const(HostValue::Library(path)) => path.strip_prefix(SPACES).and_then(ascend::space),
            _ => None,
        };
        match space {
            Some(space) => Ok(space.attribute),
            None => {
                let wanted =
                    format!("one of the memories {}", ascend::names(|s| format!("{SPACES}{}", s.name)));
                Err(self.bad_argument(args, name, given, &wanted))
            }
        }
    }

    /// The memory that a buffer lies in, as its type says.
    pub(super) fn space_of(&self, buffer: &Buffer) -> &str {
        match self.module.type_kind(self.module.value_type(buffer.handle.value)) {
            TypeKind::MemDesc { memory_space, .. } => ascend::text(&self.module, *memory_space),
            _ => "",
        }
    }

    // ---- copies ----------------------------------------------------------------------------------------------

    /// `tle.dsa.copy`
    pub(super) fn dsa_copy(&mut self, args: &Args) -> Eval<()> {
        let no_alias = match args.optional("inter_no_alias") {
            Some(_) => self.bool_arg(args, "inter_no_alias")?,
            None => self.hints.last().is_some_and(|h| h.inter_no_alias),
        };
        let (src, dst) = (args.get("src").clone(), args.get("dst").clone());
        let is_pointers = |v: &Value| matches!(v, Value::Tensor(t) if t.is_block() && t.dtype.is_pointer());
        match (&src, &dst) {
            (Value::Tensor(pointers), Value::Buffer(to)) if is_pointers(&src) => {
                let to = self.part_at_offsets(args, to, &pointers.shape)?;
                let pointers = self.pointers_for(pointers, &to)?;
                self.check_route(&ascend::GLOBAL, &to)?;
                let extents = self.extents(args, &pointers.shape)?;
                let (src, dst) = (pointers.value, to.handle.value);
                ttg::CopyGlobalToLocal::build(&mut builder!(self), src, dst, &extents, no_alias);
                Ok(())
            }
            (Value::Buffer(from), Value::Tensor(pointers)) if is_pointers(&dst) => {
                self.writable(pointers, "copy")?;
                let from = self.part_at_offsets(args, from, &pointers.shape)?;
                let pointers = self.pointers_for(pointers, &from)?;
                self.check_routes(&from, &ascend::GLOBAL)?;
                let extents = self.extents(args, &pointers.shape)?;
                let (src, dst) = (from.handle.value, pointers.value);
                ttg::CopyLocalToGlobal::build(&mut builder!(self), src, dst, &extents, no_alias);
                Ok(())
            }
            (Value::Buffer(from), Value::Buffer(to)) => {
                // (Only as much as is copied must be there.)
                let mut shape = from.shape.clone();
                if let Value::Tuple(extents) = args.get("shape") {
                    for (size, extent) in shape.iter_mut().zip(&extents.items) {
                        if let Value::Const(HostValue::Int(n @ 1..)) = extent {
                            *size = u32::try_from(*n).map_or(*size, |n| n.min(*size));
                        }
                    }
                }
                let to = self.part_at_offsets(args, to, &shape)?;
                self.of_this_program(from)?;
                self.copy_between(args, from, &to)
            }
            _ => Err(self
                .error(format!("tle.dsa.copy cannot copy {src} to {dst}"))
                .note("it copies between a tensor of pointers and a buffered_tensor, or between two of these")
                .into()),
        }
    }

    fn copy_between(&mut self, args: &Args, from: &Buffer, to: &Buffer) -> Eval<()> {
        let space = ascend::by_attribute(self.space_of(to));
        self.check_routes(from, space.unwrap_or(&ascend::GLOBAL))?;
        // What products were added up in may be rounded on the way.
        let rounds = self.space_of(from) == ascend::L0C
            && from.element().as_scalar().is_some_and(Scalar::is_float)
            && to.element().as_scalar().is_some_and(Scalar::is_float);
        if from.shape.len() != to.shape.len() || (from.element() != to.element() && !rounds) {
            return Err(self.error(format!(
                "tle.dsa.copy between {} and {}: they must have as many dimensions and one dtype",
                Value::Buffer(Arc::new(from.clone())),
                Value::Buffer(Arc::new(to.clone()))
            )));
        }
        let common: Shape = from.shape.iter().zip(&to.shape).map(|(a, b)| *a.min(b)).collect();
        let extents = self.extents(args, &common)?;
        ttg::CopyLocal::build(&mut builder!(self), from.handle.value, to.handle.value, &extents);
        Ok(())
    }

    /// Checks that there is a way from one memory to a buffer's.
    fn check_route(&mut self, from: &ascend::Space, to: &Buffer) -> Eval<()> {
        self.of_this_program(to)?;
        let Some(space) = ascend::by_attribute(self.space_of(to)) else { return Err(self.no_space(to)) };
        self.route(from, space)
    }

    /// Checks that there is a way from a buffer's memory to another.
    fn check_routes(&mut self, from: &Buffer, to: &ascend::Space) -> Eval<()> {
        self.of_this_program(from)?;
        let Some(space) = ascend::by_attribute(self.space_of(from)) else { return Err(self.no_space(from)) };
        self.route(space, to)
    }

    fn route(&self, from: &ascend::Space, to: &ascend::Space) -> Eval<()> {
        if ascend::route(from, to).is_some() {
            return Ok(());
        }
        let ends: Vec<&str> = ascend::ROUTES.iter().filter(|r| r.from == from.name).map(|r| r.to).collect();
        let ends = if ends.is_empty() { "products alone".to_string() } else { ends.join(", ") };
        Err(self
            .error(format!("there is no way from {} to {} on Ascend's cores", from.name, to.name))
            .note(format!("from {} a way leads to {ends}", from.name))
            .into())
    }

    fn no_space(&self, buffer: &Buffer) -> super::super::Error {
        self.error(format!("{} is in no memory of tle.dsa", Value::Buffer(Arc::new(buffer.clone()))))
            .note("tle.dsa.alloc makes buffers for tle.dsa, tle.gpu.alloc those for tle.gpu")
            .into()
    }

    /// Pointers whose elements are those of a buffer, and which are no more than it holds.
    fn pointers_for(&mut self, pointers: &Tensor, buffer: &Buffer) -> Eval<Tensor> {
        let (of, into) = (&pointers.shape, &buffer.shape);
        if of.len() != into.len() || of.iter().zip(into).any(|(a, b)| a > b) {
            return Err(self.error(format!(
                "tle.dsa.copy between {} and a buffer of shape {:?}",
                pointers.ty(),
                into.as_slice()
            )));
        }
        let element = pointers.dtype.as_pointer().map(|p| p.element.clone());
        let rounds = self.space_of(buffer) == ascend::L0C
            && element.as_ref().and_then(DType::as_scalar).is_some_and(Scalar::is_float);
        if element.as_ref() != Some(&buffer.element()) && !rounds {
            return Err(self
                .error(format!(
                    "tle.dsa.copy between {} and a buffer of {}: copies convert nothing",
                    pointers.ty(),
                    buffer.element()
                ))
                .note("convert between: tle.dsa.to_buffer(tle.dsa.to_tensor(buffer).to(dtype), space)")
                .into());
        }
        Ok(self.byte_pointer(pointers.clone())?.0)
    }

    /// The part of a buffer at the `offsets` of a copy, which is as large as what is copied.
    fn part_at_offsets(&mut self, args: &Args, buffer: &Arc<Buffer>, shape: &Shape) -> Eval<Arc<Buffer>> {
        match args.optional("offsets") {
            None => Ok(buffer.clone()),
            Some(_) => self.view_at(args, buffer, shape, &vec![1; shape.len()]).map(Arc::new),
        }
    }

    /// How many elements are copied along each dimension, at most as many as there are.
    fn extents(&mut self, args: &Args, most: &Shape) -> Eval<Vec<tilewright_ir::Value>> {
        let items = match args.get("shape") {
            Value::Tuple(t) if t.items.len() == most.len() => t.items.clone(),
            other => {
                let wanted = format!("a tuple or list of {} extents", most.len());
                return Err(self.bad_argument(args, "shape", other, &wanted));
            }
        };
        let mut extents = Vec::with_capacity(most.len());
        for (d, item) in items.iter().enumerate() {
            if let Value::Const(HostValue::Int(n)) = item
                && !(0..=i128::from(most[d])).contains(n)
            {
                return Err(self.error(format!(
                    "tle.dsa.copy of {n} elements along dimension {d}, where there are {}",
                    most[d]
                )));
            }
            extents.push(self.whole_number(args, "shape", item)?);
        }
        Ok(extents)
    }

    /// A scalar integer, known at compile time or at run time, as int32.
    fn whole_number(&mut self, args: &Args, name: &str, item: &Value) -> Eval<tilewright_ir::Value> {
        let number = match item {
            Value::Const(HostValue::Int(_)) => self.tensor_of(item)?,
            Value::Tensor(t)
                if !t.is_block() && t.number().is_some_and(|s| s.is_int() && s != Scalar::Int1) =>
            {
                t.clone()
            }
            other => return Err(self.bad_argument(args, name, other, "a tuple of integers")),
        };
        Ok(self.cast(&number, &Scalar::Int32.into())?.value)
    }

    // ---- hints -----------------------------------------------------------------------------------------------

    /// `with tle.dsa.hint(…):`, the one context manager that kernels have.
    pub fn with_stmt(&mut self, s: &StmtWith, rest: &Rest<'_>) -> Eval<Flow> {
        let before = self.hints.len();
        for item in &s.items {
            let hints = self.hint_of(&item.context_expr)?;
            if let Some(name) = &item.optional_vars {
                self.range = name.range();
                return Err(self.error("tle.dsa.hint gives nothing that could have a name"));
            }
            self.hints.push(hints);
        }
        if let Some(at) = find_return(&s.body) {
            self.range = at;
            return Err(self.unsupported("`return` inside of `with`", "return behind it"));
        }
        let flow = self.run(&s.body, Some(rest));
        self.hints.truncate(before);
        flow
    }

    fn hint_of(&mut self, expr: &Expr) -> Eval<Hints> {
        if let Expr::Call(call) = expr {
            let callee = self.expr(&call.func)?;
            if matches!(&callee, Value::Const(HostValue::Library(path)) if &**path == HINT) {
                let outer = self.hints.last().copied();
                let given = self.arguments(call)?;
                self.range = call.range();
                let args = self.bind_library(&callee, given)?;
                let inter_no_alias = match call.arguments.is_empty() {
                    true => outer.is_some_and(|h| h.inter_no_alias),
                    false => self.bool_arg(&args, "inter_no_alias")?,
                };
                return Ok(Hints { inter_no_alias });
            }
        }
        self.range = expr.range();
        Err(self.unsupported("`with`", "the one context manager of kernels is tle.dsa.hint(…)"))
    }

    pub(super) fn dsa_hint(&self) -> Eval<Value> {
        let error = self.error("tle.dsa.hint opens a `with`, and says nothing elsewhere");
        Err(error.note("with tle.dsa.hint(inter_no_alias=True):").into())
    }

    // ---- buffers and tensors ---------------------------------------------------------------------------------

    /// `tle.dsa.to_tensor`
    pub(super) fn dsa_to_tensor(&mut self, args: &Args) -> Eval<Tensor> {
        let from = self.buffer_arg(args, "buffer")?;
        // A value is not the buffer: it may be computed with in any case.
        self.bool_arg(args, "writable")?;
        let value = self.read(&from)?;
        match args.optional("target_shape").cloned() {
            None => Ok(value),
            Some(shape) => {
                let shape = self.shape_of(&shape)?;
                self.reshape(&value, &shape, false)
            }
        }
    }

    /// `tle.dsa.to_buffer`
    pub(super) fn dsa_to_buffer(&mut self, args: &Args) -> Eval<Value> {
        let tensor = match args.get("tensor") {
            Value::Tensor(t) if t.is_block() && t.number().is_some() => t.clone(),
            other => {
                return Err(self.bad_argument(args, "tensor", other, "a tensor of numbers with a shape"));
            }
        };
        if let Some(bound) = args.optional("bind_buffer").cloned() {
            let to = self.buffer_arg(args, "bind_buffer")?;
            if args.optional("space").is_some() {
                let space = self.space_arg(args, "space")?;
                if self.space_of(&to) != space {
                    return Err(self.error(format!(
                        "`bind_buffer` of tle.dsa.to_buffer is in another memory than `space`: {bound}"
                    )));
                }
            }
            if to.shape != tensor.shape || to.element() != tensor.dtype {
                return Err(self.error(format!("tle.dsa.to_buffer of {} to {bound}", tensor.ty())));
            }
            self.write(&to, &tensor, None)?;
            return Ok(bound);
        }
        let space = match args.optional("space") {
            Some(_) => self.space_arg(args, "space")?,
            None => ascend::UB,
        };
        Ok(Value::Buffer(Arc::new(self.stored_in(&tensor, space)?)))
    }

    /// `tle.dsa.memory_space`
    pub(super) fn dsa_memory_space(&mut self, args: &Args) -> Eval<Tensor> {
        let x = self.tensor_arg(args, "x")?;
        let name = self.str_arg(args, "space")?;
        let Some(space) = ascend::space(&name) else {
            let wanted = format!("one of the names {}", ascend::names(|s| format!("\"{}\"", s.name)));
            return Err(self.bad_argument(args, "space", args.get("space"), &wanted));
        };
        let held = self.stored_in(&x, space.attribute)?;
        self.read(&held)
    }

    /// `tle.dsa.add` and its like: a load of each operand, the operation, a store.
    pub(super) fn dsa_arithmetic(&mut self, args: &Args, of: &Arithmetic) -> Eval<Value> {
        let mut operands = Vec::new();
        for name in ["lhs", "rhs", "out"] {
            operands.push(self.buffer_arg(args, name)?);
        }
        let [lhs, rhs, out] = &operands[..] else { return Ok(Value::NONE) };
        let function = args.builtin.shown();
        if lhs.shape != rhs.shape || lhs.shape != out.shape {
            return Err(self
                .error(format!(
                    "{function} of buffers of shapes {:?}, {:?} and {:?}: they must be the same",
                    lhs.shape.as_slice(),
                    rhs.shape.as_slice(),
                    out.shape.as_slice()
                ))
                .note("nothing is broadcast here")
                .into());
        }
        let (a, b, c) = (lhs.element(), rhs.element(), out.element());
        if a != b || a != c {
            return Err(
                self.error(format!("{function} of buffers of {a}, {b} and {c}: they must be the same"))
            );
        }
        let (x, y) = (self.read(lhs)?, self.read(rhs)?);
        let build = match x.number() {
            Some(s) if s.is_float() => of.0,
            Some(Scalar::Int1) | None => {
                return Err(self.error(format!("{function} computes with numbers, not {a}")));
            }
            Some(s) if s.is_signed() => of.1,
            Some(_) => of.2,
        };
        let value = build(&mut builder!(self), x.value, y.value);
        self.write(out, &Tensor { value, ..x }, None)?;
        Ok(Value::NONE)
    }

    // ---- slices ----------------------------------------------------------------------------------------------

    /// `tle.dsa.extract_slice`
    pub(super) fn extract_slice(&mut self, args: &Args) -> Eval<Tensor> {
        let x = self.block_arg(args, "x")?;
        let sizes = self.shape_of(args.get("sizes"))?;
        let strides = self.strides(args, x.shape.len())?;
        let offsets = self.offsets(args, "offsets", &x.shape, &sizes, &strides)?;
        let ty = self.ir_type(&x.dtype, &sizes);
        let value =
            tt::ExtractSlice::build(&mut builder!(self), x.value, &offsets, strides, ty).result(&self.module);
        Ok(Tensor { value, dtype: x.dtype, shape: sizes })
    }

    /// `tle.dsa.insert_slice`
    pub(super) fn insert_slice(&mut self, args: &Args) -> Eval<Tensor> {
        let (x, sub) = (self.block_arg(args, "x")?, self.block_arg(args, "sub")?);
        if sub.dtype != x.dtype {
            return Err(self.error(format!(
                "`sub` of tle.dsa.insert_slice has elements of {}, `x` of {}",
                sub.dtype, x.dtype
            )));
        }
        if let Some(sizes) = args.optional("sizes").cloned() {
            let sizes = self.shape_of(&sizes)?;
            if sizes != sub.shape {
                return Err(self.error(format!(
                    "`sizes` of tle.dsa.insert_slice are {:?}, and `sub` is {}",
                    sizes.as_slice(),
                    sub.ty()
                )));
            }
        }
        let strides = self.strides(args, x.shape.len())?;
        let offsets = self.offsets(args, "offsets", &x.shape, &sub.shape, &strides)?;
        let ty = self.ir_type(&x.dtype, &x.shape);
        let mut b = builder!(self);
        let value =
            tt::InsertSlice::build(&mut b, x.value, sub.value, &offsets, strides, ty).result(b.module);
        Ok(Tensor { value, ..x })
    }

    /// `tle.dsa.extract_element`
    pub(super) fn extract_element(&mut self, args: &Args) -> Eval<Tensor> {
        let src = self.block_arg(args, "src")?;
        let (sizes, strides) = (Shape::from_elem(1, src.shape.len()), vec![1; src.shape.len()]);
        let offsets = self.offsets(args, "indice", &src.shape, &sizes, &strides)?;
        let ty = self.ir_type(&src.dtype, &sizes);
        let value = tt::ExtractSlice::build(&mut builder!(self), src.value, &offsets, strides, ty)
            .result(&self.module);
        Ok(self.unsplat(&Tensor { value, dtype: src.dtype, shape: sizes }))
    }

    /// `tle.dsa.subview`
    pub(super) fn subview(&mut self, args: &Args) -> Eval<Value> {
        let src = self.buffer_arg(args, "src")?;
        let sizes = self.shape_of(args.get("sizes"))?;
        let strides = self.strides(args, src.shape.len())?;
        self.view_at(args, &src, &sizes, &strides).map(|view| Value::Buffer(Arc::new(view)))
    }

    /// The part of a buffer of these extents that begins at offsets, with one element of so many along each dimension.
    fn view_at(&mut self, args: &Args, whole: &Buffer, sizes: &Shape, strides: &[i32]) -> Eval<Buffer> {
        let offsets = self.offsets(args, "offsets", &whole.shape, sizes, strides)?;
        self.view_from(whole, &offsets, sizes, strides)
    }

    pub(super) fn view_from(
        &mut self,
        whole: &Buffer,
        offsets: &[tilewright_ir::Value],
        sizes: &Shape,
        strides: &[i32],
    ) -> Eval<Buffer> {
        let ty = self.view_type(whole, sizes)?;
        let ty = self.apart(ty, strides);
        let value = ttg::MemdescSubview::build(&mut builder!(self), whole.handle.value, offsets, ty)
            .result(&self.module);
        Ok(Buffer {
            rank: whole.rank.clone(),
            ..super::local::known_buffer(value, whole.element(), sizes.clone())
        })
    }

    /// The type of a buffer of which every so many elements along each dimension are left.
    fn apart(&mut self, ty: Type, strides: &[i32]) -> Type {
        let mut kind = self.module.type_kind(ty).clone();
        let all = strided::strides(&self.module, ty);
        if let TypeKind::MemDesc { shape, encoding, .. } = &mut kind
            && strides.iter().any(|&stride| stride != 1)
        {
            // (A single element has no neighbour.)
            let own = |d: usize| if shape[d] == 1 { 1 } else { all[d] * strides[d].unsigned_abs() };
            let apart: Vec<u32> = (0..shape.len()).map(own).collect();
            *encoding = strided::layout(&mut self.module, &apart);
        }
        self.module.ty(kind)
    }

    /// The strides of a slice, which are constants.
    fn strides(&mut self, args: &Args, rank: usize) -> Eval<Vec<i32>> {
        let Some(given) = args.optional("strides").cloned() else { return Ok(vec![1; rank]) };
        let strides = self.ints(&given, &format!("`strides` of {}", args.builtin.shown()))?;
        match strides.len() == rank && strides.iter().all(|&stride| stride > 0) {
            true => Ok(strides),
            false => Err(self.bad_argument(args, "strides", &given, &format!("{rank} positive integers"))),
        }
    }

    /// Where a slice begins, checked as far as it is known.
    fn offsets(
        &mut self,
        args: &Args,
        name: &str,
        whole: &Shape,
        sizes: &Shape,
        strides: &[i32],
    ) -> Eval<Vec<tilewright_ir::Value>> {
        let function = args.builtin.shown();
        let items = match args.get(name) {
            Value::Tuple(t) => t.items.clone(),
            other => vec![other.clone()],
        };
        if items.len() != whole.len() || sizes.len() != whole.len() {
            return Err(self.error(format!(
                "{function}: `{name}` has {} numbers and the slice {} extents, where there are {} dimensions",
                items.len(),
                sizes.len(),
                whole.len()
            )));
        }
        let mut offsets = Vec::with_capacity(items.len());
        for (d, item) in items.iter().enumerate() {
            let first = match item {
                Value::Const(HostValue::Int(first)) => *first,
                _ => 0,
            };
            let last = first + i128::from(sizes[d] - 1) * i128::from(strides[d]);
            if first < 0 || last >= i128::from(whole[d]) {
                return Err(self.error(format!(
                    "{function}: elements {first} to {last} along dimension {d}, where there are {}, numbered from 0",
                    whole[d]
                )));
            }
            offsets.push(self.whole_number(args, name, item)?);
        }
        Ok(offsets)
    }
}
