//! Intel's GPUs: their facts ([`Target`]), their list of passes ([`pipeline`]), and what these make as LLVM IR in SIMD and in SIMT style ([`simd`]).
//!
//! They hold blocks of tensors in the registers of a whole warp (a sub-group), and have instructions that load, store and multiply
//! such blocks. So a kernel comes down to them level by level (ML-Triton): to what a warp does
//! ([`distribute_to_warps`](tilewright_passes::transform::distribute_to_warps)), then to what an instruction does
//! ([`match_target_size`](tilewright_passes::transform::match_target_size)).
//!
//! Then lanes get their columns, a thread's program is recorded ([`lower`]), written as SPIR-V ([`mod@spirv`]) and made native code by Intel's offline
//! compiler ([`mod@ocloc`]). A kernel that levels don't take goes thread by thread ([`pipeline`]).

// An error ends the compilation: its size does not matter.
#![allow(clippy::result_large_err)]

pub mod asm;
pub mod compile;
pub mod gathered_dots;
pub mod keep_in_step;
mod lane_sums;
pub mod lines;
pub mod lower;
pub mod ocloc;
pub mod order_dots;
pub mod pipeline;
pub mod simd;
pub mod spirv;
pub mod target;
mod toolchain;
mod unheeded_hints;
mod visa;

pub use target::Target;
pub use toolchain::XE;
