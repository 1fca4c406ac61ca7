//! Partitions and warps: flows of control of one program that run at the same time.
//!
//! A [`Strand`] is where one of them is. Partitions share the frame's registers, no two of which hold values of different strands
//! ([`slots`](crate::compile)), and its memory; the warps of a kernel that is written for one run the same code, each with registers of its own. One runs until it waits, spins, ends or has done an atomic operation; then the next one's turn is.
//! So a program makes progress whatever it waits for by, and what it does without order shows.

use super::local::Own;
use super::rings::Waiting;
use super::{Fault, FaultBox, Frame, Status};
use crate::program::{Instr, Program};
use crate::tile::Reg;

/// A flow of control that is not running now.
#[derive(Default)]
pub(super) struct Strand {
    /// The next instruction.
    pub pc: usize,
    /// Turns of loops that touched memory since it last gave way.
    pub spins: u32,
    /// The turn of a barrier of programs that it waits for.
    pub awaited: Option<u64>,
    /// 0 is the default partition, 1 + i worker i; or the number of the warp.
    pub number: usize,
    /// Registers of its own, if it is a warp.
    pub regs: Vec<Reg>,
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
    /// It spins.
    Spins,
    /// It waits for other programs.
    Waits,
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
    /// Whether one of these spins.
    spins: bool,
    /// Whether one of these waits for another, or for arrivals from the cluster.
    blocked: bool,
}

impl Idle {
    /// Whether nothing goes on before other programs have come to a barrier, or have signaled. (Arrivals from the cluster come in other ways.)
    pub(super) fn is_stuck(&self, in_cluster: bool) -> bool {
        !(self.spins || self.blocked && in_cluster)
    }
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

    /// Begins the warps beside the first, all of which have the program's arguments.
    pub(super) fn fork_warps(&mut self, warps: u32) {
        for number in 1..warps as usize {
            let copy = |reg: &Reg| Reg { repr: reg.repr, ..Reg::default() };
            let regs = self.regs.iter().map(copy).collect();
            self.others.push_back(Strand { number, regs, ..Strand::default() });
        }
    }

    /// A fault with the warp that it is of.
    pub(super) fn of_warp(&self, program: &Program, mut fault: FaultBox) -> FaultBox {
        if program.warps.is_some() {
            fault.notes.insert(0, format!("in warp {}", self.strand));
        }
        fault
    }

    /// Lets the strand run whose turn is.
    fn switch(&mut self, back: bool) {
        let Some(mut next) = self.others.pop_front() else { return };
        if !next.regs.is_empty() {
            std::mem::swap(&mut self.regs, &mut next.regs);
        }
        let regs = next.regs;
        let now = Strand { pc: self.pc, spins: self.spins, awaited: self.awaited, number: self.strand, regs };
        if back {
            self.others.push_back(now);
        }
        (self.pc, self.spins, self.awaited, self.strand) = (next.pc, next.spins, next.awaited, next.number);
    }

    /// Who runs after a strand has given way.
    pub(super) fn give_way(&mut self, why: Yield, idle: &mut Idle) -> Next {
        match why {
            Yield::Program(status) => return Next::Leave(status),
            Yield::Ended | Yield::Acted => *idle = Idle::default(),
            Yield::Spins | Yield::Waits => {
                idle.strands += 1;
                idle.outside = true;
                idle.spins |= why == Yield::Spins;
            }
            Yield::Blocked(acted) => {
                if acted {
                    *idle = Idle::default();
                }
                idle.strands += 1;
                idle.blocked = true;
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
            n if program.warps.is_some() => format!("warp {n}"),
            0 => "the default partition".to_string(),
            n => format!("worker {n}"),
        };
        let mut fault = Fault::new(format!("deadlock: {}", here.shown(&who(self.strand))));
        fault.elsewhere = here.elsewhere;
        fault.notes = here.notes;
        let mut others: Vec<(usize, usize)> = self.others.iter().map(|s| (s.number, s.pc)).collect();
        others.sort_unstable();
        for &(number, pc) in &others {
            let waits = self.waits_for(program, own, pc);
            fault.elsewhere.push((waits.shown(&who(number)), pc));
        }
        let here = |warp: usize| warp == self.strand || others.iter().any(|&(number, _)| number == warp);
        let ended = (0..program.warps.unwrap_or(0) as usize).filter(|&warp| !here(warp));
        fault.notes.extend(ended.map(|warp| format!("warp {warp} has ended")));
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
                let who = if program.warps.is_some() { "warps" } else { "partitions" };
                format!("waits at a barrier to which {}", self.named.describe(*barrier, who))
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
