//! Which warps run the partitions of `ttg.warp_specialize`, and with how many registers.
//!
//! Why here: before anything asks how many threads a CTA has (shared memory, barriers, the lowering), after the pass that
//! makes partitions.
//!
//! Partitions take the warps behind the default region's as [`Placement`] says. Two `ttg.warp_specialize` in one function use
//! the same warps, one after the other.
//!
//! Registers: a kernel of T threads starts with as many as fit, R = 65536 / T in multiples of 8. Where a partition asks for fewer, its
//! warp group gives up the rest (`setmaxnreg.dec`), and the default region takes it (`setmaxnreg.inc`). Warps change their
//! registers by warp groups only, so the default region must consist of whole ones. Where none move, a CTA has no warps beyond those
//! that run something: each has its share of the multiprocessor's registers, and more CTAs fit.
//!
//! Partitions that the default region's warps run ([`marks::REUSE`]) share these out, the largest first, so that those of whole warp groups
//! begin at one.
//!
//! A kernel that is written for one warp has no partitions; the warps of its program are counted here.
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
use tilewright_ir::options::MAX_WARPS;
use tilewright_ir::warp_groups::{GROUP, MAX_REGISTERS, MOST_REGISTERS, Placement};
use tilewright_ir::{AttrKind, Diagnostic, Module, launch, marks};

use crate::analysis::scope;
use crate::pass::{Pass, Property};
use crate::remarks;
use crate::target::TargetInfo;

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
    if let Some(warps) = launch::warps_of_program(module) {
        module.set_i32_attr(root, "ttg.total-num-warps", warps as i32);
        return Ok(());
    }
    let all = scope::specializations(module);
    if all.is_empty() {
        return Ok(());
    }
    let main = module.int_attr(root, "ttg.num-warps").map_or(4, |n| n as u32);
    if main > MAX_WARPS {
        return Err(too_many_warps(module, all[0], main));
    }
    let mut total = main;
    for &w in &all {
        let placed = match reuses(module, w) {
            true => side_by_side(module, w, main)?,
            false => placement(module, w, main),
        };
        let starts = placed.partitions.iter().map(|&(first, _)| first as i32).collect();
        let attr = module.attr(AttrKind::I32Array(starts));
        module.set_attr(w.0, "warpGroupStartIds", attr);
        total = total.max(placed.total);
    }
    let asked = all.iter().any(|w| w.requested_registers(module).is_some());
    // Registers move by warp groups, and from them only (PTX ISA, "setmaxnreg"): by the same hardware generation as TMA.
    let movable = target.tma && main.is_multiple_of(GROUP);
    // Whoever bounds the registers says all there is to say.
    let bounded = module.int_attr(root, "ttg.maxnreg").is_some();
    let whole = total.next_multiple_of(GROUP);
    let start = Placement { main, partitions: vec![], total: whole }.registers_at_start();
    let moves = asked && movable && !bounded && start < MAX_REGISTERS;
    if moves {
        total = whole;
    }
    if total > MAX_WARPS {
        return Err(too_many_warps(module, all[0], total));
    }
    module.set_i32_attr(root, "ttg.total-num-warps", total as i32);
    if !moves {
        for &w in all.iter().filter(|_| asked) {
            note_few(module, w, (main, start), target);
        }
        return Ok(());
    }
    for w in all {
        if reuses(module, w) {
            continue;
        }
        let placed = Placement { total, ..placement(module, w, main) };
        let wanted =
            w.requested_registers(module).unwrap_or_else(|| vec![start as i32; placed.partitions.len()]);
        let wanted: Vec<u32> = wanted.iter().map(|&r| r.max(0) as u32).collect();
        let registers = placed.registers(&wanted).map_err(|too_many| {
            Diagnostic::at(module, module.op_loc(w.0), too_many.text)
                .of(Kind::OutOfResources)
                .note(too_many.note)
        })?;
        let attr = module.attr(AttrKind::I32Array(registers.iter().map(|&r| r as i32).collect()));
        module.set_attr(w.0, "actualRegisters", attr);
    }
    module.set_i32_attr(root, "ttg.maxnreg", start as i32);
    Ok(())
}

fn too_many_warps(module: &Module, w: ttg::WarpSpecialize, total: u32) -> Diagnostic {
    let text = format!("{total} warps, the partitions' included: a CTA has at most {MAX_WARPS}");
    Diagnostic::at(module, module.op_loc(w.0), text)
        .of(Kind::OutOfResources)
        .note("use a smaller num_warps, or fewer partitions")
}

/// Whether the warps of the default region run the partitions.
fn reuses(module: &Module, w: ttg::WarpSpecialize) -> bool {
    module.op_attr(w.0, marks::REUSE).is_some()
}

/// Where partitions stand that share out the `main` warps of the default region.
fn side_by_side(module: &Module, w: ttg::WarpSpecialize, main: u32) -> Result<Placement, Diagnostic> {
    let warps = warps(module, w);
    Placement::of_main(main, &warps).ok_or_else(|| {
        let all: u32 = warps.iter().sum();
        let text =
            format!("partitions of {all} warps in all share out the default region's, which are {main}");
        Diagnostic::at(module, module.op_loc(w.0), text)
    })
}

/// Where the partitions of an operation stand behind `main` warps.
fn placement(module: &Module, w: ttg::WarpSpecialize, main: u32) -> Placement {
    Placement::new(main, &warps(module, w))
}

fn warps(module: &Module, w: ttg::WarpSpecialize) -> Vec<u32> {
    w.partition_num_warps(module).iter().map(|&n| n as u32).collect()
}

/// How many registers a thread of the default region's `main` warps will have beside one warp group of partitions that asks
/// for `partition`.
pub fn registers_beside(main: u32, partition: u32) -> u32 {
    Placement::new(main, &[GROUP]).registers(&[partition]).map_or(0, |registers| registers[0])
}

/// Leaves a remark where partitions want more registers than they have, and these can't move.
fn note_few(module: &mut Module, w: ttg::WarpSpecialize, (main, start): (u32, u32), target: &TargetInfo) {
    let have = module.int_attr(module.root(), "ttg.maxnreg").map_or(start, |n| n as u32).min(MOST_REGISTERS);
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
