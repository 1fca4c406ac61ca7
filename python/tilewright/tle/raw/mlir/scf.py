"""``scf``: loops and branches are those of Python; these are the names that MLIR's bindings have for their parts."""

from ....language._marker import jit
from ....language.core import range as for_  # noqa: F401


@jit
def yield_(operands=None):
    """Ends a body: variables keep what they have."""
