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
//!
//! A thread that returns under such a condition, or in a loop, is away from then on: who has returned, and with what, are variables of the function, too.

use std::sync::Arc;

use ruff_python_ast::name::Name;
use ruff_python_ast::{CmpOp, Expr, Operator, Stmt, UnaryOp};
use ruff_text_size::TextRange;
use tilewright_ir::dialect::tt;

use super::super::call::{Args, CallArgs};
use super::super::control::find_return;
use super::super::stmt::Flow;
use super::super::{Eval, Evaluator, Scope, builder};
use super::raw::Given;
use crate::HostObject;
use crate::dtype::Scalar;
use crate::host::HostValue;
use crate::value::{Buffer, RangeValue, Shape, Tensor, Value};

/// The variable that says which threads come here; no name of a program's.
pub(crate) const ACTIVE: Name = Name::new_static("%active");

/// The variables that say which threads have returned, and with what.
const RETURNED: Name = Name::new_static("%returned");
const RESULT: Name = Name::new_static("%result");

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
    /// Evaluates a function for the threads that run it. What it writes is an output, too. Gives what the function returns, if that is more than such: a number
    /// of each thread as a tensor with an element for each.
    pub(super) fn run_mlir(
        &mut self,
        object: &Arc<HostObject>,
        given: &[Given],
        outputs: &mut Vec<usize>,
        threads: &[u32],
    ) -> Eval<Option<Value>> {
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
        let mut extents = [1; 3];
        match threads {
            [] => extents[0] = self.warps_here() * super::WARP_SIZE,
            said => extents[..said.len()].copy_from_slice(said),
        }
        let all = self.scalar_constant(&HostValue::Bool(true), &Scalar::Int1.into())?;
        scope.insert(ACTIVE, Value::Tensor(self.splat_constant(&all, &[extents.iter().product()])));
        let (range, loc) = (self.range, self.loc());
        let written = std::mem::take(&mut self.written_memory);
        self.enter(&function, scope, Some((loc, range)), String::new());
        self.frame_mut().threads = Some(extents);
        let result = self.run_function(&def.body);
        let result = result.and_then(|result| self.of_threads(result, given));
        self.frames.pop();
        self.range = range;
        let (result, returned) = result?;
        let here = std::mem::replace(&mut self.written_memory, written);
        for (i, argument) in given.iter().enumerate() {
            let Given::Memory(buffer, ..) = argument else { continue };
            let handle = buffer.handle.value;
            if (here.contains(&handle) || returned.contains(&handle)) && !outputs.contains(&i) {
                outputs.push(i);
            }
        }
        outputs.sort_unstable();
        Ok(result)
    }

    /// What a function's returned values are to its caller, nothing where that is memory alone, and the buffers among them.
    fn of_threads(
        &mut self,
        result: Value,
        given: &[Given],
    ) -> Eval<(Option<Value>, Vec<tilewright_ir::Value>)> {
        let several = matches!(result, Value::Tuple(_));
        let items = match result {
            Value::Tuple(t) => t.items.to_vec(),
            one => vec![one],
        };
        let mut memory = Vec::new();
        let mut all = Vec::new();
        for item in &items {
            all.push(match item {
                Value::Buffer(buffer) => {
                    memory.push(buffer.handle.value);
                    let of_tensor = |g: &Given| matches!(g, Given::Memory(b, Some(_), _) if b.handle.value == buffer.handle.value);
                    match given.iter().any(of_tensor) {
                        true => Value::Tensor(self.read(buffer)?),
                        false => item.clone(),
                    }
                }
                Value::Tensor(t) if t.dtype.is_pointer() || t.shape.len() > 1 => item.clone(),
                one if one.is_none() => Value::NONE,
                number => Value::Tensor(self.of_each_thread(number)?),
            });
        }
        if items.iter().all(|v| v.is_none() || matches!(v, Value::Buffer(_))) {
            return Ok((None, memory));
        }
        let all = if several { Value::tuple(all) } else { all.swap_remove(0) };
        Ok((Some(all), memory))
    }

    /// A number as one of each thread.
    pub(crate) fn of_each_thread(&mut self, number: &Value) -> Eval<Tensor> {
        let threads = self.thread_count()?;
        let number = self.tensor_of(number)?;
        match number.shape.len() {
            0 | 1 => self.broadcast_to(&number, &[threads]),
            _ => Ok(number),
        }
    }

    // ---- returns ----------------------------------------------------------------------------------------------

    /// Whether some threads may go on behind a return here.
    pub(crate) fn returns_by_mask(&self) -> bool {
        let frame = self.frame();
        frame.threads.is_some() && (frame.masked > 0 || frame.loops > 0)
    }

    /// Whether a branch with returns is one that threads take by a mask, though they all have the same condition.
    pub(crate) fn branches_by_mask(&self) -> bool {
        self.returns_by_mask() || self.frame().scope.contains_key(&RETURNED)
    }

    /// The threads that come here return.
    pub(crate) fn return_active(&mut self, value: Value) -> Eval<()> {
        let active = self.active_threads()?;
        if !value.is_none() {
            let value = self.widest(value)?;
            match self.frame().scope.get(&RESULT).cloned() {
                Some(before) => {
                    let result = self.either(&active, &value, &before)?;
                    self.frame_mut().scope.insert(RESULT, result);
                }
                None if self.frame().loops > 0 => self.frame_mut().wanted_result = Some(value),
                None => _ = self.frame_mut().scope.insert(RESULT, value),
            }
        } else if self.frame().scope.contains_key(&RESULT) {
            return Err(self.returns_both());
        }
        let gone = match self.frame().scope.get(&RETURNED).cloned() {
            Some(Value::Tensor(gone)) => {
                self.tensor_binary(Operator::BitOr, &Value::Tensor(gone), &Value::Tensor(active))?
            }
            _ => active,
        };
        self.frame_mut().scope.insert(RETURNED, Value::Tensor(gone));
        let nobody = self.nobody()?;
        self.set_active(nobody);
        Ok(())
    }

    /// Nobody, as a mask.
    fn nobody(&mut self) -> Eval<Tensor> {
        let threads = self.thread_count()?;
        let none = self.scalar_constant(&HostValue::Bool(false), &Scalar::Int1.into())?;
        Ok(self.splat_constant(&none, &[threads]))
    }

    /// Numbers of what a return gives as those of each thread.
    fn widest(&mut self, value: Value) -> Eval<Value> {
        match value {
            Value::Tuple(t) => {
                let items = t.items.iter().map(|v| self.widest(v.clone())).collect::<Eval<Vec<_>>>()?;
                Ok(Value::tuple(items))
            }
            Value::Buffer(_) => Ok(value),
            number => self.of_each_thread(&number).map(Value::Tensor),
        }
    }

    /// One value for the threads of a mask, another one for the others.
    fn either(&mut self, mask: &Tensor, value: &Value, other: &Value) -> Eval<Value> {
        if value.identical(other) {
            return Ok(value.clone());
        }
        match (value, other) {
            (Value::Tuple(a), Value::Tuple(b)) if a.items.len() == b.items.len() => {
                let both = a.items.iter().zip(b.items.iter());
                let items = both.map(|(a, b)| self.either(mask, a, b)).collect::<Eval<Vec<_>>>()?;
                Ok(Value::tuple(items))
            }
            (Value::Tensor(t), Value::Tensor(_)) => {
                let mut mask = mask.clone();
                while mask.shape.len() < t.shape.len() {
                    mask = self.expand_dims(&mask, mask.shape.len() as u32);
                }
                let positional = vec![Value::Tensor(mask), value.clone(), other.clone()];
                self.call(library("language.core.where"), CallArgs { positional, keywords: Vec::new() })
            }
            _ => Err(self.returns_both()),
        }
    }

    fn returns_both(&self) -> super::super::Error {
        self.error("threads return values of different kinds")
            .note("each `return` of a function in MLIR gives as many values, numbers or the same memory, or none")
            .into()
    }

    /// What all threads return, where the last of them give this.
    pub(crate) fn with_returned(&mut self, value: Value) -> Eval<Value> {
        if self.frame().threads.is_none() {
            return Ok(value);
        }
        let scope = &self.frame().scope;
        let (gone, result) = (scope.get(&RETURNED).cloned(), scope.get(&RESULT).cloned());
        match (gone, result) {
            (None, None) => Ok(value),
            (Some(Value::Tensor(gone)), Some(result)) if !value.is_none() => {
                let value = self.widest(value)?;
                self.either(&gone, &result, &value)
            }
            (Some(_), None) if value.is_none() => Ok(value),
            _ => Err(self.returns_both()),
        }
    }

    /// Behind a loop that threads leave by returning alone: nobody comes here.
    pub(crate) fn all_returned(&mut self) -> Eval<Flow> {
        let nobody = self.nobody()?;
        self.set_active(nobody);
        if self.returns_by_mask() {
            return Ok(Flow::Return(Value::NONE));
        }
        let result = self.frame().scope.get(&RESULT).cloned();
        Ok(Flow::Return(result.unwrap_or(Value::NONE)))
    }

    /// Before a loop with returns: what they change is there.
    pub(crate) fn begin_returns(&mut self, body: &[Stmt], assigned: &mut Vec<Name>) -> Eval<bool> {
        if self.frame().threads.is_none() || find_return(body).is_none() {
            return Ok(false);
        }
        if !self.frame().scope.contains_key(&RETURNED) {
            let nobody = self.nobody()?;
            self.frame_mut().scope.insert(RETURNED, Value::Tensor(nobody));
        }
        assigned.extend([RETURNED, RESULT]);
        Ok(true)
    }

    /// What a return in the loops that end here gives, if there is no variable for it yet.
    pub(crate) fn wanted_result(&mut self) -> Option<Value> {
        if self.frame().loops > 0 {
            return None;
        }
        self.frame_mut().wanted_result.take()
    }

    /// The variable for what returns in a loop give, of their type.
    pub(crate) fn begin_result(&mut self, like: &Value) -> Eval<()> {
        let result = self.zeros_like(like)?;
        self.frame_mut().scope.insert(RESULT, result);
        Ok(())
    }

    /// Zeros of the types that a value is made of.
    pub(crate) fn zeros_like(&mut self, like: &Value) -> Eval<Value> {
        let mut leaves = Vec::new();
        for t in like.leaves() {
            leaves.push((t.dtype.clone(), t.shape.clone()));
        }
        let mut zeros = Vec::new();
        for (dtype, shape) in leaves {
            let zero = self.scalar_constant(&HostValue::Int(0), &Scalar::Int32.into())?;
            let zero = self.cast(&zero, &dtype)?;
            zeros.push(self.splat(&zero, &shape));
        }
        let mut zeros = zeros.into_iter();
        Ok(like.map_leaves(&mut |t| zeros.next().unwrap_or_else(|| t.clone())))
    }

    /// Those that have returned do not come here any more.
    pub(crate) fn drop_returned(&mut self) -> Eval<()> {
        let Some(Value::Tensor(gone)) = self.frame().scope.get(&RETURNED).cloned() else { return Ok(()) };
        let stay = self.tensor_unary(UnaryOp::Not, &gone)?;
        let active = self.active_threads()?;
        let active = self.both_of(&active, &stay)?;
        self.set_active(active);
        Ok(())
    }

    // ---- threads ----------------------------------------------------------------------------------------------

    /// How many threads run the function in MLIR that is evaluated, from wherever in the library this is asked.
    pub(crate) fn threads_of_function(&self) -> Option<u32> {
        Some(self.thread_extents()?.iter().product())
    }

    fn thread_extents(&self) -> Option<[u32; 3]> {
        self.frames.iter().rev().find_map(|f| f.threads)
    }

    pub(super) fn thread_count(&self) -> Eval<u32> {
        self.threads_of_function().ok_or_else(|| {
            let what = "operations of MLIR stand in functions marked by @tle.raw.dialect(name=\"mlir\")";
            self.error(what)
        })
    }

    /// The dimension that an operation asks of, and the extents of all.
    fn thread_dimension(&mut self, args: &Args) -> Eval<(usize, [u32; 3])> {
        let threads = self.thread_count()?;
        let extents = self.thread_extents().unwrap_or([threads, 1, 1]);
        match usize::try_from(self.int_arg(args, "dimension")?) {
            Ok(d @ 0..3) => Ok((d, extents)),
            _ => Err(self.error("threads have the dimensions 0, 1 and 2")),
        }
    }

    /// `number(dimension)`: the first dimension is the fastest.
    pub(super) fn thread_number(&mut self, args: &Args) -> Eval<Tensor> {
        let (d, extents) = self.thread_dimension(args)?;
        let number = self.range(0, extents.iter().product());
        let inner: u32 = extents[..d].iter().product();
        let mut number = Value::Tensor(number);
        for (op, by) in [(Operator::FloorDiv, inner), (Operator::Mod, extents[d])] {
            let whole = match op {
                Operator::FloorDiv => by == 1,
                // (Nothing is in front of the last one.)
                _ => extents[d + 1..].iter().all(|&n| n == 1),
            };
            if !whole {
                number = Value::Tensor(self.tensor_binary(op, &number, &Value::int(i128::from(by)))?);
            }
        }
        self.tensor_of(&number)
    }

    /// `count(dimension)`
    pub(super) fn thread_extent(&mut self, args: &Args) -> Eval<u32> {
        let (d, extents) = self.thread_dimension(args)?;
        Ok(extents[d])
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

    /// A conditional expression whose condition differs between threads: each part is evaluated for those that take it.
    pub(crate) fn varying_ternary(
        &mut self,
        condition: &Tensor,
        body: &Expr,
        orelse: &Expr,
        range: TextRange,
    ) -> Eval<Value> {
        let (outer, inner, other) = self.split_threads(condition)?;
        self.frame_mut().masked += 1;
        self.set_active(inner);
        let yes = self.expr(body)?;
        self.set_active(other);
        let no = self.expr(orelse)?;
        self.frame_mut().masked -= 1;
        self.set_active(outer);
        self.range = range;
        let args =
            CallArgs { positional: vec![Value::Tensor(condition.clone()), yes, no], keywords: Vec::new() };
        self.call(library("language.core.where"), args)
    }

    /// What an assignment makes of a variable that has a value already: the threads that don't come here keep that.
    pub(crate) fn where_active(&mut self, name: &Name, value: Value) -> Eval<Value> {
        if self.frame().threads.is_none() || [ACTIVE, RETURNED, RESULT].contains(name) {
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
        let rank = [&value, &old].into_iter().filter_map(|v| Some(v.as_tensor()?.shape.len())).max();
        let mut condition = active;
        while condition.shape.len() < rank.unwrap_or(1) {
            condition = self.expand_dims(&condition, condition.shape.len() as u32);
        }
        let args = CallArgs { positional: vec![Value::Tensor(condition), value, old], keywords: Vec::new() };
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
    pub(crate) fn begin_varying(&mut self, test: &Expr, returns: bool) -> Eval<Option<Tensor>> {
        if self.frame().threads.is_none() {
            return Ok(None);
        }
        let condition = self.expr(test)?;
        // Where threads may return, it ends when all have.
        let differing = match self.differs(&condition) {
            None if returns => Some(self.of_each_thread(&condition)?),
            found => found,
        };
        let Some(condition) = differing else { return Ok(None) };
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

    /// `place(memory, indices, writes, shape)`
    pub(super) fn place_in_memory(&mut self, args: &Args) -> Eval<Tensor> {
        let threads = self.thread_count()?;
        let vector = self.vector_shape(args)?;
        let items = match args.get("indices") {
            Value::Tuple(t) => t.items.clone(),
            one => vec![one.clone()],
        };
        if vector.len() > items.len() {
            return Err(self.error(format!(
                "a vector of {} dimensions in memory of {}",
                vector.len(),
                items.len()
            )));
        }
        let mut indices = Vec::new();
        for (i, item) in items.iter().enumerate() {
            let index = self.tensor_of(item)?;
            if !index.number().is_some_and(Scalar::is_int) || index.is_block() && index.shape[..] != [threads]
            {
                return Err(self.error(format!("an index of MLIR is an integer of each thread, not {item}")));
            }
            let index = self.broadcast_to(&index, &[threads])?;
            // The last dimensions are those of the vector, along which its elements lie.
            let along = (i + vector.len()).checked_sub(items.len());
            indices.push(self.side_by_side(&index, &vector, along)?);
        }
        let shape: Shape = std::iter::once(threads).chain(vector.iter().copied()).collect();
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
                let pointer = self.spread_over(&pointer, &vector)?;
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

    /// The indices of the elements of a vector, from one of each thread on: along one dimension of the vector they count up.
    fn side_by_side(&mut self, index: &Tensor, vector: &[u32], along: Option<usize>) -> Eval<Tensor> {
        let wide = self.spread_over(index, vector)?;
        let Some(along) = along else { return Ok(wide) };
        let number = self.along(vector, along, &wide.shape)?;
        self.tensor_binary(Operator::Add, &Value::Tensor(wide), &Value::Tensor(number))
    }

    /// The numbers of a vector's elements along one of its dimensions.
    fn along(&mut self, vector: &[u32], dim: usize, shape: &Shape) -> Eval<Tensor> {
        let mut number = self.range(0, vector[dim]);
        for _ in 0..=dim {
            number = self.expand_dims(&number, 0);
        }
        while number.shape.len() < shape.len() {
            number = self.expand_dims(&number, number.shape.len() as u32);
        }
        self.broadcast_to(&number, shape)
    }

    /// A number of each thread, or a vector, as a vector with more dimensions in front.
    fn spread_over(&mut self, t: &Tensor, vector: &[u32]) -> Eval<Tensor> {
        let threads = self.thread_count()?;
        let shape: Shape = std::iter::once(threads).chain(vector.iter().copied()).collect();
        let mut t = match t.is_block() {
            true => t.clone(),
            false => self.broadcast_to(t, &[threads])?,
        };
        if vector.is_empty() || t.shape == shape {
            return Ok(t);
        }
        if t.shape.len() > shape.len() {
            return Err(self.error(format!(
                "a vector of shape {:?} where one of shape {vector:?} is needed",
                &t.shape[1..]
            )));
        }
        while t.shape.len() < shape.len() {
            t = self.expand_dims(&t, 1);
        }
        self.broadcast_to(&t, &shape)
    }

    /// The extents of a vector, said as such or by another vector; none for a number.
    fn vector_shape(&mut self, args: &Args) -> Eval<Vec<u32>> {
        let given = args.get("shape").clone();
        if let Value::Tensor(like) = &given
            && like.shape.len() > 1
        {
            return Ok(like.shape[1..].to_vec());
        }
        let items = match &given {
            Value::Tuple(t) => t.items.to_vec(),
            one => vec![one.clone()],
        };
        let mut extents = Vec::new();
        for item in &items {
            // A type that a variable holds has its numbers as values.
            let known = item.as_tensor().and_then(|t| self.module.constant_int(t.value)).map(i128::from);
            let n = match item {
                Value::Const(HostValue::Int(n)) => Some(*n),
                _ => known,
            };
            extents.push(n.and_then(|n| u32::try_from(n).ok()).filter(|n| (1..=1024).contains(n)));
        }
        let all: Option<Vec<u32>> = extents.into_iter().collect();
        let all = all.filter(|all| all.iter().map(|&n| u64::from(n)).product::<u64>() <= 1024);
        all.ok_or_else(|| self.error(format!("a vector has 1 to 1024 elements, not {given}")))
    }

    /// `spread(value, shape)`
    pub(super) fn spread(&mut self, args: &Args) -> Eval<Value> {
        let shape = self.vector_shape(args)?;
        let value = self.tensor_of(args.get("value"))?;
        self.spread_over(&value, &shape).map(Value::Tensor)
    }

    /// `is_at(shape, position, dimension)`: which elements of such a vector have this number along a dimension.
    pub(super) fn is_at(&mut self, args: &Args) -> Eval<Tensor> {
        let vector = self.vector_shape(args)?;
        let dim = usize::try_from(self.int_arg(args, "dimension")?).unwrap_or(usize::MAX);
        if dim >= vector.len() {
            return Err(
                self.error(format!("more positions than a vector of shape {vector:?} has dimensions"))
            );
        }
        if let Value::Const(HostValue::Int(n)) = args.get("position")
            && !(0..i128::from(vector[dim])).contains(n)
        {
            return Err(self.error(format!("the position {n} in a vector of shape {vector:?}")));
        }
        let position = self.tensor_of(args.get("position"))?;
        let position = self.cast(&position, &Scalar::Int32.into())?;
        let threads = self.thread_count()?;
        let shape: Shape = std::iter::once(threads).chain(vector.iter().copied()).collect();
        let number = self.along(&vector, dim, &shape)?;
        let mut position = self.of_each_thread(&Value::Tensor(position))?;
        while position.shape.len() < shape.len() {
            position = self.expand_dims(&position, position.shape.len() as u32);
        }
        let position = self.broadcast_to(&position, &shape)?;
        let found = self.compare(CmpOp::Eq, Value::Tensor(number), Value::Tensor(position))?;
        self.tensor_of(&found)
    }

    /// `shaped(value, shape)`: a vector's elements in row-major order under another shape.
    pub(super) fn shaped(&mut self, args: &Args) -> Eval<Tensor> {
        let value = self.tensor_arg(args, "value")?;
        let vector = self.vector_shape(args)?;
        let shape: Vec<u32> = std::iter::once(value.shape[0]).chain(vector).collect();
        self.reshape(&value, &shape, false)
    }

    /// `ir.VectorType.get(shape, element_type)`: the extents, and the elements' type.
    pub(super) fn vector_type(&mut self, args: &Args) -> Eval<Value> {
        let shape = match args.get("shape") {
            Value::Tuple(t) if !t.items.is_empty() => args.get("shape").clone(),
            other => return Err(self.bad_argument(args, "shape", other, "a list of extents")),
        };
        Ok(Value::tuple(vec![shape, args.get("element_type").clone()]))
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
