"""``memref``: buffers in shared memory, element by element."""

from ....language import core
from ....language._marker import jit
from ._threads import active, extent, place


@jit
def load(memref, indices):
    """The element at the indices, one for each dimension."""
    return core.load(place(memref, indices), mask=active())


@jit
def store(value, memref, indices):
    """Writes a value there."""
    core.store(place(memref, indices, True), value, mask=active())


@jit
def dim(source, index):
    """How many elements there are along a dimension."""
    return extent(source, index)
