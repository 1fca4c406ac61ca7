//! Who calls whom: the functions that a call runs, its own callee's and theirs.

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::tt;
use tilewright_ir::{Module, Op};

/// The function that an operation calls.
pub fn callee(module: &Module, op: Op) -> Option<Op> {
    module.function(&tt::Call::cast(module, op)?.callee(module).0)
}

/// The calls of each function that is called.
pub fn by_callee(module: &Module) -> FxHashMap<Op, Vec<Op>> {
    let mut found: FxHashMap<Op, Vec<Op>> = FxHashMap::default();
    for op in module.all_ops(module.root()) {
        if let Some(callee) = callee(module, op) {
            found.entry(callee).or_default().push(op);
        }
    }
    found
}

/// A function and all that it calls, directly or not, each once. There is no recursion.
pub fn reached(module: &Module, func: Op) -> Vec<Op> {
    let mut found = vec![func];
    let mut next = 0;
    while let Some(&func) = found.get(next) {
        next += 1;
        for op in module.all_ops(func) {
            found.extend(callee(module, op).filter(|f| !found.contains(f)));
        }
    }
    found
}

/// Whether `wanted` says so of an operation itself, or of one in a function that it calls.
pub fn does(module: &Module, op: Op, wanted: impl Fn(Op) -> bool) -> bool {
    wanted(op) || runs(module, op, wanted)
}

/// Whether a call runs an operation of which `wanted` says so.
pub fn runs(module: &Module, call: Op, wanted: impl Fn(Op) -> bool) -> bool {
    let functions = callee(module, call).map_or(vec![], |f| reached(module, f));
    functions.into_iter().any(|f| module.all_ops(f).into_iter().any(&wanted))
}
