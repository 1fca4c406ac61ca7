"""Which elements of a row are its largest, in any order: the selector of sparse attention, rows of up to half a million scores.

A row is shared by the programs of a cluster, each of which keeps its part in registers. A round of the radix select
(``topk.py``) counts digits in each program's shared memory, and behind the cluster's barrier every program adds up what all have
counted. In the end the programs take places of the result from counters of the first one.
"""

import sys
from pathlib import Path

import tilewright as triton
import tilewright.language as tl
from tilewright import tle

sys.path.insert(0, str(Path(__file__).parent))

from topk import count_digits, to_key


@triton.jit
def select_kernel(
    x_ptr,
    indices_ptr,
    ends_ptr,
    stride,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    RADIX: tl.constexpr,
    MESH: tl.constexpr,
):
    """The indices of the ``K`` largest among the first ``ends_ptr[row]`` scores of each row, in no particular order.

    ``x_ptr``: rows of float32, ``stride`` elements apart. ``indices_ptr``: ``K`` int32 a row; -1 where a row has fewer scores. The
    programs of ``MESH``, a mesh of one cluster, take ``BLOCK`` elements each of a row.
    """
    parts: tl.constexpr = MESH.size
    bins: tl.constexpr = 1 << RADIX
    rounds: tl.constexpr = (32 + RADIX - 1) // RADIX
    row = tl.program_id(0) // parts
    part = tle.shard_id(MESH, 0)
    end = tl.load(ends_ptr + row)
    at = part * BLOCK + tl.arange(0, BLOCK)
    inside = at < end
    key = to_key(tl.load(x_ptr + row.to(tl.int64) * stride + at, mask=inside, other=0.0))

    digits = tl.arange(0, bins)
    counts = tle.gpu.alloc([rounds, bins], dtype=tl.int32)
    # Of the first program: places of the result that are taken, by elements that are larger and by those that are equal.
    taken = tle.gpu.alloc([2], dtype=tl.int32, init_value=tl.zeros([2], tl.int32))
    found = tl.zeros([], tl.uint32)
    wanted = tl.minimum(end, K)
    # What this program has: elements that are larger than those of the digits so far, and elements that have them.
    larger_here = tl.zeros([], tl.int32)
    equal_here = tl.zeros([], tl.int32)
    for round in tl.static_range(rounds):
        shift: tl.constexpr = max(32 - RADIX * (round + 1), 0)
        # The last round looks at bits that are known already where RADIX does not divide 32: they are the same in all candidates.
        digit = ((key >> shift) & (bins - 1)).to(tl.int32)
        candidate = inside
        if round > 0:
            known: tl.constexpr = 32 - RADIX * round
            candidate = inside & ((key >> known) == (found >> known))
        own = count_digits(digit, candidate, counts.slot(round))
        count = own
        if parts > 1:
            tle.distributed_barrier(MESH)
            count = tl.zeros([bins], tl.int32)
            for of in tl.static_range(parts):
                count += tl.load(tle.gpu.local_ptr(tle.remote(counts.slot(round), of, MESH), (digits,)))
        larger, _ = tle.cumsum(count, 0, reverse=True)
        here = (larger < wanted) & (larger + count >= wanted)
        which = tl.sum(tl.where(here, digits, 0))
        found |= which.to(tl.uint32) << shift
        wanted -= tl.sum(tl.where(here, larger, 0))
        larger_here += tl.sum(tl.where(digits > which, own, 0))
        equal_here = tl.sum(tl.where(digits == which, own, 0))

    larger_taken = tle.gpu.local_ptr(taken, (0,))
    equal_taken = tle.gpu.local_ptr(taken, (1,))
    if parts > 1:
        larger_taken = tle.remote(larger_taken, 0, MESH)
        equal_taken = tle.remote(equal_taken, 0, MESH)
    places = tle.gpu.alloc([2], dtype=tl.int32)
    tl.store(tle.gpu.local_ptr(places, (0,)), tl.atomic_add(larger_taken, larger_here, sem="relaxed"))
    tl.store(tle.gpu.local_ptr(places, (1,)), tl.atomic_add(equal_taken, equal_here, sem="relaxed"))

    # Equal ones stand behind all that are larger, as many as are wanted still.
    out = indices_ptr + row * K
    none = tl.zeros([BLOCK], tl.int32)
    larger = inside & (key > found)
    place = tl.atomic_add(tle.gpu.local_ptr(places, (none,)), 1, mask=larger, sem="relaxed")
    tl.store(out + place, at, mask=larger)
    equal = inside & (key == found)
    place = tl.atomic_add(tle.gpu.local_ptr(places, (none + 1,)), 1, mask=equal, sem="relaxed")
    tl.store(out + tl.minimum(end, K) - wanted + place, at, mask=equal & (place < wanted))
    if part == 0:
        for first in range(0, K, 1024):
            i = first + tl.arange(0, 1024)
            tl.store(out + i, -1, mask=(i >= end) & (i < K))


def parts_of(n, rows):
    """Programs that share a row of ``n`` scores."""
    fewest = triton.next_power_of_2(triton.cdiv(n, 32768))
    most = max(1, min(16, triton.next_power_of_2(n) // 4096))
    return max(fewest, min(most, triton.next_power_of_2(max(1, 64 // rows))))


def select(x, ends, k, indices, parts=None, radix=11, num_warps=None):
    """Puts the indices of the ``k`` largest of the first ``ends[row]`` scores of each row into ``indices``."""
    rows, n = x.shape
    parts = parts or parts_of(n, rows)
    block = triton.next_power_of_2(triton.cdiv(n, parts))
    mesh = tle.device_mesh({"block_cluster": parts})
    num_warps = num_warps or max(4, min(32, block // 1024))
    select_kernel[(rows,)](x, indices, ends, n, k, block, radix, mesh, num_warps=num_warps)


def check(x, ends, k, indices):
    """Asserts that the indices are of the ``k`` largest, each once (NumPy arrays)."""
    import numpy as np

    for scores, end, got in zip(x, ends, indices):
        of = min(int(end), k)
        assert (got[of:] == -1).all()
        got = got[:of]
        assert len(set(got.tolist())) == of and (got >= 0).all() and (got < end).all()
        np.testing.assert_array_equal(np.sort(scores[got]), np.sort(scores[:end])[int(end) - of :])


def main():
    """Selects among some scores on the CPU and checks what came of it."""
    import numpy as np

    for parts in (1, 4):
        x = np.random.default_rng(0).standard_normal((2, 4000)).astype(np.float32)
        x[1, 1::2] = x[1, 1]
        ends = np.array([4000, 3001], np.int32)
        indices = np.full((2, 256), -2, np.int32)
        select(x, ends, 256, indices, parts)
        check(x, ends, 256, indices)
        print(f"256 of 4000 scores, {parts} programs a row")


if __name__ == "__main__":
    main()
