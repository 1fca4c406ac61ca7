//! The targets that there are: one line a family.

use tilewright_frontend::{Diagnostic, DiagnosticKind};
use tilewright_target::{Family, Target};

use crate::artifact::{METADATA, TTGIR, TTIR};

/// Every family of targets.
pub static FAMILIES: &[&Family] = &[
    &crate::interp::INTERP,     // the CPU executor
    &tilewright_nvidia::CUDA,   // NVIDIA's GPUs
    &tilewright_xe::XE,         // Intel's GPUs
    &tilewright_ascend::ASCEND, // Ascend's cores
];

/// The target where nothing names one.
pub const DEFAULT_TARGET: &str = "cuda:90";

/// The target of a name: `interp`, one of NVIDIA's (`cuda:90`), of Intel's (`xe:pvc`), or `ascend:910b`.
///
/// # Errors
/// Any other name, with those that there are.
pub fn target(name: &str) -> Result<Box<dyn Target>, Diagnostic> {
    target_of(FAMILIES, name)
}

/// As [`target`], of these families.
///
/// # Errors
/// A name that is none of theirs.
pub fn target_of(families: &[&Family], name: &str) -> Result<Box<dyn Target>, Diagnostic> {
    families.iter().find_map(|family| (family.find)(name)).ok_or_else(|| {
        let names: Vec<String> = families.iter().flat_map(|family| (family.names)()).collect();
        Diagnostic::new(format!("unknown target `{name}`; there are {}", names.join(", ")))
            .of(DiagnosticKind::Request)
    })
}

/// The extensions of all files that a compilation may leave, for whatever target.
pub fn extensions() -> Vec<&'static str> {
    let mut names = vec![TTIR.name, TTGIR.name];
    for stage in FAMILIES.iter().flat_map(|family| family.stages) {
        if !names.contains(&stage.name) {
            names.push(stage.name);
        }
    }
    names.push(METADATA);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_of_one_target() {
        for family in FAMILIES {
            for name in (family.names)() {
                assert_eq!(target(&name).map(|t| t.to_string()).ok(), Some(name.clone()));
                assert_eq!(FAMILIES.iter().filter(|f| (f.find)(&name).is_some()).count(), 1, "{name}");
            }
        }
        let error = target("hip:gfx942").map(drop).expect_err("nobody knows it").to_string();
        assert!(error.contains("unknown target `hip:gfx942`; there are interp, cuda:80"), "{error}");
    }
}
