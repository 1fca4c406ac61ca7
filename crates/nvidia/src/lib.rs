//! `ttg` to LLVM IR for NVPTX, PTX and cubin; everything that names an `sm_` version.
//!
//! In: a `ttg` module, made by this crate's list of passes ([`pipeline`]) from those of [`tilewright_passes`]. Out: what
//! [`tilewright_runtime`](../tilewright_runtime/index.html) loads, or [`tilewright_ptxsim`](../tilewright_ptxsim/index.html) runs.
//!
//! [`lower::lower`] turns a `ttg` module into a per-thread program ([`tilewright_llvm::Module`]), [`compile()`] takes it
//! on to PTX, and [`ptxas::Ptxas`] to a cubin. [`CUDA`] is the line in the registry of targets.

mod author_lines;
pub mod compile;
pub mod libdevice;
pub mod lower;
mod mend_for_ptxas;
pub mod pipeline;
mod ptx;
mod ptx_function;
pub mod ptxas;
pub mod sass;
pub mod target;
mod toolchain;
pub mod tools;
mod wait_for_copies;

pub use compile::{CodegenOptions, Kernel, compile};
pub use target::Target;
pub use tilewright_llvm::emit::CodegenLevel;
pub use toolchain::CUDA;
