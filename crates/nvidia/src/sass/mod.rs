//! What the machine code of a cubin says: its instructions with their source lines, its loops, and what bounds them.
//!
//! [`disassemble`] asks NVIDIA's disassembler, [`listing`] reads its text, [`loops`] finds the loops, [`machine`] holds
//! what a multiprocessor does a cycle, [`timeline`] walks a warp through a loop, and [`report`] puts it together.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::tools;

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
pub fn instruction_mix(cubin: &[u8], python_package: Option<&Path>) -> Result<Mix, String> {
    Ok(Listing::parse(&disassemble(cubin, python_package)?).mix())
}

/// The disassembly as text, by `nvdisasm` with source lines and encodings, or, where that is missing, by `cuobjdump`,
/// which has no source lines.
pub fn disassemble(cubin: &[u8], python_package: Option<&Path>) -> Result<String, String> {
    let dir = tempfile::tempdir().map_err(|e| format!("no temporary folder: {e}"))?;
    let file = dir.path().join("kernel.cubin");
    std::fs::write(&file, cubin).map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    let disassembler = tools::find("nvdisasm", "TRITON_NVDISASM_PATH", &tools::PROGRAMS, python_package);
    let mut command = match (
        disassembler,
        tools::find("cuobjdump", "TRITON_CUOBJDUMP_PATH", &tools::PROGRAMS, python_package),
    ) {
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
        (Err(e), Err(_)) => return Err(format!("{e}\nhint: `pip install nvidia-cuda-nvdisasm`")),
    };
    let out = command.output().map_err(|e| format!("cannot run the disassembler: {e}"))?;
    if !out.status.success() {
        return Err(format!("the disassembler failed: {}", String::from_utf8_lossy(&out.stderr)));
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
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
