//! Passes by their names, and the run of a target's list.
//!
//! What the passes are stands here ([`PASSES`]), with what each requires and ensures ([`contract`](crate::contract)); which of them a target
//! runs, in which order and why stands in the target's folder (`crates/nvidia/src/pipeline.rs`).

use std::time::{Duration, Instant};

use tilewright_ir::diagnostic::Kind;
use tilewright_ir::{AttrKind, Diagnostic, Module};

use crate::analysis::scratch;
use crate::contract::{
    Held, LOWERED,
    Property::{
        self, BarriersPlaced, CallsStay, DescriptorsEncoded, DotsSplit, GlobalBarriersPlaced, LaidOut,
        NoDescriptorAccesses, NoRings, SharedPlaced, WarpsPlaced,
    },
};
use crate::hopper::{
    allocate_warp_groups, async_dots, distribute_ctas, encode_descriptors, lower_tma, pingpong,
    transpose_dots, warp_specialize,
};
use crate::target::TargetInfo;
use crate::transform::{
    allocate_shared, assign_layouts, global_barriers, inline_calls, lane_sums, launch_bounds, legalize_dots,
    lower_descriptors, lower_rings, membar, software_pipeline, unroll_loops,
};

pub use crate::target::Row;
pub use tilewright_ir::Options;

/// A pass by its name, as `tilewright opt` and dumps know it.
#[derive(Debug, Clone, Copy)]
pub struct Pass {
    /// The name.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// What must hold for a module that it runs on.
    pub requires: &'static [Property],
    /// What holds for the module behind it, and from there on.
    pub ensures: &'static [Property],
    run: fn(&mut Module, &TargetInfo, &Options) -> Result<(), Diagnostic>,
}

/// Every pass of this crate.
pub static PASSES: &[Pass] = &[
    Pass {
        name: "inline-calls",
        summary: "inline the `noinline` functions that can't be called",
        requires: &[],
        ensures: &[CallsStay],
        run: |m, _, o| inline_calls::run(m, o.num_ctas),
    },
    Pass {
        name: "unroll-loops",
        summary: "unroll loops that ask for it",
        requires: &[],
        ensures: &[],
        run: |m, _, _| unroll_loops::run(m),
    },
    Pass {
        name: "distribute-ctas",
        summary: "distribute tiles over the CTAs of a cluster",
        requires: &[],
        ensures: &[],
        run: |m, t, o| distribute_ctas::run(m, t, o.num_ctas),
    },
    Pass {
        name: "lower-descriptors",
        summary: "turn descriptor accesses that no hardware does into pointers and masks",
        requires: &[],
        ensures: &[],
        run: |m, t, _| lower_descriptors::run(m, Some(t)),
    },
    Pass {
        name: "legalize-dots",
        summary: "turn dots that no instruction does into ones that some do",
        requires: &[],
        ensures: &[DotsSplit],
        run: |m, t, _| {
            legalize_dots::run(m, t);
            Ok(())
        },
    },
    Pass {
        name: "transpose-dots",
        summary: "compute products as their transposes where tensor cores read less for them",
        requires: &[DotsSplit],
        ensures: &[],
        run: |m, t, o| {
            transpose_dots::run(m, t, o.num_warps);
            Ok(())
        },
    },
    Pass {
        name: "assign-layouts",
        summary: "give every tensor its encoding",
        requires: &[],
        ensures: &[LaidOut],
        run: assign,
    },
    Pass {
        name: "encode-descriptors",
        summary: "give the blocks of descriptors their layout in shared memory",
        requires: &[LaidOut],
        ensures: &[DescriptorsEncoded],
        run: |m, _, _| {
            encode_descriptors::run(m);
            Ok(())
        },
    },
    Pass {
        name: "warp-specialize",
        summary: "give loading and computing to different warps in loops that ask for it",
        requires: &[LaidOut, DescriptorsEncoded],
        ensures: &[],
        run: |m, t, o| warp_specialize::run(m, t, o.num_stages),
    },
    Pass {
        name: "software-pipeline",
        summary: "schedule loops: copies iterations ahead, dots early or late",
        requires: &[LaidOut, DescriptorsEncoded],
        ensures: &[],
        run: |m, t, o| software_pipeline::run(m, t, o.num_stages),
    },
    Pass {
        name: "lower-tma",
        summary: "turn accesses through descriptors into TMA copies",
        requires: &[LaidOut],
        ensures: &[NoDescriptorAccesses],
        run: |m, t, _| lower_tma::run(m, t),
    },
    Pass {
        name: "async-dots",
        summary: "wait for warp-group dots where their results are used",
        requires: &[LaidOut],
        ensures: &[],
        run: |m, _, _| {
            async_dots::run(m);
            Ok(())
        },
    },
    Pass {
        name: "lower-rings",
        summary: "turn rings into mbarriers, groups of copies and TMA",
        requires: &[LaidOut],
        ensures: &[NoRings],
        run: |m, _, _| lower_rings::run(m),
    },
    Pass {
        name: "pingpong",
        summary: "let warp groups use the tensor cores in turns",
        requires: &[LaidOut, NoRings],
        ensures: &[],
        run: |m, t, _| {
            pingpong::run(m, t);
            Ok(())
        },
    },
    Pass {
        name: "lane-sums",
        summary: "add up over lanes behind loops what they add up inside",
        requires: &[LaidOut],
        ensures: &[],
        run: |m, _, _| {
            lane_sums::run(m);
            Ok(())
        },
    },
    Pass {
        name: "dce",
        summary: "erase what nothing needs",
        requires: &[],
        ensures: &[],
        run: |m, _, _| tilewright_ir::dce::run(m),
    },
    Pass {
        name: "allocate-warp-groups",
        summary: "give partitions their warps and registers",
        requires: &[NoRings],
        ensures: &[WarpsPlaced],
        run: |m, _, _| allocate_warp_groups::run(m),
    },
    Pass {
        name: "allocate-shared",
        summary: "place buffers and scratch",
        requires: &[LaidOut, NoDescriptorAccesses, NoRings, WarpsPlaced],
        ensures: &[SharedPlaced],
        run: |m, t, _| allocate_shared::run(m, t),
    },
    Pass {
        name: "membar",
        summary: "place barriers between accesses of shared memory",
        requires: &[LaidOut, SharedPlaced],
        ensures: &[BarriersPlaced],
        run: |m, _, _| {
            membar::run(m);
            Ok(())
        },
    },
    Pass {
        name: "global-barriers",
        summary: "place barriers before writes of global memory that others load",
        requires: &[LaidOut, BarriersPlaced],
        ensures: &[GlobalBarriersPlaced],
        run: |m, _, _| {
            global_barriers::run(m);
            Ok(())
        },
    },
    Pass {
        name: "launch-bounds",
        summary: "bound the CTAs of a multiprocessor where registers serve loads better",
        requires: &[LaidOut],
        ensures: &[],
        run: |m, t, o| {
            launch_bounds::run(m, t, o.maxnreg.is_some());
            Ok(())
        },
    },
];

/// The pass of a name.
pub fn find(name: &str) -> Option<&'static Pass> {
    PASSES.iter().find(|p| p.name == name)
}

impl Pass {
    /// Runs this pass alone.
    ///
    /// # Errors
    /// An option out of its range; what the pass finds wrong, with its place in the source.
    pub fn run(&self, module: &mut Module, target: &TargetInfo, options: &Options) -> Result<(), Diagnostic> {
        options.check()?;
        (self.run)(module, target, options)
    }
}

/// Runs the passes of the target: from a `tt` module to what the lowering takes (see the crate's page).
///
/// # Errors
/// What a pass finds wrong, with its place in the source.
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
    let mut held = Held::default();
    for row in target.passes {
        let Some(pass) = find(row.pass) else {
            let message = format!("{} lists an unknown pass, {}", target.name, row.pass);
            return Err(Diagnostic::new(message).of(Kind::Internal));
        };
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
        pass.run(module, target, options)?;
        after(row.pass, module, start.elapsed());
        held.ensure(pass.ensures);
        if cfg!(debug_assertions) {
            let bug = |d: Diagnostic| d.note("this is a bug of the compiler, not of the kernel");
            held.check(pass.name, module).map_err(bug)?;
        }
    }
    match LOWERED.iter().find(|&&p| !held.has(p)) {
        None => Ok(()),
        Some(missing) => {
            let text = format!("the passes of {} do not ensure that {}", target.name, missing.says());
            Err(Diagnostic::new(text).of(Kind::Internal))
        }
    }
}

/// Records the options on the module, and assigns layouts for them.
fn assign(module: &mut Module, target: &TargetInfo, options: &Options) -> Result<(), Diagnostic> {
    let Options { num_warps, num_ctas, .. } = *options;
    let root = module.root();
    module.set_i32_attr(root, "ttg.num-warps", num_warps as i32);
    module.set_i32_attr(root, "ttg.num-ctas", num_ctas as i32);
    module.set_i32_attr(root, "ttg.threads-per-warp", target.warp_size as i32);
    let name = module.attr(AttrKind::Str(target.name.clone()));
    module.set_attr(root, "ttg.target", name);
    if target.stmatrix {
        let unit = module.attr(AttrKind::Unit);
        module.set_attr(root, scratch::STMATRIX, unit);
    }
    assign_layouts::run(module, target, num_warps)
}

#[cfg(test)]
mod tests {
    use super::*;
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
        held.ensure(find("allocate-shared").expect("a pass").ensures);
        held.check("allocate-shared", &module).expect("the buffer has a place");
        for op in module.all_ops(module.root()) {
            module.remove_attr(op, marks::ALLOCATION_OFFSET);
        }
        let error = held.check("membar", &module).expect_err("the buffer has none").to_string();
        assert!(error.contains("buffers and scratch have their places"), "{error}");
        assert!(error.contains("after the pass `membar`"), "{error}");
    }
}
