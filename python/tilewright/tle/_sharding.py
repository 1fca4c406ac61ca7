"""How tensors are distributed over a mesh: specifications, and all that is decided about them before a kernel runs.

A kernel calls the methods of a specification at compile time; what they refuse is an error of the call in the kernel.
"""

from __future__ import annotations

import math as _math
import weakref as _weakref

from ..language._marker import constexpr_function
from . import _cost

#: Kinds of members, by the levels of a mesh: how tensors are moved between them.
_KINDS = {"node": "ranks", "device": "ranks", "block_cluster": "cluster", "block": "blocks"}


def _axes(entry):
    """The axes that an entry of ``split`` or ``partial`` names: a name, several, ``S(…)``, ``P(…)``, ``B`` or ``None``."""
    if entry is None:
        return ()
    if isinstance(entry, str):
        return (entry,)
    if isinstance(entry, (tuple, list)) and all(isinstance(axis, str) for axis in entry):
        return tuple(entry)
    raise TypeError(f"an entry of a sharding must be a name of an axis, several, or tle.B, not {entry!r}")


#: Specifications by what they say: there is one of each, so that those a kernel makes anew, in each step of a loop, are the same value.
_KNOWN = _weakref.WeakValueDictionary()


class ShardingSpec:
    """How a tensor is distributed: ``split`` says for each dimension over which axes of ``mesh`` it is split, ``partial`` of which axes' members it is
    the sum; of all other axes (``broadcast``) each member has the same. Specifications are equal where all that is."""

    __slots__ = ("__weakref__", "_hash", "_mesh", "_partial", "_split")

    def __new__(cls, mesh, split=None, partial=None):
        from .distributed import device_mesh

        if not isinstance(mesh, device_mesh):
            raise TypeError(f"the mesh of a sharding must be a tle.device_mesh, not {mesh!r}")
        split = tuple(_axes(entry) for entry in ((split,) if isinstance(split, str) else split or ()))
        while split and not split[-1]:
            # Trailing dimensions that are whole need not be said.
            split = split[:-1]
        partial = tuple(
            axis
            for entry in ((partial,) if isinstance(partial, str) else partial or ())
            for axis in _axes(entry)
        )
        named = [axis for axes in split for axis in axes]
        for axis in (*named, *partial):
            if axis not in mesh.dim_names:
                raise ValueError(f"the mesh has no axis {axis!r}; its axes are {', '.join(mesh.dim_names)}")
        for axis in named:
            if named.count(axis) > 1:
                raise ValueError(f"the axis {axis!r} splits the tensor twice")
            if axis in partial:
                raise ValueError(f"the axis {axis!r} is both split and partial")
        for axis in partial:
            if partial.count(axis) > 1:
                raise ValueError(f"the axis {axis!r} is partial twice")
        partial = tuple(sorted(partial))
        key = (mesh, split, partial)
        made = object.__new__(cls)
        # Each launch that takes it asks for its hash.
        for name, value in zip(("_mesh", "_split", "_partial", "_hash"), (*key, hash(key))):
            object.__setattr__(made, name, value)
        return _KNOWN.setdefault(key, made)

    def __reduce__(self):
        return ShardingSpec, self._key()

    #: What a kernel has read of it is not read again at each launch.
    _unchanging = True

    def __setattr__(self, name, value):
        raise AttributeError(f"a ShardingSpec does not change: `{name}` cannot be set")

    mesh = property(lambda self: self._mesh, doc="The mesh.")
    split = property(
        lambda self: self._split,
        doc="For each dimension the axes that split it; trailing whole ones left out.",
    )
    partial = property(
        lambda self: self._partial, doc="The axes whose members' values are still to be added up."
    )

    @property
    def broadcast(self):
        """The axes along which all members have the same."""
        return tuple(axis for axis in self._mesh.dim_names if self.axis_state(axis) == "B")

    @constexpr_function
    def axis_state(self, axis):
        """``"S"``, ``"P"`` or ``"B"``: split, partial or the same along an axis."""
        if axis not in self._mesh.dim_names:
            raise ValueError(f"the mesh has no axis {axis!r}; its axes are {', '.join(self._mesh.dim_names)}")
        if self.dim_of(axis) is not None:
            return "S"
        return "P" if axis in self._partial else "B"

    def dim_of(self, axis):
        """The dimension that an axis splits; ``None`` where it splits none."""
        return next((d for d, axes in enumerate(self._split) if axis in axes), None)

    def _key(self):
        return self._mesh, self._split, self._partial

    def __eq__(self, other):
        return self._key() == other._key() if isinstance(other, ShardingSpec) else NotImplemented

    def __hash__(self):
        return self._hash

    def __repr__(self):
        split = ", ".join("B" if not axes else f"S({'+'.join(axes)})" for axes in self._split)
        partial = f", partial {'+'.join(self._partial)}" if self._partial else ""
        return f"Sharding([{split}]{partial})"

    # ---- parts ----------------------------------------------------------------------------------------------------

    def _size(self, axis):
        return self._mesh.shape[self._mesh.dim_names.index(axis)]

    def _axes_of(self, dim):
        return self._split[dim] if dim < len(self._split) else ()

    def _parts(self, dim):
        return _math.prod(self._size(axis) for axis in self._axes_of(dim))

    @constexpr_function
    def local_shape(self, shape):
        """The shape of one member's part of a tensor of ``shape``."""
        shape = tuple(shape)
        if len(self._split) > len(shape):
            raise ValueError(
                f"{self} splits {len(self._split)} dimensions, and the tensor of shape {shape} has {len(shape)}"
            )
        for d, n in enumerate(shape):
            if n % self._parts(d):
                raise ValueError(
                    f"dimension {d} of shape {shape} does not divide into the {self._parts(d)} parts of {self}"
                )
        return tuple(n // self._parts(d) for d, n in enumerate(shape))

    @constexpr_function
    def global_shape(self, part):
        """The shape of the tensor of which each member has a part of this shape."""
        if len(self._split) > len(part):
            raise ValueError(
                f"{self} splits {len(self._split)} dimensions, and the part of shape {tuple(part)} has {len(part)}"
            )
        return tuple(n * self._parts(d) for d, n in enumerate(part))

    @constexpr_function
    def check_part(self, shape, part):
        """That a value of shape ``part`` can be a member's part of a tensor of ``shape``."""
        wanted = self.local_shape(shape)
        if tuple(part) != wanted:
            raise ValueError(
                f"a part of a tensor of shape {tuple(shape)} with {self} has the shape {wanted}, not {tuple(part)}"
            )
        return wanted

    @constexpr_function
    def is_of_ranks(self):
        """Whether the members are nodes and devices alone."""
        return all(_KINDS.get(level) == "ranks" for level in self._mesh.launch_levels)

    @constexpr_function
    def is_of_programs(self):
        """Whether the members are programs of one device."""
        return not any(_KINDS.get(level) == "ranks" for level in self._mesh.launch_levels)

    @constexpr_function
    def is_of_several_kinds(self):
        """Whether :meth:`within` says how parts are moved: they are only over nodes and devices, or within a cluster."""
        return len({_KINDS.get(level) for level in self._mesh.launch_levels}) > 1

    @constexpr_function
    def movable(self, to):
        """``to``, where parts can be moved over its mesh: of nodes and devices, or of a cluster, whole; of blocks they may be cut."""
        if self.is_of_ranks():
            return to
        if self._mesh.size != _math.prod(self._mesh.launch_shape):
            raise NotImplementedError("not supported yet: tensors moved over a part of a mesh of programs")
        if any(level != "block_cluster" for level in self._mesh.launch_levels) and self.moves(to):
            raise NotImplementedError("not supported yet: tensors moved between programs that are no cluster")
        return to

    @constexpr_function
    def within(self, to, shape):
        """Of a mesh of several kinds of members, where what becomes of a tensor changes along axes of one kind: both specifications and the shape
        as the members of that kind see them, who have the same coordinates along all other axes."""
        mesh = self._mesh
        self.moves(to)
        dims = range(len(shape))
        changed = {a for a in self._partial + to._partial if (a in self._partial) != (a in to._partial)}
        for d in dims:
            before, after = self._axes_of(d), to._axes_of(d)
            changed |= set(before) ^ set(after) or (set(before) if before != after else set())
        level = dict(zip(mesh.dim_names, mesh.dim_levels))
        kinds = {_KINDS.get(level[a]) for a in changed}
        if len(kinds) > 1:
            raise NotImplementedError(
                f"not supported yet: tle.reshard from {self} to {to}, along axes of several kinds at once; take them one after the other"
            )
        if mesh.size != _math.prod(mesh.launch_shape):
            raise NotImplementedError(
                "not supported yet: tensors moved over a part of a mesh of several kinds"
            )
        kind = kinds.pop() if kinds else _KINDS.get(mesh.dim_levels[0])
        # A program's place among blocks counts those of its cluster, too.
        of_kind = {"ranks": ("ranks",), "cluster": ("cluster",), "blocks": ("cluster", "blocks")}[kind]
        own = [a for a in mesh.dim_names if _KINDS.get(level[a]) in of_kind]
        inner, rest = [], list(shape)
        for spec in (self, to):
            split = [[a for a in spec._axes_of(d) if _KINDS.get(level[a]) == kind] for d in dims]
            inner.append((split, [a for a in spec._partial if _KINDS.get(level[a]) == kind]))
        for d in dims:
            before, after = self._axes_of(d), to._axes_of(d)
            others = [a for a in before if _KINDS.get(level[a]) != kind]
            if before != after and list(before[: len(others)]) + list(after[: len(others)]) != others * 2:
                raise NotImplementedError(
                    f"not supported yet: tle.reshard from {self} to {to}: axes of other kinds must come before those that change, in dimension {d}"
                )
            rest[d] = shape[d] // _math.prod(self._size(a) for a in others)
        topology = {}
        for axis in own:
            topology.setdefault(level[axis], []).append((axis, self._size(axis)))
        part = type(mesh)(topology)
        return *(ShardingSpec(part, *of) for of in inner), tuple(rest)

    @constexpr_function
    def is_of_cluster(self):
        """Whether the members are the programs of a cluster."""
        return all(level == "block_cluster" for level in self._mesh.launch_levels)

    # ---- operations -----------------------------------------------------------------------------------------------

    @constexpr_function
    def joined(self, other, shape, other_shape, operation):
        """The specification of an elementwise ``operation`` of two sharded tensors."""
        if self._mesh != other._mesh:
            raise ValueError(
                f"{operation} of tensors on different meshes: {self} on {self._mesh}, {other} on {other._mesh}"
            )
        if self != other:
            raise ValueError(
                f"{operation} of tensors that are distributed differently: {self} and {other}; tle.reshard one of them"
            )
        if tuple(shape) != tuple(other_shape):
            raise ValueError(
                f"{operation} of sharded tensors of shapes {tuple(shape)} and {tuple(other_shape)}"
            )
        if self._partial and operation not in ("add", "sub"):
            raise ValueError(f"{operation} of partial sums, {self} and {other}: tle.reshard adds them up")
        return self

    @constexpr_function
    def mapped(self, operation, linear):
        """The specification of an elementwise ``operation`` with one sharded operand; ``linear``: f(a) + f(b) is f(a + b)."""
        if self._partial and not linear:
            raise ValueError(f"{operation} of partial sums, {self}: tle.reshard adds them up")
        return self

    @constexpr_function
    def dimension(self, shape, axis):
        """The number of the dimension that ``axis`` of a sum says, of a tensor of ``shape``."""
        if not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
            raise ValueError(
                f"`axis` of the sum of a sharded tensor is one of its {len(shape)} dimensions, not {axis}"
            )
        return axis % len(shape)

    @constexpr_function
    def summed(self, axis):
        """The specification of the sum along a dimension: what splits it becomes partial."""
        split = [self._axes_of(d) for d in range(max(len(self._split), axis + 1))]
        partial = self._partial + tuple(split.pop(axis))
        return ShardingSpec(self._mesh, split, partial)

    @constexpr_function
    def moves(self, to):
        """Whether :meth:`plan` moves anything between members."""
        if self._mesh != to._mesh:
            raise ValueError(f"tle.reshard between meshes: from {self} on {self._mesh} to {to} on {to._mesh}")
        for axis in self._mesh.dim_names:
            state = self.axis_state(axis)
            if to.axis_state(axis) == "P" and state != "P":
                what = "split" if state == "S" else "whole"
                raise ValueError(
                    f"tle.reshard from {self} to {to}: along {axis!r} the tensor is {what}, and cannot become a partial sum"
                )
        # Along an axis of one member there is nobody else.
        reduced = [a for a in self._partial if a not in to._partial and self._size(a) > 1]
        before, after = ([[a for a in axes if self._size(a) > 1] for axes in of._split] for of in (self, to))
        return bool(reduced) or any(axes and after[d : d + 1] != [axes] for d, axes in enumerate(before))

    @constexpr_function
    def ranks(self):
        """The rank of each member, in order: its number over nodes, then devices."""
        mesh = self._mesh
        order = sorted(range(len(mesh.launch_shape)), key=lambda d: mesh.launch_levels[d] != "node")
        strides = [_math.prod(mesh.launch_shape[d + 1 :]) for d in range(len(mesh.launch_shape))]
        ranks = []
        for member in mesh.physical_ids:
            rank = 0
            for d in order:
                rank = rank * mesh.launch_shape[d] + member // strides[d] % mesh.launch_shape[d]
            ranks.append(rank)
        return tuple(ranks)

    @constexpr_function
    def ranks_of_launch(self):
        """How many ranks a launch has."""
        return _math.prod(self._mesh.launch_shape)

    @constexpr_function
    def sharing(self, to):
        """What is to be added up, as how much each of the members adds to the number of a member."""
        numbers = [0]
        for axis in self._partial:
            if axis not in to._partial:
                numbers = [n + k * self._stride(axis) for n in numbers for k in range(self._size(axis))]
        return tuple(numbers)

    @constexpr_function
    def digits(self, dim):
        """Of a dimension, for each axis that splits it: parts inside one of its own, its size, and by how much it counts in a member's number."""
        axes = self._axes_of(dim)
        inner = [_math.prod(self._size(a) for a in axes[k + 1 :]) for k in range(len(axes))]
        return tuple((inner[k], self._size(a), self._stride(a)) for k, a in enumerate(axes))

    @constexpr_function
    def stays(self, to):
        """The axes along which a member asks those with its own coordinate: sizes, and by how much they count in a member's number."""
        reduced = [a for a in self._partial if a not in to._partial]
        axes = [a for a in self._mesh.dim_names if self.dim_of(a) is None and a not in reduced]
        return tuple((self._size(a), self._stride(a)) for a in axes)

    @constexpr_function
    def boxes(self, to, shape):
        """How what a member has as ``to`` falls into boxes that one member has as this: the shape of a box, how many there are along each dimension, and at
        which dimension those begin that are whole in all parts but for the first of them: what lies there is contiguous."""
        theirs, mine = self.local_shape(shape), to.local_shape(shape)
        box = tuple(_math.gcd(a, b) for a, b in zip(theirs, mine))
        inner = len(shape) - 1
        while inner > 0 and box[inner] == theirs[inner] == mine[inner]:
            inner -= 1
        return box, tuple(n // b for n, b in zip(mine, box)), max(inner, 0)

    @constexpr_function
    def algorithm(self, to, shape, itemsize, asked):
        """How the tensor is moved, one of :data:`tilewright.tle._cost.ALGORITHMS`: what was asked for, or what costs least."""
        known = _cost.ALGORITHMS["all-reduce"]
        if asked not in (None, *known):
            raise ValueError(f"algorithm of tle.reshard must be one of {', '.join(known)}, not {asked!r}")
        transition = self.transition(to)
        offered = _cost.ALGORITHMS.get(transition, ("one_shot",))
        if asked not in (None, *offered):
            what = (
                f"it is {transition}"
                if transition
                else "it is no all-gather, reduce-scatter, all-to-all or all-reduce alone"
            )
            raise ValueError(
                f"tle.reshard from {self} to {to} has no algorithm {asked!r}: {what}, for which there is {', '.join(offered)}"
            )
        level = dict(zip(self._mesh.dim_names, self._mesh.dim_levels))
        moved = self._moved(to)
        nodes = _math.prod(self._size(a) for a in moved if level[a] == "node")
        devices = _math.prod(self._size(a) for a in moved) // nodes
        if transition is None or nodes * devices == 1:
            return "one_shot"
        part = to.local_shape(shape) if transition == "all-gather" else self.local_shape(shape)
        parts = nodes * devices if transition == "all-to-all" else 1
        return asked or _cost.pick(transition, _math.prod(part) * parts * itemsize, nodes, devices)

    @constexpr_function
    def by_words(self, to, shape, itemsize, most, of_all):
        """Whether a value is best distributed otherwise in words with flags: such a transition, and at most so many words for each member, and for all."""
        words, rest = divmod(_math.prod(self.boxes(to, shape)[0]) * itemsize, 4)
        if rest or not shape or self.transition(to) is None or self.members(to) == 1:
            return False
        fits = words <= most and words * self.members(to) <= of_all
        return fits and self.algorithm(to, shape, itemsize, None) == "low_latency"

    @constexpr_function
    def cuts(self, to, shape):
        """How often a member's part is cut along each dimension into boxes, one for each member with which it exchanges."""
        return tuple(n // b for n, b in zip(self.local_shape(shape), self.boxes(to, shape)[0]))

    @constexpr_function
    def transition(self, to):
        """``"all-gather"``, ``"reduce-scatter"``, ``"all-to-all"`` or ``"all-reduce"`` along some axes, where all else stays as it is; otherwise ``None``.
        What is gathered or split are a dimension's last axes: so it is one piece."""
        reduced = [a for a in self._partial if a not in to._partial]
        dims = range(max(len(self._split), len(to._split)))
        if all(self._axes_of(d) == to._axes_of(d) for d in dims):
            return "all-reduce" if reduced else None

        def begins(a, b):
            return all(b._axes_of(d)[: len(a._axes_of(d))] == a._axes_of(d) for d in dims)

        if not reduced and begins(to, self):
            return "all-gather"
        added = [axis for d in dims for axis in to._axes_of(d)[len(self._axes_of(d)) :]]
        if begins(self, to):
            return "reduce-scatter" if sorted(added) == sorted(reduced) else None
        return "all-to-all" if not reduced and self._crosses(to) is not None else None

    def _crosses(self, to):
        """The axes that are the last of one dimension and become the last of another one, where nothing else changes; else ``None``."""
        dims = range(max(len(self._split), len(to._split)))
        changed = [d for d in dims if self._axes_of(d) != to._axes_of(d)]
        if len(changed) != 2:
            return None
        changed.sort(key=lambda d: len(self._axes_of(d)) < len(to._axes_of(d)))
        source, target = changed
        mine, kept = self._axes_of(source), to._axes_of(source)
        before, after = self._axes_of(target), to._axes_of(target)
        crossing = mine[len(kept) :]
        return crossing if crossing and mine == kept + crossing and after == before + crossing else None

    def _moved(self, to):
        """The axes along which members exchange in such a transition, the slowest first."""
        if self.transition(to) == "all-to-all":
            return list(self._crosses(to))
        longer, shorter = (self, to) if self.transition(to) == "all-gather" else (to, self)
        dims = range(max(len(self._split), len(to._split)))
        named = [axis for d in dims for axis in longer._axes_of(d)[len(shorter._axes_of(d)) :]]
        return named or [a for a in self._partial if a not in to._partial]

    @constexpr_function
    def members(self, to):
        """How many members exchange with each other in such a transition."""
        return _math.prod(self._size(axis) for axis in self._moved(to))

    @constexpr_function
    def group(self, to):
        """Of the members that exchange with each other: the place of one among them, as for each axis by how much it counts there, its size, and by how
        much it counts in a member's number."""
        moved = self._moved(to)
        inner = [_math.prod(self._size(a) for a in moved[k + 1 :]) for k in range(len(moved))]
        return tuple((inner[k], self._size(a), self._stride(a)) for k, a in enumerate(moved))

    def _stride(self, axis):
        at = self._mesh.dim_names.index(axis)
        return _math.prod(self._mesh.shape[at + 1 :])

    # ---- products -------------------------------------------------------------------------------------------------

    @constexpr_function
    def product(self, other, shape, other_shape):
        """What ``tle.distributed_dot`` of two matrices does: the specifications that they are brought to, and that of the result."""
        if self._mesh != other._mesh:
            raise ValueError(
                f"tle.distributed_dot on different meshes: {self} on {self._mesh}, {other} on {other._mesh}"
            )
        if len(shape) != 2 or len(other_shape) != 2 or shape[1] != other_shape[0]:
            raise ValueError(f"tle.distributed_dot of shapes {tuple(shape)} and {tuple(other_shape)}")
        a, b, c = [[], []], [[], []], [[], []]
        of_a, of_b, partial = [], [], []
        for axis in self._in_order(other):
            left = self._letter(axis, "MK")
            right = other._letter(axis, "KN")
            match left, right:
                case ("P", "P"):
                    raise ValueError(
                        f"tle.distributed_dot of two partial sums along {axis!r}: {self} and {other}"
                    )
                case ("P", "-") | ("-", "P"):
                    partial.append(axis)
                    (of_a if left == "P" else of_b).append(axis)
                case ("P", _) | (_, "P"):
                    raise ValueError(
                        f"tle.distributed_dot of a partial sum with what is split along {axis!r}: {self} and {other}"
                    )
                case ("-", "-"):
                    pass
                case ("M", "-" | "K"):
                    a[0].append(axis)
                    c[0].append(axis)
                case (_, "N"):
                    b[1].append(axis)
                    c[1].append(axis)
                case _:
                    a[1].append(axis)
                    b[0].append(axis)
                    partial.append(axis)
        mesh = self._mesh
        return (
            ShardingSpec(mesh, a, of_a),
            ShardingSpec(mesh, b, of_b),
            ShardingSpec(mesh, c, partial),
            (shape[0], other_shape[1]),
        )

    @constexpr_function
    def shared_along(self, to, in_memory):
        """The axis of a cluster along which all members have the same of a matrix that lies in memory, and goes into a product as it is; ``None``."""
        if not self.is_of_cluster() or self != to or not in_memory:
            return None
        return next((a for a in reversed(self.broadcast) if self._size(a) in (2, 4, 8, 16)), None)

    def _letter(self, axis, letters):
        dim = self.dim_of(axis)
        return letters[dim] if dim is not None else ("P" if axis in self._partial else "-")

    def _in_order(self, other):
        # As the operands split, so that they stay as they are where they can.
        named = [axis for spec in (self, other) for axes in spec._split for axis in axes]
        return tuple(dict.fromkeys((*named, *self._mesh.dim_names)))

    @constexpr_function
    def check_accumulator(self, other, shape, other_shape):
        """That what is added to a product is distributed as the product."""
        if self != other or tuple(shape) != tuple(other_shape):
            raise ValueError(
                f"the accumulator of tle.distributed_dot is {other} of shape {tuple(other_shape)}, and the product {self} of {tuple(shape)}"
            )
        return True
