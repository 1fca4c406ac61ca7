//! `annotation`: what AscendNPU-IR says of values without changing them.
//!
//! No pass makes or lowers it: it stands in the code that is read ([`hivm`](crate::dialect::hivm)).

use crate::opdef::{Access, Effect, Resource};

/// It is not to be moved or erased.
const STAYS: Effect = Effect::new(Access::Write, Resource::Other, None);

crate::dialect! {
    dialect "annotation" Annotation;

    /// Says something of a value.
    op Mark = "mark" {
        operands(src: one, values: var)
        attrs(effects: Option<Vec<String>> = "effects", keys: Option<Vec<String>> = "keys")
        index(Unrelated)
        types()
        effects(STAYS)
        format "$src attr-dict (`keys` `=` $keys^)? (`values` `=` `[` $values^ `:` type($values) `]`)? `:` type($src)"
    }
}
