"""Distributing whole tensors otherwise from the host, by the collectives of ``torch.distributed``, or by NumPy on a simulated mesh.

A transition is a few steps, each along one axis of the mesh: the values of its members are added up, gathered, or each keeps its part. What a dimension's old
and new axes begin with alike stays as it is; the others are gathered, the innermost first, and then cut anew.
"""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple


class Step(NamedTuple):
    """One collective of the members along an axis: ``"sum"``, ``"sum_part"`` (each keeps its part of the sum), ``"gather"`` or ``"part"``, along ``dim``."""

    action: str
    axis: str
    dim: int | None = None


def steps(source, to):
    """What leads from one specification to another.

    :raises ValueError: nothing does: something would become a partial sum.
    """
    source.moves(to)
    dims = range(max(len(source.split), len(to.split)))
    old = {d: source.split[d] if d < len(source.split) else () for d in dims}
    new = {d: to.split[d] if d < len(to.split) else () for d in dims}
    found, scattered = [], set()
    for axis in source.partial:
        if axis in to.partial:
            continue
        dim = to.dim_of(axis)
        # The new axis is the only one of the dimension, or cuts what the others have cut.
        if dim is not None and new[dim] == (*old[dim], axis):
            found.append(Step("sum_part", axis, dim))
            scattered.add(axis)
        else:
            found.append(Step("sum", axis))
    kept = {d: sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old[d], new[d]))) for d in dims}
    found += [Step("gather", axis, d) for d in dims for axis in reversed(old[d][kept[d] :])]
    found += [Step("part", axis, d) for d in dims for axis in new[d][kept[d] :] if axis not in scattered]
    return found


def lines(spec, axis):
    """The ranks along an axis, in order, one tuple for all that differ in nothing else."""
    mesh, ranks = spec.mesh, spec.ranks()
    at = mesh.dim_names.index(axis)
    size, stride = mesh.shape[at], 1
    for n in mesh.shape[at + 1 :]:
        stride *= n
    firsts = [k for k in range(mesh.size) if k // stride % size == 0]
    return [tuple(ranks[first + k * stride] for k in range(size)) for first in firsts]


def place_of(spec, shape, rank):
    """Where in the whole a rank's part is, as slices."""
    number, coordinates = spec.ranks().index(rank), {}
    for axis, size in reversed(list(zip(spec.mesh.dim_names, spec.mesh.shape))):
        number, coordinates[axis] = divmod(number, size)
    found = []
    for n, axes in zip(spec.local_shape(shape), (*spec.split, *[()] * len(shape))):
        block = 0
        for axis in axes:
            block = block * spec.mesh.shape[spec.mesh.dim_names.index(axis)] + coordinates[axis]
        found.append(slice(block * n, (block + 1) * n))
    return tuple(found)


def of_arrays(parts, source, to):
    """The parts of all ranks, as NumPy arrays, distributed otherwise."""
    import numpy as np

    parts = list(parts)
    for action, axis, dim in steps(source, to):
        made = list(parts)
        for line in lines(source, axis):
            here = [parts[rank] for rank in line]
            total = sum(here[1:], here[0]) if action.startswith("sum") else None
            for k, rank in enumerate(line):
                if action == "sum":
                    made[rank] = total
                elif action == "sum_part":
                    made[rank] = np.split(total, len(line), dim)[k]
                elif action == "gather":
                    made[rank] = np.concatenate(here, dim)
                else:
                    made[rank] = np.split(here[k], len(line), dim)[k]
        parts = made
    return parts


class Collectives:
    """Those of ``torch.distributed`` along the axes of meshes; ``group`` is that of all ranks."""

    def __init__(self, group):
        self._group = group
        self._lines = {}

    def _line(self, spec, axis):
        """The process group of this rank's line, and its place there. Every rank makes all groups, in the same order."""
        import torch.distributed as dist

        me = dist.get_rank(self._group)
        found = self._lines.get((spec.mesh, axis))
        if found is None:
            for line in lines(spec, axis):
                group = dist.new_group([dist.get_global_rank(self._group, rank) for rank in line])
                if me in line:
                    found = group, line.index(me), len(line)
            self._lines[spec.mesh, axis] = found
        return found

    def reshard(self, x, source, to):
        """This rank's part, a torch tensor, distributed otherwise."""
        import torch
        import torch.distributed as dist

        for action, axis, dim in steps(source, to):
            group, place, size = self._line(source, axis)
            x = x.contiguous()
            if action == "sum":
                x = x.clone()
                dist.all_reduce(x, group=group)
            elif action == "sum_part":
                cut = [part.contiguous() for part in x.chunk(size, dim)]
                x = torch.empty_like(cut[place])
                dist.reduce_scatter(x, cut, group=group)
            elif action == "gather":
                gathered = [torch.empty_like(x) for _ in range(size)]
                dist.all_gather(gathered, x, group=group)
                x = torch.cat(gathered, dim)
            else:
                x = x.chunk(size, dim)[place]
        return x.contiguous()
