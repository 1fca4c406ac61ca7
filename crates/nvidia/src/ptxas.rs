//! PTX to cubin with NVIDIA's assembler.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tilewright_target::process::{self, Failure, TIME_LIMIT, TemporaryError};
use tilewright_target::{PythonEnvironment, Stop};

use crate::target::Target;
use crate::tools::{self, Missing};

/// Why there is no cubin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No `ptxas` on this machine.
    #[error(
        "{0}\nhint: `pip install nvidia-cuda-nvcc`, install the CUDA toolkit, or set TRITON_PTXAS_PATH to the program"
    )]
    NotFound(String),
    /// `TILEWRIGHT_CUBIN=0` asks for none.
    #[error("TILEWRIGHT_CUBIN=0 leaves the kernel at PTX")]
    Unwanted,
    /// `TRITON_PTXAS_PATH` names something else.
    #[error(
        "{0}\nhint: unset it, and ptxas is looked for in the Python environment, in CUDA_HOME and on the PATH"
    )]
    Misnamed(String),
    /// There is nowhere to put its files.
    #[error(transparent)]
    Temporary(#[from] TemporaryError),
    /// It could not be started, or did not end by itself.
    #[error(transparent)]
    Run(Failure),
    /// It needed too long.
    #[error(
        "`{program}` had not assembled the kernel after {} minutes and was stopped\nhint: the kernel is too large for \
         it: use smaller blocks, more warps, or loops that are not unrolled", limit.as_secs() / 60
    )]
    TooLong {
        /// The program.
        program: String,
        /// How long it had.
        limit: Duration,
    },
    /// It refused the PTX.
    #[error("`{program}` failed on the generated PTX (kept as {ptx}):\n{log}{}", hint(log))]
    Rejected {
        /// The program.
        program: String,
        /// Where the PTX was kept for inspection.
        ptx: String,
        /// What it said.
        log: String,
    },
}

/// What `ptxas` says of a kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Registers a thread.
    pub registers: u32,
    /// Bytes spilled to local memory: stores plus loads.
    pub spill_bytes: u32,
    /// Bytes of stack a thread.
    pub stack_bytes: u32,
    /// Bytes of static shared memory.
    pub static_shared_bytes: u32,
}

/// How long the program may take to say its version.
const VERSION_LIMIT: Duration = Duration::from_secs(30);

/// Where the program's memory comes from: large pages, sixteen megabytes at a time, that are never given back. Its first touch of each
/// small page is a fifth of its time on a small kernel. Names that a C library does not know it passes over.
const MEMORY: (&str, &str) = (
    "GLIBC_TUNABLES",
    "glibc.malloc.hugetlb=1:glibc.malloc.top_pad=16777216:glibc.malloc.trim_threshold=1073741824:\
     glibc.malloc.mmap_threshold=1073741824",
);

/// A program to run, found once.
#[derive(Debug, Clone)]
pub struct Ptxas {
    /// The program.
    pub path: PathBuf,
}

/// Whether `TILEWRIGHT_CUBIN=0` asks to end at PTX.
pub fn unwanted() -> bool {
    std::env::var_os("TILEWRIGHT_CUBIN").is_some_and(|value| value == "0")
}

/// How many instructions are optimized as far as the program can: its time grows faster than their number, to minutes for one unrolled loop.
const MOST_OPTIMIZED: usize = 1 << 15;

/// What is added to the arguments that are given for a kernel of more instructions than that.
fn level_of_large(ptx: &str, given: &[String]) -> &'static [&'static str] {
    let is_instruction = |line: &&str| {
        let line = line.trim();
        line.ends_with(';') && !line.starts_with('.')
    };
    let is_said = given.iter().any(|arg| arg.starts_with("-O") || arg.starts_with("--opt-level"));
    let is_large = || ptx.lines().filter(is_instruction).count() > MOST_OPTIMIZED;
    if !is_said && is_large() { &["--opt-level", "1"] } else { &[] }
}

/// What `DISABLE_PTXAS_OPT=1` and `PTXAS_OPTIONS` add to the program's arguments, which cache keys include.
pub fn chosen_arguments() -> Vec<String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let unoptimized = set("DISABLE_PTXAS_OPT").is_some_and(|value| {
        ["1", "true", "on", "yes", "y"].iter().any(|yes| value.eq_ignore_ascii_case(yes))
    });
    let level = unoptimized.then(|| ["--opt-level", "0"].map(String::from)).into_iter().flatten();
    let more = set("PTXAS_OPTIONS").unwrap_or_default();
    level.chain(more.split_whitespace().map(String::from)).collect()
}

impl Ptxas {
    /// Finds the program, unless `TILEWRIGHT_CUBIN=0`; see [`tools`] for where it looks.
    ///
    /// # Errors
    /// There is none, or it is not wanted.
    pub fn find(python: &PythonEnvironment) -> Result<Ptxas, Error> {
        if unwanted() {
            return Err(Error::Unwanted);
        }
        match tools::find("ptxas", "TRITON_PTXAS_PATH", &tools::PROGRAMS, python) {
            Ok(path) => Ok(Ptxas { path }),
            Err(Missing::Nowhere(looked)) => Err(Error::NotFound(looked)),
            Err(Missing::Misnamed(what)) => Err(Error::Misnamed(what)),
        }
    }

    /// The release, such as `13.0`, which cache keys include. Asked of the program once a process.
    pub fn version(&self) -> String {
        static KNOWN: OnceLock<std::sync::Mutex<Vec<(PathBuf, String)>>> = OnceLock::new();
        let known = KNOWN.get_or_init(Default::default);
        let mut known = known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((_, v)) = known.iter().find(|(p, _)| *p == self.path) {
            return v.clone();
        }
        let mut command = Command::new(&self.path);
        let text = process::run(command.arg("--version"), &AtomicBool::new(false), VERSION_LIMIT)
            .map(|output| output.stdout)
            .unwrap_or_default();
        // "... release 13.0, V13.0.88"
        let version = text
            .split_whitespace()
            .rev()
            .find_map(|w| w.strip_prefix('V').filter(|v| v.starts_with(|c: char| c.is_ascii_digit())))
            .unwrap_or("unknown")
            .to_string();
        known.push((self.path.clone(), version.clone()));
        version
    }

    /// Assembles. Returns the cubin, what it uses, and the program's words.
    pub fn assemble(
        &self,
        ptx: &str,
        target: Target,
        options: &tilewright_ir::Options,
        stop: &Stop,
    ) -> Result<(Vec<u8>, Usage, String), Error> {
        let program = self.path.display().to_string();
        let dir = process::temporary_folder()?;
        let (input, output) = (dir.path().join("kernel.ptx"), dir.path().join("kernel.cubin"));
        std::fs::write(&input, ptx).map_err(TemporaryError::new)?;
        let mut command = Command::new(&self.path);
        command
            .arg("-v")
            .arg(format!("--gpu-name={}", target.architecture(ptx).0))
            .arg(&input)
            .arg("-o")
            .arg(&output);
        if options.line_info {
            command.arg("-lineinfo");
        }
        if !options.enable_fp_fusion {
            command.arg("--fmad=false");
        }
        let given = options.ptx_options.iter().flat_map(|text| text.as_str().split_whitespace());
        let given: Vec<String> = given.map(String::from).chain(chosen_arguments()).collect();
        command.args(level_of_large(ptx, &given)).args(given);
        // What the user has to say about the C library goes before.
        if std::env::var_os(MEMORY.0).is_none() {
            command.env(MEMORY.0, MEMORY.1);
        }
        let result = process::run(&mut command, stop, TIME_LIMIT).map_err(|failure| match failure {
            Failure::TooLong { program, limit } => Error::TooLong { program, limit },
            Failure::Temporary(error) => Error::Temporary(error),
            other => Error::Run(other),
        })?;
        let log = result.to_string();
        if !result.status.success() {
            // Keep the folder: the PTX is what explains the message.
            let ptx = dir.keep().join("kernel.ptx").display().to_string();
            return Err(Error::Rejected { program, ptx, log });
        }
        let cubin = std::fs::read(&output).map_err(TemporaryError::new)?;
        Ok((cubin, parse_usage(&log), log))
    }
}

/// What to do about what the program said.
fn hint(log: &str) -> &'static str {
    match log.contains("Insufficient registers") {
        true => {
            "\nhint: an instruction has more operands than a thread has registers when the kernel starts, 65536 for all threads \
             of a program: use fewer warps, those of partitions included, or a product of fewer columns"
        }
        false => "",
    }
}

/// Reads the numbers of `ptxas -v`, such as `Used 40 registers, used 1 barriers, 49152 bytes smem`. For a file with
/// several functions, the largest.
pub fn parse_usage(log: &str) -> Usage {
    let mut usage = Usage::default();
    let number_before = |line: &str, what: &str| -> Option<u32> {
        let head = &line[..line.find(what)?];
        head.trim_end().rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    let largest = |at: &mut u32, n: Option<u32>| *at = (*at).max(n.unwrap_or(0));
    for line in log.lines() {
        largest(&mut usage.registers, number_before(line, " registers"));
        largest(&mut usage.static_shared_bytes, number_before(line, " bytes smem"));
        largest(&mut usage.stack_bytes, number_before(line, " bytes stack frame"));
        let spills = number_before(line, " bytes spill stores").unwrap_or(0)
            + number_before(line, " bytes spill loads").unwrap_or(0);
        largest(&mut usage.spill_bytes, Some(spills));
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_kernels_are_optimized_less_unless_it_is_said() {
        let code = |n: usize| "\tadd.s32 \t%r1, %r1, 1;\n\t.loc 1 2 3;\n".repeat(n);
        assert!(level_of_large(&code(MOST_OPTIMIZED), &[]).is_empty());
        assert_eq!(level_of_large(&code(MOST_OPTIMIZED + 1), &[]), ["--opt-level", "1"]);
        for said in ["-O3", "--opt-level", "--opt-level=2"] {
            assert!(level_of_large(&code(MOST_OPTIMIZED + 1), &[said.to_string()]).is_empty());
        }
    }

    #[test]
    fn usage_is_read() {
        let log = "ptxas info    : 0 bytes gmem\n\
                   ptxas info    : Compiling entry function 'k' for 'sm_90a'\n\
                   ptxas info    : Function properties for k\n    \
                   16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n\
                   ptxas info    : Used 40 registers, used 1 barriers, 49152 bytes smem, 24 bytes cumulative stack size";
        let want = Usage { registers: 40, spill_bytes: 20, stack_bytes: 16, static_shared_bytes: 49152 };
        assert_eq!(parse_usage(log), want);
    }

    #[test]
    fn too_few_registers_for_an_instruction() {
        let rejected = |log: &str| {
            Error::Rejected { program: "ptxas".into(), ptx: "kernel.ptx".into(), log: log.into() }.to_string()
        };
        let few = "ptxas fatal   : (C7602) Insufficient registers (128) to compile instruction at line 963 in function k.";
        assert!(rejected(few).contains("hint: ") && rejected(few).contains("fewer warps"));
        assert!(!rejected("ptxas fatal   : Unresolved extern function 'f'").contains("hint"));
    }
}
