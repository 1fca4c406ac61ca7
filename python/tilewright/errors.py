"""The base of the errors of Triton programs; see :mod:`tilewright.runtime.errors`."""

from ._tilewright import TilewrightError

TritonError = TilewrightError

__all__ = ["TilewrightError", "TritonError"]
