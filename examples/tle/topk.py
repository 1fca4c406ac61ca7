"""The largest elements of each row, in order: one program a row, a radix select with counts in shared memory.

Floats become unsigned keys of the same order. Counting the keys by their leading bits, in a buffer that all threads add to, tells
which bits the ``K``-th largest has; a further round goes on among those that have them. When all bits are known, those elements and the
larger ones take places of a small buffer, in any order, and each finds its rank by looking at all others there: no row is ever sorted.
"""

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def to_key(x):
    """Unsigned numbers in the floats' order, in as many bits; NaN counts as the largest, as in ``torch.topk``."""
    bits: tl.constexpr = x.dtype.primitive_bitwidth
    if bits == 16:
        i = x.to(tl.int16, bitcast=True)
        key = (i ^ ((i >> 15) | -32768)).to(tl.uint16, bitcast=True).to(tl.uint32)
        return tl.where(x == x, key, 0xFFFF)
    else:
        i = x.to(tl.int32, bitcast=True)
        key = (i ^ ((i >> 31) | -2147483648)).to(tl.uint32, bitcast=True)
        return tl.where(x == x, key, 0xFFFFFFFF)


@triton.jit
def count_digits(digit, candidate, counts):
    """How many candidates have each digit, counted in the buffer ``counts``."""
    counts.store(tl.zeros([counts.shape[0]], tl.int32))
    tl.atomic_add(tle.gpu.local_ptr(counts, (digit,)), 1, mask=candidate, sem="relaxed")
    return counts.load()


@triton.jit
def ranks_of(numbers, begin, held, PLACES: tl.constexpr):
    """``held`` numbers in a buffer, which all differ, and how many of them are larger than each; of at most ``PLACES``."""
    places = tl.arange(0, PLACES)
    mine = tl.load(tle.gpu.local_ptr(numbers, (begin + places,)), mask=places < held, other=0)
    rank = tl.zeros(places.shape, tl.int32)
    CHUNK: tl.constexpr = 16
    for first in range(0, held, CHUNK):
        other = first + tl.arange(0, CHUNK)
        others = tl.load(tle.gpu.local_ptr(numbers, (begin + other,)), mask=other < held, other=0)
        rank += tl.sum((others[None, :] > mine[:, None]).to(tl.int32), 1)
    return mine, rank


@triton.jit
def topk_kernel(
    x_ptr,
    values_ptr,
    indices_ptr,
    stride,
    N: tl.constexpr,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    RADIX: tl.constexpr,
    PLACES: tl.constexpr,
):
    """The ``K`` largest of each row of ``N`` floats, and where they stand.

    ``x_ptr``: rows, ``stride`` elements apart. ``values_ptr``, ``indices_ptr`` (int32): ``K`` a row, the largest first; of equal
    elements those that stand first come first. ``BLOCK`` is at least ``N``, ``PLACES`` at least ``K``; ``RADIX`` bits are found a round.
    """
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < N
    x = tl.load(x_ptr + row * stride + at, mask=inside, other=0.0)
    bits: tl.constexpr = x.dtype.primitive_bitwidth
    key = to_key(x)

    counts = tle.gpu.alloc([1 << RADIX], dtype=tl.int32)
    found = tl.zeros([], tl.uint32)
    wanted = tl.full([], K, tl.int32)
    equal = tl.full([], N, tl.int32)
    for round in tl.static_range((bits + RADIX - 1) // RADIX):
        shift: tl.constexpr = max(bits - RADIX * (round + 1), 0)
        digit = ((key >> shift) & ((1 << RADIX) - 1)).to(tl.int32)
        candidate = inside
        if round > 0:
            known: tl.constexpr = bits - RADIX * round
            candidate = inside & ((key >> known) == (found >> known))
        count = count_digits(digit, candidate, counts)
        larger, _ = tle.cumsum(count, 0, reverse=True)
        # The digit with which the number of elements reaches what is wanted.
        here = (larger < wanted) & (larger + count >= wanted)
        found |= tl.sum(tl.where(here, tl.arange(0, 1 << RADIX), 0)).to(tl.uint32) << shift
        equal = tl.sum(tl.where(here, count, 0))
        wanted -= tl.sum(tl.where(here, larger, 0))

    # All that are larger, and those that are equal: of these, if they are too many, as many as are wanted still, those in front.
    kept = inside & (key >= found)
    held = K - wanted + equal
    if held > PLACES:
        before, _ = tle.cumsum((inside & (key == found)).to(tl.int32))
        kept &= (key > found) | (before < wanted)
        held = tl.full([], K, tl.int32)
    # Larger elements have larger numbers, and of equal ones those in front: all differ.
    number = (key.to(tl.uint64) << 32) | (0x7FFFFFFF - at).to(tl.uint64)
    numbers = tle.gpu.alloc([PLACES], dtype=tl.uint64)
    next_place = tle.gpu.alloc([1], dtype=tl.int32, init_value=tl.zeros([1], tl.int32))
    place = tl.atomic_add(
        tle.gpu.local_ptr(next_place, (tl.zeros([BLOCK], tl.int32),)), 1, mask=kept, sem="relaxed"
    )
    tl.store(tle.gpu.local_ptr(numbers, (place,)), number, mask=kept)

    mine, rank = ranks_of(numbers, 0, held, PLACES)
    index = 0x7FFFFFFF - (mine & 0x7FFFFFFF).to(tl.int32)
    there = (tl.arange(0, PLACES) < held) & (rank < K)
    value = tl.load(x_ptr + row * stride + index, mask=there)
    tl.store(values_ptr + row * K + rank, value, mask=there)
    tl.store(indices_ptr + row * K + rank, index, mask=there)


def topk(x, k, values, indices, radix=None, num_warps=None):
    """Puts the ``k`` largest of each row of ``x`` into ``values`` and their indices into ``indices`` (int32)."""
    m, n = x.shape
    block = triton.next_power_of_2(n)
    places = max(32, triton.next_power_of_2(k + k // 4))
    topk_kernel[(m,)](
        x,
        values,
        indices,
        n,
        n,
        k,
        block,
        radix or 8,
        places,
        num_warps=num_warps or max(4, min(32, block // 512)),
    )


def main():
    """Takes the largest of some rows on the CPU and compares them with NumPy's."""
    import numpy as np

    for dtype, n, k in ((np.float16, 1000, 32), (np.float32, 300, 7)):
        x = np.random.default_rng(0).standard_normal((3, n)).astype(dtype)
        x[1, ::3] = x[1, 0]
        values, indices = np.empty((3, k), dtype), np.empty((3, k), np.int32)
        topk(x, k, values, indices)
        want = np.argsort(-x.astype(np.float64), axis=1, kind="stable")[:, :k]
        np.testing.assert_array_equal(indices, want)
        np.testing.assert_array_equal(values, np.take_along_axis(x, want, 1))
        print(f"the {k} largest of rows of {n} {np.dtype(dtype)}")


if __name__ == "__main__":
    main()
