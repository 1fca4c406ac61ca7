"""Shape."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


# %% tl.broadcast
@triton.jit
def grid_of(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.broadcast(tl.arange(0, M)[:, None], tl.arange(0, N)[None, :])
    tl.static_assert(rows.shape == columns.shape)
    tl.store(out_ptr + rows * N + columns, tl.load(x_ptr + columns * M + rows))


x, out = np.arange(32).reshape(8, 4), np.zeros((4, 8), np.int64)
grid_of[(1,)](x, out, M=4, N=8)
np.testing.assert_array_equal(out, x.T)


# %% tl.broadcast_to
@triton.jit
def repeat(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    j = tl.arange(0, N)
    row = tl.load(x_ptr + j)[None, :]
    at = tl.arange(0, M)[:, None] * N + j
    tl.store(out_ptr + at, tl.broadcast_to(row, (M, N)))


x, out = np.arange(8), np.zeros((4, 8), np.int64)
repeat[(1,)](x, out, M=4, N=8)
np.testing.assert_array_equal(out, np.tile(x, (4, 1)))


# %% tl.expand_dims
@triton.jit
def table(out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    rows, columns = tl.expand_dims(i, 1), tl.expand_dims(i, 0)
    # The same as i[:, None] and i[None, :].
    tl.store(out_ptr + rows * N + columns, (rows + 1) * (columns + 1))


out = np.zeros((8, 8), np.int32)
table[(1,)](out, N=8)
np.testing.assert_array_equal(out, np.outer(np.arange(1, 9), np.arange(1, 9)))


# %% tl.join, tl.split
@triton.jit
def rotate(z_ptr, out_ptr, N: tl.constexpr):
    # Complex numbers in memory are pairs: multiplied by i.
    pairs = tl.arange(0, N)[:, None] * 2 + tl.arange(0, 2)[None, :]
    real, imaginary = tl.split(tl.load(z_ptr + pairs))
    tl.store(out_ptr + pairs, tl.join(-imaginary, real))


z, out = np.array([1 + 2j, 3 - 4j], np.complex64), np.zeros(2, np.complex64)
rotate[(1,)](z.view(np.float32), out.view(np.float32), N=2)
np.testing.assert_array_equal(out, 1j * z)


# %% tl.interleave
@triton.jit
def zip_up(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    x, y = tl.load(x_ptr + tl.arange(0, N)), tl.load(y_ptr + tl.arange(0, N))
    tl.store(out_ptr + tl.arange(0, 2 * N), tl.interleave(x, y))


x, y = np.array([1, 3, 5, 7]), np.array([2, 4, 6, 8])
out = np.zeros(8, np.int64)
zip_up[(1,)](x, y, out, N=4)
np.testing.assert_array_equal(out, [1, 2, 3, 4, 5, 6, 7, 8])


# %% tl.item
@triton.jit
def first(x_ptr, out_ptr):
    block = tl.load(x_ptr + tl.arange(0, 1))
    scalar = tl.item(block)  # a scalar may be a condition
    if scalar > 2:
        tl.store(out_ptr, scalar)


x, out = np.array([3]), np.array([0])
first[(1,)](x, out)
assert out[0] == 3


# %% tl.permute
@triton.jit
def channels_last(x, out, C: tl.constexpr, H: tl.constexpr, W: tl.constexpr):
    at = tl.arange(0, C * H * W)
    image = tl.load(x + at).reshape(C, H, W)
    tl.store(out + at, tl.ravel(tl.permute(image, (1, 2, 0))))


x, out = np.arange(64).reshape(4, 2, 8), np.zeros((2, 8, 4), np.int64)
channels_last[(1,)](x, out, C=4, H=2, W=8)
np.testing.assert_array_equal(out, x.transpose(1, 2, 0))


# %% tl.trans
@triton.jit
def transpose(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + j[None, :])
    tl.store(out_ptr + j[:, None] * M + i[None, :], tl.trans(x))


x, out = np.arange(32).reshape(4, 8), np.zeros((8, 4), np.int64)
transpose[(1,)](x, out, M=4, N=8)
np.testing.assert_array_equal(out, x.T)


# %% tl.reshape, tl.ravel
@triton.jit
def sum_pairs(x_ptr, out_ptr, N: tl.constexpr):
    pairs = tl.reshape(tl.load(x_ptr + tl.arange(0, N)), (N // 2, 2))
    tl.store(out_ptr + tl.arange(0, N // 2), tl.sum(pairs, axis=1))
    flat = tl.ravel(pairs)
    tl.static_assert(flat.shape[0] == N)


x, out = np.arange(8), np.zeros(4, np.int64)
sum_pairs[(1,)](x, out, N=8)
np.testing.assert_array_equal(out, [1, 5, 9, 13])


# %% tl.view
@triton.jit
def largest(x_ptr, out_ptr, N: tl.constexpr):
    # The compiler chooses where elements land: right where no order matters.
    matrix = tl.view(tl.load(x_ptr + tl.arange(0, N)), (4, N // 4))
    tl.store(out_ptr, tl.max(matrix))


x, out = np.random.permutation(16), np.zeros(1, np.int64)
largest[(1,)](x, out, N=16)
assert out[0] == 15
