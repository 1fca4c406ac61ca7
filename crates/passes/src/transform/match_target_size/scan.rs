//! Scans: of each block, and of what came before it.
//!
//! ```text
//! %s = "tt.scan"(%x) <{axis = 0}> ({addf}) : tensor<32xf32>
//! =>
//! %s0 = "tt.scan"(%x0) : tensor<16xf32>
//! %t = "tt.reduce"(%x0) : f32
//! %s1 = splat(%t) + "tt.scan"(%x1) : tensor<16xf32>
//! ```

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::tt;
use tilewright_ir::{Builder, Diagnostic, Shape, Value};

use super::Splitter;
use super::pieces::{self, Pieces};
use super::tiles::clip;
use crate::parts;

impl Splitter<'_> {
    /// Blocks along the axis one after the other, each with what those before it come to.
    pub(super) fn scan(&mut self, scan: tt::Scan) -> Result<(), Diagnostic> {
        let srcs = scan.srcs(self.m).to_vec();
        let (shape, axis) = (self.shape(srcs[0]), scan.axis(self.m) as usize);
        let tile = srcs.iter().map(|&v| self.own_tile(v)).reduce(|a, b| clip(&a, &b)).unwrap_or_default();
        let given: Vec<Pieces> = srcs.iter().map(|&v| self.get(v, &tile)).collect();
        let steps = shape[axis] / tile[axis];
        if steps > 1 && !parts::commutes(self.m, scan.0) {
            let what = "of several blocks, by a function whose operands have an order, which a reduction does not keep";
            return Err(self.unsupported(scan.0, what));
        }
        let mut blocks: Vec<Vec<Option<Value>>> = vec![vec![None; pieces::count(&shape, &tile)]; srcs.len()];
        for i in 0..pieces::count(&shape, &tile) {
            let mut at = pieces::place(&shape, &tile, i);
            if at[axis] > 0 {
                continue;
            }
            let mut before: Option<Vec<Value>> = None;
            for step in 0..steps {
                at[axis] = if scan.reverse(self.m) { steps - 1 - step } else { step };
                let block: Vec<Value> = given.iter().map(|p| p.at(&at)).collect();
                let copy = self.copy(scan.0, &block, &tile);
                let mut scanned = self.m.results(copy).to_vec();
                if let Some(before) = &before {
                    let before = self.repeated(scan, before, &tile);
                    let point = Builder::before(self.m, scan.0).point();
                    scanned = parts::combine(self.m, scan.0, point, &before, &scanned)?.0;
                }
                let number = given[0].number(&at);
                blocks.iter_mut().zip(scanned).for_each(|(blocks, value)| blocks[number] = Some(value));
                if step + 1 < steps {
                    let all = self.reduced(scan, &block, &tile);
                    before = Some(match before {
                        None => all,
                        Some(before) => {
                            let point = Builder::before(self.m, scan.0).point();
                            parts::combine(self.m, scan.0, point, &before, &all)?.0
                        }
                    });
                }
            }
        }
        for (result, blocks) in scan.results(self.m).to_vec().into_iter().zip(blocks) {
            let values = blocks.into_iter().flatten().collect();
            self.pieces.insert(result, Pieces::new(&shape, &tile, values));
        }
        Ok(())
    }

    /// What a block comes to along the axis, by the scan's function.
    fn reduced(&mut self, scan: tt::Scan, block: &[Value], tile: &Shape) -> Vec<Value> {
        let axis = scan.axis(self.m);
        let mut rest = tile.clone();
        rest.remove(axis as usize);
        let types: Vec<_> = block
            .iter()
            .map(|&v| match rest.is_empty() {
                true => self.m.element_type(self.m.value_type(v)),
                false => self.tile_type(v, &rest),
            })
            .collect();
        let mut b = Builder::before(self.m, scan.0);
        let reduce = tt::Reduce::build(&mut b, block, axis, &types);
        let m = &mut *self.m;
        let from = m.region_block(scan.combine(m));
        let args = m.block_args(from).to_vec();
        let types: Vec<_> = args.iter().map(|&v| m.value_type(v)).collect();
        let region = reduce.combine(m);
        let to = m.append_block(region, &types);
        let mut map: FxHashMap<Value, Value> = args.into_iter().zip(m.block_args(to).to_vec()).collect();
        for op in m.block_ops(from).collect::<Vec<_>>() {
            if tt::ScanReturn::cast(m, op).is_some() {
                let values: Vec<Value> = m.operands(op).iter().map(|v| *map.get(v).unwrap_or(v)).collect();
                tt::ReduceReturn::build(&mut Builder::at_end(m, to), &values);
            } else {
                let clone = m.clone_op(op, &mut map);
                m.append_op(to, clone);
            }
        }
        reduce.results(self.m).to_vec()
    }

    /// The same in all places along the axis.
    fn repeated(&mut self, scan: tt::Scan, values: &[Value], tile: &Shape) -> Vec<Value> {
        let axis = scan.axis(self.m);
        let mut one = tile.clone();
        one[axis as usize] = 1;
        let mut all = Vec::new();
        for &value in values {
            let (single, whole) = (self.tile_type(value, &one), self.tile_type(value, tile));
            let mut b = Builder::before(self.m, scan.0);
            all.push(if tile.len() == 1 {
                tt::Splat::build(&mut b, value, whole).result(b.module)
            } else {
                let value = tt::ExpandDims::build(&mut b, value, axis, single).result(b.module);
                tt::Broadcast::build(&mut b, value, whole).result(b.module)
            });
        }
        all
    }
}
