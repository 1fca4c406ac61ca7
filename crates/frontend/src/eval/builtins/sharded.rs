//! Sharded tensors as arguments: loads and stores of this member's part, and elementwise functions of parts that are distributed alike. What they are
//! is in `tle/_sharded.py`, in the language itself, and how they may be distributed in `tle/_sharding.py`, which the host runs.

use std::sync::Arc;

use super::super::call::{Args, CallArgs};
use super::super::{Eval, Evaluator};
use super::function;
use crate::host::HostValue;
use crate::library::PACKAGE;
use crate::value::{Aggregate, Value};

/// Functions that work element by element, and so on parts as on the whole; with whether f(a) + f(b) is f(a + b).
const ELEMENTWISE: &[(&str, bool)] = &[
    ("abs", false),
    ("ceil", false),
    ("clamp", false),
    ("cos", false),
    ("erf", false),
    ("exp", false),
    ("exp2", false),
    ("floor", false),
    ("fma", false),
    ("log", false),
    ("log2", false),
    ("maximum", false),
    ("minimum", false),
    ("rsqrt", false),
    ("sin", false),
    ("sqrt", false),
    ("where", false),
];

fn sharded(value: &Value) -> Option<&Arc<Aggregate>> {
    match value {
        Value::Aggregate(a) if &*a.class.name == "ShardedTensor" && a.class.module.starts_with(PACKAGE) => {
            Some(a)
        }
        _ => None,
    }
}

/// Whether an argument is a sharded tensor, and the function none of those that know of it.
pub(super) fn takes_sharded(args: &Args) -> bool {
    const KNOWN: &[&str] = &["remote", "isinstance", "to_tensor"];
    args.values.iter().any(|v| sharded(v).is_some()) && !KNOWN.contains(&&*args.builtin.name)
}

impl Evaluator<'_> {
    /// `tle.sharding`: the host makes the specification.
    pub(super) fn sharding(&mut self, args: &Args) -> Eval<Value> {
        if matches!(args.get("mesh"), Value::Tensor(_) | Value::Aggregate(_)) {
            return Err(self
                .not_supported_yet("tle.sharding(tensor, splits, partials)")
                .note("tle.make_sharded_tensor(handle, tle.sharding(mesh, split, partial)) says the same")
                .into());
        }
        let mut given = Vec::with_capacity(3);
        for name in ["mesh", "split", "partial"] {
            match args.get(name).to_host() {
                Some(value) => given.push(value),
                None => {
                    return Err(self.needs_constexpr(args.get(name), &format!("`{name}` of tle.sharding")));
                }
            }
        }
        let made = self.host.library("tle._sharding.ShardingSpec", &given).map_err(|e| self.host_error(e))?;
        Ok(Value::from_host(made))
    }

    /// A function of the language with sharded tensors among its arguments.
    pub(super) fn call_sharded(&mut self, args: &Args) -> Eval<Value> {
        let name = &*args.builtin.name;
        match name {
            "load" => {
                let first = args.builtin.params[0].0.clone();
                self.refuse_others(args, &[&first])?;
                self.call_of_sharded("_value", vec![args.values[0].clone()])
            }
            "store" => {
                self.refuse_others(args, &["pointer", "value"])?;
                self.call_of_sharded("_store", vec![args.get("pointer").clone(), args.get("value").clone()])
            }
            _ if name.starts_with("atomic_") && args.values[1..].iter().all(|v| sharded(v).is_none()) => {
                let pointers = self.call_of_sharded("_pointers", vec![args.values[0].clone()])?;
                self.with_values(args, [vec![pointers], args.values[1..].to_vec()].concat())
            }
            _ => match ELEMENTWISE.iter().find(|(known, _)| *known == name) {
                Some((_, linear)) => self.elementwise_of_parts(args, *linear),
                None => Err(self
                    .not_supported_yet(&format!("{} of a sharded tensor", args.builtin.shown()))
                    .note("tl.load(x) is this member's part, and tle.make_sharded_tensor(part, spec) a sharded tensor of it")
                    .into()),
            },
        }
    }

    fn elementwise_of_parts(&mut self, args: &Args, linear: bool) -> Eval<Value> {
        let name = Value::Const(HostValue::str(&args.builtin.name));
        let mut first: Option<(Value, Value)> = None;
        let mut values = Vec::with_capacity(args.values.len());
        for value in &args.values {
            let Some(tensor) = sharded(value) else {
                values.push(value.clone());
                continue;
            };
            let spec = self.field(tensor, "spec")?;
            let shape = self.field(tensor, "shape")?;
            match &first {
                None => {
                    self.call_method(
                        &spec,
                        "mapped",
                        vec![name.clone(), Value::from_host(HostValue::Bool(linear))],
                    )?;
                    first = Some((spec, shape));
                }
                Some((known, of)) => {
                    let with = vec![spec, of.clone(), shape, name.clone()];
                    self.call_method(&known.clone(), "joined", with)?;
                }
            }
            values.push(self.call_of_sharded("_value", vec![value.clone()])?);
        }
        // What else is a block has no part for each member.
        if let Some(block) = args.values.iter().find(|v| v.as_tensor().is_some_and(|t| t.is_block())) {
            return Err(self.error(format!(
                "{} of a sharded tensor and {block}, which is not: tle.make_sharded_tensor says how it is distributed",
                args.builtin.shown()
            )));
        }
        let value = self.with_values(args, values)?;
        let Some((spec, shape)) = first else { return Ok(value) };
        self.call_of_sharded("ShardedTensor", vec![value, spec, shape])
    }

    fn with_values(&mut self, args: &Args, values: Vec<Value>) -> Eval<Value> {
        let args = Args {
            builtin: args.builtin.clone(),
            values,
            rest: args.rest.clone(),
            named: args.named.clone(),
        };
        match function(&args.builtin) {
            Some(function) => function(self, &args),
            None => Err(self.not_supported_yet(&args.builtin.shown())),
        }
    }

    fn field(&mut self, tensor: &Arc<Aggregate>, name: &str) -> Eval<Value> {
        match self.aggregate_attribute(tensor, name)? {
            Some(value) => Ok(value),
            None => Err(self.error(format!("a sharded tensor has no `{name}`"))),
        }
    }

    fn call_method(&mut self, object: &Value, name: &str, positional: Vec<Value>) -> Eval<Value> {
        let Value::Const(HostValue::Object(of)) = object else {
            return Err(self.error(format!("{object} is no sharding")));
        };
        match self.host.attribute(of, name).map_err(|e| self.host_error(e))? {
            Some(method) => self.call(Value::from_host(method), CallArgs { positional, keywords: vec![] }),
            None => Err(self.error(format!("{object} has no `{name}`"))),
        }
    }

    /// Calls a function of `tle/_sharded.py`.
    pub(super) fn call_of_sharded(&mut self, name: &str, positional: Vec<Value>) -> Eval<Value> {
        let callee = Value::Const(HostValue::Library(format!("tle._sharded.{name}").into()));
        self.call(callee, CallArgs { positional, keywords: vec![] })
    }

    /// Another member's part of a sharded tensor; `None` where it is something else.
    pub(super) fn remote_part(&mut self, of: &Value, ranks: i128, rank: &Value) -> Eval<Option<Value>> {
        match sharded(of) {
            Some(_) => {
                self.call_of_sharded("_remote", vec![Value::int(ranks), of.clone(), rank.clone()]).map(Some)
            }
            None => Ok(None),
        }
    }

    /// Whether a value is a sharded tensor.
    pub(super) fn is_sharded(&self, value: &Value) -> bool {
        sharded(value).is_some()
    }
}
