//! Operations that only rename elements: ranges, splats, broadcasts, reshapes, transposes, joins and splits.
//!
//! Each asks which register of the source has the coordinate that a register of the result needs. Where the two
//! layouts agree on what threads contribute, that is all; otherwise the data moves through shared memory.

use tilewright_ir as ir;
use tilewright_ir::dialect::tt;
use tilewright_layout::TileLayout;
use tilewright_llvm::{Ty, Value};

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

    /// Whether for each register of the result one register of the source holds the same element in every thread,
    /// where `map` takes a coordinate of the result to one of the source.
    fn register_map(
        from: &TileLayout,
        to: &TileLayout,
        map: &dyn Fn(&[u32]) -> Vec<u32>,
    ) -> Option<Vec<u32>> {
        let finder = from.register_finder();
        let mut out = Vec::with_capacity(to.num_registers() as usize);
        let warps = from.num_warps().max(to.num_warps());
        for r in 0..to.num_registers() {
            let at = to.register_coord(r);
            if !to.in_bounds(&at) {
                // Padding in thread 0: some other thread may still need a register.
                let any =
                    (0..32).any(|l| (0..warps).any(|w| to.in_bounds(&to.coords(r, l, w % to.num_warps()))));
                if any {
                    return None;
                }
                out.push(0);
                continue;
            }
            let s = finder.find(&map(&at))?;
            for bit in 0..5 {
                let c = to.coords(r, 1 << bit, 0);
                if to.in_bounds(&c) && from.coords(s, 1 << bit, 0)[..] != map(&c)[..] {
                    return None;
                }
            }
            let mut warp = 1;
            while warp < warps {
                let c = to.coords(r, 0, warp % to.num_warps());
                if to.in_bounds(&c) && from.coords(s, 0, warp % from.num_warps())[..] != map(&c)[..] {
                    return None;
                }
                warp *= 2;
            }
            out.push(s);
        }
        Some(out)
    }

    /// Reshapes in registers where the threads agree, else through scratch memory, where a row-major index is the same
    /// on both sides.
    pub fn reshape(&mut self, op: tt::Reshape) -> Result<()> {
        let (src, result) = (op.src(self.m), op.result(self.m));
        let from = self.m.shape(self.value_ty(src)).unwrap_or(&[]).to_vec();
        let to = self.m.shape(self.value_ty(result)).unwrap_or(&[]).to_vec();
        let map = move |c: &[u32]| {
            let mut flat = c.iter().zip(&to).fold(0u32, |acc, (&c, &s)| acc * s + c);
            let mut out = vec![0; from.len()];
            for (o, &s) in out.iter_mut().zip(&from).rev() {
                *o = flat % s;
                flat /= s;
            }
            out
        };
        let layout = self.layout(self.value_ty(result))?;
        let strides = row_major(layout.shape());
        self.move_elements(src, result, &map, &strides)
    }

    /// Moves data so that element `c` of the result is element `map(c)` of the source: in registers where the threads
    /// agree, else through scratch memory, where a step along the result's axes is one of `strides` elements.
    fn move_elements(
        &mut self,
        src: ir::Value,
        result: ir::Value,
        map: &dyn Fn(&[u32]) -> Vec<u32>,
        strides: &[i64],
    ) -> Result<()> {
        let (from, to) = (self.layout(self.value_ty(src))?, self.layout(self.value_ty(result))?);
        let regs = self.regs(src)?;
        if let Some(registers) = Self::register_map(&from, &to, map) {
            let out: Vec<Value> = registers.into_iter().map(|r| regs[r as usize]).collect();
            self.set_regs(result, out);
            return Ok(());
        }
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
        let order = op.order(self.m);
        let from = self.layout(self.value_ty(op.src(self.m)))?;
        let source = row_major(from.shape());
        // Result dimension i is source dimension order[i].
        let strides: Vec<i64> = order.iter().map(|&o| source[o as usize]).collect();
        let map = move |c: &[u32]| {
            let mut out = vec![0; c.len()];
            for (i, &o) in order.iter().enumerate() {
                out[o as usize] = c[i];
            }
            out
        };
        self.move_elements(op.src(self.m), op.result(self.m), &map, &strides)
    }

    pub fn join(&mut self, op: tt::Join) -> Result<()> {
        let m = self.m;
        let (lhs, rhs, result) = (op.lhs(m), op.rhs(m), op.result(m));
        let (from, to) = (self.layout(self.value_ty(lhs))?, self.layout(self.value_ty(result))?);
        let (a, b) = (self.regs(lhs)?, self.regs(rhs)?);
        let rank = to.rank();
        // In registers where the new dimension lies within a thread.
        let in_thread = to.lane_bases(rank - 1).iter().chain(&to.warp_bases(rank - 1)).all(|&x| x == 0);
        if in_thread && let Some(map) = Self::register_map(&from, &to, &|c: &[u32]| c[..c.len() - 1].to_vec())
        {
            let out: Vec<Value> = map
                .into_iter()
                .enumerate()
                .map(|(r, s)| {
                    let which = to.register_coord(r as u32)[rank - 1];
                    if which == 0 { a[s as usize] } else { b[s as usize] }
                })
                .collect();
            self.set_regs(result, out);
            return Ok(());
        }
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
        let m = self.m;
        let (src, lhs, rhs) = (op.src(m), op.lhs(m), op.rhs(m));
        let (from, to) = (self.layout(self.value_ty(src))?, self.layout(self.value_ty(lhs))?);
        let regs = self.regs(src)?;
        let with = |k: u32| {
            move |c: &[u32]| {
                let mut c = c.to_vec();
                c.push(k);
                c
            }
        };
        let maps = (Self::register_map(&from, &to, &with(0)), Self::register_map(&from, &to, &with(1)));
        if let (Some(zero), Some(one)) = maps {
            for (result, map) in [(lhs, zero), (rhs, one)] {
                let out: Vec<Value> = map.into_iter().map(|r| regs[r as usize]).collect();
                self.set_regs(result, out);
            }
            return Ok(());
        }
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

    /// The order of elements is not specified: where the registers add up, they are put one after the other.
    pub fn cat(&mut self, op: tt::Cat) -> Result<()> {
        let m = self.m;
        let (a, b) = (self.regs(op.lhs(m))?, self.regs(op.rhs(m))?);
        let result = op.result(m);
        let from = self.layout(self.value_ty(op.lhs(m)))?;
        let to = self.layout(self.value_ty(result))?;
        let ty = self.elem_ty(self.value_ty(result))?;
        let adds_up = to.num_registers() as usize == a.len() + b.len()
            && from.free_variable_masks() == to.free_variable_masks();
        if adds_up && !from.is_padded() && !to.is_padded() {
            let out: Vec<Value> = a.iter().chain(b.iter()).copied().collect();
            self.set_regs(result, out);
            return Ok(());
        }
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
