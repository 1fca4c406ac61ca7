//! Where NVIDIA's command-line tools are: `ptxas`, `cuobjdump`, `nvdisasm`, and the library `libdevice`.
//!
//! In order: the tool's environment variable; the Python environment that we are a package of, as its interpreter
//! describes it; `CUDA_HOME` and `CUDA_PATH`; the `PATH`; `/usr/local/cuda`. Nothing is taken from the folder we stand
//! in or from those above it, where others may be able to write: what is found is run.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use tilewright_target::PythonEnvironment;

/// Where a kind of file lies in an installation of the CUDA toolkit.
pub struct Place {
    /// Folders of PyPI packages, below `site-packages`.
    packages: &'static [&'static str],
    /// The folder below `CUDA_HOME`.
    toolkit: &'static str,
    /// Whether it is a program: then the `PATH` may name it, and it must be one that can be run.
    program: bool,
}

/// Programs.
pub const PROGRAMS: Place = Place {
    packages: &["nvidia/cu13/bin", "nvidia/cuda_nvcc/bin", "nvidia/cu12/bin"],
    toolkit: "bin",
    program: true,
};

/// The bitcode of libdevice.
pub const LIBDEVICE: Place = Place {
    packages: &[
        "nvidia/cu13/nvvm/libdevice",
        "nvidia/cuda_nvcc/nvvm/libdevice",
        "triton/backends/nvidia/lib",
    ],
    toolkit: "nvvm/libdevice",
    program: false,
};

impl Place {
    fn fits(&self, path: &Path) -> bool {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(path)
            .is_ok_and(|m| m.is_file() && (!self.program || m.permissions().mode() & 0o111 != 0))
    }
}

/// Why a tool is not to be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// It is nowhere.
    #[error("{0}")]
    Nowhere(String),
    /// A variable names it, and names it wrongly: nothing else is looked at then.
    #[error("{0}")]
    Misnamed(String),
}

/// Finds a tool, or says where it was looked for. The path is absolute.
pub fn find(
    tool: &str,
    variable: &str,
    place: &Place,
    python: &PythonEnvironment,
) -> Result<PathBuf, Missing> {
    if let Some(named) = env::var_os(variable).filter(|v| !v.is_empty()) {
        return explicit(&named, place).ok_or_else(|| {
            let what = if place.program { "program that can be run" } else { "file" };
            Missing::Misnamed(format!("{variable} is `{}`, which is no {what}", Path::new(&named).display()))
        });
    }
    let mut looked = vec![format!("{variable} (not set)")];
    for folder in folders(place, python) {
        let path = folder.join(tool);
        if place.fits(&path) {
            return Ok(path);
        }
        looked.push(folder.display().to_string());
    }
    Err(Missing::Nowhere(format!("`{tool}` was not found; looked in: {}", looked.join(", "))))
}

/// What a variable names: a path, or, of a program, a name alone that the `PATH` is searched for, as a shell does.
fn explicit(named: &OsStr, place: &Place) -> Option<PathBuf> {
    let path = Path::new(named);
    let candidates = match place.program && path.components().count() == 1 && path.is_relative() {
        true => on_path().iter().map(|folder| folder.join(path)).collect(),
        false => vec![std::path::absolute(path).ok()?],
    };
    candidates.into_iter().find(|path| place.fits(path))
}

/// The folders of the `PATH`. Relative ones stand for other folders with each step of the user.
fn on_path() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).filter(|folder| folder.is_absolute()).collect()
}

fn folders(place: &Place, python: &PythonEnvironment) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let python = python.or_of_checkout();
    for site in &python.site_packages {
        folders.extend(place.packages.iter().map(|p| site.join(p)));
    }
    folders.extend(python.prefix.iter().map(|prefix| prefix.join(place.toolkit)));
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        let home = env::var_os(variable).filter(|v| !v.is_empty());
        folders.extend(home.and_then(|home| std::path::absolute(home).ok()).map(|h| h.join(place.toolkit)));
    }
    if place.program {
        folders.extend(on_path());
    }
    folders.push(Path::new("/usr/local/cuda").join(place.toolkit));
    let mut seen = std::collections::HashSet::new();
    folders.retain(|f| seen.insert(f.clone()));
    folders
}
