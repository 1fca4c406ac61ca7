//! The passes of Intel's targets: the whole order, on one screen. A kernel goes by levels ([`PASSES`]); one that holds what these don't
//! take to blocks of warps, such as a scan along what warps share out, goes thread by thread as on other targets ([`BY_THREADS`]).
//!
//! ```text
//! tt    (inline, canonicalize, cse, licm: crates/ir)
//!   │   inline-calls … assign-layouts
//!   ▼
//! ttg   of a work group: what each warp has of a tensor is its layout    (ML-Triton, Listing 2)
//!   │   distribute-to-warps
//!   ▼
//! ttg   of a warp: what it has is the tensor                             (Listing 3)
//!   │   match-target-size
//!   ▼
//! ttg   of instructions: each tensor is what one of them takes           (Listing 4)
//!   │   distribute-to-lanes … membar
//!   ▼
//! ttg   of a thread: each tensor has a layout of registers and lanes
//!   │   lower
//!   ▼
//! SPIR-V                                                                  (as LLVM IR: Listing 5)
//! ```

use crate::{gathered_dots, keep_in_step, lane_sums, order_dots, unheeded_hints};
use tilewright_passes::hopper::{allocate_warp_groups, distribute_ctas, lower_tma, user_dots};
use tilewright_passes::pass::{DCE, Property, Row};
use tilewright_passes::transform::{
    allocate_shared, arrange_buffers, assign_layouts, decompose_scaled_dots, distribute_to_lanes,
    distribute_to_warps, global_barriers, inline_calls, legalize_dots, lower_descriptors, lower_rings,
    match_target_size, membar, order_rings, prefetch_blocks, raise_to_descriptors, receive_descriptors,
    sink_lane_sums, unroll_loops,
};

/// By levels: each pass, and why it stands where it does.
pub static PASSES: &[Row] = &[
    Row { pass: unheeded_hints::PASS, why: "before all: loops and accesses are those of the author" },
    Row {
        pass: inline_calls::PASS,
        why: "before all: functions that can't be called are code like any other",
    },
    Row {
        pass: user_dots::PASS,
        why: "there are no warp groups: a kernel that multiplies by such should know",
    },
    Row {
        pass: receive_descriptors::PASS,
        why: "descriptors that a kernel is given are such as it makes to all that follows",
    },
    Row { pass: unroll_loops::PASS, why: "several iterations are one to all that follows" },
    Row {
        pass: decompose_scaled_dots::PASS,
        why: "before everything that looks at dots: there are no units for scales",
    },
    Row { pass: legalize_dots::PASS, why: "behind what makes dots: those that no instruction does" },
    Row {
        pass: raise_to_descriptors::PASS,
        why: "behind all that makes loads and stores, before layouts: instructions take blocks of matrices",
    },
    Row {
        pass: gathered_dots::PASS,
        why: "what is left of pointers is gathered, and thread by thread that is done by vectors",
    },
    Row { pass: distribute_ctas::PASS, why: "there are no clusters: a kernel that asks for one should know" },
    Row { pass: assign_layouts::PASS, why: "tt becomes ttg: every tensor gets its encoding once" },
    Row {
        pass: prefetch_blocks::PASS,
        why: "blocks are still those of all warps, which share out prefetches",
    },
    Row {
        pass: distribute_to_warps::PASS,
        why: "encodings say what each warp has: from here on the program is that of one",
    },
    Row {
        pass: match_target_size::PASS,
        why: "a warp's blocks are known, and larger than instructions take them",
    },
    Row {
        pass: distribute_to_lanes::PASS,
        why: "blocks are those of instructions, which say what each lane has of them",
    },
    Row {
        pass: lane_sums::PASS,
        why: "loops have their final form, and lanes their columns: what loops add up over lanes can leave them",
    },
    Row {
        pass: order_dots::PASS,
        why: "which loads and dots there are is final, and barriers are not there yet: few tiles are held at once",
    },
    Row { pass: DCE, why: "what the passes before it replaced" },
    Row { pass: allocate_shared::PASS, why: "buffers and scratch are final: their offsets" },
    Row { pass: membar::PASS, why: "barriers depend on which buffers lie in the same place" },
    Row {
        pass: keep_in_step::PASS,
        why: "which loops have barriers is known: a split one must not meet another",
    },
    Row {
        pass: global_barriers::PASS,
        why: "lanes hold copies, too, of blocks with fewer columns: what one of them stores all may still load",
    },
];

/// Thread by thread.
pub static BY_THREADS: &[Row] = &[
    Row { pass: unheeded_hints::PASS, why: "before all: loops and accesses are those of the author" },
    Row {
        pass: inline_calls::PASS,
        why: "before all: functions that can't be called are code like any other",
    },
    Row {
        pass: user_dots::PASS,
        why: "there are no warp groups: a kernel that multiplies by such should know",
    },
    Row {
        pass: order_rings::PASS,
        why: "rings of one group of warps are buffers to all that follows, and nothing has moved their accesses yet",
    },
    Row { pass: arrange_buffers::PASS, why: "before tensors get layouts, which follow those of the buffers" },
    Row { pass: unroll_loops::PASS, why: "several iterations are one to all that follows" },
    Row { pass: decompose_scaled_dots::PASS, why: "before everything that looks at dots" },
    Row { pass: distribute_ctas::PASS, why: "there are no clusters: a kernel that asks for one should know" },
    Row {
        pass: lower_descriptors::PASS,
        why: "blocks become pointers and masks, which all that follows treats as any others",
    },
    Row { pass: legalize_dots::PASS, why: "dots are multiply-adds of types that can be multiplied" },
    Row { pass: assign_layouts::PASS, why: "tt becomes ttg: every tensor gets its encoding once" },
    Row { pass: lower_tma::PASS, why: "there are no such copies: what is left of descriptors is an error" },
    Row { pass: lower_rings::PASS, why: "a ring that a kernel has becomes barriers" },
    Row {
        pass: sink_lane_sums::PASS,
        why: "loops have their final form: what they add up over lanes can leave them",
    },
    Row { pass: DCE, why: "what is replaced would get memory and barriers" },
    Row { pass: allocate_warp_groups::PASS, why: "what partitions do is final: their warps" },
    Row { pass: allocate_shared::PASS, why: "buffers and scratch are final: their offsets" },
    Row { pass: membar::PASS, why: "barriers depend on which buffers lie in the same place" },
    Row { pass: global_barriers::PASS, why: "what a store overwrites several threads may still load" },
];

/// What a code generator behind [`PASSES`] may rely on.
pub const LOWERED: &[Property] = &[
    Property::CallsStay,
    Property::LaidOut,
    Property::OfOneWarp,
    Property::TargetSized,
    Property::SharedPlaced,
    Property::BarriersPlaced,
    Property::GlobalBarriersPlaced,
];
