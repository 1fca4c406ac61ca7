//! The Python environment that tools are looked for in.

use std::borrow::Cow;
use std::env;
use std::path::{Path, PathBuf};

/// A Python environment, by what its interpreter says of itself: how its files are linked says nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PythonEnvironment {
    /// Folders of packages, those to be preferred first.
    pub site_packages: Vec<PathBuf>,
    /// `sys.prefix`; conda installs a toolkit there.
    pub prefix: Option<PathBuf>,
}

impl PythonEnvironment {
    /// The activated environment (`VIRTUAL_ENV`), for a program that has no Python in its process.
    pub fn activated() -> PythonEnvironment {
        match env::var_os("VIRTUAL_ENV").map(PathBuf::from).filter(|p| p.is_absolute()) {
            Some(prefix) => PythonEnvironment::at(prefix),
            None => PythonEnvironment::default(),
        }
    }

    /// The environment whose `sys.prefix` this is.
    fn at(prefix: PathBuf) -> PythonEnvironment {
        let entries = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
        let mut site_packages: Vec<PathBuf> = entries
            .filter(|e| e.file_name().to_string_lossy().starts_with("python"))
            .map(|e| e.path().join("site-packages"))
            .filter(|p| p.is_dir())
            .collect();
        site_packages.sort();
        PythonEnvironment { site_packages, prefix: Some(prefix) }
    }

    /// What cargo builds for development uses its checkout's environment where it has no other: whoever can write there
    /// can change the source, too.
    pub fn or_of_checkout(&self) -> Cow<'_, PythonEnvironment> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
        match root {
            Some(root) if cfg!(debug_assertions) && *self == PythonEnvironment::default() => {
                Cow::Owned(PythonEnvironment::at(root.join(".venv")))
            }
            _ => Cow::Borrowed(self),
        }
    }
}
