//! Statements, and how a function's body ends.

use ruff_python_ast::{Expr, ExprContext, Stmt, StmtAnnAssign, StmtFunctionDef};
use ruff_text_size::Ranged;

use tilewright_ir::diagnostic::Kind;

use super::{Error, Eval, Evaluator};
use crate::host::HostValue;
use crate::value::{Tensor, Value};

/// How a list of statements ended.
#[derive(Clone)]
pub(crate) enum Flow {
    /// It went on.
    Next,
    /// It returned on every path; the function is done.
    Return(Value),
    /// It has come to where paths join ([`RestKind::Join`]). With a value: where the first, which is known at run time, is true, the function
    /// has returned the second.
    Joined(Option<(Tensor, Value)>),
}

/// What is to run after the statements at hand, up to the end of the function. A run-time `if` with a `return` in it
/// takes this over: what follows the `if` moves into its branches.
#[derive(Clone, Copy)]
pub(crate) struct Rest<'a> {
    pub kind: RestKind<'a>,
    pub next: Option<&'a Rest<'a>>,
}

#[derive(Clone, Copy)]
pub(crate) enum RestKind<'a> {
    /// These statements.
    Stmts(&'a [Stmt]),
    /// The body of an unrolled loop for each of these values of its variable.
    Unrolled { target: &'a Expr, values: &'a [Value], body: &'a [Stmt] },
    /// Nothing: the paths of an `if` join here, those that return, too (`join`).
    Join,
}

impl Evaluator<'_> {
    /// Evaluates a whole function body; `None` where nothing is returned.
    pub fn run_function(&mut self, body: &[Stmt]) -> Eval<Value> {
        match self.run(body, None)? {
            // Nothing joins at the end of a function.
            Flow::Next | Flow::Joined(_) => self.with_returned(Value::NONE),
            Flow::Return(value) => Ok(value),
        }
    }

    /// Runs what is left of the function.
    pub fn run_rest(&mut self, rest: Option<&Rest<'_>>) -> Eval<Flow> {
        let mut at = rest;
        while let Some(rest) = at {
            let flow = match rest.kind {
                RestKind::Stmts(stmts) => self.run(stmts, rest.next)?,
                RestKind::Unrolled { target, values, body } => {
                    self.run_unrolled(target, values, body, rest.next)?
                }
                RestKind::Join => Flow::Joined(None),
            };
            if !matches!(flow, Flow::Next) {
                return Ok(flow);
            }
            at = rest.next;
        }
        self.with_returned(Value::NONE)?;
        Ok(Flow::Next)
    }

    pub fn run(&mut self, stmts: &[Stmt], rest: Option<&Rest<'_>>) -> Eval<Flow> {
        stacker::maybe_grow(256 << 10, 4 << 20, || self.run_inner(stmts, rest))
    }

    fn run_inner(&mut self, stmts: &[Stmt], rest: Option<&Rest<'_>>) -> Eval<Flow> {
        for (i, stmt) in stmts.iter().enumerate() {
            let after = Rest { kind: RestKind::Stmts(&stmts[i + 1..]), next: rest };
            self.range = stmt.range();
            self.step()?;
            match self.stmt(stmt, &after)? {
                Flow::Next => {}
                done => return Ok(done),
            }
        }
        Ok(Flow::Next)
    }

    fn stmt(&mut self, stmt: &Stmt, rest: &Rest<'_>) -> Eval<Flow> {
        match stmt {
            Stmt::Expr(s) => match &*s.value {
                Expr::StringLiteral(_) | Expr::EllipsisLiteral(_) => {}
                Expr::Call(call) => self.unused_call(call)?,
                value => {
                    self.expr(value)?;
                }
            },
            Stmt::Assign(s) => {
                let value = self.expr(&s.value)?;
                let value = self.assigned(value)?;
                for target in &s.targets {
                    self.assign(target, value.clone())?;
                }
            }
            Stmt::AugAssign(s) => {
                let current = self.expr(&load_of(&s.target))?;
                let operand = self.expr(&s.value)?;
                self.range = s.range;
                let value = self.binary(s.op, current, operand)?;
                let value = self.assigned(value)?;
                self.assign(&s.target, value)?;
            }
            Stmt::AnnAssign(s) => self.annotated(s)?,
            Stmt::Return(s) => {
                let value = match &s.value {
                    Some(value) => self.expr(value)?,
                    None => Value::NONE,
                };
                self.range = s.range;
                if self.returns_by_mask() {
                    self.return_active(value)?;
                    return Ok(Flow::Return(Value::NONE));
                }
                if self.frame().loops > 0 {
                    return Err(self
                        .error("`return` inside a run-time loop is not supported")
                        .of(Kind::Unsupported)
                        .note(
                            "set a flag in the loop and return after it, or use tl.static_range if the loop can be unrolled",
                        )
                        .into());
                }
                let value = self.assigned(value)?;
                return Ok(Flow::Return(self.with_returned(value)?));
            }
            Stmt::If(s) => return self.if_stmt(s, rest),
            Stmt::For(s) => return self.for_stmt(s, rest),
            Stmt::While(s) => return self.while_stmt(s, rest),
            Stmt::With(s) => return self.with_stmt(s, rest),
            Stmt::Assert(s) => self.assert_stmt(s)?,
            Stmt::Pass(_) => {}
            other => return Err(self.unsupported_stmt(other)),
        }
        Ok(Flow::Next)
    }

    /// `x: T = value`; with `tl.constexpr` the variable is a constant.
    fn annotated(&mut self, s: &StmtAnnAssign) -> Eval<()> {
        let Some(value) = &s.value else { return Ok(()) };
        let constant = self.is_constexpr_annotation(&s.annotation);
        let value = self.expr(value)?;
        self.range = s.range;
        if !constant {
            let value = self.assigned(value)?;
            return self.assign(&s.target, value);
        }
        let Expr::Name(target) = &*s.target else {
            return Err(self.error("only a plain name can be declared tl.constexpr"));
        };
        if let Some(Value::Tensor(t)) = self.frame().scope.get(&target.id) {
            return Err(self
                .error(format!(
                    "`{}` is a run-time value of type {} and cannot become a constexpr",
                    target.id,
                    t.ty()
                ))
                .note("use another name for the constant")
                .into());
        }
        if value.to_host().is_none() {
            // As in Triton, where such a variable holds the run-time value.
            self.warn(&format!(
                "`{}` is declared tl.constexpr but its value is only known at run time: {}",
                target.id,
                value.describe()
            ));
            let value = self.assigned(value)?;
            return self.assign(&s.target, value);
        }
        self.frame_mut().scope.insert(target.id.clone(), value);
        Ok(())
    }

    /// The error about a statement that kernels do not have.
    fn unsupported_stmt(&mut self, stmt: &Stmt) -> Error {
        let (what, hint) = match stmt {
            Stmt::FunctionDef(def) => {
                self.range = def.name.range;
                return self
                    .error(format!("a function cannot be defined inside a kernel: `{}`", def.name))
                    .note("define it at the top level and decorate it with @jit")
                    .into();
            }
            Stmt::ClassDef(class) => {
                self.range = class.name.range;
                ("`class`", "define it outside of the kernel; named tuples can be passed in")
            }
            Stmt::Break(_) => ("`break`", "use a `while` loop with the condition in its head, or a mask"),
            Stmt::Continue(_) => {
                ("`continue`", "use a `while` loop with the condition in its head, or a mask")
            }
            Stmt::Try(_) => ("`try`", "kernels raise no exceptions; check with tl.device_assert"),
            Stmt::Raise(_) => ("`raise`", "use tl.static_assert or tl.device_assert"),
            Stmt::Import(_) | Stmt::ImportFrom(_) => ("`import`", "import at the top of the file"),
            Stmt::Global(_) | Stmt::Nonlocal(_) => {
                ("`global`", "kernels cannot change variables outside; return the value")
            }
            Stmt::Delete(_) => ("`del`", "let the variable be: it costs nothing"),
            Stmt::Match(_) => ("`match`", "write if/elif/else"),
            Stmt::TypeAlias(_) => ("`type`", "define it outside of the kernel"),
            _ => ("an IPython command", "remove it"),
        };
        self.unsupported(what, hint)
    }

    /// An error about a construct that kernels do not have.
    pub fn unsupported(&self, what: &str, hint: &str) -> Error {
        self.error(format!("{what} is not supported in a kernel")).of(Kind::Unsupported).note(hint).into()
    }

    /// What a plain assignment or `return` makes of a value: numbers become run-time scalars (Triton's rule), unless
    /// the function runs at compile time. Everything else stays what it is.
    pub fn assigned(&mut self, value: Value) -> Eval<Value> {
        if self.frame().constexpr {
            return Ok(value);
        }
        match value {
            Value::Const(HostValue::Int(_) | HostValue::Float(_) | HostValue::Bool(_)) => {
                Ok(Value::Tensor(self.tensor_of(&value)?))
            }
            Value::Tuple(t) => {
                let mut items = Vec::with_capacity(t.items.len());
                for item in &t.items {
                    items.push(self.assigned(item.clone())?);
                }
                Ok(Value::Tuple(crate::value::TupleValue { class: t.class.clone(), items }.into()))
            }
            other => Ok(other),
        }
    }

    /// Calls what has no name yet after a variable, for those who read the IR.
    pub fn call_by_name(&mut self, value: &Value, name: &str) {
        for leaf in value.leaves() {
            self.module.name_value(leaf.value, name);
        }
    }

    pub fn assign(&mut self, target: &Expr, value: Value) -> Eval<()> {
        match target {
            Expr::Name(name) => {
                let value = self.where_active(&name.id, value)?;
                self.call_by_name(&value, &name.id);
                self.frame_mut().scope.insert(name.id.clone(), value);
                Ok(())
            }
            Expr::Tuple(_) | Expr::List(_) => {
                let targets: &[Expr] = match target {
                    Expr::Tuple(t) => &t.elts,
                    Expr::List(t) => &t.elts,
                    _ => &[],
                };
                if let Some(rest) = targets.iter().find(|target| target.is_starred_expr()) {
                    self.range = rest.range();
                    let what = "`*` before a name that is assigned";
                    return Err(self.unsupported(what, "unpack a slice: a, b = t[0], t[1:]"));
                }
                self.range = target.range();
                let Value::Tuple(tuple) = &value else {
                    return Err(self.error(format!("cannot unpack {value} into {} names", targets.len())));
                };
                if tuple.items.len() != targets.len() {
                    return Err(self.error(format!(
                        "cannot unpack {} values into {} names",
                        tuple.items.len(),
                        targets.len()
                    )));
                }
                for (target, item) in targets.iter().zip(&tuple.items) {
                    self.assign(target, item.clone())?;
                }
                Ok(())
            }
            Expr::Subscript(s) => {
                let object = self.expr(&s.value)?;
                if let Value::Aggregate(_) = object {
                    let index = self.expr(&s.slice)?;
                    self.range = target.range();
                    return self.set_item(&object, index, value);
                }
                self.range = target.range();
                Err(self
                    .error("elements of a tensor cannot be assigned")
                    .note(
                        "tensors are values: build a new one with tl.where, or write to memory with tl.store",
                    )
                    .into())
            }
            Expr::Attribute(a) => {
                let object = self.expr(&a.value)?;
                self.range = target.range();
                if let Value::Aggregate(object) = object {
                    return self.set_field(&object, &a.attr, value);
                }
                Err(self.unsupported("assignment to an attribute", "assign to a variable"))
            }
            other => {
                self.range = other.range();
                Err(self.unsupported("this target of an assignment", "assign to names"))
            }
        }
    }

    /// Whether an annotation says `tl.constexpr`.
    pub fn is_constexpr_annotation(&mut self, annotation: &Expr) -> bool {
        match annotation {
            Expr::Name(name) => name.id.as_str() == "constexpr",
            Expr::Attribute(a) => a.attr.as_str() == "constexpr",
            Expr::StringLiteral(s) => s.value.to_str().ends_with("constexpr"),
            _ => false,
        }
    }

    /// Refuses what no kernel can have, before anything is evaluated.
    pub fn check_kernel(&mut self, def: &StmtFunctionDef) -> Eval<()> {
        if def.is_async {
            return Err(self.unsupported("`async def`", "write `def`"));
        }
        if let Some(p) = &def.parameters.kwarg {
            self.range = p.range;
            return Err(self.unsupported("**kwargs", "name the parameters"));
        }
        if let Some(p) = &def.parameters.vararg {
            self.range = p.range;
            return Err(self.unsupported("*args in a kernel", "name the parameters, or pass a tuple"));
        }
        Ok(())
    }
}

/// The target of an augmented assignment as an expression to read.
fn load_of(target: &Expr) -> Expr {
    let mut expr = target.clone();
    match &mut expr {
        Expr::Name(n) => n.ctx = ExprContext::Load,
        Expr::Attribute(a) => a.ctx = ExprContext::Load,
        Expr::Subscript(s) => s.ctx = ExprContext::Load,
        _ => {}
    }
    expr
}
