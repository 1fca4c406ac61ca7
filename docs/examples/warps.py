"""Warps of a program."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


# %% tl.warp_id, tl.num_warps
@triton.jit(warp_level=True)
def row_maxima(x_ptr, out_ptr, rows, N: tl.constexpr):
    # Each warp has rows of its own.
    for row in range(tl.warp_id(), rows, tl.num_warps()):
        tl.store(out_ptr + row, tl.max(tl.load(x_ptr + row * N + tl.arange(0, N))))


x, out = np.random.rand(10, 64).astype(np.float32), np.zeros(10, np.float32)
row_maxima[(1,)](x, out, 10, N=64, num_warps=4)
np.testing.assert_array_equal(out, x.max(1))


# %% tl.alloc, tl.barrier
@triton.jit(warp_level=True)
def hand_on(x_ptr, out_ptr, N: tl.constexpr):
    warps: tl.constexpr = tl.num_warps()
    at = tl.warp_id() * N + tl.arange(0, N)
    blocks = tl.alloc((warps, N), tl.float32)
    tl.store(blocks.slot(tl.warp_id()), tl.load(x_ptr + at))
    tl.barrier()  # all have stored before one loads
    tl.store(out_ptr + at, tl.load(blocks.slot((tl.warp_id() + 1) % warps)))


x, out = np.random.rand(4, 64).astype(np.float32), np.zeros((4, 64), np.float32)
hand_on[(1,)](x, out, N=64, num_warps=4)
np.testing.assert_array_equal(out, np.roll(x, -1, axis=0))
