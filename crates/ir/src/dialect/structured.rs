//! Operations on whole tensors or buffers that have nothing but sources and destinations: `linalg` and `hfusion` have many.

use crate::opdef::{Access, Effect, Resource};

pub(super) const READ: Effect = Effect::new(Access::Read, Resource::Shared, Some("ins"));
pub(super) const WRITE: Effect = Effect::new(Access::Write, Resource::Shared, Some("out"));

/// Operations that read `ins` and write `outs`, and say all else in attributes.
macro_rules! with_structured {
    (dialect $dname:literal $variant:ident; structured { $($(#[doc = $doc:literal])+ $Op:ident = $name:literal;)* } $($others:tt)*) => {
        crate::dialect! {
            dialect $dname $variant;

            $(
                $(#[doc = $doc])+
                op $Op = $name {
                    operands(ins: var, out: var)
                    variadic_results(results)
                    index(Unrelated)
                    types(Each("out", Shaped), Written("results", "out"))
                    effects(READ, WRITE)
                    format "attr-dict (`ins` `(` $ins^ `:` type($ins) `)`)? (`outs` `(` $out^ `:` type($out) `)`)? (`->` type($results)^)?"
                }
            )*

            $($others)*
        }
    };
}

pub(super) use with_structured;
