//! CUPTI: which kernels ran when, on every NVIDIA GPU of this process, whoever launched them.
//!
//! Two of its parts are used. Its *callback API* calls us on the thread that launches, in front of each launch, with a number; where the
//! launch is made is put down under it (`crate::launches`). Its *activity API* hands over buffers of records later, on a thread of its own
//! or of who asks for them: one for each kernel, with the number of its launch. The kernels of a graph have the number of the graph's launch.

mod library;
mod record;

use std::alloc::Layout;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::Result;
use crate::here::{self, Site};
use crate::launches::with_launches;
use crate::session::with_sessions;

pub use library::set_places;
use library::{Cupti, SubscriberHandle, check, loaded};

/// What a buffer of records takes: some 20 000 kernels.
const BUFFER: Layout = match Layout::from_size_align(4 << 20, 8) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};

const DOMAIN_DRIVER: c_int = 1;
const DOMAIN_RUNTIME: c_int = 2;
const KIND_KERNEL: c_int = 3;
const KIND_CONCURRENT_KERNEL: c_int = 10;
const MAX_LIMIT_REACHED: c_int = 12;
const FLUSH_FORCED: u32 = 1;
const ENTER: u32 = 0;

/// The calls that launch kernels, by domain and the number that `cupti_driver_cbid.h` and `cupti_runtime_cbid.h` give them; a call that this
/// version of CUPTI has not is left out.
const LAUNCHES: &[(c_int, u32)] = &[
    (DOMAIN_DRIVER, 115),  // cuLaunch
    (DOMAIN_DRIVER, 116),  // cuLaunchGrid
    (DOMAIN_DRIVER, 117),  // cuLaunchGridAsync
    (DOMAIN_DRIVER, 307),  // cuLaunchKernel
    (DOMAIN_DRIVER, 442),  // cuLaunchKernel_ptsz
    (DOMAIN_DRIVER, 477),  // cuLaunchCooperativeKernel
    (DOMAIN_DRIVER, 478),  // cuLaunchCooperativeKernel_ptsz
    (DOMAIN_DRIVER, 480),  // cuLaunchCooperativeKernelMultiDevice
    (DOMAIN_DRIVER, 514),  // cuGraphLaunch
    (DOMAIN_DRIVER, 515),  // cuGraphLaunch_ptsz
    (DOMAIN_DRIVER, 652),  // cuLaunchKernelEx
    (DOMAIN_DRIVER, 653),  // cuLaunchKernelEx_ptsz
    (DOMAIN_RUNTIME, 13),  // cudaLaunch
    (DOMAIN_RUNTIME, 211), // cudaLaunchKernel
    (DOMAIN_RUNTIME, 213), // cudaLaunch_ptsz
    (DOMAIN_RUNTIME, 214), // cudaLaunchKernel_ptsz
    (DOMAIN_RUNTIME, 269), // cudaLaunchCooperativeKernel
    (DOMAIN_RUNTIME, 270), // cudaLaunchCooperativeKernel_ptsz
    (DOMAIN_RUNTIME, 272), // cudaLaunchCooperativeKernelMultiDevice
    (DOMAIN_RUNTIME, 311), // cudaGraphLaunch
    (DOMAIN_RUNTIME, 312), // cudaGraphLaunch_ptsz
    (DOMAIN_RUNTIME, 430), // cudaLaunchKernelExC
    (DOMAIN_RUNTIME, 431), // cudaLaunchKernelExC_ptsz
    (DOMAIN_RUNTIME, 505), // __cudaLaunchKernel
    (DOMAIN_RUNTIME, 506), // __cudaLaunchKernel_ptsz
];

/// What has happened so far in this process, to find faults by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Where CUPTI was found; empty while it has not been asked for.
    pub library: String,
    /// What `cuptiGetVersion` says.
    pub version: u32,
    /// Calls seen that launch.
    pub launches: u64,
    /// Kernels reported.
    pub kernels: u64,
    /// Kernels reported whose launch was not seen.
    pub strangers: u64,
    /// Kernels reported without times.
    pub untimed: u64,
    /// Kernels that CUPTI had no room to report.
    pub dropped: u64,
}

static LAUNCHED: AtomicU64 = AtomicU64::new(0);
static KERNELS: AtomicU64 = AtomicU64::new(0);
static STRANGERS: AtomicU64 = AtomicU64::new(0);
static UNTIMED: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// What has happened so far.
pub fn facts() -> Facts {
    let cupti = loaded();
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Facts {
        library: cupti.map(|cupti| cupti.path.clone()).unwrap_or_default(),
        version: cupti.map_or(0, |cupti| cupti.version),
        launches: read(&LAUNCHED),
        kernels: read(&KERNELS),
        strangers: read(&STRANGERS),
        untimed: read(&UNTIMED),
        dropped: read(&DROPPED),
    }
}

#[derive(Clone, Copy)]
struct Running {
    cupti: &'static Cupti,
    subscriber: SubscriberHandle,
    recording: bool,
}

static RUNNING: Mutex<Option<Running>> = Mutex::new(None);

fn running() -> std::sync::MutexGuard<'static, Option<Running>> {
    RUNNING.lock().unwrap_or_else(|e| e.into_inner())
}

/// Has CUPTI record kernels from now on. What was launched before is no part of it.
pub fn start() -> Result<()> {
    let mut running = running();
    let now = match *running {
        Some(now) => now,
        None => {
            let cupti = library::cupti()?;
            let mut subscriber = SubscriberHandle(std::ptr::null_mut());
            // SAFETY: writes one handle; the callback lives as long as the process and takes no data of ours.
            let code = unsafe { (cupti.subscribe)(&mut subscriber, on_call, std::ptr::null_mut()) };
            check(cupti, "cuptiSubscribe", code)?;
            *running.insert(Running { cupti, subscriber, recording: false })
        }
    };
    if now.recording {
        // Another session is under way: what was launched so far is its alone.
        return flush_now(now.cupti);
    }
    let switched = switch_on(now);
    if switched.is_err() {
        switch_off(now);
        // SAFETY: the handle is that of our subscription, which ends here.
        unsafe { (now.cupti.unsubscribe)(now.subscriber) };
        *running = None;
    } else if let Some(now) = running.as_mut() {
        now.recording = true;
    }
    switched
}

fn switch_on(now: Running) -> Result<()> {
    let cupti = now.cupti;
    // What is queued now was launched before the session.
    tilewright_runtime::synchronize_all()?;
    // SAFETY: both functions live as long as the process and keep to what CUPTI expects of them.
    let code = unsafe { (cupti.register_callbacks)(on_buffer_requested, on_buffer_completed) };
    check(cupti, "cuptiActivityRegisterCallbacks", code)?;
    // SAFETY: plain call.
    let code = unsafe { (cupti.activity_enable)(KIND_CONCURRENT_KERNEL) };
    check(cupti, "cuptiActivityEnable(CONCURRENT_KERNEL)", code)?;
    let mut enabled = 0;
    let mut refused = 0;
    for &(domain, call) in LAUNCHES {
        // SAFETY: the handle is that of our subscription.
        match unsafe { (cupti.enable_callback)(1, now.subscriber, domain, call) } {
            0 => enabled += 1,
            code => refused = code,
        }
    }
    if enabled == 0 { check(cupti, "cuptiEnableCallback", refused) } else { Ok(()) }
}

fn switch_off(now: Running) {
    for &(domain, call) in LAUNCHES {
        // SAFETY: the handle is that of our subscription. What was not on stays off.
        unsafe { (now.cupti.enable_callback)(0, now.subscriber, domain, call) };
    }
    // SAFETY: plain call.
    unsafe { (now.cupti.activity_disable)(KIND_CONCURRENT_KERNEL) };
}

/// Has every kernel that was launched so far reported.
pub fn flush() -> Result<()> {
    let now = *running();
    match now {
        Some(now) if now.recording => flush_now(now.cupti),
        _ => Ok(()),
    }
}

fn flush_now(cupti: &'static Cupti) -> Result<()> {
    tilewright_runtime::synchronize_all()?;
    let flush = |flag| {
        // SAFETY: plain call; what it calls back takes no lock that is held here.
        check(cupti, "cuptiActivityFlushAll", unsafe { (cupti.flush_all)(flag) })
    };
    flush(0)?;
    // A kernel that has ended may take a moment to be in a buffer. A launch without kernels is never reported: no long wait.
    for _ in 0..20 {
        if with_launches(|launches| launches.reported >= launches.made) {
            break;
        }
        std::thread::sleep(Duration::from_micros(200));
        flush(0)?;
    }
    flush(FLUSH_FORCED)
}

/// Has CUPTI record no more for now, after [`flush`].
pub fn pause() -> Result<()> {
    let mut running = running();
    if let Some(now) = running.as_mut().filter(|now| now.recording) {
        switch_off(*now);
        now.recording = false;
        with_launches(|launches| launches.clear());
    }
    Ok(())
}

/// Lets go of CUPTI, so that others can use it, if there is no session any more.
pub fn stop_if(unused: bool) {
    if !unused {
        return;
    }
    if let Some(now) = running().take() {
        switch_off(now);
        // SAFETY: the handle is that of our subscription, which ends here.
        unsafe { (now.cupti.unsubscribe)(now.subscriber) };
    }
}

/// Now, by CUPTI's clock, where it is in use.
pub fn timestamp() -> Option<u64> {
    let now = (*running())?;
    let mut time = 0;
    // SAFETY: writes one number.
    (unsafe { (now.cupti.get_timestamp)(&mut time) } == 0).then_some(time)
}

thread_local! {
    /// The launch that the runtime is making on this thread by way of the driver, which would be seen a second time.
    static IN_RUNTIME: Cell<Option<Site>> = const { Cell::new(None) };
}

/// What CUPTI calls in front of and behind a launch.
unsafe extern "C" fn on_call(_: *mut c_void, domain: c_int, _call: u32, data: *const c_void) {
    // SAFETY: for these two domains `data` points at a `CUpti_CallbackData`, valid during the call.
    let (at, number) = unsafe { record::callback(data) };
    // Nothing may unwind into CUPTI.
    let _ = std::panic::catch_unwind(|| match (domain, at) {
        (DOMAIN_RUNTIME, ENTER) => {
            let site = here::site();
            let _ = IN_RUNTIME.try_with(|cell| cell.set(Some(site)));
            LAUNCHED.fetch_add(1, Ordering::Relaxed);
            with_launches(|launches| launches.insert(number, site));
        }
        (DOMAIN_RUNTIME, _) => {
            let _ = IN_RUNTIME.try_with(|cell| cell.set(None));
        }
        (DOMAIN_DRIVER, ENTER) => {
            let outer = IN_RUNTIME.try_with(Cell::get).ok().flatten();
            let site = outer.unwrap_or_else(|| {
                LAUNCHED.fetch_add(1, Ordering::Relaxed);
                here::site()
            });
            with_launches(|launches| launches.insert(number, site));
        }
        _ => {}
    });
}

/// What CUPTI calls for room.
unsafe extern "C" fn on_buffer_requested(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
    // SAFETY: the layout has a size; CUPTI passes three places to write to. Null says that there is no memory.
    unsafe {
        *buffer = std::alloc::alloc(BUFFER);
        *size = if (*buffer).is_null() { 0 } else { BUFFER.size() };
        *most = 0;
    }
}

/// What CUPTI calls with records.
unsafe extern "C" fn on_buffer_completed(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    _size: usize,
    valid: usize,
) {
    let _ = std::panic::catch_unwind(|| {
        if let Some(cupti) = loaded() {
            read(cupti, buffer, valid);
            let mut dropped = 0usize;
            // SAFETY: the context and the stream are those that CUPTI passed; writes one number.
            if unsafe { (cupti.dropped_records)(context, stream, &mut dropped) } == 0 {
                DROPPED.fetch_add(dropped as u64, Ordering::Relaxed);
            }
        }
    });
    if !buffer.is_null() {
        // SAFETY: the buffer was allocated with this layout by `on_buffer_requested`, and CUPTI is done with it.
        unsafe { std::alloc::dealloc(buffer, BUFFER) };
    }
}

/// Takes the kernels out of a buffer.
fn read(cupti: &Cupti, buffer: *mut u8, valid: usize) {
    if buffer.is_null() || valid == 0 {
        return;
    }
    let mut at: *mut c_void = std::ptr::null_mut();
    loop {
        // SAFETY: the buffer holds `valid` bytes of records; `at` is null or the record that this call gave before.
        match unsafe { (cupti.next_record)(buffer, valid, &mut at) } {
            0 => {}
            MAX_LIMIT_REACHED => return,
            code => {
                let _ = check(cupti, "cuptiActivityGetNextRecord", code).inspect_err(|error| {
                    eprintln!("tilewright.profiler: records of kernels were lost: {error}")
                });
                return;
            }
        }
        // SAFETY: `at` is a whole record of this buffer, as CUPTI just said.
        let kind = unsafe { record::kind(at) };
        if kind != KIND_CONCURRENT_KERNEL && kind != KIND_KERNEL {
            continue;
        }
        // SAFETY: as above, and of a kernel, from a version of CUPTI whose records are known.
        let (number, kernel) = unsafe { record::kernel(at) };
        KERNELS.fetch_add(1, Ordering::Relaxed);
        let site = with_launches(|launches| launches.find(number));
        if site.is_none() {
            STRANGERS.fetch_add(1, Ordering::Relaxed);
        }
        if kernel.start == 0 || kernel.end < kernel.start {
            UNTIMED.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        with_sessions(|sessions| sessions.add_kernel(site, &kernel));
    }
}
