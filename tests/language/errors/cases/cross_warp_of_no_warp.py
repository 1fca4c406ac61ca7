"""A reduction over warps in a kernel for all warps together."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, tl.sum(tl.arange(0, 16), cross_warp=True))


def call():
    kernel[(1,)](np.zeros(64, np.int32))
