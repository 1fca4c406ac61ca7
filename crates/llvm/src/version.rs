//! Which LLVM is in use, for cache keys: the same program may meet another one tomorrow where it is linked dynamically.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The version, such as `19.1.7`.
pub fn version() -> String {
    let (major, minor, patch) = inkwell::support::get_llvm_version();
    format!("{major}.{minor}.{patch}")
}

/// The file that LLVM's code was loaded from: its own library, or the program that it is linked into.
pub fn file() -> Option<PathBuf> {
    // Looking for an address goes through all names of that file.
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    FILE.get_or_init(loaded_from).clone()
}

fn loaded_from() -> Option<PathBuf> {
    let address = inkwell::llvm_sys::core::LLVMGetVersion as *const libc::c_void;
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: `dladdr` only looks at the address, and writes the structure that is given.
    let found = unsafe { libc::dladdr(address, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: where the address was found, this is a string of the loader's that lives as long as the library is loaded,
    // which holds code that runs now.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}
