//! Parsing types, attributes and locations.

use smallvec::SmallVec;

use super::lexer::Token;
use super::parser::{Parser, Result};
use super::print_types::Aliases;
use crate::attrs::{AttrKind, FloatBits, Name};
use crate::entity::{Attr, Loc, Type};
use crate::float;
use crate::module::LocKind;
use crate::types::{Container, FloatKind, Shape, TypeKind};

/// What a `#name = ...` or `!name = ...` stands for.
#[derive(Debug, Clone)]
pub(crate) enum Alias {
    Attr(Attr),
    Type(Type),
    Loc(Loc),
}

impl<'s> Parser<'s> {
    // ---- types ------------------------------------------------------------------------------------------------

    /// A type.
    pub(crate) fn parse_type(&mut self) -> Result<Type> {
        self.nested(|p| p.type_inner())
    }

    fn type_inner(&mut self) -> Result<Type> {
        match self.peek() {
            Token::Word("tensor") if !self.has_unknown_extent() => {
                self.next();
                self.expect_open_angle()?;
                let shape = self.shape()?;
                let element = self.parse_type()?;
                let encoding = if self.eat(b',') { Some(self.layout_attr()?) } else { None };
                self.expect(b'>')?;
                Ok(self.module.ty(TypeKind::Tensor { shape, element, encoding }))
            }
            Token::Word("tensor") => self.shaped(Container::Tensor),
            Token::Word("memref") => self.shaped(Container::MemRef),
            Token::Word("vector") => self.shaped(Container::Vector),
            Token::Word(name) => {
                if let Some(ty) = self.scalar_type(name) {
                    self.next();
                    return Ok(ty);
                }
                match name {
                    "tuple" | "complex" | "none" => {
                        let start = self.position();
                        self.next();
                        let end = self.skip_balanced()?;
                        let text = self.expand_aliases(start, end)?;
                        Ok(self.module.ty(TypeKind::Opaque(text)))
                    }
                    _ => Err(self.error_here(format!("`{name}` is not a type"))),
                }
            }
            Token::Punct(b'(') => {
                let (inputs, results) = self.function_type()?;
                Ok(self.module.ty(TypeKind::Function { inputs, results }))
            }
            Token::Bang(name) => {
                let start = self.position();
                self.next();
                match name {
                    "tt.ptr" | "tt.tensordesc" | "ttg.memdesc" => self.short_type(name),
                    "ttg.async.token" => Ok(Type::ASYNC_TOKEN),
                    "ttg.ring" => Ok(Type::RING),
                    _ if name.contains('.') => {
                        let end = self.skip_balanced()?;
                        let text = self.expand_aliases(start, end)?;
                        Ok(self.module.ty(TypeKind::Opaque(text)))
                    }
                    _ => match self.use_alias(&format!("!{name}")) {
                        Some(Alias::Type(ty)) => Ok(ty),
                        _ => Err(self.error_at(start, format!("`!{name}` is not defined"))),
                    },
                }
            }
            _ => Err(self.error_here("a type expected")),
        }
    }

    /// What stands after the name of a type of ours.
    pub(crate) fn short_type(&mut self, name: &str) -> Result<Type> {
        match name {
            "tt.ptr" => {
                self.expect_open_angle()?;
                let pointee = self.parse_type()?;
                let address_space = if self.eat(b',') { self.parse_u32()? } else { 1 };
                self.expect(b'>')?;
                Ok(self.module.ty(TypeKind::Ptr { pointee, address_space }))
            }
            "tt.tensordesc" => {
                self.expect_open_angle()?;
                let around = std::mem::replace(&mut self.in_descriptor, true);
                let block = self.parse_type()?;
                self.in_descriptor = around;
                self.expect(b'>')?;
                Ok(self.module.ty(TypeKind::TensorDesc { block }))
            }
            _ => self.memdesc(),
        }
    }

    fn scalar_type(&mut self, name: &str) -> Option<Type> {
        Some(match name {
            "index" => Type::INDEX,
            "f16" => Type::F16,
            "bf16" => Type::BF16,
            "f32" => Type::F32,
            "f64" => Type::F64,
            "f8E4M3FN" => Type::F8E4M3FN,
            "f8E5M2" => Type::F8E5M2,
            "f8E4M3FNUZ" => self.module.ty(TypeKind::Float(FloatKind::F8E4M3FNUZ)),
            "f8E5M2FNUZ" => self.module.ty(TypeKind::Float(FloatKind::F8E5M2FNUZ)),
            "f8E4M3B11FNUZ" => self.module.ty(TypeKind::Float(FloatKind::F8E4M3B11FNUZ)),
            // Of a block's integers only reductions look at the sign, and there are none of so few bits.
            "si8" | "ui8" if self.in_descriptor => Type::I8,
            "si16" | "ui16" if self.in_descriptor => Type::I16,
            // Integers with a sign or without one, and floats that are not modelled, are elements of accelerators' views: text.
            _ if !self.in_descriptor && is_other_number(name) => {
                self.module.ty(TypeKind::Opaque(name.to_string()))
            }
            _ => {
                let digits = name.strip_prefix('i')?;
                if digits.is_empty() || digits.starts_with('0') || !digits.bytes().all(|b| b.is_ascii_digit())
                {
                    return None;
                }
                // MLIR's own limit is 2^24 - 1; nothing of ours is wider than this.
                let bits: u16 = digits.parse().ok()?;
                self.module.int_type(bits)
            }
        })
    }

    /// `128x64x`, read as characters; the element type follows.
    fn shape(&mut self) -> Result<Shape> {
        let mut shape = Shape::new();
        self.back_to_token();
        loop {
            let rest = self.rest();
            let spaces = rest.len() - rest.trim_start().len();
            let digits = rest[spaces..].bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                if rest[spaces..].starts_with(['?', '*']) {
                    return Err(self.unsupported_here("buffers of dynamic shape"));
                }
                return Ok(shape);
            }
            let text = &rest[spaces..spaces + digits];
            let extent =
                text.parse().map_err(|_| self.error_here(format!("the extent {text} is too large")))?;
            if rest.as_bytes().get(spaces + digits) != Some(&b'x') {
                return Err(self.error_here("`x` expected after an extent"));
            }
            shape.push(extent);
            self.advance(spaces + digits + 1);
        }
    }

    /// Whether an extent of the type that begins here is known at run time only.
    fn has_unknown_extent(&mut self) -> bool {
        let rest = self.rest_from_token();
        let dims = rest.find('<').map_or("", |open| &rest[open + 1..]);
        dims.trim_start_matches(|c: char| c.is_ascii_digit() || c.is_whitespace() || c == 'x')
            .starts_with(['?', '*'])
    }

    /// `memref<4x?xf32, rest>`; one without a rank is kept as text.
    fn shaped(&mut self, container: Container) -> Result<Type> {
        let start = self.position();
        self.next();
        let begin = self.position() + 1;
        if self.peek() != Token::Punct(b'<') {
            return Err(self.error_here("`<` expected"));
        }
        let end = self.skip_balanced()?;
        self.reset(begin);
        let mut shape = SmallVec::new();
        loop {
            self.back_to_token();
            let rest = self.rest().trim_start();
            if rest.starts_with(['*', '[']) {
                self.reset(end);
                let text = self.expand_aliases(start, end)?;
                return Ok(self.module.ty(TypeKind::Opaque(text)));
            }
            let skipped = self.rest().len() - rest.len();
            let word =
                if rest.starts_with('?') { 1 } else { rest.bytes().take_while(u8::is_ascii_digit).count() };
            if word == 0 {
                break;
            }
            let extent = match &rest[..word] {
                "?" => None,
                digits => Some(
                    digits
                        .parse()
                        .map_err(|_| self.error_here(format!("the extent {digits} is too large")))?,
                ),
            };
            if rest.as_bytes().get(word) != Some(&b'x') {
                return Err(self.error_here("`x` expected after an extent"));
            }
            shape.push(extent);
            self.advance(skipped + word + 1);
        }
        let element = self.parse_type()?;
        let behind = self.position();
        // What a broken element says may reach beyond the brackets.
        let ends = behind + 1 == end || (behind < end && self.peek() == Token::Punct(b','));
        if !ends {
            return Err(self.error_here("`,` or `>` expected"));
        }
        self.reset(end);
        let rest = evenly_spaced(&self.expand_aliases(behind, end - 1)?);
        Ok(self.module.ty(TypeKind::Shaped { container, shape, element, rest }))
    }

    /// `3x128x64` with nothing after it.
    fn bare_shape(&mut self) -> Result<Shape> {
        let mut shape = Shape::new();
        self.back_to_token();
        loop {
            let rest = self.rest();
            let spaces = rest.len() - rest.trim_start().len();
            let digits = rest[spaces..].bytes().take_while(u8::is_ascii_digit).count();
            let text = &rest[spaces..spaces + digits];
            shape.push(text.parse().map_err(|_| self.error_here("an extent expected"))?);
            let more = rest.as_bytes().get(spaces + digits) == Some(&b'x');
            self.advance(spaces + digits + usize::from(more));
            if !more {
                return Ok(shape);
            }
        }
    }

    /// A layout or memory space within a type: `#alias` or `#dialect.name<...>`.
    fn layout_attr(&mut self) -> Result<Attr> {
        let at = self.position();
        let attr = self.parse_attr()?;
        match self.module.attr_kind(attr) {
            AttrKind::Encoding(_) => Ok(attr),
            AttrKind::Opaque(text) if text.starts_with('#') => Ok(attr),
            _ => Err(self.error_at(at, "a layout or memory space expected")),
        }
    }

    fn memdesc(&mut self) -> Result<Type> {
        self.expect_open_angle()?;
        let shape = self.shape()?;
        if shape.is_empty() {
            return Err(self.error_here("a buffer needs a dimension at least"));
        }
        let element = self.parse_type()?;
        self.expect(b',')?;
        let first = self.layout_attr()?;
        let (mut second, mut mutable, mut alloc_shape) = (None, false, None);
        while self.eat(b',') {
            match self.peek() {
                Token::Hash(_) if second.is_none() => second = Some(self.layout_attr()?),
                Token::Word("mutable") => {
                    self.next();
                    mutable = true;
                }
                Token::Integer(_) => alloc_shape = Some(self.bare_shape()?),
                _ => {
                    return Err(
                        self.error_here("`mutable`, a memory space or the allocation's shape expected")
                    );
                }
            }
        }
        self.expect(b'>')?;
        let (encoding, memory_space) = match second {
            Some(space) => (Some(first), space),
            None => (None, first),
        };
        let alloc_shape = alloc_shape.filter(|a| *a != shape);
        Ok(self.module.ty(TypeKind::MemDesc { shape, element, encoding, memory_space, mutable, alloc_shape }))
    }

    /// `t, t`
    pub(crate) fn type_list(&mut self) -> Result<Vec<Type>> {
        let mut types = vec![self.parse_type()?];
        while self.eat(b',') {
            types.push(self.parse_type()?);
        }
        Ok(types)
    }

    /// `t` or `(t, t)`
    pub(crate) fn result_type_list(&mut self) -> Result<Vec<Type>> {
        if self.peek() != Token::Punct(b'(') {
            return Ok(vec![self.parse_type()?]);
        }
        self.paren_type_list()
    }

    fn paren_type_list(&mut self) -> Result<Vec<Type>> {
        self.expect(b'(')?;
        if self.eat(b')') {
            return Ok(Vec::new());
        }
        let types = self.type_list()?;
        self.expect(b')')?;
        Ok(types)
    }

    /// `(t, t) -> t`
    pub(crate) fn function_type(&mut self) -> Result<(Vec<Type>, Vec<Type>)> {
        let inputs = self.paren_type_list()?;
        self.expect_arrow()?;
        Ok((inputs, self.result_type_list()?))
    }

    // ---- attributes -------------------------------------------------------------------------------------------

    /// An attribute.
    pub(crate) fn parse_attr(&mut self) -> Result<Attr> {
        let kind = self.nested(|p| p.attr_inner())?;
        Ok(self.module.attr(kind))
    }

    fn attr_inner(&mut self) -> Result<AttrKind> {
        Ok(match self.peek() {
            Token::Word("true") => {
                self.next();
                AttrKind::Bool(true)
            }
            Token::Word("false") => {
                self.next();
                AttrKind::Bool(false)
            }
            Token::Word("unit") => {
                self.next();
                AttrKind::Unit
            }
            Token::Word("dense") => self.dense()?,
            Token::Word("array") => self.typed_array()?,
            Token::Word("loc") => {
                // A location as an attribute is kept as text.
                let start = self.position();
                self.next();
                let end = self.skip_balanced()?;
                AttrKind::Opaque(self.expand_aliases(start, end)?)
            }
            Token::Word(
                "affine_map" | "affine_set" | "dense_resource" | "sparse" | "distinct" | "strided",
            ) => {
                let start = self.position();
                self.next();
                if let Token::Punct(b'[') = self.peek() {
                    self.skip_balanced()?;
                }
                let end = self.skip_balanced()?;
                AttrKind::Opaque(self.expand_aliases(start, end)?)
            }
            Token::Str(_) => {
                let s = self.parse_string()?;
                if self.eat(b':') {
                    self.parse_type()?;
                }
                AttrKind::Str(s)
            }
            Token::At(_) => AttrKind::Symbol(self.parse_symbol()?),
            Token::Punct(b'[') => {
                self.next();
                let mut items = Vec::new();
                while self.peek() != Token::Punct(b']') {
                    items.push(self.parse_attr()?);
                    if !self.eat(b',') {
                        break;
                    }
                }
                self.expect(b']')?;
                AttrKind::Array(items)
            }
            Token::Punct(b'{') => AttrKind::Dict(self.parse_dict()?),
            Token::Integer(_) | Token::Float(_) | Token::Punct(b'-') => {
                let number = self.raw_number()?;
                let ty = if self.eat(b':') { Some(self.parse_type()?) } else { None };
                self.typed_number(number, ty)?
            }
            Token::Hash(name) => {
                let start = self.position();
                if !name.contains('.') {
                    self.next();
                    return match self.use_alias(&format!("#{name}")) {
                        Some(Alias::Attr(attr)) => Ok(self.module.attr_kind(attr).clone()),
                        Some(_) => Err(self.error_at(start, format!("`#{name}` is not an attribute"))),
                        None => Err(self.error_at(start, format!("`#{name}` is not defined"))),
                    };
                }
                self.dialect_attr(name)?
            }
            _ => AttrKind::Type(self.parse_type()?),
        })
    }

    /// `{a = 1, b}`
    pub(crate) fn parse_dict(&mut self) -> Result<Vec<(Name, Attr)>> {
        self.expect(b'{')?;
        let mut items: Vec<(Name, Attr)> = Vec::new();
        while self.peek() != Token::Punct(b'}') {
            let at = self.position();
            let name = match self.peek() {
                Token::Str(_) => self.parse_string()?,
                Token::Word(w) => {
                    self.next();
                    w.to_string()
                }
                _ => return Err(self.error_here("the name of an attribute expected")),
            };
            let attr = if self.eat(b'=') { self.parse_attr()? } else { self.module.attr(AttrKind::Unit) };
            if items.iter().any(|(n, _)| *n == name) {
                return Err(self.error_at(at, format!("the attribute `{name}` is given twice")));
            }
            items.push((Name::Owned(name), attr));
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b'}')?;
        items.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(items)
    }

    /// A number's sign and digits.
    fn raw_number(&mut self) -> Result<(usize, bool, &'s str)> {
        let at = self.position();
        let negative = self.eat(b'-');
        match self.next() {
            Token::Integer(t) | Token::Float(t) => Ok((at, negative, t)),
            _ => Err(self.error_at(at, "a number expected")),
        }
    }

    /// A number of a type; without one, `i64` or `f64`.
    fn typed_number(
        &mut self,
        (at, negative, text): (usize, bool, &str),
        ty: Option<Type>,
    ) -> Result<AttrKind> {
        let is_float = text.contains('.');
        let ty = ty.unwrap_or(if is_float { Type::F64 } else { Type::I64 });
        match *self.module.type_kind(ty) {
            TypeKind::Float(kind) => {
                let value = if let Some(hex) = text.strip_prefix("0x") {
                    let bits = u64::from_str_radix(hex, 16)
                        .ok()
                        .filter(|b| kind.bits() == 64 || b >> kind.bits() == 0)
                        .ok_or_else(|| self.error_at(at, "too many bits for the type"))?;
                    float::from_bits(bits, kind)
                } else {
                    let value: f64 = text.parse().map_err(|_| self.error_at(at, "not a number"))?;
                    float::round(value, kind)
                };
                Ok(AttrKind::Float(FloatBits::new(if negative { -value } else { value }), ty))
            }
            TypeKind::Int(_) | TypeKind::Index if !is_float => {
                let bits = match self.module.type_kind(ty) {
                    TypeKind::Int(b) => u32::from(*b),
                    _ => 64,
                };
                let magnitude = match text.strip_prefix("0x") {
                    Some(hex) => i128::from_str_radix(hex, 16),
                    None => text.parse::<i128>(),
                };
                let value = magnitude.map(|v| if negative { -v } else { v });
                match value {
                    Ok(v) => match sign_extended(v, bits) {
                        Some(v) => Ok(AttrKind::Int(v, ty)),
                        None => Err(self.error_at(at, format!("the number does not fit in {bits} bits"))),
                    },
                    Err(_) => Err(self.error_at(at, "the number is too large")),
                }
            }
            _ => Err(self.error_at(at, "a number of this type is not possible")),
        }
    }

    /// `dense<...> : tensor<...>`
    fn dense(&mut self) -> Result<AttrKind> {
        self.next();
        self.expect_open_angle()?;
        let start = self.position();
        let mut items: Vec<(usize, bool, &'s str)> = Vec::new();
        let mut hex = false;
        let splat = match self.peek() {
            Token::Punct(b'[') => {
                self.dense_list(&mut items, 0)?;
                false
            }
            Token::Punct(b'>') => false,
            Token::Str(_) => {
                // MLIR's hexadecimal blob of elements.
                hex = true;
                self.next();
                false
            }
            _ => {
                let item = self.dense_item()?;
                items.push(item);
                true
            }
        };
        self.expect(b'>')?;
        self.expect(b':')?;
        let ty = self.parse_type()?;
        if hex {
            return Err(self.unsupported_at(start, "dense elements given as a hexadecimal string"));
        }
        if super::constants::static_shape(&self.module, ty).is_none() {
            return Err(self.unsupported_at(start, "dense elements of anything but a shape that is known"));
        }
        let element = self.module.element_type(ty);
        let mut attrs = Vec::with_capacity(items.len());
        for item in items {
            let kind = match item.2 {
                "true" | "false" if element == Type::I1 => {
                    AttrKind::Int(if item.2 == "true" { -1 } else { 0 }, Type::I1)
                }
                "true" | "false" => return Err(self.error_at(item.0, "a number expected")),
                _ => self.typed_number(item, Some(element))?,
            };
            attrs.push(self.module.attr(kind));
        }
        if splat {
            return Ok(AttrKind::Splat(attrs[0], ty));
        }
        let count = super::constants::element_count(&self.module, ty);
        if count != Some(attrs.len() as u64) {
            return Err(self.error_at(start, format!("{} elements do not fill the shape", attrs.len())));
        }
        Ok(AttrKind::Dense(attrs, ty))
    }

    fn dense_item(&mut self) -> Result<(usize, bool, &'s str)> {
        let at = self.position();
        match self.peek() {
            Token::Word(w @ ("true" | "false")) => {
                self.next();
                Ok((at, false, w))
            }
            _ => self.raw_number(),
        }
    }

    fn dense_list(&mut self, items: &mut Vec<(usize, bool, &'s str)>, depth: u32) -> Result<()> {
        if depth > 16 {
            return Err(self.error_here("too deeply nested"));
        }
        self.expect(b'[')?;
        while self.peek() != Token::Punct(b']') {
            if self.peek() == Token::Punct(b'[') {
                self.dense_list(items, depth + 1)?;
            } else {
                let item = self.dense_item()?;
                items.push(item);
            }
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b']')
    }

    /// `array<i32: 1, 0>`; arrays of other types are kept as text.
    fn typed_array(&mut self) -> Result<AttrKind> {
        let start = self.position();
        self.next();
        self.expect_open_angle()?;
        let wide = self.peek() == Token::Word("i64");
        if !wide && self.peek() != Token::Word("i32") {
            const OTHERS: [&str; 6] = ["i1", "i8", "i16", "f16", "f32", "f64"];
            let name = self.position();
            if !matches!(self.peek(), Token::Word(element) if OTHERS.contains(&element)) {
                return Err(self.error_at(name, "an array attribute has integers or floats of up to 64 bits"));
            }
            self.skip_to_close(name)?;
            let end = self.position();
            self.expect(b'>')?;
            return Ok(AttrKind::Opaque(self.text_between(start, end + 1).to_string()));
        }
        self.next();
        let list = |p: &mut Self| if p.eat(b':') { p.integers(b'>') } else { Ok(Vec::new()) };
        let items = list(self)?;
        self.expect(b'>')?;
        if wide {
            return Ok(AttrKind::I64Array(items));
        }
        let narrow: Option<Vec<i32>> = items.into_iter().map(|n| i32::try_from(n).ok()).collect();
        Ok(AttrKind::I32Array(narrow.ok_or_else(|| self.error_at(start, "the number is too large"))?))
    }

    /// Integers with commas between, up to a closing bracket.
    fn integers(&mut self, end: u8) -> Result<Vec<i64>> {
        let mut items = Vec::new();
        while self.peek() != Token::Punct(end) {
            items.push(self.parse_i64()?);
            if !self.eat(b',') {
                break;
            }
        }
        Ok(items)
    }

    /// `[1, 0]`
    pub(crate) fn i64_list(&mut self) -> Result<Vec<i64>> {
        self.expect(b'[')?;
        let items = self.integers(b']')?;
        self.expect(b']')?;
        Ok(items)
    }

    /// `[1, 0]`
    pub(crate) fn i32_list(&mut self) -> Result<Vec<i32>> {
        self.expect(b'[')?;
        let mut items = Vec::new();
        while self.peek() != Token::Punct(b']') {
            items.push(self.parse_i32()?);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b']')?;
        Ok(items)
    }

    pub(crate) fn parse_i32(&mut self) -> Result<i32> {
        let at = self.position();
        i32::try_from(self.parse_i64()?).map_err(|_| self.error_at(at, "the number is too large"))
    }

    pub(crate) fn parse_i64(&mut self) -> Result<i64> {
        let at = self.position();
        let number = self.raw_number()?;
        match self.typed_number(number, Some(Type::I64))? {
            AttrKind::Int(v, _) => Ok(v),
            _ => Err(self.error_at(at, "an integer expected")),
        }
    }

    pub(super) fn parse_u32(&mut self) -> Result<u32> {
        let at = self.position();
        u32::try_from(self.parse_i32()?).map_err(|_| self.error_at(at, "a number ≥ 0 expected"))
    }

    // ---- locations --------------------------------------------------------------------------------------------

    /// What stands between the parentheses of `loc(...)`.
    pub(crate) fn loc_body(&mut self) -> Result<Loc> {
        self.nested(|p| p.loc_inner())
    }

    fn loc_inner(&mut self) -> Result<Loc> {
        match self.peek() {
            Token::Hash(name) => {
                let at = self.position();
                self.next();
                match self.use_alias(&format!("#{name}")) {
                    Some(Alias::Loc(loc)) => Ok(loc),
                    _ => Err(self.error_at(at, format!("the location `#{name}` is not defined"))),
                }
            }
            Token::Word("unknown") => {
                self.next();
                Ok(Loc::UNKNOWN)
            }
            Token::Word("loc") => {
                self.next();
                self.expect(b'(')?;
                let loc = self.loc_body()?;
                self.expect(b')')?;
                Ok(loc)
            }
            Token::Word("callsite") => {
                self.next();
                self.expect(b'(')?;
                let callee = self.loc_body()?;
                match self.next() {
                    Token::Word("at") => {}
                    _ => return Err(self.error_here("`at` expected")),
                }
                let caller = self.loc_body()?;
                self.expect(b')')?;
                Ok(self.module.loc(LocKind::CallSite { callee, caller }))
            }
            Token::Word("fused") => {
                self.next();
                if self.peek() == Token::Punct(b'<') {
                    self.skip_balanced()?;
                }
                self.expect(b'[')?;
                let mut locs = Vec::new();
                while self.peek() != Token::Punct(b']') {
                    locs.push(self.loc_body()?);
                    if !self.eat(b',') {
                        break;
                    }
                }
                self.expect(b']')?;
                Ok(self.module.loc(LocKind::Fused(locs)))
            }
            Token::Str(_) => {
                let name = self.parse_string()?;
                if self.eat(b':') {
                    let line = self.parse_u32()?;
                    self.expect(b':')?;
                    let column = self.parse_u32()?;
                    // A range's end is not kept.
                    if self.peek() == Token::Word("to") {
                        self.next();
                        if self.peek() != Token::Punct(b':') {
                            self.parse_u32()?;
                        }
                        self.expect(b':')?;
                        self.parse_u32()?;
                    }
                    return Ok(self.module.loc(LocKind::File { file: name, line, column }));
                }
                let child = if self.eat(b'(') {
                    let child = self.loc_body()?;
                    self.expect(b')')?;
                    child
                } else {
                    Loc::UNKNOWN
                };
                Ok(self.module.loc(LocKind::Name(name, child)))
            }
            _ => Err(self.error_here("a location expected")),
        }
    }

    // ---- text of what is not modelled -------------------------------------------------------------------------

    /// The text between two positions with every `#alias` and `!alias` in it replaced by what it stands for, so that
    /// it means the same elsewhere.
    pub(super) fn expand_aliases(&mut self, start: usize, end: usize) -> Result<String> {
        let text = self.text_between(start, end);
        let mut out = String::with_capacity(text.len());
        let bytes = text.as_bytes();
        let mut i = 0;
        let mut in_string = false;
        let mut last = 0;
        while i < bytes.len() {
            match bytes[i] {
                b'\\' if in_string => i += 1,
                b'"' => in_string = !in_string,
                b'/' if !in_string && bytes.get(i + 1) == Some(&b'/') => {
                    return Err(self.unsupported_at(
                        start + i,
                        "a comment within an attribute or type of an unknown dialect",
                    ));
                }
                b'#' | b'!' if !in_string => {
                    let len = bytes[i + 1..]
                        .iter()
                        .take_while(|b| b.is_ascii_alphanumeric() || b"_.$".contains(b))
                        .count();
                    let name = &text[i..i + 1 + len];
                    if name[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                        && !name.contains('.')
                    {
                        let Some(alias) = self.use_alias(name) else {
                            return Err(self.error_at(start + i, format!("`{name}` is not defined")));
                        };
                        out.push_str(&text[last..i]);
                        match alias {
                            Alias::Attr(a) => out.push_str(&super::print_attr(&self.module, a)),
                            Alias::Type(t) => out.push_str(&super::print_type(&self.module, t)),
                            Alias::Loc(l) => Aliases::default().loc(&self.module, l, &mut out),
                        }
                        last = i + 1 + len;
                        self.add_weight(out.len(), start)?;
                    }
                    i += len;
                }
                _ => {}
            }
            i += 1;
        }
        out.push_str(&text[last..]);
        // One line: text is printed in the middle of lines. (Strings hold no line ends.)
        if out.contains(['\n', '\r']) {
            out = out.split(['\n', '\r']).map(str::trim).collect::<Vec<_>>().join(" ");
        }
        Ok(out)
    }
}

/// Text with one space behind commas and colons and none inside of brackets, so that the same text is the same type.
fn evenly_spaced(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_string = false;
    let mut space = false;
    for c in text.chars() {
        if in_string || !c.is_whitespace() {
            let closes = ",:)]><".contains(c) && !out.ends_with('-');
            if space && !closes && !out.ends_with(['<', '(', '[']) {
                out.push(' ');
            }
            out.push(c);
            in_string ^= c == '"';
            space = !in_string && ",:".contains(c);
        } else {
            space = true;
        }
    }
    // An offset of 0 is none.
    out.replace(", offset: 0>", ">")
}

/// `si8`, `ui8`, `f4E2M1FN`
fn is_other_number(name: &str) -> bool {
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let integer = name.strip_prefix("si").or_else(|| name.strip_prefix("ui"));
    let float = name.strip_prefix('f').and_then(|n| n.split_once('E')).filter(|(bits, _)| digits(bits));
    integer.is_some_and(digits)
        || float.is_some_and(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// The value held sign-extended from a width, if it fits signed or unsigned.
fn sign_extended(value: i128, bits: u32) -> Option<i64> {
    let bits = bits.min(64);
    if value < -(1i128 << (bits - 1)) || value >= 1i128 << bits {
        return None;
    }
    Some((((value as u64) << (64 - bits)) as i64) >> (64 - bits))
}
