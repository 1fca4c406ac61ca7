//! Shared-memory banks: what an access of a warp costs.
//!
//! 32 banks of 4 bytes serve one 128-byte wavefront at a time. A warp's 8-byte accesses go in two halves, 16-byte ones in
//! four quarters (eight consecutive lanes each). Lanes that touch the same 4-byte word of a bank share it; different words
//! of one bank cost a wavefront each.

use crate::access::SharedAccess;
use crate::shared::SharedLayout;
use crate::tile::TileLayout;

/// The cost of moving a tile, in wavefronts summed over all warps and accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BankCost {
    /// Wavefronts needed.
    pub wavefronts: u64,
    /// Wavefronts that accesses of this width would need without conflicts.
    pub ideal: u64,
}

impl BankCost {
    /// Wavefronts lost to bank conflicts.
    pub fn conflicts(self) -> u64 {
        self.wavefronts - self.ideal
    }
}

/// The wavefronts of one access of a warp: `addresses` are the lanes' byte addresses (`None` where predicated off), each
/// access `bytes` wide.
pub fn wavefronts(addresses: &[Option<u32>], bytes: u32) -> BankCost {
    let lanes_at_once = if bytes <= 4 { 32 } else { (128 / bytes).max(1) as usize };
    let mut cost = BankCost::default();
    for group in addresses.chunks(lanes_at_once) {
        let mut words: Vec<u32> = Vec::with_capacity(32);
        for address in group.iter().flatten() {
            words.extend(address / 4..(address + bytes).div_ceil(4));
        }
        words.sort_unstable();
        words.dedup();
        if words.is_empty() {
            continue;
        }
        let mut banks = [0u64; 32];
        words.iter().for_each(|w| banks[(w % 32) as usize] += 1);
        cost.wavefronts += banks.iter().max().copied().unwrap_or(0);
        cost.ideal += words.len().div_ceil(32) as u64;
    }
    cost
}

/// The cost of all accesses by which `tile` is moved from or to `shared`.
pub fn bank_cost(
    access: &SharedAccess,
    tile: &TileLayout,
    shared: &SharedLayout,
    elem_bits: u32,
) -> BankCost {
    let elem_bytes = elem_bits.max(8) / 8;
    let mut cost = BankCost::default();
    for warp in 0..tile.num_warps() {
        for a in &access.accesses {
            let addresses: Vec<_> = (0..tile.num_lanes())
                .map(|lane| {
                    let held =
                        !access.needs_predicate || tile.in_bounds(&tile.coords(a.registers[0], lane, warp));
                    held.then(|| access.offset(a, shared, lane, warp) * elem_bytes)
                })
                .collect();
            let one = wavefronts(&addresses, access.width * elem_bytes);
            cost.wavefronts += one.wavefronts;
            cost.ideal += one.ideal;
        }
    }
    cost
}
