//! Whether a pipelined loop's first copies can be issued an iteration of the loop around it earlier.
//!
//! A persistent kernel walks over tiles, and each tile is a loop along K. When that loop ends, no copy is under way: without
//! this the next tile would begin with a wait for memory. The first copies of the next tile need only their addresses,
//! which follow from the tile's number; issued right behind the loop, they arrive while this tile's result is converted
//! and stored.
//!
//! ```text
//! scf.for %tile = ... {
//!   %row = f(%tile)
//!   (copies of the first iterations, at %row)
//!   %acc = scf.for %k ... { wait; dot; copies of an iteration ahead }
//!   tt.descriptor_store %c[%row], %acc
//! }
//! =>
//! (copies of the first iterations, at f(lower))
//! scf.for %tile = ... iter_args(%slot = 0, %phase = 0) {
//!   %row = f(%tile)
//!   %acc, %slot1, %phase1 = scf.for %k ... iter_args(%slot, %phase) { wait; dot; copies of an iteration ahead }
//!   (copies of the first iterations, at f(%tile + step), if that is not past the end)
//!   tt.descriptor_store %c[%row], %acc
//!   scf.yield %slot1, %phase1
//! }
//! ```
//!
//! So it is done for loops that TMA alone feeds, right inside another loop, with addresses that are computed without
//! effects from that loop's number. The ring then lives as long as the outer loop: there must be room for it beside
//! whatever else lives there.

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{scf, tt};
use tilewright_ir::{Block, Module, Op, Value};

use super::backward_slice::Slice;
use super::budget;
use super::schedule::Schedule;
use crate::analysis::counting::Counting;
use crate::analysis::global_bases::GlobalBases;
use crate::analysis::promises::Promises;
use crate::analysis::waiting;
use crate::hopper::tma;

/// A loop around a pipelined one, through whose iterations the pipeline runs on.
pub struct Outer {
    /// The loop.
    pub l: scf::For,
    /// What is known of its numbers.
    pub counting: Counting,
    body: Block,
    /// What the copies need of an iteration, in program order.
    ops: Vec<Op>,
}

impl Outer {
    /// The loop around `l`, if the first copies of `l` can be issued an iteration of it earlier.
    pub fn of(
        m: &Module,
        l: scf::For,
        schedule: &Schedule,
        promises: &Promises,
        max_shared: u32,
    ) -> Option<Outer> {
        let [level] = &schedule.levels[..] else { return None };
        if !schedule.copies.is_empty() || !level.carried.is_empty() {
            return None;
        }
        let outer = scf::For::cast(m, m.parent_op(l.0)?)?;
        let (body, inner) = (m.region_block(outer.body(m)), m.region_block(l.body(m)));
        // An iteration that waits for other programs must not have its copies issued before.
        if m.all_ops(outer.0).into_iter().any(|op| waiting::synchronizes(m, op)) {
            return None;
        }
        // Other pipelined loops would want rings of their own all the time.
        let loads = |op: &Op| tt::DescriptorLoad::cast(m, *op).is_some();
        if m.all_ops(outer.0).iter().any(|op| loads(op) && m.parent_block(*op) != Some(inner)) {
            return None;
        }
        // Nor may it read what the one before it has yet to write.
        let global = GlobalBases::of(m);
        let written = global.written_before(outer.0);
        if schedule.blocks.iter().any(|load| global.may_read(load.0, &written)) {
            return None;
        }
        let mut needed = vec![l.lower_bound(m), l.upper_bound(m), l.step(m)];
        for &op in level.ops.iter().chain(schedule.blocks.iter().map(|load| &load.0)) {
            needed.extend(m.operands(op).iter().filter(|&&v| m.value_block(v) != Some(inner)));
        }
        let mut slice = Slice::default();
        if !needed.into_iter().all(|v| slice.collect(m, outer, body, v))
            || !slice.carried.is_empty()
            || !slice.loaded.is_empty()
        {
            return None;
        }
        let ring: u32 = schedule.blocks.iter().map(|l| tma::block_bytes(m, l.desc(m)) as u32).sum::<u32>()
            * schedule.slots();
        if ring + budget::beside_rings(m, outer.0) > max_shared {
            return None;
        }
        let ops = m.block_ops(body).filter(|op| slice.ops.contains(op)).collect();
        Some(Outer { l: outer, counting: Counting::of(m, outer, promises), body, ops })
    }

    /// The number of the iteration.
    pub fn iv(&self, m: &Module) -> Value {
        m.block_args(self.body)[0]
    }

    /// Computes what the copies need of the iteration `iv` before `anchor`.
    pub fn values_at(&self, m: &mut Module, anchor: Op, iv: Value) -> FxHashMap<Value, Value> {
        let mut map = FxHashMap::default();
        map.insert(self.iv(m), iv);
        for &op in &self.ops {
            let clone = m.clone_op(op, &mut map);
            m.insert_before(clone, anchor);
        }
        map
    }

    /// Adds a carried value and returns its argument.
    pub fn carry(&self, m: &mut Module, init: Value) -> Value {
        let ty = m.value_type(init);
        m.push_operand(self.l.0, init);
        m.add_result(self.l.0, ty);
        m.add_block_arg(self.body, ty)
    }

    /// Adds what the body gives to the next iteration.
    pub fn yields(&self, m: &mut Module, values: &[Value]) {
        let end = m.last_op(self.body).expect("a loop body ends with a yield");
        for &v in values {
            m.push_operand(end, v);
        }
    }
}
