"""What NVIDIA's GPUs tell a program, and the conversions of their own 8-bit float."""

from __future__ import annotations

from ... import core
from ..._marker import builtin, jit

__all__ = [
    "convert_custom_float8",
    "convert_custom_float8_sm70",
    "convert_custom_float8_sm80",
    "globaltimer",
    "num_threads",
    "num_warps",
    "smid",
]


@builtin
def globaltimer():
    """A clock of the GPU in nanoseconds, as int64.

    Threads read it one by one. On the CPU executor and in the simulator it counts steps of the program.
    """


@builtin
def smid():
    """The number of the multiprocessor that runs the program, as int32.

    On the CPU executor and in the simulator programs are dealt out in turn.
    """


@builtin
def num_threads():
    """How many threads run a program, a constant."""


@builtin
def num_warps():
    """How many warps run a program, a constant."""


@jit
def convert_custom_float8(arg, dst_ty, fp_downcast_rounding=None, has_minx2=True):
    """From ``tl.float8e4b15`` to float16 or float32, or from these to it.

    To it, to nearest, ties away from zero, and at most 1.75; float32 becomes float16 first, toward zero. The result is the same
    whatever ``has_minx2`` says of the GPU's instructions.
    """
    if arg.dtype.is_fp8e4b15():
        bits = arg.to(core.uint8, bitcast=True).to(core.uint16)
        half = ((bits & 0x80) << 8) | ((bits & 0x7F) << 7)
        return half.to(core.float16, bitcast=True).to(dst_ty)
    core.static_assert(
        arg.dtype.is_fp16() or arg.dtype.is_fp32(), "only float16 and float32 become float8e4b15"
    )
    half = arg.to(core.float16, fp_downcast_rounding="rtz") if arg.dtype.is_fp32() else arg
    bits = half.to(core.uint16, bitcast=True)
    magnitude = bits & 0x7FFF
    magnitude = core.where(magnitude > 0x3F00, 0x3F00, magnitude)
    byte = ((magnitude * 2 + 0x80) >> 8) | ((bits >> 8) & 0x80)
    return byte.to(core.uint8).to(core.float8e4b15, bitcast=True)


@jit
def convert_custom_float8_sm80(arg, dst_ty, fp_downcast_rounding=None):
    """:func:`convert_custom_float8`"""
    return convert_custom_float8(arg, dst_ty, fp_downcast_rounding)


@jit
def convert_custom_float8_sm70(arg, dst_ty, fp_downcast_rounding=None):
    """:func:`convert_custom_float8`"""
    return convert_custom_float8(arg, dst_ty, fp_downcast_rounding)
