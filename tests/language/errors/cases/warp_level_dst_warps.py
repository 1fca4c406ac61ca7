"""A warp that there is not."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit(warp_level=True)
def kernel(x_ptr):
    tl.store(x_ptr + tl.arange(0, 16), tl.sum(tl.arange(0, 16), cross_warp=True, dst_warps=(0, 4)))


def call():
    kernel[(1,)](np.zeros(64, np.int32))
