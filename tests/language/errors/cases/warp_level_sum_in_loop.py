"""A reduction over the warps in a loop that each warp goes through as often as it likes."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit(warp_level=True)
def kernel(x_ptr):
    total = tl.zeros((16,), tl.int32)
    for _ in range(tl.warp_id(), 8):
        total += tl.sum(tl.arange(0, 16), cross_warp=True)
    tl.store(x_ptr + tl.arange(0, 16), total)


def call():
    kernel[(1,)](np.zeros(64, np.int32))
