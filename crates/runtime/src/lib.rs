//! CUDA devices, modules and launches.
//!
//! In: the code of an artifact of [`tilewright_compiler`](../tilewright_compiler/index.html), and arguments as bits. Out: a kernel under way.
//!
//! Everything goes through the CUDA *driver* API (`libcuda`), which is looked up when it is first needed: a machine
//! without an NVIDIA driver loads this crate and gets [`Error::NoDriver`] only when it asks for a GPU. Neither the CUDA
//! toolkit, a C compiler nor torch takes part.
//!
//! The crate works in the device's *primary context*, the one that the CUDA runtime (and so torch, CuPy, …) uses, so
//! pointers and streams of theirs are valid here.
//!
//! Invariants:
//! - A launch neither allocates device memory nor synchronizes, so it may happen while a stream is being captured into a
//!   CUDA graph.
//! - Contexts, once retained, and modules, while a [`Module`] lives, stay valid until the process ends: the driver tears
//!   itself down in an order we do not control, so nothing here is released at exit.
//! - Any thread may launch: each entry point makes the right context current first.

mod device;
mod driver;
mod error;
mod launch;
mod memory;
mod module;
mod tensor_map;

pub use device::{Device, DeviceProperties, device_count, driver_version};
pub use driver::{DevicePtr, Stream, after_fork};
pub use error::{Error, Result};
pub use launch::{KernelArgs, LaunchConfig};
pub use memory::{DeviceBuffer, Event, device_of, fill, is_device_accessible, synchronize, synchronize_all};
pub use module::{Function, FunctionAttributes, Module};
pub use tensor_map::{MAX_RANK, TensorMap, TensorMapBytes};
