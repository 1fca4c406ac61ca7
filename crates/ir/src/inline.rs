//! Inlining: every `tt.call` becomes the body of the function that it calls.
//!
//! ```text
//! tt.func public @k(%x: f32) {                     tt.func public @k(%x: f32) {
//!   %0 = tt.call @sq(%x) : (f32) -> f32      =>      %0 = arith.mulf %x, %x : f32 loc(callsite(... at ...))
//!   ...
//! tt.func private @sq(%x: f32) -> f32 { ... }
//! ```
//!
//! Functions are inlined callees first, so each body is copied complete. A function marked `noinline = true` stays and is
//! called. Locations of copied operations say both places. Private functions that nobody calls any more are erased.

use rustc_hash::FxHashMap;

use crate::attrs::AttrKind;
use crate::diagnostic::Diagnostic;
use crate::dialect::tt;
use crate::entity::{Loc, Op, Value};
use crate::module::{LocKind, Module};

/// Inlines all calls in a module.
///
/// # Errors
/// A function that calls itself, directly or through others; a call of a function that does not exist; a callee with
/// unstructured control flow.
pub fn run(module: &mut Module) -> Result<(), Diagnostic> {
    run_where(module, &|module, callee| !is_noinline(module, callee))
}

/// Inlines the calls of those functions of which `wanted` says so.
///
/// # Errors
/// As [`run`].
pub fn run_where(module: &mut Module, wanted: &dyn Fn(&Module, Op) -> bool) -> Result<(), Diagnostic> {
    let functions: Vec<Op> =
        module.block_ops(module.body()).filter(|&op| tt::Func::cast(module, op).is_some()).collect();
    let mut by_name: FxHashMap<String, Op> = FxHashMap::default();
    for &func in &functions {
        if let Some(name) = module.symbol_name(func) {
            by_name.insert(name.to_string(), func);
        }
    }
    let mut inliner = Inliner { m: module, by_name, wanted, state: FxHashMap::default(), path: Vec::new() };
    for &func in &functions {
        inliner.function(func)?;
    }
    erase_unused(module, &functions);
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Done,
}

struct Inliner<'m> {
    m: &'m mut Module,
    by_name: FxHashMap<String, Op>,
    wanted: &'m dyn Fn(&Module, Op) -> bool,
    state: FxHashMap<Op, State>,
    /// The functions being inlined into, outermost first.
    path: Vec<Op>,
}

impl Inliner<'_> {
    fn function(&mut self, func: Op) -> Result<(), Diagnostic> {
        self.state.insert(func, State::Open);
        self.path.push(func);
        let calls: Vec<tt::Call> =
            self.m.all_ops(func).into_iter().filter_map(|op| tt::Call::cast(self.m, op)).collect();
        for call in calls {
            let name = call.callee(self.m).0;
            let loc = self.m.op_loc(call.0);
            let Some(&callee) = self.by_name.get(&name) else {
                return Err(Diagnostic::at(self.m, loc, format!("there is no function @{name} to call")));
            };
            match self.state.get(&callee) {
                Some(State::Open) => return Err(self.recursion(callee, loc)),
                Some(State::Done) => {}
                None => self.function(callee)?,
            }
            if (self.wanted)(self.m, callee) {
                self.call(call, callee)?;
            }
        }
        self.path.pop();
        self.state.insert(func, State::Done);
        Ok(())
    }

    fn recursion(&self, callee: Op, loc: Loc) -> Diagnostic {
        let name = |op| self.m.symbol_name(op).unwrap_or("?").to_string();
        let start = self.path.iter().position(|&f| f == callee).unwrap_or(0);
        let mut names: Vec<String> = self.path[start..].iter().map(|&f| name(f)).collect();
        names.push(name(callee));
        Diagnostic::at(self.m, loc, format!("recursion: `{}` calls itself", name(callee)))
            .note(format!("the calls are {}", names.join(" → ")))
            .note("kernels have no stack to recurse on; write it as a loop")
    }

    fn call(&mut self, call: tt::Call, callee: Op) -> Result<(), Diagnostic> {
        let m = &mut *self.m;
        let call_loc = m.op_loc(call.0);
        let region = m.regions(callee)[0];
        let block = match m.region_blocks(region) {
            &[block] => block,
            [] => {
                let name = call.callee(m).0;
                return Err(Diagnostic::at(m, call_loc, format!("the function @{name} has no body")));
            }
            _ => {
                let name = call.callee(m).0;
                let what = format!("inlining @{name}, which has unstructured control flow");
                return Err(Diagnostic::unsupported(m, call_loc, what));
            }
        };
        let args = call.args(m).to_vec();
        let mut map: FxHashMap<Value, Value> = m.block_args(block).iter().copied().zip(args).collect();
        let mut locs: FxHashMap<Loc, Loc> = FxHashMap::default();
        let ops: Vec<Op> = m.block_ops(block).collect();
        let Some((&terminator, body)) = ops.split_last() else { return Ok(()) };
        for &op in body {
            let clone = m.clone_op(op, &mut map);
            m.insert_before(clone, call.0);
            for inner in m.all_ops(clone) {
                let callee = m.op_loc(inner);
                let loc = *locs
                    .entry(callee)
                    .or_insert_with(|| m.loc(LocKind::CallSite { callee, caller: call_loc }));
                m.set_op_loc(inner, loc);
            }
        }
        let results: Vec<Value> = m.operands(terminator).iter().map(|v| *map.get(v).unwrap_or(v)).collect();
        if results.len() != m.results(call.0).len() {
            return Err(Diagnostic::at(
                m,
                call_loc,
                "the call's results differ from what the function returns",
            ));
        }
        m.replace_op(call.0, &results);
        Ok(())
    }
}

fn is_noinline(m: &Module, func: Op) -> bool {
    matches!(m.op_attr(func, "noinline").map(|a| m.attr_kind(a)), Some(AttrKind::Bool(true) | AttrKind::Unit))
}

fn erase_unused(m: &mut Module, functions: &[Op]) {
    let mut called: Vec<String> = Vec::new();
    let root = m.root();
    m.walk(root, &mut |op| {
        if let Some(call) = tt::Call::cast(m, op) {
            called.push(call.callee(m).0);
        }
    });
    for &func in functions {
        let is_private = matches!(m.op_attr(func, "sym_visibility").map(|a| m.attr_kind(a)), Some(AttrKind::Str(v)) if v == "private");
        if is_private && !called.iter().any(|c| Some(c.as_str()) == m.symbol_name(func)) {
            m.erase_op(func);
        }
    }
}
