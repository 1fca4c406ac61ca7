//! `ttg.warp_specialize`: the partitions' code, one behind the other, between the instruction that begins them and the one that waits
//! for them.
//!
//! ```text
//!        fork worker 1, default
//! worker 1:  …  end
//! default:   …
//!        join
//! ```

use tilewright_ir::dialect::ttg;

use super::{Builder, Res};
use crate::program::{Instr, V};

impl Builder<'_, '_> {
    pub(super) fn partitions(&mut self, w: ttg::WarpSpecialize) -> Res<()> {
        let m = self.m;
        let loc = self.loc;
        let captures = self.get_all(w.captures(m))?;
        let results: Vec<V> = w.results(m).iter().map(|&r| self.define(r)).collect::<Res<_>>()?;
        let fork = self.emit(Instr::Fork { workers: Vec::new(), default: 0 });
        let mut workers = Vec::new();
        for &region in w.partitions(m) {
            let block = m.region_block(region);
            workers.push(self.here());
            for (&arg, &v) in m.block_args(block).iter().zip(&captures) {
                self.env.insert(arg, v);
            }
            let start = self.here();
            self.block(block)?;
            let end = self.emit(Instr::End);
            self.strands.push((start, end));
        }
        let default = self.here();
        let end = self.block(m.region_block(w.default_region(m)))?;
        self.loc = m.op_loc(end);
        let end = ttg::WarpYield::cast(m, end).ok_or_else(|| {
            self.error("the default region has no ttg.warp_yield (the module does not verify)")
        })?;
        let values = self.get_all(end.values(m))?;
        self.moves(&values, &results)?;
        self.loc = loc;
        let join = self.emit(Instr::Join);
        self.strands.push((default, join));
        self.program.code[fork] = Instr::Fork { workers, default };
        // What is alive where they begin and used in one of them stays until all have ended.
        self.loops.push((fork, join));
        Ok(())
    }
}
