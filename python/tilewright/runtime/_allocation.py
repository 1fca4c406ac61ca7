"""Triton's name of :mod:`tilewright.runtime.allocation`."""

from .allocation import _allocator, set_allocator

__all__ = ["_allocator", "set_allocator"]
