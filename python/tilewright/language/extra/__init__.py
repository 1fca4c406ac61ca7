"""Functions beyond the core language."""

from . import libdevice

__all__ = ["libdevice"]
