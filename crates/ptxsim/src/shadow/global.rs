//! Records of global memory.

use super::{MANY, describe, lock};
use crate::access::{Kind, Places, lanes};
use crate::clock::Clock;
use crate::machine::Cx;
use crate::memory::Memory;
use crate::report::FindingKind;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock};

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
    cx.w.sync.covers(lane, unit, r.unit, r.warp.into(), r.stamp)
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
