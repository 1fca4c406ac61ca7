//! `tt.extern_elementwise`: the functions of libdevice. NVIDIA's library is code for its own GPUs; here they are instructions, functions of
//! `OpenCL.std`, or code of our own.
//!
//! What is not exact is computed in fp64 and, for fp32, rounded once, as on the CPU executor: OpenCL promises as many units in the last place for fp64 as
//! for fp32, of which nothing is left in fp32. `bits` has integers, `exact` conversions and arithmetic with a rounding of its own, `recorded` what is
//! computed by functions of [`tilewright_libdevice`], which are called: they are long.

mod bits;
mod exact;
mod recorded;

use tilewright_ir::dialect::tt;
use tilewright_libdevice::{Function, MACHINE, of_symbol};
use tilewright_llvm::{CastOp, Effect, FloatPred, IntPred, Ty, Value};
use tilewright_lower::Regs;

use super::{Lower, Result};
pub(super) use recorded::define;

/// Functions, and the intrinsic that each is.
const INTRINSICS: &[(&str, &str)] = &[
    ("popc", "ctpop"),
    ("clz", "ctlz"),
    ("floor", "floor"),
    ("ceil", "ceil"),
    ("trunc", "trunc"),
    ("rint", "rint"),
    ("nearbyint", "rint"),
    ("sqrt", "sqrt"),
    ("sqrt_rn", "sqrt"),
    ("fma", "fma"),
    ("fma_rn", "fma"),
    ("copysign", "copysign"),
];

/// Functions that read the bits of a number as one of another type.
const SAME_BITS: &[&str] = &[
    "float_as_int",
    "float_as_uint",
    "int_as_float",
    "uint_as_float",
    "double_as_longlong",
    "longlong_as_double",
];

/// Functions of `OpenCL.std` that are exact, or that it computes as exactly as it says; in fp64, of which fp32 is rounded.
const OPENCL: &[&str] = &[
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "cos",
    "cosh",
    "cospi",
    "erf",
    "erfc",
    "exp",
    "exp10",
    "exp2",
    "expm1",
    "fdim",
    "fmod",
    "hypot",
    "ldexp",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "pow",
    "remainder",
    "round",
    "rsqrt",
    "sin",
    "sinh",
    "sinpi",
    "tan",
    "tanh",
    "tgamma",
];

/// Faster ones, in fp32.
const FAST: &[(&str, &str)] = &[
    ("fast_cosf", "cos"),
    ("fast_exp10f", "exp10"),
    ("fast_expf", "exp"),
    ("fast_log10f", "log10"),
    ("fast_log2f", "log2"),
    ("fast_logf", "log"),
    ("fast_powf", "pow"),
    ("fast_sinf", "sin"),
    ("fast_tanf", "tan"),
    ("fast_tanhf", "tanh"),
    ("fast_dividef", "native_divide"),
];

impl Lower<'_, '_> {
    /// A function of each element.
    pub(super) fn extern_elementwise(&mut self, op: tt::ExternElementwise) -> Result<()> {
        let m = self.m;
        let symbol = op.symbol(m);
        let function = of_symbol(&symbol).filter(|_| op.libpath(m).is_empty() && op.libname(m) != MACHINE);
        let Some(function) = function else {
            return Err(self.unsupported(format!("the function `{symbol}`")));
        };
        let result = self.elem_ty(self.value_ty(op.result(m)))?;
        let args: Vec<Regs> = op.srcs(m).iter().map(|&a| self.regs(a)).collect::<Result<_>>()?;
        let types: Vec<Ty> = args.iter().map(|a| self.b.ty(a[0])).collect();
        let fits = types.iter().copied().eq(function.params.iter().map(|&ty| recorded::of_table(ty)));
        if !fits || result != recorded::of_table(function.result) {
            return Err(self.error(function.takes()));
        }
        let count = self.num_regs(m.value_type(op.result(m)))?;
        let mut out = Vec::with_capacity(count);
        for i in 0..count {
            let of_element: Vec<Value> = args.iter().map(|a| a[i]).collect();
            let made = self.library(function, result, &of_element);
            out.push(made.ok_or_else(|| self.unsupported(format!("the function `{symbol}`")))?);
        }
        self.set_regs(op.result(m), out);
        Ok(())
    }

    /// A function of numbers; `None` for one that is not there.
    fn library(&mut self, function: &Function, result: Ty, args: &[Value]) -> Option<Value> {
        let &first = args.first()?;
        let ty = self.b.ty(first);
        let name = function.name;
        if SAME_BITS.contains(&name) {
            return Some(self.b.bitcast(first, result));
        }
        if let Some(made) = self.intrinsic_of(function, args) {
            // Bits are counted in 32 bits, whatever they are of.
            return Some(if self.b.ty(made) == result { made } else { self.b.int_cast(made, result, false) });
        }
        if let Some(truth) = self.truth(name, first) {
            return Some(self.b.int_cast(truth, result, false));
        }
        if let Some(&(_, name)) = FAST.iter().find(|(of, _)| *of == name) {
            return Some(self.opencl(name, ty, args));
        }
        if OPENCL.contains(&name) && !(name == "pow" && args.len() == 2 && self.b.ty(args[1]) == Ty::I32) {
            let wide: Vec<Value> = args.iter().map(|&x| self.widened(x)).collect();
            let made = self.opencl(name, Ty::F64, &wide);
            return Some(self.narrowed(made, result));
        }
        let made = match name {
            "nextafter" => Some(self.opencl(name, ty, args)),
            "scalbn" => {
                let wide = self.widened(first);
                let made = self.opencl("ldexp", Ty::F64, &[wide, args[1]]);
                Some(self.narrowed(made, result))
            }
            "pow" => {
                let wide = self.widened(first);
                let power = self.b.cast(CastOp::SiToFp, args[1], Ty::F64);
                let made = self.opencl("pow", Ty::F64, &[wide, power]);
                Some(self.narrowed(made, result))
            }
            _ => None,
        };
        made.or_else(|| self.bits(function, args))
            .or_else(|| self.exact(function, result, args))
            .or_else(|| self.recorded(function, result, args))
    }

    /// A function that is one instruction.
    fn intrinsic_of(&mut self, function: &Function, args: &[Value]) -> Option<Value> {
        let ty = self.b.ty(args[0]);
        let name = match function.name {
            "abs" if function.params[0].is_float() => "fabs",
            "abs" => "abs",
            name => INTRINSICS.iter().find(|(of, _)| *of == name)?.1,
        };
        Some(self.b.intrinsic(&format!("llvm.{name}.{}", ty.mangled()), Effect::Pure, Some(ty), args))
    }

    /// A question about a number.
    fn truth(&mut self, name: &str, x: Value) -> Option<Value> {
        let ty = self.b.ty(x);
        Some(match name {
            "isnan" => self.b.fcmp(FloatPred::Uno, x, x),
            "isinf" | "finitef" | "isfinited" => {
                let magnitude = self.magnitude(x);
                let infinite = self.b.float(ty, f64::INFINITY);
                let pred = if name == "isinf" { FloatPred::Oeq } else { FloatPred::Olt };
                self.b.fcmp(pred, magnitude, infinite)
            }
            "signbit" => {
                let int = Ty::scalar(tilewright_lower::int_of(ty.bits()));
                let (bits, zero) = (self.b.bitcast(x, int), self.b.zero(int));
                self.b.icmp(IntPred::Slt, bits, zero)
            }
            _ => return None,
        })
    }

    /// A function of `OpenCL.std`.
    fn opencl(&mut self, name: &str, ty: Ty, args: &[Value]) -> Value {
        self.b.intrinsic(&format!("xe.cl.{name}"), Effect::Pure, Some(ty), args)
    }

    fn magnitude(&mut self, x: Value) -> Value {
        let ty = self.b.ty(x);
        self.b.intrinsic(&format!("llvm.fabs.{}", ty.mangled()), Effect::Pure, Some(ty), &[x])
    }

    /// A number of fp32 in fp64; what is something else as it is.
    fn widened(&mut self, x: Value) -> Value {
        if self.b.ty(x) == Ty::F32 { self.b.cast(CastOp::FpExt, x, Ty::F64) } else { x }
    }

    /// A number of fp64 in the type of a result.
    fn narrowed(&mut self, x: Value, to: Ty) -> Value {
        if to == Ty::F32 { self.b.cast(CastOp::FpTrunc, x, Ty::F32) } else { x }
    }
}
