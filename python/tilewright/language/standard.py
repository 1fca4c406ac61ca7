"""The standard library: what can be written in the language itself."""

from __future__ import annotations

from . import core, math
from ._marker import constexpr_function, jit

# ---------------------------------------------------------------------------------------------------------------------
# Compile-time helpers
# ---------------------------------------------------------------------------------------------------------------------


@constexpr_function
def _log2(n):
    log = 0
    while n > 1:
        n = n // 2
        log = log + 1
    return log


@constexpr_function
def _is_power_of_two(n):
    return n > 0 and n & (n - 1) == 0


@constexpr_function
def _axis(axis, rank):
    return axis + rank if axis < 0 else axis


@constexpr_function
def _sum_dtype(dtype, wanted):
    # Narrow integers are summed in 32 bits of the same signedness; everything else in its own dtype.
    if wanted is not None:
        return wanted
    if dtype.is_int() and dtype.primitive_bitwidth < 32:
        return core.uint32 if dtype.is_int_unsigned() else core.int32
    return dtype


@constexpr_function
def _compare_dtype(dtype):
    # Narrow types are compared in 32 bits.
    if dtype.primitive_bitwidth >= 32:
        return dtype
    return core.float32 if dtype.is_floating() else core.int32


@constexpr_function
def _widen_bfloat16(dtype):
    return core.float32 if dtype.is_bf16() else dtype


# ---------------------------------------------------------------------------------------------------------------------
# Arithmetic and creation
# ---------------------------------------------------------------------------------------------------------------------


@core.member
@jit
def cdiv(x, div):
    """``x / div`` rounded up, for non-negative integers."""
    return (x + (div - 1)) // div


@core.member
@jit
def sigmoid(x):
    """``1 / (1 + exp(-x))``"""
    return 1 / (1 + math.exp(-x))


@core.member
@jit
def softmax(x, dim=None, keep_dims=False, ieee_rounding=False):
    """``exp(x - max(x))`` along ``dim`` (the first by default), divided by its sum. ``keep_dims`` is needed for blocks of
    rank 2 and more whose reduced dimension is not the first."""
    axis: core.constexpr = 0 if dim is None else dim
    weights = math.exp(x - max(x, axis, keep_dims=keep_dims))
    return math.fdiv(weights, sum(weights, axis, keep_dims=keep_dims), ieee_rounding)


@jit
def zeros(shape, dtype):
    """A block of ``shape`` filled with 0 of ``dtype``."""
    return core.full(shape, 0, dtype)


@jit
def zeros_like(input):
    """Zeros in the shape and dtype of ``input``."""
    return core.full(input.shape, 0, input.dtype)


@core.member
@jit
def ravel(x, can_reorder=False):
    """The elements in one dimension, in row-major order unless ``can_reorder``."""
    return core.reshape(x, [x.numel], can_reorder=can_reorder)


@jit
def swizzle2d(i, j, size_i, size_j, size_g):
    """Renumbers the cells ``(i, j)`` of a row-major ``size_i`` by ``size_j`` grid so that consecutive ones walk down
    bands of ``size_g`` rows: neighbours in time then share rows and columns in the L2 cache. Returns ``(i, j)``."""
    cell = i * size_j + j
    band_cells = size_g * size_j
    band = cell // band_cells
    first_row = band * size_g
    # The last band may be lower.
    height = core.minimum(size_i - first_row, size_g)
    cell = cell % band_cells
    return first_row + cell % height, cell // height


# ---------------------------------------------------------------------------------------------------------------------
# Reductions
# ---------------------------------------------------------------------------------------------------------------------


@jit
def _add(a, b):
    return a + b


@jit
def _multiply(a, b):
    return a * b


@jit
def _larger(a, b):
    return core.maximum(a, b)


@jit
def _smaller(a, b):
    return core.minimum(a, b)


@jit
def _xor(a, b):
    return a ^ b


@jit
def _or(a, b):
    return a | b


# NaN is passed over, in whichever order elements meet: an extremum is a number where one of the two is, and equals no NaN.
# To compute it costs what choosing it by a comparison does; but GPUs have no such instruction for 64 bits.


@jit
def _first_larger(a, i, b, j):
    if a.dtype.primitive_bitwidth == 64:
        take = (a > b) | ((a == b) & (i < j)) | (b != b)
        value = core.where(take, a, b)
    else:
        value = core.maximum(a, b)
        take = (a == value) & ((b != value) | (i < j))
    return value, core.where(take, i, j)


@jit
def _any_larger(a, i, b, j):
    if a.dtype.primitive_bitwidth == 64:
        take = (a > b) | (b != b)
        value = core.where(take, a, b)
    else:
        value = core.maximum(a, b)
        take = b != value
    return value, core.where(take, i, j)


@jit
def _first_smaller(a, i, b, j):
    if a.dtype.primitive_bitwidth == 64:
        take = (a < b) | ((a == b) & (i < j)) | (b != b)
        value = core.where(take, a, b)
    else:
        value = core.minimum(a, b)
        take = (a == value) & ((b != value) | (i < j))
    return value, core.where(take, i, j)


@jit
def _any_smaller(a, i, b, j):
    if a.dtype.primitive_bitwidth == 64:
        take = (a < b) | (b != b)
        value = core.where(take, a, b)
    else:
        value = core.minimum(a, b)
        take = b != value
    return value, core.where(take, i, j)


@jit
def _positions(input, axis: core.constexpr):
    # The index along `axis` of each element, in the shape of `input`.
    index = core.arange(0, input.shape[axis])
    rank: core.constexpr = len(input.shape)
    for _ in core.static_range(axis):
        index = core.expand_dims(index, 0)
    for _ in core.static_range(rank - 1 - axis):
        index = core.expand_dims(index, len(index.shape))
    return core.broadcast_to(index, input.shape)


@jit
def _reduce_with_index(input, axis: core.constexpr, combine: core.constexpr, keep_dims: core.constexpr):
    if axis is None:
        flat = core.reshape(input, [input.numel])
        value, index = core.reduce((flat, _positions(flat, 0)), 0, combine)
        if keep_dims:
            value = core.full([1] * len(input.shape), value, value.dtype)
            index = core.full([1] * len(input.shape), index, index.dtype)
    else:
        along: core.constexpr = _axis(axis, len(input.shape))
        value, index = core.reduce((input, _positions(input, along)), along, combine, keep_dims=keep_dims)
    return value, index


@jit
def _combined(parts, combine: core.constexpr):
    # What the warps have put into the slots of a buffer, in their order.
    result = core.load(parts.slot(0))
    for warp in core.static_range(1, core.num_warps()):
        result = combine(result, core.load(parts.slot(warp)))
    return result


@jit
def _across_warps(input, combine: core.constexpr, dst_warps: core.constexpr):
    # What `input` is in all warps, combined: what `reduce` does with `cross_warp`.
    core.static_assert(
        not isinstance(input, core.tuple), "not supported yet: cross_warp with a tuple of blocks"
    )
    block = input if input.shape else core.full([1], input, input.dtype)
    parts = core.alloc([core.num_warps()] + list(block.shape), block.dtype)
    core.store(parts.slot(core.warp_id()), block)
    core.barrier()
    if dst_warps is None:
        block = _combined(parts, combine)
    else:
        here = core.warp_id() == dst_warps[0]
        for i in core.static_range(1, len(dst_warps)):
            here = here | (core.warp_id() == dst_warps[i])
        if here:
            block = _combined(parts, combine)
    # The slots are free for the next time.
    core.barrier()
    return block if input.shape else block.item()


@core.member
@jit
def max(
    input,
    axis=None,
    return_indices=False,
    return_indices_tie_break_left=True,
    keep_dims=False,
    cross_warp=False,
    dst_warps=None,
):
    """The largest element along ``axis`` (of all for ``None``); narrow types come back as float32 or int32.

    NaN is passed over: where all elements are, it is the result.

    With ``return_indices`` a pair with its int32 index along ``axis``; among equals the first one, unless
    ``return_indices_tie_break_left`` is false; that of any NaN where all are. bfloat16 comes back as float32, other dtypes as they are with indices. ``cross_warp`` and
    ``dst_warps`` as in :func:`reduce`.
    """
    input = input.to(_widen_bfloat16(input.dtype))
    if return_indices:
        core.static_assert(not cross_warp, "not supported yet: cross_warp with return_indices")
        if return_indices_tie_break_left:
            return _reduce_with_index(input, axis, _first_larger, keep_dims)
        else:
            return _reduce_with_index(input, axis, _any_larger, keep_dims)
    else:
        comparable = input.to(_compare_dtype(input.dtype))
        return core.reduce(comparable, axis, _larger, keep_dims, cross_warp, dst_warps)


@core.member
@jit
def argmax(input, axis, tie_break_left=True, keep_dims=False):
    """The int32 index along ``axis`` of the largest element; among equals the first one, unless ``tie_break_left`` is false.
    NaN is passed over; where all elements are, it is the index of any."""
    _, index = max(
        input, axis, return_indices=True, return_indices_tie_break_left=tie_break_left, keep_dims=keep_dims
    )
    return index


@core.member
@jit
def min(
    input,
    axis=None,
    return_indices=False,
    return_indices_tie_break_left=True,
    keep_dims=False,
    cross_warp=False,
    dst_warps=None,
):
    """The smallest element along ``axis``; otherwise as :func:`max`."""
    input = input.to(_widen_bfloat16(input.dtype))
    if return_indices:
        core.static_assert(not cross_warp, "not supported yet: cross_warp with return_indices")
        if return_indices_tie_break_left:
            return _reduce_with_index(input, axis, _first_smaller, keep_dims)
        else:
            return _reduce_with_index(input, axis, _any_smaller, keep_dims)
    else:
        comparable = input.to(_compare_dtype(input.dtype))
        return core.reduce(comparable, axis, _smaller, keep_dims, cross_warp, dst_warps)


@core.member
@jit
def argmin(input, axis, tie_break_left=True, keep_dims=False):
    """The int32 index along ``axis`` of the smallest element; among equals the first one, unless ``tie_break_left`` is false.
    NaN is passed over; where all elements are, it is the index of any."""
    _, index = min(
        input, axis, return_indices=True, return_indices_tie_break_left=tie_break_left, keep_dims=keep_dims
    )
    return index


@core.member
@jit
def sum(input, axis=None, keep_dims=False, dtype: core.constexpr = None, cross_warp=False, dst_warps=None):
    """The sum along ``axis`` (of all elements for ``None``), computed in ``dtype``: by default the block's own, but 32 bits
    of the same signedness for narrower integers. ``cross_warp`` and ``dst_warps`` as in :func:`reduce`."""
    wide = input.to(_sum_dtype(input.dtype, dtype))
    return core.reduce(wide, axis, _add, keep_dims, cross_warp, dst_warps)


@core.member
@jit
def xor_sum(input, axis=None, keep_dims=False):
    """The exclusive or of the integers along ``axis``."""
    core.static_assert(input.dtype.is_int(), "xor_sum needs integers")
    return core.reduce(input, axis, _xor, keep_dims=keep_dims)


@core.member
@jit
def reduce_or(input, axis=None, keep_dims=False):
    """The inclusive or of the integers along ``axis``."""
    core.static_assert(input.dtype.is_int(), "reduce_or needs integers")
    return core.reduce(input, axis, _or, keep_dims=keep_dims)


# ---------------------------------------------------------------------------------------------------------------------
# Scans
# ---------------------------------------------------------------------------------------------------------------------


@core.member
@jit
def cumsum(input, axis=0, reverse=False, dtype: core.constexpr = None):
    """Sums of the elements up to each one along ``axis`` (from it on with ``reverse``). Dtypes as in :func:`sum`, but
    bfloat16 comes back as float32."""
    input = input.to(_widen_bfloat16(input.dtype))
    return core.associative_scan(input.to(_sum_dtype(input.dtype, dtype)), axis, _add, reverse)


@core.member
@jit
def cumprod(input, axis=0, reverse=False):
    """Products of the elements up to each one along ``axis`` (from it on with ``reverse``)."""
    input = input.to(_widen_bfloat16(input.dtype))
    return core.associative_scan(input, axis, _multiply, reverse)


# ---------------------------------------------------------------------------------------------------------------------
# Sorting networks (Batcher 1968): the block is seen as a hypercube with an edge of 2 for each bit of the index. Its elements are integers
# meanwhile: these have one order, so that of two neighbours one result is the smaller and one the larger, whatever they are.
# ---------------------------------------------------------------------------------------------------------------------


@constexpr_function
def _key_dtype(dtype):
    # Narrow numbers are put in order in 32 bits.
    width = dtype.primitive_bitwidth if dtype.primitive_bitwidth > 32 else 32
    return core.get_int_dtype(width, not dtype.is_int_unsigned())


@jit
def _turned(bits, width: core.constexpr):
    # The bits of a float of this width, sign and magnitude, as a number of the same order, and back again.
    wide: core.constexpr = bits.dtype.primitive_bitwidth
    return bits ^ ((bits >> (wide - 1)) & ((1 << (width - 1)) - 1))


@jit
def _to_keys(x):
    width: core.constexpr = x.dtype.primitive_bitwidth
    if x.dtype.is_floating():
        bits = x.to(core.get_int_dtype(width, True), bitcast=True)
        if width >= 16:  # NaN that arithmetic makes has a sign on some machines and none on others
            bits = core.where(x == x, bits, bits & ((1 << (width - 1)) - 1))
        return _turned(bits.to(_key_dtype(x.dtype)), width)
    else:
        return x.to(_key_dtype(x.dtype))


@jit
def _from_keys(keys, dtype: core.constexpr):
    width: core.constexpr = dtype.primitive_bitwidth
    if dtype.is_floating():
        return _turned(keys, width).to(core.get_int_dtype(width, True)).to(dtype, bitcast=True)
    else:
        return keys.to(dtype)


@jit
def _cube(x):
    # The last dimension as a hypercube; what stands before it, if anything does, is another dimension, of any extent.
    rows: core.constexpr = x.numel // x.shape[len(x.shape) - 1]
    bits: core.constexpr = _log2(x.shape[len(x.shape) - 1])
    return core.reshape(x, [2] * bits if rows == 1 and bits > 0 else [rows] + [2] * bits)


@jit
def _bit(rank: core.constexpr, bit: core.constexpr):
    # Whether bit number `bit` of the index is set, shaped to broadcast against a hypercube of `rank` dimensions.
    return core.reshape(core.arange(0, 2) == 1, [1] * (rank - 1 - bit) + [2] + [1] * bit)


@jit
def _partner(x, axis: core.constexpr):
    # Each element's neighbour along a dimension of extent 2, by its bits: a ^ b ^ a = b.
    bits = x.to(core.get_int_dtype(x.dtype.primitive_bitwidth, True), bitcast=True)
    return (bits ^ xor_sum(bits, axis, True)).to(x.dtype, bitcast=True)


@jit
def _exchange(x, descending, bit: core.constexpr):
    rank: core.constexpr = len(x.shape)
    other = _partner(x, rank - 1 - bit)
    return core.where(descending ^ _bit(rank, bit), core.maximum(x, other), core.minimum(x, other))


@jit
def _merge_step(x, stage: core.constexpr, descending):
    for i in core.static_range(stage):
        x = _exchange(x, descending, stage - 1 - i)
    return x


@jit
def _sort(x, k: core.constexpr, dim: core.constexpr, descending: core.constexpr):
    last: core.constexpr = len(x.shape) - 1
    core.static_assert(last >= 0, "a scalar has no dimension to sort")
    core.static_assert(dim is None or dim == last or dim == -1, "only the last dimension can be sorted")
    core.static_assert(
        _is_power_of_two(x.shape[last]) and _is_power_of_two(k),
        "sorting needs an extent that is a power of two",
    )
    steps: core.constexpr = _log2(x.shape[last])
    kept: core.constexpr = _log2(k)
    cube = _cube(_to_keys(x))
    rank: core.constexpr = len(cube.shape)
    # Runs of 2^i elements, alternately rising and falling.
    for i in core.static_range(1, kept + 1):
        if i < steps:
            cube = _merge_step(cube, i, _bit(rank, i))
        else:
            cube = _merge_step(cube, i, descending != 0)
    # For top-k: of two neighbouring runs of k the better k remain, element against element.
    for i in core.static_range(kept + 1, steps + 1):
        if descending:
            cube = max(cube, axis=len(cube.shape) - 1 - kept)
        else:
            cube = min(cube, axis=len(cube.shape) - 1 - kept)
        if i < steps:
            cube = _merge_step(cube, kept, _bit(len(cube.shape), kept))
        else:
            cube = _merge_step(cube, kept, descending != 0)
    return _from_keys(core.reshape(cube, x.shape[:-1] + [k]), x.dtype)


@core.member
@jit
def sort(x, dim: core.constexpr = None, descending: core.constexpr = False):
    """The elements sorted along the last dimension, whose extent must be a power of two. -0 stands before 0, and NaN behind infinity,
    whatever its sign, which it loses; those of 8 bits have the order of their bits."""
    return _sort(x, x.shape[-1], dim, descending)


@jit
def topk(x, k: core.constexpr, dim: core.constexpr = None):
    """The ``k`` largest elements along the last dimension, largest first. Its extent and ``k`` must be powers of two."""
    return _sort(x, k, dim, True)


@jit
def bitonic_merge(x, dim: core.constexpr = None, descending: core.constexpr = False):
    """Sorts along the last dimension a block that first rises and then falls there; its extent must be a power of two."""
    last: core.constexpr = len(x.shape) - 1
    core.static_assert(last >= 0, "a scalar has no dimension to merge")
    core.static_assert(dim is None or dim == last or dim == -1, "only the last dimension can be merged")
    core.static_assert(
        _is_power_of_two(x.shape[last]), "bitonic_merge needs an extent that is a power of two"
    )
    cube = _merge_step(_cube(_to_keys(x)), _log2(x.shape[last]), descending != 0)
    return _from_keys(core.reshape(cube, x.shape), x.dtype)


@core.member
@jit
def flip(x, dim=None):
    """The elements in reverse order along ``dim`` (the last by default), whose extent must be a power of two."""
    core.static_assert(len(x.shape) > 0, "a scalar has no dimension to flip")
    axis: core.constexpr = len(x.shape) - 1 if dim is None else _axis(dim, len(x.shape))
    core.static_assert(_is_power_of_two(x.shape[axis]), "flip needs an extent that is a power of two")
    bits: core.constexpr = _log2(x.shape[axis])
    cube = core.reshape(x, x.shape[:axis] + [2] * bits + x.shape[axis + 1 :])
    for i in core.static_range(bits):
        cube = _partner(cube, axis + i)
    return core.reshape(cube, x.shape)


@jit
def interleave(a, b):
    """The elements of two blocks alternately along the last dimension, which doubles."""
    pairs = core.join(a, b)
    if len(pairs.shape) == 1:
        return pairs
    else:
        return core.reshape(pairs, pairs.shape[:-2] + [2 * pairs.shape[-2]])
