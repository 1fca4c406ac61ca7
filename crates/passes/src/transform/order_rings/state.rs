//! The state of a ring in registers, with a check where its ends would wait.
//!
//! A bit for each slot says how often, as a parity, it has been given to the readers; so does one for each reader of how often the reader has
//! given it back. A slot is free for the writer where all parities are that of its round, and full for a reader whose own differs from the
//! writer's. The words go through loops and branches in program order, like variables.
//!
//! ```text
//! ttg.ring_acquire %ring[%slot], %phase     %g = (%given >> %slot) & 1 ; %r = (%released >> %slot) & 1
//!                                       =>  tt.assert (%g == %phase) & (%r == %phase), "…"
//! ttg.ring_commit %ring[%slot]              %given1 = %given ^ (1 << %slot)
//! ```

use tilewright_ir::dialect::{arith, scf, tt, ttg};
use tilewright_ir::flow;
use tilewright_ir::{Block, Builder, Diagnostic, Module, Op, Type, Value};

use super::{Action, Ring};
use crate::analysis::rings;

/// Slots that have a bit.
const MOST_SLOTS: u32 = 64;

/// The words: slots given, slots closed, then for each reader those that it has released.
type Words = Vec<Value>;

const GIVEN: usize = 0;
const CLOSED: usize = 1;
const READERS: usize = 2;

/// Replaces the operations on a ring by checks.
///
/// # Errors
/// A ring of too many slots, or under what control flow it can't be followed.
pub(super) fn check(module: &mut Module, ring: &Ring) -> Result<(), Diagnostic> {
    if ring.slots > MOST_SLOTS {
        let what = format!(
            "a pipe of {} slots of which writer and readers are the same threads in an order that is not known at compile time",
            ring.slots
        );
        return Err(Diagnostic::unsupported(module, module.op_loc(ring.create.0), what));
    }
    let word = if ring.slots > 32 { module.int_type(64) } else { Type::I32 };
    let mut b = Builder::after(module, ring.create.0);
    let zero = b.int(0, word);
    let mut state = State { ring, word };
    let following: Vec<Op> =
        std::iter::successors(module.next_op(ring.create.0), |&op| module.next_op(op)).collect();
    state.through(module, &following, vec![zero; READERS + ring.readers]).map(drop)
}

struct State<'a> {
    ring: &'a Ring,
    word: Type,
}

impl State<'_> {
    /// Carries the words through operations, and gives them as they are behind these.
    fn through(&mut self, module: &mut Module, ops: &[Op], mut words: Words) -> Result<Words, Diagnostic> {
        for &op in ops {
            if let Some(action) = self.ring.action(module, op) {
                self.act(module, op, action, &mut words);
            } else if self.ring.concerns(module, op) {
                words = self.structured(module, op, words)?;
            }
        }
        Ok(words)
    }

    fn block(&mut self, module: &mut Module, block: Block, words: Words) -> Result<(), Diagnostic> {
        let inner: Vec<Op> = module.block_ops(block).collect();
        let words = self.through(module, &inner, words)?;
        let end = *inner.last().expect("a block has an end");
        for w in words {
            module.push_operand(end, w);
        }
        Ok(())
    }

    fn results(&self, module: &mut Module, op: Op, n: usize) -> Words {
        (0..n).map(|_| module.add_result(op, self.word)).collect()
    }

    fn structured(&mut self, module: &mut Module, op: Op, words: Words) -> Result<Words, Diagnostic> {
        let n = words.len();
        if let Some(branch) = scf::If::cast(module, op) {
            for region in [branch.then_region(module), branch.else_region(module)] {
                let block = flow::branch_block(module, region);
                self.block(module, block, words.clone())?;
            }
        } else if let Some(l) = scf::For::cast(module, op) {
            let body = module.region_block(l.body(module));
            let inside = self.enter(module, op, body, &words);
            self.block(module, body, inside)?;
        } else if let Some(l) = scf::While::cast(module, op) {
            let (before, after) =
                (module.region_block(l.before(module)), module.region_block(l.after(module)));
            let inside = self.enter(module, op, before, &words);
            self.block(module, before, inside)?;
            let inside = (0..n).map(|_| module.add_block_arg(after, self.word)).collect();
            self.block(module, after, inside)?;
        } else if let Some(w) = ttg::WarpSpecialize::cast(module, op) {
            let default = module.region_block(w.default_region(module));
            if !module.block_ops(default).any(|op| self.ring.concerns(module, op)) {
                self.partition(module, w)?;
                return Ok(words);
            }
            self.block(module, default, words)?;
        } else {
            let what = format!("a pipe inside of `{}`", module.op_name(op));
            return Err(Diagnostic::unsupported(module, module.op_loc(op), what));
        }
        Ok(self.results(module, op, n))
    }

    /// Carries the words through the partition that uses the ring, which nobody has used before.
    fn partition(&mut self, module: &mut Module, w: ttg::WarpSpecialize) -> Result<(), Diagnostic> {
        for region in w.partitions(module).to_vec() {
            let block = module.region_block(region);
            let inner: Vec<Op> = module.block_ops(block).collect();
            if inner.iter().any(|&op| self.ring.concerns(module, op)) {
                let zero = Builder::before(module, inner[0]).int(0, self.word);
                self.through(module, &inner, vec![zero; READERS + self.ring.readers])?;
            }
        }
        Ok(())
    }

    /// Hands the words to a loop; gives what its block has for them.
    fn enter(&self, module: &mut Module, op: Op, block: Block, words: &Words) -> Words {
        let hand = |&w: &Value| {
            module.push_operand(op, w);
            module.add_block_arg(block, self.word)
        };
        words.iter().map(hand).collect()
    }

    fn act(&mut self, module: &mut Module, op: Op, action: Action, words: &mut Words) {
        let (slot, phase) = Ring::position(module, op);
        let name = rings::shown(module, self.ring.create);
        let text = match action {
            Action::Acquire | Action::Close => {
                format!(
                    "deadlock: the writer of {name} waits for a slot that its own threads have not released"
                )
            }
            Action::Wait(reader) => format!(
                "deadlock: {} of {name} waits for a slot that its own threads have not committed",
                rings::reader_shown(module, self.ring.create, reader)
            ),
            _ => String::new(),
        };
        let mut b = Builder::before(module, op);
        let slot = match self.word {
            Type::I32 => slot,
            wide => arith::Extui::build(&mut b, slot, wide).out(b.module),
        };
        let one = b.int(1, self.word);
        let bit = arith::Shli::build(&mut b, one, slot).result(b.module);
        let phase = phase.map(|phase| self.is_one(&mut b, phase));
        match action {
            Action::Acquire | Action::Close => {
                let round = self.has(&mut b, words[GIVEN], bit);
                let mut free = same(&mut b, phase.unwrap_or(round), round);
                if self.ring.one_shot {
                    let no = b.int(0, Type::I1);
                    free = same(&mut b, round, no);
                } else {
                    for reader in &words[READERS..] {
                        let released = self.has(&mut b, *reader, bit);
                        let is_released = same(&mut b, released, round);
                        free = arith::Andi::build(&mut b, free, is_released).result(b.module);
                    }
                }
                tt::Assert::build(&mut b, free, text);
                let minus = b.int(-1, self.word);
                let others = arith::Xori::build(&mut b, bit, minus).result(b.module);
                words[CLOSED] = arith::Andi::build(&mut b, words[CLOSED], others).result(b.module);
                if action == Action::Close {
                    words[GIVEN] = arith::Xori::build(&mut b, words[GIVEN], bit).result(b.module);
                    words[CLOSED] = arith::Ori::build(&mut b, words[CLOSED], bit).result(b.module);
                }
            }
            Action::Commit => words[GIVEN] = arith::Xori::build(&mut b, words[GIVEN], bit).result(b.module),
            Action::Wait(reader) => {
                let given = self.has(&mut b, words[GIVEN], bit);
                let released = self.has(&mut b, words[READERS + reader], bit);
                let is_full = arith::Xori::build(&mut b, given, released).result(b.module);
                let in_turn = same(&mut b, phase.unwrap_or(released), released);
                let fits = arith::Andi::build(&mut b, is_full, in_turn).result(b.module);
                tt::Assert::build(&mut b, fits, text);
            }
            Action::Release(reader) if !self.ring.one_shot => {
                let word = &mut words[READERS + reader];
                *word = arith::Xori::build(&mut b, *word, bit).result(b.module);
            }
            Action::Release(_) => {}
            Action::IsClosed => {
                let closed = self.has(&mut b, words[CLOSED], bit);
                let result = ttg::RingIsClosed(op).closed(b.module);
                b.module.replace_all_uses(result, closed);
            }
        }
        module.erase_op(op);
    }

    /// Whether a word has a bit.
    fn has(&self, b: &mut Builder<'_>, word: Value, bit: Value) -> Value {
        let masked = arith::Andi::build(b, word, bit).result(b.module);
        let zero = b.int(0, self.word);
        arith::Cmpi::build(b, masked, zero, arith::CmpIPredicate::Ne, Type::I1).result(b.module)
    }

    fn is_one(&self, b: &mut Builder<'_>, phase: Value) -> Value {
        let zero = b.i32(0);
        arith::Cmpi::build(b, phase, zero, arith::CmpIPredicate::Ne, Type::I1).result(b.module)
    }
}

/// Whether two booleans are the same.
fn same(b: &mut Builder<'_>, x: Value, y: Value) -> Value {
    arith::Cmpi::build(b, x, y, arith::CmpIPredicate::Eq, Type::I1).result(b.module)
}
