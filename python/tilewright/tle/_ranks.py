"""What kernels do with the memory that the ranks of a launch have in common, in the language itself.

Each rank has a piece of *symmetric* memory of one size, and what is at a place in one rank's piece is at the same place in each other's. A
rank's piece begins with words of 64 bits:

==============================  ============================================================================
word                            what it is
==============================  ============================================================================
0, 1                            the rank, and how many there are (n)
2, 3                            where the flags begin, and the scratch, as all parts in units of :data:`UNIT` bytes
4                               scratch for each program of the grid, in such units
5                               nanoseconds after which a wait gives up; 0: never
6                               the address of a word of the host's: which signal it has waited for in vain (bytes from the piece's beginning),
                                and from bit 44 on the line of the kernel
7                               where this rank's piece begins, in units of 16 bytes
8, 9, 10                        where the epochs and the slots of words with flags begin, and how many programs have some
11, 12                          where the staging begins, and its bytes
13                              words from a flag to how often it has been taken
16 …                            signals, :data:`SIGNALS` of them
16 + SIGNALS …                  where each rank's piece begins, as this one reaches it, in units of 16 bytes
flags                           64 bits for each program of the grid, group of ranks and rank: how often that rank has raised it here
taken                           as many: how often this rank has taken each
epochs                          32 bits for each program and rank: how often they have exchanged words with flags
slots                           for each program two for each rank, of :data:`SLOT` words, which that rank writes in turn (``_low_latency.py``)
scratch                         of each program of the grid, for values that others fetch
staging                         of as many programs as find room there, for what others store (``_push.py``)
==============================  ============================================================================

A flag counts up, and only its one other rank writes to it: its own rank counts beside it what it has waited for, so that none is changed from two sides.

:mod:`tilewright.distributed` writes that, and places arrays behind it.
"""

from ..language import core
from ..language._marker import builtin, constexpr_function, jit

UNIT = core.constexpr(256)
RANK = core.constexpr(0)
RANKS = core.constexpr(1)
FLAGS = core.constexpr(2)
SCRATCH = core.constexpr(3)
PER_PROGRAM = core.constexpr(4)
TIME_LIMIT = core.constexpr(5)
REPORT = core.constexpr(6)
BASE = core.constexpr(7)
EPOCHS = core.constexpr(8)
SLOTS = core.constexpr(9)
SLOT_PROGRAMS = core.constexpr(10)
STAGING = core.constexpr(11)
STAGING_BYTES = core.constexpr(12)
TAKEN = core.constexpr(13)
SIGNAL = core.constexpr(16)
SIGNALS = core.constexpr(8192)
GROUPS = core.constexpr(8)
TABLE = core.constexpr(8208)
SLOT = core.constexpr(1024)


@builtin
def _memory(ranks, scratch=0):
    """Where this rank's piece begins, in a launch of so many ranks (0: of any number), whose programs need so many bytes of scratch."""


@builtin
def _group(members, most):
    """The number of a group of ranks among those of the kernel, of which it may have so many."""


@builtin
def _wait(pointer, value, memory, flagged=False):
    """Waits until the integer at an address, or each of a tensor of addresses, is at least ``value``, and acquires at system scope; for as long as
    ``memory``, where the rank's piece begins, allows. Of a tensor it gives the integers. With ``flagged`` these are words of 64 bits, whose upper halves are
    to be those of ``value``, and nothing is acquired."""


@builtin
def _by_library():
    """Whether other ranks are reached by NVSHMEM's functions, and not by addresses."""


@builtin
def _symmetric(pointers):
    """Pointers to global memory whose upper 16 bits say whose memory it is: accesses through them are NVSHMEM's."""


@builtin
def _send(there, here, bytes, released=False):
    """Sends bytes that lie in this rank's memory to another rank's, a place of :func:`_symmetric`; they are there behind what releases. With ``released`` the program has
    released them at system scope since its threads stored them: of several messages one is enough that isn't."""


@constexpr_function
def _per_unit(dtype):
    # Elements in 16 bytes; a boolean has a byte of its own.
    return 128 // max(8, dtype.primitive_bitwidth)


@constexpr_function
def _release(order):
    # The memory order of what is sent.
    return "release" if order in ("release", "acqrel") else "relaxed"


@constexpr_function
def _sends(order):
    return "acqrel" if order is None else order


@jit
def _rank(ranks: core.constexpr):
    return core.load(_memory(ranks) + RANK).to(core.int32)


@jit
def _of_rank(ranks: core.constexpr, pointers, rank):
    """The same places in the memory of another rank."""
    memory = _memory(ranks)
    per_unit: core.constexpr = _per_unit(pointers.dtype.scalar.element_ty)
    if _by_library():
        return _symmetric(pointers + (rank + core.cast(1, core.int64)) * (per_unit << 44))
    else:
        units = core.load(memory + TABLE + rank) - core.load(memory + BASE)
        return pointers + units * per_unit


@jit
def _check_rank(rank):
    core.device_assert((rank >= 0) & (rank < n_pes()), "shard_id of tle.remote must be a rank")


@jit
def _as(pointers, dtype: core.constexpr):
    return pointers.to(core.pointer_type(dtype, pointers.dtype.scalar.address_space), bitcast=True)


@jit
def _part(memory, which: core.constexpr):
    # Where a part of a rank's piece begins, in bytes: it is aligned.
    return _as(memory, core.int8) + core.load(memory + which) * UNIT


@jit
def _program():
    # The program's number in the grid.
    x, y = core.num_programs(0).to(core.int64), core.num_programs(1)
    return core.program_id(0) + x * (core.program_id(1) + y * core.program_id(2))


@jit
def _scratch(ranks: core.constexpr, dtype: core.constexpr, size: core.constexpr):
    """So many bytes of this program's scratch, as a pointer to ``dtype``."""
    memory = _memory(ranks, size)
    begin = _part(memory, SCRATCH)
    return _as(begin + _program() * (core.load(memory + PER_PROGRAM) * UNIT), dtype)


@jit
def _flags(memory, group: core.constexpr):
    # Of this program and a group: one for each rank. Members that come to the barriers of two groups in another order wait forever, and don't
    # take one's flag for the other's.
    place = _program() * GROUPS + group
    return _as(_part(memory, FLAGS), core.int64) + place * core.load(memory + RANKS)


@jit
def _take(memory, flags):
    """Waits until flags have been raised once more than they have been taken."""
    taken = flags + core.load(memory + TAKEN)
    # What was taken last is stored by one thread, and read here by all.
    core.debug_barrier()
    due = core.load(taken) + 1
    _wait(flags, due, memory)
    core.store(taken, due)


@constexpr_function
def _is_range(numbers):
    # Whether they are 0, 1, 2, …
    return all([numbers[k] == k for k in range(len(numbers))])


@jit
def _look_up(index, table: core.constexpr):
    # table[index], for indices at run time.
    if _is_range(table):
        return index
    else:
        found = index * 0 + table[0]
        for k in core.static_range(1, len(table)):
            found = core.where(index == k, table[k], found)
        return found


@jit
def _number_of(rank, members: core.constexpr):
    # Which of the members a rank is.
    if _is_range(members):
        return rank
    else:
        number = rank * 0
        for k in core.static_range(1, len(members)):
            number = core.where(rank == members[k], k, number)
        return number


@jit
def _own_number(count: core.constexpr, members: core.constexpr):
    # Which of the members this rank is.
    return _number_of(_rank(count), members)


@jit
def _meet(ranks: core.constexpr, members: core.constexpr, me, sent: core.constexpr):
    # Flags are raised by as many threads, behind what all threads have written, and as many wait for the others'. (Its own it raises, too.)
    count: core.constexpr = len(members)
    # (One that is alone meets nobody; its threads do.)
    core.debug_barrier()
    if count > 1:
        memory = _memory(ranks)
        flags = _flags(memory, _group(members, GROUPS))
        others = _look_up(core.arange(0, count), members)
        core.atomic_add(_of_rank(ranks, flags, others) + me, 1, sem=sent, scope="sys")
        _take(memory, flags + others)


@jit
def _is_member(members: core.constexpr, me):
    found = me == members[0]
    for k in core.static_range(1, len(members)):
        found = found | (me == members[k])
    return found


@jit
def _barrier(ranks: core.constexpr, members: core.constexpr, order: core.constexpr):
    """The programs of one id of these ranks wait for each other: each raises a flag at every other member, and takes each one's own down here."""
    sent: core.constexpr = _release(_sends(order))
    me = _rank(ranks)
    if len(members) == ranks:
        _meet(ranks, members, me, sent)
    else:
        if _is_member(members, me):
            _meet(ranks, members, me, sent)


@jit
def _own(device_dptr):
    if device_dptr is None:
        return _memory(0)
    else:
        return device_dptr


@jit
def signal(
    device_dptr,
    peer,
    slot_id,
    value=None,
    op: core.constexpr = "inc",
    space: core.constexpr = "intra_node",
    group_kind: core.constexpr = None,
    context_id: core.constexpr = 0,
    scope: core.constexpr = None,
):
    """Adds one (``op="inc"``) or ``value`` (``op="add"``) to a signal of another rank, and releases: what this program has written before, to
    whatever memory, is seen by whoever waits for the signal there.

    :param device_dptr: ``None``: the launch's memory; or where this rank's part of it begins.
    :param peer: the rank, a number among all those of the launch, whatever ``space`` it is reached through (which ``debug=True`` checks).
    :param slot_id: the number of the signal, below 8192 (which it checks, too), or a block of numbers, with one ``value`` or a block of as many. Signals are int64, zero before the first launch, and stay as launches leave them.

    ``group_kind``, ``context_id`` and ``scope`` other than the block, 0 and the system are not supported yet.
    """
    core.static_assert(op == "inc" or op == "add", 'op of tle.signal must be "inc" or "add"')
    core.static_assert(
        space == "intra_node" or space == "inter_node" or space == "world",
        'space of tle.signal must be "intra_node", "inter_node" or "world"',
    )
    core.static_assert(
        group_kind is None and context_id == 0 and scope is None,
        "not supported yet: tle.signal with `group_kind`, `context_id` or `scope`",
    )
    core.static_assert((op == "add") == (value is not None), 'value of tle.signal goes with op="add"')
    # Behind the signals stands where the ranks' memory begins.
    core.device_assert((slot_id >= 0) & (slot_id < SIGNALS), "slot_id of tle.signal must be below 8192")
    core.device_assert((peer >= 0) & (peer < n_pes(device_dptr)), "peer of tle.signal must be a rank")
    there = _of_rank(0, _own(device_dptr) + SIGNAL + slot_id, peer)
    if value is None:
        core.atomic_add(there, 1, sem="release", scope="sys")
    else:
        core.atomic_add(there, value, sem="release", scope="sys")


@jit
def signal_wait(
    device_dptr,
    slot_id,
    wait_kind: core.constexpr = "signal",
    target=None,
    group_kind: core.constexpr = None,
    context_id: core.constexpr = 0,
    order: core.constexpr = "acquire",
):
    """Waits until a signal of this rank is at least ``target``, and acquires: what came before the :func:`tle.signal` calls that made it so is seen
    behind it. Without ``target`` it waits for one, and takes it off.

    The parameters are those of :func:`tle.signal`, blocks of numbers with a ``target`` or a block of them, too; ``wait_kind`` is ``"signal"``, and ``order`` at most ``"acquire"``, which it always is.
    """
    core.static_assert(
        wait_kind == "signal", 'not supported yet: tle.signal_wait with another `wait_kind` than "signal"'
    )
    core.static_assert(
        group_kind is None and context_id == 0,
        "not supported yet: tle.signal_wait with `group_kind` or `context_id`",
    )
    core.static_assert(
        order == "acquire" or order == "relaxed",
        'order of tle.signal_wait must be "acquire" or "relaxed"',
    )
    core.device_assert((slot_id >= 0) & (slot_id < SIGNALS), "slot_id of tle.signal_wait must be below 8192")
    memory = _own(device_dptr)
    slot = memory + SIGNAL + slot_id
    core.static_assert(
        target is not None or not _by_library(),
        "not supported yet: tle.signal_wait without `target` where NVSHMEM reaches the ranks: what it adds to must not be changed from two sides",
    )
    if target is None:
        _wait(slot, 1, memory)
        core.atomic_add(slot, -1, sem="relaxed", scope="sys")
    else:
        _wait(slot, target, memory)


@jit
def n_pes(device_dptr=None):
    """How many ranks the launch has. int32. ``device_dptr`` is the launch's memory where none is given."""
    return core.load(_own(device_dptr) + RANKS).to(core.int32)
