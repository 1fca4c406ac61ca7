"""``triton._C.libtriton.nvidia``: of what Triton keeps there, products by cuBLAS, which its tutorials compare themselves with."""

from . import cublas

__all__ = ["cublas"]
