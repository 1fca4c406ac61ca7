//! Which classes of dimensions each bit of a CTA's rank halves.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::{Module, Op, Value};

use super::dims::{Class, Dim, Dims, Site};

/// The bits of the CTA's rank that say which part of a dimension is its own, lowest first. None: it has all.
pub(super) type Bits = SmallVec<[u8; 3]>;

/// Combining the parts of a reduction costs two barriers of the cluster: a class that needs it counts as so much less.
const COMBINING: u64 = 64;

/// The bits of each dimension of a tensor.
pub(super) type Split = SmallVec<[Bits; 4]>;

/// How everything is split.
pub(super) struct Splits {
    sites: FxHashMap<Site, Split>,
    free: FxHashSet<Value>,
}

impl Splits {
    /// Whether a value is computed for each use.
    pub fn is_free(&self, value: Value) -> bool {
        self.free.contains(&value)
    }

    /// The split of a value that is not free.
    pub fn value(&self, value: Value) -> Split {
        self.sites.get(&Site::Value(value)).cloned().unwrap_or_default()
    }

    /// The split that an operand has for its use.
    pub fn operand(&self, module: &Module, op: Op, index: usize) -> Split {
        let of_use = self.sites.get(&Site::Operand(op, index as u32));
        of_use.cloned().unwrap_or_else(|| self.value(module.operands(op)[index]))
    }
}

/// Chooses for `rank_bits` bits, the lowest first: the class that saves most; of two that save as much (rows and columns of
/// a dot) the longer, so that tiles become squarer and what is loaded for them less.
pub(super) fn splits(dims: &Dims<'_>, rank_bits: u8) -> Splits {
    let classes = dims.classes();
    let meets: Vec<SmallVec<[Dim; 8]>> = dims
        .work
        .iter()
        .map(|work| {
            let mut met: SmallVec<[Dim; 8]> = work.dims.iter().map(|&d| dims.class(d)).collect();
            met.sort_unstable();
            met.dedup();
            met
        })
        .collect();
    let mut chosen: FxHashMap<Dim, Bits> = FxHashMap::default();
    for bit in 0..rank_bits {
        // What is left to save.
        let mut weights: FxHashMap<Dim, u64> = FxHashMap::default();
        for (work, met) in dims.work.iter().zip(&meets) {
            let halved: usize = met.iter().filter_map(|c| chosen.get(c)).map(|bits| bits.len()).sum();
            for &class in met {
                *weights.entry(class).or_default() += work.weight >> halved;
            }
        }
        let score = |class: Dim, c: &Class, chosen: &FxHashMap<Dim, Bits>| {
            let halved = chosen.get(&class).map_or(0, |b| b.len() as u32);
            let weight = weights.get(&class).copied().unwrap_or(0);
            let weight = if c.combining > 0 { weight / COMBINING } else { weight };
            let left = c.extent >> halved;
            (halved < c.halvings && !c.whole && weight > 0).then_some((weight, left, Reverse(class)))
        };
        let mut ranked: Vec<_> =
            classes.iter().filter_map(|(&class, c)| Some((score(class, c, &chosen)?, class))).collect();
        ranked.sort_unstable_by_key(|r| Reverse(r.0));
        let mut taken: SmallVec<[Dim; 8]> = SmallVec::new();
        for (_, class) in ranked {
            // Every CTA could do all of it instead: half of the work must be more than what combining costs.
            let combining = classes[&class].combining;
            let worth = combining == 0 || weights.get(&class).is_some_and(|w| w / 2 > combining);
            let beside =
                |met: &SmallVec<[Dim; 8]>| met.contains(&class) && met.iter().any(|d| taken.contains(d));
            if taken.is_empty() || worth && !meets.iter().any(beside) {
                taken.push(class);
                chosen.entry(class).or_default().push(bit);
            }
        }
    }
    let bits = |&d: &Dim| chosen.get(&dims.class(d)).cloned().unwrap_or_default();
    let sites = dims.sites.iter().map(|(&site, of)| (site, of.iter().map(bits).collect())).collect();
    Splits { sites, free: dims.free.clone() }
}
