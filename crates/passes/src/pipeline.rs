//! The run of a target's list of passes.
//!
//! What a pass is stands in its own file ([`Pass`](crate::pass::Pass)), with what it requires and ensures
//! ([`contract`](crate::contract)); which passes a target runs, in which order and why stands in the target's folder
//! (`crates/nvidia/src/pipeline/mod.rs`).

use std::time::{Duration, Instant};

use tilewright_ir::diagnostic::Kind;
use tilewright_ir::{Diagnostic, Module};

use crate::analysis::axis::AxisAnalysis;
use crate::contract::Held;
use crate::pass::{Property, Row};
use crate::remarks;
use crate::target::TargetInfo;
use crate::transform::persistent_programs;

pub use tilewright_ir::Options;

/// Runs the passes of the target: from a `tt` module to what the lowering takes (see the crate's page). A kernel that these don't support
/// is lowered by those that the target has [`otherwise`](TargetInfo::otherwise), with a remark that says why.
///
/// # Errors
/// An option out of its range; what a pass finds wrong, with its place in the source.
pub fn lower_to_ttg(module: &mut Module, target: &TargetInfo, options: &Options) -> Result<(), Diagnostic> {
    lower_to_ttg_with(module, target, options, &mut |_, _, _| {})
}

/// As [`lower_to_ttg`]; `after` sees the module after each pass, with the pass's name and time (for dumps and tables).
///
/// # Errors
/// What a pass finds wrong, with its place in the source.
pub fn lower_to_ttg_with(
    module: &mut Module,
    target: &TargetInfo,
    options: &Options,
    after: &mut dyn FnMut(&'static str, &Module, Duration),
) -> Result<(), Diagnostic> {
    options.check()?;
    let Some(otherwise) = &target.otherwise else { return run_list(module, target, options, after) };
    let as_given = module.clone();
    match run_list(module, target, options, after) {
        Err(error) if error.kind == Kind::Unsupported => {
            *module = as_given;
            lower_to_ttg_with(module, otherwise, options, after)?;
            remarks::add_error(
                module,
                "lowered thread by thread, without instructions for whole warps: ",
                &error,
            );
            Ok(())
        }
        done => done,
    }
}

/// Runs the one list.
fn run_list(
    module: &mut Module,
    target: &TargetInfo,
    options: &Options,
    after: &mut dyn FnMut(&'static str, &Module, Duration),
) -> Result<(), Diagnostic> {
    let mut held = Held::default();
    if options.persistent && !target.passes.iter().any(|row| row.pass == persistent_programs::PASS) {
        let text = format!("not supported yet: persistent=True for {}", target.name);
        return Err(Diagnostic::new(text).of(Kind::Unsupported));
    }
    for row in target.passes {
        let pass = &row.pass;
        if let Some(missing) = pass.requires.iter().find(|&&p| !held.has(p)) {
            let text = format!(
                "{} lists {} where no pass before it has ensured that {}",
                target.name,
                pass.name,
                missing.says()
            );
            return Err(Diagnostic::new(text).of(Kind::Internal));
        }
        let start = Instant::now();
        pass.apply(module, target, options)?;
        after(pass.name, module, start.elapsed());
        held.ensure(pass.ensures);
        if cfg!(debug_assertions) {
            let bug = |d: Diagnostic| d.note("this is a bug of the compiler, not of the kernel");
            held.check(pass.name, module).map_err(bug)?;
        }
    }
    match target.lowered.iter().find(|&&p| !held.has(p)) {
        None => Ok(()),
        Some(missing) => {
            let text = format!("the passes of {} do not ensure that {}", target.name, missing.says());
            Err(Diagnostic::new(text).of(Kind::Internal))
        }
    }
}

/// Brings a `ttg` module that somebody has written, or another compiler made, to what the lowering takes: runs the target's passes
/// from the first on that ensures something which the module lacks, such as places in shared memory and barriers.
///
/// # Errors
/// A module without encodings, or that no pass of these can finish, with the place of what is missing.
pub fn finish_ttg(module: &mut Module, target: &TargetInfo, options: &Options) -> Result<(), Diagnostic> {
    options.check()?;
    AxisAnalysis::run(module).note_widths(module, target.max_vector_bytes);
    Property::LaidOut.check(module)?;
    let lacks =
        |row: &&Row| row.pass.ensures.iter().any(|p| target.lowered.contains(p) && p.check(module).is_err());
    let Some(first) = target.passes.iter().find(lacks).map(|row| row.pass.name) else { return Ok(()) };
    for row in target.passes.iter().skip_while(|row| row.pass.name != first) {
        row.pass.apply(module, target, options)?;
    }
    target.lowered.iter().try_for_each(|property| property.check(module))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::Property::GlobalBarriersPlaced;
    use crate::transform::{allocate_shared, global_barriers};
    use tilewright_ir::marks;

    const BUFFER: &str = r#"
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f() {
    %x = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<64xf16, #plain, #smem, mutable>
    tt.return
  }
}
"#;

    const SCALAR: &str = r#"
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: !tt.ptr<i32>, %n: i32) {
    %x = tt.load %p : !tt.ptr<i32>
    tt.store %p, %n : !tt.ptr<i32>
    tt.return
  }
}
"#;

    #[test]
    fn a_barrier_for_global_memory_that_is_missing_is_found() {
        let mut module = tilewright_ir::text::parse(SCALAR, "test.mlir").unwrap_or_else(|e| panic!("{e}"));
        let error = GlobalBarriersPlaced.check(&module).expect_err("there is none").to_string();
        assert!(error.contains("tt.store: here a barrier for global memory is missing"), "{error}");
        global_barriers::run(&mut module);
        GlobalBarriersPlaced.check(&module).expect("there is one");
    }

    #[test]
    fn what_a_pass_breaks_that_another_has_ensured_is_found_behind_it() {
        let mut module = tilewright_ir::text::parse(BUFFER, "test.mlir").unwrap_or_else(|e| panic!("{e}"));
        let mut held = Held::default();
        held.ensure(allocate_shared::PASS.ensures);
        held.check("allocate-shared", &module).expect("the buffer has a place");
        for op in module.all_ops(module.root()) {
            module.remove_attr(op, marks::ALLOCATION_OFFSET);
        }
        let error = held.check("membar", &module).expect_err("the buffer has none").to_string();
        assert!(error.contains("buffers and scratch have their places"), "{error}");
        assert!(error.contains("after the pass `membar`"), "{error}");
    }
}
