//! What a compilation learned from outside its own source: the part of a cache key that only the front end knows.
//!
//! The evaluator never speaks to its [`Host`] itself but to a `Recorder`, which asks the host and writes each answer
//! down: a question that is not recorded is not answered either.
//! Evaluation is deterministic: equal facts, equal options and an equal compiler give an equal module.
//!
//! A fact is a line of text in which strings are quoted and floats are bits, so that different facts never look alike. What
//! a host numbers as it likes (functions, objects) is numbered here in the order in which it is met: two processes that
//! compile the same kernel write the same lines.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use tilewright_ir::Span;

use crate::aggregate::AggregateClass;
use crate::host::{
    Binding, FunctionKind, Host, HostError, HostObject, HostValue, JitFunction, SourceOfObject,
};
use crate::signature::{ArgSpec, ArgType};

/// The facts that a module was made from, in the order in which they were learned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    lines: Vec<String>,
}

impl Facts {
    /// One line a fact.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }
}

/// A host that asks another one and writes down what it says.
pub(crate) struct Recorder<'h> {
    host: &'h dyn Host,
    record: RefCell<Record>,
}

#[derive(Default)]
struct Record {
    facts: Facts,
    /// Numbers of functions and objects; a function's key has the module and the name, too, as its equality does.
    functions: FxHashMap<(u64, Arc<str>, Arc<str>, FunctionKind), usize>,
    classes: FxHashMap<(u64, Arc<str>, Arc<str>), usize>,
    objects: FxHashMap<u64, usize>,
    /// How often each question was asked, and the last answer: an answer is written down when it changes.
    asked: FxHashMap<String, (usize, String)>,
}

impl<'h> Recorder<'h> {
    pub(crate) fn new(host: &'h dyn Host) -> Self {
        Recorder { host, record: RefCell::default() }
    }

    /// What is compiled, and for which arguments.
    pub(crate) fn entry(&self, entry: &Arc<JitFunction>, args: &[ArgSpec]) {
        let mut record = self.record.borrow_mut();
        let mut line = "entry ".to_string();
        record.function(entry, &mut line);
        for arg in args {
            line.push(' ');
            record.argument(arg, &mut line);
        }
        record.facts.lines.push(line);
    }

    pub(crate) fn into_facts(self) -> Facts {
        self.record.into_inner().facts
    }

    /// Writes down what was answered to a question.
    fn answered<T>(
        &self,
        question: impl FnOnce(&mut Record, &mut String),
        answer: Result<T, HostError>,
        write: impl FnOnce(&mut Record, &T, &mut String),
    ) -> Result<T, HostError> {
        let mut record = self.record.borrow_mut();
        let (mut asked, mut said) = (String::new(), String::new());
        question(&mut record, &mut asked);
        match &answer {
            Ok(answer) => write(&mut record, answer, &mut said),
            Err(error) => {
                let _ = write!(said, "error {:?}", error.message);
            }
        }
        let (times, last) = record.asked.entry(asked.clone()).or_default();
        *times += 1;
        if *last != said {
            // Which of the times it was tells apart answers that change from one to the next.
            let line = format!("{asked} [{times}] = {said}");
            *last = said;
            record.facts.lines.push(line);
        }
        answer
    }
}

impl Host for Recorder<'_> {
    // Nothing that a kernel is made of.
    fn interrupted(&self) -> bool {
        self.host.interrupted()
    }

    fn lookup(&self, function: &Arc<JitFunction>, name: &str) -> Result<Option<Binding>, HostError> {
        let question = |record: &mut Record, out: &mut String| {
            out.push_str("lookup ");
            record.function(function, out);
            let _ = write!(out, " {name:?}");
        };
        self.answered(question, self.host.lookup(function, name), |record, binding, out| match binding {
            Some(Binding { value, constexpr, origin }) => {
                let _ = write!(out, "{origin:?} constexpr={constexpr} ");
                record.value(value, out);
            }
            None => out.push_str("nothing"),
        })
    }

    fn attribute(&self, object: &HostObject, name: &str) -> Result<Option<HostValue>, HostError> {
        let question = |record: &mut Record, out: &mut String| {
            out.push_str("attribute ");
            record.object(object, out);
            let _ = write!(out, " {name:?}");
        };
        self.answered(question, self.host.attribute(object, name), Record::optional)
    }

    fn constant_attribute(&self, constant: &HostValue, name: &str) -> Result<Option<HostValue>, HostError> {
        let question = |record: &mut Record, out: &mut String| {
            out.push_str("attribute ");
            record.value(constant, out);
            let _ = write!(out, " {name:?}");
        };
        self.answered(question, self.host.constant_attribute(constant, name), Record::optional)
    }

    fn default_argument(
        &self,
        function: &Arc<JitFunction>,
        parameter: &str,
    ) -> Result<Option<HostValue>, HostError> {
        let question = |record: &mut Record, out: &mut String| {
            out.push_str("default ");
            record.function(function, out);
            let _ = write!(out, " {parameter:?}");
        };
        self.answered(question, self.host.default_argument(function, parameter), Record::optional)
    }

    fn library(&self, path: &str, args: &[HostValue]) -> Result<HostValue, HostError> {
        let question = |record: &mut Record, out: &mut String| {
            let _ = write!(out, "library {path}");
            for arg in args {
                out.push(' ');
                record.value(arg, out);
            }
        };
        self.answered(question, self.host.library(path, args), |record, value, out| record.value(value, out))
    }

    fn call(
        &self,
        callee: &HostObject,
        args: &[HostValue],
        kwargs: &[(Arc<str>, HostValue)],
    ) -> Result<HostValue, HostError> {
        let question = |record: &mut Record, out: &mut String| {
            out.push_str("call ");
            record.object(callee, out);
            record.values(args, out);
            for (name, value) in kwargs {
                let _ = write!(out, " {name:?}=");
                record.value(value, out);
            }
        };
        // What the function did is the host's affair; what it gave is what went into the module.
        self.answered(question, self.host.call(callee, args, kwargs), Record::value)
    }

    fn source_of(&self, callee: &HostObject) -> Result<Option<SourceOfObject>, HostError> {
        let question = |record: &mut Record, out: &mut String| {
            out.push_str("source ");
            record.object(callee, out);
        };
        self.answered(question, self.host.source_of(callee), |record, found, out| match found {
            Some((function, receiver)) => {
                record.function(function, out);
                record.optional(receiver, out);
            }
            None => out.push_str("nothing"),
        })
    }

    fn must_use(&self, function: &Arc<JitFunction>) -> Result<Option<String>, HostError> {
        let question = |record: &mut Record, out: &mut String| {
            out.push_str("must use ");
            record.function(function, out);
        };
        self.answered(question, self.host.must_use(function), |_, why, out| {
            let _ = write!(out, "{why:?}");
        })
    }

    fn warn(&self, message: &str, at: &Span) {
        self.host.warn(message, at);
    }

    /// Only messages hold these, so they are no fact about a module.
    fn names(&self, function: &Arc<JitFunction>) -> Vec<String> {
        self.host.names(function)
    }
}

impl Record {
    /// The number of a function. Its source, and where that stands, is a fact of its own.
    fn function(&mut self, function: &Arc<JitFunction>, out: &mut String) {
        let key = (function.id, function.module.clone(), function.name.clone(), function.kind);
        let next = self.functions.len();
        let number = *self.functions.entry(key).or_insert(next);
        if number == next {
            let source = &function.source;
            // Lines and columns stand in the code's line table.
            let (line, column) = function
                .definition()
                .map_or((source.first_line, 0), |def| source.line_col(def.range.start()));
            let line = format!(
                "function f{number} {:?} {:?} {:?} {:?} {:?}:{line}:{column} {:?}",
                function.module,
                function.name,
                function.marks,
                function.kind,
                source.file,
                function.text()
            );
            self.facts.lines.push(line);
        }
        let _ = write!(out, "f{number}");
    }

    /// The number of a class. Its fields, and its functions with their sources, are a fact of its own.
    fn class(&mut self, class: &AggregateClass, out: &mut String) {
        let key = (class.id, class.module.clone(), class.name.clone());
        let next = self.classes.len();
        let number = *self.classes.entry(key).or_insert(next);
        if number == next {
            let mut line = format!("class c{number} {:?} {:?}", class.module, class.name);
            for (name, annotation) in &class.fields {
                let _ = write!(line, " {name:?}: ");
                self.value(annotation, &mut line);
            }
            for (name, method) in &class.methods {
                let _ = write!(line, " {name:?} static={} ", method.is_static);
                self.function(&method.function, &mut line);
            }
            self.facts.lines.push(line);
        }
        let _ = write!(out, "c{number}");
    }

    fn object(&mut self, object: &HostObject, out: &mut String) {
        let HostObject { id, kind, name, callable, namedtuple_fields } = object;
        let next = self.objects.len();
        let number = *self.objects.entry(*id).or_insert(next);
        let _ = write!(out, "o{number}({kind:?} {name:?} callable={callable} fields={namedtuple_fields:?})");
    }

    fn values(&mut self, values: &[HostValue], out: &mut String) {
        out.push('(');
        for value in values {
            self.value(value, out);
            out.push(',');
        }
        out.push(')');
    }

    fn value(&mut self, value: &HostValue, out: &mut String) {
        let _ = match value {
            HostValue::None => write!(out, "None"),
            HostValue::Bool(b) => write!(out, "bool {b}"),
            HostValue::Int(i) => write!(out, "int {i}"),
            HostValue::Float(f) => write!(out, "float {:#x}", f.to_bits()),
            HostValue::Str(s) => write!(out, "str {s:?}"),
            HostValue::Bytes(b) => write!(out, "bytes {b:?}"),
            HostValue::DType(dtype) => write!(out, "dtype {dtype:?}"),
            HostValue::Library(path) => write!(out, "library {path:?}"),
            HostValue::Python(name) => write!(out, "python {name:?}"),
            HostValue::Tuple(values) => {
                out.push_str("tuple ");
                return self.values(values, out);
            }
            HostValue::NamedTuple(tuple) => {
                let _ = write!(out, "named {:?} {:?} ", tuple.class, tuple.fields);
                return self.values(&tuple.values, out);
            }
            HostValue::Jit(function) => return self.function(function, out),
            HostValue::Class(class) => return self.class(class, out),
            HostValue::Object(object) => return self.object(object, out),
        };
    }

    fn optional(&mut self, value: &Option<HostValue>, out: &mut String) {
        match value {
            Some(value) => self.value(value, out),
            None => out.push_str("nothing"),
        }
    }

    fn argument(&mut self, arg: &ArgSpec, out: &mut String) {
        match &arg.ty {
            ArgType::Value(dtype) => {
                let _ = write!(out, "value {dtype:?}");
            }
            ArgType::Constant(value) => {
                out.push_str("constant ");
                self.value(value, out);
            }
            ArgType::Descriptor { element, block, nan } => {
                let _ = write!(out, "descriptor {element:?} {block:?} nan={nan}");
            }
            ArgType::Tuple(items) => {
                out.push_str("tuple ");
                self.arguments(items, out);
            }
            ArgType::NamedTuple((class, fields), items) => {
                let _ = write!(out, "named {class:?} {fields:?} ");
                self.arguments(items, out);
            }
        }
        let _ = write!(out, " divisible={:?}", arg.divisibility);
    }

    fn arguments(&mut self, args: &[ArgSpec], out: &mut String) {
        out.push('(');
        for arg in args {
            self.argument(arg, out);
            out.push(',');
        }
        out.push(')');
    }
}
