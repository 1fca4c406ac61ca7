//! Running a kernel on memory of this process: in the CPU executor, in the simulator, or on a GPU by way of copies.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use tilewright_interp::{Arg, Memory, RunOptions};
use tilewright_runtime::{Device, DeviceBuffer, Stream};

use crate::args::{self, Arguments, Place, Spec};
use crate::errors;
use crate::grid::{self, Grid};
use crate::interrupt::watched;
use crate::kernel::CompiledKernel;
use crate::launch::Backend;
use crate::memory::{self, Extent};
use crate::params::Given;
use crate::profiler;
use crate::ranks::Ranks;
use crate::wrong_call;

/// What an error says of an access to memory that the call knows nothing of.
pub const REACHABLE_HINT: &str = "if the kernel loads this address from memory: launch it inside \
     `with tilewright.reachable(*arrays):`, which names the arrays behind such addresses";

/// The memory behind the array arguments, and what `tilewright.reachable` named: each allocation once.
pub struct Allocations {
    pub extents: Vec<Extent>,
    pub names: Vec<String>,
}

impl Allocations {
    fn collect(
        py: Python<'_>,
        kernel: &CompiledKernel,
        arguments: &Arguments,
        values: &[Given<'_, '_>],
    ) -> PyResult<Self> {
        let mut found = Allocations { extents: Vec::new(), names: Vec::new() };
        for ((spec, value), param) in arguments.specs.iter().zip(values).zip(&kernel.params.params) {
            found.add(spec, value, &param.text)?;
        }
        if !matches!(kernel.backend, Backend::Cuda(_)) {
            found.add_reachable(py)?;
        }
        Ok(found)
    }

    /// Arrays named by `tilewright.reachable`, whose addresses the kernel loads from memory.
    fn add_reachable(&mut self, py: Python<'_>) -> PyResult<()> {
        let named =
            py.import(intern!(py, "tilewright.runtime.allocation"))?.getattr(intern!(py, "_reachable"))?;
        for (at, array) in named.call_method0(intern!(py, "get"))?.cast_into::<PyTuple>()?.iter().enumerate()
        {
            let name = format!("reachable[{at}]");
            match args::array(&array)? {
                Some(pointer) if pointer.place == Place::Host => {
                    self.hold(memory::extent(&array, &name)?, &name)
                }
                Some(_) => {}
                None => {
                    return Err(wrong_call::type_error(
                        format!("tilewright.reachable was given {}", args::type_name(&array)),
                        "it takes arrays, one after the other: reachable(*arrays)",
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether an address is far from each allocation: no index that is somewhat wrong leads there.
    pub fn far(&self, address: u64) -> bool {
        const NEAR: u64 = 1 << 16;
        let near = |e: &Extent| {
            (e.base.saturating_sub(NEAR)..=e.base.saturating_add(e.bytes).saturating_add(NEAR))
                .contains(&address)
        };
        !self.extents.iter().any(near)
    }

    fn add(&mut self, spec: &Spec, value: &Bound<'_, PyAny>, name: &str) -> PyResult<()> {
        match spec {
            Spec::Pointer { pointer, .. } if pointer.place != Place::Nowhere => {
                self.hold(memory::extent(value, name)?, name);
            }
            Spec::Descriptor(descriptor) if descriptor.pointer.place != Place::Nowhere => {
                self.hold(memory::extent(&value.getattr("base")?, name)?, name);
            }
            Spec::Tuple(specs) => {
                let items = value.cast::<PyTuple>()?;
                for (at, (spec, item)) in specs.iter().zip(items.iter()).enumerate() {
                    self.add(spec, &item, &format!("{name}[{at}]"))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn hold(&mut self, extent: Extent, name: &str) {
        match self.extents.iter_mut().find(|e| e.base == extent.base && e.bytes == extent.bytes) {
            // Two views of one allocation: it may be written if one of them may.
            Some(known) => known.writable |= extent.writable,
            None => {
                self.extents.push(extent);
                self.names.push(name.to_string());
            }
        }
    }

    /// The allocation that holds an address (its end counts too: an empty view may stand there).
    pub fn holding(&self, address: u64) -> Option<usize> {
        let within = |e: &Extent| (e.base..=e.base + e.bytes).contains(&address);
        let strictly = self.extents.iter().position(|e| (e.base..e.base + e.bytes).contains(&address));
        strictly.or_else(|| self.extents.iter().position(within))
    }
}

/// Starts the kernel where it was compiled for, and waits for it.
pub fn start<'py>(
    py: Python<'py>,
    kernel: &CompiledKernel,
    grid: Grid,
    arguments: &Arguments,
    values: &[Given<'_, 'py>],
) -> PyResult<()> {
    if let Some((at, device)) = arguments.cuda {
        return Err(wrong_call::value_error(
            format!(
                "argument '{}' is on GPU {device}, but the kernel is to run on {}",
                kernel.params.params[at].text,
                kernel.backend.describe()
            ),
            "TILEWRIGHT_BACKEND chooses that: unset it, or pass arrays in host memory",
        ));
    }
    let mut allocations = Allocations::collect(py, kernel, arguments, values)?;
    let ranks = Ranks::wanted(Ranks::current(py)?, kernel, grid)?;
    match (&ranks, kernel.backend) {
        (Some(ranks), Backend::Interp | Backend::PtxSim(_)) if ranks.is_simulated() => {
            ranks.allow(&mut allocations);
        }
        (Some(_), _) => {
            return Err(PyValueError::new_err(format!(
                "not supported yet: several ranks on {} with arrays in host memory",
                kernel.backend.describe()
            )));
        }
        (None, _) => {}
    }
    let cells = Ranks::cells(ranks.as_ref(), kernel, arguments);
    match kernel.backend {
        Backend::Cuda(device) => by_copies(py, kernel, grid, arguments, &allocations, device),
        Backend::NpuSim => {
            profiler::timed(kernel, || crate::npusim::run(py, kernel, grid, arguments, &allocations))
        }
        Backend::XeSim => {
            profiler::timed(kernel, || crate::xesim::run(py, kernel, grid, arguments, &allocations))
        }
        Backend::Interp | Backend::PtxSim(_) => profiler::timed(kernel, || match kernel.backend {
            Backend::Interp => interpret(py, kernel, grid, &cells, &allocations),
            _ => crate::simulate::run(py, kernel, grid, cells, &allocations),
        }),
        Backend::Offline(_) => {
            Err(PyValueError::new_err(format!("not supported yet: running on {}", kernel.backend.describe())))
        }
    }
}

/// Runs on a GPU with arrays in host memory: copies each allocation there and back. For tests and small programs; real
/// ones keep their arrays on the GPU.
fn by_copies(
    py: Python<'_>,
    kernel: &CompiledKernel,
    grid: Grid,
    arguments: &Arguments,
    allocations: &Allocations,
    device: u32,
) -> PyResult<()> {
    let device = Device::get(device).map_err(errors::from_runtime)?;
    let function = kernel.on_gpu()?;
    let config = kernel.launch_config(grid)?;
    let mut cells = arguments.cells.to_vec();
    let pointers = pointer_cells(arguments);
    py.detach(|| {
        let mut buffers = Vec::new();
        for extent in &allocations.extents {
            // SAFETY: the extent is that of an array that the caller's arguments keep alive.
            let bytes =
                unsafe { std::slice::from_raw_parts(extent.base as *const u8, extent.bytes as usize) };
            buffers.push(DeviceBuffer::from_bytes(device, bytes)?);
        }
        for (cell, is_pointer) in cells.iter_mut().zip(&pointers) {
            if let (true, Some(at)) = (is_pointer, allocations.holding(*cell)) {
                *cell = buffers[at].pointer() + (*cell - allocations.extents[at].base);
            }
        }
        cells.extend(crate::tensor_map::programs(kernel, grid));
        let mut maps = crate::tensor_map::Maps::new();
        crate::tensor_map::for_gpu(kernel, device, &cells, &mut maps)?;
        let scratch = crate::tensor_map::scratch_bytes(kernel, grid);
        if scratch > 0 {
            cells.resize(cells.len() + crate::tensor_map::own_maps(kernel), 0);
            let mut buffer = DeviceBuffer::new(device, scratch)?;
            if kernel.code.artifact.metadata.launch.zeroed_scratch {
                buffer.fill(0, Stream::default())?;
            }
            buffers.push(buffer);
            cells.extend(buffers.last().map(DeviceBuffer::pointer));
        }
        // SAFETY: one cell for each parameter, in order; the addresses are those of live buffers.
        unsafe { function.launch_with_maps(&config, Stream::default(), &cells, &maps) }?;
        tilewright_runtime::synchronize(device)?;
        for (extent, buffer) in allocations.extents.iter().zip(&buffers).filter(|(e, _)| e.writable) {
            // SAFETY: as above; the array may be written.
            let bytes =
                unsafe { std::slice::from_raw_parts_mut(extent.base as *mut u8, extent.bytes as usize) };
            buffer.read(bytes)?;
        }
        Ok(())
    })
    .map_err(errors::from_runtime)
}

/// For each cell whether it is an address.
pub fn pointer_cells(arguments: &Arguments) -> Vec<bool> {
    let mut pointers = Vec::with_capacity(arguments.cells.len());
    for spec in &arguments.specs {
        spec.for_each_runtime(&mut |_, pointer| pointers.push(pointer.is_some()));
    }
    pointers
}

/// Whether this process was forked from one that had loaded us. The threads of the executor's pool did not come along, so
/// waiting for them would never end.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Called in a forked child.
#[pyfunction]
pub fn after_fork() {
    FORKED.store(true, Ordering::Relaxed);
    tilewright_runtime::after_fork();
}

/// Runs in the CPU executor.
fn interpret(
    py: Python<'_>,
    kernel: &CompiledKernel,
    grid: Grid,
    cells: &[Vec<u64>],
    allocations: &Allocations,
) -> PyResult<()> {
    let Some(executable) = &kernel.code.executable else {
        return Err(PyValueError::new_err("the kernel was not compiled for the CPU"));
    };
    let of_rank = |cells: &Vec<u64>| cells.iter().map(|bits| Arg::Bits(*bits)).collect::<Vec<Arg>>();
    let args: Vec<Vec<Arg>> = cells.iter().map(of_rank).collect();
    let mut memory = Memory::new();
    for (extent, name) in allocations.extents.iter().zip(&allocations.names) {
        // SAFETY: the arrays that own the memory are arguments of the call, alive until it returns. While the kernel
        // runs, nothing here refers to their contents.
        unsafe { memory.register(extent.base, extent.bytes, name.as_str(), extent.writable) };
    }
    let grid = grid::of_programs(grid, &kernel.code.artifact.metadata.launch)?;
    let interrupt = AtomicBool::new(false);
    let printed = Mutex::new(String::new());
    let print = |text: &str| printed.lock().unwrap_or_else(|e| e.into_inner()).push_str(text);
    let threads = if FORKED.load(Ordering::Relaxed) { 1 } else { 0 };
    let poison = std::env::var_os("TILEWRIGHT_POISON").is_some_and(|value| value == "1");
    let options = RunOptions {
        threads,
        poison,
        interrupt: Some(&interrupt),
        print: Some(&print),
        ..Default::default()
    };
    let result = watched(py, &interrupt, || executable.run_ranks(grid, &args, &memory, &options));
    let printed = printed.into_inner().unwrap_or_else(|e| e.into_inner());
    if !printed.is_empty() {
        py.import("sys")?.getattr("stdout")?.call_method1("write", (printed,))?;
    }
    result?.map_err(|error| {
        let mut diagnostic = error.diagnostic.with_source_files();
        if error.address.is_some_and(|address| allocations.far(address)) {
            diagnostic = diagnostic.note(REACHABLE_HINT);
        }
        errors::KernelError::new_err(diagnostic.to_string())
    })
}
