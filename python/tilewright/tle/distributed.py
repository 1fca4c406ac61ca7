"""``tle.distributed``: meshes of programs, clusters and devices, and what goes on between their members."""

from __future__ import annotations

import dataclasses as _dataclasses
import math as _math
import operator as _operator
from collections.abc import Mapping as _Mapping

from ..language._marker import also, builtin, constexpr_function, explain_missing, not_supported_yet
from ._ranks import n_pes, signal, signal_wait
from ._sharded import B, P, S, ShardedTensor, distributed_dot, make_sharded_tensor, reshard
from ._sharding import ShardingSpec

_NOT_YET = (
    "BarrierKind",
    "GroupKind",
    "create_comm_tensor",
    "get_mem_pool",
)


class MemoryOrder:
    """What a barrier orders, besides waiting: what was written before it (``RELEASE``), what is read behind it (``ACQUIRE``), or both."""

    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acqrel"


globals().update(not_supported_yet(__name__, _NOT_YET))


def create_dist_tensor(t):
    """What a kernel takes as the memory of other ranks: a tensor in symmetric memory, whose place on another rank is ``tle.remote(it, rank, space="device",
    dtype=…, offset=…)``.

    :raises ValueError: the tensor does not lie in symmetric memory (:func:`tilewright.distributed.empty`).
    """
    from .. import distributed

    return distributed.registered(t)


def cleanup_communicator():
    """Ends what :func:`tilewright.distributed.init` began."""
    from .. import distributed

    distributed.finish()


#: The levels of a mesh, from the outermost.
_LEVELS = ("node", "device", "chiplet", "block_cluster", "block")


@_dataclasses.dataclass(frozen=True)
class MeshConfig:
    """The topology of a mesh by its levels: what a dict with these keys says. A level that is ``None`` is not there."""

    node: object = None
    device: object = None
    block_cluster: object = None
    block: object = None
    chiplet: object = None


class device_mesh:
    """The members that work on one problem, as a grid of named axes: nodes, devices, clusters' blocks and blocks.

    ``topology`` is a :class:`MeshConfig` or a dict of levels, from the outermost: ``node``, ``device``, ``chiplet``, ``block_cluster``,
    ``block``. A level is an int, one axis of its name, or a list of ``(axis name, size)``. Members have physical ids in row-major order
    of the whole mesh; ``mesh[...]`` is a part of it with the ids that it selects. A kernel takes a mesh as a ``tl.constexpr``, or makes it.
    An axis of blocks with ``cluster`` in its name is one of ``block_cluster``.

    :raises TypeError: what ``topology`` holds is of another type.
    :raises ValueError: a level or an axis has no fitting name or size.
    """

    def __init__(self, topology):
        names, shape, kinds = _axes_of(topology)
        self._set(shape, names, kinds, tuple(range(_math.prod(shape))), (shape, names, kinds))

    #: What a kernel has read of it is not read again at each launch.
    _unchanging = True

    def _set(self, shape, names, kinds, ids, launch):
        fields = {"shape": shape, "dim_names": names, "physical_ids": ids}
        # Those of the mesh that this one is a part of.
        fields |= zip(("launch_shape", "launch_dim_names", "launch_levels"), launch)
        # The level of each axis; `None` where a reshape has put axes of several together.
        fields["dim_levels"] = kinds
        # Each launch that takes it asks for its hash.
        fields["_hash"] = hash(tuple(fields.values()))
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name, value):
        raise AttributeError(f"a device_mesh does not change: `{name}` cannot be set")

    def _like(self, shape, names, kinds, ids):
        mesh = object.__new__(device_mesh)
        mesh._set(shape, names, kinds, ids, (self.launch_shape, self.launch_dim_names, self.launch_levels))
        return mesh

    @property
    def ndim(self):
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self):
        """The number of members."""
        return len(self.physical_ids)

    def __getitem__(self, key):
        keys = key if isinstance(key, tuple) else (key,)
        dots = [i for i, k in enumerate(keys) if k is ...]
        if len(dots) > 1:
            raise IndexError("an index of a mesh may have one ellipsis")
        given = len(keys) - len(dots)
        if given > self.ndim:
            raise IndexError(f"{given} indices for a mesh of {self.ndim} axes")
        at = dots[0] if dots else len(keys)
        rest = (slice(None),) * (self.ndim - given)
        keys = (*keys[:at], *rest, *keys[at + len(dots) :])
        chosen, kept = [], []
        for d, (k, n) in enumerate(zip(keys, self.shape)):
            if isinstance(k, slice):
                chosen.append(range(n)[k])
                if not chosen[-1]:
                    raise ValueError(f"{k} selects nothing of axis {self.dim_names[d]!r} of size {n}")
                kept.append(d)
            else:
                i = _integer(k, "an index of a mesh must be an int, a slice or an ellipsis")
                if not -n <= i < n:
                    raise IndexError(f"index {i} is out of range for axis {self.dim_names[d]!r} of size {n}")
                chosen.append((i % n,))
        places = [0]
        for n, indices in zip(self.shape, chosen):
            places = [place * n + i for place in places for i in indices]
        return self._like(
            tuple(len(chosen[d]) for d in kept),
            tuple(self.dim_names[d] for d in kept),
            tuple(self.dim_levels[d] for d in kept),
            tuple(self.physical_ids[place] for place in places),
        )

    @constexpr_function
    def _item(self, keys):
        # What a kernel writes in brackets: an int, or (start, stop, step) of a slice.
        return self[tuple(slice(*k) if isinstance(k, tuple) else k for k in keys)]

    @constexpr_function
    def reshape(self, *shape):
        """The same members in the same order as a grid of another shape. Axes keep their names where all do, and else are ``dim0``, …"""
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = tuple(shape[0])
        shape = tuple(_integer(n, "the shape of a mesh must be ints") for n in shape)
        for n in shape:
            if n <= 0:
                raise ValueError(f"an axis of a mesh must have a positive size, not {n}")
        if _math.prod(shape) != self.size:
            raise ValueError(f"a mesh of {self.size} members cannot be reshaped to {shape}")
        if shape == self.shape:
            return self._like(shape, self.dim_names, self.dim_levels, self.physical_ids)
        levels = set(self.dim_levels)
        level = levels.pop() if len(levels) == 1 else None
        names = tuple(f"dim{d}" for d in range(len(shape)))
        return self._like(shape, names, (level,) * len(shape), self.physical_ids)

    @constexpr_function
    def flatten(self):
        """The same members along one axis."""
        return self.reshape(self.size)

    def _key(self):
        return (
            *(self.shape, self.dim_names, self.dim_levels, self.physical_ids),
            *(self.launch_shape, self.launch_dim_names, self.launch_levels),
        )

    def __eq__(self, other):
        return self._key() == other._key() if isinstance(other, device_mesh) else NotImplemented

    def __hash__(self):
        return self._hash

    def __repr__(self):
        return f"DeviceMesh(shape={self.shape}, names={self.dim_names})"


def _integer(value, what):
    if isinstance(value, bool):
        raise TypeError(f"{what}, not {value!r}")
    try:
        return _operator.index(value)
    except TypeError:
        raise TypeError(f"{what}, not {value!r}") from None


def _axes_of(topology):
    """Names, sizes and levels of the axes of a topology."""
    if isinstance(topology, MeshConfig):
        levels = {level: getattr(topology, level) for level in _LEVELS}
        topology = {level: axes for level, axes in levels.items() if axes is not None}
    if not isinstance(topology, _Mapping):
        raise TypeError(f"the topology of a mesh must be a dict or a MeshConfig, not {topology!r}")
    if not topology:
        raise ValueError("the topology of a mesh is empty")
    found = []
    for level, axes in topology.items():
        if level not in _LEVELS:
            raise ValueError(f"a mesh has no level {level!r}; its levels are {', '.join(_LEVELS)}")
        if not isinstance(axes, (tuple, list)):
            axes = [(level, axes)]
        if not axes:
            raise ValueError(f"the level {level!r} of a mesh has no axes")
        for axis in axes:
            if (
                not isinstance(axis, (tuple, list))
                or len(axis) != 2
                or not isinstance(axis[0], str)
                or not axis[0]
            ):
                raise ValueError(f"an axis of the level {level!r} must be (name, size), not {axis!r}")
            name, size = axis[0], _integer(axis[1], f"the size of axis {axis[0]!r} must be an int")
            if size <= 0:
                raise ValueError(f"the size of axis {name!r} must be positive, not {size}")
            # The name may say it, too.
            found.append((name, size, "block_cluster" if level == "block" and "cluster" in name else level))
    names, shape, levels = zip(*found)
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two axes of a mesh are named {name!r}")
    return names, shape, levels


def _mesh(topology):
    # The mesh that a kernel makes: of a dict it gives the items.
    return device_mesh(dict(topology) if isinstance(topology, tuple) else topology)


@builtin(on_host=True)
@also(splits="split", partials="partial")
def sharding(mesh, split=None, partial=None):
    """How a tensor is distributed over a mesh, as a :class:`ShardingSpec`.

    :param split: for each dimension the axes of the mesh that split it: a name, a list of names (the first varies slowest), ``tle.S(…)``, or ``tle.B`` or
        ``None`` where it is whole. Dimensions behind the last entry are whole.
    :param partial: axes along which members have values that are still to be added up: names or ``tle.P(…)``.

    Along all other axes of the mesh each member has the same.

    :raises ValueError: an axis that the mesh has not, or that is named twice.
    """
    return ShardingSpec(mesh, split, partial)


@builtin
def shard_id(mesh, axis, device_dptr=None):
    """The coordinate of this program along ``axis`` of a mesh: a name or a (negative) index. int32.

    Along axes of ``block_cluster`` it is the program's place in its cluster, row-major over these axes. Along axes of ``block`` it is that
    of its cluster, or of the program where there are no clusters, by its number in the grid (the first axis of the grid varies fastest)
    modulo the number of blocks. Along axes of ``node`` and ``device`` it is that of the launch's rank, row-major over them, nodes first. Axes of
    size 1 give 0. Of a part of a mesh, programs that are no members get any number. The level ``chiplet`` is not supported yet, and
    ``device_dptr`` neither: the launch says the rank.

    A mesh with axes of ``block_cluster`` makes the kernel run in clusters of so many programs, and the launch's grid count clusters.
    """


@builtin
def distributed_barrier(
    mesh=None,
    device_dptr=None,
    space=None,
    group_kind=None,
    barrier_kind=None,
    order=None,
    index=0,
    context_id=0,
    memory_scope=None,
):
    """The members of a mesh, or of a part of one, wait for each other; for other programs it does nothing.

    What any member has written before, to whatever memory, all members see after. A mesh of blocks alone, whole, is for all programs of
    the grid, which must fit the GPU at once (a cooperative launch). Without a mesh it is for the programs of the kernel's cluster.
    A mesh of nodes and devices joins the programs of one id on each of them; with axes of blocks, too, all programs of all of them. ``order`` is a
    :class:`MemoryOrder`, ``ACQ_REL`` where none is given. For the programs of a cluster, all of them, it may be ``RELAXED``: they have all come, and no
    more is known; that is what must be so before they reach each other's buffers, and costs less. Members that wait for one that never comes are an error on the CPU. The other
    parameters are not supported yet: every barrier is of whole programs, and of devices at system scope.
    """


@builtin
def remote(
    tensor,
    shard_id,
    scope=None,
    space="cluster",
    dtype=None,
    offset=None,
    coopkind=None,
    context_id=0,
):
    """The same place in the shared memory of another program of the cluster, or in the memory of another device.

    ``tensor`` is a buffer, which :func:`tle.gpu.local_ptr` then points into, or pointers into one. ``shard_id`` says which program: a member of
    ``scope``, a mesh of one cluster's programs or a part of one, by its number or as a tuple of one coordinate for each axis; without ``scope`` its rank
    in the kernel's cluster. Both may be known at run time only. :func:`tl.load`, :func:`tl.store` and the atomics take such pointers.

    What members write is seen by others behind a :func:`distributed_barrier`, and in no order before. A program of a kernel that uses this ends
    when all of its cluster are done, so that its buffers are there for as long as others reach them.

    Of pointers to symmetric memory (:mod:`tilewright.distributed`), with a ``scope`` of nodes and devices, or ``space`` ``"device"`` or ``"node"``, it is the
    same place of another rank; ``offset`` counts elements from there, of ``dtype`` where that is given. Without ``scope`` ``shard_id`` is the rank. The other parameters are not
    supported yet.
    """


__all__ = [
    "B",
    "MemoryOrder",
    "MeshConfig",
    "P",
    "S",
    "ShardedTensor",
    "ShardingSpec",
    "device_mesh",
    "distributed_barrier",
    "distributed_dot",
    "make_sharded_tensor",
    "n_pes",
    "remote",
    "reshard",
    "shard_id",
    "sharding",
    "signal",
    "signal_wait",
    "cleanup_communicator",
    "create_dist_tensor",
    *_NOT_YET,
]
__getattr__ = explain_missing(__name__, __all__)
