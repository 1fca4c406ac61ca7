"""A mask of the wrong shape."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    i = tl.arange(0, 64)
    x = tl.load(x_ptr + i, mask=tl.arange(0, 32) < 3)
    tl.store(x_ptr + i, x)


def call():
    kernel[(1,)](np.zeros(64, np.float32))
