"""What programs need beside kernels."""

import importlib

from .._tilewright import LinearLayout

__all__ = ["LinearLayout"]

# Imported when they are asked for.
_MODULES = ("compile", "disasm", "link", "mxfp", "ragged_tma", "tensor_descriptor")


def __getattr__(name: str):
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
