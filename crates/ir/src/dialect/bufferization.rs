//! `bufferization`: between tensors and the buffers that hold them.
//!
//! No pass makes or lowers these: they stand in the code of accelerators that is read ([`hivm`](crate::dialect::hivm)).

use crate::attrs::Flag;
use crate::opdef::{Access, Effect, Resource};

const READS: Effect = Effect::new(Access::Read, Resource::Shared, Some("memref"));
/// It is not to be moved or erased.
const STAYS: Effect = Effect::new(Access::Write, Resource::Other, None);

crate::dialect! {
    dialect "bufferization" Bufferization;

    /// What is in a buffer, as a tensor.
    op ToTensor = "to_tensor" {
        operands(memref: one)
        attrs(restrict: Flag = "restrict", writable: Flag = "writable")
        results(result)
        index(Unrelated)
        types(Is("result", TensorOf("memref")))
        effects(READS)
        format "$memref (`restrict` $restrict^)? (`writable` $writable^)? attr-dict `:` type($memref)"
    }

    /// The buffer of a tensor.
    op ToMemref = "to_memref" {
        operands(tensor: one)
        attrs(read_only: Flag = "read_only")
        results(memref)
        index(Unrelated)
        types(Is("tensor", TensorOf("memref")))
        effects(STAYS)
        format "$tensor (`read_only` $read_only^)? attr-dict `:` type($memref)"
    }

    /// Writes a tensor into a buffer.
    op MaterializeInDestination = "materialize_in_destination" {
        operands(source: one, dest: one)
        attrs(restrict: Flag = "restrict", writable: Flag = "writable")
        variadic_results(results)
        index(Unrelated)
        types(Written("results", "dest"))
        effects(STAYS)
        format "$source `in` (`restrict` $restrict^)? (`writable` $writable^)? $dest attr-dict `:` functional-type(operands, results)"
    }

    /// A tensor with a buffer of its own.
    op AllocTensor = "alloc_tensor" {
        operands(dynamic_sizes: var, copy: opt)
        results(result)
        index(Unrelated)
        types(Is("dynamic_sizes", Fixed(crate::Type::INDEX)), Is("copy", Same("result")))
        effects(STAYS)
        format "`(` $dynamic_sizes `)` (`copy` `(` $copy^ `)`)? attr-dict `:` type($result)"
    }
}
