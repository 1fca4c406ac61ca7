"""Which elements of a row are its largest, in any order: the selector of sparse attention, rows of up to half a million scores.

A row is shared by the programs of a cluster, each of which keeps its part in registers. A round of the radix select
(``topk.py``) counts digits in each program's shared memory; the counts go through global memory, and behind the cluster's
barrier every program knows those of all. From them follows, too, where each program's elements go in the result.
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
    counts_ptr,
    stride,
    K: tl.constexpr,
    BLOCK: tl.constexpr,
    RADIX: tl.constexpr,
    MESH: tl.constexpr,
):
    """The indices of the ``K`` largest among the first ``ends_ptr[row]`` scores of each row, in no particular order.

    ``x_ptr``: rows of float32, ``stride`` elements apart. ``indices_ptr``: ``K`` int32 a row; -1 where a row has fewer scores.
    ``counts_ptr``: room for ``cdiv(32, RADIX) << RADIX`` int32 per program. The programs of ``MESH``, a mesh of one cluster, take
    ``BLOCK`` elements each of a row.
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
    number = tl.arange(0, parts)
    counts = tle.gpu.alloc([bins], dtype=tl.int32)
    found = tl.zeros([], tl.uint32)
    wanted = tl.minimum(end, K)
    candidate = inside
    # What each program has: elements that are larger than those of the digits so far, and elements that have them.
    larger_of = tl.zeros([parts], tl.int32)
    equal_of = tl.zeros([parts], tl.int32)
    for round in tl.static_range(rounds):
        shift: tl.constexpr = max(32 - RADIX * (round + 1), 0)
        # The last round looks at bits that are known already where RADIX does not divide 32: they are the same in all candidates.
        digit = ((key >> shift) & (bins - 1)).to(tl.int32)
        count = count_digits(digit, candidate, counts)
        if parts > 1:
            of_row = counts_ptr + (row * rounds + round) * parts * bins
            tl.store(of_row + part * bins + digits, count)
            tle.distributed_barrier(MESH)
            of_parts = tl.load(of_row + number[:, None] * bins + digits[None, :])
            count = tl.sum(of_parts, 0)
        else:
            of_parts = count[None, :]
        larger, _ = tle.cumsum(count, 0, reverse=True)
        here = (larger < wanted) & (larger + count >= wanted)
        which = tl.sum(tl.where(here, digits, 0))
        wanted -= tl.sum(tl.where(here, larger, 0))
        found |= which.to(tl.uint32) << shift
        candidate = candidate & (digit == which)
        larger_of += tl.sum(tl.where(digits[None, :] > which, of_parts, 0), 1)
        equal_of = tl.sum(tl.where(digits[None, :] == which, of_parts, 0), 1)

    # Elements of the programs before this one stand in front; equal ones behind all that are larger.
    larger_before, larger_all = tle.cumsum(larger_of)
    equal_before, _ = tle.cumsum(equal_of)
    larger_begin = tl.sum(tl.where(number == part, larger_before, 0))
    equal_begin = tl.sum(tl.where(number == part, equal_before, 0))
    larger = inside & (key > found)
    # Both counts by one scan: neither exceeds BLOCK.
    places, _ = tle.cumsum(larger.to(tl.int32) + (candidate.to(tl.int32) << 16))
    out = indices_ptr + row * K
    tl.store(out + larger_begin + (places & 0xFFFF), at, mask=larger)
    place = equal_begin + (places >> 16)
    tl.store(out + larger_all + place, at, mask=candidate & (place < wanted))
    if part == 0:
        for first in range(0, K, 1024):
            i = first + tl.arange(0, 1024)
            tl.store(out + i, -1, mask=(i >= end) & (i < K))


def parts_of(n, rows):
    """Programs that share a row of ``n`` scores."""
    fewest = triton.next_power_of_2(triton.cdiv(n, 32768))
    most = max(1, min(16, triton.next_power_of_2(n) // 4096))
    return max(fewest, min(most, triton.next_power_of_2(max(1, 64 // rows))))


def select(x, ends, k, indices, empty, parts=None, radix=11, num_warps=None):
    """Puts the indices of the ``k`` largest of the first ``ends[row]`` scores of each row into ``indices``; ``empty(size)`` makes int32 scratch."""
    rows, n = x.shape
    parts = parts or parts_of(n, rows)
    block = triton.next_power_of_2(triton.cdiv(n, parts))
    mesh = tle.device_mesh({"block_cluster": parts})
    counts = empty(rows * parts * (triton.cdiv(32, radix) << radix))
    select_kernel[(rows,)](
        x,
        indices,
        ends,
        counts,
        n,
        k,
        block,
        radix,
        mesh,
        num_warps=num_warps or max(4, min(32, block // 1024)),
    )


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
        select(x, ends, 256, indices, lambda size: np.empty(size, np.int32), parts=parts)
        check(x, ends, 256, indices)
        print(f"256 of 4000 scores, {parts} programs a row")


if __name__ == "__main__":
    main()
