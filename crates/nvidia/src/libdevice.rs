//! NVIDIA's library of mathematical functions, `libdevice`, as bitcode: accurate versions of what has no instruction.
//!
//! It comes with `ptxas` in CUDA's toolkit and in the PyPI package `nvidia-nvvm`; Triton's package has a copy. Only kernels that
//! call one of its functions (`__nv_…`) need it.

use std::path::PathBuf;

use tilewright_target::PythonEnvironment;

use crate::tools;

/// What the names of its functions begin with.
pub const PREFIX: &str = "__nv_";

/// Finds the library, or says where it was looked for.
pub fn find(python: &PythonEnvironment) -> Result<PathBuf, String> {
    tools::find("libdevice.10.bc", "TRITON_LIBDEVICE_PATH", &tools::LIBDEVICE, python)
        .map_err(|e| format!("{e}\nhint: `pip install nvidia-nvvm`"))
}

/// Reads the library, of this path where one is given, or says where it was looked for.
pub fn read(given: Option<&str>, python: &PythonEnvironment) -> Result<Vec<u8>, String> {
    let path = given.map_or_else(|| find(python), |path| Ok(path.into()))?;
    std::fs::read(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))
}
