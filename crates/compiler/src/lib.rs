//! `compile(source, signature, options)` to an artifact: the stages of one target in order, their dumps, the cache.
//!
//! [`compile`] is the whole road on one screen. It holds no state of its own and may be called from many threads.

// An error ends the compilation: its size does not matter.
#![allow(clippy::result_large_err)]

mod artifact;
pub mod background;
pub mod cache;
mod key;
mod request;
mod stages;
mod toolchain;

pub use artifact::{Artifact, Metadata, StageTime, TensorMapParam};
pub use request::{Request, Target};
pub use stages::compile;
pub use tilewright_ir::options::{self, Options};
pub use tilewright_nvidia::Target as CudaTarget;
pub use tilewright_nvidia::ptxas::unwanted as cubin_unwanted;
pub use tilewright_nvidia::{PythonEnvironment, sass};
