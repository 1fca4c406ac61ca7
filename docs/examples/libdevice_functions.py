"""Functions of libdevice."""

import math
from statistics import NormalDist

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright.language.extra import libdevice


@triton.jit
def apply(out_ptr, inputs, FUNCTION: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, FUNCTION(*[tl.load(x_ptr + i) for x_ptr in inputs]))


def of(function, *inputs, dtype=None):
    out = np.empty(inputs[0].shape, dtype or inputs[0].dtype)
    apply[(1,)](out, inputs, function, N=out.size)
    return out


def check(function, wanted, *inputs, rtol=1e-6):
    wanted = np.asarray(wanted)
    found = of(function, *inputs, dtype=wanted.dtype)
    np.testing.assert_allclose(found, wanted, rtol)


# %% libdevice.sin, libdevice.cos, libdevice.tan, libdevice.sinpi, libdevice.cospi
x = np.linspace(0.1, 1.2, 8)
check(libdevice.sin, np.sin(x), x)
check(libdevice.cos, np.cos(x), x)
check(libdevice.tan, np.tan(x), x)
check(libdevice.sinpi, np.sin(np.pi * x), x)
check(libdevice.cospi, np.cos(np.pi * x), x)

# %% libdevice.asin, libdevice.acos, libdevice.atan, libdevice.atan2
x, y = np.linspace(-1, 1, 8), np.linspace(2, -2, 8)
check(libdevice.asin, np.arcsin(x), x)
check(libdevice.acos, np.arccos(x), x)
check(libdevice.atan, np.arctan(x), x)
check(libdevice.atan2, np.arctan2(x, y), x, y)

# %% libdevice.sinh, libdevice.cosh, libdevice.tanh, libdevice.asinh, libdevice.acosh, libdevice.atanh
x = np.linspace(0.1, 0.9, 8)
check(libdevice.sinh, np.sinh(x), x)
check(libdevice.cosh, np.cosh(x), x)
check(libdevice.tanh, np.tanh(x), x)
check(libdevice.asinh, np.arcsinh(x), x)
check(libdevice.acosh, np.arccosh(1 + x), 1 + x)
check(libdevice.atanh, np.arctanh(x), x)

# %% libdevice.exp, libdevice.exp2, libdevice.exp10, libdevice.expm1
x = np.linspace(-2, 2, 8)
check(libdevice.exp, np.exp(x), x)
check(libdevice.exp2, np.exp2(x), x)
check(libdevice.exp10, 10**x, x)
check(libdevice.expm1, np.expm1(x), x)

# %% libdevice.log, libdevice.log2, libdevice.log10, libdevice.log1p, libdevice.logb, libdevice.ilogb
x = np.linspace(0.1, 9, 8)
check(libdevice.log, np.log(x), x)
check(libdevice.log2, np.log2(x), x)
check(libdevice.log10, np.log10(x), x)
check(libdevice.log1p, np.log1p(x), x)
check(libdevice.logb, np.floor(np.log2(x)), x)  # the exponent
check(libdevice.ilogb, np.floor(np.log2(x)).astype(np.int32), x)

# %% libdevice.pow, libdevice.ldexp, libdevice.scalbn
x, n = np.linspace(0.5, 2, 8), np.arange(8, dtype=np.int32)
check(libdevice.pow, x**1.5, x, np.full(8, 1.5))
check(libdevice.pow, x**n, x, n)
check(libdevice.ldexp, x * 2.0**n, x, n)
check(libdevice.scalbn, x * 2.0**n, x, n)

# %% libdevice.sqrt, libdevice.rsqrt, libdevice.cbrt, libdevice.rcbrt
x = np.linspace(1, 9, 8)
check(libdevice.sqrt, np.sqrt(x), x)
check(libdevice.rsqrt, 1 / np.sqrt(x), x)
check(libdevice.cbrt, np.cbrt(x), x)
check(libdevice.rcbrt, 1 / np.cbrt(x), x)

# %% libdevice.hypot, libdevice.rhypot, libdevice.norm3d, libdevice.rnorm3d, libdevice.norm4d, libdevice.rnorm4d
v = np.random.rand(4, 8)
check(libdevice.hypot, np.linalg.norm(v[:2], axis=0), *v[:2])
check(libdevice.rhypot, 1 / np.linalg.norm(v[:2], axis=0), *v[:2])
check(libdevice.norm3d, np.linalg.norm(v[:3], axis=0), *v[:3])
check(libdevice.rnorm3d, 1 / np.linalg.norm(v[:3], axis=0), *v[:3])
check(libdevice.norm4d, np.linalg.norm(v, axis=0), *v)
check(libdevice.rnorm4d, 1 / np.linalg.norm(v, axis=0), *v)

# %% libdevice.erf, libdevice.erfc, libdevice.erfcx, libdevice.erfinv, libdevice.erfcinv
x = np.linspace(-1, 1, 8)
check(libdevice.erf, [math.erf(v) for v in x], x)
check(libdevice.erfc, [math.erfc(v) for v in x], x)
check(libdevice.erfcx, [math.exp(v * v) * math.erfc(v) for v in x], x)
check(libdevice.erfinv, x, of(libdevice.erf, x))
check(libdevice.erfcinv, x, of(libdevice.erfc, x))

# %% libdevice.normcdf, libdevice.normcdfinv
x = np.linspace(-2, 2, 8)
check(libdevice.normcdf, [NormalDist().cdf(v) for v in x], x)
check(libdevice.normcdfinv, x, of(libdevice.normcdf, x))

# %% libdevice.tgamma, libdevice.lgamma
x = np.linspace(0.5, 6, 8)
check(libdevice.tgamma, [math.gamma(v) for v in x], x)
check(libdevice.lgamma, [math.lgamma(v) for v in x], x)

# %% libdevice.j0, libdevice.j1, libdevice.jn, libdevice.y0, libdevice.y1, libdevice.yn
x, two = np.linspace(1, 5, 8), np.full(8, 2, np.int32)
j0, j1 = of(libdevice.j0, x), of(libdevice.j1, x)
y0, y1 = of(libdevice.y0, x), of(libdevice.y1, x)
check(libdevice.jn, 2 / x * j1 - j0, two, x)
check(libdevice.yn, 2 / x * y1 - y0, two, x)
np.testing.assert_allclose(j1 * y0 - j0 * y1, 2 / (np.pi * x))

# %% libdevice.cyl_bessel_i0, libdevice.cyl_bessel_i1
x = np.linspace(0.5, 3, 8)
check(libdevice.cyl_bessel_i0, np.i0(x), x)
slope = (np.i0(x + 1e-5) - np.i0(x - 1e-5)) / 2e-5
check(libdevice.cyl_bessel_i1, slope, x)

# %% libdevice.floor, libdevice.ceil, libdevice.trunc, libdevice.round, libdevice.rint, libdevice.nearbyint
x = np.array([-2.5, -1.2, -0.5, 0.3, 0.5, 1.5, 2.5, 3.7])
check(libdevice.floor, np.floor(x), x)
check(libdevice.ceil, np.ceil(x), x)
check(libdevice.trunc, np.trunc(x), x)
check(libdevice.round, np.trunc(x + np.copysign(0.5, x)), x)  # away from zero
check(libdevice.rint, np.rint(x), x)  # to even
check(libdevice.nearbyint, np.rint(x), x)

# %% libdevice.llrint, libdevice.llround
x = np.array([-2.5, -1.2, -0.5, 0.3, 0.5, 1.5, 2.5, 3.7])
check(libdevice.llrint, np.rint(x).astype(np.int64), x)
check(libdevice.llround, [-3, -1, -1, 0, 1, 2, 3, 4], x)

# %% libdevice.add_rn, libdevice.add_rd, libdevice.add_ru, libdevice.add_rz
x, y = np.random.rand(2, 8).astype(np.float32)
exact = x.astype(np.float64) + y
check(libdevice.add_rn, x + y, x, y, rtol=0)
assert (of(libdevice.add_rd, x, y) <= exact).all()
assert (of(libdevice.add_ru, x, y) >= exact).all()
assert (of(libdevice.add_rz, -x, -y) >= -exact).all()

# %% libdevice.sub_rn, libdevice.sub_rd, libdevice.sub_ru, libdevice.sub_rz
x, y = np.random.rand(2, 8).astype(np.float32)
exact = x.astype(np.float64) - y
check(libdevice.sub_rn, x - y, x, y, rtol=0)
assert (of(libdevice.sub_rd, x, y) <= exact).all()
assert (of(libdevice.sub_ru, x, y) >= exact).all()
assert (np.abs(of(libdevice.sub_rz, x, y)) <= np.abs(exact)).all()

# %% libdevice.mul_rn, libdevice.mul_rd, libdevice.mul_ru, libdevice.mul_rz
x, y = np.random.rand(2, 8).astype(np.float32)
exact = x.astype(np.float64) * y
check(libdevice.mul_rn, x * y, x, y, rtol=0)
assert (of(libdevice.mul_rd, x, y) <= exact).all()
assert (of(libdevice.mul_ru, x, y) >= exact).all()
assert (of(libdevice.mul_rz, -x, y) >= -exact).all()

# %% libdevice.div_rn, libdevice.div_rd, libdevice.div_ru, libdevice.div_rz
x, y = np.random.rand(2, 8).astype(np.float32) + 1
exact = x / y.astype(np.float64)
check(libdevice.div_rn, x / y, x, y, rtol=0)
assert (of(libdevice.div_rd, x, y) <= exact).all()
assert (of(libdevice.div_ru, x, y) >= exact).all()
assert (of(libdevice.div_rz, -x, y) >= -exact).all()

# %% libdevice.fma, libdevice.fma_rn, libdevice.fma_rd, libdevice.fma_ru, libdevice.fma_rz
x, y, z = np.random.rand(3, 8).astype(np.float32)
exact = x.astype(np.float64) * y + z
check(libdevice.fma, exact.astype(np.float32), x, y, z)
check(libdevice.fma_rn, exact.astype(np.float32), x, y, z)
assert (of(libdevice.fma_rd, x, y, z) <= exact).all()
assert (of(libdevice.fma_ru, x, y, z) >= exact).all()
assert (of(libdevice.fma_rz, -x, y, -z) >= -exact).all()

# %% libdevice.sqrt_rn, libdevice.sqrt_rd, libdevice.sqrt_ru, libdevice.sqrt_rz, libdevice.rsqrt_rn
x = np.random.rand(8).astype(np.float32) + 1
exact = np.sqrt(x.astype(np.float64))
check(libdevice.sqrt_rn, np.sqrt(x), x, rtol=0)
check(libdevice.rsqrt_rn, (1 / exact).astype(np.float32), x, rtol=0)
assert (of(libdevice.sqrt_rd, x) <= exact).all()
assert (of(libdevice.sqrt_ru, x) >= exact).all()
assert (of(libdevice.sqrt_rz, x) <= exact).all()

# %% libdevice.rcp_rn, libdevice.rcp_rd, libdevice.rcp_ru, libdevice.rcp_rz, libdevice.rcp64h
x = np.random.rand(8).astype(np.float32) + 1
exact = 1 / x.astype(np.float64)
check(libdevice.rcp_rn, 1 / x, x, rtol=0)
assert (of(libdevice.rcp_rd, x) <= exact).all()
assert (of(libdevice.rcp_ru, x) >= exact).all()
assert (of(libdevice.rcp_rz, -x) >= -exact).all()
check(libdevice.rcp64h, exact, x.astype(np.float64), rtol=2**-19)  # to go on from

# %% libdevice.float2int_rn, libdevice.float2int_rd, libdevice.float2int_ru, libdevice.float2int_rz, libdevice.float2uint_rn, libdevice.float2uint_rd, libdevice.float2uint_ru, libdevice.float2uint_rz
x = np.array([-2.5, -0.5, 0.5, 1.5], np.float32)
check(libdevice.float2int_rn, np.rint(x).astype(np.int32), x)
check(libdevice.float2int_rd, np.floor(x).astype(np.int32), x)
check(libdevice.float2int_ru, np.ceil(x).astype(np.int32), x)
check(libdevice.float2int_rz, np.trunc(x).astype(np.int32), x)
x = np.abs(x)
check(libdevice.float2uint_rn, np.rint(x).astype(np.int32), x)
check(libdevice.float2uint_rd, np.floor(x).astype(np.int32), x)
check(libdevice.float2uint_ru, np.ceil(x).astype(np.int32), x)
check(libdevice.float2uint_rz, np.trunc(x).astype(np.int32), x)

# %% libdevice.float2ll_rn, libdevice.float2ll_rd, libdevice.float2ll_ru, libdevice.float2ll_rz, libdevice.float2ull_rn, libdevice.float2ull_rd, libdevice.float2ull_ru, libdevice.float2ull_rz
x = np.array([-2.5, -0.5, 0.5, 1.5], np.float32)
check(libdevice.float2ll_rn, np.rint(x).astype(np.int64), x)
check(libdevice.float2ll_rd, np.floor(x).astype(np.int64), x)
check(libdevice.float2ll_ru, np.ceil(x).astype(np.int64), x)
check(libdevice.float2ll_rz, np.trunc(x).astype(np.int64), x)
x = np.abs(x)
check(libdevice.float2ull_rn, np.rint(x).astype(np.int64), x)
check(libdevice.float2ull_rd, np.floor(x).astype(np.int64), x)
check(libdevice.float2ull_ru, np.ceil(x).astype(np.int64), x)
check(libdevice.float2ull_rz, np.trunc(x).astype(np.int64), x)

# %% libdevice.double2int_rn, libdevice.double2int_rd, libdevice.double2int_ru, libdevice.double2int_rz, libdevice.double2uint_rn, libdevice.double2uint_rd, libdevice.double2uint_ru, libdevice.double2uint_rz
x = np.array([-2.5, -0.5, 0.5, 1.5])
check(libdevice.double2int_rn, np.rint(x).astype(np.int32), x)
check(libdevice.double2int_rd, np.floor(x).astype(np.int32), x)
check(libdevice.double2int_ru, np.ceil(x).astype(np.int32), x)
check(libdevice.double2int_rz, np.trunc(x).astype(np.int32), x)
x = np.abs(x)
check(libdevice.double2uint_rn, np.rint(x).astype(np.int32), x)
check(libdevice.double2uint_rd, np.floor(x).astype(np.int32), x)
check(libdevice.double2uint_ru, np.ceil(x).astype(np.int32), x)
check(libdevice.double2uint_rz, np.trunc(x).astype(np.int32), x)

# %% libdevice.double2ll_rn, libdevice.double2ll_rd, libdevice.double2ll_ru, libdevice.double2ll_rz, libdevice.double2ull_rn, libdevice.double2ull_rd, libdevice.double2ull_ru, libdevice.double2ull_rz
x = np.array([-2.5, -0.5, 0.5, 1.5])
check(libdevice.double2ll_rn, np.rint(x).astype(np.int64), x)
check(libdevice.double2ll_rd, np.floor(x).astype(np.int64), x)
check(libdevice.double2ll_ru, np.ceil(x).astype(np.int64), x)
check(libdevice.double2ll_rz, np.trunc(x).astype(np.int64), x)
x = np.abs(x)
check(libdevice.double2ull_rn, np.rint(x).astype(np.int64), x)
check(libdevice.double2ull_rd, np.floor(x).astype(np.int64), x)
check(libdevice.double2ull_ru, np.ceil(x).astype(np.int64), x)
check(libdevice.double2ull_rz, np.trunc(x).astype(np.int64), x)

# %% libdevice.double2float_rn, libdevice.double2float_rd, libdevice.double2float_ru, libdevice.double2float_rz
x = np.random.rand(8)
check(libdevice.double2float_rn, x.astype(np.float32), x, rtol=0)
assert (of(libdevice.double2float_rd, x, dtype=np.float32) <= x).all()
assert (of(libdevice.double2float_ru, x, dtype=np.float32) >= x).all()
assert (of(libdevice.double2float_rz, -x, dtype=np.float32) >= -x).all()

# %% libdevice.int2float_rn, libdevice.int2float_rd, libdevice.int2float_ru, libdevice.int2float_rz, libdevice.int2double_rn
n = np.array([2**24 + 1, -(2**24) - 1], np.int32)  # float32 has every other one
check(libdevice.int2float_rn, np.float32([2**24, -(2**24)]), n, rtol=0)
check(libdevice.int2float_rd, np.float32([2**24, -(2**24) - 2]), n, rtol=0)
check(libdevice.int2float_ru, np.float32([2**24 + 2, -(2**24)]), n, rtol=0)
check(libdevice.int2float_rz, np.float32([2**24, -(2**24)]), n, rtol=0)
check(libdevice.int2double_rn, n.astype(np.float64), n, rtol=0)

# %% libdevice.uint2float_rn, libdevice.uint2float_rd, libdevice.uint2float_ru, libdevice.uint2float_rz, libdevice.uint2double_rn
n = np.array([2**24 + 1, 2**24 + 3], np.uint32)
check(libdevice.uint2float_rn, np.float32([2**24, 2**24 + 4]), n, rtol=0)
check(libdevice.uint2float_rd, np.float32([2**24, 2**24 + 2]), n, rtol=0)
check(libdevice.uint2float_ru, np.float32([2**24 + 2, 2**24 + 4]), n, rtol=0)
check(libdevice.uint2float_rz, np.float32([2**24, 2**24 + 2]), n, rtol=0)
check(libdevice.uint2double_rn, n.astype(np.float64), n, rtol=0)

# %% libdevice.ll2float_rn, libdevice.ll2float_rd, libdevice.ll2float_ru, libdevice.ll2float_rz, libdevice.ll2double_rn, libdevice.ll2double_rd, libdevice.ll2double_ru, libdevice.ll2double_rz
n = np.array([2**24 + 1, -(2**24) - 1])
check(libdevice.ll2float_rn, np.float32([2**24, -(2**24)]), n, rtol=0)
check(libdevice.ll2float_rd, np.float32([2**24, -(2**24) - 2]), n, rtol=0)
check(libdevice.ll2float_ru, np.float32([2**24 + 2, -(2**24)]), n, rtol=0)
check(libdevice.ll2float_rz, np.float32([2**24, -(2**24)]), n, rtol=0)
n = np.array([2**53 + 1, -(2**53) - 1])
check(libdevice.ll2double_rn, np.float64([2**53, -(2**53)]), n, rtol=0)
check(libdevice.ll2double_rd, np.float64([2**53, -(2**53) - 2]), n, rtol=0)
check(libdevice.ll2double_ru, np.float64([2**53 + 2, -(2**53)]), n, rtol=0)
check(libdevice.ll2double_rz, np.float64([2**53, -(2**53)]), n, rtol=0)

# %% libdevice.ull2float_rn, libdevice.ull2float_rd, libdevice.ull2float_ru, libdevice.ull2float_rz, libdevice.ull2double_rn, libdevice.ull2double_rd, libdevice.ull2double_ru, libdevice.ull2double_rz
n = np.array([2**24 + 1, 2**24 + 3], np.uint64)
check(libdevice.ull2float_rn, np.float32([2**24, 2**24 + 4]), n, rtol=0)
check(libdevice.ull2float_rd, np.float32([2**24, 2**24 + 2]), n, rtol=0)
check(libdevice.ull2float_ru, np.float32([2**24 + 2, 2**24 + 4]), n, rtol=0)
check(libdevice.ull2float_rz, np.float32([2**24, 2**24 + 2]), n, rtol=0)
n = np.array([2**53 + 1, 2**53 + 3], np.uint64)
check(libdevice.ull2double_rn, np.float64([2**53, 2**53 + 4]), n, rtol=0)
check(libdevice.ull2double_rd, np.float64([2**53, 2**53 + 2]), n, rtol=0)
check(libdevice.ull2double_ru, np.float64([2**53 + 2, 2**53 + 4]), n, rtol=0)
check(libdevice.ull2double_rz, np.float64([2**53, 2**53 + 2]), n, rtol=0)

# %% libdevice.float_as_int, libdevice.float_as_uint, libdevice.int_as_float, libdevice.uint_as_float
x = np.array([1.5, -2, 0, 1e9], np.float32)
check(libdevice.float_as_int, x.view(np.int32), x)
check(libdevice.float_as_uint, x.view(np.int32), x)
check(libdevice.int_as_float, x, x.view(np.int32))
check(libdevice.uint_as_float, x, x.view(np.uint32))

# %% libdevice.double_as_longlong, libdevice.longlong_as_double, libdevice.double2hiint, libdevice.double2loint, libdevice.hiloint2double
x = np.array([1.5, -2, 0.1, 1e9])
check(libdevice.double_as_longlong, x.view(np.int64), x)
check(libdevice.longlong_as_double, x, x.view(np.int64))
low, high = x.view(np.int32).reshape(4, 2).T.copy()
check(libdevice.double2hiint, high, x)
check(libdevice.double2loint, low, x)
check(libdevice.hiloint2double, x, high, low)

# %% libdevice.brev, libdevice.clz, libdevice.ffs, libdevice.popc, libdevice.byte_perm
n = np.array([1, 6, 255, 1 << 20], np.int32)
text = [f"{v:032b}" for v in n]
check(libdevice.brev, np.array([int(t[::-1], 2) for t in text], np.uint32), n)
check(libdevice.clz, np.array([t.index("1") for t in text], np.int32), n)
check(libdevice.ffs, np.array([32 - t.rindex("1") for t in text], np.int32), n)
check(libdevice.popc, np.array([t.count("1") for t in text], np.int32), n)
reverse = np.full(4, 0x0123, np.int32)
check(libdevice.byte_perm, n.byteswap(), n, n * 0, reverse)

# %% libdevice.abs, libdevice.mulhi, libdevice.mul24, libdevice.hadd, libdevice.rhadd, libdevice.sad
x = np.array([7, -9, 2**30, -5], np.int32)
y = np.array([3, 4, 2**30, -8], np.int32)
wide = x.astype(np.int64), y.astype(np.int64)
check(libdevice.abs, np.abs(x), x)
check(libdevice.mulhi, (wide[0] * wide[1] >> 32).astype(np.int32), x, y)
check(libdevice.mul24, x[:2] * y[:2], x[:2], y[:2])
check(libdevice.hadd, (wide[0] + wide[1] >> 1).astype(np.int32), x, y)
check(libdevice.rhadd, (wide[0] + wide[1] + 1 >> 1).astype(np.int32), x, y)
check(libdevice.sad, np.abs(x - y) + 1, x, y, np.ones(4, np.uint32))

# %% libdevice.isnan, libdevice.isinf, libdevice.finitef, libdevice.isfinited, libdevice.signbit
x = np.array([1, -np.inf, np.nan, -0.0], np.float32)
check(libdevice.isnan, np.isnan(x), x)
check(libdevice.isinf, np.isinf(x), x)
check(libdevice.finitef, np.isfinite(x), x)
check(libdevice.isfinited, np.isfinite(x), x.astype(np.float64))
check(libdevice.signbit, np.signbit(x[[0, 1, 3, 3]]), x[[0, 1, 3, 3]])

# %% libdevice.copysign, libdevice.nextafter, libdevice.fdim, libdevice.fmod, libdevice.remainder, libdevice.saturatef
x, y = np.array([-1.5, 7, 0.25, -9]), np.array([2.0, -4, 1, 3.5])
check(libdevice.copysign, np.copysign(x, y), x, y)
check(libdevice.nextafter, np.nextafter(x, y), x, y, rtol=0)
check(libdevice.fdim, np.maximum(x - y, 0), x, y)
check(libdevice.fmod, np.fmod(x, y), x, y)
check(libdevice.remainder, [math.remainder(*v) for v in zip(x, y)], x, y)
x = x.astype(np.float32)
check(libdevice.saturatef, np.clip(x, 0, 1), x)

# %% libdevice.fast_sinf, libdevice.fast_cosf, libdevice.fast_tanf, libdevice.fast_tanhf, libdevice.fast_dividef
x = np.linspace(0.1, 1.5, 8, dtype=np.float32)
check(libdevice.fast_sinf, np.sin(x), x, rtol=1e-5)
check(libdevice.fast_cosf, np.cos(x), x, rtol=1e-4)
check(libdevice.fast_tanf, np.tan(x), x, rtol=1e-4)
check(libdevice.fast_tanhf, np.tanh(x), x, rtol=1e-3)
check(libdevice.fast_dividef, x / (1 + x), x, 1 + x)

# %% libdevice.fast_expf, libdevice.fast_exp10f, libdevice.fast_logf, libdevice.fast_log2f, libdevice.fast_log10f, libdevice.fast_powf
x = np.linspace(1.5, 4, 8, dtype=np.float32)
check(libdevice.fast_expf, np.exp(x), x, rtol=1e-5)
check(libdevice.fast_exp10f, 10**x, x, rtol=1e-5)
check(libdevice.fast_logf, np.log(x), x, rtol=1e-5)
check(libdevice.fast_log2f, np.log2(x), x, rtol=1e-5)
check(libdevice.fast_log10f, np.log10(x), x, rtol=1e-5)
check(libdevice.fast_powf, x**x, x, x, rtol=1e-5)
