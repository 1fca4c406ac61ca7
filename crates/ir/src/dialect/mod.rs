//! The operations, a file a dialect. Each is declared once with [`dialect!`](macro@crate::dialect).
//!
//! Formats are in MLIR's declarative assembly notation: literals in backquotes, `$name` for an operand group or
//! attribute, `type($name)`, `short-type(ttg.memdesc, $name)` (the
//! type without its name), `functional-type(from, to)`, `attr-dict`, `token($dep)` (brackets, with the operand in them, where there is
//! a token), `pairs($a, $b)` (`, %a[%b]` for each), `indices($a, $known)` (`[%a, 4]`: values, and numbers from an attribute), `( ... ^ ... )?` for an optional group anchored at
//! the marked element, `oilist(clause | ...)` for clauses in any order, each with an attribute that decides whether it is
//! printed, and an empty literal where no space is wanted. Types that a format does not print are inferred: see
//! [`text`](crate::text).

pub mod arith;
pub mod blackwell;
pub mod builtin;
pub mod cf;
pub mod func;
pub mod gpu;
pub mod hivm;
pub mod llvm;
pub mod math;
pub mod memref;
pub mod scf;
pub mod tt;
pub mod ttg;
pub mod ttng;
pub mod ub;

use crate::opdef::OpDef;

/// The declarations of all dialects.
pub fn all_defs() -> impl Iterator<Item = &'static OpDef> {
    [
        builtin::DEFS,
        arith::DEFS,
        math::DEFS,
        scf::DEFS,
        cf::DEFS,
        tt::DEFS,
        ttg::DEFS,
        ttng::DEFS,
        blackwell::DEFS,
        llvm::DEFS,
        ub::DEFS,
        gpu::DEFS,
        func::DEFS,
        memref::DEFS,
        hivm::DEFS,
    ]
    .into_iter()
    .flatten()
}

/// The declaration of a full operation name such as `tt.load`.
pub fn find_def(name: &str) -> Option<&'static OpDef> {
    use std::sync::OnceLock;

    use rustc_hash::FxHashMap;
    static TABLE: OnceLock<FxHashMap<&'static str, &'static OpDef>> = OnceLock::new();
    TABLE.get_or_init(|| all_defs().map(|d| (d.name, d)).collect()).get(name).copied()
}
