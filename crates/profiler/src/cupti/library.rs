//! The table of CUPTI's functions, filled from `libcupti` at first use.
//!
//! Signatures follow `cupti_callbacks.h`, `cupti_activity.h`, `cupti_version.h` and `cupti_result.h`; they have not changed since CUDA 11.1. Only the
//! calls that the crate makes are listed.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, OnceLock};

use libloading::Library;

use super::record;
use crate::error::{Error, Result};

/// `CUptiResult`; 0 is success.
pub type CuptiResult = c_int;

/// `CUpti_SubscriberHandle`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct SubscriberHandle(pub *mut c_void);
// SAFETY: a handle is a plain value that any thread may pass to CUPTI; who uses it holds the lock of `super::RUNNING`.
unsafe impl Send for SubscriberHandle {}

/// `CUpti_CallbackFunc`.
pub type OnCall = unsafe extern "C" fn(*mut c_void, c_int, u32, *const c_void);
/// `CUpti_BuffersCallbackRequestFunc`.
pub type OnBufferRequested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
/// `CUpti_BuffersCallbackCompleteFunc`.
pub type OnBufferCompleted = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

macro_rules! table {
    ($( $field:ident = $symbol:literal : fn($($arg:ty),* $(,)?) ; )*) => {
        /// CUPTI's functions.
        pub struct Cupti {
            /// The file.
            pub path: String,
            /// What `cuptiGetVersion` says.
            pub version: u32,
            $( pub $field: unsafe extern "C" fn($($arg),*) -> CuptiResult, )*
        }

        impl Cupti {
            fn fill(library: &'static Library, path: &str) -> std::result::Result<Self, libloading::Error> {
                // SAFETY: each type is the one that the headers give the symbol, and the library is never unloaded, so the pointers
                // stay valid.
                unsafe {
                    Ok(Cupti {
                        path: path.to_string(),
                        version: 0,
                        $( $field: *library.get::<unsafe extern "C" fn($($arg),*) -> CuptiResult>($symbol)?, )*
                    })
                }
            }
        }
    };
}

table! {
    get_version = b"cuptiGetVersion\0": fn(*mut u32);
    get_result_string = b"cuptiGetResultString\0": fn(CuptiResult, *mut *const c_char);
    get_timestamp = b"cuptiGetTimestamp\0": fn(*mut u64);
    subscribe = b"cuptiSubscribe\0": fn(*mut SubscriberHandle, OnCall, *mut c_void);
    unsubscribe = b"cuptiUnsubscribe\0": fn(SubscriberHandle);
    enable_callback = b"cuptiEnableCallback\0": fn(u32, SubscriberHandle, c_int, u32);
    register_callbacks = b"cuptiActivityRegisterCallbacks\0": fn(OnBufferRequested, OnBufferCompleted);
    activity_enable = b"cuptiActivityEnable\0": fn(c_int);
    activity_disable = b"cuptiActivityDisable\0": fn(c_int);
    flush_all = b"cuptiActivityFlushAll\0": fn(u32);
    next_record = b"cuptiActivityGetNextRecord\0": fn(*mut u8, usize, *mut *mut c_void);
    dropped_records = b"cuptiActivityGetNumDroppedRecords\0": fn(*mut c_void, u32, *mut usize);
}

static CUPTI: OnceLock<Cupti> = OnceLock::new();

/// Where to look: files, the best first, and whether the user chose them.
static PLACES: Mutex<(Vec<String>, bool)> = Mutex::new((Vec::new(), false));

/// Says where CUPTI may lie: files, the best first. Unless the user chose them, one that the process has loaded already goes before them,
/// since two of them in one process stand in each other's way.
pub fn set_places(files: Vec<String>, chosen: bool) {
    *PLACES.lock().unwrap_or_else(|e| e.into_inner()) = (files, chosen);
}

/// CUPTI, if it is loaded.
pub fn loaded() -> Option<&'static Cupti> {
    CUPTI.get()
}

/// CUPTI, loaded at the first call. A failure is not kept: what was missing may be there the next time.
pub fn cupti() -> Result<&'static Cupti> {
    if let Some(cupti) = CUPTI.get() {
        return Ok(cupti);
    }
    let (files, chosen) = PLACES.lock().unwrap_or_else(|e| e.into_inner()).clone();
    let driver = tilewright_runtime::driver_version()?;
    let mut places = if chosen { Vec::new() } else { mapped() };
    places.extend(files);
    let mut looked_at = String::new();
    for place in places {
        match open(&place, driver.0) {
            Ok(cupti) => return Ok(CUPTI.get_or_init(|| cupti)),
            Err(why) => looked_at.push_str(&format!("  {place}: {why}\n")),
        }
    }
    Err(Error::NoCupti { looked_at })
}

/// The files named `libcupti.so…` that this process has loaded.
fn mapped() -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut files: Vec<String> = Vec::new();
    for line in maps.lines() {
        if let Some(at) = line.find('/')
            && line[at..].rsplit('/').next().is_some_and(|name| name.starts_with("libcupti.so"))
            && !files.iter().any(|file| file == &line[at..])
        {
            files.push(line[at..].to_string());
        }
    }
    files
}

fn open(place: &str, driver: u32) -> std::result::Result<Cupti, String> {
    // SAFETY: loading CUPTI runs its initializers, which is what its documentation expects.
    let library = unsafe { Library::new(place) }.map_err(|e| words(&e))?;
    // Never unloaded: it keeps threads of its own.
    let library: &'static Library = Box::leak(Box::new(library));
    let mut cupti = Cupti::fill(library, place).map_err(|e| words(&e))?;
    // SAFETY: writes one number.
    match unsafe { (cupti.get_version)(&mut cupti.version) } {
        0 if cupti.version < record::OLDEST => {
            Err(format!("is version {}, too old: CUDA 11.1 or later is needed", cupti.version))
        }
        // Versions count from 1 up to CUDA 12, and are 130000 for CUDA 13.0.
        0 if cupti.version / 10_000 > driver => {
            Err(format!("is for CUDA {}, and the driver for CUDA {driver}", cupti.version / 10_000))
        }
        0 => Ok(cupti),
        code => Err(format!("cuptiGetVersion fails with {}", name(&cupti, code))),
    }
}

/// What the loader says.
fn words(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

fn name(cupti: &Cupti, code: CuptiResult) -> String {
    let mut text: *const c_char = std::ptr::null();
    // SAFETY: writes a pointer to a static string, or nothing for an unknown code.
    unsafe {
        match (cupti.get_result_string)(code, &mut text) {
            0 if !text.is_null() => CStr::from_ptr(text).to_string_lossy().into_owned(),
            _ => format!("CUptiResult {code}"),
        }
    }
}

/// Turns a `CUptiResult` into a [`Result`].
pub fn check(cupti: &Cupti, call: &'static str, code: CuptiResult) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    let driver = tilewright_runtime::driver_version()
        .map_or_else(|_| "?".to_string(), |(major, minor)| format!("{major}.{minor}"));
    let (name, hint) = (name(cupti, code), usual_cause(code));
    Err(Error::Cupti { call, code, name, hint, library: cupti.path.clone(), version: cupti.version, driver })
}

/// What usually stands behind a code, for the ones that people meet.
fn usual_cause(code: CuptiResult) -> &'static str {
    match code {
        15 => {
            ": CUPTI does not start, mostly because it is newer than the driver. Install the CUPTI of the driver's CUDA version"
        }
        27 | 34 | 40..=45 => ": this GPU, or the way in which it is shared, cannot be profiled",
        35 => {
            ": the driver lets only root profile. Run as root, or have the administrator load it with \
             NVreg_RestrictProfilingToAdminUsers=0"
        }
        39 => {
            ": something else profiles this process already, and CUPTI serves one at a time. End torch.profiler (with TEARDOWN_CUPTI=1 it \
             lets go of CUPTI), Nsight Systems, Nsight Compute or cuda-gdb first"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_cupti_says_so() {
        assert!(open("/nonexistent/libcupti.so", 13).err().is_some_and(|why| why.contains("/nonexistent")));
        // A library, but another one.
        assert!(open("libc.so.6", 13).err().is_some_and(|why| why.contains("cupti")));
    }

    #[test]
    fn nothing_is_loaded_here() {
        assert_eq!(mapped(), Vec::<String>::new());
    }
}
