//! When nothing that runs will change anything any more: each of those that have not ended comes back to where it was, and nobody has written to memory
//! that they share.
//!
//! A loop that waits for a word of memory finds its registers as they were, after some turns, for as long as nobody writes: where all that run do so,
//! with no write between, they will for ever, as what each does follows from where it is. (A loop that counts its turns, or looks at a clock,
//! comes back to nothing.) Who runs says itself when it has changed something, at the latest when it stops for a while or ends, and before it looks whether it is back.
//!
//! The simulator looks at its units so, and the CPU executor at its programs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

/// Which of a launch have ended, and which stand still, each at a place.
#[derive(Debug)]
pub struct Standstill<Place = ()> {
    /// Counts what was changed that others see, or that isn't found in one's own state.
    changes: AtomicU64,
    all: Mutex<All<Place>>,
}

#[derive(Debug)]
struct All<Place> {
    ended: u64,
    /// Those that came back to where they were, the number of changes that there had been when they were there before, and where that is.
    still: FxHashMap<u64, (u64, Place)>,
}

impl<Place> Default for Standstill<Place> {
    fn default() -> Self {
        Standstill {
            changes: AtomicU64::new(0),
            all: Mutex::new(All { ended: 0, still: FxHashMap::default() }),
        }
    }
}

impl<Place: Copy> Standstill<Place> {
    fn all(&self) -> MutexGuard<'_, All<Place>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many changes there have been.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Something may have been changed.
    pub fn changed(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Another one has ended: in its last turn it may have written what others wait for, who are to look once more.
    pub fn ended(&self, number: u64) {
        self.changed();
        let mut all = self.all();
        all.ended += 1;
        all.still.remove(&number);
    }

    /// One of so many came back to where it was, with that many changes both times: where each stands that has not ended, if with it all of them stand still.
    pub fn with(&self, number: u64, place: Place, since: u64, of: u64) -> Option<Vec<(u64, Place)>> {
        let mut all = self.all();
        all.still.insert(number, (since, place));
        let now = self.changes();
        if all.ended + all.still.len() as u64 != of || all.still.values().any(|&(since, _)| since != now) {
            return None;
        }
        let mut places: Vec<_> = all.still.iter().map(|(&number, &(_, place))| (number, place)).collect();
        places.sort_unstable_by_key(|&(number, _)| number);
        Some(places)
    }
}

/// Where one was while nobody changed anything: noted at the 1st, 2nd, 4th, … look at it.
#[derive(Debug, Default)]
pub struct Before {
    changes: u64,
    looks: u32,
    state: u64,
    /// Of its memory, when it was there a second time.
    memory: Option<u64>,
}

impl Before {
    /// Whether there have been this many changes at the last look, too. If not, what was noted is forgotten.
    pub fn unchanged(&mut self, changes: u64) -> bool {
        let same = changes == self.changes;
        if !same {
            *self = Before { changes, ..Before::default() };
        }
        same
    }

    /// Looks at one again, with nothing changed between: whether it is back where it was. `state` is a number for what decides what it does next, but
    /// for `memory`, which takes longer and is asked for where the states agree.
    pub fn is_back(&mut self, state: u64, memory: impl FnOnce() -> u64) -> bool {
        let again = self.looks != 0 && state == self.state;
        let memory = again.then(memory);
        if again && self.memory == memory {
            return true;
        }
        if self.looks == 0 || self.looks.is_power_of_two() {
            (self.state, self.memory) = (state, memory);
        } else if self.memory.is_none() {
            self.memory = memory;
        }
        self.looks = self.looks.saturating_add(1);
        false
    }
}
