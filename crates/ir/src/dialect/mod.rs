//! The operations, a file a dialect. Each is declared once with [`dialect!`](macro@crate::dialect).
//!
//! Formats are in MLIR's declarative assembly notation: literals in backquotes, `$name` for an operand group or
//! attribute, `type($name)`, `short-type(ttg.memdesc, $name)` (the
//! type without its name), `functional-type(from, to)`, `attr-dict`, `token($dep)` (brackets, with the operand in them, where there is
//! a token), `pairs($a, $b)` (`, %a[%b]` for each), `indices($a, $known)` (`[%a, 4]`: values, and numbers from an attribute), `region($body)`, `( ... ^ ... )?` for an optional group anchored at
//! the marked element, `oilist(clause | ...)` for clauses in any order, each with an attribute that decides whether it is
//! printed, and an empty literal where no space is wanted. Types that a format does not print are inferred: see
//! [`text`](crate::text).

pub mod affine;
pub mod annotation;
pub mod arith;
pub mod blackwell;
pub mod bufferization;
pub mod builtin;
pub mod cf;
pub mod func;
pub mod gpu;
pub mod hfusion;
pub mod hivm;
pub mod hivm_more;
pub mod linalg;
pub mod llvm;
pub mod math;
pub mod memref;
pub mod memref_ext;
pub mod scf;
pub mod scope;
mod shaped_rules;
mod structured;
pub mod tensor;
pub mod tt;
pub mod ttg;
pub mod ttng;
pub mod ub;
pub mod vector;

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
        memref_ext::DEFS,
        tensor::DEFS,
        vector::DEFS,
        bufferization::DEFS,
        affine::DEFS,
        linalg::DEFS,
        scope::DEFS,
        annotation::DEFS,
        hfusion::DEFS,
        hivm::DEFS,
        hivm_more::DEFS,
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
