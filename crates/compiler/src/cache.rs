//! The on-disk cache of compiled kernels.
//!
//! An entry is a folder named by its key, which holds one file a stage (`NAME.ttir`, `.ttgir`, `.llir`, `.ptx`, `.cubin`,
//! `.json`) and `checksums`, which lists the others with length and BLAKE3 hash:
//!
//! ```text
//! ~/.tilewright/cache/
//!   5c0f…e1/            the key, in hexadecimal
//!     add_kernel.ttir   add_kernel.ptx   add_kernel.cubin   add_kernel.json   checksums
//!   .tmp-4711-0/        an entry that a process is writing
//!   .lock               held while a damaged entry is replaced
//! ```
//!
//! Many processes use a cache at once, and each may be killed at any moment. What keeps it sound:
//!
//! - An entry is written in a folder of its own and *renamed* to its key. A rename is atomic, and it fails where a folder
//!   with files already stands: the first one stays, and the cache never holds half an entry under a key.
//! - A reader believes only files that match `checksums`. Anything else (cut short by a full disk, damaged, being replaced at
//!   this moment) is a miss, so the kernel is compiled again.
//! - A damaged entry is replaced by the next writer, under the lock, after it has seen once more that it is damaged: a
//!   sound entry is never removed.
//! - A cache that cannot be written is used as far as it can be read; that is said once a process.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Name of the file that lists an entry's other files.
const CHECKSUMS: &str = "checksums";

/// First line of that file; a change of the format changes it.
const HEADER: &str = "tilewright cache entry 1";

/// Abandoned folders of writers are removed when they are older than this.
const ABANDONED: Duration = Duration::from_secs(3600);

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
}

impl Cache {
    /// The cache in a folder, which is made when it is first written to.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Cache { dir: Some(dir.into()), read: true }
    }

    /// A cache that holds nothing.
    pub fn disabled() -> Self {
        Cache { dir: None, read: false }
    }

    /// The user's cache: `TILEWRIGHT_CACHE_DIR`, else `TRITON_CACHE_DIR`, else `~/.tilewright/cache`. With
    /// `TILEWRIGHT_ALWAYS_COMPILE=1` (or `TRITON_ALWAYS_COMPILE=1`) nothing is read from it.
    pub fn from_environment() -> Self {
        let folder = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let dir = folder("TILEWRIGHT_CACHE_DIR")
            .or_else(|| folder("TRITON_CACHE_DIR"))
            .or_else(|| folder("HOME").map(|home| home.join(".tilewright").join("cache")));
        let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty() && v != OsStr::new("0"));
        let read = !set("TILEWRIGHT_ALWAYS_COMPILE") && !set("TRITON_ALWAYS_COMPILE");
        Cache { dir, read }
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
        read_entry(&self.folder(key)?)
    }

    /// Stores an entry; `name` is the kernel's, which its files carry. Best effort: a cache that cannot be written is no
    /// error, since the caller has the kernel.
    pub fn put(&self, key: &Key, name: &str, entry: &Entry) {
        let Some(dir) = &self.dir else { return };
        if let Err(error) = store(dir, key, name, entry) {
            warn_once(dir, &error);
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
    fs::create_dir_all(dir)?;
    remove_abandoned(dir);
    let temporary = Temporary::create(dir)?;
    let stem = file_stem(name);
    let mut checksums = format!("{HEADER}\n");
    for (stage, bytes) in &entry.files {
        let file = format!("{stem}.{stage}");
        fs::write(temporary.path.join(&file), bytes)?;
        checksums.push_str(&format!("{} {} {file}\n", blake3::hash(bytes).to_hex(), bytes.len()));
    }
    // A line that stands last tells a list that was cut short from a whole one.
    checksums.push_str("end\n");
    let mut list = File::create(temporary.path.join(CHECKSUMS))?;
    list.write_all(checksums.as_bytes())?;
    drop(list);

    let target = dir.join(key.to_string());
    if fs::rename(&temporary.path, &target).is_ok() {
        return Ok(());
    }
    // Something stands there: an entry that another process wrote meanwhile, which is as good as ours, or a damaged one.
    if read_entry(&target).is_some() {
        return Ok(());
    }
    let lock = File::create(dir.join(".lock"))?;
    lock.lock()?;
    // Others may have been faster in getting the lock.
    if read_entry(&target).is_some() {
        return Ok(());
    }
    let damaged = Temporary::name(dir);
    match fs::rename(&target, &damaged.path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    match fs::rename(&temporary.path, &target) {
        Ok(()) => Ok(()),
        // A writer that found the place free does not take the lock.
        Err(_) if read_entry(&target).is_some() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Reads and checks an entry.
fn read_entry(folder: &Path) -> Option<Entry> {
    let list = fs::read_to_string(folder.join(CHECKSUMS)).ok()?;
    let mut lines = list.lines();
    if lines.next() != Some(HEADER) || lines.next_back() != Some("end") || !list.ends_with('\n') {
        return None;
    }
    let mut entry = Entry::new();
    for line in lines {
        let mut fields = line.splitn(3, ' ');
        let (hash, length, file) = (fields.next()?, fields.next()?, fields.next()?);
        let (_, stage) = file.rsplit_once('.')?;
        // The list is not to be believed either: a name must stay in the folder.
        if file.contains(['/', '\\']) {
            return None;
        }
        let bytes = fs::read(folder.join(file)).ok()?;
        if bytes.len().to_string() != length || blake3::hash(&bytes).to_hex().as_str() != hash {
            return None;
        }
        entry.files.push((stage.to_string(), bytes));
    }
    Some(entry)
}

/// A folder that is removed, with all in it, unless it was renamed away.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    /// A name that no other process or thread uses.
    fn name(dir: &Path) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Process ids repeat, on machines that share a home folder too: the time makes the name unique.
        let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |t| t.as_nanos());
        Temporary { path: dir.join(format!(".tmp-{}-{number}-{nanos:x}", std::process::id())) }
    }

    fn create(dir: &Path) -> io::Result<Self> {
        let temporary = Temporary::name(dir);
        fs::create_dir(&temporary.path)?;
        Ok(temporary)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Gone already when it was renamed.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes what killed writers left, once a process.
fn remove_abandoned(dir: &Path) {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| sweep(dir, ABANDONED));
}

fn sweep(dir: &Path, older_than: Duration) {
    let Ok(items) = fs::read_dir(dir) else { return };
    for item in items.flatten() {
        let age = item.metadata().and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok());
        let abandoned = age.is_some_and(|age| age > older_than);
        if abandoned && item.file_name().to_string_lossy().starts_with(".tmp-") {
            let _ = fs::remove_dir_all(item.path());
        }
    }
}

#[cold]
fn warn_once(dir: &Path, error: &io::Error) {
    static WARNED: OnceLock<()> = OnceLock::new();
    WARNED.get_or_init(|| {
        eprintln!(
            "tilewright: warning: the cache {} cannot be written ({error}); kernels are compiled anew in each process. \
             Set TILEWRIGHT_CACHE_DIR to a folder that can be",
            dir.display()
        );
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    fn key(n: u32) -> Key {
        KeyBuilder::new().part("n", n.to_le_bytes()).finish()
    }

    fn entry(n: u32) -> Entry {
        let mut entry = Entry::new();
        entry.add("ttir", format!("module {{ {n} }}"));
        entry.add("cubin", vec![n as u8; 100_000]);
        entry.add("json", "{}");
        entry
    }

    #[test]
    fn what_was_put_is_got() {
        let dir = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(dir.path().join("deep").join("er"));
        assert_eq!(cache.get(&key(1)), None);
        cache.put(&key(1), "add<T>/../x", &entry(1));
        cache.put(&key(2), "", &entry(2));
        assert_eq!(cache.get(&key(1)), Some(entry(1)));
        assert_eq!(cache.get(&key(2)), Some(entry(2)));
        assert!(cache.folder(&key(1)).is_some_and(|f| f.join("add_T_____x.cubin").is_file()));
        assert_eq!(cache.get(&key(1)).as_ref().and_then(|e| e.text("ttir")), Some("module { 1 }"));
        assert_eq!(cache.get(&key(3)), None);
    }

    #[test]
    fn parts_do_not_run_together() {
        let two = |a: &str, b: &str| KeyBuilder::new().part("s", a).part("s", b).finish();
        assert_ne!(two("ab", "c"), two("a", "bc"));
        assert_ne!(KeyBuilder::new().part("a", "b").finish(), KeyBuilder::new().part("ab", "").finish());
    }

    #[test]
    fn each_kind_of_damage_is_a_miss_and_is_repaired() {
        type Damage = fn(&Path);
        let damages: [(&str, Damage); 8] = [
            ("a bit is flipped", |f| {
                let path = f.join("k.cubin");
                let mut bytes = fs::read(&path).expect("reads");
                bytes[5000] ^= 1;
                fs::write(&path, bytes).expect("writes");
            }),
            ("a file is cut short", |f| fs::write(f.join("k.cubin"), [7u8; 10]).expect("writes")),
            ("a file is empty", |f| fs::write(f.join("k.ttir"), "").expect("writes")),
            ("a file is gone", |f| fs::remove_file(f.join("k.json")).expect("removes")),
            ("the list is gone", |f| fs::remove_file(f.join(CHECKSUMS)).expect("removes")),
            ("the list is cut short", |f| {
                let list = fs::read_to_string(f.join(CHECKSUMS)).expect("reads");
                let lines: Vec<&str> = list.lines().take(2).collect();
                fs::write(f.join(CHECKSUMS), lines.join("\n") + "\n").expect("writes");
            }),
            ("the list is no text", |f| fs::write(f.join(CHECKSUMS), [0xff, 0xfe]).expect("writes")),
            ("the folder is empty", |f| {
                fs::remove_dir_all(f).expect("removes");
                fs::create_dir(f).expect("makes");
            }),
        ];
        for (what, damage) in damages {
            let dir = tempfile::tempdir().expect("a folder");
            let cache = Cache::at(dir.path());
            cache.put(&key(7), "k", &entry(7));
            damage(&cache.folder(&key(7)).expect("a path"));
            assert_eq!(cache.get(&key(7)), None, "{what}: believed");
            cache.put(&key(7), "k", &entry(7));
            assert_eq!(cache.get(&key(7)), Some(entry(7)), "{what}: not repaired");
            let left = fs::read_dir(dir.path()).expect("lists").flatten();
            let left: Vec<_> = left.filter(|f| f.file_name().to_string_lossy().starts_with(".tmp")).collect();
            assert!(left.is_empty(), "{what}: left {left:?}");
        }
    }

    #[test]
    fn a_sound_entry_stays() {
        let dir = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(dir.path());
        cache.put(&key(1), "k", &entry(1));
        let file = cache.folder(&key(1)).expect("a path").join("k.cubin");
        let before = fs::metadata(&file).and_then(|m| m.modified()).expect("a time");
        cache.put(&key(1), "k", &entry(1));
        assert_eq!(fs::metadata(&file).and_then(|m| m.modified()).expect("a time"), before);
    }

    #[test]
    fn a_list_cannot_point_elsewhere() {
        let dir = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(dir.path().join("cache"));
        cache.put(&key(1), "k", &entry(1));
        fs::write(dir.path().join("secret.json"), "{}").expect("writes");
        let list = cache.folder(&key(1)).expect("a path").join(CHECKSUMS);
        let hash = blake3::hash(b"{}").to_hex();
        fs::write(list, format!("{HEADER}\n{hash} 2 ../../secret.json\nend\n")).expect("writes");
        assert_eq!(cache.get(&key(1)), None);
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_no_error() {
        let dir = tempfile::tempdir().expect("a folder");
        let blocked = dir.path().join("file");
        fs::write(&blocked, "").expect("writes");
        let cache = Cache::at(blocked.join("cache"));
        cache.put(&key(1), "k", &entry(1));
        assert_eq!(cache.get(&key(1)), None);
        Cache::disabled().put(&key(1), "k", &entry(1));
    }

    #[test]
    fn only_abandoned_folders_are_swept() {
        let dir = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(dir.path());
        cache.put(&key(1), "k", &entry(1));
        fs::create_dir(dir.path().join(".tmp-1-0-0")).expect("makes");
        sweep(dir.path(), Duration::from_secs(3600));
        assert!(dir.path().join(".tmp-1-0-0").exists());
        std::thread::sleep(Duration::from_millis(5));
        sweep(dir.path(), Duration::ZERO);
        assert!(!dir.path().join(".tmp-1-0-0").exists());
        assert_eq!(cache.get(&key(1)), Some(entry(1)));
    }

    const CHILD: &str = "TILEWRIGHT_CACHE_TEST_CHILD";
    const KEYS: u32 = 8;

    /// What the processes of the tests below do: read, damage at times, write, and never see a wrong entry.
    #[test]
    #[ignore = "runs as a child of the tests below"]
    fn child_process() {
        let Some(dir) = std::env::var_os(CHILD) else { return };
        let cache = Cache::at(dir);
        let mut random = u64::from(std::process::id()).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        for _ in 0..200 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let n = (random >> 8) as u32 % KEYS;
            match cache.get(&key(n)) {
                Some(found) => assert_eq!(found, entry(n), "an entry holds what was never put there"),
                None => cache.put(&key(n), "k", &entry(n)),
            }
            if random.is_multiple_of(10) {
                let file = cache.folder(&key(n)).expect("a path").join("k.cubin");
                let _ = fs::write(file, "damaged"); // may be gone for a moment
            }
        }
    }

    fn child(dir: &Path) -> Child {
        Command::new(std::env::current_exe().expect("this program"))
            .args(["cache::tests::child_process", "--exact", "--ignored"])
            .env(CHILD, dir)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts")
    }

    #[test]
    fn processes_at_once_never_see_a_wrong_entry() {
        let dir = tempfile::tempdir().expect("a folder");
        let children: Vec<Child> = (0..8).map(|_| child(dir.path())).collect();
        for child in children {
            let output = child.wait_with_output().expect("ends");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        let cache = Cache::at(dir.path());
        for n in 0..KEYS {
            cache.put(&key(n), "k", &entry(n));
            assert_eq!(cache.get(&key(n)), Some(entry(n)));
        }
    }

    #[test]
    fn a_kill_at_any_moment_leaves_a_usable_cache() {
        let dir = tempfile::tempdir().expect("a folder");
        for round in 0..20u64 {
            let mut victim = child(dir.path());
            std::thread::sleep(Duration::from_millis(3 + round));
            victim.kill().expect("is killed");
            victim.wait().expect("ends");
            let cache = Cache::at(dir.path());
            for n in 0..KEYS {
                if let Some(found) = cache.get(&key(n)) {
                    assert_eq!(found, entry(n));
                }
            }
        }
        let cache = Cache::at(dir.path());
        for n in 0..KEYS {
            cache.put(&key(n), "k", &entry(n));
            assert_eq!(cache.get(&key(n)), Some(entry(n)));
        }
    }
}
