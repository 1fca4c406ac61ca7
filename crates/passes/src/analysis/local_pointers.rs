//! Where pointers into shared memory come from: the buffers that they point into.

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::ttg;
use tilewright_ir::{Module, Trait, Value, ValueDef, flow};

use crate::analysis::scope;

/// The buffers (or views of them) that pointers may point into; `None` where that can't be told.
pub fn buffers(module: &Module, pointers: Value) -> Option<Vec<Value>> {
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    let mut work = vec![pointers];
    while let Some(v) = work.pop() {
        let v = scope::captured(module, v);
        if !seen.insert(v) {
            continue;
        }
        if let Some(local) = ttg::LocalPtr::of(module, v) {
            found.push(local.src(module));
            continue;
        }
        let edges = flow::edges_into(module, v);
        if !edges.is_empty() {
            work.extend(edges.iter().map(|(edge, i)| edge.from(module)[*i]));
            continue;
        }
        let ValueDef::Result(op, _) = module.value_def(v) else { return None };
        if !module.has_trait(op, Trait::Pure) {
            return None;
        }
        let before = work.len();
        let operands = module.operands(op).iter().copied();
        work.extend(operands.filter(|&o| module.is_shared_pointer(module.value_type(o))));
        if work.len() == before {
            return None;
        }
    }
    Some(found)
}
