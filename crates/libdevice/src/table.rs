//! The table: a function is a row of [`REAL`], where one definition serves both widths of floats, or one of [`OTHERS`].
//!
//! Bounds are those of the CUDA C++ Programming Guide, "Mathematical Functions", of what NVIDIA's library computes on a GPU.

// A row is a line, and a number becomes what the row's types say.
#![allow(clippy::precedence)]

use crate::rounding::{self, AWAY, DOWN, NEAREST, UP, ZERO};
use crate::{Accuracy, Function, bessel, bits, special};

use Accuracy::Exact as EXACT;

const fn ulp(n: u32) -> Accuracy {
    Accuracy::Ulp(n)
}

const fn within(bound: &'static str) -> Accuracy {
    Accuracy::Within(bound)
}

const BESSEL_32: Accuracy = within("9 ulp for |x| < 8, beyond 2.2e-6 absolute");
const BESSEL_64: Accuracy = within("7 ulp for |x| < 8, beyond 5e-12 absolute");

/// Functions of `f64`, which those of `f32` are rounded from: `name (arguments) symbol [bound] symbol [bound] = definition`.
macro_rules! real {
    ($($name:literal ($($x:ident),+) $single:literal [$of_single:expr] $double:literal [$of_double:expr] = $value:expr;)*) => {
        &[$(
            function!($name $single ($($x: f32),+) -> f32 [$of_single] = {
                $(let $x = f64::from($x);)+
                $value as f32
            }),
            function!($name $double ($($x: f64),+) -> f64 [$of_double] = $value),
        )*]
    };
}

/// Functions of their own types: `name symbol (arguments) -> result [bound] = definition`.
macro_rules! others {
    ($($name:literal $symbol:literal ($($x:ident: $T:ident),+) -> $R:ident [$accuracy:expr] = $value:expr;)*) => {
        &[$(function!($name $symbol ($($x: $T),+) -> $R [$accuracy] = $value)),*]
    };
}

macro_rules! function {
    ($name:literal $symbol:literal ($($x:ident: $T:ident),+) -> $R:ident [$accuracy:expr] = $value:expr) => {
        Function {
            name: $name,
            symbol: $symbol,
            params: &[$(<$T as crate::elements::Number>::TYPE),+],
            result: <$R as crate::elements::Number>::TYPE,
            accuracy: $accuracy,
            elements: |args, out| crate::elements::apply(args, out, |$($x: $T),+| -> $R { $value }),
        }
    };
}

#[rustfmt::skip]
pub(crate) static REAL: &[Function] = real! {
    "acos" (x) "__nv_acosf" [ulp(2)] "__nv_acos" [ulp(2)] = x.acos();
    "acosh" (x) "__nv_acoshf" [ulp(4)] "__nv_acosh" [ulp(3)] = special::acosh(x);
    "asin" (x) "__nv_asinf" [ulp(2)] "__nv_asin" [ulp(2)] = x.asin();
    "asinh" (x) "__nv_asinhf" [ulp(3)] "__nv_asinh" [ulp(3)] = libm::asinh(x);
    "atan" (x) "__nv_atanf" [ulp(2)] "__nv_atan" [ulp(2)] = x.atan();
    "atan2" (x, y) "__nv_atan2f" [ulp(3)] "__nv_atan2" [ulp(2)] = x.atan2(y);
    "atanh" (x) "__nv_atanhf" [ulp(3)] "__nv_atanh" [ulp(2)] = libm::atanh(x);
    "cbrt" (x) "__nv_cbrtf" [ulp(1)] "__nv_cbrt" [ulp(1)] = x.cbrt();
    "cos" (x) "__nv_cosf" [ulp(2)] "__nv_cos" [ulp(2)] = x.cos();
    "cosh" (x) "__nv_coshf" [ulp(2)] "__nv_cosh" [ulp(1)] = x.cosh();
    "cospi" (x) "__nv_cospif" [ulp(1)] "__nv_cospi" [ulp(2)] = special::cospi(x);
    "cyl_bessel_i0" (x) "__nv_cyl_bessel_i0f" [ulp(6)] "__nv_cyl_bessel_i0" [ulp(6)] = bessel::i0(x);
    "cyl_bessel_i1" (x) "__nv_cyl_bessel_i1f" [ulp(6)] "__nv_cyl_bessel_i1" [ulp(6)] = bessel::i1(x);
    "erf" (x) "__nv_erff" [ulp(2)] "__nv_erf" [ulp(2)] = libm::erf(x);
    "erfc" (x) "__nv_erfcf" [ulp(4)] "__nv_erfc" [ulp(5)] = libm::erfc(x);
    "erfcinv" (x) "__nv_erfcinvf" [ulp(4)] "__nv_erfcinv" [ulp(6)] = special::erfcinv(x);
    "erfcx" (x) "__nv_erfcxf" [ulp(4)] "__nv_erfcx" [ulp(4)] = special::erfcx(x);
    "erfinv" (x) "__nv_erfinvf" [ulp(2)] "__nv_erfinv" [ulp(5)] = special::erfinv(x);
    "exp" (x) "__nv_expf" [ulp(1)] "__nv_exp" [ulp(1)] = x.exp();
    "exp10" (x) "__nv_exp10f" [ulp(1)] "__nv_exp10" [ulp(1)] = 10f64.powf(x);
    "exp2" (x) "__nv_exp2f" [ulp(2)] "__nv_exp2" [ulp(1)] = x.exp2();
    "expm1" (x) "__nv_expm1f" [ulp(1)] "__nv_expm1" [ulp(1)] = x.exp_m1();
    "hypot" (x, y) "__nv_hypotf" [ulp(3)] "__nv_hypot" [ulp(2)] = x.hypot(y);
    "j0" (x) "__nv_j0f" [BESSEL_32] "__nv_j0" [BESSEL_64] = libm::j0(x);
    "j1" (x) "__nv_j1f" [BESSEL_32] "__nv_j1" [BESSEL_64] = libm::j1(x);
    "lgamma" (x) "__nv_lgammaf" [within("6 ulp outside of -10.001 to -2.264")] "__nv_lgamma" [within("4 ulp outside of -11.001 to -2.264")] = libm::lgamma(x);
    "log" (x) "__nv_logf" [ulp(1)] "__nv_log" [ulp(1)] = x.ln();
    "log10" (x) "__nv_log10f" [ulp(2)] "__nv_log10" [ulp(1)] = x.log10();
    "log1p" (x) "__nv_log1pf" [ulp(1)] "__nv_log1p" [ulp(1)] = x.ln_1p();
    "log2" (x) "__nv_log2f" [ulp(1)] "__nv_log2" [ulp(1)] = x.log2();
    "norm3d" (x, y, z) "__nv_norm3df" [ulp(3)] "__nv_norm3d" [ulp(2)] = special::norm(&[x, y, z]);
    "norm4d" (x, y, z, w) "__nv_norm4df" [ulp(3)] "__nv_norm4d" [ulp(2)] = special::norm(&[x, y, z, w]);
    "normcdf" (x) "__nv_normcdff" [ulp(5)] "__nv_normcdf" [ulp(5)] = special::normcdf(x);
    "normcdfinv" (x) "__nv_normcdfinvf" [ulp(5)] "__nv_normcdfinv" [ulp(8)] = special::normcdfinv(x);
    "pow" (x, y) "__nv_powf" [ulp(4)] "__nv_pow" [ulp(2)] = x.powf(y);
    "rcbrt" (x) "__nv_rcbrtf" [ulp(1)] "__nv_rcbrt" [ulp(1)] = 1.0 / x.cbrt();
    "rhypot" (x, y) "__nv_rhypotf" [ulp(2)] "__nv_rhypot" [ulp(1)] = special::rnorm(&[x, y]);
    "rnorm3d" (x, y, z) "__nv_rnorm3df" [ulp(2)] "__nv_rnorm3d" [ulp(1)] = special::rnorm(&[x, y, z]);
    "rnorm4d" (x, y, z, w) "__nv_rnorm4df" [ulp(2)] "__nv_rnorm4d" [ulp(1)] = special::rnorm(&[x, y, z, w]);
    "rsqrt" (x) "__nv_rsqrtf" [ulp(2)] "__nv_rsqrt" [ulp(1)] = 1.0 / x.sqrt();
    "sin" (x) "__nv_sinf" [ulp(2)] "__nv_sin" [ulp(2)] = x.sin();
    "sinh" (x) "__nv_sinhf" [ulp(3)] "__nv_sinh" [ulp(2)] = x.sinh();
    "sinpi" (x) "__nv_sinpif" [ulp(1)] "__nv_sinpi" [ulp(2)] = special::sinpi(x);
    "tan" (x) "__nv_tanf" [ulp(4)] "__nv_tan" [ulp(2)] = x.tan();
    "tanh" (x) "__nv_tanhf" [ulp(2)] "__nv_tanh" [ulp(1)] = x.tanh();
    "tgamma" (x) "__nv_tgammaf" [ulp(5)] "__nv_tgamma" [ulp(10)] = libm::tgamma(x);
    "y0" (x) "__nv_y0f" [BESSEL_32] "__nv_y0" [BESSEL_64] = libm::y0(x);
    "y1" (x) "__nv_y1f" [BESSEL_32] "__nv_y1" [BESSEL_64] = libm::y1(x);
};

#[rustfmt::skip]
pub(crate) static OTHERS: &[Function] = others! {
    "abs" "__nv_abs" (x: i32) -> i32 [EXACT] = x.wrapping_abs();
    "abs" "__nv_llabs" (x: i64) -> i64 [EXACT] = x.wrapping_abs();
    "abs" "__nv_fabsf" (x: f32) -> f32 [EXACT] = x.abs();
    "abs" "__nv_fabs" (x: f64) -> f64 [EXACT] = x.abs();
    "add_rd" "__nv_dadd_rd" (x: f64, y: f64) -> f64 [EXACT] = rounding::add(x, y, DOWN);
    "add_rd" "__nv_fadd_rd" (x: f32, y: f32) -> f32 [EXACT] = rounding::add(x, y, DOWN);
    "add_rn" "__nv_dadd_rn" (x: f64, y: f64) -> f64 [EXACT] = x + y;
    "add_rn" "__nv_fadd_rn" (x: f32, y: f32) -> f32 [EXACT] = x + y;
    "add_ru" "__nv_dadd_ru" (x: f64, y: f64) -> f64 [EXACT] = rounding::add(x, y, UP);
    "add_ru" "__nv_fadd_ru" (x: f32, y: f32) -> f32 [EXACT] = rounding::add(x, y, UP);
    "add_rz" "__nv_dadd_rz" (x: f64, y: f64) -> f64 [EXACT] = rounding::add(x, y, ZERO);
    "add_rz" "__nv_fadd_rz" (x: f32, y: f32) -> f32 [EXACT] = rounding::add(x, y, ZERO);
    "brev" "__nv_brev" (x: i32) -> i32 [EXACT] = x.reverse_bits();
    "brev" "__nv_brevll" (x: i64) -> i64 [EXACT] = x.reverse_bits();
    "byte_perm" "__nv_byte_perm" (x: i32, y: i32, z: i32) -> i32 [EXACT] = bits::byte_perm(x, y, z);
    "ceil" "__nv_ceil" (x: f64) -> f64 [EXACT] = x.ceil();
    "ceil" "__nv_ceilf" (x: f32) -> f32 [EXACT] = x.ceil();
    "clz" "__nv_clz" (x: i32) -> i32 [EXACT] = x.leading_zeros() as i32;
    "clz" "__nv_clzll" (x: i64) -> i32 [EXACT] = x.leading_zeros() as i32;
    "copysign" "__nv_copysignf" (x: f32, y: f32) -> f32 [EXACT] = x.copysign(y);
    "copysign" "__nv_copysign" (x: f64, y: f64) -> f64 [EXACT] = x.copysign(y);
    "div_rd" "__nv_fdiv_rd" (x: f32, y: f32) -> f32 [EXACT] = rounding::div(x, y, DOWN);
    "div_rd" "__nv_ddiv_rd" (x: f64, y: f64) -> f64 [EXACT] = rounding::div(x, y, DOWN);
    "div_rn" "__nv_fdiv_rn" (x: f32, y: f32) -> f32 [EXACT] = x / y;
    "div_rn" "__nv_ddiv_rn" (x: f64, y: f64) -> f64 [EXACT] = x / y;
    "div_ru" "__nv_fdiv_ru" (x: f32, y: f32) -> f32 [EXACT] = rounding::div(x, y, UP);
    "div_ru" "__nv_ddiv_ru" (x: f64, y: f64) -> f64 [EXACT] = rounding::div(x, y, UP);
    "div_rz" "__nv_fdiv_rz" (x: f32, y: f32) -> f32 [EXACT] = rounding::div(x, y, ZERO);
    "div_rz" "__nv_ddiv_rz" (x: f64, y: f64) -> f64 [EXACT] = rounding::div(x, y, ZERO);
    "double2float_rd" "__nv_double2float_rd" (x: f64) -> f32 [EXACT] = rounding::narrow(x, DOWN);
    "double2float_rn" "__nv_double2float_rn" (x: f64) -> f32 [EXACT] = x as f32;
    "double2float_ru" "__nv_double2float_ru" (x: f64) -> f32 [EXACT] = rounding::narrow(x, UP);
    "double2float_rz" "__nv_double2float_rz" (x: f64) -> f32 [EXACT] = rounding::narrow(x, ZERO);
    "double2hiint" "__nv_double2hiint" (x: f64) -> i32 [EXACT] = (x.to_bits() >> 32) as i32;
    "double2int_rd" "__nv_double2int_rd" (x: f64) -> i32 [EXACT] = rounding::to_i32(x, DOWN);
    "double2int_rn" "__nv_double2int_rn" (x: f64) -> i32 [EXACT] = rounding::to_i32(x, NEAREST);
    "double2int_ru" "__nv_double2int_ru" (x: f64) -> i32 [EXACT] = rounding::to_i32(x, UP);
    "double2int_rz" "__nv_double2int_rz" (x: f64) -> i32 [EXACT] = rounding::to_i32(x, ZERO);
    "double2ll_rd" "__nv_double2ll_rd" (x: f64) -> i64 [EXACT] = rounding::to_i64(x, DOWN);
    "double2ll_rn" "__nv_double2ll_rn" (x: f64) -> i64 [EXACT] = rounding::to_i64(x, NEAREST);
    "double2ll_ru" "__nv_double2ll_ru" (x: f64) -> i64 [EXACT] = rounding::to_i64(x, UP);
    "double2ll_rz" "__nv_double2ll_rz" (x: f64) -> i64 [EXACT] = rounding::to_i64(x, ZERO);
    "double2loint" "__nv_double2loint" (x: f64) -> i32 [EXACT] = x.to_bits() as i32;
    "double2uint_rd" "__nv_double2uint_rd" (x: f64) -> i32 [EXACT] = rounding::to_u32(x, DOWN) as i32;
    "double2uint_rn" "__nv_double2uint_rn" (x: f64) -> i32 [EXACT] = rounding::to_u32(x, NEAREST) as i32;
    "double2uint_ru" "__nv_double2uint_ru" (x: f64) -> i32 [EXACT] = rounding::to_u32(x, UP) as i32;
    "double2uint_rz" "__nv_double2uint_rz" (x: f64) -> i32 [EXACT] = rounding::to_u32(x, ZERO) as i32;
    "double2ull_rd" "__nv_double2ull_rd" (x: f64) -> i64 [EXACT] = rounding::to_u64(x, DOWN) as i64;
    "double2ull_rn" "__nv_double2ull_rn" (x: f64) -> i64 [EXACT] = rounding::to_u64(x, NEAREST) as i64;
    "double2ull_ru" "__nv_double2ull_ru" (x: f64) -> i64 [EXACT] = rounding::to_u64(x, UP) as i64;
    "double2ull_rz" "__nv_double2ull_rz" (x: f64) -> i64 [EXACT] = rounding::to_u64(x, ZERO) as i64;
    "double_as_longlong" "__nv_double_as_longlong" (x: f64) -> i64 [EXACT] = x.to_bits() as i64;
    "fast_cosf" "__nv_fast_cosf" (x: f32) -> f32 [within("2^-21.1 absolute in [-pi, pi]")] = f64::from(x).cos() as f32;
    "fast_dividef" "__nv_fast_fdividef" (x: f32, y: f32) -> f32 [within("2 ulp for 2^-126 <= |y| <= 2^126")] = x / y;
    "fast_exp10f" "__nv_fast_exp10f" (x: f32) -> f32 [within("2 + 2.97 |x| ulp")] = 10f64.powf(x.into()) as f32;
    "fast_expf" "__nv_fast_expf" (x: f32) -> f32 [within("2 + 1.173 |x| ulp")] = f64::from(x).exp() as f32;
    "fast_log10f" "__nv_fast_log10f" (x: f32) -> f32 [within("3 ulp, in [0.5, 2] 2^-24 absolute")] = f64::from(x).log10() as f32;
    "fast_log2f" "__nv_fast_log2f" (x: f32) -> f32 [within("2 ulp, in [0.5, 2] 2^-22 absolute")] = f64::from(x).log2() as f32;
    "fast_logf" "__nv_fast_logf" (x: f32) -> f32 [within("3 ulp, in [0.5, 2] 2^-21.4 absolute")] = f64::from(x).ln() as f32;
    "fast_powf" "__nv_fast_powf" (x: f32, y: f32) -> f32 [within("that of exp2(y log2(x)) by the fast functions")] = (f64::from(y) * f64::from(x).log2()).exp2() as f32;
    "fast_sinf" "__nv_fast_sinf" (x: f32) -> f32 [within("2^-21.4 absolute in [-pi, pi]")] = f64::from(x).sin() as f32;
    "fast_tanf" "__nv_fast_tanf" (x: f32) -> f32 [within("that of fast_sinf / fast_cosf")] = f64::from(x).tan() as f32;
    "fast_tanhf" "__nv_fast_tanhf" (x: f32) -> f32 [within("2^-11 relative")] = f64::from(x).tanh() as f32;
    "fdim" "__nv_fdimf" (x: f32, y: f32) -> f32 [EXACT] = libm::fdimf(x, y);
    "fdim" "__nv_fdim" (x: f64, y: f64) -> f64 [EXACT] = libm::fdim(x, y);
    "ffs" "__nv_ffs" (x: i32) -> i32 [EXACT] = bits::find_first_set(x.into());
    "ffs" "__nv_ffsll" (x: i64) -> i32 [EXACT] = bits::find_first_set(x);
    "finitef" "__nv_finitef" (x: f32) -> i32 [EXACT] = x.is_finite().into();
    "float2int_rd" "__nv_float2int_rd" (x: f32) -> i32 [EXACT] = rounding::whole(x.into(), DOWN) as i32;
    "float2int_rn" "__nv_float2int_rn" (x: f32) -> i32 [EXACT] = rounding::whole(x.into(), NEAREST) as i32;
    "float2int_ru" "__nv_float2int_ru" (x: f32) -> i32 [EXACT] = rounding::whole(x.into(), UP) as i32;
    "float2int_rz" "__nv_float2int_rz" (x: f32) -> i32 [EXACT] = rounding::whole(x.into(), ZERO) as i32;
    "float2ll_rd" "__nv_float2ll_rd" (x: f32) -> i64 [EXACT] = rounding::to_i64(x.into(), DOWN);
    "float2ll_rn" "__nv_float2ll_rn" (x: f32) -> i64 [EXACT] = rounding::to_i64(x.into(), NEAREST);
    "float2ll_ru" "__nv_float2ll_ru" (x: f32) -> i64 [EXACT] = rounding::to_i64(x.into(), UP);
    "float2ll_rz" "__nv_float2ll_rz" (x: f32) -> i64 [EXACT] = rounding::to_i64(x.into(), ZERO);
    "float2uint_rd" "__nv_float2uint_rd" (x: f32) -> i32 [EXACT] = rounding::whole(x.into(), DOWN) as u32 as i32;
    "float2uint_rn" "__nv_float2uint_rn" (x: f32) -> i32 [EXACT] = rounding::whole(x.into(), NEAREST) as u32 as i32;
    "float2uint_ru" "__nv_float2uint_ru" (x: f32) -> i32 [EXACT] = rounding::whole(x.into(), UP) as u32 as i32;
    "float2uint_rz" "__nv_float2uint_rz" (x: f32) -> i32 [EXACT] = rounding::whole(x.into(), ZERO) as u32 as i32;
    "float2ull_rd" "__nv_float2ull_rd" (x: f32) -> i64 [EXACT] = rounding::to_u64(x.into(), DOWN) as i64;
    "float2ull_rn" "__nv_float2ull_rn" (x: f32) -> i64 [EXACT] = rounding::to_u64(x.into(), NEAREST) as i64;
    "float2ull_ru" "__nv_float2ull_ru" (x: f32) -> i64 [EXACT] = rounding::to_u64(x.into(), UP) as i64;
    "float2ull_rz" "__nv_float2ull_rz" (x: f32) -> i64 [EXACT] = rounding::to_u64(x.into(), ZERO) as i64;
    "float_as_int" "__nv_float_as_int" (x: f32) -> i32 [EXACT] = x.to_bits() as i32;
    "float_as_uint" "__nv_float_as_uint" (x: f32) -> i32 [EXACT] = x.to_bits() as i32;
    "floor" "__nv_floorf" (x: f32) -> f32 [EXACT] = x.floor();
    "floor" "__nv_floor" (x: f64) -> f64 [EXACT] = x.floor();
    "fma" "__nv_fmaf" (x: f32, y: f32, z: f32) -> f32 [EXACT] = x.mul_add(y, z);
    "fma" "__nv_fma" (x: f64, y: f64, z: f64) -> f64 [EXACT] = x.mul_add(y, z);
    "fma_rd" "__nv_fmaf_rd" (x: f32, y: f32, z: f32) -> f32 [EXACT] = rounding::fma(x, y, z, DOWN);
    "fma_rd" "__nv_fma_rd" (x: f64, y: f64, z: f64) -> f64 [EXACT] = rounding::fma(x, y, z, DOWN);
    "fma_rn" "__nv_fmaf_rn" (x: f32, y: f32, z: f32) -> f32 [EXACT] = x.mul_add(y, z);
    "fma_rn" "__nv_fma_rn" (x: f64, y: f64, z: f64) -> f64 [EXACT] = x.mul_add(y, z);
    "fma_ru" "__nv_fmaf_ru" (x: f32, y: f32, z: f32) -> f32 [EXACT] = rounding::fma(x, y, z, UP);
    "fma_ru" "__nv_fma_ru" (x: f64, y: f64, z: f64) -> f64 [EXACT] = rounding::fma(x, y, z, UP);
    "fma_rz" "__nv_fmaf_rz" (x: f32, y: f32, z: f32) -> f32 [EXACT] = rounding::fma(x, y, z, ZERO);
    "fma_rz" "__nv_fma_rz" (x: f64, y: f64, z: f64) -> f64 [EXACT] = rounding::fma(x, y, z, ZERO);
    "fmod" "__nv_fmodf" (x: f32, y: f32) -> f32 [EXACT] = x % y;
    "fmod" "__nv_fmod" (x: f64, y: f64) -> f64 [EXACT] = x % y;
    "hadd" "__nv_hadd" (x: i32, y: i32) -> i32 [EXACT] = ((i64::from(x) + i64::from(y)) >> 1) as i32;
    "hadd" "__nv_uhadd" (x: u32, y: u32) -> u32 [EXACT] = ((u64::from(x) + u64::from(y)) >> 1) as u32;
    "hiloint2double" "__nv_hiloint2double" (x: i32, y: i32) -> f64 [EXACT] = bits::double_of(x, y);
    "ilogb" "__nv_ilogbf" (x: f32) -> i32 [EXACT] = libm::ilogbf(x);
    "ilogb" "__nv_ilogb" (x: f64) -> i32 [EXACT] = libm::ilogb(x);
    "int2double_rn" "__nv_int2double_rn" (x: i32) -> f64 [EXACT] = f64::from(x);
    "int2float_rd" "__nv_int2float_rd" (x: i32) -> f32 [EXACT] = rounding::single(x.into(), DOWN);
    "int2float_rn" "__nv_int2float_rn" (x: i32) -> f32 [EXACT] = x as f32;
    "int2float_ru" "__nv_int2float_ru" (x: i32) -> f32 [EXACT] = rounding::single(x.into(), UP);
    "int2float_rz" "__nv_int2float_rz" (x: i32) -> f32 [EXACT] = rounding::single(x.into(), ZERO);
    "int_as_float" "__nv_int_as_float" (x: i32) -> f32 [EXACT] = f32::from_bits(x as u32);
    "isfinited" "__nv_isfinited" (x: f64) -> i32 [EXACT] = x.is_finite().into();
    "isinf" "__nv_isinff" (x: f32) -> i32 [EXACT] = x.is_infinite().into();
    "isinf" "__nv_isinfd" (x: f64) -> i32 [EXACT] = x.is_infinite().into();
    "isnan" "__nv_isnanf" (x: f32) -> i32 [EXACT] = x.is_nan().into();
    "isnan" "__nv_isnand" (x: f64) -> i32 [EXACT] = x.is_nan().into();
    "jn" "__nv_jnf" (x: i32, y: f32) -> f32 [within("2.2e-6 absolute")] = special::jn(x, y.into()) as f32;
    "jn" "__nv_jn" (x: i32, y: f64) -> f64 [within("5e-12 absolute")] = special::jn(x, y);
    "ldexp" "__nv_ldexpf" (x: f32, y: i32) -> f32 [EXACT] = libm::ldexpf(x, y);
    "ldexp" "__nv_ldexp" (x: f64, y: i32) -> f64 [EXACT] = libm::ldexp(x, y);
    "ll2double_rd" "__nv_ll2double_rd" (x: i64) -> f64 [EXACT] = rounding::double(x.into(), DOWN);
    "ll2double_rn" "__nv_ll2double_rn" (x: i64) -> f64 [EXACT] = x as f64;
    "ll2double_ru" "__nv_ll2double_ru" (x: i64) -> f64 [EXACT] = rounding::double(x.into(), UP);
    "ll2double_rz" "__nv_ll2double_rz" (x: i64) -> f64 [EXACT] = rounding::double(x.into(), ZERO);
    "ll2float_rd" "__nv_ll2float_rd" (x: i64) -> f32 [EXACT] = rounding::single(x.into(), DOWN);
    "ll2float_rn" "__nv_ll2float_rn" (x: i64) -> f32 [EXACT] = x as f32;
    "ll2float_ru" "__nv_ll2float_ru" (x: i64) -> f32 [EXACT] = rounding::single(x.into(), UP);
    "ll2float_rz" "__nv_ll2float_rz" (x: i64) -> f32 [EXACT] = rounding::single(x.into(), ZERO);
    "llrint" "__nv_llrintf" (x: f32) -> i64 [EXACT] = rounding::to_i64(x.into(), NEAREST);
    "llrint" "__nv_llrint" (x: f64) -> i64 [EXACT] = rounding::to_i64(x, NEAREST);
    "llround" "__nv_llroundf" (x: f32) -> i64 [EXACT] = rounding::to_i64(x.into(), AWAY);
    "llround" "__nv_llround" (x: f64) -> i64 [EXACT] = rounding::to_i64(x, AWAY);
    "logb" "__nv_logbf" (x: f32) -> f32 [EXACT] = special::logb(x.into()) as f32;
    "logb" "__nv_logb" (x: f64) -> f64 [EXACT] = special::logb(x);
    "longlong_as_double" "__nv_longlong_as_double" (x: i64) -> f64 [EXACT] = f64::from_bits(x as u64);
    "mul24" "__nv_mul24" (x: i32, y: i32) -> i32 [EXACT] = (x << 8 >> 8).wrapping_mul(y << 8 >> 8);
    "mul24" "__nv_umul24" (x: u32, y: u32) -> u32 [EXACT] = (x << 8 >> 8).wrapping_mul(y << 8 >> 8);
    "mul_rd" "__nv_dmul_rd" (x: f64, y: f64) -> f64 [EXACT] = rounding::mul(x, y, DOWN);
    "mul_rd" "__nv_fmul_rd" (x: f32, y: f32) -> f32 [EXACT] = rounding::mul(x, y, DOWN);
    "mul_rn" "__nv_dmul_rn" (x: f64, y: f64) -> f64 [EXACT] = x * y;
    "mul_rn" "__nv_fmul_rn" (x: f32, y: f32) -> f32 [EXACT] = x * y;
    "mul_ru" "__nv_dmul_ru" (x: f64, y: f64) -> f64 [EXACT] = rounding::mul(x, y, UP);
    "mul_ru" "__nv_fmul_ru" (x: f32, y: f32) -> f32 [EXACT] = rounding::mul(x, y, UP);
    "mul_rz" "__nv_dmul_rz" (x: f64, y: f64) -> f64 [EXACT] = rounding::mul(x, y, ZERO);
    "mul_rz" "__nv_fmul_rz" (x: f32, y: f32) -> f32 [EXACT] = rounding::mul(x, y, ZERO);
    "mulhi" "__nv_mulhi" (x: i32, y: i32) -> i32 [EXACT] = ((i64::from(x) * i64::from(y)) >> 32) as i32;
    "mulhi" "__nv_umulhi" (x: u32, y: u32) -> u32 [EXACT] = ((u64::from(x) * u64::from(y)) >> 32) as u32;
    "mulhi" "__nv_mul64hi" (x: i64, y: i64) -> i64 [EXACT] = ((i128::from(x) * i128::from(y)) >> 64) as i64;
    "mulhi" "__nv_umul64hi" (x: u64, y: u64) -> u64 [EXACT] = ((u128::from(x) * u128::from(y)) >> 64) as u64;
    "nearbyint" "__nv_nearbyintf" (x: f32) -> f32 [EXACT] = x.round_ties_even();
    "nearbyint" "__nv_nearbyint" (x: f64) -> f64 [EXACT] = x.round_ties_even();
    "nextafter" "__nv_nextafterf" (x: f32, y: f32) -> f32 [EXACT] = libm::nextafterf(x, y);
    "nextafter" "__nv_nextafter" (x: f64, y: f64) -> f64 [EXACT] = libm::nextafter(x, y);
    "popc" "__nv_popc" (x: i32) -> i32 [EXACT] = x.count_ones() as i32;
    "popc" "__nv_popcll" (x: i64) -> i32 [EXACT] = x.count_ones() as i32;
    "pow" "__nv_powif" (x: f32, y: i32) -> f32 [within("the rounding of each product of repeated squaring")] = f64::from(x).powf(y.into()) as f32;
    "pow" "__nv_powi" (x: f64, y: i32) -> f64 [within("the rounding of each product of repeated squaring")] = x.powf(y.into());
    "rcp64h" "__nv_rcp64h" (x: f64) -> f64 [within("2^-19 relative; the low 32 bits are zero")] = f64::from_bits((1.0 / x).to_bits() & !0xffff_ffff);
    "rcp_rd" "__nv_frcp_rd" (x: f32) -> f32 [EXACT] = rounding::div(1.0, x, DOWN);
    "rcp_rd" "__nv_drcp_rd" (x: f64) -> f64 [EXACT] = rounding::div(1.0, x, DOWN);
    "rcp_rn" "__nv_frcp_rn" (x: f32) -> f32 [EXACT] = 1.0 / x;
    "rcp_rn" "__nv_drcp_rn" (x: f64) -> f64 [EXACT] = 1.0 / x;
    "rcp_ru" "__nv_frcp_ru" (x: f32) -> f32 [EXACT] = rounding::div(1.0, x, UP);
    "rcp_ru" "__nv_drcp_ru" (x: f64) -> f64 [EXACT] = rounding::div(1.0, x, UP);
    "rcp_rz" "__nv_frcp_rz" (x: f32) -> f32 [EXACT] = rounding::div(1.0, x, ZERO);
    "rcp_rz" "__nv_drcp_rz" (x: f64) -> f64 [EXACT] = rounding::div(1.0, x, ZERO);
    "remainder" "__nv_remainderf" (x: f32, y: f32) -> f32 [EXACT] = libm::remainderf(x, y);
    "remainder" "__nv_remainder" (x: f64, y: f64) -> f64 [EXACT] = libm::remainder(x, y);
    "rhadd" "__nv_rhadd" (x: i32, y: i32) -> i32 [EXACT] = ((i64::from(x) + i64::from(y) + 1) >> 1) as i32;
    "rhadd" "__nv_urhadd" (x: u32, y: u32) -> u32 [EXACT] = ((u64::from(x) + u64::from(y) + 1) >> 1) as u32;
    "rint" "__nv_rintf" (x: f32) -> f32 [EXACT] = x.round_ties_even();
    "rint" "__nv_rint" (x: f64) -> f64 [EXACT] = x.round_ties_even();
    "round" "__nv_roundf" (x: f32) -> f32 [EXACT] = x.round();
    "round" "__nv_round" (x: f64) -> f64 [EXACT] = x.round();
    "rsqrt_rn" "__nv_frsqrt_rn" (x: f32) -> f32 [EXACT] = (1.0 / f64::from(x).sqrt()) as f32;
    "sad" "__nv_sad" (x: i32, y: i32, z: u32) -> i32 [EXACT] = x.abs_diff(y).wrapping_add(z) as i32;
    "sad" "__nv_usad" (x: u32, y: u32, z: u32) -> u32 [EXACT] = x.abs_diff(y).wrapping_add(z);
    "saturatef" "__nv_saturatef" (x: f32) -> f32 [EXACT] = if x > 0.0 { x.min(1.0) } else { 0.0 };
    "scalbn" "__nv_scalbnf" (x: f32, y: i32) -> f32 [EXACT] = libm::scalbnf(x, y);
    "scalbn" "__nv_scalbn" (x: f64, y: i32) -> f64 [EXACT] = libm::scalbn(x, y);
    "signbit" "__nv_signbitf" (x: f32) -> i32 [EXACT] = x.is_sign_negative().into();
    "signbit" "__nv_signbitd" (x: f64) -> i32 [EXACT] = x.is_sign_negative().into();
    "sqrt" "__nv_sqrtf" (x: f32) -> f32 [EXACT] = x.sqrt();
    "sqrt" "__nv_sqrt" (x: f64) -> f64 [EXACT] = x.sqrt();
    "sqrt_rd" "__nv_fsqrt_rd" (x: f32) -> f32 [EXACT] = rounding::sqrt(x, DOWN);
    "sqrt_rd" "__nv_dsqrt_rd" (x: f64) -> f64 [EXACT] = rounding::sqrt(x, DOWN);
    "sqrt_rn" "__nv_fsqrt_rn" (x: f32) -> f32 [EXACT] = x.sqrt();
    "sqrt_rn" "__nv_dsqrt_rn" (x: f64) -> f64 [EXACT] = x.sqrt();
    "sqrt_ru" "__nv_fsqrt_ru" (x: f32) -> f32 [EXACT] = rounding::sqrt(x, UP);
    "sqrt_ru" "__nv_dsqrt_ru" (x: f64) -> f64 [EXACT] = rounding::sqrt(x, UP);
    "sqrt_rz" "__nv_fsqrt_rz" (x: f32) -> f32 [EXACT] = rounding::sqrt(x, ZERO);
    "sqrt_rz" "__nv_dsqrt_rz" (x: f64) -> f64 [EXACT] = rounding::sqrt(x, ZERO);
    "sub_rd" "__nv_fsub_rd" (x: f32, y: f32) -> f32 [EXACT] = rounding::sub(x, y, DOWN);
    "sub_rd" "__nv_dsub_rd" (x: f64, y: f64) -> f64 [EXACT] = rounding::sub(x, y, DOWN);
    "sub_rn" "__nv_fsub_rn" (x: f32, y: f32) -> f32 [EXACT] = x - y;
    "sub_rn" "__nv_dsub_rn" (x: f64, y: f64) -> f64 [EXACT] = x - y;
    "sub_ru" "__nv_fsub_ru" (x: f32, y: f32) -> f32 [EXACT] = rounding::sub(x, y, UP);
    "sub_ru" "__nv_dsub_ru" (x: f64, y: f64) -> f64 [EXACT] = rounding::sub(x, y, UP);
    "sub_rz" "__nv_fsub_rz" (x: f32, y: f32) -> f32 [EXACT] = rounding::sub(x, y, ZERO);
    "sub_rz" "__nv_dsub_rz" (x: f64, y: f64) -> f64 [EXACT] = rounding::sub(x, y, ZERO);
    "trunc" "__nv_trunc" (x: f64) -> f64 [EXACT] = x.trunc();
    "trunc" "__nv_truncf" (x: f32) -> f32 [EXACT] = x.trunc();
    "uint2double_rn" "__nv_uint2double_rn" (x: u32) -> f64 [EXACT] = f64::from(x);
    "uint2float_rd" "__nv_uint2float_rd" (x: u32) -> f32 [EXACT] = rounding::single(x.into(), DOWN);
    "uint2float_rn" "__nv_uint2float_rn" (x: u32) -> f32 [EXACT] = x as f32;
    "uint2float_ru" "__nv_uint2float_ru" (x: u32) -> f32 [EXACT] = rounding::single(x.into(), UP);
    "uint2float_rz" "__nv_uint2float_rz" (x: u32) -> f32 [EXACT] = rounding::single(x.into(), ZERO);
    "uint_as_float" "__nv_uint_as_float" (x: u32) -> f32 [EXACT] = f32::from_bits(x);
    "ull2double_rd" "__nv_ull2double_rd" (x: u64) -> f64 [EXACT] = rounding::double(x.into(), DOWN);
    "ull2double_rn" "__nv_ull2double_rn" (x: u64) -> f64 [EXACT] = x as f64;
    "ull2double_ru" "__nv_ull2double_ru" (x: u64) -> f64 [EXACT] = rounding::double(x.into(), UP);
    "ull2double_rz" "__nv_ull2double_rz" (x: u64) -> f64 [EXACT] = rounding::double(x.into(), ZERO);
    "ull2float_rd" "__nv_ull2float_rd" (x: u64) -> f32 [EXACT] = rounding::single(x.into(), DOWN);
    "ull2float_rn" "__nv_ull2float_rn" (x: u64) -> f32 [EXACT] = x as f32;
    "ull2float_ru" "__nv_ull2float_ru" (x: u64) -> f32 [EXACT] = rounding::single(x.into(), UP);
    "ull2float_rz" "__nv_ull2float_rz" (x: u64) -> f32 [EXACT] = rounding::single(x.into(), ZERO);
    "yn" "__nv_ynf" (x: i32, y: f32) -> f32 [within("2 + 2.5 n ulp for |x| < n, beyond 2.2e-6 absolute")] = special::yn(x, y.into()) as f32;
    "yn" "__nv_yn" (x: i32, y: f64) -> f64 [within("5e-12 absolute for |x| > 1.5 n")] = special::yn(x, y);
};
