//! What a value is computed from inside a loop: the operations that must run ahead with a load that runs ahead.

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::{scf, tt};
use tilewright_ir::{Block, Module, Op, Trait, Value, ValueDef};

/// Operations of a loop's body, and carried values, from which some values are computed.
#[derive(Debug, Default, Clone)]
pub struct Slice {
    /// Operations without effects, and loads where the slice has been told to take them in.
    pub ops: FxHashSet<Op>,
    /// Carried values, as indices of the loop's initial values.
    pub carried: Vec<usize>,
    /// Loaded values at which the slice stops.
    pub loaded: Vec<Value>,
}

impl Slice {
    /// Adds what `value` is computed from inside the loop `l`; false if that has effects. Stops at loads.
    pub fn collect(&mut self, module: &Module, l: scf::For, body: Block, value: Value) -> bool {
        if module.value_block(value) != Some(body) {
            // From outside the loop, or from a region inside it (then its operation is not in the slice anyway).
            return !inside(module, l, value);
        }
        match module.value_def(value) {
            ValueDef::Argument(_, 0) => true,
            ValueDef::Argument(_, i) => {
                let i = i as usize - 1;
                if self.carried.contains(&i) {
                    return true;
                }
                self.carried.push(i);
                let next = module.last_op(body).map(|y| module.operands(y)[i]);
                next.is_some_and(|v| self.collect(module, l, body, v))
            }
            ValueDef::Result(op, _) => {
                if self.ops.contains(&op) {
                    return true;
                }
                if let Some(load) = tt::Load::cast(module, op) {
                    if load.is_fresh(module) {
                        return false;
                    }
                    if !self.loaded.contains(&value) {
                        self.loaded.push(value);
                    }
                    return true;
                }
                if !module.has_trait(op, Trait::Pure) || !module.regions(op).is_empty() {
                    return false;
                }
                self.ops.insert(op);
                self.collect_operands(module, l, body, op)
            }
        }
    }

    /// Adds what the operands of an operation are computed from.
    pub fn collect_operands(&mut self, module: &Module, l: scf::For, body: Block, op: Op) -> bool {
        module.operands(op).to_vec().into_iter().all(|v| self.collect(module, l, body, v))
    }

    /// Adds another slice.
    pub fn merge(&mut self, other: Slice) {
        self.ops.extend(other.ops);
        for c in other.carried {
            if !self.carried.contains(&c) {
                self.carried.push(c);
            }
        }
        for v in other.loaded {
            if !self.loaded.contains(&v) {
                self.loaded.push(v);
            }
        }
    }
}

/// Whether a value is defined within a loop.
fn inside(module: &Module, l: scf::For, value: Value) -> bool {
    module
        .value_block(value)
        .and_then(|b| module.block_parent_op(b))
        .is_some_and(|op| module.is_ancestor(l.0, op))
}
