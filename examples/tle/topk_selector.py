"""Which elements of a row are its largest, in any order: the selector of sparse attention, rows of up to half a million scores.

Floats become unsigned keys of the same order (``topk.py``). A short row lies in the registers of one program. It counts the elements in shared memory by
a digit that says roughly how large they are; so it knows which digit the last selected one has, and where those of each larger digit
go to. Those of that digit are few, and each finds its rank by looking at all others; where they are many, their keys' bits are counted, a few a round. A long row
is shared by the programs of a cluster, and read once: a sample of it, the same for all of them, says which key a few more than ``K`` elements will have reached, and what has reached
it goes to the first program, which selects among these few as from a short row. Where the sample was misleading, the row is counted as a whole, by
all programs, who add up each other's counts.
"""

import sys
from pathlib import Path

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.language.core import _aggregate as aggregate

sys.path.insert(0, str(Path(__file__).parent))

from topk import ranks_of, to_key


@triton.constexpr_function
def _digits(bins, num_warps):
    return tle.gpu.BlockEncoding([max(1, bins // (32 * num_warps))], [32], [num_warps], [0])


@triton.jit
def pick_digit(count, wanted, picked):
    """Finds which digit the ``wanted``-th largest has, where so many have each digit. How many have a larger one than each.

    ``picked`` is a buffer of shape [3, 1], by which the thread that has the digit tells all others (``picked_digit``).
    """
    bins: tl.constexpr = count.shape[0]
    # Neighbouring digits in one thread, for the sake of the scan.
    count = tle.gpu.set_layout(count, _digits(bins, tl.num_warps()))
    larger, _ = tle.cumsum(count, 0, reverse=True)
    here = (larger < wanted) & (larger + count >= wanted)
    first = tl.zeros([bins], tl.int32)
    tl.store(tle.gpu.local_ptr(picked.slot(0), (first,)), tl.arange(0, bins), mask=here)
    tl.store(tle.gpu.local_ptr(picked.slot(1), (first,)), count, mask=here)
    tl.store(tle.gpu.local_ptr(picked.slot(2), (first,)), larger, mask=here)
    return larger


@triton.jit
def picked_digit(picked):
    """The digit, how many have it, and how many a larger one."""
    digit = tl.load(tle.gpu.local_ptr(picked, (0, 0)))
    equal = tl.load(tle.gpu.local_ptr(picked, (1, 0)))
    return digit, equal, tl.load(tle.gpu.local_ptr(picked, (2, 0)))


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
    def narrowed(self, count, picked, RADIX: tl.constexpr):
        """With the digit of which the threshold is, where so many of the equal keys have each digit; and that digit."""
        pick_digit(count, self.wanted, picked)
        digit, equal, larger = picked_digit(picked)
        unknown = tl.maximum(self.unknown - RADIX, 0)
        shift = unknown.to(tl.uint32)
        bits = self.bits | (digit.to(tl.uint32) << shift)
        known = self.known | (tl.full([], (1 << RADIX) - 1, tl.uint32) << shift)
        return Threshold(bits, known, unknown, equal, self.wanted - larger), digit


@triton.jit
def unknown_threshold(bits, equal, wanted):
    """That of ``equal`` keys of so many bits, of which nothing is known."""
    nothing = tl.zeros([], tl.uint32)
    return Threshold(nothing, nothing, bits.to(tl.int32), equal, wanted)


@triton.jit
def count_digits(threshold, key, inside, counts, RADIX: tl.constexpr):
    """Adds to ``counts`` the digits of the keys that are equal so far."""
    place = tle.gpu.local_ptr(counts, (threshold.digit(key, RADIX),))
    tl.atomic_add(place, 1, mask=inside & threshold.is_equal(key), sem="relaxed")


@triton.jit
def narrowed_among(threshold, key, inside, counts, picked, RADIX: tl.constexpr):
    """The threshold with one more digit, of keys in registers; ``counts`` are zeros."""
    count_digits(threshold, key, inside, counts, RADIX)
    threshold, _ = threshold.narrowed(counts.load(), picked, RADIX)
    return threshold


@triton.jit
def set_to_zero(counts):
    counts.store(tl.zeros(counts.shape, tl.int32))


@triton.jit
def take_places(counter, taken):
    """A number for each element that takes one, from a buffer of one element on."""
    place = tle.gpu.local_ptr(counter, (tl.zeros(taken.shape, tl.int32),))
    return tl.atomic_add(place, 1, mask=taken, sem="relaxed")


@triton.jit
def select_by_bits(threshold, key, index, inside, out, counts, picked, RADIX: tl.constexpr):
    """Writes the indices of the largest of the keys in registers, as many as ``threshold`` wants. ``counts`` are zeros for each round."""
    selected = threshold.wanted
    round = tl.zeros([], tl.int32)
    while threshold.is_found() == 0:
        threshold = narrowed_among(threshold, key, inside, counts.slot(round), picked, RADIX)
        round += 1
    next_larger = tle.gpu.alloc([1], dtype=tl.int32, init_value=tl.zeros([1], tl.int32))
    begin = selected - threshold.wanted
    next_equal = tle.gpu.alloc([1], dtype=tl.int32, init_value=begin + tl.zeros([1], tl.int32))
    larger = inside & threshold.is_larger(key)
    tl.store(out + take_places(next_larger, larger), index, mask=larger)
    equal = inside & threshold.is_equal(key)
    place = take_places(next_equal, equal)
    tl.store(out + place, index, mask=equal & (place < selected))


@triton.jit
def select_among(
    digit, key, index, held, bits, selected, out, counts, picked,
    MOST: tl.constexpr, RADIX: tl.constexpr, FEW: tl.constexpr,
):  # fmt: skip
    """Writes the indices of the ``selected`` largest of the first ``held`` keys in registers, which have so many ``bits``.

    A larger key has no smaller ``digit``, which is 0 behind the first ``held``, and before never. ``counts`` are zeros. At most ``MOST`` are selected; of one digit
    as many as ``FEW`` are put in order.
    """
    i = tl.arange(0, key.shape[0])
    if held <= selected:
        tl.store(out + i, index, mask=i < held)
    else:
        places = counts.slot(0)
        tl.atomic_add(tle.gpu.local_ptr(places, (digit,)), 1, sem="relaxed")
        # From how many have a larger digit on, those of a digit take places.
        places.store(pick_digit(places.load(), selected, picked))
        last, equal, larger = picked_digit(picked)
        if equal <= FEW:
            reached = tle.gpu.alloc([MOST + FEW], dtype=tl.uint64)
            place = tl.atomic_add(tle.gpu.local_ptr(places, (digit,)), 1, mask=digit >= last, sem="relaxed")
            number = (key.to(tl.uint64) << 32) | index.to(tl.uint64)
            tl.store(tle.gpu.local_ptr(reached, (place,)), number, mask=digit >= last)
            for first in tl.static_range(0, MOST, FEW):
                at = first + tl.arange(0, FEW)
                above = tl.load(tle.gpu.local_ptr(reached, (at,)), mask=at < larger)
                tl.store(out + at, above.to(tl.int32), mask=at < larger)
            mine, rank = ranks_of(reached, larger, equal, FEW)
            there = (tl.arange(0, FEW) < equal) & (larger + rank < selected)
            tl.store(out + larger + rank, mine.to(tl.int32), mask=there)
        else:
            set_to_zero(counts)
            select_by_bits(unknown_threshold(bits, held, selected), key, index, i < held, out, counts, picked, RADIX)  # fmt: skip


@triton.jit
def sampled_bound(x_ptr, n, end, selected, counts, picked, SAMPLE: tl.constexpr, RADIX: tl.constexpr):
    """A key that ``selected`` of the row's first ``end`` elements reach, most likely, and not many more.

    The sample is runs of 32 elements at equal distances.
    """
    i = tl.arange(0, SAMPLE)
    at = i // 32 * (n // SAMPLE * 32) + i % 32
    key = to_key(tl.load(x_ptr + at))
    inside = at < end
    # As many of them as there must be on average, and four times the deviation.
    average = selected.to(tl.float32) * SAMPLE / n
    wanted = (average + 4 * tl.sqrt(average) + 4).to(tl.int32)
    stride = n // SAMPLE * 32
    there = tl.minimum(end // stride * 32 + tl.minimum(end % stride, 32), SAMPLE)
    threshold = unknown_threshold(tl.full([], 32, tl.int32), there, wanted)
    round = tl.zeros([], tl.int32)
    while (threshold.unknown > 0) & (threshold.equal * 4 > wanted) & (there > wanted):
        threshold = narrowed_among(threshold, key, inside, counts.slot(round), picked, RADIX)
        round += 1
    set_to_zero(counts)
    return threshold.bits


@triton.jit
def leading_digit(x, RADIX: tl.constexpr):
    """The leading bits of a float's key, as a half has them: of the mantissa more than a float's, so that those of like size differ. Never 0."""
    i = x.to(tl.float16).to(tl.int16, bitcast=True).to(tl.int32)
    digit = ((i ^ ((i >> 31) & 0x7FFF)) >> (16 - RADIX)) + (1 << (RADIX - 1))
    digit = tl.where(x == x, digit, (1 << RADIX) - 1)
    # -inf has 6 zeros in front.
    return digit if RADIX > 6 else tl.maximum(digit, 1)


@triton.jit
def select_short(x_ptr, out, n, end, selected, counts, picked, ROOM: tl.constexpr, K: tl.constexpr, RADIX: tl.constexpr, FEW: tl.constexpr):  # fmt: skip
    """Selects from a row that one program's registers hold."""
    at = tl.arange(0, ROOM)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    digit = tl.where(at < end, leading_digit(x, RADIX), 0)
    bits = tl.full([], 32, tl.int32)
    select_among(digit, to_key(x), at, end, bits, selected, out, counts, picked, K, RADIX, FEW)


@triton.jit
def gather_above(x_ptr, n, begin, stop, bound, keys, indices, TILE: tl.constexpr):
    """Puts what has reached ``bound`` into buffers, as far as there is room; how many there are."""
    room: tl.constexpr = keys.shape[0]
    next_place = tle.gpu.alloc([1], dtype=tl.int32, init_value=tl.zeros([1], tl.int32))
    for first in range(begin, stop, TILE):
        at = first + tl.arange(0, TILE)
        key = to_key(tl.load(x_ptr + at, mask=at < n, other=0.0))
        reached = (at < stop) & (key >= bound)
        place = take_places(next_place, reached)
        reached &= place < room
        tl.store(tle.gpu.local_ptr(keys, (place,)), key - bound, mask=reached)
        tl.store(tle.gpu.local_ptr(indices, (place,)), at, mask=reached)
    return tl.load(tle.gpu.local_ptr(next_place, (0,)))


@triton.jit
def hand_over(count, keys, indices, to_keys, to_indices, total, MESH: tl.constexpr, STEP: tl.constexpr):
    """Adds what this program has gathered to the first program's buffers; how many all have, there is room or not."""
    room: tl.constexpr = keys.shape[0]
    total = tle.remote(tle.gpu.local_ptr(total, (0,)), 0, MESH)
    # The first program has set its total to zero.
    tle.distributed_barrier(MESH)
    begin = tl.atomic_add(total, count, sem="relaxed")
    for first in range(0, tl.minimum(count, room), STEP):
        i = first + tl.arange(0, STEP)
        there = (i < count) & (begin + i < room)
        key = tl.load(tle.gpu.local_ptr(keys, (i,)), mask=there)
        index = tl.load(tle.gpu.local_ptr(indices, (i,)), mask=there)
        tl.store(tle.remote(tle.gpu.local_ptr(to_keys, (begin + i,)), 0, MESH), key, mask=there)
        tl.store(tle.remote(tle.gpu.local_ptr(to_indices, (begin + i,)), 0, MESH), index, mask=there)
    tle.distributed_barrier(MESH)
    return tl.load(total)


@triton.jit
def highest_bit(x):
    """How many bits numbers up to ``x``, which is not 0, have."""
    return ((x.to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 126).to(tl.int32)


@triton.jit
def select_gathered(keys, indices, held, selected, out, counts, picked, K: tl.constexpr, RADIX: tl.constexpr, FEW: tl.constexpr):  # fmt: skip
    """Selects among the first ``held`` keys in a buffer."""
    i = tl.arange(0, keys.shape[0])
    inside = i < held
    key = tl.load(tle.gpu.local_ptr(keys, (i,)), mask=inside, other=0)
    index = tl.load(tle.gpu.local_ptr(indices, (i,)), mask=inside, other=0)
    bits = tl.minimum(highest_bit(tl.max(key) | 1), 32)
    leading = key >> tl.maximum(bits - (RADIX - 1), 0).to(tl.uint32)
    digit = tl.where(inside, leading | (1 << (RADIX - 1)), 0).to(tl.int32)
    select_among(digit, key, index, held, bits, selected, out, counts, picked, K, RADIX, FEW)


@triton.jit
def select_by_counting(x_ptr, out, n, begin, stop, end, selected, counts, picked, MESH: tl.constexpr, TILE: tl.constexpr, RADIX: tl.constexpr):  # fmt: skip
    """Selects by counting all of the row as often as it takes; the programs of ``MESH`` have a part each."""
    parts: tl.constexpr = MESH.size
    bins: tl.constexpr = 1 << RADIX
    part = tle.shard_id(MESH, 0)
    threshold = unknown_threshold(tl.full([], 32, tl.int32), end, selected)
    # Elements that the programs before this one have: of those that are larger, and of those that are equal.
    larger_before = tl.zeros([], tl.int32)
    equal_before = begin
    while threshold.is_found() == 0:
        set_to_zero(counts)
        for first in range(begin, stop, TILE):
            at = first + tl.arange(0, TILE)
            key = to_key(tl.load(x_ptr + at, mask=at < n, other=0.0))
            count_digits(threshold, key, at < stop, counts, RADIX)
        count = tl.zeros([bins], tl.int32)
        before = tl.zeros([bins], tl.int32)
        if parts > 1:
            tle.distributed_barrier(MESH)
            for of in tl.static_range(parts):
                theirs = tle.remote(counts, of, MESH)
                theirs = tl.load(tle.gpu.local_ptr(theirs, (tl.arange(0, bins),)))
                count += theirs
                before += tl.where(of < part, theirs, 0)
            tle.distributed_barrier(MESH)
        else:
            count = counts.load()
        threshold, digit = threshold.narrowed(count, picked, RADIX)
        larger_before += tl.sum(tl.where(tl.arange(0, bins) > digit, before, 0))
        equal_before = tl.sum(tl.where(tl.arange(0, bins) == digit, before, 0))
    next_larger = tle.gpu.alloc([1], dtype=tl.int32, init_value=larger_before + tl.zeros([1], tl.int32))
    begin_equal = selected - threshold.wanted + equal_before
    next_equal = tle.gpu.alloc([1], dtype=tl.int32, init_value=begin_equal + tl.zeros([1], tl.int32))
    for first in range(begin, stop, TILE):
        at = first + tl.arange(0, TILE)
        key = to_key(tl.load(x_ptr + at, mask=at < n, other=0.0))
        larger = (at < stop) & threshold.is_larger(key)
        tl.store(out + take_places(next_larger, larger), at, mask=larger)
        equal = (at < stop) & threshold.is_equal(key)
        place = take_places(next_equal, equal)
        tl.store(out + place, at, mask=equal & (place < selected))


@triton.jit
def select_kernel(
    x_ptr,
    indices_ptr,
    ends_ptr,
    n,
    K: tl.constexpr,
    TILE: tl.constexpr,
    RADIX: tl.constexpr,
    ROOM: tl.constexpr,
    SAMPLE: tl.constexpr,
    FEW: tl.constexpr,
    MESH: tl.constexpr,
):
    """The indices of the ``K`` largest among the first ``ends_ptr[row]`` scores of each row, in no particular order.

    ``x_ptr``: rows of ``n`` float32. ``indices_ptr``: ``K`` int32 a row; -1 where a row has fewer scores. The programs of ``MESH``, a
    mesh of one cluster, share a row and read ``TILE`` elements at a time; ``RADIX`` bits are found a round. They select among ``ROOM`` elements,
    which a sample of ``SAMPLE`` elements has them choose; without a sample that is the whole row, and there is one of them. ``FEW``: as for ``select_among``.
    """
    parts: tl.constexpr = MESH.size
    row = tl.program_id(0) // parts
    part = tle.shard_id(MESH, 0)
    x_ptr += row.to(tl.int64) * n
    out = indices_ptr + row * K
    end = tl.load(ends_ptr + row)
    selected = tl.minimum(end, K)
    # Of each round, so that zeros are there while the first elements come.
    counts = tle.gpu.alloc([(32 + RADIX - 1) // RADIX, 1 << RADIX], dtype=tl.int32)
    set_to_zero(counts)
    picked = tle.gpu.alloc([3, 1], dtype=tl.int32)
    if SAMPLE == 0:
        select_short(x_ptr, out, n, end, selected, counts, picked, ROOM, K, RADIX, FEW)
    else:
        share = tl.cdiv(end, parts * 16) * 16
        begin = part * share
        stop = tl.minimum(begin + share, end)
        total = tle.gpu.alloc([1], dtype=tl.int32, init_value=tl.zeros([1], tl.int32))
        bound = sampled_bound(x_ptr, n, end, selected, counts, picked, SAMPLE, RADIX)
        keys, indices = tle.gpu.alloc([ROOM], dtype=tl.uint32), tle.gpu.alloc([ROOM], dtype=tl.int32)
        held = gather_above(x_ptr, n, begin, stop, bound, keys, indices, TILE)
        if parts > 1:
            all_keys, all_indices = (
                tle.gpu.alloc([ROOM], dtype=tl.uint32),
                tle.gpu.alloc([ROOM], dtype=tl.int32),
            )
            held = hand_over(held, keys, indices, all_keys, all_indices, total, MESH, TILE // 8)
        else:
            all_keys, all_indices = keys, indices
        if (held >= selected) & (held <= ROOM):
            if part == 0:
                select_gathered(all_keys, all_indices, held, selected, out, counts, picked, K, RADIX, FEW)
        else:
            select_by_counting(
                x_ptr, out, n, begin, stop, end, selected, counts.slot(0), picked, MESH, TILE, RADIX
            )
    if part == 0 and end < K:
        for first in range(0, K, 1024):
            i = first + tl.arange(0, 1024)
            tl.store(out + i, -1, mask=(i >= end) & (i < K))


#: Elements that one program's registers hold.
SHORT = 8192


def parts_of(n, rows):
    """Programs that share a row of ``n`` scores."""
    most = max(1, min(16, triton.next_power_of_2(n) // 4096))
    return min(most, triton.next_power_of_2(max(1, 128 // rows)))


def room_of(n, k, sample):
    """How many elements of a row a sample lets pass, and some more, as far as there is shared memory: rows of which more pass are counted."""
    average = k * sample / n
    return min(SHORT, triton.next_power_of_2(int(1.2 * k * (1 + 4 / average**0.5 + 4 / average))))


def select(
    x,
    ends,
    k,
    indices,
    parts=None,
    radix=11,
    num_warps=None,
    room=None,
    sample=4096,
    each=16,
    few=None,
    maxnreg=None,
):
    """Puts the indices of the ``k`` largest of the first ``ends[row]`` scores of each row into ``indices``.

    :param parts: programs that share a row. :param room: among how many elements is selected in the end, a power of 2. Where that is less than a row
        has, ``sample`` elements of it are looked at first.
    :param each: elements that a thread reads at a time. :param few: how many that have the same digit are put in order; what is larger goes out so many at a time, so that it is 128 where little is selected.
    """
    rows, n = x.shape
    few = few or (128 if k <= 256 else 512)
    whole = triton.next_power_of_2(n)
    room = min(room or (whole if n <= SHORT else room_of(n, k, sample)), whole)
    parts = (parts or parts_of(n, rows)) if room < whole else 1
    sample = 0 if room == whole else min(sample, whole // 2)
    num_warps = num_warps or (32 if n >= 131072 * parts else 16)
    mesh = tle.device_mesh({"block_cluster": parts})
    options = {"num_warps": num_warps, "maxnreg": maxnreg}
    tile = 32 * each * num_warps
    select_kernel[(rows,)](x, indices, ends, n, k, tile, radix, room, sample, few, mesh, **options)


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
        select(x, ends, 256, indices, parts, room=1024 * (5 - parts), sample=512)
        check(x, ends, 256, indices)
        print(f"256 of 4000 scores, {parts} programs a row")


if __name__ == "__main__":
    main()
