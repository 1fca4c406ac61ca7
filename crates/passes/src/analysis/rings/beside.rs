//! What a ring hands over beside its fields: memory that is no field of a ring, which the warps that commit or release its slots and others that run
//! at the same time touch, too. Of that the copy engine's mbarrier knows nothing, nor does the one thread that hands a slot to it.

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::tt;
use tilewright_ir::effects::resource;
use tilewright_ir::opdef::{Access, Completion, Resource};
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
}

/// Whether the warps that hand over slots by these operations have touched before what others of the program write, or write what those touch.
pub(super) fn is_shared(module: &Module, at: &Place, handing: &[Op]) -> bool {
    let Some(function) = handing.first().and_then(|&op| scope::function(module, op)) else { return false };
    let ops = module.all_ops(function);
    let last = ops.iter().rposition(|op| handing.contains(op)).unwrap_or(0);
    let (mut own, mut others) = (Touched::default(), Touched::default());
    for (i, &op) in ops.iter().enumerate() {
        // What stands before all warps part and behind is in order.
        if !module.regions(op).is_empty() || scope::enclosing(module, op).is_empty() {
            continue;
        }
        if place(module, op) != *at {
            touch(module, op, &mut others);
        } else if i < last || handing.iter().any(|&hands| in_one_loop(module, op, hands)) {
            touch(module, op, &mut own);
        }
    }
    own.meets(&others)
}

/// Whether a loop holds both.
fn in_one_loop(module: &Module, a: Op, b: Op) -> bool {
    std::iter::successors(module.parent_op(a), |&op| module.parent_op(op))
        .any(|outer| flow::is_loop(module, outer) && module.is_ancestor(outer, b))
}

/// Adds what the threads of an operation touch, but fields of rings.
fn touch(module: &Module, op: Op, touched: &mut Touched) {
    for access in [Access::Read, Access::Write] {
        for base in GlobalBases::of(module).touched(op, access) {
            touched.add(base, access);
        }
    }
    // Nobody knows where the author's own code goes.
    touched.anywhere |= calls::does(module, op, |op| is_own_code(module, op));
    if tt::Call::cast(module, op).is_some() {
        for &given in module.operands(op) {
            shared(module, given, Access::Write, touched);
        }
    }
    let Some(def) = module.def(op) else { return };
    for effect in def.effects.iter().filter(|e| resource(module, op, e) == Resource::Shared) {
        let by_threads = effect.completion != Completion::Mbarrier;
        if !by_threads || !matches!(effect.access, Access::Read | Access::Write) {
            continue;
        }
        let operands = effect.operand.and_then(|name| def.group(name));
        for &v in operands.map_or(&[][..], |group| module.operand_group(op, group)) {
            shared(module, v, effect.access, touched);
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

/// Adds the buffers that a value is a view of or points into.
fn shared(module: &Module, value: Value, access: Access, touched: &mut Touched) {
    let ty = module.value_type(value);
    let views = if module.is_shared_pointer(ty) {
        local_pointers::buffers(module, value)
    } else if matches!(module.type_kind(ty), TypeKind::MemDesc { .. }) {
        Some(vec![value])
    } else {
        return;
    };
    let Some(views) = views else {
        touched.anywhere = true;
        return;
    };
    for view in views {
        match allocation(module, view) {
            Some(_) if of_buffer(module, view).is_some() => {}
            Some(alloc) => touched.add(alloc.result(module), access),
            None => touched.anywhere = true,
        }
    }
}
