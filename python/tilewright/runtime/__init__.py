"""Launching: ``jit``, autotuning, and what is known about the GPU."""

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
