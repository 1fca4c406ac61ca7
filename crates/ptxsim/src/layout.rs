//! The order of blocks in the flat code, and its jumps.
//!
//! **Order.** Blocks are laid out so that every loop is contiguous, its header first and its exits after it, and so
//! that otherwise control flows forward: strongly connected components in topological order, and inside each one the
//! same again without the edges back to its header. The scheduler's merging of diverged lanes relies on it. Functions
//! that are called follow the entry.

use crate::isa::{self, Env, Inst};
use crate::regs::Reg;
use crate::report::Class;
use crate::uninitialized;
use std::collections::HashMap;
use std::ops::Range;

/// Something in the flat list before layout.
pub(crate) struct Item {
    pub inst: Inst,
    pub name: Box<str>,
    pub reads: Vec<Reg>,
    pub writes: Vec<Reg>,
    pub copy: bool,
    pub bytes: Option<isa::Bytes>,
    pub computes: bool,
    pub shuffle: Option<(Reg, Reg)>,
    pub guard: Option<Reg>,
    pub held: Vec<Reg>,
    pub inputs: Vec<Reg>,
    /// Labels it may go to.
    pub jumps: Vec<u32>,
    pub kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    /// May jump to `jumps[0]`.
    Branch,
    /// Jumps to one of `jumps`.
    Table,
    /// Ends the lanes, or the function.
    Exit,
}

/// Items without jumps between them.
pub(crate) struct Block {
    pub first: usize,
    pub last: usize,
    pub succ: Vec<usize>,
}

/// Flat code.
pub(crate) struct Laid {
    pub insts: Vec<Inst>,
    pub names: Vec<Box<str>>,
    /// Where each root came to be.
    pub entries: Vec<u32>,
    /// How many registers, or parts of them, are checked at run time, and their numbers.
    pub tracked: u32,
    pub ids: HashMap<Reg, Range<u32>>,
}

/// Orders blocks, resolves jumps and finds the registers that need checking. `labels` has the position of each label;
/// the code of each function that is called begins at one of `roots`.
pub(crate) fn layout(items: Vec<Item>, labels: &[usize], roots: &[usize], env: &Env) -> Laid {
    let n = items.len();
    let mut leader = vec![false; n + 1];
    leader[0] = true;
    roots.iter().for_each(|&r| leader[r] = true);
    for (k, it) in items.iter().enumerate() {
        for &l in &it.jumps {
            leader[labels[l as usize].min(n)] = true;
        }
        if it.kind != Kind::Plain {
            leader[k + 1] = true;
        }
    }
    let starts: Vec<usize> = (0..n).filter(|&k| leader[k]).collect();
    let mut block_of = vec![0; n + 1];
    for (b, w) in starts.iter().enumerate() {
        let end = starts.get(b + 1).copied().unwrap_or(n);
        block_of[*w..end].fill(b);
    }
    let mut blocks: Vec<Block> = vec![];
    for (b, &first) in starts.iter().enumerate() {
        let last = starts.get(b + 1).copied().unwrap_or(n) - 1;
        let it = &items[last];
        let mut succ: Vec<usize> =
            it.jumps.iter().map(|&l| block_of[labels[l as usize].min(n - 1)]).collect();
        let falls = match it.kind {
            Kind::Plain => true,
            Kind::Branch | Kind::Exit => it.inst.guard != isa::NONE,
            Kind::Table => it.inst.guard != isa::NONE,
        };
        if falls && last + 1 < n {
            succ.push(b + 1);
        }
        blocks.push(Block { first, last, succ });
    }
    let roots: Vec<usize> = roots.iter().map(|&r| block_of[r]).collect();
    let order = order(&blocks, &roots);
    let uninit = uninitialized::find(&items, &blocks, &order, &roots, env);
    // Place blocks; a block whose fall-through is not next gets a jump.
    let mut at = vec![0u32; blocks.len()];
    let mut out: Vec<Inst> = Vec::with_capacity(n);
    let mut names: Vec<Box<str>> = Vec::with_capacity(n);
    let mut fix: Vec<(usize, usize)> = vec![];
    let mut slots: Vec<Option<Item>> = items.into_iter().map(Some).collect();
    let mut tables: Vec<(usize, Vec<usize>)> = vec![];
    let mut uninit = uninit;
    for (k, &b) in order.iter().enumerate() {
        at[b] = out.len() as u32;
        let blk = &blocks[b];
        for (i, slot) in slots.iter_mut().enumerate().take(blk.last + 1).skip(blk.first) {
            let Some(mut it) = slot.take() else { continue };
            it.inst.uninit = uninit.by_item.remove(&i).map(Box::new);
            match it.kind {
                Kind::Branch => fix.push((out.len(), block_of[labels[it.jumps[0] as usize].min(n - 1)])),
                Kind::Table => tables.push((
                    out.len(),
                    it.jumps.iter().map(|&l| block_of[labels[l as usize].min(n - 1)]).collect(),
                )),
                _ => {}
            }
            out.push(it.inst);
            names.push(it.name);
        }
        // The fall-through successor, when there is one, is the next block of the text.
        let falls = blk.succ.last() == Some(&(b + 1)) && blk.last + 1 < n;
        if falls && order.get(k + 1) != Some(&(b + 1)) {
            let mut j = Inst::new(isa::bra_exec, Class::Control);
            j.synthetic = true;
            j.line = out.last().map_or(1, |i| i.line);
            fix.push((out.len(), b + 1));
            out.push(j);
            names.push("".into());
        }
    }
    for (i, b) in fix {
        out[i].target = at[b];
    }
    for (i, t) in tables {
        out[i].list = t.into_iter().map(|b| at[b]).collect();
    }
    let entries = roots.iter().map(|&b| at[b]).collect();
    Laid { insts: out, names, entries, tracked: uninit.tracked, ids: uninit.ids }
}

/// Blocks reachable from the first, then those from each root, loops contiguous.
fn order(blocks: &[Block], roots: &[usize]) -> Vec<usize> {
    let mut out = vec![];
    let all: Vec<usize> = (0..blocks.len()).collect();
    for &b in [0].iter().chain(roots) {
        order_within(blocks, &all, b, &mut out, 0);
    }
    // Unreachable blocks stay at the end: labels may be taken that nothing jumps to.
    let mut seen = vec![false; blocks.len()];
    out.iter().for_each(|&b| seen[b] = true);
    out.extend((0..blocks.len()).filter(|&b| !seen[b]));
    out
}

fn order_within(blocks: &[Block], set: &[usize], entry: usize, out: &mut Vec<usize>, depth: u32) {
    let mut inside = vec![false; blocks.len()];
    set.iter().for_each(|&b| inside[b] = true);
    // Below the outermost level, edges back to the header are cut.
    let next = |b: usize, k: usize| -> Option<Option<usize>> {
        blocks[b].succ.get(k).map(|&s| (inside[s] && !(depth > 0 && s == entry)).then_some(s))
    };
    // Tarjan's algorithm without recursion; it gives components in reverse topological order.
    const UNSEEN: usize = usize::MAX;
    let mut index = vec![UNSEEN; blocks.len()];
    let mut low = vec![0; blocks.len()];
    let mut on = vec![false; blocks.len()];
    let mut stack = vec![];
    let mut comps: Vec<Vec<usize>> = vec![];
    let mut count = 0;
    let mut work = vec![(entry, 0usize)];
    while let Some(&mut (b, ref mut k)) = work.last_mut() {
        if *k == 0 {
            index[b] = count;
            low[b] = count;
            count += 1;
            stack.push(b);
            on[b] = true;
        }
        // Later successors first, so that the fall-through ends up closest after its block.
        let step = next(b, *k);
        *k += 1;
        match step {
            Some(Some(s)) => {
                if index[s] == UNSEEN {
                    work.push((s, 0));
                } else if on[s] {
                    low[b] = low[b].min(index[s]);
                }
            }
            Some(None) => {}
            None => {
                work.pop();
                if let Some(&(p, _)) = work.last() {
                    low[p] = low[p].min(low[b]);
                }
                if low[b] == index[b] {
                    let mut comp = vec![];
                    while let Some(x) = stack.pop() {
                        on[x] = false;
                        comp.push(x);
                        if x == b {
                            break;
                        }
                    }
                    comps.push(comp);
                }
            }
        }
    }
    for comp in comps.into_iter().rev() {
        if let [b] = comp[..] {
            out.push(b);
        } else if depth > 200 {
            let mut c = comp;
            c.sort_unstable();
            out.extend(c);
        } else {
            // The header is where the depth-first walk came in.
            let header = comp.iter().copied().min_by_key(|&b| index[b]).unwrap_or(comp[0]);
            order_within(blocks, &comp, header, out, depth + 1);
        }
    }
}
