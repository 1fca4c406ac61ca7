//! Common subexpressions: of operations that compute the same, the one that dominates the others stays.
//!
//! ```text
//! %0 = tt.splat %n : i32 -> tensor<64xi32>        %0 = tt.splat %n : i32 -> tensor<64xi32>
//! scf.for ... {                                   scf.for ... {
//!   %1 = tt.splat %n : i32 -> tensor<64xi32> =>     use(%0)
//!   use(%1)
//! ```
//!
//! Operations without effects are merged wherever the earlier one dominates. Operations that only read memory are merged
//! within a block where nothing between them writes. Two allocations are never one buffer.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use crate::diagnostic::Diagnostic;
use crate::effects::effects;
use crate::entity::{Block, Op, Value};
use crate::module::Module;
use crate::opdef::Trait;
use crate::rewrite::keeps_to_itself;

/// Merges common subexpressions in a module.
///
/// # Errors
/// None; the signature is that of every pass.
pub fn run(module: &mut Module) -> Result<(), Diagnostic> {
    let root = module.root();
    let mut cse =
        Cse { m: module, known: FxHashMap::default(), scope: Vec::new(), reads: FxHashMap::default() };
    cse.regions(root);
    Ok(())
}

struct Cse<'m> {
    m: &'m mut Module,
    /// Operations that dominate the current one, by hash.
    known: FxHashMap<u64, SmallVec<[Op; 1]>>,
    /// What the current scopes entered, to be taken out at their end.
    scope: Vec<u64>,
    /// Reads of the current block since the last write.
    reads: FxHashMap<u64, SmallVec<[Op; 1]>>,
}

impl Cse<'_> {
    fn regions(&mut self, op: Op) {
        let regions: SmallVec<[crate::Region; 2]> = SmallVec::from_slice(self.m.regions(op));
        for region in regions {
            let alone = self.m.has_trait(op, Trait::Isolated)
                || keeps_to_itself(self.m, op)
                || self.m.def(op).is_none();
            let outer = alone.then(|| (std::mem::take(&mut self.known), std::mem::take(&mut self.scope)));
            let blocks: SmallVec<[Block; 1]> = SmallVec::from_slice(self.m.region_blocks(region));
            let start = self.scope.len();
            let mut after_entry = None;
            for block in blocks {
                let at = self.scope.len();
                let reads = std::mem::take(&mut self.reads);
                self.block(block);
                self.reads = reads;
                // Of several blocks, the first dominates the others; nothing else is known.
                if after_entry.is_none() {
                    after_entry = Some(self.scope.len());
                } else {
                    self.leave(at);
                }
            }
            self.leave(start);
            if let Some((known, scope)) = outer {
                self.known = known;
                self.scope = scope;
            }
        }
    }

    fn leave(&mut self, length: usize) {
        for hash in self.scope.drain(length..).rev() {
            if let Some(ops) = self.known.get_mut(&hash) {
                ops.pop();
            }
        }
    }

    fn block(&mut self, block: Block) {
        let mut next = self.m.first_op(block);
        while let Some(op) = next {
            next = self.m.next_op(op);
            let e = effects(self.m, op);
            if !self.m.regions(op).is_empty() {
                self.regions(op);
                if e.writes {
                    self.reads.clear();
                }
                continue;
            }
            if e.writes {
                self.reads.clear();
                continue;
            }
            if e.allocates || self.m.results(op).is_empty() || self.m.has_trait(op, Trait::Terminator) {
                continue;
            }
            let hash = self.hash(op);
            let candidates = if e.reads { self.reads.get(&hash) } else { self.known.get(&hash) };
            let found = candidates.and_then(|ops| ops.iter().copied().find(|&o| self.same(o, op)));
            if let Some(first) = found {
                let results: SmallVec<[Value; 2]> = SmallVec::from_slice(self.m.results(first));
                self.m.replace_op(op, &results);
                continue;
            }
            if e.reads {
                self.reads.entry(hash).or_default().push(op);
            } else {
                self.known.entry(hash).or_default().push(op);
                self.scope.push(hash);
            }
        }
    }

    fn operands(&self, op: Op) -> SmallVec<[Value; 4]> {
        let mut operands: SmallVec<[Value; 4]> = SmallVec::from_slice(self.m.operands(op));
        if self.m.has_trait(op, Trait::Commutative) {
            operands.sort_unstable();
        }
        operands
    }

    fn hash(&self, op: Op) -> u64 {
        let mut h = FxHasher::default();
        match self.m.def(op) {
            Some(def) => def.opcode.hash(&mut h),
            None => self.m.op_name(op).hash(&mut h),
        }
        self.operands(op).hash(&mut h);
        // Attributes may stand in any order: their sum does not depend on it.
        let mut attrs = 0u64;
        for (name, attr) in self.m.op_attrs(op) {
            let mut a = FxHasher::default();
            (name.as_ref(), attr).hash(&mut a);
            attrs = attrs.wrapping_add(a.finish());
        }
        attrs.hash(&mut h);
        for &r in self.m.results(op) {
            self.m.value_type(r).hash(&mut h);
        }
        h.finish()
    }

    fn same(&self, a: Op, b: Op) -> bool {
        let m = &*self.m;
        m.opcode(a) == m.opcode(b)
            && m.op_name(a) == m.op_name(b)
            && m.segments(a) == m.segments(b)
            && self.operands(a) == self.operands(b)
            && m.op_attrs(a).len() == m.op_attrs(b).len()
            && m.op_attrs(a).iter().all(|(n, attr)| m.op_attr(b, n) == Some(*attr))
            && m.results(a).iter().map(|&r| m.value_type(r)).eq(m.results(b).iter().map(|&r| m.value_type(r)))
    }
}
