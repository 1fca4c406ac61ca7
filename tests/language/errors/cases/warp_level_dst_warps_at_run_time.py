"""Destinations that differ between warps."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit(warp_level=True)
def kernel(x_ptr):
    tl.store(x_ptr + tl.arange(0, 16), tl.sum(tl.arange(0, 16), cross_warp=True, dst_warps=tl.warp_id()))


def call():
    kernel[(1,)](np.zeros(64, np.int32))
