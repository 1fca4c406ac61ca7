//! Calls: binding arguments to parameters, evaluating jit functions in place, emitting `noinline` ones.
//!
//! Together with expressions, Python's builtins and the library's, since an argument is an expression, and a call is one.

use std::fmt::Write as _;
use std::sync::Arc;

use ruff_python_ast::name::Name;
use ruff_python_ast::{Expr, ExprCall, StmtFunctionDef};
use ruff_text_size::Ranged;
use tilewright_ir::attrs::SymbolRef;
use tilewright_ir::dialect::tt;
use tilewright_ir::options::MAX_STAGES;
use tilewright_ir::{TypeKind, ascend, licm};

use super::builtins::layouts;
use super::builtins::mlir::ACTIVE;
use super::{Eval, Evaluator, Scope, builder};
use crate::dtype::DType;
use crate::host::{FunctionKind, HostObject, HostValue, JitFunction, NamedTuple};
use crate::library::{Builtin, Item, Library, PACKAGE};
use crate::value::{Method, MethodTarget, RangeValue, Tensor, TupleValue, Value};

/// The class of loops at run time.
pub(super) const RANGE: &str = "language.core.range";
/// The class of loops that are unrolled.
const REORDERED_RANGE: &str = "tle.range";
/// The class of loops whose iterations are independent.
const PARALLEL_RANGE: &str = "tle.dsa.parallel";
const STATIC_RANGE: &str = "language.core.static_range";

/// How many copies of a loop's body there may be.
const MAX_UNROLL: i32 = 1024;

/// How deep calls may nest. Python's own limit ends Triton's front end below a hundred.
const MAX_DEPTH: usize = 256;

/// What plain functions for Triton hand on to those of the language that they call. Here it is nothing.
const HANDED_ON: &[&str] = &["_semantic", "_generator", "_builder"];

/// Evaluated arguments of a call.
#[derive(Debug, Default, Clone)]
pub(crate) struct CallArgs {
    pub positional: Vec<Value>,
    pub keywords: Vec<(Name, Value)>,
}

impl CallArgs {
    /// Whether all of them are constants.
    fn constant(&self) -> bool {
        let named = self.keywords.iter().map(|(_, value)| value);
        self.positional.iter().chain(named).all(|value| value.to_host().is_some())
    }
}

/// Arguments bound to a builtin's parameters.
#[derive(Debug)]
pub(crate) struct Args {
    pub builtin: Arc<Builtin>,
    pub values: Vec<Value>,
    /// What went to `*args`.
    pub rest: Vec<Value>,
    /// What went to `**kwargs`, in order.
    pub named: Vec<(Name, Value)>,
}

impl Args {
    /// The value of a parameter. The library's files and the implementation agree on names; a test checks it.
    pub fn get(&self, name: &str) -> &Value {
        const MISSING: &Value = &Value::NONE;
        match self.builtin.params.iter().position(|(n, _)| &**n == name) {
            Some(i) => &self.values[i],
            None => {
                debug_assert!(false, "{} has no parameter {name}", self.builtin.path);
                MISSING
            }
        }
    }

    /// The value of a parameter, `None` as none.
    pub fn optional(&self, name: &str) -> Option<&Value> {
        Some(self.get(name)).filter(|v| !v.is_none())
    }
}

impl Evaluator<'_> {
    pub fn call_expr(&mut self, call: &ExprCall) -> Eval<Value> {
        let callee = self.expr(&call.func)?;
        self.call_with(callee, call)
    }

    /// A call that is a statement of its own.
    pub fn unused_call(&mut self, call: &ExprCall) -> Eval<()> {
        self.range = call.range();
        self.step()?;
        let callee = self.expr(&call.func)?;
        if let Some(why) = self.must_use(&callee)? {
            self.range = call.range();
            let name = self.frame().function.source.slice(call.func.range());
            let error = self.error(format!("the result of `{name}` is not being used"));
            return Err(if why.is_empty() { error } else { error.note(why).into() });
        }
        self.call_with(callee, call)?;
        self.assign_written(call)
    }

    /// Why the result of a call must be used, where it must.
    fn must_use(&self, callee: &Value) -> Eval<Option<String>> {
        Ok(match callee {
            Value::Const(HostValue::Jit(function)) => {
                self.host.must_use(function).map_err(|e| self.host_error(e))?
            }
            Value::Const(HostValue::Library(path)) => match Library::get().resolve(path) {
                Some(Item::Builtin(builtin)) => builtin.must_use.clone(),
                _ => None,
            },
            _ => None,
        })
    }

    fn call_with(&mut self, callee: Value, call: &ExprCall) -> Eval<Value> {
        let args = self.arguments(call)?;
        self.range = call.range();
        self.written.clear();
        let result = self.call(callee, args)?;
        if std::mem::take(&mut self.written_beside) {
            self.assign_written(call)?;
        }
        Ok(result)
    }

    /// The arguments of a call, evaluated.
    pub fn arguments(&mut self, call: &ExprCall) -> Eval<CallArgs> {
        let mut args = CallArgs::default();
        for arg in &call.arguments.args {
            if let Expr::Starred(s) = arg {
                match self.expr(&s.value)? {
                    Value::Tuple(t) => args.positional.extend(t.items.iter().cloned()),
                    other => return Err(self.error(format!("cannot unpack {other} into arguments"))),
                }
            } else {
                args.positional.push(self.argument(arg)?);
            }
        }
        for keyword in &call.arguments.keywords {
            let Some(name) = &keyword.arg else {
                self.range = keyword.range;
                return Err(self.unsupported("`**` in a call", "name the arguments"));
            };
            let value = self.argument(&keyword.value)?;
            args.keywords.push((name.id.clone(), value));
        }
        Ok(args)
    }

    /// An argument: an expression, or a dictionary, which some functions of the library take.
    fn argument(&mut self, arg: &Expr) -> Eval<Value> {
        let Expr::Dict(dict) = arg else { return self.expr(arg) };
        let mut entries = Vec::with_capacity(dict.items.len());
        for item in &dict.items {
            let Some(key) = &item.key else { return self.expr(arg) };
            entries.push((self.expr(key)?, self.argument(&item.value)?));
        }
        Ok(Value::Dict(entries.into()))
    }

    pub fn call(&mut self, callee: Value, mut args: CallArgs) -> Eval<Value> {
        match callee {
            Value::Const(HostValue::Library(path)) => match Library::get().resolve(&path) {
                Some(item) => self.call_item(&item, args),
                None => match layouts::default_maker(&path) {
                    Some(maker) => self.make_layout(maker, args),
                    None => Err(self.error(format!("{} does not exist", HostValue::Library(path)))),
                },
            },
            Value::Const(HostValue::Jit(function)) => self.call_jit(&function, args),
            Value::Const(HostValue::Class(class)) => self.instantiate(&class, args),
            Value::Const(HostValue::Python(name)) => self.call_python(&name, args),
            Value::Const(HostValue::Object(object)) => self.call_object(&object, args),
            Value::Const(HostValue::DType(dtype)) => {
                // `tl.float32(0.0)`: a scalar of that type; of a tensor, a conversion.
                match (args.positional.as_slice(), args.keywords.is_empty()) {
                    ([Value::Const(c)], true) if crate::fold::number(c).is_some() => {
                        Ok(Value::Tensor(self.scalar_constant(c, &dtype)?))
                    }
                    ([Value::Tensor(t)], true) => Ok(Value::Tensor(self.cast(t, &dtype)?)),
                    _ => Err(self
                        .error(format!("the dtype {dtype} is called with one number"))
                        .note("convert with x.to(dtype) or tl.cast(x, dtype); make a constant with tl.full")
                        .into()),
                }
            }
            Value::Method(method) => {
                let Method { receiver, target } = &*method;
                match target {
                    MethodTarget::Member(name) => {
                        let Some(item) = Library::get().member(name) else {
                            return Err(self.error(format!("no method `{name}`")));
                        };
                        args.positional.insert(0, receiver.clone());
                        self.call_item(item, args)
                    }
                    MethodTarget::DType(name) => self.call_dtype_method(receiver, name, &args),
                    MethodTarget::Descriptor(name) => self.call_descriptor_method(receiver, name, args),
                    MethodTarget::OfClass(path) => {
                        let Some(item) = Library::get().resolve(path) else {
                            return Err(self.error(format!("{path} does not exist")));
                        };
                        args.positional.insert(0, receiver.clone());
                        self.call_item(&item, args)
                    }
                    MethodTarget::Function(function) => {
                        args.positional.insert(0, receiver.clone());
                        self.call_jit(function, args)
                    }
                }
            }
            Value::Aggregate(_) => match self.special_method(&callee, "__call__", args)? {
                Some(result) => Ok(result),
                None => Err(self.error(format!("{callee} cannot be called"))),
            },
            other => Err(self.error(format!("{other} cannot be called"))),
        }
    }

    fn call_item(&mut self, item: &Item, args: CallArgs) -> Eval<Value> {
        match item {
            Item::Builtin(builtin) => {
                let result = self.bind_builtin(builtin, args).and_then(|args| self.call_builtin(&args));
                result.map_err(|mut error| {
                    error.of_builtin = true;
                    error
                })
            }
            Item::Jit(function) => self.call_jit(function, args),
            Item::Class(path) => self.construct(path, args),
            Item::Aggregate(class) => self.instantiate(class, args),
            Item::Module(module) => Err(self.error(format!("the module `{module}` cannot be called"))),
            Item::NotYet(path) => Err(self.not_supported_yet(path)),
            Item::Const(value) => {
                let value = Value::from_host(value.clone());
                self.call(value, args)
            }
        }
    }

    fn bind_constructor(&mut self, class: &str, args: CallArgs) -> Eval<Args> {
        match Library::get().constructor(class) {
            Some(constructor) => self.bind_builtin(&constructor, args),
            None => Err(self.error(format!("{class} cannot be called"))),
        }
    }

    /// The arguments of a call of a function of the library, by its parameters.
    pub fn bind_library(&mut self, callee: &Value, args: CallArgs) -> Eval<Args> {
        match callee {
            Value::Const(HostValue::Library(path)) => match Library::get().resolve(path) {
                Some(Item::Builtin(builtin)) => self.bind_builtin(&builtin, args),
                _ => Err(self.error(format!("{callee} is no function of the library"))),
            },
            _ => Err(self.error(format!("{callee} is no function of the library"))),
        }
    }

    fn bind_builtin(&mut self, builtin: &Arc<Builtin>, args: CallArgs) -> Eval<Args> {
        let wrong = |e: &Self, what: String| -> super::Error {
            e.error(what).note(format!("the signature is {}", builtin.signature())).into()
        };
        let n = builtin.params.len();
        let mut values: Vec<Option<Value>> = vec![None; n];
        let (mut rest, mut named) = (Vec::new(), Vec::new());
        for (i, value) in args.positional.into_iter().enumerate() {
            if i < builtin.positional {
                values[i] = Some(value);
            } else if builtin.variadic.is_some() {
                rest.push(value);
            } else {
                return Err(wrong(
                    self,
                    format!("{} takes at most {} positional arguments", builtin.shown(), builtin.positional),
                ));
            }
        }
        for (name, value) in args.keywords {
            if builtin.variadic.as_deref() == Some(name.as_str()) {
                // `reshape(x, shape=(…))`, as Triton takes it for its own varargs.
                rest.push(value);
                continue;
            }
            if value.is_none() && HANDED_ON.contains(&name.as_str()) {
                continue;
            }
            let alias = builtin.aliases.iter().find(|(alias, _)| **alias == *name.as_str());
            let known = alias.map_or(name.as_str(), |(_, param)| param);
            let Some(i) = builtin.params.iter().position(|(n, _)| **n == *known) else {
                if builtin.named.is_some() {
                    named.push((name, value));
                    continue;
                }
                let mut error = *wrong(self, format!("{} has no parameter `{name}`", builtin.shown()));
                if let Some(near) = super::expr::closest(&name, builtin.params.iter().map(|(n, _)| &**n)) {
                    error = error.note(format!("did you mean `{near}`?"));
                }
                return Err(error.into());
            };
            if values[i].replace(value).is_some() {
                return Err(wrong(self, format!("{} is given `{name}` twice", builtin.shown())));
            }
        }
        let mut bound = Vec::with_capacity(n);
        for (value, (name, default)) in values.into_iter().zip(&builtin.params) {
            bound.push(match (value, default) {
                (Some(value), _) => value,
                (None, Some(default)) => Value::from_host(default.clone()),
                (None, None) => {
                    return Err(wrong(self, format!("{} needs an argument `{name}`", builtin.shown())));
                }
            });
        }
        Ok(Args { builtin: builtin.clone(), values: bound, rest, named })
    }

    // ---- jit functions --------------------------------------------------------------------------------------

    /// Binds arguments to a function's parameters; defaults are evaluated where the function lives.
    pub fn bind(
        &mut self,
        function: &Arc<JitFunction>,
        def: &StmtFunctionDef,
        args: CallArgs,
    ) -> Eval<Scope> {
        let p = &def.parameters;
        if let Some(kwarg) = &p.kwarg {
            return Err(self
                .error(format!(
                    "`{}` takes **{}, which is not supported in a kernel",
                    function.name, kwarg.name
                ))
                .note("name the parameters")
                .into());
        }
        let name = &function.name;
        let positional: Vec<_> = p.posonlyargs.iter().chain(p.args.iter()).collect();
        let mut scope = Scope::default();
        let mut extra = Vec::new();
        let given = args.positional.len();
        for (i, value) in args.positional.into_iter().enumerate() {
            match positional.get(i) {
                Some(param) => {
                    scope.insert(param.parameter.name.id.clone(), value);
                }
                None if p.vararg.is_some() => extra.push(value),
                None => {
                    return Err(self
                        .error(format!("`{name}` takes {} arguments but {given} are given", positional.len()))
                        .note(format!("it is defined as {}", signature_text(function, def)))
                        .into());
                }
            }
        }
        for (keyword, value) in args.keywords {
            let known =
                p.args.iter().chain(p.kwonlyargs.iter()).any(|param| param.parameter.name.id == keyword);
            if !known {
                let near = super::expr::closest(
                    &keyword,
                    p.iter_non_variadic_params().map(|x| x.parameter.name.as_str()),
                );
                let mut error = self
                    .error(format!("`{name}` has no parameter `{keyword}`"))
                    .note(format!("it is defined as {}", signature_text(function, def)));
                if let Some(near) = near {
                    error = error.note(format!("did you mean `{near}`?"));
                }
                return Err(error.into());
            }
            if scope.insert(keyword.clone(), value).is_some() {
                return Err(self.error(format!("`{name}` is given `{keyword}` twice")));
            }
        }
        for param in p.iter_non_variadic_params() {
            let key = &param.parameter.name.id;
            if scope.contains_key(key) {
                continue;
            }
            let default = self.host_default(function, key)?;
            let value = match (default, &param.default) {
                (Some(value), _) => Value::from_host(value),
                (None, Some(default)) => {
                    let range = self.range;
                    let loc = self.loc();
                    self.enter(function, Scope::default(), Some((loc, range)), String::new());
                    self.frame_mut().in_default = true;
                    self.frame_mut().constexpr = true;
                    let value = self.expr(default);
                    self.frames.pop();
                    self.range = range;
                    value?
                }
                (None, None) => {
                    return Err(self
                        .error(format!("`{name}` needs an argument `{key}`"))
                        .note(format!("it is defined as {}", signature_text(function, def)))
                        .into());
                }
            };
            scope.insert(key.clone(), value);
        }
        if let Some(vararg) = &p.vararg {
            scope.insert(vararg.name.id.clone(), Value::tuple(extra));
        }
        // The order of the parameters, whatever the order of the arguments.
        let mut ordered = Scope::default();
        for param in p.iter_non_variadic_params() {
            if let Some(value) = scope.swap_remove(&param.parameter.name.id) {
                ordered.insert(param.parameter.name.id.clone(), value);
            }
        }
        ordered.extend(scope);
        Ok(ordered)
    }

    fn host_default(&self, function: &Arc<JitFunction>, name: &str) -> Eval<Option<HostValue>> {
        if function.module.starts_with(crate::library::PACKAGE) {
            return Ok(None);
        }
        self.host.default_argument(function, name).map_err(|e| self.host_error(e))
    }

    pub fn call_jit(&mut self, function: &Arc<JitFunction>, args: CallArgs) -> Eval<Value> {
        let def = function.definition().cloned().map_err(|mut error| {
            error.callers.extend(self.error("").span.iter().cloned());
            error
        })?;
        let scope = self.bind(function, &def, args)?;
        match function.kind {
            FunctionKind::Kernel => {}
            FunctionKind::Constexpr | FunctionKind::Plain => {
                return self.call_at_compile_time(function, &def, scope).map(|(result, _)| result);
            }
        }
        let active = self.frames.iter().any(|f| f.function == *function);
        self.check_level_of(function)?;
        // Each warp that is a program of its own has its own copy of what it calls.
        let stays = function.marks.noinline && !self.is_warp_level();
        let specialization = if active || stays { specialization(&scope) } else { String::new() };
        if self.frames.len() > MAX_DEPTH {
            return Err(self.too_deep(function));
        }
        if active && self.frames.iter().any(|f| f.function == *function && f.specialization == specialization)
        {
            return Err(self
                .error(format!("`{}` calls itself", function.name))
                .note("kernels have no recursion: functions are inlined; write a loop")
                .into());
        }
        if stays {
            return self.call_noinline(function, &def, scope, specialization);
        }
        let (range, loc) = (self.range, self.loc());
        // A helper of a function in MLIR is one, too.
        let caller = self.frame().threads.filter(|_| !function.module.starts_with(PACKAGE));
        let active = caller.and_then(|_| self.frame().scope.get(&ACTIVE).cloned());
        self.enter(function, scope, Some((loc, range)), specialization);
        self.frame_mut().threads = caller;
        if let Some(active) = active {
            self.frame_mut().scope.insert(ACTIVE, active);
        }
        let result = self.run_function(&def.body);
        self.frames.pop();
        self.range = range;
        result
    }

    /// Calls that nest too deeply: mostly, but not always, those of a function that calls itself with other constants.
    fn too_deep(&self, function: &JitFunction) -> super::Error {
        let own = self.frames.iter().filter(|f| *f.function == *function).count();
        let message = match own {
            0 => format!("calls are nested more than {MAX_DEPTH} deep"),
            _ => format!("`{}` calls itself {own} deep: calls may be nested {MAX_DEPTH} deep", function.name),
        };
        self.error(message).note("functions are inlined; write a loop, or fewer layers of helpers").into()
    }

    /// Calls a function that stays a function of the module; it is emitted once for each specialization.
    fn call_noinline(
        &mut self,
        function: &Arc<JitFunction>,
        def: &StmtFunctionDef,
        scope: Scope,
        specialization: String,
    ) -> Eval<Value> {
        let key = format!("{}.{}({specialization})", function.module, function.name);
        let operands: Vec<tilewright_ir::Value> = scope
            .values()
            .flat_map(|v| v.leaves().into_iter().map(|t| t.value).collect::<Vec<_>>())
            .collect();
        if !self.noinline.contains_key(&key) {
            // While this one is evaluated, others may begin.
            let name = function.name.replace('.', "_");
            let mut symbol = format!("{name}__{}", self.noinline.len());
            for number in self.noinline.len() + 1.. {
                if self.module.function(&symbol).is_none() {
                    break;
                }
                symbol = format!("{name}__{number}");
            }
            let inputs: Vec<_> = operands.iter().map(|&v| self.module.value_type(v)).collect();
            let (outer, range, loc) = (self.block, self.range, self.loc());
            let func = self.begin_function(&symbol, &inputs, false);
            let mut args = self.module.block_args(self.block).to_vec().into_iter();
            let inner = scope
                .iter()
                .map(|(name, value)| {
                    let value = value.map_leaves(&mut |t| match args.next() {
                        Some(value) => Tensor { value, ..t.clone() },
                        None => t.clone(),
                    });
                    (name.clone(), value)
                })
                .collect();
            self.enter(function, inner, Some((loc, range)), specialization);
            let result = self.run_function(&def.body);
            self.range = def.name.range;
            let finished = result.inspect(|value| {
                let values: Vec<_> = value.leaves().iter().map(|t| t.value).collect();
                tt::Return::build(&mut builder!(self), &values);
                let results = values.iter().map(|&v| self.module.value_type(v)).collect();
                let ty = self.module.ty(TypeKind::Function { inputs, results });
                let attr = self.module.attr(tilewright_ir::AttrKind::Type(ty));
                self.module.set_attr(func, "function_type", attr);
            });
            self.frames.pop();
            self.range = range;
            self.block = outer;
            self.noinline.insert(key.clone(), (symbol, finished?));
        }
        let (symbol, template) = self.noinline[&key].clone();
        let types: Vec<_> = template.leaves().iter().map(|t| self.module.value_type(t.value)).collect();
        let call = tt::Call::build(&mut builder!(self), &operands, SymbolRef(symbol), &types);
        let mut results = call.results(&self.module).to_vec().into_iter();
        Ok(template.map_leaves(&mut |t| match results.next() {
            Some(value) => Tensor { value, ..t.clone() },
            None => t.clone(),
        }))
    }

    /// Evaluates a function that runs at compile time. Its variables are as they are at its end.
    pub fn call_at_compile_time(
        &mut self,
        function: &Arc<JitFunction>,
        def: &StmtFunctionDef,
        scope: Scope,
    ) -> Eval<(Value, Scope)> {
        if self.frames.len() > MAX_DEPTH {
            return Err(self.too_deep(function));
        }
        let (range, loc) = (self.range, self.loc());
        self.enter(function, scope, Some((loc, range)), String::new());
        self.frame_mut().constexpr = true;
        let result = self.run_function(&def.body);
        let scope = self.frames.pop().map(|frame| frame.scope).unwrap_or_default();
        self.range = range;
        Ok((result?, scope))
    }

    /// A run-time value where a compile-time constant is needed.
    pub fn needs_constexpr(&self, value: &Value, what: &str) -> super::Error {
        self.error(format!("{what} must be known at compile time, but it is a run-time value of type {value}"))
            .note(
                "make it a tl.constexpr parameter of the kernel; a variable keeps a constant only when declared so: \
                 n: tl.constexpr = …",
            )
            .into()
    }

    fn call_object(&mut self, object: &Arc<HostObject>, mut args: CallArgs) -> Eval<Value> {
        if let Some(fields) = &object.namedtuple_fields {
            let mut items: Vec<Option<Value>> = args.positional.into_iter().map(Some).collect();
            items.resize(fields.len().max(items.len()), None);
            for (name, value) in args.keywords {
                match fields.iter().position(|f| **f == *name.as_str()) {
                    Some(i) => items[i] = Some(value),
                    None => return Err(self.error(format!("{} has no field `{name}`", object.name))),
                }
            }
            if items.len() != fields.len() || items.iter().any(Option::is_none) {
                return Err(self.error(format!("{} has the fields {}", object.name, fields.join(", "))));
            }
            return Ok(Value::Tuple(Arc::new(TupleValue {
                class: Some((object.name.clone(), fields.clone())),
                items: items.into_iter().flatten().collect(),
            })));
        }
        if &*object.kind == "function" && self.frame().threads.is_some() {
            let helper = self.host.library("tle.raw._function._helper", &[HostValue::Object(object.clone())]);
            let helper = helper.map_err(|e| self.host_error(e))?;
            return self.call(Value::from_host(helper), args);
        }
        if !object.callable {
            return Err(self
                .error(format!(
                    "`{}` is a plain Python {}, which a kernel cannot call",
                    object.name, object.kind
                ))
                .note("decorate it with @tilewright.jit, or compute the value outside and pass it in")
                .into());
        }
        if !args.constant()
            && let Some(source) = self.host.source_of(object).map_err(|e| self.host_error(e))?
        {
            let (function, receiver) = source;
            args.positional.splice(0..0, receiver.map(Value::from_host));
            return self.call_jit(&function, args);
        }
        let constant = |e: &Self, v: &Value| {
            v.to_host().ok_or_else(|| e.needs_constexpr(v, &format!("an argument of `{}`", object.name)))
        };
        let positional: Vec<HostValue> =
            args.positional.iter().map(|v| constant(self, v)).collect::<Eval<_>>()?;
        let keywords: Vec<(Arc<str>, HostValue)> = args
            .keywords
            .iter()
            .map(|(name, v)| Ok((Arc::from(name.as_str()), constant(self, v)?)))
            .collect::<Eval<_>>()?;
        let result = self.host.call(object, &positional, &keywords).map_err(|e| self.host_error(e))?;
        Ok(Value::from_host(result))
    }

    // ---- classes of the library -----------------------------------------------------------------------------

    fn construct(&mut self, path: &str, args: CallArgs) -> Eval<Value> {
        let name = path.rsplit('.').next().unwrap_or(path);
        match name {
            "constexpr" => {
                let [value] = args.positional.as_slice() else {
                    return Err(self.error("tl.constexpr takes one value"));
                };
                if value.to_host().is_none() {
                    return Err(self.needs_constexpr(value, "the argument of tl.constexpr"));
                }
                Ok(value.clone())
            }
            "range" | "static_range" | "pipeline" | "parallel" => self.range_value(path, args),
            "tuple" => match args.positional.as_slice() {
                [value @ Value::Tuple(_)] => Ok(value.clone()),
                _ => Err(self.error("tl.tuple takes a tuple; write (a, b)")),
            },
            "dtype" => match args.positional.first() {
                Some(dtype @ Value::Const(HostValue::DType(_))) => Ok(dtype.clone()),
                Some(Value::Const(HostValue::Str(text))) => match crate::dtype::Scalar::parse(text) {
                    Some(scalar) => Ok(Value::Const(HostValue::DType(scalar.into()))),
                    None => Err(self.error(format!("unknown dtype '{text}'"))),
                },
                _ => Err(self.error("tl.dtype takes the name of a dtype")),
            },
            "pointer_type" => match args.positional.first() {
                Some(Value::Const(HostValue::DType(element))) => {
                    let mut ty = crate::dtype::PointerType {
                        element: element.clone(),
                        address_space: 1,
                        constant: false,
                    };
                    if let Some(Value::Const(HostValue::Int(space))) = args.positional.get(1) {
                        ty.address_space = u32::try_from(*space).unwrap_or(1);
                    }
                    let ty = DType::Pointer(ty.into()).shallow().map_err(|m| self.error(m))?;
                    Ok(Value::Const(HostValue::DType(ty)))
                }
                _ => Err(self.error("tl.pointer_type takes the dtype that it points to")),
            },
            "block_type" => match (args.positional.first(), args.positional.get(1)) {
                (Some(Value::Const(HostValue::DType(element))), Some(shape)) => {
                    let shape = self.shape_of(shape)?;
                    let shape = shape.iter().map(|&n| i64::from(n)).collect();
                    let ty = DType::block(element.clone(), shape).shallow().map_err(|m| self.error(m))?;
                    Ok(Value::Const(HostValue::DType(ty)))
                }
                _ => Err(self.error("tl.block_type takes an element dtype and a shape")),
            },
            "slice" => {
                let mut parts = args.positional.into_iter();
                let mut next = || parts.next().unwrap_or(Value::NONE);
                Ok(Value::Slice(Arc::new([next(), next(), next()])))
            }
            "condition" => {
                let args = self.bind_constructor(path, args)?;
                self.loop_stays |= self.bool_arg(&args, "disable_licm")?;
                Ok(args.get("arg1").clone())
            }
            "constexpr_type" => {
                let found = args.positional.first().and_then(constexpr_type);
                found.ok_or_else(|| self.error("tl.constexpr_type takes a constant"))
            }
            super::expr::MESH => self.make_mesh(args),
            layout if layouts::LAYOUT_CLASSES.contains(&layout) => self.make_layout(layout, args),
            // What a dict of the levels that are given says.
            "MeshConfig" if args.positional.is_empty() => {
                let named = |(name, axes): (Name, Value)| (Value::Const(HostValue::str(&name)), axes);
                Ok(Value::Dict(args.keywords.into_iter().map(named).collect()))
            }
            other => Err(self.error(format!("tl.{other} cannot be called in a kernel"))),
        }
    }

    /// `range(...)`, `tl.range(...)`, `tl.static_range(...)`, by the library's parameters of that class.
    pub fn range_value(&mut self, class: &str, args: CallArgs) -> Eval<Value> {
        let args = self.bind_constructor(class, args)?;
        let (start, end) = match args.optional("arg2") {
            None => (Value::int(0), args.get("arg1").clone()),
            Some(end) => (args.get("arg1").clone(), end.clone()),
        };
        let step = args.optional("step").cloned().unwrap_or(Value::int(1));
        let mut range = RangeValue {
            start,
            end,
            step,
            unrolled: class == STATIC_RANGE,
            num_stages: None,
            unroll_factor: None,
            flags: Vec::new(),
        };
        if class == REORDERED_RANGE {
            // A hint that changes nothing.
            self.bool_arg(&args, "reorder")?;
        }
        if class == PARALLEL_RANGE {
            range.flags.push(ascend::PARALLEL);
        }
        if !range.unrolled {
            range.num_stages = self.count_of_range(&args, "num_stages", 0, MAX_STAGES as i32)?;
            range.unroll_factor = self.count_of_range(&args, "loop_unroll_factor", 1, MAX_UNROLL)?;
            for (name, attr) in [
                ("disallow_acc_multi_buffer", "tt.disallow_acc_multi_buffer"),
                ("flatten", "tt.flatten"),
                ("warp_specialize", "tt.warp_specialize"),
                ("disable_licm", licm::DISABLED),
            ] {
                if self.bool_arg(&args, name)? {
                    if name == "warp_specialize" && self.is_warp_level() {
                        return Err(self.not_of_one_warp("tl.range(warp_specialize=True)"));
                    }
                    range.flags.push(attr);
                }
            }
        }
        Ok(Value::Range(Arc::new(range)))
    }

    fn count_of_range(&mut self, args: &Args, name: &str, least: i32, most: i32) -> Eval<Option<i32>> {
        if args.optional(name).is_none() {
            return Ok(None);
        }
        let n = self.int_arg(args, name)?;
        match i32::try_from(n).ok().filter(|n| (least..=most).contains(n)) {
            Some(n) => Ok(Some(n)),
            None => Err(self.error(format!("{name} must be {least} to {most}, not {n}"))),
        }
    }
}

/// Types and constants of the arguments: equal strings are the same specialization.
fn specialization(scope: &Scope) -> String {
    let mut out = String::new();
    for (i, (name, value)) in scope.iter().enumerate() {
        let _ = write!(out, "{}{name}: {value}", if i == 0 { "" } else { ", " });
        identities(value, &mut out);
    }
    out
}

/// What tells apart objects, functions and classes that print alike.
fn identities(value: &Value, out: &mut String) {
    fn of_host(value: &HostValue, out: &mut String) {
        match value {
            HostValue::Object(object) => {
                let _ = write!(out, " #{}", object.id);
            }
            HostValue::Jit(function) => {
                let _ = write!(out, " #{} of {}", function.id, function.module);
            }
            HostValue::Tuple(values) => values.iter().for_each(|value| of_host(value, out)),
            HostValue::NamedTuple(tuple) => tuple.values.iter().for_each(|value| of_host(value, out)),
            _ => {}
        }
    }
    match value {
        Value::Const(value) => of_host(value, out),
        Value::Aggregate(a) => {
            let _ = write!(out, " {}#{}", a.class.module, a.class.id);
            a.values().for_each(|field| identities(field, out));
        }
        Value::Tuple(tuple) => tuple.items.iter().for_each(|item| identities(item, out)),
        _ => {}
    }
}

/// `f(x, BLOCK: tl.constexpr, y=1)` as the source has it.
fn signature_text(function: &JitFunction, def: &StmtFunctionDef) -> String {
    let text = function.source.slice(def.parameters.range);
    let text: Vec<&str> = text.split_whitespace().collect();
    format!("{}{}", def.name, text.join(" "))
}

/// The type of a compile-time constant, of which two are equal if the constants are.
pub(super) fn constexpr_type(value: &Value) -> Option<Value> {
    Some(Value::from_host(HostValue::NamedTuple(Arc::new(NamedTuple {
        class: "constexpr_type".into(),
        fields: [Arc::from("value")].into(),
        values: vec![value.to_host()?],
    }))))
}
