//! Running a kernel's PTX in the simulator, on arrays in host memory.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewright_ptxsim as sim;

use crate::args::Arguments;
use crate::errors;
use crate::grid::Grid;
use crate::kernel::CompiledKernel;
use crate::memory::Extent;

/// Runs the kernel; the first broken rule is an error.
pub fn run(
    py: Python<'_>,
    kernel: &CompiledKernel,
    grid: Grid,
    arguments: &Arguments,
    extents: &[Extent],
    names: &[String],
) -> PyResult<()> {
    let artifact = &kernel.code.artifact;
    let Some(ptx) = &artifact.ptx else {
        return Err(PyValueError::new_err("the kernel was not compiled to PTX"));
    };
    let refused =
        |e: sim::Error| errors::KernelError::new_err(format!("the PTX simulator refuses the kernel: {e}"));
    let program = sim::Program::parse(ptx).map_err(refused)?;
    let mut memory = sim::Memory::new();
    for (extent, name) in extents.iter().zip(names) {
        // SAFETY: the arrays that own the memory are arguments of the call, alive until it returns, and nothing else
        // refers to their contents while the kernel runs.
        unsafe { memory.register(extent.base as *mut u8, extent.bytes as usize, name, extent.writable) };
    }
    let launch = sim::Launch {
        entry: kernel.code.name().to_string(),
        grid,
        block: [kernel.code.num_warps() * 32, 1, 1],
        cluster: None,
        shared_bytes: artifact.metadata.shared,
        // The parameter's own size decides how much of each word is taken.
        params: arguments.cells.iter().map(|&c| sim::Param::Int(c as i64)).collect(),
    };
    let options = sim::Options { stop_at_first: true, ..sim::Options::default() };
    let report = py.detach(|| program.launch(&launch, &memory, &options)).map_err(refused)?;
    if !report.output.is_empty() {
        py.import("sys")?.getattr("stdout")?.call_method1("write", (report.output.concat(),))?;
    }
    match report.findings.first() {
        None => Ok(()),
        Some(finding) => Err(errors::KernelError::new_err(finding.to_string())),
    }
}
