//! Where a thread is: the scopes that it has entered, its state, and the kernel that it is launching.
//!
//! A thread that has entered no scope of its own, such as those on which autograd runs, is where the main thread is: the one that started
//! the first session.

use std::cell::RefCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::path::{PathId, Paths};
use crate::session::with_sessions;

/// Where a launch is made, from each source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Site {
    /// By scopes.
    pub shadow: PathId,
    /// By Python's frames; the root where nobody wants to know.
    pub python: PathId,
    /// Whether the kernel's own name stands in the path already: what `launch_metadata` called it.
    pub named: bool,
}

#[derive(Default)]
struct Here {
    /// The epoch in which it was filled.
    epoch: u64,
    /// Whether this is the main thread.
    main: bool,
    /// Scopes by number, the outermost first, each with the path that it makes.
    scopes: Vec<(u64, PathId)>,
    /// A name that goes behind every path.
    state: Option<String>,
    /// Launches that were announced, by the number of their scope.
    ops: Vec<(u64, Site)>,
}

thread_local! {
    static HERE: RefCell<Here> = RefCell::default();
}

/// Counts the times that the last session ended: what threads remember from before is void.
static EPOCH: AtomicU64 = AtomicU64::new(0);
/// The path of the main thread's scopes.
static MAIN: AtomicU32 = AtomicU32::new(0);
/// How many active sessions go by Python's frames.
pub(crate) static BY_FRAMES: AtomicUsize = AtomicUsize::new(0);
static FRAMES: OnceLock<fn() -> Vec<String>> = OnceLock::new();

/// Says how to find the names of Python's frames on this thread, the outermost first.
pub fn set_frames(frames: fn() -> Vec<String>) {
    FRAMES.get_or_init(|| frames);
}

impl Here {
    fn refresh(&mut self) {
        let epoch = EPOCH.load(Ordering::Acquire);
        if self.epoch != epoch {
            // A state lives as long as its `with` block does.
            *self = Here { epoch, state: self.state.take(), ..Here::default() };
        }
    }

    fn top(&self) -> PathId {
        match self.scopes.last() {
            Some((_, path)) => *path,
            None if self.main => PathId::ROOT,
            None => PathId(MAIN.load(Ordering::Acquire)),
        }
    }

    fn publish(&self) {
        if self.main {
            MAIN.store(self.top().0, Ordering::Release);
        }
    }
}

/// Looks at this thread's place; `None` when the thread is about to end and has none any more.
fn here<T>(f: impl FnOnce(&mut Here) -> T) -> Option<T> {
    HERE.try_with(|here| {
        let mut here = here.borrow_mut();
        here.refresh();
        f(&mut here)
    })
    .ok()
}

/// The calling thread is the main one from now on.
pub(crate) fn claim_main() {
    here(|here| {
        here.main = true;
        here.publish();
    });
}

/// The last session ended.
pub(crate) fn forget() {
    EPOCH.fetch_add(1, Ordering::AcqRel);
    MAIN.store(0, Ordering::Release);
}

/// Python's frames, where a session wants them. No lock may be held: the interpreter is waited for.
fn frames() -> Option<Vec<String>> {
    (BY_FRAMES.load(Ordering::Acquire) > 0).then(|| FRAMES.get().map(|frames| frames()).unwrap_or_default())
}

/// Where this thread is, the state included.
fn place(paths: &mut Paths, top: PathId, state: Option<&str>, frames: Option<&[String]>) -> Site {
    let behind = |paths: &mut Paths, path| state.map_or(path, |state| paths.child(path, state));
    let python = frames.map_or(PathId::ROOT, |names| paths.of(names));
    let python = if frames.is_some() { behind(paths, python) } else { python };
    Site { shadow: behind(paths, top), python, named: false }
}

/// Where a launch on this thread is made now.
pub(crate) fn site() -> Site {
    let root = Site { shadow: PathId::ROOT, python: PathId::ROOT, named: false };
    let Some((op, top, state)) =
        here(|here| (here.ops.last().map(|op| op.1), here.top(), here.state.clone()))
    else {
        return root;
    };
    if let Some(op) = op {
        return op;
    }
    let frames = frames();
    if state.is_none() && frames.is_none() {
        return Site { shadow: top, ..root };
    }
    with_sessions(|sessions| place(&mut sessions.paths, top, state.as_deref(), frames.as_deref()))
}

/// Enters a scope.
pub fn enter_scope(id: u64, name: &str) {
    let frames = frames();
    let Some((top, state)) = here(|here| (here.top(), here.state.clone())) else {
        return;
    };
    let path = with_sessions(|sessions| {
        let path = sessions.paths.child(top, name);
        let site = place(&mut sessions.paths, path, state.as_deref(), frames.as_deref());
        sessions.enter(id, site);
        path
    });
    here(|here| {
        here.scopes.push((id, path));
        here.publish();
    });
}

/// Leaves a scope, and those inside of it that were left open. One that was entered before the profile began is not there to be left.
pub fn exit_scope(id: u64) {
    here(|here| {
        if let Some(at) = here.scopes.iter().rposition(|scope| scope.0 == id) {
            here.scopes.truncate(at);
            here.publish();
        }
    });
    with_sessions(|sessions| sessions.exit(id));
}

/// Announces a launch under a name of its own: what the kernel's `launch_metadata` gives.
pub fn enter_op(id: u64, name: &str) {
    let frames = frames();
    let Some((top, state)) = here(|here| (here.top(), here.state.clone())) else {
        return;
    };
    let site = with_sessions(|sessions| {
        let mut site = place(&mut sessions.paths, top, state.as_deref(), frames.as_deref());
        site.shadow = sessions.paths.child(site.shadow, name);
        if frames.is_some() {
            site.python = sessions.paths.child(site.python, name);
        }
        site.named = true;
        sessions.enter(id, site);
        site
    });
    here(|here| here.ops.push((id, site)));
}

/// The announced launch has been made.
pub fn exit_op(id: u64) {
    here(|here| here.ops.retain(|op| op.0 != id));
    with_sessions(|sessions| sessions.exit(id));
}

/// Puts a name behind every path of this thread, or none.
pub fn set_state(state: Option<&str>) {
    here(|here| here.state = state.map(str::to_string));
}

/// How many scopes the calling thread is in.
pub(crate) fn depth(paths: &Paths) -> usize {
    let top = here(|here| here.top()).unwrap_or(PathId::ROOT);
    paths.names(top).len() - 1
}

/// How many of Python's frames the calling thread is in.
pub(crate) fn frame_depth() -> usize {
    FRAMES.get().map_or(0, |frames| frames().len())
}
