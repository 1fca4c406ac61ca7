//! Where NVIDIA's command-line tools are: `ptxas`, `cuobjdump`, `nvdisasm`, and the library `libdevice`.
//!
//! In order: the tool's environment variable; beside this executable; the `.venv` of the folder we stand in or one
//! above it; the PyPI packages next to our own Python package; `CUDA_HOME`; `/usr/local/cuda`; the `PATH`.

use std::env;
use std::path::{Path, PathBuf};

/// Where a kind of file lies in an installation of the CUDA toolkit.
pub struct Place {
    /// Folders of PyPI packages, below `site-packages`.
    packages: &'static [&'static str],
    /// The folder below `CUDA_HOME`.
    toolkit: &'static str,
    /// Whether the `PATH` may name it.
    on_path: bool,
}

/// Programs.
pub const PROGRAMS: Place = Place {
    packages: &["nvidia/cu13/bin", "nvidia/cuda_nvcc/bin", "nvidia/cu12/bin"],
    toolkit: "bin",
    on_path: true,
};

/// The bitcode of libdevice.
pub const LIBDEVICE: Place = Place {
    packages: &[
        "nvidia/cu13/nvvm/libdevice",
        "nvidia/cuda_nvcc/nvvm/libdevice",
        "triton/backends/nvidia/lib",
    ],
    toolkit: "nvvm/libdevice",
    on_path: false,
};

/// Finds a tool, or says where it was looked for.
///
/// `python_package` is the folder of our Python package, if there is one in the process: `site-packages` holds it.
pub fn find(
    tool: &str,
    variable: &str,
    place: &Place,
    python_package: Option<&Path>,
) -> Result<PathBuf, String> {
    let mut looked: Vec<String> = Vec::new();
    if let Some(path) = env::var_os(variable).filter(|v| !v.is_empty()) {
        let path = PathBuf::from(path);
        if path.is_file() {
            return Ok(path);
        }
        return Err(format!("{variable} names `{}`, which is no file", path.display()));
    }
    looked.push(format!("{variable} (not set)"));
    for folder in folders(place, python_package) {
        let path = folder.join(tool);
        if path.is_file() {
            return Ok(path);
        }
        looked.push(folder.display().to_string());
    }
    Err(format!("`{tool}` was not found; looked in: {}", looked.join(", ")))
}

fn folders(place: &Place, python_package: Option<&Path>) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut sites = Vec::new();
    if let Ok(exe) = env::current_exe()
        && let Some(dir) = exe.parent()
    {
        folders.push(dir.to_path_buf());
        // `.venv/bin/tilewright` has `.venv/lib/python3.x/site-packages` beside it.
        if let Some(prefix) = dir.parent() {
            sites.extend(site_packages(prefix));
        }
        for above in dir.ancestors() {
            sites.extend(site_packages(&above.join(".venv")));
        }
    }
    if let Some(site) = python_package.and_then(Path::parent) {
        sites.push(site.to_path_buf());
    }
    if let Some(venv) = env::var_os("VIRTUAL_ENV") {
        sites.extend(site_packages(Path::new(&venv)));
    }
    if let Ok(here) = env::current_dir() {
        for above in here.ancestors() {
            sites.extend(site_packages(&above.join(".venv")));
        }
    }
    for site in sites {
        folders.extend(place.packages.iter().map(|p| site.join(p)));
    }
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        if let Some(home) = env::var_os(variable) {
            folders.push(Path::new(&home).join(place.toolkit));
        }
    }
    folders.push(Path::new("/usr/local/cuda").join(place.toolkit));
    if place.on_path
        && let Some(path) = env::var_os("PATH")
    {
        folders.extend(env::split_paths(&path));
    }
    let mut seen = std::collections::HashSet::new();
    folders.retain(|f| seen.insert(f.clone()));
    folders
}

/// The `site-packages` of a Python installation or virtual environment.
fn site_packages(prefix: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(prefix.join("lib")) else { return Vec::new() };
    entries
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().starts_with("python"))
        .map(|e| e.path().join("site-packages"))
        .filter(|p| p.is_dir())
        .collect()
}
