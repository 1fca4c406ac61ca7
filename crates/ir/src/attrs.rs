//! Attributes. An [`Attr`] is a `Copy` reference to a uniqued [`AttrKind`].

use std::borrow::Cow;

use tilewright_layout::Encoding;

use crate::entity::{Attr, Type};
use crate::module::Module;

/// The name of an attribute on an operation; declared attributes borrow their name from the declaration.
pub type Name = Cow<'static, str>;

/// A `f64` compared and hashed by its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FloatBits(pub u64);

impl FloatBits {
    /// From a value.
    pub fn new(value: f64) -> Self {
        FloatBits(value.to_bits())
    }
    /// The value.
    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// What an [`Attr`] is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AttrKind {
    /// `unit`: presence is the information.
    Unit,
    /// `true` or `false`
    Bool(bool),
    /// `42 : i32`. For `i1` the value is 0 or -1 (sign-extended), as for every width.
    Int(i64, Type),
    /// `1.0 : f32`; the value is held in double precision (exact for every narrower format).
    Float(FloatBits, Type),
    /// `"text"`
    Str(String),
    /// `@name`
    Symbol(String),
    /// A type.
    Type(Type),
    /// `[a, b]`
    Array(Vec<Attr>),
    /// `{a = 1, b}`, sorted by name.
    Dict(Vec<(Name, Attr)>),
    /// `array<i32: 1, 0>`
    I32Array(Vec<i32>),
    /// `array<i64: 1, 0>`
    I64Array(Vec<i64>),
    /// `dense<value> : tensor<...>` with the same [`Int`](AttrKind::Int) or [`Float`](AttrKind::Float) in each element.
    Splat(Attr, Type),
    /// `dense<[...]> : tensor<...>`, one attribute per element in row-major order.
    Dense(Vec<Attr>, Type),
    /// A layout encoding (`#ttg.blocked<...>`).
    Encoding(Encoding),
    /// An alternative of an enumeration declared by [`attr_enum!`](crate::attr_enum): its keyword.
    Keyword(&'static str),
    /// An attribute of a dialect that we do not model, kept as its text (`#foo.bar<...>`); also open enumerations such
    /// as memory spaces (`#ttg.shared_memory`).
    Opaque(String),
}

/// `name = [1, 2]` in the text of a layout that is not modelled.
pub(crate) fn text_list(text: &str, name: &str) -> Option<Vec<u32>> {
    let rest = text.split_once(name)?.1.trim_start().strip_prefix('=')?.trim_start().strip_prefix('[')?;
    rest.split_once(']')?.0.split(',').map(|n| n.trim().parse().ok()).collect()
}

/// A Rust type that is stored as an attribute.
pub trait AttrValue: Sized {
    /// Reads the attribute; `None` where it is absent or of another kind (the verifier reports that).
    fn read(module: &Module, attr: Option<Attr>) -> Option<Self>;
    /// The attribute to store; `None` where the value is said by absence.
    fn store(self, module: &mut Module) -> Option<Attr>;
    /// Whether the attribute may be absent.
    const OPTIONAL: bool = false;
    /// The keywords of an enumeration; empty for everything else.
    const ENUM_KEYWORDS: &'static [&'static str] = &[];
    /// The keyword that is said by absence, if one is.
    const ENUM_DEFAULT: Option<&'static str> = None;
    /// The name of an attribute that is written `<...>` where its operation says which it is, and `#name<...>` elsewhere.
    const MNEMONIC: &'static str = "";
}

impl AttrValue for bool {
    const OPTIONAL: bool = true;
    fn read(module: &Module, attr: Option<Attr>) -> Option<Self> {
        match attr.map(|a| module.attr_kind(a)) {
            None => Some(false),
            Some(AttrKind::Bool(b)) => Some(*b),
            Some(AttrKind::Unit) => Some(true),
            Some(AttrKind::Int(v, _)) => Some(*v != 0),
            _ => None,
        }
    }
    fn store(self, module: &mut Module) -> Option<Attr> {
        self.then(|| module.attr(AttrKind::Bool(true)))
    }
}

/// A flag that holds unless the attribute says that it doesn't.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DefaultTrue(pub bool);

impl AttrValue for DefaultTrue {
    const OPTIONAL: bool = true;
    fn read(module: &Module, attr: Option<Attr>) -> Option<Self> {
        attr.map_or(Some(true), |a| bool::read(module, Some(a))).map(DefaultTrue)
    }
    fn store(self, module: &mut Module) -> Option<Attr> {
        (!self.0).then(|| module.attr(AttrKind::Bool(false)))
    }
}

/// A flag that is set by being there, without a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flag(pub bool);

impl AttrValue for Flag {
    const OPTIONAL: bool = true;
    fn read(module: &Module, attr: Option<Attr>) -> Option<Self> {
        match attr.map(|a| module.attr_kind(a)) {
            None => Some(Flag(false)),
            Some(AttrKind::Unit) => Some(Flag(true)),
            _ => None,
        }
    }
    fn store(self, module: &mut Module) -> Option<Attr> {
        self.0.then(|| module.attr(AttrKind::Unit))
    }
}

/// `true` or `false`, which is written out: what absence says, the operation knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Truth(pub bool);

impl AttrValue for Truth {
    fn read(module: &Module, attr: Option<Attr>) -> Option<Self> {
        match module.attr_kind(attr?) {
            AttrKind::Bool(b) => Some(Truth(*b)),
            _ => None,
        }
    }
    fn store(self, module: &mut Module) -> Option<Attr> {
        Some(module.attr(AttrKind::Bool(self.0)))
    }
}

macro_rules! int_attr {
    ($($t:ty => $ty:expr),*) => {$(
        impl AttrValue for $t {
            fn read(module: &Module, attr: Option<Attr>) -> Option<Self> {
                match module.attr_kind(attr?) {
                    AttrKind::Int(v, _) => (*v).try_into().ok(),
                    _ => None,
                }
            }
            fn store(self, module: &mut Module) -> Option<Attr> {
                Some(module.attr(AttrKind::Int(i64::from(self), $ty)))
            }
        }
    )*};
}
int_attr!(i32 => Type::I32, i64 => Type::I64);

impl AttrValue for String {
    fn read(module: &Module, attr: Option<Attr>) -> Option<Self> {
        match module.attr_kind(attr?) {
            AttrKind::Str(s) | AttrKind::Symbol(s) => Some(s.clone()),
            _ => None,
        }
    }
    fn store(self, module: &mut Module) -> Option<Attr> {
        Some(module.attr(AttrKind::Str(self)))
    }
}

/// The name of a function, stored as `@name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SymbolRef(pub String);

impl AttrValue for SymbolRef {
    fn read(module: &Module, attr: Option<Attr>) -> Option<Self> {
        match module.attr_kind(attr?) {
            AttrKind::Symbol(s) => Some(SymbolRef(s.clone())),
            _ => None,
        }
    }
    fn store(self, module: &mut Module) -> Option<Attr> {
        Some(module.attr(AttrKind::Symbol(self.0)))
    }
}

impl AttrValue for Type {
    fn read(module: &Module, attr: Option<Attr>) -> Option<Self> {
        match module.attr_kind(attr?) {
            AttrKind::Type(t) => Some(*t),
            _ => None,
        }
    }
    fn store(self, module: &mut Module) -> Option<Attr> {
        Some(module.attr(AttrKind::Type(self)))
    }
}

/// Any attribute, as it is.
impl AttrValue for Attr {
    fn read(_: &Module, attr: Option<Attr>) -> Option<Self> {
        attr
    }
    fn store(self, _: &mut Module) -> Option<Attr> {
        Some(self)
    }
}

impl AttrValue for Vec<i32> {
    fn read(module: &Module, attr: Option<Attr>) -> Option<Self> {
        match module.attr_kind(attr?) {
            AttrKind::I32Array(v) => Some(v.clone()),
            _ => None,
        }
    }
    fn store(self, module: &mut Module) -> Option<Attr> {
        Some(module.attr(AttrKind::I32Array(self)))
    }
}

impl AttrValue for Vec<i64> {
    fn read(module: &Module, attr: Option<Attr>) -> Option<Self> {
        match module.attr_kind(attr?) {
            AttrKind::I64Array(v) => Some(v.clone()),
            _ => None,
        }
    }
    fn store(self, module: &mut Module) -> Option<Attr> {
        Some(module.attr(AttrKind::I64Array(self)))
    }
}

impl AttrValue for Vec<String> {
    fn read(module: &Module, attr: Option<Attr>) -> Option<Self> {
        match module.attr_kind(attr?) {
            AttrKind::Array(items) => items.iter().map(|&a| String::read(module, Some(a))).collect(),
            _ => None,
        }
    }
    fn store(self, module: &mut Module) -> Option<Attr> {
        let items = self.into_iter().map(|s| module.attr(AttrKind::Str(s))).collect();
        Some(module.attr(AttrKind::Array(items)))
    }
}

impl<T: AttrValue> AttrValue for Option<T> {
    const OPTIONAL: bool = true;
    const ENUM_KEYWORDS: &'static [&'static str] = T::ENUM_KEYWORDS;
    const ENUM_DEFAULT: Option<&'static str> = T::ENUM_DEFAULT;
    const MNEMONIC: &'static str = T::MNEMONIC;
    fn read(module: &Module, attr: Option<Attr>) -> Option<Self> {
        match attr {
            None => Some(None),
            Some(a) => T::read(module, Some(a)).map(Some),
        }
    }
    fn store(self, module: &mut Module) -> Option<Attr> {
        self.and_then(|v| v.store(module))
    }
}

/// The keyword in the text `#mnemonic<keyword>`.
pub fn wrapped_keyword<'t>(text: &'t str, mnemonic: &str) -> Option<&'t str> {
    let inner = text.strip_prefix('#')?.strip_prefix(mnemonic)?.strip_prefix('<')?;
    Some(inner.strip_suffix('>')?.trim())
}

/// Declares an enumeration that is stored as an attribute and printed as a keyword; with `as "dialect.name"`, as `<keyword>`, which is
/// `#dialect.name<keyword>` elsewhere. An alternative marked `default` is said by absence.
#[macro_export]
macro_rules! attr_enum {
    ($(#[$m:meta])* $name:ident $(as $mn:literal)? { $($(#[$vm:meta])* $v:ident = $s:literal),* $(,)? } $(default $d:ident)?) => {
        $(#[$m])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vm])* $v),* }
        impl $name {
            /// All alternatives.
            pub const ALL: &'static [$name] = &[$($name::$v),*];
            /// All keywords, in the order of [`Self::ALL`].
            pub const KEYWORDS: &'static [&'static str] = &[$($s),*];
            /// The keyword in IR text.
            pub const fn keyword(self) -> &'static str { match self { $($name::$v => $s),* } }
            /// The alternative of a keyword.
            pub fn from_keyword(s: &str) -> Option<Self> { match s { $($s => Some($name::$v),)* _ => None } }
        }
        impl $crate::attrs::AttrValue for $name {
            const OPTIONAL: bool = false $(|| { let _ = $name::$d; true })?;
            const ENUM_KEYWORDS: &'static [&'static str] = Self::KEYWORDS;
            $(const ENUM_DEFAULT: Option<&'static str> = Some($name::$d.keyword());)?
            $(const MNEMONIC: &'static str = $mn;)?
            fn read(module: &$crate::Module, attr: Option<$crate::Attr>) -> Option<Self> {
                $(if attr.is_none() { return Some($name::$d); })?
                match module.attr_kind(attr?) {
                    $crate::attrs::AttrKind::Keyword(k) => Self::from_keyword(k),
                    $crate::attrs::AttrKind::Str(k) => Self::from_keyword(k),
                    $crate::attrs::AttrKind::Opaque(text) => {
                        Self::from_keyword($crate::attrs::wrapped_keyword(text, <Self as $crate::attrs::AttrValue>::MNEMONIC)?)
                    }
                    _ => None,
                }
            }
            fn store(self, module: &mut $crate::Module) -> Option<$crate::Attr> {
                $(if self == $name::$d { return None; })?
                let mnemonic = <Self as $crate::attrs::AttrValue>::MNEMONIC;
                Some(module.attr(match mnemonic {
                    "" => $crate::attrs::AttrKind::Keyword(self.keyword()),
                    name => $crate::attrs::AttrKind::Opaque(format!("#{name}<{}>", self.keyword())),
                }))
            }
        }
    };
}
