//! Records of shared memory.

use super::{Agent, MANY, describe, settle_all};
use crate::access::{Kind, Places};
use crate::machine::Cx;
use crate::regs::lanes;
use crate::report::FindingKind;
use std::collections::HashMap;

/// A record of an access in one word: `flags:5 | phase:16 | party:13 | lane:6 | stamp:24`. A party is a warp or an
/// [`Agent`].
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Cell(pub u64);

pub(super) const INIT: u64 = 1 << 63;
pub(super) const PENDING: u64 = 1 << 62;
pub(super) const STRONG: u64 = 1 << 61;
/// The record is the number of a set of records, of parties with no order between them.
pub(super) const SET: u64 = 1 << 60;
/// By the asynchronous proxy; or a set with such a member.
pub(super) const ASYNC: u64 = 1 << 59;
const FLAGS: u64 = INIT | PENDING | STRONG | SET | ASYNC;
const PHASE: u32 = 0xffff;

impl Cell {
    pub fn new(flags: u64, phase: u32, party: u32, lane: u32, stamp: u32) -> Cell {
        Cell(
            flags
                | u64::from(phase & PHASE) << 43
                | u64::from(party & 0x1fff) << 30
                | u64::from(lane) << 24
                | u64::from(stamp & 0xff_ffff),
        )
    }
    pub fn has(self, f: u64) -> bool {
        self.0 & f != 0
    }
    fn phase(self) -> u32 {
        (self.0 >> 43) as u32 & PHASE
    }
    pub fn party(self) -> u32 {
        (self.0 >> 30 & 0x1fff) as u32
    }
    pub fn lane(self) -> u32 {
        (self.0 >> 24 & 0x3f) as u32
    }
    pub fn stamp(self) -> u32 {
        (self.0 & 0xff_ffff) as u32
    }
    fn set(self) -> usize {
        (self.0 & 0x3fff_ffff) as usize
    }
    /// No record: the bits below the flags are zero (stamps start at one, and so do the numbers of sets).
    pub fn is_none(self) -> bool {
        self.0 & !FLAGS == 0
    }
}

/// Sets kept before all are forgotten.
const MAX_SETS: usize = 1 << 18;
/// The same at a barrier of all warps, behind which only the asynchronous proxy still asks who has read.
const SETS_PAST_BARRIERS: usize = 1 << 12;

/// Sets of records, by number; and the way from one set to a larger one.
#[derive(Default)]
struct Sets {
    sets: Vec<Vec<Cell>>,
    grow: HashMap<(u64, u64), Cell>,
    /// Some set has a member that outlives the phase.
    lasting: bool,
}

impl Sets {
    fn clear(&mut self) {
        self.sets.clear();
        self.grow.clear();
        self.lasting = false;
    }

    /// The records that `c` stands for.
    fn of<'a>(&'a self, c: &'a Cell) -> &'a [Cell] {
        if !c.has(SET) {
            return std::slice::from_ref(c);
        }
        self.sets.get(c.set().wrapping_sub(1)).map_or(&[], |s| &s[..])
    }
}

/// Records of a CTA's shared memory.
#[derive(Default)]
pub(crate) struct SharedShadow {
    pub(super) writes: Vec<Cell>,
    pub(super) reads: Vec<Cell>,
    sets: Sets,
    /// Barriers of the whole CTA so far.
    pub phase: u32,
}

impl SharedShadow {
    pub fn reset(&mut self, bytes: u32) {
        self.writes.clear();
        self.writes.resize(bytes as usize, Cell(0));
        self.reads.clear();
        self.reads.resize(bytes as usize, Cell(0));
        self.sets.clear();
        self.phase = 0;
    }

    /// Whether the asynchronous proxy wrote the byte at `at` last.
    pub fn by_proxy(&self, at: u32) -> bool {
        self.writes.get(at as usize).is_some_and(|c| c.has(ASYNC))
    }

    /// The records that a record stands for, as far as they are kept.
    pub(super) fn members<'a>(&'a self, c: &'a Cell) -> &'a [Cell] {
        self.sets.of(c)
    }

    /// A barrier of all warps: everything before is ordered before everything after.
    pub fn next_phase(&mut self) {
        self.phase += 1;
        if !self.sets.lasting && self.sets.sets.len() > SETS_PAST_BARRIERS {
            self.forget_sets();
        }
    }

    /// Records that stand for sets stand for nothing any more.
    fn forget_sets(&mut self) {
        self.sets.clear();
        for c in self.writes.iter_mut().chain(&mut self.reads).filter(|c| c.has(SET)) {
            c.0 &= FLAGS & !(SET | ASYNC);
        }
    }

    /// A party that `c` stands for and that is not ordered before lane `lane` of the accessing warp.
    pub(super) fn unordered(&self, me: &Me<'_>, c: Cell, lane: u32, strong: bool) -> Option<Cell> {
        if me.stale(c) {
            return None;
        }
        self.sets.of(&c).iter().find(|c| !(strong && c.has(STRONG) || me.ordered(**c, lane))).copied()
    }

    /// The record after `new` in place of `old`: those of `old` with no order before `new` stay beside it. So do plain
    /// accesses before a strong one, which excuses other strong ones but not the plain one before it.
    pub(super) fn with(&mut self, me: &Me<'_>, old: Cell, new: Cell, lane: u32) -> Cell {
        let stays = |c: Cell| !me.stale(c) && (new.has(STRONG) && !c.has(STRONG) || !me.ordered(c, lane));
        if me.stale(old) || (!old.has(SET) && !stays(old)) {
            return new;
        }
        if let Some(c) = self.sets.grow.get(&(old.0, new.0)) {
            return *c;
        }
        if self.sets.sets.len() > MAX_SETS {
            // Kernels with no barrier of the whole CTA: forget, rather than grow without end.
            self.forget_sets();
            return new;
        }
        let mut s: Vec<Cell> = self.sets.of(&old).iter().copied().filter(|c| stays(*c)).collect();
        match s.iter_mut().find(|c| c.party() == new.party() && c.has(STRONG) == new.has(STRONG)) {
            Some(c) => {
                let lane = if c.lane() == new.lane() { new.lane() } else { MANY };
                *c = Cell::new(new.0 & FLAGS, new.phase(), new.party(), lane, new.stamp());
            }
            None => s.push(new),
        }
        let c = if let [one] = s[..] {
            one
        } else {
            let lasting = s.iter().fold(0, |f, c| f | c.0 & ASYNC);
            self.sets.lasting |= lasting != 0;
            self.sets.sets.push(s);
            let n = self.sets.sets.len() as u64;
            Cell(new.0 & (INIT | PENDING) | SET | lasting | u64::from(new.phase()) << 43 | n)
        };
        self.sets.grow.insert((old.0, new.0), c);
        c
    }
}

/// Who accesses now.
pub(super) struct Me<'a> {
    pub sync: &'a crate::clock::Sync,
    pub phase: u32,
    /// Whether phases order everything: only while one CTA has this memory to itself.
    pub phased: bool,
    /// Warps of the unit; parties with higher numbers are agents, which take no part in barriers.
    pub warps: u32,
}

impl Me<'_> {
    /// Nothing that a barrier of the whole CTA has not ordered.
    fn stale(&self, c: Cell) -> bool {
        c.is_none()
            || (self.phased
                && c.phase() != self.phase & PHASE
                && (if c.has(SET) { !c.has(ASYNC) } else { c.party() < self.warps }))
    }

    fn ordered(&self, c: Cell, lane: u32) -> bool {
        if self.stale(c) {
            return true;
        }
        if c.party() == self.sync.index {
            return self.sync.lanes_ordered(lane, c.lane(), c.stamp());
        }
        self.sync.covers(lane, 0, 0, c.party(), c.lane(), c.stamp())
    }

    fn cell(&self, flags: u64, lane: u32) -> Cell {
        Cell::new(flags, self.phase, self.sync.index, lane, self.sync.now())
    }
}

/// A conflict found.
enum Bad {
    Uninit,
    Pending,
    Race(Cell, &'static str),
}

/// Checks and records an access to bytes `[at, at + n)`. A conflict with a writer, for a plain write, goes to `same_ok`.
fn check_run(
    sh: &mut SharedShadow,
    me: &Me<'_>,
    lane: u32,
    at: usize,
    n: usize,
    kind: Kind,
    same_ok: &mut Option<Cell>,
) -> Option<Bad> {
    let mut bad = None;
    let mut k = at;
    let end = at + n;
    let strong = if kind.strong() { STRONG } else { 0 };
    while k < end {
        // Bytes with equal records go together.
        let (w, r) = (sh.writes[k], sh.reads[k]);
        let mut e = k + 1;
        while e < end && sh.writes[e] == w && sh.reads[e] == r {
            e += 1;
        }
        if w.has(PENDING) {
            bad.get_or_insert(Bad::Pending);
        } else {
            if kind.reads() && !w.has(INIT) {
                bad.get_or_insert(Bad::Uninit);
            }
            if let Some(c) = sh.unordered(me, w, lane, kind.strong()) {
                if kind == Kind::Write {
                    *same_ok = Some(c);
                } else {
                    bad.get_or_insert(Bad::Race(c, "wrote"));
                }
            }
        }
        if kind.writes() {
            // Readers must be done.
            if let Some(c) = sh.unordered(me, r, lane, kind.strong()) {
                bad.get_or_insert(Bad::Race(c, "read"));
            }
            let mine = me.cell(INIT | w.0 & PENDING | strong, lane);
            let new = sh.with(me, w, mine, lane);
            sh.writes[k..e].fill(new);
            if !kind.strong() || !r.is_none() {
                sh.reads[k..e].fill(Cell(0));
            }
        } else {
            let new = sh.with(me, r, me.cell(strong, lane), lane);
            sh.reads[k..e].fill(new);
        }
        k = e;
    }
    bad
}

/// The party of a record, for messages.
pub(super) fn who(cx: &Cx<'_>, c: Cell) -> String {
    let warps = cx.unit.warps.len() as u32;
    let number = |k: u32| {
        let warp = cx.unit.warps.get(k as usize).and_then(|w| w.as_ref());
        warp.map_or(cx.w.id, |w| w.id)
    };
    match Agent::of(c.party(), warps) {
        None => describe(cx, number(c.party()), c.lane()),
        Some(Agent::Wgmma(w)) => format!("a `wgmma` of warp {}", number(w)),
        Some(Agent::Bulk(w) | Agent::BulkWrites(w)) => format!("a bulk copy of warp {}", number(w)),
        Some(Agent::Mbar(_)) => "a bulk copy that signals an mbarrier".into(),
    }
}

/// What an access to an address of the shared window needs: the records of its CTA, the party, and the offset.
fn access<'a>(cx: &'a mut Cx<'_>, address: u64) -> (&'a mut SharedShadow, Me<'a>, usize) {
    let phased = cx.unit.ctas.len() == 1;
    let warps = cx.unit.warps.len() as u32;
    let sh = &mut cx.unit.ctas[(address >> 32) as usize].shadow;
    let me = Me { sync: &cx.w.sync, phase: sh.phase, phased, warps };
    (sh, me, address as u32 as usize)
}

/// Checks and records an access to shared memory.
pub(crate) fn shared(cx: &mut Cx<'_>, p: &Places, bytes: u32, kind: Kind) {
    for l in lanes(p.shared) {
        let (sh, me, at) = access(cx, p.at[l]);
        let mut same_ok = None;
        let bad = check_run(sh, &me, l as u32, at, bytes as usize, kind, &mut same_ok);
        if let Some(c) = same_ok {
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
                let m = format!(
                    "shared offset {at}: {verb} here, and {} {what} it with no order between",
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
        let me = Me { sync: &cx.w.sync, phase: sh.phase, phased: true, warps: u32::MAX };
        let c = me.cell(INIT, l as u32);
        sh.writes[at..at + bytes as usize].fill(c);
    }
}

/// Checks and records an operation on an object in shared memory, an mbarrier. Whether it was initialized is not asked:
/// that is the object's own rule. Two threads that initialize it alike don't race.
pub(crate) fn object(cx: &mut Cx<'_>, p: &Places, bytes: u32, kind: Kind) {
    for l in lanes(p.shared) {
        let (sh, me, at) = access(cx, p.at[l]);
        let bad = check_run(sh, &me, l as u32, at, bytes as usize, kind, &mut None);
        if let Some(Bad::Race(c, what)) = bad {
            let (here, there) = match (kind, what) {
                (Kind::Write, _) => ("initialized or invalidated", "used"),
                (_, "wrote") => ("used", "initialized or wrote"),
                _ => ("used", "read"),
            };
            let m = format!(
                "the mbarrier at shared offset {at}: {here} here, and {} {there} it with no order between",
                who(cx, c)
            );
            cx.find(FindingKind::SharedRace, l, Some(at as u64), m);
        }
    }
}
