//! `tt.dot` by multiply-adds, for results that are laid out like any other tensor. Tensor cores are the targets' own.

use tilewright_ir as ir;
use tilewright_ir::FloatKind;
use tilewright_ir::dialect::tt;
use tilewright_llvm::{BinOp, CastOp, Effect, Ty, Value};

use crate::{Hooks, Lower, Regs, Result};

impl<H: Hooks> Lower<'_, H> {
    /// `acc[m][n] += a[m][k] · b[k][n]`, each thread for its own accumulators.
    pub(crate) fn dot(&mut self, op: tt::Dot) -> Result<()> {
        let (a, b, c) = (op.a(self.m), op.b(self.m), op.c(self.m));
        let (la, lb, lc) =
            (self.layout(self.value_ty(a))?, self.layout(self.value_ty(b))?, self.layout(self.value_ty(c))?);
        let (ra, rb) = (self.arithmetic(a)?, self.arithmetic(b)?);
        let mut acc = self.regs(c)?.to_vec();
        let rank = lc.rank();
        let depth = la.shape()[rank - 1];
        let (fa, fb) = (la.register_finder(), lb.register_finder());
        let ty = self.b.ty(acc[0]);
        let mark = self.b.mark();
        for k in 0..depth {
            for (r, total) in acc.iter_mut().enumerate() {
                let at = lc.register_coord(r as u32);
                let (mut ca, mut cb) = (at.to_vec(), at.to_vec());
                ca[rank - 1] = k;
                cb[rank - 2] = k;
                let (Some(x), Some(y)) = (fa.find(&ca), fb.find(&cb)) else {
                    return Err(
                        self.error("internal: a dot operand's layout lacks an element that a thread needs")
                    );
                };
                let (x, y) = (self.widen(ra[x as usize], ty), self.widen(rb[y as usize], ty));
                *total = if ty.is_float() {
                    let name = format!("llvm.fma.{}", ty.mangled());
                    self.b.intrinsic(&name, Effect::Pure, Some(ty), &[x, y, *total])
                } else {
                    let p = self.b.bin(BinOp::Mul, x, y);
                    self.b.add(*total, p)
                };
            }
        }
        self.b.sink_reads(mark);
        self.set_regs(op.result(self.m), acc);
        Ok(())
    }

    /// An operand in a format that has arithmetic: 8-bit floats as fp32.
    fn arithmetic(&mut self, v: ir::Value) -> Result<Regs> {
        let regs = self.regs(v)?;
        match self.float_kind(self.value_ty(v)) {
            Some(kind) if kind.bits() == 8 => {
                Ok(self.convert_floats(&regs, kind, FloatKind::F32, false)?.into())
            }
            _ => Ok(regs),
        }
    }

    fn widen(&mut self, v: Value, to: Ty) -> Value {
        let from = self.b.ty(v);
        if from == to {
            v
        } else if to.is_float() {
            let op = if from.bits() < to.bits() { CastOp::FpExt } else { CastOp::FpTrunc };
            self.b.cast(op, v, to)
        } else {
            self.b.int_cast(v, to, true)
        }
    }
}
