"""``tle.raw``: functions in other languages, called by kernels. None of it is there yet."""

from ...language._marker import explain_missing, not_supported_yet
from . import mlir

_NOT_YET = ("InOut", "Input", "call", "call_smem", "dialect", "language")
globals().update(not_supported_yet(__name__, _NOT_YET))
__all__ = ["mlir", *_NOT_YET]
__getattr__ = explain_missing(__name__, __all__)
