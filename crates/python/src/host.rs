//! The front end's [`Host`] that asks CPython: what a kernel's source names outside itself.
//!
//! A host lives for one compilation. It notes everything that the kernel took from outside ([`Captures`]) with the place
//! that it came from, so that a later launch can see whether it has changed since.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Instant;

use pyo3::exceptions::{PyException, PyOverflowError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyBytes, PyCFunction, PyDict, PyFloat, PyInt, PyList, PyModule, PyString, PyTuple, PyType,
};
use rustc_hash::FxHashMap;

use tilewright_frontend::Span;
use tilewright_frontend::aggregate::AggregateMethod;
use tilewright_frontend::host::{NamedTuple, Origin, SourceOfObject};
use tilewright_frontend::{
    AggregateClass, Binding, DType, FunctionKind, Host, HostError, HostObject, HostValue, JitFunction, Scalar,
};

use crate::args;
use crate::captured::Captures;
use crate::interrupt::TICK;
use crate::jit::JitBase;
use crate::nesting::Level;

/// Asks CPython. Enters the interpreter for each question, so the compiler may run without holding it.
#[derive(Default)]
pub struct PyHost {
    /// Functions that were met, by [`JitFunction::id`].
    functions: RefCell<FxHashMap<u64, Py<JitBase>>>,
    /// Objects that were met, by [`HostObject::id`], which is their address: being kept alive keeps it theirs.
    objects: RefCell<FxHashMap<u64, Py<PyAny>>>,
    /// Classes that were met, by their address, with what keeps it theirs.
    classes: RefCell<FxHashMap<u64, Class>>,
    captures: RefCell<Captures>,
    /// Recursion of [`PyHost::value`], which a list that holds itself would not end.
    depth: Cell<u32>,
    /// What is to be raised in place of any error: see [`PyHost::take_exception`].
    exception: RefCell<Option<PyErr>>,
    /// When signals were last looked for.
    looked: Cell<Option<Instant>>,
}

// SAFETY: a host is used by one compilation, hence by one thread at a time; its Python references are touched only while
// attached to the interpreter (dropping them elsewhere is deferred by PyO3).
unsafe impl Send for PyHost {}

/// What an attribute or global is: its value, and whether it was wrapped in `tl.constexpr`.
struct Found {
    value: HostValue,
    constexpr: bool,
}

/// A class with what the front end knows of it.
type Class = (Py<PyAny>, Arc<AggregateClass>);

/// A function of a class as Python gives it: name, function, kind, and whether it takes no instance.
pub type Method<'py> = (String, Bound<'py, PyAny>, String, bool);

type Parts<'py> = (Vec<(String, Bound<'py, PyAny>)>, Vec<Method<'py>>);

impl PyHost {
    /// Makes `function` known, as the entry of a compilation must be.
    pub fn register(&self, function: &Bound<'_, JitBase>) -> PyResult<Arc<JitFunction>> {
        let known = JitBase::frontend(function)?;
        self.functions.borrow_mut().entry(known.id).or_insert_with(|| function.clone().unbind());
        Ok(known)
    }

    /// What ended the compilation that is no error of the kernel: `KeyboardInterrupt` and its like.
    pub fn take_exception(&self) -> Option<PyErr> {
        self.exception.borrow_mut().take()
    }

    /// An exception of Python code as an error of the kernel, unless it is one that programs do not catch.
    fn error(&self, py: Python<'_>, error: &PyErr) -> HostError {
        if !error.is_instance_of::<PyException>(py) {
            self.exception.borrow_mut().get_or_insert_with(|| error.clone_ref(py));
        }
        let name = error.get_type(py).name().map(|n| n.to_string()).unwrap_or_default();
        HostError::new(format!("{name}: {}", error.value(py)))
    }

    /// What the compilation captured.
    pub fn into_captures(self) -> Captures {
        self.captures.into_inner().finish()
    }

    /// A Python object as the front end sees it.
    pub fn value(&self, object: &Bound<'_, PyAny>) -> PyResult<HostValue> {
        self.depth.set(self.depth.get() + 1);
        let value = if self.depth.get() > 64 {
            Err(pyo3::exceptions::PyRecursionError::new_err(
                "a value that a kernel names is nested too deeply",
            ))
        } else {
            self.convert(object)
        };
        self.depth.set(self.depth.get() - 1);
        value
    }

    fn convert(&self, object: &Bound<'_, PyAny>) -> PyResult<HostValue> {
        let py = object.py();
        if object.is_none() {
            return Ok(HostValue::None);
        }
        if let Ok(value) = object.cast::<PyBool>() {
            return Ok(HostValue::Bool(value.is_true()));
        }
        if let Ok(value) = object.cast::<PyInt>() {
            return value.extract().map(HostValue::Int).map_err(|_| {
                let bits = object.call_method0(intern!(py, "bit_length"));
                let bits = bits.map_or_else(|_| "too many".to_string(), |bits| bits.to_string());
                PyOverflowError::new_err(format!("a constant of a kernel is an integer of {bits} bits"))
            });
        }
        if let Ok(value) = object.cast::<PyFloat>() {
            return Ok(HostValue::Float(value.value()));
        }
        if let Ok(value) = object.cast::<PyString>() {
            return Ok(HostValue::str(&value.to_cow()?));
        }
        if let Ok(value) = object.cast::<PyBytes>() {
            return Ok(HostValue::Bytes(value.as_bytes().into()));
        }
        if args::is_constexpr(object)? {
            return self.value(&object.getattr(intern!(py, "value"))?);
        }
        // It stands for the Python number that it is equal to.
        if args::is_numpy_scalar(object)? {
            return self.value(&object.call_method0(intern!(py, "item"))?);
        }
        if let Ok(items) = object.cast::<PyTuple>() {
            let values = items.iter().map(|i| self.value(&i)).collect::<PyResult<Vec<_>>>()?;
            return Ok(match object.getattr_opt(intern!(py, "_fields"))? {
                Some(fields) => {
                    let fields: Vec<String> = fields.extract()?;
                    HostValue::NamedTuple(Arc::new(NamedTuple {
                        class: object.get_type().name()?.to_string().into(),
                        fields: fields.iter().map(|f| f.as_str().into()).collect(),
                        values,
                    }))
                }
                None => HostValue::tuple(values),
            });
        }
        if let Ok(items) = object.cast::<PyList>() {
            return Ok(HostValue::tuple(items.iter().map(|i| self.value(&i)).collect::<PyResult<Vec<_>>>()?));
        }
        if let Some(dtype) = dtype(object)? {
            return Ok(HostValue::DType(dtype));
        }
        if let Ok(function) = object.cast::<JitBase>() {
            return Ok(HostValue::Jit(self.register(function)?));
        }
        if let Ok(module) = object.cast::<PyModule>() {
            let name = module.name()?.to_string();
            return Ok(match library_path(&name) {
                Some(path) => HostValue::Library(path.into()),
                None => self.object(object, "module", &name, false),
            });
        }
        self.function_or_object(object)
    }

    fn function_or_object(&self, object: &Bound<'_, PyAny>) -> PyResult<HostValue> {
        let py = object.py();
        let text = |name: &Bound<'_, PyString>| -> PyResult<Option<String>> {
            Ok(object.getattr_opt(name)?.and_then(|t| t.extract().ok()))
        };
        let module = text(intern!(py, "__module__"))?.unwrap_or_default();
        let name = text(intern!(py, "__name__"))?;
        // A method of an object is no function of the module.
        let owner = object.getattr_opt(intern!(py, "__self__"))?;
        let is_method = owner.is_some_and(|owner| !owner.is_instance_of::<PyModule>());
        if let Some(name) = &name {
            if let Some(path) = library_path(&module).filter(|_| !is_method) {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                return Ok(HostValue::Library(path.into()));
            }
            if module == "builtins" {
                return Ok(HostValue::Python(name.as_str().into()));
            }
        }
        if object.is_instance_of::<PyType>()
            && object.getattr_opt(intern!(py, "__triton_aggregate__"))?.is_some()
        {
            return Ok(HostValue::Class(self.class(object)?));
        }
        let kind = match object.cast::<PyType>() {
            Ok(_) => "class".to_string(),
            Err(_) => object.get_type().name()?.to_string(),
        };
        let shown = match name {
            Some(name) => name,
            None => shorten(object.repr().map(|r| r.to_string()).unwrap_or_else(|_| "?".to_string())),
        };
        let mut value = self.object(object, &kind, &shown, object.is_callable());
        if kind == "class"
            && let HostValue::Object(object_) = &mut value
            && let Some(fields) = object.getattr_opt(intern!(py, "_fields"))?
            && let Ok(fields) = fields.extract::<Vec<String>>()
            && object.cast::<PyType>()?.is_subclass_of::<PyTuple>()?
        {
            let with_fields = HostObject {
                namedtuple_fields: Some(fields.iter().map(|f| f.as_str().into()).collect()),
                ..(**object_).clone()
            };
            *object_ = Arc::new(with_fields);
        }
        Ok(value)
    }

    /// A class decorated with `@_aggregate`.
    fn class(&self, class: &Bound<'_, PyAny>) -> PyResult<Arc<AggregateClass>> {
        let py = class.py();
        let id = class.as_ptr() as u64;
        if let Some((_, known)) = self.classes.borrow().get(&id) {
            return Ok(known.clone());
        }
        let (fields, methods) = class_parts(class)?;
        let fields =
            fields.iter().map(|(name, annotation)| Ok((name.as_str().into(), self.value(annotation)?)));
        let fields = fields.collect::<PyResult<Vec<_>>>()?;
        let methods = methods.iter().map(|(name, function, kind, is_static)| {
            let function = self.register(function.cast::<JitBase>()?)?;
            let function = match kind.as_str() {
                "plain" => function.of_kind(FunctionKind::Plain),
                "constexpr" => function.of_kind(FunctionKind::Constexpr),
                _ => function,
            };
            Ok((name.as_str().into(), AggregateMethod { function, is_static: *is_static }))
        });
        let methods = methods.collect::<PyResult<Vec<_>>>()?;
        let text = |name: &Bound<'_, PyString>| class.getattr(name)?.extract::<String>();
        let module = text(intern!(py, "__module__"))?.into();
        let name = text(intern!(py, "__name__"))?.into();
        let made = Arc::new(AggregateClass { id, module, name, fields, methods });
        self.classes.borrow_mut().insert(id, (class.clone().unbind(), made.clone()));
        Ok(made)
    }

    fn object(&self, object: &Bound<'_, PyAny>, kind: &str, name: &str, callable: bool) -> HostValue {
        let id = object.as_ptr() as u64;
        self.objects.borrow_mut().entry(id).or_insert_with(|| object.clone().unbind());
        HostValue::Object(Arc::new(HostObject {
            id,
            kind: kind.into(),
            name: name.into(),
            callable,
            namedtuple_fields: None,
        }))
    }

    fn found(&self, object: &Bound<'_, PyAny>) -> PyResult<Found> {
        let constexpr = args::is_constexpr(object)? || runs_at_compile_time(object)?;
        Ok(Found { value: self.value(object)?, constexpr })
    }

    /// The Python object of a value: what a compile-time call is given.
    fn object_of<'py>(&self, py: Python<'py>, value: &HostValue) -> PyResult<Bound<'py, PyAny>> {
        let sequence = |values: &[HostValue]| -> PyResult<Bound<'py, PyTuple>> {
            PyTuple::new(py, values.iter().map(|v| self.object_of(py, v)).collect::<PyResult<Vec<_>>>()?)
        };
        let unknown = |what: &str| {
            Err(pyo3::exceptions::PyTypeError::new_err(format!(
                "{what} cannot be passed to a function that runs at compile time"
            )))
        };
        Ok(match value {
            HostValue::None => py.None().into_bound(py),
            HostValue::Bool(b) => PyBool::new(py, *b).to_owned().into_any(),
            HostValue::Int(i) => i.into_pyobject(py)?.into_any(),
            HostValue::Float(f) => PyFloat::new(py, *f).into_any(),
            HostValue::Str(s) => PyString::new(py, s).into_any(),
            HostValue::Bytes(b) => PyBytes::new(py, b).into_any(),
            HostValue::Tuple(values) => sequence(values)?.into_any(),
            HostValue::NamedTuple(tuple) => sequence(&tuple.values)?.into_any(),
            HostValue::Python(name) => py.import("builtins")?.getattr(&**name)?,
            HostValue::DType(DType::Scalar(scalar)) => {
                py.import("tilewright.language.core")?.getattr("dtype")?.call1((scalar.name(),))?
            }
            HostValue::DType(other) => return unknown(&format!("the type {other}")),
            HostValue::Library(path) => {
                let (module, name) = path.rsplit_once('.').unwrap_or(("", path));
                let module =
                    if module.is_empty() { "tilewright".into() } else { format!("tilewright.{module}") };
                py.import(module.as_str())?.getattr(name)?
            }
            HostValue::Jit(function) => match self.functions.borrow().get(&function.id) {
                Some(function) => function.bind(py).clone().into_any(),
                None => return unknown(&function.name),
            },
            HostValue::Class(class) => match self.classes.borrow().get(&class.id) {
                Some((class, _)) => class.bind(py).clone(),
                None => return unknown(&class.name),
            },
            HostValue::Object(object) => match self.objects.borrow().get(&object.id) {
                Some(object) => object.bind(py).clone(),
                None => return unknown(&object.name),
            },
        })
    }

    fn lookup_attached(
        &self,
        py: Python<'_>,
        function: &Arc<JitFunction>,
        name: &str,
    ) -> PyResult<Option<Binding>> {
        let Some(jit) = self.functions.borrow().get(&function.id).map(|f| f.clone_ref(py)) else {
            return Ok(None);
        };
        let python = jit.get().function.bind(py);
        // 1. Variables of enclosing functions.
        let free = python.getattr(intern!(py, "__code__"))?.getattr(intern!(py, "co_freevars"))?;
        let free = free.cast::<PyTuple>()?;
        if let Some(at) = free.iter().position(|n| n.cast::<PyString>().is_ok_and(|n| n == name)) {
            let cells = python.getattr(intern!(py, "__closure__"))?;
            let cell = cells.get_item(at)?;
            // A cell that is not filled yet: the enclosing function assigns the name after the kernel's definition.
            let Ok(object) = cell.getattr(intern!(py, "cell_contents")) else { return Ok(None) };
            let found = self.found(&object)?;
            self.captures.borrow_mut().cell(&cell, name, &function.name, &object, found.value.clone());
            return Ok(Some(Binding {
                value: found.value,
                constexpr: found.constexpr,
                origin: Origin::Closure,
            }));
        }
        // 2. The module's globals.
        let globals = python.getattr(intern!(py, "__globals__"))?;
        let globals = globals.cast::<PyDict>()?;
        if let Some(object) = globals.get_item(name)? {
            let found = self.found(&object)?;
            let constexpr = found.constexpr || annotated_constexpr(globals, name)?;
            let value = found.value.clone();
            self.captures.borrow_mut().global(globals, name, &function.name, Some(&object), value);
            return Ok(Some(Binding { value: found.value, constexpr, origin: Origin::Global }));
        }
        // 3. Builtins.
        match py.import(intern!(py, "builtins"))?.getattr_opt(name)? {
            Some(object) => {
                let value = match self.value(&object)? {
                    // Not all say that they are of this module: `open` is of another, and `exit` an object.
                    HostValue::Object(_) => HostValue::Python(name.into()),
                    value => value,
                };
                // A global of that name would hide it.
                self.captures.borrow_mut().global(globals, name, &function.name, None, HostValue::None);
                Ok(Some(Binding { value, constexpr: false, origin: Origin::Builtin }))
            }
            None => Ok(None),
        }
    }
}

/// What warnings a file gave, as Python keeps it for each module: by default a place warns once, however often a loop that is unrolled comes
/// by, and however many kernels are made of it.
fn said<'py>(py: Python<'py>, file: &str) -> PyResult<Bound<'py, PyAny>> {
    static SAID: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    SAID.get_or_init(py, || PyDict::new(py).unbind())
        .bind(py)
        .call_method1("setdefault", (file, PyDict::new(py)))
}

impl Host for PyHost {
    fn warn(&self, message: &str, at: &Span) {
        let warned = Python::attach(|py| {
            let kind = py.get_type::<pyo3::exceptions::PyUserWarning>();
            let options = PyDict::new(py);
            options.set_item("registry", said(py, &at.file)?)?;
            py.import("warnings")?
                .call_method("warn_explicit", (message, kind, &at.file, at.line), Some(&options))
                .map(|_| ())
        });
        // A program may have its warnings raised.
        if let Err(error) = warned {
            self.exception.borrow_mut().get_or_insert(error);
        }
    }

    fn interrupted(&self) -> bool {
        if self.exception.borrow().is_some() {
            return true;
        }
        let now = Instant::now();
        if self.looked.get().is_some_and(|then| now - then < TICK) {
            return false;
        }
        self.looked.set(Some(now));
        match Python::attach(|py| py.check_signals()) {
            Ok(()) => false,
            Err(error) => {
                self.exception.replace(Some(error));
                true
            }
        }
    }

    fn lookup(&self, function: &Arc<JitFunction>, name: &str) -> Result<Option<Binding>, HostError> {
        Python::attach(|py| self.lookup_attached(py, function, name).map_err(|e| self.error(py, &e)))
    }

    fn attribute(&self, object: &HostObject, name: &str) -> Result<Option<HostValue>, HostError> {
        Python::attach(|py| {
            let Some(holder) = self.objects.borrow().get(&object.id).map(|o| o.clone_ref(py)) else {
                return Ok(None);
            };
            let read = || -> PyResult<Option<HostValue>> {
                let found = holder.bind(py).getattr_opt(name)?;
                let value = found.as_ref().map(|found| self.value(found)).transpose()?;
                let seen = value.clone().unwrap_or(HostValue::None);
                let text = &*object.name;
                self.captures.borrow_mut().attribute(holder.bind(py), name, text, found.as_ref(), seen);
                Ok(value)
            };
            read().map_err(|e| self.error(py, &e))
        })
    }

    fn is_instance(&self, object: &HostObject, class: &HostObject) -> Result<bool, HostError> {
        Python::attach(|py| {
            let held = |of: &HostObject| self.objects.borrow().get(&of.id).map(|o| o.clone_ref(py));
            let (Some(object), Some(class)) = (held(object), held(class)) else { return Ok(false) };
            object.bind(py).is_instance(class.bind(py)).map_err(|e| self.error(py, &e))
        })
    }

    fn constant_attribute(&self, constant: &HostValue, name: &str) -> Result<Option<HostValue>, HostError> {
        Python::attach(|py| {
            let read = || -> PyResult<Option<HostValue>> {
                let found = self.object_of(py, constant)?.getattr_opt(name)?;
                found.map(|found| self.value(&found)).transpose()
            };
            read().map_err(|e| self.error(py, &e))
        })
    }

    fn default_argument(
        &self,
        function: &Arc<JitFunction>,
        parameter: &str,
    ) -> Result<Option<HostValue>, HostError> {
        Python::attach(|py| {
            let Some(jit) = self.functions.borrow().get(&function.id).map(|f| f.clone_ref(py)) else {
                return Ok(None);
            };
            let read = || -> PyResult<Option<HostValue>> {
                // Of Python's own signature: a helper may have parameters that no kernel has.
                let signature = jit.bind(py).getattr(intern!(py, "signature"))?;
                let params = signature.getattr(intern!(py, "parameters"))?;
                let param = params.call_method1(intern!(py, "get"), (parameter,))?;
                if param.is_none() {
                    return Ok(None);
                }
                let default = param.getattr(intern!(py, "default"))?;
                if default.is(&param.getattr(intern!(py, "empty"))?) {
                    return Ok(None);
                }
                let (value, name) = (self.value(&default)?, &*function.name);
                self.captures.borrow_mut().parameter(parameter, name, &default, value.clone());
                Ok(Some(value))
            };
            read().map_err(|e| self.error(py, &e))
        })
    }

    fn call(
        &self,
        callee: &HostObject,
        args: &[HostValue],
        kwargs: &[(Arc<str>, HostValue)],
    ) -> Result<HostValue, HostError> {
        Python::attach(|py| {
            let Some(function) = self.objects.borrow().get(&callee.id).map(|o| o.clone_ref(py)) else {
                return Err(HostError::new(format!("`{}` is not known any more", callee.name)));
            };
            let run = || -> PyResult<HostValue> {
                let args = args.iter().map(|a| self.object_of(py, a)).collect::<PyResult<Vec<_>>>()?;
                let named = PyDict::new(py);
                for (name, value) in kwargs {
                    named.set_item(&**name, self.object_of(py, value)?)?;
                }
                let (function, args) = (function.bind(py), PyTuple::new(py, args)?);
                let result = self.value(&function.call(&args, Some(&named))?)?;
                self.captures.borrow_mut().call(self, function, args, named, result.clone())?;
                Ok(result)
            };
            run().map_err(|e| self.error(py, &e))
        })
    }

    fn source_of(&self, callee: &HostObject) -> Result<Option<SourceOfObject>, HostError> {
        Python::attach(|py| {
            let Some(object) = self.objects.borrow().get(&callee.id).map(|o| o.clone_ref(py)) else {
                return Ok(None);
            };
            let find = || -> PyResult<Option<SourceOfObject>> {
                let object = object.bind(py);
                let receiver = object.getattr_opt(intern!(py, "__self__"))?;
                let function = match object.getattr_opt(intern!(py, "__func__"))? {
                    Some(function) => function,
                    None => object.clone(),
                };
                if function.getattr_opt(intern!(py, "__constexpr_function__"))?.is_none() {
                    return Ok(None);
                }
                let function = function.call_method0(intern!(py, "_source"))?;
                let function = self.register(function.cast::<JitBase>()?)?.of_kind(FunctionKind::Constexpr);
                Ok(Some((function, receiver.map(|of| self.value(&of)).transpose()?)))
            };
            find().map_err(|e| self.error(py, &e))
        })
    }

    fn library(&self, path: &str, args: &[HostValue]) -> Result<HostValue, HostError> {
        Python::attach(|py| {
            let run = || -> PyResult<HostValue> {
                let function = self.object_of(py, &HostValue::Library(path.into()))?;
                let args = args.iter().map(|a| self.object_of(py, a)).collect::<PyResult<Vec<_>>>()?;
                self.value(&function.call1(PyTuple::new(py, args)?)?)
            };
            run().map_err(|e| self.error(py, &e))
        })
    }

    fn must_use(&self, function: &Arc<JitFunction>) -> Result<Option<String>, HostError> {
        Python::attach(|py| {
            let Some(jit) = self.functions.borrow().get(&function.id).map(|f| f.clone_ref(py)) else {
                return Ok(None);
            };
            let read = || -> PyResult<Option<String>> {
                let mark = jit.bind(py).getattr_opt(intern!(py, "_must_use_result"))?;
                let Some(mark) = mark.map_or(Ok(None), |m| Ok::<_, PyErr>(m.is_truthy()?.then_some(m)))?
                else {
                    return Ok(None);
                };
                Ok(Some(mark.cast::<PyString>().map(ToString::to_string).unwrap_or_default()))
            };
            read().map_err(|e| self.error(py, &e))
        })
    }

    fn names(&self, function: &Arc<JitFunction>) -> Vec<String> {
        Python::attach(|py| {
            let Some(jit) = self.functions.borrow().get(&function.id).map(|f| f.clone_ref(py)) else {
                return Vec::new();
            };
            let read = || -> PyResult<Vec<String>> {
                let python = jit.get().function.bind(py);
                let globals = python.getattr(intern!(py, "__globals__"))?;
                let mut names: Vec<String> = python
                    .getattr(intern!(py, "__code__"))?
                    .getattr(intern!(py, "co_freevars"))?
                    .extract()?;
                names.extend(globals.cast::<PyDict>()?.keys().iter().filter_map(|k| k.extract().ok()));
                Ok(names)
            };
            read().unwrap_or_default()
        })
    }
}

/// The fields with their annotations, and the functions of a class decorated with `@_aggregate`.
fn class_parts<'py>(class: &Bound<'py, PyAny>) -> PyResult<Parts<'py>> {
    let py = class.py();
    py.import(intern!(py, "tilewright.runtime.aggregate"))?.call_method1("parts", (class,))?.extract()
}

/// The functions of a class decorated with `@_aggregate`.
pub fn class_methods<'py>(class: &Bound<'py, PyAny>) -> PyResult<Vec<Method<'py>>> {
    Ok(class_parts(class)?.1)
}

/// Whether the module declares `NAME: tl.constexpr = …`.
/// Whether a kernel may call it by its own name: `@constexpr_function` marks such functions; those of Python's `math` give the
/// same at any time.
fn runs_at_compile_time(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    if object.getattr_opt(intern!(py, "__constexpr_function__"))?.is_some() {
        return Ok(true);
    }
    if !object.is_instance_of::<PyCFunction>() {
        return Ok(false);
    }
    let module = object.getattr_opt(intern!(py, "__module__"))?;
    Ok(module.is_some_and(|module| module.extract::<String>().is_ok_and(|name| name == "math")))
}

fn annotated_constexpr(globals: &Bound<'_, PyDict>, name: &str) -> PyResult<bool> {
    let Some(annotations) = globals.get_item("__annotations__")? else { return Ok(false) };
    let Ok(annotations) = annotations.cast::<PyDict>() else { return Ok(false) };
    match annotations.get_item(name)? {
        // A class, or its name where the module postpones annotations.
        Some(annotation) => Ok(annotation.str()?.to_string().contains("constexpr")),
        None => Ok(false),
    }
}

/// The path inside the package of a module's name; `None` for other packages.
fn library_path(module: &str) -> Option<&str> {
    for package in ["tilewright", "triton"] {
        if let Some(rest) = module.strip_prefix(package) {
            if rest.is_empty() {
                return Some("");
            }
            if let Some(path) = rest.strip_prefix('.') {
                return Some(path);
            }
        }
    }
    None
}

/// A `tl.dtype` as the front end's type.
pub fn dtype(object: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let py = object.py();
    let core = py.import(intern!(py, "tilewright.language.core"))?;
    if !object.is_instance(&core.getattr(intern!(py, "dtype"))?)? {
        return Ok(None);
    }
    let element = || -> PyResult<Option<DType>> {
        let _level = Level::enter(py, c" in a dtype")?;
        dtype(&object.getattr(intern!(py, "element_ty"))?)
    };
    let shallow = |dtype: Option<DType>| {
        dtype.map(DType::shallow).transpose().map_err(pyo3::exceptions::PyRecursionError::new_err)
    };
    if object.is_instance(&core.getattr(intern!(py, "pointer_type"))?)? {
        let constant = object.getattr(intern!(py, "const"))?.is_truthy()?;
        let address_space = object.getattr(intern!(py, "address_space"))?.extract()?;
        return shallow(element()?.map(|element| {
            DType::Pointer(Arc::new(tilewright_frontend::dtype::PointerType {
                element,
                address_space,
                constant,
            }))
        }));
    }
    if object.is_instance(&core.getattr(intern!(py, "block_type"))?)? {
        let shape: Vec<i64> = object
            .getattr(intern!(py, "shape"))?
            .try_iter()?
            .map(|extent| args::unwrapped(&extent?)?.extract())
            .collect::<PyResult<_>>()?;
        return shallow(element()?.map(|element| DType::block(element, shape)));
    }
    let name = object.getattr(intern!(py, "name"))?.to_string();
    Ok(Scalar::parse(&name).map(DType::Scalar))
}

/// What `tl.dtype` knows of each scalar type, by name: its bits, and for a float those of the mantissa and the exponent's bias.
pub fn scalar_types(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let types = PyDict::new(py);
    for s in Scalar::ALL {
        let float = s.is_float().then(|| (s.mantissa_bits(), s.exponent_bias()));
        types.set_item(s.name(), (s.bits(), float))?;
    }
    Ok(types)
}

/// A Python exception as the front end's error: its type and text.
fn shorten(text: String) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
