//! Where pointers into global memory come from, and which memory operations touch by that: two pointers may lead to the same place where
//! they come from the same *base*, a kernel's argument or a value that is computed otherwise (a pointer that was loaded). What a function is
//! given comes from where its callers have it from, and what it gives from what it was given.
//!
//! Whether different arguments lead to the same memory nobody says: neither a kernel's author nor the launch, and most that do not
//! would pay for the few that might. So this is for orders that cost something and that a program relies on only where it names one
//! tensor twice: what goes by it says so.

use std::cell::OnceCell;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::dialect::{arith, tt, ttng};
use tilewright_ir::effects::resource;
use tilewright_ir::opdef::{Access, Resource};
use tilewright_ir::{Block, Module, Op, Opcode, Trait, TypeKind, Value, ValueDef, flow, launch};

use crate::analysis::{calls, scope, waiting};

/// A module's bases.
#[derive(Debug)]
pub struct GlobalBases<'m> {
    module: &'m Module,
    /// The calls of each function, once an argument asks for them.
    calls: OnceCell<FxHashMap<Op, Vec<Op>>>,
}

impl<'m> GlobalBases<'m> {
    /// Of a module as it is.
    pub const fn of(module: &'m Module) -> Self {
        GlobalBases { module, calls: OnceCell::new() }
    }

    /// The bases of pointers, or of a descriptor.
    pub fn bases(&self, value: Value) -> Vec<Value> {
        let module = self.module;
        let mut found = Vec::new();
        let mut seen = FxHashSet::default();
        let mut work = vec![value];
        while let Some(v) = work.pop() {
            let v = scope::captured(module, v);
            if !seen.insert(v) {
                continue;
            }
            let edges = flow::edges_into(module, v);
            if !edges.is_empty() {
                work.extend(edges.iter().map(|(edge, i)| edge.from(module)[*i]));
                continue;
            }
            let from = match module.value_def(v) {
                // The tensor map of a descriptor that the kernel makes, and the launch knows.
                ValueDef::Argument(block, i) => {
                    let made =
                        module.uses(v).iter().filter_map(|u| ttng::TensormapByLaunch::cast(module, u.op));
                    let made = made.filter(|made| made.map(module) == v).map(|made| made.base(module));
                    made.chain(self.given(block, i as usize)).collect()
                }
                ValueDef::Result(op, _) => sources(module, op),
            };
            if from.is_empty() {
                found.push(v);
            }
            work.extend(from);
        }
        found
    }

    /// What the callers of a function that is no kernel give for an argument of its first block.
    fn given(&self, block: Block, index: usize) -> Vec<Value> {
        let module = self.module;
        let func = module.block_parent_op(block).filter(|&op| tt::Func::cast(module, op).is_some());
        let Some(func) = func.filter(|&func| !launch::is_kernel(module, func)) else { return Vec::new() };
        if module.region_blocks(tt::Func(func).body(module)).first() != Some(&block) {
            return Vec::new();
        }
        let calls = self.calls.get_or_init(|| calls::by_callee(module)).get(&func).into_iter().flatten();
        calls.filter_map(|&call| module.operands(call).get(index).copied()).collect()
    }

    /// The bases of what an operation itself reads (or writes) of global memory. A call does what its callee does, to all that it is given: by numbers, too, if
    /// there such become addresses.
    pub fn touched(&self, op: Op, access: Access) -> Vec<Value> {
        use ttng::Kind as K;
        let module = self.module;
        // Tensor maps are not what a program works on.
        if let Some(Opcode::Ttng(K::TensormapCreate | K::TensormapByLaunch | K::TensormapFenceproxyAcquire)) =
            module.opcode(op)
        {
            return Vec::new();
        }
        if tt::Call::cast(module, op).is_some() {
            if !calls::runs(module, op, |inner| does(module, inner, access)) {
                return Vec::new();
            }
            let by_numbers = calls::runs(module, op, |inner| tt::IntToPtr::cast(module, inner).is_some());
            let leads = |&v: &Value| is_address(module, v) || by_numbers && !is_constant(module, v);
            return unique(module.operands(op).iter().copied().filter(leads).flat_map(|v| self.bases(v)));
        }
        let Some(def) = module.def(op) else { return Vec::new() };
        let effects =
            def.effects.iter().filter(|e| e.access == access && resource(module, op, e) == Resource::Global);
        let groups = effects.filter_map(|e| def.group(e.operand?));
        let operands = groups.flat_map(|group| module.operand_group(op, group).to_vec());
        unique(operands.filter(|&v| is_address(module, v)).flat_map(|v| self.bases(v)))
    }

    /// The bases of what operations, with all that is in them, write of global memory.
    pub fn written(&self, within: &[Op]) -> Vec<Value> {
        let all = within.iter().flat_map(|&root| self.module.all_ops(root));
        unique(all.flat_map(|op| self.touched(op, Access::Write)))
    }

    /// What a loop must not load ahead: what it writes itself and, where it waits for other warps of its program, what these may write.
    pub fn written_before(&self, l: Op) -> Vec<Value> {
        let module = self.module;
        let waits = module.all_ops(l).into_iter().any(|op| waiting::waits_for_warps(module, op));
        let function = scope::function(module, l).filter(|_| waits);
        self.written(&[function.unwrap_or(l)])
    }

    /// Whether a load may read what is written through some of these bases: then it must not run ahead of that.
    pub fn may_read(&self, load: Op, written: &[Value]) -> bool {
        !written.is_empty() && self.touched(load, Access::Read).iter().any(|base| written.contains(base))
    }
}

/// The pointers that the result of an operation is made from.
fn sources(module: &Module, op: Op) -> Vec<Value> {
    if let Some(make) = tt::MakeTensorDescriptor::cast(module, op) {
        return vec![make.base(module)];
    }
    if let Some(map) = ttng::ReinterpretTensorDescriptor::cast(module, op) {
        let map = scope::captured(module, map.desc_ptr(module));
        let made = module.uses(map).iter().filter_map(|u| ttng::TensormapCreate::cast(module, u.op));
        return made.map(|made| made.global_address(module)).collect();
    }
    // (A function gives what it is given, as far as its caller knows.)
    if !module.has_trait(op, Trait::Pure) && tt::Call::cast(module, op).is_none() {
        return Vec::new();
    }
    // An address that is computed as a number comes from all that the number does, but constants.
    let computed = tt::IntToPtr::cast(module, op).is_some()
        || !module.results(op).iter().any(|&result| is_address(module, result));
    let leads = |&v: &Value| is_address(module, v) || computed && !is_constant(module, v);
    module.operands(op).iter().copied().filter(leads).collect()
}

/// Whether a value is a constant.
fn is_constant(module: &Module, value: Value) -> bool {
    module.defining_op(value).is_some_and(|op| arith::Constant::cast(module, op).is_some())
}

/// Whether a value is pointers or a descriptor.
fn is_address(module: &Module, value: Value) -> bool {
    let ty = module.value_type(value);
    module.is_ptr(ty) || matches!(module.type_kind(ty), TypeKind::TensorDesc { .. })
}

/// Whether an operation reads or writes global memory.
fn does(module: &Module, op: Op, access: Access) -> bool {
    module.def(op).is_some_and(|def| {
        def.effects.iter().any(|e| e.access == access && resource(module, op, e) == Resource::Global)
    })
}

fn unique(values: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut found = Vec::new();
    for v in values {
        if !found.contains(&v) {
            found.push(v);
        }
    }
    found
}
