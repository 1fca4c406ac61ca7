"""Which elements of a row are its largest, in any order: the selector of sparse attention, rows of up to half a million scores.

A row is shared by the programs of a cluster, which read it twice. First each counts the leading bits of its keys (``topk.py``) in shared
memory; behind the cluster's barrier every program adds up what all have counted, and knows which of these bits the threshold has, and
how many elements of each kind the programs before it have. Then they write down what is larger, and hand the few elements that have the
threshold's bits to the first program, which selects among them alone. Only if these are too many is the row read again for more bits.
"""

import sys
from pathlib import Path

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.language.core import _aggregate as aggregate

sys.path.insert(0, str(Path(__file__).parent))

from topk import to_key


@aggregate
class Threshold:
    """What is known of the smallest key that is selected: ``bits`` at the places of ``known``, all but the last ``unknown`` ones.

    So many keys are ``equal`` to it there; ``wanted`` of them are selected, and all that are larger.
    """

    bits: tl.tensor
    known: tl.tensor
    unknown: tl.tensor
    equal: tl.tensor
    wanted: tl.tensor

    def __init__(self, bits, known, unknown, equal, wanted):
        self.bits, self.known, self.unknown = bits, known, unknown
        self.equal, self.wanted = equal, wanted

    @triton.jit
    def is_found(self):
        """Whether it makes no difference which of the equal ones are selected."""
        return (self.unknown == 0) | (self.equal <= self.wanted)

    @triton.jit
    def is_larger(self, key):
        return (key & self.known) > self.bits

    @triton.jit
    def is_equal(self, key):
        return (key & self.known) == self.bits

    @triton.jit
    def digit(self, key, RADIX: tl.constexpr):
        """The next ``RADIX`` bits; where fewer are unknown, known ones before them, which are the same in all equal keys."""
        return ((key >> tl.maximum(self.unknown - RADIX, 0).to(tl.uint32)) & ((1 << RADIX) - 1)).to(tl.int32)

    @triton.jit
    def narrowed(self, count, RADIX: tl.constexpr):
        """With the digit of which the threshold is, where so many of the equal keys have each digit; and that digit."""
        digits = tl.arange(0, 1 << RADIX)
        larger, _ = tle.cumsum(count, 0, reverse=True)
        here = (larger < self.wanted) & (larger + count >= self.wanted)
        digit = tl.sum(tl.where(here, digits, 0))
        unknown = tl.maximum(self.unknown - RADIX, 0)
        shift = unknown.to(tl.uint32)
        bits = self.bits | (digit.to(tl.uint32) << shift)
        known = self.known | (tl.full([], (1 << RADIX) - 1, tl.uint32) << shift)
        equal = tl.sum(tl.where(here, count, 0))
        wanted = self.wanted - tl.sum(tl.where(here, larger, 0))
        return Threshold(bits, known, unknown, equal, wanted), digit


@triton.jit
def count_digits(threshold, key, inside, counts, RADIX: tl.constexpr):
    """Adds to ``counts`` the digits of the keys that are equal so far."""
    place = tle.gpu.local_ptr(counts, (threshold.digit(key, RADIX),))
    tl.atomic_add(place, 1, mask=inside & threshold.is_equal(key), sem="relaxed")


@triton.jit
def take_places(counter, taken):
    """A number for each element that takes one, from a buffer of one element on."""
    place = tle.gpu.local_ptr(counter, (tl.zeros(taken.shape, tl.int32),))
    return tl.atomic_add(place, 1, mask=taken, sem="relaxed")


@triton.jit
def select_kernel(
    x_ptr,
    indices_ptr,
    ends_ptr,
    n,
    K: tl.constexpr,
    TILE: tl.constexpr,
    RADIX: tl.constexpr,
    FEW: tl.constexpr,
    MESH: tl.constexpr,
):
    """The indices of the ``K`` largest among the first ``ends_ptr[row]`` scores of each row, in no particular order.

    ``x_ptr``: rows of ``n`` float32. ``indices_ptr``: ``K`` int32 a row; -1 where a row has fewer scores. The programs of ``MESH``, a
    mesh of one cluster, share a row and read ``TILE`` elements at a time; ``RADIX`` bits are found a round, until at most ``FEW``
    elements are left to choose from.
    """
    parts: tl.constexpr = MESH.size
    bins: tl.constexpr = 1 << RADIX
    row = tl.program_id(0) // parts
    part = tle.shard_id(MESH, 0)
    x_ptr += row.to(tl.int64) * n
    out = indices_ptr + row * K
    end = tl.load(ends_ptr + row)
    share = tl.cdiv(end, parts * 16) * 16
    begin = part * share
    stop = tl.minimum(begin + share, end)
    selected = tl.minimum(end, K)

    nothing = tl.zeros([], tl.uint32)
    threshold = Threshold(nothing, nothing, tl.full([], 32, tl.int32), end, selected)
    counts = tle.gpu.alloc([(32 + RADIX - 1) // RADIX, bins], dtype=tl.int32)
    # Elements that the programs before this one have: of those that are larger, and of those that are equal.
    larger_before = tl.zeros([], tl.int32)
    equal_before = begin
    round = tl.zeros([], tl.int32)
    while (threshold.equal > FEW) & (threshold.is_found() == 0):
        own = counts.slot(round)
        own.store(tl.zeros([bins], tl.int32))
        for first in range(begin, stop, TILE):
            at = first + tl.arange(0, TILE)
            key = to_key(tl.load(x_ptr + at, mask=at < n, other=0.0))
            count_digits(threshold, key, at < stop, own, RADIX)
        count = tl.zeros([bins], tl.int32)
        before = tl.zeros([bins], tl.int32)
        if parts > 1:
            tle.distributed_barrier(MESH)
            for of in tl.static_range(parts):
                theirs = tle.remote(own, of, MESH)
                theirs = tl.load(tle.gpu.local_ptr(theirs, (tl.arange(0, bins),)))
                count += theirs
                before += tl.where(of < part, theirs, 0)
        else:
            count = own.load()
        threshold, digit = threshold.narrowed(count, RADIX)
        larger_before += tl.sum(tl.where(tl.arange(0, bins) > digit, before, 0))
        equal_before = tl.sum(tl.where(tl.arange(0, bins) == digit, before, 0))
        round += 1

    few_keys = tle.gpu.alloc([FEW], dtype=tl.uint32)
    few_indices = tle.gpu.alloc([FEW], dtype=tl.int32)
    next_larger = tle.gpu.alloc([1], dtype=tl.int32, init_value=larger_before + tl.zeros([1], tl.int32))
    next_equal = tle.gpu.alloc([1], dtype=tl.int32, init_value=equal_before + tl.zeros([1], tl.int32))
    if parts > 1 and round == 0:
        # The first program must have begun before others write to its memory.
        tle.distributed_barrier(MESH)
    for first in range(begin, stop, TILE):
        at = first + tl.arange(0, TILE)
        key = to_key(tl.load(x_ptr + at, mask=at < n, other=0.0))
        larger = (at < stop) & threshold.is_larger(key)
        tl.store(out + take_places(next_larger, larger), at, mask=larger)
        equal = (at < stop) & threshold.is_equal(key)
        # Where nothing is known yet, all are equal, and have their numbers already.
        place = tl.where(round == 0, at, take_places(next_equal, equal & (round > 0)))
        if threshold.is_found():
            place += selected - threshold.wanted
            tl.store(out + place, at, mask=equal & (place < selected))
        else:
            to_keys = tle.gpu.local_ptr(few_keys, (place,))
            to_indices = tle.gpu.local_ptr(few_indices, (place,))
            if parts > 1:
                to_keys, to_indices = tle.remote(to_keys, 0, MESH), tle.remote(to_indices, 0, MESH)
            tl.store(to_keys, key, mask=equal)
            tl.store(to_indices, at, mask=equal)
    if parts > 1:
        tle.distributed_barrier(MESH)
    if part == 0:
        if threshold.is_found() == 0:
            select_few(threshold, few_keys, few_indices, out, selected, RADIX)
        for first in range(0, K, 1024):
            i = first + tl.arange(0, 1024)
            tl.store(out + i, -1, mask=(i >= end) & (i < K))


@triton.jit
def select_few(threshold, keys, indices, out, selected, RADIX: tl.constexpr):
    """Writes the last indices of the ``selected`` ones, of elements that are equal to the threshold so far, in buffers."""
    inside = tl.arange(0, keys.shape[0]) < threshold.equal
    key = tl.load(tle.gpu.local_ptr(keys, (tl.arange(0, keys.shape[0]),)), mask=inside, other=0)
    index = tl.load(tle.gpu.local_ptr(indices, (tl.arange(0, keys.shape[0]),)), mask=inside, other=0)
    begin = selected - threshold.wanted
    counts = tle.gpu.alloc([1 << RADIX], dtype=tl.int32)
    inside &= threshold.is_equal(key)
    while threshold.is_found() == 0:
        counts.store(tl.zeros([1 << RADIX], tl.int32))
        count_digits(threshold, key, inside, counts, RADIX)
        threshold, _ = threshold.narrowed(counts.load(), RADIX)
    next_larger = tle.gpu.alloc([1], dtype=tl.int32, init_value=begin + tl.zeros([1], tl.int32))
    begin = selected - threshold.wanted
    next_equal = tle.gpu.alloc([1], dtype=tl.int32, init_value=begin + tl.zeros([1], tl.int32))
    larger = inside & threshold.is_larger(key)
    tl.store(out + take_places(next_larger, larger), index, mask=larger)
    equal = inside & threshold.is_equal(key)
    place = take_places(next_equal, equal)
    tl.store(out + place, index, mask=equal & (place < selected))


def parts_of(n, rows):
    """Programs that share a row of ``n`` scores."""
    most = max(1, min(16, triton.next_power_of_2(n) // 4096))
    wanted = max(128 // rows, triton.cdiv(n, 131072))
    return min(most, triton.next_power_of_2(max(1, wanted)))


def select(x, ends, k, indices, parts=None, radix=11, num_warps=None, few=4096, maxnreg=None):
    """Puts the indices of the ``k`` largest of the first ``ends[row]`` scores of each row into ``indices``."""
    rows, n = x.shape
    parts = parts or parts_of(n, rows)
    num_warps = num_warps or (32 if n > 32768 * parts else 16)
    mesh = tle.device_mesh({"block_cluster": parts})
    options = {"num_warps": num_warps, "maxnreg": maxnreg}
    select_kernel[(rows,)](x, indices, ends, n, k, 256 * num_warps, radix, few, mesh, **options)


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
