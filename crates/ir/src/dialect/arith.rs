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

macro_rules! arith_dialect {
    (
        commutative { $($(#[doc = $cd:literal])+ $C:ident = $cn:literal: $cc:ident;)* }
        binary { $($(#[doc = $bd:literal])+ $B:ident = $bn:literal: $bc:ident $(($($bt:ident),*))?;)* }
        cast { $($(#[doc = $td:literal])+ $T:ident = $tn:literal: $($tr:expr),*;)* }
        rest { $($rest:tt)* }
    ) => {
        crate::dialect! {
            dialect "arith" Arith;
            $($(#[doc = $cd])+ op $C = $cn {
                operands(lhs: one, rhs: one)
                same_as(lhs)
                traits(Pure, Elementwise, SameTypes, Commutative)
                index(Elementwise)
                types(All($cc))
                effects()
                format "$lhs `,` $rhs attr-dict `:` type($result)"
            })*
            $($(#[doc = $bd])+ op $B = $bn {
                operands(lhs: one, rhs: one)
                same_as(lhs)
                traits(Pure, Elementwise, SameTypes $($(, $bt)*)?)
                index(Elementwise)
                types(All($bc))
                effects()
                format "$lhs `,` $rhs attr-dict `:` type($result)"
            })*
            $($(#[doc = $td])+ op $T = $tn {
                operands(input: one)
                results(out)
                traits(Pure, Elementwise)
                index(Elementwise)
                types($($tr),*)
                effects()
                format "$input attr-dict `:` type($input) `to` type($out)"
            })*
            $($rest)*
        }
    };
}

arith_dialect! {
    commutative {
        /// Integer addition, wrapping.
        Addi = "addi": Int;
        /// Integer multiplication, wrapping.
        Muli = "muli": Int;
        /// Bitwise and.
        Andi = "andi": Int;
        /// Bitwise or.
        Ori = "ori": Int;
        /// Bitwise exclusive or.
        Xori = "xori": Int;
        /// Signed minimum.
        Minsi = "minsi": Int;
        /// Signed maximum.
        Maxsi = "maxsi": Int;
        /// Unsigned minimum.
        Minui = "minui": Int;
        /// Unsigned maximum.
        Maxui = "maxui": Int;
        /// Floating-point addition.
        Addf = "addf": Float;
        /// Floating-point multiplication.
        Mulf = "mulf": Float;
        /// Minimum; NaN if either is.
        Minimumf = "minimumf": Float;
        /// Maximum; NaN if either is.
        Maximumf = "maximumf": Float;
        /// Minimum; the other operand if one is NaN.
        Minnumf = "minnumf": Float;
        /// Maximum; the other operand if one is NaN.
        Maxnumf = "maxnumf": Float;
    }
    binary {
        /// Integer subtraction, wrapping.
        Subi = "subi": Int;
        /// Signed division, towards zero.
        Divsi = "divsi": Int (FaultsOnZero);
        /// Unsigned division.
        Divui = "divui": Int (FaultsOnZero);
        /// Signed remainder, with the sign of the dividend.
        Remsi = "remsi": Int (FaultsOnZero);
        /// Unsigned remainder.
        Remui = "remui": Int (FaultsOnZero);
        /// Signed division, towards positive infinity.
        Ceildivsi = "ceildivsi": Int (FaultsOnZero);
        /// Unsigned division, rounded up.
        Ceildivui = "ceildivui": Int (FaultsOnZero);
        /// Signed division, towards negative infinity.
        Floordivsi = "floordivsi": Int (FaultsOnZero);
        /// Shift left.
        Shli = "shli": Int;
        /// Arithmetic shift right.
        Shrsi = "shrsi": Int;
        /// Logical shift right.
        Shrui = "shrui": Int;
        /// Floating-point subtraction.
        Subf = "subf": Float;
        /// Floating-point division.
        Divf = "divf": Float;
        /// Floating-point remainder, with the sign of the dividend.
        Remf = "remf": Float;
    }
    cast {
        /// Sign extension to a wider integer.
        Extsi = "extsi": Each("input", Int), Each("out", Int), Bits("input", Below, "out");
        /// Zero extension to a wider integer.
        Extui = "extui": Each("input", Int), Each("out", Int), Bits("input", Below, "out");
        /// Truncation to a narrower integer.
        Trunci = "trunci": Each("input", Int), Each("out", Int), Bits("input", Above, "out");
        /// Conversion to a wider float.
        Extf = "extf": Each("input", Float), Each("out", Float), Bits("input", Below, "out");
        /// Conversion to a narrower float, to nearest even.
        Truncf = "truncf": Each("input", Float), Each("out", Float), Bits("input", Above, "out");
        /// Signed integer to float.
        Sitofp = "sitofp": Each("input", Int), Each("out", Float);
        /// Unsigned integer to float.
        Uitofp = "uitofp": Each("input", Int), Each("out", Float);
        /// Float to signed integer, towards zero.
        Fptosi = "fptosi": Each("input", Float), Each("out", Int);
        /// Float to unsigned integer, towards zero.
        Fptoui = "fptoui": Each("input", Float), Each("out", Int);
        /// The same bits as another type of the same width.
        Bitcast = "bitcast": Bits("input", Equal, "out");
        /// `index` to or from an integer.
        IndexCast = "index_cast": Each("input", Int), Each("out", Int);
    }
    rest {
        /// A constant: an integer or float, or a dense tensor of them.
        op Constant = "constant" {
            attrs(value: Attr = "value")
            results(result)
            traits(Pure, Constant)
            index(Whole)
            types()
            effects()
            verify verify_constant
        }

        /// Integer comparison; gives `i1` of the operands' shape.
        op Cmpi = "cmpi" {
            operands(lhs: one, rhs: one)
            attrs(predicate: CmpIPredicate = "predicate")
            results(result)
            traits(Pure, Elementwise)
            index(Elementwise)
            types(Each("lhs", IntOrPtr), Is("rhs", Same("lhs")), Is("result", Mask("lhs")))
            effects()
            format "$predicate `,` $lhs `,` $rhs attr-dict `:` type($lhs)"
        }

        /// Floating-point comparison; gives `i1` of the operands' shape.
        op Cmpf = "cmpf" {
            operands(lhs: one, rhs: one)
            attrs(predicate: CmpFPredicate = "predicate")
            results(result)
            traits(Pure, Elementwise)
            index(Elementwise)
            types(Each("lhs", Float), Is("rhs", Same("lhs")), Is("result", Mask("lhs")))
            effects()
            format "$predicate `,` $lhs `,` $rhs attr-dict `:` type($lhs)"
        }

        /// Picks `true_value` where the condition holds; the condition is a scalar or of the values' shape.
        op Select = "select" {
            operands(condition: one, true_value: one, false_value: one)
            same_as(true_value)
            traits(Pure, Elementwise)
            index(Elementwise)
            types(Each("condition", Bool), Is("false_value", Same("true_value")))
            effects()
        }

        /// Floating-point negation.
        op Negf = "negf" {
            operands(operand: one)
            same_as(operand)
            traits(Pure, Elementwise, SameTypes)
            index(Elementwise)
            types(All(Float))
            effects()
            format "$operand attr-dict `:` type($result)"
        }
    }
}
