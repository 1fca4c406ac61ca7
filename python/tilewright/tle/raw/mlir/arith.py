"""``arith``: numbers. Integers have no sign; operations say which one they mean."""

from ....language import core
from ....language._marker import constexpr_function, jit
from ....language.extra.libdevice import fmod


@constexpr_function
def _unsigned(dtype):
    if dtype.primitive_bitwidth == 1:
        return core.int1
    elif dtype.primitive_bitwidth == 8:
        return core.uint8
    elif dtype.primitive_bitwidth == 16:
        return core.uint16
    elif dtype.primitive_bitwidth == 32:
        return core.uint32
    else:
        return core.uint64


@constexpr_function
def _signed(dtype):
    if dtype.primitive_bitwidth == 1:
        return core.int1
    elif dtype.primitive_bitwidth == 8:
        return core.int8
    elif dtype.primitive_bitwidth == 16:
        return core.int16
    elif dtype.primitive_bitwidth == 32:
        return core.int32
    else:
        return core.int64


@jit
def _u(x):
    return core.cast(x, _unsigned(x.dtype))


@jit
def _s(x):
    return core.cast(x, _signed(x.dtype))


@jit
def _wide(x):
    # As a number with a sign, which a truth has as well: it is -1.
    if x.dtype == core.int1:
        return -core.cast(x, core.int8)
    else:
        return _s(x)


@jit
def _not_zero(x):
    return core.cast(x != 0, x.dtype)


@jit
def constant(result, value):
    """A number of the type ``result``."""
    return core.full([], value, result)


@jit
def ConstantOp(result, value):
    """:func:`constant` by its class."""
    return core.full([], value, result)


@jit
def addi(lhs, rhs):
    return lhs + rhs


@jit
def subi(lhs, rhs):
    return lhs - rhs


@jit
def muli(lhs, rhs):
    return lhs * rhs


@jit
def divsi(lhs, rhs):
    return _s(lhs) // _s(rhs)


@jit
def divui(lhs, rhs):
    return _s(_u(lhs) // _u(rhs))


@jit
def remsi(lhs, rhs):
    return _s(lhs) % _s(rhs)


@jit
def remui(lhs, rhs):
    return _s(_u(lhs) % _u(rhs))


@jit
def ceildivui(lhs, rhs):
    return _s(_u(lhs) // _u(rhs) + _not_zero(_u(lhs) % _u(rhs)))


@jit
def ceildivsi(lhs, rhs):
    a, b = _s(lhs), _s(rhs)
    return a // b + core.cast((a % b != 0) & ((a < 0) == (b < 0)), a.dtype)


@jit
def floordivsi(lhs, rhs):
    a, b = _s(lhs), _s(rhs)
    return a // b - core.cast((a % b != 0) & ((a < 0) != (b < 0)), a.dtype)


@jit
def andi(lhs, rhs):
    return lhs & rhs


@jit
def ori(lhs, rhs):
    return lhs | rhs


@jit
def xori(lhs, rhs):
    return lhs ^ rhs


@jit
def shli(lhs, rhs):
    return lhs << rhs


@jit
def shrsi(lhs, rhs):
    return _s(lhs) >> rhs


@jit
def shrui(lhs, rhs):
    return _s(_u(lhs) >> _u(rhs))


@jit
def maxsi(lhs, rhs):
    return core.cast(core.maximum(_wide(lhs), _wide(rhs)), _signed(lhs.dtype))


@jit
def minsi(lhs, rhs):
    return core.cast(core.minimum(_wide(lhs), _wide(rhs)), _signed(lhs.dtype))


@jit
def maxui(lhs, rhs):
    return _s(core.maximum(_u(lhs), _u(rhs)))


@jit
def minui(lhs, rhs):
    return _s(core.minimum(_u(lhs), _u(rhs)))


@jit
def cmpi(predicate: core.constexpr, lhs, rhs):
    """Compares integers: ``eq``, ``ne``, ``slt`` … ``uge``, as a string or by MLIR's numbers."""
    core.static_assert(
        predicate in ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
        or predicate in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9),
        "arith.cmpi has no such predicate",
    )
    if predicate in ("eq", 0):
        return lhs == rhs
    elif predicate in ("ne", 1):
        return lhs != rhs
    elif predicate in ("slt", 2):
        return _wide(lhs) < _wide(rhs)
    elif predicate in ("sle", 3):
        return _wide(lhs) <= _wide(rhs)
    elif predicate in ("sgt", 4):
        return _wide(lhs) > _wide(rhs)
    elif predicate in ("sge", 5):
        return _wide(lhs) >= _wide(rhs)
    elif predicate in ("ult", 6):
        return _u(lhs) < _u(rhs)
    elif predicate in ("ule", 7):
        return _u(lhs) <= _u(rhs)
    elif predicate in ("ugt", 8):
        return _u(lhs) > _u(rhs)
    else:
        return _u(lhs) >= _u(rhs)


@jit
def addf(lhs, rhs):
    return lhs + rhs


@jit
def subf(lhs, rhs):
    return lhs - rhs


@jit
def mulf(lhs, rhs):
    return lhs * rhs


@jit
def divf(lhs, rhs):
    return lhs / rhs


@jit
def remf(lhs, rhs):
    return fmod(lhs, rhs)


@jit
def negf(operand):
    return -operand


@jit
def maximumf(lhs, rhs):
    return core.maximum(lhs, rhs, core.PropagateNan.ALL)


@jit
def minimumf(lhs, rhs):
    return core.minimum(lhs, rhs, core.PropagateNan.ALL)


@jit
def maxnumf(lhs, rhs):
    return core.maximum(lhs, rhs)


@jit
def minnumf(lhs, rhs):
    return core.minimum(lhs, rhs)


@jit
def cmpf(predicate: core.constexpr, lhs, rhs):
    """Compares floats: ``oeq``, ``olt`` … ``une``, as a string; an ordered comparison with NaN is false, an unordered one true."""
    unordered = (lhs != lhs) | (rhs != rhs)
    core.static_assert(
        predicate
        in ("oeq", "one", "olt", "ole", "ogt", "oge", "ord", "ueq", "une", "ult", "ule", "ugt", "uge", "uno"),
        "arith.cmpf has no such predicate",
    )
    if predicate == "oeq":
        return lhs == rhs
    elif predicate == "one":
        return (lhs != rhs) & (unordered == 0)
    elif predicate == "olt":
        return lhs < rhs
    elif predicate == "ole":
        return lhs <= rhs
    elif predicate == "ogt":
        return lhs > rhs
    elif predicate == "oge":
        return lhs >= rhs
    elif predicate == "ord":
        return unordered == 0
    elif predicate == "ueq":
        return (lhs == rhs) | unordered
    elif predicate == "une":
        return lhs != rhs
    elif predicate == "ult":
        return (lhs < rhs) | unordered
    elif predicate == "ule":
        return (lhs <= rhs) | unordered
    elif predicate == "ugt":
        return (lhs > rhs) | unordered
    elif predicate == "uge":
        return (lhs >= rhs) | unordered
    else:
        return unordered


@jit
def select(condition, true_value, false_value):
    return core.where(condition, true_value, false_value)


@jit
def extsi(out, in_):
    return core.cast(_wide(in_), out)


@jit
def extui(out, in_):
    return core.cast(_u(in_), out)


@jit
def trunci(out, in_):
    # A truth is the lowest bit.
    if out == core.int1:
        return core.cast(in_ & 1, out)
    else:
        return core.cast(in_, out)


@jit
def extf(out, in_):
    return core.cast(in_, out)


@jit
def truncf(out, in_):
    return core.cast(in_, out)


@jit
def sitofp(out, in_):
    return core.cast(_wide(in_), out)


@jit
def uitofp(out, in_):
    return core.cast(_u(in_), out)


@jit
def fptosi(out, in_):
    # To a truth, too, a number is rounded towards zero.
    if out == core.int1:
        return trunci(out, core.cast(in_, core.int32))
    else:
        return core.cast(in_, out)


@jit
def fptoui(out, in_):
    if out == core.int1:
        return trunci(out, core.cast(in_, core.int32))
    else:
        return _s(core.cast(in_, _unsigned(out)))


@jit
def index_cast(out, in_):
    if out == core.int1:
        return trunci(out, in_)
    else:
        return core.cast(_wide(in_), out)


@jit
def index_castui(out, in_):
    if out == core.int1:
        return trunci(out, in_)
    else:
        return core.cast(_u(in_), out)


@jit
def bitcast(out, in_):
    return core.cast(in_, out, bitcast=True)
