"""``llvm``: pointers."""

from ....language import core
from ....language._marker import jit
from ._threads import active


@jit
def getelementptr(base, offset):
    """The pointer so many elements further on."""
    return base + offset


@jit
def load(addr):
    """What a pointer points to."""
    return core.load(addr, mask=active())


@jit
def store(value, addr):
    """Writes a value there."""
    core.store(addr, value, mask=active())
