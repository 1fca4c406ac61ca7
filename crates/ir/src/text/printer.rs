//! Printing operations.

use std::fmt::Write;

use super::format::{Anchor, Element, Format, TypesOf, format_of};
use super::names::{Names, predecessors};
use super::print_types::{Aliases, string, symbol};
use super::{PrintOptions, custom};
use crate::attrs::{AttrKind, AttrValue};
use crate::entity::{Attr, Block, Op, Region, Type, Value};
use crate::memref::{Index, index_list};
use crate::module::Module;
use crate::opdef::{Arity, AttrDef, OpDef};

/// The attribute that keeps the `<{...}>` properties of an unregistered operation.
pub(crate) const PROPERTIES: &str = "__properties";
/// The name of the group sizes among the properties.
pub(crate) const SEGMENT_SIZES: &str = "operandSegmentSizes";

pub(crate) fn print_module(module: &Module, options: PrintOptions) -> String {
    let mut p = Printer::new(module, module.root(), options);
    p.aliases.write_attr_definitions(&mut p.out);
    p.op(module.root());
    p.aliases.write_loc_definitions(module, &mut p.out);
    p.out
}

pub(crate) fn print_single(module: &Module, op: Op) -> String {
    let mut p = Printer {
        m: module,
        out: String::new(),
        options: PrintOptions::PLAIN,
        names: Names::new(module, op),
        aliases: Aliases::default(),
        indent: 0,
    };
    p.op(op);
    p.out.truncate(p.out.trim_end().len());
    p.out
}

pub(crate) fn print_type(module: &Module, ty: Type) -> String {
    let mut out = String::new();
    Aliases::default().ty(module, ty, &mut out);
    out
}

pub(crate) fn print_attr(module: &Module, attr: Attr) -> String {
    let mut out = String::new();
    Aliases::default().attr(module, attr, &mut out);
    out
}

pub(crate) struct Printer<'m> {
    pub(crate) m: &'m Module,
    pub(crate) out: String,
    options: PrintOptions,
    names: Names,
    pub(crate) aliases: Aliases,
    indent: usize,
}

impl<'m> Printer<'m> {
    fn new(module: &'m Module, op: Op, options: PrintOptions) -> Self {
        Printer {
            m: module,
            out: String::new(),
            options,
            names: Names::new(module, op),
            aliases: Aliases::collect(module, op, options.locations),
            indent: 0,
        }
    }

    pub(super) fn start_line(&mut self) {
        for _ in 0..self.indent {
            self.out.push_str("  ");
        }
    }

    pub(crate) fn push(&mut self, s: &str) {
        self.out.push_str(s);
    }

    pub(crate) fn value(&mut self, value: Value) {
        self.names.write(self.m, value, &mut self.out);
    }

    pub(crate) fn values(&mut self, values: &[Value]) {
        for (i, &v) in values.iter().enumerate() {
            if i > 0 {
                self.push(", ");
            }
            self.value(v);
        }
    }

    pub(crate) fn ty(&mut self, ty: Type) {
        self.aliases.ty(self.m, ty, &mut self.out);
    }

    pub(crate) fn attr(&mut self, attr: Attr) {
        self.aliases.attr(self.m, attr, &mut self.out);
    }

    pub(crate) fn types_of(&mut self, values: &[Value]) {
        let types: Vec<Type> = values.iter().map(|&v| self.m.value_type(v)).collect();
        self.aliases.types(self.m, &types, &mut self.out);
    }

    /// `t` or `(t, t)`, for what stands after an arrow.
    pub(crate) fn result_types_of(&mut self, values: &[Value]) {
        let types: Vec<Type> = values.iter().map(|&v| self.m.value_type(v)).collect();
        self.aliases.result_types(self.m, &types, &mut self.out);
    }

    /// `(t, t) -> t`
    pub(crate) fn function_type(&mut self, from: &[Value], to: &[Value]) {
        self.push("(");
        self.types_of(from);
        self.push(") -> ");
        self.result_types_of(to);
    }

    pub(crate) fn block_label(&mut self, block: Block) {
        match self.names.block(block) {
            Some(n) => {
                let _ = write!(self.out, "^bb{n}");
            }
            None => self.push("^<<unknown>>"),
        }
    }

    /// An operation on its own line (or lines).
    pub(crate) fn op(&mut self, op: Op) {
        self.start_line();
        let results = self.m.results(op);
        if !results.is_empty() {
            let first = results[0];
            self.value(first);
            if results.len() > 1 {
                // The first result is written `%n#0`; its group is `%n:count`.
                self.out.truncate(self.out.len() - 2);
                let _ = write!(self.out, ":{}", results.len());
            }
            self.push(" = ");
        }
        match self.m.def(op) {
            Some(def) => {
                if !custom::print(self, op, def) {
                    match format_of(def) {
                        Some(format) => {
                            self.push(def.name);
                            self.formatted(op, def, format);
                        }
                        None => self.generic(op),
                    }
                }
            }
            None => self.generic(op),
        }
        if self.options.locations {
            self.push(" ");
            self.aliases.loc(self.m, self.m.op_loc(op), &mut self.out);
        }
        self.push("\n");
    }

    /// The attributes of an operation but for some, sorted by name.
    fn sorted_attrs(&self, op: Op, skip: &[&str]) -> Vec<(String, Attr)> {
        let mut attrs: Vec<(String, Attr)> = self
            .m
            .op_attrs(op)
            .iter()
            .filter(|(n, _)| !skip.contains(&n.as_ref()) && n != Module::UNREGISTERED_NAME && n != PROPERTIES)
            .map(|(n, a)| (n.to_string(), *a))
            .collect();
        attrs.sort();
        attrs
    }

    /// ` {a = 1}`, or nothing; `skip` is printed elsewhere.
    pub(crate) fn attr_dict(&mut self, op: Op, skip: &[&str]) {
        self.attr_dict_with("", op, skip);
    }

    /// ` <keyword> {a = 1}`, or nothing.
    pub(crate) fn attr_dict_with(&mut self, keyword: &str, op: Op, skip: &[&str]) {
        let attrs = self.sorted_attrs(op, skip);
        if attrs.is_empty() {
            return;
        }
        self.push(" ");
        self.push(keyword);
        if !keyword.is_empty() {
            self.push(" ");
        }
        self.aliases.dict(self.m, attrs.iter().map(|(n, a)| (n.as_str(), *a)), &mut self.out);
    }

    /// `{ ... }`; the label of the first block is printed where `entry_label` says so.
    pub(crate) fn region(&mut self, region: Region, entry_label: bool, skip_terminator: bool) {
        self.push("{\n");
        let preds = predecessors(self.m, region);
        let blocks = self.m.region_blocks(region);
        for (i, &block) in blocks.iter().enumerate() {
            if i > 0
                || entry_label && !self.m.block_args(block).is_empty()
                || preds.contains_key(&blocks[0]) && i == 0
            {
                self.start_line();
                self.block_label(block);
                let args = self.m.block_args(block);
                if !args.is_empty() {
                    self.push("(");
                    for (j, &arg) in args.iter().enumerate() {
                        if j > 0 {
                            self.push(", ");
                        }
                        self.value(arg);
                        self.push(": ");
                        self.ty(self.m.value_type(arg));
                    }
                    self.push(")");
                }
                self.push(":");
                match preds.get(&block).map(Vec::as_slice) {
                    None | Some([]) if i > 0 => self.push("  // no predecessors"),
                    None | Some([]) => {}
                    Some([one]) => {
                        self.push("  // pred: ");
                        self.block_label(*one);
                    }
                    Some(many) => {
                        let _ = write!(self.out, "  // {} preds: ", many.len());
                        for (j, &p) in many.iter().enumerate() {
                            if j > 0 {
                                self.push(", ");
                            }
                            self.block_label(p);
                        }
                    }
                }
                self.push("\n");
            }
            self.indent += 1;
            for op in self.m.block_ops(block) {
                if skip_terminator && self.m.next_op(op).is_none() {
                    break;
                }
                self.op(op);
            }
            self.indent -= 1;
        }
        self.start_line();
        self.push("}");
    }

    fn types(&mut self, op: Op, of: TypesOf) {
        match of {
            TypesOf::Operands(g) => self.types_of(self.m.operand_group(op, g)),
            TypesOf::AllOperands => self.types_of(self.m.operands(op)),
            TypesOf::Result(i) => self.types_of(self.m.results(op).get(i..=i).unwrap_or(&[])),
            TypesOf::AllResults => self.types_of(self.m.results(op)),
        }
    }

    fn values_of(&self, op: Op, of: TypesOf) -> &'m [Value] {
        match of {
            TypesOf::Operands(g) => self.m.operand_group(op, g),
            TypesOf::AllOperands => self.m.operands(op),
            TypesOf::Result(i) => self.m.results(op).get(i..=i).unwrap_or(&[]),
            TypesOf::AllResults => self.m.results(op),
        }
    }

    fn formatted(&mut self, op: Op, def: &'static OpDef, format: &Format) {
        let mut spacing = Spacing { space: true, after_punctuation: false };
        self.elements(op, def, format, &format.elements, &mut spacing);
    }

    fn anchored(&self, op: Op, def: &OpDef, anchor: Anchor) -> bool {
        match anchor {
            Anchor::Operands(g) => !self.m.operand_group(op, g).is_empty(),
            Anchor::Attr(a) => self.m.op_attr(op, def.attrs[a].name).is_some(),
            Anchor::Results => !self.m.results(op).is_empty(),
            Anchor::Either(g, a) => {
                !self.m.operand_group(op, g).is_empty() || self.m.op_attr(op, def.attrs[a].name).is_some()
            }
        }
    }

    fn elements(
        &mut self,
        op: Op,
        def: &'static OpDef,
        format: &Format,
        elements: &[Element],
        s: &mut Spacing,
    ) {
        for element in elements {
            match element {
                Element::Literal(text) => {
                    if s.before_literal(text) {
                        self.push(" ");
                    }
                    self.push(text);
                    s.after_literal(text);
                }
                Element::NoSpace => *s = Spacing { space: false, after_punctuation: false },
                Element::Operands(g) => {
                    let values = self.m.operand_group(op, *g);
                    if values.is_empty() {
                        continue;
                    }
                    self.space(s);
                    self.values(values);
                }
                Element::Attr(a) => self.attr_element(op, &def.attrs[*a], s),
                Element::AttrDict => {
                    let mut skip: Vec<&str> =
                        format.printed_attrs.iter().map(|&a| def.attrs[a].name).collect();
                    if let Some(flags) = fast_math_text(self.m, op) {
                        self.push(" ");
                        self.push(flags);
                        skip.push("fastmath");
                    }
                    let before = self.out.len();
                    self.attr_dict(op, &skip);
                    if self.out.len() != before {
                        *s = Spacing { space: true, after_punctuation: false };
                    }
                }
                Element::Types(of) => {
                    self.space(s);
                    self.types(op, *of);
                }
                Element::ShortTypes(name, of) => self.short_types(op, name, *of, s),
                Element::FunctionalType(from, to) => {
                    self.space(s);
                    self.function_type(self.values_of(op, *from), self.values_of(op, *to));
                }
                Element::Token(g) => {
                    *s = Spacing { space: true, after_punctuation: false };
                    if self.m.results(op).last().is_some_and(|&r| self.m.value_type(r) == Type::ASYNC_TOKEN) {
                        self.push("[");
                        self.values(self.m.operand_group(op, *g));
                        self.push("]");
                    }
                }
                Element::Pairs(a, b) => {
                    *s = Spacing { space: true, after_punctuation: false };
                    let pairs = self.m.operand_group(op, *a).iter().zip(self.m.operand_group(op, *b));
                    for (&first, &second) in pairs {
                        self.push(", ");
                        self.value(first);
                        self.push("[");
                        self.value(second);
                        self.push("]");
                    }
                }
                Element::Indices(g, a) => {
                    self.space(s);
                    let known =
                        <Option<Vec<i64>> as AttrValue>::read(self.m, self.m.op_attr(op, def.attrs[*a].name));
                    let list = index_list(self.m.operand_group(op, *g), known.flatten().as_deref());
                    self.indices(&list);
                }
                Element::Region(i) => {
                    self.space(s);
                    self.region(self.m.regions(op)[*i], true, false);
                }
                Element::Optional(anchor, inner) => {
                    if self.anchored(op, def, *anchor) {
                        self.elements(op, def, format, inner, s);
                    }
                }
                Element::Oilist(clauses) => {
                    for (anchor, inner) in clauses {
                        if self.anchored(op, def, *anchor) {
                            self.elements(op, def, format, inner, s);
                        }
                    }
                }
            }
        }
    }

    /// An attribute outside of the attribute dictionary.
    fn attr_element(&mut self, op: Op, declared: &AttrDef, s: &mut Spacing) {
        let Some(attr) = self.m.op_attr(op, declared.name) else { return };
        // A flag is said by the words around it.
        if matches!(declared.ty, "bool" | "Flag") {
            return;
        }
        self.space(s);
        match self.m.attr_kind(attr) {
            // Nothing else says its type.
            AttrKind::Int(..) if declared.ty.contains("Attr") => self.attr(attr),
            _ => self.bare_attr(attr, declared.mnemonic),
        }
    }

    /// Types without their leading `!name`.
    fn short_types(&mut self, op: Op, name: &str, of: TypesOf, s: &mut Spacing) {
        self.space(s);
        let start = self.out.len();
        self.types(op, of);
        let prefix = format!("!{name}<");
        let short = self.out[start..].strip_prefix(prefix.as_str()).map(|rest| format!("<{rest}"));
        if let Some(short) = short {
            self.out.truncate(start);
            self.push(&short);
        }
    }

    fn space(&mut self, s: &mut Spacing) {
        if s.space {
            self.push(" ");
        }
        *s = Spacing { space: true, after_punctuation: false };
    }

    fn indices(&mut self, list: &[Index]) {
        self.push("[");
        for (i, index) in list.iter().enumerate() {
            if i > 0 {
                self.push(", ");
            }
            match index {
                Index::Value(v) => self.value(*v),
                Index::Known(n) => {
                    let _ = write!(self.out, "{n}");
                }
            }
        }
        self.push("]");
    }

    /// An attribute where its type is known from the declaration.
    fn bare_attr(&mut self, attr: Attr, mnemonic: &str) {
        match self.m.attr_kind(attr) {
            AttrKind::Opaque(text) if !mnemonic.is_empty() => {
                let short = text.strip_prefix('#').and_then(|t| t.strip_prefix(mnemonic));
                self.push(short.unwrap_or(text));
            }
            AttrKind::I64Array(values) => {
                let _ = write!(self.out, "{values:?}");
            }
            AttrKind::Array(items) => {
                self.push("[");
                for (i, &item) in items.iter().enumerate() {
                    if i > 0 {
                        self.push(", ");
                    }
                    self.bare_attr(item, "");
                }
                self.push("]");
            }
            AttrKind::Keyword(k) => self.push(k),
            AttrKind::Int(..) | AttrKind::Float(..) => self.aliases.number(self.m, attr, &mut self.out),
            AttrKind::I32Array(values) => {
                let _ = write!(self.out, "{values:?}");
            }
            _ => self.attr(attr),
        }
    }

    /// The generic form.
    fn generic(&mut self, op: Op) {
        let m = self.m;
        string(m.op_name(op), &mut self.out);
        self.push("(");
        self.values(m.operands(op));
        self.push(")");
        if !m.successors(op).is_empty() {
            self.push("[");
            for (i, &block) in m.successors(op).iter().enumerate() {
                if i > 0 {
                    self.push(", ");
                }
                self.block_label(block);
            }
            self.push("]");
        }
        let mut declared: Vec<&str> = Vec::new();
        match m.def(op) {
            Some(def) => {
                let mut properties: Vec<(String, Attr)> = Vec::new();
                for attr in def.attrs {
                    declared.push(attr.name);
                    if let Some(a) = m.op_attr(op, attr.name) {
                        properties.push((attr.name.to_string(), a));
                    }
                }
                properties.sort();
                let segments = (def.operands.iter().filter(|o| o.arity != Arity::One).count() > 1)
                    .then(|| m.segments(op));
                // Flags that Triton always prints here.
                let absent_flags: Vec<&str> = def
                    .attrs
                    .iter()
                    .filter(|a| a.ty == "bool" && m.op_attr(op, a.name).is_none())
                    .map(|a| a.name)
                    .collect();
                if !properties.is_empty() || segments.is_some() || !absent_flags.is_empty() {
                    self.push(" <{");
                    let mut first = true;
                    let mut separate = |p: &mut Self| {
                        if !std::mem::replace(&mut first, false) {
                            p.push(", ");
                        }
                    };
                    for (name, attr) in &properties {
                        separate(self);
                        self.push(name);
                        if *m.attr_kind(*attr) != AttrKind::Unit {
                            self.push(" = ");
                            self.attr(*attr);
                        }
                    }
                    for name in absent_flags {
                        separate(self);
                        self.push(name);
                        self.push(" = false");
                    }
                    if let Some(sizes) = segments {
                        separate(self);
                        let _ = write!(self.out, "{SEGMENT_SIZES} = array<i32");
                        for (i, n) in sizes.iter().enumerate() {
                            let _ = write!(self.out, "{}{n}", if i == 0 { ": " } else { ", " });
                        }
                        self.push(">");
                    }
                    self.push("}>");
                }
            }
            None => {
                if let Some(properties) = m.op_attr(op, PROPERTIES) {
                    self.push(" <");
                    self.attr(properties);
                    self.push(">");
                }
            }
        }
        if !m.regions(op).is_empty() {
            self.push(" (");
            for (i, &region) in m.regions(op).iter().enumerate() {
                if i > 0 {
                    self.push(", ");
                }
                self.region(region, true, false);
            }
            self.push(")");
        }
        self.attr_dict(op, &declared);
        self.push(" : ");
        self.function_type(m.operands(op), m.results(op));
    }

    pub(crate) fn symbol(&mut self, name: &str) {
        symbol(name, &mut self.out);
    }
}

/// `fastmath<...>` of an `arith` or `math` operation, which is kept as the text of MLIR's attribute.
fn fast_math_text(m: &Module, op: Op) -> Option<&str> {
    match m.attr_kind(m.op_attr(op, "fastmath")?) {
        AttrKind::Opaque(text) => text.strip_prefix("#arith."),
        _ => None,
    }
}

/// Where MLIR's declarative formats put spaces.
struct Spacing {
    space: bool,
    after_punctuation: bool,
}

impl Spacing {
    fn before_literal(&self, text: &str) -> bool {
        let first = text.as_bytes()[0];
        if !self.space {
            return false;
        }
        if text.len() != 1 && text != "->" {
            return true;
        }
        if self.after_punctuation { !b">)}],".contains(&first) } else { !b"<>(){}[],".contains(&first) }
    }

    fn after_literal(&mut self, text: &str) {
        self.space = text.len() != 1 || !b"<({[".contains(&text.as_bytes()[0]);
        let first = text.as_bytes()[0];
        self.after_punctuation = !(first.is_ascii_alphanumeric() || first == b'_');
    }
}
