//! Gives the compiler a build id, which cache keys cover: a hash of every source file that decides what a kernel
//! compiles to, so that a changed compiler never meets its predecessor's results.

use std::path::{Path, PathBuf};

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs" || e == "py") {
            files.push(path);
        }
    }
}

fn main() {
    let root = Path::new("../..");
    let mut folders = vec![root.join("python/tilewright/language"), root.join("python/tilewright/tle")];
    for name in [
        "libdevice",
        "layout",
        "ir",
        "frontend",
        "passes",
        "target",
        "llvm",
        "lower",
        "nvidia",
        "xe",
        "ascend",
        "compiler",
    ] {
        folders.push(root.join("crates").join(name).join("src"));
    }
    let mut files = Vec::new();
    for folder in &folders {
        println!("cargo::rerun-if-changed={}", folder.display());
        collect(folder, &mut files);
    }
    // The versions of what it is built from.
    let lock = root.join("Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    files.push(lock);
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for file in files {
        hasher.update(file.to_string_lossy().as_bytes());
        hasher.update(&std::fs::read(&file).unwrap_or_default());
    }
    println!("cargo::rustc-env=TILEWRIGHT_BUILD_ID={}", hasher.finalize().to_hex());
}
