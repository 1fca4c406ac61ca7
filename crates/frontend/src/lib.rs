//! Python-syntax source to a `tt` module.
//!
//! The road through this crate, in the order in which data flows:
//!
//! - [`source`]: a piece of Python source, its lines and its parsed functions;
//! - [`host`]: what the source names outside itself, through the [`Host`] trait, and [`source_host`], the host that
//!   needs no Python;
//! - [`aggregate`]: classes of kernels;
//! - [`facts`]: what a compilation was told from outside, which a cache key is made of;
//! - [`library`]: the `tl.*` names, read from the Python files under `python/tilewright/language`;
//! - [`dtype`], [`signature`]: the language's types and the types of a kernel's arguments.
//!
//! In: the source, the types of the arguments, and a [`Host`]. Out: a [`tilewright_ir::Module`] of the `tt` dialect, which
//! [`tilewright_passes`](../tilewright_passes/index.html) takes on to `ttg` or [`tilewright_interp`](../tilewright_interp/index.html) runs.
//!
//! Invariants: nothing here knows CPython, holds mutable global state or panics on a wrong kernel.

// An error ends the compilation: its size does not matter.
#![allow(clippy::result_large_err)]

pub mod aggregate;
pub mod dtype;
mod eval;
pub mod facts;
mod fold;
pub mod host;
pub mod library;
pub mod pipe;
pub mod signature;
pub mod source;
pub mod source_host;
pub mod value;

pub use aggregate::AggregateClass;
pub use dtype::{DType, Scalar};
pub use eval::{Built, Captured, build_module, build_module_for};
pub use facts::Facts;
pub use host::{Binding, FunctionKind, Host, HostError, HostObject, HostValue, JitFunction, JitMarks};
pub use signature::{ArgSpec, ArgType, Signature};
pub use source::SourceText;
pub use source_host::SourceHost;
pub use tilewright_ir::diagnostic::Kind as DiagnosticKind;
pub use tilewright_ir::{Diagnostic, Options, Span};
