"""``math``: functions of floats, as the language has them."""

from ....language import math as _math
from ....language._marker import jit
from ....language.extra import libdevice as _libdevice


@jit
def exp(operand):
    return _math.exp(operand)


@jit
def exp2(operand):
    return _math.exp2(operand)


@jit
def log(operand):
    return _math.log(operand)


@jit
def log2(operand):
    return _math.log2(operand)


@jit
def sqrt(operand):
    return _math.sqrt(operand)


@jit
def rsqrt(operand):
    return _math.rsqrt(operand)


@jit
def sin(operand):
    return _math.sin(operand)


@jit
def cos(operand):
    return _math.cos(operand)


@jit
def erf(operand):
    return _math.erf(operand)


@jit
def tanh(operand):
    return _libdevice.tanh(operand)


@jit
def floor(operand):
    return _math.floor(operand)


@jit
def ceil(operand):
    return _math.ceil(operand)


@jit
def absf(operand):
    return _math.abs(operand)


@jit
def absi(operand):
    return _math.abs(operand)


@jit
def fma(a, b, c):
    return _math.fma(a, b, c)


@jit
def powf(lhs, rhs):
    return _libdevice.pow(lhs, rhs)
