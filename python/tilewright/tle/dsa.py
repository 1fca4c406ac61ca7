"""``tle.dsa``: programs for accelerators whose local memories have names. None of it is there yet."""

from ..language._marker import explain_missing, not_supported_yet

_NOT_YET = (
    "add",
    "alloc",
    "ascend",
    "ascend.L0A",
    "ascend.L0B",
    "ascend.L0C",
    "ascend.L1",
    "ascend.UB",
    "copy",
    "cumsum",
    "div",
    "extract_element",
    "extract_slice",
    "extract_tile",
    "hint",
    "insert_slice",
    "insert_tile",
    "local_ptr",
    "max",
    "memory_space",
    "min",
    "mul",
    "parallel",
    "pipeline",
    "sub",
    "subview",
    "to_buffer",
    "to_tensor",
)
globals().update(not_supported_yet(__name__, _NOT_YET))
__all__ = [name for name in _NOT_YET if "." not in name]
__getattr__ = explain_missing(__name__, __all__)
