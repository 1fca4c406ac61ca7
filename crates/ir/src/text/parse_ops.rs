//! Parsing operations: by the format of their declaration, or in the generic form.

use smallvec::SmallVec;

use super::custom;
use super::format::{Anchor, Element, Format, TypesOf, format_of};
use super::lexer::Token;
use super::parser::{Operand, Parser, Result};
use super::printer::{PROPERTIES, SEGMENT_SIZES};
use crate::attrs::{AttrKind, Name};
use crate::dialect::find_def;
use crate::entity::{Attr, Block, Loc, Op, Type, Value};
use crate::memref::DYNAMIC;
use crate::module::{LocKind, Module, OpSpec};
use crate::opdef::{Arity, OpDef, ResultsDef, Trait};
use crate::typing::{self, Known};

impl<'s> Parser<'s> {
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
                    // What Triton before 3.6 writes for `ttg.barrier`.
                    "gpu.barrier" => "ttg.barrier",
                    // What stands in functions may leave out the name of their dialect.
                    "return" => "func.return",
                    "call" => "func.call",
                    w => w,
                };
                let Some(def) = find_def(name) else {
                    if word.contains('.') {
                        let what =
                            format!("the operation `{word}` (unless in its generic form, \"{word}\"(...))");
                        return Err(self.unsupported_here(what));
                    }
                    return Err(self.error_here(format!("an operation expected, not `{word}`")));
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
            self.generic_regions(op, def)?;
            self.expect(b')')?;
        }
        if self.peek() == Token::Punct(b'{') {
            self.generic_attrs(op, def, loc, at, &mut sizes)?;
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

    fn generic_regions(&mut self, op: Op, def: Option<&'static OpDef>) -> Result<()> {
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
        Ok(())
    }

    /// The attributes in braces of an operation in the generic form; `sizes` are those of its operand groups.
    fn generic_attrs(
        &mut self,
        op: Op,
        def: Option<&'static OpDef>,
        loc: Loc,
        at: usize,
        sizes: &mut Option<Attr>,
    ) -> Result<()> {
        let attrs = self.parse_dict()?;
        for (name, attr) in attrs {
            match def {
                Some(_) if name == SEGMENT_SIZES => *sizes = Some(attr),
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
        Ok(())
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
            kind if !declared.keywords.is_empty() && declared.mnemonic.is_empty() => {
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
            token: false,
            regions: vec![None; def.regions.len()],
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
                Element::Token(g) => {
                    if self.eat(b'[') {
                        parsed.token = true;
                        if matches!(self.peek(), Token::Value(..)) {
                            parsed.operands[*g].push(self.operand()?);
                            parsed.operand_types[*g] = Some(vec![Type::ASYNC_TOKEN]);
                        }
                        self.expect(b']')?;
                    }
                }
                Element::Pairs(a, b) => {
                    while self.eat(b',') {
                        parsed.operands[*a].push(self.operand()?);
                        self.expect(b'[')?;
                        parsed.operands[*b].push(self.operand()?);
                        self.expect(b']')?;
                    }
                }
                Element::Indices(g, a) => self.indices(def, *g, *a, parsed)?,
                Element::Region(i) => parsed.regions[*i] = Some(self.formatted_region(def, *i)?),
                Element::Optional(anchor, inner) => {
                    let first = inner.iter().find(|e| !matches!(e, Element::NoSpace));
                    if first.is_some_and(|first| self.starts(first)) {
                        self.elements(def, inner, parsed)?;
                    } else if *anchor == Anchor::Results {
                        parsed.all_result_types = Some(Vec::new());
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
            (Element::Attr(_), Token::Punct(b'<' | b'-') | Token::Hash(_) | Token::Integer(_)) => true,
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
        if !declared.mnemonic.is_empty() {
            return self.wrapped_attr(declared.mnemonic);
        }
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
        let ty = declared.ty.replace(' ', "");
        let base = ty.strip_prefix("Option<").map_or(ty.as_str(), |t| t.trim_end_matches('>'));
        match base {
            "bool" => Ok(AttrKind::Bool(true)),
            "Flag" => Ok(AttrKind::Unit),
            "String" => Ok(AttrKind::Str(self.parse_string()?)),
            "SymbolRef" => Ok(AttrKind::Symbol(self.parse_symbol()?)),
            "i32" => Ok(AttrKind::Int(i64::from(self.parse_i32()?), Type::I32)),
            "i64" => self.bare_integer(),
            "Vec<i32" | "Vec<i32>" => Ok(AttrKind::I32Array(self.i32_list()?)),
            "Vec<i64" | "Vec<i64>" => Ok(AttrKind::I64Array(self.i64_list()?)),
            _ => {
                let attr = self.parse_attr()?;
                Ok(self.module.attr_kind(attr).clone())
            }
        }
    }

    /// `<...>`, or `#mnemonic<...>`, or an alias of that.
    fn wrapped_attr(&mut self, mnemonic: &str) -> Result<AttrKind> {
        let start = self.position();
        if self.peek() != Token::Punct(b'<') {
            let attr = self.parse_attr()?;
            return Ok(self.module.attr_kind(attr).clone());
        }
        let end = self.skip_balanced()?;
        let text = self.expand_aliases(start, end)?;
        Ok(AttrKind::Opaque(format!("#{mnemonic}{text}")))
    }

    fn bare_integer(&mut self) -> Result<AttrKind> {
        let number = self.parse_i64()?;
        if self.eat(b':') {
            self.parse_type()?;
        }
        Ok(AttrKind::Int(number, Type::I64))
    }

    /// `[%a, 4]`: values, and numbers that are known, which go into an attribute.
    fn indices(&mut self, def: &'static OpDef, g: usize, a: usize, parsed: &mut Parsed<'s>) -> Result<()> {
        self.expect(b'[')?;
        let mut known = Vec::new();
        while self.peek() != Token::Punct(b']') {
            if matches!(self.peek(), Token::Value(..)) {
                parsed.operands[g].push(self.operand()?);
                known.push(DYNAMIC);
            } else {
                known.push(self.parse_i64()?);
            }
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b']')?;
        if known.iter().any(|&n| n != DYNAMIC) {
            let attr = self.module.attr(AttrKind::I64Array(known));
            parsed.spec.attr(def.attrs[a].name, Some(attr));
        }
        Ok(())
    }

    fn types_into(&mut self, of: TypesOf, def: &OpDef, parsed: &mut Parsed<'s>) -> Result<()> {
        let one = match of {
            TypesOf::Operands(g) => def.operands[g].arity != Arity::Variadic,
            TypesOf::Result(_) => true,
            TypesOf::AllOperands | TypesOf::AllResults => false,
        };
        let types = match of {
            _ if one => vec![self.parse_type()?],
            TypesOf::AllResults if self.peek() == Token::Punct(b'(') => self.result_type_list()?,
            _ => self.type_list()?,
        };
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
        let mut groups = Vec::with_capacity(def.operands.len());
        for (g, operands) in parsed.operands.iter().enumerate() {
            if def.operands[g].arity == Arity::One && operands.len() != 1 {
                return Err(self.error_at(at, format!("the operand `{}` is missing", def.operands[g].name)));
            }
            let resolved = match &parsed.operand_types[g] {
                Some(types) => self.resolve_all(operands, types, at)?,
                None => {
                    self.resolve_by_rule(def, g, operands, &Known { groups: &known, result: printed_result })?
                }
            };
            if u16::try_from(resolved.len()).is_err() {
                return Err(self.error_at(at, "too many operands"));
            }
            parsed.spec.operand_group(&resolved);
            groups.push(resolved);
        }
        let results = match parsed.all_result_types {
            Some(types) => Some(types),
            // Any number of results whose types are not printed: they follow from the operands.
            None if matches!(def.results, ResultsDef::Variadic(_)) => None,
            None if parsed.result_types.iter().all(Option::is_some) => {
                Some(parsed.result_types.iter().copied().flatten().collect())
            }
            None => None,
        };
        let results = match (results, def.results) {
            (Some(types), ResultsDef::SameAs(name)) => {
                let group = def.group(name).expect("declared");
                if let (Some(&value), Some(&ty)) = (groups[group].first(), types.first())
                    && self.module.value_type(value) != ty
                {
                    let operand = parsed.operands[group][0];
                    let found = self.module.value_type(value);
                    return Err(self.type_mismatch(operand.at, operand.name, found, ty));
                }
                types
            }
            (Some(types), ResultsDef::Given(names)) if types.len() == names.len() => types,
            (Some(types), ResultsDef::Variadic(_)) => types,
            (Some(types), _) if def.adds_token(&types) => types,
            _ => match typing::result_types(&mut self.module, def, &groups, printed_result) {
                Some(types) => types,
                None => return Err(self.error_at(at, "the types of the results cannot be told")),
            },
        };
        // A type that is printed once for all operands holds for each of them.
        if def.has(Trait::SameTypes)
            && let Some(&ty) = results.first()
        {
            for (&value, operand) in groups.iter().flatten().zip(parsed.operands.iter().flatten()) {
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
        if parsed.token {
            parsed.spec.results.push(Type::ASYNC_TOKEN);
        }
        let op = self.module.create_op(parsed.spec);
        for (i, holder) in parsed.regions.into_iter().enumerate() {
            let Some(holder) = holder else { continue };
            let (from, to) = (self.module.regions(holder)[0], self.module.regions(op)[i]);
            self.module.move_blocks(from, to);
            self.module.erase_op(holder);
        }
        Ok(op)
    }

    /// `{ ... }` of an operation that is not there yet: an operation that holds it until then. What ends it may be left out where it gives nothing.
    fn formatted_region(&mut self, def: &'static OpDef, index: usize) -> Result<Op> {
        let at = self.position();
        let loc = self.loc_of(at);
        let mut spec = OpSpec::unregistered(&mut self.module, "region", loc);
        spec.regions = 1;
        let holder = self.module.create_op(spec);
        let region = self.module.regions(holder)[0];
        self.region(region, &[])?;
        let ends = find_def(def.regions[index].ends)
            .filter(|end| end.operands.iter().all(|o| o.arity != Arity::One));
        if let Some(end) = ends {
            custom::ensure_end(self, region, end, loc);
        }
        Ok(holder)
    }

    /// The operands of group `g`, whose types are not printed: they have values, or types that follow from what is known.
    fn resolve_by_rule(
        &mut self,
        def: &'static OpDef,
        g: usize,
        operands: &[Operand<'s>],
        known: &Known<'_>,
    ) -> Result<Vec<Value>> {
        let mut resolved = Vec::with_capacity(operands.len());
        for &o in operands {
            let value = match self.defined(o)? {
                Some(v) => v,
                None => match typing::operand_type(&mut self.module, def, g, known) {
                    Some(ty) => self.resolve(o, ty)?,
                    None => {
                        return Err(self.error_at(
                            o.at,
                            format!("the value `%{}` is not defined before its use", o.name),
                        ));
                    }
                },
            };
            resolved.push(value);
        }
        Ok(resolved)
    }
}

/// What has been read of an operation with a format.
struct Parsed<'s> {
    operands: Vec<Vec<Operand<'s>>>,
    operand_types: Vec<Option<Vec<Type>>>,
    result_types: Vec<Option<Type>>,
    all_operand_types: Option<Vec<Type>>,
    all_result_types: Option<Vec<Type>>,
    /// Whether the text says that there is a token.
    token: bool,
    /// Operations that hold what was read of the regions.
    regions: Vec<Option<Op>>,
    spec: OpSpec,
}

fn result_slots(def: &OpDef) -> usize {
    match def.results {
        ResultsDef::Given(names) => names.len(),
        ResultsDef::SameAs(_) => 1,
        ResultsDef::Variadic(_) => 0,
    }
}
