//! Partitions: flows of control of one program that run at the same time.
//!
//! A [`Strand`] is where one of them is. They share the frame's registers, no two of which hold values of different strands
//! ([`slots`](crate::compile)), and its memory. One runs until it waits, spins, ends or has done an atomic operation; then the next one's turn is.
//! So a program makes progress whatever it waits for by, and what it does without order shows.

use super::local::Own;
use super::rings::Waiting;
use super::{Fault, Frame, Status};
use crate::program::{Instr, Program};

/// A flow of control that is not running now.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Strand {
    /// The next instruction.
    pub pc: usize,
    /// Turns of loops that touched memory since it last gave way.
    pub spins: u32,
    /// The turn of a barrier of programs that it waits for.
    pub awaited: Option<u64>,
    /// 0 is the default partition, 1 + i worker i.
    pub number: usize,
}

/// Why a strand gives way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Yield {
    /// The program returned, or the caller asked to stop.
    Program(Status),
    /// The partition ended.
    Ended,
    /// It has done something that others may look at.
    Acted,
    /// It spins, or waits for other programs.
    Paused,
    /// It waits for another strand; whether it did anything before.
    Blocked(bool),
}

/// How long no strand has got anywhere.
#[derive(Debug, Default)]
pub(super) struct Idle {
    /// Strands since one did something.
    strands: usize,
    /// Whether one of these may go on when other programs do.
    outside: bool,
}

/// What follows from a strand's giving way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// The next strand runs.
    Run,
    /// Other programs should run.
    Leave(Status),
    /// Every strand waits for another.
    Deadlock,
}

impl Frame {
    /// Begins partitions, beside the running one.
    pub(super) fn fork(&mut self, workers: &[usize]) {
        let strands = workers.iter().zip(1..).map(|(&pc, number)| Strand { pc, number, ..Strand::default() });
        self.others.extend(strands);
    }

    /// Lets the strand run whose turn is.
    fn switch(&mut self, back: bool) {
        let Some(next) = self.others.pop_front() else { return };
        let now = Strand { pc: self.pc, spins: self.spins, awaited: self.awaited, number: self.strand };
        if back {
            self.others.push_back(now);
        }
        Strand { pc: self.pc, spins: self.spins, awaited: self.awaited, number: self.strand } = next;
    }

    /// Who runs after a strand has given way.
    pub(super) fn give_way(&mut self, why: Yield, idle: &mut Idle) -> Next {
        match why {
            Yield::Program(status) => return Next::Leave(status),
            Yield::Ended | Yield::Acted => *idle = Idle::default(),
            Yield::Paused => {
                idle.strands += 1;
                idle.outside = true;
            }
            Yield::Blocked(acted) => {
                if acted {
                    *idle = Idle::default();
                }
                idle.strands += 1;
            }
        }
        let ended = why == Yield::Ended;
        let all = self.others.len() + usize::from(!ended);
        self.switch(!ended);
        match (idle.strands >= all, idle.outside) {
            (false, _) => Next::Run,
            (true, true) => Next::Leave(Status::Paused),
            (true, false) => Next::Deadlock,
        }
    }

    /// What to say where every partition waits for another. The frame is then at the first that doesn't just wait for the end of others.
    pub(super) fn deadlock(&mut self, program: &Program, own: Option<&Own>) -> Fault {
        let ends = |pc: usize| matches!(program.code[pc], Instr::Join);
        for _ in 0..self.others.len() {
            if ends(self.pc) {
                self.switch(true);
            }
        }
        let here = self.waits_for(program, own, self.pc);
        if self.others.is_empty() && !here.end.is_empty() {
            let text =
                format!("deadlock: {} {}, and nobody else is there who could do so", here.end, here.what);
            return Fault { elsewhere: here.elsewhere, notes: here.notes, ..Fault::new(text) };
        }
        let who = |number: usize| match number {
            0 => "the default partition".to_string(),
            n => format!("worker {n}"),
        };
        let mut fault = Fault::new(format!("deadlock: {}", here.shown(&who(self.strand))));
        fault.elsewhere = here.elsewhere;
        fault.notes = here.notes;
        let mut others: Vec<Strand> = self.others.iter().copied().collect();
        others.sort_by_key(|s| s.number);
        for other in others {
            let waits = self.waits_for(program, own, other.pc);
            fault.elsewhere.push((waits.shown(&who(other.number)), other.pc));
        }
        fault
    }

    /// What a partition does that waits at an instruction.
    fn waits_for(&mut self, program: &Program, own: Option<&Own>, pc: usize) -> Waiting {
        let what = match &program.code[pc] {
            Instr::Join => "has ended, and waits for the workers".to_string(),
            Instr::MbarrierWait { at, parity } => {
                let (at, parity) = (self.scalar(program, *at), self.scalar(program, *parity));
                format!("waits for phase {parity} of a barrier, whose {}", self.mbarriers.describe(at))
            }
            Instr::NamedWait { barrier, .. } => {
                format!("waits at a barrier to which {}", self.named.describe(*barrier))
            }
            Instr::Ring(step) => match own {
                Some(own) => return self.ring_waits(program, &own.rings.borrow(), step),
                None => "waits".to_string(),
            },
            _ => "waits".to_string(),
        };
        Waiting { what, ..Waiting::default() }
    }
}
