//! `math`: elementwise functions of floating-point values.

macro_rules! math_dialect {
    (unary { $($(#[doc = $d:literal])+ $U:ident = $un:literal : $class:ident;)* } rest { $($rest:tt)* }) => {
        crate::dialect! {
            dialect "math" Math;
            $($(#[doc = $d])+ op $U = $un {
                operands(operand: one)
                same_as(operand)
                traits(Pure, Elementwise, SameTypes)
                index(Elementwise)
                types(All($class))
                effects()
                format "$operand attr-dict `:` type($result)"
            })*
            $($rest)*
        }
    };
}

math_dialect! {
    unary {
        /// e^x
        Exp = "exp": Float;
        /// 2^x
        Exp2 = "exp2": Float;
        /// Natural logarithm.
        Log = "log": Float;
        /// Logarithm to base 2.
        Log2 = "log2": Float;
        /// Sine, in radians.
        Sin = "sin": Float;
        /// Cosine, in radians.
        Cos = "cos": Float;
        /// Tangent, in radians.
        Tan = "tan": Float;
        /// Square root.
        Sqrt = "sqrt": Float;
        /// 1/sqrt(x)
        Rsqrt = "rsqrt": Float;
        /// |x| of a floating-point number.
        Absf = "absf": Float;
        /// |x| of a signed integer.
        Absi = "absi": Int;
        /// The largest integer not above x.
        Floor = "floor": Float;
        /// The smallest integer not below x.
        Ceil = "ceil": Float;
        /// Rounds half away from zero.
        Round = "round": Float;
        /// Rounds towards zero.
        Trunc = "trunc": Float;
        /// The error function.
        Erf = "erf": Float;
        /// Hyperbolic tangent.
        Tanh = "tanh": Float;
    }
    rest {
        /// a * b + c with one rounding.
        op Fma = "fma" {
            operands(a: one, b: one, c: one)
            same_as(a)
            traits(Pure, Elementwise, SameTypes)
            index(Elementwise)
            types(All(Float))
            effects()
            format "$a `,` $b `,` $c attr-dict `:` type($result)"
        }
    }
}
