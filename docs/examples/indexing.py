"""Indexing."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


# %% tl.flip
@triton.jit
def reverse(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.flip(tl.load(x_ptr + i)))


x, out = np.arange(8), np.zeros(8, np.int64)
reverse[(1,)](x, out, N=8)
np.testing.assert_array_equal(out, x[::-1])


# %% tl.gather
@triton.jit
def look_up(table_ptr, index_ptr, out_ptr, SIZE: tl.constexpr, N: tl.constexpr):
    table = tl.load(table_ptr + tl.arange(0, SIZE))
    index = tl.load(index_ptr + tl.arange(0, N))
    tl.store(out_ptr + tl.arange(0, N), tl.gather(table, index, axis=0))


table = np.random.rand(16).astype(np.float32)
index = np.array([3, 3, 0, 15], np.int32)
out = np.zeros(4, np.float32)
look_up[(1,)](table, index, out, SIZE=16, N=4)
np.testing.assert_array_equal(out, table[index])


# %% tl.swizzle2d
@triton.jit
def visit(order_ptr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.program_id(0), tl.program_id(1)
    row, column = tl.swizzle2d(i, j, M, N, 2)  # bands of two rows
    tl.store(order_ptr + row * N + column, i * N + j)


order = np.zeros((4, 3), np.int32)
visit[(4, 3)](order, M=4, N=3)
np.testing.assert_array_equal(order, [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11]])


# %% tl.where
@triton.jit
def relu(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr + tl.arange(0, N), tl.where(x > 0, x, 0.0))


x, out = np.linspace(-1, 1, 8, dtype=np.float32), np.zeros(8, np.float32)
relu[(1,)](x, out, N=8)
np.testing.assert_array_equal(out, np.maximum(x, 0))
