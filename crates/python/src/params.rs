//! A kernel's parameters and the options of a launch, and how a call's arguments are bound to them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use smallvec::SmallVec;

use tilewright_compiler::options::{self, Info, Kind, OPTIONS, Options, Value};
use tilewright_frontend::{DiagnosticKind, Scalar};

use crate::key::Key;
use crate::{ranks, wrong_call};

/// What an annotation other than `tl.constexpr` says about a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Annotation {
    /// `x: tl.int64`, or the string `"i64"`.
    Scalar(Scalar),
    /// `x: "*fp32"`, or `"*k…"` for memory that is only read.
    Pointer(Scalar),
}

/// A parameter of a kernel.
pub struct Param {
    /// Interned, so that comparing addresses usually settles it.
    pub name: Py<PyString>,
    pub text: String,
    pub default: Option<Py<PyAny>>,
    /// Annotated `tl.constexpr`: each value gets its own kernel.
    pub constexpr: bool,
    /// The number 1 and multiples of 16 are looked for.
    pub specialize: bool,
    /// Multiples of 16 are looked for.
    pub align: bool,
    /// `tl.const`, or `"*k…"`: memory that is only read.
    pub constant: bool,
    pub annotation: Option<Annotation>,
    /// It has the name of an option, which a keyword of this name sets, too, as in Triton.
    pub option: bool,
}

impl Param {
    /// Reads a `KernelParam` of `tilewright.runtime.jit`.
    fn read(object: &Bound<'_, PyAny>) -> PyResult<Param> {
        let py = object.py();
        let flag = |name: &str| -> PyResult<bool> { object.getattr(name)?.is_truthy() };
        let name: String = object.getattr("name")?.extract()?;
        let annotation: String = object.getattr("annotation_type")?.extract()?;
        let annotation = match annotation.strip_prefix('*') {
            Some(element) => {
                Scalar::parse(element.strip_prefix('k').unwrap_or(element)).map(Annotation::Pointer)
            }
            None => Scalar::parse(&annotation).map(Annotation::Scalar),
        };
        // A number's annotation fixes its type; bool and floats then have nothing left to specialize.
        let rigid = matches!(annotation, Some(Annotation::Scalar(ty)) if ty.is_float() || ty == Scalar::Int1);
        let specialize = !flag("do_not_specialize")? && !rigid;
        Ok(Param {
            name: PyString::intern(py, &name).unbind(),
            option: options::find(&name).is_some(),
            text: name,
            default: match flag("has_default")? {
                true => Some(object.getattr("default")?.unbind()),
                false => None,
            },
            constexpr: flag("is_constexpr")?,
            specialize,
            align: specialize && !flag("do_not_specialize_on_alignment")?,
            constant: flag("is_const")?,
            annotation,
        })
    }
}

/// Appends the options to a key.
pub fn encode(options: &Options, key: &mut Key) {
    key.extend(options.words().iter().flat_map(|&word| [word as u64, (word >> 64) as u64]));
}

/// Takes the option of a keyword argument; `Ok(false)` when there is none of this name.
fn set_option(options: &mut Options, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    match options::find(name) {
        Some(option) => take(options, option, value).map(|()| true),
        None => elsewhere(name, value),
    }
}

/// An integer. A `tl.constexpr` is fine: an autotuner's configuration may hold one.
fn integer(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    value.extract().or_else(|_| value.call_method0("__index__")?.extract())
}

fn take(options: &mut Options, option: &Info, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let wrong = |wrong: options::Wrong| match wrong.kind {
        DiagnosticKind::OutOfResources => wrong_call::out_of_resources(wrong.message, wrong.hint),
        _ => wrong_call::value_error(wrong.message, wrong.hint),
    };
    // Of what is no value at all, its `repr` is shown.
    let other = || wrong(option.wrong(&value.repr().map(|r| r.to_string()).unwrap_or_default()));
    let found = match option.kind {
        _ if value.is_none() => Value::None,
        Kind::Flag => match value.extract().ok().or_else(|| match integer(value) {
            Ok(n @ (0 | 1)) => Some(n == 1),
            _ => None,
        }) {
            Some(flag) => Value::Flag(flag),
            None => return Err(other()),
        },
        Kind::Count { .. } => Value::Count(integer(value).map_err(|_| other())?),
        Kind::Choice(_) => Value::Word(value.extract().map_err(|_| other())?),
        Kind::Words(_) if value.extract::<&str>().is_err() => {
            let words: PyResult<Vec<String>> =
                value.try_iter().and_then(|words| words.map(|word| word?.extract()).collect());
            Value::Word(words.map_err(|_| other())?.join(","))
        }
        Kind::Words(_) => Value::Word(value.extract()?),
        Kind::Libraries => libraries(value, &other)?,
        Kind::Text(_) => Value::Word(value.extract().map_err(|_| other())?),
    };
    option.set(options, found).map_err(wrong)
}

/// An option of Triton that nothing reads here may be what it is unless it is given.
#[cold]
fn elsewhere(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Some(option) = options::find_elsewhere(name) else { return Ok(false) };
    let shown = value.repr()?.to_string();
    if value.is_none() || shown == option.default {
        return Ok(true);
    }
    Err(wrong_call::value_error(
        format!("not supported yet: {name}={shown} ({})", option.doc),
        format!("leave it out; {name}={} is accepted", option.default),
    ))
}

/// The option `extern_libs`: a dict, or pairs, of names and paths. The libdevice that is called in any case needs no mention.
fn libraries(given: &Bound<'_, PyAny>, other: &dyn Fn() -> PyErr) -> PyResult<Value> {
    let pairs = match given.cast::<PyDict>() {
        Ok(dict) => dict.items().into_any(),
        Err(_) if given.extract::<&str>().is_ok() => return Ok(Value::Word(given.extract()?)),
        Err(_) => given.clone(),
    };
    let pairs: Vec<(String, std::path::PathBuf)> = pairs.extract().map_err(|_| other())?;
    let python = crate::compile::python_environment(given.py())?;
    let mut entries = Vec::new();
    for (name, path) in pairs {
        let shown = path.display();
        if name == "libdevice" && tilewright_compiler::is_libdevice(&path, &python) {
            continue;
        }
        if !path.is_file() {
            return Err(wrong_call::value_error(
                format!("extern_libs: the library {name} is no file: {shown}"),
                "give the path of a library of LLVM bitcode".to_string(),
            ));
        }
        entries.push(format!("{name}={shown}"));
    }
    Ok(if entries.is_empty() { Value::None } else { Value::Word(entries.join(";")) })
}

/// The names and defaults of the options of a launch, as a dict.
#[pyfunction]
pub fn option_defaults(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    options_dict(py, &Options::default())
}

/// Options by name, as a dict.
pub fn options_dict<'py>(py: Python<'py>, options: &Options) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for option in options::OPTIONS {
        match option.get(options) {
            Value::None => dict.set_item(option.name, py.None())?,
            Value::Flag(flag) => dict.set_item(option.name, flag)?,
            Value::Count(count) => dict.set_item(option.name, count)?,
            Value::Word(word) if matches!(option.kind, Kind::Words(_)) => {
                dict.set_item(option.name, PyTuple::new(py, options::words(&word).collect::<Vec<_>>())?)?;
            }
            Value::Word(word) => dict.set_item(option.name, word)?,
        }
    }
    Ok(dict)
}

/// Whether [`CHOSEN_DEFAULTS`] holds some.
static DEFAULTS_CHOSEN: AtomicBool = AtomicBool::new(false);
/// What options are in launches that do not name them, where that is not our default.
static CHOSEN_DEFAULTS: Mutex<Option<Py<PyDict>>> = Mutex::new(None);

/// Whether the option `debug` is on whatever a launch says (`knobs.runtime.debug`), as in Triton.
static DEBUG_FORCED: AtomicBool = AtomicBool::new(false);

/// Turns the option `debug` on in all launches.
#[pyfunction]
pub fn force_debug(on: bool) {
    DEBUG_FORCED.store(on, Ordering::Relaxed);
}

/// Chooses what options are in all launches that do not name them (`knobs.language`, …).
#[pyfunction]
pub fn set_option_defaults(defaults: &Bound<'_, PyDict>) -> PyResult<()> {
    let mut tried = Options::default();
    for (name, value) in defaults {
        set_option(&mut tried, &name.cast::<PyString>()?.to_cow()?, &value)?;
    }
    let before =
        CHOSEN_DEFAULTS.lock().unwrap_or_else(PoisonError::into_inner).replace(defaults.copy()?.unbind());
    drop(before);
    DEFAULTS_CHOSEN.store(!defaults.is_empty(), Ordering::Relaxed);
    Ok(())
}

/// Makes a launch's options, before its keywords are looked at, what was chosen.
#[cold]
fn choose(py: Python<'_>, options: &mut Options) -> PyResult<()> {
    let chosen = CHOSEN_DEFAULTS.lock().unwrap_or_else(PoisonError::into_inner);
    let chosen = chosen.as_ref().map(|dict| dict.clone_ref(py));
    for (name, value) in chosen.iter().flat_map(|dict| dict.bind(py).iter()) {
        set_option(options, &name.cast::<PyString>()?.to_cow()?, &value)?;
    }
    Ok(())
}

/// The precision of products by the environment as it is now: programs set it when they have imported everything, for the launches that follow.
fn choose_precision(py: Python<'_>, options: &mut Options) -> PyResult<()> {
    if let Some(precision) =
        std::env::var("TRITON_F32_DEFAULT").ok().filter(|precision| !precision.is_empty())
    {
        set_option(options, "default_dot_input_precision", PyString::new(py, &precision).as_any())?;
    }
    Ok(())
}

/// The parameters of a kernel.
pub struct Params {
    pub kernel: String,
    pub params: Vec<Param>,
}

/// A value of a call: whoever calls keeps it alive until the call is over, so that no reference is counted.
pub type Given<'a, 'py> = Borrowed<'a, 'py, PyAny>;

/// A call's arguments in the order of the parameters, and its options. It is filled where it stands: it is large to move.
pub struct Bindings<'a, 'py> {
    pub values: SmallVec<[Given<'a, 'py>; 24]>,
    pub options: Options,
    /// The file of a stage that is given (`ir_override`).
    pub given: Option<Bound<'py, PyString>>,
    /// The options that the call named, for a grid function.
    pub named: SmallVec<[(Given<'a, 'py>, Given<'a, 'py>); 4]>,
}

impl Bindings<'_, '_> {
    /// No arguments yet.
    #[inline]
    pub fn new(options: &Options) -> Self {
        Bindings { values: SmallVec::new(), options: options.clone(), given: None, named: SmallVec::new() }
    }

    /// The same call with other options.
    #[cold]
    pub fn with(&self, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = self.options.clone();
        change(&mut options);
        Bindings {
            values: self.values.clone(),
            options,
            given: self.given.clone(),
            named: self.named.clone(),
        }
    }
}

impl Params {
    /// Reads what `JITFunction.params` holds.
    pub fn read(kernel: String, objects: &Bound<'_, PyAny>) -> PyResult<Params> {
        let mut params = Vec::new();
        for object in objects.try_iter()? {
            params.push(Param::read(&object?)?);
        }
        Ok(Params { kernel, params })
    }

    /// Binds arguments to parameters as Python does, and takes the options out of the keywords.
    #[inline]
    pub fn bind<'a, 'py>(
        &'a self,
        py: Python<'py>,
        positional: &'a [Bound<'py, PyAny>],
        keywords: impl Iterator<Item = (Given<'a, 'py>, Given<'a, 'py>)>,
        bindings: &mut Bindings<'a, 'py>,
    ) -> PyResult<()> {
        let Bindings { values, options, given, named } = bindings;
        let (count, first) = (self.params.len(), positional.len());
        if first > count {
            return Err(self.too_many(first));
        }
        if DEFAULTS_CHOSEN.load(Ordering::Relaxed) {
            choose(py, options)?;
        }
        choose_precision(py, options)?;
        values.extend(positional.iter().map(Bound::as_borrowed));
        // Those of the parameters behind.
        let mut rest: SmallVec<[Option<Given<'a, 'py>>; 24]> = SmallVec::from_elem(None, count - first);
        for (name, value) in keywords {
            match self.position(&name) {
                Some(at) if at >= first && rest[at - first].is_none() => {
                    if self.params[at].option {
                        set_option(options, &self.params[at].text, &value)?;
                    }
                    rest[at - first] = Some(value);
                }
                Some(at) => {
                    return Err(wrong_call::type_error(
                        format!("{}() got two values for argument '{}'", self.kernel, self.params[at].text),
                        format!("one by position and one by name; the parameters are {}", self.signature()),
                    ));
                }
                None => {
                    let word = name.cast::<PyString>()?;
                    let text = word.to_cow()?;
                    if text == "ir_override" {
                        *given = path_of(&value)?;
                    } else if !set_option(options, &text, &value)? {
                        return Err(self.unknown(&text));
                    }
                    drop(text);
                    named.push((name, value));
                }
            }
        }
        options.debug |= DEBUG_FORCED.load(Ordering::Relaxed);
        ranks::add_library(options);
        let behind = &self.params[first..];
        let default = |param: &'a Param| Some(param.default.as_ref()?.bind_borrowed(py));
        values.extend(rest.iter().zip(behind).filter_map(|(value, param)| value.or_else(|| default(param))));
        if values.len() < count {
            return Err(self.missing(rest.iter().zip(behind)));
        }
        Ok(())
    }

    /// The index of a parameter by name.
    fn position(&self, name: &Bound<'_, PyAny>) -> Option<usize> {
        let by_address = self.params.iter().position(|p| p.name.as_ptr() == name.as_ptr());
        by_address.or_else(|| {
            let name = name.cast::<PyString>().ok()?.to_cow().ok()?;
            self.params.iter().position(|p| p.text == *name)
        })
    }

    /// A dict of everything bound, as a grid function gets it.
    pub fn as_dict<'py>(
        &self,
        py: Python<'py>,
        bindings: &Bindings<'_, 'py>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (param, value) in self.params.iter().zip(&bindings.values) {
            dict.set_item(&param.name, value)?;
        }
        for (name, value) in &bindings.named {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }

    fn signature(&self) -> String {
        let names: Vec<&str> = self.params.iter().map(|p| p.text.as_str()).collect();
        format!("{}({})", self.kernel, names.join(", "))
    }

    #[cold]
    fn too_many(&self, given: usize) -> PyErr {
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        let takes = self.params.len();
        wrong_call::type_error(
            format!("{}() takes {takes} argument{} but was given {given}", self.kernel, plural(takes)),
            format!("the parameters are {}", self.signature()),
        )
    }

    #[cold]
    fn missing<'a>(&self, given: impl Iterator<Item = (&'a Option<Given<'a, 'a>>, &'a Param)>) -> PyErr {
        let missing: Vec<String> = given
            .filter(|(value, param)| value.is_none() && param.default.is_none())
            .map(|(_, p)| format!("'{}'{}", p.text, if p.constexpr { " (a tl.constexpr)" } else { "" }))
            .collect();
        wrong_call::type_error(
            format!("{}() needs a value for {}", self.kernel, missing.join(", ")),
            format!("it has no default; the parameters are {}", self.signature()),
        )
    }

    #[cold]
    fn unknown(&self, name: &str) -> PyErr {
        let known = self.params.iter().map(|p| p.text.as_str()).chain(OPTIONS.iter().map(|o| o.name));
        let near = known.map(|k| (distance(k, name), k)).min().filter(|(d, _)| *d <= 2 && *d < name.len());
        let hint = match near {
            Some((_, near)) => format!("did you mean '{near}'?"),
            None => {
                format!(
                    "the parameters are {}; the launch options are {}",
                    self.signature(),
                    OPTIONS.iter().map(|o| o.name).collect::<Vec<_>>().join(", ")
                )
            }
        };
        wrong_call::type_error(format!("{}() got the unknown keyword argument '{name}'", self.kernel), hint)
    }
}

/// A path as text; none for `None`.
#[cold]
fn path_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyString>>> {
    if value.is_none() {
        return Ok(None);
    }
    let path: std::path::PathBuf = value.extract().map_err(|_| {
        wrong_call::type_error(
            "ir_override is no path",
            "it names a file: kernel.ttir, kernel.ttgir, kernel.llir, kernel.ptx",
        )
    })?;
    Ok(Some(PyString::new(value.py(), &path.to_string_lossy())))
}

/// Levenshtein distance, for «did you mean».
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let cost = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

/// The keywords of a fast call: names from the tuple, values behind the positional arguments.
#[inline]
pub fn fast_keywords<'a, 'py>(
    names: Option<&'a Bound<'py, PyTuple>>,
    values: &'a [Bound<'py, PyAny>],
) -> impl Iterator<Item = (Given<'a, 'py>, Given<'a, 'py>)> {
    names.into_iter().flat_map(|names| names.iter_borrowed()).zip(values.iter().map(Bound::as_borrowed))
}
