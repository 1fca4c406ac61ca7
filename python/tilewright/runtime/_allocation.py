"""Triton's name of :mod:`tilewright.runtime.allocation`."""

from .allocation import NullAllocator, _allocator, set_allocator

__all__ = ["NullAllocator", "_allocator", "set_allocator"]
