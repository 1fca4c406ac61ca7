//! Which programs and libraries take part in a compilation, for its cache key: an entry that another `ptxas` made must not
//! be found.

use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use tilewright_ir::dialect::tt;
use tilewright_ir::{Diagnostic, Module, Options};
use tilewright_target::{PythonEnvironment, Target, Toolchain};

/// A hash of the compiler's own sources.
pub const BUILD_ID: &str = env!("TILEWRIGHT_BUILD_ID");

/// Files up to this size are told apart by what is in them: scripts that start the real program, and `libdevice`.
const READ_WHOLE: u64 = 4 << 20;

/// What kernels for a target are made with: the compiler and its tools, each with its version, by name.
///
/// # Errors
/// A tool that was asked for by name and isn't there.
pub fn made_with(
    target: &dyn Target,
    python: &PythonEnvironment,
) -> Result<Vec<(&'static str, String)>, Diagnostic> {
    Ok(facts(&*target.toolchain(python)?))
}

/// Whether a file holds the `libdevice` that kernels for NVIDIA's GPUs link where they call it.
pub fn is_libdevice(path: &Path, python: &PythonEnvironment) -> bool {
    path.is_file()
        && tilewright_nvidia::libdevice::find(python).is_ok_and(|ours| identity(&ours) == identity(path))
}

/// What a kernel is made with besides its source: the compiler itself (a hash of its sources), and what the target names.
pub(crate) fn facts(tools: &dyn Toolchain) -> Vec<(&'static str, String)> {
    let mut facts = vec![("build", BUILD_ID.to_string())];
    for fact in tools.facts() {
        let file = fact.file.map(|file| format!(" {}", identity(&file))).unwrap_or_default();
        facts.push((fact.name, fact.text + &file));
    }
    facts
}

/// The libraries that a kernel's own calls name, and the `libdevice` that its options do.
pub(crate) fn libraries(module: &Module, options: &Options) -> Vec<(&'static str, String)> {
    let mut paths: Vec<String> = options.library("libdevice").map(str::to_string).into_iter().collect();
    module.walk(module.root(), &mut |op| {
        if let Some(call) = tt::ExternElementwise::cast(module, op) {
            paths.push(call.libpath(module));
        }
    });
    paths.retain(|path| !path.is_empty());
    paths.dedup();
    paths.into_iter().map(|path| ("library", identity(Path::new(&path)))).collect()
}

/// What tells a file from any other: the hash of a small one, place, size and times of a large one. Links are followed.
fn identity(path: &Path) -> String {
    /// Hashes by place, size and times, so that a file is read once a process.
    static READ: OnceLock<Mutex<Vec<(String, String)>>> = OnceLock::new();
    let path: PathBuf = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let mut stamp = format!("{:?}", path);
    let Ok(data) = std::fs::metadata(&path) else { return stamp };
    let _ = write!(
        stamp,
        " {} {}.{} {}.{} {}:{}",
        data.len(),
        data.mtime(),
        data.mtime_nsec(),
        data.ctime(),
        data.ctime_nsec(),
        data.dev(),
        data.ino()
    );
    if data.len() > READ_WHOLE || !data.is_file() {
        return stamp;
    }
    let mut read = READ.get_or_init(Default::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, hash)) = read.iter().find(|(known, _)| *known == stamp) {
        return hash.clone();
    }
    let Ok(bytes) = std::fs::read(&path) else { return stamp };
    let hash = blake3::hash(&bytes).to_hex().to_string();
    // Few files take part; one that is replaced again and again must not fill the memory.
    if read.len() == 16 {
        read.remove(0);
    }
    read.push((stamp, hash.clone()));
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_script_is_told_apart_by_what_is_in_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let (script, link) = (dir.path().join("ptxas"), dir.path().join("link"));
        fs::write(&script, "exec real -O3 \"$@\"").expect("writes");
        std::os::unix::fs::symlink(&script, &link).expect("links");
        let before = identity(&script);
        assert_eq!(identity(&link), before);
        fs::write(&script, "exec real -O0 \"$@\"").expect("writes");
        assert_ne!(identity(&script), before);
        fs::write(&script, "exec real -O3 \"$@\"").expect("writes");
        assert_eq!(identity(&script), before);
    }

    #[test]
    fn a_large_program_is_told_apart_by_place_size_and_time() {
        let dir = tempfile::tempdir().expect("a folder");
        let program = dir.path().join("ptxas");
        fs::write(&program, vec![0u8; READ_WHOLE as usize + 1]).expect("writes");
        let before = identity(&program);
        assert_eq!(identity(&program), before);
        fs::write(&program, vec![0u8; READ_WHOLE as usize + 2]).expect("writes");
        let longer = identity(&program);
        assert_ne!(longer, before);
        let file = fs::File::options().write(true).open(&program).expect("opens");
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("sets");
        assert_ne!(identity(&program), longer);
    }

    #[test]
    fn what_is_there_is_named() {
        let target = crate::target("cuda:90").expect("there is one");
        let tools = target.toolchain(&Default::default()).expect("nothing is named wrongly");
        let facts = facts(&*tools);
        let names: Vec<&str> = facts.iter().map(|fact| fact.0).collect();
        assert_eq!(names, ["build", "llvm", "ptxas", "libdevice", "wgmma"]);
        let llvm = &facts[1].1;
        assert!(llvm.starts_with("19.") && llvm.len() > 12, "{llvm}");
        assert_eq!(tools.missing().is_some(), facts[2].1 == "none", "{}", facts[2].1);
    }
}
