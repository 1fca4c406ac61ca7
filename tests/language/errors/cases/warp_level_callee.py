"""A function for one warp, called from a kernel for all warps together."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit(warp_level=True)
def of_one_warp(x_ptr):
    tl.store(x_ptr + tl.warp_id(), 1)


@triton.jit
def kernel(x_ptr):
    of_one_warp(x_ptr)


def call():
    kernel[(1,)](np.zeros(64, np.int32))
