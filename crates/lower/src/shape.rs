//! Operations that only rename elements: ranges, splats, broadcasts, reshapes, transposes, joins and splits.
//!
//! Their [index relations](tilewright_ir::index) say which element of which operand each element of a result is. Where the
//! layouts agree on what threads contribute, that is all; otherwise the data moves through shared memory.

use tilewright_ir as ir;
use tilewright_ir::dialect::{arith, tt};
use tilewright_ir::index::{Index, Relation};
use tilewright_layout::TileLayout;
use tilewright_llvm::{IntPred, Ty, Value};
use tilewright_passes::analysis::reindex::{reindex_registers, tile_registers};

use crate::{Hooks, Lower, Regs, Result};

impl<H: Hooks> Lower<'_, H> {
    pub(crate) fn make_range(&mut self, op: tt::MakeRange) -> Result<()> {
        let result = op.result(self.m);
        let layout = self.layout(self.value_ty(result))?;
        let start = i64::from(op.start(self.m));
        let coords = self.coords(&layout, 0);
        let regs: Vec<Value> = coords.into_iter().map(|c| self.b.add_const(c, start)).collect();
        self.set_regs(result, regs);
        Ok(())
    }

    pub(crate) fn splat(&mut self, op: tt::Splat) -> Result<()> {
        let v = self.scalar(op.src(self.m))?;
        let result = op.result(self.m);
        let n = self.num_regs(self.value_ty(result))?;
        self.set_regs(result, vec![v; n]);
        Ok(())
    }

    pub(crate) fn unsplat(&mut self, op: tt::Unsplat) -> Result<()> {
        // A tensor of one element is held by every thread.
        let v = self.regs(op.src(self.m))?[0];
        self.set_regs(op.result(self.m), vec![v]);
        Ok(())
    }

    /// An operation whose results are elements of its operands: in registers where the threads agree, else through scratch
    /// memory, where the elements lie in the row-major order of the operand, or of the result if several go into it.
    pub(crate) fn rearrange(&mut self, op: ir::Op) -> Result<()> {
        let m = self.m;
        let relation = Relation::of(m, op).map_err(|e| self.error(e))?;
        let (operands, results) = (m.operands(op), m.results(op));
        let mut sources = Vec::with_capacity(operands.len());
        for &v in operands {
            sources.push(self.regs(v)?);
        }
        let held = match m.def(op).map(|d| d.index) {
            // The layouts follow from each other: each thread has what it needs, in padding too.
            Some(Index::Broadcast | Index::ExpandDims(_)) => Some(vec![self.same_thread(&relation, op)?]),
            _ => reindex_registers(m, op),
        };
        if let Some(maps) = held {
            for (&result, map) in results.iter().zip(maps) {
                let regs: Vec<Value> =
                    map.into_iter().map(|(operand, r)| sources[operand][r as usize]).collect();
                self.set_regs(result, regs);
            }
            return Ok(());
        }
        let ty = self.elem_ty(self.value_ty(results[0]))?;
        let place = self.scratch()?;
        let several = operands.len() > 1;
        let missing = "internal: an element without a place";
        for (i, &v) in operands.iter().enumerate() {
            let layout = self.layout(self.value_ty(v))?;
            let mut to = (0, row_major(layout.shape()));
            if several {
                let all = row_major(self.layout(self.value_ty(results[0]))?.shape());
                to = affine(layout.shape(), |at| Some(flat(&all, &relation.target(i, at)?)))
                    .ok_or_else(|| self.error(missing))?;
            }
            self.write_scratch(place, &layout, &sources[i], &to.1, to.0);
        }
        self.barrier();
        for (n, &result) in results.iter().enumerate() {
            let layout = self.layout(self.value_ty(result))?;
            let mut from = (0, row_major(layout.shape()));
            if !several {
                let all = row_major(self.layout(self.value_ty(operands[0]))?.shape());
                from = affine(layout.shape(), |at| Some(flat(&all, &relation.source(n, at)?.1)))
                    .ok_or_else(|| self.error(missing))?;
            }
            let out = self.read_scratch(place, &layout, ty, &from.1, from.0);
            self.set_regs(result, out);
        }
        Ok(())
    }

    /// For each register of the only result the operand's register with the element that it is.
    fn same_thread(&mut self, relation: &Relation, op: ir::Op) -> Result<Vec<(usize, u32)>> {
        let (src, result) = (self.m.operands(op)[0], self.m.results(op)[0]);
        let (from, to) = (self.layout(self.value_ty(src))?, self.layout(self.value_ty(result))?);
        let finder = from.register_finder();
        let register = |r: u32| {
            let at = relation.source(0, &to.register_coord(r)).map(|(_, at)| at);
            let found = at.as_ref().and_then(|at| finder.find(at));
            found.map(|s| (0, s)).ok_or_else(|| {
                self.error(format!(
                    "internal: register {r} of the result needs element {at:?}, which no register of the source has"
                ))
            })
        };
        (0..to.num_registers()).map(register).collect()
    }

    /// Stores a tensor in scratch memory at `base + Σ coordinate · stride` elements.
    pub fn write_scratch(
        &mut self,
        scratch: Value,
        layout: &TileLayout,
        regs: &Regs,
        strides: &[i64],
        base: i64,
    ) {
        let bytes = i64::from(self.b.ty(regs[0]).bits().div_ceil(8));
        let owner = self.is_owner(layout);
        for r in layout.unique_registers() {
            let inside = self.in_bounds(layout, r);
            if inside.is_some_and(|p| self.b.is_false(p)) {
                continue;
            }
            let mut at = self.b.ptr_add_const(scratch, base * bytes);
            for (axis, &stride) in strides.iter().enumerate() {
                let c = self.coord(layout, r, axis);
                let scaled = self.b.mul_const(c, stride * bytes);
                at = self.b.ptr_add(at, scaled);
            }
            let pred = self.all(&[owner, inside]);
            self.store_shared(at, &[regs[r as usize]], pred);
        }
    }

    /// Reads a tensor's elements from scratch memory at `base + Σ coordinate · stride` elements.
    pub fn read_scratch(
        &mut self,
        scratch: Value,
        to: &TileLayout,
        ty: Ty,
        strides: &[i64],
        base: i64,
    ) -> Vec<Value> {
        let bytes = i64::from(ty.bits().div_ceil(8));
        (0..to.num_registers())
            .map(|r| {
                let mut at = self.b.ptr_add_const(scratch, base * bytes);
                for (axis, &stride) in strides.iter().enumerate() {
                    let mut c = self.coord(to, r, axis);
                    if to.needs_bounds_predicate(axis) {
                        // Padding reads some element that exists.
                        let last = self.b.i32(i64::from(to.shape()[axis] - 1));
                        c = self.int_min_max(ir::dialect::arith::Kind::Minui, c, last);
                    }
                    let scaled = self.b.mul_const(c, stride * bytes);
                    at = self.b.ptr_add(at, scaled);
                }
                self.load_shared(at, ty, 1)[0]
            })
            .collect()
    }

    /// A tile: registers of the thread where they are all of it, else read from scratch memory, where the source lies.
    pub(crate) fn extract_tile(&mut self, op: tt::ExtractTile) -> Result<()> {
        let m = self.m;
        let (src, result) = (op.src(m), op.result(m));
        let regs = self.regs(src)?;
        if let Some(held) = tile_registers(m, op.0) {
            let out: Vec<Value> = held.into_iter().map(|(_, r)| regs[r as usize]).collect();
            self.set_regs(result, out);
            return Ok(());
        }
        let (from, to) = (self.layout(self.value_ty(src))?, self.layout(self.value_ty(result))?);
        let ty = self.elem_ty(self.value_ty(result))?;
        let bytes = i64::from(ty.bits().div_ceil(8));
        let scratch = self.scratch()?;
        let strides = row_major(from.shape());
        self.write_scratch(scratch, &from, &regs, &strides, 0);
        self.barrier();
        let mut first = scratch;
        for (d, &index) in op.index(m).iter().enumerate() {
            let (n, count) = (to.shape()[d], from.shape()[d] / to.shape()[d]);
            let index = self.tile_number(index, count)?;
            let last = self.b.i32(i64::from(count - 1));
            let index = self.int_min_max(arith::Kind::Minui, index, last);
            let offset = self.b.mul_const(index, i64::from(n) * strides[d] * bytes);
            first = self.b.ptr_add(first, offset);
        }
        let out = self.read_scratch(first, &to, ty, &strides, 0);
        self.set_regs(result, out);
        Ok(())
    }

    /// The number of a tile, one of `count`.
    fn tile_number(&mut self, index: ir::Value, count: u32) -> Result<Value> {
        let number = self.scalar(index)?;
        if self.m.constant_int(index).is_none() {
            H::promise_below(self, number, count);
        }
        Ok(number)
    }

    /// A tile put in: registers of the thread where they are all of it, else by way of scratch memory, where the tile lies.
    pub(crate) fn insert_tile(&mut self, op: tt::InsertTile) -> Result<()> {
        let m = self.m;
        let (tile, result) = (op.tile(m), op.result(m));
        let (regs, new) = (self.regs(op.src(m))?, self.regs(tile)?);
        if let Some(held) = tile_registers(m, op.0) {
            let which = |(inside, r): (bool, u32)| if inside { new[r as usize] } else { regs[r as usize] };
            let out: Vec<Value> = held.into_iter().map(which).collect();
            self.set_regs(result, out);
            return Ok(());
        }
        let (from, to) = (self.layout(self.value_ty(tile))?, self.layout(self.value_ty(result))?);
        let ty = self.elem_ty(self.value_ty(result))?;
        let bytes = i64::from(ty.bits().div_ceil(8));
        let scratch = self.scratch()?;
        let strides = row_major(from.shape());
        self.write_scratch(scratch, &from, &new, &strides, 0);
        self.barrier();
        let mut firsts = Vec::new();
        for (d, &index) in op.index(m).iter().enumerate() {
            let n = from.shape()[d];
            let index = self.tile_number(index, to.shape()[d] / n)?;
            firsts.push(self.b.mul_const(index, i64::from(n)));
        }
        let mut out = Vec::with_capacity(regs.len());
        for r in 0..to.num_registers() {
            let (mut at, mut inside) = (scratch, self.b.bool(true));
            for (d, &stride) in strides.iter().enumerate() {
                let c = self.coord(&to, r, d);
                let c = self.b.sub(c, firsts[d]);
                let n = i64::from(from.shape()[d]);
                let (end, last) = (self.b.i32(n), self.b.i32(n - 1));
                let here = self.b.icmp(IntPred::Ult, c, end);
                inside = self.b.and(inside, here);
                // What is outside of the tile reads some element of it.
                let c = self.int_min_max(arith::Kind::Minui, c, last);
                let offset = self.b.mul_const(c, stride * bytes);
                at = self.b.ptr_add(at, offset);
            }
            let replaced = self.load_shared(at, ty, 1)[0];
            out.push(self.b.select(inside, replaced, regs[r as usize]));
        }
        self.set_regs(result, out);
        Ok(())
    }

    /// One after the other, in scratch memory where the registers don't add up.
    pub(crate) fn cat(&mut self, op: tt::Cat) -> Result<()> {
        let m = self.m;
        let (a, b) = (self.regs(op.lhs(m))?, self.regs(op.rhs(m))?);
        let result = op.result(m);
        if let Some(maps) = reindex_registers(m, op.0) {
            let out: Vec<Value> =
                maps[0].iter().map(|&(k, r)| if k == 0 { a[r as usize] } else { b[r as usize] }).collect();
            self.set_regs(result, out);
            return Ok(());
        }
        let from = self.layout(self.value_ty(op.lhs(m)))?;
        let to = self.layout(self.value_ty(result))?;
        let ty = self.elem_ty(self.value_ty(result))?;
        let scratch = self.scratch()?;
        self.write_scratch(scratch, &from, &a, &[1], 0);
        let second = self.layout(self.value_ty(op.rhs(m)))?;
        self.write_scratch(scratch, &second, &b, &[1], i64::from(from.shape()[0]));
        self.barrier();
        let out = self.read_scratch(scratch, &to, ty, &[1], 0);
        self.set_regs(result, out);
        Ok(())
    }
}

/// The strides of a shape, in elements, its last axis contiguous.
pub fn row_major(shape: &[u32]) -> Vec<i64> {
    let mut strides = vec![1i64; shape.len()];
    for axis in (0..shape.len().saturating_sub(1)).rev() {
        strides[axis] = strides[axis + 1] * i64::from(shape[axis + 1]);
    }
    strides
}

fn flat(strides: &[i64], at: &[u32]) -> i64 {
    strides.iter().zip(at).map(|(s, &x)| s * i64::from(x)).sum()
}

/// Where elements lie, as an offset and a stride for each dimension.
fn affine(shape: &[u32], place: impl Fn(&[u32]) -> Option<i64>) -> Option<(i64, Vec<i64>)> {
    let mut at = vec![0; shape.len()];
    let base = place(&at)?;
    let mut strides = Vec::with_capacity(shape.len());
    for d in 0..shape.len() {
        at[d] = 1;
        strides.push(if shape[d] > 1 { place(&at)? - base } else { 0 });
        at[d] = 0;
    }
    Some((base, strides))
}
