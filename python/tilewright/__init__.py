"""Tilewright: tile kernels in the Triton language, compiled for the CPU and for NVIDIA GPUs.

A kernel is a function decorated with :func:`jit`, written with ``tilewright.language``; ``kernel[grid](*args)`` runs it
where its arrays are: NumPy arrays and CPU tensors on the CPU, CUDA tensors on their GPU.
"""

import importlib
import operator as _operator

from . import knobs, language, runtime
from ._tilewright import CompiledKernel, __version__
from .compiler import CompilationError
from .language._marker import constexpr_function, must_use_result
from .runtime import (
    Config,
    DriverError,
    JITFunction,
    KernelError,
    KernelInterface,
    MockTensor,
    OutOfResources,
    TensorWrapper,
    TilewrightError,
    autotune,
    heuristics,
    reinterpret,
)
from .runtime.allocation import reachable, set_allocator
from .runtime.errors import InterpreterError, TritonError
from .runtime.jit import jit

TYPE_CHECKING = False
if TYPE_CHECKING:
    # What is imported when it is asked for.
    from . import backends as backends
    from . import compiler as compiler
    from . import distributed as distributed
    from . import errors as errors
    from . import experimental as experimental
    from . import profiler as profiler
    from . import testing, tle, tools
    from .compiler.compiler import compile
    from .runtime._async_compile import AsyncCompileMode, FutureKernel


@constexpr_function
def cdiv(x: int | language.constexpr, y: int | language.constexpr) -> int:
    """The quotient of two integers, rounded up."""
    return (x + y - 1) // y


@constexpr_function
def next_power_of_2(n: int | language.constexpr) -> int:
    """The smallest power of two that is at least ``n``; 0 for 0."""
    n = _operator.index(n)
    return 1 << (n - 1).bit_length() if n > 0 else 0


# Imported when they are asked for: most programs only call kernels.
_MODULES = ("backends", "distributed", "errors", "experimental", "profiler", "testing", "tle", "tools")
_ELSEWHERE = {
    "AsyncCompileMode": "runtime._async_compile",
    "FutureKernel": "runtime._async_compile",
    "compile": "compiler.compiler",
}


if not TYPE_CHECKING:

    def __getattr__(name: str):
        if name in _MODULES:
            return importlib.import_module(f".{name}", __name__)
        if name in _ELSEWHERE:
            return getattr(importlib.import_module(f".{_ELSEWHERE[name]}", __name__), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AsyncCompileMode",
    "CompilationError",
    "CompiledKernel",
    "Config",
    "DriverError",
    "FutureKernel",
    "InterpreterError",
    "JITFunction",
    "KernelError",
    "KernelInterface",
    "MockTensor",
    "OutOfResources",
    "TensorWrapper",
    "TilewrightError",
    "TritonError",
    "__version__",
    "autotune",
    "cdiv",
    "compile",
    "constexpr_function",
    "heuristics",
    "jit",
    "knobs",
    "language",
    "must_use_result",
    "next_power_of_2",
    "reachable",
    "reinterpret",
    "runtime",
    "set_allocator",
    "testing",
    "tle",
    "tools",
]
