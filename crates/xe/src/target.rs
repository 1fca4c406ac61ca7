//! Intel's targets and their facts, one row a chip.
//!
//! A further chip of the same kind is a row: no code asks for a name.

use std::fmt;

use tilewright_ir::Type;
use tilewright_ir::dialect::tt::InputPrecision;
use tilewright_passes::contract;
use tilewright_passes::machine::Machine;
use tilewright_passes::target::{BlockLimit, DotUnits, MatrixLimit, TargetInfo, WarpDot, WarpUnits};

use crate::pipeline::{BY_THREADS, LOWERED, PASSES};

/// A chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    row: u8,
}

/// What a chip has.
#[derive(Debug)]
pub struct Facts {
    /// Its name: `pvc` of `xe:pvc`.
    pub name: &'static str,
    /// Threads of a sub-group as its matrix engines want it.
    pub sub_group: u32,
    /// Shared local memory that a work group may have, in bytes.
    pub max_shared: u32,
    /// Registers of a hardware thread, which runs a sub-group, unless it is in the mode of large registers with twice as many.
    pub registers: u32,
    /// Bytes of a register.
    pub register_bytes: u32,
    /// Multiplications of 16-bit numbers a cycle on the matrix engines of a core.
    pub products: u32,
    /// Block loads, stores and prefetches, and products of the matrix engines.
    pub units: WarpUnits,
}

/// DPAS: eight steps of 32 bits along K, up to eight rows, a column a lane (16).
const fn dpas(operand: Type, result: Type, k: u32) -> WarpDot {
    WarpDot { operand, result, precision: InputPrecision::Tf32, shape: [8, 16, k] }
}

/// Of fp16, bf16, tf32 and int8.
const DPAS: &[WarpDot] = &[
    dpas(Type::F16, Type::F32, 16),
    dpas(Type::BF16, Type::F32, 16),
    dpas(Type::F32, Type::F32, 8),
    dpas(Type::I8, Type::I32, 32),
];

/// Block messages in two dimensions: up to 32 rows of 64 bytes are loaded, and 8 stored. Gathered ones take an address of each lane.
const UNITS: WarpUnits = WarpUnits {
    load: BlockLimit { rows: 32, row_bytes: 64 },
    store: BlockLimit { rows: 8, row_bytes: 64 },
    prefetch: BlockLimit { rows: 32, row_bytes: 64 },
    // (A matrix begins at a multiple of 64 bytes. What begins between them is columns of one that begins before.)
    matrix: MatrixLimit { alignment: 16, word: 4, row_bytes: 64 },
    addresses: 16,
    dots: DPAS,
};

/// Every chip, oldest first.
static FACTS: [Facts; 2] = [
    // Ponte Vecchio (Data Center GPU Max).
    Facts {
        name: "pvc",
        sub_group: 16,
        max_shared: 128 << 10,
        registers: 128,
        register_bytes: 64,
        products: 2048,
        units: UNITS,
    },
    // Battlemage (Arc B series).
    Facts {
        name: "bmg",
        sub_group: 16,
        max_shared: 128 << 10,
        registers: 128,
        register_bytes: 64,
        products: 1024,
        units: UNITS,
    },
];

impl Target {
    /// Every target, oldest first.
    pub fn all() -> impl Iterator<Item = Target> {
        (0..FACTS.len()).map(|row| Target { row: row as u8 })
    }

    /// The target of a name such as `xe:pvc`; `None` for any that is not one of [`Target::all`].
    pub fn parse(name: &str) -> Option<Target> {
        Target::all().find(|target| name.strip_prefix("xe:") == Some(target.facts().name))
    }

    /// Its facts.
    pub fn facts(self) -> &'static Facts {
        &FACTS[usize::from(self.row)]
    }

    /// What the passes know of it.
    pub fn info(self) -> TargetInfo {
        let facts = self.facts();
        // A lane's share of the registers of its hardware thread, as many 32-bit words.
        let of_lane = facts.registers * facts.register_bytes / (4 * facts.sub_group);
        let by_threads = TargetInfo {
            name: self.to_string(),
            warp_size: facts.sub_group,
            max_shared: facts.max_shared,
            max_vector_bytes: 16,
            async_copy: false,
            dots: DotUnits { mma: false, fp8: false, wgmma: false, columns: facts.units.dots },
            stmatrix: false,
            tma: false,
            clusters: false,
            // (Schedules are made of these, and no pass of the list makes one yet.)
            machine: Machine {
                products: facts.products,
                product_latency: 32,
                special: 4,
                load_latency: 600,
                copied_bytes: 64,
                // 64 hardware threads of a core.
                registers: 64 * facts.sub_group * of_lane,
                registers_of_thread: 2 * of_lane,
                min_registers_of_thread: of_lane,
            },
            warp_units: None,
            passes: BY_THREADS,
            lowered: contract::LOWERED,
            otherwise: None,
        };
        TargetInfo {
            warp_units: Some(facts.units),
            dots: DotUnits { columns: &[], ..by_threads.dots },
            passes: PASSES,
            lowered: LOWERED,
            otherwise: Some(Box::new(by_threads.clone())),
            ..by_threads
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "xe:{}", self.facts().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for target in Target::all() {
            assert_eq!(Target::parse(&target.to_string()), Some(target));
            assert_eq!(target.info().name, target.to_string());
        }
        assert_eq!(Target::parse("xe:dg2"), None);
        assert_eq!(Target::parse("pvc"), None);
    }

    /// ML-Triton, section 2.3: "PVC's max load size is 32x32, max dot size is 8x16 = 8x16 * 16x16".
    #[test]
    fn sizes_of_the_paper() {
        let units = Target::parse("xe:pvc").expect("is one").facts().units;
        assert_eq!(&units.load.block(16, 2)[..], [32, 32]);
        assert_eq!(&units.load.block(16, 3)[..], [1, 32, 32]);
        assert_eq!(&units.store.block(32, 2)[..], [8, 16]);
        assert_eq!(units.dots[0].shape, [8, 16, 16]);
    }
}
