//! What we ask torch for, looked up once. torch is never imported here: if the program did not, there is nothing to ask.

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::dlpack::Exchange;

/// Functions and types of torch.
pub struct Torch {
    /// `torch.Tensor`.
    pub tensor: Py<PyAny>,
    /// `torch.nn.Parameter`.
    pub parameter: Py<PyAny>,
    /// What tells an address, a dtype, a GPU and a stream without Python; torch before 2.10 has none.
    pub exchange: Option<Exchange>,
    /// `torch.Tensor.data_ptr`, unbound.
    data_ptr: Py<PyAny>,
    /// `torch.Tensor.get_device`, unbound: the GPU's number, or -1.
    get_device: Py<PyAny>,
    /// `torch._C._cuda_getCurrentRawStream(device)`; builds without CUDA lack it.
    raw_stream: Option<Py<PyAny>>,
    /// `torch._C._cuda_getDevice()`.
    current_device: Option<Py<PyAny>>,
}

static TORCH: PyOnceLock<Torch> = PyOnceLock::new();

impl Torch {
    /// What was looked up before, or what can be now; `None` while torch is not (wholly) imported.
    pub fn get(py: Python<'_>) -> Option<&Torch> {
        match TORCH.get(py) {
            Some(torch) => Some(torch),
            None => Torch::find(py),
        }
    }

    #[cold]
    fn find(py: Python<'_>) -> Option<&Torch> {
        let torch = modules(py)?.get_item(intern!(py, "torch")).ok()??;
        let tensor = torch.getattr(intern!(py, "Tensor")).ok()?;
        let c = torch.getattr(intern!(py, "_C")).ok()?;
        let method = |name: &str| tensor.getattr(name).ok().map(Bound::unbind);
        let function = |name: &str| c.getattr(name).ok().map(Bound::unbind);
        let found = Torch {
            exchange: Exchange::of(&tensor),
            data_ptr: method("data_ptr")?,
            get_device: method("get_device")?,
            parameter: torch.getattr("nn").and_then(|nn| nn.getattr("Parameter")).ok()?.unbind(),
            raw_stream: function("_cuda_getCurrentRawStream"),
            current_device: function("_cuda_getDevice"),
            tensor: tensor.unbind(),
        };
        Some(TORCH.get_or_init(py, || found))
    }

    /// Whether the program has used CUDA through torch.
    pub fn cuda_in_use(py: Python<'_>) -> bool {
        imported(py, "torch.cuda")
            .and_then(|cuda| cuda.call_method0("is_initialized").ok())
            .is_some_and(|yes| yes.is_truthy().unwrap_or(false))
    }

    /// The address of a tensor's first element.
    #[inline]
    pub fn data_ptr(&self, tensor: &Bound<'_, PyAny>) -> PyResult<u64> {
        let result = call1(&self.data_ptr, tensor)?;
        // SAFETY: the object is alive; a wrong type sets an exception, which is looked for.
        let address = unsafe { ffi::PyLong_AsUnsignedLongLong(result.as_ptr()) };
        if address == u64::MAX
            && let Some(error) = PyErr::take(tensor.py())
        {
            return Err(error);
        }
        Ok(address)
    }

    /// The number of the GPU that holds a tensor, or -1 for host memory.
    #[inline]
    pub fn get_device(&self, tensor: &Bound<'_, PyAny>) -> PyResult<i32> {
        as_i32(&call1(&self.get_device, tensor)?)
    }

    /// torch's current GPU.
    #[inline]
    pub fn current_device(&self, py: Python<'_>) -> PyResult<u32> {
        match &self.current_device {
            Some(function) => Ok(as_i32(&call0(py, function)?)? as u32),
            None => Ok(0),
        }
    }

    /// torch's current stream on a GPU.
    #[inline]
    pub fn current_stream(&self, py: Python<'_>, device: u32) -> PyResult<tilewright_runtime::Stream> {
        if let Some(exchange) = &self.exchange
            && let Some(stream) = exchange.stream(py, device)
        {
            return Ok(tilewright_runtime::Stream(stream));
        }
        let Some(function) = &self.raw_stream else { return Ok(tilewright_runtime::Stream::default()) };
        let device = device.into_pyobject(py)?; // a small int: no allocation
        let stream: u64 = call1(function, device.as_any())?.extract()?;
        Ok(tilewright_runtime::Stream(stream as *mut std::ffi::c_void))
    }
}

/// A module that the program has imported.
pub fn imported<'py>(py: Python<'py>, name: &str) -> Option<Bound<'py, PyAny>> {
    modules(py)?.get_item(name).ok()?
}

/// `sys.modules`.
fn modules(py: Python<'_>) -> Option<&Bound<'_, PyDict>> {
    static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let found = MODULES.get_or_try_init(py, || {
        let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
        PyResult::Ok(modules.cast_into::<PyDict>()?.unbind())
    });
    found.ok().map(|modules| modules.bind(py))
}

#[inline]
fn as_i32(value: &Bound<'_, PyAny>) -> PyResult<i32> {
    // SAFETY: the object is alive; a wrong type sets an exception, which is looked for.
    let int = unsafe { ffi::PyLong_AsLong(value.as_ptr()) };
    if int == -1
        && let Some(error) = PyErr::take(value.py())
    {
        return Err(error);
    }
    Ok(int as i32)
}

/// `function(argument)` without a tuple: the limited API of Python 3.11 has no vectorcall, but this call of it does.
#[inline]
fn call1<'py>(function: &Py<PyAny>, argument: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = argument.py();
    // SAFETY: both objects are alive; the list of arguments ends with a null pointer, as it must.
    unsafe {
        let result = ffi::PyObject_CallFunctionObjArgs(
            function.as_ptr(),
            argument.as_ptr(),
            std::ptr::null_mut::<ffi::PyObject>(),
        );
        Bound::from_owned_ptr_or_err(py, result)
    }
}

#[inline]
fn call0<'py>(py: Python<'py>, function: &Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the object is alive.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyObject_CallNoArgs(function.as_ptr())) }
}
