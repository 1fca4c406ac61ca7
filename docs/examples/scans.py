"""Scans and sorting."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


# %% tl.cumsum, tl.cumprod
@triton.jit
def running(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.cumsum(x, axis=0))
    tl.store(out_ptr + N + i, tl.cumsum(x, axis=0, reverse=True))
    tl.store(out_ptr + 2 * N + i, tl.cumprod(x, axis=0))


x, out = np.array([1, 2, 3, 4]), np.zeros((3, 4), np.int64)
running[(1,)](x, out, N=4)
np.testing.assert_array_equal(out, [[1, 3, 6, 10], [10, 9, 7, 4], [1, 2, 6, 24]])


# %% tl.associative_scan
@triton.jit
def compose(a0, b0, a1, b1):
    # First y = a0 h + b0, then a1 y + b1.
    return a1 * a0, a1 * b0 + b1


@triton.jit
def recurrence(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    _, h = tl.associative_scan((tl.load(a_ptr + i), tl.load(b_ptr + i)), 0, compose)
    tl.store(out_ptr + i, h)  # h[i] = a[i] h[i - 1] + b[i]


a, b, out = np.random.rand(8), np.random.rand(8), np.zeros(8)
recurrence[(1,)](a, b, out, N=8)
np.testing.assert_allclose(out[1:], a[1:] * out[:-1] + b[1:])


# %% tl.histogram
@triton.jit
def count(x_ptr, out_ptr, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + tl.arange(0, BINS), tl.histogram(x, BINS, mask=i < n))


x, out = np.random.randint(0, 8, 100, dtype=np.int32), np.zeros(8, np.int32)
count[(1,)](x, out, 100, BLOCK=128, BINS=8)
np.testing.assert_array_equal(out, np.bincount(x, minlength=8))


# %% tl.sort, tl.topk
@triton.jit
def order(x_ptr, out_ptr, best_ptr, N: tl.constexpr, K: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr + tl.arange(0, N), tl.sort(x))
    tl.store(best_ptr + tl.arange(0, K), tl.topk(x, K))


x = np.random.permutation(16)
out = np.zeros(16, np.int64)
best = np.zeros(4, np.int64)
order[(1,)](x, out, best, N=16, K=4)
np.testing.assert_array_equal(out, np.arange(16))
np.testing.assert_array_equal(best, [15, 14, 13, 12])


# %% tl.bitonic_merge
@triton.jit
def merge(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    # Two sorted blocks, one of them turned around, rise and then fall.
    i = tl.arange(0, 2 * N)
    rising = tl.load(x_ptr + i, mask=i < N, other=0)
    falling = tl.load(y_ptr + 2 * N - 1 - i, mask=i >= N, other=0)
    tl.store(out_ptr + i, tl.bitonic_merge(tl.where(i < N, rising, falling)))


x, y = np.array([1, 4, 6, 9]), np.array([0, 2, 3, 8])
out = np.zeros(8, np.int64)
merge[(1,)](x, y, out, N=4)
np.testing.assert_array_equal(out, np.sort(np.concatenate([x, y])))
