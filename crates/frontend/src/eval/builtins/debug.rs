//! Advice to the compiler, assertions and printing.

use tilewright_ir::diagnostic::Kind;
use tilewright_ir::dialect::{arith, llvm, tt};
use tilewright_ir::{self as ir, AttrKind, marks};

use super::super::call::Args;
use super::super::control::Condition;
use super::super::{Eval, Evaluator, builder};
use crate::dtype::Scalar;
use crate::host::HostValue;
use crate::value::{Tensor, Value};

impl Evaluator<'_> {
    pub(super) fn assume(&mut self, args: &Args) -> Eval<Value> {
        let condition = args.get("cond");
        let fits = match condition {
            Value::Const(c) => matches!(c, HostValue::Bool(_) | HostValue::Int(_)),
            Value::Tensor(t) => !t.number().is_some_and(Scalar::is_float),
            _ => false,
        };
        if !fits {
            return Err(self.bad_argument(args, "cond", condition, "a condition, such as n > 0"));
        }
        match self.condition(condition.clone(), "tl.assume")? {
            Condition::Static(true) => Ok(Value::NONE),
            Condition::Static(false) => {
                Err(self.error("tl.assume of a condition that is false at compile time"))
            }
            Condition::Dynamic(condition) => {
                llvm::Assume::build(&mut builder!(self), condition.value);
                Ok(Value::NONE)
            }
        }
    }

    pub(super) fn static_print(&mut self, args: &Args) -> Eval<Value> {
        let separator = self.str_arg(args, "sep")?;
        let end = self.str_arg(args, "end")?;
        let texts: Vec<String> = args
            .rest
            .iter()
            .map(|v| match v {
                Value::Const(HostValue::Str(s)) => s.to_string(),
                v => v.to_host().map_or_else(|| v.describe(), |v| v.to_string()),
            })
            .collect();
        self.printed.push_str(&texts.join(&separator));
        self.printed.push_str(&end);
        Ok(Value::NONE)
    }

    pub(super) fn static_assert(&mut self, args: &Args) -> Eval<Value> {
        let condition = args.get("cond");
        let truth = match condition {
            Value::Const(c) => c.truth(),
            Value::Tuple(t) => Some(!t.items.is_empty()),
            _ => None,
        };
        match truth {
            Some(true) => {}
            Some(false) => {
                let message = match args.get("msg") {
                    Value::Const(HostValue::Str(s)) => s.to_string(),
                    other => other.to_host().map(|v| v.to_string()).unwrap_or_default(),
                };
                let separator = if message.is_empty() { "" } else { ": " };
                let error = self.error(format!("static assertion failed{separator}{message}"));
                return Err(error.of(Kind::Assertion).into());
            }
            None => return Err(self.needs_constexpr(condition, "the condition of tl.static_assert")),
        }
        Ok(Value::NONE)
    }

    /// A promise about a value's elements becomes an attribute of the operation that makes it, or stands with the kernel's argument that it is.
    pub(super) fn promise(&mut self, args: &Args, attribute: &'static str) -> Eval<Value> {
        let name = args.builtin.name.clone();
        let values = self.ints(args.get("values"), &format!("`values` of tl.{name}"))?;
        if let Some(value) = values.iter().find(|&&value| value < 1) {
            return Err(self.error(format!("`values` of tl.{name} must be positive, not {value}")));
        }
        let t = match args.get("input") {
            Value::Tensor(t) if t.dtype.is_pointer() || t.number().is_some_and(|n| !n.is_float()) => {
                t.clone()
            }
            Value::Tensor(t) if t.number().is_some_and(Scalar::is_float) => {
                self.warn(&format!("tl.{name} says nothing of floating-point numbers"));
                return Ok(Value::Tensor(t.clone()));
            }
            // The compiler sees more than any promise says.
            constant @ Value::Const(HostValue::Int(_) | HostValue::Bool(_)) => return Ok(constant.clone()),
            other => return Err(self.bad_argument(args, "input", other, "integers or pointers")),
        };
        if values.len() != t.shape.len().max(1) {
            return Err(self.error(format!(
                "tl.{name} needs one value for each dimension of {}, but {} are given",
                t.ty(),
                values.len()
            )));
        }
        if attribute == marks::DIVISIBILITY && self.promise_of_argument(&t, values[0]) {
            return Ok(Value::Tensor(t));
        }
        let (t, op) = self.with_operation(t)?;
        let ty = self.ir_type(&Scalar::Int32.into(), &[values.len() as u32]);
        let i32_type = self.ir_type(&Scalar::Int32.into(), &[]);
        let items: Vec<_> =
            values.iter().map(|&v| self.module.attr(AttrKind::Int(i64::from(v), i32_type))).collect();
        let dense = match items.as_slice() {
            [first, rest @ ..] if rest.iter().all(|i| i == first) => AttrKind::Splat(*first, ty),
            _ => AttrKind::Dense(items, ty),
        };
        let attr = self.module.attr(dense);
        self.module.set_attr(op, attribute, attr);
        Ok(Value::Tensor(t))
    }

    /// A divisor of a kernel's argument stands beside those that the launch sees. `false` where that is no argument, or the promise is
    /// made under a condition.
    fn promise_of_argument(&mut self, t: &Tensor, divisor: i32) -> bool {
        let Some((func, entry)) = self.kernel.filter(|&(_, entry)| entry == self.block) else { return false };
        let Some(at) = self.module.block_args(entry).iter().position(|&arg| arg == t.value) else {
            return false;
        };
        let mut all = self.arg_attrs(func);
        let Some(AttrKind::Dict(mut promises)) = all.get(at).map(|&a| self.module.attr_kind(a).clone())
        else {
            return false;
        };
        let known = promises.iter().position(|(name, _)| &**name == marks::DIVISIBILITY);
        let seen = known.and_then(|i| match self.module.attr_kind(promises[i].1) {
            AttrKind::Int(n, _) => Some(*n),
            _ => None,
        });
        // (Powers of two are all that is made use of.)
        let power = |n: i64| n.trailing_zeros();
        if seen.is_none_or(|seen| power(i64::from(divisor)) > power(seen)) {
            let attr = self.module.attr(AttrKind::Int(i64::from(divisor), ir::Type::I32));
            match known {
                Some(i) => promises[i].1 = attr,
                None => promises.push((marks::DIVISIBILITY.into(), attr)),
            }
            all[at] = self.module.attr(AttrKind::Dict(promises));
            self.set_arg_attrs(func, all);
        }
        true
    }

    /// A tensor as the only result of an operation of this block, which may carry what is promised here of it: its own operation, or else one
    /// that adds nothing to it.
    fn with_operation(&mut self, t: Tensor) -> Eval<(Tensor, ir::Op)> {
        if let Some(op) = self.module.defining_op(t.value)
            && self.module.parent_block(op) == Some(self.block)
            && self.module.results(op).len() == 1
            && self.module.regions(op).is_empty()
        {
            return Ok((t, op));
        }
        let scalar = t.number().filter(|_| !t.dtype.is_pointer());
        let number = scalar.unwrap_or(Scalar::Int32);
        let zero = self.scalar_constant(&HostValue::Int(0), &number.into())?;
        let zero = self.splat_constant(&zero, &t.shape).value;
        let mut b = builder!(self);
        let value = match scalar {
            Some(_) => arith::Addi::build(&mut b, t.value, zero).result(b.module),
            None => tt::Addptr::build(&mut b, t.value, zero).result(b.module),
        };
        let op = self.module.defining_op(value).expect("it has just been made");
        Ok((Tensor { value, ..t }, op))
    }

    /// A value without the operations that only carry promises of it.
    pub(in super::super) fn without_promises(&self, value: ir::Value) -> ir::Value {
        let m = &self.module;
        let mut value = value;
        while let Some(op) = m.defining_op(value).filter(|&op| marks::promises(m, op))
            && let &[of, zero] = m.operands(op)
            && (arith::Addi::cast(m, op).is_some() || tt::Addptr::cast(m, op).is_some())
            && m.constant_int(zero) == Some(0)
        {
            value = of;
        }
        value
    }

    pub(super) fn device_print(&mut self, args: &Args) -> Eval<()> {
        let mut prefix = match args.get("prefix") {
            Value::Const(HostValue::Str(s)) => s.to_string(),
            Value::Const(c) => c.to_string(),
            other => {
                return Err(self
                    .error(format!("the prefix of tl.device_print must be a constant string, not {other}"))
                    .note("write tl.device_print(\"x\", x)")
                    .into());
            }
        };
        let mut values = Vec::new();
        let mut signed = Vec::new();
        for value in &args.rest {
            let t: Tensor = self.tensor_of(value)?;
            signed.push(i32::from(t.number().is_some_and(Scalar::is_signed)));
            values.push(t.value);
        }
        // " text: " reads well before a value.
        if !values.is_empty() && !prefix.ends_with(": ") {
            prefix = format!("{}: ", prefix.trim_end().trim_end_matches(':'));
        }
        if prefix.len() > 2 && !prefix.starts_with(' ') {
            prefix = format!(" {prefix}");
        }
        let hex = self.bool_arg(args, "hex")?;
        tt::Print::build(&mut builder!(self), &values, prefix, hex, signed);
        Ok(())
    }

    pub(super) fn device_assert(&mut self, args: &Args) -> Eval<()> {
        if !self.options.debug {
            return Ok(());
        }
        let condition = self.tensor_arg(args, "cond")?;
        let mut condition = self.truth_of(&condition)?;
        if args.optional("mask").is_some() {
            let mask = self.tensor_arg(args, "mask")?;
            let mask = self.truth_of(&mask)?;
            let off = self.tensor_unary(ruff_python_ast::UnaryOp::Not, &mask)?;
            condition = self.tensor_binary(
                ruff_python_ast::Operator::BitOr,
                &Value::Tensor(condition),
                &Value::Tensor(off),
            )?;
        }
        let message = self.str_arg(args, "msg")?;
        tt::Assert::build(&mut builder!(self), condition.value, message);
        Ok(())
    }
}
