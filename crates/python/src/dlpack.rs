//! DLPack: arrays described in C structures (dlpack.h). An object of any library gives one in a capsule; torch from 2.10 on
//! also by a function of C (`__dlpack_c_exchange_api__`), which tells a launch in one call what takes three through Python.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;

use tilewright_frontend::Scalar;

/// `DLTensor` of dlpack.h, the same in its versions 0 and 1.
#[repr(C)]
pub struct DlTensor {
    pub data: *mut c_void,
    pub device_type: i32,
    pub device_id: i32,
    pub ndim: i32,
    pub type_code: u8,
    pub type_bits: u8,
    pub type_lanes: u16,
    pub shape: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}

/// `DLDeviceType`: memory of the host.
pub const CPU: i32 = 1;
/// Memory of a GPU.
pub const CUDA: i32 = 2;
/// Memory of the host that GPUs reach.
pub const CUDA_HOST: i32 = 3;
/// Memory that moves between the host and GPUs.
pub const CUDA_MANAGED: i32 = 13;

impl DlTensor {
    /// The address of the first element.
    #[inline]
    pub fn address(&self) -> u64 {
        (self.data as u64).wrapping_add(self.byte_offset)
    }

    /// The type of an element; `None` for what kernels do not take.
    #[inline]
    pub fn scalar(&self) -> Option<Scalar> {
        if self.type_lanes != 1 {
            return None;
        }
        Some(match (self.type_code, self.type_bits) {
            (0, bits) => Scalar::signed(bits.into()).filter(|s| *s != Scalar::Int1)?,
            (1, bits) => Scalar::unsigned(bits.into())?,
            (2, 16) => Scalar::Fp16,
            (2, 32) => Scalar::Fp32,
            (2, 64) => Scalar::Fp64,
            (4, 16) => Scalar::Bf16,
            (6, 8) => Scalar::Int1,
            (10, 8) => Scalar::Fp8E4Nv,
            (11, 8) => Scalar::Fp8E4B8,
            (12, 8) => Scalar::Fp8E5,
            (13, 8) => Scalar::Fp8E5B16,
            _ => return None,
        })
    }
}

/// `DLPackExchangeAPI` of dlpack.h 1.3: functions of C that a library offers for arrays of one of its classes.
#[repr(C)]
struct Table {
    major: u32,
    minor: u32,
    previous: *const Table,
    allocate: *const c_void,
    to_owned: *const c_void,
    from_owned: *const c_void,
    describe: Option<unsafe extern "C" fn(object: *mut c_void, out: *mut DlTensor) -> c_int>,
    stream: Option<unsafe extern "C" fn(device_type: i32, device_id: i32, out: *mut *mut c_void) -> c_int>,
}

/// The exchange functions of a class of arrays.
pub struct Exchange {
    table: &'static Table,
}

// SAFETY: the library made the table once and for the process; it is only read.
unsafe impl Send for Exchange {}
// SAFETY: as above.
unsafe impl Sync for Exchange {}

impl Exchange {
    /// What a class offers; `None` where it offers nothing, or nothing of the version that is known here.
    pub fn of(class: &Bound<'_, PyAny>) -> Option<Exchange> {
        let capsule = class.cast::<PyType>().ok()?.getattr_opt("__dlpack_c_exchange_api__").ok()??;
        // SAFETY: the object is alive; the call checks that it is a capsule of this name.
        let table = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), c"dlpack_exchange_api".as_ptr()) };
        if table.is_null() {
            PyErr::fetch(class.py());
            return None;
        }
        // SAFETY: a capsule of this name holds such a table, which stays for the process; a table of another major version
        // starts with the same two fields, which alone are looked at then.
        let table = unsafe { &*table.cast::<Table>() };
        (table.major == 1).then_some(Exchange { table })
    }

    /// Describes an object of the class. `None` when it has no memory that could be described.
    ///
    /// # Safety
    ///
    /// The object's class must be the one that the functions were found at (or a class derived from it in Python), and the
    /// description lives no longer than the object.
    #[inline]
    pub unsafe fn describe(&self, object: &Bound<'_, PyAny>) -> Option<DlTensor> {
        let describe = self.table.describe?;
        // Who says that it is filled and leaves it describes what is on no device.
        let mut tensor = MaybeUninit::zeroed();
        // SAFETY: the object is alive and of the class, and there is room for the description.
        match unsafe { describe(object.as_ptr().cast(), tensor.as_mut_ptr()) } {
            // SAFETY: filled on success.
            0 => Some(unsafe { tensor.assume_init() }),
            _ => {
                PyErr::take(object.py());
                None
            }
        }
    }

    /// The library's current stream on a GPU.
    #[inline]
    pub fn stream(&self, py: Python<'_>, device: u32) -> Option<*mut c_void> {
        let stream = self.table.stream?;
        let mut found = std::ptr::null_mut();
        // SAFETY: writes one pointer.
        match unsafe { stream(CUDA, device as i32, &mut found) } {
            0 => Some(found),
            _ => {
                PyErr::take(py);
                None
            }
        }
    }
}
