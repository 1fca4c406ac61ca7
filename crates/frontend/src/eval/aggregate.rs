//! Instances of classes that are decorated with `@_aggregate`: made, read, and changed by the methods that run at compile time.
//!
//! An instance is a [`Value`] of values, which control flow takes apart into its tensors like a tuple. As in Python, those who hold an object
//! share it: what a plain method sets is set in all variables that hold the object, up to those of the kernel's code that called it.
//! Code that runs with the kernel sets nothing: it is given and gives whole objects.

use std::sync::Arc;

use ruff_python_ast::name::Name;
use ruff_python_ast::{CmpOp, Operator};

use super::call::CallArgs;
use super::control::is_number;
use super::expr::closest;
use super::{Eval, Evaluator, Scope};
use crate::aggregate::{AggregateClass, CONSTRUCTOR};
use crate::host::{FunctionKind, HostValue};
use crate::library::{Item, Library};
use crate::value::{Aggregate, Method, MethodTarget, TupleValue, Value};

/// Under which `__init__` finds its object again, whatever it does with its parameters.
const OBJECT: &str = "";

/// What a class has under a name: its functions.
pub(super) fn class_attribute(class: &AggregateClass, name: &str) -> Option<Value> {
    class.method(name).map(|method| Value::Const(HostValue::Jit(method.function.clone())))
}

/// The class that a value is.
pub(super) fn class_of(value: &Value) -> Option<Arc<AggregateClass>> {
    match value {
        Value::Const(HostValue::Class(class)) => Some(class.clone()),
        Value::Const(HostValue::Library(path)) => match Library::get().resolve(path)? {
            Item::Aggregate(class) => Some(class),
            _ => None,
        },
        _ => None,
    }
}

/// The name of a class of the library, whatever its importer calls it.
pub(super) fn library_class(path: &str) -> String {
    let class = match Library::get().resolve(path) {
        Some(Item::Class(class)) => class,
        _ => path.into(),
    };
    class.rsplit('.').next().unwrap_or_default().to_string()
}

impl Evaluator<'_> {
    /// Calls a class.
    pub fn instantiate(&mut self, class: &Arc<AggregateClass>, mut args: CallArgs) -> Eval<Value> {
        let empty = Aggregate { class: class.clone(), fields: vec![None; class.fields.len()] };
        let mut object = Value::Aggregate(Arc::new(empty));
        if let Some(init) = class.method(CONSTRUCTOR) {
            let function = &init.function;
            if function.kind == FunctionKind::Kernel {
                return Err(self
                    .error(format!("`{}` must be a plain method: it runs at compile time", function.name))
                    .note("leave @jit away, and call functions of the kernel in it; @constexpr_function may stand there")
                    .into());
            }
            let def = function.definition()?.clone();
            args.positional.insert(0, object.clone());
            let mut scope = self.bind(function, &def, args)?;
            scope.insert(Name::new_static(OBJECT), object);
            let (result, scope) = self.call_at_compile_time(function, &def, scope)?;
            if !result.is_none() {
                return Err(
                    self.error(format!("`{}` returns {result}, but must return nothing", function.name))
                );
            }
            object = scope[OBJECT].clone();
        } else if !args.positional.is_empty() || !args.keywords.is_empty() {
            return Err(self.error(format!("`{}` takes no arguments: it has no `{CONSTRUCTOR}`", class.name)));
        }
        if let Value::Aggregate(made) = &object
            && let Some(missing) = made.fields.iter().position(Option::is_none)
        {
            let field = &class.fields[missing].0;
            return Err(self
                .error(format!("`{}` is made without its field `{field}`", class.name))
                .note(format!("`{CONSTRUCTOR}` sets every annotated field: self.{field} = …"))
                .into());
        }
        Ok(object)
    }

    /// `object.name`: a field or a method; none if there is neither.
    pub fn aggregate_attribute(&mut self, object: &Arc<Aggregate>, name: &str) -> Eval<Option<Value>> {
        let class = &object.class;
        if let Some(field) = class.field(name) {
            return match &object.fields[field] {
                Some(value) => Ok(Some(value.clone())),
                None => Err(self.error(format!("`{name}` of `{}` is not set yet", class.name))),
            };
        }
        let receiver = Value::Aggregate(object.clone());
        if let Some(method) = class.method(name) {
            let function = method.function.clone();
            return Ok(Some(if method.is_static {
                Value::Const(HostValue::Jit(function))
            } else {
                Value::Method(Arc::new(Method { receiver, target: MethodTarget::Function(function) }))
            }));
        }
        let args = CallArgs { positional: vec![Value::Const(HostValue::str(name))], keywords: Vec::new() };
        self.special_method(&receiver, "__getattr__", args)
    }

    /// `object.name = value`.
    pub fn set_field(&mut self, object: &Arc<Aggregate>, name: &str, value: Value) -> Eval<()> {
        let class = &object.class;
        let Some(field) = class.field(name) else {
            let error = self.error(format!("`{}` has no field `{name}`", class.name));
            let names = class.fields.iter().map(|(name, _)| &**name);
            return Err(match closest(name, names) {
                Some(other) => error.note(format!("did you mean `{other}`?")).into(),
                None => error.note(format!("annotate it in the class: {name}: tl.tensor")).into(),
            });
        };
        if !self.frame().constexpr {
            return Err(self
                .error(format!("a kernel cannot set `{name}` of `{}`", class.name))
                .note(format!(
                    "fields are set by `{CONSTRUCTOR}` and other methods without a decorator; make a new object here: {}(…)",
                    class.name
                ))
                .into());
        }
        let wanted = &class.fields[field].1;
        if !self.fits(&value, wanted)? {
            let number = is_number(&value) && accepts_tensor(wanted);
            let mut error =
                *self.error(format!("`{name}` of `{}` must be {}, not {value}", class.name, listed(wanted)));
            if number {
                error = error.note("tl.to_tensor(x) makes a run-time value of a number");
            }
            return Err(error.into());
        }
        let mut fields = object.fields.clone();
        fields[field] = Some(value);
        self.exchange(object, Aggregate { class: class.clone(), fields });
        Ok(())
    }

    /// `object[index] = value`.
    pub fn set_item(&mut self, object: &Value, index: Value, value: Value) -> Eval<()> {
        if !self.frame().constexpr {
            return Err(self
                .error(format!("a kernel cannot set elements of {object}"))
                .note("objects change in methods without a decorator only")
                .into());
        }
        let args = CallArgs { positional: vec![index, value], keywords: Vec::new() };
        match self.special_method(object, "__setitem__", args)? {
            Some(_) => Ok(()),
            None => Err(self.error(format!("elements of {object} cannot be assigned"))),
        }
    }

    /// Whether a value may be in a field with this annotation.
    fn fits(&mut self, value: &Value, annotation: &HostValue) -> Eval<bool> {
        match annotation {
            HostValue::Tuple(any) => {
                for annotation in any.iter() {
                    if self.fits(value, annotation)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            // Constants in a tuple are a constant.
            HostValue::Library(path) if library_class(path) == "constexpr" => Ok(value.to_host().is_some()),
            class => self.is_instance(value, &Value::Const(class.clone())),
        }
    }

    /// Puts an object in the place of another one wherever the functions that run at compile time, and the code of the kernel that called
    /// them, hold that.
    fn exchange(&mut self, old: &Arc<Aggregate>, new: Aggregate) {
        // With the objects that hold one of these, which are made anew once each.
        let mut made = vec![(old.clone(), Arc::new(new))];
        for frame in self.frames.iter_mut().rev() {
            exchange_in(&mut frame.scope, &mut made);
            if !frame.constexpr {
                break;
            }
        }
    }

    // ---- methods that stand for syntax ------------------------------------------------------------------------

    /// Calls a method such as `__getitem__`; none where the value has none.
    pub fn special_method(&mut self, object: &Value, name: &str, mut args: CallArgs) -> Eval<Option<Value>> {
        let Value::Aggregate(a) = object else { return Ok(None) };
        let Some(method) = a.class.method(name) else { return Ok(None) };
        args.positional.insert(0, object.clone());
        self.call_jit(&method.function, args).map(Some)
    }

    /// `a op b` by a method of one of them.
    pub fn special_binary(&mut self, op: Operator, left: &Value, right: &Value) -> Eval<Option<Value>> {
        let name = match op {
            Operator::Add => "add",
            Operator::Sub => "sub",
            Operator::Mult => "mul",
            Operator::MatMult => "matmul",
            Operator::Div => "truediv",
            Operator::Mod => "mod",
            Operator::Pow => "pow",
            Operator::LShift => "lshift",
            Operator::RShift => "rshift",
            Operator::BitOr => "or",
            Operator::BitXor => "xor",
            Operator::BitAnd => "and",
            Operator::FloorDiv => "floordiv",
        };
        self.special_pair(&format!("__{name}__"), &format!("__r{name}__"), left, right)
    }

    /// `a < b` and the like by a method of one of them.
    pub fn special_compare(&mut self, op: CmpOp, left: &Value, right: &Value) -> Eval<Option<Value>> {
        let (name, reflected) = match op {
            CmpOp::Eq => ("__eq__", "__eq__"),
            CmpOp::NotEq => ("__ne__", "__ne__"),
            CmpOp::Lt => ("__lt__", "__gt__"),
            CmpOp::LtE => ("__le__", "__ge__"),
            CmpOp::Gt => ("__gt__", "__lt__"),
            CmpOp::GtE => ("__ge__", "__le__"),
            CmpOp::In => ("", "__contains__"),
            CmpOp::Is | CmpOp::IsNot | CmpOp::NotIn => return Ok(None),
        };
        self.special_pair(name, reflected, left, right)
    }

    fn special_pair(
        &mut self,
        name: &str,
        reflected: &str,
        left: &Value,
        right: &Value,
    ) -> Eval<Option<Value>> {
        for (object, method, other) in [(left, name, right), (right, reflected, left)] {
            let args = CallArgs { positional: vec![other.clone()], keywords: Vec::new() };
            if let Some(result) = self.special_method(object, method, args)? {
                return Ok(Some(result));
            }
        }
        Ok(None)
    }
}

/// `tl.tensor` or `tl.constexpr`, for messages.
fn listed(annotation: &HostValue) -> String {
    match annotation {
        HostValue::Tuple(any) => any.iter().map(listed).collect::<Vec<_>>().join(" or "),
        one => one.to_string().replace("tl.core.", "tl."),
    }
}

fn accepts_tensor(annotation: &HostValue) -> bool {
    match annotation {
        HostValue::Tuple(any) => any.iter().any(accepts_tensor),
        HostValue::Library(path) => library_class(path) == "tensor",
        _ => false,
    }
}

type Exchanged = Vec<(Arc<Aggregate>, Arc<Aggregate>)>;

fn exchange_in(scope: &mut Scope, made: &mut Exchanged) {
    for value in scope.values_mut() {
        if let Some(new) = exchanged(value, made) {
            *value = new;
        }
    }
}

/// The value with the new objects in it; none where it holds no old one.
fn exchanged(value: &Value, made: &mut Exchanged) -> Option<Value> {
    match value {
        Value::Aggregate(object) => {
            if let Some((_, new)) = made.iter().find(|(old, _)| Arc::ptr_eq(old, object)) {
                return Some(Value::Aggregate(new.clone()));
            }
            let new: Vec<_> =
                object.fields.iter().map(|field| field.as_ref().and_then(|f| exchanged(f, made))).collect();
            if new.iter().all(Option::is_none) {
                return None;
            }
            let fields = new.into_iter().zip(&object.fields).map(|(new, old)| new.or_else(|| old.clone()));
            let holder = Arc::new(Aggregate { class: object.class.clone(), fields: fields.collect() });
            made.push((object.clone(), holder.clone()));
            Some(Value::Aggregate(holder))
        }
        Value::Tuple(t) => {
            let new: Vec<_> = t.items.iter().map(|item| exchanged(item, made)).collect();
            if new.iter().all(Option::is_none) {
                return None;
            }
            let items = new.into_iter().zip(&t.items).map(|(new, old)| new.unwrap_or_else(|| old.clone()));
            Some(Value::Tuple(Arc::new(TupleValue { class: t.class.clone(), items: items.collect() })))
        }
        _ => None,
    }
}
