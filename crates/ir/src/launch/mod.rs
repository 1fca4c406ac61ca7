//! What a module says of the launch of its kernel.

mod divisors;
mod number;

pub use divisors::{Relied, doubt_divisors, recall_relied, trusts_divisor, write_relied};
pub use number::Number;

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

/// On the module: the ranks of a launch, `i32`, where the kernel reaches those of other devices; 0 where it takes any number. The kernel's last
/// argument is the address of its rank's part of their common memory then.
pub const RANKS: &str = "tle.ranks";

/// Whether a function is what a launch runs: a public one, as one is that does not say, or the only one.
pub fn is_kernel(m: &Module, func: Op) -> bool {
    let functions = m.block_ops(m.body()).filter(|&op| tt::Func::cast(m, op).is_some()).count();
    functions == 1 || tt::Func(func).sym_visibility(m).is_none_or(|visibility| visibility == "public")
}

/// On the module: the path of NVSHMEM's library of bitcode, a string, where the kernel reaches other ranks by its functions, and not by addresses
/// ([`SYMMETRIC`](crate::types::SYMMETRIC) pointers).
pub const NVSHMEM: &str = "tle.nvshmem";

/// On the module: the number of the kernel's argument, `i32`, that says how many programs there are along x, where a launch starts fewer and each does the work of several.
pub const PROGRAMS_ARGUMENT: &str = "ttg.programs_argument";

/// On the module: of a kernel with such an argument, 3 where two more behind it say how many there are along y and z, and each does the work of several of the whole grid.
pub const PROGRAMS_AXES: &str = "ttg.programs_axes";

/// How many arguments say how many programs there are, where a launch starts fewer: one along x, or one along each axis; 0 where it starts all.
pub fn programs_axes(m: &Module) -> u32 {
    let all = m.int_attr(m.root(), PROGRAMS_AXES).map_or(1, |n| n as u32);
    m.int_attr(m.root(), PROGRAMS_ARGUMENT).map_or(0, |_| all)
}

/// How many ranks the kernel wants, where it reaches others: 0 is any number.
pub fn ranks(m: &Module) -> Option<u32> {
    m.int_attr(m.root(), RANKS).map(|n| n as u32)
}

/// On the module: the bytes of symmetric memory, `i32`, that each program needs for itself, where it needs any.
pub const RANK_SCRATCH: &str = "tle.rank_scratch";

/// The bytes of symmetric memory that each program needs for itself.
pub fn rank_scratch(m: &Module) -> u32 {
    m.int_attr(m.root(), RANK_SCRATCH).unwrap_or(0) as u32
}

/// Says that each program needs so many bytes at least.
pub fn want_rank_scratch(m: &mut Module, bytes: u32) {
    if bytes > rank_scratch(m) {
        m.set_i32_attr(m.root(), RANK_SCRATCH, bytes as i32);
    }
}

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

/// How many CTAs a cluster has.
pub fn cluster_size(m: &Module) -> u32 {
    ctas_of_cluster(m).iter().product()
}

/// Whether programs of the whole grid wait for each other, or for those of other ranks, so that all must be resident at once.
pub fn is_cooperative(m: &Module) -> bool {
    let waits = |op: Op| {
        tt::ProgramBarrier::cast(m, op).is_some_and(|barrier| barrier.scope(m) == tt::ProgramScope::Grid)
            || tt::WaitSignal::cast(m, op).is_some()
    };
    m.all_ops(m.root()).into_iter().any(waits)
}
