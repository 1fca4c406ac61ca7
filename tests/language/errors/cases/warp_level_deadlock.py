"""Warps that decide by what a race gives them whether they meet: no compiler sees it, the CPU executor says who waits."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit(warp_level=True)
def kernel(x_ptr):
    flag = tl.load(x_ptr)
    if tl.warp_id() == 0:
        tl.store(x_ptr, 1)
    if flag == 1:
        tl.barrier()


def call():
    kernel[(1,)](np.zeros(1, np.int32))
