//! What programs of several ranks do to each other's memory, told to [`Races`] as instructions run: those that race are faults, at the access
//! that came second, with the place of the other.
//!
//! Ranks that store the same value in one place do no harm: arrays that are not symmetric are one for all ranks here, and would be each rank's own
//! on devices. Code that is handed on (`tl.inline_asm_elementwise`) accesses memory unseen.

use std::ops::Range;

use super::access::{Plan, each_run};
use super::{Context, Fault, FaultBox, Frame};
use crate::meeting::Group;
use crate::memory::Word;
use crate::program::{Instr, Program, V};
use crate::races::{Access, Found, Kind, Message, Races};

/// An instruction's access to memory.
struct Touch {
    ptr: V,
    mask: Option<V>,
    value: V,
    kind: Kind,
    message: Message,
}

impl Touch {
    fn of(instr: &Instr) -> Option<Touch> {
        let plain = |ptr: &V, mask: &Option<V>, value: &V, write, strong| Touch {
            ptr: *ptr,
            mask: *mask,
            value: *value,
            kind: Kind { write, strong },
            message: Message::default(),
        };
        match instr {
            Instr::Load { ptr, mask, dst, volatile, .. } => Some(plain(ptr, mask, dst, false, *volatile)),
            Instr::Store { ptr, value, mask } => Some(plain(ptr, mask, value, true, false)),
            Instr::AtomicRmw { ptr, val, mask, message, .. } => {
                Some(Touch { message: *message, ..plain(ptr, mask, val, true, message.system) })
            }
            Instr::AtomicCas { ptr, val, message, .. } => {
                Some(Touch { message: *message, ..plain(ptr, &None, val, true, message.system) })
            }
            _ => None,
        }
    }
}

/// Consecutive elements: the address of the first, bytes between them, and how many.
type Run = (u64, i64, usize);

impl Frame {
    /// Runs an instruction, which may access memory that other ranks reach.
    pub(super) fn step_among_ranks(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        races: &Races,
        instr: &Instr,
    ) -> Result<(), FaultBox> {
        let Some(touch) = Touch::of(instr) else { return self.step(program, context, instr) };
        let size = Self::ty(program, touch.value).elem.mem_size();
        let runs = self.runs(program, &touch, size);
        let me = self.number(context);
        let atomic = matches!(instr, Instr::AtomicRmw { .. } | Instr::AtomicCas { .. });
        let runs_of = runs.iter().filter(|_| atomic);
        let addresses: Vec<u64> =
            runs_of.flat_map(|&(at, step, n)| (0..n).map(move |i| elem(at, step, i))).collect();
        let mut found = Vec::new();
        for &run in &runs {
            found.extend(races.access((me, self.pc), touch.kind, run, size as u64));
        }
        let both_store =
            |a: &Access| touch.kind.write && a.kind.write && !touch.kind.strong && !a.kind.strong;
        let before: Vec<Vec<u8>> = found.iter().map(|f| values(&f.bytes)).collect();
        if atomic {
            let step = || self.step(program, context, instr);
            races.change(me, (&addresses, size as u64), touch.message, step)?;
        } else {
            self.step(program, context, instr)?;
        }
        if touch.message.acquire {
            races.acquire(me, addresses.iter().map(|&at| (at, None)), touch.message);
        }
        let harms = |(f, was): &(&Found, Vec<u8>)| !both_store(&f.with) || values(&f.bytes) != *was;
        match found.iter().zip(before).find(harms) {
            None => Ok(()),
            Some((f, _)) => Err(self.race(context, races, f.bytes.start, size as u64, (touch.kind, f.with))),
        }
    }

    /// Behind a wait for signals at some places, whose values are there: it has read them, as an atomic operation does.
    pub(super) fn hear_signals(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        (ptr, value): (V, V),
        acquire: bool,
    ) -> Result<(), FaultBox> {
        let Some(races) = context.races else { return Ok(()) };
        let kind = Kind { write: false, strong: true };
        let message = Message { acquire, system: true, release: false };
        let touch = Touch { ptr, mask: None, value, kind, message };
        let size = Self::ty(program, value).elem.mem_size();
        let runs = self.runs(program, &touch, size);
        let me = self.number(context);
        if acquire {
            self.dense(program, ptr);
            self.dense(program, value);
            let n = self.len(Self::ty(program, ptr));
            let addresses = self.regs[ptr.slot as usize].buf.slice::<u64>(n).iter();
            let places = addresses.enumerate().map(|(k, &at)| (at, Some(self.wanted(program, value, k))));
            races.acquire(me, places, message);
        }
        for &run in &runs {
            if let Some(f) = races.access((me, self.pc), kind, run, size as u64).into_iter().next() {
                return Err(self.race(context, races, f.bytes.start, size as u64, (kind, f.with)));
            }
        }
        Ok(())
    }

    /// At a barrier of programs: it comes, or goes on behind it.
    pub(super) fn note_meeting(&self, context: &Context<'_>, group: Group, comes: bool) {
        match context.races {
            Some(races) if comes => races.come(self.number(context), group),
            Some(races) => races.go_on(self.number(context), group),
            None => {}
        }
    }

    /// Where the elements of an access lie.
    fn runs(&mut self, program: &Program, touch: &Touch, size: usize) -> Vec<Run> {
        let mut runs = Vec::new();
        match self.plan(program, touch.ptr, touch.mask) {
            Plan::Nothing => {}
            Plan::Rows(a, m) => {
                let ty = Self::ty(program, touch.value);
                let all = each_run(&a, &m, ty, size, |run| {
                    runs.push(if run.step == 0 { (run.addr, 0, 1) } else { (run.addr, run.step, run.count) });
                    Ok(())
                });
                debug_assert!(all.is_ok(), "nothing is refused");
            }
            Plan::Elements(masked) => {
                let n = self.len(Self::ty(program, touch.ptr));
                let mask = touch.mask.filter(|_| masked);
                for v in [touch.ptr].iter().chain(&mask) {
                    self.dense(program, *v);
                }
                let keep = mask.map(|m| self.regs[m.slot as usize].buf.slice::<u8>(n));
                let addresses = self.regs[touch.ptr.slot as usize].buf.slice::<u64>(n).iter();
                let kept = addresses.enumerate().filter(|(i, _)| keep.is_none_or(|k| k[*i] != 0));
                runs.extend(kept.map(|(_, &at)| (at, size as i64, 1)));
            }
        }
        runs
    }

    /// The fault of an access that races with an earlier one.
    fn race(
        &self,
        context: &Context<'_>,
        races: &Races,
        at: u64,
        size: u64,
        (mine, other): (Kind, Access),
    ) -> FaultBox {
        let did = |kind: Kind| if kind.write { "wrote" } else { "read" };
        let program = races.in_rank(other.program);
        let [x, y] = [context.grid[0], context.grid[1]].map(u64::from);
        let place = format!("({}, {}, {})", program % x, program / x % y, program / x / y);
        let who = format!("program {place} of rank {}", races.rank(other.program));
        let is = if mine.write { "written" } else { "read" };
        let mut fault = Fault::new(format!(
            "race between ranks: memory is {is} here, which {who} {} with no order between",
            did(other.kind)
        ));
        fault.elsewhere.push((format!("{who} {} it", did(other.kind)), other.pc));
        fault.notes.extend(context.memory.nearest(at, size).map(|(_, text)| text));
        Box::new(fault)
    }
}

fn elem(at: u64, step: i64, i: usize) -> u64 {
    at.wrapping_add((step * i as i64) as u64)
}

/// What lies in bytes of the launch's memory.
fn values(bytes: &Range<u64>) -> Vec<u8> {
    // SAFETY: what was found to race lies in an allocation.
    bytes.clone().map(|at| unsafe { u8::read(at) }).collect()
}
