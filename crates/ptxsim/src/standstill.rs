//! When nothing that runs will change anything any more: each unit that has not ended comes back to where it was, and nobody has written to memory
//! that they share.
//!
//! A loop that waits for a word of memory finds its registers as they were, after some turns, for as long as nobody writes. So does a whole unit, whose
//! threads may have met at barriers and handed over in shared memory what one of them saw (a lock taken for all of a CTA); where all
//! units do, with no write between, they will for ever, as what a unit does follows from where it is. (A loop that counts its turns, or looks at the
//! clock, comes back to nothing: of these [`SimOptions::wait_rounds`](crate::SimOptions) says how long they may only look. Where a seed shuffles warps,
//! a unit that does more than look may do something else next time: it is never called deadlocked.)

use std::hash::{Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::{FxHashMap, FxHasher};

use crate::machine::{Grid, State, Unit, Warp};

/// A unit that does more than look at memory is looked at every so many rounds: that takes about as long as a round.
const EVERY: u32 = 32;

/// Which units have ended, and which stand still.
#[derive(Default)]
pub(crate) struct Standstill {
    /// Counts rounds of any unit in which something was changed that others see, or that isn't found in the unit's own state.
    changes: AtomicU64,
    units: Mutex<Units>,
}

#[derive(Default)]
struct Units {
    ended: u64,
    /// Those that came back to where they were, and the number of changes that there had been when they were there before.
    still: FxHashMap<u32, u64>,
}

impl Standstill {
    /// Something may have been changed.
    pub fn changed(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Another unit has ended: in its last round it may have written what others wait for, who are to look once more.
    pub fn ended(&self, unit: u32) {
        self.changed();
        let mut units = self.units.lock().unwrap_or_else(|e| e.into_inner());
        units.ended += 1;
        units.still.remove(&unit);
    }

    /// Whether with this one, which came back to where it was when there had been so many changes, all of so many units stand still.
    fn with(&self, unit: u32, since: u64, units: u64) -> bool {
        let mut all = self.units.lock().unwrap_or_else(|e| e.into_inner());
        all.still.insert(unit, since);
        let now = self.changes.load(Ordering::Acquire);
        all.ended + all.still.len() as u64 == units && all.still.values().all(|&since| since == now)
    }
}

/// Where a unit was while nobody changed anything: noted at the 1st, 2nd, 4th, … look at it.
#[derive(Debug, Default)]
pub(crate) struct Before {
    changes: u64,
    rounds: u32,
    looks: u32,
    state: u64,
    /// `Unit::events` then.
    events: u64,
    /// Of its memory, when it was there a second time.
    memory: Option<u64>,
}

impl Before {
    /// Whether a unit, which has just had a round in which it did nothing but poll, or more, and all others stand still.
    pub fn is_standstill(&mut self, unit: &Unit, grid: &Grid<'_>, polled: bool) -> bool {
        let all = &grid.standstill;
        let changes = all.changes.load(Ordering::Acquire);
        if changes != self.changes {
            *self = Before { changes, ..Before::default() };
            return false;
        }
        self.rounds = self.rounds.wrapping_add(1);
        if !polled && !self.rounds.is_multiple_of(EVERY) {
            return false;
        }
        let state = state_of(unit);
        let repeats = grid.options.seed == 0 || unit.events == self.events;
        let again = self.looks != 0 && state == self.state && repeats;
        let memory = again.then(|| memory_of(unit));
        if again && self.memory == memory {
            return all.with(unit.number, changes, grid.units * grid.templates.len() as u64);
        }
        if self.looks == 0 || self.looks.is_power_of_two() {
            (self.state, self.events, self.memory) = (state, unit.events, memory);
        } else if self.memory.is_none() {
            self.memory = memory;
        }
        self.looks = self.looks.saturating_add(1);
        false
    }
}

/// A number for what memory of its own a unit has.
fn memory_of(unit: &Unit) -> u64 {
    let mut hasher = FxHasher::default();
    for cta in &unit.ctas {
        (&cta.shared, cta.registers).hash(&mut hasher);
    }
    for w in unit.warps.iter().flatten().filter(|w| !w.done) {
        w.local.hash(&mut hasher);
    }
    hasher.finish()
}

/// A number for all else that decides what a unit does next, but for memory that others share.
fn state_of(unit: &Unit) -> u64 {
    let mut hasher = FxHasher::default();
    for bar in unit.ctas.iter().flat_map(|c| &c.bars).chain([&unit.cluster_bar]).filter(|b| b.used) {
        (&bar.lanes, bar.arrived, bar.count, bar.red).hash(&mut hasher);
    }
    for w in unit.warps.iter().flatten().filter(|w| !w.done) {
        state_of_warp(w, &mut hasher);
    }
    hasher.finish()
}

fn state_of_warp(w: &Warp, hasher: &mut FxHasher) {
    let regs = &w.regs;
    (&regs.p, &regs.h, &regs.w, &regs.d, &regs.q, w.id, w.live).hash(hasher);
    (w.sync.cluster_arrived == 0, w.sync.cluster_phase < w.sync.cluster_arrived).hash(hasher);
    // Only which fragment comes first counts.
    let first = w.frags.iter().map(|f| f.turn).min().unwrap_or(0);
    for f in &w.frags {
        let (waits, what) = match f.state {
            State::Ready => (0, 0),
            State::Gather(need) => (1, need),
            State::Pending(b, lanes) => (2 + b.id, lanes),
            State::Waiting(b) => (2 + b.id, 0),
        };
        (f.pc, f.mask, f.turn - first, waits, what).hash(hasher);
    }
}
