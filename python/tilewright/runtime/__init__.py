"""Launching: ``jit``, autotuning, and what is known about the GPU."""

from .autotuner import Autotuner, Config, Heuristics, autotune, heuristics
from .driver import driver
from .errors import (
    CompilationError,
    DriverError,
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
