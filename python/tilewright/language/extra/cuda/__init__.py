"""Functions beyond the core language that NVIDIA's GPUs have."""

import sys

from .. import libdevice

# The same module under the name that programs import it by.
sys.modules[f"{__name__}.libdevice"] = libdevice

__all__ = ["libdevice"]
