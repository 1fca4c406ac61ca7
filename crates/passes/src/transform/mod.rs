//! Transformations for any target: where the hardware differs they ask [`TargetInfo`](crate::target::TargetInfo).
//!
//! Each file here is a module without being named: `build.rs` finds it.

include!(concat!(env!("OUT_DIR"), "/transform.rs"));
