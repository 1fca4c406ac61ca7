//! `TensorDescriptor` objects as arguments: a tensor in memory with the block in which a kernel accesses it.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use smallvec::SmallVec;

use crate::args::{self, Pointer};
use crate::key::{self, Key};
use crate::wrong_call;

/// At most this many dimensions (PTX ISA, "Tensors").
const MAX_RANK: usize = 5;

/// What a `TensorDescriptor` holds, read and checked.
#[derive(Debug, Clone)]
pub struct Descriptor {
    pub pointer: Pointer,
    /// Extents of the tensor.
    pub shape: SmallVec<[i64; MAX_RANK]>,
    /// Strides in elements.
    pub strides: SmallVec<[i64; MAX_RANK]>,
    /// Extents of the block.
    pub block: SmallVec<[u32; MAX_RANK]>,
    /// What lies outside reads as NaN instead of zero.
    pub nan: bool,
}

/// Whether the object is a `TensorDescriptor`: ours, or another library's with the same attributes.
pub fn is_descriptor(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    static TYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let ours = TYPE.import(value.py(), "tilewright.tools.tensor_descriptor", "TensorDescriptor")?;
    let ty = value.get_type();
    Ok(ty.is(ours)
        || ty.name()? == "TensorDescriptor" && value.hasattr(intern!(value.py(), "block_shape"))?)
}

impl Descriptor {
    /// Reads and checks the attributes for a launch; programs may have changed them since the object was made.
    pub fn read(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Descriptor> {
        let descriptor = Descriptor::parse(value, name)?;
        descriptor.check_tensor(name)?;
        descriptor.check_block(name)?;
        Ok(descriptor)
    }

    fn parse(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Descriptor> {
        let py = value.py();
        let base = value.getattr(intern!(py, "base"))?;
        let Some(pointer) = args::array(&base)? else {
            return Err(wrong_call::type_error(
                format!("the base of {name} has type {}, which is no array", args::type_name(&base)),
                "a tensor descriptor describes a NumPy array or a torch tensor",
            ));
        };
        let mut shape = SmallVec::new();
        let mut strides = SmallVec::new();
        let mut block = SmallVec::new();
        for item in value.getattr(intern!(py, "shape"))?.try_iter()? {
            shape.push(item?.extract()?);
        }
        for item in value.getattr(intern!(py, "strides"))?.try_iter()? {
            strides.push(item?.extract()?);
        }
        for item in value.getattr(intern!(py, "block_shape"))?.try_iter()? {
            block.push(args::unwrapped(&item?)?.extract()?);
        }
        let padding = value.getattr_opt(intern!(py, "padding"))?;
        let nan = match padding {
            None => false,
            Some(text) => match text.extract::<String>()?.as_str() {
                "zero" => false,
                "nan" => true,
                other => {
                    return Err(wrong_call::value_error(
                        format!("the padding of {name} is {other:?}"),
                        "it may be \"zero\" or \"nan\"",
                    ));
                }
            },
        };
        Ok(Descriptor { pointer, shape, strides, block, nan })
    }

    /// Checks all but the extents of the block.
    fn check_tensor(&self, name: &str) -> PyResult<()> {
        let rank = self.shape.len();
        let fail = |message: String, hint: &str| Err(wrong_call::value_error(message, hint));
        if !(1..=MAX_RANK).contains(&rank) || self.strides.len() != rank || self.block.len() != rank {
            return fail(
                format!(
                    "{name} has {rank} extents, {} strides and {} block extents",
                    self.strides.len(),
                    self.block.len()
                ),
                "a tensor descriptor has 1 to 5 dimensions, and as many of each",
            );
        }
        let bytes = i64::from(self.pointer.element.bits().div_ceil(8));
        if !self.pointer.address.is_multiple_of(16) {
            return fail(
                format!("the base of {name} is at {:#x}", self.pointer.address),
                "a tensor descriptor's memory must be aligned to 16 bytes",
            );
        }
        if let Some(extent) = self.shape.iter().find(|&&n| n <= 0 || n > i64::from(i32::MAX)) {
            return fail(
                format!("{name} has an extent of {extent}"),
                "the extents of a tensor descriptor are positive and fit in 32 bits",
            );
        }
        if self.strides[rank - 1] != 1 {
            return fail(
                format!("the last stride of {name} is {}", self.strides[rank - 1]),
                "the elements of a tensor descriptor's last dimension must lie side by side; make a contiguous copy",
            );
        }
        let in_bytes = |stride: i64| stride.saturating_mul(bytes);
        let bad = |&&s: &&i64| in_bytes(s) % 16 != 0 || !(0..1 << 40).contains(&in_bytes(s));
        if let Some(&stride) = self.strides[..rank - 1].iter().find(bad) {
            return fail(
                format!("{name} has a stride of {stride} elements, {} bytes", in_bytes(stride)),
                "every stride of a tensor descriptor but the last must be a multiple of 16 bytes, from 0 to below 2^40",
            );
        }
        if self.nan && !self.pointer.element.is_float() {
            return fail(
                format!("{name} is padded with NaN, but its elements are {}", self.pointer.element.name()),
                "the padding \"nan\" needs floats",
            );
        }
        Ok(())
    }

    fn check_block(&self, name: &str) -> PyResult<()> {
        let bytes = self.pointer.element.bits().div_ceil(8);
        let last = self.block.last().copied().unwrap_or_default();
        if self.block.contains(&0) || u64::from(last) * u64::from(bytes) < 16 {
            return Err(wrong_call::value_error(
                format!("the block of {name} is {:?}, of elements of {bytes} bytes", &self.block[..]),
                "the last dimension of a tensor descriptor's block must have at least 16 bytes",
            ));
        }
        Ok(())
    }

    /// Elements of 16 bytes.
    pub fn piece(&self) -> u32 {
        128 / self.pointer.element.bits().max(8)
    }

    /// Whether rows end at multiples of 16 bytes, which lets masked accesses be wide and TMA store.
    pub fn divisible(&self) -> bool {
        self.shape.last().is_some_and(|n| n % i64::from(self.piece()) == 0)
    }

    /// The words that the compiled kernel depends on.
    pub fn encode(&self, key: &mut Key) {
        key.push(key::descriptor(self.pointer.element, self.block.len(), self.nan, self.divisible()));
        key.extend(self.block.iter().map(|&n| u64::from(n)));
    }

    /// Calls `f` with each run-time value: address, extents, strides.
    #[inline]
    pub fn for_each_runtime(&self, f: &mut impl FnMut(u64, Option<&Pointer>)) {
        f(self.pointer.address, Some(&self.pointer));
        for &n in self.shape.iter().chain(&self.strides) {
            f(n as u64, None);
        }
    }
}

/// Checks a `TensorDescriptor` when it is made. The extents of its block may be set later, by the hook of a configuration, and a
/// tensor without memory (while torch traces) has no address yet: those are checked when a kernel is launched with it.
#[pyfunction]
pub fn check_tensor_descriptor(value: &Bound<'_, PyAny>) -> PyResult<()> {
    let base = value.getattr(intern!(value.py(), "base"))?;
    if matches!(&*base.get_type().name()?.to_string_lossy(), "FakeTensor" | "FunctionalTensor") {
        return Ok(());
    }
    let name = "the tensor descriptor";
    Descriptor::parse(value, name)?.check_tensor(name)
}
