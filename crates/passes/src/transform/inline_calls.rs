//! Inlining of what can't be called: a `noinline` function stays one, and is called as `ptxas` calls functions, unless it takes,
//! gives or makes tensor descriptors, takes or gives buffers or rings, waits for other programs, or the kernel runs on clusters or on specialized warps, or is written for one warp.
//!
//! A descriptor is a tensor map or a pointer with sizes, whichever its accesses want, and that is found within one function; so are the
//! layouts of buffers and who accesses them when, how tiles are split over the CTAs of a cluster, and which warps run what. Where programs
//! wait for each other memory of the launch counts them, which the kernel alone is given.
//!
//! Why first: what is inlined is code like any other to all passes behind.
//!
//! ```text
//! %0 = tt.call @load(%desc, %i) : (!tt.tensordesc<…>, i32) -> tensor<…>
//! =>
//! %0 = tt.descriptor_load %desc[%i] : !tt.tensordesc<…> -> tensor<…>
//! ```

use tilewright_ir::dialect::{tt, ttg};
use tilewright_ir::{Diagnostic, Module, Op, TypeKind, Value, inline, launch, pass};

use crate::analysis::calls;
use crate::hopper::warp_specialize::{FLATTEN, HINT};
use crate::pass::{Pass, Property};

/// The pass.
pub const PASS: Pass = Pass {
    name: "inline-calls",
    summary: "inline the `noinline` functions that can't be called",
    requires: &[],
    ensures: &[Property::CallsStay],
    run: |m, _, o| run(m, o.num_ctas),
};

/// Inlines what can't be called.
///
/// # Errors
/// Recursion, as [`inline::run`] says.
pub fn run(module: &mut Module, num_ctas: u32) -> Result<(), Diagnostic> {
    let all = num_ctas > 1 || has_partitions(module) || launch::warps_of_program(module).is_some();
    let calls: Vec<Op> = module
        .all_ops(module.root())
        .into_iter()
        .filter(|&op| tt::Call::cast(module, op).is_some())
        .collect();
    if !calls.iter().any(|&call| all || !stays(module, call)) {
        return Ok(());
    }
    inline::run_where(module, &|module, callee| all || only_in_place(module, callee))?;
    pass::optimize(module)
}

/// Whether an operation is anything but a call of a function that can't be called.
pub fn stays(module: &Module, op: Op) -> bool {
    calls::callee(module, op).is_none_or(|callee| !only_in_place(module, callee) && !has_partitions(module))
}

/// Whether a function has to do with descriptors, takes or gives buffers or pointers into them, or waits for other programs, or calls
/// one that does.
fn only_in_place(module: &Module, func: Op) -> bool {
    let is_descriptor =
        |&v: &Value| matches!(module.type_kind(module.value_type(v)), TypeKind::TensorDesc { .. });
    let is_local = |&v: &Value| {
        let ty = module.value_type(v);
        matches!(module.type_kind(ty), TypeKind::MemDesc { .. } | TypeKind::Ring)
            || module.is_shared_pointer(ty)
            || module.is_remote_pointer(ty)
    };
    let inside = |op: Op| {
        let blocks = module.regions(op).iter().flat_map(|&region| module.region_blocks(region));
        let mut arguments = blocks.flat_map(|&b| module.block_args(b));
        // What a function takes and gives: its arguments, and what ends it.
        let crosses = tt::Func::cast(module, op).is_some() && arguments.clone().any(is_local)
            || tt::Return::cast(module, op).is_some() && module.operands(op).iter().any(is_local);
        crosses
            || module.results(op).iter().any(is_descriptor)
            || arguments.any(is_descriptor)
            || tt::ProgramBarrier::cast(module, op).is_some()
    };
    calls::reached(module, func).into_iter().any(|f| module.all_ops(f).into_iter().any(inside))
}

/// Whether warps of the kernel are specialized, or are to be.
fn has_partitions(module: &Module) -> bool {
    module.all_ops(module.root()).into_iter().any(|op| {
        ttg::WarpSpecialize::cast(module, op).is_some()
            || [HINT, FLATTEN].iter().any(|hint| module.op_attr(op, hint).is_some())
    })
}
