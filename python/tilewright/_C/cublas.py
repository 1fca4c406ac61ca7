"""Products by cuBLASLt, the reference that Triton's tutorials and tests measure against (cuBLAS documentation, section 3).

The library is looked up when a :class:`CublasLt` is made: the one that torch has loaded, or the system's.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_float, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any

from ..runtime.driver import driver

__all__ = ["CublasLt"]

# cudaDataType_t, by the name of a dtype without its package.
_TYPES = {"float32": 0, "float16": 2, "bfloat16": 14, "float8_e4m3fn": 28, "float8_e5m2": 29}
_COMPUTE_32F = 68
_OP_T = 1
_TRANSA = 3  # cublasLtMatmulDescAttributes_t
_FAST_ACCUM = 25
_MAX_WORKSPACE = 1  # cublasLtMatmulPreferenceAttributes_t


class _Algorithm(ctypes.Structure):
    """``cublasLtMatmulHeuristicResult_t``."""

    _fields_ = [
        ("algo", c_uint64 * 8),
        ("workspace", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    ]


def _library() -> ctypes.CDLL:
    names = ["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"]
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise RuntimeError(
        f"there is no cuBLASLt ({', '.join(names)}): import torch first, or add its folder to LD_LIBRARY_PATH"
    )


class CublasLt:
    """A handle of cuBLASLt with a workspace: a tensor of bytes on the GPU, which must outlive the products."""

    def __init__(self, workspace: Any):
        self._workspace = workspace
        self._size = workspace.numel() * workspace.element_size()
        self._lib = _library()
        self._handle = c_void_p()
        self._call("cublasLtCreate", byref(self._handle))

    def __del__(self):
        if getattr(self, "_handle", None):
            self._lib.cublasLtDestroy(self._handle)

    def matmul(self, A: Any, B: Any, C: Any) -> None:
        """``C = A @ B.T`` for row-major ``A`` [M, K], ``B`` [N, K] and ``C`` [M, N] of one dtype: fp32, fp16, bf16 or fp8."""
        self._product(A, B, None, C, 1.0, 0.0)

    def gemm(self, A: Any, B: Any, C: Any, D: Any, alpha: float, beta: float) -> None:
        """``D = alpha * A @ B.T + beta * C``, shapes and dtypes as in :meth:`matmul`."""
        self._product(A, B, C, D, alpha, beta)

    def _call(self, name: str, *args: Any) -> None:
        status = getattr(self._lib, name)(*args)
        if status:
            raise RuntimeError(f"{name} failed with cublasStatus_t {status}")

    def _product(self, a: Any, b: Any, c: Any, d: Any, alpha: float, beta: float) -> None:
        names = {str(x.dtype).rsplit(".", 1)[-1] for x in (a, b, d)}
        name = names.pop()
        if names or name not in _TYPES:
            raise ValueError(f"cuBLASLt: A, B and C must have one dtype of {', '.join(_TYPES)}")
        if (
            a.ndim != 2
            or b.ndim != 2
            or a.shape[1] != b.shape[1]
            or tuple(d.shape) != (a.shape[0], b.shape[0])
        ):
            raise ValueError(
                f"cuBLASLt: C = A @ B.T does not fit the shapes {tuple(a.shape)}, {tuple(b.shape)}, {tuple(d.shape)}"
            )
        if not all(x.is_contiguous() for x in (a, b, c, d) if x is not None):
            raise ValueError("cuBLASLt: A, B and C must be contiguous")
        (m, k), n = a.shape, b.shape[0]
        dtype = _TYPES[name]
        # In fp8, what is added has 16 bits.
        addend = _TYPES["float16"] if name.startswith("float8") else dtype
        made: list[tuple[str, c_void_p]] = []

        def create(kind: str, *args: Any) -> c_void_p:
            handle = c_void_p()
            self._call(f"cublasLt{kind}Create", byref(handle), *args)
            made.append((f"cublasLt{kind}Destroy", handle))
            return handle

        def layout(ty: int, rows: int, columns: int) -> c_void_p:
            return create("MatrixLayout", c_int(ty), c_uint64(rows), c_uint64(columns), c_int64(rows))

        try:
            # cuBLAS counts by columns: it computes the transpose of D, from B and A.
            operation = create("MatmulDesc", c_int(_COMPUTE_32F), c_int(_TYPES["float32"]))
            transposed = c_int(_OP_T)
            self._call(
                "cublasLtMatmulDescSetAttribute", operation, c_int(_TRANSA), byref(transposed), c_size_t(4)
            )
            if name == "float8_e4m3fn":
                # As the products of kernels are summed on Hopper, unless they say otherwise.
                fast = ctypes.c_int8(1)
                self._call(
                    "cublasLtMatmulDescSetAttribute", operation, c_int(_FAST_ACCUM), byref(fast), c_size_t(1)
                )
            left, right = layout(dtype, k, n), layout(dtype, k, m)
            added, out = layout(addend, n, m), layout(dtype, n, m)
            preference = create("MatmulPreference")
            size = c_size_t(self._size)
            self._call(
                "cublasLtMatmulPreferenceSetAttribute",
                preference,
                c_int(_MAX_WORKSPACE),
                byref(size),
                c_size_t(ctypes.sizeof(size)),
            )
            best, found = _Algorithm(), c_int()
            self._call(
                "cublasLtMatmulAlgoGetHeuristic",
                *(
                    self._handle,
                    operation,
                    left,
                    right,
                    added,
                    out,
                    preference,
                    c_int(1),
                    byref(best),
                    byref(found),
                ),
            )
            if not found.value:
                raise RuntimeError(f"cuBLASLt has no algorithm for {name} of {m} x {n} x {k}")
            scale, keep = c_float(alpha), c_float(beta)
            # Nothing is added where there is no C: D of fp8 could not be it.
            pointers = [c_void_p(None if x is None else x.data_ptr()) for x in (b, a, c, d)]
            stream = driver.active.get_current_stream(driver.active.get_current_device())
            self._call(
                "cublasLtMatmul",
                *(self._handle, operation, byref(scale), pointers[0], left, pointers[1], right, byref(keep)),
                *(
                    pointers[2],
                    added,
                    pointers[3],
                    out,
                    byref(best.algo),
                    c_void_p(self._workspace.data_ptr()),
                ),
                *(c_size_t(self._size), c_void_p(stream)),
            )
        finally:
            for destroy, handle in made:
                getattr(self._lib, destroy)(handle)
