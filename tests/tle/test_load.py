"""`tle.load` is `tl.load` with a hint."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def load_kernel(x_ptr, out_ptr, n, SIZE: tl.constexpr, ASYNC: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tle.load(ptr=x_ptr + at, mask=at < n, other=-1.0, is_async=ASYNC)
    tl.store(out_ptr + at, x + tle.load(x_ptr, eviction_policy="evict_last"))


@pytest.mark.parametrize("size", [64, 96])
def test_load(device, size):
    x = np.arange(size, dtype=np.float32) + 1
    out = device.empty(size, np.float32)
    load_kernel[(1,)](device.array(x), out, 40, size, False)
    np.testing.assert_array_equal(device.numpy(out), np.where(np.arange(size) < 40, x, -1) + 1)


@triton.jit
def block_kernel(x_ptr, out_ptr):
    rows = tl.make_block_ptr(x_ptr, (5, 8), (8, 1), (0, 0), (8, 8), (1, 0))
    x = tle.load(rows, boundary_check=(0,), padding_option="zero")
    tl.store(out_ptr + tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :], x)


def test_block_pointer(device):
    x = np.arange(40, dtype=np.int32).reshape(5, 8)
    out = device.empty((8, 8), np.int32)
    block_kernel[(1,)](device.array(x), out)
    np.testing.assert_array_equal(device.numpy(out), np.vstack([x, np.zeros((3, 8), np.int32)]))


@triton.jit
def given_twice(x_ptr):
    tle.load(x_ptr, ptr=x_ptr)


@triton.jit
def unknown_name(x_ptr):
    tle.load(x_ptr, is_asynch=False)


@pytest.mark.parametrize(
    ("kernel", "args", "message"),
    [
        (load_kernel, (np.zeros(1, np.float32), 1, 16, True), "not supported yet: tle.load(is_async=True)"),
        (given_twice, (), "tle.load is given `ptr` twice"),
        (unknown_name, (), "did you mean `is_async`"),
    ],
)
def test_errors(kernel, args, message, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    with pytest.raises(triton.CompilationError) as caught:
        kernel[(1,)](np.zeros(16, np.float32), *args)
    assert message in str(caught.value) and "^" in str(caught.value)
