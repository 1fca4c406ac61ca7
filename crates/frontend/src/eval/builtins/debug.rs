//! Advice to the compiler, assertions and printing.

use tilewright_ir::AttrKind;
use tilewright_ir::diagnostic::Kind;
use tilewright_ir::dialect::{llvm, tt};

use super::super::call::Args;
use super::super::control::Condition;
use super::super::{Eval, Evaluator, builder};
use crate::dtype::Scalar;
use crate::host::HostValue;
use crate::value::{Tensor, Value};

impl Evaluator<'_> {
    pub(super) fn assume(&mut self, args: &Args) -> Eval<Value> {
        match self.condition(args.get("cond").clone(), "tl.assume")? {
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

    /// A promise about a value's elements becomes an attribute of the op that defines it.
    pub(super) fn promise(&mut self, args: &Args, attribute: &'static str) -> Eval<Value> {
        let name = args.builtin.name.clone();
        let values = self.ints(args.get("values"), &format!("`values` of tl.{name}"))?;
        let Value::Tensor(t) = args.get("input") else {
            return Ok(args.get("input").clone()); // a constant: the compiler sees more than any promise says
        };
        if values.len() != t.shape.len().max(1) {
            return Err(self.error(format!(
                "tl.{name} needs one value for each dimension of {}, but {} are given",
                t.ty(),
                values.len()
            )));
        }
        if let Some(op) = self.module.defining_op(t.value) {
            let shape = [values.len() as u32];
            let ty = self.ir_type(&Scalar::Int32.into(), &shape);
            let i32_type = self.ir_type(&Scalar::Int32.into(), &[]);
            let items: Vec<_> =
                values.iter().map(|&v| self.module.attr(AttrKind::Int(i64::from(v), i32_type))).collect();
            let dense = match items.as_slice() {
                [first, rest @ ..] if rest.iter().all(|i| i == first) => AttrKind::Splat(*first, ty),
                _ => AttrKind::Dense(items, ty),
            };
            let attr = self.module.attr(dense);
            self.module.set_attr(op, attribute, attr);
        }
        Ok(args.get("input").clone())
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
