//! The cache key of a compilation.

use tilewright_frontend::Facts;
use tilewright_ir::options::{OPTIONS, Options};

use crate::cache::{Key, KeyBuilder};
use crate::request::Target;
use crate::toolchain::Toolchain;

/// What a compiled kernel depends on: the facts that the front end learned, which hold the source and the arguments, and
/// what the stages behind it read. Two compilations with equal keys give the same code.
pub(crate) fn key(facts: &Facts, target: Target, options: &Options, toolchain: &Toolchain) -> Key {
    // All fields are named here: a new one does not compile until it is part of the key.
    let Toolchain { build, llvm, ptxas, libdevice, wgmma } = toolchain;
    let mut key = KeyBuilder::new();
    key.part("build", build);
    key.part("llvm", llvm);
    key.part("ptxas", ptxas);
    key.part("libdevice", libdevice);
    key.part("wgmma", wgmma.to_string());
    key.part("target", target.to_string());
    for option in OPTIONS.iter().filter(|o| o.keyed()) {
        key.part(option.name, option.get(options).to_string());
    }
    for fact in facts.lines() {
        key.part("fact", fact);
    }
    key.finish()
}

#[cfg(test)]
mod tests;
