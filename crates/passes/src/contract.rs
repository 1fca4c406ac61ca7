//! What passes require of a module and what they ensure, as properties that can be checked.
//!
//! Each [`Pass`](crate::pass::Pass) says which properties must hold before it and which hold behind it, and a target which its
//! lowering relies on ([`LOWERED`], where that is `crates/lower`). What a pass has ensured holds from there on: no later pass may break it. With debug assertions on, the pipeline checks after each pass
//! what the verifier of the IR does and every property that has been ensured, so that what a pass breaks is found there, by
//! the operation it broke, and not by what comes out of the lowering. `tilewright opt` does so always, and checks what a pass
//! requires before it runs on a module that somebody has written.

use tilewright_ir::dialect::{tt, ttg};
use tilewright_ir::{Diagnostic, Module, Op, Opcode, Value, marks};

use crate::analysis::{rings, scratch};
use crate::hopper::tma;
use crate::level::Level;
use crate::pass::Property;
use crate::transform::{distribute_to_warps, global_barriers, inline_calls, legalize_dots, membar};
use crate::verify;

/// What the lowering of per-thread programs relies on (`crates/lower`): the list of a target that uses it must ensure all of it.
pub const LOWERED: &[Property] = &[
    Property::CallsStay,
    Property::LaidOut,
    Property::NoDescriptorAccesses,
    Property::NoRings,
    Property::WarpsPlaced,
    Property::SharedPlaced,
    Property::BarriersPlaced,
    Property::GlobalBarriersPlaced,
];

impl Property {
    /// Checks that it holds.
    ///
    /// # Errors
    /// The first operation for which it doesn't, and why.
    pub fn check(self, module: &Module) -> Result<(), Diagnostic> {
        let broken = match self {
            Property::BarriersPlaced => {
                membar::missing(module).map(|op| (op, "here a barrier is missing".to_string()))
            }
            Property::GlobalBarriersPlaced => global_barriers::missing(module)
                .first()
                .map(|&op| (op, "here a barrier for global memory is missing".to_string())),
            _ => module
                .all_ops(module.root())
                .into_iter()
                .find_map(|op| self.check_op(module, op).err().map(|message| (op, message))),
        };
        broken.map_or(Ok(()), |(op, message)| {
            Err(Diagnostic::at(module, module.op_loc(op), format!("{}: {message}", module.op_name(op))))
        })
    }

    fn check_op(self, module: &Module, op: Op) -> Result<(), String> {
        let opcode = module.opcode(op);
        let broken = match self {
            Property::CallsStay => !inline_calls::stays(module, op),
            Property::DotsSplit if opcode == Some(Opcode::Tt(tt::Kind::DotScaled)) => true,
            Property::DotsSplit => {
                tt::Dot::cast(module, op).is_some_and(|dot| legalize_dots::is_composed(module, dot))
            }
            Property::DescriptorsEncoded => {
                let is_plain = |&v: &Value| {
                    tma::block_type(module, v).is_some_and(|block| module.encoding(block).is_none())
                };
                let blocks = module.regions(op).iter().flat_map(|&region| module.region_blocks(region));
                let mut values = module.results(op).iter().chain(blocks.flat_map(|&b| module.block_args(b)));
                values.any(is_plain)
            }
            Property::LaidOut => return verify::check(module, op),
            Property::OfOneWarp if Level::of(module) == Some(Level::WorkGroup) => true,
            // Its layouts have no warps, of which `LaidOut` sees to it.
            Property::OfOneWarp if Level::of(module) == Some(Level::Lane) => false,
            Property::OfOneWarp => !distribute_to_warps::is_of_one_warp(module, op),
            Property::TargetSized => !matches!(Level::of(module), Some(Level::Intrinsic | Level::Lane)),
            Property::NoDescriptorAccesses => {
                use tt::Kind as K;
                matches!(
                    opcode,
                    Some(Opcode::Tt(
                        K::DescriptorLoad
                            | K::DescriptorPrefetch
                            | K::DescriptorStore
                            | K::DescriptorReduce
                            | K::DescriptorGather
                            | K::DescriptorScatter
                    ))
                )
            }
            Property::NoRings => {
                use ttg::Kind as K;
                rings::is_on_ring(module, op)
                    || matches!(opcode, Some(Opcode::Ttg(K::RingCreate | K::AsyncCopyBlockToLocal)))
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
            // Of the whole module, not of an operation.
            Property::BarriersPlaced | Property::GlobalBarriersPlaced => false,
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
    tilewright_ir::verify_flat(module)?;
    let found = requires.iter().find_map(|p| p.check(module).err());
    found.map_or(Ok(()), |error| Err(error.note(format!("required by the pass `{pass}`"))))
}
