//! Classes of kernels: what `@_aggregate` decorates.
//!
//! An instance is a compound of values that exists at compile time only ([`crate::value::Aggregate`]). The class has annotated
//! fields and methods: those marked `@jit` are code of the kernel, those marked `@constexpr_function` and plain ones run while the
//! kernel is evaluated, `__init__` among them.

use std::fmt;
use std::sync::Arc;

use ruff_python_ast::{Expr, Operator, Stmt, StmtClassDef, StmtFunctionDef};

use crate::host::{FunctionKind, HostError, HostValue, JitFunction};
use crate::source::{SourceText, jit_mark, last_name};

/// The method that sets the fields.
pub const CONSTRUCTOR: &str = "__init__";

/// A class decorated with `@_aggregate`.
pub struct AggregateClass {
    /// The host's key for it.
    pub id: u64,
    /// The module it lives in.
    pub module: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// The annotated fields, in order, with their class; a tuple stands for any of several.
    pub fields: Vec<(Arc<str>, HostValue)>,
    /// The functions in it, by name.
    pub methods: Vec<(Arc<str>, AggregateMethod)>,
}

/// A function in a class.
#[derive(Debug, Clone)]
pub struct AggregateMethod {
    /// The function.
    pub function: Arc<JitFunction>,
    /// Takes no instance: `@staticmethod`.
    pub is_static: bool,
}

impl AggregateClass {
    /// Reads a class out of its source. Its functions get the numbers that `id` gives, and `annotation` says what an annotation
    /// means.
    ///
    /// # Errors
    /// An annotation that cannot be understood, or base classes.
    pub fn parse(
        module: &Arc<str>,
        source: &Arc<SourceText>,
        class: &StmtClassDef,
        mut id: impl FnMut(&StmtFunctionDef) -> u64,
        annotation: impl Fn(&Expr) -> Result<HostValue, HostError>,
    ) -> Result<AggregateClass, HostError> {
        let name = class.name.as_str();
        if class.bases().iter().any(|base| last_name(base) != Some("object")) {
            return Err(HostError::new(format!("the class `{name}` has base classes, which takes Python"))
                .hint("write the fields and methods into the class itself"));
        }
        let mut fields = Vec::new();
        let mut methods = Vec::new();
        for stmt in &class.body {
            match stmt {
                Stmt::AnnAssign(field) => {
                    if let Expr::Name(target) = &*field.target {
                        fields
                            .push((target.id.as_str().into(), alternatives(&field.annotation, &annotation)?));
                    }
                }
                Stmt::FunctionDef(def) => {
                    let mark = jit_mark(&def.decorator_list);
                    let is_static =
                        def.decorator_list.iter().any(|d| last_name(&d.expression) == Some("staticmethod"));
                    let full = format!("{name}.{}", def.name);
                    let marks = mark.map(|mark| mark.marks).unwrap_or_default();
                    let definition = Arc::new(def.clone());
                    let function =
                        JitFunction::parsed(id(def), module.clone(), full, source.clone(), marks, definition);
                    let kind = mark.map_or(FunctionKind::Plain, |mark| mark.kind);
                    let method = AggregateMethod { function: function.of_kind(kind), is_static };
                    methods.push((def.name.as_str().into(), method));
                }
                _ => {}
            }
        }
        let id = u64::from(class.range.start().to_u32()) + 1;
        Ok(AggregateClass { id, module: module.clone(), name: name.into(), fields, methods })
    }

    /// Where a field stands.
    pub fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|(field, _)| &**field == name)
    }

    /// A function in it.
    pub fn method(&self, name: &str) -> Option<&AggregateMethod> {
        self.methods.iter().find(|(method, _)| &**method == name).map(|(_, method)| method)
    }

    /// The names of its fields and methods, for «did you mean».
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let fields = self.fields.iter().map(|(name, _)| &**name);
        fields.chain(self.methods.iter().map(|(name, _)| &**name))
    }
}

/// What an annotation means: `A | B` is either, and a text is read as source.
fn alternatives(
    expr: &Expr,
    annotation: &impl Fn(&Expr) -> Result<HostValue, HostError>,
) -> Result<HostValue, HostError> {
    match expr {
        Expr::BinOp(either) if either.op == Operator::BitOr => {
            let either = [&either.left, &either.right].map(|side| alternatives(side, annotation));
            Ok(HostValue::tuple(either.into_iter().collect::<Result<Vec<_>, _>>()?))
        }
        Expr::Subscript(generic) => alternatives(&generic.value, annotation),
        Expr::StringLiteral(text) => match ruff_python_parser::parse_expression(text.value.to_str()) {
            Ok(parsed) => alternatives(&parsed.into_expr(), annotation),
            Err(error) => {
                Err(HostError::new(format!("the annotation {:?}: {}", text.value.to_str(), error.error)))
            }
        },
        other => annotation(other),
    }
}

/// Whether a class is decorated with `@_aggregate`.
pub(crate) fn is_aggregate(class: &StmtClassDef) -> bool {
    class.decorator_list.iter().any(|d| matches!(last_name(&d.expression), Some("_aggregate" | "aggregate")))
}

impl fmt::Debug for AggregateClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AggregateClass({}.{})", self.module, self.name)
    }
}

impl PartialEq for AggregateClass {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.module == other.module && self.name == other.name
    }
}
