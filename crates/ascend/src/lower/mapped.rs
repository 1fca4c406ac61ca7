//! Functions of elements (`tl.map_elementwise`): the scalar unit calls them for one group of elements after the other.
//!
//! ```text
//! %y = tt.map_elementwise %x { ^bb(%a: i32): … tt.map_elementwise.return %b }      =>      scf.for %k { %a = memref.load %x[%k] ; … ; memref.store %b, %y[%k] }
//! ```

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{arith, tt};
use tilewright_ir::{Builder, Op, Opcode, Type, Value, ascend};

use super::scalar::is_scalar;
use super::unsupported;
use super::vectors::{Lower, Result};

impl Lower<'_> {
    /// Calls the function for all elements; `pack` neighbours of the last dimension at a time.
    pub fn map_elementwise(&mut self, map: tt::MapElementwise) -> Result<()> {
        let op = map.0;
        let block = self.m.region_block(map.scalar_op(self.m));
        for inner in self.m.all_ops(op) {
            let known = inner == op
                || is_scalar(self.m, inner)
                || matches!(
                    self.m.opcode(inner),
                    Some(Opcode::Scf(_) | Opcode::Tt(tt::Kind::MapElementwiseReturn))
                );
            if !known {
                let what = format!("`{}` in a function of elements", self.m.op_name(inner));
                return Err(unsupported(self.m, inner, what));
            }
        }
        let results = self.m.results(op).to_vec();
        let mut shape = self.shape(results[0]);
        let pack = map.pack(self.m).unsigned_abs();
        let Some(last) = shape.last_mut().filter(|n| n.is_multiple_of(pack)) else {
            return Err(unsupported(self.m, op, "a function of elements that are of several rows"));
        };
        *last /= pack;
        let mut sources = Vec::new();
        for v in self.m.operands(op).to_vec() {
            sources.push(self.elements(op, v)?);
        }
        let mut outs = Vec::new();
        for &r in &results {
            let (whole, element) = (self.shape(r), self.element(r));
            outs.push(self.new_buffer(op, &whole, element, ascend::UB));
        }
        let (group, at) = self.nest(op, &shape);
        let places: Vec<Vec<Value>> = (0..pack).map(|i| self.in_group(at, &group, pack, i)).collect();
        let mut given = Vec::new();
        for &source in &sources {
            for place in &places {
                given.push(self.element_at(at, source, place));
            }
        }
        let args = self.m.block_args(block).to_vec();
        let mut known: FxHashMap<Value, Value> = args.into_iter().zip(given).collect();
        let ops: Vec<Op> = self.m.block_ops(block).collect();
        let Some((&end, ops)) = ops.split_last() else { return Ok(()) };
        for &inner in ops {
            let clone = self.m.clone_op(inner, &mut known);
            self.m.insert_before(clone, at);
        }
        let made = self.m.operands(end).to_vec();
        for (i, v) in made.into_iter().enumerate() {
            let number = known.get(&v).copied().unwrap_or(v);
            self.put_at(at, number, outs[i / pack as usize], &places[i % pack as usize]);
        }
        for (&result, out) in results.iter().zip(outs) {
            self.buffers.insert(result, out);
        }
        Ok(())
    }

    /// The indices of one of a group's elements.
    fn in_group(&mut self, at: Op, group: &[Value], pack: u32, i: u32) -> Vec<Value> {
        let mut indices = group.to_vec();
        if let (Some(last), true) = (indices.last_mut(), pack > 1) {
            let mut b = Builder::before(self.m, at);
            let (by, i) = (b.int(i64::from(pack), Type::INDEX), b.int(i64::from(i), Type::INDEX));
            let first = arith::Muli::build(&mut b, *last, by).result(b.module);
            *last = arith::Addi::build(&mut b, first, i).result(b.module);
        }
        indices
    }
}
