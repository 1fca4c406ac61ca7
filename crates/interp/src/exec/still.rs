//! Where a program is while it waits for others, so that one which comes back to where it was is seen not to get anywhere
//! ([`Standstill`](tilewright_ptxsim::Standstill)).
//!
//! Memory is not looked at: each instruction notes in [`Frame::changed`] that it has changed what others see, or what isn't found in registers (buffers, mbarriers,
//! rings, messages). Stores do whatever they write; an atomic operation that finds what it leaves there, as that of a lock which somebody else has, does not.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;
use tilewright_ptxsim::Before;

use super::Frame;
use crate::tile::{Reg, Repr};

impl Frame {
    /// Whether the program, which has just paused, is back where it was, when there had been so many changes as there are now.
    pub fn is_back(&mut self, changes: u64) -> bool {
        let mut before = std::mem::take(&mut self.before);
        let back = before.unchanged(changes) && before.is_back(self.state(), || self.elements());
        self.before = before;
        back
    }

    /// Forgets where the program was.
    pub(super) fn set_out(&mut self) {
        (self.before, self.changed, self.looks) = (Before::default(), false, None);
    }

    /// The registers of the running strand, and of those that have their own.
    fn registers(&self) -> impl Iterator<Item = &Reg> {
        self.regs.iter().chain(self.others.iter().flat_map(|strand| &strand.regs))
    }

    /// A number for what decides what the program does next, but for the elements of tensors.
    fn state(&self) -> u64 {
        let mut hasher = FxHasher::default();
        (self.pc, self.strand, self.spins, self.awaited, self.time).hash(&mut hasher);
        for strand in &self.others {
            (strand.pc, strand.number, strand.spins, strand.awaited).hash(&mut hasher);
        }
        self.registers().for_each(|reg| reg.repr.hash(&mut hasher));
        hasher.finish()
    }

    /// A number for the elements of tensors.
    fn elements(&self) -> u64 {
        let mut hasher = FxHasher::default();
        for reg in self.registers().filter(|reg| reg.repr == Repr::Dense) {
            reg.buf.bytes().hash(&mut hasher);
        }
        hasher.finish()
    }
}
