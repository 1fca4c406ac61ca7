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
    pub fn call_python(&mut self, name: &str, mut args: CallArgs) -> Eval<Value> {
        // These are functions of the language.
        match name {
            "range" => return self.range_value(super::call::RANGE, args),
            "print" => return self.call_named("device_print", args),
            "min" | "max" => return self.extremum(name, args),
            _ => {}
        }
        self.place_named(name, &mut args)?;
        let a = &*args.positional;
        match name {
            "len" => match self.exactly::<1>(name, a)? {
                [Value::Tuple(t)] => Ok(Value::int(t.items.len() as i128)),
                [Value::Const(HostValue::Str(s))] => Ok(Value::int(s.chars().count() as i128)),
                [Value::Const(HostValue::Bytes(b))] => Ok(Value::int(b.len() as i128)),
                [Value::Tensor(t)] if t.is_block() => Ok(Value::int(t.shape[0])),
                [other] => match self.method_of(other, "__len__", Vec::new())? {
                    Some(length) => Ok(length),
                    None => Err(self.error(format!("{other} has no length"))),
                },
            },
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
            "pow" => match a {
                [x, y] => self.binary(Operator::Pow, x.clone(), y.clone()),
                [Value::Const(x), Value::Const(y), Value::Const(modulus)] => self.power_modulo(x, y, modulus),
                [_, _, _] => Err(self.error("`pow` with a modulus needs constants")),
                _ => Err(self.wrong_count(name, a)),
            },
            "divmod" => {
                let [x, y] = self.exactly::<2>(name, a)?;
                let q = self.binary(Operator::FloorDiv, x.clone(), y.clone())?;
                let r = self.binary(Operator::Mod, x.clone(), y.clone())?;
                Ok(Value::tuple(vec![q, r]))
            }
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

    /// Puts what is given by name in its place among the arguments.
    fn place_named(&self, name: &str, args: &mut CallArgs) -> Eval<()> {
        let params: &[&str] = match name {
            "enumerate" => &["iterable", "start"],
            "int" => &["", "base"],
            "pow" => &["base", "exp", "mod"],
            "round" => &["number", "ndigits"],
            "sum" => &["", "start"],
            // Which is last, whatever stands before it.
            "zip" => &["strict"],
            _ => &[],
        };
        for (given, value) in std::mem::take(&mut args.keywords) {
            let place = params.iter().position(|param| *param == given.as_str());
            match place {
                Some(_) if name == "zip" => {
                    let Value::Const(HostValue::Bool(strict)) = value else {
                        return Err(self.error(format!("`strict` of `zip` is True or False, not {value}")));
                    };
                    if strict {
                        self.same_lengths(&args.positional)?;
                    }
                }
                Some(place) if place == args.positional.len() => args.positional.push(value),
                Some(place) if place < args.positional.len() => {
                    return Err(self.error(format!("`{name}` is given `{given}` twice")));
                }
                _ => return Err(self.no_named(name, &given)),
            }
        }
        Ok(())
    }

    /// A parameter that a builtin has not, or not in a kernel.
    fn no_named(&self, name: &str, given: &str) -> Error {
        self.error(format!("Python's `{name}` takes no argument named `{given}` here"))
    }

    /// What `zip(…, strict=True)` asks of its arguments.
    fn same_lengths(&self, values: &[Value]) -> Eval<()> {
        let mut lengths = values.iter().map(|value| match value {
            Value::Tuple(t) => t.items.len(),
            _ => 0,
        });
        let first = lengths.next();
        match lengths.find(|&n| Some(n) != first) {
            Some(n) => Err(self.error(format!(
                "`zip` with strict=True is given {} and {n} values",
                first.unwrap_or_default()
            ))),
            None => Ok(()),
        }
    }

    /// `pow(x, y, modulus)` of integers.
    fn power_modulo(&self, x: &HostValue, y: &HostValue, modulus: &HostValue) -> Eval<Value> {
        let (Some(Num::Int(x)), Some(Num::Int(y)), Some(Num::Int(m))) =
            (fold::number(x), fold::number(y), fold::number(modulus))
        else {
            return Err(self.error("`pow` with a modulus needs integers"));
        };
        if y < 0 || !(1..=i128::from(u64::MAX)).contains(&m) {
            return Err(self.error("`pow` needs an exponent from 0 on, and a modulus from 1 to 2**64 - 1"));
        }
        let m = m as u128;
        let (mut base, mut exponent, mut result) = (x.rem_euclid(m as i128) as u128, y, 1 % m);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result * base % m;
            }
            base = base * base % m;
            exponent >>= 1;
        }
        Ok(Value::int(result as i128))
    }

    /// The arguments of a function that takes `N`.
    fn exactly<'a, const N: usize>(&self, name: &str, args: &'a [Value]) -> Eval<&'a [Value; N]> {
        args.try_into().map_err(|_| self.wrong_count(name, args))
    }

    fn wrong_count(&self, name: &str, args: &[Value]) -> Error {
        self.error(format!("`{name}` is given {} arguments", args.len()))
    }

    /// `min` and `max`: Python's of constants, the language's of what is known at run time.
    fn extremum(&mut self, name: &str, args: CallArgs) -> Eval<Value> {
        let (op, function) = if name == "min" { (CmpOp::Lt, "minimum") } else { (CmpOp::Gt, "maximum") };
        let (mut default, mut nan) = (None, Vec::new());
        for (given, value) in args.keywords {
            match given.as_str() {
                "default" => default = Some(value),
                // Of the language's function.
                "propagate_nan" => nan.push((given, value)),
                other => return Err(self.no_named(name, other)),
            }
        }
        let items: Vec<Value> = match args.positional.as_slice() {
            [Value::Tuple(t)] => t.items.clone(),
            [] => return Err(self.error(format!("`{name}` needs values"))),
            _ if default.is_some() => {
                return Err(self.error(format!("`default` of `{name}` stands beside one tuple")));
            }
            values => values.to_vec(),
        };
        let mut items = items.into_iter();
        let Some(mut best) = items.next() else {
            return default.ok_or_else(|| self.error(format!("`{name}` of an empty tuple")));
        };
        for item in items {
            best = match (best.to_host(), item.to_host()) {
                (Some(x), Some(y)) if nan.is_empty() => {
                    if has_no_order(&x, &y) {
                        return Err(self.error(format!("`{name}` of {x} and {y} depends on their order")));
                    }
                    let take = fold::compare(op, &y, &x).map_err(|m| self.error(m))?;
                    if take { item } else { best }
                }
                _ => {
                    let args = CallArgs { positional: vec![best, item], keywords: nan.clone() };
                    self.call_named(function, args)?
                }
            };
        }
        Ok(best)
    }

    /// `float`, `int` and the like: of constants alone.
    fn conversion(&mut self, name: &str, a: &[Value]) -> Eval<Value> {
        let [value, ..] = a else { return Err(self.wrong_count(name, a)) };
        if a.len() > if matches!(name, "round" | "int") { 2 } else { 1 } {
            return Err(self.wrong_count(name, a));
        }
        let second = match a.get(1).map(Value::to_host) {
            None | Some(Some(HostValue::None)) => None,
            Some(Some(HostValue::Int(i))) => Some(i),
            Some(_) => {
                return Err(self.error(format!("the second argument of `{name}` is a constant integer")));
            }
        };
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
        let converted = match (name, second) {
            (_, None) => self.convert(name, &constant)?,
            ("round", Some(digits)) => {
                fold::round_to(&constant, digits).map_err(|message| self.error(message))?
            }
            (_, Some(base)) => match &constant {
                HostValue::Str(text) => match fold::parse_integer(text, base) {
                    Some(i) => HostValue::Int(i),
                    None => {
                        return Err(self.error(format!("`int` cannot convert {constant} with base {base}")));
                    }
                },
                _ => return Err(self.error("`int` with a base converts a string")),
            },
        };
        Ok(Value::Const(converted))
    }

    /// Functions from tuples to tuples.
    fn tuple_function(&mut self, name: &str, a: &[Value]) -> Eval<Value> {
        match (name, a) {
            ("tuple" | "list", []) => Ok(Value::tuple(vec![])),
            ("tuple" | "list", [Value::Tuple(t)]) => Ok(Value::tuple(t.items.clone())),
            ("reversed", [Value::Tuple(t)]) => Ok(Value::tuple(t.items.iter().rev().cloned().collect())),
            ("enumerate", [Value::Tuple(t), start @ ..]) if start.len() < 2 => {
                let start = match start {
                    [] => 0,
                    [Value::Const(HostValue::Int(start))] => *start,
                    [other, ..] => {
                        return Err(self.error(format!("`enumerate` starts at a constant, not at {other}")));
                    }
                };
                let numbers = (0i128..).map(|i| Value::int(start.saturating_add(i)));
                let pair = |(i, item): (Value, &Value)| Value::tuple(vec![i, item.clone()]);
                Ok(Value::tuple(numbers.zip(&t.items).map(pair).collect()))
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
        let (t, start) = match (name, a) {
            (_, [Value::Tuple(t)]) => (t, None),
            ("sum", [Value::Tuple(t), start]) => (t, Some(start.clone())),
            _ => {
                return Err(
                    self.error(format!("Python's `{name}` takes a tuple; for a tensor write tl.{name}"))
                );
            }
        };
        if name == "sum" {
            let mut total = start.unwrap_or(Value::int(0));
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
            ("int", _, Some(Num::Float(f))) if f.abs() < 1e38 => HostValue::Int(f.trunc() as i128),
            ("int", HostValue::Str(s), _) => match fold::parse_integer(s, 10) {
                Some(i) => HostValue::Int(i),
                None => return Err(wrong(self)),
            },
            ("round", _, Some(Num::Int(i))) => HostValue::Int(i),
            ("round", _, Some(Num::Float(f))) if f.abs() < 1e38 => {
                HostValue::Int(f.round_ties_even() as i128)
            }
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
        self.call_named(name, CallArgs { positional, keywords: vec![] })
    }

    /// Calls a function of `tl` by name.
    fn call_named(&mut self, name: &str, args: CallArgs) -> Eval<Value> {
        self.call(Value::Const(HostValue::Library(format!("language.{name}").into())), args)
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
