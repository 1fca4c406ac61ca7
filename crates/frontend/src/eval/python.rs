//! Python's own builtins, as far as kernels may call them.

use ruff_python_ast::CmpOp;

use super::call::CallArgs;
use super::{Eval, Evaluator};
use crate::dtype::Scalar;
use crate::fold::{self, Num};
use crate::host::HostValue;
use crate::value::Value;

/// The builtins of Python that mean something in a kernel.
pub(crate) const BUILTINS: &[&str] = &[
    "abs",
    "all",
    "any",
    "bool",
    "divmod",
    "enumerate",
    "float",
    "getattr",
    "hasattr",
    "int",
    "isinstance",
    "len",
    "list",
    "max",
    "min",
    "pow",
    "print",
    "range",
    "repr",
    "reversed",
    "round",
    "str",
    "sum",
    "tuple",
    "type",
    "zip",
];

/// Whether a name is one of [`BUILTINS`].
pub(crate) fn is_builtin(name: &str) -> bool {
    BUILTINS.contains(&name)
}

impl Evaluator<'_> {
    pub fn call_python(&mut self, name: &str, args: CallArgs) -> Eval<Value> {
        let a = &args.positional;
        let count = |e: &Self, expected: &[usize]| {
            if expected.contains(&a.len()) {
                Ok(())
            } else {
                Err(e.error(format!("`{name}` is given {} arguments", a.len())))
            }
        };
        match name {
            "range" => self.range_value(super::call::RANGE, args),
            "len" => {
                count(self, &[1])?;
                match &a[0] {
                    Value::Tuple(t) => Ok(Value::int(t.items.len() as i128)),
                    Value::Const(HostValue::Str(s)) => Ok(Value::int(s.chars().count() as i128)),
                    Value::Tensor(t) if t.is_block() => Ok(Value::int(t.shape[0])),
                    other => Err(self.error(format!("{other} has no length"))),
                }
            }
            "min" | "max" => {
                let items: Vec<Value> = match a.as_slice() {
                    [Value::Tuple(t)] => t.items.clone(),
                    [] => return Err(self.error(format!("`{name}` needs values"))),
                    _ => a.clone(),
                };
                let mut items = items.into_iter();
                let Some(mut best) = items.next() else {
                    return Err(self.error(format!("`{name}` of an empty tuple")));
                };
                for item in items {
                    best = match (best.to_host(), item.to_host()) {
                        (Some(x), Some(y)) => {
                            let op = if name == "min" { CmpOp::Lt } else { CmpOp::Gt };
                            let take = fold::compare(op, &y, &x).map_err(|m| self.error(m))?;
                            if take { item } else { best }
                        }
                        _ => {
                            let name = if name == "min" { "minimum" } else { "maximum" };
                            self.call_library(name, vec![best, item])?
                        }
                    };
                }
                Ok(best)
            }
            "abs" => {
                count(self, &[1])?;
                match &a[0] {
                    Value::Const(c) => match fold::number(c) {
                        Some(Num::Int(i)) => Ok(Value::int(i.saturating_abs())),
                        Some(Num::Float(f)) => Ok(Value::Const(HostValue::Float(f.abs()))),
                        None => Err(self.error(format!("{c} has no absolute value"))),
                    },
                    _ => self.call_library("abs", a.clone()),
                }
            }
            "float" | "int" | "bool" | "str" | "repr" | "round" => {
                count(self, if name == "round" { &[1, 2] } else { &[1] })?;
                if let (Value::Tensor(t), "float" | "int" | "bool") = (&a[0], name) {
                    let to = match name {
                        "float" => Scalar::Fp32,
                        "int" => Scalar::Int32,
                        _ => Scalar::Int1,
                    };
                    return Err(self
                        .error(format!(
                            "`{name}` needs a constant, but this is a run-time value of type {}",
                            t.ty()
                        ))
                        .note(format!("convert it with .to(tl.{})", to.name().replace("fp", "float")))
                        .into());
                }
                let Some(value) = a[0].to_host() else {
                    return Err(self.needs_constexpr(&a[0], &format!("the argument of `{name}`")));
                };
                self.convert(name, &value).map(Value::Const)
            }
            "tuple" | "list" => match a.as_slice() {
                [] => Ok(Value::tuple(vec![])),
                [Value::Tuple(t)] => Ok(Value::tuple(t.items.clone())),
                _ => Err(self.error(format!("`{name}` takes a tuple"))),
            },
            "reversed" => match a.as_slice() {
                [Value::Tuple(t)] => Ok(Value::tuple(t.items.iter().rev().cloned().collect())),
                _ => Err(self.error("`reversed` takes a tuple")),
            },
            "zip" => {
                let mut columns = Vec::new();
                for value in a {
                    match value {
                        Value::Tuple(t) => columns.push(t.clone()),
                        other => return Err(self.error(format!("`zip` takes tuples, not {other}"))),
                    }
                }
                let n = columns.iter().map(|c| c.items.len()).min().unwrap_or(0);
                Ok(Value::tuple(
                    (0..n)
                        .map(|i| Value::tuple(columns.iter().map(|c| c.items[i].clone()).collect()))
                        .collect(),
                ))
            }
            "enumerate" => match a.as_slice() {
                [Value::Tuple(t)] => Ok(Value::tuple(
                    t.items
                        .iter()
                        .enumerate()
                        .map(|(i, item)| Value::tuple(vec![Value::int(i as i128), item.clone()]))
                        .collect(),
                )),
                _ => Err(self.error("`enumerate` takes a tuple")),
            },
            "sum" | "all" | "any" => {
                let [Value::Tuple(t)] = a.as_slice() else {
                    return Err(
                        self.error(format!("Python's `{name}` takes a tuple; for a tensor write tl.{name}"))
                    );
                };
                let items = t.items.clone();
                if name == "sum" {
                    let mut total = Value::int(0);
                    for item in items {
                        total = self.binary(ruff_python_ast::Operator::Add, total, item)?;
                    }
                    return Ok(total);
                }
                let mut truths = Vec::new();
                for item in &items {
                    match item {
                        Value::Const(c) => truths.push(c.truth().unwrap_or(true)),
                        other => {
                            return Err(self.needs_constexpr(other, &format!("an element given to `{name}`")));
                        }
                    }
                }
                Ok(Value::bool(if name == "all" {
                    truths.iter().all(|t| *t)
                } else {
                    truths.iter().any(|t| *t)
                }))
            }
            "pow" | "divmod" => {
                count(self, &[2])?;
                let (x, y) = (a[0].clone(), a[1].clone());
                use ruff_python_ast::Operator;
                if name == "pow" {
                    return self.binary(Operator::Pow, x, y);
                }
                let q = self.binary(Operator::FloorDiv, x.clone(), y.clone())?;
                let r = self.binary(Operator::Mod, x, y)?;
                Ok(Value::tuple(vec![q, r]))
            }
            "print" => self.call_library("device_print", args.positional),
            "isinstance" => {
                count(self, &[2])?;
                let classes = match &a[1] {
                    Value::Tuple(t) => t.items.clone(),
                    one => vec![one.clone()],
                };
                let mut found = false;
                for class in &classes {
                    found |= self.is_instance(&a[0], class)?;
                }
                Ok(Value::bool(found))
            }
            "getattr" | "hasattr" => {
                count(self, if name == "getattr" { &[2, 3] } else { &[2] })?;
                let Value::Const(HostValue::Str(attr)) = &a[1] else {
                    return Err(self.error("the name of an attribute must be a constant string"));
                };
                let found = match &a[0] {
                    Value::Const(HostValue::Object(object)) => self
                        .host
                        .attribute(object, attr)
                        .map_err(|e| self.host_error(e))?
                        .map(Value::from_host),
                    value => self.attribute(value, attr)?,
                };
                match (name, found, a.get(2)) {
                    ("hasattr", found, _) => Ok(Value::bool(found.is_some())),
                    (_, Some(value), _) => Ok(value),
                    (_, None, Some(default)) => Ok(default.clone()),
                    _ => Err(self.error(format!("{} has no attribute `{attr}`", a[0]))),
                }
            }
            "type" => {
                count(self, &[1])?;
                Err(self
                    .error("`type` is not supported in a kernel")
                    .note("x.dtype and x.type are the types of run-time values; isinstance works")
                    .into())
            }
            other => Err(self
                .error(format!("Python's `{other}` cannot be called in a kernel"))
                .note("compute the value outside and pass it in")
                .into()),
        }
    }

    fn convert(&mut self, name: &str, value: &HostValue) -> Eval<HostValue> {
        let number = fold::number(value);
        let wrong = |e: &Self| e.error(format!("`{name}` cannot convert {value}"));
        Ok(match (name, value, number) {
            ("str" | "repr", HostValue::Str(_), _) if name == "str" => value.clone(),
            ("str" | "repr", _, _) => HostValue::Str(value.to_string().into()),
            ("bool", _, _) => HostValue::Bool(value.truth().unwrap_or(true)),
            ("float", _, Some(n)) => HostValue::Float(n.to_f64()),
            ("float", HostValue::Str(s), _) => {
                let text = s.trim().to_ascii_lowercase();
                let text = text.strip_prefix('+').unwrap_or(&text);
                match text.parse::<f64>() {
                    Ok(f) => HostValue::Float(f),
                    Err(_) => return Err(wrong(self)),
                }
            }
            ("int", _, Some(Num::Int(i))) => HostValue::Int(i),
            ("int", _, Some(Num::Float(f))) if f.is_finite() => HostValue::Int(f.trunc() as i128),
            ("int", HostValue::Str(s), _) => match s.trim().parse() {
                Ok(i) => HostValue::Int(i),
                Err(_) => return Err(wrong(self)),
            },
            ("round", _, Some(Num::Int(i))) => HostValue::Int(i),
            ("round", _, Some(Num::Float(f))) if f.is_finite() => HostValue::Int(f.round_ties_even() as i128),
            _ => return Err(wrong(self)),
        })
    }

    fn is_instance(&mut self, value: &Value, class: &Value) -> Eval<bool> {
        let name = match class {
            Value::Const(HostValue::Python(name)) => name.clone(),
            Value::Const(HostValue::Library(path)) => path.rsplit('.').next().unwrap_or(path).into(),
            Value::Const(HostValue::Object(object)) => object.name.clone(),
            other => return Err(self.error(format!("{other} is no class"))),
        };
        Ok(match &*name {
            "tensor" => matches!(value, Value::Tensor(_)),
            "tensor_descriptor" => matches!(value, Value::Descriptor(_)),
            "constexpr" => matches!(value, Value::Const(_)),
            "tuple" | "list" => matches!(value, Value::Tuple(_)),
            "dtype" => matches!(value, Value::Const(HostValue::DType(_))),
            "bool" => matches!(value, Value::Const(HostValue::Bool(_))),
            "int" => matches!(value, Value::Const(HostValue::Int(_) | HostValue::Bool(_))),
            "float" => matches!(value, Value::Const(HostValue::Float(_))),
            "str" => matches!(value, Value::Const(HostValue::Str(_))),
            other => match value {
                Value::Tuple(t) => t.class.as_ref().is_some_and(|(class, _)| &**class == other),
                _ => false,
            },
        })
    }

    /// Calls a function of `tl` by name with positional arguments.
    pub fn call_library(&mut self, name: &str, positional: Vec<Value>) -> Eval<Value> {
        let callee = Value::Const(HostValue::Library(format!("language.{name}").into()));
        self.call(callee, CallArgs { positional, keywords: vec![] })
    }
}
