//! `hivm`: what Ascend's cores do, as AscendNPU-IR has it: copies between memories, arithmetic of vectors, products, flags.
//!
//! A core is several queues of instructions, its *pipes*, which run beside each other: `PIPE_MTE2` copies from global memory, `PIPE_MTE3` to it, `PIPE_V` computes with
//! vectors, `PIPE_MTE1` brings operands to products, `PIPE_M` multiplies, `PIPE_FIX` takes products away, and `PIPE_S` is the scalar unit, which issues to all. What one of
//! them reads that another one writes is put in order by flags: `set_flag` in the queue of the first, `wait_flag` in that of the second, with the number of an event.
//! What a vector instruction reads of another one needs a `pipe_barrier`.
//!
//! A *block* is a cube core, which multiplies, and a vector core, each with memories and queues of its own. They have global memory in common, and a program runs on both:
//! `sync_block_set` in one of them and `sync_block_wait` in the other put in order what one reads of the other.
//!
//! Operations read `ins` and write `out`; both are views ([`memref`](crate::dialect::memref)) or, before buffers are chosen, tensors, with a result for what is
//! written; operands of vectors may be numbers. Each has all that the public project writes of it, of which the compiler makes a part.

use std::ops::Range;

use super::shaped_rules as rules;
use crate::attr_enum;
use crate::attrs::{Flag, Truth};
use crate::entity::Op;
use crate::module::Module;
use crate::opdef::{Access, Effect, Resource};

attr_enum! {
    /// A queue of instructions. Those behind `All` are not used by the compiler.
    #[allow(missing_docs)]
    Pipe as "hivm.pipe" {
        S = "PIPE_S", V = "PIPE_V", M = "PIPE_M", Mte1 = "PIPE_MTE1", Mte2 = "PIPE_MTE2", Mte3 = "PIPE_MTE3", Fix = "PIPE_FIX", All = "PIPE_ALL",
        Mte4 = "PIPE_MTE4", Mte5 = "PIPE_MTE5", V2 = "PIPE_V2", Mte2L1a = "VIRTUAL_PIPE_MTE2_L1A", Mte2L1b = "VIRTUAL_PIPE_MTE2_L1B",
        Num = "PIPE_NUM", Unassigned = "PIPE_UNASSIGNED",
    }
}

attr_enum! {
    /// A flag between two queues.
    #[allow(missing_docs)]
    Event as "hivm.event" {
        Id0 = "EVENT_ID0", Id1 = "EVENT_ID1", Id2 = "EVENT_ID2", Id3 = "EVENT_ID3",
        Id4 = "EVENT_ID4", Id5 = "EVENT_ID5", Id6 = "EVENT_ID6", Id7 = "EVENT_ID7",
    }
}

attr_enum! {
    /// A kind of core.
    #[allow(missing_docs)]
    CoreType as "hivm.tcore_type" {
        Cube = "CUBE", Vector = "VECTOR", CubeOrVector = "CUBE_OR_VECTOR", CubeAndVector = "CUBE_AND_VECTOR",
    }
}

/// The cores of a block.
pub const CORES: [CoreType; 2] = [CoreType::Cube, CoreType::Vector];

attr_enum! {
    /// Which cores a flag between cores is for.
    #[allow(missing_docs)]
    SyncBlockInstrMode as "hivm.sync_block_instr_mode" {
        InterBlock = "INTER_BLOCK_SYNCHRONIZATION", InterSubblock = "INTER_SUBBLOCK_SYNCHRONIZATION", IntraBlock = "INTRA_BLOCK_SYNCHRONIZATION",
    }
}

attr_enum! {
    /// How elements are combined.
    #[allow(missing_docs)]
    ReduceKind as "hivm.reduce_op" {
        Sum = "sum", Max = "max", Min = "min", Prod = "prod", MaxIndexLeft = "max_with_index_left", MaxIndexRight = "max_with_index_right",
        MinIndexLeft = "min_with_index_left", MinIndexRight = "min_with_index_right", MaxIndex = "max_with_index", MinIndex = "min_with_index",
        Any = "any", All = "all", Xori = "xori", Ori = "ori", Andi = "andi", None = "none",
    }
}

attr_enum! {
    /// How elements are compared.
    #[allow(missing_docs)]
    CompareMode as "hivm.compare_mode" { Eq = "eq", Ne = "ne", Lt = "lt", Gt = "gt", Ge = "ge", Le = "le" }
}

attr_enum! {
    /// How a conversion rounds: `rint` to nearest, ties to even, `round` ties away from zero, `odd` to odd; `truncwithoverflow` keeps the low bits.
    #[allow(missing_docs)]
    RoundMode as "hivm.round_mode" {
        Rint = "rint", Round = "round", Floor = "floor", Ceil = "ceil", Trunc = "trunc", Odd = "odd", TruncWithOverflow = "truncwithoverflow",
    }
}

attr_enum! {
    /// What a conversion takes integers for.
    #[allow(missing_docs)]
    CastKind as "hivm.cast" { Signed = "cast_signed", Unsigned = "cast_unsigned", Bits = "bitcast" }
}

attr_enum! {
    /// What is in a destination where the source has nothing.
    #[allow(missing_docs)]
    PadMode as "hivm.padmode" { Null = "PadNull", FirstElement = "PadFirstElem", Value = "PadValue" }
}

attr_enum! {
    /// How a store combines elements with those that are there.
    #[allow(missing_docs)]
    AtomicKind as "hivm.atomic_kind" {
        None = "none", Add = "add", Max = "max", Min = "min", And = "and", Or = "or", Xor = "xor", Umax = "umax", Umin = "umin",
    }
}

attr_enum! {
    /// How long what is loaded stays in the cache.
    #[allow(missing_docs)]
    EvictionPolicy as "hivm.eviction_policy" { First = "EvictFirst", Last = "EvictLast", Normal = "EvictNormal" }
}

attr_enum! {
    /// What a fixpipe makes of the order that products are added up in: `nz2nd` rows, `nz2dn` columns, `normal` the same.
    #[allow(missing_docs)]
    DmaMode as "hivm.dma_mode" { Nz2nd = "nz2nd", Nz2dn = "nz2dn", Normal = "normal" }
}

attr_enum! {
    /// How a fixpipe converts elements.
    #[allow(missing_docs)]
    PreQuant as "hivm.fixpipe_pre_quant_mode" {
        None = "NO_QUANT", F16 = "F322F16", I8 = "S322I8", F32 = "QF322F32_PRE", Bf16 = "F322BF16",
    }
}

attr_enum! {
    /// How what a fixpipe writes is divided among the vector cores that go with a cube core.
    #[allow(missing_docs)]
    DualDstMode as "hivm.fixpipe_dual_dst_mode" { None = "NO_DUAL", Rows = "ROW_SPLIT", Columns = "COLUMN_SPLIT" }
}

attr_enum! {
    /// Which of these vector cores a fixpipe writes for.
    #[allow(missing_docs)]
    SubBlock as "hivm.fixpipe_sub_block" { First = "sub_block_0", Second = "sub_block_1" }
}

const READ: Effect = Effect::new(Access::Read, Resource::Shared, Some("ins"));
const WRITE: Effect = Effect::new(Access::Write, Resource::Shared, Some("out"));
/// It is not to be moved or erased.
const STAYS: Effect = Effect::new(Access::Write, Resource::Other, None);

/// Elementwise operations of vectors that have nothing but operands, and combinations of elements up to each, beside others that are written out.
macro_rules! with_vectors {
    (
        vectors { $($(#[doc = $doc:literal])+ $Op:ident = $name:literal;)* }
        cumulative { $($(#[doc = $sdoc:literal])+ $Scan:ident = $sname:literal;)* }
        $($others:tt)*
    ) => {
        crate::dialect! {
            dialect "hivm" Hivm;

            $(
                $(#[doc = $doc])+
                op $Op = $name {
                    operands(ins: var, out: one, temp_buffer: opt)
                    attrs(broadcast: Option<Vec<i64>> = "broadcast", transpose: Option<Vec<i64>> = "transpose")
                    variadic_results(results)
                    index(Unrelated)
                    types(Each("out", Shaped), Each("temp_buffer", Shaped), Written("results", "out"))
                    effects(READ, WRITE)
                    format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`temp_buffer` `(` $temp_buffer^ `:` type($temp_buffer) `)`)? (`broadcast` `=` $broadcast^)? (`transpose` `=` $transpose^)? (`->` type($results)^)?"
                    verify rules::elementwise
                }
            )*

            $(
                $(#[doc = $sdoc])+
                op $Scan = $sname {
                    operands(ins: one, out: one, temp_buffer: opt)
                    attrs(dims: Vec<i64> = "cum_dims", reverse: Truth = "reverse")
                    variadic_results(results)
                    index(Unrelated)
                    types(Each("ins", Shaped), Each("out", Shaped), Each("temp_buffer", Shaped), Written("results", "out"))
                    effects(READ, WRITE)
                    format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`temp_buffer` `(` $temp_buffer^ `:` type($temp_buffer) `)`)? `cum_dims` `=` $cum_dims `reverse` `=` $reverse (`->` type($results)^)?"
                    verify rules::cumulative
                }
            )*

            $($others)*
        }
    };
}

with_vectors! {
    vectors {
        /// e to the power of each element.
        Vexp = "hir.vexp";
        /// 2 to the power of each element.
        Vexp2 = "hir.vexp2";
        /// e to the power of each element, less 1.
        Vexpm1 = "hir.vexpm1";
        /// The natural logarithm of each element.
        Vln = "hir.vln";
        /// The logarithm to base 2 of each element.
        Vlog2 = "hir.vlog2";
        /// The logarithm to base 10 of each element.
        Vlog10 = "hir.vlog10";
        /// The natural logarithm of 1 + each element.
        Vlog1p = "hir.vlog1p";
        /// The exponent of each element.
        Vilogb = "hir.vilogb";
        /// Each element times 2 to the power of another, which is a whole number in a float.
        Vldexp = "hir.vldexp";
        /// The square root of each element.
        Vsqrt = "hir.vsqrt";
        /// The reciprocal square root of each element.
        Vrsqrt = "hir.vrsqrt";
        /// The reciprocal of each element.
        Vrec = "hir.vrec";
        /// The larger of each element and 0.
        Vrelu = "hir.vrelu";
        /// The hyperbolic tangent of each element.
        Vtanh = "hir.vtanh";
        /// The sine of each element.
        Vsin = "hir.vsin";
        /// The cosine of each element.
        Vcos = "hir.vcos";
        /// The tangent of each element.
        Vtan = "hir.vtan";
        /// The arctangent of each element.
        Vatan = "hir.vatan";
        /// The error function of each element.
        Verf = "hir.verf";
        /// Whether each element is infinite.
        Visinf = "hir.visinf";
        /// Whether each element is no number.
        Visnan = "hir.visnan";
        /// The absolute value of each element.
        Vabs = "hir.vabs";
        /// The bits of each element, inverted.
        Vnot = "hir.vnot";
        /// The sum of elements.
        Vadd = "hir.vadd";
        /// The difference of elements.
        Vsub = "hir.vsub";
        /// The product of elements.
        Vmul = "hir.vmul";
        /// The remainder of a division, with the sign of the dividend.
        Vmod = "hir.vmod";
        /// The same of elements without a sign.
        Vmodui = "hir.vmodui";
        /// Each element to the power of another.
        Vpow = "hir.vpow";
        /// The bits that both elements have.
        Vand = "hir.vand";
        /// The bits that either element has.
        Vor = "hir.vor";
        /// The bits that one of two elements has.
        Vxor = "hir.vxor";
        /// Bits moved up by a number.
        Vshl = "hir.vshl";
        /// Elements of the second operand where the first holds, of the third elsewhere.
        Vsel = "hir.vsel";
    }
    cumulative {
        /// Sums of the elements along a dimension up to each, or from each on.
        Vcumsum = "hir.vcumsum";
        /// Products of the elements along a dimension up to each, or from each on.
        Vcumprod = "hir.vcumprod";
        /// The largest of the elements along a dimension up to each, or from each on.
        Vcummax = "hir.vcummax";
        /// The smallest of the elements along a dimension up to each, or from each on.
        Vcummin = "hir.vcummin";
    }

    /// The number of the program among all.
    op GetBlockIdx = "hir.get_block_idx" {
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("result", Fixed(crate::Type::I64)))
        effects()
        format "attr-dict `->` type($result)"
    }

    /// How many programs there are.
    op GetBlockNum = "hir.get_block_num" {
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("result", Fixed(crate::Type::I64)))
        effects()
        format "attr-dict `->` type($result)"
    }

    /// The number of the vector core among those that go with a cube core.
    op GetSubBlockIdx = "hir.get_sub_block_idx" {
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("result", Fixed(crate::Type::I64)))
        effects()
        format "attr-dict `->` type($result)"
    }

    /// How many vector cores go with a cube core.
    op GetSubBlockNum = "hir.get_sub_block_num" {
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("result", Fixed(crate::Type::I64)))
        effects()
        format "attr-dict `->` type($result)"
    }

    /// The memory at an address of a local memory; with several addresses, a buffer of several slots.
    op PointerCast = "hir.pointer_cast" {
        operands(addrs: var, dynamic_sizes: var)
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("addrs", Fixed(crate::Type::I64)), Is("dynamic_sizes", Fixed(crate::Type::INDEX)))
        effects()
        format "`(` $addrs `)` (`[` $dynamic_sizes^ `]`)? attr-dict `:` type($result)"
        verify verify_pointer_cast
    }

    /// Copies from global memory to UB (`PIPE_MTE2`).
    op Load = "hir.load" {
        operands(ins: one, out: one, pad_value: opt, left_padding_num: opt, right_padding_num: opt, init_condition: opt)
        attrs(
            pad_mode: Option<PadMode> = "pad_mode", init_out_buffer: Option<Truth> = "init_out_buffer",
            may_implicit_transpose_with_last_axis: Option<Truth> = "may_implicit_transpose_with_last_axis",
            eviction_policy: Option<EvictionPolicy> = "eviction_policy", tcoretype: Option<CoreType> = "tcoretype", no_alias: bool = "inter_no_alias",
        )
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("out", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict (`pad_mode` `=` $pad_mode^)? (`pad_value` `=` $pad_value^ `:` type($pad_value))? (`left_padding_num` `=` $left_padding_num^ `:` type($left_padding_num))? (`init_out_buffer` `=` $init_out_buffer^)? (`right_padding_num` `=` $right_padding_num^ `:` type($right_padding_num))? (`init_condition` `=` $init_condition^ `:` type($init_condition))? (`may_implicit_transpose_with_last_axis` `=` $may_implicit_transpose_with_last_axis^)? (`eviction_policy` `=` $eviction_policy^)? (`core_type` `=` $tcoretype^)? (`->` type($results)^)?"
        verify rules::copy
    }

    /// Copies from UB to global memory (`PIPE_MTE3`).
    op Store = "hir.store" {
        operands(ins: one, out: one)
        attrs(
            atomic_kind: Option<AtomicKind> = "atomic_kind",
            may_implicit_transpose_with_last_axis: Option<Truth> = "may_implicit_transpose_with_last_axis", no_alias: bool = "inter_no_alias",
        )
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("out", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict (`atomic` `=` $atomic_kind^)? (`->` type($results)^)?"
        verify rules::copy
    }

    /// Copies between local memories: within UB (`PIPE_V`), from L1 to the operands of products (`PIPE_MTE1`).
    op Copy = "hir.copy" {
        operands(ins: one, out: one, pad_value: opt)
        attrs(pad_mode: Option<PadMode> = "pad_mode", collapse_reassociation: Option<crate::Attr> = "collapse_reassociation")
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("out", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` attr-dict (`pad_mode` `=` $pad_mode^)? (`pad_value` `=` $pad_value^ `:` type($pad_value))? (`collapse_reassociation` `=` $collapse_reassociation^)? (`->` type($results)^)?"
        verify rules::copy
    }

    /// Copies from global memory to L1, in the order that products want (`PIPE_MTE2`).
    op Nd2nz = "hir.nd2nz" {
        operands(ins: one, out: one, pad_value: opt, init_condition: opt)
        attrs(dst_continuous: Flag = "dst_continuous", init_out_buffer: Option<Truth> = "init_out_buffer", no_alias: bool = "inter_no_alias")
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("out", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`init_out_buffer` `=` $init_out_buffer^)? (`pad_value` `=` $pad_value^ `:` type($pad_value))? (`init_condition` `=` $init_condition^ `:` type($init_condition))? (`->` type($results)^)?"
    }

    /// Copies what products were added up in to global memory or L1, rounded to the destination's elements (`PIPE_FIX`).
    op Fixpipe = "hir.fixpipe" {
        operands(ins: one, out: one, unit_flag_cond: var, quant_scale: opt)
        attrs(
            dma_mode: Option<DmaMode> = "dma_mode", pre_quant: Option<PreQuant> = "pre_quant",
            dual_dst_mode: Option<DualDstMode> = "dual_dst_mode", sub_block: Option<SubBlock> = "sub_block_idx", unit_flag_mode: Option<crate::Attr> = "unit_flag_mode", no_alias: bool = "inter_no_alias",
        )
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("out", Shaped), Is("unit_flag_cond", Fixed(crate::Type::I1)), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`quant_scale` `=` $quant_scale^ `:` type($quant_scale))? (`dual_dst_mode` `=` $dual_dst_mode^)? (`unit_flag_mode` `(` $unit_flag_mode^ `)`)? (`unit_flag_cond` `(` $unit_flag_cond^ `)`)? (`->` type($results)^)?"
        verify verify_fixpipe
    }

    /// `out = a · b`, added to what is there unless `init` (`PIPE_M`; what it reads of L1 comes by `PIPE_MTE1`); m, k and n are the extents.
    op Mmad = "hir.mmadL1" {
        operands(a: one, b: one, init: one, m: one, k: one, n: one, out: one, sync_related_args: var, unit_flag_cond: var, per_channel_bias: opt)
        attrs(
            a_transpose: Flag = "a_transpose", b_transpose: Flag = "b_transpose", enable_hf32: Flag = "enable_HF32", enable_i4: Flag = "enable_I4",
            unit_flag_mode: Option<crate::Attr> = "unit_flag_mode",
        )
        variadic_results(results)
        index(Unrelated)
        types(Each("a", Shaped), Each("b", Shaped), Each("out", Shaped), Each("per_channel_bias", Shaped), Is("init", Fixed(crate::Type::I1)), Is("unit_flag_cond", Fixed(crate::Type::I1)), Written("results", "out"))
        effects(Effect::new(Access::Read, Resource::Shared, Some("a")), Effect::new(Access::Read, Resource::Shared, Some("b")), WRITE)
        format "attr-dict `ins` `(` $a `,` $b `,` $init `,` $m `,` $k `,` $n (`,` $per_channel_bias^)? `:` type($a) `,` type($b) `,` type($init) `,` type($m) `,` type($k) `,` type($n) (`,` type($per_channel_bias)^)? `)` `outs` `(` $out `:` type($out) `)` (`sync_related_args` `(` $sync_related_args^ `:` type($sync_related_args) `)`)? (`unit_flag_mode` `(` $unit_flag_mode^ `)`)? (`unit_flag_cond` `(` $unit_flag_cond^ `)`)? (`->` type($results)^)?"
    }

    /// Elements in another type, rounded once.
    op Vcast = "hir.vcast" {
        operands(ins: var, out: one, temp_buffer: opt)
        attrs(
            round_mode: Option<RoundMode> = "round_mode", kind: Option<CastKind> = "cast",
            broadcast: Option<Vec<i64>> = "broadcast", transpose: Option<Vec<i64>> = "transpose",
        )
        variadic_results(results)
        index(Unrelated)
        types(Each("out", Shaped), Each("temp_buffer", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`temp_buffer` `(` $temp_buffer^ `:` type($temp_buffer) `)`)? (`round_mode` `=` $round_mode^)? (`cast` `=` $cast^)? (`broadcast` `=` $broadcast^)? (`transpose` `=` $transpose^)? (`->` type($results)^)?"
        verify rules::elementwise
    }

    /// The quotient of elements.
    op Vdiv = "hir.vdiv" {
        operands(ins: var, out: one, temp_buffer: opt)
        attrs(
            signed: Option<Truth> = "isSigned", high_precision: Option<Truth> = "isHP",
            broadcast: Option<Vec<i64>> = "broadcast", transpose: Option<Vec<i64>> = "transpose",
        )
        variadic_results(results)
        index(Unrelated)
        types(Each("out", Shaped), Each("temp_buffer", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`temp_buffer` `(` $temp_buffer^ `:` type($temp_buffer) `)`)? (`isSigned` `=` $isSigned^)? (`isHP` `=` $isHP^)? (`broadcast` `=` $broadcast^)? (`transpose` `=` $transpose^)? (`->` type($results)^)?"
        verify rules::elementwise
    }

    /// The larger of two elements.
    op Vmax = "hir.vmax" {
        operands(ins: var, out: one, temp_buffer: opt)
        attrs(signed: Option<Truth> = "is_signed", broadcast: Option<Vec<i64>> = "broadcast", transpose: Option<Vec<i64>> = "transpose")
        variadic_results(results)
        index(Unrelated)
        types(Each("out", Shaped), Each("temp_buffer", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`temp_buffer` `(` $temp_buffer^ `:` type($temp_buffer) `)`)? (`is_signed` `=` $is_signed^)? (`broadcast` `=` $broadcast^)? (`transpose` `=` $transpose^)? (`->` type($results)^)?"
        verify rules::elementwise
    }

    /// The smaller of two elements.
    op Vmin = "hir.vmin" {
        operands(ins: var, out: one, temp_buffer: opt)
        attrs(signed: Option<Truth> = "is_signed", broadcast: Option<Vec<i64>> = "broadcast", transpose: Option<Vec<i64>> = "transpose")
        variadic_results(results)
        index(Unrelated)
        types(Each("out", Shaped), Each("temp_buffer", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`temp_buffer` `(` $temp_buffer^ `:` type($temp_buffer) `)`)? (`is_signed` `=` $is_signed^)? (`broadcast` `=` $broadcast^)? (`transpose` `=` $transpose^)? (`->` type($results)^)?"
        verify rules::elementwise
    }

    /// Bits moved down by a number; without `is_signed = false` the sign moves in.
    op Vshr = "hir.vshr" {
        operands(ins: var, out: one, temp_buffer: opt)
        attrs(
            round: Option<Truth> = "round", signed: Option<Truth> = "is_signed",
            broadcast: Option<Vec<i64>> = "broadcast", transpose: Option<Vec<i64>> = "transpose",
        )
        variadic_results(results)
        index(Unrelated)
        types(Each("out", Shaped), Each("temp_buffer", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`temp_buffer` `(` $temp_buffer^ `:` type($temp_buffer) `)`)? (`round` `:` $round^)? (`is_signed` `:` $is_signed^)? (`broadcast` `=` $broadcast^)? (`transpose` `=` $transpose^)? (`->` type($results)^)?"
        verify rules::elementwise
    }

    /// Elements with the dimensions in another order: dimension i of the result is dimension `permutation[i]`.
    op Vtranspose = "hir.vtranspose" {
        operands(ins: one, out: one, temp_buffer: opt)
        attrs(permutation: Option<Vec<i64>> = "permutation", disable_align: Option<Truth> = "disable_align")
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("out", Shaped), Each("temp_buffer", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`temp_buffer` `(` $temp_buffer^ `:` type($temp_buffer) `)`)? (`permutation` `=` $permutation^)? (`disable_align` `=` $disable_align^)? (`->` type($results)^)?"
        verify rules::transposed
    }

    /// Elements at indices along a dimension, the last one unless it is said.
    op Vgather = "hir.vgather" {
        operands(ins: one, indices: one, out: one, temp_buffer: opt)
        attrs(axis: Option<i64> = "gather_axis")
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("indices", Shaped), Each("out", Shaped), Each("temp_buffer", Shaped), Written("results", "out"))
        effects(READ, Effect::new(Access::Read, Resource::Shared, Some("indices")), WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `indices` `(` $indices `:` type($indices) `)` `outs` `(` $out `:` type($out) `)` (`temp_buffer` `(` $temp_buffer^ `:` type($temp_buffer) `)`)? (`gather_axis` `=` $gather_axis^)? (`->` type($results)^)?"
    }

    /// Whether elements compare so.
    op Vcmp = "hir.vcmp" {
        operands(ins: var, out: one, temp_buffer: opt)
        attrs(
            mode: Option<CompareMode> = "compare_mode", signed: Option<Truth> = "is_signed",
            broadcast: Option<Vec<i64>> = "broadcast", transpose: Option<Vec<i64>> = "transpose",
        )
        variadic_results(results)
        index(Unrelated)
        types(Each("out", Shaped), Each("temp_buffer", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`temp_buffer` `(` $temp_buffer^ `:` type($temp_buffer) `)`)? (`compare_mode` `=` $compare_mode^)? (`is_signed` `:` $is_signed^)? (`broadcast` `=` $broadcast^)? (`transpose` `=` $transpose^)? (`->` type($results)^)?"
        verify rules::elementwise
    }

    /// A number, or the elements of a view along its dimensions of extent 1 (`broadcast_dims`), as often as the destination has them.
    op Vbrc = "hir.vbrc" {
        operands(ins: one, out: one, temp_buffer: opt)
        attrs(broadcast_dims: Option<Vec<i64>> = "broadcast_dims")
        variadic_results(results)
        index(Unrelated)
        types(Each("out", Shaped), Each("temp_buffer", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`temp_buffer` `(` $temp_buffer^ `:` type($temp_buffer) `)`)? (`broadcast_dims` `=` $broadcast_dims^)? (`->` type($results)^)?"
        verify rules::broadcast
    }

    /// Elements combined along dimensions, of which the destination has one.
    op Vreduce = "hir.vreduce" {
        operands(ins: one, out: var, temp_buffer: opt, indices: opt)
        attrs(
            kind: ReduceKind = "arith", unsigned_src: Option<Truth> = "unsigned_src", tie_break_left: Option<Truth> = "tie_break_left",
            dims: Vec<i64> = "reduce_dims",
        )
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("out", Shaped), Each("temp_buffer", Shaped), Each("indices", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict $arith `ins` `(` $ins `:` type($ins) `)` (`indices` `(` $indices^ `:` type($indices) `)`)? `outs` `(` $out `:` type($out) `)` (`temp_buffer` `(` $temp_buffer^ `:` type($temp_buffer) `)`)? (`unsigned_src` `=` $unsigned_src^)? (`tie_break_left` `=` $tie_break_left^)? `reduce_dims` `=` $reduce_dims (`->` type($results)^)?"
        verify rules::reduction
    }

    /// Numbers: `offset` and on from there, by a stride for each dimension.
    op Varange = "hir.varange" {
        operands(out: one, offset: opt, strides: var)
        variadic_results(results)
        index(Unrelated)
        types(Each("out", Shaped), Is("offset", Fixed(crate::Type::INDEX)), Is("strides", Fixed(crate::Type::INDEX)), Written("results", "out"))
        effects(WRITE)
        format "attr-dict (`offset` `[` $offset^ `]`)? `strides` `[` $strides `]` `outs` `(` $out `:` type($out) `)` (`->` type($results)^)?"
        verify rules::range
    }

    /// Raises a flag when the instructions before it in the queue `set_pipe` are done.
    op SetFlag = "hir.set_flag" {
        operands(event: opt)
        attrs(set_pipe: Pipe = "set_pipe", wait_pipe: Pipe = "wait_pipe", static_event: Option<Event> = "static_event_id")
        index(Unrelated)
        types(Is("event", Fixed(crate::Type::I64)))
        effects(STAYS)
        format "`[` $set_pipe `,` $wait_pipe `,` ($event^)? ($static_event_id^)? `]` attr-dict"
        verify verify_event
    }

    /// Lets the instructions behind it in the queue `wait_pipe` wait for a flag, and lowers it.
    op WaitFlag = "hir.wait_flag" {
        operands(event: opt)
        attrs(set_pipe: Pipe = "set_pipe", wait_pipe: Pipe = "wait_pipe", static_event: Option<Event> = "static_event_id")
        index(Unrelated)
        types(Is("event", Fixed(crate::Type::I64)))
        effects(STAYS)
        format "`[` $set_pipe `,` $wait_pipe `,` ($event^)? ($static_event_id^)? `]` attr-dict"
        verify verify_event
    }

    /// Lets the instructions behind it in a queue (of all) wait for those before it.
    op PipeBarrier = "hir.pipe_barrier" {
        attrs(pipe: Pipe = "pipe")
        index(Unrelated)
        types()
        effects(STAYS)
        format "`[` $pipe `]` attr-dict"
    }

    /// Raises a flag for another core when the instructions before it in the queue `tpipe` are done; there `pipe` waits for it.
    op SyncBlockSet = "hir.sync_block_set" {
        operands(flag: opt, ffts_base_addr: opt)
        attrs(
            core: CoreType = "tcore_type", tpipe: Pipe = "tpipe", pipe: Pipe = "pipe", static_flag: Option<i64> = "static_flag_id",
            instr_mode: Option<SyncBlockInstrMode> = "tsync_instr_mode",
        )
        index(Unrelated)
        types(Is("flag", Fixed(crate::Type::I64)), Is("ffts_base_addr", Fixed(crate::Type::I64)))
        effects(STAYS)
        format "attr-dict `[` $tcore_type `,` $tpipe `,` $pipe `]` `flag` `=` ($flag^)? ($static_flag_id^)? (`ffts_base_addr` `=` $ffts_base_addr^)? (`sync_instr_mode` `=` $tsync_instr_mode^)?"
        verify verify_flag
    }

    /// Lets the instructions behind it in the queue `pipe` wait for a flag that another core raises behind its queue `tpipe`.
    op SyncBlockWait = "hir.sync_block_wait" {
        operands(flag: opt)
        attrs(
            core: CoreType = "tcore_type", tpipe: Pipe = "tpipe", pipe: Pipe = "pipe", static_flag: Option<i64> = "static_flag_id",
            instr_mode: Option<SyncBlockInstrMode> = "tsync_instr_mode",
        )
        index(Unrelated)
        types(Is("flag", Fixed(crate::Type::I64)))
        effects(STAYS)
        format "attr-dict `[` $tcore_type `,` $tpipe `,` $pipe `]` `flag` `=` ($flag^)? ($static_flag_id^)? (`sync_instr_mode` `=` $tsync_instr_mode^)?"
        verify verify_flag
    }

    /// Where flags between cores lie in global memory.
    op SetFftsBaseAddr = "hir.set_ffts_base_addr" {
        operands(address: one)
        index(Unrelated)
        types(Is("address", Fixed(crate::Type::I64)))
        effects(STAYS)
        format "attr-dict $address"
    }
}

/// Which operands an instruction writes: its group `out`.
pub fn written(module: &Module, op: Op) -> Range<usize> {
    let Some(group) = module.def(op).and_then(|def| def.group("out")) else { return 0..0 };
    let size = |g: usize| module.operand_group(op, g).len();
    let first = (0..group).map(size).sum();
    first..first + size(group)
}

/// Either a value or an attribute says which one.
fn one_of(value: bool, attribute: bool, what: &str) -> Result<(), String> {
    if value != attribute {
        Ok(())
    } else {
        Err(format!("{what} must be said once, by a value or by an attribute"))
    }
}

fn verify_event(module: &Module, op: Op) -> Result<(), String> {
    one_of(!module.operands(op).is_empty(), module.op_attr(op, "static_event_id").is_some(), "the event")
}

fn verify_flag(module: &Module, op: Op) -> Result<(), String> {
    one_of(
        !module.operand_group(op, 0).is_empty(),
        module.op_attr(op, "static_flag_id").is_some(),
        "the flag",
    )
}

fn verify_pointer_cast(module: &Module, op: Op) -> Result<(), String> {
    if PointerCast(op).addrs(module).is_empty() { Err("it needs an address".into()) } else { Ok(()) }
}

fn verify_fixpipe(module: &Module, op: Op) -> Result<(), String> {
    let fixpipe = Fixpipe(op);
    let divides = fixpipe.dual_dst_mode(module).is_some_and(|mode| mode != DualDstMode::None);
    if divides && fixpipe.sub_block(module).is_some() {
        return Err("what is divided among vector cores is for no single one of them".into());
    }
    Ok(())
}
