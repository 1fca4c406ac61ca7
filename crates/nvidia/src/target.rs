//! NVIDIA targets: their names, and every fact that the compiler uses of a compute capability.
//!
//! One row a capability ([`FACTS`]). The passes are given what they need as [`TargetInfo`] ([`Target::info`]), the lowering and
//! the reports of `inspect` ask here; nothing else compares capabilities. Limits are those of the CUDA C++ Programming Guide
//! ("Technical Specifications per Compute Capability"), throughputs those of its "Arithmetic Instructions" (results a cycle and
//! multiprocessor) and of the architectures' white papers; for 8.6, 8.9, 10.0 and 12.0 bandwidths are those of the A10, the L40S, the B200
//! and the RTX PRO 6000. Latencies are round numbers near published microbenchmarks. They order bottlenecks; they predict no
//! times.

use std::fmt;

use tilewright_passes::contract::LOWERED;
use tilewright_passes::machine::Machine;
use tilewright_passes::target::{DotUnits, TargetInfo};

use crate::pipeline::PASSES;

/// A compute capability that we generate code for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// Its row, by index into [`FACTS`].
    row: u8,
}

/// What a compute capability has.
#[derive(Debug)]
pub struct Facts {
    /// 10 · major + minor.
    pub capability: u32,
    /// The architecture for `ptxas`. 90 means `sm_90a`, whose `wgmma` and `setmaxnreg` sm_90 lacks.
    pub arch: &'static str,
    /// The PTX ISA version times ten in which it came (PTX ISA, "Release Notes").
    pub ptx: u32,
    /// Shared memory that one CTA can have, in bytes.
    pub max_shared: u32,
    /// Warps that a multiprocessor holds.
    pub max_warps: u32,
    /// CTAs that a multiprocessor holds.
    pub max_ctas: u32,
    /// `add`, `sub`, `mul` of bf16, and its atomic addition.
    pub bf16_arithmetic: bool,
    /// `mma.sync` with fp8 operands, `cvt` between fp8 and 16- or 32-bit floats.
    pub fp8: bool,
    /// `stmatrix`.
    pub stmatrix: bool,
    /// `wgmma`.
    pub wgmma: bool,
    /// `mbarrier` with transaction counts, tensor and bulk copies, `setmaxnreg`, as we generate them.
    pub tma: bool,
    /// Clusters of CTAs, as we generate them.
    pub clusters: bool,
    /// Whether stores say that they want no room in the level 1 cache (measured to gain on 9.0: the log of performance).
    pub streaming_stores: bool,
    /// Multiplications of 16-bit floats a cycle on all tensor cores of a multiprocessor.
    pub products: u32,
    /// Cycles from a load of memory that no cache holds to its value.
    pub load_latency: u32,
    /// The same from the level 2 cache.
    pub l2_latency: u32,
    /// Bytes a cycle and multiprocessor from memory that no cache holds.
    pub dram_bytes: f64,
    /// Bytes a cycle and multiprocessor from the level 2 cache, by the width of its port.
    pub l2_bytes: u32,
    /// Cycles for which a warp's instruction takes one of a multiprocessor's four shares of the 32-bit float pipe.
    pub fp32_cycles: f64,
    /// The same for pairs of halves.
    pub half2_cycles: f64,
    /// The same for 64-bit floats.
    pub fp64_cycles: f64,
}

/// The facts, oldest first.
pub static FACTS: [Facts; 6] = [
    Facts {
        capability: 80,
        arch: "sm_80",
        ptx: 70,
        max_shared: 163 << 10,
        max_warps: 64,
        max_ctas: 32,
        bf16_arithmetic: false,
        fp8: false,
        stmatrix: false,
        wgmma: false,
        tma: false,
        clusters: false,
        streaming_stores: false,
        products: 1024,
        load_latency: 500,
        l2_latency: 220,
        dram_bytes: 13.4, // A100 80 GB: 2039 GB/s, 108 multiprocessors, 1.41 GHz
        l2_bytes: 64,
        fp32_cycles: 2.0,
        half2_cycles: 1.0,
        fp64_cycles: 4.0,
    },
    Facts {
        capability: 86,
        arch: "sm_86",
        ptx: 71,
        max_shared: 99 << 10,
        max_warps: 48,
        max_ctas: 16,
        bf16_arithmetic: false,
        fp8: false,
        stmatrix: false,
        wgmma: false,
        tma: false,
        clusters: false,
        streaming_stores: false,
        products: 512,
        load_latency: 500,
        l2_latency: 220,
        dram_bytes: 4.9, // A10: 600 GB/s, 72, 1.70 GHz
        l2_bytes: 32,
        fp32_cycles: 1.0,
        half2_cycles: 2.0,
        fp64_cycles: 64.0,
    },
    Facts {
        capability: 89,
        arch: "sm_89",
        ptx: 78,
        max_shared: 99 << 10,
        max_warps: 48,
        max_ctas: 24,
        bf16_arithmetic: false,
        fp8: true,
        stmatrix: false,
        wgmma: false,
        tma: false,
        clusters: false,
        streaming_stores: false,
        products: 512,
        load_latency: 500,
        l2_latency: 220,
        dram_bytes: 2.4, // L40S: 864 GB/s, 142, 2.52 GHz
        l2_bytes: 32,
        fp32_cycles: 1.0,
        half2_cycles: 2.0,
        fp64_cycles: 64.0,
    },
    Facts {
        capability: 90,
        arch: "sm_90a",
        ptx: 80,
        max_shared: 227 << 10,
        max_warps: 64,
        max_ctas: 32,
        bf16_arithmetic: true,
        fp8: true,
        stmatrix: true,
        wgmma: true,
        tma: true,
        clusters: true,
        streaming_stores: true,
        products: 2048,
        load_latency: 600,
        l2_latency: 270,
        dram_bytes: 14.5, // H100 SXM: 3350 GB/s, 132, 1.75 GHz
        l2_bytes: 64,
        fp32_cycles: 1.0,
        half2_cycles: 1.0,
        fp64_cycles: 2.0,
    },
    // Blackwell's data center and desktop chips, by the instructions that they share with 8.x: `mma.sync` and `cp.async`.
    // Its `tcgen05`, and tensor copies and clusters there, are not supported yet.
    Facts {
        capability: 100,
        arch: "sm_100",
        ptx: 86,
        max_shared: 227 << 10,
        max_warps: 64,
        max_ctas: 32,
        bf16_arithmetic: true,
        fp8: true,
        stmatrix: true,
        wgmma: false,
        tma: false,
        clusters: false,
        streaming_stores: false,
        products: 1024,
        load_latency: 600,
        l2_latency: 270,
        dram_bytes: 28.1, // B200: 8000 GB/s, 148, 1.92 GHz
        l2_bytes: 64,
        fp32_cycles: 1.0,
        half2_cycles: 1.0,
        fp64_cycles: 2.0,
    },
    Facts {
        capability: 120,
        arch: "sm_120",
        ptx: 87,
        max_shared: 99 << 10,
        max_warps: 48,
        max_ctas: 24,
        bf16_arithmetic: true,
        fp8: true,
        stmatrix: true,
        wgmma: false,
        tma: false,
        clusters: false,
        streaming_stores: false,
        products: 512,
        load_latency: 500,
        l2_latency: 220,
        dram_bytes: 3.6, // RTX PRO 6000: 1792 GB/s, 188, 2.62 GHz
        l2_bytes: 32,
        fp32_cycles: 1.0,
        half2_cycles: 1.0,
        fp64_cycles: 64.0,
    },
];

/// What a target's name may not be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown target `{0}`; the NVIDIA targets are {names}", names = Target::names())]
pub struct UnknownTarget(pub String);

impl Target {
    /// Every target, oldest first.
    pub fn all() -> impl DoubleEndedIterator<Item = Target> {
        (0..FACTS.len()).map(|row| Target { row: row as u8 })
    }

    /// The names of all targets, for messages.
    pub fn names() -> String {
        let names: Vec<String> = Target::all().map(|t| t.to_string()).collect();
        names.join(", ")
    }

    /// The target of a name such as `cuda:90`, or `cuda:90a`.
    ///
    /// # Errors
    /// Any name that is not one of [`Target::all`].
    pub fn parse(name: &str) -> Result<Target, UnknownTarget> {
        let unknown = || UnknownTarget(name.to_string());
        let number = name.strip_prefix("cuda:").ok_or_else(unknown)?;
        Target::all()
            .find(|t| {
                number == t.capability().to_string() || t.facts().arch.strip_prefix("sm_") == Some(number)
            })
            .ok_or_else(unknown)
    }

    /// The target that runs on a device of this compute capability: the newest that is not newer.
    pub fn for_device(capability: u32) -> Option<Target> {
        // Code for sm_90a runs on 9.0 only; other code runs on later minor versions of its major one.
        Target::all().rev().find(|t| {
            let (own, exact) = (t.capability(), t.facts().arch.ends_with('a'));
            own <= capability && own / 10 == capability / 10 && (own == capability || !exact)
        })
    }

    /// Its facts.
    pub fn facts(self) -> &'static Facts {
        &FACTS[usize::from(self.row)]
    }

    /// Compute capability, as 10 · major + minor.
    pub fn capability(self) -> u32 {
        self.facts().capability
    }

    /// What the passes know of it.
    pub fn info(self) -> TargetInfo {
        let facts = self.facts();
        TargetInfo {
            name: self.to_string(),
            warp_size: self.warp_size(),
            max_shared: facts.max_shared,
            max_vector_bytes: 16,
            async_copy: true,
            dots: DotUnits { mma: true, fp8: facts.fp8, wgmma: facts.wgmma, columns: &[] },
            stmatrix: facts.stmatrix,
            tma: facts.tma,
            clusters: facts.clusters,
            machine: Machine {
                products: facts.products,
                product_latency: 32,
                special: 8,
                load_latency: facts.load_latency,
                copied_bytes: facts.l2_bytes,
                registers: self.registers_per_sm(),
                registers_of_thread: 255,
                min_registers_of_thread: 24,
            },
            warp_units: None,
            passes: PASSES,
            lowered: LOWERED,
            otherwise: None,
        }
    }

    /// The processor for LLVM, which knows none later than sm_90a: what it generates for later ones is plain code, whose
    /// `.target` is written anew ([`Target::retarget`]).
    pub fn llvm_cpu(self) -> &'static str {
        if self.capability() > 90 { "sm_90" } else { self.facts().arch }
    }

    /// The architecture for `ptxas` and the least PTX ISA version of code with this text. Most code of a Blackwell runs on those that come later;
    /// conversions of microscaling formats are its family's alone, and stochastic rounding (`.rs`) is its own (PTX ISA, "cvt").
    pub fn architecture(self, ptx: &str) -> (String, u32) {
        const OF_A_FAMILY: [&str; 4] = [".e2m1x2", ".e2m3x2", ".e3m2x2", ".ue8m0x2"];
        let facts = self.facts();
        if self.capability() == 100 && ptx.contains("cvt.rs.") {
            return (format!("{}a", facts.arch), facts.ptx.max(87));
        }
        match self.capability() >= 100 && OF_A_FAMILY.iter().any(|name| ptx.contains(name)) {
            true => (format!("{}f", facts.arch), facts.ptx.max(88)),
            false => (facts.arch.to_string(), facts.ptx),
        }
    }

    /// PTX as it came from LLVM, with the version and the target that it is for; a version times ten may be asked for.
    ///
    /// # Errors
    /// The version that the code needs, where a lower one is asked for.
    pub fn retarget(self, ptx: String, asked: Option<u32>) -> Result<String, u32> {
        let facts = self.facts();
        if facts.arch == self.llvm_cpu() && asked.is_none() {
            return Ok(ptx);
        }
        let (arch, least) = self.architecture(&ptx);
        let (mut out, mut head) = (String::with_capacity(ptx.len() + 8), true);
        for line in ptx.split_inclusive('\n') {
            if let Some(version) = line.strip_prefix(".version ").filter(|_| head) {
                let digits: String = version.chars().filter(char::is_ascii_digit).collect();
                let llvm = digits.parse().unwrap_or(least);
                let needed = if facts.arch == self.llvm_cpu() { llvm } else { least };
                let chosen = asked.unwrap_or(needed);
                if chosen < needed {
                    return Err(needed);
                }
                out.push_str(&format!(".version {}.{}\n", chosen / 10, chosen % 10));
            } else if head && line.starts_with(".target ") {
                out.push_str(&line.replacen(self.llvm_cpu(), &arch, 1));
                head = false;
            } else {
                out.push_str(line);
            }
        }
        Ok(out)
    }

    /// The lowest PTX ISA version, of those that LLVM knows, that has the target and these instructions of inline assembly (PTX
    /// ISA, "Release Notes"): the driver's own compiler, the fallback where there is no `ptxas`, takes no newer PTX than itself.
    pub fn ptx_feature<'a>(self, mut inline: impl Iterator<Item = &'a str>) -> &'static str {
        const VERSIONS: [(u32, &str); 8] = [
            (70, "+ptx70"),
            (71, "+ptx71"),
            (74, "+ptx74"),
            (75, "+ptx75"),
            (78, "+ptx78"),
            (80, "+ptx80"),
            (81, "+ptx81"),
            (84, "+ptx84"),
        ];
        let most = inline.try_fold(self.facts().ptx.min(84), |most, text| match most.max(self.needs(text)) {
            84 => Err(84),
            most => Ok(most),
        });
        let version = most.unwrap_or_else(|most| most);
        VERSIONS.iter().find(|v| v.0 == version).map_or("+ptx84", |v| v.1)
    }

    /// The PTX ISA version times ten that has the instruction, where this may be more than the target's.
    fn needs(self, instruction: &str) -> u32 {
        let fp8 = instruction.contains("e4m3") || instruction.contains("e5m2");
        if fp8 && (self.capability() == 89 || instruction.starts_with("mma.sync"))
            || instruction.contains("tensormap")
        {
            // fp8 operands of `mma`, on sm_89 fp8 conversions (8.1), changes of tensor maps with their fences (8.3).
            return 84;
        }
        // `cp.async` with a predicate that ignores the source, its fourth operand; a cache policy comes last.
        let operands = 4 + usize::from(instruction.contains("L2::cache_hint"));
        let ignores =
            instruction.contains("shared.global") && instruction.matches(',').count() + 1 == operands;
        // A wait for a parity; an arrival whose state nobody wants.
        let mbarrier = instruction.contains("mbarrier.");
        // Floats side by side.
        let adds = |kind: &str| instruction.contains("red.global.") && instruction.contains(kind);
        if adds(".v2.") || adds(".v4.") {
            81
        } else if ignores {
            75
        } else if ["szext.", "bmsk."].iter().any(|name| instruction.contains(name)) {
            78
        } else if [".L1::", ".L2::"].iter().any(|level| instruction.contains(level)) {
            // What caches keep.
            74
        } else if mbarrier {
            71
        } else {
            0
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
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{}", self.capability())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for target in Target::all() {
            assert_eq!(Target::parse(&target.to_string()), Ok(target));
        }
        assert_eq!(Target::parse("cuda:90a"), Target::parse("cuda:90"));
        assert!(Target::parse("cuda:75").is_err());
        assert!(Target::parse("hip:gfx942").unwrap_err().to_string().contains("cuda:90"));
        let of = |capability| Target::for_device(capability).map(Target::capability);
        assert_eq!(of(87), Some(86));
        assert_eq!(of(90), Some(90));
        assert_eq!(of(75), None);
        assert_eq!(of(103), Some(100));
        assert_eq!(of(121), Some(120));
    }

    #[test]
    fn versions_by_target_and_instruction() {
        let copy = "cp.async.cg.shared.global [$0], [$1], 16";
        let masked = format!("@$2 {copy}, $3;");
        let target = |capability: u32| Target::parse(&format!("cuda:{capability}")).unwrap();
        let version = |capability, texts: &[&str]| target(capability).ptx_feature(texts.iter().copied());
        assert_eq!(version(80, &[copy]), "+ptx70");
        assert_eq!(version(80, &[copy, &masked]), "+ptx75");
        assert_eq!(version(86, &[&masked]), "+ptx75");
        let kept = "cp.async.cg.shared.global.L2::cache_hint [$0], [$1], 16, $2;";
        assert_eq!(version(80, &[kept]), "+ptx74");
        assert_eq!(version(80, &[&kept.replace("16", "16, $3")]), "+ptx75");
        // What kernels bring themselves, too.
        assert_eq!(version(80, &["createpolicy.fractional.L2::evict_last.b64 $0, 1.0;"]), "+ptx74");
        assert_eq!(version(80, &["bmsk.clamp.b32 $0, $1, $2;"]), "+ptx78");
        assert_eq!(version(80, &[copy, "ld.global.L1::evict_last.b32 $0, [$1];"]), "+ptx74");
        assert_eq!(version(89, &[&masked]), "+ptx78");
        let fp8 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32";
        assert_eq!(version(90, &[&masked]), "+ptx80");
        assert_eq!(version(90, &[&masked, fp8, copy]), "+ptx84");
        let ptx = "// head\n.version 8.4\n.target sm_90\n.address_size 64\n".to_string();
        assert_eq!(
            target(120).retarget(ptx.clone(), None).unwrap(),
            "// head\n.version 8.7\n.target sm_120\n.address_size 64\n"
        );
        let small = format!("{ptx}cvt.rn.satfinite.e2m1x2.f32 b, f, g;\n");
        let of_family = target(100).retarget(small.clone(), None).unwrap();
        assert!(of_family.contains(".version 8.8\n.target sm_100f\n"), "{of_family}");
        assert_eq!(target(100).architecture(&of_family).0, "sm_100f");
        assert_eq!(target(100).retarget(small.clone(), Some(87)), Err(88));
        let stochastic = format!("{small}cvt.rs.satfinite.e2m1x4.f32 h, {{f, f, f, f}}, r;\n");
        let own = target(100).retarget(stochastic, None).unwrap();
        assert!(own.contains(".version 8.7\n.target sm_100a\n"), "{own}");
        assert_eq!(target(100).architecture(&own).0, "sm_100a");
        assert_eq!(target(90).retarget(ptx.clone(), None), Ok(ptx));
    }
}
