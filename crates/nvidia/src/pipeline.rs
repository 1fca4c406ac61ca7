//! The passes of NVIDIA targets: the whole order, on one screen.
//!
//! ```text
//! tt    (inline, canonicalize, cse, licm: crates/ir)
//!   │   inline-calls … assign-layouts
//!   ▼
//! ttg   encode-descriptors … launch-bounds
//!   │   (distribute-to-warps and match-target-size stand behind assign-layouts for targets that have them: ML-Triton 2.2, 2.3)
//!   ▼
//! lowering
//! ```
//!
//! The list is the same for every capability: a pass whose hardware is missing finds that in
//! [`TargetInfo`](tilewright_passes::TargetInfo), and has nothing to do.

use tilewright_passes::pipeline::Row;

/// Each pass, and why it stands where it does.
pub static PASSES: &[Row] = &[
    Row { pass: "inline-calls", why: "before all: functions that can't be called are code like any other" },
    Row { pass: "unroll-loops", why: "several iterations are one to whatever schedules them" },
    Row {
        pass: "distribute-ctas",
        why: "early: tiles shrink to the part that one CTA has, and no later pass but those that copy by TMA knows of clusters",
    },
    Row {
        pass: "lower-descriptors",
        why: "blocks that no hardware moves become pointers and masks, which all that follows treats as any others",
    },
    Row {
        pass: "legalize-dots",
        why: "layouts are chosen by the instruction of a dot: each must be one that there is",
    },
    Row { pass: "transpose-dots", why: "the same: which operand is which decides the instruction's width" },
    Row {
        pass: "assign-layouts",
        why: "tt becomes ttg: every tensor gets its encoding once, and dot operands their buffers",
    },
    Row {
        pass: "encode-descriptors",
        why: "the block of a descriptor has the layout of the buffers that it is copied to, known now",
    },
    Row {
        pass: "warp-specialize",
        why: "before loops are scheduled: each partition has loops of its own, scheduled for its warps",
    },
    Row {
        pass: "software-pipeline",
        why: "loops get their schedule: what is copied, computed and waited for in which iteration",
    },
    Row { pass: "lower-tma", why: "behind the pipeliner, which makes rings of the copies that are in loops" },
    Row {
        pass: "async-dots",
        why: "products are waited for where their results are used, which the schedule has moved",
    },
    Row {
        pass: "lower-rings",
        why: "a slot is free when the products that read it have been waited for, known now; mbarriers need memory, given later",
    },
    Row { pass: "pingpong", why: "turns go around products and their waits, which stand now" },
    Row { pass: "lane-sums", why: "loops have their final form: what they add up over lanes can leave them" },
    Row { pass: "dce", why: "what lower-rings and lane-sums left behind would get memory and barriers" },
    Row { pass: "allocate-warp-groups", why: "what partitions do is final: their warps and registers" },
    Row { pass: "allocate-shared", why: "buffers and scratch are final: their offsets" },
    Row { pass: "membar", why: "barriers depend on which buffers lie in the same place" },
    Row { pass: "global-barriers", why: "most of what it looks for membar's barriers have settled" },
    Row { pass: "launch-bounds", why: "last: it reads how loads are lowered, and changes nothing else" },
];
