//! Long chains of arithmetic one behind the other.
//!
//! Lowering goes through a tile operation by operation, and each operation through a thread's elements. Where every element
//! takes a long chain of operations (a random number takes fifty), all elements are live at every step, and `ptxas` keeps the
//! order: dropout of four elements a thread had 50 registers, and has 28 with one element behind the other. Warps, of which there
//! are more then, fill the time that a chain waits.
//!
//! ```text
//! before                          after
//! a1 = mul a0; b1 = mul b0        a1 = mul a0; a2 = xor a1
//! a2 = xor a1; b2 = xor b1        b1 = mul b0; b2 = xor b1
//! store a2, b2                    store a2, b2
//! ```

use rustc_hash::{FxHashMap, FxHashSet};

use crate::program::{Function, Inst, Module, Op, Terminator, Value};

/// Operations that make a chain long. Sums, scans and sorts of a thread's elements are no chains of this kind: what one result takes,
/// the next one shares.
const LONG: u32 = 32;

impl Module {
    /// Puts long chains of arithmetic that share little one behind the other, each before what first needs it. What reads, writes
    /// or synchronizes stays in order.
    pub fn chains_in_turn(&mut self) {
        for f in &mut self.functions {
            for block in 0..f.blocks.len() {
                if f.blocks[block].insts.len() >= 2 * LONG as usize
                    && let Some(order) = Chains::of(f, block).in_turn()
                {
                    f.blocks[block].insts = order;
                }
            }
        }
    }
}

/// A block's instructions while they are put in order.
struct Chains<'f> {
    f: &'f Function,
    block: usize,
    waiting: FxHashSet<u32>,
    order: Vec<u32>,
}

impl<'f> Chains<'f> {
    fn of(f: &'f Function, block: usize) -> Chains<'f> {
        let waiting = f.blocks[block].insts.iter().copied().collect();
        Chains { f, block, waiting, order: Vec::new() }
    }

    /// The order with chains one behind the other, if two of them are long.
    fn in_turn(mut self) -> Option<Vec<u32>> {
        let mut long = 0;
        let f = self.f;
        let data = &f.blocks[self.block];
        for &i in data.insts.iter().filter(|&&i| !f.insts[i as usize].effect.is_pure()) {
            long += self.put_all(&f.insts[i as usize].args);
            self.put(i);
        }
        long += data.term.as_ref().map_or(0, |t| self.put_all(&needs_of(t)));
        data.insts.iter().for_each(|&i| {
            self.put(i);
        });
        (long >= 2).then_some(self.order)
    }

    /// Puts what values need; gives the number of those that are the ends of long chains.
    fn put_all(&mut self, values: &[Value]) -> usize {
        let mut long = 0;
        let mut open: Vec<Value> = values.iter().rev().copied().collect();
        while let Some(v) = open.pop() {
            match self.waiting_for(v) {
                Some(i) if gathers(&self.f.insts[i as usize]) => {
                    open.extend(self.f.insts[i as usize].args.iter().rev());
                }
                Some(i) => long += usize::from(self.put(i) >= LONG),
                None => {}
            }
        }
        long
    }

    /// Puts an instruction behind what it needs; gives the length of the chain that this added. What was put before is shared with other chains, and counts for nothing.
    fn put(&mut self, root: u32) -> u32 {
        let first = self.order.len();
        self.f.put(root, &mut self.waiting, &mut self.order);
        if self.order.len() - first < LONG as usize {
            return 0;
        }
        let mut length: FxHashMap<u32, u32> = FxHashMap::default();
        for &i in &self.order[first..] {
            let longest = self.f.needs(i).filter_map(|from| length.get(&from)).max();
            length.insert(i, 1 + longest.unwrap_or(&0));
        }
        length.get(&root).copied().unwrap_or(0)
    }

    fn waiting_for(&self, v: Value) -> Option<u32> {
        self.f.instruction_of(v).filter(|i| self.waiting.contains(i))
    }
}

/// Whether an instruction only brings elements together, as stores take them.
fn gathers(inst: &Inst) -> bool {
    matches!(inst.op, Op::Vector)
}

/// The values that a block's end uses.
fn needs_of(terminator: &Terminator) -> Vec<Value> {
    match terminator {
        Terminator::Br(_, args) | Terminator::Ret(args) => args.clone(),
        Terminator::CondBr { cond, then_args, els_args, .. } => {
            [cond].into_iter().chain(then_args).chain(els_args).copied().collect()
        }
        Terminator::Unreachable => Vec::new(),
    }
}
