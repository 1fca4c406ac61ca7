"""``tle.raw.mlir``: printing and assertions in functions written in MLIR. None of it is there yet."""

from ...language._marker import explain_missing, not_supported_yet

_NOT_YET = ("vassert", "vprintf")
globals().update(not_supported_yet(__name__, _NOT_YET))
__all__ = [*_NOT_YET]
__getattr__ = explain_missing(__name__, __all__)
