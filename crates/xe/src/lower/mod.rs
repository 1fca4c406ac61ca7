//! What Intel's targets have of their own in the lowering of a `ttg` module ([`tilewright_lower`]), one file a topic: instructions as
//! intrinsics, whose names [`crate::spirv`] knows, and the operations on blocks.
//!
//! | name | what it is |
//! | --- | --- |
//! | `xe.id.NAME` | a built-in variable of SPIR-V; `.x`, `.y`, `.z` behind it where it is a vector |
//! | `xe.barrier`, `xe.warp_barrier` | waits for the items of the work group, of the sub-group |
//! | `xe.barrier_wait` | waits until all sub-groups of the work group have arrived |
//! | `xe.shuffle`, `xe.shuffle_xor` | the word of another lane |
//! | `xe.reduce.OP` | an operation on the numbers of all lanes |
//! | `xe.cl.NAME` | a function of `OpenCL.std` |
//! | `xe.rtz.OP` | a conversion that rounds towards zero |
//! | `xe.atomic.OP.SCOPE.ORDER` | an atomic operation |
//! | `xe.fence.SCOPE.ORDER` | what is before it is done before what is behind it |
//! | `__builtin_IB_…` | a function of Intel's compiler: DPAS |
//!
//! Messages that bring blocks, DPAS that takes parts of these, accesses with a mask, atomic operations on 16 bits, and that a sub-group has arrived at a split barrier are inline
//! assembly (`crate::visa`).

mod access;
mod atomic;
mod columns;
mod descriptor;
mod dot;
mod hooks;
mod libdevice;
mod loops;
mod pairs;
mod places;

use std::ops::{Deref, DerefMut};

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir as ir;
pub use tilewright_lower::Lowered;
use tilewright_lower::Result;
use tilewright_passes::analysis::axis::AxisAnalysis;

use crate::target::Target;
use crate::visa::Part;

/// Lowers a module.
///
/// # Errors
/// An operation, type or layout that is not supported, with its place in the source.
pub fn lower(module: &ir::Module, target: Target, options: &ir::Options) -> Result<Lowered> {
    let options_of_all = tilewright_lower::LowerOptions {
        target: &target.info(),
        shared_alignment: 64,
        line_info: options.line_info,
        flushes: false,
    };
    let mut lowered = tilewright_lower::lower(module, &options_of_all, Xe::default)?;
    libdevice::define(&mut lowered.module);
    Ok(lowered)
}

/// What is known while a function is lowered.
#[derive(Default)]
struct Xe {
    descriptors: FxHashMap<ir::Value, descriptor::Descriptor>,
    /// What is known of the kernel's numbers.
    axis: AxisAnalysis,
    /// Second operands of dots that were loaded with their dimensions changed.
    turned: FxHashSet<ir::Value>,
    /// Whether messages take all matrices of the loop that is being lowered, which there are two of then.
    blocks: Option<bool>,
    /// Where it holds, that messages take the matrices of these.
    fitting: Vec<tilewright_llvm::Value>,
    /// The words of messages that others go on from.
    words: Vec<places::Known>,
    /// Those of two messages beside each other, which loops carry.
    pairs: Vec<pairs::Pair>,
    /// Blocks that stay as messages brought them, and the tiles of these that dots take.
    whole: FxHashMap<ir::Value, Vec<descriptor::Piece>>,
    parts: FxHashMap<ir::Value, (tilewright_llvm::Value, Part)>,
}

/// The lowering of a function, with what is the same for every vendor.
type Shared<'a> = tilewright_lower::Lower<'a, Xe>;

/// The same in this vendor's hands: its own methods stand beside those of [`Shared`].
struct Lower<'l, 'a>(&'l mut Shared<'a>);

impl<'a> Deref for Lower<'_, 'a> {
    type Target = Shared<'a>;

    fn deref(&self) -> &Shared<'a> {
        self.0
    }
}

impl<'a> DerefMut for Lower<'_, 'a> {
    fn deref_mut(&mut self) -> &mut Shared<'a> {
        self.0
    }
}
