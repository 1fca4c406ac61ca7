//! Which warps run the partitions of `ttg.warp_specialize`, and with how many registers.
//!
//! Why here: before anything asks how many threads a CTA has (shared memory, barriers, the lowering), after the pass that
//! makes partitions.
//!
//! Partitions take the warps behind the default region's, largest first: one of four warps or more begins at a multiple of
//! four (a warp group), smaller ones share warp groups. Two `ttg.warp_specialize` in one function use the same warps, one
//! after the other.
//!
//! Registers: a kernel of T threads starts with as many as fit, R = 65536 / T. Where a partition asks for fewer, its warp
//! group gives up the rest (`setmaxnreg.dec`), and the default region takes it (`setmaxnreg.inc`). Warps change their
//! registers by warp groups only, so the default region must consist of whole ones.
//!
//! ```text
//! module ttg.num-warps = 8:
//! ttg.warp_specialize() attributes {requestedRegisters = array<i32: 24>} default {..} partition0() num_warps(1) {..}
//! =>
//! module ttg.total-num-warps = 12, ttg.maxnreg = 168:
//! ttg.warp_specialize() attributes {actualRegisters = array<i32: 240, 24>, warpGroupStartIds = array<i32: 8>, ..} ..
//! ```

use tilewright_ir::diagnostic::Kind;
use tilewright_ir::dialect::ttg;
use tilewright_ir::{AttrKind, Diagnostic, Module};

use crate::analysis::scope;
use crate::pass::{Pass, Property};
use crate::remarks;
use crate::target::TargetInfo;

/// Registers of a streaming multiprocessor (CUDA C Programming Guide, "Technical Specifications per Compute Capability").
const REGISTERS: u32 = 65536;
/// Warps of a CTA at most (the same).
const MAX_WARPS: u32 = 32;
/// Threads of a warp and warps of a warp group, the only ones whose registers move (PTX ISA, "setmaxnreg").
const WARP: u32 = 32;
const GROUP: u32 = 4;
/// What `setmaxnreg` takes: multiples of 8 (PTX ISA, "setmaxnreg"). More than 240 leaves too little for the others.
const MIN_REGISTERS: u32 = 24;
const MAX_REGISTERS: u32 = 240;
/// The most that a partition may ask for.
const MOST: u32 = 256;

/// The pass.
pub const PASS: Pass = Pass {
    name: "allocate-warp-groups",
    summary: "give partitions their warps and registers",
    requires: &[Property::NoRings],
    ensures: &[Property::WarpsPlaced],
    run: |m, t, _| run(m, t),
};

/// Gives every partition its warps.
///
/// # Errors
/// More warps than a CTA may have, or more registers than a multiprocessor.
pub fn run(module: &mut Module, target: &TargetInfo) -> Result<(), Diagnostic> {
    let root = module.root();
    let all = scope::specializations(module);
    if all.is_empty() {
        return Ok(());
    }
    let main = module.int_attr(root, "ttg.num-warps").map_or(4, |n| n as u32);
    let mut total = main;
    for &w in &all {
        let warps = w.partition_num_warps(module);
        let mut order: Vec<usize> = (0..warps.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(warps[i]));
        let mut starts = vec![0; warps.len()];
        let mut next = main;
        for i in order {
            let n = warps[i] as u32;
            next = next.next_multiple_of(n.min(4));
            starts[i] = next as i32;
            next += n;
        }
        let attr = module.attr(AttrKind::I32Array(starts));
        module.set_attr(w.0, "warpGroupStartIds", attr);
        total = total.max(next);
    }
    let asked = all.iter().any(|w| w.requested_registers(module).is_some());
    // Registers move by warp groups, and from them only (PTX ISA, "setmaxnreg"): by the same hardware generation as TMA.
    let movable = target.tma && main.is_multiple_of(GROUP);
    if asked && target.tma {
        total = total.next_multiple_of(GROUP);
    }
    if total > MAX_WARPS {
        let text = format!("{total} warps, the partitions' included: a CTA has at most {MAX_WARPS}");
        return Err(Diagnostic::at(module, module.op_loc(all[0].0), text)
            .of(Kind::OutOfResources)
            .note("use a smaller num_warps, or fewer partitions"));
    }
    module.set_i32_attr(root, "ttg.total-num-warps", total as i32);
    let start = registers_at_start(total);
    // Whoever bounds the registers says all there is to say.
    let bounded = module.int_attr(root, "ttg.maxnreg").is_some();
    if !asked || bounded || !movable || start >= MAX_REGISTERS {
        for &w in all.iter().filter(|_| asked) {
            note_few(module, w, (main, start), target);
        }
        return Ok(());
    }
    for &w in &all {
        fits(module, w, (main, total))?;
    }
    module.set_i32_attr(root, "ttg.maxnreg", start as i32);
    for w in all {
        let registers = registers(module, w, (main, total), start);
        let attr = module.attr(AttrKind::I32Array(registers));
        module.set_attr(w.0, "actualRegisters", attr);
    }
    Ok(())
}

/// Registers that each thread of `total` warps has when the kernel starts.
fn registers_at_start(total: u32) -> u32 {
    (REGISTERS / (total * WARP)) & !7
}

/// Registers of warp groups together, each given as those of a thread.
fn registers_of(groups: &[u32]) -> u32 {
    groups.iter().map(|r| r * GROUP * WARP).sum()
}

/// How many registers a thread of the default region's `main` warps will have beside one warp group of partitions that asks
/// for `partition`.
pub fn registers_beside(main: u32, partition: u32) -> u32 {
    let total = main + 4;
    let start = registers_at_start(total).min(MAX_REGISTERS);
    left_for_main(start, (main, total), partition.next_multiple_of(8) * GROUP * WARP)
}

/// What is left for each thread of `main` warps where partitions take `used` registers of those with which `total` warps start.
fn left_for_main(start: u32, (main, total): (u32, u32), used: u32) -> u32 {
    let left = (start * total * WARP).saturating_sub(used) / (main * WARP);
    (left & !7).clamp(MIN_REGISTERS, MAX_REGISTERS)
}

/// Leaves a remark where partitions want more registers than they have, and these can't move.
fn note_few(module: &mut Module, w: ttg::WarpSpecialize, (main, start): (u32, u32), target: &TargetInfo) {
    let have = module.int_attr(module.root(), "ttg.maxnreg").map_or(start, |n| n as u32).min(MOST);
    let wanted = w.requested_registers(module).unwrap_or_default();
    let Some(&most) = wanted.iter().max().filter(|&&r| r as u32 > have) else { return };
    let why = if !target.tma {
        format!("{} moves no registers between warps", target.name)
    } else if !main.is_multiple_of(GROUP) {
        format!("only warp groups of {GROUP} give up registers, and the kernel has {main} warps")
    } else {
        "the kernel bounds them by maxnreg".to_string()
    };
    let text =
        format!("{most} registers for each thread of a partition: all threads have {have}, since {why}");
    remarks::add(module, w.0, &text);
}

/// Whether the registers that partitions ask for leave the default region the fewest that a thread can have.
fn fits(module: &Module, w: ttg::WarpSpecialize, (main, total): (u32, u32)) -> Result<(), Diagnostic> {
    let groups = of_groups(module, w, total);
    let groups = &groups[(main / GROUP) as usize..];
    let used = registers_of(groups);
    let least = main * WARP * MIN_REGISTERS;
    if used + least <= REGISTERS {
        return Ok(());
    }
    let each: Vec<String> = groups.iter().map(|r| format!("{} × {r}", GROUP * WARP)).collect();
    let text = format!(
        "partitions want {} = {used} registers, and the default one needs {} × {MIN_REGISTERS} = {least}: a multiprocessor has {REGISTERS}",
        each.join(" + "),
        main * WARP
    );
    Err(Diagnostic::at(module, module.op_loc(w.0), text).of(Kind::OutOfResources).note(
        "warps get registers by groups of four, each as many as the partition in it that wants the most",
    ))
}

/// Registers of each warp group: what the greediest of its partitions wants; for one that nobody runs on, the least.
fn of_groups(module: &Module, w: ttg::WarpSpecialize, total: u32) -> Vec<u32> {
    let warps = w.partition_num_warps(module);
    let starts = w.warp_group_start_ids(module).unwrap_or_default();
    let start = registers_at_start(total) as i32;
    let requested = w.requested_registers(module).unwrap_or_else(|| vec![start; warps.len()]);
    let mut of_group = vec![MIN_REGISTERS; (total / GROUP) as usize];
    for (i, &wanted) in requested.iter().enumerate() {
        let wanted = (wanted.max(0) as u32).next_multiple_of(8).min(MOST);
        for g in groups(starts[i], warps[i]) {
            of_group[g] = of_group[g].max(wanted);
        }
    }
    of_group
}

/// The warp groups of a partition.
fn groups(start: i32, warps: i32) -> std::ops::RangeInclusive<usize> {
    start as usize / GROUP as usize..=(start + warps - 1) as usize / GROUP as usize
}

/// Registers of the default region and of each partition.
fn registers(module: &Module, w: ttg::WarpSpecialize, (main, total): (u32, u32), start: u32) -> Vec<i32> {
    let warps = w.partition_num_warps(module);
    let starts = w.warp_group_start_ids(module).unwrap_or_default();
    let of_group = of_groups(module, w, total);
    let used = registers_of(&of_group[(main / GROUP) as usize..]);
    let main_registers = left_for_main(start, (main, total), used);
    let of_partition =
        |i: usize| groups(starts[i], warps[i]).map(|g| of_group[g]).max().unwrap_or(start) as i32;
    std::iter::once(main_registers as i32).chain((0..warps.len()).map(of_partition)).collect()
}
