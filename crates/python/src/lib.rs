//! The PyO3 extension module of the Python package.

use pyo3::prelude::*;

/// `tilewright._tilewright`: the compiler, the CPU executor and the launcher, as Python sees them.
#[pymodule]
fn _tilewright(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    Ok(())
}
