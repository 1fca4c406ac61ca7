//! `arith`: constants and elementwise arithmetic. Integers are signless; the op says how they are read.

use crate::attr_enum;
use crate::entity::{Attr, Op};
use crate::module::Module;

attr_enum! {
    /// Predicates of [`Cmpi`].
    #[allow(missing_docs)]
    CmpIPredicate {
        Eq = "eq", Ne = "ne", Slt = "slt", Sle = "sle", Sgt = "sgt", Sge = "sge",
        Ult = "ult", Ule = "ule", Ugt = "ugt", Uge = "uge",
    }
}

attr_enum! {
    /// Predicates of [`Cmpf`]: `o…` is false and `u…` true when an operand is NaN.
    #[allow(missing_docs)]
    CmpFPredicate {
        False = "false", Oeq = "oeq", Ogt = "ogt", Oge = "oge", Olt = "olt", Ole = "ole", One = "one", Ord = "ord",
        Ueq = "ueq", Ugt = "ugt", Uge = "uge", Ult = "ult", Ule = "ule", Une = "une", Uno = "uno", True = "true",
    }
}

/// A constant has the type of its value.
fn verify_constant(module: &Module, op: Op) -> Result<(), String> {
    use crate::attrs::AttrKind;
    let ty = module.value_type(module.result(op));
    let attr = Constant(op).value(module);
    let found = match module.attr_kind(attr) {
        AttrKind::Int(_, t) | AttrKind::Float(_, t) | AttrKind::Splat(_, t) | AttrKind::Dense(_, t) => *t,
        AttrKind::Bool(_) => crate::Type::I1,
        _ => return Err("the value must be an integer, a float, or dense".into()),
    };
    if found == ty { Ok(()) } else { Err("the value's type differs from the result's".into()) }
}

/// A condition is `i1`, or a tensor of `i1` with the shape of the values.
fn verify_select(module: &Module, op: Op) -> Result<(), String> {
    let select = Select(op);
    let cond = module.value_type(select.condition(module));
    let value = module.value_type(select.true_value(module));
    if module.element_type(cond) != crate::Type::I1 {
        return Err("the condition must be i1".into());
    }
    if module.is_tensor(cond) && module.shape(cond) != module.shape(value) {
        return Err("the condition's shape differs from the values'".into());
    }
    Ok(())
}

macro_rules! arith_dialect {
    (
        commutative { $($(#[doc = $cd:literal])+ $C:ident = $cn:literal;)* }
        binary { $($(#[doc = $bd:literal])+ $B:ident = $bn:literal;)* }
        cast { $($(#[doc = $td:literal])+ $T:ident = $tn:literal;)* }
        rest { $($rest:tt)* }
    ) => {
        crate::dialect! {
            dialect "arith" Arith;
            $($(#[doc = $cd])+ op $C = $cn {
                operands(lhs: one, rhs: one)
                same_as(lhs)
                traits(Pure, Elementwise, SameTypes, Commutative)
                format "$lhs `,` $rhs attr-dict `:` type($result)"
            })*
            $($(#[doc = $bd])+ op $B = $bn {
                operands(lhs: one, rhs: one)
                same_as(lhs)
                traits(Pure, Elementwise, SameTypes)
                format "$lhs `,` $rhs attr-dict `:` type($result)"
            })*
            $($(#[doc = $td])+ op $T = $tn {
                operands(input: one)
                results(out)
                traits(Pure, Elementwise)
                format "$input attr-dict `:` type($input) `to` type($out)"
            })*
            $($rest)*
        }
    };
}

arith_dialect! {
    commutative {
        /// Integer addition, wrapping.
        Addi = "addi";
        /// Integer multiplication, wrapping.
        Muli = "muli";
        /// Bitwise and.
        Andi = "andi";
        /// Bitwise or.
        Ori = "ori";
        /// Bitwise exclusive or.
        Xori = "xori";
        /// Signed minimum.
        Minsi = "minsi";
        /// Signed maximum.
        Maxsi = "maxsi";
        /// Unsigned minimum.
        Minui = "minui";
        /// Unsigned maximum.
        Maxui = "maxui";
        /// Floating-point addition.
        Addf = "addf";
        /// Floating-point multiplication.
        Mulf = "mulf";
        /// Minimum; NaN if either is.
        Minimumf = "minimumf";
        /// Maximum; NaN if either is.
        Maximumf = "maximumf";
        /// Minimum; the other operand if one is NaN.
        Minnumf = "minnumf";
        /// Maximum; the other operand if one is NaN.
        Maxnumf = "maxnumf";
    }
    binary {
        /// Integer subtraction, wrapping.
        Subi = "subi";
        /// Signed division, towards zero.
        Divsi = "divsi";
        /// Unsigned division.
        Divui = "divui";
        /// Signed remainder, with the sign of the dividend.
        Remsi = "remsi";
        /// Unsigned remainder.
        Remui = "remui";
        /// Signed division, towards positive infinity.
        Ceildivsi = "ceildivsi";
        /// Signed division, towards negative infinity.
        Floordivsi = "floordivsi";
        /// Shift left.
        Shli = "shli";
        /// Arithmetic shift right.
        Shrsi = "shrsi";
        /// Logical shift right.
        Shrui = "shrui";
        /// Floating-point subtraction.
        Subf = "subf";
        /// Floating-point division.
        Divf = "divf";
        /// Floating-point remainder, with the sign of the dividend.
        Remf = "remf";
    }
    cast {
        /// Sign extension to a wider integer.
        Extsi = "extsi";
        /// Zero extension to a wider integer.
        Extui = "extui";
        /// Truncation to a narrower integer.
        Trunci = "trunci";
        /// Conversion to a wider float.
        Extf = "extf";
        /// Conversion to a narrower float, to nearest even.
        Truncf = "truncf";
        /// Signed integer to float.
        Sitofp = "sitofp";
        /// Unsigned integer to float.
        Uitofp = "uitofp";
        /// Float to signed integer, towards zero.
        Fptosi = "fptosi";
        /// Float to unsigned integer, towards zero.
        Fptoui = "fptoui";
        /// The same bits as another type of the same width.
        Bitcast = "bitcast";
        /// `index` to or from an integer.
        IndexCast = "index_cast";
    }
    rest {
        /// A constant: an integer or float, or a dense tensor of them.
        op Constant = "constant" {
            attrs(value: Attr = "value")
            results(result)
            traits(Pure, Constant)
            verify verify_constant
        }

        /// Integer comparison; gives `i1` of the operands' shape.
        op Cmpi = "cmpi" {
            operands(lhs: one, rhs: one)
            attrs(predicate: CmpIPredicate = "predicate")
            results(result)
            traits(Pure, Elementwise)
            format "$predicate `,` $lhs `,` $rhs attr-dict `:` type($lhs)"
        }

        /// Floating-point comparison; gives `i1` of the operands' shape.
        op Cmpf = "cmpf" {
            operands(lhs: one, rhs: one)
            attrs(predicate: CmpFPredicate = "predicate")
            results(result)
            traits(Pure, Elementwise)
            format "$predicate `,` $lhs `,` $rhs attr-dict `:` type($lhs)"
        }

        /// Picks `true_value` where the condition holds; the condition is a scalar or of the values' shape.
        op Select = "select" {
            operands(condition: one, true_value: one, false_value: one)
            same_as(true_value)
            traits(Pure, Elementwise)
            verify verify_select
        }

        /// Floating-point negation.
        op Negf = "negf" {
            operands(operand: one)
            same_as(operand)
            traits(Pure, Elementwise, SameTypes)
            format "$operand attr-dict `:` type($result)"
        }
    }
}
