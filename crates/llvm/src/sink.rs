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

use crate::builder::Builder;
use crate::program::{Def, Effect};

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
        let mut waiting: rustc_hash::FxHashSet<u32> = region.iter().copied().collect();
        let needs = |i: u32| {
            insts[i as usize].args.iter().filter_map(|a| match self.func.values[a.0 as usize].def {
                Def::Inst(from, _) => Some(from),
                _ => None,
            })
        };
        let mut wanted: rustc_hash::FxHashSet<u32> = users.iter().copied().collect();
        let mut open: Vec<u32> = users.to_vec();
        while let Some(i) = open.pop() {
            open.extend(needs(i).filter(|from| waiting.contains(from) && wanted.insert(*from)));
        }
        let mut put = |root: u32| {
            let mut open = vec![root];
            while let Some(&i) = open.last() {
                if !waiting.contains(&i) {
                    open.pop();
                    continue;
                }
                let missing: Vec<u32> = needs(i).filter(|from| waiting.contains(from)).collect();
                if missing.is_empty() {
                    waiting.remove(&i);
                    block.push(i);
                    open.pop();
                } else {
                    open.extend(missing.into_iter().rev());
                }
            }
        };
        before.iter().filter(|i| !wanted.contains(i)).for_each(|&i| put(i));
        users.iter().for_each(|&i| put(i));
    }
}
