//! What one thread issues in a row: copies of blocks by TMA, and what their mbarriers are to expect.
//!
//! Under a predicate each instruction takes the time of every warp of the scope, and `ptxas` makes some ten more of a copy, which bring its tensor
//! map and coordinates into uniform registers: an eighth of an iteration of attention. So the other warps branch around them:
//!
//! ```text
//! ttng.barrier_expect %full, 8192, %more              { @!first bra.uni issued;      // first: %more, in the first warp
//! ttg.barrier                                    ⇒    @elected mbarrier.arrive.expect_tx …
//! ttng.async_tma_copy_global_to_local … %more         @elected cp.async.bulk.tensor …
//!                                                     issued: }
//! ```
//!
//! A warp goes one way as a whole, and `ptxas` learns it from `.uni`: without, registers of the loop are no longer uniform and lanes are
//! gathered again behind the branch. LLVM has no such branches, so that all is one piece of inline PTX, made where the last of the operations stands.

use tilewright_ir as ir;
use tilewright_ir::dialect::{ttg, ttng};
use tilewright_llvm::{BinOp, Effect};

use super::access::Asm;
use super::{Lower, Result};

/// Instructions of operations whose last one is still to come.
pub(super) struct Issue {
    asm: Asm,
    /// The predicate of the thread that issues them.
    thread: String,
    /// Whether other warps branch around them.
    branches: bool,
    /// Whether a copy is among them.
    copies: bool,
}

impl Lower<'_, '_> {
    /// Issues the instructions of `op` by one thread of the scope where `pred` holds: `write` adds their text, each under the predicate that it gets.
    pub fn issue(&mut self, op: ir::Op, pred: ir::Value, write: impl FnOnce(&mut Asm, &str)) -> Result<()> {
        let mut issue = match self.hooks.issue.take() {
            Some(begun) => begun,
            None => self.begin_issue(pred)?,
        };
        issue.copies |= ttng::AsyncTmaCopyGlobalToLocal::cast(self.m, op).is_some();
        write(&mut issue.asm, &issue.thread);
        if self.issue_goes_on(op, pred, issue.copies) {
            self.hooks.issue = Some(issue);
            return Ok(());
        }
        if issue.branches {
            issue.asm.text.push_str("issued:\n}");
        }
        self.b.asm(issue.asm.text.trim_end(), &issue.asm.constraints, Effect::Write, &[], &issue.asm.args);
        Ok(())
    }

    fn begin_issue(&mut self, pred: ir::Value) -> Result<Issue> {
        let mut asm = Asm::default();
        let branches = self.num_warps > 1;
        let thread = if branches {
            let first = self.first_warp();
            let pred = self.scalar(pred)?;
            let first = self.b.bin(BinOp::And, first, pred);
            let first = asm.arg(first, 'b');
            asm.text = format!("{{\n@!{first} bra.uni issued;\n");
            self.elected_lane()
        } else {
            self.elected_thread_where(Some(pred))?
        };
        let thread = asm.arg(thread, 'b');
        Ok(Issue { asm, thread, branches, copies: false })
    }

    /// Whether the next operation that does anything is issued with this one. An expectation may wait for a barrier in front of its copy: no phase ends before it.
    fn issue_goes_on(&self, op: ir::Op, pred: ir::Value, copies: bool) -> bool {
        let m = self.m;
        let mut at = m.next_op(op);
        while let Some(next) = at {
            if let Some(expect) = ttng::BarrierExpect::cast(m, next) {
                return expect.pred(m) == pred;
            }
            if let Some(copy) = ttng::AsyncTmaCopyGlobalToLocal::cast(m, next) {
                return copy.pred(m) == pred;
            }
            // Addresses and indices; nothing long stands between two that are issued together.
            let scalars = m.results(next).iter().all(|&v| !m.is_tensor(m.value_type(v)));
            let passes = m.has_trait(next, ir::Trait::Pure) && m.regions(next).is_empty() && scalars;
            if !passes && (copies || ttg::Barrier::cast(m, next).is_none()) {
                return false;
            }
            at = m.next_op(next);
        }
        false
    }
}
