"""Exchanging what is small without a meeting: data and flag travel in one word.

A word has 64 bits, 32 of data and, above them, 32 of a flag. It is written and read whole (PTX ISA, "Memory Consistency Model": a vector access is one of each of its
elements), so that whoever sees the flag has the data, and neither fence nor barrier orders anything. Each program has on each rank two *slots* of
:data:`tilewright.tle._ranks.SLOT` words for each rank that may send to it, and a rank counts for each of its programs the *epochs*, how often it has exchanged with each other rank:
both sides of a pair exchange together, and so count alike. In an epoch each member stores words with the epoch as their flag in its slot of the epoch's parity
at each member, itself included, and then waits until all words of the members' slots here have that flag.

**What is still to be read is not overwritten.** A writes epoch e into B's slot, where e - 2 was, when it is done with epoch e - 1: it has seen all words that B sent in e - 1.
B sent these when all of its threads were done with e - 2, as a wait ends with a barrier of the program's threads. So B has read e - 2.

**An old flag is not taken for a new one.** A place of a slot is only ever written by the one program of the one rank whose slot it is, with flags that count up: what lies there has an older one.
(They begin again after 2^32 epochs, with 2: memory begins with 0, and slots take turns.)
"""

from ..language import core
from ..language._marker import constexpr_function, jit
from ..language.standard import sum as _sum
from . import _ranks, _transfer

#: Words that a program sends to all members at once at most: its threads have registers for so many.
OF_ALL = core.constexpr(4096)


@constexpr_function
def _tile(size, itemsize, members):
    # Elements that a program sends to each at once: what a slot holds, or less, so that the programs have some each (two a multiprocessor, where one would
    # have many), and threads registers for all.
    most = 4 * min(_ranks.SLOT, OF_ALL // members) // itemsize
    tile = 128
    while tile < most and tile * (128 if tile * itemsize < 2048 else 256) < size:
        tile = 2 * tile
    return tile


@constexpr_function
def _integer(itemsize):
    if itemsize == 1:
        return core.int8
    if itemsize == 2:
        return core.int16
    return core.int32 if itemsize == 4 else core.int64


@jit
def _pairs(bits, half: core.constexpr, dtype: core.constexpr):
    # Each two integers along the last dimension as one of twice the bits.
    low, high = core.split(core.reshape(bits, [bits.shape[0], bits.shape[1] // 2, 2]))
    mask: core.constexpr = (1 << half) - 1
    return (low.to(dtype) & mask) | (high.to(dtype) << half)


@jit
def _halves(bits, half: core.constexpr, dtype: core.constexpr):
    both = core.join(bits.to(dtype), (bits >> half).to(dtype))
    return core.reshape(both, [bits.shape[0], bits.shape[1] * 2])


@jit
def _bits(value, size: core.constexpr):
    # (A boolean has a byte of its own.)
    if value.dtype.primitive_bitwidth < 8:
        return value.to(core.int8)
    else:
        return value.to(_integer(size), bitcast=True)


@jit
def _values(bits, dtype: core.constexpr):
    if dtype.primitive_bitwidth < 8:
        return bits.to(dtype)
    else:
        return bits.to(dtype, bitcast=True)


@jit
def _as_words(bits):
    """Integers ``[n, T]`` as int32 ``[n, W]``."""
    if bits.dtype.primitive_bitwidth == 64:
        return _halves(bits, 32, core.int32)
    elif bits.dtype.primitive_bitwidth == 32:
        return bits
    elif bits.dtype.primitive_bitwidth == 16:
        return _pairs(bits, 16, core.int32)
    else:
        return _pairs(_pairs(bits, 8, core.int16), 16, core.int32)


@jit
def _of_words(words, bits: core.constexpr):
    """The other way round, to integers of so many bits."""
    if bits == 64:
        return _pairs(words, 32, core.int64)
    elif bits == 32:
        return words
    elif bits == 16:
        return _halves(words, 16, core.int16)
    else:
        return _halves(_halves(words, 16, core.int16), 8, core.int8)


@jit
def _next(epoch):
    return core.where(epoch == -1, 2, epoch + 1)


@jit
def _positions(x, to: core.constexpr, item, box: core.constexpr):
    """Of elements of a box, by their number: where they lie in the part that they come from, and in the one that they become."""
    theirs: core.constexpr = x.spec.local_shape(x.shape)
    mine: core.constexpr = to.local_shape(x.shape)
    there, here = item * 0, item * 0
    for d in core.static_range(len(box)):
        index = item // _transfer._row_stride(box, d) % box[d]
        there = there + index * _transfer._row_stride(theirs, d)
        here = here + index * _transfer._row_stride(mine, d)
    return there, here


@jit
def _exchanged(bits, mine, theirs, epoch, memory, count: core.constexpr):
    """Sends a row of words to each member's slots, and gives the rows that have come to this one's."""
    slot = (epoch & 1) * (count * _ranks.SLOT) + core.arange(0, bits.shape[1])[None, :]
    flag = epoch.to(core.int64) << 32
    data = bits.to(core.int64) & 0xFFFFFFFF
    core.atomic_xchg(theirs + slot, flag | data, sem="relaxed", scope="sys")
    return _ranks._wait(mine + slot, flag, memory, flagged=True).to(core.int32)


@jit
def _slots(count: core.constexpr, memory, ranks):
    """For a program and a column of members: its epochs with them, their slots here, and this rank's slots there."""
    program = _ranks._program()
    epochs = _ranks._as(_ranks._part(memory, _ranks.EPOCHS), core.int32) + program * count + ranks
    slots = _ranks._as(_ranks._part(memory, _ranks.SLOTS), core.int64) + program * (2 * count * _ranks.SLOT)
    there = _ranks._of_rank(count, slots, ranks) + _ranks._rank(count) * _ranks.SLOT
    return epochs, slots + ranks * _ranks.SLOT, there


@jit
def _members(x, to: core.constexpr, count: core.constexpr):
    """This member's number, those of all that exchange words with it, in a column, this rank's memory, and the :func:`_slots` for that."""
    members: core.constexpr = x.spec.members(to)
    number = _ranks._own_number(count, x.spec.ranks())
    numbers = _transfer._at(x, to, number, core.arange(0, members)[:, None])
    memory = _ranks._memory(count)
    return number, numbers, memory, _slots(count, memory, _ranks._look_up(numbers, x.spec.ranks()))


@jit
def _taking(memory):
    """How many programs exchange: those that have slots."""
    return core.minimum(_transfer._programs(), core.load(memory + _ranks.SLOT_PROGRAMS))


@jit
def exchange(x, to: core.constexpr, out, count: core.constexpr, size: core.constexpr):
    """What becomes whole, is added up, or is split along another dimension, along some axes; ``size`` is the bytes of an element."""
    what: core.constexpr = x.spec.transition(to)
    members: core.constexpr = x.spec.members(to)
    plan: core.constexpr = x.spec.boxes(to, x.shape)
    box: core.constexpr = plan[0]
    elements: core.constexpr = _transfer._product(box)
    tile: core.constexpr = _tile(elements, size, members)
    dtype: core.constexpr = x.handle.dtype.element_ty
    number, numbers, memory, found = _members(x, to, count)
    epochs, mine, theirs = found[0], found[1], found[2]
    # Where what comes from each begins.
    take = _transfer._box(x, to, core.arange(0, members)[:, None], number, plan[1], box)[2]
    program, taking = _ranks._program(), _taking(memory)
    begin, epoch = _first(epochs, program < taking, program, _transfer._pieces(elements, tile))
    value = _given(x, to, begin, numbers, tile)
    for item in range(begin, _transfer._pieces(elements, tile), taking):
        epoch = _next(epoch)
        seen = _exchanged(_as_words(_bits(value, size)), mine, theirs, epoch, memory, count)
        come = _values(_of_words(seen, 8 * size), dtype)
        at = item * tile + core.arange(0, tile)[None, :]
        here, inside = _positions(x, to, at, box)[1], at < elements
        if what == "all-gather" or what == "all-to-all":
            core.store(out + take + here, come, mask=inside)
        else:
            core.store(out + here, _sum(_transfer._added_as(come), 0)[None, :], mask=inside)
        value = _given(x, to, item + taking, numbers, tile)
    core.store(epochs, epoch, mask=program < taking)
    core.debug_barrier()


@jit
def _first(epochs, takes, program, pieces: core.constexpr):
    """Which piece a program begins with, none where it takes no part, and its epochs. Nothing of that is a branch: what a kernel fetches first is all
    under way at once."""
    return core.where(takes, program, pieces), core.load(epochs, mask=takes, other=0)


@jit
def _given(x, to: core.constexpr, item, numbers, tile: core.constexpr):
    """What a turn sends: a row for all members, or one for each."""
    what: core.constexpr = x.spec.transition(to)
    plan: core.constexpr = x.spec.boxes(to, x.shape)
    box: core.constexpr = plan[0]
    at = item * tile + core.arange(0, tile)[None, :]
    there = _positions(x, to, at, box)[0]
    if what == "reduce-scatter" or what == "all-to-all":
        there = _transfer._box(x, to, numbers * 0, numbers, plan[1], box)[1] + there
    return core.load(x.handle + there, mask=at < _transfer._product(box))


@jit
def two_shot(x, to: core.constexpr, out, count: core.constexpr, size: core.constexpr):
    """Sums that become whole, by two exchanges: each member adds up a share of a tile, and sends it to all."""
    members: core.constexpr = x.spec.members(to)
    elements: core.constexpr = _transfer._product(x.spec.local_shape(x.shape))
    tile: core.constexpr = _tile(_transfer._pieces(elements, members), size, members)
    dtype: core.constexpr = x.handle.dtype.element_ty
    _number, _numbers, memory, found = _members(x, to, count)
    epochs, mine, theirs = found[0], found[1], found[2]
    program, taking = _ranks._program(), _taking(memory)
    pieces: core.constexpr = _transfer._pieces(elements, members * tile)
    begin, epoch = _first(epochs, program < taking, program, pieces)
    at = _shares(begin, members, tile)
    value = core.load(x.handle + at, mask=at < elements)
    for item in range(begin, pieces, taking):
        epoch = _next(epoch)
        seen = _exchanged(_as_words(_bits(value, size)), mine, theirs, epoch, memory, count)
        come = _transfer._added_as(_values(_of_words(seen, 8 * size), dtype))
        total = _sum(come, 0)[None, :].to(dtype)
        epoch = _next(epoch)
        seen = _exchanged(_as_words(_bits(total, size)), mine, theirs, epoch, memory, count)
        at = _shares(item, members, tile)
        core.store(out + at, _values(_of_words(seen, 8 * size), dtype), mask=at < elements)
        at = _shares(item + taking, members, tile)
        value = core.load(x.handle + at, mask=at < elements)
    core.store(epochs, epoch, mask=program < taking)
    core.debug_barrier()


@jit
def _shares(item, members: core.constexpr, tile: core.constexpr):
    """Where the elements of a piece lie: a row for each member."""
    return (item * members + core.arange(0, members)[:, None]) * tile + core.arange(0, tile)[None, :]


# ---- values -----------------------------------------------------------------------------------------------------


@constexpr_function
def _between(counts, box):
    # A shape of boxes, with how often each dimension is cut beside what lies inside.
    return [counts[k // 2] if k % 2 == 0 else box[k // 2] for k in range(2 * len(box))]


@constexpr_function
def _cuts_first(rank):
    return [2 * (k % rank) + k // rank for k in range(2 * rank)]


@constexpr_function
def _cuts_beside(rank):
    return [k // 2 + k % 2 * rank for k in range(2 * rank)]


@jit
def _rows(value, counts: core.constexpr, box: core.constexpr, members: core.constexpr):
    """A tensor, cut into boxes, as a row for each."""
    boxes = core.permute(core.reshape(value, _between(counts, box)), _cuts_first(len(box)))
    return core.reshape(boxes, [members, _transfer._product(box)])


@jit
def _of_rows(rows, counts: core.constexpr, box: core.constexpr, shape: core.constexpr):
    """The other way round."""
    boxes = core.permute(core.reshape(rows, list(counts) + list(box)), _cuts_beside(len(box)))
    return core.reshape(boxes, shape)


@jit
def value_of(x, value, to: core.constexpr, count: core.constexpr):
    """A program's ``value``, which is its part of ``x``, distributed otherwise; of programs that have slots."""
    what: core.constexpr = x.spec.transition(to)
    members: core.constexpr = x.spec.members(to)
    plan: core.constexpr = x.spec.boxes(to, x.shape)
    box: core.constexpr = plan[0]
    mine: core.constexpr = to.local_shape(x.shape)
    size: core.constexpr = _transfer._itemsize(value.dtype)
    _number, _numbers, memory, found = _members(x, to, count)
    # What was counted last is stored by one thread of each, and read here by all.
    core.debug_barrier()
    epoch = _next(core.load(found[0]))
    if what == "reduce-scatter" or what == "all-to-all":
        rows = _rows(value, x.spec.cuts(to, x.shape), box, members)
    else:
        rows = core.broadcast_to(
            core.reshape(value, [1, _transfer._product(box)]), [members, _transfer._product(box)]
        )
    seen = _exchanged(_as_words(_bits(rows, size)), found[1], found[2], epoch, memory, count)
    core.store(found[0], epoch)
    come = _values(_of_words(seen, 8 * size), value.dtype)
    if what == "all-gather" or what == "all-to-all":
        return _of_rows(come, plan[1], box, mine)
    else:
        return core.reshape(_sum(_transfer._added_as(come), 0), mine).to(value.dtype)
