//! What a launch reports: findings of the checks, and counters.

use crate::ast::Loc;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// What an instruction does, for the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Integer arithmetic.
    Integer,
    /// Bit and logic operations, shifts, permutes.
    Logic,
    /// Single precision.
    Float,
    /// Half precision and bf16.
    Half,
    /// Double precision.
    Double,
    /// Approximate functions of the special function unit.
    Special,
    /// Conversions.
    Convert,
    /// Comparisons and selections.
    Compare,
    /// Moves, packing and address conversions.
    Move,
    /// Loads.
    Load,
    /// Stores.
    Store,
    /// Atomics and reductions to memory.
    Atomic,
    /// Asynchronous copies.
    Async,
    /// Shuffles, votes and other exchanges inside a warp.
    Warp,
    /// Barriers, mbarriers and fences.
    Barrier,
    /// Matrix multiply and matrix loads.
    Tensor,
    /// Branches, calls and exits.
    Control,
    /// The rest.
    Other,
}

impl Class {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Class::Integer => "integer",
            Class::Logic => "logic",
            Class::Float => "float",
            Class::Half => "half",
            Class::Double => "double",
            Class::Special => "special",
            Class::Convert => "convert",
            Class::Compare => "compare",
            Class::Move => "move",
            Class::Load => "load",
            Class::Store => "store",
            Class::Atomic => "atomic",
            Class::Async => "async",
            Class::Warp => "warp",
            Class::Barrier => "barrier",
            Class::Tensor => "tensor",
            Class::Control => "control",
            Class::Other => "other",
        }
    }
}

/// The rule that a finding says was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// A global access outside every registered allocation.
    GlobalBounds,
    /// A store to an allocation that is read-only.
    ReadOnly,
    /// A shared access outside the CTA's window.
    SharedBounds,
    /// A local access outside the thread's local memory.
    LocalBounds,
    /// An address that is not a multiple of the access's size.
    Misaligned,
    /// A register read before it was written.
    UninitializedRegister,
    /// Shared memory read before it was written.
    UninitializedShared,
    /// Two unordered accesses to shared memory, one of them a write.
    SharedRace,
    /// Two unordered accesses to global memory, one of them a write.
    GlobalRace,
    /// An aligned barrier that not all lanes of the warp execute together.
    DivergentBarrier,
    /// A barrier or mbarrier used with counts that disagree.
    ArriveCount,
    /// Nothing left can run.
    Deadlock,
    /// The result of an asynchronous copy used before its wait.
    AsyncBeforeWait,
    /// An asynchronous-proxy access to what the generic proxy wrote, with no proxy fence between.
    ProxyFence,
    /// A `wgmma` on registers that other instructions wrote, with no `wgmma.fence` between.
    RegisterFence,
    /// A matrix descriptor or tensor map that is not valid.
    Descriptor,
    /// A warp-wide instruction used against its rules.
    WarpSync,
    /// An index that is not below what the compiler relies on.
    Index,
    /// A failed assertion or a trap.
    Trap,
    /// The instruction limit of the options.
    Limit,
}

impl FindingKind {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        use FindingKind::*;
        match self {
            GlobalBounds => "global access out of bounds",
            ReadOnly => "store to read-only memory",
            SharedBounds => "shared access out of bounds",
            LocalBounds => "local access out of bounds",
            Misaligned => "misaligned access",
            UninitializedRegister => "uninitialized register",
            UninitializedShared => "uninitialized shared memory",
            SharedRace => "shared-memory race",
            GlobalRace => "global-memory race",
            DivergentBarrier => "divergent barrier",
            ArriveCount => "wrong arrive count",
            Deadlock => "deadlock",
            AsyncBeforeWait => "asynchronous copy used before its wait",
            ProxyFence => "missing proxy fence",
            RegisterFence => "missing wgmma fence",
            Descriptor => "bad descriptor",
            WarpSync => "warp-wide instruction misused",
            Index => "index out of range",
            Trap => "trap",
            Limit => "instruction limit",
        }
    }
}

/// A position in a source file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Source {
    /// File, as the PTX's `.file` has it.
    pub file: String,
    /// One-based line.
    pub line: u32,
    /// One-based column; zero when unknown.
    pub column: u32,
}

/// A broken rule: where and by whom first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The rule.
    pub kind: FindingKind,
    /// Line in the PTX text.
    pub line: u32,
    /// That line's text.
    pub text: String,
    /// The kernel's source line, where `.loc` gives it.
    pub source: Option<Source>,
    /// Which rank's CTA it is, where several run.
    pub rank: Option<u64>,
    /// CTA index.
    pub cta: [u32; 3],
    /// Thread index in the CTA.
    pub thread: [u32; 3],
    /// The address, for memory findings.
    pub address: Option<u64>,
    /// What happened.
    pub message: String,
    /// How often this rule was broken on this line.
    pub count: u64,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.message)?;
        write!(f, "\n  PTX line {}: {}", self.line, self.text)?;
        if let Some(s) = &self.source {
            write!(f, "\n  source: {}:{}", s.file, s.line)?;
            if s.column != 0 {
                write!(f, ":{}", s.column)?;
            }
        }
        let ([cx, cy, cz], [tx, ty, tz]) = (self.cta, self.thread);
        let rank = self.rank.map_or(String::new(), |rank| format!(" of rank {rank}"));
        write!(f, "\n  CTA ({cx},{cy},{cz}){rank}, thread ({tx},{ty},{tz})")?;
        if let Some(a) = self.address {
            write!(f, ", address {a:#x}")?;
        }
        if self.count > 1 {
            write!(f, "\n  {} times on this line", self.count)?;
        }
        Ok(())
    }
}

/// What one instruction did, over all warps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InstStat {
    pub warps: u64,
    pub threads: u64,
    pub sectors: u64,
    pub sectors_min: u64,
    pub wavefronts: u64,
    pub wavefronts_min: u64,
    pub bytes: u64,
    pub global_bytes: u64,
    pub shared_bytes: u64,
}

impl InstStat {
    pub fn add(&mut self, o: &InstStat) {
        self.warps += o.warps;
        self.threads += o.threads;
        self.sectors += o.sectors;
        self.sectors_min += o.sectors_min;
        self.wavefronts += o.wavefronts;
        self.wavefronts_min += o.wavefronts_min;
        self.bytes += o.bytes;
        self.global_bytes += o.global_bytes;
        self.shared_bytes += o.shared_bytes;
    }
}

/// Deterministic counts of what a launch, or one source line of it, did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Instructions executed by warps.
    pub warp_instructions: u64,
    /// Instructions executed by threads whose guard was true.
    pub thread_instructions: u64,
    /// Warp instructions by class.
    pub classes: BTreeMap<&'static str, u64>,
    /// 32-byte sectors of global memory that loads, stores and atomics touched.
    pub global_sectors: u64,
    /// The fewest sectors that could hold the bytes those instructions moved.
    pub global_sectors_min: u64,
    /// Bytes read from global memory into registers.
    pub global_load_bytes: u64,
    /// Bytes written to global memory from registers.
    pub global_store_bytes: u64,
    /// Bytes updated by atomics.
    pub atomic_bytes: u64,
    /// Bytes copied asynchronously from or to global memory.
    pub async_bytes: u64,
    /// Bytes read from shared memory.
    pub shared_load_bytes: u64,
    /// Bytes written to shared memory.
    pub shared_store_bytes: u64,
    /// Passes over the shared-memory banks.
    pub shared_wavefronts: u64,
    /// Passes beyond the fewest possible.
    pub bank_conflicts: u64,
    /// Barrier instructions executed by warps.
    pub barriers: u64,
    /// Tensor-core instructions executed by warps.
    pub tensor_ops: u64,
    /// Multiply-adds done by tensor cores.
    pub tensor_macs: u64,
}

/// Counts of a launch, in all and by source line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// The whole launch.
    #[serde(flatten)]
    pub total: Counts,
    /// By source line (`file:line`), or by PTX line (`ptx:line`) where there is no `.loc`.
    pub lines: BTreeMap<String, Counts>,
    /// Warp instructions by opcode as written.
    pub opcodes: BTreeMap<String, u64>,
}

impl Counts {
    pub(crate) fn add(&mut self, class: Class, name: &str, macs: u64, s: &InstStat) {
        self.warp_instructions += s.warps;
        self.thread_instructions += s.threads;
        *self.classes.entry(class.name()).or_default() += s.warps;
        self.global_sectors += s.sectors;
        self.global_sectors_min += s.sectors_min;
        self.shared_wavefronts += s.wavefronts;
        self.bank_conflicts += s.wavefronts - s.wavefronts_min;
        let (g, sh) = (s.global_bytes, s.shared_bytes);
        match class {
            Class::Load => {
                self.global_load_bytes += g;
                self.shared_load_bytes += sh;
            }
            Class::Store => {
                self.global_store_bytes += g;
                self.shared_store_bytes += sh;
            }
            Class::Atomic => self.atomic_bytes += g + sh,
            Class::Async => self.async_bytes += g.max(sh),
            Class::Tensor if name.starts_with("stmatrix") || name.starts_with("wmma.store") => {
                self.global_store_bytes += g;
                self.shared_store_bytes += sh;
            }
            Class::Tensor => {
                self.global_load_bytes += g;
                self.shared_load_bytes += sh;
            }
            _ => {}
        }
        if class == Class::Barrier && (name.starts_with("bar") || name.starts_with("mbarrier")) {
            self.barriers += s.warps;
        }
        if class == Class::Tensor && macs != 0 {
            self.tensor_ops += s.warps;
            self.tensor_macs += s.warps * macs;
        }
    }
}

/// The outcome of a launch.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Broken rules, one a kind and PTX line.
    pub findings: Vec<Finding>,
    /// Counters.
    pub counters: Counters,
    /// What `vprintf` wrote, a call each.
    pub output: Vec<String>,
}

impl Report {
    /// Findings and counters as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_else(|e| format!("{{\"error\":\"{e}\"}}"))
    }

    /// The counters as a table for a terminal.
    pub fn table(&self) -> String {
        let c = &self.counters.total;
        let mut rows: Vec<(String, String)> = vec![
            ("warp instructions".into(), c.warp_instructions.to_string()),
            ("thread instructions".into(), c.thread_instructions.to_string()),
        ];
        rows.extend(c.classes.iter().map(|(k, v)| (format!("  {k}"), v.to_string())));
        rows.extend([
            ("global sectors".into(), format!("{} (minimum {})", c.global_sectors, c.global_sectors_min)),
            ("global bytes loaded".into(), c.global_load_bytes.to_string()),
            ("global bytes stored".into(), c.global_store_bytes.to_string()),
            ("bytes by atomics".into(), c.atomic_bytes.to_string()),
            ("bytes copied asynchronously".into(), c.async_bytes.to_string()),
            ("shared bytes loaded".into(), c.shared_load_bytes.to_string()),
            ("shared bytes stored".into(), c.shared_store_bytes.to_string()),
            ("shared wavefronts".into(), c.shared_wavefronts.to_string()),
            ("bank conflicts".into(), c.bank_conflicts.to_string()),
            ("barriers".into(), c.barriers.to_string()),
            ("tensor instructions".into(), c.tensor_ops.to_string()),
            ("tensor multiply-adds".into(), c.tensor_macs.to_string()),
        ]);
        let w = rows.iter().map(|r| r.0.len()).max().unwrap_or(0);
        let total: String = rows.iter().map(|(k, v)| format!("{k:<w$}  {v}\n")).collect();
        total + &self.busiest_lines()
    }

    /// The source lines with the most instructions, as a table.
    fn busiest_lines(&self) -> String {
        const SHOWN: usize = 10;
        let mut lines: Vec<(&String, &Counts)> = self.counters.lines.iter().collect();
        lines.sort_by_key(|(_, c)| std::cmp::Reverse(c.warp_instructions));
        lines.truncate(SHOWN);
        let w = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max("busiest lines".len());
        let mut text =
            format!("{:<w$}  instructions  sectors  (minimum)  bank conflicts  barriers\n", "busiest lines");
        for (name, c) in lines {
            text += &format!(
                "{name:<w$}  {:>12}  {:>7}  {:>9}  {:>14}  {:>8}\n",
                c.warp_instructions, c.global_sectors, c.global_sectors_min, c.bank_conflicts, c.barriers
            );
        }
        text
    }
}

/// Turns a `.loc` into a position.
pub(crate) fn source(files: &[(u32, String)], l: Loc) -> Option<Source> {
    let f = files.iter().find(|f| f.0 == l.file)?;
    Some(Source { file: f.1.clone(), line: l.line, column: l.column })
}
