//! What NVIDIA's targets have of their own in the lowering of a `ttg` module ([`tilewright_lower`]), one file a topic:
//! instructions as inline PTX, and the operations that only they have.

mod access;
mod async_copy;
mod atomic;
mod cluster;
mod dot;
mod extern_call;
mod hooks;
mod inline_asm;
mod issue;
mod matrix;
mod mbarrier;
mod messages;
mod program_barrier;
pub(crate) mod raw_call;
mod symbol;
pub(crate) mod symmetric;
mod tma;
mod warp_specialize;
mod wgmma;

use std::ops::{Deref, DerefMut};

use rustc_hash::FxHashMap;
use tilewright_ir as ir;
use tilewright_llvm as llvm;
pub use tilewright_lower::Lowered;
use tilewright_lower::Result;

use crate::target::{Facts, Target};

/// Lowers a module.
///
/// # Errors
/// An operation, type or layout that is not supported, with its place in the source.
pub fn lower(module: &ir::Module, target: Target, options: &ir::Options) -> Result<Lowered> {
    let options_of_all = tilewright_lower::LowerOptions {
        target: &target.info(),
        // A 128-byte swizzle repeats every 1024 bytes of the address.
        shared_alignment: if target.facts().tma { 1024 } else { 128 },
        line_info: options.line_info,
        flushes: options.enable_reflect_ftz,
    };
    tilewright_lower::lower(module, &options_of_all, || Nvidia::new(target))
}

/// What is known while a function is lowered.
struct Nvidia {
    target: Target,
    /// Where the extra warps of `ttg.warp_specialize` go, and the index of such a warp in its code.
    workers: Option<llvm::Block>,
    worker_warp: Option<llvm::Value>,
    /// What those warps' code must follow, and the last of it.
    handoffs: Vec<warp_specialize::Handoff>,
    last_specialized: Option<ir::Op>,
    /// What the main warps tell those warps, where these can't know what comes next.
    workers_told: Option<warp_specialize::Told>,
    /// How often the main warps have met those of other CTAs before they handed anything off.
    cluster_barriers: u32,
    /// Left operands of warp-group dots, in the words in which the last of these in a block has them.
    fragments: FxHashMap<(ir::Value, ir::Block), Vec<llvm::Value>>,
    /// Whether the level 1 cache holds what the function reads again.
    needs_l1: bool,
    /// What one thread issues, as long as more follows.
    issue: Option<issue::Issue>,
}

impl Nvidia {
    fn new(target: Target) -> Nvidia {
        Nvidia {
            target,
            workers: None,
            worker_warp: None,
            handoffs: Vec::new(),
            last_specialized: None,
            workers_told: None,
            cluster_barriers: 0,
            fragments: FxHashMap::default(),
            needs_l1: false,
            issue: None,
        }
    }
}

/// The lowering of a function, with what is the same for every vendor.
type Shared<'a> = tilewright_lower::Lower<'a, Nvidia>;

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

impl Lower<'_, '_> {
    fn facts(&self) -> &'static Facts {
        self.hooks.target.facts()
    }
}
