//! The `tl` library, read from the Python files under `python/tilewright/language`, which the crate embeds.
//!
//! Those files are the only place where signatures, defaults and docs stand. A function marked `@builtin` gives a
//! [`Builtin`]: the front end checks calls against its parameters and implements it in Rust. One marked `@jit` is
//! compiled like a user's function. Paths are relative to the package: `language.core.load`, and re-exports
//! (`language.load`) lead to the same item. What `_NOT_YET` lists of a module has no meaning yet, and says so where it is used.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use ruff_python_ast::{Expr, Parameters, Stmt};
use rustc_hash::FxHashMap;

use crate::aggregate::{AggregateClass, is_aggregate};
use crate::dtype::{DType, Scalar};
use crate::fold;
use crate::host::{FunctionKind, HostError, HostValue, JitFunction, JitMarks};
use crate::source::{SourceText, last_name, must_use};

/// The files, by module path.
const FILES: &[(&str, &str)] = &[
    ("language", include_str!("../../../python/tilewright/language/__init__.py")),
    ("language.core", include_str!("../../../python/tilewright/language/core.py")),
    ("language.math", include_str!("../../../python/tilewright/language/math.py")),
    ("language.standard", include_str!("../../../python/tilewright/language/standard.py")),
    ("language.random", include_str!("../../../python/tilewright/language/random.py")),
    ("language.target_info", include_str!("../../../python/tilewright/language/target_info.py")),
    ("language.extra", include_str!("../../../python/tilewright/language/extra/__init__.py")),
    ("language.extra.libdevice", include_str!("../../../python/tilewright/language/extra/libdevice.py")),
    ("language.extra.cuda", include_str!("../../../python/tilewright/language/extra/cuda/__init__.py")),
    ("language.extra.cuda.gdc", include_str!("../../../python/tilewright/language/extra/cuda/gdc.py")),
    ("language.extra.cuda.utils", include_str!("../../../python/tilewright/language/extra/cuda/utils.py")),
    ("tle", include_str!("../../../python/tilewright/tle/__init__.py")),
    ("tle._clustered", include_str!("../../../python/tilewright/tle/_clustered.py")),
    ("tle._low_latency", include_str!("../../../python/tilewright/tle/_low_latency.py")),
    ("tle._pipe", include_str!("../../../python/tilewright/tle/_pipe.py")),
    ("tle._push", include_str!("../../../python/tilewright/tle/_push.py")),
    ("tle._ranks", include_str!("../../../python/tilewright/tle/_ranks.py")),
    ("tle._sharded", include_str!("../../../python/tilewright/tle/_sharded.py")),
    ("tle._standard", include_str!("../../../python/tilewright/tle/_standard.py")),
    ("tle._transfer", include_str!("../../../python/tilewright/tle/_transfer.py")),
    ("tle._tile", include_str!("../../../python/tilewright/tle/_tile.py")),
    ("tle.distributed", include_str!("../../../python/tilewright/tle/distributed.py")),
    ("tle.dsa", include_str!("../../../python/tilewright/tle/dsa/__init__.py")),
    ("tle.dsa.ascend", include_str!("../../../python/tilewright/tle/dsa/ascend.py")),
    ("tle.gpu", include_str!("../../../python/tilewright/tle/gpu.py")),
    ("tle.raw", include_str!("../../../python/tilewright/tle/raw/__init__.py")),
    ("tle.raw.mlir", include_str!("../../../python/tilewright/tle/raw/mlir/__init__.py")),
    ("tle.raw.mlir._debug", include_str!("../../../python/tilewright/tle/raw/mlir/_debug.py")),
    ("tle.raw.mlir._threads", include_str!("../../../python/tilewright/tle/raw/mlir/_threads.py")),
    ("tle.raw.mlir.arith", include_str!("../../../python/tilewright/tle/raw/mlir/arith.py")),
    ("tle.raw.mlir.cf", include_str!("../../../python/tilewright/tle/raw/mlir/cf.py")),
    ("tle.raw.mlir.gpu", include_str!("../../../python/tilewright/tle/raw/mlir/gpu.py")),
    ("tle.raw.mlir.ir", include_str!("../../../python/tilewright/tle/raw/mlir/ir.py")),
    ("tle.raw.mlir.llvm", include_str!("../../../python/tilewright/tle/raw/mlir/llvm.py")),
    ("tle.raw.mlir.math", include_str!("../../../python/tilewright/tle/raw/mlir/math.py")),
    ("tle.raw.mlir.memref", include_str!("../../../python/tilewright/tle/raw/mlir/memref.py")),
    ("tle.raw.mlir.nvvm", include_str!("../../../python/tilewright/tle/raw/mlir/nvvm.py")),
    ("tle.raw.mlir.scf", include_str!("../../../python/tilewright/tle/raw/mlir/scf.py")),
    ("tle.raw.mlir.tensor", include_str!("../../../python/tilewright/tle/raw/mlir/tensor.py")),
    ("tle.raw.mlir.vector", include_str!("../../../python/tilewright/tle/raw/mlir/vector.py")),
    ("experimental", include_str!("../../../python/tilewright/experimental/__init__.py")),
];

/// The modules whose file is a folder's.
const PACKAGES: &[&str] = &[
    "language",
    "language.extra",
    "language.extra.cuda",
    "tle",
    "tle.dsa",
    "tle.raw",
    "tle.raw.mlir",
    "experimental",
];

/// Other names under which users reach the same modules.
const ALIASES: &[(&str, &str)] = &[
    ("language.extra.cuda.libdevice", "language.extra.libdevice"),
    ("language.libdevice", "language.extra.libdevice"),
];

/// Names of whole packages: what begins with one is the same below the other.
const SAME_PACKAGES: &[(&str, &str)] =
    &[("experimental.tle.language", "tle"), ("experimental.tle", "tle"), ("tle.language", "tle")];

/// The path by which an item below one of [`SAME_PACKAGES`] is known.
fn canonical(path: &str) -> Cow<'_, str> {
    for (other, ours) in SAME_PACKAGES {
        match path.strip_prefix(other) {
            Some("") => return (*ours).into(),
            Some(rest) if rest.starts_with('.') => return format!("{ours}{rest}").into(),
            _ => {}
        }
    }
    path.into()
}

/// A function that the front end implements.
#[derive(Debug)]
pub struct Builtin {
    /// Its path, such as `language.core.load`.
    pub path: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// The named parameters, in order, with their defaults.
    pub params: Vec<(Arc<str>, Option<HostValue>)>,
    /// How many parameters may be given by position (all of them without `*args`).
    pub positional: usize,
    /// The name of `*args`, if it has one.
    pub variadic: Option<Arc<str>>,
    /// The name of `**kwargs`, if it has one.
    pub named: Option<Arc<str>>,
    /// Other names of parameters, with the parameter.
    pub aliases: Vec<(Arc<str>, Arc<str>)>,
    /// Why a call of it that uses no result is an error, where it is one.
    pub must_use: Option<String>,
    /// The first line of its docstring.
    pub summary: String,
}

impl Builtin {
    /// Its name with the module that kernels know it by: `tl.load`, `tle.load`.
    pub fn shown(&self) -> String {
        match self.path.strip_prefix(EXTENSIONS) {
            // What stands in these modules is in `tle`, too.
            Some(rest) => format!(
                "tle{}",
                [".distributed", "._pipe", "._ranks", "._sharded", "._tile"]
                    .iter()
                    .find_map(|m| rest.strip_prefix(m))
                    .unwrap_or(rest)
            ),
            None => format!("tl.{}", self.name),
        }
    }

    /// `tl.load(pointer, mask=None, …)`, for messages.
    pub fn signature(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        for (i, (name, default)) in self.params.iter().enumerate() {
            if i == self.positional
                && let Some(rest) = &self.variadic
            {
                parts.push(format!("*{rest}"));
            }
            parts.push(match default {
                Some(value) => format!("{name}={value}"),
                None => name.to_string(),
            });
        }
        if self.positional == self.params.len()
            && let Some(rest) = &self.variadic
        {
            parts.push(format!("*{rest}"));
        }
        parts.extend(self.named.as_ref().map(|named| format!("**{named}")));
        format!("{}({})", self.shown(), parts.join(", "))
    }
}

/// What a path names.
#[derive(Debug, Clone)]
pub enum Item {
    /// A module.
    Module(Arc<str>),
    /// A function that the front end implements.
    Builtin(Arc<Builtin>),
    /// A function written in the language, or one that runs at compile time.
    Jit(Arc<JitFunction>),
    /// A constant.
    Const(HostValue),
    /// A class decorated with `@_aggregate`.
    Aggregate(Arc<AggregateClass>),
    /// Another class, by its path (`language.core.constexpr`).
    Class(Arc<str>),
    /// What the reference of TLE has and we have not yet, by its path (`tle.pipe`).
    NotYet(Arc<str>),
}

#[derive(Debug)]
enum Entry {
    Item(Item),
    /// Re-exported from this path.
    Import(String),
    /// What a class is called with; nothing that a kernel can name.
    Constructor(Arc<Builtin>),
}

/// All modules of the library.
#[derive(Debug)]
pub struct Library {
    modules: FxHashMap<&'static str, FxHashMap<String, Entry>>,
    members: FxHashMap<String, Item>,
}

/// The module prefix of functions that live in the library.
pub const PACKAGE: &str = "tilewright.";

/// The module of the language extensions.
pub const EXTENSIONS: &str = "tle";

impl Library {
    /// The library, parsed on first use.
    pub fn get() -> &'static Library {
        static LIBRARY: OnceLock<Library> = OnceLock::new();
        LIBRARY.get_or_init(Library::load)
    }

    fn load() -> Library {
        let mut library = Library { modules: FxHashMap::default(), members: FxHashMap::default() };
        let mut next_id = 0;
        for &(module, text) in FILES {
            let file = format!("tilewright/{}.py", module.replace('.', "/"));
            let source = SourceText::new(file, text, 1);
            let statements = source.parse().unwrap_or_default();
            debug_assert!(!statements.is_empty(), "{module} parses");
            let mut entries = FxHashMap::default();
            for stmt in &statements {
                load_statement(module, stmt, &source, &mut next_id, &mut entries, &mut library.members);
            }
            if let Some(Entry::Item(Item::Const(HostValue::Tuple(names)))) = entries.remove("_NOT_YET") {
                for name in names.iter() {
                    if let HostValue::Str(name) = name {
                        let item = Item::NotYet(format!("{module}.{name}").into());
                        entries.insert(name.to_string(), Entry::Item(item));
                    }
                }
            }
            library.modules.insert(module, entries);
        }
        library
    }

    /// The paths of its modules.
    pub fn modules(&self) -> impl Iterator<Item = &'static str> {
        self.modules.keys().copied()
    }

    /// What a path names. The package itself is the empty path.
    pub fn resolve(&self, path: &str) -> Option<Item> {
        let mut path = path.to_string();
        for _ in 0..8 {
            path = canonical(&path).into_owned();
            if let Some((_, target)) = ALIASES.iter().find(|(alias, _)| *alias == path) {
                path = (*target).to_string();
            }
            if path.is_empty() || self.modules.contains_key(path.as_str()) {
                return Some(Item::Module(path.into()));
            }
            let (module, name) = path.rsplit_once('.').unwrap_or(("", &path));
            if module.is_empty() {
                return package_item(name);
            }
            let module = ALIASES.iter().find(|(a, _)| *a == module).map_or(module, |(_, target)| target);
            let Some(entries) = self.modules.get(module) else {
                return match self.resolve(module)? {
                    Item::Class(class) => self.class_attribute(&class, name),
                    Item::NotYet(outer) => Some(Item::NotYet(format!("{outer}.{name}").into())),
                    _ => None,
                };
            };
            match entries.get(name)? {
                Entry::Item(item) => return Some(item.clone()),
                Entry::Import(target) => path = target.clone(),
                Entry::Constructor(_) => return None,
            }
        }
        None
    }

    /// A constant of a class (`PropagateNan.ALL`) or a class inside of it, by the class's path.
    pub fn class_attribute(&self, class: &str, name: &str) -> Option<Item> {
        match self.class_entry(class, name)? {
            Entry::Item(item) => Some(item.clone()),
            Entry::Import(_) | Entry::Constructor(_) => None,
        }
    }

    fn class_entry(&self, class: &str, name: &str) -> Option<&Entry> {
        let mut dots = class.match_indices('.').map(|(at, _)| class.split_at(at));
        let (module, class) = dots.rfind(|(module, _)| self.modules.contains_key(module))?;
        self.modules.get(module)?.get(&format!("{}.{name}", &class[1..]))
    }

    /// The parameters that a class of the language is called with.
    pub fn constructor(&self, class: &str) -> Option<Arc<Builtin>> {
        match self.class_entry(class, CONSTRUCTOR)? {
            Entry::Constructor(builtin) => Some(builtin.clone()),
            Entry::Item(_) | Entry::Import(_) => None,
        }
    }

    /// A method of tensors: a function marked `@member`.
    pub fn member(&self, name: &str) -> Option<&Item> {
        self.members.get(name)
    }

    /// The names of tensor methods.
    pub fn member_names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// The functions of a module's classes, as `class.function`.
    pub fn methods(&self, module: &str) -> Vec<&str> {
        let is_function = |entry: &Entry| matches!(entry, Entry::Item(Item::Builtin(_)));
        let entries = self.modules.get(module).into_iter().flatten();
        entries
            .filter(|(name, e)| name.contains('.') && is_function(e))
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// The public names of a module, for «did you mean».
    pub fn names(&self, module: &str) -> Vec<&str> {
        let module = canonical(module);
        let module = ALIASES.iter().find(|(a, _)| *a == module).map_or(&*module, |(_, target)| target);
        let mut names: Vec<&str> = match self.modules.get(module) {
            Some(entries) => entries
                .keys()
                .map(String::as_str)
                .filter(|n| !n.starts_with('_') && !n.contains('.'))
                .collect(),
            None => vec!["language", "cdiv", "next_power_of_2", EXTENSIONS],
        };
        names.sort_unstable();
        names
    }

    /// Every file of the library with its text, for cache keys.
    pub fn files() -> &'static [(&'static str, &'static str)] {
        FILES
    }
}

/// Functions of the package itself that kernels may call on constants.
fn package_item(name: &str) -> Option<Item> {
    let function = |name: &str, params: &[&str]| {
        Item::Builtin(Arc::new(Builtin {
            path: name.into(),
            name: name.into(),
            params: params.iter().map(|p| ((*p).into(), None)).collect(),
            positional: params.len(),
            variadic: None,
            named: None,
            aliases: Vec::new(),
            must_use: None,
            summary: String::new(),
        }))
    };
    Some(match name {
        "cdiv" => function("cdiv", &["x", "y"]),
        "next_power_of_2" => function("next_power_of_2", &["n"]),
        _ => return None,
    })
}

fn load_statement(
    module: &'static str,
    stmt: &Stmt,
    source: &Arc<SourceText>,
    next_id: &mut u64,
    entries: &mut FxHashMap<String, Entry>,
    members: &mut FxHashMap<String, Item>,
) {
    match stmt {
        Stmt::ImportFrom(import) => {
            let base = match (&import.module, import.level) {
                (Some(name), 1) if is_package(module) => format!("{module}.{name}"),
                (None, 1) if is_package(module) => module.to_string(),
                (name, level) if level > 0 => {
                    // One level up for each dot, the first of which is the module's own name.
                    let mut parts: Vec<&str> = module.split('.').collect();
                    let drop = level as usize - usize::from(is_package(module));
                    parts.truncate(parts.len().saturating_sub(drop));
                    let mut base = parts.join(".");
                    if let Some(name) = name {
                        base = if base.is_empty() { name.to_string() } else { format!("{base}.{name}") };
                    }
                    base
                }
                _ => return,
            };
            for alias in &import.names {
                let name = alias.asname.as_ref().unwrap_or(&alias.name).to_string();
                entries.insert(name, Entry::Import(format!("{base}.{}", alias.name)));
            }
        }
        Stmt::FunctionDef(def) => {
            let marks: Vec<&str> =
                def.decorator_list.iter().filter_map(|d| last_name(&d.expression)).collect();
            let name = def.name.to_string();
            let path: Arc<str> = format!("{module}.{name}").into();
            let item = if marks.contains(&"builtin") {
                Item::Builtin(Arc::new(builtin(path, &name, def, entries)))
            } else if marks.contains(&"jit") || marks.contains(&"constexpr_function") {
                *next_id += 1;
                let function = JitFunction::parsed(
                    *next_id,
                    format!("{PACKAGE}{module}"),
                    name.as_str(),
                    source.clone(),
                    JitMarks::default(),
                    Arc::new(def.clone()),
                );
                Item::Jit(if marks.contains(&"jit") {
                    function
                } else {
                    function.of_kind(FunctionKind::Constexpr)
                })
            } else {
                return;
            };
            if marks.contains(&"member") {
                members.insert(name.clone(), item.clone());
            }
            entries.insert(name, Entry::Item(item));
        }
        Stmt::ClassDef(class) if is_aggregate(class) => {
            let id = |_: &_| {
                *next_id += 1;
                *next_id
            };
            let home = format!("{PACKAGE}{module}").into();
            let annotation = |expr: &Expr| annotation(module, expr);
            let made = AggregateClass::parse(&home, source, class, id, annotation);
            debug_assert!(made.is_ok(), "{module}.{} can be read", class.name);
            if let Ok(made) = made {
                entries.insert(class.name.to_string(), Entry::Item(Item::Aggregate(made.into())));
            }
        }
        Stmt::ClassDef(class) => {
            load_class(module, class.name.to_string(), class, entries);
        }
        Stmt::Assign(assign) => {
            if let [Expr::Name(target)] = assign.targets.as_slice()
                && let Some(value) = constant(&assign.value, entries)
                    .or_else(|| of_class(module, target.id.as_str(), &assign.value, entries))
            {
                entries.insert(target.id.to_string(), Entry::Item(Item::Const(value)));
            }
        }
        _ => {}
    }
}

/// What an annotation of a field names: a class by its path, which is looked up where it is asked for.
fn annotation(module: &str, expr: &Expr) -> Result<HostValue, HostError> {
    match expr {
        Expr::Name(name) if crate::eval::is_python_builtin(&name.id) => {
            Ok(HostValue::Python(name.id.as_str().into()))
        }
        Expr::Name(name) => Ok(HostValue::Library(format!("{module}.{}", name.id).into())),
        Expr::Attribute(a) => match annotation(module, &a.value)? {
            HostValue::Library(of) => Ok(HostValue::Library(format!("{of}.{}", a.attr).into())),
            other => Err(HostError::new(format!("an attribute of {other}"))),
        },
        Expr::NoneLiteral(_) => Ok(HostValue::None),
        _ => Err(HostError::new("an annotation that names no class")),
    }
}

/// The method whose parameters a call of a class has.
const CONSTRUCTOR: &str = "__init__";

/// A class with its constants, which stand under its name, and the classes inside of it.
fn load_class(
    module: &'static str,
    name: String,
    class: &ruff_python_ast::StmtClassDef,
    entries: &mut FxHashMap<String, Entry>,
) {
    for stmt in &class.body {
        match stmt {
            Stmt::Assign(assign) => {
                if let Some(key) = last_name(&assign.targets[0])
                    && let Some(value) = constant(&assign.value, entries)
                {
                    entries.insert(format!("{name}.{key}"), Entry::Item(Item::Const(value)));
                }
            }
            // Its parameters, under the class's own name.
            Stmt::FunctionDef(def) if def.name.as_str() == CONSTRUCTOR => {
                let path = format!("{module}.{name}.{CONSTRUCTOR}").into();
                let mut made = builtin(path, &name, def, entries);
                made.params.remove(0);
                made.positional -= 1;
                entries.insert(format!("{name}.{CONSTRUCTOR}"), Entry::Constructor(made.into()));
            }
            Stmt::FunctionDef(def)
                if def.decorator_list.iter().any(|d| last_name(&d.expression) == Some("builtin")) =>
            {
                let key = format!("{name}.{}", def.name);
                let made = builtin(format!("{module}.{key}").into(), def.name.as_str(), def, entries);
                entries.insert(key, Entry::Item(Item::Builtin(made.into())));
            }
            Stmt::ClassDef(inner) => load_class(module, format!("{name}.{}", inner.name), inner, entries),
            _ => {}
        }
    }
    let path = format!("{module}.{name}").into();
    entries.insert(name, Entry::Item(Item::Class(path)));
}

fn is_package(module: &str) -> bool {
    PACKAGES.contains(&module)
}

fn builtin(
    path: Arc<str>,
    name: &str,
    def: &ruff_python_ast::StmtFunctionDef,
    entries: &FxHashMap<String, Entry>,
) -> Builtin {
    let p: &Parameters = &def.parameters;
    let params = p
        .posonlyargs
        .iter()
        .chain(p.args.iter())
        .chain(p.kwonlyargs.iter())
        .map(|param| {
            let default = param.default.as_deref().map(|d| constant(d, entries).unwrap_or(HostValue::None));
            (Arc::from(param.parameter.name.as_str()), default)
        })
        .collect();
    let summary = match def.body.first() {
        Some(Stmt::Expr(e)) => match &*e.value {
            Expr::StringLiteral(s) => s.value.to_str().lines().next().unwrap_or("").to_string(),
            _ => String::new(),
        },
        _ => String::new(),
    };
    Builtin {
        path,
        name: name.into(),
        params,
        positional: p.posonlyargs.len() + p.args.len(),
        variadic: p.vararg.as_ref().map(|v| Arc::from(v.name.as_str())),
        named: p.kwarg.as_ref().map(|v| Arc::from(v.name.as_str())),
        aliases: aliases(def),
        must_use: must_use(def),
        summary,
    }
}

/// What `@also(ptr="pointer")` says of a function.
fn aliases(def: &ruff_python_ast::StmtFunctionDef) -> Vec<(Arc<str>, Arc<str>)> {
    let mark = def.decorator_list.iter().find(|d| last_name(&d.expression) == Some("also"));
    let Some(Expr::Call(call)) = mark.map(|mark| &mark.expression) else { return Vec::new() };
    let pair = |keyword: &ruff_python_ast::Keyword| match &keyword.value {
        Expr::StringLiteral(text) => {
            Some((keyword.arg.as_ref()?.as_str().into(), text.value.to_str().into()))
        }
        _ => None,
    };
    call.arguments.keywords.iter().filter_map(pair).collect()
}

/// An instance of a class of the library (`smem = scope("smem")`), which is known by its path.
fn of_class(module: &str, name: &str, expr: &Expr, entries: &FxHashMap<String, Entry>) -> Option<HostValue> {
    let Expr::Call(call) = expr else { return None };
    let class = entries.get(last_name(&call.func)?)?;
    matches!(class, Entry::Item(Item::Class(_)))
        .then(|| HostValue::Library(format!("{module}.{name}").into()))
}

/// The value of a constant expression of the library: literals, `dtype("fp16")`, `pointer_type(int32)`,
/// `constexpr(10)` and earlier names.
fn constant(expr: &Expr, entries: &FxHashMap<String, Entry>) -> Option<HostValue> {
    match expr {
        Expr::Name(name) => match entries.get(name.id.as_str())? {
            Entry::Item(Item::Const(value)) => Some(value.clone()),
            _ => None,
        },
        Expr::Attribute(a) => match entries.get(&format!("{}.{}", last_name(&a.value)?, a.attr))? {
            Entry::Item(Item::Const(value)) => Some(value.clone()),
            _ => None,
        },
        Expr::Call(call) => {
            let argument = constant(call.arguments.args.first()?, entries)?;
            match (last_name(&call.func)?, argument) {
                ("dtype", HostValue::Str(name)) => Some(HostValue::DType(Scalar::parse(&name)?.into())),
                ("pointer_type", HostValue::DType(element)) => {
                    Some(HostValue::DType(DType::pointer_to(element)))
                }
                ("constexpr", value) => Some(value),
                _ => None,
            }
        }
        Expr::Tuple(tuple) => tuple
            .elts
            .iter()
            .map(|e| constant(e, entries))
            .collect::<Option<Arc<[_]>>>()
            .map(HostValue::Tuple),
        other => fold::literal(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_definitions() {
        let library = Library::get();
        assert!(
            matches!(library.resolve("language.load"), Some(Item::Builtin(b)) if &*b.path == "language.core.load")
        );
        assert!(matches!(library.resolve("language.math.exp"), Some(Item::Builtin(_))));
        assert!(
            matches!(library.resolve("language.exp"), Some(Item::Builtin(b)) if &*b.path == "language.math.exp")
        );
        assert!(matches!(library.resolve("language.sum"), Some(Item::Jit(_))));
        assert!(
            matches!(library.resolve("language.random.core"), Some(Item::Module(m)) if &*m == "language.core")
        );
        assert!(matches!(library.resolve("language.extra.cuda.libdevice.tanh"), Some(Item::Builtin(_))));
        assert!(matches!(
            library.resolve("language.float16"),
            Some(Item::Const(HostValue::DType(DType::Scalar(Scalar::Fp16))))
        ));
        assert!(matches!(
            library.resolve("language.random.N_ROUNDS_DEFAULT"),
            Some(Item::Const(HostValue::Int(10)))
        ));
        assert!(library.resolve("language.lood").is_none());
        assert!(library.member("sum").is_some());
    }

    #[test]
    fn a_class_of_the_library_is_read() {
        let text = "@_aggregate\nclass Slot:\n    stage: _core.tensor\n    depth: constexpr | int\n    pipe: Pipe\n\n    \
                    def __init__(self, stage):\n        self.stage = stage\n\n    @jit\n    def advance(self):\n        pass\n";
        let source = SourceText::new("tilewright/tle/_pipe.py", text, 1);
        let mut entries = FxHashMap::default();
        for stmt in &source.parse().expect("parses") {
            load_statement("tle", stmt, &source, &mut 0, &mut entries, &mut FxHashMap::default());
        }
        let Some(Entry::Item(Item::Aggregate(class))) = entries.get("Slot") else { panic!("a class") };
        let classes: Vec<String> = class.fields.iter().map(|(_, class)| class.to_string()).collect();
        assert_eq!(classes, ["tle._core.tensor", "(tle.constexpr, int)", "tle.Pipe"]);
        let kinds: Vec<_> = class.methods.iter().map(|(name, m)| (&**name, m.function.kind)).collect();
        assert_eq!(kinds, [("__init__", FunctionKind::Plain), ("advance", FunctionKind::Kernel)]);
        assert!(class.methods.iter().all(|(_, m)| m.function.module.starts_with(PACKAGE)));
    }

    #[test]
    fn every_exported_name_resolves() {
        let library = Library::get();
        for name in library.names("language") {
            assert!(library.resolve(&format!("language.{name}")).is_some(), "{name}");
        }
    }

    #[test]
    fn signatures_are_the_files() {
        let Some(Item::Builtin(dot)) = Library::get().resolve("language.dot") else { panic!("dot") };
        assert_eq!(
            dot.signature(),
            "tl.dot(input, other, acc=None, input_precision=None, allow_tf32=None, \
             max_num_imprecise_acc=None, out_dtype=fp32, tiling=None)"
        );
    }
}
