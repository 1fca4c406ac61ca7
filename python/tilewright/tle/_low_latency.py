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


@constexpr_function
def _tile(size, itemsize, members):
    # Elements that a program sends to each at once: what a slot holds, or less, so that the programs have some each, and threads registers for all.
    most = 4 * min(_ranks.SLOT, 4096 // members) // itemsize
    tile = 128
    while tile < most and tile * 128 < size:
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
def exchange(x, to: core.constexpr, out, count: core.constexpr, size: core.constexpr):
    """What becomes whole, or is added up, along some axes; ``size`` is the bytes of an element."""
    what: core.constexpr = x.spec.transition(to)
    members: core.constexpr = x.spec.members(to)
    plan: core.constexpr = x.spec.boxes(to, x.shape)
    box: core.constexpr = plan[0]
    elements: core.constexpr = _transfer._product(box)
    tile: core.constexpr = _tile(elements, size, members)
    dtype: core.constexpr = x.handle.dtype.element_ty
    me = _ranks._rank(count)
    number = _ranks._number_of(me, x.spec.ranks())
    # A row for each member.
    places = core.arange(0, members)[:, None]
    numbers = _transfer._at(x, to, number, places)
    ranks = _ranks._look_up(numbers, x.spec.ranks())
    # Where what goes to each begins, and what comes from each.
    send = _transfer._box(x, to, places * 0, numbers, plan[1], box)[1]
    take = _transfer._box(x, to, places, number, plan[1], box)[2]
    memory = _ranks._memory(count)
    program = _ranks._program()
    taking = core.minimum(_transfer._programs(), core.load(memory + _ranks.SLOT_PROGRAMS))
    epochs = _ranks._as(_ranks._part(memory, _ranks.EPOCHS), core.int32) + program * count + ranks
    slots = _ranks._as(_ranks._part(memory, _ranks.SLOTS), core.int64) + program * (2 * count * _ranks.SLOT)
    theirs = _ranks._of_rank(count, slots, ranks) + me * _ranks.SLOT
    own = slots + ranks * _ranks.SLOT
    words = core.arange(0, tile * size // 4)[None, :]
    if program < taking:
        epoch = core.load(epochs)
        for item in range(program, _transfer._pieces(elements, tile), taking):
            epoch = _next(epoch)
            slot = (epoch & 1) * (count * _ranks.SLOT) + words
            flag = epoch.to(core.int64) << 32
            at = item * tile + core.arange(0, tile)[None, :]
            inside = at < elements
            there, here = _positions(x, to, at, box)
            if what == "reduce-scatter":
                value = core.load(x.handle + send + there, mask=inside)
            else:
                value = core.load(x.handle + there, mask=inside)
            data = _as_words(_bits(value, size)).to(core.int64) & 0xFFFFFFFF
            core.atomic_xchg(theirs + slot, flag | data, sem="relaxed", scope="sys")
            seen = _ranks._wait(own + slot, flag, memory, flagged=True)
            come = _values(_of_words(seen.to(core.int32), 8 * size), dtype)
            if what == "all-gather":
                core.store(out + take + here, come, mask=inside)
            else:
                core.store(out + here, _sum(come, 0)[None, :], mask=inside)
        core.store(epochs, epoch)
        core.debug_barrier()
