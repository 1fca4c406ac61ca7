//! The table of driver functions, filled from `libcuda` at first use.
//!
//! Signatures follow the CUDA driver API reference (`cuda.h`); the `_v2` names are what the header's plain names expand to.
//! Only the calls that the crate makes are listed.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use libloading::Library;

use crate::error::{Error, Result, check};
use crate::tensor_map::TensorMapBytes;

/// `CUresult`; 0 is success.
pub(crate) type CuResult = c_int;
/// `CUdevice`: an ordinal.
pub(crate) type CuDevice = c_int;
/// `CUdeviceptr`: an address in device memory.
pub type DevicePtr = u64;

/// Declares an opaque driver handle.
macro_rules! handle {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(transparent)]
        pub struct $name(pub *mut c_void);
        // SAFETY: the driver's handles are plain values that any thread may pass to the driver; the driver locks inside.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}
    };
}

handle!(
    /// `CUcontext`.
    CuContext
);
handle!(
    /// `CUmodule`.
    CuModule
);
handle!(
    /// `CUfunction`.
    CuFunction
);
handle!(
    /// `CUevent`.
    CuEvent
);
handle!(
    /// `CUstream`: a queue of work on a device. The default value is the legacy default stream.
    Stream
);

impl Default for Stream {
    fn default() -> Self {
        Stream(std::ptr::null_mut())
    }
}

/// `CUlaunchAttribute`: an id and a 64-byte value, of which we fill the first words.
#[repr(C)]
pub(crate) struct CuLaunchAttribute {
    pub id: c_uint,
    pub pad: [u8; 4],
    pub value: [u32; 16],
}

impl CuLaunchAttribute {
    /// An attribute that is these words.
    pub fn new(id: c_uint, words: &[u32]) -> Self {
        let mut value = [0; 16];
        value[..words.len()].copy_from_slice(words);
        CuLaunchAttribute { id, pad: [0; 4], value }
    }

    /// That blocks form clusters of these dimensions.
    pub fn cluster(dims: [u32; 3]) -> Self {
        CuLaunchAttribute::new(4, &dims)
    }
}

/// What a driver that knows no clusters is told.
pub(crate) const NO_CLUSTERS: &str = "clusters and dependent launches need a driver for CUDA 11.8 or later";

/// `CUlaunchConfig`.
#[repr(C)]
pub(crate) struct CuLaunchConfig {
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared_bytes: c_uint,
    pub stream: Stream,
    pub attributes: *mut CuLaunchAttribute,
    pub attribute_count: c_uint,
}

macro_rules! driver_table {
    (
        required { $( $field:ident = $symbol:literal : fn($($arg:ty),* $(,)?) ; )* }
        optional { $( $ofield:ident = $osymbol:literal : fn($($oarg:ty),* $(,)?) ; )* }
    ) => {
        /// The driver's functions.
        pub(crate) struct Driver {
            $( pub $field: unsafe extern "C" fn($($arg),*) -> CuResult, )*
            $( pub $ofield: Option<unsafe extern "C" fn($($oarg),*) -> CuResult>, )*
        }

        impl Driver {
            fn load(library: &'static Library) -> std::result::Result<Self, libloading::Error> {
                // SAFETY: each type is the one that the CUDA driver API documents for the symbol, and the library is
                // never unloaded, so the pointers stay valid.
                unsafe {
                    Ok(Driver {
                        $( $field: *library.get::<unsafe extern "C" fn($($arg),*) -> CuResult>($symbol)?, )*
                        $( $ofield: library.get::<unsafe extern "C" fn($($oarg),*) -> CuResult>($osymbol).ok().map(|s| *s), )*
                    })
                }
            }
        }
    };
}

driver_table! {
    required {
    init = b"cuInit\0": fn(c_uint);
    driver_get_version = b"cuDriverGetVersion\0": fn(*mut c_int);
    get_error_name = b"cuGetErrorName\0": fn(CuResult, *mut *const c_char);
    get_error_string = b"cuGetErrorString\0": fn(CuResult, *mut *const c_char);
    device_get_count = b"cuDeviceGetCount\0": fn(*mut c_int);
    device_get = b"cuDeviceGet\0": fn(*mut CuDevice, c_int);
    device_get_name = b"cuDeviceGetName\0": fn(*mut c_char, c_int, CuDevice);
    device_get_attribute = b"cuDeviceGetAttribute\0": fn(*mut c_int, c_int, CuDevice);
    device_total_mem = b"cuDeviceTotalMem_v2\0": fn(*mut usize, CuDevice);
    primary_ctx_get_state = b"cuDevicePrimaryCtxGetState\0": fn(CuDevice, *mut c_uint, *mut c_int);
    primary_ctx_retain = b"cuDevicePrimaryCtxRetain\0": fn(*mut CuContext, CuDevice);
    ctx_get_current = b"cuCtxGetCurrent\0": fn(*mut CuContext);
    ctx_set_current = b"cuCtxSetCurrent\0": fn(CuContext);
    ctx_get_device = b"cuCtxGetDevice\0": fn(*mut CuDevice);
    ctx_synchronize = b"cuCtxSynchronize\0": fn();
    module_load_data_ex = b"cuModuleLoadDataEx\0": fn(*mut CuModule, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
    module_unload = b"cuModuleUnload\0": fn(CuModule);
    module_get_function = b"cuModuleGetFunction\0": fn(*mut CuFunction, CuModule, *const c_char);
    func_get_attribute = b"cuFuncGetAttribute\0": fn(*mut c_int, c_int, CuFunction);
    max_active_blocks = b"cuOccupancyMaxActiveBlocksPerMultiprocessor\0": fn(*mut c_int, CuFunction, c_int, usize);
    func_set_attribute = b"cuFuncSetAttribute\0": fn(CuFunction, c_int, c_int);
    launch_kernel = b"cuLaunchKernel\0": fn(
        CuFunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Stream, *mut *mut c_void, *mut *mut c_void
    );
    mem_alloc = b"cuMemAlloc_v2\0": fn(*mut DevicePtr, usize);
    mem_free = b"cuMemFree_v2\0": fn(DevicePtr);
    memcpy_htod = b"cuMemcpyHtoD_v2\0": fn(DevicePtr, *const c_void, usize);
    memcpy_dtoh = b"cuMemcpyDtoH_v2\0": fn(*mut c_void, DevicePtr, usize);
    memset_d8_async = b"cuMemsetD8Async\0": fn(DevicePtr, u8, usize, Stream);
    pointer_get_attribute = b"cuPointerGetAttribute\0": fn(*mut c_void, c_int, DevicePtr);
    stream_synchronize = b"cuStreamSynchronize\0": fn(Stream);
    event_create = b"cuEventCreate\0": fn(*mut CuEvent, c_uint);
    event_record = b"cuEventRecord\0": fn(CuEvent, Stream);
    event_synchronize = b"cuEventSynchronize\0": fn(CuEvent);
    event_elapsed_time = b"cuEventElapsedTime\0": fn(*mut f32, CuEvent, CuEvent);
    event_destroy = b"cuEventDestroy_v2\0": fn(CuEvent);
    }
    optional {
    // Since CUDA 11.8; needed for clusters only.
    launch_kernel_ex = b"cuLaunchKernelEx\0": fn(
        *const CuLaunchConfig, CuFunction, *mut *mut c_void, *mut *mut c_void
    );
    max_active_clusters = b"cuOccupancyMaxActiveClusters\0": fn(*mut c_int, CuFunction, *const CuLaunchConfig);
    // Since CUDA 12.4.
    func_get_param_info = b"cuFuncGetParamInfo\0": fn(CuFunction, usize, *mut usize, *mut usize);
    // Since CUDA 12.0.
    tensor_map_encode_tiled = b"cuTensorMapEncodeTiled\0": fn(
        *mut TensorMapBytes, c_int, c_uint, *mut c_void, *const u64, *const u64, *const c_uint, *const c_uint, c_int,
        c_int, c_int, c_int
    );
    }
}

impl Stream {
    /// Waits until the stream has done all that was queued on it.
    pub fn synchronize(self) -> Result<()> {
        // SAFETY: plain call; a stale handle gives an error.
        check("cuStreamSynchronize", unsafe { (driver()?.stream_synchronize)(self) })
    }
}

static DRIVER: OnceLock<Result<Driver>> = OnceLock::new();

/// Whether this process was forked from one that had initialized the driver, whose calls all fail here then.
static FORKED: AtomicBool = AtomicBool::new(false);

/// To be called in a process that was just forked. If its parent had initialized the driver, what needs it is an error from now on,
/// and [`device_count`](crate::device_count) too.
pub fn after_fork() {
    if matches!(DRIVER.get(), Some(Ok(_))) {
        FORKED.store(true, Ordering::Relaxed);
    }
}

/// The driver, loaded and initialized at the first call.
#[inline]
pub(crate) fn driver() -> Result<&'static Driver> {
    match DRIVER.get() {
        Some(Ok(driver)) if !FORKED.load(Ordering::Relaxed) => Ok(driver),
        _ => driver_slow(),
    }
}

#[cold]
fn driver_slow() -> Result<&'static Driver> {
    if FORKED.load(Ordering::Relaxed) {
        return Err(Error::Forked);
    }
    DRIVER.get_or_init(load).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Driver> {
    // TILEWRIGHT_LIBCUDA names the library where it lies in an unusual place, TRITON_LIBCUDA_PATH its folder.
    // `libcuda.so` alone is the development link, which may be a stub: ask for the real one first.
    let names: &[&str] = if cfg!(windows) {
        &["nvcuda.dll"]
    } else {
        &["libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"]
    };
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let in_folder = || Some(format!("{}/libcuda.so.1", set("TRITON_LIBCUDA_PATH")?));
    let chosen = set("TILEWRIGHT_LIBCUDA").or_else(in_folder).unwrap_or_default();
    let names = if chosen.is_empty() { names } else { &[chosen.as_str()][..] };
    let mut first_error = None;
    let mut library = None;
    for name in names {
        // SAFETY: loading the driver library runs its initializers, which is what its documentation expects.
        match unsafe { Library::new(*name) } {
            Ok(found) => {
                library = Some(found);
                break;
            }
            Err(error) => first_error = first_error.or(Some(error.to_string())),
        }
    }
    let Some(library) = library else {
        return Err(Error::NoDriver(first_error.unwrap_or_default()));
    };
    // Never unloaded: the driver keeps threads of its own.
    let library: &'static Library = Box::leak(Box::new(library));
    let driver = Driver::load(library).map_err(|e| Error::NoDriver(format!("the driver is too old: {e}")))?;
    // SAFETY: cuInit takes flags, which must be 0.
    match unsafe { (driver.init)(0) } {
        0 => Ok(driver),
        100 => Err(Error::NoDevice),
        code => Err(Error::NoDriver(format!("cuInit failed with {}", describe_with(&driver, code).0))),
    }
}

/// The name and description of a `CUresult`.
pub(crate) fn describe(code: CuResult) -> (String, String) {
    match DRIVER.get() {
        Some(Ok(driver)) => describe_with(driver, code),
        _ => (format!("CUresult {code}"), String::new()),
    }
}

fn describe_with(driver: &Driver, code: CuResult) -> (String, String) {
    let text = |f: unsafe extern "C" fn(CuResult, *mut *const c_char) -> CuResult| {
        let mut out: *const c_char = std::ptr::null();
        // SAFETY: both functions write a pointer to a static string, or null for an unknown code.
        unsafe {
            if f(code, &mut out) == 0 && !out.is_null() {
                CStr::from_ptr(out).to_string_lossy().into_owned()
            } else {
                format!("CUresult {code}")
            }
        }
    };
    (text(driver.get_error_name), text(driver.get_error_string))
}
