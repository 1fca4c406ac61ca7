//! NVIDIA targets: what each compute capability has. Everything that names an `sm_` version reads it from here.

use std::fmt;

/// A compute capability that we generate code for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// Compute capability, as 10 · major + minor: 80, 86, 89 or 90.
    pub capability: u32,
}

/// The name is not one of `cuda:80`, `cuda:86`, `cuda:89`, `cuda:90`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown target `{0}`; the NVIDIA targets are cuda:80, cuda:86, cuda:89 and cuda:90")]
pub struct UnknownTarget(pub String);

impl Target {
    /// The target of a name such as `cuda:90`.
    pub fn parse(name: &str) -> Result<Target, UnknownTarget> {
        let unknown = || UnknownTarget(name.to_string());
        let number = name.strip_prefix("cuda:").ok_or_else(unknown)?;
        match number.parse() {
            Ok(capability @ (80 | 86 | 89 | 90)) => Ok(Target { capability }),
            _ => Err(unknown()),
        }
    }

    /// The target that runs on a device of this compute capability: the newest that is not newer.
    pub fn for_device(capability: u32) -> Option<Target> {
        // Code for sm_90a runs on 9.0 only; other code runs on later minor versions of its major one.
        let best = [80, 86, 89].into_iter().rev().find(|&c| c <= capability && c / 10 == capability / 10);
        if capability == 90 {
            Some(Target { capability })
        } else {
            best.map(|capability| Target { capability })
        }
    }

    /// The architecture for `ptxas` and LLVM; 90 means `sm_90a`, whose `wgmma` and `setmaxnreg` sm_90 lacks.
    pub fn arch(self) -> &'static str {
        match self.capability {
            80 => "sm_80",
            86 => "sm_86",
            89 => "sm_89",
            _ => "sm_90a",
        }
    }

    /// The lowest PTX ISA version that has the target (PTX ISA, "Release Notes"): the driver's own compiler, the fallback
    /// where there is no `ptxas`, takes no newer PTX than itself.
    pub fn ptx_feature(self) -> &'static str {
        match self.capability {
            80 => "+ptx70",
            86 => "+ptx71",
            89 => "+ptx78",
            _ => "+ptx80",
        }
    }

    /// Whether an instruction needs PTX ISA 8.4: fp8 operands of `mma`, on sm_89 fp8 conversions (8.1), and changes of
    /// tensor maps with their fences (8.3).
    pub fn needs_ptx84(self, instruction: &str) -> bool {
        let fp8 = instruction.contains("e4m3") || instruction.contains("e5m2");
        fp8 && (self.capability == 89 || instruction.starts_with("mma.sync"))
            || instruction.contains("tensormap")
    }

    /// Shared memory that one CTA can have, in bytes (CUDA C++ Programming Guide, "Technical Specifications").
    pub fn max_shared_bytes(self) -> u32 {
        match self.capability {
            80 => 163 << 10,
            86 | 89 => 99 << 10,
            _ => 227 << 10,
        }
    }

    /// Registers of a multiprocessor.
    pub fn registers_per_sm(self) -> u32 {
        64 << 10
    }

    /// Threads of a warp.
    pub fn warp_size(self) -> u32 {
        32
    }

    /// `add`, `sub`, `mul` of bf16 (PTX ISA: sm_90; before, bf16 has only `fma`).
    pub fn has_bf16_arithmetic(self) -> bool {
        self.capability >= 90
    }

    /// `mma.sync` with fp8 operands.
    pub fn has_fp8_mma(self) -> bool {
        self.capability >= 89
    }

    /// `cvt` between fp8 and 16- or 32-bit floats.
    pub fn has_fp8_cvt(self) -> bool {
        self.capability >= 89
    }

    /// `stmatrix`, `mbarrier` with transaction counts, bulk copies, clusters, `wgmma`.
    pub fn has_hopper(self) -> bool {
        self.capability >= 90
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{}", self.capability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for c in [80, 86, 89, 90] {
            assert_eq!(Target::parse(&format!("cuda:{c}")).unwrap().to_string(), format!("cuda:{c}"));
        }
        assert!(Target::parse("cuda:75").is_err());
        assert!(Target::parse("hip:gfx942").unwrap_err().to_string().contains("cuda:90"));
        assert_eq!(Target::for_device(87).map(|t| t.capability), Some(86));
        assert_eq!(Target::for_device(90).map(|t| t.capability), Some(90));
        assert_eq!(Target::for_device(75), None);
    }
}
