//! Loops that load blocks.
//!
//! Whether messages take a matrix is known when the kernel runs. A loop is there twice then, with the decision in front of it: one where messages take all of
//! its matrices, and one that loads element by element.
//!
//! Where blocks stay whole and are added to accumulators that a loop carries, the loop ends at its top, and a DPAS of zeros follows:
//!
//! ```text
//! loop(i, sums): if i >= end goto done; …; sums += a * b; goto loop
//! done: sums += -0 * 0
//! ```
//!
//! That is for Intel's compiler. It takes apart vectors that go around a loop, and moves each of their registers in each iteration, unless one of its own
//! instructions takes them where they come out of it (inline assembly is none). -0 changes no sum.

use tilewright_ir as ir;
use tilewright_ir::dialect::{scf, tt};
use tilewright_llvm::IntPred;
use tilewright_passes::analysis::counting::Test;

use super::{Lower, Result};

impl Lower<'_, '_> {
    /// A loop that loads blocks, if it does.
    pub(super) fn versioned_loop(&mut self, f: scf::For) -> Result<bool> {
        let m = self.m;
        match self.hooks.blocks {
            Some(true) => return self.block_loop(f),
            Some(false) => return Ok(false),
            None => {}
        }
        let mut fits = self.b.bool(true);
        self.hooks.fitting.clear();
        for load in m.all_ops(f.0).into_iter().filter_map(|op| tt::DescriptorLoad::cast(m, op)) {
            if !self.is_described(load.desc(m)) {
                continue;
            }
            if let Some(transfer) = self.transfer(load)? {
                fits = self.b.and(fits, transfer.surface.fits);
                self.hooks.fitting.push(transfer.surface.fits);
            }
        }
        if self.hooks.fitting.is_empty() {
            return Ok(false);
        }
        let (here, preheader) = (self.b.block(), self.b.preheader());
        let results: Vec<ir::Value> = f.results(m).to_vec();
        let types = self.all_machine_types(&results)?;
        let [blocks, elements] = [(); 2].map(|()| self.b.create_block(here, preheader, &[]));
        let done = self.b.create_block(here, preheader, &types);
        self.b.cond_br(fits, blocks, &[], elements, &[]);
        for (block, of_blocks) in [(blocks, true), (elements, false)] {
            self.b.switch_to(block);
            self.hooks.blocks = Some(of_blocks);
            self.op = f.0;
            if !(of_blocks && self.block_loop(f)?) {
                self.scf_for(f)?;
            }
            let values = self.flatten(&results)?;
            self.b.br(done, &values);
            // The other loop has none of these.
            self.hooks.words.clear();
            self.hooks.pairs.clear();
            self.hooks.whole.clear();
            self.hooks.parts.clear();
        }
        self.hooks.blocks = None;
        self.op = f.0;
        self.b.switch_to(done);
        self.bind_params(&results, done)?;
        Ok(true)
    }

    /// A loop whose messages bring blocks: it carries the words that say where they are. Whether there are any.
    fn block_loop(&mut self, f: scf::For) -> Result<bool> {
        let m = self.m;
        let carried = self.carried_words(f)?;
        let sums = self.sums(f);
        if carried.is_empty() && sums.is_empty() {
            return Ok(false);
        }
        let [first, end, by] = [f.lower_bound(m), f.upper_bound(m), f.step(m)].map(|v| self.scalar(v));
        let (first, end, by) = (first?, end?, by?);
        let results: Vec<ir::Value> = f.results(m).to_vec();
        let body_block = m.region_block(f.body(m));
        let args = m.block_args(body_block).to_vec();
        let mut start = vec![first];
        start.extend(self.flatten(f.init(m))?);
        start.extend(carried.iter().map(|c| c.start()));
        let inner = start.len() - carried.len();
        // Where the number behind the last may not be one of its type, whether there is another iteration goes around, too.
        let (test, last) = self.end_of(f, [first, end, by]);
        if test != Test::Signed {
            start.push(self.b.icmp(IntPred::Slt, first, end));
        }
        let types: Vec<_> = start.iter().map(|&v| self.b.ty(v)).collect();
        let (before, outer) = (self.b.block(), self.b.preheader());
        let top = self.b.create_block(before, Some(before), &types);
        let body = self.b.create_block(top, Some(before), &[]);
        let exit = self.b.create_block(top, outer, &types[1..inner]);
        self.b.br(top, &start);
        self.b.switch_to(top);
        let params = self.b.params(top).to_vec();
        let again = match test {
            Test::Signed => self.b.icmp(IntPred::Slt, params[0], end),
            _ => params[params.len() - 1],
        };
        let of_carried = &params[inner..inner + carried.len()];
        self.b.cond_br(again, body, &[], exit, &params[1..inner]);
        self.b.switch_to(body);
        self.bind_params(&args, top)?;
        let (words, pairs) = (self.hooks.words.len(), self.hooks.pairs.len());
        self.enter(&carried, of_carried);
        let op = self.op;
        let yields = self.block(body_block)?.ok_or_else(|| self.error("a loop body has no terminator"))?;
        let mut next = vec![self.b.add(params[0], by)];
        next.extend(self.flatten(scf::Yield(yields).values(m))?);
        next.extend(self.leave(&carried, of_carried, pairs));
        self.op = op;
        if test != Test::Signed {
            next.push(self.goes_on(test, (params[0], next[0]), last));
        }
        self.hooks.words.truncate(words);
        self.b.br(top, &next);
        self.b.switch_to(exit);
        self.bind_params(&results, exit)?;
        for (result, dot) in sums {
            if self.takes_part(dot) {
                self.add_nothing(dot, result)?;
            }
        }
        Ok(true)
    }

    /// The results of a loop that dots are added to, with the first one of each.
    fn sums(&self, f: scf::For) -> Vec<(ir::Value, tt::Dot)> {
        let m = self.m;
        let args = &m.block_args(m.region_block(f.body(m)))[1..];
        let dot = |arg: ir::Value| {
            let used = m.uses(arg).iter().filter(|used| used.index == 2);
            used.filter_map(|used| tt::Dot::cast(m, used.op)).next()
        };
        let pairs = args.iter().zip(f.results(m));
        pairs.filter_map(|(&arg, &result)| Some((result, dot(arg)?))).collect()
    }
}
