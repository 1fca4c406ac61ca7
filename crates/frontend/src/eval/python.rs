//! Python's own builtins, as far as kernels may call them.

use ruff_python_ast::{CmpOp, Operator};

use super::call::CallArgs;
use super::{Error, Eval, Evaluator};
use crate::dtype::{DType, Scalar};
use crate::fold::{self, Num};
use crate::host::{FunctionKind, HostValue};
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
        let a = &*args.positional;
        match name {
            "range" => self.range_value(super::call::RANGE, args),
            "len" => match self.exactly::<1>(name, a)? {
                [Value::Tuple(t)] => Ok(Value::int(t.items.len() as i128)),
                [Value::Const(HostValue::Str(s))] => Ok(Value::int(s.chars().count() as i128)),
                [Value::Const(HostValue::Bytes(b))] => Ok(Value::int(b.len() as i128)),
                [Value::Tensor(t)] if t.is_block() => Ok(Value::int(t.shape[0])),
                [other] => match self.special_method(other, "__len__", CallArgs::default())? {
                    Some(length) => Ok(length),
                    None => Err(self.error(format!("{other} has no length"))),
                },
            },
            "min" | "max" => self.extremum(name, a),
            "abs" => match self.exactly::<1>(name, a)? {
                [Value::Const(c)] => match fold::number(c) {
                    Some(Num::Int(i)) => Ok(Value::int(i.saturating_abs())),
                    Some(Num::Float(f)) => Ok(Value::Const(HostValue::Float(f.abs()))),
                    None => Err(self.error(format!("{c} has no absolute value"))),
                },
                [_] => self.call_library("abs", a.to_vec()),
            },
            "float" | "int" | "bool" | "str" | "repr" | "round" => self.conversion(name, a),
            "tuple" | "list" | "reversed" | "zip" | "enumerate" => self.tuple_function(name, a),
            "sum" | "all" | "any" => self.tuple_reduction(name, a),
            "pow" => {
                let [x, y] = self.exactly::<2>(name, a)?;
                self.binary(Operator::Pow, x.clone(), y.clone())
            }
            "divmod" => {
                let [x, y] = self.exactly::<2>(name, a)?;
                let q = self.binary(Operator::FloorDiv, x.clone(), y.clone())?;
                let r = self.binary(Operator::Mod, x.clone(), y.clone())?;
                Ok(Value::tuple(vec![q, r]))
            }
            "print" => self.call_library("device_print", args.positional),
            "isinstance" => {
                let [value, class] = self.exactly::<2>(name, a)?;
                let classes = match class {
                    Value::Tuple(t) => &t.items[..],
                    one => std::slice::from_ref(one),
                };
                let mut found = false;
                for class in classes {
                    found |= self.is_instance(value, class)?;
                }
                Ok(Value::bool(found))
            }
            "getattr" | "hasattr" => self.attribute_function(name, a),
            "type" => {
                self.exactly::<1>(name, a)?;
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

    /// The arguments of a function that takes `N`.
    fn exactly<'a, const N: usize>(&self, name: &str, args: &'a [Value]) -> Eval<&'a [Value; N]> {
        args.try_into().map_err(|_| self.wrong_count(name, args))
    }

    fn wrong_count(&self, name: &str, args: &[Value]) -> Error {
        self.error(format!("`{name}` is given {} arguments", args.len()))
    }

    /// `min` and `max`.
    fn extremum(&mut self, name: &str, a: &[Value]) -> Eval<Value> {
        let items: Vec<Value> = match a {
            [Value::Tuple(t)] => t.items.clone(),
            [] => return Err(self.error(format!("`{name}` needs values"))),
            _ => a.to_vec(),
        };
        let mut items = items.into_iter();
        let Some(mut best) = items.next() else {
            return Err(self.error(format!("`{name}` of an empty tuple")));
        };
        let (op, function) = if name == "min" { (CmpOp::Lt, "minimum") } else { (CmpOp::Gt, "maximum") };
        for item in items {
            best = match (best.to_host(), item.to_host()) {
                (Some(x), Some(y)) => {
                    if has_no_order(&x, &y) {
                        return Err(self.error(format!("`{name}` of {x} and {y} depends on their order")));
                    }
                    let take = fold::compare(op, &y, &x).map_err(|m| self.error(m))?;
                    if take { item } else { best }
                }
                _ => self.call_library(function, vec![best, item])?,
            };
        }
        Ok(best)
    }

    /// `float`, `int` and the like: of constants alone.
    fn conversion(&mut self, name: &str, a: &[Value]) -> Eval<Value> {
        let [value, ..] = a else { return Err(self.wrong_count(name, a)) };
        if a.len() > if name == "round" { 2 } else { 1 } {
            return Err(self.wrong_count(name, a));
        }
        if let (Value::Tensor(t), "float" | "int" | "bool") = (value, name) {
            let to = match name {
                "float" => Scalar::Fp32,
                "int" => Scalar::Int32,
                _ => Scalar::Int1,
            };
            return Err(self
                .error(format!("`{name}` needs a constant, but this is a run-time value of type {}", t.ty()))
                .note(format!("convert it with .to(tl.{})", to.name().replace("fp", "float")))
                .into());
        }
        let Some(constant) = value.to_host() else {
            return Err(self.needs_constexpr(value, &format!("the argument of `{name}`")));
        };
        self.convert(name, &constant).map(Value::Const)
    }

    /// Functions from tuples to tuples.
    fn tuple_function(&mut self, name: &str, a: &[Value]) -> Eval<Value> {
        match (name, a) {
            ("tuple" | "list", []) => Ok(Value::tuple(vec![])),
            ("tuple" | "list", [Value::Tuple(t)]) => Ok(Value::tuple(t.items.clone())),
            ("reversed", [Value::Tuple(t)]) => Ok(Value::tuple(t.items.iter().rev().cloned().collect())),
            ("enumerate", [Value::Tuple(t)]) => {
                let pair =
                    |(i, item): (usize, &Value)| Value::tuple(vec![Value::int(i as i128), item.clone()]);
                Ok(Value::tuple(t.items.iter().enumerate().map(pair).collect()))
            }
            ("zip", values) => {
                let mut columns = Vec::new();
                for value in values {
                    match value {
                        Value::Tuple(t) => columns.push(&t.items),
                        other => return Err(self.error(format!("`zip` takes tuples, not {other}"))),
                    }
                }
                let rows = columns.iter().map(|c| c.len()).min().unwrap_or(0);
                let row = |i: usize| Value::tuple(columns.iter().map(|c| c[i].clone()).collect());
                Ok(Value::tuple((0..rows).map(row).collect()))
            }
            _ => Err(self.error(format!("`{name}` takes a tuple"))),
        }
    }

    /// `sum`, `all` and `any` of a tuple.
    fn tuple_reduction(&mut self, name: &str, a: &[Value]) -> Eval<Value> {
        let [Value::Tuple(t)] = a else {
            return Err(self.error(format!("Python's `{name}` takes a tuple; for a tensor write tl.{name}")));
        };
        if name == "sum" {
            let mut total = Value::int(0);
            for item in &t.items {
                total = self.binary(Operator::Add, total, item.clone())?;
            }
            return Ok(total);
        }
        let mut truths = Vec::new();
        for item in &t.items {
            match item {
                Value::Const(c) => truths.push(c.truth().unwrap_or(true)),
                other => {
                    return Err(self.needs_constexpr(other, &format!("an element given to `{name}`")));
                }
            }
        }
        let mut truths = truths.into_iter();
        Ok(Value::bool(if name == "all" { truths.all(|t| t) } else { truths.any(|t| t) }))
    }

    /// `getattr` and `hasattr`.
    fn attribute_function(&mut self, name: &str, a: &[Value]) -> Eval<Value> {
        let (object, attr, default) = match (name, a) {
            (_, [object, attr]) => (object, attr, None),
            ("getattr", [object, attr, default]) => (object, attr, Some(default)),
            _ => return Err(self.wrong_count(name, a)),
        };
        let Value::Const(HostValue::Str(attr)) = attr else {
            return Err(self.error("the name of an attribute must be a constant string"));
        };
        let found = match object {
            Value::Const(HostValue::Object(object)) => {
                let found = self.host.attribute(object, attr).map_err(|e| self.host_error(e))?;
                found.map(Value::from_host)
            }
            value => self.attribute(value, attr)?,
        };
        match (name, found, default) {
            ("hasattr", found, _) => Ok(Value::bool(found.is_some())),
            (_, Some(value), _) => Ok(value),
            (_, None, Some(default)) => Ok(default.clone()),
            _ => Err(self.error(format!("{object} has no attribute `{attr}`"))),
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

    pub(super) fn is_instance(&mut self, value: &Value, class: &Value) -> Eval<bool> {
        if let Some(class) = super::aggregate::class_of(class) {
            return Ok(matches!(value, Value::Aggregate(a) if a.class == class));
        }
        let name = match class {
            Value::Const(HostValue::None) => return Ok(value.is_none()),
            Value::Const(HostValue::Python(name)) => name.clone(),
            Value::Const(HostValue::Library(path)) => super::aggregate::library_class(path).into(),
            Value::Const(HostValue::Object(object)) => object.name.clone(),
            other => return Err(self.error(format!("{other} is no class"))),
        };
        Ok(match &*name {
            "tensor" => matches!(value, Value::Tensor(_) | Value::Block(_)),
            "tensor_descriptor" | "tensor_descriptor_base" => matches!(value, Value::Descriptor(_)),
            "base_value" => !matches!(value, Value::Const(_)),
            "base_type" => matches!(value, Value::Const(HostValue::DType(_))),
            "buffered_tensor" => matches!(value, Value::Buffer(_)),
            "barrier" => matches!(value, Value::Barriers(_)),
            "pipe_value" | "pipe_writer" | "pipe_reader" | "pipe_slot" => {
                matches!(value, Value::Pipe(part) if part.class() == &*name)
            }
            "pipe_wait_result" => {
                matches!(value, Value::Tuple(t) if t.class.as_ref().is_some_and(|(class, _)| **class == *name))
            }
            // Triton hands the values of constants to Python's builtins, and to functions that run at compile time; what an
            // object's plain methods are given is wrapped.
            "constexpr" => {
                self.frame().function.kind == FunctionKind::Plain && matches!(value, Value::Const(_))
            }
            "tuple" | "list" => matches!(value, Value::Tuple(_)),
            "dtype" => matches!(value, Value::Const(HostValue::DType(_))),
            "pointer_type" => matches!(value, Value::Const(HostValue::DType(DType::Pointer(_)))),
            "block_type" => matches!(value, Value::Const(HostValue::DType(DType::Block(_)))),
            "bool" => matches!(value, Value::Const(HostValue::Bool(_))),
            "int" => matches!(value, Value::Const(HostValue::Int(_) | HostValue::Bool(_))),
            "float" => matches!(value, Value::Const(HostValue::Float(_))),
            "str" => matches!(value, Value::Const(HostValue::Str(_))),
            "bytes" => matches!(value, Value::Const(HostValue::Bytes(_))),
            other => match value {
                Value::Const(HostValue::Object(object))
                    if let Value::Const(HostValue::Object(class)) = class =>
                {
                    self.host.is_instance(object, class).map_err(|e| self.host_error(e))?
                }
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

/// Whether Python's `min` and `max` of two constants depend on which comes first: one is no number, or both are zeros of different
/// sign.
fn has_no_order(x: &HostValue, y: &HostValue) -> bool {
    let float = |v: &HostValue| match v {
        HostValue::Float(v) => Some(*v),
        HostValue::Int(v) => Some(*v as f64),
        _ => None,
    };
    let (Some(x), Some(y)) = (float(x), float(y)) else { return false };
    x.is_nan() || y.is_nan() || (x == 0.0 && y == 0.0 && x.is_sign_negative() != y.is_sign_negative())
}
