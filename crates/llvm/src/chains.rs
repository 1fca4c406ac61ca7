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

use crate::program::{Function, Module, Op};

/// Operations that make a chain long.
const LONG: u32 = 32;

/// The part of a long chain's operations that others may need, too, but for one chain, which has what all need. Sums, scans and sorts of a thread's elements
/// are no chains of this kind: what one result takes, the next ones share.
const SHARED: usize = 16;

impl Module {
    /// Puts long chains of arithmetic that share little one behind the other. Nothing moves past what reads, writes or synchronizes: a chain that takes a load for
    /// each step would have all of them wait in registers.
    pub fn chains_in_turn(&mut self) {
        for f in &mut self.functions {
            let mut depths = vec![0; f.insts.len()];
            for block in 0..f.blocks.len() {
                let insts = &f.blocks[block].insts;
                let mut order: Option<Vec<u32>> = None;
                let mut begin = 0;
                for run in insts.chunk_by(|&a, &b| is_pure(f, a) && is_pure(f, b)) {
                    if may_have_chains(f, run, &mut depths)
                        && let Some(in_turn) = Chains::of(f, run).in_turn()
                    {
                        order.get_or_insert_with(|| insts.clone())[begin..][..run.len()]
                            .copy_from_slice(&in_turn);
                    }
                    begin += run.len();
                }
                if let Some(order) = order {
                    f.blocks[block].insts = order;
                }
            }
        }
    }
}

/// Whether two instructions of a run stand as far behind others of it as those that end long chains do: most runs have none. `depths` has zeros, before and after.
fn may_have_chains(f: &Function, run: &[u32], depths: &mut [u32]) -> bool {
    if run.len() < 2 * LONG as usize {
        return false;
    }
    let mut far = 0;
    for &i in run {
        let depth = 1 + f.needs(i).map(|from| depths[from as usize]).max().unwrap_or(0);
        depths[i as usize] = depth;
        far += usize::from(depth >= LONG);
    }
    run.iter().for_each(|&i| depths[i as usize] = 0);
    far >= 2
}

fn is_pure(f: &Function, i: u32) -> bool {
    f.insts[i as usize].effect.is_pure()
}

/// Instructions of a block, one behind the other and all pure, while they are put in order.
struct Chains<'f> {
    f: &'f Function,
    run: &'f [u32],
    waiting: FxHashSet<u32>,
    order: Vec<u32>,
    /// What uses each instruction's results here.
    users: FxHashMap<u32, Vec<u32>>,
    /// How many long chains there are, and how many of them share much with others.
    long: usize,
    entangled: usize,
}

impl<'f> Chains<'f> {
    fn of(f: &'f Function, run: &'f [u32]) -> Chains<'f> {
        let mut users: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for &i in run {
            f.needs(i).for_each(|from| users.entry(from).or_default().push(i));
        }
        let waiting = run.iter().copied().collect();
        Chains { f, run, waiting, order: Vec::new(), users, long: 0, entangled: 0 }
    }

    /// The order with chains one behind the other, if two of them are long and they share little.
    fn in_turn(mut self) -> Option<Vec<u32>> {
        let run = self.run;
        for &end in run.iter().filter(|i| !self.users.contains_key(i)).collect::<Vec<_>>() {
            self.put_ends(end);
        }
        for &i in run {
            self.put(i);
        }
        (self.long >= 2 && self.entangled <= 1).then_some(self.order)
    }

    /// Puts an instruction whose results nothing here needs, or what it gathers.
    fn put_ends(&mut self, end: u32) {
        let mut open = vec![end];
        while let Some(i) = open.pop() {
            if !self.waiting.contains(&i) {
                continue;
            }
            if matches!(self.f.insts[i as usize].op, Op::Vector) {
                open.extend(self.f.needs(i).rev());
                continue;
            }
            if let Some(added) = self.put(i) {
                let waits =
                    |i: &u32| self.users.get(i).is_some_and(|by| by.iter().any(|u| self.waiting.contains(u)));
                let shared = self.order[self.order.len() - added..].iter().filter(|i| waits(i)).count();
                self.long += 1;
                self.entangled += usize::from(shared * SHARED > added);
            }
        }
    }

    /// Puts an instruction behind what it needs; gives how many operations that adds, if they are a long chain. What was put before is shared with other chains, and
    /// counts for nothing.
    fn put(&mut self, root: u32) -> Option<usize> {
        let first = self.order.len();
        self.f.put(root, &mut self.waiting, &mut self.order);
        let added = self.order.len() - first;
        if added < LONG as usize {
            return None;
        }
        let mut length: FxHashMap<u32, u32> = FxHashMap::default();
        for &i in &self.order[first..] {
            let longest = self.f.needs(i).filter_map(|from| length.get(&from)).max();
            length.insert(i, 1 + longest.unwrap_or(&0));
        }
        (length.get(&root) >= Some(&LONG)).then_some(added)
    }
}
