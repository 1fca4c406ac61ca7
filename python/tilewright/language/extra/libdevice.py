"""The functions of NVIDIA's libdevice, elementwise. ``docs/libdevice.md`` has their types and how accurate they are.

Those that the core language has as accurately are the same functions.
"""

from __future__ import annotations

from .. import core, math
from .._marker import builtin, jit
from ..math import abs, ceil, cos, div_rn, erf, floor, fma, log, log2, rsqrt, sin, sqrt_rn

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add_rd",
    "add_rn",
    "add_ru",
    "add_rz",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "brev",
    "byte_perm",
    "cbrt",
    "ceil",
    "clz",
    "copysign",
    "cos",
    "cosh",
    "cospi",
    "cyl_bessel_i0",
    "cyl_bessel_i1",
    "div_rd",
    "div_rn",
    "div_ru",
    "div_rz",
    "double2float_rd",
    "double2float_rn",
    "double2float_ru",
    "double2float_rz",
    "double2hiint",
    "double2int_rd",
    "double2int_rn",
    "double2int_ru",
    "double2int_rz",
    "double2ll_rd",
    "double2ll_rn",
    "double2ll_ru",
    "double2ll_rz",
    "double2loint",
    "double2uint_rd",
    "double2uint_rn",
    "double2uint_ru",
    "double2uint_rz",
    "double2ull_rd",
    "double2ull_rn",
    "double2ull_ru",
    "double2ull_rz",
    "double_as_longlong",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "exp",
    "exp2",
    "exp10",
    "expm1",
    "fast_cosf",
    "fast_dividef",
    "fast_exp10f",
    "fast_expf",
    "fast_log2f",
    "fast_log10f",
    "fast_logf",
    "fast_powf",
    "fast_sinf",
    "fast_tanf",
    "fast_tanhf",
    "fdim",
    "ffs",
    "finitef",
    "float2int_rd",
    "float2int_rn",
    "float2int_ru",
    "float2int_rz",
    "float2ll_rd",
    "float2ll_rn",
    "float2ll_ru",
    "float2ll_rz",
    "float2uint_rd",
    "float2uint_rn",
    "float2uint_ru",
    "float2uint_rz",
    "float2ull_rd",
    "float2ull_rn",
    "float2ull_ru",
    "float2ull_rz",
    "float_as_int",
    "float_as_uint",
    "floor",
    "fma",
    "fma_rd",
    "fma_rn",
    "fma_ru",
    "fma_rz",
    "fmod",
    "hadd",
    "hiloint2double",
    "hypot",
    "ilogb",
    "int2double_rn",
    "int2float_rd",
    "int2float_rn",
    "int2float_ru",
    "int2float_rz",
    "int_as_float",
    "isfinited",
    "isinf",
    "isnan",
    "j0",
    "j1",
    "jn",
    "ldexp",
    "lgamma",
    "ll2double_rd",
    "ll2double_rn",
    "ll2double_ru",
    "ll2double_rz",
    "ll2float_rd",
    "ll2float_rn",
    "ll2float_ru",
    "ll2float_rz",
    "llrint",
    "llround",
    "log",
    "log1p",
    "log2",
    "log10",
    "logb",
    "longlong_as_double",
    "mul24",
    "mul_rd",
    "mul_rn",
    "mul_ru",
    "mul_rz",
    "mulhi",
    "nearbyint",
    "nextafter",
    "norm3d",
    "norm4d",
    "normcdf",
    "normcdfinv",
    "popc",
    "pow",
    "rcbrt",
    "rcp64h",
    "rcp_rd",
    "rcp_rn",
    "rcp_ru",
    "rcp_rz",
    "remainder",
    "rhadd",
    "rhypot",
    "rint",
    "rnorm3d",
    "rnorm4d",
    "round",
    "rsqrt",
    "rsqrt_rn",
    "sad",
    "saturatef",
    "scalbn",
    "signbit",
    "sin",
    "sinh",
    "sinpi",
    "sqrt",
    "sqrt_rd",
    "sqrt_rn",
    "sqrt_ru",
    "sqrt_rz",
    "sub_rd",
    "sub_rn",
    "sub_ru",
    "sub_rz",
    "tan",
    "tanh",
    "tgamma",
    "trunc",
    "uint2double_rn",
    "uint2float_rd",
    "uint2float_rn",
    "uint2float_ru",
    "uint2float_rz",
    "uint_as_float",
    "ull2double_rd",
    "ull2double_rn",
    "ull2double_ru",
    "ull2double_rz",
    "ull2float_rd",
    "ull2float_rn",
    "ull2float_ru",
    "ull2float_rz",
    "y0",
    "y1",
    "yn",
]


@builtin
def acos(x):
    """The arc cosine."""


@builtin
def acosh(x):
    """The inverse hyperbolic cosine."""


@builtin
def add_rd(x, y):
    """``x + y``, rounded down."""


@builtin
def add_rn(x, y):
    """``x + y``, rounded to nearest, ties to even."""


@builtin
def add_ru(x, y):
    """``x + y``, rounded up."""


@builtin
def add_rz(x, y):
    """``x + y``, rounded toward zero."""


@builtin
def asin(x):
    """The arc sine."""


@builtin
def asinh(x):
    """The inverse hyperbolic sine."""


@builtin
def atan(x):
    """The arc tangent."""


@builtin
def atan2(x, y):
    """The angle of the point ``(y, x)``: ``atan(x / y)`` in the right quadrant."""


@builtin
def atanh(x):
    """The inverse hyperbolic tangent."""


@builtin
def brev(x):
    """The bits in the opposite order."""


@builtin
def byte_perm(x, y, z):
    """Four of the eight bytes of ``y`` (high) and ``x`` (low).

    Each is chosen by the low three bits of one of the four low hexadecimal digits of ``z``.
    """


@builtin
def cbrt(x):
    """The cube root."""


@builtin
def clz(x):
    """How many high bits are zero before the first that is set, as int32."""


@builtin
def copysign(x, y):
    """``x`` with the sign of ``y``."""


@builtin
def cosh(x):
    """The hyperbolic cosine."""


@builtin
def cospi(x):
    """The cosine of π times ``x``."""


@builtin
def cyl_bessel_i0(x):
    """The modified Bessel function of the first kind of order 0."""


@builtin
def cyl_bessel_i1(x):
    """The modified Bessel function of the first kind of order 1."""


@builtin
def div_rd(x, y):
    """``x / y``, rounded down."""


@builtin
def div_ru(x, y):
    """``x / y``, rounded up."""


@builtin
def div_rz(x, y):
    """``x / y``, rounded toward zero."""


@builtin
def double2float_rd(x):
    """float64 as float32, rounded down."""


@builtin
def double2float_rn(x):
    """float64 as float32, rounded to nearest, ties to even."""


@builtin
def double2float_ru(x):
    """float64 as float32, rounded up."""


@builtin
def double2float_rz(x):
    """float64 as float32, rounded toward zero."""


@builtin
def double2hiint(x):
    """The high 32 bits of a float64."""


@builtin
def double2int_rd(x):
    """float64 as int32, rounded down.

    What is out of range becomes the nearest integer.
    """


@builtin
def double2int_rn(x):
    """float64 as int32, rounded to nearest, ties to even.

    What is out of range becomes the nearest integer.
    """


@builtin
def double2int_ru(x):
    """float64 as int32, rounded up.

    What is out of range becomes the nearest integer.
    """


@builtin
def double2int_rz(x):
    """float64 as int32, rounded toward zero.

    What is out of range becomes the nearest integer.
    """


@builtin
def double2ll_rd(x):
    """float64 as int64, rounded down.

    What is out of range becomes the nearest integer.
    """


@builtin
def double2ll_rn(x):
    """float64 as int64, rounded to nearest, ties to even.

    What is out of range becomes the nearest integer.
    """


@builtin
def double2ll_ru(x):
    """float64 as int64, rounded up.

    What is out of range becomes the nearest integer.
    """


@builtin
def double2ll_rz(x):
    """float64 as int64, rounded toward zero.

    What is out of range becomes the nearest integer.
    """


@builtin
def double2loint(x):
    """The low 32 bits of a float64."""


@builtin
def double2uint_rd(x):
    """float64 as uint32, rounded down; the int32 of these bits.

    What is out of range becomes the nearest integer.
    """


@builtin
def double2uint_rn(x):
    """float64 as uint32, rounded to nearest, ties to even; the int32 of these bits.

    What is out of range becomes the nearest integer.
    """


@builtin
def double2uint_ru(x):
    """float64 as uint32, rounded up; the int32 of these bits.

    What is out of range becomes the nearest integer.
    """


@builtin
def double2uint_rz(x):
    """float64 as uint32, rounded toward zero; the int32 of these bits.

    What is out of range becomes the nearest integer.
    """


@builtin
def double2ull_rd(x):
    """float64 as uint64, rounded down; the int64 of these bits.

    What is out of range becomes the nearest integer.
    """


@builtin
def double2ull_rn(x):
    """float64 as uint64, rounded to nearest, ties to even; the int64 of these bits.

    What is out of range becomes the nearest integer.
    """


@builtin
def double2ull_ru(x):
    """float64 as uint64, rounded up; the int64 of these bits.

    What is out of range becomes the nearest integer.
    """


@builtin
def double2ull_rz(x):
    """float64 as uint64, rounded toward zero; the int64 of these bits.

    What is out of range becomes the nearest integer.
    """


@builtin
def double_as_longlong(x):
    """The bits of a float64."""


@builtin
def erfc(x):
    """``1 - erf(x)``, exact where that is small."""


@builtin
def erfcinv(x):
    """The inverse of :func:`erfc`."""


@builtin
def erfcx(x):
    """``exp(x * x) * erfc(x)`` without overflow on the way."""


@builtin
def erfinv(x):
    """The inverse of :func:`erf`."""


@builtin
def exp(x):
    """e to the power of ``x``."""


@builtin
def exp10(x):
    """10 to the power of ``x``."""


@builtin
def exp2(x):
    """2 to the power of ``x``."""


@builtin
def expm1(x):
    """``exp(x) - 1``, exact near 0."""


@builtin
def fast_cosf(x):
    """The cosine, fast."""


@builtin
def fast_exp10f(x):
    """10 to the power of ``x``, fast."""


@builtin
def fast_log10f(x):
    """The logarithm to base 10, fast."""


@builtin
def fast_log2f(x):
    """The logarithm to base 2, fast."""


@builtin
def fast_powf(x, y):
    """``x`` to the power of ``y``, fast; NaN where ``x`` is negative."""


@builtin
def fast_sinf(x):
    """The sine, fast."""


@builtin
def fast_tanf(x):
    """The tangent, fast."""


@builtin
def fast_tanhf(x):
    """The hyperbolic tangent, fast."""


@builtin
def fdim(x, y):
    """``x - y`` where that is positive, 0 elsewhere."""


@builtin
def ffs(x):
    """The position of the lowest bit that is set, from 1; 0 where none is. As int32."""


@builtin
def float2int_rd(x):
    """float32 as int32, rounded down.

    What is out of range becomes the nearest integer.
    """


@builtin
def float2int_rn(x):
    """float32 as int32, rounded to nearest, ties to even.

    What is out of range becomes the nearest integer.
    """


@builtin
def float2int_ru(x):
    """float32 as int32, rounded up.

    What is out of range becomes the nearest integer.
    """


@builtin
def float2int_rz(x):
    """float32 as int32, rounded toward zero.

    What is out of range becomes the nearest integer.
    """


@builtin
def float2ll_rd(x):
    """float32 as int64, rounded down.

    What is out of range becomes the nearest integer.
    """


@builtin
def float2ll_rn(x):
    """float32 as int64, rounded to nearest, ties to even.

    What is out of range becomes the nearest integer.
    """


@builtin
def float2ll_ru(x):
    """float32 as int64, rounded up.

    What is out of range becomes the nearest integer.
    """


@builtin
def float2ll_rz(x):
    """float32 as int64, rounded toward zero.

    What is out of range becomes the nearest integer.
    """


@builtin
def float2uint_rd(x):
    """float32 as uint32, rounded down; the int32 of these bits.

    What is out of range becomes the nearest integer.
    """


@builtin
def float2uint_rn(x):
    """float32 as uint32, rounded to nearest, ties to even; the int32 of these bits.

    What is out of range becomes the nearest integer.
    """


@builtin
def float2uint_ru(x):
    """float32 as uint32, rounded up; the int32 of these bits.

    What is out of range becomes the nearest integer.
    """


@builtin
def float2uint_rz(x):
    """float32 as uint32, rounded toward zero; the int32 of these bits.

    What is out of range becomes the nearest integer.
    """


@builtin
def float2ull_rd(x):
    """float32 as uint64, rounded down; the int64 of these bits.

    What is out of range becomes the nearest integer.
    """


@builtin
def float2ull_rn(x):
    """float32 as uint64, rounded to nearest, ties to even; the int64 of these bits.

    What is out of range becomes the nearest integer.
    """


@builtin
def float2ull_ru(x):
    """float32 as uint64, rounded up; the int64 of these bits.

    What is out of range becomes the nearest integer.
    """


@builtin
def float2ull_rz(x):
    """float32 as uint64, rounded toward zero; the int64 of these bits.

    What is out of range becomes the nearest integer.
    """


@builtin
def float_as_int(x):
    """The bits of a float32."""


@builtin
def float_as_uint(x):
    """The bits of a float32, as int32."""


@builtin
def fma_rd(x, y, z):
    """``x * y + z``, rounded down once."""


@builtin
def fma_rn(x, y, z):
    """``x * y + z``, rounded to nearest, ties to even once."""


@builtin
def fma_ru(x, y, z):
    """``x * y + z``, rounded up once."""


@builtin
def fma_rz(x, y, z):
    """``x * y + z``, rounded toward zero once."""


@builtin
def fmod(x, y):
    """The remainder of ``x / y`` with the sign of ``x``."""


@builtin
def hadd(x, y):
    """``(x + y) >> 1`` without overflow."""


@builtin
def hiloint2double(x, y):
    """The float64 of the high bits ``x`` and the low bits ``y``."""


@builtin
def hypot(x, y):
    """``sqrt(x * x + y * y)`` without overflow on the way."""


@builtin
def ilogb(x):
    """The exponent, as int32."""


@builtin
def int2double_rn(x):
    """int32 as float64, rounded to nearest, ties to even."""


@builtin
def int2float_rd(x):
    """int32 as float32, rounded down."""


@builtin
def int2float_rn(x):
    """int32 as float32, rounded to nearest, ties to even."""


@builtin
def int2float_ru(x):
    """int32 as float32, rounded up."""


@builtin
def int2float_rz(x):
    """int32 as float32, rounded toward zero."""


@builtin
def int_as_float(x):
    """The float32 of these bits."""


@builtin
def j0(x):
    """The Bessel function of the first kind of order 0."""


@builtin
def j1(x):
    """The Bessel function of the first kind of order 1."""


@builtin
def jn(x, y):
    """The Bessel function of the first kind of order ``x`` (int32) at ``y``."""


@builtin
def ldexp(x, y):
    """``x`` times 2 to the power of ``y`` (int32)."""


@builtin
def lgamma(x):
    """The logarithm of the absolute value of the gamma function."""


@builtin
def ll2double_rd(x):
    """int64 as float64, rounded down."""


@builtin
def ll2double_rn(x):
    """int64 as float64, rounded to nearest, ties to even."""


@builtin
def ll2double_ru(x):
    """int64 as float64, rounded up."""


@builtin
def ll2double_rz(x):
    """int64 as float64, rounded toward zero."""


@builtin
def ll2float_rd(x):
    """int64 as float32, rounded down."""


@builtin
def ll2float_rn(x):
    """int64 as float32, rounded to nearest, ties to even."""


@builtin
def ll2float_ru(x):
    """int64 as float32, rounded up."""


@builtin
def ll2float_rz(x):
    """int64 as float32, rounded toward zero."""


@builtin
def llrint(x):
    """The nearest whole number, the even one of two, as int64."""


@builtin
def llround(x):
    """The nearest whole number, away from zero of two, as int64."""


@builtin
def log10(x):
    """The logarithm to base 10."""


@builtin
def log1p(x):
    """``log(1 + x)``, exact near 0."""


@builtin
def logb(x):
    """The exponent, as a float."""


@builtin
def longlong_as_double(x):
    """The float64 of these bits."""


@builtin
def mul24(x, y):
    """The low 32 bits of the product of the low 24 bits."""


@builtin
def mul_rd(x, y):
    """``x * y``, rounded down."""


@builtin
def mul_rn(x, y):
    """``x * y``, rounded to nearest, ties to even."""


@builtin
def mul_ru(x, y):
    """``x * y``, rounded up."""


@builtin
def mul_rz(x, y):
    """``x * y``, rounded toward zero."""


@builtin
def mulhi(x, y):
    """The high half of the product."""


@builtin
def nearbyint(x):
    """The nearest whole number, the even one of two."""


@builtin
def nextafter(x, y):
    """The next number after ``x`` toward ``y``."""


@builtin
def norm3d(x, y, z):
    """The length of the vector ``(x, y, z)`` without overflow on the way."""


@builtin
def norm4d(x, y, z, w):
    """The length of the vector ``(x, y, z, w)`` without overflow on the way."""


@builtin
def normcdf(x):
    """The normal distribution."""


@builtin
def normcdfinv(x):
    """The inverse of :func:`normcdf`."""


@builtin
def popc(x):
    """How many bits are set, as int32."""


@builtin
def pow(x, y):
    """``x`` to the power of ``y``, a float or an int32."""


@builtin
def rcbrt(x):
    """One over the cube root."""


@builtin
def rcp64h(x):
    """About ``1 / x``: the high 32 bits of the result, the low ones being zero."""


@builtin
def rcp_rd(x):
    """``1 / x``, rounded down."""


@builtin
def rcp_rn(x):
    """``1 / x``, rounded to nearest, ties to even."""


@builtin
def rcp_ru(x):
    """``1 / x``, rounded up."""


@builtin
def rcp_rz(x):
    """``1 / x``, rounded toward zero."""


@builtin
def remainder(x, y):
    """The remainder of ``x / y``, the quotient rounded to the nearest whole number."""


@builtin
def rhadd(x, y):
    """``(x + y + 1) >> 1`` without overflow."""


@builtin
def rhypot(x, y):
    """``1 / sqrt(x * x + y * y)`` without overflow on the way."""


@builtin
def rint(x):
    """The nearest whole number, the even one of two."""


@builtin
def rnorm3d(x, y, z):
    """One over the length of the vector ``(x, y, z)``."""


@builtin
def rnorm4d(x, y, z, w):
    """One over the length of the vector ``(x, y, z, w)``."""


@builtin
def round(x):
    """The nearest whole number, away from zero of two."""


@builtin
def rsqrt_rn(x):
    """``1 / sqrt(x)``, rounded to nearest, ties to even."""


@builtin
def sad(x, y, z):
    """``abs(x - y) + z``"""


@builtin
def saturatef(x):
    """``x``, but at least 0 and at most 1; of NaN 0."""


@builtin
def scalbn(x, y):
    """``x`` times 2 to the power of ``y`` (int32)."""


@builtin
def signbit(x):
    """Whether the sign is negative, as int32."""


@builtin
def sinh(x):
    """The hyperbolic sine."""


@builtin
def sinpi(x):
    """The sine of π times ``x``."""


@builtin
def sqrt_rd(x):
    """The square root, rounded down."""


@builtin
def sqrt_ru(x):
    """The square root, rounded up."""


@builtin
def sqrt_rz(x):
    """The square root, rounded toward zero."""


@builtin
def sub_rd(x, y):
    """``x - y``, rounded down."""


@builtin
def sub_rn(x, y):
    """``x - y``, rounded to nearest, ties to even."""


@builtin
def sub_ru(x, y):
    """``x - y``, rounded up."""


@builtin
def sub_rz(x, y):
    """``x - y``, rounded toward zero."""


@builtin
def tan(x):
    """The tangent of an angle in radians."""


@builtin
def tanh(x):
    """The hyperbolic tangent."""


@builtin
def tgamma(x):
    """The gamma function."""


@builtin
def trunc(x):
    """The whole number toward zero."""


@builtin
def uint2double_rn(x):
    """uint32 as float64, rounded to nearest, ties to even."""


@builtin
def uint2float_rd(x):
    """uint32 as float32, rounded down."""


@builtin
def uint2float_rn(x):
    """uint32 as float32, rounded to nearest, ties to even."""


@builtin
def uint2float_ru(x):
    """uint32 as float32, rounded up."""


@builtin
def uint2float_rz(x):
    """uint32 as float32, rounded toward zero."""


@builtin
def uint_as_float(x):
    """The float32 of these bits."""


@builtin
def ull2double_rd(x):
    """uint64 as float64, rounded down."""


@builtin
def ull2double_rn(x):
    """uint64 as float64, rounded to nearest, ties to even."""


@builtin
def ull2double_ru(x):
    """uint64 as float64, rounded up."""


@builtin
def ull2double_rz(x):
    """uint64 as float64, rounded toward zero."""


@builtin
def ull2float_rd(x):
    """uint64 as float32, rounded down."""


@builtin
def ull2float_rn(x):
    """uint64 as float32, rounded to nearest, ties to even."""


@builtin
def ull2float_ru(x):
    """uint64 as float32, rounded up."""


@builtin
def ull2float_rz(x):
    """uint64 as float32, rounded toward zero."""


@builtin
def y0(x):
    """The Bessel function of the second kind of order 0."""


@builtin
def y1(x):
    """The Bessel function of the second kind of order 1."""


@builtin
def yn(x, y):
    """The Bessel function of the second kind of order ``x`` (int32) at ``y``."""


@jit
def sqrt(x):
    """The square root."""
    return math.sqrt_rn(x)


@jit
def isnan(x):
    """Whether ``x`` is NaN, as int1."""
    return x != x


@jit
def isinf(x):
    """Whether ``x`` is an infinity, as int1."""
    return math.abs(x) == float("inf")


@jit
def finitef(x):
    """Whether ``x`` is neither infinite nor NaN, as int1."""
    return math.abs(x) < float("inf")


@jit
def isfinited(x):
    """Whether ``x`` is neither infinite nor NaN, as int1."""
    return math.abs(x) < float("inf")


@jit
def fast_expf(x):
    """e to the power of ``x``, fast: :func:`tl.exp`."""
    return math.exp(x)


@jit
def fast_logf(x):
    """The natural logarithm, fast: :func:`tl.log`."""
    return math.log(x)


@jit
def fast_dividef(x, y):
    """``x / y``, fast."""
    return math.fdiv(core.to_tensor(x), core.to_tensor(y))
