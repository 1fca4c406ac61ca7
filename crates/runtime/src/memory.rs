//! Device memory and events for programs that have no torch to allocate and time for them.

use std::ffi::{c_int, c_void};

use crate::device::{Device, device_count};
use crate::driver::{CuContext, CuEvent, DevicePtr, Stream, driver};
use crate::error::{Error, Result, check};

/// An allocation on a GPU, freed when dropped.
#[derive(Debug)]
pub struct DeviceBuffer {
    pointer: DevicePtr,
    bytes: usize,
    device: &'static Device,
}

impl DeviceBuffer {
    /// Allocates `bytes` bytes, not initialized. Zero bytes are allowed.
    pub fn new(device: &'static Device, bytes: usize) -> Result<Self> {
        let driver = driver()?;
        device.make_current()?;
        let mut pointer = 0;
        // SAFETY: writes one address.
        check("cuMemAlloc", unsafe { (driver.mem_alloc)(&mut pointer, bytes.max(1)) })?;
        Ok(DeviceBuffer { pointer, bytes, device })
    }

    /// Allocates as many bytes as `data` has, and copies it there.
    pub fn from_bytes(device: &'static Device, data: &[u8]) -> Result<Self> {
        let mut buffer = DeviceBuffer::new(device, data.len())?;
        buffer.write(data)?;
        Ok(buffer)
    }

    /// The address of the first byte.
    pub fn pointer(&self) -> DevicePtr {
        self.pointer
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Copies `data` to the start of the buffer.
    pub fn write(&mut self, data: &[u8]) -> Result<()> {
        self.fits(data.len())?;
        self.device.make_current()?;
        // SAFETY: both ranges hold `data.len()` bytes.
        check("cuMemcpyHtoD", unsafe {
            (driver()?.memcpy_htod)(self.pointer, data.as_ptr().cast(), data.len())
        })
    }

    /// Copies the start of the buffer to `data`, after all work of the device that came before.
    pub fn read(&self, data: &mut [u8]) -> Result<()> {
        self.fits(data.len())?;
        synchronize(self.device)?;
        // SAFETY: both ranges hold `data.len()` bytes.
        check("cuMemcpyDtoH", unsafe {
            (driver()?.memcpy_dtoh)(data.as_mut_ptr().cast(), self.pointer, data.len())
        })
    }

    /// Sets every byte, in the order of the stream.
    pub fn fill(&mut self, value: u8, stream: Stream) -> Result<()> {
        self.device.make_current()?;
        // SAFETY: the range is the allocation.
        unsafe { fill(self.pointer, value, self.bytes, stream) }
    }

    fn fits(&self, bytes: usize) -> Result<()> {
        if bytes <= self.bytes {
            return Ok(());
        }
        Err(Error::InvalidLaunch(format!("a copy of {bytes} bytes does not fit a buffer of {}", self.bytes)))
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if let Ok(driver) = driver()
            && self.device.make_current().is_ok()
        {
            // SAFETY: the address came from cuMemAlloc and is freed once.
            unsafe { (driver.mem_free)(self.pointer) };
        }
    }
}

/// Sets every byte of a range of the current device's memory, in the order of the stream.
///
/// # Safety
/// The range is allocated, and its contents may change.
pub unsafe fn fill(pointer: DevicePtr, value: u8, bytes: usize, stream: Stream) -> Result<()> {
    // SAFETY: the caller's promise.
    check("cuMemsetD8Async", unsafe { (driver()?.memset_d8_async)(pointer, value, bytes, stream) })
}

/// Waits until the GPU has done all that was queued on it.
pub fn synchronize(device: &Device) -> Result<()> {
    device.make_current()?;
    // SAFETY: plain call.
    check("cuCtxSynchronize", unsafe { (driver()?.ctx_synchronize)() })
}

/// Waits until every GPU that this process uses has done all that was queued on it. The calling thread's context stays what it was.
pub fn synchronize_all() -> Result<()> {
    let driver = driver()?;
    let mut before = CuContext(std::ptr::null_mut());
    // SAFETY: writes one handle.
    check("cuCtxGetCurrent", unsafe { (driver.ctx_get_current)(&mut before) })?;
    let waited = (0..device_count()?).try_for_each(|ordinal| match context_is_active(ordinal)? {
        true => synchronize(Device::get(ordinal)?),
        false => Ok(()),
    });
    // SAFETY: the context was current before; none is where none was.
    check("cuCtxSetCurrent", unsafe { (driver.ctx_set_current)(before) })?;
    waited
}

/// Whether something in this process uses the primary context of a GPU.
fn context_is_active(ordinal: u32) -> Result<bool> {
    let driver = driver()?;
    let (mut device, mut flags, mut active) = (0, 0, 0);
    // SAFETY: writes one int.
    check("cuDeviceGet", unsafe { (driver.device_get)(&mut device, ordinal as c_int) })?;
    // SAFETY: writes two ints.
    let code = unsafe { (driver.primary_ctx_get_state)(device, &mut flags, &mut active) };
    check("cuDevicePrimaryCtxGetState", code)?;
    Ok(active != 0)
}

/// The address by which a kernel on the current device may reach `pointer`: itself for device memory, its mapping for
/// pinned host memory, `None` for memory that the GPU cannot reach.
pub fn is_device_accessible(pointer: u64) -> Result<Option<DevicePtr>> {
    const POINTER_ATTRIBUTE_DEVICE_POINTER: c_int = 3;
    let mut mapped: DevicePtr = 0;
    // SAFETY: writes one address.
    let code = unsafe {
        (driver()?.pointer_get_attribute)(
            std::ptr::from_mut(&mut mapped).cast::<c_void>(),
            POINTER_ATTRIBUTE_DEVICE_POINTER,
            pointer,
        )
    };
    Ok((code == 0).then_some(mapped))
}

/// The GPU whose memory `pointer` is in; `None` for host memory, pinned or not, and where there is no GPU.
pub fn device_of(pointer: DevicePtr) -> Option<u32> {
    const POINTER_ATTRIBUTE_MEMORY_TYPE: c_int = 2;
    const POINTER_ATTRIBUTE_DEVICE_ORDINAL: c_int = 9;
    const MEMORY_TYPE_DEVICE: u32 = 2;
    let driver = driver().ok()?;
    let ask = |attribute| {
        let mut value: u32 = 0;
        // SAFETY: both attributes are numbers of 4 bytes.
        let code = unsafe {
            (driver.pointer_get_attribute)(
                std::ptr::from_mut(&mut value).cast::<c_void>(),
                attribute,
                pointer,
            )
        };
        (code == 0).then_some(value)
    };
    if ask(POINTER_ATTRIBUTE_MEMORY_TYPE)? != MEMORY_TYPE_DEVICE {
        return None;
    }
    ask(POINTER_ATTRIBUTE_DEVICE_ORDINAL)
}

/// A point in a stream's work, for timing.
#[derive(Debug)]
pub struct Event {
    event: CuEvent,
    device: &'static Device,
}

impl Event {
    /// An event that has not been recorded.
    pub fn new(device: &'static Device) -> Result<Self> {
        device.make_current()?;
        let mut event = CuEvent(std::ptr::null_mut());
        // SAFETY: writes one handle.
        check("cuEventCreate", unsafe { (driver()?.event_create)(&mut event, 0) })?;
        Ok(Event { event, device })
    }

    /// Marks the current end of the stream's work.
    pub fn record(&self, stream: Stream) -> Result<()> {
        self.device.make_current()?;
        // SAFETY: plain call.
        check("cuEventRecord", unsafe { (driver()?.event_record)(self.event, stream) })
    }

    /// Waits for this event and gives the milliseconds since `start`.
    pub fn milliseconds_since(&self, start: &Event) -> Result<f32> {
        self.device.make_current()?;
        let driver = driver()?;
        // SAFETY: plain call.
        check("cuEventSynchronize", unsafe { (driver.event_synchronize)(self.event) })?;
        let mut elapsed = 0f32;
        // SAFETY: writes one float.
        check("cuEventElapsedTime", unsafe {
            (driver.event_elapsed_time)(&mut elapsed, start.event, self.event)
        })?;
        Ok(elapsed)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(driver) = driver()
            && self.device.make_current().is_ok()
        {
            // SAFETY: the handle came from cuEventCreate and is destroyed once.
            unsafe { (driver.event_destroy)(self.event) };
        }
    }
}
