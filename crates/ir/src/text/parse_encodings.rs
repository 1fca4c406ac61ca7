//! Parsing layout encodings. One with parameters that we do not model is kept as text, like any attribute of a dialect
//! that we do not model.

use std::sync::Arc;

use super::check_encodings;
use super::lexer::Token;
use super::parser::{Parser, Result};
use crate::attrs::AttrKind;
use crate::entity::Attr;
use crate::{Encoding, SharedKind};

/// A value in the `{...}` of an encoding.
enum Field {
    Int(u32),
    Bool(bool),
    List(Vec<u32>),
    Lists(Vec<Vec<u32>>),
    Attr(Attr),
}

/// Whether a parameter is what it is for a layout within one CTA, which says nothing.
fn is_default_of_one_cta(name: &str, field: &Field) -> bool {
    match (name, field) {
        ("CTAsPerCGA" | "CTASplitNum", Field::List(v)) => v.iter().all(|&x| x == 1),
        ("CTAOrder", _) => true,
        ("CGALayout", Field::Lists(v)) => v.is_empty(),
        ("CGALayout", Field::List(v)) => v.is_empty(),
        _ => false,
    }
}

/// The encodings of `ttg` that we model.
const KNOWN: [&str; 8] = [
    "blocked",
    "slice",
    "dot_op",
    "nvidia_mma",
    "swizzled_shared",
    "nvmma_shared",
    "linear",
    "padded_shared",
];

impl<'s> Parser<'s> {
    /// `#dialect.name<...>`: an encoding that we model, or text.
    pub(super) fn dialect_attr(&mut self, name: &str) -> Result<AttrKind> {
        let start = self.position();
        if let Some(encoding) = self.try_encoding(name)? {
            check_encodings::check(&encoding).map_err(|what| self.error_at(start, what))?;
            return Ok(AttrKind::Encoding(encoding));
        }
        // Read it again as text: an encoding with parameters that we do not model, or another attribute.
        self.reset(start);
        self.next();
        let end = self.skip_balanced()?;
        let text = self.expand_aliases(start, end)?;
        check_encodings::check_text(&text).map_err(|what| self.error_at(start, what))?;
        Ok(AttrKind::Opaque(text))
    }

    fn try_encoding(&mut self, name: &str) -> Result<Option<Encoding>> {
        let Some(name) = name.strip_prefix("ttg.") else { return Ok(None) };
        if !KNOWN.contains(&name) {
            return Ok(None);
        }
        self.next();
        if self.peek() != Token::Punct(b'<') {
            return Ok(None);
        }
        self.next();
        if name == "padded_shared" {
            return self.padded_shared();
        }
        let Some(mut fields) = self.encoding_fields()? else { return Ok(None) };
        if !self.eat(b'>') {
            return Ok(None);
        }
        fields.retain(|(name, field)| !is_default_of_one_cta(name, field));
        let of_warps = fields.iter().any(|(name, _)| *name == "sizePerWarp");
        let count = fields.len();
        let mut taken = 0;
        let mut take = |key: &str| {
            let at = fields.iter().position(|(n, _)| *n == key)?;
            taken += 1;
            Some(fields.swap_remove(at).1)
        };
        macro_rules! field {
            ($key:literal, bases) => {
                match take($key) {
                    Some(Field::Lists(v)) => v,
                    Some(Field::List(v)) if v.is_empty() => Vec::new(),
                    _ => return Ok(None),
                }
            };
            ($key:literal, parent) => {
                match take($key) {
                    Some(Field::Attr(a)) => match self.module.encoding_of(a) {
                        Some(e) => Arc::new(e.clone()),
                        None => return Ok(None),
                    },
                    _ => return Ok(None),
                }
            };
            ($key:literal, $kind:ident) => {
                match take($key) {
                    Some(Field::$kind(v)) => v,
                    _ => return Ok(None),
                }
            };
            ($key:literal, $kind:ident, $default:expr) => {
                match take($key) {
                    Some(Field::$kind(v)) => v,
                    None => $default,
                    _ => return Ok(None),
                }
            };
        }
        let encoding = match name {
            "blocked" if of_warps => Encoding::WarpBlocked {
                size_per_warp: field!("sizePerWarp", List),
                warps_per_cta: field!("warpsPerCTA", List),
                order: field!("order", List),
            },
            "blocked" => Encoding::Blocked {
                size_per_thread: field!("sizePerThread", List),
                threads_per_warp: field!("threadsPerWarp", List),
                warps_per_cta: field!("warpsPerCTA", List),
                order: field!("order", List),
            },
            "slice" => Encoding::Slice { dim: field!("dim", Int), parent: field!("parent", parent) },
            "dot_op" => Encoding::DotOperand {
                op_idx: field!("opIdx", Int),
                parent: field!("parent", parent),
                k_width: field!("kWidth", Int, 0),
            },
            "nvidia_mma" => Encoding::NvidiaMma {
                version_major: field!("versionMajor", Int),
                version_minor: field!("versionMinor", Int, 0),
                warps_per_cta: field!("warpsPerCTA", List),
                instr_shape: field!("instrShape", List),
            },
            "swizzled_shared" => Encoding::Shared(SharedKind::Swizzled {
                vec: field!("vec", Int),
                per_phase: field!("perPhase", Int),
                max_phase: field!("maxPhase", Int),
                order: field!("order", List),
            }),
            "nvmma_shared" => Encoding::Shared(SharedKind::NvmmaShared {
                swizzle_bytes: field!("swizzlingByteWidth", Int),
                transposed: field!("transposed", Bool),
                element_bits: field!("elementBitWidth", Int),
                rank: field!("rank", Int, 2),
            }),
            _ => Encoding::Linear {
                register: field!("register", bases),
                lane: field!("lane", bases),
                warp: field!("warp", bases),
                block: field!("block", bases),
            },
        };
        // A parameter that is left is one that we do not model.
        Ok((taken == count).then_some(encoding))
    }

    /// `[interval:+pad, ...] {order = [...]}>`; `None` with several paddings, or spread over CTAs.
    fn padded_shared(&mut self) -> Result<Option<Encoding>> {
        let at = self.position();
        if !self.eat(b'[') {
            return Ok(None);
        }
        let mut pairs = Vec::new();
        loop {
            let interval = self.parse_u32()?;
            self.expect(b':')?;
            self.expect(b'+')?;
            pairs.push((interval, self.parse_u32()?));
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b']')?;
        check_encodings::padding(&pairs).map_err(|what| self.error_at(at, what))?;
        if self.peek() == Token::Punct(b'>') {
            return Err(self.error_here("a padded layout needs an `order`"));
        }
        let Some(mut fields) = self.encoding_fields()? else { return Ok(None) };
        let known = ["order", "offset", "block", "CTAsPerCGA", "CTASplitNum", "CTAOrder", "CGALayout"];
        if let Some((name, _)) = fields.iter().find(|(name, _)| !known.contains(name)) {
            return Err(self.error_at(at, format!("`{name}` is no parameter of a padded layout")));
        }
        let length = |fields: &[(&str, Field)], wanted: &str| {
            fields.iter().find_map(|(name, f)| match f {
                Field::List(v) if *name == wanted => Some(v.len()),
                _ => None,
            })
        };
        if let (Some(order), Some(ctas)) = (length(&fields, "order"), length(&fields, "CTAsPerCGA"))
            && order != ctas
        {
            return Err(self.error_at(at, format!("`order` has {order} dimensions, and `CTAsPerCGA` {ctas}")));
        }
        fields.retain(|(name, field)| !is_default_of_one_cta(name, field));
        if !self.eat(b'>') || fields.len() != 1 {
            return Ok(None);
        }
        match (fields.pop(), pairs.as_slice()) {
            (Some(("order", Field::List(order))), &[(interval, pad)]) => {
                Ok(Some(Encoding::Shared(SharedKind::Padded { interval, pad, order })))
            }
            _ => Ok(None),
        }
    }

    /// `{name = value, ...}`; `None` where it is not of that form.
    fn encoding_fields(&mut self) -> Result<Option<Vec<(&'s str, Field)>>> {
        if !self.eat(b'{') {
            return Ok(None);
        }
        let mut fields = Vec::new();
        while let Token::Word(name) = self.peek() {
            self.next();
            if !self.eat(b'=') {
                return Ok(None);
            }
            let field = match self.peek() {
                Token::Integer(_) => Field::Int(self.parse_u32()?),
                Token::Word("true") => {
                    self.next();
                    Field::Bool(true)
                }
                Token::Word("false") => {
                    self.next();
                    Field::Bool(false)
                }
                Token::Punct(b'[') => {
                    self.next();
                    if self.peek() == Token::Punct(b'[') {
                        let mut lists = Vec::new();
                        loop {
                            if !self.eat(b'[') {
                                return Ok(None);
                            }
                            lists.push(self.u32_items()?);
                            if !self.eat(b',') {
                                break;
                            }
                        }
                        self.expect(b']')?;
                        Field::Lists(lists)
                    } else {
                        Field::List(self.u32_items()?)
                    }
                }
                Token::Hash(_) => Field::Attr(self.parse_attr()?),
                _ => return Ok(None),
            };
            fields.push((name, field));
            if !self.eat(b',') {
                break;
            }
        }
        Ok(self.eat(b'}').then_some(fields))
    }

    /// `1, 0]`
    fn u32_items(&mut self) -> Result<Vec<u32>> {
        let mut items = Vec::new();
        while self.peek() != Token::Punct(b']') {
            items.push(self.parse_u32()?);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b']')?;
        Ok(items)
    }
}
