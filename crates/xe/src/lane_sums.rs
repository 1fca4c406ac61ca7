//! Leaves sums over lanes to the end of the loop that carries them ([`sink_lane_sums`]), where a loop has registers to spare.
//!
//! Why here: a sum that lanes have apart takes a register of each row, and what is equal in all lanes a sixteenth of one. Loops have their final form.
//!
//! Of attention, whose loop carries the result and keeps a block of scores, blocks of 8 rows a warp leave enough, and 16 rows do not: there more would be
//! spilled than is saved. The IR before and after is that of the pass that it asks.

use tilewright_ir::dialect::{scf, tt};
use tilewright_ir::{Module, Type};
use tilewright_passes::analysis::tile_layout::tile_layout;
use tilewright_passes::pass::{Pass, Property};
use tilewright_passes::transform::sink_lane_sums;

/// The pass.
pub const PASS: Pass = Pass {
    name: "lane-sums",
    summary: "add up over lanes behind loops what they add up inside, where there are registers",
    requires: &[Property::LaidOut],
    ensures: &[],
    run: |m, _, _| {
        sink_lane_sums::run_where(m, fits);
        Ok(())
    },
};

/// Words of a lane that a loop may carry, and have of products: three quarters of those of a thread with the large number of registers.
const WORDS: u32 = 192;

/// Whether a loop leaves registers.
fn fits(m: &Module, l: scf::For) -> bool {
    let body = m.region_block(l.body(m));
    let carried = m.block_args(body).iter().map(|&v| words(m, m.value_type(v)));
    let sums = m.block_ops(body).filter_map(|op| tt::Dot::cast(m, op)).filter(|dot| {
        // One that the next is added to is in the same place.
        !m.block_args(body).contains(&dot.c(m)) && tt::Dot::of(m, dot.c(m)).is_none()
    });
    let products: u32 = sums.map(|dot| words(m, m.value_type(dot.result(m)))).sum();
    carried.sum::<u32>() + products <= WORDS
}

/// Words of a lane, as far as a value is a tensor.
fn words(m: &Module, ty: Type) -> u32 {
    let registers = tile_layout(m, ty).map_or(0, |layout| layout.num_registers());
    registers * m.bits(m.element_type(ty)).div_ceil(8) / 4
}
