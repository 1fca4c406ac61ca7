//! What a pass is, and a row of a target's list of passes.
//!
//! A pass is one constant in its own file, `PASS`; there is no other list of them than those of the targets. This file and
//! [`target`](crate::target) name each other: a target lists passes, and a pass asks what it must know of the target.

use tilewright_ir::{Diagnostic, Module, Options, launch};

use crate::target::TargetInfo;

/// A pass, as `tilewright opt` and dumps know it.
#[derive(Debug, Clone, Copy)]
pub struct Pass {
    /// The name, which is that of its file.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// What must hold for a module that it runs on.
    pub requires: &'static [Property],
    /// What holds for the module behind it, and from there on.
    pub ensures: &'static [Property],
    /// Runs it on a module, for a target and with a kernel's options, which are within their ranges.
    pub run: fn(&mut Module, &TargetInfo, &Options) -> Result<(), Diagnostic>,
}

impl Pass {
    /// Runs this pass alone.
    ///
    /// # Errors
    /// An option out of its range; what the pass finds wrong, with its place in the source.
    pub fn run(&self, module: &mut Module, target: &TargetInfo, options: &Options) -> Result<(), Diagnostic> {
        options.check()?;
        self.apply(module, target, options)
    }

    /// Runs it with options that have been checked. To passes a kernel that is written for one warp is one of one warp, on a target without
    /// what several warps do together: warp groups and the copies that one of them issues for all.
    pub(crate) fn apply(
        &self,
        module: &mut Module,
        target: &TargetInfo,
        options: &Options,
    ) -> Result<(), Diagnostic> {
        if launch::warps_of_program(module).is_none() {
            return (self.run)(module, target, options);
        }
        let mut target = target.clone();
        (target.dots.wgmma, target.tma) = (false, false);
        (self.run)(module, &target, &Options { num_warps: 1, ..options.clone() })
    }
}

impl PartialEq for Pass {
    /// Names are unique within a target's list.
    fn eq(&self, other: &Pass) -> bool {
        self.name == other.name
    }
}

/// The IR's own `dce`, for lists that run it once more between passes.
pub const DCE: Pass = Pass {
    name: "dce",
    summary: "erase what nothing needs",
    requires: &[],
    ensures: &[],
    run: |module, _, _| tilewright_ir::dce::run(module),
};

/// A row of a target's list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// The pass.
    pub pass: Pass,
    /// Why it stands here.
    pub why: &'static str,
}

/// Something that holds for a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Property {
    /// What is called can be called ([`inline_calls`](crate::transform::inline_calls)).
    CallsStay,
    /// No dot has scales, and none of fp32 is still to be split into several of tf32.
    DotsSplit,
    /// Each descriptor's block has its layout in shared memory.
    DescriptorsEncoded,
    /// Every tensor has an encoding that fits the warps where it stands, and accesses of memory know their width
    /// ([`verify`](crate::verify)).
    LaidOut,
    /// Each tensor is what one warp has for itself ([`distribute_to_warps`](crate::transform::distribute_to_warps)).
    OfOneWarp,
    /// Loads, stores and dots are as large as the target's instructions at most ([`match_target_size`](crate::transform::match_target_size)).
    TargetSized,
    /// No block of a descriptor is loaded or stored at once: what is left are TMA copies, or pointers.
    NoDescriptorAccesses,
    /// No ring and no copy into one.
    NoRings,
    /// Each partition of a `ttg.warp_specialize` knows its first warp.
    WarpsPlaced,
    /// Each buffer and each operation with scratch knows where in shared memory it lies.
    SharedPlaced,
    /// Accesses of shared memory that must not meet have a barrier between them: [`membar`](crate::transform::membar) finds nothing to do.
    BarriersPlaced,
    /// The same for global memory ([`global_barriers`](crate::transform::global_barriers)).
    GlobalBarriersPlaced,
}

impl Property {
    /// The property in words, as what holds.
    pub fn says(self) -> &'static str {
        match self {
            Property::CallsStay => "what is called can be called",
            Property::DotsSplit => "no dot has scales, and dots of fp32 are split",
            Property::DescriptorsEncoded => "blocks of descriptors have their layout",
            Property::LaidOut => "tensors have encodings",
            Property::OfOneWarp => "each tensor is what one warp has",
            Property::TargetSized => "tensors are as large as instructions take them",
            Property::NoDescriptorAccesses => "no block of a descriptor is accessed any more",
            Property::NoRings => "there are no rings any more",
            Property::WarpsPlaced => "partitions have their warps",
            Property::SharedPlaced => "buffers and scratch have their places",
            Property::BarriersPlaced => "barriers stand between accesses of shared memory",
            Property::GlobalBarriersPlaced => "barriers stand before writes of global memory",
        }
    }
}
