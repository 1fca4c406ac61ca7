"""Moving sharded tensors from memory to memory: the programs of the grid share the tiles, and each meets those of its own id on the other ranks.

=============  ==================================================================================================================
``one_shot``   Each member fetches what its new part is made of, from those who have it. Any transition. They meet before and behind.
``two_shot``   Sums that become whole: of each program's tiles every member adds up each n-th, and stores it at all. They meet before and behind.
``ring``       From neighbour to neighbour; they meet before, and then a member waits for its neighbours alone, by flags of their own. Sums that
               become whole: the same tiles, first each adds its own to what has come and hands it on, then what is whole goes around.
               What becomes whole: parts go around, from where they come to where they stay. Sums that become split: each tile of a share goes
               around through scratch, of which there are two pieces, and comes last to the member whose it is.
``push``       Each member stores what others need of its part, by tiles (:mod:`tilewright.tle._push`). They meet, but where sums become split.
``low_latency``  Each member sends what others need of its part in words with flags (:mod:`tilewright.tle._low_latency`): nobody meets.
``low_latency_two_shot``  Sums that become whole, in such words: each member adds up a share of what it is sent, and sends that to all.
=============  ==================================================================================================================

:mod:`tilewright.tle._cost` says what each costs.
"""

from ..language import core
from ..language._marker import constexpr_function, jit
from . import _low_latency, _push, _ranks

#: Bytes of a tile.
TILE = core.constexpr(16384)


@constexpr_function
def _row_stride(shape, d):
    stride = 1
    for k in range(d + 1, len(shape)):
        stride = stride * shape[k]
    return stride


@constexpr_function
def _product(shape):
    size = 1
    for n in shape:
        size = size * n
    return size


@constexpr_function
def _itemsize(dtype):
    return max(8, dtype.primitive_bitwidth) // 8


@constexpr_function
def _pieces(n, by):
    return (n + by - 1) // by


@constexpr_function
def _fits(n, most):
    # The least power of two that is at least n, and at most so many.
    size = 1
    while size < n and size < most:
        size = size * 2
    return size


@constexpr_function
def _least(elements, itemsize):
    # Elements of a tile: less where there are few, so that many programs have some, but some for each of their threads.
    tile = TILE // itemsize
    while tile * itemsize > 4096 and tile * 128 > elements:
        tile = tile // 2
    return tile


@jit
def _part(digits: core.constexpr, number):
    # Which part of a dimension a member has, or which of a group it is.
    part = number * 0
    for k in core.static_range(len(digits)):
        part = part + number // digits[k][2] % digits[k][1] * digits[k][0]
    return part


@jit
def _programs():
    # How many the grid has.
    return core.num_programs(0).to(core.int64) * core.num_programs(1) * core.num_programs(2)


@jit
def move(x, to: core.constexpr, out, algorithm: core.constexpr):
    """``x``, a sharded tensor in memory, distributed as ``to`` says, at ``out`` of each member. Ranks outside the mesh do nothing."""
    count: core.constexpr = to.ranks_of_launch()
    members: core.constexpr = to.ranks()
    if len(members) == count:
        _move(x, to, out, algorithm, count)
    else:
        if _ranks._is_member(members, _ranks._rank(count)):
            _move(x, to, out, algorithm, count)


@jit
def _move(x, to: core.constexpr, out, algorithm: core.constexpr, count: core.constexpr):
    size: core.constexpr = _itemsize(x.handle.dtype.element_ty)
    how: core.constexpr = x.spec.algorithm(to, x.shape, size, algorithm)
    if how == "one_shot":
        _one_shot(x, to, out, count, _least(_product(to.local_shape(x.shape)), size))
    elif how == "two_shot":
        _two_shot(x, to, out, count, TILE // size)
    elif how == "push" and x.spec.transition(to) == "all-gather":
        _push.whole(x, to, out, count, TILE // size)
    elif how == "push" and x.spec.transition(to) == "all-to-all":
        _push.across(x, to, out, count, _least(_product(to.local_shape(x.shape)), size))
    elif how == "push":
        _push.summed(x, to, out, count, size)
    elif how == "low_latency":
        _low_latency.exchange(x, to, out, count, size)
    elif how == "low_latency_two_shot":
        _low_latency.two_shot(x, to, out, count, size)
    elif x.spec.transition(to) == "all-gather":
        _ring_whole(x, to, out, count, TILE // size)
    elif x.spec.transition(to) == "reduce-scatter":
        _ring_split(x, to, out, count, TILE // size // 2, size)
    else:
        _ring(x, to, out, count, TILE // size)


# ---- one shot ---------------------------------------------------------------------------------------------------


@jit
def _one_shot(x, to: core.constexpr, out, count: core.constexpr, tile: core.constexpr):
    moves: core.constexpr = x.spec.moves(to)
    if moves:
        _ranks._barrier(count, to.ranks(), None)
    plan: core.constexpr = x.spec.boxes(to, x.shape)
    box: core.constexpr = plan[0]
    rows: core.constexpr = _product(box[: plan[2]])
    columns: core.constexpr = _product(box[plan[2] :])
    wide: core.constexpr = _fits(columns, tile)
    high: core.constexpr = _fits(rows, tile // wide)
    number = _ranks._own_number(count, x.spec.ranks())
    of_box: core.constexpr = _pieces(rows, high) * _pieces(columns, wide)
    boxes: core.constexpr = _product(plan[1])
    programs = _programs()
    for item in range(_ranks._program(), boxes * of_box, programs):
        # All boxes at the same time, those that a program has one after the other, too: so each link has work all the while.
        piece = item // boxes
        which = (item + piece * boxes // programs + number) % boxes
        place = _box(x, to, which, number, plan[1], box)
        row = piece // _pieces(columns, wide) * high
        column = piece % _pieces(columns, wide) * wide
        at = _places(x, to, row, column, rows, columns, high, wide, box, plan[2])
        total = _added_as(core.load(_source(x, to, place[0], 0, count) + place[1] + at[0], mask=at[2]))
        shares: core.constexpr = len(x.spec.sharing(to))
        for k in core.static_range(1, shares):
            source = _source(x, to, place[0], k, count)
            total = total + _added_as(core.load(source + place[1] + at[0], mask=at[2]))
        core.store(out + place[2] + at[1], total, mask=at[2])
    if moves:
        _ranks._barrier(count, to.ranks(), None)


@jit
def _source(x, to: core.constexpr, owner, k: core.constexpr, count: core.constexpr):
    # Where the k-th share of what a member has begins.
    if x.spec.moves(to):
        return _ranks._of_rank(
            count, x.handle, _ranks._look_up(owner + x.spec.sharing(to)[k], x.spec.ranks())
        )
    else:
        return x.handle


@jit
def _box(x, to: core.constexpr, which, number, counts: core.constexpr, box: core.constexpr):
    """Of a box of this member's new part: the number of the member who has it, where it begins there, and here."""
    theirs: core.constexpr = x.spec.local_shape(x.shape)
    mine: core.constexpr = to.local_shape(x.shape)
    owner = number * 0
    stays: core.constexpr = x.spec.stays(to)
    for k in core.static_range(len(stays)):
        owner = owner + number // stays[k][1] % stays[k][0] * stays[k][1]
    there = which.to(core.int64) * 0
    here = which.to(core.int64) * 0
    for d in core.static_range(len(box)):
        inside = which // _row_stride(counts, d) % counts[d] * box[d]
        at = _part(to.digits(d), number) * mine[d] + inside
        part = at // theirs[d]
        digits: core.constexpr = x.spec.digits(d)
        for k in core.static_range(len(digits)):
            owner = owner + (part // digits[k][0] % digits[k][1] * digits[k][2]).to(core.int32)
        there = there + (at % theirs[d]).to(core.int64) * _row_stride(theirs, d)
        here = here + inside.to(core.int64) * _row_stride(mine, d)
    return owner, there, here


@jit
def _places(
    x,
    to: core.constexpr,
    row,
    column,
    rows: core.constexpr,
    columns: core.constexpr,
    high: core.constexpr,
    wide: core.constexpr,
    box: core.constexpr,
    inner: core.constexpr,
):
    """Of a tile of a box, from the box's beginning: where its elements are there, and here, and which there are."""
    down = row + core.arange(0, high)[:, None]
    along = column + core.arange(0, wide)[None, :]
    at = _of_box(x, to, down, along, box, inner)
    return at[0], at[1], (down < rows) & (along < columns)


@jit
def _of_box(x, to: core.constexpr, down, along, box: core.constexpr, inner: core.constexpr):
    """Where elements of a box are from its beginning, by their row and column: in the part that they come from, and in the new one."""
    theirs: core.constexpr = x.spec.local_shape(x.shape)
    mine: core.constexpr = to.local_shape(x.shape)
    there = down * 0 + along
    here = down * 0 + along
    for d in core.static_range(inner):
        index = down // _row_stride(box[:inner], d) % box[d]
        there = there + index * _row_stride(theirs, d)
        here = here + index * _row_stride(mine, d)
    return there, here


# ---- sums that become whole -------------------------------------------------------------------------------------


@jit
def _at(x, to: core.constexpr, number, at):
    """The number of the member at a place of the group with which a member exchanges."""
    group: core.constexpr = x.spec.group(to)
    for k in core.static_range(len(group)):
        digit = at // group[k][0] % group[k][1]
        number = number + (digit - number // group[k][2] % group[k][1]) * group[k][2]
    return number


@jit
def _member(x, to: core.constexpr, number, at):
    # Its rank.
    return _ranks._look_up(_at(x, to, number, at), x.spec.ranks())


@constexpr_function
def _share(size, members, tile):
    # Elements of a tile: less where there are few, so that every member has some.
    return _fits(_pieces(size, 8 * members), tile)


@jit
def _added_as(values):
    """Partial sums as they are added up: of 8 bits in float32, since no arithmetic takes 8-bit floats; all others in their own type."""
    if values.dtype.is_fp8():
        return values.to(core.float32)
    else:
        return values


@jit
def _two_shot(x, to: core.constexpr, out, count: core.constexpr, most: core.constexpr):
    members: core.constexpr = len(x.spec.sharing(to))
    size: core.constexpr = _product(x.spec.local_shape(x.shape))
    tile: core.constexpr = _share(size, members, most)
    number = _ranks._own_number(count, x.spec.ranks())
    own = _part(x.spec.group(to), number)
    _ranks._barrier(count, to.ranks(), None)
    for begin in range((_ranks._program() * members + own) * tile, size, _programs() * members * tile):
        at = begin + core.arange(0, tile)
        source = _ranks._of_rank(count, x.handle, _member(x, to, number, 0))
        total = _added_as(core.load(source + at, mask=at < size))
        for k in core.static_range(1, members):
            source = _ranks._of_rank(count, x.handle, _member(x, to, number, k))
            total = total + _added_as(core.load(source + at, mask=at < size))
        for k in core.static_range(members):
            there = _member(x, to, number, (own + k) % members)
            core.store(_ranks._of_rank(count, out, there) + at, total, mask=at < size)
    _ranks._barrier(count, to.ranks(), None)


@jit
def _ring(x, to: core.constexpr, out, count: core.constexpr, most: core.constexpr):
    members: core.constexpr = len(x.spec.sharing(to))
    size: core.constexpr = _product(x.spec.local_shape(x.shape))
    tile: core.constexpr = _share(size, members, most)
    me = _ranks._rank(count)
    number = _ranks._number_of(me, x.spec.ranks())
    own = _part(x.spec.group(to), number)
    next = _member(x, to, number, (own + 1) % members)
    previous = _member(x, to, number, (own + members - 1) % members)
    _ranks._barrier(count, to.ranks(), None)
    memory = _ranks._memory(count)
    flags = _ranks._flags(memory, _ranks._group(x.spec.ranks() + ("ring",), _ranks.GROUPS))
    there = _ranks._of_rank(count, out, next)
    for step in range(2 * members - 2):
        # What has come is handed on, until the last step but one of each round: there it is whole.
        share = (own + 2 * members - step) % members
        if step > 0:
            _ranks._take(memory, flags + previous)
        for begin in range((_ranks._program() * members + share) * tile, size, _programs() * members * tile):
            at = begin + core.arange(0, tile)
            inside = at < size
            value = _added_as(core.load(x.handle + at, mask=inside & (step < members)))
            if step > 0:
                come = _added_as(core.load(out + at, mask=inside))
                value = come + value if step < members else come
            if step == members - 1:
                core.store(out + at, value, mask=inside)
            core.store(there + at, value, mask=inside)
        core.atomic_add(_ranks._of_rank(count, flags, next) + me, 1, sem="release", scope="sys")
    _ranks._take(memory, flags + previous)


# ---- around, what becomes whole, and sums that become split -------------------------------------------------------------


@jit
def _tile(x, to: core.constexpr, piece, plan: core.constexpr, most: core.constexpr):
    """Of a tile of a box: what :func:`_places` says."""
    rows: core.constexpr = _product(plan[0][: plan[2]])
    columns: core.constexpr = _product(plan[0][plan[2] :])
    wide: core.constexpr = _fits(columns, most)
    high: core.constexpr = _fits(rows, most // wide)
    row = piece // _pieces(columns, wide) * high
    column = piece % _pieces(columns, wide) * wide
    return _places(x, to, row, column, rows, columns, high, wide, plan[0], plan[2])


@constexpr_function
def _tiles(plan, most):
    # How many a box has.
    rows, columns = _product(plan[0][: plan[2]]), _product(plan[0][plan[2] :])
    wide = _fits(columns, most)
    return _pieces(rows, _fits(rows, most // wide)) * _pieces(columns, wide)


@jit
def _ring_whole(x, to: core.constexpr, out, count: core.constexpr, most: core.constexpr):
    # The boxes of a member's new part are the parts of the members of its group, in order.
    members: core.constexpr = x.spec.members(to)
    plan: core.constexpr = x.spec.boxes(to, x.shape)
    me = _ranks._rank(count)
    number = _ranks._number_of(me, x.spec.ranks())
    own = _part(x.spec.group(to), number)
    next = _member(x, to, number, (own + 1) % members)
    previous = _member(x, to, number, (own + members - 1) % members)
    _ranks._barrier(count, to.ranks(), None)
    memory = _ranks._memory(count)
    flags = _ranks._flags(memory, _ranks._group(x.spec.ranks() + ("ring",), _ranks.GROUPS))
    there = _ranks._of_rank(count, out, next)
    for step in range(members - 1):
        if step > 0:
            _ranks._take(memory, flags + previous)
        begin = _box(x, to, (own + members - step) % members, number, plan[1], plan[0])[2]
        for piece in range(_ranks._program(), _tiles(plan, most), _programs()):
            at = _tile(x, to, piece, plan, most)
            mine = core.load(x.handle + at[0], mask=at[2] & (step == 0))
            come = core.load(out + begin + at[1], mask=at[2] & (step > 0))
            value = core.where(step == 0, mine, come)
            core.store(out + begin + at[1], value, mask=at[2] & (step == 0))
            core.store(there + begin + at[1], value, mask=at[2])
        core.atomic_add(_ranks._of_rank(count, flags, next) + me, 1, sem="release", scope="sys")
    _ranks._take(memory, flags + previous)


@jit
def _ring_split(
    x, to: core.constexpr, out, count: core.constexpr, most: core.constexpr, size: core.constexpr
):
    # A member's new part is one box of each member's part of the group. A piece of scratch is written again when what was in it has been handed on.
    members: core.constexpr = x.spec.members(to)
    plan: core.constexpr = x.spec.boxes(to, x.shape)
    me = _ranks._rank(count)
    number = _ranks._number_of(me, x.spec.ranks())
    own = _part(x.spec.group(to), number)
    next = _member(x, to, number, (own + 1) % members)
    previous = _member(x, to, number, (own + members - 1) % members)
    scratch = _ranks._scratch(count, x.handle.dtype.element_ty, 2 * most * size)
    there = _ranks._of_rank(count, scratch, next)
    _ranks._barrier(count, to.ranks(), None)
    memory = _ranks._memory(count)
    full = _ranks._flags(memory, _ranks._group(x.spec.ranks() + ("ring",), _ranks.GROUPS))
    free = _ranks._flags(memory, _ranks._group(x.spec.ranks() + ("free",), _ranks.GROUPS))
    sent = 0
    for piece in range(_ranks._program(), _tiles(plan, most), _programs()):
        at = _tile(x, to, piece, plan, most)
        inside = core.arange(0, at[2].shape[0])[:, None] * at[2].shape[1] + core.arange(0, at[2].shape[1])
        for step in range(members):
            share = _at(x, to, number, (own + 2 * members - 1 - step) % members)
            source = x.handle + _box(x, to, number * 0, share, plan[1], plan[0])[1] + at[0]
            value = _added_as(core.load(source, mask=at[2]))
            if step > 0:
                _ranks._take(memory, full + previous)
                value = _added_as(core.load(scratch + (sent - 1) % 2 * most + inside, mask=at[2])) + value
            if step < members - 1:
                if sent > 1:
                    _ranks._take(memory, free + next)
                core.store(there + sent % 2 * most + inside, value, mask=at[2])
                core.atomic_add(_ranks._of_rank(count, full, next) + me, 1, sem="release", scope="sys")
                sent += 1
            else:
                core.store(out + at[1], value, mask=at[2])
            if step > 0:
                core.atomic_add(_ranks._of_rank(count, free, previous) + me, 1, sem="release", scope="sys")
    for _ in range(core.minimum(sent, 2)):
        _ranks._take(memory, free + next)
