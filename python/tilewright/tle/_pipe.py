"""``tle.pipe``: an edge of data flow through slots of shared memory, from one writer to one or several readers."""

from ..language import _marker, core


@_marker.builtin
def pipe(*, capacity, scope="cta", name=None, readers=None, one_shot=False, **fields):
    """An edge from one writer to its readers: ``capacity`` slots, which are filled and emptied in turn, as a :class:`pipe_value`.

    :param capacity: how many slots, at compile time. It need not be a power of two.
    :param scope: ``"cta"``: within one program.
    :param name: what messages call the pipe.
    :param readers: the names of the readers, each of whom gets every chunk; without it there is one, which has no name.
    :param one_shot: each slot is filled once and never free again; such a pipe can't be closed.
    :param fields: what a slot holds: by name, buffers of at least two dimensions, the first of which is ``capacity``. A name is an
        identifier without ``_`` in front, and neither ``fields`` nor ``readers``.

    Chunk ``iter`` goes through slot ``iter % capacity``. The writer acquires the slot, fills its fields and commits it; each reader
    waits for it, reads, and releases it. The CPU executor reports accesses to a slot outside of that and ends that wait for each
    other forever.
    """


class pipe_value:
    """A pipe, as kernels have it. Its attributes are the arguments of :func:`pipe`; ``fields`` is a dictionary."""

    @_marker.builtin
    def writer(self):
        """The :class:`pipe_writer`, which sees all fields."""

    @_marker.builtin
    def reader(self, name=None, fields=None):
        """A :class:`pipe_reader`: the one called ``name``, where the pipe names its readers; it sees ``fields``, or all of them."""


class pipe_writer:
    """The end of a pipe that fills slots."""

    @_marker.builtin
    def acquire(self, iter):
        """Waits until all readers have released the slot of chunk ``iter``, and gives it as a :class:`pipe_slot`.

        ``iter`` is an integer, also at run time, or a :class:`pipe_cursor`.
        """

    @_marker.builtin
    def commit(self, iter):
        """Gives the slot of chunk ``iter`` to the readers, who see all that has been written to it."""

    @_marker.builtin
    def close(self, iter):
        """In place of acquire and commit: gives the readers a closed slot, with nothing in it."""

    @_marker.builtin
    def cursor(self, start_iter):
        """A :class:`pipe_cursor` at chunk ``start_iter``."""


class pipe_reader:
    """An end of a pipe that reads slots."""

    @_marker.builtin
    def wait(self, iter):
        """Waits until chunk ``iter`` has been committed or closed, and gives a :class:`pipe_wait_result`."""

    @_marker.builtin
    def release(self, iter):
        """Says that this reader is done with chunk ``iter``: its slot is free when all readers are."""

    @_marker.builtin
    def cursor(self, start_iter):
        """A :class:`pipe_cursor` at chunk ``start_iter``."""


class pipe_slot:
    """One slot of a pipe: its fields by their names, and in the dictionary ``fields``, each without the leading dimension."""


class pipe_wait_result:
    """What a reader's wait gives: ``slot``, and ``is_closed``, whether it was closed instead of committed."""


@core._aggregate
class pipe_cursor:
    """A position in a pipe, in place of ``iter``: it goes on by :meth:`advance`, without a division."""

    stage: core.tensor
    phase: core.tensor
    capacity: core.constexpr

    def __init__(self, start_iter, capacity):
        start = core.to_tensor(start_iter)
        self.capacity = capacity
        self.stage = (start % capacity).to(core.int32)
        self.phase = ((start // capacity) % 2).to(core.int32)

    def advance(self):
        """Goes to the next chunk; gives the cursor."""
        after = self.stage + 1
        wraps = after == self.capacity
        self.stage = core.where(wraps, 0, after)
        self.phase = core.where(wraps, self.phase ^ 1, self.phase)
        return self


# What primitives are called by (`tle.TLE_PRIMITIVES`).
pipe.writer, pipe.reader = pipe_value.writer, pipe_value.reader
for _name in ("acquire", "commit", "close", "cursor"):
    setattr(pipe.writer, _name, getattr(pipe_writer, _name))
for _name in ("wait", "release"):
    setattr(pipe.reader, _name, getattr(pipe_reader, _name))
