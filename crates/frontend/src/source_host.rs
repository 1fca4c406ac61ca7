//! The host that needs no Python: it evaluates the top level of one source file, as far as kernels ask for it.
//!
//! Names are looked up lazily, so a file may import anything and do anything at its top level; only what a kernel
//! names must be understood: imports of `tilewright` or `triton`, functions decorated with `@jit` (other decorators
//! such as `autotune` and `heuristics` are passed over) and constants that are expressions of other constants. A host
//! made by [`SourceHost::open`] also follows imports of neighbouring files.

use std::cell::{Cell, RefCell};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use ruff_python_ast::{Decorator, Expr, Stmt, StmtClassDef, StmtFunctionDef, StmtImportFrom};
use rustc_hash::FxHashMap;
use tilewright_ir::Diagnostic;

use crate::aggregate::{AggregateClass, is_aggregate};
use crate::dtype::{DType, Scalar};
use crate::fold;
use crate::host::{
    Binding, Host, HostError, HostObject, HostValue, JitFunction, Origin, RAW_FUNCTION, made_with_python,
};
use crate::library::{Item, Library};
use crate::source::{JitMark, SourceText, jit_mark};

/// What a top-level name was bound to last.
#[derive(Debug)]
enum Definition {
    Jit(Arc<JitFunction>),
    Value(HostValue),
    Assign {
        value: Expr,
        constexpr: bool,
    },
    /// A value of which the file's text alone does not say which it is, with why.
    Unknown(&'static str),
    /// A class decorated with `@_aggregate`.
    Aggregate(Box<StmtClassDef>),
    Object(Arc<HostObject>),
    /// A module of another file, or something in it.
    Import {
        level: u32,
        module: String,
        item: Option<String>,
        object: Arc<HostObject>,
    },
}

/// One file.
#[derive(Debug)]
struct File {
    source: Arc<SourceText>,
    /// Its key, which its functions carry as their module.
    key: Arc<str>,
    /// Where it lies, for imports; none for text that came from nowhere.
    path: Option<PathBuf>,
    names: FxHashMap<String, Definition>,
    evaluated: RefCell<FxHashMap<String, HostValue>>,
}

/// A source file as a host.
#[derive(Debug)]
pub struct SourceHost {
    main: Rc<File>,
    /// Files by key, the imported ones too.
    files: RefCell<FxHashMap<Arc<str>, Rc<File>>>,
    depth: Cell<u32>,
    needs_python: Cell<bool>,
}

/// The path in the library of a module of the language's package, `None` for other modules.
pub fn library_path(module: &str) -> Option<&str> {
    for package in ["tilewright", "triton"] {
        if module == package {
            return Some("");
        }
        if let Some(rest) = module.strip_prefix(package).and_then(|rest| rest.strip_prefix('.')) {
            return Some(rest);
        }
    }
    None
}

impl File {
    fn new(file: &str, text: &str, path: Option<PathBuf>) -> Result<File, Diagnostic> {
        let source = SourceText::new(file, text, 1);
        let statements = source.parse()?;
        let key = match path {
            Some(_) => file,
            None => {
                let stem = file.rsplit(['/', '\\']).next().unwrap_or(file);
                stem.strip_suffix(".py").unwrap_or(stem)
            }
        };
        let mut this = File {
            source,
            key: key.into(),
            path,
            names: FxHashMap::default(),
            evaluated: RefCell::default(),
        };
        this.define_all(&statements);
        Ok(this)
    }

    fn define_all(&mut self, statements: &[Stmt]) {
        for stmt in statements {
            self.define(stmt);
        }
    }

    fn object(&mut self, kind: &str, name: &str) -> Arc<HostObject> {
        // Keys are for equality within one compilation: the file's key and the count make them unlike.
        let mut hash = rustc_hash::FxHasher::default();
        (&self.key, self.names.len(), name).hash(&mut hash);
        Arc::new(HostObject {
            id: hash.finish(),
            kind: kind.into(),
            name: name.into(),
            callable: false,
            namedtuple_fields: None,
        })
    }

    fn define(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Import(import) => {
                for alias in &import.names {
                    let full = alias.name.as_str();
                    let (name, module) = match &alias.asname {
                        Some(name) => (name.as_str(), full),
                        // `import a.b` binds `a`.
                        None => {
                            let first = full.split('.').next().unwrap_or(full);
                            (first, first)
                        }
                    };
                    let definition = match library_path(module) {
                        Some(path) => Definition::Value(HostValue::Library(path.into())),
                        None => {
                            let object = self.object("module", module);
                            Definition::Import { level: 0, module: module.to_string(), item: None, object }
                        }
                    };
                    self.names.insert(name.to_string(), definition);
                }
            }
            Stmt::ImportFrom(import) => self.define_items(import),
            Stmt::FunctionDef(def) => {
                let name = def.name.to_string();
                let definition = match jit_mark(&def.decorator_list) {
                    Some(mark) => Definition::Jit(self.jit(def, mark)),
                    None if is_raw(&def.decorator_list) => {
                        Definition::Object(self.object(RAW_FUNCTION, &name))
                    }
                    None => Definition::Object(self.object("function", &name)),
                };
                self.names.insert(name, definition);
            }
            Stmt::ClassDef(class) if is_aggregate(class) => {
                let definition = Definition::Aggregate(Box::new(class.clone()));
                self.names.insert(class.name.to_string(), definition);
            }
            Stmt::ClassDef(class) => {
                let name = class.name.to_string();
                let mut object = self.object("class", &name);
                if class.bases().iter().any(|b| last_name(b) == Some("NamedTuple")) {
                    let fields = class
                        .body
                        .iter()
                        .filter_map(|s| match s {
                            Stmt::AnnAssign(a) => last_name(&a.target).map(Arc::from),
                            _ => None,
                        })
                        .collect();
                    object = Arc::new(HostObject { namedtuple_fields: Some(fields), ..(*object).clone() });
                }
                self.names.insert(name, Definition::Object(object));
            }
            Stmt::Assign(assign) => {
                for target in &assign.targets {
                    if let Expr::Name(name) = target {
                        let definition =
                            Definition::Assign { value: (*assign.value).clone(), constexpr: false };
                        self.names.insert(name.id.to_string(), definition);
                    }
                }
            }
            Stmt::AnnAssign(assign) => {
                if let (Expr::Name(name), Some(value)) = (&*assign.target, &assign.value) {
                    let constexpr = last_name(&assign.annotation) == Some("constexpr");
                    let definition = Definition::Assign { value: (**value).clone(), constexpr };
                    self.names.insert(name.id.to_string(), definition);
                }
            }
            Stmt::AugAssign(assign) => {
                if let Expr::Name(name) = &*assign.target {
                    self.names.insert(
                        name.id.to_string(),
                        Definition::Unknown("it is changed after its definition"),
                    );
                }
            }
            // Guarded imports and definitions: which branch runs is unknown, names of all are taken.
            Stmt::If(s) => {
                // The first branch is taken to be the modern one.
                let others = s.elif_else_clauses.iter().rev().map(|clause| clause.body.as_slice());
                self.define_guarded(others.chain([s.body.as_slice()]));
            }
            Stmt::Try(s) => {
                let handlers = s.handlers.iter().map(|handler| {
                    let ruff_python_ast::ExceptHandler::ExceptHandler(handler) = handler;
                    handler.body.as_slice()
                });
                self.define_guarded(handlers.chain([s.body.as_slice(), s.orelse.as_slice()]));
            }
            Stmt::With(s) => self.define_all(&s.body),
            _ => {}
        }
    }

    /// Branches of which some run; a later one goes before. Functions and imports of all are taken, and so are values that one branch alone
    /// gives; which of several values a name has is not known.
    fn define_guarded<'a>(&mut self, branches: impl Iterator<Item = &'a [Stmt]>) {
        let mut several = Vec::new();
        for branch in branches {
            let assigned = assigned_names(branch).into_iter();
            // By another branch, or by what stands before.
            several.extend(assigned.filter(|name| self.has_value(name)));
            self.define_all(branch);
        }
        for name in several {
            if self.has_value(name) {
                let why = "it depends on which branch of an `if` or a `try` runs";
                self.names.insert(name.to_string(), Definition::Unknown(why));
            }
        }
    }

    fn has_value(&self, name: &str) -> bool {
        matches!(self.names.get(name), Some(Definition::Assign { .. } | Definition::Unknown(_)))
    }

    /// `from module import a, b`.
    fn define_items(&mut self, import: &StmtImportFrom) {
        let module = import.module.as_ref().map_or("", |m| m.as_str());
        for alias in &import.names {
            let name = alias.asname.as_ref().unwrap_or(&alias.name).to_string();
            let item = alias.name.as_str();
            let path = library_path(module).filter(|_| import.level == 0);
            let definition = match path {
                Some("") => Definition::Value(HostValue::Library(item.into())),
                Some(path) => Definition::Value(library_value(&format!("{path}.{item}"))),
                None => {
                    let object = self.object("import", &format!("{module}.{item}"));
                    let item = Some(item.to_string());
                    Definition::Import { level: import.level, module: module.to_string(), item, object }
                }
            };
            let missing = matches!(&definition, Definition::Value(HostValue::Library(path))
                if Library::get().resolve(path).is_none());
            if missing && self.names.contains_key(&name) {
                continue; // one of several guarded imports, of a name that does not exist
            }
            self.names.insert(name, definition);
        }
    }

    fn jit(&self, def: &StmtFunctionDef, mark: JitMark) -> Arc<JitFunction> {
        // The offset in the file is unique within it.
        let id = u64::from(def.range.start().to_u32()) + 1;
        let definition = Arc::new(def.clone());
        let (module, name) = (self.key.clone(), def.name.as_str());
        let function = JitFunction::parsed(id, module, name, self.source.clone(), mark.marks, definition);
        function.of_kind(mark.kind)
    }
}

impl SourceHost {
    /// Reads a file's text. `file` is its name for messages. Imports of other files are not followed.
    pub fn new(file: &str, text: &str) -> Result<SourceHost, Diagnostic> {
        Self::with(File::new(file, text, None)?)
    }

    /// Reads a file. Imports of files beside it, and of packages that hold it or lie beside those, are followed where a
    /// kernel needs them.
    pub fn open(path: &Path) -> Result<SourceHost, Diagnostic> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Diagnostic::new(format!("{} cannot be read: {error}", path.display())))?;
        Self::with(File::new(&path.display().to_string(), &text, Some(path.to_path_buf()))?)
    }

    fn with(main: File) -> Result<SourceHost, Diagnostic> {
        let main = Rc::new(main);
        let files = FxHashMap::from_iter([(main.key.clone(), main.clone())]);
        Ok(SourceHost {
            main,
            files: RefCell::new(files),
            depth: Cell::new(0),
            needs_python: Cell::new(false),
        })
    }

    /// A function of the file that is decorated with `@jit`.
    pub fn function(&self, name: &str) -> Result<Arc<JitFunction>, Diagnostic> {
        let file = &self.main.source.file;
        match self.main.names.get(name) {
            Some(Definition::Jit(function)) => Ok(function.clone()),
            Some(Definition::Object(object)) if &*object.kind == "function" => {
                Err(Diagnostic::new(format!("`{name}` in {file} is no kernel"))
                    .note("decorate it with @tilewright.jit"))
            }
            _ => {
                let kernels = self.kernels().join(", ");
                Err(Diagnostic::new(format!("{file} has no kernel `{name}`"))
                    .note(format!("its kernels are: {kernels}")))
            }
        }
    }

    /// Whether something that a kernel named needs Python: an error that came of it would not have been one with Python at hand.
    pub fn needs_python(&self) -> bool {
        self.needs_python.get()
    }

    /// What cannot be had here.
    fn without_python(&self, message: String) -> HostError {
        self.needs_python.set(true);
        HostError::new(message)
    }

    /// The names of the functions decorated with `@jit`, sorted.
    pub fn kernels(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .main
            .names
            .iter()
            .filter(|(_, d)| matches!(d, Definition::Jit(_)))
            .map(|(name, _)| name.as_str())
            .collect();
        names.sort_unstable();
        names
    }

    /// The file of a module that `from` imports, if it can be found.
    fn import(&self, from: &File, level: u32, module: &str) -> Option<Rc<File>> {
        let directory = from.path.as_ref()?.parent()?;
        let relative: PathBuf = module.split('.').filter(|part| !part.is_empty()).collect();
        let roots: Vec<&Path> = match level {
            // `import a.b`: beside the file, or beside a package that holds it.
            0 => directory.ancestors().take(12).collect(),
            n => directory.ancestors().skip(n as usize - 1).take(1).collect(),
        };
        for root in roots {
            let base = root.join(&relative);
            for candidate in [base.with_extension("py"), base.join("__init__.py")] {
                if !candidate.is_file() {
                    continue;
                }
                let key: Arc<str> = candidate.display().to_string().into();
                if let Some(known) = self.files.borrow().get(&key) {
                    return Some(known.clone());
                }
                let text = std::fs::read_to_string(&candidate).ok()?;
                let file = Rc::new(File::new(&key, &text, Some(candidate)).ok()?);
                self.files.borrow_mut().insert(file.key.clone(), file.clone());
                return Some(file);
            }
        }
        None
    }

    /// The value of a top-level name of a file.
    fn value(&self, file: &File, name: &str) -> Result<Option<(HostValue, bool)>, HostError> {
        Ok(Some(match file.names.get(name) {
            None => return Ok(None),
            Some(Definition::Jit(function)) => (HostValue::Jit(function.clone()), false),
            Some(Definition::Value(value)) => (value.clone(), false),
            Some(Definition::Object(object)) => (HostValue::Object(object.clone()), false),
            Some(Definition::Aggregate(class)) => {
                if let Some(known) = file.evaluated.borrow().get(name) {
                    return Ok(Some((known.clone(), false)));
                }
                let value = HostValue::Class(self.aggregate(file, class)?);
                file.evaluated.borrow_mut().insert(name.to_string(), value.clone());
                (value, false)
            }
            Some(Definition::Import { level, module, item, object }) => {
                if self.depth.get() > 20 {
                    // Packages that import each other in a circle.
                    return Ok(Some((HostValue::Object(object.clone()), false)));
                }
                self.depth.set(self.depth.get() + 1);
                let found = self.imported(file, *level, module, item.as_deref());
                self.depth.set(self.depth.get() - 1);
                match found? {
                    Some(found) => found,
                    None => (HostValue::Object(object.clone()), false),
                }
            }
            Some(Definition::Unknown(why)) => {
                let message = format!("the global `{name}` cannot be evaluated without Python: {why}");
                let hint = "give it one value, or pass it as a tl.constexpr parameter";
                return Err(self.without_python(message).hint(hint));
            }
            Some(Definition::Assign { value, constexpr }) => {
                let wrapped = *constexpr || self.is_constexpr_call(file, value);
                if let Some(known) = file.evaluated.borrow().get(name) {
                    return Ok(Some((known.clone(), wrapped)));
                }
                if self.depth.get() > 50 {
                    return Err(HostError::new(format!("the global `{name}` is defined by itself")));
                }
                self.depth.set(self.depth.get() + 1);
                let result = self.eval(file, value);
                self.depth.set(self.depth.get() - 1);
                let result = result.map_err(|error| {
                    let (line, _) = file.source.line_col(ruff_text_size::Ranged::start(value));
                    self.without_python(format!(
                        "the global `{name}` (line {line}) cannot be evaluated without Python: {}",
                        error.message
                    ))
                    .hint("make it an expression of constants, or pass the value as a tl.constexpr parameter")
                })?;
                file.evaluated.borrow_mut().insert(name.to_string(), result.clone());
                (result, wrapped)
            }
        }))
    }

    /// A class decorated with `@_aggregate`, with what its annotations mean.
    fn aggregate(&self, file: &File, class: &StmtClassDef) -> Result<Arc<AggregateClass>, HostError> {
        let name = &class.name;
        if self.depth.get() > 50 {
            return Err(HostError::new(format!("a field of the class `{name}` has the class itself")));
        }
        self.depth.set(self.depth.get() + 1);
        // The offset in the file is unique within it.
        let id = |def: &StmtFunctionDef| u64::from(def.range.start().to_u32()) + 1;
        let annotation = |expr: &Expr| match self.eval(file, expr) {
            Ok(value) => Ok(value),
            Err(error) => Err(self.without_python(format!(
                "an annotation of the class `{name}` cannot be evaluated without Python: {}",
                error.message
            ))),
        };
        let made = AggregateClass::parse(&file.key, &file.source, class, id, annotation);
        self.depth.set(self.depth.get() - 1);
        made.map(Arc::new)
    }

    /// What an import of another file gives: the item of it, or the module itself.
    fn imported(
        &self,
        from: &File,
        level: u32,
        module: &str,
        item: Option<&str>,
    ) -> Result<Option<(HostValue, bool)>, HostError> {
        let Some(item) = item else {
            return Ok(self.import(from, level, module).map(|file| (module_value(&file), false)));
        };
        if let Some(file) = self.import(from, level, module)
            && let Some(found) = self.value(&file, item)?
        {
            return Ok(Some(found));
        }
        // `from package import module`
        let full = if module.is_empty() { item.to_string() } else { format!("{module}.{item}") };
        Ok(self.import(from, level, &full).map(|file| (module_value(&file), false)))
    }

    /// Evaluates an expression of constants.
    fn eval(&self, file: &File, expr: &Expr) -> Result<HostValue, HostError> {
        if let Some(value) = fold::literal(expr) {
            return Ok(value);
        }
        let unknown = |what: &str| Err(HostError::new(format!("it contains {what}")));
        match expr {
            Expr::Name(name) => match self.value(file, name.id.as_str())? {
                Some((value, _)) => Ok(value),
                None if crate::eval::is_python_builtin(&name.id) => {
                    Ok(HostValue::Python(name.id.as_str().into()))
                }
                None => unknown(&format!("the unknown name `{}`", name.id)),
            },
            Expr::Attribute(a) => match self.eval(file, &a.value)? {
                HostValue::Library(path) => {
                    let full =
                        if path.is_empty() { a.attr.to_string() } else { format!("{path}.{}", a.attr) };
                    Ok(library_value(&full))
                }
                HostValue::NamedTuple(t) => match t.fields.iter().position(|f| **f == *a.attr.as_str()) {
                    Some(i) => Ok(t.values[i].clone()),
                    None => unknown(&format!("the unknown field `{}`", a.attr)),
                },
                HostValue::Object(object) if &*object.kind == MODULE => {
                    match self.attribute(&object, &a.attr)? {
                        Some(value) => Ok(value),
                        None => unknown(&format!("the unknown name `{}.{}`", object.name, a.attr)),
                    }
                }
                other => unknown(&format!("an attribute of {other}")),
            },
            Expr::Tuple(t) => {
                t.elts.iter().map(|e| self.eval(file, e)).collect::<Result<_, _>>().map(HostValue::Tuple)
            }
            Expr::List(t) => {
                t.elts.iter().map(|e| self.eval(file, e)).collect::<Result<_, _>>().map(HostValue::Tuple)
            }
            Expr::BinOp(b) => fold::binary(b.op, &self.eval(file, &b.left)?, &self.eval(file, &b.right)?)
                .map_err(HostError::new),
            Expr::UnaryOp(u) => fold::unary(u.op, &self.eval(file, &u.operand)?).map_err(HostError::new),
            Expr::Compare(c) if c.ops.len() == 1 => {
                fold::compare(c.ops[0], &self.eval(file, &c.left)?, &self.eval(file, &c.comparators[0])?)
                    .map(HostValue::Bool)
                    .map_err(HostError::new)
            }
            Expr::If(i) => match self.eval(file, &i.test)?.truth() {
                Some(true) => self.eval(file, &i.body),
                Some(false) => self.eval(file, &i.orelse),
                None => unknown("a condition without a truth value"),
            },
            Expr::Subscript(s) => match (self.eval(file, &s.value)?, self.eval(file, &s.slice)?) {
                (HostValue::Tuple(items), HostValue::Int(i)) => {
                    let i = if i < 0 { i + items.len() as i128 } else { i };
                    match usize::try_from(i).ok().and_then(|i| items.get(i)) {
                        Some(item) => Ok(item.clone()),
                        None => unknown("an index outside of a tuple"),
                    }
                }
                (other, _) => unknown(&format!("an index into {other}")),
            },
            Expr::Call(call) => {
                let callee = self.eval(file, &call.func)?;
                let args =
                    call.arguments.args.iter().map(|e| self.eval(file, e)).collect::<Result<Vec<_>, _>>()?;
                call_of_constants(&callee, &args)
            }
            _ => unknown("an expression that is no constant"),
        }
    }
}

/// Whether one of the decorators makes a function one in another language (`tle.raw`).
fn is_raw(decorators: &[Decorator]) -> bool {
    decorators.iter().any(|decorator| match &decorator.expression {
        Expr::Call(call) => matches!(last_name(&call.func), Some("dialect" | "language")),
        _ => false,
    })
}

/// The kind of an object that is an imported file.
const MODULE: &str = "file";

fn module_value(file: &File) -> HostValue {
    HostValue::Object(Arc::new(HostObject {
        id: 0,
        kind: MODULE.into(),
        name: file.key.clone(),
        callable: false,
        namedtuple_fields: None,
    }))
}

/// What a function of the library or of Python gives for constants.
fn call_of_constants(callee: &HostValue, args: &[HostValue]) -> Result<HostValue, HostError> {
    use ruff_python_ast::{CmpOp, Operator, UnaryOp};
    let unknown = |what: &str| Err(HostError::new(format!("it contains {what}")));
    match (callee, args) {
        (HostValue::Library(path), [value]) if path.ends_with("constexpr") => Ok(value.clone()),
        (HostValue::Library(path), [HostValue::DType(element)]) if path.ends_with("pointer_type") => {
            match DType::pointer_to(element.clone()).shallow() {
                Ok(ty) => Ok(HostValue::DType(ty)),
                Err(message) => unknown(&message),
            }
        }
        (HostValue::Library(path), [HostValue::Str(name)]) if path.ends_with("dtype") => {
            match Scalar::parse(name) {
                Some(scalar) => Ok(HostValue::DType(scalar.into())),
                None => unknown(&format!("the unknown dtype '{name}'")),
            }
        }
        (HostValue::Library(path), [HostValue::Int(n)]) if &**path == "next_power_of_2" => {
            let n = u64::try_from(*n).unwrap_or(1).max(1);
            Ok(HostValue::Int(i128::from(n.next_power_of_two())))
        }
        (HostValue::Library(path), [a @ HostValue::Int(_), b @ HostValue::Int(_)]) if &**path == "cdiv" => {
            let negative = fold::unary(UnaryOp::USub, a).map_err(HostError::new)?;
            let q = fold::binary(Operator::FloorDiv, &negative, b).map_err(HostError::new)?;
            fold::unary(UnaryOp::USub, &q).map_err(HostError::new)
        }
        (HostValue::Python(name), [HostValue::Str(text)]) if &**name == "float" => {
            match text.trim().to_ascii_lowercase().parse() {
                Ok(f) => Ok(HostValue::Float(f)),
                Err(_) => unknown("a float that cannot be read"),
            }
        }
        (HostValue::Python(name), [value]) if matches!(&**name, "float" | "int" | "bool" | "abs") => {
            match (&**name, fold::number(value)) {
                ("float", Some(n)) => Ok(HostValue::Float(n.to_f64())),
                ("bool", Some(n)) => Ok(HostValue::Bool(n.to_f64() != 0.0)),
                ("int", Some(fold::Num::Float(f))) => Ok(HostValue::Int(f.trunc() as i128)),
                ("int", Some(fold::Num::Int(i))) => Ok(HostValue::Int(i)),
                ("abs", Some(fold::Num::Int(i))) => Ok(HostValue::Int(i.saturating_abs())),
                ("abs", Some(fold::Num::Float(f))) => Ok(HostValue::Float(f.abs())),
                _ => unknown(&format!("{name} of {value}")),
            }
        }
        (HostValue::Python(name), [first, rest @ ..]) if matches!(&**name, "min" | "max") => {
            let mut best = first.clone();
            for value in rest {
                let op = if &**name == "min" { CmpOp::Lt } else { CmpOp::Gt };
                if fold::compare(op, value, &best).map_err(HostError::new)? {
                    best = value.clone();
                }
            }
            Ok(best)
        }
        _ => unknown(&format!("a call of {callee}")),
    }
}

/// A library path as a value: constants (dtypes) are given as such.
fn library_value(path: &str) -> HostValue {
    match Library::get().resolve(path) {
        Some(Item::Const(value)) => value,
        _ => HostValue::Library(path.into()),
    }
}

fn last_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
        _ => None,
    }
}

/// The names that statements assign values, in order.
fn assigned_names(stmts: &[Stmt]) -> Vec<&str> {
    let mut names = Vec::new();
    for stmt in stmts {
        let targets = match stmt {
            Stmt::Assign(assign) => assign.targets.as_slice(),
            Stmt::AnnAssign(assign) => std::slice::from_ref(&*assign.target),
            _ => continue,
        };
        names.extend(targets.iter().filter_map(|target| match target {
            Expr::Name(name) => Some(name.id.as_str()),
            _ => None,
        }));
    }
    names
}

impl SourceHost {
    /// `tl.constexpr(…)`, by whatever name it was imported.
    fn is_constexpr_call(&self, file: &File, expr: &Expr) -> bool {
        let Expr::Call(call) = expr else { return false };
        match self.eval(file, &call.func) {
            Ok(HostValue::Library(path)) => path.rsplit('.').next() == Some("constexpr"),
            _ => last_name(&call.func) == Some("constexpr"),
        }
    }

    fn file_of(&self, function: &JitFunction) -> Rc<File> {
        self.files.borrow().get(&function.module).unwrap_or(&self.main).clone()
    }
}

impl Host for SourceHost {
    fn lookup(&self, function: &Arc<JitFunction>, name: &str) -> Result<Option<Binding>, HostError> {
        if let Some((value, constexpr)) = self.value(&self.file_of(function), name)? {
            return Ok(Some(Binding { value, constexpr, origin: Origin::Global }));
        }
        Ok(crate::eval::is_python_builtin(name).then(|| Binding {
            value: HostValue::Python(name.into()),
            constexpr: false,
            origin: Origin::Builtin,
        }))
    }

    fn attribute(&self, object: &HostObject, name: &str) -> Result<Option<HostValue>, HostError> {
        if &*object.kind == MODULE {
            let file = self.files.borrow().get(&object.name).cloned();
            if let Some(file) = file {
                return Ok(self.value(&file, name)?.map(|(value, _)| value));
            }
        }
        // `import triton` gives the library, so this is another package or a class.
        Err(self
            .without_python(format!("`{}.{name}` cannot be looked up without Python", object.name))
            .hint("pass the value as a tl.constexpr parameter, or define it in the file"))
    }

    fn default_argument(
        &self,
        function: &Arc<JitFunction>,
        parameter: &str,
    ) -> Result<Option<HostValue>, HostError> {
        let definition = match function.definition() {
            Ok(definition) => definition,
            Err(_) => return Ok(None),
        };
        let mut params = definition.parameters.iter_non_variadic_params();
        let param = params.find(|param| param.parameter.name.as_str() == parameter);
        let Some(default) = param.and_then(|param| param.default.as_deref()) else { return Ok(None) };
        let value = self.eval(&self.file_of(function), default).ok();
        if value.is_none() {
            // The front end may know more of it.
            self.needs_python.set(true);
        }
        Ok(value)
    }

    fn constant_attribute(&self, _constant: &HostValue, _name: &str) -> Result<Option<HostValue>, HostError> {
        self.needs_python.set(true);
        Ok(None)
    }

    fn library(&self, path: &str, _args: &[HostValue]) -> Result<HostValue, HostError> {
        Err(self.without_python(made_with_python(path)))
    }

    fn names(&self, function: &Arc<JitFunction>) -> Vec<String> {
        self.file_of(function).names.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> SourceHost {
        SourceHost::new("dir/kernels.py", text).expect("parses")
    }

    #[test]
    fn names_are_evaluated_when_asked_for() {
        let host = host(
            "import torch\nimport triton.language as tl\nimport triton\nfrom tilewright.language import float16 as half\n\
             N = tl.constexpr(4)\nM: tl.constexpr = 2 * N + 1\nD = tl.float32\nT = torch.zeros(3)\nP = triton.cdiv(7, 2)\n\
             INF = float('inf')\n",
        );
        let value = |name: &str| host.value(&host.main, name).expect("evaluates").expect("exists");
        assert_eq!(value("tl").0, HostValue::Library("language".into()));
        assert_eq!(value("triton").0, HostValue::Library("".into()));
        assert_eq!(value("N"), (HostValue::Int(4), true));
        assert_eq!(value("M"), (HostValue::Int(9), true));
        assert_eq!(value("D"), (HostValue::DType(Scalar::Fp32.into()), false));
        assert_eq!(value("half").0, HostValue::DType(Scalar::Fp16.into()));
        assert_eq!(value("P"), (HostValue::Int(4), false));
        assert_eq!(value("INF").0, HostValue::Float(f64::INFINITY));
        assert!(host.value(&host.main, "T").is_err());
        assert!(host.value(&host.main, "nothing").expect("no error").is_none());
    }

    #[test]
    fn what_the_text_does_not_say_is_not_guessed() {
        let host = host(
            "from triton.language import constexpr as CE\nimport sys\nN = 4\nN *= 2\nA = CE(3)\n\
             try:\n    import foo\n    HAS = True\nexcept ImportError:\n    HAS = False\n    foo = None\n\
             if sys.argv:\n    M = 1\nelse:\n    M = 2\nK = 1\nif sys.argv:\n    K = 2\n    ONE = 1\n",
        );
        let value = |name: &str| host.value(&host.main, name);
        assert_eq!(value("A").expect("evaluates"), Some((HostValue::Int(3), true)));
        assert_eq!(value("ONE").expect("evaluates"), Some((HostValue::Int(1), false)));
        assert!(value("foo").is_ok());
        assert!(!host.needs_python());
        for name in ["N", "HAS", "M", "K"] {
            let error = value(name).expect_err(name).message;
            assert!(error.contains("cannot be evaluated without Python"), "{error}");
        }
        assert!(host.needs_python());
    }

    #[test]
    fn kernels_are_what_jit_decorates() {
        let host = host(
            "@triton.autotune(configs=[], key=[])\n@triton.jit\ndef k(x):\n    pass\n\
             @tilewright.jit(noinline=True)\ndef h(x):\n    pass\ndef plain():\n    pass\n",
        );
        assert_eq!(host.kernels(), ["h", "k"]);
        assert!(host.function("h").expect("a kernel").marks.noinline);
        assert!(host.function("plain").is_err());
        assert!(host.function("none").is_err());
    }

    #[test]
    fn a_global_defined_by_itself_is_an_error() {
        let host = host("A = B\nB = A\n");
        assert!(host.value(&host.main, "A").is_err());
    }
}
