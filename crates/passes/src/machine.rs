//! How long a multiprocessor takes for operations on tiles: the numbers that schedules are made from.
//!
//! The numbers of a target are its own ([`TargetInfo::machine`](crate::target::TargetInfo)).
//!
//! Arithmetic is counted in results, a warp's instruction a cycle and scheduler. That is less than what the hardware will
//! issue for it (addresses, conversions between layouts, moves), and more than it would take were special functions to
//! run beside the rest, as they can. Attention forward on an H100, of which the arithmetic bounds D = 64 and products D = 128 by this
//! count, takes 1.2 and 1.4 to 1.6 times as long as the busiest of the two.

use tilewright_ir::dialect::{arith, tt, ttng};
use tilewright_ir::{Module, Op, Opcode, Value};

/// Warps of a warp group: one on each of a multiprocessor's four schedulers, with its tensor core.
pub const GROUP: u32 = 4;

/// Rates and latencies of one target, in cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Multiplications of 16-bit numbers a cycle on all tensor cores.
    pub products: u32,
    /// Cycles from the end of a product's last multiplication to its result.
    pub product_latency: u32,
    /// Cycles of a scheduler for a warp's special functions: its unit does so many lanes a cycle, and the argument is scaled
    /// first.
    pub special: u32,
    /// Cycles from a load of global memory to its value.
    pub load_latency: u32,
    /// Bytes a cycle that come from the level 2 cache.
    pub copied_bytes: u32,
    /// Registers of 32 bits.
    pub registers: u32,
    /// How many of them a thread may have.
    pub registers_of_thread: u32,
    /// The fewest to which a thread's can be bounded.
    pub min_registers_of_thread: u32,
}

/// 32-bit results a cycle of all schedulers.
const LANES: u32 = 128;

impl Machine {
    /// About how many cycles `warps` warps, of the `num_warps` that share an operation, keep their schedulers busy with their part
    /// of it.
    pub fn arithmetic(self, module: &Module, op: Op, num_warps: u32, warps: u32) -> u32 {
        let of = match module.opcode(op) {
            Some(Opcode::Tt(tt::Kind::Reduce)) => module.operands(op)[0],
            Some(Opcode::Arith(arith::Kind::Constant) | Opcode::Tt(_) | Opcode::Ttg(_) | Opcode::Ttng(_)) => {
                return 0;
            }
            Some(_) => match module.results(op) {
                &[one] => one,
                _ => return 0,
            },
            None => return 0,
        };
        if !module.is_tensor(module.value_type(of)) {
            return 0;
        }
        let weight = if matches!(module.opcode(op), Some(Opcode::Math(_))) { self.special } else { 1 };
        elements(module, of) / num_warps * warps / lanes(warps) * weight
    }

    /// About how many cycles the tensor cores are busy with these warps' part of a dot; `None` for another operation.
    pub fn products(self, module: &Module, op: Op, num_warps: u32, warps: u32) -> Option<u32> {
        let (d, a, rate) = if let Some(dot) = ttng::WarpGroupDot::cast(module, op) {
            (dot.d(module), dot.a(module), self.products)
        } else {
            // `mma.sync` reaches a bit more than half of what `wgmma` does on the target that has both.
            let dot = tt::Dot::cast(module, op)?;
            (dot.result(module), dot.a(module), self.products.min(1024))
        };
        let ty = module.value_type(a);
        let k = module.shape(ty).and_then(|s| s.last().copied()).unwrap_or(1);
        let products = u64::from(elements(module, d)) * u64::from(k) * u64::from(module.bits(ty).max(8)) / 16;
        Some(
            (products * u64::from(warps) / u64::from(num_warps) / u64::from(rate * lanes(warps) / LANES))
                as u32,
        )
    }

    /// About how many cycles it takes these warps to move their part of a tensor from registers to registers.
    pub fn moved(self, module: &Module, v: Value, num_warps: u32, warps: u32) -> u32 {
        let words = elements(module, v) * module.bits(module.value_type(v)).max(8) / 32;
        words / num_warps * warps / lanes(warps)
    }

    /// About how many cycles a load keeps the path from memory busy.
    pub fn copied(self, module: &Module, loaded: Value) -> u32 {
        elements(module, loaded) * module.bits(module.value_type(loaded)).max(8) / 8 / self.copied_bytes
    }
}

/// Lanes that so many warps can use.
fn lanes(warps: u32) -> u32 {
    LANES.min(warps * LANES / GROUP)
}

fn elements(module: &Module, v: Value) -> u32 {
    module.shape(module.value_type(v)).map_or(1, |s| s.iter().product())
}
