//! From a `ttg` module to SPIR-V.

use tilewright_ir as ir;
use tilewright_ir::Diagnostic;

use crate::lower::lower;
use crate::spirv::{self, emit};
use crate::target::Target;

/// A kernel in SPIR-V.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Its name in the module.
    pub name: String,
    /// The module.
    pub spirv: Vec<u8>,
    /// Sub-groups of a work group.
    pub num_warps: u32,
    /// Bytes of memory that a work group has together.
    pub shared_bytes: u32,
}

/// Makes SPIR-V of what the passes left.
///
/// # Errors
/// An operation, type or layout that is not supported, with its place in the source.
pub fn compile(module: &ir::Module, target: Target, options: &ir::Options) -> Result<Kernel, Diagnostic> {
    let lowered = lower(module, target, options).map_err(|error| *error)?;
    let how = spirv::Options {
        sub_group: target.facts().sub_group,
        shared_bytes: lowered.shared_bytes,
        contract: options.enable_fp_fusion,
    };
    let spirv = emit(&lowered.module, &how)?;
    Ok(Kernel {
        name: lowered.kernel,
        spirv,
        num_warps: lowered.num_warps,
        shared_bytes: lowered.shared_bytes,
    })
}
