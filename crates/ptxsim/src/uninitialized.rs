//! Which registers some path reads without a write: only they are followed at run time, in the parts in which they are made.

use crate::isa::{self, Env, Uninit};
use crate::layout::{Block, Item};
use crate::regs::{File, Reg};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// What is to be checked and marked at run time.
pub(crate) struct Uninitialized {
    /// By item.
    pub by_item: HashMap<usize, Uninit>,
    /// How many parts are followed.
    pub tracked: u32,
    /// The parts of each register that is.
    pub ids: HashMap<Reg, Range<u32>>,
}

/// Finds reads that some path reaches without a write, and what depends on them.
pub(crate) fn find(
    items: &[Item],
    blocks: &[Block],
    order: &[usize],
    roots: &[usize],
    env: &Env,
) -> Uninitialized {
    let declared = Declared::of(env);
    let mut tracked = read_before_written(items, blocks, order, roots, &declared);
    // What is computed from a doubtful register is doubtful too.
    let through = |it: &Item| it.copy || it.computes || it.shuffle.is_some();
    declared.close(&mut tracked, &ends(items, through));
    // Where what a `wgmma` has in its registers comes from: the sources of copies too.
    let copies = ends(items, |it| it.copy);
    let held = items.iter().flat_map(|it| it.held.iter().chain(&it.inputs)).copied();
    let mut fenced: HashSet<Reg> = held.filter(|r| declared.has(r)).collect();
    declared.close(&mut fenced, &copies.iter().map(|&(from, to)| (to, from)).collect::<Vec<_>>());
    tracked.extend(fenced);
    // A copy of a tracked register makes its destination doubtful too.
    declared.close(&mut tracked, &copies);
    Parts::of(items, &tracked, env).describe(items)
}

/// What items read and what they write.
fn ends(items: &[Item], which: impl Fn(&Item) -> bool) -> Vec<(&[Reg], &[Reg])> {
    items.iter().filter(|it| which(it)).map(|it| (&it.reads[..], &it.writes[..])).collect()
}

/// The declared registers, numbered densely.
struct Declared(HashMap<Reg, usize>);

impl Declared {
    fn of(env: &Env) -> Declared {
        let mut number = HashMap::new();
        for r in &env.declared {
            let n = number.len();
            number.entry(*r).or_insert(n);
        }
        Declared(number)
    }

    fn has(&self, r: &Reg) -> bool {
        self.0.contains_key(r)
    }

    /// Adds, as long as there are any, what goes into the second of a pair whose first has one of the set.
    fn close(&self, set: &mut HashSet<Reg>, pairs: &[(&[Reg], &[Reg])]) {
        loop {
            let before = set.len();
            for (from, to) in pairs {
                if from.iter().any(|r| set.contains(r)) {
                    set.extend(to.iter().filter(|r| self.has(r)));
                }
            }
            if set.len() == before {
                return;
            }
        }
    }
}

/// The registers that are surely written, as bits.
#[derive(Clone)]
struct Written(Vec<u64>);

impl Written {
    fn has(&self, k: usize) -> bool {
        self.0[k / 64] >> (k % 64) & 1 != 0
    }

    /// After an item. One with a guard may not be executed.
    fn pass(&mut self, it: &Item, declared: &Declared) {
        if it.inst.guard == isa::NONE {
            for &k in it.writes.iter().filter_map(|w| declared.0.get(w)) {
                self.0[k / 64] |= 1 << (k % 64);
            }
        }
    }

    /// Where paths meet only what all have written is. Whether that is less than it was.
    fn meet(&mut self, other: &Written) -> bool {
        let mut less = false;
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            less |= *mine & !theirs != 0;
            *mine &= theirs;
        }
        less
    }
}

fn read_before_written(
    items: &[Item],
    blocks: &[Block],
    order: &[usize],
    roots: &[usize],
    declared: &Declared,
) -> HashSet<Reg> {
    let mut at_start: Vec<Option<Written>> = vec![None; blocks.len()];
    for &b in [0].iter().chain(roots) {
        if let Some(start) = at_start.get_mut(b) {
            *start = Some(Written(vec![0; declared.0.len().div_ceil(64)]));
        }
    }
    let mut changed = true;
    while changed {
        changed = false;
        for &b in order {
            let Some(mut written) = at_start[b].clone() else { continue };
            items[blocks[b].first..=blocks[b].last].iter().for_each(|it| written.pass(it, declared));
            for &s in &blocks[b].succ {
                changed |= match &mut at_start[s] {
                    Some(there) => there.meet(&written),
                    none => {
                        *none = Some(written.clone());
                        true
                    }
                };
            }
        }
    }
    let mut found = HashSet::new();
    for (block, start) in blocks.iter().zip(at_start) {
        let Some(mut written) = start else { continue };
        for it in &items[block.first..=block.last] {
            let doubtful = |r: &&Reg| declared.0.get(r).is_some_and(|&k| !written.has(k));
            found.extend(it.reads.iter().filter(doubtful));
            written.pass(it, declared);
        }
    }
    found
}

/// The numbers of what is followed: registers, or their bytes.
struct Parts {
    /// Registers that are followed byte by byte.
    split: HashSet<Reg>,
    ids: HashMap<Reg, Range<u32>>,
    count: u32,
}

/// Whether an item only puts registers together, or takes them apart.
fn repacks(it: &Item) -> bool {
    let bits = |v: &[Reg]| v.iter().map(|r| r.file.bits()).sum::<u32>();
    it.copy
        && bits(&it.reads) == bits(&it.writes)
        && it.reads.iter().chain(&it.writes).all(|r| r.file.bits() % 16 == 0)
}

impl Parts {
    /// A register that is packed from or unpacked to narrower ones, or of which bytes are computed apart, is tracked in bytes,
    /// for a code generator may leave some undefined and never look at them.
    fn of(items: &[Item], tracked: &HashSet<Reg>, env: &Env) -> Parts {
        let mut split: HashSet<Reg> = HashSet::new();
        for it in items.iter().filter(|it| it.reads.len() != it.writes.len() && repacks(it)) {
            split.extend(it.reads.iter().chain(&it.writes));
        }
        for (it, bytes) in items.iter().filter_map(|it| Some((it, it.bytes.as_ref()?))) {
            let made = bytes.iter().flatten().map(|(r, _)| r).chain(&it.writes);
            split.extend(made.filter(|r| r.file != File::P));
        }
        let mut parts = Parts { split, ids: HashMap::new(), count: 0 };
        for r in env.declared.iter().filter(|r| tracked.contains(r)) {
            let (first, pieces) = (parts.count, parts.pieces(r));
            if !parts.ids.contains_key(r) {
                parts.ids.insert(*r, first..first + pieces);
                parts.count += pieces;
            }
        }
        parts
    }

    fn pieces(&self, r: &Reg) -> u32 {
        if self.split.contains(r) { r.file.bits() / 8 } else { 1 }
    }

    fn pick(&self, v: &[Reg]) -> Vec<u32> {
        v.iter().filter_map(|r| self.ids.get(r).cloned()).flatten().collect()
    }

    fn describe(self, items: &[Item]) -> Uninitialized {
        let of_item = |(i, it)| Some((i, self.uninit(it)?));
        let by_item = items.iter().enumerate().filter_map(of_item).collect();
        Uninitialized { by_item, tracked: self.count, ids: self.ids }
    }

    /// What is to be done at an item; nothing where it has nothing that is followed.
    fn uninit(&self, it: &Item) -> Option<Uninit> {
        let (reads, mut writes, hold) = (self.pick(&it.reads), self.pick(&it.writes), self.pick(&it.held));
        writes.retain(|w| !hold.contains(w));
        if reads.is_empty() && writes.is_empty() && hold.is_empty() {
            return None;
        }
        Some(Uninit {
            parts: if it.copy { Some(self.copied(it, &reads, &writes)) } else { self.computed(it) },
            copy: it.copy,
            computes: it.computes,
            guard: it.guard.and_then(|g| self.pick(&[g]).first().copied()),
            shuffle: it.shuffle.map_or(vec![], |(to, from)| self.shuffled(to, from)),
            inputs: self.pick(&it.inputs),
            reads,
            writes,
            hold,
        })
    }

    /// What each part that a copy writes is made of.
    fn copied(&self, it: &Item, reads: &[u32], writes: &[u32]) -> Vec<(u32, Vec<u32>)> {
        let whole = |r: &Reg| self.ids.contains_key(r) && self.pieces(r) != r.file.bits() / 8;
        if !repacks(it) || it.reads.iter().chain(&it.writes).any(whole) {
            return writes.iter().map(|&w| (w, reads.to_vec())).collect();
        }
        // Part by part; untracked registers have parts too, which are always initialized.
        let flat = |v: &[Reg]| -> Vec<Option<u32>> {
            v.iter()
                .flat_map(|r| {
                    let first = self.ids.get(r).map(|x| x.start);
                    (0..r.file.bits() / 8).map(move |k| first.map(|f| f + k))
                })
                .collect()
        };
        let (from, to) = (flat(&it.reads), flat(&it.writes));
        to.iter().zip(from).filter_map(|(t, f)| t.map(|t| (t, f.into_iter().collect()))).collect()
    }

    /// What each byte of a result is made of, where that is known.
    fn computed(&self, it: &Item) -> Option<Vec<(u32, Vec<u32>)>> {
        let to = self.ids.get(it.writes.first()?);
        let part = |&(r, k): &(Reg, u32)| self.ids.get(&r).map(|x| x.start + k);
        let made = it.bytes.as_ref()?.iter().map(|of| of.iter().filter_map(part).collect());
        Some(to.into_iter().flat_map(|to| to.clone()).zip(made).collect())
    }

    fn shuffled(&self, to: Reg, from: Reg) -> Vec<(u32, Vec<u32>)> {
        let (to, from) = (self.pick(&[to]), self.pick(&[from]));
        let of = |k: usize| if to.len() == from.len() { vec![from[k]] } else { from.clone() };
        to.iter().enumerate().map(|(k, &t)| (t, of(k))).collect()
    }
}
