//! Where a target's tool is: a variable of the environment names it, or it is on the `PATH`.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Why there is no such program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absent {
    /// Nobody asked for it by name, and it is not on the `PATH`.
    NotFound,
    /// The variable is `0`, or a simulator is to run the kernel.
    Unwanted,
    /// The variable names something else.
    Misnamed(String),
}

/// Finds a program: the one that the variable names, or that of this name on the `PATH`; none where this simulator is to run the kernel.
///
/// # Errors
/// There is none, or it is not wanted.
pub fn find(variable: &str, name: &str, simulator: &str) -> Result<PathBuf, Absent> {
    match std::env::var_os(variable).filter(|value| !value.is_empty()) {
        Some(zero) if zero == "0" => Err(Absent::Unwanted),
        Some(named) => {
            let path = std::path::absolute(&named).ok().filter(|path| is_program(path));
            path.ok_or_else(|| Absent::Misnamed(Path::new(&named).display().to_string()))
        }
        None if std::env::var_os("TILEWRIGHT_BACKEND").is_some_and(|backend| backend == simulator) => {
            Err(Absent::Unwanted)
        }
        None => on_path(name).ok_or(Absent::NotFound),
    }
}

/// The program of a name on the `PATH`.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    all.find_map(|folder| Some(folder.join(name)).filter(|path| is_program(path)))
}

/// Whether there is a file that can be run.
pub fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}
