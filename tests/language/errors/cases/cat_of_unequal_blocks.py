"""Blocks of different extents behind each other, in their order."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(x_ptr):
    x = tl.cat(tl.arange(0, 64), tl.arange(0, 32))
    tl.store(x_ptr, tl.sum(x))


def call():
    kernel[(1,)](np.zeros(64, np.float32))
