//! What passes require of a module and what they ensure, as properties that can be checked.
//!
//! Each row of [`PASSES`](crate::pipeline::PASSES) says which properties must hold before the pass and which hold behind it. What a
//! pass has ensured holds from there on: no later pass may break it. With debug assertions on, the pipeline checks after each pass
//! what the verifier of the IR does and every property that has been ensured, so that what a pass breaks is found there, by
//! the operation it broke, and not by what comes out of the lowering. `tilewright opt` does so always, and checks what a pass
//! requires before it runs on a module that somebody has written.

use tilewright_ir::dialect::{tt, ttg};
use tilewright_ir::{Diagnostic, Module, Op, Opcode, marks};

use crate::analysis::scratch;
use crate::verify;

/// Something that holds for a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Property {
    /// Every tensor has an encoding that fits the warps where it stands, and accesses of memory know their width
    /// ([`verify`]).
    LaidOut,
    /// No block of a descriptor is loaded or stored at once: what is left are TMA copies, or pointers.
    NoDescriptorAccesses,
    /// No ring and no copy into one.
    NoRings,
    /// Each partition of a `ttg.warp_specialize` knows its first warp.
    WarpsPlaced,
    /// Each buffer and each operation with scratch knows where in shared memory it lies.
    SharedPlaced,
}

impl Property {
    /// The property in words, as what holds.
    pub fn says(self) -> &'static str {
        match self {
            Property::LaidOut => "tensors have encodings",
            Property::NoDescriptorAccesses => "no block of a descriptor is accessed any more",
            Property::NoRings => "there are no rings any more",
            Property::WarpsPlaced => "partitions have their warps",
            Property::SharedPlaced => "buffers and scratch have their places",
        }
    }

    /// Checks that it holds.
    ///
    /// # Errors
    /// The first operation for which it doesn't, and why.
    pub fn check(self, module: &Module) -> Result<(), Diagnostic> {
        for op in module.all_ops(module.root()) {
            self.check_op(module, op).map_err(|message| {
                Diagnostic::at(module, module.op_loc(op), format!("{}: {message}", module.op_name(op)))
            })?;
        }
        Ok(())
    }

    fn check_op(self, module: &Module, op: Op) -> Result<(), String> {
        let opcode = module.opcode(op);
        let broken = match self {
            Property::LaidOut => return verify::check(module, op),
            Property::NoDescriptorAccesses => {
                use tt::Kind as K;
                matches!(
                    opcode,
                    Some(Opcode::Tt(
                        K::DescriptorLoad
                            | K::DescriptorStore
                            | K::DescriptorReduce
                            | K::DescriptorGather
                            | K::DescriptorScatter
                    ))
                )
            }
            Property::NoRings => {
                use ttg::Kind as K;
                matches!(
                    opcode,
                    Some(Opcode::Ttg(
                        K::RingCreate
                            | K::RingAcquire
                            | K::RingCommit
                            | K::RingClose
                            | K::RingWait
                            | K::RingIsClosed
                            | K::RingRelease
                            | K::RingDealloc
                            | K::AsyncCopyBlockToLocal
                    ))
                )
            }
            Property::WarpsPlaced => {
                opcode == Some(Opcode::Ttg(ttg::Kind::WarpSpecialize))
                    && module.op_attr(op, "warpGroupStartIds").is_none()
            }
            Property::SharedPlaced => {
                let placed = module.int_attr(op, marks::ALLOCATION_OFFSET).is_some();
                let is_buffer = opcode == Some(Opcode::Ttg(ttg::Kind::LocalAlloc));
                !placed && (is_buffer || scratch::scratch_bytes(module, op) > 0)
            }
        };
        if broken { Err(format!("here it does not hold that {}", self.says())) } else { Ok(()) }
    }
}

/// What has been ensured so far on a module's way through passes.
#[derive(Debug, Clone, Default)]
pub struct Held(Vec<Property>);

impl Held {
    /// Whether passes before have ensured a property.
    pub fn has(&self, property: Property) -> bool {
        self.0.contains(&property)
    }

    /// Adds what a pass ensures.
    pub fn ensure(&mut self, ensures: &[Property]) {
        let new: Vec<Property> = ensures.iter().copied().filter(|&p| !self.has(p)).collect();
        self.0.extend(new);
    }

    /// Checks a module behind a pass: what the verifier of the IR does, and all that holds by now.
    ///
    /// # Errors
    /// The first operation that breaks one, with the name of the pass.
    pub fn check(&self, pass: &str, module: &Module) -> Result<(), Diagnostic> {
        let found = match tilewright_ir::verify(module) {
            Err(errors) => errors.into_iter().next(),
            Ok(()) => self.0.iter().find_map(|p| p.check(module).err()),
        };
        found.map_or(Ok(()), |error| Err(error.note(format!("after the pass `{pass}`"))))
    }
}

/// Checks what a pass requires.
///
/// # Errors
/// The first operation for which a property doesn't hold, with the name of the pass.
pub fn check_before(pass: &str, requires: &[Property], module: &Module) -> Result<(), Diagnostic> {
    let found = requires.iter().find_map(|p| p.check(module).err());
    found.map_or(Ok(()), |error| Err(error.note(format!("required by the pass `{pass}`"))))
}
