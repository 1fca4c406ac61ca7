//! A compiled kernel: what the compiler made, and what it takes to start it.

use std::sync::{Arc, Mutex, OnceLock};

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use tilewright_compiler::{Artifact, Options, sass};
use tilewright_frontend::Diagnostic;
use tilewright_ir::options::MAX_CTAS;
use tilewright_runtime::{Device, Function, LaunchConfig, Module};

use crate::args::Spec;
use crate::captured::Captures;
use crate::errors;
use crate::grid::{self, Grid};
use crate::launch::{self, Backend};
use crate::params::Params;
use crate::ranks;

/// What the compiler made, made ready to run where it runs.
pub struct Code {
    pub artifact: Artifact,
    /// For the CPU executor.
    pub executable: Option<tilewright_interp::Executable>,
    /// For the simulator.
    pub program: Option<tilewright_ptxsim::Program>,
}

impl Code {
    /// Translates the module for the CPU executor where that is what runs it.
    pub fn prepare(mut artifact: Artifact, backend: Backend) -> Result<Code, Diagnostic> {
        let executable = match backend {
            Backend::Interp => {
                // What was translated is needed no more.
                let module = artifact.module.take();
                let module = module.ok_or_else(|| Diagnostic::new("the compiler gave no module"))?;
                Some(tilewright_interp::Executable::compile(&module, &artifact.metadata.name)?)
            }
            _ => None,
        };
        let program =
            match (backend, artifact.text("ptx")) {
                (Backend::PtxSim(_), Some(ptx)) => {
                    let parsed = tilewright_ptxsim::Program::parse(ptx);
                    Some(parsed.map_err(|error| {
                        Diagnostic::new(format!("the simulator refuses the PTX: {error}"))
                    })?)
                }
                _ => None,
            };
        Ok(Code { artifact, executable, program })
    }

    /// Name of the entry.
    pub fn name(&self) -> &str {
        &self.artifact.metadata.name
    }

    /// Whether what the code takes for no negative numbers is none where arguments have these cells.
    #[inline]
    pub fn is_for(&self, cells: &[u64]) -> bool {
        self.artifact.metadata.not_negative.iter().all(|number| number.value(cells) >= 0)
    }

    /// Warps a CTA.
    pub fn num_warps(&self) -> u32 {
        self.artifact.metadata.options.num_warps
    }

    /// Threads that a launch starts a CTA with: those of partitions too.
    pub fn launched_threads(&self) -> u32 {
        self.artifact.metadata.total_num_warps * 32
    }
}

/// The code on its GPU.
struct Loaded {
    function: Function,
    /// How many programs the GPU holds, where a launch starts no more.
    held: Option<u32>,
    // Unloads the code when dropped.
    _module: Module,
}

/// The Python objects that a kernel holds.
struct Held {
    captures: Captures,
    /// What Python keeps with the kernel: the function it was made of, the constants that are compiled in, …
    kept: Py<PyDict>,
}

/// A kernel compiled for one set of argument types, constants and options. Programs may put attributes of their own on it, as
/// TorchInductor does.
#[pyclass(frozen, dict, weakref, module = "tilewright._tilewright")]
pub struct CompiledKernel {
    pub code: Code,
    pub backend: Backend,
    pub params: Arc<Params>,
    /// How each parameter entered the compilation.
    pub specs: Vec<Spec>,
    /// Always there, but to the collector: Python 3.11 makes the attributes' dictionary, and may collect meanwhile, when it has the kernel in its
    /// list already and all of it is zeros. A box that is not there is zeros, too.
    held: Option<Box<Held>>,
    loaded: OnceLock<Loaded>,
    /// The tensor maps of the last launch.
    pub last_maps: crate::tensor_map::LastMaps,
    /// What the simulator reported of the last launch.
    pub report: Mutex<Option<tilewright_ptxsim::Report>>,
}

impl CompiledKernel {
    /// The name of the argument that a parameter of the compiled code comes from.
    pub fn argument_of(&self, cell: usize) -> Option<&str> {
        let mut behind = 0;
        let at = self.specs.iter().position(|spec| {
            spec.for_each_runtime(&mut |_, _| behind += 1);
            behind > cell
        });
        at.map(|at| &*self.params.params[at].text)
    }

    pub fn new(
        code: Code,
        backend: Backend,
        params: Arc<Params>,
        specs: Vec<Spec>,
        captures: Captures,
        kept: Py<PyDict>,
    ) -> Self {
        CompiledKernel {
            code,
            backend,
            params,
            specs,
            held: Some(Box::new(Held { captures, kept })),
            loaded: OnceLock::new(),
            last_maps: crate::tensor_map::LastMaps::default(),
            report: Mutex::default(),
        }
    }

    #[inline]
    fn held(&self) -> &Held {
        self.held.as_deref().expect("a kernel that is made")
    }

    /// The options that it was compiled with, and is launched with.
    #[inline]
    pub fn options(&self) -> &Options {
        &self.code.artifact.metadata.options
    }

    /// How a grid of it is launched on a GPU.
    #[inline]
    pub fn launch_config(&self, grid: Grid) -> PyResult<LaunchConfig> {
        let shape = &self.code.artifact.metadata.launch;
        let held = self.loaded.get().and_then(|loaded| loaded.held);
        let grid = held.map_or(Ok(grid), |held| grid::resident(grid, shape, held))?;
        let mut config = LaunchConfig::new(grid::of_ctas(grid, shape)?, self.code.launched_threads());
        config.cluster = shape.cluster_dims;
        config.cooperative = shape.cooperative || self.options().launch_cooperative_grid;
        Ok(config)
    }

    /// An error when a captured value has changed since the kernel was compiled.
    #[inline]
    pub fn check_captured(&self, py: Python<'_>) -> PyResult<()> {
        self.held().captures.check(py)
    }

    /// The function on the GPU; the code is loaded at the first call.
    #[inline]
    pub fn on_gpu(&self) -> PyResult<&Function> {
        match self.loaded.get() {
            Some(loaded) => Ok(&loaded.function),
            None => self.load(),
        }
    }

    /// Whether the code is on a GPU.
    pub fn is_loaded(&self) -> bool {
        self.loaded.get().is_some()
    }

    /// Whether a launch will load the code onto a GPU.
    pub fn is_to_be_loaded(&self) -> bool {
        matches!(self.backend, Backend::Cuda(_)) && !self.is_loaded()
    }

    #[cold]
    fn load(&self) -> PyResult<&Function> {
        let Backend::Cuda(ordinal) = self.backend else {
            return Err(PyTypeError::new_err(format!(
                "{} was compiled for {}, not for a GPU of this machine, and cannot be loaded",
                self.code.name(),
                self.backend.describe()
            )));
        };
        let device = Device::get(ordinal).map_err(errors::from_runtime)?;
        let artifact = &self.code.artifact;
        let module = match (artifact.bytes("cubin"), artifact.text("ptx")) {
            (Some(cubin), _) => Module::from_cubin(device, cubin),
            (None, Some(ptx)) => Module::from_ptx(device, ptx),
            (None, None) => return Err(PyTypeError::new_err("the compiled kernel holds no GPU code")),
        }
        .map_err(errors::from_runtime)?;
        ranks::prepare(&module, artifact.text("ptx"))?;
        let function =
            module.function(self.code.name(), artifact.metadata.shared).map_err(errors::from_runtime)?;
        if artifact.metadata.launch.cluster_dims.iter().product::<u32>() > MAX_CTAS {
            function.allow_large_clusters().map_err(errors::from_runtime)?;
        }
        let held = match artifact.metadata.launch.resident_programs {
            1.. => {
                let (threads, cluster) =
                    (self.code.launched_threads(), artifact.metadata.launch.cluster_dims);
                Some(function.resident_clusters(threads, cluster).map_err(errors::from_runtime)?)
            }
            0 => None,
        };
        Ok(&self.loaded.get_or_init(|| Loaded { function, held, _module: module }).function)
    }
}

impl CompiledKernel {
    /// The handle of the stream that it would be launched on; `None` where there are no streams.
    pub fn stream(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        match self.backend {
            Backend::Cuda(device) => launch::current_stream(py, device).map(|stream| Some(stream.0 as usize)),
            _ => Ok(None),
        }
    }

    fn disassembled(&self, py: Python<'_>) -> PyResult<String> {
        let Some(cubin) = self.code.artifact.bytes("cubin") else {
            let name = self.code.name();
            return Err(pyo3::exceptions::PyValueError::new_err(format!("{name} has no cubin")));
        };
        let python = crate::compile::python_environment(py)?;
        py.detach(|| sass::disassemble(cubin, &python)).map_err(pyo3::exceptions::PyRuntimeError::new_err)
    }
}

#[pymethods]
impl CompiledKernel {
    /// The stages that ran: `ttir`, `ttgir`, `llir` and `ptx` as text, `cubin` as bytes, and `sass`, the disassembled
    /// cubin, once it is asked for.
    #[getter]
    fn asm<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let py = slf.py();
        let dict =
            py.import("tilewright.compiler")?.getattr("AsmDict")?.call1((slf,))?.cast_into::<PyDict>()?;
        let artifact = &slf.get().code.artifact;
        for (stage, bytes) in &artifact.stages {
            match artifact.text(stage.name) {
                Some(text) => dict.set_item(stage.name, text)?,
                None => dict.set_item(stage.name, PyBytes::new(py, bytes))?,
            }
        }
        Ok(dict)
    }

    /// What bounds the kernel, by its machine code, as the command `tilewright inspect` prints it: registers, spills, occupancy, and instructions by
    /// source line, those of the author's own code (`tle.raw`) included.
    #[pyo3(signature = (json = false))]
    fn inspect(&self, py: Python<'_>, json: bool) -> PyResult<String> {
        let python = crate::compile::python_environment(py)?;
        py.detach(|| tilewright_cli::inspected(&self.code.artifact, json, &python))
            .map_err(pyo3::exceptions::PyRuntimeError::new_err)
    }

    /// What the compiler noted, as an object with attributes.
    #[getter]
    pub fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = serde_json::to_string(&self.code.artifact.metadata)
            .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
        let values = py.import("json")?.call_method1("loads", (text,))?;
        py.import("tilewright.compiler.compiled")?.getattr("KernelMetadata")?.call1((values,))
    }

    /// Seconds that each stage of the compilation took, by stage; what came from the cache on disk is not listed.
    #[getter]
    fn times<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for stage in &self.code.artifact.times {
            dict.set_item(stage.stage, stage.time.as_secs_f64())?;
        }
        Ok(dict)
    }

    /// How often each opcode stands in the cubin, as a dict. Runs `nvdisasm` or `cuobjdump`.
    fn instruction_mix<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (opcode, count) in sass::Listing::parse(&self.disassembled(py)?).mix() {
            dict.set_item(opcode, count)?;
        }
        Ok(dict)
    }

    /// The cubin's instructions with their source lines, as text. Runs `nvdisasm` or `cuobjdump`.
    fn disassemble(&self, py: Python<'_>) -> PyResult<String> {
        Ok(sass::readable(&self.disassembled(py)?))
    }

    /// Name of the entry in the code.
    #[getter]
    fn name(&self) -> &str {
        self.code.name()
    }

    /// Registers a thread, from the driver where the kernel is loaded, else from ptxas; `None` on the CPU.
    #[getter]
    fn n_regs(&self) -> Option<u32> {
        self.loaded.get().map(|l| l.function.attributes().registers).or(self.code.artifact.metadata.n_regs)
    }

    /// 32-bit words of local memory a thread, which is where spilled registers go; `None` on the CPU.
    #[getter]
    fn n_spills(&self) -> Option<u32> {
        self.loaded.get().map(|l| l.function.attributes().local_bytes / 4).or(self
            .code
            .artifact
            .metadata
            .n_spills
            .map(|bytes| bytes / 4))
    }

    /// The most threads a block of this kernel may have; `None` before it is loaded.
    #[getter]
    fn n_max_threads(&self) -> Option<u32> {
        self.loaded.get().map(|l| l.function.attributes().max_threads)
    }

    /// Bytes of shared memory a block.
    #[getter]
    fn shared(&self) -> u32 {
        self.code.artifact.metadata.shared
    }

    /// Warps a block.
    #[getter]
    fn num_warps(&self) -> u32 {
        self.code.num_warps()
    }

    /// What Python keeps with the kernel.
    #[getter]
    fn _kept(&self, py: Python<'_>) -> Py<PyDict> {
        self.held().kept.clone_ref(py)
    }

    /// The options that it was compiled with, by name.
    #[getter]
    fn _options<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        crate::params::options_dict(py, self.options())
    }

    /// The types of the parameters as signatures spell them; `constexpr` for what is compiled in.
    #[getter]
    fn _signature<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.specs.iter().map(|spec| spec.signature(py)).collect()
    }

    /// What the parameters are known to be multiples of.
    #[getter]
    fn _divisors(&self) -> Vec<u32> {
        self.specs.iter().map(Spec::divisor).collect()
    }

    /// The driver's handle of the function; `None` where there is none, and before the code is loaded.
    #[getter]
    fn function(&self) -> Option<usize> {
        self.loaded.get().map(|loaded| loaded.function.handle())
    }

    /// What Triton's kernels have beside these.
    fn __getattr__<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("tilewright.compiler.compiled")?.getattr("attribute")?.call1((slf, name))
    }

    /// What the simulator reported of the last launch, as a dict: `findings` (broken rules) and `counters` (instructions,
    /// memory traffic, bank conflicts, …); `None` before a launch and on other backends.
    #[getter]
    fn sim_report<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let json = self.report.lock().unwrap_or_else(|e| e.into_inner()).as_ref().map(|r| r.to_json());
        json.map(|json| py.import("json")?.call_method1("loads", (json,))).transpose()
    }

    /// Loads the code onto the GPU, so that `n_regs` and `n_spills` are the driver's.
    fn _init_handles(slf: &Bound<'_, Self>) -> PyResult<()> {
        crate::hooks::around_load(slf)?;
        let kernel = slf.get();
        match kernel.backend {
            Backend::Cuda(_) => kernel.on_gpu().map(|_| ()),
            _ => Ok(()),
        }
    }

    /// `compiled[grid]`: a function that launches this kernel, without looking for another specialization.
    fn __getitem__<'py>(slf: &Bound<'py, Self>, grid: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        launch::compiled_launcher(slf, &grid)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Some(held) = &self.held else { return Ok(()) };
        visit.call(&held.kept)?;
        held.captures.traverse(&visit)
    }

    fn __repr__(&self) -> String {
        format!("<CompiledKernel {} for {}>", self.code.name(), self.backend.describe())
    }
}
