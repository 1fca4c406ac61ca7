//! Follows a program whose numbers are known as it uses a ring: loops by their counts, branches by their conditions.
//!
//! It ends where a number that matters is not known, or after so many steps. Before that, an end that would wait for ever is an error:
//! up to there the program is sure to come.

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{scf, ttg};
use tilewright_ir::{Block, Builder, Diagnostic, Module, Op, Type, Value, fold};

use super::{Action, Ring};
use crate::analysis::rings;

/// Operations that are followed.
const STEPS: usize = 1 << 17;

/// Why it is not followed further.
enum End {
    Unknown,
    Wrong(Box<Diagnostic>),
}

#[derive(Clone)]
struct Slot {
    /// How often it has been committed or closed, and by what at last.
    given: u64,
    given_by: Option<Op>,
    closed: bool,
    acquired: bool,
    released: Vec<u64>,
    waited: Vec<bool>,
}

struct Walk<'a> {
    module: &'a Module,
    ring: &'a Ring,
    numbers: FxHashMap<Value, i64>,
    slots: Vec<Slot>,
    steps: usize,
    /// What `ttg.ring_is_closed` gave, each time the same; none where it differed.
    closed: FxHashMap<Op, Option<bool>>,
}

/// Follows the program from where the ring is made to where its block ends; gives whether that was possible.
///
/// # Errors
/// An end that waits for ever, and other uses of a ring that can't be.
pub(super) fn follow(module: &mut Module, ring: &Ring) -> Result<bool, Diagnostic> {
    let slot = Slot {
        given: 0,
        given_by: None,
        closed: false,
        acquired: false,
        released: vec![0; ring.readers],
        waited: vec![false; ring.readers],
    };
    let slots = vec![slot; ring.slots as usize];
    let mut walk =
        Walk { module, ring, numbers: FxHashMap::default(), slots, steps: 0, closed: FxHashMap::default() };
    let mut at = module.next_op(ring.create.0);
    while let Some(op) = at {
        match walk.op(op) {
            Ok(()) => {}
            Err(End::Unknown) => return Ok(false),
            Err(End::Wrong(error)) => return Err(*error),
        }
        at = module.next_op(op);
    }
    let closed = walk.closed;
    if closed.values().any(|known| known.is_none()) {
        return Ok(false);
    }
    for (op, known) in closed {
        if known == Some(true) {
            let yes = Builder::before(module, op).int(-1, Type::I1);
            let result = module.result(op);
            module.replace_all_uses(result, yes);
        }
    }
    Ok(true)
}

impl Walk<'_> {
    fn number(&self, v: Value) -> Option<i64> {
        self.module.constant_int(v).or_else(|| self.numbers.get(&v).copied())
    }

    fn needed(&self, v: Value) -> Result<i64, End> {
        self.number(v).ok_or(End::Unknown)
    }

    fn set(&mut self, v: Value, number: Option<i64>) {
        match number {
            Some(n) => self.numbers.insert(v, n),
            None => self.numbers.remove(&v),
        };
    }

    fn set_all(&mut self, to: &[Value], from: &[Value]) {
        let numbers: Vec<Option<i64>> = from.iter().map(|&v| self.number(v)).collect();
        for (&v, n) in to.iter().zip(numbers) {
            self.set(v, n);
        }
    }

    fn block(&mut self, block: Block) -> Result<Op, End> {
        let m = self.module;
        let mut last = None;
        for op in m.block_ops(block) {
            self.op(op)?;
            last = Some(op);
        }
        last.ok_or(End::Unknown)
    }

    fn op(&mut self, op: Op) -> Result<(), End> {
        let m = self.module;
        self.steps += 1;
        if self.steps > STEPS {
            return Err(End::Unknown);
        }
        if let Some(action) = self.ring.action(m, op) {
            return self.act(op, action);
        }
        if self.ring.concerns(m, op) {
            return self.structured(op);
        }
        let numbers: Option<Vec<i64>> = m.operands(op).iter().map(|&v| self.number(v)).collect();
        match m.results(op) {
            &[result] => {
                let n = numbers.filter(|n| !n.is_empty()).and_then(|n| fold::integer(m, op, &n));
                self.set(result, n);
            }
            results => results.iter().for_each(|&v| self.set(v, None)),
        }
        Ok(())
    }

    fn structured(&mut self, op: Op) -> Result<(), End> {
        let m = self.module;
        if let Some(l) = scf::For::cast(m, op) {
            let body = m.region_block(l.body(m));
            let args = m.block_args(body).to_vec();
            let (mut i, upper) = (self.needed(l.lower_bound(m))?, self.needed(l.upper_bound(m))?);
            let step = self.needed(l.step(m))?;
            if step <= 0 {
                return Err(End::Unknown);
            }
            self.set_all(&args[1..], l.init(m));
            while i < upper {
                self.set(args[0], Some(i));
                let end = self.block(body)?;
                self.set_all(&args[1..], m.operands(end));
                i = i.checked_add(step).ok_or(End::Unknown)?;
            }
            self.set_all(m.results(op), &args[1..]);
            return Ok(());
        }
        if let Some(branch) = scf::If::cast(m, op) {
            let taken = self.needed(branch.condition(m))? != 0;
            let region = if taken { branch.then_region(m) } else { branch.else_region(m) };
            if let &[block] = m.region_blocks(region) {
                let end = self.block(block)?;
                self.set_all(m.results(op), m.operands(end));
            }
            return Ok(());
        }
        if let Some(w) = ttg::WarpSpecialize::cast(m, op) {
            return self.partitions(w);
        }
        let Some(l) = scf::While::cast(m, op) else { return Err(End::Unknown) };
        let (before, after) = (m.region_block(l.before(m)), m.region_block(l.after(m)));
        self.set_all(m.block_args(before), l.init(m));
        loop {
            let condition = self.block(before)?;
            let operands = m.operands(condition);
            if self.needed(operands[0])? == 0 {
                self.set_all(m.results(op), &operands[1..]);
                return Ok(());
            }
            self.set_all(m.block_args(after), &operands[1..]);
            let end = self.block(after)?;
            self.set_all(m.block_args(before), m.operands(end));
        }
    }

    /// One region uses the ring: those that it isn't in pass it by.
    fn partitions(&mut self, w: ttg::WarpSpecialize) -> Result<(), End> {
        let m = self.module;
        let uses = |block: Block| m.block_ops(block).any(|op| self.ring.concerns(m, op));
        let default = m.region_block(w.default_region(m));
        let inside = w.partitions(m).iter().map(|&r| m.region_block(r)).find(|&b| uses(b));
        if uses(default) {
            let end = self.block(default)?;
            self.set_all(m.results(w.0), m.operands(end));
        } else if let Some(block) = inside {
            self.set_all(m.block_args(block), w.captures(m));
            self.block(block)?;
            m.results(w.0).iter().for_each(|&v| self.set(v, None));
        }
        Ok(())
    }

    fn act(&mut self, op: Op, action: Action) -> Result<(), End> {
        let (slot, phase) = Ring::position(self.module, op);
        let number = self.needed(slot)?;
        let phase = phase.map(|v| self.needed(v)).transpose()?;
        let Some(mut slot) = usize::try_from(number).ok().and_then(|i| self.slots.get(i)).cloned() else {
            return Err(End::Unknown);
        };
        match action {
            Action::Acquire | Action::Close => {
                self.check_acquire(op, number, &slot, phase)?;
                slot.acquired = action == Action::Acquire;
                slot.closed = false;
                if action == Action::Close {
                    slot = Slot { given: slot.given + 1, given_by: Some(op), closed: true, ..slot };
                }
            }
            Action::Commit if slot.acquired => {
                slot = Slot { given: slot.given + 1, given_by: Some(op), acquired: false, ..slot };
            }
            Action::Wait(reader) => {
                self.check_wait(op, number, &slot, reader, phase)?;
                slot.waited[reader] = true;
            }
            Action::Release(reader) if slot.waited.get(reader) == Some(&true) => {
                slot.waited[reader] = self.ring.one_shot;
                slot.released[reader] += u64::from(!self.ring.one_shot);
            }
            Action::IsClosed => {
                let known = self.closed.entry(op).or_insert(Some(slot.closed));
                *known = known.filter(|&closed| closed == slot.closed);
                let result = self.module.result(op);
                self.set(result, Some(-i64::from(slot.closed)));
                return Ok(());
            }
            Action::Commit => {
                let text =
                    format!("slot {number} of {} is committed, but has not been acquired", self.name());
                return Err(self.wrong(op, text, None));
            }
            Action::Release(reader) => {
                let reader = rings::reader_shown(self.module, self.ring.create, reader);
                let text = format!(
                    "{reader} of {} releases slot {number}, for which it has not waited",
                    self.name()
                );
                return Err(self.wrong(op, text, None));
            }
        }
        self.slots[number as usize] = slot;
        Ok(())
    }

    fn name(&self) -> String {
        rings::shown(self.module, self.ring.create)
    }

    fn check_acquire(&self, op: Op, number: i64, slot: &Slot, phase: Option<i64>) -> Result<(), End> {
        let name = self.name();
        if slot.acquired {
            let text =
                format!("slot {number} of {name} is acquired, but was not committed since it was before");
            return Err(self.wrong(op, text, None));
        }
        if self.ring.one_shot && slot.given > 0 {
            let text = format!("slot {number} of {name} is filled a second time, but the pipe is one_shot");
            return Err(self.wrong(op, text, slot.given_by));
        }
        self.check_round(op, number, slot.given, phase, "")?;
        match slot.released.iter().position(|&released| released < slot.given) {
            None => Ok(()),
            Some(reader) => {
                let text = format!(
                    "acquire can never succeed: slot {number} of {name} is not released by {} before it is acquired again",
                    rings::reader_shown(self.module, self.ring.create, reader)
                );
                Err(self.wrong(op, text, slot.given_by))
            }
        }
    }

    fn check_wait(
        &self,
        op: Op,
        number: i64,
        slot: &Slot,
        reader: usize,
        phase: Option<i64>,
    ) -> Result<(), End> {
        let Some(&released) = slot.released.get(reader) else { return Err(End::Unknown) };
        let shown = rings::reader_shown(self.module, self.ring.create, reader);
        self.check_round(op, number, released, phase, &format!(" for {shown}"))?;
        if slot.given > released {
            return Ok(());
        }
        let text = format!(
            "wait can never succeed: slot {number} of {} is not committed before {shown} waits for it",
            self.name()
        );
        Err(self.wrong(op, text, None))
    }

    /// An end goes through each round of a slot.
    fn check_round(&self, op: Op, number: i64, round: u64, phase: Option<i64>, who: &str) -> Result<(), End> {
        if phase.is_none_or(|phase| phase as u64 & 1 == round & 1) {
            return Ok(());
        }
        let next = number as u64 + round * u64::from(self.ring.slots);
        let text = format!(
            "chunks of {} are out of order: the next one of slot {number}{who} is number {next}, not a round before or after it",
            self.name()
        );
        Err(self.wrong(op, text, None))
    }

    fn wrong(&self, op: Op, text: String, committed: Option<Op>) -> End {
        let m = self.module;
        let mut error = Diagnostic::at(m, m.op_loc(op), text);
        if let Some(span) = committed.and_then(|op| Diagnostic::at(m, m.op_loc(op), "").span) {
            error = error.note(format!("the slot was committed at {}:{}", span.file, span.line));
        }
        if ttg::RingAcquire::cast(m, op).is_some() {
            let slots = self.ring.slots;
            error = error.note(format!(
                "the writer and the readers are the same threads, and {} has {slots} slot{}",
                self.name(),
                if slots == 1 { "" } else { "s" }
            ));
        }
        End::Wrong(Box::new(error))
    }
}
