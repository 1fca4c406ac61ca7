//! Elementwise operations: `arith`, and those of `tt` that work element by element.
//!
//! 16-bit floats are added, multiplied and so on in pairs (`f16x2`, `bf16x2`): half the instructions. Packing costs
//! nothing between such operations, because the builder sees through a vector made of another's elements.

use tilewright_ir as ir;
use tilewright_ir::dialect::{arith, tt};
use tilewright_ir::marks;
use tilewright_ir::{FloatKind, TypeKind};
use tilewright_llvm::{BinOp, CastOp, Effect, FloatPred, IntPred, Scalar, Ty, Value};

use crate::{Hooks, Lower, Regs, Result, int_of, rare};

impl<H: Hooks> Lower<'_, H> {
    /// Applies `f` to corresponding registers.
    pub fn map1(&mut self, a: &Regs, mut f: impl FnMut(&mut Self, Value) -> Value) -> Vec<Value> {
        a.iter().map(|&x| f(self, x)).collect()
    }

    /// Applies `f` to corresponding registers.
    pub fn map2(
        &mut self,
        a: &Regs,
        b: &Regs,
        mut f: impl FnMut(&mut Self, Value, Value) -> Value,
    ) -> Vec<Value> {
        a.iter().zip(b.iter()).map(|(&x, &y)| f(self, x, y)).collect()
    }

    /// Like [`Lower::map2`], two registers at a time where the type has 16 bits and `f` works on vectors.
    pub(crate) fn map2_packed(
        &mut self,
        a: &Regs,
        b: &Regs,
        mut f: impl FnMut(&mut Self, Value, Value) -> Value,
    ) -> Vec<Value> {
        let ty = self.b.ty(a[0]);
        let same = a.windows(2).all(|w| w[0] == w[1]) && b.windows(2).all(|w| w[0] == w[1]);
        if !matches!(ty.scalar, Scalar::F16 | Scalar::BF16)
            || !a.len().is_multiple_of(2)
            || same
            || !self.packs(ty)
        {
            return self.map2(a, b, f);
        }
        let mut out = Vec::with_capacity(a.len());
        for (x, y) in a.chunks_exact(2).zip(b.chunks_exact(2)) {
            let (x, y) = (self.b.vector(x), self.b.vector(y));
            let r = f(self, x, y);
            out.push(self.b.extract(r, 0));
            out.push(self.b.extract(r, 1));
        }
        out
    }

    fn packs(&self, ty: Ty) -> bool {
        ty.scalar == Scalar::F16 || self.hooks.bf16_arithmetic()
    }

    pub(crate) fn arith(&mut self, op: ir::Op, kind: arith::Kind) -> Result<()> {
        use arith::Kind as K;
        let m = self.m;
        let operands = m.operands(op);
        let result = m.result(op);
        let a = self.numbers(operands[0], kind)?;
        if let Some(int_op) = int_op(kind) {
            let b = self.regs(operands[1])?;
            let halves = kind == K::Muli && self.has_high_half(op);
            let out = self.map2(&a, &b, |s, x, y| match halves && s.b.ty(x) == Ty::I32 {
                true => {
                    let product = s.wide_product(x, y);
                    s.b.int_cast(product, Ty::I32, false)
                }
                false => s.b.bin(int_op, x, y),
            });
            self.set_regs(result, out);
            return Ok(());
        }
        let out = match kind {
            K::Addf | K::Subf | K::Mulf => {
                let b = self.wide(operands[1])?;
                let float_op = match kind {
                    K::Addf => BinOp::FAdd,
                    K::Subf => BinOp::FSub,
                    _ => BinOp::FMul,
                };
                self.map2_packed(&a, &b, |s, x, y| s.b.bin(float_op, x, y))
            }
            K::Divf => {
                let b = self.wide(operands[1])?;
                // Of two short numbers the quotient may lie in the middle of two others: it is rounded from what is exact.
                let exact = self.fp8_kind(result).is_some();
                self.map2(&a, &b, |s, x, y| match exact {
                    true => s.b.bin(BinOp::FDiv, x, y),
                    false => s.fast_div(x, y),
                })
            }
            K::Remf => {
                let b = self.wide(operands[1])?;
                self.map2(&a, &b, |s, x, y| s.fmod(x, y))
            }
            K::Minsi | K::Maxsi | K::Minui | K::Maxui => {
                let b = self.regs(operands[1])?;
                self.map2(&a, &b, |s, x, y| s.int_min_max(kind, x, y))
            }
            K::Minimumf | K::Maximumf | K::Minnumf | K::Maxnumf => {
                let b = self.wide(operands[1])?;
                self.map2_packed(&a, &b, |s, x, y| s.float_min_max(kind, x, y))
            }
            K::Ceildivsi | K::Floordivsi => {
                let b = self.regs(operands[1])?;
                self.map2(&a, &b, |s, x, y| s.rounded_div(x, y, kind == K::Ceildivsi))
            }
            K::Ceildivui => {
                let b = self.regs(operands[1])?;
                self.map2(&a, &b, |s, x, y| s.ceil_div_unsigned(x, y))
            }
            K::Negf => self.map1(&a, |s, x| s.b.fneg(x)),
            K::Cmpi => self.cmpi(arith::Cmpi(op), &a)?,
            K::Cmpf => {
                let pred = arith::Cmpf(op).predicate(m);
                let b = self.wide(operands[1])?;
                match float_pred(pred) {
                    Some(pred) => self.map2(&a, &b, |s, x, y| s.b.fcmp(pred, x, y)),
                    None => {
                        let constant = self.b.bool(pred == arith::CmpFPredicate::True);
                        vec![constant; a.len()]
                    }
                }
            }
            K::Select if self.is_buffer(result) => return self.select_buffer(result, a[0], &operands[1..]),
            K::Select => {
                let (x, y) = (self.regs(operands[1])?, self.regs(operands[2])?);
                (0..x.len())
                    .map(|i| {
                        // A scalar condition serves all elements.
                        let c = a[if a.len() == x.len() { i } else { 0 }];
                        self.b.select(c, x[i], y[i])
                    })
                    .collect()
            }
            _ => self.arith_cast(op, kind, &a)?,
        };
        let out = match kind {
            K::Minimumf | K::Maximumf | K::Minnumf | K::Maxnumf => self.chosen(result, out)?,
            _ if is_float_arithmetic(kind) => self.narrowed(result, out)?,
            _ => out,
        };
        self.set_regs(result, out);
        Ok(())
    }

    /// The registers of an operation's first operand, wide where it computes with floats.
    fn numbers(&mut self, v: ir::Value, kind: arith::Kind) -> Result<Regs> {
        use arith::Kind as K;
        match is_float_arithmetic(kind) || matches!(kind, K::Cmpf | K::Fptosi | K::Fptoui) {
            true => self.wide(v),
            false => self.regs(v),
        }
    }

    fn is_buffer(&self, v: ir::Value) -> bool {
        matches!(self.m.type_kind(self.value_ty(v)), TypeKind::MemDesc { .. })
    }

    /// One of two buffers: where it begins.
    fn select_buffer(&mut self, result: ir::Value, condition: Value, buffers: &[ir::Value]) -> Result<()> {
        let [x, y] = self.flatten(buffers)?[..] else { return Err(self.error("two buffers expected")) };
        let base = self.b.select(condition, x, y);
        self.bind(result, &[base])
    }

    fn cmpi(&mut self, op: arith::Cmpi, a: &Regs) -> Result<Vec<Value>> {
        let pred = int_pred(op.predicate(self.m));
        let b = self.regs(op.rhs(self.m))?;
        let first = self.first_of_runs(op.0)?;
        let mut out: Vec<Value> = Vec::with_capacity(a.len());
        for r in 0..a.len() {
            out.push(match first.as_ref().map(|f| f[r]).filter(|&f| f < r) {
                Some(f) => out[f],
                None => self.b.icmp(pred, a[r], b[r]),
            });
        }
        Ok(out)
    }

    /// Conversions from one type to another.
    fn arith_cast(&mut self, op: ir::Op, kind: arith::Kind, a: &Regs) -> Result<Vec<Value>> {
        use arith::Kind as K;
        let (src, result) = (self.m.operands(op)[0], self.m.result(op));
        let to = self.elem_ty(self.value_ty(result))?;
        Ok(match kind {
            K::Extsi | K::Extui | K::Trunci | K::IndexCast => {
                self.map1(a, |s, x| s.b.int_cast(x, to, matches!(kind, K::Extsi | K::IndexCast)))
            }
            K::Extf | K::Truncf => self.float_to_float(src, result, None)?,
            K::Sitofp | K::Uitofp => {
                let signed = kind == K::Sitofp;
                // Those that fp32 rounds are more than the largest number of 8 bits.
                let to = if self.fp8_kind(result).is_some() { Ty::F32 } else { to };
                let out = self.map1(a, |s, x| s.int_to_float(x, to, signed));
                self.narrowed(result, out)?
            }
            K::Fptosi | K::Fptoui => {
                let op = if kind == K::Fptosi { CastOp::FpToSi } else { CastOp::FpToUi };
                self.map1(a, |s, x| s.float_to_int(x, to, op))
            }
            K::Bitcast => self.map1(a, |s, x| s.b.bitcast(x, to)),
            _ => return Err(self.unsupported(format!("the operation `{}`", self.m.op_name(op)))),
        })
    }

    /// The 64 bits of an unsigned product of 32-bit integers: one `mul.wide`.
    fn wide_product(&mut self, x: Value, y: Value) -> Value {
        let (x, y) = (self.b.int_cast(x, Ty::I64, false), self.b.int_cast(y, Ty::I64, false));
        self.b.mul(x, y)
    }

    /// Whether the upper half of a product is computed as well (a round of Philox): one instruction gives both.
    fn has_high_half(&self, mul: ir::Op) -> bool {
        let operands = self.m.operands(mul);
        self.m.uses(operands[0]).iter().any(|u| {
            let other = self.m.operands(u.op);
            self.m.opcode(u.op) == Some(ir::Opcode::Tt(tt::Kind::Mulhiui))
                && (other == operands || (other[0] == operands[1] && other[1] == operands[0]))
        })
    }

    /// For each register of a comparison's result the first that `tt.constancy` promises to be equal: their coordinates
    /// in every thread lie in one run.
    fn first_of_runs(&mut self, op: ir::Op) -> Result<Option<Vec<usize>>> {
        let Some(attr) = self.m.op_attr(op, marks::CONSTANCY) else { return Ok(None) };
        let ir::AttrKind::I32Array(runs) = self.m.attr_kind(attr).clone() else { return Ok(None) };
        let layout = self.layout(self.value_ty(self.m.result(op)))?;
        if runs.len() != layout.rank() {
            return Ok(None);
        }
        let mut seen = rustc_hash::FxHashMap::default();
        let first = (0..layout.num_registers()).map(|r| {
            let at = layout.register_coord(r);
            let run: Vec<u32> = at.iter().zip(&runs).map(|(&c, &run)| c / run.max(1) as u32).collect();
            *seen.entry(run).or_insert(r as usize)
        });
        Ok(Some(first.collect()))
    }

    /// The kind of 8-bit float that a value is made of, if it is.
    pub(crate) fn fp8_kind(&self, v: ir::Value) -> Option<FloatKind> {
        self.float_kind(self.value_ty(v)).filter(|kind| kind.bits() == 8)
    }

    /// The registers of what is to be computed with. fp8 values are bits, which have no arithmetic of their own: they are fp32 numbers
    /// for it, and what it gives is rounded once ([`narrowed`](Self::narrowed)).
    pub(crate) fn wide(&mut self, v: ir::Value) -> Result<Regs> {
        let regs = self.regs(v)?;
        match self.fp8_kind(v) {
            Some(kind) => Ok(self.convert_floats(&regs, kind, FloatKind::F32, false)?.into()),
            None => Ok(regs),
        }
    }

    /// As [`narrowed`](Self::narrowed), of numbers of the result's kind: there is nothing to round, and an infinity stays one.
    pub(crate) fn chosen(&mut self, result: ir::Value, out: Vec<Value>) -> Result<Vec<Value>> {
        if self.fp8_kind(result) != Some(FloatKind::F8E5M2) {
            return self.narrowed(result, out);
        }
        // The upper half of an f16.
        let halves: Regs = self.convert_floats(&out.into(), FloatKind::F32, FloatKind::F16, false)?.into();
        Ok(self.map1(&halves, |s, x| {
            let bits = s.b.bitcast(x, Ty::I16);
            let high = s.b.lshr(bits, 8);
            s.b.int_cast(high, Ty::I8, false)
        }))
    }

    /// What arithmetic on [`wide`](Self::wide) registers gave, as the result's type.
    pub(crate) fn narrowed(&mut self, result: ir::Value, out: Vec<Value>) -> Result<Vec<Value>> {
        match self.fp8_kind(result) {
            Some(kind) => self.convert_floats(&out.into(), FloatKind::F32, kind, false),
            None => Ok(out),
        }
    }

    pub(crate) fn elementwise_tt(&mut self, op: ir::Op, kind: tt::Kind) -> Result<()> {
        use tt::Kind as K;
        let m = self.m;
        let operands = m.operands(op);
        let out = match kind {
            K::Addptr => {
                let (ptr, offset) = (self.regs(operands[0])?, self.regs(operands[1])?);
                let ty = self.value_ty(operands[0]);
                let pointee = m.pointee_type(ty).ok_or_else(|| self.error("expected a pointer"))?;
                let bytes = m.bits(pointee).div_ceil(8);
                self.addptr(operands[0], operands[1], &ptr, &offset, bytes)
            }
            K::IntToPtr => {
                let a = self.regs(operands[0])?;
                let to = self.elem_ty(self.value_ty(m.result(op)))?;
                self.map1(&a, |s, x| {
                    let wide = s.b.int_cast(x, Ty::I64, false);
                    s.b.cast(CastOp::IntToPtr, wide, to)
                })
            }
            K::PtrToInt => {
                let a = self.regs(operands[0])?;
                let to = self.elem_ty(self.value_ty(m.result(op)))?;
                self.map1(&a, |s, x| s.b.cast(CastOp::PtrToInt, x, to))
            }
            K::Bitcast => {
                let a = self.regs(operands[0])?;
                let to = self.elem_ty(self.value_ty(m.result(op)))?;
                self.map1(&a, |s, x| {
                    let from = s.b.ty(x);
                    match (from.is_ptr(), to.is_ptr()) {
                        (true, true) | (false, false) => s.b.bitcast(x, to),
                        (true, false) => s.b.cast(CastOp::PtrToInt, x, to),
                        (false, true) => s.b.cast(CastOp::IntToPtr, x, to),
                    }
                })
            }
            K::FpToFp => {
                let rounding = tt::FpToFp(op).rounding(m);
                self.float_to_float(operands[0], m.result(op), rounding)?
            }
            K::Clampf => {
                let c = tt::Clampf(op);
                let (x, lo, hi) = (self.wide(operands[0])?, self.wide(operands[1])?, self.wide(operands[2])?);
                let nan = c.propagate_nan(m);
                let (max, min) = if nan {
                    (arith::Kind::Maximumf, arith::Kind::Minimumf)
                } else {
                    (arith::Kind::Maxnumf, arith::Kind::Minnumf)
                };
                let raised: Regs = self.map2_packed(&x, &lo, |s, a, b| s.float_min_max(max, a, b)).into();
                let out = self.map2_packed(&raised, &hi, |s, a, b| s.float_min_max(min, a, b));
                self.chosen(m.result(op), out)?
            }
            K::PreciseSqrt => {
                let a = self.regs(operands[0])?;
                self.map1(&a, |s, x| {
                    let name = format!("llvm.sqrt.{}", s.b.ty(x).mangled());
                    let ty = s.b.ty(x);
                    s.b.intrinsic(&name, Effect::Pure, Some(ty), &[x])
                })
            }
            K::PreciseDivf => {
                let (a, b) = (self.regs(operands[0])?, self.regs(operands[1])?);
                self.map2(&a, &b, |s, x, y| s.b.bin(BinOp::FDiv, x, y))
            }
            K::Mulhiui => {
                let (a, b) = (self.regs(operands[0])?, self.regs(operands[1])?);
                self.map2(&a, &b, |s, x, y| {
                    let ty = s.b.ty(x);
                    if ty == Ty::I64 {
                        return H::mul_high(&mut s.b, x, y);
                    }
                    if ty == Ty::I32 {
                        let product = s.wide_product(x, y);
                        let high = s.b.lshr(product, 32);
                        return s.b.int_cast(high, ty, false);
                    }
                    let (x, y) = (s.b.int_cast(x, Ty::I32, false), s.b.int_cast(y, Ty::I32, false));
                    let p = s.b.mul(x, y);
                    let high = s.b.lshr(p, ty.bits());
                    s.b.int_cast(high, ty, false)
                })
            }
            _ => return Err(self.unsupported(format!("the operation `{}`", m.op_name(op)))),
        };
        self.set_regs(m.result(op), out);
        Ok(())
    }

    /// Pointer plus offset · bytes. Where the whole tensor starts from one pointer, offsets that differ by constants
    /// share one 64-bit address and the constant goes into the access.
    /// Pointers moved by elements. A 32-bit offset `x + c` is widened as `x` plus a wide `c`: the registers of a tile
    /// differ by constants, which the accesses take as immediates. An offset that overflows 32 bits is the program's
    /// error (`docs/numerics.md`), and what a masked-off lane would address does not matter.
    fn addptr(&mut self, _p: ir::Value, _o: ir::Value, ptr: &Regs, offset: &Regs, bytes: u32) -> Vec<Value> {
        self.map2(ptr, offset, |s, p, o| {
            let (variable, constant) = s.b.split_constant(o);
            let wide = s.b.int_cast(variable, Ty::I64, true);
            let scaled = s.b.mul_const(wide, i64::from(bytes));
            let moved = s.b.ptr_add(p, scaled);
            s.b.ptr_add_const(moved, constant.wrapping_mul(i64::from(bytes)))
        })
    }

    // ---- scalar helpers --------------------------------------------------------------------------------------------

    /// Division as Triton's `/`: fp32 to 2 ulp, fp64 exactly rounded, 16-bit floats through fp32.
    pub(crate) fn fast_div(&mut self, x: Value, y: Value) -> Value {
        let ty = self.b.ty(x);
        match ty.scalar {
            Scalar::F32 => H::divide(self, x, y),
            Scalar::F16 | Scalar::BF16 => {
                let (x, y) = (self.b.cast(CastOp::FpExt, x, Ty::F32), self.b.cast(CastOp::FpExt, y, Ty::F32));
                let q = self.fast_div(x, y);
                self.b.cast(CastOp::FpTrunc, q, ty)
            }
            _ => self.b.bin(BinOp::FDiv, x, y),
        }
    }

    /// The remainder with the sign of the dividend, exactly, in fp64: a quotient below 2^53 is off by one at most, and what is left
    /// beside it has no rounding; larger ones are rare.
    fn fmod(&mut self, x: Value, y: Value) -> Value {
        let ty = self.b.ty(x);
        if ty.scalar != Scalar::F64 {
            let wider = if ty.scalar == Scalar::F32 { Ty::F64 } else { Ty::F32 };
            let (x, y) = (self.b.cast(CastOp::FpExt, x, wider), self.b.cast(CastOp::FpExt, y, wider));
            let r = self.fmod(x, y);
            return self.b.cast(CastOp::FpTrunc, r, ty);
        }
        let (dividend, divisor) = (self.llvm_unary("fabs", x), self.llvm_unary("fabs", y));
        let quotient = self.b.bin(BinOp::FDiv, dividend, divisor);
        let whole = self.llvm_unary("trunc", quotient);
        let minus = self.b.fneg(whole);
        let r = self.fma(minus, divisor, dividend);
        let zero = self.b.float(ty, 0.0);
        let beyond = self.b.fcmp(FloatPred::Olt, r, zero);
        let back = self.b.bin(BinOp::FAdd, r, divisor);
        let r = self.b.select(beyond, back, r);
        // Also where the divisor is infinite.
        let none = self.b.fcmp(FloatPred::Oeq, whole, zero);
        let r = self.b.select(none, dividend, r);
        let limit = self.b.float(ty, (1u64 << 53) as f64);
        let large = self.b.fcmp(FloatPred::Uge, quotient, limit);
        let r = self.rarely(large, &[r], rare::REMAINDER, &[dividend, divisor], &[ty])[0];
        self.copysign(r, x)
    }

    pub(crate) fn int_min_max(&mut self, kind: arith::Kind, x: Value, y: Value) -> Value {
        let ty = self.b.ty(x);
        let (name, pred) = match kind {
            arith::Kind::Minsi => ("smin", IntPred::Slt),
            arith::Kind::Maxsi => ("smax", IntPred::Sgt),
            arith::Kind::Minui => ("umin", IntPred::Ult),
            _ => ("umax", IntPred::Ugt),
        };
        let decided = self.b.icmp(pred, x, y);
        if self.b.is_true(decided) {
            return x;
        }
        if self.b.is_false(decided) {
            return y;
        }
        if ty == Ty::I1 {
            return self.b.select(decided, x, y);
        }
        let zeros = match kind {
            arith::Kind::Minui => self.b.known_zeros(x) | self.b.known_zeros(y),
            _ => self.b.known_zeros(x) & self.b.known_zeros(y),
        };
        let v = self.b.intrinsic(&format!("llvm.{name}.{}", ty.mangled()), Effect::Pure, Some(ty), &[x, y]);
        if kind != arith::Kind::Minui {
            self.b.assume_zeros(v, zeros);
        }
        v
    }

    pub(crate) fn float_min_max(&mut self, kind: arith::Kind, x: Value, y: Value) -> Value {
        let ty = self.b.ty(x);
        let (name, number) = match kind {
            arith::Kind::Minimumf => ("minimum", Some(arith::Kind::Minnumf)),
            arith::Kind::Maximumf => ("maximum", Some(arith::Kind::Maxnumf)),
            arith::Kind::Minnumf => ("minnum", None),
            _ => ("maxnum", None),
        };
        if let (Scalar::F64, Some(number)) = (ty.scalar, number) {
            // `min.f64` has no `.NaN` form.
            let either = self.b.fcmp(FloatPred::Uno, x, y);
            let sum = self.b.bin(BinOp::FAdd, x, y);
            let plain = self.float_min_max(number, x, y);
            return self.b.select(either, sum, plain);
        }
        // LLVM 19 takes the larger of a magnitude and anything else for a magnitude. Where the first is NaN, it is the other.
        if name == "maxnum" && self.b.is_magnitude(x) != self.b.is_magnitude(y) {
            return H::maxnum(self, x, y);
        }
        self.b.intrinsic(&format!("llvm.{name}.{}", ty.mangled()), Effect::Pure, Some(ty), &[x, y])
    }

    fn rounded_div(&mut self, x: Value, y: Value, up: bool) -> Value {
        let ty = self.b.ty(x);
        let q = self.b.bin(BinOp::SDiv, x, y);
        let r = self.b.bin(BinOp::SRem, x, y);
        let zero = self.b.constant(ty, 0);
        let inexact = self.b.icmp(IntPred::Ne, r, zero);
        let sign = self.b.xor(x, y);
        // Truncation is towards zero: correct upwards where the quotient is positive, downwards where negative.
        let side = self.b.icmp(if up { IntPred::Sge } else { IntPred::Slt }, sign, zero);
        let fix = self.b.and(inexact, side);
        let step = self.b.int_cast(fix, ty, false);
        if up { self.b.add(q, step) } else { self.b.sub(q, step) }
    }

    /// Unsigned division, rounded up: without an overflow, unlike `(x + y - 1) / y`.
    fn ceil_div_unsigned(&mut self, x: Value, y: Value) -> Value {
        let ty = self.b.ty(x);
        let (q, r) = (self.b.bin(BinOp::UDiv, x, y), self.b.bin(BinOp::URem, x, y));
        let zero = self.b.constant(ty, 0);
        let inexact = self.b.icmp(IntPred::Ne, r, zero);
        let step = self.b.int_cast(inexact, ty, false);
        self.b.add(q, step)
    }

    pub(crate) fn int_to_float(&mut self, x: Value, to: Ty, signed: bool) -> Value {
        // i1 is 0 or 1 here, as the language's booleans are.
        let signed = signed && self.b.ty(x) != Ty::I1;
        let op = if signed { CastOp::SiToFp } else { CastOp::UiToFp };
        if to.scalar == Scalar::BF16 && !self.hooks.bf16_arithmetic() {
            let wide = match self.b.ty(x).bits() {
                32 | 64 => self.odd_f32_of_int(x, signed),
                _ => self.b.cast(op, x, Ty::F32),
            };
            return self.b.cast(CastOp::FpTrunc, wide, to);
        }
        self.b.cast(op, x, to)
    }

    fn float_to_int(&mut self, x: Value, to: Ty, op: CastOp) -> Value {
        let x = if matches!(self.b.ty(x).scalar, Scalar::BF16 | Scalar::F16) {
            self.b.cast(CastOp::FpExt, x, Ty::F32)
        } else {
            x
        };
        if to == Ty::I1 {
            let zero = self.b.float(self.b.ty(x), 0.0);
            return self.b.fcmp(FloatPred::Une, x, zero);
        }
        // Narrow integers through 32 bits: out-of-range values wrap instead of being undefined.
        if to.bits() < 32 {
            let wide = self.b.cast(CastOp::FpToSi, x, Ty::I32);
            return self.b.cast(CastOp::Trunc, wide, to);
        }
        self.b.cast(op, x, to)
    }

    /// Elements as one integer word (the element itself when there is one).
    pub fn pack_word(&mut self, elements: &[Value]) -> Value {
        if elements.len() == 1 {
            return elements[0];
        }
        let ty = self.b.ty(elements[0]);
        let bits = ty.bits() * elements.len() as u32;
        // LLVM takes two bytes through the stack to make a word of them, or bytes of a word.
        if let (&[low, high], 8) = (elements, ty.bits()) {
            let [low, high] = [low, high].map(|byte| {
                let byte = self.b.bitcast(byte, Ty::I8);
                self.b.int_cast(byte, Ty::I16, false)
            });
            let high = self.b.mul_const(high, 1 << 8);
            return self.b.or(low, high);
        }
        let v = self.b.vector(elements);
        self.b.bitcast(v, Ty::scalar(int_of(bits)))
    }

    /// The elements of an integer word.
    pub fn unpack_word(&mut self, word: Value, ty: Ty, count: u32) -> Vec<Value> {
        if count == 1 {
            let from = self.b.ty(word);
            return vec![if from == ty {
                word
            } else if ty.is_ptr() {
                self.b.cast(CastOp::IntToPtr, word, ty)
            } else {
                self.b.bitcast(word, ty)
            }];
        }
        if count == 2 && ty.bits() == 8 {
            let word = self.b.bitcast(word, Ty::I16);
            let high = self.b.lshr(word, 8);
            return [word, high]
                .map(|half| {
                    let byte = self.b.int_cast(half, Ty::I8, false);
                    self.b.bitcast(byte, ty)
                })
                .to_vec();
        }
        let v = self.b.bitcast(word, Ty::vector(ty.scalar, count as u8));
        (0..count).map(|i| self.b.extract(v, i)).collect()
    }
}

fn int_pred(p: arith::CmpIPredicate) -> IntPred {
    use arith::CmpIPredicate as P;
    match p {
        P::Eq => IntPred::Eq,
        P::Ne => IntPred::Ne,
        P::Slt => IntPred::Slt,
        P::Sle => IntPred::Sle,
        P::Sgt => IntPred::Sgt,
        P::Sge => IntPred::Sge,
        P::Ult => IntPred::Ult,
        P::Ule => IntPred::Ule,
        P::Ugt => IntPred::Ugt,
        P::Uge => IntPred::Uge,
    }
}

fn float_pred(p: arith::CmpFPredicate) -> Option<FloatPred> {
    use arith::CmpFPredicate as P;
    Some(match p {
        P::False | P::True => return None,
        P::Oeq => FloatPred::Oeq,
        P::Ogt => FloatPred::Ogt,
        P::Oge => FloatPred::Oge,
        P::Olt => FloatPred::Olt,
        P::Ole => FloatPred::Ole,
        P::One => FloatPred::One,
        P::Ord => FloatPred::Ord,
        P::Ueq => FloatPred::Ueq,
        P::Ugt => FloatPred::Ugt,
        P::Uge => FloatPred::Uge,
        P::Ult => FloatPred::Ult,
        P::Ule => FloatPred::Ule,
        P::Une => FloatPred::Une,
        P::Uno => FloatPred::Uno,
    })
}

/// Whether an operation takes floats and gives such.
fn is_float_arithmetic(kind: arith::Kind) -> bool {
    use arith::Kind as K;
    let sums = matches!(kind, K::Addf | K::Subf | K::Mulf | K::Divf | K::Remf | K::Negf);
    sums || matches!(kind, K::Minimumf | K::Maximumf | K::Minnumf | K::Maxnumf)
}

/// The instruction of an operation on integers that is one.
fn int_op(kind: arith::Kind) -> Option<BinOp> {
    use arith::Kind as K;
    match kind {
        K::Addi => Some(BinOp::Add),
        K::Subi => Some(BinOp::Sub),
        K::Muli => Some(BinOp::Mul),
        K::Andi => Some(BinOp::And),
        K::Ori => Some(BinOp::Or),
        K::Xori => Some(BinOp::Xor),
        K::Shli => Some(BinOp::Shl),
        K::Shrsi => Some(BinOp::AShr),
        K::Shrui => Some(BinOp::LShr),
        K::Divsi => Some(BinOp::SDiv),
        K::Divui => Some(BinOp::UDiv),
        K::Remsi => Some(BinOp::SRem),
        K::Remui => Some(BinOp::URem),
        _ => None,
    }
}
