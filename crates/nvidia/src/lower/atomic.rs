//! Atomic read-modify-write and compare-and-swap of global memory.
//!
//! An element that several threads hold is operated on by one of them; where the old value is used, the others get it
//! through scratch memory.

use std::fmt::Write as _;

use tilewright_ir as ir;
use tilewright_ir::dialect::tt;
use tilewright_layout::TileLayout;
use tilewright_llvm::{BinOp, CastOp, Effect, IntPred, Scalar, Ty, Value};
use tilewright_passes::analysis::scratch::shares_old_values;

use tilewright_lower::{Regs, int_of, memory_bits, row_major};

use super::access::Asm;
use super::{Lower, Result};

fn semantics(sem: tt::MemSemantic) -> &'static str {
    match sem {
        tt::MemSemantic::Relaxed => "relaxed",
        tt::MemSemantic::Acquire => "acquire",
        tt::MemSemantic::Release => "release",
        tt::MemSemantic::AcquireRelease => "acq_rel",
    }
}

fn scope(scope: tt::MemSyncScope) -> &'static str {
    match scope {
        tt::MemSyncScope::Gpu => "gpu",
        tt::MemSyncScope::Cta => "cta",
        tt::MemSyncScope::System => "sys",
    }
}

impl Lower<'_, '_> {
    pub fn atomic_rmw(&mut self, op: tt::AtomicRmw) -> Result<()> {
        let m = self.m;
        let (ptr, val, result) = (op.ptr(m), op.val(m), op.result(m));
        let ty = self.elem_ty(self.value_ty(val))?;
        let (ptrs, values) = (self.regs(ptr)?, self.regs(val)?);
        let mask = op.mask(m).map(|v| self.regs(v)).transpose()?;
        let kind = op.rmw_op(m);
        let bits = ty.bits();
        let operation = match (kind, ty.scalar) {
            (tt::RmwOp::And, _) => format!("and.b{bits}"),
            (tt::RmwOp::Or, _) => format!("or.b{bits}"),
            (tt::RmwOp::Xor, _) => format!("xor.b{bits}"),
            (tt::RmwOp::Exch, _) => format!("exch.b{bits}"),
            (tt::RmwOp::Add, _) => format!("add.u{bits}"),
            (tt::RmwOp::Max, _) => format!("max.s{bits}"),
            (tt::RmwOp::Min, _) => format!("min.s{bits}"),
            (tt::RmwOp::Umax, _) => format!("max.u{bits}"),
            (tt::RmwOp::Umin, _) => format!("min.u{bits}"),
            (tt::RmwOp::Fadd, Scalar::F16) => "add.noftz.f16".into(),
            (tt::RmwOp::Fadd, Scalar::BF16) if self.facts().bf16_arithmetic => "add.noftz.bf16".into(),
            (tt::RmwOp::Fadd, Scalar::F32) => "add.f32".into(),
            (tt::RmwOp::Fadd, Scalar::F64) => "add.f64".into(),
            (tt::RmwOp::Fadd, Scalar::BF16) => return self.atomic_add_bf16(op, &ptrs, &values, mask),
            _ => return Err(self.unsupported(format!("atomic {} of this type", kind.keyword()))),
        };
        let fadd16 = kind == tt::RmwOp::Fadd && bits == 16;
        if bits < 32 && !fadd16 {
            return Err(self.unsupported(format!("atomics on {bits}-bit integers")));
        }
        let sem = op.sem(m);
        let suffix = format!("{}.{}", semantics(sem), scope(op.scope(m)));
        let used = !m.is_unused(result);
        // `red` has no acquire: nothing is read.
        let reduces = !used && kind != tt::RmwOp::Exch && sem == tt::MemSemantic::Relaxed;
        let emit = |s: &mut Self, p: Value, v: Value, pred: Option<Value>| -> Value {
            let int = Ty::scalar(int_of(bits));
            let v = if s.b.ty(v).is_int() { v } else { s.b.bitcast(v, int) };
            s.emit_atomic(&operation, &suffix, reduces, p, &[v], int, pred)
        };
        self.atomic(ptr, result, &ptrs, mask, sem, ty, |s, r, p, pred| emit(s, p, values[r], pred))
    }

    /// bf16 addition where there is no instruction: compare and swap until nobody came in between.
    fn atomic_add_bf16(
        &mut self,
        op: tt::AtomicRmw,
        ptrs: &Regs,
        values: &Regs,
        mask: Option<Regs>,
    ) -> Result<()> {
        let m = self.m;
        let (ptr, result, sem) = (op.ptr(m), op.result(m), op.sem(m));
        let suffix = format!("{}.{}", semantics(sem), scope(op.scope(m)));
        let ty = Ty::scalar(Scalar::BF16);
        self.atomic(ptr, result, ptrs, mask, sem, ty, |s, r, p, pred| {
            let here = s.b.block();
            let preheader = s.b.preheader();
            let (start, done) =
                (s.b.create_block(here, preheader, &[]), s.b.create_block(here, preheader, &[Ty::I16]));
            let zero = s.b.constant(Ty::I16, 0);
            match pred {
                Some(pred) => s.b.cond_br(pred, start, &[], done, &[zero]),
                None => s.b.br(start, &[]),
            }
            s.b.switch_to(start);
            let first = s.b.asm1("ld.relaxed.gpu.global.b16 $0, [$1];", "=h,l", Effect::Write, Ty::I16, &[p]);
            let again = s.b.create_block(start, Some(start), &[Ty::I16]);
            s.b.br(again, &[first]);
            s.b.switch_to(again);
            let expected = s.b.params(again)[0];
            let old = s.b.bitcast(expected, ty);
            let (x, y) = (s.as_f32(old), s.as_f32(values[r]));
            let sum = s.b.bin(BinOp::FAdd, x, y);
            let sum = s.b.cast(CastOp::FpTrunc, sum, ty);
            let sum = s.b.bitcast(sum, Ty::I16);
            let seen = s.emit_atomic("cas.b16", &suffix, false, p, &[expected, sum], Ty::I16, None);
            let same = s.b.icmp(IntPred::Eq, seen, expected);
            s.b.cond_br(same, done, &[seen], again, &[seen]);
            s.b.switch_to(done);
            s.b.params(done)[0]
        })
    }

    pub fn atomic_cas(&mut self, op: tt::AtomicCas) -> Result<()> {
        let m = self.m;
        let (ptr, result) = (op.ptr(m), op.result(m));
        let (cmp, val) = (self.regs(op.cmp(m))?, self.regs(op.val(m))?);
        let ty = self.elem_ty(self.value_ty(op.val(m)))?;
        let ptrs = self.regs(ptr)?;
        let bits = ty.bits();
        if bits < 16 {
            return Err(self.unsupported(format!("atomics on {bits}-bit values")));
        }
        let sem = op.sem(m);
        let suffix = format!("{}.{}", semantics(sem), scope(op.scope(m)));
        let operation = format!("cas.b{bits}");
        self.atomic(ptr, result, &ptrs, None, sem, ty, |s, r, p, pred| {
            let int = Ty::scalar(int_of(bits));
            let args: Vec<Value> = [cmp[r], val[r]]
                .into_iter()
                .map(|v| if s.b.ty(v).is_int() { v } else { s.b.bitcast(v, int) })
                .collect();
            s.emit_atomic(&operation, &suffix, false, p, &args, int, pred)
        })
    }

    /// One atomic instruction on words of type `int`; gives the old word (or anything, for a reduction).
    fn emit_atomic(
        &mut self,
        operation: &str,
        suffix: &str,
        reduces: bool,
        ptr: Value,
        values: &[Value],
        int: Ty,
        pred: Option<Value>,
    ) -> Value {
        let letter = match int.bits() {
            64 => 'l',
            32 => 'r',
            _ => 'h',
        };
        let mut asm = Asm::default();
        if !reduces {
            asm.outputs(int, letter, 1);
        }
        let (base, offset) = self.b.split_offset(ptr);
        let (base, offset) = if i32::try_from(offset).is_ok() { (base, offset) } else { (ptr, 0) };
        let mut address = asm.arg(base, 'l');
        if offset != 0 {
            let c = self.b.i32(offset);
            address = format!("{address}+{}", asm.arg(c, 'n'));
        }
        let names: Vec<String> = values.iter().map(|&v| asm.arg(v, letter)).collect();
        if let Some(pred) = pred {
            if !reduces {
                let _ = write!(asm.text, "mov.b{} $0, 0; ", int.bits());
            }
            let p = asm.arg(pred, 'b');
            let _ = write!(asm.text, "@{p} ");
        }
        let names = names.join(", ");
        let _ = if reduces {
            write!(asm.text, "red.{suffix}.global.{operation} [{address}], {names};")
        } else {
            write!(asm.text, "atom.{suffix}.global.{operation} $0, [{address}], {names};")
        };
        let (text, constraints) = (asm.text, asm.constraints);
        let out = self.b.asm(&text, &constraints, Effect::Write, &asm.results, &asm.args);
        match out.first() {
            Some(&v) => v,
            None => self.b.constant(int, 0),
        }
    }

    /// The elements of an atomic operation, each done by one thread, and the old values for all.
    fn atomic(
        &mut self,
        ptr: ir::Value,
        result: ir::Value,
        ptrs: &Regs,
        mask: Option<Regs>,
        sem: tt::MemSemantic,
        ty: Ty,
        mut emit: impl FnMut(&mut Self, usize, Value, Option<Value>) -> Value,
    ) -> Result<()> {
        self.before_global_write();
        let typed = |s: &mut Self, v: Value| if s.b.ty(v) == ty { v } else { s.b.bitcast(v, ty) };
        if !self.m.is_tensor(self.value_ty(ptr)) {
            // What the other threads wrote before must be visible with it.
            if matches!(sem, tt::MemSemantic::Release | tt::MemSemantic::AcquireRelease) {
                self.barrier();
            }
            let first = self.is_first_thread();
            let pred = self.all(&[mask.map(|p| p[0]), Some(first)]);
            let old = emit(self, 0, ptrs[0], pred);
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
        let layout = self.0.layout(self.0.value_ty(ptr))?;
        let owner = self.is_owner(&layout);
        let zero = self.b.zero(ty);
        let mut out = vec![zero; layout.num_registers() as usize];
        for r in layout.unique_registers() {
            let inside = self.in_bounds(&layout, r);
            let r = r as usize;
            let pred = self.all(&[mask.as_ref().map(|p| p[r]), inside, owner]);
            if pred.is_some_and(|p| self.b.is_false(p)) {
                continue;
            }
            let old = emit(self, r, ptrs[r], pred);
            out[r] = typed(self, old);
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
