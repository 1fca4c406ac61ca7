"""Every GPU target: the same kernels, compiled for each and run in the simulator."""

import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright.backends.compiler import GPUTarget

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

from matmul import matmul
from softmax import reference, softmax

TARGETS = ["cuda:80", "cuda:86", "cuda:89", "cuda:90", "cuda:100", "cuda:120"]


@pytest.fixture(params=TARGETS)
def target(request, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    monkeypatch.setenv("TILEWRIGHT_TARGET", request.param)
    return request.param


@triton.jit
def halves_kernel(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    narrow = tl.load(x + i).to(tl.float8e4nv)
    tl.store(y + i, narrow.to(tl.bfloat16).to(tl.float32) * 0.5)


def test_softmax(target):
    x = np.random.default_rng(1).standard_normal((4, 300), dtype=np.float32)
    out = np.empty_like(x)
    softmax(x, out)
    np.testing.assert_allclose(out, reference(x), rtol=1e-5, atol=1e-7)


def test_a_matrix_product(target):
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-3, 4, (96, 96)).astype(np.float16) for _ in range(2))
    c = np.empty((96, 96), np.float32)
    matmul(a, b, c, (64, 32, 32))
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_what_is_assembled_is_for_the_target(target):
    x, y = np.arange(32, dtype=np.float32) - 16, np.zeros(32, np.float32)
    compiled = halves_kernel[(1,)](x, y, BLOCK=32)
    np.testing.assert_array_equal(y, x * 0.5)
    arch = {"cuda:90": "sm_90a"}.get(target, target.replace("cuda:", "sm_"))
    assert f".target {arch}\n" in compiled.asm["ptx"]
    assembled = halves_kernel.warmup(x, y, BLOCK=32, grid=(1,), target=target)
    assert assembled.metadata.target == GPUTarget.parse(target)
    assert "cubin" in assembled.asm


def test_other_names_are_refused_with_those_that_there_are():
    x = np.zeros(32, np.float32)
    with pytest.raises(ValueError, match=r"cuda:80, .*cuda:120"):
        halves_kernel.warmup(x, x, BLOCK=32, grid=(1,), target="cuda:75")
