//! The passes: from a `tt` module, which says what a kernel computes, to a `ttg` module, which says which thread holds
//! what, where shared memory lies and when threads wait for each other. The one comes from
//! [`tilewright_frontend`](../tilewright_frontend/index.html), the other goes to [`tilewright_lower`](../tilewright_lower/index.html); both are a
//! [`tilewright_ir::Module`].
//!
//! | | |
//! | --- | --- |
//! | [`analysis`] | what can be known of a module without changing it |
//! | [`transform`] | passes for any target |
//! | [`hopper`] | passes for what NVIDIA's GPUs have since Hopper: clusters, TMA, warp groups, warp specialization |
//! | [`mod@pass`] | what a pass is, and a row of a target's list |
//! | [`pipeline`], [`opt`] | the run of a target's list, or of a list on a command line |
//! | [`mod@remarks`] | what became of hints that could not be followed |
//! | [`contract`], [`verify`] | what passes require and ensure, and the check of it |
//! | [`target`], [`machine`] | what passes may know of a target |
//! | [`sums`] | what the analysis of addresses finds, as operations |
//! | [`level`] | whose a tensor is, where instructions take blocks of whole warps |
//!
//! This page fixes what the IR looks like **after the last pass**: it is the contract with the lowering (`crates/lower`, and
//! the targets' parts of it), which needs no analysis of its own.
//!
//! # The module
//!
//! Attributes of the `builtin.module` operation:
//!
//! | attribute | meaning |
//! | --- | --- |
//! | `ttg.num-warps : i32` | warps that run the function |
//! | `ttg.total-num-warps : i32` | warps of a CTA, those of partitions included, where there are any |
//! | `ttg.maxnreg : i32` | the most registers of a thread: by the option `maxnreg`, or those at the start, where partitions change them |
//! | `ttg.min-ctas-per-sm : i32` | CTAs that a multiprocessor should hold at least, where a target bounds them |
//! | `ttg.num-ctas : i32` | CTAs of a cluster, which runs one program: tensors, buffers and blocks of descriptors are what one CTA has ([`distribute_ctas`](hopper::distribute_ctas)) |
//! | `tle.cluster_dims = array<i32: x, y, z>` | programs of a cluster along each axis of the grid, where programs form clusters ([`launch`](tilewright_ir::launch)); from `tt` on |
//! | `ttg.global_scratch_memory_zeroed` | the launch's scratch memory is zero when the kernel begins |
//! | `ttg.programs_argument : i32` | the number of the argument that says how many programs there are along x, where a launch starts fewer ([`persistent_programs`](transform::persistent_programs)) |
//! | `ttg.programs_axes : i32` | 3 where the two arguments behind that one say how many there are along y and z, and fewer of the whole grid are started |
//! | `ttg.threads-per-warp : i32` | threads of a warp |
//! | `ttg.stmatrix` | warps store matrices to shared memory ([`matrix_store`](analysis::scratch::matrix_store), [`conversion`](analysis::scratch::conversion)) |
//! | `ttg.target = "cuda:90"` | the target |
//! | `tt.warp_level : i32` | warps of a program whose kernel is written for one of them ([`launch`](tilewright_ir::launch)), from `tt` on: `ttg.num-warps` is 1, `ttg.total-num-warps` counts them |
//! | `ttg.warp-shared : i32` | bytes of shared memory that each of these has of its own: what is not marked `ttg.all_warps` lies so far behind that of the warp before |
//! | `ttg.level = "warp"` or `"intrinsic"` | that tensors are those of one warp, or of one instruction ([`level`]) |
//! | `ttg.shared : i32` | bytes of shared memory, buffers and scratch together |
//! | `ttg.not_negative = [["argument", 3, 32], …]` | in the text behind the passes: what the code takes for no negative numbers ([`launch`](tilewright_ir::launch)) |
//! | `ttg.remarks = ["…"]` | hints that could not be followed ([`remarks`]) |
//!
//! There is one public function, the kernel. The others are called: what crosses their border has the encodings that
//! [`assign_layouts`](transform::assign_layouts) gives each type there, their shared memory begins behind their callers', and a barrier of theirs is
//! one of all warps. Control flow is `scf.for`, `scf.if` and `scf.while`.
//!
//! A `ttg.warp_specialize` runs its regions at the same time on warps of their own: `warpGroupStartIds` says which,
//! `actualRegisters` (the default region's, then the partitions') what `setmaxnreg` asks for. Layouts, barriers and scratch
//! within a region are those of its warps ([`scope`](analysis::scope)).
//!
//! With several CTAs to a cluster `ttng.cluster_cta_rank` says which one this is. A `ttng.cluster_exchange` emits its own
//! barriers of the cluster, after its writes and after its reads. A TMA copy with `ttg.multicast = mask` brings a part of the
//! block to all CTAs whose ranks differ in the bits of the mask alone, and they the others; an arrival with `ttg.peers = set`
//! is one at the mbarrier of each CTA of rank ^ x, x being a bit of the set ([`multicast`](hopper::multicast)); a wait with `ttg.elected` is
//! that of the thread that issues copies. In a cluster TMA boxes are so
//! small that its CTAs can share the copies of a block ([`tilewright_layout::TmaBlock::in_parts`]). Beside a
//! `ttg.warp_specialize` the cluster meets in the function's body only, before the first or behind the last.
//!
//! # Encodings
//!
//! Every tensor type has a distributed encoding and every `!ttg.memdesc` a shared one; there is no tensor without.
//!
//! | operation | encodings |
//! | --- | --- |
//! | elementwise (`arith`, `math`, `tt.addptr`, casts, `arith.select`, …) | all tensor operands and results have the same |
//! | `ttng.cluster_exchange` | source and result have the same |
//! | `tt.load`, `tt.store`, `tt.atomic_*`, `ttg.async_copy_global_to_local` | pointer, value, mask, other and result have the same |
//! | `tt.make_range`, `tt.splat`, `arith.constant` | any |
//! | `tt.expand_dims` on `axis` | source is `slice<axis, parent = result's>` |
//! | `tt.broadcast` | source and result have the same |
//! | `tt.reduce` on `axis` | sources have the same; results are `slice<axis, parent = sources'>` (or scalars) |
//! | `tt.scan` | sources and results have the same |
//! | `tt.dot` | accumulator and result: `nvidia_mma` v2, or `blocked` (then it is made of multiply-adds). `a` is `dot_op<0, parent = result's>`, `b` is `dot_op<1, …>`; `kWidth` is 32 / bits of an operand for mma, 0 for blocked |
//! | `ttng.warp_group_dot` | accumulator and result: `nvidia_mma` v3, whose N may be wider than the tensor. `b` is a buffer in `nvmma_shared`, `a` one too or a tensor of `dot_op<0, parent = result's>`, `kWidth` 32 / bits |
//! | `tt.trans`, `tt.reshape`, `tt.join`, `tt.split`, `tt.cat` | any; [`reindex_registers`](analysis::reindex::reindex_registers) says whether data stays in each thread's registers, otherwise it moves through scratch, stored at its row-major index |
//! | `tt.gather` | any |
//! | `tt.histogram` | source and mask have the same; result any |
//! | `ttg.convert_layout` | any two that differ; [`conversion`](analysis::scratch::conversion) says how |
//! | `ttg.local_load` | buffer to any; to `dot_op` this is where `ldmatrix` applies |
//! | `ttng.async_tma_*` | the descriptor's block and the buffer have the same, one that [`tilewright_layout::TmaBlock`] knows; mbarriers are `memdesc<1xi64>` |
//!
//! On a target with [`WarpUnits`](target::WarpUnits) encodings are those of warps ([`Encoding::is_of_warps`](tilewright_layout::Encoding::is_of_warps)): of a
//! dot the result's is any, and `a` and `b` have its operands'. [`distribute_to_warps`](transform::distribute_to_warps) leaves tensors of one
//! warp with the encodings that they had, [`match_target_size`](transform::match_target_size) tensors of one instruction without any.
//!
//! # Memory operations
//!
//! `tt.load`, `tt.store`, `tt.atomic_rmw`, `tt.atomic_cas` and `ttg.async_copy_global_to_local` on tensors carry two
//! discardable attributes that [axis analysis](analysis::axis) leaves: `tt.vec = v : i32` and `tt.vec_axis = d : i32`. They promise
//! that every run of `v` elements along dimension `d` which begins at a multiple of `v` has consecutive addresses, of
//! which the first is aligned to `v` elements, and one value of the mask. `v` is a power of two of at most 16 bytes. The
//! width of an access is then `min(v, TileLayout::contig_along(d))`; nothing else must be proved. Elements past the
//! logical shape (padding) are never accessed, and elements held by several threads are stored once.
//!
//! `arith.cmpi` may carry `tt.constancy = array<i32: r, …>`, one power of two per dimension: runs of r elements that begin
//! at multiples of r have one result, which a thread computes once.
//!
//! `ttg.async_copy_global_to_local` may carry `ttg.free_slot`: nothing reads the slot of the ring that it fills between the
//! last `ttg.async_wait` and the copy. [`membar`](transform::membar) needs no barrier for what is read of other slots there.
//!
//! # Shared memory and barriers
//!
//! - `allocation.offset : i32` (bytes from the start of the CTA's dynamic shared memory) stands on every
//!   `ttg.local_alloc` and on every operation that needs scratch. [`scratch_bytes`](analysis::scratch::scratch_bytes) says which do, how much,
//!   and how the scratch of a reduction or scan is arranged; the lowering asks the same function.
//! - An operation with scratch emits *its own* barriers **between** its writes and its reads (and between rounds of a
//!   conversion). It emits none before its first write and none after its last read: [`membar`](transform::membar) puts a `ttg.barrier`
//!   between operations wherever one is needed.
//! - Of global memory, a `ttg.barrier` stands before a write of what other threads may still load, and before an atomic operation
//!   that releases what they have written ([`global_barriers`](transform::global_barriers)).
//! - `ttg.async_wait` is followed by a `ttg.barrier` where another thread's copies are read after it; the lowering of
//!   the wait itself is the wait alone.
//! - A `ttng.warp_group_dot` with `isAsync` is one group of products. Its result is valid and its buffers are free after a
//!   `ttng.warp_group_dot_wait` that leaves fewer groups pending than were issued since; the results go through the wait.
//!   A `ttng.fence_async_shared` and a barrier stand between writes to a buffer and a dot that reads it.
//! - TMA copies to shared memory are issued by one thread of the scope, those to global memory box by box by one of each
//!   warp in turn (so that `ttng.tensormap_fenceproxy_acquire` with `tilewright.stores` is for one of each); a
//!   `ttng.tensormap_create` is done by the warp `tilewright.warp`. `ttng.wait_barrier` and `ttng.async_tma_store_wait` are
//!   executed by all: each then sees what came. A
//!   barrier stands before a copy into a buffer that others have read, a proxy fence and a barrier before one out of a
//!   buffer that threads have written.
//! - `ttng.wait_order_barrier` and `ttng.arrive_order_barrier` stand in the default region of a `ttg.warp_specialize` of two warp groups or more;
//!   between them nothing waits for other warps of the scope. Each `wait_order_barrier` is followed by one `arrive_order_barrier` on every way
//!   through the region, `arrive_order_barrier {begins}` stands before all of them and `wait_order_barrier {ends}` behind.
//! - A `tt.reduce` with `ttg.lanes_apart` does not combine lanes: each has its own result, until `ttg.lane_sum` adds them. In
//!   between stand additions and multiplications by what all these lanes have alike.
//! - Kernel arguments of type `!tt.tensordesc` are tensor maps ([`kernel_maps`](hopper::tma::kernel_maps)). With
//!   `ttg.global_scratch_memory_size : i32` on the module the kernel has one more, last parameter: the launch's scratch
//!   memory, that many bytes for each CTA. With `tle.ranks : i32` the last argument of the kernel is where its rank's part of the launch's
//!   symmetric memory begins.
//! - `ttg.local_alloc` with a source writes its buffer; `ttg.local_dealloc` lowers to nothing.
//! - Rings (`ttg.ring_*`, `ttg.async_copy_block_to_local`) are what kernels (pipes), [`warp_specialize`](hopper::warp_specialize) and
//!   [`software_pipeline`](transform::software_pipeline) make and [`lower_rings`](transform::lower_rings) ends: none is left.
//! - A pipelined loop has a buffer `memdesc<slots x …, mutable>` and takes views by `ttg.memdesc_index` with a slot
//!   number that wraps around (`arith.select`), never a remainder. Its [`schedule`](transform::software_pipeline::schedule) is not in the IR:
//!   the order of operations, carried values and slots are what it came to. A loop's `num_stages` is the most slots that its
//!   rings have; fewer where shared memory has no room for them, one more where that spares a barrier.
//! - `tt.async_copy` masks: copies past the end of the loop are masked off by a splat of the loop's condition, which the
//!   lowering turns into a source size of zero (or a predicate); the rows of a masked-off element with `other` absent or
//!   zero read as zero. Loads with another `other` stay synchronous.

pub mod analysis;
mod branches;
pub mod contract;
pub mod hopper;
pub mod level;
pub mod machine;
pub mod opt;
mod parts;
pub mod pass;
pub mod pipeline;
pub mod remarks;
pub mod sums;
pub mod target;
pub mod transform;
pub mod verify;

pub use pipeline::{Options, lower_to_ttg, lower_to_ttg_with};
pub use target::TargetInfo;
