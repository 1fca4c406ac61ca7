//! What may differ between the warps of a program whose kernel is written for one warp, and whether they meet where they must.
//!
//! The warps run the same code, each with tensors of its own. A value may differ between them if it follows from the warp's index, from an
//! atomic operation or from inline assembly, or is chosen or counted by such a one. What is loaded from the same address is the same. A barrier
//! of all warps under a branch or in a loop which some warps may not take as often as others would never end, or pair up turns that have nothing
//! to do with each other.
//!
//! ```text
//! %w = ttg.warp_id
//! %first = arith.cmpi eq, %w, %c0          differs
//! scf.if %first { ttg.barrier {ttg.all_warps} }    an error
//! ```

use rustc_hash::FxHashSet;

use crate::dialect::{scf, tt, ttg};
use crate::entity::{Op, Value};
use crate::{Diagnostic, Loc, LocKind, Module, Opcode, flow, launch, marks};

/// Checks that all warps come to each barrier that is one of all warps.
///
/// # Errors
/// A barrier that a value which may differ between warps decides about.
pub fn check(module: &Module) -> Result<(), Diagnostic> {
    if launch::warps_of_program(module).is_none() {
        return Ok(());
    }
    let differing = differing(module);
    for op in module.all_ops(module.root()) {
        if ttg::Barrier::cast(module, op).is_none() || module.op_attr(op, marks::ALL_WARPS).is_none() {
            continue;
        }
        let around = std::iter::successors(module.parent_op(op), |&parent| module.parent_op(parent));
        for parent in around {
            if decisions(module, parent).iter().any(|v| differing.contains(v)) {
                return Err(not_all(module, op, parent));
            }
        }
    }
    Ok(())
}

/// What to say of a barrier that some warps may not come to because of a branch or a loop.
fn not_all(module: &Module, barrier: Op, parent: Op) -> Diagnostic {
    let what = if flow::is_loop(module, parent) { "a loop" } else { "a branch" };
    let text = format!("all warps meet here, but {what} around it may differ between them");
    let mut error = Diagnostic::at(module, authored(module, module.op_loc(barrier)), text);
    if let Some(place) = Diagnostic::at(module, authored(module, module.op_loc(parent)), "").span {
        error =
            error.note(format!("{what} that depends on the warp begins at {}:{}", place.file, place.line));
    }
    error.note("take it out, so that every warp comes to it: tl.barrier, and reductions with cross_warp=True")
}

/// The place in the kernel's own code that a location within the library was reached from.
fn authored(module: &Module, loc: Loc) -> Loc {
    fn in_library(module: &Module, loc: Loc) -> bool {
        match module.loc_kind(loc) {
            LocKind::File { file, .. } => file.starts_with("tilewright/language"),
            LocKind::CallSite { callee, .. } => in_library(module, *callee),
            _ => false,
        }
    }
    match module.loc_kind(loc) {
        LocKind::CallSite { callee, caller } if in_library(module, *callee) => authored(module, *caller),
        _ => loc,
    }
}

/// The values that decide whether, and how often, the regions of an operation run.
fn decisions(module: &Module, op: Op) -> Vec<Value> {
    match module.opcode(op) {
        Some(Opcode::Scf(scf::Kind::If)) => module.operands(op).first().copied().into_iter().collect(),
        // Bounds and step.
        Some(Opcode::Scf(scf::Kind::For)) => module.operands(op).iter().take(3).copied().collect(),
        Some(Opcode::Scf(scf::Kind::While)) => {
            let before = module.region_block(scf::While(op).before(module));
            let condition = module.last_op(before).and_then(|end| module.operands(end).first().copied());
            condition.into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// All values that may differ between warps.
fn differing(module: &Module) -> FxHashSet<Value> {
    let ops = module.all_ops(module.root());
    let mut found = FxHashSet::default();
    loop {
        let before = found.len();
        for &op in &ops {
            let regions = decisions(module, op);
            if regions.is_empty() {
                let spreads = module.operands(op).iter().any(|v| found.contains(v));
                if spreads || is_source(module, op) {
                    found.extend(module.results(op));
                }
            } else if regions.iter().any(|v| found.contains(v)) {
                // Chosen by what differs, or counted so often.
                found.extend(module.results(op));
                let blocks = module.regions(op).iter().flat_map(|&r| module.region_blocks(r));
                found.extend(blocks.flat_map(|&b| module.block_args(b)));
            }
            for edge in flow::edges(module, op) {
                let pairs = edge.from(module).iter().zip(edge.to);
                let new: Vec<Value> = pairs.filter(|(v, _)| found.contains(*v)).map(|(_, &to)| to).collect();
                found.extend(new);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// Whether results of an operation may differ between warps though its operands do not.
fn is_source(module: &Module, op: Op) -> bool {
    match module.opcode(op) {
        Some(Opcode::Ttg(ttg::Kind::WarpId)) => true,
        Some(Opcode::Tt(tt::Kind::ExternElementwise)) => !tt::ExternElementwise(op).pure(module),
        Some(Opcode::Tt(kind)) => {
            matches!(kind, tt::Kind::AtomicRmw | tt::Kind::AtomicCas | tt::Kind::ElementwiseInlineAsm)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(body: &str) -> Result<(), Diagnostic> {
        let text = format!(
            "module attributes {{tt.warp_level = 4 : i32}} {{ tt.func public @f(%p: !tt.ptr<i32>, %n: i32) {{
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %w = ttg.warp_id
  {body}
  tt.return
}} }}"
        );
        check(&crate::text::parse(&text, "test.mlir").unwrap_or_else(|e| panic!("{e}")))
    }

    const BARRIER: &str = "ttg.barrier {ttg.all_warps}";

    #[test]
    fn a_barrier_that_all_warps_come_to() {
        checked(BARRIER).expect("nothing decides");
        checked(&format!("scf.for %i = %c0 to %n step %c1 : i32 {{ {BARRIER} }}")).expect("all loop alike");
        checked(&format!(
            "%x = tt.load %p : !tt.ptr<i32>
             %b = arith.cmpi eq, %x, %c0 : i32
             scf.if %b {{ {BARRIER} }}"
        ))
        .expect("one address");
        checked("%b = arith.cmpi eq, %w, %c0 : i32 scf.if %b { ttg.barrier }").expect("of one warp");
    }

    #[test]
    fn a_barrier_that_some_warps_may_not_come_to() {
        let differs = |body: &str| checked(body).expect_err("it differs").message;
        let branch = format!("%b = arith.cmpi eq, %w, %c0 : i32 scf.if %b {{ {BARRIER} }}");
        assert!(differs(&branch).contains("a branch around it"));
        let counted = format!("scf.for %i = %w to %n step %c1 : i32 {{ {BARRIER} }}");
        assert!(differs(&counted).contains("a loop around it"));
        // What a loop carries comes to differ in a later turn.
        let carried = format!(
            "%r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %c0) -> (i32) : i32 {{
               %b = arith.cmpi eq, %x, %c0 : i32
               scf.if %b {{ {BARRIER} }}
               %y = arith.addi %x, %w : i32
               scf.yield %y : i32
             }}"
        );
        assert!(differs(&carried).contains("a branch around it"));
    }
}
