//! What can go wrong between us and the driver, in words that say what to do.

use crate::driver::{self, CuResult};

/// The result of a call into this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the CUDA driver, or of finding it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// `libcuda` is not there, or lacks a function that we need.
    #[error(
        "no CUDA driver: {0}. Install the NVIDIA driver, or run on the CPU with TILEWRIGHT_BACKEND=interp"
    )]
    NoDriver(String),
    /// The driver is there but lists no GPU.
    #[error("the CUDA driver is installed but finds no GPU (is CUDA_VISIBLE_DEVICES empty?)")]
    NoDevice,
    /// CUDA does not work in a process forked from one that uses it.
    #[error(
        "this process was forked from one that had initialized CUDA, and CUDA does not work in it. Start processes by \
         multiprocessing's \"spawn\" or \"forkserver\", or fork before the first use of a GPU"
    )]
    Forked,
    /// A driver call failed.
    #[error("{call} failed: {name} ({code}): {message}{hint}")]
    Driver {
        /// The driver function.
        call: &'static str,
        /// The numeric `CUresult`.
        code: i32,
        /// Its symbolic name.
        name: String,
        /// The driver's own description.
        message: String,
        /// What usually causes it and what to do, or nothing.
        hint: String,
    },
    /// A kernel that needs more than the device has, found before the driver was asked.
    #[error("out of resource: {0}")]
    OutOfResources(String),
    /// A launch that the device cannot carry out, found before the driver was asked.
    #[error("{0}")]
    InvalidLaunch(String),
}

impl Error {
    /// The driver's `CUresult`, when it was a driver call that failed.
    pub fn code(&self) -> Option<i32> {
        match self {
            Error::Driver { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Adds what is known about the situation to a driver error.
    pub(crate) fn with_hint(mut self, extra: impl FnOnce() -> String) -> Self {
        if let Error::Driver { hint, .. } = &mut self {
            let extra = extra();
            if !extra.is_empty() {
                hint.push_str(". ");
                hint.push_str(&extra);
            }
        }
        self
    }
}

/// Turns a `CUresult` into a [`Result`].
#[inline]
pub(crate) fn check(call: &'static str, code: CuResult) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(driver_error(call, code)) }
}

#[cold]
fn driver_error(call: &'static str, code: CuResult) -> Error {
    let (name, message) = driver::describe(code);
    Error::Driver { call, code, name, message, hint: usual_cause(code).to_string() }
}

/// What usually stands behind a code, for the ones that people meet.
fn usual_cause(code: CuResult) -> &'static str {
    match code {
        2 => ". The GPU is out of memory: free some, or use smaller tensors",
        100 => ". No GPU is visible to this process (CUDA_VISIBLE_DEVICES?)",
        209 => {
            ". The kernel was compiled for another GPU architecture than this one: \
             unset TILEWRIGHT_TARGET, or name this GPU in it"
        }
        218 => ". The driver's compiler did not accept the PTX; its log follows when there is one",
        222 => {
            ". The PTX needs a newer driver: install ptxas (the PyPI package nvidia-cuda-nvcc) so that it is \
                assembled before the driver sees it"
        }
        700 | 716 | 717 | 718 | 719 => {
            ". A kernel that ran earlier in this process accessed memory it must not, and the CUDA context is lost: \
             restart the process; running with TILEWRIGHT_BACKEND=interp names the line and the element"
        }
        701 => {
            ". The kernel needs more registers or shared memory a block than there are: lower num_warps or \
                num_stages, use smaller tiles, or set maxnreg"
        }
        _ => "",
    }
}
