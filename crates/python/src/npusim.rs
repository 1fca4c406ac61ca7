//! Running a kernel's AscendNPU-IR in its simulator, on copies of arrays in host memory.

use std::sync::atomic::AtomicBool;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewright_npusim::{Arg, Launch};

use crate::args::Arguments;
use crate::errors;
use crate::grid::{self, Grid};
use crate::host_memory::{Allocations, pointer_cells};
use crate::interrupt::watched;
use crate::kernel::CompiledKernel;

/// Runs the text in the simulator. A broken rule is an error.
pub fn run(
    py: Python<'_>,
    kernel: &CompiledKernel,
    grid: Grid,
    arguments: &Arguments,
    allocations: &Allocations,
) -> PyResult<()> {
    let artifact = &kernel.code.artifact;
    let text = artifact
        .text("hivm")
        .ok_or_else(|| PyValueError::new_err("the kernel was not compiled for Ascend"))?;
    let mut module = tilewright_ir::parse(text, kernel.code.name())
        .map_err(|error| errors::KernelError::new_err(error.to_string()))?;
    let mut args = Vec::new();
    for (&cell, is_pointer) in arguments.cells.iter().zip(pointer_cells(arguments)) {
        args.push(match (is_pointer, allocations.holding(cell)) {
            (false, _) => Arg::Bits(cell),
            (true, Some(at)) => Arg::Pointer(at, cell - allocations.extents[at].base),
            (true, None) => {
                return Err(PyValueError::new_err("not supported yet: a pointer to no array in npusim"));
            }
        });
    }
    let copied = |extent: &crate::memory::Extent| {
        // SAFETY: the extent is that of an array that the caller's arguments keep alive.
        unsafe { std::slice::from_raw_parts(extent.base as *const u8, extent.bytes as usize) }.to_vec()
    };
    let memory = allocations.extents.iter().map(copied).collect();
    let grid = grid::of_programs(grid, &artifact.metadata.launch)?;
    let mut launch = Launch { memory, args, grid };
    let (interrupt, name) = (AtomicBool::new(false), kernel.code.name());
    watched(py, &interrupt, || tilewright_npusim::run_until(&mut module, name, &mut launch, &interrupt))?
        .map_err(|error| errors::KernelError::new_err(error.with_source_files().to_string()))?;
    for (extent, bytes) in allocations.extents.iter().zip(&launch.memory).filter(|(e, _)| e.writable) {
        // SAFETY: as above; the array may be written, and nothing here refers to its contents.
        unsafe { std::slice::from_raw_parts_mut(extent.base as *mut u8, extent.bytes as usize) }
            .copy_from_slice(bytes);
    }
    Ok(())
}
