//! Rings that a kernel makes, and whose writer and readers are the same warps, go: the order of the program is that of their accesses,
//! and what remains is to make sure that it can be. (Those whose ends are different warps stay for [`lower_rings`](super::lower_rings).)
//!
//! The warps would wait for themselves where the writer acquires a slot that a reader has not released, or a reader waits for one that
//! was not committed. So nothing waits: it is
//!
//! - **known** at compile time that it doesn't come to that (`balanced`: each chunk goes through the ring before the next one
//!   begins; `known`: all numbers are known, and the program is followed), and nothing is left of the ring;
//! - known that it does (`known`), which is an error with both places; or
//! - **checked** when the kernel runs (`state`): each thread has the state of the slots in registers, and traps instead of waiting.
//!
//! Why here: before the accesses of the ring's fields are moved by anything, and before buffers get layouts, so that they are buffers
//! like any other to all that follows, which orders their accesses by barriers.
//!
//! ```text
//! %ring = ttg.ring_create %a {slots = 2 : i32}
//! scf.for %i = ... {                                scf.for %i = ... {
//!   ttg.ring_acquire %ring[%slot], %phase             %w = ttg.memdesc_index %a[%slot]
//!   %w = ttg.memdesc_index %a[%slot]                  ttg.local_store %x, %w
//!   ttg.local_store %x, %w                     =>     %y = ttg.local_load %w
//!   ttg.ring_commit %ring[%slot]                    }
//!   ttg.ring_wait %ring[%slot], %phase
//!   %y = ttg.local_load %w
//!   ttg.ring_release %ring[%slot]
//! }
//! ```

mod balanced;
mod known;
mod state;

use tilewright_ir::dialect::{ttg, ttng};
use tilewright_ir::{Builder, Diagnostic, Module, Op, Opcode, Trait, Type, TypeKind, Value};

use crate::analysis::{rings, scope};
use crate::hopper::captures;
use crate::pass::{Pass, Property};
use crate::transform::allocate_shared::{buffer_users, is_view};

/// The pass.
pub const PASS: Pass = Pass {
    name: "order-rings",
    summary: "check the order of rings of one group of warps, and drop them",
    requires: &[Property::CallsStay],
    ensures: &[],
    run: |m, _, _| run(m),
};

/// Takes the rings away whose ends are the same warps.
///
/// # Errors
/// A ring whose ends would wait for each other for ever; one of several groups of warps whose slots can't be followed.
pub fn run(module: &mut Module) -> Result<(), Diagnostic> {
    let all = module.all_ops(module.root());
    for op in all {
        let Some(create) = ttg::RingCreate::cast(module, op) else { continue };
        let ring = Ring::new(module, create);
        if !ring.is_in_order(module) {
            check_apart(module, create)?;
            continue;
        }
        let is_proven = match balanced::is_balanced(module, &ring) {
            true => true,
            false => known::follow(module, &ring)?,
        };
        if is_proven {
            ring.forget(module);
        } else {
            state::check(module, &ring)?;
        }
        for w in scope::specializations(module) {
            captures::release(module, w, create.ring(module));
        }
        module.erase_op(create.0);
    }
    Ok(())
}

/// Checks a ring whose ends are different warps: its waits are all that orders accesses to its slots, so it must be known which are.
fn check_apart(module: &Module, create: ttg::RingCreate) -> Result<(), Diagnostic> {
    for field in rings::Ring::of(module, create)?.fields {
        let users = buffer_users(module, field.alloc.result(module));
        if let Some(&op) = users.iter().find(|&&op| hands_on(module, op)) {
            let what = format!("a slot of {} that a loop or a branch hands on", rings::shown(module, create));
            return Err(Diagnostic::unsupported(module, module.op_loc(op), what)
                .note("hand on what acquire or wait gives, and take its fields where they are used"));
        }
        if let Some(op) =
            users.into_iter().find(|&op| ttng::AsyncTmaCopyGlobalToLocal::cast(module, op).is_some())
        {
            let what = format!("tle.gpu.copy(barrier=…) to a slot of {}", rings::shown(module, create));
            return Err(Diagnostic::unsupported(module, module.op_loc(op), what)
                .note("without `barrier` the readers of the slot wait for the copy"));
        }
    }
    Ok(())
}

/// Whether an operation makes a buffer of one that isn't a view of it: where control flow has come from says which it is.
fn hands_on(module: &Module, op: Op) -> bool {
    let is_buffer = |v: &Value| matches!(module.type_kind(module.value_type(*v)), TypeKind::MemDesc { .. });
    let ends = module.has_trait(op, Trait::Terminator);
    if ends || !module.regions(op).is_empty() {
        return ttg::WarpSpecialize::cast(module, op).is_none() && module.operands(op).iter().any(is_buffer);
    }
    !is_view(module, op) && module.results(op).iter().any(is_buffer)
}

/// What is done to a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Acquire,
    Commit,
    Close,
    Wait(usize),
    Release(usize),
    IsClosed,
}

/// A ring and the operations on it.
struct Ring {
    create: ttg::RingCreate,
    slots: u32,
    readers: usize,
    one_shot: bool,
    uses: Vec<Op>,
}

impl Ring {
    fn new(module: &Module, create: ttg::RingCreate) -> Ring {
        Ring {
            create,
            slots: create.slots(module).unsigned_abs(),
            readers: create.readers(module).map_or(1, |names| names.len()),
            one_shot: create.one_shot(module),
            uses: rings::users(module, create.ring(module)),
        }
    }

    /// Whether the writer and all readers are the same warps.
    fn is_in_order(&self, module: &Module) -> bool {
        let mut places = self.uses.iter().map(|&op| rings::place(module, op));
        let first = places.next();
        places.all(|place| Some(&place) == first.as_ref())
    }

    /// Whether an operation, or one inside of it, is on the ring.
    fn concerns(&self, module: &Module, op: Op) -> bool {
        self.uses.iter().any(|&u| u == op || module.is_ancestor(op, u))
    }

    /// What an operation on the ring does.
    fn action(&self, module: &Module, op: Op) -> Option<Action> {
        let reader = rings::Ring::reader_of(module, op);
        Some(match module.opcode(op).filter(|_| self.uses.contains(&op))? {
            Opcode::Ttg(ttg::Kind::RingAcquire) => Action::Acquire,
            Opcode::Ttg(ttg::Kind::RingCommit) => Action::Commit,
            Opcode::Ttg(ttg::Kind::RingClose) => Action::Close,
            Opcode::Ttg(ttg::Kind::RingWait) => Action::Wait(reader),
            Opcode::Ttg(ttg::Kind::RingRelease) => Action::Release(reader),
            Opcode::Ttg(ttg::Kind::RingIsClosed) => Action::IsClosed,
            _ => return None,
        })
    }

    /// Slot and phase of an operation on the ring.
    fn position(module: &Module, op: Op) -> (Value, Option<Value>) {
        let operands = module.operands(op);
        let phase = module.def(op).and_then(|def| def.group("phase"));
        let phase = phase.and_then(|group| module.operand_group(op, group).first().copied());
        (operands[1], phase)
    }

    /// Takes the operations away. Nothing is closed in a ring that is known to be in order but by what [`known`] has followed.
    fn forget(&self, module: &mut Module) {
        for &op in &self.uses {
            if ttg::RingIsClosed::cast(module, op).is_some() {
                let closed = module.result(op);
                let open = Builder::before(module, op).int(0, Type::I1);
                module.replace_all_uses(closed, open);
            }
            module.erase_op(op);
        }
    }
}
