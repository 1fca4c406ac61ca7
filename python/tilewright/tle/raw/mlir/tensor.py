"""``tensor``: the tensors that a function is given. They lie in shared memory, and an insertion writes there."""

from ....language import core
from ....language._marker import jit
from ._threads import active, extent, place


@jit
def extract(tensor, indices):
    """The element at the indices, one for each dimension."""
    return core.load(place(tensor, indices), mask=active())


@jit
def insert(scalar, dest, indices):
    """``dest`` with a value at the indices: every thread's insertion is in it, and it is the tensor itself."""
    core.store(place(dest, indices, True), scalar, mask=active())
    return dest


@jit
def dim(source, index):
    """How many elements there are along a dimension."""
    return extent(source, index)
