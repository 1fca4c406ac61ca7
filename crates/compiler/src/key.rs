//! The cache key of a compilation.

use tilewright_frontend::Facts;

use crate::cache::{Key, KeyBuilder};
use crate::request::{Options, Target};
use crate::toolchain::Toolchain;

/// What a compiled kernel depends on: the facts that the front end learned, which hold the source and the arguments, and
/// what the stages behind it read. Two compilations with equal keys give the same code.
pub(crate) fn key(facts: &Facts, target: Target, options: &Options, toolchain: &Toolchain) -> Key {
    // All fields are named here: a new one does not compile until it is part of the key.
    let Options { num_warps, num_stages, num_ctas, maxnreg, enable_fp_fusion, debug, line_info } = options;
    let Toolchain { build, llvm, ptxas, libdevice, wgmma } = toolchain;
    let mut key = KeyBuilder::new();
    key.part("build", build);
    key.part("llvm", llvm);
    key.part("ptxas", ptxas);
    key.part("libdevice", libdevice);
    key.part("wgmma", wgmma.to_string());
    key.part("target", target.to_string());
    key.part("num_warps", num_warps.to_string());
    key.part("num_stages", num_stages.to_string());
    key.part("num_ctas", num_ctas.to_string());
    key.part("maxnreg", format!("{maxnreg:?}"));
    key.part("enable_fp_fusion", enable_fp_fusion.to_string());
    key.part("debug", debug.to_string());
    key.part("line_info", line_info.to_string());
    for fact in facts.lines() {
        key.part("fact", fact);
    }
    key.finish()
}

#[cfg(test)]
mod tests;
