//! AscendNPU-IR to a binary by Ascend's own compiler, `bishengir-compile`, where it is installed.
//!
//! It is told what its documentation says for AscendNPU-IR (`docs/source/en/user_guide/compile_option.md` of the public project): that no other dialect comes before, and that
//! flags between cores are there already, and the workspace too. Flags between the queues of a core it places itself, behind passes of its own that make loops of some vector
//! instructions (integers of 64 bits, most comparisons of integers): ours would not be where those need them, and are left out of what it gets. It calls `hivmc`, which the
//! folder of `BISHENG_INSTALL_PATH` has, or the `PATH`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tilewright_ir::diagnostic::{Kind, Span};
use tilewright_ir::{Diagnostic, ascend};
use tilewright_target::process::{self, Failure, Output, TemporaryError};
use tilewright_target::program::{self, Absent};
use tilewright_target::{Fact, Stop};

/// The program that is to be used; `0`: none.
pub const VARIABLE: &str = "TILEWRIGHT_BISHENGIR_COMPILE";

const NAME: &str = "bishengir-compile";

/// How long it may take. Its passes try several times where memory does not suffice.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// How long it may take to say which release it is.
const QUESTION_LIMIT: Duration = Duration::from_secs(30);

/// That the text is AscendNPU-IR, with its flags between cores and its workspace.
const OPTIONS: &[&str] = &[
    "-enable-hfusion-compile=false",
    "-enable-hivm-compile=true",
    "-disable-auto-inject-block-sync=true",
    "-disable-auto-cv-work-space-manage=true",
];

/// The program, as it is on this machine now.
#[derive(Debug, Clone)]
pub struct Bishengir {
    path: PathBuf,
    limit: Duration,
}

impl Bishengir {
    /// Finds the program. (In the simulator it is the text that runs.)
    ///
    /// # Errors
    /// There is none, or it is not wanted.
    pub fn find() -> Result<Bishengir, Absent> {
        let path = program::find(VARIABLE, NAME, "npusim")?;
        Ok(Bishengir { path, limit: TIME_LIMIT })
    }

    /// Why there is no binary.
    pub fn why(absent: &Absent) -> String {
        match absent {
            Absent::NotFound => format!(
                "{NAME}, Ascend's compiler, is not there: install CANN, or set {VARIABLE} to the program"
            ),
            Absent::Unwanted => format!("{VARIABLE}=0, or the simulator, leaves the kernel at AscendNPU-IR"),
            Absent::Misnamed(name) => {
                format!(
                    "{VARIABLE} is `{name}`, which is no program\nhint: unset it, and {NAME} is looked for on the PATH"
                )
            }
        }
    }

    /// What a binary depends on: the compiler and its release, and what it calls.
    pub fn facts(&self) -> Vec<Fact> {
        let mut facts = vec![Fact { name: NAME, text: self.version(), file: Some(self.path.clone()) }];
        let installed =
            std::env::var_os("BISHENG_INSTALL_PATH").map(|folder| Path::new(&folder).join("hivmc"));
        let hivmc = installed.filter(|path| program::is_program(path)).or_else(|| program::on_path("hivmc"));
        let text = if hivmc.is_some() { "hivmc" } else { "none" }.to_string();
        facts.push(Fact { name: "hivmc", text, file: hivmc });
        facts
    }

    /// Its release, in its own words. Asked of it once a process.
    pub fn version(&self) -> String {
        static KNOWN: OnceLock<Mutex<HashMap<PathBuf, String>>> = OnceLock::new();
        let mut known = KNOWN.get_or_init(Default::default).lock().unwrap_or_else(PoisonError::into_inner);
        let ask = || {
            let mut command = Command::new(&self.path);
            let output = process::run(command.arg("--version"), &AtomicBool::new(false), QUESTION_LIMIT);
            let text = output.map(|output| output.to_string()).unwrap_or_default();
            let line = text.lines().map(str::trim).find(|line| line.contains("version"));
            line.unwrap_or("of an unknown release").to_string()
        };
        known.entry(self.path.clone()).or_insert_with(ask).clone()
    }

    /// Makes a binary of a module's text.
    ///
    /// # Errors
    /// It refuses the text, or does not come to an end.
    pub fn compile(&self, text: &str, stop: &Stop) -> Result<Vec<u8>, Diagnostic> {
        let environment = |why: String| Diagnostic::new(why).of(Kind::Environment);
        let temporary = |e| environment(TemporaryError::new(e).to_string());
        let folder = process::temporary_folder().map_err(|e| environment(e.to_string()))?;
        let (input, output) = (folder.path().join("kernel.mlir"), folder.path().join("kernel.o"));
        let text = &without_flags(text);
        std::fs::write(&input, text).map_err(temporary)?;
        let mut command = Command::new(&self.path);
        command.arg(&input).arg(format!("-target={}", ascend::DEVICE)).args(OPTIONS).arg("-o").arg(&output);
        match process::run(&mut command, stop, self.limit) {
            Ok(done) if done.status.success() && output.exists() => std::fs::read(&output).map_err(temporary),
            Ok(done) => {
                let kept = folder.keep().join("kernel.mlir");
                Err(self.refused(&done, text, &kept))
            }
            Err(Failure::Stopped(_)) => Err(tilewright_target::interrupted()),
            Err(failure) => {
                let kept = folder.keep().join("kernel.mlir");
                Err(environment(failure.to_string()).note(format!("the text is kept as {}", kept.display())))
            }
        }
    }

    /// What it has against a text, at the kernel's line where it names one.
    fn refused(&self, done: &Output, text: &str, kept: &Path) -> Diagnostic {
        let log = done.to_string();
        let (place, message) = log.lines().find_map(|line| error(line, text)).unwrap_or_default();
        let message = if message.is_empty() { done.status.to_string() } else { message };
        let mut refused = Diagnostic::new(format!("`{}` failed: {message}", self.path.display()));
        refused.span = place;
        let refused = refused.of(Kind::Environment).note(format!("the text is kept as {}", kept.display()));
        match log.trim() {
            "" => refused,
            log => refused.note(log),
        }
    }
}

/// The text of a module without the flags between queues of a core.
fn without_flags(text: &str) -> String {
    let flag = |line: &&str| {
        ["set_flag[", "wait_flag["]
            .iter()
            .any(|name| line.trim_start().strip_prefix("hivm.hir.").is_some_and(|l| l.starts_with(name)))
    };
    text.lines().filter(|line| !flag(line)).fold(String::new(), |all, line| all + line + "\n")
}

/// An error that a line of a log is, and the place in the kernel's source that it is at: `add.py:5:4: error: …`, or one in the text of the module.
fn error(line: &str, text: &str) -> Option<(Option<Span>, String)> {
    let (place, message) = line.split_once("error: ")?;
    let mut parts = place.trim_end_matches([' ', ':']).rsplitn(3, ':');
    let mut number = || parts.next()?.parse().ok();
    let (column, row): (Option<u32>, Option<u32>) = (number(), number());
    let place = match (parts.next(), row, column) {
        (Some(file), Some(row), Some(_)) if file.ends_with("kernel.mlir") => source_of(text, row),
        (Some(file), Some(row), Some(column)) => Some(span(file.trim_matches('"'), row, column)),
        _ => None,
    };
    Some((place, message.to_string()))
}

/// The place in the kernel's source that a line of the module's text names at its end: `loc(#loc4)`, or in full.
fn source_of(text: &str, row: u32) -> Option<Span> {
    let line = text.lines().nth(row.checked_sub(1)? as usize)?;
    let (_, mut location) = line.rsplit_once("loc(")?;
    // (An alias stands for another one at most a few times; a circle is none.)
    for _ in 0..16 {
        // (In front of the file there may be a name.)
        if let Some((before, behind)) = location.split_once("\":") {
            let (_, file) = before.rsplit_once('"')?;
            let mut numbers = behind.split(|c: char| !c.is_ascii_digit()).map(str::parse);
            let (row, column) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
            return Some(span(file, row, column));
        }
        let alias = location
            .split(|c: char| !c.is_alphanumeric() && c != '#' && c != '_')
            .find(|w| w.starts_with('#'))?;
        let begin = format!("{alias} = loc(");
        location = text.lines().find_map(|line| line.strip_prefix(begin.as_str()))?;
    }
    None
}

fn span(file: &str, line: u32, column: u32) -> Span {
    Span { file: file.to_string(), line, column, end_column: column, text: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use std::time::Instant;

    const TEXT: &str = "#loc = loc(\"add.py\":3:1)\n#loc1 = loc(\"x\"(#loc2))\n#loc2 = loc(\"add.py\":5:9)\n\
                        module {\n  %0 = arith.constant 0 : i32 loc(#loc1)\n} loc(#loc)\n";

    fn tool(folder: &Path, script: &str) -> Bishengir {
        let path = folder.join(NAME);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("writes");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("sets");
        Bishengir { path, limit: Duration::from_secs(20) }
    }

    #[test]
    fn a_tool_that_hangs_is_stopped() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut hangs = tool(folder.path(), "sleep 100");
        hangs.limit = Duration::from_millis(300);
        let began = Instant::now();
        let error = hangs.compile(TEXT, &Stop::default()).expect_err("it is too slow");
        assert!(error.message.contains("was stopped after"), "{error}");
        let stop = Arc::new(AtomicBool::new(false));
        stop.store(true, Ordering::Relaxed);
        let error = hangs.compile(TEXT, &stop).expect_err("nobody waits");
        assert_eq!(error.kind, Kind::Interrupted);
        assert!(began.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn errors_are_at_the_line_of_the_kernel() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |script: &str| {
            let error = tool(folder.path(), script).compile(TEXT, &Stop::default()).expect_err("it fails");
            let span = error.span.as_ref().map(|span| (span.file.clone(), span.line, span.column));
            (error.message.rsplit_once("failed: ").expect("it says so").1.to_string(), span)
        };
        let at = |line, column| Some(("add.py".to_string(), line, column));
        assert_eq!(
            place("echo \"$1:5:3: error: what is that\" >&2; exit 1"),
            ("what is that".into(), at(5, 9))
        );
        let of_kernel = "echo 'loc(\"x\"): error: no' >&2; exit 1";
        assert_eq!(place(of_kernel), ("no".into(), None));
        let of_kernel = "echo 'add.py:7:2: error: UB overflows' >&2; exit 1";
        assert_eq!(place(of_kernel), ("UB overflows".into(), at(7, 2)));
        assert_eq!(place("exit 3"), ("exit status: 3".into(), None));
        // (It says that all is well, and there is no file.)
        assert_eq!(place("exit 0"), ("exit status: 0".into(), None));
    }
}
