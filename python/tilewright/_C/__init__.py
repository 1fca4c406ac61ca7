"""What stands where Triton has its native half."""

from __future__ import annotations

import importlib


def __getattr__(name: str):
    if name in ("libproton", "libtriton"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"not supported yet: triton._C.{name}")
