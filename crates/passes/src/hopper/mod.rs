//! What belongs to NVIDIA's Hopper and the targets after it: clusters, the tensor memory accelerator, warp groups and their
//! products, warp specialization.
//!
//! On a target without that hardware ([`TargetInfo`](crate::target::TargetInfo)) these passes have nothing to do.

pub mod allocate_warp_groups;
pub mod async_dots;
pub mod captures;
pub mod distribute_ctas;
pub mod encode_descriptors;
pub mod lower_tma;
pub mod multicast;
pub mod pingpong;
pub mod tma;
pub mod transpose_dots;
pub mod warp_specialize;
