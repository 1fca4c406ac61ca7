//! Conversions between floating-point formats.
//!
//! 32-bit floats become 16-bit ones in pairs; 8-bit ones too where the target has instructions for it, by integer
//! arithmetic where not.

use tilewright_ir as ir;
use tilewright_ir::FloatKind;
use tilewright_ir::dialect::tt::RoundingMode;
use tilewright_ir::float;
use tilewright_libdevice::fp8::{self, Format};
use tilewright_llvm::{BinOp, CastOp, Effect, FloatPred, IntPred, Scalar, Ty, Value};

use crate::{Hooks, Lower, Regs, Result};

impl<H: Hooks> Lower<'_, H> {
    /// The registers of `src` in the format of `result`.
    pub(crate) fn float_to_float(
        &mut self,
        src: ir::Value,
        result: ir::Value,
        rounding: Option<RoundingMode>,
    ) -> Result<Vec<Value>> {
        let regs = self.regs(src)?;
        let (Some(from), Some(to)) =
            (self.float_kind(self.value_ty(src)), self.float_kind(self.value_ty(result)))
        else {
            return Err(self.error("expected floating-point types"));
        };
        if from == to {
            return Ok(regs.to_vec());
        }
        let rtz = rounding == Some(RoundingMode::Rtz);
        // A splat is converted once.
        if regs.len() > 1 && regs.iter().all(|&r| r == regs[0]) {
            let one = self.convert_floats(&vec![regs[0]].into(), from, to, rtz)?;
            return Ok(vec![one[0]; regs.len()]);
        }
        self.convert_floats(&regs, from, to, rtz)
    }

    pub(crate) fn convert_floats(
        &mut self,
        regs: &Regs,
        from: FloatKind,
        to: FloatKind,
        rtz: bool,
    ) -> Result<Vec<Value>> {
        use FloatKind as K;
        let constant = regs.iter().all(|&r| self.b.as_const(r).is_some());
        match (from, to) {
            (K::F32, K::F16 | K::BF16) if !constant || rtz => {
                let scalar = if to == K::F16 { Scalar::F16 } else { Scalar::BF16 };
                let mut out = Vec::with_capacity(regs.len());
                for pair in regs.chunks(2) {
                    let (lo, hi) = (pair[0], *pair.last().unwrap_or(&pair[0]));
                    let word = H::pack_halves(self, lo, hi, scalar, rtz);
                    let v = self.b.bitcast(word, Ty::vector(scalar, 2));
                    for i in 0..pair.len() as u32 {
                        out.push(self.b.extract(v, i));
                    }
                }
                Ok(out)
            }
            // One rounding in the end: to a number of fp32 that says whether it is exact.
            (K::F64, K::BF16 | K::F8E4M3FN | K::F8E5M2) if !rtz || to.bits() == 8 => {
                let odd: Regs = self.map1(regs, |s, x| s.odd_f32(x)).into();
                self.convert_floats(&odd, K::F32, to, rtz)
            }
            // Rounding towards zero twice is rounding towards zero.
            (K::F64, K::F32) if rtz => Ok(self.map1(regs, |s, x| H::f32_towards_zero(s, x, true))),
            (K::F64, K::F16 | K::BF16) if rtz => {
                let single: Regs = self.map1(regs, |s, x| H::f32_towards_zero(s, x, true)).into();
                self.convert_floats(&single, K::F32, to, true)
            }
            (K::F8E4M3FN | K::F8E5M2, _) => self.widen_fp8(regs, from, to),
            (_, K::F8E4M3FN | K::F8E5M2) => self.narrow_fp8(regs, from, to, rtz),
            (K::F16, K::BF16) | (K::BF16, K::F16) => {
                let mid: Regs = self.simple_cast(regs, from, K::F32).into();
                self.convert_floats(&mid, K::F32, to, rtz)
            }
            (K::F16 | K::BF16 | K::F32 | K::F64, K::F16 | K::BF16 | K::F32 | K::F64) => {
                if rtz {
                    return Err(self.unsupported(format!(
                        "round-towards-zero conversions from {} to {}",
                        from.name(),
                        to.name()
                    )));
                }
                Ok(self.simple_cast(regs, from, to))
            }
            _ => Err(self.unsupported(format!("conversions from {} to {}", from.name(), to.name()))),
        }
    }

    /// fp64 to fp32 "to odd": towards zero, and the lowest bit set where that isn't exact. To round that to nearest in a
    /// format with at least two bits less is to round the fp64 number (Boldo and Melquiond, "When double rounding is odd").
    fn odd_f32(&mut self, x: Value) -> Value {
        let near = H::f32_towards_zero(self, x, true);
        let back = self.b.cast(CastOp::FpExt, near, Ty::F64);
        let inexact = self.b.fcmp(FloatPred::Une, back, x);
        self.with_sticky(near, inexact)
    }

    /// An integer of 32 or 64 bits to fp32, likewise to odd.
    pub(crate) fn odd_f32_of_int(&mut self, x: Value, signed: bool) -> Value {
        let ty = self.b.ty(x);
        let near = H::f32_towards_zero(self, x, signed);
        let back = self.b.cast(if signed { CastOp::FpToSi } else { CastOp::FpToUi }, near, ty);
        let inexact = self.b.icmp(IntPred::Ne, back, x);
        self.with_sticky(near, inexact)
    }

    fn with_sticky(&mut self, x: Value, sticky: Value) -> Value {
        let bits = self.b.bitcast(x, Ty::I32);
        let sticky = self.b.int_cast(sticky, Ty::I32, false);
        let bits = self.b.or(bits, sticky);
        self.b.bitcast(bits, Ty::F32)
    }

    fn simple_cast(&mut self, regs: &Regs, from: FloatKind, to: FloatKind) -> Vec<Value> {
        let ty = Ty::scalar(scalar_of(to));
        let op = if to.bits() > from.bits() { CastOp::FpExt } else { CastOp::FpTrunc };
        self.map1(regs, |s, x| s.b.cast(op, x, ty))
    }

    fn widen_fp8(&mut self, regs: &Regs, from: FloatKind, to: FloatKind) -> Result<Vec<Value>> {
        let mut halves = Vec::with_capacity(regs.len());
        for pair in regs.chunks(2) {
            let (lo, hi) = (pair[0], *pair.last().unwrap_or(&pair[0]));
            let word = if let Some(word) = H::widen_fp8(self, lo, hi, from) {
                word
            } else if from == FloatKind::F8E5M2 {
                // e5m2 is the upper half of an f16.
                let (lo, hi) = (self.b.int_cast(lo, Ty::I32, false), self.b.int_cast(hi, Ty::I32, false));
                let (lo, hi) = (self.b.shl(lo, 8), self.b.shl(hi, 24));
                self.b.or(lo, hi)
            } else {
                let (lo, hi) = (fp8::widen(self, lo, Format::E4M3), fp8::widen(self, hi, Format::E4M3));
                self.pack_word(&[lo, hi])
            };
            let v = self.b.bitcast(word, Ty::vector(Scalar::F16, 2));
            for i in 0..pair.len() as u32 {
                halves.push(self.b.extract(v, i));
            }
        }
        let halves: Regs = halves.into();
        if to == FloatKind::F16 {
            return Ok(halves.to_vec());
        }
        // Every fp8 value is exact in f16.
        self.convert_floats(&halves, FloatKind::F16, to, false)
    }

    fn narrow_fp8(&mut self, regs: &Regs, from: FloatKind, to: FloatKind, rtz: bool) -> Result<Vec<Value>> {
        // From f16 and bf16 through f32, which holds them exactly: one rounding.
        let wide: Regs = match from {
            FloatKind::F32 => regs.clone(),
            FloatKind::F16 | FloatKind::BF16 => self.simple_cast(regs, from, FloatKind::F32).into(),
            _ => return Err(self.unsupported(format!("conversions from {} to fp8", from.name()))),
        };
        let format = if to == FloatKind::F8E4M3FN { Format::E4M3 } else { Format::E5M2 };
        if rtz {
            return Ok(self.map1(&wide, |s, x| fp8::narrow(s, x, format, rtz)));
        }
        let mut out = Vec::with_capacity(regs.len());
        for pair in wide.chunks(2) {
            let (lo, hi) = (pair[0], *pair.last().unwrap_or(&pair[0]));
            match H::narrow_fp8(self, lo, hi, to) {
                Some(word) => out.extend(self.unpack_word(word, Ty::I8, 2).into_iter().take(pair.len())),
                None => out.extend(pair.iter().map(|&x| fp8::narrow(self, x, format, rtz))),
            }
        }
        Ok(out)
    }

    /// `x` as fp32, whatever its (non-fp8) format.
    pub fn as_f32(&mut self, x: Value) -> Value {
        match self.b.ty(x).scalar {
            Scalar::F16 | Scalar::BF16 => self.b.cast(CastOp::FpExt, x, Ty::F32),
            Scalar::F64 => self.b.cast(CastOp::FpTrunc, x, Ty::F32),
            _ => x,
        }
    }

    /// `a · b + c` with one rounding.
    pub(crate) fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        let ty = self.b.ty(a);
        self.b.intrinsic(&format!("llvm.fma.{}", ty.mangled()), Effect::Pure, Some(ty), &[a, b, c])
    }

    /// `a · b` of floats.
    pub(crate) fn fmul(&mut self, a: Value, b: Value) -> Value {
        self.b.bin(BinOp::FMul, a, b)
    }
}

fn scalar_of(kind: FloatKind) -> Scalar {
    match kind {
        FloatKind::F16 => Scalar::F16,
        FloatKind::BF16 => Scalar::BF16,
        FloatKind::F32 => Scalar::F32,
        FloatKind::F64 => Scalar::F64,
        _ => Scalar::I8,
    }
}

/// The bits of a number rounded to an 8-bit format (OCP OFP8), saturating at the largest finite value. Of the other formats there are
/// constants whose value the format has.
pub(crate) fn fp8_bits(value: f64, kind: FloatKind) -> u8 {
    let (mantissa, bias, max) = match kind {
        FloatKind::F8E4M3FN => (3, 7, 448.0),
        FloatKind::F8E5M2 => (2, 15, 57344.0),
        _ => return float::to_bits(value, kind) as u8,
    };
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    if value.is_nan() {
        return 0x7f | sign;
    }
    if value.is_infinite() && kind == FloatKind::F8E5M2 {
        return 0x7c | sign;
    }
    let x = value.abs().min(max);
    if x == 0.0 {
        return sign;
    }
    let exponent = (x.log2().floor() as i32).max(1 - bias);
    let unit = 2f64.powi(exponent - mantissa);
    // Ties to even; a carry into the next binade comes out right because the fields are adjacent.
    let steps = x / unit;
    let mut n = steps.floor();
    let rest = steps - n;
    if rest > 0.5 || (rest == 0.5 && n % 2.0 == 1.0) {
        n += 1.0;
    }
    let implicit = f64::from(1 << mantissa);
    let bits = if n < implicit { n } else { n - implicit + f64::from((exponent + bias) << mantissa) };
    bits as u8 | sign
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fp8_constants() {
        let e4 = |x| fp8_bits(x, FloatKind::F8E4M3FN);
        assert_eq!(e4(1.0), 0x38);
        assert_eq!(e4(-1.5), 0xbc);
        assert_eq!(e4(448.0), 0x7e);
        assert_eq!(e4(1e9), 0x7e);
        assert_eq!(e4(2f64.powi(-9)), 0x01);
        let e5 = |x| fp8_bits(x, FloatKind::F8E5M2);
        assert_eq!(e5(1.0), 0x3c);
        assert_eq!(e5(1.125), 0x3c);
        assert_eq!(e5(1.375), 0x3e);
        assert_eq!(e5(f64::INFINITY), 0x7c);
    }
}
