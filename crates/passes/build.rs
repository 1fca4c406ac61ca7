//! Declares the passes: each file and folder of `src/transform` and `src/hopper` is a module, so that a pass is added by its file, and by its row in
//! the list of a target.

use std::path::Path;
use std::{env, fs};

fn main() {
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo says where the package is");
    let out = env::var("OUT_DIR").expect("cargo says where results go");
    for folder in ["transform", "hopper"] {
        let from = Path::new(&root).join("src").join(folder);
        println!("cargo:rerun-if-changed={}", from.display());
        let mut modules: Vec<String> = fs::read_dir(&from)
            .expect("the folder of passes is there")
            .map(|entry| entry.expect("it can be listed").path())
            .filter_map(|path| {
                let name = path.file_stem()?.to_str()?.to_owned();
                let file = if path.is_dir() { path.join("mod.rs") } else { path };
                let is_module = name != "mod" && file.extension().is_some_and(|e| e == "rs");
                is_module.then(|| format!("#[path = {file:?}]\npub mod {name};\n"))
            })
            .collect();
        modules.sort();
        fs::write(Path::new(&out).join(format!("{folder}.rs")), modules.concat()).expect("it can be written");
    }
}
