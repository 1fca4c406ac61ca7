"""More mathematical functions, elementwise, under the names of NVIDIA's libdevice.

Those that the core language has are the same functions. Arguments are float32 or float64.
"""

from __future__ import annotations

from .. import core, math
from .._marker import builtin, jit
from ..math import abs, ceil, cos, div_rn, erf, exp, exp2, floor, fma, log, log2, rsqrt, sin, sqrt, sqrt_rn

__all__ = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "div_rn",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "fast_dividef",
    "fast_expf",
    "fast_logf",
    "finitef",
    "floor",
    "fma",
    "fmod",
    "hypot",
    "isinf",
    "isnan",
    "log",
    "log1p",
    "log2",
    "log10",
    "nearbyint",
    "pow",
    "rint",
    "round",
    "rsqrt",
    "sin",
    "sinh",
    "sqrt",
    "sqrt_rn",
    "tan",
    "tanh",
    "trunc",
]


@builtin
def tanh(x):
    """The hyperbolic tangent."""


@builtin
def tan(x):
    """The tangent of an angle in radians."""


@builtin
def sinh(x):
    """The hyperbolic sine."""


@builtin
def cosh(x):
    """The hyperbolic cosine."""


@builtin
def asin(x):
    """The arc sine."""


@builtin
def acos(x):
    """The arc cosine."""


@builtin
def atan(x):
    """The arc tangent."""


@builtin
def asinh(x):
    """The inverse hyperbolic sine."""


@builtin
def acosh(x):
    """The inverse hyperbolic cosine."""


@builtin
def atanh(x):
    """The inverse hyperbolic tangent."""


@builtin
def cbrt(x):
    """The cube root."""


@builtin
def erfc(x):
    """``1 - erf(x)``, exact where that is small."""


@builtin
def nearbyint(x):
    """The nearest whole number, the even one of two."""


@builtin
def round(x):
    """The nearest whole number, away from zero of two."""


@builtin
def atan2(x, y):
    """The angle of the point ``(y, x)``: ``atan(x / y)`` in the right quadrant."""


@builtin
def pow(x, y):
    """``x`` to the power of ``y``."""


@builtin
def fmod(x, y):
    """The remainder of ``x / y`` with the sign of ``x``."""


@builtin
def hypot(x, y):
    """``sqrt(x * x + y * y)`` without overflow on the way."""


@builtin
def copysign(x, y):
    """``x`` with the sign of ``y``."""


@builtin
def expm1(x):
    """``exp(x) - 1``, exact near 0."""


@builtin
def log1p(x):
    """``log(1 + x)``, exact near 0."""


@builtin
def log10(x):
    """The logarithm to base 10."""


@builtin
def rint(x):
    """The nearest whole number, the even one of two."""


@builtin
def trunc(x):
    """The whole number toward zero."""


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
def fast_expf(x):
    """:func:`exp`"""
    return math.exp(x)


@jit
def fast_logf(x):
    """:func:`log`"""
    return math.log(x)


@jit
def fast_dividef(x, y):
    """``x / y``, fast."""
    return math.fdiv(core.to_tensor(x), core.to_tensor(y))
