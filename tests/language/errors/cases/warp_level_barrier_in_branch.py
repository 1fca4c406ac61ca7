"""A barrier to which one warp comes."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit(warp_level=True)
def kernel(x_ptr):
    if tl.warp_id() == 0:
        tl.store(x_ptr, 1)
        tl.barrier()


def call():
    kernel[(1,)](np.zeros(64, np.int32))
