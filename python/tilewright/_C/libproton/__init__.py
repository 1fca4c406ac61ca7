"""The native half of Triton's profiler, as :mod:`proton` below this."""

from . import proton

__all__ = ["proton"]
