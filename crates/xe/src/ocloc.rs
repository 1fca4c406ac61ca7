//! SPIR-V to native code by Intel's offline compiler, and what that holds.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tilewright_target::Stop;
use tilewright_target::process::{self, Failure, TemporaryError};
use tilewright_target::program::{self, Absent};

use crate::asm::Place;
use crate::lines;

/// The program that is to be used; `0`: none.
pub const VARIABLE: &str = "TILEWRIGHT_OCLOC";

/// How long it may take. Kernels take seconds.
const TIME_LIMIT: Duration = Duration::from_secs(180);

/// How long it may take to say what it knows.
const QUESTION_LIMIT: Duration = Duration::from_secs(30);

/// What the compiler is told: that divisions and roots are rounded as IEEE 754 has them, unless the kernel asks for fast ones.
const OPTIONS: &str = "-cl-fp32-correctly-rounded-divide-sqrt";

/// The same, in words of its own: an ELF file, and addresses of 64 bits for all memory.
const INTERNAL_OPTIONS: &str = "-cl-intel-allow-zebin -cl-intel-greater-than-4GB-buffer-required";

/// Twice as many registers for half as many hardware threads.
const LARGE_REGISTERS: &str = " -cl-intel-256-GRF-per-thread";

/// Why there is no native code.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No `ocloc` on this machine.
    #[error(
        "ocloc, Intel's offline compiler, is not there: install it (Debian's packages intel-opencl-icd and libigc-tools), \
         or set {VARIABLE} to the program"
    )]
    NotFound,
    /// `TILEWRIGHT_OCLOC=0` asks for none, or the simulator is to run the kernel.
    #[error("{VARIABLE}=0, or the simulator, leaves the kernel at SPIR-V")]
    Unwanted,
    /// `TILEWRIGHT_OCLOC` names something else.
    #[error("{VARIABLE} is `{0}`, which is no program\nhint: unset it, and ocloc is looked for on the PATH")]
    Misnamed(String),
    /// It makes no code for this chip.
    #[error("`{program}` knows no `{device}`: a newer one is needed")]
    Device {
        /// The program.
        program: String,
        /// The chip.
        device: String,
    },
    /// There is nowhere to put its files.
    #[error(transparent)]
    Temporary(#[from] TemporaryError),
    /// It could not be started, or did not end by itself.
    #[error(transparent)]
    Run(#[from] Failure),
    /// It refused the SPIR-V.
    #[error("`{program}` failed on the generated SPIR-V (kept as {spirv}):\n{log}")]
    Rejected {
        /// The program.
        program: String,
        /// Where the SPIR-V was kept for inspection.
        spirv: String,
        /// What it said.
        log: String,
    },
    /// Its own code can't be read.
    #[error("`{program}` cannot read the code that it made: {why}")]
    Unreadable {
        /// The program.
        program: String,
        /// Why.
        why: String,
    },
}

/// What a kernel uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Registers of a hardware thread.
    pub registers: u32,
    /// Bytes of memory that a hardware thread spills to, of which there are powers of two.
    pub spilled_bytes: u32,
    /// Bytes of memory that a work group has together.
    pub slm_bytes: u32,
    /// Threads of a sub-group.
    pub sub_group: u32,
}

/// Native code.
#[derive(Debug, Clone)]
pub struct Native {
    /// An ELF file.
    pub binary: Vec<u8>,
    /// Its listing.
    pub assembly: String,
    /// The line that each of its instructions is of, where that is known.
    pub lines: Vec<Option<Place>>,
    /// What it uses.
    pub usage: Usage,
}

/// The program, found once.
#[derive(Debug, Clone)]
pub struct Ocloc {
    /// Where it is.
    pub path: PathBuf,
}

impl Ocloc {
    /// Finds the program: the one that the variable names, or on the `PATH`.
    ///
    /// # Errors
    /// There is none, or it is not wanted.
    pub fn find() -> Result<Ocloc, Error> {
        // In the simulator it is the SPIR-V that runs.
        match program::find(VARIABLE, "ocloc", "xesim") {
            Ok(path) => Ok(Ocloc { path }),
            Err(Absent::NotFound) => Err(Error::NotFound),
            Err(Absent::Unwanted) => Err(Error::Unwanted),
            Err(Absent::Misnamed(name)) => Err(Error::Misnamed(name)),
        }
    }

    /// The program, if it makes code for a chip. Asked of it once a process.
    ///
    /// # Errors
    /// It does not.
    pub fn for_device(self, device: &str) -> Result<Ocloc, Error> {
        static KNOWN: OnceLock<Mutex<HashMap<(PathBuf, String), bool>>> = OnceLock::new();
        let known = KNOWN.get_or_init(Default::default);
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let knows = *known.entry((self.path.clone(), device.to_string())).or_insert_with(|| {
            let mut command = Command::new(&self.path);
            process::run(command.args(["ids", device]), &AtomicBool::new(false), QUESTION_LIMIT)
                .is_ok_and(|output| output.status.success())
        });
        let program = self.path.display().to_string();
        if knows { Ok(self) } else { Err(Error::Device { program, device: device.to_string() }) }
    }

    /// Makes native code of a module with one kernel.
    ///
    /// # Errors
    /// It refuses the module, or does not come to an end.
    pub fn compile(
        &self,
        spirv: &[u8],
        device: &str,
        large_registers: bool,
        stop: &Stop,
    ) -> Result<Native, Error> {
        let folder = process::temporary_folder()?;
        let input = folder.path().join("kernel.spv");
        std::fs::write(&input, spirv).map_err(TemporaryError::new)?;
        let mut command = Command::new(&self.path);
        let internal = if large_registers { LARGE_REGISTERS } else { "" };
        command.arg("compile").arg("-file").arg(&input).arg("-spirv_input").args(["-device", device]);
        command.args(["-options", OPTIONS, "-internal_options", &format!("{INTERNAL_OPTIONS}{internal}")]);
        command.arg("-out_dir").arg(folder.path()).args(["-output", "kernel.bin", "-output_no_suffix"]);
        let own = folder.path().join("own");
        std::fs::create_dir(&own).map_err(TemporaryError::new)?;
        command.envs(lines::REQUEST).env(lines::FOLDER, &own);
        let done = process::run(&mut command, stop, TIME_LIMIT);
        let output = folder.path().join("kernel.bin");
        let log = match done {
            Ok(done) if done.status.success() && output.exists() => None,
            Ok(done) => Some(done.to_string()),
            // An assertion of the compiler.
            Err(killed @ Failure::Killed { signal: 6 | 11, .. }) => Some(killed.to_string()),
            Err(failure) => return Err(Error::Run(failure)),
        };
        if let Some(log) = log {
            let spirv = folder.keep().join("kernel.spv").display().to_string();
            return Err(Error::Rejected { program: self.path.display().to_string(), spirv, log });
        }
        let binary = std::fs::read(&output).map_err(TemporaryError::new)?;
        let (assembly, usage) = self.disassemble(&output, folder.path(), device, stop)?;
        let lines = listed(&own).unwrap_or_default();
        Ok(Native { binary, assembly, lines, usage })
    }

    /// The listing of a binary, and what it says of the kernel.
    fn disassemble(
        &self,
        binary: &Path,
        folder: &Path,
        device: &str,
        stop: &Stop,
    ) -> Result<(String, Usage), Error> {
        let unreadable = |why: String| Error::Unreadable { program: self.path.display().to_string(), why };
        let parts = folder.join("parts");
        std::fs::create_dir(&parts).map_err(TemporaryError::new)?;
        let mut command = Command::new(&self.path);
        command.arg("disasm").arg("-file").arg(binary).args(["-device", device]).arg("-dump").arg(&parts);
        if let Some(libraries) = libraries(folder)? {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        let done = process::run(&mut command, stop, TIME_LIMIT)?;
        let mut listing = None;
        for entry in std::fs::read_dir(&parts).map_err(TemporaryError::new)?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(".text.") && name.ends_with(".asm") {
                listing = Some(std::fs::read_to_string(entry.path()).map_err(TemporaryError::new)?);
            }
        }
        let listing = listing.ok_or_else(|| unreadable(done.to_string()))?;
        let information = std::fs::read_to_string(parts.join(".ze_info")).map_err(TemporaryError::new)?;
        Ok((listing, usage(&information)))
    }
}

/// The lines of the code that the compiler has listed last: it may have begun again.
fn listed(folder: &Path) -> Option<Vec<Option<Place>>> {
    let files = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let listing = files.filter(|path| path.extension().is_some_and(|e| e == "asm")).max()?;
    Some(lines::read(&std::fs::read_to_string(listing).ok()?))
}

/// Where the reader of native code is looked for, with a folder in front that has it under the name that it is looked for by.
fn libraries(folder: &Path) -> Result<Option<OsString>, Error> {
    let known = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let standard =
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"].map(PathBuf::from);
    let mut folders = std::env::split_paths(&known).chain(standard);
    let Some(library) = folders.find_map(|f| Some(f.join("libiga64.so.1")).filter(|path| path.exists()))
    else {
        return Ok(None);
    };
    let own = folder.join("libraries");
    std::fs::create_dir(&own).map_err(TemporaryError::new)?;
    symlink(library, own.join("libiga64.so")).map_err(TemporaryError::new)?;
    let all = [own].into_iter().chain(std::env::split_paths(&known).filter(|f| !f.as_os_str().is_empty()));
    Ok(std::env::join_paths(all).ok())
}

/// What the information of a binary (`.ze_info`, YAML) says of its only kernel.
fn usage(information: &str) -> Usage {
    let mut usage = Usage::default();
    let mut spills = false;
    for line in information.lines() {
        let Some((key, value)) = line.trim_start_matches([' ', '-']).split_once(':') else { continue };
        let value = value.trim();
        let number = || value.parse().unwrap_or(0);
        match key {
            "grf_count" => usage.registers = number(),
            "simd_size" => usage.sub_group = number(),
            "slm_size" => usage.slm_bytes = number(),
            // Kernels have no memory of their own: what a thread has is for spills.
            "type" => spills = value == "scratch",
            "size" if spills => {
                usage.spilled_bytes += number();
                spills = false;
            }
            _ => {}
        }
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn information_of_a_kernel() {
        let text = "kernels:\n  - name:            k\n    execution_env:\n      grf_count:       256\n      \
                    simd_size:       16\n      slm_size:        1024\n    per_thread_memory_buffers:\n      \
                    - type:            scratch\n        usage:           single_space\n        size:            192\n";
        let want = Usage { registers: 256, spilled_bytes: 192, slm_bytes: 1024, sub_group: 16 };
        assert_eq!(usage(text), want);
    }
}
