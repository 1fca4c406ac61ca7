//! What CUPTI hands over, at the places where its headers put it.
//!
//! The fields that are read stand at the same places in `CUpti_ActivityKernel5` (CUDA 11.1) and every version since, up to
//! `CUpti_ActivityKernel10` (CUDA 13); later versions have added fields at the end alone.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::session::{DeviceKind, Kernel};

/// The oldest version of CUPTI whose records of kernels have all that is read: that of CUDA 11.1.
pub const OLDEST: u32 = 14;

/// Places in a record of a kernel.
mod kernel_at {
    pub const START: usize = 16;
    pub const END: usize = 24;
    pub const DEVICE: usize = 40;
    pub const STREAM: usize = 48;
    pub const LAUNCH: usize = 92;
    pub const NAME: usize = 104;
    pub const GRAPH: usize = 156;
}

/// Places in `CUpti_CallbackData`.
mod callback_at {
    pub const SITE: usize = 0;
    pub const LAUNCH: usize = 64;
}

/// # Safety
///
/// A `T` must stand this far behind the address.
unsafe fn field<T: Copy>(base: *const c_void, offset: usize) -> T {
    // SAFETY: the caller's promise. Records are packed: the place need not be aligned.
    unsafe { base.byte_add(offset).cast::<T>().read_unaligned() }
}

/// Whether it is in front of the call (0) or behind it (1), and the number of the launch.
///
/// # Safety
///
/// The address must be that of a `CUpti_CallbackData`.
pub unsafe fn callback(data: *const c_void) -> (u32, u32) {
    // SAFETY: the caller's promise.
    unsafe { (field(data, callback_at::SITE), field(data, callback_at::LAUNCH)) }
}

/// The kind of a record.
///
/// # Safety
///
/// The address must be that of a record.
pub unsafe fn kind(record: *const c_void) -> c_int {
    // SAFETY: the caller's promise; every record begins with its kind.
    unsafe { field(record, 0) }
}

/// The number of the launch, and the kernel.
///
/// # Safety
///
/// The address must be that of a record of a kernel, from CUPTI of version [`OLDEST`] or later, which owns the name as long as the process
/// lives.
pub unsafe fn kernel<'a>(record: *const c_void) -> (u32, Kernel<'a>) {
    // SAFETY: the caller's promise.
    unsafe {
        let name: *const c_char = field(record, kernel_at::NAME);
        let name = if name.is_null() { c"?" } else { CStr::from_ptr(name) };
        let kernel = Kernel {
            name: name.to_str().unwrap_or("?"),
            start: field(record, kernel_at::START),
            end: field(record, kernel_at::END),
            device: (DeviceKind::Cuda, field(record, kernel_at::DEVICE)),
            stream: field(record, kernel_at::STREAM),
            in_graph: field::<u32>(record, kernel_at::GRAPH) != 0,
        };
        (field(record, kernel_at::LAUNCH), kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stand_where_the_headers_put_them() {
        let mut record = [0u8; 216];
        let name = c"kernel";
        let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &10u32.to_le_bytes());
        put(16, &1000u64.to_le_bytes());
        put(24, &1500u64.to_le_bytes());
        put(40, &3u32.to_le_bytes());
        put(48, &7u32.to_le_bytes());
        put(92, &42u32.to_le_bytes());
        put(104, &(name.as_ptr() as usize).to_le_bytes());
        put(156, &9u32.to_le_bytes());
        let base = record.as_ptr().cast();
        // SAFETY: the bytes are those of a record of a kernel, and the name is static.
        let (kind, (launch, kernel)) = unsafe { (kind(base), kernel(base)) };
        assert_eq!((kind, launch), (10, 42));
        assert_eq!((kernel.name, kernel.start, kernel.end), ("kernel", 1000, 1500));
        assert_eq!((kernel.device, kernel.stream, kernel.in_graph), ((DeviceKind::Cuda, 3), 7, true));
    }
}
