"""Reductions."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


# %% tl.sum
@triton.jit
def row_means(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + j[None, :])
    tl.store(out_ptr + i, tl.sum(x, axis=1) / N)


x, out = np.random.rand(4, 16).astype(np.float32), np.zeros(4, np.float32)
row_means[(1,)](x, out, M=4, N=16)
np.testing.assert_allclose(out, x.mean(axis=1), rtol=1e-6)


# %% tl.max, tl.min
@triton.jit
def span(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.max(x, axis=0) - tl.min(x, axis=0))
    _, where = tl.max(x, axis=0, return_indices=True)
    tl.store(out_ptr + 1, where)


x, out = np.array([3, -1, 7, 7, 0, 2, 5, 1]), np.zeros(2, np.int64)
span[(1,)](x, out, N=8)
np.testing.assert_array_equal(out, [8, 2])


# %% tl.argmax, tl.argmin
@triton.jit
def extremes(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.argmax(x, axis=0))  # the first of equal ones
    tl.store(out_ptr + 1, tl.argmin(x, axis=0))


x, out = np.array([3, -1, 7, 7, 0, 2, 5, 1]), np.zeros(2, np.int32)
extremes[(1,)](x, out, N=8)
np.testing.assert_array_equal(out, [np.argmax(x), np.argmin(x)])


# %% tl.reduce
@triton.jit
def combine(mean_a, count_a, mean_b, count_b):
    count = count_a + count_b
    return mean_a + (mean_b - mean_a) * (count_b / count), count


@triton.jit
def running_mean(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    mean, _ = tl.reduce((x, tl.full((N,), 1.0, tl.float32)), 0, combine)
    tl.store(out_ptr, mean)


x, out = np.random.rand(32).astype(np.float32), np.zeros(1, np.float32)
running_mean[(1,)](x, out, N=32)
np.testing.assert_allclose(out[0], x.mean(), rtol=1e-5)


# %% tl.reduce_or, tl.xor_sum
@triton.jit
def flags(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.reduce_or(x, axis=0))
    tl.store(out_ptr + 1, tl.xor_sum(x, axis=0))


x, out = np.array([1, 2, 4, 5]), np.zeros(2, np.int64)
flags[(1,)](x, out, N=4)
np.testing.assert_array_equal(out, [1 | 2 | 4 | 5, 1 ^ 2 ^ 4 ^ 5])
