//! What can go wrong, in words that say what to do.

/// The result of a call into this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a profile could not be made.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// No CUPTI was found.
    #[error(
        "CUPTI, which measures kernels on NVIDIA's GPUs, was not found. Looked at:\n{looked_at}\ninstall it (pip install nvidia-cuda-cupti for \
         CUDA 13, nvidia-cuda-cupti-cu12 for CUDA 12), or set TRITON_CUPTI_LIB_PATH to the folder that holds libcupti.so"
    )]
    NoCupti {
        /// Each place, with why it was not that one.
        looked_at: String,
    },
    /// A call of CUPTI's failed.
    #[error(
        "{call} failed: {name} ({code}){hint}. CUPTI is {library}, version {version}; the driver is for CUDA {driver}"
    )]
    Cupti {
        /// The function.
        call: &'static str,
        /// The numeric `CUptiResult`.
        code: i32,
        /// Its symbolic name.
        name: String,
        /// What usually causes it and what to do, or nothing.
        hint: &'static str,
        /// Which file it is.
        library: String,
        /// What `cuptiGetVersion` says.
        version: u32,
        /// What `cuDriverGetVersion` says, as text.
        driver: String,
    },
    /// The driver failed.
    #[error(transparent)]
    Driver(#[from] tilewright_runtime::Error),
    /// What was asked for cannot be.
    #[error("{0}")]
    Invalid(String),
    /// The profile could not be written.
    #[error("the profile {path} could not be written: {why}")]
    Write {
        /// The file.
        path: String,
        /// The system's words.
        why: String,
    },
}
