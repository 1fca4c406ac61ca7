//! When nothing that runs will change anything any more: each unit that has not ended only looks at memory, and comes back to where it was.
//!
//! A loop that waits for a word of memory finds its registers as they were, after some turns, for as long as nobody writes. So does a whole unit; where all
//! units do, with no write between, they will for ever. (A loop that counts its turns, or looks at the clock, comes back to nothing: of these
//! [`SimOptions::wait_rounds`](crate::SimOptions) says how long they may wait.)

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashMap;

use crate::machine::{State, Unit, Warp};

/// Which units have ended, and which stand still.
#[derive(Default)]
pub(crate) struct Standstill {
    /// Counts rounds of any unit in which something may have been changed that others see.
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

/// Where a unit was, in rounds in which it only waits: looked at again after 1, 2, 4, … rounds.
#[derive(Debug, Default)]
pub(crate) struct Before {
    state: u64,
    changes: u64,
}

impl Before {
    /// Whether a unit, which has waited for so many rounds, and all of so many others stand still.
    pub fn is_standstill(&mut self, unit: &Unit, rounds: u32, all: &Standstill, units: u64) -> bool {
        let (changes, state) = (all.changes.load(Ordering::Acquire), state_of(unit));
        if state == self.state && changes == self.changes {
            return all.with(unit.number, changes, units);
        }
        if rounds.is_power_of_two() || changes != self.changes {
            *self = Before { state, changes };
        }
        false
    }
}

/// A number for all that decides what a unit does next, but for memory.
fn state_of(unit: &Unit) -> u64 {
    let mut hasher = DefaultHasher::new();
    for w in unit.warps.iter().flatten().filter(|w| !w.done) {
        state_of_warp(w, &mut hasher);
    }
    hasher.finish()
}

fn state_of_warp(w: &Warp, hasher: &mut DefaultHasher) {
    let regs = &w.regs;
    (&regs.p, &regs.h, &regs.w, &regs.d, &regs.q, &w.local, w.live).hash(hasher);
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
    w.copies.len().hash(hasher);
    w.bulk.len().hash(hasher);
}
