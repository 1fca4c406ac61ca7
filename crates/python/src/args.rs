//! What an argument of a call is to the kernel: its type there, what is compiled in, its bits and where its memory is.
//!
//! The rules are Triton 3.6's: Python integers are i32, i64 or u64 by their size, floats fp32, bools i1; the number 1 is
//! a constant, multiples of 16, and larger ones of 8, are known as such (`do_not_specialize` and annotations turn that off); `None` is a constant;
//! an array is a pointer to its elements, known to be aligned when its address is a multiple of 16.

use std::cell::RefCell;

use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple, PyType};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use tilewright_frontend::Scalar;
use tilewright_ir::{FloatKind, float};

use crate::descriptor::{self, Descriptor};
use crate::dlpack;
use crate::errors::Optional;
use crate::key::{self, Constants, Key};
use crate::nesting::Level;
use crate::params::{Annotation, Given, Param};
use crate::torch::Torch;
use crate::wrong_call;

/// Where an array's memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Memory of this process.
    Host,
    /// A GPU, by ordinal.
    Cuda(u32),
    /// Nowhere: a stand-in that has a dtype alone, for [`warmup`](crate::launch).
    Nowhere,
}

/// An array as a kernel sees it.
#[derive(Debug, Clone, Copy)]
pub struct Pointer {
    pub element: Scalar,
    pub address: u64,
    pub place: Place,
}

/// Where an argument is: a parameter's number, and within a tuple the numbers of its elements.
pub type Path = SmallVec<[usize; 2]>;

/// How an argument enters the kernel.
#[derive(Debug, Clone)]
pub enum Spec {
    /// A compile-time constant, by value.
    Constant,
    /// The integer 1, compiled in.
    One,
    /// A number given at run time; `bits` are its own in the low end, and it is a multiple of `divisor` (1, 8 or 16).
    Scalar { ty: Scalar, divisor: u32, bits: u64 },
    /// An array.
    Pointer { pointer: Pointer, constant: bool, divisible: bool },
    /// A tensor descriptor: an address, extents and strides at run time.
    Descriptor(Box<Descriptor>),
    /// A tuple of arguments.
    Tuple(Vec<Spec>),
}

impl Spec {
    /// Looks at an argument.
    #[inline]
    pub fn of(value: &Bound<'_, PyAny>, param: &Param) -> PyResult<Spec> {
        if param.constexpr {
            return Ok(Spec::Constant);
        }
        // SAFETY: the object is alive; the macro only reads its type.
        let ty = unsafe { ffi::Py_TYPE(value.as_ptr()) };
        if std::ptr::eq(ty, &raw const ffi::PyLong_Type) {
            return integer(value, param);
        }
        if let Some(torch) = Torch::get(value.py())
            && (std::ptr::eq(ty, torch.tensor.as_ptr().cast())
                || std::ptr::eq(ty, torch.parameter.as_ptr().cast()))
        {
            let found = match plain_tensor(torch, value) {
                Some(found) => found,
                None => tensor(torch, value)?,
            };
            return Ok(pointer(found, param));
        }
        other(value, param)
    }

    /// Appends the words that the compiled kernel depends on.
    #[inline]
    pub fn encode(&self, value: &Bound<'_, PyAny>, constants: &Constants, key: &mut Key) -> PyResult<()> {
        match self {
            Spec::Constant => constants.encode(&unwrapped(value)?, key)?,
            Spec::One => key.push(key::one()),
            Spec::Scalar { ty, divisor, .. } => key.push(key::scalar(*ty, *divisor)),
            Spec::Pointer { pointer, constant, divisible } => {
                key.push(key::pointer(pointer.element, *constant, *divisible));
            }
            Spec::Descriptor(descriptor) => descriptor.encode(key),
            Spec::Tuple(specs) => {
                key.push(key::tuple(specs.len()));
                // A named tuple's class gives its fields their names in the kernel.
                if value.cast_exact::<PyTuple>().is_err() {
                    constants.encode(value.get_type().as_any(), key)?;
                }
                for (spec, item) in specs.iter().zip(value.cast::<PyTuple>()?.iter()) {
                    spec.encode(&item, constants, key)?;
                }
            }
        }
        Ok(())
    }

    /// Whether its value is compiled in.
    pub fn is_constant(&self) -> bool {
        matches!(self, Spec::Constant | Spec::One)
    }

    /// Adds the constants that it holds, with where they are.
    fn constants<'py>(
        &self,
        value: &Bound<'py, PyAny>,
        path: Path,
        found: &mut Vec<(Path, Bound<'py, PyAny>)>,
    ) -> PyResult<()> {
        match self {
            Spec::Tuple(items) => items.iter().enumerate().try_for_each(|(at, item)| {
                let inner = path.iter().copied().chain([at]).collect();
                item.constants(&value.get_item(at)?, inner, found)
            }),
            _ if self.is_constant() => {
                found.push((path, unwrapped(value)?));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Its type as signatures spell it; a tuple of those for a tuple.
    pub fn signature<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = match self {
            Spec::Constant | Spec::One => "constexpr".to_string(),
            Spec::Scalar { ty: Scalar::Int1, .. } => "u1".to_string(),
            Spec::Scalar { ty, .. } => ty.signature_name().to_string(),
            Spec::Pointer { pointer, constant, .. } => {
                format!("*{}{}", if *constant { "k" } else { "" }, pointer.element.signature_name())
            }
            Spec::Descriptor(descriptor) => {
                let block: Vec<String> = descriptor.block.iter().map(u32::to_string).collect();
                format!("tensordesc<{}[{}]>", descriptor.pointer.element.signature_name(), block.join(", "))
            }
            Spec::Tuple(specs) => {
                let items = specs.iter().map(|spec| spec.signature(py)).collect::<PyResult<Vec<_>>>()?;
                return Ok(PyTuple::new(py, items)?.into_any());
            }
        };
        Ok(PyString::new(py, &text).into_any())
    }

    /// What it is known to be a multiple of; 1 where that is nothing.
    pub fn divisor(&self) -> u32 {
        match self {
            Spec::Scalar { divisor, .. } => *divisor,
            Spec::Pointer { divisible: true, .. } => 16,
            _ => 1,
        }
    }

    /// Calls `f` with each run-time value in the order of the kernel's parameters.
    #[inline]
    pub fn for_each_runtime(&self, f: &mut impl FnMut(u64, Option<&Pointer>)) {
        match self {
            Spec::Constant | Spec::One => {}
            Spec::Scalar { bits, .. } => f(*bits, None),
            Spec::Pointer { pointer, .. } => f(pointer.address, Some(pointer)),
            Spec::Descriptor(descriptor) => descriptor.for_each_runtime(f),
            Spec::Tuple(specs) => specs.iter().for_each(|s| s.for_each_runtime(f)),
        }
    }
}

/// An argument of a type and nothing else: what `triton.compile` compiles for.
#[pyclass(frozen, module = "tilewright._tilewright")]
pub struct StandIn {
    /// The type as signatures spell it, such as `*fp16` or `i64`.
    spec: Spec,
}

#[pymethods]
impl StandIn {
    #[new]
    #[pyo3(signature = (ty, divisor = 1))]
    fn new(ty: &str, divisor: u32) -> PyResult<StandIn> {
        let unknown = || {
            wrong_call::value_error(
                format!("a signature has the type {ty:?}"),
                "types are spelled as in i32, u8, fp16, *fp32, *ki64",
            )
        };
        let spec = match ty.strip_prefix('*') {
            Some(element) => {
                let bare = element.strip_prefix('k').unwrap_or(element);
                let element_ty = Scalar::parse(bare).ok_or_else(unknown)?;
                let pointer = Pointer { element: element_ty, address: 0, place: Place::Nowhere };
                Spec::Pointer { pointer, constant: bare != element, divisible: divisor.is_multiple_of(16) }
            }
            None => {
                let ty = Scalar::parse(ty).filter(|ty| *ty != Scalar::Void).ok_or_else(unknown)?;
                let divisor = [16, 8].into_iter().find(|d| divisor.is_multiple_of(*d)).unwrap_or(1);
                Spec::Scalar { ty, divisor, bits: 0 }
            }
        };
        Ok(StandIn { spec })
    }
}

/// The value inside a `tl.constexpr`, or the value itself.
pub fn unwrapped<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if is_constexpr(value)? { value.getattr(intern!(value.py(), "value")) } else { Ok(value.clone()) }
}

/// Whether the object is a `tl.constexpr`.
pub fn is_constexpr(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(value.get_type().is(constexpr_type(value.py())?))
}

fn constexpr_type(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static TYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    TYPE.import(py, "tilewright.language.core", "constexpr")
}

/// What a kernel is told that a number is a multiple of. Rows of 1000 or 5000 elements are whole 16-byte words of 16-bit
/// types, so that 8 is worth a kernel of its own; for small numbers it is not.
#[inline]
fn divisor(bits: u64) -> u32 {
    match bits {
        _ if bits.is_multiple_of(16) => 16,
        _ if bits.is_multiple_of(8) && bits > 64 => 8,
        _ => 1,
    }
}

#[inline]
fn integer(value: &Bound<'_, PyAny>, param: &Param) -> PyResult<Spec> {
    let mut overflow = 0;
    // SAFETY: the object is an int, alive; overflow is reported through the flag.
    let int = unsafe { ffi::PyLong_AsLongLongAndOverflow(value.as_ptr(), &mut overflow) };
    let natural = if overflow == 0 {
        if let Ok(_small) = i32::try_from(int) { Scalar::Int32 } else { Scalar::Int64 }
    } else {
        Scalar::UInt64
    };
    let bits = if overflow == 0 {
        int as u64
    } else {
        value.extract::<u64>().map_err(|_| {
            wrong_call::overflow_error(
                format!("argument '{}' is {value}", param.text),
                "integers are passed as signed or unsigned 64-bit numbers at most",
            )
        })?
    };
    let divisor = if param.align { divisor(bits) } else { 1 };
    match param.annotation {
        None if param.specialize && bits == 1 => Ok(Spec::One),
        None => Ok(Spec::Scalar { ty: natural, divisor, bits }),
        Some(Annotation::Scalar(ty)) if ty.is_float() => Ok(Spec::Scalar {
            ty,
            divisor: 1,
            bits: float_bits(if overflow == 0 { int as f64 } else { bits as f64 }, ty, param)?,
        }),
        Some(Annotation::Scalar(Scalar::Int1)) => {
            Ok(Spec::Scalar { ty: Scalar::Int1, divisor: 1, bits: u64::from(bits != 0) })
        }
        Some(Annotation::Scalar(ty)) => {
            let (least, most) = ty.int_range();
            let wide = if overflow == 0 { i128::from(int) } else { i128::from(bits) };
            if wide < least || wide > most {
                return Err(wrong_call::overflow_error(
                    format!("argument '{}' is {value}, which does not fit its annotation", param.text),
                    format!("{} holds {least} to {most}", ty.name()),
                ));
            }
            Ok(Spec::Scalar { ty, divisor, bits })
        }
        // An address as a plain number (`data_ptr()` of something that we don't know).
        Some(Annotation::Pointer(element)) => {
            let pointer = Pointer { element, address: bits, place: Place::Nowhere };
            Ok(Spec::Pointer { pointer, constant: param.constant, divisible: divisor == 16 })
        }
    }
}

fn float(value: f64, param: &Param) -> PyResult<Spec> {
    let ty = match param.annotation {
        None => Scalar::Fp32,
        Some(Annotation::Scalar(ty)) if ty.is_float() => ty,
        Some(_) => {
            return Err(wrong_call::type_error(
                format!("argument '{}' is the float {value}, but its annotation is no float", param.text),
                "pass a value of the annotated type, or change the annotation",
            ));
        }
    };
    Ok(Spec::Scalar { ty, divisor: 1, bits: float_bits(value, ty, param)? })
}

/// The bits of a float in its type.
pub fn float_bits(value: f64, ty: Scalar, param: &Param) -> PyResult<u64> {
    Ok(match ty {
        Scalar::Fp64 => value.to_bits(),
        Scalar::Fp32 => u64::from((value as f32).to_bits()),
        Scalar::Fp16 => float::to_bits(value, FloatKind::F16),
        Scalar::Bf16 => float::to_bits(value, FloatKind::BF16),
        other => {
            return Err(wrong_call::type_error(
                format!("argument '{}': a number cannot be passed as {}", param.text, other.name()),
                "annotate it fp16, bf16, fp32 or fp64",
            ));
        }
    })
}

#[inline]
fn pointer(pointer: Pointer, param: &Param) -> Spec {
    Spec::Pointer {
        constant: param.constant,
        divisible: param.align && pointer.address.is_multiple_of(16),
        pointer,
    }
}

/// A torch tensor of no class derived from torch's, by the one call of torch that tells all of it. `None` where torch is too old
/// for that, or where asking further gives the reason why the tensor cannot be passed.
#[inline]
fn plain_tensor(torch: &Torch, value: &Bound<'_, PyAny>) -> Option<Pointer> {
    // SAFETY: it is a tensor of torch; nothing of the description is kept but the address, which the value outlives.
    let tensor = unsafe { torch.exchange.as_ref()?.describe(value)? };
    let place = match tensor.device_type {
        dlpack::CUDA => Place::Cuda(tensor.device_id as u32),
        dlpack::CPU | dlpack::CUDA_HOST => Place::Host,
        _ => return None,
    };
    Some(Pointer { element: tensor.scalar()?, address: tensor.address(), place })
}

/// A torch tensor.
fn tensor(torch: &Torch, value: &Bound<'_, PyAny>) -> PyResult<Pointer> {
    let element = dtype(&value.getattr(intern!(value.py(), "dtype"))?)?;
    let device = torch.get_device(value)?;
    let place = if device >= 0 { Place::Cuda(device as u32) } else { Place::Host };
    Ok(Pointer { element, address: torch.data_ptr(value)?, place })
}

/// Everything but plain integers and plain tensors.
fn other(value: &Bound<'_, PyAny>, param: &Param) -> PyResult<Spec> {
    let py = value.py();
    if value.is_none() || is_constexpr(value)? {
        return Ok(Spec::Constant);
    }
    if let Ok(stand_in) = value.cast_exact::<StandIn>() {
        return Ok(stand_in.get().spec.clone());
    }
    if let Ok(value) = value.cast_exact::<PyBool>() {
        let bits = u64::from(value.is_true());
        return Ok(match param.annotation {
            Some(Annotation::Scalar(ty)) if ty.is_float() => {
                Spec::Scalar { ty, divisor: 1, bits: float_bits(bits as f64, ty, param)? }
            }
            Some(Annotation::Scalar(ty)) => Spec::Scalar { ty, divisor: 1, bits },
            _ => Spec::Scalar { ty: Scalar::Int1, divisor: 1, bits },
        });
    }
    if let Ok(value) = value.cast::<PyFloat>() {
        return float(value.value(), param);
    }
    if value.cast::<PyInt>().is_ok() {
        return integer(value, param);
    }
    if let Ok(items) = value.cast::<PyTuple>() {
        let _level = Level::enter(py, c" in an argument of a kernel")?;
        let specs = items.iter().map(|item| Spec::of(&item, param)).collect::<PyResult<Vec<_>>>()?;
        return Ok(Spec::Tuple(specs));
    }
    if descriptor::is_descriptor(value)? {
        let name = format!("argument '{}'", param.text);
        return Ok(Spec::Descriptor(Box::new(Descriptor::read(value, &name)?)));
    }
    // Functions are constants, as `None` is.
    if value.cast::<crate::jit::JitBase>().is_ok() {
        return Ok(Spec::Constant);
    }
    if is_numpy_scalar(value)? {
        // It has an address too, but is a number.
        let item = value.call_method0(intern!(py, "item"))?;
        return if is_numpy_scalar(&item)? { float(value.extract()?, param) } else { Spec::of(&item, param) };
    }
    if let Some(found) = array(value)? {
        return Ok(pointer(found, param));
    }
    if let Some(index) = value.call_method0(intern!(py, "__index__")).optional(py)? {
        return integer(&index, param);
    }
    Err(wrong_call::type_error(
        format!("argument '{}' has type {}, which a kernel cannot take", param.text, type_name(value)),
        "a kernel takes numbers, bools, None, tuples of these, NumPy arrays, torch tensors, tensor descriptors, and objects with data_ptr() \
         and dtype, with __cuda_array_interface__ or with __dlpack__; anything else can be a compile-time constant \
         (annotate the parameter tl.constexpr)",
    ))
}

/// Whether the object is one of NumPy's numbers (`np.int64(3)`, an element of an array).
pub fn is_numpy_scalar(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Some(numpy) = crate::torch::imported(value.py(), "numpy") else { return Ok(false) };
    match numpy.getattr_opt(intern!(value.py(), "generic"))? {
        Some(generic) => value.is_instance(&generic),
        None => Ok(false), // while NumPy is being imported
    }
}

/// The qualified name of an object's type.
pub fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().fully_qualified_name().map_or_else(|_| "?".to_string(), |n| n.to_string())
}

/// An object that is an array of some library, or a stand-in for one; `None` for anything else.
pub fn array(value: &Bound<'_, PyAny>) -> PyResult<Option<Pointer>> {
    let py = value.py();
    // A class has the attributes of its instances, but no memory.
    if value.cast::<PyType>().is_ok() {
        return Ok(stand_in(value));
    }
    if let Some(torch) = Torch::get(py)
        && value.is_instance(torch.tensor.bind(py))?
    {
        return tensor(torch, value).map(Some);
    }
    if let Some(interface) = attribute(value, intern!(py, "__array_interface__"))?
        && let Some(element) = attribute(value, intern!(py, "dtype"))?
    {
        let address = interface_address(&interface)?;
        return Ok(Some(Pointer { element: dtype(&element)?, address, place: Place::Host }));
    }
    if let Some(element) = attribute(value, intern!(py, "dtype"))?
        && let Some(address) = attribute(value, intern!(py, "data_ptr"))?
    {
        let address: u64 = address.call0()?.extract()?;
        return Ok(Some(Pointer { element: dtype(&element)?, address, place: duck_place(value, address)? }));
    }
    if let Some(interface) = attribute(value, intern!(py, "__cuda_array_interface__"))? {
        let typestr: String = interface.get_item("typestr")?.extract()?;
        let element = typestr_scalar(&typestr).ok_or_else(|| unknown_dtype(&typestr))?;
        let device = match attribute(value, intern!(py, "device"))? {
            // CuPy's devices have an id; others give the number itself.
            Some(device) => device.getattr("id").unwrap_or(device).extract().unwrap_or(0),
            None => 0,
        };
        return Ok(Some(Pointer {
            element,
            address: interface_address(&interface)?,
            place: Place::Cuda(device),
        }));
    }
    if value.hasattr(intern!(py, "__dlpack__"))? {
        return crate::memory::of_dlpack(value).map(Some);
    }
    Ok(stand_in(value))
}

/// The type of an argument as signatures spell it; `constexpr` for what is compiled in.
#[pyfunction]
pub fn signature_of<'py>(
    value: &Bound<'py, PyAny>,
    is_const: bool,
    specialize: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let py = value.py();
    let param = Param {
        name: PyString::intern(py, "argument").unbind(),
        text: "argument".to_string(),
        default: None,
        constexpr: false,
        specialize,
        align: specialize,
        constant: is_const,
        annotation: None,
        option: false,
    };
    Spec::of(value, &param)?.signature(py)
}

/// A dtype given in place of an array (`kernel.warmup(torch.float32, …)`).
fn stand_in(value: &Bound<'_, PyAny>) -> Option<Pointer> {
    let name = type_name(value);
    let is_dtype = name == "torch.dtype"
        || name.starts_with("numpy.dtype")
        || name.starts_with("tilewright.language.core.")
        || value
            .cast::<PyType>()
            .is_ok_and(|ty| ty.getattr("__module__").is_ok_and(|m| m.to_string() == "numpy"));
    if !is_dtype {
        return None;
    }
    dtype(value).ok().map(|element| Pointer { element, address: 0, place: Place::Nowhere })
}

/// Where the memory of an object with `data_ptr()` is: as its `device` says, or as the driver knows the address.
fn duck_place(value: &Bound<'_, PyAny>, address: u64) -> PyResult<Place> {
    if address == 0 {
        return Ok(Place::Nowhere);
    }
    let Some(device) = attribute(value, intern!(value.py(), "device"))? else {
        return Ok(tilewright_runtime::device_of(address).map_or(Place::Host, Place::Cuda));
    };
    let text = device.str()?.to_string();
    Ok(match text.strip_prefix("cuda") {
        Some(rest) => Place::Cuda(rest.trim_start_matches(':').parse().unwrap_or(0)),
        None => Place::Host,
    })
}

/// `object.name`, or `None` where there is no such attribute.
fn attribute<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    object.getattr_opt(name)
}

/// `interface["data"][0]` of `__array_interface__` and `__cuda_array_interface__`.
pub fn interface_address(interface: &Bound<'_, PyAny>) -> PyResult<u64> {
    let data = interface.get_item(intern!(interface.py(), "data"))?;
    data.get_item(0)?.extract()
}

thread_local! {
    /// dtype objects met so far, by address. They are kept alive, so an address stays one dtype.
    static DTYPES: RefCell<FxHashMap<usize, (Scalar, Py<PyAny>)>> = RefCell::default();
}

/// The scalar type that a dtype object of torch, NumPy, ml_dtypes or the language names.
#[inline]
pub fn dtype(object: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    let address = object.as_ptr() as usize;
    if let Some(scalar) = DTYPES.with_borrow(|known| known.get(&address).map(|(s, _)| *s)) {
        return Ok(scalar);
    }
    let scalar = dtype_slow(object)?;
    DTYPES.with_borrow_mut(|known| known.insert(address, (scalar, object.clone().unbind())));
    Ok(scalar)
}

#[cold]
fn dtype_slow(object: &Bound<'_, PyAny>) -> PyResult<Scalar> {
    let py = object.py();
    // NumPy's: a class (`np.float32`) or an instance with a byte order.
    if let Ok(class) = object.cast::<PyType>() {
        let name: String = class.name()?.to_string();
        return named_scalar(&name).ok_or_else(|| unknown_dtype(&name));
    }
    if object.getattr_opt(intern!(py, "isnative"))?.is_some_and(|n| !n.is_truthy().unwrap_or(true)) {
        return Err(wrong_call::type_error(
            format!("an array of dtype {object} has the other byte order than this machine"),
            "convert it first: a.astype(a.dtype.newbyteorder('='))",
        ));
    }
    let name = match object.getattr_opt(intern!(py, "name"))? {
        Some(name) => name.str()?.to_string(),
        None => object.str()?.to_string(), // torch's: `torch.float32`
    };
    let name = name.rsplit('.').next().unwrap_or_default();
    named_scalar(name).ok_or_else(|| unknown_dtype(name))
}

/// A scalar type by the name that torch, NumPy or ml_dtypes give it.
fn named_scalar(name: &str) -> Option<Scalar> {
    Some(match name {
        "bool" | "bool_" => Scalar::Int1,
        "half" => Scalar::Fp16,
        "float" | "single" => Scalar::Fp32,
        "double" => Scalar::Fp64,
        "float8_e5m2" => Scalar::Fp8E5,
        "float8_e4m3fn" => Scalar::Fp8E4Nv,
        "float8_e5m2fnuz" => Scalar::Fp8E5B16,
        "float8_e4m3fnuz" => Scalar::Fp8E4B8,
        "float8_e4m3b11fnuz" => return None,
        other => return Scalar::parse(other).filter(|s| *s != Scalar::Void),
    })
}

/// A scalar type by the `typestr` of an array interface (`<f4`).
fn typestr_scalar(typestr: &str) -> Option<Scalar> {
    Some(match typestr.trim_start_matches(['<', '|', '=']) {
        "f2" => Scalar::Fp16,
        "f4" => Scalar::Fp32,
        "f8" => Scalar::Fp64,
        "i1" => Scalar::Int8,
        "i2" => Scalar::Int16,
        "i4" => Scalar::Int32,
        "i8" => Scalar::Int64,
        "u1" => Scalar::UInt8,
        "u2" => Scalar::UInt16,
        "u4" => Scalar::UInt32,
        "u8" => Scalar::UInt64,
        "b1" => Scalar::Int1,
        _ => return None,
    })
}

fn unknown_dtype(name: &str) -> PyErr {
    wrong_call::type_error(
        format!("arrays of dtype {name} are not supported"),
        "supported are bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64, and the fp8 types of \
         torch and ml_dtypes (float8_e4m3fn, float8_e5m2, …)",
    )
}

/// The arguments of one call after they were looked at. It is filled where it stands: it is large to move.
#[derive(Default)]
pub struct Arguments {
    pub specs: SmallVec<[Spec; 24]>,
    /// Run-time values in the order of the kernel's parameters.
    pub cells: SmallVec<[u64; 24]>,
    /// The first argument in host memory and the first on a GPU, by parameter.
    pub host: Option<usize>,
    pub cuda: Option<(usize, u32)>,
    /// An argument that has no memory, by parameter.
    pub nowhere: Option<usize>,
}

impl Arguments {
    /// The values that are compiled in, by parameter.
    pub fn constants<'py>(&self, values: &[Given<'_, 'py>]) -> PyResult<Vec<(Path, Bound<'py, PyAny>)>> {
        let mut found = Vec::new();
        for (at, (spec, value)) in self.specs.iter().zip(values).enumerate() {
            spec.constants(value, SmallVec::from_slice(&[at]), &mut found)?;
        }
        Ok(found)
    }

    /// The same as a dict by paths, which are tuples.
    pub fn constants_dict<'py>(
        &self,
        py: Python<'py>,
        values: &[Given<'_, 'py>],
    ) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (path, value) in self.constants(values)? {
            dict.set_item(PyTuple::new(py, path)?, value)?;
        }
        Ok(dict)
    }

    /// Looks at all arguments of a call and appends their words.
    #[inline]
    pub fn read(
        &mut self,
        params: &[Param],
        values: &[Given<'_, '_>],
        constants: &Constants,
        key: &mut Key,
    ) -> PyResult<()> {
        for (at, (param, value)) in params.iter().zip(values).enumerate() {
            let spec = Spec::of(value, param)?;
            match &spec {
                // What most arguments are.
                Spec::Scalar { ty, divisor, bits } => {
                    key.push(key::scalar(*ty, *divisor));
                    self.cells.push(*bits);
                }
                Spec::Pointer { pointer, constant, divisible } => {
                    key.push(key::pointer(pointer.element, *constant, *divisible));
                    self.cells.push(pointer.address);
                    self.note(at, pointer.place);
                }
                _ => {
                    spec.encode(value, constants, key)?;
                    spec.for_each_runtime(&mut |bits, pointer| {
                        self.cells.push(bits);
                        if let Some(pointer) = pointer {
                            self.note(at, pointer.place);
                        }
                    });
                }
            }
            self.specs.push(spec);
        }
        Ok(())
    }

    /// Keeps where the first array of each place is.
    #[inline]
    fn note(&mut self, at: usize, place: Place) {
        match place {
            Place::Host => self.host = self.host.or(Some(at)),
            Place::Cuda(device) => self.cuda = self.cuda.or(Some((at, device))),
            Place::Nowhere => self.nowhere = self.nowhere.or(Some(at)),
        }
    }

    /// An error when some arrays are in host memory and others on a GPU.
    pub fn check_places(&self, params: &[Param]) -> PyResult<()> {
        if let (Some(host), Some((cuda, device))) = (self.host, self.cuda) {
            return Err(wrong_call::value_error(
                format!(
                    "argument '{}' is in host memory, but argument '{}' is on GPU {device}",
                    params[host].text, params[cuda].text
                ),
                "a kernel takes its arrays from one place: move the first to the GPU (x.to('cuda')), or both to the host",
            ));
        }
        Ok(())
    }
}
