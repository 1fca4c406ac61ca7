//! Ascend's cores: from `tt` with buffers in named memories to AscendNPU-IR (`hivm` beside `func`, `memref`, `scf` and `arith`).
//!
//! A kernel goes through [`lower`], in the order of its files. There are no layouts: a core computes with whole vectors in memory.

// An error ends the compilation: its size does not matter.
#![allow(clippy::result_large_err)]

mod bishengir;
pub mod lower;
mod toolchain;

pub use toolchain::ASCEND;
