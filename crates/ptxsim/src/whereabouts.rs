//! Where a unit is, for [`crate::standstill`]: its registers, memory of its own and barriers. Of what isn't found there (clocks, mbarriers, copies,
//! products of warp groups, calls, messages) each use counts as a change.
//!
//! A unit's threads may meet at barriers and hand over in shared memory what one of them saw (a lock taken for all of a CTA): it comes back to where it
//! was however much it did between. (Of loops that count their turns or look at the clock [`SimOptions::wait_rounds`](crate::SimOptions) says how long they may
//! only look.)

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::machine::{Grid, State, Unit, Warp};
use crate::standstill::Before;

/// A unit that does more than look at memory is looked at every so many rounds: that takes about as long as a round.
const EVERY: u32 = 32;

/// Where a unit was.
#[derive(Debug, Default)]
pub(crate) struct Whereabouts {
    before: Before,
    rounds: u32,
}

impl Whereabouts {
    /// Whether a unit, which has just had a round in which it did nothing but poll, or more, and all others stand still.
    pub fn is_standstill(&mut self, unit: &Unit, grid: &Grid<'_>, polled: bool) -> bool {
        let all = &grid.standstill;
        let changes = all.changes();
        if !self.before.unchanged(changes) {
            self.rounds = 0;
            return false;
        }
        self.rounds = self.rounds.wrapping_add(1);
        if !polled && !self.rounds.is_multiple_of(EVERY) {
            return false;
        }
        let units = grid.units * grid.templates.len() as u64;
        self.before.is_back(state_of(unit, grid.options.seed != 0), || memory_of(unit))
            && all.with(unit.number.into(), (), changes, units).is_some()
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
///
/// Where a seed shuffles warps, what a unit does next also follows from which of them comes first, and that is another one each time: whoever has written
/// to shared memory or come to a barrier since may do something else from the same place (a warp that now looks at a flag before another takes it
/// back). So these events count, too, and only a unit that does nothing but look, atomics that change nothing among it, is ever back: in whatever order its warps
/// look, none sees anything of another.
fn state_of(unit: &Unit, shuffled: bool) -> u64 {
    let mut hasher = FxHasher::default();
    shuffled.then_some(unit.events).hash(&mut hasher);
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
