//! The cache key of a compilation.

use tilewright_frontend::Facts;
use tilewright_ir::options::{OPTIONS, Options};
use tilewright_target::Target;

use crate::cache::{Key, KeyBuilder};

/// What a compiled kernel depends on: the facts that the front end learned, which hold the source and the arguments, and
/// what the stages behind it read, the tools among it ([`toolchain::facts`](crate::toolchain::facts)). Two compilations with
/// equal keys give the same code.
pub(crate) fn key(facts: &Facts, target: &dyn Target, options: &Options, tools: &[(&str, String)]) -> Key {
    let mut key = KeyBuilder::new();
    for (name, tool) in tools {
        key.part(name, tool);
    }
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
