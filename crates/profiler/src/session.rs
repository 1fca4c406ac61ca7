//! Sessions: what is measured, from when to when, and the file that it goes to.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rustc_hash::FxHashMap;
use serde_json::{Value as Json, json};

use crate::cupti;
use crate::error::{Error, Result};
use crate::here::{self, BY_FRAMES, Site};
use crate::metric::Value;
use crate::path::{PathId, Paths};
use crate::trace::Trace;
use crate::tree::Tree;

/// What stands in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The scopes that the program enters.
    Shadow,
    /// Python's frames.
    Python,
}

/// What becomes of kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// They are added up at each path.
    Tree,
    /// Each is an event.
    Trace,
}

/// Who measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// NVIDIA's GPUs, besides the host.
    Cupti,
    /// The CPU executor and the simulator alone.
    Host,
}

/// How a session is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The file, without its ending.
    pub path: String,
    /// What stands in paths.
    pub source: Source,
    /// What becomes of kernels.
    pub format: Format,
    /// Who measures.
    pub backend: Backend,
}

/// What a kernel ran on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceKind {
    /// An NVIDIA GPU.
    Cuda,
    /// The CPU executor.
    Cpu,
    /// The PTX simulator.
    Simulator,
}

impl DeviceKind {
    /// Its name in profiles.
    pub fn name(self) -> &'static str {
        match self {
            DeviceKind::Cuda => "CUDA",
            DeviceKind::Cpu => "CPU",
            DeviceKind::Simulator => "SIMULATOR",
        }
    }
}

/// What a profile says of a device, for peak rates: clocks in kHz, the bus in bits.
#[derive(Debug, Clone, Default)]
pub struct DeviceFacts {
    /// The architecture, such as `90`.
    pub arch: String,
    /// The clock of the cores.
    pub clock_rate: u32,
    /// The clock of the memory.
    pub memory_clock_rate: u32,
    /// The width of the memory bus.
    pub bus_width: u32,
    /// Multiprocessors, or cores.
    pub num_sms: u32,
}

/// A kernel that ran.
#[derive(Debug, Clone, Copy)]
pub struct Kernel<'a> {
    /// Its name.
    pub name: &'a str,
    /// When it began, in nanoseconds.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// Where it ran.
    pub device: (DeviceKind, u32),
    /// The stream's number.
    pub stream: u32,
    /// Whether it was launched as part of a graph.
    pub in_graph: bool,
}

#[derive(Debug)]
enum Data {
    Tree(Tree),
    Trace(Trace),
}

#[derive(Debug)]
struct Session {
    settings: Settings,
    active: bool,
    data: Data,
}

impl Session {
    fn path(&self, site: Site) -> PathId {
        match self.settings.source {
            Source::Shadow => site.shadow,
            Source::Python => site.python,
        }
    }
}

/// Every session, and what they share.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    pub paths: Paths,
    sessions: BTreeMap<u64, Session>,
    next: u64,
    /// Where scopes were entered, for metrics that come later.
    sites: FxHashMap<u64, Site>,
    /// Scopes that were left, the oldest first.
    left: VecDeque<u64>,
    facts: BTreeMap<(DeviceKind, u32), DeviceFacts>,
}

/// How many scopes that were left may still be given metrics.
const LEFT: usize = 4096;

static SESSIONS: Mutex<Option<Sessions>> = Mutex::new(None);
/// One call at a time that starts, ends or writes.
static CHANGING: Mutex<()> = Mutex::new(());
static ACTIVE: AtomicBool = AtomicBool::new(false);
static SCOPES: AtomicU64 = AtomicU64::new(0);

/// Works with the sessions. Nothing foreign may be called in between.
pub(crate) fn with_sessions<T>(f: impl FnOnce(&mut Sessions) -> T) -> T {
    f(SESSIONS.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert_default())
}

/// Whether some session is active: the one question that a launch asks.
#[inline]
pub fn active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

/// A number for a scope.
pub fn new_scope() -> u64 {
    SCOPES.fetch_add(1, Ordering::Relaxed)
}

impl Sessions {
    fn active(&mut self) -> impl Iterator<Item = &mut Session> {
        self.sessions.values_mut().filter(|session| session.active)
    }

    /// A scope was entered, or a launch announced.
    pub fn enter(&mut self, id: u64, site: Site) {
        let mut seen = false;
        for session in self.active() {
            let path = session.path(site);
            seen = true;
            if let Data::Tree(tree) = &mut session.data {
                tree.touch(path);
            }
        }
        if seen {
            self.sites.insert(id, site);
        }
    }

    /// A scope was left.
    pub fn exit(&mut self, id: u64) {
        if self.sites.contains_key(&id) {
            self.left.push_back(id);
            if self.left.len() > LEFT
                && let Some(oldest) = self.left.pop_front()
            {
                self.sites.remove(&oldest);
            }
        }
    }

    /// A kernel has run, launched at this site.
    pub fn add_kernel(&mut self, site: Option<Site>, kernel: &Kernel<'_>) {
        let site = site.unwrap_or(Site { shadow: PathId::ROOT, python: PathId::ROOT, named: false });
        let Sessions { paths, sessions, .. } = self;
        for session in sessions.values_mut().filter(|session| session.active) {
            let mut path = session.path(site);
            if !site.named || kernel.in_graph {
                path = paths.child(path, kernel.name);
            }
            match &mut session.data {
                Data::Tree(tree) => tree.add_kernel(path, kernel),
                Data::Trace(trace) => trace.add_kernel(path, kernel),
            }
        }
    }

    fn get(&mut self, id: u64) -> Result<&mut Session> {
        let missing = || Error::Invalid(format!("Session has not been initialized: {id}"));
        self.sessions.get_mut(&id).ok_or_else(missing)
    }

    fn publish(&mut self) {
        ACTIVE.store(self.active().next().is_some(), Ordering::Release);
        let by_frames = self.active().filter(|session| session.settings.source == Source::Python).count();
        BY_FRAMES.store(by_frames, Ordering::Release);
        if self.sessions.is_empty() {
            self.sites.clear();
            self.left.clear();
            here::forget();
        }
    }

    /// How many sessions there are that CUPTI serves, and how many of them are active.
    fn of_cupti(&self) -> (usize, usize) {
        let all = self.sessions.values().filter(|session| session.settings.backend == Backend::Cupti);
        let active = all.clone().filter(|session| session.active).count();
        (all.count(), active)
    }
}

fn changing() -> std::sync::MutexGuard<'static, ()> {
    CHANGING.lock().unwrap_or_else(|e| e.into_inner())
}

/// Starts a session, and gives its number. One that has the same file already becomes active again.
pub fn start(settings: Settings) -> Result<u64> {
    let _changing = changing();
    let id = with_sessions(|sessions| {
        if let Some((id, _)) = sessions.sessions.iter().find(|(_, s)| s.settings.path == settings.path) {
            return *id;
        }
        let id = sessions.next;
        sessions.next += 1;
        if sessions.sessions.is_empty() {
            here::claim_main();
        }
        let data = match settings.format {
            Format::Tree => Data::Tree(Tree::default()),
            Format::Trace => Data::Trace(Trace::default()),
        };
        sessions.sessions.insert(id, Session { settings, active: false, data });
        id
    });
    set_active(id, true).inspect_err(|_| {
        with_sessions(|sessions| {
            sessions.sessions.remove(&id);
            sessions.publish();
        });
        cupti::stop_if(with_sessions(|sessions| sessions.of_cupti().0 == 0));
    })?;
    Ok(id)
}

/// Has a session begin or cease to record. The GPU is waited for, so that every kernel falls on one side.
fn set_active(id: u64, active: bool) -> Result<()> {
    let (backend, was) = with_sessions(|sessions| {
        let session = sessions.get(id)?;
        Ok::<_, Error>((session.settings.backend, session.active))
    })?;
    if was == active {
        return Ok(());
    }
    if backend == Backend::Cupti {
        match active {
            true => cupti::start()?,
            false => cupti::flush()?,
        }
    }
    let running = with_sessions(|sessions| {
        sessions.get(id)?.active = active;
        sessions.publish();
        Ok::<_, Error>(sessions.of_cupti().1)
    })?;
    if backend == Backend::Cupti && running == 0 {
        cupti::pause()?;
    }
    Ok(())
}

/// Has a session record again.
pub fn activate(id: u64) -> Result<()> {
    let _changing = changing();
    set_active(id, true)
}

/// Has a session record no more for now.
pub fn deactivate(id: u64) -> Result<()> {
    let _changing = changing();
    set_active(id, false)
}

fn ids() -> Vec<u64> {
    with_sessions(|sessions| sessions.sessions.keys().copied().collect())
}

/// Has every session record again.
pub fn activate_all() -> Result<()> {
    let _changing = changing();
    ids().into_iter().try_for_each(|id| set_active(id, true))
}

/// Has every session record no more for now.
pub fn deactivate_all() -> Result<()> {
    let _changing = changing();
    ids().into_iter().try_for_each(|id| set_active(id, false))
}

/// Adds metrics to a scope that was entered while a session was active.
pub fn add_metrics(scope: u64, metrics: &[(String, Value)]) {
    with_sessions(|sessions| {
        let Some(site) = sessions.sites.get(&scope).copied() else { return };
        for session in sessions.active() {
            let path = session.path(site);
            if let Data::Tree(tree) = &mut session.data {
                tree.add_metrics(path, metrics);
            }
        }
    });
}

/// How long the calling thread's path is in a session.
pub fn context_depth(id: u64) -> Result<usize> {
    let source = with_sessions(|sessions| sessions.get(id).map(|session| session.settings.source))?;
    Ok(match source {
        Source::Shadow => with_sessions(|sessions| here::depth(&sessions.paths)),
        Source::Python => here::frame_depth(),
    })
}

/// Records a kernel that ran in this process, on the calling thread.
pub fn host_kernel(name: &str, kind: DeviceKind, facts: DeviceFacts, start: u64, end: u64) {
    let site = here::site();
    let kernel = Kernel { name, start, end, device: (kind, 0), stream: 0, in_graph: false };
    with_sessions(|sessions| {
        sessions.add_kernel(Some(site), &kernel);
        sessions.facts.insert((kind, 0), facts);
    });
}

/// Now, by the clock that kernels' times are from, in nanoseconds.
pub fn host_time() -> u64 {
    let system = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    cupti::timestamp().unwrap_or_else(system)
}

/// Ends a session and writes its file, whose name is given back.
///
/// `format` is `hatchet`, `chrome_trace`, or empty for what the session's data goes into.
pub fn finalize(id: u64, format: &str) -> Result<Option<String>> {
    let _changing = changing();
    match with_sessions(|sessions| sessions.sessions.contains_key(&id)) {
        true => finish(id, format).map(Some),
        false => Ok(None),
    }
}

/// Ends all sessions and writes their files. When one can't be written the others are, before its error is given.
pub fn finalize_all(format: &str) -> Result<Vec<String>> {
    let _changing = changing();
    let results: Vec<Result<String>> = ids().into_iter().map(|id| finish(id, format)).collect();
    results.into_iter().collect()
}

fn finish(id: u64, format: &str) -> Result<String> {
    let ended = set_active(id, false);
    let session = with_sessions(|sessions| {
        let session = sessions.sessions.remove(&id);
        sessions.publish();
        session
    });
    cupti::stop_if(with_sessions(|sessions| sessions.of_cupti().0 == 0));
    let session = session.ok_or_else(|| Error::Invalid(format!("Session has not been initialized: {id}")))?;
    ended?;
    let path = &session.settings.path;
    let (ending, text) = match (&session.data, format) {
        (Data::Tree(tree), "" | "hatchet") => {
            let devices = describe(tree.devices().into_iter());
            ("hatchet", with_sessions(|sessions| tree.hatchet(&sessions.paths, devices)))
        }
        (Data::Trace(trace), "" | "chrome_trace") => {
            ("chrome_trace", with_sessions(|sessions| trace.chrome(&sessions.paths)))
        }
        (data, format) => {
            let (kind, right) = match data {
                Data::Tree(_) => ("tree", "hatchet"),
                Data::Trace(_) => ("trace", "chrome_trace"),
            };
            return Err(Error::Invalid(format!(
                "output_format={format:?} does not go with data={kind:?}, which is written as {right:?}"
            )));
        }
    };
    let file = format!("{path}.{ending}");
    std::fs::write(&file, text).map_err(|e| Error::Write { path: file.clone(), why: e.to_string() })?;
    Ok(file)
}

/// What a profile says of the devices in it, by kind and number.
fn describe(devices: impl Iterator<Item = (DeviceKind, u32)>) -> Json {
    let mut described: BTreeMap<&str, BTreeMap<String, Json>> = BTreeMap::new();
    for (kind, ordinal) in devices {
        let facts = match kind {
            DeviceKind::Cuda => gpu(ordinal),
            _ => with_sessions(|sessions| sessions.facts.get(&(kind, ordinal)).cloned()),
        };
        let DeviceFacts { arch, clock_rate, memory_clock_rate, bus_width, num_sms } =
            facts.unwrap_or_default();
        described.entry(kind.name()).or_default().insert(
            ordinal.to_string(),
            json!({
                "arch": arch,
                "clock_rate": clock_rate,
                "memory_clock_rate": memory_clock_rate,
                "bus_width": bus_width,
                "num_sms": num_sms,
            }),
        );
    }
    json!(described)
}

fn gpu(ordinal: u32) -> Option<DeviceFacts> {
    let properties = tilewright_runtime::Device::get(ordinal).ok()?.properties();
    let (major, minor) = properties.compute_capability;
    Some(DeviceFacts {
        arch: (major * 10 + minor).to_string(),
        clock_rate: properties.clock_khz,
        memory_clock_rate: properties.memory_clock_khz,
        bus_width: properties.memory_bus_bits,
        num_sms: properties.multiprocessors,
    })
}
