"""``vector``: several elements that one thread has at once. Operations of ``arith`` and ``math`` work on vectors element by element.

A vector is a tensor with a first dimension for the threads; its type is :class:`ir.VectorType`.
"""

from ....language import core
from ....language._marker import jit
from . import arith
from . import math as _math
from ._threads import active, is_at, place, shaped, spread


@jit
def load(result, base, indices):
    """The elements of a buffer side by side along its last dimensions, the first one at the indices."""
    return core.load(place(base, indices, False, result[0]), mask=spread(active(), result[0]))


@jit
def store(value_to_store, base, indices):
    """Writes the elements there."""
    core.store(
        place(base, indices, True, value_to_store),
        value_to_store,
        mask=spread(active(), value_to_store),
    )


@jit
def splat(aggregate, input):
    """A vector whose elements are all the same."""
    return spread(input, aggregate[0])


@jit
def broadcast(vector, source):
    """A number, or a vector, again and again along the dimensions in front."""
    return spread(source, vector[0])


@jit
def from_elements(dest, elements):
    """A vector of elements in row-major order."""
    flat = spread(elements[0], (len(elements),))
    for i in core.static_range(1, len(elements)):
        flat = core.where(is_at(flat, i, 0), spread(elements[i], flat), flat)
    return shaped(flat, dest[0])


@jit
def _at(vector, positions):
    found = is_at(vector, positions[0], 0)
    for i in core.static_range(1, len(positions)):
        found = found & is_at(vector, positions[i], i)
    return found


@jit
def _take(vector, positions):
    # As bits: the sum of one number and zeros is exact.
    bits = core.cast(vector, arith._signed(vector.dtype), bitcast=True)
    zeros = core.full([1] * len(vector.shape), 0, bits.dtype)
    found = core.where(_at(vector, positions), bits, zeros)
    for _ in core.static_range(len(positions)):
        found = core.reduce(found, 1, arith.ori)
    return core.cast(found, vector.dtype, bitcast=True)


@jit
def _put(source, dest, positions):
    return core.where(_at(dest, positions), spread(source, dest), dest)


@jit
def _positions(dynamic_position, static_position):
    if len(dynamic_position) > 0:
        return dynamic_position
    else:
        return static_position


@jit
def extract(source, dynamic_position, static_position):
    """One element, or the vector that is left of the last dimensions: its numbers stand in ``dynamic_position`` (values and constants) or else in
    ``static_position``."""
    return _take(source, _positions(dynamic_position, static_position))


@jit
def insert(source, dest, dynamic_position, static_position):
    """``dest`` with another element, or another vector of its last dimensions."""
    return _put(source, dest, _positions(dynamic_position, static_position))


@jit
def extractelement(vector, position):
    """One element."""
    return _take(vector, (position,))


@jit
def insertelement(source, dest, position):
    """``dest`` with another element."""
    return _put(source, dest, (position,))


@jit
def shape_cast(result, source):
    """The same elements in row-major order."""
    return shaped(source, result[0])


@jit
def transpose(vector, permutation: core.constexpr):
    """The dimensions in another order."""
    order: core.constexpr = (0,)
    for i in core.static_range(len(permutation)):
        order: core.constexpr = order + (permutation[i] + 1,)
    return core.permute(vector, order)


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
def _combining(kind: core.constexpr):
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
    return operation


@jit
def reduction(dest, kind: core.constexpr, vector, acc=None):
    """The elements combined, in any order, and with ``acc`` where one is given. ``kind``: ``add``, ``mul``, ``and``, ``or``, ``xor``, or the
    name of a minimum or maximum of ``arith`` (``maximumf``, …)."""
    operation = _combining(kind)
    result = core.reduce(vector, 1, operation)
    if acc is None:
        return result
    else:
        return operation(result, acc)


@jit
def multi_reduction(dest, kind: core.constexpr, source, acc, reduction_dims: core.constexpr):
    """The elements along some dimensions combined, in any order, and with ``acc``."""
    operation = _combining(kind)
    result = source
    for i in core.static_range(len(source.shape) - 1):
        axis: core.constexpr = len(source.shape) - 1 - i
        if axis - 1 in reduction_dims:
            result = core.reduce(result, axis, operation)
    return operation(result, acc)
