//! `ub`: values that nothing may depend on.

crate::dialect! {
    dialect "ub" Ub;

    /// Any value: the one that is never used, such as a result of a branch that is not taken.
    op Poison = "poison" {
        results(result)
        traits(Pure)
        index(Whole)
        types()
        effects()
        format "attr-dict `:` type($result)"
    }
}
