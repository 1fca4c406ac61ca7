//! What a compiled kernel took from its surroundings, so that a launch notices where that has changed since.
//!
//! A kernel keeps what it was compiled with: constants, but also functions, aliases of functions and modules, and what a
//! compile-time function read. A launch that would run code of yesterday's values is an error.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyList, PyModule, PySet, PyString, PyTuple, PyType};
use rustc_hash::FxHashSet;

use tilewright_frontend::HostValue;

use crate::args;
use crate::errors::Optional;
use crate::host::{PyHost, class_methods};
use crate::jit::JitBase;
use crate::wrong_call;

/// Where something was found.
enum Place {
    /// A name of a namespace.
    Global(Py<PyDict>, Py<PyString>),
    /// A variable of an enclosing function.
    Cell(Py<PyAny>),
    /// An attribute of a module, a class or another object.
    Attribute(Py<PyAny>, Py<PyString>),
    /// A default of a parameter, which stays the same object.
    Held(Py<PyAny>),
}

impl Place {
    /// What is there now.
    #[inline]
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self {
            Place::Global(namespace, name) => namespace.bind(py).get_item(name),
            Place::Cell(cell) => Ok(cell.bind(py).getattr(intern!(py, "cell_contents")).ok()),
            Place::Attribute(object, name) => object.bind(py).getattr_opt(name),
            Place::Held(object) => Ok(Some(object.bind(py).clone())),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Place::Global(..) => "global variable",
            Place::Cell(_) => "variable",
            Place::Attribute(..) => "attribute",
            Place::Held(_) => "default of parameter",
        }
    }

    fn container(&self) -> &Py<PyAny> {
        match self {
            Place::Global(namespace, _) => namespace.as_any(),
            Place::Cell(object) | Place::Attribute(object, _) | Place::Held(object) => object,
        }
    }
}

/// One thing that a kernel took.
struct Captured {
    place: Place,
    /// Name for messages.
    text: Box<str>,
    function: Box<str>,
    /// What was there; `None` where a builtin of the same name was meant, or an attribute was asked for in vain.
    was: Option<Py<PyAny>>,
    /// How the front end saw it.
    value: HostValue,
    /// The same object always means the same: it cannot be changed in place.
    fixed: bool,
    /// What a constexpr held: it may be given another value.
    content: Option<Py<PyAny>>,
    /// A copy of a dict or the like, which can, and which the front end sees only as an object.
    copy: Option<Py<PyAny>>,
}

impl Captured {
    /// Shows the collector what is held.
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.place.container())?;
        visit.call(&self.was)?;
        visit.call(&self.content)?;
        visit.call(&self.copy)
    }

    /// An error where there is something else now than when the kernel was compiled.
    #[inline]
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let now = self.place.read(py)?;
        match (&now, &self.was) {
            (Some(now), Some(was)) if self.fixed && now.is(was) && self.holds_the_same(now)? => Ok(()),
            (None, None) => Ok(()),
            (Some(now), Some(was)) if same_method(now, was.bind(py))? => Ok(()),
            _ => self.compare(py, now),
        }
    }

    #[inline]
    fn holds_the_same(&self, constexpr: &Bound<'_, PyAny>) -> PyResult<bool> {
        match &self.content {
            Some(content) => Ok(constexpr.getattr(intern!(constexpr.py(), "value"))?.is(content)),
            None => Ok(true),
        }
    }

    #[cold]
    fn compare(&self, py: Python<'_>, now: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        if let (Some(now), Some(was)) = (&now, &self.was)
            && self.means_the_same(now, was.bind(py))?
        {
            return Ok(());
        }
        let shown = |object: &Bound<'_, PyAny>| object.repr().map(|text| text.to_string());
        let was = match (&self.copy, &self.was) {
            _ if let Some(content) = &self.content => format!("was constexpr[{}] ", shown(content.bind(py))?),
            (Some(was), _) | (None, Some(was)) if self.fixed || self.copy.is_some() => {
                format!("was {} ", shown(was.bind(py))?)
            }
            (_, Some(_)) => format!("was {} ", self.value),
            (_, None) => "was not there ".to_string(),
        };
        let is = match &now {
            Some(now) => format!("is now {}", shown(now)?),
            None => "is gone".to_string(),
        };
        let is = if was.trim_start_matches("was ").trim_end() == is.trim_start_matches("is now ") {
            "is now another one".to_string()
        } else {
            is
        };
        Err(wrong_call::runtime_error(
            format!(
                "the {} '{}', which kernel '{}' uses, {was}when the kernel was compiled and {is}",
                self.place.kind(),
                self.text,
                self.function
            ),
            "a kernel keeps the value it was compiled with: pass it as a tl.constexpr argument if it changes",
        ))
    }

    /// Whether what is there now would compile to the same.
    fn means_the_same(&self, now: &Bound<'_, PyAny>, was: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = now.py();
        if let Some(copy) = &self.copy {
            let same = now.get_type().is(copy.bind(py).get_type());
            return Ok(same && now.eq(copy).optional(py)?.unwrap_or(false));
        }
        let Some(value) = PyHost::default().value(now).optional(py)? else { return Ok(false) };
        if value == self.value {
            return Ok(true);
        }
        Ok(match (&self.value, &value) {
            (HostValue::Jit(_), HostValue::Jit(_)) => {
                let (now, was) = (now.cast::<JitBase>()?.get(), was.cast::<JitBase>()?.get());
                now.same_as(was) && same_function(now.function.bind(py), was.function.bind(py))?
            }
            // A class of the same source, as when a notebook's cell is run again.
            (HostValue::Class(before), HostValue::Class(after)) => {
                let same = before.name == after.name && before.fields == after.fields;
                same && same_class(now, was)?
            }
            (HostValue::Object(_), HostValue::Object(_)) => {
                let kinds = [now.get_type(), was.get_type()];
                same_function(now, was)?
                    // Methods of one object are equal, and objects that say so.
                    || kinds[0].is(&kinds[1]) && now.eq(was).unwrap_or(false)
                    // A property may make its object anew each time it is read: what the kernel then asked that for is
                    // captured, too.
                    || matches!(&self.place, Place::Attribute(object, _)
                        if !object.bind(py).is_instance_of::<PyModule>() && !object.bind(py).is_instance_of::<PyType>())
                        && kinds[0].is(&kinds[1])
                        && !behind_mark(now)?.is_instance_of::<PyFunction>()
            }
            _ => false,
        })
    }
}

/// Whether both are one function of one object: an attribute makes a method anew each time that it is read.
fn same_method(now: &Bound<'_, PyAny>, was: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = now.py();
    if now.is(was) || !now.get_type().is(was.get_type()) {
        return Ok(false);
    }
    for part in [intern!(py, "__func__"), intern!(py, "__self__")] {
        match (now.getattr_opt(part)?, was.getattr_opt(part)?) {
            (Some(now), Some(was)) if now.is(&was) => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// The Python function of one that `@constexpr_function` marked; anything else as it is.
fn behind_mark<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    match object.getattr_opt(intern!(py, "__constexpr_function__"))? {
        Some(_) => object.getattr(intern!(py, "fn")),
        None => Ok(object.clone()),
    }
}

/// Whether two classes of kernels have the same fields and functions.
fn same_class(now: &Bound<'_, PyAny>, was: &Bound<'_, PyAny>) -> PyResult<bool> {
    let (now, was) = (class_methods(now)?, class_methods(was)?);
    if now.len() != was.len() {
        return Ok(false);
    }
    for ((name, f, kind, is_static), (other, g, of_kind, of_class)) in now.iter().zip(&was) {
        let py = f.py();
        let (f, g) = (f.cast::<JitBase>()?.get(), g.cast::<JitBase>()?.get());
        let same = (name, kind, is_static) == (other, of_kind, of_class) && f.same_as(g);
        if !same || !same_function(f.function.bind(py), g.function.bind(py))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether two functions were made by the same `def`, as when a notebook's cell is run again.
fn same_function(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = a.py();
    let (a, b) = (&behind_mark(a)?, &behind_mark(b)?);
    if !a.is_instance_of::<PyFunction>() || !b.is_instance_of::<PyFunction>() {
        return Ok(false);
    }
    let globals = intern!(py, "__globals__");
    let (code, closure) = (intern!(py, "__code__"), intern!(py, "__closure__"));
    if !a.getattr(globals)?.is(&b.getattr(globals)?)
        || !a.getattr(closure)?.is_none()
        || !b.getattr(closure)?.is_none()
        || !a.getattr(code)?.eq(b.getattr(code)?)?
    {
        return Ok(false);
    }
    for defaults in [intern!(py, "__defaults__"), intern!(py, "__kwdefaults__")] {
        let (a, b) = (a.getattr(defaults)?, b.getattr(defaults)?);
        // 0 and 0.0 are equal, and print differently.
        if !a.eq(&b).optional(a.py())?.unwrap_or(false) || a.repr()?.to_string() != b.repr()?.to_string() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether an object cannot change in place.
fn is_fixed(object: &Bound<'_, PyAny>) -> bool {
    if let Ok(items) = object.cast::<PyTuple>() {
        return items.iter().all(|item| is_fixed(&item));
    }
    if args::is_constexpr(object).unwrap_or(false) {
        return object.getattr(intern!(object.py(), "value")).is_ok_and(|value| is_fixed(&value));
    }
    !(object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyDict>()
        || object.is_instance_of::<PySet>())
}

/// Whether an object, of a class of the package's own that says so, never changes, nor its methods.
fn is_unchanging(object: &Bound<'_, PyAny>) -> bool {
    let class = object.get_type();
    let says = class.getattr_opt(intern!(object.py(), "_unchanging")).ok().flatten();
    let own = || class.module().is_ok_and(|name| name.to_string().starts_with("tilewright."));
    says.is_some_and(|says| says.is_truthy().unwrap_or(false)) && own()
}

/// What a constexpr holds.
fn content_of(object: &Bound<'_, PyAny>) -> Option<Py<PyAny>> {
    let constexpr = args::is_constexpr(object).unwrap_or(false);
    constexpr.then(|| object.getattr(intern!(object.py(), "value")).ok())?.map(Bound::unbind)
}

/// A compile-time function: what it was called with and gave, and what it and those that it calls read.
struct Called {
    function: Py<PyAny>,
    reads: Captures,
    calls: Vec<Call>,
}

/// A call of a compile-time function.
struct Call {
    args: Py<PyTuple>,
    kwargs: Py<PyDict>,
    result: HostValue,
}

impl Called {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)?;
        self.reads.traverse(visit)?;
        self.calls.iter().try_for_each(|call| {
            visit.call(&call.args)?;
            visit.call(&call.kwargs)
        })
    }

    /// What it reads may change, its own notes for example, as long as it gives the same.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let Err(changed) = self.reads.check(py) else { return Ok(()) };
        for call in &self.calls {
            let now = self.function.bind(py).call(call.args.bind(py), Some(call.kwargs.bind(py)));
            let now = now.and_then(|now| PyHost::default().value(&now)).optional(py)?;
            if now.is_none_or(|now| now != call.result) {
                return Err(changed);
            }
        }
        Ok(())
    }
}

/// What a compilation took.
#[derive(Default)]
pub struct Captures {
    list: Vec<Captured>,
    called: Vec<Called>,
    /// What is in the list: container and name.
    known: FxHashSet<(usize, String)>,
}

impl Captures {
    /// Shows the collector what is held.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.list.iter().try_for_each(|captured| captured.traverse(visit))?;
        self.called.iter().try_for_each(|called| called.traverse(visit))
    }

    /// An error where something has changed so that the kernel would be another one.
    #[inline]
    pub fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.list.iter().try_for_each(|captured| captured.check(py))?;
        self.called.iter().try_for_each(|called| called.check(py))
    }

    /// The compilation is over: forgets what only that needed.
    pub fn finish(mut self) -> Self {
        self.known = FxHashSet::default();
        self.list.shrink_to_fit();
        self
    }

    fn add(
        &mut self,
        place: Place,
        text: &str,
        function: &str,
        was: Option<&Bound<'_, PyAny>>,
        value: HostValue,
    ) {
        if !self.known.insert((place.container().as_ptr() as usize, text.to_string())) {
            return;
        }
        let fixed = was.is_none_or(is_fixed);
        let copy = match was {
            Some(was) if !fixed && matches!(value, HostValue::Object(_)) => {
                let copied = was.py().import("copy").and_then(|copy| copy.call_method1("deepcopy", (was,)));
                copied.ok().map(Bound::unbind)
            }
            _ => None,
        };
        self.list.push(Captured {
            place,
            text: text.into(),
            function: function.into(),
            was: was.map(|was| was.clone().unbind()),
            content: was.and_then(content_of),
            fixed: fixed || (copy.is_none() && matches!(value, HostValue::Object(_))),
            value,
            copy,
        });
    }

    /// A name of a module; `was` is none where the module had no such name and a builtin was meant.
    pub fn global(
        &mut self,
        namespace: &Bound<'_, PyDict>,
        name: &str,
        function: &str,
        was: Option<&Bound<'_, PyAny>>,
        value: HostValue,
    ) {
        let key = PyString::intern(namespace.py(), name).unbind();
        self.add(Place::Global(namespace.clone().unbind(), key), name, function, was, value);
    }

    /// A variable of an enclosing function.
    pub fn cell(
        &mut self,
        cell: &Bound<'_, PyAny>,
        name: &str,
        function: &str,
        was: &Bound<'_, PyAny>,
        value: HostValue,
    ) {
        self.add(Place::Cell(cell.clone().unbind()), name, function, Some(was), value);
    }

    /// An attribute; `was` is none where there was none. Those of objects that never change are not looked at again.
    pub fn attribute(
        &mut self,
        object: &Bound<'_, PyAny>,
        name: &str,
        function: &str,
        was: Option<&Bound<'_, PyAny>>,
        value: HostValue,
    ) {
        if is_unchanging(object) {
            return;
        }
        let key = PyString::intern(object.py(), name).unbind();
        self.add(Place::Attribute(object.clone().unbind(), key), name, function, was, value);
    }

    /// A default of a parameter.
    pub fn parameter(&mut self, name: &str, function: &str, was: &Bound<'_, PyAny>, value: HostValue) {
        if !is_fixed(was) {
            self.add(Place::Held(was.clone().unbind()), name, function, Some(was), value);
        }
    }

    /// A call of a compile-time function, after it.
    pub fn call(
        &mut self,
        host: &PyHost,
        function: &Bound<'_, PyAny>,
        args: Bound<'_, PyTuple>,
        kwargs: Bound<'_, PyDict>,
        result: HostValue,
    ) -> PyResult<()> {
        // (Its arguments are constants.)
        if function.getattr_opt(intern!(function.py(), "__self__"))?.is_some_and(|of| is_unchanging(&of)) {
            return Ok(());
        }
        let call = Call { args: args.unbind(), kwargs: kwargs.unbind(), result };
        if let Some(called) = self.called.iter_mut().find(|called| called.function.is(function)) {
            called.calls.push(call);
            return Ok(());
        }
        let reads = Captures::read_by(host, function)?;
        self.called.push(Called { function: function.clone().unbind(), reads, calls: vec![call] });
        Ok(())
    }

    /// What a Python function and those that it calls read.
    fn read_by(host: &PyHost, function: &Bound<'_, PyAny>) -> PyResult<Captures> {
        let py = function.py();
        let mut captures = Captures::default();
        let reads = py.import("tilewright.runtime.reads")?.call_method1("reads", (function,))?;
        let value = |was: &Bound<'_, PyAny>| match host.value(was) {
            Ok(value) => value,
            // A number that the front end cannot hold, say: told apart by what it prints.
            Err(_) => HostValue::str(&was.repr().map(|r| r.to_string()).unwrap_or_default()),
        };
        for read in reads.try_iter()? {
            let (container, name, by): (Bound<'_, PyAny>, String, String) = read?.extract()?;
            if let Ok(namespace) = container.cast::<PyDict>() {
                let was = namespace.get_item(&name)?;
                let seen = was.as_ref().map_or(HostValue::None, value);
                captures.global(namespace, &name, &by, was.as_ref(), seen);
            } else if container.is_instance_of::<PyModule>() {
                let was = container.getattr_opt(name.as_str())?;
                let seen = was.as_ref().map_or(HostValue::None, value);
                captures.attribute(&container, &name, &by, was.as_ref(), seen);
            } else if let Ok(was) = container.getattr(intern!(py, "cell_contents")) {
                let seen = value(&was);
                captures.cell(&container, &name, &by, &was, seen);
            }
        }
        Ok(captures.finish())
    }
}
