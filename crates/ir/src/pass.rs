//! The passes on any module, by name: what `tilewright opt` runs and what dumps call them.

use crate::diagnostic::Diagnostic;
use crate::module::Module;
use crate::{canonicalize, cse, dce, inline, licm};

/// A pass by its name.
#[derive(Debug, Clone, Copy)]
pub struct Pass {
    /// The name.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Runs it.
    pub run: fn(&mut Module) -> Result<(), Diagnostic>,
}

/// The passes of this crate.
pub static PASSES: &[Pass] = &[
    Pass { name: "inline", summary: "replace calls by what they call", run: inline::run },
    Pass { name: "canonicalize", summary: "fold and simplify", run: canonicalize::run },
    Pass {
        name: "combine",
        summary: "canonicalize, and fuse additions into dots",
        run: canonicalize::combine,
    },
    Pass { name: "cse", summary: "merge common subexpressions", run: cse::run },
    Pass { name: "licm", summary: "move loop-invariant code out of loops", run: licm::run },
    Pass { name: "dce", summary: "erase what nothing needs", run: dce::run },
];

/// What the compiler runs on a `tt` module before layouts are chosen, and the CPU executor before it runs one.
///
/// Inlining first: everything else works within functions. `combine` before `cse`, since folding makes operations equal;
/// what `licm` and `cse` leave is folded once more, and `dce` ends it, because only it sees through carried values.
pub const OPTIMIZE: &[&str] = &["inline", "combine", "cse", "licm", "canonicalize", "dce"];

/// Runs the passes of [`OPTIMIZE`].
///
/// # Errors
/// What a pass finds wrong (recursion), with its place in the source.
pub fn optimize(module: &mut Module) -> Result<(), Diagnostic> {
    for name in OPTIMIZE {
        let pass = find(name).expect("a pass of this crate");
        (pass.run)(module)?;
    }
    Ok(())
}

/// The pass of a name.
pub fn find(name: &str) -> Option<&'static Pass> {
    PASSES.iter().find(|p| p.name == name)
}
