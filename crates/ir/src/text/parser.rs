//! The parser: tokens, files, names, regions and blocks. Types and attributes, encodings and operations have files of
//! their own.
//!
//! Limits keep hostile text from exhausting the stack or memory: [`MAX_DEPTH`] of nesting, and [`MAX_WEIGHT`] of text
//! after aliases are replaced by what they stand for.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::custom;
use super::lexer::{Lexer, Token};
use super::parse_types::Alias;
use crate::attrs::Name;
use crate::diagnostic::{Diagnostic, Kind, Span};
use crate::dialect::builtin;
use crate::entity::{Attr, Block, Loc, Op, Region, Type, Value};
use crate::module::{Module, OpSpec};

/// Boxed: a parser that returns it all the time keeps its frames small.
pub(crate) type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// How deeply regions, types, attributes and locations may nest, together.
const MAX_DEPTH: u32 = 100;
/// How long the text may be with aliases replaced, in bytes.
const MAX_WEIGHT: usize = 1 << 26;
/// How long what one alias stands for may be.
const MAX_ALIAS_WEIGHT: usize = 1 << 16;

pub(crate) fn parse_module(text: &str, file_name: &str) -> std::result::Result<Module, Diagnostic> {
    Parser::new(text, file_name).module_file().map_err(|d| *d)
}

/// A use of a value by name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operand<'s> {
    pub(crate) name: &'s str,
    pub(crate) index: u32,
    pub(crate) at: usize,
}

/// A value used before its definition: a detached operation stands for it until then.
struct Forward {
    index: u32,
    value: Value,
    at: usize,
    /// How many regions are open where a definition would be visible: those of the use, less those that have ended.
    depth: usize,
}

/// Names visible within one isolated operation.
#[derive(Default)]
struct Scope<'s> {
    values: FxHashMap<&'s str, SmallVec<[Value; 1]>>,
    /// Names in the order of definition, so that a region can forget its own.
    order: Vec<&'s str>,
    forward: FxHashMap<&'s str, Vec<Forward>>,
}

#[derive(Default)]
struct BlockScope<'s> {
    blocks: FxHashMap<&'s str, (Block, usize, bool)>,
}

pub(crate) struct Parser<'s> {
    pub(crate) module: Module,
    lexer: Lexer<'s>,
    peeked: Option<Token<'s>>,
    /// Where the peeked token starts.
    peeked_start: usize,
    pub(super) file: String,
    pub(super) line_starts: Vec<usize>,
    aliases: FxHashMap<String, (Alias, usize)>,
    /// Operations whose location alias was not yet defined.
    pending_locs: Vec<(Op, &'s str, usize)>,
    scope: Scope<'s>,
    block_scopes: Vec<BlockScope<'s>>,
    regions: Vec<Region>,
    depth: u32,
    weight: usize,
    /// Whether the type that is read is that of a descriptor's block.
    pub(super) in_descriptor: bool,
}

impl<'s> Parser<'s> {
    fn new(text: &'s str, file_name: &str) -> Self {
        let line_starts =
            std::iter::once(0).chain(text.bytes().enumerate().filter(|b| b.1 == b'\n').map(|b| b.0 + 1));
        Parser {
            module: Module::new(),
            lexer: Lexer::new(text),
            peeked: None,
            peeked_start: 0,
            file: file_name.to_string(),
            line_starts: line_starts.collect(),
            aliases: FxHashMap::default(),
            pending_locs: Vec::new(),
            scope: Scope::default(),
            block_scopes: Vec::new(),
            regions: Vec::new(),
            depth: 0,
            weight: 0,
            in_descriptor: false,
        }
    }

    // ---- tokens -----------------------------------------------------------------------------------------------

    pub(crate) fn peek(&mut self) -> Token<'s> {
        match self.peeked {
            Some(t) => t,
            None => {
                let t = self.lexer.next();
                self.peeked_start = self.lexer.start;
                self.peeked = Some(t);
                t
            }
        }
    }

    pub(crate) fn next(&mut self) -> Token<'s> {
        let t = self.peek();
        if t != Token::End {
            self.peeked = None;
        }
        t
    }

    /// Where the next token starts.
    pub(crate) fn position(&mut self) -> usize {
        self.peek();
        self.peeked_start
    }

    /// Goes back to a position.
    pub(crate) fn reset(&mut self, at: usize) {
        self.lexer.at = at;
        self.peeked = None;
    }

    /// Forgets a token that was looked at, so that [`rest`](Self::rest) starts with it.
    pub(crate) fn back_to_token(&mut self) {
        if self.peeked.is_some() {
            self.reset(self.peeked_start);
        }
    }

    /// The text that is not yet read.
    pub(crate) fn rest(&self) -> &'s str {
        debug_assert!(self.peeked.is_none());
        &self.lexer.text()[self.lexer.at..]
    }

    pub(crate) fn advance(&mut self, bytes: usize) {
        self.reset(self.lexer.at + bytes);
    }

    pub(crate) fn text_between(&self, start: usize, end: usize) -> &'s str {
        &self.lexer.text()[start..end]
    }

    pub(crate) fn eat(&mut self, punct: u8) -> bool {
        let found = self.peek() == Token::Punct(punct);
        if found {
            self.next();
        }
        found
    }

    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek() == Token::Word(word);
        if found {
            self.next();
        }
        found
    }

    pub(crate) fn expect(&mut self, punct: u8) -> Result<()> {
        if self.eat(punct) { Ok(()) } else { Err(self.error_here(format!("`{}` expected", punct as char))) }
    }

    pub(crate) fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.error_here(format!("`{word}` expected"))) }
    }

    pub(crate) fn expect_arrow(&mut self) -> Result<()> {
        if self.peek() == Token::Arrow {
            self.next();
            Ok(())
        } else {
            Err(self.error_here("`->` expected"))
        }
    }

    pub(crate) fn expect_open_angle(&mut self) -> Result<()> {
        self.expect(b'<')
    }

    /// A quoted string.
    pub(crate) fn parse_string(&mut self) -> Result<String> {
        let at = self.position();
        let Token::Str(quoted) = self.next() else { return Err(self.error_at(at, "a string expected")) };
        let body = &quoted.as_bytes()[1..quoted.len() - 1];
        let mut out = Vec::with_capacity(body.len());
        let mut i = 0;
        while i < body.len() {
            if body[i] != b'\\' {
                out.push(body[i]);
                i += 1;
                continue;
            }
            let hex = |b: Option<&u8>| b.and_then(|&b| (b as char).to_digit(16));
            match body.get(i + 1) {
                Some(b'n') => out.push(b'\n'),
                Some(b't') => out.push(b'\t'),
                Some(b'\\') => out.push(b'\\'),
                Some(b'"') => out.push(b'"'),
                first => match (hex(first), hex(body.get(i + 2))) {
                    (Some(a), Some(b)) => {
                        out.push((a * 16 + b) as u8);
                        i += 1;
                    }
                    _ => return Err(self.error_at(at + 1 + i, "unknown escape in a string")),
                },
            }
            i += 2;
        }
        String::from_utf8(out).map_err(|_| self.error_at(at, "the string is not UTF-8"))
    }

    /// `@name` or `@"name"`
    pub(crate) fn parse_symbol(&mut self) -> Result<String> {
        let at = self.position();
        match self.next() {
            Token::At("") => self.parse_string(),
            Token::At(name) => Ok(name.to_string()),
            _ => Err(self.error_at(at, "a symbol `@name` expected")),
        }
    }

    /// Skips a `<...>`, `(...)` or `[...]` if one stands right here; returns where it ends (or where it would start).
    pub(crate) fn skip_balanced(&mut self) -> Result<usize> {
        self.back_to_token();
        let start = self.lexer.at;
        let text = self.lexer.text().as_bytes();
        let mut open: Vec<u8> = Vec::new();
        let mut i = start;
        loop {
            let Some(&b) = text.get(i) else {
                if open.is_empty() {
                    break;
                }
                return Err(self.error_at(start, "unclosed bracket"));
            };
            match b {
                b'<' | b'(' | b'[' | b'{' if !open.is_empty() || b != b'{' => open.push(b),
                b'-' if text.get(i + 1) == Some(&b'>') && !open.is_empty() => i += 1,
                b'>' | b')' | b']' | b'}' if !open.is_empty() => {
                    let opener = open.pop().expect("not empty");
                    let fits =
                        matches!((opener, b), (b'<', b'>') | (b'(', b')') | (b'[', b']') | (b'{', b'}'));
                    if !fits {
                        return Err(self.error_at(i, "brackets do not match"));
                    }
                    if open.is_empty() {
                        i += 1;
                        break;
                    }
                }
                b'"' if !open.is_empty() => {
                    i += 1;
                    while let Some(&c) = text.get(i) {
                        match c {
                            b'"' => break,
                            b'\\' => i += 1,
                            _ => {}
                        }
                        i += 1;
                    }
                }
                _ if open.is_empty() => break,
                _ => {}
            }
            i += 1;
        }
        let mut end = i.min(text.len());
        while !self.lexer.text().is_char_boundary(end) {
            end += 1;
        }
        self.reset(end);
        Ok(end)
    }

    /// Skips to the `>` that closes what is open at a position.
    pub(crate) fn skip_to_close(&mut self, start: usize) -> Result<()> {
        self.reset(start);
        loop {
            match self.peek() {
                Token::Punct(b'>') => return Ok(()),
                Token::End => return Err(self.error_at(start, "unclosed `<`")),
                _ => {
                    self.next();
                }
            }
        }
    }

    // ---- errors and limits ------------------------------------------------------------------------------------

    /// Line and column from 0.
    pub(super) fn line_column(&self, at: usize) -> (usize, usize) {
        let line = self.line_starts.partition_point(|&s| s <= at) - 1;
        let start = self.line_starts[line];
        let column = if at - start > 4096 {
            // Far into an endless line counting characters each time would be quadratic.
            at - start
        } else {
            self.lexer.text()[start..].char_indices().take_while(|c| start + c.0 < at).count()
        };
        (line, column)
    }

    pub(crate) fn error_at(&self, at: usize, message: impl Into<String>) -> Box<Diagnostic> {
        let text = self.lexer.text();
        let at = at.min(text.len());
        let (line, column) = self.line_column(at);
        let source = text[self.line_starts[line]..].lines().next().unwrap_or("");
        let mut lexer = self.lexer.clone();
        lexer.at = at;
        while !text.is_char_boundary(lexer.at) {
            lexer.at -= 1;
        }
        lexer.next();
        let length = if lexer.start == at { lexer.at.saturating_sub(at).max(1) } else { 1 };
        let mut diagnostic = Diagnostic::new(message).of(Kind::Syntax);
        diagnostic.span = Some(Span {
            file: self.file.clone(),
            line: line as u32 + 1,
            column: column as u32 + 1,
            end_column: (column + 1 + length) as u32,
            text: Some(source.to_string()),
        });
        Box::new(diagnostic)
    }

    /// That something at a position is not there yet.
    pub(crate) fn unsupported_at(&self, at: usize, what: impl std::fmt::Display) -> Box<Diagnostic> {
        Box::new(self.error_at(at, format!("not supported yet: {what}")).of(Kind::Unsupported))
    }

    pub(crate) fn error_here(&mut self, message: impl Into<String>) -> Box<Diagnostic> {
        let at = self.position();
        self.error_at(at, message)
    }

    pub(crate) fn unsupported_here(&mut self, what: impl std::fmt::Display) -> Box<Diagnostic> {
        let at = self.position();
        self.unsupported_at(at, what)
    }

    /// Runs one level deeper.
    pub(crate) fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error_here("too deeply nested"));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    pub(crate) fn add_weight(&mut self, bytes: usize, at: usize) -> Result<()> {
        self.weight = self.weight.saturating_add(bytes);
        if self.weight > MAX_WEIGHT {
            return Err(
                self.error_at(at, "the text is too long once aliases are replaced by what they stand for")
            );
        }
        Ok(())
    }

    // ---- aliases ----------------------------------------------------------------------------------------------

    /// What an alias (with its sigil) stands for.
    pub(crate) fn use_alias(&mut self, name: &str) -> Option<Alias> {
        let (alias, weight) = self.aliases.get(name)?.clone();
        self.weight = self.weight.saturating_add(weight);
        // An alias too long to be used is refused where it is defined; the sum, where the next thing is added.
        (self.weight <= MAX_WEIGHT).then_some(alias)
    }

    /// `#name = ...` or `!name = ...`; false where something else stands.
    fn alias_definition(&mut self) -> Result<bool> {
        let at = self.position();
        let name = match self.peek() {
            Token::Hash(n) if !n.contains('.') => format!("#{n}"),
            Token::Bang(n) if !n.contains('.') => format!("!{n}"),
            _ => return Ok(false),
        };
        self.next();
        self.expect(b'=')?;
        let before = self.weight;
        let start = self.position();
        let alias = if name.starts_with('!') {
            Alias::Type(self.parse_type()?)
        } else if self.peek() == Token::Word("loc") {
            self.next();
            self.expect(b'(')?;
            let loc = self.loc_body()?;
            self.expect(b')')?;
            Alias::Loc(loc)
        } else {
            Alias::Attr(self.parse_attr()?)
        };
        self.back_to_token();
        let weight = self.weight - before + (self.lexer.at - start);
        if weight > MAX_ALIAS_WEIGHT {
            return Err(self.error_at(at, "what the alias stands for is too long"));
        }
        self.add_weight(weight, at)?;
        self.aliases.insert(name, (alias, weight));
        Ok(true)
    }

    // ---- the file ---------------------------------------------------------------------------------------------

    fn module_file(mut self) -> Result<Module> {
        let (root, body) = (self.module.root(), self.module.body());
        let mut seen_module = None;
        let mut seen_others = false;
        loop {
            if self.alias_definition()? {
                continue;
            }
            match self.peek() {
                Token::End => break,
                Token::Punct(b'{') if self.rest_from_token().starts_with("{-#") => {
                    // Resources: nothing that we model refers to them.
                    let at = self.position();
                    match self.rest_from_token().find("#-}") {
                        Some(end) => self.reset(at + end + 3),
                        None => return Err(self.error_at(at, "`#-}` expected")),
                    }
                }
                Token::Word("module" | "builtin.module") if seen_module.is_none() && !seen_others => {
                    seen_module = Some(self.position());
                    self.next();
                    custom::parse_module_body(&mut self, root, body)?;
                    self.trailing_loc(root)?;
                }
                Token::Str("\"builtin.module\"") if seen_module.is_none() && !seen_others => {
                    seen_module = Some(self.position());
                    self.next();
                    self.generic_module(root)?;
                    self.trailing_loc(root)?;
                }
                _ => {
                    if let Some(at) = seen_module.take() {
                        self.enclose_module(at);
                    }
                    seen_others = true;
                    self.isolated(|p| p.parse_op(body))?;
                }
            }
        }
        let pending = std::mem::take(&mut self.pending_locs);
        for (op, name, at) in pending {
            match self.use_alias(&format!("#{name}")) {
                Some(Alias::Loc(loc)) => self.module.set_op_loc(op, loc),
                _ => return Err(self.error_at(at, format!("the location `#{name}` is not defined"))),
            }
        }
        Ok(self.module)
    }

    pub(super) fn rest_from_token(&mut self) -> &'s str {
        let at = self.position();
        &self.lexer.text()[at..]
    }

    /// Makes the module that has been read from `at` on one within a module that says nothing, since something stands beside it.
    fn enclose_module(&mut self, at: usize) {
        let (root, body) = (self.module.root(), self.module.body());
        let loc = match self.module.op_loc(root) {
            Loc::UNKNOWN => self.loc_of(at),
            said => said,
        };
        let inner = self.module.create_op(OpSpec::new(builtin::Kind::Module.def(), loc));
        let region = self.module.regions(inner)[0];
        let block = self.module.append_block(region, &[]);
        let ops: Vec<Op> = self.module.block_ops(body).collect();
        for op in ops {
            self.module.detach_op(op);
            self.module.append_op(block, op);
        }
        for (name, attr) in self.module.op_attrs(root).to_vec() {
            self.module.remove_attr(root, &name);
            self.module.set_attr(inner, name, attr);
        }
        self.module.set_op_loc(root, Loc::UNKNOWN);
        for pending in self.pending_locs.iter_mut().filter(|pending| pending.0 == root) {
            pending.0 = inner;
        }
        self.module.append_op(body, inner);
    }

    /// `"builtin.module"() ({ ... }) {...} : () -> ()`
    fn generic_module(&mut self, root: Op) -> Result<()> {
        self.expect(b'(')?;
        self.expect(b')')?;
        if self.eat(b'<') {
            let properties = self.parse_dict()?;
            self.set_attrs(root, properties);
            self.expect(b'>')?;
        }
        self.expect(b'(')?;
        let body = self.module.body();
        self.isolated(|p| p.single_block_body(body, true))?;
        self.expect(b')')?;
        if self.peek() == Token::Punct(b'{') {
            let attrs = self.parse_dict()?;
            self.set_attrs(root, attrs);
        }
        self.expect(b':')?;
        self.function_type()?;
        Ok(())
    }

    /// `{ ops }` into a block that exists already.
    pub(crate) fn single_block_body(&mut self, body: Block, label_allowed: bool) -> Result<()> {
        self.nested(|p| {
            p.expect(b'{')?;
            if label_allowed && matches!(p.peek(), Token::Caret(_)) {
                p.next();
                p.expect(b':')?;
            }
            while p.peek() != Token::Punct(b'}') {
                p.parse_op(body)?;
            }
            p.expect(b'}')
        })
    }

    pub(crate) fn set_attrs(&mut self, op: Op, attrs: Vec<(Name, Attr)>) {
        for (name, attr) in attrs {
            self.module.set_attr(op, name, attr);
        }
    }

    // ---- names ------------------------------------------------------------------------------------------------

    /// Runs with no outer names visible.
    pub(crate) fn isolated<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let outer = std::mem::take(&mut self.scope);
        let result = f(self)?;
        let inner = std::mem::replace(&mut self.scope, outer);
        let undefined = inner.forward.iter().flat_map(|(n, fs)| fs.iter().map(move |f| (f.at, *n)));
        if let Some((at, name)) = undefined.min() {
            return Err(self.error_at(at, format!("the value `%{name}` is not defined")));
        }
        Ok(result)
    }

    /// Names the results of an operation, or an argument.
    pub(crate) fn define(&mut self, name: &'s str, at: usize, values: &[Value]) -> Result<()> {
        if self.scope.values.contains_key(name) {
            return Err(self.error_at(at, format!("the value `%{name}` is defined twice")));
        }
        // A definition within a region does not define the name for uses outside of it.
        let depth = self.regions.len();
        let (forwards, outer): (Vec<_>, Vec<_>) =
            self.scope.forward.remove(name).unwrap_or_default().into_iter().partition(|f| f.depth >= depth);
        if !outer.is_empty() {
            self.scope.forward.insert(name, outer);
        }
        for forward in forwards {
            let Some(&value) = values.get(forward.index as usize) else {
                return Err(self.error_at(forward.at, format!("`%{name}` has {} results", values.len())));
            };
            let (used, defined) = (self.module.value_type(forward.value), self.module.value_type(value));
            if used != defined {
                return Err(self.type_mismatch(forward.at, name, defined, used));
            }
            self.module.replace_all_uses(forward.value, value);
            if let Some(op) = self.module.defining_op(forward.value) {
                self.module.erase_op(op);
            }
        }
        self.scope.values.insert(name, SmallVec::from_slice(values));
        self.scope.order.push(name);
        Ok(())
    }

    pub(super) fn type_mismatch(&self, at: usize, name: &str, defined: Type, used: Type) -> Box<Diagnostic> {
        let (defined, used) =
            (super::print_type(&self.module, defined), super::print_type(&self.module, used));
        self.error_at(at, format!("`%{name}` has type {defined}, but is used as {used}"))
    }

    /// A use `%name` or `%name#index`.
    pub(crate) fn operand(&mut self) -> Result<Operand<'s>> {
        let at = self.position();
        match self.next() {
            Token::Value(name, index) if !name.is_empty() => Ok(Operand { name, index, at }),
            _ => Err(self.error_at(at, "a value `%name` expected")),
        }
    }

    /// `%a, %b`
    pub(crate) fn operand_list(&mut self) -> Result<Vec<Operand<'s>>> {
        let mut operands = Vec::new();
        if matches!(self.peek(), Token::Value(..)) {
            operands.push(self.operand()?);
            while self.eat(b',') {
                operands.push(self.operand()?);
            }
        }
        Ok(operands)
    }

    /// The value of a use, if it is defined already.
    pub(crate) fn defined(&self, operand: Operand<'s>) -> Result<Option<Value>> {
        match self.scope.values.get(operand.name) {
            None => Ok(None),
            Some(values) => {
                match values.get(operand.index as usize) {
                    Some(&v) => Ok(Some(v)),
                    None => Err(self
                        .error_at(operand.at, format!("`%{}` has {} results", operand.name, values.len()))),
                }
            }
        }
    }

    /// The value of a use whose type is printed.
    pub(crate) fn resolve(&mut self, operand: Operand<'s>, ty: Type) -> Result<Value> {
        if let Some(value) = self.defined(operand)? {
            let defined = self.module.value_type(value);
            if defined != ty {
                return Err(self.type_mismatch(operand.at, operand.name, defined, ty));
            }
            return Ok(value);
        }
        if let Some(f) = self
            .scope
            .forward
            .get(operand.name)
            .and_then(|fs| fs.iter().find(|f| f.index == operand.index && f.depth == self.regions.len()))
        {
            let (value, known) = (f.value, self.module.value_type(f.value));
            return if known == ty {
                Ok(value)
            } else {
                Err(self.type_mismatch(operand.at, operand.name, known, ty))
            };
        }
        let mut spec = OpSpec::unregistered(&mut self.module, "forward", Loc::UNKNOWN);
        spec.results.push(ty);
        let op = self.module.create_op(spec);
        let value = self.module.result(op);
        self.scope.forward.entry(operand.name).or_default().push(Forward {
            index: operand.index,
            value,
            at: operand.at,
            depth: self.regions.len(),
        });
        Ok(value)
    }

    /// Values of uses with their types, of which there must be as many.
    pub(crate) fn resolve_all(
        &mut self,
        operands: &[Operand<'s>],
        types: &[Type],
        at: usize,
    ) -> Result<Vec<Value>> {
        if operands.len() != types.len() {
            return Err(self.error_at(at, format!("{} types for {} operands", types.len(), operands.len())));
        }
        operands.iter().zip(types).map(|(&o, &t)| self.resolve(o, t)).collect()
    }

    // ---- regions and blocks -----------------------------------------------------------------------------------

    /// `{ ... }` into an empty region. `args` are the arguments that the parent's syntax gives to the first block.
    pub(crate) fn region(&mut self, region: Region, args: &[(&'s str, usize, Type)]) -> Result<()> {
        self.nested(|p| p.region_inner(region, args))
    }

    fn region_inner(&mut self, region: Region, args: &[(&'s str, usize, Type)]) -> Result<()> {
        self.expect(b'{')?;
        let names_before = self.scope.order.len();
        self.block_scopes.push(BlockScope::default());
        self.regions.push(region);
        let mut order: Vec<Block> = Vec::new();
        if self.peek() != Token::Punct(b'}') || !args.is_empty() {
            if !matches!(self.peek(), Token::Caret(_)) || !args.is_empty() {
                let types: Vec<Type> = args.iter().map(|a| a.2).collect();
                let block = self.module.append_block(region, &types);
                order.push(block);
                for (i, &(name, at, _)) in args.iter().enumerate() {
                    let value = self.module.block_args(block)[i];
                    self.define(name, at, &[value])?;
                }
                self.block_ops(block)?;
            }
            while matches!(self.peek(), Token::Caret(_)) {
                let block = self.block_header()?;
                order.push(block);
                self.block_ops(block)?;
            }
        }
        self.expect(b'}')?;
        self.regions.pop();
        let blocks = self.block_scopes.pop().expect("pushed above");
        let missing = blocks.blocks.iter().filter(|(_, b)| !b.2).map(|(name, b)| (b.1, *name)).min();
        if let Some((at, name)) = missing {
            return Err(self.error_at(at, format!("the block `^{name}` is not defined")));
        }
        self.module.set_block_order(region, &order);
        for name in self.scope.order.split_off(names_before) {
            self.scope.values.remove(name);
        }
        let depth = self.regions.len();
        for forward in self.scope.forward.values_mut().flatten() {
            forward.depth = forward.depth.min(depth);
        }
        Ok(())
    }

    fn block_ops(&mut self, block: Block) -> Result<()> {
        while !matches!(self.peek(), Token::Punct(b'}') | Token::Caret(_)) {
            self.parse_op(block)?;
        }
        Ok(())
    }

    fn block_header(&mut self) -> Result<Block> {
        let at = self.position();
        let Token::Caret(name) = self.next() else { return Err(self.error_at(at, "a block label expected")) };
        let block = self.block_named(name, at)?;
        let scope = self.block_scopes.last_mut().expect("within a region");
        let entry = scope.blocks.get_mut(name).expect("just looked up");
        if std::mem::replace(&mut entry.2, true) {
            return Err(self.error_at(at, format!("the block `^{name}` is defined twice")));
        }
        if self.eat(b'(') {
            while self.peek() != Token::Punct(b')') {
                let arg = self.operand()?;
                self.expect(b':')?;
                let ty = self.parse_type()?;
                self.ignored_loc()?;
                let value = self.module.add_block_arg(block, ty);
                self.define(arg.name, arg.at, &[value])?;
                if !self.eat(b',') {
                    break;
                }
            }
            self.expect(b')')?;
        }
        self.expect(b':')?;
        Ok(block)
    }

    fn block_named(&mut self, name: &'s str, at: usize) -> Result<Block> {
        let (Some(scope), Some(&region)) = (self.block_scopes.last_mut(), self.regions.last()) else {
            return Err(self.error_at(at, "a block label outside of a region"));
        };
        if let Some(&(block, ..)) = scope.blocks.get(name) {
            return Ok(block);
        }
        let block = self.module.append_block(region, &[]);
        scope.blocks.insert(name, (block, at, false));
        Ok(block)
    }

    /// `^name`, a successor.
    pub(crate) fn successor(&mut self) -> Result<Block> {
        let at = self.position();
        match self.next() {
            Token::Caret(name) => self.block_named(name, at),
            _ => Err(self.error_at(at, "a block `^name` expected")),
        }
    }

    /// The location of a block argument, which is not kept.
    pub(crate) fn ignored_loc(&mut self) -> Result<()> {
        if self.peek() == Token::Word("loc") {
            self.next();
            self.skip_balanced()?;
        }
        Ok(())
    }

    /// `loc(...)` after an operation, if it stands there.
    pub(crate) fn trailing_loc(&mut self, op: Op) -> Result<()> {
        if self.peek() != Token::Word("loc") {
            return Ok(());
        }
        self.next();
        self.expect(b'(')?;
        if let Token::Hash(name) = self.peek()
            && !self.aliases.contains_key(&format!("#{name}"))
        {
            let at = self.position();
            self.next();
            self.pending_locs.push((op, name, at));
        } else {
            let loc = self.loc_body()?;
            self.module.set_op_loc(op, loc);
        }
        self.expect(b')')
    }
}
