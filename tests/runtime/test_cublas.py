"""The cuBLAS that Triton's tutorials compare themselves with, asked through a stand-in for its library."""

import numpy as np
import pytest

from tilewright._C import cublas
from tilewright._C.libtriton import nvidia


class Matrix:
    def __init__(self, *shape, dtype="torch.float16"):
        self.values = np.zeros(shape, np.uint8)
        self.shape, self.ndim, self.dtype = shape, len(shape), dtype

    def numel(self):
        return self.values.size

    def element_size(self):
        return 1

    def data_ptr(self):
        return self.values.ctypes.data

    def is_contiguous(self):
        return True


class Library:
    """Records calls; all succeed, and one algorithm is found unless ``found`` says none."""

    def __init__(self, found=1):
        self.calls, self.found = [], found

    def __getattr__(self, name):
        def call(*args):
            self.calls.append((name, [getattr(a, "value", a) for a in args]))
            if name == "cublasLtMatmulAlgoGetHeuristic":
                args[-1]._obj.value = self.found
            return 0

        return call

    def named(self, part):
        return [args for name, args in self.calls if part in name]


@pytest.fixture
def library(monkeypatch):
    library = Library()
    monkeypatch.setattr(cublas, "_library", lambda: library)
    active = type("Active", (), {"get_current_stream": lambda *_: 7, "get_current_device": lambda *_: 0})
    monkeypatch.setattr(cublas, "driver", type("Driver", (), {"active": active()}))
    return library


def test_the_transposed_product_by_columns(library):
    a, b, c = Matrix(16, 64), Matrix(32, 64), Matrix(16, 32)
    nvidia.cublas.CublasLt(Matrix(1024)).matmul(a, b, c)
    # [type, rows, columns, leading dimension] of B, A, C and D, each transposed.
    layouts = [args[1:] for args in library.named("MatrixLayoutCreate")]
    assert layouts == [[2, 64, 32, 64], [2, 64, 16, 64], [2, 32, 16, 32], [2, 32, 16, 32]]
    (call,) = [args for name, args in library.calls if name == "cublasLtMatmul"]
    assert [call[3], call[5], call[8], call[10]] == [b.data_ptr(), a.data_ptr(), None, c.data_ptr()]
    assert call[-2:] == [1024, 7]
    assert len(library.named("Destroy")) == len(library.named("LayoutCreate")) + 2


def test_fp8_adds_in_16_bits(library):
    m = [Matrix(16, 16, dtype="torch.float8_e4m3fn") for _ in range(3)]
    nvidia.cublas.CublasLt(Matrix(1024)).matmul(*m)
    assert [args[1] for args in library.named("MatrixLayoutCreate")] == [28, 28, 2, 28]
    assert [args[1] for args in library.named("DescSetAttribute")] == [3, 25]


@pytest.mark.parametrize(
    "matrices, message",
    [
        ((Matrix(16, 8), Matrix(16, 16), Matrix(16, 16)), "does not fit the shapes"),
        ((Matrix(16, 16, dtype="torch.int8"), Matrix(16, 16), Matrix(16, 16)), "one dtype of float32"),
    ],
)
def test_wrong_matrices(library, matrices, message):
    with pytest.raises(ValueError, match=message):
        nvidia.cublas.CublasLt(Matrix(1024)).matmul(*matrices)
    assert not library.named("cublasLtMatmulAlgo")


def test_no_algorithm(library):
    library.found = 0
    with pytest.raises(RuntimeError, match="no algorithm for float16 of 16 x 16 x 16"):
        nvidia.cublas.CublasLt(Matrix(1024)).matmul(*[Matrix(16, 16)] * 3)
    assert len(library.named("Destroy")) == 6


def test_no_library(monkeypatch):
    def missing(name):
        raise OSError

    monkeypatch.setattr(cublas.ctypes, "CDLL", missing)
    with pytest.raises(RuntimeError, match=r"there is no cuBLASLt .*import torch first"):
        nvidia.cublas.CublasLt(Matrix(1024))
