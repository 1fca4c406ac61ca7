//! Entity references: 32-bit indices into the arenas of one [`Module`](crate::Module).
//!
//! A reference means something only together with the module that made it.

use cranelift_entity::entity_impl;

macro_rules! entity {
    ($(#[$m:meta])* $name:ident, $prefix:literal) => {
        $(#[$m])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub(crate) u32);
        entity_impl!($name, $prefix);
    };
}

entity!(
    /// An operation.
    Op, "op");
entity!(
    /// A basic block: arguments and a list of operations, the last of which is a terminator.
    Block, "block");
entity!(
    /// A region: a list of blocks owned by an operation.
    Region, "region");
entity!(
    /// An SSA value: a result of an operation or an argument of a block.
    Value, "v");
entity!(
    /// A uniqued type; equal types have equal references within a module.
    Type, "type");
entity!(
    /// A uniqued attribute; equal attributes have equal references within a module.
    Attr, "attr");
entity!(
    /// A uniqued source location.
    Loc, "loc");

impl Type {
    /// `i1`
    pub const I1: Type = Type(0);
    /// `i8`
    pub const I8: Type = Type(1);
    /// `i16`
    pub const I16: Type = Type(2);
    /// `i32`
    pub const I32: Type = Type(3);
    /// `i64`
    pub const I64: Type = Type(4);
    /// `f16`
    pub const F16: Type = Type(5);
    /// `bf16`
    pub const BF16: Type = Type(6);
    /// `f32`
    pub const F32: Type = Type(7);
    /// `f64`
    pub const F64: Type = Type(8);
    /// `index`
    pub const INDEX: Type = Type(9);
    /// `f8E4M3FN`
    pub const F8E4M3FN: Type = Type(10);
    /// `f8E5M2`
    pub const F8E5M2: Type = Type(11);
    /// `!ttg.async.token`
    pub const ASYNC_TOKEN: Type = Type(12);
    /// `!ttg.ring`
    pub const RING: Type = Type(13);
}

impl Loc {
    /// `loc(unknown)`
    pub const UNKNOWN: Loc = Loc(0);
}
