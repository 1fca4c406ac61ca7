//! The cache under damage, kills and many processes at once.

use super::folder::sweep;
use super::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

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

/// Copies a folder of files.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("makes");
    for file in fs::read_dir(from).expect("lists").flatten() {
        fs::copy(file.path(), to.join(file.file_name())).expect("copies");
    }
}

fn pipe(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(CWD, path, rustix::fs::FileType::Fifo, mode, 0).expect("makes a pipe");
}

fn edit_list(folder: &Path, edit: impl FnOnce(&mut Vec<&str>)) {
    let list = fs::read_to_string(folder.join(CHECKSUMS)).expect("reads");
    let mut lines: Vec<&str> = list.lines().collect();
    edit(&mut lines);
    fs::write(folder.join(CHECKSUMS), lines.join("\n") + "\n").expect("writes");
}

/// Makes the last line of a list right again.
fn seal(folder: &Path) {
    let list = fs::read_to_string(folder.join(CHECKSUMS)).expect("reads");
    let (rest, _) = list.rsplit_once("end ").expect("a last line");
    let list = format!("{rest}end {}\n", blake3::hash(rest.as_bytes()).to_hex());
    fs::write(folder.join(CHECKSUMS), list).expect("writes");
}

#[test]
fn each_kind_of_damage_is_a_miss_and_is_repaired() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 17] = [
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
        ("it is another entry", |f| {
            let other = f.parent().expect("a folder").join(key(8).to_string());
            fs::remove_dir_all(f).expect("removes");
            copy(&other, f);
        }),
        ("the list lacks a file", |f| {
            edit_list(f, |lines| lines.retain(|line| !line.ends_with(".cubin")));
        }),
        ("the list is sealed, and lacks a file", |f| {
            edit_list(f, |lines| lines.retain(|line| !line.ends_with(".cubin")));
            seal(f);
        }),
        ("the list is a pipe", |f| {
            fs::remove_file(f.join(CHECKSUMS)).expect("removes");
            pipe(&f.join(CHECKSUMS));
        }),
        ("a file is a pipe", |f| {
            fs::remove_file(f.join("k.cubin")).expect("removes");
            pipe(&f.join("k.cubin"));
        }),
        ("a file is a device without end", |f| {
            fs::remove_file(f.join("k.cubin")).expect("removes");
            symlink("/dev/zero", f.join("k.cubin")).expect("links");
        }),
        ("a file is in its place", |f| {
            fs::remove_dir_all(f).expect("removes");
            fs::write(f, "no folder").expect("writes");
        }),
        ("a pipe is in its place", |f| {
            fs::remove_dir_all(f).expect("removes");
            pipe(f);
        }),
        ("a link to nowhere is in its place", |f| {
            fs::remove_dir_all(f).expect("removes");
            symlink("/nowhere/at/all", f).expect("links");
        }),
    ];
    for (what, damage) in damages {
        let dir = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(dir.path());
        cache.put(&key(7), "k", &entry(7));
        cache.put(&key(8), "k", &entry(8));
        damage(&cache.folder(&key(7)).expect("a path"));
        if !what.contains("sealed") {
            assert_eq!(cache.get(&key(7)), None, "{what}: believed");
        }
        cache.put(&key(7), "k", &entry(7));
        assert_eq!(cache.get(&key(7)), Some(entry(7)), "{what}: not repaired");
        let left = fs::read_dir(dir.path()).expect("lists").flatten();
        let left: Vec<_> = left.filter(|f| f.file_name().to_string_lossy().starts_with(".tmp")).collect();
        assert!(left.is_empty(), "{what}: left {left:?}");
        assert_eq!(cache.get(&key(8)), Some(entry(8)), "{what}: the other entry");
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
    let folder = cache.folder(&key(1)).expect("a path");
    for elsewhere in ["../../secret.json", "link.json"] {
        symlink("../../secret.json", folder.join("link.json")).expect("links");
        let hash = blake3::hash(b"{}").to_hex();
        let list = format!("{HEADER}\nkey {}\n{hash} 2 {elsewhere}\nend \n", key(1));
        fs::write(folder.join(CHECKSUMS), list).expect("writes");
        seal(&folder);
        assert_eq!(cache.get(&key(1)), None);
        cache.put(&key(1), "k", &entry(1));
        assert_eq!(cache.get(&key(1)), Some(entry(1)));
    }
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
    let live = Temporary::create(dir.path()).expect("makes");
    let abandoned = [dir.path().join(".tmp-1-0-0"), dir.path().join(".tmp-1-1-0")];
    fs::create_dir(&abandoned[0]).expect("makes");
    fs::write(abandoned[0].join("k.cubin"), "half").expect("writes");
    pipe(&abandoned[1]);
    sweep(dir.path(), Duration::from_secs(3600));
    assert!(abandoned.iter().all(|path| path.exists()));
    std::thread::sleep(Duration::from_millis(5));
    sweep(dir.path(), Duration::ZERO);
    assert!(!abandoned.iter().any(|path| path.exists()));
    assert!(live.path.exists());
    assert_eq!(cache.get(&key(1)), Some(entry(1)));
}

#[test]
fn what_a_killed_writer_left_is_swept_by_the_next_process() {
    let dir = tempfile::tempdir().expect("a folder");
    let left = || {
        let items = fs::read_dir(dir.path()).expect("lists").flatten();
        items.filter(|f| f.file_name().to_string_lossy().starts_with(".tmp-")).count()
    };
    // Processes are killed as soon as they are seen to write, until a kill comes before the writer's own end.
    for _ in 0..200 {
        let mut victim = child(dir.path());
        while left() == 0 && victim.try_wait().is_ok_and(|ended| ended.is_none()) {
            std::thread::yield_now();
        }
        victim.kill().expect("is killed");
        victim.wait().expect("ends");
        if left() > 0 {
            break;
        }
        for entry in fs::read_dir(dir.path()).expect("lists").flatten() {
            fs::remove_dir_all(entry.path()).expect("removes");
        }
    }
    assert!(left() > 0, "no kill hit a writer");
    std::thread::sleep(folder::GRACE);
    // What the first write of a process does.
    sweep(dir.path(), folder::GRACE);
    assert_eq!(left(), 0);
}

#[test]
fn folders_and_files_are_for_the_user_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    let place = dir.path().join("deep").join("cache");
    let cache = Cache::at(&place);
    cache.put(&key(1), "k", &entry(1));
    let mode = |path: &Path| fs::metadata(path).expect("is there").mode() & 0o7777;
    let entry_folder = cache.folder(&key(1)).expect("a path");
    for folder in [&dir.path().join("deep"), &place, &entry_folder] {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
    for file in fs::read_dir(&entry_folder).expect("lists").flatten() {
        assert_eq!(mode(&file.path()), 0o600, "{:?}", file.path());
    }
    // A cache of an earlier release is closed; what is no cache is left as it is, and not used.
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("sets");
    open(&place);
    assert_eq!(cache.get(&key(1)), Some(entry(1)));
    assert_eq!(mode(&place), 0o700);
    fs::write(place.join("letter.txt"), "mine").expect("writes");
    open(&place);
    assert_eq!(cache.get(&key(1)), None);
    cache.put(&key(2), "k", &entry(2));
    assert_eq!(mode(&place), 0o777);
    assert!(!cache.folder(&key(2)).expect("a path").exists());
}

#[test]
fn a_folder_of_another_user_is_not_used() {
    let dir = tempfile::tempdir().expect("a folder");
    let cache = Cache::at(dir.path());
    cache.put(&key(1), "k", &entry(1));
    // Only root can give a folder away.
    if std::os::unix::fs::chown(dir.path(), Some(4711), None).is_err() {
        return;
    }
    assert_eq!(cache.get(&key(1)), None);
    cache.put(&key(2), "k", &entry(2));
    assert!(!cache.folder(&key(2)).expect("a path").exists());
}

#[test]
fn an_entry_of_no_use_is_discarded() {
    let dir = tempfile::tempdir().expect("a folder");
    let cache = Cache::at(dir.path());
    cache.put(&key(1), "k", &entry(2));
    cache.discard(&key(1));
    cache.discard(&key(1));
    assert_eq!(cache.get(&key(1)), None);
    cache.put(&key(1), "k", &entry(1));
    assert_eq!(cache.get(&key(1)), Some(entry(1)));
    assert_eq!(fs::read_dir(dir.path()).expect("lists").count(), 1);
}

const CHILD: &str = "TILEWRIGHT_CACHE_TEST_CHILD";
const KEYS: u32 = 8;

/// What the processes of the tests below do: read, damage at times, write, make room, and never see a wrong entry.
#[test]
#[ignore = "runs as a child of the tests below"]
fn child_process() {
    let Some(dir) = std::env::var_os(CHILD) else { return };
    // Every other one makes room: three of the entries fit.
    let cache = Cache::at(dir).limited_to(u64::from(std::process::id() % 2) * 350_000);
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

/// Makes an entry as old as that, as if another process had written it.
fn written_elsewhere(cache: &Cache, n: u32, seconds_ago: u64) {
    let folder = cache.folder(&key(n)).expect("a path");
    fs::create_dir_all(folder.parent().expect("a folder")).expect("makes");
    // A process of its own writes under its own name of the cache: what is here compiled stays.
    let other = tempfile::tempdir().expect("a folder");
    store(other.path(), &key(n), "k", &entry(n)).expect("writes");
    copy(&other.path().join(key(n).to_string()), &folder);
    let then = std::time::SystemTime::now() - Duration::from_secs(seconds_ago);
    let list = fs::File::options().write(true).open(folder.join(CHECKSUMS)).expect("opens");
    list.set_modified(then).expect("sets");
}

#[test]
fn what_was_not_used_for_longest_goes_first() {
    let dir = tempfile::tempdir().expect("a folder");
    let cache = Cache::at(dir.path().join("cache")).limited_to(350_000);
    let there = |n: u32| cache.folder(&key(n)).is_some_and(|folder| folder.exists());
    for n in 1..=5 {
        written_elsewhere(&cache, n, 1000 * u64::from(n));
    }
    // The oldest is read, the next is being read, and another one is damaged.
    assert_eq!(cache.get(&key(5)), Some(entry(5)));
    let reading = limit::reading(&cache.folder(&key(4)).expect("a path"));
    let old = std::time::SystemTime::now() - Duration::from_secs(4000);
    let list = cache.folder(&key(4)).expect("a path").join(CHECKSUMS);
    fs::File::options().write(true).open(list).expect("opens").set_modified(old).expect("sets");
    fs::remove_file(cache.folder(&key(3)).expect("a path").join("k.json")).expect("removes");
    fs::write(dir.path().join("cache/letter.txt"), vec![7; 1_000_000]).expect("writes");
    let foreign = dir.path().join("cache").join("f".repeat(64));
    fs::create_dir(&foreign).expect("makes");
    fs::write(foreign.join(CHECKSUMS), "not ours").expect("writes");

    cache.put(&key(6), "k", &entry(6));
    assert_eq!([1, 2, 3, 4, 5, 6].map(there), [false, false, true, true, true, true]);
    drop(reading);
    // Now it goes, and what this process wrote does not, however small the limit.
    cache.clone().limited_to(1).put(&key(7), "k", &entry(7));
    assert_eq!([3, 4, 5, 6, 7].map(there), [true, false, false, true, true]);
    assert_eq!(cache.get(&key(6)), Some(entry(6)));
    assert!(foreign.exists() && dir.path().join("cache/letter.txt").exists());
    let left = fs::read_dir(dir.path().join("cache")).expect("lists").count();
    assert_eq!(left, 5, "nothing is left of what was removed");
}

#[test]
fn a_cache_without_a_limit_keeps_all() {
    let dir = tempfile::tempdir().expect("a folder");
    let cache = Cache::at(dir.path());
    written_elsewhere(&cache, 1, 1_000_000);
    cache.put(&key(2), "k", &entry(2));
    assert_eq!(cache.get(&key(1)), Some(entry(1)));
}

#[test]
fn writers_look_as_often_as_the_cache_grows() {
    let looks = |bytes, limit| (0..10_000).filter(|&n| limit::is_due(&key(n), bytes, limit)).count();
    assert_eq!(looks(1 << 20, 0), 0);
    assert_eq!(looks(1 << 20, 64 << 20), 10_000);
    // A thousandth of the limit each: ten times the limit in all.
    let times = looks(1_000, 1_000_000);
    assert!((540..740).contains(&times), "{times}");
}
