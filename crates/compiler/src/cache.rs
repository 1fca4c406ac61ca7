//! The on-disk cache of compiled kernels.
//!
//! An entry is a folder named by its key, which holds one file a stage (`NAME.ttir`, `.ttgir`, `.llir`, `.ptx`, `.cubin`,
//! `.json`) and `checksums`, which names the key, lists the others with length and BLAKE3 hash, and ends with a hash of itself:
//!
//! ```text
//! ~/.tilewright/cache/
//!   5c0f…e1/            the key, in hexadecimal
//!     add_kernel.ttir   add_kernel.ptx   add_kernel.cubin   add_kernel.json   checksums
//!   .tmp-4711-0/        an entry that a process is writing
//! ```
//!
//! Many processes use a cache at once, and each may be killed at any moment. What keeps it sound:
//!
//! - An entry is written in a folder of its own and *renamed* to its key. A rename is atomic, and it fails where a folder
//!   with files already stands: the first one stays, and the cache never holds half an entry under a key.
//! - A reader believes only files that match `checksums`, and a list that is whole and names the key that was asked for.
//!   Anything else (cut short by a full disk, damaged, copied from another entry, no regular file) is a miss, so the kernel is
//!   compiled again.
//! - A writer *exchanges* a damaged entry for its own, which is atomic, too. There is no lock, which a process could hold for
//!   ever: where two writers meet, each puts a sound entry in the place of what it found.
//! - A writer holds its folder locked (`flock`) until it ends, however it ends: an unlocked one is abandoned and removed.
//! - What is run as code must come from its user: folders are made for the user alone, and a folder that others own or may
//!   write into is not used (`folder`).
//! - A cache that cannot be written is used as far as it can be read; that is said once a process.
//! - It has a limit, for which what was not used for longest goes first (`limit`).

mod folder;
mod limit;

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use folder::Temporary;

/// Name of the file that lists an entry's other files.
const CHECKSUMS: &str = "checksums";

/// First line of that file; a change of the format changes it.
const HEADER: &str = "tilewright cache entry 2";

/// No list is longer, and no file of an entry: reading one must not exhaust the memory.
const LONGEST_LIST: u64 = 1 << 16;
const LONGEST_FILE: u64 = 1 << 30;

/// The name of an entry: a hash of everything that the compiled kernel depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(blake3::Hash);

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.to_hex())
    }
}

/// Makes a [`Key`] of named parts. Each part enters with its length, so no two lists of parts give the same bytes.
#[derive(Default)]
pub struct KeyBuilder {
    hasher: blake3::Hasher,
}

impl KeyBuilder {
    /// A key of nothing yet.
    pub fn new() -> Self {
        let mut builder = KeyBuilder::default();
        builder.part("format", HEADER);
        builder
    }

    /// Adds a part.
    pub fn part(&mut self, name: &str, value: impl AsRef<[u8]>) -> &mut Self {
        for bytes in [name.as_bytes(), value.as_ref()] {
            self.hasher.update(&(bytes.len() as u64).to_le_bytes());
            self.hasher.update(bytes);
        }
        self
    }

    /// The key of the parts so far.
    pub fn finish(&self) -> Key {
        Key(self.hasher.finalize())
    }
}

/// The files of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    files: Vec<(String, Vec<u8>)>,
}

impl Entry {
    /// An entry with no files yet.
    pub fn new() -> Self {
        Entry::default()
    }

    /// Adds the file of a stage: `ttir`, `ttgir`, `llir`, `ptx`, `cubin` or `json`.
    pub fn add(&mut self, stage: &str, bytes: impl Into<Vec<u8>>) -> &mut Self {
        self.files.push((stage.to_string(), bytes.into()));
        self
    }

    /// The file of a stage.
    pub fn get(&self, stage: &str) -> Option<&[u8]> {
        self.files.iter().find(|(s, _)| s == stage).map(|(_, bytes)| bytes.as_slice())
    }

    /// Whether it has a file of each stage that the other one has.
    fn has_stages_of(&self, other: &Entry) -> bool {
        other.files.iter().all(|(stage, _)| self.get(stage).is_some())
    }

    /// The file of a stage as text; `None` where it is missing or no UTF-8.
    pub fn text(&self, stage: &str) -> Option<&str> {
        self.get(stage).and_then(|bytes| std::str::from_utf8(bytes).ok())
    }
}

/// A folder of entries.
#[derive(Debug, Clone)]
pub struct Cache {
    dir: Option<PathBuf>,
    /// Whether [`Cache::get`] looks at all.
    read: bool,
    /// How many bytes its entries may have; 0 is any number.
    limit: u64,
}

impl Cache {
    /// The cache in a folder, which is made when it is first written to.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Cache { dir: Some(dir.into()), read: true, limit: 0 }
    }

    /// The same cache, whose entries have no more than about so many bytes; 0 is any number.
    pub fn limited_to(self, bytes: u64) -> Self {
        Cache { limit: bytes, ..self }
    }

    /// A cache that holds nothing.
    pub fn disabled() -> Self {
        Cache { dir: None, read: false, limit: 0 }
    }

    /// The user's cache: `TILEWRIGHT_CACHE_DIR`, else `TRITON_CACHE_DIR`, else `.tilewright/cache` in `TRITON_HOME` or `~`. With
    /// `TILEWRIGHT_ALWAYS_COMPILE=1` (or `TRITON_ALWAYS_COMPILE=1`) nothing is read from it. `TILEWRIGHT_CACHE_SIZE` is its limit in bytes, 16 GiB
    /// by default; 0 is none.
    pub fn from_environment() -> Self {
        let folder = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let dir = folder("TILEWRIGHT_CACHE_DIR").or_else(|| folder("TRITON_CACHE_DIR")).or_else(|| {
            let home = folder("TRITON_HOME").or_else(|| folder("HOME"))?;
            Some(home.join(".tilewright").join("cache"))
        });
        let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty() && v != OsStr::new("0"));
        let read = !set("TILEWRIGHT_ALWAYS_COMPILE") && !set("TRITON_ALWAYS_COMPILE");
        Cache { dir, read, limit: limit_from_environment() }
    }

    /// The folder of an entry, whether or not it is there.
    pub fn folder(&self, key: &Key) -> Option<PathBuf> {
        self.dir.as_ref().map(|dir| dir.join(key.to_string()))
    }

    /// The entry under a key. A damaged one counts as absent.
    pub fn get(&self, key: &Key) -> Option<Entry> {
        if !self.read {
            return None;
        }
        // A folder that may not be used is said to be so when the entry is to be written.
        folder::check(self.dir.as_ref()?).ok()?;
        let folder = self.folder(key)?;
        let _reading = limit::reading(&folder);
        read_entry(&folder, key)
    }

    /// Removes an entry whose files are as they were written, and yet of no use.
    pub fn discard(&self, key: &Key) {
        let Some(dir) = &self.dir else { return };
        if folder::check(dir).is_ok() {
            let aside = Temporary::name(dir);
            // Gone already, or not ours to remove: then the next writer finds it in its place.
            let _ = fs::rename(dir.join(key.to_string()), &aside.path);
        }
    }

    /// Stores an entry; `name` is the kernel's, which its files carry. Best effort: a cache that cannot be written is no
    /// error, since the caller has the kernel.
    pub fn put(&self, key: &Key, name: &str, entry: &Entry) {
        let Some(dir) = &self.dir else { return };
        match store(dir, key, name, entry) {
            Err(error) => warn_once(dir, &error),
            Ok(()) => {
                limit::written(key);
                let bytes = entry.files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
                if limit::is_due(key, bytes, self.limit) {
                    limit::keep(dir, self.limit);
                }
            }
        }
    }
}

/// A file name made of a kernel's name: what is no letter, digit or underscore becomes `_`, and a long one is cut.
fn file_stem(name: &str) -> String {
    let stem: String =
        name.chars().take(96).map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if stem.is_empty() { "kernel".to_string() } else { stem }
}

fn store(dir: &Path, key: &Key, name: &str, entry: &Entry) -> io::Result<()> {
    folder::make(dir)?;
    folder::sweep_once(dir);
    let temporary = Temporary::create(dir)?;
    let stem = file_stem(name);
    let mut list = format!("{HEADER}\nkey {key}\n");
    for (stage, bytes) in &entry.files {
        let file = format!("{stem}.{stage}");
        folder::write(&temporary.path.join(&file), bytes)?;
        let _ = writeln!(list, "{} {} {file}", blake3::hash(bytes).to_hex(), bytes.len());
    }
    // A line that stands last, and covers the others, tells a list that was cut short or edited from a whole one.
    let seal = blake3::hash(list.as_bytes()).to_hex();
    let _ = writeln!(list, "end {seal}");
    folder::write(&temporary.path.join(CHECKSUMS), list.as_bytes())?;

    let target = dir.join(key.to_string());
    // A turn ends without success only when another process changed what stands there in the meantime.
    for _ in 0..8 {
        if fs::rename(&temporary.path, &target).is_ok() {
            return Ok(());
        }
        // Something stands there: an entry that another process wrote meanwhile, which is as good as ours, or a damaged one.
        if read_entry(&target, key).is_some_and(|found| found.has_stages_of(entry)) {
            return Ok(());
        }
        match renameat_with(CWD, &temporary.path, CWD, &target, RenameFlags::EXCHANGE) {
            // What stood there is now removed in the place of ours.
            Ok(()) => return Ok(()),
            Err(Errno::NOENT) => {}
            // File systems that cannot exchange (NFS): for a moment nothing stands there.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                let aside = Temporary::name(dir);
                match fs::rename(&target, &aside.path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::other("an entry is changed by others all the time"))
}

/// A file of an entry, as its list has it.
struct Listed {
    hash: String,
    length: u64,
    name: String,
}

/// The files that a list names; `None` where it is not whole, or another entry's.
fn files_of(list: &[u8], key: &str) -> Option<Vec<Listed>> {
    let list = std::str::from_utf8(list).ok()?;
    let (rest, seal) = list.strip_suffix('\n')?.rsplit_once("\nend ")?;
    let covered = &list[..rest.len() + 1];
    if blake3::hash(covered.as_bytes()).to_hex().as_str() != seal {
        return None;
    }
    let mut lines = covered.lines();
    if lines.next() != Some(HEADER) || lines.next()?.strip_prefix("key ") != Some(key) {
        return None;
    }
    let listed = lines.map(|line| {
        let mut fields = line.splitn(3, ' ');
        let (hash, length, name) = (fields.next()?, fields.next()?, fields.next()?);
        // The list is not to be believed either: a name must stay in the folder.
        if name.contains(['/', '\\']) {
            return None;
        }
        let length: u64 = length.parse().ok().filter(|&n| n <= LONGEST_FILE)?;
        Some(Listed { hash: hash.to_string(), length, name: name.to_string() })
    });
    listed.collect()
}

/// Reads and checks an entry.
fn read_entry(folder: &Path, key: &Key) -> Option<Entry> {
    let list = folder::read(&folder.join(CHECKSUMS), LONGEST_LIST)?;
    let mut entry = Entry::new();
    for Listed { hash, length, name } in files_of(&list, &key.to_string())? {
        let (_, stage) = name.rsplit_once('.')?;
        let bytes = folder::read(&folder.join(&name), length)?;
        if bytes.len() as u64 != length || blake3::hash(&bytes).to_hex().as_str() != hash {
            return None;
        }
        entry.files.push((stage.to_string(), bytes));
    }
    Some(entry)
}

/// What `TILEWRIGHT_CACHE_SIZE` says, and the default where it is no number, which is said once.
fn limit_from_environment() -> u64 {
    static WARNED: OnceLock<()> = OnceLock::new();
    let Some(text) = std::env::var_os("TILEWRIGHT_CACHE_SIZE").filter(|text| !text.is_empty()) else {
        return limit::DEFAULT;
    };
    text.to_str().and_then(|text| text.trim().parse().ok()).unwrap_or_else(|| {
        WARNED.get_or_init(|| {
            let text = text.to_string_lossy();
            eprintln!("tilewright: warning: TILEWRIGHT_CACHE_SIZE={text}: a number of bytes is wanted");
        });
        limit::DEFAULT
    })
}

#[cold]
fn warn_once(dir: &Path, error: &io::Error) {
    static WARNED: OnceLock<()> = OnceLock::new();
    WARNED.get_or_init(|| {
        eprintln!(
            "tilewright: warning: the cache {} cannot be written ({error}); kernels are compiled anew in each process. \
             Set TILEWRIGHT_CACHE_DIR to a folder of your own",
            dir.display()
        );
    });
}

#[cfg(test)]
mod tests;
