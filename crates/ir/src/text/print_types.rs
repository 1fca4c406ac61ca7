//! Printing types, attributes and locations, and choosing the `#alias` names that stand for them.

use std::fmt::Write;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::attrs::AttrKind;
use crate::dialect::scf;
use crate::entity::{Attr, Loc, Op, Type};
use crate::float;
use crate::module::{LocKind, Module};
use crate::opdef::Opcode;
use crate::types::{FloatKind, TypeKind};
use crate::{Encoding, SharedKind};

/// The aliases of a module: `#blocked`, `#mma`, `#shared`, `#smem`, `#linear` for encodings, `#loc` for locations.
#[derive(Debug, Default)]
pub(crate) struct Aliases {
    encodings: FxHashMap<Encoding, String>,
    opaque: FxHashMap<String, String>,
    locs: FxHashMap<Loc, String>,
    /// Definitions in order, names without `#`.
    encoding_order: Vec<Encoding>,
    opaque_order: Vec<String>,
    loc_order: Vec<Loc>,
}

fn encoding_alias(encoding: &Encoding) -> Option<&'static str> {
    match encoding {
        Encoding::Blocked { .. } | Encoding::WarpBlocked { .. } => Some("blocked"),
        Encoding::NvidiaMma { .. } => Some("mma"),
        Encoding::Shared(_) => Some("shared"),
        Encoding::Linear { .. } => Some("linear"),
        Encoding::Slice { .. } | Encoding::DotOperand { .. } => None,
    }
}

fn opaque_alias(text: &str) -> Option<&'static str> {
    match text {
        "#ttg.shared_memory" => Some("smem"),
        "#ttng.tensor_memory" => Some("tmem"),
        _ => None,
    }
}

#[derive(Default)]
struct Collector {
    types: FxHashSet<Type>,
    attrs: FxHashSet<Attr>,
    encodings: Vec<(usize, &'static str, Encoding)>,
    seen_encodings: FxHashMap<Encoding, usize>,
    opaque: Vec<(&'static str, String)>,
    locs: Vec<(usize, Loc)>,
    seen_locs: FxHashMap<Loc, usize>,
}

impl Collector {
    fn ty(&mut self, m: &Module, ty: Type) {
        if !self.types.insert(ty) {
            return;
        }
        match m.type_kind(ty) {
            TypeKind::Ptr { pointee, .. } => self.ty(m, *pointee),
            TypeKind::Tensor { element, encoding, .. } => {
                self.ty(m, *element);
                if let Some(e) = encoding {
                    self.attr(m, *e);
                }
            }
            TypeKind::MemDesc { element, encoding, memory_space, .. } => {
                self.ty(m, *element);
                if let Some(e) = encoding {
                    self.attr(m, *e);
                }
                self.attr(m, *memory_space);
            }
            TypeKind::TensorDesc { block } => self.ty(m, *block),
            TypeKind::Function { inputs, results } => {
                for &t in inputs.iter().chain(results) {
                    self.ty(m, t);
                }
            }
            TypeKind::Shaped { element, .. } => self.ty(m, *element),
            TypeKind::Int(_)
            | TypeKind::Float(_)
            | TypeKind::Index
            | TypeKind::AsyncToken
            | TypeKind::Ring
            | TypeKind::Opaque(_) => {}
        }
    }

    fn attr(&mut self, m: &Module, attr: Attr) {
        if !self.attrs.insert(attr) {
            return;
        }
        match m.attr_kind(attr) {
            AttrKind::Type(t) => self.ty(m, *t),
            AttrKind::Int(_, t) | AttrKind::Float(_, t) => self.ty(m, *t),
            AttrKind::Splat(a, t) => {
                self.attr(m, *a);
                self.ty(m, *t);
            }
            AttrKind::Dense(_, t) => self.ty(m, *t),
            AttrKind::Array(items) => {
                for &a in items {
                    self.attr(m, a);
                }
            }
            AttrKind::Dict(items) => {
                for (_, a) in items {
                    self.attr(m, *a);
                }
            }
            AttrKind::Encoding(e) => {
                self.encoding(e);
            }
            AttrKind::Opaque(text) => {
                if let Some(alias) = opaque_alias(text) {
                    self.opaque.push((alias, text.clone()));
                }
            }
            AttrKind::Unit
            | AttrKind::Bool(_)
            | AttrKind::Str(_)
            | AttrKind::Symbol(_)
            | AttrKind::I32Array(_)
            | AttrKind::I64Array(_)
            | AttrKind::Keyword(_) => {}
        }
    }

    /// Returns the depth of nesting: what is nested is defined first.
    fn encoding(&mut self, encoding: &Encoding) -> usize {
        if let Some(&depth) = self.seen_encodings.get(encoding) {
            return depth;
        }
        let depth = match encoding {
            Encoding::Slice { parent, .. } | Encoding::DotOperand { parent, .. } => self.encoding(parent) + 1,
            _ => 0,
        };
        self.seen_encodings.insert(encoding.clone(), depth);
        if let Some(alias) = encoding_alias(encoding) {
            self.encodings.push((depth, alias, encoding.clone()));
        }
        depth
    }

    fn loc(&mut self, m: &Module, loc: Loc) -> usize {
        if let Some(&depth) = self.seen_locs.get(&loc) {
            return depth;
        }
        let depth = match m.loc_kind(loc) {
            LocKind::Unknown | LocKind::File { .. } => 0,
            LocKind::Name(_, child) => {
                if *child == Loc::UNKNOWN {
                    0
                } else {
                    self.loc(m, *child) + 1
                }
            }
            LocKind::CallSite { callee, caller } => self.loc(m, *callee).max(self.loc(m, *caller)) + 1,
            LocKind::Fused(locs) => locs.iter().map(|&l| self.loc(m, l) + 1).max().unwrap_or(0),
        };
        self.seen_locs.insert(loc, depth);
        self.locs.push((depth, loc));
        depth
    }
}

impl Aliases {
    /// The aliases for what an operation and everything in it mentions.
    pub(crate) fn collect(module: &Module, op: Op, locations: bool) -> Self {
        let mut c = Collector::default();
        module.walk(op, &mut |o| {
            for &region in module.regions(o) {
                for &block in module.region_blocks(region) {
                    for &arg in module.block_args(block) {
                        c.ty(module, module.value_type(arg));
                    }
                }
            }
            for &result in module.results(o) {
                c.ty(module, module.value_type(result));
            }
            for (_, attr) in module.op_attrs(o) {
                c.attr(module, *attr);
            }
            if locations && !is_silent(module, o) {
                c.loc(module, module.op_loc(o));
            }
        });
        let mut aliases = Aliases::default();
        let mut counts: FxHashMap<&'static str, usize> = FxHashMap::default();
        let mut fresh = |base: &'static str| {
            let n = counts.entry(base).or_default();
            *n += 1;
            if *n == 1 { base.to_string() } else { format!("{base}{}", *n - 1) }
        };
        c.encodings.sort_by_key(|a| (a.0, a.1));
        for (_, base, encoding) in c.encodings {
            aliases.encodings.insert(encoding.clone(), fresh(base));
            aliases.encoding_order.push(encoding);
        }
        for (base, text) in c.opaque {
            aliases.opaque.insert(text.clone(), fresh(base));
            aliases.opaque_order.push(text);
        }
        c.locs.sort_by_key(|l| l.0);
        for (_, loc) in c.locs {
            aliases.locs.insert(loc, fresh("loc"));
            aliases.loc_order.push(loc);
        }
        aliases
    }

    /// The definitions that stand before the module.
    pub(crate) fn write_attr_definitions(&self, out: &mut String) {
        for encoding in &self.encoding_order {
            let _ = write!(out, "#{} = ", self.encodings[encoding]);
            self.encoding_body(encoding, out);
            out.push('\n');
        }
        for text in &self.opaque_order {
            let _ = writeln!(out, "#{} = {text}", self.opaque[text]);
        }
    }

    /// The definitions that stand after the module.
    pub(crate) fn write_loc_definitions(&self, m: &Module, out: &mut String) {
        for &loc in &self.loc_order {
            let _ = write!(out, "#{} = loc(", self.locs[&loc]);
            self.loc_body(m, loc, out);
            out.push_str(")\n");
        }
    }

    /// `loc(...)`
    pub(crate) fn loc(&self, m: &Module, loc: Loc, out: &mut String) {
        out.push_str("loc(");
        self.inner_loc(m, loc, out);
        out.push(')');
    }

    fn inner_loc(&self, m: &Module, loc: Loc, out: &mut String) {
        match self.locs.get(&loc) {
            Some(alias) => {
                out.push('#');
                out.push_str(alias);
            }
            None => self.loc_body(m, loc, out),
        }
    }

    fn loc_body(&self, m: &Module, loc: Loc, out: &mut String) {
        match m.loc_kind(loc) {
            LocKind::Unknown => out.push_str("unknown"),
            LocKind::File { file, line, column } => {
                string(file, out);
                let _ = write!(out, ":{line}:{column}");
            }
            LocKind::Name(name, child) => {
                string(name, out);
                if *child != Loc::UNKNOWN {
                    out.push('(');
                    self.inner_loc(m, *child, out);
                    out.push(')');
                }
            }
            LocKind::CallSite { callee, caller } => {
                out.push_str("callsite(");
                self.inner_loc(m, *callee, out);
                out.push_str(" at ");
                self.inner_loc(m, *caller, out);
                out.push(')');
            }
            LocKind::Fused(locs) => {
                out.push_str("fused[");
                for (i, &l) in locs.iter().enumerate() {
                    if i > 0 {
                        out.push_str(", ");
                    }
                    self.inner_loc(m, l, out);
                }
                out.push(']');
            }
        }
    }

    /// A type.
    pub(crate) fn ty(&self, m: &Module, ty: Type, out: &mut String) {
        let dims = |shape: &[u32], out: &mut String| {
            for d in shape {
                let _ = write!(out, "{d}x");
            }
        };
        match m.type_kind(ty) {
            TypeKind::Int(bits) => {
                let _ = write!(out, "i{bits}");
            }
            TypeKind::Float(kind) => out.push_str(kind.name()),
            TypeKind::Index => out.push_str("index"),
            TypeKind::Ptr { pointee, address_space } => {
                out.push_str("!tt.ptr<");
                self.ty(m, *pointee, out);
                if *address_space != 1 {
                    let _ = write!(out, ", {address_space}");
                }
                out.push('>');
            }
            TypeKind::Tensor { shape, element, encoding } => {
                out.push_str("tensor<");
                dims(shape, out);
                self.ty(m, *element, out);
                if let Some(e) = encoding {
                    out.push_str(", ");
                    self.attr(m, *e, out);
                }
                out.push('>');
            }
            TypeKind::MemDesc { shape, element, encoding, memory_space, mutable, alloc_shape } => {
                out.push_str("!ttg.memdesc<");
                dims(shape, out);
                self.ty(m, *element, out);
                if let Some(e) = encoding {
                    out.push_str(", ");
                    self.attr(m, *e, out);
                }
                out.push_str(", ");
                self.attr(m, *memory_space, out);
                if *mutable {
                    out.push_str(", mutable");
                }
                if let Some(alloc) = alloc_shape {
                    out.push_str(", ");
                    dims(alloc, out);
                    out.pop();
                }
                out.push('>');
            }
            TypeKind::AsyncToken => out.push_str("!ttg.async.token"),
            TypeKind::Ring => out.push_str("!ttg.ring"),
            TypeKind::TensorDesc { block } => {
                out.push_str("!tt.tensordesc<");
                self.ty(m, *block, out);
                out.push('>');
            }
            TypeKind::Function { inputs, results } => {
                out.push('(');
                self.types(m, inputs, out);
                out.push_str(") -> ");
                self.result_types(m, results, out);
            }
            TypeKind::Shaped { container, shape, element, rest } => {
                out.push_str(container.name());
                out.push('<');
                for extent in shape {
                    match extent {
                        Some(n) => write!(out, "{n}x"),
                        None => write!(out, "?x"),
                    }
                    .expect("a string takes text");
                }
                self.ty(m, *element, out);
                out.push_str(rest);
                out.push('>');
            }
            TypeKind::Opaque(text) => out.push_str(text),
        }
    }

    /// Types with commas between.
    pub(crate) fn types(&self, m: &Module, types: &[Type], out: &mut String) {
        for (i, &t) in types.iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            self.ty(m, t, out);
        }
    }

    /// What stands after the arrow: one type bare, others in parentheses.
    pub(crate) fn result_types(&self, m: &Module, types: &[Type], out: &mut String) {
        match types {
            [t] if !matches!(m.type_kind(*t), TypeKind::Function { .. }) => self.ty(m, *t, out),
            _ => {
                out.push('(');
                self.types(m, types, out);
                out.push(')');
            }
        }
    }

    /// An attribute with its type.
    pub(crate) fn attr(&self, m: &Module, attr: Attr, out: &mut String) {
        match m.attr_kind(attr) {
            AttrKind::Unit => out.push_str("unit"),
            AttrKind::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
            AttrKind::Int(_, Type::I1) => self.number(m, attr, out),
            AttrKind::Int(_, ty) | AttrKind::Float(_, ty) => {
                self.number(m, attr, out);
                out.push_str(" : ");
                self.ty(m, *ty, out);
            }
            AttrKind::Str(s) => string(s, out),
            AttrKind::Symbol(s) => symbol(s, out),
            AttrKind::Type(t) => self.ty(m, *t, out),
            AttrKind::Array(items) => {
                out.push('[');
                for (i, &a) in items.iter().enumerate() {
                    if i > 0 {
                        out.push_str(", ");
                    }
                    self.attr(m, a, out);
                }
                out.push(']');
            }
            AttrKind::Dict(items) => self.dict(m, items.iter().map(|(n, a)| (n.as_ref(), *a)), out),
            AttrKind::I32Array(items) => typed_array("i32", items, out),
            AttrKind::I64Array(items) => typed_array("i64", items, out),
            AttrKind::Splat(value, ty) => {
                out.push_str("dense<");
                self.number(m, *value, out);
                out.push_str("> : ");
                self.ty(m, *ty, out);
            }
            AttrKind::Dense(values, ty) => {
                out.push_str("dense<");
                match super::constants::static_shape(m, *ty) {
                    // An empty list has no rows to nest.
                    Some(shape) if shape.iter().map(|&d| d as usize).product::<usize>() == values.len() => {
                        self.dense(m, values, &shape, out);
                    }
                    _ => self.dense(m, values, &[values.len() as u32], out),
                }
                out.push_str("> : ");
                self.ty(m, *ty, out);
            }
            AttrKind::Encoding(e) => self.encoding(e, out),
            AttrKind::Keyword(k) => string(k, out),
            AttrKind::Opaque(text) => match self.opaque.get(text) {
                Some(alias) => {
                    out.push('#');
                    out.push_str(alias);
                }
                None => out.push_str(text),
            },
        }
    }

    fn dense(&self, m: &Module, values: &[Attr], shape: &[u32], out: &mut String) {
        match shape {
            [] => {
                if let Some(&v) = values.first() {
                    self.number(m, v, out);
                }
            }
            [n, rest @ ..] => {
                out.push('[');
                let step = values.len() / (*n).max(1) as usize;
                for i in 0..*n as usize {
                    if i > 0 {
                        out.push_str(", ");
                    }
                    self.dense(m, &values[i * step..(i + 1) * step], rest, out);
                }
                out.push(']');
            }
        }
    }

    /// A number without its type.
    pub(crate) fn number(&self, m: &Module, attr: Attr, out: &mut String) {
        match m.attr_kind(attr) {
            AttrKind::Int(v, Type::I1) => out.push_str(if *v != 0 { "true" } else { "false" }),
            AttrKind::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
            AttrKind::Int(v, _) => {
                let _ = write!(out, "{v}");
            }
            AttrKind::Float(v, ty) => match m.type_kind(*ty) {
                TypeKind::Float(kind) => float_text(v.value(), *kind, out),
                _ => float_text(v.value(), FloatKind::F64, out),
            },
            _ => self.attr(m, attr, out),
        }
    }

    /// `{a = 1, b}`, in the order given.
    pub(crate) fn dict<'a>(
        &self,
        m: &Module,
        items: impl Iterator<Item = (&'a str, Attr)>,
        out: &mut String,
    ) {
        out.push('{');
        for (i, (name, attr)) in items.enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            key(name, out);
            if *m.attr_kind(attr) != AttrKind::Unit {
                out.push_str(" = ");
                self.attr(m, attr, out);
            }
        }
        out.push('}');
    }

    fn encoding(&self, encoding: &Encoding, out: &mut String) {
        match self.encodings.get(encoding) {
            Some(alias) => {
                out.push('#');
                out.push_str(alias);
            }
            None => self.encoding_body(encoding, out),
        }
    }

    fn encoding_body(&self, encoding: &Encoding, out: &mut String) {
        let _ = match encoding {
            Encoding::Blocked { size_per_thread, threads_per_warp, warps_per_cta, order } => write!(
                out,
                "#ttg.blocked<{{sizePerThread = {size_per_thread:?}, threadsPerWarp = {threads_per_warp:?}, \
                 warpsPerCTA = {warps_per_cta:?}, order = {order:?}}}>"
            ),
            Encoding::WarpBlocked { size_per_warp, warps_per_cta, order } => write!(
                out,
                "#ttg.blocked<{{sizePerWarp = {size_per_warp:?}, warpsPerCTA = {warps_per_cta:?}, order = {order:?}}}>"
            ),
            Encoding::Slice { dim, parent } => {
                let _ = write!(out, "#ttg.slice<{{dim = {dim}, parent = ");
                self.encoding(parent, out);
                write!(out, "}}>")
            }
            Encoding::DotOperand { op_idx, parent, k_width } => {
                let _ = write!(out, "#ttg.dot_op<{{opIdx = {op_idx}, parent = ");
                self.encoding(parent, out);
                if *k_width != 0 {
                    let _ = write!(out, ", kWidth = {k_width}");
                }
                write!(out, "}}>")
            }
            Encoding::NvidiaMma { version_major, version_minor, warps_per_cta, instr_shape } => write!(
                out,
                "#ttg.nvidia_mma<{{versionMajor = {version_major}, versionMinor = {version_minor}, \
                 warpsPerCTA = {warps_per_cta:?}, instrShape = {instr_shape:?}}}>"
            ),
            Encoding::Shared(SharedKind::Swizzled { vec, per_phase, max_phase, order }) => write!(
                out,
                "#ttg.swizzled_shared<{{vec = {vec}, perPhase = {per_phase}, maxPhase = {max_phase}, \
                 order = {order:?}}}>"
            ),
            Encoding::Shared(SharedKind::NvmmaShared { swizzle_bytes, transposed, element_bits, rank }) => {
                let _ = write!(
                    out,
                    "#ttg.nvmma_shared<{{swizzlingByteWidth = {swizzle_bytes}, transposed = {transposed}, \
                     elementBitWidth = {element_bits}"
                );
                if *rank != 2 {
                    let _ = write!(out, ", rank = {rank}");
                }
                write!(out, "}}>")
            }
            Encoding::Shared(SharedKind::Padded { interval, pad, order }) => {
                write!(out, "#ttg.padded_shared<[{interval}:+{pad}] {{order = {order:?}}}>")
            }
            Encoding::Linear { register, lane, warp, block } => write!(
                out,
                "#ttg.linear<{{register = {register:?}, lane = {lane:?}, warp = {warp:?}, block = {block:?}}}>"
            ),
        };
    }
}

/// `array<i32: 1, 0>`
fn typed_array(element: &str, items: &[impl std::fmt::Display], out: &mut String) {
    let _ = write!(out, "array<{element}");
    for (i, v) in items.iter().enumerate() {
        let _ = write!(out, "{}{v}", if i == 0 { ": " } else { ", " });
    }
    out.push('>');
}

/// A quoted string; what is not printable ASCII is escaped byte by byte.
pub(crate) fn string(s: &str, out: &mut String) {
    out.push('"');
    for &b in s.as_bytes() {
        match b {
            b'\\' => out.push_str("\\\\"),
            b'"' => out.push_str("\\22"),
            b' '..=b'~' => out.push(b as char),
            _ => {
                let _ = write!(out, "\\{b:02X}");
            }
        }
    }
    out.push('"');
}

fn is_bare(s: &str) -> bool {
    let mut bytes = s.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.' || b == b'$')
}

/// `@name`, quoted where it must be.
pub(crate) fn symbol(s: &str, out: &mut String) {
    out.push('@');
    if is_bare(s) { out.push_str(s) } else { string(s, out) }
}

/// The name of an attribute, quoted where it must be.
fn key(s: &str, out: &mut String) {
    if is_bare(s) { out.push_str(s) } else { string(s, out) }
}

/// A float as MLIR prints it: `1.000000e+00` where that is exact, else enough digits to tell it from its neighbours,
/// else (infinities, NaN, large integers) its bits in hexadecimal.
pub(crate) fn float_text(value: f64, kind: FloatKind, out: &mut String) {
    let exact = |text: &str| {
        let parsed: f64 = text.parse().expect("formatted as a number");
        float::round(parsed, kind).to_bits() == value.to_bits()
    };
    if value.is_finite() {
        let short = scientific(value);
        if exact(&short) {
            out.push_str(&short);
            return;
        }
        if let Some(text) = decimal(value, float::decimal_digits(kind))
            && exact(&text)
        {
            out.push_str(&text);
            return;
        }
    }
    let width = kind.bits() as usize / 4;
    let _ = write!(out, "0x{:0width$X}", float::to_bits(value, kind));
}

/// At most `precision` significant digits and the power of ten that they are multiplied by, as LLVM's
/// `APFloat::toString` finds them: the exact digits are cut off to a length estimated from the number of bits, and only
/// what is then still too long is rounded. (So 1e-5 as f32, 9.99999974…e-6, does not become 1.00000e-5.)
fn significant_digits(value: f64, precision: usize) -> (String, i32) {
    let bits = value.to_bits();
    let field = (bits >> 52 & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    let (mut mantissa, mut exponent) =
        if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
    if mantissa == 0 {
        return ("0".to_string(), 0);
    }
    exponent += mantissa.trailing_zeros() as i32;
    mantissa >>= mantissa.trailing_zeros();
    let (mut digits, mut scale, width) = if exponent < 0 {
        // mantissa · 2^exponent = (mantissa · 5^-exponent) · 10^exponent, which has 767 digits at most.
        let text = format!("{:.800e}", value.abs());
        let digits: String = text.chars().take_while(|&c| c != 'e').filter(char::is_ascii_digit).collect();
        let width = (mantissa as f64).log2() + f64::from(-exponent) * 5f64.log2();
        (digits.trim_end_matches('0').to_string(), exponent, width as usize + 1)
    } else {
        (format!("{}", value.abs()), 0, (64 - mantissa.leading_zeros() as i32 + exponent) as usize)
    };
    let required = (precision * 196).div_ceil(59);
    let removable = width.saturating_sub(required) * 59 / 196;
    digits.truncate(digits.len().saturating_sub(removable).max(1));
    scale += removable as i32;
    let trim = |digits: &mut String, scale: &mut i32| {
        let kept = digits.trim_end_matches('0').len().max(1);
        *scale += (digits.len() - kept) as i32;
        digits.truncate(kept);
    };
    trim(&mut digits, &mut scale);
    if digits.len() > precision {
        scale += (digits.len() - precision) as i32;
        let up = digits.as_bytes()[precision] >= b'5';
        digits.truncate(precision);
        if up {
            let kept = digits.trim_end_matches('9').len();
            scale += (digits.len() - kept) as i32;
            digits.truncate(kept);
            match digits.pop() {
                Some(c) => digits.push((c as u8 + 1) as char),
                None => digits.push('1'),
            }
        } else {
            trim(&mut digits, &mut scale);
        }
    }
    (digits, scale)
}

/// `d.dddddde+XX`
fn scientific(value: f64) -> String {
    let (digits, scale) = significant_digits(value, 6);
    let exponent = scale + digits.len() as i32 - 1;
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let (first, rest) = digits.split_at(1);
    let exponent_sign = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{first}.{rest:0<6}e{exponent_sign}{:02}", exponent.abs())
}

/// The shorter of positional and `d.dddE-X` notation for the given number of significant digits, by the rule of LLVM's
/// `APFloat::toString`; `None` for an integer in positional notation, which would not read as a float.
fn decimal(value: f64, precision: usize) -> Option<String> {
    let (digits, scale) = significant_digits(value, precision);
    let exponent = scale + digits.len() as i32 - 1;
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let e_notation = || {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        format!("{sign}{first}.{rest}E{exponent:+}")
    };
    if scale >= 0 {
        return (scale > 3 || digits.len() + scale as usize > precision).then(e_notation);
    }
    if exponent >= 0 {
        let (whole, fraction) = digits.split_at(exponent as usize + 1);
        return Some(format!("{sign}{whole}.{fraction}"));
    }
    if -exponent > 3 {
        return Some(e_notation());
    }
    Some(format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize)))
}

/// Whether an operation is a `scf.yield` of nothing that its parent's syntax implies.
pub(crate) fn is_silent(m: &Module, op: Op) -> bool {
    scf::Yield::cast(m, op).is_some()
        && m.operands(op).is_empty()
        && m.op_attrs(op).is_empty()
        && m.next_op(op).is_none()
        && m.parent_op(op).is_some_and(|parent| {
            m.results(parent).is_empty()
                && matches!(m.opcode(parent), Some(Opcode::Scf(scf::Kind::For | scf::Kind::If)))
        })
}
