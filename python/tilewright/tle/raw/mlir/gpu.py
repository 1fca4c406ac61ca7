"""``gpu``: the same without a vendor's name."""

from ....language import core
from ....language._marker import jit
from ._threads import count, number


class Dimension:
    """The dimensions of blocks and threads, the fastest first."""

    x = 0
    y = 1
    z = 2


@jit
def thread_id(dimension: core.constexpr = 0):
    """The thread's number, an index."""
    return number(dimension).to(core.int64)


@jit
def block_dim(dimension: core.constexpr = 0):
    """How many threads there are."""
    return core.full([], count(dimension), core.int64)


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
