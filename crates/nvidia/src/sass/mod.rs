//! What the machine code of a cubin says: its instructions with their source lines, its loops, and what bounds them.
//!
//! [`disassemble`] asks NVIDIA's disassembler, [`listing`] reads its text, [`loops`] finds the loops, [`machine`] holds
//! what a multiprocessor does a cycle, [`timeline`] walks a warp through a loop, and [`report`] puts it together.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use tilewright_target::{PythonEnvironment, process};

use crate::tools::{self, Missing};

pub mod listing;
pub mod loops;
pub mod machine;
pub mod report;
pub mod timeline;

pub use listing::Listing;
pub use report::{Facts, Report};

/// How often each opcode (without its modifiers: `HMMA`, `LDGSTS`, `LDSM`) stands in the code.
pub type Mix = BTreeMap<String, usize>;

/// Disassembles a cubin and counts. The error says what was missing.
pub fn instruction_mix(cubin: &[u8], python: &PythonEnvironment) -> Result<Mix, String> {
    Ok(Listing::parse(&disassemble(cubin, python)?).mix())
}

/// The disassembly as text, by `nvdisasm` with source lines and encodings, or, where that is missing, by `cuobjdump`,
/// which has no source lines.
pub fn disassemble(cubin: &[u8], python: &PythonEnvironment) -> Result<String, String> {
    let dir = process::temporary_folder().map_err(|e| e.to_string())?;
    let file = dir.path().join("kernel.cubin");
    std::fs::write(&file, cubin).map_err(|e| process::TemporaryError::new(e).to_string())?;
    let disassembler = tools::find("nvdisasm", "TRITON_NVDISASM_PATH", &tools::PROGRAMS, python);
    let mut command =
        match (disassembler, tools::find("cuobjdump", "TRITON_CUOBJDUMP_PATH", &tools::PROGRAMS, python)) {
            (Ok(path), _) => {
                let mut c = Command::new(path);
                c.args(["-c", "-g", "-hex"]).arg(&file);
                c
            }
            (_, Ok(path)) => {
                let mut c = Command::new(path);
                c.arg("-sass").arg(&file);
                c
            }
            (Err(Missing::Misnamed(e)), _) | (_, Err(Missing::Misnamed(e))) => return Err(e),
            (Err(e), Err(_)) => return Err(format!("{e}\nhint: `pip install nvidia-cuda-nvdisasm`")),
        };
    let out = process::run(&mut command, &AtomicBool::new(false), process::TIME_LIMIT)
        .map_err(|e| e.to_string())?;
    if !out.status.success() {
        return Err(format!("the disassembler failed: {}", out.stderr));
    }
    Ok(out.stdout)
}

/// The disassembly without encodings, for people to read.
pub fn readable(disassembly: &str) -> String {
    let mut text = String::with_capacity(disassembly.len() / 2);
    for line in disassembly.lines() {
        let line = line.rfind("/* 0x").map_or(line, |at| &line[..at]).trim_end();
        if !line.is_empty() {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn readable_has_no_encodings() {
        let text = ".L_x_0:\n  /*0010*/  LDG.E R4, [R2.64] ;  /* 0x0000 */\n\t\t/* 0x000fe2 */\n";
        assert_eq!(super::readable(text), ".L_x_0:\n  /*0010*/  LDG.E R4, [R2.64] ;\n");
    }
}
