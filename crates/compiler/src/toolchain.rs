//! Which programs and libraries take part in a compilation, for its cache key: an entry that another `ptxas` made must not
//! be found.

use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use tilewright_nvidia::PythonEnvironment;
use tilewright_nvidia::ptxas::Ptxas;

/// Files up to this size are told apart by what is in them: scripts that start the real program, and `libdevice`.
const READ_WHOLE: u64 = 4 << 20;

/// What a kernel is made with besides its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Toolchain {
    /// The compiler itself: a hash of its sources.
    pub build: String,
    /// LLVM's version, and the file that holds it.
    pub llvm: String,
    /// `ptxas`: its version and its file. A script in front of it is a file of its own, and says the version of the other.
    pub ptxas: String,
    /// The bitcode of libdevice.
    pub libdevice: String,
    /// Whether dots may become warp-group instructions.
    pub wgmma: bool,
}

impl Toolchain {
    /// What is there now.
    pub fn find(ptxas: Option<&Ptxas>, python: &PythonEnvironment) -> Toolchain {
        let none = || "none".to_string();
        Toolchain {
            build: env!("TILEWRIGHT_BUILD_ID").to_string(),
            llvm: format!(
                "{} {}",
                tilewright_nvidia::llvm_version(),
                tilewright_nvidia::llvm_file().map_or_else(none, |file| identity(&file))
            ),
            ptxas: ptxas.map_or_else(none, |p| {
                let arguments = tilewright_nvidia::ptxas::chosen_arguments().join(" ");
                format!("{} {} {arguments}", p.version(), identity(&p.path)).trim_end().to_string()
            }),
            libdevice: tilewright_nvidia::libdevice::find(python)
                .map_or_else(|_| none(), |file| identity(&file)),
            wgmma: crate::stages::wgmma_enabled(),
        }
    }
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
        let found = Toolchain::find(None, &PythonEnvironment::default());
        assert_eq!(found.ptxas, "none");
        assert!(found.llvm.starts_with("19.") && found.llvm.len() > 12, "{}", found.llvm);
    }
}
