//! The SSA IR of Tilewright.
//!
//! A [`Module`] owns everything: operations, blocks, regions and values live in arenas and are named by 32-bit
//! references; types and attributes are uniqued per module, so comparing them is comparing references. Operations are
//! declared once each, in [`dialect`](mod@dialect); the text form is MLIR's.
//!
//! Invariants (checked by [`verify`](fn@verify)):
//! - every use of a value is listed in its use list, and nothing else is;
//! - a value's definition dominates its uses; control flow in kernels is structured (`scf`);
//! - an attached operation has a parent block, a block has a parent region, a region has a parent operation.
//!
//! In: what [`tilewright_frontend`](../tilewright_frontend/index.html) emits, or [text](parse). Out: what
//! [`tilewright_passes`](../tilewright_passes/index.html) and [`tilewright_interp`](../tilewright_interp/index.html) walk. Below it stands
//! [`tilewright_layout`] alone, whose encodings are attributes here.
//!
//! [`module`], [`attrs`], [`opdef`], [`dialect`](mod@dialect) and what declarations say ([`index`], [`typing`], [`flow`], effects) name each other, since
//! a declaration is of functions over the module and has its builder, and the module finds the declaration of each of its operations by opcode. Everything
//! else stands behind these: [`verify`](mod@verify), [`text`], folding and the passes use them, and none of them uses those, but for
//! printing a type in a message, by which `text` and [`diagnostic`] belong to the circle, too.

pub mod ascend;
pub mod attrs;
pub mod builder;
pub mod canonicalize;
pub mod cse;
pub mod dce;
pub mod diagnostic;
pub mod dialect;
pub mod effects;
mod entity;
pub mod float;
pub mod flow;
pub mod fold;
pub mod index;
pub mod inline;
mod interner;
pub mod launch;
pub mod licm;
pub mod marks;
pub mod memref;
pub mod module;
#[macro_use]
pub mod opdef;
pub mod options;
pub mod pass;
pub mod reference;
pub mod rewrite;
pub mod strided;
pub mod text;
pub mod types;
pub mod typing;
pub mod verify;
mod verify_layouts;
pub mod warp_groups;
pub mod warp_uniformity;

pub use attrs::{AttrKind, AttrValue, FloatBits, Name};
pub use builder::{Builder, InsertPoint};
pub use diagnostic::{Diagnostic, Span};
pub use entity::{Attr, Block, Loc, Op, Region, Type, Value};
pub use module::{LocKind, Module, Use, ValueDef};
pub use opdef::{Opcode, Trait};
pub use options::Options;
pub use text::{PrintOptions, parse, print, print_attr, print_op, print_type, print_with};
pub use tilewright_layout::{Encoding, SharedKind};
pub use types::{FloatKind, Shape, TypeKind};
pub use verify::{verify, verify_flat};

#[cfg(test)]
mod module_tests;
