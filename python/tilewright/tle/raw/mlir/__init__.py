"""``tle.raw.mlir``: the operations that functions in MLIR are made of, as MLIR's Python bindings name them, without those bindings.

A function is what one thread does. The front end evaluates it once for all threads: a value is a tensor with an element for each of them (or
one number, where all have the same), a condition that differs between threads is a mask. So it runs wherever kernels do, the CPU
executor included. Each dialect is a file, written in the language itself.
"""

from ....language._marker import explain_missing
from . import arith, cf, gpu, ir, llvm, math, memref, nvvm, scf, tensor, vector
from ._debug import vassert, vprintf

__all__ = [
    "arith",
    "cf",
    "gpu",
    "ir",
    "llvm",
    "math",
    "memref",
    "nvvm",
    "scf",
    "tensor",
    "vassert",
    "vector",
    "vprintf",
]
__getattr__ = explain_missing(__name__, __all__)
