"""What of TLE can be written in the language itself."""

from ..language import core
from ..language._marker import constexpr_function, jit
from ..language.standard import _sum_dtype, _widen_bfloat16, sum
from ._tile import insert_tile


@constexpr_function
def _result_dtype(dtype, wanted):
    return wanted if wanted is not None else _sum_dtype(_widen_bfloat16(dtype), None)


@constexpr_function
def _axis(axis, rank):
    return axis + rank if axis < 0 else axis


@constexpr_function
def _shape_along(axis, rank, n):
    return [n if d == axis else 1 for d in range(rank)]


@constexpr_function
def _extended(shape, axis, times):
    return [n * times if d == axis else n for d, n in enumerate(shape)]


@constexpr_function
def _number_along(axis, rank, k):
    return [k if d == axis else 0 for d in range(rank)]


@jit
def concat_dot_fragments(fragments, dim: core.constexpr):
    """``fragments``, a tuple of tensors of one shape and dtype, as one tensor: they lie beside each other along dimension ``dim``.

    An operand of a product that is loaded or computed in pieces becomes one operand of one product.
    """
    first = fragments[0]
    rank: core.constexpr = len(first.shape)
    core.static_assert(
        -rank <= dim and dim < rank, "the dimension of tle.concat_dot_fragments is out of range"
    )
    line: core.constexpr = _axis(dim, rank)
    count: core.constexpr = len(fragments)
    whole = core.full(_extended(first.shape, line, count), 0, first.dtype)
    for k in core.static_range(count):
        whole = insert_tile(whole, fragments[k], _number_along(line, rank, k))
    return whole


@jit
def _sum_of_two(a, b):
    return a + b


@jit
def _sum_and_before(sum_a, before_a, sum_b, before_b):
    # Of neighbours, each with its sum and what comes before its last element: no difference is taken, so infinities and NaNs stay
    # where they are.
    return sum_a + sum_b, sum_a + before_b


@jit
def cumsum(input, axis=0, reverse=False, dtype: core.constexpr = None):
    """The sum of the elements before each one along ``axis`` (after it with ``reverse``), and the sum of all: ``(exclusive, total)``.

    ``exclusive`` has the shape of ``input``, ``total`` that shape without ``axis``: a scalar for one dimension. Integers below 32 bits
    are summed in 32 bits of the same signedness, bfloat16 in float32, everything else in its own dtype; ``dtype`` is another one. Of
    a scalar it is ``(0, input)``.
    """
    input = core.to_tensor(input)
    input = input.to(_result_dtype(input.dtype, dtype))
    rank: core.constexpr = len(input.shape)
    if rank == 0:
        return core.to_tensor(0).to(input.dtype), input
    else:
        core.static_assert(-rank <= axis and axis < rank, "the axis of tle.cumsum is out of range")
        line: core.constexpr = _axis(axis, rank)
        n: core.constexpr = input.shape[line]
        if input.dtype.is_int():
            # Differences of integers are exact, and scan half as much.
            sums = core.associative_scan(input, line, _sum_of_two, reverse)
            exclusive = sums - input
        else:
            sums, exclusive = core.associative_scan(
                (input, core.full(input.shape, 0, input.dtype)), line, _sum_and_before, reverse
            )
        last: core.constexpr = 0 if reverse else n - 1
        at = core.reshape(core.arange(0, n), _shape_along(line, rank, n))
        total = sum(core.where(at == last, sums, 0), line, dtype=input.dtype)
        return exclusive, total
