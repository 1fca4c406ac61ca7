"""Several devices on the host's side: symmetric memory, and launches that reach it.

Launches are those of every rank inside of :func:`tilewright.testing.simulated_mesh`, where this process has all ranks of a mesh, and those of this
process's rank after :func:`init`, which joins the processes of a ``torch.distributed`` group. What a kernel reaches of other ranks lies in
*symmetric* memory: :func:`empty`, :func:`zeros` and :func:`from_parts` allocate there, the same on each rank. ``tle.remote`` of such an array is the
same array of another rank.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from . import _tilewright
from .runtime import nvshmem as _nvshmem
from .runtime import ranks as _ranks
from .runtime import reshard as _host_reshard
from .tle import _push
from .tle import _ranks as _layout
from .tle._sharding import ShardingSpec

#: Programs of a grid that may wait for those of other ranks.
PROGRAMS = 4096

#: Programs of a grid that may exchange words with flags: two for each multiprocessor of a GPU, or a few less.
SLOT_PROGRAMS = 256

#: Bytes of each rank's symmetric memory for what others store while a kernel adds it up.
STAGING = 1 << 25

#: Signals of each rank, for :func:`tle.signal`.
SIGNALS = _layout.SIGNALS.value

#: Arrays begin at a multiple of so many bytes.
_ALIGNMENT = _layout.UNIT.value


def _current():
    found = _ranks.current()
    if found is None:
        raise RuntimeError(
            "there is no symmetric memory here: allocate in `with tilewright.testing.simulated_mesh(n_nodes, n_devices):`, "
            "or after tilewright.distributed.init"
        )
    return found


def _aligned(nbytes):
    return math.ceil(nbytes / _ALIGNMENT) * _ALIGNMENT


class Ranks:
    """The ranks of launches, and a piece of memory for each of them; :mod:`tilewright.tle._ranks` says what a piece begins with."""

    def __init__(self, count, memory, programs, scratch, staging, slot_programs=SLOT_PROGRAMS):
        self.count = count
        self.programs = programs
        #: Bytes for each program.
        self.scratch = _aligned(scratch)
        words = _layout.TABLE.value + count
        flags = _aligned(words * 8)
        flag_bytes = programs * _layout.GROUPS.value * count * 8
        #: What a piece begins with: names, offsets and bytes.
        self.parts = [
            ("the header", 0, _layout.SIGNAL.value * 8),
            ("signals", _layout.SIGNAL.value * 8, _layout.SIGNALS.value * 8),
            ("the table of ranks", _layout.TABLE.value * 8, count * 8),
            ("flags", flags, flag_bytes),
            ("how often flags were taken", _aligned(flags + flag_bytes), flag_bytes),
        ]
        self._flags = flags
        self._taken = _aligned(flags + flag_bytes)
        self._slot_programs = min(programs, slot_programs)
        self._epochs = _aligned(self._taken + flag_bytes)
        epoch_bytes = self._slot_programs * count * 4
        self._slots = _aligned(self._epochs + epoch_bytes)
        slot_bytes = self._slot_programs * 2 * count * _layout.SLOT.value * 8
        self.parts += [
            ("epochs", self._epochs, epoch_bytes),
            ("words with flags", self._slots, slot_bytes),
        ]
        self._scratch = _aligned(self._slots + slot_bytes)
        if self.scratch:
            self.parts.append(("scratch", self._scratch, programs * self.scratch))
        self._staging = self._scratch + programs * self.scratch
        self._staging_bytes = _aligned(max(staging, _push.STAGING.value))
        self.parts.append(("staging", self._staging, self._staging_bytes))
        self._next = self._staging + self._staging_bytes
        #: Bytes of a piece.
        self.bytes = math.ceil((self._next + memory) / 4096) * 4096

    def header(self, rank, bases):
        """What the piece of a rank begins with, where it reaches all pieces at these addresses."""
        words = np.zeros(self._flags // 8, np.int64)
        words[_layout.RANK.value] = rank
        words[_layout.RANKS.value] = self.count
        words[_layout.FLAGS.value] = self._flags // _ALIGNMENT
        words[_layout.SCRATCH.value] = self._scratch // _ALIGNMENT
        words[_layout.PER_PROGRAM.value] = self.scratch // _ALIGNMENT
        words[_layout.EPOCHS.value] = self._epochs // _ALIGNMENT
        words[_layout.SLOTS.value] = self._slots // _ALIGNMENT
        words[_layout.SLOT_PROGRAMS.value] = self._slot_programs
        words[_layout.STAGING.value] = self._staging // _ALIGNMENT
        words[_layout.STAGING_BYTES.value] = self._staging_bytes
        words[_layout.TAKEN.value] = (self._taken - self._flags) // 8
        words[_layout.TABLE.value : _layout.TABLE.value + self.count] = np.asarray(bases) // 16
        words[_layout.BASE.value] = bases[rank] // 16
        return words

    def signal_at(self, offset):
        """What waits for the word at an offset of a piece wait for, in words."""
        _, signals, _ = self.parts[1]
        flag = (offset - self._flags) // 8
        if offset < self._flags:
            return f"signal {(offset - signals) // 8}"
        if offset >= self._slots:
            slot = (offset - self._slots) // (8 * _layout.SLOT.value)
            return (
                f"what program {slot // self.count // 2} of rank {slot % self.count} sends, and has not come"
            )
        program, rank = flag // self.count // _layout.GROUPS.value, flag % self.count
        return f"rank {rank}, whose program {program} has not come"

    def place(self, nbytes):
        """Where in each piece an array of so many bytes is to be."""
        offset = self._next
        if offset + nbytes > self.bytes:
            raise MemoryError(
                f"{nbytes} bytes are wanted, and {self.bytes - offset} of the symmetric memory are left: ask for more by `memory=`"
            )
        self._next = _aligned(offset + max(nbytes, 1))
        return offset


class SimulatedRanks(Ranks):
    """All ranks of a mesh in this process, for the CPU executor and the PTX simulator."""

    def __init__(self, count, memory, programs, scratch):
        # Little, so that programs have several turns.
        super().__init__(count, memory, programs, scratch, 0, 64)
        self.stride = self.bytes
        self.allowed = self.parts
        # Pages that nobody touches are never made.
        self._memory = np.zeros(self.bytes * count + 4096, np.uint8)
        self.base = math.ceil(self._memory.ctypes.data / 4096) * 4096
        bases = [self.base + rank * self.stride for rank in range(count)]
        for rank in range(count):
            words = self.header(rank, bases)
            self.view(rank, 0, words.shape, words.dtype)[...] = words

    def view(self, rank, offset, shape, dtype):
        """An array in the piece of a rank."""
        begin = self.base - self._memory.ctypes.data + rank * self.stride + offset
        nbytes = math.prod(shape) * np.dtype(dtype).itemsize
        return self._memory[begin : begin + nbytes].view(dtype).reshape(shape)

    def empty(self, shape, dtype):
        dtype = np.dtype(dtype)
        offset = self.place(math.prod(shape) * dtype.itemsize)
        return SymmetricTensor([self.view(rank, offset, shape, dtype) for rank in range(self.count)])

    def holds(self, x):
        return isinstance(x, SymmetricTensor) and self.base <= x.parts[0].ctypes.data < self.base + self.bytes

    def _parts(self, x):
        if not isinstance(x, SymmetricTensor):
            raise TypeError(
                f"on a simulated mesh each rank's part is one of a SymmetricTensor, not {type(x)}"
            )
        return x.parts

    def reshard(self, x, source, to):
        made = _host_reshard.of_arrays(self._parts(x), source, to)
        out = self.empty(made[0].shape, x.dtype)
        for part, value in zip(out.parts, made):
            part[...] = value
        return out

    def shard(self, x, spec):
        x = np.asarray(x)
        return from_parts([x[_host_reshard.place_of(spec, x.shape, rank)] for rank in range(self.count)])

    def gather(self, x, source, whole):
        return _host_reshard.of_arrays(self._parts(x), source, whole)[0].copy()

    def reset_signals(self):
        _, offset, nbytes = self.parts[1]
        for rank in range(self.count):
            self.view(rank, offset, (nbytes,), np.uint8)[...] = 0


class SymmetricTensor:
    """An array that each rank of a simulated mesh has for itself, at the same place of its memory. A kernel takes it as an array.

    ``parts`` are the NumPy arrays of the ranks, in order.
    """

    def __init__(self, parts):
        self.parts = tuple(parts)

    @property
    def shape(self):
        return self.parts[0].shape

    @property
    def dtype(self):
        return self.parts[0].dtype

    @property
    def ndim(self):
        return self.parts[0].ndim

    @property
    def itemsize(self):
        return self.parts[0].itemsize

    @property
    def strides(self):
        return self.parts[0].strides

    @property
    def nbytes(self):
        return self.parts[0].nbytes

    @property
    def __array_interface__(self):
        # Of rank 0, by whose address a launch knows the others': its own bytes alone, not all the memory that they lie in.
        return self.parts[0].__array_interface__

    def numpy(self):
        """All parts, one behind the other along a new first axis."""
        return np.stack(self.parts)

    def __repr__(self):
        return f"SymmetricTensor(ranks={len(self.parts)}, shape={self.shape}, dtype={self.dtype})"


def empty(shape, dtype=np.float32) -> Any:
    """Symmetric memory for an array of ``shape`` and ``dtype`` on each rank; it holds zeros or what was there before.

    On a simulated mesh a :class:`SymmetricTensor`, after :func:`init` this rank's torch tensor.

    :raises MemoryError: the symmetric memory is used up.
    """
    extents = shape if isinstance(shape, Iterable) else (shape,)
    extents = tuple(operator.index(n) for n in extents)
    if any(n < 0 for n in extents):
        raise ValueError(f"the extents of an array are not negative, as in {shape}")
    return _current().empty(extents, dtype)


def zeros(shape, dtype=np.float32) -> Any:
    """:func:`empty`, filled with zeros."""
    made = empty(shape, dtype)
    for part in getattr(made, "parts", (made,)):
        part[...] = 0
    return made


def from_parts(parts) -> SymmetricTensor:
    """A symmetric array of a simulated mesh, with what each rank's part is to hold: one array of one shape and dtype a rank.

    :raises ValueError: they are not as many as the ranks, or differ in shape or dtype.
    """
    parts = [np.asarray(part) for part in parts]
    ranks = _current()
    if len(parts) != ranks.count:
        raise ValueError(f"{len(parts)} parts were given, and there are {ranks.count} ranks")
    if len({(part.shape, part.dtype) for part in parts}) != 1:
        raise ValueError("the parts of a symmetric array have one shape and dtype")
    made = ranks.empty(parts[0].shape, parts[0].dtype)
    for to, part in zip(made.parts, parts):
        to[...] = part
    return made


def _check(spec):
    """Every rank has a part."""
    if not isinstance(spec, ShardingSpec):
        raise TypeError(f"how a tensor is distributed is said by a tle.sharding, not by {spec!r}")
    if spec.mesh.size != world_size():
        raise ValueError(
            f"the mesh of {spec} has {spec.mesh.size} members, and there are {world_size()} ranks"
        )
    if not spec.is_of_ranks():
        raise ValueError(f"the mesh of {spec} has other members than nodes and devices: {spec.mesh}")


def _check_sums(source, dtype):
    """Booleans have none."""
    if source.partial and str(dtype) in ("bool", "torch.bool"):
        raise ValueError(f"booleans are no partial sums, as {source} says: add up integers")


def shard(x, spec) -> Any:
    """A whole array in symmetric memory, of which each rank has its part as ``spec`` says (:func:`tle.sharding`).

    :param x: on a simulated mesh a NumPy array; after :func:`init` a torch tensor or NumPy array, the same in each process, of which this rank's part is taken.
    :raises ValueError: parts don't divide evenly, or they would be partial sums.
    """
    _check(spec)
    if spec.partial:
        raise ValueError(f"what is whole cannot become a partial sum, as {spec} says")
    return _current().shard(x, spec)


def gather(x, source) -> Any:
    """The other way round: the whole array, partial sums added up, of which each rank has its part as ``source`` says. On a simulated mesh a NumPy array of its own, after
    :func:`init`, where every rank calls it, a torch tensor."""
    _check(source)
    _check_sums(source, x.dtype)
    shape = source.global_shape(tuple(x.shape))
    source.local_shape(shape)
    return _current().gather(x, source, type(source)(source.mesh))


def reshard(x, source, to):
    """A tensor of which each rank has its part as ``source`` says, distributed as ``to`` says (:func:`tle.sharding`), from the host: by the collectives of
    ``torch.distributed`` (NCCL) after :func:`init`, where every rank calls it, and on a simulated mesh by NumPy. It needs no memory that the GPUs share, and so
    goes between nodes, too.

    :param x: after :func:`init` this rank's part, any torch tensor of the group's devices; on a simulated mesh a :class:`SymmetricTensor`, as the result.
    :raises ValueError: parts don't divide evenly, or something would become a partial sum.
    """
    _check(source)
    _check(to)
    _check_sums(source, x.dtype)
    to.local_shape(source.global_shape(tuple(x.shape)))
    return _current().reshard(x, source, to)


def registered(x):
    """``x``, which lies in symmetric memory.

    :raises ValueError: it doesn't.
    """
    if not _current().holds(x):
        raise ValueError(
            "the tensor does not lie in symmetric memory, which other ranks reach: allocate it by tilewright.distributed.empty"
        )
    return x


def world_size() -> int:
    """How many ranks a launch has; 1 where nothing says otherwise."""
    found = _ranks.current()
    return 1 if found is None else found.count


def reset_signals():
    """Makes the signals of every rank (of :func:`tle.signal`) zero; no kernel may run meanwhile."""
    _current().reset_signals()


def _hosts(group):
    """The names of the hosts that the ranks of a group are on."""
    import socket

    import torch.distributed as dist

    names = [None] * dist.get_world_size(group)
    dist.all_gather_object(names, socket.gethostname(), group)
    return sorted(set(names))


def _choose(by, group):
    """How ranks are to reach each other: ``"peer"`` or ``"nvshmem"``."""
    if by not in (None, "peer", "nvshmem"):
        raise ValueError(f'`by` of tilewright.distributed.init must be "peer" or "nvshmem", not {by!r}')
    hosts = _hosts(group)
    if by == "peer" and len(hosts) > 1:
        raise ValueError(
            f'`by="peer"` is for GPUs of one host, and these are of {", ".join(hosts)}: leave it out, or say by="nvshmem"'
        )
    if by == "nvshmem" or len(hosts) > 1:
        try:
            _nvshmem.device_library()
        except RuntimeError as error:
            what = (
                f"kernels reach ranks of other hosts ({', '.join(hosts)})"
                if len(hosts) > 1
                else '`by="nvshmem"`'
            )
            raise RuntimeError(f"{what} by NVSHMEM: {error}") from None
        return "nvshmem"
    return "peer"


class _PeerMemory:
    """Symmetric memory of torch's, which each GPU of a host reaches by addresses."""

    def __init__(self, group, nbytes, device):
        import torch
        import torch.distributed._symmetric_memory as symmetric

        self.tensor = symmetric.empty(nbytes, dtype=torch.uint8, device=device)
        self.bases = symmetric.rendezvous(self.tensor, group).buffer_ptrs
        #: The bitcode that kernels reach it by.
        self.library = None


class _NvshmemMemory:
    """Symmetric memory of NVSHMEM's, which ranks of other nodes reach by its functions. Kernels take the own address for all."""

    def __init__(self, group, nbytes, device):
        import torch

        self._library = _nvshmem.join(group, nbytes)
        self._address = self._library.allocate(nbytes)
        self.__cuda_array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (self._address, False),
            "version": 3,
        }
        # It keeps this object, and so the memory.
        self.tensor = torch.as_tensor(self, device=device)
        self.bases = [self._address] * self._library.count
        major, minor = torch.cuda.get_device_capability(device)
        self.library = str(_nvshmem.device_library(10 * major + minor))


class JoinedRanks(Ranks):
    """This process's rank of a ``torch.distributed`` group, with torch's symmetric memory or NVSHMEM's."""

    stride = 0
    allowed = ()

    def __init__(self, group, memory, programs, scratch, staging, time_limit, by):
        import torch
        import torch.distributed as dist

        #: How ranks reach each other.
        self.by = _choose(by, group)
        super().__init__(dist.get_world_size(group), memory, programs, scratch, staging)
        rank = dist.get_rank(group)
        device = torch.device("cuda", torch.cuda.current_device())
        self._torch = torch
        allocate = {"peer": _PeerMemory, "nvshmem": _NvshmemMemory}[self.by]
        self._allocation = allocate(group, self.bytes, device)
        self._memory = self._allocation.tensor
        self.base = self._memory.data_ptr()
        self._memory.zero_()
        self._rank, self._time_limit = rank, time_limit
        self._collectives = _host_reshard.Collectives(group)
        # The host reads it when the GPU has stopped, too.
        self._reported = torch.zeros(1, dtype=torch.int64, pin_memory=True)
        self._report = self._reported.numpy()
        words = self.header(rank, self._allocation.bases)
        words[_layout.TIME_LIMIT.value] = int((time_limit or 0) * 1e9)
        words[_layout.REPORT.value] = self._reported.data_ptr()
        words = torch.from_numpy(words).to(device)
        self._memory[: words.numel() * 8].view(torch.int64).copy_(words)
        torch.cuda.synchronize(device)
        # Nobody may raise a flag here before it has been lowered.
        dist.barrier(group)
        _tilewright.reach_ranks_by(self._allocation.library)

    def empty(self, shape, dtype):
        dtype = (
            getattr(self._torch, np.dtype(dtype).name) if not isinstance(dtype, self._torch.dtype) else dtype
        )
        nbytes = math.prod(shape) * dtype.itemsize
        offset = self.place(nbytes)
        return self._memory[offset : offset + nbytes].view(dtype).reshape(shape)

    def holds(self, x):
        return getattr(x, "is_cuda", False) and self.base <= x.data_ptr() < self.base + self.bytes

    def reshard(self, x, source, to):
        return self._collectives.reshard(x, source, to)

    def shard(self, x, spec):
        x = self._torch.as_tensor(x)
        part = x[_host_reshard.place_of(spec, tuple(x.shape), self._rank)]
        made = self.empty(part.shape, part.dtype)
        made.copy_(part)
        return made

    def gather(self, x, source, whole):
        return self.reshard(x, source, whole)

    def reset_signals(self):
        _, offset, nbytes = self.parts[1]
        self._memory[offset : offset + nbytes].zero_()

    def check(self):
        word = int(self._report[0])
        if word:
            line, offset = word >> 44, word & (1 << 44) - 1
            raise RankError(
                f"rank {self._rank} has waited {self._time_limit:g} s, at line {line} of its kernel's file, for {self.signal_at(offset)}. "
                "The kernel was ended, and nothing more can be launched by this process"
            )

    def synchronize(self):
        try:
            self._torch.cuda.synchronize()
        except RuntimeError:
            self.check()
            raise
        self.check()


class RankError(RuntimeError):
    """A kernel has waited for another rank for longer than the time limit of :func:`init`."""


def synchronize():
    """Waits until this process's kernels have ended.

    :raises RankError: one has waited for another rank for too long; it says for which, and where.
    """
    found = _ranks.current()
    if isinstance(found, JoinedRanks):
        found.synchronize()


def init(
    group=None,
    memory=1 << 28,
    programs=PROGRAMS,
    scratch=1 << 14,
    time_limit=60.0,
    staging=STAGING,
    by=None,
):
    """Joins the ranks of a ``torch.distributed`` group: from now on launches are those of this process's rank, and :func:`empty` gives torch tensors in
    symmetric memory. Every process of the group calls it alike, with its GPU as torch's current one.

    :param group: the process group; the default one where none is given.
    :param memory: bytes of symmetric memory for arrays.
    :param programs: how many programs of a grid may wait for those of other ranks; the programs of a kernel that do must all fit the GPU at once.
    :param scratch: bytes of symmetric memory of each of these for values that a kernel reshards.
    :param staging: bytes of symmetric memory for what ``tle.reshard`` stores at others to be added up there, shared by the programs of a grid.
    :param time_limit: seconds for which a kernel waits for another rank before it is ended, and the next launch or :func:`synchronize` raises
        :class:`RankError`, which says which rank has not come, and where; ``None``: without end.

    :param by: how kernels reach other ranks. ``"peer"``: by addresses, where the GPUs reach each other's memory (one host, NVLink or peer access).
        ``"nvshmem"``: by the functions of NVSHMEM, which go between hosts, too; its Python package (``nvidia-nvshmem-cu13``) must be installed. Without it
        ``"peer"`` where all ranks are on one host.

    NVLink multicast is not used.

    :raises RuntimeError: NVSHMEM is to be used, and is not installed, or fails.
    """
    import torch.distributed as dist

    _ranks.join(JoinedRanks(group or dist.group.WORLD, memory, programs, scratch, staging, time_limit, by))


def finish():
    """Ends what :func:`init` began: launches have one rank again. Tensors in symmetric memory stay until they are let go."""
    _ranks.join(None)
    _tilewright.reach_ranks_by(None)
