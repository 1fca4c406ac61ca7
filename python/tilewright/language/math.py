"""Mathematical functions, elementwise. Also found as ``tl.exp`` and so on.

Unless said otherwise an argument is float32 or float64 and the result has its dtype; ``float16`` and ``bfloat16`` must
be converted first. What each backend rounds is in ``docs/numerics.md``.
"""

from __future__ import annotations

from ._marker import builtin
from .core import member


@builtin
def umulhi(x, y):
    """The high half of the product of two unsigned (or signed, read as unsigned) integers of 32 or 64 bits."""


@member
@builtin
def exp(x):
    """e to the power of ``x``."""


@member
@builtin
def exp2(x):
    """2 to the power of ``x``."""


@member
@builtin
def log(x):
    """The natural logarithm."""


@member
@builtin
def log2(x):
    """The logarithm to base 2."""


@member
@builtin
def cos(x):
    """The cosine of an angle in radians."""


@member
@builtin
def sin(x):
    """The sine of an angle in radians."""


@member
@builtin
def sqrt(x):
    """The square root, fast."""


@member
@builtin
def sqrt_rn(x):
    """The square root, rounded as IEEE 754 says (float32)."""


@member
@builtin
def rsqrt(x):
    """One over the square root, fast."""


@member
@builtin
def abs(x):
    """The absolute value of floats and integers; unsigned ones are returned as they are."""


@builtin
def fdiv(x, y, ieee_rounding=False):
    """``x / y`` of floats, fast."""


@builtin
def div_rn(x, y):
    """``x / y`` of float32, rounded as IEEE 754 says."""


@member
@builtin
def erf(x):
    """The error function."""


@member
@builtin
def floor(x):
    """The largest whole number that is not larger."""


@member
@builtin
def ceil(x):
    """The smallest whole number that is not smaller."""


@builtin
def fma(x, y, z):
    """``x * y + z`` rounded once; any float dtype."""
