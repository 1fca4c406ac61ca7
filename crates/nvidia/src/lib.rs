//! `ttg` to LLVM IR for NVPTX, PTX and cubin; everything that names an `sm_` version.
//!
//! [`lower::lower`] turns a `ttg` module into a per-thread program ([`tilewright_llvm::Module`]), [`compile()`] takes it
//! on to PTX, and [`ptxas::Ptxas`] to a cubin.

pub mod compile;
pub mod libdevice;
pub mod lower;
mod mend_for_ptxas;
pub mod pipeline;
pub mod process;
pub mod ptxas;
pub mod sass;
pub mod target;
pub mod tools;

pub use compile::{CodegenOptions, Kernel, compile};
pub use target::Target;
pub use tilewright_llvm::emit::CodegenLevel;
pub use tilewright_llvm::{file as llvm_file, version as llvm_version};
pub use tools::PythonEnvironment;
