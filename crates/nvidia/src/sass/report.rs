//! What `tilewright inspect` prints: registers, spills and occupancy of a kernel; of each loop the instructions with their
//! source lines and what bounds it.
//!
//! An innermost loop has two bounds. *Throughput*: the instructions of all warps that a multiprocessor holds, over what
//! each of its pipes does a cycle. *Latency*: the time that one warp needs for an iteration, however many others there are
//! ([`timeline`]). The larger one bounds the loop. Branches inside a loop count as if their code always
//! ran, and caches are taken to serve nothing (`dram`) or everything (`l2`) of the global memory.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Mix;
use super::listing::{Instruction, Listing, Place, mix};
use super::loops::{self, Loop};
use super::machine::{Cause, Machine, Pipe};
use super::timeline;
use crate::target::Target;

/// What the compiler knows of a kernel.
#[derive(Debug, Clone, Serialize)]
pub struct Facts {
    /// Its name.
    pub kernel: String,
    /// What it was compiled for, such as `cuda:90`.
    pub target: String,
    /// Warps of a CTA.
    pub num_warps: u32,
    /// Those that run a loop: all, or with warp specialization as many as `num_warps` of the launch says. Which loop is whose
    /// does not stand in the code.
    pub warps_of_loops: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of registers that a thread spills.
    pub spilled_bytes: u32,
    /// Shared memory of a CTA, in bytes.
    pub shared_bytes: u32,
    /// Hints of the kernel that could not be followed.
    pub remarks: Vec<String>,
}

/// How many CTAs a multiprocessor holds, and why not more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Occupancy {
    /// CTAs at a time.
    pub ctas: u32,
    /// Their warps.
    pub warps: u32,
    /// Warps that a multiprocessor holds at most.
    pub max_warps: u32,
    /// What a further CTA would lack: `registers`, `shared memory`, `warps` or `CTAs`.
    pub limited_by: Vec<&'static str>,
}

/// Instructions that come from one source line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LineMix {
    /// The line; absent for what no line is known of.
    pub place: Option<Place>,
    /// How often each opcode stands there.
    pub instructions: Mix,
}

/// What bounds a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Tensor cores are busy.
    Tensor,
    /// Instructions are issued, or a pipe for arithmetic is busy, all the time.
    Issue,
    /// Global or shared memory moves all that it can.
    Memory,
    /// Each warp waits for results, and there are too few warps to fill the time.
    Latency,
    /// Warps wait for each other.
    Barriers,
}

/// A verdict with what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// What bounds the loop.
    pub bound: Bound,
    /// In words.
    pub why: String,
}

/// An innermost loop's bounds, in cycles for an iteration of every warp that a multiprocessor holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cycles {
    /// By pipe, what its work takes.
    pub throughput: BTreeMap<Pipe, f64>,
    /// What one warp takes.
    pub latency: f64,
    /// Of that, waiting, by what is waited for.
    pub waits: BTreeMap<Cause, f64>,
}

/// A loop.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoopReport {
    /// The first and last source line of its instructions in the file that most of them come from.
    pub lines: Option<(u32, u32)>,
    /// That file.
    pub file: Option<String>,
    /// How many loops are around it.
    pub depth: usize,
    /// Its instructions, those of inner loops included.
    pub instructions: Mix,
    /// The same by source line, in the order in which the lines first appear.
    pub by_line: Vec<LineMix>,
    /// Loads from global memory, and copies of it, that one warp has under way at most.
    pub loads_in_flight: usize,
    /// Bytes that an iteration of one CTA moves from and to global memory by its threads' instructions.
    pub global_bytes: u64,
    /// Absent for a loop with loops inside.
    pub cycles: Option<Cycles>,
    /// If no cache serves the memory, and if the L2 cache serves all of it. Absent for a loop with loops inside.
    pub bound: Option<Verdict>,
    /// Absent where it is the same.
    pub bound_in_l2: Option<Verdict>,
}

/// Everything of one kernel.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// What the compiler knows.
    #[serde(flatten)]
    pub facts: Facts,
    /// How many CTAs run at a time on a multiprocessor.
    pub occupancy: Occupancy,
    /// Instructions of the whole kernel.
    pub instructions: Mix,
    /// The same by source line, in the order in which the lines first appear.
    pub by_line: Vec<LineMix>,
    /// Stores to and loads from local memory (`STL`, `LDL`) by source line.
    pub spills: Vec<LineMix>,
    /// The loops.
    pub loops: Vec<LoopReport>,
}

impl Report {
    /// Looks at a kernel's disassembly.
    pub fn new(listing: &Listing, target: Target, facts: Facts) -> Report {
        let machine = Machine::new(target);
        let occupancy = occupancy(target, &facts);
        let spills = listing.instructions.iter().filter(|i| matches!(i.name(), "STL" | "LDL"));
        let loops = loops::find(listing);
        Report {
            instructions: listing.mix(),
            by_line: by_line(listing.instructions.iter().filter(|i| !i.never)),
            spills: by_line(spills),
            loops: loops.iter().map(|l| look(l, listing, machine, &facts, &occupancy)).collect(),
            facts,
            occupancy,
        }
    }
}

/// Registers are handed out by the warp in units of 256, shared memory by the CTA in units of 128 bytes after the
/// kilobyte that the system takes (CUDA Occupancy Calculator).
pub fn occupancy(target: Target, facts: &Facts) -> Occupancy {
    let machine = Machine::new(target);
    let warps = facts.num_warps.max(1);
    let registers = (facts.registers.max(1) * 32).next_multiple_of(256);
    let shared = facts.shared_bytes.next_multiple_of(128) + 1024;
    let limits = [
        ("registers", target.registers_per_sm() / registers / warps),
        ("shared memory", machine.shared_bytes() / shared),
        ("warps", machine.max_warps() / warps),
        ("CTAs", machine.max_ctas()),
    ];
    let ctas = limits.iter().map(|(_, n)| *n).min().unwrap_or(0);
    Occupancy {
        ctas,
        warps: ctas * warps,
        max_warps: machine.max_warps(),
        limited_by: limits.iter().filter(|(_, n)| *n == ctas).map(|(name, _)| *name).collect(),
    }
}

fn by_line<'a>(instructions: impl Iterator<Item = &'a Instruction>) -> Vec<LineMix> {
    let mut lines: Vec<LineMix> = Vec::new();
    for i in instructions {
        let at = lines.iter().position(|l| l.place == i.place).unwrap_or_else(|| {
            lines.push(LineMix { place: i.place.clone(), instructions: Mix::new() });
            lines.len() - 1
        });
        *lines[at].instructions.entry(i.name().to_string()).or_insert(0) += 1;
    }
    lines
}

fn look(l: &Loop, listing: &Listing, machine: Machine, facts: &Facts, occupancy: &Occupancy) -> LoopReport {
    let body: Vec<Instruction> = l.instructions(listing).iter().filter(|i| !i.never).cloned().collect();
    let mut files: BTreeMap<&str, (usize, u32, u32)> = BTreeMap::new();
    for place in body.iter().filter_map(|i| i.place.as_ref()) {
        let file = files.entry(&place.file).or_insert((0, place.line, place.line));
        *file = (file.0 + 1, file.1.min(place.line), file.2.max(place.line));
    }
    let file = files.iter().max_by_key(|(_, (count, _, _))| *count);
    let warp_bytes: u64 = body.iter().map(|i| u64::from(machine.cost(i).global_bytes)).sum();
    // Warps of a CTA walk in step between two barriers, so that all its warp groups want the tensor cores at once.
    let groups = match body.iter().any(|i| i.name() == "BAR" && i.has("SYNC")) {
        true => (facts.warps_of_loops / 4).max(1),
        false => 1,
    };
    let walked = timeline::walk(&body, machine, groups, true);
    let cycles = l.innermost.then(|| {
        let alone = timeline::walk(&body, machine, 1, false);
        let mut waits = alone.waits;
        let barriers = walked.cycles - alone.cycles;
        if barriers > 0.0 {
            *waits.entry(Cause::Barriers).or_insert(0.0) += barriers;
        }
        Cycles {
            throughput: throughput(&body, machine, occupancy.ctas * facts.warps_of_loops, warp_bytes),
            latency: walked.cycles,
            waits,
        }
    });
    let bound = cycles.as_ref().map(|c| verdict(c, true, walked.loads_in_flight));
    let in_l2 = cycles.as_ref().map(|c| verdict(c, false, walked.loads_in_flight));
    LoopReport {
        lines: file.map(|(_, (_, first, last))| (*first, *last)),
        file: file.map(|(name, _)| (*name).to_string()),
        depth: l.depth,
        instructions: mix(&body),
        by_line: by_line(body.iter()),
        loads_in_flight: walked.loads_in_flight,
        global_bytes: warp_bytes * u64::from(facts.warps_of_loops),
        bound_in_l2: in_l2.filter(|v| bound.as_ref().is_some_and(|b| b.bound != v.bound)),
        bound,
        cycles,
    }
}

/// Cycles of each pipe for an iteration of so many warps.
fn throughput(body: &[Instruction], machine: Machine, warps: u32, warp_bytes: u64) -> BTreeMap<Pipe, f64> {
    // Each of a multiprocessor's four parts has a quarter of the warps and its own scheduler and pipes.
    let share = f64::from(warps) / 4.0;
    let mut work = BTreeMap::from([(Pipe::Issue, body.len() as f64 * share)]);
    for i in body {
        if let Some((pipe, cycles)) = machine.cost(i).pipe {
            *work.entry(pipe).or_insert(0.0) += cycles * share;
        }
    }
    if warp_bytes > 0 {
        let bytes = warp_bytes as f64 * f64::from(warps);
        work.insert(Pipe::L2, bytes / machine.l2_bytes());
        work.insert(Pipe::Dram, bytes / machine.dram_bytes());
    }
    work
}

fn verdict(cycles: &Cycles, dram: bool, in_flight: usize) -> Verdict {
    let skipped = if dram { Pipe::L2 } else { Pipe::Dram };
    let busiest =
        cycles.throughput.iter().filter(|(pipe, _)| **pipe != skipped).max_by(|a, b| a.1.total_cmp(b.1));
    let (&pipe, &work) = busiest.unwrap_or((&Pipe::Issue, &0.0));
    if work >= cycles.latency {
        let (bound, what) = match pipe {
            Pipe::Tensor => (Bound::Tensor, "the tensor cores are busy"),
            Pipe::Issue => (Bound::Issue, "the schedulers issue"),
            Pipe::Fp32 => (Bound::Issue, "the 32-bit floating-point units are busy"),
            Pipe::Multiply => (Bound::Issue, "the integer multipliers are busy"),
            Pipe::Alu => (Bound::Issue, "the integer and logic units are busy"),
            Pipe::Special => (Bound::Issue, "the special-function units are busy"),
            Pipe::Fp64 => (Bound::Issue, "the 64-bit floating-point units are busy"),
            Pipe::Shared => (Bound::Memory, "shared memory is busy"),
            Pipe::L2 => (Bound::Memory, "the L2 cache moves bytes"),
            Pipe::Dram => (Bound::Memory, "memory moves bytes"),
        };
        return Verdict {
            bound,
            why: format!("{what} {work:.0} cycles, one warp takes {:.0}", cycles.latency),
        };
    }
    let longest = cycles.waits.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(cause, n)| (*cause, *n));
    let (cause, waited) = longest.unwrap_or((Cause::Arithmetic, 0.0));
    let what = match cause {
        Cause::GlobalLoads => format!("global loads, {in_flight} under way at most"),
        Cause::Copies => format!("copies from global memory, {in_flight} under way at most"),
        Cause::Shared => "shared memory and shuffles".to_string(),
        Cause::Tensor => "its products".to_string(),
        Cause::Barriers => "other warps".to_string(),
        Cause::Arithmetic => "dependent instructions".to_string(),
    };
    Verdict {
        bound: if cause == Cause::Barriers { Bound::Barriers } else { Bound::Latency },
        why: format!(
            "one warp takes {:.0} cycles, {waited:.0} of them waiting for {what}; the work of all is done in {work:.0}",
            cycles.latency
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(num_warps: u32, registers: u32, shared_bytes: u32) -> Facts {
        let (kernel, target) = ("k".to_string(), "cuda:90".to_string());
        Facts {
            kernel,
            target,
            num_warps,
            warps_of_loops: num_warps,
            registers,
            spilled_bytes: 0,
            shared_bytes,
            remarks: Vec::new(),
        }
    }

    #[test]
    fn occupancies() {
        let of = |f: Facts| occupancy(Target::parse("cuda:90").unwrap(), &f);
        let full = of(facts(8, 32, 160));
        assert_eq!((full.ctas, full.warps), (8, 64));
        assert_eq!(full.limited_by, ["registers", "warps"]);
        // 42 registers are handed out as 48.
        assert_eq!((of(facts(8, 42, 160)).ctas, of(facts(8, 42, 160)).limited_by), (5, vec!["registers"]));
        assert_eq!(of(facts(8, 178, 147_456)).ctas, 1);
        assert_eq!(of(facts(4, 32, 100 << 10)).limited_by, ["shared memory"]);
    }

    fn report(body: &str, warps: u32, registers: u32) -> LoopReport {
        let lines = body
            .lines()
            .enumerate()
            .map(|(i, code)| format!("/*{:04x}*/ {code} ; /* 0x0 */\n/* 0x000fe20000000000 */\n", 16 * i));
        let listing = Listing::parse(&lines.collect::<String>());
        let all = Report::new(&listing, Target::parse("cuda:90").unwrap(), facts(warps, registers, 0));
        all.loops[0].clone()
    }

    #[test]
    fn verdicts() {
        let products = "HGMMA.64x256x16.F32 R24, gdesc[UR8], R24, gsb0\n@P0 BRA 0x0";
        assert_eq!(report(products, 8, 168).bound.map(|b| b.bound), Some(Bound::Tensor));
        let sums = "FADD R0, R0, R1\nFADD R2, R2, R3\nIADD3 R4, R4, R5, RZ\n@P0 BRA 0x0";
        assert_eq!(report(sums, 8, 32).bound.map(|b| b.bound), Some(Bound::Issue));
        let stores = "STG.E.128 desc[UR4][R2.64], R4\n@P0 BRA 0x0";
        let stores = report(stores, 8, 32);
        assert_eq!(stores.bound.map(|b| b.bound), Some(Bound::Memory));
        assert_eq!(stores.global_bytes, 8 * 512);
        let barriers = "BAR.SYNC.DEFER_BLOCKING 0x0\nFADD R0, R0, R1\n@P0 BRA 0x0";
        assert_eq!(report(barriers, 4, 255).bound.map(|b| b.bound), Some(Bound::Barriers));
    }
}
