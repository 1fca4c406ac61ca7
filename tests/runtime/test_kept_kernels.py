"""How many compiled kernels a function keeps."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl

LIMIT = 1024


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")


def test_a_long_process_keeps_the_kernels_that_it_uses():
    @triton.jit
    def kernel(x, N: tl.constexpr):
        tl.store(x, N)

    x = np.zeros(1, np.int32)
    used = kernel[(1,)](x, 0)
    held = kernel[(1,)](x, 1)
    for n in range(2, LIMIT + 300):
        kernel[(1,)](x, n)
        assert x[0] == n
        # What is asked for again and again stays.
        assert kernel[(1,)](x, 0) is used
    assert LIMIT / 2 < len(kernel.compiled_kernels) <= LIMIT
    # What is kept no more runs as long as someone holds it, and is compiled again when it is asked for.
    held[(1,)](x)
    assert x[0] == 1
    assert kernel[(1,)](x, 1) is not held
    assert x[0] == 1
