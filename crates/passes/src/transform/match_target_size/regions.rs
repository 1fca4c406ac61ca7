//! Loops and branches that carry tensors carry their blocks.

use tilewright_ir::dialect::scf;
use tilewright_ir::{Block, Builder, Diagnostic, Op, Shape, Type, Value};

use super::Splitter;
use super::pieces::{self, Pieces};
use crate::analysis::encoding_inference::is_tensor;

impl Splitter<'_> {
    /// For each value the size of its blocks, where it is a tensor.
    fn sizes(&self, values: &[Value]) -> Vec<Option<Shape>> {
        values.iter().map(|&v| is_tensor(self.m, v).then(|| self.tiles.tile(self.m, v))).collect()
    }

    /// The blocks of these values, and what is no tensor as it is.
    fn expand(&mut self, values: &[Value], sizes: &[Option<Shape>]) -> Vec<Value> {
        let mut out = Vec::new();
        for (&value, size) in values.iter().zip(sizes) {
            match size {
                Some(tile) => out.extend(self.get(value, tile).values),
                None => out.push(value),
            }
        }
        out
    }

    /// The types of [`expand`](Self::expand).
    fn types(&mut self, values: &[Value], sizes: &[Option<Shape>]) -> Vec<Type> {
        let mut out = Vec::new();
        for (&value, size) in values.iter().zip(sizes) {
            match size {
                Some(tile) => {
                    let ty = self.tile_type(value, tile);
                    out.extend(vec![ty; pieces::count(&self.shape(value), tile)]);
                }
                None => out.push(self.m.value_type(value)),
            }
        }
        out
    }

    /// Lets new values stand for old ones.
    fn stand_for(&mut self, old: &[Value], sizes: &[Option<Shape>], new: &[Value]) {
        let mut at = 0;
        for (&value, size) in old.iter().zip(sizes) {
            match size {
                Some(tile) => {
                    let shape = self.shape(value);
                    let n = pieces::count(&shape, tile);
                    self.pieces.insert(value, Pieces::new(&shape, tile, new[at..at + n].to_vec()));
                    at += n;
                }
                None => {
                    self.m.replace_all_uses(value, new[at]);
                    at += 1;
                }
            }
        }
    }

    fn move_ops(&mut self, from: Block, to: Block) {
        for op in self.m.block_ops(from).collect::<Vec<_>>() {
            self.m.detach_op(op);
            self.m.append_op(to, op);
        }
    }

    /// The end of a region whose values are wanted in blocks.
    pub(super) fn end(&mut self, op: Op, sizes: &[Option<Shape>]) -> Result<(), Diagnostic> {
        if scf::Yield::cast(self.m, op).is_none() {
            return Err(self.unsupported(op, "of tensors, split to the size of instructions"));
        }
        let values = self.m.operands(op).to_vec();
        let values = self.expand(&values, sizes);
        scf::Yield::build(&mut Builder::before(self.m, op), &values);
        self.dead.push(op);
        Ok(())
    }

    pub(super) fn for_loop(&mut self, old: scf::For) -> Result<(), Diagnostic> {
        let body = self.m.region_block(old.body(self.m));
        let results = old.results(self.m).to_vec();
        let sizes = self.sizes(&results);
        if sizes.iter().all(Option::is_none) {
            return self.block(body, &[]);
        }
        let init = old.init(self.m).to_vec();
        let init = self.expand(&init, &sizes);
        let types = self.types(&results, &sizes);
        let (lower, upper, step) = (old.lower_bound(self.m), old.upper_bound(self.m), old.step(self.m));
        let mut b = Builder::before(self.m, old.0);
        let new = scf::For::build(&mut b, lower, upper, step, &init, &types);
        for (name, value) in self.m.op_attrs(old.0).to_vec() {
            self.m.set_attr(new.0, name, value);
        }
        let region = new.body(self.m);
        let of_body: Vec<Type> = std::iter::once(self.m.value_type(lower)).chain(types).collect();
        let block = self.m.append_block(region, &of_body);
        let (args, new_args) = (self.m.block_args(body).to_vec(), self.m.block_args(block).to_vec());
        self.m.replace_all_uses(args[0], new_args[0]);
        self.stand_for(&args[1..], &sizes, &new_args[1..]);
        self.dead.push(old.0);
        self.move_ops(body, block);
        self.block(block, &sizes)?;
        let new_results = new.results(self.m).to_vec();
        self.stand_for(&results, &sizes, &new_results);
        Ok(())
    }

    pub(super) fn branch(&mut self, old: scf::If) -> Result<(), Diagnostic> {
        let results = old.results(self.m).to_vec();
        let sizes = self.sizes(&results);
        let regions = [old.then_region(self.m), old.else_region(self.m)];
        if sizes.iter().all(Option::is_none) {
            for block in regions.map(|region| self.m.region_blocks(region).to_vec()).concat() {
                self.block(block, &[])?;
            }
            return Ok(());
        }
        let types = self.types(&results, &sizes);
        let condition = old.condition(self.m);
        let new = scf::If::build(&mut Builder::before(self.m, old.0), condition, &types);
        self.dead.push(old.0);
        let new_regions = [new.then_region(self.m), new.else_region(self.m)];
        for (from, to) in regions.into_iter().zip(new_regions) {
            let (from, block) = (self.m.region_block(from), self.m.append_block(to, &[]));
            self.move_ops(from, block);
            self.block(block, &sizes)?;
        }
        let new_results = new.results(self.m).to_vec();
        self.stand_for(&results, &sizes, &new_results);
        Ok(())
    }

    pub(super) fn while_loop(&mut self, op: Op) -> Result<(), Diagnostic> {
        let regions = self.m.regions(op).to_vec();
        let blocks: Vec<Block> = regions.iter().flat_map(|&r| self.m.region_blocks(r).to_vec()).collect();
        let mut values = blocks.iter().flat_map(|&block| self.m.block_args(block)).chain(self.m.results(op));
        if values.any(|&v| is_tensor(self.m, v)) {
            return Err(self.unsupported(op, "that carries tensors, split to the size of instructions"));
        }
        blocks.into_iter().try_for_each(|block| self.block(block, &[]))
    }
}
