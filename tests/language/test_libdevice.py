"""Functions of libdevice, against NumPy in double precision."""

import math

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright.language.extra import libdevice

ERFC = np.vectorize(math.erfc)
EVERYWHERE = np.array(
    [-30.0, -5.5, -1.0, -0.3, -1e-5, 0.0, 1e-5, 0.4, 0.5, 1.0, 1.5, 2.5, 7.25, 30.0, 80.0, 3e4]
)
UNARY = {
    "acos": (np.arccos, np.linspace(-1, 1, 16)),
    "acosh": (np.arccosh, np.geomspace(1, 1e4, 16)),
    "asin": (np.arcsin, np.linspace(-1, 1, 16)),
    "asinh": (np.arcsinh, EVERYWHERE),
    "atan": (np.arctan, EVERYWHERE),
    "atanh": (np.arctanh, np.linspace(-0.99, 0.99, 16)),
    "cbrt": (np.cbrt, EVERYWHERE),
    "cosh": (np.cosh, EVERYWHERE / 400),
    "erfc": (ERFC, np.linspace(-3, 5, 16)),
    "expm1": (np.expm1, EVERYWHERE / 400),
    "log10": (np.log10, np.geomspace(1e-6, 1e6, 16)),
    "log1p": (np.log1p, np.abs(EVERYWHERE)),
    "nearbyint": (np.rint, EVERYWHERE),
    "rint": (np.rint, EVERYWHERE),
    "sinh": (np.sinh, EVERYWHERE / 400),
}
BINARY = {
    "atan2": (np.arctan2, EVERYWHERE),
    "copysign": (np.copysign, EVERYWHERE),
    "hypot": (np.hypot, EVERYWHERE),
    "pow": (np.power, np.abs(EVERYWHERE) / 1e3 + 0.25),
}


@triton.jit
def unary(x, out, F: tl.constexpr):
    at = tl.arange(0, 16)
    tl.store(out + at, F(tl.load(x + at)))


@triton.jit
def binary(x, y, out, F: tl.constexpr):
    at = tl.arange(0, 16)
    tl.store(out + at, F(tl.load(x + at), tl.load(y + at)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_function(device, name, dtype):
    function, x = (UNARY | BINARY)[name]
    x = x.astype(dtype)
    out = device.empty(16, dtype)
    if name in UNARY:
        unary[(1,)](device.array(x), out, getattr(libdevice, name))
        want = function(x.astype(np.float64))
    else:
        y = x[::-1].copy()
        binary[(1,)](device.array(x), device.array(y), out, getattr(libdevice, name))
        want = function(x.astype(np.float64), y.astype(np.float64))
    # The CUDA C++ Programming Guide's bounds are at most 5 ulp, 9 for the fp32 power.
    ulp = np.finfo(dtype).eps
    np.testing.assert_allclose(device.numpy(out), want, rtol=9 * ulp, atol=ulp * 1e-3)
