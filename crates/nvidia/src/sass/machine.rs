//! What a multiprocessor does a cycle and how long its instructions take: the numbers behind the verdicts of
//! [`report`](super::report).
//!
//! What differs between targets stands in their [facts](crate::target::FACTS), which also says where the numbers are from.

use super::listing::Instruction;
use crate::target::Target;

/// What an instruction keeps busy, in the order of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pipe {
    /// Tensor cores.
    Tensor,
    /// The warp schedulers: one instruction a cycle.
    Issue,
    /// 32-bit floating point and fp16 pairs.
    Fp32,
    /// Integer multiplications.
    Multiply,
    /// Integers, logic, comparisons, selections, packing.
    Alu,
    /// Reciprocals, exponentials, conversions between integers and floats.
    Special,
    /// 64-bit floating point.
    Fp64,
    /// Shared memory and shuffles.
    Shared,
    /// Global memory, were all of it in the L2 cache.
    L2,
    /// Global memory, were none of it in a cache.
    Dram,
}

/// What a warp waits for, in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Loads from global memory into registers.
    GlobalLoads,
    /// Copies from global to shared memory.
    Copies,
    /// Shared memory, shuffles.
    Shared,
    /// Tensor cores.
    Tensor,
    /// Barriers, and what stands in step because of them.
    Barriers,
    /// Dependent arithmetic.
    Arithmetic,
}

/// How an instruction is executed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// The pipe, and the cycles for which a warp's instruction takes one of a multiprocessor's four shares of it.
    pub pipe: Option<(Pipe, f64)>,
    /// Cycles until the result is there.
    pub latency: f64,
    /// What whoever waits for it waits for.
    pub cause: Cause,
    /// Bytes that a warp moves to or from global memory.
    pub global_bytes: u32,
}

/// Rates of one target.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    target: Target,
}

impl Machine {
    /// The machine of a target.
    pub fn new(target: Target) -> Machine {
        Machine { target }
    }

    /// Warps that a multiprocessor holds (CUDA C++ Programming Guide, "Technical Specifications").
    pub fn max_warps(self) -> u32 {
        self.target.facts().max_warps
    }

    /// CTAs that a multiprocessor holds.
    pub fn max_ctas(self) -> u32 {
        self.target.facts().max_ctas
    }

    /// Shared memory of a multiprocessor: what a CTA may have, and the kilobyte that the system takes of each.
    pub fn shared_bytes(self) -> u32 {
        self.target.facts().max_shared + 1024
    }

    /// Bytes a cycle and multiprocessor from memory that no cache holds.
    pub fn dram_bytes(self) -> f64 {
        self.target.facts().dram_bytes
    }

    /// Bytes a cycle and multiprocessor from the L2 cache, by the width of its port.
    pub fn l2_bytes(self) -> f64 {
        f64::from(self.target.facts().l2_bytes)
    }

    /// Cycles of a barrier whose warps all stand at it.
    pub fn barrier(self) -> f64 {
        20.0
    }

    /// What an instruction costs.
    pub fn cost(self, i: &Instruction) -> Cost {
        let facts = self.target.facts();
        let plain = Cost { pipe: None, latency: 0.0, cause: Cause::Arithmetic, global_bytes: 0 };
        let pipe = |pipe, cycles, latency| Cost { pipe: Some((pipe, cycles)), latency, ..plain };
        let bytes = i.access_bits() / 8 * 32;
        let (l2, dram) = (f64::from(facts.l2_latency), f64::from(facts.load_latency));
        match i.name() {
            "HGMMA" | "QGMMA" | "IGMMA" | "BGMMA" => {
                let cycles = self.tensor_cycles(i);
                Cost { cause: Cause::Tensor, ..pipe(Pipe::Tensor, cycles, 32.0 + cycles) }
            }
            "HMMA" | "IMMA" | "QMMA" | "DMMA" | "BMMA" => {
                Cost { cause: Cause::Tensor, ..pipe(Pipe::Tensor, self.tensor_cycles(i), 33.0) }
            }
            "LDG" | "LD" | "ATOMG" | "ATOM" => {
                Cost { latency: dram, cause: Cause::GlobalLoads, global_bytes: bytes, ..plain }
            }
            "STG" | "ST" | "RED" | "REDG" => Cost { latency: l2, global_bytes: bytes, ..plain },
            "LDGSTS" => Cost { latency: dram, cause: Cause::Copies, global_bytes: bytes, ..plain },
            // How much they copy stands in the tensor map, not in the code.
            "UTMALDG" | "UBLKCP" | "UTMASTG" => Cost { latency: dram, cause: Cause::Copies, ..plain },
            // A quarter of a multiprocessor's 128 bytes a cycle is a warp's share.
            "LDS" | "STS" | "ATOMS" | "LDSM" | "STSM" => {
                let bytes = match i.name() {
                    "LDSM" | "STSM" if i.has("4") => 512,
                    "LDSM" | "STSM" if i.has("2") => 256,
                    "LDSM" | "STSM" => 128,
                    _ => bytes.max(128),
                };
                Cost { cause: Cause::Shared, ..pipe(Pipe::Shared, f64::from(bytes) / 32.0, 30.0) }
            }
            "SHFL" | "REDUX" | "CREDUX" => Cost { cause: Cause::Shared, ..pipe(Pipe::Shared, 4.0, 24.0) },
            "LDL" | "STL" => Cost { cause: Cause::GlobalLoads, ..pipe(Pipe::Shared, 4.0, 35.0) },
            "SYNCS" => Cost { latency: 20.0, cause: Cause::Barriers, ..plain },
            "MUFU" | "I2F" | "F2I" | "FRND" | "POPC" | "FLO" | "BREV" => pipe(Pipe::Special, 8.0, 20.0),
            "F2F" => pipe(Pipe::Special, if i.has("F64") { 16.0 } else { 8.0 }, 20.0),
            "DADD" | "DMUL" | "DFMA" | "DSETP" => pipe(Pipe::Fp64, facts.fp64_cycles, 10.0),
            "FADD" | "FMUL" | "FFMA" => pipe(Pipe::Fp32, facts.fp32_cycles, 4.0),
            "HADD2" | "HMUL2" | "HFMA2" => pipe(Pipe::Fp32, facts.half2_cycles, 5.0),
            "IMAD" | "IDP" => pipe(Pipe::Multiply, 2.0, 4.0),
            "S2R" | "S2UR" | "R2UR" | "CS2R" | "LDC" | "ULDC" => Cost { latency: 20.0, ..plain },
            name if is_control(name) => plain,
            // What runs once a warp has its own pipe.
            name if name.starts_with('U') => plain,
            _ => pipe(Pipe::Alu, 2.0, 5.0),
        }
    }

    /// Cycles of one of the four tensor cores. A warp group's product is shared by its four warps, each with its own.
    fn tensor_cycles(self, i: &Instruction) -> f64 {
        // Multiplications a cycle of one of the four tensor cores, fp16.
        let fp16 = f64::from(self.target.facts().products) / 4.0;
        let rate = match i.name() {
            "QGMMA" | "IGMMA" | "IMMA" | "QMMA" => 2.0 * fp16,
            "BGMMA" | "BMMA" => 16.0 * fp16,
            "DMMA" => fp16 / 16.0,
            _ if i.has("TF32") => fp16 / 2.0,
            _ => fp16,
        };
        multiplications(i) / rate
    }
}

/// Multiplications of one warp, from the shape in the modifiers.
fn multiplications(i: &Instruction) -> f64 {
    for modifier in i.opcode.split('.').skip(1) {
        let sizes: Vec<f64> = modifier.split('x').filter_map(|n| n.parse().ok()).collect();
        if let [m, n, k] = sizes[..] {
            // Four warps share it.
            return m * n * k / 4.0;
        }
        // `16816` is 16 by 8 by 16, `1688` is 16 by 8 by 8, `884` is 8 by 8 by 4.
        let shapes = [
            ("1688", 1024.0),
            ("16816", 2048.0),
            ("16832", 4096.0),
            ("16864", 8192.0),
            ("168128", 16384.0),
            ("168256", 32768.0),
            ("884", 256.0),
            ("1684", 512.0),
        ];
        if let Some((_, macs)) = shapes.iter().find(|(name, _)| *name == modifier) {
            return *macs;
        }
    }
    2048.0
}

/// What no arithmetic pipe executes.
fn is_control(name: &str) -> bool {
    const NAMES: [&str; 22] = [
        "BRA",
        "BAR",
        "BSSY",
        "BSYNC",
        "EXIT",
        "NOP",
        "DEPBAR",
        "LDGDEPBAR",
        "WARPGROUP",
        "WARPSYNC",
        "MEMBAR",
        "FENCE",
        "ERRBAR",
        "CCTL",
        "RET",
        "CALL",
        "B2R",
        "ARRIVES",
        "ACQBULK",
        "YIELD",
        "NANOSLEEP",
        "VOTEU",
    ];
    NAMES.contains(&name)
}
