//! Records of global memory.

use super::{Agent, MANY, describe, lock};
use crate::access::{Kind, Places};
use crate::clock::Clock;
use crate::machine::{Cx, GPU, SYSTEM};
use crate::memory::Memory;
use crate::regs::lanes;
use crate::report::FindingKind;
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// A record of an access to global memory.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Rec {
    /// Stamp; zero for no record. The number of a set of records where the flags say so.
    stamp: u32,
    unit: u32,
    phase: u32,
    warp: u16,
    lane: u8,
    /// Bit 0 strong, bit 1 a set, bit 2 plain reads of other units came before that are in no record, bit 3 by a copy, bits 4–5 scope.
    flags: u8,
}

const R_STRONG: u8 = 1;
const R_SET: u8 = 2;
const R_UNITS: u8 = 4;
const R_COPY: u8 = 8;

/// Sets that a page holds before it forgets them.
const MAX_SETS: usize = 4096;

/// Sets of records of a page, by number from one, and the way from one to a larger one.
#[derive(Default)]
struct Sets {
    sets: Vec<Vec<Rec>>,
    grow: FxHashMap<(Rec, Rec), Rec>,
}

impl Sets {
    /// The records that `r` stands for.
    fn of<'a>(&'a self, r: &'a Rec) -> &'a [Rec] {
        if r.stamp == 0 {
            return &[];
        }
        if r.flags & R_SET == 0 {
            return std::slice::from_ref(r);
        }
        self.sets.get(r.stamp as usize - 1).map_or(&[], |s| &s[..])
    }

    /// The record after `new` in place of `old`, of which those stay that `stays` says.
    fn with(&mut self, old: Rec, new: Rec, stays: impl Fn(&Rec) -> bool) -> Rec {
        if old.stamp == 0 || (old.flags & R_SET == 0 && !stays(&old)) {
            return Rec { flags: new.flags | old.flags & R_UNITS, ..new };
        }
        let flags = old.flags & R_UNITS;
        let same =
            |r: &Rec| (r.unit, r.warp) == (new.unit, new.warp) && r.flags & R_STRONG == new.flags & R_STRONG;
        let both = |r: &Rec| {
            let lane = if r.lane == new.lane { new.lane } else { MANY as u8 };
            Rec { lane, flags: new.flags | flags, ..new }
        };
        // Mostly lanes of one warp that access one place together.
        if old.flags & R_SET == 0 && same(&old) {
            return both(&old);
        }
        if let Some(r) = self.grow.get(&(old, new)) {
            return *r;
        }
        let mut s: Vec<Rec> = self.of(&old).iter().copied().filter(|r| stays(r)).collect();
        match s.iter_mut().find(|r| same(r)) {
            Some(r) if r.stamp == new.stamp && r.lane == MANY as u8 => return old,
            Some(r) => *r = both(r),
            None => s.push(new),
        }
        let r = if let [one] = s[..] {
            Rec { flags: one.flags | flags, ..one }
        } else {
            self.sets.push(s);
            Rec { stamp: self.sets.len() as u32, unit: new.unit, flags: R_SET | flags, ..Rec::default() }
        };
        self.grow.insert((old, new), r);
        r
    }
}

const PAGE: u64 = 4096;

/// A page's records: by word at first, by byte once something smaller than a word was accessed.
struct Page {
    grain: u32,
    /// The last writers and, since then, the last readers.
    cells: Vec<(Rec, Rec)>,
    sets: Sets,
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
                    let cells = vec![Default::default(); PAGE as usize / 4];
                    Mutex::new(Page { grain: 4, cells, sets: Sets::default() })
                })
            }
        };
        Some(lock(m))
    }
}

impl Page {
    /// Sets that no record stands for any more are dropped; where most are in use, of each only the last member is left.
    fn forget(&mut self) {
        let old = std::mem::take(&mut self.sets);
        let mut kept = FxHashMap::default();
        for r in self.records().filter(|r| r.flags & R_SET != 0) {
            kept.entry(r.stamp).or_insert(0);
        }
        if kept.len() > MAX_SETS / 2 {
            return self.keep_last(&old);
        }
        for (number, new) in &mut kept {
            self.sets.sets.extend(old.sets.get(*number as usize - 1).cloned());
            *new = self.sets.sets.len() as u32;
        }
        for r in self.records().filter(|r| r.flags & R_SET != 0) {
            r.stamp = kept[&r.stamp];
        }
    }

    /// Of each set only the last member is left, and that there were readers of other units.
    fn keep_last(&mut self, sets: &Sets) {
        for r in self.records().filter(|r| r.flags & R_SET != 0) {
            let [forgotten @ .., last] = sets.of(r) else {
                *r = Rec::default();
                continue;
            };
            // Strong ones, as of threads that poll, race with nothing that is strong.
            let others = forgotten.iter().any(|o| o.flags & R_STRONG == 0 && o.unit != last.unit);
            *r = Rec { flags: last.flags | r.flags & !R_SET | u8::from(others) * R_UNITS, ..*last };
        }
    }

    fn records(&mut self) -> impl Iterator<Item = &mut Rec> {
        self.cells.iter_mut().flat_map(|c| [&mut c.0, &mut c.1])
    }

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
        let thread = usize::from(r.warp) < cx.unit.warps.len();
        if thread && cx.unit.ctas.len() == 1 && r.phase != phase {
            return true;
        }
        if u32::from(r.warp) == cx.w.sync.index {
            return cx.w.sync.lanes_ordered(lane, r.lane.into(), r.stamp);
        }
    }
    cx.w.sync.covers(lane, unit, r.unit, r.warp.into(), r.lane.into(), r.stamp)
}

/// Strong accesses of the two sides don't race, if both scopes reach the other thread.
fn excused(cx: &Cx<'_>, kind: Kind, o: &Rec) -> bool {
    kind.strong()
        && o.flags & R_STRONG != 0
        && (o.unit == cx.unit.number || {
            let of_devices = cx.grid.rank(o.unit.into()) != cx.grid.rank(cx.unit.number.into());
            let least = if of_devices { SYSTEM } else { GPU };
            cx.scope >= least && u32::from(o.flags >> 4 & 3) >= least
        })
}

/// An access that is not ordered after another: lane, address, the other and what it did.
type Race = (usize, u64, Rec, &'static str);

/// What the other did where there is an order, but no fence between the proxies.
const UNFENCED: &str = "wrote before";

/// A write that copies of this lane may not see yet: of a thread of its own unit, or for a copy that reads, whatever another unit has written. (What
/// copies of the own unit have stored goes through their proxy; whether they were waited for is a matter of order.)
fn unseen(cx: &Cx<'_>, lane: u32, writes: &[Rec], kind: Kind) -> Option<Rec> {
    let sees = |o: &Rec| cx.w.sync.copies_see(lane, o.unit, o.warp.into(), o.stamp);
    let matters = |o: &Rec| {
        if o.unit == cx.unit.number { o.flags & R_COPY == 0 } else { kind == Kind::CopyRead }
    };
    writes.iter().find(|o| matters(o) && !sees(o)).copied()
}

/// Checks and records an access to global memory: of the lanes, or of an agent that one of them sets to work, up to this stamp.
pub(crate) fn global(cx: &mut Cx<'_>, p: &Places, bytes: u32, kind: Kind, by: Option<(Agent, u32)>) {
    let (memory, shadow) = (cx.grid.memory, &cx.grid.shadow);
    let (unit, scope) = (cx.unit.number, cx.scope);
    let phase = cx.unit.ctas[cx.w.cta].shadow.phase;
    let (stamp, index) = match by {
        Some((agent, stamp)) => (stamp, agent.party(cx.unit.warps.len() as u32)),
        None => (cx.w.sync.now(), cx.w.sync.index),
    };
    let mut held: Option<(usize, u64, MutexGuard<'_, Page>)> = None;
    let mut alloc = usize::MAX;
    let mut races: Vec<Race> = vec![];
    for l in lanes(p.host) {
        let at = p.at[l];
        let last = memory.allocations().get(alloc);
        if !last.is_some_and(|a| (a.base..a.base + a.len).contains(&at)) {
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
            lane: if by.is_some() { MANY as u8 } else { l as u8 },
            flags: u8::from(kind.strong()) * (R_STRONG | (scope as u8) << 4)
                | u8::from(kind.is_copy()) * R_COPY,
        };
        let excused = |o: &Rec| excused(cx, kind, o);
        // A copy writes from its issue to its end.
        let itself = |o: &Rec| by.is_some() && (o.unit, o.warp, o.stamp) == (unit, mine.warp, stamp);
        let ordered = |o: &Rec| itself(o) || ordered(cx, unit, phase, o, l as u32);
        let (mut found, mut unfenced) = (None, None);
        if pg.sets.sets.len() > MAX_SETS {
            pg.forget();
        }
        let Page { cells, sets, .. } = &mut **pg;
        let mut before: Option<((Rec, Rec), (Rec, Rec))> = None;
        for c in &mut cells[first..first + n] {
            // Mostly the words of an access have one past.
            if let Some((old, new)) = before
                && *c == old
            {
                *c = new;
                continue;
            }
            let old = *c;
            let (w, r) = old;
            if let Some(o) = sets.of(&w).iter().find(|o| !excused(o) && !ordered(o)) {
                found = Some((*o, "wrote"));
            } else if kind.is_copy() {
                unfenced = unseen(cx, l as u32, sets.of(&w), kind).or(unfenced);
            }
            if kind.writes() {
                // Readers that are in no record may be ordered before this only if anything of other units is.
                let many = r.flags & R_UNITS != 0 && cx.w.sync.clock.foreign.is_none();
                let mut readers = sets.of(&r).iter();
                if let Some(o) = readers.find(|o| many || !excused(o) && !ordered(o)) {
                    found = Some((*o, "read"));
                }
                // A strong write excuses other strong ones, but not the plain one before it.
                let stays = |o: &Rec| o.flags & R_STRONG == 0 && (kind.strong() || !ordered(o));
                *c = (sets.with(w, mine, stays), if kind.strong() { r } else { Rec::default() });
            } else {
                // Of the readers the last unit's are kept, all of them; of plain ones before, that there were some.
                let r = if r.unit == unit {
                    r
                } else {
                    let plain = sets.of(&r).iter().any(|o| o.flags & R_STRONG == 0);
                    Rec { flags: r.flags & R_UNITS | u8::from(plain) * R_UNITS, ..Rec::default() }
                };
                c.1 = sets.with(r, mine, |o| !ordered(o));
            }
            before = Some((old, *c));
        }
        if let Some((r, what)) = found {
            races.push((l, at, r, what));
        } else if let Some(r) = unfenced {
            races.push((l, at, r, UNFENCED));
        }
    }
    drop(held);
    for race in races {
        report(cx, race, kind);
    }
}

/// Says that two accesses have no order between them.
#[cold]
fn report(cx: &mut Cx<'_>, (l, at, r, what): Race, kind: Kind) {
    let (agent, of) = match Agent::of(r.warp.into(), cx.unit.warps.len() as u32) {
        Some(Agent::BulkWrites(w)) => {
            (Some("a bulk copy, not waited for by `cp.async.bulk.wait_group` without `.read`,"), w)
        }
        Some(_) => (Some("a bulk copy that signals an mbarrier"), 0),
        None => (None, r.warp.into()),
    };
    let other = if r.unit == cx.unit.number {
        let id = cx.unit.warps.get(of as usize).and_then(|w| w.as_ref()).map_or(cx.w.id, |w| w.id);
        agent.map_or_else(|| describe(cx, id, r.lane.into()), str::to_owned)
    } else {
        let per_cta = (cx.grid.block.iter().product::<u32>()).div_ceil(32);
        let cta = crate::machine::cta_of(cx.grid, r.unit.into(), of / per_cta);
        let t = agent.map_or_else(|| describe(cx, of % per_cta, r.lane.into()), str::to_owned);
        let rank = cx.grid.of_rank(r.unit.into());
        format!("{t} of CTA ({},{},{}){rank}", cta[0], cta[1], cta[2])
    };
    let verb = if kind.writes() { "written" } else { "read" };
    let place = cx.grid.memory.describe(at);
    if what == UNFENCED {
        let verb = if kind.writes() { "writes" } else { "reads" };
        let m = format!(
            "{place}: the asynchronous proxy {verb} it, which {other} wrote with no `fence.proxy.async.global` since"
        );
        cx.find(FindingKind::ProxyFence, l, Some(at), m);
        return;
    }
    let m = format!("{place}: {verb} here, and {other} {what} it with no order between");
    if matches!(kind, Kind::Write | Kind::CopyWrite) && what == "wrote" {
        cx.suspects.push((l as u32, FindingKind::GlobalRace, m));
        cx.suspect |= 1 << l;
    } else {
        cx.find(FindingKind::GlobalRace, l, Some(at), m);
    }
}
