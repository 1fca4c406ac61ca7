"""Partitions in a kernel for one warp."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
import tilewright.tle as tle


@triton.jit(warp_level=True)
def kernel(x_ptr):
    tle.gpu.alloc_barriers(2)
    tl.store(x_ptr, 1)


def call():
    kernel[(1,)](np.zeros(64, np.int32))
