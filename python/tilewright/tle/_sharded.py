"""Tensors that are distributed over a mesh of devices, in the language itself: what is decided at compile time is in :mod:`tilewright.tle._sharding`.

A member's part of a tensor is a value, or lies in symmetric memory, in row-major order, where a pointer says. :func:`reshard` lets each member fetch
what its new part is made of from those who have it: all members meet before, so that what they have is there, and behind, so that nobody writes
to it before all have read. A value is put in the scratch of symmetric memory before; where the members are the programs of a cluster, parts are put in
buffers of their shared memory.
"""

from ..language import core
from ..language._marker import constexpr_function, jit
from ..language.standard import sum as _sum_of
from . import _clustered, _low_latency, _ranks, _transfer, distributed


@constexpr_function
def S(axis):
    """An entry of ``split``: the dimension is split over an axis, or over several."""
    return axis if isinstance(axis, tuple) else (axis,)


@constexpr_function
def P(axis):
    """An entry of ``partial``: the members along an axis, or along several, have values that are to be added up."""
    return axis if isinstance(axis, tuple) else (axis,)


#: An entry of ``split``: the dimension is whole.
B = ()


@constexpr_function
def _numbers(shape):
    # A tuple of one kind, whoever has made it: loops and branches compare.
    return tuple(int(n) for n in shape)


@core._aggregate
class ShardedTensor:
    """A tensor that is distributed as ``spec`` says; ``shape`` is that of the whole, and ``handle`` this member's part.

    :func:`tl.load` gives the part, :func:`tl.store` and the atomics write it where it lies in memory, :func:`tle.remote` reaches another member's.
    Arithmetic and elementwise functions of tensors that are distributed alike give one that is, too.
    """

    handle: core.tensor
    spec: core.constexpr
    shape: core.constexpr

    def __init__(self, handle, spec, shape):
        self.handle = handle
        self.spec = spec
        self.shape = _numbers(shape)

    def __add__(self, other):
        return _added(self, other, "add", 1)

    def __radd__(self, other):
        return _added(self, other, "add", 1)

    def __sub__(self, other):
        return _added(self, other, "sub", -1)

    def __rsub__(self, other):
        return _added(-self, other, "sub", 1)

    def __mul__(self, other):
        return _multiplied(self, other)

    def __rmul__(self, other):
        return _multiplied(self, other)

    def __truediv__(self, other):
        return _divided(self, other)

    def __rtruediv__(self, other):
        spec: core.constexpr = self.spec.mapped("div", False)
        return ShardedTensor(_scalar(other) / _value(self), spec, self.shape)

    def __pos__(self):
        return self

    def __neg__(self):
        return ShardedTensor(-_value(self), self.spec, self.shape)

    def sum(self, axis):
        """The sum along a dimension; over the parts of a split one it is still to be added up."""
        return _sum(self, self.spec.dimension(self.shape, axis))


@constexpr_function
def _without(shape, axis):
    return [shape[d] for d in range(len(shape)) if d != axis]


@constexpr_function
def _along(n, d, rank):
    return [n if k == d else 1 for k in range(rank)]


@constexpr_function
def _lies_in_order(dtype, shape):
    # Whether a member's part lies in memory, in row-major order.
    return dtype.is_ptr() and len(shape) == 0


@constexpr_function
def _bits(dtype):
    scalar = dtype.scalar
    return (scalar.element_ty if scalar.is_ptr() else scalar).primitive_bitwidth


@jit
def make_sharded_tensor(handle, sharding: core.constexpr, shape: core.constexpr = None):
    """A tensor that is distributed as ``sharding`` says, of whose parts ``handle`` is this member's: a pointer to it in symmetric memory, where it lies in
    row-major order, a block of pointers to its elements, or a block, its value.

    :param shape: the shape of the whole tensor; of a block it need not be given. Dimensions that are split divide evenly.

    Booleans are no partial sums: whether they were added up or joined would depend on who does it.
    """
    spec: core.constexpr = sharding
    core.static_assert(
        hasattr(spec, "local_shape"), "`sharding` of tle.make_sharded_tensor is what tle.sharding makes"
    )
    core.static_assert(
        len(spec.partial) == 0 or _bits(handle.dtype) > 1,
        "booleans are no partial sums: add up integers",
    )
    # Programs form the clusters of its mesh, whether or not anything moves between them.
    for d in core.static_range(spec.mesh.ndim):
        if spec.mesh.dim_levels[d] == "block_cluster":
            distributed.shard_id(spec.mesh, d)
    if _lies_in_order(handle.dtype, handle.shape):
        core.static_assert(
            shape is not None, "tle.make_sharded_tensor of a pointer needs `shape`, that of the whole tensor"
        )
        spec.local_shape(shape)
        return ShardedTensor(handle, spec, shape)
    else:
        if shape is None:
            return ShardedTensor(handle, spec, spec.global_shape(handle.shape))
        else:
            spec.check_part(shape, handle.shape)
            return ShardedTensor(handle, spec, shape)


@jit
def _offsets(shape: core.constexpr):
    # Where the elements of an array of this shape are, in row-major order.
    offsets = 0
    for d in core.static_range(len(shape)):
        at = core.reshape(core.arange(0, shape[d]), _along(shape[d], d, len(shape)))
        offsets = offsets + at * _transfer._row_stride(shape, d)
    return offsets


@jit
def _pointers(x):
    core.static_assert(
        x.handle.dtype.is_ptr(),
        "this sharded tensor is a value, and lies in no memory: it has no places to write to",
    )
    if len(x.handle.shape) > 0:
        return x.handle
    else:
        return x.handle + _offsets(x.spec.local_shape(x.shape))


@jit
def _value(x):
    """This member's part."""
    if x.handle.dtype.is_ptr():
        return core.load(_pointers(x))
    else:
        return x.handle


@jit
def _store(x, value):
    core.store(_pointers(x), value)


@jit
def _remote(ranks: core.constexpr, x, rank):
    core.static_assert(
        x.handle.dtype.is_ptr(),
        "this sharded tensor is a value, and lies in no memory that others reach: store it first",
    )
    core.static_assert(
        x.spec.is_of_ranks(), "not supported yet: tle.remote of a tensor that is sharded over programs, too"
    )
    return ShardedTensor(_ranks._of_rank(ranks, x.handle, rank), x.spec, x.shape)


# ---- operations -------------------------------------------------------------------------------------------------


@jit
def _added(a, b, operation: core.constexpr, sign: core.constexpr):
    if isinstance(b, ShardedTensor):
        spec: core.constexpr = a.spec.joined(b.spec, a.shape, b.shape, operation)
        return ShardedTensor(_value(a) + _value(b) if sign == 1 else _value(a) - _value(b), spec, a.shape)
    else:
        spec: core.constexpr = a.spec.mapped(operation, False)
        return ShardedTensor(_value(a) + _scalar(b) if sign == 1 else _value(a) - _scalar(b), spec, a.shape)


@jit
def _multiplied(a, b):
    if isinstance(b, ShardedTensor):
        spec: core.constexpr = a.spec.joined(b.spec, a.shape, b.shape, "mul")
        return ShardedTensor(_value(a) * _value(b), spec, a.shape)
    else:
        return ShardedTensor(_value(a) * _scalar(b), a.spec, a.shape)


@jit
def _divided(a, b):
    if isinstance(b, ShardedTensor):
        spec: core.constexpr = a.spec.joined(b.spec, a.shape, b.shape, "div")
        return ShardedTensor(_value(a) / _value(b), spec, a.shape)
    else:
        return ShardedTensor(_value(a) / _scalar(b), a.spec, a.shape)


@jit
def _scalar(x):
    # What is no sharded tensor is the same for all members: one number.
    value = core.to_tensor(x)
    core.static_assert(
        len(value.shape) == 0,
        "a sharded tensor and a block that is not: tle.make_sharded_tensor says how the block is distributed",
    )
    return value


@jit
def _sum(x, axis: core.constexpr):
    spec: core.constexpr = x.spec.summed(axis)
    return ShardedTensor(_sum_of(_value(x), axis), spec, _without(x.shape, axis))


# ---- transitions ------------------------------------------------------------------------------------------------


@jit
def _staged(x, count: core.constexpr):
    # A pointer to this member's part, where others reach it.
    if x.spec.is_of_programs():
        return _clustered.staged(_value(x), _transfer._product(x.spec.local_shape(x.shape)))
    elif _lies_in_order(x.handle.dtype, x.handle.shape):
        return x.handle
    else:
        part: core.constexpr = x.handle.shape
        value = _value(x)
        place = _ranks._scratch(
            count, value.dtype, _transfer._product(part) * _transfer._itemsize(value.dtype)
        )
        core.store(place + _offsets(part), value)
        return place


@jit
def _number(spec: core.constexpr, count: core.constexpr):
    # This member's number in the mesh.
    if spec.is_of_programs():
        return _clustered.number(spec.mesh)
    else:
        return _ranks._own_number(count, spec.ranks())


@jit
def _of_member(spec: core.constexpr, begin, number, offsets, count: core.constexpr):
    # What members, by their numbers, have at offsets of their parts.
    if spec.is_of_cluster():
        return _clustered.load(spec.mesh, begin, number, offsets)
    else:
        return core.load(_ranks._of_rank(count, begin, _ranks._look_up(number, spec.ranks())) + offsets)


@jit
def _meet(spec: core.constexpr, count: core.constexpr):
    if spec.is_of_cluster():
        _clustered.meet(spec.mesh)
    else:
        _ranks._barrier(count, spec.ranks(), None)


@jit
def _fetch(begin, x, to: core.constexpr, count: core.constexpr):
    """This member's part of ``x`` distributed as ``to`` says; the parts of all members lie at ``begin``."""
    shape: core.constexpr = x.shape
    rank: core.constexpr = len(shape)
    theirs: core.constexpr = x.spec.local_shape(shape)
    mine: core.constexpr = to.local_shape(shape)
    number = _number(x.spec, count)
    owner = number * 0
    stays: core.constexpr = x.spec.stays(to)
    for k in core.static_range(len(stays)):
        owner = owner + number // stays[k][1] % stays[k][0] * stays[k][1]
    offsets = 0
    for d in core.static_range(rank):
        at = (
            core.reshape(core.arange(0, mine[d]), _along(mine[d], d, rank))
            + _transfer._part(to.digits(d), number) * mine[d]
        )
        part = at // theirs[d]
        digits: core.constexpr = x.spec.digits(d)
        for k in core.static_range(len(digits)):
            owner = owner + part // digits[k][0] % digits[k][1] * digits[k][2]
        offsets = offsets + at % theirs[d] * _transfer._row_stride(theirs, d)
    if x.spec.moves(to):
        shares: core.constexpr = x.spec.sharing(to)
        first = _of_member(x.spec, begin, owner + shares[0], offsets, count)
        total = _transfer._added_as(first)
        for k in core.static_range(1, len(shares)):
            total = total + _transfer._added_as(_of_member(x.spec, begin, owner + shares[k], offsets, count))
        return total.to(first.dtype)
    else:
        return core.load(begin + offsets)


@jit
def _fetched(tensor, to: core.constexpr, count: core.constexpr):
    begin = _staged(tensor, count)
    _meet(to, count)
    value = _fetch(begin, tensor, to, count)
    _meet(to, count)
    return value


@constexpr_function
def _dtype(tensor):
    return tensor.handle.dtype.element_ty if tensor.handle.dtype.is_ptr() else tensor.handle.dtype


@constexpr_function
def _by_words(spec, to, shape, dtype):
    if spec.is_of_cluster():
        return False
    return spec.by_words(to, shape, _transfer._itemsize(dtype), _ranks.SLOT, _low_latency.OF_ALL)


@jit
def _moved(tensor, to: core.constexpr, count: core.constexpr):
    if tensor.spec.is_of_cluster() or len(to.ranks()) == count:
        return _moved_among(tensor, to, count)
    else:
        # Ranks outside the mesh do nothing.
        if _ranks._is_member(to.ranks(), _ranks._rank(count)):
            value = _moved_among(tensor, to, count)
        else:
            value = core.full(to.local_shape(tensor.shape), 0, _dtype(tensor))
        return value


@jit
def _moved_among(tensor, to: core.constexpr, count: core.constexpr):
    if _by_words(tensor.spec, to, tensor.shape, _dtype(tensor)):
        # Programs that have no slots meet.
        if _ranks._program() < core.load(_ranks._memory(count) + _ranks.SLOT_PROGRAMS):
            value = _low_latency.value_of(tensor, _value(tensor), to, count)
        else:
            value = _fetched(tensor, to, count)
        return value
    else:
        return _fetched(tensor, to, count)


@jit
def _distributed(tensor, to: core.constexpr):
    """Its value, distributed otherwise."""
    count: core.constexpr = to.ranks_of_launch()
    if tensor.spec.moves(to):
        return ShardedTensor(_moved(tensor, to, count), to, tensor.shape)
    elif tensor.spec == to:
        return ShardedTensor(_value(tensor), to, tensor.shape)
    else:
        begin = _staged(tensor, count)
        if not _lies_in_order(tensor.handle.dtype, tensor.handle.shape):
            core.debug_barrier()
        value = _fetch(begin, tensor, to, count)
        if not _lies_in_order(tensor.handle.dtype, tensor.handle.shape):
            core.debug_barrier()
        return ShardedTensor(value, to, tensor.shape)


@jit
def reshard(tensor, spec: core.constexpr, out=None, algorithm: core.constexpr = None):
    """A sharded tensor distributed otherwise. Along each axis of the mesh: what was whole is split (nothing is moved), what was split is gathered or
    split along another dimension, and partial sums are added up, whole or in parts. All members of the mesh must come here; ranks outside it may, and do nothing.

    Sums are made in the tensor's dtype (of 8-bit floats in float32, and rounded where they are handed on in a ring), in one order at all members, so that all have the same. What is whole or split cannot become a partial sum.

    :param out: where this member's new part is to lie: a pointer into symmetric memory, the same on all ranks, of the tensor's dtype. The tensor lies in memory,
        too, and may be of any size: the programs of the grid, the same on all ranks, share the work tile by tile. What each has stored at the
        other end is seen by all programs behind the kernel, or a barrier of them all. Without ``out`` each program has the result as a value.
    :param algorithm: with ``out``. ``"one_shot"``: each member fetches, and adds up, all that it gets; for any transition. ``"ring"``, where along some axes
        sums become whole or split, or what is split becomes whole: shares go around from neighbour to neighbour (sums begin with another member in
        each). ``"two_shot"``, where sums become whole: each adds up a share and hands it to all. ``"push"`` and ``"low_latency"``, where there is a ring, and where what is split
        along a dimension becomes split along another one: members store what others need, by tiles, or in words with flags, for which nobody meets. ``"low_latency_two_shot"``, where sums become whole: two shots in such words. Without it the cheapest by the model of
        ``docs/distributed.md``.
    """
    core.static_assert(
        isinstance(tensor, ShardedTensor),
        "tle.reshard takes a sharded tensor: tle.make_sharded_tensor makes one",
    )
    core.static_assert(hasattr(spec, "local_shape"), "`spec` of tle.reshard is what tle.sharding makes")
    spec.local_shape(tensor.shape)
    if out is None:
        core.static_assert(algorithm is None, "algorithm of tle.reshard goes with `out`")
        if tensor.spec.is_of_several_kinds():
            inner: core.constexpr = tensor.spec.within(spec, tensor.shape)
            part = ShardedTensor(tensor.handle, inner[0], inner[2])
            moved = _distributed(part, inner[0].movable(inner[1]))
            return ShardedTensor(moved.handle, spec, tensor.shape)
        else:
            return _distributed(tensor, tensor.spec.movable(spec))
    else:
        to: core.constexpr = spec
        core.static_assert(
            tensor.spec.is_of_ranks(),
            "`out` of tle.reshard is for tensors over nodes and devices, not over programs",
        )
        core.static_assert(
            _lies_in_order(tensor.handle.dtype, tensor.handle.shape),
            "tle.reshard with `out` takes a tensor that lies in memory, by the pointer to its first element; this one is a value, or a block of pointers",
        )
        core.static_assert(
            out.dtype == tensor.handle.dtype and len(out.shape) == 0,
            "`out` of tle.reshard must be a pointer to the tensor's dtype",
        )
        _transfer.move(tensor, to, out, algorithm)
        return ShardedTensor(out, to, tensor.shape)


@jit
def _fetched_together(a, b, plan: core.constexpr):
    """The operands of a product in a cluster, as it takes them: those that lie in memory, whole along an axis, by copies that the members along it share."""
    left: core.constexpr = a.spec.shared_along(plan[0], _lies_in_order(a.handle.dtype, a.handle.shape))
    right: core.constexpr = b.spec.shared_along(plan[1], _lies_in_order(b.handle.dtype, b.handle.shape))
    core.static_assert(
        left is not None or right is not None,
        "multicast of tle.distributed_dot: no operand lies in memory and is whole along an axis of a cluster of 2, 4, 8 or 16 programs",
    )
    # Members meet when there is room for what they bring each other, and when all have it.
    if left is not None:
        of_left: core.constexpr = a.spec.local_shape(a.shape)
        first = _clustered.room(a.handle, of_left, _transfer._itemsize(a.handle.dtype.element_ty))
    if right is not None:
        of_right: core.constexpr = b.spec.local_shape(b.shape)
        second = _clustered.room(b.handle, of_right, _transfer._itemsize(b.handle.dtype.element_ty))
    _clustered.meet(a.spec.mesh)
    if left is not None:
        _clustered.fetch(a.spec.mesh, left, of_left, first[0], first[1], first[2])
    if right is not None:
        _clustered.fetch(b.spec.mesh, right, of_right, second[0], second[1], second[2])
    if left is not None:
        x = _clustered.fetched(first[1], first[2])
    else:
        x = reshard(a, plan[0]).handle
    if right is not None:
        y = _clustered.fetched(second[1], second[2])
    else:
        y = reshard(b, plan[1]).handle
    _clustered.meet(a.spec.mesh)
    return x, y


@jit
def _product(x, y, c):
    if c is None:
        return core.dot(x, y)
    elif _dtype(c) == (core.int32 if x.dtype.is_int() else core.float32):
        return core.dot(x, y, _value(c))
    else:
        return core.dot(x, y) + _value(c)


@jit
def distributed_dot(a, b, c=None, multicast: core.constexpr = False):
    """The product of two sharded matrices. Along each axis of the mesh the operands stay where they are and the result is distributed as follows
    from it; of two that don't fit, one is gathered or cut first (then all members of the mesh must come here).

    ======  ======  ========  ============================================
    a       b       result    moved
    ======  ======  ========  ============================================
    M       whole   M         nothing
    whole   N       N         nothing
    K       K       partial   nothing
    K       whole   partial   ``b`` is cut; the same the other way around
    M, K    N       N         ``a`` is gathered
    M       K       M         ``b`` is gathered
    partial whole   partial   nothing; the same the other way around
    ======  ======  ========  ============================================

    ``c`` is added to it, and distributed as the result is. Products are added up in float32, or in int32.

    :param multicast: in a cluster, outside of loops: an operand that lies in memory, whole along an axis of the cluster, and goes into the product as it is, is
        fetched once for all members along that axis, each of which brings a part of it to all by the copy engine (on Hopper). All members of
        the mesh must come here. It is an error where there is no such operand, or the copy engine cannot move it in equal parts.
        In a loop the operand would lie elsewhere each time, and descriptors of copies by the copy engine are made outside of loops.
    """
    core.static_assert(
        isinstance(a, ShardedTensor) and isinstance(b, ShardedTensor),
        "tle.distributed_dot takes sharded tensors: tle.make_sharded_tensor makes them",
    )
    plan: core.constexpr = a.spec.product(b.spec, a.shape, b.shape)
    if c is not None:
        plan[2].check_accumulator(c.spec, plan[3], c.shape)
    if multicast:
        operands = _fetched_together(a, b, plan)
        return ShardedTensor(_product(operands[0], operands[1], c), plan[2], plan[3])
    else:
        left = reshard(a, plan[0])
        right = reshard(b, plan[1])
        return ShardedTensor(_product(left.handle, right.handle, c), plan[2], plan[3])
