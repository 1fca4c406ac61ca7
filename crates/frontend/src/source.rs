//! A piece of Python source: its text, lines and parsed functions.
//!
//! The text is either a whole file or the lines of one function as `inspect.getsource` gives them (indented where
//! the function is nested). It is dedented here, and positions are mapped back to the file the author sees.

use std::sync::Arc;

use ruff_python_ast::{Decorator, Expr, Stmt, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange, TextSize};

use tilewright_ir::diagnostic::Kind;
use tilewright_ir::{Diagnostic, Span};

use crate::host::{FunctionKind, JitMarks};

/// Python source with the place it came from.
#[derive(Debug)]
pub struct SourceText {
    /// The file as the author knows it.
    pub file: Arc<str>,
    /// The text, dedented.
    pub text: String,
    /// The line of the file on which `text` starts, from 1.
    pub first_line: u32,
    /// Characters of indentation removed from each line.
    pub indent: u32,
    line_starts: Vec<u32>,
}

impl SourceText {
    /// Takes the text of a file, or of a function that starts on `first_line` of it.
    pub fn new(file: impl Into<Arc<str>>, text: impl Into<String>, first_line: u32) -> Arc<SourceText> {
        let (text, indent) = dedent(text.into());
        let line_starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at as u32 + 1)).collect();
        Arc::new(SourceText { file: file.into(), text, first_line: first_line.max(1), indent, line_starts })
    }

    /// Line index (from 0) of a byte offset.
    fn line_index(&self, offset: TextSize) -> usize {
        self.line_starts.partition_point(|&start| start <= offset.to_u32()).saturating_sub(1)
    }

    fn line_text(&self, index: usize) -> &str {
        let start = self.line_starts[index] as usize;
        let end = self.line_starts.get(index + 1).map_or(self.text.len(), |&next| next as usize);
        self.text[start..end].trim_end_matches(['\n', '\r'])
    }

    /// Line and column (both from 1) of a byte offset, as the file has them.
    pub fn line_col(&self, offset: TextSize) -> (u32, u32) {
        let index = self.line_index(offset);
        let start = self.line_starts[index] as usize;
        let at = (offset.to_usize()).min(self.text.len());
        let col = self.text.get(start..at).map_or(0, |s| s.chars().count()) as u32;
        (self.first_line + index as u32, col + 1 + self.indent)
    }

    /// The place of a range, with its source line.
    pub fn span(&self, range: TextRange) -> Span {
        let (line, col) = self.line_col(range.start());
        let (end_line, end_col) = self.line_col(range.end());
        let text = self.line_text(self.line_index(range.start()));
        let text = format!("{}{}", " ".repeat(self.indent as usize), text);
        // What goes on for several lines is marked to the end of the first one.
        let end_column = if end_line == line { end_col } else { text.trim_end().chars().count() as u32 + 1 };
        Span { file: self.file.to_string(), line, column: col, end_column, text: Some(text) }
    }

    /// An error at a range.
    pub fn error(&self, range: TextRange, message: impl Into<String>) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(message);
        diagnostic.span = Some(self.span(range));
        diagnostic
    }

    /// The text of a range.
    pub fn slice(&self, range: TextRange) -> &str {
        self.text.get(range.start().to_usize()..range.end().to_usize()).unwrap_or("")
    }

    /// The statements of the text.
    pub fn parse(&self) -> Result<Vec<Stmt>, Diagnostic> {
        match ruff_python_parser::parse_module(&self.text) {
            Ok(parsed) => {
                let body: Vec<Stmt> = parsed.into_syntax().body.into_iter().collect();
                match too_deep(&body) {
                    None => Ok(body),
                    Some(range) => {
                        // Dropping the tree recurses as deep as it is.
                        stacker::grow(1 << 28, || drop(body));
                        Err(self
                            .error(range, "this is nested too deeply")
                            .note(format!(
                                "the limits are {MAX_EXPRESSION} levels of expressions (each operator of a long sum is one) \
                                 and {MAX_STATEMENT} of statements; use variables and helper functions"
                            )))
                    }
                }
            }
            Err(error) => Err(self
                .error(error.location, format!("invalid Python syntax: {}", error.error))
                .of(Kind::Syntax)),
        }
    }

    /// The first function of the text, which is the function that `inspect.getsource` was asked for.
    pub fn parse_function(&self) -> Result<StmtFunctionDef, Diagnostic> {
        for stmt in self.parse()? {
            if let Stmt::FunctionDef(def) = stmt {
                return Ok(def);
            }
            if !matches!(stmt, Stmt::Import(_) | Stmt::ImportFrom(_)) {
                return Err(self
                    .error(stmt.range(), "a kernel must be defined with `def`")
                    .note("lambdas and classes cannot be compiled; write a function decorated with @jit"));
            }
        }
        Err(Diagnostic::new(format!("{}: the source holds no function", self.file)))
    }
}

/// Levels of expressions that are accepted; each is some recursion here and in the passes.
const MAX_EXPRESSION: u32 = 2000;
/// Levels of statements that are accepted: each becomes a region inside a region, an `elif` too.
const MAX_STATEMENT: u32 = 150;

/// A place where the limits are passed.
fn too_deep(body: &[Stmt]) -> Option<TextRange> {
    use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
    #[derive(Default)]
    struct Depth {
        expression: u32,
        statement: u32,
        found: Option<TextRange>,
    }
    impl<'a> Visitor<'a> for Depth {
        fn visit_expr(&mut self, expr: &'a Expr) {
            if self.expression >= MAX_EXPRESSION {
                self.found.get_or_insert(expr.range());
                return;
            }
            self.expression += 1;
            walk_expr(self, expr);
            self.expression -= 1;
        }
        fn visit_stmt(&mut self, stmt: &'a Stmt) {
            let levels = match stmt {
                Stmt::If(s) => 1 + s.elif_else_clauses.len() as u32,
                _ => 1,
            };
            if self.statement + levels > MAX_STATEMENT {
                self.found.get_or_insert(stmt.range());
                return;
            }
            self.statement += levels;
            walk_stmt(self, stmt);
            self.statement -= levels;
        }
    }
    let mut depth = Depth::default();
    stacker::maybe_grow(8 << 20, 16 << 20, || depth.visit_body(body));
    depth.found
}

/// Removes the indentation that all lines share with the first one.
fn dedent(text: String) -> (String, u32) {
    let Some(first) = text.lines().find(|l| !l.trim().is_empty()) else { return (text, 0) };
    let margin: String = first.chars().take_while(|c| *c == ' ' || *c == '\t').collect();
    if margin.is_empty() {
        return (text, 0);
    }
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        // A continuation line (inside brackets or a string) may stand left of the margin: keep what it has.
        out.push_str(line.strip_prefix(&*margin).unwrap_or_else(|| line.trim_start_matches([' ', '\t'])));
    }
    (out, margin.chars().count() as u32)
}

/// `jit` of `jit`, `core.jit` and `core.jit(...)`.
pub(crate) fn last_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
        Expr::Call(call) => last_name(&call.func),
        _ => None,
    }
}

/// What a decorator makes of a function.
#[derive(Clone, Copy)]
pub(crate) struct JitMark {
    pub marks: JitMarks,
    pub kind: FunctionKind,
}

/// Whether one of the decorators is `jit` (with or without arguments) or `constexpr_function`.
pub(crate) fn jit_mark(decorators: &[Decorator]) -> Option<JitMark> {
    for decorator in decorators {
        match last_name(&decorator.expression) {
            Some("jit") => {
                let given = |name| match &decorator.expression {
                    Expr::Call(call) => call
                        .arguments
                        .find_keyword(name)
                        .is_some_and(|k| matches!(&k.value, Expr::BooleanLiteral(b) if b.value)),
                    _ => false,
                };
                let marks = JitMarks { noinline: given("noinline"), warp_level: given("warp_level") };
                return Some(JitMark { marks, kind: FunctionKind::Kernel });
            }
            // `@tl.constexpr` on a function makes it a constant that can be called.
            Some("constexpr_function" | "constexpr") => {
                return Some(JitMark { marks: JitMarks::default(), kind: FunctionKind::Constexpr });
            }
            _ => {}
        }
    }
    None
}

/// What `@must_use_result` says of a function: nothing, or why its result must be used.
pub(crate) fn must_use(def: &StmtFunctionDef) -> Option<String> {
    let mark = def.decorator_list.iter().find(|d| last_name(&d.expression) == Some("must_use_result"))?;
    let why = match &mark.expression {
        Expr::Call(call) => call.arguments.args.first(),
        _ => None,
    };
    Some(match why {
        Some(Expr::StringLiteral(text)) => text.value.to_str().to_string(),
        _ => String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_a_nested_function_are_the_files() {
        let source = SourceText::new("f.py", "    @jit\n    def f(x):\n        return x\n", 10);
        let def = source.parse_function().expect("parses");
        assert_eq!(def.name.as_str(), "f");
        let span = source.span(def.body[0].range());
        assert_eq!((span.line, span.column, span.end_column), (12, 9, 17));
        assert_eq!(span.text.as_deref(), Some("        return x"));
    }

    #[test]
    fn what_is_nested_too_deeply_is_an_error() {
        let parse = |body: String| SourceText::new("f.py", format!("def f(n):\n    {body}\n"), 1).parse();
        for body in [
            format!("return {}n", "n + ".repeat(50_000)),
            format!("return {}n{}", "(".repeat(5_000), ",)".repeat(5_000)),
            format!("return n{}", ".T".repeat(50_000)),
            format!("if n:\n        pass\n{}", "    elif n:\n        pass\n".repeat(200)),
        ] {
            let error = parse(body).expect_err("is too deep");
            assert!(error.message.contains("too deeply"), "{error}");
        }
        assert!(parse(format!("return {}n", "n + ".repeat(1_000))).is_ok());
    }

    #[test]
    fn a_syntax_error_has_a_place() {
        let error = SourceText::new("f.py", "def f(:\n  pass\n", 1).parse_function().expect_err("is wrong");
        assert_eq!(error.span.as_ref().map(|s| s.line), Some(1));
    }
}
