//! Running a kernel's PTX in the simulator, on arrays in host memory.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt};
use tilewright_ptxsim as sim;

use crate::errors;
use crate::grid::{self, Grid};
use crate::host_memory::{Allocations, REACHABLE_HINT};
use crate::interrupt::watched;
use crate::kernel::CompiledKernel;
use crate::launch::guarded;
use crate::memory;
use crate::tensor_map as maps;

/// 128 bytes, aligned to as many.
#[derive(Clone)]
#[repr(align(128))]
#[allow(dead_code)] // looked at by the simulated kernel only
struct Line([u8; 128]);

/// How many programs the simulator's GPU holds, where a launch starts no more: so few that each does the work of several.
const HELD: u32 = 2;

/// Runs the PTX in the simulator. A broken rule is an error, or, with `sanitize=True`, a report on standard error.
pub fn run(
    py: Python<'_>,
    kernel: &CompiledKernel,
    grid: Grid,
    mut cells: Vec<Vec<u64>>,
    allocations: &Allocations,
) -> PyResult<()> {
    let Some(program) = &kernel.code.program else {
        return Err(PyValueError::new_err("the kernel was not compiled for the simulator"));
    };
    if grid.contains(&0) {
        return Ok(());
    }
    let shape = &kernel.code.artifact.metadata.launch;
    for cells in &mut cells {
        cells.extend(maps::programs(kernel, grid));
    }
    let started = grid::resident(grid, shape, HELD)?;
    // Whole lines, so that it is aligned as tensor maps must be; each rank has its own.
    let lines = maps::scratch_bytes(kernel, grid).div_ceil(128);
    let mut scratch = vec![Line([0; 128]); lines * cells.len()];
    if lines > 0 {
        for (cells, own) in cells.iter_mut().zip(scratch.chunks_mut(lines)) {
            cells.resize(cells.len() + maps::own_maps(kernel), 0);
            cells.push(own.as_mut_ptr() as u64);
        }
    }
    let mut params: Vec<_> =
        cells.iter().map(|cells| maps::for_simulator(kernel, cells)).collect::<PyResult<_>>()?;
    let peers = params.split_off(1);
    let launch = sim::Launch {
        entry: kernel.code.name().to_string(),
        grid: grid::of_ctas(started, shape)?,
        block: [kernel.code.launched_threads(), 1, 1],
        cluster: (shape.cluster_dims != [1; 3]).then_some(shape.cluster_dims),
        shared_bytes: kernel.code.artifact.metadata.shared,
        params: params.swap_remove(0),
    };
    let mut memory = sim::Memory::new();
    for (extent, name) in allocations.extents.iter().zip(&allocations.names) {
        // SAFETY: the arrays that own the memory are arguments of the call, alive until it returns. While the kernel
        // runs, nothing here refers to their contents.
        unsafe { memory.register(extent.base as *mut u8, extent.bytes as usize, name, extent.writable) };
    }
    // SAFETY: the memory is ours until the end of the call, and is not looked at meanwhile.
    unsafe { memory.register(scratch.as_mut_ptr().cast(), scratch.len() * 128, "scratch", true) };
    let sanitize = kernel.options().sanitize;
    let interrupt = Arc::new(AtomicBool::new(false));
    let options = sim::SimOptions {
        stop_at_first: !sanitize,
        interrupt: Some(interrupt.clone()),
        ..Default::default()
    };
    let report = watched(py, &interrupt, || program.launch_ranks(&launch, &peers, &memory, &options))?
        .map_err(|error| {
            errors::KernelError::new_err(format!("the PTX simulator refuses the kernel: {error}"))
        })?;
    if !report.output.is_empty() {
        py.import("sys")?.getattr("stdout")?.call_method1("write", (report.output.concat(),))?;
    }
    let mut findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    let count = findings.len();
    let lost = |f: &sim::Finding| {
        f.kind == sim::FindingKind::GlobalBounds && f.address.is_some_and(|a| allocations.far(a))
    };
    if report.findings.iter().any(lost) {
        findings.push(format!("  = help: {REACHABLE_HINT}"));
    }
    *kernel.report.lock().unwrap_or_else(|e| e.into_inner()) = Some(report);
    if findings.is_empty() {
        return Ok(());
    }
    let text = findings.join("\n");
    if !sanitize {
        return Err(errors::KernelError::new_err(text));
    }
    let heading = format!("{}: {} finding(s)\n{text}\n", kernel.code.name(), count);
    py.import("sys")?.getattr("stderr")?.call_method1("write", (heading,))?;
    Ok(())
}

/// Runs PTX text on host arrays: what `tilewright.testing.simulate_ptx` calls. Returns the report as JSON.
#[pyfunction]
pub fn simulate_ptx(
    py: Python<'_>,
    ptx: &str,
    entry: &str,
    grid: [u32; 3],
    block: [u32; 3],
    arguments: Vec<Bound<'_, PyAny>>,
    cluster: Option<[u32; 3]>,
    shared: u32,
    checks: bool,
    seed: u64,
    threads: usize,
) -> PyResult<String> {
    guarded(|| {
        let shape = Shape { entry, grid, block, cluster, shared };
        simulate(py, ptx, shape, &arguments, sim::SimOptions { checks, seed, threads, ..Default::default() })
    })
}

/// What is launched, and by how many threads.
struct Shape<'a> {
    entry: &'a str,
    grid: [u32; 3],
    block: [u32; 3],
    cluster: Option<[u32; 3]>,
    shared: u32,
}

fn simulate(
    py: Python<'_>,
    ptx: &str,
    shape: Shape<'_>,
    arguments: &[Bound<'_, PyAny>],
    options: sim::SimOptions,
) -> PyResult<String> {
    let refuse = |error: sim::Error| errors::KernelError::new_err(format!("the PTX simulator: {error}"));
    let interrupt = Arc::new(AtomicBool::new(false));
    let Shape { entry, grid, block, cluster, shared } = shape;
    let read = || {
        let program = sim::Program::parse(ptx)?;
        let sizes = program.params(entry)?;
        Ok((program, sizes))
    };
    let (program, sizes) = watched(py, &interrupt, read)?.map_err(refuse)?;
    if sizes.len() != arguments.len() {
        return Err(PyTypeError::new_err(format!(
            "`{entry}` has {} parameters; {} arguments were given",
            sizes.len(),
            arguments.len()
        )));
    }
    let mut memory = sim::Memory::new();
    let mut params = Vec::new();
    for (at, (value, info)) in arguments.iter().zip(&sizes).enumerate() {
        params.push(if let Ok(bytes) = value.cast::<PyBytes>() {
            sim::Param::Bytes(bytes.as_bytes().to_vec())
        } else if value.is_instance_of::<PyFloat>() {
            match info.size {
                4 => sim::Param::F32(value.extract::<f64>()? as f32),
                8 => sim::Param::F64(value.extract()?),
                n => {
                    return Err(PyTypeError::new_err(format!(
                        "argument {at} is a float, and its parameter has {n} bytes: give the bits as an int"
                    )));
                }
            }
        } else if value.is_instance_of::<PyInt>() {
            let bits: i128 = value.extract()?;
            sim::Param::Int(bits as i64)
        } else {
            let name = format!("argument {at}");
            let extent = memory::extent(value, &name)?;
            // SAFETY: the array is an argument of this call, alive until it returns, and nothing here refers to its
            // contents while the program runs.
            unsafe { memory.register(extent.base as *mut u8, extent.bytes as usize, &name, extent.writable) };
            let interface = value.getattr("__array_interface__").map_err(|_| {
                PyTypeError::new_err(format!("argument {at} is neither a number nor a NumPy array"))
            })?;
            sim::Param::Pointer(interface.get_item("data")?.get_item(0)?.extract()?)
        });
    }
    let launch = sim::Launch { entry: entry.to_string(), grid, block, cluster, shared_bytes: shared, params };
    let options = sim::SimOptions { interrupt: Some(interrupt.clone()), ..options };
    let report = watched(py, &interrupt, || program.launch(&launch, &memory, &options))?.map_err(refuse)?;
    Ok(report.to_json())
}

/// The simulator's form of a tensor map: what `tilewright.testing.tensor_map` calls.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the fields of a tensor map, with names on the Python side")]
pub fn tensor_map<'py>(
    py: Python<'py>,
    address: u64,
    element: &str,
    dims: Vec<u64>,
    strides: Vec<u64>,
    box_dims: Vec<u32>,
    element_strides: Vec<u32>,
    swizzle: u32,
    nan_fill: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let element = sim::Element::parse(element)
        .ok_or_else(|| PyValueError::new_err(format!("a tensor map has no element type `{element}`")))?;
    let swizzle = match swizzle {
        0 => sim::Swizzle::None,
        32 => sim::Swizzle::B32,
        64 => sim::Swizzle::B64,
        128 => sim::Swizzle::B128,
        n => {
            return Err(PyValueError::new_err(format!("a swizzle of {n} bytes: it may be 0, 32, 64 or 128")));
        }
    };
    let map =
        sim::TensorMap { address, element, dims, strides, box_dims, element_strides, swizzle, nan_fill };
    let bytes = map.encode().map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(PyBytes::new(py, &bytes))
}
