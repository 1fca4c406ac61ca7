//! The functions that the library marks `@builtin`, one file a topic.
//!
//! Each topic has a `call_…` that takes a name and says whether it knows it. A test calls the dispatcher with every
//! builtin of the library, so that none is declared and forgotten.

mod atomics;
mod block_pointer;
mod create;
mod debug;
pub(crate) mod descriptor;
mod math;
mod memory;
mod reduce;
mod shape;

use super::call::Args;
use super::{Eval, Evaluator};
use crate::fold;
use crate::host::HostValue;
use crate::value::{Tensor, Value};

impl Evaluator<'_> {
    pub fn call_builtin(&mut self, args: &Args) -> Eval<Value> {
        let name = args.builtin.name.clone();
        for topic in [
            Self::call_create,
            Self::call_math,
            Self::call_shape,
            Self::call_block_pointer,
            Self::call_descriptor,
            Self::call_memory,
            Self::call_reduce,
            Self::call_atomic,
            Self::call_debug,
        ] {
            if let Some(value) = topic(self, &name, args)? {
                return Ok(value);
            }
        }
        Err(self.error(format!("tl.{name} is not supported yet")))
    }

    // ---- arguments ------------------------------------------------------------------------------------------

    /// An argument as a tensor; numbers become scalars.
    pub(crate) fn tensor_arg(&mut self, args: &Args, name: &str) -> Eval<Tensor> {
        match args.get(name) {
            value @ (Value::Tensor(_)
            | Value::Const(HostValue::Int(_) | HostValue::Float(_) | HostValue::Bool(_))) => {
                self.tensor_of(value)
            }
            other => Err(self.bad_argument(args, name, other, "a tensor or a number")),
        }
    }

    /// An argument that must be a constant integer.
    pub(crate) fn int_arg(&mut self, args: &Args, name: &str) -> Eval<i128> {
        match args.get(name) {
            Value::Const(c @ (HostValue::Int(_) | HostValue::Bool(_))) => match fold::number(c) {
                Some(fold::Num::Int(i)) => Ok(i),
                _ => Ok(0),
            },
            value @ Value::Tensor(_) => {
                Err(self.needs_constexpr(value, &format!("`{name}` of tl.{}", args.builtin.name)))
            }
            other => Err(self.bad_argument(args, name, other, "a constant integer")),
        }
    }

    /// An argument that must be a constant with a truth value.
    pub(crate) fn bool_arg(&mut self, args: &Args, name: &str) -> Eval<bool> {
        match args.get(name) {
            Value::Const(c) if c.truth().is_some() => Ok(c.truth() == Some(true)),
            Value::Tuple(t) => Ok(!t.items.is_empty()),
            value => Err(self.needs_constexpr(value, &format!("`{name}` of tl.{}", args.builtin.name))),
        }
    }

    /// An argument that must be a constant string; `None` is the empty one.
    pub(crate) fn str_arg(&mut self, args: &Args, name: &str) -> Eval<String> {
        match args.get(name) {
            Value::Const(HostValue::Str(s)) => Ok(s.to_string()),
            Value::Const(HostValue::None) => Ok(String::new()),
            other => Err(self.bad_argument(args, name, other, "a constant string")),
        }
    }

    /// An argument that must be a dtype.
    pub(crate) fn dtype_arg(&mut self, args: &Args, name: &str) -> Eval<crate::DType> {
        match args.get(name) {
            Value::Const(HostValue::DType(dtype)) => Ok(dtype.clone()),
            Value::Const(HostValue::Str(text)) if crate::Scalar::parse(text).is_some() => {
                Ok(crate::Scalar::parse(text).unwrap_or(crate::Scalar::Void).into())
            }
            other => {
                let mut error = *self.bad_argument(args, name, other, "a dtype");
                if matches!(other, Value::Const(HostValue::Object(_))) {
                    error = error.note("write the dtype of the language, such as tl.float16");
                }
                Err(error.into())
            }
        }
    }

    /// An axis, counted from the end where negative.
    pub(crate) fn axis_arg(&mut self, args: &Args, name: &str, rank: usize) -> Eval<usize> {
        let axis = self.int_arg(args, name)?;
        let from_start = if axis < 0 { axis + rank as i128 } else { axis };
        match usize::try_from(from_start).ok().filter(|&a| a < rank) {
            Some(axis) => Ok(axis),
            None => Err(self.error(format!(
                "`{name}` of tl.{} is {axis}, but the tensor has {rank} dimension{}",
                args.builtin.name,
                if rank == 1 { "" } else { "s" }
            ))),
        }
    }

    /// A list of constant integers given as a tuple or as one integer.
    pub(crate) fn ints(&mut self, value: &Value, what: &str) -> Eval<Vec<i32>> {
        let single = std::slice::from_ref(value);
        let items: &[Value] = match value {
            Value::Tuple(t) => &t.items,
            _ => single,
        };
        items
            .iter()
            .map(|item| match item {
                Value::Const(HostValue::Int(i)) => i32::try_from(*i)
                    .map_err(|_| self.error(format!("{i} in {what} does not fit in 32 bits"))),
                Value::Tensor(_) => Err(self.needs_constexpr(item, &format!("an element of {what}"))),
                other => Err(self.error(format!("{what} needs constant integers, not {other}"))),
            })
            .collect()
    }

    pub(crate) fn bad_argument(&self, args: &Args, name: &str, value: &Value, wanted: &str) -> super::Error {
        self.error(format!("`{name}` of tl.{} must be {wanted}, not {value}", args.builtin.name))
            .note(format!("the signature is tl.{}", args.builtin.signature()))
            .into()
    }

    /// One of several constant strings.
    pub(crate) fn choice<T: Copy>(&mut self, args: &Args, name: &str, choices: &[(&str, T)]) -> Eval<T> {
        let text = self.str_arg(args, name)?;
        match choices.iter().find(|(key, _)| *key == text) {
            Some((_, value)) => Ok(*value),
            None => {
                let known: Vec<String> = choices.iter().map(|(key, _)| format!("\"{key}\"")).collect();
                Err(self.error(format!(
                    "`{name}` of tl.{} is \"{text}\"; possible are {}",
                    args.builtin.name,
                    known.join(", ")
                )))
            }
        }
    }
}
