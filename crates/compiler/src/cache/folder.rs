//! Files and folders of the cache: for the user alone, and of a kind that never makes a reader wait.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;

/// What the names of folders that are being written begin with.
const TEMPORARY: &str = ".tmp-";

/// A writer has locked its folder by then.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// Age of a folder that counts as abandoned where locks do not work.
pub(super) const ABANDONED: Duration = Duration::from_secs(3600);

/// Makes the folder of a cache, and checks it.
pub(super) fn make(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    check(dir)
}

/// An error where others could have put something into the folder: entries are code that runs as this user.
pub(super) fn check(dir: &Path) -> io::Result<()> {
    let refused = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    let data = fs::metadata(dir)?;
    if !data.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let me = rustix::process::geteuid().as_raw();
    // What root put there, such as a cache that comes with a container, is as trustworthy as the system.
    if data.uid() != me && data.uid() != 0 {
        return refused(format!("it belongs to user {}, not to {me}", data.uid()));
    }
    if data.mode() & 0o022 == 0 {
        return Ok(());
    }
    // Made by an earlier release under a generous umask, or for us and still empty: then it is ours to close.
    if data.uid() == me && holds_only_entries(dir) {
        return fs::set_permissions(dir, Permissions::from_mode(0o700));
    }
    refused("others may write into it".to_string())
}

fn holds_only_entries(dir: &Path) -> bool {
    let ours = |name: &str| {
        name.starts_with(TEMPORARY)
            || name == ".lock"
            || (name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    fs::read_dir(dir)
        .is_ok_and(|items| items.flatten().all(|item| item.file_name().to_str().is_some_and(ours)))
}

/// Writes a new file that the user alone can read.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

/// Reads a regular file of at most `limit` bytes. Neither a pipe nor a device makes this wait, and no link leads elsewhere.
pub(super) fn read(path: &Path, limit: u64) -> Option<Vec<u8>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let data = file.metadata().ok()?;
    if !data.is_file() || data.len() > limit {
        return None;
    }
    let mut bytes = Vec::with_capacity(data.len() as usize);
    file.take(limit + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= limit).then_some(bytes)
}

/// A name in the cache's folder, whatever stands there being removed at the end unless it was renamed away.
pub(super) struct Temporary {
    pub path: PathBuf,
    /// Locked as long as its writer lives.
    _locked: Option<File>,
}

impl Temporary {
    /// A name that no other process or thread uses.
    pub fn name(dir: &Path) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Process ids repeat, on machines that share a home folder too: the time makes the name unique.
        let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |t| t.as_nanos());
        let path = dir.join(format!("{TEMPORARY}{}-{number}-{nanos:x}", std::process::id()));
        Temporary { path, _locked: None }
    }

    /// A new folder.
    pub fn create(dir: &Path) -> io::Result<Self> {
        let mut temporary = Temporary::name(dir);
        DirBuilder::new().mode(0o700).create(&temporary.path)?;
        temporary._locked = open_folder(&temporary.path).filter(|folder| folder.try_lock().is_ok());
        Ok(temporary)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Gone already when it was renamed.
        remove(&self.path);
    }
}

pub(super) fn open_folder(path: &Path) -> Option<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::DIRECTORY).bits() as i32;
    OpenOptions::new().read(true).custom_flags(flags).open(path).ok()
}

/// Removes whatever stands there.
fn remove(path: &Path) {
    let Ok(data) = fs::symlink_metadata(path) else { return };
    if !data.is_dir() {
        let _ = fs::remove_file(path);
    } else if fs::remove_dir_all(path).is_err() {
        // A damaged entry may have lost its permissions.
        let _ = fs::set_permissions(path, Permissions::from_mode(0o700));
        let _ = fs::remove_dir_all(path);
    }
}

/// Removes what killed writers left, once a process.
pub(super) fn sweep_once(dir: &Path) {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| sweep(dir, GRACE));
}

/// Removes folders of writers that are no more, if they are older than `grace`.
pub(super) fn sweep(dir: &Path, grace: Duration) {
    let Ok(items) = fs::read_dir(dir) else { return };
    for item in items.flatten() {
        if !item.file_name().to_string_lossy().starts_with(TEMPORARY) {
            continue;
        }
        let Ok(data) = item.metadata() else { continue };
        // A time in the future is some other machine's, or wrong.
        let age = data.modified().ok().and_then(|t| t.elapsed().ok()).unwrap_or(Duration::MAX);
        if age <= grace {
            continue;
        }
        let path = item.path();
        let abandoned = match open_folder(&path) {
            Some(folder) => match folder.try_lock() {
                Ok(()) => true,
                Err(fs::TryLockError::WouldBlock) => false,
                Err(fs::TryLockError::Error(_)) => age > ABANDONED,
            },
            // No folder at all, or one that cannot be read.
            None => true,
        };
        if abandoned {
            remove(&path);
        }
    }
}
