//! What a ring hands over beside its fields: memory that is no field of a ring, which the warps that commit or release its slots and others that run
//! at the same time touch, too. Of that the copy engine's mbarrier knows nothing, nor does the one thread that hands a slot to it. What
//! others reach of it through the asynchronous proxy is handed over behind a fence (PTX ISA, "Async proxy").

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::tt;
use tilewright_ir::effects::resource;
use tilewright_ir::opdef::{Access, Completion, Proxy, Resource};
use tilewright_ir::{Module, Op, TypeKind, Value, flow};

use super::{Place, of_buffer, place};
use crate::analysis::global_bases::GlobalBases;
use crate::analysis::{calls, local_pointers, scope};
use crate::transform::allocate_shared::allocation;

/// Memory that operations touch: buffers by what allocates them, global memory by its bases.
#[derive(Default)]
struct Touched {
    read: FxHashSet<Value>,
    written: FxHashSet<Value>,
    /// Somewhere, by a pointer of which it is not known where it leads, or by code of the author's own.
    anywhere: bool,
    /// Buffers that are read and written through the asynchronous proxy: by the copy engine, and by products of warp groups.
    read_asynchronously: FxHashSet<Value>,
    written_asynchronously: FxHashSet<Value>,
}

impl Touched {
    fn add(&mut self, value: Value, access: Access) {
        match access {
            Access::Write => self.written.insert(value),
            _ => self.read.insert(value),
        };
    }

    fn is_any(&self) -> bool {
        self.anywhere || !self.read.is_empty() || !self.written.is_empty()
    }

    /// Whether one of both writes what the other one touches.
    fn meets(&self, other: &Touched) -> bool {
        let meets = |a: &FxHashSet<Value>, b: &FxHashSet<Value>| !a.is_disjoint(b);
        self.anywhere && other.is_any()
            || other.anywhere && self.is_any()
            || meets(&self.written, &other.written)
            || meets(&self.written, &other.read)
            || meets(&self.read, &other.written)
    }

    /// Whether others reach through the asynchronous proxy what this has touched.
    fn is_reached_by_proxy(&self, other: &Touched) -> bool {
        let Touched { read_asynchronously: read, written_asynchronously: written, .. } = other;
        let reached = |v| read.contains(v) || written.contains(v);
        self.anywhere && !(read.is_empty() && written.is_empty())
            || self.written.iter().any(reached)
            || self.read.iter().any(|v| written.contains(v))
    }
}

/// What operations that hand over slots hand over beside these.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Beside {
    /// Whether their warps have touched before what others of the program write, or write what those touch.
    pub is_shared: bool,
    /// Whether others reach some of that through the asynchronous proxy, which sees it behind a fence: they read what has been written, or write
    /// what has been loaded or written.
    pub by_proxy: bool,
}

/// Finds out what warps hand over beside slots by these operations.
pub(super) fn look(module: &Module, at: &Place, handing: &[Op]) -> Beside {
    let Some(function) = handing.first().and_then(|&op| scope::function(module, op)) else {
        return Beside::default();
    };
    let global = GlobalBases::of(module);
    let ops = module.all_ops(function);
    let last = ops.iter().rposition(|op| handing.contains(op)).unwrap_or(0);
    let (mut own, mut others) = (Touched::default(), Touched::default());
    for (i, &op) in ops.iter().enumerate() {
        // What stands before all warps part and behind is in order.
        if !module.regions(op).is_empty() || scope::enclosing(module, op).is_empty() {
            continue;
        }
        if place(module, op) != *at {
            touch(module, &global, op, &mut others);
        } else if i < last || handing.iter().any(|&hands| in_one_loop(module, op, hands)) {
            touch(module, &global, op, &mut own);
        }
    }
    Beside { is_shared: own.meets(&others), by_proxy: own.is_reached_by_proxy(&others) }
}

/// Whether a loop holds both.
fn in_one_loop(module: &Module, a: Op, b: Op) -> bool {
    std::iter::successors(module.parent_op(a), |&op| module.parent_op(op))
        .any(|outer| flow::is_loop(module, outer) && module.is_ancestor(outer, b))
}

/// Adds what the threads of an operation touch, but fields of rings.
fn touch(module: &Module, global: &GlobalBases<'_>, op: Op, touched: &mut Touched) {
    for access in [Access::Read, Access::Write] {
        for base in global.touched(op, access) {
            touched.add(base, access);
        }
    }
    // Nobody knows where the author's own code goes.
    touched.anywhere |= calls::does(module, op, |op| is_own_code(module, op));
    if tt::Call::cast(module, op).is_some() {
        for &given in module.operands(op) {
            for buffer in buffers(module, given, &mut touched.anywhere) {
                touched.add(buffer, Access::Write);
            }
        }
    }
    let Some(def) = module.def(op) else { return };
    for effect in def.effects.iter().filter(|e| resource(module, op, e) == Resource::Shared) {
        if !matches!(effect.access, Access::Read | Access::Write) {
            continue;
        }
        let operands = effect.operand.and_then(|name| def.group(name));
        for &v in operands.map_or(&[][..], |group| module.operand_group(op, group)) {
            let mut unknown = false;
            for buffer in buffers(module, v, &mut unknown) {
                // What an mbarrier tells of is nothing that threads have done.
                if effect.completion != Completion::Mbarrier {
                    touched.add(buffer, effect.access);
                }
                match (effect.proxy, effect.access) {
                    (Proxy::Async, Access::Write) => touched.written_asynchronously.insert(buffer),
                    (Proxy::Async, _) => touched.read_asynchronously.insert(buffer),
                    _ => false,
                };
            }
            touched.anywhere |= unknown && effect.completion != Completion::Mbarrier;
        }
    }
}

fn is_own_code(module: &Module, op: Op) -> bool {
    let is_memory = |&v: &Value| {
        let ty = module.value_type(v);
        module.is_ptr(ty) || matches!(module.type_kind(ty), TypeKind::MemDesc { .. })
    };
    tt::accesses_memory(module, op)
        || tt::RawCall::cast(module, op).is_some() && module.operands(op).iter().any(is_memory)
}

/// The buffers that a value is a view of or points into, but fields of rings; it is `unknown` where that can't be told.
fn buffers(module: &Module, value: Value, unknown: &mut bool) -> Vec<Value> {
    let ty = module.value_type(value);
    let views = if module.is_shared_pointer(ty) {
        local_pointers::buffers(module, value)
    } else if matches!(module.type_kind(ty), TypeKind::MemDesc { .. }) {
        Some(vec![value])
    } else {
        return Vec::new();
    };
    let mut found = Vec::new();
    *unknown |= views.is_none();
    for view in views.into_iter().flatten() {
        match allocation(module, view) {
            Some(_) if of_buffer(module, view).is_some() => {}
            Some(alloc) => found.push(alloc.result(module)),
            None => *unknown = true,
        }
    }
    found
}
