//! Launch bounds: how many CTAs of a kernel a multiprocessor should at least hold, which is what the assembler shares registers
//! out by.
//!
//! By itself the assembler gives a thread so few registers that as many CTAs as possible fit a multiprocessor, and issues a
//! loop's loads one after the other into the same registers. One CTA asks for no more than any kernel has, but it makes the
//! assembler keep loads apart, with which fewer threads have more bytes under way and share the L1 cache (PTX ISA,
//! "Performance-Tuning Directives: .minnctapersm"; docs/performance.md). So kernels get that bound of which a thread executes
//! several instructions for one load in a loop, unless registers are bounded otherwise.
//!
//! Why last: it needs the loads and their layouts as they are lowered.
//!
//! ```text
//! module attributes {…}  =>  module attributes {…, "ttg.min-ctas-per-sm" = 1 : i32}
//! ```

use tilewright_ir::Module;
use tilewright_ir::Opcode;
use tilewright_ir::dialect::{scf, tt};
use tilewright_ir::{Op, marks};
use tilewright_layout::TileLayout;

use crate::TargetInfo;
use crate::analysis::scratch;
use crate::analysis::tile_layout::layout_of;

/// The attribute of the module.
pub const MIN_CTAS: &str = "ttg.min-ctas-per-sm";

/// Sets the bound; `bounded` says that the kernel's options bound the registers.
pub fn run(module: &mut Module, target: &TargetInfo, bounded: bool) {
    let root = module.root();
    let bounded = bounded || module.int_attr(root, "ttg.maxnreg").is_some();
    let several = |op: &Op| {
        tt::Load::cast(module, *op).is_some_and(|load| {
            is_in_loop(module, *op) && instructions(module, target, load).is_some_and(|n| n > 1)
        })
    };
    if !bounded && module.all_ops(root).iter().any(several) {
        module.set_i32_attr(root, MIN_CTAS, 1);
    }
}

/// Whether an operation may run more than once in a program.
pub fn is_in_loop(module: &Module, op: Op) -> bool {
    let is_loop = |op| matches!(module.opcode(op), Some(Opcode::Scf(scf::Kind::For | scf::Kind::While)));
    std::iter::successors(module.parent_op(op), |&op| module.parent_op(op)).any(is_loop)
}

/// How many instructions of a thread a load of a tile becomes.
fn instructions(module: &Module, target: &TargetInfo, load: tt::Load) -> Option<usize> {
    let result = load.result(module);
    let layout = layout_of(module, result)?;
    let bits = 8 * scratch::element_bytes(module, module.value_type(result));
    let (axis, width) = access_width(module, load.0, &layout, bits, target.max_vector_bytes);
    Some(layout.vector_groups(axis, width)?.len())
}

/// The axis along which an access of a tile takes several elements at once, and how many: no more than the analysis of addresses
/// has promised, the thread holds, and an access of so many bytes takes.
pub fn access_width(module: &Module, op: Op, layout: &TileLayout, bits: u32, max_bytes: u32) -> (usize, u32) {
    let promised = module.int_attr(op, marks::VEC).unwrap_or(1).max(1) as u32;
    let axis = module.int_attr(op, marks::VEC_AXIS).map_or(layout.order()[0] as usize, |a| a as usize);
    if axis >= layout.rank() {
        return (0, 1);
    }
    let width = promised.min(layout.contig_along(axis)).min(max_bytes * 8 / bits);
    // The promise is a power of two; what is not would straddle words.
    (axis, 1 << width.max(1).ilog2())
}
