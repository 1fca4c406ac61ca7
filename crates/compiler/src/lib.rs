//! `compile(source, signature, options)` to an artifact: the stages of one target in order, their dumps, the cache.
//!
//! In: a [`Request`]. Out: an [`Artifact`], which [`tilewright_runtime`](../tilewright_runtime/index.html) launches. Between them
//! [`tilewright_frontend`], [`tilewright_passes`] and the crate of the target do their part.
//!
//! [`compile`] is the whole road on one screen; what a target does on it stands in the target's folder
//! ([`tilewright_target`]), and which targets there are in one list ([`FAMILIES`]). It holds no state of its own and may be
//! called from many threads.

// An error ends the compilation: its size does not matter.
#![allow(clippy::result_large_err)]

mod artifact;
pub mod background;
pub mod cache;
mod interp;
mod key;
mod registry;
mod request;
mod stages;
mod toolchain;

pub use artifact::{Artifact, Metadata, StageTime};
pub use interp::Interp;
pub use registry::{DEFAULT_TARGET, FAMILIES, extensions, target, target_of};
pub use request::Request;
pub use stages::{Pending, compile};
pub use tilewright_ir::launch::Number;
pub use tilewright_ir::options::{self, Options};
pub use tilewright_nvidia::Target as CudaTarget;
pub use tilewright_nvidia::sass;
pub use tilewright_target::{
    Form, GivenStage, LaunchShape, MappedTensor, Passes, PythonEnvironment, Target, TensorMapParam,
    resident_grid,
};
pub use toolchain::{BUILD_ID, is_libdevice, made_with};
