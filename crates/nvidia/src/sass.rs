//! The machine instructions of a cubin, counted by opcode.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::tools;

/// How often each opcode (without its modifiers: `HMMA`, `LDGSTS`, `LDSM`) stands in the code.
pub type Mix = BTreeMap<String, usize>;

/// Disassembles a cubin with `nvdisasm` or `cuobjdump` and counts. The error says what was missing.
pub fn instruction_mix(cubin: &[u8], python_package: Option<&Path>) -> Result<Mix, String> {
    Ok(count(&disassemble(cubin, python_package)?))
}

/// The disassembly as text.
pub fn disassemble(cubin: &[u8], python_package: Option<&Path>) -> Result<String, String> {
    let dir = tempfile::tempdir().map_err(|e| format!("no temporary folder: {e}"))?;
    let file = dir.path().join("kernel.cubin");
    std::fs::write(&file, cubin).map_err(|e| format!("cannot write {}: {e}", file.display()))?;
    let disassembler = tools::find("nvdisasm", "TRITON_NVDISASM_PATH", python_package);
    let mut command = match (disassembler, tools::find("cuobjdump", "TRITON_CUOBJDUMP_PATH", python_package))
    {
        (Ok(path), _) => {
            let mut c = Command::new(path);
            c.arg("-c").arg(&file);
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

/// Counts lines such as `/*0010*/  @!P0 LDG.E.128 R4, [R2.64] ;`.
pub fn count(text: &str) -> Mix {
    let mut mix = Mix::new();
    for line in text.lines() {
        let Some(rest) = line.trim_start().strip_prefix("/*") else { continue };
        let Some((address, rest)) = rest.split_once("*/") else { continue };
        let is_address = !address.is_empty() && address.chars().all(|c| c.is_ascii_hexdigit());
        // Encodings (`/* 0x… */`) stand alone on a line or after the instruction.
        if !is_address || !rest.contains(';') {
            continue;
        }
        let mut words = rest.split_whitespace().filter(|w| !w.starts_with('@') && *w != "{");
        if let Some(word) = words.next() {
            let opcode = word.split('.').next().unwrap_or(word).trim_end_matches(';');
            *mix.entry(opcode.to_string()).or_insert(0) += 1;
        }
    }
    mix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_opcode() {
        let text = "        /*0000*/                   MOV R1, c[0x0][0x28] ;\n\
                    \t/*0010*/              @!P0 LDG.E.128 R4, [R2.64] ;  /* 0x0000 */\n\
                    \t/*0020*/                   LDG.E R4, [R2.64] ;\n\
                    .L_x_0:\n        /*0030*/                   EXIT ;\n\t\t\t/* 0x000fe20000000f00 */";
        let mix = count(text);
        assert_eq!(mix.get("LDG"), Some(&2));
        assert_eq!(mix.get("EXIT"), Some(&1));
        assert_eq!(mix.values().sum::<usize>(), 4);
    }
}
