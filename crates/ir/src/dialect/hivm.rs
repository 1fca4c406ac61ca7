//! `hivm`: what Ascend's cores do, as AscendNPU-IR has it: copies between memories, arithmetic of vectors, products, flags.
//!
//! A core is several queues of instructions, its *pipes*, which run beside each other: `PIPE_MTE2` copies from global memory, `PIPE_MTE3` to it, `PIPE_V` computes with
//! vectors, `PIPE_MTE1` brings operands to products, `PIPE_M` multiplies, `PIPE_FIX` takes products away, and `PIPE_S` is the scalar unit, which issues to all. What one of
//! them reads that another one writes is put in order by flags: `set_flag` in the queue of the first, `wait_flag` in that of the second, with the number of an event.
//! What a vector instruction reads of another one needs a `pipe_barrier`.
//!
//! Operations read `ins` and write `outs`; both are views ([`memref`](crate::dialect::memref)), and operands of vectors may be numbers.

use crate::attr_enum;
use crate::opdef::{Access, Effect, Resource};

attr_enum! {
    /// A queue of instructions.
    #[allow(missing_docs)]
    Pipe {
        S = "PIPE_S", V = "PIPE_V", M = "PIPE_M", Mte1 = "PIPE_MTE1", Mte2 = "PIPE_MTE2", Mte3 = "PIPE_MTE3", Fix = "PIPE_FIX", All = "PIPE_ALL",
    }
}

attr_enum! {
    /// How elements are combined.
    #[allow(missing_docs)]
    ReduceKind { Sum = "sum", Max = "max", Min = "min" }
}

attr_enum! {
    /// How elements are compared.
    #[allow(missing_docs)]
    CompareMode { Eq = "eq", Ne = "ne", Lt = "lt", Gt = "gt", Ge = "ge", Le = "le" }
}

const READ: Effect = Effect::new(Access::Read, Resource::Shared, Some("ins"));
const WRITE: Effect = Effect::new(Access::Write, Resource::Shared, Some("out"));
/// It is not to be moved or erased.
const STAYS: Effect = Effect::new(Access::Write, Resource::Other, None);

crate::dialect! {
    dialect "hivm" Hivm;

    /// The number of the program among all.
    op GetBlockIdx = "hir.get_block_idx" {
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("result", Fixed(crate::Type::I64)))
        effects()
        format "attr-dict `->` type($result)"
    }

    /// The memory at an address of a local memory.
    op PointerCast = "hir.pointer_cast" {
        operands(addr: one)
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("addr", Fixed(crate::Type::I64)))
        effects()
        format "`(` $addr `)` attr-dict `:` type($result)"
    }

    /// Copies from global memory to UB (`PIPE_MTE2`).
    op Load = "hir.load" {
        operands(ins: one, out: one)
        attrs(no_alias: bool = "inter_no_alias")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// Copies from UB to global memory (`PIPE_MTE3`).
    op Store = "hir.store" {
        operands(ins: one, out: one)
        attrs(no_alias: bool = "inter_no_alias")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// Copies between local memories: within UB (`PIPE_V`), from L1 to the operands of products (`PIPE_MTE1`).
    op Copy = "hir.copy" {
        operands(ins: one, out: one)
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// Copies from global memory to L1, in the order that products want (`PIPE_MTE2`).
    op Nd2nz = "hir.nd2nz" {
        operands(ins: one, out: one)
        attrs(no_alias: bool = "inter_no_alias")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)`"
    }

    /// Copies what products were added up in to global memory or L1, rounded to the destination's elements (`PIPE_FIX`).
    op Fixpipe = "hir.fixpipe" {
        operands(ins: one, out: one)
        attrs(no_alias: bool = "inter_no_alias")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// `out = a · b`, added to what is there unless `init` (`PIPE_M`); m, k and n are the extents.
    op Mmad = "hir.mmadL1" {
        operands(a: one, b: one, init: one, m: one, k: one, n: one, out: one)
        index(Unrelated)
        types(Is("init", Fixed(crate::Type::I1)))
        effects(Effect::new(Access::Read, Resource::Shared, Some("a")), Effect::new(Access::Read, Resource::Shared, Some("b")), WRITE)
        format "attr-dict `ins` `(` $a `,` $b `,` $init `,` $m `,` $k `,` $n `:` type($a) `,` type($b) `,` type($init) `,` type($m) `,` type($k) `,` type($n) `)` `outs` `(` $out `:` type($out) `)`"
    }

    /// Elements in another type, with one rounding to nearest even, towards zero where integers come of floats.
    op Vcast = "hir.vcast" {
        operands(ins: one, out: one)
        attrs(unsigned: bool = "unsigned")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// A number, or the elements of a view along its dimensions of extent 1, as often as the destination has them.
    op Vbrc = "hir.vbrc" {
        operands(ins: one, out: one)
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// Elements combined along a dimension, of which the destination has one.
    op Vreduce = "hir.vreduce" {
        operands(ins: one, out: one)
        attrs(kind: ReduceKind = "kind", dims: Vec<i32> = "reduce_dims")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`<` `` $kind `` `>` `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` `reduce_dims` `=` $reduce_dims attr-dict"
    }

    /// Numbers: `offset` and on from there, by a stride for each dimension.
    op Varange = "hir.varange" {
        operands(offset: one, strides: var, out: one)
        index(Unrelated)
        types(Each("offset", Int), Each("strides", Int))
        effects(WRITE)
        format "`offset` `[` $offset `]` `strides` `[` $strides `]` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// Whether elements compare so, as bytes of 0 or 1.
    op Vcmp = "hir.vcmp" {
        operands(ins: var, out: one)
        attrs(mode: CompareMode = "compare_mode", unsigned: bool = "unsigned")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` `compare_mode` `=` $compare_mode attr-dict"
    }

    /// Elements of the second operand where those of the first are not 0, of the third elsewhere.
    op Vsel = "hir.vsel" {
        operands(ins: var, out: one)
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// Raises a flag when the instructions before it in the queue `set_pipe` are done.
    op SetFlag = "hir.set_flag" {
        operands(event: one)
        attrs(set_pipe: Pipe = "set_pipe", wait_pipe: Pipe = "wait_pipe")
        index(Unrelated)
        types(Is("event", Fixed(crate::Type::I64)))
        effects(STAYS)
        format "`[` `<` `` $set_pipe `` `>` `,` `<` `` $wait_pipe `` `>` `,` $event `]` attr-dict"
    }

    /// Lets the instructions behind it in the queue `wait_pipe` wait for a flag, and lowers it.
    op WaitFlag = "hir.wait_flag" {
        operands(event: one)
        attrs(set_pipe: Pipe = "set_pipe", wait_pipe: Pipe = "wait_pipe")
        index(Unrelated)
        types(Is("event", Fixed(crate::Type::I64)))
        effects(STAYS)
        format "`[` `<` `` $set_pipe `` `>` `,` `<` `` $wait_pipe `` `>` `,` $event `]` attr-dict"
    }

    /// Lets the instructions behind it in a queue (of all) wait for those before it.
    op PipeBarrier = "hir.pipe_barrier" {
        attrs(pipe: Pipe = "pipe")
        index(Unrelated)
        types()
        effects(STAYS)
        format "`[` `<` `` $pipe `` `>` `]` attr-dict"
    }

    /// e to the power of each element.
    op Vexp = "hir.vexp" {
        operands(ins: var, out: one)
        attrs(unsigned: bool = "unsigned")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// The natural logarithm of each element.
    op Vln = "hir.vln" {
        operands(ins: var, out: one)
        attrs(unsigned: bool = "unsigned")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// The square root of each element.
    op Vsqrt = "hir.vsqrt" {
        operands(ins: var, out: one)
        attrs(unsigned: bool = "unsigned")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// The reciprocal square root of each element.
    op Vrsqrt = "hir.vrsqrt" {
        operands(ins: var, out: one)
        attrs(unsigned: bool = "unsigned")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// The absolute value of each element.
    op Vabs = "hir.vabs" {
        operands(ins: var, out: one)
        attrs(unsigned: bool = "unsigned")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// The bits of each element, inverted.
    op Vnot = "hir.vnot" {
        operands(ins: var, out: one)
        attrs(unsigned: bool = "unsigned")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// The sum of elements.
    op Vadd = "hir.vadd" {
        operands(ins: var, out: one)
        attrs(unsigned: bool = "unsigned")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// The difference of elements.
    op Vsub = "hir.vsub" {
        operands(ins: var, out: one)
        attrs(unsigned: bool = "unsigned")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// The product of elements.
    op Vmul = "hir.vmul" {
        operands(ins: var, out: one)
        attrs(unsigned: bool = "unsigned")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// The quotient of elements.
    op Vdiv = "hir.vdiv" {
        operands(ins: var, out: one)
        attrs(unsigned: bool = "unsigned")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// The larger of two elements.
    op Vmax = "hir.vmax" {
        operands(ins: var, out: one)
        attrs(unsigned: bool = "unsigned")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// The smaller of two elements.
    op Vmin = "hir.vmin" {
        operands(ins: var, out: one)
        attrs(unsigned: bool = "unsigned")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// The bits that both elements have.
    op Vand = "hir.vand" {
        operands(ins: var, out: one)
        attrs(unsigned: bool = "unsigned")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// The bits that either element has.
    op Vor = "hir.vor" {
        operands(ins: var, out: one)
        attrs(unsigned: bool = "unsigned")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// The bits that one of two elements has.
    op Vxor = "hir.vxor" {
        operands(ins: var, out: one)
        attrs(unsigned: bool = "unsigned")
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }
}
