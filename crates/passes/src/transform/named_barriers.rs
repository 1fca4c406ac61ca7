//! Barriers of the hardware that a kernel names itself (`tle.gpu.barrier_wait` and `barrier_arrive` without `phaseIdx`) get their numbers.
//!
//! Why here: in front of everything that places barriers, and where control flow is all that a barrier may have passed through. On the CPU
//! executor, too: who comes to a barrier decides how many it waits for.
//!
//! What comes to a barrier are whole partitions: those that wait or arrive at it anywhere. A slot of an allocation is such a barrier or one in
//! memory, not both; as a barrier of the hardware it needs no memory, and its initialization goes.
//!
//! ```text
//! %bars = ttg.local_alloc : () -> !ttg.memdesc<2x1xi64, …>
//! %b = ttg.memdesc_index %bars[%c1]                         (the default partition waits, a worker of 4 warps arrives)
//! ttng.init_barrier %b, 1
//! ttng.named_barrier %b
//! =>
//! ttng.named_barrier %b {number = 0, parties = 2, warps = 8}
//! ```

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{ttg, ttng};
use tilewright_ir::{Diagnostic, Module, Op, Opcode, Value};

use crate::analysis::scope;
use crate::pass::Pass;

/// The pass.
pub const PASS: Pass = Pass {
    name: "named-barriers",
    summary: "number the hardware's barriers that the kernel names itself",
    requires: &[],
    ensures: &[],
    run: |m, _, o| run(m, o.num_warps),
};

/// So many of the 16 barriers of a CTA are left for the kernel (PTX ISA, "bar"): the others are those of the function, its partitions, and where
/// these begin and end.
pub const MOST: usize = 8;

/// A slot of an allocation of barriers.
type Slot = (Op, i64);
/// What the warps of an operation are: the kernel's own, or a partition of a `ttg.warp_specialize`.
type Party = Option<(Op, usize)>;

/// Numbers the named barriers of a module whose kernel has `num_warps` warps.
///
/// # Errors
/// A barrier whose slot is not known, that is used in both ways, or one too many.
pub fn run(module: &mut Module, num_warps: u32) -> Result<(), Diagnostic> {
    let ops = module.all_ops(module.root());
    let named: Vec<ttng::NamedBarrier> =
        ops.iter().filter_map(|&op| ttng::NamedBarrier::cast(module, op)).collect();
    if named.is_empty() {
        return Ok(());
    }
    let mut slots: Vec<Slot> = Vec::new();
    let mut parties: FxHashMap<Slot, Vec<(Party, u32)>> = FxHashMap::default();
    for &barrier in &named {
        let slot = slot_of(module, barrier)?;
        if !slots.contains(&slot) {
            slots.push(slot);
        }
        let party = party(module, barrier.0, num_warps);
        let all = parties.entry(slot).or_default();
        if !all.contains(&party) {
            all.push(party);
        }
    }
    if let Some(&barrier) =
        named.iter().find(|&&b| slots.iter().skip(MOST).any(|&s| slot_of(module, b).ok() == Some(s)))
    {
        let text = format!("more than {MOST} barriers without `phaseIdx`: the hardware has no more");
        return Err(Diagnostic::at(module, module.op_loc(barrier.0), text)
            .note("those with `phaseIdx` lie in shared memory, as many as there is room for"));
    }
    for &op in &ops {
        one_kind(module, op, &slots)?;
    }
    for barrier in named {
        let slot = slot_of(module, barrier)?;
        let number = slots.iter().position(|&s| s == slot).unwrap_or(0);
        let of_slot = &parties[&slot];
        let warps: u32 = of_slot.iter().map(|party| party.1).sum();
        module.set_i32_attr(barrier.0, "number", number as i32);
        module.set_i32_attr(barrier.0, "parties", of_slot.len() as i32);
        module.set_i32_attr(barrier.0, "warps", warps as i32);
    }
    for op in ops {
        if let Some(init) = ttng::InitBarrier::cast(module, op)
            && place(module, init.alloc(module))
                .is_some_and(|(alloc, at)| at.is_some_and(|at| slots.contains(&(alloc, at))))
        {
            module.erase_op(op);
        }
    }
    Ok(())
}

/// The allocation that a barrier is of, and its slot where that is a constant.
fn place(module: &Module, barrier: Value) -> Option<(Op, Option<i64>)> {
    let value = scope::captured(module, barrier);
    let op = module.defining_op(value)?;
    if let Some(index) = ttg::MemdescIndex::cast(module, op) {
        let (alloc, _) = place(module, index.src(module))?;
        return Some((alloc, module.constant_int(scope::captured(module, index.index(module)))));
    }
    ttg::LocalAlloc::cast(module, op).map(|alloc| (alloc.0, None))
}

fn slot_of(module: &Module, barrier: ttng::NamedBarrier) -> Result<Slot, Diagnostic> {
    match place(module, barrier.alloc(module)) {
        Some((alloc, Some(at))) => Ok((alloc, at)),
        _ => {
            let text =
                "a barrier without `phaseIdx` must be known at compile time: bars[i] with a constant i";
            Err(Diagnostic::at(module, module.op_loc(barrier.0), text)
                .note("with `phaseIdx` a barrier may be numbered at run time"))
        }
    }
}

/// Whose warps run an operation, and how many they are.
fn party(module: &Module, op: Op, num_warps: u32) -> (Party, u32) {
    match scope::enclosing(module, op).first() {
        Some(&(w, region)) if region > 0 => {
            (Some((w.0, region)), w.partition_num_warps(module)[region - 1] as u32)
        }
        _ => (None, num_warps),
    }
}

/// Checks that an operation on a barrier in memory is not on one of these slots.
fn one_kind(module: &Module, op: Op, slots: &[Slot]) -> Result<(), Diagnostic> {
    use ttng::Kind as K;
    let in_memory =
        matches!(module.opcode(op), Some(Opcode::Ttng(K::WaitBarrier | K::ArriveBarrier | K::BarrierExpect)));
    if !in_memory {
        return Ok(());
    }
    let Some((alloc, at)) = place(module, module.operands(op)[0]) else { return Ok(()) };
    let same = |slot: &&Slot| slot.0 == alloc && at.is_none_or(|at| at == slot.1);
    let Some(slot) = slots.iter().find(same) else { return Ok(()) };
    let text = format!(
        "barrier {} of this allocation is used without `phaseIdx` elsewhere: it can be only one of both",
        slot.1
    );
    Err(Diagnostic::at(module, module.op_loc(op), text).note("allocate a barrier of its own for each use"))
}
