//! Races between ranks: accesses of two ranks to one place, at least one a write, with nothing that puts them in order.
//!
//! Each program has a *clock*: up to which of its stamps it knows every other program. A program's own stamp counts what it has told: an
//! access is recorded with the stamp of its time, and is ordered before what another program does when that one's clock has come to the
//! stamp. Clocks travel by messages (PTX ISA, "Causality order"): what releases leaves its program's clock at the place that it writes, what
//! acquires takes what is there, and at a barrier all take what all have left. Who waits until a signal is at least a number relies on what made
//! it so, not on what came after and happened to be there when it looked: it takes the clock of that step alone. Atomic accesses of two sides
//! race with nobody, where both reach other ranks.
//!
//! Programs of one rank are not held against each other, but tell each other, too. Of the simulator's rules (`crates/ptxsim`, `order.rs`,
//! `shadow/global.rs`) these are those that a program of tiles can break.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::meeting::Group;
use crate::memory::{Memory, Word};

/// Up to which stamp each other program is known.
type Clock = FxHashMap<u64, u32>;

/// What has been told, by place: an address, for the programs of one rank or for all.
type Told = FxHashMap<(Option<u64>, u64), Steps>;

/// What has been told at a place: the last values that it was made, in their order, each with the clocks of all until then.
#[derive(Debug, Default)]
struct Steps(VecDeque<(i64, Arc<Clock>)>);

/// So many steps are kept of a place.
const STEPS: usize = 64;

impl Steps {
    /// The place has been made `after`, by one who tells a clock or nothing.
    fn change(&mut self, before: i64, after: i64, clock: Option<&Arc<Clock>>) {
        let last = self.0.back().map(|(value, there)| (*value, there.clone()));
        let all = match (&last, clock) {
            (Some((_, there)), Some(clock)) if !covers(clock, there) => {
                let mut all = Clock::clone(there);
                join(&mut all, clock);
                Arc::new(all)
            }
            (_, Some(clock)) => clock.clone(),
            (Some((_, there)), None) => there.clone(),
            (None, None) => return,
        };
        // Of what only grows, and by telling, it is known which step a wait relies on: not where one takes what another has told.
        if clock.is_none() || after < before || last.is_some_and(|(value, _)| value != before) {
            self.0.clear();
        }
        if self.0.len() == STEPS {
            self.0.pop_front();
        }
        self.0.push_back((after, all));
    }

    /// What who waits for a value hears: the step that brought it, the last time that it was missing before. Without one, all.
    fn heard(&self, wanted: Option<i64>) -> Option<&Arc<Clock>> {
        let missing = wanted.and_then(|wanted| self.0.iter().rposition(|&(value, _)| value < wanted));
        let brought = wanted.and_then(|_| self.0.get(missing.map_or(0, |at| at + 1)));
        brought.or(self.0.back()).map(|(_, clock)| clock)
    }
}

/// Bytes that one entry of the table of accesses stands for.
const PAGE: u64 = 4096;
/// Parts of that table, each with a lock of its own.
const SHARDS: u64 = 64;

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Whether it writes.
    pub write: bool,
    /// Whether it is atomic, and reaches other ranks: others of this kind don't race with it.
    pub strong: bool,
}

/// What an atomic access tells, and hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Message {
    /// Tells what the program has done.
    pub release: bool,
    /// Hears what others have told.
    pub acquire: bool,
    /// Goes to other ranks, too.
    pub system: bool,
}

/// An access in the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The program's number in the launch.
    pub program: u64,
    /// The instruction.
    pub pc: usize,
    /// What it did.
    pub kind: Kind,
    stamp: u32,
}

/// Bytes that are accessed with no order after an access of another rank.
#[derive(Debug, Clone)]
pub struct Found {
    /// Which.
    pub bytes: Range<u64>,
    /// The other access.
    pub with: Access,
}

/// Who has written a place, and who has read it: those that a later access may not be ordered behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Cell {
    writes: Vec<Access>,
    reads: Vec<Access>,
}

/// The bytes of a page in stretches that were accessed alike: where each begins, up to the next one.
#[derive(Debug)]
struct Page(Vec<(u64, Cell)>);

impl Page {
    /// Makes a stretch begin at a byte; its index.
    fn split(&mut self, at: u64) -> usize {
        match self.0.binary_search_by_key(&at, |stretch| stretch.0) {
            Ok(index) => index,
            Err(index) => {
                let cell = self.0[index - 1].1.clone();
                self.0.insert(index, (at, cell));
                index
            }
        }
    }

    /// Puts stretches together again, of these and those beside them, that have become alike.
    fn join(&mut self, first: usize, last: usize) {
        let mut at = last.min(self.0.len() - 1);
        while at >= first.max(1) {
            if self.0[at].1 == self.0[at - 1].1 {
                self.0.remove(at);
            }
            at -= 1;
        }
    }
}

/// What the programs of a launch of several ranks have done and told.
#[derive(Debug)]
pub struct Races {
    per_rank: u64,
    /// The launch's memory. What a program has of its own nobody else reaches.
    memory: Memory,
    clocks: Vec<Mutex<(u32, Clock)>>,
    pages: Vec<Mutex<FxHashMap<u64, Page>>>,
    /// What has been told at a place, to the programs of one rank or to all.
    told: Mutex<Told>,
    met: Mutex<FxHashMap<Group, Clock>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn join(into: &mut Clock, other: &Clock) {
    for (&program, &stamp) in other {
        let known = into.entry(program).or_default();
        *known = stamp.max(*known);
    }
}

/// Whether a clock has all that another one has.
fn covers(clock: &Clock, other: &Clock) -> bool {
    other.iter().all(|(program, &stamp)| clock.get(program).is_some_and(|&known| known >= stamp))
}

impl Races {
    /// For a launch of `total` programs, of which each rank has so many.
    pub fn new(total: u64, per_rank: u64, memory: &Memory) -> Races {
        Races {
            per_rank,
            memory: memory.clone(),
            clocks: (0..total).map(|_| Mutex::new((1, Clock::default()))).collect(),
            pages: (0..SHARDS).map(|_| Mutex::default()).collect(),
            told: Mutex::default(),
            met: Mutex::default(),
        }
    }

    /// Which rank's a program is.
    pub fn rank(&self, program: u64) -> u64 {
        program / self.per_rank
    }

    /// A program's number in its rank's grid.
    pub fn in_rank(&self, program: u64) -> u64 {
        program % self.per_rank
    }

    /// What a program knows, itself included; what it does from here on it has yet to tell.
    fn tell(&self, program: u64) -> Clock {
        let mut own = lock(&self.clocks[program as usize]);
        let mut clock = own.1.clone();
        clock.insert(program, own.0);
        own.0 += 1;
        clock
    }

    fn hear(&self, program: u64, clock: &Clock) {
        join(&mut lock(&self.clocks[program as usize]).1, clock);
    }

    /// An atomic access to these places, integers of so many bytes: `step` makes it, while nobody else changes what is told.
    pub fn change<T>(
        &self,
        program: u64,
        (addresses, size): (&[u64], u64),
        message: Message,
        step: impl FnOnce() -> T,
    ) -> T {
        let clock = message.release.then(|| Arc::new(self.tell(program)));
        let mut told = lock(&self.told);
        let before: Vec<i64> = addresses.iter().map(|&at| self.value(at, size)).collect();
        let result = step();
        for (&address, before) in addresses.iter().zip(before) {
            let after = self.value(address, size);
            for place in [(Some(self.rank(program)), address), (None, address)] {
                let tells = clock.as_ref().filter(|_| place.0.is_some() || message.system);
                if tells.is_some() {
                    told.entry(place).or_default().change(before, after, tells);
                } else if let Some(steps) = told.get_mut(&place) {
                    steps.change(before, after, None);
                }
            }
        }
        result
    }

    /// What is at a place, as far as one can wait for it.
    fn value(&self, address: u64, size: u64) -> i64 {
        if !address.is_multiple_of(size) || !self.memory.is_shared(address, size) {
            return 0;
        }
        // SAFETY: aligned, and inside an allocation.
        unsafe {
            match size {
                4 => i64::from(u32::read(address) as i32),
                8 => u64::read(address) as i64,
                _ => 0,
            }
        }
    }

    /// Behind an atomic access to places that acquires, or a wait until each is at least a number.
    pub fn acquire(&self, program: u64, places: impl Iterator<Item = (u64, Option<i64>)>, message: Message) {
        let mut heard: Vec<Arc<Clock>> = Vec::new();
        let told = lock(&self.told);
        for (address, wanted) in places {
            let keys = [Some((Some(self.rank(program)), address)), message.system.then_some((None, address))];
            for clock in keys.iter().flatten().filter_map(|key| told.get(key)?.heard(wanted)) {
                // Mostly one message over many places.
                if !heard.iter().any(|h| Arc::ptr_eq(h, clock)) {
                    heard.push(clock.clone());
                }
            }
        }
        drop(told);
        heard.iter().for_each(|clock| self.hear(program, clock));
    }

    /// A program comes to a barrier.
    pub fn come(&self, program: u64, group: Group) {
        let clock = self.tell(program);
        join(lock(&self.met).entry(group).or_default(), &clock);
    }

    /// It goes on behind it.
    pub fn go_on(&self, program: u64, group: Group) {
        let clock = lock(&self.met).get(&group).cloned().unwrap_or_default();
        self.hear(program, &clock);
    }

    /// A program accesses `count` elements of `size` bytes, `step` bytes apart. What it races with: bytes, and the access of another rank.
    pub fn access(&self, by: (u64, usize), kind: Kind, run: (u64, i64, usize), size: u64) -> Vec<Found> {
        let (program, pc) = by;
        let (address, step, count) = run;
        let (stamp, clock) = {
            let own = lock(&self.clocks[program as usize]);
            (own.0, own.1.clone())
        };
        let mine = Access { program, pc, kind, stamp };
        let mut found = Vec::new();
        if step == size as i64 {
            self.stretch(mine, &clock, address..address + size * count as u64, &mut found);
            return found;
        }
        for i in 0..count {
            let at = address.wrapping_add((step * i as i64) as u64);
            self.stretch(mine, &clock, at..at.saturating_add(size), &mut found);
        }
        found
    }

    /// The same of consecutive bytes.
    fn stretch(&self, mine: Access, clock: &Clock, bytes: Range<u64>, found: &mut Vec<Found>) {
        if !self.memory.is_shared(bytes.start, bytes.end - bytes.start) {
            return;
        }
        let mut at = bytes.start;
        while at < bytes.end {
            let number = at / PAGE;
            let base = number * PAGE;
            let end = bytes.end.min(base + PAGE);
            let mut pages = lock(&self.pages[(number % SHARDS) as usize]);
            let page = pages.entry(number).or_insert_with(|| Page(vec![(0, Cell::default())]));
            let first = page.split(at - base);
            let last = if end < base + PAGE { page.split(end - base) } else { page.0.len() };
            for k in first..last {
                let until = page.0.get(k + 1).map_or(PAGE, |next| next.0);
                let (begin, cell) = &mut page.0[k];
                let with = self.record(cell, mine, clock);
                found.extend(with.map(|with| Found { bytes: base + *begin..base + until, with }));
            }
            page.join(first, last);
            at = end;
        }
    }

    /// Records an access, and gives one of another rank with which it has no order.
    fn record(&self, cell: &mut Cell, mine: Access, clock: &Clock) -> Option<Access> {
        let known = |a: &Access| {
            a.program == mine.program || clock.get(&a.program).is_some_and(|&known| known >= a.stamp)
        };
        let races = |a: &&Access| {
            self.rank(a.program) != self.rank(mine.program)
                && !known(a)
                && !(a.kind.strong && mine.kind.strong)
        };
        let with = cell.writes.iter().find(races).copied();
        let with = with.or_else(|| cell.reads.iter().filter(|_| mine.kind.write).find(races).copied());
        // Who is ordered behind this access is behind what this one is ordered behind, too.
        if mine.kind.write {
            cell.writes.retain(|a| !known(a));
            cell.reads.retain(|a| !known(a));
            cell.writes.push(mine);
        } else {
            cell.reads.retain(|a| !known(a));
            cell.reads.push(mine);
        }
        with
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Kind = Kind { write: false, strong: false };
    const WRITE: Kind = Kind { write: true, strong: false };
    const ATOMIC: Kind = Kind { write: true, strong: true };
    const SENT: Message = Message { release: true, acquire: false, system: true };
    const TAKEN: Message = Message { release: false, acquire: true, system: true };

    /// Four programs, of two ranks.
    fn races() -> Races {
        let mut memory = Memory::new();
        // SAFETY: only recorded, never accessed.
        unsafe { memory.register(4096, 4096, "x", true) };
        Races::new(4, 2, &memory)
    }

    /// Four elements; of the bytes that race, from which to which, and with which program.
    fn at(races: &Races, program: u64, kind: Kind, address: u64, size: u64) -> Vec<(u64, u64, u64)> {
        let found = races.access((program, 0), kind, (address, size as i64, 4), size);
        found.into_iter().map(|f| (f.bytes.start, f.bytes.end, f.with.program)).collect()
    }

    #[test]
    fn two_ranks_race_and_two_programs_of_one_do_not() {
        let r = races();
        assert!(at(&r, 0, WRITE, 4096, 4).is_empty());
        assert!(at(&r, 1, READ, 4096, 4).is_empty());
        assert_eq!(at(&r, 2, READ, 4096, 4), [(4096, 4112, 0)]);
        assert_eq!(at(&r, 3, WRITE, 4104, 4), [(4104, 4112, 0)]);
        // Reads don't race, nor what nobody else reaches.
        assert!(at(&r, 0, READ, 5000, 4).is_empty() && at(&r, 3, READ, 5000, 4).is_empty());
        assert!(at(&r, 0, WRITE, 64, 4).is_empty() && at(&r, 3, WRITE, 64, 4).is_empty());
    }

    #[test]
    fn smaller_places_are_told_apart() {
        let r = races();
        assert!(at(&r, 0, WRITE, 4096, 8).is_empty());
        assert!(at(&r, 2, WRITE, 4128, 2).is_empty());
        assert_eq!(at(&r, 2, WRITE, 4126, 2), [(4126, 4128, 0)]);
        // Every other element.
        let found = r.access((3, 0), READ, (4096, 16, 4), 8);
        assert_eq!(found.len(), 2);
    }

    /// An atomic access that tells something, outside of the memory that is registered.
    fn send(races: &Races, program: u64, message: Message) {
        races.change(program, (&[9000], 4), message, || ());
    }

    #[test]
    fn a_wait_hears_what_it_relies_on() {
        let mut cell = Box::new(0_u64);
        let signal = &raw mut *cell as u64;
        let mut memory = Memory::new();
        // SAFETY: it stays until the end of the test; the other is only recorded.
        unsafe {
            memory.register(signal, 8, "signal", true);
            memory.register(4096, 4096, "x", true);
        }
        let r = Races::new(4, 2, &memory);
        // SAFETY: as above.
        let set = |value: u64| unsafe { u64::write(signal, value) };
        let tell = |place: u64, value: u64| {
            at(&r, 0, WRITE, place, 4);
            r.change(0, (&[signal], 8), SENT, || set(value));
        };
        let hears = |program: u64, wanted: i64, place: u64| {
            r.acquire(program, [(signal, Some(wanted))].into_iter(), TAKEN);
            at(&r, program, READ, place, 4).is_empty()
        };
        tell(4096, 1);
        tell(4112, 2);
        tell(4128, 3);
        // Three is there, but who waits for two has not waited for what came with three.
        assert!(hears(2, 2, 4096) && hears(2, 2, 4112) && !hears(2, 2, 4128));
        assert!(hears(2, 3, 4128));
        // Taken back, and told again: what brought it the last time.
        tell(4144, 1);
        tell(4160, 2);
        assert!(hears(3, 2, 4144) && hears(3, 2, 4160));
        // One takes one off: both that have told are behind it.
        tell(4208, 3);
        r.change(2, (&[signal], 8), TAKEN, || set(2));
        assert!(hears(2, 1, 4208));
        // One who tells nothing has changed it meanwhile: all that was told.
        set(0);
        tell(4176, 1);
        tell(4192, 2);
        assert!(hears(2, 1, 4160) && hears(2, 1, 4176) && !hears(2, 1, 4192));
    }

    #[test]
    fn a_message_orders() {
        let r = races();
        at(&r, 0, WRITE, 4096, 4);
        send(&r, 0, SENT);
        at(&r, 0, WRITE, 4112, 4);
        r.acquire(2, [(9000, None)].into_iter(), TAKEN);
        assert!(at(&r, 2, READ, 4096, 4).is_empty());
        // What came behind the message it does not say, nor to others.
        assert_eq!(at(&r, 2, READ, 4112, 4), [(4112, 4128, 0)]);
        assert_eq!(at(&r, 3, READ, 4096, 4), [(4096, 4112, 0)]);
    }

    #[test]
    fn what_was_heard_is_told_on() {
        let r = races();
        at(&r, 0, WRITE, 4096, 4);
        send(&r, 0, SENT);
        r.acquire(2, [(9000, None)].into_iter(), TAKEN);
        for program in [2, 3] {
            r.come(program, (0, 1));
        }
        r.go_on(3, (0, 1));
        assert!(at(&r, 3, WRITE, 4096, 4).is_empty());
    }

    #[test]
    fn a_message_of_a_lesser_scope_stays_in_its_rank() {
        let r = races();
        at(&r, 0, WRITE, 4096, 4);
        send(&r, 0, Message { system: false, ..SENT });
        r.acquire(2, [(9000, None)].into_iter(), TAKEN);
        assert_eq!(at(&r, 2, READ, 4096, 4), [(4096, 4112, 0)]);
    }

    #[test]
    fn atomics_race_with_plain_accesses_alone() {
        let r = races();
        assert!(at(&r, 0, ATOMIC, 4096, 4).is_empty() && at(&r, 2, ATOMIC, 4096, 4).is_empty());
        assert_eq!(at(&r, 3, READ, 4096, 4), [(4096, 4112, 0)]);
        assert_eq!(at(&r, 1, WRITE, 4096, 4), [(4096, 4112, 2)]);
    }
}
