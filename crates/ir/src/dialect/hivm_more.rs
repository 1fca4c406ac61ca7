//! `hivm`, continued: operations of AscendNPU-IR that nothing of the compiler makes or lowers. They are read, verified and printed.
//!
//! They are declared as the public project writes them, so that its files can be read and looked at beside what is emitted ([`hivm`](crate::dialect::hivm)).

use super::shaped_rules as rules;
use crate::attr_enum;
use crate::attrs::{Flag, Truth};
use crate::dialect::hivm::{AtomicKind, CoreType, Pipe};
use crate::opdef::{Access, Effect, Resource};

attr_enum! {
    /// Which cores wait for each other.
    #[allow(missing_docs)]
    SyncBlockMode as "hivm.sync_block_mode" {
        AllCube = "ALL_CUBE", AllVector = "ALL_VECTOR", AllSubVector = "ALL_SUB_VECTOR", BarrierCube = "BARRIER_CUBE", BarrierVector = "BARRIER_VECTOR", All = "ALL",
    }
}

attr_enum! {
    /// Which of the interleaved parts are taken.
    #[allow(missing_docs)]
    DeinterleaveMode as "hivm.deinterleave_mode" { First = "CHANNEL_0", Second = "CHANNEL_1", All = "ALL_CHANNELS" }
}

attr_enum! {
    /// What products are multiplied by afterwards.
    #[allow(missing_docs)]
    DescaleMode as "hivm.descale_mode" { None = "DescaleNull", PerChannel = "DescalePerChannel", PerTensor = "DescalePerTensor" }
}

attr_enum! {
    /// Which lines of the data cache.
    #[allow(missing_docs)]
    CacheLines as "hivm.DCCIMode" { One = "single_cache_line", All = "all_cache_lines" }
}

attr_enum! {
    /// Which memory the data cache is of.
    #[allow(missing_docs)]
    CacheKind as "hivm.DataCacheKind" { All = "all", Ub = "ub", Out = "out", Atomic = "atomic" }
}

const READ: Effect = Effect::new(Access::Read, Resource::Shared, Some("ins"));
const WRITE: Effect = Effect::new(Access::Write, Resource::Shared, Some("out"));
/// It is not to be moved or erased.
const STAYS: Effect = Effect::new(Access::Write, Resource::Other, None);

crate::dialect! {
    dialect "hivm" HivmMore;

    /// Copies from L1 to global memory, in rows.
    op Nz2nd = "hir.nz2nd" {
        operands(ins: one, out: one)
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("out", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`->` type($results)^)?"
    }

    /// Copies from L1 to UB, in rows.
    op L12ub = "hir.l12ub" {
        operands(ins: one, out: one)
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("out", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`->` type($results)^)?"
    }

    /// Copies scales of blocks of elements from global memory to L1.
    op LoadScale = "hir.load_scale" {
        operands(ins: one, out: one)
        attrs(is_transposed: Option<Truth> = "is_transposed")
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("out", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`is_transposed` `=` $is_transposed^)? (`->` type($results)^)?"
    }

    /// Writes the second operand where the destination has the first; the result is what it had.
    op AtomicCas = "hir.atomic_cas" {
        operands(ins: var, out: one)
        variadic_results(results)
        index(Unrelated)
        types(Each("out", Shaped))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`->` type($results)^)?"
    }

    /// Writes a value; the result is what was there.
    op AtomicXchg = "hir.atomic_xchg" {
        operands(ins: one, out: one, mask: opt)
        variadic_results(results)
        index(Unrelated)
        types(Each("out", Shaped))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`mask` `(` $mask^ `:` type($mask) `)`)? (`->` type($results)^)?"
    }

    /// Combines a value with what is there, which is the result.
    op AtomicRmw = "hir.atomic_rmw" {
        operands(ins: one, out: one)
        attrs(atomic_kind: AtomicKind = "atomic_kind")
        variadic_results(results)
        index(Unrelated)
        types(Each("out", Shaped))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` `atomic_kind` `=` $atomic_kind (`->` type($results)^)?"
    }

    /// Elements of several operands in turn.
    op Vinterleave = "hir.vinterleave" {
        operands(ins: var, out: one, temp_buffer: opt)
        attrs(channels: i64 = "interleave_channel_nums")
        variadic_results(results)
        index(Unrelated)
        types(Each("out", Shaped), Each("temp_buffer", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` `interleave_channel_nums` `=` $interleave_channel_nums (`temp_buffer` `(` $temp_buffer^ `:` type($temp_buffer) `)`)? (`->` type($results)^)?"
    }

    /// Elements in turn to several destinations.
    op Vdeinterleave = "hir.vdeinterleave" {
        operands(ins: one, out: var)
        attrs(channel_num: Option<i64> = "channel_num", index_mode: Option<DeinterleaveMode> = "index_mode")
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("out", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`channel_num` `=` $channel_num^)? (`index_mode` `=` $index_mode^)? (`->` type($results)^)?"
    }

    /// Elements in the opposite order along a dimension.
    op Vflip = "hir.vflip" {
        operands(ins: one, out: one)
        attrs(axis: i64 = "flip_axis")
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("out", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` `flip_axis` `=` $flip_axis (`->` type($results)^)?"
    }

    /// The high halves of products, or both halves.
    op Vmulext = "hir.vmulext" {
        operands(ins: var, out: var, temp_buffer: opt)
        attrs(broadcast: Option<Vec<i64>> = "broadcast", transpose: Option<Vec<i64>> = "transpose")
        variadic_results(results)
        index(Unrelated)
        types(Each("out", Shaped), Each("temp_buffer", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`temp_buffer` `(` $temp_buffer^ `:` type($temp_buffer) `)`)? (`broadcast` `=` $broadcast^)? (`transpose` `=` $transpose^)? (`->` type($results)^)?"
    }

    /// The same of elements without a sign.
    op Vmulextui = "hir.vmulextui" {
        operands(ins: var, out: var, temp_buffer: opt)
        attrs(broadcast: Option<Vec<i64>> = "broadcast", transpose: Option<Vec<i64>> = "transpose")
        variadic_results(results)
        index(Unrelated)
        types(Each("out", Shaped), Each("temp_buffer", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`temp_buffer` `(` $temp_buffer^ `:` type($temp_buffer) `)`)? (`broadcast` `=` $broadcast^)? (`transpose` `=` $transpose^)? (`->` type($results)^)?"
    }

    /// The low and the high half of products.
    op Vmulextended = "hir.vmulextended" {
        operands(ins: var, out: var, temp_buffer: opt)
        variadic_results(results)
        index(Unrelated)
        types(Each("out", Shaped), Each("temp_buffer", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`temp_buffer` `(` $temp_buffer^ `:` type($temp_buffer) `)`)? (`->` type($results)^)?"
    }

    /// Elements with others around them.
    op Vpad = "hir.vpad" {
        operands(ins: one, out: one, pad_value: one, low: var, high: var)
        attrs(static_low: Option<Vec<i64>> = "static_low", static_high: Option<Vec<i64>> = "static_high")
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("out", Shaped), Is("low", Fixed(crate::Type::INDEX)), Is("high", Fixed(crate::Type::INDEX)), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` `low` `` indices($low, $static_low) `high` `` indices($high, $static_high) `pad_value` $pad_value `:` type($pad_value) (`->` type($results)^)?"
    }

    /// Operands one behind the other along a dimension.
    op Vconcat = "hir.vconcat" {
        operands(ins: var, out: one)
        attrs(dim: i64 = "dim")
        variadic_results(results)
        index(Unrelated)
        types(Each("out", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "`dim` `(` $dim `)` attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` (`->` type($results)^)?"
    }

    /// The elements for which a mask holds.
    op Vgathermask = "hir.vgathermask" {
        operands(ins: one, mask: one, out: var)
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("mask", Shaped), Each("out", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `mask` `(` $mask `:` type($mask) `)` `outs` `(` $out `:` type($out) `)` (`->` type($results)^)?"
    }

    /// Elements in order along a dimension, with their indices where there is a second destination.
    op Vsort = "hir.vsort" {
        operands(ins: one, out: var, temp_buffer: opt)
        attrs(descending: Truth = "descending", axis: i64 = "sort_axis")
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("out", Shaped), Each("temp_buffer", Shaped), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` `descending` `=` $descending `sort_axis` `=` $sort_axis (`temp_buffer` `(` $temp_buffer^ `:` type($temp_buffer) `)`)? (`->` type($results)^)?"
        verify rules::sorted
    }

    /// Products of several matrices, by their first dimension.
    op BatchMmad = "hir.batchMmadL1" {
        operands(a: one, b: one, init: one, m: one, k: one, n: one, out: one, sync_related_args: var, unit_flag_cond: var, per_channel_bias: opt)
        attrs(a_transpose: Flag = "a_transpose", b_transpose: Flag = "b_transpose", enable_hf32: Flag = "enable_HF32", enable_i4: Flag = "enable_I4", unit_flag_mode: Option<crate::Attr> = "unit_flag_mode")
        variadic_results(results)
        index(Unrelated)
        types(Each("a", Shaped), Each("b", Shaped), Each("out", Shaped), Each("per_channel_bias", Shaped), Is("init", Fixed(crate::Type::I1)), Is("unit_flag_cond", Fixed(crate::Type::I1)), Written("results", "out"))
        effects(Effect::new(Access::Read, Resource::Shared, Some("a")), Effect::new(Access::Read, Resource::Shared, Some("b")), WRITE)
        format "attr-dict `ins` `(` $a `,` $b `,` $init `,` $m `,` $k `,` $n (`,` $per_channel_bias^)? `:` type($a) `,` type($b) `,` type($init) `,` type($m) `,` type($k) `,` type($n) (`,` type($per_channel_bias)^)? `)` `outs` `(` $out `:` type($out) `)` (`sync_related_args` `(` $sync_related_args^ `:` type($sync_related_args) `)`)? (`unit_flag_mode` `(` $unit_flag_mode^ `)`)? (`unit_flag_cond` `(` $unit_flag_cond^ `)`)? (`->` type($results)^)?"
    }

    /// A product of elements with scales by blocks.
    op MmadMx = "hir.mmadmxL1" {
        operands(a: one, b: one, scale_a: one, scale_b: one, init: one, m: one, k: one, n: one, out: one, sync_related_args: var, per_channel_bias: opt)
        attrs(a_transpose: Flag = "a_transpose", b_transpose: Flag = "b_transpose")
        variadic_results(results)
        index(Unrelated)
        types(Each("a", Shaped), Each("b", Shaped), Each("scale_a", Shaped), Each("scale_b", Shaped), Each("out", Shaped), Each("per_channel_bias", Shaped), Is("init", Fixed(crate::Type::I1)))
        effects(Effect::new(Access::Read, Resource::Shared, Some("a")), Effect::new(Access::Read, Resource::Shared, Some("b")), WRITE)
        format "attr-dict (`a_transpose` $a_transpose^)? (`b_transpose` $b_transpose^)? `ins` `(` $a `,` $b `,` $scale_a `,` $scale_b `,` $init `,` $m `,` $k `,` $n (`,` $per_channel_bias^)? `:` type($a) `,` type($b) `,` type($scale_a) `,` type($scale_b) `,` type($init) `,` type($m) `,` type($k) `,` type($n) (`,` type($per_channel_bias)^)? `)` `outs` `(` $out `:` type($out) `)` (`sync_related_args` `(` $sync_related_args^ `:` type($sync_related_args) `)`)? (`->` type($results)^)?"
    }

    /// A product of matrices in global memory.
    op Matmul = "hir.matmul" {
        operands(a: one, b: one, tiling_params: opt, bias: opt, descale: opt, block_sizes: var, process_sizes: var, swizzle_offset: opt, swizzle_direction: opt, epilogue_p_tiles: opt, out: one)
        attrs(a_transpose: Flag = "aTranspose", b_transpose: Flag = "bTranspose", descale_mode: Option<DescaleMode> = "descaleMode")
        variadic_results(results)
        index(Unrelated)
        types(Each("a", Shaped), Each("b", Shaped), Each("bias", Shaped), Each("descale", Shaped), Each("out", Shaped), Written("results", "out"))
        effects(Effect::new(Access::Read, Resource::Shared, Some("a")), Effect::new(Access::Read, Resource::Shared, Some("b")), WRITE)
        format "attr-dict `ins` `(` $a `,` $b `:` type($a) `,` type($b) `)` `outs` `(` $out `:` type($out) `)` (`tiling_params` `=` $tiling_params^ `:` type($tiling_params))? (`bias` `=` $bias^ `:` type($bias))? (`descale` `=` $descale^ `:` type($descale))? (`a_transpose` $aTranspose^)? (`b_transpose` $bTranspose^)? (`descale_mode` `=` $descaleMode^)? (`block_sizes` `(` $block_sizes^ `:` type($block_sizes) `)`)? (`process_sizes` `(` $process_sizes^ `:` type($process_sizes) `)`)? (`swizzle_offset` `=` $swizzle_offset^ `:` type($swizzle_offset))? (`swizzle_direction` `=` $swizzle_direction^ `:` type($swizzle_direction))? (`epilogue_p_tiles` `=` $epilogue_p_tiles^ `:` type($epilogue_p_tiles))? (`->` type($results)^)?"
        verify rules::matmul
    }

    /// The same with a function of vectors behind it.
    op MixMatmul = "hir.mix_matmul" {
        operands(a: one, b: one, post_vec_func_ins: var, workspace_ins: var, tiling_params: opt, comm_params: opt, bias: opt, descale: opt, block_sizes: var, process_sizes: var, swizzle_offset: opt, swizzle_direction: opt, epilogue_p_tiles: opt, out: one)
        attrs(a_transpose: Flag = "aTranspose", b_transpose: Flag = "bTranspose", descale_mode: Option<DescaleMode> = "descaleMode")
        variadic_results(results)
        index(Unrelated)
        types(Each("a", Shaped), Each("b", Shaped), Each("bias", Shaped), Each("descale", Shaped), Each("out", Shaped), Written("results", "out"))
        effects(Effect::new(Access::Read, Resource::Shared, Some("a")), Effect::new(Access::Read, Resource::Shared, Some("b")), WRITE)
        format "attr-dict `ins` `(` $a `,` $b `:` type($a) `,` type($b) `)` (`post_vector_func_ins` `(` $post_vec_func_ins^ `:` type($post_vec_func_ins) `)`)? (`workspace_ins` `(` $workspace_ins^ `:` type($workspace_ins) `)`)? `outs` `(` $out `:` type($out) `)` (`tiling_params` `=` $tiling_params^ `:` type($tiling_params))? (`comm_params` `=` $comm_params^ `:` type($comm_params))? (`bias` `=` $bias^ `:` type($bias))? (`descale` `=` $descale^ `:` type($descale))? (`a_transpose` $aTranspose^)? (`b_transpose` $bTranspose^)? (`descale_mode` `=` $descaleMode^)? (`block_sizes` `(` $block_sizes^ `:` type($block_sizes) `)`)? (`process_sizes` `(` $process_sizes^ `:` type($process_sizes) `)`)? (`swizzle_offset` `=` $swizzle_offset^ `:` type($swizzle_offset))? (`swizzle_direction` `=` $swizzle_direction^ `:` type($swizzle_direction))? (`epilogue_p_tiles` `=` $epilogue_p_tiles^ `:` type($epilogue_p_tiles))? (`->` type($results)^)?"
        verify rules::matmul
    }

    /// Products of groups of rows with a matrix each.
    op MixGroupMatmul = "hir.mix_group_matmul" {
        operands(a: one, b: one, tokens_per_expert: one, post_vec_func_ins: var, post_vec_func_outs: var, workspace_ins: var, tiling_params: opt, comm_params: opt, bias: opt, descale: opt, block_sizes: var, process_sizes: var, swizzle_offset: opt, swizzle_direction: opt, epilogue_p_tiles: opt, out: one)
        attrs(a_transpose: Flag = "aTranspose", b_transpose: Flag = "bTranspose", descale_mode: Option<DescaleMode> = "descaleMode")
        variadic_results(results)
        index(Unrelated)
        types(Each("a", Shaped), Each("b", Shaped), Each("tokens_per_expert", Shaped), Each("bias", Shaped), Each("descale", Shaped), Each("out", Shaped), Written("results", "out"))
        effects(Effect::new(Access::Read, Resource::Shared, Some("a")), Effect::new(Access::Read, Resource::Shared, Some("b")), WRITE)
        format "attr-dict `ins` `(` $a `,` $b `,` $tokens_per_expert `:` type($a) `,` type($b) `,` type($tokens_per_expert) `)` (`post_vector_func_ins` `(` $post_vec_func_ins^ `:` type($post_vec_func_ins) `)`)? (`post_vector_func_outs` `(` $post_vec_func_outs^ `:` type($post_vec_func_outs) `)`)? (`workspace_ins` `(` $workspace_ins^ `:` type($workspace_ins) `)`)? `outs` `(` $out `:` type($out) `)` (`tiling_params` `=` $tiling_params^ `:` type($tiling_params))? (`comm_params` `=` $comm_params^ `:` type($comm_params))? (`bias` `=` $bias^ `:` type($bias))? (`descale` `=` $descale^ `:` type($descale))? (`a_transpose` $aTranspose^)? (`b_transpose` $bTranspose^)? (`descale_mode` `=` $descaleMode^)? (`block_sizes` `(` $block_sizes^ `:` type($block_sizes) `)`)? (`process_sizes` `(` $process_sizes^ `:` type($process_sizes) `)`)? (`swizzle_offset` `=` $swizzle_offset^ `:` type($swizzle_offset))? (`swizzle_direction` `=` $swizzle_direction^ `:` type($swizzle_direction))? (`epilogue_p_tiles` `=` $epilogue_p_tiles^ `:` type($epilogue_p_tiles))? (`->` type($results)^)?"
        verify rules::group_matmul
    }

    /// A convolution along 1 dimension.
    op Conv1d = "hir.Conv1dL1" {
        operands(ins: one, weight: one, bias: opt, out: one, init: one, sync_related_args: var)
        attrs(padding: i32 = "padding", groups: i32 = "groups")
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("weight", Shaped), Each("bias", Shaped), Each("out", Shaped), Is("init", Fixed(crate::Type::I1)), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `,` $weight `,` $init (`,` $bias^)? `:` type($ins) `,` type($weight) `,` type($init) (`,` type($bias)^)? `)` `outs` `(` $out `:` type($out) `)` (`sync_related_args` `(` $sync_related_args^ `:` type($sync_related_args) `)`)? (`->` type($results)^)?"
    }

    /// A convolution along 2 dimensions.
    op Conv2d = "hir.Conv2dL1" {
        operands(ins: one, weight: one, bias: opt, out: one, init: one, sync_related_args: var)
        attrs(padding: crate::Attr = "padding", groups: i32 = "groups")
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("weight", Shaped), Each("bias", Shaped), Each("out", Shaped), Is("init", Fixed(crate::Type::I1)), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `,` $weight `,` $init (`,` $bias^)? `:` type($ins) `,` type($weight) `,` type($init) (`,` type($bias)^)? `)` `outs` `(` $out `:` type($out) `)` (`sync_related_args` `(` $sync_related_args^ `:` type($sync_related_args) `)`)? (`->` type($results)^)?"
    }

    /// A convolution along 3 dimensions.
    op Conv3d = "hir.Conv3dL1" {
        operands(ins: one, weight: one, bias: opt, out: one, init: one, sync_related_args: var)
        attrs(padding: crate::Attr = "padding", groups: i32 = "groups")
        variadic_results(results)
        index(Unrelated)
        types(Each("ins", Shaped), Each("weight", Shaped), Each("bias", Shaped), Each("out", Shaped), Is("init", Fixed(crate::Type::I1)), Written("results", "out"))
        effects(READ, WRITE)
        format "attr-dict `ins` `(` $ins `,` $weight `,` $init (`,` $bias^)? `:` type($ins) `,` type($weight) `,` type($init) (`,` type($bias)^)? `)` `outs` `(` $out `:` type($out) `)` (`sync_related_args` `(` $sync_related_args^ `:` type($sync_related_args) `)`)? (`->` type($results)^)?"
    }

    /// Lets cores wait for each other.
    op SyncBlock = "hir.sync_block" {
        operands(ffts_base_addr: opt)
        attrs(mode: SyncBlockMode = "sync_block_mode", flag: Option<crate::Attr> = "flag_id", tcube_pipe: Option<Pipe> = "tcube_pipe", cube_pipe: Option<Pipe> = "cube_pipe", tvector_pipe: Option<Pipe> = "tvector_pipe", vector_pipe: Option<Pipe> = "vector_pipe")
        index(Unrelated)
        types(Is("ffts_base_addr", Fixed(crate::Type::I64)))
        effects(STAYS)
        format "attr-dict `[` $sync_block_mode (`,` $flag_id^)? `]` (`ffts_base_addr` `=` $ffts_base_addr^)? (`tcube_pipe` `=` $tcube_pipe^)? (`cube_pipe` `=` $cube_pipe^)? (`tvector_pipe` `=` $tvector_pipe^)? (`vector_pipe` `=` $vector_pipe^)?"
    }

    /// A lock that programs take one after the other.
    op CreateSyncBlockLock = "hir.create_sync_block_lock" {
        operands(from: opt)
        results(result)
        index(Unrelated)
        types()
        effects(STAYS)
        format "(`from` $from^)? attr-dict `:` (`from` type($from)^ `to`)? type($result)"
        verify rules::lock
    }

    /// Waits until the lock is the program's.
    op SyncBlockLock = "hir.sync_block_lock" {
        operands(lock: one)
        index(Unrelated)
        types()
        effects(STAYS)
        format "attr-dict `lock_var` `(` $lock `:` type($lock) `)`"
    }

    /// Hands the lock to the next program.
    op SyncBlockUnlock = "hir.sync_block_unlock" {
        operands(lock: one)
        index(Unrelated)
        types()
        effects(STAYS)
        format "attr-dict `lock_var` `(` $lock `:` type($lock) `)`"
    }

    /// Takes and hands on the lock.
    op FreeLockVar = "hir.free_lock_var" {
        operands(lock: one)
        index(Unrelated)
        types()
        effects(STAYS)
        format "attr-dict `lock_var` `(` $lock `:` type($lock) `)`"
    }

    /// A place that is looked for again later.
    op Anchor = "hir.anchor" {
        attrs(id: i64 = "id", core: Option<CoreType> = "tcore_type")
        index(Unrelated)
        types()
        effects(STAYS)
        format "attr-dict"
    }

    /// Counts time.
    op GetSysCnt = "hir.get_sys_cnt" {
        results(result)
        index(Unrelated)
        types(Is("result", Fixed(crate::Type::I64)))
        effects(STAYS)
        format "attr-dict `->` type($result)"
    }

    /// Lets instructions of vectors work on all elements.
    op SetMaskNorm = "hir.set_mask_norm" {
        index(Unrelated)
        types()
        effects(STAYS)
        format "attr-dict"
    }

    /// A number in memory, read by the scalar unit.
    op LoadScalar = "hir.load_scalar" {
        operands(address: one)
        results(result)
        index(Unrelated)
        types()
        effects(STAYS)
        format "attr-dict $address `:` type($address) `->` type($result)"
    }

    /// How stores combine elements with those that are there, from here on.
    op SetAtomic = "hir.set_atomic" {
        attrs(kind: AtomicKind = "kind", ty: Option<crate::Type> = "type")
        index(Unrelated)
        types()
        effects(STAYS)
        format "`kind` `=` $kind `[` `type` `=` $type `]` attr-dict"
    }

    /// Sets a bit of the control register.
    op SetCtrl = "hir.set_ctrl" {
        attrs(enable: Truth = "enable", idx: i64 = "idx")
        index(Unrelated)
        types()
        effects(STAYS)
        format "$enable `at` `ctrl` `[` $idx `]` attr-dict"
    }

    /// The same elements in another order in memory.
    op ConvertLayout = "hir.convert_layout" {
        operands(source: one, output_shape: var)
        attrs(from: crate::Attr = "srcLayout", to: crate::Attr = "dstLayout", static_output_shape: Option<Vec<i64>> = "static_output_shape")
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("output_shape", Fixed(crate::Type::INDEX)))
        effects()
        format "$source `output_shape` indices($output_shape, $static_output_shape) attr-dict `:` `(` type($source) `)` `->` type($result)"
        verify rules::same_elements
    }

    /// The same bits as elements of another type.
    op Bitcast = "hir.bitcast" {
        operands(src: one)
        results(result)
        traits(Pure)
        index(Unrelated)
        types()
        effects()
        format "$src `:` type($src) `->` type($result) attr-dict"
        verify rules::same_shape
    }

    /// Writes back and forgets lines of the data cache.
    op Dcci = "hir.dcci" {
        operands(address: opt)
        attrs(mode: CacheLines = "mode", kind: CacheKind = "dataCacheKind")
        index(Unrelated)
        types()
        effects(STAYS)
        format "attr-dict `(` $mode `,` $dataCacheKind (`,` $address^ `:` type($address))? `)`"
    }

    /// Prints a value.
    op Debug = "hir.debug" {
        operands(arg: one)
        attrs(kind: String = "debugtype", prefix: String = "prefix", hex: Truth = "hex", core: Option<CoreType> = "tcoretype")
        index(Unrelated)
        types()
        effects(STAYS)
        format "attr-dict $arg `:` type($arg)"
    }

    /// Makes printing ready.
    op InitDebug = "hir.init_debug" {
        index(Unrelated)
        types()
        effects(STAYS)
        format "attr-dict"
    }

    /// Ends printing.
    op FinishDebug = "hir.finish_debug" {
        index(Unrelated)
        types()
        effects(STAYS)
        format "attr-dict"
    }

    /// How often a buffer of several slots was filled.
    op MultiBufferCounter = "hir.multi_buffer_counter" {
        results(counter)
        index(Unrelated)
        types(Is("counter", Fixed(crate::Type::I64)))
        effects(STAYS)
        format "attr-dict `->` type($counter)"
    }

    /// Rows of a table.
    op EmbeddingGather = "hir.embedding_gather" {
        operands(ins: one, index: one, out: one, bound: one, offsets: var, numels: var)
        variadic_results(results)
        index(Unrelated)
        types(Written("results", "out"))
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `,` $index `:` type($index) `,` $bound `:` type($bound) `,` `[` $offsets `:` type($offsets) `]` `,` `[` $numels `:` type($numels) `]` `)` `outs` `(` $out `:` type($out) `)` attr-dict (`->` type($results)^)?"
    }

    /// Elements of global memory at these indices.
    op GatherLoad = "hir.gather_load" {
        operands(ins: one, indices: one, burst_len: one, mask: opt, other: opt, out: one)
        attrs(is_volatile: Option<Truth> = "isVolatile")
        variadic_results(results)
        index(Unrelated)
        types(Written("results", "out"))
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `,` $indices `:` type($indices) `,` $burst_len `:` type($burst_len) (`,` $mask^ `:` type($mask))? (`,` $other^ `:` type($other))? `)` `outs` `(` $out `:` type($out) `)` attr-dict (`->` type($results)^)?"
    }

    /// Writes elements of global memory at these indices.
    op ScatterStore = "hir.scatter_store" {
        operands(indices: one, ins: one, burst_len: one, mask: opt, out: one)
        variadic_results(results)
        index(Unrelated)
        types(Written("results", "out"))
        effects(READ, WRITE)
        format "`ins` `(` $indices `:` type($indices) `,` $ins `:` type($ins) `,` $burst_len `:` type($burst_len) (`,` $mask^ `:` type($mask))? `)` `outs` `(` $out `:` type($out) `)` attr-dict (`->` type($results)^)?"
    }

    /// A tensor of what is in a buffer.
    op LocalLoad = "hir.local_load" {
        operands(ins: one)
        results(result)
        index(Unrelated)
        types()
        effects(READ)
        format "`ins` `(` $ins `:` type($ins) `)` attr-dict `->` type($result)"
    }

    /// Writes a tensor into a buffer.
    op LocalStore = "hir.local_store" {
        operands(out: one, ins: one)
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $out `:` type($out) `,` $ins `:` type($ins) `)` attr-dict"
    }

    /// Elements of global memory by strides.
    op StrideLoad = "hir.stride_load" {
        operands(ins: one, out: one, offset: one, other: one, stride: var, numel: var)
        variadic_results(results)
        index(Unrelated)
        types(Written("results", "out"))
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` `offset` `(` $offset `:` type($offset) `)` `other` `(` $other `:` type($other) `)` `strides` `(` `[` $stride `:` type($stride) `]` `)` `numels` `(` `[` $numel `:` type($numel) `]` `)` attr-dict (`->` type($results)^)?"
    }

    /// Writes elements of global memory by strides.
    op StrideStore = "hir.stride_store" {
        operands(out: one, ins: one, offset: one, stride: var, numel: var)
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `)` `outs` `(` $out `:` type($out) `)` `offset` `(` $offset `:` type($offset) `)` `strides` `(` `[` $stride `:` type($stride) `]` `)` `numels` `(` `[` $numel `:` type($numel) `]` `)` attr-dict"
    }

    /// Elements of global memory at these offsets.
    op IndirectLoad = "hir.indirect_load" {
        operands(ins: one, offsets: one, out: one, mask: opt, other: opt)
        attrs(is_volatile: Option<Truth> = "isVolatile")
        variadic_results(results)
        index(Unrelated)
        types(Written("results", "out"))
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `,` $offsets `:` type($offsets) (`,` $mask^ `:` type($mask))? (`,` $other^ `:` type($other))? `)` `outs` `(` $out `:` type($out) `)` attr-dict (`->` type($results)^)?"
    }

    /// Writes elements of global memory at these offsets.
    op IndirectStore = "hir.indirect_store" {
        operands(out: one, offsets: one, ins: one, mask: opt)
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `,` $offsets `:` type($offsets) (`,` $mask^ `:` type($mask))? `)` `outs` `(` $out `:` type($out) `)` attr-dict"
    }

    /// Elements at these indices along a dimension.
    op GatherT = "hir.gatherT" {
        operands(ins: one, index: one, out: one, bound: one, dim: one, src_stride: var, index_shape: var, offsets: var)
        variadic_results(results)
        index(Unrelated)
        types(Written("results", "out"))
        effects(READ, WRITE)
        format "`ins` `(` $ins `:` type($ins) `,` $index `:` type($index) `,` $bound `:` type($bound) `,` $dim `:` type($dim) `,` `[` $src_stride `:` type($src_stride) `]` `,` `[` $index_shape `:` type($index_shape) `]` `,` `[` $offsets `:` type($offsets) `]` `)` `outs` `(` $out `:` type($out) `)` attr-dict (`->` type($results)^)?"
    }

    /// Writes elements at these indices along a dimension.
    op ScatterT = "hir.scatterT" {
        operands(out: one, ins: one, index: one, bound: one, dim: one, dst_stride: var, index_shape: var, offsets: var)
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $out `:` type($out) `,` $ins `:` type($ins) `,` $index `:` type($index) `,` $bound `:` type($bound) `,` $dim `:` type($dim) `,` `[` $dst_stride `:` type($dst_stride) `]` `,` `[` $index_shape `:` type($index_shape) `]` `,` `[` $offsets `:` type($offsets) `]` `)` attr-dict"
    }

    /// Writes rows at these indices.
    op IndexPut = "hir.index_put" {
        operands(out: one, index: one, ins: one, scatter_dim: one, bound: one, end_offset: var, start_offset: var, dst_stride: var)
        index(Unrelated)
        types()
        effects(READ, WRITE)
        format "`ins` `(` $out `:` type($out) `,` $index `:` type($index) `,` $ins `:` type($ins) `,` $scatter_dim `:` type($scatter_dim) `,` $bound `:` type($bound) `,` `[` $end_offset `:` type($end_offset) `]` `,` `[` $start_offset `:` type($start_offset) `]` `,` `[` $dst_stride `:` type($dst_stride) `]` `)` attr-dict"
    }

    /// A function of the user's.
    op Custom = "hir.custom" {
        operands(ins: var, out: var, temp_buffers: var)
        attrs(name: String = "name")
        variadic_results(results)
        index(Unrelated)
        types()
        effects(STAYS)
        format "attr-dict $name (`ins` `(` $ins^ `:` type($ins) `)`)? (`outs` `(` $out^ `:` type($out) `)`)? (`->` type($results)^)?"
    }

    /// A function of the user's that uses several queues.
    op CustomMacro = "hir.custom_macro" {
        operands(ins: var, out: var, temp_buffers: var, sync_related_args: var)
        attrs(name: String = "name")
        variadic_results(results)
        index(Unrelated)
        types()
        effects(STAYS)
        format "attr-dict $name (`ins` `(` $ins^ `:` type($ins) `)`)? (`outs` `(` $out^ `:` type($out) `)`)? (`->` type($results)^)?"
    }
}
