"""``vector``: several elements that one thread has at once. Operations of ``arith`` and ``math`` work on vectors element by element.

A vector is a tensor with a row for each thread. Vectors have one dimension; their type is :class:`ir.VectorType`.
"""

from ....language import core
from ....language._marker import jit
from . import arith
from . import math as _math
from ._threads import active, place, spread


@jit
def load(result, base, indices):
    """The elements of a buffer side by side along its last dimension, the first one at the indices."""
    return core.load(place(base, indices, False, result[0]), mask=core.expand_dims(active(), 1))


@jit
def store(value_to_store, base, indices):
    """Writes the elements there."""
    core.store(
        place(base, indices, True, value_to_store.shape[1]),
        value_to_store,
        mask=core.expand_dims(active(), 1),
    )


@jit
def splat(aggregate, input):
    """A vector whose elements are all the same."""
    return spread(input, aggregate[0])


@jit
def broadcast(vector, source):
    """The same."""
    return spread(source, vector[0])


@jit
def _is(vector, position):
    return core.expand_dims(core.arange(0, vector.shape[1]), 0) == spread(position, vector.shape[1])


@jit
def _take(vector, position):
    # As bits: the sum of one number and zeros is exact.
    bits = core.cast(vector, arith._signed(vector.dtype), bitcast=True)
    zeros = core.full([1, 1], 0, bits.dtype)
    found = core.reduce(core.where(_is(vector, position), bits, zeros), 1, arith.ori)
    return core.cast(found, vector.dtype, bitcast=True)


@jit
def _put(source, dest, position):
    return core.where(_is(dest, position), spread(source, dest.shape[1]), dest)


@jit
def _position(dynamic_position, static_position):
    if len(dynamic_position) > 0:
        return dynamic_position[0]
    else:
        return core.full([], static_position[0], core.int32)


@jit
def extract(source, dynamic_position, static_position):
    """One element: its number stands in ``dynamic_position`` (a value) or else in ``static_position``."""
    return _take(source, _position(dynamic_position, static_position))


@jit
def insert(source, dest, dynamic_position, static_position):
    """``dest`` with another element."""
    return _put(source, dest, _position(dynamic_position, static_position))


@jit
def extractelement(vector, position):
    """One element."""
    return _take(vector, position)


@jit
def insertelement(source, dest, position):
    """``dest`` with another element."""
    return _put(source, dest, position)


@jit
def fma(lhs, rhs, acc):
    """``lhs * rhs + acc``, rounded once."""
    return _math.fma(lhs, rhs, acc)


@jit
def _add(a, b):
    return a + b


@jit
def _mul(a, b):
    return a * b


@jit
def reduction(dest, kind: core.constexpr, vector, acc=None):
    """The elements combined, in any order, and with ``acc`` where one is given. ``kind``: ``add``, ``mul``, ``and``, ``or``, ``xor``, or the
    name of a minimum or maximum of ``arith`` (``maximumf``, …)."""
    if kind == "add":
        operation = _add
    elif kind == "mul":
        operation = _mul
    elif kind == "and":
        operation = arith.andi
    elif kind == "or":
        operation = arith.ori
    elif kind == "xor":
        operation = arith.xori
    elif kind == "minsi":
        operation = arith.minsi
    elif kind == "minui":
        operation = arith.minui
    elif kind == "minimumf":
        operation = arith.minimumf
    elif kind == "minnumf":
        operation = arith.minnumf
    elif kind == "maxsi":
        operation = arith.maxsi
    elif kind == "maxui":
        operation = arith.maxui
    elif kind == "maximumf":
        operation = arith.maximumf
    else:
        core.static_assert(kind == "maxnumf", "vector.reduction has no such kind")
        operation = arith.maxnumf
    result = core.reduce(vector, 1, operation)
    if acc is None:
        return result
    else:
        return operation(result, acc)
