"""``gpu``: the same without a vendor's name."""

from ....language import core
from ....language._marker import jit
from ._threads import count, number


class Dimension:
    """Of blocks and threads there is one dimension."""

    x = 0


@jit
def thread_id(dimension: core.constexpr = 0):
    """The thread's number, an index."""
    core.static_assert(dimension == 0, "threads are numbered along x alone")
    return number().to(core.int64)


@jit
def block_dim(dimension: core.constexpr = 0):
    """How many threads there are."""
    core.static_assert(dimension == 0, "threads are numbered along x alone")
    return core.full([], count(), core.int64)


@jit
def block_id(dimension: core.constexpr = 0):
    """The program's number."""
    return core.program_id(dimension).to(core.int64)


@jit
def grid_dim(dimension: core.constexpr = 0):
    """How many programs there are."""
    return core.num_programs(dimension).to(core.int64)


@jit
def barrier():
    """All threads wait for each other."""
    core.debug_barrier()
