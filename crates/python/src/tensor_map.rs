//! What a launch makes besides the arguments' own values: tensor maps of descriptors, and memory that the kernel writes
//! descriptors of its own to.

use std::sync::Mutex;

use pyo3::intern;
use pyo3::prelude::*;
use smallvec::SmallVec;

use tilewright_compiler::{Number, TensorMapParam};
use tilewright_ptxsim as sim;
use tilewright_runtime::{Device, DeviceBuffer, MAX_RANK, Stream, TensorMap, TensorMapBytes};

use crate::errors;
use crate::grid::Grid;
use crate::kernel::CompiledKernel;
use crate::torch::{self, Torch};

/// The tensor maps of a launch, each with the number of its parameter.
pub type Maps = SmallVec<[(usize, TensorMapBytes); 4]>;

/// A tensor's address, extents and strides, outermost first.
type Numbers = SmallVec<[u64; 2 * MAX_RANK + 1]>;

/// The maps of the last launch with what they were made from: most launches of a kernel are like the one before.
#[derive(Default)]
pub struct LastMaps(Mutex<Vec<(Numbers, TensorMapBytes)>>);

/// How many programs there are along x, or along each axis, where the kernel has parameters for that: they stand behind its arguments, before its maps.
#[inline]
pub fn programs(kernel: &CompiledKernel, grid: Grid) -> impl ExactSizeIterator<Item = u64> {
    let axes = kernel.code.artifact.metadata.launch.resident_programs as usize;
    grid.into_iter().take(axes).map(u64::from)
}

/// How many of the kernel's parameters are tensor maps of its own making: they stand behind its arguments.
#[inline]
pub fn own_maps(kernel: &CompiledKernel) -> usize {
    kernel.code.artifact.metadata.tensor_maps.iter().filter(|map| map.made).count()
}

/// Whether the launch can make the maps of the kernel's own descriptors for these arguments. (Code that was raised from pointers copies also where a tensor
/// has no element, from outside of it, which takes a map.)
#[inline]
pub fn are_mappable(kernel: &CompiledKernel, cells: &[u64]) -> bool {
    let maps = &kernel.code.artifact.metadata.tensor_maps;
    maps.iter().filter(|map| map.made).all(|map| {
        let numbers: Numbers = map.numbers(cells).collect();
        !map.is_empty(&numbers) && map.fault(&numbers).is_none()
    })
}

/// What the driver would refuse, in the names of the program.
fn check(kernel: &CompiledKernel, map: &TensorMapParam, numbers: &[u64]) -> tilewright_runtime::Result<()> {
    let Some(fault) = map.fault(numbers) else { return Ok(()) };
    let name = match map.address {
        Number::Argument { index, .. } => kernel.argument_of(index as usize),
        _ => None,
    };
    let of = name.map_or_else(String::new, |name| format!(" of argument '{name}'"));
    Err(tilewright_runtime::Error::InvalidLaunch(format!(
        "{}: the tensor descriptor{of} {fault}",
        kernel.code.name()
    )))
}

/// Adds the kernel's tensor maps for these arguments, for a GPU.
#[inline]
pub fn for_gpu(
    kernel: &CompiledKernel,
    device: &Device,
    cells: &[u64],
    maps: &mut Maps,
) -> tilewright_runtime::Result<()> {
    let wanted = &kernel.code.artifact.metadata.tensor_maps;
    if wanted.is_empty() {
        return Ok(());
    }
    let mut last = kernel.last_maps.0.lock().unwrap_or_else(|e| e.into_inner());
    for (i, map) in wanted.iter().enumerate() {
        let at = map.param as usize;
        let from: Numbers = map.numbers(cells).collect();
        if let Some((known, bytes)) = last.get(i)
            && *known == from
        {
            maps.push((at, *bytes));
            continue;
        }
        // The driver makes maps only where a context is current: a thread's first launch may be this one.
        device.make_current()?;
        check(kernel, map, &from)?;
        let fields = map.tensor(&from);
        let tensor = TensorMap {
            address: fields.address,
            element: map.element,
            dims: &fields.dims,
            strides: &fields.strides,
            box_dims: &fields.box_dims,
            swizzle_bytes: map.swizzle_bytes,
            nan: map.nan,
        };
        let bytes = if fields.is_empty() { TensorMapBytes::default() } else { tensor.encode()? };
        let entry = (from, bytes);
        match last.get_mut(i) {
            Some(slot) => *slot = entry,
            None => last.push(entry),
        }
        maps.push((at, bytes));
    }
    Ok(())
}

/// The kernel's parameters for the simulator.
pub fn for_simulator(kernel: &CompiledKernel, cells: &[u64]) -> PyResult<Vec<sim::Param>> {
    // As many of the low bits are taken as the parameter has.
    let mut params: Vec<sim::Param> = cells.iter().map(|bits| sim::Param::Int(*bits as i64)).collect();
    let behind = kernel.code.artifact.metadata.tensor_maps.iter().map(|map| map.param as usize + 1).max();
    params.resize(cells.len().max(behind.unwrap_or(0)), sim::Param::Int(0));
    for map in &kernel.code.artifact.metadata.tensor_maps {
        let numbers: Numbers = map.numbers(cells).collect();
        check(kernel, map, &numbers).map_err(errors::from_runtime)?;
        let fields = map.tensor(&numbers);
        if fields.is_empty() {
            params[map.param as usize] = sim::Param::Bytes(vec![0; size_of::<TensorMapBytes>()]);
            continue;
        }
        let element = sim::Element::from_number(map.element)
            .ok_or_else(|| errors::KernelError::new_err("the simulator does not know this element type"))?;
        let bytes = sim::TensorMap {
            address: fields.address,
            element,
            dims: fields.dims,
            strides: fields.strides,
            element_strides: vec![1; fields.box_dims.len()],
            box_dims: fields.box_dims,
            swizzle: match map.swizzle_bytes {
                32 => sim::Swizzle::B32,
                64 => sim::Swizzle::B64,
                128 => sim::Swizzle::B128,
                _ => sim::Swizzle::None,
            },
            nan_fill: map.nan,
        }
        .encode()
        .map_err(|error| errors::KernelError::new_err(error.to_string()))?;
        params[map.param as usize] = sim::Param::Bytes(bytes);
    }
    Ok(params)
}

/// Bytes of scratch memory that the whole grid needs.
pub fn scratch_bytes(kernel: &CompiledKernel, grid: Grid) -> usize {
    let metadata = &kernel.code.artifact.metadata;
    let ctas: usize = grid.iter().chain(&metadata.launch.cluster_dims).map(|&n| n as usize).product();
    ctas * metadata.global_scratch as usize
}

/// Memory on a GPU that a launch may write to, for as long as this lives (and, in the order of its stream, after).
pub struct Scratch {
    /// Its address, a multiple of 128.
    pub address: u64,
    /// What keeps it: torch's allocator gives memory back in the order of the stream.
    _owner: Option<Py<PyAny>>,
}

/// Alignment of tensor maps.
const ALIGNMENT: usize = 128;

/// Buffers for programs without torch, one a device and stream: launches of one stream run one after the other.
static BUFFERS: Mutex<Vec<((u32, usize), DeviceBuffer)>> = Mutex::new(Vec::new());

/// Memory for a launch's scratch: from the program's allocator (`set_allocator`), torch's, or the driver.
#[cold]
pub fn scratch(py: Python<'_>, bytes: usize, device: u32, stream: Stream) -> PyResult<Scratch> {
    let allocator = py
        .import(intern!(py, "tilewright.runtime.allocation"))?
        .getattr(intern!(py, "_allocator"))?
        .call_method0(intern!(py, "get"))?;
    if !allocator.is_none() {
        let memory = allocator.call1((bytes, ALIGNMENT, stream.0 as usize))?;
        let address = memory.call_method0(intern!(py, "data_ptr"))?.extract()?;
        return Ok(Scratch { address, _owner: Some(memory.unbind()) });
    }
    if Torch::cuda_in_use(py)
        && let Some(torch) = torch::imported(py, "torch")
    {
        let options = pyo3::types::PyDict::new(py);
        options.set_item("dtype", torch.getattr("int8")?)?;
        options.set_item("device", format!("cuda:{device}"))?;
        let memory = torch.call_method("empty", (bytes,), Some(&options))?;
        let address = memory.call_method0(intern!(py, "data_ptr"))?.extract()?;
        return Ok(Scratch { address, _owner: Some(memory.unbind()) });
    }
    let mut buffers = BUFFERS.lock().unwrap_or_else(|e| e.into_inner());
    let key = (device, stream.0 as usize);
    let at = buffers.iter().position(|(known, _)| *known == key);
    if let Some(at) = at
        && buffers[at].1.len() >= bytes
    {
        return Ok(Scratch { address: buffers[at].1.pointer(), _owner: None });
    }
    let on = Device::get(device).map_err(errors::from_runtime)?;
    // Freeing waits for the GPU, so kernels that still use the old one are safe.
    let buffer = DeviceBuffer::new(on, bytes.next_power_of_two()).map_err(errors::from_runtime)?;
    let address = buffer.pointer();
    match at {
        Some(at) => buffers[at].1 = buffer,
        None => buffers.push((key, buffer)),
    }
    Ok(Scratch { address, _owner: None })
}
