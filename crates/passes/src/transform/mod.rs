//! Transformations for any target: where the hardware differs they ask [`TargetInfo`](crate::target::TargetInfo).

pub mod allocate_shared;
pub mod arrange_buffers;
pub mod assign_layouts;
pub mod async_loads;
pub mod decompose_scaled_dots;
pub mod global_barriers;
pub mod inline_calls;
pub mod legalize_dots;
pub mod lower_descriptors;
pub mod lower_rings;
pub mod membar;
pub mod order_rings;
pub mod sink_lane_sums;
pub mod software_pipeline;
pub mod unroll_loops;
