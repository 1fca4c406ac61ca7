//! Running a kernel's PTX in the simulator, on arrays in host memory.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewright_ptxsim as sim;

use crate::args::Arguments;
use crate::errors;
use crate::grid::Grid;
use crate::kernel::CompiledKernel;
use crate::memory::Extent;

/// Runs the PTX in the simulator. A broken rule is an error, or, with `sanitize=True`, a report on standard error.
pub fn run(
    py: Python<'_>,
    kernel: &CompiledKernel,
    grid: Grid,
    arguments: &Arguments,
    extents: &[Extent],
    names: &[String],
) -> PyResult<()> {
    let Some(program) = &kernel.code.program else {
        return Err(PyValueError::new_err("the kernel was not compiled for the simulator"));
    };
    if grid.contains(&0) {
        return Ok(());
    }
    let ctas = kernel.options.num_ctas;
    let launch = sim::Launch {
        entry: kernel.code.name().to_string(),
        grid: [grid[0] * ctas, grid[1], grid[2]],
        block: [kernel.code.num_warps() * 32, 1, 1],
        cluster: (ctas > 1).then_some([ctas, 1, 1]),
        shared_bytes: kernel.code.artifact.metadata.shared,
        // As many of the low bits are taken as the parameter has.
        params: arguments.cells.iter().map(|bits| sim::Param::Int(*bits as i64)).collect(),
    };
    let mut memory = sim::Memory::new();
    for (extent, name) in extents.iter().zip(names) {
        // SAFETY: the arrays that own the memory are arguments of the call, alive until it returns. While the kernel
        // runs, nothing here refers to their contents.
        unsafe { memory.register(extent.base as *mut u8, extent.bytes as usize, name, extent.writable) };
    }
    let sanitize = kernel.options.sanitize;
    let options = sim::Options { stop_at_first: !sanitize, ..Default::default() };
    let report = py.detach(|| program.launch(&launch, &memory, &options)).map_err(|error| {
        errors::KernelError::new_err(format!("the PTX simulator refuses the kernel: {error}"))
    })?;
    if !report.output.is_empty() {
        py.import("sys")?.getattr("stdout")?.call_method1("write", (report.output.concat(),))?;
    }
    let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    *kernel.report.lock().unwrap_or_else(|e| e.into_inner()) = Some(report);
    if findings.is_empty() {
        return Ok(());
    }
    let text = findings.join("\n");
    if !sanitize {
        return Err(errors::KernelError::new_err(text));
    }
    let heading = format!("{}: {} finding(s)\n{text}\n", kernel.code.name(), findings.len());
    py.import("sys")?.getattr("stderr")?.call_method1("write", (heading,))?;
    Ok(())
}
