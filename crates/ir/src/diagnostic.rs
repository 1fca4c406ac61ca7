//! Errors with a source location: what is wrong, where, and what to do.

use std::fmt;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::entity::Loc;
use crate::module::{LocKind, Module};

/// A place in a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The file's name.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, counted in characters.
    pub column: u32,
    /// One past the last column; equal to `column` where only the start is known.
    pub end_column: u32,
    /// The text of the line, where it could be had.
    pub text: Option<String>,
}

/// What sort of error it is: for programs, which never look at the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Kind {
    /// The kernel is wrong: a name, a type, a shape, a value.
    #[default]
    Kernel,
    /// The text is not the language's (or the IR's).
    Syntax,
    /// What the kernel itself demands at compile time (`tl.static_assert`, `assert`) does not hold.
    Assertion,
    /// An option, a target or a signature that cannot be.
    Request,
    /// Right, but not there yet.
    Unsupported,
    /// The kernel needs more than the target has.
    OutOfResources,
    /// A tool, a file or the system.
    Environment,
    /// Nobody waits for the result any more.
    Interrupted,
    /// A mistake of the compiler.
    Internal,
}

/// An error at a place in a kernel's source (or in IR text).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// What sort of error it is.
    pub kind: Kind,
    /// What is wrong.
    pub message: String,
    /// Where.
    pub span: Option<Span>,
    /// What to do, inferred types, and other remarks.
    pub notes: Vec<String>,
    /// The calls that led there, innermost first.
    pub callers: Vec<Span>,
    /// Whether a function of the language refused what it was given, not the language itself.
    pub of_builtin: bool,
}

impl Diagnostic {
    /// An error with no place yet.
    pub fn new(message: impl Into<String>) -> Self {
        Diagnostic {
            kind: Kind::default(),
            message: message.into(),
            span: None,
            notes: Vec::new(),
            callers: Vec::new(),
            of_builtin: false,
        }
    }

    /// An error at a location of a module.
    pub fn at(module: &Module, loc: Loc, message: impl Into<String>) -> Self {
        let mut d = Diagnostic::new(message);
        d.fill(module, loc);
        d
    }

    /// That something is not there yet, at a location of a module.
    pub fn unsupported(module: &Module, loc: Loc, what: impl fmt::Display) -> Self {
        Diagnostic::at(module, loc, format!("not supported yet: {what}")).of(Kind::Unsupported)
    }

    /// The same error, of another kind.
    #[must_use]
    pub fn of(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    fn fill(&mut self, module: &Module, loc: Loc) {
        match module.loc_kind(loc) {
            LocKind::Unknown => {}
            LocKind::File { file, line, column } => {
                let span = Span {
                    file: file.clone(),
                    line: *line,
                    column: *column,
                    end_column: *column,
                    text: None,
                };
                match self.span {
                    None => self.span = Some(span),
                    Some(_) => self.callers.push(span),
                }
            }
            LocKind::Name(_, child) => self.fill(module, *child),
            LocKind::CallSite { callee, caller } => {
                self.fill(module, *callee);
                self.fill(module, *caller);
            }
            LocKind::Fused(locs) => {
                if let Some(&first) = locs.first() {
                    self.fill(module, first);
                }
            }
        }
    }

    /// Adds a note or hint.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Reads the source lines that are still missing through `line_of(file, line)`.
    #[must_use]
    pub fn with_source(mut self, line_of: impl Fn(&str, u32) -> Option<String>) -> Self {
        for span in self.span.iter_mut().chain(&mut self.callers) {
            if span.text.is_none() {
                span.text = line_of(&span.file, span.line);
            }
        }
        self
    }

    /// Reads the source lines that are still missing from the files themselves.
    #[must_use]
    pub fn with_source_files(self) -> Self {
        self.with_source(|file, line| {
            let text = std::fs::read_to_string(file).ok()?;
            text.lines().nth(line as usize - 1).map(str::to_string)
        })
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let snippet = |span: &Span, kind: AnnotationKind, label: Option<&'static str>| {
            let text = span.text.clone().unwrap_or_default();
            let byte = |column: u32| {
                text.char_indices().nth(column.saturating_sub(1) as usize).map_or(text.len(), |(i, _)| i)
            };
            let start = byte(span.column);
            let end = byte(span.end_column.max(span.column + 1)).max(start);
            let annotation = kind.span(start..end).label(label);
            Snippet::source(text)
                .line_start(span.line as usize)
                .path(span.file.clone())
                .annotation(annotation)
        };
        let mut group = Group::with_title(Level::ERROR.primary_title(self.message.as_str()));
        let callers = self.callers.iter().map(|c| (c, AnnotationKind::Context, Some("called from here")));
        for (span, kind, label) in self.span.iter().map(|s| (s, AnnotationKind::Primary, None)).chain(callers)
        {
            group = if span.text.is_some() {
                group.element(snippet(span, kind, label))
            } else {
                // Without the line's text there is nothing to point into; the place alone is said.
                group.element(
                    Origin::path(span.file.clone())
                        .line(span.line as usize)
                        .char_column(span.column as usize),
                )
            };
        }
        for note in &self.notes {
            group = group.element(Level::HELP.message(note.as_str()));
        }
        f.write_str(&Renderer::plain().render(&[group]))
    }
}

impl std::error::Error for Diagnostic {}
