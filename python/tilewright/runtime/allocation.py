"""Where memory that a kernel needs for itself comes from, and which memory besides its arguments' it may access."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_allocator: ContextVar[Callable[[int, int, int | None], Any] | None] = ContextVar("allocator", default=None)


# What `reachable` was given.
_reachable: ContextVar[tuple] = ContextVar("reachable", default=())


@contextmanager
def reachable(*arrays: Any) -> Iterator[None]:
    """While the ``with`` block runs, kernels on the CPU may access these arrays, too::

        addresses = np.array([x.ctypes.data for x in xs], np.int64)
        with tilewright.reachable(*xs):
            kernel[(len(xs),)](addresses, out)

    On the CPU (executor and PTX simulator) every access is checked: a kernel reaches the memory of its arguments and none
    besides. One that loads addresses from memory, as a grouped matrix product does, needs to have the arrays behind
    them named. On a GPU nothing is checked, and arrays on a GPU may be named all the same.

    :param arrays: NumPy arrays, tensors, or what else a kernel takes as an array. They are kept alive.
    """
    before = _reachable.set((*_reachable.get(), *arrays))
    try:
        yield
    finally:
        _reachable.reset(before)


class NullAllocator:
    """Stands for no allocator."""

    def __call__(self, size: int, alignment: int, stream: int | None) -> Any:
        raise RuntimeError("there is no allocator: give one to set_allocator")


def set_allocator(allocator: Callable[[int, int, int | None], Any] | None):
    """Has ``allocator(size, alignment, stream)`` called for memory on the GPU that a launch needs beside its arguments
    (descriptors that a kernel makes). It gives an object with ``data_ptr()``. Without one we allocate it ourselves.
    """
    _allocator.set(None if isinstance(allocator, NullAllocator) else allocator)
