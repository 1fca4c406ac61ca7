//! Reads next to what uses them.
//!
//! Operands are read from shared memory whole before the arithmetic begins. Where that is a long unrolled product, all of them
//! would be live at once, and `ptxas` keeps the order: it runs out of registers.
//!
//! ```text
//! before                        after
//! a0 = load; a1 = load          a0 = load; b0 = load; c = fma a0, b0, c
//! b0 = load; b1 = load          a1 = load; b1 = load; c = fma a1, b1, c
//! c = fma a0, b0, c
//! c = fma a1, b1, c
//! ```

use rustc_hash::FxHashSet;

use crate::builder::Builder;
use crate::program::{Def, Effect, Function, Value};

impl Builder<'_> {
    /// Where the current block ends now, for [`Builder::sink_reads`].
    pub fn mark(&self) -> usize {
        self.func.blocks[self.at.0 as usize].insts.len()
    }

    /// Puts what the instructions since `mark` need, as far as nothing was written since it was read, right before the first of them
    /// that needs it. The instructions since `mark` keep their order; they must be of the current block and write nothing.
    pub fn sink_reads(&mut self, mark: usize) {
        let insts = &self.func.insts;
        let block = &mut self.func.blocks[self.at.0 as usize].insts;
        let writes = |&i: &u32| insts[i as usize].effect == Effect::Write;
        if block[mark..].iter().any(writes) {
            return;
        }
        let start = block[..mark].iter().rposition(writes).map_or(0, |at| at + 1);
        let region = block.split_off(start);
        let (before, users) = region.split_at(mark - start);

        // What is not put yet, by instruction.
        let mut waiting: FxHashSet<u32> = region.iter().copied().collect();
        let mut wanted: FxHashSet<u32> = users.iter().copied().collect();
        let mut open: Vec<u32> = users.to_vec();
        while let Some(i) = open.pop() {
            open.extend(self.func.needs(i).filter(|from| waiting.contains(from) && wanted.insert(*from)));
        }
        let mut order = Vec::with_capacity(region.len());
        for &i in before.iter().filter(|i| !wanted.contains(i)).chain(users) {
            self.func.put(i, &mut waiting, &mut order);
        }
        self.func.blocks[self.at.0 as usize].insts.extend(order);
    }
}

impl Function {
    /// The instructions whose results an instruction uses.
    pub(crate) fn needs(&self, i: u32) -> impl DoubleEndedIterator<Item = u32> {
        self.insts[i as usize].args.iter().filter_map(|&a| self.instruction_of(a))
    }

    /// The instruction that gives a value.
    pub(crate) fn instruction_of(&self, v: Value) -> Option<u32> {
        match self.values[v.0 as usize].def {
            Def::Inst(i, _) => Some(i),
            _ => None,
        }
    }

    /// Puts an instruction that waits at the end of `order`, behind what it needs and waits, too.
    pub(crate) fn put(&self, root: u32, waiting: &mut FxHashSet<u32>, order: &mut Vec<u32>) {
        let mut open = vec![root];
        while let Some(&i) = open.last() {
            let before = open.len();
            if waiting.contains(&i) {
                open.extend(self.needs(i).rev().filter(|from| waiting.contains(from)));
            }
            if open.len() > before {
                continue;
            }
            open.pop();
            if waiting.remove(&i) {
                order.push(i);
            }
        }
    }
}
