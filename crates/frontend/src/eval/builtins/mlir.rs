//! Functions in MLIR (`tle.raw.mlir`): code of one thread, evaluated once for all of them.
//!
//! A value is a tensor with an element for each thread, or one number where all threads have the same; the dialects are functions of
//! the library on such values. Which threads come to a place is a variable of the function, a mask: accesses to memory and assignments
//! are theirs alone. A branch whose condition differs between threads is evaluated for both parts of them, one after the other; a loop goes on
//! while any of them is in it. (This is how ISPC compiles its programs: Pharr and Mark, "ispc: A SPMD Compiler", section 5.)
//!
//! ```text
//! if x < 0:       active' = active & (x < 0)
//!     y = -x      y = where(active', -x, y)
//! ```

use std::sync::Arc;

use ruff_python_ast::name::Name;
use ruff_python_ast::{CmpOp, Expr, Operator, UnaryOp};
use tilewright_ir::dialect::tt;

use super::super::call::{Args, CallArgs};
use super::super::{Eval, Evaluator, Scope, builder};
use super::raw::Given;
use crate::HostObject;
use crate::dtype::Scalar;
use crate::host::HostValue;
use crate::value::{Buffer, RangeValue, Shape, Tensor, Value};

/// The variable that says which threads come here; no name of a program's.
pub(crate) const ACTIVE: Name = Name::new_static("%active");

/// The bounds of a loop that threads go through for themselves.
pub(crate) struct Varying {
    start: Value,
    step: Value,
    /// How often each thread goes through it.
    trips: Tensor,
}

/// A type as a constant.
pub(super) fn ty(scalar: Scalar) -> Value {
    Value::Const(HostValue::DType(scalar.into()))
}

impl Evaluator<'_> {
    /// Evaluates a function for the threads that run it. What it writes is an output, too.
    pub(super) fn run_mlir(
        &mut self,
        object: &Arc<HostObject>,
        name: &str,
        given: &[Given],
        outputs: &mut Vec<usize>,
        threads: u32,
    ) -> Eval<()> {
        let asked = [HostValue::Object(object.clone())];
        let function =
            match self.host.library("tle.raw._function._body", &asked).map_err(|e| self.host_error(e))? {
                HostValue::Jit(function) => function,
                _ => return Err(self.error("internal: a function in MLIR without a body")),
            };
        let positional = given.iter().map(|argument| match argument {
            Given::Direct(t, _) => Value::Tensor(t.clone()),
            Given::Memory(buffer, ..) => Value::Buffer(Arc::new(buffer.clone())),
        });
        let args = CallArgs { positional: positional.collect(), keywords: Vec::new() };
        let def = function.definition().cloned()?;
        let mut scope = self.bind(&function, &def, args)?;
        let threads = if threads == 0 { self.warps_here() * super::WARP_SIZE } else { threads };
        let all = self.scalar_constant(&HostValue::Bool(true), &Scalar::Int1.into())?;
        scope.insert(ACTIVE, Value::Tensor(self.splat_constant(&all, &[threads])));
        let (range, loc) = (self.range, self.loc());
        let written = std::mem::take(&mut self.written_memory);
        self.enter(&function, scope, Some((loc, range)), String::new());
        self.frame_mut().threads = Some(threads);
        let result = self.run_function(&def.body);
        self.frames.pop();
        self.range = range;
        let result = result?;
        let here = std::mem::replace(&mut self.written_memory, written);
        let returned = result.leaves().iter().map(|t| t.value).collect::<Vec<_>>();
        for (i, argument) in given.iter().enumerate() {
            let Given::Memory(buffer, ..) = argument else { continue };
            let handle = buffer.handle.value;
            if (here.contains(&handle) || returned.contains(&handle)) && !outputs.contains(&i) {
                outputs.push(i);
            }
        }
        outputs.sort_unstable();
        let is_memory = |v: &Value| matches!(v, Value::Buffer(_));
        let only_memory = match &result {
            Value::Tuple(t) => t.items.iter().all(is_memory),
            one => one.is_none() || is_memory(one),
        };
        if only_memory {
            return Ok(());
        }
        Err(self.not_supported_yet(&format!(
            "a value that `{name}`, a function in MLIR, returns (it may return the tensors that it writes)"
        )))
    }

    /// How many threads run the function in MLIR that is evaluated, from wherever in the library this is asked.
    pub(crate) fn threads_of_function(&self) -> Option<u32> {
        self.frames.iter().rev().find_map(|f| f.threads)
    }

    pub(super) fn thread_count(&self) -> Eval<u32> {
        self.threads_of_function().ok_or_else(|| {
            let what = "operations of MLIR stand in functions marked by @tle.raw.dialect(name=\"mlir\")";
            self.error(what)
        })
    }

    pub(super) fn thread_number(&mut self) -> Eval<Tensor> {
        let threads = self.thread_count()?;
        Ok(self.range(0, threads))
    }

    pub(super) fn active_threads(&self) -> Eval<Tensor> {
        self.thread_count()?;
        let frame = self.frames.iter().rev().find(|f| f.threads.is_some());
        match frame.and_then(|f| f.scope.get(&ACTIVE)) {
            Some(Value::Tensor(t)) => Ok(t.clone()),
            _ => Err(self.error("internal: a function in MLIR whose threads are not known")),
        }
    }

    pub(crate) fn set_active(&mut self, threads: Tensor) {
        self.frame_mut().scope.insert(ACTIVE, Value::Tensor(threads));
    }

    // ---- control flow -----------------------------------------------------------------------------------------

    /// A condition that differs between the threads of a function in MLIR.
    pub(crate) fn differs(&self, condition: &Value) -> Option<Tensor> {
        self.frame().threads?;
        condition.as_tensor().filter(|t| t.is_block()).cloned()
    }

    fn both_of(&mut self, a: &Tensor, b: &Tensor) -> Eval<Tensor> {
        self.tensor_binary(Operator::BitAnd, &Value::Tensor(a.clone()), &Value::Tensor(b.clone()))
    }

    /// The threads that come here, those of them for which a condition holds, and the others.
    pub(crate) fn split_threads(&mut self, condition: &Tensor) -> Eval<(Tensor, Tensor, Tensor)> {
        let outer = self.active_threads()?;
        let holds = self.truth_of(condition)?;
        let fails = self.tensor_unary(UnaryOp::Not, &holds)?;
        Ok((outer.clone(), self.both_of(&outer, &holds)?, self.both_of(&outer, &fails)?))
    }

    /// What an assignment makes of a variable that has a value already: the threads that don't come here keep that.
    pub(crate) fn where_active(&mut self, name: &Name, value: Value) -> Eval<Value> {
        if self.frame().threads.is_none() || *name == ACTIVE {
            return Ok(value);
        }
        let active = self.active_threads()?;
        let everyone = self.module.constant_value(active.value).is_some();
        let old = self.frame().scope.get(name).cloned();
        let number = |v: &Value| match v {
            Value::Tensor(_) => true,
            Value::Const(c) => crate::fold::number(c).is_some(),
            _ => false,
        };
        let Some(old) =
            old.filter(|old| !everyone && number(old) && number(&value) && !old.identical(&value))
        else {
            return Ok(value);
        };
        let vector = [&value, &old].into_iter().any(|v| v.as_tensor().is_some_and(|t| t.shape.len() > 1));
        let condition = Value::Tensor(if vector { self.expand_dims(&active, 1) } else { active });
        let args = CallArgs { positional: vec![condition, value, old], keywords: Vec::new() };
        self.call(library("language.core.where"), args)
    }

    /// Whether any thread comes here.
    pub(crate) fn any_active(&mut self) -> Eval<Value> {
        let active = self.active_threads()?;
        let number = self.cast(&active, &Scalar::Int32.into())?;
        self.largest(&number)
    }

    fn largest(&mut self, t: &Tensor) -> Eval<Value> {
        let args =
            CallArgs { positional: vec![Value::Tensor(t.clone()), Value::int(0)], keywords: Vec::new() };
        self.call(library("language.standard.max"), args)
    }

    /// Before a `while` whose condition differs between threads: those that enter it are active. Gives the ones that come here.
    pub(crate) fn begin_varying(&mut self, test: &Expr) -> Eval<Option<Tensor>> {
        if self.frame().threads.is_none() {
            return Ok(None);
        }
        let condition = self.expr(test)?;
        let Some(condition) = self.differs(&condition) else { return Ok(None) };
        let (outer, inner, _) = self.split_threads(&condition)?;
        self.set_active(inner);
        Ok(Some(outer))
    }

    /// At the end of its body: those whose condition fails now are done.
    pub(crate) fn leave_varying(&mut self, test: &Expr) -> Eval<()> {
        let condition = self.expr(test)?;
        let condition = self.tensor_of(&condition)?;
        let (_, inner, _) = self.split_threads(&condition)?;
        self.set_active(inner);
        Ok(())
    }

    /// A range whose bounds differ between threads, as one that is long enough for all, and what makes it each thread's own.
    pub(crate) fn uniform_range(&mut self, range: &RangeValue) -> Eval<Option<(RangeValue, Varying)>> {
        let bounds = [&range.start, &range.end, &range.step];
        if !bounds.iter().any(|v| self.differs(v).is_some()) {
            return Ok(None);
        }
        if range.step.as_tensor().is_none() && !matches!(range.step.to_host(), Some(HostValue::Int(1..))) {
            return Err(
                self.not_supported_yet("a loop of threads, each with its own bounds, that counts down")
            );
        }
        let length = self.tensor_of(&range.end)?;
        let length = self.tensor_binary(Operator::Sub, &Value::Tensor(length), &range.start)?;
        let args =
            CallArgs { positional: vec![Value::Tensor(length), range.step.clone()], keywords: Vec::new() };
        let trips = self.call(library("language.standard.cdiv"), args)?;
        let trips = self.tensor_of(&trips)?;
        let active = self.active_threads()?;
        let args = CallArgs {
            positional: vec![Value::Tensor(active), Value::Tensor(trips.clone()), Value::int(0)],
            keywords: Vec::new(),
        };
        let counted = self.call(library("language.core.where"), args)?;
        let counted = self.tensor_of(&counted)?;
        let end = self.largest(&counted)?;
        let uniform = RangeValue { start: Value::int(0), end, step: Value::int(1), ..range.clone() };
        Ok(Some((uniform, Varying { start: range.start.clone(), step: range.step.clone(), trips })))
    }

    /// The variable of such a loop in each thread; those that are through are not active any more.
    pub(crate) fn own_iteration(&mut self, varying: &Varying, number: &Value) -> Eval<Value> {
        let trips = Value::Tensor(varying.trips.clone());
        let goes_on = self.compare(CmpOp::Lt, number.clone(), trips)?;
        let goes_on = self.tensor_of(&goes_on)?;
        let (_, inner, _) = self.split_threads(&goes_on)?;
        self.set_active(inner);
        let offset = self.tensor_of(number)?;
        let offset = self.tensor_binary(Operator::Mult, &Value::Tensor(offset), &varying.step)?;
        Ok(Value::Tensor(self.tensor_binary(Operator::Add, &Value::Tensor(offset), &varying.start)?))
    }

    /// A number that all threads have the same, as one of each of them where another value is that.
    pub(crate) fn widened(&mut self, value: Value, like: &Value) -> Eval<Value> {
        match (&value, like) {
            (Value::Tensor(t), Value::Tensor(wide))
                if is_widened(t, wide) && self.frame().threads.is_some() =>
            {
                Ok(Value::Tensor(self.broadcast_to(t, &wide.shape)?))
            }
            _ => Ok(value),
        }
    }

    /// Whether a loop makes a number that all threads have the same one that differs: it begins as such, then.
    pub(crate) fn must_widen(&self, carried: &[(Name, Value)], after: &Scope) -> bool {
        let differs = |(name, before): &(Name, Value)| match (before, after.get(name)) {
            (Value::Tensor(t), Some(Value::Tensor(wide))) => is_widened(t, wide),
            _ => false,
        };
        self.frame().threads.is_some() && carried.iter().any(differs)
    }

    /// Has the variables begin so.
    pub(crate) fn widen_carried(&mut self, carried: &[(Name, Value)], after: &Scope) -> Eval<()> {
        for (name, before) in carried {
            let Some(wide) = after.get(name).cloned() else { continue };
            let value = self.widened(before.clone(), &wide)?;
            self.frame_mut().scope.insert(name.clone(), value);
        }
        Ok(())
    }

    // ---- memory -----------------------------------------------------------------------------------------------

    /// `place(memory, indices, writes, length)`
    pub(super) fn place_in_memory(&mut self, args: &Args) -> Eval<Tensor> {
        let threads = self.thread_count()?;
        let length = self.vector_length(args, "length", 0)?;
        let items = match args.get("indices") {
            Value::Tuple(t) => t.items.clone(),
            one => vec![one.clone()],
        };
        let mut indices = Vec::new();
        for (i, item) in items.iter().enumerate() {
            let index = self.tensor_of(item)?;
            if !index.number().is_some_and(Scalar::is_int) || index.is_block() && index.shape[..] != [threads]
            {
                return Err(self.error(format!("an index of MLIR is an integer of each thread, not {item}")));
            }
            let index = self.broadcast_to(&index, &[threads])?;
            indices.push(match length {
                0 => index,
                length => self.side_by_side(&index, length, i + 1 == items.len())?,
            });
        }
        let extents = [threads, length];
        let shape = Shape::from_slice(&extents[..if length == 0 { 1 } else { 2 }]);
        match args.get("memory").clone() {
            Value::Buffer(buffer) => {
                if buffer.shape.len() != indices.len() {
                    return Err(self.error(format!(
                        "{} indices for a tensor of {} dimensions",
                        indices.len(),
                        buffer.shape.len()
                    )));
                }
                if Self::is_true(args.get("writes")) {
                    self.written_memory.push(buffer.handle.value);
                }
                let mut own = Vec::new();
                for index in indices {
                    own.push(self.cast(&index, &Scalar::Int32.into())?);
                }
                self.pointers(&buffer, &own, &shape)
            }
            Value::Tensor(pointer) if pointer.dtype.is_pointer() && indices.len() == 1 => {
                let pointer = self.spread_over(&pointer, length)?;
                self.tensor_binary(Operator::Add, &Value::Tensor(pointer), &Value::Tensor(indices.remove(0)))
            }
            other => Err(self.bad_argument(
                args,
                "memory",
                &other,
                "a tensor, a memref, or a pointer with one index",
            )),
        }
    }

    /// The indices of the elements of a vector, from one of each thread on: along the last dimension they count up.
    fn side_by_side(&mut self, index: &Tensor, length: u32, last: bool) -> Eval<Tensor> {
        let wide = self.spread_over(index, length)?;
        if !last {
            return Ok(wide);
        }
        let number = self.range(0, length);
        let number = self.expand_dims(&number, 0);
        let number = self.broadcast_to(&number, &wide.shape)?;
        self.tensor_binary(Operator::Add, &Value::Tensor(wide), &Value::Tensor(number))
    }

    /// A number of each thread as a vector of so many; 0: as it is.
    fn spread_over(&mut self, t: &Tensor, length: u32) -> Eval<Tensor> {
        let threads = self.thread_count()?;
        if length == 0 || t.shape.len() > 1 {
            return Ok(t.clone());
        }
        let each = self.broadcast_to(t, &[threads])?;
        let column = self.expand_dims(&each, 1);
        self.broadcast_to(&column, &[threads, length])
    }

    /// How many elements a vector has.
    fn vector_length(&mut self, args: &Args, name: &str, least: u32) -> Eval<u32> {
        // A type that a variable holds has its number as a value.
        let known = args.get(name).as_tensor().and_then(|t| self.module.constant_int(t.value));
        let n = match known {
            Some(n) => i128::from(n),
            None => self.int_arg(args, name)?,
        };
        match u32::try_from(n) {
            Ok(n) if (least..=1024).contains(&n) => Ok(n),
            _ => Err(self.error(format!("a vector has {least} to 1024 elements, not {n}"))),
        }
    }

    /// `spread(value, length)`
    pub(super) fn spread(&mut self, args: &Args) -> Eval<Value> {
        let length = self.vector_length(args, "length", 1)?;
        let value = self.tensor_of(args.get("value"))?;
        if value.shape.len() > 1 && value.shape[1] != length {
            return Err(self
                .error(format!("a vector of {} elements where one of {length} is needed", value.shape[1])));
        }
        self.spread_over(&value, length).map(Value::Tensor)
    }

    /// `ir.VectorType.get(shape, element_type)`: how many elements, and their type.
    pub(super) fn vector_type(&mut self, args: &Args) -> Eval<Value> {
        let length = match args.get("shape") {
            Value::Tuple(t) if t.items.len() == 1 => t.items[0].clone(),
            other => {
                let what = format!("vectors of other than one dimension, {other}");
                return Err(self.not_supported_yet(&what));
            }
        };
        Ok(Value::tuple(vec![length, args.get("element_type").clone()]))
    }

    /// `extent(memory, dimension)`
    pub(super) fn extent_of_memory(&mut self, args: &Args) -> Eval<Value> {
        let buffer: Arc<Buffer> = match args.get("memory") {
            Value::Buffer(buffer) => buffer.clone(),
            other => return Err(self.bad_argument(args, "memory", other, "a tensor or a memref")),
        };
        let dimension = match args.get("dimension") {
            Value::Tensor(t) => self.module.constant_int(t.value).map(i128::from),
            _ => Some(self.int_arg(args, "dimension")?),
        };
        let extent = dimension.and_then(|d| buffer.shape.get(usize::try_from(d).ok()?).copied());
        match extent {
            Some(n) => {
                Ok(Value::Tensor(self.scalar_constant(&HostValue::Int(n.into()), &Scalar::Int64.into())?))
            }
            None => {
                Err(self.error("a dimension of MLIR's `dim` is the constant number of one that there is"))
            }
        }
    }

    // ---- messages, types --------------------------------------------------------------------------------------

    /// `vprintf(format, *args)`
    pub(super) fn vprintf(&mut self, args: &Args) -> Eval<Value> {
        let active = self.active_threads()?;
        if self.module.constant_value(active.value).is_none() {
            return Err(self.not_supported_yet("vprintf under a condition that differs between threads"));
        }
        let format = self.str_arg(args, "format")?;
        let prefix = format.split('%').next().unwrap_or_default().trim_end().to_string();
        let mut positional = vec![Value::Const(HostValue::str(&prefix))];
        positional.extend(args.rest.iter().cloned());
        self.call(library("language.core.device_print"), CallArgs { positional, keywords: Vec::new() })
    }

    /// `vassert(condition, format, *args)`
    pub(super) fn vassert(&mut self, args: &Args) -> Eval<Value> {
        let condition = self.tensor_arg(args, "condition")?;
        let holds = self.truth_of(&condition)?;
        let active = self.active_threads()?;
        let away = self.tensor_unary(UnaryOp::Not, &active)?;
        let fine = self.tensor_binary(Operator::BitOr, &Value::Tensor(holds), &Value::Tensor(away))?;
        let message = self.str_arg(args, "format")?;
        tt::Assert::build(&mut builder!(self), fine.value, message);
        Ok(Value::NONE)
    }

    /// `ir.IntegerType.get_signless(width)`
    pub(super) fn signless_integer(&mut self, args: &Args) -> Eval<Value> {
        Ok(ty(match self.int_arg(args, "width")? {
            1 => Scalar::Int1,
            8 => Scalar::Int8,
            16 => Scalar::Int16,
            32 => Scalar::Int32,
            64 => Scalar::Int64,
            other => {
                return Err(
                    self.error(format!("there are integers of 1, 8, 16, 32 and 64 bits, not {other}"))
                );
            }
        }))
    }
}

fn is_widened(t: &Tensor, wide: &Tensor) -> bool {
    !t.is_block() && wide.is_block() && t.dtype == wide.dtype
}

fn library(path: &str) -> Value {
    Value::Const(HostValue::Library(path.into()))
}
