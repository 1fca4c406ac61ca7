//! `math`: elementwise functions of floating-point values.

macro_rules! math_dialect {
    (unary { $($(#[doc = $d:literal])+ $U:ident = $un:literal;)* } rest { $($rest:tt)* }) => {
        crate::dialect! {
            dialect "math" Math;
            $($(#[doc = $d])+ op $U = $un {
                operands(operand: one)
                same_as(operand)
                traits(Pure, Elementwise, SameTypes)
                format "$operand attr-dict `:` type($result)"
            })*
            $($rest)*
        }
    };
}

math_dialect! {
    unary {
        /// e^x
        Exp = "exp";
        /// 2^x
        Exp2 = "exp2";
        /// Natural logarithm.
        Log = "log";
        /// Logarithm to base 2.
        Log2 = "log2";
        /// Sine, in radians.
        Sin = "sin";
        /// Cosine, in radians.
        Cos = "cos";
        /// Tangent, in radians.
        Tan = "tan";
        /// Square root.
        Sqrt = "sqrt";
        /// 1/sqrt(x)
        Rsqrt = "rsqrt";
        /// |x| of a floating-point number.
        Absf = "absf";
        /// |x| of a signed integer.
        Absi = "absi";
        /// The largest integer not above x.
        Floor = "floor";
        /// The smallest integer not below x.
        Ceil = "ceil";
        /// Rounds half away from zero.
        Round = "round";
        /// Rounds towards zero.
        Trunc = "trunc";
        /// The error function.
        Erf = "erf";
        /// Hyperbolic tangent.
        Tanh = "tanh";
    }
    rest {
        /// a * b + c with one rounding.
        op Fma = "fma" {
            operands(a: one, b: one, c: one)
            same_as(a)
            traits(Pure, Elementwise, SameTypes)
            format "$a `,` $b `,` $c attr-dict `:` type($result)"
        }
    }
}
