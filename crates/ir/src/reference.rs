//! The reference of all operations, `docs/ops.md`, written from their declarations.
//!
//! `TILEWRIGHT_BLESS=1 cargo nextest run -p tilewright-ir reference` writes the page anew.

use std::fmt::Write;

use crate::flow::{Flow, Place};
use crate::index::Index;
use crate::opdef::{Access, Arity, Effect, OpDef, Resource, ResultsDef};
use crate::{dialect, marks};

/// The page, in Markdown.
pub fn markdown() -> String {
    let mut out = String::from(
        "# Operations\n\n\
         Written from the declarations in `crates/ir/src/dialect` by `TILEWRIGHT_BLESS=1 cargo nextest run -p tilewright-ir \
         reference`; do not edit.\nOf operands and results `x?` may be missing, and of `x…` there are any number.\n",
    );
    let mut dialect = "";
    for def in dialect::all_defs() {
        let (name, _) = def.name.split_once('.').unwrap_or((def.name, ""));
        if name != dialect {
            dialect = name;
            let _ = write!(out, "\n## `{dialect}`\n");
        }
        operation(&mut out, def);
    }
    out.push_str("\n## Marks\n\nAttributes that passes leave for later ones and for the lowering.\n\n");
    for (marks, place) in [(marks::DECLARED, ""), (marks::ANY, "on any operation: ")] {
        for (name, doc) in marks {
            let _ = writeln!(out, "- `{name}`: {place}{}", doc.trim().replace("\n ", " "));
        }
    }
    out
}

fn operation(out: &mut String, def: &OpDef) {
    let _ = write!(out, "\n### `{}`\n\n", def.name);
    let operands: Vec<String> = def
        .operands
        .iter()
        .map(|o| match o.arity {
            Arity::One => o.name.to_string(),
            Arity::Optional => format!("{}?", o.name),
            Arity::Variadic => format!("{}…", o.name),
        })
        .collect();
    let results = match def.results {
        ResultsDef::Given(names) => names.join(", "),
        ResultsDef::SameAs(of) => format!("result (of the type of {of})"),
        ResultsDef::Variadic(name) => format!("{name}…"),
    };
    let results = match (results.is_empty(), def.token) {
        (_, None) => results,
        (true, Some(token)) => format!("{token}?"),
        (false, Some(token)) => format!("{results}, {token}?"),
    };
    let arrow = if results.is_empty() { "" } else { " → " };
    let _ = write!(out, "`({}){arrow}{results}`\n\n{}\n", operands.join(", "), def.doc.trim());
    out.push('\n');
    let mut item = |name: &str, texts: Vec<String>| {
        if !texts.is_empty() {
            let _ = writeln!(out, "- {name}: {}", texts.join("; "));
        }
    };
    item("attributes", def.attrs.iter().map(attribute).collect());
    if def.index != Index::Unrelated {
        item("elements", vec![def.index.describe()]);
    }
    item("types", def.types.iter().map(|t| t.describe()).collect());
    item("effects", def.effects.iter().map(effect).collect());
    item("regions", def.regions.iter().map(|r| format!("`{}`", r.name)).collect());
    item("passes on", def.flow.iter().map(|f| flow(def, f)).collect());
    item("marks that passes leave", def.marks.iter().map(|m| format!("`{m}`")).collect());
    item("traits", def.traits.iter().map(|t| format!("{t:?}")).collect());
}

fn attribute(attr: &crate::opdef::AttrDef) -> String {
    let optional = if attr.optional { " (may be absent)" } else { "" };
    match attr.keywords {
        [] => {
            let ty = attr.ty.trim_start_matches("crate::dialect::tt::");
            format!("`{}`: `{}`{optional}", attr.name, ty.replace(' ', ""))
        }
        words => format!("`{}`: {}{optional}", attr.name, words.join(", ")),
    }
}

fn effect(effect: &Effect) -> String {
    let what = match effect.resource {
        Resource::Global => "global memory",
        Resource::Shared => "shared memory",
        Resource::Tensor => "tensor memory",
        Resource::Other => "what lies outside of memory",
    };
    let mut text = match effect.access {
        Access::Read => format!("reads {what}"),
        Access::Write if effect.resource == Resource::Other => "keeps its place".into(),
        Access::Write => format!("writes {what}"),
        Access::Allocate => format!("allocates {what}"),
        Access::Free => format!("frees {what}"),
        Access::Wait => format!("waits ({:?})", effect.scope).to_lowercase(),
    };
    if let Some(operand) = effect.operand {
        let _ = write!(text, " of `{operand}`");
    }
    if effect.completion != crate::opdef::Completion::Immediate {
        let _ = write!(text, ", until a wait for {:?}", effect.completion);
    }
    if let Some((attr, holds)) = effect.when {
        let _ = write!(text, " {} `{attr}`", if holds { "with" } else { "without" });
    }
    text
}

fn flow(def: &OpDef, flow: &Flow) -> String {
    let region = |i: usize| def.regions.get(i).map_or("", |r| r.name);
    let place = |place: Place| match place {
        Place::Operands(name) => format!("`{name}`"),
        Place::End(i, _) => format!("the end of `{}`", region(i)),
        Place::Entry(i, _) => format!("`{}`", region(i)),
        Place::Nested(i) => format!("each of `{}`", region(i)),
        Place::Results => "the results".into(),
    };
    format!("{} → {}", place(flow.from), place(flow.to))
}

/// Compares a page of `docs/` with what the code says it is, or writes it where `TILEWRIGHT_BLESS` asks for that.
#[cfg(test)]
pub(crate) fn assert_page(name: &str, page: &str) {
    let path = format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("TILEWRIGHT_BLESS").is_some_and(|v| v != "0") {
        std::fs::write(&path, page).unwrap_or_else(|e| panic!("{path}: {e}"));
        return;
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = found.lines().zip(page.lines()).position(|(a, b)| a != b);
    assert!(
        found == page,
        "{name} is not what the declarations say (line {}); write it anew with TILEWRIGHT_BLESS=1",
        differs.map_or(found.lines().count(), |l| l) + 1
    );
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_is_what_the_declarations_say() {
        super::assert_page("docs/ops.md", &super::markdown());
    }
}
