//! Barriers and signals: who waits for what, and whether anyone is left who could still come.
//!
//! A program whose partitions run at the same time waits where each of them does: it is *stuck* when none of them goes on by itself.

use std::sync::{Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::memory::Word;

/// Which programs meet: the number of their group, and that of the cluster or of the rank whose programs they are.
pub type Group = (i32, u64);

/// A program's number in the launch, and which of its partitions, or warps.
pub type Strand = (u64, usize);

/// A program that waits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waiting {
    /// Its number in the launch.
    pub program: u64,
    /// The instruction at which it waits.
    pub pc: usize,
    /// What there is of what it waits for.
    pub has: String,
}

/// The barriers and signals of a launch.
#[derive(Debug, Default)]
pub struct Meetings(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    groups: FxHashMap<Group, Meeting>,
    /// The turns of barriers that are waited for.
    turns: FxHashMap<Strand, (Group, u64)>,
    /// The signals that are waited for.
    signals: FxHashMap<Strand, Signal>,
    /// The programs that have paused, and wait with all that they do.
    stuck: FxHashSet<u64>,
    /// The programs that have ended.
    ended: Vec<u64>,
}

#[derive(Debug, Default)]
struct Meeting {
    /// How often all have come.
    turn: u64,
    wanted: u64,
    came: Vec<(u64, usize)>,
}

/// An integer in memory that is to become large enough.
#[derive(Debug, Clone, Copy)]
pub struct Signal {
    address: u64,
    bytes: u64,
    wanted: i64,
    /// Whether it is a word whose upper half is to become that of `wanted`.
    flagged: bool,
    pc: usize,
}

impl Signal {
    /// # Safety
    /// The address is that of an integer of 4 or 8 bytes, aligned and inside an allocation, for as long as the launch runs.
    pub unsafe fn new(address: u64, bytes: u64, wanted: i64, flagged: bool, pc: usize) -> Signal {
        Signal { address, bytes, wanted, flagged, pc }
    }

    fn value(&self) -> i64 {
        // SAFETY: the promise of `new`.
        unsafe {
            match self.bytes {
                4 => i64::from(u32::read(self.address) as i32),
                _ => u64::read(self.address) as i64,
            }
        }
    }

    fn is_there(&self) -> bool {
        match self.flagged {
            true => self.value() >> 32 == self.wanted >> 32,
            false => self.value() >= self.wanted,
        }
    }
}

impl State {
    fn is_over(&self, (group, turn): (Group, u64)) -> bool {
        self.groups.get(&group).is_none_or(|meeting| meeting.turn != turn)
    }
}

impl Meetings {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A program comes to a barrier of `wanted` programs. `None`: it is the last. Otherwise the turn that it waits for.
    pub fn come(&self, group: Group, wanted: u64, strand: Strand, pc: usize) -> Option<u64> {
        let mut state = self.state();
        let meeting = state.groups.entry(group).or_default();
        meeting.wanted = wanted;
        if meeting.came.len() as u64 + 1 >= wanted {
            meeting.came.clear();
            meeting.turn += 1;
            return None;
        }
        meeting.came.push((strand.0, pc));
        let turn = meeting.turn;
        state.turns.insert(strand, (group, turn));
        Some(turn)
    }

    /// Whether the turn that a program waits for is over; it asks again until it is.
    pub fn is_over(&self, group: Group, turn: u64, strand: Strand) -> bool {
        let mut state = self.state();
        let over = state.is_over((group, turn));
        if over {
            state.turns.remove(&strand);
            state.stuck.remove(&strand.0);
        }
        over
    }

    /// Whether a signal is there that a program waits for; it asks again until it is.
    pub fn signaled(&self, strand: Strand, signal: Signal) -> bool {
        let mut state = self.state();
        let there = signal.is_there();
        if there {
            state.signals.remove(&strand);
            state.stuck.remove(&strand.0);
        } else {
            state.signals.insert(strand, signal);
        }
        there
    }

    /// A program pauses: because all that it does waits for others, or something may go on by itself.
    pub fn pause(&self, program: u64, stuck: bool) {
        let mut state = self.state();
        if stuck {
            state.stuck.insert(program);
        } else {
            state.stuck.remove(&program);
        }
    }

    /// A program has ended.
    pub fn end(&self, program: u64) {
        let mut state = self.state();
        state.stuck.remove(&program);
        state.ended.push(program);
    }

    /// Of `total` programs, those that wait and those that have ended, in order, where nobody is left for whom they could wait.
    pub fn deadlock(&self, total: u64) -> Option<(Vec<Waiting>, Vec<u64>)> {
        let mut state = self.state();
        if state.stuck.is_empty() || ((state.stuck.len() + state.ended.len()) as u64) < total {
            return None;
        }
        // What was waited for may have come since.
        let come = |&turn: &(Group, u64)| state.is_over(turn);
        if state.signals.values().any(Signal::is_there) || state.turns.values().any(come) {
            return None;
        }
        state.ended.sort_unstable();
        let at_barriers = state.groups.values().flat_map(|meeting| {
            let has = format!("{} of {} programs have come", meeting.came.len(), meeting.wanted);
            meeting.came.iter().map(move |&(program, pc)| Waiting { program, pc, has: has.clone() })
        });
        let for_signals = state.signals.iter().map(|(&(program, _), signal)| {
            let has = match signal.flagged {
                true => "what another rank sends has not come".to_string(),
                false => format!("the signal is {} and not yet {}", signal.value(), signal.wanted),
            };
            Waiting { program, pc: signal.pc, has }
        });
        let mut waiting: Vec<Waiting> = at_barriers.chain(for_signals).collect();
        waiting.sort_unstable();
        Some((waiting, state.ended.clone()))
    }
}
