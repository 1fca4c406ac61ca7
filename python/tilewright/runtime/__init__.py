"""Launching: ``jit``, autotuning, and what is known about the GPU."""

import importlib

from .autotuner import Autotuner, Config, Heuristics, autotune, heuristics
from .driver import driver
from .errors import (
    CompilationError,
    DriverError,
    InterpreterError,
    KernelError,
    OutOfResources,
    PTXASError,
    TilewrightError,
)
from .jit import (
    JITFunction,
    KernelInterface,
    MockTensor,
    TensorWrapper,
    constexpr_function,
    reinterpret,
)

__all__ = [
    "Autotuner",
    "CompilationError",
    "Config",
    "DriverError",
    "Heuristics",
    "InterpreterError",
    "JITFunction",
    "KernelError",
    "KernelInterface",
    "MockTensor",
    "OutOfResources",
    "PTXASError",
    "TensorWrapper",
    "TilewrightError",
    "autotune",
    "constexpr_function",
    "driver",
    "heuristics",
    "reinterpret",
]

# Imported when they are asked for: most programs only call kernels.
_MODULES = ("_allocation", "_async_compile", "cache", "interpreter", "reads")


def __getattr__(name: str):
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in ("RedisRemoteCacheBackend", "RemoteCacheBackend"):
        return getattr(importlib.import_module(".cache", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
