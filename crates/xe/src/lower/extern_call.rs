//! `tt.extern_elementwise`: the functions of libdevice that are one instruction here. What NVIDIA's library computes by code of its own there is no code of.

use tilewright_ir::dialect::tt;
use tilewright_llvm::{Effect, FloatPred, IntPred, Ty, Value};
use tilewright_lower::Regs;

use super::{Lower, Result};

/// Functions, and the intrinsic that each is.
const INTRINSICS: &[(&str, &str)] = &[
    ("__nv_abs", "abs"),
    ("__nv_llabs", "abs"),
    ("__nv_min", "smin"),
    ("__nv_llmin", "smin"),
    ("__nv_umin", "umin"),
    ("__nv_ullmin", "umin"),
    ("__nv_max", "smax"),
    ("__nv_llmax", "smax"),
    ("__nv_umax", "umax"),
    ("__nv_ullmax", "umax"),
    ("__nv_popc", "ctpop"),
    ("__nv_popcll", "ctpop"),
    ("__nv_clz", "ctlz"),
    ("__nv_clzll", "ctlz"),
    ("__nv_fabsf", "fabs"),
    ("__nv_fabs", "fabs"),
    ("__nv_floorf", "floor"),
    ("__nv_floor", "floor"),
    ("__nv_ceilf", "ceil"),
    ("__nv_ceil", "ceil"),
    ("__nv_truncf", "trunc"),
    ("__nv_trunc", "trunc"),
    ("__nv_rintf", "rint"),
    ("__nv_rint", "rint"),
    ("__nv_nearbyintf", "rint"),
    ("__nv_nearbyint", "rint"),
    ("__nv_sqrtf", "sqrt"),
    ("__nv_sqrt", "sqrt"),
    ("__nv_fsqrt_rn", "sqrt"),
    ("__nv_dsqrt_rn", "sqrt"),
    ("__nv_fmaf", "fma"),
    ("__nv_fma", "fma"),
    ("__nv_fmaf_rn", "fma"),
    ("__nv_fma_rn", "fma"),
    ("__nv_copysignf", "copysign"),
    ("__nv_copysign", "copysign"),
    ("__nv_fmaxf", "maxnum"),
    ("__nv_fmax", "maxnum"),
    ("__nv_fminf", "minnum"),
    ("__nv_fmin", "minnum"),
];

/// Functions that read the bits of a number as one of another type.
const SAME_BITS: &[&str] = &[
    "__nv_float_as_int",
    "__nv_float_as_uint",
    "__nv_int_as_float",
    "__nv_uint_as_float",
    "__nv_double_as_longlong",
    "__nv_longlong_as_double",
];

impl Lower<'_, '_> {
    /// A function of each element.
    pub(super) fn extern_elementwise(&mut self, op: tt::ExternElementwise) -> Result<()> {
        let m = self.m;
        let symbol = op.symbol(m);
        let result = self.elem_ty(self.value_ty(op.result(m)))?;
        let args: Vec<Regs> = op.srcs(m).iter().map(|&a| self.regs(a)).collect::<Result<_>>()?;
        let count = self.num_regs(m.value_type(op.result(m)))?;
        let mut out = Vec::with_capacity(count);
        for i in 0..count {
            let of_element: Vec<Value> = args.iter().map(|a| a[i]).collect();
            let made = self.library(&symbol, result, &of_element);
            out.push(made.ok_or_else(|| self.unsupported(format!("the function `{symbol}`")))?);
        }
        self.set_regs(op.result(m), out);
        Ok(())
    }

    fn library(&mut self, symbol: &str, result: Ty, args: &[Value]) -> Option<Value> {
        let &first = args.first()?;
        let ty = self.b.ty(first);
        if args.iter().any(|&x| self.b.ty(x) != ty) {
            return None;
        }
        if let Some((_, name)) = INTRINSICS.iter().find(|(of, _)| *of == symbol) {
            let full = format!("llvm.{name}.{}", ty.mangled());
            let made = self.b.intrinsic(&full, Effect::Pure, Some(ty), args);
            // Bits are counted in 32 bits, whatever they are of.
            return Some(if ty == result { made } else { self.b.int_cast(made, result, false) });
        }
        if SAME_BITS.contains(&symbol) && ty.bits() == result.bits() {
            return Some(self.b.bitcast(first, result));
        }
        let truth = match symbol {
            "__nv_isnanf" | "__nv_isnand" => self.b.fcmp(FloatPred::Uno, first, first),
            "__nv_isinff" | "__nv_isinfd" | "__nv_finitef" | "__nv_isfinited" => {
                let magnitude = format!("llvm.fabs.{}", ty.mangled());
                let magnitude = self.b.intrinsic(&magnitude, Effect::Pure, Some(ty), &[first]);
                let infinite = self.b.float(ty, f64::INFINITY);
                let pred = if symbol.contains("isinf") { FloatPred::Oeq } else { FloatPred::Olt };
                self.b.fcmp(pred, magnitude, infinite)
            }
            "__nv_signbitf" | "__nv_signbitd" => {
                let int = Ty::scalar(tilewright_lower::int_of(ty.bits()));
                let (bits, zero) = (self.b.bitcast(first, int), self.b.zero(int));
                self.b.icmp(IntPred::Slt, bits, zero)
            }
            _ => return None,
        };
        Some(self.b.int_cast(truth, result, false))
    }
}
