//! Which programs may wait for others.

use tilewright_ir::dialect::tt;
use tilewright_ir::{Module, Op, Opcode};

/// Whether a program may wait here for others: at a barrier or signal, or by what an atomic operation gives it.
pub fn may_wait_for_others(m: &Module, op: Op) -> bool {
    match m.opcode(op) {
        Some(Opcode::Tt(tt::Kind::ProgramBarrier | tt::Kind::WaitSignal | tt::Kind::AtomicCas)) => true,
        Some(Opcode::Tt(tt::Kind::AtomicRmw)) => m.results(op).iter().any(|&old| !m.is_unused(old)),
        _ => false,
    }
}
