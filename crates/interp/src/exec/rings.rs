//! Rings: which slots are filled, by whom they are being filled or read, and who waits for whom.
//!
//! Of each slot is counted how often it has been given to the readers and how often each reader has given it back. The chunk that the
//! writer acquires is the next one of its slot, and is there for it when all readers have given back as many as were committed; a
//! reader's next one is there when more were committed than it has given back. An end that skips a round of its slot would wait for
//! a phase that has passed or may never come: that is an error here, as is an access to a slot that is not the partition's at the time.

use super::{Fault, FaultBox, Frame};
use crate::program::{Program, RingInfo, RingOp, RingStep, V};
use crate::tile::{Affine, MAX_COMPACT_RANK};

/// The state of a ring.
#[derive(Debug, Default)]
pub(super) struct RingState {
    /// Which of the program's rings it is.
    ring: usize,
    /// For each field, where it begins.
    fields: Vec<u64>,
    slots: Vec<SlotState>,
}

#[derive(Debug, Clone, Default)]
struct SlotState {
    /// Who acquired it, until it is committed.
    acquired: Option<Holder>,
    /// How often it has been committed or closed.
    given: u64,
    /// Where that was the last time.
    given_at: Option<usize>,
    closed: bool,
    readers: Vec<ReaderState>,
}

#[derive(Debug, Clone, Default)]
struct ReaderState {
    /// Who waited for it, until the slot is released.
    waited: Option<Holder>,
    /// How often it has released the slot.
    released: u64,
}

/// A partition that may use a slot, and the instruction since which it may.
#[derive(Debug, Clone, Copy)]
struct Holder {
    strand: usize,
    pc: usize,
}

/// What came of an operation on a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is done.
    Done,
    /// It waits for the other end.
    Blocked,
}

/// What an end of a ring waits for, for a message.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Which end of which ring it is; empty for what is none.
    pub end: String,
    /// What it does.
    pub what: String,
    /// What happened to the slot, and where.
    pub elsewhere: Vec<(String, usize)>,
    /// Remarks.
    pub notes: Vec<String>,
}

impl Waiting {
    /// The sentence, of a partition by this name.
    pub fn shown(&self, partition: &str) -> String {
        match self.end.is_empty() {
            true => format!("{partition} {}", self.what),
            false => format!("{} ({partition}) {}", self.end, self.what),
        }
    }
}

impl RingState {
    pub fn new(ring: usize, info: &RingInfo, fields: Vec<u64>) -> RingState {
        let slot =
            SlotState { readers: vec![ReaderState::default(); info.readers.len()], ..Default::default() };
        RingState { ring, fields, slots: vec![slot; info.slots as usize] }
    }

    /// The slot in which a range of bytes lies, if it lies in a field; whether it lies in one slot alone.
    fn slot_at(&self, info: &RingInfo, low: u64, high: u64) -> Option<(usize, bool)> {
        self.fields.iter().zip(&info.slot_bytes).find_map(|(&base, &bytes)| {
            let end = base + bytes * u64::from(info.slots);
            if low >= end || high <= base {
                return None;
            }
            let one =
                low >= base && high <= end && bytes > 0 && (low - base) / bytes == (high - 1 - base) / bytes;
            Some(((low.max(base) - base).checked_div(bytes).unwrap_or(0) as usize, one))
        })
    }

    /// What is wrong with an access to a slot by a partition.
    fn refused(&self, info: &RingInfo, slot: usize, strand: usize, write: bool) -> Option<Fault> {
        let state = &self.slots[slot];
        let own = |holder: &Holder| holder.strand == strand;
        let readers = || state.readers.iter().filter_map(|r| r.waited.as_ref());
        // A reader may write into what it has waited for, as kernels do that stage their results where operands were.
        if state.acquired.as_ref().is_some_and(own) || readers().any(own) {
            return None;
        }
        let (ring, verb) = (info.shown(), if write { "store" } else { "load" });
        let why = match state.given_at {
            _ if state.acquired.is_some() => "which the writer fills in another partition",
            _ if !write && readers().next().is_some() => {
                "for which another partition has waited, but not this one"
            }
            Some(_) if write => "which has been committed, and not been acquired since",
            _ if write => "which has not been acquired",
            Some(_) => "which its reader has not waited for, or has released",
            None => "which has not been committed",
        };
        let mut fault = Fault::new(format!("{verb} of slot {slot} of {ring}, {why}"));
        let acquired = state.acquired.map(|holder| ("the slot was acquired".to_string(), holder.pc));
        let given = state.given_at.map(|pc| ("the slot was committed".to_string(), pc));
        fault.elsewhere.extend(acquired.or(given));
        Some(fault)
    }

    /// A reader that has waited for a slot, and where, and not released it.
    fn unreleased(&self) -> Option<(usize, usize, usize)> {
        self.slots.iter().enumerate().filter(|(_, slot)| !slot.closed).find_map(|(i, slot)| {
            slot.readers
                .iter()
                .enumerate()
                .find_map(|(r, reader)| reader.waited.map(|holder| (i, r, holder.pc)))
        })
    }

    /// The reader for which the writer of a slot has to wait.
    fn behind(&self, slot: usize) -> Option<usize> {
        let state = &self.slots[slot];
        state.readers.iter().position(|r| r.released < state.given)
    }

    /// The writer is to fill a slot, and goes on if it is free.
    fn acquire(
        &mut self,
        info: &RingInfo,
        slot: usize,
        phase: Option<u64>,
        by: Holder,
    ) -> Result<Outcome, FaultBox> {
        let (ring, slots) = (info.shown(), u64::from(info.slots));
        let state = &self.slots[slot];
        if let Some(holder) = state.acquired {
            let mut fault = Fault::new(format!(
                "slot {slot} of {ring} is acquired, but was not committed since it was before"
            ));
            fault.elsewhere.push(("it was acquired".into(), holder.pc));
            return Err(Box::new(fault));
        }
        if info.one_shot && state.given > 0 {
            let mut fault = Fault::new(format!(
                "slot {slot} of {ring} is filled a second time, but the pipe is one_shot"
            ));
            fault.elsewhere.extend(state.given_at.map(|pc| ("it was committed".to_string(), pc)));
            return Err(Box::new(fault));
        }
        if phase.is_some_and(|phase| phase != state.given & 1) {
            let next = slot as u64 + state.given * slots;
            return Err(Box::new(Fault::new(format!(
                "chunks of {ring} are out of order: the next one of slot {slot} is number {next}, not a round before or after it"
            ))));
        }
        if self.behind(slot).is_some() {
            return Ok(Outcome::Blocked);
        }
        self.slots[slot].acquired = Some(by);
        Ok(Outcome::Done)
    }

    /// What the writer waits for that has to wait for a slot.
    fn acquire_waits(&self, info: &RingInfo, slot: usize) -> Waiting {
        let (ring, state) = (info.shown(), &self.slots[slot]);
        let Some(reader) = self.behind(slot) else { return Waiting::default() };
        let name = info.reader(reader);
        let given = state.given_at.map(|pc| ("the slot was committed".to_string(), pc));
        let waited = state.readers[reader].waited.map(|h| (format!("{name} waited for it"), h.pc));
        let s = if info.slots == 1 { "" } else { "s" };
        Waiting {
            end: format!("the writer of {ring}"),
            what: format!("waits for {name} to release slot {slot}"),
            elsewhere: given.into_iter().chain(waited).collect(),
            notes: vec![format!(
                "{ring} has {} slot{s}: as many chunks can be committed before one must be released",
                info.slots
            )],
        }
    }

    fn give(&mut self, slot: usize, closed: bool, pc: usize) {
        let state = &mut self.slots[slot];
        state.acquired = None;
        state.given += 1;
        state.given_at = Some(pc);
        state.closed = closed;
    }

    fn wait(
        &mut self,
        info: &RingInfo,
        slot: usize,
        reader: usize,
        phase: Option<u64>,
        by: Holder,
    ) -> Result<Outcome, FaultBox> {
        let (ring, name) = (info.shown(), info.reader(reader));
        let state = &mut self.slots[slot];
        let own = &mut state.readers[reader];
        if phase.is_some_and(|phase| phase != own.released & 1) {
            let next = slot as u64 + own.released * u64::from(info.slots);
            let mut fault = Fault::new(format!(
                "chunks of {ring} are out of order: the next one of slot {slot} for {name} is number {next}, not a round before or after it"
            ));
            fault.elsewhere.extend(own.waited.map(|h| (format!("{name} waited for that"), h.pc)));
            return Err(Box::new(fault));
        }
        if state.given == own.released {
            return Ok(Outcome::Blocked);
        }
        own.waited = Some(by);
        Ok(Outcome::Done)
    }

    /// What a reader waits for that has to wait for a slot.
    fn wait_waits(&self, info: &RingInfo, slot: usize, reader: usize) -> Waiting {
        let (ring, name) = (info.shown(), info.reader(reader));
        let acquired = self.slots[slot].acquired;
        Waiting {
            end: format!("{name} of {ring}"),
            what: format!("waits for slot {slot} to be committed"),
            elsewhere: acquired.map(|h| ("the writer acquired it".to_string(), h.pc)).into_iter().collect(),
            notes: Vec::new(),
        }
    }
}

impl Frame {
    /// An operation on a ring; gives whether it waits.
    pub(super) fn ring_op(
        &mut self,
        program: &Program,
        rings: &mut [RingState],
        step: &RingStep,
    ) -> Result<Outcome, FaultBox> {
        if let Some(pred) = step.pred
            && self.scalar(program, pred) & 1 == 0
        {
            return Ok(Outcome::Done);
        }
        let pc = self.pc;
        let by = Holder { strand: self.strand, pc };
        let (number, slot) =
            (self.scalar(program, step.ring) as usize, self.scalar(program, step.slot) as i64);
        let phase = step.phase.map(|v| self.scalar(program, v) & 1);
        let Some(state) = rings.get_mut(number) else {
            return Err(Box::new(Fault::new("a pipe is used before it is made")));
        };
        let info = &program.rings[state.ring];
        let ring = info.shown();
        let Some(slot) = usize::try_from(slot).ok().filter(|&s| s < state.slots.len()) else {
            return Err(Box::new(Fault::new(format!("slot {slot} of {ring}, which has {}", info.slots))));
        };
        match step.op {
            RingOp::Acquire => return state.acquire(info, slot, phase, by),
            RingOp::Close => {
                let outcome = state.acquire(info, slot, phase, by)?;
                if outcome == Outcome::Done {
                    state.give(slot, true, pc);
                }
                return Ok(outcome);
            }
            RingOp::Commit => {
                if state.slots[slot].acquired.is_none() {
                    let text = format!("slot {slot} of {ring} is committed, but has not been acquired");
                    return Err(Box::new(Fault::new(text)));
                }
                state.give(slot, false, pc);
            }
            RingOp::Wait => return state.wait(info, slot, step.reader, phase, by),
            RingOp::Release => {
                let own = &mut state.slots[slot].readers[step.reader];
                if own.waited.take().is_none() {
                    let name = info.reader(step.reader);
                    let text = format!("{name} of {ring} releases slot {slot}, for which it has not waited");
                    return Err(Box::new(Fault::new(text)));
                }
                if !info.one_shot {
                    own.released += 1;
                }
            }
            RingOp::IsClosed => {
                if let Some(dst) = step.dst {
                    let closed = state.slots[slot].closed;
                    self.set(dst, crate::tile::Repr::Uniform(u64::from(closed)));
                }
            }
        }
        Ok(Outcome::Done)
    }

    /// What an operation on a ring waits for that has to wait.
    pub(super) fn ring_waits(&mut self, program: &Program, rings: &[RingState], step: &RingStep) -> Waiting {
        let (number, slot) =
            (self.scalar(program, step.ring) as usize, self.scalar(program, step.slot) as usize);
        let Some(state) = rings.get(number).filter(|state| slot < state.slots.len()) else {
            return Waiting::default();
        };
        let info = &program.rings[state.ring];
        match step.op {
            RingOp::Wait => state.wait_waits(info, slot, step.reader),
            _ => state.acquire_waits(info, slot),
        }
    }

    /// Checks that an access keeps out of slots that are not the partition's at the time.
    pub(super) fn check_slots(
        &mut self,
        program: &Program,
        rings: &[RingState],
        (ptr, mask): (V, Option<V>),
        size: usize,
        write: bool,
    ) -> Result<(), FaultBox> {
        let ty = Self::ty(program, ptr);
        let strand = self.strand;
        let affine = Some(self.regs[ptr.slot as usize].repr)
            .filter(|_| ty.shape.len() <= MAX_COMPACT_RANK && self.lanes == 1)
            .and_then(Affine::from_repr);
        if let Some(affine) = affine {
            let (low, high) = affine.range(&ty.shape);
            let (low, high) = (low as u64, high as u64 + size as u64);
            if rings.iter().all(|r| r.slot_at(&program.rings[r.ring], low, high).is_none()) {
                return Ok(());
            }
            if mask.is_none() {
                let ok = |r: &RingState| match r.slot_at(&program.rings[r.ring], low, high) {
                    Some((slot, one)) => {
                        one && r.refused(&program.rings[r.ring], slot, strand, write).is_none()
                    }
                    None => false,
                };
                if rings.iter().any(ok) {
                    return Ok(());
                }
            }
        }
        let n = self.len(ty);
        let keep: Option<Vec<u8>> = mask.map(|m| self.dense(program, m).buf.slice::<u8>(n).to_vec());
        let shape = ty.shape.clone();
        let addresses = self.dense(program, ptr).buf.slice::<u64>(n);
        for (i, &at) in addresses.iter().enumerate() {
            if keep.as_ref().is_some_and(|keep| keep[i] == 0) {
                continue;
            }
            let mut fault = None;
            // A buffer may be a field of several rings: one that allows it is enough.
            for r in rings {
                let info = &program.rings[r.ring];
                let Some((slot, _)) = r.slot_at(info, at, at + size as u64) else { continue };
                fault = r.refused(info, slot, strand, write);
                if fault.is_none() {
                    break;
                }
            }
            if let Some(mut fault) = fault {
                if !shape.is_empty() {
                    fault.element = Some((i, shape));
                }
                return Err(Box::new(fault));
            }
        }
        Ok(())
    }
}

/// What is wrong at a program's end: a reader that never released a slot.
pub(super) fn at_end(program: &Program, rings: &[RingState]) -> Result<(), FaultBox> {
    for state in rings {
        let info = &program.rings[state.ring];
        if let Some((slot, reader, pc)) = state.unreleased().filter(|_| !info.one_shot) {
            let (ring, name) = (info.shown(), info.reader(reader));
            let mut fault =
                Fault::new(format!("the program ends, but {name} of {ring} has not released slot {slot}"));
            fault.elsewhere.push((format!("{name} waited for it"), pc));
            return Err(Box::new(fault));
        }
    }
    Ok(())
}
