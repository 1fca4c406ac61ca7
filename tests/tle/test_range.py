"""`tle.range` is `tl.range` with one hint more."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def sum_kernel(x_ptr, out_ptr, n, REORDER: tl.constexpr):
    total = tl.zeros((32,), tl.float32)
    for i in tle.range(0, n, 2, num_stages=3, loop_unroll_factor=2, reorder=REORDER):
        total = total * 0.5 + tl.load(x_ptr + i * 32 + tl.arange(0, 32))
    tl.store(out_ptr + tl.arange(0, 32), total)


@pytest.mark.parametrize("reorder", [False, True])
@pytest.mark.parametrize("n", [0, 1, 7])
def test_range(device, n, reorder):
    x = np.random.default_rng(0).integers(-8, 8, (8, 32)).astype(np.float32)
    out = device.empty(32, np.float32)
    sum_kernel[(1,)](device.array(x), out, n, reorder)
    want = np.zeros(32, np.float32)
    for row in x[0:n:2]:
        want = want * np.float32(0.5) + row
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def wrong_name(x_ptr):
    for i in tle.range(4, reorders=True):
        tl.store(x_ptr, i)


@triton.jit
def not_constant(x_ptr):
    for i in tle.range(4, reorder=tl.load(x_ptr)):
        tl.store(x_ptr, i)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [(wrong_name, "did you mean `reorder`"), (not_constant, "must be known at compile time")],
)
def test_errors(kernel, message, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    with pytest.raises(triton.CompilationError) as caught:
        kernel[(1,)](np.zeros(1, np.int32))
    assert message in str(caught.value) and "^" in str(caught.value)
