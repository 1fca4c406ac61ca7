//! What a module says of the launch of its kernel.

use crate::attrs::AttrKind;
use crate::dialect::tt;
use crate::entity::Op;
use crate::module::Module;

/// On the module: the programs of a cluster along each axis of the grid, `array<i32: x, y, z>`, where programs form clusters.
/// Each of them is run by one CTA then.
pub const CLUSTER_DIMS: &str = "tle.cluster_dims";

/// On the module: the warps of a program, `i32`, where the kernel is written for one warp: each warp runs it with tensors of its own.
pub const WARP_LEVEL: &str = "tt.warp_level";

/// On the module, once memory has been placed: the launch's scratch memory is zero when the kernel begins.
pub const ZEROED_SCRATCH: &str = "ttg.global_scratch_memory_zeroed";

/// The programs of a cluster along each axis; 1 where there are no clusters of programs.
pub fn programs_of_cluster(m: &Module) -> [u32; 3] {
    match m.op_attr(m.root(), CLUSTER_DIMS).map(|attr| m.attr_kind(attr)) {
        Some(AttrKind::I32Array(dims)) => {
            std::array::from_fn(|d| dims.get(d).map_or(1, |&n| n.max(1) as u32))
        }
        _ => [1; 3],
    }
}

/// Says that programs form clusters.
pub fn set_programs_of_cluster(m: &mut Module, dims: [u32; 3]) {
    let attr = m.attr(AttrKind::I32Array(dims.map(|n| n as i32).to_vec()));
    m.set_attr(m.root(), CLUSTER_DIMS, attr);
}

/// The warps of a program, where the kernel is written for one of them.
pub fn warps_of_program(m: &Module) -> Option<u32> {
    m.int_attr(m.root(), WARP_LEVEL).map(|n| n.max(1) as u32)
}

/// The CTAs of a cluster along each axis: those that run one program, or one program each.
pub fn ctas_of_cluster(m: &Module) -> [u32; 3] {
    match m.int_attr(m.root(), "ttg.num-ctas") {
        Some(n) if n > 1 => [n as u32, 1, 1],
        _ => programs_of_cluster(m),
    }
}

/// Whether programs of the whole grid wait for each other, so that all must be resident at once.
pub fn is_cooperative(m: &Module) -> bool {
    let waits = |op: Op| {
        tt::ProgramBarrier::cast(m, op).is_some_and(|barrier| barrier.scope(m) == tt::ProgramScope::Grid)
    };
    m.all_ops(m.root()).into_iter().any(waits)
}
