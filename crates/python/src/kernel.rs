//! A compiled kernel: what the compiler made, and what it takes to start it.

use std::sync::{Arc, OnceLock};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use tilewright_runtime::{Device, Function, Module};

use crate::args::Spec;
use crate::errors;
use crate::host::Captured;
use crate::launch::{self, Backend};
use crate::params::{Options, Params};

/// What the compiler hands over.
#[derive(Default)]
pub struct Artifact {
    /// Name of the entry in the code.
    pub name: String,
    /// `ttir`, `ttgir`, `llir`, `ptx`: the stages that ran.
    pub texts: Vec<(&'static str, String)>,
    pub cubin: Option<Vec<u8>>,
    /// A JSON object.
    pub metadata: String,
    pub num_warps: u32,
    /// Dynamic shared memory in bytes.
    pub shared: u32,
    pub cluster: [u32; 3],
    pub registers: Option<u32>,
    pub spills: Option<u32>,
}

impl Artifact {
    fn text(&self, stage: &str) -> Option<&str> {
        self.texts.iter().find(|(s, _)| *s == stage).map(|(_, t)| t.as_str())
    }
}

/// The code on its GPU.
struct Loaded {
    function: Function,
    // Unloads the code when dropped.
    _module: Module,
}

/// A kernel compiled for one set of argument types, constants and options.
#[pyclass(frozen, module = "tilewright._tilewright")]
pub struct CompiledKernel {
    pub artifact: Artifact,
    pub backend: Backend,
    pub params: Arc<Params>,
    /// How each parameter entered the compilation.
    pub specs: Vec<Spec>,
    pub options: Options,
    captured: Vec<Captured>,
    loaded: OnceLock<Loaded>,
}

impl CompiledKernel {
    pub fn new(
        artifact: Artifact,
        backend: Backend,
        params: Arc<Params>,
        specs: Vec<Spec>,
        options: Options,
        captured: Vec<Captured>,
    ) -> Self {
        CompiledKernel { artifact, backend, params, specs, options, captured, loaded: OnceLock::new() }
    }

    /// An error when a captured value has changed since the kernel was compiled.
    #[inline]
    pub fn check_captured(&self, py: Python<'_>) -> PyResult<()> {
        self.captured.iter().try_for_each(|c| c.check(py))
    }

    /// The function on the GPU; the code is loaded at the first call.
    #[inline]
    pub fn function(&self) -> PyResult<&Function> {
        match self.loaded.get() {
            Some(loaded) => Ok(&loaded.function),
            None => self.load(),
        }
    }

    #[cold]
    fn load(&self) -> PyResult<&Function> {
        let Backend::Cuda(ordinal) = self.backend else {
            return Err(PyTypeError::new_err(format!(
                "{} was compiled for {}, not for a GPU of this machine, and cannot be loaded",
                self.artifact.name,
                self.backend.describe()
            )));
        };
        let device = Device::get(ordinal).map_err(errors::from_runtime)?;
        let module = match (&self.artifact.cubin, self.artifact.text("ptx")) {
            (Some(cubin), _) => Module::from_cubin(device, cubin),
            (None, Some(ptx)) => Module::from_ptx(device, ptx),
            (None, None) => return Err(PyTypeError::new_err("the compiled kernel holds no GPU code")),
        }
        .map_err(errors::from_runtime)?;
        let function =
            module.function(&self.artifact.name, self.artifact.shared).map_err(errors::from_runtime)?;
        Ok(&self.loaded.get_or_init(|| Loaded { function, _module: module }).function)
    }
}

#[pymethods]
impl CompiledKernel {
    /// The stages that ran: `ttir`, `ttgir`, `llir` and `ptx` as text, `cubin` as bytes.
    #[getter]
    fn asm<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (stage, text) in &self.artifact.texts {
            dict.set_item(stage, text)?;
        }
        if let Some(cubin) = &self.artifact.cubin {
            dict.set_item("cubin", PyBytes::new(py, cubin))?;
        }
        Ok(dict)
    }

    /// What the compiler noted, as an object with attributes.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let values = py.import("json")?.call_method1("loads", (&self.artifact.metadata,))?;
        py.import("types")?.getattr("SimpleNamespace")?.call((), Some(values.cast::<PyDict>()?))
    }

    /// Name of the entry in the code.
    #[getter]
    fn name(&self) -> &str {
        &self.artifact.name
    }

    /// Registers a thread, from the driver where the kernel is loaded, else from ptxas; `None` on the CPU.
    #[getter]
    fn n_regs(&self) -> Option<u32> {
        self.loaded.get().map(|l| l.function.attributes().registers).or(self.artifact.registers)
    }

    /// 32-bit words of local memory a thread, which is where spilled registers go; `None` on the CPU.
    #[getter]
    fn n_spills(&self) -> Option<u32> {
        self.loaded.get().map(|l| l.function.attributes().local_bytes / 4).or(self.artifact.spills)
    }

    /// The most threads a block of this kernel may have; `None` before it is loaded.
    #[getter]
    fn n_max_threads(&self) -> Option<u32> {
        self.loaded.get().map(|l| l.function.attributes().max_threads)
    }

    /// Bytes of shared memory a block.
    #[getter]
    fn shared(&self) -> u32 {
        self.artifact.shared
    }

    /// Warps a block.
    #[getter]
    fn num_warps(&self) -> u32 {
        self.artifact.num_warps
    }

    /// Loads the code onto the GPU, so that `n_regs` and `n_spills` are the driver's.
    fn _init_handles(&self) -> PyResult<()> {
        match self.backend {
            Backend::Cuda(_) => self.function().map(|_| ()),
            _ => Ok(()),
        }
    }

    /// `compiled[grid]`: a function that launches this kernel, without looking for another specialization.
    fn __getitem__<'py>(slf: &Bound<'py, Self>, grid: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        launch::compiled_launcher(slf, &grid)
    }

    fn __repr__(&self) -> String {
        format!("<CompiledKernel {} for {}>", self.artifact.name, self.backend.describe())
    }
}
