//! `tt.gather`.

use tilewright_ir::dialect::{arith, tt};
use tilewright_layout::TileLayout;
use tilewright_llvm::{IntPred, Ty, Value};
use tilewright_passes::analysis::scratch;

use crate::shape::row_major;
use crate::{Hooks, Lower, Regs, Result, memory_bits};

/// Elements of a tile that follow each other in row-major order.
#[derive(Clone, Copy)]
struct Part {
    first: u32,
    count: u32,
}

impl<H: Hooks> Lower<'_, H> {
    /// The source in scratch memory, read at computed places: part after part of it, where there is no room for all. An element whose place is in another
    /// part is not read.
    pub(crate) fn gather(&mut self, op: tt::Gather) -> Result<()> {
        let m = self.m;
        let axis = op.axis(m) as usize;
        let result = op.result(m);
        let (from, to) = (self.layout(self.value_ty(op.src(m)))?, self.layout(self.value_ty(result))?);
        let (values, indices) = (self.regs(op.src(m))?, self.regs(op.indices(m))?);
        let ty = self.elem_ty(self.value_ty(result))?;
        let scratch = self.scratch()?;
        self.promise_indices(&to, &indices, from.shape()[axis]);
        let places: Vec<Value> = (0..to.num_registers())
            .map(|r| self.place_in(&from, (axis, indices[r as usize]), &to, r))
            .collect();
        let zero = self.b.zero(ty);
        let mut out = vec![zero; places.len()];
        let all: u32 = from.shape().iter().product();
        let part = scratch::gather_part(m, op);
        for first in (0..all).step_by(part as usize) {
            let part = Part { first, count: part.min(all - first) };
            if first > 0 {
                // Other threads read the part before.
                self.barrier();
            }
            self.store_part(scratch, part, &from, &values);
            self.barrier();
            for r in 0..to.num_registers() {
                let range = flat_range(&from, &to, r, Some(axis));
                let Some((pred, at)) = self.in_part(part, range, places[r as usize]) else { continue };
                let at = self.ptr_at(scratch, at, ty);
                let loaded = self.load_shared_where(at, ty, 1, Some(pred))[0];
                out[r as usize] = self.b.select(pred, loaded, out[r as usize]);
            }
        }
        self.set_regs(result, out);
        Ok(())
    }

    /// The number, in row-major order, of the element of `from` that is where a register of `to` is, but for its index along one axis.
    /// Padding and wrong indices name some element that exists.
    fn place_in(
        &mut self,
        from: &TileLayout,
        (axis, index): (usize, Value),
        to: &TileLayout,
        r: u32,
    ) -> Value {
        let mut place = self.b.i32(0);
        for (d, stride) in row_major(from.shape()).into_iter().enumerate() {
            let c = if d == axis { self.b.int_cast(index, Ty::I32, true) } else { self.coord(to, r, d) };
            let last = self.b.i32(i64::from(from.shape()[d] - 1));
            let c = self.int_min_max(arith::Kind::Minui, c, last);
            let c = self.b.mul_const(c, stride);
            place = self.b.add(place, c);
        }
        place
    }

    /// Stores what of a tile lies in a part of it, in row-major order.
    fn store_part(&mut self, scratch: Value, part: Part, layout: &TileLayout, regs: &Regs) {
        let owner = self.is_owner(layout);
        for r in layout.unique_registers() {
            let inside = self.in_bounds(layout, r);
            if inside.is_some_and(|p| self.b.is_false(p)) {
                continue;
            }
            let flat = self.flat_index(layout, r);
            let range = flat_range(layout, layout, r, None);
            let Some((here, at)) = self.in_part(part, range, flat) else { continue };
            let value = regs[r as usize];
            let at = self.ptr_at(scratch, at, self.b.ty(value));
            let pred = self.all(&[owner, inside, Some(here)]);
            self.store_shared(at, &[value], pred);
        }
    }

    /// Whether an element's number is one of a part, and which there; nothing where it never is, by the range in which it is.
    fn in_part(&mut self, part: Part, (least, most): (u32, u32), number: Value) -> Option<(Value, Value)> {
        let end = part.first + part.count;
        if most < part.first || least >= end {
            return None;
        }
        let at = self.b.add_const(number, -i64::from(part.first));
        let count = self.b.i32(part.count.into());
        let here = match least >= part.first && most < end {
            true => self.b.bool(true),
            false => self.b.icmp(IntPred::Ult, at, count),
        };
        Some((here, at))
    }

    fn ptr_at(&mut self, scratch: Value, number: Value, ty: Ty) -> Value {
        let offset = self.b.mul_const(number, i64::from(memory_bits(ty) / 8));
        self.b.ptr_add(scratch, offset)
    }

    /// Tells who checks the target's code that a gather's indices name elements that there are. Those of padding may be anything.
    fn promise_indices(&mut self, layout: &TileLayout, indices: &Regs, extent: u32) {
        for r in layout.unique_registers() {
            let index = indices[r as usize];
            let index = match self.b.ty(index).bits() < 32 {
                true => self.b.int_cast(index, Ty::I32, true),
                false => index,
            };
            let index = match self.in_bounds(layout, r) {
                Some(inside) => {
                    let first = self.b.zero(self.b.ty(index));
                    self.b.select(inside, index, first)
                }
                None => index,
            };
            if self.b.as_const(index).is_none_or(|index| index >= u64::from(extent)) {
                H::promise_below(self, index, extent);
            }
        }
    }
}

/// The least and the greatest number in `of`, in row-major order, that an element has which is where a register of `layout` is in any thread, at whatever index along
/// the axis that is free.
fn flat_range(of: &TileLayout, layout: &TileLayout, register: u32, free: Option<usize>) -> (u32, u32) {
    let (mut least, mut most) = (0, 0);
    for (d, (&at, &extent)) in layout.register_coord(register).iter().zip(of.shape()).enumerate() {
        let threads = layout.thread_bits(d);
        let (first, last) = if Some(d) == free { (0, extent - 1) } else { (at & !threads, at | threads) };
        least = least * extent + first.min(extent - 1);
        most = most * extent + last.min(extent - 1);
    }
    (least, most)
}
