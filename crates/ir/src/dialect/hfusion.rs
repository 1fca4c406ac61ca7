//! `hfusion`: operations of AscendNPU-IR before it chooses instructions, as far as its code for cores has them.
//!
//! No pass makes or lowers these: they stand in the code that is read ([`hivm`](crate::dialect::hivm)).

use crate::opdef::{Access, Effect, Resource};

const READ: Effect = Effect::new(Access::Read, Resource::Shared, Some("ins"));
const WRITE: Effect = Effect::new(Access::Write, Resource::Shared, Some("out"));

/// Operations that read `ins` and write `outs`, and say all else in attributes.
macro_rules! with_structured {
    (structured { $($(#[doc = $doc:literal])+ $Op:ident = $name:literal;)* } $($others:tt)*) => {
        crate::dialect! {
            dialect "hfusion" Hfusion;

            $(
                $(#[doc = $doc])+
                op $Op = $name {
                    operands(ins: var, out: var)
                    variadic_results(results)
                    index(Unrelated)
                    types(Written("results", "out"))
                    effects(READ, WRITE)
                    format "attr-dict (`ins` `(` $ins^ `:` type($ins) `)`)? (`outs` `(` $out^ `:` type($out) `)`)? (`->` type($results)^)?"
                }
            )*

            $($others)*
        }
    };
}

with_structured! {
    structured {
        /// Elements in another type.
        Convert = "cast";
        /// Whether elements compare so.
        Compare = "compare";
        /// Elements of one or another operand.
        Select = "select";
        /// A function of each element.
        ElemwiseUnary = "elemwise_unary";
        /// A function of two elements.
        ElemwiseBinary = "elemwise_binary";
        /// The same bits as elements of another type.
        Bitcast = "bitcast";
        /// What is in memory.
        Load = "load";
        /// Writes to memory.
        Store = "store";
    }
}
