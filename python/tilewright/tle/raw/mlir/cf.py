"""``cf``: assertions. Branches are Python's."""

from ....language._marker import jit
from ._debug import vassert


@jit
def assert_(arg, msg):
    """Ends the program if a thread comes here whose ``arg`` is false."""
    vassert(arg, msg)
