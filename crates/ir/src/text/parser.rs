//! Parsing operations, blocks and regions.
//!
//! Limits keep hostile text from exhausting the stack or memory: [`MAX_DEPTH`] of nesting, and [`MAX_WEIGHT`] of text
//! after aliases are replaced by what they stand for.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::custom;
use super::format::{Element, Format, TypesOf, format_of};
use super::infer;
use super::lexer::{Lexer, Token};
use super::parse_types::Alias;
use super::printer::{PROPERTIES, SEGMENT_SIZES};
use crate::attrs::{AttrKind, Name};
use crate::diagnostic::{Diagnostic, Span};
use crate::dialect::{builtin, find_def};
use crate::entity::{Attr, Block, Loc, Op, Region, Type, Value};
use crate::module::{LocKind, Module, OpSpec};
use crate::opdef::{Arity, OpDef, ResultsDef, Trait};

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
    file: String,
    line_starts: Vec<usize>,
    aliases: FxHashMap<String, (Alias, usize)>,
    /// Operations whose location alias was not yet defined.
    pending_locs: Vec<(Op, &'s str, usize)>,
    scope: Scope<'s>,
    block_scopes: Vec<BlockScope<'s>>,
    regions: Vec<Region>,
    depth: u32,
    weight: usize,
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
    fn line_column(&self, at: usize) -> (usize, usize) {
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
        let mut diagnostic = Diagnostic::new(message);
        diagnostic.span = Some(Span {
            file: self.file.clone(),
            line: line as u32 + 1,
            column: column as u32 + 1,
            end_column: (column + 1 + length) as u32,
            text: Some(source.to_string()),
        });
        Box::new(diagnostic)
    }

    pub(crate) fn error_here(&mut self, message: impl Into<String>) -> Box<Diagnostic> {
        let at = self.position();
        self.error_at(at, message)
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
        let root = self.module.root();
        let mut seen_module = false;
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
                Token::Word("module" | "builtin.module") if !seen_module && !seen_others => {
                    self.next();
                    seen_module = true;
                    custom::parse_module_body(&mut self, root)?;
                    self.trailing_loc(root)?;
                }
                Token::Str("\"builtin.module\"") if !seen_module && !seen_others => {
                    self.next();
                    seen_module = true;
                    self.generic_module(root)?;
                    self.trailing_loc(root)?;
                }
                _ if seen_module => {
                    return Err(self.error_here("a file holds one module; this stands after it"));
                }
                _ => {
                    seen_others = true;
                    let body = self.module.body();
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

    fn rest_from_token(&mut self) -> &'s str {
        let at = self.position();
        &self.lexer.text()[at..]
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

    fn type_mismatch(&self, at: usize, name: &str, defined: Type, used: Type) -> Box<Diagnostic> {
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

    // ---- operations -------------------------------------------------------------------------------------------

    pub(crate) fn loc_of(&mut self, at: usize) -> Loc {
        let (line, column) = self.line_column(at);
        let file = self.file.clone();
        self.module.loc(LocKind::File { file, line: line as u32 + 1, column: column as u32 + 1 })
    }

    /// One operation, appended to a block.
    pub(crate) fn parse_op(&mut self, block: Block) -> Result<()> {
        self.nested(|p| p.op_inner(block))
    }

    fn op_inner(&mut self, block: Block) -> Result<()> {
        let start = self.position();
        self.add_weight(0, start)?;
        let mut names: SmallVec<[(&'s str, usize, u32); 1]> = SmallVec::new();
        if matches!(self.peek(), Token::Value(..)) {
            loop {
                let name = self.operand()?;
                let mut count = 1;
                if self.eat(b':') {
                    let at = self.position();
                    count = match self.parse_i32()? {
                        n @ 1..=65535 => n as u32,
                        _ => return Err(self.error_at(at, "a count of results expected")),
                    };
                }
                names.push((name.name, name.at, count));
                if !self.eat(b',') {
                    break;
                }
            }
            self.expect(b'=')?;
        }
        let at = self.position();
        let loc = self.loc_of(at);
        let op = match self.peek() {
            Token::Str(_) => self.generic_op(loc)?,
            Token::Word(word) => {
                let name = match word {
                    "module" => "builtin.module",
                    "unrealized_conversion_cast" => "builtin.unrealized_conversion_cast",
                    w => w,
                };
                let Some(def) = find_def(name) else {
                    let known = word.split_once('.').is_some();
                    let message = if known {
                        format!(
                            "not supported yet: the operation `{word}` (unless in its generic form, \"{word}\"(...))"
                        )
                    } else {
                        format!("an operation expected, not `{word}`")
                    };
                    return Err(self.error_here(message));
                };
                self.next();
                match custom::parse(self, def, loc)? {
                    Some(op) => op,
                    None => match format_of(def) {
                        Some(format) => self.formatted_op(def, format, loc, at)?,
                        None => {
                            return Err(self.error_at(
                                at,
                                format!("`{word}` is written in the generic form: \"{word}\"(...)"),
                            ));
                        }
                    },
                }
            }
            _ => return Err(self.error_here("an operation expected")),
        };
        self.module.append_op(block, op);
        self.trailing_loc(op)?;
        let results: SmallVec<[Value; 2]> = SmallVec::from_slice(self.module.results(op));
        let named: u64 = names.iter().map(|n| u64::from(n.2)).sum();
        if !names.is_empty() && named != results.len() as u64 {
            return Err(self.error_at(
                start,
                format!("`{}` has {} results, not {named}", self.module.op_name(op), results.len()),
            ));
        }
        let mut first = 0;
        for (name, at, count) in names {
            self.define(name, at, &results[first..first + count as usize])?;
            first += count as usize;
        }
        Ok(())
    }

    /// The generic form.
    fn generic_op(&mut self, loc: Loc) -> Result<Op> {
        let at = self.position();
        let name = self.parse_string()?;
        let def = find_def(&name);
        if def.is_some_and(|d| d.opcode == builtin::Module::OPCODE) {
            return Err(self.error_at(at, "not supported yet: a module within a module"));
        }
        self.expect(b'(')?;
        let operands = self.operand_list()?;
        self.expect(b')')?;
        let mut spec = match def {
            Some(def) => {
                let mut spec = OpSpec::new(def, loc);
                spec.regions = 0;
                spec
            }
            None => OpSpec::unregistered(&mut self.module, &name, loc),
        };
        if self.eat(b'[') {
            loop {
                spec.successors.push(self.successor()?);
                if !self.eat(b',') {
                    break;
                }
            }
            self.expect(b']')?;
        }
        let mut sizes = None;
        if self.eat(b'<') {
            let mut properties = self.parse_dict()?;
            self.expect(b'>')?;
            match def {
                Some(def) => {
                    if let Some(i) = properties.iter().position(|p| p.0 == SEGMENT_SIZES) {
                        sizes = Some(properties.remove(i).1);
                    }
                    for (name, attr) in properties {
                        self.declared_attr(&mut spec, def, name, attr);
                    }
                }
                None => {
                    let dict = self.module.attr(AttrKind::Dict(properties));
                    spec.attr(PROPERTIES, Some(dict));
                }
            }
        }
        let op = self.module.create_op(spec);
        if self.eat(b'(') {
            let isolated = def.is_some_and(|d| d.has(Trait::Isolated));
            loop {
                let region = self.module.add_region(op);
                if isolated {
                    self.isolated(|p| p.region(region, &[]))?;
                } else {
                    self.region(region, &[])?;
                }
                if !self.eat(b',') {
                    break;
                }
            }
            self.expect(b')')?;
        }
        if self.peek() == Token::Punct(b'{') {
            let attrs = self.parse_dict()?;
            for (name, attr) in attrs {
                match def {
                    Some(_) if name == SEGMENT_SIZES => sizes = Some(attr),
                    Some(def) => {
                        let mut holder = OpSpec::new(def, loc);
                        self.declared_attr(&mut holder, def, name, attr);
                        for (name, attr) in holder.attrs {
                            self.module.set_attr(op, name, attr);
                        }
                    }
                    None if name == Module::UNREGISTERED_NAME || name == PROPERTIES => {
                        return Err(self.error_at(at, format!("the attribute name `{name}` is reserved")));
                    }
                    None => self.module.set_attr(op, name, attr),
                }
            }
        }
        self.expect(b':')?;
        let types_at = self.position();
        let (inputs, results) = self.function_type()?;
        let values = self.resolve_all(&operands, &inputs, types_at)?;
        let segments = match def {
            Some(def) => self.generic_segments(def, sizes, values.len(), at)?,
            None => SmallVec::new(),
        };
        self.module.set_operands_and_segments(op, &values, &segments);
        for ty in results {
            self.module.add_result(op, ty);
        }
        if let Some(def) = def {
            let regions = self.module.regions(op).len();
            if regions != def.regions.len() {
                return Err(
                    self.error_at(at, format!("`{name}` has {} regions, not {regions}", def.regions.len()))
                );
            }
        }
        Ok(op)
    }

    /// The sizes of the operand groups of an operation in the generic form.
    fn generic_segments(
        &mut self,
        def: &OpDef,
        sizes: Option<Attr>,
        operands: usize,
        at: usize,
    ) -> Result<SmallVec<[u16; 4]>> {
        let fixed = def.operands.iter().filter(|o| o.arity == Arity::One).count();
        let wrong = |p: &Self| p.error_at(at, format!("`{}` cannot have {operands} operands", def.name));
        if !def.has_segments() {
            return if operands == fixed { Ok(SmallVec::new()) } else { Err(wrong(self)) };
        }
        let sizes: SmallVec<[u16; 4]> = match sizes.map(|a| self.module.attr_kind(a)) {
            Some(AttrKind::I32Array(v)) => {
                let sizes: Option<SmallVec<[u16; 4]>> = v.iter().map(|&n| u16::try_from(n).ok()).collect();
                sizes.ok_or_else(|| wrong(self))?
            }
            Some(_) => return Err(self.error_at(at, format!("`{SEGMENT_SIZES}` must be an array of i32"))),
            None => {
                let rest = operands.checked_sub(fixed).ok_or_else(|| wrong(self))?;
                if def.operands.len() - fixed != 1 && rest != 0 {
                    return Err(self.error_at(at, format!("`{SEGMENT_SIZES}` must be given")));
                }
                let rest = u16::try_from(rest).map_err(|_| wrong(self))?;
                def.operands.iter().map(|o| if o.arity == Arity::One { 1 } else { rest }).collect()
            }
        };
        let fits = sizes.len() == def.operands.len()
            && sizes.iter().map(|&n| n as usize).sum::<usize>() == operands
            && def.operands.iter().zip(&sizes).all(|(o, &n)| match o.arity {
                Arity::One => n == 1,
                Arity::Optional => n <= 1,
                Arity::Variadic => true,
            });
        if fits { Ok(sizes) } else { Err(wrong(self)) }
    }

    /// Enters an attribute, in the form in which its declaration stores it: an enumeration as a keyword, a flag that is
    /// not set as nothing.
    pub(crate) fn declared_attr(&mut self, spec: &mut OpSpec, def: &'static OpDef, name: Name, attr: Attr) {
        // What the generic form calls them in Triton.
        let wanted = match name.as_ref() {
            "cache" => "cacheModifier",
            "evict" => "evictionPolicy",
            n => n,
        };
        let declared =
            def.attrs.iter().find(|a| a.name == name).or_else(|| def.attrs.iter().find(|a| a.name == wanted));
        let Some(declared) = declared else {
            spec.attr(name, Some(attr));
            return;
        };
        let attr = match self.module.attr_kind(attr) {
            // Constants are integers, so that equal ones are equal attributes.
            AttrKind::Bool(b) if def.has(Trait::Constant) => {
                let value = if *b { -1 } else { 0 };
                self.module.attr(AttrKind::Int(value, Type::I1))
            }
            AttrKind::Bool(false) if declared.ty == "bool" => return,
            AttrKind::Unit if declared.ty == "bool" => self.module.attr(AttrKind::Bool(true)),
            kind if !declared.keywords.is_empty() => {
                let keyword = match kind {
                    AttrKind::Str(s) => declared.keywords.iter().find(|k| *k == s),
                    AttrKind::Keyword(k) => declared.keywords.iter().find(|d| *d == k),
                    // The numbers of MLIR's enumerations start at 1 in Triton's dialect, but for these.
                    AttrKind::Int(n, _) => {
                        let from_zero = [
                            "ProgramDim",
                            "InputPrecision",
                            "RoundingMode",
                            "CmpIPredicate",
                            "CmpFPredicate",
                        ];
                        let base = i64::from(!from_zero.iter().any(|t| declared.ty.contains(t)));
                        usize::try_from(n - base).ok().and_then(|i| declared.keywords.get(i))
                    }
                    _ => None,
                };
                match keyword {
                    Some(&k) if declared.default_keyword == Some(k) => return,
                    Some(&k) => self.module.attr(AttrKind::Keyword(k)),
                    None => attr,
                }
            }
            _ => attr,
        };
        spec.attr(Name::Borrowed(declared.name), Some(attr));
    }

    /// `{...}` if it stands there, into a spec.
    pub(crate) fn optional_attr_dict(&mut self, spec: &mut OpSpec, def: &'static OpDef) -> Result<()> {
        if self.peek() == Token::Punct(b'{') {
            for (name, attr) in self.parse_dict()? {
                self.declared_attr(spec, def, name, attr);
            }
        }
        Ok(())
    }

    /// An operation with a declared format, after its name.
    fn formatted_op(
        &mut self,
        def: &'static OpDef,
        format: &'static Format,
        loc: Loc,
        at: usize,
    ) -> Result<Op> {
        let mut parsed = Parsed {
            operands: vec![Vec::new(); def.operands.len()],
            operand_types: vec![None; def.operands.len()],
            result_types: vec![None; result_slots(def)],
            all_operand_types: None,
            all_result_types: None,
            spec: OpSpec::new(def, loc),
        };
        self.elements(def, &format.elements, &mut parsed)?;
        self.finish(def, parsed, at)
    }

    fn elements(
        &mut self,
        def: &'static OpDef,
        elements: &'static [Element],
        parsed: &mut Parsed<'s>,
    ) -> Result<()> {
        for element in elements {
            match element {
                Element::Literal(text) => self.literal(text)?,
                Element::NoSpace => {}
                Element::Operands(g) => match def.operands[*g].arity {
                    Arity::One => parsed.operands[*g].push(self.operand()?),
                    Arity::Optional => {
                        if matches!(self.peek(), Token::Value(..)) {
                            parsed.operands[*g].push(self.operand()?);
                        }
                    }
                    Arity::Variadic => parsed.operands[*g] = self.operand_list()?,
                },
                Element::Attr(a) => {
                    let declared = &def.attrs[*a];
                    let kind = self.bare_attr(def, *a)?;
                    let attr = self.module.attr(kind);
                    self.declared_attr(&mut parsed.spec, def, Name::Borrowed(declared.name), attr);
                }
                Element::AttrDict => {
                    if self.peek() == Token::Word("fastmath") || self.peek() == Token::Word("overflow") {
                        let start = self.position();
                        self.next();
                        let end = self.skip_balanced()?;
                        let text = self.text_between(start, end);
                        if text.starts_with("fastmath") {
                            let attr = self.module.attr(AttrKind::Opaque(format!("#arith.{text}")));
                            parsed.spec.attr("fastmath", Some(attr));
                        }
                    }
                    self.optional_attr_dict(&mut parsed.spec, def)?;
                }
                Element::Types(of) => self.types_into(*of, def, parsed)?,
                Element::ShortTypes(name, of) => {
                    if self.peek() == Token::Punct(b'<') {
                        let ty = self.nested(|p| p.short_type(name))?;
                        self.store_types(*of, vec![ty], parsed)?;
                    } else {
                        self.types_into(*of, def, parsed)?;
                    }
                }
                Element::FunctionalType(from, to) => {
                    let (inputs, results) = self.function_type()?;
                    self.store_types(*from, inputs, parsed)?;
                    self.store_types(*to, results, parsed)?;
                }
                Element::Optional(_, inner) => {
                    if self.starts(&inner[0]) {
                        self.elements(def, inner, parsed)?;
                    }
                }
                Element::Oilist(clauses) => {
                    while let Some((_, clause)) = clauses.iter().find(|(_, c)| self.starts(&c[0])) {
                        self.elements(def, clause, parsed)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn starts(&mut self, element: &Element) -> bool {
        match (element, self.peek()) {
            (Element::Literal(text), Token::Word(w)) => text == w,
            (Element::Literal(text), Token::Punct(p)) => text.as_bytes() == [p],
            (Element::Literal(text), Token::Arrow) => text == "->",
            (Element::Operands(_), Token::Value(..)) => true,
            _ => false,
        }
    }

    fn literal(&mut self, text: &'static str) -> Result<()> {
        match text {
            "->" => self.expect_arrow(),
            _ if text.len() == 1 && !text.as_bytes()[0].is_ascii_alphanumeric() => {
                self.expect(text.as_bytes()[0])
            }
            _ => self.expect_word(text),
        }
    }

    /// An attribute whose kind the declaration gives.
    fn bare_attr(&mut self, def: &'static OpDef, index: usize) -> Result<AttrKind> {
        let declared = &def.attrs[index];
        if !declared.keywords.is_empty() {
            let at = self.position();
            // Older text has them quoted.
            let word = match self.next() {
                Token::Word(w) => w,
                Token::Str(s) => s.trim_matches('"'),
                _ => "",
            };
            return match declared.keywords.iter().find(|k| **k == word) {
                Some(&k) => Ok(AttrKind::Keyword(k)),
                None => Err(self.error_at(at, format!("one of {} expected", declared.keywords.join(", ")))),
            };
        }
        let base = declared.ty.strip_prefix("Option<").map_or(declared.ty, |t| t.trim_end_matches('>'));
        match base {
            "bool" => Ok(AttrKind::Bool(true)),
            "String" => Ok(AttrKind::Str(self.parse_string()?)),
            "SymbolRef" => Ok(AttrKind::Symbol(self.parse_symbol()?)),
            "i32" => Ok(AttrKind::Int(i64::from(self.parse_i32()?), Type::I32)),
            "Vec<i32" | "Vec<i32>" => Ok(AttrKind::I32Array(self.i32_list()?)),
            _ => {
                let attr = self.parse_attr()?;
                Ok(self.module.attr_kind(attr).clone())
            }
        }
    }

    fn types_into(&mut self, of: TypesOf, def: &OpDef, parsed: &mut Parsed<'s>) -> Result<()> {
        let one = match of {
            TypesOf::Operands(g) => def.operands[g].arity == Arity::One,
            TypesOf::Result(_) => true,
            TypesOf::AllOperands | TypesOf::AllResults => false,
        };
        let types = if one { vec![self.parse_type()?] } else { self.type_list()? };
        self.store_types(of, types, parsed)
    }

    fn store_types(&mut self, of: TypesOf, types: Vec<Type>, parsed: &mut Parsed<'s>) -> Result<()> {
        match of {
            TypesOf::Operands(g) => parsed.operand_types[g] = Some(types),
            TypesOf::AllOperands => parsed.all_operand_types = Some(types),
            TypesOf::Result(i) => match (types.as_slice(), parsed.result_types.get_mut(i)) {
                (&[ty], Some(slot)) => *slot = Some(ty),
                _ => return Err(self.error_here("one result type expected")),
            },
            TypesOf::AllResults => parsed.all_result_types = Some(types),
        }
        Ok(())
    }

    fn finish(&mut self, def: &'static OpDef, mut parsed: Parsed<'s>, at: usize) -> Result<Op> {
        if let Some(types) = parsed.all_operand_types.take() {
            let count: usize = parsed.operands.iter().map(Vec::len).sum();
            if types.len() != count {
                return Err(self.error_at(at, format!("{} types for {count} operands", types.len())));
            }
            let mut types = types.into_iter();
            for (g, operands) in parsed.operands.iter().enumerate() {
                parsed.operand_types[g] = Some(types.by_ref().take(operands.len()).collect());
            }
        }
        // What is known before the operands are resolved, for those that are not defined yet.
        let printed_result = match &parsed.all_result_types {
            Some(types) => types.first().copied(),
            None => parsed.result_types.first().copied().flatten(),
        };
        let mut known: Vec<Option<Type>> = Vec::with_capacity(def.operands.len());
        for (g, operands) in parsed.operands.iter().enumerate() {
            let ty = match &parsed.operand_types[g] {
                Some(types) => types.first().copied(),
                None => match operands.first() {
                    Some(&o) => self.defined(o)?.map(|v| self.module.value_type(v)),
                    None => None,
                },
            };
            known.push(ty);
        }
        let mut values = Vec::new();
        for (g, operands) in parsed.operands.iter().enumerate() {
            if def.operands[g].arity == Arity::One && operands.len() != 1 {
                return Err(self.error_at(at, format!("the operand `{}` is missing", def.operands[g].name)));
            }
            let resolved = match &parsed.operand_types[g] {
                Some(types) => self.resolve_all(operands, types, at)?,
                None => {
                    let mut resolved = Vec::with_capacity(operands.len());
                    for &o in operands {
                        let value = match self.defined(o)? {
                            Some(v) => v,
                            None => {
                                let ty =
                                    infer::operand_type(&mut self.module, def, g, &known, printed_result);
                                match ty {
                                    Some(ty) => self.resolve(o, ty)?,
                                    None => {
                                        return Err(self.error_at(
                                            o.at,
                                            format!("the value `%{}` is not defined before its use", o.name),
                                        ));
                                    }
                                }
                            }
                        };
                        resolved.push(value);
                    }
                    resolved
                }
            };
            if u16::try_from(resolved.len()).is_err() {
                return Err(self.error_at(at, "too many operands"));
            }
            parsed.spec.operand_group(&resolved);
            values.extend(resolved);
        }
        let results = match parsed.all_result_types {
            Some(types) => Some(types),
            // Any number of results whose types are not printed: they follow from the operands.
            None if matches!(def.results, ResultsDef::Variadic) => None,
            None if parsed.result_types.iter().all(Option::is_some) => {
                Some(parsed.result_types.iter().copied().flatten().collect())
            }
            None => None,
        };
        let results = match (results, def.results) {
            (Some(types), ResultsDef::SameAs(group)) => {
                let first = def.group(group).and_then(|g| {
                    let before: usize = parsed.operands[..g].iter().map(Vec::len).sum();
                    values.get(before)
                });
                if let (Some(&value), Some(&ty)) = (first, types.first())
                    && self.module.value_type(value) != ty
                {
                    let operand = parsed.operands[def.group(group).expect("declared")][0];
                    return Err(self.type_mismatch(
                        operand.at,
                        operand.name,
                        self.module.value_type(value),
                        ty,
                    ));
                }
                types
            }
            (Some(types), ResultsDef::Given(names)) if types.len() == names.len() => types,
            (Some(types), ResultsDef::Variadic) => types,
            _ => match infer::result_types(&mut self.module, def, &values, printed_result) {
                Some(types) => types,
                None => {
                    let same = match def.results {
                        ResultsDef::SameAs(group) => def.group(group).and_then(|g| {
                            let before: usize = parsed.operands[..g].iter().map(Vec::len).sum();
                            values.get(before).copied()
                        }),
                        _ => None,
                    };
                    match same {
                        Some(v) => vec![self.module.value_type(v)],
                        None => return Err(self.error_at(at, "the types of the results cannot be told")),
                    }
                }
            },
        };
        // A type that is printed once for all operands holds for each of them.
        if def.has(Trait::SameTypes)
            && let Some(&ty) = results.first()
        {
            for (&value, operand) in values.iter().zip(parsed.operands.iter().flatten()) {
                if self.module.value_type(value) != ty {
                    return Err(self.type_mismatch(
                        operand.at,
                        operand.name,
                        self.module.value_type(value),
                        ty,
                    ));
                }
            }
        }
        parsed.spec.results = results.into_iter().collect();
        Ok(self.module.create_op(parsed.spec))
    }
}

/// What has been read of an operation with a format.
struct Parsed<'s> {
    operands: Vec<Vec<Operand<'s>>>,
    operand_types: Vec<Option<Vec<Type>>>,
    result_types: Vec<Option<Type>>,
    all_operand_types: Option<Vec<Type>>,
    all_result_types: Option<Vec<Type>>,
    spec: OpSpec,
}

fn result_slots(def: &OpDef) -> usize {
    match def.results {
        ResultsDef::Given(names) => names.len(),
        ResultsDef::SameAs(_) => 1,
        ResultsDef::Variadic => 0,
    }
}
