//! Operations that only rename elements: ranges, splats, broadcasts, reshapes, transposes, joins and splits.
//!
//! Each asks which register of the source has the coordinate that a register of the result needs. Where the two
//! layouts agree on what threads contribute, that is all; otherwise ([`reindex_registers`]) the data moves through shared
//! memory.

use tilewright_ir as ir;
use tilewright_ir::dialect::tt;
use tilewright_layout::TileLayout;
use tilewright_llvm::{Ty, Value};
use tilewright_passes::reindex::reindex_registers;

use super::{Lower, Regs, Result};

impl Lower<'_> {
    pub fn make_range(&mut self, op: tt::MakeRange) -> Result<()> {
        let result = op.result(self.m);
        let layout = self.layout(self.value_ty(result))?;
        let start = i64::from(op.start(self.m));
        let coords = self.coords(&layout, 0);
        let regs: Vec<Value> = coords.into_iter().map(|c| self.b.add_const(c, start)).collect();
        self.set_regs(result, regs);
        Ok(())
    }

    pub fn splat(&mut self, op: tt::Splat) -> Result<()> {
        let v = self.scalar(op.src(self.m))?;
        let result = op.result(self.m);
        let n = self.num_regs(self.value_ty(result))?;
        self.set_regs(result, vec![v; n]);
        Ok(())
    }

    pub fn unsplat(&mut self, op: tt::Unsplat) -> Result<()> {
        // A tensor of one element is held by every thread.
        let v = self.regs(op.src(self.m))?[0];
        self.set_regs(op.result(self.m), vec![v]);
        Ok(())
    }

    /// The result's registers, each the source register at `map(coordinate)`. The thread parts must agree.
    fn rename(&mut self, src: ir::Value, result: ir::Value, map: impl Fn(&[u32]) -> Vec<u32>) -> Result<()> {
        let (from, to) = (self.layout(self.value_ty(src))?, self.layout(self.value_ty(result))?);
        let regs = self.regs(src)?;
        let finder = from.register_finder();
        let mut out = Vec::with_capacity(to.num_registers() as usize);
        for r in 0..to.num_registers() {
            let coord = map(&to.register_coord(r));
            match finder.find(&coord) {
                Some(s) => out.push(regs[s as usize]),
                None => {
                    return Err(self.error(format!(
                        "internal: register {r} of the result needs element {coord:?}, which no register of the source has"
                    )));
                }
            }
        }
        self.set_regs(result, out);
        Ok(())
    }

    pub fn expand_dims(&mut self, op: tt::ExpandDims) -> Result<()> {
        let axis = op.axis(self.m) as usize;
        self.rename(op.src(self.m), op.result(self.m), |c| {
            let mut c = c.to_vec();
            c.remove(axis);
            c
        })
    }

    pub fn broadcast(&mut self, op: tt::Broadcast) -> Result<()> {
        let (src, result) = (op.src(self.m), op.result(self.m));
        let shape = self.m.shape(self.value_ty(src)).unwrap_or(&[]).to_vec();
        self.rename(src, result, |c| {
            c.iter().zip(&shape).map(|(&c, &s)| if s == 1 { 0 } else { c }).collect()
        })
    }

    /// Gives the results the operands' registers where no data moves between threads; false where it does, through scratch
    /// memory.
    fn reindexed(&mut self, op: ir::Op) -> Result<bool> {
        let Some(maps) = reindex_registers(self.m, op) else { return Ok(false) };
        let operands: Vec<Regs> = self.m.operands(op).iter().map(|&v| self.regs(v)).collect::<Result<_>>()?;
        for (&result, map) in self.m.results(op).iter().zip(maps) {
            let out: Vec<Value> = map.into_iter().map(|(k, r)| operands[k][r as usize]).collect();
            self.set_regs(result, out);
        }
        Ok(true)
    }

    /// Through scratch memory, where a row-major index is the same on both sides.
    pub fn reshape(&mut self, op: tt::Reshape) -> Result<()> {
        let (src, result) = (op.src(self.m), op.result(self.m));
        let layout = self.layout(self.value_ty(result))?;
        self.move_elements(op.0, src, result, &row_major(layout.shape()))
    }

    /// In registers where the threads agree, else through scratch memory, where a step along the result's axes is one of
    /// `strides` elements of the source.
    fn move_elements(
        &mut self,
        op: ir::Op,
        src: ir::Value,
        result: ir::Value,
        strides: &[i64],
    ) -> Result<()> {
        if self.reindexed(op)? {
            return Ok(());
        }
        let (from, to) = (self.layout(self.value_ty(src))?, self.layout(self.value_ty(result))?);
        let regs = self.regs(src)?;
        let ty = self.elem_ty(self.value_ty(result))?;
        let scratch = self.scratch()?;
        self.write_scratch(scratch, &from, &regs, &row_major(from.shape()), 0);
        self.barrier();
        let out = self.read_scratch(scratch, &to, ty, strides, 0);
        self.set_regs(result, out);
        Ok(())
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

    pub fn trans(&mut self, op: tt::Trans) -> Result<()> {
        let from = self.layout(self.value_ty(op.src(self.m)))?;
        let source = row_major(from.shape());
        // Result dimension i is source dimension order[i].
        let strides: Vec<i64> = op.order(self.m).iter().map(|&o| source[o as usize]).collect();
        self.move_elements(op.0, op.src(self.m), op.result(self.m), &strides)
    }

    pub fn join(&mut self, op: tt::Join) -> Result<()> {
        if self.reindexed(op.0)? {
            return Ok(());
        }
        let m = self.m;
        let (lhs, rhs, result) = (op.lhs(m), op.rhs(m), op.result(m));
        let (from, to) = (self.layout(self.value_ty(lhs))?, self.layout(self.value_ty(result))?);
        let (a, b) = (self.regs(lhs)?, self.regs(rhs)?);
        let ty = self.elem_ty(self.value_ty(result))?;
        let scratch = self.scratch()?;
        let strides: Vec<i64> = row_major(from.shape()).into_iter().map(|s| s * 2).collect();
        self.write_scratch(scratch, &from, &a, &strides, 0);
        self.write_scratch(scratch, &from, &b, &strides, 1);
        self.barrier();
        let out = self.read_scratch(scratch, &to, ty, &row_major(to.shape()), 0);
        self.set_regs(result, out);
        Ok(())
    }

    pub fn split(&mut self, op: tt::Split) -> Result<()> {
        if self.reindexed(op.0)? {
            return Ok(());
        }
        let m = self.m;
        let (src, lhs, rhs) = (op.src(m), op.lhs(m), op.rhs(m));
        let (from, to) = (self.layout(self.value_ty(src))?, self.layout(self.value_ty(lhs))?);
        let regs = self.regs(src)?;
        let ty = self.elem_ty(self.value_ty(src))?;
        let scratch = self.scratch()?;
        self.write_scratch(scratch, &from, &regs, &row_major(from.shape()), 0);
        self.barrier();
        let strides: Vec<i64> = row_major(to.shape()).into_iter().map(|s| s * 2).collect();
        for (k, result) in [lhs, rhs].into_iter().enumerate() {
            let out = self.read_scratch(scratch, &to, ty, &strides, k as i64);
            self.set_regs(result, out);
        }
        Ok(())
    }

    /// One after the other, in scratch memory where the registers don't add up.
    pub fn cat(&mut self, op: tt::Cat) -> Result<()> {
        if self.reindexed(op.0)? {
            return Ok(());
        }
        let m = self.m;
        let (a, b) = (self.regs(op.lhs(m))?, self.regs(op.rhs(m))?);
        let result = op.result(m);
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
pub(super) fn row_major(shape: &[u32]) -> Vec<i64> {
    let mut strides = vec![1i64; shape.len()];
    for axis in (0..shape.len().saturating_sub(1)).rev() {
        strides[axis] = strides[axis + 1] * i64::from(shape[axis + 1]);
    }
    strides
}
