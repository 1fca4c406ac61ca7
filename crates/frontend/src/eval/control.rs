//! Branches: a run-time `if` becomes `scf.if`, one that is known at compile time disappears.
//!
//! The variables that a region changes become results: the scopes at the ends of the two branches are compared. Loops
//! are in `loops`.

use ruff_python_ast::name::Name;
use ruff_python_ast::{ElifElseClause, Expr, Stmt, StmtAssert, StmtIf};
use ruff_text_size::{Ranged, TextRange};
use rustc_hash::FxHashMap;
use tilewright_ir::Block;
use tilewright_ir::diagnostic::Kind;
use tilewright_ir::dialect::{scf, tt};

use super::join::{always_returns, clauses_always_return, nothing_follows, result_of};
use super::stmt::{Flow, Rest};
use super::{Eval, Evaluator, Frame, Lost, Scope, builder};
use crate::dtype::Scalar;
use crate::host::HostValue;
use crate::value::{Tensor, Value};

/// A branch that has been evaluated: its block and the scope at its end.
pub(super) struct Branch {
    /// None for an `else` that nothing was put into yet.
    pub block: Option<Block>,
    pub scope: Scope,
    /// Why names are not there.
    pub lost: FxHashMap<Name, Lost>,
    pub flow: Flow,
}

/// The `else` part of an `if`: the statements, or the next `elif`.
#[derive(Clone, Copy)]
pub(super) struct Else<'a>(pub &'a [ElifElseClause]);

/// Why a variable is not there behind an `if` both sides of which have it.
pub(super) const DIFFERENT: Lost =
    Lost::Because("it is different at compile time in the branches of an `if`");

impl Evaluator<'_> {
    // ---- if -------------------------------------------------------------------------------------------------

    pub fn if_stmt(&mut self, s: &StmtIf, rest: &Rest<'_>) -> Eval<Flow> {
        self.if_chain(&s.test, &s.body, Else(&s.elif_else_clauses), s.range, rest)
    }

    fn if_chain(
        &mut self,
        test: &Expr,
        body: &[Stmt],
        orelse: Else<'_>,
        range: TextRange,
        rest: &Rest<'_>,
    ) -> Eval<Flow> {
        let condition = self.expr(test)?;
        self.range = test.range();
        let returns =
            find_return(body).or_else(|| orelse.0.iter().find_map(|clause| find_return(&clause.body)));
        let mut differing = self.differs(&condition);
        if differing.is_none()
            && returns.is_some()
            && condition.as_tensor().is_some()
            && self.branches_by_mask()
        {
            differing = Some(self.of_each_thread(&condition)?);
        }
        if let Some(condition) = differing {
            let (outer, inner, other) = self.split_threads(&condition)?;
            self.frame_mut().masked += 1;
            self.set_active(inner);
            self.run(body, Some(rest))?;
            self.set_active(other);
            self.run_else(orelse, rest)?;
            self.frame_mut().masked -= 1;
            self.set_active(outer);
            self.drop_returned()?;
            return Ok(Flow::Next);
        }
        match self.condition(condition, "if")? {
            Condition::Static(true) => self.run(body, Some(rest)),
            Condition::Static(false) => self.run_else(orelse, rest),
            Condition::Dynamic(condition) => {
                if self.frame().constexpr {
                    return Err(self.known_too_late("if"));
                }
                if let Some(at) = returns
                    && self.frame().loops > 0
                {
                    self.range = at;
                    return Err(self
                        .error("`return` inside a run-time loop is not supported")
                        .of(Kind::Unsupported)
                        .note("set a flag in the loop and return after it")
                        .into());
                }
                let goes_on = |always: bool| !always && !nothing_follows(rest);
                if returns.is_some()
                    && goes_on(always_returns(body))
                    && goes_on(clauses_always_return(orelse.0))
                {
                    return self.if_that_joins(condition, body, orelse, range, rest);
                }
                self.dynamic_if(condition, body, orelse, range, rest, returns.is_some())
            }
        }
    }

    /// A condition of run time in a function that runs at compile time.
    pub(super) fn known_too_late(&self, word: &str) -> super::Error {
        let name = &self.frame().function.name;
        self.error(format!(
            "the condition of `{word}` is a run-time value, but `{name}` runs at compile time"
        ))
        .note("decorate the function with @jit, or choose with tl.where")
        .into()
    }

    fn run_else(&mut self, orelse: Else<'_>, rest: &Rest<'_>) -> Eval<Flow> {
        match orelse.0.split_first() {
            None => Ok(Flow::Next),
            Some((clause, others)) => match &clause.test {
                Some(test) => self.if_chain(test, &clause.body, Else(others), clause.range, rest),
                None => self.run(&clause.body, Some(rest)),
            },
        }
    }

    /// What a condition is: known now, or an `i1`.
    pub fn condition(&mut self, value: Value, word: &str) -> Eval<Condition> {
        match value {
            Value::Const(c) => match c.truth() {
                Some(truth) => Ok(Condition::Static(truth)),
                None => Err(self.error(format!("{c} has no truth value"))),
            },
            Value::Tuple(t) => Ok(Condition::Static(!t.items.is_empty())),
            Value::Tensor(t) if t.numel() != 1 => Err(self
                .error(format!(
                    "the condition of `{word}` has type {}: one value is needed, not a tensor",
                    t.ty()
                ))
                .note("reduce it with tl.max or tl.sum, or choose elementwise with tl.where")
                .into()),
            Value::Tensor(mut t) => {
                if t.is_block() {
                    t = self.unsplat(&t);
                }
                // Of a pointer, whether it is null.
                Ok(Condition::Dynamic(self.cast(&t, &Scalar::Int1.into())?))
            }
            other => Err(self.error(format!("{other} is no condition"))),
        }
    }

    /// Evaluates in a new block with its own copy of the variables.
    pub(super) fn branch(&mut self, block: Block, f: impl FnOnce(&mut Self) -> Eval<Flow>) -> Eval<Branch> {
        let outer = std::mem::replace(&mut self.block, block);
        let (saved, saved_lost) = (self.frame().scope.clone(), self.frame().lost.clone());
        let flow = f(self);
        let end = std::mem::replace(&mut self.block, outer);
        debug_assert!(
            flow.is_err() || end == block,
            "control flow is structured: a branch ends in the block it began in"
        );
        let scope = std::mem::replace(&mut self.frame_mut().scope, saved);
        let lost = std::mem::replace(&mut self.frame_mut().lost, saved_lost);
        Ok(Branch { block: Some(block), scope, lost, flow: flow? })
    }

    /// Goes on to the end of the function, or to where paths join, unless the function has returned.
    pub(super) fn run_to_end(&mut self, flow: Flow, rest: &Rest<'_>) -> Eval<Flow> {
        match flow {
            Flow::Next => match self.run_rest(Some(rest))? {
                Flow::Next => Ok(Flow::Return(Value::NONE)),
                done => Ok(done),
            },
            done => Ok(done),
        }
    }

    /// A run-time `if`; with `returns`, each side runs to the end of the function, or to where paths join.
    pub(super) fn dynamic_if(
        &mut self,
        condition: Tensor,
        body: &[Stmt],
        orelse: Else<'_>,
        range: TextRange,
        rest: &Rest<'_>,
        returns: bool,
    ) -> Eval<Flow> {
        self.range = range;
        let mut b = builder!(self);
        let op = scf::If::build(&mut b, condition.value, &[]);
        let (then_region, else_region) = (op.then_region(&self.module), op.else_region(&self.module));
        let then_block = self.module.append_block(then_region, &[]);
        let then = self.branch(then_block, |e| {
            let flow = e.run(body, Some(rest))?;
            if returns { e.run_to_end(flow, rest) } else { Ok(flow) }
        })?;
        let mut other = if orelse.0.is_empty() && !returns {
            let Frame { scope, lost, .. } = self.frame();
            Branch { block: None, scope: scope.clone(), lost: lost.clone(), flow: Flow::Next }
        } else {
            let else_block = self.module.append_block(else_region, &[]);
            self.branch(else_block, |e| {
                let flow = e.run_else(orelse, rest)?;
                if returns { e.run_to_end(flow, rest) } else { Ok(flow) }
            })?
        };
        self.range = range;
        if returns {
            return self.join_sides(op, then, other);
        }
        self.merge_variables(op, &then, &mut other, &[])?;
        Ok(Flow::Next)
    }

    /// Ends both branches. What variables are at the end of each becomes what they are behind the `if`, and so do the pairs of `values` that
    /// the branches give besides, which are returned.
    pub(super) fn merge_variables(
        &mut self,
        op: scf::If,
        then: &Branch,
        other: &mut Branch,
        values: &[(Value, Value)],
    ) -> Eval<Vec<Value>> {
        let else_region = op.else_region(&self.module);
        let mut pairs = Vec::new();
        let mut names = Vec::new();
        let before = self.frame().scope.clone();
        self.frame_mut()
            .lost
            .extend(then.lost.iter().chain(&other.lost).map(|(name, why)| (name.clone(), why.clone())));
        // (What neither has any more is lost for the reasons of both.)
        let neither = |name: &Name| !then.scope.contains_key(name) && !other.scope.contains_key(name);
        self.frame_mut().scope.retain(|name, _| !neither(name));
        for (name, a) in &then.scope {
            let Some(b) = other.scope.get(name) else {
                self.lose_in_branch(name, other);
                continue;
            };
            if a.identical(b) {
                if before.get(name).is_none_or(|old| !old.identical(a)) {
                    self.frame_mut().scope.insert(name.clone(), a.clone());
                }
                continue;
            }
            let numbers = |v: &Value| is_number(v) || !v.leaves().is_empty();
            if !numbers(a) || !numbers(b) {
                // An error only where it is used.
                self.frame_mut().scope.shift_remove(name);
                self.frame_mut().lost.insert(name.clone(), DIFFERENT);
                continue;
            }
            if other.block.is_none() {
                other.block = Some(self.module.append_block(else_region, &[]));
            }
            match self.unify_branches(a.clone(), b.clone(), then.block, other.block)? {
                Ok(pair) => {
                    pairs.push(pair);
                    names.push(name.clone());
                }
                // Likewise: a name that nobody reads any more may have two types.
                Err((a, b)) => {
                    let line = self.frame().function.source.line_col(self.range.start()).0;
                    let which = format!(
                        "`{name}` is {a} after the `then` branch but {b} after the `else` branch of line {line}"
                    );
                    self.frame_mut().scope.shift_remove(name);
                    self.frame_mut().lost.insert(name.clone(), Lost::TwoTypes(which.into()));
                }
            }
        }
        for name in other.scope.keys() {
            if !then.scope.contains_key(name) {
                self.lose_in_branch(name, then);
            }
        }
        pairs.extend_from_slice(values);
        let mut merged = self.merge(op, then, other, &pairs);
        let values = merged.split_off(names.len());
        for (name, value) in names.into_iter().zip(merged) {
            self.frame_mut().scope.insert(name, value);
        }
        Ok(values)
    }

    /// A variable that is there behind one branch of an `if` only: the other one has lost it, or never had it.
    fn lose_in_branch(&mut self, name: &Name, without: &Branch) {
        let frame = self.frame_mut();
        let was_there = frame.scope.shift_remove(name).is_some();
        let why = match without.lost.get(name) {
            Some(why @ Lost::TwoTypes(_)) => why.clone(),
            Some(why) if was_there => why.clone(),
            _ => Lost::Because("it is assigned in only one branch of an `if`"),
        };
        frame.lost.insert(name.clone(), why);
    }

    /// What a function gives on a path that returns nothing, where the other returns `value`: zeros, with a warning. (Triton gives what is
    /// undefined.) Nothing for what is no number.
    pub(super) fn returned_instead(&mut self, value: &Value, block: Option<Block>) -> Eval<Option<Value>> {
        let (Value::Tensor(like), Some(block)) = (value, block) else { return Ok(None) };
        if like.number().is_none() {
            return Ok(None);
        }
        self.warn(&format!(
            "the function returns {value} on one path and nothing on another: there it gives 0"
        ));
        let outer = std::mem::replace(&mut self.block, block);
        let zero = self.scalar_constant(&HostValue::Int(0), &like.dtype);
        let zero = zero.map(|zero| self.splat_constant(&zero, &like.shape));
        self.block = outer;
        Ok(Some(Value::Tensor(zero?)))
    }

    /// Makes the two values of a variable the same type where only a number constant stands in the way; gives back both where they are of
    /// two types.
    fn unify_branches(
        &mut self,
        a: Value,
        b: Value,
        then_block: Option<Block>,
        else_block: Option<Block>,
    ) -> Eval<Result<(Value, Value), (Value, Value)>> {
        let outer = self.block;
        self.block = then_block.unwrap_or(outer);
        let a = if is_number(&a) { Value::Tensor(self.tensor_of(&a)?) } else { a };
        self.block = else_block.unwrap_or(outer);
        let b = if is_number(&b) { Value::Tensor(self.tensor_of(&b)?) } else { b };
        self.block = then_block.unwrap_or(outer);
        let a = self.widened(a, &b)?;
        self.block = else_block.unwrap_or(outer);
        let b = self.widened(b, &a)?;
        self.block = outer;
        Ok(if a.same_type(&b) && !a.leaves().is_empty() { Ok((a, b)) } else { Err((a, b)) })
    }

    /// Ends both branches, gives the `if` a result for each pair of values that differ and returns them all.
    pub(super) fn merge(
        &mut self,
        op: scf::If,
        then: &Branch,
        other: &mut Branch,
        pairs: &[(Value, Value)],
    ) -> Vec<Value> {
        let leaves = |pick: fn(&(Value, Value)) -> &Value| -> Vec<tilewright_ir::Value> {
            pairs
                .iter()
                .flat_map(|p| pick(p).leaves().into_iter().map(|t| t.value).collect::<Vec<_>>())
                .collect()
        };
        let both: Vec<_> = leaves(|p| &p.0).into_iter().zip(leaves(|p| &p.1)).collect();
        // What is the same value behind both branches comes from neither.
        let differing = || both.iter().filter(|(a, b)| a != b);
        let (then_values, else_values): (Vec<_>, Vec<_>) = differing().copied().unzip();
        let outer = self.block;
        for (block, values) in [(then.block, &then_values), (other.block, &else_values)] {
            if let Some(block) = block {
                self.block = block;
                scf::Yield::build(&mut builder!(self), values);
            }
        }
        self.block = outer;
        let mut result = |&(a, b): &(tilewright_ir::Value, tilewright_ir::Value)| {
            if a == b {
                return a;
            }
            let ty = self.module.value_type(a);
            self.module.add_result(op.0, ty)
        };
        let results: Vec<_> = both.iter().map(&mut result).collect();
        let mut next = results.into_iter();
        pairs
            .iter()
            .map(|(a, _)| {
                a.map_leaves(&mut |t| match next.next() {
                    Some(value) => Tensor { value, ..t.clone() },
                    None => t.clone(),
                })
            })
            .collect()
    }

    /// `a if test else b`.
    pub fn ternary(&mut self, test: &Expr, body: &Expr, orelse: &Expr, range: TextRange) -> Eval<Value> {
        let condition = self.expr(test)?;
        if let Some(condition) = self.differs(&condition) {
            return self.varying_ternary(&condition, body, orelse, range);
        }
        self.range = test.range();
        let condition = match self.condition(condition, "if")? {
            Condition::Static(true) => return self.expr(body),
            Condition::Static(false) => return self.expr(orelse),
            Condition::Dynamic(condition) => condition,
        };
        self.range = range;
        let mut b = builder!(self);
        let op = scf::If::build(&mut b, condition.value, &[]);
        let (then_region, else_region) = (op.then_region(&self.module), op.else_region(&self.module));
        let then_block = self.module.append_block(then_region, &[]);
        let eval = |e: &mut Self, block: Block, expr: &Expr| {
            e.branch(block, |e| {
                let value = e.expr(expr)?;
                e.assigned(value).map(Flow::Return)
            })
        };
        let then = eval(self, then_block, body)?;
        let else_block = self.module.append_block(else_region, &[]);
        let mut other = eval(self, else_block, orelse)?;
        self.range = range;
        let of = |branch: &Branch| result_of(&branch.flow).cloned().unwrap_or(Value::NONE);
        let (a, b) = (of(&then), of(&other));
        if !a.same_type(&b) {
            return Err(self
                .error(format!("the two values of a conditional expression differ in type: {a} and {b}"))
                .note("convert one with .to(dtype); for tensors tl.where broadcasts and promotes")
                .into());
        }
        // What the branches assign by `:=`, or have done to objects, is there behind them, too.
        let values = self.merge_variables(op, &then, &mut other, &[(a, b)])?;
        Ok(values.into_iter().next().unwrap_or(Value::NONE))
    }

    // ---- assert ---------------------------------------------------------------------------------------------

    pub fn assert_stmt(&mut self, s: &StmtAssert) -> Eval<()> {
        let test = self.expr(&s.test)?;
        let message = match &s.msg {
            Some(message) => self.expr(message)?,
            None => Value::Const(HostValue::str("")),
        };
        self.range = s.range;
        let text = match &message {
            Value::Const(HostValue::Str(text)) => text.to_string(),
            other => other.to_host().map(|v| v.to_string()).unwrap_or_default(),
        };
        match test {
            Value::Tensor(condition) => {
                if self.options.debug {
                    let condition = self.cast(&condition, &Scalar::Int1.into())?;
                    tt::Assert::build(&mut builder!(self), condition.value, text);
                }
                Ok(())
            }
            other => match self.condition(other, "assert")? {
                Condition::Static(false) => {
                    let separator = if text.is_empty() { "" } else { ": " };
                    let error = self.error(format!("the assertion is false{separator}{text}"));
                    Err(error.of(Kind::Assertion).into())
                }
                _ => Ok(()),
            },
        }
    }
}

pub(super) fn is_number(value: &Value) -> bool {
    matches!(value, Value::Const(HostValue::Int(_) | HostValue::Float(_) | HostValue::Bool(_)))
}

/// The value of a condition.
pub(crate) enum Condition {
    /// Known at compile time.
    Static(bool),
    /// An `i1` scalar.
    Dynamic(Tensor),
}

/// Where the first `return` among statements stands.
pub(crate) fn find_return(stmts: &[Stmt]) -> Option<TextRange> {
    stmts.iter().find_map(|stmt| match stmt {
        Stmt::Return(s) => Some(s.range),
        Stmt::If(s) => find_return(&s.body)
            .or_else(|| s.elif_else_clauses.iter().find_map(|clause| find_return(&clause.body))),
        Stmt::For(s) => find_return(&s.body),
        Stmt::While(s) => find_return(&s.body),
        Stmt::With(s) => find_return(&s.body),
        _ => None,
    })
}
