"""``llvm``: pointers."""

from ....language import core
from ....language._marker import jit
from ._threads import active, spread


@jit
def _to(addr, element):
    # A pointer to elements of another type, where one is said.
    if element is None:
        return addr
    else:
        return addr.to(core.pointer_type(element, addr.dtype.scalar.address_space), bitcast=True)


@jit
def getelementptr(base, offset, element=None):
    """The pointer so many elements further on: of ``element``, or of those that it points to."""
    return _to(base, element) + offset


@jit
def load(addr, element=None):
    """What a pointer points to."""
    return core.load(spread(_to(addr, element), ()), mask=active())


@jit
def store(value, addr, element=None):
    """Writes a value there."""
    core.store(spread(_to(addr, element), ()), value, mask=active())
