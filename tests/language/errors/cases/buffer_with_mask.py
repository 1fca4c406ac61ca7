"""A mask for a whole buffer."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    block = tl.alloc((16,), tl.int32)
    tl.store(block, tl.arange(0, 16), mask=tl.arange(0, 16) < 8)


def call():
    kernel[(1,)](np.zeros(64, np.int32))
