//! An `if` of which some paths return, while others go on.
//!
//! Where one of its two sides always returns, what follows the `if` moves into the other (`control`). Where both may go on, it would stand
//! in both, and behind each further such `if` twice as often. Their paths meet where the `if` ends, then: beside its variables, each
//! side gives whether it has returned, and what; what follows stands in one side of a second `if`, which asks for the first of these.
//!
//! ```text
//! if n > 2:              returned, x = True, 0 if n > 2 and m else False, n
//!     if m:              if returned:
//!         return      ►      return
//! x = n                  else:
//! f(x)                       f(x)
//! ```
//!
//! Where what follows reads a constant that differs, or a buffer or a descriptor that only one side has, it stands in both all the same.

use ruff_python_ast::name::Name;
use ruff_python_ast::visitor::{Visitor, walk_expr};
use ruff_python_ast::{ElifElseClause, Expr, Stmt};
use ruff_text_size::TextRange;
use rustc_hash::FxHashMap;
use tilewright_ir::Block;
use tilewright_ir::dialect::scf;

use super::control::{Branch, DIFFERENT, Else};
use super::stmt::{Flow, Rest, RestKind};
use super::{Eval, Evaluator, Lost, builder};
use crate::dtype::DType;
use crate::host::HostValue;
use crate::value::{Tensor, Value};

impl Evaluator<'_> {
    /// A run-time `if` both sides of which may return or go on.
    pub(super) fn if_that_joins(
        &mut self,
        condition: Tensor,
        body: &[Stmt],
        orelse: Else<'_>,
        range: TextRange,
        rest: &Rest<'_>,
    ) -> Eval<Flow> {
        let mark = self.module.last_op(self.block);
        let (scope, lost) = (self.frame().scope.clone(), self.frame().lost.clone());
        let join = Rest { kind: RestKind::Join, next: None };
        let flow = self.dynamic_if(condition.clone(), body, orelse, range, &join, true)?;
        if self.stay_apart(&lost, rest) {
            self.erase_after(mark);
            self.frame_mut().scope = scope;
            self.frame_mut().lost = lost;
            return self.dynamic_if(condition, body, orelse, range, rest, true);
        }
        let (returned, value) = match flow {
            Flow::Joined(Some(joined)) => joined,
            // Those that return do it on paths that are not compiled.
            Flow::Joined(None) => return Ok(Flow::Next),
            done => return Ok(done),
        };
        self.range = range;
        let op = scf::If::build(&mut builder!(self), returned.value, &[]);
        let (then_region, else_region) = (op.then_region(&self.module), op.else_region(&self.module));
        let then_block = self.module.append_block(then_region, &[]);
        let then = self.branch(then_block, |_| Ok(Flow::Return(value)))?;
        let else_block = self.module.append_block(else_region, &[]);
        let other = self.branch(else_block, |e| e.run_to_end(Flow::Next, rest))?;
        self.range = range;
        self.join_sides(op, then, other)
    }

    /// Whether what follows stands in both sides: it reads a constant that they leave different, or one of them left what nothing can stand for.
    fn stay_apart(&mut self, lost: &FxHashMap<Name, Lost>, rest: &Rest<'_>) -> bool {
        let unjoinable = std::mem::take(&mut self.frame_mut().unjoinable);
        let differ = |name: &str| {
            self.frame().lost.get(name) == Some(&DIFFERENT) && lost.get(name) != Some(&DIFFERENT)
        };
        unjoinable || Reads::any(&differ, rest)
    }

    /// Ends the two sides of an `if` that both have come to the end of the function, or to where paths join.
    pub(super) fn join_sides(&mut self, op: scf::If, mut then: Branch, mut other: Branch) -> Eval<Flow> {
        let (a, b) = (then.flow.clone(), other.flow.clone());
        if let (Flow::Return(a), Flow::Return(b)) = (&a, &b) {
            let results = self.same_results((a, then.block), (b, other.block))?;
            let merged = self.merge(op, &then, &mut other, &[results]);
            return Ok(Flow::Return(merged.into_iter().next().unwrap_or(Value::NONE)));
        }
        if matches!((&a, &b), (Flow::Joined(None), Flow::Joined(None))) {
            self.merge_variables(op, &then, &mut other, &[])?;
            return Ok(Flow::Joined(None));
        }
        if matches!(a, Flow::Return(_)) {
            self.leave_variables(&mut then, &other)?;
        } else if matches!(b, Flow::Return(_)) {
            self.leave_variables(&mut other, &then)?;
        }
        let returned = (self.has_returned(&a, then.block)?, self.has_returned(&b, other.block)?);
        let results = match (result_of(&a), result_of(&b)) {
            (Some(a), Some(b)) => self.same_results((a, then.block), (b, other.block))?,
            (Some(a), None) => (a.clone(), self.unread(a, other.block)?),
            (None, Some(b)) => (self.unread(b, then.block)?, b.clone()),
            (None, None) => (Value::NONE, Value::NONE),
        };
        let mut merged = self.merge_variables(op, &then, &mut other, &[returned, results])?.into_iter();
        match (merged.next(), merged.next()) {
            (Some(Value::Tensor(returned)), Some(value)) => Ok(Flow::Joined(Some((returned, value)))),
            _ => Ok(Flow::Joined(None)),
        }
    }

    /// What the function gives on two paths, brought to one type.
    fn same_results(
        &mut self,
        (a, then): (&Value, Option<Block>),
        (b, other): (&Value, Option<Block>),
    ) -> Eval<(Value, Value)> {
        let (mut a, mut b) = (a.clone(), b.clone());
        if a.is_none() {
            a = self.returned_instead(&b, then)?.unwrap_or(a);
        } else if b.is_none() {
            b = self.returned_instead(&a, other)?.unwrap_or(b);
        }
        if !a.same_type(&b) {
            return Err(self
                .error(format!("the function returns {a} on one path and {b} on another"))
                .note("all `return`s of a function must give the same type; convert with .to(dtype)")
                .into());
        }
        Ok((a, b))
    }

    /// Whether a side has returned where it ends, as a number of its block.
    fn has_returned(&mut self, flow: &Flow, block: Option<Block>) -> Eval<Value> {
        match flow {
            Flow::Joined(Some((returned, _))) => Ok(Value::Tensor(returned.clone())),
            flow => {
                let returned = HostValue::Bool(matches!(flow, Flow::Return(_)));
                self.in_block(block, |e| e.tensor_of(&Value::Const(returned)).map(Value::Tensor))
            }
        }
    }

    /// Zeros in the place of what nobody reads; of what has no zero the `if` is written anew (`stay_apart`).
    fn unread(&mut self, like: &Value, block: Option<Block>) -> Eval<Value> {
        let of_blocks =
            |t: &&Tensor| t.dtype.as_pointer().is_some_and(|p| matches!(p.element, DType::Block(_)));
        if like.leaves().iter().any(of_blocks) {
            self.frame_mut().unjoinable = true;
            return Ok(like.clone());
        }
        self.in_block(block, |e| e.zeros_like(like))
    }

    fn in_block<T>(&mut self, block: Option<Block>, f: impl FnOnce(&mut Self) -> Eval<T>) -> Eval<T> {
        let outer = self.block;
        self.block = block.unwrap_or(outer);
        let value = f(self);
        self.block = outer;
        value
    }

    /// Gives a side that always returns the variables of the one that goes on: nobody reads its own.
    fn leave_variables(&mut self, returned: &mut Branch, going: &Branch) -> Eval<()> {
        let mut scope = going.scope.clone();
        for (name, value) in &mut scope {
            let before = self.frame().scope.get(name);
            if value.leaves().is_empty() || before.is_some_and(|before| before.identical(value)) {
                continue;
            }
            *value = match returned.scope.get(name).filter(|own| own.same_type(value)) {
                Some(own) => own.clone(),
                None => self.unread(value, returned.block)?,
            };
        }
        returned.scope = scope;
        returned.lost.clone_from(&going.lost);
        Ok(())
    }
}

/// Whether statements name some variable.
struct Reads<'a> {
    one_of: &'a dyn Fn(&str) -> bool,
    found: bool,
}

impl Reads<'_> {
    fn any(one_of: &dyn Fn(&str) -> bool, rest: &Rest<'_>) -> bool {
        let mut reads = Reads { one_of, found: false };
        for rest in std::iter::successors(Some(rest), |rest| rest.next) {
            match rest.kind {
                RestKind::Stmts(stmts) | RestKind::Unrolled { body: stmts, .. } => reads.visit_body(stmts),
                RestKind::Join => {}
            }
        }
        reads.found
    }
}

impl<'a> Visitor<'a> for Reads<'_> {
    fn visit_expr(&mut self, node: &'a Expr) {
        match node {
            Expr::Name(name) => self.found |= (self.one_of)(&name.id),
            node => walk_expr(self, node),
        }
    }
}

/// What the function gives where a side has returned; none where it has nowhere.
pub(super) fn result_of(flow: &Flow) -> Option<&Value> {
    match flow {
        Flow::Return(value) | Flow::Joined(Some((_, value))) => Some(value),
        Flow::Next | Flow::Joined(None) => None,
    }
}

/// Whether statements come to an end, whatever is true.
pub(super) fn always_returns(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| match stmt {
        Stmt::Return(_) => true,
        Stmt::If(s) => always_returns(&s.body) && clauses_always_return(&s.elif_else_clauses),
        _ => false,
    })
}

/// Whether the `elif`s and the `else` of an `if` do, of which the last must be there.
pub(super) fn clauses_always_return(clauses: &[ElifElseClause]) -> bool {
    clauses.last().is_some_and(|last| last.test.is_none())
        && clauses.iter().all(|clause| always_returns(&clause.body))
}

/// Whether there is nothing more up to the end of the function, or to where paths join.
pub(super) fn nothing_follows(rest: &Rest<'_>) -> bool {
    std::iter::successors(Some(rest), |rest| rest.next).all(|rest| match rest.kind {
        RestKind::Stmts(stmts) => stmts.is_empty(),
        RestKind::Unrolled { values, .. } => values.is_empty(),
        RestKind::Join => true,
    })
}
