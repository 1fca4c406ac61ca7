//! `ttng`: operations of NVIDIA's Hopper that have no counterpart in `ttg`: warp-group matrix products, mbarriers, copies
//! of whole tiles through tensor maps (TMA), and the fences between the generic and the asynchronous proxy.
//!
//! **mbarriers** are buffers `!ttg.memdesc<1xi64, ..., mutable>` (a ring of them is `<n x1xi64>` with
//! `ttg.memdesc_index`). An mbarrier counts arrivals and expected bytes; when both are all there its phase completes and the
//! next begins. A wait names the parity of the phase: the first is 0. Operations on mbarriers order themselves; only
//! `init_barrier` and `inval_barrier` need a CTA barrier between them and the others, which `membar` places.
//!
//! An **order barrier** lets the warp groups of a scope use the tensor cores one after the other: what stands between
//! `wait_order_barrier` and `arrive_order_barrier` is run by one warp group at a time. `arrive_order_barrier {begins}` stands
//! before the first and `wait_order_barrier {ends}` behind the last of them.
//!
//! **TMA copies** are issued by one thread. A copy to shared memory announces its bytes to an mbarrier; a copy to global
//! memory is a group of its own that `async_tma_store_wait` waits for.
//!
//! ```text
//! %full = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #bar, #smem, mutable>
//! ttng.init_barrier %full, 1 : ...
//! ttng.barrier_expect %full, 16384, %true : ...
//! ttng.async_tma_copy_global_to_local %desc[%row, %col] %tile, %full, %true : ...
//! ttng.wait_barrier %full, %phase : ...
//! ```

use tilewright_layout::{Encoding, SharedKind};

use crate::attrs::AttrKind;
use crate::entity::{Op, Type};
use crate::module::Module;
use crate::opdef::{Access, Completion, Effect, Resource, Scope};

const READ_A: Effect = Effect::new(Access::Read, Resource::Shared, Some("a")).asynchronous(Completion::Dots);
const READ_B: Effect = Effect::new(Access::Read, Resource::Shared, Some("b")).asynchronous(Completion::Dots);
const ORDER: Effect = Effect::new(Access::Write, Resource::Other, None);
/// Waits for what others do.
const WAIT_FOR_PHASE: Effect = Effect::wait(Scope::Cta);
/// All threads of the cluster wait for each other.
const MEET: Effect = Effect::wait(Scope::Cluster);
/// Begins or ends the life of an mbarrier.
const OWN_BARRIER: Effect = Effect::new(Access::Write, Resource::Shared, Some("alloc"));
/// Uses an mbarrier: atomically, so that users need no order among themselves.
const USE_BARRIER: Effect = Effect::new(Access::Read, Resource::Shared, Some("alloc"));
const SIGNAL: Effect = Effect::new(Access::Read, Resource::Shared, Some("barrier"));
const READ_MAP: Effect = Effect::new(Access::Read, Resource::Global, Some("desc"));
const WRITE_MAP: Effect = Effect::new(Access::Write, Resource::Global, Some("desc"));
const FILL: Effect =
    Effect::new(Access::Write, Resource::Shared, Some("result")).asynchronous(Completion::Mbarrier);
const DRAIN: Effect =
    Effect::new(Access::Read, Resource::Shared, Some("src")).asynchronous(Completion::Stores);

crate::dialect! {
    dialect "ttng" Ttng;

    /// `d = a · b + c` by `wgmma`, where `use_c` does not hold `d = a · b`. `b` is a buffer, `a` a buffer or a tensor of `dot_op<0>` fragments. With `isAsync` the
    /// result may not be looked at, nor the buffers written, before a `ttng.warp_group_dot_wait`. `inputPrecision` is 0
    /// for tf32, 1 for tf32x3, 2 (or nothing) for ieee.
    op WarpGroupDot = "warp_group_dot" {
        operands(a: one, b: one, c: one, use_c: opt)
        attrs(
            input_precision: Option<i32> = "inputPrecision",
            max_num_imprecise_acc: Option<i32> = "maxNumImpreciseAcc",
            is_async: bool = "isAsync",
        )
        results(d)
        index(Contraction)
        types(Each("b", Buffer), Each("c", Tensor), Is("d", Same("c")), Is("use_c", Fixed(Type::I1)))
        effects(READ_A, READ_B)
        marks(AUTHORED)
        format "$a `,` $b `,` $c (`,` $use_c^)? attr-dict `:` type($a) `*` type($b) `->` type($d)"
    }

    /// Waits until at most `pendings` of this warp group's products are under way. The results are the inputs: results of
    /// products (valid after it), and the buffers and left operands in registers that they read (in use until it).
    op WarpGroupDotWait = "warp_group_dot_wait" {
        operands(inputs: var)
        attrs(pendings: i32 = "pendings")
        variadic_results(outputs)
        index(Unrelated)
        types(Is("outputs", Same("inputs")))
        effects(ORDER)
        format "$inputs attr-dict `:` type($inputs)"
        verify verify_counts
    }

    /// Orders this thread's earlier accesses to global memory before later ones of the asynchronous proxy, TMA copies of it
    /// (`fence.proxy.async.global`). With `complete` those to global memory that this thread has issued are waited for before: what they
    /// write is there then.
    op FenceAsyncGlobal = "fence_async_global" {
        attrs(complete: bool = "complete")
        index(Unrelated)
        types()
        effects(ORDER)
        format "attr-dict"
    }

    /// Orders this thread's earlier accesses to shared memory before later ones of the asynchronous proxy, such as the
    /// operand reads of `wgmma` (`fence.proxy.async`).
    op FenceAsyncShared = "fence_async_shared" {
        attrs(cluster: bool = "bCluster")
        index(Unrelated)
        types()
        effects(ORDER)
        format "attr-dict"
    }

    /// Makes an mbarrier of a buffer: each of its phases needs `count` arrivals.
    op InitBarrier = "init_barrier" {
        operands(alloc: one)
        attrs(count: i32 = "count")
        index(Unrelated)
        types(Each("alloc", Mbarrier))
        effects(OWN_BARRIER)
        marks(PHASE_BYTES)
        format "$alloc `,` $count attr-dict `:` type($alloc)"
        verify verify_counts
    }

    /// Ends an mbarrier, whose memory may then be used for something else.
    op InvalBarrier = "inval_barrier" {
        operands(alloc: one)
        index(Unrelated)
        types(Each("alloc", Mbarrier))
        effects(OWN_BARRIER)
        format "$alloc attr-dict `:` type($alloc)"
    }

    /// One arrival that also says how many bytes the copies of this phase will bring, where `pred` holds.
    op BarrierExpect = "barrier_expect" {
        operands(alloc: one, pred: one)
        attrs(size: i32 = "size")
        index(Unrelated)
        types(Each("alloc", Mbarrier), Is("pred", Fixed(Type::I1)))
        effects(USE_BARRIER, ORDER)
        marks(PHASE_BYTES)
        format "$alloc `,` $size attr-dict `,` $pred `:` type($alloc)"
        verify verify_counts
    }

    /// Waits until the phase of this parity has completed (where `pred` holds). What `deps` hold may be in use until then.
    op WaitBarrier = "wait_barrier" {
        operands(alloc: one, phase: one, pred: opt, deps: var)
        index(Unrelated)
        types(Each("alloc", Mbarrier), Is("phase", Fixed(Type::I32)), Is("pred", Fixed(Type::I1)))
        effects(USE_BARRIER, WAIT_FOR_PHASE)
        marks(ELECTED)
        format "$alloc `,` $phase (`,` $pred^)? (`deps` $deps^)? attr-dict `:` type($alloc) (`,` type($deps)^)?"
    }

    /// `count` arrivals, where `pred` holds: what this scope's threads did before is visible to those who wait. With
    /// `perWarp` each warp makes them for itself, and only its own threads are done with what is before. With `cta` they are at the mbarrier
    /// of the CTA of this rank in the cluster, at the same place: what this scope's threads have read before may be written behind the wait.
    op ArriveBarrier = "arrive_barrier" {
        operands(alloc: one, pred: opt, cta: opt)
        attrs(count: i32 = "count", per_warp: bool = "perWarp")
        index(Unrelated)
        types(Each("alloc", Mbarrier), Is("pred", Fixed(Type::I1)), Is("cta", Fixed(Type::I32)))
        effects(USE_BARRIER, ORDER)
        marks(PEERS)
        format "$alloc `,` $count (`,` $pred^)? (`cta` $cta^)? attr-dict `:` type($alloc)"
        verify verify_counts
    }

    /// A barrier of the hardware that the kernel names itself: all threads of this scope come to it and wait for those of the other `parties`, or with
    /// `arrives` go on. They are `warps` in all. The pass `named-barriers` says which barrier it is.
    op NamedBarrier = "named_barrier" {
        operands(alloc: one)
        attrs(arrives: bool = "arrives", number: Option<i32> = "number", parties: Option<i32> = "parties", warps: Option<i32> = "warps")
        index(Unrelated)
        types(Each("alloc", Mbarrier))
        effects(WAIT_FOR_PHASE)
        format "$alloc attr-dict `:` type($alloc)"
    }

    /// Waits until this warp group's turn has come: its warp groups go on one after the other, from the first to the last and
    /// round again. With `ends` the first one alone waits, for the last one's last turn to be over.
    op WaitOrderBarrier = "wait_order_barrier" {
        operands()
        attrs(ends: bool = "ends")
        index(Unrelated)
        types()
        effects(WAIT_FOR_PHASE)
        format "attr-dict"
    }

    /// Ends this warp group's turn and begins the next one's. With `begins` only the last warp group does it, so that the
    /// first begins.
    op ArriveOrderBarrier = "arrive_order_barrier" {
        operands()
        attrs(begins: bool = "begins")
        index(Unrelated)
        types()
        effects(ORDER)
        format "attr-dict"
    }

    /// Each thread arrives when its earlier `cp.async` copies are done. With `noIncrement` the mbarrier's count includes
    /// these arrivals already.
    op AsyncCopyMbarrierArrive = "async_copy_mbarrier_arrive" {
        operands(barrier: one)
        attrs(no_increment: bool = "noIncrement")
        index(Unrelated)
        types(Each("barrier", Mbarrier))
        effects(SIGNAL, ORDER)
        format "$barrier attr-dict `:` type($barrier)"
    }

    /// Starts copying the block at `coord` (outermost first) into a buffer, where `pred` holds. Its bytes count for
    /// `barrier`. Outside the tensor it brings zeros (or NaN, if the tensor map says so).
    op AsyncTmaCopyGlobalToLocal = "async_tma_copy_global_to_local" {
        operands(desc: one, coord: var, barrier: one, result: one, pred: one)
        attrs(
            cache: crate::dialect::tt::CacheModifier = "cacheModifier",
            evict: crate::dialect::tt::EvictionPolicy = "evictionPolicy",
            is_volatile: bool = "isVolatile",
        )
        index(Block("desc", "result"))
        types(Is("coord", Fixed(Type::I32)), Each("barrier", Mbarrier), Each("result", Mutable), Is("result", Like("desc")), Is("pred", Fixed(Type::I1)))
        effects(READ_MAP, SIGNAL, FILL)
        marks(MULTICAST)
        format "$desc `[` $coord `]` $result `,` $barrier `,` $pred oilist(`cacheModifier` `=` $cacheModifier | `evictionPolicy` `=` $evictionPolicy) attr-dict `:` type($desc) `,` type($barrier) `->` type($result)"
        verify verify_coordinates
    }

    /// A block that the programs of the cluster whose ranks differ in the bits of `sharing` alone bring together: `coord` is the same for them, which the CPU
    /// executor checks.
    op SameBlock = "same_block" {
        operands(coord: var)
        attrs(sharing: i32 = "sharing")
        index(Unrelated)
        types(Is("coord", Fixed(Type::I32)))
        effects(ORDER)
        format "`[` $coord `]` attr-dict"
    }

    /// Starts copying a buffer to the block at `coord`. Outside the tensor nothing is written. The buffer is in use until an
    /// `async_tma_store_wait`.
    op AsyncTmaCopyLocalToGlobal = "async_tma_copy_local_to_global" {
        operands(desc: one, coord: var, src: one)
        index(Block("desc", "src"))
        types(Is("coord", Fixed(Type::I32)), Each("src", Buffer), Is("src", Like("desc")))
        effects(READ_MAP, WRITE_MAP, DRAIN)
        marks(PENDING)
        format "$desc `[` $coord `]` $src attr-dict `:` type($desc) `,` type($src)"
        verify verify_coordinates
    }

    /// Starts combining a buffer with the block at `coord`, each element atomically. As a copy to global memory otherwise.
    op AsyncTmaReduce = "async_tma_reduce" {
        operands(desc: one, coord: var, src: one)
        attrs(kind: crate::dialect::tt::DescriptorReduceKind = "kind")
        index(Block("desc", "src"))
        types(Is("coord", Fixed(Type::I32)), Each("src", Buffer), Is("src", Like("desc")))
        effects(READ_MAP, WRITE_MAP, DRAIN)
        format "$kind `,` $desc `[` $coord `]` $src attr-dict `:` type($desc) `,` type($src)"
        verify verify_coordinates
    }

    /// Waits until at most `pendings` copies from shared to global memory still read their buffers.
    op TmaStoreWait = "async_tma_store_wait" {
        attrs(pendings: i32 = "pendings")
        index(Unrelated)
        types()
        effects(ORDER)
        format "attr-dict"
        verify verify_counts
    }

    /// Writes a tensor map: box sizes, extents and element strides innermost first; byte strides of all dimensions but the
    /// innermost. `elem_type`, `swizzle_mode` and `fill_mode` are the numbers of `tensormap.replace` (PTX ISA).
    op TensormapCreate = "tensormap_create" {
        operands(
            desc_ptr: one, global_address: one, box_dim: var, global_dim: var, global_stride: var, element_stride: var,
        )
        attrs(
            elem_type: i32 = "elem_type", interleave_layout: i32 = "interleave_layout", swizzle_mode: i32 = "swizzle_mode",
            fill_mode: i32 = "fill_mode",
        )
        index(Unrelated)
        types(
            Each("desc_ptr", Ptr), Each("global_address", Ptr), Is("box_dim", Fixed(Type::I32)), Is("global_dim", Fixed(Type::I32)),
            Is("global_stride", Fixed(Type::I64)), Is("element_stride", Fixed(Type::I32)),
        )
        effects(Effect::new(Access::Write, Resource::Global, Some("desc_ptr")), ORDER)
        marks(MAKER)
        format "$desc_ptr `,` $global_address `,` `[` $box_dim `]` `,` `[` $global_dim `]` `,` `[` $global_stride `]` `,` `[` $element_stride `]` attr-dict `:` functional-type(operands, results)"
    }

    /// The kernel's argument `map` is the tensor map of this tensor, which the launch makes: base, extents and strides (of elements), outermost
    /// first, are what it can compute from the other arguments. With `padding` 2 what is outside reads as NaN.
    op TensormapByLaunch = "tensormap_by_launch" {
        operands(map: one, base: one, shape: var, strides: var)
        attrs(padding: Option<i32> = "padding")
        index(Unrelated)
        types(Each("base", Ptr), Is("shape", Fixed(Type::I32)), Is("strides", Fixed(Type::I64)))
        effects(ORDER)
        format "$map `,` $base `,` `[` $shape `]` `,` `[` $strides `]` attr-dict `:` functional-type(operands, results)"
    }

    /// After it this scope's TMA copies see the tensor map that has been written.
    op TensormapFenceproxyAcquire = "tensormap_fenceproxy_acquire" {
        operands(desc_ptr: one)
        index(Unrelated)
        types(Each("desc_ptr", Ptr))
        effects(Effect::new(Access::Write, Resource::Global, Some("desc_ptr")), ORDER)
        marks(STORES)
        format "$desc_ptr attr-dict `:` type($desc_ptr)"
    }

    /// A tensor map in global memory as a descriptor.
    op ReinterpretTensorDescriptor = "reinterpret_tensor_descriptor" {
        operands(desc_ptr: one)
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("desc_ptr", Ptr))
        effects()
        format "$desc_ptr attr-dict `:` type($desc_ptr) `to` type($result)"
    }

    /// Arrives at the cluster's barrier.
    op ClusterArrive = "cluster_arrive" {
        attrs(relaxed: bool = "relaxed")
        index(Unrelated)
        types()
        effects(ORDER)
        format "attr-dict"
    }

    /// Waits until all threads of the cluster have arrived.
    op ClusterWait = "cluster_wait" {
        index(Unrelated)
        types()
        effects(MEET)
        format "attr-dict"
    }

    /// Which CTA of its cluster this one is, from 0 on.
    op ClusterCtaRank = "cluster_cta_rank" {
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("result", Fixed(Type::I32)))
        effects()
        format "attr-dict `:` type($result)"
    }

    /// What the CTA `peer` of this cluster has for `src`: a number, or each thread's part of a tensor. All threads of the
    /// cluster come here together; it goes through distributed shared memory.
    op ClusterExchange = "cluster_exchange" {
        operands(src: one, peer: one)
        same_as(src)
        traits(Elementwise)
        index(Elementwise)
        types(Is("peer", Fixed(Type::I32)))
        effects(MEET)
        format "$src `,` $peer attr-dict `:` type($result)"
    }
}

/// What copies bring is counted in: several that make one arrival of a barrier together each make as many as they bring of these.
/// It is the least that TMA copies (PTX ISA, "cp.async.bulk.tensor").
pub const BYTES_OF_ARRIVAL: i32 = 16;

/// Arrivals are one at least; bytes, and what may be under way, none at least.
fn verify_counts(module: &Module, op: Op) -> Result<(), String> {
    if let Some(all) = module.int_attr(op, crate::marks::PHASE_BYTES) {
        let part = module.int_attr(op, "size").unwrap_or(all);
        if part > all || [part, all].iter().any(|&n| n < 1 || n % i64::from(BYTES_OF_ARRIVAL) != 0) {
            return Err(format!(
                "{part} of the {all} bytes of a phase: both must be multiples of {BYTES_OF_ARRIVAL}, and no part more than all"
            ));
        }
    }
    for (name, least) in [("count", 1), ("size", 0), ("pendings", 0)] {
        match module.int_attr(op, name) {
            Some(n) if n < least => return Err(format!("`{name}` is {n}, and must be {least} at least")),
            _ => {}
        }
    }
    Ok(())
}

/// A coordinate for each dimension of the descriptor's block.
pub(super) fn verify_coordinates(module: &Module, op: Op) -> Result<(), String> {
    let desc = module.operands(op)[0];
    let rank = crate::index::extents(module, desc).map_or(0, <[u32]>::len);
    let group = module.def(op).and_then(|d| d.group("coord"));
    let found = group.map_or(0, |g| module.operand_group(op, g).len());
    if found == rank {
        Ok(())
    } else {
        Err(format!("a block of {rank} dimensions needs as many coordinates, not {found}"))
    }
}

/// The type of an mbarrier, or of a ring of `count`.
pub fn mbarrier_type(module: &mut Module, count: Option<u32>) -> Type {
    let plain = SharedKind::Swizzled { vec: 1, per_phase: 1, max_phase: 1, order: vec![0] };
    let encoding = module.attr(AttrKind::Encoding(Encoding::Shared(plain)));
    let shape: Vec<u32> = count.into_iter().chain([1]).collect();
    module.buffer_type(&shape, Type::I64, encoding, true)
}
