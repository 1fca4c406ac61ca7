//! Reductions along a dimension that warps share: of each warp's part first, then of what the warps got; and what one warp computes for all.
//!
//! ```text
//! %s = "tt.reduce"(%x) ({addf}) : (tensor<1024xf32, #blocked>) -> f32
//! =>                                                                        (four warps)
//! %mine = "tt.reduce"(%x) ({addf}) : (tensor<256xf32, #blocked>) -> f32
//! ttg.local_store splat(%mine), %all[%warp]
//! ttg.barrier
//! %s = %all[0] + %all[1] + %all[2] + %all[3]
//! ttg.barrier
//! ```
//!
//! All warps add up in one order, that of the parts, so that all have the same. The second barrier is for whoever writes to the same
//! memory next: this reduction in the next iteration of a loop, or another buffer in its place.

use tilewright_ir::dialect::{arith, tt, ttg};
use tilewright_ir::{AttrKind, Builder, Diagnostic, Encoding, Op, SharedKind, Type, Value};
use tilewright_layout::WarpAxis;

use super::Distributor;
use crate::analysis::encoding_choice::row_major;
use crate::analysis::encoding_inference::is_tensor;
use crate::parts;

impl Distributor<'_> {
    pub(super) fn reduce(&mut self, reduce: tt::Reduce) -> Result<(), Diagnostic> {
        let src = reduce.srcs(self.m)[0];
        let axis = reduce.axis(self.m) as usize;
        let shared =
            self.parts.get(&src).and_then(|part| part.axes.get(axis)).filter(|a| a.count > 1).copied();
        let Some(shared) = shared else { return Ok(()) };
        let results = reduce.results(self.m).to_vec();
        let users: Vec<_> = results.iter().map(|&r| self.m.uses(r).to_vec()).collect();
        let next = self.m.next_op(reduce.0).expect("a block ends with something else");
        let buffers: Vec<Value> = results.iter().map(|&r| self.give(r, next)).collect();
        ttg::Barrier::build(&mut Builder::before(self.m, next));
        let mut sum: Option<Vec<Value>> = None;
        for number in 0..shared.count {
            let taken: Vec<Value> = results
                .iter()
                .zip(&buffers)
                .map(|(&r, &from)| self.take(r, from, shared, number, next))
                .collect();
            sum = Some(match sum {
                None => taken,
                Some(before) => {
                    let point = Builder::before(self.m, next).point();
                    parts::combine(self.m, reduce.0, point, &before, &taken)?.0
                }
            });
        }
        ttg::Barrier::build(&mut Builder::before(self.m, next));
        for ((value, result), users) in sum.into_iter().flatten().zip(&results).zip(users) {
            if let Some(part) = self.parts.get(result).cloned() {
                self.parts.insert(value, part);
            }
            for user in users {
                self.m.set_operand(user.op, user.index as usize, value);
            }
        }
        Ok(())
    }

    /// A tensor that is what a result is; of a number, one of it alone.
    fn tensor_like(&mut self, result: Value) -> Type {
        let ty = self.m.value_type(result);
        if is_tensor(self.m, result) {
            return ty;
        }
        let (size_per_warp, warps_per_cta, order) = (vec![1], vec![self.num_warps], vec![0]);
        let encoding = Encoding::WarpBlocked { size_per_warp, warps_per_cta, order };
        let encoding = self.m.attr(AttrKind::Encoding(encoding));
        self.m.tensor_type(&[1], ty, Some(encoding))
    }

    /// The slot of a buffer with one for each warp.
    pub(super) fn slot(&mut self, buffer: Value, warp: Value, next: Op) -> Value {
        let ty = self.m.value_type(buffer);
        let (shape, element) = (self.m.shape(ty).unwrap_or(&[])[1..].to_vec(), self.m.element_type(ty));
        let encoding = self.m.encoding(ty).expect("it was made with one");
        let ty = self.m.buffer_type(&shape, element, encoding, true);
        let mut b = Builder::before(self.m, next);
        ttg::MemdescIndex::build(&mut b, buffer, warp, ty).result(b.module)
    }

    /// Writes what this warp got to its slot of a new buffer.
    fn give(&mut self, result: Value, next: Op) -> Value {
        let ty = self.tensor_like(result);
        let (shape, element) = (self.m.shape(ty).unwrap_or(&[]).to_vec(), self.m.element_type(ty));
        let order = row_major(shape.len());
        let plain = Encoding::Shared(SharedKind::Swizzled { vec: 1, per_phase: 1, max_phase: 1, order });
        let plain = self.m.attr(AttrKind::Encoding(plain));
        let of_all: Vec<u32> = std::iter::once(self.num_warps).chain(shape).collect();
        let of_all = self.m.buffer_type(&of_all, element, plain, true);
        let mut b = Builder::before(self.m, self.first);
        let buffer = ttg::LocalAlloc::build(&mut b, None, of_all).result(b.module);
        let warp = self.warp();
        let slot = self.slot(buffer, warp, next);
        let mut b = Builder::before(self.m, next);
        let value = if is_tensor(b.module, result) {
            result
        } else {
            tt::Splat::build(&mut b, result, ty).result(b.module)
        };
        ttg::LocalStore::build(&mut b, value, slot);
        buffer
    }

    /// What one warp alone computes, in a branch that only it takes, all get that want it: those that differ from it in these bits of their
    /// numbers.
    pub(super) fn hand_out(&mut self, op: Op, result: Value, copies: u32, next: Op) {
        let users = self.m.uses(result).to_vec();
        let end = self.m.next_op(op).expect("a branch ends with something else");
        let buffer = self.give(result, end);
        ttg::Barrier::build(&mut Builder::before(self.m, next));
        let warp = self.warp();
        let mut b = Builder::before(self.m, self.first);
        let mask = b.i32(!(copies as i32));
        let leader = arith::Andi::build(&mut b, warp, mask).result(b.module);
        let value = self.read(result, buffer, leader, next);
        ttg::Barrier::build(&mut Builder::before(self.m, next));
        if let Some(part) = self.parts.get(&result).cloned() {
            self.parts.insert(value, part);
        }
        for user in users {
            self.m.set_operand(user.op, user.index as usize, value);
        }
    }

    /// Reads what the warp got that has part `number` along the axis, and else what this one has.
    fn take(&mut self, result: Value, buffer: Value, axis: WarpAxis, number: u32, next: Op) -> Value {
        let warp = self.warp();
        let mut b = Builder::before(self.m, self.first);
        let mask = b.i32(!((axis.count as i32 - 1) << axis.shift));
        let others = arith::Andi::build(&mut b, warp, mask).result(b.module);
        let number = b.i32((number << axis.shift) as i32);
        let warp = arith::Ori::build(&mut b, others, number).result(b.module);
        self.read(result, buffer, warp, next)
    }

    /// Reads a warp's slot of a buffer.
    fn read(&mut self, result: Value, buffer: Value, warp: Value, next: Op) -> Value {
        let slot = self.slot(buffer, warp, next);
        let ty = self.tensor_like(result);
        let mut b = Builder::before(self.m, next);
        let taken = ttg::LocalLoad::build(&mut b, slot, None, ty).result(b.module);
        if is_tensor(b.module, result) {
            return taken;
        }
        let number = b.module.element_type(ty);
        tt::Unsplat::build(&mut b, taken, number).result(b.module)
    }
}
