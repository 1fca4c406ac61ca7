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

use crate::program::{Def, Function, Inst, Module, Op, Terminator, Value};

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
    /// For each instruction of the function whether it waits to be put, as those of the block do at first.
    waiting: Vec<bool>,
    /// For what was put the steps that the longest chain up to it has of its own.
    depth: Vec<u32>,
    order: Vec<u32>,
}

impl<'f> Chains<'f> {
    fn of(f: &'f Function, block: usize) -> Chains<'f> {
        let mut waiting = vec![false; f.insts.len()];
        for &i in &f.blocks[block].insts {
            waiting[i as usize] = true;
        }
        Chains { f, block, waiting, depth: vec![0; f.insts.len()], order: Vec::new() }
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

    /// Puts an instruction behind what it needs; gives the length of the chain that this added.
    fn put(&mut self, root: u32) -> u32 {
        let first = self.order.len();
        let mut open = vec![root];
        while let Some(&i) = open.last() {
            let args = &self.f.insts[i as usize].args;
            let before = open.len();
            if self.waiting[i as usize] {
                open.extend(args.iter().rev().filter_map(|&a| self.waiting_for(a)));
            }
            if open.len() > before {
                continue;
            }
            open.pop();
            if std::mem::take(&mut self.waiting[i as usize]) {
                let own = args.iter().filter_map(|&a| self.instruction(a)).map(|a| self.depth[a as usize]);
                self.depth[i as usize] = 1 + own.max().unwrap_or(0);
                self.order.push(i);
            }
        }
        let length = self.depth[root as usize];
        // What comes later shares this chain: to it these steps are none of its own.
        for &i in &self.order[first..] {
            self.depth[i as usize] = 0;
        }
        length
    }

    fn instruction(&self, v: Value) -> Option<u32> {
        match self.f.values[v.0 as usize].def {
            Def::Inst(i, _) => Some(i),
            _ => None,
        }
    }

    fn waiting_for(&self, v: Value) -> Option<u32> {
        self.instruction(v).filter(|&i| self.waiting[i as usize])
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
