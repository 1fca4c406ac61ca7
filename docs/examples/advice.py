"""Advice to the compiler."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


# %% tl.assume
@triton.jit
def copy_rows(x_ptr, out_ptr, stride, N: tl.constexpr):
    tl.assume(stride % 16 == 0)  # so a thread moves several elements at once
    row = tl.program_id(0) * stride + tl.arange(0, N)
    tl.store(out_ptr + row, tl.load(x_ptr + row))


x, out = np.random.rand(4, 32).astype(np.float32), np.zeros((4, 32), np.float32)
copy_rows[(4,)](x, out, 32, N=32)
np.testing.assert_array_equal(out, x)


# %% tl.debug_barrier
@triton.jit
def turn_around(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.debug_barrier()  # every thread has read before one writes
    tl.store(x_ptr + N - 1 - i, x)


x = np.arange(128)
turn_around[(1,)](x, N=128)
np.testing.assert_array_equal(x, np.arange(128)[::-1])


# %% tl.max_constancy, tl.max_contiguous, tl.multiple_of
@triton.jit
def expand(x_ptr, index_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    start = tl.load(index_ptr + i)
    # What is known of numbers that come from memory: runs of 8 from multiples of 8.
    start = tl.max_contiguous(tl.multiple_of(start, 8), 8)
    group = tl.max_constancy(start // 8, 8)
    tl.store(out_ptr + i, tl.load(x_ptr + start) + group)


index = np.concatenate([np.arange(8) + 24, np.arange(8)])
x, out = np.arange(32), np.zeros(16, np.int64)
expand[(1,)](x, index, out, N=16)
np.testing.assert_array_equal(out, x[index] + index // 8)
