//! `ttg`: operations that speak of layouts, shared memory and asynchronous copies. Tensors have an encoding.
//!
//! Module attributes: `ttg.num-warps`, `ttg.num-ctas`, `ttg.threads-per-warp`, `ttg.target` (`"cuda:90"`), and after
//! allocation `ttg.shared` (bytes). After allocation, operations with a buffer or scratch carry `allocation.offset`.
//!
//! # Rings
//!
//! A **ring** is an edge of data flow: slots that one writer fills and one or several readers empty, again and again, in
//! the same order. `ttg.ring_create` makes one of buffers, its *fields*, each with a leading dimension of `slots`; what lies
//! in a slot is seen by `ttg.memdesc_index` of a field with the slot's number. The operations of a ring order the accesses
//! of writer and readers to it. They say nothing of how: the pass `lower-rings` finds that out from what writes and reads the
//! fields and from who does.
//!
//! Writer and readers count for themselves. Chunk `i` goes through slot `i % slots`, and the *phase* of a position is
//! `i / slots % 2`: how often the ring has gone round, as a parity.
//!
//! | writer | reader |
//! | --- | --- |
//! | `ring_acquire %ring[%slot], %phase` | `ring_wait %ring[%slot], %phase` |
//! | fills the slot's fields | reads them |
//! | `ring_commit %ring[%slot]` | `ring_release %ring[%slot]` |
//!
//! Instead of filling a slot the writer may `ring_close` it; readers see that by `ring_is_closed` behind their wait.
//!
//! Writer and readers may be different partitions of a `ttg.warp_specialize` or the same warps. In the latter case the order
//! of the program is that of the accesses, but for what asynchronous copies write.
//!
//! ```text
//! %a = ttg.local_alloc : () -> !ttg.memdesc<3x128x64xf16, #shared, #smem, mutable>
//! %ring = ttg.ring_create %a {slots = 3 : i32} : !ttg.memdesc<3x128x64xf16, #shared, #smem, mutable>
//! ttg.ring_acquire %ring[%slot], %phase
//! %w = ttg.memdesc_index %a[%slot] : ...
//! ttg.async_copy_block_to_local %desc[%row, %col], %w : ...
//! ttg.ring_commit %ring[%slot]
//! ```

use crate::attrs::{AttrKind, text_list};
use crate::dialect::{tt, ttng};
use crate::entity::{Attr, Op, Region, Type, Value};
use crate::module::{Module, ValueDef};
use crate::opdef::{Access, Completion, Effect, Resource, Scope};
use crate::strided;
use crate::text::print_type;
use crate::types::TypeKind;
use crate::{Encoding, SharedKind};

const READ_SRC: Effect = Effect::new(Access::Read, Resource::Shared, Some("src"));
const WRITE_DST: Effect = Effect::new(Access::Write, Resource::Shared, Some("dst"));
const ALLOC: Effect = Effect::new(Access::Allocate, Resource::Shared, None);
const ORDER: Effect = Effect::new(Access::Write, Resource::Other, None);
const LEAVES: Effect = ORDER;
/// Waits for what the other end of a ring does.
const WAIT: Effect = Effect::wait(Scope::Cta);
/// All threads of the scope wait for each other.
const MEET: Effect = Effect::wait(Scope::Cta);

crate::dialect! {
    dialect "ttg" Ttg;

    /// The same tensor in another layout. May use scratch shared memory (`allocation.offset`).
    op ConvertLayout = "convert_layout" {
        operands(src: one)
        results(result)
        traits(Pure)
        index(Relayout)
        types(All(Tensor), Is("result", Like("src")))
        effects()
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// The same tensor, which the kernel wants in the layout `layout`. Layouts are assigned by it, and it goes.
    op SetLayout = "set_layout" {
        operands(src: one)
        attrs(layout: Attr = "layout")
        same_as(src)
        traits(Pure)
        index(Elementwise)
        types(All(Tensor))
        effects()
        format "$src attr-dict `:` type($result)"
    }

    /// The sum over lanes that differ in the lane number's bits `lanes`, in each of them, of values that may differ there.
    op LaneSum = "lane_sum" {
        operands(src: one)
        attrs(lanes: i32 = "lanes")
        results(result)
        traits(Pure, SameTypes)
        index(Aligned)
        types(All(Tensor))
        effects()
        format "$src attr-dict `:` type($result)"
    }

    /// The value in the lane whose bits `lanes` are zero, and zero in the others that differ from it in these alone: what
    /// `lane_sum` adds up to the value.
    op LaneFirst = "lane_first" {
        operands(src: one)
        attrs(lanes: i32 = "lanes")
        results(result)
        traits(Pure, SameTypes)
        index(Aligned)
        types(All(Tensor))
        effects()
        format "$src attr-dict `:` type($result)"
    }

    /// A shared-memory buffer, initialized with `src` where given.
    op LocalAlloc = "local_alloc" {
        operands(src: opt)
        results(result)
        index(Aligned)
        types(Each("src", Tensor), Each("result", Buffer), Is("src", Like("result")))
        effects(ALLOC, Effect::new(Access::Write, Resource::Shared, None))
        marks(ORDERED, THROUGH_LOOP, ALL_WARPS)
        format "($src^)? attr-dict `:` functional-type(operands, $result)"
        verify verify_local_alloc
    }

    /// The two floats (E2M1) in each byte along `axis`, the lower half first.
    op Fp4ToFp = "fp4_to_fp" {
        operands(src: one)
        attrs(axis: i32 = "axis")
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("src", Tensor), Each("src", Int), Each("result", Tensor), Each("result", Float))
        effects()
        format "$src attr-dict `:` type($src) `->` type($result)"
        verify verify_fp4_to_fp
    }

    /// Ends the life of a buffer.
    op LocalDealloc = "local_dealloc" {
        operands(src: one)
        index(Unrelated)
        types(Each("src", Buffer))
        effects(Effect::new(Access::Free, Resource::Shared, Some("src")))
        format "$src attr-dict `:` type($src)"
    }

    /// Reads a buffer into registers. With a token, what the token waits for is visible.
    op LocalLoad = "local_load" {
        operands(src: one, token: opt)
        results(result)
        index(Aligned)
        types(Each("src", Buffer), Each("result", Tensor), Is("result", Like("src")), Is("token", Fixed(Type::ASYNC_TOKEN)))
        effects(READ_SRC)
        format "$src (`token` $token^)? attr-dict `:` type($src) `->` type($result)"
    }

    /// Writes registers to a buffer.
    op LocalStore = "local_store" {
        operands(src: one, dst: one)
        index(Aligned)
        types(Each("src", Tensor), Each("dst", Mutable), Is("src", Like("dst")))
        effects(WRITE_DST)
        marks(COPY)
        format "$src `,` $dst attr-dict `:` type($src) `->` type($dst)"
    }

    /// Pointers to elements of a buffer, with an index for each of its dimensions. Wherever the buffer's layout puts an element,
    /// `tt.addptr` counts in row-major order: a buffer that pointers are moved in has a layout without swizzle.
    op LocalPtr = "local_ptr" {
        operands(src: one, indices: var)
        results(result)
        traits(Pure)
        index(Element("src"))
        types(Each("src", Buffer), Each("indices", Int), Each("result", Ptr))
        effects()
        format "$src `[` $indices `]` attr-dict `:` functional-type(operands, $result)"
        verify verify_local_ptr
    }

    /// Pointers to the same places in the shared memory of the program of this rank in the cluster.
    op RemotePtr = "remote_ptr" {
        operands(src: one, rank: one)
        results(result)
        traits(Pure)
        index(Elementwise)
        types(Each("src", Ptr), Is("rank", Fixed(Type::I32)), Each("result", Ptr))
        effects()
        format "$src `,` $rank attr-dict `:` type($src) `->` type($result)"
        verify verify_remote_ptr
    }

    /// The `index`-th buffer of a multi-buffered allocation (drops the leading dimension).
    op MemdescIndex = "memdesc_index" {
        operands(src: one, index: one)
        results(result)
        traits(Pure)
        index(Slot)
        types(Each("src", Buffer), Each("result", Buffer), Is("result", Like("src")), Is("index", Fixed(Type::I32)))
        effects()
        format "$src `[` $index `]` attr-dict `:` type($src) `->` type($result)"
    }

    /// A sub-tile at constant offsets.
    op MemdescSubslice = "memdesc_subslice" {
        operands(src: one)
        attrs(offsets: Vec<i32> = "offsets")
        results(result)
        traits(Pure)
        index(Part("offsets"))
        types(Each("src", Buffer), Each("result", Buffer), Is("result", Like("src")))
        effects()
        format "$src `` $offsets attr-dict `:` type($src) `->` type($result)"
        verify verify_subslice
    }

    /// The buffer with its dimensions permuted (no data moves).
    op MemdescTrans = "memdesc_trans" {
        operands(src: one)
        attrs(order: Vec<i32> = "order")
        results(result)
        traits(Pure)
        index(Permute("order"))
        types(Each("src", Buffer), Each("result", Buffer), Is("result", Like("src")))
        effects()
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// The buffer's elements in row-major order under another shape (no data moves).
    op MemdescReshape = "memdesc_reshape" {
        operands(src: one)
        results(result)
        traits(Pure)
        index(Reshape)
        types(Each("src", Buffer), Each("result", Buffer), Is("result", Like("src")))
        effects()
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// The buffer's bytes, from `offset` bytes on, as another shape, element type and layout.
    op MemdescReinterpret = "memdesc_reinterpret" {
        operands(src: one)
        attrs(offset: Option<i32> = "offset")
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("src", Buffer), Each("result", Buffer))
        effects()
        format "$src attr-dict `:` type($src) `->` type($result)"
    }

    /// The part of a buffer that begins at these indices, which the program computes; its type says what lies between its elements. A part that is not inside is undefined.
    op MemdescSubview = "memdesc_subview" {
        operands(src: one, offsets: var)
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Each("src", Buffer), Is("offsets", Fixed(Type::I32)), Each("result", Buffer), Is("result", Like("src")))
        effects()
        marks(TILE)
        format "$src `[` $offsets `]` attr-dict `:` type($src) `->` type($result)"
        verify verify_subview
    }

    /// Copies the first `extents` elements along each dimension from global memory, where these pointers lead, to a buffer in a memory
    /// of its own kind. More elements than there are pointers are undefined.
    ///
    /// `inter_no_alias` promises that no copy to global memory that is under way writes what it reads.
    op CopyGlobalToLocal = "copy_global_to_local" {
        operands(src: one, dst: one, extents: var)
        attrs(no_alias: bool = "inter_no_alias")
        index(Unrelated)
        types(Each("src", Ptr), Each("dst", Mutable), Is("extents", Fixed(Type::I32)))
        effects(Effect::new(Access::Read, Resource::Global, Some("src")), WRITE_DST)
        format "$src `,` $dst `[` $extents `]` attr-dict `:` type($src) `->` type($dst)"
        verify verify_copy
    }

    /// Copies the first `extents` elements along each dimension of a buffer to global memory, where these pointers lead.
    ///
    /// `inter_no_alias` promises that no copy from global memory that is under way reads what it writes.
    op CopyLocalToGlobal = "copy_local_to_global" {
        operands(src: one, dst: one, extents: var)
        attrs(no_alias: bool = "inter_no_alias")
        index(Unrelated)
        types(Each("src", Buffer), Each("dst", Ptr), Is("extents", Fixed(Type::I32)))
        effects(READ_SRC, Effect::new(Access::Write, Resource::Global, Some("dst")))
        format "$src `,` $dst `[` $extents `]` attr-dict `:` type($src) `->` type($dst)"
        verify verify_copy
    }

    /// Copies the first `extents` elements along each dimension of a buffer to another one.
    op CopyLocal = "copy_local" {
        operands(src: one, dst: one, extents: var)
        index(Unrelated)
        types(Each("src", Buffer), Each("dst", Mutable), Is("extents", Fixed(Type::I32)))
        effects(READ_SRC, WRITE_DST)
        format "$src `,` $dst `[` $extents `]` attr-dict `:` type($src) `->` type($dst)"
        verify verify_copy
    }

    /// Global memory of this launch, `nbytes` for each CTA.
    op GlobalScratchAlloc = "global_scratch_alloc" {
        attrs(alignment: i32 = "alignment", nbytes: i32 = "nbytes")
        results(result)
        index(Unrelated)
        types(Each("result", Ptr))
        effects(Effect::new(Access::Allocate, Resource::Global, None))
        marks(GLOBAL_SCRATCH_OFFSET)
        format "attr-dict `:` type($result)"
    }

    /// Starts copying global memory into a buffer (`cp.async`); done when a wait on its commit group returns.
    op AsyncCopyGlobalToLocal = "async_copy_global_to_local" {
        operands(src: one, dst: one, mask: opt, other: opt)
        attrs(
            cache: crate::dialect::tt::CacheModifier = "cacheModifier",
            evict: crate::dialect::tt::EvictionPolicy = "evictionPolicy",
            is_volatile: bool = "isVolatile",
        )
        results(token)
        index(Aligned)
        types(Each("src", Ptr), Each("dst", Mutable), Is("mask", Mask("src")), Is("other", Loaded("src")), Is("token", Fixed(Type::ASYNC_TOKEN)))
        effects(
            Effect::new(Access::Read, Resource::Global, Some("src")),
            WRITE_DST.asynchronous(Completion::Copies),
        )
        marks(VEC, VEC_AXIS, FREE_SLOT)
        format "$src `,` $dst (`mask` $mask^)? (`other` $other^)? oilist(`cacheModifier` `=` $cacheModifier | `evictionPolicy` `=` $evictionPolicy) attr-dict `:` type($src) `->` short-type(ttg.memdesc, $dst)"
        verify verify_async_copy
    }

    /// Starts copying the block at `coord` (outermost first) of a descriptor into a buffer, where `pred` holds. The buffer is
    /// a slot of a ring's field, which the copy has filled when a reader's `ttg.ring_wait` returns. Outside the tensor it
    /// brings zeros (or NaN, if the descriptor says so).
    op AsyncCopyBlockToLocal = "async_copy_block_to_local" {
        operands(desc: one, coord: var, dst: one, pred: opt)
        attrs(
            cache: crate::dialect::tt::CacheModifier = "cacheModifier",
            evict: crate::dialect::tt::EvictionPolicy = "evictionPolicy",
        )
        index(Block("desc", "dst"))
        types(Is("coord", Fixed(Type::I32)), Each("dst", Mutable), Is("dst", Like("desc")), Is("pred", Fixed(Type::I1)))
        effects(Effect::new(Access::Read, Resource::Global, Some("desc")), WRITE_DST.asynchronous(Completion::Mbarrier))
        marks(MULTICAST)
        format "$desc `[` $coord `]` `,` $dst (`,` $pred^)? oilist(`cacheModifier` `=` $cacheModifier | `evictionPolicy` `=` $evictionPolicy) attr-dict `:` type($desc) `->` type($dst)"
        verify ttng::verify_coordinates
    }

    /// Closes a group of asynchronous copies.
    op AsyncCommitGroup = "async_commit_group" {
        operands(tokens: var)
        results(token)
        index(Unrelated)
        types(Is("tokens", Fixed(Type::ASYNC_TOKEN)), Is("token", Fixed(Type::ASYNC_TOKEN)))
        effects(ORDER)
        format "(`tokens` $tokens^)? attr-dict"
    }

    /// Waits until at most `num` commit groups of this thread are pending.
    op AsyncWait = "async_wait" {
        operands(tokens: var)
        attrs(num: i32 = "num")
        results(token)
        index(Unrelated)
        types(Is("tokens", Fixed(Type::ASYNC_TOKEN)), Is("token", Fixed(Type::ASYNC_TOKEN)))
        effects(ORDER)
        format "($tokens^)? attr-dict"
    }

    /// A ring of `slots` slots, whose fields are these buffers: each has a leading dimension of `slots`. Without fields it
    /// passes on nothing but that a slot has been committed.
    ///
    /// `readers` names the readers, who all get every chunk; without it there is one. `name` is for messages. A ring that is
    /// `one_shot` is filled once, slot by slot: its slots are never free again, and nobody waits for that.
    op RingCreate = "ring_create" {
        operands(fields: var)
        attrs(
            slots: i32 = "slots",
            readers: Option<Vec<String>> = "readers",
            name: Option<String> = "name",
            one_shot: bool = "one_shot",
        )
        results(ring)
        index(Unrelated)
        types(Each("fields", Mutable), Is("ring", Fixed(Type::RING)))
        effects(Effect::new(Access::Allocate, Resource::Other, None))
        marks(PEERS, PIPE)
        format "($fields^)? attr-dict (`:` type($fields)^)?"
        verify verify_ring_create
    }

    /// The writer waits (where `pred` holds) until all readers have released the slot since it was last committed. The
    /// first time round it is free. Copies that the writer starts until it commits the slot fill it, where `pred` holds.
    ///
    /// Without a phase there is nothing to wait for: writer and readers are the same warps, and the program reads a slot
    /// before it acquires it again. Nobody releases slots then.
    op RingAcquire = "ring_acquire" {
        operands(ring: one, slot: one, phase: opt, pred: opt)
        index(Unrelated)
        types(Is("ring", Fixed(Type::RING)), Is("slot", Fixed(Type::I32)), Is("phase", Fixed(Type::I32)), Is("pred", Fixed(Type::I1)))
        effects(WAIT)
        format "$ring `[` $slot `]` (`,` $phase^)? (`where` $pred^)? attr-dict"
    }

    /// The writer gives the slot to the readers: what has been written to it since it was acquired, also what asynchronous
    /// copies still write, is there when their wait returns. Stands in the block of the `ring_acquire`.
    op RingCommit = "ring_commit" {
        operands(ring: one, slot: one)
        index(Unrelated)
        types(Is("ring", Fixed(Type::RING)), Is("slot", Fixed(Type::I32)))
        effects(ORDER)
        format "$ring `[` $slot `]` attr-dict"
    }

    /// The writer gives the slot to the readers closed, with nothing in it: in place of `ring_acquire` and `ring_commit`.
    op RingClose = "ring_close" {
        operands(ring: one, slot: one, phase: one)
        index(Unrelated)
        types(Is("ring", Fixed(Type::RING)), Is("slot", Fixed(Type::I32)), Is("phase", Fixed(Type::I32)))
        effects(WAIT)
        format "$ring `[` $slot `]` `,` $phase attr-dict"
    }

    /// The reader of this number waits (where `pred` holds) until the slot has been committed or closed.
    ///
    /// `later` is for a writer who is the same warps: how many slots it has committed since this one that need not be full.
    op RingWait = "ring_wait" {
        operands(ring: one, slot: one, phase: one, pred: opt)
        attrs(reader: Option<i32> = "reader", later: Option<i32> = "later")
        index(Unrelated)
        types(Is("ring", Fixed(Type::RING)), Is("slot", Fixed(Type::I32)), Is("phase", Fixed(Type::I32)), Is("pred", Fixed(Type::I1)))
        effects(WAIT)
        format "$ring `[` $slot `]` `,` $phase (`where` $pred^)? attr-dict"
        verify verify_numbers
    }

    /// Whether the slot that has been waited for is closed.
    op RingIsClosed = "ring_is_closed" {
        operands(ring: one, slot: one)
        results(closed)
        index(Unrelated)
        types(Is("ring", Fixed(Type::RING)), Is("slot", Fixed(Type::I32)), Is("closed", Fixed(Type::I1)))
        effects(Effect::new(Access::Read, Resource::Other, None))
        format "$ring `[` $slot `]` attr-dict"
    }

    /// The reader of this number is done (where `pred` holds) with what it has begun to read of the slot.
    op RingRelease = "ring_release" {
        operands(ring: one, slot: one, pred: opt)
        attrs(reader: Option<i32> = "reader")
        index(Unrelated)
        types(Is("ring", Fixed(Type::RING)), Is("slot", Fixed(Type::I32)), Is("pred", Fixed(Type::I1)))
        effects(ORDER)
        format "$ring `[` $slot `]` (`where` $pred^)? attr-dict"
        verify verify_numbers
    }

    /// Ends a ring: nothing is under way in it any more, and its memory may be used for something else.
    op RingDealloc = "ring_dealloc" {
        operands(ring: one)
        index(Unrelated)
        types(Is("ring", Fixed(Type::RING)))
        effects(ORDER)
        format "$ring attr-dict"
    }

    /// A barrier of the enclosing scope (all threads of the CTA, of the partition, or of the warp where the kernel is written for one).
    op Barrier = "barrier" {
        index(Unrelated)
        types()
        effects(MEET)
        marks(ALL_WARPS)
        format "attr-dict"
    }

    /// The warp is at the barrier of the work group, and goes on: the first half of a split barrier. No memory is ordered.
    op BarrierArrive = "barrier_arrive" {
        index(Unrelated)
        types()
        effects(ORDER)
        format "attr-dict"
    }

    /// Waits until all warps have arrived (`barrier_arrive`) as often as this one: the second half of a split barrier. Between both the warp must not wait at
    /// the same barrier otherwise. No memory is ordered.
    op BarrierWait = "barrier_wait" {
        index(Unrelated)
        types()
        effects(MEET)
        format "attr-dict"
    }

    /// The index of the warp within the enclosing scope; in a kernel written for one warp, within the program.
    op WarpId = "warp_id" {
        results(result)
        traits(Pure)
        index(Unrelated)
        types(Is("result", Fixed(Type::I32)))
        effects()
        format "attr-dict"
    }

    /// Runs its regions at the same time, each on warps of its own: the default region on the `ttg.num-warps` warps that
    /// run the function around it, partition i on `partitionNumWarps[i]` further ones. All begin when the operation is
    /// reached, and it ends when all have ended; its results are what the default region yields.
    ///
    /// The default region sees the values around it. The partitions lie in a [`Partitions`] in the second region and see
    /// only their arguments, which are the captures: scalars, pointers and buffers. Thread and warp indices, barriers and
    /// layouts within a region are those of its warps alone.
    ///
    /// `requestedRegisters` is how many registers a thread of each partition wants; the default region gets what is left.
    /// `warpGroupStartIds` (the first warp of each partition) and `actualRegisters` (of the default region, then of
    /// each partition) are what the pass `allocate-warp-groups` decides.
    op WarpSpecialize = "warp_specialize" {
        operands(captures: var)
        attrs(
            partition_num_warps: Vec<i32> = "partitionNumWarps",
            requested_registers: Option<Vec<i32>> = "requestedRegisters",
            warp_group_start_ids: Option<Vec<i32>> = "warpGroupStartIds",
            actual_registers: Option<Vec<i32>> = "actualRegisters",
        )
        variadic_results(results)
        regions(default_region: "ttg.warp_yield", partition_holder: "ttg.warp_specialize.partitions") flow(
            pass(End(0, 0), Results), pass(Operands("captures"), Nested(1)),
        )
        index(Unrelated)
        types()
        effects(MEET)
        marks(REUSE)
        verify verify_warp_specialize
    }

    /// The partitions of a [`WarpSpecialize`], a region each.
    op Partitions = "warp_specialize.partitions" {
        traits(Isolated, Terminator, VariadicRegions)
        index(Unrelated)
        types()
        effects(LEAVES)
    }

    /// Ends the default region of a `ttg.warp_specialize`, giving its results.
    op WarpYield = "warp_yield" {
        operands(values: var)
        traits(Terminator)
        index(Unrelated)
        types()
        effects(LEAVES)
        format "attr-dict ($values^ `:` type($values))?"
    }

    /// Ends a partition of a `ttg.warp_specialize`.
    op WarpReturn = "warp_return" {
        traits(Terminator)
        index(Unrelated)
        types()
        effects(LEAVES)
        format "attr-dict"
    }
}

impl WarpSpecialize {
    /// The regions of the partitions.
    pub fn partitions(self, module: &Module) -> &[Region] {
        let holder = module.region_blocks(self.partition_holder(module)).first();
        match holder.and_then(|&b| module.first_op(b)) {
            Some(op) => module.regions(op),
            None => &[],
        }
    }

    /// The default region, then the partitions: what runs at the same time.
    pub fn all_regions(self, module: &Module) -> Vec<Region> {
        std::iter::once(self.default_region(module)).chain(self.partitions(module).iter().copied()).collect()
    }

    /// The captures that its partitions read from shared memory: scalars that the warps around it have computed. Arguments
    /// of the function, constants and buffers are known to every warp.
    pub fn passed_captures(self, module: &Module) -> Vec<Value> {
        let known = |v: Value| match module.value_def(v) {
            ValueDef::Argument(block, _) => {
                module.block_parent_op(block).is_some_and(|p| tt::Func::cast(module, p).is_some())
            }
            ValueDef::Result(..) => module.constant_value(v).is_some(),
        };
        let has_registers = |v: Value| {
            let kind = module.type_kind(module.value_type(v));
            !matches!(kind, TypeKind::MemDesc { .. } | TypeKind::AsyncToken | TypeKind::Ring)
        };
        self.captures(module).iter().copied().filter(|&v| has_registers(v) && !known(v)).collect()
    }
}

fn verify_warp_specialize(module: &Module, op: Op) -> Result<(), String> {
    let w = WarpSpecialize(op);
    let mut around = module.parent_op(op);
    while let Some(parent) = around {
        if WarpSpecialize::cast(module, parent).is_some() {
            return Err("partitions cannot be within partitions".into());
        }
        around = module.parent_op(parent);
    }
    let holder = match module.region_blocks(w.partition_holder(module)) {
        &[b] => module.first_op(b).filter(|&o| Partitions::cast(module, o).is_some()),
        _ => None,
    };
    if holder.is_none() {
        return Err("the second region must hold one ttg.warp_specialize.partitions".into());
    }
    let captures: Vec<Type> = w.captures(module).iter().map(|&v| module.value_type(v)).collect();
    if let Some(&ty) = captures.iter().find(|&&t| module.is_tensor(t)) {
        let ty = print_type(module, ty);
        return Err(format!(
            "a tensor ({ty}) is spread over warps and cannot be captured; put it into a buffer"
        ));
    }
    let partitions = w.partitions(module);
    let num_warps = w.partition_num_warps(module);
    if num_warps.len() != partitions.len() {
        return Err(format!("{} warp counts for {} partitions", num_warps.len(), partitions.len()));
    }
    if let Some(n) = num_warps.iter().find(|n| !matches!(n, 1 | 2 | 4 | 8 | 16)) {
        return Err(format!("a partition of {n} warps: it must be 1, 2, 4, 8 or 16"));
    }
    let counts = [
        (w.requested_registers(module), partitions.len(), "requestedRegisters"),
        (w.warp_group_start_ids(module), partitions.len(), "warpGroupStartIds"),
        (w.actual_registers(module), partitions.len() + 1, "actualRegisters"),
    ];
    for (list, expected, name) in counts {
        if list.is_some_and(|l| l.len() != expected) {
            return Err(format!("`{name}` must have {expected} elements"));
        }
    }
    for &region in partitions {
        let &[block] = module.region_blocks(region) else {
            return Err("a partition must have one block".into());
        };
        if module.last_op(block).and_then(|o| WarpReturn::cast(module, o)).is_none() {
            return Err("a partition must end with ttg.warp_return".into());
        }
    }
    Ok(())
}

/// Bytes become twice as many elements along the axis.
fn verify_fp4_to_fp(module: &Module, op: Op) -> Result<(), String> {
    let unpack = Fp4ToFp(op);
    let (from, to) = (module.value_type(unpack.src(module)), module.value_type(unpack.result(module)));
    if module.element_type(from) != Type::I8 {
        return Err(format!("bytes expected, not {}", print_type(module, from)));
    }
    let (Some(bytes), Some(elements)) = (module.shape(from), module.shape(to)) else { return Ok(()) };
    let axis = usize::try_from(unpack.axis(module)).ok().filter(|&a| a < bytes.len());
    let Some(axis) = axis else { return Err(format!("axis {} is out of range", unpack.axis(module))) };
    let twice = |(d, (&n, &m)): (usize, (&u32, &u32))| m == if d == axis { n.saturating_mul(2) } else { n };
    if bytes.len() == elements.len() && bytes.iter().zip(elements).enumerate().all(twice) {
        Ok(())
    } else {
        Err(format!("{} does not hold {} along {axis}", print_type(module, from), print_type(module, to)))
    }
}

/// A part is one of the tiles of its extents, and cut where the addresses of what lies in it differ from those of the first tile by one amount.
fn verify_subview(module: &Module, op: Op) -> Result<(), String> {
    let view = MemdescSubview(op);
    let shape = |v: Value| module.shape(module.value_type(v)).unwrap_or(&[]);
    let (whole, part) = (shape(view.src(module)), shape(view.result(module)));
    if whole.len() != part.len() || view.offsets(module).len() != whole.len() {
        return Err("it needs an offset for each dimension, of which its result has as many".into());
    }
    let [of, own] =
        [view.src(module), view.result(module)].map(|v| strided::strides(module, module.value_type(v)));
    for d in 0..whole.len() {
        let apart = own[d].checked_div(of[d]).unwrap_or(0);
        if part[d] > 1 && (apart == 0 || !own[d].is_multiple_of(of[d])) {
            return Err(format!("elements {own:?} apart are none of those that are {of:?} apart"));
        }
        let last = u64::from(part[d].saturating_sub(1)) * u64::from(apart);
        if last >= u64::from(whole[d]) {
            return Err(format!("a part of {part:?} does not fit into {whole:?}"));
        }
    }
    Ok(())
}

/// Pointers and buffers of one rank and element, and an extent for each dimension; pointers may be fewer than a buffer has elements.
fn verify_copy(module: &Module, op: Op) -> Result<(), String> {
    let &[src, dst, ..] = module.operands(op) else { return Ok(()) };
    let shape = |v: Value| module.shape(module.value_type(v)).unwrap_or(&[]);
    let (from, to) = (shape(src), shape(dst));
    if from.len() != to.len() || module.operand_group(op, 2).len() != from.len() {
        return Err(format!("{} dimensions are copied to {} by as many extents", from.len(), to.len()));
    }
    if module.is_ptr(module.element_type(module.value_type(src))) && from.iter().zip(to).any(|(n, m)| n > m) {
        return Err(format!("{from:?} pointers are more than the buffer of {to:?} holds"));
    }
    Ok(())
}

fn verify_subslice(module: &Module, op: Op) -> Result<(), String> {
    let slice = MemdescSubslice(op);
    let (from, to) = (module.value_type(slice.src(module)), module.value_type(slice.result(module)));
    let (Some(whole), Some(part)) = (module.shape(from), module.shape(to)) else { return Ok(()) };
    let offsets = slice.offsets(module);
    let beside = |(offset, n): &(&i32, &u32)| u32::try_from(**offset).is_ok_and(|at| !at.is_multiple_of(**n));
    // Without a swizzle, or where none has been chosen yet, a part may begin anywhere.
    let plain = match module.encoding(from).map(|e| module.attr_kind(e)) {
        Some(AttrKind::Encoding(Encoding::Shared(SharedKind::Swizzled { max_phase, .. }))) => *max_phase == 1,
        encoding => encoding.is_none(),
    };
    if let Some((offset, n)) = offsets.iter().zip(part).find(beside).filter(|_| !plain) {
        return Err(format!("a part of {n} cannot begin at {offset}, which is within a tile of as many"));
    }
    // The fast dimension and the one whose index permutes it, with the permutation of an index: 0 if it is none.
    let (fast, slow, phase): (usize, usize, Box<dyn Fn(u32) -> u32>) =
        match module.encoding(from).map(|e| module.attr_kind(e)) {
            Some(AttrKind::Opaque(text))
                if text_list(text, "CTAsPerCGA").is_some_and(|ctas| ctas.iter().any(|&n| n > 1)) =>
            {
                return Err(format!(
                    "{} is spread over CTAs, and such a buffer has no parts",
                    print_type(module, from)
                ));
            }
            Some(AttrKind::Encoding(Encoding::Shared(SharedKind::Swizzled {
                vec,
                per_phase,
                max_phase,
                order,
            }))) => {
                let (&[fast, slow, ..], Some(leading)) = (&order[..], whole.len().checked_sub(order.len()))
                else {
                    return Ok(());
                };
                let phase = |row: u32| {
                    row.checked_div(*per_phase)
                        .and_then(|p| p.checked_rem(*max_phase))
                        .map_or(0, |p| p.saturating_mul(*vec))
                };
                (leading + fast as usize, leading + slow as usize, Box::new(phase))
            }
            Some(AttrKind::Encoding(Encoding::Shared(SharedKind::NvmmaShared {
                swizzle_bytes,
                transposed,
                element_bits,
                ..
            }))) => {
                let Some(last) = whole.len().checked_sub(1).filter(|&l| l > 0) else { return Ok(()) };
                let phase = |row: u32| {
                    let chunk = (row % 8).checked_div(128u32.checked_div(*swizzle_bytes)?)?;
                    (chunk * 128).checked_div(*element_bits)
                };
                let (fast, slow) = if *transposed { (last - 1, last) } else { (last, last - 1) };
                (fast, slow, Box::new(move |row| phase(row).unwrap_or(0)))
            }
            _ => return Ok(()),
        };
    let (Some(&columns), Some(&rows), Some(&first)) = (whole.get(fast), whole.get(slow), part.get(slow))
    else {
        return Ok(());
    };
    let mut steps =
        std::iter::successors(Some(first), |row| row.checked_mul(2)).take_while(|&row| row < rows);
    match steps.find(|&row| phase(row) % columns != 0) {
        Some(row) => Err(format!(
            "a part of {first} along {slow} cuts the swizzling pattern, which differs {row} further on"
        )),
        None => Ok(()),
    }
}

fn verify_ring_create(module: &Module, op: Op) -> Result<(), String> {
    let create = RingCreate(op);
    let slots = create.slots(module);
    if slots < 1 {
        return Err(format!("a ring of {slots} slots"));
    }
    for &field in create.fields(module) {
        let ty = module.value_type(field);
        let fits = matches!(module.type_kind(ty), TypeKind::MemDesc { mutable: true, shape, .. }
            if shape.len() >= 2 && i64::from(shape[0]) == i64::from(slots));
        if !fits {
            let ty = crate::text::print_type(module, ty);
            return Err(format!(
                "a field of a ring of {slots} slots must be a mutable buffer `{slots}x...`, not {ty}"
            ));
        }
    }
    if let Some(readers) = create.readers(module) {
        let twice = |i: usize| readers[..i].contains(&readers[i]);
        if readers.is_empty() || (0..readers.len()).any(twice) {
            return Err(format!(
                "the readers of a ring must have names that differ, and there must be one: {readers:?}"
            ));
        }
    }
    Ok(())
}

/// Readers and slots are counted from 0.
fn verify_numbers(module: &Module, op: Op) -> Result<(), String> {
    for name in ["reader", "later"] {
        if module.int_attr(op, name).is_some_and(|n| n < 0) {
            return Err(format!("`{name}` must not be negative"));
        }
    }
    Ok(())
}

fn verify_local_alloc(module: &Module, op: Op) -> Result<(), String> {
    let alloc = LocalAlloc(op);
    let ty = module.value_type(alloc.result(module));
    match module.type_kind(ty) {
        TypeKind::MemDesc { mutable: false, .. } if alloc.src(module).is_none() => {
            Err("a buffer with no source must be mutable".into())
        }
        _ => Ok(()),
    }
}

/// An index for each dimension gives a pointer to an element in shared memory.
fn verify_local_ptr(module: &Module, op: Op) -> Result<(), String> {
    let ptr = LocalPtr(op);
    let (buffer, result) = (module.value_type(ptr.src(module)), module.value_type(ptr.result(module)));
    let (rank, given) = (module.shape(buffer).map_or(0, <[u32]>::len), ptr.indices(module).len());
    if rank != given {
        return Err(format!(
            "{} has {rank} dimensions, but {given} indices are given",
            print_type(module, buffer)
        ));
    }
    if module.pointee_type(result) != Some(module.element_type(buffer)) || !module.is_shared_pointer(result) {
        let (result, buffer) = (print_type(module, result), print_type(module, buffer));
        return Err(format!("{result} does not point to elements of {buffer} in shared memory"));
    }
    Ok(())
}

/// Only shared memory has a counterpart in other CTAs.
fn verify_remote_ptr(module: &Module, op: Op) -> Result<(), String> {
    let remote = RemotePtr(op);
    let (src, result) = (module.value_type(remote.src(module)), module.value_type(remote.result(module)));
    let fits = module.is_shared_pointer(src)
        && module.is_remote_pointer(result)
        && module.pointee_type(src) == module.pointee_type(result);
    if fits {
        return Ok(());
    }
    Err(format!("{} has no place {} in another CTA", print_type(module, src), print_type(module, result)))
}

/// What lies there is what the buffer holds.
fn verify_async_copy(module: &Module, op: Op) -> Result<(), String> {
    let copy = AsyncCopyGlobalToLocal(op);
    let (src, dst) = (module.value_type(copy.src(module)), module.value_type(copy.dst(module)));
    if module.pointee_type(src) == Some(module.element_type(dst)) {
        return Ok(());
    }
    Err(format!("{} cannot be copied to {}", print_type(module, src), print_type(module, dst)))
}
