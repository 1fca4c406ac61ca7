//! What an operation does besides computing its results, asked of its declaration and of its regions.

use crate::attrs::AttrValue;
use crate::entity::Op;
use crate::module::Module;
use crate::opdef::{Access, Effect, Resource, Trait};

/// The effects of an operation with everything inside it, as far as moving and erasing need them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effects {
    /// Reads memory.
    pub reads: bool,
    /// Writes memory, or does something that is seen outside (prints, traps, waits). Unknown operations count here.
    pub writes: bool,
    /// Allocates a buffer.
    pub allocates: bool,
}

impl Effects {
    const UNKNOWN: Effects = Effects { reads: true, writes: true, allocates: true };

    /// No effects at all.
    pub fn is_none(self) -> bool {
        self == Effects::default()
    }

    fn join(&mut self, other: Effects) {
        self.reads |= other.reads;
        self.writes |= other.writes;
        self.allocates |= other.allocates;
    }
}

/// The effects of an operation.
pub fn effects(module: &Module, op: Op) -> Effects {
    let Some(def) = module.def(op) else { return Effects::UNKNOWN };
    let mut effects = Effects::default();
    for e in def.effects.iter().filter(|e| holds(module, op, e)) {
        match e.access {
            Access::Read => effects.reads = true,
            Access::Write | Access::Free | Access::Wait => effects.writes = true,
            Access::Allocate => effects.allocates = true,
        }
    }
    for &region in module.regions(op) {
        for &block in module.region_blocks(region) {
            for inner in module.block_ops(block) {
                effects.join(self::effects(module, inner));
            }
        }
    }
    effects
}

/// What an effect of an operation touches: what its declaration says, but shared memory where it goes through pointers into that.
pub fn resource(module: &Module, op: Op, effect: &Effect) -> Resource {
    let group = module.def(op).zip(effect.operand).and_then(|(def, name)| def.group(name));
    let mut operands = group.into_iter().flat_map(|group| module.operand_group(op, group));
    if operands.any(|&v| module.is_shared_pointer(module.value_type(v))) {
        return Resource::Shared;
    }
    effect.resource
}

/// Whether an operation has no effects: it may be erased when unused and merged with an equal one.
pub fn is_pure(module: &Module, op: Op) -> bool {
    effects(module, op).is_none()
}

/// Whether an operation may be erased once its results are unused: it writes nothing. (An allocation may: its buffer is
/// then unused too.)
pub fn is_erasable(module: &Module, op: Op) -> bool {
    if module.has_trait(op, Trait::Terminator) {
        return false;
    }
    let e = effects(module, op);
    // A buffer that is allocated with a source writes it, which only its users see.
    let own_write = module.def(op).is_some_and(|d| d.effects.iter().any(|e| e.access == Access::Allocate));
    !e.writes || own_write
}

/// Whether an operation may run where it did not before: it is pure, and no value of its operands makes it fault.
pub fn is_speculatable(module: &Module, op: Op) -> bool {
    if module.has_trait(op, Trait::FaultsOnZero) {
        // Division by zero faults on the CPU executor; the smallest integer by -1 does too.
        return module.constant_int(module.operands(op)[1]).is_some_and(|d| d != 0 && d != -1);
    }
    is_pure(module, op)
}

/// Whether a declared effect is there under the operation's attributes.
fn holds(module: &Module, op: Op, effect: &Effect) -> bool {
    effect
        .when
        .is_none_or(|(attr, wanted)| bool::read(module, module.op_attr(op, attr)).unwrap_or(true) == wanted)
}
