"""The errors that Tilewright raises; ``str(error)`` holds everything there is to say.

A wrong call (an unknown keyword, a missing argument, a bad grid) raises ``TypeError`` or ``ValueError``.
"""

from .._tilewright import CompilationError, DriverError, KernelError, OutOfResources, TilewrightError

# Names that Triton programs catch.
TritonError = TilewrightError
PTXASError = CompilationError
InterpreterError = KernelError

__all__ = [
    "CompilationError",
    "DriverError",
    "InterpreterError",
    "KernelError",
    "OutOfResources",
    "PTXASError",
    "TilewrightError",
    "TritonError",
]
