//! Launching: the fast path behind `kernel[grid](…)`.
//!
//! `kernel[grid]` is a built-in function object (`METH_FASTCALL | METH_KEYWORDS`) whose `self` is the pair (kernel, grid).
//! Calling it runs [`fast_call`] with the arguments on the interpreter's stack: no Python frame, no tuple, no dict.

use std::any::Any;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use tilewright_compiler::{CudaTarget, DEFAULT_TARGET, Options};
use tilewright_runtime::{Device, Stream};

use crate::args::{Arguments, Spec, float_bits};
use crate::compile::{self, device_target};
use crate::errors::{self, TilewrightError};
use crate::grid::{self, Grid};
use crate::hooks;
use crate::host_memory;
use crate::jit::{JitBase, Prepared};
use crate::kernel::CompiledKernel;
use crate::key::Key;
use crate::params::{self, Bindings, Given, fast_keywords};
use crate::ranks::Ranks;
use crate::tensor_map;
use crate::torch::Torch;
use crate::wrong_call;

/// Where a kernel runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// The CPU executor.
    Interp,
    /// The PTX simulator, for a GPU of this architecture.
    PtxSim(CudaTarget),
    /// The simulator of Ascend's cores.
    NpuSim,
    /// The simulator of Intel's GPUs.
    XeSim,
    /// A GPU of this machine, by ordinal.
    Cuda(u32),
    /// A GPU architecture that is only compiled for (`warmup` with `TILEWRIGHT_TARGET`).
    Offline(CudaTarget),
}

impl Backend {
    fn word(self) -> u64 {
        match self {
            Backend::Interp => 0,
            Backend::PtxSim(arch) => 1 | u64::from(arch.capability()) << 8,
            Backend::Cuda(device) => 2 | u64::from(device) << 8,
            Backend::NpuSim => 4,
            Backend::XeSim => 5,
            Backend::Offline(arch) => 3 | u64::from(arch.capability()) << 8,
        }
    }

    /// For messages.
    pub fn describe(self) -> String {
        match self {
            Backend::Interp => "the CPU".to_string(),
            Backend::PtxSim(arch) => format!("the PTX simulator ({arch})"),
            Backend::NpuSim => "the simulator of Ascend's cores".to_string(),
            Backend::XeSim => "the simulator of Intel's GPUs".to_string(),
            Backend::Cuda(device) => format!("GPU {device}"),
            Backend::Offline(arch) => arch.to_string(),
        }
    }

    /// The backend for a call: where its arrays are, unless `TILEWRIGHT_BACKEND` says otherwise.
    #[inline]
    fn choose(py: Python<'_>, arguments: &Arguments, warmup: bool) -> PyResult<Backend> {
        match chosen_backend(py)? {
            None => match arguments.cuda {
                Some((_, device)) => Ok(Backend::Cuda(current_gpu(py, Some(device))?)),
                None => Backend::choose_slow(py, arguments, warmup),
            },
            Some(name) => match name.as_bytes() {
                b"interp" => Ok(Backend::Interp),
                b"cuda" if warmup && environment(c"TILEWRIGHT_TARGET").is_some() => {
                    Ok(Backend::Offline(target()?))
                }
                b"cuda" => Ok(Backend::Cuda(current_gpu(py, arguments.cuda.map(|(_, d)| d))?)),
                b"ptxsim" => Ok(Backend::PtxSim(target()?)),
                b"npusim" => Ok(Backend::NpuSim),
                b"xesim" => Ok(Backend::XeSim),
                _ => Err(wrong_call::value_error(
                    format!("TILEWRIGHT_BACKEND is \"{}\"", String::from_utf8_lossy(name.as_bytes())),
                    "it may be interp, cuda, ptxsim, npusim or xesim",
                )),
            },
        }
    }

    #[cold]
    fn choose_slow(py: Python<'_>, arguments: &Arguments, warmup: bool) -> PyResult<Backend> {
        if warmup && environment(c"TILEWRIGHT_TARGET").is_some() {
            return Ok(Backend::Offline(target()?));
        }
        if arguments.host.is_some() {
            return Ok(Backend::Interp);
        }
        // Nothing has an address: a GPU if there is one.
        if Torch::cuda_in_use(py) || tilewright_runtime::device_count().is_ok_and(|n| n > 0) {
            return Ok(Backend::Cuda(current_gpu(py, None)?));
        }
        Ok(Backend::Interp)
    }
}

/// `TILEWRIGHT_BACKEND` as it is now; `None` when unset or empty. A launch looks it up among Python's variables: to go through those of the process one after the
/// other takes longer the more there are.
#[inline]
fn chosen_backend(py: Python<'_>) -> PyResult<Option<Bound<'_, PyBytes>>> {
    static VARIABLES: PyOnceLock<Option<(Py<PyDict>, Py<PyBytes>)>> = PyOnceLock::new();
    const NAME: &CStr = c"TILEWRIGHT_BACKEND";
    let find = || {
        let os = py.import("os").ok()?;
        let by_bytes = os.getattr("supports_bytes_environ").is_ok_and(|yes| yes.is_truthy().unwrap_or(false));
        let variables = os.getattr("environ").and_then(|environ| environ.getattr("_data")).ok()?;
        let variables = variables.cast_into::<PyDict>().ok().filter(|_| by_bytes)?;
        Some((variables.unbind(), PyBytes::new(py, NAME.to_bytes()).unbind()))
    };
    let value = match VARIABLES.get_or_init(py, find) {
        Some((variables, name)) => match variables.bind(py).get_item(name)? {
            Some(value) => Some(value.cast_into::<PyBytes>()?),
            None => None,
        },
        None => environment(NAME).map(|value| PyBytes::new(py, value.to_bytes())),
    };
    Ok(value.filter(|value| !value.as_bytes().is_empty()))
}

/// The value of an environment variable as it is now; `None` when unset or empty.
#[inline]
fn environment(name: &'static CStr) -> Option<&'static CStr> {
    unsafe extern "C" {
        fn getenv(name: *const c_char) -> *const c_char;
    }
    // SAFETY: the name ends with a zero byte. The interpreter is held, so Python code, which is what changes the
    // environment of a Python process, does not run while the value is looked at.
    let value = unsafe { getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: getenv gives a zero-terminated string.
    let value = unsafe { CStr::from_ptr(value) };
    (!value.is_empty()).then_some(value)
}

/// The architecture that `TILEWRIGHT_TARGET` names, or the default one.
fn target() -> PyResult<CudaTarget> {
    match environment(c"TILEWRIGHT_TARGET") {
        Some(text) => parse_target(&text.to_string_lossy()),
        None => parse_target(DEFAULT_TARGET),
    }
}

/// The target of a name.
fn parse_target(text: &str) -> PyResult<CudaTarget> {
    CudaTarget::parse(text).map_err(|_| {
        wrong_call::value_error(
            format!("the target {text:?} is no GPU"),
            format!("TILEWRIGHT_TARGET and warmup(target=…) take one of {}", CudaTarget::names()),
        )
    })
}

/// The GPU to launch on: torch's current one, or else that of the arguments, or else the driver's current one.
#[inline]
fn current_gpu(py: Python<'_>, of_arguments: Option<u32>) -> PyResult<u32> {
    // torch's current GPU is the one whose context is current: the driver says so in a tenth of the time.
    if let Some(device) = of_arguments
        && Device::is_current(device)
    {
        return Ok(device);
    }
    if let Some(torch) = Torch::get(py)
        && (of_arguments.is_some() || Torch::cuda_in_use(py))
        // torch may be there without having touched the GPU, which another library then did.
        && let Ok(device) = torch.current_device(py)
    {
        return Ok(device);
    }
    match of_arguments {
        Some(device) => Ok(device),
        None => Ok(Device::current().map_err(errors::from_runtime)?.ordinal()),
    }
}

/// The stream that a launch on a GPU goes to: torch's current one there, or else the default one.
pub fn current_stream(py: Python<'_>, device: u32) -> PyResult<Stream> {
    match Torch::get(py) {
        Some(torch) => torch.current_stream(py, device),
        None => Ok(Stream::default()),
    }
}

/// What a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To run the kernel.
    Launch,
    /// To compile it for where it would run.
    Compile,
    /// To compile it for this.
    CompileFor(Place),
}

/// For where, and for what, a kernel is compiled: what Python code hands back to have another one compiled for the same.
#[pyclass(frozen)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Where it will run.
    pub backend: Backend,
    /// Whether nothing is launched then.
    pub warmup: bool,
}

#[pymethods]
impl Place {
    /// The GPU's number; none where it is compiled for none of this machine.
    #[getter]
    fn device(&self) -> Option<u32> {
        match self.backend {
            Backend::Cuda(device) => Some(device),
            _ => None,
        }
    }
}

/// Looks at bound arguments: the key of their kernel, what they are, and (the result) where it runs.
#[inline]
fn look(
    jit: &Bound<'_, JitBase>,
    prepared: &Prepared,
    bindings: &Bindings<'_, '_>,
    purpose: Purpose,
    key: &mut Key,
    arguments: &mut Arguments,
) -> PyResult<Backend> {
    key.push(0);
    params::encode(&bindings.options, key);
    arguments.read(&prepared.params.params, &bindings.values, &prepared.constants, key)?;
    if let Some(path) = &bindings.given {
        prepared.constants.encode(path.as_any(), key)?;
    }
    let backend = match purpose {
        Purpose::CompileFor(place) => place.backend,
        _ => Backend::choose(jit.py(), arguments, purpose == Purpose::Compile)?,
    };
    key[0] = backend.word();
    Ok(backend)
}

/// Finds or compiles the kernel for bound arguments.
#[inline]
fn specialize(
    jit: &Bound<'_, JitBase>,
    prepared: &Prepared,
    bindings: &Bindings<'_, '_>,
    purpose: Purpose,
    arguments: &mut Arguments,
) -> PyResult<Option<Arc<Py<CompiledKernel>>>> {
    let py = jit.py();
    let mut key = Key::new();
    let backend = look(jit, prepared, bindings, purpose, &mut key, arguments)?;
    if let Some(kernel) = jit.get().compiled(&key) {
        kernel.get().check_captured(py)?;
        return Ok(Some(kernel));
    }
    arguments.check_places(&prepared.params.params)?;
    let warmup = match purpose {
        Purpose::CompileFor(place) => place.warmup,
        _ => purpose == Purpose::Compile,
    };
    let kernel = hooks::around_compile(jit, bindings, arguments, Place { backend, warmup }, |given| {
        let kernel = compile::compile(jit, prepared, bindings, arguments, backend, given)?;
        Ok(Arc::new(Py::new(py, kernel)?))
    })?;
    Ok(kernel.map(|kernel| jit.get().keep(key, kernel)))
}

/// Starts a compiled kernel, on torch's current stream unless another is given.
#[inline]
fn start<'py>(
    py: Python<'py>,
    kernel: &CompiledKernel,
    grid: Grid,
    arguments: &Arguments,
    values: &[Given<'_, 'py>],
    stream: Option<Stream>,
) -> PyResult<()> {
    match kernel.backend {
        Backend::Cuda(device) if arguments.host.is_none() => {
            if let Some((at, on)) = arguments.cuda
                && on != device
            {
                check_reachable(arguments, kernel, at, on, device)?;
            }
            let function = kernel.on_gpu()?;
            let stream = stream.map_or_else(|| current_stream(py, device), Ok)?;
            let mut config = kernel.launch_config(grid)?;
            config.programmatic_dependent = kernel.options().launch_pdl;
            let mut maps = tensor_map::Maps::new();
            tensor_map::for_gpu(kernel, function.device(), &arguments.cells, &mut maps)
                .map_err(errors::from_runtime)?;
            let bytes = tensor_map::scratch_bytes(kernel, grid);
            let reaches_ranks = kernel.code.artifact.metadata.launch.ranks.is_some();
            let mut more = None;
            let mut scratch = None;
            let programs = tensor_map::programs(kernel, grid);
            if reaches_ranks || bytes > 0 || programs.len() > 0 {
                let more = more.insert(arguments.cells.clone());
                more.extend(programs);
                if reaches_ranks {
                    let ranks = Ranks::wanted(Ranks::current(py)?, kernel, grid)?;
                    more.extend(ranks.and_then(|ranks| ranks.own(kernel)));
                }
                if bytes > 0 {
                    // The last parameter: tensor maps of the kernel's own stand before it.
                    let maps = tensor_map::own_maps(kernel);
                    more.resize(more.len() + maps, 0);
                    let memory = scratch.insert(tensor_map::scratch(py, bytes, device, stream)?);
                    if kernel.code.artifact.metadata.launch.zeroed_scratch {
                        function.device().make_current().map_err(errors::from_runtime)?;
                        // SAFETY: the memory is this launch's.
                        unsafe { tilewright_runtime::fill(memory.address, 0, bytes, stream) }
                            .map_err(errors::from_runtime)?;
                    }
                    more.push(memory.address);
                }
            }
            let cells = &more.as_ref().unwrap_or(&arguments.cells)[..];
            // The interpreter is released: a launch may wait for room in the queue, and what empties the queue may be
            // a callback into Python.
            // SAFETY: the values were bound to the parameters the kernel was compiled with, one cell each.
            py.detach(|| unsafe { function.launch_with_maps(&config, stream, cells, &maps) })
                .map_err(errors::from_runtime)
        }
        _ => host_memory::start(py, kernel, grid, arguments, values),
    }
}

/// An error when an array of another GPU cannot be reached from the one that the kernel runs on.
#[cold]
fn check_reachable(
    arguments: &Arguments,
    kernel: &CompiledKernel,
    at: usize,
    on: u32,
    device: u32,
) -> PyResult<()> {
    let gpu = Device::get(device).map_err(errors::from_runtime)?;
    gpu.make_current().map_err(errors::from_runtime)?;
    for (spec, param) in arguments.specs.iter().zip(&kernel.params.params) {
        let pointer = match spec {
            Spec::Pointer { pointer, .. } => pointer,
            Spec::Descriptor(descriptor) => &descriptor.pointer,
            _ => continue,
        };
        if pointer.address != 0
            && tilewright_runtime::is_device_accessible(pointer.address)
                .map_err(errors::from_runtime)?
                .is_none()
        {
            return Err(wrong_call::value_error(
                format!(
                    "argument '{}' is in memory that GPU {device}, the current one, cannot reach (argument '{}' is on \
                     GPU {on})",
                    param.text, kernel.params.params[at].text
                ),
                "launch inside `with torch.cuda.device(x.device):`",
            ));
        }
    }
    Ok(())
}

/// The whole of a call with bound arguments; gives the compiled kernel, or `None` when a hook would not have it compiled.
#[inline]
fn run<'py>(
    jit: &Bound<'py, JitBase>,
    prepared: &Prepared,
    grid: &Bound<'py, PyAny>,
    bindings: &Bindings<'_, 'py>,
    purpose: Purpose,
) -> PyResult<Py<PyAny>> {
    let py = jit.py();
    let mut arguments = Arguments::default();
    let Some(kernel) = specialize(jit, prepared, bindings, purpose, &mut arguments)? else {
        return Ok(py.None());
    };
    if let Some(options) = without_what_fails(kernel.get(), &bindings.options, &arguments.cells) {
        return run(jit, prepared, grid, &bindings.with(|given| *given = options), purpose);
    }
    if purpose == Purpose::Launch {
        arguments.check_places(&prepared.params.params)?;
        if let Some(at) = arguments.nowhere {
            refuse_stand_in(prepared, at, &bindings.values[at])?;
        }
        // With the option on, whether they are negative has just been looked at.
        if !bindings.options.positive_divisors {
            refuse_negative(kernel.get(), &arguments.cells)?;
        }
        let extents = grid::read(grid, &prepared.params, bindings)?;
        hooks::around_load(kernel.bind(py))?;
        let (kernel, values) = (kernel.get(), &bindings.values);
        hooks::around(py, Some(jit), kernel, extents, values, || {
            start(py, kernel, extents, &arguments, values, None)
        })?;
    }
    Ok((*kernel).clone_ref(py).into_any())
}

/// The options for code that does without what does not hold of these arguments: that divisors are positive, and that there are tensor maps of what the
/// kernel reaches by pointers. `None` where all holds, or is not relied on by these options.
#[inline]
fn without_what_fails(kernel: &CompiledKernel, options: &Options, cells: &[u64]) -> Option<Options> {
    let signs = options.positive_divisors && !kernel.code.is_for(cells);
    let maps = options.raise_pointers && !tensor_map::are_mappable(kernel, cells);
    (signs || maps).then(|| Options {
        positive_divisors: options.positive_divisors && !signs,
        raise_pointers: options.raise_pointers && !maps,
        ..options.clone()
    })
}

/// An error where code that is what it is (compiled before, or of a text that was given) takes a number for positive that is negative here.
#[inline]
fn refuse_negative(kernel: &CompiledKernel, cells: &[u64]) -> PyResult<()> {
    if kernel.code.is_for(cells) {
        return Ok(());
    }
    Err(wrong_call::value_error(
        format!(
            "{} divides by a number that is negative here, and was compiled for positive ones",
            kernel.code.name()
        ),
        "call the kernel itself, with no stage given, or compile it with positive_divisors=False",
    ))
}

/// A dtype or an object without memory may stand in for an array only when nothing is launched. An empty array has no
/// memory either, but that is no reason to stop: it has a shape.
#[cold]
fn refuse_stand_in(prepared: &Prepared, at: usize, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if value.hasattr("data_ptr")? || value.hasattr("__index__")? {
        return Ok(());
    }
    Err(wrong_call::type_error(
        format!("argument '{}' is {}, which has no memory", prepared.params.params[at].text, value.repr()?),
        format!("a dtype can stand in for an array only in {}.warmup(…)", prepared.params.kernel),
    ))
}

/// A call's arguments out of a tuple and a dict.
struct Call<'py> {
    positional: Vec<Bound<'py, PyAny>>,
    keywords: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
}

impl<'py> Call<'py> {
    fn of(args: &Bound<'py, PyTuple>, kwargs: &Bound<'py, PyDict>) -> Self {
        Call { positional: args.iter().collect(), keywords: kwargs.iter().collect() }
    }

    fn bind<'a>(&'a self, py: Python<'py>, prepared: &'a Prepared) -> PyResult<Bindings<'a, 'py>> {
        let mut bindings = Bindings::new(&prepared.defaults);
        let keywords = self.keywords.iter().map(|(name, value)| (name.as_borrowed(), value.as_borrowed()));
        prepared.params.bind(py, &self.positional, keywords, &mut bindings)?;
        Ok(bindings)
    }
}

/// What Python code says of where a kernel is compiled for.
#[derive(FromPyObject)]
pub enum Target {
    /// What it was given itself.
    Place(Py<Place>),
    /// A target's name.
    Name(String),
}

/// `JITFunction.run` and `warmup`: arguments in a tuple and a dict.
pub fn run_slow<'py>(
    jit: &Bound<'py, JitBase>,
    grid: &Bound<'py, PyAny>,
    warmup: bool,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
    target: Option<Target>,
) -> PyResult<Py<PyAny>> {
    let compile_for = |backend| Purpose::CompileFor(Place { backend, warmup: true });
    let purpose = match target {
        Some(Target::Place(place)) => Purpose::CompileFor(*place.get()),
        Some(Target::Name(name)) if name == "interp" => compile_for(Backend::Interp),
        Some(Target::Name(name)) => compile_for(Backend::Offline(parse_target(&name)?)),
        None if warmup => Purpose::Compile,
        None => Purpose::Launch,
    };
    let prepared = JitBase::prepared(jit)?;
    guarded(|| {
        let call = Call::of(args, kwargs);
        run(jit, prepared, grid, &call.bind(jit.py(), prepared)?, purpose)
    })
}

/// Runs the front end for the kernel that a call needs, unless it is compiled; gives its key, and what is left to do.
pub fn begin<'py>(
    jit: &Bound<'py, JitBase>,
    warmup: bool,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
) -> PyResult<Option<(Key, compile::Work, compile::Rest)>> {
    let purpose = if warmup { Purpose::Compile } else { Purpose::Launch };
    let prepared = JitBase::prepared(jit)?;
    guarded(|| {
        let call = Call::of(args, kwargs);
        let bindings = call.bind(jit.py(), prepared)?;
        let (mut key, mut arguments) = (Key::new(), Arguments::default());
        let backend = look(jit, prepared, &bindings, purpose, &mut key, &mut arguments)?;
        if jit.get().compiled(&key).is_some() {
            return Ok(None);
        }
        arguments.check_places(&prepared.params.params)?;
        let (work, rest) = compile::begin(jit, prepared, &bindings, &arguments, backend, None)?;
        Ok(Some((key, work, rest)))
    })
}

/// Turns a panic, which is a defect of ours, into an exception that says so.
pub fn guarded<T>(f: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| Err(of_panic(&*panic)))
}

/// The exception for a panic.
pub fn of_panic(panic: &(dyn Any + Send)) -> PyErr {
    let text = panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()))
        .unwrap_or_default();
    TilewrightError::new_err(format!("internal error of the compiler, please report it: {text}"))
}

/// The built-in function that `kernel[grid]` gives.
pub fn launcher<'py>(jit: &Bound<'py, JitBase>, grid: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    builtin(jit.py(), &LAUNCH, jit.as_any(), grid)
}

/// The built-in function that `compiled[grid]` gives.
pub fn compiled_launcher<'py>(
    kernel: &Bound<'py, CompiledKernel>,
    grid: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    builtin(kernel.py(), &LAUNCH_COMPILED, kernel.as_any(), grid)
}

/// A method definition that never changes.
struct Definition(ffi::PyMethodDef);
// SAFETY: the definition is constant, and CPython only reads it.
unsafe impl Sync for Definition {}

static LAUNCH: Definition = Definition(ffi::PyMethodDef {
    ml_name: c"launch".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: launch_entry },
    ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
    ml_doc: c"Launches the kernel on this grid; gives the compiled kernel.".as_ptr(),
});

static LAUNCH_COMPILED: Definition = Definition(ffi::PyMethodDef {
    ml_name: c"launch_compiled".as_ptr(),
    ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: launch_compiled_entry },
    ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
    ml_doc: c"Launches the compiled kernel on this grid.".as_ptr(),
});

#[inline]
fn builtin<'py>(
    py: Python<'py>,
    definition: &'static Definition,
    callee: &Bound<'py, PyAny>,
    grid: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the definition is static; the pair and the function are new references that are checked for null.
    unsafe {
        let pair = Bound::from_owned_ptr_or_err(py, ffi::PyTuple_Pack(2, callee.as_ptr(), grid.as_ptr()))?;
        let function =
            ffi::PyCFunction_NewEx((&raw const definition.0).cast_mut(), pair.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(py, function)
    }
}

unsafe extern "C" fn launch_entry(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: CPython calls this with what METH_FASTCALL | METH_KEYWORDS promises.
    unsafe { entry(slf, args, nargs, kwnames, fast_call) }
}

unsafe extern "C" fn launch_compiled_entry(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: as above.
    unsafe { entry(slf, args, nargs, kwnames, fast_call_compiled) }
}

/// A call's pieces: the callee, the grid, positional arguments, values of keywords, their names.
type Body = for<'a, 'py> fn(
    &Bound<'py, PyAny>,
    &Bound<'py, PyAny>,
    &'a [Bound<'py, PyAny>],
    &'a [Bound<'py, PyAny>],
    Option<&'a Bound<'py, PyTuple>>,
) -> PyResult<Py<PyAny>>;

/// # Safety
///
/// `slf` must be the pair that [`builtin`] made, and the rest what CPython's fast call passes.
#[inline]
unsafe fn entry(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    kwnames: *mut ffi::PyObject,
    body: Body,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        // SAFETY: the pair outlives the call, and so do its items, the arguments and the names. `Bound` is a transparent
        // wrapper of a non-null object pointer, so the interpreter's array of arguments is a slice of them; we only
        // borrow it.
        let (callee, grid, positional, keywords, names) = unsafe {
            let callee = Borrowed::from_ptr(py, ffi::PyTuple_GetItem(slf, 0));
            let grid = Borrowed::from_ptr(py, ffi::PyTuple_GetItem(slf, 1));
            let named = if kwnames.is_null() { 0 } else { ffi::PyTuple_Size(kwnames) as usize };
            let all: &[Bound<'_, PyAny>] = match nargs as usize + named {
                0 => &[],
                count => std::slice::from_raw_parts(args.cast::<Bound<'_, PyAny>>(), count),
            };
            let (positional, keywords) = all.split_at(nargs as usize);
            (callee, grid, positional, keywords, Borrowed::from_ptr_or_opt(py, kwnames))
        };
        let result = guarded(|| {
            let names = names.as_ref().map(|n| n.cast::<PyTuple>()).transpose()?;
            body(&callee, &grid, positional, keywords, names.as_deref())
        });
        match result {
            Ok(object) => object.into_ptr(),
            Err(error) => {
                error.restore(py);
                std::ptr::null_mut()
            }
        }
    })
}

fn fast_call<'py>(
    callee: &Bound<'py, PyAny>,
    grid: &Bound<'py, PyAny>,
    positional: &[Bound<'py, PyAny>],
    keywords: &[Bound<'py, PyAny>],
    names: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Py<PyAny>> {
    let jit = callee.cast::<JitBase>()?;
    let prepared = JitBase::prepared(jit)?;
    if !prepared.hooks.bind(jit.py()).is_empty() {
        call_hooks(prepared.hooks.bind(jit.py()), positional, keywords, names)?;
    }
    let names_and_values = fast_keywords(names, keywords);
    let mut bindings = Bindings::new(&prepared.defaults);
    prepared.params.bind(jit.py(), positional, names_and_values, &mut bindings)?;
    run(jit, prepared, grid, &bindings, Purpose::Launch)
}

/// Calls what `add_pre_run_hook` was given, with the arguments of the call.
#[cold]
fn call_hooks<'py>(
    hooks: &Bound<'py, PyList>,
    positional: &[Bound<'py, PyAny>],
    keywords: &[Bound<'py, PyAny>],
    names: Option<&Bound<'py, PyTuple>>,
) -> PyResult<()> {
    let args = PyTuple::new(hooks.py(), positional)?;
    let kwargs = PyDict::new(hooks.py());
    for (name, value) in fast_keywords(names, keywords) {
        kwargs.set_item(name, value)?;
    }
    for hook in hooks {
        hook.call(&args, Some(&kwargs))?;
    }
    Ok(())
}

/// `compiled[grid](…)`: every argument, or those alone that are not compiled in, in order.
fn fast_call_compiled<'py>(
    callee: &Bound<'py, PyAny>,
    grid: &Bound<'py, PyAny>,
    positional: &[Bound<'py, PyAny>],
    keywords: &[Bound<'py, PyAny>],
    names: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Py<PyAny>> {
    let kernel = callee.cast::<CompiledKernel>()?;
    hooks::around_load(kernel)?;
    let kernel = kernel.get();
    let mut stream = None;
    for (name, value) in fast_keywords(names, keywords) {
        if name.cast::<PyString>()?.to_cow()? != "stream" {
            return Err(wrong_call::type_error(
                format!("{} was given the keyword argument {}", kernel.code.name(), *name),
                "a compiled kernel takes its arguments by position, and the keyword `stream`",
            ));
        }
        stream = value.extract::<Option<usize>>()?.map(|handle| Stream(handle as *mut _));
    }
    kernel.launch_with(callee.py(), grid, positional, stream)?;
    Ok(callee.py().None())
}

impl CompiledKernel {
    fn launch_with<'py>(
        &self,
        py: Python<'py>,
        grid: &Bound<'py, PyAny>,
        positional: &[Bound<'py, PyAny>],
        stream: Option<Stream>,
    ) -> PyResult<()> {
        let params = &self.params.params;
        let runtime = self.specs.iter().filter(|s| !s.is_constant()).count();
        let all = positional.len() == params.len();
        if !all && positional.len() != runtime {
            return Err(wrong_call::type_error(
                format!("{} got {} arguments", self.code.name(), positional.len()),
                format!(
                    "it was compiled for {} arguments, {runtime} of which are given at run time",
                    params.len()
                ),
            ));
        }
        // Look at each argument as before, then keep what the compiled code takes.
        let none = py.None().into_bound(py);
        let mut given = positional.iter();
        let mut bindings = Bindings::new(self.options());
        bindings.values.extend(self.specs.iter().map(|spec| {
            let value = if !spec.is_constant() || all { given.next() } else { None };
            value.unwrap_or(&none).as_borrowed()
        }));
        let values = &bindings.values;
        let constants = crate::key::Constants::new(py);
        let mut arguments = Arguments::default();
        arguments.read(params, values, &constants, &mut Key::new())?;
        arguments.check_places(params)?;
        arguments.cells.clear();
        for (((now, then), param), value) in arguments.specs.iter().zip(&self.specs).zip(params).zip(values) {
            let cells = &mut arguments.cells;
            match (then, now) {
                (Spec::Constant | Spec::One, _) => {}
                // In the type that it was compiled for, which may be another than it has by itself.
                (Spec::Scalar { ty, .. }, Spec::Scalar { .. } | Spec::One) if ty.is_float() => {
                    cells.push(float_bits(value.extract()?, *ty, param)?);
                }
                (Spec::Scalar { .. }, Spec::One) => cells.push(1),
                // A number for a pointer is the address, as in Triton's launches.
                (Spec::Scalar { .. } | Spec::Pointer { .. }, Spec::Scalar { ty, bits, .. })
                    if !ty.is_float() =>
                {
                    cells.push(*bits);
                }
                (Spec::Pointer { .. }, Spec::Pointer { .. })
                | (Spec::Tuple(_), Spec::Tuple(_))
                | (Spec::Descriptor(_), Spec::Descriptor(_)) => {
                    now.for_each_runtime(&mut |bits, _| cells.push(bits))
                }
                _ => {
                    return Err(wrong_call::type_error(
                        format!(
                            "argument '{}' of {} is of another kind than it was compiled for",
                            param.text,
                            self.code.name()
                        ),
                        "call the kernel itself, which compiles for each kind of argument",
                    ));
                }
            }
        }
        refuse_negative(self, &arguments.cells)?;
        let extents = grid::read(grid, &self.params, &bindings)?;
        hooks::around(py, None, self, extents, values, || {
            start(py, self, extents, &arguments, values, stream)
        })
    }
}

/// Whether kernels run without a GPU, whether or not there is one.
fn without_gpu() -> bool {
    environment(c"TILEWRIGHT_BACKEND")
        .is_some_and(|name| matches!(name.to_bytes(), b"interp" | b"ptxsim" | b"npusim" | b"xesim"))
}

/// What the driver says about a GPU, under the names that Triton's `get_device_properties` uses. Where kernels run without one, what is
/// known of the target that they are compiled for; its multiprocessors are the cores of this machine then.
#[pyfunction]
fn device_properties(py: Python<'_>, device: u32) -> PyResult<Bound<'_, PyDict>> {
    if without_gpu() {
        let (target, dict) = (target()?, PyDict::new(py));
        dict.set_item("name", format!("{target} on the CPU"))?;
        dict.set_item("target", target.to_string())?;
        dict.set_item("max_shared_mem", target.facts().max_shared)?;
        dict.set_item("max_num_regs", target.registers_per_sm())?;
        dict.set_item("multiprocessor_count", std::thread::available_parallelism().map_or(1, usize::from))?;
        dict.set_item("warpSize", target.warp_size())?;
        return Ok(dict);
    }
    let device = Device::get(device).map_err(errors::from_runtime)?;
    let properties = device.properties();
    let dict = PyDict::new(py);
    dict.set_item("name", &properties.name)?;
    dict.set_item("target", device_target(device)?.to_string())?;
    dict.set_item("max_shared_mem", properties.max_shared_memory)?;
    dict.set_item("max_num_regs", properties.max_registers_per_block)?;
    dict.set_item("multiprocessor_count", properties.multiprocessors)?;
    dict.set_item("warpSize", properties.warp_size)?;
    dict.set_item("sm_clock_rate", properties.clock_khz)?;
    dict.set_item("mem_clock_rate", properties.memory_clock_khz)?;
    dict.set_item("mem_bus_width", properties.memory_bus_bits)?;
    dict.set_item("l2_cache_size", properties.l2_bytes)?;
    dict.set_item("total_memory", properties.total_memory)?;
    Ok(dict)
}

/// How many GPUs this process sees; 0 where there is no driver.
#[pyfunction]
fn device_count() -> u32 {
    tilewright_runtime::device_count().unwrap_or(0)
}

/// The GPU that a launch without arrays would go to; 0 where kernels run without one.
#[pyfunction]
fn current_device(py: Python<'_>) -> PyResult<u32> {
    if without_gpu() { Ok(0) } else { current_gpu(py, None) }
}

/// Adds this module's functions.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(device_properties, m)?)?;
    m.add_function(wrap_pyfunction!(device_count, m)?)?;
    m.add_function(wrap_pyfunction!(wrong_call::call_error_text, m)?)?;
    m.add_function(wrap_pyfunction!(current_device, m)?)
}
