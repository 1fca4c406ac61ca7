//! Running a kernel's SPIR-V in the simulator of Intel's GPUs, on arrays in host memory.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewright_xesim as sim;

use crate::args::Arguments;
use crate::errors;
use crate::grid::Grid;
use crate::host_memory::Allocations;
use crate::interrupt::watched;
use crate::kernel::CompiledKernel;
use crate::tensor_map as maps;

/// Lanes of a sub-group.
const LANES: u32 = 16;

/// Runs the SPIR-V in the simulator. A broken rule is an error.
pub fn run(
    py: Python<'_>,
    kernel: &CompiledKernel,
    grid: Grid,
    arguments: &Arguments,
    allocations: &Allocations,
) -> PyResult<()> {
    let artifact = &kernel.code.artifact;
    let Some(spirv) = artifact.bytes("spv") else {
        return Err(PyValueError::new_err("the kernel was not compiled for Intel's GPUs"));
    };
    if grid.contains(&0) {
        return Ok(());
    }
    let mut cells = arguments.cells.to_vec();
    let bytes = maps::scratch_bytes(kernel, grid);
    let mut scratch = vec![0u64; bytes.div_ceil(8)];
    if bytes > 0 {
        cells.push(scratch.as_mut_ptr() as u64);
    }
    let refused = |error: sim::Error| {
        errors::KernelError::new_err(format!("the simulator of Intel's GPUs refuses the kernel: {error}"))
    };
    let program = sim::Program::parse(spirv).map_err(refused)?;
    let launch = sim::Launch {
        kernel: kernel.code.name().to_string(),
        groups: grid,
        items: artifact.metadata.total_num_warps * LANES,
        params: maps::for_simulator(kernel, &cells)?,
    };
    let mut memory = sim::Memory::new();
    for (extent, name) in allocations.extents.iter().zip(&allocations.names) {
        // SAFETY: the arrays that own the memory are arguments of the call, alive until it returns. While the kernel
        // runs, nothing here refers to their contents.
        unsafe { memory.register(extent.base as *mut u8, extent.bytes as usize, name, extent.writable) };
    }
    // SAFETY: the memory is ours until the end of the call, and is not looked at meanwhile.
    unsafe { memory.register(scratch.as_mut_ptr().cast(), scratch.len() * 8, "scratch", true) };
    let interrupt = Arc::new(AtomicBool::new(false));
    let options =
        sim::SimOptions { stop_at_first: true, interrupt: Some(interrupt.clone()), ..Default::default() };
    let report = watched(py, &interrupt, || program.launch(&launch, &memory, &options))?.map_err(refused)?;
    if report.findings.is_empty() {
        return Ok(());
    }
    let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    Err(errors::KernelError::new_err(findings.join("\n")))
}
