//! The memory behind an argument: for each array the whole allocation that its view belongs to, which is what a kernel
//! on the CPU may access through it.

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;

use crate::args::{Place, Pointer, interface_address, type_name};
use crate::dlpack::{self, DlTensor};
use crate::torch::Torch;
use crate::wrong_call;

/// A range of memory that a kernel may access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    pub base: u64,
    pub bytes: u64,
    pub writable: bool,
}

/// The allocation that an array argument lives in.
pub fn extent(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Extent> {
    let py = value.py();
    if let Some(torch) = Torch::get(py)
        && value.is_instance(torch.tensor.bind(py))?
    {
        return storage(value);
    }
    if value.hasattr(intern!(py, "__array_interface__"))? {
        return ndarray(value);
    }
    if value.hasattr(intern!(py, "untyped_storage"))? {
        return storage(value);
    }
    // A wrapper that shows another array under a different dtype.
    if let Some(base) = value.getattr_opt(intern!(py, "base"))?
        && !base.is_none()
    {
        return extent(&base, name);
    }
    if value.hasattr(intern!(py, "__dlpack__"))? {
        let (pointer, bytes, writable) = dlpack_parts(value)?;
        return Ok(Extent { base: pointer.address, bytes, writable });
    }
    if let Some(bytes) = value.getattr_opt(intern!(py, "nbytes"))? {
        let base = value.call_method0(intern!(py, "data_ptr"))?.extract()?;
        return Ok(Extent { base, bytes: bytes.extract()?, writable: true });
    }
    Err(wrong_call::type_error(
        format!(
            "argument '{name}' ({}) has an address but does not say how long its memory is",
            type_name(value)
        ),
        "give the object `nbytes` or `untyped_storage()`",
    ))
}

/// A tensor's storage.
fn storage(value: &Bound<'_, PyAny>) -> PyResult<Extent> {
    let py = value.py();
    let storage = value.call_method0(intern!(py, "untyped_storage"))?;
    Ok(Extent {
        base: storage.call_method0(intern!(py, "data_ptr"))?.extract()?,
        bytes: storage.call_method0(intern!(py, "nbytes"))?.extract()?,
        writable: true,
    })
}

/// A NumPy array's: that of the array at the end of the chain of bases.
fn ndarray(value: &Bound<'_, PyAny>) -> PyResult<Extent> {
    let py = value.py();
    let interface = value.getattr(intern!(py, "__array_interface__"))?;
    let read_only: bool = interface.get_item(intern!(py, "data"))?.get_item(1)?.extract()?;
    let mut root = value.clone();
    while let Some(base) = root.getattr_opt(intern!(py, "base"))? {
        // The base may be anything that exports memory (bytes, mmap, …); the outermost array then covers what we know.
        if base.is_none() || !base.hasattr(intern!(py, "__array_interface__"))? {
            break;
        }
        root = base;
    }
    let interface = root.getattr(intern!(py, "__array_interface__"))?;
    let address = interface_address(&interface)?;
    let shape: Vec<u64> = interface.get_item("shape")?.extract()?;
    let item: u64 = match root.getattr_opt(intern!(py, "itemsize"))? {
        Some(size) => size.extract()?,
        None => value.getattr(intern!(py, "itemsize"))?.extract()?,
    };
    let strides: Option<Vec<i64>> = match interface.call_method1("get", ("strides",))? {
        none if none.is_none() => None,
        strides => Some(strides.extract()?),
    };
    let (base, bytes) = bounds(address, &shape, strides.as_deref(), item);
    Ok(Extent { base, bytes, writable: !read_only })
}

/// First address and length in bytes of a strided array (strides in bytes; C order where there are none).
fn bounds(address: u64, shape: &[u64], strides: Option<&[i64]>, item: u64) -> (u64, u64) {
    if shape.contains(&0) {
        return (address, 0);
    }
    let Some(strides) = strides else { return (address, shape.iter().product::<u64>() * item) };
    let (mut low, mut high) = (0i64, 0i64);
    for (extent, stride) in shape.iter().zip(strides) {
        let reach = (*extent as i64 - 1) * stride;
        if reach < 0 { low += reach } else { high += reach }
    }
    (address.wrapping_add_signed(low), (high - low) as u64 + item)
}

/// An array that speaks DLPack alone.
pub fn of_dlpack(value: &Bound<'_, PyAny>) -> PyResult<Pointer> {
    dlpack_parts(value).map(|(pointer, _, _)| pointer)
}

fn dlpack_parts(value: &Bound<'_, PyAny>) -> PyResult<(Pointer, u64, bool)> {
    // The capsule is not consumed: it is released when dropped, and the exporter goes on owning the memory.
    let capsule = value.call_method0(intern!(value.py(), "__dlpack__"))?;
    // SAFETY: the object is alive; the call checks that it is a capsule of this name.
    let tensor = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), c"dltensor".as_ptr()) };
    if tensor.is_null() {
        return Err(PyErr::fetch(value.py()));
    }
    // SAFETY: a capsule named "dltensor" holds a DLManagedTensor, whose first field is the DLTensor.
    let tensor = unsafe { &*tensor.cast::<DlTensor>() };
    let element = tensor.scalar().ok_or_else(|| {
        wrong_call::type_error(
            format!(
                "DLPack element type (code {}, {} bits, {} lanes) is not supported",
                tensor.type_code, tensor.type_bits, tensor.type_lanes
            ),
            "convert the array to a dtype of NumPy or torch that kernels take",
        )
    })?;
    let place = match tensor.device_type {
        dlpack::CPU => Place::Host,
        dlpack::CUDA | dlpack::CUDA_HOST | dlpack::CUDA_MANAGED => Place::Cuda(tensor.device_id as u32),
        other => {
            return Err(wrong_call::value_error(
                format!("arrays on DLPack device type {other} are not supported"),
                "move the array to host memory or a CUDA GPU",
            ));
        }
    };
    let rank = tensor.ndim.max(0) as usize;
    let item = u64::from(tensor.type_bits).div_ceil(8);
    let address = tensor.address();
    // SAFETY: shape and, unless null, strides have `ndim` entries.
    let (shape, strides) = unsafe {
        let shape: Vec<u64> = (0..rank).map(|i| (*tensor.shape.add(i)).max(0) as u64).collect();
        let strides = (!tensor.strides.is_null())
            .then(|| (0..rank).map(|i| *tensor.strides.add(i) * item as i64).collect::<Vec<_>>());
        (shape, strides)
    };
    let (base, bytes) = bounds(address, &shape, strides.as_deref(), item);
    debug_assert!(base <= address);
    Ok((Pointer { element, address, place }, bytes, true))
}
