//! Operations that give elements other names: whether each thread already holds what it needs of the result.
//!
//! `tt.trans`, `tt.reshape`, `tt.join`, `tt.split` and `tt.cat` move no data where the layouts agree on what lanes and warps
//! contribute: each register of the result is then one of the operands' in the same thread. Everyone who wants to know whether
//! data moves asks here: the lowering for the registers, the allocator ([`crate::scratch`]) and through it the barriers for
//! whether there is scratch.

use smallvec::SmallVec;
use tilewright_ir::dialect::tt;
use tilewright_ir::{Module, Op, Opcode};
use tilewright_layout::{Place, TileLayout};

use crate::scratch::layout_of;

/// A register of an operand: the operand's number and the register's.
pub type OperandRegister = (usize, u32);

/// For each result the register of the operands that each of its registers is equal to in every thread. `None` where data must
/// move between threads, and for other operations.
pub fn reindex_registers(module: &Module, op: Op) -> Option<Vec<Vec<OperandRegister>>> {
    let Opcode::Tt(kind) = module.opcode(op)? else { return None };
    let src = layout_of(module, *module.operands(op).first()?)?;
    let dst = layout_of(module, *module.results(op).first()?)?;
    let of_first = |registers: Vec<u32>| registers.into_iter().map(|r| (0, r)).collect::<Vec<_>>();
    match kind {
        tt::Kind::Trans => {
            let order: Vec<u32> = tt::Trans(op).order(module).iter().map(|&d| d as u32).collect();
            let seen = src.transpose(&order).ok()?;
            Some(vec![of_first(dst.registers_from(&seen, &axes(dst.rank()))?)])
        }
        tt::Kind::Reshape => {
            let seen = src.reshape(dst.shape()).ok()?;
            Some(vec![of_first(dst.registers_from(&seen, &axes(dst.rank()))?)])
        }
        tt::Kind::Join => {
            // The operands share a layout. Which of them it is must not depend on the thread.
            let last = dst.rank() - 1;
            if dst.lane_bases(last).iter().chain(&dst.warp_bases(last)).any(|&b| b != 0) {
                return None;
            }
            let registers = dst.registers_from(&src, &axes(last))?;
            let which = |r: u32| dst.register_coord(r)[last] as usize;
            Some(vec![(0..).zip(registers).map(|(r, from)| (which(r), from)).collect()])
        }
        tt::Kind::Split => {
            let part = |i| {
                let mut places = axes(dst.rank());
                places.push(Place::At(i));
                dst.registers_from(&src, &places).map(of_first)
            };
            Some(vec![part(0)?, part(1)?])
        }
        tt::Kind::Cat => one_after_the_other(module, op, &dst),
        _ => None,
    }
}

fn axes(count: usize) -> SmallVec<[Place; 4]> {
    (0..count as u8).map(Place::Axis).collect()
}

/// `tt.cat` doesn't say in which order the elements are: where the operands' registers add up to the result's, they are those.
fn one_after_the_other(module: &Module, op: Op, dst: &TileLayout) -> Option<Vec<Vec<OperandRegister>>> {
    let mut registers = Vec::new();
    for (operand, &value) in module.operands(op).iter().enumerate() {
        let src = layout_of(module, value)?;
        if src.is_padded() || src.free_variable_masks() != dst.free_variable_masks() {
            return None;
        }
        registers.extend((0..src.num_registers()).map(|r| (operand, r)));
    }
    let adds_up = registers.len() as u32 == dst.num_registers() && !dst.is_padded();
    adds_up.then(|| vec![registers])
}
