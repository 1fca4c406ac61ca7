//! `linalg`: operations on whole tensors or buffers, as MLIR has them.
//!
//! No pass makes or lowers these: they stand in the code of accelerators that is read ([`hivm`](crate::dialect::hivm)).

use super::structured::{READ, WRITE, with_structured};

with_structured! {
    dialect "linalg" Linalg;

    structured {
        /// A number everywhere.
        Fill = "fill";
        /// A function of each element.
        ElemwiseUnary = "elemwise_unary";
        /// A function of two elements.
        ElemwiseBinary = "elemwise_binary";
        /// The same elements.
        Copy = "copy";
        /// Elements of one or another operand.
        Select = "select";
        /// Sums.
        Add = "add";
        /// Differences.
        Sub = "sub";
        /// Products of elements.
        Mul = "mul";
        /// Quotients.
        Div = "div";
        /// The larger elements.
        Max = "max";
        /// The smaller elements.
        Min = "min";
        /// Exponentials.
        Exp = "exp";
        /// Logarithms.
        Log = "log";
        /// Absolute values.
        Abs = "abs";
        /// A product of matrices.
        Matmul = "matmul";
        /// The same with the first operand transposed.
        MatmulTransposeA = "matmul_transpose_a";
        /// The same with the second operand transposed.
        MatmulTransposeB = "matmul_transpose_b";
        /// Products of several matrices.
        BatchMatmul = "batch_matmul";
    }

    /// Elements computed by a function of those at places that maps say.
    op Generic = "generic" {
        operands(ins: var, out: var)
        variadic_results(results)
        regions(body: "linalg.yield") flow()
        traits(SingleBlock)
        index(Unrelated)
        types(Each("out", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict (`ins` `(` $ins^ `:` type($ins) `)`)? (`outs` `(` $out^ `:` type($out) `)`)? region($body) (`->` type($results)^)?"
    }

    /// Elements combined along dimensions by the operation that the attributes name: `{arith.addf}`.
    op Reduce = "reduce" {
        operands(ins: one, out: one)
        attrs(dimensions: Vec<i64> = "dimensions")
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("out", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` `dimensions` `=` $dimensions"
    }

    /// Elements along new dimensions.
    op Broadcast = "broadcast" {
        operands(ins: one, out: one)
        attrs(dimensions: Vec<i64> = "dimensions")
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("out", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` `dimensions` `=` $dimensions attr-dict"
    }

    /// Dimensions exchanged.
    op Transpose = "transpose" {
        operands(ins: one, out: one)
        attrs(permutation: Vec<i64> = "permutation")
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("out", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` `permutation` `=` $permutation attr-dict"
    }

    /// Ends a body, giving the elements.
    op Yield = "yield" {
        operands(values: var)
        traits(Terminator, Pure)
        index(Unrelated)
        types()
        effects()
        format "attr-dict ($values^ `:` type($values))?"
    }
}
