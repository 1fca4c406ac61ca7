//! mbarrier objects (§9.7.13.15): phases that end when all expected arrivals and all expected bytes have come.
//!
//! State lives in a table by place, not in the 64 bits of shared memory, whose contents the ISA leaves opaque.
//! Asynchronous copies that signal an mbarrier are done when somebody polls it, never before, so that a program that
//! reads without waiting reads what was there.

use super::bulk::Job;
use super::{Dec, Flow, Inst, NONE};
use crate::Error;
use crate::access::{Kind, Places};
use crate::ast::{Operand, Ty};
use crate::clock::Clock;
use crate::machine::Cx;
use crate::regs::{File, LANES, lanes};
use crate::report::FindingKind;
use crate::shadow::Agent;
use std::collections::HashMap;

type R = Result<(), Error>;

/// One mbarrier.
#[derive(Default)]
pub(crate) struct Mbar {
    /// Arrivals a phase needs.
    expected: u32,
    /// Arrivals this phase still needs.
    pending: u32,
    /// Bytes announced and not yet come.
    tx: i64,
    /// Phases completed.
    phase: u64,
    /// What arrivals of this phase are ordered after; what completed phases are.
    arriving: Clock,
    complete: Clock,
    /// Copies on their way.
    pub jobs: Vec<(Job, u32)>,
    /// Its copies' agent, and the stamp of the last of them.
    pub agent: u32,
    pub stamp: u32,
    /// Warp, lane and stamp of its `init`, and whether that thread has made a `fence.mbarrier_init` since.
    by: (u32, u32, u32),
    fenced: bool,
}

/// Bits of a state that hold the pending count; the phase lies above.
const COUNT_BITS: u32 = 20;
/// The largest count of arrivals, and of bytes pending (§9.7.13.15.4).
const MAX_COUNT: u32 = (1 << COUNT_BITS) - 1;

/// The mbarriers of a unit, by CTA rank and offset.
#[derive(Default)]
pub(crate) struct MbarTable {
    map: HashMap<(u32, u32), Mbar>,
    /// Mbarriers so far.
    count: u32,
}

impl MbarTable {
    fn init(&mut self, at: (u32, u32), expected: u32, by: (u32, u32, u32)) {
        let agent = self.count;
        self.map.insert(at, Mbar { expected, pending: expected, agent, by, ..Mbar::default() });
        self.count += 1;
    }

    /// Lanes `mask` of warp `warp` make a `fence.mbarrier_init`.
    pub fn fence(&mut self, warp: u32, mask: u32) {
        for b in self.map.values_mut().filter(|b| b.by.0 == warp && mask >> b.by.1 & 1 != 0) {
            b.fenced = true;
        }
    }

    /// An mbarrier with copies on their way.
    pub fn in_flight(&self) -> Option<(u32, u32)> {
        self.map.iter().filter(|(_, b)| !b.jobs.is_empty()).map(|(k, _)| *k).min()
    }
    pub fn get(&mut self, rank: u32, at: u32) -> Option<&mut Mbar> {
        self.map.get_mut(&(rank, at))
    }
}

impl Mbar {
    /// Ends the phase if nothing is missing. The next one may already have bytes announced for it.
    fn settle(&mut self) -> bool {
        if self.pending != 0 || self.tx != 0 {
            return false;
        }
        self.phase += 1;
        self.pending = self.expected;
        let c = std::mem::take(&mut self.arriving);
        self.complete.join(&c);
        true
    }
}

/// Takes the modifiers that all forms share and the address; gives the flags.
fn common(d: &mut Dec, k: usize) -> Result<u32, Error> {
    let mut f = 0;
    f |= d.one_of(&[("release", 0u32), ("acquire", 0), ("relaxed", 1)]).unwrap_or(0);
    d.one_of(&[("cta", ()), ("cluster", ())]);
    let space = d.space();
    d.has("b64");
    let (a, off, space) = d.mem(k, space)?;
    (d.out.a, d.out.imm, d.out.space) = (a, off, space);
    Ok(f)
}

/// The place of the mbarrier, which is the same for the lanes in most programs; each lane goes on its own. `kind` says what
/// the operation is to the rules of order: `init` and `inval` are plain writes, the others excuse each other.
fn places(cx: &mut Cx<'_>, i: &Inst, kind: Kind) -> Places {
    let addr = cx.addresses(i);
    // The object is not plain memory: only its bounds are checked here.
    let checks = cx.untracked(|cx| cx.resolve(i.space, &addr, 8, Kind::Atomic));
    if checks.host | checks.local != 0 {
        let l = (checks.host | checks.local).trailing_zeros() as usize;
        cx.find(FindingKind::SharedBounds, l, Some(addr[l]), "an mbarrier must lie in shared memory".into());
    }
    if cx.grid.options.checks {
        crate::shadow::object(cx, &checks, 8, kind);
    }
    checks
}

/// Whether the asynchronous proxy, set to work by lane `l`, sees that the mbarrier was initialized: the thread that did
/// must have made a `fence.mbarrier_init`, or somebody since a `fence.proxy.async`.
pub(super) fn seen_by_proxy(cx: &mut Cx<'_>, l: usize, at: (u32, u32)) {
    let Some(b) = cx.unit.mbar.map.get(&at) else { return };
    let (warp, lane, stamp) = b.by;
    if cx.grid.options.checks && !b.fenced && !cx.w.sync.proxy_sees(l as u32, warp, lane, stamp) {
        let m = format!(
            "the copy signals the mbarrier at shared offset {}, which was initialized with no `fence.mbarrier_init` or \
             `fence.proxy.async` since",
            at.1
        );
        cx.find(FindingKind::ProxyFence, l, Some(at.1.into()), m);
    }
    // Another CTA's may not be there yet.
    let (own, unit) = (cx.unit.ctas[cx.w.cta].rank, cx.unit.number);
    if cx.grid.options.checks && at.0 != own && !cx.w.sync.covers(l as u32, unit, unit, warp, lane, stamp) {
        let m = format!(
            "the copy signals the mbarrier at shared offset {} of the CTA of rank {}, whose initialization nothing orders \
             before it",
            at.1, at.0
        );
        cx.find(FindingKind::SharedRace, l, Some(at.1.into()), m);
    }
}

fn place(p: &Places, l: usize) -> (u32, u32) {
    ((p.at[l] >> 32) as u32, p.at[l] as u32)
}

fn missing(cx: &mut Cx<'_>, l: usize, at: (u32, u32)) {
    let m =
        format!("there is no mbarrier at shared offset {}: it was not initialized, or was invalidated", at.1);
    cx.find(FindingKind::ArriveCount, l, Some(at.1.into()), m);
}

pub(super) fn init(d: &mut Dec) -> R {
    d.count(2..=2)?;
    common(d, 0)?;
    d.out.b = d.src(1, Ty::U32)?;
    d.out.exec = |cx, i| {
        let p = places(cx, i, Kind::Write);
        let n = cx.get::<u32>(i.b);
        let stamp = cx.w.sync.now();
        for l in lanes(p.shared) {
            if n[l] == 0 || n[l] > MAX_COUNT {
                let m = format!("an mbarrier's count must be between 1 and {MAX_COUNT}, not {}", n[l]);
                cx.find(FindingKind::ArriveCount, l, None, m);
                continue;
            }
            let at = place(&p, l);
            if cx.unit.mbar.map.contains_key(&at) {
                let m = format!(
                    "the mbarrier at shared offset {} is initialized again: invalidate it first (§9.7.13.15.9)",
                    at.1
                );
                cx.find(FindingKind::ArriveCount, l, Some(at.1.into()), m);
            }
            cx.unit.mbar.init(at, n[l], (cx.w.sync.index, l as u32, stamp));
        }
        cx.unit.effect();
        Flow::Next
    };
    Ok(())
}

pub(super) fn inval(d: &mut Dec) -> R {
    d.count(1..=1)?;
    common(d, 0)?;
    d.out.exec = |cx, i| {
        let p = places(cx, i, Kind::Write);
        for l in lanes(p.shared) {
            if cx.unit.mbar.map.remove(&place(&p, l)).is_none() {
                missing(cx, l, place(&p, l));
            }
        }
        Flow::Next
    };
    Ok(())
}

/// Adds bytes to expect (positive) or takes bytes that came (negative).
fn transact(d: &mut Dec, sign: i64) -> R {
    d.count(2..=2)?;
    common(d, 0)?;
    d.out.b = d.src(1, Ty::U32)?;
    d.out.e = u32::from(sign < 0);
    d.out.exec = |cx, i| {
        let p = places(cx, i, Kind::Atomic);
        let n = cx.get::<u32>(i.b);
        for l in lanes(p.shared) {
            let at = place(&p, l);
            match cx.unit.mbar.map.get_mut(&at) {
                Some(b) => {
                    b.tx += if i.e != 0 { -i64::from(n[l]) } else { i64::from(n[l]) };
                    if i.e != 0 {
                        b.settle();
                    }
                    bytes_fit(cx, l, at);
                }
                None => missing(cx, l, at),
            }
        }
        cx.unit.effect();
        Flow::Next
    };
    Ok(())
}

pub(super) fn expect_tx(d: &mut Dec) -> R {
    transact(d, 1)
}
pub(super) fn complete_tx(d: &mut Dec) -> R {
    transact(d, -1)
}

/// The bytes pending must stay within what an mbarrier counts.
fn bytes_fit(cx: &mut Cx<'_>, l: usize, at: (u32, u32)) {
    let Some(b) = cx.unit.mbar.map.get(&at) else { return };
    if b.tx.unsigned_abs() > MAX_COUNT.into() {
        let m = format!(
            "{} bytes are pending at the mbarrier at shared offset {}, which counts to {MAX_COUNT}",
            b.tx, at.1
        );
        cx.find(FindingKind::ArriveCount, l, Some(at.1.into()), m);
    }
}

const RELAXED: u32 = 1;
const DROP: u32 = 2;
const EXPECT: u32 = 4;
/// The arrival must not end the phase.
const NO_COMPLETE: u32 = 8;

/// Behind an arrival the others run: what waits for it does its work, before whoever does not wait for that, as it should, goes on
/// and ends phases that the others still look for.
const HANDED_OVER: Flow = Flow::YieldNext;

/// One arrival of `count` by a lane, one of those of a mask, with `tx` bytes announced first.
fn arrive_at(
    cx: &mut Cx<'_>,
    (l, mask): (usize, u32),
    at: (u32, u32),
    count: u32,
    tx: u32,
    flags: u32,
) -> u64 {
    let clock = &cx.w.sync.told(l, mask, cx.w.live);
    let Some(b) = cx.unit.mbar.map.get_mut(&at) else {
        missing(cx, l, at);
        return 0;
    };
    let token = b.phase << COUNT_BITS | u64::from(b.pending);
    b.tx += i64::from(tx);
    if flags & RELAXED == 0 && cx.grid.options.checks {
        b.arriving.join(clock);
    }
    if flags & DROP != 0 {
        b.expected = b.expected.saturating_sub(count);
    }
    if count == 0 || flags & NO_COMPLETE != 0 && b.pending == count && b.tx == 0 {
        let what =
            if count == 0 { "an arrival of zero" } else { "a `.noComplete` arrival that ends the phase" };
        let m = format!("{what} at the mbarrier at shared offset {}", at.1);
        cx.find(FindingKind::ArriveCount, l, Some(at.1.into()), m);
        return token;
    }
    if b.pending < count {
        let m = format!(
            "{count} arrivals at the mbarrier at shared offset {}, whose phase {} has {} of {} left",
            at.1, b.phase, b.pending, b.expected
        );
        cx.find(FindingKind::ArriveCount, l, Some(at.1.into()), m);
        return token;
    }
    b.pending -= count;
    b.settle();
    bytes_fit(cx, l, at);
    token
}

fn arrives(d: &mut Dec, drop: bool) -> R {
    let expect = d.has("expect_tx");
    let no_complete = d.has("noComplete");
    // The state comes first unless the object is in another CTA.
    let k = usize::from(!matches!(d.operand(0)?, Operand::Mem { .. }));
    let f = common(d, k)?;
    if k == 1 {
        match d.operand(0)? {
            Operand::Sink => {}
            _ => d.out.d = d.dst(0, File::D)?,
        }
    }
    d.count(k + 1..=k + 2)?;
    if d.ins.operands.len() == k + 2 {
        d.out.b = d.src(k + 1, Ty::U32)?;
    } else if expect {
        return d.fail("the number of bytes is missing");
    }
    d.out.flags |= f
        | if drop { DROP } else { 0 }
        | if expect { EXPECT } else { 0 }
        | if no_complete { NO_COMPLETE } else { 0 };
    d.out.exec = |cx, i| {
        let p = places(cx, i, Kind::Atomic);
        let n = if i.b == NONE { [1; LANES] } else { cx.get::<u32>(i.b) };
        let mut state = [0u64; LANES];
        for l in lanes(p.shared) {
            let (count, tx) = if i.flags & EXPECT != 0 { (1, n[l]) } else { (n[l], 0) };
            state[l] = arrive_at(cx, (l, p.shared), place(&p, l), count, tx, i.flags);
        }
        if i.flags & RELAXED == 0 && cx.grid.options.checks {
            cx.w.sync.tick();
        }
        cx.unit.effect();
        if i.d != NONE {
            cx.put(i.d, &state);
        }
        HANDED_OVER
    };
    Ok(())
}

pub(super) fn arrive(d: &mut Dec) -> R {
    arrives(d, false)
}
pub(super) fn arrive_drop(d: &mut Dec) -> R {
    arrives(d, true)
}

/// `cp.async.mbarrier.arrive{.noinc}`: arrives when the thread's own copies so far are done. They are done here.
pub(super) fn cp_async_arrive(d: &mut Dec) -> R {
    let noinc = d.has("noinc");
    d.count(1..=1)?;
    common(d, 0)?;
    d.out.flags |= if noinc { 2 } else { 0 };
    d.out.exec = |cx, i| {
        super::asynch::finish(cx, [u32::MAX; LANES]);
        let p = places(cx, i, Kind::Atomic);
        for l in lanes(p.shared) {
            let at = place(&p, l);
            if i.flags & 2 == 0
                && let Some(b) = cx.unit.mbar.map.get_mut(&at)
            {
                // Without `.noinc` the arrival is one more than the count given at init.
                b.pending += 1;
            }
            arrive_at(cx, (l, p.shared), at, 1, 0, 0);
        }
        if cx.grid.options.checks {
            cx.w.sync.tick();
        }
        cx.unit.effect();
        HANDED_OVER
    };
    Ok(())
}

/// Does the copies on their way to an mbarrier.
fn deliver(cx: &mut Cx<'_>, at: (u32, u32)) {
    let Some(b) = cx.unit.mbar.map.get_mut(&at) else { return };
    if b.jobs.is_empty() {
        return;
    }
    let jobs = std::mem::take(&mut b.jobs);
    let agent = Agent::Mbar(b.agent);
    let party = agent.party(cx.unit.warps.len() as u32);
    let mut bytes = 0i64;
    let mut last = 0;
    for (j, stamp) in jobs {
        bytes += i64::from(j.bytes());
        last = last.max(stamp);
        super::bulk::perform(cx, &j, agent, stamp);
    }
    if let Some(b) = cx.unit.mbar.map.get_mut(&at) {
        b.arriving.completed(party, last);
        b.tx -= bytes;
        b.settle();
    }
    cx.unit.effect();
}

/// Signals bytes at an mbarrier from `st.async` and the like.
pub(super) fn bytes_came(cx: &mut Cx<'_>, l: usize, at: (u32, u32), bytes: u32) {
    let clock = cx.w.sync.known(1 << l).into_owned();
    match cx.unit.mbar.map.get_mut(&at) {
        Some(b) => {
            b.arriving.join(&clock);
            b.tx -= i64::from(bytes);
            b.settle();
        }
        None => missing(cx, l, at),
    }
    cx.unit.effect();
}

fn waits(d: &mut Dec) -> R {
    let parity = d.has("parity");
    d.out.d = d.dst(0, File::P)?;
    let f = common(d, 1)?;
    d.count(3..=4)?;
    d.out.b = if parity { d.src(2, Ty::U32)? } else { d.src(2, Ty::B64)? };
    if d.ins.operands.len() == 4 {
        d.src(3, Ty::U32)?;
    }
    d.out.flags |= f | u32::from(parity) << 1;
    d.out.exec = |cx, i| {
        let p = places(cx, i, Kind::StrongRead);
        let mut done = 0;
        let mut learnt: Vec<(usize, (u32, u32), Clock)> = vec![];
        for l in lanes(p.shared) {
            let at = place(&p, l);
            deliver(cx, at);
            let want = if i.flags & 2 != 0 {
                u64::from(cx.w.regs.w[i.b as usize][l])
            } else {
                cx.w.regs.d[i.b as usize][l]
            };
            let Some(b) = cx.unit.mbar.map.get(&at) else {
                missing(cx, l, at);
                return Flow::Stop;
            };
            let yes = if i.flags & 2 != 0 { b.phase & 1 != want & 1 } else { b.phase > want >> COUNT_BITS };
            if yes {
                done |= 1 << l;
                if i.flags & RELAXED == 0 && cx.grid.options.checks {
                    let c = b.complete.clone();
                    cx.w.sync.hear(1 << l, &c, true);
                    learnt.push((l, at, c));
                }
            }
        }
        // Lanes that have waited at one mbarrier know the same.
        while let Some((l, at, c)) = learnt.pop() {
            let mut mask = 1 << l;
            learnt.retain(|x| {
                mask |= u32::from(x.1 == at) << x.0;
                x.1 != at
            });
            cx.w.sync.acquire(mask, cx.w.live, &c);
        }
        let all = done == cx.mask;
        cx.put_pred(i.d, done);
        // A wait that failed lets the others run.
        if all { Flow::Next } else { Flow::YieldNext }
    };
    Ok(())
}

pub(super) fn test_wait(d: &mut Dec) -> R {
    waits(d)
}
pub(super) fn try_wait(d: &mut Dec) -> R {
    waits(d)
}

pub(super) fn pending_count(d: &mut Dec) -> R {
    d.has("b64");
    d.count(2..=2)?;
    d.out.d = d.dst(0, File::W)?;
    d.out.a = d.src(1, Ty::B64)?;
    d.out.exec = |cx, i| {
        let n = cx.get::<u64>(i.a).map(|state| state as u32 & MAX_COUNT);
        cx.put(i.d, &n);
        Flow::Next
    };
    Ok(())
}
