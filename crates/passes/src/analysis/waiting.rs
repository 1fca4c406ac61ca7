//! Who may wait here for what others do: for other programs, for the rest of a program's own warps.

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::{scf, tt, ttg, ttng};
use tilewright_ir::effects::{effects, is_pure};
use tilewright_ir::opdef::{Access, OpDef, Resource};
use tilewright_ir::{Module, Op, Opcode, Trait, Value, flow};

use super::calls;

/// Where programs may wait for others, in an operation and what is in it.
pub fn first_wait(m: &Module, root: Op) -> Option<Op> {
    m.all_ops(root).into_iter().find(|&op| may_wait_for_others(m, op))
}

/// Whether a program may wait here for others, itself or in a function that it calls: at a barrier or signal, by what an atomic operation
/// gives it, in a `while` loop that loads until it finds what another one has stored, or in code of the author's own.
fn may_wait_for_others(m: &Module, op: Op) -> bool {
    calls::does(m, op, |op| waits_itself(m, op))
}

fn waits_itself(m: &Module, op: Op) -> bool {
    use tt::Kind as K;
    match m.opcode(op) {
        Some(Opcode::Tt(K::ProgramBarrier | K::WaitSignal | K::AtomicCas)) => true,
        Some(Opcode::Tt(K::AtomicRmw)) => m.results(op).iter().any(|&old| !m.is_unused(old)),
        Some(Opcode::Tt(K::RawCall | K::ElementwiseInlineAsm)) => tt::accesses_memory(m, op),
        Some(Opcode::Tt(K::ExternElementwise)) => !is_pure(m, op),
        Some(Opcode::Scf(scf::Kind::While)) => m.all_ops(op).into_iter().any(|inner| {
            let loads = |op: Op| tt::Load::cast(m, op).is_some();
            calls::does(m, inner, loads) && m.results(inner).iter().any(|&found| decides(m, found, &[op]))
        }),
        _ => false,
    }
}

/// Whether a load in a `while` loop may be one that is made until it brings what another program stores.
pub fn polls(m: &Module, op: Op) -> bool {
    let alone = |load: tt::Load| !m.is_tensor(m.value_type(load.result(m)));
    tt::Load::cast(m, op).is_some_and(|load| load.is_fresh(m) || alone(load))
}

/// Whether a load is one that is made until it brings what another program stores: it decides how often a `while` loop turns.
pub fn spins(m: &Module, load: Op) -> bool {
    let outer = std::iter::successors(m.parent_op(load), |&op| m.parent_op(op));
    let loops: Vec<Op> = outer.filter(|&op| scf::While::cast(m, op).is_some()).collect();
    !loops.is_empty() && polls(m, load) && decides(m, m.result(load), &loops)
}

/// Whether it depends on a value how often one of these `while` loops turns.
fn decides(m: &Module, value: Value, loops: &[Op]) -> bool {
    let mut seen = FxHashSet::default();
    let mut work = vec![value];
    while let Some(v) = work.pop() {
        if !seen.insert(v) {
            continue;
        }
        for used in m.uses(v) {
            let edges = flow::edges_of_user(m, used.op);
            let passed = edges.iter().filter_map(|edge| edge.target(used.op, used.index as usize));
            let before = work.len();
            work.extend(passed);
            if work.len() > before {
                continue;
            }
            let ends = m.has_trait(used.op, Trait::Terminator);
            let Some(by) = (if ends { m.parent_op(used.op) } else { Some(used.op) }) else { continue };
            if ends && loops.contains(&by) {
                return true;
            }
            // A condition or a bound decides what passes into regions and out of them.
            work.extend(m.results(by));
            let blocks = m.regions(by).iter().flat_map(|&region| m.region_blocks(region));
            work.extend(blocks.flat_map(|&block| m.block_args(block)));
        }
    }
    false
}

/// Whether an operation may wait for, or is waited for by, other programs or the rest of its own: a barrier of the CTA, of its
/// cluster or of programs, or what else a program waits by. Loads must not run ahead of it.
pub fn synchronizes(m: &Module, op: Op) -> bool {
    let own = |op: Op| {
        matches!(m.opcode(op), Some(Opcode::Ttg(ttg::Kind::Barrier) | Opcode::Ttng(ttng::Kind::ClusterWait)))
    };
    calls::does(m, op, own) || may_wait_for_others(m, op)
}

/// Whether an operation waits for other warps of its program: for a slot of a ring, or at a barrier of the author's own. What these have written
/// before is seen behind it.
pub fn waits_for_warps(m: &Module, op: Op) -> bool {
    use ttg::Kind as K;
    matches!(
        m.opcode(op),
        Some(
            Opcode::Ttg(K::RingWait | K::RingAcquire | K::RingIsClosed)
                | Opcode::Ttng(ttng::Kind::WaitBarrier | ttng::Kind::NamedBarrier)
        )
    )
}

/// Whether something in an operation writes global memory, waits for others, or is not known.
pub fn settles(m: &Module, op: Op) -> bool {
    m.all_ops(op).into_iter().any(|op| {
        let groups =
            matches!(m.opcode(op), Some(Opcode::Ttg(ttg::Kind::AsyncCommitGroup | ttg::Kind::AsyncWait)));
        let outside = |def: &OpDef| {
            def.effects.iter().any(|e| {
                !matches!(e.access, Access::Read | Access::Allocate) && e.resource != Resource::Shared
            })
        };
        !groups && m.def(op).is_none_or(outside) && effects(m, op).writes
    })
}
