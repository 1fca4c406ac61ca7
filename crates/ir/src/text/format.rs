//! The assembly format of an operation, compiled once from its declaration and read by both printer and parser.
//!
//! The notation is described in [`dialect`](crate::dialect).

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::opdef::{OpDef, ResultsDef};

/// Whose types a `type(...)` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypesOf {
    /// Of an operand group.
    Operands(usize),
    /// Of all operands.
    AllOperands,
    /// Of one result.
    Result(usize),
    /// Of all results.
    AllResults,
}

/// What decides whether an optional group is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// The operand group is not empty.
    Operands(usize),
    /// The attribute is present.
    Attr(usize),
    /// There are results.
    Results,
    /// The operand group is not empty, or the attribute present.
    Either(usize, usize),
}

/// One element of a format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Element {
    Literal(String),
    /// No space before the next element.
    NoSpace,
    Operands(usize),
    Attr(usize),
    AttrDict,
    Types(TypesOf),
    /// Types without their leading `!name`.
    ShortTypes(&'static str, TypesOf),
    FunctionalType(TypesOf, TypesOf),
    /// `[...]` where the operation has a token, with the operand group that it comes after in it.
    Token(usize),
    /// `, %a[%b]` for each pair of two operand groups.
    Pairs(usize, usize),
    /// `[%a, 4]`: values of a group, between them the numbers of an attribute.
    Indices(usize, usize),
    /// `{ ... }`
    Region(usize),
    Optional(Anchor, Vec<Element>),
    /// Clauses in any order, each with the attribute that decides whether it is printed.
    Oilist(Vec<(Anchor, Vec<Element>)>),
}

/// A compiled format.
#[derive(Debug)]
pub(crate) struct Format {
    pub(crate) elements: Vec<Element>,
    /// The declared attributes that appear outside the attribute dictionary.
    pub(crate) printed_attrs: Vec<usize>,
}

/// The format of an operation, if its declaration has one.
pub(crate) fn format_of(def: &'static OpDef) -> Option<&'static Format> {
    static TABLE: OnceLock<FxHashMap<&'static str, Format>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        crate::dialect::all_defs()
            .filter_map(|def| {
                let text = def.format?;
                // A format is part of the source; a test compiles all of them.
                let format = compile(def, text).unwrap_or_else(|e| panic!("format of {}: {e}", def.name));
                Some((def.name, format))
            })
            .collect()
    });
    table.get(def.name)
}

fn compile(def: &OpDef, text: &str) -> Result<Format, String> {
    let mut compiler = Compiler { def, rest: text, printed_attrs: Vec::new() };
    let elements = compiler.sequence(&[])?;
    if !compiler.rest.is_empty() {
        return Err(format!("unexpected `{}`", compiler.rest));
    }
    Ok(Format { elements, printed_attrs: compiler.printed_attrs })
}

struct Compiler<'d> {
    def: &'d OpDef,
    rest: &'d str,
    printed_attrs: Vec<usize>,
}

impl Compiler<'_> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, s: &str) -> bool {
        self.skip_space();
        match self.rest.strip_prefix(s) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, s: &str) -> Result<(), String> {
        if self.eat(s) { Ok(()) } else { Err(format!("`{s}` expected at `{}`", self.rest)) }
    }

    fn word(&mut self) -> &str {
        self.skip_space();
        let end =
            self.rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// Elements up to one of the given closers, which is left in place.
    fn sequence(&mut self, closers: &[char]) -> Result<Vec<Element>, String> {
        Ok(self.anchored_sequence(closers)?.0)
    }

    fn anchored_sequence(&mut self, closers: &[char]) -> Result<(Vec<Element>, Option<Anchor>), String> {
        let (mut elements, mut anchor) = (Vec::new(), None);
        loop {
            self.skip_space();
            let Some(c) = self.rest.chars().next() else { break };
            if closers.contains(&c) {
                break;
            }
            match c {
                '`' => {
                    let body = &self.rest[1..];
                    let end = body.find('`').ok_or("unclosed literal")?;
                    let literal = &body[..end];
                    self.rest = &body[end + 1..];
                    elements.push(if literal.is_empty() {
                        Element::NoSpace
                    } else {
                        Element::Literal(literal.to_string())
                    });
                }
                '$' => {
                    self.rest = &self.rest[1..];
                    let name = self.word().to_string();
                    let element = if let Some(group) = self.def.group(&name) {
                        Element::Operands(group)
                    } else if let Some(attr) = self.def.attrs.iter().position(|a| a.name == name) {
                        self.printed_attrs.push(attr);
                        Element::Attr(attr)
                    } else {
                        return Err(format!("unknown name ${name}"));
                    };
                    if self.rest.starts_with('^') {
                        self.rest = &self.rest[1..];
                        anchor = Some(anchor_of(&element));
                    }
                    elements.push(element);
                }
                '(' => {
                    self.rest = &self.rest[1..];
                    let (inner, anchor) = self.anchored_sequence(&[')'])?;
                    self.expect(")")?;
                    self.expect("?")?;
                    elements.push(Element::Optional(
                        anchor.ok_or("an optional group needs an anchor `^`")?,
                        inner,
                    ));
                }
                _ => {
                    let element = self.directive()?;
                    if let Some(rest) = self.rest.strip_prefix('^') {
                        self.rest = rest;
                        anchor = match &element {
                            Element::Types(TypesOf::Operands(g)) => Some(Anchor::Operands(*g)),
                            Element::Types(TypesOf::AllResults) => Some(Anchor::Results),
                            Element::Indices(g, a) => Some(Anchor::Either(*g, *a)),
                            _ => return Err(format!("{element:?} cannot be an anchor")),
                        };
                    }
                    elements.push(element);
                }
            }
        }
        Ok((elements, anchor))
    }

    /// What is written as a word: `attr-dict`, `type(…)`, `short-type(…)`, `functional-type(…)`, `token(…)`, `pairs(…)`,
    /// `indices(…)`, `region(…)`, `oilist(…)`.
    fn directive(&mut self) -> Result<Element, String> {
        let word = self.word().to_string();
        if word == "attr-dict" {
            return Ok(Element::AttrDict);
        }
        let known =
            ["type", "short-type", "functional-type", "token", "pairs", "indices", "region", "oilist"]
                .contains(&word.as_str());
        if !known {
            return Err(format!("unknown directive `{word}` at `{}`", self.rest));
        }
        self.expect("(")?;
        let element = match word.as_str() {
            "type" => Element::Types(self.types_of()?),
            "token" => Element::Token(self.operands()?),
            "pairs" => {
                let first = self.operands()?;
                self.expect(",")?;
                Element::Pairs(first, self.operands()?)
            }
            "indices" => {
                let group = self.operands()?;
                self.expect(",")?;
                self.expect("$")?;
                let name = self.word().to_string();
                let attr = self.def.attrs.iter().position(|a| a.name == name);
                let attr = attr.ok_or(format!("unknown attribute ${name}"))?;
                self.printed_attrs.push(attr);
                Element::Indices(group, attr)
            }
            "region" => {
                self.expect("$")?;
                let name = self.word().to_string();
                let region = self.def.regions.iter().position(|r| r.name == name);
                Element::Region(region.ok_or(format!("unknown region ${name}"))?)
            }
            "short-type" => {
                let name = ["ttg.memdesc", "tt.tensordesc", "tt.ptr"].into_iter().find(|n| self.eat(n));
                let name = name.ok_or("short-type takes ttg.memdesc, tt.tensordesc or tt.ptr")?;
                self.expect(",")?;
                Element::ShortTypes(name, self.types_of()?)
            }
            "functional-type" => {
                let from = self.types_of()?;
                self.expect(",")?;
                Element::FunctionalType(from, self.types_of()?)
            }
            _ => {
                let mut clauses = Vec::new();
                loop {
                    let clause = self.sequence(&['|', ')'])?;
                    let anchor = clause
                        .iter()
                        .find(|e| matches!(e, Element::Operands(_) | Element::Attr(_)))
                        .map(anchor_of)
                        .ok_or("a clause needs an operand or attribute")?;
                    clauses.push((anchor, clause));
                    if !self.eat("|") {
                        break;
                    }
                }
                Element::Oilist(clauses)
            }
        };
        self.expect(")")?;
        Ok(element)
    }

    fn operands(&mut self) -> Result<usize, String> {
        self.expect("$")?;
        let name = self.word().to_string();
        self.def.group(&name).ok_or(format!("unknown operand ${name}"))
    }

    fn types_of(&mut self) -> Result<TypesOf, String> {
        if !self.eat("$") {
            return match self.word() {
                "operands" => Ok(TypesOf::AllOperands),
                "results" => Ok(TypesOf::AllResults),
                w => Err(format!("unknown `{w}`")),
            };
        }
        let name = self.word().to_string();
        if let Some(group) = self.def.group(&name) {
            return Ok(TypesOf::Operands(group));
        }
        match self.def.results {
            ResultsDef::Given(names) => match names.iter().position(|n| *n == name) {
                Some(i) => Ok(TypesOf::Result(i)),
                None => Err(format!("unknown name ${name}")),
            },
            ResultsDef::SameAs(_) => Ok(TypesOf::Result(0)),
            ResultsDef::Variadic(_) => Ok(TypesOf::AllResults),
        }
    }
}

fn anchor_of(element: &Element) -> Anchor {
    match element {
        Element::Operands(g) => Anchor::Operands(*g),
        Element::Attr(a) => Anchor::Attr(*a),
        _ => unreachable!("only operands and attributes can be anchors"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_compiles() {
        for def in crate::dialect::all_defs() {
            if let Some(text) = def.format {
                compile(def, text).unwrap_or_else(|e| panic!("{}: {e}", def.name));
            }
        }
    }

    #[test]
    fn a_load_has_optional_operands_and_clauses() {
        let format = format_of(crate::dialect::find_def("tt.load").unwrap()).unwrap();
        assert_eq!(format.elements.len(), 7);
        assert_eq!(
            format.elements[1],
            Element::Optional(Anchor::Operands(1), vec![Element::Literal(",".into()), Element::Operands(1)])
        );
        assert!(matches!(&format.elements[3], Element::Oilist(clauses) if clauses.len() == 2));
        assert_eq!(format.printed_attrs, [0, 1]);
    }
}
