//! Refuses kernels whose loops multiply what is gathered: they go thread by thread.
//!
//! Why here: [`raise_to_descriptors`](tilewright_passes::transform::raise_to_descriptors) has found all blocks of matrices that there are. What is left of a
//! product's operands is gathered, sixteen addresses an instruction, an element each, and held as so many blocks as there are elements in sixteen. Thread
//! by thread a lane has its elements beside each other, loads vectors of them, and has products of whole warps as well.
//!
//! ```text
//! scf.for … { %k = tt.load %pointers; %s = tt.dot %q, %k, … }     => not supported yet: a product of what is gathered, in a loop
//! scf.for … { %k = tt.descriptor_load …; %s = tt.dot %q, %k, … }  => the same
//! ```

use tilewright_ir::dialect::tt;
use tilewright_ir::flow;
use tilewright_ir::{Diagnostic, Module, Op, Opcode, Trait, Value};
use tilewright_passes::pass::Pass;
use tilewright_passes::target::{MmaKind, TargetInfo, dot_kind};

/// The pass.
pub const PASS: Pass = Pass {
    name: "gathered-dots",
    summary: "refuse loops that multiply what is gathered, which is better done thread by thread",
    requires: &[],
    ensures: &[],
    run: |m, t, _| run(m, t),
};

/// Looks at every product.
///
/// # Errors
/// One in a loop, for which there is an instruction thread by thread, and that multiplies what is gathered.
pub fn run(module: &Module, target: &TargetInfo) -> Result<(), Diagnostic> {
    let Some(threads) = &target.otherwise else { return Ok(()) };
    for dot in module.all_ops(module.root()).into_iter().filter_map(|op| tt::Dot::cast(module, op)) {
        let columns = matches!(dot_kind(module, threads, dot), MmaKind::Columns { .. });
        let gathered = [dot.a(module), dot.b(module)].into_iter().find_map(|v| gathered(module, v));
        let Some(load) = gathered.filter(|_| columns) else { continue };
        if is_in_loop(module, load) {
            return Err(Diagnostic::unsupported(
                module,
                module.op_loc(load),
                "a product of what is gathered, in a loop",
            ));
        }
    }
    Ok(())
}

fn is_in_loop(m: &Module, op: Op) -> bool {
    std::iter::successors(m.parent_op(op), |&op| m.parent_op(op)).any(|op| flow::is_loop(m, op))
}

/// The load through pointers that a value is, in another type or turned.
fn gathered(m: &Module, mut value: Value) -> Option<Op> {
    loop {
        let op = m.defining_op(value)?;
        if tt::Load::cast(m, op).is_some() {
            return Some(op);
        }
        let same = tt::Trans::cast(m, op).is_some()
            || matches!(m.opcode(op), Some(Opcode::Tt(tt::Kind::FpToFp)))
            || m.has_trait(op, Trait::Elementwise) && m.operands(op).len() == 1;
        value = m.operands(op).first().copied().filter(|_| same)?;
    }
}
