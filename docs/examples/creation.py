"""Creation."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


# %% tl.arange
@triton.jit
def squares(out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, i * i)


out = np.zeros(96, np.int32)
squares[(1,)](out, BLOCK=96)
np.testing.assert_array_equal(out, np.arange(96) ** 2)


# %% tl.full
@triton.jit
def fill(out_ptr, value, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.full((BLOCK,), value, tl.float32))


out = np.zeros(8, np.float32)
fill[(1,)](out, 7, BLOCK=8)
np.testing.assert_array_equal(out, np.full(8, 7.0))


# %% tl.zeros, tl.zeros_like
@triton.jit
def sum_rows(x_ptr, out_ptr, rows, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    count = tl.zeros_like(i)
    for row in range(rows):
        total += tl.load(x_ptr + row * N + i)
        count += 1
    tl.store(out_ptr + i, total / count)


x, out = np.random.rand(5, 8).astype(np.float32), np.zeros(8, np.float32)
sum_rows[(1,)](x, out, 5, N=8)
np.testing.assert_allclose(out, x.mean(axis=0), rtol=1e-6)


# %% tl.cat
@triton.jit
def both(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    x, y = tl.load(x_ptr + tl.arange(0, N)), tl.load(y_ptr + tl.arange(0, N))
    # In an order of the compiler's choice: right where no order matters.
    tl.store(out_ptr, tl.max(tl.cat(x, y, can_reorder=True), axis=0))


x, y, out = np.arange(8), np.arange(8) * 10, np.zeros(1, np.int64)
both[(1,)](x, y, out, N=8)
assert out[0] == 70


# %% tl.cast
@triton.jit
def quantize(x_ptr, out_ptr, bits_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.cast(x * 10, tl.int8))
    # x.to(tl.int32, bitcast=True) is the same.
    tl.store(bits_ptr + i, tl.cast(x, tl.int32, bitcast=True))


x = np.array([0.25, -1.0, 3.14, 12.0], np.float32)
out, bits = np.zeros(4, np.int8), np.zeros(4, np.int32)
quantize[(1,)](x, out, bits, N=4)
np.testing.assert_array_equal(out, [2, -10, 31, 120])
np.testing.assert_array_equal(bits, x.view(np.int32))


# %% tl.to_tensor
@triton.jit
def typed(out_ptr, N: tl.constexpr):
    n = tl.to_tensor(N)  # a run-time value, which has a dtype
    tl.static_assert(n.dtype == tl.int32)
    tl.store(out_ptr, n.to(tl.float32) / 2)


out = np.zeros(1, np.float32)
typed[(1,)](out, N=7)
assert out[0] == 3.5
