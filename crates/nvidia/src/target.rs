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

    /// The lowest PTX ISA version that has the target and these instructions of inline assembly (PTX ISA, "Release Notes"):
    /// the driver's own compiler, the fallback where there is no `ptxas`, takes no newer PTX than itself.
    pub fn ptx_feature<'a>(self, mut inline: impl Iterator<Item = &'a str>) -> &'static str {
        const VERSIONS: [(u32, &str); 6] =
            [(70, "+ptx70"), (71, "+ptx71"), (75, "+ptx75"), (78, "+ptx78"), (80, "+ptx80"), (84, "+ptx84")];
        let target = match self.capability {
            80 => 70,
            86 => 71,
            89 => 78,
            _ => 80,
        };
        let most = inline.try_fold(target, |most, text| match most.max(self.needs(text)) {
            84 => Err(84),
            most => Ok(most),
        });
        let version = most.unwrap_or_else(|most| most);
        VERSIONS.iter().find(|v| v.0 == version).map_or("+ptx84", |v| v.1)
    }

    /// The PTX ISA version times ten that has the instruction, where this may be more than the target's.
    fn needs(self, instruction: &str) -> u32 {
        let fp8 = instruction.contains("e4m3") || instruction.contains("e5m2");
        if fp8 && (self.capability == 89 || instruction.starts_with("mma.sync"))
            || instruction.contains("tensormap")
        {
            // fp8 operands of `mma`, on sm_89 fp8 conversions (8.1), changes of tensor maps with their fences (8.3).
            return 84;
        }
        // `cp.async` with a predicate that ignores the source, its fourth operand.
        let ignores = instruction.contains("shared.global") && instruction.matches(',').count() == 3;
        if ignores { 75 } else { 0 }
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

    #[test]
    fn versions_by_target_and_instruction() {
        let copy = "cp.async.cg.shared.global [$0], [$1], 16";
        let masked = format!("@$2 {copy}, $3;");
        let version = |capability, texts: &[&str]| Target { capability }.ptx_feature(texts.iter().copied());
        assert_eq!(version(80, &[copy]), "+ptx70");
        assert_eq!(version(80, &[copy, &masked]), "+ptx75");
        assert_eq!(version(86, &[&masked]), "+ptx75");
        assert_eq!(version(89, &[&masked]), "+ptx78");
        let fp8 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32";
        assert_eq!(version(90, &[&masked]), "+ptx80");
        assert_eq!(version(90, &[&masked, fp8, copy]), "+ptx84");
    }
}
