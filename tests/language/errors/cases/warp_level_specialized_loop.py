"""A loop whose loads go to other warps, in a kernel for one."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit(warp_level=True)
def kernel(x_ptr):
    for i in tl.range(8, warp_specialize=True):
        tl.store(x_ptr + i, 1)


def call():
    kernel[(1,)](np.zeros(64, np.int32))
