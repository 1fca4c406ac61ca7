"""Where memory that a kernel needs for itself comes from."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

_allocator: ContextVar[Callable[[int, int, int | None], Any] | None] = ContextVar("allocator", default=None)


def set_allocator(allocator: Callable[[int, int, int | None], Any] | None):
    """Has ``allocator(size, alignment, stream)`` called for memory on the GPU that a launch needs beside its arguments
    (descriptors that a kernel makes). It gives an object with ``data_ptr()``. Without one we allocate it ourselves.
    """
    _allocator.set(allocator)
