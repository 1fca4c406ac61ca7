//! `hfusion`: operations of AscendNPU-IR before it chooses instructions, as far as its code for cores has them.
//!
//! No pass makes or lowers these: they stand in the code that is read ([`hivm`](crate::dialect::hivm)).

use super::structured::{READ, WRITE, with_structured};

with_structured! {
    dialect "hfusion" Hfusion;

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
