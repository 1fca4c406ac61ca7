//! What the author sees when a kernel is wrong: a message, the place, the source line with a caret, hints, and the
//! chain of calls that led there.

use std::fmt;
use std::sync::Arc;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// A place in a source file. Lines and columns count from 1; columns count characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The file as the author knows it.
    pub file: Arc<str>,
    /// First line.
    pub line: u32,
    /// First column.
    pub col: u32,
    /// Last line (the same as `line` for most).
    pub end_line: u32,
    /// The column after the last character, on `end_line`.
    pub end_col: u32,
    /// The text of the first line, without its newline.
    pub source_line: Arc<str>,
}

/// One step of the call chain: where `function` was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSite {
    /// The function that was called there.
    pub callee: Arc<str>,
    /// The call.
    pub span: Span,
}

/// An error in a kernel, ready to be shown. [`fmt::Display`] shows all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// What is wrong, in one sentence; names the inferred types.
    pub message: String,
    /// Where; absent only for errors that lie in no source (a wrong signature string).
    pub span: Option<Span>,
    /// Facts that help to see why (inferred types, where a variable got its type).
    pub notes: Vec<String>,
    /// What to do about it.
    pub hints: Vec<String>,
    /// Innermost call first: the calls that led from the kernel to the place.
    pub trace: Vec<CallSite>,
}

impl Diagnostic {
    /// An error with a message alone; the place is added where it is known.
    pub fn new(message: impl Into<String>) -> Diagnostic {
        Diagnostic { message: message.into(), span: None, notes: vec![], hints: vec![], trace: vec![] }
    }

    /// Adds a fact.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hints.push(hint.into());
        self
    }

    /// Says where, unless a more precise place is already known.
    #[must_use]
    pub fn at(mut self, span: Span) -> Diagnostic {
        self.span.get_or_insert(span);
        self
    }

    /// Records that the error happened inside a call.
    #[must_use]
    pub fn called_from(mut self, callee: Arc<str>, span: Span) -> Diagnostic {
        self.trace.push(CallSite { callee, span });
        self
    }
}

fn snippet(span: &Span) -> Snippet<'_, annotate_snippets::Annotation<'_>> {
    let line: &str = &span.source_line;
    let byte =
        |col: u32| line.char_indices().nth(col.saturating_sub(1) as usize).map_or(line.len(), |(at, _)| at);
    let start = byte(span.col);
    let end = if span.end_line == span.line { byte(span.end_col) } else { line.trim_end().len() };
    Snippet::source(line)
        .path(&*span.file)
        .line_start(span.line as usize)
        .annotation(AnnotationKind::Primary.span(start..end.max(start)))
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut group = Group::with_title(Level::ERROR.primary_title(&self.message));
        if let Some(span) = &self.span {
            group = group.element(snippet(span));
        }
        for note in &self.notes {
            group = group.element(Level::NOTE.message(note));
        }
        for hint in &self.hints {
            group = group.element(Level::HELP.message(hint));
        }
        let mut report = vec![group];
        let titles: Vec<String> =
            self.trace.iter().map(|site| format!("in `{}`, called from here", site.callee)).collect();
        for (site, title) in self.trace.iter().zip(&titles) {
            report.push(Group::with_title(Level::NOTE.secondary_title(title)).element(snippet(&site.span)));
        }
        let renderer = Renderer::plain().decor_style(DecorStyle::Ascii);
        f.write_str(renderer.render(&report).trim_end())
    }
}

impl std::error::Error for Diagnostic {}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(line: u32, col: u32, end_col: u32, text: &str) -> Span {
        Span { file: "k.py".into(), line, col, end_line: line, end_col, source_line: text.into() }
    }

    #[test]
    fn shows_place_caret_hint_and_calls() {
        let d = Diagnostic::new("name `y` is not defined")
            .hint("did you mean `x`?")
            .at(span(7, 9, 10, "    z = y + 1"))
            .called_from("inner".into(), span(20, 5, 13, "    inner(a)"));
        assert_eq!(
            d.to_string(),
            "error: name `y` is not defined\n  --> k.py:7:9\n   |\n 7 |     z = y + 1\n   |         ^\n   |\n   = \
             help: did you mean `x`?\nnote: in `inner`, called from here\n  --> k.py:20:5\n   |\n20 |     \
             inner(a)\n   |     ^^^^^^^^"
        );
    }

    #[test]
    fn a_wide_character_before_the_caret_does_not_panic() {
        let d = Diagnostic::new("bad").at(span(1, 3, 4, "é = ü"));
        assert!(d.to_string().contains("k.py:1:3"));
    }
}
