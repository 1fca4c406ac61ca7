//! Warps, CTAs and the scheduler that runs them.
//!
//! **Divergence.** The lanes of a warp are in *fragments*: sets of lanes at one instruction. The fragment at the lowest
//! instruction runs first, and fragments that meet merge. Code is laid out so that a loop is contiguous and its exits
//! come after it ([`crate::flatten`]), so lanes meet again at or before the immediate post-dominator ("thread
//! frontiers": Diamos et al., MICRO 2011). A fragment that keeps jumping backwards gives way to the others, so a lane
//! that spins on a lock held by another lane of its own warp ends.
//!
//! **Units.** A cluster of CTAs (mostly one) is a *unit*: one worker thread runs it, its warps in turn, so shared
//! memory needs no locks and a seed fixes the order.

use crate::SimOptions;
use crate::barrier::{Bar, BarrierOp};
use crate::clock::Sync;
use crate::flatten::Code;
use crate::isa::{Flow, Inst, NONE};
use crate::memory::Memory;
use crate::regs::{LANES, Regs};
use crate::report::{Finding, FindingKind, InstStat};
use crate::shadow::{GlobalShadow, SharedShadow};
use crate::standstill::Standstill;
use crate::tensor_map::Swizzle;
use crate::whereabouts::Whereabouts;
use std::cmp::Reverse;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Backward branches after which a diverged fragment lets the others run.
const SPIN: u32 = 256;
/// Backward branches after which a fragment that only polls memory does.
const POLL: u32 = 16;
/// Of so many instructions of such a loop at least one looks at memory: a vector, of which each word is compared.
const POLLED: u64 = 32;
/// Instructions a warp runs before the next one has its turn.
const QUANTUM: u32 = 20_000;
/// Instructions after which a warp sees that the run is to end: one of a tensor core may take a millisecond.
const WATCH: u32 = 64;

/// Scopes of strong accesses.
pub(crate) const GPU: u32 = 2;
pub(crate) const SYSTEM: u32 = 3;

/// What all workers share.
pub(crate) struct Grid<'a> {
    pub code: &'a Code,
    pub memory: &'a Memory,
    pub options: &'a SimOptions,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub cluster: [u32; 3],
    pub shared_bytes: u32,
    /// Registers with constants, addresses and launch-wide special registers filled in.
    /// Those of each rank.
    pub templates: &'a [Regs],
    /// Units of one rank; they are numbered rank by rank.
    pub units: u64,
    pub findings: Mutex<Vec<Finding>>,
    pub output: Mutex<Vec<String>>,
    /// Set by whoever ends the run: see [`Grid::stopped`].
    pub stop: AtomicBool,
    /// Warp instructions of all units, counted only where there is a limit.
    pub executed: AtomicU64,
    /// Counts rounds of any unit in which something was done.
    pub progress: AtomicU64,
    pub standstill: Standstill,
    pub shadow: GlobalShadow,
}

impl Grid<'_> {
    /// Which rank's a unit is.
    pub fn rank(&self, unit: u64) -> u64 {
        unit / self.units
    }

    /// The same for messages, where there are several.
    pub fn of_rank(&self, unit: u64) -> String {
        match self.templates.len() {
            1 => String::new(),
            _ => format!(" of rank {}", self.rank(unit)),
        }
    }

    /// Whether the run is to end, for what it found or because it is no longer wanted.
    pub fn stopped(&self) -> bool {
        self.stop.load(Relaxed) || self.options.interrupt.as_ref().is_some_and(|i| i.load(Relaxed))
    }

    /// Whether more instructions were asked for than may be executed.
    fn exhausted(&self) -> bool {
        let limit = self.options.max_instructions;
        limit != 0 && self.executed.load(Relaxed) > limit
    }

    /// Counts an instruction that is about to be executed; says whether it may be.
    fn count(&self) -> bool {
        let limit = self.options.max_instructions;
        limit == 0 || self.executed.fetch_add(1, Relaxed) < limit
    }
}

/// Where a fragment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Can run.
    Ready,
    /// Waits at a warp-wide instruction for these lanes.
    Gather(u32),
    /// At an aligned barrier while these lanes of the warp were elsewhere.
    Pending(BarrierOp, u32),
    /// Has arrived at a barrier.
    Waiting(BarrierOp),
}

/// Lanes at one instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frag {
    pub pc: u32,
    pub mask: u32,
    pub state: State,
    /// Fragments with a lower turn run first.
    pub turn: u32,
}

/// An asynchronous copy in flight, a lane each.
pub(crate) struct Copy {
    pub mask: u32,
    /// The group each lane's copy belongs to.
    pub group: [u32; LANES],
    pub dst: [u64; LANES],
    pub src: [u64; LANES],
    /// Bytes to copy from the source; the rest up to `size` is zero.
    pub take: [u32; LANES],
    pub size: u32,
    /// What lay there when it was issued.
    pub data: Box<[[u8; 16]; LANES]>,
}

/// A warp.
pub(crate) struct Warp {
    pub regs: Regs,
    /// Index of its CTA in the unit.
    pub cta: usize,
    /// Number in its CTA.
    pub id: u32,
    /// Lanes that exist.
    pub full: u32,
    /// Lanes that have not exited.
    pub live: u32,
    pub frags: Vec<Frag>,
    /// Local memory, lane after lane.
    pub local: Vec<u8>,
    /// Initialized lanes of each tracked register.
    pub init: Vec<u32>,
    pub copies: Vec<Copy>,
    /// The open copy group of each lane.
    pub group: [u32; LANES],
    /// Bulk stores in flight, and the open bulk group of each lane.
    pub bulk: Vec<crate::isa::BulkPending>,
    pub bulk_group: [u32; LANES],
    /// The number of the last bulk store, as the agent's stamp.
    pub bulk_stamp: u32,
    pub wgmma: crate::isa::Wgmma,
    pub sync: Sync,
    pub calls: crate::isa::Calls,
    /// Instructions executed.
    pub executed: u64,
    /// Strong reads so far.
    pub polls: u64,
    /// The fragment that ran last only waited for something.
    pub polled: bool,
    /// The warp gives its turn away.
    pub yielded: bool,
    pub done: bool,
}

/// A CTA.
pub(crate) struct Cta {
    pub id: [u32; 3],
    pub rank: u32,
    pub shared: Vec<u8>,
    pub shadow: SharedShadow,
    pub bars: Vec<Bar>,
    /// Registers that warps have given back, for each of 32 threads.
    pub registers: u32,
    /// Where tensor copies put their boxes, how many bytes and how swizzled.
    pub tensors: Vec<(u32, u32, Swizzle)>,
    /// Warps in the unit.
    pub warps: std::ops::Range<usize>,
    /// The last accesses to its shared memory by warps of other CTAs.
    pub visits: Vec<Visit>,
}

/// An access to another CTA's shared memory.
pub(crate) struct Visit {
    pub warp: u32,
    pub lane: u32,
    pub pc: u32,
    pub stamp: u32,
}

/// A cluster of CTAs, run by one worker.
pub(crate) struct Unit {
    /// Its number in the grid.
    pub number: u32,
    pub ctas: Vec<Cta>,
    pub warps: Vec<Option<Box<Warp>>>,
    pub stats: Vec<InstStat>,
    /// Counts state changes that a spinning wait can see.
    pub events: u64,
    /// Counts what others may see, or what [`crate::standstill`] doesn't find in registers, memory of its own and barriers.
    pub effects: u64,
    /// Whether it has just told other devices something: they have a turn before it goes on, so that who waited for it is not ordered behind
    /// what comes later, too.
    pub told: bool,
    pub idle_rounds: u32,
    before: Whereabouts,
    /// `Grid::progress` when it was last looked at.
    progress: u64,
    pub cluster_bar: Bar,
    pub mbar: crate::isa::MbarTable,
    /// What the warp groups have executed together, by CTA and group.
    pub groups: crate::isa::GroupLog,
    order: u64,
}

/// What a slice of a unit's execution came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slice {
    Done,
    More,
}

/// The view an executing instruction has.
pub(crate) struct Cx<'a> {
    pub w: &'a mut Warp,
    pub unit: &'a mut Unit,
    pub grid: &'a Grid<'a>,
    /// Lanes that execute.
    pub mask: u32,
    /// Lanes of the fragment, guard or not.
    pub frag: u32,
    pub pc: u32,
    /// For [`Flow::Switch`].
    pub targets: Vec<(u32, u32)>,
    /// For [`Flow::Gather`].
    pub need: u32,
    /// For [`Flow::Barrier`].
    pub barrier: Option<BarrierOp>,
    /// Scope of the strong access being made: 0 CTA, 1 cluster, 2 GPU, 3 system.
    pub scope: u32,
    /// Lanes whose write may race with one of the same value, and those where the values turned out to differ.
    pub suspect: u32,
    pub confirmed: u32,
    pub suspects: Vec<(u32, FindingKind, String)>,
    /// Off while an access is made that the checks and counters should not see.
    pub tracked: bool,
}

impl<'a> Cx<'a> {
    /// What lanes `mask` of a fragment see.
    #[inline(always)]
    fn new(w: &'a mut Warp, unit: &'a mut Unit, grid: &'a Grid<'a>, mask: u32, of: Frag) -> Cx<'a> {
        Cx {
            w,
            unit,
            grid,
            mask,
            frag: of.mask,
            pc: of.pc,
            targets: vec![],
            need: 0,
            barrier: None,
            scope: 2,
            suspect: 0,
            confirmed: 0,
            suspects: vec![],
            tracked: true,
        }
    }

    /// Records a finding for `lane`.
    pub fn find(&mut self, kind: FindingKind, lane: usize, addr: Option<u64>, message: String) {
        let inst = &self.grid.code.insts[self.pc as usize];
        find(self.grid, self.unit, self.w, inst, kind, lane, addr, message);
    }

    /// Runs `f` without checks of order and without counting.
    pub fn untracked<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        let was = std::mem::replace(&mut self.tracked, false);
        let r = f(self);
        self.tracked = was;
        r
    }
}

/// The CTA of rank `rank` in unit `n`.
pub(crate) fn cta_of(grid: &Grid<'_>, n: u64, rank: u32) -> [u32; 3] {
    let c = grid.cluster;
    let n = n % grid.units;
    let (x, y) = (u64::from(grid.grid[0] / c[0]), u64::from(grid.grid[1] / c[1]));
    let cid = [(n % x) as u32, (n / x % y) as u32, (n / (x * y)) as u32];
    let at = [rank % c[0], rank / c[0] % c[1], rank / (c[0] * c[1])];
    [cid[0] * c[0] + at[0], cid[1] * c[1] + at[1], cid[2] * c[2] + at[2]]
}

/// The thread index of a lane.
pub(crate) fn thread_of(block: [u32; 3], warp: u32, lane: usize) -> [u32; 3] {
    let t = warp * 32 + lane as u32;
    [t % block[0], t / block[0] % block[1], t / (block[0] * block[1])]
}

pub(crate) fn find(
    grid: &Grid<'_>,
    unit: &Unit,
    w: &Warp,
    inst: &Inst,
    kind: FindingKind,
    lane: usize,
    addr: Option<u64>,
    message: String,
) {
    let mut all = grid.findings.lock().unwrap_or_else(|e| e.into_inner());
    // Where several ranks wait for each other, each says where.
    let others_too = kind == FindingKind::Deadlock && grid.templates.len() > 1;
    if grid.options.stop_at_first && !others_too {
        grid.stop.store(true, Relaxed);
    }
    let rank = (grid.templates.len() > 1).then(|| grid.rank(unit.number.into()));
    let (cta, thread) = (unit.ctas[w.cta].id, thread_of(grid.block, w.id, lane));
    // One finding a place and kind; further ones only count. Of ranks that are stuck there the first one is named, whichever came first.
    if let Some(f) = all.iter_mut().find(|f| f.kind == kind && f.line == inst.line) {
        f.count += 1;
        if others_too && rank < f.rank {
            (f.rank, f.cta, f.thread, f.address, f.message) = (rank, cta, thread, addr, message);
        }
        return;
    }
    if all.len() >= grid.options.max_findings {
        return;
    }
    all.push(Finding {
        kind,
        line: inst.line,
        text: grid.code.line_text(inst.line),
        source: inst.loc.and_then(|l| grid.code.source(l)),
        rank,
        cta,
        thread,
        address: addr,
        message,
        count: 1,
    });
}

impl Unit {
    /// About how many bytes a unit takes.
    pub fn bytes(grid: &Grid<'_>) -> usize {
        let r = &grid.templates[0];
        let regs = r.h.len() * 64 + r.w.len() * 128 + r.d.len() * 256 + r.q.len() * 512;
        let threads = grid.block.iter().product::<u32>() as usize;
        let shared = grid.shared_bytes as usize * if grid.options.checks { 17 } else { 1 };
        let ctas = grid.cluster.iter().product::<u32>() as usize;
        ctas * (shared + threads.div_ceil(32) * (regs + grid.code.local_bytes as usize * 32 + 8192))
    }

    /// The unit numbered `n`, in the order of cluster ids.
    pub fn new(grid: &Grid<'_>, n: u64, pool: &mut Pool) -> Unit {
        let c = grid.cluster;
        let clusters = [grid.grid[0] / c[0], grid.grid[1] / c[1], grid.grid[2] / c[2]];
        let in_rank = n % grid.units;
        let cid = [
            (in_rank % u64::from(clusters[0])) as u32,
            (in_rank / u64::from(clusters[0]) % u64::from(clusters[1])) as u32,
            (in_rank / (u64::from(clusters[0]) * u64::from(clusters[1]))) as u32,
        ];
        let threads = grid.block[0] * grid.block[1] * grid.block[2];
        let per_cta = threads.div_ceil(32);
        let mut unit = Unit {
            number: n as u32,
            ctas: vec![],
            warps: vec![],
            stats: pool.stats(grid),
            events: 0,
            effects: 0,
            told: false,
            idle_rounds: 0,
            before: Whereabouts::default(),
            progress: 0,
            cluster_bar: Bar::default(),
            mbar: Default::default(),
            groups: Default::default(),
            order: grid.options.seed ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        };
        let size = c[0] * c[1] * c[2];
        for rank in 0..size {
            let at = [rank % c[0], rank / c[0] % c[1], rank / (c[0] * c[1])];
            let id = [cid[0] * c[0] + at[0], cid[1] * c[1] + at[1], cid[2] * c[2] + at[2]];
            let first = unit.warps.len();
            let k = unit.ctas.len();
            for w in 0..per_cta {
                let lanes = (threads - w * 32).min(32);
                let full = if lanes == 32 { !0 } else { (1u32 << lanes) - 1 };
                let mut regs = pool.regs.pop().unwrap_or_default();
                regs.clone_from(&grid.templates[grid.rank(n) as usize]);
                crate::launch::fill_warp(grid, &mut regs, id, at, cid, rank, w);
                unit.warps.push(Some(Box::new(Warp {
                    regs,
                    cta: k,
                    id: w,
                    full,
                    live: full,
                    frags: vec![Frag { pc: 0, mask: full, state: State::Ready, turn: 0 }],
                    local: vec![0; grid.code.local_bytes as usize * LANES],
                    init: vec![0; grid.code.tracked as usize],
                    copies: vec![],
                    group: [0; LANES],
                    bulk: vec![],
                    bulk_group: [0; LANES],
                    bulk_stamp: 0,
                    wgmma: crate::isa::Wgmma::new(grid.code.tracked),
                    sync: Sync::new(w + rank * per_cta, 3 * per_cta * size),
                    calls: Default::default(),
                    executed: 0,
                    polls: 0,
                    polled: false,
                    yielded: false,
                    done: false,
                })));
            }
            let mut shared = pool.shared.pop().unwrap_or_default();
            shared.clear();
            shared.resize(grid.shared_bytes as usize, 0);
            let shadow = pool.shadow(grid);
            unit.ctas.push(Cta {
                id,
                rank,
                shared,
                shadow,
                tensors: vec![],
                registers: 0,
                visits: Vec::new(),
                bars: vec![Bar { lanes: vec![0; per_cta as usize], ..Bar::default() }; 16],
                warps: first..unit.warps.len(),
            });
        }
        unit.cluster_bar.lanes = vec![0; unit.warps.len()];
        unit
    }

    /// Gives memory back for the next unit.
    pub fn recycle(self, pool: &mut Pool) {
        for c in self.ctas {
            pool.shared.push(c.shared);
            pool.shadows.push(c.shadow);
        }
        for w in self.warps.into_iter().flatten() {
            pool.regs.push(w.regs);
        }
        match &mut pool.total {
            None => pool.total = Some(self.stats),
            Some(t) => t.iter_mut().zip(&self.stats).for_each(|(t, s)| t.add(s)),
        }
    }

    /// A CTA's shared memory is there until its last warp ends, so that one of its warps must have been ordered behind each
    /// access from another CTA (PTX ISA, "Distributed Shared Memory").
    fn check_visits(&self, grid: &Grid<'_>) {
        for cta in &self.ctas {
            let mut own = self.warps[cta.warps.clone()].iter().flatten();
            for v in &cta.visits {
                if own.clone().any(|w| w.sync.known(!0).covers_lane(v.warp, v.lane, v.stamp)) {
                    continue;
                }
                let (Some(visitor), Some(_)) = (&self.warps[v.warp as usize], own.next()) else { continue };
                let inst = &grid.code.insts[v.pc as usize];
                let message = format!(
                    "the CTA of rank {} may have ended: nothing orders this access to its shared memory before its end",
                    cta.rank
                );
                find(grid, self, visitor, inst, FindingKind::SharedRace, v.lane as usize, None, message);
            }
        }
    }

    /// Runs for a while.
    pub fn run(&mut self, grid: &Grid<'_>, rounds: u32) -> Slice {
        let n = self.warps.len();
        for _ in 0..rounds {
            let (before, effects) = (self.events, self.effects);
            let (mut ran, mut all_yield) = (false, true);
            // Seed zero is the plain order; others start each round elsewhere.
            let start = if grid.options.seed == 0 {
                0
            } else {
                self.order = self.order.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (self.order >> 33) as usize % n
            };
            for k in 0..n {
                let k = (start + k) % n;
                if grid.stopped() {
                    return Slice::Done;
                }
                let (r, y) = self.run_warp(k, grid);
                ran |= r;
                all_yield &= y || !r;
            }
            if grid.exhausted() {
                self.stuck(grid, FindingKind::Limit, "the launch ran past its instruction limit");
                grid.stop.store(true, Relaxed);
                return Slice::Done;
            }
            if self.warps.iter().flatten().all(|w| w.done) {
                self.check_visits(grid);
                return Slice::Done;
            }
            if !ran {
                if self.promote(grid) {
                    continue;
                }
                self.stuck(grid, FindingKind::Deadlock, "");
                return Slice::Done;
            }
            if self.effects != effects {
                grid.standstill.changed();
            }
            if !all_yield {
                grid.progress.fetch_add(1, Relaxed);
            }
            // What other units do may be what this one waits for.
            let now = grid.progress.load(Relaxed);
            let polled = all_yield && self.events == before;
            let idle = polled && now == std::mem::replace(&mut self.progress, now);
            self.idle_rounds = if idle { self.idle_rounds + 1 } else { 0 };
            if self.waits_in_vain(grid, polled) {
                self.stuck(
                    grid,
                    FindingKind::Deadlock,
                    "waits for something that nothing left running brings about",
                );
                return Slice::Done;
            }
            if all_yield || std::mem::take(&mut self.told) {
                break;
            }
        }
        Slice::More
    }

    /// Whether nothing will happen that this unit waits for, after a round in which it did nothing but poll, or more.
    fn waits_in_vain(&mut self, grid: &Grid<'_>, polled: bool) -> bool {
        let most = grid.options.wait_rounds;
        if most == 0 {
            return false;
        }
        let mut before = std::mem::take(&mut self.before);
        let still = before.is_standstill(self, grid, polled);
        self.before = before;
        still || self.idle_rounds > most
    }

    /// Notes a change that a spinning wait can see, and that is in no memory of the unit's own.
    pub fn effect(&mut self) {
        self.events += 1;
        self.effects += 1;
    }

    /// Lets aligned barriers go through with the lanes that came, because the others won't.
    fn promote(&mut self, grid: &Grid<'_>) -> bool {
        let mut any = false;
        for k in 0..self.warps.len() {
            let Some(w) = &self.warps[k] else { continue };
            let Some(f) = w.frags.iter().position(|f| matches!(f.state, State::Pending(..))) else {
                continue;
            };
            self.arrive(k, f, grid);
            any = true;
        }
        any
    }

    /// Reports what every stuck warp waits for.
    fn stuck(&mut self, grid: &Grid<'_>, kind: FindingKind, why: &str) {
        for k in 0..self.warps.len() {
            let Some(w) = self.warps[k].take() else { continue };
            for f in &w.frags {
                let lane = f.mask.trailing_zeros() as usize % LANES;
                let message = match f.state {
                    State::Waiting(b) | State::Pending(b, _) if b.cluster => {
                        "waits at the cluster barrier, where not every thread of the cluster arrives"
                            .to_string()
                    }
                    State::Waiting(b) | State::Pending(b, _) => {
                        let bar = &self.ctas[w.cta].bars[b.id as usize & 15];
                        let want = b.count.unwrap_or_else(|| self.live_warps(w.cta) * 32);
                        format!(
                            "waits at barrier {}, where {} of {} threads have arrived",
                            b.id, bar.arrived, want
                        )
                    }
                    State::Gather(need) => {
                        format!(
                            "waits for lanes {:#010x} of its warp, which never come to this instruction",
                            need & !f.mask
                        )
                    }
                    State::Ready if w.wgmma.wants() > 0 => format!(
                        "waits for {} registers more a thread, and what is left of those that other warps gave back is {}",
                        w.wgmma.wants(),
                        self.ctas[w.cta].registers
                    ),
                    State::Ready if why.is_empty() => continue,
                    State::Ready => why.to_string(),
                };
                let inst = &grid.code.insts[f.pc as usize];
                find(grid, self, &w, inst, kind, lane, None, message);
            }
            self.warps[k] = Some(w);
        }
    }

    pub(crate) fn live_warps(&self, cta: usize) -> u32 {
        self.ctas[cta].warps.clone().filter(|&k| self.warps[k].as_ref().is_some_and(|w| !w.done)).count()
            as u32
    }

    /// Runs one warp until it blocks or its turn ends. Says whether it ran, and whether it only polled.
    fn run_warp(&mut self, k: usize, grid: &Grid<'_>) -> (bool, bool) {
        let Some(mut w) = self.warps[k].take() else { return (false, false) };
        if w.done {
            self.warps[k] = Some(w);
            return (false, false);
        }
        let mut budget = QUANTUM;
        let mut ran = false;
        let mut polled = true;
        let mut runs = 0;
        w.yielded = false;
        while budget > 0 {
            let Some(f) = select(&mut w.frags, w.live, &w.calls) else { break };
            ran = true;
            let arrived = run_frag(self, &mut w, f, grid, &mut budget);
            runs += 1;
            polled &= w.polled;
            // Every fragment has had its look at memory: somebody else's turn.
            let looked = polled && runs >= 2 * (w.frags.len() as u32 + 1);
            self.warps[k] = Some(w);
            if let Some(f) = arrived {
                self.arrive(k, f, grid);
            }
            w = match self.warps[k].take() {
                Some(w) => w,
                None => return (ran, polled),
            };
            if w.live == 0 && !w.done {
                w.done = true;
                let (cta, id) = (w.cta, w.id);
                self.warps[k] = Some(w);
                self.events += 1;
                self.recheck(cta, grid);
                let _ = id;
                return (true, false);
            }
            if w.yielded || looked || self.told || grid.stopped() || grid.exhausted() {
                break;
            }
        }
        self.warps[k] = Some(w);
        (ran, polled)
    }
}

/// Picks the fragment to run and merges into it those at the same instruction.
fn select(frags: &mut Vec<Frag>, live: u32, calls: &crate::isa::Calls) -> Option<usize> {
    if let [f] = &mut frags[..] {
        return match f.state {
            State::Ready => Some(0),
            State::Gather(need) if need & live & !f.mask == 0 => {
                f.state = State::Ready;
                Some(0)
            }
            _ => None,
        };
    }
    // A gathering fragment can go on when the lanes it wants have come, or ended.
    for f in 0..frags.len() {
        if let State::Gather(need) = frags[f].state {
            let pc = frags[f].pc;
            let here = frags
                .iter()
                .filter(|x| x.pc == pc && matches!(x.state, State::Ready | State::Gather(_)))
                .fold(0, |m, x| m | x.mask);
            if need & live & !here == 0 {
                frags[f].state = State::Ready;
            }
        }
    }
    // Lanes in a call first, so that they are back where the others wait for them.
    let depth = |f: &Frag| Reverse(calls.depth(f.mask.trailing_zeros() as usize));
    let best = frags.iter().filter(|f| f.state == State::Ready).min_by_key(|f| (f.turn, depth(f), f.pc))?;
    let pc = best.pc;
    let mut mask = 0;
    let mut turn = u32::MAX;
    frags.retain(|f| {
        let same = f.pc == pc && matches!(f.state, State::Ready | State::Gather(_));
        if same {
            mask |= f.mask;
            turn = turn.min(f.turn);
        }
        !same
    });
    frags.push(Frag { pc, mask, state: State::Ready, turn });
    Some(frags.len() - 1)
}

/// Runs fragment `f` until it blocks, ends, meets another or its time is up. Gives the index of a fragment that has
/// arrived at a barrier with all the lanes there are.
fn run_frag(unit: &mut Unit, w: &mut Warp, f: usize, grid: &Grid<'_>, budget: &mut u32) -> Option<usize> {
    let code = grid.code;
    let Frag { mut pc, mut mask, mut turn, .. } = w.frags.swap_remove(f);
    let mut bound = next_ahead(w, pc);
    let mut first = true;
    let mut back = 0;
    let (polls, start) = (w.polls, w.executed);
    w.polled = false;
    loop {
        if *budget == 0 || (pc >= bound && !first) {
            break;
        }
        if !grid.count() || (budget.is_multiple_of(WATCH) && grid.stopped()) {
            break;
        }
        first = false;
        let inst = &code.insts[pc as usize];
        *budget -= 1;
        let m = begin(unit, w, grid, inst, pc, mask);
        // A guarded-off instruction does nothing, except that a branch is still not taken.
        if m == 0 {
            pc += 1;
            continue;
        }
        let mut cx = Cx::new(w, unit, grid, m, Frag { pc, mask, state: State::Ready, turn });
        match (inst.exec)(&mut cx, inst) {
            Flow::Next => pc += 1,
            flow @ (Flow::Branch | Flow::Switch) => {
                // All lanes to one place, or each part to its own.
                let (target, m) = match (flow, &std::mem::take(&mut cx.targets)[..]) {
                    (Flow::Branch, _) => (inst.target, m),
                    (_, &[(to, _)]) => (to, mask),
                    (_, parts) => {
                        let ready = |&(pc, mask): &(u32, u32)| Frag { pc, mask, state: State::Ready, turn };
                        w.frags.extend(parts.iter().map(ready));
                        return None;
                    }
                };
                back += u32::from(target <= pc);
                let whole = m == mask;
                if whole {
                    pc = target;
                } else {
                    (pc, mask) = diverge(w, Frag { pc, mask, state: State::Ready, turn }, target, m);
                }
                if !whole || flow == Flow::Switch {
                    bound = next_ahead(w, pc);
                    // A waiting fragment may be there already.
                    if pc >= bound {
                        break;
                    }
                }
                if back % POLL == POLL - 1 || back >= SPIN {
                    // A loop that does little but look at memory waits for somebody else.
                    let polls = (w.polls - polls) * POLLED >= w.executed - start;
                    if polls || (back >= SPIN && !w.frags.is_empty()) {
                        turn = last_turn(w);
                        w.polled = polls;
                        w.yielded |= polls && w.frags.is_empty();
                        break;
                    }
                }
            }
            Flow::Exit => {
                crate::isa::finish_copies(&mut cx);
                if cx.w.live & !m == 0 {
                    crate::isa::left_behind(&mut cx);
                }
                w.live &= !m;
                mask &= !m;
                if mask == 0 {
                    return lanes_gone(w);
                }
                pc += 1;
            }
            Flow::Gather => {
                let need = cx.need;
                // Lanes that the guard turns off do not take part.
                if mask & !m != 0 {
                    w.frags.push(Frag { pc: pc + 1, mask: mask & !m, state: State::Ready, turn });
                }
                w.frags.push(Frag { pc, mask: m, state: State::Gather(need), turn });
                return None;
            }
            flow @ (Flow::Yield | Flow::YieldNext) => {
                pc += u32::from(flow == Flow::YieldNext);
                turn = last_turn(w);
                w.polled = true;
                w.yielded = true;
                break;
            }
            Flow::Barrier => {
                let Some(op) = cx.barrier else { break };
                return arrive_at_barrier(w, op, Frag { pc, mask, state: State::Ready, turn }, m);
            }
            Flow::Stop => {
                grid.stop.store(true, Relaxed);
                break;
            }
        }
    }
    w.frags.push(Frag { pc, mask, state: State::Ready, turn });
    None
}

/// Lanes `m` of a fragment branch, the others don't. The lower side goes on: gives its place and lanes.
#[inline]
fn diverge(w: &mut Warp, from: Frag, target: u32, m: u32) -> (u32, u32) {
    let taken = Frag { pc: target, mask: m, ..from };
    let not_taken = Frag { pc: from.pc + 1, mask: from.mask & !m, ..from };
    let (here, there) = if target <= from.pc { (taken, not_taken) } else { (not_taken, taken) };
    w.frags.push(there);
    (here.pc, here.mask)
}

/// The least place ahead of `pc` where another fragment stands that could run: they may join there.
#[inline]
fn next_ahead(w: &Warp, pc: u32) -> u32 {
    w.frags
        .iter()
        .filter(|f| f.pc >= pc && matches!(f.state, State::Ready | State::Gather(_)))
        .map(|f| f.pc)
        .min()
        .unwrap_or(u32::MAX)
}

/// A turn behind those of all other fragments.
fn last_turn(w: &Warp) -> u32 {
    w.frags.iter().map(|f| f.turn).max().unwrap_or(0) + 1
}

/// Counts and checks an instruction, and returns which lanes its guard lets run.
#[inline]
fn begin(unit: &mut Unit, w: &mut Warp, grid: &Grid<'_>, inst: &Inst, pc: u32, mask: u32) -> u32 {
    let mut m = mask;
    if inst.guard != NONE {
        let p = w.regs.p[inst.guard as usize];
        m &= if inst.neg { !p } else { p };
    }
    w.executed += 1;
    let stat = &mut unit.stats[pc as usize];
    stat.warps += 1;
    stat.threads += u64::from(m.count_ones());
    if grid.options.checks
        && let Some(u) = &inst.uninit
    {
        if let Some(g) = u.guard {
            let bad = mask & !w.init[g as usize];
            undefined(unit, w, grid, inst, bad);
        }
        uninit(unit, w, grid, inst, u, m);
    }
    m
}

/// Lanes `m` of a fragment wait at a barrier, those that the guard turns off go on. Returns the waiting fragment if it waits for no
/// more lanes of the warp.
fn arrive_at_barrier(w: &mut Warp, op: BarrierOp, from: Frag, m: u32) -> Option<usize> {
    let Frag { pc, mask, turn, .. } = from;
    if mask & !m != 0 {
        w.frags.push(Frag { pc: pc + 1, mask: mask & !m, state: State::Ready, turn });
    }
    // Join lanes that came to the same barrier before.
    let mut joined = Frag { pc, mask: m, state: State::Ready, turn };
    let mut missing = w.live & !m;
    let mut pred = op.pred & m;
    w.frags.retain(|f| match f.state {
        State::Pending(o, miss) if f.pc == pc && o.id == op.id => {
            joined.mask |= f.mask;
            missing |= miss;
            pred |= o.pred & f.mask;
            false
        }
        _ => true,
    });
    let complete = joined.mask & w.live == w.live;
    let op = BarrierOp { pred, ..op };
    joined.state = State::Pending(op, if complete || !op.aligned { 0 } else { missing });
    w.frags.push(joined);
    (complete || !op.aligned).then(|| w.frags.len() - 1)
}

/// Lanes have exited: an aligned barrier may wait only for them.
fn lanes_gone(w: &Warp) -> Option<usize> {
    if w.live == 0 {
        return None;
    }
    let f =
        w.frags.iter().position(|f| matches!(f.state, State::Pending(..)) && f.mask & w.live == w.live)?;
    Some(f)
}

fn uninit(unit: &mut Unit, w: &mut Warp, grid: &Grid<'_>, inst: &Inst, u: &crate::isa::Uninit, m: u32) {
    let known = |w: &Warp, v: &[u32]| v.iter().fold(!0, |ok, r| ok & w.init[*r as usize]);
    if m != 0
        && let Some(text) = w.wgmma.trespass(u)
    {
        let lane = m.trailing_zeros() as usize;
        find(grid, unit, w, inst, FindingKind::AsyncBeforeWait, lane, None, text.into());
        return;
    }
    if m == 0 {
        return;
    }
    w.wgmma.written(u);
    if let Some(pairs) = &u.parts {
        for (to, from) in pairs {
            let ok = known(w, from);
            let i = &mut w.init[*to as usize];
            *i = *i & !m | m & ok;
        }
        return;
    }
    let ok = known(w, &u.reads);
    if !u.shuffle.is_empty() {
        // What it moves from where is for the instruction to say.
        let rest = u.reads.iter().filter(|&r| u.shuffle.iter().all(|s| !s.1.contains(r)));
        let ok = rest.fold(!0, |ok, &r| ok & w.init[r as usize]);
        undefined(unit, w, grid, inst, m & !ok);
        for r in u.writes.iter().filter(|&r| u.shuffle.iter().all(|s| s.0 != *r)) {
            w.init[*r as usize] |= m;
        }
        return;
    }
    if u.computes {
        for r in &u.writes {
            let i = &mut w.init[*r as usize];
            *i = *i & !m | m & ok;
        }
        return;
    }
    undefined(unit, w, grid, inst, m & !ok);
    for r in &u.writes {
        w.init[*r as usize] |= m;
    }
}

/// Lanes of `bad` use what they have not written.
fn undefined(unit: &mut Unit, w: &mut Warp, grid: &Grid<'_>, inst: &Inst, bad: u32) {
    if bad != 0 {
        let lane = bad.trailing_zeros() as usize;
        let text =
            "uses a register that this thread has not written, or what was computed from one".to_string();
        find(grid, unit, w, inst, FindingKind::UninitializedRegister, lane, None, text);
    }
}

/// Memory a worker uses again for each unit.
#[derive(Default)]
pub(crate) struct Pool {
    pub shared: Vec<Vec<u8>>,
    pub shadows: Vec<SharedShadow>,
    pub regs: Vec<Regs>,
    pub total: Option<Vec<InstStat>>,
}

impl Pool {
    fn stats(&mut self, grid: &Grid<'_>) -> Vec<InstStat> {
        self.total.take().unwrap_or_else(|| vec![InstStat::default(); grid.code.insts.len()])
    }
    fn shadow(&mut self, grid: &Grid<'_>) -> SharedShadow {
        let mut s = self.shadows.pop().unwrap_or_default();
        s.reset(if grid.options.checks { grid.shared_bytes } else { 0 });
        s
    }
}
