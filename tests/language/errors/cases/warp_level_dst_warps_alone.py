"""Destinations of a reduction that stays within the warp."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit(warp_level=True)
def kernel(x_ptr):
    tl.store(x_ptr, tl.sum(tl.arange(0, 16), dst_warps=0))


def call():
    kernel[(1,)](np.zeros(64, np.int32))
