//! Marks: attributes that passes leave on operations for later passes and for the lowering.
//!
//! Each has one spelling, here. Declarations say which of them their operations carry (`marks(…)`), and the verifier reports
//! one that lies elsewhere. What any operation may carry stands apart.

use crate::entity::Op;
use crate::module::Module;

macro_rules! marks {
    ($list:ident: $($(#[doc = $doc:literal])+ $NAME:ident = $name:literal;)*) => {
        $($(#[doc = $doc])+ pub const $NAME: &str = $name;)*

        /// These marks with what they say.
        pub const $list: &[(&str, &str)] = &[$(($name, concat!($($doc, "\n"),+))),*];
    };
}

marks! {
    DECLARED:
    /// How many elements one access of memory takes, along [`VEC_AXIS`].
    VEC = "tt.vec";
    /// The dimension along which accesses take several elements.
    VEC_AXIS = "tt.vec_axis";
    /// On a load: whoever wrote it would have it asynchronous, if that can be. It changes no value.
    ASYNC = "tt.load.async";
    /// On a load and the store to a buffer where its value goes: the kernel wants both to be one asynchronous copy.
    COPY = "tle.copy";
    /// On a store through pointers to all elements of a view, in order: it is of what a load gives, where the same mask holds.
    FILLS = "tle.fills";
    /// On a part of a buffer: it begins at a multiple of its size along each dimension of what it is a part of.
    TILE = "tle.tile";
    /// On an mbarrier's making: one of a phase's arrivals is that of copies which bring so many bytes in all. On an announcement of
    /// bytes: it is a part of that arrival.
    PHASE_BYTES = "tle.bytes";
    /// On a barrier of a cluster's programs: it orders nothing that they have done before it.
    RELAXED = "tle.relaxed";
    /// On a ring: the kernel made it.
    PIPE = "tle.pipe";
    /// On a product of warp groups: the kernel issues it, and waits for it itself.
    AUTHORED = "tle.wgmma";
    /// On a load, and on the copy that it becomes: CTAs whose ranks differ in these bits alone get the same block.
    MULTICAST = "ttg.multicast";
    /// On a copy to global memory: the kernel says that so many may be under way. The largest such number is the whole kernel's.
    PENDING = "tle.pending";
    /// On a `ttg.warp_specialize`: the warps of the default region, which is empty, run its partitions side by side.
    REUSE = "reuseDefaultWarps";
    /// On an arrival, and on a ring without fields, whose commits are such arrivals: bit x of it stands for the CTA of
    /// rank ^ x, at whose mbarrier it arrives.
    PEERS = "ttg.peers";
    /// On a wait: the elected thread, which issues copies, makes it, and no other.
    ELECTED = "ttg.elected";
    /// Lanes are not combined, each has its own result.
    LANES_APART = "ttg.lanes_apart";
    /// The copy's slot is not the one that is read between the last `ttg.async_wait` and the copy. The pipeliner says so of
    /// the copies of loops, of which each iteration waits for its slot first.
    FREE_SLOT = "ttg.free_slot";
    /// The users of the buffer see to their order themselves.
    ORDERED = "tilewright.ordered";
    /// The buffer lives through a loop so that what is copied from it may be under way meanwhile: where there is no room, each of its stores may have one of its own.
    THROUGH_LOOP = "tilewright.through_loop";
    /// On a buffer and on a barrier of a kernel written for one warp: they are those of all warps of the program.
    ALL_WARPS = "ttg.all_warps";
    /// On a loop: its iterations are programs of the launch, which are in no order among themselves.
    PROGRAMS = "ttg.programs";
    /// On a loop: its prefetches bring, each a part, what all warps load.
    SHARED_PREFETCHES = "ttg.shared_prefetches";
    /// Which warp makes the tensor map.
    MAKER = "tilewright.warp";
    /// Copies to global memory follow, which several warps issue.
    STORES = "tilewright.stores";
    /// Where in the launch's scratch of a CTA it lies, in bytes.
    GLOBAL_SCRATCH_OFFSET = "ttg.global_scratch_memory_offset";
}

marks! {
    ANY:
    /// Where in shared memory the buffer or the scratch lies, in bytes.
    ALLOCATION_OFFSET = "allocation.offset";
    /// How long runs of equal elements are, by dimension.
    CONSTANCY = "tt.constancy";
    /// What divides the first element of each run of consecutive ones, by dimension.
    DIVISIBILITY = "tt.divisibility";
    /// How long runs of consecutive elements are, by dimension.
    CONTIGUITY = "tt.contiguity";
}

/// Whether an operation carries a promise of its author's about its value (`tl.multiple_of` and its like).
pub fn promises(module: &Module, op: Op) -> bool {
    [DIVISIBILITY, CONTIGUITY, CONSTANCY].iter().any(|name| module.op_attr(op, name).is_some())
}
