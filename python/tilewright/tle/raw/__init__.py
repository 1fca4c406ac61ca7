"""``tle.raw``: functions in other languages, called by kernels.

A function is declared on the host, by :func:`dialect` or, as the architecture document has it, by :func:`language`; a kernel calls it by
:func:`call`. The languages are the files of ``tle/raw/languages``.
"""

from ...language._marker import also, builtin, explain_missing
from . import mlir
from ._function import InOut, Input, RawFunction, dialect, hardware_constraint, language


@builtin
@also(fn="func")
def call(func, args, output_indices=None, hint="", hardware=None, layout=None):
    """Runs a function in another language in every thread of the program, and gives its outputs.

    ``args`` are tensors, numbers, pointers and buffers, one for each parameter. Outputs are the parameters that are declared ``InOut``, or those
    that ``output_indices`` numbers: the call gives their new values, one or a tuple. As a statement of its own it gives the variables
    among ``args`` that are outputs their new values.

    ``layout`` says by argument how tensors are handed over: ``{"space": "shared", "order": [1, 0]}``, in memory, the fastest dimension first;
    ``{"space": "registers"}``, each element in the thread that has it, one after the other in row-major order; a
    ``tle.gpu.BlockEncoding`` or its like, which says who has which. Left out, PTX text has registers, other languages memory.
    ``hardware={"threads": (n,)}`` lets the first ``n`` threads alone run it. ``hint`` changes nothing.
    """


@builtin
@also(fn="func")
def call_smem(func, args, output_indices=None, hint="", hardware=None, layout=None):
    """:func:`call` by the name that it has for buffers: they are handed over as they are, and written in place."""


__all__ = [
    "InOut",
    "Input",
    "RawFunction",
    "call",
    "call_smem",
    "dialect",
    "hardware_constraint",
    "language",
    "mlir",
]
__getattr__ = explain_missing(__name__, __all__)
