//! The part of lowering to LLVM IR that targets share, and the only crate that speaks to LLVM.
//!
//! Lowering records what one GPU thread does through a [`Builder`] into a [`Module`]; folding, common-subexpression
//! elimination and hoisting of address arithmetic happen as instructions are recorded, so that few of them reach
//! LLVM, which costs far more per instruction than recording does. [`emit::compile`] then hands the module to LLVM,
//! runs the target's short pass list and returns PTX text.
//!
//! In: what [`tilewright_lower`](../tilewright_lower/index.html) records. Out: assembly text, for the tools of the target.
//!
//! No LLVM type appears in this crate's interface: a direct PTX emitter can stand behind the same builder.

pub mod builder;
mod chains;
mod division;
pub mod emit;
mod fold;
mod guard;
mod offsets;
mod order;
pub mod program;
mod shared_steps;
mod sink;
pub mod ty;
mod version;
pub mod view;
mod wide_offsets;

pub use builder::Builder;
pub use program::{
    BinOp, Block, ByValue, CastOp, Effect, FloatPred, FuncId, Function, Global, GlobalId, IntPred,
    KernelAttrs, Loc, Module, Op, Value,
};
pub use ty::{Scalar, Space, Ty};
pub use version::{file, version};
pub use view::View;
