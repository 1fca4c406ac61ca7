//! Atomic read-modify-write and compare-and-swap of global memory.
//!
//! An element that several threads hold is operated on by one of them; where the old value is used, the others get it
//! through scratch memory.
//!
//! The elements of a tensor are ordered with nothing among each other, so that what comes before and behind the operation is ordered with all of
//! them by a fence before, and by one behind if anybody learns what was there: an operation that orders by itself is a fence for each element.

use tilewright_ir as ir;
use tilewright_ir::dialect::tt;
use tilewright_layout::TileLayout;
use tilewright_llvm::{Ty, Value};
use tilewright_passes::analysis::scratch::shares_old_values;

use crate::{Hooks, Lower, Regs, Result, memory_bits, row_major};

/// An atomic operation, as it is for each element.
#[derive(Debug, Clone, Copy)]
pub struct Atomic {
    /// How the new value is made; `None` for compare-and-swap, whose values are the one expected and the one stored.
    pub rmw: Option<tt::RmwOp>,
    /// Type of the elements.
    pub ty: Ty,
    /// What is ordered with it.
    pub sem: tt::MemSemantic,
    /// Among whom.
    pub scope: tt::MemSyncScope,
    /// Whether the old value is used.
    pub used: bool,
}

impl<H: Hooks> Lower<'_, H> {
    /// An atomic read-modify-write; the error says what is not supported.
    pub fn atomic_rmw(&mut self, op: tt::AtomicRmw) -> Result<()> {
        let m = self.m;
        let (val, result) = (op.val(m), op.result(m));
        let ty = self.elem_ty(self.value_ty(val))?;
        let used = !m.is_unused(result);
        if H::RELAXED_STORES && !used && self.is_relaxed_store(op, ty) {
            return self.store_relaxed(op);
        }
        let what = Atomic { rmw: Some(op.rmw_op(m)), ty, sem: op.sem(m), scope: op.scope(m), used };
        if !used && self.adds_side_by_side(op, ty)? {
            let first = self.regs(op.ptr(m))?[0];
            let what = self.fence_before(what, first);
            if what.sem == tt::MemSemantic::Relaxed {
                return self.store_tensor(op.ptr(m), val, op.mask(m), |l, ptr, values, words, pred| {
                    H::add_side_by_side(l, ty, ptr, values, words, pred, what.scope);
                });
            }
        }
        self.atomic(what, op.ptr(m), &[val], op.mask(m), result)
    }

    /// Whether it adds to floats in this GPU's memory of which a thread has several side by side. (What other GPUs' memory takes from one instruction was not seen.)
    fn adds_side_by_side(&mut self, op: tt::AtomicRmw, ty: Ty) -> Result<bool> {
        let m = self.m;
        let of = m.value_type(op.ptr(m));
        if op.rmw_op(m) != tt::RmwOp::Fadd
            || op.scope(m) == tt::MemSyncScope::System
            || !m.is_tensor(of)
            || m.is_shared_pointer(of)
            || m.is_remote_pointer(of)
        {
            return Ok(false);
        }
        let layout = self.layout(of)?;
        let first = self.regs(op.ptr(m))?[0];
        Ok(self.access_width(&layout, ty.bits()).1 > 1 && H::adds_side_by_side(self, first, ty))
    }

    /// Orders what comes before an operation on the elements of a tensor with all of them, which need no order of their own then.
    fn fence_before(&mut self, what: Atomic, ptr: Value) -> Atomic {
        use tt::MemSemantic as S;
        if what.sem == S::Relaxed || !H::has_fence(self, ptr) {
            return what;
        }
        if matches!(what.sem, S::Release | S::AcquireRelease) {
            H::fence(self, ptr, what.scope);
        }
        Atomic { sem: S::Relaxed, ..what }
    }

    /// Whether it is a store of a tensor to global memory, where nobody uses the old values.
    fn is_relaxed_store(&self, op: tt::AtomicRmw, ty: Ty) -> bool {
        let m = self.m;
        let ptr = m.value_type(op.ptr(m));
        let in_global = !m.is_shared_pointer(ptr) && !m.is_remote_pointer(ptr);
        op.rmw_op(m) == tt::RmwOp::Exch
            && op.sem(m) == tt::MemSemantic::Relaxed
            && m.is_tensor(ptr)
            && in_global
            && ty.bits() >= 32
    }

    /// An atomic compare-and-swap; the error says what is not supported.
    pub fn atomic_cas(&mut self, op: tt::AtomicCas) -> Result<()> {
        let m = self.m;
        let (val, result) = (op.val(m), op.result(m));
        let ty = self.elem_ty(self.value_ty(val))?;
        let what = Atomic { rmw: None, ty, sem: op.sem(m), scope: op.scope(m), used: true };
        self.atomic(what, op.ptr(m), &[op.cmp(m), val], None, result)
    }

    /// The elements of an atomic operation, each done by one thread, and the old values for all.
    fn atomic(
        &mut self,
        what: Atomic,
        ptr: ir::Value,
        values: &[ir::Value],
        mask: Option<ir::Value>,
        result: ir::Value,
    ) -> Result<()> {
        let ptrs = self.regs(ptr)?;
        let values: Vec<Regs> = values.iter().map(|&v| self.regs(v)).collect::<Result<_>>()?;
        let mask = mask.map(|v| self.regs(v)).transpose()?;
        let of = |r: usize| -> Vec<Value> { values.iter().map(|v| v[r]).collect() };
        let ty = what.ty;
        let typed = |s: &mut Self, v: Value| if s.b.ty(v) == ty { v } else { s.b.bitcast(v, ty) };
        if !self.m.is_tensor(self.value_ty(ptr)) {
            let first = self.is_first_thread();
            let pred = self.all(&[mask.map(|p| p[0]), Some(first)]);
            let old = H::atomic(self, what, ptrs[0], &of(0), pred)?;
            let mut value = typed(self, old);
            if shares_old_values(self.m, self.op) {
                let scratch = self.scratch()?;
                self.store_shared(scratch, &[value], Some(first));
                self.barrier();
                value = self.load_shared(scratch, ty, 1)[0];
            }
            self.set_regs(result, vec![value]);
            return Ok(());
        }
        let layout = self.layout(self.value_ty(ptr))?;
        let owner = self.is_owner(&layout);
        // With one element whose value before is used the instruction's own order costs less than a fence behind it.
        let several = layout.unique_registers().len() > 1;
        let sem = what.sem;
        let what = if several || !what.used { self.fence_before(what, ptrs[0]) } else { what };
        let zero = self.b.zero(ty);
        let mut out = vec![zero; layout.num_registers() as usize];
        for r in layout.unique_registers() {
            let inside = self.in_bounds(&layout, r);
            let r = r as usize;
            let pred = self.all(&[mask.as_ref().map(|p| p[r]), inside, owner]);
            if pred.is_some_and(|p| self.b.is_false(p)) {
                continue;
            }
            let old = H::atomic(self, what, ptrs[r], &of(r), pred)?;
            out[r] = typed(self, old);
        }
        let acquires = matches!(sem, tt::MemSemantic::Acquire | tt::MemSemantic::AcquireRelease);
        if what.used && acquires && what.sem != sem {
            H::fence(self, ptrs[0], what.scope);
        }
        if shares_old_values(self.m, self.op) {
            out = self.share(&layout, out, ty)?;
        }
        self.set_regs(result, out);
        Ok(())
    }

    /// Gives what the owners of elements hold to the threads with copies.
    fn share(&mut self, layout: &TileLayout, values: Vec<Value>, ty: Ty) -> Result<Vec<Value>> {
        let scratch = self.scratch()?;
        let strides = row_major(layout.shape());
        let regs: Regs = values.into();
        debug_assert!(memory_bits(ty) >= 8);
        self.write_scratch(scratch, layout, &regs, &strides, 0);
        self.barrier();
        Ok(self.read_scratch(scratch, layout, ty, &strides, 0))
    }
}
