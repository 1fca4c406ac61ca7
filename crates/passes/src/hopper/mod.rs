//! What belongs to NVIDIA's Hopper and the targets after it: clusters, the tensor memory accelerator, warp groups and their
//! products, warp specialization.
//!
//! On a target without that hardware ([`TargetInfo`](crate::target::TargetInfo)) these passes have nothing to do.
//!
//! Each file here is a module without being named: `build.rs` finds it.

include!(concat!(env!("OUT_DIR"), "/hopper.rs"));
