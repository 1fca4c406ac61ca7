"""Functions beyond the core language."""

from . import cuda, libdevice

__all__ = ["cuda", "libdevice"]
