//! GPUs: how many, what they can do, and their primary contexts.

use std::ffi::c_int;
use std::sync::OnceLock;

use crate::driver::{CuContext, CuDevice, driver};
use crate::error::{Error, Result, check};

/// What a GPU can do, read once.
#[derive(Debug, Clone)]
pub struct DeviceProperties {
    /// Its name, as the driver gives it.
    pub name: String,
    /// Compute capability: (9, 0) for an H100.
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// The most dynamic shared memory one block may ask for, in bytes.
    pub max_shared_memory: u32,
    /// The most shared memory one block gets without asking, in bytes.
    pub default_shared_memory: u32,
    /// 32-bit registers in one block.
    pub max_registers_per_block: u32,
    /// Threads in a warp.
    pub warp_size: u32,
    /// Threads in one block.
    pub max_threads_per_block: u32,
    /// Blocks along each dimension of a grid.
    pub max_grid: [u32; 3],
    /// Peak core clock in kHz.
    pub clock_khz: u32,
    /// Peak memory clock in kHz.
    pub memory_clock_khz: u32,
    /// Width of the memory bus in bits.
    pub memory_bus_bits: u32,
    /// L2 cache in bytes.
    pub l2_bytes: u32,
    /// Device memory in bytes.
    pub total_memory: u64,
}

/// One GPU of this process, with its primary context.
#[derive(Debug)]
pub struct Device {
    ordinal: u32,
    context: CuContext,
    properties: DeviceProperties,
}

/// All GPUs by ordinal, each opened when it is first asked for. They live as long as the process does.
static DEVICES: OnceLock<Box<[OnceLock<Device>]>> = OnceLock::new();

/// How many GPUs this process sees; an error when there is no driver.
pub fn device_count() -> Result<u32> {
    static COUNT: OnceLock<u32> = OnceLock::new();
    let driver = driver()?;
    if let Some(count) = COUNT.get() {
        return Ok(*count);
    }
    let mut count: c_int = 0;
    // SAFETY: writes one int.
    check("cuDeviceGetCount", unsafe { (driver.device_get_count)(&mut count) })?;
    Ok(*COUNT.get_or_init(|| count as u32))
}

/// The CUDA version that the driver supports, as (major, minor).
pub fn driver_version() -> Result<(u32, u32)> {
    let driver = driver()?;
    let mut version: c_int = 0;
    // SAFETY: writes one int.
    check("cuDriverGetVersion", unsafe { (driver.driver_get_version)(&mut version) })?;
    Ok((version as u32 / 1000, version as u32 % 1000 / 10))
}

impl Device {
    /// The GPU with this ordinal (as `CUDA_VISIBLE_DEVICES` numbers them); its primary context is retained.
    pub fn get(ordinal: u32) -> Result<&'static Device> {
        if let Some(device) = Device::opened(ordinal) {
            return Ok(device);
        }
        let count = device_count()?;
        if count == 0 {
            return Err(Error::NoDevice);
        }
        let devices = DEVICES.get_or_init(|| (0..count).map(|_| OnceLock::new()).collect());
        let Some(place) = devices.get(ordinal as usize) else {
            return Err(Error::InvalidLaunch(format!(
                "there is no GPU {ordinal}: this process sees {count}"
            )));
        };
        // Opened by two threads at once, it is opened twice, which only counts a reference more.
        let device = Device::open(ordinal)?;
        Ok(place.get_or_init(|| device))
    }

    /// The GPU with this ordinal if it was asked for before.
    #[inline]
    fn opened(ordinal: u32) -> Option<&'static Device> {
        DEVICES.get()?.get(ordinal as usize)?.get()
    }

    /// Whether the primary context of the GPU with this ordinal, which was opened before, is current on this thread.
    #[inline]
    pub fn is_current(ordinal: u32) -> bool {
        let (Some(device), Ok(driver)) = (Device::opened(ordinal), driver()) else { return false };
        let mut current = CuContext(std::ptr::null_mut());
        // SAFETY: writes one handle.
        check("cuCtxGetCurrent", unsafe { (driver.ctx_get_current)(&mut current) }).is_ok()
            && current == device.context
    }

    /// The GPU whose context is current on this thread, or GPU 0 where none is.
    pub fn current() -> Result<&'static Device> {
        let driver = driver()?;
        let mut context = CuContext(std::ptr::null_mut());
        // SAFETY: writes one handle.
        check("cuCtxGetCurrent", unsafe { (driver.ctx_get_current)(&mut context) })?;
        if context.0.is_null() {
            return Device::get(0);
        }
        let mut device: CuDevice = 0;
        // SAFETY: writes one int; a context is current.
        check("cuCtxGetDevice", unsafe { (driver.ctx_get_device)(&mut device) })?;
        Device::get(device as u32)
    }

    fn open(ordinal: u32) -> Result<Device> {
        let driver = driver()?;
        let mut device: CuDevice = 0;
        // SAFETY: writes one int.
        check("cuDeviceGet", unsafe { (driver.device_get)(&mut device, ordinal as c_int) })?;
        let mut context = CuContext(std::ptr::null_mut());
        // SAFETY: writes one handle.
        check("cuDevicePrimaryCtxRetain", unsafe { (driver.primary_ctx_retain)(&mut context, device) })?;
        Ok(Device { ordinal, context, properties: read_properties(device)? })
    }

    /// The ordinal.
    pub fn ordinal(&self) -> u32 {
        self.ordinal
    }

    /// What the GPU can do.
    pub fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    /// Makes the primary context current on this thread, if it is not already.
    #[inline]
    pub fn make_current(&self) -> Result<()> {
        let driver = driver()?;
        let mut current = CuContext(std::ptr::null_mut());
        // SAFETY: writes one handle.
        check("cuCtxGetCurrent", unsafe { (driver.ctx_get_current)(&mut current) })?;
        if current == self.context {
            return Ok(());
        }
        // SAFETY: the context was retained when the device was opened and is never released.
        check("cuCtxSetCurrent", unsafe { (driver.ctx_set_current)(self.context) })
    }
}

fn read_properties(device: CuDevice) -> Result<DeviceProperties> {
    let driver = driver()?;
    // Numbers are those of CUdevice_attribute.
    let attribute = |id: c_int| -> Result<u32> {
        let mut value: c_int = 0;
        // SAFETY: writes one int.
        check("cuDeviceGetAttribute", unsafe { (driver.device_get_attribute)(&mut value, id, device) })?;
        Ok(value as u32)
    };
    let mut name = [0u8; 128];
    // SAFETY: writes at most 128 bytes, with a terminating zero.
    check("cuDeviceGetName", unsafe { (driver.device_get_name)(name.as_mut_ptr().cast(), 128, device) })?;
    let name = name.split(|b| *b == 0).next().unwrap_or_default();
    let mut total_memory = 0usize;
    // SAFETY: writes one size.
    check("cuDeviceTotalMem", unsafe { (driver.device_total_mem)(&mut total_memory, device) })?;
    Ok(DeviceProperties {
        name: String::from_utf8_lossy(name).into_owned(),
        compute_capability: (attribute(75)?, attribute(76)?),
        multiprocessors: attribute(16)?,
        max_shared_memory: attribute(97)?,
        default_shared_memory: attribute(8)?,
        max_registers_per_block: attribute(12)?,
        warp_size: attribute(10)?,
        max_threads_per_block: attribute(1)?,
        max_grid: [attribute(5)?, attribute(6)?, attribute(7)?],
        clock_khz: attribute(13)?,
        memory_clock_khz: attribute(36)?,
        memory_bus_bits: attribute(37)?,
        l2_bytes: attribute(38)?,
        total_memory: total_memory as u64,
    })
}
