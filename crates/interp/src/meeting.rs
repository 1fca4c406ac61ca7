//! Barriers of programs: who has come to which, and whether anyone is left who could still come.

use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

/// Which programs meet: the number of their group and, where it is one of clusters, the number of the cluster.
pub type Group = (i32, Option<u64>);

/// A program that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waiting {
    /// Its number in the grid.
    pub program: u64,
    /// The instruction at which it waits.
    pub pc: usize,
    /// How many have come there, and how many are wanted.
    pub came: (u64, u64),
}

/// The barriers of a launch.
#[derive(Debug, Default)]
pub struct Meetings(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    groups: FxHashMap<Group, Meeting>,
    /// How many programs wait.
    waiting: u64,
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

impl Meetings {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A program comes to a barrier of `wanted` programs. `None`: it is the last. Otherwise the turn that it waits for.
    pub fn come(&self, group: Group, wanted: u64, program: u64, pc: usize) -> Option<u64> {
        let mut state = self.state();
        let meeting = state.groups.entry(group).or_default();
        meeting.wanted = wanted;
        if meeting.came.len() as u64 + 1 >= wanted {
            let others = meeting.came.len() as u64;
            meeting.came.clear();
            meeting.turn += 1;
            state.waiting -= others;
            return None;
        }
        meeting.came.push((program, pc));
        let turn = meeting.turn;
        state.waiting += 1;
        Some(turn)
    }

    /// Whether the turn that a program waits for is over.
    pub fn is_over(&self, group: Group, turn: u64) -> bool {
        self.state().groups.get(&group).is_none_or(|meeting| meeting.turn != turn)
    }

    /// A program has ended.
    pub fn end(&self, program: u64) {
        self.state().ended.push(program);
    }

    /// Of `total` programs, those that wait and those that have ended, in order, where nobody is left for whom they could wait.
    pub fn deadlock(&self, total: u64) -> Option<(Vec<Waiting>, Vec<u64>)> {
        let mut state = self.state();
        if state.waiting == 0 || state.waiting + (state.ended.len() as u64) < total {
            return None;
        }
        state.ended.sort_unstable();
        let all = state.groups.values().flat_map(|meeting| {
            let came = (meeting.came.len() as u64, meeting.wanted);
            meeting.came.iter().map(move |&(program, pc)| Waiting { program, pc, came })
        });
        let mut waiting: Vec<Waiting> = all.collect();
        waiting.sort_unstable();
        Some((waiting, state.ended.clone()))
    }
}
