"""Moving large tensors by stores: a member stores at others what they need of its part, as links carry more of what is written than of what is read.

What becomes whole, or is split along another dimension, is stored where it stays. What is added up is stored in *staging*, of which each program has two pieces for each member on each rank:

.. code-block:: text

    turn t:   send tile t      wait until the piece of turn t - 2 is free at all members; store in it, at each member that member's; tell them
              take tile t - 1  wait until all members have told; add up their pieces here; say that they are free

So a tile is under way while the one before is added up. Sums that become whole are stored at all members then.
"""

from ..language import core
from ..language._marker import constexpr_function, jit
from . import _ranks, _transfer

#: Bytes of staging that a program needs at most.
STAGING = core.constexpr(262144)


@constexpr_function
def _tile(members, itemsize):
    # Elements of a tile of one member, so that two pieces for each fit.
    tile = 8192
    while tile * 2 * members > STAGING and tile > 128:
        tile = tile // 2
    return tile // itemsize


@jit
def _rows(x, to: core.constexpr, own, members: core.constexpr):
    """A row for each member, its own first and then the others', so that no two begin with the same: places in the group, numbers and ranks."""
    places = (core.arange(0, members)[:, None] + own) % members
    number = _ranks._own_number(to.ranks_of_launch(), x.spec.ranks())
    numbers = _transfer._at(x, to, number, places)
    return places, numbers, _ranks._look_up(numbers, x.spec.ranks())


@jit
def _store_at_all(x, to: core.constexpr, own, at, value, mask, count: core.constexpr):
    members: core.constexpr = x.spec.members(to)
    number = _ranks._own_number(count, x.spec.ranks())
    for k in core.static_range(members):
        there = _transfer._member(x, to, number, (own + 1 + k) % members)
        core.store(_ranks._of_rank(count, at, there), value, mask=mask)


#: Bytes that are sent at once, at most and at least: less goes word by word.
MOST_SENT = core.constexpr(65536)
LEAST_SENT = core.constexpr(512)


@jit
def _send(x, to: core.constexpr, out, count: core.constexpr):
    """Sends the others what they need of this member's part, as it lies in memory: the members have met since it was stored, by which it was released."""
    size: core.constexpr = _transfer._itemsize(x.handle.dtype.element_ty)
    members: core.constexpr = x.spec.members(to)
    plan: core.constexpr = x.spec.boxes(to, x.shape)
    box: core.constexpr = plan[0]
    rows: core.constexpr = _transfer._product(box[: plan[2]])
    columns: core.constexpr = _transfer._product(box[plan[2] :])
    wide: core.constexpr = MOST_SENT // size
    pieces: core.constexpr = _transfer._pieces(columns, wide)
    number = _ranks._own_number(count, x.spec.ranks())
    own = _transfer._part(x.spec.group(to), number)
    begin = _transfer._box(x, to, own, number, plan[1], box)[2]
    for piece in range(_ranks._program(), rows * pieces, _transfer._programs()):
        column = piece % pieces * wide
        at = _transfer._of_box(x, to, piece // pieces, column, box, plan[2])
        length = core.minimum(columns - column, wide)
        for k in core.static_range(members - 1):
            theirs = _transfer._at(x, to, number, (own + 1 + k) % members)
            source = x.handle + at[0]
            if x.spec.transition(to) == "all-to-all":
                source += _transfer._box(x, to, number * 0, theirs, plan[1], box)[1]
            rank = _ranks._look_up(theirs, x.spec.ranks())
            _ranks._send(
                _ranks._of_rank(count, out + begin + at[1], rank), source, length * size, released=True
            )


@constexpr_function
def _is_message(plan, dtype):
    # Whether what lies side by side is enough for one.
    return _transfer._product(plan[0][plan[2] :]) * _transfer._itemsize(dtype) >= LEAST_SENT


@jit
def whole(x, to: core.constexpr, out, count: core.constexpr, most: core.constexpr):
    """Parts that become whole."""
    plan: core.constexpr = x.spec.boxes(to, x.shape)
    messages: core.constexpr = _ranks._by_library() and _is_message(plan, x.handle.dtype.element_ty)
    number = _ranks._own_number(count, x.spec.ranks())
    own = _transfer._part(x.spec.group(to), number)
    begin = _transfer._box(x, to, own, number, plan[1], plan[0])[2]
    _ranks._barrier(count, to.ranks(), None)
    for piece in range(_ranks._program(), _transfer._tiles(plan, most), _transfer._programs()):
        at = _transfer._tile(x, to, piece, plan, most)
        value = core.load(x.handle + at[0], mask=at[2])
        if messages:
            core.store(out + begin + at[1], value, mask=at[2])
        else:
            _store_at_all(x, to, own, out + begin + at[1], value, at[2], count)
    if messages:
        _send(x, to, out, count)
    _ranks._barrier(count, to.ranks(), None)


@jit
def across(x, to: core.constexpr, out, count: core.constexpr, most: core.constexpr):
    """What is split along another dimension: each stores at the others the box that is theirs, beginning with the next one."""
    members: core.constexpr = x.spec.members(to)
    plan: core.constexpr = x.spec.boxes(to, x.shape)
    messages: core.constexpr = _ranks._by_library() and _is_message(plan, x.handle.dtype.element_ty)
    number = _ranks._own_number(count, x.spec.ranks())
    own = _transfer._part(x.spec.group(to), number)
    begin = _transfer._box(x, to, own, number, plan[1], plan[0])[2]
    _ranks._barrier(count, to.ranks(), None)
    for piece in range(_ranks._program(), _transfer._tiles(plan, most), _transfer._programs()):
        at = _transfer._tile(x, to, piece, plan, most)
        # (In messages it stores its own alone.)
        for k in core.static_range(members - 1 if messages else 0, members):
            place = (own + 1 + k) % members
            theirs = _transfer._at(x, to, number, place)
            send = _transfer._box(x, to, number * 0, theirs, plan[1], plan[0])[1]
            value = core.load(x.handle + send + at[0], mask=at[2])
            there = _ranks._look_up(theirs, x.spec.ranks())
            core.store(_ranks._of_rank(count, out + begin + at[1], there), value, mask=at[2])
    if messages:
        _send(x, to, out, count)
    _ranks._barrier(count, to.ranks(), None)


@jit
def _staging(count: core.constexpr, dtype: core.constexpr, size: core.constexpr):
    """This program's staging, of so many bytes, and how many programs have some."""
    memory = _ranks._memory(count)
    taking = core.minimum(_transfer._programs(), core.load(memory + _ranks.STAGING_BYTES) // size)
    return _ranks._as(_ranks._part(memory, _ranks.STAGING) + _ranks._program() * size, dtype), taking


@jit
def _given(x, to: core.constexpr, item, rows, plan: core.constexpr, tile: core.constexpr):
    """What a turn sends: of each member where it lies in this member's part, and what of it there is."""
    if x.spec.transition(to) == "all-reduce":
        members: core.constexpr = x.spec.members(to)
        at = (item * members + rows[0])[:, :, None] * tile + core.arange(0, tile)[None, None, :]
        return at, at < _transfer._product(plan[0])
    else:
        at = _transfer._tile(x, to, item, plan, tile)
        begin = _transfer._box(x, to, rows[0] * 0, rows[1], plan[1], plan[0])[1]
        return begin[:, :, None] + at[0][None, :, :], at[2][None, :, :]


@jit
def _made(x, to: core.constexpr, item, own, plan: core.constexpr, tile: core.constexpr):
    """What a turn makes: where it lies in the new part, and what of it there is."""
    if x.spec.transition(to) == "all-reduce":
        members: core.constexpr = x.spec.members(to)
        at = (item * members + own).to(core.int64) * tile + core.arange(0, tile)[None, :]
        return at, at < _transfer._product(plan[0])
    else:
        at = _transfer._tile(x, to, item, plan, tile)
        return at[1], at[2]


@jit
def _length(at, elements: core.constexpr, tile: core.constexpr, size: core.constexpr):
    # The bytes of a tile that there are.
    return core.maximum(core.minimum(elements - at, tile), 0) * size


@jit
def _send_tiles(x, to: core.constexpr, item, piece, tile: core.constexpr, count: core.constexpr):
    """What a turn sends of partial sums that become whole, as messages: the tile of each other member to this one's place there; its own is copied."""
    size: core.constexpr = _transfer._itemsize(x.handle.dtype.element_ty)
    members: core.constexpr = x.spec.members(to)
    elements: core.constexpr = _transfer._product(x.spec.local_shape(x.shape))
    number = _ranks._own_number(count, x.spec.ranks())
    own = _transfer._part(x.spec.group(to), number)
    for k in core.static_range(members - 1):
        place = (own + 1 + k) % members
        at = (item * members + place) * tile
        rank = _transfer._member(x, to, number, place)
        there = _ranks._of_rank(count, piece + own * tile, rank)
        _ranks._send(there, x.handle + at, _length(at, elements, tile, size), released=True)
    at = (item * members + own) * tile + core.arange(0, tile)
    core.store(piece + own * tile + core.arange(0, tile), core.load(x.handle + at, mask=at < elements))


@jit
def _send_sums(x, to: core.constexpr, item, out, tile: core.constexpr, count: core.constexpr):
    """Sends all others the tile that this member has added up, from where it stays."""
    size: core.constexpr = _transfer._itemsize(x.handle.dtype.element_ty)
    members: core.constexpr = x.spec.members(to)
    elements: core.constexpr = _transfer._product(x.spec.local_shape(x.shape))
    number = _ranks._own_number(count, x.spec.ranks())
    own = _transfer._part(x.spec.group(to), number)
    at = (item * members + own) * tile
    length = _length(at, elements, tile, size)
    for k in core.static_range(members - 1):
        rank = _transfer._member(x, to, number, (own + 1 + k) % members)
        _ranks._send(_ranks._of_rank(count, out + at, rank), out + at, length, released=k > 0)


@jit
def _inside(high: core.constexpr, wide: core.constexpr):
    # Where the elements of a tile lie in a piece of staging.
    return core.arange(0, high)[:, None] * wide + core.arange(0, wide)[None, :]


@jit
def summed(x, to: core.constexpr, out, count: core.constexpr, size: core.constexpr):
    """Sums that become split, or whole."""
    members: core.constexpr = x.spec.members(to)
    plan: core.constexpr = x.spec.boxes(to, x.shape)
    becomes_whole: core.constexpr = x.spec.transition(to) == "all-reduce"
    tile: core.constexpr = _tile(members, size)
    tiles: core.constexpr = (
        _transfer._pieces(_transfer._product(plan[0]), members * tile)
        if becomes_whole
        else _transfer._tiles(plan, tile)
    )
    me, memory = _ranks._rank(count), _ranks._memory(count)
    own = _transfer._part(x.spec.group(to), _ranks._number_of(me, x.spec.ranks()))
    rows = _rows(x, to, own, members)
    peers = rows[2]
    found = _staging(count, x.handle.dtype.element_ty, 2 * members * tile * size)
    staging, taking = found[0], found[1]
    full = _ranks._flags(memory, _ranks._group(x.spec.ranks() + ("ring",), _ranks.GROUPS))
    free = _ranks._flags(memory, _ranks._group(x.spec.ranks() + ("free",), _ranks.GROUPS))
    told, freed = _ranks._of_rank(count, full, peers) + me, _ranks._of_rank(count, free, peers) + me
    there = (_ranks._of_rank(count, staging, peers) + own * tile)[:, :, None]
    messages: core.constexpr = becomes_whole and _ranks._by_library() and tile * size >= LEAST_SENT
    if becomes_whole:
        _ranks._barrier(count, to.ranks(), None)
    program = _ranks._program()
    turns = core.maximum(0, (tiles - program + taking - 1) // taking) * (program < taking).to(core.int64)
    for turn in range(turns + core.minimum(turns, 1)):
        piece = turn % 2 * (members * tile)
        if turn < turns:
            if turn > 1:
                _ranks._take(memory, free + peers)
            if messages:
                _send_tiles(x, to, program + turn * taking, staging + piece, tile, count)
            else:
                given = _given(x, to, program + turn * taking, rows, plan, tile)
                value = core.load(x.handle + given[0], mask=given[1])
                core.store(there + piece + _inside(value.shape[1], value.shape[2])[None, :, :], value)
            core.debug_barrier()
            core.atomic_add(told, 1, sem="release", scope="sys")
        if turn > 0:
            _ranks._take(memory, full + peers)
            made = _made(x, to, program + (turn - 1) * taking, own, plan, tile)
            come = staging + (members * tile - piece) + _inside(made[1].shape[0], made[1].shape[1])
            total = _transfer._added_as(core.load(come))
            for k in core.static_range(1, members):
                total = total + _transfer._added_as(core.load(come + k * tile))
            if becomes_whole and messages:
                core.store(out + made[0], total, mask=made[1])
                _send_sums(x, to, program + (turn - 1) * taking, out, tile, count)
            elif becomes_whole:
                _store_at_all(x, to, own, out + made[0], total, made[1], count)
            else:
                core.store(out + made[0], total, mask=made[1])
            core.debug_barrier()
            core.atomic_add(freed, 1, sem="release", scope="sys")
    for _ in range(core.minimum(turns, 2)):
        _ranks._take(memory, free + peers)
    if becomes_whole:
        _ranks._barrier(count, to.ranks(), None)
