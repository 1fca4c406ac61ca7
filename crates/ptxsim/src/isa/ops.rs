//! Loops over lanes that the executing functions share.

use super::{Dec, Flow, Inst};
use crate::Error;
use crate::ast::Ty;
use crate::machine::Cx;
use crate::regs::{LANES, Lane};

impl Cx<'_> {
    /// Writes the active lanes of a register.
    #[inline(always)]
    pub fn put<D: Lane>(&mut self, idx: u32, v: &[D; LANES]) {
        let m = self.mask;
        let d = D::get_mut(&mut self.w.regs, idx);
        if m == !0 {
            *d = *v;
        } else {
            for l in 0..LANES {
                if m >> l & 1 != 0 {
                    d[l] = v[l];
                }
            }
        }
    }

    /// Writes the active lanes of a predicate.
    #[inline(always)]
    pub fn put_pred(&mut self, idx: u32, v: u32) {
        let p = &mut self.w.regs.p[idx as usize];
        *p = *p & !self.mask | v & self.mask;
    }

    #[inline(always)]
    pub fn get<A: Lane>(&self, idx: u32) -> [A; LANES] {
        *A::get(&self.w.regs, idx)
    }

    #[inline(always)]
    pub fn pred(&self, idx: u32, neg: bool) -> u32 {
        let p = self.w.regs.p[idx as usize];
        if neg { !p } else { p }
    }

    #[inline(always)]
    pub fn map1<A: Lane, D: Lane>(&mut self, i: &Inst, f: impl Fn(A) -> D) -> Flow {
        let a = self.get::<A>(i.a);
        let mut r = [D::default(); LANES];
        for l in 0..LANES {
            r[l] = f(a[l]);
        }
        self.put(i.d, &r);
        Flow::Next
    }

    #[inline(always)]
    pub fn map2<A: Lane, B: Lane, D: Lane>(&mut self, i: &Inst, f: impl Fn(A, B) -> D) -> Flow {
        let a = self.get::<A>(i.a);
        let b = self.get::<B>(i.b);
        let mut r = [D::default(); LANES];
        for l in 0..LANES {
            r[l] = f(a[l], b[l]);
        }
        self.put(i.d, &r);
        Flow::Next
    }

    #[inline(always)]
    pub fn map3<A: Lane, B: Lane, C: Lane, D: Lane>(&mut self, i: &Inst, f: impl Fn(A, B, C) -> D) -> Flow {
        let a = self.get::<A>(i.a);
        let b = self.get::<B>(i.b);
        let c = self.get::<C>(i.c);
        let mut r = [D::default(); LANES];
        for l in 0..LANES {
            r[l] = f(a[l], b[l], c[l]);
        }
        self.put(i.d, &r);
        Flow::Next
    }
}

impl Dec<'_, '_> {
    /// `d, a` of one type.
    pub fn d_a(&mut self, ty: Ty) -> Result<(), Error> {
        self.count(2..=2)?;
        self.out.d = self.dst_ty(0, ty)?;
        self.out.a = self.src(1, ty)?;
        Ok(())
    }

    /// `d, a, b` of one type.
    pub fn d_ab(&mut self, ty: Ty) -> Result<(), Error> {
        self.count(3..=3)?;
        self.out.d = self.dst_ty(0, ty)?;
        self.out.a = self.src(1, ty)?;
        self.out.b = self.src(2, ty)?;
        Ok(())
    }

    /// `d, a, b, c` of one type.
    pub fn d_abc(&mut self, ty: Ty) -> Result<(), Error> {
        self.count(4..=4)?;
        self.out.d = self.dst_ty(0, ty)?;
        self.out.a = self.src(1, ty)?;
        self.out.b = self.src(2, ty)?;
        self.out.c = self.src(3, ty)?;
        Ok(())
    }

    pub fn bad_type(&self, ty: Ty) -> Error {
        self.error(format!("not supported: type {ty:?}"))
    }
}
