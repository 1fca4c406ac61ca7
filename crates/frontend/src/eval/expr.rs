//! Expressions: names, attributes, subscripts and operators.

use std::sync::Arc;

use ruff_python_ast::{
    BoolOp, CmpOp, Comprehension, ConversionFlag, Expr, ExprSubscript, FStringPart,
    InterpolatedStringElement, InterpolatedStringElements, Operator, UnaryOp,
};
use ruff_text_size::Ranged;
use tilewright_ir::diagnostic::Kind;

use super::builtins::{descriptor, layouts, local, pipe};
use super::call::CallArgs;
use super::loops::collect_target;
use super::{Captured, Error, Eval, Evaluator, Lost, dtypes};
use crate::dtype::DType;
use crate::fold;
use crate::host::{HostValue, Origin};
use crate::library::{self, Item, Library};
use crate::value::{Method, MethodTarget, Tensor, TupleValue, Value};

/// The class of meshes, which are objects of the host.
pub(super) const MESH: &str = "device_mesh";

impl Evaluator<'_> {
    pub fn expr(&mut self, expr: &Expr) -> Eval<Value> {
        // Kernels are compiled on threads with small stacks too.
        stacker::maybe_grow(256 << 10, 4 << 20, || self.expr_inner(expr))
    }

    fn expr_inner(&mut self, expr: &Expr) -> Eval<Value> {
        self.range = expr.range();
        self.step()?;
        match expr {
            Expr::Name(name) => self.name(name.id.as_str()),
            Expr::NumberLiteral(_)
            | Expr::BooleanLiteral(_)
            | Expr::NoneLiteral(_)
            | Expr::StringLiteral(_)
            | Expr::BytesLiteral(_) => {
                match fold::literal(expr) {
                    Some(value) => Ok(Value::Const(value)),
                    None => Err(self
                        .error("this number has no counterpart in a kernel (complex, or beyond 128 bits)")),
                }
            }
            Expr::Attribute(a) => {
                let value = self.expr(&a.value)?;
                self.range = a.range;
                self.attribute_of(&a.value, value, a.attr.as_str())
            }
            Expr::Call(call) => self.call_expr(call),
            Expr::BinOp(op) => {
                let left = self.expr(&op.left)?;
                let right = self.expr(&op.right)?;
                self.range = op.range;
                self.binary(op.op, left, right)
            }
            Expr::UnaryOp(op) => {
                let operand = self.expr(&op.operand)?;
                self.range = op.range;
                self.unary(op.op, operand)
            }
            Expr::Compare(c) => {
                let mut left = self.expr(&c.left)?;
                let mut result: Option<Value> = None;
                for (op, right) in c.ops.iter().zip(&c.comparators) {
                    let right = self.expr(right)?;
                    self.range = c.range;
                    let this = self.compare(*op, left, right.clone())?;
                    result = Some(match result {
                        None => this,
                        Some(Value::Const(HostValue::Bool(false))) => Value::bool(false),
                        Some(Value::Const(_)) if matches!(this, Value::Const(_)) => this,
                        Some(_) => {
                            return Err(self
                                .error("a chain of comparisons is not supported for run-time values")
                                .of(Kind::Unsupported)
                                .note("write (a < b) & (b < c)")
                                .into());
                        }
                    });
                    left = right;
                }
                Ok(result.unwrap_or(Value::NONE))
            }
            Expr::BoolOp(op) => self.bool_op(op),
            Expr::If(e) => self.ternary(&e.test, &e.body, &e.orelse, e.range),
            Expr::Tuple(t) => Ok(Value::tuple(self.elements(&t.elts)?)),
            Expr::List(t) => Ok(Value::tuple(self.elements(&t.elts)?)),
            Expr::Subscript(s) => self.subscript(s),
            Expr::Slice(s) => {
                let mut part = |e: &Option<Box<Expr>>| match e {
                    Some(e) => self.expr(e),
                    None => Ok(Value::NONE),
                };
                Ok(Value::Slice(Arc::new([part(&s.lower)?, part(&s.upper)?, part(&s.step)?])))
            }
            Expr::Named(n) => {
                let value = self.expr(&n.value)?;
                let value = self.assigned(value)?;
                self.assign(&n.target, value.clone())?;
                Ok(value)
            }
            Expr::FString(f) => self.f_string(f),
            Expr::ListComp(c) => self.comprehension(&c.elt, &c.generators),
            Expr::Generator(c) => self.comprehension(&c.elt, &c.generators),
            Expr::Starred(_) => Err(self.error("`*` is only possible inside a call, a tuple or a list")),
            Expr::Lambda(_) => Err(self.unsupported("`lambda`", "define a function decorated with @jit")),
            Expr::Dict(_) | Expr::DictComp(_) => {
                Err(self.unsupported("a dictionary", "use a tuple or a named tuple"))
            }
            Expr::Set(_) | Expr::SetComp(_) => Err(self.unsupported("a set", "use a tuple")),
            Expr::Await(_) | Expr::Yield(_) | Expr::YieldFrom(_) => {
                Err(self
                    .unsupported("a coroutine or generator", "kernels run to their end; return the value"))
            }
            Expr::EllipsisLiteral(_) => Err(self.unsupported("`...`", "write `:` for each dimension")),
            Expr::TString(_) => Err(self.unsupported("a template string", "use an f-string")),
            Expr::IpyEscapeCommand(_) => Err(self.unsupported("an IPython command", "remove it")),
        }
    }

    fn elements(&mut self, elts: &[Expr]) -> Eval<Vec<Value>> {
        let mut items = Vec::with_capacity(elts.len());
        for e in elts {
            if let Expr::Starred(s) = e {
                match self.expr(&s.value)? {
                    Value::Tuple(t) => items.extend(t.items.iter().cloned()),
                    other => return Err(self.error(format!("cannot unpack {other}"))),
                }
            } else {
                items.push(self.expr(e)?);
            }
        }
        Ok(items)
    }

    // ---- names ----------------------------------------------------------------------------------------------

    fn name(&mut self, name: &str) -> Eval<Value> {
        if let Some(value) = self.frame().scope.get(name) {
            return Ok(value.clone());
        }
        // It is a variable of the function on some path: what has its name outside is another one.
        if self.frame().lost.contains_key(name) {
            return Err(self.unknown_name(name));
        }
        let function = self.frame().function.clone();
        if let Some(module) = function.module.strip_prefix(library::PACKAGE) {
            return match Library::get().resolve(&format!("{module}.{name}")) {
                Some(Item::NotYet(path)) => Err(self.not_supported_yet(&path)),
                Some(Item::Const(value)) => Ok(Value::from_host(value)),
                Some(Item::Module(path) | Item::Class(path)) => Ok(Value::Const(HostValue::Library(path))),
                Some(_) => Ok(Value::Const(HostValue::Library(format!("{module}.{name}").into()))),
                None if super::python::is_builtin(name) => Ok(Value::Const(HostValue::Python(name.into()))),
                None => Err(self.error(format!("name `{name}` is not defined in the tl library"))),
            };
        }
        let Some(binding) = self.host.lookup(&function, name).map_err(|e| self.host_error(e))? else {
            return Err(self.unknown_name(name));
        };
        if let HostValue::Library(path) = &binding.value
            && let Some(Item::NotYet(path)) = Library::get().resolve(path)
        {
            return Err(self.not_supported_yet(&path));
        }
        if binding.origin == Origin::Builtin {
            return Ok(Value::from_host(binding.value));
        }
        if let HostValue::Object(object) = &binding.value
            && !binding.constexpr
            && !self.frame().constexpr
        {
            // A function that is named directly must say that it runs at compile time; one of a module may be called as it is.
            let named = crate::HostObject { callable: false, ..(**object).clone() };
            return Ok(Value::Const(HostValue::Object(Arc::new(named))));
        }
        let plain = matches!(
            binding.value,
            HostValue::None
                | HostValue::Bool(_)
                | HostValue::Int(_)
                | HostValue::Float(_)
                | HostValue::Str(_)
                | HostValue::Bytes(_)
                | HostValue::Tuple(_)
        );
        if plain
            && !binding.constexpr
            && !self.frame().in_default
            && !self.frame().constexpr
            && !self.options.allow_non_constexpr_globals
        {
            let what = if binding.origin == Origin::Closure {
                "a variable of the enclosing function"
            } else {
                "a plain global variable"
            };
            return Err(self
                .error(format!("`{name}` is {what}, and a kernel can only read constants from outside"))
                .note(format!(
                    "write `{name} = tl.constexpr({})`, or pass it as a tl.constexpr parameter",
                    binding.value
                ))
                .note("a plain global variable could change after the kernel was compiled")
                .into());
        }
        if plain || matches!(binding.value, HostValue::DType(_) | HostValue::NamedTuple(_)) {
            self.capture(&function, vec![name.into()], &binding.value);
        }
        Ok(Value::from_host(binding.value))
    }

    fn capture(&mut self, function: &Arc<crate::JitFunction>, path: Vec<Arc<str>>, value: &HostValue) {
        if !self.captured.iter().any(|c| c.path == path && c.function == *function) {
            self.captured.push(Captured { function: function.clone(), path, value: value.clone() });
        }
    }

    pub fn host_error(&self, error: crate::HostError) -> Error {
        let mut diagnostic = self.error(error.message);
        diagnostic.notes.extend(error.hint);
        diagnostic
    }

    fn unknown_name(&self, name: &str) -> Error {
        let frame = self.frame();
        let error = self.error(format!("name `{name}` is not defined"));
        match frame.lost.get(name) {
            Some(Lost::Because(why)) => {
                return error.note(format!("`{name}` does not exist here: {why}")).into();
            }
            Some(Lost::TwoTypes(which)) => {
                return self
                    .error(which.to_string())
                    .note("a variable must have one type and shape on all paths; convert with .to(dtype) or tl.broadcast_to")
                    .into();
            }
            None => {}
        }
        let names = self.host.names(&frame.function);
        let known = frame.scope.keys().map(|n| n.as_str()).chain(names.iter().map(String::as_str));
        match closest(name, known) {
            Some(other) => error.note(format!("did you mean `{other}`?")).into(),
            None => error,
        }
    }

    // ---- attributes -----------------------------------------------------------------------------------------

    fn attribute_of(&mut self, node: &Expr, value: Value, attr: &str) -> Eval<Value> {
        if let Value::Const(HostValue::Object(object)) = &value {
            let Some(found) = self.host.attribute(object, attr).map_err(|e| self.host_error(e))? else {
                return Err(
                    self.error(format!("{} `{}` has no attribute `{attr}`", object.kind, object.name))
                );
            };
            let constant = !matches!(
                found,
                HostValue::Library(_)
                    | HostValue::Python(_)
                    | HostValue::Jit(_)
                    | HostValue::Class(_)
                    | HostValue::Object(_)
            );
            if constant && let Some(mut path) = dotted(node) {
                path.push(attr.into());
                let function = self.frame().function.clone();
                self.capture(&function, path, &found);
            }
            return Ok(Value::from_host(found));
        }
        self.attribute(&value, attr)?.ok_or_else(|| self.no_attribute(&value, attr))
    }

    /// `value.attr`; none if there is no such attribute.
    pub fn attribute(&mut self, value: &Value, attr: &str) -> Eval<Option<Value>> {
        let method = |target| Value::Method(Arc::new(Method { receiver: value.clone(), target }));
        Ok(Some(match value {
            Value::Tensor(t) => match attr {
                "dtype" => Value::Const(HostValue::DType(t.dtype.clone())),
                "type" => Value::Const(HostValue::DType(t.ty())),
                "shape" => Value::shape(&t.shape),
                "numel" => Value::int(t.numel()),
                // What MLIR's bindings call the result of an operation.
                "res" | "result" if self.threads_of_function().is_some() => value.clone(),
                "T" => {
                    let t = t.clone();
                    return self.transpose(&t).map(|t| Some(Value::Tensor(t)));
                }
                _ if Library::get().member(attr).is_some() => method(MethodTarget::Member(attr.into())),
                _ => return Ok(None),
            },
            Value::Aggregate(a) => return self.aggregate_attribute(a, attr),
            Value::Const(HostValue::Class(class)) => {
                return Ok(super::aggregate::class_attribute(class, attr));
            }
            Value::Tuple(t) => {
                let field = t.class.as_ref().and_then(|(_, fields)| fields.iter().position(|f| &**f == attr));
                match field {
                    Some(i) => t.items[i].clone(),
                    None if attr == "value" || attr == "values" => value.clone(),
                    None if attr == "type" => return Ok(super::call::constexpr_type(value)),
                    None => return Ok(None),
                }
            }
            Value::Block(b) => match attr {
                "block_shape" => Value::shape(&b.block),
                "block_type" => Value::Const(HostValue::DType(b.block_type())),
                "type" | "dtype" => Value::Const(HostValue::DType(DType::pointer_to(b.block_type()))),
                "shape" => Value::tuple(b.shape.iter().cloned().map(Value::Tensor).collect()),
                "strides" => Value::tuple(b.strides.iter().cloned().map(Value::Tensor).collect()),
                "advance" | "store" => method(MethodTarget::Member(attr.into())),
                _ => return Ok(None),
            },
            Value::Descriptor(d) => match attr {
                _ if descriptor::methods().any(|m| m == attr) => {
                    method(MethodTarget::Descriptor(attr.into()))
                }
                "dtype" => Value::Const(HostValue::DType(d.element())),
                "block_shape" => Value::shape(&d.block()),
                "block_type" => Value::Const(HostValue::DType(d.block_type())),
                "shape" => Value::tuple(d.shape.iter().cloned().map(Value::Tensor).collect()),
                "strides" => Value::tuple(d.strides.iter().cloned().map(Value::Tensor).collect()),
                _ => return Ok(None),
            },
            Value::Buffer(b) => match attr {
                "dtype" => Value::Const(HostValue::DType(b.element())),
                "shape" => Value::shape(&b.shape),
                _ => {
                    let path: Arc<str> = format!("{}.{attr}", local::CLASS).into();
                    match Library::get().resolve(&path) {
                        Some(_) => method(MethodTarget::OfClass(path)),
                        None => return Ok(None),
                    }
                }
            },
            Value::Pipe(part) => {
                let path: Arc<str> = format!("{}.{}.{attr}", pipe::MODULE, part.class()).into();
                match Library::get().resolve(&path) {
                    Some(_) => method(MethodTarget::OfClass(path)),
                    None => return self.pipe_attribute(part, attr),
                }
            }
            Value::Const(HostValue::Library(path)) => {
                let found = library_attribute(path, attr);
                if let Some(Value::Const(HostValue::Library(path))) = &found
                    && let Some(Item::NotYet(path)) = Library::get().resolve(path)
                {
                    return Err(self.not_supported_yet(&path));
                }
                return Ok(found);
            }
            Value::Const(HostValue::DType(dtype)) => return Ok(dtypes::attribute(dtype, attr, value)),
            Value::Const(_) if attr == "value" => value.clone(),
            Value::Const(_) if attr == "type" => return Ok(super::call::constexpr_type(value)),
            Value::Const(HostValue::Int(_) | HostValue::Float(_) | HostValue::Bool(_)) => {
                // A number stands for the run-time scalar that it would become.
                if matches!(attr, "dtype" | "shape" | "numel") || Library::get().member(attr).is_some() {
                    let tensor = Value::Tensor(self.tensor_of(value)?);
                    return self.attribute(&tensor, attr);
                }
                return self.constant_attribute(value, attr);
            }
            Value::Const(HostValue::Str(_) | HostValue::Bytes(_) | HostValue::Python(_)) => {
                return self.constant_attribute(value, attr);
            }
            _ => return Ok(None),
        }))
    }

    /// What Python's numbers, strings and their types have of their own: `"abc".upper`, `N.bit_length`, `float.fromhex`.
    fn constant_attribute(&mut self, value: &Value, attr: &str) -> Eval<Option<Value>> {
        let Value::Const(constant) = value else { return Ok(None) };
        let found = self.host.constant_attribute(constant, attr).map_err(|e| self.host_error(e))?;
        Ok(found.map(Value::from_host))
    }

    /// A name of the library that is there without a meaning.
    pub fn not_supported_yet(&self, path: &str) -> Error {
        self.error(format!("not supported yet: {path}")).of(Kind::Unsupported).into()
    }

    fn no_attribute(&self, value: &Value, attr: &str) -> Error {
        let library = Library::get();
        let (what, names): (String, Vec<String>) = match value {
            Value::Tensor(t) => (
                format!("a value of type {}", t.ty()),
                library
                    .member_names()
                    .map(str::to_string)
                    .chain(["dtype", "shape", "type", "T", "numel"].map(String::from))
                    .collect(),
            ),
            Value::Const(HostValue::Library(path)) => (
                format!("`{}`", HostValue::Library(path.clone())),
                library.names(path).into_iter().map(String::from).collect(),
            ),
            Value::Aggregate(a) => {
                (format!("`{}`", a.class.name), a.class.names().map(String::from).collect())
            }
            Value::Const(HostValue::Class(class)) => (
                format!("`{}`", class.name),
                class.methods.iter().map(|(name, _)| name.to_string()).collect(),
            ),
            Value::Descriptor(_) => (
                format!("a {value}"),
                ["dtype", "block_shape", "block_type", "shape", "strides"]
                    .into_iter()
                    .chain(descriptor::methods())
                    .map(String::from)
                    .collect(),
            ),
            Value::Const(HostValue::DType(d)) => (format!("the dtype {d}"), dtypes::names().collect()),
            Value::Buffer(_) => {
                let methods = library.methods("tle.gpu").into_iter();
                let of_buffers = methods.filter_map(|name| name.strip_prefix("buffered_tensor."));
                (
                    format!("a {value}"),
                    ["dtype", "shape"].into_iter().chain(of_buffers).map(String::from).collect(),
                )
            }
            Value::Pipe(part) => {
                let methods = library.methods(pipe::MODULE).into_iter();
                let own = methods.filter_map(|name| name.strip_prefix(part.class())?.strip_prefix('.'));
                let fields = part.fields.iter().map(|(name, _)| &**name).filter(|_| part.shows_fields());
                let arguments = part.arguments().iter().copied();
                (format!("a {value}"), own.chain(fields).chain(arguments).map(String::from).collect())
            }
            other => (other.describe(), vec![]),
        };
        let error = self.error(format!("{what} has no attribute `{attr}`"));
        match closest(attr, names.iter().map(String::as_str)) {
            Some(other) => error.note(format!("did you mean `{other}`?")).into(),
            None => error,
        }
    }

    // ---- operators ------------------------------------------------------------------------------------------

    pub fn binary(&mut self, op: Operator, left: Value, right: Value) -> Eval<Value> {
        if let (Value::Tuple(a), Operator::Add, Value::Tuple(b)) = (&left, op, &right) {
            return Ok(Value::tuple(a.items.iter().chain(&b.items).cloned().collect()));
        }
        if let (Value::Tuple(t), Value::Const(HostValue::Int(n)))
        | (Value::Const(HostValue::Int(n)), Value::Tuple(t)) = (&left, &right)
            && op == Operator::Mult
        {
            let n = usize::try_from(*n).unwrap_or(0).min(1 << 16);
            return Ok(Value::tuple(std::iter::repeat_n(&t.items, n).flatten().cloned().collect()));
        }
        match (&left, &right) {
            (Value::Const(HostValue::Str(_)), _) if op == Operator::Mod => self.format_percent(&left, right),
            (Value::Const(a), Value::Const(b)) => {
                fold::binary(op, a, b).map(Value::Const).map_err(|message| self.error(message))
            }
            (Value::Tensor(_) | Value::Const(_), Value::Tensor(_) | Value::Const(_)) => {
                self.tensor_binary(op, &left, &right).map(Value::Tensor)
            }
            _ => match self.special_binary(op, &left, &right)? {
                Some(result) => Ok(result),
                None => {
                    Err(self.error(format!("unsupported operands of `{}`: {left} and {right}", op.as_str())))
                }
            },
        }
    }

    /// `"BLOCK_%d" % n`, by the method of Python's strings.
    fn format_percent(&mut self, text: &Value, values: Value) -> Eval<Value> {
        match self.constant_attribute(text, "__mod__")? {
            Some(format) => self.call(format, CallArgs { positional: vec![values], keywords: vec![] }),
            None => Err(self.error("not supported yet without Python: `%` of a string")),
        }
    }

    pub fn unary(&mut self, op: UnaryOp, operand: Value) -> Eval<Value> {
        match operand {
            Value::Const(c) => fold::unary(op, &c).map(Value::Const).map_err(|message| self.error(message)),
            Value::Tensor(t) => self.tensor_unary(op, &t).map(Value::Tensor),
            Value::Tuple(t) if op == UnaryOp::Not => Ok(Value::bool(t.items.is_empty())),
            other => {
                let method = match op {
                    UnaryOp::USub => "__neg__",
                    UnaryOp::UAdd => "__pos__",
                    UnaryOp::Invert => "__invert__",
                    UnaryOp::Not => "",
                };
                match self.special_method(&other, method, CallArgs::default())? {
                    Some(result) => Ok(result),
                    None => Err(self.error(format!("unsupported operand of `{}`: {other}", op.as_str()))),
                }
            }
        }
    }

    pub fn compare(&mut self, op: CmpOp, left: Value, right: Value) -> Eval<Value> {
        // `is` never looks at run-time values.
        if matches!(op, CmpOp::Is | CmpOp::IsNot) {
            let same = match (left.to_host(), right.to_host()) {
                (Some(a), Some(b)) => a == b,
                (None, None) => left.identical(&right),
                _ => false,
            };
            return Ok(Value::bool(same == (op == CmpOp::Is)));
        }
        match (&left, &right) {
            (Value::Tensor(_), Value::Const(HostValue::None))
            | (Value::Const(HostValue::None), Value::Tensor(_))
                if matches!(op, CmpOp::Eq | CmpOp::NotEq) =>
            {
                Ok(Value::bool(op == CmpOp::NotEq))
            }
            (Value::Aggregate(_), _) | (_, Value::Aggregate(_)) => {
                match self.special_compare(op, &left, &right)? {
                    Some(result) => Ok(result),
                    None => Err(self.error(format!("{left} and {right} cannot be compared"))),
                }
            }
            (Value::Tensor(_), Value::Tensor(_) | Value::Const(_)) | (Value::Const(_), Value::Tensor(_)) => {
                self.tensor_compare(op, &left, &right).map(Value::Tensor)
            }
            (_, Value::Const(HostValue::Object(_))) if matches!(op, CmpOp::In | CmpOp::NotIn) => {
                match self.method_of(&right, "__contains__", vec![left])? {
                    Some(Value::Const(found)) => {
                        Ok(Value::bool((found.truth() == Some(true)) == (op == CmpOp::In)))
                    }
                    _ => {
                        Err(self.error(format!("`in` needs a tuple, a string or a dictionary, not {right}")))
                    }
                }
            }
            _ => match (left.to_host(), right.to_host()) {
                (Some(a), Some(b)) => {
                    fold::compare(op, &a, &b).map(Value::bool).map_err(|message| self.error(message))
                }
                _ => Err(self.error(format!("{left} and {right} cannot be compared"))),
            },
        }
    }

    /// `and`, `or`: constants decide at once as in Python; run-time values are combined bit by bit. One of these alone, beside constants
    /// that decide nothing, is what it is: `n or 0` is `n`.
    fn bool_op(&mut self, op: &ruff_python_ast::ExprBoolOp) -> Eval<Value> {
        let mut dynamic: Option<Tensor> = None;
        let mut single = true;
        let mut last = Value::NONE;
        for node in &op.values {
            let value = self.expr(node)?;
            self.range = op.range;
            match &value {
                Value::Tensor(t) => {
                    dynamic = Some(match dynamic {
                        None => t.clone(),
                        Some(so_far) => {
                            let so_far = if single { self.truth_of(&so_far)? } else { so_far };
                            single = false;
                            let t = self.truth_of(t)?;
                            let bit = if op.op == BoolOp::And { Operator::BitAnd } else { Operator::BitOr };
                            self.tensor_binary(bit, &Value::Tensor(so_far), &Value::Tensor(t))?
                        }
                    });
                }
                other => {
                    let truth = match other {
                        Value::Const(c) => c.truth(),
                        Value::Tuple(t) => Some(!t.items.is_empty()),
                        _ => None,
                    };
                    let Some(truth) = truth else {
                        return Err(self.error(format!("{other} has no truth value")));
                    };
                    if truth != (op.op == BoolOp::And) {
                        return Ok(value);
                    }
                }
            }
            last = value;
        }
        Ok(dynamic.map_or(last, Value::Tensor))
    }

    // ---- subscripts -----------------------------------------------------------------------------------------

    fn subscript(&mut self, s: &ExprSubscript) -> Eval<Value> {
        let value = self.expr(&s.value)?;
        let index = self.expr(&s.slice)?;
        self.range = s.range;
        match value {
            Value::Tuple(t) => self.tuple_item(&t, &index, "tuple"),
            Value::Tensor(t) => self.tensor_index(&t, &index).map(Value::Tensor),
            Value::Const(HostValue::Str(text)) => self.string_item(&text, &index),
            Value::Const(HostValue::Bytes(bytes)) => self.bytes_item(&bytes, &index),
            Value::Barriers(bars) => self.barrier_item(&bars, &index),
            Value::Dict(entries) => {
                let wanted = index.to_host();
                match entries.iter().find(|(key, _)| wanted.is_some() && key.to_host() == wanted) {
                    Some((_, found)) => Ok(found.clone()),
                    None => {
                        let keys: Vec<String> = entries.iter().map(|(key, _)| key.to_string()).collect();
                        Err(self.error(format!("the dictionary has no {index}; it has {}", keys.join(", "))))
                    }
                }
            }
            Value::Const(HostValue::Object(object)) if &*object.kind == MESH => {
                self.mesh_item(&object, &index)
            }
            other => match self.method_of(&other, "__getitem__", vec![index])? {
                Some(item) => Ok(item),
                None => Err(self.error(format!("{other} cannot be indexed"))),
            },
        }
    }

    /// Calls a method that stands for syntax: of an instance of a kernel's class, or of an object of the host, such as a dictionary. None where
    /// there is no such method.
    pub(super) fn method_of(
        &mut self,
        value: &Value,
        name: &str,
        positional: Vec<Value>,
    ) -> Eval<Option<Value>> {
        let args = CallArgs { positional, keywords: Vec::new() };
        let Value::Const(HostValue::Object(object)) = value else {
            return self.special_method(value, name, args);
        };
        match self.host.attribute(object, name).map_err(|e| self.host_error(e))? {
            Some(method) => self.call(Value::Const(method), args).map(Some),
            None => Ok(None),
        }
    }

    /// A part of a mesh.
    fn mesh_item(&mut self, mesh: &Arc<crate::HostObject>, index: &Value) -> Eval<Value> {
        let single = std::slice::from_ref(index);
        let keys: &[Value] = match index {
            Value::Tuple(t) => &t.items,
            _ => single,
        };
        let key = |key: &Value| match key {
            Value::Slice(parts) => Value::tuple(parts.to_vec()),
            other => other.clone(),
        };
        let keys = Value::tuple(keys.iter().map(key).collect());
        let item = self.method_of(&Value::Const(HostValue::Object(mesh.clone())), "_item", vec![keys])?;
        Ok(item.unwrap_or(Value::NONE))
    }

    /// An element of a tuple, or a tuple of some; `what` is the sequence that it stands for.
    fn tuple_item(&mut self, t: &TupleValue, index: &Value, what: &str) -> Eval<Value> {
        let n = t.items.len() as i128;
        match index {
            Value::Const(HostValue::Int(i)) => {
                let at = if *i < 0 { i + n } else { *i };
                match usize::try_from(at).ok().and_then(|i| t.items.get(i)) {
                    Some(item) => Ok(item.clone()),
                    None => Err(self.error(format!("index {i} is outside of a {what} of {n}"))),
                }
            }
            Value::Slice(parts) => {
                let places = self.places_of_slice(parts, n, what)?;
                Ok(Value::tuple(places.into_iter().map(|i| t.items[i].clone()).collect()))
            }
            Value::Tensor(t) => Err(self
                .error(format!(
                    "a {what} is indexed by a constant, but the index is a run-time value ({})",
                    t.ty()
                ))
                .note("use tl.static_range for the loop whose variable is the index")
                .into()),
            other => Err(self.error(format!("a {what} is indexed by a constant integer, not {other}"))),
        }
    }

    /// The places of a sequence of `n` elements that a slice takes, as Python's `slice.indices` says.
    fn places_of_slice(&self, [lower, upper, step]: &[Value; 3], n: i128, what: &str) -> Eval<Vec<usize>> {
        let constant = |v: &Value| match v {
            Value::Const(HostValue::None) => Ok(None),
            Value::Const(HostValue::Int(i)) => Ok(Some(*i)),
            other => Err(self.error(format!("a {what} is sliced by constants, not {other}"))),
        };
        let step = constant(step)?.unwrap_or(1);
        if step == 0 {
            return Err(self.error("the step of a slice is not zero"));
        }
        let (least, most) = if step > 0 { (0, n) } else { (-1, n - 1) };
        let bound = |v: &Value, default: i128| -> Eval<i128> {
            let given = constant(v)?.map(|i| if i < 0 { i.saturating_add(n) } else { i }.clamp(least, most));
            Ok(given.unwrap_or(default))
        };
        let (from, to) = if step > 0 {
            (bound(lower, least)?, bound(upper, most)?)
        } else {
            (bound(lower, most)?, bound(upper, least)?)
        };
        let inside = |i: &i128| if step > 0 { *i < to } else { *i > to };
        let places = std::iter::successors(Some(from), |i| Some(i.saturating_add(step))).take_while(inside);
        Ok(places.map(|i| i as usize).collect())
    }

    /// A character of a constant, or a piece of it.
    fn string_item(&mut self, text: &str, index: &Value) -> Eval<Value> {
        let characters = text.chars().map(|c| Value::Const(HostValue::str(c.encode_utf8(&mut [0; 4]))));
        let characters = TupleValue { items: characters.collect(), class: None };
        Ok(match self.tuple_item(&characters, index, "string")? {
            Value::Tuple(piece) => {
                let characters = piece.items.iter().map(|c| match c {
                    Value::Const(HostValue::Str(c)) => &**c,
                    _ => "",
                });
                Value::Const(HostValue::str(&characters.collect::<String>()))
            }
            character => character,
        })
    }

    /// A byte of a constant as a number, or a piece of it.
    fn bytes_item(&mut self, bytes: &[u8], index: &Value) -> Eval<Value> {
        if let Value::Slice(parts) = index {
            let places = self.places_of_slice(parts, bytes.len() as i128, "bytes")?;
            return Ok(Value::Const(HostValue::Bytes(places.into_iter().map(|i| bytes[i]).collect())));
        }
        let numbers = bytes.iter().map(|&byte| Value::int(byte)).collect();
        self.tuple_item(&TupleValue { items: numbers, class: None }, index, "bytes")
    }

    fn tensor_index(&mut self, t: &Tensor, index: &Value) -> Eval<Tensor> {
        let single = std::slice::from_ref(index);
        let parts: &[Value] = match index {
            Value::Tuple(tuple) => &tuple.items,
            _ => single,
        };
        let mut out = t.clone();
        let mut kept = 0;
        for (dim, part) in parts.iter().enumerate() {
            match part {
                Value::Const(HostValue::None) => out = self.expand_dims(&out, dim as u32),
                Value::Slice(s) if s.iter().all(Value::is_none) => kept += 1,
                other => {
                    return Err(self
                        .error(format!(
                            "a tensor ({}) is indexed by `:` and `None` only, not by {other}",
                            t.ty()
                        ))
                        .note("pick elements with tl.gather, a mask and tl.sum, or load them from memory")
                        .into());
                }
            }
        }
        // Triton lets `:` stand behind a scalar's last dimension.
        if kept > t.shape.len() && !t.shape.is_empty() {
            return Err(self.error(format!("{kept} indices for a value of type {}", t.ty())));
        }
        Ok(out)
    }

    // ---- the rest -------------------------------------------------------------------------------------------

    fn f_string(&mut self, f: &ruff_python_ast::ExprFString) -> Eval<Value> {
        let mut out = String::new();
        for part in f.value.iter() {
            match part {
                FStringPart::Literal(literal) => out.push_str(literal.as_str()),
                FStringPart::FString(f) => self.interpolated(&f.elements, &mut out)?,
            }
        }
        Ok(Value::Const(HostValue::Str(out.into())))
    }

    /// What the elements of an f-string, or of a format in one, come to.
    fn interpolated(&mut self, elements: &InterpolatedStringElements, out: &mut String) -> Eval<()> {
        for element in elements {
            let e = match element {
                InterpolatedStringElement::Literal(literal) => {
                    out.push_str(&literal.value);
                    continue;
                }
                InterpolatedStringElement::Interpolation(e) => e,
            };
            let value = self.expr(&e.expression)?;
            self.range = e.range;
            if let Some(debug) = &e.debug_text {
                out.push_str(debug.as_str());
            }
            let Some(mut value) = value.to_host() else {
                return Err(self
                    .error(format!("an f-string is made at compile time, but this is {value}"))
                    .note("print run-time values with tl.device_print(\"text\", x)")
                    .into());
            };
            // As in Python, `f"{x=}"` shows a text in quotes, unless it is formatted.
            let repr = e.conversion == ConversionFlag::Repr
                || (e.debug_text.is_some()
                    && e.conversion == ConversionFlag::None
                    && e.format_spec.is_none());
            if repr || (e.conversion != ConversionFlag::None && !matches!(value, HostValue::Str(_))) {
                value = HostValue::str(&value.to_string());
            }
            let mut format = String::new();
            if let Some(spec) = &e.format_spec {
                self.interpolated(&spec.elements, &mut format)?;
            }
            if !format.is_empty() {
                value = self.formatted(value, &format)?;
            }
            match value {
                HostValue::Str(s) => out.push_str(&s),
                other => out.push_str(&other.to_string()),
            }
        }
        Ok(())
    }

    /// `format(value, spec)`, by the method of Python's objects.
    fn formatted(&mut self, value: HostValue, spec: &str) -> Eval<HostValue> {
        let Some(format) = self.constant_attribute(&Value::Const(value), "__format__")? else {
            return Err(self.error("not supported yet without Python: a format in an f-string"));
        };
        let args = CallArgs { positional: vec![Value::Const(HostValue::str(spec))], keywords: vec![] };
        match self.call(format, args)?.to_host() {
            Some(text) => Ok(text),
            None => Err(self.error("a format gives a text")),
        }
    }

    fn comprehension(&mut self, elt: &Expr, generators: &[Comprehension]) -> Eval<Value> {
        let [generator] = generators else {
            return Err(
                self.unsupported("a nested comprehension", "write one comprehension inside the other")
            );
        };
        let items: Vec<Value> = match self.expr(&generator.iter)? {
            Value::Tuple(t) => t.items.clone(),
            Value::Range(r) => {
                let bound = |v: &Value| match v {
                    Value::Const(HostValue::Int(i)) => Some(*i),
                    _ => None,
                };
                match (bound(&r.start), bound(&r.end), bound(&r.step)) {
                    (Some(start), Some(end), Some(step)) => self.steps(start, end, step)?,
                    _ => return Err(self.error("a comprehension needs a range of constants")),
                }
            }
            other => {
                return Err(self.error(format!("a comprehension runs over a tuple or a range, not {other}")));
            }
        };
        // Its variables are its own; what the elements do to others, by `:=` or by methods of objects, they do to the function's.
        let mut own = Vec::new();
        collect_target(&generator.target, &mut own);
        let saved: Vec<_> = own.iter().map(|name| self.frame().scope.get(name).cloned()).collect();
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            self.assign(&generator.target, item)?;
            let mut keep = true;
            for test in &generator.ifs {
                let value = self.expr(test)?;
                keep &= match self.condition(value, "if")? {
                    super::control::Condition::Static(truth) => truth,
                    super::control::Condition::Dynamic(_) => {
                        return Err(self.error("the condition of a comprehension must be a constant"));
                    }
                };
            }
            if keep {
                out.push(self.expr(elt)?);
            }
        }
        let scope = &mut self.frame_mut().scope;
        for (name, value) in own.into_iter().zip(saved) {
            match value {
                Some(value) => _ = scope.insert(name, value),
                None => _ = scope.shift_remove(&name),
            }
        }
        Ok(Value::tuple(out))
    }
}

/// `a.b` of an attribute chain, none for anything else.
fn dotted(expr: &Expr) -> Option<Vec<Arc<str>>> {
    match expr {
        Expr::Name(name) => Some(vec![name.id.as_str().into()]),
        Expr::Attribute(a) => {
            let mut path = dotted(&a.value)?;
            path.push(a.attr.as_str().into());
            Some(path)
        }
        _ => None,
    }
}

/// What a module or class of the library has under a name.
pub(super) fn library_attribute(path: &str, attr: &str) -> Option<Value> {
    let library = Library::get();
    let full = if path.is_empty() { attr.to_string() } else { format!("{path}.{attr}") };
    let item = match library.resolve(path)? {
        Item::Class(_) if layouts::default_maker(&full).is_some() => {
            return Some(Value::Const(HostValue::Library(full.into())));
        }
        Item::Class(class) => library.class_attribute(&class, attr)?,
        Item::Aggregate(class) => return super::aggregate::class_attribute(&class, attr),
        _ => library.resolve(&full)?,
    };
    Some(match item {
        Item::Const(value) => Value::from_host(value),
        Item::Module(module) => Value::Const(HostValue::Library(module)),
        _ => Value::Const(HostValue::Library(full.into())),
    })
}

/// The known name that is nearest by edit distance, if it is near.
pub(crate) fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    known
        .map(|other| (distance(name, other), other))
        .filter(|(d, other)| *d <= limit && *other != name)
        .min()
        .map(|(_, other)| other)
}

/// Edit distance with transpositions (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let mut d = (rows[i - 1][j] + 1)
                .min(row[j - 1] + 1)
                .min(rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]));
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                d = d.min(rows[i - 2][j - 2] + 1);
            }
            row.push(d);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested() {
        assert_eq!(distance("lood", "load"), 1);
        assert_eq!(distance("laod", "load"), 1);
        assert_eq!(closest("progam_id", ["load", "program_id"].into_iter()), Some("program_id"));
        assert_eq!(closest("xyz", ["load", "store"].into_iter()), None);
    }
}
