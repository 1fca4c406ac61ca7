//! Order made by the program: fences, and messages through memory.
//!
//! A strong write *publishes* its thread's clock at the location it writes: with `.release` all the thread knows, else
//! what it knew at its last fence. A strong read takes the location's clock: with `.acquire` at once, else at the
//! thread's next fence (PTX ISA §8.7–8.8, release and acquire patterns).

use crate::access::Places;
use crate::clock::Clock;
use crate::machine::{Cx, SYSTEM};
use crate::regs::lanes;
use crate::shadow::lock;
use std::collections::HashMap;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering::Relaxed;

/// The keys of a place in the table of locations: shared ones are made distinct by unit and rank. Where several devices run, each has what is
/// published at a place at whatever scope under a key of its own, and all have what is published at system scope.
fn keys(cx: &Cx<'_>, p: &Places, l: usize) -> impl Iterator<Item = u64> + use<> {
    let at = p.at[l];
    let (own, common) = if p.shared >> l & 1 != 0 {
        (Some(1 << 63 | u64::from(cx.unit.number) << 36 | at >> 32 << 24 | at & 0xff_ffff), None)
    } else if cx.grid.templates.len() == 1 {
        (None, Some(at))
    } else {
        let of_device = 1 << 62 | cx.grid.rank(cx.unit.number.into()) << 48 | at;
        (Some(of_device), (cx.scope == SYSTEM).then_some(at))
    };
    own.into_iter().chain(common)
}

/// A strong write in progress. The table of locations stays locked from before the write until what the write
/// publishes is in it, so that whoever sees the value, and then looks, finds it.
pub(crate) struct Publishing<'a> {
    table: MutexGuard<'a, HashMap<u64, (u32, Clock)>>,
    clock: Clock,
    release: bool,
}

/// Begins a strong write; `None` when it has nothing to publish.
pub(crate) fn publishing<'a>(cx: &Cx<'a>, release: bool) -> Option<Publishing<'a>> {
    let grid = cx.grid;
    if !grid.options.checks || (!release && cx.w.sync.fenced.is_none()) {
        return None;
    }
    let clock = match (&cx.w.sync.fenced, release) {
        (Some(f), false) => (**f).clone(),
        _ => cx.w.sync.known(cx.mask).into_owned(),
    };
    let table = lock(&grid.shadow.locations);
    grid.shadow.published.store(table.len().max(1), Relaxed);
    Some(Publishing { table, clock, release })
}

impl Publishing<'_> {
    /// Ends it: the lanes of `mask` have written.
    pub fn to(mut self, cx: &mut Cx<'_>, p: &Places, mask: u32) {
        let unit = cx.unit.number;
        for (k, _) in places(cx, p, mask) {
            let e = self.table.entry(k).or_insert_with(|| (unit, Clock::default()));
            let of = e.0;
            e.1.join_from(of, unit, &self.clock);
        }
        if self.release {
            cx.w.sync.tick();
            cx.unit.told |= cx.scope == SYSTEM && cx.grid.templates.len() > 1;
        }
    }
}

/// The distinct locations of lanes, with the lanes at each.
fn places(cx: &Cx<'_>, p: &Places, mask: u32) -> Vec<(u64, u32)> {
    let mut out: Vec<(u64, u32)> = vec![];
    for l in lanes(mask & p.mask() & !p.local) {
        for k in keys(cx, p, l) {
            match out.iter_mut().find(|o| o.0 == k) {
                Some(o) => o.1 |= 1 << l,
                None => out.push((k, 1 << l)),
            }
        }
    }
    out
}

/// After a strong read: what the location has is acquired, now or at the next fence.
pub(crate) fn acquire(cx: &mut Cx<'_>, p: &Places, acquire: bool) {
    if !cx.grid.options.checks || cx.grid.shadow.published.load(Relaxed) == 0 {
        return;
    }
    let unit = cx.unit.number;
    let grid = cx.grid;
    let t = lock(&grid.shadow.locations);
    for (k, mask) in places(cx, p, !0) {
        if let Some((of, c)) = t.get(&k) {
            if *of == unit {
                cx.w.sync.hear(mask, c, acquire);
            } else if let Some(c) = c.foreign.as_ref().and_then(|f| f.get(&unit)) {
                let c = Clock { own: c.clone(), ..Clock::default() };
                cx.w.sync.hear(mask, &c, acquire);
            }
            let mut learnt = Clock::default();
            learnt.join_from(unit, *of, c);
            if acquire {
                cx.w.sync.acquire(mask, cx.w.live, &learnt);
            } else {
                let s = cx.w.sync.seen.get_or_insert_default();
                s.0 |= mask;
                s.1.join(&learnt);
            }
        }
    }
}

/// `fence` and `membar`; `global` says that one of the asynchronous proxy holds for global memory, too.
pub(crate) fn fence(cx: &mut Cx<'_>, proxy: bool, asynchronous: bool, global: bool) {
    if !cx.grid.options.checks {
        return;
    }
    if proxy {
        if asynchronous {
            if global {
                cx.w.sync.copies_fence(cx.mask, cx.w.live, cx.unit.number);
            }
            cx.w.sync.proxy_fence(cx.mask, cx.w.live);
        }
    } else {
        cx.w.sync.fence(cx.mask, cx.w.live);
    }
}

/// `bar.warp.sync`.
pub(crate) fn warp_sync(cx: &mut Cx<'_>, member: u32) {
    if !cx.grid.options.checks {
        return;
    }
    let live = cx.w.live;
    if member & live == live {
        cx.w.sync.sync_lanes();
    } else {
        cx.w.sync.sync_some(member & live);
    }
}
