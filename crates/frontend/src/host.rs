//! What a kernel's source names outside itself, and who is asked for it.
//!
//! The front end walks source text. Every name that is not a local variable goes to a [`Host`]: one implementation
//! asks CPython (in `crates/python`), another evaluates a module of source with no Python at all
//! ([`crate::source_host::SourceHost`]).
//!
//! Names of the language itself are never objects of the host: a host that meets a function, module or type whose
//! home is the `tilewright` (or `triton`) package answers [`HostValue::Library`] with its path, and the front end
//! finds the definition in the files it embeds ([`crate::library`]).

use std::fmt;
use std::sync::{Arc, OnceLock};

use ruff_python_ast::StmtFunctionDef;
use tilewright_ir::{Diagnostic, Span};

use crate::aggregate::AggregateClass;
use crate::dtype::DType;
use crate::source::{SourceText, must_use};

/// The [`HostObject::kind`] of a function in another language (`tle.raw`).
pub(crate) const RAW_FUNCTION: &str = "RawFunction";

/// Why a function of this package's Python files cannot be called where there is no Python.
pub(crate) fn made_with_python(path: &str) -> String {
    match path.starts_with("tle.raw.") {
        true => "a function in another language (tle.raw) cannot be compiled here, without Python".into(),
        false => {
            let name = path.rsplit('.').next().unwrap_or(path).trim_start_matches('_');
            format!("a {name} cannot be made here, without Python")
        }
    }
}

/// Answers what names outside a function mean. Object-safe, and `&self` throughout: a host caches behind its own
/// interior mutability where it wants to.
pub trait Host {
    /// What `name` means where `function` was defined: its closure, then its module's globals, then Python's
    /// builtins. `Ok(None)` means that there is no such name.
    fn lookup(&self, function: &Arc<JitFunction>, name: &str) -> Result<Option<Binding>, HostError>;

    /// `object.name` for a module, a class or any other [`HostValue::Object`]. `Ok(None)` means that there is no such attribute.
    fn attribute(&self, object: &HostObject, name: &str) -> Result<Option<HostValue>, HostError>;

    /// The default of `parameter`, for hosts that hold the evaluated value (CPython: `inspect.signature`).
    /// `Ok(None)` lets the front end evaluate the default's expression.
    fn default_argument(
        &self,
        _function: &Arc<JitFunction>,
        _parameter: &str,
    ) -> Result<Option<HostValue>, HostError> {
        Ok(None)
    }

    /// `constant.name` for a number, a string or a builtin type of Python (`"abc".upper`, `(8).bit_length`, `float.fromhex`): its
    /// methods are objects that [`Host::call`] takes. `Ok(None)` means that there is no such attribute.
    fn constant_attribute(&self, _constant: &HostValue, _name: &str) -> Result<Option<HostValue>, HostError> {
        Ok(None)
    }

    /// Calls a function of the host on constants ([`HostObject::callable`]).
    fn call(
        &self,
        callee: &HostObject,
        _args: &[HostValue],
        _kwargs: &[(Arc<str>, HostValue)],
    ) -> Result<HostValue, HostError> {
        Err(HostError::new(format!("`{}` cannot be called at compile time", callee.name)))
    }

    /// The source of a function that runs at compile time (`@constexpr_function`), and the object whose method it is: where it is called
    /// with values of run time, which it may ask for their types and hand back, the front end evaluates it. `Ok(None)` means that this
    /// cannot be had.
    fn source_of(&self, _callee: &HostObject) -> Result<Option<SourceOfObject>, HostError> {
        Ok(None)
    }

    /// Calls a function of this package's Python files that makes an object of the host, such as a mesh.
    fn library(&self, path: &str, _args: &[HostValue]) -> Result<HostValue, HostError> {
        Err(HostError::new(made_with_python(path)))
    }

    /// Whether an object is an instance of a class (Python's `isinstance`).
    fn is_instance(&self, _object: &HostObject, class: &HostObject) -> Result<bool, HostError> {
        Err(HostError::new(format!("it cannot be said here what is an instance of `{}`", class.name)))
    }

    /// Whether the result is no longer wanted (someone pressed Ctrl-C). Asked often: it should be cheap.
    fn interrupted(&self) -> bool {
        false
    }

    /// Why a call of a function that uses no result is an error, where it is one (`@must_use_result`).
    fn must_use(&self, function: &Arc<JitFunction>) -> Result<Option<String>, HostError> {
        Ok(function.definition().ok().and_then(|def| must_use(def)))
    }

    /// Tells the user of something in a kernel that compiles but is not what it says.
    fn warn(&self, _message: &str, _at: &Span) {}

    /// Names that [`Host::lookup`] would find, for «did you mean». May be empty.
    fn names(&self, _function: &Arc<JitFunction>) -> Vec<String> {
        Vec::new()
    }
}

/// A function with its source, and the object that it is called on if it is a method.
pub type SourceOfObject = (Arc<JitFunction>, Option<HostValue>);

/// Where a name was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A variable of an enclosing function.
    Closure,
    /// A global of the module.
    Global,
    /// A builtin of Python (`len`, `min`, `range`, `float`, …), given as [`HostValue::Python`].
    Builtin,
}

/// The meaning of a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Binding {
    /// The value, with any `tl.constexpr(...)` around it taken off.
    pub value: HostValue,
    /// The name holds a `tl.constexpr(...)`, was declared `X: tl.constexpr = …`, or is that of a function which runs at compile
    /// time (`@constexpr_function`). A plain number, string or list is not usable in a kernel without it, and a plain function
    /// is not called (Triton's rule on globals); modules, dtypes and functions of modules are.
    pub constexpr: bool,
    /// Where it was found.
    pub origin: Origin,
}

/// A value of the host, as the front end sees it. Also the value of every compile-time constant in a kernel.
#[derive(Debug, Clone)]
pub enum HostValue {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer. (Python's are unbounded; a host reports an error beyond 128 bits.)
    Int(i128),
    /// A float.
    Float(f64),
    /// A string.
    Str(Arc<str>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A tuple. Lists are given as tuples too.
    Tuple(Arc<[HostValue]>),
    /// An instance of a named tuple class.
    NamedTuple(Arc<NamedTuple>),
    /// A dtype (`tl.float16`, `tl.pointer_type(tl.int8)`, …).
    DType(DType),
    /// A function, module or type of this package, by path from the package: `language.load`,
    /// `language.core.load`, `language.math.exp`, `language` (the module), `cdiv`, and `""` (the package). A host
    /// makes it from `__module__` (with its first part, `tilewright` or `triton`, removed) and `__name__`.
    Library(Arc<str>),
    /// A builtin function or type of Python by name (`len`, `range`, `float`, …).
    Python(Arc<str>),
    /// A function decorated with `@jit` outside the library.
    Jit(Arc<JitFunction>),
    /// A class decorated with `@_aggregate` outside the library.
    Class(Arc<AggregateClass>),
    /// Anything else.
    Object(Arc<HostObject>),
}

/// An instance of a named tuple.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedTuple {
    /// The class's name.
    pub class: Arc<str>,
    /// Names of the fields.
    pub fields: Arc<[Arc<str>]>,
    /// Their values.
    pub values: Vec<HostValue>,
}

/// A thing of the host that the front end can only ask about.
#[derive(Debug, Clone)]
pub struct HostObject {
    /// The host's key for it; equal keys are the same thing.
    pub id: u64,
    /// What it is, for messages: `function`, `module`, `class`, `list`, …
    pub kind: Arc<str>,
    /// Its name, or a short rendering of it.
    pub name: Arc<str>,
    /// Whether [`Host::call`] takes it: any function, class or method, where the host can call it on constants.
    pub callable: bool,
    /// The fields, for a class made by `collections.namedtuple` or `typing.NamedTuple`.
    pub namedtuple_fields: Option<Arc<[Arc<str>]>>,
}

/// When a function runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FunctionKind {
    /// With the kernel that it is a part of (`@jit`).
    #[default]
    Kernel,
    /// At compile time (`@constexpr_function`), evaluated by the front end; it may be given values of run time, and ask for their types.
    /// Hosts that can call it themselves give a callable [`HostObject`] instead.
    Constexpr,
    /// While the kernel is evaluated, as a plain method of an [`AggregateClass`] does: constants stay constants, values of run time pass
    /// through, and what it sets in an object is set for its caller.
    Plain,
}

/// What `@jit(…)` says of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct JitMarks {
    /// `@jit(noinline=True)`: it stays a function.
    pub noinline: bool,
    /// `@jit(warp_level=True)`: it is code as one warp sees it.
    pub warp_level: bool,
}

/// A function decorated with `@jit`: a host makes one for each, once, and gives the same `Arc` every time, so that
/// it is parsed once.
pub struct JitFunction {
    /// The host's key for it.
    pub id: u64,
    /// The module it lives in (`__module__`).
    pub module: Arc<str>,
    /// Its name (`__qualname__`).
    pub name: Arc<str>,
    /// Its source: the function's own lines, or a whole file.
    pub source: Arc<SourceText>,
    /// What its decorator says.
    pub marks: JitMarks,
    /// When it runs.
    pub kind: FunctionKind,
    definition: OnceLock<Result<Arc<StmtFunctionDef>, Diagnostic>>,
}

impl JitFunction {
    /// A function whose source text holds it alone (as `inspect.getsource` gives it).
    pub fn new(
        id: u64,
        module: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
        source: Arc<SourceText>,
        marks: JitMarks,
    ) -> Arc<JitFunction> {
        let (module, name) = (module.into(), name.into());
        Arc::new(JitFunction {
            id,
            module,
            name,
            source,
            marks,
            kind: FunctionKind::Kernel,
            definition: OnceLock::new(),
        })
    }

    /// A function that is already parsed out of `source`.
    pub fn parsed(
        id: u64,
        module: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
        source: Arc<SourceText>,
        marks: JitMarks,
        definition: Arc<StmtFunctionDef>,
    ) -> Arc<JitFunction> {
        let (module, name) = (module.into(), name.into());
        let definition = OnceLock::from(Ok(definition));
        Arc::new(JitFunction { id, module, name, source, marks, kind: FunctionKind::Kernel, definition })
    }

    /// The same function as one of another kind.
    #[must_use]
    pub fn of_kind(&self, kind: FunctionKind) -> Arc<JitFunction> {
        Arc::new(JitFunction {
            id: self.id,
            module: self.module.clone(),
            name: self.name.clone(),
            source: self.source.clone(),
            marks: if kind == FunctionKind::Kernel { self.marks } else { JitMarks::default() },
            kind,
            definition: self.definition.clone(),
        })
    }

    /// The parsed definition; parses on first use.
    pub fn definition(&self) -> Result<&Arc<StmtFunctionDef>, Diagnostic> {
        self.definition
            .get_or_init(|| self.source.parse_function().map(Arc::new))
            .as_ref()
            .map_err(Clone::clone)
    }

    /// The text of the function itself, which the cache key covers.
    pub fn text(&self) -> &str {
        match self.definition() {
            Ok(def) => self.source.slice(def.range),
            Err(_) => &self.source.text,
        }
    }
}

impl fmt::Debug for JitFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JitFunction({}.{})", self.module, self.name)
    }
}

impl PartialEq for JitFunction {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.module == other.module && self.name == other.name
    }
}

impl PartialEq for HostObject {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

/// Equality that «has this captured value changed» needs: floats compare by bits, so that NaN equals itself.
impl PartialEq for HostValue {
    fn eq(&self, other: &Self) -> bool {
        use HostValue as V;
        match (self, other) {
            (V::None, V::None) => true,
            (V::Bool(a), V::Bool(b)) => a == b,
            (V::Int(a), V::Int(b)) => a == b,
            (V::Float(a), V::Float(b)) => a.to_bits() == b.to_bits(),
            (V::Str(a), V::Str(b)) | (V::Library(a), V::Library(b)) | (V::Python(a), V::Python(b)) => a == b,
            (V::Bytes(a), V::Bytes(b)) => a == b,
            (V::Tuple(a), V::Tuple(b)) => a == b,
            (V::NamedTuple(a), V::NamedTuple(b)) => a == b,
            (V::DType(a), V::DType(b)) => a == b,
            (V::Jit(a), V::Jit(b)) => a == b,
            (V::Class(a), V::Class(b)) => a == b,
            (V::Object(a), V::Object(b)) => a == b,
            _ => false,
        }
    }
}

impl HostValue {
    /// A string constant.
    pub fn str(text: &str) -> HostValue {
        HostValue::Str(text.into())
    }

    /// A tuple of constants.
    pub fn tuple(values: impl IntoIterator<Item = HostValue>) -> HostValue {
        HostValue::Tuple(values.into_iter().collect())
    }

    /// What the value is, for messages.
    pub fn kind(&self) -> &str {
        match self {
            HostValue::None => "None",
            HostValue::Bool(_) => "bool",
            HostValue::Int(_) => "int",
            HostValue::Float(_) => "float",
            HostValue::Str(_) => "str",
            HostValue::Bytes(_) => "bytes",
            HostValue::Tuple(_) | HostValue::NamedTuple(_) => "tuple",
            HostValue::DType(_) => "dtype",
            HostValue::Library(_) => "tl function",
            HostValue::Python(_) => "Python builtin",
            HostValue::Jit(_) => "jit function",
            HostValue::Class(_) => "class",
            HostValue::Object(o) => &o.kind,
        }
    }

    /// Python's truth value, where the front end can tell.
    pub fn truth(&self) -> Option<bool> {
        Some(match self {
            HostValue::None => false,
            HostValue::Bool(b) => *b,
            HostValue::Int(i) => *i != 0,
            HostValue::Float(f) => *f != 0.0,
            HostValue::Str(s) => !s.is_empty(),
            HostValue::Bytes(b) => !b.is_empty(),
            HostValue::Tuple(t) => !t.is_empty(),
            HostValue::NamedTuple(t) => !t.values.is_empty(),
            HostValue::DType(_)
            | HostValue::Library(_)
            | HostValue::Python(_)
            | HostValue::Jit(_)
            | HostValue::Class(_) => true,
            HostValue::Object(_) => return None,
        })
    }
}

/// Python's `repr`, near enough: it is what messages and cache keys print.
impl fmt::Display for HostValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn items(f: &mut fmt::Formatter<'_>, values: &[HostValue]) -> fmt::Result {
            f.write_str("(")?;
            for (i, value) in values.iter().enumerate() {
                write!(f, "{}{value}", if i == 0 { "" } else { ", " })?;
            }
            f.write_str(if values.len() == 1 { ",)" } else { ")" })
        }
        match self {
            HostValue::None => f.write_str("None"),
            HostValue::Bool(true) => f.write_str("True"),
            HostValue::Bool(false) => f.write_str("False"),
            HostValue::Int(i) => i.fmt(f),
            HostValue::Float(x) => f.write_str(&python_float(*x)),
            HostValue::Str(s) => write!(f, "'{}'", s.escape_debug()),
            HostValue::Bytes(b) => write!(f, "b'{}'", b.escape_ascii()),
            HostValue::Tuple(values) => items(f, values),
            HostValue::NamedTuple(t) => {
                f.write_str(&t.class)?;
                items(f, &t.values)
            }
            HostValue::DType(dtype) => dtype.fmt(f),
            HostValue::Library(path) => match path.strip_prefix("language") {
                Some("") => f.write_str("tl"),
                Some(rest) => write!(f, "tl{rest}"),
                None if path.starts_with(crate::library::EXTENSIONS) => f.write_str(path),
                None => write!(f, "tilewright.{path}"),
            },
            HostValue::Python(name) => f.write_str(name),
            HostValue::Jit(function) => f.write_str(&function.name),
            HostValue::Class(class) => f.write_str(&class.name),
            HostValue::Object(o) => write!(f, "{} {}", o.kind, o.name),
        }
    }
}

/// A float as Python writes it: with an exponent (of two digits) from 1e16 on, and below 1e-4.
fn python_float(x: f64) -> String {
    if x.is_nan() {
        return "nan".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.into();
    }
    let text = format!("{x:e}");
    match text.split_once('e').map(|(digits, exponent)| (digits, exponent.parse::<i32>())) {
        Some((digits, Ok(exponent))) if !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ if x.fract() == 0.0 => format!("{x:.1}"),
        _ => format!("{x}"),
    }
}

/// The host could not answer: a Python exception, or a top-level statement that cannot be evaluated without Python.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostError {
    /// What went wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl HostError {
    /// An error with no hint.
    pub fn new(message: impl Into<String>) -> HostError {
        HostError { message: message.into(), hint: None }
    }

    /// The error with advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> HostError {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for HostError {}

impl From<HostError> for Diagnostic {
    fn from(error: HostError) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(error.message);
        diagnostic.notes.extend(error.hint);
        diagnostic
    }
}
