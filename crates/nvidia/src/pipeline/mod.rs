//! The passes of NVIDIA targets: the whole order, on one screen. A pass that only they have stands in this folder.
//!
//! ```text
//! tt    (inline, canonicalize, cse, licm: crates/ir)
//!   │   inline-calls … assign-layouts
//!   ▼
//! ttg   encode-descriptors … launch-bounds
//!   │   (distribute-to-warps and match-target-size stand behind assign-layouts for targets that have them: crates/xe)
//!   ▼
//! lowering
//! ```
//!
//! The list is the same for every capability: a pass whose hardware is missing finds that in
//! [`TargetInfo`](tilewright_passes::TargetInfo), and has nothing to do.

mod allocate_counters;
mod launch_bounds;

use tilewright_passes::hopper::{
    allocate_warp_groups, async_dots, distribute_ctas, encode_descriptors, global_proxies, lower_tma,
    pingpong, read_slots, transpose_dots, user_dots, warp_specialize,
};
use tilewright_passes::pass::{DCE, Row};
use tilewright_passes::transform::{
    allocate_shared, arrange_buffers, assign_layouts, async_loads, decompose_scaled_dots, early_commits,
    explain_dots, fill_rings, global_barriers, inline_calls, legalize_dots, lower_descriptors, lower_rings,
    membar, named_barriers, order_rings, persistent_programs, raise_to_descriptors, sink_lane_sums,
    sink_pointers, software_pipeline, unroll_loops, user_copies,
};

/// Each pass, and why it stands where it does.
pub static PASSES: &[Row] = &[
    Row {
        pass: inline_calls::PASS,
        why: "before all: functions that can't be called are code like any other",
    },
    Row {
        pass: user_dots::PASS,
        why: "control flow is all that results pass through now, and errors are those of the author's lines",
    },
    Row {
        pass: named_barriers::PASS,
        why: "which partitions come to a barrier is known, and errors are those of the author's lines",
    },
    Row {
        pass: order_rings::PASS,
        why: "rings of one group of warps are buffers to all that follows, and nothing has moved their accesses yet",
    },
    Row {
        pass: arrange_buffers::PASS,
        why: "before tensors get layouts, which follow those of the buffers; whole accesses are buffers' to all that follows",
    },
    Row {
        pass: raise_to_descriptors::PASS,
        why: "what is a block is one to all that follows, whoever wrote it as pointers; scalars are simple yet",
    },
    Row {
        pass: persistent_programs::PASS,
        why: "the loop over programs is one to all that follows; what loads blocks in it is known",
    },
    Row { pass: unroll_loops::PASS, why: "several iterations are one to whatever schedules them" },
    Row {
        pass: decompose_scaled_dots::PASS,
        why: "before everything that looks at dots, their shapes and types: no target here has units for scales",
    },
    Row {
        pass: distribute_ctas::PASS,
        why: "tiles shrink to the part that one CTA has, and no later pass but those that copy by TMA knows of clusters",
    },
    Row {
        pass: lower_descriptors::PASS,
        why: "blocks that no hardware moves become pointers and masks, which all that follows treats as any others",
    },
    Row {
        pass: legalize_dots::PASS,
        why: "layouts are chosen by the instruction of a dot: each must be one that there is",
    },
    Row {
        pass: explain_dots::PASS,
        why: "dots are as the hardware has them, or it has none: its author should know",
    },
    Row {
        pass: transpose_dots::PASS,
        why: "the same: which operand is which decides the instruction's width",
    },
    Row {
        pass: assign_layouts::PASS,
        why: "tt becomes ttg: every tensor gets its encoding once, and dot operands their buffers",
    },
    Row {
        pass: user_copies::PASS,
        why: "layouts say how wide copies are; the passes behind know copies, and would begin loads elsewhere",
    },
    Row {
        pass: encode_descriptors::PASS,
        why: "the block of a descriptor has the layout of the buffers that it is copied to, known now",
    },
    Row {
        pass: fill_rings::PASS,
        why: "blocks lie as in the fields now; what is left of loads the passes behind would begin elsewhere",
    },
    Row {
        pass: read_slots::PASS,
        why: "the same; dots read buffers since they have layouts, and are not yet scheduled",
    },
    Row {
        pass: early_commits::PASS,
        why: "which slots threads fill is known, and nobody waits for products yet, whose results would be wanted earlier",
    },
    Row {
        pass: sink_pointers::PASS,
        why: "layouts say how many registers they take; loops are not yet divided or scheduled",
    },
    Row {
        pass: warp_specialize::PASS,
        why: "before loops are scheduled: each partition has loops of its own, scheduled for its warps",
    },
    Row {
        pass: software_pipeline::PASS,
        why: "loops get their schedule: what is copied, computed and waited for in which iteration",
    },
    Row {
        pass: lower_tma::PASS,
        why: "behind the pipeliner, which makes rings of the copies that are in loops",
    },
    Row {
        pass: async_dots::PASS,
        why: "products are waited for where their results are used, which the schedule has moved",
    },
    Row {
        pass: lower_rings::PASS,
        why: "a slot is free when the products that read it have been waited for, known now; mbarriers need memory, given later",
    },
    Row {
        pass: async_loads::PASS,
        why: "behind all that makes copies of loads or groups of copies: what is left is waited for by counting these",
    },
    Row { pass: pingpong::PASS, why: "turns go around products and their waits, which stand now" },
    Row {
        pass: sink_lane_sums::PASS,
        why: "loops have their final form: what they add up over lanes can leave them",
    },
    Row { pass: DCE, why: "what lower-rings and sink-lane-sums left behind would get memory and barriers" },
    Row {
        pass: allocate_counters::PASS,
        why: "behind lower-tma, which places tensor maps in the same memory",
    },
    Row { pass: allocate_warp_groups::PASS, why: "what partitions do is final: their warps and registers" },
    Row {
        pass: global_proxies::PASS,
        why: "behind all that makes copies by TMA, whose order with stores it sees to; its barriers are membar's, too",
    },
    Row { pass: allocate_shared::PASS, why: "buffers and scratch are final: their offsets" },
    Row { pass: membar::PASS, why: "barriers depend on which buffers lie in the same place" },
    Row { pass: global_barriers::PASS, why: "most of what it looks for membar's barriers have settled" },
    Row { pass: launch_bounds::PASS, why: "last: it reads how loads are lowered, and changes nothing else" },
];
