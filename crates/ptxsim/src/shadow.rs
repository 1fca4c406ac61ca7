//! Happens-before: races, uninitialized shared memory and asynchronous copies.
//!
//! Every byte of shared memory, and every word (or byte, where a page is used in bytes) of global memory, has a record
//! of its last writer and its last readers: warp, lane and stamp (see [`crate::clock`]). An access that is not ordered
//! after a conflicting record is a race. Between two barriers that the whole CTA takes part in, records carry the
//! *phase*, the number of such barriers so far, so that an older record needs no look at clocks.
//!
//! Two strong accesses (atomics, volatile, relaxed and stronger) do not race. Two unordered writes of the same value
//! are let pass: layouts that hold an element in several threads make them, and no order of them matters. The lane
//! that ends up as the only record of several readers stands for the others, so a race can be missed, but none is
//! made up.

use crate::access::{Kind, Places, lanes};
use crate::clock::Clock;
use crate::machine::Cx;
use crate::memory::Memory;
use crate::report::FindingKind;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// Lane number that stands for several lanes of one warp.
const MANY: u32 = 32;

pub(crate) fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}

// ---- Shared memory -------------------------------------------------------------------------------------------------

/// A record of an access to shared memory in one word:
/// `flags:5 | phase:20 | warp:9 | lane:6 | stamp:24`.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Cell(u64);

const INIT: u64 = 1 << 63;
const PENDING: u64 = 1 << 62;
const STRONG: u64 = 1 << 61;
/// A reader record that is the number of a set of readers.
const SET: u64 = 1 << 60;
/// Written by the asynchronous proxy.
const ASYNC: u64 = 1 << 59;
const FLAGS: u64 = INIT | PENDING | STRONG | SET | ASYNC;

impl Cell {
    fn new(flags: u64, phase: u32, warp: u32, lane: u32, stamp: u32) -> Cell {
        Cell(
            flags
                | u64::from(phase & 0xf_ffff) << 39
                | u64::from(warp) << 30
                | u64::from(lane) << 24
                | u64::from(stamp & 0xff_ffff),
        )
    }
    fn has(self, f: u64) -> bool {
        self.0 & f != 0
    }
    fn phase(self) -> u32 {
        (self.0 >> 39 & 0xf_ffff) as u32
    }
    fn warp(self) -> u32 {
        (self.0 >> 30 & 0x1ff) as u32
    }
    fn lane(self) -> u32 {
        (self.0 >> 24 & 0x3f) as u32
    }
    fn stamp(self) -> u32 {
        (self.0 & 0xff_ffff) as u32
    }
    fn set(self) -> usize {
        (self.0 & 0x3fff_ffff) as usize
    }
    /// No record: the bits below the flags are zero (stamps start at one).
    fn is_none(self) -> bool {
        self.0 & !FLAGS == 0
    }
}

/// Records of a CTA's shared memory.
#[derive(Default)]
pub(crate) struct SharedShadow {
    writes: Vec<Cell>,
    reads: Vec<Cell>,
    /// Sets of readers from several warps, by number; and the way from one set to a larger one.
    sets: Vec<Vec<Cell>>,
    grow: HashMap<(u64, u64), Cell>,
    /// Barriers of the whole CTA so far.
    pub phase: u32,
}

impl SharedShadow {
    pub fn reset(&mut self, bytes: u32) {
        self.writes.clear();
        self.writes.resize(bytes as usize, Cell(0));
        self.reads.clear();
        self.reads.resize(bytes as usize, Cell(0));
        self.next_phase();
        self.phase = 0;
    }

    /// A barrier of all warps: everything before is ordered before everything after.
    pub fn next_phase(&mut self) {
        self.phase += 1;
        self.sets.clear();
        self.grow.clear();
    }

    /// A set with one more reader.
    fn with(&mut self, old: Cell, new: Cell) -> Cell {
        if let Some(c) = self.grow.get(&(old.0, new.0)) {
            return *c;
        }
        if self.sets.len() > 1 << 20 {
            // Kernels with no barrier of the whole CTA: forget, rather than grow without end.
            self.sets.clear();
            self.grow.clear();
        }
        let mut s =
            if old.has(SET) { self.sets.get(old.set()).cloned().unwrap_or_default() } else { vec![old] };
        match s.iter_mut().find(|c| c.warp() == new.warp()) {
            Some(c) => {
                let lane = if c.lane() == new.lane() { new.lane() } else { MANY };
                *c = Cell::new(c.0 & new.0 & STRONG, new.phase(), new.warp(), lane, new.stamp());
            }
            None => s.push(new),
        }
        let c = Cell(SET | u64::from(new.phase() & 0xf_ffff) << 39 | self.sets.len() as u64);
        self.sets.push(s);
        self.grow.insert((old.0, new.0), c);
        c
    }
}

/// Who accesses now.
struct Me<'a> {
    sync: &'a crate::clock::Sync,
    warp: u32,
    phase: u32,
    /// Whether phases order everything: only while one CTA has this memory to itself.
    phased: bool,
    /// The asynchronous proxy, which takes no part in barriers.
    agent: u32,
}

impl Me<'_> {
    fn ordered(&self, c: Cell, lane: u32) -> bool {
        if c.is_none() || (self.phased && c.warp() != self.agent && c.phase() != self.phase & 0xf_ffff) {
            return true;
        }
        if c.warp() == self.warp {
            return self.sync.lanes_ordered(lane, c.lane(), c.stamp());
        }
        self.sync.clock.covers(0, 0, c.warp(), c.stamp())
    }
    fn cell(&self, flags: u64, lane: u32) -> Cell {
        Cell::new(flags, self.phase, self.warp, lane, self.sync.now())
    }
}

/// A conflict found.
enum Bad {
    Uninit,
    Pending,
    Race(Cell, &'static str),
}

fn check_run(
    sh: &mut SharedShadow,
    me: &Me<'_>,
    lane: u32,
    at: usize,
    n: usize,
    kind: Kind,
    same_ok: &mut Option<(Cell, &'static str)>,
) -> Option<Bad> {
    let mut bad = None;
    let mut k = at;
    let end = at + n;
    while k < end {
        // Bytes with equal records go together.
        let (w, r) = (sh.writes[k], sh.reads[k]);
        let mut e = k + 1;
        while e < end && sh.writes[e] == w && sh.reads[e] == r {
            e += 1;
        }
        if w.has(PENDING) {
            bad.get_or_insert(Bad::Pending);
        } else if kind.reads() && !w.has(INIT) {
            bad.get_or_insert(Bad::Uninit);
        }
        let both_strong = kind.strong() && w.has(STRONG);
        if !w.has(PENDING) && !both_strong && !me.ordered(w, lane) {
            if kind == Kind::Write {
                *same_ok = Some((w, "was written"));
            } else if bad.is_none() {
                bad = Some(Bad::Race(w, "was written"));
            }
        }
        if kind.writes() {
            // Readers must be done.
            let set;
            let readers: &[Cell] = if r.has(SET) {
                if me.phased && r.phase() != me.phase & 0xf_ffff {
                    &[]
                } else {
                    sh.sets.get(r.set()).map_or(&[], |s| &s[..])
                }
            } else {
                set = [r];
                &set
            };
            for &c in readers {
                let strong = kind.strong() && c.has(STRONG);
                if !strong && !me.ordered(c, lane) && bad.is_none() {
                    bad = Some(Bad::Race(c, "was read"));
                }
            }
            let flags = INIT | w.0 & PENDING | if kind.strong() { STRONG } else { 0 };
            sh.writes[k..e].fill(me.cell(flags, lane));
            if !kind.strong() || !r.is_none() {
                sh.reads[k..e].fill(Cell(0));
            }
        } else {
            let strong = if kind.strong() { STRONG } else { 0 };
            let mine = me.cell(strong, lane);
            let stale = r.is_none() || (me.phased && r.phase() != me.phase & 0xf_ffff);
            let new = if stale {
                mine
            } else if r.has(SET) {
                sh.with(r, mine)
            } else if r.warp() == me.warp {
                if me.sync.lanes_ordered(lane, r.lane(), r.stamp()) {
                    mine
                } else {
                    Cell::new(r.0 & strong, me.phase, me.warp, MANY, me.sync.now())
                }
            } else if me.ordered(r, lane) {
                mine
            } else {
                sh.with(r, mine)
            };
            sh.reads[k..e].fill(new);
        }
        k = e;
    }
    bad
}

fn who(cx: &Cx<'_>, c: Cell) -> String {
    if c.warp() as usize == cx.unit.warps.len() {
        return "an asynchronous copy or matrix multiply".into();
    }
    let warp = cx.unit.warps.get(c.warp() as usize).and_then(|w| w.as_ref());
    let id = warp.map_or(cx.w.id, |w| w.id);
    describe(cx, id, c.lane())
}

fn describe(cx: &Cx<'_>, warp: u32, lane: u32) -> String {
    if lane >= MANY {
        return format!("several threads of warp {warp}");
    }
    let [x, y, z] = crate::machine::thread_of(cx.grid.block, warp, lane as usize);
    format!("thread ({x},{y},{z})")
}

/// Checks and records an access to shared memory.
pub(crate) fn shared(cx: &mut Cx<'_>, p: &Places, bytes: u32, kind: Kind) {
    for l in lanes(p.shared) {
        let (rank, at) = ((p.at[l] >> 32) as usize, p.at[l] as u32 as usize);
        let phased = cx.unit.ctas.len() == 1;
        let agent = cx.unit.warps.len() as u32;
        let sh = &mut cx.unit.ctas[rank].shadow;
        let me = Me { sync: &cx.w.sync, warp: cx.w.sync.index, phase: sh.phase, phased, agent };
        let mut same_ok = None;
        let bad = check_run(sh, &me, l as u32, at, bytes as usize, kind, &mut same_ok);
        if let Some((c, _)) = same_ok {
            let m = format!(
                "shared offset {at}: written here, and {} wrote it with no order between",
                who(cx, c)
            );
            cx.suspects.push((l as u32, FindingKind::SharedRace, m));
            cx.suspect |= 1 << l;
        }
        match bad {
            None => {}
            Some(Bad::Uninit) => cx.find(
                FindingKind::UninitializedShared,
                l,
                Some(at as u64),
                format!("reads {bytes} bytes at shared offset {at}, not all of which were written"),
            ),
            Some(Bad::Pending) => cx.find(
                FindingKind::AsyncBeforeWait,
                l,
                Some(at as u64),
                format!("shared offset {at} is the target of an asynchronous copy that was not waited for"),
            ),
            Some(Bad::Race(c, what)) => {
                let verb = if kind.writes() { "written" } else { "read" };
                let by = if what == "was read" { "read" } else { "wrote" };
                let m = format!(
                    "shared offset {at}: {verb} here, and {} {by} it with no order between",
                    who(cx, c)
                );
                cx.find(FindingKind::SharedRace, l, Some(at as u64), m);
            }
        }
    }
}

/// Marks the targets of asynchronous copies: their bytes are nobody's until the wait.
pub(crate) fn async_issue(cx: &mut Cx<'_>, p: &Places, bytes: u32) {
    if !cx.grid.options.checks {
        return;
    }
    for l in lanes(p.shared) {
        let (rank, at) = ((p.at[l] >> 32) as usize, p.at[l] as u32 as usize);
        for c in &mut cx.unit.ctas[rank].shadow.writes[at..at + bytes as usize] {
            c.0 |= PENDING;
        }
    }
    // The write itself can't be excused as one of the same value.
    settle_all(cx);
}

/// Asynchronous copies are done: the waiting lanes wrote the bytes, now.
pub(crate) fn async_done(cx: &mut Cx<'_>, dst: &[u64; 32], mask: u32, bytes: u32) {
    if !cx.grid.options.checks {
        return;
    }
    for l in lanes(mask) {
        let (rank, at) = ((dst[l] >> 32) as usize, dst[l] as u32 as usize);
        let sh = &mut cx.unit.ctas[rank].shadow;
        let me =
            Me { sync: &cx.w.sync, warp: cx.w.sync.index, phase: sh.phase, phased: true, agent: u32::MAX };
        let c = me.cell(INIT, l as u32);
        sh.writes[at..at + bytes as usize].fill(c);
    }
}

/// Marks bytes as written by the running warp with no check: objects like mbarriers, which have rules of their own.
pub(crate) fn initialized(cx: &mut Cx<'_>, rank: usize, at: usize, n: usize) {
    if let Some(c) = cx.unit.ctas[rank].shadow.writes.get_mut(at..at + n) {
        c.fill(Cell(INIT | STRONG));
    }
}

/// What the asynchronous proxy would trip over.
enum ProxyBad {
    Uninit,
    Pending,
    Race(Cell, &'static str),
    Fence(Cell),
}

/// Checks an access of the asynchronous proxy to `n` bytes, started by lane `l`, and records it for the agent.
fn agent_access(cx: &mut Cx<'_>, l: usize, to: (u32, u32), n: u32, stamp: u32, write: bool) {
    if !cx.grid.options.checks {
        return;
    }
    let agent = cx.unit.warps.len() as u32;
    let phased = cx.unit.ctas.len() == 1;
    let (at, end) = (to.1 as usize, (to.1 + n) as usize);
    let sh = &mut cx.unit.ctas[to.0 as usize].shadow;
    if end > sh.writes.len() {
        return;
    }
    let me = Me { sync: &cx.w.sync, warp: cx.w.sync.index, phase: sh.phase, phased, agent };
    let mine = Cell::new(ASYNC, me.phase, agent, MANY, stamp);
    let mut bad: Option<(usize, ProxyBad)> = None;
    let mut k = at;
    while k < end {
        let (w, r) = (sh.writes[k], sh.reads[k]);
        let mut e = k + 1;
        while e < end && sh.writes[e] == w && sh.reads[e] == r {
            e += 1;
        }
        let trouble = if w.has(PENDING) {
            Some(ProxyBad::Pending)
        } else if !write && !w.has(INIT) {
            Some(ProxyBad::Uninit)
        } else if !me.ordered(w, l as u32) {
            Some(ProxyBad::Race(w, "wrote"))
        } else if !write
            && !w.is_none()
            && !w.has(ASYNC)
            && cx.w.sync.clock.proxy.get(w.warp() as usize).is_none_or(|&c| c < w.stamp())
        {
            Some(ProxyBad::Fence(w))
        } else if write {
            let one;
            let readers: &[Cell] = if !r.has(SET) {
                one = [r];
                &one
            } else if phased && r.phase() != me.phase & 0xf_ffff {
                &[]
            } else {
                sh.sets.get(r.set()).map_or(&[], |s| &s[..])
            };
            readers.iter().find(|&&c| !me.ordered(c, l as u32)).map(|&c| ProxyBad::Race(c, "read"))
        } else {
            None
        };
        if let Some(t) = trouble {
            bad.get_or_insert((k, t));
        }
        if write {
            sh.writes[k..e].fill(Cell(mine.0 | PENDING | w.0 & INIT));
            sh.reads[k..e].fill(Cell(0));
        } else {
            let stale = r.is_none() || (phased && r.phase() != me.phase & 0xf_ffff);
            let c = if stale { mine } else { sh.with(r, mine) };
            sh.reads[k..e].fill(c);
        }
        k = e;
    }
    let Some((k, bad)) = bad else { return };
    let verb = if write { "writes" } else { "reads" };
    let (kind, m) = match bad {
        ProxyBad::Uninit => (
            FindingKind::UninitializedShared,
            format!("the asynchronous proxy reads shared offset {k}, which was not written"),
        ),
        ProxyBad::Pending => (
            FindingKind::AsyncBeforeWait,
            format!(
                "the asynchronous proxy {verb} shared offset {k}, the target of a copy that was not waited for"
            ),
        ),
        ProxyBad::Race(c, what) => (
            FindingKind::SharedRace,
            format!(
                "the asynchronous proxy {verb} shared offset {k}, and {} {what} it with no order between",
                who(cx, c)
            ),
        ),
        ProxyBad::Fence(c) => (
            FindingKind::ProxyFence,
            format!(
                "the asynchronous proxy reads shared offset {k}, which {} wrote with no `fence.proxy.async` since",
                who(cx, c)
            ),
        ),
    };
    cx.find(kind, l, Some(k as u64), m);
}

/// The asynchronous proxy starts to read.
pub(crate) fn agent_read(cx: &mut Cx<'_>, l: usize, from: (u32, u32), n: u32, stamp: u32) {
    agent_access(cx, l, from, n, stamp, false);
}

/// The asynchronous proxy starts to write: until it is done the bytes are nobody's.
pub(crate) fn agent_write(cx: &mut Cx<'_>, l: usize, to: (u32, u32), n: u32, stamp: u32) {
    agent_access(cx, l, to, n, stamp, true);
}

/// The asynchronous proxy has written.
pub(crate) fn agent_done(cx: &mut Cx<'_>, to: (u32, u32), n: u32, stamp: u32) {
    let agent = cx.unit.warps.len() as u32;
    let sh = &mut cx.unit.ctas[to.0 as usize].shadow;
    let phase = sh.phase;
    if let Some(c) = sh.writes.get_mut(to.1 as usize..(to.1 + n) as usize) {
        c.fill(Cell::new(INIT | ASYNC, phase, agent, MANY, stamp));
    }
}

/// Reports every suspect left, whatever the values.
pub(crate) fn settle_all(cx: &mut Cx<'_>) {
    cx.confirmed = !0;
    settle(cx);
}

/// Reports the suspected write-write races whose values differ (see [`Cx::write`]).
pub(crate) fn settle(cx: &mut Cx<'_>) {
    if cx.suspect == 0 {
        return;
    }
    let confirmed = cx.confirmed;
    cx.suspect = 0;
    cx.confirmed = 0;
    for (l, kind, m) in std::mem::take(&mut cx.suspects) {
        if confirmed >> l & 1 != 0 {
            cx.find(kind, l as usize, None, m);
        }
    }
}

// ---- Global memory -------------------------------------------------------------------------------------------------

/// A record of an access to global memory.
#[derive(Clone, Copy, Default)]
struct Rec {
    /// Stamp; zero for no record.
    stamp: u32,
    unit: u32,
    phase: u32,
    warp: u16,
    lane: u8,
    /// Bit 0 strong, bit 1 other warps have read too, bit 2 other units have read too, bits 4–5 scope.
    flags: u8,
}

const R_STRONG: u8 = 1;
const R_WARPS: u8 = 2;
const R_UNITS: u8 = 4;

const PAGE: u64 = 4096;

/// A page's records: by word at first, by byte once something smaller than a word was accessed.
struct Page {
    grain: u32,
    cells: Vec<(Rec, Rec)>,
}

/// Records of global memory, and the clocks of locations used to synchronize.
pub(crate) struct GlobalShadow {
    /// First page number and pages, an allocation each.
    pages: Vec<(u64, Vec<OnceLock<Mutex<Page>>>)>,
    /// Bytes of records left to allocate; beyond, accesses are not tracked.
    left: AtomicUsize,
    pub locations: Mutex<HashMap<u64, (u32, Clock)>>,
    /// Whether any location has a clock yet.
    pub published: AtomicUsize,
}

impl GlobalShadow {
    pub fn new(m: &Memory, on: bool) -> GlobalShadow {
        let pages = m
            .allocations()
            .iter()
            .map(|a| {
                let first = a.base / PAGE;
                let n = if on && a.writable { (a.base + a.len).div_ceil(PAGE) - first } else { 0 };
                (first, (0..n).map(|_| OnceLock::new()).collect())
            })
            .collect();
        GlobalShadow {
            pages,
            left: AtomicUsize::new(2 << 30),
            locations: Mutex::new(HashMap::new()),
            published: AtomicUsize::new(0),
        }
    }

    fn page(&self, alloc: usize, page: u64) -> Option<MutexGuard<'_, Page>> {
        let (first, pages) = &self.pages[alloc];
        let slot = pages.get((page - first) as usize)?;
        let m = match slot.get() {
            Some(m) => m,
            None => {
                let size = PAGE as usize / 4 * std::mem::size_of::<(Rec, Rec)>();
                if self.left.load(Relaxed) < size {
                    return None;
                }
                self.left.fetch_sub(size, Relaxed);
                slot.get_or_init(|| {
                    Mutex::new(Page { grain: 4, cells: vec![Default::default(); PAGE as usize / 4] })
                })
            }
        };
        Some(lock(m))
    }
}

impl Page {
    /// Splits the records to bytes.
    fn refine(&mut self) {
        if self.grain == 4 {
            self.cells = self.cells.iter().flat_map(|c| [*c; 4]).collect();
            self.grain = 1;
        }
    }
}

/// Whether the record is ordered before lane `lane` of the running warp.
fn ordered(cx: &Cx<'_>, unit: u32, phase: u32, r: &Rec, lane: u32) -> bool {
    if r.stamp == 0 {
        return true;
    }
    if r.unit == unit {
        if cx.unit.ctas.len() == 1 && r.phase != phase {
            return true;
        }
        if u32::from(r.warp) == cx.w.sync.index {
            return cx.w.sync.lanes_ordered(lane, r.lane.into(), r.stamp);
        }
    }
    cx.w.sync.clock.covers(unit, r.unit, r.warp.into(), r.stamp)
}

/// Checks and records an access to global memory.
pub(crate) fn global(cx: &mut Cx<'_>, p: &Places, bytes: u32, kind: Kind) {
    let (memory, shadow) = (cx.grid.memory, &cx.grid.shadow);
    let unit = cx.unit.number;
    let phase = cx.unit.ctas[cx.w.cta].shadow.phase;
    let stamp = cx.w.sync.now();
    let scope = cx.scope;
    let index = cx.w.sync.index;
    let mut held: Option<(usize, u64, MutexGuard<'_, Page>)> = None;
    let mut alloc = usize::MAX;
    let mut races: Vec<(usize, u64, Rec, &'static str)> = vec![];
    for l in lanes(p.host) {
        let at = p.at[l];
        if alloc == usize::MAX
            || !(memory.allocations()[alloc].base
                ..memory.allocations()[alloc].base + memory.allocations()[alloc].len)
                .contains(&at)
        {
            let Some(k) = memory.find(at, bytes.into()) else { continue };
            alloc = k;
        }
        if !memory.allocations()[alloc].writable {
            continue;
        }
        let page = at / PAGE;
        if held.as_ref().is_none_or(|h| h.0 != alloc || h.1 != page) {
            // One page is locked at a time.
            held = None;
            match shadow.page(alloc, page) {
                Some(g) => held = Some((alloc, page, g)),
                None => continue,
            }
        }
        let Some((_, _, pg)) = held.as_mut() else { continue };
        if bytes < 4 {
            pg.refine();
        }
        let g = pg.grain;
        let first = (at % PAGE) as usize / g as usize;
        let n = (bytes / g).max(1) as usize;
        let mine = Rec {
            stamp,
            unit,
            phase,
            warp: index as u16,
            lane: l as u8,
            flags: u8::from(kind.strong()) * (R_STRONG | (scope as u8) << 4),
        };
        let mut found = None;
        for c in &mut pg.cells[first..first + n] {
            let (w, r) = (c.0, c.1);
            // Strong accesses of the two sides don't race, if both scopes reach the other thread.
            let strong = |o: &Rec| {
                kind.strong()
                    && o.flags & R_STRONG != 0
                    && (o.unit == unit || (scope > 1 && o.flags >> 4 & 3 > 1))
            };
            if !strong(&w) && !ordered(cx, unit, phase, &w, l as u32) {
                found = Some((w, "wrote"));
            }
            if kind.writes() {
                let many = r.stamp != 0 && r.flags & R_UNITS != 0 && cx.w.sync.clock.foreign.is_none();
                if !strong(&r) && (many || !ordered(cx, unit, phase, &r, l as u32)) {
                    found = Some((r, "read"));
                }
                *c = (mine, if kind.strong() { r } else { Rec::default() });
            } else {
                let mut new = mine;
                if r.stamp != 0 {
                    new.flags |= r.flags & (R_WARPS | R_UNITS);
                    if r.unit != unit {
                        new.flags |= R_UNITS;
                    } else if u32::from(r.warp) != index {
                        new.flags |= R_WARPS;
                    } else if u32::from(r.lane) != l as u32
                        && !cx.w.sync.lanes_ordered(l as u32, r.lane.into(), r.stamp)
                    {
                        new.lane = MANY as u8;
                    }
                    new.flags &= r.flags | !R_STRONG;
                }
                c.1 = new;
            }
        }
        if let Some((r, what)) = found {
            races.push((l, at, r, what));
        }
    }
    drop(held);
    for (l, at, r, what) in races {
        let other = if r.unit == unit {
            let id = cx.unit.warps.get(r.warp as usize).and_then(|w| w.as_ref()).map_or(cx.w.id, |w| w.id);
            describe(cx, id, r.lane.into())
        } else {
            let per_cta = (cx.grid.block.iter().product::<u32>()).div_ceil(32);
            let cta = crate::machine::cta_of(cx.grid, r.unit.into(), u32::from(r.warp) / per_cta);
            let t = describe(cx, u32::from(r.warp) % per_cta, r.lane.into());
            format!("{t} of CTA ({},{},{})", cta[0], cta[1], cta[2])
        };
        let verb = if kind.writes() { "written" } else { "read" };
        let m = format!("{}: {verb} here, and {other} {what} it with no order between", memory.describe(at));
        if kind == Kind::Write && what == "wrote" {
            cx.suspects.push((l as u32, FindingKind::GlobalRace, m));
            cx.suspect |= 1 << l;
        } else {
            cx.find(FindingKind::GlobalRace, l, Some(at), m);
        }
    }
}
