//! `JitBase`, the Rust half of `tilewright.jit`: the kernel's parameters, the kernels compiled so far, and
//! `kernel[grid]`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple};

use tilewright_frontend::{JitFunction, JitMarks, Options, SourceText};

use crate::kernel::CompiledKernel;
use crate::kernels::Kernels;
use crate::key::{Constants, Key};
use crate::launch;
use crate::params::Params;

/// The base class of `JITFunction`.
///
/// Making one is cheap (a library of kernels makes hundreds): parameters and source are read when first needed.
#[pyclass(subclass, frozen, module = "tilewright._tilewright")]
pub struct JitBase {
    /// The decorated Python function.
    pub function: Py<PyAny>,
    marks: JitMarks,
    debug: bool,
    prepared: PyOnceLock<Prepared>,
    /// The function as the front end knows it, once it is asked for.
    frontend: Mutex<Option<Arc<JitFunction>>>,
    /// Source that stands for the function's own, with its first line's number.
    replaced: Mutex<Option<(String, u32)>>,
    /// How often the source was replaced.
    replacements: AtomicU64,
    /// Whether a program has put a `run` of its own on this object.
    own_run: AtomicBool,
    /// Compiled kernels. Never held while Python code may run.
    kernels: Mutex<Kernels>,
}

/// What a launch needs, read from the Python side at the first one.
pub struct Prepared {
    pub params: Arc<Params>,
    pub constants: Constants,
    pub defaults: Options,
    /// What is called before each launch (`add_pre_run_hook`).
    pub hooks: Py<PyList>,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// `JITFunction.run` as it is defined. Where it is another, `kernel[grid]` calls that.
static RUN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

#[pymethods]
impl JitBase {
    #[new]
    #[pyo3(signature = (function, noinline = false, debug = false, warp_level = false))]
    fn new(function: Py<PyAny>, noinline: bool, debug: bool, warp_level: bool) -> Self {
        JitBase {
            function,
            marks: JitMarks { noinline, warp_level },
            debug,
            prepared: PyOnceLock::new(),
            frontend: Mutex::default(),
            replaced: Mutex::default(),
            replacements: AtomicU64::default(),
            own_run: AtomicBool::default(),
            kernels: Mutex::default(),
        }
    }

    /// The decorated Python function.
    #[getter]
    fn r#fn(&self, py: Python<'_>) -> Py<PyAny> {
        self.function.clone_ref(py)
    }

    /// `kernel[grid]`: a function that launches the kernel on that grid.
    fn __getitem__<'py>(slf: &Bound<'py, Self>, grid: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if Self::_runs_otherwise(slf)? {
            return slf.call_method1(intern!(slf.py(), "_by_run"), (grid,));
        }
        launch::launcher(slf, &grid)
    }

    /// Says which `run` is the class's own.
    #[staticmethod]
    fn _is_run(py: Python<'_>, run: Py<PyAny>) {
        let _ = RUN.set(py, run);
    }

    /// Says that this object has a `run` of its own.
    fn _has_run(&self) {
        self.own_run.store(true, Ordering::Relaxed);
    }

    /// Whether a program has put another function in the place of `run`: on the object, on the class, or in a class of its own.
    #[inline]
    fn _runs_otherwise(slf: &Bound<'_, Self>) -> PyResult<bool> {
        let py = slf.py();
        let Some(run) = RUN.get(py) else { return Ok(false) };
        let own = slf.get().own_run.load(Ordering::Relaxed);
        Ok(own || !slf.get_type().getattr(intern!(py, "run"))?.is(run))
    }

    /// Compiles if need be, and launches unless `warmup`; gives the compiled kernel.
    #[pyo3(signature = (grid, warmup, args, kwargs, target = None))]
    fn _run<'py>(
        slf: &Bound<'py, Self>,
        grid: &Bound<'py, PyAny>,
        warmup: bool,
        args: &Bound<'py, PyTuple>,
        kwargs: &Bound<'py, PyDict>,
        target: Option<launch::Target>,
    ) -> PyResult<Py<PyAny>> {
        launch::run_slow(slf, grid, warmup, args, kwargs, target)
    }

    /// Forgets the kernels compiled so far in this process.
    fn clear_cache(&self) {
        let dropped = std::mem::take(&mut *self.lock());
        drop(dropped);
    }

    /// Has the function mean other source from now on: a `def` with the same parameters, whose first line has this number.
    fn _replace_source(&self, text: String, first_line: u32) {
        *lock(&self.replaced) = Some((text, first_line));
        self.replacements.fetch_add(1, Ordering::Relaxed);
        *lock(&self.frontend) = None;
        self.clear_cache();
    }

    /// The kernels compiled so far in this process; of a thousand and more those used last.
    #[getter]
    fn compiled_kernels(&self, py: Python<'_>) -> Vec<Py<CompiledKernel>> {
        self.lock().iter().map(|k| (**k).clone_ref(py)).collect()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The function's globals usually hold this object: seen by the collector, the cycle can be broken there.
        visit.call(&self.function)?;
        if let Ok(kernels) = self.kernels.try_lock() {
            for kernel in kernels.iter().filter(|k| Arc::strong_count(k) == 1) {
                visit.call(&**kernel)?;
            }
        }
        Ok(())
    }
}

/// A lock whose holder cannot leave what it guards half changed.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl JitBase {
    fn lock(&self) -> std::sync::MutexGuard<'_, Kernels> {
        lock(&self.kernels)
    }

    /// The kernel compiled for a key.
    #[inline]
    pub fn compiled(&self, key: &Key) -> Option<Arc<Py<CompiledKernel>>> {
        self.lock().get(key)
    }

    /// How often the source was replaced: a kernel that has the function as a constant is another one after that.
    pub fn replacements(&self) -> u64 {
        self.replacements.load(Ordering::Relaxed)
    }

    /// Whether another object has the same source, as far as either was read, and the same options.
    pub fn same_as(&self, other: &JitBase) -> bool {
        let replaced = |jit: &JitBase| lock(&jit.replaced).clone();
        self.marks == other.marks && self.debug == other.debug && replaced(self) == replaced(other)
    }

    /// Keeps a kernel; where another thread was faster, its one stays.
    pub fn keep(&self, key: Key, kernel: Arc<Py<CompiledKernel>>) -> Arc<Py<CompiledKernel>> {
        let (kept, dropped) = self.lock().keep(key, kernel);
        drop(dropped);
        kept
    }

    /// Parameters and defaults, read at the first call.
    #[inline]
    pub fn prepared<'a>(slf: &'a Bound<'_, Self>) -> PyResult<&'a Prepared> {
        let py = slf.py();
        let this = slf.get();
        this.prepared.get_or_try_init(py, || {
            let name: String = slf.getattr(intern!(py, "__name__"))?.extract()?;
            let params = Params::read(name, &slf.getattr(intern!(py, "params"))?)?;
            let defaults = Options { debug: this.debug, ..Options::default() };
            let hooks = slf.getattr(intern!(py, "pre_run_hooks"))?.cast_into::<PyList>()?.unbind();
            Ok(Prepared { params: Arc::new(params), constants: Constants::new(py), defaults, hooks })
        })
    }

    /// The function as the front end knows it; its source is read at the first call, and again where `noinline` has changed since.
    pub fn frontend(slf: &Bound<'_, Self>) -> PyResult<Arc<JitFunction>> {
        let (py, this) = (slf.py(), slf.get());
        let now = slf.getattr_opt(intern!(py, "noinline"))?;
        let noinline = now.map_or(Ok(this.marks.noinline), |now| now.is_truthy())?;
        let marks = JitMarks { noinline, ..this.marks };
        if let Some(known) = &*lock(&this.frontend)
            && known.marks == marks
        {
            return Ok(known.clone());
        }
        let function = this.function.bind(py);
        let name: String = function.getattr(intern!(py, "__qualname__"))?.extract()?;
        let module: Option<String> = function.getattr(intern!(py, "__module__"))?.extract()?;
        // The library that the front end knows is the language; the package's other modules are like anybody's.
        let ours =
            |module: &String| module.starts_with("tilewright.") && !module.starts_with("tilewright.language");
        let module = module.filter(|module| !ours(module));
        let replaced = lock(&this.replaced).clone();
        let (text, first) = match replaced {
            Some(source) => source,
            None => {
                let lines = py.import("tilewright.runtime.jit")?.call_method1("source_lines", (function,))?;
                let (lines, first): (Vec<String>, u32) = lines.extract()?;
                (lines.concat(), first)
            }
        };
        let code = function.getattr(intern!(py, "__code__"))?;
        let file: String = code.getattr(intern!(py, "co_filename"))?.extract()?;
        let source = SourceText::new(file, text, first);
        // What is known of a function elsewhere goes by this number: replaced source gets another.
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let made = JitFunction::new(id, module.unwrap_or_default(), name, source, marks);
        let mut known = lock(&this.frontend);
        let known = known.get_or_insert_with(|| made.clone());
        if known.marks != marks {
            *known = made;
        }
        Ok(known.clone())
    }
}
