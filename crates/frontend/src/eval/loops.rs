//! Loops: run-time ones become `scf.for` and `scf.while`, compile-time ones are unrolled here.
//!
//! A loop first carries every variable that its body assigns by name; those that turn out unchanged (assigned in a branch
//! that was not compiled) are taken out again. A compile-time number that the body changes at run time is carried too: the
//! loop is evaluated once more with it, and so is an object that a method called in the body changes.

use ruff_python_ast::name::Name;
use ruff_python_ast::visitor::{Visitor, walk_expr};
use ruff_python_ast::{Expr, Stmt, StmtFor, StmtWhile};
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::dialect::{arith, scf};
use tilewright_ir::{self as ir, AttrKind, Block, Op, licm};

use super::builtins::mlir::{ACTIVE, Varying};
use super::builtins::raw::arguments_of;
use super::control::{Condition, is_number};
use super::stmt::{Flow, Rest, RestKind};
use super::{Error, Eval, Evaluator, Lost, MAX_OPS, Scope, builder};
use crate::dtype::Scalar;
use crate::host::HostValue;
use crate::value::{RangeValue, Tensor, Value};

/// The bounds of a run-time loop.
struct Bounds {
    lower: ir::Value,
    upper: ir::Value,
    step: ir::Value,
    /// The type of its variable.
    ty: Scalar,
    /// The type of the bounds.
    counts: Scalar,
    variable: Variable,
}

/// What the variable of a loop is in the iteration of a number.
enum Variable {
    /// The number.
    Number,
    /// Counted down, from the upper bound.
    Down,
    /// So many steps behind the first.
    Steps { first: ir::Value, step: ir::Value },
}

impl Evaluator<'_> {
    // ---- for ------------------------------------------------------------------------------------------------

    pub fn for_stmt(&mut self, s: &StmtFor, rest: &Rest<'_>) -> Eval<Flow> {
        if let Some(first) = s.orelse.first() {
            self.range = first.range();
            return Err(self.unsupported("`else` of a loop", "write it after the loop"));
        }
        let iterator = self.expr(&s.iter)?;
        self.range = s.iter.range();
        let range = match &iterator {
            Value::Range(range) => range.clone(),
            Value::Tuple(items) => {
                let items = items.clone();
                return self.run_unrolled(&s.target, &items.items, &s.body, Some(rest));
            }
            other => {
                return Err(self.error(format!(
                    "a `for` loop runs over range, tl.range, tl.static_range or a tuple, not {other}"
                )));
            }
        };
        if range.unrolled || self.frame().constexpr {
            let bound =
                |e: &Self, v: &Value, what: &str| match v.to_host().as_ref().and_then(crate::fold::number) {
                    Some(crate::fold::Num::Int(i)) => Ok(i),
                    _ => Err(Box::new(
                        e.error(format!("{what} of tl.static_range must be a constexpr integer, not {v}"))
                            .note("use tl.range (a run-time loop), or make it a tl.constexpr parameter"),
                    )),
                };
            let (start, end, step) = (
                bound(self, &range.start, "the start")?,
                bound(self, &range.end, "the end")?,
                bound(self, &range.step, "the step")?,
            );
            let values = self.steps(start, end, step)?;
            return self.run_unrolled(&s.target, &values, &s.body, Some(rest));
        }
        match self.uniform_range(&range)? {
            Some((range, varying)) => self.dynamic_for(s, &range, Some(&varying))?,
            None => self.dynamic_for(s, &range, None)?,
        }
        Ok(Flow::Next)
    }

    /// The numbers of a range of constants.
    pub fn steps(&self, start: i128, end: i128, step: i128) -> Eval<Vec<Value>> {
        if step == 0 {
            return Err(self.error("the step of a loop must not be 0"));
        }
        let mut values = Vec::new();
        let mut next = Some(start);
        while let Some(at) = next.filter(|&at| if step > 0 { at < end } else { at > end }) {
            values.push(Value::int(at));
            if values.len() > 1 << 16 {
                return Err(self.error("a loop unrolled at compile time has more than 65536 steps"));
            }
            next = at.checked_add(step);
        }
        Ok(values)
    }

    pub fn run_unrolled(
        &mut self,
        target: &Expr,
        values: &[Value],
        body: &[Stmt],
        rest: Option<&Rest<'_>>,
    ) -> Eval<Flow> {
        for (i, value) in values.iter().enumerate() {
            if self.module.num_ops() > MAX_OPS {
                self.range = target.range();
                return Err(self
                    .error(format!("unrolling this loop makes the kernel larger than {MAX_OPS} operations"))
                    .note("use range or tl.range, which loop at run time")
                    .into());
            }
            self.assign(target, value.clone())?;
            let next =
                Rest { kind: RestKind::Unrolled { target, values: &values[i + 1..], body }, next: rest };
            match self.run(body, Some(&next))? {
                Flow::Next => {}
                done => return Ok(done),
            }
        }
        Ok(Flow::Next)
    }

    fn dynamic_for(&mut self, s: &StmtFor, range: &RangeValue, varying: Option<&Varying>) -> Eval<()> {
        let Expr::Name(target) = &*s.target else {
            self.range = s.target.range();
            return Err(self.error("the variable of a run-time loop must be one name"));
        };
        let Bounds { lower, upper, step, ty, counts, variable } = self.loop_bounds(range)?;
        let iv_type = self.element_type(&counts.into());

        let mut assigned = assigned_names(&s.body);
        let returns = self.begin_returns(&s.body, &mut assigned)?;
        let mut promoted: Vec<Name> = Vec::new();
        loop {
            let carried = self.carry(&assigned, &promoted, Some(&target.id))?;
            // (What carries constants stays where the loop is written anew: variables hold it.)
            let mark = self.module.last_op(self.block);
            self.range = s.range;
            let init: Vec<_> = carried
                .iter()
                .flat_map(|(_, v)| v.leaves().into_iter().map(|t| t.value).collect::<Vec<_>>())
                .collect();
            let op = scf::For::build(&mut builder!(self), lower, upper, step, &init, &[]);
            self.note_hints(op, range);
            let mut types = vec![iv_type];
            types.extend(init.iter().map(|&v| self.module.value_type(v)));
            let region = op.body(&self.module);
            let body = self.module.append_block(region, &types);
            let args = self.module.block_args(body).to_vec();
            let before = self.frame().scope.clone();

            // The body.
            let outer = std::mem::replace(&mut self.block, body);
            let mut b = builder!(self);
            let iv = match variable {
                Variable::Number => args[0],
                Variable::Down => {
                    // upper - iv + lower (of the exchanged bounds).
                    let left = arith::Subi::build(&mut b, upper, args[0]).result(b.module);
                    arith::Addi::build(&mut b, left, lower).result(b.module)
                }
                Variable::Steps { first, step } => {
                    let steps = arith::Muli::build(&mut b, args[0], step).result(b.module);
                    arith::Addi::build(&mut b, first, steps).result(b.module)
                }
            };
            let mut iv = Value::Tensor(self.cast(&Tensor::scalar(iv, counts), &ty.into())?);
            self.bind_carried(&carried, &args[1..]);
            if returns {
                self.drop_returned()?;
            }
            if let Some(varying) = varying {
                iv = self.own_iteration(varying, &iv)?;
            }
            self.call_by_name(&iv, &target.id);
            self.frame_mut().scope.insert(target.id.clone(), iv);
            self.frame_mut().loops += 1;
            let flow = self.run(&s.body, None);
            self.frame_mut().loops -= 1;
            flow?;
            self.range = s.range;
            let after = std::mem::replace(&mut self.frame_mut().scope, before);
            let target_name = Some(&target.id);
            if self.starts_over((outer, mark), &after, (&assigned, &carried), target_name, &mut promoted)? {
                continue;
            }
            let yielded = self.yielded(&carried, &after, &s.body)?;
            scf::Yield::build(&mut builder!(self), &yielded);
            self.block = outer;

            let results = self.for_results(op, body, &yielded);
            self.bind_carried(&carried, &results);
            self.lose(&after, &target.id);
            if returns {
                self.drop_returned()?;
            }
            return Ok(());
        }
    }

    /// The bounds of a run-time loop, and the type that its variable has. A loop compares signed numbers: it counts in a type that has room for
    /// unsigned ones, and iterations where none has.
    fn loop_bounds(&mut self, range: &RangeValue) -> Eval<Bounds> {
        let negative = match range.step.to_host() {
            Some(HostValue::Int(0)) => return Err(self.error("the step of a loop must not be 0")),
            Some(HostValue::Int(step)) if step < 0 => Some(-step),
            _ => None,
        };
        let (lower, upper) = match negative {
            Some(_) => (&range.end, &range.start),
            None => (&range.start, &range.end),
        };
        let step = negative.map_or_else(|| range.step.clone(), Value::int);
        let mut bounds = Vec::with_capacity(3);
        for (value, what) in [(lower, "start"), (upper, "end"), (&step, "step")] {
            let t = self.tensor_of(value)?;
            match t.number() {
                Some(n) if n.is_int() && !t.is_block() => bounds.push((t, n)),
                _ => {
                    return Err(
                        self.error(format!("the {what} of a loop must be an integer, not {}", t.ty()))
                    );
                }
            }
        }
        let ty = self.promote_integers(self.promote_integers(bounds[0].1, bounds[1].1), bounds[2].1);
        let counts = match ty {
            Scalar::UInt32 => Scalar::Int64,
            _ if ty.bits() < 32 => Scalar::Int32,
            _ => ty,
        };
        let mut cast = |at: usize| {
            let bound = self.cast(&bounds[at].0, &ty.into())?;
            Ok::<_, Error>(self.cast(&bound, &counts.into())?.value)
        };
        let (lower, upper, step) = (cast(0)?, cast(1)?, cast(2)?);
        let down = negative.is_some();
        Ok(match ty {
            Scalar::UInt64 => self.count_iterations([lower, upper, step], down),
            _ => {
                let variable = if down { Variable::Down } else { Variable::Number };
                Bounds { lower, upper, step, ty, counts, variable }
            }
        })
    }

    /// The bounds of a loop over unsigned numbers of 64 bits. (No loop has as many iterations as there are signed ones.)
    fn count_iterations(&mut self, [lower, upper, step]: [ir::Value; 3], down: bool) -> Bounds {
        let mut b = builder!(self);
        let ty = b.module.value_type(step);
        let (zero, one, most) = (b.int(0, ty), b.int(1, ty), b.int(i64::MAX, ty));
        let end = arith::Maxui::build(&mut b, upper, lower).result(b.module);
        let length = arith::Subi::build(&mut b, end, lower).result(b.module);
        let count = arith::Ceildivui::build(&mut b, length, step).result(b.module);
        let count = arith::Minui::build(&mut b, count, most).result(b.module);
        let variable = match down {
            false => Variable::Steps { first: lower, step },
            true => Variable::Steps {
                first: upper,
                step: arith::Subi::build(&mut b, zero, step).result(b.module),
            },
        };
        Bounds { lower: zero, upper: count, step: one, ty: Scalar::UInt64, counts: Scalar::UInt64, variable }
    }

    /// Leaves what `tl.range` says of a loop on it.
    fn note_hints(&mut self, op: scf::For, range: &RangeValue) {
        let counts = [("tt.num_stages", range.num_stages), ("tt.loop_unroll_factor", range.unroll_factor)];
        for (name, value) in counts {
            if let Some(value) = value {
                self.module.set_i32_attr(op.0, name, value);
            }
        }
        for &flag in &range.flags {
            let unit = self.module.attr(AttrKind::Unit);
            self.module.set_attr(op.0, flag, unit);
        }
    }

    /// Gives a loop results for the values that its body changes; what is always what it was before is no longer carried. Returns
    /// what each of the carried values is behind the loop.
    fn for_results(&mut self, op: scf::For, body: Block, yielded: &[ir::Value]) -> Vec<ir::Value> {
        let args = self.module.block_args(body)[1..].to_vec();
        let init = op.init(&self.module).to_vec();
        let mut kept = Vec::new();
        let mut results = Vec::new();
        for (i, (&arg, &out)) in args.iter().zip(yielded).enumerate() {
            let out = self.without_promises(out);
            if arg == out || out == init[i] {
                self.module.replace_all_uses(arg, init[i]);
                results.push(init[i]);
            } else {
                kept.push(i);
                let ty = self.module.value_type(arg);
                results.push(self.module.add_result(op.0, ty));
            }
        }
        if kept.len() != init.len() {
            let keep = |values: &[ir::Value]| kept.iter().map(|&i| values[i]).collect::<Vec<_>>();
            let last = self.module.last_op(body).expect("the body ends in a yield");
            let yielded = keep(self.module.operands(last));
            self.module.set_operand_group(last, 0, &yielded);
            self.module.set_operand_group(op.0, 3, &keep(&init));
            for i in (0..init.len()).rev().filter(|i| !kept.contains(i)) {
                self.module.remove_block_arg(body, i + 1);
            }
        }
        results
    }

    /// The variables that a loop may change, with their values before it.
    fn carry(
        &mut self,
        assigned: &[Name],
        promoted: &[Name],
        target: Option<&Name>,
    ) -> Eval<Vec<(Name, Value)>> {
        let mut carried = Vec::new();
        let names: Vec<Name> = self.frame().scope.keys().cloned().collect();
        for name in names {
            if Some(&name) == target || !(assigned.contains(&name) || promoted.contains(&name)) {
                continue;
            }
            let mut value = self.frame().scope[&name].clone();
            if promoted.contains(&name) {
                value = self.assigned(value)?;
                self.frame_mut().scope.insert(name.clone(), value.clone());
            }
            if !value.leaves().is_empty() {
                carried.push((name, value));
            }
        }
        Ok(carried)
    }

    /// Gives the carried variables new SSA values.
    fn bind_carried(&mut self, carried: &[(Name, Value)], values: &[tilewright_ir::Value]) {
        let mut next = values.iter();
        for (name, value) in carried {
            let value = value.map_leaves(&mut |t| match next.next() {
                Some(&value) => Tensor { value, ..t.clone() },
                None => t.clone(),
            });
            self.call_by_name(&value, name);
            self.frame_mut().scope.insert(name.clone(), value);
        }
    }

    /// A variable that was a compile-time number before the loop and is another value after its body, or that is lost there.
    fn changed_constant(
        &mut self,
        after: &Scope,
        assigned: &[Name],
        carried: &[(Name, Value)],
        target: Option<&Name>,
    ) -> Eval<Option<Name>> {
        if let Some((name, _)) = carried.iter().find(|(name, _)| !after.contains_key(name)) {
            // The body loses it: it is the variable of a loop in it, or no number any more in a branch.
            self.frame_mut().scope.shift_remove(name);
            return Ok(Some(name.clone()));
        }
        let scope = self.frame().scope.clone();
        for (name, old) in &scope {
            // What is in an object may change without an assignment to a name.
            let may_change = assigned.contains(name) || holds_object(old);
            if Some(name) == target || !may_change || carried.iter().any(|(n, _)| n == name) {
                continue;
            }
            let Some(new) = after.get(name) else {
                // A branch of the body makes it another constant: from the second step on nobody may read it.
                self.frame_mut().scope.shift_remove(name);
                return Ok(Some(name.clone()));
            };
            if old.identical(new) {
                continue;
            }
            let number = is_number(old);
            let tuple = matches!((old, new), (Value::Tuple(_), Value::Tuple(_)));
            if number || tuple || (holds_object(old) && old.same_type(new) && !old.leaves().is_empty()) {
                return Ok(Some(name.clone()));
            }
            return Err(self
                .error(format!("`{name}` is {old} before the loop but the loop makes it {new}"))
                .note("give it a value of that type before the loop, such as tl.zeros(shape, dtype)")
                .into());
        }
        Ok(None)
    }

    /// The values of the carried variables at the end of the body, checked against those at its start.
    fn yielded(
        &mut self,
        carried: &[(Name, Value)],
        after: &Scope,
        body: &[Stmt],
    ) -> Eval<Vec<tilewright_ir::Value>> {
        let mut out = Vec::new();
        for (name, before) in carried {
            let mut now = after.get(name).cloned().unwrap_or(Value::NONE);
            if let (Value::Tensor(_), Value::Const(_)) = (before, &now) {
                now = self.assigned(now)?;
            }
            if !before.same_type(&now) {
                if let Some(range) = last_assignment(body, name) {
                    self.range = range;
                }
                return Err(self.loop_type_error(name, before, &now));
            }
            out.extend(now.leaves().iter().map(|t| t.value));
        }
        Ok(out)
    }

    fn loop_type_error(&self, name: &Name, before: &Value, now: &Value) -> super::Error {
        let hint = match (before, now) {
            (Value::Tensor(a), Value::Tensor(b)) if a.shape == b.shape => format!(
                "start with that type (before the loop: .to(tl.{})), or convert in the loop (.to(tl.{}))",
                tl_name(&b.dtype),
                tl_name(&a.dtype)
            ),
            (Value::Tensor(_), Value::Tensor(b)) if b.is_block() => format!(
                "start with that shape: tl.zeros({:?}, …) or tl.full({:?}, …)",
                b.shape.as_slice(),
                b.shape.as_slice()
            ),
            _ => "a variable must keep its type and shape in a loop".to_string(),
        };
        self.error(format!(
            "`{name}` changes its type in the loop: it is {before} before and {now} after one step"
        ))
        .note(hint)
        .into()
    }

    /// Takes away the loop's variable, whatever had its name before, and remembers which names the loop defined that do not exist after it.
    fn lose(&mut self, after: &Scope, target: &Name) {
        let frame = self.frames.last_mut().expect("a function is under evaluation");
        frame.scope.shift_remove(target);
        for name in after.keys() {
            if !frame.scope.contains_key(name) {
                let why = if name == target {
                    "a loop's variable does not exist after the loop"
                } else {
                    "it is assigned only inside a loop, which may run zero times; assign it before the loop too"
                };
                frame.lost.insert(name.clone(), Lost::Because(why));
            }
        }
    }

    /// Whether what the body has done to the variables wants the loop to be written anew: then what is behind `mark` in the block around it is erased.
    fn starts_over(
        &mut self,
        (around, mark): (Block, Option<Op>),
        after: &Scope,
        (assigned, carried): (&[Name], &[(Name, Value)]),
        target: Option<&Name>,
        promoted: &mut Vec<Name>,
    ) -> Eval<bool> {
        let back = |s: &mut Self| {
            s.block = around;
            s.erase_after(mark);
        };
        if let Some(like) = self.wanted_result() {
            back(self);
            self.begin_result(&like)?;
        } else if let Some(name) = self.changed_constant(after, assigned, carried, target)? {
            // A constant before the loop that the body makes a run-time value is carried.
            back(self);
            promoted.push(name);
        } else if self.must_widen(carried, after) {
            back(self);
            self.widen_carried(carried, after)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Takes back what has been written into the block behind an operation.
    pub(super) fn erase_after(&mut self, mark: Option<Op>) {
        while let Some(last) = self.module.last_op(self.block) {
            if Some(last) == mark {
                break;
            }
            self.module.erase_op(last);
        }
    }

    // ---- while ----------------------------------------------------------------------------------------------

    pub fn while_stmt(&mut self, s: &StmtWhile, rest: &Rest<'_>) -> Eval<Flow> {
        if let Some(first) = s.orelse.first() {
            self.range = first.range();
            return Err(self.unsupported("`else` of a loop", "write it after the loop"));
        }
        if self.frame().constexpr {
            // At compile time a loop just runs.
            for _ in 0..1 << 16 {
                let test = self.expr(&s.test)?;
                self.range = s.test.range();
                match self.condition(test, "while")? {
                    Condition::Static(false) => return Ok(Flow::Next),
                    Condition::Static(true) => {}
                    Condition::Dynamic(_) => return Err(self.known_too_late("while")),
                }
                match self.run(&s.body, Some(rest))? {
                    Flow::Next => {}
                    done => return Ok(done),
                }
            }
            self.range = s.test.range();
            return Err(self.error("a compile-time loop has run 65536 times"));
        }
        self.dynamic_while(s)
    }

    fn dynamic_while(&mut self, s: &StmtWhile) -> Eval<Flow> {
        let mut assigned = assigned_names(&s.body);
        collect_walrus(&s.test, &mut assigned);
        // Threads leave the loop one by one: it goes on while any of them is in it.
        let returns = self.begin_returns(&s.body, &mut assigned)?;
        let mut outer_threads = None;
        let mut promoted: Vec<Name> = Vec::new();
        loop {
            // (Variables that differ from the first iteration on alone make the condition differ when the loop starts over.)
            if outer_threads.is_none() {
                outer_threads = self.begin_varying(&s.test, returns)?;
                assigned.extend(outer_threads.is_some().then_some(ACTIVE));
            }
            let carried = self.carry(&assigned, &promoted, None)?;
            // (What carries constants stays where the loop is written anew: variables hold it.)
            let mark = self.module.last_op(self.block);
            self.range = s.range;
            let init: Vec<_> = carried
                .iter()
                .flat_map(|(_, v)| v.leaves().into_iter().map(|t| t.value).collect::<Vec<_>>())
                .collect();
            let types: Vec<_> = init.iter().map(|&v| self.module.value_type(v)).collect();
            let op = scf::While::build(&mut builder!(self), &init, &[]);
            let (before_region, after_region) = (op.before(&self.module), op.after(&self.module));
            let before_block = self.module.append_block(before_region, &types);
            let after_block = self.module.append_block(after_region, &types);
            let before_args = self.module.block_args(before_block).to_vec();
            let after_args = self.module.block_args(after_block).to_vec();
            let scope = self.frame().scope.clone();

            let outer = std::mem::replace(&mut self.block, before_block);
            self.bind_carried(&carried, &before_args);
            self.loop_stays = false;
            let test = if outer_threads.is_some() { self.any_active()? } else { self.expr(&s.test)? };
            if std::mem::take(&mut self.loop_stays) {
                let unit = self.module.attr(AttrKind::Unit);
                self.module.set_attr(op.0, licm::DISABLED, unit);
            }
            self.range = s.test.range();
            let condition = match self.condition(test, "while")? {
                Condition::Static(false) if promoted.is_empty() => {
                    self.block = outer;
                    self.frame_mut().scope = scope;
                    self.erase_after(mark);
                    return Ok(Flow::Next);
                }
                Condition::Static(value) => self.tensor_of(&Value::bool(value))?,
                Condition::Dynamic(condition) => condition,
            };
            // What the test itself assigns, the body has, and what follows the loop.
            let tested = std::mem::replace(&mut self.frame_mut().scope, scope.clone());
            if self.changed_by_test(&tested, &assigned, &carried, &mut promoted, (outer, mark))? {
                continue;
            }
            let handed_on = self.yielded(&carried, &tested, &[])?;
            self.frame_mut().scope = tested;
            scf::Condition::build(&mut builder!(self), condition.value, &handed_on);

            self.block = after_block;
            self.bind_carried(&carried, &after_args);
            self.frame_mut().loops += 1;
            let flow = self.run(&s.body, None);
            self.frame_mut().loops -= 1;
            flow?;
            if outer_threads.is_some() {
                self.leave_varying(&s.test)?;
            }
            self.range = s.range;
            let after = std::mem::replace(&mut self.frame_mut().scope, scope);
            if self.starts_over((outer, mark), &after, (&assigned, &carried), None, &mut promoted)? {
                continue;
            }
            let yielded = self.yielded(&carried, &after, &s.body)?;
            scf::Yield::build(&mut builder!(self), &yielded);
            self.block = outer;

            let results = self.while_results(op, [before_block, after_block], &handed_on, &yielded);
            self.bind_carried(&carried, &results);
            self.lose(&after, &Name::new_static(""));
            if let Some(threads) = outer_threads {
                self.set_active(threads);
                self.drop_returned()?;
                if matches!(&*s.test, Expr::BooleanLiteral(literal) if literal.value) {
                    return self.all_returned();
                }
            }
            return Ok(Flow::Next);
        }
    }

    /// Whether the test of a `while` makes another value of a compile-time number, or a variable that is not there before the loop. It
    /// begins anew then, with variables for both; the second ones are zeros that nobody reads.
    fn changed_by_test(
        &mut self,
        tested: &Scope,
        assigned: &[Name],
        carried: &[(Name, Value)],
        promoted: &mut Vec<Name>,
        (outer, mark): (Block, Option<Op>),
    ) -> Eval<bool> {
        let changed = self.changed_constant(tested, assigned, carried, None)?;
        let widens = self.must_widen(carried, tested);
        let scope = &self.frame().scope;
        let is_new = |(name, value): &(&Name, &Value)| {
            assigned.contains(name) && !scope.contains_key(*name) && !value.leaves().is_empty()
        };
        let new: Vec<_> =
            tested.iter().filter(is_new).map(|(name, value)| (name.clone(), value.clone())).collect();
        if changed.is_none() && !widens && new.is_empty() {
            return Ok(false);
        }
        self.block = outer;
        self.erase_after(mark);
        if widens {
            self.widen_carried(carried, tested)?;
        }
        promoted.extend(changed);
        for (name, like) in new {
            let zeros = self.zeros_like(&like)?;
            self.frame_mut().scope.insert(name, zeros);
        }
        Ok(true)
    }

    /// Gives a `while` results for the values that its body changes; what is always what it was before is no longer carried. Returns what
    /// each of the carried values is behind the loop.
    fn while_results(
        &mut self,
        op: scf::While,
        [before_block, after_block]: [Block; 2],
        handed_on: &[ir::Value],
        yielded: &[ir::Value],
    ) -> Vec<ir::Value> {
        let init = op.init(&self.module).to_vec();
        let before_args = self.module.block_args(before_block).to_vec();
        let after_args = self.module.block_args(after_block).to_vec();
        let mut kept = Vec::new();
        let mut results = Vec::new();
        for i in 0..init.len() {
            let yielded = self.without_promises(yielded[i]);
            let stays = after_args[i] == yielded || yielded == init[i];
            if stays && self.without_promises(handed_on[i]) == before_args[i] {
                // The condition hands it on; nothing else reads it there afterwards.
                results.push(init[i]);
            } else {
                kept.push(i);
                let ty = self.module.value_type(init[i]);
                results.push(self.module.add_result(op.0, ty));
            }
        }
        if kept.len() != init.len() {
            let keep = |values: &[tilewright_ir::Value]| kept.iter().map(|&i| values[i]).collect::<Vec<_>>();
            let condition = self.module.last_op(before_block).expect("ends in a condition");
            self.module.set_operand_group(condition, 1, &keep(handed_on));
            let last = self.module.last_op(after_block).expect("ends in a yield");
            self.module.set_operand_group(last, 0, &keep(yielded));
            self.module.set_operand_group(op.0, 0, &keep(&init));
            for i in (0..init.len()).rev().filter(|i| !kept.contains(i)) {
                self.module.replace_all_uses(before_args[i], init[i]);
                self.module.replace_all_uses(after_args[i], init[i]);
                self.module.remove_block_arg(before_block, i);
                self.module.remove_block_arg(after_block, i);
            }
        }
        results
    }
}

/// Whether there is an object in it, which a method may change.
fn holds_object(value: &Value) -> bool {
    match value {
        Value::Aggregate(_) => true,
        Value::Tuple(t) => t.items.iter().any(holds_object),
        _ => false,
    }
}

/// `float16` of `fp16`, for hints.
fn tl_name(dtype: &crate::dtype::DType) -> String {
    match dtype.as_scalar() {
        Some(Scalar::Fp16) => "float16".into(),
        Some(Scalar::Bf16) => "bfloat16".into(),
        Some(Scalar::Fp32) => "float32".into(),
        Some(Scalar::Fp64) => "float64".into(),
        Some(other) => other.name().replace("fp8", "float8"),
        None => dtype.to_string(),
    }
}

/// The last statement that assigns a name.
fn last_assignment(stmts: &[Stmt], name: &Name) -> Option<TextRange> {
    stmts.iter().rev().find_map(|stmt| match stmt {
        Stmt::If(s) => s
            .elif_else_clauses
            .iter()
            .rev()
            .find_map(|clause| last_assignment(&clause.body, name))
            .or_else(|| last_assignment(&s.body, name)),
        Stmt::For(s) => last_assignment(&s.body, name),
        Stmt::While(s) => last_assignment(&s.body, name),
        Stmt::With(s) => last_assignment(&s.body, name),
        stmt => assigned_names(std::slice::from_ref(stmt)).contains(name).then(|| stmt.range()),
    })
}

/// Every name that the statements assign, in any branch.
fn assigned_names(stmts: &[Stmt]) -> Vec<Name> {
    let mut names = Vec::new();
    collect_assigned(stmts, &mut names);
    names
}

pub(super) fn collect_target(target: &Expr, names: &mut Vec<Name>) {
    match target {
        Expr::Name(name) if !names.contains(&name.id) => names.push(name.id.clone()),
        Expr::Tuple(t) => t.elts.iter().for_each(|e| collect_target(e, names)),
        Expr::List(t) => t.elts.iter().for_each(|e| collect_target(e, names)),
        Expr::Starred(s) => collect_target(&s.value, names),
        _ => {}
    }
}

/// Finds the targets of `:=`.
struct Walrus<'a>(&'a mut Vec<Name>);

impl<'a> Visitor<'a> for Walrus<'_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Named(named) = expr {
            collect_target(&named.target, self.0);
        }
        walk_expr(self, expr);
    }
}

fn collect_walrus(expr: &Expr, names: &mut Vec<Name>) {
    Walrus(names).visit_expr(expr);
}

/// The arguments that a call of code in another language may write ([`super::builtins::raw`]).
fn collect_written(expr: &Expr, names: &mut Vec<Name>) {
    let Expr::Call(call) = expr else { return };
    let callee = match &*call.func {
        Expr::Attribute(a) => a.attr.as_str(),
        Expr::Name(n) => n.id.as_str(),
        _ => return,
    };
    if callee == "call" || callee == "call_smem" {
        arguments_of(call).into_iter().flatten().for_each(|argument| collect_target(argument, names));
    }
}

fn collect_assigned(stmts: &[Stmt], names: &mut Vec<Name>) {
    for stmt in stmts {
        // In whatever expression of the statement, or of one in it.
        Walrus(names).visit_stmt(stmt);
        match stmt {
            Stmt::Assign(s) => s.targets.iter().for_each(|t| collect_target(t, names)),
            Stmt::AugAssign(s) => collect_target(&s.target, names),
            Stmt::AnnAssign(s) => collect_target(&s.target, names),
            Stmt::Expr(s) => collect_written(&s.value, names),
            Stmt::For(s) => {
                collect_target(&s.target, names);
                collect_assigned(&s.body, names);
            }
            Stmt::While(s) => collect_assigned(&s.body, names),
            Stmt::With(s) => collect_assigned(&s.body, names),
            Stmt::If(s) => {
                collect_assigned(&s.body, names);
                for clause in &s.elif_else_clauses {
                    collect_assigned(&clause.body, names);
                }
            }
            _ => {}
        }
    }
}
