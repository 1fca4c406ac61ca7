"""``tl.int1`` is an unsigned integer of one bit, as in Triton: True is above False."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@triton.jit
def order_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i).to(tl.int1), tl.load(y_ptr + i).to(tl.int1)
    tl.store(out_ptr + i, x < y)
    tl.store(out_ptr + N + i, x <= y)
    tl.store(out_ptr + 2 * N + i, x > y)
    tl.store(out_ptr + 3 * N + i, x >= y)
    tl.store(out_ptr + 4 * N + i, tl.minimum(x, y))
    tl.store(out_ptr + 5 * N + i, tl.maximum(x, y))
    tl.store(out_ptr + 6 * N + i, x > False)
    tl.store(out_ptr + 7 * N + i, True > x)
    tl.store(out_ptr + 8 * N + i, x < i)
    tl.store(out_ptr + 9 * N + i, x >= True)


def bools(n, seed=0):
    return np.random.default_rng(seed).integers(0, 2, n).astype(bool)


def test_order(device):
    x, y = bools(96), bools(96, 1)
    out = device.empty((10, 96), np.int8)
    order_kernel[(1,)](device.array(x), device.array(y), out, N=96)
    want = [x < y, x <= y, x > y, x >= y, x & y, x | y, x, ~x, x < np.arange(96), x]
    np.testing.assert_array_equal(device.numpy(out), np.array(want, np.int8))


@triton.jit
def scalar_kernel(x_ptr, y_ptr, out_ptr):
    x, y = tl.load(x_ptr).to(tl.int1), tl.load(y_ptr).to(tl.int1)
    if x > y:
        tl.store(out_ptr, 1)
    elif x < y:
        tl.store(out_ptr, 2)
    else:
        tl.store(out_ptr, 3)


@pytest.mark.parametrize("x,y,want", [(0, 0, 3), (0, 1, 2), (1, 0, 1), (1, 1, 3)])
def test_branch(device, x, y, want):
    out = device.empty(1, np.int32)
    scalar_kernel[(1,)](device.array(np.array([bool(x)])), device.array(np.array([bool(y)])), out)
    np.testing.assert_array_equal(device.numpy(out), [want])


@triton.jit
def reduce_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]).to(tl.int1)
    rows = tl.arange(0, M)
    total, running = tl.sum(x, axis=1), tl.cumsum(x, axis=1)
    tl.static_assert(total.dtype == tl.uint32)
    tl.static_assert(tl.max(x, axis=1).dtype == tl.int32)
    high, high_at = tl.max(x, axis=1, return_indices=True)
    tl.static_assert(high.dtype == tl.int1)
    tl.store(out_ptr + rows, total)
    tl.store(out_ptr + M + rows, tl.max(x, axis=1))
    tl.store(out_ptr + 2 * M + rows, tl.min(x, axis=1))
    tl.store(out_ptr + 3 * M + rows, tl.argmax(x, axis=1))
    tl.store(out_ptr + 4 * M + rows, tl.argmin(x, axis=1))
    tl.store(out_ptr + 5 * M + rows, tl.max(running, axis=1))
    tl.store(out_ptr + 6 * M + rows, high_at)
    tl.store(out_ptr + 7 * M + rows, high)


def test_reductions(device):
    x = bools(16 * 32).reshape(16, 32)
    x[0], x[1] = False, True
    out = device.empty((8, 16), np.int32)
    reduce_kernel[(1,)](device.array(x), out, M=16, N=32)
    at, high = x.argmax(1), x.max(1)
    want = [x.sum(1), high, x.min(1), at, x.argmin(1), x.sum(1), at, high]
    np.testing.assert_array_equal(device.numpy(out), np.array(want, np.int32))


@triton.jit
def dtype_kernel(out_ptr):
    tl.static_assert(not tl.int1.is_int_signed())
    tl.static_assert(tl.int1.is_int_unsigned())
    tl.static_assert(tl.int1.is_int())
    x = tl.load(out_ptr).to(tl.int1)
    tl.static_assert(x.dtype.is_int_unsigned())
    tl.store(out_ptr, (x >> 0).to(tl.int32) + (3 >> x))


def test_signedness(device):
    assert not tl.int1.is_int_signed() and tl.int1.is_int_unsigned() and tl.int1.is_int()
    out = device.array(np.array([1], np.int32))
    dtype_kernel[(1,)](out)
    np.testing.assert_array_equal(device.numpy(out), [2])


@triton.jit
def division_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i).to(tl.int1)
    y = tl.load(y_ptr + i)
    tl.store(out_ptr + i, x // y)


def test_division_by_signed_is_refused(device):
    """Signedness differs; with unsigned integers it agrees."""
    x, y = bools(32), np.arange(1, 33)
    out = device.empty(32, np.int32)
    with pytest.raises(triton.CompilationError, match="have different signedness"):
        division_kernel[(1,)](device.array(x), device.array(y.astype(np.int32)), out, N=32)
    division_kernel[(1,)](device.array(x), device.array(y.astype(np.uint32)), out, N=32)
    np.testing.assert_array_equal(device.numpy(out), x // y)
