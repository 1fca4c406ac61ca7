//! The ranks that a launch runs on: those of a simulated mesh, all at once, or this process's own.
//!
//! `tilewright.runtime.ranks` holds which they are. What lies in rank 0's piece of a simulated mesh's symmetric memory is, for each other rank, as far
//! from the beginning of that one's piece: the addresses of its arguments are made from rank 0's.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tilewright_ir::Options;
use tilewright_ir::options::Text;
use tilewright_runtime::Module;

use crate::args::Arguments;
use crate::grid::Grid;
use crate::host_memory::{Allocations, pointer_cells};
use crate::kernel::CompiledKernel;
use crate::memory::Extent;
use crate::wrong_call;

/// The ranks of launches.
#[derive(FromPyObject)]
pub struct Ranks {
    /// Where the piece of rank 0, or of this process's rank, begins.
    base: u64,
    /// Bytes from one rank's piece to the next one's; 0 where there is only this process's.
    stride: u64,
    count: u64,
    /// How many programs of a grid have flags for barriers.
    programs: u64,
    /// Bytes of symmetric memory that each of these programs has for itself.
    scratch: u64,
    /// What a piece of a simulated mesh begins with: names, offsets and bytes.
    #[pyo3(attribute("allowed"))]
    parts: Vec<(String, u64, u64)>,
}

/// NVSHMEM's library of bitcode, by which kernels reach other ranks, as an entry of the option `extern_libs`.
static LIBRARY: Mutex<Option<String>> = Mutex::new(None);
/// Whether there is one.
static BY_LIBRARY: AtomicBool = AtomicBool::new(false);

/// What the global variable of a kernel's module is called that says to NVSHMEM's functions where everything is.
const STATE: &str = "nvshmemi_device_state_d";

/// From now on kernels reach other ranks by this library of bitcode of NVSHMEM's; `None`: by addresses.
#[pyfunction]
#[pyo3(signature = (path))]
pub fn reach_ranks_by(path: Option<String>) {
    BY_LIBRARY.store(path.is_some(), Ordering::Relaxed);
    *LIBRARY.lock().unwrap_or_else(PoisonError::into_inner) = path.map(|path| format!("nvshmem={path}"));
}

/// Adds the library to the options of a launch that name none of this name.
#[inline]
pub fn add_library(options: &mut Options) {
    if BY_LIBRARY.load(Ordering::Relaxed) {
        let library = LIBRARY.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default();
        if options.library("nvshmem").is_none() {
            let given = options.extern_libs.map_or("", Text::as_str);
            let all = if given.is_empty() { library } else { format!("{given};{library}") };
            options.extern_libs = Text::new(&all);
        }
    }
}

/// Has NVSHMEM fill in its variables of a module that has been loaded.
pub fn prepare(module: &Module, ptx: Option<&str>) -> PyResult<()> {
    if !ptx.is_some_and(|ptx| ptx.contains(STATE)) {
        return Ok(());
    }
    Python::attach(|py| {
        py.import("tilewright.runtime.nvshmem")?.call_method1("prepare", (module.handle(),)).map(|_| ())
    })
}

impl Ranks {
    /// Those of the launches that the caller makes now.
    pub fn current(py: Python<'_>) -> PyResult<Option<Ranks>> {
        static FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let find = || Ok::<_, PyErr>(py.import("tilewright.runtime.ranks")?.getattr("current")?.unbind());
        FUNCTION.get_or_try_init(py, find)?.bind(py).call0()?.extract()
    }

    /// Those that a kernel wants, which it says where it reaches other ranks.
    pub fn wanted(ranks: Option<Ranks>, kernel: &CompiledKernel, grid: Grid) -> PyResult<Option<Ranks>> {
        let Some(wanted) = kernel.code.artifact.metadata.launch.ranks else { return Ok(ranks) };
        let name = kernel.code.name();
        let Some(ranks) = ranks else {
            return Err(wrong_call::value_error(
                format!("{name} reaches other devices, and the launch has none"),
                "launch it in `with tilewright.testing.simulated_mesh(n_nodes, n_devices):`, or after tilewright.distributed.init",
            ));
        };
        if wanted != 0 && u64::from(wanted) != ranks.count {
            return Err(wrong_call::value_error(
                format!(
                    "the mesh of {name} has {wanted} nodes times devices, and the launch {} ranks",
                    ranks.count
                ),
                "the axes of levels node and device are those of the launch",
            ));
        }
        let programs: u64 = grid.iter().map(|&n| u64::from(n)).product();
        if programs > ranks.programs {
            return Err(wrong_call::value_error(
                format!(
                    "the grid of {name} has {programs} programs, and flags for barriers of ranks are there for {}",
                    ranks.programs
                ),
                "let each program do more",
            ));
        }
        let scratch = u64::from(kernel.code.artifact.metadata.launch.rank_scratch);
        if scratch > ranks.scratch {
            return Err(wrong_call::value_error(
                format!(
                    "each program of {name} needs {scratch} bytes of symmetric memory for values that it reshards, and there are {}",
                    ranks.scratch
                ),
                "ask for more by `scratch=` of the mesh, or reshard smaller tensors",
            ));
        }
        Ok(Some(ranks))
    }

    /// Whether there is a piece for each rank in this process.
    pub fn is_simulated(&self) -> bool {
        self.stride != 0
    }

    /// The arguments of each rank.
    pub fn cells(ranks: Option<&Ranks>, kernel: &CompiledKernel, arguments: &Arguments) -> Vec<Vec<u64>> {
        let Some(ranks) = ranks else { return vec![arguments.cells.to_vec()] };
        let pointers = pointer_cells(arguments);
        let here = ranks.base..ranks.base + ranks.stride;
        let of_rank = |rank: u64| {
            let moved = |(&cell, &pointer): (&u64, &bool)| match pointer && here.contains(&cell) {
                true => cell + rank * ranks.stride,
                false => cell,
            };
            let mut cells: Vec<u64> = arguments.cells.iter().zip(&pointers).map(moved).collect();
            cells.extend(ranks.own(kernel).map(|own| own + rank * ranks.stride));
            cells
        };
        (0..if ranks.is_simulated() { ranks.count } else { 1 }).map(of_rank).collect()
    }

    /// The argument behind the author's: where the piece begins, for a kernel that wants it.
    pub fn own(&self, kernel: &CompiledKernel) -> Option<u64> {
        kernel.code.artifact.metadata.launch.ranks.map(|_| self.base)
    }

    /// Allows each rank's place of what rank 0's arguments lie in, and what the pieces begin with.
    pub fn allow(&self, allocations: &mut Allocations) {
        let here = self.base..self.base + self.stride;
        for at in 0..allocations.extents.len() {
            let extent = allocations.extents[at];
            if !here.contains(&extent.base) {
                continue;
            }
            let name = allocations.names[at].clone();
            for rank in 1..self.count {
                allocations.extents.push(Extent { base: extent.base + rank * self.stride, ..extent });
                allocations.names.push(format!("{name} of rank {rank}"));
            }
            allocations.names[at] = format!("{name} of rank 0");
        }
        for (name, offset, bytes) in &self.parts {
            for rank in 0..self.count {
                let base = self.base + rank * self.stride + offset;
                allocations.extents.push(Extent { base, bytes: *bytes, writable: true });
                allocations.names.push(format!("{name} of rank {rank}"));
            }
        }
    }
}
