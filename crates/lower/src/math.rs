//! Mathematical functions, with no device library.
//!
//! `exp2`, `sqrt`, `rsqrt` are the hardware's approximations, of 2 ulp and the like, as in Triton;
//! the flush of subnormal results saves two multiplications and a comparison of range scaling for each `exp`;
//! `exp` is `exp2(x · log2 e)`. 16-bit floats go through fp32.

use tilewright_ir as ir;
use tilewright_ir::FloatKind;
use tilewright_ir::dialect::math;
use tilewright_llvm::{BinOp, CastOp, Effect, Scalar, Ty, Value};

use crate::{Approximation, Hooks, Lower, Result};

impl<H: Hooks> Lower<'_, H> {
    pub(crate) fn math(&mut self, op: ir::Op, kind: math::Kind) -> Result<()> {
        use math::Kind as K;
        let m = self.m;
        let operands = m.operands(op);
        let result = m.result(op);
        let a = self.wide(operands[0])?;
        let out = match kind {
            K::Fma if self.fp8_kind(result).is_some() => return self.fma_of_fp8(op),
            K::Fma => {
                let (b, c) = (self.wide(operands[1])?, self.wide(operands[2])?);
                (0..a.len()).map(|i| self.fma(a[i], b[i], c[i])).collect()
            }
            K::Absi => self.map1(&a, |s, x| {
                let ty = s.b.ty(x);
                let poison = s.b.bool(false);
                s.b.intrinsic(&format!("llvm.abs.{}", ty.mangled()), Effect::Pure, Some(ty), &[x, poison])
            }),
            _ => {
                let mut out = Vec::with_capacity(a.len());
                for &x in a.iter() {
                    out.push(self.unary(kind, x)?);
                }
                out
            }
        };
        let out = if kind == K::Absf { self.chosen(result, out)? } else { self.narrowed(result, out)? };
        self.set_regs(result, out);
        Ok(())
    }

    /// `a · b + c` of 8-bit floats, with one rounding: exact in fp64, where fp32 might round to the middle of two of them.
    fn fma_of_fp8(&mut self, op: ir::Op) -> Result<()> {
        let (result, mut wide) = (self.m.result(op), Vec::new());
        for &v in self.m.operands(op) {
            let regs = self.wide(v)?;
            wide.push(self.map1(&regs, |s, x| s.b.cast(CastOp::FpExt, x, Ty::F64)));
        }
        let sums: Vec<Value> =
            (0..wide[0].len()).map(|i| self.fma(wide[0][i], wide[1][i], wide[2][i])).collect();
        if let Some(kind) = self.fp8_kind(result) {
            let out = self.convert_floats(&sums.into(), FloatKind::F64, kind, false)?;
            self.set_regs(result, out);
        }
        Ok(())
    }

    fn unary(&mut self, kind: math::Kind, x: Value) -> Result<Value> {
        use math::Kind as K;
        let ty = self.b.ty(x);
        if kind == K::Absf {
            return Ok(self.llvm_unary("fabs", x));
        }
        if matches!(ty.scalar, Scalar::F16 | Scalar::BF16) {
            let wide = self.as_f32(x);
            let r = self.unary(kind, wide)?;
            return Ok(self.b.cast(CastOp::FpTrunc, r, ty));
        }
        let double = ty == Ty::F64;
        let exp2 = if self.flushes { Approximation::Exp2Flushed } else { Approximation::Exp2 };
        Ok(match kind {
            K::Floor => self.llvm_unary("floor", x),
            K::Ceil => self.llvm_unary("ceil", x),
            K::Trunc => self.llvm_unary("trunc", x),
            K::Round => self.round_half_away(x),
            K::Sqrt if double => self.llvm_unary("sqrt", x),
            K::Sqrt => H::approximate(self, Approximation::Sqrt, x),
            K::Rsqrt if double => {
                let root = self.llvm_unary("sqrt", x);
                let one = self.b.float(ty, 1.0);
                self.b.bin(BinOp::FDiv, one, root)
            }
            K::Rsqrt => H::approximate(self, Approximation::Rsqrt, x),
            K::Exp2 if !double => H::approximate(self, exp2, x),
            K::Exp if !double => {
                let scale = self.b.float(ty, std::f64::consts::LOG2_E);
                let scaled = self.fmul(x, scale);
                H::approximate(self, exp2, scaled)
            }
            _ => return self.unary_series(kind, x),
        })
    }

    /// An LLVM intrinsic of one operand.
    pub(crate) fn llvm_unary(&mut self, name: &str, x: Value) -> Value {
        let ty = self.b.ty(x);
        self.b.intrinsic(&format!("llvm.{name}.{}", ty.mangled()), Effect::Pure, Some(ty), &[x])
    }

    fn round_half_away(&mut self, x: Value) -> Value {
        let ty = self.b.ty(x);
        // The largest number below 0.5: adding 0.5 would round 0.49999997 up.
        let below = if ty == Ty::F64 { 0.499_999_999_999_999_94 } else { 0.499_999_97 };
        let half = self.b.float(ty, below);
        let half =
            self.b.intrinsic(&format!("llvm.copysign.{}", ty.mangled()), Effect::Pure, Some(ty), &[half, x]);
        let sum = self.b.bin(BinOp::FAdd, x, half);
        self.llvm_unary("trunc", sum)
    }
}
