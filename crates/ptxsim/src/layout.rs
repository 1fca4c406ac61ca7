//! The order of blocks in the flat code, its jumps, and the registers that need checking at run time.
//!
//! **Order.** Blocks are laid out so that every loop is contiguous, its header first and its exits after it, and so
//! that otherwise control flows forward: strongly connected components in topological order, and inside each one the
//! same again without the edges back to its header. The scheduler's merging of diverged lanes relies on it. Functions
//! that are called follow the entry.

use crate::isa::{self, Class, Env, Inst};
use crate::regs::{File, Reg};
use std::collections::{HashMap, HashSet};
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

struct Block {
    first: usize,
    last: usize,
    succ: Vec<usize>,
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
    let uninit = uninit(&items, &blocks, &order, &roots, env);
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

struct UninitInfo {
    by_item: HashMap<usize, isa::Uninit>,
    tracked: u32,
    ids: HashMap<Reg, Range<u32>>,
}

/// Finds reads that some path reaches without a write. Only the registers of such reads are tracked at run time.
fn uninit(items: &[Item], blocks: &[Block], order: &[usize], roots: &[usize], env: &Env) -> UninitInfo {
    // Number the declared registers densely.
    let mut number: HashMap<Reg, u32> = HashMap::new();
    for r in &env.declared {
        let n = number.len() as u32;
        number.entry(*r).or_insert(n);
    }
    let n = number.len();
    let words = n.div_ceil(64);
    let get = |s: &[u64], k: u32| s[k as usize / 64] >> (k % 64) & 1 != 0;
    let mut inn: Vec<Option<Vec<u64>>> = vec![None; blocks.len()];
    for &b in [0].iter().chain(roots) {
        if let Some(f) = inn.get_mut(b) {
            *f = Some(vec![0; words]);
        }
    }
    let flow = |set: &mut Vec<u64>, it: &Item| {
        if it.inst.guard == isa::NONE {
            for w in &it.writes {
                if let Some(&k) = number.get(w) {
                    set[k as usize / 64] |= 1 << (k % 64);
                }
            }
        }
    };
    let mut changed = true;
    while changed {
        changed = false;
        for &b in order {
            let Some(mut set) = inn[b].clone() else { continue };
            for it in &items[blocks[b].first..=blocks[b].last] {
                flow(&mut set, it);
            }
            for &s in &blocks[b].succ {
                match &mut inn[s] {
                    None => {
                        inn[s] = Some(set.clone());
                        changed = true;
                    }
                    Some(old) => {
                        for (o, x) in old.iter_mut().zip(&set) {
                            if *o & !x != 0 {
                                *o &= x;
                                changed = true;
                            }
                        }
                    }
                }
            }
        }
    }
    let mut tracked: HashMap<u32, u32> = HashMap::new();
    for (b, blk) in blocks.iter().enumerate() {
        let Some(mut set) = inn[b].clone() else { continue };
        for it in &items[blk.first..=blk.last] {
            for r in &it.reads {
                if let Some(&k) = number.get(r)
                    && !get(&set, k)
                {
                    let t = tracked.len() as u32;
                    tracked.entry(k).or_insert(t);
                }
            }
            flow(&mut set, it);
        }
    }
    let track = |tracked: &mut HashMap<u32, u32>, r: &Reg| {
        if let Some(&k) = number.get(r) {
            let t = tracked.len() as u32;
            tracked.entry(k).or_insert(t);
        }
    };
    let has = |t: &HashMap<u32, u32>, r: &Reg| number.get(r).is_some_and(|k| t.contains_key(k));
    // What is computed from a doubtful register is doubtful too.
    loop {
        let before = tracked.len();
        for it in items.iter().filter(|it| it.copy || it.computes || it.shuffle.is_some()) {
            if it.reads.iter().any(|r| has(&tracked, r)) {
                it.writes.iter().for_each(|r| track(&mut tracked, r));
            }
        }
        if tracked.len() == before {
            break;
        }
    }
    // Where what a `wgmma` has in its registers comes from: the sources of copies too.
    let mut fenced: HashMap<u32, u32> = HashMap::new();
    items.iter().flat_map(|it| it.held.iter().chain(&it.inputs)).for_each(|r| track(&mut fenced, r));
    loop {
        let before = fenced.len();
        for it in items.iter().filter(|it| it.copy) {
            if it.writes.iter().any(|r| has(&fenced, r)) {
                it.reads.iter().for_each(|r| track(&mut fenced, r));
            }
        }
        if fenced.len() == before {
            break;
        }
    }
    for k in fenced.keys() {
        let t = tracked.len() as u32;
        tracked.entry(*k).or_insert(t);
    }
    // A copy of a tracked register makes its destination doubtful too.
    loop {
        let before = tracked.len();
        for it in items.iter().filter(|it| it.copy) {
            if it.reads.iter().any(|r| has(&tracked, r)) {
                it.writes.iter().for_each(|r| track(&mut tracked, r));
            }
        }
        if tracked.len() == before {
            break;
        }
    }
    // A register that is packed from or unpacked to narrower ones, or of which bytes are computed apart, is tracked in bytes,
    // for a code generator may leave some undefined and never look at them.
    let bits = |v: &[Reg]| v.iter().map(|r| r.file.bits()).sum::<u32>();
    let repacks = |it: &Item| {
        it.copy
            && bits(&it.reads) == bits(&it.writes)
            && it.reads.iter().chain(&it.writes).all(|r| r.file.bits() % 16 == 0)
    };
    let mut split: HashSet<Reg> = HashSet::new();
    for it in items.iter().filter(|it| it.reads.len() != it.writes.len() && repacks(it)) {
        split.extend(it.reads.iter().chain(&it.writes));
    }
    for (it, bytes) in items.iter().filter_map(|it| Some((it, it.bytes.as_ref()?))) {
        split.extend(bytes.iter().flatten().map(|(r, _)| r).chain(&it.writes).filter(|r| r.file != File::P));
    }
    let pieces = |r: &Reg| if split.contains(r) { r.file.bits() / 8 } else { 1 };
    let mut ids: HashMap<Reg, Range<u32>> = HashMap::new();
    let mut count = 0;
    for r in env.declared.iter().filter(|r| has(&tracked, r)) {
        ids.entry(*r).or_insert_with(|| {
            let first = count;
            count += pieces(r);
            first..count
        });
    }
    let pick = |v: &[Reg]| -> Vec<u32> { v.iter().filter_map(|r| ids.get(r).cloned()).flatten().collect() };
    let mut by_item = HashMap::new();
    for (i, it) in items.iter().enumerate() {
        let (reads, mut writes, hold) = (pick(&it.reads), pick(&it.writes), pick(&it.held));
        let inputs = pick(&it.inputs);
        writes.retain(|w| !hold.contains(w));
        let copied = it.copy.then(|| {
            let whole = |r: &Reg| ids.contains_key(r) && pieces(r) != r.file.bits() / 8;
            if !repacks(it) || it.reads.iter().chain(&it.writes).any(whole) {
                return writes.iter().map(|&w| (w, reads.clone())).collect();
            }
            // Part by part; untracked registers have parts too, which are always initialized.
            let flat = |v: &[Reg]| -> Vec<Option<u32>> {
                v.iter()
                    .flat_map(|r| {
                        let first = ids.get(r).map(|x| x.start);
                        (0..r.file.bits() / 8).map(move |k| first.map(|f| f + k))
                    })
                    .collect()
            };
            let (from, to) = (flat(&it.reads), flat(&it.writes));
            to.iter().zip(from).filter_map(|(t, f)| t.map(|t| (t, f.into_iter().collect()))).collect()
        });
        let parts = copied.or_else(|| {
            let to = ids.get(it.writes.first()?);
            let part = |&(r, k): &(Reg, u32)| ids.get(&r).map(|x| x.start + k);
            let made = it.bytes.as_ref()?.iter().map(|of| of.iter().filter_map(part).collect());
            Some(to.into_iter().flat_map(|to| to.clone()).zip(made).collect())
        });
        if !reads.is_empty() || !writes.is_empty() || !hold.is_empty() {
            let shuffle = it.shuffle.map_or(vec![], |(to, from)| {
                let (to, from) = (pick(&[to]), pick(&[from]));
                let of = |k: usize| if to.len() == from.len() { vec![from[k]] } else { from.clone() };
                to.iter().enumerate().map(|(k, &t)| (t, of(k))).collect()
            });
            let guard = it.guard.and_then(|g| pick(&[g]).first().copied());
            let (copy, computes) = (it.copy, it.computes);
            by_item.insert(
                i,
                isa::Uninit { reads, writes, parts, copy, computes, guard, shuffle, hold, inputs },
            );
        }
    }
    UninitInfo { by_item, tracked: count, ids }
}
