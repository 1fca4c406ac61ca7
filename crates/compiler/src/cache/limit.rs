//! The limit of the cache: where its entries have more bytes, those go first that nobody has read for longest.
//!
//! When an entry was last read is the time of its list, which each reader sets. What goes is an entry as it was written, and nothing else: a
//! folder named by a key, with a sound list of exactly the files that are in it. Whatever else lies in the cache, damaged entries too, is
//! left alone, and does not count.
//!
//! Readers hold an entry's folder locked (`flock`, shared), and who removes it wants the lock for itself: what is being read stays. So does
//! what this process wrote.
//!
//! To look through the cache costs a file an entry. So not every writer does: who adds a thousandth of the limit does with a chance of 64 in
//! a thousand, and whoever writes, and in however many processes, the cache grows by about a 64th of its limit between two looks. Where an entry
//! is larger than that, each writer looks.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use rustix::fs::{AtFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, utimensat};

use super::folder::{ABANDONED, Temporary, open_folder, read};
use super::{CHECKSUMS, Key, LONGEST_LIST, Listed, files_of};

/// The limit where the environment says none: some fifty thousand kernels.
pub(super) const DEFAULT: u64 = 16 << 30;

/// How often writers look through the cache while it grows by its limit.
const LOOKS: u128 = 64;

/// The keys of what this process wrote.
static WRITTEN: Mutex<Option<HashSet<String>>> = Mutex::new(None);

/// The entry is not removed by this process.
pub(super) fn written(key: &Key) {
    let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    written.get_or_insert_default().insert(key.to_string());
}

fn is_written_here(key: &str) -> bool {
    let written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    written.as_ref().is_some_and(|keys| keys.contains(key))
}

/// Says that an entry is read now, and keeps it as long as what this gives lives.
pub(super) fn reading(folder: &Path) -> Option<File> {
    let folder = open_folder(folder)?;
    // Whoever has it locked has just written it, or removes it: then the reader finds nothing.
    let _ = folder.try_lock_shared();
    let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    // In a cache that others own the order is that of writing.
    let times = Timestamps { last_access: omit, last_modification: now };
    let _ = utimensat(&folder, CHECKSUMS, &times, AtFlags::SYMLINK_NOFOLLOW);
    Some(folder)
}

/// Whether the writer of an entry of so many bytes looks through the cache.
pub(super) fn is_due(key: &Key, bytes: u64, limit: u64) -> bool {
    // Of keys one is as likely as another.
    let random = key.0.as_bytes()[..8].iter().fold(0u128, |n, &byte| n << 8 | u128::from(byte));
    limit > 0 && random * u128::from(limit) < (u128::from(bytes) * LOOKS) << 64
}

/// Removes entries until the others have no more bytes than the limit.
pub(super) fn keep(dir: &Path, limit: u64) {
    let mut entries = entries(dir);
    let mut bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
    entries.sort_by_key(|entry| entry.used);
    for entry in &entries {
        if bytes <= limit {
            return;
        }
        // (What is damaged does not count, nor what another process has just removed.)
        if entry.remove(dir) || !entry.is_as_written() {
            bytes -= entry.bytes;
        }
    }
}

/// An entry of the cache.
struct Found {
    folder: PathBuf,
    files: Vec<Listed>,
    bytes: u64,
    used: SystemTime,
}

fn entries(dir: &Path) -> Vec<Found> {
    let Ok(items) = fs::read_dir(dir) else { return Vec::new() };
    items.flatten().filter_map(|item| Found::at(item.path())).collect()
}

fn last_used(folder: &Path) -> Option<SystemTime> {
    fs::symlink_metadata(folder.join(CHECKSUMS)).ok()?.modified().ok()
}

impl Found {
    fn at(folder: PathBuf) -> Option<Found> {
        let key = folder.file_name()?.to_str().filter(|name| name.len() == 64)?;
        let used = last_used(&folder)?;
        let list = read(&folder.join(CHECKSUMS), LONGEST_LIST)?;
        let files = files_of(&list, key)?;
        let bytes = list.len() as u64 + files.iter().map(|file| file.length).sum::<u64>();
        Some(Found { folder, files, bytes, used })
    }

    fn key(&self) -> &str {
        self.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Removes it, unless it is in use.
    fn remove(&self, dir: &Path) -> bool {
        if is_written_here(self.key()) {
            return false;
        }
        let Some(folder) = open_folder(&self.folder) else { return false };
        let free = match folder.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => false,
            // Where locks do not work a reader is done by then.
            Err(TryLockError::Error(_)) => self.used.elapsed().is_ok_and(|age| age > ABANDONED),
        };
        // It may have been read, and be so no more, since it was looked at.
        if !free || last_used(&self.folder) != Some(self.used) || !self.is_as_written() {
            return false;
        }
        let aside = Temporary::name(dir);
        fs::rename(&self.folder, &aside.path).is_ok()
    }

    /// Whether exactly the files of its list are there, as long as they were.
    fn is_as_written(&self) -> bool {
        let Ok(items) = fs::read_dir(&self.folder) else { return false };
        let (mut found, mut others) = (0, 0);
        for item in items.flatten() {
            let (name, data) = (item.file_name(), item.metadata().ok().filter(|data| data.is_file()));
            let listed = self.files.iter().find(|file| name == *file.name);
            match (data, listed) {
                (Some(data), Some(file)) if data.len() == file.length => found += 1,
                (Some(_), None) if name == CHECKSUMS => {}
                _ => others += 1,
            }
        }
        found == self.files.len() && others == 0
    }
}
